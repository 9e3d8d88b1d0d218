"""What a person does with skills: find one, read it, follow its evidence, turn it off, delete it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from beetle.contracts.envelope import DeviceAuth
from beetle_tui.dialogs import Confirm
from beetle_tui.diff import DiffScreen
from beetle_tui.line_input import LineInput
from beetle_tui.screens.skills import ORDERS, Skills
from tests.forked import Daemon
from tests.tui.showing import Shown, at, painted, running, show
from tests.tui.skills_shown import CITED, PREFIX, PROCEDURE, detail, names, page, skill, to_skills, with_a_turn, write

WIDE = "漢字" * 60
SIZES = [(60, 16), (80, 24), (160, 48)]


@pytest.fixture(autouse=True)
def painted_when_looked_at() -> None:
    """Painted for nobody too: how a revision that was gone to comes into sight depends on what was painted before."""


@pytest.fixture
def daemon() -> Iterator[Daemon]:
    with with_a_turn() as found:
        yield found


def test_a_store_without_skills_says_how_they_come(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        await to_skills(shown, "No skill", "No runtime skills yet.", "memory.write")
        await shown.press("i", "o", "d", "h", "y")
        await shown.until_shown("nothing is chosen")
        with daemon.client() as client:
            write(client, skill("first"))
        await shown.until_shown("1 of 1 skill", "Title of first", "Stop the pump.")

    show(at(daemon), look)


def test_a_person_reads_a_skill_and_follows_its_citation(daemon: Daemon) -> None:
    went: list[str] = []

    async def look(shown: Shown) -> None:
        shown.console.go = went.append  # type: ignore[method-assign] - where it leads is another area's test
        await to_skills(shown, "Title of pump", "1. Stop the pump.", "systemctl stop pump")
        assert "pumps; on, revision 1 of 20" in shown.text
        await shown.press("enter")
        await shown.until(lambda: page(shown).has_focus)
        await shown.press("n", "enter")
        await shown.until(lambda: went == [CITED])
        await shown.press("y")
        await shown.until(lambda: shown.console.clipboard == CITED)
        await shown.press("escape")
        await shown.until(lambda: not page(shown).has_focus)
        await shown.press("y")
        await shown.until(lambda: shown.console.clipboard == f"procedural:{PREFIX}pump")

    with daemon.client() as client:
        write(client, skill("pump", citations=[CITED, "a book", "evidence:local/gone/t9"]), source="import")
    show(at(daemon), look, size=(80, 48))


def test_a_citation_of_what_is_not_there_says_so(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        await to_skills(shown, f"> {CITED}", "- a book", "- evidence:local/gone/t9 (no such record here)")

    with daemon.client() as client:
        write(client, skill("pump", citations=[CITED, "a book", "evidence:local/gone/t9"]), source="import")
    show(at(daemon), look, size=(80, 60))


def test_a_person_sorts_the_skills(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        await to_skills(shown, "by name")
        expected = {
            "by name": ["a", "b", "c"],
            "latest change first": ["b", "c", "a"],
            "most revisions first": ["b", "c", "a"],
            "by name, backwards": ["c", "b", "a"],
            "oldest change first": ["a", "c", "b"],
        }
        assert list(expected) == [each.told for each in ORDERS]
        for told, found in expected.items():
            await shown.until_shown(f"3 skills; {told}")
            await shown.until(lambda found=found: names(shown) == found)
            await shown.press("s")
        await shown.until(lambda: names(shown) == expected["by name"])

    with daemon.client() as client:
        write(client, *(skill(each) for each in "abc"))
        client.edit_runtime_skill(name="b", title="Other", edit_reason="a test")
    show(at(daemon), look)


def test_a_person_filters_the_skills_and_gets_them_all_back(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        await to_skills(shown, "1 of 12 skills")
        await shown.press("slash", *"needed skill-7", "enter")
        await shown.until_shown("1 of 1 skill; by name, filtered", "Title of skill-7")
        assert names(shown) == ["skill-7"]
        await shown.press("slash", *"zzz", "enter")
        await shown.until_shown("No skill", "No skill holds all of these words.")
        await shown.press("escape")
        await shown.until_shown("1 of 12 skills; by name")
        assert "filtered" not in shown.text

    with daemon.client() as client:
        write(client, *(skill(f"skill-{number}") for number in range(12)))
    show(at(daemon), look)


def test_a_filter_that_is_too_long_is_told_and_the_list_stays(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        await to_skills(shown, "1 of 1 skill")
        screen = shown.console.screen
        await shown.press("slash")
        await shown.until(lambda: isinstance(screen.focused, LineInput))
        assert isinstance(screen.focused, LineInput)
        screen.focused.value = "x" * 300
        await shown.press("enter")
        await shown.until_shown("invalid_request: ", "$.args.query", "1 of 1 skill")

    with daemon.client() as client:
        write(client, skill("pump"))
    show(at(daemon), look)


def test_a_list_of_many_skills_is_read_where_it_is_looked_at(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        await to_skills(shown, "1 of 350 skills", "Title of s000")
        rows = shown.console.screen.query_one("#runtime-skills").rows  # type: ignore[attr-defined]
        assert rows.loaded == 100
        await shown.press("end")
        await shown.until_shown("350 of 350 skills", "When s349 is needed.")
        assert "on the way" not in shown.text
        assert rows.get(150) is None, "the way to the end does not lead through all of it"
        await shown.press("pageup", *["up"] * 40)
        await shown.until_shown("303 of 350 skills", "When s302 is needed.")
        await shown.press("home", *["pagedown"] * 25)
        await shown.until_shown("176 of 350 skills", "When s175 is needed.")

    with daemon.client() as client:
        write(client, *(skill(f"s{number:03}") for number in range(350)))
    show(at(daemon), look)


def test_a_person_sees_what_each_revision_changed(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        await to_skills(shown, "A title")
        await shown.press("h")
        await shown.until_shown(
            "revision 2 to 3", "Why: only the title", "The procedure is the same in both.", "2 of 2"
        )
        await shown.press("left")
        await shown.until_shown("revision 1 to 2", "Why: twice as clean", "-2. Clean the", "+2. Clean it twice.")
        await shown.press("left", "right", "right")
        await shown.until_shown("revision 2 to 3")
        await shown.press("escape")
        await shown.until(lambda: not isinstance(shown.console.screen, DiffScreen))
        await shown.press("enter", "end", "N", "N", "enter")
        await shown.until_shown("revision 1 to 2")

    with daemon.client() as client:
        write(client, skill("pump"))
        changed = PROCEDURE.replace("Clean the strainer", "Clean it twice")
        client.edit_runtime_skill(name="pump", procedure=changed, edit_reason="twice as clean")
        client.edit_runtime_skill(name="pump", title="A title", edit_reason="only the title")
    show(at(daemon), look)


def test_a_skill_of_one_revision_has_no_history(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        await to_skills(shown, "Title of pump")
        await shown.press("h")
        await shown.until_shown(f"{PREFIX}pump has one revision")

    with daemon.client() as client:
        write(client, skill("pump"))
    show(at(daemon), look)


def test_a_person_turns_a_skill_off_and_on(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        await to_skills(shown, "pumps; on, revision 1")
        await shown.press("o")
        await shown.until_shown("pump disabled, revision 1; v shows the receipt", "pumps; off, revision 1")
        assert not detail(daemon, "pump").enabled
        await shown.press("o")
        await shown.until_shown("pump enabled, revision 1", "pumps; on, revision 1")

    with daemon.client() as client:
        write(client, skill("pump"))
    show(at(daemon), look)


def test_a_person_deletes_a_skill_knowing_what_goes(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        await to_skills(shown, "1 of 2 skills", "Title of pump")
        await shown.press("d")
        await shown.until_shown(f"Delete {PREFIX}pump?", "- 2 revisions, with", "- 2 refs to evidence", "receipt")
        await shown.press("n")
        await shown.until(lambda: not isinstance(shown.console.screen, Confirm))
        assert detail(daemon, "pump").revision == 2
        await shown.press("d")
        await shown.until_shown(f"Delete {PREFIX}pump?")
        await shown.press("y")
        await shown.until_shown(f"{PREFIX}pump deleted, last revision 2; v shows", "1 of 1 skill", "Title of valve")
        await shown.press("v")
        await shown.until_shown("beetle-receipt-1.", "y copies the receipt")
        await shown.press("y", "escape")
        assert shown.console.clipboard.startswith("beetle-receipt-1.")

    with daemon.client() as client:
        write(client, skill("pump", citations=[CITED]), skill("valve"))
        client.edit_runtime_skill(name="pump", title="Title of pump!", edit_reason="a test")
    show(at(daemon), look)
    with daemon.client() as client:
        assert client.list_runtime_skills().total == 1


def test_a_change_by_another_is_shown_where_it_is_read(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        await to_skills(shown, "Title of pump")
        with daemon.client() as client:
            client.edit_runtime_skill(name="pump", title="Another title", edit_reason="a test")
        await shown.until_shown("Another title", "revision 2")
        with daemon.client() as client:
            client.delete_runtime_skill(name="pump")
        await shown.until_shown("No skill", "No runtime skills yet.")

    with daemon.client() as client:
        write(client, skill("pump"))
    show(at(daemon), look)


def test_a_ref_from_elsewhere_opens_its_skill_and_its_revision(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        await shown.until_shown("live, read")
        shown.console.go(f"procedural:{PREFIX}s200/2")
        await shown.until_shown("1 of 1 skill; by name, filtered", "Title of s200")
        await shown.until(lambda: page(shown).has_focus and "edit: a reason" in page(shown).chosen_text)
        await shown.press("escape", "escape")
        await shown.until_shown("1 of 250 skills; by name")
        shown.console.go(f"procedural:{PREFIX}gone")
        await shown.until_shown("not_found: ", f"{PREFIX}gone")

    with daemon.client() as client:
        write(client, *(skill(f"s{number:03}") for number in range(250)))
        client.edit_runtime_skill(name="s200", topic="other", edit_reason="a reason")
    show(at(daemon), look)


@pytest.fixture
def mounted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Daemon]:
    folder = tmp_path / "agent-skills"
    for name, text in (
        ("rotate", "---\nname: rotate\ndescription: Rotate the pages of a PDF.\n---\nbody\n"),
        ("sort", f"---\nname: sort\ndescription: {WIDE}\n---\nbody\n"),
        ("broken", "no front matter\n"),
    ):
        (folder / name).mkdir(parents=True)
        (folder / name / "SKILL.md").write_text(text)
    (folder / "rotate" / "more.txt").write_text("more")
    monkeypatch.setenv("BM_AGENT_SKILL_DIRS", str(folder))
    with running() as found:
        yield found


def test_a_person_reads_the_mounted_skills_and_what_is_wrong_with_them(mounted: Daemon) -> None:
    async def look(shown: Shown) -> None:
        await shown.until_shown("live, read", "1 finding in the mounted agent skills")
        await shown.press("2")
        await shown.until_shown("1 of 2 skills; 1 finding", "rotate", "Rotate the pages of", "1 file beside SKILL")
        for key in "iodhs":
            assert not any(each.binding.key == key for each in shown.console.screen.active_bindings.values()), (
                "they are read-only"
            )
        await shown.press("enter", "end")
        await shown.until_shown("! agent-skills/broken/SKILL.md: it does not begin with", "Mounted folders (1)")
        await shown.press("escape", "slash", *"rotate", "enter")
        await shown.until_shown("1 of 1 skill; 1 finding, filtered")
        await shown.press("left")
        await shown.until_shown("No runtime skills yet.", "by name")
        assert "filtered" not in shown.text
        await shown.press("right")
        await shown.until_shown("1 of 1 skill; 1 finding, filtered")
        shown.console.go("agent_skill:agent-skills/sort")
        await shown.until_shown("1 of 1 skill; 1 finding, filtered", "漢字漢字")

    show(at(mounted), look, size=(100, 40))


def test_without_mounted_folders_it_says_how_they_are_mounted(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        await to_skills(shown, "No runtime skills yet.")
        await shown.press("left")
        await shown.until_shown("No skill", "No Agent Skills.", "[agent_skills]", "beetle.toml")
        with daemon.client() as client:
            write(client, skill("pump"))
        for _ in range(3):
            await shown.press("left")
            await shown.until_shown("Title of pump", "When pump is needed.")
            await shown.press("right")
            await shown.until_shown("No Agent Skills.")

    show(at(daemon), look)


@pytest.mark.parametrize("size", SIZES)
def test_wide_and_long_content_stays_within_its_lines(daemon: Daemon, size: tuple[int, int]) -> None:
    async def look(shown: Shown) -> None:
        await to_skills(shown, "1 of 3 skills")
        for _ in range(3):
            await shown.until(lambda: bool(page(shown).texts))
            await shown.press("enter", "pagedown", "pagedown", "end", "home", "escape", "down")
            await shown.pilot.pause()
            strips = painted(shown.console)
            assert {strip.cell_length for strip in strips} == {size[0]}
        await shown.pilot.resize_terminal(200, 50)
        await shown.until(lambda: shown.console.size.width == 200)
        await shown.pilot.resize_terminal(*size)
        await shown.until(lambda: shown.console.size.width == size[0])
        await shown.until_shown("3 of 3 skills")

    with daemon.client() as client:
        write(
            client,
            skill(WIDE, title=WIDE, summary=f"{WIDE} שלום \u202e", content="x" * 10_000),
            skill("emoji", title="🪲" * 100, content="🪲 👩‍🚀 " * 2000, citations=["c" * 1000]),
            skill("tabs", content="\t\ta\r\n" * 300),
        )
    show(at(daemon), look, size=size)


def test_a_lost_daemon_leaves_what_was_read_and_refuses_what_is_done(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        await to_skills(shown, "Title of pump")
        daemon.kill()
        await shown.until_shown("DAEMON LOST", "The daemon is lost")
        assert "Title of pump" in shown.text
        await shown.press("o")
        await shown.until_shown("daemon_unavailable: ")
        daemon.start()
        await shown.press("r")
        await shown.until_shown("live, read", "Title of pump")
        await shown.press("o")
        await shown.until_shown("pump disabled")

    with daemon.client() as client:
        write(client, skill("pump"))
    show(at(daemon), look, lambda: at(daemon))


def test_a_caller_without_the_capability_sees_why_there_is_nothing(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        await shown.until_shown("live")
        await shown.press("2")
        await shown.until_shown("Could not read: forbidden: ", "skill")
        await shown.press("i", "d", "s", "enter", "slash", *"x", "enter")
        await shown.until_shown("Could not read: forbidden: ")
        assert isinstance(shown.console.screen, Skills)

    with daemon.client() as client:
        added = client.add_device(label="panel", capabilities=["inspect", "transcript"])
    assert added.appKeyOnce is not None
    show(at(daemon, auth=DeviceAuth(device_id=added.device.device_id, app_key=added.appKeyOnce)), look)
