"""Closed sets of names that several parts share: each is written here and nowhere else."""

from __future__ import annotations

from typing import Literal, get_args

PlaneName = Literal["evidence", "procedural", "long_term", "thoughts", "chunks", "agent_skill"]
"""What a request may name as a plane."""
PLANE_NAMES: tuple[PlaneName, ...] = get_args(PlaneName)

INDEX_CODES: dict[str, int] = {
    "evidence": 0, "procedural": 1, "long_term": 2, "long_term_past": 3, "thoughts": 4,
    "chunks": 5,
}  # fmt: skip
"""The last four bits of a row's number in the recall index: they stand in every store, and never change.

`long_term` holds the text of each current fact by the fact's key; `long_term_past` the texts that are current no more,
each by its own."""

BackendName = Literal["in-memory", "sqlite", "file", "embedded"]
"""Ways to open the one schema."""
BACKEND_NAMES: tuple[BackendName, ...] = get_args(BackendName)

TransportName = Literal["in_process", "unix_socket", "cli", "mcp_stdio", "http", "grpc"]
"""The transports by which a request arrives."""
TRANSPORT_NAMES: tuple[TransportName, ...] = get_args(TransportName)

ViewName = Literal["raw_owner", "model_context", "host_ui", "operator_audit", "export"]
"""Through what a report is seen; a caller's own order of them says which it gets without asking."""
VIEW_NAMES: tuple[ViewName, ...] = get_args(ViewName)

TopicName = Literal["lifecycle", "transcript", "skill", "chain", "chunk", "job", "device", "replication"]
"""What events can be followed by."""
TOPIC_NAMES: tuple[TopicName, ...] = get_args(TopicName)

SignalName = Literal[
    "lexical", "neighbour", "session", "phrase", "speaker", "date", "current_conversation", "title", "first_person",
    "time_expression", "importance", "confidence", "referenced",
]  # fmt: skip
"""What may rank a hit of recall, and stands in its `why`."""
SIGNAL_NAMES: tuple[SignalName, ...] = get_args(SignalName)

CheckName = Literal[
    "schema", "event_log", "event_log_head", "event_places", "committed_turns", "seals", "evidence", "derived_refs",
    "procedural", "long_term", "thoughts", "chunks", "toc", "candidates", "proposals", "tool_registries",
    "skill_registry", "tool_experience", "private", "devices", "jobs", "recall_index", "pages", "foreign_keys",
    "pending_erasures", "chain_mirrors", "leftovers", "idempotency", "remembered_conversations",
]  # fmt: skip
"""The checks of a store, by which findings are told. What each looks at: `runtime.areas.checks`."""
