"""hello, memory.capabilities, memory.inspect, store.verify, batch, subscribe; deadlines."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from beetle import __version__
from beetle.contracts.capabilities import CAPABILITY_NAMES
from beetle.contracts.operations import OPERATIONS, Operation
from beetle.runtime.host.profile import load_profile
from tests.building import CONVERSATION, contents, found_texts, replay, skill, step, talk, turn, write
from tests.conformance.doors import ANSWER_S, PROFILE, Connection, Door, InProcess, Plain, Socket, embedded_caller

ALLOWED = load_profile(PROFILE).capabilities.allowed
NOT_ALLOWED = {row.name for row in OPERATIONS if row.capability and row.capability not in ALLOWED}
"""Operations that the doors' profile hides from every caller, whatever it was granted."""


def test_the_profile_of_the_doors_hides_the_sandbox_and_the_harness() -> None:
    sandbox = {"evolve.propose", "evolve.list", "evolve.preview", "evolve.submit"}
    assert {*sandbox, "harness.run"} == NOT_ALLOWED


def test_hello_tells_who_answers_and_what_may_be_asked(door: Door) -> None:
    report = door.call("hello")
    assert (report["server"], report["version"], report["protocol"]) == ("beetle", __version__, 1)
    assert report["profile"] == PROFILE
    assert report["principal"] == door.principal
    assert [(each["name"], each["effect"]) for each in report["operations"]] == [
        (row.name, row.effect) for row in OPERATIONS
    ]
    hidden = {each["name"] for each in report["operations"] if not each["visible"]}
    own = (
        {"private.list", "private.get", "private.delete"} if isinstance(door, Socket) else {"subscribe", "unsubscribe"}
    )
    assert hidden == own | NOT_ALLOWED
    limits = {
        "frame_bytes": 2**20, "nesting": 32, "query_chars": 8192, "message_content_bytes": 2**18, "commit_turns": 200,
        "batch_requests": 200, "recall_limit": 50, "connections": 64, "first_frame_seconds": 10,
        "begun_frame_seconds": 10,
    }  # fmt: skip
    assert {name: report["limits"][name] for name in limits} == limits
    assert report["pid"] > 0 and report["uptime_s"] >= 0


def test_capabilities_say_what_is_visible_and_why_the_rest_is_not(door: Door) -> None:
    report = door.call("memory.capabilities", {})
    assert list(report["capabilities"]) == list(CAPABILITY_NAMES)
    assert report["views"] and set(report["views"]) == set(door.views)
    assert report["backend"] == "sqlite"
    for name, entry in report["capabilities"].items():
        assert entry["visible"] is (entry["reason"] is None), name
    granted = [row.name for row in OPERATIONS if row.capability == "recall"]
    assert report["capabilities"]["recall"]["operations"] == granted
    for name in ("harness", "evolve"):
        assert "profile" in report["capabilities"][name]["reason"]
    assert report["capabilities"]["transcript.raw"]["visible"] is ("raw_owner" in door.views)
    assert report["capabilities"]["private.read"]["visible"] is ("raw_owner" in door.views)


def test_inspection_counts_the_space_and_shows_how_a_query_is_answered(door: Door) -> None:
    empty = door.call("memory.inspect", {})
    assert set(empty["counts"].values()) == {0}
    assert (empty["recall"], empty["recall_hits"], empty["projection"]) == (None, [], None)
    door.prepare("transcript.commit", talk(turn("t1", "a pelican", "b"), turn("t2", "c"), turn("t3", "d")))
    door.prepare("memory.write", write(skill("x", citations=["evidence:local/talk/t1"])))
    door.prepare("skill.edit", {"name": "x", "title": "T", "edit_reason": "r"})
    door.prepare("transcript.lifecycle", step("mask", "t2"))
    door.prepare("transcript.lifecycle", step("delete_raw", "t3"))
    report = door.call("memory.inspect", {"query": "pelican", "system_max_len": 500})
    assert report["counts"] == {
        "conversations": 1, "turns": 3, "messages": 4, "masked_messages": 1, "deleted_messages": 1,
        "runtime_skills": 1, "skill_revisions": 2, "derived_refs": 2, "facts": 0, "stale_facts": 0,
        "superseded_facts": 0, "deleted_facts": 0, "waiting_candidates": 0, "chains": 0, "thoughts": 0,
        "chunks": 0, "archived_chunks": 0,
        "uploaded_skills": 0, "uploaded_skill_versions": 0,
    }  # fmt: skip
    assert "a pelican" in found_texts(report)
    assert report["recall"]["current_conversation"] == CONVERSATION
    assert report["projection"]["characters"] <= report["projection"]["budget"] == 500
    assert report["event_log"]["rows"] > empty["event_log"]["rows"]
    assert len(report["event_log"]["head"]) == 64
    assert (report["store"]["backend"], report["store"]["schema"]) == ("sqlite", empty["store"]["schema"])
    assert report["store"]["path"].endswith("beetle.db")
    assert report["store"]["bytes"] > 0 and report["store"]["pages"] > 0
    assert report["store"]["ceiling_bytes"] == door.budgets.store_bytes
    assert report["operator"]["principal"] == door.principal
    assert report["operator"]["current_conversation"] == CONVERSATION


