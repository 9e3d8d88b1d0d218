"""The spool of hooks: events that wait in files of their user's own until a daemon takes them.

Hooks and `beetle status` load it: nothing is imported that a start would not load anyway.
"""

from __future__ import annotations

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

SPOOL_FILES = 4096
"""So many events wait at most."""


def spool_folder(env: Mapping[str, str]) -> str:
    """Where events wait: $XDG_STATE_HOME/beetle/spool, else ~/.local/state/beetle/spool."""
    state = env.get("XDG_STATE_HOME") or os.path.join(env.get("HOME") or os.path.expanduser("~"), ".local", "state")
    return os.path.join(state, "beetle", "spool")


def spool_names(folder: str) -> Iterator[str]:
    """The files of complete events, in any order."""
    try:
        with os.scandir(folder) as entries:
            yield from (each.name for each in entries if each.name.endswith(".json"))
    except FileNotFoundError:
        return


def spool_state(folder: str) -> dict[str, Any]:
    """What waits in the spool: `events`, `oldest_at` (RFC 3339, or None), and how many no daemon took (`refused`).

    Raises:
        OSError: it cannot be read.
    """
    names = list(spool_names(folder))
    oldest = min((int(each[:20]) for each in names if each[:20].isdecimal()), default=None)
    at = None if oldest is None else time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(oldest // 10**9))
    return {
        "events": len(names),
        "oldest_at": at,
        "refused": sum(1 for _ in spool_names(os.path.join(folder, "refused"))),
    }


def spool_line(state: Mapping[str, Any]) -> str:
    """What `spool_state` tells, for people."""
    oldest = f", the oldest since {state['oldest_at']}" if state["oldest_at"] else ""
    refused = f"; {state['refused']:,} refused" if state["refused"] else ""
    events = "1 event waits" if state["events"] == 1 else f"{state['events']:,} events wait"
    return f"{events} for a daemon{oldest}{refused}"
