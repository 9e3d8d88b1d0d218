"""Damage of every kind, made in the closed store's file: what repair says of it, and what it mends."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, get_args

import apsw
import pytest

from beetle import MemoryRuntime
from beetle.contracts.codec import replace
from beetle.contracts.errors import BeetleError, IntegrityViolation
from beetle.contracts.transcript_repair import IssueKind, MemoryTranscriptRepairSafeRequest, Problem
from beetle.runtime.areas.checks import BY_NAME
from beetle.runtime.areas.evidence import repair as transcript_repair
from beetle.runtime.areas.evidence.damage import KINDS
from beetle.runtime.pipeline.invocation import Call
from tests.store.conftest import (
    CONVERSATION,
    assert_clean,
    commit,
    found,
    lifecycle,
    open_runtime,
    path,
    replay,
    store_of,
    turn,
    write_skill,
)

__all__ = ["path"]

REF = "evidence:local/c1"
DERIVED = "procedural:runtime_skill__feeding/1"
OTHER = {"channel_id": "local", "conversation_id": "c2"}


@contextmanager
def opened(path: str, owner: str = "owner-a") -> Iterator[MemoryRuntime]:
    with open_runtime(path, owner=owner) as memory:
        yield memory


@contextmanager
def raw(path: str) -> Iterator[apsw.Connection]:
    """The closed store's file, with nothing of ours between it and what is done to it."""
    connection = apsw.Connection(path)
    try:
        connection.pragma("foreign_keys", False)
        yield connection
    finally:
        connection.close()


def prepared(path: str) -> None:
    """Three turns; t1 is cited whole, and by its message. Another owner has a turn of the same names."""
    with opened(path) as memory:
        commit(memory, turn("t1", "the first pelican"), turn("t2", "the second", "and more"), turn("t3", "the third"))
        write_skill(memory, "feeding", "fish at noon", citations=[f"{REF}/t1", f"{REF}/t2/t2-m1"])
        commit(memory, turn("u1", "elsewhere"), conversation=OTHER)
        assert memory.repair_transcript().clean
    with opened(path, "owner-b") as memory:
        commit(memory, turn("t1", "another owner's pelican"))


def sql(*statements: str) -> Callable[[str], None]:
    def damage(path: str) -> None:
        with raw(path) as connection:
            for statement in statements:
                connection.execute(statement)

    return damage


def without_unique(table: str, constraint: str, statement: str) -> Callable[[str], None]:
    """Change what a unique constraint forbids; its automatic index then holds an entry twice, under the same schema."""

    def damage(path: str) -> None:
        with raw(path) as connection:
            connection.execute("CREATE TEMP TABLE kept AS SELECT * FROM " + table)
            whole = connection.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (table,)).get
            rest = connection.execute("SELECT sql FROM sqlite_schema WHERE type = 'index' AND tbl_name = ? AND sql "
                                      "IS NOT NULL", (table,)).fetchall()  # fmt: skip
            every = re.findall(r"UNIQUE \([^)]*\)", whole)
            place = every.index(constraint) + 1
            connection.execute(f"DROP TABLE {table}")
            connection.execute(whole.replace(f",\n  {constraint}", ""))
            connection.execute(f"INSERT INTO {table} SELECT * FROM kept")
            for (index,) in rest:
                connection.execute(str(index))
            connection.execute(statement)
            connection.execute(f"CREATE INDEX put_back ON {table} {constraint.removeprefix('UNIQUE ')}")
            connection.pragma("writable_schema", 1)
            automatic = f"sqlite_autoindex_{table}_"
            rename = "UPDATE sqlite_schema SET name = ?, sql = NULL WHERE name = ?"
            for number in range(len(every) - 1, place - 1, -1):
                connection.execute(rename, (f"{automatic}{number + 1}", f"{automatic}{number}"))
            connection.execute(rename, (f"{automatic}{place}", "put_back"))
            connection.execute("UPDATE sqlite_schema SET sql = ? WHERE name = ?", (whole, table))

    return damage


