"""memory.recover and memory.close."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from beetle.contracts.common import ModeArg, ModeInput, Report
from beetle.contracts.fields import NO_CONTROL, Open, OpenText, Piece, Request
from beetle.contracts.operation import MEMORY, Operation, Tool

Mode = Literal["normal", "maintenance", "read_only", "safe", "closing"]
"""How a runtime works now, from what refuses nothing to what refuses most."""

RecoverTrigger = Literal["operator_requested", "scheduled", "after_crash", "after_restore"]
StepName = Literal[
    "checkpoint", "pending_erasures", "leftovers", "recall_index", "transcripts", "events", "captured_turns",
    "table_of_contents", "stuck_jobs", "idempotency_keys", "remembered_conversations", "optimize", "vacuum",
]  # fmt: skip
StepReason = Literal[
    "in_memory", "does_not_pay", "held_by_a_reader", "replicated", "damaged_records_left_out", "no_room", "stopped",
    "refused",
]  # fmt: skip
"""Why a step did nothing or not all of it; `refused` when an error stopped it, whose key stands beside it."""


class MemoryRecoverRequest(Request, frozen=True, kw_only=True):
    """Run the recovery steps over the whole store; a failed step is reported, and the others still run."""

    trigger: Annotated[RecoverTrigger, Meta(description="what triggers the recovery")] = "operator_requested"
    mode_input: ModeArg = ModeInput()


class RecoverStep(Piece, frozen=True, kw_only=True):
    """What one step did. `count` is what it mended or moved, `left` what it found and could not mend, `ms` how long it
    took in milliseconds. `error` is the key of the error that stopped it."""

    step: Open[StepName]
    outcome: Open[Literal["done", "nothing_to_do", "failed"]]
    count: Open[int] = 0
    left: Open[int] = 0
    reason: Open[StepReason | None] = None
    error: Open[str | None] = None
    ms: Open[float] = 0.0


class MemoryRecoverReport(Report, frozen=True, kw_only=True):
    """The steps in the order they ran. `recovered` when none failed and none left anything behind."""

    trigger: Open[RecoverTrigger]
    mode: Open[Mode]
    recovered: Open[bool]
    steps: Open[tuple[RecoverStep, ...]]


class MemoryCloseRequest(Request, frozen=True, kw_only=True):
    """Finish the queued writes, checkpoint the write-ahead log, answer, and stop the daemon or runtime."""

    reason: Annotated[
        str, Meta(min_length=1, max_length=256, pattern=NO_CONTROL, description="reason for closing, for the log")
    ] = "operator_requested"


class MemoryCloseReport(Report, frozen=True, kw_only=True):
    """`already` when it was closing or closed before: nothing was done again. `drained` counts the writes that were
    waiting, `wal_bytes` what is left in the write-ahead log, `pending_erasures` what the next opening finishes."""

    reason: OpenText[str]
    already: Open[bool]
    drained: Open[int]
    checkpointed: Open[bool]
    wal_bytes: Open[int]
    pending_erasures: Open[int]
    event_log_rows: Open[int]


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "memory.recover", "recover", MemoryRecoverRequest, MemoryRecoverReport, "admin", "recover", MEMORY,
        ("memory", "recover"),
        "run the recovery steps over the whole store; a failed step is reported, and the others still run",
        batch=False, grows=False, deadline_ms=3_600_000,
        shell=("beetle memory recover", "beetle memory recover --trigger after_crash"),
        progress=True,
        destructive=True, idempotent=False,
    ),
    Operation(
        "memory.close", "close_runtime", MemoryCloseRequest, MemoryCloseReport, "admin", "close", MEMORY,
        ("memory", "close"),
        "finish the queued writes, checkpoint the write-ahead log, answer, and stop the daemon or runtime",
        batch=False, grows=False,
        example={"reason": "the box is being moved"},
        shell=("beetle memory close --reason 'the box is being moved'",),
        tool=Tool(none="it would end the daemon under everybody else"),
    ),
)  # fmt: skip
