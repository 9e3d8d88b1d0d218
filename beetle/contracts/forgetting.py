"""memory.forget: a conversation, a subject, a query or a whole space, in every plane."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from beetle.contracts.common import Conversation, Report
from beetle.contracts.fields import NONBLANK, Id, Open, Piece, Request, budgeted
from beetle.contracts.operation import MEMORY, Operation, Tool

ForgetReason = Literal["cited_elsewhere", "weaker_authority", "policy", "unreadable", "changed"]
"""Why something stays: it rests on other evidence too; it is the word of a stronger authority; it is a policy; it is
sealed, and cannot be opened to see what it says; it was changed while the erasure ran."""


ForgetWords = Annotated[
    str,
    Meta(
        min_length=1,
        pattern=NONBLANK,
        extra=budgeted("query_chars"),
        description="everything that holds all of these words, in whatever plane",
    ),
]


class MemoryForgetRequest(Request, frozen=True, kw_only=True):
    """Forget a conversation, a subject, a query or the whole space: a dry run first, then its token."""

    conversation: Annotated[Conversation, Meta(description="every turn of this conversation")] | None = None
    subject: Annotated[Id, Meta(description="turns that a speaker of this name, or this subject id, takes part in")] | (
        None
    ) = None
    query: ForgetWords | None = None
    whole_space: Annotated[bool, Meta(description="everything that the space holds")] = False
    dry_run: Annotated[bool, Meta(description="report what would go and what stays; change nothing")] = False
    token: Annotated[str, Meta(min_length=1, max_length=256, description="token of the dry run")] | None = None

    def __post_init__(self) -> None:
        named = [self.conversation, self.subject, self.query, self.whole_space or None]
        if sum(each is not None for each in named) != 1:
            raise ValueError("give exactly one of conversation, subject, query and whole_space")
        if self.dry_run == (self.token is not None):
            raise ValueError("give dry_run first, then the token that it answers")


class RetainedRecords(Piece, frozen=True, kw_only=True):
    """What stays of one plane, how many records, and why; `refs` are some of them."""

    plane: Open[str]
    reason: Open[ForgetReason]
    count: Open[int]
    refs: Open[tuple[str, ...]] = ()


class MemoryForgetReport(Report, frozen=True, kw_only=True):
    """`counts` are the records that went, or in a dry run would, by what they are called: every one of them is counted.
    `refs` are the facts and skills among them, and end at their budget. `hidden` counts the records that an operator
    may not see and that would go: then there is no token. `erasure` and `replica_horizon`: see `transcript.lifecycle`.
    """

    dry_run: Open[bool]
    changed: Open[bool]
    counts: Open[dict[str, int]]
    stays: Open[tuple[RetainedRecords, ...]] = ()
    refs: Open[tuple[str, ...]] = ()
    hidden: Open[int] = 0
    token: Open[str | None] = None
    erasure: Open[Literal["done", "pending"] | None] = None
    replica_horizon: Open[str | None] = None
    replicated_until: Open[str | None] = None
    copies_until: Open[str | None] = None
    audit_event_id: Open[int | None] = None
    receipt: Open[str | None] = None


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "memory.forget", "forget", MemoryForgetRequest, MemoryForgetReport, "write", "forget", MEMORY,
        ("memory", "forget"),
        "forget a conversation, a subject, a query or the whole space: a dry run first, then its token",
        batch=False, grows=False, deadline_ms=3_600_000, word="query",
        example={"query": "spare key", "dry_run": True},
        shell=(
            "beetle memory forget 'spare key'",
            "beetle memory forget --conversation telegram/42 --yes",
            "beetle memory forget --subject Rita --dry-run",
        ),
        progress=True,
        destructive=True,
        tool=Tool(place=5),
    ),
)  # fmt: skip
