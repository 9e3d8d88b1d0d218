"""How far a command is: one line at the terminal that stderr is, which renews itself and is gone at the end."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress

from beetle.cli.text import clip, columns_of
from beetle.contracts.progress import OnProgress, ProgressStep

NARROWEST = 20


@contextmanager
def progress_line(command: str) -> Generator[OnProgress]:
    """What is told how far a command is, until the block ends."""
    line = _ProgressLine(command)
    try:
        yield line.show
    finally:
        line.clear()


class _ProgressLine:
    """The line, and how many columns of it stand there now."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._columns = 0

    def show(self, step: ProgressStep) -> None:
        words = f"{self._name}: {step.name.replace('_', ' ')}"
        if step.steps > 1:
            words += f", step {step.number} of {step.steps}"
        if step.of:
            words += f", {step.done:,} of {step.of:,}"
        elif step.done:
            words += f", {step.done:,}"
        # One column less than there are: a full line would begin another one.
        self._write(clip(words, max(NARROWEST, _columns()) - 1))

    def clear(self) -> None:
        if self._columns:
            self._write("")
            self._say("\r")

    def _write(self, words: str) -> None:
        before, columns = self._columns, columns_of(words)
        # An interrupt may come at any of these steps: what may stand there is counted before it does.
        self._columns = max(before, columns)
        # Blanks instead of an escape: every terminal knows them.
        self._say("\r" + words + " " * (before - columns))
        self._columns = columns

    def _say(self, text: str) -> None:
        # The work goes on also when its terminal has gone.
        with suppress(OSError, ValueError):
            sys.stderr.write(text)
            sys.stderr.flush()


def _columns() -> int:
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except (OSError, ValueError):
        return 80
