"""Front matter: a few texts out of YAML that anyone may have written.

Nothing is constructed: the parser's events are walked, and of the outermost mapping a few entries are kept.
So no tag, anchor or alias means anything, and nesting and length are bounded before they cost.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any, Literal

from beetle.named_tuple import NamedTuple

FRONT_MATTER_BYTES = 8192
"""The front matter must end within so many bytes of its file."""
NAME_CHARS = 128
DESCRIPTION_CHARS = 1024
"""What the format itself allows a description."""
MOST_BRACKETS = 128
"""The parser's time grows with the square of open brackets: 8,192 of them take it 12 s, 128 none worth telling."""
MOST_DEPTH = 8
MOST_EVENTS = 1024

Problem = Literal["no_front_matter", "front_matter_invalid", "name_invalid", "description_invalid", "not_utf8"]
OPENING = r"---[ \t]*\r?\n"
CLOSING = r"(?m)^---[ \t]*\r?$"
STRING = "tag:yaml.org,2002:str"
NULL = "tag:yaml.org,2002:null"
CONTROL = r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]"


class FrontMatter(NamedTuple):
    """What a skill says of itself; each on one line."""

    name: str
    description: str


def read_front_matter(head: bytes) -> FrontMatter | Problem:
    """What the first `FRONT_MATTER_BYTES` of a SKILL.md say of the skill, or why they cannot be used."""
    try:
        # The bytes may end inside a character, far behind the front matter.
        text = head.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape")
        opened = re.match(OPENING, text)
        closed = None if opened is None else re.search(CLOSING, text[opened.end() :])
        if opened is None or closed is None:
            return "no_front_matter"
        inner = text[opened.end() : opened.end() + closed.start()]
        inner.encode()
    except UnicodeEncodeError:
        return "not_utf8"
    found = _outermost(inner)
    if found is None:
        return "front_matter_invalid"
    name = _line(found.get("name"), NAME_CHARS)
    if name is None or "/" in name:
        return "name_invalid"
    description = _line(found.get("description"), DESCRIPTION_CHARS)
    return "description_invalid" if description is None else FrontMatter(name, description)


def _line(text: str | None, most: int) -> str | None:
    """The text on one line, or None where it is no text of at most so many characters."""
    if text is None or re.search(CONTROL, text):
        return None
    line = " ".join(text.split())
    return line if 0 < len(line) <= most else None


class Unreadable(NamedTuple):
    """Why front matter cannot be used, in words, and what to do."""

    reason: str
    hint: str


MAPPING_BYTES = 16_384
MAPPING_EVENTS = 2048


def read_mapping(text: str, wanted: Collection[str]) -> dict[str, str | tuple[str, ...]] | Unreadable:
    """The wanted entries of the one mapping that a YAML text is: each a text, or a list of texts.

    A number or a date is the text that it is written as; null is left out. Other entries may be anything within the
    bounds, and are passed over.
    """
    import yaml

    if len(text.encode()) > MAPPING_BYTES:
        return Unreadable(f"its front matter is longer than {MAPPING_BYTES:,} bytes", "move what is long to the body")
    if sum(text.count(each) for each in "[{") > MOST_BRACKETS:
        return Unreadable(f"its front matter has more than {MOST_BRACKETS} brackets", "write a plain mapping")
    found = _Entries(yaml.resolver.Resolver(), frozenset(wanted))
    try:
        for place, event in enumerate(yaml.parse(text, Loader=yaml.SafeLoader)):
            if place > MAPPING_EVENTS:
                return Unreadable(f"its front matter has more than {MAPPING_EVENTS:,} parts", "write a plain mapping")
            if (problem := found.take(event)) is not None:
                return problem
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        # As in `_outermost`. What the parser says of a line begins at 0, and the front matter at the second.
        mark = getattr(error, "problem_mark", None)
        where = "" if mark is None else f", line {mark.line + 2}"
        return Unreadable(
            f"its front matter is not YAML{where}", "write `name: …` and `description: …`, quoted if need be"
        )
    return found.values


