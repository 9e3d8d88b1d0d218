"""The capability snapshot: what a profile allows of this build, as JSON whose bytes change only when that does."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, get_args

from msgspec.structs import asdict

from beetle.contracts.capabilities import APART, CAPABILITIES
from beetle.contracts.envelope import PROTOCOL
from beetle.contracts.fields import Visibility
from beetle.contracts.names import BACKEND_NAMES, PLANE_NAMES, TRANSPORT_NAMES, VIEW_NAMES, TransportName
from beetle.contracts.operations import OPERATIONS
from beetle.runtime.host.built_transports import built_transports
from beetle.runtime.host.profile import Profile

SCHEMA = "beetle.platform.capability.v1"

CALLED: frozenset[TransportName] = frozenset({"in_process", "unix_socket", "cli", "mcp_stdio"})
"""Transports that an agent's or a person's own process calls."""

SERVED: frozenset[TransportName] = frozenset({"unix_socket", "http", "grpc"})
"""Transports on which the daemon listens."""

PRIVATE: frozenset[TransportName] = frozenset({"in_process", "unix_socket", "cli"})
"""Ways whose caller the kernel vouches for; a model, a browser and a network peer are none."""

LIMITS = (
    "frame_bytes", "nesting", "query_chars", "message_content_bytes", "skill_text_bytes", "key_bytes", "commit_turns",
    "batch_requests", "host_refs_per_turn", "import_bytes",
)  # fmt: skip
"""Budgets over which a request is refused; the others clip or bound the daemon."""


def capability_snapshot(profile: Profile) -> dict[str, Any]:
    """The snapshot as plain values."""
    allowed = frozenset(profile.capabilities.allowed)
    budgets = asdict(profile.budgets)
    capabilities = [each.name for each in (*CAPABILITIES, *APART)]
    contained = {row.capability for row in OPERATIONS}
    visible = {row.name: not row.capability or row.capability in allowed for row in OPERATIONS}
    return {
        "schema": SCHEMA,
        "profile": profile.name,
        "target": profile.target,
        "role": profile.role,
        "compiled": {
            "protocol": PROTOCOL,
            "operations": sorted(visible),
            "transports": {name: name in built_transports() for name in TRANSPORT_NAMES},
            "capabilities": {name: name in contained for name in capabilities},
        },
        "memory": {
            "capabilities": {name: name in allowed for name in capabilities},
            "operations": {
                row.name: {
                    "capability": row.capability or None,
                    "effect": row.effect,
                    "batch": row.batch,
                    "visible": visible[row.name],
                }
                for row in OPERATIONS
            },
            "views": sorted(VIEW_NAMES),
            "visibilities": sorted(get_args(Visibility)),
        },
        # What may be done to memory after it was written.
        "lifecycle": {
            row.name: visible[row.name] for row in OPERATIONS if row.effect in ("write", "admin") and not row.grows
        },
        "validation": {
            "unknown_fields": "refused",
            "limits": {name: budgets[name] for name in LIMITS},
            "deadline_ms": profile.budgets.default_deadline_ms,
            "idempotency_keys": profile.budgets.idempotency_keys,
        },
        "adapter": {
            "default": profile.backends.default,
            "backends": {name: name in profile.backends.allowed for name in sorted(BACKEND_NAMES)},
        },
        "entry": {name: _entry(name, profile) for name in TRANSPORT_NAMES},
        "indexed_recall": {
            "visible": "recall" in allowed,
            "index": "fts5",
            "ranking": "bm25",
            "limit": profile.budgets.recall_limit,
            "planes": sorted(PLANE_NAMES),
        },
        "budgets": {**budgets, "memory_ceiling_mib": profile.memory_ceiling_mib},
    }


def capability_snapshot_text(profile: Profile) -> str:
    """The snapshot as it is printed and kept: sorted keys, an indent of two, a final newline."""
    return json.dumps(capability_snapshot(profile), indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def _entry(name: TransportName, profile: Profile) -> Mapping[str, bool]:
    """A transport that the profile leaves out is allowed nothing."""
    visible = name in profile.transports.allowed
    return {
        "visible": visible,
        "client_allowed": visible and name in CALLED,
        "server_allowed": visible and name in SERVED,
        "private_data_allowed": visible and name in PRIVATE,
    }
