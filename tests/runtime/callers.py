"""Who asks in these tests."""

from __future__ import annotations

from beetle.runtime.host.caller import Caller
from beetle.runtime.host.principals import OPERATOR_CAPABILITIES


def agent_of(owner: str) -> Caller:
    """An owner's agent, which may do all that an operator may, in its own space."""
    return Caller(
        name="agent",
        kind="principal",
        capabilities=OPERATOR_CAPABILITIES,
        views=("model_context", "host_ui"),
        transport="in_process",
        owner_id=owner,
        agent_id="agent-main",
    )
