"""Errors on stderr in one shape, with the exit code of their key."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from beetle.contracts.errors import ERRORS, STATUS

from .conftest import CommandLine


@pytest.mark.parametrize(
    ("words", "key"),
    [
        (("memory", "recall"), "invalid_request"),
        (("nothing",), "invalid_request"),
        (("memory",), "invalid_request"),
        (("version", "extra"), "invalid_request"),
        (("completion", "tcsh"), "invalid_request"),
        (("--config", "/nowhere/beetle.toml", "status"), "invalid_request"),
        (("--socket", "", "status"), "invalid_request"),
        (("--socket", "/nowhere/b.sock", "skill", "list"), "daemon_unavailable"),
        (("--store", "/nowhere/b.db", "skill", "list"), "not_found"),
        (("--store", "/proc/nowhere/b.db", "transcript", "commit", "--conversation", "c", "--text", "x"),
         "store_read_only"),
        (("call", "memory.recal"), "unknown_operation"),
        (("call", "subscribe", '{"topics": ["skill"]}'), "invalid_request"),
        (("--profile", "huge", "platform", "capability-snapshot"), "invalid_request"),
        (("--store", "/nowhere/b.db", "--auth-file", "/nowhere/key", "skill", "list"), "invalid_request"),
    ],
)  # fmt: skip
def test_an_error_has_its_key_a_hint_and_its_exit_code(beetle: CommandLine, words: tuple[str, ...], key: str) -> None:
    said = beetle.run(*words)
    found, message, hint = said.error
    assert (found, said.code, said.out) == (key, STATUS[key].exit_code, "")
    assert message and hint and "\n" not in hint


def test_no_command_at_all_shows_the_help_and_fails(beetle: CommandLine) -> None:
    said = beetle.run()
    assert said.code == 2
    assert said.out == ""
    assert "usage: beetle" in said.err


def test_a_refusal_of_the_daemon_names_the_flag(beetle: CommandLine) -> None:
    beetle.here("transcript", "commit", "--conversation", "c", "--text", "x")
    said = beetle.here("memory", "recall", "x", "--limit", "0")
    assert said.error[2] == "--limit: see `beetle memory recall --help`"
    said = beetle.here("memory", "write-procedural", "--name", "a", "--topic", "", "--title", "b", "--summary", "c",
                       "--content", "d")  # fmt: skip
    assert said.error[2] == "--topic: see `beetle memory write-procedural --help`"


def test_what_is_not_there_exits_with_three(beetle: CommandLine) -> None:
    beetle.here("transcript", "commit", "--conversation", "c", "--text", "x")
    said = beetle.here("skill", "show", "nope")
    assert (said.code, said.error[0]) == (3, "not_found")


def test_a_command_that_only_reads_makes_no_store(beetle: CommandLine) -> None:
    said = beetle.here("skill", "list")
    assert (said.code, said.error[0]) == (3, "not_found")
    assert not (beetle.folder / "b.db").exists()
    assert not (beetle.folder / "b.db.lock").exists()
    said = beetle.here("replica", "restore")
    assert (said.code, said.error[0]) == (3, "not_found") and "restore_on_first_boot required" in said.error[2]
    assert not (beetle.folder / "b.db").exists()


def test_a_lone_surrogate_in_arguments_is_refused_with_its_path(beetle: CommandLine) -> None:
    beetle.here("transcript", "commit", "--conversation", "c", "--text", "x")
    said = beetle.here("call", "memory.recall", '{"query": "\\ud800"}')
    assert said.error[0] == "invalid_request"
    assert "$.args.query" in said.error[1]


def test_an_error_cannot_drive_the_terminal(beetle: CommandLine) -> None:
    said = beetle.run("memory", "recall", "x", "--limit", "\x1b[31m3")
    assert "\x1b" not in said.err
    assert "\\x1b" in said.err


def test_a_full_output_is_an_error_and_no_traceback(beetle: CommandLine) -> None:

    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "beetle", "--help"], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert done.returncode == 1
    assert done.stderr.startswith("beetle: internal: the system reports: No space left on device")
    assert "Traceback" not in done.stderr


def test_a_reader_that_goes_away_is_no_error(beetle: CommandLine) -> None:
    import os

    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([sys.executable, "-m", "beetle", "--help"], stdout=write, stderr=subprocess.PIPE, text=True)
    os.close(write)
    assert (done.returncode, done.stderr) == (141, "")


def test_credentials_that_others_may_read_are_refused(beetle: CommandLine) -> None:
    file = beetle.folder / "key.json"
    file.write_text('{"device_id": "d", "app_key": "very-secret"}')
    file.chmod(0o644)
    said = beetle.here("--auth-file", str(file), "skill", "list")
    assert said.error == ("invalid_request", f"--auth-file: {file} may be read by others (mode 0644)",
                          f"chmod 600 {file}")  # fmt: skip


def test_credentials_of_another_shape_are_refused_without_quoting_them(beetle: CommandLine) -> None:
    file = beetle.folder / "key.json"
    file.write_text('{"device_id": 1, "app_key": "very-secret"}')
    file.chmod(0o600)
    said = beetle.here("--auth-file", str(file), "skill", "list")
    assert said.error[0] == "invalid_request"
    assert "very-secret" not in said.err


def test_credentials_without_a_daemon_open_nothing(beetle: CommandLine) -> None:
    file = beetle.folder / "key.json"
    file.write_text('{"device_id": "d", "app_key": "very-secret"}')
    file.chmod(0o600)
    said = beetle.here("--auth-file", str(file), "transcript", "commit", "--conversation", "c", "--text", "x")
    assert (said.code, said.error[0]) == (7, "daemon_unavailable")
    assert not (beetle.folder / "b.db").exists()


def test_an_error_is_json_where_json_is_asked_for(beetle: CommandLine) -> None:
    for words in (
        ("--json", "memory", "recall"), ("memory", "recall", "--json"), ("--json", "nothing"), ("--json",),
        ("--json", "memory"), ("--json", "memory", "recall", "a", "b"), ("--json", "memory", "recall", "--limt", "3"),
        ("memory", "recall", "a", "--json", "--deadline-ms", "soon"), ("--json", "call"), ("--json", "--store"),
        ("--json", "--sotre", "x", "status"), ("--json", "completion", "tcsh"), ("--json", "doctor", "--what"),
        ("--json", "call", "memory.recall", "{"), ("--json", "install", "--prefix"),
    ):  # fmt: skip
        said = beetle.run(*words)
        assert (said.code, said.out, said.err.count("\n")) == (2, "", 1)
        told = json.loads(said.err)["error"]
        assert sorted(told) == ["details", "hint", "key", "message", "retryable"]
        assert told["key"] == "invalid_request" and told["hint"]


def test_a_command_without_its_group_is_found(beetle: CommandLine) -> None:
    assert beetle.run("replay").error[2] == "did you mean `beetle memory replay` or `beetle transcript replay`?"
    assert beetle.run("memory", "recal").error[2] == "did you mean recall?"
    assert beetle.run("recal").error[2] == "did you mean recall or replica?"
    assert "`beetle agent-skill list`" in beetle.run("list").error[2]


def test_the_operator_who_asks_for_private_material_is_told_the_owner_s_way(beetle: CommandLine) -> None:
    beetle.here("transcript", "commit", "--conversation", "c", "--text", "x")
    said = beetle.here("private", "list")
    assert (said.code, said.error[0]) == (5, "forbidden")
    for word in ("raw_owner", "private.read", "transcript.raw", "admin", "MemoryRuntime"):
        assert word in said.error[2]


def test_no_hint_names_a_page_that_is_not_installed() -> None:
    for kind in ERRORS.values():
        assert "docs/" not in kind.hint_template


def test_an_error_of_the_system_is_json_too(beetle: CommandLine) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "beetle", "--json", "version"], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert done.returncode == 1
    assert json.loads(done.stderr)["error"]["key"] == "internal"


def test_the_short_words_are_the_long_ones(beetle: CommandLine) -> None:
    beetle.here("transcript", "commit", "--conversation", "c", "--text", "the spare key is under the pot")
    for short, long, field in (("recall", "recall", "hits"), ("context", "project", "system_memory_block")):
        said = [beetle.here("--json", *words, "spare key") for words in ((short,), ("memory", long))]
        assert said[0].code == 0 and "spare key" in str(said[0].json[field])
        assert said[0].json[field] == said[1].json[field]
    assert beetle.here("recall", "x", "--limit", "0").error[2] == "--limit: see `beetle memory recall --help`"
