"""Cutting a day of a session into segments."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence

from beetle.domain.toc.periods import ulid
from beetle.named_tuple import NamedTuple

GAP_US = 30 * 60 * 1_000_000
"""A longer pause ends a segment."""
SEGMENT_TOKENS = 4000
OVERLAP_US = 5 * 60 * 1_000_000
OVERLAP_TOKENS = 500
CHARS_A_TOKEN = 4
TOOL_CHARS = 1000
"""Of what a tool answered, so many characters count."""
TOOL_ROLES = ("tool", "tool_result")


class Member(NamedTuple):
    """An event of a session, in the session's order.

    `order` tells events of one time apart: the id of an ingested event; else the place in the conversation. `length`
    is its characters, also when its content is gone: what is masked or erased moves no boundary.
    """

    at: int
    event_id: str
    sequence: int
    position: int
    message: int
    role: str
    length: int
    state: str
    name: str
    """What it is called in its conversation."""

    @property
    def tokens(self) -> int:
        """About how many tokens it has."""
        counted = min(self.length, TOOL_CHARS) if self.role in TOOL_ROLES else self.length
        return max(1, counted // CHARS_A_TOKEN)


class Segment(NamedTuple):
    """Events that belong together, and those before them that are read with them."""

    members: tuple[Member, ...]
    context: tuple[Member, ...]

    @property
    def start_ms(self) -> int:
        """When its first event was."""
        return self.members[0].at // 1000

    @property
    def end_ms(self) -> int:
        """When its last event was."""
        return self.members[-1].at // 1000

    def digest(self) -> bytes:
        """What its bullets and keywords follow from, but for the contents, which never change."""
        parts = [(each.message, each.name, each.at, each.role, each.length, each.state) for each in self.members]
        around = [(each.message, each.name, each.state) for each in self.context]
        return hashlib.sha256(repr((parts, around)).encode()).digest()[:16]

    def node_id(self, *place: str) -> str:
        """Its id: the same wherever the same event is the first. `place` is the space and the conversation."""
        first = self.members[0]
        named = hashlib.sha256(repr(("segment", *place, first.name)).encode(errors="surrogatepass")).digest()
        return f"toc:segment:{ulid(self.start_ms, named)}"


def cut(day: Iterable[Member], before: Sequence[Member] = ()) -> Iterator[Segment]:
    """The segments of one day of a session: a pause of more than 30 minutes, or 4,000 tokens, end one.

    Args:
        day: its events in the session's order. Two segments of them are held at a time.
        before: the last events of the day before, at least `OVERLAP_TOKENS` where there are so many.
    """
    own: list[Member] = []
    tokens = 0
    previous = tuple(before)
    for each in day:
        if own and (each.at - own[-1].at > GAP_US or tokens + each.tokens > SEGMENT_TOKENS):
            yield Segment(tuple(own), _context(previous, own[0].at))
            previous, own, tokens = tuple(own), [], 0
        own.append(each)
        tokens += each.tokens
    if own:
        yield Segment(tuple(own), _context(previous, own[0].at))


def _context(previous: Sequence[Member], start: int) -> tuple[Member, ...]:
    """The end of what was before: the last five minutes, at most 500 tokens."""
    found: list[Member] = []
    left = OVERLAP_TOKENS
    for each in reversed(previous):
        left -= each.tokens
        if start - each.at > OVERLAP_US or left < 0:
            break
        found.append(each)
    return tuple(reversed(found))
