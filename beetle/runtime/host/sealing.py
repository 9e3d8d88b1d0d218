"""What seals the rows of a store: a key of the device identity, or of the store where that cannot be used."""

from __future__ import annotations

import logging

from beetle.contracts.errors import BeetleError
from beetle.domain.digest import keyed
from beetle.runtime.host.identity import Identity, derived
from beetle.store import seal_checks
from beetle.store.engine.store import Store
from beetle.store.engine.writer import WriteTransaction
from beetle.store.event_log import Event
from beetle.store.seals import Sealer

log = logging.getLogger("beetle.identity")


def sealer_of(store_key: bytes, identity: Identity) -> Sealer:
    """What seals and checks now."""
    secret = identity.look().secret
    return Sealer(None if secret is None else derived(secret, "beetle seal"), keyed(store_key, "seal", b""))


def begin(store: Store, identity: Identity, *, restored: bool = False) -> None:
    """Seal from now on what is written, and what no store has sealed yet: a new one, or one of an older schema.

    The seals of a store that existed before are told of in the event log: they vouch for nothing that was before.

    Args:
        restored: a snapshot was put in the store's place, which has an event of its own.
    """
    if store.settings.immutable:
        return
    sealer = sealer_of(store.key, identity)
    store.seal_with(sealer)
    untold = restored or store.open_report.created

    def adopt(tx: WriteTransaction) -> None:
        taken = seal_checks.adopt(tx, sealer)
        if taken and not untold:
            told = {"tables": len(taken), "rows": sum(taken.values())}
            tx.log(Event("lifecycle", "sealed", "serve", "daemon", None, told))

    with store.read() as tx:
        needed = seal_checks.needs_adoption(tx, sealer)
    if needed:
        try:
            # Not through the store: while a copy is put in its place, nobody else writes.
            store.writer.write(adopt, grows=False)
        except BeetleError as error:
            log.warning("rows that are there could not be sealed: %s", error.message)
