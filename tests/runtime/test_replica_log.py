"""What a sidecar says on its standard error, in the daemon's log: without secrets, and not without an end."""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest

from beetle.replication.program import Litestream
from beetle.replication.sidecar import Sidecar, make_control_folder, remove_control_folder
from beetle.replication.target import ReplicaSettings, parse_target

SECRET = 'hun"ter 2/é\\x+%😀'


def told_by(folder: Path, text: str, caplog: pytest.LogCaptureFixture) -> list[str]:
    """The daemon's log of a sidecar that writes this to its standard error and ends; its last warnings behind it."""
    (folder / "said").write_text(text, encoding="utf-8")
    program, secret = folder / "litestream", folder / "secret"
    program.write_text(f"#!/bin/sh\nexec cat {folder}/said >&2\n")
    program.chmod(0o700)
    secret.write_text(SECRET, encoding="utf-8")
    secret.chmod(0o600)
    target = parse_target("nats://me@host/bucket")
    settings = ReplicaSettings(target, command=str(program), secret_file=str(secret))
    stream = Litestream(str(folder / "b.db"), settings, {})
    place = make_control_folder(str(folder / "control"))
    wake = os.eventfd(0)
    caplog.set_level(logging.INFO, "beetle.replication")
    try:
        sidecar = Sidecar(stream, place, 1000)
        while sidecar.ended is None:
            sidecar.listen(0.05, wake)
        sidecar.kill()
    finally:
        os.close(wake)
        remove_control_folder(place)
    return [*(each.getMessage() for each in caplog.records), *sidecar.said]


def test_a_flood_of_messages_is_counted_and_not_written(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    # Less than a read and what is kept of a line, so that none is lost beside those that are left out.
    told = told_by(tmp_path, "".join(f"{n} boom\n" for n in range(2000)), caplog)
    assert told[:2] == ["litestream: 0 boom", "litestream: 1 boom"] and len(told) < 30
    left_out = next(each for each in told if "left out" in each)
    assert f"{2000 - told.index(left_out)} more messages" in left_out
    assert told[-1] == "1999 boom"


def test_a_secret_is_masked_however_a_message_quotes_it(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    quoted = {
        "plain": SECRET, "json": json.dumps(SECRET), "utf8": json.dumps(SECRET, ensure_ascii=False),
        "path": quote(SECRET), "all": quote(SECRET, safe=""), "query": quote_plus(SECRET),
        "lower": quote(SECRET, safe="").lower(), "python": repr(SECRET),
    }  # fmt: skip
    lines = [f"{name} {text}" for name, text in quoted.items()]
    lines += [json.dumps({"level": "ERROR", "msg": name, "error": text}) for name, text in quoted.items()]
    told = told_by(tmp_path, "".join(f"{line}\n" for line in lines), caplog)
    assert len(told) >= 16 and all("***" in each for each in told)
    assert not [each for each in told if "hun" in each or "ter" in each]


def test_a_line_of_another_form_is_told_as_it_is(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    odd = [
        '{"level": ["ERROR"], "msg": "x"}', '{"level": {}, "msg": "y"}', "[" * 9000, "[1]", "null",
        '{"level": "ERROR", "msg": "whole"}',
    ]  # fmt: skip
    told = told_by(tmp_path, "".join(f"{line}\n" for line in odd), caplog)
    assert told[-1] == "whole" and 'litestream: {"level": ["ERROR"], "msg": "x"}' in told
