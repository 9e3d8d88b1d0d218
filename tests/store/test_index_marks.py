"""The marks by which FTS5 finds a page of the recall index, when removals and merges come together."""

from __future__ import annotations

import random

import pytest

from beetle.store.engine.transaction import Reading
from beetle.store.index_pages import SEGMENT_BITS, are_marked, first_term
from beetle.store.recall_index import PAGE_SQL
from tests.store.conftest import assert_clean, open_runtime, store_of

OPTION_SQL = "INSERT INTO recall_index (recall_index, rank) VALUES (?, ?)"
ALL_MARKS_SQL = "SELECT segid, term, pgno >> 1 FROM recall_index_idx ORDER BY segid, term"
ROUNDS = 40
SKILLS = 20
CHANGED = 8


def misplaced(tx: Reading) -> list[tuple[int, bytes, int]]:
    """Marks that stand behind the first term of their page: what is on it in front of them is found no more."""
    wrong: list[tuple[int, bytes, int]] = []
    for segment, mark, page in tx.rows(ALL_MARKS_SQL):
        first = first_term(tx.value(PAGE_SQL, segment << SEGMENT_BITS | page))
        if first is not None and mark > first:
            wrong.append((segment, mark, page))
    return wrong


@pytest.mark.parametrize("seed", [15, 17])
def test_a_removal_that_sets_off_a_merge_moves_no_mark_of_the_new_segment(path: str, seed: int) -> None:
    rolls = random.Random(seed)
    words = ["".join(rolls.choices("abcdefghijklmnop", k=rolls.randint(4, 12))) for _ in range(300)]

    def skill(number: int) -> dict[str, str]:
        said = " ".join(rolls.sample(words, rolls.randint(20, 100)))
        return {"name": f"s{number}", "topic": "t", "title": "t", "summary": "s", "content": said}

    with open_runtime(path) as memory:
        store = store_of(memory)
        # Small pages and merges at once make of a few skills what a large store has after weeks.
        for name, value in (("pgsz", 32), ("crisismerge", 3), ("automerge", 2)):
            store.write(lambda tx, name=name, value=value: tx.run(OPTION_SQL, name, value))
        memory.write(kind="procedural", source="import", writes=[skill(each) for each in range(SKILLS)])
        for _ in range(ROUNDS):
            some = rolls.sample(range(CHANGED), rolls.choice([1, 2, 4, CHANGED]))
            memory.write(kind="procedural", source="import", writes=[skill(each) for each in some])
            with store.read() as tx:
                assert misplaced(tx) == []
                assert are_marked(tx)
        assert_clean(memory)
