"""Changes one entry of a JSON text that may hold comments and trailing commas; every other byte stays as it was."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from beetle.named_tuple import NamedTuple

_SPACE = re.compile(r"[ \t\r\n\ufeff]+")
_LINE_COMMENT = re.compile(r"//[^\r\n]*")
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_SCALAR = re.compile(r"-?[0-9][0-9.eE+-]*|true|false|null")
DEEPEST = 200


class NotEditable(ValueError):
    """The text is no JSON, or the place of the entry is taken by something else."""


class Node(NamedTuple):
    """A value: its place in the text, what it is, and the members where it is an object."""

    start: int
    end: int
    value: Any
    members: tuple[Member, ...] = ()


class Member(NamedTuple):
    """A member of an object. `after` is behind its comma, or behind its value where it has none."""

    key: str
    start: int
    node: Node
    after: int


def set_entry(text: str, path: Sequence[str], value: Any) -> str:
    """The text with the value at a path of keys; the objects that lead there are made where they are missing.

    Raises:
        NotEditable: it cannot be done without a change to something else.
    """
    if not text.strip("\ufeff \t\r\n"):
        return json.dumps(_nested(path, value), indent=2, ensure_ascii=False) + "\n"
    root = parse(text)
    changed = _set(text, root, path, value)
    _check(changed, _with(root.value, path, value))
    return changed


def remove_entry(text: str, path: Sequence[str]) -> str:
    """The text without what is at a path; the same text where nothing is there.

    Raises:
        NotEditable: as `set_entry`.
    """
    if not text.strip("\ufeff \t\r\n"):
        return text
    root = node = parse(text)
    for key in path[:-1]:
        found = _member(node, key)
        if found is None:
            return text
        node = found.node
    member = _member(node, path[-1])
    if member is None:
        return text
    changed = _without(text, node, member)
    _check(changed, _lacking(root.value, path))
    return changed


def parse(text: str) -> Node:
    """The value of a whole text.

    Raises:
        NotEditable: it is none.
    """
    node = _value(text, _skip(text, 0), 0)
    if _skip(text, node.end) != len(text):
        raise NotEditable("text follows the JSON value")
    return node


def _set(text: str, node: Node, path: Sequence[str], value: Any) -> str:
    member = _member(node, path[0])
    if member is None:
        return _inserted(text, node, path[0], _nested(path[1:], value))
    if len(path) > 1:
        return _set(text, member.node, path[1:], value)
    if member.node.value == value:
        return text
    written = _written(value, _indent_of(text, member.start), _newline(text))
    return text[: member.node.start] + written + text[member.node.end :]


def _member(node: Node, key: str) -> Member | None:
    if not isinstance(node.value, dict):
        raise NotEditable("the place of the entry is not an object")
    found = [each for each in node.members if each.key == key]
    if len(found) > 1:
        raise NotEditable(f"the key {key!r} stands twice")
    return found[0] if found else None


def _inserted(text: str, node: Node, key: str, value: Any) -> str:
    newline = _newline(text)
    outer = _indent_of(text, node.start)
    inner = _indent_of(text, node.members[0].start) if node.members else outer + "  "
    if len(inner) <= len(outer):
        inner = outer + "  "
    member = f"{inner}{json.dumps(key)}: {_written(value, inner, newline)}"
    if not node.members:
        held = text[node.start + 1 : node.end - 1].rstrip()
        return f"{text[: node.start + 1]}{held}{newline}{member}{newline}{outer}{text[node.end - 1 :]}"
    last = node.members[-1]
    comma = "" if last.after > last.node.end else ","
    # Comments behind the last member stay with it.
    behind = text[last.node.end : node.end - 1].rstrip()
    return f"{text[: last.node.end]}{comma}{behind}{newline}{member}{newline}{outer}{text[node.end - 1 :]}"


def _without(text: str, node: Node, member: Member) -> str:
    start, end = member.start, member.after
    if member.after == member.node.end and (before := [each for each in node.members if each.start < start]):
        # The last one has no comma: the one before it loses its own.
        comma = before[-1].after - 1
        text = text[:comma] + text[comma + 1 :]
        start, end = start - 1, end - 1
    line = text.rfind("\n", 0, start) + 1
    if not text[line:start].strip():
        start = line
        rest = re.compile(r"[ \t]{0,64}\r?\n").match(text, end)
        end = rest.end() if rest is not None else end
    return text[:start] + text[end:]


def _value(text: str, at: int, depth: int) -> Node:
    if depth > DEEPEST:
        raise NotEditable("it is nested too deeply")
    if text.startswith("{", at):
        return _object(text, at, depth)
    if text.startswith("[", at):
        return _list(text, at, depth)
    found = _STRING.match(text, at) or _SCALAR.match(text, at)
    if found is None:
        raise NotEditable(f"no JSON value at line {text.count(chr(10), 0, at) + 1}")
    try:
        return Node(at, found.end(), json.loads(found[0]))
    except ValueError:
        raise NotEditable(f"no JSON value at line {text.count(chr(10), 0, at) + 1}") from None


def _object(text: str, at: int, depth: int) -> Node:
    members: list[Member] = []
    here = _skip(text, at + 1)
    while not text.startswith("}", here):
        name = _STRING.match(text, here)
        colon = -1 if name is None else _skip(text, name.end())
        if name is None or not text.startswith(":", colon):
            raise NotEditable(f"no key at line {text.count(chr(10), 0, here) + 1}")
        node = _value(text, _skip(text, colon + 1), depth + 1)
        after = _skip(text, node.end)
        comma = text.startswith(",", after)
        members.append(Member(json.loads(name[0]), here, node, after + 1 if comma else node.end))
        here = _skip(text, after + 1) if comma else after
        if not comma and not text.startswith("}", here):
            raise NotEditable(f"no comma at line {text.count(chr(10), 0, here) + 1}")
    return Node(at, here + 1, {each.key: each.node.value for each in members}, tuple(members))


def _list(text: str, at: int, depth: int) -> Node:
    values: list[Any] = []
    here = _skip(text, at + 1)
    while not text.startswith("]", here):
        node = _value(text, here, depth + 1)
        values.append(node.value)
        here = _skip(text, node.end)
        if text.startswith(",", here):
            here = _skip(text, here + 1)
        elif not text.startswith("]", here):
            raise NotEditable(f"no comma at line {text.count(chr(10), 0, here) + 1}")
    return Node(at, here + 1, values)


def _skip(text: str, at: int) -> int:
    """Behind space and comments."""
    while True:
        if (space := _SPACE.match(text, at)) is not None:
            at = space.end()
        elif (comment := _LINE_COMMENT.match(text, at)) is not None:
            at = comment.end()
        elif text.startswith("/*", at):
            end = text.find("*/", at + 2)
            if end < 0:
                raise NotEditable("a comment does not end")
            at = end + 2
        else:
            return at


def _nested(path: Sequence[str], value: Any) -> Any:
    for key in reversed(path):
        value = {key: value}
    return value


def _with(whole: Any, path: Sequence[str], value: Any) -> Any:
    if not path:
        return value
    return {**whole, path[0]: _with(whole.get(path[0], {}), path[1:], value)}


def _lacking(whole: Any, path: Sequence[str]) -> Any:
    if len(path) == 1:
        return {key: each for key, each in whole.items() if key != path[0]}
    return {**whole, path[0]: _lacking(whole[path[0]], path[1:])}


def _check(text: str, expected: Any) -> None:
    if parse(text).value != expected:
        raise NotEditable("the entry cannot be changed by itself")


def _written(value: Any, indent: str, newline: str) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False).replace("\n", newline + indent)


def _indent_of(text: str, at: int) -> str:
    line = text.rfind("\n", 0, at) + 1
    found = re.compile(r"[ \t]{0,64}").match(text, line)
    return "" if found is None else found[0]


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"
