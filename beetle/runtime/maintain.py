"""Maintenance of a conversation: what was said since the last time goes to the model, and its notes are judged."""

from __future__ import annotations

from typing import NamedTuple

from beetle.contracts.codec import format_us
from beetle.contracts.common import Conversation, ConversationRef, DerivedMemoryRef
from beetle.contracts.errors import InvalidRequest, NotFound
from beetle.contracts.governance import GovernanceOutcome
from beetle.contracts.maintain import MemoryMaintainReport, decode_answer
from beetle.contracts.refs import format_ref
from beetle.memory.governance import evidence_trouble, extraction_privacy
from beetle.memory.maintenance import Noted, Shown, Sifted, prompt_of, sift
from beetle.runtime import governance
from beetle.runtime.alias import current_conversation
from beetle.runtime.facts import content_mac, topic_mac
from beetle.runtime.handling import Context
from beetle.runtime.model_failure import ModelFailed
from beetle.runtime.targets import Claim
from beetle.runtime.views import withheld
from beetle.store import evidence, maintenance
from beetle.store.event_log import Event
from beetle.store.maintenance import MessageRow, TurnRow
from beetle.store.transaction import Reading
from beetle.store.writer import WriteTransaction

SHOWN_KINDS = frozenset({"shared", "private"})
"""What a model may ever be shown, whoever asks; soul, backend and operator material stays here."""
SHOWN_ROLES = frozenset({"user", "assistant", "tool", "tool_use", "tool_result"})
"""Whose words may become memory; a host's own instructions are no evidence of anything."""
NOTHING = Sifted((), 0, 0)


class Gathered(NamedTuple):
    """What is to be asked about: the turns of a conversation behind `before` up to `upto`, as far as they are shown.

    `clipped` says that a message was too long to be shown whole.
    """

    space: int
    conversation: int
    ref: ConversationRef
    before: int
    upto: int
    turns: int
    shown: tuple[Shown, ...]
    withheld: int
    clipped: bool


class Found(NamedTuple):
    """A conversation in its space."""

    space: int
    conversation: int
    ref: ConversationRef


def ready(context: Context) -> None:
    """Load what judging takes. Call it before a transaction of the writer, which must not wait for it."""
    governance.ready(context)


def find_conversation(context: Context, tx: Reading, named: Conversation | None) -> Found:
    """The conversation that is named, else the current one.

    Raises:
        NotFound: there is none, or the scope's chat id stands for none that can be trusted.
    """
    space = evidence.find_space(tx, context.space_id)
    current = current_conversation(context, tx, space, named)
    if space is None or current.conversation is None or current.ref is None:
        name = context.scope.chat_id if named is None else f"{named.channel_id}/{named.conversation_id}"
        listing = "name one of those that `beetle transcript conversations` lists"
        raise NotFound(kind="conversation", name=name, listing=listing)
    return Found(space, current.conversation, current.ref)


