"""A receipt of who is no operator tells of no other event than its own, and is checked as any other."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from beetle.contracts.codec import to_plain
from beetle.contracts.common import WireScope
from beetle.open import Opened, open_store
from beetle.runtime.host.caller import Caller
from beetle.runtime.host.principals import OPERATOR
from beetle.runtime.pipeline.invocation import Call
from tests.adversary.twins import CALLERS
from tests.building import candidate, candidates, step, talk, turn
from tests.conformance.doors import PROFILE, Plain

PANEL, BOB, AGENT, NOBODY = (CALLERS[name] for name in ("panel", "stranger", "agent", "nobody"))
FACT = {"topic": "walks", "privacy": "subject_private"}


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "store.db")


@pytest.fixture
def opened(path: str) -> Iterator[Opened]:
    found = open_store(path, PROFILE)
    yield found
    found.store.close()


def ask(opened: Opened, caller: Caller, op: str, args: Any) -> Plain:
    call = Call(op, args, caller, WireScope(owner_id=caller.owner_id or "mara"))
    return to_plain(opened.dispatcher.dispatch(call).report)


def masked(opened: Opened, caller: Caller, name: str) -> tuple[str, Plain]:
    """A receipt, and what it says."""
    ask(opened, caller, "transcript.commit", talk(turn(name, "the lamp is lit")))
    receipt: str = ask(opened, caller, "transcript.lifecycle", step("mask", name))["receipt"]
    return receipt, said(receipt)


def said(receipt: str) -> Plain:
    body = receipt.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))


def checked(opened: Opened, caller: Caller, receipt: str) -> Plain:
    return ask(opened, caller, "store.verify", {"receipt": receipt})["receipt"]


def test_two_receipts_do_not_tell_how_much_others_did_between_them(opened: Opened) -> None:
    _, first = masked(opened, PANEL, "a")
    for n in range(5):
        ask(opened, BOB, "transcript.commit", talk(turn(f"b{n}", "hello")))
        ask(opened, AGENT, "memory.write", candidates(candidate(f"c{n}", f"walks {n}", **FACT)))
    receipt, second = masked(opened, PANEL, "c")
    assert second["event"] - first["event"] == 2, "its own commit, and its own step"
    (row,) = ask(opened, PANEL, "event_log.read", {"after": second["event"] - 1, "limit": 1})["rows"]
    assert (row["seq"], row["hash"]) == (second["event"], second["head"]), "as the log shows it to the same caller"
    with opened.store.read() as tx:
        assert tx.value("SELECT count(*) FROM event_log WHERE hash = ?", bytes.fromhex(second["head"])) == 0
    for caller in (PANEL, BOB, AGENT, OPERATOR):
        found = checked(opened, caller, receipt)
        assert found["valid"] and found["event"] == second["event"], caller


def test_an_event_that_its_own_caller_may_not_know_of_is_found(opened: Opened) -> None:
    for n in range(3):
        ask(opened, AGENT, "memory.write", candidates(candidate(f"c{n}", f"walks {n}", **{**FACT, "topic": f"w{n}"})))
    ask(opened, OPERATOR, "memory.write", candidates(candidate("m", "sings", topic="song")))
    fact = ask(opened, PANEL, "long_term.list", {})["records"][0]["ref"]
    asked = {"action": "change_scope", "ref": fact, "privacy": "subject_private", "reason": "asked"}
    receipt = ask(opened, PANEL, "long_term.mutate", asked)["receipt"]
    for n in range(3):
        ask(opened, AGENT, "memory.write", candidates(candidate(f"d{n}", f"runs {n}", **{**FACT, "topic": f"r{n}"})))
    assert checked(opened, PANEL, receipt)["valid"] and checked(opened, OPERATOR, receipt)["valid"]


def test_a_row_that_was_changed_or_is_gone_is_told(path: str) -> None:
    opened = open_store(path, PROFILE)
    receipt, body = masked(opened, PANEL, "a")
    count = "SELECT count(*) FROM event_log"
    with opened.store.read() as tx:
        last = tx.value(count)
    opened.store.write(lambda tx: tx.run("UPDATE event_log SET principal = 'bob' WHERE seq = ?", last), grows=False)
    assert checked(opened, OPERATOR, receipt)["reasons"] == ("event_changed",)
    opened.store.write(lambda tx: tx.run("DELETE FROM event_log WHERE seq = ?", last), grows=False)
    assert checked(opened, OPERATOR, receipt)["reasons"] == ("event_missing",)
    mark, encoded, signature = receipt.split(".")
    assert checked(opened, OPERATOR, f"beetle-receipt-1.{encoded}.{signature}")["reasons"] == ("malformed",)
    assert body["v"] == 2 and mark == "beetle-receipt-2"
    opened.store.close()


def test_an_operator_s_receipt_names_the_row_of_the_whole_log(opened: Opened) -> None:
    masked(opened, BOB, "b")
    receipt, body = masked(opened, OPERATOR, "a")
    with opened.store.read() as tx:
        assert body["head"] == tx.value("SELECT hash FROM event_log WHERE seq = ?", body["event"]).hex()
    assert receipt.startswith("beetle-receipt-1.") and checked(opened, PANEL, receipt)["valid"]
