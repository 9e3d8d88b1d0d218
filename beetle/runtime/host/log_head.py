"""The event log's head, signed by the device identity: at each snapshot, at close, and within a minute of a write.

Whoever cuts the log or makes its chain anew cannot sign the head that it has then. What was written since the last
signature is vouched for by nobody until the next.
"""

from __future__ import annotations

import logging
import threading
from functools import partial

from beetle.contracts.errors import BeetleError
from beetle.domain.digest import decode
from beetle.runtime.host import signed_text
from beetle.runtime.host.identity import Identity
from beetle.runtime.host.signed_text import HEAD, Statement
from beetle.store import private
from beetle.store.engine.store import Store
from beetle.store.engine.transaction import Reading
from beetle.store.engine.write_transaction import WriteTransaction
from beetle.store.event_log import Head, read_head, read_row, read_signed_head, record_signed_head
from beetle.store.verify import HEAD as CHECK
from beetle.store.verify import Finding

log = logging.getLogger("beetle.identity")

SIGN_AFTER_S = 50.0
"""Seconds from the first write that no signature covers to the next signature, which is to come within a minute."""


def check(
    identity: Identity, store_id: str, tx: Reading, *, also: bytes | None = None
) -> tuple[int | None, list[Finding]]:
    """How many of the log's last rows no signature covers, None where none can be relied on; and what is wrong.

    Args:
        also: a public key that counts as this device's too.
    """
    kept, head = read_signed_head(tx), read_head(tx)
    if kept is None:
        return None, [Finding(CHECK, "signed head", "its row is missing")]
    if kept.text is None:
        return head.seq, []
    found = signed_text.read(kept.text, HEAD)
    if found is None or found.store != store_id or found.rows is None:
        return None, [Finding(CHECK, "signed head", "is not what this store's device has signed")]
    findings: list[Finding] = []
    key = decode(found.key)
    fault = None if key is not None and key == also else signed_text.known_keys(identity, tx).fault(key)
    if fault is not None:
        whose = "a former identity of this store" if fault == "former_device" else "another device"
        findings.append(Finding(CHECK, "signed head", f"was signed by {whose}, {found.device}"))
    if fault != "other_device" and (problem := _problem(tx, found, head)) is not None:
        findings.append(Finding(CHECK, f"row {found.rows}", problem))
    return (None, findings) if findings else (head.seq - found.rows, [])


def _problem(tx: Reading, found: Statement, head: Head) -> str | None:
    """How the log differs from what was signed of it."""
    assert found.rows is not None, "a head says its row"
    if found.rows > head.seq:
        return f"was signed as the log's last, and the log ends at row {head.seq}: rows were cut off"
    row = read_row(tx, found.rows)
    if row is None:
        return "was signed as the log's last, and is missing"
    if type(row.hash) is not bytes:
        return "is damaged: its hash cannot be read"
    if row.hash.hex() != found.digest:
        return "is not the row that was signed: rows were cut off, or the chain was made anew"
    return None


class HeadSigner:
    """Signs one store's head when it is due. A store in memory, which nothing outlives, has no need of it."""

    def __init__(self, store: Store, identity: Identity) -> None:
        self._store = store
        self._identity = identity
        self._off = store.settings.backend == "in-memory" or store.settings.immutable
        self._ended = threading.Event()
        self._waiting: threading.Thread | None = None
        self._signed: Head | None = None

    def committed(self) -> None:
        """Something was logged: see that it is signed in time. Quick: the writer's thread calls it."""
        if self._off or self._waiting is not None or self._ended.is_set():
            return
        thread = threading.Thread(target=self._wait, name="beetle-log-head", daemon=True)
        self._waiting = thread
        thread.start()

    def sign(self) -> None:
        """Sign the head as it stands, unless it is signed already or the identity cannot be used.

        A head that does not fit the log is never replaced: it is what shows that the log was changed.
        """
        if self._off or self._store.writer.ended or self._signed == self._store.head:
            return
        # Before the transaction: the writer must not wait for what this loads.
        if self._identity.keys() is None:
            return
        try:
            self._store.write(self._apply, grows=False)
        except BeetleError as error:
            log.warning(
                "the event log's head could not be signed: %s", error.message, extra={"event": "head_not_signed"}
            )

    def sign_last(self, tx: WriteTransaction) -> None:
        """Sign for the last time, as the last write of the store, and end."""
        self._ended.set()
        if not self._off and tx.head.seq:
            self._apply(tx)

    def _apply(self, tx: WriteTransaction) -> None:
        head, kept = tx.head, read_signed_head(tx)
        if kept is not None and signed_text.states(kept.text, HEAD, rows=head.seq, digest=head.digest):
            tx.hooks.append(partial(self._note_signed, head))
            return
        keys = self._identity.keys()
        if keys is None:
            return
        unsigned, findings = check(self._identity, self._store.store_id, tx)
        tx.hooks.append(partial(self._note_signed, head))
        if findings:
            log.warning(
                "the event log's head is not signed: %s %s",
                findings[0].subject,
                findings[0].problem,
                extra={"event": "head_not_signed"},
            )
            return
        private.record_public_key(tx, keys.public)
        if unsigned:
            text = signed_text.sign(keys, HEAD, digest=head.digest, store=self._store.store_id, rows=head.seq)
            record_signed_head(tx, text)

    def _note_signed(self, head: Head) -> None:
        """What there was to do about a head is committed."""
        self._signed = head

    def _wait(self) -> None:
        """The thread: it sleeps, signs, and is gone until the next write."""
        ended = self._ended.wait(SIGN_AFTER_S)
        # Before it looks at the head: what is logged from now on has a thread of its own.
        self._waiting = None
        if not ended:
            self.sign()
