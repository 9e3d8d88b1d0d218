"""What the annotations of requests and reports say, in words: types, bounds, defaults, descriptions."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from msgspec import NODEFAULT, Meta, Struct

from beetle.contracts.fields import NO_CONTROL

SIMPLE: Mapping[Any, str] = {
    str: "text", int: "integer", float: "number", bool: "boolean", datetime: "time", bytes: "binary",
    msgspec.Raw: "map", Any: "any",
}  # fmt: skip
PATTERNS: Mapping[str, str] = {
    NO_CONTROL: "no control characters",
    r"\S": "not blank",
    r"^[^\x00-\x1f\x7f-\x9f/]*\Z": "no control characters, no slash",
    r"^[a-z0-9][a-z0-9_-]*\Z": "small letters, digits, dashes",
    r"^/[^\x00]*\Z": "an absolute path",
    r"^[0-9a-fA-F]{64}\Z": "64 hex digits",
}
"""Patterns of the contracts, in words."""


class Kind(NamedTuple):
    """What an annotation says, for a table."""

    text: str
    bounds: tuple[str, ...] = ()
    description: str = ""
    sensitivity: str = ""
    structs: tuple[type[Struct], ...] = ()


def read_kind(hint: Any) -> Kind:
    """The annotation in words, with the structs that it names."""
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        return _marked(read_kind(parts[0]), [mark for mark in parts[1:] if isinstance(mark, Meta)])
    if origin is Literal:
        return Kind(" or ".join(f"`{part}`" for part in parts))
    if origin in (typing.Union, types.UnionType):
        return _union(parts)
    if origin is tuple:
        inner = read_kind(parts[0])
        each = tuple(f"each: {bound}" for bound in inner.bounds)
        return Kind(f"list of {inner.text}", each, inner.description, inner.sensitivity, inner.structs)
    if origin is dict:
        inner = read_kind(parts[1])
        return Kind(f"map of text to {inner.text}", structs=inner.structs)
    if isinstance(hint, type) and issubclass(hint, Struct):
        return Kind(f"[{hint.__name__}](#{hint.__name__.lower()})", structs=(hint,))
    return Kind(SIMPLE[hint])


def _union(parts: tuple[Any, ...]) -> Kind:
    absent = msgspec.UnsetType in parts
    kinds = [read_kind(part) for part in parts if part not in (type(None), msgspec.UnsetType)]
    text = " or ".join(kind.text for kind in kinds)
    text += " or null" if type(None) in parts else ""
    first = next((kind for kind in kinds if kind.bounds or kind.description or kind.sensitivity), kinds[0])
    structs = tuple(struct for kind in kinds for struct in kind.structs)
    return first._replace(text=text + (", may be absent" if absent else ""), structs=structs)


def _marked(kind: Kind, marks: list[Meta]) -> Kind:
    bounds = list(kind.bounds)
    description, sensitivity = kind.description, kind.sensitivity
    for mark in marks:
        bounds += _bounds(mark, "items" if kind.text.startswith("list") else "characters")
        description = mark.description or description
        sensitivity = (mark.extra or {}).get("sensitivity", sensitivity)
    return kind._replace(bounds=tuple(bounds), description=description, sensitivity=sensitivity)


def _bounds(mark: Meta, unit: str) -> Iterator[str]:
    for value, words in ((mark.ge, "at least"), (mark.le, "at most")):
        if value is not None:
            yield f"{words} {value:,}"
    if mark.min_length is not None:
        yield f"at least {mark.min_length:,} {unit[:-1] if mark.min_length == 1 else unit}"
    if mark.max_length is not None:
        yield f"at most {mark.max_length:,} {unit}"
    if mark.pattern is not None:
        yield PATTERNS[mark.pattern]
    extra = mark.extra or {}
    if "budget" in extra:
        yield f"at most [`{extra['budget']}`](profiles.md#budgets)"
    if "clip" in extra:
        yield f"clipped at [`{extra['clip']}`](profiles.md#budgets)"


def plain(text: str) -> str:
    """A docstring's text on one line, fit for a table."""
    return " ".join(text.split()).replace("|", "\\|")


def doc(kind: type) -> str:
    """The docstring of a class itself, not an inherited one and not what a library makes up."""
    return " ".join((kind.__dict__.get("__doc__") or "").split())


def first_sentence(kind: type) -> str:
    text = doc(kind).partition(". ")[0].removesuffix(".")
    return text[:1].lower() + text[1:]


def default(field: msgspec.structs.FieldInfo) -> str:
    if field.required:
        return "required"
    value = field.default if field.default is not NODEFAULT else field.default_factory()
    if isinstance(value, Struct):
        given = {name: getattr(value, name) for name in value.__struct_fields__}
        return "`{}`" if not any(given.values()) else f"`{{{_fields_text(value)}}}`"
    shown = {"None": "null", "True": "true", "False": "false", "()": "[]"}
    text = "{}" if isinstance(value, msgspec.Raw) else str(value)
    if isinstance(value, tuple) and value:
        text = "[" + ", ".join(map(str, value)) + "]"
    return "empty" if value == "" else f"`{shown.get(text, text)}`"


def _fields_text(value: Struct) -> str:
    given = ((name, getattr(value, name)) for name in value.__struct_fields__)
    return ", ".join(f"{name}: {found}" for name, found in given if found is not None)
