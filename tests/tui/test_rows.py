"""Long lists, a page at a time: which pages are asked for, and which lines are drawn anew."""

from __future__ import annotations

import asyncio
import gc

import pytest
from textual.app import App, ComposeResult

from beetle.client import Client
from beetle_tui.rows import Batch, CursorRows, NumberedRows
from beetle_tui.skill_lists import TwoWayRows
from beetle_tui.table import Column, Table
from tests.tui.showing import Shown, at, commit, running, show, turn
from tests.tui.skills_shown import skill, write

COUNT = 100_000


class Asked:
    """A list of numbers that notes which pages it was asked for."""

    def __init__(self, count: int = COUNT) -> None:
        self.count = count
        self.pages: list[int] = []

    async def forwards(self, cursor: str | None, limit: int) -> Batch[int]:
        first = int(cursor or 0)
        self.pages.append(first)
        rows = tuple(range(first, min(first + limit, self.count)))
        return Batch(rows, str(first + limit) if first + limit < self.count else None, self.count)

    async def backwards(self, cursor: str | None, limit: int) -> Batch[int]:
        last = int(cursor or self.count)
        self.pages.append(last - limit)
        rows = tuple(range(last - 1, last - limit - 1, -1))
        return Batch(rows, str(last - limit) if last > limit else None, self.count)

    async def numbered(self, first: int, size: int) -> Batch[int]:
        self.pages.append(first)
        return Batch(tuple(range(first, min(first + size, self.count))))


@pytest.mark.parametrize("count", [COUNT, COUNT - 1, COUNT + 1])
def test_going_to_the_last_row_looks_for_no_page_behind_it(count: int) -> None:
    asked = Asked(count)
    two_ways: TwoWayRows[int] = TwoWayRows(asked.forwards, asked.backwards, lambda read, total: None)  # type: ignore[type-var]
    numbered = NumberedRows(asked.numbered, count)

    async def go() -> None:
        await two_ways.load(0, 40)
        await two_ways.load(count - 30, count + 30)
        await numbered.load(count - 30, count + 30)

    asyncio.run(go())
    assert two_ways.get(count - 1) == numbered.get(count - 1) == count - 1
    assert len(asked.pages) <= 5 and max(asked.pages) < count


def test_a_list_of_unknown_length_is_read_on_where_it_is_looked_at() -> None:
    asked = Asked(250)

    async def page(cursor: str | None, limit: int) -> Batch[int]:
        return (await asked.forwards(cursor, limit))._replace(total=None)

    rows = CursorRows(page)

    async def go() -> None:
        await rows.load(0, 40)
        assert rows.count == 101
        await rows.load(80, 140)
        await rows.load(180, 240)

    asyncio.run(go())
    assert (rows.count, rows.get(249)) == (250, 249)
    assert asked.pages == [0, 100, 200]


def test_what_is_to_be_read_again_stands_until_then() -> None:
    asked = Asked(250)
    rows = CursorRows(asked.forwards)

    async def go() -> None:
        await rows.load(0, 249)
        rows.forget()
        assert rows.missing(0, 0) and rows.missing(249, 249)
        assert (rows.get(7), rows.get(249), rows.count) == (7, 249, 250)
        asked.count = 120
        await rows.load(7, 110)
        assert not rows.missing(0, 119)

    asyncio.run(go())
    assert (rows.get(119), rows.get(120), rows.get(249), rows.count, rows.loaded) == (119, None, None, 120, 120)
    assert asked.pages == [0, 100, 200, 0, 100]


def test_a_reading_that_is_taken_away_before_it_begins_leaves_nothing_behind() -> None:
    with running() as daemon, daemon.client() as client:
        write(client, skill("s0"))

        async def look(shown: Shown) -> None:
            await shown.press("2")
            await shown.until_shown("1 of 1 skill", "Title of s0")
            shown.console.screen.query_one("#runtime-skills", Table).read_again()
            assert [worker for worker in shown.console.workers if worker.name == "rows"]
            shown.console.workers.cancel_all()  # as an end at this moment does
            await shown.pilot.pause()
            gc.collect()  # a coroutine that nobody awaited tells it now

        show(at(daemon), look)


