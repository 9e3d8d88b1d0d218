"""What is broken in a space's transcripts and in the links to them. Issues hold ids; nothing is changed here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby, islice, product
from typing import get_args

from beetle.contracts.common import ConversationRef
from beetle.contracts.refs import evidence_named, format_ref
from beetle.contracts.tool_parts import is_tail
from beetle.contracts.transcript_repair import IssueKind, Mended, Problem, TranscriptRepairIssue
from beetle.domain.digest import message_part, parts_digest
from beetle.named_tuple import NamedTuple
from beetle.runtime.host.sealing import sealer_of
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.planes import table
from beetle.runtime.planes.evidence import NAME, entry
from beetle.runtime.planes.proof import is_whole
from beetle.store import repair, seal_checks, turn_seals
from beetle.store.damaged_rows import is_readable
from beetle.store.engine.progress import Progress
from beetle.store.engine.transaction import Reading
from beetle.store.recall_index import Entry
from beetle.store.repair import ConversationKey, Counts, Link, Record
from beetle.store.seals import Sealer

NUMBERS: dict[str, int] = {problem: number for number, problem in enumerate(get_args(Problem))}
TWICE: tuple[Problem, ...] = ("sequence_twice", "turn_id_twice", "ordinal_twice", "message_id_twice")
"""In the order of the store's `TWICE_SQLS`."""
TURNS_AT_ONCE = 32
"""Turns, with their contents, that are looked at together."""
UNSURE_ACTORS = 6
"""Messages of a turn whose empty attribution may have been given or left out, up to which both are tried."""
TOLD_BY_A_MESSAGE: tuple[Problem, ...] = (
    "digest_mismatch", "other_conversation", "length_mismatch", "body_missing", "body_left",
)  # fmt: skip
"""Problems of a message that leave open whether its turn was changed besides."""
KINDS: dict[str, IssueKind] = {
    "turn_gone": "missing_source_turn",
    "message_gone": "missing_source_message",
    "record_gone": "orphan_derived_ref",
    "revision_gone": "orphan_derived_ref",
    "unknown_record": "orphan_derived_ref",
    "not_linked": "mismatched_source_key",
    "names_another_turn": "mismatched_source_key",
    "other_space": "mismatched_source_key",
    "message_of_another_turn": "mismatched_source_key",
    "other_conversation": "mismatched_source_key",
    **dict.fromkeys(TWICE, "duplicate_sequence"),
    "not_indexed": "index_mismatch",
    "indexed_though_withheld": "index_mismatch",
}
"""The kind of each problem; what is not named here is a corrupt record."""


class IssuePosition(NamedTuple):
    """Where an issue stands in the order of all: what a page's cursor is made of. All are keys and numbers."""

    part: int
    conversation: int
    check: int
    first: int
    second: int
    problem: int


class Issue(NamedTuple):
    """An issue with its place, what mends it (None: nothing safe does) and what it is about.

    `key` is the derived ref, the conversation or the message that is mended; `turn` the one to link it to.
    """

    position: IssuePosition
    problem: Problem
    mends: Mended | None = None
    key: int = 0
    turn: int = 0
    where: ConversationRef | None = None
    turn_id: str | None = None
    message_id: str | None = None
    ref: str | None = None
    derived: str | None = None

    @property
    def kind(self) -> IssueKind:
        return KINDS.get(self.problem, "corrupt_record")

    def shown(self) -> TranscriptRepairIssue:
        """As a report has it."""
        return TranscriptRepairIssue(
            kind=self.kind,
            problem=self.problem,
            repairable=self.mends is not None,
            ref=self.ref,
            conversation=self.where,
            turn_id=self.turn_id,
            message_id=self.message_id,
            derived=self.derived,
        )


class Proof(NamedTuple):
    """The store's key, of which the digests are, and what seals. Turns up to `unsealed` have no seal."""

    key: bytes
    sealer: Sealer
    unsealed: int


def proof_of(invocation: Invocation, tx: Reading) -> Proof:
    """What tells what was committed in this store."""
    sealer = sealer_of(invocation.key, invocation.shared.identity)
    return Proof(invocation.key, sealer, seal_checks.unsealed_turns(tx))


STEPS = ("derived_refs", "messages")
"""Of looking for issues."""


