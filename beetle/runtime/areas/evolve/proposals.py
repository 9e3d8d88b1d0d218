"""What becomes of open proposals when something else goes: text about what was erased is erased with it."""

from __future__ import annotations

from collections.abc import Iterable

from beetle.contracts.refs import format_ref, parse_ref
from beetle.domain.governance import normalised
from beetle.runtime.pipeline.invocation import Invocation
from beetle.store import candidates, long_term, proposals
from beetle.store.engine.transaction import Reading
from beetle.store.engine.write_transaction import WriteTransaction
from beetle.store.event_places import Matter
from beetle.store.proposals import ProposalRow, ProposalText

DAY_US = 86_400_000_000


def drop(invocation: Invocation, tx: WriteTransaction, rows: Iterable[ProposalRow], why: str) -> int:
    """Close open proposals without a change; how many they were."""
    closed = 0
    for row in rows:
        proposals.close(tx, row, "dropped", why)
        # The name of a skill that never was is a word like others.
        if why == "forgotten" and row.kind == "skill_create":
            proposals.forget_name(tx, row)
        told = {"proposal_id": row.proposal_id, "kind": row.kind, "reason": why}
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
    """Drop the open proposals that nobody decided for as long as the profile lets a deferred candidate wait."""
    before = tx.now - invocation.shared.profile.budgets.deferred_days * DAY_US
    return drop(invocation, tx, (row for row in proposals.every_open(tx, space) if row.created_at < before), "expired")


def saying(tx: Reading, space: int, words: Iterable[str]) -> list[ProposalRow]:
    """The open proposals that hold every one of some normalised words, as `said_in`."""
    wanted = list(words)
    found: list[ProposalRow] = []
    for row, text in open_texts(tx, space) if wanted else ():
        said = normalised(said_in(row, text))
        if all(word in said for word in wanted):
            found.append(row)
    return found


def said_in(row: ProposalRow, text: ProposalText) -> str:
    """What a proposal says: its target, what it would write, why, and what it cites that is no ref."""
    cited = (each for each in text.evidence if parse_ref(each) is None)
    return "\n".join([row.target or "", *(str(value) for value in text.change.values()), text.rationale, *cited])


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
