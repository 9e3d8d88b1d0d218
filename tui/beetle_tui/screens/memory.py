"""Memory: facts, chunks, policies, tool experience, what waits for governance, proposals, and background jobs."""

from __future__ import annotations

from typing import ClassVar, cast

from textual.binding import Binding, BindingType

from beetle_tui.memory.chunks import Chunks
from beetle_tui.memory.facts import Facts
from beetle_tui.memory.jobs import Jobs
from beetle_tui.memory.policies import Policies
from beetle_tui.memory.proposals import Proposals
from beetle_tui.memory.tools import Tools
from beetle_tui.memory.waiting import Waiting
from beetle_tui.parts import PartsScreen


class Memory(PartsScreen):
    """One part is shown at a time; what is not shown is not read."""

    PARTS = (Facts, Chunks, Policies, Tools, Waiting, Proposals, Jobs)
    OTHER_PART = "{memory-previous}, {memory-next}: another part"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,h", "part(-1)", "Part before", id="memory-previous", tooltip="to the part before", show=False),
        Binding("right,l", "part(1)", "Next part", id="memory-next", tooltip="to the next part", show=False),
    ]

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Only the facts have a filter."""
        if action == "filter":
            return isinstance(self.part, Facts)
        return super().check_action(action, parameters)

    def open_ref(self, ref: str) -> None:
        """See AreaScreen: the fact or the chunk of a ref."""
        wanted = Chunks if ref.startswith("chunks:") else Facts
        if not isinstance(self.part, wanted):
            self.show_part(self.PARTS.index(wanted))
        cast("Facts | Chunks", self.part).show_ref(ref)