def then(*steps: Callable[[str], None]) -> Callable[[str], None]:
    def damage(path: str) -> None:
        for step in steps:
            step(path)

    return damage


def mask_t1(path: str) -> None:
    with opened(path) as memory:
        lifecycle(memory, "mask", "t1")


def delete_t1(path: str) -> None:
    with opened(path) as memory:
        lifecycle(memory, "delete_raw", "t1")


def unindexed(path: str) -> None:
    """The index loses the row of t1's message, as a mask takes it out; the message says that it is live."""
    mask_t1(path)
    sql(f"UPDATE message SET state = 'live' WHERE message = {M1}")(path)


T1 = "(SELECT turn FROM turn WHERE turn_id = 't1' ORDER BY turn LIMIT 1)"
M1 = "(SELECT message FROM message WHERE message_id = 't1-m0' ORDER BY message LIMIT 1)"
C1 = "(SELECT conversation FROM conversation WHERE conversation_id = 'c1' ORDER BY conversation LIMIT 1)"
C2 = "(SELECT conversation FROM conversation WHERE conversation_id = 'c2')"
THEIRS = "(SELECT max(conversation) FROM conversation WHERE conversation_id = 'c1')"
CITED = "INSERT INTO derived_ref (space, derived, evidence, relation, turn, at) SELECT space, "


class Damage(NamedTuple):
    """What is done to the file, the issues that follow, and what a safe repair does about them."""

    make: Callable[[str], None]
    issues: tuple[tuple[Problem, str | None, str | None], ...]
    """(problem, turn_id, message_id)."""
    mended: tuple[str, ...] = ()


