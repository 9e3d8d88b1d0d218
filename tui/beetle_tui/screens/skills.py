"""Skills: what was learned, with its history and its evidence, and beside it what the host has mounted."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial
from typing import Any, ClassVar, cast

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from beetle.contracts.agent_skills import (
    AgentSkillFinding,
    AgentSkillListReport,
    AgentSkillMount,
    AgentSkillSummary,
)
from beetle.contracts.codec import to_plain
from beetle.contracts.errors import BeetleError, NotFound
from beetle.contracts.refs import Ref, parse_ref
from beetle.contracts.skills import (
    RuntimeSkillDetailReport,
    RuntimeSkillListReport,
    RuntimeSkillMutationReport,
    RuntimeSkillSummary,
)
from beetle_tui.area import AreaScreen, Shared
from beetle_tui.dialogs import Confirm
from beetle_tui.diff import DiffScreen
from beetle_tui.document import Document
from beetle_tui.exporting import Pages, lines_of, one_line
from beetle_tui.filter import FilterBar
from beetle_tui.keys import hinted
from beetle_tui.link import Lost
from beetle_tui.prose import Block, plain
from beetle_tui.rows import Batch
from beetle_tui.sections import Sections
from beetle_tui.skill_lists import AGENT_COLUMNS, ORDERS, RUNTIME_COLUMNS, SkillList, is_out, short_name
from beetle_tui.skill_pages import (
    Revised,
    agent_page,
    deletion_lines,
    error_page,
    mounts_page,
    skill_page,
    steps,
)
from beetle_tui.split import Split
from beetle_tui.steps import Receipt
from beetle_tui.table import Table
from beetle_tui.text import count

QUERY_CHARACTERS = 256
"""What a list takes of a filter."""
SEGMENTS: Mapping[str, int] = {"procedural": 1, "agent_skill": 2}
"""How many segments of a ref name a skill, by its plane; the last of them is what it is called."""
NO_SKILLS = "No runtime skills yet. An agent writes them with `memory.write`, or governance admits them as candidates."
NO_AGENT_SKILLS = "No Agent Skills. The host mounts folders of them: `dirs` under [agent_skills] in beetle.toml."
NOTHING_FITS = "No skill holds all of these words."


class Skills(AreaScreen):
    """Runtime skills and agent skills: one list at a time, and what the chosen one is."""

    AUTO_FOCUS: ClassVar[str | None] = "Listing.-shown Table"
    SCROLLS: ClassVar[bool] = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("i", "edit", "Edit", id="skill-edit", tooltip="edit the skill: a new revision"),
        Binding("o", "turn", "On/off", id="skill-turn", tooltip="have recall use the skill, or pass it over"),
        Binding("d", "delete", "Delete", id="skill-delete", tooltip="delete the skill with every revision"),
        Binding("h", "history", "Diffs", id="skill-history", tooltip="what each revision changed"),
        Binding("s", "sort", "Sort", id="skill-sort", tooltip="sort by name, change or revisions"),
        Binding("v", "receipt", "Receipt", id="skill-receipt", tooltip="the receipt of the last change", show=False),
        Binding("left,right", "side", "Other list", id="skill-side", tooltip="runtime skills or agent skills",
                show=False),
        Binding("escape", "back", "Back", id="skill-back", tooltip="back to the list", show=False),
    ]  # fmt: skip
    DEFAULT_CSS = """
    Skills Listing { display: none; }
    Skills Listing.-shown { display: block; }
    Skills Split > Document:focus { height: 3fr; }
    """
    RUNTIME_ONLY: ClassVar[frozenset[str]] = frozenset({"edit", "turn", "delete", "history", "sort"})

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        self._order = 0
        self._wanted: RuntimeSkillSummary | None = None
        self._detailing = False
        self._shown: RuntimeSkillDetailReport | None = None
        self._aim: Ref | None = None
        self._goal: Revised | None = None
        self._changed: RuntimeSkillMutationReport | None = None
        self._findings: tuple[AgentSkillFinding, ...] = ()
        self._mounts: tuple[AgentSkillMount, ...] = ()
        table = Table(RUNTIME_COLUMNS, id="runtime-skills", dim=is_out, key=lambda each: each.ref)
        self._runtime = SkillList(table, self._runtime_page, self._runtime_page_back)
        self._agent = SkillList(Table(AGENT_COLUMNS, id="agent-skills", key=lambda each: each.ref), self._agent_page)
        self._shelf: SkillList[Any] = self._runtime

    def compose_area(self) -> ComposeResult:
        """Which list, the list, and what is chosen in it."""
        yield Sections(("Runtime skills", "Agent skills"), "{skill-side*}: another part")
        with Split():
            yield self._runtime
            yield self._agent
            yield Document(id="skill")
        yield FilterBar("words of name, title, topic or summary")

    def on_mount(self) -> None:
        """One of the lists is seen."""
        super().on_mount()
        self._runtime.add_class("-shown")

    async def load(self) -> None:
        """See AreaScreen. Only the list that is seen is asked for."""
        shelf = self._shelf
        rows, index = shelf.table.rows, shelf.table.index
        if rows is None:
            rows = shelf.fresh()
        else:
            rows.forget()
        await rows.load(index, index)
        if shelf.table.rows is None:
            shelf.table.show(rows)
        shelf.table.read()
        if shelf is self._shelf:
            self._note()
            # The row may be as it was, and what belongs to it not.
            self._choose(shelf.table.chosen)

    async def _begin(self, shelf: SkillList[Any]) -> None:
        """Show a list from its first row on, which tells of that row; raises BeetleError, and leaves what was shown."""
        rows = shelf.fresh()
        await rows.load(0, 0)
        shelf.table.show(rows)
        if shelf is self._shelf:
            self._note()
            if shelf.table.chosen is None:
                self._choose(None)

    async def _runtime_page(self, cursor: str | None, limit: int) -> Batch[RuntimeSkillSummary]:
        return await self._runtime_rows(cursor, limit, ORDERS[self._order].descending)

    async def _runtime_page_back(self, cursor: str | None, limit: int) -> Batch[RuntimeSkillSummary]:
        return await self._runtime_rows(cursor, limit, not ORDERS[self._order].descending)

    async def _runtime_rows(self, cursor: str | None, limit: int, descending: bool) -> Batch[RuntimeSkillSummary]:
        words = self._runtime.words
        asked = {
            "query": words, "include_retired": True, "sort": ORDERS[self._order].sort, "descending": descending,
            "limit": limit, "cursor": cursor,
        }  # fmt: skip
        report = cast(RuntimeSkillListReport, await self.link.call("skill.list", asked))
        return Batch(report.runtime_skills, report.next_cursor, None if words else report.total)

    async def _agent_page(self, cursor: str | None, limit: int) -> Batch[AgentSkillSummary]:
        query = self._agent.words
        asked = {"query": query, "limit": limit, "cursor": cursor}
        report = cast(AgentSkillListReport, await self.link.call("agent_skill.list", asked))
        self._findings, self._mounts = report.findings, report.mounts or ()
        return Batch(report.skills, report.next_cursor, None if query else report.total)

    def _note(self) -> None:
        """What the foot of the list says besides the place in it."""
        notes = [ORDERS[self._order].told] if self._shelf is self._runtime else []
        if self._shelf is self._agent and self._findings:
            notes.append(count(len(self._findings), "finding"))
        if self._shelf.words:
            notes.append("filtered")
        self._shelf.note(", ".join(notes))

    def on_table_chosen(self, event: Table.Chosen) -> None:
        """Another skill, or the same one read again."""
        if event.table is self._shelf.table and event.row is not None:
            self._note()
            self._choose(event.row)

    def on_table_opened(self, event: Table.Opened) -> None:
        """Read what it is."""
        event.stop()
        self.query_one(Document).focus()

    def on_document_followed(self, event: Document.Followed) -> None:
        """To what a revision changed."""
        if isinstance(event.target, Revised):
            self._show_change(event.target.revision)

    def on_filter_bar_filtered(self, event: FilterBar.Filtered) -> None:
        """Only what holds these words; each list has its own."""
        self._shelf.words = event.text
        self._read_anew()

    @work(group="list", exclusive=True)
    async def _read_anew(self) -> None:
        """Another order, other words: from the first row on, or at the skill that is aimed at."""
        self.hide_notice()
        try:
            await self._begin(self._shelf)
            aim, self._aim = self._aim, None
            if aim is not None:
                self._take(aim)
        except BeetleError as error:
            self._aim = None
            self.show_notice(error)

    def _choose(self, row: Any) -> None:
        """Have what is chosen shown: of several in a row only the last one is asked for."""
        document = self.query_one(Document)
        if isinstance(row, RuntimeSkillSummary):
            self._wanted = row
            if not self._detailing:
                self._detailing = True
                self.run_worker(self._show_wanted, group="detail")
            return
        self._wanted = self._shown = None
        if isinstance(row, AgentSkillSummary):
            document.entitle(row.name)
            document.show(row.ref, agent_page(row, self._findings, self._mounts))
        else:
            document.entitle("")
            document.show(None, self._empty_page())

    def _empty_page(self) -> Iterator[Block]:
        if self._shelf.words:
            yield plain(NOTHING_FITS)
        else:
            yield plain(NO_SKILLS if self._shelf is self._runtime else NO_AGENT_SKILLS)
        if self._shelf is self._agent and (self._findings or self._mounts):
            yield from mounts_page(self._findings, self._mounts)

    async def _show_wanted(self) -> None:
        try:
            while (row := self._wanted) is not None:
                self._wanted = None
                await self._show_detail(row)
        finally:
            self._detailing = False

    async def _show_detail(self, row: RuntimeSkillSummary) -> None:
        document = self.query_one(Document)
        try:
            report = cast(RuntimeSkillDetailReport, await self.link.call("skill.detail", {"name": row.name}))
        except BeetleError as error:
            if not isinstance(self.link.state, Lost) and self._wanted is None and self._shelf is self._runtime:
                self._shown = None
                document.show(None, error_page(error))
            return
        # A list that is no longer seen has nothing to show here; nor has what was asked before.
        if self._shelf is not self._runtime or self._wanted is not None:
            return
        self._show_report(report)
        if self._goal is not None:
            document.go_to(self._goal)
            self._goal = None

    def action_side(self) -> None:
        """The other list."""
        self._show_shelf(self._agent if self._shelf is self._runtime else self._runtime)

    def on_sections_picked(self, event: Sections.Picked) -> None:
        """That list."""
        self._show_shelf((self._runtime, self._agent)[event.index])

    def _show_shelf(self, shelf: SkillList[Any]) -> None:
        self._turn_to(shelf)
        if self._shelf.table.rows is None:
            self.read_now()
        else:
            self._choose(self._shelf.table.chosen)
            self.read_soon()

    def open_place(self, place: str) -> None:
        """See AreaScreen: the agent skills are `agent`."""
        if place == "agent" and self._shelf is not self._agent:
            self.action_side()

    def _turn_to(self, shelf: SkillList[Any]) -> None:
        if shelf is self._shelf:
            return
        self._shelf.remove_class("-shown")
        self._shelf = shelf
        shelf.add_class("-shown")
        self.query_one(Sections).choose(int(shelf is self._agent))
        self._shown = None
        self.query_one(Document).show(None, ())
        self.query_one(FilterBar).set_text(shelf.words)
        shelf.table.focus()
        self.refresh_bindings()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Agent skills are the host's: they are only read."""
        if action in self.RUNTIME_ONLY and self._shelf is not self._runtime:
            return False
        return super().check_action(action, parameters)

    def action_back(self) -> None:
        """From the page to the list, and there to the list without a filter."""
        self.hide_notice()
        table = self._shelf.table
        if table.has_focus and self._shelf.words:
            self.query_one(FilterBar).set_text("")
        table.focus()

    def action_sort(self) -> None:
        """The next order; the first row of it is chosen."""
        self._order = (self._order + 1) % len(ORDERS)
        self._read_anew()

    def open_ref(self, ref: str) -> None:
        """See AreaScreen: the list is filtered down to the skill, so that it is found in a list of any length."""
        aim = parse_ref(ref)
        if aim is None or aim.plane not in SEGMENTS:
            self.show_notice(f"{ref} names no skill")
            return
        shelf = {"procedural": self._runtime, "agent_skill": self._agent}[aim.plane]
        self._aim = aim
        shelf.words = aim.segments[SEGMENTS[aim.plane] - 1][:QUERY_CHARACTERS]
        self._turn_to(shelf)
        self.query_one(FilterBar).set_text(shelf.words)
        self._read_anew()

    def _take(self, aim: Ref) -> None:
        """Choose the skill that a ref names among those that were found; a revision of it among the others.

        Raises:
            NotFound: it is not among them.
        """
        table = self._shelf.table
        known = Ref(aim.plane, aim.segments[: SEGMENTS[aim.plane]])
        rows = table.rows
        assert rows is not None
        found = (at for at in range(rows.count) if (row := rows.get(at)) is not None and row.ref == str(known))
        at = next(found, None)
        if at is None:
            raise NotFound(kind="skill", name=str(known), listing="it may have been deleted, or unmounted")
        if aim != known and aim.segments[1].isdecimal():
            self._goal = Revised(int(aim.segments[1]))
        table.choose(at)
        self._choose(table.chosen)
        self.query_one(Document).focus()

    def action_turn(self) -> None:
        """On or off; its content stays as it is."""
        self._with_chosen(self._turn)

    def action_delete(self) -> None:
        """Say what goes, and delete it for a yes."""
        self._with_chosen(self._delete)

    def action_edit(self) -> None:
        """Edit the skill as it is now."""
        self._with_chosen(self._edit)

    def action_history(self) -> None:
        """What the last revision changed; the others are a key away."""
        self._with_chosen(self._history)

    def _with_chosen(self, step: Callable[[RuntimeSkillSummary], Awaitable[None]]) -> None:
        """Take a step with the skill that is highlighted as the key is pressed."""
        skill = self._runtime.table.chosen
        if skill is None:
            self.show_notice("no skill is chosen")
        else:
            self.run_worker(partial(step, skill), group="act", exclusive=True)

    def _show_report(self, report: RuntimeSkillDetailReport) -> None:
        if not _alike(report, self._shown):
            document = self.query_one(Document)
            self._shown = report
            document.entitle(short_name(report))
            document.show(report.ref, skill_page(report))

    async def _turn(self, skill: RuntimeSkillSummary) -> None:
        asked = {"name": skill.name, "enabled": not skill.enabled}
        self._show_outcome(cast("RuntimeSkillMutationReport | None", await self.ask("skill.set_enabled", asked)))

    async def _delete(self, skill: RuntimeSkillSummary) -> None:
        report = await self._whole(skill)
        if report is None or not await self.app.push_screen_wait(
            Confirm(f"Delete {report.name}?", deletion_lines(report))
        ):
            return
        now = await self._whole(skill)
        if now is None:
            return
        if not _alike(now, report):
            self.show_notice(f"{skill.name} was changed meanwhile, and nothing was done")
            return
        told = await self.ask("skill.delete", {"name": report.name})
        self._show_outcome(cast("RuntimeSkillMutationReport | None", told))

    async def _edit(self, skill: RuntimeSkillSummary) -> None:
        # The widget to edit in is large, and most look only.
        from beetle_tui.bounds import bound
        from beetle_tui.editor import Draft, SkillEditor

        report = await self._whole(skill)
        if report is None:
            return
        texts = (report.title, report.topic, report.summary, report.procedure)
        if None in texts:
            self.show_notice("the texts of this skill are withheld from this caller: there is nothing to edit")
            return
        draft = Draft(*cast("tuple[str, str, str, str]", texts))
        try:
            bound("the procedure", draft.procedure)
        except BeetleError as error:
            self.show_notice(error)
            return
        self._show_outcome(await self.app.push_screen_wait(SkillEditor(report, draft, self.link.call)))

    async def _history(self, skill: RuntimeSkillSummary) -> None:
        report = await self._whole(skill)
        if report is not None:
            self._show_report(report)
            self._show_change(report.revision)

    async def _whole(self, skill: RuntimeSkillSummary) -> RuntimeSkillDetailReport | None:
        """A skill as it is now; None where it is gone or refused, which is told then."""
        return cast("RuntimeSkillDetailReport | None", await self.ask("skill.detail", {"name": skill.name}))

    def _show_change(self, revision: int) -> None:
        if self._shown is None:
            return
        changes = steps(self._shown)
        if not changes:
            self.show_notice(f"{self._shown.name} has one revision: nothing was changed yet")
            return
        self.app.push_screen(DiffScreen(changes, min(max(0, revision - 2), len(changes) - 1)))

    def _show_outcome(self, report: RuntimeSkillMutationReport | None) -> None:
        """What came of an action; where no daemon tells of changes, read again."""
        if report is None:
            return
        self._changed = report
        proof = hinted(self.app, "; {skill-receipt} shows the receipt") if report.receipt else ""
        self.show_notice(f"{_outcome(report)}{proof}")
        self.outdate()

    def action_receipt(self) -> None:
        """What the last change has left as its proof."""
        if self._changed is None or self._changed.receipt is None:
            self.show_notice("nothing was changed here yet that has a receipt")
        else:
            self.app.push_screen(Receipt("Receipt", (_outcome(self._changed),), self._changed.receipt))

    def copied(self) -> str | None:
        """In the page what its line leads to or says, in the list the skill's ref."""
        document = self.query_one(Document)
        if document.has_focus:
            target = document.target
            return target if isinstance(target, str) else document.chosen_text or None
        chosen = self._shelf.table.chosen
        return None if chosen is None else chosen.ref

    def exported(self) -> Pages:
        """See AreaScreen: every skill of the list; in the page all of the one that it shows."""
        if self.query_one(Document).has_focus:
            row = self._shelf.table.chosen if self._shelf is self._agent else self._shown
            if row is not None:
                return one_line(to_plain(row))
        return lines_of(self._shelf.fresh())


def _outcome(report: RuntimeSkillMutationReport) -> str:
    last = "last revision" if report.outcome == "deleted" else "revision"
    return f"{report.name} {report.outcome}, {last} {report.revision}"


def _alike(report: RuntimeSkillDetailReport, shown: RuntimeSkillDetailReport | None) -> bool:
    """Whether two readings say the same; when they were read is no difference."""
    if shown is None:
        return False
    fields = (each for each in report.__struct_fields__ if each != "lifecycle")
    return all(getattr(report, each) == getattr(shown, each) for each in fields)
