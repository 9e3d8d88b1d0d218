"""What is kept of the first report of an idempotency key: nothing that its caller said; and what a repeat answers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from beetle.contracts import codec
from beetle.contracts.names import ViewName
from beetle.contracts.operations import OPERATIONS
from beetle.open import Opened, open_store
from beetle.runtime.areas.table import HANDLERS
from beetle.runtime.host.caller import Caller
from beetle.runtime.pipeline.first_reports import leaves_out
from beetle.runtime.pipeline.handlers import Plain as PlainHandler
from beetle.runtime.pipeline.handlers import Read, Write
from beetle.store import idempotency
from beetle.store.engine.write_transaction import WriteTransaction
from tests.building import candidate, candidates, turn
from tests.cases import CASES, WORD, Case, Prepared
from tests.conformance.doors import InProcess, Plain, embedded_caller

SAID = "quagga"
"""Stands in all texts of the cases in place of the word that names their records."""
IDS = frozenset({
    "action", "agent_id", "algorithm", "candidates.authority", "candidates.candidate_id", "candidates.privacy",
    "candidates.target", "capabilities", "cf", "chain_key", "conversation.conversation_id", "decision", "device_id",
    "episode_id", "event.event_id", "event.event_type", "event.session_id", "host_key", "host_pubkey_b64",
    "host_session_id", "id", "ids",
    "job_name", "key_id", "kind", "mode", "name", "new_chain_key", "proposal_ids", "proposals.kind",
    "proposals.proposal_id", "proposals.target", "record_id", "ref", "registry_id",
    "requests.args.conversation.conversation_id", "requests.args.turns.messages.message_id",
    "requests.args.turns.messages.role", "requests.args.turns.turn_id", "requests.op", "role", "skill_id",
    "snapshot_id", "source", "target", "target_chat_id", "thought_type", "tools.tool_id", "turn.messages.message_id",
    "turn.messages.role", "turn.turn_id", "turn_ids", "turns.host_refs.kind", "turns.host_refs.ref_id",
    "turns.messages.message_id", "turns.messages.role", "turns.turn_id", "writes.name",
})  # fmt: skip
"""Arguments that are names of records, or words of the contract; in what holds them, by a dot. All others are texts."""
NOT_ANSWERED_AGAIN = {
    "chunk.import_tree": "paths of refused files",
    "harness.run": "texts of its fixtures",
    "memory.import": "the fingerprint, a secret",
    "memory.import_space": "the fingerprint, a secret",
    "transcript.lifecycle": "labels, which its report shows nobody",
}
ENDS = "memory.close"
KEYED = [case for case in CASES if case.changes and case.key is None]


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    """A store of a profile that hides no operation, which every case uses under an owner of its own."""
    opened = open_store(str(tmp_path_factory.mktemp("first") / "beetle.db"), profile_name="dev-full")
    yield opened
    opened.store.close()


@pytest.fixture
def anew(full: Opened, tmp_path_factory: pytest.TempPathFactory) -> InProcess:
    return InProcess(f"owner-{uuid4().hex[:12]}", tmp_path_factory.getbasetemp() / "unused.db", shared=full)


def texts(value: Any, path: str = "") -> Iterator[str]:
    """The texts in some arguments, without names of records."""
    if isinstance(value, dict):
        for name, each in value.items():
            yield from texts(each, f"{path}.{name}".removeprefix("."))
    elif isinstance(value, list | tuple):
        for each in value:
            yield from texts(each, path)
    elif isinstance(value, str) and path not in IDS:
        yield value


def said(value: Any, path: str = "") -> Any:
    """Arguments whose texts hold another word than the names of records."""
    if isinstance(value, dict):
        return {name: said(each, f"{path}.{name}".removeprefix(".")) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [said(each, path) for each in value]
    return value.replace(WORD, SAID) if isinstance(value, str) and path not in IDS else value


def asked(op: str, args: Plain) -> Plain:
    # The id of an uploaded skill is otherwise made of its name.
    return said({**args, "skill_id": WORD} if op == "skill_registry.upload" else args)


def first_report(opened: Opened, owner: str, key: str) -> bytes:
    with opened.store.read() as tx:
        rows = list(tx.rows("SELECT space, report FROM idempotency WHERE key = ?", key))
    assert len(rows) == 1, owner
    return rows[0][1]


@pytest.mark.parametrize("case", [case for case in KEYED if case.op != ENDS], ids=lambda case: case.op)
def test_nothing_that_was_said_is_kept_of_a_report(anew: InProcess, case: Case) -> None:
    args = asked(case.op, case.request(Prepared(lambda op, args: anew.prepare(op, asked(op, args)))))
    key = f"key-{uuid4().hex}"
    first = anew.ask(case.op, args, idempotency_key=key).report
    kept = first_report(anew.opened, anew.owner, key)
    assert SAID.encode() not in kept
    assert [each for each in texts(args) if len(each) > 3 and each.encode() in kept] == []
    again = anew.ask(case.op, args, idempotency_key=key)
    assert again == ({**first, **dict.fromkeys(case.once)}, True)


def test_nothing_that_was_said_in_a_batch_is_kept(anew: InProcess) -> None:
    requests = [
        {"op": "chunk.create", "args": {"content": f"the {SAID} secret", "conversation_id": SAID, "tags": [SAID]}},
        {"op": "chain.append", "args": {"thought_type": "Plan", "content": f"the {SAID} plan", "concepts": [SAID]}},
    ]
    first = anew.ask("batch", {"requests": requests}, idempotency_key="batched").report
    assert SAID.encode() not in first_report(anew.opened, anew.owner, "batched")
    assert anew.ask("batch", {"requests": requests}, idempotency_key="batched") == (first, True)
    anew.call("chunk.delete", {"id": first["reports"][0]["chunk"]["id"], "permanent": True})
    chunk, thought = anew.ask("batch", {"requests": requests}, idempotency_key="batched").report["reports"]
    assert (chunk["chunk"]["content"], thought["thought"]["content"]) == (None, f"the {SAID} plan")


ERASED = {
    "chunk.create": {"content": f"the {SAID} secret", "conversation_id": SAID, "tags": [SAID]},
    "chain.append": {"chain_key": "k", "thought_type": "Plan", "content": f"the {SAID} plan", "tags": [SAID]},
    "skill_registry.upload": {
        "skill_id": "up",
        "agent_id": "a",
        "content": f"---\nname: {SAID}\ndescription: a {SAID}\n---\nthe way\n",
    },
}


@pytest.mark.parametrize(("op", "args"), ERASED.items())
def test_a_repeat_says_nothing_of_what_was_forgotten(anew: InProcess, op: str, args: Plain) -> None:
    anew.prepare("chain.bootstrap", {"chain_key": "k", "content": "it begins", "agent_id": "a"})
    first = anew.ask(op, args, idempotency_key="key").report
    token = anew.call("memory.forget", {"query": SAID, "dry_run": True})["token"]
    assert anew.call("memory.forget", {"query": SAID, "token": token})["erasure"] == "done"
    again = anew.ask(op, args, idempotency_key="key")
    assert again.repeated is True
    assert SAID not in str(again.report)
    assert SAID in str(first)
    (record,) = {"chunk", "thought", "skill"} & set(first)
    ids = {"id", "skill_id", "ref", "index", "latest_version_id"} & set(first[record])
    assert {name: again.report[record][name] for name in ids} == {name: first[record][name] for name in ids}


def upload(name: str) -> Plain:
    content = f"---\nname: {name}\ndescription: a {name}\n---\nthe way of {name}\n"
    return {"skill_id": "same", "agent_id": "a", "content": content}


def forget(door: InProcess, word: str) -> None:
    token = door.call("memory.forget", {"query": word, "dry_run": True})["token"]
    assert door.call("memory.forget", {"query": word, "token": token})["erasure"] == "done"


def test_a_repeat_shows_nothing_of_another_device_that_has_the_id(anew: InProcess) -> None:
    device_id = f"d-{uuid4().hex}"
    args = {"device_id": device_id, "label": "mine", "capabilities": ["recall"]}
    first = anew.ask("device.add", args, idempotency_key="key").report["device"]
    anew.call("device.remove", {"device_id": device_id})
    gone = anew.ask("device.add", args, idempotency_key="key")
    assert gone.repeated and gone.report["device"] == {**first, "label": "", "state": "revoked"}
    anew.call("device.add", {"device_id": device_id, "label": "another", "capabilities": ["recall", "write"]})
    assert anew.ask("device.add", args, idempotency_key="key") == gone


def test_a_repeat_shows_nothing_of_another_upload_that_has_the_id(anew: InProcess) -> None:
    first = anew.ask("skill_registry.upload", upload(SAID), idempotency_key="key").report["skill"]
    forget(anew, SAID)
    gone = anew.ask("skill_registry.upload", upload(SAID), idempotency_key="key")
    assert (gone.repeated, gone.report["skill"]["status"], gone.report["skill"]["name"]) == (True, "revoked", None)
    assert gone.report["skill"]["latest_version_id"] == first["latest_version_id"]
    anew.call("skill_registry.upload", upload("zebra"))
    assert anew.ask("skill_registry.upload", upload(SAID), idempotency_key="key") == gone


def test_a_repeat_says_that_a_chunk_is_no_live_one_once_it_was_deleted(anew: InProcess) -> None:
    args = {"content": "the words", "conversation_id": "c"}
    made = anew.ask("chunk.create", args, idempotency_key="key").report["chunk"]
    anew.call("chunk.delete", {"id": made["id"], "permanent": True})
    gone = anew.ask("chunk.create", args, idempotency_key="key").report["chunk"]
    assert (made["archived"], gone["archived"], gone["content"]) == (False, True, None)


def test_a_repeat_says_that_nothing_keeps_a_snapshot_that_is_gone(anew: InProcess) -> None:
    made = anew.ask("snapshot.create", {"label": SAID}, idempotency_key="key").report["snapshot"]
    (Path(anew.call("snapshot.list")["folder"]) / f"{made['snapshot_id']}.beetle-snapshot").unlink()
    gone = anew.ask("snapshot.create", {"label": SAID}, idempotency_key="key").report["snapshot"]
    assert made["kept_by"] and gone == {**made, "label": None, "kept_by": []}


def test_a_repeated_batch_says_that_it_was_done_although_what_it_read_is_gone(anew: InProcess) -> None:
    requests = [
        {"op": "skill_registry.upload", "args": upload(SAID)},
        {"op": "skill_registry.read", "args": {"skill_id": "same"}},
    ]
    first = anew.ask("batch", {"requests": requests}, idempotency_key="batched").report["reports"]
    assert SAID in str(first[1])
    again = anew.ask("batch", {"requests": requests}, idempotency_key="batched")
    assert again.repeated and [each["skill"] for each in again.report["reports"][:1]] == [first[0]["skill"]]
    assert again.report["reports"][1]["content"] == first[1]["content"]
    forget(anew, SAID)
    again = anew.ask("batch", {"requests": requests}, idempotency_key="batched")
    written, read = again.report["reports"]
    assert (again.repeated, written["skill"]["status"], read) == (True, "revoked", {})


def test_a_repeat_answers_a_record_as_it_is_now(anew: InProcess) -> None:
    args = {"content": "the first words", "conversation_id": "c"}
    made = anew.ask("chunk.create", args, idempotency_key="key").report["chunk"]
    anew.call("chunk.update", {"id": made["id"], "content": "other words"})
    again = anew.ask("chunk.create", args, idempotency_key="key").report["chunk"]
    assert again == anew.call("chunk.get", {"id": made["id"], "count_access": False})["chunk"]
    assert again["content"] == "other words"


def test_a_report_that_is_kept_without_texts_is_answered_again_with_them() -> None:
    kept = {row.name: HANDLERS[row.name] for row in OPERATIONS if row.effect != "read" and leaves_out(row.report)}
    again = (name for name, each in kept.items() if isinstance(each, Write | PlainHandler) and each.again is not None)
    never = (name for name, each in kept.items() if isinstance(each, Read))
    assert set(kept) - set(again) - set(never) == set(NOT_ANSWERED_AGAIN)


WHERE = {"channel_id": "local", "conversation_id": "talk"}
ERASES = {"conversation": WHERE, "action": "delete_raw", "before": "2099-01-01T00:00:00Z", "reason": "r"}
STAGED: list[tuple[str, Plain]] = [
    ("memory.forget", {"query": "sensor", "dry_run": True}),
    ("transcript.lifecycle", {**ERASES, "dry_run": True}),
    ("memory.finalize_turn", {"conversation": WHERE, "turn": turn("t2", "it rains"), "maintain": False}),
    ("transcript.lifecycle", ERASES),
]
"""Operations whose first report is answered as it was."""


@pytest.fixture
def own(anew: InProcess) -> Caller:
    """A principal that sees all, in a space with private facts, and a turn whose host ref not every view shows."""
    private = (candidate(f"c{each}", f"the sensor {each} reads", topic=f"sensor {each}", privacy="subject_private",
                         authority="tool_observed") for each in range(3))  # fmt: skip
    anew.prepare("memory.write", candidates(*private))
    host_refs = [{"kind": "file", "ref_id": "diary", "visibility": ["host_ui"]}]
    anew.prepare("transcript.commit", {"conversation": WHERE, "turns": [turn("t1", "hello", host_refs=host_refs)]})
    views: tuple[ViewName, ...] = ("host_ui", "raw_owner")
    return embedded_caller(anew.owner)._replace(name="principal:u", kind="principal", views=views)


def repacked(tx: WriteTransaction, owner: str, key: str) -> None:
    """What a key was answered first as earlier builds kept it, without who was."""
    found = idempotency.find(tx, "principal:u", f"space:{owner}", key)
    assert found is not None
    rights, report = codec.unpack_any(found[1].report)
    assert rights and isinstance(report, dict)
    idempotency.restate(tx, "principal:u", f"space:{owner}", key, found[1]._replace(report=codec.pack(report)))


def test_what_a_key_was_answered_is_told_to_nobody_who_has_lost_a_right_since(anew: InProcess, own: Caller) -> None:
    fewer = own._replace(views=("model_context",), capabilities=own.capabilities - {"private.read"})
    more = own._replace(views=(*own.views, "export"), capabilities=own.capabilities | {"another"})
    for number, (op, args) in enumerate(STAGED):
        key = f"key-{number}"
        first = anew.ask(op, args, idempotency_key=key, caller=own)
        for lost in (fewer, own._replace(views=("host_ui",)), own._replace(capabilities=fewer.capabilities)):
            refused = anew.refused("conflict", op, args, idempotency_key=key, caller=lost)
            assert "more rights" in refused.message and "new key" in refused.hint
            assert not any(word in f"{refused} {refused.details}" for word in ("diary", "sensor", "long_term:"))
        for caller in (own, more):
            assert anew.ask(op, args, idempotency_key=key, caller=caller) == (first.report, True)
        anew.opened.store.write(partial(repacked, owner=anew.owner, key=key))
        assert anew.ask(op, args, idempotency_key=key, caller=fewer).repeated is True
        assert anew.ask(op, args, idempotency_key=key, caller=own) == (first.report, True)
