"""What the writer knows of rows from commit to commit is forgotten when they change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from beetle import MemoryRuntime
from beetle.store import tool_observations
from beetle.store.engine.write_transaction import WriteTransaction
from beetle.store.tool_observations import ObservationRow
from tests.store.conftest import CONVERSATION, assert_clean, commit, lifecycle, open_runtime, store_of, turn


def said(name: str) -> dict[str, Any]:
    made = turn(name, f"what of {name}?")
    made["messages"][0]["actor"] = {"speaker": "Ann"}
    return made


def speakers(memory: MemoryRuntime) -> tuple[str, ...]:
    (one,) = memory.list_conversations().conversations
    return one.speakers


def test_a_speaker_who_was_erased_is_noted_when_he_speaks_again(tmp_path: Path) -> None:
    with open_runtime(tmp_path / "b.db") as memory:
        commit(memory, said("t1"))
        commit(memory, said("t2"))
        lifecycle(memory, "delete_raw", "t1", "t2")
        assert speakers(memory) == ()
        commit(memory, said("t3"))
        assert speakers(memory) == ("Ann",)
        assert_clean(memory)


def test_feedback_that_waits_for_its_turn_gets_it_behind_commits_that_found_none(tmp_path: Path) -> None:
    """It waits where its conversation was cleared, or came from a store in which it waited."""
    with open_runtime(tmp_path / "b.db") as memory:
        commit(memory, said("t1"))
        store = store_of(memory)
        row = ObservationRow(
            "r", "f", "global", "weather", "s", "succeeded", None, (), (), None, "t2", "embedded:test", 1,
            CONVERSATION["channel_id"], CONVERSATION["conversation_id"],
        )  # fmt: skip

        def wait(tx: WriteTransaction) -> None:
            (space,) = tx.row("SELECT space FROM conversation") or (0,)
            tool_observations.add_observation(tx, space, row, None)

        store.write(wait)
        commit(memory, said("t2"))
        with store.read() as tx:
            assert tx.value("SELECT t.turn_id FROM tool_observation JOIN turn t USING (turn)") == "t2"
