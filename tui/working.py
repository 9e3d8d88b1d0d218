"""Work that takes long: a dialog that says how long it has been, and that calls it off."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from beetle.contracts.common import Report
from beetle.contracts.errors import BeetleError
from tui.dialogs import Working
from tui.link import Cancelled
from tui.text import count

if TYPE_CHECKING:
    from tui.app import Console

SECONDS_BETWEEN_WORDS = 1.0
seconds: Callable[[], float] = time.monotonic
"""The clock of what is said."""


async def work_on(console: Console, title: str, operation: str, arguments: Any) -> Report | None:
    """See Console.work."""
    area = console.area
    area.untell()
    try:
        return await long_below(console, title, operation, arguments)
    except Cancelled:
        area.tell(f"{title}: called off. What the store had begun by then it may still finish")
    except BeetleError as error:
        area.tell(error)
    return None


async def long_below(console: Console, title: str, operation: str, arguments: Any) -> Report:
    """Run it below the dialog: its report.

    Raises:
        BeetleError: what it answered.
        Cancelled: it was called off.
    """
    dialog = Working(title)
    stops: list[Callable[[], None]] = []
    began = seconds()

    def closed(done: bool | None) -> None:
        if not done:
            for stop in stops:
                stop()

    def say() -> None:
        dialog.say(f"{count(int(seconds() - began), 'second')} so far")

    await console.push_screen(dialog, closed)
    clock = dialog.set_interval(SECONDS_BETWEEN_WORDS, say)
    try:
        return await console.link.long(operation, arguments, stops.append)
    finally:
        clock.stop()
        dialog.end()
