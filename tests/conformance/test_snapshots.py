"""Snapshots of the whole store, through every door. Other owners of the same store go back with it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.building import CONVERSATION, contents, replay, talk, turn
from tests.conformance.conftest import OneStore, running_daemon
from tests.conformance.doors import Daemon, Door, InProcess


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    """A daemon of this module's own: what others prepare would go with a restore, and their snapshots be counted."""
    with running_daemon() as running:
        yield running


@pytest.fixture
def one_store(tmp_path: Path) -> Iterator[OneStore]:
    """A store of each case's own, for the same reasons."""
    store = OneStore(tmp_path / "one.db")
    yield store
    store.opened.store.close()


def made(door: Door, **more: str) -> str:
    """The id of a new snapshot."""
    report = door.call("snapshot.create", dict(more))
    assert report["lifecycle"]["changed"] and report["lifecycle"]["event_id"] > 0
    return report["snapshot"]["snapshot_id"]


def test_a_snapshot_says_what_it_holds(door: Door) -> None:
    door.prepare("transcript.commit", talk(turn("t1", "the kettle is on")))
    report = door.call("snapshot.create", {"label": "before the move"})
    snapshot = report["snapshot"]
    assert (snapshot["label"], snapshot["own"], report["restarts"]) == ("before the move", True, 0)
    assert snapshot["counts"]["turns"] >= 1 and snapshot["event_log_rows"] >= 1
    listed = door.call("snapshot.list")
    assert listed["snapshots"][0] == snapshot
    assert listed["total"] == len(listed["snapshots"]) and listed["broken"] == []
    checked = door.call("snapshot.verify", {"snapshot_id": snapshot["snapshot_id"]})
    assert (checked["valid"], checked["reasons"], checked["snapshot"]) == (True, [], snapshot)
    assert checked["checked"]["event_log"] == snapshot["event_log_rows"]
    assert not checked["lifecycle"]["changed"]


def test_a_restore_goes_back_and_goes_on(door: Door) -> None:
    door.prepare("transcript.commit", talk(turn("t1", "kept")))
    snapshot_id = made(door)
    door.prepare("transcript.commit", talk(turn("t2", "written since")))
    would = door.call("snapshot.restore", {"snapshot_id": snapshot_id, "dry_run": True})
    assert (would["changed"], would["kept_as"]) == (False, None)
    assert len(contents(replay(door))) == 2
    done = door.call("snapshot.restore", {"snapshot_id": snapshot_id})
    assert done["changed"] and done["events_behind"] == would["events_behind"] > 0
    assert done["kept_as"].endswith(f".before-{snapshot_id}") and done["identity"] == "usable"
    assert contents(replay(door)) == ["kept"]
    door.call("transcript.commit", talk(turn("t3", "written after")))
    assert contents(replay(door)) == ["kept", "written after"]
    assert door.call("memory.recall", {"query": "written", "conversation": CONVERSATION})["hits"]
    assert door.call("store.verify")["clean"]
    aside = door.call("snapshot.list")["replaced"]
    assert [each["snapshot_id"] for each in aside] == [snapshot_id]
    again = door.refused("conflict", "snapshot.restore", {"snapshot_id": snapshot_id})
    assert "prune" in again.hint
    pruned = door.call("snapshot.prune", {"keep": 0, "replaced": True})
    assert snapshot_id in pruned["removed"] and pruned["replaced"] == 1 and pruned["freed_bytes"] > 0
    assert door.call("snapshot.list")["replaced"] == []


def test_pruning_keeps_the_newest(door: Door) -> None:
    ids = [made(door) for _ in range(3)]
    would = door.call("snapshot.prune", {"keep": 1, "dry_run": True})
    assert would["kept"] == [ids[2]] and set(ids[:2]) <= set(would["removed"])
    assert not would["lifecycle"]["changed"]
    done = door.call("snapshot.prune", {"keep": 1})
    assert done["removed"] == would["removed"] and done["lifecycle"]["changed"]
    assert [each["snapshot_id"] for each in door.call("snapshot.list")["snapshots"]] == [ids[2]]
    assert not door.call("snapshot.prune", {"keep": 1})["lifecycle"]["changed"]


def test_pages_of_snapshots_have_no_gap(door: Door) -> None:
    ids = [made(door) for _ in range(3)]
    first = door.call("snapshot.list", {"limit": 2})
    assert first["has_more"] and first["total"] >= 3
    second = door.call("snapshot.list", {"limit": 2, "cursor": first["next_cursor"]})
    seen = [each["snapshot_id"] for each in (*first["snapshots"], *second["snapshots"])]
    assert seen[:3] == ids[::-1]


@pytest.mark.parametrize("name", ["s-0123456789abcdef", "../../etc/passwd", "s-0123456789abcdef/x", "nothing"])
def test_a_snapshot_that_is_not_there_is_not_found(door: Door, name: str) -> None:
    for op in ("snapshot.verify", "snapshot.restore"):
        told = door.refused("not_found", op, {"snapshot_id": name})
        assert "snapshot list" in told.hint


def test_a_snapshot_is_made_once_for_one_idempotency_key(door: Door) -> None:
    first = door.ask("snapshot.create", {"label": "once"}, idempotency_key="k-snapshot")
    second = door.ask("snapshot.create", {"label": "once"}, idempotency_key="k-snapshot")
    assert second.report == first.report and second.repeated in (True, None)
    told = door.refused("conflict", "snapshot.create", {"label": "twice"}, idempotency_key="k-snapshot")
    assert "idempotency" in told.message


def test_a_store_in_memory_has_no_snapshots(in_process: InProcess) -> None:
    from beetle import MemoryRuntime
    from beetle.contracts.errors import InvalidRequest

    with MemoryRuntime.open(profile="dev-full", backend="in-memory") as memory:
        for ask in (
            memory.create_snapshot,
            memory.list_snapshots,
            lambda: memory.verify_snapshot(snapshot_id="s-0123456789abcdef"),
            lambda: memory.restore_snapshot(snapshot_id="s-0123456789abcdef"),
            lambda: memory.prune_snapshots(keep=0),
        ):
            with pytest.raises(InvalidRequest) as refused:
                ask()
            assert "export_space" in refused.value.hint
