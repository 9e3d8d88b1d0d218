"""An operator's own private facts, and the deletion of private records."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from beetle import MemoryRuntime
from beetle.contracts.errors import (
    Forbidden,
    NotFound,
)
from tests.governance.keeping import key_file
from tests.governance.learned import another, forget, learn, listed, mutate, recalled
from tests.governance.queued import CANARY, OWNER, decide, said, waiting
from tests.governance.test_private import of_owner
from tests.store.conftest import assert_clean, open_runtime


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "store.db")


@pytest.fixture
def memory(path: str) -> Iterator[MemoryRuntime]:
    with open_runtime(path) as opened:
        yield opened
        assert_clean(opened)


# An operator's own private facts.


@pytest.fixture
def operator(memory: MemoryRuntime) -> MemoryRuntime:
    views = ("host_ui", "model_context", "operator_audit", "export")
    return another(memory, name="operator", kind="operator", views=views)


def test_an_operator_sees_changes_and_deletes_the_private_facts_that_it_wrote_and_no_others(
    memory: MemoryRuntime, operator: MemoryRuntime
) -> None:
    theirs = learn(memory, "Mara fears rain.", topic="fear", visibility="private")
    outcome = said(operator, "Mara fears snow.", "operator", topic="snow", privacy="subject_private")
    assert listed(operator) == listed(operator, query="mara fears") == [outcome.ref]
    assert operator.list_long_term().total == operator.list_long_term(query="fears").total == 1
    assert operator.get_long_term(ref=outcome.ref).record.content == "Mara fears snow."
    assert said(operator, "Mara fears snow.", "operator", topic="snow", privacy="subject_private").reason == "unchanged"
    assert mutate(operator, "correct", outcome.ref, content="Mara fears hail.").outcome == "corrected"
    assert mutate(operator, "change_scope", outcome.ref, privacy="public_runtime").outcome == "scope_changed"
    assert mutate(operator, "change_scope", outcome.ref, privacy="subject_private").outcome == "scope_changed"
    history = operator.get_long_term(ref=outcome.ref, history=True).revisions
    assert [each.content for each in history][:2] == ["Mara fears snow.", "Mara fears hail."]
    with pytest.raises(NotFound):
        operator.get_long_term(ref=theirs)
    assert listed(operator, view="export") == [] and recalled(operator, "mara fears") == {}
    tried = mutate(operator, "forget_by_query", query="zebra", dry_run=True)
    assert (tried.affected, tried.hidden) == (0, 1), "it is told that there is one, whatever that says"
    report = forget(operator, "fears")
    assert report.hidden == 1
    assert (report.affected, report.refs) == (1, (outcome.ref,))
    assert operator.get_long_term(ref=outcome.ref).record.state == "deleted"
    assert listed(memory, **OWNER) == [theirs]


def test_what_another_makes_of_it_is_the_operator_s_no_more(memory: MemoryRuntime, operator: MemoryRuntime) -> None:
    outcome = said(operator, "Mara fears snow.", "operator", topic="snow", privacy="subject_private")
    mutate(memory, "correct", outcome.ref, content="Mara fears hail.", **OWNER)
    with pytest.raises(NotFound):
        operator.get_long_term(ref=outcome.ref)
    assert listed(operator, state="all") == listed(operator, query="snow", state="all") == []
    shared = learn(memory, "Mara likes rain.")
    mutate(operator, "mark_stale", shared)
    mutate(memory, "change_scope", shared, privacy="subject_private")
    assert listed(operator, state="all") == [], "it changed that fact, and neither wrote it nor made it private"


def test_an_operator_sees_its_own_private_word_wait(memory: MemoryRuntime, operator: MemoryRuntime) -> None:
    memory.long_term_policy(action="pause")
    outcome = said(operator, "Mara fears snow.", "operator", privacy="subject_private")
    said(memory, "Mara fears rain.", privacy="subject_private")
    assert [each.content for each in waiting(operator)] == ["Mara fears snow."]
    assert decide(operator, "reject", outcome.waiting_id or waiting(operator)[0].waiting_id)[0].outcome == "rejected"
    assert len(waiting(memory, **OWNER)) == 1


# private.delete


def test_a_private_record_is_deleted_with_what_waits_for_it(memory: MemoryRuntime, path: str) -> None:
    kept = said(memory, f"Mara dreams of {CANARY}.", "host", target="private_garden", privacy="subject_private")
    waits = said(memory, "Mara dreams of rain.", target="private_garden", privacy="subject_private")
    assert memory.delete_private(record_id=kept.record_id, dry_run=True).erasure is None
    report = memory.delete_private(record_id=kept.record_id)
    assert (report.plane, report.waiting, report.erasure) == ("private_garden", 0, "done")
    assert memory.verify_store(receipt=report.receipt).receipt.valid
    assert memory.delete_private(record_id=waits.record_id).waiting == 1
    assert memory.list_private().total == 0 and waiting(memory, **OWNER) == ()
    with pytest.raises(NotFound):
        memory.delete_private(record_id=kept.record_id)


def test_deleting_a_private_record_needs_the_right_to_read_it(memory: MemoryRuntime, operator: MemoryRuntime) -> None:
    kept = said(operator, "Mara sleeps.", "operator", target="private_garden", privacy="subject_private")
    for caller in (operator, another(memory), another(memory, agent="agent-a")):
        with pytest.raises(Forbidden):
            caller.delete_private(record_id=kept.record_id)
    with pytest.raises(NotFound):
        of_owner(memory, "bob").delete_private(record_id=kept.record_id)
    assert memory.delete_private(record_id=kept.record_id).erasure == "done"


def test_a_record_that_can_not_be_read_any_more_can_be_deleted(path: str) -> None:
    with open_runtime(path) as memory:
        kept = said(memory, "Mara dreams.", "host", target="private_garden", privacy="subject_private")
    key_file(path).unlink()
    with open_runtime(path) as memory:
        assert memory.delete_private(record_id=kept.record_id).erasure == "done"
