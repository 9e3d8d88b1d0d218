"""First reports as they are kept: without what a caller said, and without secrets.

The markers of `contracts/fields.py` say which fields these are. A repeat is answered from the records as they are then,
so that nothing of what was erased since stands in a report.
"""

from __future__ import annotations

import typing
from collections.abc import Iterator, Mapping
from functools import lru_cache
from types import NoneType
from typing import Any, TypeVar

from msgspec import UNSET, Struct, UnsetType

from beetle.contracts.codec import from_plain, replace, to_plain
from beetle.contracts.common import Report
from beetle.named_tuple import NamedTuple

S = TypeVar("S", bound=Struct)

LEFT_OUT = frozenset({"content", "evidence", "secret"})
EMPTY: Mapping[Any, Any] = {str: "", tuple: (), dict: {}}


class _Plan(NamedTuple):
    """Of a struct: what stands for the fields that are left out, and the fields whose structs leave some out."""

    emptied: Mapping[str, Any]
    nested: tuple[str, ...]


def kept_form(report: S) -> S:
    """The report as it may be kept."""
    plan = _plan(type(report))
    changes: dict[str, Any] = dict(plan.emptied)
    for name in plan.nested:
        changes[name] = _kept(getattr(report, name))
    return replace(report, **changes) if changes else report


def kept_plain(shown: dict[str, Any], kind: type[Report]) -> dict[str, Any]:
    """As `kept_form`, of a report in builtins."""
    plan = _plan(kind)
    return to_plain(kept_form(from_plain(shown, kind))) if plan.emptied or plan.nested else shown


def leaves_out(kind: type[Struct]) -> bool:
    """Whether a report of this kind is kept without some of its fields, or its structs without some of theirs.

    Raises:
        TypeError: a field to be left out can stand empty in no way; a test calls this for every report.
    """
    plan = _plan(kind)
    return bool(plan.emptied or plan.nested)


def _kept(value: Any) -> Any:
    if isinstance(value, Struct):
        return kept_form(value)
    if isinstance(value, tuple):
        return tuple([_kept(each) for each in typing.cast("tuple[Any, ...]", value)])
    if isinstance(value, dict):
        return {name: _kept(each) for name, each in typing.cast("dict[str, Any]", value).items()}
    return value


@lru_cache(maxsize=512)
def _plan(kind: type[Struct]) -> _Plan:
    hints = {
        name: hint
        for name, hint in typing.get_type_hints(kind, include_extras=True).items()
        if name in kind.__struct_fields__
    }
    emptied = {name: _empty(kind, name, hint) for name, hint in hints.items() if _is_left_out(hint)}
    nested = [
        name
        for name, hint in hints.items()
        if name not in emptied and any(each is not kind and leaves_out(each) for each in _structs(hint))
    ]
    return _Plan(emptied, tuple(nested))


def _is_left_out(hint: Any) -> bool:
    marks: list[dict[str, Any]] = [getattr(each, "extra", None) or {} for each in getattr(hint, "__metadata__", ())]
    return any(each.get("sensitivity") in LEFT_OUT or each.get("said", False) for each in marks)


def _empty(kind: type[Struct], name: str, hint: Any) -> Any:
    types = tuple(_types(hint))
    for each, empty in ((NoneType, None), (UnsetType, UNSET), *EMPTY.items()):
        if each in types:
            return empty
    raise TypeError(f"{kind.__name__}.{name} cannot be left out of a first report")


def _types(hint: Any) -> Iterator[Any]:
    """The types of a union, without their parameters."""
    origin = typing.get_origin(hint)
    if origin is typing.Annotated:
        yield from _types(typing.get_args(hint)[0])
    elif origin is None or (isinstance(origin, type) and issubclass(origin, tuple | dict)):
        yield origin or hint
    else:
        for each in typing.get_args(hint):
            yield from _types(each)


def _structs(hint: Any) -> Iterator[type[Struct]]:
    if isinstance(hint, type) and issubclass(hint, Struct):
        yield hint
    for each in typing.get_args(hint):
        yield from _structs(each)
