"""Shared by the tests of what waits: having something wait, listing it, deciding it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from beetle import MemoryRuntime
from beetle.contracts.errors import BeetleError, Forbidden
from beetle.contracts.waiting import DecisionOutcome, WaitingCandidate
from tests.store.conftest import store_of

OWNER: dict[str, Any] = {"view": "raw_owner"}
CANARY = "heliotrope7431"
WHY = "she told me"


def said(memory: MemoryRuntime, content: str, authority: str = "assistant_claimed", **more: Any) -> Any:
    """The outcome of a candidate."""
    given = {"candidate_id": "c", "target": "long_term", "privacy": "public_runtime", "content": content, **more}
    return memory.write(kind="candidates", candidates=[{**given, "authority": authority}]).outcomes[0]


def waiting(memory: MemoryRuntime, **more: Any) -> tuple[WaitingCandidate, ...]:
    return memory.list_waiting(what="candidates", **more).candidates


def decide(memory: MemoryRuntime, decision: str, *ids: str, **more: Any) -> list[DecisionOutcome]:
    reason = {"reason": WHY} if decision == "reject" else {}
    return list(memory.decide_waiting(ids=ids, decision=decision, **reason, **more).outcomes)


def refused(kind: type[BeetleError], memory: MemoryRuntime, decision: str, *ids: str, **more: Any) -> BeetleError:
    head = store_of(memory).head
    with pytest.raises(kind) as caught:
        decide(memory, decision, *ids, **more)
    assert store_of(memory).head == head or isinstance(caught.value, Forbidden)  # a refusal is an event
    return caught.value


def dropped(memory: MemoryRuntime) -> list[dict[str, Any]]:
    sql = "SELECT subject FROM event_log WHERE event = 'candidate_dropped' ORDER BY seq"
    with store_of(memory).read() as tx:
        return [json.loads(row[0]) for row in tx.rows(sql)]
