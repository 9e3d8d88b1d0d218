"""The log area: rows as they come, what they are filtered by, and what the chain says of itself."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import apsw
import pytest
from textual.screen import Screen

from beetle.contracts.common import Report
from beetle.contracts.envelope import DeviceAuth
from beetle.contracts.errors import ServicesUnavailable
from beetle.contracts.progress import OnProgress
from beetle_tui.filter import FilterBar
from beetle_tui.log_filter import FilterNotUnderstood, LogFilter, read_filter
from beetle_tui.log_rows import Entry
from beetle_tui.rows import Rows
from beetle_tui.screens.log import Log
from beetle_tui.screens.overview import Overview
from beetle_tui.source import DaemonSource
from beetle_tui.split import Detail
from beetle_tui.table import Table
from tests.forked import Daemon
from tests.tui.showing import Shown, at, commit, running, show, turn

NOW = datetime(2026, 3, 2, 8, 12, tzinfo=UTC)


@pytest.fixture
def daemon() -> Iterator[Daemon]:
    with running() as found:
        with found.client() as client:
            commit(client, turn(1))
            client.add_device(label="台所 \u202e[b]x[/b] " + "y" * 200, device_id="kitchen", capabilities=("recall",))
        yield found


async def opened_log(shown: Shown) -> Log:
    await shown.until_shown("live, read")
    await shown.press("7")
    await shown.until_shown("chain ok")
    assert isinstance(shown.console.screen, Log)
    return shown.console.screen


def rows_of(screen: Screen[Any]) -> Rows[Entry]:
    rows: Rows[Entry] | None = screen.query_one(Table).rows
    assert rows is not None
    return rows


def numbers(shown: Shown) -> list[int]:
    found = [line[1:].split()[0] for line in shown.lines if "  ok  " in line or " BROKEN " in line]
    return [int(each.replace(",", "")) for each in found]


def test_the_newest_rows_stand_first_and_newer_ones_come_by_themselves(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        await opened_log(shown)
        before = numbers(shown)
        assert before == [3, 2, 1]
        with daemon.client() as client:
            commit(client, turn(2))
        await shown.until(lambda: numbers(shown) == [4, *before])
        assert "1 of 4 rows; chain ok for the 4 read" in shown.text

    show(at(daemon), look)


def test_a_chosen_row_stays_where_it_is_while_newer_ones_come(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        await opened_log(shown)
        await shown.press("down")
        with daemon.client() as client:
            commit(client, turn(2))
            commit(client, turn(3))
        await shown.until_shown("2 newer: n")
        assert numbers(shown) == [3, 2, 1]
        assert "Row 2" in shown.text
        await shown.press("n")
        await shown.until(lambda: numbers(shown) == [5, 4, 3, 2, 1])
        assert "newer" not in shown.text
        await shown.press("down")
        with daemon.client() as client:
            commit(client, turn(4))
        await shown.until_shown("1 newer: n")
        await shown.press("g")  # at the top, they come
        await shown.until(lambda: numbers(shown) == [6, 5, 4, 3, 2, 1])

    show(at(daemon), look)


def test_a_row_is_shown_whole_beside_the_list(daemon: Daemon) -> None:
    with daemon.client() as client:
        row = client.read_event_log(newest_first=True, limit=1).rows[0]

    async def look(shown: Shown) -> None:
        await opened_log(shown)
        await shown.until_shown(row.hash, row.at, "device added", "device_id", "kitchen", "follows, ok")
        await shown.press("y")
        await shown.until_shown("handed to the terminal's clipboard")
        assert json.loads(shown.console.clipboard)["hash"] == row.hash

    show(at(daemon), look, size=(160, 48))


@pytest.mark.parametrize("size", [(80, 24), (60, 16)])
def test_enter_goes_to_the_detail_and_esc_back_to_the_list(daemon: Daemon, size: tuple[int, int]) -> None:
    async def look(shown: Shown) -> None:
        screen = await opened_log(shown)
        await shown.press("enter")
        await shown.until(lambda: screen.query_one(Detail).has_focus)
        await shown.until_shown("Operation")
        await shown.press("end")
        await shown.until_shown("owner_id")
        await shown.press("escape")
        await shown.until(lambda: screen.query_one(Table).has_focus)
        assert max(map(len, shown.lines)) <= size[0]

    show(at(daemon), look, size=size)


def test_typed_words_filter_the_rows_and_esc_shows_all_again(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        await opened_log(shown)
        await shown.press("slash", *"device", "enter")
        await shown.until(lambda: numbers(shown) == [3])
        with daemon.client() as client:  # the filter holds for what comes
            commit(client, turn(2))
            client.update_device(device_id="kitchen", label="Kitchen")
        await shown.until(lambda: numbers(shown) == [5, 3])
        await shown.press("slash")
        await shown.press("escape")
        await shown.until(lambda: numbers(shown) == [5, 4, 3, 2, 1])

    show(at(daemon), look)


def test_a_filter_that_finds_nothing_says_what_would_be_there(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        screen = await opened_log(shown)
        screen.query_one(FilterBar).set_text("by:nobody since:1h")
        await shown.until_shown("No row: each change and each refusal leaves one")

    show(at(daemon), look)


def test_a_filter_that_is_not_understood_is_told_and_changes_nothing(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        screen = await opened_log(shown)
        screen.query_one(FilterBar).set_text("colour:red")
        await shown.until_shown("invalid_request: the filter 'colour:red': rows are not filtered by 'colour'")
        assert numbers(shown) == [3, 2, 1]
        screen.query_one(FilterBar).set_text("x" * 65)
        await shown.until_shown("invalid_request:", "topics")

    show(at(daemon), look)


def test_the_order_can_be_turned_around(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        await opened_log(shown)
        await shown.press("s")
        await shown.until(lambda: numbers(shown) == [1, 2, 3])
        await shown.until_shown("oldest first")
        with daemon.client() as client:
            commit(client, turn(2))
        await shown.until_shown("1 newer: n")
        await shown.press("s")
        await shown.until(lambda: numbers(shown) == [4, 3, 2, 1])

    show(at(daemon), look)


def test_rows_far_down_are_read_when_they_are_gone_to(daemon: Daemon) -> None:
    with daemon.client() as client:
        for number in range(400):
            client.update_device(device_id="kitchen", label=f"Kitchen {number}")

    async def look(shown: Shown) -> None:
        screen = await opened_log(shown)
        rows = rows_of(screen)
        assert rows.loaded <= 100
        while rows.loaded < 403:
            before = rows.loaded
            await shown.press("end")
            await shown.until(lambda before=before: rows.loaded > before)
        await shown.press("end")
        await shown.until(lambda: bool(numbers(shown)) and numbers(shown)[-1] == 1)
        await shown.until_shown("403 of 403 rows; chain ok for the 403 read", "daemon_started")

    show(at(daemon), look)


def broken_at(daemon: Daemon, seq: int) -> None:
    daemon.stop()
    connection = apsw.Connection(daemon.store)
    connection.execute("UPDATE event_log SET principal = 'forged' WHERE seq = ?", (seq,))
    connection.close()
    daemon.start()


def test_a_row_that_was_changed_is_said_to_be_broken_in_the_list_the_detail_and_the_overview(daemon: Daemon) -> None:
    broken_at(daemon, 2)

    async def look(shown: Shown) -> None:
        await shown.until_shown("the event log is broken at row")
        await shown.press("7")
        await shown.until_shown("BROKEN at 2")
        screen = shown.console.screen
        rows = rows_of(screen)
        entries = [rows.get(index) for index in range(rows.count)]
        screen.query_one(Table).choose(next(n for n, each in enumerate(entries) if each and each.row.seq == 2))
        await shown.until_shown("BROKEN: it does not follow from the row before it")

    show(at(daemon), look, size=(160, 48))


def test_the_whole_store_is_verified_below_a_dialog_and_what_was_found_stays_known(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        screen = await opened_log(shown)
        await shown.press("v")
        await shown.until_shown("Verified, and clean: ")
        assert screen.shared.faults == ()

    show(at(daemon), look)
    broken_at(daemon, 2)

    async def look_again(shown: Shown) -> None:
        await shown.until_shown("live, read")
        await shown.press("7")
        await shown.until_shown("BROKEN at 2")
        await shown.press("v")
        await shown.until_shown("NOT CLEAN: ")
        await shown.press("1", "r")
        await shown.until_shown("the last verification found")
        assert isinstance(shown.console.screen, Overview)

    show(at(daemon), look_again, size=(110, 30))


def test_who_may_not_read_the_log_is_told_so(daemon: Daemon) -> None:
    with daemon.client() as client:
        key = client.add_device(label="Panel", device_id="panel", capabilities=("console",)).appKeyOnce
    assert key is not None

    async def look(shown: Shown) -> None:
        await shown.until_shown("not live, read")
        await shown.press("7")
        await shown.until_shown("Could not read: forbidden: event_log.read needs the capability 'event_log'")

    show(at(daemon, auth=DeviceAuth(device_id="panel", app_key=key)), look)


def test_a_lost_daemon_leaves_the_rows_and_its_successor_goes_on(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        await opened_log(shown)
        daemon.kill()
        await shown.until_shown("DAEMON LOST")
        assert "chain ok" in shown.text and numbers(shown)[-1] == 1
        daemon.start()
        await shown.press("r")
        await shown.until(lambda: " live " in shown.lines[0] and numbers(shown)[:1] > [3])

    show(at(daemon), look, reconnect=lambda: at(daemon))


class Refusing(DaemonSource):
    """A source that stops reading the log when told to."""

    refuses = False

    def call(self, operation: str, arguments: object = None, on_progress: OnProgress | None = None) -> Report:
        if self.refuses and operation == "event_log.read":
            raise ServicesUnavailable(reason="not now", hint="later")
        return super().call(operation, arguments, on_progress)


def test_a_list_that_cannot_be_begun_leaves_the_one_before(daemon: Daemon) -> None:
    source = Refusing(daemon.client())

    async def look(shown: Shown) -> None:
        await opened_log(shown)
        source.refuses = True
        await shown.press("s")
        await shown.until_shown("services_unavailable: not now")
        assert numbers(shown) == [3, 2, 1]
        source.refuses = False
        await shown.press("s")
        await shown.until(lambda: "services_unavailable" not in shown.text and numbers(shown) == [1, 2, 3])

    show(source, look)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", LogFilter()),
        ("device job", LogFilter(topics=("device", "job"))),
        ("topic:device,job topic:device", LogFilter(topics=("device", "job"))),
        ("device.add by:operator", LogFilter(operation="device.add", principal="operator")),
        ("op:batch principal:device:kitchen", LogFilter(operation="batch", principal="device:kitchen")),
        ("since:90m", LogFilter(since=datetime(2026, 3, 2, 6, 42, tzinfo=UTC))),
        ("since:2d", LogFilter(since=datetime(2026, 2, 28, 8, 12, tzinfo=UTC))),
        ("until:07:30", LogFilter(until=datetime(2026, 3, 2, 7, 30, tzinfo=UTC))),
        ("since:2026-01-31", LogFilter(since=datetime(2026, 1, 31, tzinfo=UTC))),
        ("since:2026-01-31T10:00:01Z", LogFilter(since=datetime(2026, 1, 31, 10, 0, 1, tzinfo=UTC))),
    ],
)
def test_the_words_of_a_filter_say_what_rows_must_be(text: str, found: LogFilter) -> None:
    assert read_filter(text, NOW) == found


@pytest.mark.parametrize("text", ["since:yesterday", "until:25:00", "since:999999d", "topic:", "colour:red", ":x"])
def test_a_word_that_says_nothing_is_refused(text: str) -> None:
    with pytest.raises(FilterNotUnderstood):
        read_filter(text, NOW)