def gather(context: Context, tx: Reading, found: Found, limit: int) -> Gathered:
    """The next turns to ask about, as the model may see them for this caller.

    Turns are taken whole, as many as the profile's projection_chars hold; of the first one alone, what is too long is
    shown in part.
    """
    room = context.shared.profile.budgets.projection_chars
    before = upto = maintenance.watermark(tx, found.conversation)
    shown: list[Shown] = []
    hidden = turns = 0
    clipped = False
    for turn in maintenance.turns_after(tx, found.conversation, before, limit):
        rows = maintenance.messages_of(tx, turn.turn)
        visible = [row for row in rows if _may_show(context, row)]
        if shown and sum(len(row.content or "") for row in visible) > room:
            break
        most = max(1, room // max(1, len(visible)))
        texts = [(row, (row.content or "")[:most] if not shown else row.content or "") for row in visible]
        clipped |= any(len(text) < len(row.content or "") for row, text in texts)
        made = [_shown(found.ref, turn, row, text) for row, text in texts]
        shown += made
        hidden += len(rows) - len(visible)
        room -= sum(len(each.text) for each in made)
        turns += 1
        upto = turn.sequence
    return Gathered(*found, before, upto, turns, tuple(shown), hidden, clipped)


def _may_show(context: Context, row: MessageRow) -> bool:
    """Through the model's view of this caller; private material only to a model on this machine."""
    if row.content is None or not row.content.strip() or row.role not in SHOWN_ROLES:
        return False
    if row.visibility not in SHOWN_KINDS or withheld(row.visibility, row.state, context.viewer("model_context")):
        return False
    model = context.shared.model
    return row.visibility == "shared" or (model is not None and model.local)


def _shown(ref: ConversationRef, turn: TurnRow, row: MessageRow, text: str) -> Shown:
    where = format_ref("evidence", ref.channel_id, ref.conversation_id, turn.turn_id, row.message_id)
    return Shown(row.message_id, where, row.role, row.speaker, format_us(row.at), text)


def ask(context: Context, gathered: Gathered) -> Sifted:
    """What the model notes, as far as its messages say it. No transaction may be open: this can take minutes.

    Raises:
        ModelFailed: there is no model, or no answer that can be used.
    """
    model = context.shared.model
    if model is None:
        raise ModelFailed("not_configured")
    if not gathered.shown:
        return NOTHING
    text = model.ask(prompt_of(gathered.shown))
    try:
        return sift(decode_answer(text), gathered.shown)
    except InvalidRequest:
        # Its message may quote the answer.
        model.failed()
        raise ModelFailed("wrong_answer") from None


def keep(context: Context, tx: WriteTransaction, gathered: Gathered, sifted: Sifted) -> MemoryMaintainReport | None:
    """Judge what the model noted, and move the watermark; None, with nothing changed, when it was moved meanwhile."""
    model = context.shared.model
    assert model is not None
    if maintenance.watermark(tx, gathered.conversation) != gathered.before:
        return None
    outcomes: list[GovernanceOutcome] = []
    refs: list[DerivedMemoryRef] = []
    if sifted.noted:
        governance.drop_expired(context, tx, gathered.space)
    for index, noted in enumerate(sifted.noted):
        outcome, made = _judge(context, tx, gathered.space, index, noted, f"maintain {model.name}"[:256])
        outcomes.append(outcome)
        refs.extend(made)
    items = len(sifted.noted) + sifted.unsupported + sifted.refused
    if gathered.upto > gathered.before:
        maintenance.set_watermark(tx, gathered.conversation, gathered.upto, tx.now)
        tx.log(_event(context, gathered, sifted, outcomes))
    most = context.shared.profile.budgets.derived_refs
    return MemoryMaintainReport(
        conversation=gathered.ref,
        asked=bool(gathered.shown),
        model=model.name,
        turns=gathered.turns,
        shown=len(gathered.shown),
        withheld=gathered.withheld,
        items=items,
        outcomes=tuple(outcomes),
        unsupported=sifted.unsupported,
        refused=sifted.refused,
        derived_refs=tuple(refs[:most]),
        watermark_before=gathered.before,
        watermark=gathered.upto,
        has_more=maintenance.last_sequence(tx, gathered.conversation) > gathered.upto,
        profile_budget_applied=gathered.clipped or len(refs) > most,
    )


def _judge(
    context: Context, tx: WriteTransaction, space: int, index: int, noted: Noted, extractor: str
) -> tuple[GovernanceOutcome, tuple[DerivedMemoryRef, ...]]:
    """Judge one note. Its evidence is looked at anew: a message may have been masked while the model was asked."""
    cited = governance.cited(tx, space, noted.evidence)
    privacy = extraction_privacy(cited)
    if (trouble := evidence_trouble(cited, privacy)) is not None:
        # Before a policy could have it wait: what quotes an erased message must not be kept at all.
        return GovernanceOutcome(index=index, outcome="rejected", reason=trouble), ()
    item = noted.item
    claim = Claim(
        candidate_id="",
        authority=noted.authority,
        target="long_term",
        privacy=privacy,
        kind=item.kind,
        topic=item.topic,
        content=item.content,
        keywords=item.keywords,
        confidence=item.confidence,
        evidence=noted.evidence,
        chat_id=context.scope.chat_id,
        extractor=extractor,
        topic_mac=topic_mac(context.key, item.topic),
        content_mac=content_mac(context.key, item.content),
    )
    return governance.consider(context, tx, space, index, claim)


def _event(context: Context, gathered: Gathered, sifted: Sifted, outcomes: list[GovernanceOutcome]) -> Event:
    return context.event(
        "memory",
        "maintained",
        channel_id=gathered.ref.channel_id,
        conversation_id=gathered.ref.conversation_id,
        first_sequence=gathered.before + 1,
        last_sequence=gathered.upto,
        shown=len(gathered.shown),
        accepted=sum(each.outcome == "accepted" for each in outcomes),
        judged=len(outcomes),
        unsupported=sifted.unsupported,
        refused=sifted.refused,
    )
