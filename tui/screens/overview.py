"""Overview: who answers, what the store holds, what needs a hand."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import cast

from textual.app import ComposeResult
from textual.containers import ItemGrid

from beetle.contracts.control import HelloReport
from beetle.contracts.errors import BeetleError
from beetle.contracts.memory import MemoryInspectionReport, PlaneCounts, StoreState
from tui.area import AreaScreen
from tui.panels import Facts, Figure, Figures, Remarks
from tui.text import count, size

SHOWN_OF_HASH = 16
NOT_SHOWN = "(not shown to this caller)"


class Overview(AreaScreen):
    """All of it out of `hello` and `memory.inspect`."""

    DEFAULT_CSS = """
    Overview ItemGrid { height: auto; grid-rows: auto; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._since: tuple[int, datetime] | None = None

    def compose_area(self) -> ComposeResult:
        """Where it runs above, what is in it below."""
        with ItemGrid(id="places", min_column_width=58):
            yield Facts("Daemon", id="daemon")
            yield Facts("Store", id="store")
        with ItemGrid(id="contents", min_column_width=38):
            yield Figures("Memory", id="memory")
            yield Remarks("Needs a hand", id="findings")

    async def load(self) -> None:
        """See AreaScreen. A caller who may not inspect still sees who answers."""
        told = cast(HelloReport, await self.link.call("hello"))
        try:
            seen = cast(MemoryInspectionReport, await self.link.call("memory.inspect"))
        except BeetleError:
            self.query_one("#daemon", Facts).show(self._daemon(told, None))
            raise
        self.query_one("#daemon", Facts).show(self._daemon(told, seen.operator.refusals))
        self.query_one("#store", Facts).show(store_facts(seen))
        self.query_one("#memory", Figures).show(plane_figures(seen.counts))
        self.query_one("#findings", Remarks).show(remarks(seen), "Nothing.")

    def _daemon(self, told: HelloReport, refusals: int | None) -> Iterator[tuple[str, str]]:
        if self.link.socket is None:
            yield "Running", f"no daemon: this console ({told.server} {told.version}, pid {told.pid}) holds the store"
        else:
            yield (
                "Running",
                f"{told.server} {told.version}, pid {told.pid}, since {self._start(told):%Y-%m-%d %H:%M:%SZ}",
            )
            yield "Socket", self.link.socket
        yield "Profile", told.profile
        refused = "" if refusals is None else f"; {count(refusals, 'request')} refused since the start"
        yield "Caller", f"{told.principal}{refused}"

    def _start(self, told: HelloReport) -> datetime:
        """When the process began, worked out once: the clocks of two readings never agree to the second."""
        if self._since is None or self._since[0] != told.pid:
            self._since = told.pid, datetime.fromtimestamp(time.time() - told.uptime_s, UTC)
        return self._since[1]


def store_facts(seen: MemoryInspectionReport) -> Iterator[tuple[str, str]]:
    """Labels and values of the store and its event log."""
    store, log = seen.store, seen.event_log
    yield "Path", store.path or ("(in memory)" if store.backend == "in-memory" else NOT_SHOWN)
    used = f"{size(store.bytes)} of {size(store.ceiling_bytes)}{_share(store)}"
    yield "Size", f"{used}, {count(store.pages, 'page')}; WAL {size(store.wal_bytes)}"
    yield "Format", f"{store.backend}, schema {store.schema}"
    yield "Events", f"{count(log.rows, 'row')}, head {log.head[:SHOWN_OF_HASH]}"


def _share(store: StoreState) -> str:
    if not store.ceiling_bytes:
        return ""
    share = store.bytes / store.ceiling_bytes
    return " (under 1%)" if share < 0.01 else f" ({share:.0%})"


def plane_figures(counts: PlaneCounts) -> Iterator[Figure]:
    """The counts of the caller's space, by plane."""
    yield Figure("Evidence", "conversations", counts.conversations)
    yield Figure("Evidence", "turns", counts.turns)
    yield Figure("Evidence", "messages", counts.messages)
    yield Figure("Evidence", "of them masked", counts.masked_messages)
    yield Figure("Evidence", "of them deleted", counts.deleted_messages)
    yield Figure("Procedural", "runtime skills", counts.runtime_skills)
    yield Figure("Procedural", "revisions", counts.skill_revisions)
    yield Figure("Derived", "refs to evidence", counts.derived_refs)


def remarks(seen: MemoryInspectionReport) -> Iterator[str]:
    """What a person should know or do something about, as the reports say it."""
    store = seen.store
    yield from seen.operator.findings
    identity = seen.operator.identity
    if identity is not None and identity.state != "usable":
        yield f"{identity.problem or identity.state}: {identity.advice or 'see beetle doctor'}"
    if store.pending_erasures:
        yield f"{count(store.pending_erasures, 'erasure')} pending: a reader still holds the old content"
    if store.ceiling_bytes and store.bytes >= store.ceiling_bytes:
        yield "the store is at its ceiling: it takes nothing more until something is deleted"
    if seen.agent_skills.findings:
        yield f"{count(seen.agent_skills.findings, 'finding')} in the mounted agent skills"
