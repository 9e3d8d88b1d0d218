"""What seals the rows of a store: a key of the device identity, or of the store where that cannot be used."""

from __future__ import annotations

import logging

from beetle.contracts.errors import BeetleError
from beetle.domain.digest import keyed
from beetle.runtime.host.identity import Identity, seal_key
from beetle.store import private, seal_checks
from beetle.store.engine.store import Store
from beetle.store.engine.write_transaction import Sealing, WriteTransaction
from beetle.store.event_log import Event
from beetle.store.seals import Sealer

log = logging.getLogger("beetle.identity")


def sealer_of(store_key: bytes, identity: Identity) -> Sealer:
    """What seals and checks now."""
    secret = identity.look().secret
    return Sealer(None if secret is None else seal_key(secret), keyed(store_key, "seal", b""))


def begin(store: Store, identity: Identity, *, restored: bool = False) -> None:
    """Seal from now on what is written, and what no store has sealed yet: a new one, or one of an older schema.

    An identity that was made just now is recorded with it, in one transaction, which every other write waits for: a
    store is never sealed by an identity that it does not know, and nothing is written beside unsealed rows.

    The seals of a store that existed before are told of in the event log: they vouch for nothing that was before.

    Args:
        restored: a snapshot was put in the store's place, which has an event of its own.
    """
    if store.settings.immutable:
        return
    sealing = sealing_of(store, identity, restored=restored)
    needed = identity.unrecorded is not None or _is_needed(store, sealing.sealer)
    store.seal_with(sealing if needed else Sealing(sealing.sealer))
    if needed:
        try:
            # Not through the store: while a copy is put in its place, nobody else writes.
            store.writer.write(_nothing, grows=False)
        except BeetleError as error:
            log.warning(
                "existing rows could not be sealed; the next write tries again: %s",
                error.message,
                extra={"event": "rows_not_sealed"},
            )


def sealing_of(store: Store, identity: Identity, *, restored: bool = False) -> Sealing:
    """What seals a store, and what its first write takes in; `restored` as of `begin`."""
    sealer = sealer_of(store.key, identity)
    check = identity.unrecorded

    def adopt(tx: WriteTransaction) -> None:
        recorded = private.recorded_check(tx)
        first = check if recorded is None else None
        taken = {} if first is None else seal_checks.strengthen(tx, sealer)
        taken |= seal_checks.adopt(tx, sealer)
        if first is not None:
            private.record_check(tx, first)
        elif check is not None and recorded != check:
            private.mend_check(tx, check)
        if taken and not (restored or store.open_report.created):
            told = {"tables": len(taken), "rows": sum(taken.values())}
            tx.log(Event("lifecycle", "sealed", "serve", "daemon", None, told))

    return Sealing(sealer, adopt)


def _nothing(tx: WriteTransaction) -> None:
    """What has to be adopted comes with any write."""
    del tx


def _is_needed(store: Store, sealer: Sealer) -> bool:
    try:
        with store.read() as tx:
            return seal_checks.needs_adoption(tx, sealer)
    except BeetleError:
        # It cannot be told now: the first write looks.
        return True
