"""The overview shows what the daemon says, and follows it."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from beetle.contracts.common import Report
from beetle.contracts.memory import IdentityState, MemoryInspectionReport
from tests.running import Daemon
from tests.tui.showing import PROFILE, Shown, at, commit, opened, running, show, turn
from tui.panels import Facts, Remarks
from tui.screens.overview import remarks, store_facts
from tui.source import DaemonSource


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with running() as found:
        with found.client() as client:
            commit(client, turn(1), turn(2))
            client.request_transcript_lifecycle(
                conversation={"conversation_id": "workshop"}, action="mask", turn_ids=["t1"], reason="a test"
            )
        yield found


def test_every_figure_is_the_daemons_own(daemon: Daemon) -> None:
    with daemon.client() as client:
        seen, told = client.inspect(), client.hello()

    async def look(shown: Shown) -> None:
        await shown.until_shown("live, read")
        assert f"{told.server} {told.version}, pid {daemon.pid}, since 20" in shown.value("Running")
        assert shown.value("Socket") == daemon.socket
        assert shown.value("Profile") == PROFILE
        assert shown.value("Caller").startswith("operator; 0 requests refused")
        assert shown.value("Path") == daemon.store
        assert f"{seen.store.pages} pages; WAL " in shown.value("Size")
        assert shown.value("Format") == f"{seen.store.backend}, schema {seen.store.schema}"
        assert shown.value("Events") == f"{seen.event_log.rows} rows, head {seen.event_log.head[:16]}"
        counts = {
            "conversations": 1, "turns": 2, "messages": 2, "of them masked": 1, "of them deleted": 0,
            "runtime skills": 0, "revisions": 0, "refs to evidence": 0,
        }  # fmt: skip
        assert {label: shown.value(label) for label in counts} == {k: str(v) for k, v in counts.items()}
        assert "Nothing." in shown.text

    show(at(daemon), look)


def test_what_another_client_commits_is_shown_by_itself(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        await shown.until_shown("live, read")
        before = int(shown.value("turns"))
        with daemon.client() as client:
            commit(client, turn(3), turn(4))
        await shown.until(lambda: shown.value("turns") == str(before + 2))
        assert shown.value("messages") == str(before + 2)

    show(at(daemon), look)


class Counting(DaemonSource):
    """A source that counts what it is asked."""

    asked = 0

    def call(self, operation: str, arguments: object = None) -> Report:
        self.asked += operation == "memory.inspect"
        return super().call(operation, arguments)


def test_a_thousand_changes_are_read_once_a_second(daemon: Daemon) -> None:
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
        await shown.until_shown("live, read", daemon.socket)
        assert len(shown.lines) == size[1]
        assert "q Quit" in shown.lines[-1]
        await shown.press("end")
        await shown.until_shown("refs to evidence")
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
        lines = [line.plain for line in shown.console.screen.query_one("#store", Facts).lines(1000)]
        assert lines[0].endswith(r"/a\x1b[31m[bold red]b[/]\u202ec\n.db")
        assert r"\x1b[31m[bold" in shown.text
        assert not set(shown.text) & set("\x1b\u202e")

    show(opened(str(tmp_path / name)), look, size=(110, 48))


def report(daemon: Daemon, **store: object) -> MemoryInspectionReport:
    """A real report with another state of the store."""
    with daemon.client() as client:
        seen = client.inspect()
    return replace(seen, store=replace(seen.store, **store))


def test_findings_are_text_and_stand_in_for_nothing(daemon: Daemon) -> None:
    hostile = "the disk \x1b]0;owned\x07 has [blink]0[/blink] bytes left, says " + "x" * 90
    seen = report(daemon, pending_erasures=2)
    seen = replace(seen, operator=replace(seen.operator, findings=(hostile,)))

    async def look(shown: Shown) -> None:
        await shown.until_shown("live, read")
        panel = shown.console.screen.query_one("#findings", Remarks)
        panel.show(remarks(seen), "Nothing.")
        await shown.until_shown(r"! the disk \x1b]0;owned\x07 has", "[blink]0[/blink]")
        assert "! 2 erasures pending" in shown.text
        assert "Nothing." not in shown.text
        assert "\x1b" not in shown.text and "\x07" not in shown.text

    show(at(daemon), look, size=(160, 48))


def test_a_store_at_its_ceiling_wants_a_hand(daemon: Daemon) -> None:
    full = report(daemon, bytes=1000, ceiling_bytes=1000)
    assert "at its ceiling" in " ".join(remarks(full))
    assert "1.0 kB of 1.0 kB (100%)" in dict(store_facts(full))["Size"]
    assert "(under 1%)" in dict(store_facts(report(daemon, bytes=0, ceiling_bytes=1000)))["Size"]


def test_an_identity_that_cannot_be_used_wants_a_hand(daemon: Daemon) -> None:
    seen = report(daemon)
    assert list(remarks(seen)) == []
    lost = IdentityState(state="missing", problem="the key file k is not there", advice="put k back")
    seen = replace(seen, operator=replace(seen.operator, identity=lost))
    assert list(remarks(seen)) == ["the key file k is not there: put k back"]


def test_a_path_that_the_caller_may_not_see_is_said_to_be_hidden(daemon: Daemon) -> None:
    assert dict(store_facts(report(daemon, path=None)))["Path"] == "(not shown to this caller)"


def test_a_long_value_goes_on_below_and_loses_nothing(daemon: Daemon) -> None:
    path = "/var/lib/" + "deep/" * 40 + "beetle.db"
    seen = report(daemon, path=path)

    async def look(shown: Shown) -> None:
        await shown.until_shown("live, read")
        panel = shown.console.screen.query_one("#store", Facts)
        panel.show(store_facts(seen))
        lines = [line.plain for line in panel.lines(76)]
        assert "".join(line[9:] for line in lines[:-3]) == path
        assert all(len(line) <= 76 for line in lines)

    show(at(daemon), look)