class _Entries:
    """The wanted entries of a mapping, event by event."""

    def __init__(self, resolver: Any, wanted: frozenset[str]) -> None:
        self.values: dict[str, str | tuple[str, ...]] = {}
        self._resolver = resolver
        self._wanted = wanted
        self._keys: set[str] = set()
        self._key: str | None = None
        self._list: list[str] | None = None
        self._depth = 0
        self._documents = 0

    def take(self, event: Any) -> Unreadable | None:
        """Why an event may not stand there; None where it may."""
        import yaml

        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            return Unreadable("its front matter has an anchor or an alias", "write each value where it belongs")
        if getattr(event, "tag", None):
            return Unreadable("its front matter has a tag", "write the value without `!…` before it")
        self._documents += isinstance(event, yaml.DocumentStartEvent)
        if self._documents > 1:
            return Unreadable("its front matter is more than one document", "write one mapping")
        problem = self._node(event) if isinstance(event, yaml.NodeEvent) else None
        if isinstance(event, yaml.SequenceEndEvent) and self._depth == 2 and self._key is not None:
            self._end(tuple(self._list or ()))
        elif isinstance(event, yaml.MappingEndEvent) and self._depth == 2:
            self._end(None)
        self._depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if self._depth > MOST_DEPTH:
            return Unreadable(f"its front matter is nested deeper than {MOST_DEPTH}", "write a plain mapping")
        return problem

    def _node(self, event: Any) -> Unreadable | None:
        import yaml

        if self._depth == 0:
            if not isinstance(event, yaml.MappingStartEvent):
                return Unreadable("its front matter is not a mapping", "write `name: …` and `description: …`")
        elif self._depth == 1:
            return self._entry(event)
        elif self._key in self._wanted:
            if self._list is None or self._depth > 2 or not isinstance(event, yaml.ScalarEvent):
                return Unreadable(f"{self._key} is neither a text nor a list of texts", f"write {self._key}: [a, b]")
            if (text := self._said(event)) is not None:
                self._list.append(text)
        return None

    def _entry(self, event: Any) -> Unreadable | None:
        """A key, or the value of the key before."""
        import yaml

        if self._key is None:
            if not isinstance(event, yaml.ScalarEvent):
                return Unreadable("a key of its front matter is not a text", "write `key: value`")
            if event.value in self._keys:
                return Unreadable(f"{event.value[:64]!r} stands twice in its front matter", "write it once")
            self._keys.add(event.value)
            self._key = event.value
        elif isinstance(event, yaml.ScalarEvent):
            self._end(self._said(event))
        elif isinstance(event, yaml.SequenceStartEvent):
            self._list = []
        elif self._key in self._wanted:
            return Unreadable(f"{self._key} is a mapping", f"write {self._key}: as a text or a list")
        return None

    def _said(self, event: Any) -> str | None:
        import yaml

        kind = self._resolver.resolve(yaml.ScalarNode, event.value, event.implicit)
        return None if kind == NULL else event.value

    def _end(self, value: str | tuple[str, ...] | None) -> None:
        if self._key in self._wanted and value is not None:
            self.values[self._key] = value
        self._key, self._list = None, None


def _outermost(text: str) -> dict[str, str] | None:
    """The outermost mapping's entries whose value is a text; None where it is no such mapping, or more than borne."""
    import yaml

    if sum(text.count(each) for each in "[{") > MOST_BRACKETS:
        return None
    try:
        found = _Outermost(yaml.resolver.Resolver())
        for place, event in enumerate(yaml.parse(text, Loader=yaml.SafeLoader)):
            if place > MOST_EVENTS or not found.take(event):
                return None
    except (yaml.YAMLError, ValueError, OverflowError):
        # The parser lets escapes and directives with numbers out of range through to int() and chr().
        return None
    return found.texts if found.documents == 1 else None


class _Outermost:
    """The entries of the outermost mapping, event by event."""

    def __init__(self, resolver: Any) -> None:
        self.texts: dict[str, str] = {}
        self.documents = 0
        self._resolver = resolver
        self._depth = 0
        self._keys: set[str] = set()
        self._key: str | None = None

    def take(self, event: Any) -> bool:
        """Whether an event may stand there: one document with one mapping, its keys plain and each once, no tricks."""
        import yaml

        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) or getattr(event, "tag", None):
            return False
        self.documents += isinstance(event, yaml.DocumentStartEvent)
        if isinstance(event, yaml.NodeEvent):
            if self._depth == 0 and not isinstance(event, yaml.MappingStartEvent):
                return False
            if self._depth == 1 and not self._entry(event):
                return False
        self._depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        return self._depth <= MOST_DEPTH and self.documents <= 1

    def _entry(self, event: Any) -> bool:
        """A key, or the value of the key before: whether it may be one."""
        import yaml

        scalar = isinstance(event, yaml.ScalarEvent)
        if self._key is None:
            if not scalar or event.value in self._keys:
                return False
            self._keys.add(event.value)
            self._key = event.value
            return True
        if scalar and self._resolver.resolve(yaml.ScalarNode, event.value, event.implicit) == STRING:
            self.texts[self._key] = event.value
        self._key = None
        return True
