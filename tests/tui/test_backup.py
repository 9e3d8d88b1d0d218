"""Backup: snapshots are made, looked through, restored and pruned, each shown first; the replica says how far it is."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from beetle.client import Client
from beetle.contracts.common import Report
from beetle.contracts.memory import MemoryInspectionReport
from beetle.contracts.progress import OnProgress
from beetle.contracts.replication import ReplicationStatusReport
from beetle_tui.app import CHECK_PROFILE
from beetle_tui.dialogs import Ask, Confirm
from beetle_tui.screens.backup import Backup
from beetle_tui.source import DaemonSource
from tests.forked import Daemon
from tests.tui.remembering import PROFILE, device, dialog, go, remembering, typed
from tests.tui.showing import Shown, at, commit, exported, opened, show, turn


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with remembering() as found:
        yield found


@pytest.fixture
def client(daemon: Daemon) -> Iterator[Client]:
    with daemon.client() as found:
        found.prune_snapshots(keep=0, replaced=True)
        yield found


def rows(shown: Shown) -> list[str]:
    """Ids of the list."""
    screen = shown.console.area
    assert isinstance(screen, Backup)
    found = screen.part.table.rows
    return [] if found is None else [found.get(place).snapshot_id for place in range(found.count)]


def test_a_snapshot_is_made_looked_through_and_restored_after_a_dry_run(daemon: Daemon, client: Client) -> None:
    async def look(shown: Shown) -> None:
        await go(shown, "backup")
        await shown.until_shown("No snapshot: a makes one", "one file that holds the whole store")
        await shown.press("a")
        await dialog(shown, Ask)
        await typed(shown, "before the move")
        await shown.press("enter")
        await shown.until_shown("is made:", "1 of 1 copy", "before the move", "by hand", "not looked through")
        (made,) = client.list_snapshots().snapshots
        await shown.press("v")
        await shown.until_shown(f"{made.snapshot_id} is whole", "Z, whole")
        commit(client, turn(90, "Undone."))
        await shown.press("u")
        await dialog(shown, Confirm)
        await shown.until_shown("Restore this snapshot?", "events since are undone", "is set aside whole")
        await shown.press("n")
        await shown.until(lambda: not isinstance(shown.console.screen, Confirm))
        assert client.list_snapshots().replaced == (), "a dry run and a no change nothing"
        await shown.press("u")
        await dialog(shown, Confirm)
        await shown.press("y")
        await shown.until_shown("is the store now", "The store that was there before")
        await shown.press("escape")
        await shown.until_shown("1 of 2 copies", "replaced store")
        assert client.list_snapshots().replaced[0].snapshot_id == made.snapshot_id

    show(at(daemon), look, size=(100, 40))


def test_older_ones_and_replaced_stores_go_after_they_were_named(daemon: Daemon, client: Client) -> None:
    made = [client.create_snapshot(label=label).snapshot.snapshot_id for label in ("one", "two", "three")]
    client.restore_snapshot(snapshot_id=made[0])
    erased = client.request_transcript_lifecycle(
        conversation={"conversation_id": "workshop"}, action="delete_raw", turn_ids=["t0"], reason="test"
    )
    assert erased.replica_horizon is not None

    async def look(shown: Shown) -> None:
        await go(shown, "backup")
        await shown.until_shown("1 of 4 copies", "What was erased", "until they are pruned")
        await shown.press("down")
        await shown.until_shown(f"─ {made[1]}")
        await shown.press("d")
        await shown.until_shown("keep how many?", "With 1 the chosen one is the first that goes")
        await shown.press("enter")
        await dialog(shown, Confirm)
        await shown.until_shown("Remove these for good?", made[0], made[1], "1 snapshot stays")
        await shown.press("n")
        await shown.until_shown("Nothing was removed.")
        await shown.press("enter")
        await dialog(shown, Confirm)
        await shown.press("y")
        await shown.until_shown("removed: 2 snapshots", "2 of 2 copies")
        await shown.until_shown("the store that a restore has replaced")
        await shown.press("v")
        await shown.until_shown("a replaced store is no snapshot")
        await shown.press("d")
        await dialog(shown, Confirm)
        await shown.press("y")
        await shown.until_shown("1 replaced store", "1 of 1 copy")
        assert rows(shown) == [made[2]]
        assert len(await exported(shown.console.area)) == 1

    show(at(daemon), look, size=(100, 40))


def test_a_broken_one_and_one_of_another_store_say_so(daemon: Daemon, client: Client) -> None:
    snapshot = client.create_snapshot(label="cut").snapshot
    folder = client.list_snapshots().folder
    assert folder is not None
    os.truncate(f"{folder}/{snapshot.snapshot_id}.beetle-snapshot", 20_000)

    async def look(shown: Shown) -> None:
        await go(shown, "backup")
        await shown.until_shown("BROKEN: cut short")
        await shown.press("u")
        await shown.until_shown("is no whole snapshot")
        await shown.press("v")
        await shown.until_shown("NOT TO BE TRUSTED: cut short")
        await shown.press("d")
        await shown.until_shown("keep how many?", "Broken files go.")
        await shown.press("ctrl+u", "x", "enter")
        await shown.until_shown("Give a number from 0 to 100,000.")
        await shown.press("ctrl+u", "0", "enter")
        await dialog(shown, Confirm)
        await shown.press("y")
        await shown.until_shown("removed: 1 snapshot", "No snapshot: a makes one")

    show(at(daemon), look, size=(60, 20))


class Replicated(DaemonSource):
    """A daemon that has a replica, which holds something that was erased."""

    status = ReplicationStatusReport(
        state="behind", problem="target", detail="connection refused", hint="see whether the target is up",
        target_kind="sftp", target="sftp://backup@nas/beetle", lag_s=7.25, lag_bytes=120_000, lag_transactions=3,
        txid=9, replicated_txid=6, last_synced_at="2026-03-09T14:05:36.000000Z", restarts=1, retention_h=168,
    )  # fmt: skip

    def call(self, operation: str, arguments: object = None, on_progress: OnProgress | None = None) -> Report:
        if operation == "replication.status":
            return self.status
        report = super().call(operation, arguments, on_progress)
        if isinstance(report, MemoryInspectionReport):
            return replace(report, runtime=replace(report.runtime, replicated_until="2026-03-16T14:05:36.000000Z"))
        return report


class NotAnOperator(Replicated):
    """Nor is it told the figures."""

    status = ReplicationStatusReport(state="behind", problem="target", target_kind="sftp", retention_h=168)


def test_the_replica_says_how_far_it_is_and_until_when_it_holds_what_was_erased(daemon: Daemon, client: Client) -> None:
    del client

    async def look(shown: Shown) -> None:
        await go(shown, "backup")
        await shown.press("right")
        await shown.until_shown("1 of 1 replica", "BEHIND", "7.25 s", "connection refused", "6 of 9")
        await shown.until_shown("120.0 kB in 3 transactions", "earlier states for 168 hours", "Restarts     1")
        await shown.until_shown("In replica   until 2026-03-16 14:05:36Z", "`beetle replica forget`")

    show(Replicated(daemon.client()), look, size=(100, 50))

    async def without_figures(shown: Shown) -> None:
        await go(shown, "backup")
        await shown.press("right")
        await shown.until_shown("1 of 1 replica", "(for operators alone)", "Restarts     -", "Held writes  -")

    show(NotAnOperator(daemon.client()), without_figures, size=(100, 50))


def test_without_a_replica_and_without_leave_the_area_says_so(daemon: Daemon, client: Client, tmp_path) -> None:
    async def none(shown: Shown) -> None:
        await go(shown, "backup")
        await shown.press("left")
        await shown.until_shown("No replica is configured", "[replica]")
        await shown.press("enter", "v", "d", "right")
        await shown.until_shown("No snapshot: a makes one")

    show(at(daemon), none)

    async def refused(shown: Shown) -> None:
        await shown.until_shown("1 Overview")
        await shown.press("0")
        await shown.until_shown("Could not read: forbidden")

    show(at(daemon, auth=device(client, "inspect", "recall")), refused)

    async def own(shown: Shown) -> None:
        await go(shown, "backup")
        await shown.until_shown("No snapshot")
        await shown.press("right")
        await shown.until_shown("No replica is configured")

    show(opened(str(tmp_path / "own.db"), PROFILE), own)


def test_a_store_in_memory_has_no_snapshots_and_says_so() -> None:
    async def look(shown: Shown) -> None:
        await go(shown, "backup")
        await shown.until_shown("A store in memory has no snapshots", "`memory.export_space`")
        await shown.press("a", "v", "d", "u")
        await shown.until_shown("no copy is chosen")
        await shown.press("a")
        await shown.until(lambda: shown.text.count("A store in memory has no snapshots") == 2)
        await shown.press("right")
        await shown.until_shown("No replica is configured")

    show(opened("in-memory", CHECK_PROFILE, "in-memory"), look)
