"""What memory.forget asks of each plane: which records go, which stay, and how one is erased.

A caller that is no operator is answered, and erases, as if what it may not see were not there. An operator may know
that something is there, and is told its number; it forgets nothing that it may not see.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any

from msgspec import Struct

from beetle.contracts.codec import pack
from beetle.contracts.forgetting import ForgetReason, MemoryForgetRequest
from beetle.contracts.refs import evidence_named
from beetle.domain.governance import STRENGTH
from beetle.named_tuple import NamedTuple
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.pipeline.views import visible_kinds
from beetle.runtime.planes.query_words import QueryWords
from beetle.store import forgetting, skills
from beetle.store.engine.transaction import Reading
from beetle.store.engine.write_transaction import WriteTransaction
from beetle.store.event_places import Matter
from beetle.store.forgetting import CitingRecord, SelectedTurn

VISIBILITIES = ("shared", "private", "soul", "backend", "operator")
Topic = tuple[str, str, bytes | None]
"""A target, a kind and the keyed digest of a topic."""


class Known(NamedTuple):
    """What a record is known by as long as it is there, and what it is now.

    Attributes:
        name: no other record of its kind in the store ever has it, whatever becomes of row numbers.
        version: what it says; it changes with that.
        matter, masked: whose matter it is, and whether only who sees masked ones sees it.
        authority: whose word it is, where a stronger one is not erased.
        ref: what reports call it by.
    """

    name: tuple[Any, ...]
    version: Any = None
    matter: Matter = "shared"
    masked: bool = False
    authority: str | None = None
    ref: str = ""

    @property
    def state(self) -> tuple[Any, ...]:
        """All that decides whether the record goes."""
        return self.version, self.matter, self.masked, self.authority

    @property
    def mark(self) -> int:
        """Stands for name and state in the plan of an erasure."""
        return self._half(self.name) << HALF | self._half(self.state)

    def is_of(self, mark: int) -> bool:
        """Whether a mark is of this record, in whatever state."""
        return mark >> HALF == self._half(self.name)

    def _half(self, of: Any) -> int:
        return int.from_bytes(hashlib.sha256(pack(of)).digest()[:4]) >> 1


HALF = 31


class Sight(NamedTuple):
    """What the caller sees: kinds of messages, whether masked ones too, private facts, the sealed plane.

    `told`: whether it may know how much there is that it does not see.
    """

    kinds: tuple[str, ...]
    masked: bool
    private: bool
    sealed: bool
    told: bool

    @property
    def all(self) -> bool:
        """Whether nothing of the space is hidden."""
        return self.masked and self.sealed and set(VISIBILITIES) <= set(self.kinds)

    def sees(self, known: Known) -> bool:
        """Whether a record is one that the caller may know of."""
        own = known.matter == "shared" or (self.sealed if known.matter == "sealed" else self.private)
        return own and (self.masked or not known.masked)


def sight_of(invocation: Invocation) -> Sight:
    """What a caller sees of the space, through all its views."""
    viewers = invocation.viewers
    kinds = tuple(kind for kind in VISIBILITIES if any(kind in visible_kinds(viewer) for viewer in viewers))
    raw = any(viewer.view == "raw_owner" for viewer in viewers)
    return Sight(kinds, raw, invocation.sees_private, invocation.reads_private, invocation.caller.is_operator)


class Selection(Struct):
    """What goes, by kind and key, under the names that the caller knows it by; what stays; what is hidden."""

    space: int
    sight: Sight
    turns: dict[int, list[SelectedTurn]] = {}
    keys: dict[str, dict[int, Known]] = {}
    names: list[Any] = []
    counts: dict[str, int] = {}
    refs: list[str] = []
    stays: dict[tuple[str, ForgetReason], list[str]] = {}
    hidden: int = 0
    matter: Matter = "shared"

    def add(self, kind: Kind, key: int, known: Known) -> None:
        """A record goes."""
        self.keys.setdefault(kind.name, {})[key] = known
        self.counts[kind.counted_as] = self.counts.get(kind.counted_as, 0) + 1
        self.names.append((kind.name, known.name, known.state))
        self.touch(known.matter)

    def keep(self, counted_as: str, reason: ForgetReason, ref: str = "") -> None:
        """A record stays."""
        self.stays.setdefault((counted_as, reason), []).append(ref)

    def hide(self) -> None:
        """A record would go that the caller may not see."""
        self.hidden += self.sight.told

    def touch(self, matter: Matter) -> None:
        """What is told of it is no less private than what it touches."""
        order: tuple[Matter, ...] = ("shared", "private", "sealed")
        if order.index(matter) > order.index(self.matter):
            self.matter = matter


class Resting(NamedTuple):
    """By their derived refs: the records that rest on the turns that go alone, and those that rest on others too."""

    alone: Mapping[str, CitingRecord]
    others: Mapping[str, CitingRecord]


class Selecting:
    """What goes when some turns do, on its way through the planes.

    Attributes:
        found: what the planes select.
        turns: the keys of the turns that go.
        targets: refs of the facts and names of the skills that go, as proposals name them.
    """

    def __init__(self, invocation: Invocation, tx: Reading, space: int, turns: Iterable[int] = ()) -> None:
        self.invocation = invocation
        self.tx = tx
        self.found = Selection(space, sight_of(invocation))
        self.turns = set(turns)
        self.targets: set[str] = set()

    @property
    def space(self) -> int:
        return self.found.space

    @property
    def sight(self) -> Sight:
        return self.found.sight

    def is_stronger(self, authority: str) -> bool:
        """Whether a record is the word of somebody with more authority than the caller."""
        return STRENGTH[authority] > STRENGTH["operator" if self.invocation.caller.is_operator else "user_asserted"]

    @cached_property
    def resting(self) -> Resting:
        """What rests on the turns that go."""
        alone: dict[str, CitingRecord] = {}
        others: dict[str, CitingRecord] = {}
        cited: dict[str, list[CitingRecord]] = {}
        for each in forgetting.citing(self.tx, self.space) if self.turns else ():
            # A skill's refs name its revision: the record is the skill.
            owner = each.derived if each.skill is None else f"skill {each.skill}"
            cited.setdefault(owner, []).append(each)
        for rows in cited.values():
            inside = [row.turn in self.turns for row in rows]
            if any(inside):
                (alone if all(inside) else others)[rows[0].derived] = rows[0]
        return Resting(alone, others)

    def cites(self, refs: Iterable[str]) -> bool:
        """Whether one of some refs names a turn that goes."""
        if not self.turns:
            return False
        named = (evidence_named(text) for text in refs)
        return any(ref is not None and skills.turn_of_ref(self.tx, self.space, ref) in self.turns for ref in named)


class Forgetting(Selecting):
    """One request of memory.forget on its way through the planes; that of evidence, which is asked first, fills its
    turns.

    Attributes:
        words: those of the query.
    """

    def __init__(self, invocation: Invocation, tx: Reading, request: MemoryForgetRequest, space: int) -> None:
        super().__init__(invocation, tx, space)
        self.request = request
        self.words = QueryWords(tx, request.query or "")


class Gone(NamedTuple):
    """What was erased of a record: keyed digests of what it said. Candidates that wait for the topics, or for the skill
    of the name, are judged again.
    """

    digests: list[bytes]
    topics: tuple[Topic, ...] = ()
    skill: str | None = None


class Kind(NamedTuple):
    """Records of one kind.

    Attributes:
        name: in the record of an erasure that has begun, which the store keeps until it is finished.
        counted_as: their name in reports and receipts.
        place: kinds are erased in the order of these.
        known: the record of a key in a space as it is now, the same that its plane selects; None where nothing that
            could be erased is there. Rows that are gone give their numbers to others, and records change while a
            request is on its way: nothing is erased that is not still what was selected.
        erase: is given the space, the key of a record that is there and the caller's authority, None where it is known
            already who has removed it; answers None where nothing was left.
        targets: the record as open proposals name it, which are dropped with it.
        refs: the plane of its refs, where reports list them.
    """

    name: str
    counted_as: str
    place: int
    known: Callable[[Invocation, Reading, int, int], Known | None]
    erase: Callable[[Invocation, WriteTransaction, int, int, str | None], Gone | None]
    targets: Callable[[Reading, int, int], list[str]] = lambda tx, space, key: []
    refs: str = ""


class Forgotten(NamedTuple):
    """What memory.forget takes of a plane.

    Attributes:
        place: planes select in the order of these: the evidence first, since others rest on it.
        select: adds to the selection what goes, keeps what stays, and hides what the caller may not see.
        kinds: the kinds of records that it selects.
        resting: the same of what rests on the turns that go alone; asked again when they are gone.
    """

    place: int
    select: Callable[[Forgetting], None]
    kinds: tuple[Kind, ...] = ()
    resting: Callable[[Selecting], None] = lambda asked: None
