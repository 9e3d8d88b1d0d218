"""Admission by size: request fields name their budget in their own type; here the budgets are held to."""

from __future__ import annotations

import types
import typing
from functools import lru_cache
from typing import Any, Never, TypeVar, cast

import msgspec
from msgspec import Struct

from beetle.contracts.codec import Raw, replace
from beetle.contracts.errors import PayloadTooLarge
from beetle.named_tuple import NamedTuple
from beetle.runtime.host.profile import Budgets

S = TypeVar("S", bound=Struct)
FORESEEN_BYTES = 65_536
"""Smaller arguments are decoded at once: they hold few items."""


class Bound(NamedTuple):
    """What bounds one request field: a budget that refuses, a budget that clips, bounded fields beneath it."""

    name: str
    budget: str | None
    clip: str | None
    beneath: bool


def admit(request: S, budgets: Budgets, path: str = "$.args") -> tuple[S, bool]:
    """The request, which stands at `path`, with its numbers lowered to their ceilings, and whether any was.

    Raises:
        PayloadTooLarge: a text, a list or a content is over its budget; nothing is ever cut to fit.
    """
    _check(request, budgets, path)
    lowered: dict[str, Any] = {}
    for name, clip in _clips(type(request)):
        if getattr(request, name) > (most := getattr(budgets, clip)):
            lowered[name] = most
    return (replace(request, **lowered), True) if lowered else (request, False)


def foresee(kind: type[Struct] | types.UnionType, data: bytes | Raw, budgets: Budgets, path: str = "$.args") -> None:
    """Refuse encoded arguments whose lists are over their budgets before any item is made of them: a million items take
    the interpreter from everybody for as long as that lasts. Whatever else is wrong is told by who decodes them.

    Raises:
        PayloadTooLarge: as `admit`.
    """
    if isinstance(kind, types.UnionType) or len(memoryview(data)) <= FORESEEN_BYTES:
        return
    try:
        fields = msgspec.msgpack.decode(data, type=dict[str, Raw])
    except msgspec.DecodeError:
        return
    for bound in bounds(kind):
        if bound.budget is not None and bound.name in fields:
            actual, maximum = _items(bytes(memoryview(fields[bound.name])[:5])), getattr(budgets, bound.budget)
            if actual > maximum:
                _refuse(f"{path}.{bound.name}", bound.budget, maximum, actual, "items")


def _items(header: bytes) -> int:
    """How many items an array of MessagePack announces; 0 for what is none."""
    first = header[0]
    if 0x90 <= first <= 0x9F:
        return first & 0x0F
    return int.from_bytes(header[1 : 3 if first == 0xDC else 5], "big") if first in (0xDC, 0xDD) else 0


@lru_cache(maxsize=256)
def bounds(kind: type[Struct]) -> tuple[Bound, ...]:
    """The fields of a request, or of a part of one, that a budget bounds, themselves or beneath them."""
    found: list[Bound] = []
    for name, hint in typing.get_type_hints(kind, include_extras=True).items():
        if name not in kind.__struct_fields__:
            continue
        marks = _marks(hint)
        beneath = any(bounds(part) for part in _structs(hint))
        if marks or beneath:
            found.append(Bound(name, marks.get("budget"), marks.get("clip"), beneath))
    return tuple(found)


@lru_cache(maxsize=256)
def _clips(kind: type[Struct]) -> tuple[tuple[str, str], ...]:
    """The fields of a request that a budget clips, and that budget."""
    return tuple((bound.name, bound.clip) for bound in bounds(kind) if bound.clip is not None)


def _marks(hint: Any) -> dict[str, str]:
    """The `extra` marks of a type, also where it stands in a union with None."""
    marks: dict[str, str] = {}
    for meta in getattr(hint, "__metadata__", ()):
        marks.update(getattr(meta, "extra", None) or {})
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        for part in typing.get_args(hint):
            marks.update(_marks(part))
    elif typing.get_origin(hint) is typing.Annotated:
        marks = {**_marks(typing.get_args(hint)[0]), **marks}
    return marks


def _structs(hint: Any) -> list[type[Struct]]:
    if isinstance(hint, type) and issubclass(hint, Struct):
        return [hint]
    return [kind for part in typing.get_args(hint) for kind in _structs(part)]


def _check(value: Struct, budgets: Budgets, path: str) -> None:
    for name, budget, _, beneath in bounds(type(value)):
        found = getattr(value, name)
        if not found:
            continue  # nothing, or nothing in it
        if budget is not None:
            maximum = getattr(budgets, budget)
            # Most texts are far below: UTF-8 takes at most four bytes a character.
            if isinstance(found, int) or len(found) * 4 > maximum:
                _hold(found, budget, maximum, f"{path}.{name}")
        if not beneath:
            continue
        if isinstance(found, tuple):
            for index, item in enumerate(cast("tuple[Any, ...]", found)):
                if isinstance(item, Struct):
                    _check(item, budgets, f"{path}.{name}[{index}]")
        elif isinstance(found, Struct):
            _check(found, budgets, f"{path}.{name}")


def _hold(value: Any, budget: str, maximum: int, path: str) -> None:
    if isinstance(value, int):
        actual, unit = value, "bytes"
    elif isinstance(value, bytes):
        actual, unit = len(value), "bytes"
    elif budget.endswith("_bytes"):
        actual, unit = (len(value) if len(value) * 4 <= maximum else len(value.encode())), "bytes"
    else:
        actual, unit = len(value), "characters" if isinstance(value, str) else "items"
    if actual > maximum:
        _refuse(path, budget, maximum, actual, unit)


def _refuse(path: str, budget: str, maximum: int, actual: int, unit: str) -> Never:
    raise PayloadTooLarge(what=path, maximum=maximum, unit=unit, limit=budget, actual=actual, path=path)
