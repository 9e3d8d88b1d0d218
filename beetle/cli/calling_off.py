"""Ctrl+c while a store that is open in this process works, and signals that end a command as ctrl+c does."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType

ENDING = (signal.SIGTERM, signal.SIGHUP)


class Ended(KeyboardInterrupt):
    """One of `ENDING` has ended a command; its words are those of ctrl+c."""

    def __init__(self, number: int, words: str) -> None:
        super().__init__(words)
        self.exit_code = 128 + number


@contextmanager
def called_off() -> Generator[Callable[[], bool]]:
    """Whether ctrl+c was pressed, until the block ends: the store ends between two pieces of work, as for a client.
    Pressed again, it ends the command where it is.

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


@contextmanager
def ended_by_signals() -> Generator[None]:
    """SIGTERM and SIGHUP end the block as ctrl+c does, so that it takes away what it has begun.

    The first one counts: `timeout` and service managers send more at once. One that is ignored or handled already
    stays as it is, and so do both where another thread runs the command.

    Raises:
        Ended: by one of them.
    """
    received: list[int] = []

    def end(number: int, frame: FrameType | None) -> None:
        if received:
            return
        received.append(number)
        press = signal.getsignal(signal.SIGINT)
        if not callable(press):  # ctrl+c is ignored, as behind `&`
            raise KeyboardInterrupt
        press(signal.SIGINT, frame)

    in_main = threading.current_thread() is threading.main_thread()
    replaced = [each for each in ENDING if in_main and signal.getsignal(each) is signal.SIG_DFL]
    for each in replaced:
        signal.signal(each, end)
    try:
        yield
    except KeyboardInterrupt as called_off:
        if not received:
            raise
        raise Ended(received[0], str(called_off)) from None
    finally:
        for each in replaced:
            signal.signal(each, signal.SIG_DFL)
