"""Ctrl+c while a store that is open in this process works: it ends between two pieces of work, as for a client."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def called_off() -> Generator[Callable[[], bool]]:
    """Whether ctrl+c was pressed, until the block ends. Pressed again, it ends the command where it is.

    Where ctrl+c is ignored, or another thread runs the command, it stays as it is.
    """
    pressed = threading.Event()
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or before is not signal.default_int_handler:
        yield pressed.is_set
        return

    def press(number: int, frame: FrameType | None) -> None:
        del number, frame
        pressed.set()
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, press)
    try:
        yield pressed.is_set
    finally:
        signal.signal(signal.SIGINT, before)
