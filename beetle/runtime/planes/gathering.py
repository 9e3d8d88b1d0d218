"""Reading what a scope holds into records: the scope, and what its parts have to know of one another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Literal

from beetle.contracts.continuity_records import Here, OfFact, Source
from beetle.contracts.refs import evidence_named, fact_named
from beetle.named_tuple import NamedTuple
from beetle.runtime.pipeline.views import Viewer
from beetle.store import evidence
from beetle.store.candidates import Body, Waiting
from beetle.store.chunks import ChunkRow
from beetle.store.engine.transaction import Reading
from beetle.store.private import ItemRow
from beetle.store.sight import ALL, Sight


class Open(NamedTuple):
    """Opens what is sealed in a scope: private items, and the texts of private facts that wait."""

    item: Callable[[ItemRow], str]
    waiting: Callable[[Waiting], Body]


Sort = Literal["everything", "public", "private"]
"""`everything` is the scope itself, as a fingerprint sees it; the others are what may leave it."""


Accessed = Callable[[ChunkRow, Reading], tuple[int, int | None]]
"""How often a chunk was accessed, and when last (microseconds)."""


def _stored(row: ChunkRow, tx: Reading) -> tuple[int, int | None]:
    del tx
    return row.accesses, row.last_accessed


class Chat(NamedTuple):
    """A chat: the conversation that it stands for, by its names, and its id."""

    channel: str
    conversation_id: str
    chat_id: str


class Where(NamedTuple):
    """A whole space, or one chat of it."""

    memory_space_id: str
    chat: Chat | None = None


class Gathering:
    """One reading of a scope, in one transaction; each plane adds what others have to know of it.

    Attributes:
        places: of the conversations that go along, by their keys.
        fingerprints: of each conversation's turns, where only these are wanted.
        thoughts: fingerprints of each chain's thoughts by the chain's key, where only these are wanted.
        said: how many turns, messages and thoughts go along.
        turns: the messages that go along of each turn.
        whole: turns of which every message goes along.
        facts: places of the facts that go along, by their record ids.
        items: private items that go along, by their record ids.
        accesses: of a chunk: what its row says, unless whoever gathers knows of more.
    """

    def __init__(
        self,
        tx: Reading,
        where: Where,
        sort: Sort,
        opened: Open | None = None,
        spend: Callable[[int], None] | None = None,
        *,
        keep_turns: bool = True,
        key: bytes | None = None,
        sight: Sight = ALL,
    ) -> None:
        """Prepare; nothing is read yet.

        Args:
            opened: opens what is sealed; it stays closed without.
            spend: told how many characters of text were read, and may refuse to go on.
            key: the store's, with which damaged content is told and left out.
            sight: what the caller may know of; anything else that stays behind is not counted.
            keep_turns: without it turns and thoughts leave their fingerprints alone, so that a long transcript or chain
                takes little memory.
        """
        self.tx = tx
        self.key = key
        self.sight = sight
        self.accesses: Accessed = _stored
        self.where = where
        self.sort: Sort = sort
        self.space = evidence.find_space(tx, where.memory_space_id)
        self.left_out: Counter[str] = Counter()
        self.spend: Callable[[int], None] = spend or (lambda characters: None)
        self.opened = opened
        self.keep_turns = keep_turns
        self.viewer = Viewer("export", include_private=sort == "private")
        self.places: dict[int, int] = {}
        self.fingerprints: list[list[bytes]] = []
        self.thoughts: dict[str, bytes] = {}
        self.said: Counter[str] = Counter()
        self.turns: dict[tuple[str, str, str], frozenset[str]] = {}
        self.whole: set[tuple[str, str, str]] = set()
        self.facts: dict[str, int] = {}
        self.items: list[str] = []

    @property
    def chat(self) -> Chat | None:
        """The chat, where the scope is one."""
        return self.where.chat

    @property
    def conversation(self) -> int | None:
        """The key of the chat's conversation, where the scope is a chat and has one."""
        if self.chat is None:
            return None
        row = evidence.find_conversation(self.tx, self.space, self.chat.channel, self.chat.conversation_id)
        return None if row is None else row.conversation

    def source(self, text: str) -> Source | None:
        """A ref or text as the snapshot says it; None where the evidence that it names does not go along."""
        fact = fact_named(text)
        if fact is not None:
            place = self.facts.get(fact)
            return text if place is None else OfFact(fact=place)
        said = evidence_named(text)
        if said is not None and self.sort != "everything":
            messages = self.turns.get((said.channel_id, said.conversation_id, said.turn_id))
            if messages is None or (said.message_id is not None and said.message_id not in messages):
                return None
        return self.here(text)

    def here(self, text: str) -> Source:
        """A ref into the chat itself without the chat's name; any other text as it is."""
        said, chat = evidence_named(text), self.chat
        if said is None or chat is None:
            return text
        if (said.channel_id, said.conversation_id) != (chat.channel, chat.conversation_id):
            return text
        return Here(turn_id=said.turn_id, message_id=said.message_id)

    def is_whole(self, channel: str, conversation_id: str, turn_id: str) -> bool:
        """Whether every message of a turn goes along."""
        return (channel, conversation_id, turn_id) in self.whole

    def leave_out(self, name: str, number: int = 1) -> None:
        """Count what does not go along."""
        if number:
            self.left_out[name] += number
