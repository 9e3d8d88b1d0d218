"""Which thoughts a filter finds: filters are joined by and, the values of one by or. Nothing is ranked."""

from __future__ import annotations

import re
from typing import Final

from beetle.domain.chains.ledger import Body, Thought
from beetle.named_tuple import NamedTuple

MOST_SCREENED: Final = 256
"""Characters of a text that a screen has: rows with so much of it are few, and one row is compared at one go, whatever
the deadline: in time that grows with the product of both lengths."""
_ALIKE: Final = {"k": "kK\u212a", "\xe5": "\xe5\xc5\u212b", "\xdf": "\xdf\u1e9e", "\u03b8": "\u03b8\u0398\u03f4",
    "\u03c9": "\u03c9\u03a9\u2126", "\u03c3": "\u03c3\u03c2\u03a3", "\u03c2": "\u03c3\u03c2\u03a3",
    "i": "iI\u0130"}  # fmt: skip
"""Characters of which more become one in lower case than its own upper and title case; a sigma depends on its place."""
_APART: Final = re.compile('[\x00-\x1f"\\\\\u0307]+')
"""What JSON writes otherwise, and the dot above: a dotted capital I is "i" and such a dot in lower case."""


class Agent(NamedTuple):
    """A writer as the registry names it now."""

    agent_id: str
    display_name: str
    owner: str | None = None
    description: str | None = None
    aliases: tuple[str, ...] = ()
    status: str = "active"

    @property
    def label(self) -> str:
        """As people read it: `Planner [agent-42] owned by ops`."""
        named = self.agent_id if self.display_name == self.agent_id else f"{self.display_name} [{self.agent_id}]"
        return f"{named} owned by {self.owner}" if self.owner else named


class Filter(NamedTuple):
    """What is looked for; None and an empty tuple filter nothing. Times in microseconds, both ends included."""

    text: str | None = None
    thought_types: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    tags_any: tuple[str, ...] = ()
    concepts_any: tuple[str, ...] = ()
    agent_ids: tuple[str, ...] = ()
    agent_names: tuple[str, ...] = ()
    agent_owners: tuple[str, ...] = ()
    min_importance: float | None = None
    min_confidence: float | None = None
    since: int | None = None
    until: int | None = None


def fits_agent(wanted: Filter, agent: Agent) -> bool:
    """Whether a writer is one of those asked for: by id exactly, by name or alias and owner whatever the case."""
    if wanted.agent_ids and agent.agent_id not in wanted.agent_ids:
        return False
    names = {each.casefold() for each in wanted.agent_names}
    if names and names.isdisjoint(each.casefold() for each in (agent.display_name, *agent.aliases)):
        return False
    owners = {each.casefold() for each in wanted.agent_owners}
    return not owners or (agent.owner is not None and agent.owner.casefold() in owners)


def agent_says(text: str, agent: Agent) -> bool:
    """Whether the registry has a text of a writer: in its id, name, owner, an alias or its description."""
    said = (agent.agent_id, agent.display_name, agent.owner or "", agent.description or "", *agent.aliases)
    return any(text.lower() in each.lower() for each in said)


def fits(wanted: Filter, thought: Thought, body: Body | None, agent: Agent) -> bool:
    """Whether a thought is one that is asked for. Of one whose body may not be seen only the rest counts."""
    return fits_fields(wanted, thought) and fits_agent(wanted, agent) and _fits_body(wanted, body, agent)


def fits_fields(wanted: Filter, thought: Thought) -> bool:
    """Whether what is outside the body fits."""
    if wanted.thought_types and thought.thought_type not in wanted.thought_types:
        return False
    if wanted.roles and thought.role not in wanted.roles:
        return False
    if wanted.min_importance is not None and thought.importance < wanted.min_importance:
        return False
    least = wanted.min_confidence
    if least is not None and (thought.confidence is None or thought.confidence < least):
        return False
    if wanted.since is not None and thought.at < wanted.since:
        return False
    return wanted.until is None or thought.at <= wanted.until


def _fits_body(wanted: Filter, body: Body | None, agent: Agent) -> bool:
    tags, concepts = ((), ()) if body is None else (body.tags, body.concepts)
    if not (_any_in(wanted.tags_any, tags) and _any_in(wanted.concepts_any, concepts)):
        return False
    if wanted.text is None or agent_says(wanted.text, agent):
        return True
    return body is not None and any(wanted.text.lower() in each.lower() for each in (body.content, *tags, *concepts))


def _any_in(wanted: tuple[str, ...], labels: tuple[str, ...]) -> bool:
    """Whether one of the wanted is part of one of the labels, whatever the case."""
    return not wanted or any(part.lower() in label.lower() for part in wanted for label in labels)


def screen(text: str) -> str | None:
    """A GLOB pattern that every text fits, plain or as JSON, which has this one in it whatever the case.

    Others fit it too: what it lets through is to be compared. None where all texts would fit.
    """
    part = max(_APART.split(text.lower()), key=len)[:MOST_SCREENED]
    return f"*{''.join(map(_alike, part))}*" if part else None


def _alike(character: str) -> str:
    """The pattern of all characters that are this one in lower case."""
    if character in "*?[":
        return f"[{character}]"
    cases = _ALIKE.get(character) or {character, character.upper(), character.title()}
    return character if len(cases) == 1 else f"[{''.join(sorted(each for each in cases if len(each) == 1))}]"
