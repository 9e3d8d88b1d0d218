"""Turns are found by their times, though some came late: compared with a search through all of them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from beetle import MemoryRuntime
from tests.store.conftest import CONVERSATION, assert_clean, commit, open_runtime, store_of, turn

TURNS = 60
BEGIN = datetime(2026, 3, 1, tzinfo=UTC)


def day(number: int) -> str:
    return (BEGIN + timedelta(days=number)).isoformat().replace("+00:00", "Z")


def shuffled(seed: int) -> list[int]:
    """Days of turns: mostly in order, some twice, a run of late ones as an import brings it in."""
    chance = random.Random(seed)
    days = sorted(chance.randrange(80) for _ in range(TURNS - 20))
    for _ in range(8):
        days.insert(chance.randrange(len(days)), chance.randrange(80))
    return [*days[:30], *sorted(chance.randrange(80) for _ in range(TURNS - len(days))), *days[30:]]


@pytest.fixture(scope="module", params=[1, 2])
def held(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    days = shuffled(request.param)
    with open_runtime(tmp_path_factory.mktemp("times") / "store.db") as memory:
        for first in range(0, TURNS, 7):
            commit(memory, *(turn(f"t{n}", "a word", at=day(days[n])) for n in range(first, min(first + 7, TURNS))))
        yield memory, days


def begins(memory: MemoryRuntime, anchor: dict[str, Any]) -> int | None:
    turns = memory.transcript_timeline(conversation=CONVERSATION, view="raw_owner", anchor=anchor, limit=1).turns
    return turns[0].sequence if turns else None


def test_a_time_leads_to_the_first_turn_at_or_after_it(held: Any) -> None:
    memory, days = held
    for wanted in range(-1, 82):
        expected = next((n + 1 for n, each in enumerate(days) if each >= wanted), None)
        assert begins(memory, {"at": day(wanted)}) == expected, wanted


def test_a_stretch_of_time_leads_to_the_first_turn_in_it_also_to_a_late_one(held: Any) -> None:
    memory, days = held
    late = 0
    for wanted in range(-1, 82):
        for length in (0, 3):
            expected = next((n + 1 for n, each in enumerate(days) if wanted <= each <= wanted + length), None)
            late += expected is not None and max(days[:expected]) > days[expected - 1]
            assert begins(memory, {"first_in": {"from": day(wanted), "to": day(wanted + length)}}) == expected, wanted
    assert late, "no stretch begins with a late turn"


def test_a_step_on_what_was_before_a_time_takes_every_turn_that_was(held: Any) -> None:
    memory, days = held
    for wanted in (0, 17, 40, 63, 81):
        report = memory.request_transcript_lifecycle(
            conversation=CONVERSATION, action="review", before=day(wanted), reason="a test asks"
        )
        assert report.affected_turns == sum(each < wanted for each in days), wanted


def test_few_turns_have_a_row_in_the_index_of_late_ones(held: Any) -> None:
    memory, days = held
    with store_of(memory).read() as tx:
        rows = tx.value("SELECT count(*) FROM turn INDEXED BY turn_late WHERE at < latest")
    assert rows == sum(each < max(days[: n + 1]) for n, each in enumerate(days))
    assert_clean(memory)
