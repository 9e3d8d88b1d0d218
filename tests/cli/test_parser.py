"""The parser comes out of the table of operations."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import fields

from beetle.cli import continuity, data, registry
from beetle.cli.commands import COMMANDS
from beetle.cli.parser import GLOBALS, Parser, options_of, split_arguments
from beetle.contracts.codec import convert_request
from beetle.contracts.errors import InvalidRequest
from beetle.contracts.operations import BY_NAME, OPERATIONS

from .conftest import CommandLine

DATA_ROWS = [row for row in OPERATIONS if row.effect != "stream" and row.cli]


def gathered(*words: str) -> dict[str, Any]:
    typed = split_arguments(words, COMMANDS)
    assert typed.command is not None
    row = next(row for row in OPERATIONS if row.cli == typed.words)
    return data.gather(row, Parser(typed.command).read(typed.options))


@pytest.mark.parametrize("row", DATA_ROWS, ids=lambda row: row.name)
def test_every_operation_is_reached_by_its_words_with_a_flag_for_every_field(row: Any) -> None:
    options = options_of(Parser(COMMANDS[row.cli]))
    # In files, or asked for.
    elsewhere = continuity.APART if row.carries else registry.APART if row.name == registry.UPLOAD else ()
    for field in fields(data.typed_request(row)):
        if field.name in elsewhere:
            continue
        assert "--" + field.encode_name.replace("_", "-") in options


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_command_has_help_and_takes_every_global_option(words: tuple[str, ...]) -> None:
    command = COMMANDS[words]
    parser = Parser(command)
    assert command.help and command.help[0].islower() and not command.help.endswith(".")
    assert f"usage: beetle {command.name}" in parser.format_help()
    assert {each.option for each in GLOBALS} <= set(options_of(parser))
    assert all(action.help for action in options_of(parser).values())


def test_every_example_in_help_parses() -> None:
    import shlex

    for command in COMMANDS.values():
        text = "\n".join(command.examples).replace("\\\n", " ")
        for line in text.splitlines():
            words = shlex.split(line.partition("<(")[2].rstrip(")") if "<(" in line else line)
            if words[0] != "beetle":
                continue
            words = words[1 : next((i for i, each in enumerate(words) if each in ("<", ">", "|")), len(words))]
            typed = split_arguments(words, COMMANDS)
            assert typed.command is not None, line
            Parser(typed.command).read(typed.options)


def test_flags_become_the_fields_of_the_request() -> None:
    found = gathered(
        "memory", "recall", "--query", "spare key", "--limit", "3", "--planes", "evidence,procedural",
        "--planes", "thoughts", "--conversation", "tele%2Fgram/c%25", "--since", "2026-01-01T00:00:00+01:00",
    )  # fmt: skip
    assert found == {
        "query": "spare key",
        "limit": 3,
        "planes": ["evidence", "procedural", "thoughts"],
        "conversation": {"channel_id": "tele/gram", "conversation_id": "c%"},
        "since": "2026-01-01T00:00:00+01:00",
    }
    convert_request(found, BY_NAME["memory.recall"].request)


def test_options_stand_before_between_and_after_the_words() -> None:
    for words in (
        ("--json", "--store", "s.db", "memory", "recall", "key"),
        ("memory", "--json", "--store=s.db", "recall", "key"),
        ("memory", "recall", "key", "--store", "s.db", "--json"),
    ):
        typed = split_arguments(words, COMMANDS)
        assert typed.command is not None
        values = Parser(typed.command).read(typed.options)
        assert (values.json, values.store, values.word) == (True, "s.db", "key")


def test_a_value_may_begin_with_a_dash() -> None:
    found = gathered("transcript", "commit", "--conversation", "c", "--text", "-5 degrees", "--speaker", "--Bo")
    assert found["turns"][0]["messages"][0]["content"] == "-5 degrees"
    assert found["turns"][0]["messages"][0]["actor"] == {"speaker": "--Bo"}


def test_a_conversation_without_a_channel_takes_the_scopes() -> None:
    found = gathered("transcript", "replay", "c1", "--channel", "telegram")
    assert found["conversation"] == {"channel_id": "telegram", "conversation_id": "c1"}


def test_a_view_is_the_host_uis_unless_it_is_given() -> None:
    assert gathered("transcript", "replay", "c1")["view"] == "host_ui"
    assert gathered("transcript", "search", "key", "--view", "model_context")["view"] == "model_context"


def test_a_struct_is_given_as_json_as_pairs_or_as_a_file(tmp_path: Path) -> None:
    file = tmp_path / "anchor.json"
    file.write_text('{"before": 12}')
    for given in ('{"before": 12}', "before=12", f"@{file}"):
        assert gathered("transcript", "timeline", "c1", "--anchor", given)["anchor"] == {"before": 12}
    assert gathered("transcript", "timeline", "c1", "--anchor", "latest")["anchor"] == "latest"


def test_a_switch_has_a_no() -> None:
    assert gathered("verify", "--no-pages") == {"pages": False}
    assert gathered("skill", "list", "--include-retired") == {"include_retired": True}


def test_one_turn_is_made_from_flags_with_ids_of_its_own() -> None:
    first, second = (gathered("transcript", "commit", "--conversation", "c", "--text", "hi") for _ in range(2))
    assert first["turns"][0]["turn_id"] != second["turns"][0]["turn_id"]
    convert_request(first, BY_NAME["transcript.commit"].request)


def test_one_skill_is_made_from_flags_and_its_text_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "p.md").write_text("Look first.\n")
    found = gathered(
        "memory", "write-procedural", "--name", "a", "--topic", "b", "--title", "c", "--summary", "d",
        "--content-file", str(tmp_path / "p.md"), "--citations", "one", "--citations", "two",
    )  # fmt: skip
    assert found["source"] == "manual"
    assert found["writes"][0]["content"] == "Look first.\n"
    assert found["writes"][0]["citations"] == ["one", "two"]
    convert_request(found, BY_NAME["memory.write"].request)


@pytest.mark.parametrize("whole", ["request", "list", "item"])
def test_a_commit_reads_a_request_a_list_or_one_turn_from_a_file(tmp_path: Path, whole: str) -> None:
    turn = {"turn_id": "t", "at": "2026-01-01T00:00:00Z", "messages": []}
    value = {"request": {"turns": [turn]}, "list": [turn], "item": turn}[whole]
    (tmp_path / "turns.json").write_text(json.dumps(value))
    found = gathered("transcript", "commit", "--conversation", "c", "--file", str(tmp_path / "turns.json"))
    assert found == {"conversation": {"conversation_id": "c"}, "turns": [turn]}


def test_a_commit_reads_a_pipe_by_itself(beetle: CommandLine) -> None:
    turn = {"turn_id": "t", "at": "2026-01-01T00:00:00Z",
            "messages": [{"message_id": "m", "role": "user", "content": "from a pipe"}]}  # fmt: skip
    request = json.dumps({"conversation": {"conversation_id": "c"}, "turns": [turn]})
    said = beetle.process("--store", beetle.store, "--json", "transcript", "commit", input=request)
    assert said.json["committed"] == 1


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (("memory", "recall"), "memory recall: QUERY is missing", "see `beetle memory recall --help`"),
        (("memory", "recall", "a", "b"), "memory recall: 'b' is one word too many; quote a text that has several",
         "see `beetle memory recall --help`"),
        (("memory", "recall", "--limt", "3"), "memory recall: unknown option --limt", "did you mean --limit?"),
        (("memory", "recall", "a", "--limit"), "memory recall: --limit needs a value",
         "see `beetle memory recall --help`"),
        (("memory", "recall", "a", "--limit", "x"), "--limit: 'x' is not a whole number", "write it in digits"),
        (("memory", "recal"), "beetle memory has no command 'recal'", "did you mean recall?"),
        (("memmory",), "beetle has no command 'memmory'", "did you mean memory?"),
        (("--sotre", "x", "status"), "unknown global option --sotre", "did you mean --store?"),
        (("--store",), "--store needs a value", "see `beetle --help`"),
        (("transcript", "replay", "a/b/c"), "--conversation: 'a/b/c' names no conversation",
         "write ID or CHANNEL/ID; a slash inside an id is %2F, a percent sign %25"),
        (("memory", "recall", "a", "--since", "2026-01-01"),
         "--since: '2026-01-01' is not an RFC 3339 time with a zone",
         "write it like 2026-05-17T09:30:00Z or 2026-05-17T11:30:00+02:00"),
        (("memory", "project", "a", "--pressure", "norml"), "--pressure: 'norml' is none of normal, elevated, critical",
         "did you mean normal?"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_with_what_to_do(words: tuple[str, ...], message: str, hint: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        gathered(*words)
    assert (caught.value.message, caught.value.hint, caught.value.exit_code) == (message, hint, 2)


def test_text_that_is_no_utf8_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidRequest, match="not UTF-8 at byte 0"):
        gathered("skill", "edit", "a", "--edit-reason", "r", "--procedure-file", str(tmp_path / "x"))


def test_call_reads_its_arguments_from_stdin(beetle: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    beetle.here("transcript", "commit", "--conversation", "c", "--text", "a spare key")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b'{"query": "key"}')))
    assert len(beetle.here("--json", "call", "memory.recall", "-").json["hits"]) == 1
