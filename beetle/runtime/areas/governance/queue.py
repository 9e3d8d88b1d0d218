"""The queue of deferred candidates: how one is kept and read, how much there is room for, and how one leaves.

A space has a queue of each level: what everybody of it may know of, private facts, what the private plane holds. Each
has the whole of the profile's budgets to itself, so that what a caller may not see takes no room from what it sees.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from beetle.contracts.codec import pack, unpack_any
from beetle.contracts.governance import Privacy
from beetle.contracts.refs import format_ref
from beetle.domain.governance import SEALED, STRENGTH, VISIBILITY
from beetle.runtime.areas.governance.targets import Claim
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.planes import sealed_items
from beetle.runtime.planes.long_term import content_mac, topic_mac
from beetle.store import candidates, private
from beetle.store.candidates import NOTHING, Body, Fill, Waiting
from beetle.store.engine.transaction import Reading
from beetle.store.engine.write_transaction import WriteTransaction
from beetle.store.event_places import LEVELS, Level, Matter

FEW = 16
"""So many are read first, when there is no room."""
DAY_US = 86_400_000_000
MOST_DROPPED = 1000
"""Most candidates that one write takes out, so that a write after a long sleep is no slower than others."""


def level_of(target: str, privacy: str) -> Level:
    """Who may know of a candidate that waits."""
    if target in SEALED or privacy == "soul_private":
        return "sealed"
    return "private" if VISIBILITY[cast(Privacy, privacy)] == "private" else "shared"


def matter_of(candidate: Claim | Waiting) -> Matter:
    """Of whose matter an event about a candidate tells."""
    if candidate.target in SEALED:
        return "sealed"
    return "private" if candidate.privacy in ("subject_private", "soul_private") else "shared"


def knows(invocation: Invocation, level: Level) -> bool:
    """Whether the caller may know of what waits at a level."""
    return {"shared": True, "private": invocation.sees_private, "sealed": invocation.reads_private}[level]


def judged_for(invocation: Invocation, row: Waiting) -> Invocation:
    """The call as it judges a candidate that waits: with no less sight than of the candidate's own level, whoever
    brought it about.
    """
    if invocation.behalf is None:
        return invocation if knows(invocation, row.level) else invocation.on_behalf(row.level, row.principal)
    level = LEVELS[max(LEVELS.index(each) for each in (invocation.behalf.level, row.level))]
    return invocation.on_behalf(level, row.principal)


def is_keepable(invocation: Invocation, claim: Claim) -> bool:
    """Whether a claim can wait: what is private is sealed while it does, which takes a usable identity."""
    return level_of(claim.target, claim.privacy) == "shared" or sealed_items.available(invocation) is None


def body_of(invocation: Invocation, tx: Reading, space: int, row: Waiting) -> Body | None:
    """What a candidate says; nothing, where a private item holds it, and None where it cannot be read now."""
    found = candidates.body_of(tx, row.candidate)
    if found is None:
        return NOTHING
    if found.sealed is None:
        return found.body
    text = None if found.closed else sealed_items.open_waiting(invocation, tx, space, row.waiting_id, found.sealed)
    if text is None:
        return None
    topic, content, keywords = unpack_any(text)
    return Body(topic, content, tuple(keywords))


def claim_of(invocation: Invocation, row: Waiting, body: Body) -> Claim:
    """A candidate of the queue as it is judged."""
    in_item = row.record_id is not None
    return Claim(
        candidate_id=row.candidate_id,
        authority=row.authority,
        target=row.target,
        privacy=cast(Privacy, row.privacy),
        kind=row.kind,
        topic=body.topic,
        content=body.content,
        keywords=body.keywords,
        confidence=row.confidence,
        evidence=row.evidence,
        chat_id=row.chat_id,
        extractor=row.extractor,
        topic_mac=None if in_item else topic_mac(invocation.key, body.topic),
        content_mac=None if in_item else content_mac(invocation.key, body.content),
        record_id=row.record_id,
        by_operator=bool(row.by_operator),
    )


def waiting_row(invocation: Invocation, claim: Claim, reason: str, at: int) -> Waiting:
    """A claim as the queue keeps it: without digests, where a private item holds its text."""
    sealed = claim.target in SEALED
    return Waiting(
        candidate=0,
        candidate_id=claim.candidate_id,
        target=claim.target,
        kind=claim.kind,
        topic_mac=None if sealed else claim.topic_mac,
        content_mac=None if sealed else claim.content_mac,
        privacy=claim.privacy,
        authority=claim.authority,
        reason=reason,
        chat_id=claim.chat_id,
        principal=invocation.caller.name,
        confidence=claim.confidence,
        extractor=claim.extractor,
        evidence=claim.evidence,
        record_id=claim.record_id,
        at=at,
        by_operator=claim.by_operator,
        waiting_id=invocation.new_id("w"),
        level=level_of(claim.target, claim.privacy),
        bytes=size_of(claim),
    )


def size_of(claim: Claim) -> int:
    """What a claim takes of the queue's bytes: its words and what it cites."""
    return sum(len(each.encode()) for each in (claim.topic, claim.content, *claim.keywords, *claim.evidence))


