"""JSON Schema of requests, reports and frames: for forms, for MCP hosts and for generators of types."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, cast

import msgspec

from beetle.contracts.common import Report
from beetle.contracts.envelope import PROTOCOL, WireAnswer, WireEvent, WireRequest
from beetle.contracts.errors import ERRORS, STATUS
from beetle.contracts.fields import Request
from beetle.contracts.operation import Operation

DEEPEST = 64
DIALECT = "https://json-schema.org/draft/2020-12/schema"
ABOUT = (
    "The frames of the socket. `operations` gives the request (`args` of a frame) and the report of each operation; "
    "`errors` gives the keys of `error`. On the wire a value with `contentEncoding` is a MessagePack bin; in JSON it "
    "is base64 text."
)


def request_schema(kind: type[Request]) -> dict[str, Any]:
    """The schema of one request as an object; its references are under `$defs` (JSON Schema 2020-12)."""
    return _schema(kind)


def report_schema(kind: type[Report]) -> dict[str, Any]:
    """The schema of one report, as `request_schema`."""
    return _schema(kind)


def protocol_schema(rows: Iterable[Operation]) -> dict[str, Any]:
    """One JSON Schema (draft 2020-12) of the frames, with the requests, reports and errors of these operations.

    A frame validates against its root. `operations` and `errors` are annotations: maps from a name to references into
    `$defs`. A report's field is required if every answer has it. Docstrings are left out, since a frozen build has
    none: every build of a version gives the same schema.
    """
    rows = tuple(rows)
    frames = (_request_frame(), WireAnswer, WireEvent)
    kinds = [*frames, *(kind for row in rows for kind in (*row.kinds, row.report))]
    _, parts = msgspec.json.schema_components(kinds, ref_template="#/$defs/{name}")
    for name, part in parts.items():
        part.pop("description", None)
        if part.get("additionalProperties") is not False and name not in ("WireAnswer", "WireEvent"):
            part["required"] = [
                key for key, each in part.get("properties", {}).items() if "default" in each or key in part["required"]
            ]
    for frame in frames:
        part = parts[frame.__name__]
        part["properties"]["v"] = {"const": PROTOCOL}
        part["required"] = ["v", *(key for key in part["required"] if key != "v")]
    parts["WireAnswer"]["oneOf"] = [
        {"properties": {"ok": {"const": True}}, "required": ["report"]},
        {"properties": {"ok": {"const": False}}, "required": ["error"]},
    ]
    for row in rows:
        parts[row.report.__name__]["description"] = f"The report of `{row.name}`."
    return _ecma({
        "$schema": DIALECT,
        "$id": f"urn:beetle:protocol:{PROTOCOL}",
        "title": "Beetle",
        "description": ABOUT,
        "anyOf": [_reference(frame) for frame in frames],
        "operations": {row.name: _operation(row) for row in rows},
        "errors": dict(_errors()),
        "$defs": dict(sorted(parts.items())),
    })  # fmt: skip


def _request_frame() -> type[msgspec.Struct]:
    """`WireRequest` with its arguments as a map, since undecoded bytes have no schema."""
    fields: list[Any] = [
        (each.encode_name, dict[str, Any], msgspec.field(default_factory=dict))
        if each.name == "args"
        else (each.encode_name, each.type, msgspec.NODEFAULT if each.required else each.default)
        for each in msgspec.structs.fields(WireRequest)
    ]
    return msgspec.defstruct("WireRequest", fields, kw_only=True, forbid_unknown_fields=True)


def _operation(row: Operation) -> dict[str, Any]:
    kinds = [_reference(kind) for kind in row.kinds]
    return {
        "description": row.help,
        "effect": row.effect,
        "capability": row.capability or None,
        "request": kinds[0] if len(kinds) == 1 else {"anyOf": kinds},
        "report": _reference(row.report),
    }


def _errors() -> Iterator[tuple[str, dict[str, Any]]]:
    for key, kind in ERRORS.items():
        yield (
            key,
            {
                "message": kind.template,
                "hint": kind.hint_template,
                "retryable": kind.retryable,
                "exit_code": STATUS[key].exit_code,
            },
        )


def _reference(kind: type[msgspec.Struct]) -> dict[str, str]:
    return {"$ref": f"#/$defs/{kind.__name__}"}


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
