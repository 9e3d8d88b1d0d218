"""Search finds each text that has another one in it whatever the case: what spares the store rows misses none."""

from __future__ import annotations

import random
from typing import Any

import apsw
import pytest

from beetle.domain.chains import matching
from tests.store.conftest import open_runtime

ALPHABET = (
    "abikxKIX *?[]^-%_\\\"'{}\0\n\x7f\xa0,:é\u212a\u0130\u0131\u0307\u03c3\u03c2\u03a3\xdf\u1e9e"
    "\u01c4\u01c5\u01c6яЯ語😀"
)


def test_all_characters_of_a_lower_case_fit_its_pattern() -> None:
    database = apsw.Connection(":memory:")
    cased = [each for each in map(chr, range(0x110000)) if each.lower() != each and not "\ud800" <= each <= "\udfff"]
    assert len(cased) > 1000
    rows = [(f"({each})", matching.screen(f"({each.lower()})")) for each in cased]
    missed = [row for row in rows if list(database.execute("SELECT ? GLOB ?", row)) != [(1,)]]
    assert missed == []


def made(rolls: random.Random, most: int) -> str:
    return "".join(rolls.choices(ALPHABET, k=rolls.randrange(1, most)))


@pytest.mark.parametrize("examples", [100, pytest.param(3_000, marks=pytest.mark.slow)])
def test_search_finds_what_comparing_every_thought_finds(examples: int) -> None:
    rolls = random.Random(examples)
    said: list[tuple[str, tuple[str, ...], tuple[str, ...]]] = []
    with open_runtime(":memory:", "in-memory") as memory:
        for number in range(120):
            labels = [made(rolls, 5).strip() or "x" for _ in range(2)]
            thought = memory.append_thought(
                content=f"{made(rolls, 9)}{number}", thought_type="Plan", tags=labels[:1], concepts=labels[1:],
                agent_id="0", agent_name="0",
            ).thought  # fmt: skip
            said.append((thought.content or "", thought.tags or (), thought.concepts or ()))

        def compared(text: str, place: int) -> list[int]:
            """Places of thoughts that have a text in their content or a label, or in a label of one kind."""
            fields: list[Any] = [(content, *tags, *concepts) for content, tags, concepts in said]
            chosen = fields if not place else [each[place] for each in said]
            return [index for index, texts in enumerate(chosen) if any(text.lower() in each.lower() for each in texts)]

        found = 0
        for _ in range(examples):
            text = made(rolls, 4)
            for place, name in enumerate(("text", "tags_any", "concepts_any")):
                wanted: dict[str, Any] = {name: text if not place else [text]}
                if place and not text.strip():
                    continue
                thoughts = memory.search_thoughts(**wanted).thoughts
                assert [each.index for each in thoughts] == compared(text.strip() if place else text, place), wanted
                found += len(thoughts)
        assert found > examples
        assert [each.index for each in memory.search_thoughts(text="x" * 300).thoughts] == []
        last = memory.append_thought(content=f"{'ЯЖ' * 300}end", thought_type="Plan").thought
        assert [each.index for each in memory.search_thoughts(text="яж" * 300).thoughts] == [last.index]
        assert memory.search_thoughts(text=f"{'яж' * 300}and").thoughts == ()
        assert [
            each.index for each in memory.search_thoughts(tags_any=["nowhere", said[0][1][0]]).thoughts
        ] == compared(said[0][1][0], 1)
