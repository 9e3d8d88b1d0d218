"""Long-term facts: what holds, what held once, and how to put it right or forget it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, cast, get_args

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from beetle.contracts.codec import to_plain
from beetle.contracts.common import Report
from beetle.contracts.errors import BeetleError, NotFound
from beetle.contracts.governance import FactKind
from beetle.contracts.long_term import (
    FactAction,
    FactRevision,
    FactState,
    LongTermDetailReport,
    LongTermListReport,
    LongTermMutateReport,
    LongTermRecord,
)
from beetle.contracts.memory import MemoryCapabilityCatalog
from beetle_tui.area import AreaScreen
from beetle_tui.bounds import TooLongToEdit, bound
from beetle_tui.dialogs import Ask, Faults, error_lines, needed
from beetle_tui.erased import erasure_lines
from beetle_tui.filter import FilterBar
from beetle_tui.form import Choose, Field, Form, Option
from beetle_tui.keys import hinted
from beetle_tui.memory.section import NOT_SHOWN, StateSection, day, seen_through, short
from beetle_tui.naming import ConfirmEach
from beetle_tui.prose import Block, section
from beetle_tui.rows import PAGE, Batch, CursorRows
from beetle_tui.split import remark, value, written
from beetle_tui.table import Column
from beetle_tui.text import count, moment

KINDS: tuple[str, ...] = get_args(FactKind)
REACHES = {
    "public_runtime": "everyone whom memory reaches",
    "shared_with_subject": "whoever may see shared material",
    "subject_private": "the space's own agent alone",
}
MOST_REASON = 512
SHOWN_WORDS = 500
"""Characters of a fact that a question about it shows."""


class Facts(StateSection[LongTermRecord]):
    """The facts of the caller's memory space, the newest first."""

    TITLE = "Facts"
    NOUN = ("fact", "facts")
    STATES = (*get_args(FactState), "all")
    EMPTY = "No such fact"
    HOW = (
        "Facts are what holds beside what was said. They come from candidates and extractions that are accepted, or "
        "from the model that reads what was said (memory.maintain).\n\n"
        "{fact-state} shows stale, superseded and deleted ones too."
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("c", "reword('correct')", "Fix", id="fact-correct", tooltip="say the fact better: a new revision"),
        Binding("m", "stale", "Stale", id="fact-stale", tooltip="mark the fact stale: recall leaves it out"),
        Binding("d", "delete", "Delete", id="fact-delete", tooltip="erase the fact; a tombstone stays"),
        Binding("f", "forget", "Forget", id="fact-forget", tooltip="erase every fact that holds some words"),
        Binding("v", "state", "State", id="fact-state", tooltip="current, stale, superseded, deleted, or all facts"),
        Binding("i", "kind", "Kind", id="fact-kind", tooltip="only facts of one kind", show=False),
        Binding("u", "reword('supersede')", "Supersede", id="fact-supersede", tooltip="put another fact in its place",
                show=False),
        Binding("w", "reach", "Whom", id="fact-reach", tooltip="change whom the fact may reach", show=False),
    ]  # fmt: skip

    def __init__(self, area: AreaScreen) -> None:
        super().__init__(area)
        self._kind: str | None = None
        self._only: str | None = None
        """The ref that was followed to a fact, while the list holds that fact alone."""

    def compose(self) -> ComposeResult:
        """The list, the detail, and what filters."""
        yield from super().compose()
        yield FilterBar("words that topic, content or keywords must all hold")

    def columns(self) -> Sequence[Column[LongTermRecord]]:
        """See Section."""
        return (
            Column("State", lambda row: row.state, 10),
            Column("Kind", lambda row: row.kind, 12, narrow=80),
            Column("Topic", lambda row: row.topic or "", 18),
            Column("Fact", lambda row: _words(row)),
            Column("By", lambda row: row.authority, 17, narrow=120),
            Column("Changed", lambda row: day(row.updated_at), 10, narrow=70),
        )

    def key(self, row: LongTermRecord) -> object:
        """See Section."""
        return row.ref

    def named(self, row: LongTermRecord) -> str:
        """See Section."""
        return row.content or row.ref

    async def rows(self) -> CursorRows[LongTermRecord]:
        """See Section."""
        if (ref := self._only) is not None:
            self.listing.note(hinted(self.app, "a ref led to it; {section-back} in the list shows all"))
            return CursorRows(lambda cursor, most: self._one(ref))
        kept = [each for each in (self.state, self._kind) if each not in (None, "current")]
        query = self.query_one(FilterBar).text
        self.listing.note(", ".join([*map(str, kept), *([f"holding “{query}”"] if query else [])]))
        return CursorRows(self._page)

    async def look(self, row: LongTermRecord) -> tuple[str, Iterable[Block]]:
        """See Section."""
        seen = await self._whole(row.ref)
        return title_of(seen.record), list(fact_parts(seen))

    async def whole(self, row: LongTermRecord) -> Any:
        """See Section."""
        return to_plain(await self._whole(row.ref))

    async def _whole(self, ref: str) -> LongTermDetailReport:
        asked = {"ref": ref, "history": True, "view": self.view}
        return cast(LongTermDetailReport, await self.area.link.call("long_term.detail", asked))

    def show_ref(self, ref: str) -> None:
        """Choose one fact in the list; where that does not hold it, list it alone, until another list is wanted."""
        self.begin(partial(self._show_ref, ref))

    async def _show_ref(self, ref: str) -> None:
        if self.view is None:
            catalog = await self.area.ask("memory.capabilities")
            if catalog is None:
                return
            self.view = seen_through(cast(MemoryCapabilityCatalog, catalog))
        table = self.table
        try:
            while (rows := table.rows) is not None and rows.missing(table.index, table.index):
                # None of its rows is current while it is read again, and that may begin anew meanwhile.
                await rows.load(table.index, table.index)
            place = None if rows is None else rows.place_of(lambda row: row.ref == ref, table.index)
            if place is None:
                await self._whole(ref)
        except BeetleError as error:
            self.area.show_notice(error)
            return
        if place is not None:
            table.choose(place)
        else:
            self._only = ref
            await self.list_anew()
        self.detail.focus()

    def show_anew(self) -> None:
        """See Section: no fact is listed alone any more."""
        self._only = None
        super().show_anew()

    def action_back(self) -> None:
        """To the list; there, from one fact alone to all of them."""
        if self._only is not None and self.table.has_focus:
            self.show_anew()
        super().action_back()

    async def _one(self, ref: str) -> Batch[LongTermRecord]:
        try:
            return Batch(((await self._whole(ref)).record,), None, 1)
        except NotFound:
            return Batch((), None, 0)

    async def _page(self, cursor: str | None, most: int) -> Batch[LongTermRecord]:
        query = self.query_one(FilterBar).text or None
        asked = {
            "query": query, "kind": self._kind, "state": self.state, "view": self.view, "limit": most,
            "cursor": cursor,
        }  # fmt: skip
        found = cast(LongTermListReport, await self.area.link.call("long_term.list", asked))
        return Batch(found.records, found.next_cursor, found.total)

    def on_filter_bar_filtered(self) -> None:
        """Other words."""
        self.show_anew()

    @work(group="action", exclusive=True)
    async def action_kind(self) -> None:
        """Have a kind chosen."""
        options = [Option("", "every kind"), *(Option(each, each) for each in KINDS)]
        chosen = await self.app.push_screen_wait(Choose("Only facts of the kind", options, self._kind or ""))
        if chosen is not None:
            self._kind = chosen or None
            self.show_anew()

    def action_reword(self, action: FactAction) -> None:
        """Correct the fact, or put another in its place."""
        self.with_chosen(partial(self._reword, action))

    def action_stale(self) -> None:
        """Mark the fact stale."""
        self.with_chosen(self._stale)

    def action_reach(self) -> None:
        """Change whom the fact may reach."""
        self.with_chosen(self._reach)

    def action_delete(self) -> None:
        """Erase the fact, once it was said what goes."""
        self.with_chosen(self._delete)

    def action_forget(self) -> None:
        """Erase every fact that holds some words: rehearsed first, and done with the rehearsal's token."""
        self.begin(self._forget)

    async def _reword(self, action: FactAction, row: LongTermRecord) -> None:
        if row.content is None:
            self.area.show_notice("the words of this fact are not shown in this view, so they cannot be changed here")
            return
        try:
            bound("the fact", row.content)
        except TooLongToEdit as error:
            self.area.show_notice(f"{error.message}; `beetle long-term mutate` takes what the profile allows")
            return
        title = "Correct the fact" if action == "correct" else "Another fact in its place"

        async def run(values: Mapping[str, str]) -> Faults:
            return await self._mutate(row, action, values["reason"], **changed_words(row, values))

        fields, lines = word_fields(row), [row.ref]
        await self.app.push_screen_wait(Form(title, fields, lines, check=lambda given: _same(row, given), run=run))

    async def _stale(self, row: LongTermRecord) -> None:
        lines = [*_naming(row), "Recall and projection leave it out from now on; its words stay."]
        run = partial(self._mutate, row, "mark_stale")
        await self.app.push_screen_wait(Ask("Mark stale: why?", lines, fault=reason_fault, run=run))

    async def _reach(self, row: LongTermRecord) -> None:
        options = [Option(name, f"{name}: {told}") for name, told in REACHES.items()]
        privacy = await self.app.push_screen_wait(Choose("Whom the fact may reach", options))
        if privacy is not None:
            lines = [*_naming(row), f"It becomes {privacy}."]
            run = partial(self._mutate, row, "change_scope", privacy=privacy)
            await self.app.push_screen_wait(Ask("Why?", lines, fault=reason_fault, run=run))

    async def _delete(self, row: LongTermRecord) -> None:
        asked = {"action": "delete", "ref": row.ref, "view": self.view, "expected_revision": row.revision}
        foreseen = await self.area.ask("long_term.mutate", {**asked, "dry_run": True})
        if foreseen is None:
            return
        goes = cast(LongTermMutateReport, foreseen)
        if not goes.affected:
            self.area.show_notice(f"nothing would change: {goes.outcome}")
            return
        lines = [
            *_naming(row),
            f"Its words go, of {count(row.revision, 'revision')}. A tombstone stays: id, kind, states, times.",
            f"Links to evidence: {len(goes.derived_refs)}. What was said stays as it is.",
            "This cannot be undone.",
        ]
        if await self.agreed("Delete the fact?", lines):
            done = await self.changed("long_term.mutate", asked)
            if done is not None:
                await self.show_lines("Deleted", erased_lines(cast(LongTermMutateReport, done)))

    async def _forget(self) -> None:
        lines = ["Every fact whose topic, content or keywords hold all of these words is erased, whatever its state."]
        done: list[LongTermMutateReport] = []

        async def run(words: str) -> Faults:
            return await self._forget_words(words, done)

        words = self.query_one(FilterBar).text
        fault = needed("give words")
        await self.app.push_screen_wait(Ask("Forget by words", lines, value=words, fault=fault, run=run))
        if done:
            await self.show_lines("Forgotten", erased_lines(done[0]))

    async def _forget_words(self, words: str, done: list[LongTermMutateReport]) -> Faults:
        asked = {"action": "forget_by_query", "query": words, "view": self.view}
        try:
            goes = cast(LongTermMutateReport, await self.area.link.call("long_term.mutate", {**asked, "dry_run": True}))
            if goes.confirm_token is None or not goes.affected:
                return [f"no fact holds “{words}”: nothing to forget"]
            named = await self._named(words, goes.refs)
        except BeetleError as error:
            return error_lines(error)
        lines = [f"Words: {short(words)}", *forgotten_lines(goes)]
        if not await self.app.push_screen_wait(ConfirmEach("Forget these facts?", lines, named)):
            return ["Nothing was forgotten."]
        confirmed = {**asked, "confirm": goes.confirm_token}
        return await self.change(
            "long_term.mutate", confirmed, lambda report: done.append(cast(LongTermMutateReport, report))
        )

    async def _named(self, words: str, refs: Sequence[str]) -> list[str]:
        """What each of these facts says, with its ref. Those that hold the words now are listed at once; those whose
        earlier words held them are read one by one.

        Raises:
            BeetleError: one of them cannot be read.
        """
        known: dict[str, LongTermRecord] = {}
        asked = {"query": words, "state": "all", "view": self.view, "limit": PAGE}
        cursor: str | None = None
        while True:
            page = cast(LongTermListReport, await self.area.link.call("long_term.list", {**asked, "cursor": cursor}))
            known |= {each.ref: each for each in page.records}
            cursor = page.next_cursor
            if cursor is None:
                break
        for ref in refs:
            if ref not in known:
                known[ref] = (await self._whole(ref)).record
        return [f"{_named(known[ref])} ({ref})" for ref in refs]

    async def _mutate(self, row: LongTermRecord, action: FactAction, reason: str, **changes: Any) -> Faults:
        asked = {"action": action, "ref": row.ref, "reason": reason, "expected_revision": row.revision, **changes}

        def show_outcome(report: Report) -> None:
            done = cast(LongTermMutateReport, report)
            revision = "" if done.revision is None else f", revision {done.revision}"
            self.area.show_notice(f"{done.outcome}{revision}: {done.ref or row.ref}")

        return await self.change("long_term.mutate", {"view": self.view, **asked}, show_outcome)


