"""A chunk's file: its text, its place in the tree, and every reason why one cannot be read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from math import isfinite
from types import MappingProxyType
from typing import Any, Final, Literal, NoReturn, cast, get_args

from beetle.contracts.chunks import (
    CHUNK_ID,
    DEFAULT_CONFIDENCE,
    LINK_KINDS,
    MOST_COUNT,
    MOST_DEPTH,
    MOST_LINKS,
    MOST_NAME,
    MOST_TAGS,
    ChunkSource,
    ChunkType,
)
from beetle.contracts.codec import from_us, to_us
from beetle.contracts.errors import InvalidRequest
from beetle.named_tuple import NamedTuple

ESCAPED: Final = 6
"""Bytes of JSON that a byte of text may be."""
GIVEN_LINKS: Final = 64
"""Links of a kind that any change may give a chunk."""
GIVEN_BYTES: Final = 2**20
"""More than these links, all tags and the fields of fixed size have together, at the most."""
MOST_ID: Final = 128
LEAST_INTEGER: Final = -(2**63)
MOST_INTEGER: Final = 2**64 - 1
"""The ends of what MessagePack can carry, and so an answer."""
MOST_DIGITS: Final = len(str(LEAST_INTEGER))
GROWN: Final = 5
"""More bytes than a byte of a file becomes when it is written again: `1e15` becomes `1000000000000000.0`."""
MOST_INDENTED: Final = 768 * 2**10
"""Less than any profile takes a file with."""
ENDING: Final = ".json"
TYPES: Final = get_args(ChunkType)
SOURCES: Final = get_args(ChunkSource)
FIELDS: Final = ("id", "content", "tokens", "type", "metadata", "links", "tags")
METADATA: Final = ("created", "conversation_id", "source", "confidence", "access_count", "last_accessed")

_ID: Final = re.compile(CHUNK_ID)
_NAME: Final = re.compile(r"[^\x00-\x1f\x7f-\x9f]{1,256}\Z")
_MONTH: Final = re.compile(r"[0-9]{4}-(?:0[1-9]|1[0-2])\Z")
_TIME: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,9})?)?(Z|[+-][0-9]{2}:[0-9]{2})?\Z"
)
# One that does not end matches up to the end of the text: a hostile file is looked through once.
_STRINGS: Final = re.compile(r'"(?:[^"\\]++|\\.?)*+(?:"|\Z)', re.DOTALL)
_KINDS: Final[Mapping[type, str]] = {
    type(None): "null",
    bool: "a boolean",
    int: "an integer",
    float: "a number with a fraction",
    str: "a string",
    list: "an array",
}
_SURROGATE: Final = re.compile("[\ud800-\udfff]")

Extra = Mapping[str, Any]
NOTHING: Final[Extra] = MappingProxyType({})


class ChunkDocument(NamedTuple):
    """What a chunk's file says. Times are in microseconds since the epoch.

    `links` has the five types in their order, each with its targets. `extra`, `extra_metadata` and `extra_links` are
    keys that no schema names: they are kept, and written again behind the known ones.
    """

    id: str
    content: str
    tokens: int
    type: ChunkType
    created: int
    conversation_id: str
    links: Mapping[str, tuple[str, ...]]
    source: ChunkSource = "interaction"
    confidence: float = DEFAULT_CONFIDENCE
    access_count: int = 0
    last_accessed: int | None = None
    tags: tuple[str, ...] = ()
    extra: Extra = NOTHING
    extra_metadata: Extra = NOTHING
    extra_links: Extra = NOTHING


class Bounds(NamedTuple):
    """Bytes that a chunk's file may have, and how many of them may be unknown fields and links that only a file brings.

    The latter are bounded for themselves, once they are written: whatever a chunk is given later fits beside them.
    """

    file: int
    brought: int

    @classmethod
    def of(cls, content_bytes: int) -> Bounds:
        """Where a content may have so many bytes."""
        brought = min(4 * 2**20, ESCAPED * content_bytes + 512 * 2**10)
        return cls(brought + ESCAPED * content_bytes + GIVEN_BYTES, brought)


LARGEST: Final = Bounds.of(2**20)
"""For the contents of every profile that comes with Beetle: more is not read out of a folder."""


class Unreadable(NamedTuple):
    """A file of a tree that is not taken, and why. `path` is relative to the tree's folder, as `path_text` shows it."""

    path: str
    reason: str


