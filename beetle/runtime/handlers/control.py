"""hello and store.verify."""

from __future__ import annotations

import os

from beetle.contracts.control import (
    HelloReport,
    HelloRequest,
    OperationSummary,
    StoreVerifyReport,
    StoreVerifyRequest,
    VerifyFinding,
)
from beetle.contracts.envelope import PROTOCOL
from beetle.contracts.operations import OPERATIONS
from beetle.memory.chain import chain_hash
from beetle.runtime import receipts
from beetle.runtime.handling import Context
from beetle.runtime.private import check_items
from beetle.store.event_log import read_head
from beetle.store.transaction import Reading
from beetle.store.verify import steps_of, verify

LIMITS = (
    "frame_bytes", "nesting", "query_chars", "message_content_bytes", "skill_text_bytes", "commit_turns",
    "batch_requests", "recall_limit", "page_limit", "transcript_page_turns", "projection_chars", "host_refs_per_turn",
    "key_bytes", "connections", "first_frame_seconds", "begun_frame_seconds", "default_deadline_ms",
)  # fmt: skip
"""Budgets that a client can meet."""


def hello(context: Context, request: HelloRequest) -> HelloReport:
    """Who answers, who is asking, what may be asked."""
    del request
    shared = context.shared
    budgets = shared.profile.budgets
    return HelloReport(
        server="beetle",
        version=shared.version,
        protocol=PROTOCOL,
        profile=shared.profile.name,
        principal=context.caller.name,
        limits={name: getattr(budgets, name) for name in LIMITS},
        operations=tuple(
            OperationSummary(name=row.name, effect=row.effect, visible=shared.catalog.visible(row, context.caller))
            for row in OPERATIONS
        ),
        pid=os.getpid(),
        uptime_s=round((context.now - shared.started_at) / 1_000_000, 3),
    )


def verify_store(context: Context, request: StoreVerifyRequest, tx: Reading) -> StoreVerifyReport:
    """Walk chains, cross-checks, index and, unless asked not to, every page; check a receipt where one is given."""
    context.progress.plan((*steps_of(request.pages), "private_items"))
    checked, findings = verify(tx, chain_hash, request.pages, context.progress)
    context.progress.step("private_items")
    checked["private_items"], closed = check_items(context, tx)
    findings.extend(closed)
    return StoreVerifyReport(
        clean=not findings,
        checked=checked,
        findings=tuple(VerifyFinding(check=f.check, subject=f.subject, problem=f.problem) for f in findings),
        event_log_head=read_head(tx).hash.hex(),
        receipt=None if request.receipt is None else receipts.check(context, tx, request.receipt),
    )