def test_a_store_after_all_kinds_of_changes_verifies_clean(door: Door) -> None:
    door.prepare("transcript.commit", talk(turn("t1", "one"), turn("t2", "two"), turn("t3", "three")))
    door.prepare("memory.write", write(skill("x"), skill("y", citations=["evidence:local/talk/t1"])))
    door.prepare("transcript.lifecycle", step("mask", "t1"))
    door.prepare("transcript.lifecycle", step("delete_raw", "t2"))
    door.prepare("skill.set_enabled", {"name": "x", "enabled": False})
    door.prepare("skill.delete", {"name": "y"})
    report = door.call("store.verify", {})
    assert report["findings"] == []
    assert report["clean"] is True
    assert report["checked"]["event_log"] >= 6
    quick = door.call("store.verify", {"pages": False})
    assert quick["clean"] is True and "pages" not in quick["checked"]


def batch(*requests: tuple[str, Plain]) -> Plain:
    return {"requests": [{"op": op, "args": args} for op, args in requests]}


def test_a_batch_answers_all_reports_in_order(door: Door) -> None:
    report = door.call(
        "batch",
        batch(
            ("transcript.commit", talk(turn("t1", "a pelican"))),
            ("memory.write", write(skill("x"))),
            ("memory.recall", {"query": "pelican"}),
            ("transcript.replay", {"conversation": CONVERSATION, "view": "operator_audit"}),
            ("memory.capabilities", {}),
        ),
    )
    committed, written, recalled, replayed, shown = report["reports"]
    assert committed["committed"] == 1
    assert written["writes"][0]["outcome"] == "created"
    assert found_texts(recalled) == "a pelican"
    assert contents(replayed) == [None]
    assert shown["profile"]
    changed = [each["lifecycle"]["changed"] for each in report["reports"]]
    assert changed == [True, True, False, False, False]
    assert report["lifecycle"]["event_id"] == written["lifecycle"]["event_id"]


@pytest.mark.parametrize(
    ("bad", "key"),
    [
        (("skill.delete", {"name": "nobody"}), "not_found"),
        (("memory.recall", {"query": ""}), "invalid_request"),
        (("memory.recal", {"query": "x"}), "unknown_operation"),
        (("transcript.replay", {"conversation": CONVERSATION, "view": "raw_owner", "nope": 1}), "invalid_request"),
        (("transcript.commit", talk(turn("known", "otherwise"))), "conflict"),
        (("transcript.commit", talk(turn("big", "x" * (2**18 + 1)))), "payload_too_large"),
    ],
    ids=["not_found", "invalid", "unknown", "unknown-field", "conflict", "too-large"],
)
def test_a_batch_fails_as_a_whole_with_the_index_of_what_failed(door: Door, bad: tuple[str, Plain], key: str) -> None:
    door.prepare("transcript.commit", talk(turn("known", "as it is")))
    good = ("transcript.commit", talk(turn("t1", "one")))
    error = door.refused(key, "batch", batch(good, ("memory.write", write(skill("x"))), bad, good))
    assert error.details["index"] == 2
    assert contents(replay(door)) == ["as it is"]
    assert door.call("skill.list", {})["total"] == 0


@pytest.mark.parametrize("op", [row.name for row in OPERATIONS if not row.batch])
def test_what_may_not_stand_in_a_batch_is_refused(door: Door, op: str) -> None:
    good = ("transcript.commit", talk(turn("t1", "one")))
    with_it: dict[str, Plain] = {"transcript.lifecycle": step("delete_raw", "t1"), "batch": batch(good)}
    hidden = NOT_ALLOWED | (set() if isinstance(door, Socket) else {"subscribe", "unsubscribe"})
    key = "capability_hidden" if op in hidden else "invalid_request"
    if op.startswith("private.") and isinstance(door, Socket):
        key = "forbidden"
    door.refused(key, "batch", batch(good, (op, with_it.get(op, {}))))
    door.refused("not_found", "transcript.replay", {"conversation": CONVERSATION, "view": "host_ui"})


