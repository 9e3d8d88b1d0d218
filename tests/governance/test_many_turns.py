"""Masking, unmasking, archiving and reviewing many turns: in slices, with the same result as in one transaction."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from beetle import MemoryRuntime
from beetle.contracts.errors import DeadlineExceeded
from beetle.contracts.progress import ProgressStep
from beetle.runtime.areas.erasure import slices
from tests.building import talk, turn
from tests.governance.sliced import COUNTS, OTHER, WHERE, called_off, killed_in_slice, small_slices, step_of
from tests.store.conftest import assert_clean, bytes_of, open_runtime, wait_for_erasures
from tests.store.test_erasure import Words, assert_gone, remnants

__all__ = ["small_slices"]

PASSPHRASE = "correct horse battery"
STEPS = [("mask", "mask"), ("mask", "mask"), ("review", "reviewed"), ("unmask", "unmask"), ("archive", "archive"),
         ("archive", "archive")]  # fmt: skip
"""Actions, one after the other, and the event of one that changes anything."""


@pytest.fixture
def path(tmp_path: Path) -> str:
    return os.fspath(tmp_path / "store.db")


def say(memory: MemoryRuntime, count: int) -> list[str]:
    """So many turns of one conversation, each with a word of its own, by one speaker first and by another then."""
    words = Words(count)
    said = [words.canary() for _ in range(count)]
    turns = [turn(f"t{number}", f"it is {word}") for number, word in enumerate(said)]
    for number, each in enumerate(turns):
        each["messages"][0]["actor"] = {"speaker": "Ann" if number < 4 else "Bo"}
    memory.commit_transcript(conversation=WHERE, turns=turns)
    return said


def step(memory: MemoryRuntime, action: Any, on_progress: Any = None) -> Any:
    return memory.call("transcript.lifecycle", step_of(action), on_progress=on_progress)


def states(memory: MemoryRuntime) -> list[str]:
    turns = memory.replay_transcript(conversation=WHERE, view="raw_owner", limit=200).turns
    return [message.state for each in turns for message in each.messages]


def found(memory: MemoryRuntime, words: list[str]) -> list[bool]:
    return [bool(memory.recall(query=word).hits) for word in words]


def told(memory: MemoryRuntime) -> str:
    return memory.read_event_log(newest_first=True, limit=1).rows[0].event


def is_valid(memory: MemoryRuntime, receipt: str) -> bool:
    checked = memory.verify_store(receipt=receipt).receipt
    return checked is not None and checked.valid


@pytest.mark.parametrize("count", COUNTS)
def test_slices_do_what_one_transaction_does(tmp_path: Path, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    answers: list[list[Any]] = []
    for name, few in (("one", 1000), ("many", 2)):
        monkeypatch.setattr(slices, "FIRST_TURNS", few)
        answers.append([])
        with open_runtime(tmp_path / name) as memory:
            words = say(memory, count)
            for action, event in STEPS:
                report = step(memory, action)
                masked = action in ("mask", "review")
                assert (report.affected_turns, report.affected_messages) == (count, count)
                assert found(memory, words) == [not masked] * count
                assert set(states(memory)) == {"masked" if masked else "live"}
                if report.changed or action == "review":
                    assert (told(memory), report.erasure) == (event, None)
                assert not report.receipt or is_valid(memory, report.receipt)
                assert_clean(memory)
                listed = memory.list_conversations().conversations
                answers[-1].append((action, report.changed, report.turn_ids, report.message_ids, listed))
    one, many = answers
    assert [each[:-1] for each in one] == [each[:-1] for each in many]
    assert [bool(changed) for _, changed, *_ in one] == [True, False, False, True, True, False]
    speakers = [[[conversation.speakers for conversation in listed] for *_, listed in each] for each in answers]
    assert speakers[0] == speakers[1] and speakers[0][0] == [()] and speakers[0][3] == [("Ann", "Bo")]


def test_others_write_between_slices(path: str) -> None:
    with open_runtime(path) as memory:
        say(memory, 12)
        shares: list[int] = []

        def hear(heard: ProgressStep) -> None:
            if heard.name == "change" and 0 < heard.done < 12:
                shares.append(heard.done)
                assert_clean(memory)
                memory.call("transcript.commit", {**talk(turn(f"o{heard.done}", "beside")), "conversation": OTHER})

        assert step(memory, "mask", hear).changed
        assert len(set(shares)) > 2
        assert len(memory.replay_transcript(conversation=OTHER, view="host_ui").turns) == len(set(shares))


@pytest.mark.parametrize("count", COUNTS)
def test_what_was_masked_stays_masked_where_it_is_called_off(
    path: str, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_runtime(path) as memory:
        words = say(memory, count)
        with called_off(monkeypatch, "change") as hear, pytest.raises(DeadlineExceeded, match="stay masked"):
            step(memory, "mask", hear)
        assert told(memory) == "mask_called_off"
        wait_for_erasures(memory)
        masked = [state == "masked" for state in states(memory)]
        assert 4 <= masked.count(True) < count and masked == sorted(masked, reverse=True)
        assert found(memory, words) == [not each for each in masked]
        listed = memory.list_conversations().conversations
        assert [each.speakers for each in listed] == [("Bo",)]
        assert_clean(memory)
        assert step(memory, "unmask").changed and all(found(memory, words))


@pytest.mark.parametrize(("count", "number"), [(COUNTS[0], 1), (COUNTS[0], 3), (COUNTS[1], 31)])
def test_it_goes_on_when_the_store_is_opened_after_a_kill(path: str, count: int, number: int) -> None:
    with MemoryRuntime.open(path, profile="dev-full") as memory:
        words = say(memory, count)
    killed_in_slice(path, number, "transcript.lifecycle", step_of("mask"))
    with MemoryRuntime.open(path, profile="dev-full") as memory:
        assert "a step of transcripts (mask) that was begun is finished now" in memory.open_report.findings
        assert set(states(memory)) == {"masked"} and not any(found(memory, words))
        assert "mask_finished" in [each.event for each in memory.read_event_log(newest_first=True).rows]
        assert_clean(memory)
        again: Any = memory.call("transcript.lifecycle", step_of("mask"), idempotency_key="k")
        assert again.changed
        assert step(memory, "unmask").changed and all(found(memory, words))
    with MemoryRuntime.open(path, profile="dev-full") as memory:
        assert not memory.open_report.findings


def test_what_is_deleted_while_the_index_still_holds_masked_words_is_in_no_byte(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_runtime(path) as memory:
        words = say(memory, COUNTS[1])
        with called_off(monkeypatch, "change") as hear, monkeypatch.context() as patched:
            patched.setattr(slices.threading.Thread, "start", lambda self: None)
            with pytest.raises(DeadlineExceeded):
                step(memory, "mask", hear)
        gone = words[:2]
        deleted = {"conversation": WHERE, "action": "delete_raw", "turn_ids": ["t0", "t1"], "reason": "r"}
        assert remnants(bytes_of(path), gone)
        memory.call("transcript.lifecycle", deleted)
        assert_gone(path, gone)
        assert_clean(memory)


@pytest.mark.parametrize("merged", ["behind the call", "at the next opening"])
def test_what_a_full_restore_replaces_is_in_no_byte(path: str, merged: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with MemoryRuntime.open(path, profile="dev-full") as memory:
        memory.commit_transcript(conversation=OTHER, turns=[turn("o1", "stays here")])
        archive = memory.export_space(include_private=True, passphrase=PASSPHRASE).archive
        words = say(memory, COUNTS[1])
        assert remnants(bytes_of(path), words)
        with monkeypatch.context() as patched:
            if merged != "behind the call":
                patched.setattr(slices, "_finish", lambda *_: "")
            restored = memory.import_space(archive=archive, mode="full_restore", passphrase=PASSPHRASE)
        assert restored.erasure == ("done" if merged == "behind the call" else "pending")
    with MemoryRuntime.open(path, profile="dev-full") as memory:
        wait_for_erasures(memory)
        assert_gone(path, words)
        assert_clean(memory)
        assert found(memory, ["stays", words[0]]) == [True, False]
