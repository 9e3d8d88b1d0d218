"""JSON Schema of what an operation is asked with and answers: for forms, and for whoever speaks to it without us."""

from __future__ import annotations

from typing import Any, cast

import msgspec

from beetle.contracts.common import Report
from beetle.contracts.fields import Request

DEEPEST = 64


def request_schema(kind: type[Request]) -> dict[str, Any]:
    """The schema of one request as an object; what it refers to stands under `$defs` (JSON Schema 2020-12)."""
    return _schema(kind)


def report_schema(kind: type[Report]) -> dict[str, Any]:
    """The schema of one report, as `request_schema`."""
    return _schema(kind)


def inlined(schema: dict[str, Any]) -> dict[str, Any]:
    """The same schema with each part where it is used, for readers that follow no reference.

    Raises:
        RecursionError: a part holds itself.
    """
    parts = schema.get("$defs", {})

    def opened(value: Any, depth: int) -> Any:
        if depth > DEEPEST:
            raise RecursionError("a part of the schema holds itself")
        if isinstance(value, list):
            return [opened(each, depth + 1) for each in cast("list[Any]", value)]
        if not isinstance(value, dict):
            return value
        held = cast("dict[str, Any]", value)
        if "$ref" in held:
            beside = {key: each for key, each in held.items() if key != "$ref"}
            return {**opened(parts[held["$ref"].rpartition("/")[2]], depth + 1), **beside}
        return {key: opened(each, depth + 1) for key, each in held.items()}

    return opened({key: each for key, each in schema.items() if key != "$defs"}, 0)


def _schema(kind: type[Request] | type[Report]) -> dict[str, Any]:
    (_,), parts = msgspec.json.schema_components([kind], ref_template="#/$defs/{name}")
    return _ecma({**parts.pop(kind.__name__), "$defs": parts})


def _ecma(value: Any) -> Any:
    r"""Expressions as JSON Schema has them: ECMA 262 knows no `\Z`, and its `$` is the text's very end."""
    if isinstance(value, list):
        return [_ecma(each) for each in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    held = cast("dict[str, Any]", value)
    return {
        key: each.replace(r"\Z", "$") if key == "pattern" and isinstance(each, str) else _ecma(each)
        for key, each in held.items()
    }
