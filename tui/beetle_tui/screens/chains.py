"""Chains: what agents thought, in its order; who they are, whether the chain is whole, and the skills they share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, ClassVar, NamedTuple, cast

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from beetle.contracts.chain_agents import ChainAgent, ChainAgentRegistryReport
from beetle.contracts.chains import (
    ChainHeadReport,
    ChainListReport,
    ChainSummary,
    ChainTraverseReport,
    Thought,
)
from beetle.contracts.codec import to_plain
from beetle.contracts.errors import BeetleError
from beetle.contracts.refs import parse_ref
from beetle.contracts.skill_registry import (
    SkillRegistryListReport,
    SkillRegistryReadReport,
    SkillRegistryVersionsReport,
    UploadedSkill,
)
from beetle_tui.area import AreaScreen, Shared
from beetle_tui.document import Document
from beetle_tui.exporting import Pages, lines_of, one_line
from beetle_tui.keys import hinted
from beetle_tui.prose import Block, plain, section
from beetle_tui.rows import Batch, CursorRows, NumberedRows, Rows
from beetle_tui.sections import Sections
from beetle_tui.split import Detail, Split, remark, value, written
from beetle_tui.table import Column, Listing, Table
from beetle_tui.text import count, moment

TITLES = ("Chains", "Thoughts", "Agents", "Skill registry")
CHAINS, THOUGHTS, AGENTS, SKILLS = range(4)
HIDDEN = "(not shown)"
DAY = 10
HASH_CHARS = 12
LATER = 500
"""Thoughts behind one that are searched for refs to it."""
FIRST_CHARS = 200
HOW = (
    "No chain yet. An agent makes one with `chain.append`, `beetle chain append` or the MCP tool `mentisdb_append`; "
    "`beetle import` takes in those of MentisDB.",
    "No thought yet: choose a chain in the part before.",
    "No agent has written to this chain.",
    "No skill was uploaded yet. Agents upload them with `skill_registry.upload`.",
)


class At(NamedTuple):
    """Where a line leads to: a thought of the chain that is shown."""

    position: int


class Links(NamedTuple):
    """The later thoughts that refer to one, and whether all later ones were looked at."""

    found: tuple[Thought, ...]
    complete: bool


def _first_line(text: str | None) -> str:
    return HIDDEN if text is None else text[:FIRST_CHARS].partition("\n")[0]


def _said(thought: Thought) -> str:
    """What a thought says, or why it says nothing."""
    if thought.content is not None:
        return thought.content
    return HIDDEN if thought.state == "live" else f"({thought.state})"


def _keys_of(agent: ChainAgent) -> str:
    active = sum(each.revoked_at is None for each in agent.public_keys)
    return f"{active} of {len(agent.public_keys)}" if agent.public_keys else "none"


CHAIN_COLUMNS: tuple[Column[ChainSummary], ...] = (
    Column("Chain", lambda each: each.chain_key),
    Column("Thoughts", lambda each: f"{each.thought_count:,}", 9, right=True),
    Column("Agents", lambda each: f"{each.agent_count:,}", 6, right=True),
    Column("Changed", lambda each: each.updated_at[:DAY], DAY),
    Column("Head", lambda each: (each.head_hash or "")[:HASH_CHARS], HASH_CHARS, narrow=64),
)
THOUGHT_COLUMNS: tuple[Column[Thought], ...] = (
    Column("#", lambda each: str(each.index), 7, right=True),
    Column("Type", lambda each: each.thought_type, 15),
    Column("Agent", lambda each: each.agent_name or each.agent_id, 12),
    Column("Thought", lambda each: _first_line(_said(each))),
    Column("Written", lambda each: each.timestamp[:DAY], DAY, narrow=70),
)
AGENT_COLUMNS: tuple[Column[ChainAgent], ...] = (
    Column("Agent", lambda each: each.agent_id),
    Column("Status", lambda each: each.status, 7),
    Column("Thoughts", lambda each: f"{each.thought_count:,}", 9, right=True),
    Column("Keys", _keys_of, 8),
    Column("Name", lambda each: each.display_name or HIDDEN, narrow=64),
)
SKILL_COLUMNS: tuple[Column[UploadedSkill], ...] = (
    Column("Skill", lambda each: each.skill_id),
    Column("Status", lambda each: each.status, 10),
    Column("Ver", lambda each: str(each.version_count), 4, right=True),
    Column("Changed", lambda each: each.updated_at[:DAY], DAY),
    Column("Description", lambda each: _first_line(each.description), narrow=64),
)


class Chains(AreaScreen):
    """One part is shown at a time, and what its chosen row holds."""

    AUTO_FOCUS: ClassVar[str | None] = "Listing.-shown Table"
    SCROLLS: ClassVar[bool] = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,h", "part(-1)", "Part before", id="chain-previous", tooltip="to the part before", show=False),
        Binding("right,l", "part(1)", "Next part", id="chain-next", tooltip="to the next part", show=False),
        Binding("o", "order", "Order", id="chain-order", tooltip="newest first, or in the order of the chain"),
        Binding("escape", "back", "Back", id="chain-back", tooltip="from the page back to the list", show=False),
    ]
    DEFAULT_CSS = """
    Chains Listing { display: none; }
    Chains Listing.-shown { display: block; }
    """

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        self._part = CHAINS
        self._chain: str | None = None
        self._newest_first = True
        self._aim: int | None = None
        self.sections = Sections(TITLES, "{chain-previous}, {chain-next}: another part")
        self.detail = Detail(TITLES[CHAINS], id="chain-page")
        tables: tuple[Table[Any], ...] = (
            Table(CHAIN_COLUMNS, id="chains", key=lambda each: each.chain_key),
            Table(THOUGHT_COLUMNS, id="thoughts", key=lambda each: each.index, dim=lambda each: each.state != "live"),
            Table(AGENT_COLUMNS, id="agents", key=lambda each: each.agent_id, dim=lambda each: each.status != "active"),
            Table(SKILL_COLUMNS, id="registry", key=lambda each: each.skill_id,
                  dim=lambda each: each.status != "active"),
        )  # fmt: skip
        nouns = (("chain", "chains"), ("thought", "thoughts"), ("agent", "agents"), ("skill", "skills"))
        self.listings = tuple(
            Listing(table, noun=noun, empty=f"No {noun[0]}") for table, noun in zip(tables, nouns, strict=True)
        )

    @property
    def table(self) -> Table[Any]:
        """The list that is shown."""
        return self.listings[self._part].table

    def compose_area(self) -> ComposeResult:
        """The names of the parts, their lists, and what is chosen."""
        yield self.sections
        with Split():
            yield from self.listings
            yield self.detail

    def on_mount(self) -> None:
        """One of the lists is seen."""
        super().on_mount()
        self.listings[CHAINS].add_class("-shown")

    async def load(self) -> None:
        """See AreaScreen. Only the list that is seen is asked for."""
        part, table = self._part, self.table
        rows = await self._rows(part)
        at = self._place_of_aim(rows) if part == THOUGHTS else None
        index = (table.index if table.rows is not None else 0) if at is None else at
        await rows.load(index, index)
        if part != self._part:
            return
        if table.rows is None or at is not None:
            table.show(rows, index)
        else:
            table.renew(rows)
        self._note()
        self._look_again()

    async def _rows(self, part: int) -> Rows[Any]:
        """The list of a part from its beginning."""
        if part == CHAINS:
            return CursorRows(self._chains_page)
        if part == SKILLS:
            return CursorRows(self._skills_page)
        if self._chain is None:
            first = await self._chains_page(None, 1)
            self._chain = first.rows[0].chain_key if first.rows else None
        if part == AGENTS:
            return CursorRows(partial(self._agents_page, self._chain))
        return await self._thoughts(self._chain)

    async def _chains_page(self, cursor: str | None, limit: int) -> Batch[ChainSummary]:
        found = cast(ChainListReport, await self.link.call("chain.list", {"limit": limit, "cursor": cursor}))
        return Batch(found.chains, found.next_cursor)

    async def _agents_page(self, chain: str | None, cursor: str | None, limit: int) -> Batch[ChainAgent]:
        if chain is None:
            return Batch(())
        asked = {"chain_key": chain, "limit": limit, "cursor": cursor}
        found = cast(ChainAgentRegistryReport, await self.link.call("chain.agent_registry", asked))
        return Batch(found.agents, found.next_cursor)

    async def _skills_page(self, cursor: str | None, limit: int) -> Batch[UploadedSkill]:
        asked = {"limit": limit, "cursor": cursor}
        found = cast(SkillRegistryListReport, await self.link.call("skill_registry.list", asked))
        return Batch(found.skills, found.next_cursor, found.total)

    async def _thoughts(self, chain: str | None) -> NumberedRows[Thought]:
        total = 0 if chain is None else (await self._head(chain)).thought_count
        return NumberedRows(partial(self._thoughts_page, chain, total, self._newest_first), total)

    async def _thoughts_page(
        self, chain: str | None, total: int, newest_first: bool, start: int, size: int
    ) -> Batch[Thought]:
        """Thoughts by their number in the list, which counts from the newest on or from the first."""
        found: list[Thought] = []
        wanted = min(size, total - start)
        while len(found) < wanted:
            at = start + len(found)
            asked = {
                "chain_key": chain, "anchor_index": total - 1 - at if newest_first else at, "include_anchor": True,
                "direction": "backward" if newest_first else "forward", "chunk_size": wanted - len(found),
            }  # fmt: skip
            page = cast(ChainTraverseReport, await self.link.call("chain.traverse", asked))
            if not page.thoughts:
                break
            found += page.thoughts
        return Batch(tuple(found), None, total)

    async def _head(self, chain: str) -> ChainHeadReport:
        return cast(ChainHeadReport, await self.link.call("chain.head", {"chain_key": chain}))

    def _place_of_aim(self, rows: Rows[Any]) -> int | None:
        aim, self._aim = self._aim, None
        if aim is None or not 0 <= aim < rows.count:
            return None
        return rows.count - 1 - aim if self._newest_first else aim

    def _note(self) -> None:
        """What the foot of a list says besides the place in it."""
        order = "newest first" if self._newest_first else "in the order of the chain"
        notes = {THOUGHTS: f"{self._chain or ''}, {order}", AGENTS: self._chain or ""}
        self.listings[self._part].note(notes.get(self._part, ""))

    def on_table_chosen(self, event: Table.Chosen) -> None:
        """Show what it holds."""
        if event.table is self.table:
            if isinstance(event.row, ChainSummary):
                self._take_chain(event.row.chain_key)
            self._look_again()

    def _take_chain(self, chain: str | None) -> None:
        if chain != self._chain:
            self._chain = chain
            for part in (THOUGHTS, AGENTS):
                self.listings[part].table.rows = None

    def on_table_opened(self, event: Table.Opened) -> None:
        """A chain leads to its thoughts; of anything else the page is read."""
        event.stop()
        if isinstance(event.row, ChainSummary):
            self._show_part(THOUGHTS)
        else:
            self.detail.focus()

    def on_document_followed(self, event: Document.Followed) -> None:
        """To a thought of this chain, or to what a ref names."""
        if isinstance(event.target, At):
            self._go_to(event.target.position)
        else:
            super().on_document_followed(event)

    def _go_to(self, index: int) -> None:
        self._aim = index
        self._show_part(THOUGHTS)

    def open_ref(self, ref: str) -> None:
        """See AreaScreen: the thought of a ref."""
        named = parse_ref(ref)
        if named is not None and named.segments[-1].isdecimal():
            self._take_chain(named.segments[0])
            self._go_to(int(named.segments[-1]))

    def action_part(self, steps: int) -> None:
        """The next part, or the one before."""
        self._show_part((self._part + steps) % len(TITLES))

    def on_sections_picked(self, event: Sections.Picked) -> None:
        """That part."""
        self._show_part(event.index)

    def _show_part(self, part: int) -> None:
        self.listings[self._part].remove_class("-shown")
        self._part = part
        self.listings[part].add_class("-shown")
        self.sections.choose(part)
        self.hide_notice()
        self.table.focus()
        self.refresh_bindings()
        self.read_now()

    def action_order(self) -> None:
        """The other end of the chain first."""
        chosen = self.table.chosen
        self._newest_first = not self._newest_first
        self._aim = chosen.index if isinstance(chosen, Thought) else None
        self.read_now()

    def action_back(self) -> None:
        """To the list."""
        self.table.focus()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Thoughts alone have an order."""
        if action == "order":
            return self._part == THOUGHTS
        return super().check_action(action, parameters)

    def copied(self) -> str | None:
        """See AreaScreen."""
        if self.detail.has_focus:
            return self.detail.chosen_text or None
        row = self.table.chosen
        if isinstance(row, Thought):
            return row.ref
        return None if row is None else str(_subject(row)[1])

    def exported(self) -> Pages:
        """See AreaScreen."""
        row, rows = self.table.chosen, self.table.rows
        if row is not None and (self.detail.has_focus or rows is None):
            return one_line(to_plain(row))
        return lines_of(CursorRows(self._chains_page) if rows is None else rows)

    def _look_again(self) -> None:
        # A coroutine that is replaced before it began would be complained of; a function is just not called.
        self.run_worker(partial(self._look, self.table.chosen), name="look", group="look", exclusive=True)

    async def _look(self, row: Any) -> None:
        if row is None:
            rows = self.table.rows
            nothing = rows is not None and not rows.count
            self.detail.describe(TITLES[self._part], None, remark(hinted(self.app, HOW[self._part])) if nothing else ())
            return
        try:
            title, blocks = await self._page(row)
        except BeetleError as error:
            title, blocks = TITLES[self._part], remark(f"{error.key}: {error.message}\n{error.hint or ''}")
        self.detail.describe(title, _subject(row), blocks)

    async def _page(self, row: Any) -> tuple[str, Iterable[Block]]:
        if isinstance(row, ChainSummary):
            return row.chain_key, _chain_page(row, await self._head(row.chain_key))
        if isinstance(row, Thought):
            return f"Thought {row.index}", _thought_page(row, await self._links(row))
        if isinstance(row, ChainAgent):
            return row.agent_id, _agent_page(row)
        skill = cast(UploadedSkill, row)
        named = {"skill_id": skill.skill_id}
        versions = cast(SkillRegistryVersionsReport, await self.link.call("skill_registry.versions", named))
        form = {**named, "format": skill.latest_source_format}
        text = cast(SkillRegistryReadReport, await self.link.call("skill_registry.read", form))
        return skill.skill_id, _skill_page(skill, versions, text)

    async def _links(self, thought: Thought) -> Links:
        """Who refers to a thought: thoughts name earlier ones only, so it is among the later ones."""
        found: list[Thought] = []
        at, seen = thought.index, 0
        while seen < LATER:
            asked = {"chain_key": self._chain, "anchor_index": at, "chunk_size": LATER - seen}
            page = cast(ChainTraverseReport, await self.link.call("chain.traverse", asked))
            found += [each for each in page.thoughts if thought.index in _named_by(each)]
            if not page.has_more or page.next_cursor is None:
                return Links(tuple(found), True)
            at, seen = page.next_cursor.index, seen + len(page.thoughts)
        return Links(tuple(found), False)


