"""memory.classify: what kind of answer a query asks for."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from beetle.contracts.common import Report
from beetle.contracts.fields import NONBLANK, Open, Request, Time, budgeted
from beetle.contracts.operation import MEMORY, RPC, Operation

Intent = Literal["explore", "answer", "locate", "time_boxed"]
"""An overview of themes; a fact with its evidence; one exact place; the best that can be had in a given time."""


class MemoryClassifyRequest(Request, frozen=True, kw_only=True):
    """Classify a query: the kind of answer that it asks for, and the period."""

    query: Annotated[str, Meta(pattern=NONBLANK, extra=budgeted("query_chars"), description="the query")]
    timeout_ms: (
        Annotated[int, Meta(ge=1, le=86_400_000, description="how long the answer may take: it is time_boxed then")]
        | None
    ) = None
    asked_at: (
        Annotated[Time, Meta(description="when the query was asked: what `last week` in it counts from; default: now")]
        | None
    ) = None


class MemoryClassifyReport(Report, frozen=True, kw_only=True):
    """The intent and the words of the query that show it. `confidence` is 0.5 where no word does, then it is an answer.

    `lookback_ms` is how far back from `asked_at` the time begins of which the query speaks, null where it names none.
    """

    intent: Open[Intent]
    confidence: Open[float]
    reason: Open[str]
    matched_keywords: Open[tuple[str, ...]] = ()
    lookback_ms: Open[int | None] = None


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "memory.classify", "classify_query", MemoryClassifyRequest, MemoryClassifyReport, "read", "recall", MEMORY,
        ("memory", "classify"),
        "classify a query: the kind of answer that it asks for, and the period",
        word="query",
        example={"query": "what were we talking about last week?"},
        exposed=RPC,
    ),
)  # fmt: skip