def path_text(path: str) -> str:
    """A path as text: bytes that are not UTF-8, which Python holds as halves of surrogate pairs, as `\\xff`."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def name_fault(path: str) -> str | None:
    """Why nothing of a tree can have such a path, or None."""
    if _SURROGATE.search(path):
        return "its path is not UTF-8"
    return "its path holds a backslash" if "\\" in path else None


class _Refused(Exception):
    """Why a file is no chunk."""


def is_chunk_id(given: object) -> bool:
    """Whether this is an id that may name a file: `[A-Za-z0-9._-]`, at most 128 of them, no dot in front."""
    return isinstance(given, str) and _ID.match(given) is not None


def month_of(chunk_id: str, created: int) -> str:
    """The month's folder of a chunk: of the date in its id, else of its creation.

    The seed's readers look for a file by its id's date alone.
    """
    month = "-".join(chunk_id.split("-", 3)[1:3])
    return month if chunk_id.count("-") >= 3 and _MONTH.match(month) else from_us(created).strftime("%Y-%m")


def place_of(document: ChunkDocument, *, archived: bool = False) -> str:
    """Where a chunk's file stands, relative to the tree's folder."""
    if archived:
        return f"archive/{document.id}{ENDING}"
    return f"chunks/{month_of(document.id, document.created)}/{document.id}{ENDING}"


def standing_of(path: str) -> Literal["live", "archived"] | Unreadable | None:
    """Which chunk a file of a tree is by its place; None of what is no chunk's file, such as an index."""
    match path.split("/"):
        case ["archive", name] if name.endswith(ENDING):
            return "archived"
        case ["chunks", month, name] if month and name.endswith(ENDING):
            return "live"
        case ["chunks", *_, name] if name.endswith(ENDING):
            return Unreadable(path, "it does not stand in a month's folder, such as chunks/2026-02")
    return None


def time_text(at: int) -> str:
    """A time as a file says it: to the second where it is a whole one, else with the six digits that readers take."""
    return f"{from_us(at).replace(tzinfo=None).isoformat()}Z"


DOUBLE: Final = "its id stands in another file of the tree already"
"""Why a file is not read behind another one of its name."""


def written(document: ChunkDocument) -> str:
    """The text of a chunk's file: UTF-8 when encoded, two spaces a level, no line end behind it.

    Long arrays of short values grow many times by that: what would be over `MOST_INDENTED` bytes then has one line.
    """
    text = json.dumps(plain(document), indent=2, ensure_ascii=False, allow_nan=False)
    if len(text) * 4 > MOST_INDENTED and len(text.encode()) > MOST_INDENTED:
        return _one_line(document)
    return text


