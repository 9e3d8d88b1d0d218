"""Taking a chat or a space out: what it holds, checked against the profile, in an envelope."""

from __future__ import annotations

from functools import partial
from typing import Any

from beetle.contracts.codec import pack
from beetle.contracts.continuity import MemoryExportRequest, MemorySpaceExportRequest
from beetle.contracts.continuity_records import Body, EventFingerprint, Named, Policy, Sealing
from beetle.contracts.errors import IntegrityViolation, InvalidRequest, NotFound, PayloadTooLarge
from beetle.domain.continuity import belongs_to, close_envelope
from beetle.runtime.areas import event_log
from beetle.runtime.areas.continuity.gather import gather
from beetle.runtime.areas.continuity.scope import chat_of
from beetle.runtime.areas.governance import queue
from beetle.runtime.host import passphrase, signed_text
from beetle.runtime.host.identity import Keys
from beetle.runtime.host.signed_text import ARCHIVE
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.planes import sealed_items
from beetle.runtime.planes.gathering import Gathering, Open, Where
from beetle.store import candidates, evidence
from beetle.store.engine.transaction import Reading
from beetle.store.private import ItemRow
from beetle.store.sight import ALL


def export_records(
    invocation: Invocation, tx: Reading, request: MemoryExportRequest | MemorySpaceExportRequest
) -> tuple[bytes, dict[str, Any]]:
    """A chat's memory, or the whole space's, as the bytes of an envelope, and what either report says of them.

    Raises:
        InvalidRequest: private material is asked for without a passphrase.
        NotFound: there is nothing of that chat.
        PayloadTooLarge: it is over the profile's export_bytes.
        PrivacyDenied: private material is asked for, and the device identity cannot be used.
    """
    include_private, words = request.include_private, request.passphrase
    _check_passphrase(request)
    chat = chat_of(invocation, tx, request.chat_id) if isinstance(request, MemoryExportRequest) else None
    if include_private:
        sealed_items.require(invocation)
    most = invocation.shared.profile.budgets.export_bytes
    meter = _Meter(most)
    where = Where(invocation.space_id, chat)
    sort = "private" if include_private else "public"
    gathering = Gathering(
        tx,
        where,
        sort,
        opener(invocation, tx) if include_private else None,
        meter.spend,
        key=invocation.key,
        sight=ALL if invocation.caller.is_operator else invocation.sight,
    )
    gathering.accesses = invocation.shared.chunk_accesses.added_to
    invocation.progress.plan(("gather", "close"))
    invocation.progress.step("gather")
    gathered = gather(gathering)
    invocation.progress.step("close")
    records, left_out = gathered.records, dict(sorted(gathered.left_out.items()))
    counts = gathered.counts
    if chat is not None and not counts and not left_out:
        raise NotFound(
            kind="chat", name=chat.chat_id, listing="`beetle transcript conversations` lists the conversations"
        )
    fingerprint = gathered.fingerprint()
    log = event_log.log_state(invocation, tx)
    body = pack(
        Body(
            schema=1,
            at=invocation.now,
            scope=Named(memory_space_id=where.memory_space_id, **({} if chat is None else chat._asdict())),
            policy=Policy(include_private=include_private, left_out=left_out),
            counts=counts,
            state_fingerprint=fingerprint,
            event_fingerprint=EventFingerprint(rows=log.rows, head=log.head),
            records=records,
        )
    )
    meter.check(len(body))
    keys = invocation.shared.identity.keys()
    data = _enclosed("space" if chat is None else "chat", body, words, keys)
    meter.check(len(data))
    said = {"counts": counts, "left_out": left_out, "state_fingerprint": fingerprint}
    device = None if keys is None else keys.fingerprint
    return data, {"sealed": words is not None, "device": device, **said}


def _check_passphrase(request: MemoryExportRequest | MemorySpaceExportRequest) -> None:
    if request.include_private and request.passphrase is None:
        raise InvalidRequest(
            reason="private material is exported only when encrypted, and no passphrase is given",
            hint="give a passphrase of at least 8 characters, and keep it: the export cannot be opened without it",
            path="$.args.passphrase",
        )


def _enclosed(kind: str, body: bytes, words: str | None, keys: Keys | None) -> bytes:
    sign = None if keys is None else partial(signed_text.sign_digest, keys, ARCHIVE)
    if words is None:
        return close_envelope(kind, None, body, sign)
    sealing = Sealing(
        cipher="chacha20-poly1305",
        kdf="scrypt",
        n=passphrase.SCRYPT_N,
        r=passphrase.SCRYPT_R,
        p=passphrase.SCRYPT_P,
        salt=passphrase.fresh_salt(),
        nonce=passphrase.fresh_nonce(),
    )
    bound = belongs_to(sign is not None, kind, sealing)
    return close_envelope(kind, sealing, passphrase.seal(words, sealing.salt, sealing.nonce, body, bound), sign)


def opener(invocation: Invocation, tx: Reading) -> Open:
    """Opens what is sealed in the call's space."""
    space = evidence.find_space(tx, invocation.space_id)

    def open_item(row: ItemRow) -> str:
        assert space is not None, "an item belongs to a space"
        return sealed_items.content_of(invocation, tx, space, row)

    def open_waiting(row: candidates.Waiting) -> candidates.Body:
        assert space is not None, "a candidate belongs to a space"
        body = queue.body_of(invocation, tx, space, row)
        if body is None:
            raise IntegrityViolation(
                reason=f"the text of the waiting candidate {row.waiting_id} does not open",
                hint="`beetle verify` shows what is damaged",
            )
        return body

    return Open(open_item, open_waiting)


class _Meter:
    """Counts what is read, and refuses before more than may leave is held in memory."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._spent = 0

    def spend(self, characters: int) -> None:
        self._spent += characters
        self.check(self._spent)

    def check(self, size: int) -> None:
        if size > self._most:
            raise PayloadTooLarge(
                what="what is to be taken out", maximum=self._most, unit="bytes", limit="export_bytes",
                hint="export single chats, or use a profile with a larger export_bytes",
            )  # fmt: skip