def keep(
    invocation: Invocation, tx: WriteTransaction, space: int, row: Waiting, body: Body | None
) -> tuple[Waiting, bool]:
    """Put a candidate into the queue, a private fact sealed; as it waits there, and whether it is new there.

    Args:
        body: None where a private item holds its text.
    """
    sealed: bytes | None = None
    if body is not None and row.level != "shared":
        sealed = sealed_items.seal_waiting(invocation, tx, space, row.waiting_id, pack(tuple(body)))
        topic, content = (
            sealed_items.blinded(invocation, tx, space, each) for each in (row.topic_mac, row.content_mac)
        )
        row, body = row._replace(topic_mac=topic, content_mac=content), NOTHING
    if (there := candidates.waits_already(tx, space, row)) is not None:
        return there, False
    return row._replace(candidate=candidates.defer(tx, space, row, body, sealed)), True


def make_room(invocation: Invocation, tx: WriteTransaction, space: int, row: Waiting) -> bool:
    """Whether a candidate has room in the queue of its level: the weakest that wait, and of these the oldest, are
    dropped for it, but never one that is stronger than it.
    """
    budgets = invocation.shared.profile.budgets
    there = candidates.fill(tx, space, row.level)
    over = Fill(there.candidates + 1 - budgets.waiting_candidates, there.bytes + row.bytes - budgets.waiting_bytes)
    going: list[Waiting] = []
    fits = row.bytes <= budgets.waiting_bytes and max(over) <= 0
    for most in (FEW, MOST_DROPPED) if row.bytes <= budgets.waiting_bytes else ():
        if not fits:
            going, fits = _going(tx, space, row, over, most)
    # A queue that was filled under a larger profile shrinks by so many at a time.
    for each in going if fits or len(going) >= MOST_DROPPED else ():
        drop(invocation, tx, space, each, "queue_full")
    return fits


def _going(tx: Reading, space: int, row: Waiting, over: Fill, most: int) -> tuple[list[Waiting], bool]:
    """What is to go for a candidate that is `over` the budgets, at most so many, and whether that is enough."""
    going: list[Waiting] = []
    for rank in range(STRENGTH[row.authority] + 1):
        names = [each for each, strength in STRENGTH.items() if strength == rank]
        oldest = [each for name in names for each in candidates.oldest(tx, space, row.level, name, most)]
        for each in sorted(oldest, key=lambda each: (each.at, each.candidate)):
            if max(over) <= 0 or len(going) >= most:
                return going, max(over) <= 0
            going.append(each)
            over = Fill(over.candidates - 1, over.bytes - each.bytes)
    return going, max(over) <= 0


def oldest_allowed(invocation: Invocation, tx: WriteTransaction) -> int:
    """Since when a candidate may have waited."""
    return tx.now - invocation.shared.profile.budgets.deferred_days * DAY_US


def drop_expired(invocation: Invocation, tx: WriteTransaction, space: int) -> int:
    """Drop the candidates that have waited for longer than the profile lets them; how many."""
    going = candidates.expired(tx, space, oldest_allowed(invocation, tx), MOST_DROPPED)
    for row in going:
        drop(judged_for(invocation, row), tx, space, row, "expired")
    return len(going)


def drop_citing(
    invocation: Invocation, tx: WriteTransaction, space: int, channel: str, conversation: str, turn_ids: Iterable[str]
) -> None:
    """Drop the candidates that rest on turns whose content was erased: they can never be accepted, and may quote it."""
    refs = {format_ref("evidence", channel, conversation, turn_id) for turn_id in turn_ids}
    for row in candidates.citing(tx, space, refs):
        drop(invocation, tx, space, row, "evidence_unavailable")


def drop_unfounded(invocation: Invocation, tx: WriteTransaction, space: int) -> None:
    """Drop the candidates that rest on any turn of which content was erased, for the same reason."""
    for row in candidates.every(tx, space):
        if any(candidates.cites_erased(tx, space, text) for text in row.evidence):
            drop(invocation, tx, space, row, "evidence_unavailable")


def drop(invocation: Invocation, tx: WriteTransaction, space: int, row: Waiting, reason: str) -> None:
    """Take a candidate out of the queue, undecided; the event says why."""
    take_out(tx, space, row)
    names = {"candidate_id": row.candidate_id, "waiting_id": row.waiting_id}
    subject = {**names, "target": row.target, "kind": row.kind, "waited_for": row.reason, "reason": reason}
    tx.log(invocation.event("memory", "candidate_dropped", matter_of(row), **subject))


def take_out(tx: WriteTransaction, space: int, row: Waiting) -> None:
    """Out of the queue; a sealed text that was kept for it alone goes too."""
    candidates.remove(tx, row.candidate)
    if row.record_id is None or candidates.holds(tx, space, row.record_id):
        return
    item = private.find_item(tx, space, row.record_id)
    if item is not None and item.state == "waiting":
        private.remove_item(tx, space, row.record_id)
