"""Every list of the table as a case with more than one page, and a store that holds enough for all of them."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path
from typing import Any, NamedTuple

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from beetle import MemoryRuntime
from beetle.contracts.common import WireScope
from beetle.contracts.operations import BY_NAME, OPERATIONS
from beetle.open import Embedded, Opened, open_store
from beetle.runtime.host.caller import Caller
from beetle.runtime.host.dependencies import Dependencies
from beetle.runtime.host.principals import OPERATOR_CAPABILITIES
from tests.sdk.skill_folders import write_skill as write_agent_skill
from tests.store.conftest import CONVERSATION, PROFILE, commit, turn, write_skill

OTHER = {"channel_id": "local", "conversation_id": "c2"}
THIRD = {"channel_id": "local", "conversation_id": "c3"}
AT_LEAST = 3
"""Rows that every list has, so that it has a page behind the second one."""

SCOPE = {"owner_id": "owner-a", "agent_id": "agent-a", "channel": "local", "chat_id": "chat"}
HERE = WireScope(**SCOPE)
ELSEWHERE = {"owner_id": "owner-b", "agent_id": "agent-b", "channel": "mail", "chat_id": "c9", "conversation_id": "c2"}
"""Another value for each part of a scope. Every list has pages there too."""

OWNER = Caller(
    name="embedded:test",
    kind="embedded",
    capabilities=OPERATOR_CAPABILITIES | {"transcript.raw", "private.read"},
    views=("host_ui", "model_context", "operator_audit", "export", "raw_owner"),
    transport="in_process",
)
"""Who opened the store, bound to no owner and no agent, so that it can name any."""


YEAR_MS = 31_556_952_000
NOW_MS = 2 * 10**12
"""After everything that is captured here: in 2033."""


class Listed(NamedTuple):
    """A list: the field with its rows, a request that has more than one page, another value for each other field."""

    rows: str
    args: dict[str, Any]
    others: dict[str, Any]


LISTS: dict[str, Listed] = {
    # Both chats stand for the third conversation.
    "memory.replay": Listed("turns", {"chat_id": "chat"}, {"chat_id": "c3"}),
    "skill.list": Listed(
        "runtime_skills",
        {"query": "skill"},
        {"query": "work", "include_disabled": False, "include_retired": True, "sort": "updated", "descending": True},
    ),
    "agent_skill.list": Listed("skills", {"query": "merge"}, {"query": "rotate"}),
    "tool_registry.list": Listed("registries", {}, {}),
    "skill_registry.list": Listed("skills", {}, {"chain_key": "work"}),
    "skill_registry.search": Listed(
        "skills",
        {"tags_any": ["paged"]},
        {
            "chain_key": "work",
            "text": "do",
            "skill_ids": [f"uploaded-{each}" for each in range(3)],
            "names": [f"Uploaded {each}" for each in range(3)],
            "tags_any": ["PAGED", "x"],
            "triggers_any": ["page"],
            "uploaded_by_agent_ids": ["agent-main"],
            "uploaded_by_agent_names": ["agent-main"],
            "statuses": ["active"],
            "formats": ["markdown"],
            "schema_versions": [1],
            "since": "1999-01-01T00:00:00Z",
            "until": "2999-01-01T00:00:00Z",
        },
    ),
    "skill_registry.versions": Listed(
        "versions", {"skill_id": "uploaded-0"}, {"skill_id": "uploaded-1", "chain_key": "work"}
    ),
    "chain.list": Listed("chains", {}, {}),
    "chain.export": Listed("thoughts", {"chain_key": "paged-0"}, {"chain_key": "paged-1"}),
    "chain.agents": Listed("agents", {"chain_key": "paged-0"}, {"chain_key": "paged-1"}),
    "chain.agent_registry": Listed("agents", {"chain_key": "paged-0"}, {"chain_key": "paged-1"}),
    "chunk.list": Listed(
        "chunks",
        {},
        {
            "conversation_id": "paged-0",
            "tags": ["paged"],
            "type": "note",
            "created_after": "1999-01-01T00:00:00Z",
            "created_before": "2999-01-01T00:00:00Z",
            "state": "all",
            "changed_since": 0,
        },
    ),
    "chunk.stats": Listed("groups", {"by": "conversation"}, {"by": "tag"}),
    "long_term.list": Listed(
        "records", {"view": "host_ui"}, {"query": "fact", "kind": "fact", "state": "all", "view": "raw_owner"}
    ),
    "governance.list": Listed(
        "candidates",
        {"what": "candidates", "view": "host_ui"},
        {"what": "all", "reason": "needs_assertion", "view": "raw_owner"},
    ),
    "host_key.list": Listed("host_keys", {}, {"host_kind": "any-host", "include_revoked": False}),
    "event.range": Listed(
        "events",
        {"from_timestamp_ms": 0, "to_timestamp_ms": NOW_MS},
        {"from_timestamp_ms": 1, "to_timestamp_ms": NOW_MS + 1},
    ),
    "toc.root": Listed("nodes", {}, {}),
    "private.list": Listed("items", {}, {"plane": "private_garden"}),
    "transcript.replay": Listed(
        "turns",
        {"conversation": CONVERSATION, "view": "host_ui"},
        {"conversation": OTHER, "view": "model_context"},
    ),
    "transcript.export": Listed(
        "turns",
        {"conversation": CONVERSATION, "view": "export"},
        {"conversation": OTHER, "include_private": True},
    ),
    "transcript.conversations": Listed(
        "conversations", {}, {"query": "c", "since": "1999-01-01T00:00:00Z", "until": "2999-01-01T00:00:00Z"}
    ),
    "transcript.repair": Listed("issues", {}, {"conversation": CONVERSATION}),
    "evolve.list": Listed("proposals", {}, {"state": "all", "view": "model_context"}),
    "device.list": Listed("devices", {}, {"state": "active"}),
    "event_log.read": Listed(
        "rows",
        {},
        {
            "after": 1,
            "before": 10**6,
            "since": "1999-01-01T00:00:00Z",
            "until": "2999-01-01T00:00:00Z",
            "topics": ["transcript", "skill", "memory"],
            "operation": "memory.write",
            "principal": OWNER.name,
            "newest_first": True,
        },
    ),
    "snapshot.list": Listed("snapshots", {}, {}),
}
ONE_VALUE = {
    ("transcript.export", "view"),
    ("event_log.read", "chain"),
    # No agent that uploads here has an owner.
    ("skill_registry.search", "uploaded_by_agent_owners"),
}
"""Fields that can have one value only, or ask for another list: tests/adversary/test_audit.py reads the chain."""

PAGED = [row.name for row in OPERATIONS if any("cursor" in kind.__struct_fields__ for kind in row.kinds)]
SEEN_AS_ITS_CALLER_SEES = [
    name for name in PAGED if BY_NAME[name].view == "caller" and "view" not in LISTS.get(name, Listed("", {}, {})).args
]
"""Lists whose request names no view: what they show is seen through the caller's own."""