DAMAGE: dict[str, Damage] = {
    "a cited turn is gone": Damage(
        sql(f"DELETE FROM body WHERE message = {M1}", f"DELETE FROM message WHERE message = {M1}",
            f"DELETE FROM turn WHERE turn = {T1}"),
        (("turn_gone", "t1", None), ("sequence_gap", None, None), ("ordinal_gap", None, None),
         ("counts_disagree", None, None)),
        ("recounted",),
    ),
    "a cited message is gone": Damage(
        sql("DELETE FROM body WHERE message = (SELECT message FROM message WHERE message_id = 't2-m1')",
            "DELETE FROM message WHERE message_id = 't2-m1'"),
        (("message_gone", "t2", "t2-m1"), ("ordinal_gap", None, None), ("turn_digest_mismatch", "t2", None)),
    ),
    "the skill of a link is gone": Damage(
        sql("DELETE FROM skill_revision", "DELETE FROM skill"),
        (("record_gone", "t1", None), ("record_gone", "t2", "t2-m1")),
        ("dropped", "dropped"),
    ),
    "the fact of a link is gone": Damage(
        sql(CITED + f"'long_term:f-0123456789abcdef', evidence, 'cites', turn, at FROM derived_ref WHERE turn = {T1}"),
        (("record_gone", "t1", None),),
        ("dropped",),
    ),
    "the private item of a link is gone": Damage(
        sql(CITED + f"'private_garden:p-0123456789abcdef', evidence, 'cites', turn, at FROM derived_ref "
            f"WHERE turn = {T1}"),
        (("record_gone", "t1", None),),
        ("dropped",),
    ),
    "the revision of a link is gone": Damage(
        sql("UPDATE derived_ref SET derived = 'procedural:runtime_skill__feeding/7' WHERE turn = " + T1),
        (("revision_gone", "t1", None),),
    ),
    "a link is of a record that no one knows": Damage(
        sql("UPDATE derived_ref SET derived = 'toc:year/2024' WHERE turn = " + T1),
        (("unknown_record", "t1", None),),
    ),
    "a link lost its turn": Damage(
        sql("UPDATE derived_ref SET turn = NULL WHERE turn = " + T1),
        (("not_linked", "t1", None),),
        ("relinked",),
    ),
    "a link's turn is a row that is not there": Damage(
        sql("UPDATE derived_ref SET turn = 4711 WHERE turn = " + T1),
        (("not_linked", "t1", None),),
        ("relinked",),
    ),
    "a link names another turn than its own": Damage(
        sql("UPDATE derived_ref SET turn = (SELECT turn FROM turn WHERE turn_id = 't3') WHERE turn = " + T1),
        (("names_another_turn", "t1", None),),
    ),
    "a link leads into another owner's space": Damage(
        sql(f"UPDATE derived_ref SET turn = (SELECT max(turn) FROM turn WHERE turn_id = 't1') WHERE turn = {T1}"),
        (("other_space", "t1", None),),
    ),
    "a link names a message of another turn": Damage(
        sql(f"UPDATE derived_ref SET evidence = '{REF}/t2/t3-m0' WHERE evidence = '{REF}/t2/t2-m1'"),
        (("message_of_another_turn", "t2", "t3-m0"),),
    ),
    "a message says another conversation than its turn": Damage(
        sql(f"UPDATE message SET conversation = {C2}, ordinal = 2 WHERE message = {M1}"),
        (("other_conversation", "t1", "t1-m0"), ("ordinal_gap", None, None), ("counts_disagree", None, None)),
        ("recounted",),
    ),
    "a message says another owner's conversation": Damage(
        sql(f"UPDATE message SET conversation = {THEIRS}, ordinal = 9, message_id = 'x' WHERE message = {M1}"),
        (("other_conversation", "t1", None), ("ordinal_gap", None, None)),
    ),
    "a message stands in another owner's turn": Damage(
        sql("UPDATE message SET turn = (SELECT max(turn) FROM turn WHERE turn_id = 't1') WHERE message_id = 't3-m0'"),
        (("other_space", None, "t3-m0"), ("turn_empty", "t3", None)),
    ),
    "a message has no turn": Damage(
        sql("UPDATE message SET turn = 4711 WHERE message_id = 't3-m0'"),
        (("turn_missing", None, "t3-m0"), ("turn_empty", "t3", None)),
    ),
    "a turn has no message": Damage(
        sql("DELETE FROM body WHERE message = (SELECT message FROM message WHERE message_id = 't3-m0')",
            "DELETE FROM message WHERE message_id = 't3-m0'"),
        (("turn_empty", "t3", None), ("counts_disagree", None, None)),
        ("recounted",),
    ),
    "two turns have one sequence": Damage(
        without_unique("turn", "UNIQUE (conversation, sequence)", "UPDATE turn SET sequence = 2 WHERE turn_id = 't3'"),
        (("sequence_twice", "t2", None), ("counts_disagree", None, None), ("turn_digest_mismatch", "t3", None)),
        ("recounted",),
    ),
    "two turns have one id": Damage(
        without_unique("turn", "UNIQUE (conversation, turn_id)", "UPDATE turn SET turn_id = 't2' WHERE turn_id = 't3'"),
        (("turn_id_twice", "t2", None), ("turn_digest_mismatch", "t2", None)),
    ),
    "two messages have one place": Damage(
        without_unique("message", "UNIQUE (conversation, ordinal)",
                       "UPDATE message SET ordinal = 3 WHERE message_id = 't3-m0'"),
        (("ordinal_twice", "t2", "t2-m1"), ("counts_disagree", None, None), ("turn_digest_mismatch", "t3", None)),
        ("recounted",),
    ),
    "two messages have one id": Damage(
        without_unique("message", "UNIQUE (conversation, message_id)",
                       "UPDATE message SET message_id = 't2-m1' WHERE message_id = 't3-m0'"),
        (("message_id_twice", "t2", "t2-m1"), ("turn_digest_mismatch", "t3", None)),
    ),
    "a conversation counts wrong": Damage(
        sql(f"UPDATE conversation SET turns = 7, last_sequence = 1, first_at = 0 WHERE conversation = {C1}"),
        (("counts_disagree", None, None),),
        ("recounted",),
    ),
    "a live message has no body": Damage(
        sql(f"DELETE FROM body WHERE message = {M1}"),
        (("body_missing", "t1", "t1-m0"),),
    ),
    "a body was changed": Damage(
        sql(f"UPDATE body SET content = 'the first penguin' WHERE message = {M1}"),
        (("digest_mismatch", "t1", "t1-m0"),),
    ),
    "a length was changed": Damage(
        sql(f"UPDATE message SET length = 1 WHERE message = {M1}"),
        (("length_mismatch", "t1", "t1-m0"),),
    ),
    "a private message was made shared": Damage(
        then(sql(f"UPDATE message SET visibility = 'backend' WHERE message = {M1}")),
        (("turn_digest_mismatch", "t1", None), ("indexed_though_withheld", "t1", "t1-m0")),
        ("unindexed",),
    ),
    "a deleted message has a body": Damage(
        then(delete_t1, sql(f"INSERT INTO body VALUES ({M1}, 'the first pelican')")),
        (("body_left", "t1", "t1-m0"),),
    ),
    "a live message is not in the index": Damage(
        unindexed, (("not_indexed", "t1", "t1-m0"), ("turn_digest_mismatch", "t1", None)), ("indexed",)
    ),
    "a masked message is in the index": Damage(
        sql(f"UPDATE message SET state = 'masked' WHERE message = {M1}"),
        (("indexed_though_withheld", "t1", "t1-m0"), ("turn_digest_mismatch", "t1", None)),
        ("unindexed",),
    ),
    "a masked message whose body was changed is in the index": Damage(
        sql(f"UPDATE message SET state = 'masked' WHERE message = {M1}",
            f"UPDATE body SET content = 'something else' WHERE message = {M1}"),
        (("digest_mismatch", "t1", "t1-m0"), ("indexed_though_withheld", "t1", "t1-m0")),
    ),
}  # fmt: skip


