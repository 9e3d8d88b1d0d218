"""The words of a thought: its types, roles and relations, and reading them leniently."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

ThoughtType = Literal[
    "PreferenceUpdate", "UserTrait", "RelationshipUpdate", "Finding", "Insight", "FactLearned", "PatternDetected",
    "Hypothesis", "Mistake", "Correction", "AssumptionInvalidated", "Constraint", "Plan", "Subgoal", "Decision",
    "StrategyShift", "Wonder", "Question", "Idea", "Experiment", "ActionTaken", "TaskComplete", "Checkpoint",
    "StateSnapshot", "Handoff", "Summary", "Surprise", "LessonLearned",
]  # fmt: skip
THOUGHT_TYPES: tuple[ThoughtType, ...] = get_args(ThoughtType)

ThoughtRole = Literal[
    "Memory", "WorkingMemory", "Summary", "Compression", "Checkpoint", "Handoff", "Audit", "Retrospective"
]
THOUGHT_ROLES: tuple[ThoughtRole, ...] = get_args(ThoughtRole)

RelationKind = Literal["supports", "contradicts", "supersedes", "caused_by"]
RELATION_KINDS: tuple[RelationKind, ...] = get_args(RelationKind)

REFERS = "refers"
"""The kind under which a plain reference is kept beside the relations."""

SECTIONS: Mapping[str, tuple[ThoughtType, ...]] = {
    "Identity": ("PreferenceUpdate", "UserTrait", "RelationshipUpdate"),
    "Knowledge": ("Finding", "Insight", "FactLearned", "PatternDetected", "Hypothesis", "Surprise"),
    "Constraints And Decisions": ("Constraint", "Plan", "Subgoal", "Decision", "StrategyShift"),
    "Corrections": ("Mistake", "Correction", "LessonLearned", "AssumptionInvalidated"),
    "Open Threads": ("Wonder", "Question", "Idea", "Experiment"),
    "Execution State": ("ActionTaken", "TaskComplete", "Checkpoint", "StateSnapshot", "Handoff", "Summary"),
}
"""Sections of the Markdown memory in their order. Each type stands in exactly one."""


def plain(word: str) -> str:
    """A word as it is compared: ASCII letters and digits alone, in lower case."""
    return "".join(each for each in word.lower() if each.isascii() and each.isalnum())


_TYPES: Mapping[str, ThoughtType] = {plain(each): each for each in THOUGHT_TYPES}
_ROLES: Mapping[str, ThoughtRole] = {plain(each): each for each in THOUGHT_ROLES}
_KINDS: Mapping[str, RelationKind] = {plain(each): each for each in RELATION_KINDS}


def read_type(word: str) -> ThoughtType | None:
    """The thought type that a word means (`lesson_learned`, `Lesson-Learned`), None where it means none."""
    return _TYPES.get(plain(word))


def read_role(word: str) -> ThoughtRole | None:
    """The role that a word means, None where it means none."""
    return _ROLES.get(plain(word))


def read_kind(word: str) -> RelationKind | None:
    """The kind of relation that a word means (`CausedBy`), None where it means none."""
    return _KINDS.get(plain(word))
