"""Who may not read private material cannot delete it by an import that never carries it."""

from __future__ import annotations

from pathlib import Path

import pytest

from beetle.contracts.common import WireScope
from beetle.contracts.errors import Forbidden
from beetle.open import open_store
from beetle.runtime.host.caller import Caller
from beetle.runtime.pipeline.invocation import Call
from tests.building import candidate, candidates, talk, turn
from tests.conformance.doors import PROFILE, Plain
from tests.governance.material import ASKERS, OWNER

DEVICE = Caller(
    "device:pad", "device", frozenset({"import", "export", "transcript", "write"}), ("model_context", "export"),
    "unix_socket", OWNER, "agent-main",
)  # fmt: skip
PRIVATE = candidate("p", "mara cannot swim", target="private_garden", privacy="subject_private")


@pytest.mark.parametrize("holds_private", [True, False])
def test_discarding_private_material_needs_the_right_to_it(tmp_path: Path, holds_private: bool) -> None:
    opened = open_store(str(tmp_path / "store.db"), PROFILE)

    def ask(caller: Caller, op: str, args: Plain) -> object:
        return opened.dispatcher.dispatch(Call(op, args, caller, WireScope(owner_id=OWNER))).report

    def held() -> int:
        return len(ask(ASKERS["owner"].caller, "private.list", {}).items)  # type: ignore[attr-defined]

    try:
        ask(DEVICE, "transcript.commit", talk(turn("t1", "the pump is loud")))
        archive = ask(DEVICE, "memory.export_space", {}).archive  # type: ignore[attr-defined]
        if holds_private:
            ask(ASKERS["owner"].caller, "memory.write", candidates(PRIVATE))
        with pytest.raises(Forbidden) as refused:
            ask(DEVICE, "memory.import_space", {"archive": archive, "mode": "full_restore", "discard_withheld": True})
        assert refused.value.details["capability"] == "private.read"
        assert held() == holds_private
        operator = ASKERS["operator"].caller
        ask(operator, "memory.import_space", {"archive": archive, "mode": "full_restore", "discard_withheld": True})
        assert held() == 0
    finally:
        opened.store.close()