def open_filled(folder: Path) -> MemoryRuntime:
    """A runtime of `OWNER` over a new store in `folder`, with enough in it for every list in every scope."""
    mount = folder / "skills"
    for each in range(AT_LEAST):
        write_agent_skill(mount / f"pdf-{each}", f"pdf-{each}", "Rotate and merge PDF pages.")
    opened = open_store(str(folder / "store.db"), PROFILE, dependencies=Dependencies(skill_dirs=(str(mount),)))
    for owner in ("owner-a", "owner-b"):
        _fill(_within(opened, owner_id=owner))
        _fill_snapshots_and_devices(_within(opened, owner_id=owner))
    for part in ("agent_id", "channel"):
        # A chat is remembered by agent and channel: the ledger of the same chat is to be there under others too.
        commit(_within(opened, **{part: ELSEWHERE[part]}), turn(f"of {part}", "one more"), conversation=THIRD)
    memory = asked_by(opened, OWNER)
    memory.list_agent_skills()  # so that from now on each scan says of every skill whether it changed
    return memory


def asked_by(opened: Opened, caller: Caller) -> MemoryRuntime:
    """The same store, for another caller."""
    return MemoryRuntime(Embedded(opened, caller, HERE))


def store_of(memory: MemoryRuntime) -> Opened:
    """What a runtime has opened."""
    return memory._opened._opened


