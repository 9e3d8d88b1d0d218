"""What a page says of a skill whose text is withheld, that is retired, or that cites what is kept elsewhere."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from msgspec.structs import replace

from beetle.contracts.agent_skills import AgentSkillFinding, AgentSkillMount, AgentSkillSummary
from beetle.contracts.skills import RuntimeSkillDetailReport, SkillCitation, SkillRevision, StrategyDiff
from beetle_tui.diff import diff_of, step_blocks
from beetle_tui.prose import Block
from beetle_tui.skill_pages import agent_page, deletion_lines, mounts_page, skill_page, state_of, steps

AT = "2026-03-02T09:02:00Z"
MADE = SkillRevision(revision=1, at=AT, source="manual", observed_at=None, source_chat_id=None)
SKILL = RuntimeSkillDetailReport(
    name="runtime_skill__pump", title="A title", topic="pumps", summary="When.", procedure="Stop.", enabled=True,
    retired=False, revision=1, created_at=AT, updated_at=AT, ref="procedural:runtime_skill__pump", citations=(),
    lineage=(MADE,), strategy_diffs=(), derived_refs=(), raw_content=None,
)  # fmt: skip


def lines(blocks: Iterable[Block]) -> list[str]:
    return [line.plain for block in blocks for line in block.lines(100)]


def test_what_is_withheld_is_said_to_be() -> None:
    hidden = replace(
        SKILL, title=None, topic=None, summary=None, procedure=None, citations=(SkillCitation(text=None),),
        strategy_diffs=(StrategyDiff(from_revision=1, to_revision=2, diff=None),),
        lineage=(MADE, replace(MADE, revision=2)),
    )  # fmt: skip
    shown = lines(skill_page(hidden))
    assert shown[:3] == ["[withheld]", "[withheld]; on, revision 1 of 2026-03-02 09:02:00Z", "[withheld]"]
    assert "- [withheld]" in shown and "A title" not in "\n".join(shown)
    assert lines(step_blocks(steps(hidden)[0]))[-1] == "The text is withheld from this caller."
    assert deletion_lines(hidden)[0] == "[withheld]"


@pytest.mark.parametrize(
    ("enabled", "retired", "word"), [(True, False, "on"), (False, False, "off"), (True, True, "retired")]
)
def test_a_word_says_whether_recall_uses_it(enabled: bool, retired: bool, word: str) -> None:
    skill = replace(SKILL, enabled=enabled, retired=retired)
    assert state_of(skill) == word
    assert any(each.startswith("State") and f" {word}: " in each for each in lines(skill_page(skill)))


def test_only_records_that_were_looked_up_are_called_missing() -> None:
    cited = {"evidence:local/c/t": False, "long_term:f-1": False, "long_term:f-2": True, "agent_skill:m/s": None}
    citations = tuple(SkillCitation(text=each, ref=each, resolves=found) for each, found in cited.items())
    blocks = list(skill_page(replace(SKILL, citations=citations)))
    assert [each for each in lines(blocks) if any(ref in each for ref in cited)] == [
        "- evidence:local/c/t (no such record here)", "- long_term:f-1 (no such record here)", "> long_term:f-2",
        "> agent_skill:m/s",
    ]  # fmt: skip
    assert [each.target for each in blocks if isinstance(each.target, str)] == list(cited)


def test_an_agent_skill_says_where_it_stands_and_what_is_wrong_there() -> None:
    skill = AgentSkillSummary(ref="agent_skill:m/s", mount="m", name="s", description=None, resources=2, changed=True)
    findings = (
        AgentSkillFinding(kind="not_utf8", mount="m", path="a\x1b/SKILL.md"),
        AgentSkillFinding(kind="mount_missing", mount="other"),
    )
    mounts = (AgentSkillMount(mount="m", path="/srv/skills", skills=1),)
    shown = lines(agent_page(skill, findings, mounts))
    assert "Mount     m at /srv/skills" in shown
    assert "Content   not every file could be read; see the findings" in shown
    assert "! m/a\\x1b/SKILL.md: its front matter is not UTF-8" in shown
    assert "! other: the folder is not there" in shown
    assert "m at /srv/skills: 1 skill" in shown
    assert "None." in lines(mounts_page((), ()))


def test_a_diff_of_two_texts_names_them_and_one_of_the_same_text_is_empty() -> None:
    assert diff_of("a", "a", ("one", "other")) == ""
    assert diff_of("a\nb", "a\nc", ("one", "other")).split("\n") == [
        "--- one", "+++ other", "@@ -1,2 +1,2 @@", " a", "-b", "+c"
    ]  # fmt: skip
