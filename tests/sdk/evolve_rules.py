"""Rules over proposals: nothing changes until one is submitted, and what preview foresees is what submitting does."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from tests.sdk.fact_rules import mutated, refusal
from tests.sdk.judging import Judge, write_skill
from tests.sdk.machine import callers, chats, owners, picks
from tests.sdk.model import DAY_US, PREFIX, Claim, Proposal, Space
from tests.sdk.recorded import STEP_US
from tests.sdk.reopened import Plain
from tests.sdk.skill_rules import NAMES
from tests.sdk.waiting_rules import WaitingRules

KINDS = ("skill_create", "skill_edit", "skill_enable", "skill_disable",
         "fact_write", "fact_write", "fact_correct", "fact_stale", "fact_forget")  # fmt: skip
ACTIONS = {"fact_correct": "correct", "fact_stale": "mark_stale", "fact_forget": "delete"}
SEES_BY_DEFAULT = {"owner": False, "agent": True, "worker": False}
"""Whether a caller's first view shows what is private: proposals are seen through no other."""
MAY_SEE = {"owner": True, "agent": True, "worker": False}
"""Whether any of its views does: what it may not know of is counted in no answer."""


class EvolveRules(WaitingRules):
    """Proposals over the skills and facts of the other rules."""

    @rule(owner=owners, who=callers, chat=chats, kind=st.sampled_from(KINDS), pick=picks, word=picks, cites=picks)
    def propose(self, owner: str, who: str, chat: str, kind: str, pick: int, word: int, cites: int) -> None:
        space = self.spaces[owner]
        target, key = self.target_of(space, kind, pick, SEES_BY_DEFAULT[who])
        if kind.startswith("fact_") and kind != "fact_write" and target is None:
            return
        change = self.change(kind, pick, word)
        made = Proposal(
            f"prop-{len(space.proposals)}", kind, target, self.revision_of(space, target), change,
            f"because {self.word()}", self.evidence(owner, cites),
            change.get("privacy") == "subject_private" or _is_private(space, target), chat, self.places.now + STEP_US,
        )  # fmt: skip
        given: Plain = {"proposal_id": made.proposal_id, "kind": kind, "change": change, "rationale": made.rationale,
                        "evidence_refs": list(made.evidence)}  # fmt: skip
        if target is not None:
            given["target"] = target
        if who != "owner" and change.get("authority") == "operator":
            key = key or "forbidden"
        if key is not None:
            self.refused(key, "evolve.propose", {"proposals": [given]}, owner, who=who, chat=chat)
            return
        expired = [
            each
            for each in space.proposals
            if each.is_open and each.at < self.places.now + STEP_US - self.days * DAY_US
        ]
        counted = sum(space.sees(each, MAY_SEE[who]) for each in expired)
        for each in expired:
            each.drop("expired")
        report = self.ask("evolve.propose", {"proposals": [given]}, owner, who=who, chat=chat)
        (outcome,) = report["proposals"]
        assert (outcome["base_revision"], report["expired"]) == (made.base, counted)
        space.proposals.append(made)

    @staticmethod
    def target_of(space: Space, kind: str, pick: int, sees: bool) -> tuple[str | None, str | None]:
        """What a proposal is about, and the error that proposing it meets."""
        if kind == "fact_write":
            return None, None
        if kind.startswith("fact_"):
            if not space.facts:
                return None, None
            fact = list(space.facts.values())[pick % len(space.facts)]
            return fact.ref, "not_found" if fact.private and not sees else None
        name = PREFIX + NAMES[pick % 2]
        if kind == "skill_create":
            return name, "conflict" if name in space.skills else None
        return name, None if name in space.skills else "not_found"

    def change(self, kind: str, pick: int, word: int) -> dict[str, str]:
        """What would be different."""
        said = f"do {self.some_word(word)} now"
        if kind == "skill_create":
            return {"topic": "a topic", "title": "a title", "summary": "a summary", "procedure": said}
        if kind == "skill_edit":
            return {"procedure": said}
        if kind == "fact_correct":
            return {"content": f"keep {self.some_word(word)} so"}
        if kind == "fact_write":
            authorities = ("operator", "user_asserted", "host", "assistant_claimed")
            return {
                "content": f"keep {self.some_word(word)} so",
                "topic": ("", *NAMES)[pick % 3],
                "authority": authorities[word % 4],
                "privacy": ("shared_with_subject", "shared_with_subject", "subject_private")[word % 3],
            }
        return {}

    @staticmethod
    def revision_of(space: Space, target: str | None) -> int | None:
        """The revision that a target is at."""
        found = space.facts.get(target or "") or space.skills.get(target or "")
        return None if found is None else found.revision

    @precondition(lambda self: hasattr(self, "spaces") and bool(self.spaces["ann"].proposals))
    @rule(owner=owners, who=callers, pick=picks, withdraw=st.sampled_from((False, False, False, True)))
    def decide(self, owner: str, who: str, pick: int, withdraw: bool) -> None:
        space = self.spaces[owner]
        if not space.proposals:
            return
        proposal = space.proposals[-1 - pick % min(4, len(space.proposals))]
        args = {"proposal_ids": [proposal.proposal_id], "decision": "withdraw" if withdraw else "submit"}
        sees = SEES_BY_DEFAULT[who]
        if not space.sees(proposal, sees):
            self.refused("not_found", "evolve.preview", {"proposal_id": proposal.proposal_id}, owner, who=who)
            self.refused("not_found", "evolve.submit", args, owner, who=who)
            return
        foreseen = self.ask("evolve.preview", {"proposal_id": proposal.proposal_id}, owner, who=who)
        assert foreseen["moved"] == (proposal.is_open and proposal.base != self.revision_of(space, proposal.target))
        verdict = foreseen["verdict"]
        if not proposal.is_open:
            assert verdict is None
            self.refused("conflict", "evolve.submit", args, owner, who=who)
            return
        key = None if withdraw else self.obstacle(space, proposal, who)
        if key is not None:
            assert (verdict["outcome"], verdict["reason"]) == ("refused", key)
            self.refused(key, "evolve.submit", args, owner, who=who)
            return
        judge = self.judge(owner, who)
        state, outcome = ("dropped", "withdrawn") if withdraw else self.carry_out(judge, proposal, who)
        proposal.close(state, outcome)
        report = self.ask("evolve.submit", args, owner, who=who)
        (told,) = report["outcomes"]
        assert (told["state"], told["outcome"], report["erasure"]) == (state, outcome, "done")
        assert withdraw or verdict["reason"] == outcome

    def obstacle(self, space: Space, proposal: Proposal, who: str) -> str | None:
        """The error that submitting a proposal meets."""
        if proposal.base != self.revision_of(space, proposal.target):
            return "conflict"
        if proposal.kind == "fact_write":
            return "forbidden" if who != "owner" and proposal.change["authority"] == "operator" else None
        fact = space.facts.get(proposal.target or "")
        args = {"action": ACTIONS.get(proposal.kind)}
        return None if fact is None else refusal(SEES_BY_DEFAULT[who], who, fact, args)

    def carry_out(self, judge: Judge, proposal: Proposal, who: str) -> tuple[str, str]:
        """What becomes of a proposal, and of what it is about."""
        space, change = judge.space, proposal.change
        # It is closed before it is carried out.
        proposal.state = "submitted"
        if proposal.kind == "fact_write":
            judge.drop_expired()
            found = judge.consider(Claim(
                proposal.proposal_id, change["authority"], "long_term", change["privacy"], change["content"],
                "fact", change["topic"], proposal.evidence, proposal.chat, by_operator=who == "owner",
            ))  # fmt: skip
            return "refused" if found.outcome == "rejected" else "submitted", found.reason
        if proposal.kind in ACTIONS:
            fact = space.facts[proposal.target or ""]
            authority = "operator" if who == "owner" else "user_asserted"
            return "submitted", mutated(judge, fact, {"action": ACTIONS[proposal.kind], **change}, authority)[0]
        return "submitted", _changed_skill(space, proposal)


def _changed_skill(space: Space, proposal: Proposal) -> str:
    change, name = proposal.change, proposal.target or ""
    if proposal.kind == "skill_create":
        text: Any = (change["topic"], change["title"], change["summary"], change["procedure"], proposal.evidence)
        write_skill(space, name, text)
        return "created"
    skill = space.skills[name]
    if proposal.kind == "skill_edit":
        topic, title, summary, before, citations = skill.texts[-1]
        write_skill(space, name, (topic, title, summary, change["procedure"], citations))
        return "unchanged" if before == change["procedure"] else "revised"
    enabled = proposal.kind == "skill_enable"
    was, skill.enabled = skill.enabled, enabled
    return "unchanged" if was == enabled else "enabled" if enabled else "disabled"


def _is_private(space: Space, target: str | None) -> bool:
    fact = space.facts.get(target or "")
    return fact is not None and fact.private