def test_a_batch_has_at_least_one_request_and_no_more_than_the_budget(door: Door) -> None:
    door.refused("invalid_request", "batch", {"requests": []})
    many = [("memory.capabilities", {})] * (door.budgets.batch_requests + 1)
    door.refused("payload_too_large", "batch", batch(*many))
    report = door.call("batch", batch(*many[: door.budgets.batch_requests]))
    assert len(report["reports"]) == door.budgets.batch_requests


def test_events_of_a_subscription_carry_ids_and_kinds_of_this_space_alone(over_socket: Socket) -> None:
    other = {"owner_id": f"{over_socket.owner}-x"}
    with Connection(over_socket) as connection:
        connection.send("subscribe", {"topics": ["transcript", "skill", "lifecycle"]})
        sub = connection.read()["report"]["sub"]
        over_socket.call("transcript.commit", talk(turn("t1", "another's secret")), other)
        over_socket.call("transcript.commit", talk(turn("t1", "a secret")))
        over_socket.call("memory.write", write(skill("x", content="a secret way")))
        over_socket.call("long_term.policy", {"action": "pause", "topic": "another's secret"}, other)
        over_socket.call("long_term.policy", {"action": "pause", "topic": "a secret"})
        frames = [connection.read() for _ in range(3)]
        connection.send("unsubscribe", {"sub": sub})
        answer = connection.read()
    topics = ["transcript", "skill", "lifecycle"]
    assert [(each["sub"], each["topic"]) for each in frames] == [(sub, topic) for topic in topics]
    assert frames[0]["seq"] < frames[1]["seq"] < frames[2]["seq"]
    assert frames[2]["event"]["event"] == "policy_pause"
    assert "secret" not in str(frames)
    assert (answer["ok"], answer["report"]["sub"]) == (True, sub)


def test_subscribing_needs_a_connection_that_stays_open(in_process: InProcess) -> None:
    in_process.refused("capability_hidden", "subscribe", {"topics": ["skill"]})
    in_process.refused("capability_hidden", "unsubscribe", {"sub": "sub-1"})


class Held:
    """A writer that is busy until it is let go, or for `most` seconds."""

    def __init__(self, door: InProcess, most: float) -> None:
        self._begun, self._let_go = threading.Event(), threading.Event()
        self._most = most
        self._holder = threading.Thread(target=door.opened.store.write, args=(self._hold,))

    def _hold(self, tx: Any) -> None:
        del tx
        self._begun.set()
        self._let_go.wait(self._most)

    def busy(self) -> bool:
        return self._holder.is_alive()

    def __enter__(self) -> Held:
        self._holder.start()
        assert self._begun.wait(ANSWER_S)
        return self

    def __exit__(self, *_: object) -> None:
        self._let_go.set()
        self._holder.join()


def test_a_write_whose_deadline_passes_in_the_queue_changes_nothing(in_process: InProcess) -> None:
    with Held(in_process, 0.1):
        error = in_process.refused("deadline_exceeded", "transcript.commit", talk(turn("t1", "late")), deadline_ms=1)
    assert error.retryable is True
    in_process.refused("not_found", "transcript.replay", {"conversation": CONVERSATION, "view": "host_ui"})
    report = in_process.call("transcript.commit", talk(turn("t1", "late")), deadline_ms=60_000)
    assert report["committed"] == 1


def test_a_caller_is_answered_at_its_deadline_and_not_when_the_writer_is_free(in_process: InProcess) -> None:
    with Held(in_process, 3.0) as held:
        error = in_process.refused("deadline_exceeded", "transcript.commit", talk(turn("t1", "late")), deadline_ms=20)
        assert held.busy()
    assert "20 ms" in error.message


def test_a_deadline_that_does_not_pass_does_no_harm(door: Door) -> None:
    report = door.call("transcript.commit", talk(turn("t1", "one")), deadline_ms=60_000)
    assert report["committed"] == 1


def without(capability: str) -> Any:
    """A principal with every grant but one."""
    owner = embedded_caller("owner-one")
    return owner._replace(name="poor", kind="principal", capabilities=owner.capabilities - {capability})


@pytest.mark.parametrize("row", [row for row in OPERATIONS if row.capability], ids=lambda row: row.name)
def test_a_caller_without_a_grant_is_told_which_one_it_lacks(in_process: InProcess, row: Operation) -> None:
    if row.name in NOT_ALLOWED:
        # The same answer with the grant and without: nobody can be granted what the profile hides.
        for caller in (without(row.capability), embedded_caller("owner-one")):
            error = in_process.refused("capability_hidden", row.name, {}, caller=caller)
            assert "profile" in error.message and error.details["capability"] == row.capability
        return
    error = in_process.refused("forbidden", row.name, {}, caller=without(row.capability))
    assert repr(row.capability) in error.message and error.details["capability"] == row.capability
