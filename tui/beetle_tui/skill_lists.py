"""The two lists of skills: their columns, their orders, and how they are read."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple, TypeVar

from beetle.contracts.agent_skills import AgentSkillSummary
from beetle.contracts.skills import SKILL_PREFIX, RuntimeSkillDetailReport, RuntimeSkillSummary, SkillSort
from beetle_tui.rows import Batch, CursorRows
from beetle_tui.skill_pages import SHORT_DATE, WITHHELD, state_of
from beetle_tui.table import Column, Listing, Table

T = TypeVar("T", RuntimeSkillSummary, AgentSkillSummary)

Fetch = Callable[[str | None, int], Awaitable[Batch[T]]]
NO_ROWS = "No skill"


class Order(NamedTuple):
    """One way to sort: what the operation takes, and how it is called."""

    sort: SkillSort
    descending: bool
    told: str


ORDERS = (
    Order("name", False, "by name"),
    Order("updated", True, "latest change first"),
    Order("revision", True, "most revisions first"),
    Order("name", True, "by name, backwards"),
    Order("updated", False, "oldest change first"),
)


def short_name(skill: RuntimeSkillSummary | RuntimeSkillDetailReport) -> str:
    """Every name begins alike."""
    return skill.name.removeprefix(SKILL_PREFIX)


RUNTIME_COLUMNS: tuple[Column[RuntimeSkillSummary], ...] = (
    Column("Name", short_name),
    Column("State", state_of, 7),
    Column("Rev", lambda each: str(each.revision), 4, right=True),
    Column("Changed", lambda each: each.updated_at[:SHORT_DATE], SHORT_DATE),
    Column("Title", lambda each: each.title or WITHHELD, narrow=64),
)
AGENT_COLUMNS: tuple[Column[AgentSkillSummary], ...] = (
    Column("Name", lambda each: each.name),
    Column("Mount", lambda each: each.mount, 14),
    Column("Files", lambda each: str(each.resources), 5, right=True),
    Column("", lambda each: "changed" if each.changed else "", 7),
    Column("Description", lambda each: each.description or WITHHELD, narrow=64),
)


class TwoWayRows(CursorRows[T]):
    """A list that can be asked for from either end: what is nearer to the last row is reached from there."""

    def __init__(self, fetch: Fetch[T], fetch_back: Fetch[T], on_progress: Callable[[int, int], None]) -> None:
        """`fetch_back` answers the same rows in the opposite order; both say how many there are."""
        super().__init__(fetch, on_progress=on_progress)
        self._fetch_back = fetch_back
        self._back: list[str | None] = [None]

    def forget(self) -> None:
        """See Rows. Where the last page begins may have changed too."""
        super().forget()
        self._back = [None]

    async def _load_page(self, page: int, current: Callable[[], bool]) -> bool:
        total = self._total
        from_end = (total - 1) // self.size - page if total else -1
        if total and from_end >= 0 and from_end - (len(self._back) - 1) < page - (len(self._cursors) - 1):
            return await self._load_back(page, from_end, total, current)
        return await super()._load_page(page, current)

    async def _load_back(self, page: int, from_end: int, total: int, current: Callable[[], bool]) -> bool:
        while True:
            at = min(from_end, len(self._back) - 1)
            reached = page + from_end - at
            wanted = min(self.size, total - reached * self.size)
            batch = await self._fetch_back(self._back[at], wanted)
            if not current():
                return False
            if batch.total != total or len(batch.rows) != wanted:
                # Somebody has added or deleted a row meanwhile: the way from the first row is always right.
                return await super()._load_page(page, current)
            self._keep(reached, batch.rows[::-1])
            if at == len(self._back) - 1:
                self._back.append(batch.next_cursor)
            if at == from_end:
                return True
            if self._on_progress is not None:
                self._on_progress(total - reached * self.size, total)


class SkillList(Listing[T]):
    """One of the two lists."""

    def __init__(self, table: Table[T], ask: Fetch[T], ask_back: Fetch[T] | None = None) -> None:
        """`ask` answers the page at a cursor; `ask_back` the same in the opposite order, where there is that."""
        super().__init__(table, noun=("skill", "skills"), empty=NO_ROWS)
        self.words = ""
        self._ask = ask
        self._ask_back = ask_back

    def fresh(self) -> CursorRows[T]:
        """The list from its beginning."""
        if self._ask_back is None:
            return CursorRows(self._ask, on_progress=self._note_way)
        return TwoWayRows(self._ask, self._ask_back, self._note_way)

    def _note_way(self, read: int, total: int) -> None:
        self.note(f"on the way: {read:,} of {total:,} read")


def is_out(skill: RuntimeSkillSummary) -> bool:
    """Whether recall passes it over."""
    return skill.retired or not skill.enabled
