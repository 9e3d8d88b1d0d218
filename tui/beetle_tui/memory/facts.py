"""Long-term facts: what holds, what held once, and how to put it right or forget it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, cast, get_args

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from beetle.contracts.errors import BeetleError
from beetle.contracts.governance import FactKind
from beetle.contracts.long_term import (
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
from beetle_tui.dialogs import Ask, needed
from beetle_tui.filter import FilterBar
from beetle_tui.form import Choose, Field, Form, Option
from beetle_tui.memory.section import NOT_SHOWN, StateSection, day, seen_through, short
from beetle_tui.prose import Block, section
from beetle_tui.rows import Batch, CursorRows
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
MOST_NAMED = 8
"""Refs that a question names one by one."""


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
        self._named: tuple[str, int] | None = None
        """The ref that was followed to a fact, and where the list stood then; while that is shown."""

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
        kept = [each for each in (self.state, self._kind) if each not in (None, "current")]
        query = self.query_one(FilterBar).text
        self.listing.note(", ".join([*map(str, kept), *([f"holding “{query}”"] if query else [])]))
        return CursorRows(self._page)

    async def look(self, row: LongTermRecord) -> tuple[str, Iterable[Block]]:
        """See Section."""
        seen = await self._whole(row.ref)
        return title_of(seen.record), list(fact_parts(seen))

    async def _whole(self, ref: str) -> LongTermDetailReport:
        asked = {"ref": ref, "history": True, "view": self.view}
        return cast(LongTermDetailReport, await self.area.link.call("long_term.detail", asked))

    def show_ref(self, ref: str) -> None:
        """Show one fact, whatever the list holds, until another row is chosen."""
        self._named = ref, self.table.index
        self.look_again()
        self.detail.focus()

    def look_again(self) -> None:
        """See Section."""
        if self._named is None:
            super().look_again()
        else:
            self.run_worker(partial(self._look_at, self._named[0]), name="look", group="look", exclusive=True)

    def moves_on(self) -> bool:
        """See Section: what a ref named stays in sight while the list is read."""
        if self._named is not None and self.table.index == self._named[1]:
            return False
        self._named = None
        return True

    async def _look_at(self, ref: str) -> None:
        try:
            if self.view is None:
                self.view = seen_through(
                    cast(MemoryCapabilityCatalog, await self.area.link.call("memory.capabilities"))
                )
            seen = await self._whole(ref)
        except BeetleError as error:
            self._named = None
            self.area.tell(error)
            return
        self.row = seen.record
        self.detail.tell_of(title_of(seen.record), self.key(seen.record), fact_parts(seen))

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

    @work(group="action", exclusive=True)
    async def action_reword(self, action: str) -> None:
        """Correct the fact, or put another in its place."""
        row = self._chosen()
        if row is None:
            return
        if row.content is None:
            self.area.tell("the words of this fact are not shown in this view, so they cannot be changed here")
            return
        try:
            bound("the fact", row.content)
        except TooLongToEdit as error:
            self.area.tell(f"{error.message}; `beetle long-term mutate` takes what the profile allows")
            return
        title = "Correct the fact" if action == "correct" else "Another fact in its place"
        values = await self.app.push_screen_wait(Form(title, word_fields(row), check=lambda given: _same(row, given)))
        if values is None:
            return
        await self._mutate(row, action, values["reason"], **changed_words(row, values))

    @work(group="action", exclusive=True)
    async def action_stale(self) -> None:
        """Mark the fact stale."""
        row = self._chosen()
        if row is None:
            return
        lines = [_named(row), "Recall and projection leave it out from now on; its words stay."]
        reason = await self.app.push_screen_wait(Ask("Mark stale: why?", lines, fault=reason_fault))
        if reason is not None:
            await self._mutate(row, "mark_stale", reason)

    @work(group="action", exclusive=True)
    async def action_reach(self) -> None:
        """Change whom the fact may reach."""
        row = self._chosen()
        if row is None:
            return
        options = [Option(name, f"{name}: {told}") for name, told in REACHES.items()]
        privacy = await self.app.push_screen_wait(Choose("Whom the fact may reach", options))
        if privacy is None:
            return
        reason = await self.app.push_screen_wait(
            Ask("Why?", [_named(row), f"It becomes {privacy}."], fault=reason_fault)
        )
        if reason is not None:
            await self._mutate(row, "change_scope", reason, privacy=privacy)

    @work(group="action", exclusive=True)
    async def action_delete(self) -> None:
        """Erase the fact, once it was said what goes."""
        row = self._chosen()
        if row is None:
            return
        asked = {"action": "delete", "ref": row.ref, "view": self.view}
        foreseen = await self.area.ask("long_term.mutate", {**asked, "dry_run": True})
        if foreseen is None:
            return
        goes = cast(LongTermMutateReport, foreseen)
        if not goes.affected:
            self.area.tell(f"nothing would change: {goes.outcome}")
            return
        lines = [
            _named(row),
            f"Its words go, of {count(row.revision, 'revision')}. A tombstone stays: id, kind, states, times.",
            f"Links to evidence: {len(goes.derived_refs)}. What was said stays as it is.",
            "This cannot be undone.",
        ]
        if await self.agreed("Delete the fact?", lines):
            done = await self.changed("long_term.mutate", {**asked, "expected_revision": row.revision})
            if done is not None:
                await self.told("Deleted", erased_lines(cast(LongTermMutateReport, done)))

    @work(group="action", exclusive=True)
    async def action_forget(self) -> None:
        """Erase every fact that holds some words: rehearsed first, and done with the rehearsal's token."""
        lines = ["Every fact whose topic, content or keywords hold all of these words is erased, whatever its state."]
        words = await self.app.push_screen_wait(
            Ask("Forget by words", lines, value=self.query_one(FilterBar).text, fault=needed("give words"))
        )
        if words is None:
            return
        asked = {"action": "forget_by_query", "query": words, "view": self.view}
        foreseen = await self.area.ask("long_term.mutate", {**asked, "dry_run": True})
        if foreseen is None:
            return
        goes = cast(LongTermMutateReport, foreseen)
        if goes.confirm_token is None or not goes.affected:
            self.area.tell(f"no fact holds “{words}”: nothing to forget")
            return
        if await self.agreed("Forget these facts?", [f"Words: {short(words)}", *forgotten_lines(goes)]):
            done = await self.changed("long_term.mutate", {**asked, "confirm": goes.confirm_token})
            if done is not None:
                await self.told("Forgotten", erased_lines(cast(LongTermMutateReport, done)))

    async def _mutate(self, row: LongTermRecord, action: str, reason: str, **changes: Any) -> None:
        asked = {"action": action, "ref": row.ref, "reason": reason, "expected_revision": row.revision, **changes}
        done = await self.changed("long_term.mutate", {"view": self.view, **asked})
        if done is not None:
            report = cast(LongTermMutateReport, done)
            revision = "" if report.revision is None else f", revision {report.revision}"
            self.area.tell(f"{report.outcome}{revision}: {report.ref or row.ref}")

    def _chosen(self) -> LongTermRecord | None:
        if self.row is None:
            self.area.tell("no fact is chosen")
        return self.row


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
    yield from (f"  {each}" for each in goes.refs[:MOST_NAMED])
    if len(goes.refs) > MOST_NAMED:
        yield f"  and {len(goes.refs) - MOST_NAMED:,} more"
    if goes.waiting:
        yield f"{count(goes.waiting, 'waiting candidate')} would go with them."
    if goes.proposals:
        yield f"{count(goes.proposals, 'open proposal')} would go with them."
    yield "What was said stays as it is. This cannot be undone."


def erased_lines(done: LongTermMutateReport) -> list[str]:
    """What came of an erasure, with its receipt."""
    lines = [f"{count(done.affected, 'fact')}: {done.outcome}."]
    if done.erasure == "done":
        lines.append("No byte of it is left in the store's files.")
    elif done.erasure == "pending":
        lines.append("Erasure is pending: a reader still holds the old content.")
    if done.replica_horizon is not None:
        lines.append(f"Copies of the store up to {moment(done.replica_horizon)} may hold it still.")
    if done.receipt is not None:
        lines += ["", "Receipt (beetle verify --receipt checks it):", done.receipt]
    return lines


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
    return f"{record.topic}: {short(_words(record))}" if record.topic else short(_words(record))
