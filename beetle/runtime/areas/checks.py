"""Every check of a store, by its one name: what it looks at, and what mends what it finds.

What repair or recover can find, one of these finds too. docs/store.md has this table; a test compares the two.
"""

from __future__ import annotations

from beetle.contracts.names import CheckName
from beetle.named_tuple import NamedTuple

NOTHING = "nothing: restore a snapshot from before"
REPAIR = "transcript.repair_safe, memory.recover"
RECOVER = "memory.recover"
BY_HAND = "nothing by itself: look where the row comes from, or restore a snapshot from before"


class Check(NamedTuple):
    """A check by its name in findings. `mends` names the operations that mend what it finds."""

    name: CheckName
    looks_at: str
    mends: str


CHECKS: tuple[Check, ...] = (
    Check("schema", "the schema is what the migrations make", "another SQLite program: see Opening"),
    Check("event_log", "each row's hash follows from the one before", NOTHING),
    Check("event_log_head", "the signed head fits the log, the store and the device", NOTHING),
    Check("event_places", "each event has its place in its space", NOTHING),
    Check("committed_turns", "each conversation holds the turns that the event log names", NOTHING),
    Check("seals", "each row is what the runtime wrote, and none is missing but for first reports", BY_HAND),
    Check(
        "evidence", "messages, their contents and digests, numbers without gaps, counts, speakers, times, host keys",
        f"{REPAIR}: counts; {RECOVER}: times, keys; nothing mends content",
    ),
    Check("derived_refs", "each link and citation leads to the record and the turn that it names", REPAIR),
    Check("procedural", "skills have their revisions; columns can be read", NOTHING),
    Check("long_term", "facts, revisions and texts go together; texts are what was written", NOTHING),
    Check(
        "thoughts",
        "each thought follows from the one before; each chain ends where the event log says; agents' counts",
        NOTHING,
    ),
    Check(
        "chunks", "each chunk says and links what was written; links stay in their space; tags find their chunks",
        NOTHING,
    ),
    Check(
        "toc", "nodes follow from the events; each has its grips and what is below it",
        f"{RECOVER}, admin.rebuild_toc",
    ),
    Check("candidates", "texts are what was proposed; columns can be read", NOTHING),
    Check("proposals", "columns can be read", NOTHING),
    Check("tool_registries", "columns can be read", NOTHING),
    Check("skill_registry", "every version of an uploaded skill is what was uploaded; columns can be read", NOTHING),
    Check("tool_experience", "columns can be read", NOTHING),
    Check("private", "each item opens with its space's key; the record of the device identity can be read", NOTHING),
    Check("devices", "columns can be read", "device.update"),
    Check("jobs", "columns can be read; no lease has ended long ago", RECOVER),
    Check(
        "recall_index",
        "the index holds the rows that it should, each with just the terms of its record; bitmaps hold the same",
        RECOVER,
    ),
    Check("pages", "SQLite finds every page in order", f"{RECOVER}: the index; else a snapshot, or store.repair"),
    Check("foreign_keys", "no row names one that is missing", NOTHING),
    Check("pending_erasures", "no erasure has been pending for long; what is left of each can be read", RECOVER),
    Check(
        "chain_mirrors", "the mirror of each jsonl chain could be written", "the next append or opening, once it can"
    ),
    Check("leftovers", "no file is half-made", RECOVER),
    Check("idempotency", "no first report is kept beyond the profile's number, or of a removed device", RECOVER),
    Check("remembered_conversations", "the conversations that principals last committed to exist", RECOVER),
)  # fmt: skip
BY_NAME = {each.name: each for each in CHECKS}
