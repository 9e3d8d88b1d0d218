"""The areas of the console, in the order of their keys: one line here for each file beside this one."""

from __future__ import annotations

from beetle_tui.area import Area
from beetle_tui.screens.backup import Backup
from beetle_tui.screens.chains import Chains
from beetle_tui.screens.devices import Devices
from beetle_tui.screens.log import Log
from beetle_tui.screens.memory import Memory
from beetle_tui.screens.overview import Overview
from beetle_tui.screens.recall import Recall
from beetle_tui.screens.skills import Skills
from beetle_tui.screens.time import Time
from beetle_tui.screens.transcripts import Transcripts

SCREENS: tuple[Area, ...] = (
    Area("overview", "1", "Overview", "daemon, store, counts, and what needs a hand", Overview),
    Area("skills", "2", "Skills", "what was learned, and what the host has mounted", Skills),
    Area("devices", "3", "Devices", "devices that authenticate with their own key", Devices),
    Area("transcripts", "4", "Transcripts", "what was said, as each view may see it", Transcripts),
    Area("memory", "5", "Memory", "facts, chunks, policies, tools, what waits, proposals, jobs", Memory),
    Area("recall", "6", "Recall", "a bench to try a query on: hits, signals, and the block", Recall),
    Area("log", "7", "Log", "the event log, live, filtered, and whether it is whole", Log),
    Area("chains", "8", "Chains", "thoughts of agents in their order, agents, and the skill registry", Chains),
    Area("time", "9", "Time", "contents by year, month, week and day, and what hosts have captured", Time),
    Area("backup", "0", "Backup", "snapshots, the replica, and until when copies hold what was erased", Backup),
)
