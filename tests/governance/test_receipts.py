"""Receipts: each change that takes something away is proven by one, and nothing in one can be changed unseen."""

from __future__ import annotations

import base64
import json
import string
from pathlib import Path
from typing import Any, get_args

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from beetle import MemoryRuntime
from beetle.contracts.common import Conversation
from beetle.contracts.control import ReceiptCheck, ReceiptFault
from beetle.contracts.skills import RuntimeSkillDeleteRequest
from beetle.runtime.areas import receipts
from beetle.runtime.areas.table import HANDLERS
from beetle.runtime.pipeline.handlers import Write
from tests.governance.keeping import SPOILED, identity_of, invocation_of, key_file
from tests.store.conftest import (
    commit,
    delete_skill,
    lifecycle,
    open_runtime,
    store_of,
    turn,
    write_skill,
)

ALPHABET = string.ascii_letters + string.digits + "-_"


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "store.db")


def check(memory: MemoryRuntime, receipt: str) -> ReceiptCheck:
    with store_of(memory).read() as tx:
        return receipts.check(invocation_of(memory), tx, receipt)


def body_of(receipt: str) -> dict[str, Any]:
    encoded = receipt.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)))


def encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def said(body: dict[str, Any]) -> str:
    return f"{receipts.MARK}.{encoded(json.dumps(body, sort_keys=True, separators=(',', ':')).encode())}"


def signed(memory: MemoryRuntime, body: dict[str, Any]) -> str:
    """A body with the device's own signature: what only a program with the key could make."""
    keys = identity_of(memory).keys()
    assert keys is not None
    return f"{said(body)}.{encoded(keys.sign(said(body).encode()))}"


def masked(memory: MemoryRuntime) -> str:
    commit(memory, turn("t1", "a lighthouse", "a lamp"))
    receipt = lifecycle(memory, "mask", "t1").receipt
    assert receipt is not None
    return receipt


def every_change(memory: MemoryRuntime) -> dict[str, tuple[str, Any]]:
    """Each kind of change: the kind that its receipt names, and its report."""
    commit(memory, turn("t1", "one", "two"), turn("t2", "three"))
    write_skill(memory, "tea", "Fill the kettle")
    write_skill(memory, "tea", "Fill the kettle, then warm the pot")
    name = {"name": "tea"}
    return {
        "mask": ("transcript.mask", lifecycle(memory, "mask", "t1")),
        "unmask": ("transcript.unmask", lifecycle(memory, "unmask", "t1")),
        "archive": ("transcript.archive", lifecycle(memory, "archive", "t2")),
        "review": ("transcript.review", lifecycle(memory, "review", "t1")),
        "delete_raw": ("transcript.delete_raw", lifecycle(memory, "delete_raw", "t1", "t2")),
        "edit": ("skill.edited", memory.edit_runtime_skill(**name, title="T", edit_reason="r")),
        "disable": ("skill.disabled", memory.set_runtime_skill_enabled(**name, enabled=False)),
        "enable": ("skill.enabled", memory.set_runtime_skill_enabled(**name, enabled=True)),
        "delete": ("skill.deleted", delete_skill(memory, "tea")),
    }


def test_every_change_has_a_receipt_that_verifies(path: str) -> None:
    with open_runtime(path) as memory:
        device = identity_of(memory).fingerprint
        for kind, report in every_change(memory).values():
            found = memory.verify_store(receipt=report.receipt)
            assert found.clean
            assert found.receipt == ReceiptCheck(
                valid=True,
                reasons=(),
                signed=True,
                kind=kind,
                event=report.lifecycle.event_id,
                at=report.lifecycle.at,
                device=device,
            )
    with open_runtime(path) as memory:
        assert check(memory, report.receipt).valid


def test_a_receipt_counts_what_was_touched_and_names_the_row_that_tells_of_it(path: str) -> None:
    with open_runtime(path) as memory:
        body = body_of(masked(memory))
        assert body["counts"] == {"turns": 1, "messages": 2, "changed": 2}
        with store_of(memory).read() as tx:
            assert body["head"] == tx.value("SELECT hash FROM event_log WHERE seq = ?", body["event"]).hex()
        assert body["store"] == store_of(memory).store_id
        assert (body["operation"], body["kind"]) == ("transcript.lifecycle", "transcript.mask")
        unmasked = body_of(lifecycle(memory, "unmask", "t1").receipt)
        assert unmasked["digest"] != body["digest"], "no receipt tells whether two hold the same content"
        assert set(body) == set(receipts.Body.__struct_fields__)


