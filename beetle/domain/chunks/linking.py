"""Which links a new chunk gets, and how strong a link is.

`context_of` needs no rule: a chunk belongs to its conversation. `follows` leads back to what was said in the
conversation within five minutes, `related_to` to chunks of other conversations that share a tag. `supports` and
`contradicts` are given by hand. Of each kind a chunk gets a bounded number, the newest targets first, so that a long
conversation costs no more for each new chunk than a short one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from beetle.contracts.chunks import LinkKind
from beetle.named_tuple import NamedTuple

FOLLOWS_MS: Final = 5 * 60 * 1000
"""How long before a chunk another of its conversation was created that it follows; both ends included."""
MOST_FOLLOWS: Final = 8
MOST_RELATED: Final = 16
CONTEXT_STRENGTH: Final = 1.0
GIVEN_STRENGTH: Final = 0.5
"""The strength of a link that somebody gave by hand without saying more."""
_LEAST_FOLLOWS: Final = 0.3


class Linkable(NamedTuple):
    """What the rules see of a chunk."""

    chunk_id: str
    conversation_id: str
    created_ms: int
    tags: frozenset[str]


class Link(NamedTuple):
    """A link from the new chunk; `related_to` holds in both directions."""

    kind: LinkKind
    target: str
    strength: float


def links_on_create(
    new: Linkable,
    others: Iterable[Linkable],
    *,
    window_ms: int = FOLLOWS_MS,
    most_follows: int = MOST_FOLLOWS,
    most_related: int = MOST_RELATED,
) -> list[Link]:
    """The links of a new chunk to those that were there: `follows`, then `related_to`, each newest first.

    Args:
        others: at least the newest ones of the conversation's window and of each tag; any order, repeated or not.
    """
    newest_first = sorted({each.chunk_id: each for each in others}.values(), key=_age)
    before = [each for each in newest_first if each.chunk_id != new.chunk_id]
    follows = [each for each in before if follows_it(new, each, window_ms)]
    related = [each for each in before if is_related(new, each)]
    return [
        *(Link("follows", each.chunk_id, follows_strength(new, each)) for each in follows[:most_follows]),
        *(Link("related_to", each.chunk_id, related_strength(new.tags, each.tags)) for each in related[:most_related]),
    ]


def follows_it(new: Linkable, other: Linkable, window_ms: int = FOLLOWS_MS) -> bool:
    """Whether a chunk follows another: of one conversation, and created within the window behind it."""
    return other.conversation_id == new.conversation_id and 0 <= new.created_ms - other.created_ms <= window_ms


def is_related(new: Linkable, other: Linkable) -> bool:
    """Whether two chunks share a tag. Those of one conversation are its context already."""
    return other.conversation_id != new.conversation_id and not new.tags.isdisjoint(other.tags)


def follows_strength(new: Linkable, other: Linkable) -> float:
    """From 1.0, at the same moment, down to 0.3, from three and a half minutes on."""
    return max(_LEAST_FOLLOWS, 1.0 - abs(new.created_ms - other.created_ms) / FOLLOWS_MS)


def related_strength(first: frozenset[str], second: frozenset[str]) -> float:
    """0.5 for one shared tag, 0.2 more for each further one, 0.9 at most."""
    return min(0.9, round(0.3 + 0.2 * len(first & second), 1))


def strength_of(kind: str, first: Linkable, second: Linkable) -> float:
    """The strength of a link of this kind between two chunks, from 0 to 1."""
    if kind == "follows":
        return follows_strength(first, second)
    return related_strength(first.tags, second.tags) if kind == "related_to" else given_strength(kind)


def given_strength(kind: str) -> float:
    """The strength of a link that somebody gave without one: 1.0 to its conversation, else 0.5."""
    return CONTEXT_STRENGTH if kind == "context_of" else GIVEN_STRENGTH


def _age(chunk: Linkable) -> tuple[int, str]:
    return (-chunk.created_ms, chunk.chunk_id)