SKILL_DAMAGE = ("the skill of a link is gone",)
"""Leaves the skill's own row in the recall index, which is no transcript's."""


def told(memory: MemoryRuntime, **args: Any) -> set[tuple[str, str | None, str | None]]:
    return {(each.problem, each.turn_id, each.message_id) for each in memory.repair_transcript(**args).issues}


@pytest.mark.parametrize("name", DAMAGE)
def test_damage_is_reported_by_its_ids_and_mended_where_nothing_is_lost(path: str, name: str) -> None:
    prepared(path)
    damage = DAMAGE[name]
    damage.make(path)
    with opened(path) as memory:
        report = memory.repair_transcript()
        assert told(memory) == set(damage.issues)
        assert report.clean is False
        verified = memory.verify_store()
        assert not verified.clean, "what a repair finds, verify finds"
        assert {each.check for each in verified.findings} <= set(BY_NAME)
        assert {each.kind for each in report.issues} == {KINDS.get(p, "corrupt_record") for p, _, _ in damage.issues}
        assert sum(report.counts.values()) == len(report.issues) == len(damage.issues)
        assert report.repairable == len(damage.mended)
        assert "pelican" not in str(report) and "another owner" not in str(report)
        tried = memory.repair_transcript_safe(dry_run=True)
        assert sorted(each.outcome for each in tried.mended) == sorted(damage.mended)
        assert told(memory) == set(damage.issues), "a dry run changes nothing"
        done = memory.repair_transcript_safe()
        assert sorted(each.outcome for each in done.mended) == sorted(damage.mended)
        assert done.changed is (done.audit_event_id is not None) is (done.receipt is not None) is bool(damage.mended)
        kept = [each for each in report.issues if not each.repairable]
        assert list(memory.repair_transcript().issues) == kept
        assert sum(done.left.values()) == len(kept)
        again = memory.repair_transcript_safe()
        assert (again.changed, again.mended) == (False, ())
        if not kept and name not in SKILL_DAMAGE:
            assert_clean(memory)


