"""Rules over runtime skills: write, edit, enable, delete."""

from __future__ import annotations

from urllib.parse import quote

from hypothesis import strategies as st
from hypothesis.stateful import rule

from tests.sdk.judging import remove, skill_name, write_skill
from tests.sdk.machine import callers, owners, picks
from tests.sdk.model import PREFIX
from tests.sdk.transcript_rules import TranscriptRules

NAMES = ("door", "lamp")
"""Also topics of candidates, so that both ways to a skill meet."""

names = st.sampled_from(NAMES)


NEVER = "evidence:local/c1/never"
"""Names a turn that nobody commits."""


class SkillRules(TranscriptRules):
    """Two skills of each owner."""

    def evidence(self, owner: str, pick: int) -> tuple[str, ...]:
        """Refs of what was said, of a whole turn, of what never was; or none."""
        turns = [(name, turn) for name, there in self.spaces[owner].conversations.items() for turn in there.values()]
        if not turns or pick % 4 == 0:
            return ()
        conversation, turn = turns[pick % len(turns)]
        ref = f"evidence:local/{quote(conversation, safe='')}/{turn.turn_id}"
        message = turn.messages[pick % len(turn.messages)].message_id
        choice = pick // 4 % 8
        return (NEVER,) if choice == 7 else (ref,) if choice == 6 else (f"{ref}/{message}",)

    @rule(owner=owners, who=callers, name=names, pick=picks, same=st.booleans())
    def write_skill(self, owner: str, who: str, name: str, pick: int, same: bool) -> None:
        space = self.spaces[owner]
        there = space.skills.get(PREFIX + name)
        if same and there is not None:
            text = there.texts[-1]
        else:
            text = ("a topic", "a title", "a summary", f"do {self.some_word(pick)} now", self.evidence(owner, pick))
        topic, title, summary, content, citations = text
        given = {"name": name, "topic": topic, "title": title, "summary": summary, "content": content,
                 "citations": list(citations)}  # fmt: skip
        # What is brought from elsewhere may cite what never was here; a copy of a space says again what it says.
        source = "import" if same or NEVER in citations else "manual"
        if source != "import" or NEVER in citations:
            wrong = {"kind": "procedural", "source": "manual", "writes": [{**given, "citations": [NEVER]}]}
            self.refused("invalid_request", "memory.write", wrong, owner, who=who)
        args = {"kind": "procedural", "source": source, "writes": [given]}
        (outcome,) = self.ask("memory.write", args, owner, who=who)["writes"]
        wanted = "created" if there is None else "unchanged" if there.texts[-1] == text else "revised"
        skill = write_skill(space, PREFIX + name, text)
        assert (outcome["outcome"], outcome["revision"]) == (wanted, skill.revision)

    @rule(owner=owners, name=names, pick=picks, stale=st.booleans())
    def edit_skill(self, owner: str, name: str, pick: int, stale: bool) -> None:
        space = self.spaces[owner]
        skill = space.skills.get(PREFIX + name)
        args = {"name": name, "procedure": f"do {self.some_word(pick)} now", "edit_reason": "a test asks"}
        if skill is None:
            self.refused("not_found", "skill.edit", args, owner)
        elif stale:
            error = self.refused("conflict", "skill.edit", {**args, "expected_revision": skill.revision + 1}, owner)
            assert error.details["revision"] == skill.revision
        else:
            report = self.ask("skill.edit", {**args, "expected_revision": skill.revision}, owner)
            topic, title, summary, before, citations = skill.texts[-1]
            if before != args["procedure"]:
                write_skill(space, skill.name, (topic, title, summary, args["procedure"], citations))
            wanted = "unchanged" if before == args["procedure"] else "revised"
            assert (report["outcome"], report["revision"]) == (wanted, skill.revision)

    @rule(owner=owners, name=names, enabled=st.booleans())
    def enable_skill(self, owner: str, name: str, enabled: bool) -> None:
        skill = self.spaces[owner].skills.get(PREFIX + name)
        args = {"name": name, "enabled": enabled}
        if skill is None:
            self.refused("not_found", "skill.set_enabled", args, owner)
            return
        report = self.ask("skill.set_enabled", args, owner)
        told = "unchanged" if skill.enabled == enabled else "enabled" if enabled else "disabled"
        assert report["outcome"] == told
        skill.enabled = enabled

    @rule(owner=owners, who=callers, name=names)
    def delete_skill(self, owner: str, who: str, name: str) -> None:
        space = self.spaces[owner]
        skill = space.skills.pop(PREFIX + name, None)
        if skill is None:
            self.refused("not_found", "skill.delete", {"name": name}, owner, who=who)
            return
        judge = self.judge(owner, who)
        space.derived = [each for each in space.derived if not each[0].startswith(skill.ref + "/")]
        space.drop_about(skill.name)
        for text in skill.texts:
            remove(space, skill.name, text[3], False, "operator" if who == "owner" else "user_asserted")
        judge.judge_again(
            "weaker_authority", lambda claim: claim.target == "procedural" and skill_name(claim) == skill.name
        )
        report = self.ask("skill.delete", {"name": name}, owner, who=who)
        assert (report["outcome"], report["revision"]) == ("deleted", skill.revision)
