"""Answers: a batch's reports and a page of turns are bounded by the profile, whatever they are made of."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from beetle.contracts import codec
from beetle.contracts.errors import PayloadTooLarge
from beetle.runtime.host.principals import OPERATOR
from beetle.runtime.pipeline.invocation import Call
from tests.transports.conftest import commit, turn
from tests.transports.serving import Served, open_folder

TEXT = "x" * 60_000
ROOM = 256_000
TURNS = 10
C = {"conversation_id": "c"}
REPLAY = {"op": "transcript.replay", "args": {"conversation": C, "view": "host_ui"}}


@pytest.fixture
def served() -> Iterator[Served]:
    with open_folder() as made, Served(Path(made), answer_bytes=ROOM, frame_bytes=2**20) as running:
        turns = [turn(number, TEXT) for number in range(TURNS)]
        assert ask(running, "transcript.commit", {"conversation": C, "turns": turns}).committed == TURNS
        yield running


def ask(served: Served, op: str, args: Any, **more: Any) -> Any:
    return served.dispatcher.dispatch(Call(op, args, OPERATOR, **more)).report


def test_reports_of_a_batch_that_reads_end_at_the_profile_s_bytes(served: Served) -> None:
    with pytest.raises(PayloadTooLarge) as told:
        ask(served, "batch", {"requests": [REPLAY] * 50})
    assert told.value.details["limit"] == "answer_bytes" and told.value.details["maximum"] == ROOM
    assert told.value.details["index"] == 1, "before the others were read"
    assert len(ask(served, "batch", {"requests": [REPLAY]}).reports) == 1


def test_a_batch_that_writes_too_is_undone(served: Served) -> None:
    head = served.store.head
    writing = {"op": "transcript.commit", "args": commit(100, "other")}
    with pytest.raises(PayloadTooLarge):
        ask(served, "batch", {"requests": [writing, *[REPLAY] * 5]}, idempotency_key="k")
    assert served.store.head == head
    assert ask(served, "batch", {"requests": [writing]}, idempotency_key="k").reports[0]["committed"] == 1


def test_a_repeat_whose_records_have_grown_ends_at_the_profile_s_bytes_and_says_so() -> None:
    def suppress(topic: str) -> Any:
        return {"op": "long_term.policy", "args": {"action": "suppress", "topic": topic}}

    several = {"requests": [suppress(f"topic {number}") for number in range(3)]}
    with open_folder() as made, Served(Path(made), answer_bytes=4000, message_content_bytes=4000) as running:
        ask(running, "batch", several, idempotency_key="several")
        ask(running, **suppress("one"), idempotency_key="one")
        for number in range(20):
            ask(running, **suppress(f"{number} {'x' * 240}"))
        one = ask(running, **suppress("one"), idempotency_key="one")
        assert one.profile_budget_applied and 4 < len(one.policies) < 24
        again = ask(running, "batch", several, idempotency_key="several")
        assert again.profile_budget_applied and len(again.reports) == 3
        assert len(codec.pack(again.reports)) < 4000
        assert [(len(each["policies"]), each["profile_budget_applied"]) for each in again.reports] == [
            (number + 1, True) for number in range(3)
        ]


@pytest.mark.parametrize("op", ["transcript.replay", "transcript.export"])
def test_a_page_ends_at_the_profile_s_bytes_and_the_next_goes_on(served: Served, op: str) -> None:
    args: dict[str, Any] = {"conversation": C, "view": "export" if op.endswith("export") else "host_ui", "limit": 9}
    seen: list[str] = []
    while True:
        page = ask(served, op, args)
        assert sum(len(each.messages[0].content) for each in page.turns) <= ROOM
        assert page.profile_budget_applied == page.has_more
        seen += [each.turn_id for each in page.turns]
        if not page.has_more:
            break
        args["cursor"] = page.next_cursor
    assert seen == [f"t{number}" for number in range(TURNS)]


@pytest.mark.parametrize(
    ("anchor", "found", "before", "after"),
    [
        ("latest", [6, 7, 8, 9], True, False),
        ({"before": 5}, [0, 1, 2, 3], False, True),
        ({"before": 6}, [1, 2, 3, 4], True, True),
        ({"after": 1}, [1, 2, 3, 4], True, True),
        ({"around": 6}, [1, 2, 3, 4, 5, 6, 7, 8], True, True),
    ],
)
def test_a_place_on_the_time_line_too(served: Served, anchor: Any, found: list[int], before: bool, after: bool) -> None:
    page = ask(served, "transcript.timeline", {"conversation": C, "view": "host_ui", "anchor": anchor, "limit": 10})
    assert [each.turn_id for each in page.turns] == [f"t{number}" for number in found]
    assert (page.has_before, page.has_after) == (before, after)


def test_one_turn_over_the_bytes_is_a_page_of_its_own(served: Served) -> None:
    messages = [{"message_id": f"big{n}", "role": "user", "content": TEXT} for n in range(6)]
    big = {"turn_id": "big", "at": "2026-01-02T03:04:05Z", "messages": messages}
    ask(served, "transcript.commit", {"conversation": {"conversation_id": "d"}, "turns": [big, turn(200)]})
    page = ask(served, "transcript.replay", {"conversation": {"conversation_id": "d"}, "view": "host_ui"})
    assert [each.turn_id for each in page.turns] == ["big"] and page.has_more