def issues(
    tx: Reading, proof: Proof, space: int, only: int | None, indexed: tuple[str, ...], progress: Progress
) -> Iterator[Issue]:
    """Every issue of a space, or of one conversation and the links to it, in no particular order.

    Args:
        proof: what tells what was committed from what was not.
        indexed: the visibilities that the recall index holds.
        progress: was given a plan of `STEPS`.
    """
    held = repair.conversations(tx, space, only)
    names = {(each.channel_id, each.conversation_id) for each in held}
    links = list(repair.links(tx, space))
    progress.step("derived_refs", of=len(links))
    for link in progress.through(links):
        if only is None or _about(link) & names:
            yield from link_issues(tx, space, link)
    progress.step("messages", of=sum(where.messages for where in held if type(where.messages) is int))
    looked = 0
    for where in held:
        yield from counts_issues(where, repair.counts(tx, where.conversation))
        for message, message_id, ordinal, turn_id in repair.strays(tx, where.conversation, space):
            stray: Problem = "turn_missing" if turn_id is None else "other_space"
            position = IssuePosition(1, where.conversation, 1, ordinal, message, NUMBERS[stray])
            yield Issue(position, stray, where=_ref(where), message_id=message_id)
        for number, key_held, turn_id, message_id in repair.twice(tx, where.conversation):
            position = IssuePosition(1, where.conversation, 2, number, key_held, NUMBERS[TWICE[number]])
            yield _at(where, position, TWICE[number], turn_id, message_id)
        groups = groupby(repair.records(tx, where.conversation), lambda each: (each.sequence, each.turn))
        turns = (list(group) for _, group in groups)
        while some := list(islice(turns, TURNS_AT_ONCE)):
            unsealed = _unsealed(tx, proof, [turn[0].turn for turn in some])
            for turn in some:
                yield from _turn(tx, proof, space, where, turn, indexed, sealed=turn[0].turn not in unsealed)
                looked += len(turn)
                progress.at(looked)


def _about(link: Link) -> set[tuple[str, str]]:
    """The conversations that a link is about: the one it names and the one that it is linked to."""
    found = {(link.channel_id, link.conversation_id)}
    named = evidence_named(link.evidence)
    if named is not None:
        found.add((named.channel_id, named.conversation_id))
    return {(channel, name) for channel, name in found if channel is not None and name is not None}


def link_issues(tx: Reading, space: int, link: Link) -> Iterator[Issue]:
    """What is wrong with one derived ref: its record, its source."""
    records = table.named_by(link.derived.partition(":")[0])
    gone = "unknown_record" if records is None else records.problem(tx, space, link.derived)
    if gone is not None:
        yield _link(link, gone, mends="dropped" if gone == "record_gone" else None)
    named = evidence_named(link.evidence)
    if named is None:
        return
    found = repair.turn_named(tx, space, named.channel_id, named.conversation_id, named.turn_id)
    linked = (link.space, link.channel_id, link.conversation_id, link.turn_id)
    if link.turn_id is not None and linked != (space, *named[:3]):
        yield _link(link, "other_space" if link.space != space else "names_another_turn")
    elif found is None:
        yield _link(link, "turn_gone")
        return
    elif link.turn_id is None:
        yield _link(link, "not_linked", mends="relinked", turn=found[0])
    if found is not None and named.message_id is not None:
        holder = repair.turn_of_message(tx, found[1], named.message_id)
        if holder is None:
            yield _link(link, "message_gone")
        elif holder != found[0]:
            yield _link(link, "message_of_another_turn")


def _link(link: Link, problem: Problem, *, mends: Mended | None = None, turn: int = 0) -> Issue:
    named = evidence_named(link.evidence)
    return Issue(
        IssuePosition(0, 0, 0, link.derived_ref, 0, NUMBERS[problem]),
        problem,
        mends,
        link.derived_ref,
        turn,
        None if named is None else ConversationRef(channel_id=named.channel_id, conversation_id=named.conversation_id),
        None if named is None else named.turn_id,
        None if named is None else named.message_id,
        link.evidence,
        link.derived,
    )


def counts_issues(where: ConversationKey, held: Counts | None) -> Iterator[Issue]:
    """Whether a conversation counts what it holds, and whether its numbers run without a gap."""
    if held is None:
        return
    said = (held.turns, held.last_sequence, held.messages, held.first_at, held.last_at)
    there = (held.held_turns, held.highest_sequence, held.highest_ordinal, held.earliest, held.latest)
    if not is_readable(numbers=(each for each in there if each is not None)):
        yield _of_conversation(where, "counts_disagree")
        return
    if said != there or held.astray:
        yield _of_conversation(where, "counts_disagree", "recounted")
    # Sequences and ordinals count from 1 without a gap, and nothing ever takes a row away.
    if held.held_turns < held.highest_sequence:
        yield _of_conversation(where, "sequence_gap")
    if held.held_messages < held.highest_ordinal:
        yield _of_conversation(where, "ordinal_gap")


def _of_conversation(where: ConversationKey, problem: Problem, mends: Mended | None = None) -> Issue:
    position = IssuePosition(1, where.conversation, 0, 0, 0, NUMBERS[problem])
    return Issue(position, problem, mends, where.conversation, where=_ref(where))


