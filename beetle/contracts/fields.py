"""Field markers: how sensitive a report field is, and which budget bounds a request field.

Every report field carries one sensitivity. The redaction gate (`runtime/views.py`) reads them; a field without one
fails a test, so that a new field cannot leak by omission.

| marker | who sees it |
|---|---|
| `Open` | every caller that may call the operation: ids, kinds, counts, times, scores |
| `OpenText` | as `Open`: words of a caller's own, such as a label |
| `Content` | every view but operator_audit: text of memory that its own plane has already judged visible |
| `Evidence` | decided per message or item by the visibility and state that stand beside it in the same struct |
| `OperatorOnly` | operators alone: paths, process ids, sizes of the machine |
| `Secret` | the one answer that mints it; absent from stored idempotency reports, logs and repeats |

The first report of an idempotency key is kept without `Content`, `Evidence`, `Secret` and `OpenText`: a repeat takes
them from the records as they are then (`runtime/pipeline/first_reports.py`).
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, TypeVar

from msgspec import Meta, Struct

T = TypeVar("T")

Open = Annotated[T, Meta(extra={"sensitivity": "open"})]
OpenText = Annotated[T, Meta(extra={"sensitivity": "open", "said": True})]
Content = Annotated[T, Meta(extra={"sensitivity": "content"})]
Evidence = Annotated[T, Meta(extra={"sensitivity": "evidence"})]
OperatorOnly = Annotated[T, Meta(extra={"sensitivity": "operator"})]
Secret = Annotated[T, Meta(extra={"sensitivity": "secret"})]

NONBLANK = r"\S"
NO_CONTROL = r"^[^\x00-\x1f\x7f-\x9f]*\Z"

Id = Annotated[str, Meta(min_length=1, max_length=256, pattern=NO_CONTROL)]
"""1 to 256 characters, no control characters; kept as given, never normalised."""

Time = Annotated[datetime, Meta(tz=True)]
"""RFC 3339 with a zone; stored in microseconds since the epoch, answered in UTC."""

Label = Annotated[str, Meta(max_length=256, pattern=NO_CONTROL)]

Visibility = Literal["shared", "private", "soul", "backend", "operator"]
Sensitivity = Literal["open", "content", "evidence", "operator", "secret"]


class Request(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Arguments of one operation. Unknown fields are refused."""


class Part(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A piece of a request."""


class Piece(Struct, frozen=True, kw_only=True):
    """A piece of a report. A client reads past fields that it does not know."""


def budgeted(name: str) -> dict[str, Any]:
    """`Meta.extra` of a request field whose size a budget bounds: over it is `payload_too_large`."""
    return {"budget": name}


def clipped(name: str) -> dict[str, Any]:
    """`Meta.extra` of a request number that a budget lowers, which the report says in `profile_budget_applied`."""
    return {"clip": name}
