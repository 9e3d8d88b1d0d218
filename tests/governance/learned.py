"""Shared by the tests of long-term facts: learning one, changing one, and what every transport says of it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from beetle import MemoryRuntime
from beetle.contracts.common import WireScope
from beetle.runtime.areas.facts import facts
from beetle.runtime.areas.facts.facts import Draft
from beetle.runtime.host.caller import Caller
from beetle.runtime.pipeline.invocation import Call, Invocation
from beetle.store import evidence, long_term
from beetle.store.engine.write_transaction import WriteTransaction
from tests.store.conftest import store_of

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DRAFT = Draft(
    target="long_term",
    kind="fact",
    topic="spare key",
    content="The spare key is under the pot.",
    keywords=(),
    authority="user_asserted",
    visibility="shared",
    confidence=None,
    evidence=(),
    source_chat_id=None,
    extractor=None,
)


class Clock:
    """A clock that moves by a second a look, and can be asked what it showed last."""

    def __init__(self, start: int = 1_700_000_000_000_000) -> None:
        self._ticks = itertools.count(start, 1_000_000)
        self.shown = start

    def __call__(self) -> int:
        self.shown = next(self._ticks)
        return self.shown


def moment(at_us: int) -> datetime:
    return EPOCH + timedelta(microseconds=at_us)


def embedded(memory: MemoryRuntime) -> Any:
    return memory._opened


def invocation_of(memory: MemoryRuntime, operation: str = "long_term.mutate") -> Invocation:
    """The invocation of a call by the owner of the runtime."""
    opened = embedded(memory)
    _, invocation = opened.dispatcher._authorize(Call(operation, {}, opened._caller, opened._scope))
    return invocation


def within(memory: MemoryRuntime, run: Callable[[Invocation, WriteTransaction, int], Any]) -> Any:
    """Run something in a transaction of the owner's space."""
    invocation = invocation_of(memory)

    def job(tx: WriteTransaction) -> Any:
        return run(invocation, tx, evidence.ensure_space(tx, invocation.space_id, tx.now))

    return store_of(memory).write(job)


def learn(memory: MemoryRuntime, content: str = DRAFT.content, **more: Any) -> str:
    """Have a fact learned; its ref."""
    draft = DRAFT._replace(content=content, **more)
    return facts.fact_ref(within(memory, lambda invocation, tx, space: facts.learn(invocation, tx, space, draft)).row)


def replace(memory: MemoryRuntime, ref: str, content: str, **more: Any) -> str:
    """Have a fact superseded by governance; the new one's ref."""
    draft = DRAFT._replace(content=content, **more)

    def run(invocation: Invocation, tx: WriteTransaction, space: int) -> str:
        old = long_term.find_fact(tx, space, ref.partition(":")[2])
        assert old is not None
        return facts.fact_ref(facts.replace(invocation, tx, space, old, draft).row)

    return within(memory, run)


def mutate(memory: MemoryRuntime, action: str, ref: str | None = None, **more: Any) -> Any:
    if action not in ("delete", "forget_by_query"):
        more = {"reason": "a test asks", **more}
    return memory.mutate_long_term(action=action, **({} if ref is None else {"ref": ref}), **more)


def forget(memory: MemoryRuntime, query: str, **more: Any) -> Any:
    """Forget by a query, confirmed with the token of its dry run."""
    token = mutate(memory, "forget_by_query", query=query, dry_run=True, **more).confirm_token
    return mutate(memory, "forget_by_query", query=query, confirm=token, **more)


def recalled(memory: MemoryRuntime, query: str, as_of: int | None = None) -> dict[str, str]:
    """Ref to excerpt of the facts that recall finds."""
    when = {} if as_of is None else {"as_of": moment(as_of)}
    report = memory.recall(query=query, limit=200, **when)
    assert [hit for hit in report.hits if hit.plane == "long_term"] == list(report.long_term)
    return {hit.ref: hit.excerpt or "" for hit in report.long_term}


def projected(memory: MemoryRuntime, query: str) -> str:
    return memory.project(user_query=query, system_max_len=50_000).system_memory_block or ""


def listed(memory: MemoryRuntime, **more: Any) -> list[str]:
    return [each.ref for each in memory.list_long_term(limit=500, **more).records]


def another(
    memory: MemoryRuntime,
    *,
    name: str = "worker",
    kind: Any = "principal",
    views: tuple[Any, ...] = ("model_context", "host_ui"),
    agent: str | None = None,
    owner: str | None = None,
    capabilities: Iterable[str] | None = None,
) -> MemoryRuntime:
    """The same store as another caller sees it: by default one that is bound to no agent."""
    mine = embedded(memory)
    granted = mine._caller.capabilities if capabilities is None else frozenset(capabilities)
    caller = Caller(name, kind, granted, views, "in_process", owner, agent)
    scope = WireScope(owner_id=owner or mine._scope.owner_id, channel="local", chat_id="chat")
    return MemoryRuntime(type(mine)(mine._opened, caller, scope))
