"""A forgotten fact is in no byte of the store's files: not its words, past or present, its keywords or its reasons."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from beetle import MemoryRuntime
from tests.governance.learned import forget, learn, mutate, recalled, replace
from tests.store.conftest import (
    DISK_BACKENDS,
    assert_clean,
    bytes_of,
    commit,
    held_snapshot,
    open_runtime,
    store_of,
    turn,
    wait_for_erasures,
)
from tests.store.test_erasure import Words, assert_gone, gaps, remnants


@pytest.fixture
def path(tmp_path: Path) -> str:
    return os.fspath(tmp_path / "store.db")


def canaries_of(words: Words, prefix: str = "") -> dict[str, Any]:
    topic, content, keyword = (words.canary(prefix) for _ in range(3))
    return {
        "topic": f"on {topic}",
        "content": f"It is {content}, {content.upper()}ing and {content.title()}s.",
        "keywords": (keyword,),
        "words": [topic, content, keyword],
    }


def learn_canaries(memory: MemoryRuntime, words: Words, prefix: str = "") -> tuple[str, list[str]]:
    """A fact with a history of canaries: corrected, stale, restored, made private and back, and why."""
    first = canaries_of(words, prefix)
    found: list[str] = first.pop("words")
    ref = learn(memory, **first)
    second = canaries_of(words, prefix)
    why = [words.canary(prefix) for _ in range(3)]
    found += [*second.pop("words"), *why]
    mutate(memory, "correct", ref, reason=f"because {why[0]}", **second)
    mutate(memory, "mark_stale", ref, reason=f"because {why[1]}")
    mutate(memory, "correct", ref, content=second["content"])
    mutate(memory, "change_scope", ref, privacy="subject_private", reason=f"because {why[2]}")
    mutate(memory, "change_scope", ref, privacy="public_runtime", view="raw_owner")
    return ref, found


@pytest.mark.parametrize("backend", DISK_BACKENDS)
@pytest.mark.parametrize("prefix", ["", "zebraqpre"])
def test_a_deleted_fact_is_in_no_byte_of_a_small_store(path: str, backend: str, prefix: str) -> None:
    words = Words(1)
    with open_runtime(path, backend) as memory:
        kept = words.canary(prefix)
        learn(memory, f"Before it {kept}.", topic="kept")
        ref, gone = learn_canaries(memory, words, prefix)
        learn(memory, "After it.", topic="after")
        assert remnants(bytes_of(path), gone, [kept])
        report = mutate(memory, "delete", ref, reason=f"since {words.canary(prefix)}")
        assert report.erasure == "done"
        assert_gone(path, gone, [kept])
        assert recalled(memory, kept)
        assert_clean(memory)
    assert_gone(path, gone, [kept])


def test_not_even_the_reason_of_a_deletion_is_kept(path: str) -> None:
    words = Words(5)
    why = words.canary()
    with open_runtime(path) as memory:
        ref = learn(memory)
        mutate(memory, "delete", ref, reason=f"they asked about {why}")
        learn(memory, "Something else.", topic="other")
        token = mutate(memory, "forget_by_query", query="something", dry_run=True, reason=why).confirm_token
        mutate(memory, "forget_by_query", query="something", confirm=token, reason=why)
    assert_gone(path, [why])


@pytest.mark.parametrize("backend", DISK_BACKENDS)
def test_forgetting_among_neighbours_leaves_nothing_while_pages_merge(path: str, backend: str) -> None:
    words = Words(7)
    with open_runtime(path, backend, wal_bytes=256 * 1024) as memory:
        gone: list[str] = []
        refs: list[str] = []
        others: list[str] = []
        for number in range(150):
            if number % 10 == 3:
                ref, more = learn_canaries(memory, words, "zebraqpre")
                refs.append(ref)
                gone += more
            else:
                others.append(learn(memory, words.sentence(), topic=words.sentence()[:200]))
            commit(memory, turn(f"t{number}", words.sentence()))
        for number, ref in enumerate(others):
            if number % 8:
                mutate(memory, "delete", ref)
        for ref in refs:
            mutate(memory, "delete", ref)
        wait_for_erasures(memory)
        assert_gone(path, gone)
        assert not gaps(path)
        assert_clean(memory)
    assert_gone(path, gone)


def test_a_query_forgets_what_was_superseded_and_what_waits(path: str) -> None:
    words = Words(3)
    with open_runtime(path) as memory:
        canary = words.canary()
        old = learn(memory, f"Ana lives near {canary}.", topic="home")
        new = replace(memory, old, "Ana has moved away.", topic="home")
        candidate = {
            "candidate_id": "c1", "authority": "assistant_claimed", "target": "long_term", "privacy": "public_runtime",
            "topic": "where", "content": f"I think that Ana lives near {canary}.",
        }  # fmt: skip
        memory.write(kind="candidates", candidates=[candidate])
        report = forget(memory, canary)
        assert (report.refs, report.waiting, report.erasure) == ((old,), 1, "done")
        assert_gone(path, [canary])
        assert recalled(memory, "Ana") == {new: "Ana has moved away."}


def test_an_erasure_is_pending_while_a_reader_holds_an_old_state(path: str) -> None:
    words = Words(2)
    with open_runtime(path) as memory:
        ref, gone = learn_canaries(memory, words)
        with held_snapshot(memory):
            arguments = {"action": "delete", "ref": ref}
            report: Any = memory.call("long_term.mutate", arguments, deadline_ms=300)
            assert report.erasure == "pending" and memory.inspect().store.pending_erasures
            assert recalled(memory, gone[0]) == {}
        wait_for_erasures(memory)
        assert_gone(path, gone)


def test_an_erasure_is_finished_after_a_crash(path: str, tmp_path: Path) -> None:
    words = Words(4)
    copy = tmp_path / "copy"
    copy.mkdir()
    with open_runtime(path) as memory:
        ref, gone = learn_canaries(memory, words)
        with held_snapshot(memory):
            memory.call("long_term.mutate", {"action": "delete", "ref": ref}, deadline_ms=300)
            for each in Path(path).parent.glob("store.db*"):
                if not each.name.endswith("-shm"):
                    shutil.copy(each, copy / each.name)
    with open_runtime(copy / "store.db") as memory:
        wait_for_erasures(memory)
        assert_gone(str(copy / "store.db"), gone)
        assert_clean(memory)


def test_nothing_of_a_fact_stands_in_the_event_log_or_in_what_is_kept_for_a_repeated_call(path: str) -> None:
    words = Words(6)
    with open_runtime(path) as memory:
        ref, gone = learn_canaries(memory, words)
        memory.call(
            "long_term.mutate",
            {"action": "correct", "ref": ref, "content": f"now {gone[0]}", "reason": gone[1]},
            idempotency_key="k",
        )
        with store_of(memory).read() as tx:
            for table in ("event_log", "idempotency", "fact", "fact_revision", "derived_ref"):
                held = repr(list(tx.rows(f"SELECT * FROM {table}"))).lower()
                assert not any(word in held for word in gone), table
