"""What one check of doctor found."""

from __future__ import annotations

from typing import Literal

from beetle.contracts.errors import STATUS
from beetle.named_tuple import NamedTuple

WARNED = 1

Level = Literal["ok", "note", "warning", "problem"]


class Finding(NamedTuple):
    """What one check found. `key` is the error key that a problem would show itself as."""

    check: str
    level: Level
    text: str
    advice: str = ""
    key: str = "internal"

    @property
    def exit_code(self) -> int:
        """0 for what is well, 1 for a warning, the error's own for a problem."""
        if self.level == "problem":
            return STATUS[self.key].exit_code
        return WARNED if self.level == "warning" else 0
