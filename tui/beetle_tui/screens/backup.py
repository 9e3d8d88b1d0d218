"""Backup: snapshots of the store, how far its replica is, and until when copies hold what was erased."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType

from beetle_tui.backup.replica import ReplicaPart
from beetle_tui.backup.snapshots import Snapshots
from beetle_tui.parts import PartsScreen

SECONDS_BETWEEN_LOOKS = 5.0
"""How far the replica is changes without an event."""


class Backup(PartsScreen):
    """One part is shown at a time; what is not shown is not read."""

    PARTS = (Snapshots, ReplicaPart)
    OTHER_PART = "{backup-previous}, {backup-next}: another part"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,h", "part(-1)", "Part before", id="backup-previous", tooltip="to the part before", show=False),
        Binding("right,l", "part(1)", "Next part", id="backup-next", tooltip="to the next part", show=False),
    ]

    def on_mount(self) -> None:
        """The replica's lag is looked at while it is in sight."""
        super().on_mount()
        self.look_each(SECONDS_BETWEEN_LOOKS, self._look)

    async def _look(self) -> bool:
        return isinstance(self.part, ReplicaPart) and self.part.is_followed

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """There is nothing to filter."""
        return False if action == "filter" else super().check_action(action, parameters)
