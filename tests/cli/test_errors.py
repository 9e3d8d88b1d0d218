"""Errors on stderr in one shape, with the exit code of their key."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

import beetle.bench.measure  # what another user may not load
import beetle.chunk_tree.folder  # noqa: F401
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


def onto(out: int, *words: str) -> subprocess.CompletedProcess[str]:
    """A command whose output goes there, by way of Python's buffer."""
    kept = {name: each for name, each in os.environ.items() if name != "PYTHONUNBUFFERED"}
    command = [sys.executable, "-m", "beetle", *words]
    try:
        return subprocess.run(command, stdout=out, stderr=subprocess.PIPE, text=True, env=kept)
    finally:
        os.close(out)


@pytest.mark.parametrize("words", ["--help", "completion bash"])
def test_a_full_output_is_an_error_and_no_traceback(beetle: CommandLine, words: str) -> None:
    done = onto(os.open("/dev/full", os.O_WRONLY), *words.split())
    message, hint = done.stderr.splitlines()
    assert message == "beetle: storage_full: the system reports: No space left on device" and "output" in hint
    assert done.returncode == 8


def test_an_output_that_the_system_forbids_is_no_defect(beetle: CommandLine) -> None:
    sealed = os.memfd_create("sealed", os.MFD_ALLOW_SEALING)
    fcntl.fcntl(sealed, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE)
    done = onto(sealed, "--help")
    message, hint = done.stderr.splitlines()
    assert message == "beetle: store_read_only: the system reports: Operation not permitted" and "right" in hint
    assert done.returncode == 8


@pytest.fixture
def closed(beetle: CommandLine) -> Iterator[str]:
    """A folder that this user may not write to."""
    folder = beetle.folder / "closed"
    folder.mkdir(0o555)
    beetle.folder.chmod(0o755)
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    try:
        yield str(folder)
    finally:
        os.seteuid(user)


@pytest.mark.parametrize(
    ("words", "at", "named"),
    [(("bench", "--folder"), "", "--folder"), (("chunk", "export-tree"), "/chunks", "the folder")],
)
def test_a_folder_that_may_not_be_written_to_is_told_with_a_way_out(
    beetle: CommandLine, closed: str, words: tuple[str, ...], at: str, named: str
) -> None:
    said = beetle.here(*words, closed)
    assert said.error[:2] == ("store_read_only", f"{closed}{at} cannot be written: Permission denied")
    assert (said.code, said.out) == (8, "") and named in said.error[2] and os.listdir(closed) == []


def test_a_transcript_that_is_a_folder_is_told_by_its_name(beetle: CommandLine) -> None:
    for more in ((), ("--watch",)):
        said = beetle.here("capture", "--host", "claude-code", str(beetle.folder), *more)
        assert (said.code, said.error) == (
            2, ("invalid_request", f"{beetle.folder}: it is a folder, and no regular file", "give a file in it")
        )  # fmt: skip


def test_a_reader_that_goes_away_is_no_error(beetle: CommandLine) -> None:
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
    done = onto(os.open("/dev/full", os.O_WRONLY), "--json", "version")
    assert (done.returncode, json.loads(done.stderr)["error"]["key"]) == (8, "storage_full")


def test_the_short_words_are_the_long_ones(beetle: CommandLine) -> None:
    beetle.here("transcript", "commit", "--conversation", "c", "--text", "the spare key is under the pot")
    for short, long, field in (("recall", "recall", "hits"), ("context", "project", "system_memory_block")):
        said = [beetle.here("--json", *words, "spare key") for words in ((short,), ("memory", long))]
        assert said[0].code == 0 and "spare key" in str(said[0].json[field])
        assert said[0].json[field] == said[1].json[field]
    assert beetle.here("recall", "x", "--limit", "0").error[2] == "--limit: see `beetle memory recall --help`"