def title_of(record: LongTermRecord) -> str:
    """What a fact is called."""
    return f"{record.topic or record.kind} ({record.state})"


def fact_parts(seen: LongTermDetailReport) -> Iterator[Block]:
    """The detail of a fact."""
    record = seen.record
    yield from written(_words(record)) if record.content is not None else remark(_words(record))
    shown = f" ({len(seen.derived_refs)} of {record.evidence})" if record.evidence else ""
    yield from section(f"Comes from{shown}")
    for each in seen.derived_refs:
        yield value(each.relation, each.evidence, each.evidence)
    if not seen.derived_refs:
        yield from remark("It cites no evidence." if not record.evidence else NOT_SHOWN)
    yield from section("About it")
    yield value("Ref", record.ref)
    yield value("State", record.state if record.state != "deleted" else "deleted: a tombstone, no word of it is left")
    if seen.superseded_by is not None:
        yield value("Replaced by", seen.superseded_by, seen.superseded_by)
    for each in seen.supersedes:
        yield value("Replaces", each, each)
    yield value("Kind", record.kind)
    if record.topic:
        yield value("Topic", record.topic)
    if record.keywords:
        yield value("Keywords", ", ".join(record.keywords))
    sure = "" if record.confidence is None else f", {record.confidence:.0%} sure"
    yield value("Word of", f"{record.authority}{sure}")
    yield value("Reaches", record.visibility)
    yield value("Learned", moment(record.created_at))
    if seen.policy != "none":
        yield value("Policy", f"{seen.policy}: a write of this kind and topic would meet it now")
    if record.digest is not None:
        yield value("Digest", record.digest)
    yield from section(count(len(seen.revisions), "revision"))
    for each in sorted(seen.revisions, key=lambda each: -each.revision):
        yield from _revision_parts(each)


