"""The overview shows what the daemon says, and follows it."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from msgspec.structs import replace

from beetle.client import Client
from beetle.contracts.common import Report
from beetle.contracts.envelope import DeviceAuth
from beetle.contracts.maintain import JobCount
from beetle.contracts.memory import IdentityState, MemoryInspectionReport
from beetle.contracts.progress import OnProgress
from beetle_tui.activity import BARS, Activity
from beetle_tui.panels import Facts
from beetle_tui.screens.log import Log
from beetle_tui.screens.overview import NOT_SHOWN, Overview, Remark, Seen, remarks
from beetle_tui.source import DaemonSource
from tests.forked import Daemon
from tests.tui.showing import PROFILE, Shown, at, commit, opened, running, show, turn

LABELS = ("Writes", "Recalls", "Slowest", "RSS", "WAL", "Disk")


@contextmanager
def workshop() -> Iterator[Daemon]:
    """A daemon that two turns were committed to; one of them is masked."""
    with running() as found:
        with found.client() as client:
            commit(client, turn(1), turn(2))
            client.request_transcript_lifecycle(
                conversation={"conversation_id": "workshop"}, action="mask", turn_ids=["t1"], reason="a test"
            )
        yield found


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with workshop() as found:
        yield found


@pytest.fixture
def untouched() -> Iterator[Daemon]:
    """One that no other test asked anything."""
    with workshop() as found:
        yield found


def test_every_figure_is_the_daemons_own(untouched: Daemon) -> None:
    daemon = untouched
    with daemon.client() as client:
        seen, told = client.inspect(), client.hello()

    async def look(shown: Shown) -> None:
        await shown.until_shown("live, read")
        assert f"{told.server} {told.version}, pid {daemon.pid}, since 20" in shown.value("Running")
        assert shown.value("Socket") == daemon.socket
        assert shown.value("Profile") == PROFILE
        assert re.fullmatch(r"operator; 0 requests refused; \d of 64 connections", shown.value("Caller"))
        assert shown.value("Path") == daemon.store
        assert shown.value("Size").endswith(f"(under 1%), {seen.store.backend}, schema {seen.store.schema}")
        counts = {
            "conversations": "1", "turns": "2", "messages": "2", "masked, deleted": "1, 0", "runtime skills": "0",
            "their revisions": "0", "refs to evidence": "0", "event log rows": str(seen.event_log.rows), "facts": "0",
            "stale, superseded": "0, 0", "deleted facts": "0", "to be judged": "0",
        }  # fmt: skip
        assert {label: shown.value(label) for label in counts} == counts
        assert {each for each in LABELS if not shown.value(each)} == set()
        assert "Nothing." in shown.text

    show(at(daemon), look)


def test_what_another_client_commits_is_shown_by_itself(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        await shown.until_shown("live, read")
        before = int(shown.value("turns").replace(",", ""))
        with daemon.client() as client:
            commit(client, turn(3), turn(4))
        await shown.until(lambda: shown.value("turns") == f"{before + 2:,}")
        assert shown.value("messages") == f"{before + 2:,}"

    show(at(daemon), look)


def test_a_recall_of_another_client_is_shown_by_itself_though_it_raises_no_event(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        await shown.until_shown("live, read")
        with daemon.client() as client:
            before = recalls(client)
            client.recall(query="loud pump")
            client.recall(query="pump")
        panel = shown.console.screen.query_one(Activity)
        await shown.until(lambda: float(shown.value("Recalls").partition("/s")[0]) > 0)
        await shown.until(lambda: any("p50" in line.plain for line in panel.lines(120)))
        # When it has ended, that is shown as well.
        await shown.until(lambda: shown.value("Recalls").startswith("0.0/s"))
        with daemon.client() as client:
            assert recalls(client) == before + 2

    show(at(daemon), look)


def recalls(client: Client) -> int:
    metrics = client.console_overview().metrics
    assert metrics is not None
    return sum(each.calls for each in metrics.operations if each.operation == "memory.recall")


def overview_of(shown: Shown) -> Overview:
    assert isinstance(shown.console.screen, Overview)
    return shown.console.screen


def test_a_look_in_which_nobody_has_asked_anything_leaves_the_screen_as_it_is(daemon: Daemon) -> None:
    source = Counting(daemon.client())

    async def look(shown: Shown) -> None:
        await shown.until_shown("live, read")
        await shown.until(lambda: overview_of(shown).filled)
        asked = source.asked
        assert not await overview_of(shown)._look()
        assert not await overview_of(shown)._look()
        await shown.pilot.pause()
        assert source.asked == asked

    show(source, look)


def test_bars_are_plain_letters_where_the_terminals_own_colours_are_used(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        await shown.until_shown("live, read")
        assert "█" in shown.text
        shown.console.theme = "ansi"
        await shown.until(lambda: not set(BARS) & set(shown.text))
        assert "#" in shown.value("RSS")

    show(at(daemon), look)


def refusals(client: Client) -> list[int]:
    """Places in the event log where a question of the overview was refused."""
    rows = client.read_event_log(operation="memory.inspect").rows
    return [row.seq for row in rows if row.event == "refused"]


def test_a_device_sees_what_is_its_own_and_is_told_of_the_rest(daemon: Daemon) -> None:
    with daemon.client() as client:
        key = client.add_device(label="Panel", device_id="panel", capabilities=("console",)).appKeyOnce
        before = refusals(client)
    assert key is not None

    async def look(shown: Shown) -> None:
        await shown.until_shown("not live, read")
        assert shown.value("Caller") == "device:panel"
        assert shown.value("Path") == NOT_SHOWN
        assert int(shown.value("turns").replace(",", "")) >= 2
        assert "What the daemon does" in shown.text and not shown.value("RSS")
        with daemon.client() as client:
            assert refusals(client) == before

    show(at(daemon, auth=DeviceAuth(device_id="panel", app_key=key)), look)


def test_who_may_see_nothing_is_told_why_and_still_sees_who_answers(daemon: Daemon) -> None:
    with daemon.client() as client:
        key = client.add_device(label="Bridge", device_id="bridge", capabilities=("recall",)).appKeyOnce
    assert key is not None

    async def look(shown: Shown) -> None:
        await shown.until_shown("Could not read: forbidden: memory.inspect needs the capability 'inspect'")
        assert shown.value("Profile") == PROFILE

    show(at(daemon, auth=DeviceAuth(device_id="bridge", app_key=key)), look)


class Counting(DaemonSource):
    """A source that counts what it is asked."""

    asked = 0

    def call(self, operation: str, arguments: object = None, on_progress: OnProgress | None = None) -> Report:
        self.asked += operation == "memory.inspect"
        return super().call(operation, arguments, on_progress)


def test_a_thousand_changes_are_read_once_a_second(daemon: Daemon, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("beetle_tui.area.SECONDS_BETWEEN_READS", 1.0)
    source = Counting(daemon.client())

    async def look(shown: Shown) -> None:
        await shown.until_shown("live, read")
        began, asked = time.monotonic(), source.asked
        with daemon.client() as client:
            before = client.inspect().counts.turns
            for number in range(200):
                commit(client, *(turn(1000 + number * 5 + each) for each in range(5)))
                await shown.pilot.pause()
        await shown.until(lambda: shown.value("turns") == f"{before + 1000:,}")
        assert source.asked - asked <= time.monotonic() - began + 2

    show(source, look)


@pytest.mark.parametrize("size", [(80, 24), (160, 48), (60, 16)])
def test_all_of_it_is_there_in_every_size(daemon: Daemon, size: tuple[int, int]) -> None:
    async def look(shown: Shown) -> None:
        await shown.until_shown("live, read")
        await shown.until(lambda: daemon.socket in re.sub(r"[\s│▁▂▃▄▅▆▇█]", "", shown.text))  # it may take two lines
        assert len(shown.lines) == size[1]
        await shown.press("end")
        await shown.until_shown("Needs a hand")
        await shown.press("home")
        await shown.until_shown("Daemon and store")
        assert max(map(len, shown.lines)) <= size[0]

    show(at(daemon), look, size=size)


def test_all_of_it_fits_on_the_usual_screen_without_scrolling(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        await shown.until_shown("live, read")
        assert shown.console.screen.query_one("#body").max_scroll_y == 0

    show(at(daemon), look, size=(80, 24))


def test_a_store_without_a_daemon_is_opened_and_let_go(tmp_path) -> None:
    path = str(tmp_path / "own.db")

    async def look(shown: Shown) -> None:
        await shown.until_shown("no daemon, read")
        assert shown.value("Running").startswith("no daemon: this console (beetle ")
        assert shown.value("Path") == path or path.startswith(shown.value("Path"))
        assert shown.value("turns") == "0"
        await shown.press("r")
        await shown.until_shown("no daemon, read")

    show(opened(path), look)
    opened(path).close()


def test_a_path_cannot_drive_the_terminal_and_is_no_markup(tmp_path) -> None:
    name = "a\x1b[31m[bold red]b[/]\u202ec\n.db"

    async def look(shown: Shown) -> None:
        await shown.until_shown("no daemon, read")
        lines = [line.plain for line in shown.console.screen.query_one("#runs", Facts).lines(1000)]
        assert lines[3].endswith(r"/a\x1b[31m[bold red]b[/]\u202ec\n.db")
        assert r"\x1b[31m[bold" in shown.text
        assert not set(shown.text) & set("\x1b\u202e")

    show(opened(str(tmp_path / name)), look, size=(240, 48))


def report(daemon: Daemon, **store: object) -> Seen:
    """Real reports with another state of the store."""
    with daemon.client() as client:
        inspected = client.inspect()
        log = client.read_event_log(newest_first=True)
        told, overview = client.hello(), client.console_overview()
    return Seen(told, overview, replace(inspected, store=replace(inspected.store, **store)), log)


def told(seen: Seen, faults: tuple[str, ...] = ()) -> list[str]:
    return [each.text for each in remarks(seen, faults)]


def inspected(seen: Seen) -> MemoryInspectionReport:
    assert seen.inspected is not None
    return seen.inspected


def test_findings_are_text_and_stand_in_for_nothing(daemon: Daemon) -> None:
    hostile = "the disk \x1b]0;owned\x07 has [blink]0[/blink] bytes left, says " + "x" * 90
    seen = report(daemon, pending_erasures=2)
    found = inspected(seen)
    seen = seen._replace(inspected=replace(found, operator=replace(found.operator, findings=(hostile,))))

    async def look(shown: Shown) -> None:
        await shown.until_shown("live, read")
        overview_of(shown)._show(seen)
        await shown.until_shown(r"! the disk \x1b]0;owned\x07 has", "[blink]0[/blink]")
        assert "! 2 erasures pending" in shown.text
        assert "Nothing." not in shown.text
        assert "\x1b" not in shown.text and "\x07" not in shown.text

    show(at(daemon), look, size=(160, 48))


def test_what_needs_a_hand_names_the_key_that_goes_there(daemon: Daemon) -> None:
    seen = report(daemon)
    assert seen.log is not None
    seen = seen._replace(log=replace(seen.log, broken=(3, 1204), verified=False))

    async def look(shown: Shown) -> None:
        await shown.until_shown("live, read")
        overview_of(shown)._show(seen)
        await shown.until_shown("! the event log is broken at row 3, 1,204: press 7 (Log)")
        await shown.press("7")
        await shown.until(lambda: isinstance(shown.console.screen, Log))

    show(at(daemon), look, size=(160, 48))


def test_a_store_at_its_ceiling_wants_a_hand(daemon: Daemon) -> None:
    assert "at its ceiling" in " ".join(told(report(daemon, bytes=1000, ceiling_bytes=1000)))
    assert told(report(daemon, bytes=900, ceiling_bytes=1000)) == [
        "the store is 90% full: at its ceiling it takes nothing more"
    ]
    assert told(report(daemon, bytes=899, ceiling_bytes=1000)) == []


def test_an_identity_that_cannot_be_used_wants_a_hand(daemon: Daemon) -> None:
    seen = report(daemon)
    assert told(seen) == []
    lost = IdentityState(state="missing", problem="the key file k is not there", advice="put k back")
    found = inspected(seen)
    seen = seen._replace(inspected=replace(found, operator=replace(found.operator, identity=lost)))
    assert told(seen) == ["the key file k is not there: put k back"]


def test_little_room_and_little_memory_want_a_hand(daemon: Daemon) -> None:
    seen = report(daemon)
    overview = seen.overview
    assert overview is not None and overview.system is not None
    storage = replace(overview.storage, disk_total_bytes=10**11, disk_free_bytes=10**9)
    system = replace(overview.system, process_rss_bytes=95 * 10**6, memory_limit_bytes=100 * 10**6)
    assert told(seen._replace(overview=replace(overview, storage=storage, system=system))) == [
        "1.0 GB are left on the store's disk, of 100.0 GB",
        "the daemon takes 95% of the 100.0 MB that it may have",
    ]


def test_what_waits_and_what_a_verification_found_want_a_hand(daemon: Daemon) -> None:
    seen = report(daemon)
    found = inspected(seen)
    # More jobs than the report lists one by one, and one that is done.
    counted = (
        JobCount(kind="maintain", state="waiting", reason=None, count=70),
        JobCount(kind="maintain", state="leased", reason=None, count=1),
        JobCount(kind="maintain", state="done", reason=None, count=5),
    )
    waits = replace(found.counts, waiting_candidates=3)
    inspected_now = replace(found, counts=waits, deferred=replace(found.deferred, jobs=counted))
    assert list(remarks(seen._replace(inspected=inspected_now), ("pages 7: torn",))) == [
        Remark("the last verification found 1 fault", "log", "report"),
        Remark("71 jobs deferred", "memory", "Waiting"),
        Remark("3 candidates wait to be judged", "memory", "Waiting"),
    ]


def test_a_long_value_goes_on_below_and_loses_nothing(daemon: Daemon) -> None:
    path = "/var/lib/" + "deep/" * 40 + "beetle.db"
    seen = report(daemon, path=path)

    async def look(shown: Shown) -> None:
        await shown.until_shown("live, read")
        panel = shown.console.screen.query_one("#runs", Facts)
        panel.show(overview_of(shown)._runs(seen))
        lines = [line.plain for line in panel.lines(76)]
        assert "".join(line[9:] for line in lines[4:-1]) == path
        assert all(len(line) <= 76 for line in lines)

    show(at(daemon), look)
