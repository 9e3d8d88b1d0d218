"""JSON Schema of what an operation is asked with: for forms, and for whoever speaks to it without this package."""

from __future__ import annotations

from typing import Any

import msgspec

from beetle.contracts.fields import Request


def request_schema(kind: type[Request]) -> dict[str, Any]:
    """The schema of one request as an object; what it refers to stands under `$defs` (JSON Schema 2020-12)."""
    (_,), parts = msgspec.json.schema_components([kind], ref_template="#/$defs/{name}")
    return {**parts.pop(kind.__name__), "$defs": parts}
