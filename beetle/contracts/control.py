"""hello, batch, subscribe, unsubscribe, store.verify."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Raw, field

from beetle.contracts.common import Report
from beetle.contracts.fields import Id, Open, OperatorOnly, Part, Piece, Request, budgeted
from beetle.contracts.names import TOPIC_NAMES, TopicName
from beetle.contracts.operation import ANY, CARE, SOCKET, Operation, Tool

TOPIC_CAPABILITIES: dict[TopicName, str] = {
    "lifecycle": "inspect",
    "transcript": "transcript",
    "skill": "skill",
    "chain": "chain",
    "chunk": "chunk",
    "job": "scheduler",
    "device": "device",
    "replication": "replication",
}
"""What a caller needs to follow a topic."""


class HelloRequest(Request, frozen=True, kw_only=True):
    """Report the server, the caller and the available operations."""


class OperationSummary(Piece, frozen=True, kw_only=True):
    name: Open[str]
    effect: Open[str]
    visible: Open[bool]


class HelloReport(Report, frozen=True, kw_only=True):
    """`limits` maps a budget's name to its value (WIRE: limits)."""

    server: Open[str]
    version: Open[str]
    protocol: Open[int]
    profile: Open[str]
    principal: Open[str]
    limits: Open[dict[str, int]]
    operations: Open[tuple[OperationSummary, ...]]
    pid: Open[int]
    uptime_s: Open[float]


class BatchItem(Part, frozen=True, kw_only=True):
    op: Annotated[str, Meta(min_length=1, max_length=128, description="the operation's name")]
    args: Raw = field(default_factory=lambda: Raw(b"\x80"))  # a plain default would stand in no JSON schema


class BatchRequest(Request, frozen=True, kw_only=True):
    """Run several operations in order in one transaction: all of them or none."""

    requests: Annotated[
        tuple[BatchItem, ...],
        Meta(min_length=1, extra=budgeted("batch_requests"), description="the operations, in the order they run"),
    ]


class BatchReport(Report, frozen=True, kw_only=True):
    """The reports in the order of the requests, each already shaped by the caller's view."""

    reports: Open[tuple[dict[str, Any], ...] | None]


class SubscribeRequest(Request, frozen=True, kw_only=True):
    """Follow events of this scope: frames with ids and kinds until `unsubscribe` or the connection ends."""

    topics: Annotated[
        tuple[TopicName, ...], Meta(min_length=1, max_length=len(TOPIC_NAMES), description="topics to follow")
    ]


class SubscribeReport(Report, frozen=True, kw_only=True):
    """`sub` names the subscription in its event frames and in unsubscribe."""

    sub: Open[str]
    topics: Open[tuple[str, ...]]


class UnsubscribeRequest(Request, frozen=True, kw_only=True):
    """End one subscription of this connection."""

    sub: Annotated[Id, Meta(description="the subscription's id")]


class UnsubscribeReport(Report, frozen=True, kw_only=True):
    """The subscription that has ended; no frame of it follows this answer."""

    sub: Open[str]


class StoreVerifyRequest(Request, frozen=True, kw_only=True):
    """Walk the event-log chain, the derived refs, the recall index and the pages of the store."""

    pages: Annotated[bool, Meta(description="also read every page (SQLite's integrity_check)")] = True
    receipt: Annotated[str, Meta(max_length=4096, description="also check this receipt against the store")] | None = (
        None
    )


class VerifyFinding(Piece, frozen=True, kw_only=True):
    """`known`: the last `store.repair` has named it already, as gone or altered."""

    check: Open[str]
    subject: Open[str]
    problem: Open[str]
    known: Open[bool] = False


ReceiptFault = Literal[
    "malformed", "unknown_version", "other_store", "unsigned", "wrong_signature", "other_device",
    "former_device", "event_missing", "event_changed", "event_differs",
]  # fmt: skip
"""Why a receipt proves nothing here: it is no whole receipt; of a version that this build does not know; of another
store; nobody signed it; what it says is not what was signed; another device signed it; a former identity of
this store signed it; the event log has no such row; has another one in its place; has it with other words about it."""


class ReceiptCheck(Piece, frozen=True, kw_only=True):
    """Whether a receipt is this store's and its event is in the log as it was; what it says of itself otherwise.

    `valid` when there are no `reasons`. `device` is the fingerprint of the key that signed it.
    """

    valid: Open[bool]
    reasons: Open[tuple[ReceiptFault, ...]]
    signed: Open[bool] = False
    kind: Open[str | None] = None
    event: Open[int | None] = None
    at: Open[str | None] = None
    device: Open[str | None] = None


class StoreVerifyReport(Report, frozen=True, kw_only=True):
    """`clean` when no check found anything; `checked` counts what each check looked at.

    `receipt` answers the request's receipt, and has no say in `clean`. `unsigned_events` counts the event log's last
    rows, which the device identity has not signed yet; null where no signature can be relied on.
    """

    clean: Open[bool]
    checked: Open[dict[str, int]]
    findings: Open[tuple[VerifyFinding, ...]]
    event_log_head: Open[str]
    unsigned_events: OperatorOnly[int | None] = None
    receipt: Open[ReceiptCheck | None] = None


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "store.verify", "verify_store", StoreVerifyRequest, StoreVerifyReport, "read", "inspect", CARE, ("verify",),
        "walk the event-log chain, the derived refs, the recall index and the pages of the store",
        batch=False, heavy=True, deadline_ms=3_600_000,
        shell=("beetle verify", "beetle verify --receipt @receipt.txt"),
        progress=True,
    ),
    Operation(
        "hello", "hello", HelloRequest, HelloReport, "read", "", ANY, ("hello",),
        "report the server, the caller and the available operations",
        batch=False,
        tool=Tool(none="for programs: a model has memory_capabilities"),
    ),
    Operation(
        "batch", "batch", BatchRequest, BatchReport, "write", "", ANY, (),
        "run several operations in order in one transaction: all of them or none",
        batch=False,
        example={"requests": [{"op": "hello", "args": {}}]},
        destructive=True, idempotent=False,
        tool=Tool(none="for programs: a model makes one call a step"),
    ),
    Operation(
        "subscribe", "subscribe", SubscribeRequest, SubscribeReport, "stream", "", ANY, (),
        "follow events of this scope: frames with ids and kinds until `unsubscribe` or the connection ends",
        batch=False, exposed=SOCKET,
        example={"topics": ["transcript"]},
    ),
    Operation(
        "unsubscribe", "unsubscribe", UnsubscribeRequest, UnsubscribeReport, "stream", "", ANY, (),
        "end one subscription of this connection",
        batch=False, exposed=SOCKET,
        example={"sub": "s1"},
    ),
)  # fmt: skip
