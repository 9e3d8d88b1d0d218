"""Rules over what is believed: candidates, extractions, policies, and every change to a fact."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from beetle.contracts.codec import format_us
from tests.governance.specification import AUTHORITIES, PRIVACIES, TARGETS
from tests.sdk.judging import Judge, Outcome, remove
from tests.sdk.looking import RAW, found
from tests.sdk.machine import callers, chats, owners, picks
from tests.sdk.model import Claim, Fact, Item, Policy, Skill, Space
from tests.sdk.recorded import Earlier
from tests.sdk.reopened import Plain
from tests.sdk.skill_rules import NAMES, SkillRules

KINDS = ("fact", "fact", "fact", "preference")
TOPICS = ("", *NAMES)
MUTATIONS = ("correct", "correct", "supersede", "delete", "delete", "mark_stale", "change_scope", "restore", "retopic")

claims = st.fixed_dictionaries(
    {
        "authority": st.sampled_from(AUTHORITIES),
        "target": st.sampled_from(("long_term",) * 4 + TARGETS),
        "privacy": st.sampled_from(("shared_with_subject", "shared_with_subject", *PRIVACIES)),
        "kind": st.sampled_from(KINDS),
        "topic": st.sampled_from(TOPICS),
        "word": picks,
        "cites": picks,
        "echo": picks,
    }
)


class FactRules(SkillRules):
    """Facts, skills that candidates make, private records, what waits, and the policies over them."""

    def begun(self) -> None:
        super().begun()
        self.past: list[tuple[int, dict[str, dict[str, str]]]] = []

    @rule()
    def note_the_time(self) -> None:
        """What counts now can be asked for later."""
        now = {
            owner: {each.ref: each.content for each in space.facts.values() if each.state == "current"}
            for owner, space in self.spaces.items()
        }
        self.past.append((self.places.now, now))

    @precondition(lambda self: bool(getattr(self, "past", ())))
    @rule(owner=owners, pick=picks, word=picks)
    def look_back(self, owner: str, pick: int, word: int) -> None:
        if not self.past or not self.words:
            return
        at, then = self.past[pick % len(self.past)]
        asked = self.words[-1 - word % min(8, len(self.words))]
        facts = self.spaces[owner].facts
        wanted = {
            ref for ref, said in then[owner].items() if asked in said.split() and facts[ref].state != "deleted"
        }  # fmt: skip
        for who in ("owner", "agent"):
            refs = found(self, asked, owner, who, as_of=format_us(at), planes=["long_term"])
            assert refs == wanted, (asked, at)

    def claim(self, owner: str, chat: str, given: dict[str, Any], place: int) -> Claim:
        """A claim; one of three is about what was claimed before, and says the same or otherwise."""
        space, echo = self.spaces[owner], given["echo"]
        target, kind, topic = given["target"], given["kind"], given["topic"]
        evidence = self.evidence(owner, given["cites"])
        content = f"keep {self.said_or_some_word(space, evidence, given['word'])} so"
        earlier: list[Claim | Fact] = [each.claim for each in space.waiting if each.claim.record_id is None]
        earlier += [each for each in space.facts.values() if each.state == "current"]
        if earlier and echo % 3 == 0:
            source = earlier[echo // 6 % len(earlier)]
            target, kind, topic = source.target, source.kind, source.topic
            content = content if echo % 2 else source.content
        return Claim(
            f"cand-{given['word'] % 3}-{place}", given["authority"], target, given["privacy"], content, kind, topic,
            evidence, chat,
        )  # fmt: skip

    def said_or_some_word(self, space: Space, evidence: tuple[str, ...], word: int) -> str:
        """Mostly the word of a message that is cited, so that the evidence bears what is claimed."""
        said = [message.word for ref in evidence for message in space.messages_of(ref)]
        return said[0] if said and word % 4 else self.some_word(word)

    @rule(owner=owners, who=callers, chat=chats, given=st.lists(claims, min_size=1, max_size=3))
    def candidates(self, owner: str, who: str, chat: str, given: list[dict[str, Any]]) -> None:
        made = [
            replace(self.claim(owner, chat, each, place), by_operator=who == "owner")
            for place, each in enumerate(given)
        ]
        wire = [
            {"candidate_id": each.candidate_id, "authority": each.authority, "target": each.target,
             "privacy": each.privacy, "content": each.content, "kind": each.kind, "topic": each.topic,
             "evidence_refs": list(each.evidence)}
            for each in made
        ]  # fmt: skip
        args = {"kind": "candidates", "candidates": wire}
        if who != "owner" and any(each.authority == "operator" for each in made):
            self.refused("forbidden", "memory.write", args, owner, who=who, chat=chat)
            return
        judge = self.judge(owner, who)
        judge.drop_expired()
        wanted = [_told(judge.consider(each)) for each in made]
        report = self.ask("memory.write", args, owner, who=who, chat=chat)
        assert [_shown(each) for each in report["outcomes"]] == wanted
        assert report["accepted"] == sum(each[0] == "accepted" for each in wanted)

    @rule(owner=owners, chat=chats, topic=st.sampled_from(TOPICS), word=picks, cites=picks)
    def extraction(self, owner: str, chat: str, topic: str, word: int, cites: int) -> None:
        space, evidence = self.spaces[owner], self.evidence(owner, cites)
        messages = [message for ref in evidence for message in space.messages_of(ref)]
        content = f"keep {self.said_or_some_word(space, evidence, word)} so"
        judge = self.judge(owner)
        ranks = (("user", "user_asserted"), ("tool", "tool_observed"), ("assistant", "assistant_claimed"))
        bearing = judge.borne_by(content, evidence)
        cited = {each.role for each in messages}
        authority = next(
            (name for roles in (bearing, cited) for role, name in ranks if role in roles), "host",
        )  # fmt: skip
        private = any(each.visibility == "private" for each in messages)
        privacy = "subject_private" if private else "shared_with_subject"
        claim = Claim(
            "", authority, "long_term", privacy, content, "fact", topic, evidence, chat,
            confidence=0.25 + word % 3 / 4,
        )  # fmt: skip
        judge.drop_expired()
        wanted = _told(judge.consider(claim))
        item = {"kind": "fact", "topic": topic, "content": claim.content, "confidence": claim.confidence,
                "evidence_refs": list(evidence)}  # fmt: skip
        args = {"kind": "long_term_extraction", "extraction": {"items": [item], "extractor": "a test"}}
        (outcome,) = self.ask("memory.write", args, owner, chat=chat)["outcomes"]
        assert _shown(outcome) == wanted

    @rule(
        owner=owners, action=st.sampled_from(("pause", "suppress", "resume", "resume")),
        kind=st.sampled_from((None, None, *KINDS)), topic=st.sampled_from((None, *NAMES)),
        chat=st.sampled_from((None, None, "x")),
    )  # fmt: skip
    def policy(self, owner: str, action: str, kind: str | None, topic: str | None, chat: str | None) -> None:
        judge, policy = self.judge(owner), Policy(action, kind, topic, chat)
        given = {"action": action, "kind": kind, "topic": topic, "chat_id": chat}
        args = {name: value for name, value in given.items() if value is not None}
        if action == "suppress" and kind is None and topic is None:
            self.refused("invalid_request", "long_term.policy", args, owner)
            return
        judge.drop_expired()
        changed = judge.policy(policy)
        rejudged = judge.judge_again("policy_paused") if changed and action == "resume" else 0
        report = self.ask("long_term.policy", args, owner)
        assert (report["changed"], report["rejudged"]) == (changed, rejudged)

    @precondition(lambda self: hasattr(self, "spaces") and bool(self.spaces["ann"].facts))
    @rule(owner=owners, who=callers, pick=picks, action=st.sampled_from(MUTATIONS), word=picks)
    def mutate(self, owner: str, who: str, pick: int, action: str, word: int) -> None:
        space = self.spaces[owner]
        if not space.facts:
            return
        fact = list(space.facts.values())[pick % len(space.facts)]
        args: Plain = {"action": action, "ref": fact.ref, "view": RAW[who]}
        if action == "retopic":
            args |= {"action": "correct", "topic": TOPICS[word % 3]}
        elif action == "restore":
            args |= {"action": "correct", "content": fact.content}
        elif action in ("correct", "supersede"):
            args |= {"content": f"keep {self.some_word(word)} so"}
        elif action == "change_scope":
            args |= {"privacy": "public_runtime" if fact.private else "subject_private"}
        if args["action"] != "delete":
            args |= {"reason": "a test asks"}
        key = refusal(self.own_agent(who), who, fact, args)
        if key is not None:
            self.refused(key, "long_term.mutate", args, owner, who=who)
            return
        foreseen = self.ask("long_term.mutate", {**args, "dry_run": True}, owner, who=who)
        judge = self.judge(owner, who)
        wanted = mutated(judge, fact, args, "operator" if who == "owner" else "user_asserted")
        report = self.ask("long_term.mutate", args, owner, who=who)
        assert (report["outcome"], report["ref"], report["revision"]) == wanted
        assert (foreseen["outcome"], foreseen["changed"]) == (wanted[0], False)
        assert report["changed"] == (wanted[0] != "unchanged") == bool(report["receipt"])
        assert report["erasure"] == ("done" if wanted[0] == "deleted" else None)

    @rule(owner=owners, who=callers, pick=picks, first=st.booleans())
    def forget(self, owner: str, who: str, pick: int, first: bool) -> None:
        space, sees = self.spaces[owner], self.own_agent(who)
        if not self.words:
            return
        word = self.words[-1 - pick % min(8, len(self.words))]
        facts = [
            each
            for each in space.facts.values()
            if each.state != "deleted" and (sees or not each.private) and _ever_said(each, word)
        ]
        waiting = [
            each
            for each in space.waiting
            if each.claim.record_id is None
            and word in each.claim.content.split()
            and (sees or each.claim.privacy in ("public_runtime", "shared_with_subject"))
        ]
        args: Plain = {"action": "forget_by_query", "query": word, "view": RAW[who]}
        words_of = [each.authority for each in facts] + [each.claim.authority for each in waiting]
        if who != "owner" and "operator" in words_of:
            self.refused("forbidden", "long_term.mutate", {**args, "dry_run": True}, owner, who=who)
            return
        dry = self.put(
            "long_term.mutate", {**args, "dry_run": True}, owner, who=who, keep={"token": "confirm_token"}
        ).report  # fmt: skip
        assert dry is not None
        proposed = [
            each for each in space.proposals if each.is_open and each.holds(word) and space.sees(each, sees)
        ]  # fmt: skip
        assert (set(dry["refs"]), dry["waiting"], dry["proposals"]) == (
            {each.ref for each in facts}, len(waiting), len(proposed))  # fmt: skip
        judge = self.judge(owner, who)
        was = [(each, each.state, each.key()) for each in facts]
        for each in facts:
            _delete(space, each, "operator" if who == "owner" else "user_asserted")
        for row in waiting:
            judge.drop(row)
        for proposal in proposed:
            proposal.drop("forgotten")
        for _, state, key in sorted(was, key=lambda each: -each[0].number):
            if state == "current":
                judge.behind(*key)
        report = self.ask("long_term.mutate", {**args, "confirm": Earlier("token")}, owner, who=who)
        assert report["outcome"] == ("forgotten" if facts or waiting or proposed else "unchanged")


def _told(outcome: Outcome) -> tuple[Any, ...]:
    made = outcome.made
    ref = made.ref if isinstance(made, Fact | Skill) else None
    record_id = made.record_id if isinstance(made, Item) else None
    revision = made.revision if isinstance(made, Fact | Skill) else None
    return outcome.outcome, outcome.reason, ref, record_id, revision, outcome.superseded


def _shown(outcome: Plain) -> tuple[Any, ...]:
    return tuple(outcome[name] for name in ("outcome", "reason", "ref", "record_id", "revision", "superseded_ref"))


def refusal(sees_private: bool, who: str, fact: Fact, args: Plain) -> str | None:
    """Why a caller may not do this to a fact, if it may not."""
    action = args["action"]
    if fact.private and not sees_private:
        return "not_found"
    if fact.state == "deleted":
        return None if action == "delete" else "conflict"
    if fact.state == "superseded" and action not in ("change_scope", "delete"):
        return "conflict"
    if who != "owner" and fact.authority == "operator":
        return "forbidden"
    narrows = action == "change_scope" and fact.target == "shared_fact" and args["privacy"] == "subject_private"
    return "invalid_request" if narrows else None


def _delete(space: Space, fact: Fact, authority: str) -> None:
    for place, (topic, content) in enumerate(fact.said):
        remove(space, topic, content, fact.private or place in fact.hidden, authority)
    fact.state, fact.said = "deleted", []
    fact.revision += 1
    space.drop_about(fact.ref)


def _ever_said(fact: Fact, word: str) -> bool:
    return any(word in content.split() for _, content in fact.said)


def mutated(judge: Judge, fact: Fact, args: Plain, authority: str) -> tuple[str, str, int]:
    """Carry a change out on the model: outcome, ref and revision of the record after it."""
    action = args["action"]
    was, key = fact.state, fact.key()
    after = fact
    if action == "delete":
        outcome = "unchanged" if was == "deleted" else "deleted"
        if outcome == "deleted":
            _delete(judge.space, fact, authority)
    elif action == "mark_stale":
        outcome = "unchanged" if was == "stale" else "stale"
        fact.revision += was == "current"
        fact.state = "stale"
    elif action == "change_scope":
        outcome, fact.private = "scope_changed", args["privacy"] == "subject_private"
        fact.revision += 1
    else:
        outcome, after = _reworded(judge, fact, args, authority)
    ended = after.state != "current" or (after.target, after.kind, after.topic) != key
    if was == "current" and outcome != "unchanged" and ended:
        judge.behind(*key)
    return outcome, after.ref, after.revision


def _reworded(judge: Judge, fact: Fact, args: Plain, authority: str) -> tuple[str, Fact]:
    topic, content = args.get("topic", fact.topic), args.get("content", fact.content)
    same = (topic, content) == (fact.topic, fact.content)
    if args["action"] == "supersede":
        if same and fact.state == "current":
            return "unchanged", fact
        privacy = "subject_private" if fact.private else "shared_with_subject"
        made = judge.learn(Claim("", authority, fact.target, privacy, content, fact.kind, topic))
        judge.supersede(fact, made)
        return "superseded", made
    if same and fact.state == "current":
        return "unchanged", fact
    outcome = "restored" if same else "corrected"
    if not same:
        remove(judge.space, fact.topic, fact.content, fact.private, authority)
        fact.hidden |= {len(fact.said) - 1} if fact.private else set()
    fact.topic, fact.content, fact.authority, fact.state = topic, content, authority, "current"
    fact.revision += 1
    if not same:
        fact.confidence = None
        fact.said.append((topic, content))
    return outcome, fact