def _within(opened: Opened, **parts: str) -> MemoryRuntime:
    return MemoryRuntime(Embedded(opened, OWNER, WireScope(**{**SCOPE, **parts})))


def _fill(memory: MemoryRuntime) -> None:
    """At least three of everything that a space lists; its chat stands for the third conversation."""
    for where in (CONVERSATION, OTHER, THIRD):
        commit(memory, *(turn(f"t{each}", f"number {each}") for each in range(5)), conversation=where)
    for each in range(AT_LEAST):
        citations = [f"evidence:local/c1/gone-{each}", f"evidence:local/c2/gone-{each}"]
        write_skill(memory, f"skill-{each}", "the way of it", source="import", citations=citations)
        tool = {"tool_id": "valve", "title": "Open a valve", "schema_fingerprint": "v1"}
        memory.upsert_agent_tool_registry(registry_id=f"tools-{each}", fingerprint="f1", tools=[tool])
        head = f"name: Uploaded {each}\ndescription: d\ntags: [paged]\ntriggers: [page]"
        for other in range(AT_LEAST):
            memory.append_thought(
                chain_key=f"paged-{each}", agent_id=f"agent-{other}", thought_type="Plan", content=f"step {other}"
            )
        for other in range(AT_LEAST):
            tags = ["paged", f"paged-{other}"]
            memory.create_chunk(content=f"note {other}", conversation_id=f"paged-{each}", tags=tags, type="note")
        for _ in range(AT_LEAST):
            memory.upload_skill(agent_id="agent-main", content=f"---\n{head}\n---\ndo it\n")
    for each in range(AT_LEAST):
        key = Ed25519PrivateKey.from_private_bytes(bytes([each]) * 32).public_key().public_bytes_raw()
        memory.enroll_host_key(host_pubkey_b64=b64encode(key).decode(), label=f"host {each}", host_kind="any-host")
        at = 10**12 + each * YEAR_MS
        event = {"event_id": f"event-{each}", "session_id": "s", "timestamp_ms": at, "event_type": "user_message"}
        memory.ingest_event(event={**event, "text": f"the year {each}"})
    memory.rebuild_toc()
    candidates = [
        {"candidate_id": f"{target}-{each}", "authority": "user_asserted", "target": target, "privacy": privacy,
         "content": f"fact {each}", "topic": f"topic {each}"}
        for each in range(AT_LEAST)
        for target, privacy in (("long_term", "shared_with_subject"), ("private_garden", "subject_private"))
    ]  # fmt: skip
    waiting = [
        {**each, "authority": "assistant_claimed", "topic": f"claim of {each['topic']}"}
        for each in candidates
        if each["target"] == "long_term"
    ]
    memory.write(kind="candidates", candidates=[*candidates, *waiting])
    memory.propose(
        proposals=[
            {"kind": "fact_write", "change": {"content": f"proposed {each}"}, "rationale": "it may help"}
            for each in range(AT_LEAST)
        ]
    )


def _fill_snapshots_and_devices(memory: MemoryRuntime) -> None:
    """Snapshots are of every space, and devices of an owner."""
    for each in range(AT_LEAST):
        memory.create_snapshot(label=f"number {each}")
        memory.add_device(label=f"panel {each}", capabilities=["recall"])
