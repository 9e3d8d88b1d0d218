"""What may be believed: the rules that judge a candidate, and the words that they are made of. No clock, no I/O."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from unicodedata import normalize

from beetle.contracts.governance import Authority, FactVisibility, OutcomeName, Privacy, Reason, Target
from beetle.named_tuple import NamedTuple

STRENGTH: Mapping[str, int] = {
    "operator": 3, "user_asserted": 2, "tool_observed": 1, "host": 1, "assistant_claimed": 0,
}  # fmt: skip
"""How strong an authority is; a weaker one never overwrites a stronger one."""

VISIBILITY: Mapping[Privacy, FactVisibility] = {
    "public_runtime": "shared",
    "shared_with_subject": "shared",
    "subject_private": "private",
    "soul_private": "soul",
}

FITTING: Mapping[Target, frozenset[Privacy]] = {
    "long_term": frozenset({"public_runtime", "shared_with_subject", "subject_private"}),
    "shared_fact": frozenset({"public_runtime", "shared_with_subject"}),
    "procedural": frozenset({"public_runtime", "shared_with_subject"}),
    "private_garden": frozenset({"subject_private", "soul_private"}),
    "soul_candidate": frozenset({"soul_private"}),
}
"""The privacy classes that a target takes."""

SEALED: frozenset[str] = frozenset({"private_garden", "soul_candidate"})
"""Targets whose text is never kept but encrypted."""

ASSERTING_ROLES = frozenset({"user", "tool", "tool_result"})
"""Roles of messages beside which an assistant's claim may stand: somebody else said it, or a tool showed it."""

BEARING_ROLES = ASSERTING_ROLES | {"assistant", "tool_use", "other"}
"""Roles whose words can be evidence; a host's own instructions are evidence of nothing."""

ASSERTING_AUTHORITIES = frozenset({"operator", "user_asserted", "tool_observed"})

SLUG_LIMIT = 160
FIRST_LINE = 200


class EvidenceMessage(NamedTuple):
    """One message that a ref names. State: live, masked, deleted. `by_subject`: whether who speaks is whom it is about,
    as far as its actor tells.
    """

    role: str
    visibility: str
    state: str
    by_subject: bool = True


class Cited(NamedTuple):
    """One evidence ref and the messages it names: of a turn's ref all of the turn's, of an unknown one none."""

    ref: str
    turn: int | None
    messages: tuple[EvidenceMessage, ...]


class Standing(NamedTuple):
    """A current record of the candidate's target, kind and topic."""

    authority: str
    says_the_same: bool


class Case(NamedTuple):
    """All that the rules look at.

    `suppressed` and `paused`: what policies say of the candidate. `sealable`: whether the private plane can keep it.
    `borne`: whether the evidence says what the candidate says. `vouched`: whether a user or a tool has said the same
    since. `removed_by`: the authority that corrected or deleted this very value, if one did. `by_operator`: whether an
    operator wrote the candidate, and answers for it.
    """

    authority: str
    target: str
    privacy: str
    suppressed: bool
    paused: bool
    sealable: bool
    evidence: tuple[Cited, ...]
    standing: Standing | None
    vouched: bool = False
    borne: bool = True
    removed_by: str | None = None
    by_operator: bool = False


class Verdict(NamedTuple):
    outcome: OutcomeName
    reason: Reason


def judge(case: Case) -> Verdict:
    """The first rule that applies decides; their order is that of docs/governance.md.

    What a pause puts off must be kept until it ends; private material that cannot be sealed cannot be kept, so it is
    refused although rule 1 would have it wait.
    """
    unsealable = case.target in SEALED and not case.sealable
    if case.suppressed:
        return Verdict("rejected", "policy_suppressed")
    if case.paused:
        return Verdict("rejected", "private_unavailable") if unsealable else Verdict("deferred", "policy_paused")
    if not fits(case.target, case.privacy):
        return Verdict("rejected", "privacy_target_mismatch")
    if unsealable:
        return Verdict("rejected", "private_unavailable")
    if (trouble := evidence_trouble(case.evidence, case.privacy)) is not None:
        return Verdict("rejected", trouble)
    if case.target == "soul_candidate":
        return Verdict("deferred", "soul_handoff")
    if not case.vouched and not _is_asserted(case):
        return Verdict("deferred", "needs_assertion")
    if not case.borne and not case.vouched:
        return Verdict("deferred", "evidence_does_not_bear")
    if case.authority == "assistant_claimed" and not case.vouched:
        return Verdict("deferred", "needs_assertion")
    return _beside(case.authority, case.standing, case.removed_by)


