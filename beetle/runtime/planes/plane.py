"""What a plane of memory is: what recall, projection, verify, recover, erasure, export and inspection ask of each.

A plane fills the parts that it takes part in; whoever walks the planes passes over the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from beetle.contracts.common import Conversation
from beetle.contracts.memory import RecallHit
from beetle.contracts.refs import Ref
from beetle.contracts.transcript_repair import Problem
from beetle.domain.lexical import ParsedQuery
from beetle.domain.projection import Item, Shares
from beetle.domain.ranking import Candidate, Ranked
from beetle.named_tuple import NamedTuple
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.pipeline.views import Viewer
from beetle.runtime.planes.forgetting import Forgotten
from beetle.runtime.planes.gathering import Gathering
from beetle.store import index_terms
from beetle.store.engine.transaction import Reading, Writing
from beetle.store.event_places import Matter
from beetle.store.indexed import IndexedText, Tables
from beetle.store.recall_index import Entry, Fields
from beetle.store.sight import Sight
from beetle.store.verify import Finding

IndexRow = tuple[Entry, Fields]
"""A row of the recall index: what it is about, and the very text that it is made of."""
Counts = dict[str, int]


class Search(NamedTuple):
    """What to look for, where, and for whose eyes. Times in microseconds, both ends included.

    `conversation` narrows the search to one; `here` only says which one counts as current. `agent_skills` says whether
    the runtime's mode lets the host's skills in. `neighbours`: whether what only stands beside a match is a hit too.
    `asked_at`: when the query was asked; None where times in it do not count. `label`: only index rows with this one.
    """

    query: str
    limit: int
    viewer: Viewer
    conversation: Conversation | None = None
    planes: tuple[str, ...] | None = None
    since: int | None = None
    until: int | None = None
    as_of: int | None = None
    here: Conversation | None = None
    agent_skills: bool = True
    neighbours: bool = True
    asked_at: int | None = None
    label: int | None = None

    @property
    def timed(self) -> bool:
        """Whether a time is named."""
        return self.since is not None or self.until is not None or self.as_of is not None


class Asked(NamedTuple):
    """One search on its way: `found` are the scores of the index's matches, by the index's own names and keys. `space`
    is None where the space holds nothing yet."""

    invocation: Invocation
    tx: Reading
    space: int | None
    search: Search
    parsed: ParsedQuery
    kinds: tuple[str, ...]
    found: Mapping[str, Mapping[int, float]]

    def scores(self, name: str) -> Mapping[int, float]:
        """The scores of one of the index's names, best first."""
        return self.found.get(name, {})


class Loaded(NamedTuple):
    """Candidates, and what each stands for by its `source_id`; nothing where the plane's `records` gives that."""

    candidates: list[Candidate]
    records: Mapping[str, Any]


class Recall(NamedTuple):
    """How a plane is found.

    Attributes:
        reported_as: the list of the recall report that holds its hits.
        tables: the rows of the index that a search looks through; none for a plane that is in no index.
        past: those that a search as of a time looks through besides.
        records: what stands behind the candidates that are shown, by their `source_id`, where `load` does not say it.
        load: what the search found of it, as candidates; asked only where it found some, or the plane is in no index.
        hit: a candidate in its place, with the record that `load` gave for it.
        open_to: whether a search that does not exclude the plane looks through it.
    """

    reported_as: str
    tables: Tables
    load: Callable[[Asked], Loaded]
    hit: Callable[[Ranked, Any, ParsedQuery], RecallHit]
    open_to: Callable[[Invocation, Search], bool] = lambda invocation, search: True
    past: Tables = ()
    records: Callable[[Asked, Iterable[str]], Mapping[str, Any]] | None = None


class Projected(NamedTuple):
    """A plane's section of the memory block.

    Attributes:
        place: the sections stand in the order of these.
        items: what the plane's hits say in the block, in their order.
        note, shares, spare: see `domain.projection.Section`.
    """

    place: int
    name: str
    shares: Shares
    items: Callable[[Invocation, Reading, int | None, tuple[RecallHit, ...]], list[Item]]
    note: str = ""
    spare: bool = False