def test_what_a_turn_says_of_its_messages_and_of_the_times_before_it_is_put_right(path: str) -> None:
    prepared(path)
    moved = "UPDATE turn SET first_message = 4711, last_message = 4712 WHERE turn_id = 't2'"
    sql(moved, "UPDATE turn SET last_message = 4711, latest = latest + 1 WHERE turn_id = 't3'")(path)
    with opened(path) as memory:
        assert {each.problem for each in memory.verify_store().findings} >= {
            "has no message", "does not stand where its turn says", "its messages do not stand where it says",
            "says another latest time than the turns up to it have",
        }  # fmt: skip
        done = memory.repair_transcript_safe()
        assert [each.outcome for each in done.mended] == ["recounted"]
        assert_clean(memory)


def test_every_problem_has_its_damage() -> None:
    made = {problem for damage in DAMAGE.values() for problem, _, _ in damage.issues}
    assert made == set(get_args(Problem))
    assert {KINDS.get(problem, "corrupt_record") for problem in made} == set(get_args(IssueKind))


@pytest.mark.parametrize("name", DAMAGE)
def test_damage_in_one_space_is_not_told_to_another(path: str, name: str) -> None:
    prepared(path)
    DAMAGE[name].make(path)
    with opened(path, "owner-b") as memory:
        seen = str(memory.repair_transcript())
        assert "t1-m0" not in seen or "another owner" in name
        assert "feeding" not in seen and "c2" not in seen and "t2" not in seen and "t3" not in seen


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_space_answers_and_shows_nothing_that_it_should_not(path: str, name: str) -> None:
    """Every read and a mask and a deletion of everything end in a report or a typed error, never in a defect."""
    prepared(path)
    DAMAGE[name].make(path)
    with opened(path) as memory:
        for view in ("raw_owner", "host_ui", "model_context", "operator_audit"):
            assert "another owner" not in str(replay(memory, view))
        memory.export_transcript(conversation=CONVERSATION, include_private=True)
        assert "another owner" not in str(memory.recall(query="pelican").hits)
        assert "another owner" not in str(memory.project(user_query="pelican"))
        for action in ("review", "mask", "unmask", "delete_raw"):
            try:
                lifecycle(memory, action, "t1", "t2", "t3")
            except BeetleError as error:
                assert error.key != "internal", (action, error)
        if name == "a live message is not in the index":
            # What the index holds of it cannot be erased, so nothing is: the hint names what mends that.
            with pytest.raises(IntegrityViolation) as refused:
                lifecycle(memory, "delete_raw", "t1", "t2", "t3")
            assert "`beetle memory recover`" in refused.value.hint
            memory.recover()
            lifecycle(memory, "delete_raw", "t1", "t2", "t3")
        assert "the first pelican" not in str(replay(memory))
        assert found(memory, "pelican") == set()
    with opened(path, "owner-b") as memory:
        assert replay(memory)[0].messages[0].content == "another owner's pelican"


def test_issues_come_in_pages_in_one_order_and_name_the_conversation_asked_for(path: str) -> None:
    prepared(path)
    for name in ("a link lost its turn", "a body was changed", "a length was changed", "a conversation counts wrong"):
        DAMAGE[name].make(path)
    sql(f"UPDATE conversation SET turns = 9 WHERE conversation = {C2}")(path)
    with opened(path) as memory:
        whole = memory.repair_transcript().issues
        assert [each.problem for each in whole] == [
            "not_linked", "counts_disagree", "digest_mismatch", "counts_disagree"
        ]  # fmt: skip
        paged: list[Any] = []
        cursor: str | None = None
        while True:
            page = memory.repair_transcript(limit=1, cursor=cursor) if cursor else memory.repair_transcript(limit=1)
            assert sum(page.counts.values()) == 4
            paged += page.issues
            cursor = page.next_cursor
            if not page.has_more:
                break
        assert tuple(paged) == whole
        assert told(memory, conversation=OTHER) == {("counts_disagree", None, None)}
        assert len(told(memory, conversation=CONVERSATION)) == 3
        done = memory.repair_transcript_safe(conversation=OTHER)
        assert [each.issue.conversation.conversation_id for each in done.mended if each.issue.conversation] == ["c2"]
        assert len(memory.repair_transcript().issues) == 3


