"""Proposals by their names, and what becomes of open ones when something else goes.

A proposal that was made unseen by whoever made a later one takes no name from it. The later one has an id of its own
then, the name with a keyed mark; it is called by its name to all who may not know of the other, and by its id to the
others.

A name means one proposal to a caller for good, so that nobody submits another than was looked at: one that was made for
all to see keeps its name, also from those who may not see the fact any more that it is about.
"""

from __future__ import annotations

from collections.abc import Iterable

from beetle.contracts.codec import pack
from beetle.contracts.refs import format_ref, parse_ref
from beetle.domain.digest import keyed
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.planes.query_words import QueryWords, leaves
from beetle.store import candidates, long_term, proposals
from beetle.store.engine.transaction import Reading
from beetle.store.engine.write_transaction import WriteTransaction
from beetle.store.event_places import Matter
from beetle.store.proposals import ProposalRow, ProposalText

DAY_US = 86_400_000_000
MARK_BYTES = 8
MOST_DROPPED = 1000
"""Most proposals that one write drops because they have expired, of those that its caller may know of."""


def given_name(invocation: Invocation, proposal_id: str) -> str:
    """The name that a proposal was given."""
    name, _, mark = proposal_id.rpartition("~")
    number = mark.partition("-")[0]
    return name if name and number.isdecimal() and mark == _mark(invocation, name, number) else proposal_id


def id_apart(invocation: Invocation, tx: Reading, space: int, name: str) -> str:
    """An id of its own for one more proposal of a name."""
    # No proposal is ever taken out of its table.
    return f"{name}~{_mark(invocation, name, str(len(_apart(invocation, tx, space, name))))}"


def _mark(invocation: Invocation, name: str, number: str) -> str:
    """Nobody makes one up who does not know the store's key."""
    said = pack((invocation.space_id, name, number))
    return f"{number}-{keyed(invocation.key, 'proposal name', said)[:MARK_BYTES].hex()}"


def _apart(invocation: Invocation, tx: Reading, space: int, name: str) -> list[ProposalRow]:
    found = proposals.beginning(tx, space, name)
    return [row for row in found if given_name(invocation, row.proposal_id) == name]


def is_known(invocation: Invocation, tx: Reading, space: int, row: ProposalRow) -> bool:
    """Whether the caller may know of a proposal, through whatever view."""
    return is_seen(tx, space, row, private=invocation.sees_private)


def holder(invocation: Invocation, tx: Reading, space: int, name: str) -> ProposalRow | None:
    """The proposal that has a name for the caller: that is known to it, or once was to everybody."""
    row = proposals.find(tx, space, name)
    rows = ([] if row is None else [row]) + _apart(invocation, tx, space, name)
    return next((row for row in rows if row.visibility == "shared" or is_known(invocation, tx, space, row)), None)


def named(invocation: Invocation, tx: Reading, space: int, name: str) -> ProposalRow | None:
    """The proposal that the caller knows by a name."""
    row = holder(invocation, tx, space, name)
    return row if row is not None and is_known(invocation, tx, space, row) else None


def name_of(invocation: Invocation, tx: Reading, space: int, row: ProposalRow) -> str:
    """By what name the caller knows a proposal."""
    name = given_name(invocation, row.proposal_id)
    return name if named(invocation, tx, space, name) == row else row.proposal_id


def event_name(invocation: Invocation, row: ProposalRow) -> str:
    """By what name an event tells of a proposal: one that everybody may read, by that which was given."""
    return given_name(invocation, row.proposal_id) if row.visibility == "shared" else row.proposal_id


def drop(invocation: Invocation, tx: WriteTransaction, rows: Iterable[ProposalRow], why: str) -> int:
    """Close open proposals without a change; how many they were."""
    closed = 0
    for row in rows:
        proposals.close(tx, row, "dropped", why)
        # The name of a skill that never was is a word like others.
        if why == "forgotten" and row.kind == "skill_create":
            proposals.forget_name(tx, row)
        told = {"proposal_id": event_name(invocation, row), "kind": row.kind, "reason": why}
        tx.log(invocation.event("memory", "proposal_dropped", matter_of(row), **told))
        closed += 1
    return closed


