"""memory.classify: the intent of a query."""

from __future__ import annotations

from collections.abc import Mapping

from beetle.contracts.codec import to_us
from beetle.contracts.routing import MemoryClassifyReport, MemoryClassifyRequest
from beetle.domain.intent import classify
from beetle.runtime.pipeline.handlers import Handler, Plain
from beetle.runtime.pipeline.invocation import Invocation


def classify_query(invocation: Invocation, request: MemoryClassifyRequest) -> MemoryClassifyReport:
    """By the words of the query alone: nothing is read."""
    asked_at = invocation.now if request.asked_at is None else to_us(request.asked_at)
    found = classify(request.query, asked_at, request.timeout_ms)
    return MemoryClassifyReport(
        intent=found.intent,
        confidence=found.confidence,
        reason=found.reason,
        matched_keywords=found.words,
        lookback_ms=found.lookback_ms,
    )


HANDLERS: Mapping[str, Handler] = {"memory.classify": Plain(classify_query)}
