"""The words that a field may have, for the hint of an error that says that it has another one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from msgspec import inspect

_STEP = re.compile(r"\.([^.\[]+)|\[[^\[\]]*\]")


def choices_at(kind: Any, path: str) -> tuple[str, ...]:
    """The words of a closed set at a place of a struct.

    Args:
        path: steps from the struct on, as `.links.kind` or `.types[0]`.

    Returns:
        The words in their order; none where the place holds something else, or is none.
    """
    nodes = list(_plain(inspect.type_info(kind)))
    for step in _STEP.finditer(path):
        nodes = [found for node in nodes for inner in _inside(node, step[1]) for found in _plain(inner)]
    words = (each for node in nodes if isinstance(node, inspect.LiteralType) for each in node.values)
    return tuple(dict.fromkeys(each for each in words if isinstance(each, str)))


def _plain(node: inspect.Type) -> Iterator[inspect.Type]:
    """What a type may be, without the notes on it."""
    if isinstance(node, inspect.Metadata):
        yield from _plain(node.type)
    elif isinstance(node, inspect.UnionType):
        for each in node.types:
            yield from _plain(each)
    else:
        yield node


def _inside(node: inspect.Type, name: str | None) -> Iterator[inspect.Type]:
    """What a step leads to: a field of that name, or an item."""
    if isinstance(node, inspect.StructType):
        yield from (each.type for each in node.fields if each.encode_name == name)
    elif isinstance(node, (inspect.VarTupleType, inspect.ListType, inspect.CollectionType)) and name is None:
        yield node.item_type
    elif isinstance(node, inspect.DictType):
        yield node.value_type
