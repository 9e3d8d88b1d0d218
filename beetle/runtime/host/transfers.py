"""Exports and imports on their way in pieces: whose they are, how much of them is here, and when they end."""

from __future__ import annotations

import threading
from collections import Counter
from typing import TYPE_CHECKING

from beetle.contracts.codec import format_us
from beetle.contracts.errors import Conflict, NotFound, Overloaded, PayloadTooLarge
from beetle.named_tuple import NamedTuple
from beetle.runtime.host.caller import Caller
from beetle.runtime.host.profile import Budgets
from beetle.runtime.host.transports import Connection
from beetle.store.engine.connection import StoreSettings
from beetle.store.engine.pieces import PieceFile

if TYPE_CHECKING:
    from beetle.contracts.transfer import TransferHandle

SECOND_US = 1_000_000
RETRY_MS = 1000


class Holder(NamedTuple):
    """Whose a transfer is: a caller with the rights that it had, on the connection that it came by."""

    caller: Caller
    connection: Connection | None


class _Transfer:
    """One of them. `ends` is in microseconds."""

    __slots__ = ("ends", "file", "holder", "id", "size", "upload")

    def __init__(self, transfer_id: str, holder: Holder, size: int, ends: int, *, upload: bool) -> None:
        self.id = transfer_id
        self.holder = holder
        self.size = size
        self.ends = ends
        self.upload = upload
        self.file: PieceFile | None = None

    @property
    def bytes(self) -> int:
        """How many are here."""
        return 0 if self.file is None else self.file.bytes

    def close(self) -> None:
        if self.file is not None:
            self.file.close()


