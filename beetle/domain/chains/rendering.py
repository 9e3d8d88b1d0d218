"""Thoughts as text for a model: the recent context, and the memory as Markdown.

What is stored may be hostile. Each thought is one line: line breaks and control characters become spaces, characters
that would begin or end markup are escaped. So no thought can close the frame, add a heading or pose as another thought.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from beetle.domain.chains.kinds import SECTIONS
from beetle.domain.chains.ledger import Body, Thought
from beetle.domain.chains.matching import Agent
from beetle.named_tuple import NamedTuple

HEAD = "=== RECENT CONTEXT ==="
FOOT = "=== END RECENT CONTEXT ==="
GONE = {"erased": "(erased)", "masked": "(masked)"}
# Controls, line and paragraph separators, and what reverses or hides the text around it. What nobody sees a model still
# reads: tag characters and runs of variation selectors carry a text of their own.
_BREAKS = re.compile(
    "(?:[\x00-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0"
    "\ufff0-\ufffb\U000e0000-\U000e0fff]|[\ufe00-\ufe0f]{2,})+"
)
_MARKUP = re.compile(r"([\\`*_\[\]<>#|~])")
_FENCE = re.compile(r"={3,}")


class Said(NamedTuple):
    """A thought as it is rendered. `body` None: it is gone, and `state` says how."""

    thought: Thought
    body: Body | None
    agent: Agent
    state: str = "live"


def one_line(text: str) -> str:
    """A text without line breaks, control characters and invisible ones."""
    return _BREAKS.sub(" ", text).strip()


def in_prompt(text: str) -> str:
    """One line that cannot look like the frame of a prompt."""
    return _FENCE.sub("==", one_line(text))


def in_markdown(text: str) -> str:
    """One line that has no markup of its own."""
    return _MARKUP.sub(r"\\\1", one_line(text))


def recent_context(thoughts: Sequence[Said]) -> str:
    """The thoughts in their order between two fixed lines; empty without any."""
    if not thoughts:
        return ""
    lines = [
        f"[#{each.thought.position}] {each.thought.thought_type} / {each.thought.role} "
        f"({in_prompt(each.agent.label)}) {_said(each, in_prompt)}"
        for each in thoughts
    ]
    return "\n".join((HEAD, "", *lines, "", FOOT, ""))


def memory_markdown(chain_key: str, thoughts: Iterable[Said]) -> str:
    """The thoughts by sections, each a list item of one line; sections without any are left out."""
    listed = list(thoughts)
    count = f"{len(listed)} thought" + ("" if len(listed) == 1 else "s")
    parts = ["# MEMORY", "", f"Chain {in_markdown(chain_key)}: {count}.", ""]
    for title, types in SECTIONS.items():
        items = [_item(each) for each in listed if each.thought.thought_type in types]
        if items:
            parts += [f"## {title}", "", *items, ""]
    return "\n".join(parts)


def _item(said: Said) -> str:
    thought, body = said.thought, said.body
    notes = [f"agent {in_markdown(said.agent.label)}"]
    if thought.role != "Memory":
        notes.append(f"role {thought.role}")
    notes.append(f"importance {thought.importance:.2f}")
    if thought.confidence is not None:
        notes.append(f"confidence {thought.confidence:.2f}")
    if body is not None and body.tags:
        notes.append(f"tags {', '.join(map(in_markdown, body.tags))}")
    return f"- [#{thought.position}] {thought.thought_type}: {_said(said, in_markdown)} ({'; '.join(notes)})"


def _said(said: Said, shown: Callable[[str], str]) -> str:
    return GONE.get(said.state, GONE["erased"]) if said.body is None else shown(said.body.content)
