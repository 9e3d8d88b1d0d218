"""The areas of the console, in the order of their keys: one line here for each file beside this one."""

from __future__ import annotations

from typing import NamedTuple

from tui.area import AreaScreen
from tui.screens.devices import Devices
from tui.screens.log import Log
from tui.screens.memory import Memory
from tui.screens.overview import Overview
from tui.screens.recall import Recall
from tui.screens.skills import Skills
from tui.screens.transcripts import Transcripts


class Area(NamedTuple):
    """One area: its name in actions, its key, its title, what it shows in a few words, and its screen."""

    name: str
    key: str
    title: str
    summary: str
    screen: type[AreaScreen]


SCREENS: tuple[Area, ...] = (
    Area("overview", "1", "Overview", "daemon, store, counts, and what needs a hand", Overview),
    Area("skills", "2", "Skills", "what was learned, and what the host has mounted", Skills),
    Area("devices", "3", "Devices", "who may speak to the daemon with a key of its own", Devices),
    Area("transcripts", "4", "Transcripts", "what was said, as each view may see it", Transcripts),
    Area("memory", "5", "Memory", "facts, policies, tools, what waits, and what is proposed", Memory),
    Area("recall", "6", "Recall", "a bench to try a query on: hits, signals, and the block", Recall),
    Area("log", "7", "Log", "the event log, live, filtered, and whether it is whole", Log),
)
