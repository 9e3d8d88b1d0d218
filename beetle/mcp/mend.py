"""Errors as a model reads them: what was wrong, where, and how the call is to be mended."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from beetle.contracts.errors import BeetleError
from beetle.mcp.tools import Tool

META = "beetle/error"
WRONG_INPUT = ("invalid_request", "payload_too_large")
FIELDS_SHOWN = 24
STEPS_MOST = 24
FOR_A_PERSON: Mapping[str, str] = {
    "unauthorized": "tell the user: only the operator of the memory can mend this",
    "forbidden": "tell the user: this host was not granted it",
    "capability_hidden": "tell the user: this installation does not offer it",
}


def error_result(error: BeetleError, tool: Tool) -> dict[str, Any]:
    """The result of a call that failed: text for the model, the same fields for a program."""
    path = error.details.get("path")
    path = path if isinstance(path, str) else None
    hint = _hint(error, tool, path)
    lines = [f"{error.key}: {error.message}"]
    lines += [f"path: {path}"] if path else []
    lines += [f"hint: {hint}"] if hint else []
    if error.retryable:
        lines.append("The same call may succeed later.")
    told = {"key": error.key, "message": error.message, "hint": hint, "retryable": error.retryable}
    if path:
        told["path"] = path
    return {"content": [{"type": "text", "text": "\n".join(lines)}], "isError": True, "_meta": {META: told}}


def _hint(error: BeetleError, tool: Tool, path: str | None) -> str:
    if error.key in WRONG_INPUT and (path is None or path.startswith("$.args")):
        return f"{tool.name} takes {fields_at(tool.input_schema(), path or '$.args')}"
    said = FOR_A_PERSON.get(error.key, "")
    return "; ".join(each for each in (error.hint, said) if each)


def fields_at(schema: Mapping[str, Any], path: str) -> str:
    """The fields of the object that holds a path's last place, in words: name, type, whether it is required."""
    place = current = _objects(schema)
    for step in re.findall(r"\.([^.\[\]]+)|\[", path.removeprefix("$.args"))[:STEPS_MOST]:
        current = _objects(current.get("properties", {}).get(step, {}) if step else current.get("items", {}))
        if current.get("properties"):
            place = current
    required = set(place.get("required", ()))
    fields = [
        f"{name} ({_kind(each)}{', required' if name in required else ''})"
        for name, each in list(place.get("properties", {}).items())[:FIELDS_SHOWN]
    ]
    return ", ".join(fields) or "no arguments"


def _objects(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Of alternatives the one that has parts; null is none."""
    for each in schema.get("anyOf", ()):
        if each.get("properties") or each.get("items"):
            return each
    return schema


def _kind(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return "one of " + ", ".join(str(each) for each in schema["enum"])
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_kind(each) for each in schema["anyOf"] if each.get("type") != "null"))
    if schema.get("format") == "date-time":
        return "RFC 3339 time with a zone"
    if schema.get("type") == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    return str(schema.get("type", "any"))