class Texts(NamedTuple):
    """The texts that the index holds of a plane, and whether each is still what was indexed.

    `last` is the highest key, where it is known at once: how far looking through them is.
    """

    step: str
    page: Callable[[Reading, int, int], list[IndexedText]]
    is_sound: Callable[[bytes, IndexedText], bool]
    last: Callable[[Reading], int] | None = None


class Indexed(NamedTuple):
    """A plane's rows of the recall index, as verify compares and recover mends them.

    Attributes:
        tables: all of them.
        missing: the keys behind one, at most so many, of records that lack a row.
        rows: the rows that a record should have, by the store's key and the record's; None for a damaged record.
        texts: what proves the rows that are there; None where nothing does.
        removable: the row that stands there of a record, where that is certain: only so can it be taken out alone.
        records: the keys behind one, at most so many, of records that may have a row; None: those with one of the first
            table's.
    """

    tables: Tables
    missing: Callable[[Reading, int, int], list[int]]
    rows: Callable[[bytes, Reading, int], list[IndexRow] | None]
    texts: Texts | None = None
    removable: Callable[[bytes, Reading, int], IndexRow | None] = lambda key, tx, row: None
    records: Callable[[Reading, int, int], list[int]] | None = None

    def keys(self, tx: Reading, after: int, most: int) -> list[int]:
        """As `records`."""
        if self.records is not None:
            return self.records(tx, after, most)
        return index_terms.keys(tx, self.tables[0].code, after, most)


class Verified(NamedTuple):
    """What verify looks at.

    Attributes:
        rows: what there is in the whole store, by what it is called.
        checks: by the step that each is; they look at the tables alone.
        of_space: those of the checks' findings that are of a space, as far as a caller may know of them.
        links: derived refs that say something else than the plane's records.
        opened: checks that open what is sealed or take the store's key, by their step: each says how many there are,
            and what it found.
        owned: as `of_space`, of what these find.
    """

    rows: Callable[[Reading], Counts] = lambda tx: {}
    checks: Mapping[str, Callable[[Reading], Iterator[Finding]]] = {}
    of_space: Callable[[Reading, int, Sight], Iterable[Finding]] = lambda tx, space, sight: ()
    links: Callable[[Reading], Iterable[Finding]] = lambda tx: ()
    opened: Mapping[str, Callable[[Invocation, Reading], tuple[int, list[Finding]]]] = {}
    owned: Callable[[Invocation, Reading, int], Iterable[Finding]] = lambda invocation, tx, space: ()


class Named(NamedTuple):
    """The records that refs of a plane name.

    Attributes:
        planes: what stands before the colon of its refs.
        problem: what is wrong with a derived ref that says it is of such a record of the space.
        matter: whose matter it is that a derived ref of such a record is there.
        resolves: whether the record is there for this caller; None where only a look at files would tell.
    """

    planes: tuple[str, ...]
    problem: Callable[[Reading, int, str], Problem | None] = lambda tx, space, derived: "unknown_record"
    resolves: Callable[[Invocation, Reading, int, Ref], bool | None] = lambda invocation, tx, space, ref: False
    matter: Callable[[Reading, int, str], Matter] = lambda tx, space, derived: "shared"


class Erased(NamedTuple):
    """What a plane holds of the content of turns, which goes when they are raw-deleted."""

    holds: Callable[[Reading, int], bool]
    erase: Callable[[Writing, Sequence[int], Sequence[int]], None]
    """Is given turns and their messages, by their keys."""


class Exported(NamedTuple):
    """What of a plane goes along in a snapshot or an archive.

    Attributes:
        place: planes are read in the order of these: what is named before what names it.
        gather: the fields of `Records` that it fills, of one space.
    """

    place: int
    gather: Callable[[Gathering, int], dict[str, Any]]


class Plane(NamedTuple):
    """One plane of memory, by its name in requests and refs."""

    name: str
    recall: Recall | None = None
    projected: Projected | None = None
    indexed: Indexed | None = None
    verified: Verified | None = None
    named: Named | None = None
    erased: Erased | None = None
    forgotten: Forgotten | None = None
    exported: Exported | None = None
    counts: Callable[[Reading, int | None, Sight], Counts] | None = None
    """What a space holds of it, as far as a caller may know: fields of `PlaneCounts`."""
