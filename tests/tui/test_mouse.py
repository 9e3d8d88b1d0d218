"""The mouse, for whoever takes it: a click chooses, a second one opens, the wheel scrolls."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from textual.events import MouseScrollDown, MouseScrollUp
from textual.widget import Widget

from beetle.client import Client
from beetle_tui.json_view import JsonTree, ReportView
from beetle_tui.palette import Choices, Palette
from beetle_tui.screens.recall import Recall
from beetle_tui.sections import Sections
from beetle_tui.table import Table
from tests.forked import Daemon
from tests.tui.remembering import go, learn, memory, part, remembering
from tests.tui.showing import Shown, at, show

FACTS = 40


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with remembering() as found, found.client() as client:
        for number in range(FACTS):
            learn(client, f"The fact with the number {number}.", f"fact {number}")
        yield found


async def click(shown: Shown, widget: Widget, x: int, y: int, times: int = 1) -> None:
    await shown.pilot.click(widget, offset=(x, y), times=times)
    await shown.pilot.pause()


async def turn_wheel(shown: Shown, widget: Widget, notches: int) -> None:
    kind = MouseScrollDown if notches > 0 else MouseScrollUp
    for _ in range(abs(notches)):
        await shown.pilot._post_mouse_events([kind], widget, offset=(2, 1))
    await shown.pilot.pause()


def line_of(shown: Shown, text: str) -> int:
    return next(number for number, line in enumerate(shown.lines) if text in line)


def test_a_click_on_a_row_chooses_it_and_a_double_click_opens_it(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        await go(shown, "memory")
        table, detail = memory(shown).part.table, memory(shown).part.detail
        await shown.until_shown(f"1 of {FACTS} facts")
        await click(shown, table, 10, 3)
        await shown.until_shown(f"4 of {FACTS} facts", f"The fact with the number {FACTS - 4}.", "─ fact 36 (current)")
        assert table.has_focus and not detail.has_focus
        await click(shown, table, 10, 1, times=2)
        await shown.until_shown(f"2 of {FACTS} facts", "━ fact 38 (current)")
        assert detail.has_focus

    show(at(daemon), look)


def test_a_click_below_the_last_row_chooses_nothing(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        await go(shown, "memory")
        await shown.press("slash", *"39", "enter")
        await shown.until_shown("1 of 1 fact;")
        table = memory(shown).part.table
        await click(shown, table, 5, table.size.height - 1)
        assert table.index == 0

    show(at(daemon), look, size=(160, 48))


def test_the_wheel_scrolls_a_list_and_what_is_chosen_stays_in_sight(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        await go(shown, "memory")
        table = memory(shown).part.table
        await shown.until_shown(f"fact {FACTS - 1} ", f"1 of {FACTS} facts")
        await turn_wheel(shown, table, 3)
        await shown.until(lambda: table.scroll_offset.y > 0)
        await shown.until_shown("> current", f"{int(table.scroll_offset.y) + 1} of {FACTS} facts")
        await click(shown, table, 5, 0)
        first = int(table.scroll_offset.y)
        await shown.until_shown(f"{first + 1} of {FACTS} facts")
        await turn_wheel(shown, table, -5)
        await shown.until(lambda: table.scroll_offset.y == 0)

    show(at(daemon), look)


def test_a_click_in_a_page_chooses_its_line_and_a_double_click_goes_where_it_leads(
    daemon: Daemon, client: Client
) -> None:
    learn(
        client, "The flange is bent.", "flange", evidence_refs=["evidence:local/workshop/t1/m1"], authority="operator"
    )

    async def look(shown: Shown) -> None:
        await go(shown, "memory")
        await shown.press("slash", *"flange", "enter")
        await shown.until_shown("1 of 1 fact;", "evidence:local/workshop/t1/m1")
        detail = memory(shown).part.detail
        inside = line_of(shown, "evidence:local/workshop/t1/m1") - detail.region.y
        await click(shown, detail, 5, inside)
        assert detail.has_focus and detail.target == "evidence:local/workshop/t1/m1"
        await shown.until(lambda: detail.region.y < line_of(shown, "cites") - 1)  # it grows when it has the keys
        inside = line_of(shown, "evidence:local/workshop/t1/m1") - detail.region.y
        await click(shown, detail, 5, inside, times=2)
        await shown.until(lambda: shown.console.current_mode == "transcripts")

    show(at(daemon), look)


@pytest.mark.parametrize("name", ["Policies", "Proposals", "Facts"])
def test_a_click_on_the_name_of_a_part_shows_it(daemon: Daemon, name: str) -> None:
    async def look(shown: Shown) -> None:
        await part(shown, "Tools")
        bar = shown.console.screen.query_one(Sections)
        await click(shown, bar, shown.lines[line_of(shown, "Policies  Tools")].index(name), 0)
        await shown.until(lambda: name == memory(shown).part.TITLE)
        await click(shown, bar, bar.size.width - 3, 0)
        assert name == memory(shown).part.TITLE, "what says how to go on is no name"

    show(at(daemon), look)


def test_the_parts_of_skills_and_of_recall_are_clicked_too(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        await go(shown, "skills")
        await click(shown, shown.console.screen.query_one(Sections), 20, 0)
        await shown.until_shown("No Agent Skills.")
        await click(shown, shown.console.screen.query_one(Sections), 20, 0)
        await shown.until_shown("No Agent Skills.")
        await click(shown, shown.console.screen.query_one(Sections), 3, 0)
        await shown.until_shown("No runtime skills yet.")
        await go(shown, "recall")
        area = shown.console.screen
        assert isinstance(area, Recall)
        await click(shown, area.sections, 7, 0)
        await shown.until_shown("The block of a query is shown here.")
        await click(shown, area.sections, 2, 0)
        await shown.until(lambda: area.table.has_focus)

    show(at(daemon), look)


def test_a_line_of_a_report_is_chosen_by_a_click_and_opened_by_a_double_click(daemon: Daemon) -> None:
    value = {"rows": [{"id": number} for number in range(300)], "number": 1.5}

    async def look(shown: Shown) -> None:
        await shown.until_shown("live, read")
        shown.console.push_screen(ReportView("a report", value))
        await shown.until_shown('"rows": [ 300 items ]', '"number": 1.5')
        tree = shown.console.screen.query_one(JsonTree)
        await click(shown, tree, 6, 2)
        await shown.until_shown('>   "number": 1.5')
        await click(shown, tree, 6, 1, times=2)
        await shown.until_shown('>   "rows": [', "{ 1 item }")
        await turn_wheel(shown, tree, 4)
        await shown.until(lambda: tree.scroll_offset.y > 0)
        await turn_wheel(shown, tree, -4)
        await click(shown, tree, 6, 1, times=2)
        await shown.until_shown('>   "rows": [ 300 items ]')

    show(at(daemon), look)


def test_a_command_of_the_palette_is_run_by_a_click_and_the_wheel_goes_through_them(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        await shown.until_shown("live, read")
        await shown.press("ctrl+p")
        await shown.until_shown("> Overview", "1 of ")
        choices = shown.console.screen.query_one(Choices)
        await turn_wheel(shown, choices, 2)
        await shown.until_shown("> Devices", "3 of ")
        await click(shown, choices, 8, line_of(shown, "  Memory ") - choices.region.y)
        await shown.until(lambda: shown.console.current_mode == "memory")
        assert not isinstance(shown.console.screen, Palette)

    show(at(daemon), look)


def test_a_choice_of_a_dialog_is_taken_by_a_double_click(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        await go(shown, "memory")
        await shown.press("i")
        await shown.until_shown("Only facts of the kind", "> every kind")
        table = shown.console.screen.query_one(Table)
        await click(shown, table, 4, line_of(shown, "  preference") - table.region.y, times=2)
        await shown.until_shown("No such fact; preference")

    show(at(daemon), look)
