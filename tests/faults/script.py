"""The scripted sequence of operations that every I/O point is failed under, and a plain model of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from beetle import MemoryRuntime
from beetle.contracts.errors import BeetleError
from tests.store.conftest import commit, delete_skill, lifecycle, replay, turn, write_skill

CANARY = "wrzqxyvkbnm"
LONG = "a long message with many words in it " * 300
State = frozenset[tuple[str, str, str]]
"""(kind, name, content) of what is there."""


def _with(kind: str, *names: tuple[str, str]) -> Callable[[State], State]:
    def change(state: State) -> State:
        there = {(k, n) for k, n, _ in state}
        return state | {(kind, name, content) for name, content in names if (kind, name) not in there}

    return change


def _to(name: str, kind: str, keep: bool) -> Callable[[State], State]:
    def change(state: State) -> State:
        hit = {each for each in state if each[1] == name and each[0] != "deleted"}
        return (state - hit) | {(kind, name, content if keep else "") for _, _, content in hit}

    return change


def _without(name: str) -> Callable[[State], State]:
    return lambda state: frozenset(each for each in state if each[1] != name)


def _skill(content: str) -> Callable[[State], State]:
    return lambda state: _without("s1")(state) | {("skill", "s1", content)}


class ScriptStep(NamedTuple):
    name: str
    run: Callable[[MemoryRuntime], Any]
    change: Callable[[State], State]


REFS = {"host_refs": [{"kind": "task", "ref_id": "r", "label": f"label {CANARY}"}],
        "attrs": [{"key": "k", "value": CANARY}]}  # fmt: skip
STEPS: tuple[ScriptStep, ...] = (
    ScriptStep("commit two", lambda m: commit(m, turn("t1", f"one {CANARY}", **REFS), turn("t2", "two apples")),
         _with("live", ("t1", f"one {CANARY}"), ("t2", "two apples"))),
    ScriptStep("write skill", lambda m: write_skill(m, "s1", "first do this"), _skill("first do this")),
    ScriptStep("commit long", lambda m: commit(m, turn("t3", LONG)), _with("live", ("t3", LONG))),
    ScriptStep("mask", lambda m: lifecycle(m, "mask", "t2"), _to("t2", "masked", keep=True)),
    ScriptStep("delete raw", lambda m: lifecycle(m, "delete_raw", "t1"), _to("t1", "deleted", keep=False)),
    ScriptStep("revise skill", lambda m: write_skill(m, "s1", "then do that"), _skill("then do that")),
    ScriptStep("delete long", lambda m: lifecycle(m, "delete_raw", "t3"), _to("t3", "deleted", keep=False)),
    ScriptStep("delete skill", lambda m: delete_skill(m, "s1"), _without("s1")),
    ScriptStep("commit last", lambda m: commit(m, turn("t4", "four pears")), _with("live", ("t4", "four pears"))),
)  # fmt: skip


class Outcome(NamedTuple):
    """What an operation answered: its report, or its error."""

    step: ScriptStep
    report: Any = None
    error: BeetleError | None = None


def attempt(memory: MemoryRuntime, step: ScriptStep) -> Outcome:
    try:
        return Outcome(step, report=step.run(memory))
    except BeetleError as error:
        return Outcome(step, error=error)


def possible(outcomes: list[Outcome], before: set[State]) -> set[State]:
    """Every state that the store may be in: acknowledged operations are there, failed ones wholly or not at all."""
    states = set(before)
    for step, _, error in outcomes:
        changed = {step.change(state) for state in states}
        states = changed if error is None else states | changed
    return states


def observed(memory: MemoryRuntime) -> State:
    """What the store says it holds."""
    try:
        turns = replay(memory)
    except BeetleError as error:
        assert error.key == "not_found", error
        turns = ()
    there: set[tuple[str, str, str]] = set()
    for each in turns:
        (message,) = each.messages
        there.add((message.state, each.turn_id, "" if message.state == "deleted" else message.content))
        if message.state == "deleted":
            assert not each.attrs and all(ref.label is None for ref in each.host_refs)
    for skill in memory.list_runtime_skills().runtime_skills:
        detail = memory.get_runtime_skill(name=skill.name)
        there.add(("skill", skill.name.removeprefix("runtime_skill__"), detail.procedure))
    return frozenset(there)