class Transfers:
    """Those of one runtime. What has no piece for `transfer_seconds` ends, and what a connection began ends with it."""

    def __init__(self, settings: StoreSettings, budgets: Budgets) -> None:
        self._settings = settings
        self._budgets = budgets
        self._guard = threading.Lock()
        self._open: dict[str, _Transfer] = {}

    def begin(self, holder: Holder, transfer_id: str, size: int, now: int) -> TransferHandle:
        """A place for an import of so many bytes.

        Raises:
            Overloaded: this connection has as many transfers as it may.
        """
        with self._guard:
            return self._handle(self._added(holder, transfer_id, size, now, upload=True))

    def offer(self, holder: Holder, transfer_id: str, data: bytes, now: int) -> TransferHandle:
        """Keep an export until its holder has fetched it.

        Raises:
            Overloaded: this connection has as many transfers as it may, or there is no room.
            StorageFull, StoreReadOnly: the disk does not take it.
        """
        with self._guard:
            found = self._added(holder, transfer_id, len(data), now, upload=False)
            try:
                self._append(found, data)
            except BaseException:
                self._drop(found)
                raise
            return self._handle(found)

    def put(self, holder: Holder, transfer_id: str, offset: int, data: bytes, now: int) -> tuple[int, TransferHandle]:
        """The next piece of an import; how many bytes are here now.

        Raises:
            NotFound: this holder has no such import.
            Conflict: the piece does not follow on the last one.
            PayloadTooLarge: more comes than was announced; nothing of the transfer is kept.
            Overloaded, StorageFull, StoreReadOnly: there is no room for it.
        """
        with self._guard:
            found = self._find(holder, transfer_id, now, upload=True)
            if offset != found.bytes:
                raise Conflict(
                    reason=f"the piece begins at byte {offset}, and {found.bytes} bytes are here",
                    hint="send the piece that begins where the last one ended",
                    received=found.bytes,
                )
            if offset + len(data) > found.size:
                self._drop(found)
                raise PayloadTooLarge(
                    what="what is sent", maximum=found.size, unit="bytes, which were announced", limit="total_bytes",
                    actual=offset + len(data), path="$.args.data", hint="begin again, with the number of all bytes",
                )  # fmt: skip
            self._append(found, data)
            found.ends = self._end(now)
            return found.bytes, self._handle(found)

    def get(self, holder: Holder, transfer_id: str, offset: int, now: int) -> tuple[bytes, int]:
        """A piece of an export, and how many bytes it has in all; after the last piece it is gone.

        Raises:
            NotFound: this holder has no such export.
            Conflict: nothing begins there.
        """
        with self._guard:
            found = self._find(holder, transfer_id, now, upload=False)
            if offset >= found.size:
                raise Conflict(reason=f"nothing begins at byte {offset}: the export has {found.size}")
            assert found.file is not None
            data = found.file.read(offset, self._budgets.piece_bytes)
            found.ends = self._end(now)
            if offset + len(data) >= found.size:
                self._drop(found)
            return data, found.size

    def take(self, holder: Holder, transfer_id: str, now: int) -> bytes:
        """All of an import, which ends its transfer.

        Raises:
            NotFound: this holder has no such import.
            Conflict: it is not all here yet.
        """
        with self._guard:
            found = self._find(holder, transfer_id, now, upload=True)
            if found.bytes < found.size or found.file is None:
                raise Conflict(
                    reason=f"{found.bytes} of the {found.size} bytes that were announced are here",
                    hint="send the rest with transfer.put",
                    received=found.bytes,
                )
            data = found.file.read(0, found.size)
            self._drop(found)
            return data

    def leave(self, connection: Connection) -> None:
        """A connection has ended."""
        with self._guard:
            for each in [each for each in self._open.values() if each.holder.connection is connection]:
                self._drop(each)

    def close(self) -> None:
        """The runtime ends."""
        with self._guard:
            for each in list(self._open.values()):
                self._drop(each)

    def _added(self, holder: Holder, transfer_id: str, size: int, now: int, *, upload: bool) -> _Transfer:
        self._end_late(now)
        own = sum(_place(each.holder) == _place(holder) for each in self._open.values())
        if own >= self._budgets.transfers:
            what = "this connection has transfers that have not ended"
            raise Overloaded(what=what, maximum=self._budgets.transfers, retry_after_ms=RETRY_MS)
        found = self._open[transfer_id] = _Transfer(transfer_id, holder, size, self._end(now), upload=upload)
        return found

    def _find(self, holder: Holder, transfer_id: str, now: int, *, upload: bool) -> _Transfer:
        self._end_late(now)
        found = self._open.get(transfer_id)
        # Another's handle is answered as one that nobody has.
        if found is None or found.holder != holder or found.upload is not upload:
            raise NotFound(
                kind="transfer",
                name=transfer_id,
                listing="begin again: it ends with its connection, its last piece, or when no piece comes in time",
            )
        return found

    def _append(self, found: _Transfer, data: bytes) -> None:
        self._make_room(found, len(data))
        if found.file is None:
            found.file = PieceFile(self._settings, found.id)
        found.file.append(data)

    def _make_room(self, asking: _Transfer, size: int) -> None:
        """Whoever holds most gives way, so that nobody takes all the room."""
        name = asking.holder.caller.name
        while True:
            held: Counter[str] = Counter()
            for each in self._open.values():
                held[each.holder.caller.name] += each.bytes
            if held.total() + size <= self._budgets.transfer_bytes:
                return
            most, share = max(held.items(), key=lambda one: one[1])
            if most == name or share <= held[name] + size:
                what = "the transfers that have not ended take all room"
                maximum = f"{self._budgets.transfer_bytes} bytes"
                raise Overloaded(what=what, maximum=maximum, retry_after_ms=RETRY_MS)
            theirs = [each for each in self._open.values() if each.holder.caller.name == most]
            self._drop(max(theirs, key=lambda each: each.bytes))

    def _end(self, now: int) -> int:
        return now + self._budgets.transfer_seconds * SECOND_US

    def _end_late(self, now: int) -> None:
        for each in [each for each in self._open.values() if each.ends < now]:
            self._drop(each)

    def _drop(self, found: _Transfer) -> None:
        del self._open[found.id]
        found.close()

    def _handle(self, found: _Transfer) -> TransferHandle:
        from beetle.contracts.transfer import TransferHandle

        return TransferHandle(
            transfer_id=found.id,
            total_bytes=found.size,
            piece_bytes=self._budgets.piece_bytes,
            expires_at=format_us(found.ends),
        )


def _place(holder: Holder) -> tuple[str, int]:
    """What a number of transfers is allowed to: a connection, or in process a caller."""
    return ("", id(holder.connection)) if holder.connection is not None else (holder.caller.name, 0)
