"""Any operation from the palette: found, filled in, asked about, run, and its report read."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from beetle.contracts.operations import BY_NAME, OPERATIONS
from beetle_tui.dialogs import Confirm
from beetle_tui.json_view import JsonTree, ReportView, as_text
from beetle_tui.line_input import LineInput
from beetle_tui.operation_form import OperationForm, Untypable, arguments_of, kind_of, typed_arguments
from beetle_tui.operations import must_ask
from beetle_tui.palette import Palette
from tests.forked import Daemon
from tests.tui.showing import Shown, at, commit, running, show, turn


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with running() as found:
        with found.client() as client:
            commit(client, turn(1))
        yield found


async def open_form(shown: Shown, name: str) -> None:
    shown.console.action_operation(name)
    await shown.until(lambda: isinstance(shown.console.screen, OperationForm))


def fill(shown: Shown, **texts: str) -> None:
    for name, text in texts.items():
        shown.console.screen.query_one(f"#argument-{name}", LineInput).value = text


@pytest.mark.parametrize("row", [each for each in OPERATIONS if each.effect != "stream"], ids=lambda row: row.name)
def test_every_operation_has_a_form_of_all_its_arguments(row) -> None:
    words = [kind_of(each) for each in row.kinds]
    assert len(set(words)) == len(words)
    for kind in row.kinds:
        names = [each.name for each in arguments_of(kind)]
        fields = list(kind.__struct_encode_fields__)
        assert sorted(names + ["kind"] * ("kind" in fields and "kind" not in names)) == sorted(fields)
        assert all(each.help for each in arguments_of(kind))


def test_what_was_typed_becomes_arguments() -> None:
    arguments = arguments_of(BY_NAME["memory.recall"].kinds[0])
    texts = {
        "query": " loud pump ", "limit": "3", "planes": "evidence, procedural", "conversation": "local/workshop",
        "tool_registry_refs": '[{"registry_id": "a", "fingerprint": "b"}]', "since": "2026-03-02T08:12:00Z",
        "until": "",
    }  # fmt: skip
    assert typed_arguments(arguments, texts) == {
        "query": "loud pump", "limit": 3, "planes": ["evidence", "procedural"],
        "conversation": {"channel_id": "local", "conversation_id": "workshop"}, "since": "2026-03-02T08:12:00Z",
        "tool_registry_refs": [{"registry_id": "a", "fingerprint": "b"}],
    }  # fmt: skip
    assert typed_arguments(arguments, {"query": "x", "conversation": "w", "planes": '["chunks"]'}) == {
        "query": "x", "conversation": {"conversation_id": "w"}, "planes": ["chunks"],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        ({}, "query: is needed"),
        ({"query": "x", "limit": "three"}, "limit: 'three' is not a whole number"),
        ({"query": "x", "planes": "evidence,soul"}, "planes: 'soul' is none of "),
        ({"query": "x", "tool_registry_refs": "[" * 100_000}, "tool_registry_refs: this is not JSON"),
        ({"query": "x", "conversation": "{"}, "conversation: this is not JSON"),
    ],
)
def test_what_cannot_be_an_argument_is_named(texts: dict[str, str], said: str) -> None:
    with pytest.raises(Untypable, match="^" + said.replace("[", r"\[")):
        typed_arguments(arguments_of(BY_NAME["memory.recall"].kinds[0]), texts)


def test_switches_take_yes_and_no_alone() -> None:
    arguments = arguments_of(BY_NAME["store.verify"].kinds[0])
    assert typed_arguments(arguments, {"pages": "No"}) == {"pages": False}
    with pytest.raises(Untypable, match="answer yes or no"):
        typed_arguments(arguments, {"pages": "perhaps"})


@pytest.mark.parametrize(
    ("name", "arguments", "asked"),
    [
        ("memory.recall", {"query": "delete"}, False),
        ("memory.close", {"reason": "x"}, True),
        ("skill.delete", {"name": "x"}, True),
        ("skill.edit", {"name": "x"}, False),
        ("transcript.lifecycle", {"action": "delete_raw"}, True),
        ("transcript.lifecycle", {"action": "delete_raw", "dry_run": True}, False),
        ("transcript.lifecycle", {"action": "mask"}, False),
        ("long_term.mutate", {"action": "forget_by_query"}, True),
        ("tool_registry.delete", {}, True),
    ],
)
def test_what_cannot_be_taken_back_is_asked_about(name: str, arguments: dict[str, object], asked: bool) -> None:
    assert must_ask(BY_NAME[name], arguments) is asked


def test_an_operation_is_found_filled_in_run_and_its_report_read(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        await shown.until_shown("live, read")
        await shown.press("ctrl+p", *"memory.recall")
        await shown.until_shown("> memory.recall")
        await shown.press("enter")
        await shown.until_shown("* query", "enter runs it", "query: words to look for. It is needed.")
        await shown.press("enter")
        await shown.until_shown("query: is needed")
        await shown.press(*"pump", "tab")
        await shown.until_shown("limit: maximum number")
        await shown.press(*"0", "enter")
        await shown.until_shown("invalid_request:", "Hint:")
        assert shown.console.screen.query_one("#argument-query", LineInput).value == "pump", "nothing typed is lost"
        fill(shown, limit="2")
        await shown.press("enter")
        await shown.until_shown("memory.recall", '"hits": [', "enter opens a line")
        await shown.press("q")
        await shown.until(lambda: shown.console.screen is shown.console.area)

    show(at(daemon), look)


def test_only_what_the_caller_may_run_is_offered(daemon: Daemon) -> None:
    with daemon.client() as client:
        told = {each.name: each.visible for each in client.hello().operations}

    async def look(shown: Shown) -> None:
        await shown.until_shown("live, read")
        await shown.press("ctrl+p")
        palette = shown.console.screen
        assert isinstance(palette, Palette)
        await shown.until(lambda: any(each.title == "memory.recall" for each in palette._entries))
        offered = {each.title for each in palette._entries if each.action.startswith("operation(")}
        assert offered == {name for name, visible in told.items() if visible} - {
            "batch", "hello", "subscribe", "unsubscribe",
        }  # fmt: skip
        assert {name for name, visible in told.items() if not visible} & offered == set()

    show(at(daemon), look)


def test_a_lost_daemon_leaves_a_palette_without_operations() -> None:
    with running() as own:

        async def look(shown: Shown) -> None:
            await shown.until_shown("live, read")
            own.kill()
            await shown.until_shown("The daemon is lost")
            await shown.press("ctrl+p")
            await shown.until_shown("> Overview", "no operations: daemon_unavailable")

        show(at(own), look, lambda: at(own))


def test_a_deletion_is_asked_about_and_n_runs_nothing(daemon: Daemon) -> None:
    name = "runtime_skill__pump"

    async def look(shown: Shown) -> None:
        await shown.until_shown("live, read")
        await open_form(shown, "skill.delete")
        fill(shown, **{each.name: name for each in shown.console.screen.arguments if each.required})
        await shown.press("enter")
        await shown.until(lambda: isinstance(shown.console.screen, Confirm))
        assert "Run skill.delete?" in shown.text and name in shown.text
        await shown.press("n")
        await shown.until_shown("Nothing was run.")
        await shown.press("enter")
        await shown.until(lambda: isinstance(shown.console.screen, Confirm))
        await shown.press("y")
        await shown.until_shown("not_found:")
        await shown.press("escape")
        await shown.until_shown("is not kept")
        await shown.press("y")
        await shown.until(lambda: shown.console.screen is shown.console.area)

    show(at(daemon), look)


def test_an_operation_of_several_kinds_asks_which(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        await shown.until_shown("live, read")
        row = BY_NAME["memory.write"]
        shown.console.action_operation(row.name)
        await shown.until_shown("memory.write: which kind?")
        await shown.press("enter")
        await shown.until(lambda: isinstance(shown.console.screen, OperationForm))
        await shown.press("escape")
        await shown.until(lambda: shown.console.screen is shown.console.area)

    show(at(daemon), look)


def test_an_operation_without_arguments_runs_with_enter_and_a_long_one_below_a_dialog(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        await shown.until_shown("live, read")
        await open_form(shown, "memory.capabilities")
        await shown.until_shown("It takes no arguments: enter runs it.")
        await shown.press("enter")
        await shown.until(lambda: isinstance(shown.console.screen, ReportView))
        await shown.press("escape")
        await open_form(shown, "store.verify")
        await shown.press("enter")
        await shown.until_shown('"clean": true')

    show(at(daemon), look)


def test_a_report_is_folded_copied_and_written_whole(daemon: Daemon, tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    value = {
        "text": "long \x1b[2J 宽 " * 400,
        "rows": [{"id": number, "מספר": None} for number in range(300)],
        "empty": {},
        "number": 1.5,
    }

    async def look(shown: Shown) -> None:
        await shown.until_shown("live, read")
        shown.console.push_screen(ReportView("a report", value))
        await shown.until_shown('"text": "long \\u001b[2J 宽', '"number": 1.5', '"empty": {}', '"rows": [ 300 items ]')
        tree = shown.console.screen.query_one(JsonTree)
        await shown.press("down", "enter")
        await shown.until(lambda: len(tree._rows) > 60)
        await shown.press("enter", "down")
        await shown.until_shown('>   "rows": [ 300 items ]')
        await shown.press("enter", "down", "enter", "down")
        await shown.until_shown('>       "id": 0', '"מספר": null')
        await shown.press("up", "up", "enter")
        await shown.until_shown('>   "rows": [ 300 items ]')
        await shown.press("y")
        await shown.until_shown("handed to the terminal's clipboard")
        assert json.loads(shown.console.clipboard) == value["rows"]
        await shown.press("G", "g", "pagedown", "pageup", "e")
        await shown.until_shown("Export")
        shown.console.screen.query_one(LineInput).value = str(file)
        await shown.press("enter")
        await shown.until_shown("lines written to")
        assert max(map(len, shown.lines)) <= 80

    show(at(daemon), look)
    assert json.loads(file.read_text()) == value
    assert os.stat(file).st_mode & 0o777 == 0o600


def test_a_report_as_text_keeps_its_order() -> None:
    assert as_text({"b": 1, "a": [True]}) == '{\n  "b": 1,\n  "a": [\n    true\n  ]\n}'