def test_what_changed_nothing_has_no_receipt(path: str) -> None:
    with open_runtime(path) as memory:
        masked(memory)
        write_skill(memory, "tea", "x")
        assert lifecycle(memory, "mask", "t1").receipt is None
        assert lifecycle(memory, "mask", "nobody").receipt is None
        dry = memory.request_transcript_lifecycle(
            conversation={"channel_id": "local", "conversation_id": "c1"}, action="delete_raw", turn_ids=["t1"],
            reason="r", dry_run=True,
        )  # fmt: skip
        assert dry.receipt is None
        assert memory.set_runtime_skill_enabled(name="tea", enabled=True).receipt is None
        assert memory.edit_runtime_skill(name="tea", procedure="x", edit_reason="r").receipt is None


def test_every_changed_character_of_a_receipt_is_seen(path: str) -> None:
    with open_runtime(path) as memory:
        receipt = masked(memory)
        invocation = invocation_of(memory)
        with store_of(memory).read() as tx:
            assert receipts.check(invocation, tx, receipt).valid
            for place, character in enumerate(receipt):
                # The next character differs in the lowest bits, which may be those that decode to nothing.
                following = ALPHABET[(ALPHABET.find(character) + 1) % 64]
                for other in {following, "A", ".", "=", "é", "\n"} - {character}:
                    changed = receipt[:place] + other + receipt[place + 1 :]
                    found = receipts.check(invocation, tx, changed)
                    assert not found.valid and found.reasons, (place, other)


def test_every_cut_and_every_addition_of_a_receipt_is_seen(path: str) -> None:
    with open_runtime(path) as memory:
        receipt = masked(memory)
        invocation = invocation_of(memory)
        with store_of(memory).read() as tx:
            for length in range(len(receipt)):
                found = receipts.check(invocation, tx, receipt[:length])
                assert not found.valid and found.reasons, length
            for more in (".", "=", "A", "AAAA", ".AAAA", "\0"):
                assert not receipts.check(invocation, tx, receipt + more).valid, more
            assert receipts.check(invocation, tx, f"  {receipt}\n").valid, "white space around it is nobody's change"


@pytest.mark.parametrize(
    "text",
    ["", ".", "..", "beetle-receipt-1", "beetle-receipt-1..", "beetle-receipt-1.e30.", "beetle-receipt-1.W10.AA",
     "beetle-receipt-1.bnVsbA.", "beetle-receipt-1.eyJ2IjoxfQ.AA", "beetle-receipt-.e30.", "€.€.€", "[" * 4000,
     f"beetle-receipt-1.{encoded(b'[' * 3000)}.", f"beetle-receipt-1.{encoded(b'1e999')}."],
)  # fmt: skip
def test_what_is_no_receipt_is_said_to_be_none(path: str, text: str) -> None:
    with open_runtime(path) as memory:
        found = memory.verify_store(receipt=text).receipt
    assert found == ReceiptCheck(valid=False, reasons=("malformed",))


def test_a_receipt_of_a_later_version_is_told_apart(path: str) -> None:
    with open_runtime(path) as memory:
        later = masked(memory).replace("beetle-receipt-1", "beetle-receipt-3")
        assert check(memory, later).reasons == ("unknown_version",)


def test_a_receipt_of_another_store_is_told_apart(path: str, tmp_path: Path) -> None:
    with open_runtime(tmp_path / "other.db") as other:
        receipt = masked(other)
    with open_runtime(path) as memory:
        masked(memory)
        assert check(memory, receipt).reasons == ("other_store",)


@pytest.mark.parametrize("how", SPOILED)
def test_without_a_usable_identity_receipts_are_unsigned_and_say_so(path: str, how: str) -> None:
    open_runtime(path).close()
    SPOILED[how][1](key_file(path))
    with open_runtime(path) as memory:
        receipt = masked(memory)
        assert receipt.endswith(".")
        assert (body_of(receipt)["device"], body_of(receipt)["key"]) == (None, None)
        found = check(memory, receipt)
    assert (found.valid, found.reasons, found.signed) == (False, ("unsigned",), False)


def test_a_receipt_is_checked_by_the_recorded_key_when_the_key_file_is_lost(path: str) -> None:
    with open_runtime(path) as memory:
        receipt = masked(memory)
        key_file(path).unlink()
        assert check(memory, receipt).valid
        unsigned = receipt.rpartition(".")[0] + "."
        assert check(memory, unsigned).reasons == ("unsigned",)


def test_another_device_s_signature_is_seen(path: str) -> None:
    with open_runtime(path) as memory:
        body = body_of(masked(memory))
        other = Ed25519PrivateKey.generate()
        public = other.public_key().public_bytes_raw()
        mine = said(body)
        assert check(memory, f"{mine}.{encoded(other.sign(mine.encode()))}").reasons == ("wrong_signature",)
        body |= {"key": encoded(public), "device": receipts.fingerprint_of(public), "counts": {"turns": 900}}
        forged = said(body)
        assert check(memory, f"{forged}.{encoded(other.sign(forged.encode()))}").reasons == ("other_device",)
        key_file(path).unlink()
        assert check(memory, f"{forged}.{encoded(other.sign(forged.encode()))}").reasons == ("other_device",)
        assert check(memory, f"{forged}.{encoded(b'short')}").reasons == ("wrong_signature", "other_device")


