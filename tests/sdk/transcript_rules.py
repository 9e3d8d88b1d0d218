"""Rules over evidence: commit, the same again, lifecycle steps; idempotency keys and batches."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from tests.sdk.machine import Machine, callers, chats, owners, picks
from tests.sdk.model import ERASED, Message, Space, Turn
from tests.sdk.reopened import CALLERS, Plain

ELSEWHERE = "c/2 \u00fc%"
"""A name that no ref may take as it is."""
CONVERSATIONS = ("c1", ELSEWHERE)
AT = "2024-03-09T12:00:00Z"
ROLES = ("user", "user", "assistant", "tool", "system")
VISIBILITIES = ("shared", "shared", "shared", "private", "soul", "backend", "operator")
ACTIONS = ("mask", "unmask", "delete_raw", "delete_raw", "archive", "review")
MOVES = {
    "mask": {"live": "masked"},
    "unmask": {"masked": "live"},
    "delete_raw": {"live": ERASED, "masked": ERASED},
}

conversations = st.sampled_from(("c1", *CONVERSATIONS))
messages = st.tuples(st.sampled_from(ROLES), st.sampled_from(VISIBILITIES))
shapes = st.lists(st.tuples(st.lists(messages, min_size=1, max_size=3), st.booleans()), min_size=1, max_size=3)


def wire(turn: Turn) -> Plain:
    """A turn as a host delivers it."""
    said = [
        {"message_id": each.message_id, "role": each.role, "content": each.text, "visibility": each.visibility}
        for each in turn.messages
    ]
    refs = [] if turn.label is None else [{"kind": "task", "ref_id": "r", "label": turn.label}]
    return {"turn_id": turn.turn_id, "at": turn.at, "messages": said, "host_refs": refs}


class TranscriptRules(Machine):
    """Evidence, in two conversations of two owners."""

    def new_turns(self, there: dict[str, Turn], shape: list[Any], pick: int) -> list[Turn]:
        made: list[Turn] = []
        for kinds, labelled in shape:
            turn_id = f"t{len(there) + len(made)}"
            messages = [
                Message(f"{turn_id}-{place}", role, visibility, self.some_word(pick + place))
                for place, (role, visibility) in enumerate(kinds)
            ]
            made.append(Turn(turn_id, AT, messages, f"label {self.word()}" if labelled else None))
        return made

    def committed(self, space: Space, who: str, chat: str, conversation: str, turns: list[Turn]) -> None:
        """What a commit of new turns leaves in the model."""
        there = space.conversations.setdefault(conversation, {})
        there.update({each.turn_id: each for each in turns})
        space.remembered[CALLERS[who].name, chat] = conversation
        space.tie(conversation, {each.turn_id for each in turns}, CALLERS[who].name, chat)

    @rule(owner=owners, who=callers, chat=chats, conversation=conversations, shape=shapes, pick=picks)
    def commit(self, owner: str, who: str, chat: str, conversation: str, shape: list[Any], pick: int) -> None:
        space = self.spaces[owner]
        turns = self.new_turns(space.conversations.get(conversation, {}), shape, pick)
        args = {"conversation": {"conversation_id": conversation}, "turns": [wire(each) for each in turns]}
        report = self.ask("transcript.commit", args, owner, who=who, chat=chat)
        assert (report["committed"], report["unchanged"]) == (len(turns), 0)
        self.committed(space, who, chat, conversation, turns)

    @rule(owner=owners, conversation=conversations, pick=picks)
    def commit_the_same_again_and_then_otherwise(self, owner: str, conversation: str, pick: int) -> None:
        there = self.spaces[owner].conversations.get(conversation)
        if not there:
            return
        turn = list(there.values())[pick % len(there)]
        where = {"conversation": {"conversation_id": conversation}}
        again = self.ask("transcript.commit", {**where, "turns": [wire(turn)]}, owner)
        assert (again["committed"], again["unchanged"], again["lifecycle"]["changed"]) == (0, 1, False)
        new = Turn(f"t{len(there)}", AT, [Message("m", "user", "shared", self.word())])
        other = Turn(turn.turn_id, AT, new.messages)
        if turn.is_erased:  # nobody can try a guess on what is gone
            again = self.ask("transcript.commit", {**where, "turns": [wire(other)]}, owner)
            assert (again["committed"], again["unchanged"]) == (0, 1)
            return
        self.refused("conflict", "transcript.commit", {**where, "turns": [wire(new), wire(other)]}, owner)

    @rule(
        owner=owners, who=callers, conversation=conversations, first=picks, second=picks,
        action=st.sampled_from(ACTIONS), dry_run=st.sampled_from((False, False, False, True)),
    )  # fmt: skip
    def step(
        self, owner: str, who: str, conversation: str, first: int, second: int, action: str, dry_run: bool
    ) -> None:
        space = self.spaces[owner]
        there = space.conversations.get(conversation, {})
        names = {list(there)[pick % len(there)] for pick in (first, second)} if there else {"t0"}
        turns = [turn for name, turn in there.items() if name in names]
        args = {
            "conversation": {"conversation_id": conversation}, "action": action, "turn_ids": sorted(names),
            "reason": "a test asks", "dry_run": dry_run,
        }  # fmt: skip
        sees = self.own_agent(who), who == "owner"
        derived = {
            each
            for turn in turns
            for each in space.derived_from(conversation, turn.turn_id)
            if space.knows(each[0], *sees)
        }
        report = self.ask("transcript.lifecycle", args, owner, who=who)
        told = {(each["derived"], each["evidence"], each["relation"]) for each in report["derived_refs"]}
        assert (report["affected_turns"], told) == (len(turns), derived)
        changed = False
        for turn in () if dry_run else turns:
            if action == "archive":
                changed, turn.archived = changed or not turn.archived, True
            for message in turn.messages:
                moves = MOVES.get(action, {})
                changed = changed or message.state in moves
                message.state = moves.get(message.state, message.state)
        erased = changed and action == "delete_raw"
        if erased:
            gone = {turn.turn_id for turn in turns}
            self.judge(owner, who).drop_citing(conversation, gone)
            space.drop_proposals_citing(conversation, gone)
        assert (report["changed"], report["erasure"]) == (changed, "done" if erased else None)

    @rule(owner=owners, chat=chats, shape=shapes, pick=picks, way=st.sampled_from(("again", "otherwise", "elsewhere")))
    def commit_with_a_key(self, owner: str, chat: str, shape: list[Any], pick: int, way: str) -> None:
        space = self.spaces[owner]
        turns = self.new_turns(space.conversations.get(ELSEWHERE, {}), shape, pick)
        args = {"conversation": {"conversation_id": ELSEWHERE}, "turns": [wire(each) for each in turns]}
        key = f"key-{len(self.places.steps)}"
        first = self.put("transcript.commit", args, owner, chat=chat, key=key)
        self.committed(space, "owner", chat, ELSEWHERE, turns)
        assert not first.repeated
        if way == "again":
            again = self.put("transcript.commit", args, owner, chat=chat, key=key)
            assert again.repeated and again.report == first.report
        elif way == "otherwise":
            other = {**args, "turns": [{**args["turns"][0], "at": "2025-01-01T00:00:00Z"}]}
            self.refused("conflict", "transcript.commit", other, owner, chat=chat, key=key)
        else:
            # Another caller's key is another key: the turns are there, and that is all.
            report = self.ask("transcript.commit", args, owner, who="worker", chat=chat, key=key)
            assert report["unchanged"] == len(turns)

    @precondition(lambda self: hasattr(self, "places"))
    @rule(owner=owners, chat=chats, shape=shapes, pick=picks, fails=st.booleans())
    def batch(self, owner: str, chat: str, shape: list[Any], pick: int, fails: bool) -> None:
        space = self.spaces[owner]
        turns = self.new_turns(space.conversations.get("c1", {}), shape, pick)
        commit = {"conversation": {"conversation_id": "c1"}, "turns": [wire(each) for each in turns]}
        requests: list[Plain] = [
            {"op": "transcript.commit", "args": commit},
            {"op": "transcript.replay", "args": {"conversation": commit["conversation"], "view": "host_ui"}},
        ]
        if fails:
            requests.append({"op": "skill.detail", "args": {"name": "no such skill"}})
            error = self.refused("not_found", "batch", {"requests": requests}, owner, chat=chat)
            assert error.details["index"] == 2
            return
        reports = self.ask("batch", {"requests": requests}, owner, chat=chat)["reports"]
        self.committed(space, "owner", chat, "c1", turns)
        assert reports[0]["committed"] == len(turns)
        assert reports[1]["turns"][-1]["turn_id"] in space.conversations["c1"]
