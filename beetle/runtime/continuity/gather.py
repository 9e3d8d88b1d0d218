"""Reading what a scope holds into records, as much of it as a snapshot of some sort may carry."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Any, Literal, NamedTuple, cast

from beetle.contracts.codec import UNSET, to_us
from beetle.contracts.continuity_records import (
    AliasRecord,
    AttrRecord,
    CandidateRecord,
    ConversationRecord,
    Here,
    MessageRecord,
    PolicyRecord,
    PrivateRecord,
    Records,
    Source,
    TurnRecord,
)
from beetle.contracts.refs import parse_ref
from beetle.contracts.transcript import (
    ActorAttribution,
    HostOpaqueRef,
    MemoryTranscriptExportReport,
    TranscriptMessage,
    TranscriptTurn,
)
from beetle.memory.continuity import counts_of
from beetle.memory.fingerprint import fingerprint_of, turn_fingerprint
from beetle.runtime.continuity import gather_derived as derived
from beetle.runtime.views import Viewer, reveal
from beetle.store import candidates, continuity, evidence, policies, transcripts
from beetle.store.private import ItemRow
from beetle.store.transaction import Reading

PAGE_TURNS = 200
LAST = 2**62

Open = Callable[[ItemRow], str]
Sort = Literal["everything", "public", "private"]
"""`everything` is the scope itself, as a fingerprint sees it; the others are what may leave it."""


class Chat(NamedTuple):
    """A chat: the conversation that it stands for, by its names, and its id."""

    channel: str
    conversation_id: str
    chat_id: str


class Where(NamedTuple):
    """A whole space, or one chat of it."""

    memory_space_id: str
    chat: Chat | None = None


class Gathered(NamedTuple):
    """What a scope holds, how much of that, and how much of what the scope holds is not in it."""

    records: Records
    counts: dict[str, int]
    left_out: Counter[str]
    turns: list[list[bytes]] | None = None
    """Fingerprints of each conversation's turns, where only these were wanted."""

    def fingerprint(self) -> str:
        """Of all of it."""
        return fingerprint_of(self.records, self.turns)


