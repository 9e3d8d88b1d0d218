"""The folder in which events wait that a hook could not deliver."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SPOOL_FILES = 4096


def spool_folder(env: Mapping[str, str]) -> str:
    """Where events wait: $XDG_STATE_HOME/beetle/spool, else ~/.local/state/beetle/spool."""
    state = env.get("XDG_STATE_HOME") or os.path.join(env.get("HOME") or os.path.expanduser("~"), ".local", "state")
    return os.path.join(state, "beetle", "spool")


def spool_state(folder: str) -> dict[str, Any]:
    """What waits in the spool: `events`, `oldest_at` (RFC 3339, or None), and how many no daemon took (`refused`).

    Raises:
        OSError: it cannot be read.
    """
    names = list(event_files(folder))
    oldest = min((int(each[:20]) for each in names if each[:20].isdecimal()), default=None)
    at = None if oldest is None else time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(oldest // 10**9))
    return {
        "events": len(names),
        "oldest_at": at,
        "refused": sum(1 for _ in event_files(os.path.join(folder, "refused"))),
    }


def event_files(folder: str) -> Iterator[str]:
    """The names of the files of a spool, one an event."""
    try:
        with os.scandir(folder) as entries:
            yield from (each.name for each in entries if each.name.endswith(".json"))
    except FileNotFoundError:
        return
