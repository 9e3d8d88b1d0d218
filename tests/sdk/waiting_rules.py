"""Rules over what waits and what is sealed: who sees it listed, rejecting it, and deleting a private record."""

from __future__ import annotations

from hypothesis.stateful import precondition, rule

from tests.sdk.fact_rules import FactRules
from tests.sdk.judging import remove, skill_name
from tests.sdk.looking import RAW
from tests.sdk.machine import callers, owners, picks
from tests.sdk.model import Space, Waiting
from tests.sdk.reopened import Plain

TO_ALL = ("public_runtime", "shared_with_subject")


class WaitingRules(FactRules):
    """What the candidates of the other rules leave behind them."""

    def listed(self, owner: str, who: str) -> list[tuple[Waiting, Plain]]:
        """What a caller is told of the queue, each beside what the model has, through the view that shows most."""
        space = self.spaces[owner]
        wanted = [each for each in space.waiting if _is_known(each, who, self.own_agent(who))]
        asked = {"what": "candidates", "view": RAW[who], "limit": 500}
        report = self.ask("governance.list", asked, owner, who=who)
        assert report["total"] == len(wanted)
        pairs = list(zip(sorted(wanted, key=_sort_key), sorted(report["candidates"], key=_told_key), strict=True))
        for each, told in pairs:
            assert (_sort_key(each), _content(space, each)) == (_told_key(told), told["content"])
        return pairs

    @precondition(lambda self: hasattr(self, "spaces") and bool(self.spaces["ann"].waiting))
    @rule(owner=owners, who=callers, pick=picks, dry=picks)
    def reject(self, owner: str, who: str, pick: int, dry: int) -> None:
        listed = self.listed(owner, who)
        if not listed:
            return
        each, told = listed[pick % len(listed)]
        args: Plain = {"ids": [told["waiting_id"]], "decision": "reject", "reason": "a test asks", "view": RAW[who]}
        if who != "owner" and each.claim.authority == "operator":
            self.refused("forbidden", "governance.decide", args, owner, who=who)
            return
        if who != "owner" and each.claim.authority != "assistant_claimed":
            return
        if dry % 4 == 0:
            foreseen = self.ask("governance.decide", {**args, "dry_run": True}, owner, who=who)
            assert (foreseen["decided"], foreseen["dry_run"], foreseen["receipt"]) == (1, True, None)
        judge, claim = self.judge(owner, who), each.claim
        if claim.record_id is None and not judge.stands(claim):
            topic = skill_name(claim) if claim.target == "procedural" else claim.topic
            authority = "operator" if who == "owner" else "user_asserted"
            remove(self.spaces[owner], topic, claim.content, claim.privacy not in TO_ALL, authority)
        judge.drop(each)
        report = self.ask("governance.decide", args, owner, who=who)
        assert [(one["outcome"], one["reason"]) for one in report["outcomes"]] == [("rejected", "declined")]

    @precondition(lambda self: hasattr(self, "spaces") and bool(self.spaces["ann"].items))
    @rule(owner=owners, pick=picks)
    def delete_private(self, owner: str, pick: int) -> None:
        space = self.spaces[owner]
        if not space.items:
            self.refused("not_found", "private.delete", {"record_id": "p-none"}, owner)
            return
        item = list(space.items.values())[pick % len(space.items)]
        args = {"record_id": item.record_id}
        self.refused("forbidden", "private.delete", args, owner, who="worker")
        held = [each for each in space.waiting if each.claim.record_id == item.record_id]
        report = self.ask("private.delete", args, owner)
        assert (report["plane"], report["waiting"], report["erasure"]) == (item.plane, len(held), "done")
        space.waiting = [each for each in space.waiting if each not in held]
        space.derived = [each for each in space.derived if each[0] != f"{item.plane}:{item.record_id}"]
        del space.items[item.record_id]


def _is_known(each: Waiting, who: str, sees_private: bool) -> bool:
    if each.claim.record_id is not None:
        return who == "owner"
    return sees_private or each.claim.privacy in TO_ALL


def _content(space: Space, each: Waiting) -> str:
    record = each.claim.record_id
    return each.claim.content if record is None else space.items[record].content


def _sort_key(each: Waiting) -> tuple[str, ...]:
    claim = each.claim
    return (claim.candidate_id, claim.target, claim.kind, claim.privacy, claim.authority, each.reason,
            claim.record_id or "", claim.chat, *claim.evidence, claim.content)  # fmt: skip


def _told_key(told: Plain) -> tuple[str, ...]:
    content = "" if told["record_id"] else told["content"]
    return (told["candidate_id"], told["target"], told["kind"], told["privacy"], told["authority"], told["reason"],
            told["record_id"] or "", told["chat_id"], *told["evidence_refs"], content)  # fmt: skip
