"""Writes a small store of the present schema into tests/data: `python -m tests.store.make_schema_fixture`.

The stores there stand for those that are out there: the one of an older schema is never written again.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from beetle import MemoryRuntime
from beetle.store.engine.migrate import available
from tests.store.conftest import (
    assert_clean,
    commit,
    delete_skill,
    lifecycle,
    open_runtime,
    ticking,
    turn,
    wait_for_erasures,
    write_skill,
)

FIXTURE = Path(__file__).parents[1] / "data" / "schema_0001.db"
MIGRATION = "0001_initial"


def write(path: Path) -> None:
    """The store: a live turn, a masked one, a deleted one, a skill of two revisions, and governed memory."""
    actor = {"speaker": "Ada"}
    with open_runtime(path, "sqlite", now=ticking()) as memory:
        first = turn("t1", "The lighthouse needs a new lamp", "Then order one")
        first["messages"][0]["actor"] = actor
        commit(
            memory,
            first,
            turn("t2", "The submarine leaves on Monday"),
            turn("t3", "The windmill is sold", attrs=[{"key": "price", "value": "much"}]),
            turn("t4", "And so is the boat", host_refs=[{"kind": "task", "ref_id": "7", "label": "the sale"}]),
        )
        lifecycle(memory, "mask", "t2")
        lifecycle(memory, "delete_raw", "t3")
        write_skill(memory, "tea", "Fill the kettle", citations=("evidence:local/c1/t1",))
        write_skill(memory, "tea", "Fill the kettle, then warm the pot")
        write_skill(memory, "gone", "Forget this")
        delete_skill(memory, "gone")
        write_governed(memory)
        wait_for_erasures(memory)
        assert_clean(memory)


def write_governed(memory: MemoryRuntime) -> None:
    """Facts in every state, one that waits, a policy, private material, and what a tool did."""

    def judged(target: str, privacy: str, topic: str, content: str, authority: str = "user_asserted") -> str | None:
        one = {
            "candidate_id": topic or "cellar", "authority": authority, "target": target, "privacy": privacy,
            "topic": topic, "content": content,
        }  # fmt: skip
        return memory.write(kind="candidates", candidates=[one]).outcomes[0].ref

    lamp = judged("long_term", "shared_with_subject", "lamp", "The lamp is a lens")
    judged("long_term", "subject_private", "boat", "The boat is lent to Ada")
    old = judged("shared_fact", "public_runtime", "harbour", "The harbour is open")
    gone = judged("long_term", "shared_with_subject", "sail", "The sail is torn")
    judged("long_term", "shared_with_subject", "keeper", "The keeper sleeps", "assistant_claimed")
    judged("private_garden", "subject_private", "", "Nobody is to know of the cellar")
    memory.mutate_long_term(action="correct", ref=lamp, content="The lamp is a Fresnel lens", reason="looked again")
    memory.mutate_long_term(action="mark_stale", ref=old, reason="winter")
    memory.mutate_long_term(action="delete", ref=gone)
    memory.long_term_policy(action="suppress", topic="weather")
    use = {"tool_id": "lamp.on", "schema_fingerprint": "s1", "outcome": "succeeded", "summary": "Lit the lamp."}
    registry = {"registry_id": "house", "fingerprint": "f1"}
    feedback = {"registry_ref": registry, "turn_id": "t1", "observations": [use]}
    memory.write(kind="agent_tool_usage_feedback", feedback=feedback)


def main() -> None:
    target = FIXTURE.with_name(f"schema_{available()[-1].number:04}.db")
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "store.db"
        write(made)
        shutil.copy(made, target)
    sys.stdout.write(f"{target}: {target.stat().st_size} bytes\n")


if __name__ == "__main__":
    main()
