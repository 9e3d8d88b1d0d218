"""The capability snapshot: what a profile allows of this build, as JSON whose bytes change only when that does."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, get_args

from msgspec.structs import asdict

from beetle.contracts.capabilities import APART, CAPABILITIES
from beetle.contracts.envelope import PROTOCOL
from beetle.contracts.fields import ViewName, Visibility
from beetle.contracts.memory import Plane
from beetle.contracts.operations import OPERATIONS, Operation
from beetle.runtime.profile import Profile, Transport

SCHEMA = "beetle.platform.capability.v1"

CALLED: frozenset[Transport] = frozenset({"in_process", "unix_socket", "cli", "mcp_stdio"})
"""Ways in which an agent's or a person's own process reaches memory."""

SERVED: frozenset[Transport] = frozenset({"unix_socket", "http", "grpc"})
"""Ways in which the daemon itself waits for callers."""

PRIVATE: frozenset[Transport] = frozenset({"in_process", "unix_socket", "cli"})
"""Ways whose caller the kernel vouches for; a model, a browser and a network peer are none."""

LIMITS = (
    "frame_bytes", "nesting", "query_chars", "message_content_bytes", "skill_text_bytes", "key_bytes", "commit_turns",
    "batch_requests", "host_refs_per_turn", "import_bytes",
)  # fmt: skip
"""Budgets over which a request is refused; the others clip or bound the daemon."""


def capability_snapshot(profile: Profile) -> dict[str, Any]:
    """The snapshot as plain values."""
    allowed = frozenset(profile.capabilities.allowed)
    return {
        "schema": SCHEMA,
        "profile": profile.name,
        "target": profile.target,
        "role": profile.role,
        "compiled": _compiled(),
        "memory": _memory(allowed),
        "lifecycle": _lifecycle(allowed),
        "validation": _validation(profile),
        "adapter": {
            "default": profile.backends.default,
            "backends": {
                name: name in profile.backends.allowed for name in ("embedded", "file", "in-memory", "sqlite")
            },
        },
        "entry": {name: _entry(name, profile) for name in get_args(Transport)},
        "indexed_recall": _indexed_recall(profile, allowed),
        "budgets": {**asdict(profile.budgets), "memory_ceiling_mib": profile.memory_ceiling_mib},
    }


def snapshot_text(profile: Profile) -> str:
    """The snapshot as it is printed and kept: sorted keys, an indent of two, a final newline."""
    return json.dumps(capability_snapshot(profile), indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def _compiled() -> dict[str, Any]:
    return {
        "protocol": PROTOCOL,
        "operations": sorted(row.name for row in OPERATIONS),
        "transports": sorted(_built()),
        "capabilities": {each.name: _has(each.name) for each in (*CAPABILITIES, *APART)},
    }


def _built() -> frozenset[str]:
    return frozenset(name for row in OPERATIONS for name in row.exposed)


def _has(capability: str) -> bool:
    return any(row.capability == capability for row in OPERATIONS)


def _memory(allowed: frozenset[str]) -> dict[str, Any]:
    return {
        "capabilities": {each.name: each.name in allowed for each in (*CAPABILITIES, *APART)},
        "operations": {row.name: _operation(row, allowed) for row in OPERATIONS},
        "views": sorted(get_args(ViewName)),
        "visibilities": sorted(get_args(Visibility)),
    }


def _operation(row: Operation, allowed: frozenset[str]) -> dict[str, Any]:
    return {
        "capability": row.capability or None,
        "effect": row.effect,
        "batch": row.batch,
        "visible": not row.capability or row.capability in allowed,
    }


def _lifecycle(allowed: frozenset[str]) -> dict[str, Any]:
    """What may be done to memory after it was written, by operation."""
    return {
        row.name: not row.capability or row.capability in allowed
        for row in OPERATIONS
        if row.effect in ("write", "admin") and not row.grows
    }


def _validation(profile: Profile) -> dict[str, Any]:
    budgets = asdict(profile.budgets)
    return {
        "unknown_fields": "refused",
        "limits": {name: budgets[name] for name in LIMITS},
        "deadline_ms": profile.budgets.default_deadline_ms,
        "idempotency_keys": profile.budgets.idempotency_keys,
    }


def _entry(name: Transport, profile: Profile) -> Mapping[str, bool]:
    """A transport that the profile leaves out is allowed nothing."""
    visible = name in profile.transports.allowed
    return {
        "visible": visible,
        "client_allowed": visible and name in CALLED,
        "server_allowed": visible and name in SERVED,
        "private_data_allowed": visible and name in PRIVATE,
    }


def _indexed_recall(profile: Profile, allowed: frozenset[str]) -> dict[str, Any]:
    return {
        "visible": "recall" in allowed,
        "index": "fts5",
        "ranking": "bm25",
        "limit": profile.budgets.recall_limit,
        "planes": sorted(get_args(Plane)),
    }
