"""Changing one value of a TOML file and nothing else of it: comments, order and blanks stay as they were.

Lines are looked at, not values: where a value stands in a shape that this does not know, the change is refused.
Whatever was done is read again as TOML, and must mean what was meant.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from io import StringIO
from typing import Any, cast

from beetle.contracts.errors import InvalidRequest
from beetle.named_tuple import NamedTuple

Path = tuple[str, ...]
KEY = re.compile(r"""(?:"(?:[^"\\]|\\.)*"|'[^']*'|[^="'])*""")
"""A key and the blanks behind it, up to its `=`."""
QUOTES, OPENING, CLOSING = ('"""', "'''"), ("[", "{"), ("]", "}")
PART = re.compile(r"""["]{3}|'{3}|"(?:[^"\\]|\\.)*"|'[^']*'|#.*|[^"'#\[\]{}]+|.""")
"""Of a value: the quotes of a string of several lines, a string, a comment, a bracket, or what has no meaning here."""
STRING_PARTS = {'"""': re.compile(r"""\\.|["]{3,5}|[^"\\]+|."""), "'''": re.compile(r"'{3,5}|[^']+|.")}
"""Of a string of several lines, by its quotes."""


class KeyLines(NamedTuple):
    """Where a key stands: its lines from `first` to before `end`, the text before its value and behind it."""

    path: Path
    first: int
    end: int
    before: str
    after: str


class Table(NamedTuple):
    """A table's header, by its line; the top of the file has line -1."""

    path: Path
    line: int


def line_of(text: str, path: Path) -> int | None:
    """The line, from 1, at which a key or a table stands, or what is nearest above it; None where nothing is."""
    found: tuple[int, int] | None = None
    for each in _known(_lines(text)) or ():
        line = each.first if isinstance(each, KeyLines) else each.line
        depth = len(each.path)
        if line >= 0 and path[:depth] == each.path and (found is None or depth > found[0]):
            found = (depth, line + 1)
    return None if found is None else found[1]


def changed(text: str, path: Path, value: Any) -> str:
    """The text with the key `path` set to a value; None takes the key away.

    Raises:
        InvalidRequest: it stands in a shape that only a person can change.
    """
    if "\r\n" in text and text.count("\r\n") == text.count("\n"):
        return changed(text.replace("\r\n", "\n"), path, value).replace("\n", "\r\n")
    lines = _lines(text)
    known = _known(lines)
    if known is None:
        raise _strange(path, None)
    if value is not None and lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    place = next((each for each in known if isinstance(each, KeyLines) and each.path == path), None)
    if place is not None:
        line = [] if value is None else [f"{place.before}{toml(value)}{place.after}\n"]
        lines[place.first : place.end] = line
    elif value is not None:
        _add(lines, known, path, value)
    done = "".join(lines)
    try:
        right = tomllib.loads(done) == _meant(tomllib.loads(text), path, value)
    except tomllib.TOMLDecodeError:
        right = False
    if not right:
        raise _strange(path, line_of(text, path))
    return done


def _lines(text: str) -> list[str]:
    """The lines with their ends, which are LF alone: TOML takes any other line end for text."""
    return list(StringIO(text, newline="\n"))


def _strange(path: Path, line: int | None) -> InvalidRequest:
    at = f" at line {line}" if line else ""
    return InvalidRequest(
        reason=f"{'.'.join(path)} has a form that no command changes{at}",
        hint="change the file with an editor, then `beetle config check`",
    )


def toml(value: Any) -> str:
    """A value as TOML has it, on one line."""
    if isinstance(value, dict):
        pairs = cast("dict[str, Any]", value).items()
        return "{ " + ", ".join(f"{toml(key)} = {toml(each)}" for key, each in pairs) + " }"
    if isinstance(value, list | tuple):
        return f"[{', '.join(toml(each) for each in cast('list[Any]', value))}]"
    # Of what TOML wants escaped, JSON leaves DEL as it is.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _add(lines: list[str], known: list[KeyLines | Table], path: Path, value: Any) -> None:
    """A new line: where the key is commented out, else behind the table's last key, else in a table at the end."""
    table, line = path[:-1], f"{_name(path[-1])} = {toml(value)}\n"
    header = next((each for each in known if isinstance(each, Table) and each.path == table and each.line >= 0), None)
    if header is None:
        name = ".".join(_name(each) for each in table)
        lines += [*(["\n"] if lines and lines[-1].strip() else []), f"[{name}]\n", line]
        return
    following = (each.line for each in known if isinstance(each, Table) and each.line > header.line)
    end = min(following, default=len(lines))
    below = 0
    for number in range(header.line + 1, end):
        if not lines[number].lstrip().startswith("#"):
            continue
        commented = lines[number].lstrip().removeprefix("#").lstrip()
        # A commented header ends the table that a person sees.
        if commented.startswith("["):
            break
        if (found := _commented_out(commented)) is not None and found.path == path[-1:]:
            lines[number] = f"{line[:-1]}{found.after}\n"
            return
        name, equals, _ = commented.partition("=")
        if equals and name.strip() == path[-1]:
            below = below or _comment_end(lines, number, end)
    last = max((each.end for each in known if isinstance(each, KeyLines) and header.line < each.first < end), default=0)
    lines.insert(below or last or header.line + 1, line)


