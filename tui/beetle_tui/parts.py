"""An area of several parts, of which one is shown at a time; what is not shown is not read."""

from __future__ import annotations

from typing import Any, ClassVar, cast

from textual.app import ComposeResult

from beetle.contracts.memory import MemoryCapabilityCatalog
from beetle_tui.area import AreaScreen, Shared
from beetle_tui.exporting import Pages
from beetle_tui.memory.section import Section
from beetle_tui.sections import Sections


class PartsScreen(AreaScreen):
    """A subclass says which parts there are, and binds keys to `part(-1)` and `part(1)`."""

    AUTO_FOCUS = "Table"
    SCROLLS = False
    PARTS: ClassVar[tuple[type[Section[Any]], ...]] = ()
    OTHER_PART: ClassVar[str]
    """How to go on to another one, as `hinted` takes it."""

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        self.parts = [part(self) for part in self.PARTS]
        self.sections = Sections([part.TITLE for part in self.PARTS], self.OTHER_PART)

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
