"""A key acts on the highlighted row, which is in sight; the dialog names it; what changed meanwhile is left alone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from beetle.client import Client
from beetle_tui.dialogs import Confirm
from beetle_tui.naming import ConfirmEach
from tests.forked import Daemon
from tests.tui.remembering import dialog, go, learn, memory, only, remembering, typed
from tests.tui.showing import Shown, at, exported, show, turn
from tests.tui.skills_shown import skill, write


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with remembering() as found:
        yield found


def state_of(client: Client, ref: str) -> str:
    return client.get_long_term(ref=ref).record.state


def test_a_followed_fact_is_the_highlighted_one_and_the_one_that_is_deleted(daemon: Daemon, client: Client) -> None:
    followed = learn(client, "The lathe is blue.", "lathe")
    others = [learn(client, f"Newer than the lathe: {number}.", f"newer {number}") for number in range(3)]

    async def look(shown: Shown) -> None:
        await go(shown, "memory")
        await shown.until_shown("newer 2 (current)")
        shown.console.go(followed)
        await shown.until_shown("lathe (current)", "> current     lathe")
        rows = memory(shown).part.table.rows
        assert rows is not None
        before = rows.count
        learn(client, "Newest of all.", "newest")
        await shown.until(lambda: rows.count == before + 1)
        assert "> current     lathe" in shown.text, "the row is followed where others come"
        await shown.press("escape", "d")
        await shown.until_shown("Delete the fact?", "lathe: The lathe is blue.", followed)
        await shown.press("y")
        await shown.until_shown("Deleted", "1 fact: deleted")

    show(at(daemon), look)
    assert state_of(client, followed) == "deleted"
    assert {state_of(client, each) for each in others} == {"current"}


def test_another_list_shows_its_own_row_and_no_followed_one(daemon: Daemon, client: Client) -> None:
    followed = learn(client, "The clamp is grey.", "clamp")

    async def look(shown: Shown) -> None:
        await go(shown, "memory")
        shown.console.go(followed)
        await shown.until_shown("clamp (current)")
        await shown.press("v")
        await shown.until_shown("No such fact", "stale")
        assert "clamp" not in shown.text
        await shown.press("d")
        await shown.until_shown("no fact is chosen")

    show(at(daemon), look)


def test_a_fact_that_changed_while_the_dialog_asked_is_left_alone(daemon: Daemon, client: Client) -> None:
    ref = learn(client, "The drill is sharp.", "drill")

    async def look(shown: Shown) -> None:
        await only(shown, "drill")
        await shown.until_shown("drill (current)")
        await shown.press("d")
        await dialog(shown, Confirm)
        client.mutate_long_term(action="correct", ref=ref, content="The drill is blunt.", reason="seen")
        await shown.press("y")
        await shown.until_shown("conflict:")

    show(at(daemon), look)
    assert state_of(client, ref) == "current"


def test_a_device_and_a_skill_that_changed_while_the_dialog_asked_are_left_alone(
    daemon: Daemon, client: Client
) -> None:
    client.add_device(label="Yard", device_id="yard", capabilities=("recall",))
    write(client, skill("winch"))

    async def look(shown: Shown) -> None:
        await go(shown, "devices")
        await shown.until_shown("─ Yard")
        await shown.press("d")
        await shown.until_shown("Remove the device?", "Yard (yard)")
        client.update_device(device_id="yard", label="Other yard")
        await shown.press("y")
        await shown.until_shown("Yard (yard) was changed meanwhile, and nothing was done")
        await go(shown, "skills")
        await shown.until_shown("> winch", "Title of winch")
        await shown.press("d")
        await shown.until_shown("Delete runtime_skill__winch?")
        client.edit_runtime_skill(name="runtime_skill__winch", title="Another", edit_reason="a test")
        await shown.press("y")
        await shown.until_shown("was changed meanwhile, and nothing was done")

    show(at(daemon), look)
    assert [each.device_id for each in client.list_devices().devices] == ["yard"]
    assert [each.title for each in client.list_runtime_skills().runtime_skills] == ["Another"]


def test_forgetting_names_every_fact_by_its_text(daemon: Daemon, client: Client) -> None:
    refs = [learn(client, f"The chisel {number} is in the drawer.", f"chisel {number}") for number in range(30)]

    async def look(shown: Shown) -> None:
        await go(shown, "memory")
        await shown.press("f")
        await typed(shown, "chisel drawer")
        await shown.press("enter")
        await dialog(shown, ConfirmEach)
        await shown.until_shown("Forget these facts?", "30 facts would be erased", "The chisel 29 is in the drawer.")
        await shown.press("end")
        await shown.until_shown(f"chisel 0: The chisel 0 is in the drawer. ({refs[0]})")
        await shown.press("n")
        await shown.until_shown("Nothing was forgotten.", "chisel drawer")

    show(at(daemon), look)
    assert {state_of(client, each) for each in refs} == {"current"}


@pytest.mark.parametrize("size", [(80, 24), (60, 16)])
def test_the_highlighted_turn_is_in_sight_after_a_jump_and_another_size(
    daemon: Daemon, client: Client, size: tuple[int, int]
) -> None:
    where = {"conversation_id": "long"}
    client.commit_transcript(conversation=where, turns=[turn(number, f"Said {number}.") for number in range(1, 61)])

    async def look(shown: Shown) -> None:
        await go(shown, "transcripts")
        shown.console.go("evidence:local/long/t1")
        await shown.until_shown("1 of 60 turns")
        await shown.press("end")
        await shown.until_shown("60 of 60 turns")
        await shown.pilot.resize_terminal(*size)
        await shown.until_shown(">      60")
        await shown.press("m")
        await shown.until_shown("Turn t60 of local/long", "user: Said 60.")

    show(at(daemon), look, size=(160, 48))


def test_an_export_holds_every_row_whole_however_little_of_it_was_loaded(daemon: Daemon, client: Client) -> None:
    long = "a word " * 50
    for first in range(0, 240, 40):
        for number in range(first, first + 40):
            learn(client, f"Export {number}: {long}", f"export {number}")

    async def look(shown: Shown) -> None:
        await only(shown, "export word")
        await shown.until_shown("of 240 facts")
        lines = await exported(memory(shown))
        assert len(lines) == 240 and all(long.strip() in each for each in lines)

    show(at(daemon), look, size=(60, 16))
