"""Any chain of changes to facts, against a plain model of what counts, what counted, and what is gone."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from beetle.contracts.errors import Conflict
from beetle.runtime.areas.facts import facts
from beetle.store import long_term
from tests.governance.learned import (
    DRAFT,
    Clock,
    another,
    forget,
    learn,
    listed,
    mutate,
    projected,
    recalled,
    replace,
    within,
)
from tests.store.conftest import assert_clean, open_runtime, store_of, wait_for_erasures
from tests.store.test_erasure import Words, assert_gone

OWNER = {"view": "raw_owner"}
ACTIONS = st.sampled_from(["correct", "supersede", "replace", "mark_stale", "scope", "delete", "evidence", "restore"])
MOST = 30
"""Facts: a projection chooses from forty hits."""
picks = st.integers(0, 10_000)


@dataclass(eq=False)
class Text:
    """One text of a fact. `private`: what the fact was when it last said so."""

    words: str
    private: bool

    @property
    def canary(self) -> str:
        return self.words.split()[2]


@dataclass(eq=False)
class Fact:
    ref: str
    text: Text
    private: bool = False
    state: str = "current"
    revisions: int = 1
    texts: list[Text] = field(default_factory=list)


Moment = tuple[int, dict[str, Text]]


class Facts(RuleBasedStateMachine):
    """The model: facts by ref, and what counted at instants between the steps."""

    @initialize(seed=st.integers(0, 2**16))
    def begin(self, seed: int) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name, "store.db")
        self.clock = Clock()
        self.memory = open_runtime(self.path, now=self.clock)
        self.worker = another(self.memory)
        self.words = Words(seed)
        self.known: dict[str, Fact] = {}
        self.past: list[Moment] = []
        self.gone: list[str] = []

    def new_text(self, private: bool = False) -> Text:
        return Text(f"A fact {self.words.canary()} stands here.", private)

    def current(self) -> dict[str, Text]:
        return {each.ref: each.text for each in self.known.values() if each.state == "current"}

    def seen_by_worker(self, texts: dict[str, Text]) -> dict[str, str]:
        return {ref: text.words for ref, text in texts.items() if not (text.private or self.known[ref].private)}

    def keep(self, ref: str, text: Text) -> Fact:
        self.known[ref] = Fact(ref, text, text.private, texts=[text])
        return self.known[ref]

    def pick(self, number: int) -> Fact | None:
        return list(self.known.values())[number % len(self.known)] if self.known else None

    def drop(self, fact: Fact) -> None:
        fact.state = "deleted"
        fact.revisions += 1
        self.gone += [text.canary for text in fact.texts]
        for _, then in self.past:
            then.pop(fact.ref, None)

    @precondition(lambda self: len(self.known) < MOST)
    @rule(private=st.booleans())
    def learn_one(self, private: bool) -> None:
        text = self.new_text(private)
        ref = learn(self.memory, text.words, topic="", visibility="private" if private else "shared")
        self.keep(ref, text)

    @precondition(lambda self: self.known)
    @rule(number=picks, action=ACTIONS)
    def change_one(self, number: int, action: str) -> None:
        fact = self.pick(number)
        assert fact is not None
        getattr(self, f"_{action}")(fact)
        self.past.append((self.clock(), self.current()))

    def refuses(self, action: str, fact: Fact, **more: Any) -> None:
        with pytest.raises(Conflict) as caught:
            mutate(self.memory, action, fact.ref, **OWNER, **more)
        told = str(caught.value) + caught.value.hint
        assert not any(text.canary in told for text in fact.texts)

    def _correct(self, fact: Fact) -> None:
        text = self.new_text(fact.private)
        if fact.state in ("superseded", "deleted"):
            self.refuses("correct", fact, content=text.words)
            return
        report = mutate(self.memory, "correct", fact.ref, content=text.words, **OWNER)
        fact.text, fact.state, fact.revisions = text, "current", fact.revisions + 1
        fact.texts.append(text)
        assert (report.outcome, report.revision, bool(report.receipt)) == ("corrected", fact.revisions, True)

    def _supersede(self, fact: Fact) -> None:
        text = self.new_text(fact.private)
        if fact.state in ("superseded", "deleted"):
            self.refuses("supersede", fact, content=text.words)
            return
        report = mutate(self.memory, "supersede", fact.ref, content=text.words, **OWNER)
        assert report.ref is not None and report.receipt
        fact.state, fact.revisions = "superseded", fact.revisions + 1
        self.keep(report.ref, text)
        assert (report.ref, fact.ref) in [(each.derived, each.evidence) for each in report.derived_refs]

    def _replace(self, fact: Fact) -> None:
        if fact.state != "current":
            return
        text = self.new_text(fact.private)
        visibility = "private" if fact.private else "shared"
        ref = replace(self.memory, fact.ref, text.words, topic="", visibility=visibility)
        fact.state, fact.revisions = "superseded", fact.revisions + 1
        self.keep(ref, text)

    def _mark_stale(self, fact: Fact) -> None:
        if fact.state in ("superseded", "deleted"):
            self.refuses("mark_stale", fact)
            return
        report = mutate(self.memory, "mark_stale", fact.ref, **OWNER)
        assert report.outcome == ("unchanged" if fact.state == "stale" else "stale")
        fact.revisions += fact.state == "current"
        fact.state = "stale"

    def _restore(self, fact: Fact) -> None:
        if fact.state in ("superseded", "deleted"):
            return
        report = mutate(self.memory, "correct", fact.ref, content=fact.text.words, **OWNER)
        assert report.outcome == ("restored" if fact.state == "stale" else "unchanged")
        fact.revisions += fact.state == "stale"
        fact.state = "current"

    def _scope(self, fact: Fact) -> None:
        privacy = "public_runtime" if fact.private else "subject_private"
        if fact.state == "deleted":
            self.refuses("change_scope", fact, privacy=privacy)
            return
        assert mutate(self.memory, "change_scope", fact.ref, privacy=privacy, **OWNER).outcome == "scope_changed"
        fact.private = not fact.private
        fact.text.private = fact.private
        fact.revisions += 1

    def _evidence(self, fact: Fact) -> None:
        def run(invocation: Any, tx: Any, space: int) -> Any:
            row = long_term.find_fact(tx, space, fact.ref.partition(":")[2])
            assert row is not None
            cited = (f"evidence:local/c1/t{self.clock()}",)
            return facts.add_evidence(invocation, tx, space, row, DRAFT._replace(evidence=cited))

        if fact.state == "current":
            assert len(within(self.memory, run).derived_refs) == 1
            fact.revisions += 1

    def _delete(self, fact: Fact) -> None:
        report = mutate(self.memory, "delete", fact.ref, **OWNER)
        assert report.outcome == ("unchanged" if fact.state == "deleted" else "deleted")
        if fact.state != "deleted":
            assert report.erasure == "done" and report.receipt
            self.drop(fact)

    @precondition(lambda self: self.known)
    @rule(number=picks, old=st.booleans())
    def forget_by_words(self, number: int, old: bool) -> None:
        fact = self.pick(number)
        assert fact is not None
        text = fact.texts[0 if old else -1]
        report = forget(self.memory, text.canary, **OWNER)
        if fact.state == "deleted":
            assert (report.outcome, report.refs) == ("unchanged", ())
        else:
            assert (report.outcome, report.refs, report.erasure) == ("forgotten", (fact.ref,), "done")
            self.drop(fact)
        self.past.append((self.clock(), self.current()))

    @precondition(lambda self: self.past)
    @rule(number=picks)
    def look_back(self, number: int) -> None:
        at, then = self.past[number % len(self.past)]
        assert recalled(self.memory, "fact", at) == {ref: text.words for ref, text in then.items()}
        assert recalled(self.worker, "fact", at) == self.seen_by_worker(then)
        for text in then.values():
            assert text.words in recalled(self.memory, text.canary, at).values()

    @invariant()
    def only_what_is_current_is_shown(self) -> None:
        if not hasattr(self, "memory"):
            return
        now = self.current()
        assert recalled(self.memory, "fact") == {ref: text.words for ref, text in now.items()}
        assert recalled(self.worker, "fact") == self.seen_by_worker(now)
        block = projected(self.memory, "fact")
        for fact in self.known.values():
            for text in fact.texts:
                assert (text.canary in block) == (text in now.values())
        assert set(listed(self.memory, **OWNER)) == set(now)
        assert set(listed(self.worker)) == {ref for ref in now if not self.known[ref].private}

    @invariant()
    def every_step_has_its_revision_and_its_event(self) -> None:
        if not hasattr(self, "memory"):
            return
        with store_of(self.memory).read() as tx:
            subjects = [json.loads(row[0]) for row in tx.rows("SELECT subject FROM event_log WHERE topic = 'memory'")]
        for fact in self.known.values():
            shown = self.memory.get_long_term(ref=fact.ref, **OWNER)
            assert shown.record.state == fact.state
            assert [each.revision for each in shown.revisions] == list(range(1, fact.revisions + 1))
            record_id = fact.ref.partition(":")[2]
            told = [each["revision"] for each in subjects if each.get("record_id") == record_id]
            assert told == list(range(1, fact.revisions + 1))

    def teardown(self) -> None:
        if not hasattr(self, "memory"):
            return
        try:
            assert_clean(self.memory)
            wait_for_erasures(self.memory)
            alive = [text.canary for each in self.known.values() if each.state != "deleted" for text in each.texts]
            assert_gone(str(self.path), self.gone, alive)
        finally:
            self.memory.close()
            self.folder.cleanup()


def run_machine(examples: int, steps: int, derandomize: bool = True) -> None:
    options = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        derandomize=derandomize,
        print_blob=True,
        suppress_health_check=list(HealthCheck),  # type: ignore[arg-type] - pyright takes the enum for its metaclass
    )
    run_state_machine_as_test(Facts, settings=options)


def test_any_chain_of_changes_shows_what_counts_and_nothing_else() -> None:
    run_machine(examples=8, steps=20)


@pytest.mark.slow
def test_long_chains_of_changes_show_what_counts_and_nothing_else() -> None:
    # Many times the steps of the quick test: a run of 50 costs about 1 s.
    run_machine(examples=80, steps=50, derandomize=False)