def test_a_store_whose_recorded_key_was_exchanged_does_not_fool_the_device(path: str) -> None:
    with open_runtime(path) as memory:
        body = body_of(masked(memory))
        other = Ed25519PrivateKey.generate()
        public = other.public_key().public_bytes_raw()
        store_of(memory).write(lambda tx: tx.run("UPDATE meta SET value = ? WHERE key = 'identity_key'", public))
        forged = said(body | {"key": encoded(public), "device": receipts.fingerprint_of(public)})
        assert check(memory, f"{forged}.{encoded(other.sign(forged.encode()))}").reasons == ("other_device",)


def test_an_event_that_the_log_has_lost_or_has_otherwise_is_seen(path: str) -> None:
    with open_runtime(path) as memory:
        receipt = masked(memory)
        body = body_of(receipt)
        assert check(memory, signed(memory, body | {"event": 10_000})).reasons == ("event_missing",)
        assert check(memory, signed(memory, body | {"event": 1})).reasons == ("event_changed",)
        for field, value in {"operation": "skill.delete", "principal": "operator", "space": "00" * 8,
                             "at": "2026-01-01T00:00:00Z"}.items():  # fmt: skip
            assert check(memory, signed(memory, body | {field: value})).reasons == ("event_differs",), field
        change = "UPDATE event_log SET hash = zeroblob(32) WHERE seq = ?"
        store_of(memory).write(lambda tx: tx.run(change, body["event"]))
        assert check(memory, receipt).reasons == ("event_changed",)


def test_neither_content_nor_anything_of_a_caller_s_making_stands_in_a_receipt(path: str) -> None:
    with open_runtime(path, owner="owner-heliotrope") as memory:
        where = {"channel_id": "channel-heliotrope", "conversation_id": "talk-heliotrope"}
        commit(memory, turn("turn-heliotrope", "content heliotrope"), conversation=where)
        write_skill(memory, "skill-heliotrope", "content heliotrope")
        reports = [
            memory.request_transcript_lifecycle(
                conversation=where, action="delete_raw", turn_ids=["turn-heliotrope"], reason="reason heliotrope"
            ),
            memory.edit_runtime_skill(name="skill-heliotrope", title="heliotrope", edit_reason="heliotrope"),
            delete_skill(memory, "skill-heliotrope"),
        ]
    for report in reports:
        body = body_of(report.receipt)
        assert "heliotrope" not in json.dumps(body)
        assert body["principal"] == "embedded", "an embedding program's principal holds its agent's id"


def test_a_repeated_request_answers_the_first_receipt(path: str) -> None:
    with open_runtime(path) as memory:
        commit(memory, turn("t1", "one"))
        args = {"conversation": {"conversation_id": "c1"}, "action": "mask", "turn_ids": ["t1"], "reason": "r"}
        first = memory.call("transcript.lifecycle", args, idempotency_key="k")
        again = memory.call("transcript.lifecycle", args, idempotency_key="k")
        assert first.receipt and again.receipt == first.receipt  # type: ignore[attr-defined]


def test_each_step_of_a_batch_has_the_receipt_of_its_own_event(path: str) -> None:
    with open_runtime(path) as memory:
        write_skill(memory, "tea", "x")
        report = memory.batch(
            requests=[
                {"op": "skill.set_enabled", "args": {"name": "tea", "enabled": False}},
                {"op": "skill.delete", "args": {"name": "tea"}},
            ]
        )
        found = [check(memory, each["receipt"]) for each in report.reports]
        assert [each.kind for each in found] == ["skill.disabled", "skill.deleted"]
        assert all(each.valid for each in found)
        assert found[0].event != found[1].event


def test_keys_are_loaded_before_the_writer_begins(path: str) -> None:
    """By the part of a handler that runs on the caller's thread."""
    with open_runtime(path) as memory:
        skill = HANDLERS["skill.delete"]
        assert isinstance(skill, Write)
        where = Conversation(conversation_id="c1")
        memory.request_transcript_lifecycle(
            conversation=where, action="mask", turn_ids=("t1",), reason="r", dry_run=True
        )
        assert identity_of(memory)._made is None, "a dry run signs nothing"
        skill.prepare(invocation_of(memory), RuntimeSkillDeleteRequest(name="tea"))
        assert identity_of(memory)._made is not None


def test_the_page_of_the_store_tells_every_reason_and_every_field() -> None:
    page = (Path(__file__).parents[2] / "docs" / "store.md").read_text()
    named = {*get_args(ReceiptFault), *receipts.SpaceBody.__struct_fields__}
    assert {name for name in named if f"`{name}`" not in page} == set()
