"""Work that takes long: a dialog that says how far it is and how long it has been, and that calls it off."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from beetle.contracts.common import Report
from beetle.contracts.errors import BeetleError
from beetle.contracts.progress import Step
from tui.dialogs import Working
from tui.link import Cancelled
from tui.text import bar, count, neutral

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
    at: list[Step] = []

    def closed(done: bool | None) -> None:
        if not done:
            for stop in stops:
                stop()

    def say() -> None:
        passed = f"{count(int(seconds() - began), 'second')} so far"
        dialog.say([*(line for step in at for line in told(step, console.plain)), passed])

    def stepped(step: Step) -> None:
        at[:] = [step]
        say()

    await console.push_screen(dialog, closed)
    clock = dialog.set_interval(SECONDS_BETWEEN_WORDS, say)
    try:
        return await console.link.long(operation, arguments, stops.append, stepped)
    finally:
        clock.stop()
        dialog.end()


def told(step: Step, plain: bool) -> list[str]:
    """Where work is: its step, and a bar of what is done of that where it can be counted."""
    lines = [f"Step {step.number} of {step.steps}: {neutral(step.name).replace('_', ' ')}"]
    if step.of:
        share = min(step.done / step.of, 1.0)
        lines.append(f"{bar(share, plain)}  {share:.0%}  {step.done:,} of {step.of:,}")
    else:
        lines.append(f"{step.done:,} so far" if step.done else "")
    return lines
