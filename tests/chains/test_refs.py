"""Relations of thoughts to other records by their refs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from beetle import MemoryRuntime
from beetle.contracts.errors import BeetleError
from tests.store.conftest import CONVERSATION, assert_clean, commit, open_runtime, turn

SAID = "evidence:local/{conversation_id}/{{}}".format(**CONVERSATION)


def named_by(memory: MemoryRuntime, turn_id: str) -> set[str]:
    """What a deletion of a turn is told to rest on it."""
    done = memory.request_transcript_lifecycle(
        conversation=CONVERSATION, action="delete_raw", turn_ids=[turn_id], reason="r", dry_run=True
    )
    return {each.derived for each in done.derived_refs}


def append(memory: MemoryRuntime, content: str, *refs: str) -> Any:
    relations = [{"kind": "caused_by", "ref": each} for each in refs]
    return memory.append_thought(chain_key="c", thought_type="Plan", content=content, relations=relations).thought


def test_a_relation_names_a_record_that_is_there(tmp_path: Path) -> None:
    with open_runtime(tmp_path / "b.db") as memory:
        commit(memory, turn("t1", "the disk is full"))
        made = append(memory, "buy one", SAID.format("t1"))
        assert made.relations[0].ref == SAID.format("t1")
        append(memory, "two", made.ref, "a ticket 4711")
        for wrong in (
            SAID.format("t9"),
            "thoughts:c/9",
            "thoughts:other/0",
            "long_term:f-0",
            "procedural:none",
            "thoughts:c",
        ):
            with pytest.raises(BeetleError) as refused:
                append(memory, "three", made.ref, wrong)
            assert refused.value.key == "invalid_request"
            assert refused.value.details["path"] == "$.args.relations[1].ref"
        assert memory.chain_head(chain_key="c").thought_count == 2
        assert_clean(memory)


def test_who_erases_a_turn_is_told_of_the_thoughts_that_name_it(tmp_path: Path) -> None:
    with open_runtime(tmp_path / "b.db") as memory:
        for each in ("t1", "t2"):
            commit(memory, turn(each, f"said in {each}"))
        append(memory, "rests on one", SAID.format("t1"))
        append(memory, "rests on both", SAID.format("t1"), SAID.format("t2"))
        append(memory, "rests on none")
        assert named_by(memory, "t1") == {"thoughts:c/0", "thoughts:c/1"}
        tried = memory.forget(query="said in t1", dry_run=True)
        assert tried.counts["thoughts"] == 1
        memory.forget(query="said in t1", token=tried.token)
        left = [each.content for each in memory.search_thoughts(chain_key="c").thoughts]
        assert left == [None, "rests on both", "rests on none"]
        # What was erased was there: a relation to it leads nowhere any more, and nothing is wrong with that.
        assert_clean(memory)


def test_an_imported_thought_is_joined_to_the_turns_that_are_there(tmp_path: Path) -> None:
    with open_runtime(tmp_path / "a.db") as memory, open_runtime(tmp_path / "b.db") as other:
        commit(memory, turn("t1", "the disk is full"))
        append(memory, "buy one", SAID.format("t1"))
        words = {"include_private": True, "passphrase": "correct horse battery"}
        taken = memory.export_space(**words)  # type: ignore[arg-type]
        other.import_space(archive=taken.archive, passphrase="correct horse battery", mode="bootstrap_import")
        assert named_by(other, "t1") == {"thoughts:c/0"}
        assert_clean(other)
