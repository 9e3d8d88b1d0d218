"""Refs: one stable string for any record, `plane:segment/segment…`, segments percent-encoded (RFC 3986)."""

from __future__ import annotations

import re
from urllib.parse import quote, unquote

from beetle.named_tuple import NamedTuple

_PLAIN = re.compile("[A-Za-z0-9_.~-]*")
"""What needs no encoding."""
SHAPES: dict[str, tuple[int, int]] = {
    "evidence": (3, 4),
    "procedural": (1, 2),
    "long_term": (1, 1),
    "thoughts": (2, 2),
    "chunks": (1, 1),
    "agent_skill": (2, 2),
    "toc": (1, 1),
    "grip": (1, 1),
}
"""Plane to the least and the most number of segments."""


class Ref(NamedTuple):
    """A parsed ref. `evidence` has channel, conversation, turn and, of one message, its id."""

    plane: str
    segments: tuple[str, ...]

    def __str__(self) -> str:
        return format_ref(self.plane, *self.segments)


def format_ref(plane: str, *segments: str | int) -> str:
    """The ref of a record; unreserved characters of RFC 3986 stay as they are."""
    return f"{plane}:{'/'.join([_encoded(str(each)) for each in segments])}"


def _encoded(segment: str) -> str:
    return segment if _PLAIN.fullmatch(segment) else quote(segment, safe="")


def parse_ref(text: str) -> Ref | None:
    """The ref that `text` is, or None when it is something else (a citation may be any text)."""
    plane, colon, rest = text.partition(":")
    shape = SHAPES.get(plane)
    if not colon or shape is None or not rest:
        return None
    parts = rest.split("/")
    if not shape[0] <= len(parts) <= shape[1] or not all(parts):
        return None
    segments = tuple(unquote(p, errors="strict") if p.isascii() and _decodes(p) else "" for p in parts)
    return Ref(plane, segments) if all(segments) else None


def _decodes(part: str) -> bool:
    """Whether the percent-encoded bytes are UTF-8."""
    try:
        unquote(part, errors="strict")
    except UnicodeDecodeError:
        return False
    return True


class EvidenceRef(NamedTuple):
    """What a ref of evidence names: a turn, or one of its messages."""

    channel_id: str
    conversation_id: str
    turn_id: str
    message_id: str | None = None

    def __str__(self) -> str:
        return format_ref("evidence", *(each for each in self if each is not None))


def evidence_named(text: str | None) -> EvidenceRef | None:
    """The turn or message that a ref names; None where it is no ref of evidence."""
    found = None if text is None else parse_ref(text)
    return EvidenceRef(*found.segments) if found is not None and found.plane == "evidence" else None


def fact_named(text: str | None) -> str | None:
    """The record id of the fact that a ref names; None where it is no ref of a long-term fact."""
    found = None if text is None else parse_ref(text)
    return found.segments[0] if found is not None and found.plane == "long_term" else None
