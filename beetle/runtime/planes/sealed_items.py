"""Items of the private plane, sealed and opened."""

from __future__ import annotations

import os

from beetle.contracts.errors import IntegrityViolation, PrivacyDenied
from beetle.contracts.private import (
    PrivatePlane,
    PrivatePrivacy,
)
from beetle.domain.digest import keyed_once
from beetle.named_tuple import NamedTuple
from beetle.runtime.host.identity import Keys, derived, seal, unseal
from beetle.runtime.pipeline.invocation import Invocation
from beetle.store import private
from beetle.store.engine.transaction import Reading
from beetle.store.engine.write_transaction import WriteTransaction
from beetle.store.private import ItemRow, NewItem

KEY_BYTES = 32
STATES = {"private_garden": "kept", "soul_candidate": "handoff"}


def available(invocation: Invocation) -> str | None:
    """Why the private plane can keep nothing now, or None when it can.

    Loads what sealing takes: call it before a transaction of the writer.
    """
    if invocation.shared.identity.keys() is not None:
        return None
    return _refusal(invocation).message


def of_space(memory_space_id: str) -> bytes:
    """What a space's key is bound to."""
    return b"space\0" + memory_space_id.encode()


def of_item(memory_space_id: str, record_id: str, plane: str) -> bytes:
    """What a sealed item is bound to."""
    return b"\0".join((b"item", memory_space_id.encode(), record_id.encode(), plane.encode()))


def of_waiting(memory_space_id: str, waiting_id: str) -> bytes:
    """What the sealed text of a private fact that waits is bound to."""
    return b"\0".join((b"waiting", memory_space_id.encode(), waiting_id.encode()))


class Words(NamedTuple):
    """A text for the private plane. `at` is when it was kept first, in microseconds: now, when it is None."""

    plane: PrivatePlane
    privacy: PrivatePrivacy
    authority: str
    candidate_id: str
    content: str
    at: int | None = None


def keep(invocation: Invocation, tx: WriteTransaction, space: int, words: Words) -> str:
    """Seal and keep a text; its record id. The same text in the same plane is kept once: its id is answered again.

    `space` is the key of the call's own space. The caller logs the event, with the record id and kinds.

    Raises:
        PrivacyDenied: there is no usable identity.
        IntegrityViolation: the space's key does not open.
    """
    key = _space_key(invocation, tx, space) or _new_space_key(invocation, tx, space)
    content_mac = _content_mac(key, words.content)
    if (there := private.item_saying(tx, space, content_mac, words.plane, words.privacy)) is not None:
        return there
    record_id = invocation.new_id("p")
    item = NewItem(
        record_id=record_id,
        candidate_id=words.candidate_id,
        plane=words.plane,
        privacy=words.privacy,
        authority=words.authority,
        state=STATES[words.plane],
        content_mac=content_mac,
        length=len(words.content),
        sealed=seal(key, words.content.encode(), of_item(invocation.space_id, record_id, words.plane)),
        principal=invocation.caller.name,
        at=tx.now if words.at is None else words.at,
    )
    private.add_item(tx, space, item)
    return record_id


def _new_space_key(invocation: Invocation, tx: WriteTransaction, space: int) -> bytes:
    keys = require(invocation)
    key = os.urandom(KEY_BYTES)
    private.add_space_key(tx, space, seal(keys.wrapping, key, of_space(invocation.space_id)), keys.fingerprint, tx.now)
    return key


def seal_waiting(invocation: Invocation, tx: WriteTransaction, space: int, waiting_id: str, text: bytes) -> bytes:
    """The text of a private fact that waits, sealed for its place in the queue.

    Raises:
        PrivacyDenied, IntegrityViolation: as `keep`.
    """
    key = _space_key(invocation, tx, space) or _new_space_key(invocation, tx, space)
    return seal(key, text, of_waiting(invocation.space_id, waiting_id))


def open_waiting(invocation: Invocation, tx: Reading, space: int, waiting_id: str, sealed: bytes) -> bytes | None:
    """What was sealed so; None where it does not open: there is no usable identity, or it was changed."""
    if available(invocation) is not None:
        return None
    key = _space_key(invocation, tx, space)
    return None if key is None else unseal(key, sealed, of_waiting(invocation.space_id, waiting_id))


def blinded(invocation: Invocation, tx: Reading, space: int, digest: bytes | None) -> bytes | None:
    """A digest of a sealed text, keyed anew: the store's own key stands beside the data. None without a key."""
    if digest is None or available(invocation) is not None:
        return None
    key = _space_key(invocation, tx, space)
    return None if key is None else keyed_once(derived(key, "beetle waiting"), "waiting", digest)


def saying(
    invocation: Invocation, tx: Reading, space: int, plane: PrivatePlane, privacy: PrivatePrivacy, content: str
) -> str | None:
    """Record id of an item that says just this already.

    Raises:
        PrivacyDenied, IntegrityViolation: as `keep`.
    """
    key = _space_key(invocation, tx, space)
    return None if key is None else private.item_saying(tx, space, _content_mac(key, content), plane, privacy)


def content_of(invocation: Invocation, tx: Reading, space: int, item: ItemRow) -> str:
    """The text of an item.

    Raises:
        PrivacyDenied: there is no usable identity, or a former one has sealed it.
        IntegrityViolation: the item or its space's key was changed, or belongs to another record, space or device.
    """
    if item.closed:
        raise closed(f"the private record {item.record_id}", "private.delete and memory.forget delete it")
    key = _space_key(invocation, tx, space)
    text = None if key is None else unseal(key, item.sealed, of_item(invocation.space_id, item.record_id, item.plane))
    if text is None:
        raise _damaged(f"the private record {item.record_id}")
    return text.decode()


def require(invocation: Invocation) -> Keys:
    """The keys that the plane is read with.

    Raises:
        PrivacyDenied: there is no usable identity.
    """
    keys = invocation.shared.identity.keys()
    if keys is None:
        raise _refusal(invocation)
    return keys


def closed(what: str, ways: str) -> PrivacyDenied:
    """The error for what a former identity has sealed.

    Args:
        ways: what can be done with it all the same.
    """
    reason = f"{what} is closed: a former identity of this store has sealed it"
    return PrivacyDenied(reason=reason, hint=f"it cannot be read any more; {ways}", state="closed")


def _refusal(invocation: Invocation) -> PrivacyDenied:
    identity = invocation.shared.identity
    state = identity.state
    problem, advice = identity.problem(state) or ("the key file was not usable a moment ago", "try again")
    hint = f"{advice}; `beetle doctor` shows where it is"
    return PrivacyDenied(reason=f"the private plane is unavailable: {problem}", hint=hint, state=state)


def _space_key(invocation: Invocation, tx: Reading, space: int) -> bytes | None:
    """The key of the call's space, or None when it has none yet."""
    keys = require(invocation)
    wrapped = private.space_key(tx, space)
    if wrapped is None:
        return None
    key = unseal(keys.wrapping, wrapped, of_space(invocation.space_id))
    if key is None:
        raise _damaged("the key of this space's private plane")
    return key


def _content_mac(key: bytes, content: str) -> bytes:
    """Keyed with the space's own key: the store's key stands beside the data, and would let a short text be guessed."""
    return keyed_once(derived(key, "beetle content"), "private content", content.encode())


def _damaged(what: str) -> IntegrityViolation:
    return IntegrityViolation(reason=f"{what} does not open: it was changed, or belongs elsewhere")
