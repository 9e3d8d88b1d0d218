"""Taking a chat or a space out: what it holds, checked against the profile, in an envelope."""

from __future__ import annotations

from typing import NamedTuple

from beetle.contracts.codec import pack
from beetle.contracts.continuity_records import Body, EventFingerprint, Named, Policy, Sealing
from beetle.contracts.errors import InvalidRequest, NotFound, PayloadTooLarge
from beetle.memory.continuity import belongs_to, close_envelope
from beetle.runtime import passphrase, private
from beetle.runtime.continuity.gather import Chat, Gathering, Open, Where
from beetle.runtime.handling import Context
from beetle.store import evidence
from beetle.store.event_log import read_head
from beetle.store.private import ItemRow
from beetle.store.transaction import Reading


class Taken(NamedTuple):
    """What was taken out."""

    data: bytes
    counts: dict[str, int]
    left_out: dict[str, int]
    state_fingerprint: str


def check_passphrase(include_private: bool, words: str | None) -> None:
    """What is private is sealed.

    Raises:
        InvalidRequest: private material is asked for without a passphrase.
    """
    if include_private and words is None:
        raise InvalidRequest(
            reason="private material leaves only sealed, and there is no passphrase to seal it with",
            hint="give a passphrase of at least 8 characters, and keep it: without it nobody opens the export",
            path="$.args.passphrase",
        )


def take_out(context: Context, tx: Reading, chat: Chat | None, *, include_private: bool, words: str | None) -> Taken:
    """A chat's memory, or the whole space's, as the bytes of an envelope.

    Raises:
        NotFound: there is nothing of that chat.
        PayloadTooLarge: it is over the profile's export_bytes.
        PrivacyDenied: private material is asked for, and the device identity cannot be used.
    """
    if include_private:
        private.require(context)
    most = context.shared.profile.budgets.export_bytes
    meter = _Meter(most)
    where = Where(context.space_id, chat)
    sort = "private" if include_private else "public"
    gathering = Gathering(tx, where, sort, opener(context, tx) if include_private else None, meter.spend)
    context.progress.plan(("gather", "close"))
    context.progress.step("gather")
    gathered = gathering.run()
    context.progress.step("close")
    records, left_out = gathered.records, dict(sorted(gathered.left_out.items()))
    counts = gathered.counts
    if chat is not None and not counts and not left_out:
        raise NotFound(kind="chat", name=chat.chat_id, listing="`beetle transcript conversations` lists what is there")
    fingerprint = gathered.fingerprint()
    head = read_head(tx)
    body = pack(
        Body(
            schema=1,
            at=context.now,
            scope=_named(where),
            policy=Policy(include_private=include_private, left_out=left_out),
            counts=counts,
            state_fingerprint=fingerprint,
            event_fingerprint=EventFingerprint(rows=head.seq, head=head.hash.hex()),
            records=records,
        )
    )
    meter.check(len(body))
    data = _enclosed("space" if chat is None else "chat", body, words)
    meter.check(len(data))
    return Taken(data, counts, left_out, fingerprint)


def _enclosed(kind: str, body: bytes, words: str | None) -> bytes:
    if words is None:
        return close_envelope(kind, None, body)
    sealing = Sealing(
        cipher="chacha20-poly1305",
        kdf="scrypt",
        n=passphrase.SCRYPT_N,
        r=passphrase.SCRYPT_R,
        p=passphrase.SCRYPT_P,
        salt=passphrase.fresh_salt(),
        nonce=passphrase.fresh_nonce(),
    )
    sealed = passphrase.seal(words, sealing.salt, sealing.nonce, body, belongs_to(kind, sealing))
    return close_envelope(kind, sealing, sealed)


def _named(where: Where) -> Named:
    chat = where.chat
    if chat is None:
        return Named(memory_space_id=where.memory_space_id)
    return Named(
        memory_space_id=where.memory_space_id,
        channel=chat.channel,
        conversation_id=chat.conversation_id,
        chat_id=chat.chat_id,
    )


def opener(context: Context, tx: Reading) -> Open:
    """Opens the private items of the call's space."""
    space = evidence.find_space(tx, context.space_id)

    def open_item(row: ItemRow) -> str:
        assert space is not None, "an item belongs to a space"
        return private.content_of(context, tx, space, row)

    return open_item


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
                hint="take out single chats, or use a profile with more export_bytes",
            )  # fmt: skip
