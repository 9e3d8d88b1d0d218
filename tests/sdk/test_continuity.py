"""Snapshots and archives between stores of every backend, two profiles, both modes, private and not."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from beetle.contracts.names import BACKEND_NAMES
from beetle.runtime.planes.gathering import Chat
from tests.building import message, skill, talk, turn, write
from tests.sdk.moving import (
    COMPACT,
    DEV,
    HERE,
    THERE,
    WORDS,
    Home,
    fill,
    learn_shared,
    ref,
    seen,
    talk_shared,
)

CHAT = Chat("local", "chat-1", "chat-1")


@pytest.fixture
def homes(tmp_path: Path) -> Iterator[Any]:
    """Opens stores, and closes them in the end."""
    made: list[Home] = []
    numbers = itertools.count()

    def open_home(**how: Any) -> Home:
        made.append(Home(tmp_path, f"home{next(numbers)}", **how))
        return made[-1]

    yield open_home
    for each in made:
        each.close()


ELSEWHERE = [(backend, DEV) for backend in BACKEND_NAMES] + [("embedded", COMPACT)]
WAYS = [
    ("in-memory", "embedded", COMPACT), ("sqlite", "file", DEV), ("file", "in-memory", DEV), ("embedded", "sqlite", DEV)
]  # fmt: skip


@pytest.mark.parametrize(("source", "backend", "profile"), WAYS)
def test_an_archive_with_private_material_moves_everything_to_any_backend(
    homes: Any, source: str, backend: str, profile: str
) -> None:
    home, other = homes(backend=source), homes(backend=backend, profile=profile)
    fill(home)
    data, taken = home.archive(private=True)
    before = seen(home)
    for mode in ("bootstrap_import", "full_restore"):
        report = other.take_space(data, mode, private=True)
        assert report["counts"] == taken["counts"]
        assert report["state_fingerprint"] == taken["state_fingerprint"]
        assert seen(other) == before
        other.is_sound()
    assert other.archive(private=True)[1]["state_fingerprint"] == taken["state_fingerprint"]


@pytest.mark.parametrize("backend", BACKEND_NAMES)
def test_a_store_of_shared_memory_is_the_same_to_the_last_fingerprint_after_it_was_moved(
    homes: Any, backend: str
) -> None:
    home, other = homes(), homes(backend=backend)
    talk_shared(home)
    learn_shared(home)
    data, taken = home.archive(private=True)
    assert taken["left_out"] == {}
    other.take_space(data, private=True)
    assert other.fingerprint() == home.fingerprint()
    assert other.fingerprint(CHAT) == home.fingerprint(CHAT)


@pytest.mark.parametrize("private", [False, True], ids=["public", "private"])
@pytest.mark.parametrize(("backend", "profile"), ELSEWHERE)
def test_a_chat_moves_with_its_evidence_its_skills_and_its_facts(
    homes: Any, backend: str, profile: str, private: bool
) -> None:
    home, other = homes(), homes(backend=backend, profile=profile)
    fill(home)
    data, taken = home.snapshot(private=private)
    assert taken["sealed"] == private
    for mode in ("bootstrap_import", "full_restore"):
        report = other.take(data, "moved", mode, private)
        assert (report["counts"], report["state_fingerprint"]) == (taken["counts"], taken["state_fingerprint"])
        assert bool(report["replaced"]) == (mode == "full_restore")
        assert other.snapshot("moved", private)[1]["state_fingerprint"] == taken["state_fingerprint"]
        other.is_sound()
    facts = {each["content"] for each in other.ask("long_term.list", {"state": "all", "view": "raw_owner"})["records"]}
    shared = {"The key is in the shed.", "The pump is quiet.", "The pump is loud.", "The line holds pressure."}
    assert facts == (shared | {"Mara's knee hurts."} if private else shared)
    skills = {each["name"] for each in other.ask("skill.list", {})["runtime_skills"]}
    assert skills == {"runtime_skill__pump", "runtime_skill__off"}
    hits = other.ask("memory.recall", {"query": "knee pump invoice", "limit": 50})["hits"]
    assert any("hurts" in hit["excerpt"] for hit in hits) == private
    assert not any("invoice" in hit["excerpt"].lower() for hit in hits)


def test_refs_lead_to_the_chat_that_a_snapshot_became(homes: Any) -> None:
    home, other = homes(), homes(owner="piet")
    fill(home)
    other.take(home.snapshot()[0], "moved")
    moved = {"channel_id": "local", "conversation_id": "moved"}
    shown = other.ask("skill.detail", {"name": "pump"})
    assert [(each["text"], each["resolves"]) for each in shown["citations"]] == [(ref("t3", where=moved), True)]
    fact = other.ask("long_term.list", {"query": "shed"})["records"][0]
    cited = other.ask("long_term.detail", {"ref": fact["ref"]})["derived_refs"]
    assert [each["evidence"] for each in cited] == [ref("t1", "m1", moved)]
    step = {"conversation": moved, "action": "review", "turn_ids": ["t1", "t2", "t3"], "reason": "r"}
    derived = {each["derived"] for each in other.ask("transcript.lifecycle", step)["derived_refs"]}
    assert {fact["ref"], "procedural:runtime_skill__pump/1", "procedural:runtime_skill__pump/2"} < derived
    assert other.ask("memory.replay", {"chat_id": "moved"})["conversation"] == moved


def test_another_device_s_chat_replaces_nothing_unasked_and_an_empty_place_says_whose_it_is(homes: Any) -> None:
    home, other, empty = homes(), homes(), homes()
    talk_shared(home)
    talk_shared(other)
    data, sent = home.snapshot()
    before = other.fingerprint()
    unasked = {"snapshot": data, "target_chat_id": "chat-1", "mode": "full_restore"}
    error = other.refused("conflict", "memory.import", unasked)
    assert error.details["device"] == sent["device"] and "other_store" in error.hint
    assert other.fingerprint() == before
    assert home.ask("memory.import", unasked)["own"] is True
    archive, _ = home.archive()
    for report in (other.take(data, "chat-2"), empty.take_space(archive)):
        assert (report["own"], report["device"]) == (False, sent["device"])
    asked = other.take(data, mode="full_restore", discard_withheld=True)
    assert (asked["own"], asked["device"]) == (False, sent["device"])


def test_a_chat_may_be_copied_within_its_own_space(homes: Any) -> None:
    home = homes()
    talk_shared(home)
    home.judge("The pump is loud.", topic="pump", evidence_refs=[ref("t2")])
    before = home.fingerprint(CHAT)
    data, taken = home.snapshot()
    home.take(data, "copy")
    assert home.fingerprint(CHAT) == before
    assert home.snapshot("copy")[1]["state_fingerprint"] == taken["state_fingerprint"]
    records = [each["record_id"] for each in home.ask("long_term.list", {})["records"]]
    assert len(set(records)) == 2
    home.is_sound()


def test_a_skill_of_the_same_name_from_another_chat_is_not_overwritten(homes: Any) -> None:
    home, other = homes(), homes()
    home.ask("memory.write", write(skill("pump", content="this way")))
    other.ask("memory.write", write(skill("pump", content="that way", source_chat_id="elsewhere")))
    before = other.head()
    for mode in ("bootstrap_import", "full_restore"):
        data, _ = home.snapshot()
        error = other.refused("conflict", "memory.import", {"snapshot": data, "target_chat_id": "new", "mode": mode})
        assert "runtime_skill__pump" in error.message
    assert other.head() == before
    assert other.ask("skill.detail", {"name": "pump"})["procedure"] == "that way"


def test_a_scope_that_is_not_empty_takes_no_bootstrap(homes: Any) -> None:
    home, other = homes(), homes()
    talk_shared(home)
    data, _ = home.snapshot()
    other.take(data)
    before = (other.head(), other.fingerprint())
    error = other.refused("conflict", "memory.import", {"snapshot": data, "target_chat_id": "chat-1",
                                                        "mode": "bootstrap_import"})  # fmt: skip
    assert "turns 3" in error.message and error.details["turns"] == 3
    archive, _ = home.archive()
    other.refused("conflict", "memory.import_space", {"archive": archive, "mode": "bootstrap_import"})
    assert (other.head(), other.fingerprint()) == before


def test_an_import_under_an_idempotency_key_is_made_once(homes: Any) -> None:
    home, other = homes(), homes()
    fill(home)
    data, _ = home.snapshot()
    args = {"snapshot": data, "target_chat_id": "chat-1", "mode": "bootstrap_import"}
    first = other.outcome("memory.import", args, key="k")
    again = other.outcome("memory.import", args, key="k")
    assert (first.repeated, again.repeated) == (False, True)
    assert first.report.state_fingerprint is not None and again.report.state_fingerprint is None
    assert again.report.receipt == first.report.receipt
    other.refused("conflict", "memory.import", {**args, "target_chat_id": "chat-2"}, key="k")


def test_a_stored_answer_and_digest_tell_nothing_of_content_or_passphrase(homes: Any) -> None:
    from beetle.contracts.continuity import MemoryImportRequest
    from beetle.domain.digest import request_digest

    home, other = homes(), homes()
    fill(home)
    data, taken = home.snapshot(private=True)
    other.ask("memory.import", {"snapshot": data, "target_chat_id": "chat-1", "mode": "bootstrap_import",
                                "passphrase": WORDS}, key="k")  # fmt: skip
    ((digest, report),) = other.rows("SELECT request, report FROM idempotency")
    plain = MemoryImportRequest(snapshot=data, target_chat_id="chat-1", mode="bootstrap_import")
    named = ("mara", "agent-main", "local", "chat-1", None)
    assert digest == request_digest(other.opened.store.key, "memory.import", named, plain)
    assert taken["state_fingerprint"].encode() not in report
    assert WORDS.encode() not in other.bytes_on_disk()


def test_a_restored_chat_is_what_it_was_and_nothing_of_what_it_replaced_is_left(homes: Any) -> None:
    home = homes()
    talk_shared(home)
    learn_shared(home)
    data, taken = home.snapshot()
    others = (
        home.ask("skill.detail", {"name": "mail"})["raw_content"],
        home.ask("long_term.list", {"query": "invoice"}),
    )
    home.ask("transcript.commit", talk(turn("t9", "zanzibar is replaced", host_refs=[
        {"kind": "k", "ref_id": "r", "label": "zanzibarlabel"}]), conversation=HERE))  # fmt: skip
    home.ask("memory.write", write(skill("pump", content="zanzibarskill")))
    home.judge("zanzibarfact holds", topic="pump", evidence_refs=[ref("t9")])
    report = home.take(data, mode="full_restore")
    assert report["erasure"] == "done" and report["replaced"]["turns"] == 4
    assert home.snapshot()[1]["state_fingerprint"] == taken["state_fingerprint"]
    assert home.ask("skill.detail", {"name": "mail"})["raw_content"] == others[0]
    assert home.ask("long_term.list", {"query": "invoice"})["records"] == others[1]["records"]
    assert home.ask("memory.recall", {"query": "zanzibar zanzibarskill zanzibarfact"})["hits"] == []
    home.is_sound()
    home.close()
    assert b"zanzibar" not in home.bytes_on_disk()


def test_what_a_snapshot_never_carries_is_not_lost_unasked(homes: Any) -> None:
    home, other = homes(), homes()
    talk_shared(home)
    fill(other)
    data, _ = home.snapshot()
    before = other.fingerprint()
    args = {"snapshot": data, "target_chat_id": "chat-1", "mode": "full_restore", "other_store": True}
    error = other.refused("conflict", "memory.import", args)
    lost = {name: error.details.get(name) for name in ("messages", "private_facts", "private_items", "candidates")}
    assert lost == {"messages": 2, "private_facts": 1, "private_items": 1, "candidates": None}
    assert "discard_withheld" in error.hint
    archive, _ = home.archive()
    args = {"archive": archive, "mode": "full_restore", "other_store": True}
    error = other.refused("conflict", "memory.import_space", args)
    assert error.details["candidates"] == 1
    assert other.fingerprint() == before
    other.take(data, mode="full_restore", discard_withheld=True)
    other.is_sound()
    other.take_space(archive, "full_restore", discard_withheld=True)
    assert other.fingerprint() != before
    assert other.ask("transcript.conversations", {})["conversations"] == []
    other.is_sound()


def test_a_fact_that_was_superseded_from_a_restored_chat_is_stale_when_its_successor_is_gone(homes: Any) -> None:
    home = homes()
    talk_shared(home)
    data, _ = home.snapshot()
    old = home.judge("The pump is quiet.", topic="pump", evidence_refs=[ref("t1", where=THERE)])
    home.judge("The pump is loud.", topic="pump", evidence_refs=[ref("t2")])
    home.take(data, mode="full_restore")
    assert home.ask("long_term.detail", {"ref": old["ref"]})["record"]["state"] == "stale"
    home.is_sound()
    old = home.judge("The tank is empty.", topic="tank", evidence_refs=[ref("t1", where=THERE)])
    new = home.judge("The tank is full.", topic="tank", evidence_refs=[ref("t2")])
    data, _ = home.snapshot()
    home.take(data, mode="full_restore")
    assert home.ask("long_term.detail", {"ref": old["ref"]})["superseded_by"] == new["ref"]
    home.is_sound()


def test_what_waits_to_be_judged_goes_with_the_turn_that_it_rests_on(homes: Any) -> None:
    home = homes()
    talk_shared(home)
    data, _ = home.snapshot()
    home.ask("transcript.commit", talk(turn("t9", message("m9", "zanzibar", role="assistant")), conversation=HERE))
    for place, topic in ((ref("t9", "m9"), "lost"), (ref("t1", "m2"), "kept")):
        claim = home.judge(f"The assistant said {topic}.", authority="assistant_claimed", topic=topic,
                           evidence_refs=[place])  # fmt: skip
        assert claim["outcome"] == "deferred"
    home.take(data, mode="full_restore")
    assert home.rows("SELECT topic FROM candidate_body") == [("kept",)]
    home.is_sound()


def test_a_turn_that_moved_whole_is_the_same_turn_to_who_commits_it_again(homes: Any) -> None:
    home, other = homes(), homes()
    said = talk(turn("t1", message("m1", "hello", actor={"speaker": "Mara"}), "there"), conversation=HERE)
    home.ask("transcript.commit", said)
    other.take(home.snapshot()[0])
    assert other.ask("transcript.commit", said)["turns"][0]["outcome"] == "unchanged"


def test_masked_and_deleted_content_leaves_in_no_export(homes: Any) -> None:
    home = homes()
    home.ask("transcript.commit", talk(
        turn("t1", "canarymasked words"), turn("t2", "canarydeleted words"), turn("t3", "kept words"),
        turn("t4", message("b", "canarybackend", visibility="backend"), message("o", "canaryoperator",
                                                                              visibility="operator")),
        conversation=HERE,
    ))  # fmt: skip
    for action, turn_id in (("mask", "t1"), ("delete_raw", "t2")):
        home.ask("transcript.lifecycle", {"conversation": HERE, "action": action, "turn_ids": [turn_id], "reason": "r"})
    public, told = home.snapshot()
    assert (told["counts"]["messages"], told["left_out"]["messages"]) == (1, 3)
    other = homes()
    for data, private in ((home.archive(private=True)[0], True), (home.archive()[0], False)):
        other.take_space(data, "full_restore", private, discard_withheld=True)
        assert b"canary" not in other.bytes_on_disk()
    assert b"kept words" in public and b"canary" not in public


def test_a_public_archive_names_no_transcript(homes: Any) -> None:
    home, other = homes(), homes()
    fill(home)
    data, told = home.archive()
    assert not {"conversations", "turns", "messages", "aliases", "candidates", "private"} & set(told["counts"])
    for word in (b"coolant", b"Noted: the", b"Good night", b"knee", b"roses", b"valve opened", b"/t5"):
        assert word not in data
    other.take_space(data)
    assert other.rows("SELECT count(*) FROM derived_ref WHERE evidence LIKE 'evidence:%'") == [(0,)]
    assert other.rows("SELECT count(*) FROM remembered_conversation") == [(0,)]


def test_a_fact_that_became_shared_leaves_without_its_private_past(homes: Any) -> None:
    home, other = homes(), homes()
    made = home.judge("canaryprivate first words", privacy="subject_private", topic="t")
    change = {"ref": made["ref"], "reason": "because", "view": "raw_owner"}
    home.ask("long_term.mutate", {**change, "action": "correct", "content": "words that may be shared"})
    home.ask("long_term.mutate", {**change, "action": "change_scope", "privacy": "shared_with_subject"})
    data, told = home.archive()
    assert told["left_out"] == {"private_revisions": 2}
    assert b"canaryprivate" not in data and b"may be shared" in data
    other.take_space(data)
    other.is_sound()
    assert [each["content"] for each in other.ask("long_term.list", {})["records"]] == ["words that may be shared"]


def test_a_policy_of_the_target_holds_for_what_comes_in(homes: Any) -> None:
    home, other = homes(), homes()
    talk_shared(home)
    home.judge("The pump is loud.", topic="Health", evidence_refs=[ref("t2")])
    other.ask("long_term.policy", {"action": "suppress", "topic": "health"})
    before = other.head()
    data, _ = home.snapshot()
    error = other.refused("privacy_denied", "memory.import", {"snapshot": data, "target_chat_id": "chat-1",
                                                              "mode": "bootstrap_import"})  # fmt: skip
    assert "suppress" in error.message and "pump" not in error.message
    other.ask("long_term.policy", {"action": "resume", "topic": "health"})
    assert other.head() != before
    other.take(data)


def test_a_chat_of_which_nothing_is_known_cannot_be_taken_out(homes: Any) -> None:
    home = homes()
    home.refused("not_found", "memory.export", {"chat_id": "nowhere"})
    talk_shared(home)
    home.refused("not_found", "memory.export", {"chat_id": "nowhere"})


def test_an_alias_that_cannot_be_trusted_stands_for_nothing(homes: Any) -> None:
    home = homes()
    talk_shared(home)
    data, _ = home.snapshot()
    home.ask("transcript.commit", talk(turn("x", "another claims it"), conversation={"conversation_id": "rival"}))
    for op, args in (
        ("memory.replay", {"chat_id": "chat-1"}), ("memory.export", {"chat_id": "chat-1"}),
        ("memory.import", {"snapshot": data, "target_chat_id": "chat-1", "mode": "full_restore"}),
    ):  # fmt: skip
        error = home.refused("conflict", op, args)
        assert "conversation_id" in error.hint
    named = {"chat_id": "chat-1", "conversation_id": "chat-1"}
    assert home.ask("memory.replay", {"chat_id": "chat-1"}, **named)["turns"]
    step = {"conversation": THERE, "action": "mask", "turn_ids": ["t1"], "reason": "r"}
    home.ask("transcript.lifecycle", step, channel="mail")
    for op in ("memory.replay", "memory.export"):
        home.refused("privacy_denied", op, {"chat_id": "inbox"}, channel="mail", chat_id="inbox")
