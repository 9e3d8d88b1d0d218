"""Every refusal leaves a row in the event log, and ten thousand of a kind do not fill it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from beetle.contracts.common import WireScope
from beetle.contracts.errors import BeetleError
from beetle.open import Opened, open_store
from beetle.runtime.host.caller import Caller
from beetle.runtime.pipeline.invocation import Call
from beetle.runtime.pipeline.refusals import WINDOW_S, Refusals
from tests.runtime.callers import agent_of

REFUSED_SQL = "SELECT operation, principal, space, subject FROM event_log WHERE event = 'refused' ORDER BY seq"
CALLER = agent_of("one")
REPLAY = {"conversation": {"conversation_id": "secret-conversation"}, "view": "raw_owner"}


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    found = open_store(str(tmp_path / "beetle.db"), "profile-server-linux-dev-full")
    yield found
    found.store.close()


def logged(opened: Opened, refusals: Refusals | None = None) -> list[tuple[str, str, str | None, dict[str, Any]]]:
    assert (refusals or opened.dispatcher.refusals).flush(30)
    with opened.store.read() as tx:
        return [(op, who, space, json.loads(subject)) for op, who, space, subject in tx.rows(REFUSED_SQL)]


def ask(opened: Opened, op: str, args: Any = None, caller: Caller = CALLER, scope: WireScope | None = None) -> str:
    with pytest.raises(BeetleError) as caught:
        opened.dispatcher.dispatch(Call(op, args, caller, scope))
    return caught.value.key


def test_every_kind_of_refusal_leaves_a_row_with_ids_and_kinds_alone(opened: Opened) -> None:
    poor = CALLER._replace(name="poor", capabilities=frozenset())
    nobody = CALLER._replace(name="uid:4711", kind="unknown")
    assert ask(opened, "memory.recall", {"query": "secret"}, poor) == "forbidden"
    assert ask(opened, "transcript.replay", REPLAY) == "privacy_denied"
    assert ask(opened, "subscribe", {"topics": ["skill"]}) == "capability_hidden"
    assert ask(opened, "hello", {}, nobody) == "unauthorized"
    assert ask(opened, "memory.recall", {"query": "secret"}, scope=WireScope(owner_id="two")) == "forbidden"
    rows = logged(opened)
    assert rows == [
        ("memory.recall", "poor", None, {"error": "forbidden", "count": 1}),
        ("transcript.replay", "agent", None, {"error": "privacy_denied", "count": 1}),
        ("subscribe", "agent", None, {"error": "capability_hidden", "count": 1}),
        ("hello", "uid:4711", None, {"error": "unauthorized", "count": 1}),
        ("memory.recall", "agent", None, {"error": "forbidden", "count": 1}),
    ]
    assert "secret" not in str(rows)


def test_a_refused_step_of_a_batch_leaves_a_row(opened: Opened) -> None:
    poor = CALLER._replace(capabilities=CALLER.capabilities - {"skill"})
    batch = {"requests": [{"op": "memory.capabilities"}, {"op": "skill.list"}]}
    assert ask(opened, "batch", batch, poor) == "forbidden"
    assert [row[3] for row in logged(opened)] == [{"error": "forbidden", "count": 1}]


def test_a_mistake_is_no_refusal(opened: Opened) -> None:
    assert ask(opened, "memory.recall", {"query": ""}) == "invalid_request"
    assert ask(opened, "nothing.like.it") == "unknown_operation"
    assert ask(opened, "skill.delete", {"name": "x"}) == "not_found"
    assert logged(opened) == []


def test_ten_thousand_refusals_do_not_fill_the_log(opened: Opened) -> None:
    refusals = Refusals(opened.store)
    for _ in range(10_000):
        refusals.note(CALLER, "memory.recall", "forbidden")
    assert refusals.count == 10_000
    assert [row[3]["count"] for row in logged(opened, refusals)] == [1]


def test_what_a_window_held_back_is_told_by_the_next_refusal(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr("beetle.runtime.pipeline.refusals.time.monotonic", lambda: now[0])
    refusals = Refusals(opened.store)
    for _ in range(5):
        refusals.note(CALLER, "memory.recall", "forbidden")
    assert len(logged(opened, refusals)) == 1
    now[0] += WINDOW_S
    refusals.note(CALLER, "skill.list", "forbidden")
    assert len(logged(opened, refusals)) == 3
    refusals.note(CALLER, "memory.recall", "forbidden")
    assert [(row[0], row[3]["count"]) for row in logged(opened, refusals)] == [
        ("memory.recall", 1),
        ("memory.recall", 4),
        ("skill.list", 1),
        ("memory.recall", 1),
    ]


def test_the_caller_sees_its_own_error_when_the_log_cannot_be_written(opened: Opened) -> None:
    refusals = Refusals(opened.store)
    opened.store.close()
    refusals.note(CALLER, "memory.recall", "forbidden")
    assert refusals.count == 1


READS = [("event_log.read", {}), ("batch", {"requests": [{"op": "event_log.read"}]})]


@pytest.mark.parametrize(("op", "args"), READS, ids=["alone", "in a batch"])
def test_what_was_refused_stands_in_the_log_before_a_read_of_it(opened: Opened, op: str, args: dict[str, Any]) -> None:
    poor = CALLER._replace(name="poor", capabilities=frozenset())
    assert ask(opened, "memory.recall", {"query": "secret"}, poor) == "forbidden"
    opened.dispatcher.dispatch(Call(op, args, CALLER, None))
    with opened.store.read() as tx:
        assert [who for _, who, _, _ in tx.rows(REFUSED_SQL)] == ["poor"]
