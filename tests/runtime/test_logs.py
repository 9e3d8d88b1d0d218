"""The daemon's log as a file and in the journal. That it holds no content: governance/test_privacy_matrix.py."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from beetle.contracts.common import WireScope
from beetle.contracts.errors import BeetleError
from beetle.open import open_store
from beetle.runtime.host import logs
from beetle.runtime.host.principals import OPERATOR
from beetle.runtime.pipeline.invocation import Call


@pytest.fixture
def root() -> Iterator[logging.Logger]:
    """The logger that the daemon sets up, as it was, afterwards."""
    found = logging.getLogger("beetle")
    before = (found.handlers[:], found.level, found.propagate)
    yield found
    for each in found.handlers:
        each.close()
    found.handlers[:], found.level, found.propagate = before


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(each) for each in file.read_text().splitlines()]


def test_a_file_grows_to_its_bound_and_the_oldest_goes(root: logging.Logger, tmp_path: Path) -> None:
    file = tmp_path / "beetle.log"
    logs.start(str(file), "info", {}, logs.Bounds(file_bytes=1000, files=3))
    for number in range(100):
        root.info("number %d", number)
    found = sorted(each.name for each in tmp_path.iterdir())
    assert found == ["beetle.log", "beetle.log.1", "beetle.log.2"]
    told = [each["message"] for name in reversed(found) for each in lines(tmp_path / name)]
    assert told == [f"number {number}" for number in range(100 - len(told), 100)]
    for name in found:
        assert (tmp_path / name).stat().st_size <= 1000
        assert (tmp_path / name).stat().st_mode & 0o777 == 0o600


def test_with_one_file_it_begins_again(root: logging.Logger, tmp_path: Path) -> None:
    file = tmp_path / "beetle.log"
    logs.start(str(file), "info", {}, logs.Bounds(file_bytes=1000, files=1))
    for number in range(100):
        root.info("number %d", number)
    assert [each.name for each in tmp_path.iterdir()] == ["beetle.log"]
    assert lines(file)[-1]["message"] == "number 99"
    assert file.stat().st_size <= 1000


def test_a_file_that_was_moved_is_made_anew(
    root: logging.Logger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "LOOK_S", 0.0)
    file = tmp_path / "beetle.log"
    file.touch(0o644)
    logs.start(str(file), "info", {})
    root.info("before")
    os.rename(file, tmp_path / "moved")
    root.info("after")
    assert [each["message"] for each in lines(tmp_path / "moved")] == ["before"]
    assert [each["message"] for each in lines(file)] == ["after"]
    assert (tmp_path / "moved").stat().st_mode & 0o777 == file.stat().st_mode & 0o777 == 0o600


def test_standard_error_follows_the_file_that_it_is(root: logging.Logger, tmp_path: Path) -> None:
    file, kept = tmp_path / "beetle.log", os.dup(2)
    try:
        with file.open("ab") as stream:
            os.dup2(stream.fileno(), 2)
        logs.start(str(file), "info", {}, logs.Bounds(file_bytes=200, files=2))
        for number in range(10):
            root.info("number %d", number)
        os.write(2, b"the last words of a process\n")
        assert file.read_text().endswith("the last words of a process\n")
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def test_a_disk_that_refuses_costs_lines_and_nothing_else(root: logging.Logger) -> None:
    logs.start("/dev/full", "info", {})
    root.info("this cannot be kept")
    with pytest.raises(OSError, match="No such file"):
        logs.start("/nowhere/beetle.log", "info", {})


@pytest.mark.parametrize(
    ("level", "prefix"), [(logging.CRITICAL, 2), (logging.ERROR, 3), (logging.WARNING, 4), (logging.INFO, 6), (10, 7)]
)
def test_a_line_of_the_journal_has_its_priority(level: int, prefix: int) -> None:
    record = logging.LogRecord("beetle.store", level, "", 0, "two\nlines", (), None)
    line = logs.JournalLine().format(record)
    assert line.startswith(f"<{prefix}>")
    told = json.loads(line[3:])
    assert (told["component"], told["message"]) == ("store", "two\nlines")
    assert "\n" not in line


def test_only_the_stream_that_the_variable_names_is_the_journal(tmp_path: Path) -> None:
    with (tmp_path / "stream").open("w") as stream:
        found = os.fstat(stream.fileno())
        named = {"JOURNAL_STREAM": f"{found.st_dev}:{found.st_ino}"}
        assert logs.is_journal(named, stream.fileno())
        assert not logs.is_journal({}, stream.fileno())
        assert not logs.is_journal({"JOURNAL_STREAM": "1:2"}, stream.fileno())


def test_a_call_has_a_line_of_names_that_beetle_knows(root: logging.Logger, tmp_path: Path) -> None:
    file = tmp_path / "beetle.log"
    logs.start(str(file), "debug", {})
    opened = open_store(":memory:", "dev-full", "in-memory")
    try:
        for operation, arguments in (
            ("memory.recall", {"query": "canary"}),
            ("canary.of.a\ncaller", {}),
            ("skill.detail", {"name": "canary"}),
        ):
            call = Call(operation, arguments, OPERATOR, WireScope())
            try:
                opened.dispatcher.dispatch(call)
            except BeetleError:
                continue
    finally:
        opened.store.close()
    asked = [each for each in lines(file) if each["event"] == "request"]
    assert [(each["op"], each.get("error")) for each in asked] == [
        ("memory.recall", None), ("unknown", "unknown_operation"), ("skill.detail", "not_found"),
    ]  # fmt: skip
    assert all(each["principal"] == "operator" and each["ms"] >= 0 and each["time"].endswith("Z") for each in asked)
    assert "canary" not in file.read_text()
