"""The front matter of a SKILL.md: two texts out of YAML that anyone may have written.

Nothing is constructed: the parser's events are walked, and of the outermost mapping `name` and `description` are kept.
So no tag, anchor or alias means anything, and nesting and length are bounded before they cost.
"""

from __future__ import annotations

import re
from typing import Any, Literal, NamedTuple

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
