"""What a person reads in the transcripts area, at a real daemon on a real store."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from rich.cells import cell_len

from beetle.client import Client
from beetle.contracts.common import Report
from beetle.contracts.progress import OnProgress
from beetle.contracts.transcript import TranscriptRedactionReportItem
from beetle_tui.evidence import TURNS_READ
from beetle_tui.rows import KEPT_PAGES
from beetle_tui.source import DaemonSource
from beetle_tui.split import Detail
from beetle_tui.turns import read_time, withheld_blocks
from tests.forked import Daemon
from tests.tui.showing import Shown, at, exported, running, show
from tests.tui.talking import (
    WORKSHOP,
    area,
    begin,
    message,
    open_workshop,
    pumps,
    say,
    spoken,
    type_in,
    write_skill,
)

SIZES = ((60, 16), (80, 24), (160, 48))


@pytest.fixture
def daemon() -> Iterator[Daemon]:
    with running() as found:
        yield found


def test_a_person_opens_a_conversation_and_reads_its_latest_turn(daemon: Daemon, client: Client) -> None:
    actor = {"speaker": "Mara", "subject_id": "pump-2", "agent_id": "agent-main", "trigger": "radio"}
    ticket = {"kind": "ticket", "ref_id": "T-7", "relation": "about", "label": "Loud pump"}
    attr = {"key": "mood", "value": "calm"}
    pumps(client, 2)
    say(client, spoken(3, message("m3", "It is\nquiet now.", actor=actor), host_refs=[ticket], attrs=[attr]))

    async def look(shown: Shown) -> None:
        await begin(shown)
        await shown.until_shown("> local/workshop", "Mara", "1 of 1 conversation")
        await shown.press("enter")
        await shown.until_shown(
            "3 of 3 turns", "─ Turn t3", "number 3, 2026-03-03 08:12:00Z", "Mara (user): m3, shared"
        )
        await shown.until_shown("about pump-2, agent agent-main, set off by radio", "It is", "quiet now.")
        await shown.until_shown("ticket T-7 (about): Loud pump; for host_ui", "mood; for host_ui", "calm")
        await shown.press("k")
        await shown.until_shown("2 of 3 turns", "Pump 2 is loud.", "─ Turn t2")
        await shown.press("enter")
        await shown.until(lambda: shown.console.screen.query_one(Detail).has_focus)
        await shown.press("escape", "escape")
        await shown.until_shown("1 of 1 conversation")

    show(at(daemon), look, size=(120, 40))


def test_a_person_reads_the_tools_that_a_turn_called(daemon: Daemon, client: Client) -> None:
    call = {"tool": "valve.state", "call_id": "c1", "arguments": {"line": 2}}
    result = {"call_id": "c1", "tool": "valve.state", "failed": True, "output": {"code": 7}}
    asked = {**message("m1", "", tool_calls=[call]), "role": "assistant"}
    say(client, spoken(1, asked, {**message("m2", "no answer", tool_result=result), "role": "tool"}))

    async def look(shown: Shown) -> None:
        await begin(shown)
        await shown.until_shown("> local/workshop")
        await shown.press("enter")
        await shown.until_shown('> calls valve.state [c1] {"line":2}', "no answer")
        await shown.until_shown('> failure of valve.state [c1] {"code":7}')

    show(at(daemon), look, size=(120, 40))


def test_an_empty_store_says_how_conversations_come(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        await begin(shown)
        await shown.until_shown("Nothing was said yet.", "transcript.commit", "No conversation.")
        await shown.press("f", *"pump", "enter")
        await shown.until_shown("“pump” everywhere, as host_ui finds it", "No message that this view shows")

    show(at(daemon), look)


def test_a_person_goes_round_the_views_and_sees_why_each_thing_is_withheld(daemon: Daemon, client: Client) -> None:
    say(client, spoken(1, message("m1", "in the open"), message("m2", "for me alone", visibility="private")))
    say(client, spoken(2, message("m3", "the soul of it", visibility="soul")))

    async def look(shown: Shown) -> None:
        await open_workshop(shown)
        await shown.until_shown("soul: soul material, for the owner alone", "  - content of m3")
        await shown.press("k")
        await shown.until_shown("in the open", "[private]", "private: private material", "  - content of m2")
        seen = []
        for _ in range(4):
            seen.append(area(shown).view)
            assert "for me alone" not in shown.text
            await shown.press("v")
            await shown.until_shown(f"view {area(shown).view}", "─ Turn t1")
            await shown.until(lambda: "withheld by this view" in shown.text)
        assert seen == ["host_ui", "model_context", "operator_audit", "export"]
        assert area(shown).view == "host_ui", "raw_owner is never asked for"
        await shown.press("v", "v")
        await shown.until_shown("digest_only: this view shows the digest alone", "length 11 characters", "digest ")
        assert "in the open" not in shown.text

    show(at(daemon), look, size=(100, 40))


def test_a_person_jumps_to_a_date(daemon: Daemon, client: Client) -> None:
    pumps(client, 25)

    async def look(shown: Shown) -> None:
        await open_workshop(shown)
        await shown.press("d")
        await shown.until_shown("Go to a date")
        await type_in(shown, "2026-03-07")
        await shown.until_shown("7 of 25 turns", "─ Turn t7")
        await shown.press("d")
        await shown.until_shown("Go to a date")
        await type_in(shown, "2027")
        await shown.until_shown("That is not a time")
        await type_in(shown, "-01")
        await shown.until_shown("No turn of local/workshop is at or after 2027-01.", "7 of 25 turns")

    show(at(daemon), look)


def test_a_person_finds_words_and_opens_the_turn_that_holds_them(daemon: Daemon, client: Client) -> None:
    pumps(client, 25)
    say(client, spoken(1, message("m1", "The valve leaks.")), conversation={"conversation_id": "attic"})

    async def look(shown: Shown) -> None:
        await begin(shown)
        await shown.press("f")
        await shown.until_shown("Search messages")
        await type_in(shown, "leaking valve")
        await shown.until_shown("“leaking valve” everywhere, as host_ui finds it", "local/attic", "The valve leaks.")
        await shown.press("enter")
        await shown.until_shown("local/attic, view host_ui", "1 of 1 turn")
        await shown.press("escape", "escape")
        await shown.until_shown("2 conversations", "local/workshop")
        await shown.press("j", "enter")
        await shown.until_shown("local/workshop, view host_ui", "25 of 25 turns")
        await shown.press("slash")
        await shown.until_shown("Search messages in local/workshop")
        await shown.press(*["backspace"] * 20)
        await type_in(shown, "pump 4")
        await shown.until_shown("“pump 4” in local/workshop", "Pump 4 is loud.")
        await shown.until(lambda: area(shown).table("hits").chosen is not None)
        hit = area(shown).table("hits").chosen
        assert hit is not None
        await shown.press("enter")
        await shown.until_shown(f"{hit.turn_id[1:]} of 25 turns", f"─ Turn {hit.turn_id}")
        await shown.press("escape")
        await shown.until_shown("“pump 4” in local/workshop")

    show(at(daemon), look)


def test_a_view_that_reads_no_content_is_not_searched_through(daemon: Daemon, client: Client) -> None:
    pumps(client)

    async def look(shown: Shown) -> None:
        await begin(shown)
        await shown.press("v", "v")
        await shown.until_shown("view operator_audit")
        await shown.press("f", *"pump", "enter")
        await shown.until_shown("“pump” everywhere, as host_ui finds it", "5 messages")

    show(at(daemon), look)


def test_the_filter_is_the_daemons_own_and_esc_clears_it(daemon: Daemon, client: Client) -> None:
    for number in range(130):
        say(client, spoken(1, message("m1", "x")), conversation={"conversation_id": f"room-{number}"})

    async def look(shown: Shown) -> None:
        await begin(shown)
        await shown.until_shown("local/room-129")
        await shown.press("slash", *"room-7", "enter")
        await shown.until_shown("1 of 11 conversations", "/ room-7")
        await shown.press("G", "enter")
        await shown.until_shown("local/room-7, view host_ui")
        assert "/ room-7" not in shown.lines[-2]
        await shown.press("escape")
        await shown.until_shown("11 of 11 conversations", "/ room-7")
        await shown.press("slash", *["backspace"] * 6, *"nowhere", "enter")
        await shown.until_shown("No id or channel holds “nowhere”")
        await shown.press("escape")
        await shown.until_shown("local/room-129")
        await shown.press("G")
        await shown.until_shown("local/room-29", "101 of ")
        await shown.press("G")
        await shown.until_shown("130 of 130 conversations", "local/room-0")

    show(at(daemon), look)


def test_what_was_derived_leads_to_the_skill_and_a_citation_leads_back(daemon: Daemon, client: Client) -> None:
    pumps(client, 25)
    write_skill(client)

    async def look(shown: Shown) -> None:
        await begin(shown)
        shown.console.go("evidence:local/workshop/t5/m5")
        await shown.until_shown("5 of 25 turns", "─ Turn t5", "Pump 5 is loud.")
        await shown.press("o")
        await shown.until_shown("Derived from it: 1", "> procedural:runtime_skill__quiet/1 cites m5")
        await shown.press("enter")
        await shown.until(lambda: shown.console.current_mode == "skills")
        shown.console.go("evidence:local/workshop/t7")
        await shown.until_shown("7 of 25 turns", "─ Turn t7")
        await shown.press("o")
        await shown.until_shown("Derived from it: 0", "Nothing was derived from turn t7.")
        shown.console.go("evidence:local/workshop/t99")
        await shown.until_shown("not_found: no turn 't99' in this scope")
        shown.console.go("evidence:local/nowhere/t1")
        await shown.until_shown("not_found: no conversation 'local/nowhere' in this scope")

    show(at(daemon), look, size=(80, 30))


class Noting(DaemonSource):
    """A source that notes what it is asked."""

    def __init__(self, client: Client) -> None:
        super().__init__(client)
        self.asked: list[str] = []

    def call(self, operation: str, arguments: object = None, on_progress: OnProgress | None = None) -> Report:
        self.asked.append(operation)
        return super().call(operation, arguments, on_progress)


def test_reading_writes_nothing(daemon: Daemon, client: Client) -> None:
    pumps(client)
    source = Noting(daemon.client())

    async def look(shown: Shown) -> None:
        await open_workshop(shown)
        for key in "kkkjvg":
            await shown.press(key)
        await shown.until_shown("1 of 5 turns", "─ Turn t1", "view model_context")
        assert "transcript.lifecycle" not in source.asked
        await shown.press("o")
        await shown.until_shown("Derived from it: 0")
        assert source.asked.count("transcript.lifecycle") == 1

    show(source, look)


def test_new_turns_come_by_themselves_and_move_nothing(daemon: Daemon, client: Client) -> None:
    pumps(client)

    async def look(shown: Shown) -> None:
        await open_workshop(shown)
        await shown.until_shown("5 of 5 turns")
        say(client, spoken(6, message("m6", "It is quiet.")))
        await shown.until_shown("5 of 6 turns", "It is quiet.", "─ Turn t5")
        client.request_transcript_lifecycle(conversation=WORKSHOP, action="mask", turn_ids=["t5"], reason="a test")
        await shown.until_shown("! [masked]", "5 of 6 turns")

    show(at(daemon), look)


def test_a_long_conversation_opens_at_its_end_and_keeps_little_of_it(daemon: Daemon, client: Client) -> None:
    count = 3000
    for start in range(1, count + 1, 200):
        turns = [
            {"turn_id": f"t{n}", "at": "2026-03-02T08:12:00Z", "messages": [message(f"m{n}", f"Line {n}.")]}
            for n in range(start, start + 200)
        ]
        say(client, *turns)

    async def look(shown: Shown) -> None:
        await open_workshop(shown)
        await shown.until_shown("3,000 of 3,000 turns", "Line 3000.")
        await shown.press("home")
        await shown.until_shown("1 of 3,000 turns", "─ Turn t1 ─", "Line 1.")
        await shown.press("end", *["pageup"] * 40)
        await shown.until(lambda: area(shown).table("turns").chosen is not None)
        rows = area(shown).table("turns").rows
        assert rows is not None and rows.loaded <= KEPT_PAGES * TURNS_READ < count

    show(at(daemon), look)


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_wide_and_long_content_breaks_no_line(daemon: Daemon, client: Client, size: tuple[int, int]) -> None:
    long = ("日本語" * 3000, "word " * 2000, "a" * 10_000)
    strange = ("👩‍👩‍👧 " * 50, "\u05e9\u05dc\u05d5\u05dd \u202e\u05e2 " * 20, "\x1b[31mred\x07", "\ttab\r\nnext")
    actor = {"speaker": "日本語の長い名前の人" * 4}
    texts = (*long, *strange)
    say(client, *(spoken(n, message(f"m{n}", text, actor=actor)) for n, text in enumerate(texts, 1)))

    async def look(shown: Shown) -> None:
        await open_workshop(shown)
        for number in range(len(texts), 0, -1):
            await shown.until_shown(f"{number} of {len(texts)} turns", f"─ Turn t{number}")
            assert all(cell_len(line) <= size[0] for line in shown.lines)
            assert not set(shown.text) & set("\x1b\x07\u202e\t\r")
            assert len(shown.lines) == size[1]
            await shown.press("k")
        await shown.press("enter", "end")
        await shown.until_shown("what was derived from this turn")

    show(at(daemon), look, size=size)


def test_a_lost_daemon_leaves_what_was_read(daemon: Daemon, client: Client) -> None:
    pumps(client)

    def reconnect() -> DaemonSource:
        return at(daemon)

    async def look(shown: Shown) -> None:
        await open_workshop(shown)
        await shown.until_shown("Pump 5 is loud.")
        daemon.kill()
        await shown.until_shown("DAEMON LOST", "The daemon is lost")
        await shown.press("k")
        await shown.until_shown("4 of 5 turns", "Pump 5 is loud.")
        await shown.press("escape", "enter")
        await shown.until_shown("DAEMON LOST")
        daemon.start()
        await shown.press("r")
        await shown.until_shown("live")
        await shown.press("escape", "escape")
        await shown.until_shown("> local/workshop")
        await shown.press("enter")
        await shown.until_shown("5 of 5 turns", "Pump 5 is loud.")

    show(at(daemon, timeout=5), look, reconnect)


def as_principal(daemon: Daemon, grants: str, look: Callable[[Shown], Any]) -> None:
    """Show the console to another user, to whom the configuration grants so much."""
    if os.getuid() != 0:
        pytest.skip("only root can ask as another user")
    daemon.stop()
    config = daemon.folder / "beetle.toml"
    config.write_text(f"[principals.panel]\nuid = 65534\n{grants}\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BEETLE_CONFIG", str(config))
        daemon.start()
    os.chmod(daemon.folder, 0o755)
    os.chmod(daemon.socket, 0o666)
    os.seteuid(65534)
    try:
        show(at(daemon), look)
    finally:
        os.seteuid(0)


def test_a_caller_without_the_capability_is_told_so(daemon: Daemon, client: Client) -> None:
    pumps(client)

    async def look(shown: Shown) -> None:
        await shown.until_shown("live")
        await shown.press("4")
        await shown.until_shown("Could not read: forbidden:", "Hint: ", "r tries again.")
        assert "workshop" not in shown.text

    as_principal(daemon, 'capabilities = ["inspect", "skill"]\nviews = ["host_ui"]', look)


def test_a_caller_sees_through_the_views_that_it_is_allowed(daemon: Daemon, client: Client) -> None:
    pumps(client)

    async def look(shown: Shown) -> None:
        await begin(shown)
        await shown.until_shown("Conversations, view operator_audit", "> local/workshop")
        await shown.press("enter")
        await shown.until_shown("local/workshop, view operator_audit", "[digest_only]")
        await shown.press("v")
        await shown.until_shown("view operator_audit", "[digest_only]")

    as_principal(daemon, 'capabilities = ["inspect", "transcript"]\nviews = ["operator_audit"]', look)


def test_y_copies_the_ref_and_in_the_turn_its_text(daemon: Daemon, client: Client) -> None:
    pumps(client)

    async def look(shown: Shown) -> None:
        await begin(shown)
        await shown.until_shown("> local/workshop")
        await shown.press("y")
        await shown.until(lambda: shown.console.clipboard == "local/workshop")
        await shown.press("enter")
        await shown.until_shown("─ Turn t5")
        await shown.press("y")
        await shown.until(lambda: shown.console.clipboard == "evidence:local/workshop/t5")
        await shown.press("enter", "y")
        await shown.until(lambda: "Pump 5 is loud." in shown.console.clipboard)
        (line,) = await exported(area(shown))
        assert json.loads(line)["turn_id"] == "t5" and "Pump 5 is loud." in line

    show(at(daemon), look)


def test_what_is_withheld_is_listed_by_its_reason() -> None:
    items = [
        TranscriptRedactionReportItem(turn_id="t1", field="content", reason="masked", message_id="m1"),
        TranscriptRedactionReportItem(turn_id="t1", field="host_ref", reason="not_in_view"),
        TranscriptRedactionReportItem(turn_id="t1", field="host_ref", reason="not_in_view"),
        TranscriptRedactionReportItem(turn_id="t1", field="attr", reason="masked", message_id="m1"),
    ]
    assert [each.first + each.text.plain for each in withheld_blocks(items)] == [
        "! masked: it is masked: unmasking shows it again",
        "  - content of m1",
        "  - value of m1",
        "! not_in_view: its own visibility leaves this view out",
        "  - object of the host, 2 times",
    ]


@pytest.mark.parametrize(
    ("typed", "time"),
    [
        ("2026-03-02", datetime(2026, 3, 2, tzinfo=UTC)),
        (" 2026-03 ", datetime(2026, 3, 1, tzinfo=UTC)),
        ("2026-03-02 08:12", datetime(2026, 3, 2, 8, 12, tzinfo=UTC)),
        ("2026-03-02T09:12:00+01:00", datetime(2026, 3, 2, 8, 12, tzinfo=UTC)),
        ("2026", None),
        ("yesterday", None),
        ("", None),
    ],
)
def test_a_time_is_read_as_people_type_it(typed: str, time: datetime | None) -> None:
    assert read_time(typed) == time
