"""Nobody learns what they may not see by trying guesses on it: not by committing again, nor by digests or receipts."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest

from beetle.contracts.codec import to_plain
from beetle.contracts.common import WireScope
from beetle.contracts.errors import BeetleError
from beetle.open import Opened, open_store
from beetle.runtime.host.caller import Caller
from beetle.runtime.pipeline.invocation import Call
from tests.building import CONVERSATION, candidate, candidates, message, step, talk, turn
from tests.conformance.doors import PROFILE, Plain
from tests.governance.material import ASKERS, OWNER

SECRET = "mara cannot swim"
GUESSES = (SECRET, "mara can swim", "", "x" * 500)
DEVICE = Caller(
    "device:pad", "device", frozenset({"transcript", "write", "recall", "inspect"}), ("model_context", "host_ui"),
    "unix_socket", OWNER, "agent-main",
)  # fmt: skip
BLIND = (DEVICE, ASKERS["operator"].caller, ASKERS["panel"].caller, ASKERS["auditor"].caller, ASKERS["exporter"].caller)
OWN = ASKERS["owner"].caller
AUDITOR = ASKERS["auditor"].caller


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    found = open_store(str(tmp_path_factory.mktemp("guesses") / "store.db"), PROFILE)
    yield found
    found.store.close()


def call(opened: Opened, caller: Caller, op: str, args: Plain, key: str | None = None) -> Plain:
    asked = Call(op, args, caller, WireScope(owner_id=OWNER), idempotency_key=key)
    return json.loads(json.dumps(to_plain(opened.dispatcher.dispatch(asked).report)))


def answer(opened: Opened, caller: Caller, op: str, args: Plain) -> Any:
    """What a caller is told, without the clock and the number of the event."""
    try:
        report = call(opened, caller, op, args)
    except BeetleError as error:
        return error.key
    return {name: value for name, value in report.items() if name != "lifecycle"}


def said(name: str, content: str, visibility: str = "private", **more: Any) -> Plain:
    return turn(name, message(f"m-{name}", content, visibility=visibility), **more)


@pytest.mark.parametrize("caller", BLIND, ids=lambda each: each.name)
@pytest.mark.parametrize("hidden", ["private", "soul", "masked", "deleted"])
def test_a_recommit_has_one_answer_for_who_may_not_see_the_turn(opened: Opened, caller: Caller, hidden: str) -> None:
    name = f"{hidden}-{caller.name}"
    call(
        opened,
        OWN,
        "transcript.commit",
        talk(said(name, SECRET, hidden if hidden in ("private", "soul") else "shared")),
    )
    if hidden in ("masked", "deleted"):
        action = {"masked": "mask", "deleted": "delete_raw"}[hidden]
        call(opened, OWN, "transcript.lifecycle", step(action, name))
    told = [
        answer(opened, caller, "transcript.commit", talk(said(name, guess, visibility)))
        for guess in GUESSES
        for visibility in ("private", "soul", "shared")
    ]
    assert all(each == told[0] for each in told) and told[0]["turns"][0]["outcome"] == "unchanged"


@pytest.mark.parametrize("action", ["mask", "delete_raw"])
def test_a_captured_turn_that_may_not_be_seen_is_compared_neither_in_the_answer_nor_in_the_counts(
    opened: Opened, action: str
) -> None:
    session = {"host_session_id": f"session-{action}", "host_turn_index": 0, "host_kind": "a-host", "role": "user"}
    host = DEVICE._replace(capabilities=DEVICE.capabilities | {"capture"})
    first = call(opened, host, "turn.capture", {**session, "content": SECRET})
    where = {"channel_id": "a-host", "conversation_id": session["host_session_id"]}
    call(opened, OWN, "transcript.lifecycle", {**step(action, first["turn_id"]), "conversation": where})

    def told(guess: str) -> tuple[Any, Any]:
        report = answer(opened, host, "turn.capture", {**session, "content": guess})
        del report["elapsed_ms"]
        asked = {"host_session_id": session["host_session_id"]}
        (counted,) = answer(opened, host, "host.coverage", asked)["hosts"]
        return report, counted["content_mismatches"]

    answers = [told(guess) for guess in (SECRET, "mara can swim", SECRET)]
    assert answers[0][0]["dedup_hit"] and all(each == answers[0] for each in answers)


def test_what_its_caller_sees_is_still_compared_and_a_key_still_repeats(opened: Opened) -> None:
    principal = DEVICE._replace(name="pad", kind="principal")  # a device has keys for as long as its row is there
    for caller, visibility in ((OWN, "private"), (ASKERS["agent"].caller, "private"), (principal, "shared")):
        name = f"seen-{caller.name}"
        first = call(opened, caller, "transcript.commit", talk(said(name, SECRET, visibility)), key=name)
        assert call(opened, caller, "transcript.commit", talk(said(name, SECRET, visibility)), key=name) == first
        same = answer(opened, caller, "transcript.commit", talk(said(name, SECRET, visibility)))
        assert same["turns"][0]["outcome"] == "unchanged"
        assert answer(opened, caller, "transcript.commit", talk(said(name, "other", visibility))) == "conflict"


def test_a_label_that_is_not_shown_is_no_oracle_either(opened: Opened) -> None:
    def labelled(label: str) -> Plain:
        ref = {"kind": "file", "ref_id": "f1", "label": label, "visibility": ["operator_audit"]}
        return talk(said("label", "in the open", "shared", host_refs=[ref]))

    call(opened, OWN, "transcript.commit", labelled(SECRET))
    told = [answer(opened, DEVICE, "transcript.commit", labelled(guess)) for guess in GUESSES[:2]]
    assert told[0] == told[1]
    assert answer(opened, OWN, "transcript.commit", labelled(GUESSES[1])) == "conflict"


@pytest.mark.parametrize("caller", [DEVICE, ASKERS["operator"].caller], ids=lambda each: each.name)
def test_a_private_candidate_is_judged_as_if_nothing_were_there(opened: Opened, caller: Caller) -> None:
    call(opened, OWN, "transcript.commit", talk(said(f"heard-{caller.name}", f"{SECRET}\nmara can swim", "shared")))

    def kept(who: Caller, content: str) -> Plain:
        ref = f"evidence:local/talk/heard-{caller.name}"
        given = candidate(
            "c1", content, target="private_garden", privacy="subject_private", topic="", evidence_refs=[ref]
        )  # fmt: skip
        told = answer(opened, who, "memory.write", candidates(given))
        for outcome in told["outcomes"]:
            assert outcome.pop("record_id").startswith("p-")
        for each in told["derived_refs"]:
            each.pop("derived")
        return told

    kept(OWN, SECRET)
    assert kept(caller, SECRET) == kept(caller, "mara can swim") == kept(caller, "mara can swim")
    assert kept(OWN, SECRET)["outcomes"][0]["reason"] == "unchanged"


def test_the_event_log_does_not_tell_that_a_private_text_is_there(opened: Opened) -> None:
    reader = ASKERS["operator"].caller

    def logged(content: str, authority: str = "user_asserted", who: Caller = reader) -> list[Plain]:
        head = call(opened, OWN, "event_log.read", {"newest_first": True, "limit": 1})["head"]
        given = candidate(
            "c9", content, target="private_garden", privacy="subject_private", topic="", authority=authority
        )  # fmt: skip
        call(opened, who, "memory.write", candidates(given))
        return [each["subject"] for each in call(opened, reader, "event_log.read", {"after": head})["rows"]]

    logged("waits for a word", "assistant_claimed", OWN)
    logged("is kept", who=OWN)
    assert logged("is kept") == logged("waits for a word") == logged("was never said")
    shown = call(opened, OWN, "event_log.read", {"newest_first": True, "limit": 1})["rows"][0]["subject"]
    assert shown["reason"] == "created" and shown["record_id"]


def test_a_digest_shown_to_an_audit_is_of_its_record_alone(opened: Opened) -> None:
    call(opened, OWN, "transcript.commit", talk(said("digest", SECRET)))
    call(
        opened,
        AUDITOR,
        "transcript.commit",
        talk(said("digest-guess", SECRET), said("digest-shared", SECRET, "shared")),
    )

    asked = {"conversation": CONVERSATION, "view": "operator_audit", "limit": 100}

    def shown() -> list[str]:
        pages = call(opened, AUDITOR, "transcript.replay", asked)["turns"]
        marks = [each["redacted"].get("digest") for one in pages for each in one["messages"] if "redacted" in each]
        return [each for each in marks if each is not None]

    assert len(set(shown())) == len(shown()) >= 3 and shown() == shown()


def test_the_digest_of_a_fact_is_of_its_record_alone(opened: Opened) -> None:
    for topic in ("swimming", "guess"):
        given = candidate("c1", SECRET, topic=topic)
        call(opened, OWN, "memory.write", candidates(given))
    marks = [each["digest"] for each in call(opened, OWN, "long_term.list", {"view": "operator_audit"})["records"]]
    assert len(set(marks)) == 2 and None not in marks


def test_a_receipt_does_not_tell_that_two_texts_are_equal(opened: Opened) -> None:
    call(opened, OWN, "transcript.commit", talk(said("receipt", SECRET), said("receipt-guess", SECRET)))

    def digest(name: str) -> str:
        body = call(opened, DEVICE, "transcript.lifecycle", step("mask", name))["receipt"].split(".")[1]
        return json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))["digest"]

    assert digest("receipt") != digest("receipt-guess")
