"""The areas of the console, in the order of their keys: one line here for each file beside this one."""

from __future__ import annotations

from typing import NamedTuple

from tui.area import AreaScreen
from tui.screens.overview import Overview


class Area(NamedTuple):
    """One area: its name in actions, its key, its title, what it shows in a few words, and its screen."""

    name: str
    key: str
    title: str
    summary: str
    screen: type[AreaScreen]


SCREENS: tuple[Area, ...] = (
    Area("overview", "1", "Overview", "daemon, store, counts, and what needs a hand", Overview),
)