def test_the_budget_of_issues_clips_the_list_and_says_so(path: str) -> None:
    prepared(path)
    sql(f"UPDATE conversation SET turns = 9 WHERE conversation IN ({C1}, {C2})")(path)
    with opened(path) as memory:
        dispatcher = memory._opened.dispatcher
        profile = replace(
            dispatcher.shared.profile, budgets=replace(dispatcher.shared.profile.budgets, repair_issues=1)
        )
        dispatcher.shared = dispatcher.shared._replace(profile=profile)
        report = memory.repair_transcript()
        assert (len(report.issues), report.has_more, report.profile_budget_applied) == (1, True, True)
        assert report.counts["corrupt_record"] == 2
        done = memory.repair_transcript_safe()
        assert (len(done.mended), done.has_more, done.profile_budget_applied) == (1, True, True)
        assert memory.repair_transcript_safe().has_more is False
        assert memory.repair_transcript().clean


def test_what_was_mended_in_the_meantime_is_not_mended_twice(path: str) -> None:
    """Repair looks without holding the writer up: what it found is judged again when it is mended."""
    prepared(path)
    DAMAGE["a link lost its turn"].make(path)
    DAMAGE["a conversation counts wrong"].make(path)
    with opened(path) as memory:
        dispatcher = memory._opened.dispatcher
        caller, scope = memory._opened._caller, memory._opened._scope
        _, invocation = dispatcher._authorize(Call("transcript.repair_safe", {}, caller, scope))
        apply = transcript_repair.repair_safe(invocation, MemoryTranscriptRepairSafeRequest())
        assert len(memory.repair_transcript_safe().mended) == 2
        late = store_of(memory).write(apply)
        assert (late.changed, late.mended, late.receipt) == (False, (), None)
        assert_clean(memory)


def test_what_the_index_holds_of_a_changed_body_cannot_be_erased_and_is_not_said_to_be(path: str) -> None:
    prepared(path)
    DAMAGE["a body was changed"].make(path)
    with opened(path) as memory:
        with pytest.raises(BeetleError) as caught:
            lifecycle(memory, "delete_raw", "t1")
        assert caught.value.key == "integrity_violation" and caught.value.hint
        assert "penguin" not in caught.value.message
        assert lifecycle(memory, "mask", "t1").changed
        assert found(memory, "pelican") == found(memory, "penguin") == set()
        assert lifecycle(memory, "unmask", "t1").changed
        assert lifecycle(memory, "delete_raw", "t2", "t3").erasure == "done"


def test_a_deletion_asked_for_again_takes_out_what_damage_brought_back(path: str) -> None:
    prepared(path)
    DAMAGE["a deleted message has a body"].make(path)
    with opened(path) as memory:
        report = lifecycle(memory, "delete_raw", "t1")
        assert (report.changed, report.erasure) == (True, "done")
        assert memory.repair_transcript().clean
        assert lifecycle(memory, "delete_raw", "t1").changed is False


@pytest.mark.parametrize("counter", ["last_sequence = 1", "last_sequence = -1", "messages = 0", "messages = 2"])
def test_a_conversation_that_counts_too_few_takes_nothing_until_it_is_recounted(path: str, counter: str) -> None:
    prepared(path)
    with raw(path) as connection:
        connection.execute(f"UPDATE conversation SET {counter} WHERE conversation = {C1}")
    with opened(path) as memory:
        before = [each.turn_id for each in replay(memory)]
        with pytest.raises(IntegrityViolation) as refused:
            commit(memory, turn("t8", "the eighth"), turn("t9", "the ninth"))
        assert "memory recover" in (refused.value.hint or "")
        assert [each.turn_id for each in replay(memory)] == before
        memory.recover()
        commit(memory, turn("t8", "the eighth"), turn("t9", "the ninth"))
        assert [each.turn_id for each in replay(memory)] == [*before, "t8", "t9"]
        assert_clean(memory)
