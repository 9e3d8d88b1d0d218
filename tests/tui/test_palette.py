"""The palette: the likeliest find stands first, what is cut says so, and long lists stay within the screen."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence

import pytest
from rich.cells import cell_len

from beetle_tui.palette import MOST_LINES, Choices, Entry, Palette, found
from tests.forked import Daemon
from tests.tui.showing import Shown, at, running, show

LONG = "what it does, told at a length for which no terminal has the room beside a title " * 3


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with running() as found:
        yield found


def titles(entries: list[Entry], typed: str) -> list[str]:
    return [each.title for each in found(entries, typed)]


def test_what_is_called_so_comes_before_what_only_holds_it() -> None:
    entries = [
        Entry("skill_registry.list", "", "list the versions of a skill"),
        Entry("agent_skill.list", "", "list what the host has mounted"),
        Entry("Unskilled", "", "nothing"),
        Entry("memory.write", "", "write a skill, a fact or feedback"),
        Entry("tool_registry.get", "", "reskilling"),
        Entry("skill.list", "", "list runtime skills"),
        Entry("Skills", "", "what was learned"),
        Entry("skill", "", "one"),
    ]
    assert titles(entries, "Skill") == [
        "skill", "skill_registry.list", "skill.list", "Skills", "agent_skill.list", "Unskilled", "memory.write",
        "tool_registry.get",
    ]  # fmt: skip
    assert titles(entries, "skill.l") == ["skill.list", "agent_skill.list"]
    assert titles(entries, "list skill")[:3] == ["skill_registry.list", "agent_skill.list", "skill.list"]
    assert titles(entries, "mounted") == ["agent_skill.list"]
    assert titles(entries, "skill zzz") == []


def test_nothing_typed_leaves_the_order_of_the_areas() -> None:
    entries = [Entry(name, "", "") for name in ("Overview", "Skills", "Devices")]
    assert found(entries, "  ") == entries


@pytest.mark.parametrize("size", [(60, 16), (80, 24), (160, 48)])
def test_an_explanation_that_is_cut_ends_with_an_ellipsis(daemon: Daemon, size: tuple[int, int]) -> None:
    entries = [Entry("One", "refresh", LONG), Entry("Two", "refresh", "short"), Entry("鍵を探す" * 30, "refresh", LONG)]

    async def look(shown: Shown) -> None:
        await shown.until_shown("read ")
        shown.console.push_screen(Palette(entries))
        await shown.until_shown("> One")
        assert "… │" in next(row for row in shown.lines if "> One" in row)
        assert "short " in next(row for row in shown.lines if "  Two" in row)
        assert next(row for row in shown.lines if "鍵を探す" in row).count("…") == 2, "a title that is cut too"
        assert max(map(cell_len, shown.lines)) <= size[0]

    show(at(daemon), look, size=size)


@pytest.mark.parametrize(("size", "most"), [((60, 16), 9), ((80, 24), MOST_LINES), ((160, 48), MOST_LINES)])
def test_a_long_list_is_gone_through_by_pages_and_stays_on_the_screen(
    daemon: Daemon, size: tuple[int, int], most: int
) -> None:
    entries = [Entry(f"Command {number}", "refresh", "does it") for number in range(100)]

    async def look(shown: Shown) -> None:
        await shown.until_shown("read ")
        shown.console.push_screen(Palette(entries))
        await shown.until_shown("> Command 0", "1 of 100", f"Command {most - 1} ")
        assert shown.console.screen.query_one(Choices).most == most
        assert not any(f"Command {most} " in row for row in shown.lines)
        await shown.press("pagedown")
        await shown.until_shown(f"> Command {most} ", f"{most + 1} of 100")
        await shown.press("pageup", "up", "up")
        await shown.until_shown("> Command 0 ", "1 of 100")
        await shown.press(*["pagedown"] * 20)
        await shown.until_shown("> Command 99 ", "100 of 100", "─┘")
        await shown.press(*"99")
        await shown.until_shown("> Command 99 ")
        assert " of " not in "\n".join(row for row in shown.lines if "─┘" in row and "of 100" in row)

    show(at(daemon), look, size=size)


def test_the_chosen_command_stays_chosen_when_the_operations_come(daemon: Daemon) -> None:
    first = [Entry(name, "refresh", "") for name in ("One", "Two")]
    more = [Entry("Three", "refresh", "")]

    async def come() -> list[Entry]:
        return more

    async def look(shown: Shown) -> None:
        await shown.until_shown("read ")
        palette = Palette(first, come)
        shown.console.push_screen(palette)
        await shown.until_shown("> One", "Three")
        await shown.press("down")
        await shown.until_shown("> Two")
        palette.query_one(Choices).extend([*more, *first])
        await shown.until_shown("> Two")

    show(at(daemon), look)


def test_operations_that_come_when_the_palette_is_being_closed_change_nothing(daemon: Daemon) -> None:
    begun, let_go, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    class Closing(Palette):
        async def _ask_more(self, more: Callable[[], Awaitable[Sequence[Entry]]]) -> None:
            await super()._ask_more(more)
            ended.set()

    async def come() -> list[Entry]:
        begun.set()
        await let_go.wait()
        return [Entry("Two", "refresh", "")]

    async def look(shown: Shown) -> None:
        await shown.until_shown("read ")
        palette = Closing([Entry("One", "refresh", "")], come)
        shown.console.push_screen(palette)
        await begun.wait()
        # As in the midst of closing it: what it holds is gone, and what it asked goes on.
        await palette.query("*").remove()
        let_go.set()
        await ended.wait()
        await shown.press("escape")
        await shown.until(lambda: not isinstance(shown.console.screen, Palette))

    show(at(daemon), look)
