"""The private plane: private-garden and soul-candidate material, sealed with a key of its space.

The key of a space is wrapped by the device identity. Without a usable identity nothing is kept and nothing is shown:
no text of this plane, and no plain digest of it, stands in any table, index, event, receipt, log or error.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from beetle.contracts.errors import IntegrityViolation, PrivacyDenied
from beetle.contracts.private import PrivatePlane, PrivatePrivacy
from beetle.memory.digest import keyed
from beetle.runtime.handling import Context
from beetle.runtime.identity import Keys, derived, seal, unseal
from beetle.store import private
from beetle.store.private import ItemRow, NewItem, SealedRow
from beetle.store.transaction import Reading
from beetle.store.verify import Finding
from beetle.store.writer import WriteTransaction

KEY_BYTES = 32
FINDINGS = 100
STATES = {"private_garden": "kept", "soul_candidate": "handoff"}


def available(context: Context) -> str | None:
    """Why the private plane can keep nothing now, or None when it can.

    Loads what sealing takes: call it before a transaction of the writer.
    """
    if context.shared.identity.keys() is not None:
        return None
    return _refusal(context).message


class Words(NamedTuple):
    """A text for the private plane. `at` is when it was kept first, in microseconds: now, when it is None."""

    plane: PrivatePlane
    privacy: PrivatePrivacy
    authority: str
    candidate_id: str
    content: str
    at: int | None = None


def keep(context: Context, tx: WriteTransaction, space: int, words: Words) -> str:
    """Seal and keep a text; its record id. The same text in the same plane is kept once: its id is answered again.

    `space` is the key of the call's own space. The caller logs the event, with the record id and kinds.

    Raises:
        PrivacyDenied: there is no usable identity.
        IntegrityViolation: the space's key does not open.
    """
    key = _space_key(context, tx, space)
    if key is None:
        keys = _keys(context)
        key = os.urandom(KEY_BYTES)
        wrapped = seal(keys.wrapping, key, _of_space(context.space_id))
        private.add_space_key(tx, space, wrapped, keys.fingerprint, tx.now)
    content_mac = _content_mac(key, words.content)
    if (there := private.item_saying(tx, space, content_mac, words.plane, words.privacy)) is not None:
        return there
    record_id = context.new_id("p")
    item = NewItem(
        record_id=record_id,
        candidate_id=words.candidate_id,
        plane=words.plane,
        privacy=words.privacy,
        authority=words.authority,
        state=STATES[words.plane],
        content_mac=content_mac,
        length=len(words.content),
        sealed=seal(key, words.content.encode(), _of_item(context.space_id, record_id, words.plane)),
        principal=context.caller.name,
        at=tx.now if words.at is None else words.at,
    )
    private.add_item(tx, space, item)
    return record_id


def saying(
    context: Context, tx: Reading, space: int, plane: PrivatePlane, privacy: PrivatePrivacy, content: str
) -> str | None:
    """Record id of an item that says just this already.

    Raises:
        PrivacyDenied, IntegrityViolation: as `keep`.
    """
    key = _space_key(context, tx, space)
    return None if key is None else private.item_saying(tx, space, _content_mac(key, content), plane, privacy)


def content_of(context: Context, tx: Reading, space: int, item: ItemRow) -> str:
    """The text of an item.

    Raises:
        PrivacyDenied: there is no usable identity.
        IntegrityViolation: the item or its space's key was changed, or belongs to another record, space or device.
    """
    key = _space_key(context, tx, space)
    text = None if key is None else unseal(key, item.sealed, _of_item(context.space_id, item.record_id, item.plane))
    if text is None:
        raise _damaged(f"the private record {item.record_id}")
    return text.decode()


def require(context: Context) -> None:
    """Refuse unless the plane can be read.

    Raises:
        PrivacyDenied: there is no usable identity.
    """
    _keys(context)


def check_items(context: Context, tx: Reading) -> tuple[int, list[Finding]]:
    """Open every item of every space: how many there are, and those that do not open.

    Without a usable identity nothing can be opened, and only items whose space has no key are found.
    """
    findings: list[Finding] = []
    count = 0
    keys: Keys | None = None
    opened: dict[str, bytes | None] = {}
    for each in private.all_items(tx):
        # Loads what opens a seal: only where there is one.
        keys = keys if count else context.shared.identity.keys()
        count += 1
        if (problem := _problem(keys, opened, each)) is not None and len(findings) < FINDINGS:
            findings.append(Finding("private", f"record {each.record_id}", problem))
    return count, findings


def _problem(keys: Keys | None, opened: dict[str, bytes | None], each: SealedRow) -> str | None:
    """Why an item does not open; `opened` keeps the keys of the spaces that were met."""
    if each.wrapped is None:
        return "its space has no key"
    if keys is None:
        return None
    where = each.memory_space_id
    if where not in opened:
        opened[where] = unseal(keys.wrapping, each.wrapped, _of_space(where))
    key = opened[where]
    bound = _of_item(where, each.record_id, each.plane)
    return "does not open with its key" if key is None or unseal(key, each.sealed, bound) is None else None


def _keys(context: Context) -> Keys:
    keys = context.shared.identity.keys()
    if keys is None:
        raise _refusal(context)
    return keys


def _refusal(context: Context) -> PrivacyDenied:
    identity = context.shared.identity
    state = identity.state
    problem, advice = identity.problem(state) or ("the key file was not usable a moment ago", "try again")
    hint = f"{advice}; `beetle doctor` tells where it is"
    return PrivacyDenied(reason=f"the private plane is closed: {problem}", hint=hint, state=state)


def _space_key(context: Context, tx: Reading, space: int) -> bytes | None:
    """The key of the call's space, or None when it has none yet."""
    keys = _keys(context)
    wrapped = private.space_key(tx, space)
    if wrapped is None:
        return None
    key = unseal(keys.wrapping, wrapped, _of_space(context.space_id))
    if key is None:
        raise _damaged("the key of this space's private plane")
    return key


def _content_mac(key: bytes, content: str) -> bytes:
    """Keyed with the space's own key: the store's key stands beside the data, and would let a short text be guessed."""
    return keyed(derived(key, "beetle content"), "private content", content.encode())


def _damaged(what: str) -> IntegrityViolation:
    return IntegrityViolation(reason=f"{what} does not open: it was changed, or belongs elsewhere")


def _of_space(memory_space_id: str) -> bytes:
    return b"space\0" + memory_space_id.encode()


def _of_item(memory_space_id: str, record_id: str, plane: str) -> bytes:
    return b"\0".join((b"item", memory_space_id.encode(), record_id.encode(), plane.encode()))
