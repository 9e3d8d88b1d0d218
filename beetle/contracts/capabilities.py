"""The capability catalog: what a principal or a device can be granted, and what a profile can allow.

A name covers an area of operations; which operation asks for which name is the table of operations' business.
"""

from __future__ import annotations

from beetle.named_tuple import NamedTuple


class CatalogEntry(NamedTuple):
    """One name of the catalog and, in one line, what it opens."""

    name: str
    meaning: str


CAPABILITIES: tuple[CatalogEntry, ...] = (
    CatalogEntry("write", "write governed memory: procedures, extractions, candidates, tool feedback"),
    CatalogEntry("recall", "search memory by a query"),
    CatalogEntry("project", "build the bounded memory block for a model"),
    CatalogEntry("maintain", "run post-turn maintenance with the configured model"),
    CatalogEntry("inspect", "read counts, lifecycle state and the governance report; verify the store"),
    CatalogEntry("replay", "read a chat's turn ledger"),
    CatalogEntry("export", "take out a continuity snapshot or a space archive"),
    CatalogEntry("import", "bring in a continuity snapshot or a space archive"),
    CatalogEntry("recover", "run the recoverable lifecycle steps"),
    CatalogEntry("close", "end the runtime cleanly"),
    CatalogEntry("skill", "list, read, edit, enable, disable and delete runtime skills"),
    CatalogEntry("agent_skill", "list the mounted Agent Skill directories"),
    CatalogEntry("tool_registry", "read, register and delete compact tool registries"),
    CatalogEntry("transcript", "commit turns, and read, search, govern and repair transcripts"),
    CatalogEntry("long_term", "read, change and set policies for accepted facts"),
    CatalogEntry("forget", "forget conversations, subjects, words and spaces in every plane"),
    CatalogEntry("capture", "capture a host's turns and read their coverage"),
    CatalogEntry("event", "ingest events and read them by time"),
    CatalogEntry("toc", "walk the time index and expand its grips"),
    CatalogEntry("chunk", "read, write, link and restore chunks"),
    CatalogEntry("chain", "append to, search and walk thought chains, and their agent registry"),
    CatalogEntry("skill_registry", "upload, read, deprecate and revoke skill versions"),
    CatalogEntry("evolve", "list, preview, propose and submit evolution proposals"),
    CatalogEntry("harness", "run fixtures and gates"),
    CatalogEntry("console", "read the overview and the session of the console"),
    CatalogEntry("device", "list, add, change and remove devices"),
    CatalogEntry("transport", "list and change the communication entries"),
    CatalogEntry("host_key", "list, enroll and revoke the keys of capturing hosts"),
    CatalogEntry("scheduler", "read, pause, resume and run background jobs"),
    CatalogEntry("event_log", "read the event log"),
    CatalogEntry("snapshot", "list, create, verify, restore and prune store snapshots"),
    CatalogEntry("replication", "read the state of the replica"),
)
"""What an area of operations asks for; grants of these are ordinary."""

APART: tuple[CatalogEntry, ...] = (
    CatalogEntry("transcript.raw", "read transcripts in the raw_owner view"),
    CatalogEntry("private.read", "read private garden and soul-candidate material in the raw_owner view"),
    CatalogEntry("admin", "change the daemon itself: compact, rebuild, and what the table marks as admin"),
)
"""What no other grant implies: each is given by name, and the operator has the first two only by configuration."""

CAPABILITY_NAMES: tuple[str, ...] = tuple(each.name for each in (*CAPABILITIES, *APART))
"""Every name that a profile, a principal or a device may list, in the catalog's order."""