def _subject(row: Any) -> tuple[str, object]:
    """What a page is of, whatever is read of it later."""
    if isinstance(row, ChainSummary):
        return "chain", row.chain_key
    if isinstance(row, Thought):
        return "thought", row.id
    return ("agent", row.agent_id) if isinstance(row, ChainAgent) else ("skill", row.skill_id)


def _named_by(thought: Thought) -> set[int]:
    return {*thought.refs, *(each.index for each in thought.relations if each.index is not None)}


def _chain_page(chain: ChainSummary, head: ChainHeadReport) -> Iterator[Block]:
    if head.integrity_ok:
        since = f"thought {head.verified_from}" if head.verified_from else "the first thought"
        yield value("Whole", f"yes: the event log has this head, and hashes are right from {since} on")
    else:
        yield value("Whole", "NO: a thought, or the end of the chain, was changed; `beetle verify` says what")
    yield value("Thoughts", f"{head.thought_count:,}", At(head.thought_count - 1) if head.thought_count else None)
    yield value("Head", head.head_hash or "none")
    yield value("Agents", f"{chain.agent_count:,}")
    if chain.branched_from is not None:
        yield value("Branch of", f"{chain.branched_from}, with which it shares {chain.shared_thoughts:,}")
    yield value("Adapter", chain.storage_adapter)
    yield value("Made", moment(chain.created_at))
    yield value("Changed", moment(chain.updated_at))
    if head.latest_thought is not None:
        yield from section("Newest thought")
        yield from written(_said(head.latest_thought))


