"""Fixing a skill in place: what is saved, what is refused, and what is never lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from textual.events import Paste

from beetle_tui.bounds import MOST_LINE, MOST_TEXT
from beetle_tui.editor import SkillEditor
from beetle_tui.line_input import LineInput
from beetle_tui.plaintext import Plaintext
from beetle_tui.screens.skills import Skills
from tests.forked import Daemon
from tests.tui.showing import Shown, at, opened, show
from tests.tui.skills_shown import CITED, PREFIX, PROCEDURE, detail, page, skill, to_skills, with_a_turn, write


@pytest.fixture
def daemon() -> Iterator[Daemon]:
    with with_a_turn() as found:
        yield found


async def begin_to_edit(shown: Shown) -> SkillEditor:
    await shown.press("i")
    await shown.until(lambda: isinstance(shown.console.screen, SkillEditor) and bool(shown.console.screen.focused))
    editor = shown.console.screen
    assert isinstance(editor, SkillEditor)
    return editor


async def give(shown: Shown, editor: SkillEditor, reason: str) -> None:
    editor.query_one("#edit_reason", LineInput).value = reason
    await shown.press("ctrl+s")


def test_a_person_fixes_a_skill_in_place(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        await to_skills(shown, "Title of pump")
        editor = await begin_to_edit(shown)
        assert isinstance(editor.focused, Plaintext)
        await shown.press("ctrl+end", *"Done.")
        await give(shown, editor, "it did not end")
        await shown.until_shown(f"{PREFIX}pump revised, revision 2; v shows the receipt", "on, revision 2 of")
        assert not isinstance(shown.console.screen, SkillEditor)

    with daemon.client() as client:
        write(client, skill("pump", citations=[CITED]))
    show(at(daemon), look)
    now = detail(daemon, "pump")
    assert (now.procedure, now.title, now.lineage[-1].edit_reason) == (
        f"{PROCEDURE}Done.", "Title of pump", "it did not end"
    )  # fmt: skip


def test_what_is_wrong_with_an_edit_is_said_at_its_field(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        await to_skills(shown, "Title of pump")
        editor = await begin_to_edit(shown)
        await shown.press("ctrl+s")
        await shown.until_shown("Nothing is changed.")
        title = editor.query_one("#title", LineInput)
        title.value = "   "
        await shown.press("ctrl+s")
        await shown.until_shown("The title must not be empty.")
        await shown.until(lambda: editor.focused is title)
        title.value = "Better"
        await shown.press("ctrl+s")
        await shown.until_shown("The reason must not be empty.")
        await shown.until(lambda: editor.focused is editor.query_one("#edit_reason"))
        await give(shown, editor, "a test")
        await shown.until_shown("pump revised, revision 2")

    with daemon.client() as client:
        write(client, skill("pump"))
    show(at(daemon), look)
    assert detail(daemon, "pump").title == "Better"


def test_an_edit_does_not_overwrite_anothers_without_a_yes(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        await to_skills(shown, "Title of pump")
        editor = await begin_to_edit(shown)
        with daemon.client() as client:
            other = PROCEDURE.replace("Clean the strainer", "Clean it twice")
            client.edit_runtime_skill(name="pump", procedure=other, edit_reason="another hand")
        editor.query_one("#title", LineInput).value = "Mine"
        await give(shown, editor, "my hand")
        await shown.until_shown("changed meanwhile", "revision 2; you began with 1", "another hand", "+2. Clean it")
        assert "Save your title over that?" in shown.text
        await shown.press("n")
        await shown.until(lambda: shown.console.screen is editor)
        assert "conflict: " in shown.text and editor.query_one("#title", LineInput).value == "Mine"
        await shown.press("ctrl+s")
        await shown.until_shown("It was changed meanwhile")
        await shown.press("y")
        await shown.until_shown("pump revised, revision 3")

    with daemon.client() as client:
        write(client, skill("pump"))
    show(at(daemon), look, size=(100, 40))
    now = detail(daemon, "pump")
    assert (now.title, "Clean it twice" in now.procedure) == ("Mine", True), "what was not edited is the other's"


def test_a_person_leaves_the_editor_without_losing_text_by_a_slip(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        await to_skills(shown, "Title of pump")
        editor = await begin_to_edit(shown)
        await shown.press("escape")
        await shown.until(lambda: not isinstance(shown.console.screen, SkillEditor))
        editor = await begin_to_edit(shown)
        await shown.press("q", "1", "escape")
        await shown.until_shown("Leave without saving?")
        await shown.press("n")
        await shown.until(lambda: shown.console.screen is editor)
        assert editor.query_one("#procedure", Plaintext).text.startswith("q1# Steps")
        await shown.press("escape")
        await shown.until_shown("Leave without saving?")
        await shown.press("y")
        await shown.until(lambda: isinstance(shown.console.screen, Skills))

    with daemon.client() as client:
        write(client, skill("pump"))
    show(at(daemon), look)
    assert detail(daemon, "pump").revision == 1


def test_a_pasted_megabyte_is_refused_and_the_text_stays(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        await to_skills(shown, "Title of pump")
        editor = await begin_to_edit(shown)
        area = editor.query_one("#procedure", Plaintext)
        shown.console.post_message(Paste("x" * 1_048_576))
        await shown.until_shown("payload_too_large: what was pasted has 1,048,576 characters", f"{MOST_TEXT}")
        shown.console.post_message(Paste("y" * (MOST_LINE + 1)))
        await shown.until_shown("has a line of")
        assert area.text == PROCEDURE
        shown.console.post_message(Paste("kept\n"))
        await shown.until(lambda: area.text == f"kept\n{PROCEDURE}")

    with daemon.client() as client:
        write(client, skill("pump"))
    show(at(daemon), look)


def test_a_text_that_drives_a_terminal_is_drawn_as_pictures_and_kept_as_it_is(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        await to_skills(shown, "Title of pump", "\\x1b[2J")
        assert "\x1b" not in shown.text
        editor = await begin_to_edit(shown)
        await shown.until_shown("\u241b[2J")
        assert "\x1b" not in shown.text
        await shown.press("ctrl+end", *"!")
        await give(shown, editor, "a test")
        await shown.until_shown("revised, revision 2")

    with daemon.client() as client:
        write(client, skill("pump", content="clear \x1b[2J it"))
    show(at(daemon), look, size=(80, 30))
    assert detail(daemon, "pump").procedure == "clear \x1b[2J it!"


def test_a_procedure_that_is_too_long_to_edit_here_says_where_it_can_be(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        await to_skills(shown, "Title of pump")
        await shown.press("i")
        await shown.until_shown("payload_too_large: the procedure has 300,000 characters", "beetle skill edit")
        await shown.press("enter", "end")
        await shown.until_shown("Revisions (1)")
        assert any("200,000 characters more" in each for each in page(shown).texts)

    with daemon.client() as client:
        write(client, skill("pump", content="long line " * 30_000))
    show(at(daemon), look)


def test_skills_of_a_store_without_a_daemon_are_edited_too(tmp_path: Path) -> None:
    async def look(shown: Shown) -> None:
        await shown.until_shown("no daemon, read")
        await shown.press("2")
        await shown.until_shown("Title of pump")
        await shown.press("o")
        await shown.until_shown("pump disabled", "pumps; off")
        editor = await begin_to_edit(shown)
        editor.query_one("#title", LineInput).value = "Another"
        await give(shown, editor, "a test")
        await shown.until_shown("revised, revision 2", "Another")

    source = opened(str(tmp_path / "own.db"))
    source.call("memory.write", {"kind": "procedural", "source": "manual", "writes": [skill("pump")]})
    show(source, look)
