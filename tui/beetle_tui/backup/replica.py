"""The replica: where it is, how far it is behind, and what keeps it from being further."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar, cast

from textual.binding import BindingType

from beetle.contracts.memory import MemoryCapabilityCatalog, RuntimeState
from beetle.contracts.replication import ReplicationStatusReport
from beetle_tui.area import AreaScreen
from beetle_tui.backup.erased import erased_blocks, inspected
from beetle_tui.loaded_rows import LoadedRows
from beetle_tui.memory.section import Section
from beetle_tui.prose import Block, section
from beetle_tui.split import value
from beetle_tui.table import Column
from beetle_tui.text import count, moment, size

MEANS: Mapping[str, str] = {
    "refused": "it is configured, and cannot be kept here",
    "starting": "the sidecar runs, and has not reached the target yet",
    "replicating": "what is written arrives",
    "behind": "what was written has not arrived for a while",
    "stalled": "the sidecar does not answer, and is being replaced",
    "waiting": "the sidecar ended, and is started again after a while",
    "suspended": "too much waits on this disk; the target is tried from time to time",
    "paused": "held for a moment, for an erasure or a restore",
    "stopped": "the daemon ends",
}
WELL = ("replicating", "starting", "paused")


class ReplicaPart(Section[ReplicationStatusReport]):
    """One row: a daemon has one replica, or none."""

    TITLE = "Replica"
    NOUN = ("replica", "replicas")
    EMPTY = "No replica is configured"
    HOW = (
        "A replica is a copy of the store elsewhere that follows every write. `[replica]` in the configuration names\n"
        "its target: see `beetle help replication`."
    )
    BINDINGS: ClassVar[list[BindingType]] = []

    def __init__(self, area: AreaScreen) -> None:
        super().__init__(area)
        self._status: ReplicationStatusReport | None = None
        self._state: RuntimeState | None = None

    @property
    def is_followed(self) -> bool:
        """Whether there is a replica whose figures change."""
        return self._status is not None and self._status.state != "off"

    def columns(self) -> Sequence[Column[ReplicationStatusReport]]:
        """See Section."""
        return (
            Column("State", lambda row: row.state if row.state in WELL else row.state.upper(), 11),
            Column("Behind", lambda row: seconds(row.lag_s), 10, right=True),
            Column("Waiting", lambda row: size(row.lag_bytes), 10, right=True),
            Column("Last sent (UTC)", lambda row: (moment(row.last_synced_at) or "-")[:19], 19, narrow=64),
            Column("Target", lambda row: row.target or row.target_kind or "-"),
        )

    def key(self, row: ReplicationStatusReport) -> object:
        """See Section: it is the only one."""
        return "replica"

    def named(self, row: ReplicationStatusReport) -> str:
        """See Section."""
        return row.target or row.target_kind or row.state

    async def load(self, catalog: MemoryCapabilityCatalog) -> None:
        """See Section."""
        self._status = cast(ReplicationStatusReport, await self.area.link.call("replication.status"))
        self._state = (await inspected(self.area.link)).runtime
        if self.table.rows is not None:
            self.table.renew(await self.rows())
        await super().load(catalog)

    async def rows(self) -> LoadedRows[ReplicationStatusReport]:
        """See Section."""
        return LoadedRows(() if self._status is None or self._status.state == "off" else (self._status,))

    async def look(self, row: ReplicationStatusReport) -> tuple[str, Iterable[Block]]:
        """See Section."""
        return self.TITLE, [
            *replica_blocks(row),
            *erased_blocks(self._state),
            *sidecar_blocks(row),
        ]


def replica_blocks(row: ReplicationStatusReport) -> Iterator[Block]:
    """A replica whole."""
    yield value("State", f"{row.state}: {MEANS.get(row.state, row.state)}")
    if row.since is not None:
        yield value("Since", moment(row.since))
    if row.problem is not None:
        yield value("Problem", f"{row.problem.replace('_', ' ')}: {row.detail or '(for operators alone)'}")
    if row.hint is not None:
        yield value("Hint", row.hint)
    yield value("Target", row.target or row.target_kind or "-")
    yield from section("How far")
    yield value("Behind", seconds(row.lag_s))
    waiting = "" if row.lag_transactions is None else f" in {count(row.lag_transactions, 'transaction')}"
    yield value("Waiting", f"{size(row.lag_bytes)}{waiting}")
    yield value("Last sent", moment(row.last_synced_at) or "-")
    yield value("At target", "-" if row.replicated_txid is None else f"{row.replicated_txid:,} of {row.txid or 0:,}")
    yield value("Staged", size(row.staged_bytes))
    yield value("Log", size(row.wal_bytes))
    if row.retention_h is not None:
        yield value("Keeps", f"earlier states for {count(row.retention_h, 'hour')}")


def sidecar_blocks(row: ReplicationStatusReport) -> Iterator[Block]:
    """The process that keeps a replica."""
    yield from section("The sidecar")
    yield value("Process", "-" if row.pid is None else str(row.pid))
    yield value("Restarts", "-" if row.restarts is None else f"{row.restarts:,}")
    waited = "" if row.writer_waited_s is None else f", {row.writer_waited_s:,.2f} s in all"
    yield value("Held writes", "-" if row.writer_waits is None else f"{row.writer_waits:,}{waited}")


def seconds(lag: float | None) -> str:
    """A lag for a person."""
    return "-" if lag is None else f"{lag:,.2f} s" if lag < 100 else f"{lag:,.0f} s"
