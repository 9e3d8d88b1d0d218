"""Memory: facts, chunks, policies, tool experience, what waits for governance, proposals, and background jobs."""

from __future__ import annotations

from typing import Any, ClassVar, cast

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from beetle.contracts.memory import MemoryCapabilityCatalog
from beetle_tui.area import AreaScreen, Shared
from beetle_tui.exporting import Pages
from beetle_tui.memory.chunks import Chunks
from beetle_tui.memory.facts import Facts
from beetle_tui.memory.jobs import Jobs
from beetle_tui.memory.policies import Policies
from beetle_tui.memory.proposals import Proposals
from beetle_tui.memory.section import Section
from beetle_tui.memory.tools import Tools
from beetle_tui.memory.waiting import Waiting
from beetle_tui.sections import Sections


class Memory(AreaScreen):
    """One part is shown at a time; what is not shown is not read."""

    AUTO_FOCUS = "Table"
    SCROLLS = False
    PARTS: ClassVar[tuple[type[Section[Any]], ...]] = (Facts, Chunks, Policies, Tools, Waiting, Proposals, Jobs)
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,h", "part(-1)", "Part before", id="memory-previous", tooltip="to the part before", show=False),
        Binding("right,l", "part(1)", "Next part", id="memory-next", tooltip="to the next part", show=False),
    ]

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        self.parts = [part(self) for part in self.PARTS]
        self.sections = Sections([part.TITLE for part in self.PARTS], "{memory-previous}, {memory-next}: another part")

    @property
    def part(self) -> Section[Any]:
        """The one that is shown."""
        return self.parts[self.sections.index]

    def compose_area(self) -> ComposeResult:
        """The names of the parts, and the parts."""
        yield self.sections
        for number, part in enumerate(self.parts):
            part.display = number == 0
            yield part

    async def load(self) -> None:
        """See AreaScreen."""
        catalog = cast(MemoryCapabilityCatalog, await self.link.call("memory.capabilities"))
        await self.part.load(catalog)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Only the facts have a filter."""
        if action == "filter":
            return isinstance(self.part, Facts)
        return super().check_action(action, parameters)

    def show_part(self, index: int) -> None:
        """Show another part, and read it."""
        self.sections.choose(index)
        for part in self.parts:
            part.display = part is self.part
        self.hide_notice()
        self.part.table.focus()
        self.refresh_bindings()
        self.read_now()

    def open_place(self, place: str) -> None:
        """See AreaScreen: the part of that title."""
        self.show_part(next(number for number, part in enumerate(self.parts) if place == part.TITLE))

    def on_sections_picked(self, event: Sections.Picked) -> None:
        """That part."""
        self.show_part(event.index)

    def action_part(self, steps: int) -> None:
        """The next part, or the one before."""
        self.show_part(self.sections.index + steps)

    def copied(self) -> str | None:
        """See AreaScreen."""
        return self.part.copied()

    def exported(self) -> Pages:
        """See AreaScreen."""
        return self.part.exported()

    def open_ref(self, ref: str) -> None:
        """See AreaScreen: the fact or the chunk of a ref."""
        wanted = Chunks if ref.startswith("chunks:") else Facts
        if not isinstance(self.part, wanted):
            self.show_part(self.PARTS.index(wanted))
        cast("Facts | Chunks", self.part).show_ref(ref)
