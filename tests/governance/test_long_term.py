"""long_term.list, detail and mutate: what each action does, what it refuses, and who may see what of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from beetle import MemoryRuntime
from beetle.contracts.errors import BeetleError, Conflict, Forbidden, InvalidRequest, NotFound, StoreBudgetExceeded
from tests.governance.learned import (
    Clock,
    another,
    forget,
    learn,
    listed,
    mutate,
    projected,
    recalled,
    replace,
    within,
)
from tests.store.conftest import assert_clean, commit, open_runtime, store_of, turn

PRIVATE = {"view": "raw_owner"}


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def memory(tmp_path: Path, clock: Clock) -> Iterator[MemoryRuntime]:
    with open_runtime(tmp_path / "beetle.db", now=clock) as opened:
        yield opened
        assert_clean(opened)


def detail(memory: MemoryRuntime, ref: str, **more: Any) -> Any:
    return memory.get_long_term(ref=ref, **more)


def actions(memory: MemoryRuntime, ref: str) -> list[str]:
    return [each.action for each in detail(memory, ref).revisions]


def test_facts_are_listed_the_newest_first_by_state_kind_and_words(memory: MemoryRuntime) -> None:
    key = learn(memory, kind="fact")
    tea = learn(memory, "Ana takes her tea without milk.", topic="tea", kind="preference", keywords=("drinks",))
    old = learn(memory, "The pump hums.", topic="pump")
    mutate(memory, "mark_stale", old)
    assert listed(memory) == [tea, key]
    assert listed(memory, state="stale") == [old] and listed(memory, state="all") == [old, tea, key]
    assert listed(memory, kind="preference") == [tea] and listed(memory, kind="goal") == []
    assert listed(memory, query="DRINKS ana") == [tea] and listed(memory, query="ana pot") == []
    assert listed(memory, query="pump", state="all") == [old] and listed(memory, query="pump") == []
    assert listed(memory, query="…!") == []
    report = memory.list_long_term(query="key")
    (record,) = report.records
    assert (report.total, record.topic, record.content, record.authority) == (
        1, "spare key", "The spare key is under the pot.", "user_asserted",
    )  # fmt: skip


@pytest.mark.parametrize("query", [None, "hum"])
def test_pages_hold_every_fact_once_while_others_are_learned_and_deleted(
    memory: MemoryRuntime, query: str | None
) -> None:
    refs = [learn(memory, f"Machine {n} hums.", topic=f"machine {n}") for n in range(23)]
    asked: dict[str, Any] = {"limit": 5} if query is None else {"limit": 5, "query": query}
    seen: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        page = memory.list_long_term(**asked, **cursor)
        seen += [each.ref for each in page.records]
        if not page.has_more:
            break
        cursor = {"cursor": page.next_cursor or ""}
        learn(memory, "A late machine hums.", topic="late")
        mutate(memory, "delete", seen[-1])
    assert seen == refs[::-1]
    with pytest.raises(InvalidRequest):
        memory.list_long_term(**{**asked, "kind": "goal"}, **cursor)


def test_a_correction_is_a_revision_of_the_same_record(memory: MemoryRuntime) -> None:
    ref = learn(memory, keywords=("door",))
    report = mutate(memory, "correct", ref, content="The spare key is in the shed.", reason="it was moved")
    assert (report.outcome, report.changed, report.ref, report.revision) == ("corrected", True, ref, 2)
    assert report.receipt and report.audit_event_id == report.lifecycle.event_id
    shown = detail(memory, ref)
    record = shown.record
    assert (record.content, record.topic, record.keywords) == ("The spare key is in the shed.", "spare key", ("door",))
    assert (record.authority, record.state) == ("operator", "current")
    assert [(each.action, each.reason) for each in shown.revisions] == [
        ("created", None),
        ("corrected", "it was moved"),
    ]
    assert shown.revisions[0].valid_until == shown.revisions[1].valid_from
    assert shown.revisions[1].valid_until is None


def test_a_fact_under_another_topic_is_sound_and_recalled_as_it_was(memory: MemoryRuntime) -> None:
    ref = learn(memory)
    then = detail(memory, ref).revisions[0].valid_from
    mutate(memory, "correct", ref, topic="the shed", reason="it is filed elsewhere")
    assert_clean(memory)
    assert [each.ref for each in memory.recall(query="pot", planes=["long_term"], as_of=then).hits] == [ref]


def test_the_words_of_earlier_revisions_are_shown_when_they_are_asked_for(memory: MemoryRuntime) -> None:
    ref = learn(memory)
    mutate(memory, "correct", ref, content="It is in the shed.")
    assert [each.content for each in detail(memory, ref).revisions] == [None, "It is in the shed."]
    told = [each.content for each in detail(memory, ref, history=True).revisions]
    assert told == ["The spare key is under the pot.", "It is in the shed."]
    audit = detail(memory, ref, history=True, view="operator_audit")
    assert [each.content for each in audit.revisions] == [None, None]
    assert [each.reason for each in audit.revisions] == [None, None]
    assert audit.record.content is None and audit.record.topic is None and audit.record.digest


def test_superseding_makes_a_new_record_that_names_the_old_one(memory: MemoryRuntime) -> None:
    old = learn(memory)
    report = mutate(memory, "supersede", old, content="There is no spare key.")
    new = report.ref
    assert report.outcome == "superseded" and new != old and report.refs == (old,)
    assert [(each.derived, each.evidence, each.relation) for each in report.derived_refs] == [(new, old, "supersedes")]
    assert detail(memory, old).superseded_by == new and detail(memory, new).supersedes == (old,)
    assert detail(memory, old).record.state == "superseded" and actions(memory, old) == ["created", "superseded"]
    assert listed(memory) == [new] and set(recalled(memory, "spare key")) == {new}
    error = refused(Conflict, memory, "correct", old, content="no")
    assert new in error.hint
    assert mutate(memory, "delete", old).outcome == "deleted"


def refused(kind: type[BeetleError], memory: MemoryRuntime, action: str, ref: str | None = None, **more: Any) -> Any:
    with pytest.raises(kind) as caught:
        mutate(memory, action, ref, **more)
    return caught.value


def test_a_stale_fact_is_not_recalled_and_is_restored_by_saying_it_again(memory: MemoryRuntime) -> None:
    ref = learn(memory)
    assert mutate(memory, "mark_stale", ref).outcome == "stale"
    assert mutate(memory, "mark_stale", ref).outcome == "unchanged"
    assert recalled(memory, "spare key") == {} and "pot" not in projected(memory, "spare key")
    assert mutate(memory, "correct", ref, content="The spare key is under the pot.").outcome == "restored"
    assert set(recalled(memory, "spare key")) == {ref}
    mutate(memory, "mark_stale", ref)
    assert mutate(memory, "correct", ref, content="It is in the shed.").outcome == "corrected"
    assert recalled(memory, "shed") == {ref: "It is in the shed."}


def test_a_deleted_fact_leaves_a_tombstone_without_words(memory: MemoryRuntime) -> None:
    ref = learn(memory)
    mutate(memory, "correct", ref, content="It is in the shed.")
    report = mutate(memory, "delete", ref)
    assert (report.outcome, report.erasure, report.refs, report.revision) == ("deleted", "done", (ref,), 3)
    again = mutate(memory, "delete", ref)
    assert (again.outcome, again.changed, again.erasure, again.affected) == ("unchanged", False, None, 0)
    gone = detail(memory, ref, history=True)
    assert gone.record.state == "deleted" and gone.record.content is None and gone.record.topic is None
    assert [each.content or each.reason for each in gone.revisions] == [None, None, None]
    assert [each.action for each in gone.revisions] == ["created", "corrected", "deleted"]
    assert listed(memory) == [] and listed(memory, state="deleted") == [ref]
    for action in ("correct", "supersede"):
        refused(Conflict, memory, action, ref, content="again")
    refused(Conflict, memory, "mark_stale", ref)
    refused(Conflict, memory, "change_scope", ref, privacy="subject_private")


@pytest.mark.parametrize(
    ("action", "more"),
    [
        ("correct", {"content": "x"}),
        ("supersede", {"content": "x"}),
        ("delete", {}),
        ("mark_stale", {}),
        ("change_scope", {"privacy": "subject_private"}),
    ],
)
def test_a_dry_run_and_a_wrong_revision_change_nothing(
    memory: MemoryRuntime, action: str, more: dict[str, Any]
) -> None:
    ref = learn(memory)
    before = detail(memory, ref), store_of(memory).head
    report = mutate(memory, action, ref, dry_run=True, expected_revision=1, **more)
    assert report.dry_run and not report.changed and report.refs == (ref,) and report.receipt is None
    assert report.outcome != "unchanged" and report.erasure is None
    error = refused(Conflict, memory, action, ref, expected_revision=2, **more)
    assert error.details["revision"] == 1 and "pot" not in str(error) + error.hint
    assert detail(memory, ref).record == before[0].record and store_of(memory).head == before[1]
    assert mutate(memory, action, ref, expected_revision=1, **more).outcome == report.outcome


def test_saying_the_same_again_changes_nothing(memory: MemoryRuntime) -> None:
    ref = learn(memory)
    head = store_of(memory).head
    for action in ("correct", "supersede"):
        report = mutate(memory, action, ref, content="The spare key is under the pot.")
        assert (report.outcome, report.changed, report.ref, report.revision) == ("unchanged", False, ref, 1)
    assert mutate(memory, "change_scope", ref, privacy="public_runtime").outcome == "unchanged"
    assert store_of(memory).head == head


def test_a_weaker_authority_never_overwrites_a_stronger_one(memory: MemoryRuntime) -> None:
    worker = another(memory)
    mine = learn(memory, authority="operator")
    for action in ("correct", "supersede"):
        error = refused(Forbidden, worker, action, mine, content="no")
        assert error.details["authority"] == "operator" and "pot" not in str(error) + error.hint
    theirs = learn(memory, "The pump hums.", topic="pump", authority="assistant_claimed")
    assert mutate(worker, "correct", theirs, content="The pump is quiet.").outcome == "corrected"
    assert detail(memory, theirs).record.authority == "user_asserted"


def test_private_facts_are_not_there_for_who_may_not_see_them(memory: MemoryRuntime) -> None:
    ref = learn(memory, "Ana sees a doctor on Monday.", topic="doctor", visibility="private")
    worker = another(memory)
    assert listed(memory, **PRIVATE) == [ref] and set(recalled(memory, "doctor")) == {ref}
    for caller in (worker, another(memory, kind="device", agent="agent-a")):
        assert listed(caller, state="all") == [] and listed(caller, query="doctor") == []
        assert caller.list_long_term(state="all").total == 0
        assert recalled(caller, "doctor") == {} and "doctor" not in projected(caller, "doctor")
        with pytest.raises(NotFound) as missing:
            detail(caller, ref)
        for action, more in (("correct", {"content": "x"}), ("delete", {}), ("mark_stale", {})):
            error = refused(NotFound, caller, action, ref, **more)
            assert str(error) == str(missing.value)
        refused(NotFound, caller, "change_scope", ref, privacy="public_runtime")
        tried = mutate(caller, "forget_by_query", query="doctor", dry_run=True)
        assert (tried.affected, tried.hidden) == (0, 0)
    # The owner's own first view is that of the host, which shows nothing private either.
    assert listed(memory) == []
    refused(NotFound, memory, "delete", ref)
    assert mutate(memory, "delete", ref, **PRIVATE).outcome == "deleted"


def test_a_text_that_was_private_stays_so_when_the_fact_is_shared(memory: MemoryRuntime, clock: Clock) -> None:
    ref = learn(memory, "Ana sees a doctor.", topic="health", visibility="private")
    then = clock()
    mutate(memory, "correct", ref, content="Ana is well.", **PRIVATE)
    report = mutate(memory, "change_scope", ref, privacy="shared_with_subject", **PRIVATE)
    assert report.outcome == "scope_changed"
    worker = another(memory)
    assert recalled(worker, "Ana") == {ref: "Ana is well."} and recalled(worker, "Ana", then) == {}
    assert recalled(memory, "Ana", then) == {ref: "Ana sees a doctor."}
    told = [each.content for each in detail(worker, ref, history=True).revisions]
    assert told == [None, "Ana is well.", "Ana is well."]
    mutate(memory, "change_scope", ref, privacy="subject_private")
    assert recalled(worker, "Ana") == {} and set(recalled(memory, "Ana")) == {ref}


def test_a_shared_fact_cannot_be_made_private(memory: MemoryRuntime) -> None:
    ref = learn(memory, target="shared_fact")
    refused(InvalidRequest, memory, "change_scope", ref, privacy="subject_private")
    refused(InvalidRequest, memory, "supersede", ref, content="x", privacy="subject_private")


def test_a_ref_of_another_space_is_not_found(memory: MemoryRuntime) -> None:
    ref = learn(memory)
    stranger = another(memory, kind="embedded", owner="owner-b", agent="agent-a")
    for change in (lambda: mutate(stranger, "delete", ref), lambda: detail(stranger, ref)):
        with pytest.raises(NotFound):
            change()
    learn(stranger, "Another owner's key.")
    with pytest.raises(NotFound):
        mutate(stranger, "delete", ref)
    assert listed(memory) == [ref] and len(listed(stranger)) == 1


@pytest.mark.parametrize("ref", ["evidence:a/b/c", "long_term:", "nonsense", "procedural:x", "long_term:a/b"])
def test_a_ref_of_no_fact_is_refused(memory: MemoryRuntime, ref: str) -> None:
    with pytest.raises(InvalidRequest):
        detail(memory, ref)


@pytest.mark.parametrize(
    "fields",
    [
        {"action": "correct", "reason": "r", "content": "x"},
        {"action": "correct", "ref": "long_term:f", "reason": "r"},
        {"action": "correct", "ref": "long_term:f", "content": "x"},
        {"action": "delete", "ref": "long_term:f", "content": "x"},
        {"action": "delete", "ref": "long_term:f", "confirm": "x"},
        {"action": "delete"},
        {"action": "delete", "ref": "long_term:f", "query": "q"},
        {"action": "forget_by_query"},
        {"action": "forget_by_query", "query": "q", "ref": "long_term:f"},
        {"action": "forget_by_query", "query": "q", "expected_revision": 1},
        {"action": "change_scope", "ref": "long_term:f", "reason": "r"},
        {"action": "change_scope", "ref": "long_term:f", "reason": "r", "privacy": "soul_private"},
        {"action": "mark_stale", "ref": "long_term:f", "reason": "  "},
        {"action": "mark_stale", "ref": "long_term:f", "reason": "r", "privacy": "public_runtime"},
        {"action": "correct", "ref": "long_term:f", "reason": "r", "content": " "},
    ],
)
def test_fields_that_do_not_belong_together_are_refused(memory: MemoryRuntime, fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest):
        memory.mutate_long_term(**fields)


def test_forgetting_takes_every_record_that_ever_said_it(memory: MemoryRuntime) -> None:
    now = learn(memory, "Ana lives in Lindenstrasse.", topic="address")
    moved = learn(memory, "Bo lives in Lindenstrasse.", topic="home of Bo")
    mutate(memory, "correct", moved, content="Bo lives in Gartenweg.")
    before = learn(memory, "Cy lives in Lindenstrasse.", topic="home of Cy")
    after = replace(memory, before, "Cy lives abroad.", topic="home of Cy")
    other = learn(memory, "The pump hums.", topic="pump")
    dry = mutate(memory, "forget_by_query", query="lindenstrasse", dry_run=True)
    assert dry.refs == (before, moved, now) and dry.affected == 3 and not dry.changed
    report = mutate(memory, "forget_by_query", query="lindenstrasse", confirm=dry.confirm_token)
    assert (report.outcome, report.changed, report.erasure) == ("forgotten", True, "done")
    assert report.refs == dry.refs and report.receipt
    assert listed(memory) == [other, after] and listed(memory, state="deleted") == [before, moved, now]


def test_forgetting_needs_the_token_of_its_own_dry_run(memory: MemoryRuntime) -> None:
    ref = learn(memory)
    error = refused(InvalidRequest, memory, "forget_by_query", query="spare key")
    assert error.details["path"] == "$.args.confirm" and "dry_run" in error.hint
    token = mutate(memory, "forget_by_query", query="spare key", dry_run=True).confirm_token
    assert mutate(memory, "forget_by_query", query="spare key", dry_run=True).confirm_token == token
    for other in ({"query": "spare"}, {"query": "spare key", "confirm": token[:-1]}, {"query": "key spare"}):
        refused(Conflict, memory, "forget_by_query", **{"confirm": token, **other})
    refused(Conflict, another(memory, name="somebody"), "forget_by_query", query="spare key", confirm=token)
    assert listed(memory) == [ref]
    assert mutate(memory, "forget_by_query", query="spare key", confirm=token).outcome == "forgotten"
    refused(Conflict, memory, "forget_by_query", query="spare key", confirm=token)


@pytest.mark.parametrize("change", ["correct", "learn", "delete", "scope"])
def test_a_token_is_worth_nothing_once_its_result_has_changed(memory: MemoryRuntime, change: str) -> None:
    refs = [learn(memory), learn(memory, "A spare key is with Bo.", topic="other")]
    token = mutate(memory, "forget_by_query", query="spare key", dry_run=True).confirm_token
    if change == "correct":
        mutate(memory, "correct", refs[0], content="The spare key is in the shed.")
    elif change == "learn":
        learn(memory, "Nobody has a spare key.", topic="third")
    elif change == "delete":
        mutate(memory, "delete", refs[0])
    else:
        mutate(memory, "change_scope", refs[0], privacy="subject_private")
    refused(Conflict, memory, "forget_by_query", query="spare key", confirm=token)


def test_forgetting_what_is_not_there_changes_nothing(memory: MemoryRuntime) -> None:
    for query in ("nothing of the kind", "nobody"):
        report = forget(memory, query)
        assert (report.outcome, report.changed, report.affected, report.erasure) == ("unchanged", False, 0, None)


def test_a_candidate_that_waits_is_forgotten_with_what_it_says(memory: MemoryRuntime) -> None:
    said = {"candidate_id": "c1", "authority": "assistant_claimed", "target": "long_term", "evidence_refs": []}
    private = {**said, "candidate_id": "c2", "privacy": "subject_private", "content": "Ana fears Lindenstrasse."}
    shared = {**said, "privacy": "public_runtime", "content": "Ana lives in Lindenstrasse."}
    memory.write(kind="candidates", candidates=[shared, private])
    assert memory.inspect().counts.waiting_candidates == 2
    report = forget(memory, "lindenstrasse")
    assert (report.waiting, report.outcome, report.erasure) == (1, "forgotten", "done")
    assert memory.inspect().counts.waiting_candidates == 1
    assert forget(memory, "lindenstrasse", **PRIVATE).waiting == 1


def test_a_deleted_fact_lets_in_what_waited_behind_it(memory: MemoryRuntime) -> None:
    strong = learn(memory, authority="operator")
    weak = {"candidate_id": "c1", "authority": "host", "target": "long_term", "privacy": "public_runtime"}
    (outcome,) = memory.write(
        kind="candidates",
        candidates=[{**weak, "topic": "Spare  KEY", "kind": "fact", "content": "The spare key is with Bo."}],
    ).outcomes
    assert (outcome.outcome, outcome.reason) == ("deferred", "weaker_authority")
    mutate(memory, "delete", strong)
    assert list(recalled(memory, "spare key").values()) == ["The spare key is with Bo."]


def test_counts_and_every_step_are_told(memory: MemoryRuntime) -> None:
    refs = [learn(memory, f"Thing {n} is here.", topic=f"thing {n}") for n in range(4)]
    mutate(memory, "mark_stale", refs[0])
    mutate(memory, "supersede", refs[1], content="Thing 1 is gone.")
    mutate(memory, "delete", refs[2])
    counts = memory.inspect().counts
    assert (counts.facts, counts.stale_facts, counts.superseded_facts, counts.deleted_facts) == (2, 1, 1, 1)
    with store_of(memory).read() as tx:
        told = [row[0] for row in tx.rows("SELECT event FROM event_log WHERE topic = 'memory' ORDER BY seq")]
        subjects = " ".join(row[0] for row in tx.rows("SELECT subject FROM event_log"))
    assert told == [*["fact_created"] * 4, "fact_stale", "fact_created", "fact_superseded", "fact_deleted"]
    assert "thing" not in subjects.lower()


def test_a_policy_that_would_act_is_shown_with_the_fact(memory: MemoryRuntime) -> None:
    ref = learn(memory)
    assert detail(memory, ref).policy == "none"
    memory.long_term_policy(action="pause")
    assert detail(memory, ref).policy == "pause"
    memory.long_term_policy(action="suppress", kind="fact")
    assert detail(memory, ref).policy == "suppress"


def test_a_full_store_takes_deletions_but_no_new_words(tmp_path: Path) -> None:
    with open_runtime(tmp_path / "beetle.db") as memory:
        ref = learn(memory)
        settings = store_of(memory).settings
        store_of(memory).settings = settings._replace(store_bytes=1)
        refused(StoreBudgetExceeded, memory, "correct", ref, content="x" * 1000)
        assert mutate(memory, "delete", ref).outcome == "deleted"


def test_verify_finds_a_fact_that_was_tampered_with(tmp_path: Path) -> None:
    harms = (
        "UPDATE fact SET state = 'stale'",
        "UPDATE fact_revision SET valid_until = valid_until + 1 WHERE revision = 1",
        "UPDATE fact_revision SET valid_until = NULL",
        "UPDATE fact_revision SET body = NULL WHERE revision = 2",
        "UPDATE derived_ref SET derived = 'long_term:f-other'",
        "INSERT INTO fact_body (fact, topic, content, keywords) SELECT fact, '', 'x', '[]' FROM fact",
    )
    for number, harm in enumerate(harms):
        with open_runtime(tmp_path / f"{number}.db") as memory:
            commit(memory, turn("t1", "It is in the house."))
            ref = learn(memory, evidence=("evidence:local/c1/t1",))
            mutate(memory, "correct", ref, content="It is in the shed.")
            assert_clean(memory)
            within(memory, lambda _context, tx, _space, sql=harm: tx.run(sql))
            found = {each.check for each in memory.verify_store().findings}
            assert found & {"long_term", "derived_refs"}, harm