def matter_of(row: ProposalRow) -> Matter:
    """Of whose matter an event about a proposal tells."""
    return "shared" if row.visibility == "shared" else "private"


def drop_about(invocation: Invocation, tx: WriteTransaction, space: int, targets: Iterable[str]) -> int:
    """Drop the open proposals about skills (by full name) or facts (by ref) that are erased; how many they were."""
    gone = set(targets)
    return drop(invocation, tx, (row for row in proposals.every_open(tx, space) if row.target in gone), "target_erased")


def drop_unfounded(invocation: Invocation, tx: WriteTransaction, space: int) -> int:
    """Drop the open proposals that rest on turns of which content was erased: they may quote it."""
    found = [
        row
        for row, text in open_texts(tx, space)
        if any(candidates.cites_erased(tx, space, ref) for ref in text.evidence)
    ]
    return drop(invocation, tx, found, "evidence_erased")


def drop_citing_conversation(
    invocation: Invocation, tx: WriteTransaction, space: int, channel: str, conversation: str
) -> int:
    """Drop the open proposals that rest on anything of a conversation which is taken away."""
    gone = format_ref("evidence", channel, conversation) + "/"
    found = [row for row, text in open_texts(tx, space) if any(ref.startswith(gone) for ref in text.evidence)]
    return drop(invocation, tx, found, "evidence_erased")


def drop_all(invocation: Invocation, tx: WriteTransaction, space: int) -> int:
    """Drop every open proposal of a space whose memory is replaced."""
    return drop(invocation, tx, proposals.every_open(tx, space), "target_erased")


def drop_expired(invocation: Invocation, tx: WriteTransaction, space: int) -> int:
    """Drop the open proposals that nobody decided for as long as the profile lets a deferred candidate wait; how many
    they were that the caller may know of. Of many the oldest: a write after a long sleep is no slower than others.
    """
    before = tx.now - invocation.shared.profile.budgets.deferred_days * DAY_US
    dropped = 0
    for row in proposals.oldest_open(tx, space, private=invocation.sees_private, most=MOST_DROPPED):
        if row.created_at < before:
            known = is_known(invocation, tx, space, row)
            by = invocation if known else invocation.on_behalf("private", row.principal)
            dropped += known * drop(by, tx, [row], "expired")
    return dropped


def saying(tx: Reading, space: int, words: QueryWords) -> list[ProposalRow]:
    """The open proposals that hold every one of some words, as `texts_of`."""
    return [row for row, text in open_texts(tx, space) if words.are_in(*texts_of(row, text))] if words else []


def texts_of(row: ProposalRow, text: ProposalText) -> tuple[str, ...]:
    """What a proposal says: its target, what it would write, why, and what it cites, as far as these are no refs."""
    named = [each for each in (row.target or "", *text.evidence) if parse_ref(each) is None]
    return *leaves(text.change), text.rationale, *named


def is_seen(tx: Reading, space: int, row: ProposalRow, *, private: bool) -> bool:
    """Whether who sees private facts, or not, may know of a proposal: one about a private fact is private itself."""
    if private or row.visibility == "private":
        return private
    named = None if row.target is None or not row.kind.startswith("fact_") else parse_ref(row.target)
    fact = None if named is None else long_term.find_fact(tx, space, named.segments[0])
    return fact is None or fact.visibility == "shared"


def open_texts(tx: Reading, space: int) -> Iterable[tuple[ProposalRow, ProposalText]]:
    """The open proposals with what they say."""
    for row in proposals.every_open(tx, space):
        text = proposals.text_of(tx, row.proposal)
        if text is not None:
            yield row, text