def _revision_parts(each: FactRevision) -> Iterator[Block]:
    why = f": {each.reason}" if each.reason else ""
    yield value(
        f"{each.revision}", f"{moment(each.at)}  {each.action}, {each.state}; by {each.by}, {each.authority}{why}"
    )
    held = f"{moment(each.valid_from)} to {moment(each.valid_until) or 'now'}"
    source = [f"chat {each.source_chat_id}"] if each.source_chat_id else []
    source += [f"extractor {each.extractor}"] if each.extractor else []
    yield value("", "; ".join([f"held {held}", *source]))
    if each.content is not None:
        yield value("", short(each.content, 500))


def word_fields(row: LongTermRecord) -> list[Field]:
    """What a correction may change, as it is now; and the reason."""
    return [
        Field("content", "Fact", row.content or "", several=True, fault=needed("say something")),
        Field("topic", "Topic", row.topic or ""),
        Field("keywords", "Keywords, with commas between them", _joined(row)),
        Field("reason", "Why (kept with the revision)", fault=reason_fault),
    ]


def changed_words(row: LongTermRecord, values: Mapping[str, str]) -> dict[str, Any]:
    """What a person has changed of a fact's words."""
    found: dict[str, Any] = {}
    if values["content"] != row.content:
        found["content"] = values["content"]
    if values["topic"] != (row.topic or ""):
        found["topic"] = values["topic"]
    if values["keywords"] != _joined(row):
        found["keywords"] = tuple(each.strip() for each in values["keywords"].split(",") if each.strip())
    return found