def _turn(
    tx: Reading,
    proof: Proof,
    space: int,
    where: ConversationKey,
    held: list[Record],
    indexed: tuple[str, ...],
    *,
    sealed: bool,
) -> Iterator[Issue]:
    """`sealed`: whether the turn's seal covers what stands there."""
    first, key = held[0], proof.key
    if first.message is None:
        yield _of_record(where, first, "turn_empty")
        return
    found = [issue for each in held for issue in message_issues(tx, key, space, where, each, indexed)]
    whole = all(each.state != "deleted" and each.content is not None for each in held)
    # A turn whose message is broken is told of by its message; what nobody can read cannot be checked.
    told = any(issue.problem in ("digest_mismatch", "other_conversation") for issue in found)
    altered = whole and not told and not _as_committed(tx, key, held)
    unclear = any(issue.problem in TOLD_BY_A_MESSAGE for issue in found)
    if altered or (not unclear and not sealed):
        yield _of_record(where, first, "turn_digest_mismatch")
    yield from found


def _unsealed(tx: Reading, proof: Proof, turns: list[int]) -> set[int]:
    """The turns whose seal does not cover what stands there: places, states and attrs besides."""
    seals = turn_seals.seals_of(tx, turns)
    problems = seal_checks.turn_problems(tx, proof.sealer, proof.unsealed, seals)
    return {turn for turn, problem in problems.items() if problem != seal_checks.WITHOUT_IDENTITY}


def _as_committed(tx: Reading, key: bytes, held: list[Record]) -> bool:
    """Whether a turn's digest covers what stands there: ids, times, roles, visibilities, actors, host refs."""
    first = held[0]
    refs = [
        (kind, ref_id, relation, label, sorted(set(shown.split(",") if shown else ())))
        for kind, ref_id, relation, label, shown in repair.refs(tx, first.turn)
    ]
    unsure = [position for position, each in enumerate(held) if not any(each.actor)]
    ways: Iterable[tuple[bool, ...]] = product((False, True), repeat=len(unsure))
    if len(unsure) > UNSURE_ACTORS:
        ways = ((False,) * len(unsure), (True,) * len(unsure))
    for given in ways:
        without = {position for position, is_given in zip(unsure, given, strict=True) if not is_given}
        messages = [
            message_part((each.message_id, each.role), (each.content, each.length), each.at, each.visibility,
                         None if position in without else each.actor)
            for position, each in enumerate(held)
        ]  # fmt: skip
        if parts_digest(key, first.turn_id, first.turn_at, messages, refs) == first.turn_digest:
            return True
    return False


def message_issues(
    tx: Reading, key: bytes, space: int, where: ConversationKey, each: Record, indexed: tuple[str, ...]
) -> Iterator[Issue]:
    """What is wrong with one message: its place, its content, its row in the recall index."""
    if each.conversation != where.conversation:
        # A message of another owner's conversation is not named to this one.
        known = repair.in_space(tx, each.conversation, space)
        yield _of_record(where, each if known else each._replace(message_id=""), "other_conversation")
        return
    sound = False
    if each.content is None:
        if each.state != "deleted":
            yield _of_record(where, each, "body_missing")
    elif each.state == "deleted":
        yield _of_record(where, each, "body_left")
    elif not is_whole(key, each):
        yield _of_record(where, each, "digest_mismatch")
    else:
        sound = True
        if len(each.content) != each.length and not is_tail(each.content[each.length :]):
            yield _of_record(where, each, "length_mismatch")
    expected = each.state == "live" and each.visibility in indexed
    if expected and not each.indexed and each.content is not None:
        yield _of_record(where, each, "not_indexed", "indexed" if sound else None)
    elif each.indexed and not expected:
        # A row can be taken out only with the very text that it was made of.
        yield _of_record(where, each, "indexed_though_withheld", "unindexed" if sound else None)


def _of_record(where: ConversationKey, each: Record, problem: Problem, mends: Mended | None = None) -> Issue:
    position = IssuePosition(1, where.conversation, 3, each.sequence, each.message or 0, NUMBERS[problem])
    of_turn = each.message is None or problem == "turn_digest_mismatch"
    found = _at(where, position, problem, each.turn_id, None if of_turn else each.message_id or None)
    return found._replace(mends=mends, key=each.message or 0)


def _at(
    where: ConversationKey, position: IssuePosition, problem: Problem, turn_id: str | None, message_id: str | None
) -> Issue:
    segments = [each for each in (turn_id, message_id) if each is not None]
    ref = format_ref(NAME, where.channel_id, where.conversation_id, *segments) if turn_id is not None else None
    return Issue(position, problem, where=_ref(where), turn_id=turn_id, message_id=message_id, ref=ref)


def _ref(where: ConversationKey) -> ConversationRef:
    return ConversationRef(channel_id=where.channel_id, conversation_id=where.conversation_id)


def entry_of(space: int, each: Record) -> Entry:
    """The recall index's row of a message."""
    assert each.message is not None
    return entry(each.message, space, each.conversation, each.visibility)
