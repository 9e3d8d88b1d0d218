"""Shared by the tests of write governance: one store in memory with a clock that is set by hand."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from beetle.contracts.codec import to_plain
from beetle.contracts.common import WireScope
from beetle.contracts.errors import ERRORS, BeetleError
from beetle.open import open_store
from beetle.runtime.host.caller import Caller
from beetle.runtime.host.dependencies import Dependencies
from beetle.runtime.host.principals import OPERATOR_CAPABILITIES
from beetle.runtime.pipeline.invocation import Call
from beetle.store.engine.write_transaction import WriteTransaction

PROFILE = "profile-server-linux-dev-full"
DAY_US = 86_400_000_000
START_US = 1_750_000_000_000_000
Plain = dict[str, Any]

TALK = {"channel_id": "local", "conversation_id": "talk"}
OWN = ("host_ui", "model_context", "operator_audit", "export", "raw_owner")


def caller(owner: str, kind: Any = "embedded", name: str = "embedded:agent-main") -> Caller:
    capabilities = OPERATOR_CAPABILITIES | {"transcript.raw", "private.read"}
    return Caller(name, kind, capabilities, OWN, "in_process", owner, "agent-main")


class JudgedStore:
    """One store; every call is at a later microsecond. `sleep` lets days go by; a change of `now` is a step."""

    def __init__(self, profile: str = PROFILE) -> None:
        self.now = START_US
        self.slept = 0
        self.opened = open_store("in memory", profile, "in-memory", dependencies=self.dependencies)
        self.days = self.opened.profile.budgets.deferred_days
        self.turns: set[tuple[str, str]] = set()

    def _tick(self) -> int:
        self.now += 1
        return self.now

    @property
    def dependencies(self) -> Dependencies:
        return Dependencies(clock=self._tick, elapsed=lambda: self.slept)

    def sleep(self, days: float) -> None:
        self.now += int(days * DAY_US)
        self.slept += int(days * DAY_US)

    def call(self, op: str, args: Mapping[str, Any], owner: str = "owner", chat: str = "chat-1", **who: Any) -> Any:
        call = Call(op, args, caller(owner, **who), WireScope(owner_id=owner, chat_id=chat))
        return json.loads(json.dumps(to_plain(self.opened.dispatcher.dispatch(call).report)))

    def refused(self, key: str, op: str, args: Mapping[str, Any], **where: Any) -> BeetleError:
        with pytest.raises(BeetleError) as caught:
            self.call(op, args, **where)
        assert isinstance(caught.value, ERRORS[key]) and caught.value.key == key, caught.value
        return caught.value

    def judge(self, *candidates: Plain, **where: Any) -> list[Plain]:
        """The outcomes of candidates."""
        report = self.call("memory.write", {"kind": "candidates", "candidates": list(candidates)}, **where)
        assert report["accepted"] == sum(each["outcome"] == "accepted" for each in report["outcomes"])
        return list(report["outcomes"])

    def verdict(self, given: Plain, **where: Any) -> tuple[str, str]:
        (found,) = self.judge(given, **where)
        return found["outcome"], found["reason"]

    def facts(self, state: str = "current", **where: Any) -> list[Plain]:
        report = self.call("long_term.list", {"state": state, "limit": 100}, **where)
        assert not report["has_more"]
        return list(report["records"])

    def rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        assert self.opened.dispatcher.refusals.flush(30)
        with self.opened.store.read() as tx:
            return list(tx.rows(sql, *values))

    def weaken(self, refs: Iterable[str | None]) -> None:
        """Have facts and skills be an assistant's claims."""
        names = json.dumps([ref.partition(":")[2] for ref in refs if ref is not None])
        within = "(SELECT value FROM json_each(?))"

        def job(tx: WriteTransaction) -> None:
            tx.run(f"UPDATE fact SET authority = 'assistant_claimed' WHERE record_id IN {within}", names)
            tx.run(f"UPDATE skill SET authority = 'assistant_claimed' WHERE name IN {within}", names)

        self.opened.store.write(job)

    def waiting(self) -> list[tuple[str, str]]:
        """(candidate_id, reason) of the queue."""
        return self.rows("SELECT candidate_id, reason FROM candidate ORDER BY candidate")

    def events(self) -> list[str]:
        return [row[0] for row in self.rows("SELECT event FROM event_log WHERE topic = 'memory' ORDER BY seq")]

    def talk(self, *messages: Plain, turn_id: str = "t1", owner: str = "owner") -> None:
        turn = {"turn_id": turn_id, "at": "2024-05-01T10:00:00Z", "messages": list(messages)}
        self.call("transcript.commit", {"conversation": TALK, "turns": [turn]}, owner=owner)
        self.turns.add((owner, turn_id))

    def lifecycle(self, action: str, *turn_ids: str) -> None:
        step = {"conversation": TALK, "action": action, "turn_ids": list(turn_ids), "reason": "a test asked"}
        self.call("transcript.lifecycle", step)

    def close(self) -> None:
        self.opened.store.close()


def message(message_id: str, role: str = "user", content: str = "said", visibility: str = "shared") -> Plain:
    return {"message_id": message_id, "role": role, "content": content, "visibility": visibility}


def candidate(candidate_id: str, content: str, authority: str = "user_asserted", **more: Any) -> Plain:
    return {
        "candidate_id": candidate_id,
        "authority": authority,
        "target": "long_term",
        "privacy": "shared_with_subject",
        "content": content,
        "evidence_refs": [],
        **more,
    }


def ref(message_id: str | None = None, turn_id: str = "t1") -> str:
    return f"evidence:local/talk/{turn_id}" + (f"/{message_id}" if message_id else "")
