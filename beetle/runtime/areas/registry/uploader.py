"""Who may upload a skill, and as whom: the one place that asks for an agent."""

from __future__ import annotations

from collections.abc import Mapping

from beetle.contracts.errors import Forbidden, SignatureInvalid
from beetle.named_tuple import NamedTuple
from beetle.runtime.areas.chains.places import key_of
from beetle.runtime.areas.chains.registering import speaks_for
from beetle.runtime.host.identity import is_signed
from beetle.runtime.pipeline.invocation import Invocation
from beetle.store import chain_agents
from beetle.store.engine.transaction import Reading

NO_KEYS: Mapping[str, bytes] = {}


class Agent(NamedTuple):
    """An agent as its chain knows it: its names now, whether it is active, its active keys (32 bytes, by id)."""

    agent_id: str
    name: str
    owner: str | None = None
    active: bool = True
    keys: Mapping[str, bytes] = NO_KEYS


class Signature(NamedTuple):
    """A signature that held, and with which key."""

    key_id: str
    key: bytes
    signature: bytes


def may_upload(invocation: Invocation, agent: Agent) -> None:
    """Whether the caller may upload as this agent.

    Raises:
        Forbidden: the caller speaks for another agent, or the agent is revoked.
    """
    speaks_for(invocation, agent.agent_id)
    if not agent.active:
        raise Forbidden(
            reason=f"the agent {agent.agent_id!r} is revoked, and cannot upload any more",
            hint="upload as an agent that is active, or make this one active again",
            path="$.args.agent_id",
        )


def find_agent(tx: Reading, space: int, chain_key: str | None, agent_id: str) -> Agent:
    """The agent of that id on a chain; one that the chain does not know is what it calls itself, without keys."""
    found = chain_agents.standing(tx, space, key_of(chain_key), agent_id)
    if found is None:
        return Agent(agent_id, agent_id)
    keys = {each.key_id: each.public_key for each in found.keys}
    return Agent(found.agent_id, found.display_name, found.owner, found.is_active, keys)


def verified(agent: Agent, key_id: str | None, signature: tuple[int, ...] | None, content: bytes) -> Signature | None:
    """The signature that came with a content, None where none did.

    Raises:
        SignatureInvalid: it names no key of the agent that holds, or is not of the content.
    """
    if key_id is None or signature is None:
        return None
    key = agent.keys.get(key_id)
    if key is None:
        raise SignatureInvalid(
            reason=f"the agent {agent.agent_id!r} has no active key {key_id!r}",
            hint="add the key to the agent first, or leave signing_key_id and skill_signature out",
            path="$.args.signing_key_id",
        )
    if not is_signed(content, bytes(signature), key):
        raise SignatureInvalid(
            reason=f"the signature is not of this content by the key {key_id!r}",
            hint="sign the UTF-8 bytes of content exactly as they are uploaded (Ed25519)",
            path="$.args.skill_signature",
        )
    return Signature(key_id, key, bytes(signature))
