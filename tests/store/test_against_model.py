"""Random operations on a store and on a plain model of it, through the public SDK: both must say the same."""

from __future__ import annotations

import shutil
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

from beetle import MemoryRuntime
from beetle.contracts.common import WireScope
from beetle.contracts.errors import Conflict, NotFound
from tests.store.conftest import AT, DISK_BACKENDS, assert_clean, copy_at_rest, open_runtime, store_of

OWNERS = ("ann", "bob")
CONVERSATIONS = ("c1", "c2")
VISIBILITIES = ("shared", "shared", "private", "soul")
RAW_VIEWS = ("raw_owner", "host_ui", "model_context", "operator_audit", "export")


@dataclass
class Message:
    word: str
    visibility: str
    state: str = "live"


@dataclass
class Turn:
    messages: list[Message]
    archived: bool = False


@dataclass
class Skill:
    words: list[str]
    enabled: bool = True


@dataclass
class Space:
    conversations: dict[str, dict[str, Turn]] = field(default_factory=dict)
    skills: dict[str, Skill] = field(default_factory=dict)


class StoreAgainstModel(RuleBasedStateMachine):
    backend = "sqlite"

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="beetle-model-"))
        self.lives = 0
        self.words = 0
        self.spaces = {owner: Space() for owner in OWNERS}
        self.memory: MemoryRuntime | None = None

    @initialize()
    def open(self) -> None:
        self.memory = open_runtime(self.folder / "0" / "store.db", self.backend)

    def teardown(self) -> None:
        if self.memory is not None:
            self.memory.close()
        shutil.rmtree(self.folder)

    def word(self) -> str:
        """A word of its own, which stemming leaves apart from every other."""
        self.words += 1
        return "w" + "".join(chr(ord("b") + 2 * int(digit)) for digit in str(self.words)) + "k"

    def call(self, owner: str, operation: str, **arguments: Any) -> Any:
        assert self.memory is not None
        return self.memory.call(operation, arguments, scope=WireScope(owner_id=owner))

    def commit(self, owner: str, conversation: str, turns: dict[str, Turn]) -> Any:
        given = [
            {"turn_id": name, "at": AT, "messages": [
                {"message_id": f"{name}-{place}", "role": "user", "visibility": each.visibility,
                 "content": f"said {each.word} here"}
                for place, each in enumerate(one.messages)]}
            for name, one in turns.items()
        ]  # fmt: skip
        return self.call(owner, "transcript.commit", conversation={"conversation_id": conversation}, turns=given)

    @rule(
        owner=st.sampled_from(OWNERS), conversation=st.sampled_from(CONVERSATIONS),
        shape=st.lists(st.lists(st.sampled_from(VISIBILITIES), min_size=1, max_size=3), min_size=1, max_size=3),
    )  # fmt: skip
    def commit_new(self, owner: str, conversation: str, shape: list[list[str]]) -> None:
        there = self.spaces[owner].conversations.setdefault(conversation, {})
        fresh = {
            f"t{len(there) + place}": Turn([Message(self.word(), each) for each in kinds])
            for place, kinds in enumerate(shape)
        }
        assert self.commit(owner, conversation, fresh).committed == len(fresh)
        there.update(fresh)

    @rule(owner=st.sampled_from(OWNERS), conversation=st.sampled_from(CONVERSATIONS), pick=st.integers(0, 50))
    def commit_the_same_again_and_then_otherwise(self, owner: str, conversation: str, pick: int) -> None:
        there = self.spaces[owner].conversations.get(conversation)
        if not there:
            return
        name = sorted(there)[pick % len(there)]
        assert self.commit(owner, conversation, {name: there[name]}).unchanged == 1
        new = Turn([Message(self.word(), "shared")])
        with pytest.raises(Conflict):
            self.commit(owner, conversation, {f"t{len(there)}": new, name: new})

    @rule(
        owner=st.sampled_from(OWNERS), conversation=st.sampled_from(CONVERSATIONS), pick=st.integers(0, 50),
        action=st.sampled_from(("mask", "unmask", "delete_raw", "archive", "review")),
    )  # fmt: skip
    def step(self, owner: str, conversation: str, pick: int, action: str) -> None:
        there = self.spaces[owner].conversations.get(conversation, {})
        names = [sorted(there)[pick % len(there)]] if there else ["t0"]
        report = self.call(
            owner, "transcript.lifecycle", conversation={"conversation_id": conversation}, action=action,
            turn_ids=names, reason="a test asks",
        )  # fmt: skip
        changed = False
        for turn in (there[name] for name in names if name in there):
            if action == "archive":
                changed, turn.archived = not turn.archived, True
            moves = {"mask": {"live": "masked"}, "unmask": {"masked": "live"},
                     "delete_raw": {"live": "deleted", "masked": "deleted"}}.get(action, {})  # fmt: skip
            for message in turn.messages:
                changed = changed or message.state in moves
                message.state = moves.get(message.state, message.state)
        assert report.changed == changed
        assert report.erasure == ("done" if changed and action == "delete_raw" else None)

    @rule(owner=st.sampled_from(OWNERS), name=st.sampled_from(("s1", "s2")), edit=st.booleans())
    def write_skill(self, owner: str, name: str, edit: bool) -> None:
        skills, word = self.spaces[owner].skills, self.word()
        text = f"do {word} now"
        if edit:
            if name not in skills:
                with pytest.raises(NotFound):
                    self.call(owner, "skill.edit", name=name, procedure=text, edit_reason="r")
                return
            self.call(owner, "skill.edit", name=name, procedure=text, edit_reason="r")
        else:
            given = {"name": name, "topic": "t", "title": "a title", "summary": "a summary", "content": text}
            self.call(owner, "memory.write", kind="procedural", source="manual", writes=[given])
        skills.setdefault(name, Skill([])).words.append(word)

    @rule(owner=st.sampled_from(OWNERS), name=st.sampled_from(("s1", "s2")), enabled=st.booleans())
    def enable(self, owner: str, name: str, enabled: bool) -> None:
        if skill := self.spaces[owner].skills.get(name):
            self.call(owner, "skill.set_enabled", name=name, enabled=enabled)
            skill.enabled = enabled

    @rule(owner=st.sampled_from(OWNERS), name=st.sampled_from(("s1", "s2")))
    def delete_skill(self, owner: str, name: str) -> None:
        if self.spaces[owner].skills.pop(name, None):
            self.call(owner, "skill.delete", name=name)
        else:
            with pytest.raises(NotFound):
                self.call(owner, "skill.delete", name=name)

    @precondition(lambda self: self.backend != "in-memory")
    @rule(crash=st.booleans())
    def open_again(self, crash: bool) -> None:
        """After a close, or from a copy of the files as a crash would leave them."""
        assert self.memory is not None
        path = self.folder / str(self.lives) / "store.db"
        if crash:
            self.lives += 1
            copy = self.folder / str(self.lives) / "store.db"
            copy_at_rest(store_of(self.memory), path, copy)
            path = copy
        self.memory.close()
        self.memory = open_runtime(path, self.backend)
        assert not self.memory.open_report.created

    @rule()
    def verify(self) -> None:
        assert self.memory is not None
        assert_clean(self.memory)

    @invariant()
    def replay_shows_what_each_view_may_see(self) -> None:
        if self.memory is None:
            return
        for owner, space in self.spaces.items():
            for conversation, there in space.conversations.items():
                for view in RAW_VIEWS:
                    self._compare(owner, conversation, view, there)

    def _compare(self, owner: str, conversation: str, view: str, there: dict[str, Turn]) -> None:
        turns = self.call(
            owner, "transcript.replay", conversation={"conversation_id": conversation}, view=view, limit=500
        ).turns
        assert {turn.turn_id: turn.archived for turn in turns} == {n: t.archived for n, t in there.items()}
        assert [turn.sequence for turn in turns] == list(range(1, len(turns) + 1))
        for turn in turns:
            for shown, message in zip(turn.messages, there[turn.turn_id].messages, strict=True):
                visible = shown.content if isinstance(shown.content, str) else None
                assert shown.state == message.state
                assert visible == (f"said {message.word} here" if self._may_see(view, message) else None)

    @staticmethod
    def _may_see(view: str, message: Message) -> bool:
        if message.state == "deleted":
            return False
        if view == "raw_owner":
            return True
        return message.state == "live" and (
            (message.visibility == "shared" and view != "operator_audit")
            or (message.visibility == "private" and view == "model_context")
        )

    @invariant()
    def recall_finds_what_is_live_and_nothing_else(self) -> None:
        if self.memory is None:
            return
        expected: dict[str, str] = {}
        hidden: set[tuple[str, str]] = set()
        for owner, space in self.spaces.items():
            for turns in space.conversations.values():
                for message in (m for turn in turns.values() for m in turn.messages):
                    if message.state == "live" and message.visibility in ("shared", "private"):
                        expected[message.word] = owner
                    else:
                        hidden.add((owner, message.word))
            for skill in space.skills.values():
                *old, last = skill.words
                hidden |= {(owner, word) for word in old}
                if skill.enabled:
                    expected[last] = owner
                else:
                    hidden.add((owner, last))
        for word, owner in expected.items():
            for asker in OWNERS:
                assert self._found(asker, word) == (asker == owner), (asker, word, owner)
        for owner, word in hidden:
            assert not self._found(owner, word), (owner, word)

    def _found(self, owner: str, word: str) -> bool:
        return any(word in (hit.excerpt or "").split() for hit in self.call(owner, "memory.recall", query=word).hits)


def run(backend: str, examples: int, steps: int) -> None:
    machine = type("Machine", (StoreAgainstModel,), {"backend": backend})
    options = settings(
        max_examples=examples, stateful_step_count=steps, deadline=None, derandomize=True, print_blob=True,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    run_state_machine_as_test(machine, settings=options)


@pytest.mark.parametrize("backend", [*DISK_BACKENDS, "in-memory"])
def test_a_store_and_its_model_agree(backend: str) -> None:
    run(backend, examples=8, steps=14)


@pytest.mark.slow
@pytest.mark.parametrize("backend", [*DISK_BACKENDS, "in-memory"])
def test_a_store_and_its_model_agree_for_long(backend: str) -> None:
    # Eighteen times the steps of the quick test. Each costs one search a word said so far: 50 of them are about 1 s.
    run(backend, examples=40, steps=50)
