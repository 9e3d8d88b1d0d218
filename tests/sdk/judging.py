"""The rules of write governance over the plain model: what is kept, what waits, and what becomes of what waited."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from tests.governance.specification import PRIVATE_TARGETS, TAKES, expected, rank
from tests.sdk.model import DAY_US, PREFIX, Claim, Fact, Item, Policy, Skill, Space, Waiting

ASSERTING = ("user", "tool")
ASSERTING_AUTHORITIES = ("operator", "user_asserted", "tool_observed")
VISIBLE_TO = {"shared": "public_runtime shared_with_subject subject_private soul_private",
              "private": "subject_private soul_private", "soul": "soul_private"}  # fmt: skip


class Outcome(NamedTuple):
    """What became of a claim. `made` is the record that it is in now, if any."""

    outcome: str
    reason: str
    made: Fact | Skill | Item | None = None
    superseded: str | None = None


NewRef = Callable[[str], str]


class Judge:
    """Judges claims in one space, for one caller, at one time.

    `name` gives the id of a record that is made, in the order in which they are made.
    """

    def __init__(self, space: Space, now: int, sees_private: bool, name: NewRef, deferred_days: int) -> None:
        self.space = space
        self.now = now
        self.sees_private = sees_private
        self.name = name
        self.days = deferred_days

    # Judging

    def consider(self, claim: Claim) -> Outcome:
        """A new claim."""
        found = self._decide(claim, vouched=False)
        if found.outcome == "deferred":
            found = found._replace(made=self._put_off(claim, found.reason))
        elif found.outcome == "accepted":
            self._settle_assertions(claim, found)
        return found

    def _decide(self, claim: Claim, vouched: bool) -> Outcome:
        facts, skill, relation = self._standing(claim)
        evidence = self._evidence(claim)
        acting = {each.action for each in self.space.policies if each.acts_on(claim)}
        policy = "suppressed_kind" if "suppress" in acting else "paused" if acting else "none"
        borne = vouched or self._borne(claim)
        outcome, reason = expected(
            claim.authority, claim.privacy, claim.target, relation, evidence, policy, borne=borne,
            removed_by=self._removed_by(claim), by_operator=claim.by_operator, vouched=vouched,
        )  # fmt: skip
        if outcome != "accepted":
            return Outcome(outcome, reason)
        if claim.target in PRIVATE_TARGETS:
            return Outcome(outcome, reason, self._seal(claim, "kept"))
        if claim.target == "procedural":
            return self._accept_skill(claim, skill, reason)
        return self._accept_fact(claim, facts, reason)

    def _removed_by(self, claim: Claim) -> str | None:
        if claim.target in PRIVATE_TARGETS:
            return None
        topic = skill_name(claim) if claim.target == "procedural" else claim.topic
        known = (self.space.removed.get((topic, claim.content, each)) for each in {False, self.sees_private})
        return min((each for each in known if each is not None), key=rank, default=None)

    def _borne(self, claim: Claim) -> bool:
        if claim.authority == "operator" or not claim.evidence:
            return True
        content = self.space.items[claim.record_id].content if claim.record_id else claim.content
        roles = {"user_asserted": {"user"}, "host": {"user", "tool", "assistant"}}.get(
            claim.authority, {"user", "tool"}
        )
        return bool(self.borne_by(content, claim.evidence) & roles)

    def borne_by(self, content: str, evidence: tuple[str, ...]) -> set[str]:
        """Roles of the cited messages that say just this."""
        seen = ("shared", "private") if self.sees_private else ("shared",)
        return {
            each.role for ref in evidence for each in self.space.messages_of(ref)
            if each.state == "live" and each.visibility in seen and content in each.text.splitlines()
        }  # fmt: skip

    def _evidence(self, claim: Claim) -> str:
        cited = [self.space.messages_of(ref) for ref in claim.evidence]
        if any(not each for each in cited):
            return "missing"
        messages = [message for each in cited for message in each]
        if any(
            each.state != "live" or claim.privacy not in VISIBLE_TO.get(each.visibility, "").split()
            for each in messages
        ):
            return "masked"
        roles = {each.role for each in messages}
        return next((role for role in ASSERTING if role in roles), "assistant" if roles else "none")

    def stands(self, claim: Claim) -> bool:
        """Whether a record says just this already."""
        return self._standing(claim)[2] == "same"

    def _standing(self, claim: Claim) -> tuple[list[Fact], Skill | None, str]:
        if claim.target in PRIVATE_TARGETS:
            there = None if claim.record_id or claim.privacy not in TAKES[claim.target].split() else self._saying(claim)
            return [], None, "same" if there is not None and there.state != "waiting" else "none"
        if claim.target == "procedural":
            skill = self.space.skills.get(skill_name(claim))
            if skill is None:
                return [], None, "none"
            return [], skill, "same" if skill.content == claim.content else self._relation(claim, skill.authority)
        facts = [
            each
            for each in self.space.facts.values()
            if each.state == "current" and each.key() == (claim.target, claim.kind, claim.topic)
        ]
        if not claim.topic:
            facts = [
                each
                for each in self.space.facts.values()
                if (each.state, each.target, each.kind, each.content) ==
                ("current", claim.target, claim.kind, claim.content)
            ][:1]  # fmt: skip
        facts = [each for each in facts if not each.private or self.sees_private]
        facts.sort(key=lambda each: (each.content == claim.content, -rank(each.authority), each.number), reverse=True)
        if not facts:
            return [], None, "none"
        same = facts[0].content == claim.content
        return facts, None, "same" if same else self._relation(claim, facts[0].authority)

    @staticmethod
    def _relation(claim: Claim, authority: str) -> str:
        mine, theirs = rank(claim.authority), rank(authority)
        return "stronger" if theirs < mine else "weaker" if theirs > mine else "equal"

    # Keeping

    def _accept_fact(self, claim: Claim, facts: list[Fact], reason: str) -> Outcome:
        if reason == "unchanged":
            fact = facts[0]
            new = [self.space.derive(fact.ref, ref) for ref in claim.evidence]
            authority = claim.authority if rank(claim.authority) < rank(fact.authority) else fact.authority
            sure = max((each for each in (fact.confidence, claim.confidence) if each is not None), default=None)
            fact.revision += any(new) or (authority, sure) != (fact.authority, fact.confidence)
            fact.authority, fact.confidence = authority, sure
            return Outcome("accepted", reason, fact)
        made = self.learn(claim)
        for each in facts if reason == "superseded" else ():
            self.supersede(each, made)
        return Outcome("accepted", reason, made, facts[0].ref if facts else None)

    def learn(self, claim: Claim) -> Fact:
        """A new record."""
        private = claim.privacy == "subject_private"
        fact = Fact(
            next(self.space.numbers), f"long_term:{self.name('f')}", claim.target, claim.kind, claim.topic,
            claim.content, claim.authority, private, confidence=claim.confidence,
            said=[(claim.topic, claim.content)],
        )  # fmt: skip
        self.space.facts[fact.ref] = fact
        for ref in claim.evidence:
            self.space.derive(fact.ref, ref)
        return fact

    def supersede(self, old: Fact, by: Fact) -> None:
        """Another record stands in the place of one."""
        if (old.topic, old.content) != (by.topic, by.content):
            remove(self.space, old.topic, old.content, old.private, by.authority)
        old.state, old.superseded_by = "superseded", by.ref
        old.revision += 1
        self.space.derive(by.ref, old.ref, "supersedes")

    def _accept_skill(self, claim: Claim, skill: Skill | None, reason: str) -> Outcome:
        if reason == "unchanged" and skill is not None:
            known = {each[1] for each in self.space.derived if each[0].startswith(skill.ref + "/")}
            for ref in claim.evidence:
                if ref not in known:
                    self.space.derive(f"{skill.ref}/{skill.revision}", ref)
            if rank(claim.authority) < rank(skill.authority):
                skill.authority = claim.authority
            return Outcome("accepted", reason, skill)
        old = None if skill is None else f"{skill.ref}/{skill.revision}"
        title = claim.topic or claim.content
        text = (title, title, claim.content, claim.content, claim.evidence)
        return Outcome("accepted", reason, write_skill(self.space, skill_name(claim), text, claim.authority), old)

    def _saying(self, claim: Claim) -> Item | None:
        wanted = (claim.target, self._kept_as(claim), claim.content)
        return next((i for i in self.space.items.values() if (i.plane, i.privacy, i.content) == wanted), None)

    @staticmethod
    def _kept_as(claim: Claim) -> str:
        return claim.privacy if claim.privacy in TAKES[claim.target].split() else "soul_private"

    def _seal(self, claim: Claim, state: str) -> Item:
        item = self.space.items.get(claim.record_id or "")
        if item is None:
            item = self._saying(claim)
            if item is not None and state == "waiting":
                return item
        if item is None:
            item = Item(
                self.name("p"), claim.target, self._kept_as(claim), claim.content, claim.authority,
                claim.candidate_id, state,
            )  # fmt: skip
            self.space.items[item.record_id] = item
        item.state = state
        if state != "waiting":
            for ref in claim.evidence:
                if self.space.linked(ref) is not None:
                    self.space.derive(f"{claim.target}:{item.record_id}", ref)
        return item

    # Waiting

    def _put_off(self, claim: Claim, reason: str) -> Item | None:
        if reason == "soul_handoff":
            return self._seal(claim, "handoff")
        self.name("w")
        item = self._seal(claim, "waiting") if claim.target in PRIVATE_TARGETS else None
        if item is not None:
            claim = replace(claim, record_id=item.record_id, topic="", content="")
        # How sure an extractor was tells no two claims apart.
        said = replace(claim, confidence=None)
        if not any((replace(w.claim, confidence=None), w.reason) == (said, reason) for w in self.space.waiting):
            self.space.waiting.append(Waiting(claim, reason, self.now))
        return item

    def _settle_assertions(self, claim: Claim, found: Outcome) -> None:
        if claim.authority not in ASSERTING_AUTHORITIES and self._evidence(claim) not in ASSERTING:
            return
        sealed = found.made.record_id if isinstance(found.made, Item) else None
        for each in [each for each in self.space.waiting if each.reason == "needs_assertion"]:
            other = each.claim
            if other.privacy in ("subject_private", "soul_private") and not self.sees_private:
                continue
            if sealed is not None or other.record_id is not None:
                if sealed is not None and other.record_id == sealed:
                    self._judge_waiting(each, vouched=True)
            elif (other.target, other.kind, other.topic) == (claim.target, claim.kind, claim.topic):
                if other.content == claim.content:
                    self._judge_waiting(each, vouched=True)
                elif claim.topic:
                    self.drop(each)

    def judge_again(self, reason: str, over: Callable[[Claim], bool] = lambda claim: True) -> int:
        """What waits for something is judged anew; how many were decided."""
        oldest = self.now - self.days * DAY_US
        rows = [each for each in self.space.waiting if each.reason == reason and each.at >= oldest and over(each.claim)]
        return sum(each in self.space.waiting and self._judge_waiting(each, vouched=False) for each in rows)

    def behind(self, target: str, kind: str, topic: str) -> int:
        """A record of a topic is current no more."""
        wanted = (target, kind, topic)
        alike = lambda claim: (claim.target, claim.kind, claim.topic) == wanted  # noqa: E731
        return self.judge_again("weaker_authority", alike) if topic else 0

    def _judge_waiting(self, each: Waiting, vouched: bool) -> bool:
        claim = each.claim
        if claim.record_id is not None:
            claim = replace(claim, content=self.space.items[claim.record_id].content)
        found = self._decide(claim, vouched)
        if found.outcome == "deferred" and found.reason != "soul_handoff":
            each.reason = found.reason
            return False
        if found.reason == "soul_handoff":
            self._seal(claim, "handoff")
        self.drop(each)
        if found.outcome == "accepted":
            self._settle_assertions(claim, found)
        return True

    def drop(self, each: Waiting) -> None:
        """Out of the queue, and what was sealed for it alone too."""
        self.space.waiting.remove(each)
        record_id = each.claim.record_id
        if record_id is None or any(other.claim.record_id == record_id for other in self.space.waiting):
            return
        if record_id in self.space.items and self.space.items[record_id].state == "waiting":
            del self.space.items[record_id]

    def drop_expired(self) -> None:
        """What has waited for longer than the profile lets it."""
        for each in [each for each in self.space.waiting if each.at < self.now - self.days * DAY_US]:
            self.drop(each)

    def drop_citing(self, conversation: str, turn_ids: set[str]) -> None:
        """What rests on turns whose content was erased."""
        for each in list(self.space.waiting):
            cited = [self.space.turn_of(ref) for ref in each.claim.evidence]
            if any(found and found[0] == conversation and found[1].turn_id in turn_ids for found in cited):
                self.drop(each)

    # Policies

    def policy(self, policy: Policy) -> bool:
        """Set or lift one; whether anything changed."""
        alike = [each for each in self.space.policies if each.over() == policy.over()]
        if policy.action == "resume":
            self.space.policies = [each for each in self.space.policies if each not in alike]
            return bool(alike)
        if policy in alike:
            return False
        self.space.policies.append(policy)
        return True


def remove(space: Space, topic: str, content: str, private: bool, authority: str) -> None:
    """A value is believed no more, by the word of somebody."""
    for key in {(topic, content, private), ("", content, private)}:
        space.removed[key] = min(authority, space.removed.get(key, authority), key=rank)


def skill_name(claim: Claim) -> str:
    """The skill that a procedural claim is about; ids and topics of the machine are their own slugs."""
    return PREFIX + (claim.topic or claim.candidate_id)


def write_skill(
    space: Space, name: str, text: tuple[str, str, str, str, tuple[str, ...]], authority: str = "operator"
) -> Skill:
    """Create or revise a skill, unless it says just that; `text` is topic, title, summary, content, citations."""
    topic, title, summary, content, citations = text
    skill = space.skills.get(name)
    if skill is not None and skill.texts[-1] == text:
        return skill
    if skill is None:
        skill = space.skills[name] = Skill(name, [], topic, title, summary)
    skill.words.append(content)
    skill.texts.append(text)
    skill.topic, skill.title, skill.summary, skill.citations = topic, title, summary, citations
    skill.authority = authority
    for ref in citations:
        if ref.startswith("evidence:"):
            space.derive(f"{skill.ref}/{skill.revision}", ref)
    return skill
