"""Work that takes long: a dialog that says how far it is and how long it has been, and that calls it off."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from textual.app import App

from beetle.contracts.common import Report
from beetle.contracts.progress import ProgressStep
from beetle_tui.dialogs import Working
from beetle_tui.exporting import Pages, write_pages
from beetle_tui.link import Cancelled, Link
from beetle_tui.text import bar, count, neutral
from beetle_tui.theme import is_plain

SECONDS_BETWEEN_WORDS = 1.0
seconds: Callable[[], float] = time.monotonic
"""The clock of what is said."""


async def long_below(app: App[Any], link: Link, title: str, operation: str, arguments: Any) -> Report:
    """Run it below the dialog: its report.

    Raises:
        BeetleError: what it answered.
        Cancelled: it was called off.
    """
    dialog = Working(title)
    stops: list[Callable[[], None]] = []
    began = seconds()
    at: ProgressStep | None = None

    def closed(done: bool | None) -> None:
        if not done:
            for stop in stops:
                stop()

    def say() -> None:
        passed = f"{count(int(seconds() - began), 'second')} so far"
        dialog.say(*([] if at is None else progress_lines(at, is_plain(app))), passed)

    def stepped(step: ProgressStep) -> None:
        nonlocal at
        at = step
        say()

    await app.push_screen(dialog, closed)
    clock = dialog.set_interval(SECONDS_BETWEEN_WORDS, say)
    try:
        return await link.long(operation, arguments, stops.append, stepped)
    finally:
        clock.stop()
        dialog.end()


async def pages_below(app: App[Any], path: str, pages: Pages) -> str:
    """Write an export, from its second page on below the dialog: what to tell.

    Raises:
        BeetleError: as write_pages.
        Cancelled: it was called off; no file is left.
    """
    dialog = Working("Export")
    is_off = False

    def closed(done: bool | None) -> None:
        nonlocal is_off
        is_off = not done

    def say(written: int) -> None:
        if is_off:
            raise Cancelled
        if written and not dialog.is_attached:
            app.push_screen(dialog, closed)
        dialog.say(f"{count(written, 'line')} so far")

    try:
        return await write_pages(path, pages, say)
    finally:
        if dialog.is_attached:
            dialog.end()


def progress_lines(step: ProgressStep, plain: bool) -> list[str]:
    """Where work is: its step, and a bar of what is done of that where it can be counted."""
    lines = [f"Step {step.number} of {step.steps}: {neutral(step.name).replace('_', ' ')}"]
    if step.of:
        share = min(step.done / step.of, 1.0)
        lines.append(f"{bar(share, plain)}  {share:.0%}  {step.done:,} of {step.of:,}")
    else:
        lines.append(f"{step.done:,} so far" if step.done else "")
    return lines
