"""What was corrected, superseded or deleted does not come back by a weaker authority than removed it.

Of a removed value a digest stays. It is keyed with the device identity, which is not in the store, so that who holds
the store's file alone cannot try out what was erased; with the store's own key only while there is no usable identity.
"""

from __future__ import annotations

from collections.abc import Iterable

from beetle.contracts.codec import pack
from beetle.domain.digest import keyed
from beetle.domain.governance import STRENGTH, normalised
from beetle.named_tuple import NamedTuple
from beetle.runtime.host.identity import derived
from beetle.runtime.pipeline.invocation import Invocation
from beetle.store import evidence, removed_values
from beetle.store.engine.transaction import Reading
from beetle.store.engine.write_transaction import WriteTransaction

DIGEST_BYTES = 16


class Value(NamedTuple):
    """What was believed of a topic; of a skill the topic is its name. `private`: who may not see it is not told."""

    topic: str
    content: str
    private: bool = False


def record(invocation: Invocation, tx: WriteTransaction, space: int, values: Iterable[Value], authority: str) -> None:
    """Write down that an authority removed some values; the strongest that ever did stays."""
    key = _keys(invocation)[0]
    for each in values:
        visibility = "private" if each.private else "shared"
        # Whoever leaves the topic out says the same.
        for digest in {_digest(invocation, key, each.topic, each.content), _digest(invocation, key, "", each.content)}:
            _strengthen(tx, space, digest, visibility, authority)


def carry(store: Reading, copy: WriteTransaction) -> None:
    """Let an earlier copy of a store know by whose authority values were removed from the store since; the strongest
    that ever did stays.

    A space that the copy does not have yet is made there, empty: what was removed from it must not come back either.
    """
    for each in removed_values.every(store):
        space = evidence.ensure_space(copy, each.memory_space_id, each.created_at)
        _strengthen(copy, space, each.digest, each.visibility, each.authority)


def _strengthen(tx: WriteTransaction, space: int, digest: bytes, visibility: str, authority: str) -> None:
    before = removed_values.removers(tx, space, (digest,), (visibility,))
    if all(STRENGTH[authority] > STRENGTH[other] for other in before):
        removed_values.record(tx, space, digest, visibility, authority)


def remover_of(invocation: Invocation, tx: Reading, space: int, topic: str, content: str) -> str | None:
    """The strongest authority that removed this value, as far as the caller may know; None where none did."""
    if not removed_values.has_any(tx, space):
        return None
    digests = [_digest(invocation, key, topic, content) for key in _keys(invocation)]
    shown = ("shared", "private") if invocation.sees_private else ("shared",)
    return max(removed_values.removers(tx, space, digests, shown), key=STRENGTH.__getitem__, default=None)


def _keys(invocation: Invocation) -> list[bytes]:
    """The keys that digests were made with, the one for new digests first."""
    keys = invocation.shared.identity.keys()
    own = [] if keys is None else [derived(keys.wrapping, "beetle removed values")]
    return [*own, invocation.key]


def _digest(invocation: Invocation, key: bytes, topic: str, content: str) -> bytes:
    said = pack((invocation.space_id, normalised(topic), normalised(content)))
    return keyed(key, "removed value", said)[:DIGEST_BYTES]