def _thought_page(thought: Thought, links: Links) -> Iterator[Block]:
    yield from written(_said(thought))
    yield from section("Leads to")
    for index in thought.refs:
        yield value("refers", f"thought {index}", At(index))
    for each in thought.relations:
        target = f"thought {each.index}" if each.index is not None else each.ref or ""
        holds = "".join(
            f", {word} {moment(at)}" for word, at in (("from", each.valid_at), ("until", each.invalid_at)) if at
        )
        yield value(each.kind, f"{target}{holds}", At(each.index) if each.index is not None else each.ref)
    for later in links.found:
        yield value("named by", f"thought {later.index}: {_first_line(_said(later))}", At(later.index))
    if not (thought.refs or thought.relations or links.found):
        yield from remark("No ref, no relation, and nothing that names it.")
    if not links.complete:
        yield from remark(f"The {LATER} thoughts behind it were searched; later ones may name it too.")
    yield from section("As it is stored")
    yield value("Type", f"{thought.thought_type}, {thought.role}")
    yield value("Agent", f"{thought.agent_name or HIDDEN} ({thought.agent_id})")
    yield value("Written", moment(thought.timestamp))
    sure = "" if thought.confidence is None else f", confidence {thought.confidence:.2f}"
    yield value("Importance", f"{thought.importance:.2f}{sure}")
    for label, words in (("Tags", thought.tags), ("Concepts", thought.concepts)):
        if words:
            yield value(label, ", ".join(words))
    if thought.session_id is not None:
        yield value("Session", thought.session_id)
    if thought.signing_key_id is not None:
        # Who names a key has not signed with it.
        bare = thought.content is not None and thought.thought_signature is None
        yield value("Names key" if bare else "Signed with", thought.signing_key_id + (", unsigned" if bare else ""))
    for label, text in (
        ("State", thought.state),
        ("Id", thought.id),
        ("Hash", thought.hash),
        ("Before", thought.prev_hash),
    ):
        yield value(label, text or "none")