def _one_line(document: ChunkDocument) -> str:
    return json.dumps(plain(document), separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def plain(document: ChunkDocument) -> dict[str, Any]:
    """What the file holds, with the keys in their order."""
    last = document.last_accessed
    metadata = {
        "created": time_text(document.created),
        "conversation_id": document.conversation_id,
        "source": document.source,
        "confidence": document.confidence,
        "access_count": document.access_count,
        "last_accessed": None if last is None else time_text(last),
    }
    return {
        "id": document.id,
        "content": document.content,
        "tokens": document.tokens,
        "type": document.type,
        "metadata": {**metadata, **document.extra_metadata},
        "links": {**{kind: list(document.links.get(kind, ())) for kind in LINK_KINDS}, **document.extra_links},
        "tags": list(document.tags),
        **document.extra,
    }


def read_chunk(data: bytes, path: str, most: Bounds = LARGEST) -> ChunkDocument | Unreadable:
    """The chunk of a file, or why there is none. Raises nothing, whatever the bytes are.

    Args:
        path: where the file stands; its stem is the id that it has to say.
    """
    try:
        document = _document(_parsed(data, most.file), _stem(path))
        if GROWN * len(data) > most.brought and _brought(document) > most.brought:
            _refuse(f"its unknown fields and links are larger than {most.brought} bytes once they are written again")
        return document
    except _Refused as refused:
        return Unreadable(path, str(refused))


def parse_chunk(given: object) -> ChunkDocument:
    """The chunk that parsed JSON says, whatever its file is called.

    Raises:
        ValueError: it is none, with the reason.
    """
    try:
        return _document(given, None)
    except _Refused as refused:
        raise ValueError(str(refused)) from None


def _stem(path: str) -> str:
    name = path.rpartition("/")[2]
    if name.startswith("."):
        _refuse("its name begins with a dot")
    if not name.endswith(ENDING):
        _refuse(f"its name does not end with {ENDING}")
    stem = name.removesuffix(ENDING)
    if not is_chunk_id(stem):
        _refuse(f"its name is no chunk id: letters, digits, '.', '_' and '-', at most {MOST_ID}")
    return stem


def _parsed(data: bytes, most: int) -> object:
    if len(data) > most:
        _refuse(f"it is larger than {most} bytes")
    try:
        # Editors of some systems write a mark in front.
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        _refuse(f"it is not UTF-8: byte {error.start}")
    if not text.strip():
        _refuse("it is empty")
    _check_depth(text)
    try:
        found = json.loads(
            text,
            object_pairs_hook=_unique,
            parse_constant=_refuse_constant,
            parse_int=_integer,
            parse_float=_finite,
        )
    except json.JSONDecodeError as error:
        _refuse(f"it is not JSON: {error.msg} at line {error.lineno}, column {error.colno}")
    if "\\u" in text and not _encodes(found):
        _refuse("a text holds half of a surrogate pair")
    return cast(object, found)


def _check_depth(text: str) -> None:
    """Nesting is bounded before anything is built."""
    if text.count("[") + text.count("{") <= MOST_DEPTH:
        return
    depth = 0
    for each in re.finditer(r"[\[\]{}]", _STRINGS.sub("", text)):
        depth += 1 if each[0] in "[{" else -1
        if depth > MOST_DEPTH:
            _refuse(f"it is nested deeper than {MOST_DEPTH} levels")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                _refuse(f"the key {_shown(name)} stands twice in one object")
            seen.add(name)
    return found


def _refuse_constant(name: str) -> NoReturn:
    _refuse(f"{name} is no number of JSON")


def _integer(digits: str) -> int:
    if len(digits) > MOST_DIGITS or not LEAST_INTEGER <= (found := int(digits)) <= MOST_INTEGER:
        _refuse(f"the number {_shown(digits)} is beyond 64 bits")
    return found


def _finite(digits: str) -> float:
    found = float(digits)
    if not isfinite(found):
        _refuse(f"the number {_shown(digits)} is larger than any that readers of JSON have")
    return found


def _brought(document: ChunkDocument) -> int:
    """Bytes that only a file brings."""
    links = {kind: targets[GIVEN_LINKS:] for kind, targets in document.links.items()}
    return len(_one_line(document._replace(content="", tags=(), links=links)).encode())


def with_relations(document: ChunkDocument, back: Iterable[str], most: Bounds) -> ChunkDocument:
    """The document with chunks that relate to its own behind those that it relates to, as many as a file may name.

    Nothing is lost of those left out: each stands in the other chunk's file.
    """
    own = document.links["related_to"]
    named = tuple(dict.fromkeys((*own, *back)))[: max(MOST_LINKS, len(own))]
    made = document._replace(links={**document.links, "related_to": named})
    if len(named) > GIVEN_LINKS and _brought(made) > most.brought:
        named = named[: max(GIVEN_LINKS, len(own))]
    return document._replace(links={**document.links, "related_to": named})


def _encodes(value: object) -> bool:
    if isinstance(value, str):
        return _SURROGATE.search(value) is None
    if isinstance(value, Mapping):
        return all(_encodes(key) and _encodes(each) for key, each in value.items())
    return all(map(_encodes, value)) if isinstance(value, list) else True


def _document(given: object, stem: str | None) -> ChunkDocument:
    chunk = _object(given, "it")
    chunk_id = _text(chunk, "id")
    if not is_chunk_id(chunk_id):
        _refuse(f"id is no chunk id: letters, digits, '.', '_' and '-', at most {MOST_ID}")
    if stem is not None and chunk_id != stem:
        _refuse(f"id is {_shown(chunk_id)}, and the file is named {_shown(stem)}")
    content = _text(chunk, "content")
    if not content.strip():
        _refuse("content is blank")
    tokens = _count(_needed(chunk, "tokens"), "tokens", 1)
    kind = _one_of(_needed(chunk, "type"), "type", TYPES)
    metadata = _object(_needed(chunk, "metadata"), "metadata")
    links = _object(_needed(chunk, "links"), "links")
    return ChunkDocument(
        id=chunk_id,
        content=content,
        tokens=tokens,
        type=cast(ChunkType, kind),
        links={kind: _strings(links.get(kind, []), f"links.{kind}", MOST_LINKS) for kind in LINK_KINDS},
        tags=_strings(chunk.get("tags", []), "tags", MOST_TAGS),
        extra=_rest(chunk, FIELDS),
        extra_metadata=_rest(metadata, METADATA),
        extra_links=_rest(links, LINK_KINDS),
        **_metadata(metadata),
    )


def _metadata(given: Mapping[str, Any]) -> dict[str, Any]:
    conversation_id = _text(given, "conversation_id", "metadata.")
    if _NAME.match(conversation_id) is None:
        _refuse(f"metadata.conversation_id has not 1 to {MOST_NAME} characters, or holds control characters")
    last = given.get("last_accessed")
    return {
        "created": _time(_needed(given, "created", "metadata."), "metadata.created"),
        "conversation_id": conversation_id,
        "source": _one_of(given.get("source", SOURCES[0]), "metadata.source", SOURCES),
        "confidence": _confidence(given.get("confidence", DEFAULT_CONFIDENCE)),
        "access_count": _count(given.get("access_count", 0), "metadata.access_count"),
        "last_accessed": None if last is None else _time(last, "metadata.last_accessed"),
    }


def _rest(given: Mapping[str, Any], known: tuple[str, ...]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if name not in known}


def _needed(given: Mapping[str, Any], name: str, under: str = "") -> object:
    if name not in given:
        _refuse(f"{under}{name} is missing")
    return given[name]


def _object(given: object, name: str) -> Mapping[str, Any]:
    if not isinstance(given, dict):
        _refuse(f"{name} is {_kind(given)}, not an object")
    return given


def _text(given: Mapping[str, Any], name: str, under: str = "") -> str:
    found = _needed(given, name, under)
    if not isinstance(found, str):
        _refuse(f"{under}{name} is {_kind(found)}, not a string")
    return found


def _count(given: object, name: str, least: int = 0) -> int:
    if isinstance(given, bool) or not isinstance(given, int):
        _refuse(f"{name} is {_kind(given)}, not an integer")
    if not least <= given <= MOST_COUNT:
        _refuse(f"{name} is {f'below {least}' if given < least else f'larger than {MOST_COUNT}'}")
    return given


def _confidence(given: object) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float):
        _refuse(f"metadata.confidence is {_kind(given)}, not a number")
    if not 0 <= given <= 1:
        _refuse("metadata.confidence is not between 0 and 1")
    return float(given)


