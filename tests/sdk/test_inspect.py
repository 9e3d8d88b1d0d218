"""memory.inspect: everything that it tells is read, of the caller's own, and as the caller may see it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from beetle import MemoryRuntime
from beetle.contracts.common import WireScope
from beetle.contracts.operations import OPERATIONS
from beetle.open import Embedded
from beetle.runtime.host.caller import Caller
from beetle.runtime.host.principals import OPERATOR_CAPABILITIES
from tests.store.conftest import commit, open_runtime, turn

SKILL = "---\nname: brew\ndescription: How to brew tea in the kettle\n---\nBoil water.\n"


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[MemoryRuntime]:
    with open_runtime(tmp_path / "b.db") as opened:
        yield opened


def as_panel(memory: MemoryRuntime, owner: str = "owner-a") -> MemoryRuntime:
    """A principal that is no operator, on the same store."""
    caller = Caller("panel", "principal", OPERATOR_CAPABILITIES, ("host_ui",), "in_process", owner)
    return MemoryRuntime(Embedded(memory._opened._opened, caller, WireScope(owner_id=owner)))


def test_the_last_steps_stand_there_the_newest_first_with_ids_alone(memory: MemoryRuntime) -> None:
    commit(memory, turn("t1", "the kettle is on"))
    first = memory.recover().lifecycle
    second = memory.create_snapshot(label="zqlabelqz").lifecycle
    assert first is not None and second is not None
    actions = memory.inspect().operator_actions
    assert [(each.event_id, each.event) for each in actions] == [
        (second.event_id, "snapshot_created"), (first.event_id, "recovered"),
    ]  # fmt: skip
    assert "zqlabelqz" not in repr(actions)


def test_the_daemon_s_own_steps_are_for_operators(memory: MemoryRuntime) -> None:
    memory.recover()
    panel = as_panel(memory).inspect()
    assert memory.inspect().operator_actions and panel.operator_actions == ()
    assert panel.store.path is None and memory.inspect().store.path is not None


def test_no_more_than_the_last_twenty_steps_are_shown(memory: MemoryRuntime) -> None:
    for _ in range(25):
        memory.prune_snapshots(keep=0)
        memory.create_snapshot()
    actions = memory.inspect().operator_actions
    assert len(actions) == 20
    ids = [each.event_id for each in actions]
    assert ids == sorted(ids, reverse=True)


def test_the_capabilities_are_the_caller_s_own(memory: MemoryRuntime) -> None:
    report = memory.inspect()
    assert report.capabilities == memory.capabilities().capabilities
    named = {name for each in report.capabilities.values() for name in each.operations}
    assert named == {row.name for row in OPERATIONS if row.capability}
    panel = as_panel(memory).inspect()
    assert not panel.capabilities["private.read"].visible


def test_what_waits_to_be_judged_is_counted(memory: MemoryRuntime) -> None:
    candidate = {"candidate_id": "c", "authority": "assistant_claimed", "target": "long_term",
                 "privacy": "shared_with_subject", "content": "zqwaitingqz", "topic": "t"}  # fmt: skip
    memory.write(kind="candidates", candidates=[candidate])
    waiting = memory.inspect().deferred.waiting
    assert [(each.reason, each.count) for each in waiting] == [("needs_assertion", 1)]
    assert "zqwaitingqz" not in repr(memory.inspect())
    other = as_panel(memory, "owner-b").inspect()
    assert other.deferred.waiting == () and other.counts.waiting_candidates == 0


def test_a_query_shows_how_recall_and_projection_answer_it(memory: MemoryRuntime) -> None:
    commit(memory, turn("t1", "the kettle is on"))
    assert memory.inspect().recall is None
    report = memory.inspect(query="kettle", system_max_len=500)
    assert report.recall is not None and report.recall.candidates >= 1
    assert [hit.excerpt for hit in report.recall_hits] == ["the kettle is on"]
    assert report.projection is not None and 0 < report.projection.characters <= 500


def test_registries_and_mounted_skills_are_reported_but_not_in_the_mode_safe(tmp_path: Path) -> None:
    folder = tmp_path / "skills" / "brew"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(SKILL)
    builder = MemoryRuntime.builder().store(str(tmp_path / "b.db")).profile("dev-full")
    with builder.agent_skill_dirs([str(folder.parent)]).open() as memory:
        tool = {"tool_id": "kettle", "title": "Kettle", "summary": "boils", "schema_fingerprint": "f1"}
        memory.upsert_agent_tool_registry(registry_id="host", fingerprint="f", scope="global", tools=[tool])
        report = memory.inspect(query="brew kettle")
        assert (report.agent_skills.skills, report.tool_registries.registries) == (1, 1)
        assert report.tool_registries.tools == 1
        assert "agent_skill" in {hit.plane for hit in report.recall_hits}
        safe = memory.inspect(query="brew kettle", mode_input={"mode": "safe"})
        assert (safe.agent_skills.skills, safe.agent_skills.mounts) == (0, ())
        assert "agent_skill" not in {hit.plane for hit in safe.recall_hits}
        assert safe.runtime.mode == "safe" and safe.tool_registries.registries == 1


def test_the_store_is_told_as_it_is(memory: MemoryRuntime) -> None:
    before = memory.inspect()
    commit(memory, turn("t1", "x" * 100_000))
    after = memory.inspect()
    assert after.store.bytes == after.store.pages * 4096 > before.store.bytes
    assert after.event_log.rows == before.event_log.rows + 1 and after.event_log.head != before.event_log.head
    assert (after.runtime.mode, after.runtime.task, after.runtime.replica_horizon) == ("normal", None, None)
    assert after.store.wal_bytes > 0