def _agent_page(agent: ChainAgent) -> Iterator[Block]:
    yield value("Name", agent.display_name or HIDDEN)
    yield value("Status", "active" if agent.status == "active" else "revoked: it can append and upload no more")
    yield value("Owner", agent.agent_owner or "none")
    if agent.aliases:
        yield value("Aliases", ", ".join(agent.aliases))
    yield value("Thoughts", f"{agent.thought_count:,}")
    for label, index, at in (
        ("First", agent.first_seen_index, agent.first_seen_at),
        ("Last", agent.last_seen_index, agent.last_seen_at),
    ):
        if index is not None and at is not None:
            yield value(label, f"thought {index}, {moment(at)}", At(index))
    if agent.description:
        yield from section("What it is for")
        yield from written(agent.description)
    yield from section("Keys")
    if not agent.public_keys:
        yield from remark("No key: its thoughts are not signed.")
    for key in agent.public_keys:
        state = "active" if key.revoked_at is None else f"revoked {moment(key.revoked_at)}"
        yield value(key.key_id, f"{key.algorithm}, {state}, since {moment(key.added_at)}")
        yield plain(bytes(key.public_key_bytes).hex(), " " * 13)


def _skill_page(
    skill: UploadedSkill, versions: SkillRegistryVersionsReport, text: SkillRegistryReadReport
) -> Iterator[Block]:
    yield value("Name", skill.name or HIDDEN)
    yield value("Status", f"{skill.status}{f': {skill.status_reason}' if skill.status_reason else ''}")
    for label, words in (("Tags", skill.tags), ("Triggers", skill.triggers)):
        if words:
            yield value(label, ", ".join(words))
    yield from section("Warnings")
    yield from (plain(each, "! ") for each in text.safety_warnings or ())
    more = " (the first ones)" if versions.has_more else ""
    yield from section(f"{count(skill.version_count, 'version')}{more}")
    for each in versions.versions:
        signed = f", signed with {each.signing_key_id}" if each.signing_key_id else ""
        by = f"{each.uploaded_by_agent_name or HIDDEN} ({each.uploaded_by_agent_id})"
        yield value(str(each.version_number), f"{moment(each.uploaded_at)}, {by}, {each.source_format}{signed}")
    yield from section("Content of the newest")
    yield from written(text.content or HIDDEN)