def _one_of(given: object, name: str, allowed: tuple[str, ...]) -> str:
    if not isinstance(given, str):
        _refuse(f"{name} is {_kind(given)}, not a string")
    if given not in allowed:
        _refuse(f"{name} is {_shown(given)}, not one of {', '.join(allowed)}")
    return given


def _strings(given: object, name: str, most: int) -> tuple[str, ...]:
    if not isinstance(given, list):
        _refuse(f"{name} is {_kind(given)}, not an array")
    if len(given) > most:
        _refuse(f"{name} has more than {most} entries")
    for each in given:
        if not isinstance(each, str):
            _refuse(f"{name} holds {_kind(each)}, not only strings")
        if not 0 < len(each) <= MOST_NAME:
            _refuse(f"{name} holds {'a string that is longer than 256 characters' if each else 'an empty string'}")
    return tuple(given)


def _time(given: object, name: str) -> int:
    if not isinstance(given, str):
        _refuse(f"{name} is {_kind(given)}, not a time")
    found = _TIME.match(given)
    if found is None:
        _refuse(f"{name} is no time of ISO 8601 with its zone, such as 2026-02-10T21:37:00Z")
    if found[3] is None:
        _refuse(f"{name} has no time zone: write it with a Z behind it")
    try:
        return to_us(datetime.fromisoformat(given))
    except (ValueError, OverflowError, InvalidRequest):
        _refuse(f"{name} is no time that a calendar has")


def _kind(given: object) -> str:
    return _KINDS.get(type(given), "an object")


def _shown(text: str) -> str:
    """A name out of a file in a message: short, and without anything that a terminal would act on."""
    short = text if len(text) <= 64 else f"{text[:63]}…"
    return ascii(short) if not short.isprintable() else f"'{short}'"


def _refuse(reason: str) -> NoReturn:
    raise _Refused(reason)