def _commented_out(line: str) -> KeyLines | None:
    """The key of a line that has lost its #; None where it is prose, or of no value in itself."""
    try:
        known = list(_walk([line])) if tomllib.loads(line) else []
    except tomllib.TOMLDecodeError:
        return None
    return next((each for each in known if isinstance(each, KeyLines)), None)


def _comment_end(lines: list[str], number: int, end: int) -> int:
    """The line behind a comment of one or more lines: what comments a key out, or a header, is not part of it."""
    behind = number + 1
    while behind < end and lines[behind].lstrip().startswith("#"):
        commented = lines[behind].lstrip().removeprefix("#").lstrip()
        if commented.startswith("[") or _commented_out(commented) is not None:
            break
        behind += 1
    return behind


def _meant(tables: dict[str, Any], path: Path, value: Any) -> dict[str, Any]:
    here = tables
    for each in path[:-1]:
        if value is None and each not in here:
            return tables
        here = here.setdefault(each, {})
        if not isinstance(here, dict):
            raise _strange(path, None)
    if value is None:
        here.pop(path[-1], None)
    else:
        here[path[-1]] = value
    return tables


def _known(lines: list[str]) -> list[KeyLines | Table] | None:
    """What stands where; None where a line has no meaning in itself."""
    try:
        return list(_walk(lines))
    except tomllib.TOMLDecodeError:
        return None


def _walk(lines: list[str]) -> Iterator[KeyLines | Table]:
    """The tables and the keys of a file that is TOML, in its order."""
    table: Path = ()
    yield Table(table, -1)
    number = 0
    while number < len(lines):
        text = lines[number].strip()
        if not text or text.startswith("#"):
            number += 1
        elif text.startswith("["):
            table = _header(text)
            yield Table(table, number)
            number += 1
        else:
            found = _key(lines, number, table)
            yield found
            number = found.end


def _header(text: str) -> Path:
    return tuple(_single_path(tomllib.loads(text)))


def _single_path(tables: Any) -> Iterator[str]:
    """The names of nested tables that have one key each."""
    while isinstance(tables, dict) and tables:
        name, tables = next(iter(cast("dict[str, Any]", tables).items()))
        yield name
        if isinstance(tables, list):
            return


def _key(lines: list[str], number: int, table: Path) -> KeyLines:
    """The key that begins at a line, with the lines of its value."""
    line = lines[number]
    before = KEY.match(line)
    assert before is not None, "the text before a key's = may be empty"
    at = before.end()
    name = tuple(_single_path(tomllib.loads(f"{line[:at]}= 0")))
    begins = line[: at + 1] + " " * (len(line[at + 1 :]) - len(line[at + 1 :].lstrip(" ")))
    end, comment = _value(lines, number, at + 1)
    return KeyLines((*table, *name), number, end, begins, comment)


def _value(lines: list[str], number: int, at: int) -> tuple[int, str]:
    """The line behind a value that begins at a place of a line, and the comment behind it with the blanks before
    that. Each character is looked at once: a list may have as many lines as the file.
    """
    depth, closing = 0, ""
    for end in range(number, len(lines)):
        text, comment = lines[end].rstrip("\n"), ""
        while at < len(text):
            found = (STRING_PARTS[closing] if closing else PART).match(text, at)
            assert found is not None, "any character is a part"
            part = found[0]
            if closing:
                closing = "" if part.startswith(closing) else closing
            elif part.startswith("#"):
                comment = text[len(text[:at].rstrip()) :]
            elif part in QUOTES:
                closing = part
            else:
                depth += (part in OPENING) - (part in CLOSING)
            at = found.end()
        if not depth and not closing:
            return end + 1, comment
        at = 0
    return len(lines), ""


def _name(key: str) -> str:
    bare = key.replace("-", "").replace("_", "").isalnum() and key.isascii()
    return key if bare else toml(key)
