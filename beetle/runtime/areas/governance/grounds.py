"""Whether the messages that a claim cites say what it says, as far as its caller may know of them."""

from __future__ import annotations

from beetle.contracts.governance import Authority
from beetle.contracts.refs import evidence_named
from beetle.domain.digest import content_digest
from beetle.domain.governance import (
    ASSERTING_ROLES,
    BEARING_ROLES,
    SEALED,
    Cited,
    bearing_roles,
    extraction_authority,
)
from beetle.runtime.areas.governance.targets import Claim
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.planes import sealed_items
from beetle.store import candidates, private
from beetle.store.engine.transaction import Reading

USERS = frozenset({"user"})


def are_borne(invocation: Invocation, tx: Reading, space: int, claim: Claim) -> bool:
    """Whether its evidence bears a claim. An operator answers for what it says, and so does who cites nothing."""
    if claim.authority == "operator" or not claim.evidence:
        return True
    content = _content(invocation, tx, space, claim)
    return _bears(invocation, tx, space, content, claim.evidence, bearing_roles(claim.authority))


def authority_of_item(
    invocation: Invocation, tx: Reading, space: int, content: str, cited: tuple[Cited, ...]
) -> Authority:
    """Whose word an extracted item is: of the strongest messages that bear it, else of the strongest it cites."""
    refs = tuple(each.ref for each in cited)
    ranks: tuple[tuple[Authority, frozenset[str]], ...] = (
        ("user_asserted", USERS),
        ("tool_observed", ASSERTING_ROLES),
        ("assistant_claimed", BEARING_ROLES),
    )
    for authority, roles in ranks:
        if _bears(invocation, tx, space, content, refs, roles):
            return authority
    return extraction_authority(cited)


def _content(invocation: Invocation, tx: Reading, space: int, claim: Claim) -> str:
    """What a claim says; out of the queue a sealed one has its text in its private item alone."""
    if claim.target not in SEALED or claim.record_id is None or sealed_items.available(invocation) is not None:
        return claim.content
    item = private.find_item(tx, space, claim.record_id)
    if item is None or item.closed:
        return ""
    return sealed_items.content_of(invocation, tx, space, item)


def _bears(
    invocation: Invocation, tx: Reading, space: int, content: str, refs: tuple[str, ...], roles: frozenset[str]
) -> bool:
    # Imported when evidence is first weighed: a daemon starts without the lists of words.
    from beetle.domain.bearing import READ_CHARS, Said, bearing

    # What the caller may not see bears nothing: the outcome would tell whether a guess is right. Soul material is
    # nobody's to weigh.
    seen = ("shared", "private") if invocation.sees_private else ("shared",)
    said: list[Said] = []
    left = READ_CHARS
    for text in refs:
        ref = evidence_named(text)
        for row in [] if ref is None or left <= 0 else candidates.words_of_ref(tx, space, ref):
            if row.role not in roles or row.visibility not in seen or row.state != "live" or row.content is None:
                continue
            # A user's word is one's own: what one user says of another subject is an observation.
            if roles == USERS and not row.by_subject:
                continue
            if content_digest(invocation.key, row.content) == row.digest:
                said.append(Said(row.role, row.content, row.speaker))
                left -= len(row.content)
    return bearing(content, said).borne