def _is_asserted(case: Case) -> bool:
    """Rule 6: whether somebody other than the writer stands behind it, where the writer's word is not enough."""
    if case.authority == "user_asserted" and not case.by_operator:
        said = (message for each in case.evidence for message in each.messages)
        return any(message.role == "user" and message.by_subject for message in said)
    return case.authority != "assistant_claimed" or asserted(case.evidence)


def _beside(authority: str, standing: Standing | None, removed_by: str | None) -> Verdict:
    """Rules 9 to 13: what the record that stands there says, and who took this very value away."""
    if standing is not None and standing.says_the_same:
        return Verdict("accepted", "unchanged")
    if removed_by is not None and STRENGTH[removed_by] > STRENGTH[authority]:
        return Verdict("deferred", "weaker_authority")
    if standing is None:
        return Verdict("accepted", "created")
    if STRENGTH[standing.authority] > STRENGTH[authority]:
        return Verdict("deferred", "weaker_authority")
    return Verdict("accepted", "superseded")


def fits(target: str, privacy: str) -> bool:
    """Rule 2: whether a target takes a privacy class."""
    return any(target == name and privacy in taken for name, taken in FITTING.items())


def bearing_roles(authority: str) -> frozenset[str]:
    """Whose messages can bear a candidate of an authority: an assistant's words alone bear none that asserts."""
    if authority == "user_asserted":
        return frozenset({"user"})
    return ASSERTING_ROLES if authority in ("tool_observed", "assistant_claimed") else BEARING_ROLES


def evidence_trouble(evidence: Iterable[Cited], privacy: str) -> Reason | None:
    """Rule 4: why a candidate may not rest on what it cites, or None when it may."""
    cited = list(evidence)
    if any(not each.messages for each in cited):
        return "evidence_missing"
    messages = [message for each in cited for message in each.messages]
    return None if all(_available(message, privacy) for message in messages) else "evidence_unavailable"


def _available(message: EvidenceMessage, privacy: str) -> bool:
    """Live, and no more private than what is made of it; backend and operator material never becomes memory."""
    if message.state != "live":
        return False
    if message.visibility == "private":
        return privacy in ("subject_private", "soul_private")
    if message.visibility == "soul":
        return privacy == "soul_private"
    return message.visibility == "shared"


def asserted(evidence: Iterable[Cited]) -> bool:
    """Whether somebody other than the assistant stands behind it: a message of a user or a tool is cited."""
    return any(message.role in ASSERTING_ROLES for each in evidence for message in each.messages)


def extraction_authority(evidence: Iterable[Cited]) -> Authority:
    """Whose word an extracted item is: that of the strongest message it cites; the host's without any."""
    messages = [message for each in evidence for message in each.messages]
    roles = {message.role for message in messages}
    if any(message.role == "user" and message.by_subject for message in messages):
        return "user_asserted"
    if roles & ASSERTING_ROLES:
        return "tool_observed"
    return "assistant_claimed" if roles & {"assistant", "tool_use"} else "host"


def extraction_privacy(evidence: Iterable[Cited]) -> Privacy:
    """How private an extracted item is: as private as the most private message it cites."""
    private = any(message.visibility == "private" for each in evidence for message in each.messages)
    return "subject_private" if private else "shared_with_subject"


def normalised(text: str) -> str:
    """A text as it is compared: NFKC, without case, runs of white space as one blank, none at the ends.

    Folding case can undo the normal form, so it is brought into it once more.
    """
    return " ".join(normalize("NFKC", normalize("NFKC", text).casefold()).split())


def skill_name(topic: str, candidate_id: str) -> str:
    """The name, without its prefix, of the skill that a procedural candidate is about.

    A topic without a letter or digit names nothing, and the candidate's own id is taken.
    """
    slug = _slug(topic) or _slug(candidate_id) or "candidate"
    if len(slug) <= SLUG_LIMIT:
        return slug
    return f"{slug[:SLUG_LIMIT].rstrip('-')}-{hashlib.sha256(slug.encode()).hexdigest()[:8]}"


def _slug(text: str) -> str:
    return re.sub(r"[\W_]+", "-", normalised(text)).strip("-")


def first_line(text: str, most: int = FIRST_LINE) -> str:
    """The first line that is not blank, shortened to `most` characters."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return line if len(line) <= most else line[: most - 1] + "…"
