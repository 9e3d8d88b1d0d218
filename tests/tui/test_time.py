"""Time: from years down to segments and back, bullets to their turns, dates, and what hosts have captured."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.forked import Daemon
from tests.tui.pictured import MIXED
from tests.tui.remembering import PROFILE, go
from tests.tui.showing import Shown, at, exported, show
from tests.tui.timeline import build, milliseconds, remember


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with Daemon(profile=PROFILE) as started:
        with started.client() as client:
            remember(client)
        yield started


async def years(shown: Shown) -> None:
    await go(shown, "time")
    await shown.until_shown("1 of 3 years", "> 2026")


async def to_date(shown: Shown, text: str) -> None:
    await shown.press("d")
    await shown.until_shown("Go to a date")
    await shown.press(*text, "enter")


def test_from_years_down_to_segments_and_back(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        await years(shown)
        await shown.until_shown("pump on line 2", "About it", "toc:year:2026")
        await shown.press("enter")
        await shown.until_shown("1 of 3 months; 2026", "> January 2026")
        await shown.press("enter")
        await shown.until_shown("1 of 1 week; 2026 > January", "> Week 5, 2026", "Keywords")
        await shown.press("enter")
        await shown.until_shown("1 of 2 days; 2026 > January > Week 5", "> January 28, 2026", "The kiln fires clay")
        await shown.press("down", "enter")
        await shown.until_shown("1 of 3 segments; 2026 > January > Week 5 > January 30", "08:12-08:15", "event/pump")
        await shown.press("enter")
        assert shown.console.screen.focused is not None and shown.console.screen.focused.id == "time-page"
        for note in ("of 3 segments", "2 of 2 days", "1 of 1 week", "1 of 3 months", "1 of 3 years"):
            await shown.until_shown(note)
            await shown.press("escape", *(["escape"] if note == "of 3 segments" else []))
        await shown.until_shown("1 of 3 years", "> 2026")

    show(at(daemon), look)


def test_a_bullet_leads_to_its_turn(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        await years(shown)
        await to_date(shown, "2026-01-28")
        await shown.until_shown("1 of 2 days", "- The kiln fires clay")
        await shown.press("tab", "home", "enter")
        await shown.until(lambda: shown.console.current_mode == "transcripts")
        await shown.until_shown("event/kiln", "─ Turn e3", "The kiln fires clay at a high temperature.")

    show(at(daemon), look)


def test_the_events_behind_a_bullet_and_those_around_it(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        await years(shown)
        await to_date(shown, "2026-01-30")
        await shown.until_shown("> January 30, 2026", "- The pump on line 2 is loud again")
        await shown.press("tab", "home")
        while "pump on line 2" not in shown.console.area.copied():
            await shown.press("n")
        await shown.press("o")
        await shown.until_shown(
            "2026-01-30 08:12 user: Good morning.", "  > 2026-01-30 08:13 user: The pump on line 2", "user: Ok.",
            "user: [masked]",
        )  # fmt: skip
        await shown.press("enter")
        await shown.until(lambda: shown.console.current_mode == "transcripts")
        await shown.until_shown("─ Turn e5")

    show(at(daemon), look, size=(100, 40))


DATES = (
    ("2026-01-30", ("2 of 2 days; 2026 > January > Week 5", "> January 30, 2026")),
    ("2024-12-30", ("1 of 1 day; 2025 > January > Week 1", "> December 30, 2024")),
    ("2026-01-28 23:30-02:00", ("Nothing was said in", "nearest day", "> January 28, 2026")),
    ("2026-W08", ("1 of 2 weeks; 2026 > February", "> Week 8, 2026")),
    ("2026-02", ("2 of 3 months; 2026", "> February 2026")),
    ("2023", ("3 of 3 years", "> 2023")),
    ("2026-01-31", ("Nothing was said in 2026-01-31: this is the nearest day", "> January 30, 2026")),
    ("2019-06-01", ("Nothing was said in 2019-06-01: this is the nearest year", "> 2023")),
    ("9999-12-31", ("Nothing was said in 9999-12-31: this is the nearest year", "> 2026")),
    ("0001-01-01", ("Nothing was said in 0001-01-01: this is the nearest year", "> 2023")),
)


def test_a_date_leads_to_its_node_or_the_nearest(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        await years(shown)
        for typed, texts in DATES:
            await to_date(shown, typed)
            await shown.until_shown(*texts)

    show(at(daemon), look)


def test_what_is_no_date_is_said_and_can_be_mended(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        await years(shown)
        await to_date(shown, "2026-02-30")
        for wrong in ("yesterday", "2026-13", "2026-W54", "0000", "0001-01-01T00:00+14:00"):
            await shown.until_shown("That is not a date: type it as 2026-03-02, 2026-W10, 2026-03 or 2026.")
            await shown.press("ctrl+u", *wrong, "enter")
        await shown.until_shown("That is not a date")
        await shown.press("ctrl+u", *"2026-W08", "enter")
        await shown.until_shown("> Week 8, 2026")

    show(at(daemon), look)


def test_a_ref_of_a_node_opens_its_list(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        await years(shown)
        for ref, text in (
            ("toc:month:2026-01", "> January 2026"),
            ("toc:toc%3Aweek%3A2025-W01", "> Week 1, 2025"),
            ("toc:day:2024-12-30", "> December 30, 2024"),
            ("toc:year:1999", "There is no node toc:year:1999."),
        ):
            shown.console.go(ref)
            await shown.until_shown(text)

    show(at(daemon), look)


def test_hosts_their_gaps_and_a_session_of_them(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        await years(shown)
        await shown.press("right")
        await shown.until_shown("1 of 2 hosts", "> claude-code", "100 %", "None: no turn is missing.")
        await shown.press("down")
        await shown.until_shown("> codex", "50.0 %: 5 turns between them never came", "1 delivery, 0 of them",
                                "s2: 5 of 10 missing: 2-3, 6-8")  # fmt: skip
        await shown.press("enter", "n", "enter")
        await shown.until(lambda: shown.console.current_mode == "transcripts")
        await shown.until_shown("codex/s2", "─ Turn turn-9")

    show(at(daemon), look, size=(80, 40))


def test_lists_and_pages_are_exported_whole(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        await years(shown)
        assert [json.loads(each)["node_id"] for each in await exported(shown.console.area)] == [
            f"toc:year:{year}" for year in (2026, 2025, 2023)
        ]
        await shown.press("tab")
        (page,) = await exported(shown.console.area)
        assert json.loads(page)["bullets"]
        await shown.press("escape", "right")
        await shown.until_shown("1 of 2 hosts")
        assert [json.loads(each)["turns"] for each in await exported(shown.console.area)] == [3, 5]

    show(at(daemon), look)


def test_an_empty_store_says_what_would_be_there_and_hostile_texts_drive_nothing() -> None:
    async def nothing(shown: Shown) -> None:
        await go(shown, "time")
        await shown.until_shown("No year", "Nothing stands here yet.")
        await to_date(shown, "2026")
        await shown.until_shown("Nothing was said yet")
        await shown.press("right")
        await shown.until_shown("No host", "No host has captured a turn yet.")

    async def hostile(shown: Shown) -> None:
        await go(shown, "time")
        await shown.until_shown("1 of 1 year")
        await to_date(shown, "2026-01-30")
        await shown.until_shown("> January 30, 2026")
        await shown.press("enter")
        await shown.until_shown("1 of 5 segments")
        for number in range(1, 6):
            await shown.until_shown(f"{number} of 5 segments")
            await shown.press("o")
            await shown.until_shown("> 2026-01-30 10:00 user:")
            assert not set(shown.text) & set("\x1b\x07\x9b\u202e")
            await shown.press("escape", "down")

    with Daemon(profile=PROFILE) as own:
        show(at(own), nothing)
        with own.client() as client:
            for number, text in enumerate((*MIXED, "pump_" * 2_000)):
                said = {"event_id": f"e{number}", "session_id": f"{number}\u202e" + "s" * 200, "text": f"{text} today.",
                        "event_type": "user_message",
                        "timestamp_ms": milliseconds("2026-01-30T10:00:00Z") + number}  # fmt: skip
                client.call("event.ingest", {"event": said})
            build(client)
        show(at(own), hostile)
        show(at(own), hostile, size=(60, 16))
