"""The machine's frame: places that are asked, models that know better, and a look around that compares the two."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from beetle.contracts.errors import BeetleError
from beetle.contracts.operations import BY_NAME
from beetle.open import state_fingerprint
from tests.sdk.judging import Judge
from tests.sdk.looking import look_around
from tests.sdk.model import Space
from tests.sdk.recorded import DAY_US, STEP_US, Recorded, Request
from tests.sdk.reopened import BACKENDS, CALLERS, Answer, Plain, ReopenedStores

OWNERS = ("ann", "b/\u00f6b %")
CHATS = ("c1", "x")
"""Chat ids. `c1` is a conversation's own id as well."""

SECRETS = {"appKeyOnce", "state_fingerprint"}
"""Fields that only the first answer to a key has."""
ENDING = {"memory.close", "snapshot.restore"}
"""After these there is nothing to ask again, or another store."""

owners = st.sampled_from((OWNERS[0], OWNERS[0], OWNERS[0], OWNERS[1]))
chats = st.sampled_from(CHATS)
callers = st.sampled_from(("owner", "agent", "worker"))
picks = st.integers(0, 1000)


def word_number(number: int) -> str:
    """A word that no other holds a piece of, and that stemming leaves alone."""
    return "w" + "".join("bdfghjlnpr"[int(digit)] for digit in f"{number:06}") + "k"


def _lasting(report: Plain) -> Plain:
    """What a repeated report says as the first one did: what a batch reads is read again, at another time."""
    if "reports" not in report:
        return report
    return {**report, "reports": [{k: v for k, v in each.items() if k != "lifecycle"} for each in report["reports"]]}


class Machine(RuleBasedStateMachine):
    """Random steps, asked of every place at once. Rules stand in the classes that derive from it."""

    backends: ClassVar[tuple[str, ...]] = BACKENDS
    answered: ClassVar[dict[str, int]] = {}
    """How often each operation was answered with a report, over all runs."""

    @initialize()
    def begin(self) -> None:
        self.places = ReopenedStores(self.backends)
        self.spaces = {owner: Space() for owner in OWNERS}
        self.words: list[str] = []
        self.used: list[str] = []
        self.keyed = False
        self.changes = 0
        self.looked = -1
        self.days = self.places.first.opened.profile.budgets.deferred_days
        self.begun()
        self.furnished()

    def begun(self) -> None:
        """What the rules of a derived class keep."""

    def furnished(self) -> None:
        """What is there before the first step: from nothing, most steps would do nothing."""

    def teardown(self) -> None:
        if not hasattr(self, "places"):
            return
        try:
            look_around(self)
        finally:
            for op, count in self.places.answered.items():
                self.answered[op] = self.answered.get(op, 0) + count
            self.places.close()

    # Asking

    def put(self, op: str, args: Plain, owner: str = "ann", **more: Any) -> Answer:
        """The places' answer, a report or an error. Of a write under a key, once it was asked again."""
        step = Request(op, args, owner=owner, **more)
        self.changes += BY_NAME[op].effect != "read"
        if self.keyed and BY_NAME[op].effect in ("write", "admin") and step.key is None and op not in ENDING:
            self.keyed = False
            step = replace(step, key=f"key-{len(self.places.steps)}")
            return self.twice(step)
        return self.places.ask(step)

    def twice(self, step: Request) -> Answer:
        """Ask again under the same key: nothing happens again, and the first report is told but for its secrets."""
        first = self.places.ask(step)
        if first.report is None:
            return first
        before = self.fingerprints()
        again = self.places.ask(replace(step, keep={}))
        assert again.report is not None and again.repeated and not first.repeated, (step, again)
        secret = {name for name in first.report if name in SECRETS}
        assert all(again.report[name] is None for name in secret), (step, again)
        told = [_lasting({k: v for k, v in each.items() if k not in secret}) for each in (first.report, again.report)]
        assert told[0] == told[1], step
        assert self.fingerprints() == before, step
        return first

    def ask(self, op: str, args: Plain, owner: str = "ann", **more: Any) -> Plain:
        """The report."""
        answer = self.put(op, args, owner, **more)
        if answer.error is not None:
            raise answer.error
        assert answer.report is not None
        return answer.report

    def refused(self, error_key: str, op: str, args: Plain, owner: str = "ann", **more: Any) -> BeetleError:
        """The error, which must have this key."""
        answer = self.put(op, args, owner, **more)
        assert answer.error is not None, (op, args, "should have been refused", answer.report)
        assert answer.error.key == error_key, answer.error
        return answer.error

    # Knowing

    def word(self) -> str:
        """A word that was never said."""
        self.words.append(word_number(len(self.words)))
        return self.words[-1]

    def some_word(self, pick: int) -> str:
        """One of the last few words of this sort, or a new one: things are said twice, claimed twice, and both."""
        known = self.used[-3:]
        if pick % 5 < len(known):
            return known[pick % 5]
        self.used.append(self.word())
        return self.used[-1]

    def judge(self, owner: str, who: str = "owner") -> Judge:
        """The rules, for this caller, at the time of the next step; records are named as the recording will have it."""
        recorded = Recorded()
        recorded.drawn = self.places.first.recorded.drawn

        def name(prefix: str) -> str:
            return f"{prefix}-{recorded.ids(8).hex()}"

        return Judge(self.spaces[owner], self.places.now + STEP_US, self.own_agent(who), name, self.days)

    @staticmethod
    def own_agent(who: str) -> bool:
        """Whether a caller is the space's own agent, who may see what is private."""
        return CALLERS[who].agent_id is not None

    def fingerprints(self) -> list[str]:
        """What each space holds, as a digest that must be the same everywhere."""
        told = [[state_fingerprint(place.opened, owner) for owner in OWNERS] for place in self.places.all]
        for place, other in zip(self.places.all, told, strict=True):
            assert other == told[0], (self.places.first.backend, place.backend, "hold something else")
        return told[0]

    # What every run may do

    @rule(days=st.sampled_from((0, 0, 0, 1, 60, 100)))
    def turn_aside(self, days: int) -> None:
        """Nothing happens for a while; the next write gets an idempotency key."""
        self.keyed = True
        self.changes += 1
        for place in self.places.all:
            place.recorded.go_on(days * DAY_US)

    @rule()
    def look(self) -> None:
        """Everything is as the model has it, and no look changes it. A second look at the same says nothing more, and
        the first of all examples, the simplest one, would be nothing but looks."""
        if self.looked == self.changes:
            return
        before = self.fingerprints()
        look_around(self)
        assert self.fingerprints() == before
        self.looked = self.changes

    @invariant()
    def the_counts_are_the_model_s(self) -> None:
        if not hasattr(self, "places"):
            return
        for owner, space in self.spaces.items():
            told = self.ask("memory.inspect", {}, owner)["counts"]
            wanted = space.counts()
            assert {name: told[name] for name in wanted} == wanted, owner