def forgotten_lines(goes: LongTermMutateReport) -> Iterator[str]:
    """What a rehearsal of forgetting has found."""
    yield f"{count(goes.affected, 'fact')} would be erased; tombstones stay."
    if len(goes.refs) < goes.affected:
        yield f"Of these the first {len(goes.refs):,} are named below."
    if goes.waiting:
        yield f"{count(goes.waiting, 'waiting candidate')} would go with them."
    if goes.proposals:
        yield f"{count(goes.proposals, 'open proposal')} would go with them."
    yield "What was said stays as it is. This cannot be undone."


def erased_lines(done: LongTermMutateReport) -> list[str]:
    """What came of an erasure, with its receipt."""
    return [f"{count(done.affected, 'fact')}: {done.outcome}.", *erasure_lines(done)]


def reason_fault(text: str) -> str | None:
    """What is wrong with a reason."""
    if len(text) > MOST_REASON:
        return f"at most {MOST_REASON} characters"
    return needed("say why")(text)


def _same(row: LongTermRecord, values: Mapping[str, str]) -> str | None:
    return None if changed_words(row, values) else "nothing has been changed yet"


def _joined(record: LongTermRecord) -> str:
    return ", ".join(record.keywords or ())


def _words(record: LongTermRecord) -> str:
    if record.content is not None:
        return record.content
    return "(erased)" if record.state == "deleted" else NOT_SHOWN


def _named(record: LongTermRecord) -> str:
    words = short(_words(record), SHOWN_WORDS)
    return f"{record.topic}: {words}" if record.topic else words


def _naming(record: LongTermRecord) -> list[str]:
    """The lines of a question that say which fact it is about."""
    return [_named(record), f"({record.ref}, {record.state}, revision {record.revision})"]