def drawn(shown: Shown) -> list[int]:
    """Screen lines of the table that are drawn from now on, as they come."""
    table = shown.console.screen.query_one("#runtime-skills", Table)
    found: list[int] = []
    draw = table.render_line
    table.render_line = lambda y: (found.append(y), draw(y))[1]  # type: ignore[method-assign]
    return found


def test_a_list_that_takes_the_place_of_an_empty_one_while_that_is_read_is_read_too() -> None:
    asked, answer = asyncio.Event(), asyncio.Event()

    async def nothing(cursor: str | None, limit: int) -> Batch[int]:
        asked.set()
        await answer.wait()
        return Batch((), None, 0)

    class Lists(App[None]):
        def get_theme_variable_defaults(self) -> dict[str, str]:
            return dict.fromkeys(("line", "label"), "#888888")

        def compose(self) -> ComposeResult:
            yield Table[int]((Column("Number", str),))

    async def go() -> None:
        async with Lists().run_test() as pilot:
            table = pilot.app.query_one(Table)
            table.show(CursorRows(nothing))
            await asked.wait()
            table.show(CursorRows(Asked(3).forwards))
            answer.set()
            await pilot.app.workers.wait_for_complete()
            await pilot.pause()
            assert table.rows is not None and [table.rows.get(at) for at in range(3)] == [0, 1, 2]

    asyncio.run(go())


def test_a_key_draws_two_lines_and_a_reading_that_brings_nothing_new_draws_none() -> None:
    with running() as daemon, daemon.client() as client:
        write(client, *(skill(f"s{number}") for number in range(6)))

        async def look(shown: Shown) -> None:
            await shown.press("2")
            await shown.until_shown("1 of 6 skills", "Title of s0", "live, read")
            await shown.console.workers.wait_for_complete()
            await shown.pilot.pause()
            # On a busy machine what was shown first may still be laid out anew.
            await shown.until(lambda: not shown.console.screen._layout_required)
            assert shown.text
            lines = drawn(shown)
            await shown.press("down")
            await shown.until_shown("2 of 6 skills", "> s1")
            assert set(lines) == {0, 1}
            lines.clear()
            await read_after_a_write(shown, client)
            assert lines == []

        show(at(daemon), look)


async def read_after_a_write(shown: Shown, client: Client) -> None:
    """Somebody commits a turn, and the area has read again."""
    await shown.until_shown("live, read")
    area = shown.console.area
    before = area.read_at
    commit(client, turn(1))
    await shown.until(lambda: area.read_at != before)


def test_a_row_that_is_opened_as_it_is_read_again_is_opened_and_told_of() -> None:
    told: list[str] = []

    class Lists(App[None]):
        def get_theme_variable_defaults(self) -> dict[str, str]:
            return dict.fromkeys(("line", "label"), "#888888")

        def compose(self) -> ComposeResult:
            yield Table[int]((Column("Number", str),))

        def on_table_chosen(self, event: Table.Chosen) -> None:
            told.append(f"chosen {event.row}")

        def on_table_opened(self, event: Table.Opened) -> None:
            told.append(f"opened {event.row}")

    async def go() -> None:
        async with Lists().run_test() as pilot:
            table = pilot.app.query_one(Table)
            table.show(CursorRows(Asked(3).forwards))
            await pilot.app.workers.wait_for_complete()
            await pilot.pause()
            told.clear()
            # All in one go, as where a key is pressed while a reading arrives: the messages wait together.
            table.choose(1)
            table.action_open()
            table.choose(2)
            await pilot.pause()
            await pilot.pause()

    asyncio.run(go())
    assert told == ["chosen 1", "opened 1", "chosen 2"]