class Gathering:
    """One reading of a scope, in one transaction."""

    def __init__(
        self,
        tx: Reading,
        where: Where,
        sort: Sort,
        open_item: Open | None = None,
        spend: Callable[[int], None] | None = None,
        *,
        keep_turns: bool = True,
    ) -> None:
        """Prepare; nothing is read yet.

        Args:
            open_item: the text of a private item; items stay closed without it.
            spend: told how many characters of text were read, and may refuse to go on.
            keep_turns: without it turns leave their fingerprints alone, so that a long transcript takes little memory.
        """
        self.tx = tx
        self.where = where
        self.sort: Sort = sort
        self.space = evidence.find_space(tx, where.memory_space_id)
        self.left_out: Counter[str] = Counter()
        self.spend: Callable[[int], None] = spend or _unbounded
        self._open = open_item
        self._keep_turns = keep_turns
        self._fingerprints: list[list[bytes]] = []
        self._said: Counter[str] = Counter()
        self._viewer = Viewer("export", include_private=sort == "private")
        self._turns: dict[tuple[str, str, str], frozenset[str]] = {}
        self._whole: set[tuple[str, str, str]] = set()
        self.facts: dict[str, int] = {}

    @property
    def chat(self) -> Chat | None:
        """The chat, where the scope is one."""
        return self.where.chat

    def run(self) -> Gathered:
        """Everything, in the order in which one part names another."""
        if self.space is None:
            return Gathered(Records(), {}, self.left_out)
        space = self.space
        keys, talked = self._conversations(space)
        known = derived.facts(self, space)
        learned = derived.skills(self, space)
        items = self._items(space)
        whole = self.chat is None
        records = Records(
            conversations=tuple(talked),
            skills=learned,
            facts=known,
            private=tuple(items.values()),
            policies=tuple(self._policies(space)) if whole else (),
            registries=tuple(derived.registries(self, space)) if whole else (),
            observations=tuple(derived.observations(self, space)) if whole else (),
            candidates=tuple(self._candidates(space, tuple(items))) if whole else (),
            aliases=tuple(self._aliases(space, keys)) if whole else (),
        )
        turns = None if self._keep_turns else self._fingerprints
        return Gathered(records, {**counts_of(records), **self._said}, self.left_out, turns)

    # Evidence.

    def _conversations(self, space: int) -> tuple[dict[int, int], list[ConversationRecord]]:
        """The conversations, and the place of each by its key."""
        only = self.conversation
        rows = [] if self.chat is not None and only is None else continuity.conversations(self.tx, space, only)
        if self.sort == "public" and self.chat is None:
            # A public archive has no transcript at all.
            self._leave_out(messages=sum(continuity.count_messages(self.tx, key) for key, _, _ in rows))
            return {}, []
        places: dict[int, int] = {}
        found: list[ConversationRecord] = []
        for key, channel, conversation_id in rows:
            kept: list[TurnRecord] = []
            prints: list[bytes] = []
            for turn in self._conversation(key, channel, conversation_id):
                self._said.update(turns=1, messages=len(turn.messages))
                if self._keep_turns:
                    kept.append(turn)
                else:
                    prints.append(turn_fingerprint(turn))
            if not kept and not prints and self.sort != "everything":
                continue
            self._fingerprints.append(prints)
            places[key] = len(found)
            named = self.chat is None
            found.append(
                ConversationRecord(
                    channel_id=channel if named else None,
                    conversation_id=conversation_id if named else None,
                    turns=tuple(kept),
                )
            )
        return places, found

    @property
    def conversation(self) -> int | None:
        """The key of the chat's conversation, where the scope is a chat and has one."""
        if self.chat is None:
            return None
        row = evidence.find_conversation(self.tx, self.space, self.chat.channel, self.chat.conversation_id)
        return None if row is None else row.conversation

    def _conversation(self, key: int, channel: str, conversation_id: str) -> Iterator[TurnRecord]:
        after = 0
        while page := transcripts.turns_forward(self.tx, key, after + 1, LAST, PAGE_TURNS):
            after = page[-1].sequence
            doors = continuity.doors(self.tx, key, page[0].sequence, after)
            for turn, shown in zip(page, self._revealed(page), strict=True):
                made = self._turn(turn, shown, doors[turn.turn_id])
                if made is None:
                    continue
                name = (channel, conversation_id, turn.turn_id)
                self._turns[name] = frozenset(each.message_id for each in made.messages)
                if len(made.messages) == len(turn.messages) and all(m.state == "live" for m in turn.messages):
                    self._whole.add(name)
                yield made

    def _revealed(self, page: list[TranscriptTurn]) -> Iterable[TranscriptTurn]:
        """The turns as they may leave: through the gate that every export passes."""
        if self.sort == "everything":
            return page
        return reveal(MemoryTranscriptExportReport(view="export", turns=tuple(page)), self._viewer, 0).turns

    def _turn(self, turn: TranscriptTurn, shown: TranscriptTurn, door: str) -> TurnRecord | None:
        everything = self.sort == "everything"
        messages = [each for each in shown.messages if everything or each.content is not UNSET]
        lost = sum(each.state != "deleted" for each in turn.messages) - sum(
            each.state != "deleted" for each in messages
        )
        self._leave_out(
            messages=lost,
            host_refs=len(turn.host_refs) - len(shown.host_refs),
            labels=sum(r.label is not None for r in turn.host_refs) - sum(r.label is not None for r in shown.host_refs),
            attrs=len(turn.attrs) - len(shown.attrs),
        )
        if not messages:
            return None
        made = tuple(_message(each) for each in messages)
        places = {each.message_id: place for place, each in enumerate(made)}
        self.spend(sum(len(each.content or "") for each in made) + sum(len(each.value or "") for each in shown.attrs))
        return TurnRecord(
            turn_id=turn.turn_id,
            at=us(turn.at),
            door=cast(Any, door),
            archived=turn.archived,
            messages=made,
            host_refs=tuple(
                HostOpaqueRef(
                    kind=ref.kind, ref_id=ref.ref_id, relation=ref.relation, label=ref.label,
                    visibility=cast(Any, ref.visibility),
                )
                for ref in shown.host_refs
            ),
            attrs=tuple(
                AttrRecord(
                    key=attr.key or "",
                    value=attr.value or "",
                    message=None if attr.message_id is None else places.get(attr.message_id),
                    visibility=cast(Any, attr.visibility),
                    export_allowed=attr.export_allowed,
                )
                for attr in shown.attrs
            ),
        )  # fmt: skip

    # What names something else.

    def source(self, text: str) -> Source | None:
        """A ref or text as the snapshot says it; None where the evidence that it names does not go along."""
        found = parse_ref(text)
        if found is None or found.plane not in ("evidence", "long_term"):
            return text
        if found.plane == "long_term":
            place = self.facts.get(found.segments[0])
            return text if place is None else derived.of_fact(place)
        if self.sort != "everything" and not self._goes_along(found.segments):
            return None
        return self.here(text)

    def here(self, text: str) -> Source:
        """A ref into the chat itself without the chat's name; any other text as it is."""
        found, chat = parse_ref(text), self.chat
        if found is None or chat is None or found.plane != "evidence":
            return text
        channel, conversation_id, turn_id, *message = found.segments
        if (channel, conversation_id) != (chat.channel, chat.conversation_id):
            return text
        return Here(turn_id=turn_id, message_id=message[0] if message else None)

    def _goes_along(self, segments: tuple[str, ...]) -> bool:
        channel, conversation_id, turn_id, *message = segments
        messages = self._turns.get((channel, conversation_id, turn_id))
        return messages is not None and all(each in messages for each in message)

    def is_whole(self, channel: str, conversation_id: str, turn_id: str) -> bool:
        """Whether every message of a turn goes along."""
        return (channel, conversation_id, turn_id) in self._whole

    def _leave_out(self, **counts: int) -> None:
        self.left_out.update({name: number for name, number in counts.items() if number})

    def leave_out(self, name: str, number: int = 1) -> None:
        """Count what does not go along."""
        self._leave_out(**{name: number})

    # Policies, what waits, private material, aliases.

    def _policies(self, space: int) -> Iterator[PolicyRecord]:
        for row in policies.policies(self.tx, space):
            yield PolicyRecord(
                action=cast(Any, row.action), at=row.at, kind=cast(Any, row.kind), topic=row.topic,
                chat_id=row.chat_id, reason=row.reason,
            )  # fmt: skip

    def _items(self, space: int) -> dict[str, PrivateRecord]:
        """Private items by their record ids."""
        rows = continuity.items(self.tx, space, self.conversation, of_chat=self.chat is not None)
        found: dict[str, PrivateRecord] = {}
        if self.sort == "public":
            self._leave_out(private_items=len(rows))
            return found
        for row in rows:
            sources = [self.source(text) for text in continuity.item_derived(self.tx, space, row)]
            kept = tuple(each for each in sources if each is not None)
            if self.chat is not None and not any(isinstance(each, Here) for each in kept):
                # Nothing of what ties it to this chat goes along.
                self._leave_out(private_items=1)
                continue
            content = None if self._open is None else self._open(row)
            self.spend(len(content or ""))
            found[row.record_id] = PrivateRecord(
                record_id=row.record_id, candidate_id=row.candidate_id, plane=cast(Any, row.plane),
                privacy=cast(Any, row.privacy), authority=cast(Any, row.authority), state=cast(Any, row.state),
                at=row.at, content=content, derived=kept,
            )  # fmt: skip
        return found

    def _candidates(self, space: int, items: tuple[str, ...]) -> Iterator[CandidateRecord]:
        rows = candidates.every(self.tx, space)
        if self.sort == "public":
            self._leave_out(candidates=len(rows))
            return
        places = {record_id: place for place, record_id in enumerate(items)}
        for row in rows:
            body = candidates.body_of(self.tx, row.candidate)
            yield CandidateRecord(
                candidate_id=row.candidate_id, target=cast(Any, row.target), kind=cast(Any, row.kind),
                privacy=cast(Any, row.privacy), authority=cast(Any, row.authority), reason=cast(Any, row.reason),
                chat_id=row.chat_id, at=row.at,
                text=None if body is None else derived.fact_text(body.topic, body.content, body.keywords),
                record=None if row.record_id is None else places.get(row.record_id),
                confidence=row.confidence, extractor=row.extractor, evidence=row.evidence,
            )  # fmt: skip

    def _aliases(self, space: int, places: dict[int, int]) -> Iterator[AliasRecord]:
        if self.sort == "public":
            return
        for principal, agent_id, channel, chat_id, conversation in continuity.aliases(self.tx, space):
            if conversation in places:
                yield AliasRecord(
                    principal=principal, agent_id=agent_id, channel=channel, chat_id=chat_id,
                    conversation=places[conversation],
                )  # fmt: skip


def _unbounded(_: int) -> None:
    """Whoever compares what is there reads all of it."""


def _message(each: TranscriptMessage) -> MessageRecord:
    actor = None
    if each.actor is not None:
        actor = ActorAttribution(**{name: getattr(each.actor, name) for name in ActorAttribution.__struct_fields__})
    return MessageRecord(
        message_id=each.message_id,
        role=each.role,
        at=us(each.at),
        visibility=each.visibility,
        content=None if each.content is UNSET else each.content,
        state=each.state,
        actor=actor,
    )


def us(at: str) -> int:
    """Microseconds since the epoch of a time as reports give it."""
    return to_us(datetime.fromisoformat(at))
