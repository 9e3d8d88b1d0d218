"""The terminal itself: in its own character set, whatever comes from it."""

from __future__ import annotations

import codecs
import os
import select
import sys
import threading
from typing import Any, ClassVar

from textual._xterm_parser import XTermParser
from textual.app import App
from textual.drivers.linux_driver import LinuxDriver
from textual.events import Key
from textual.message import Message

from beetle_tui.charset import UTF_8, fitting
from beetle_tui.messages import InputBroken

READ_BYTES = 65_536
TAKEN_SECONDS, IDLE_SECONDS = 0.5, 0.05
"""How long a key is waited for while the console is idle, which is one that answers this soon: nobody tells of a key
that a dialog took which has closed by it."""
TICK_SECONDS = 0.1
"""How long a key that may be the beginning of another one is waited on, and how soon the end is seen."""


class TerminalDriver(LinuxDriver):
    """Textual's own takes a byte that is no UTF-8 for a defect, and ends; and it writes UTF-8 alone."""

    charset: ClassVar[str] = UTF_8
    """What the terminal can show: Textual makes a driver out of its class alone."""

    def __init__(self, app: App[Any], **options: Any) -> None:
        super().__init__(app, **options)
        self._taken = threading.Event()
        self._fit = fitting(self.charset)
        if sys.__stderr__ is not None and codecs.lookup(sys.__stderr__.encoding).name != self.charset:
            self._file = open(  # noqa: SIM115 - it is the terminal, and stays open
                sys.__stderr__.fileno(), "w", encoding=self.charset, errors="replace", newline="", closefd=False
            )

    def write(self, data: str) -> None:
        """What the terminal has no character for is written as what comes nearest."""
        super().write(self._fit(data))

    def run_input_thread(self) -> None:
        """Read keys until the console ends. What is no character is left out; a terminal that is gone ends it."""
        parser = XTermParser()
        decode = codecs.getincrementaldecoder(self.charset)("ignore").decode
        while not self.exit_event.is_set():
            text = ""
            if select.select([self.fileno], [], [], TICK_SECONDS)[0]:
                data = self._read()
                if not data:
                    self._app.call_later(self._app.exit)
                    return
                text = decode(data)
            try:
                self._take(parser, text)
            except (ValueError, ArithmeticError):
                # A sequence may name any number as a character or a size. One that cannot be is noise, and what is
                # left of this reading with it; Textual's parser has ended on it.
                parser = XTermParser()

    def _take(self, parser: XTermParser, text: str) -> None:
        for event in parser.feed(text) if text else ():
            self._hand_over(event)
        for event in parser.tick():
            self._hand_over(event)

    def _hand_over(self, event: Message) -> None:
        """One key after the other: what a slow line brings at once would else go to what had the keys before."""
        self._taken.clear()
        self.process_message(event)
        if isinstance(event, Key):
            while not (self._taken.wait(TAKEN_SECONDS) or self.exit_event.is_set() or self._app_is_idle()):
                pass

    def _app_is_idle(self) -> bool:
        answered = threading.Event()
        self._app.call_later(answered.set)
        return answered.wait(IDLE_SECONDS)

    def key_taken(self) -> None:
        """The last key has done what it does; from the screen's thread."""
        self._taken.set()

    def _run_input_thread(self) -> None:
        try:
            self.run_input_thread()
        except Exception as error:  # noqa: BLE001 - not decided here: the console ends with it, as with any defect
            self._app.post_message(InputBroken(error))

    def _read(self) -> bytes:
        try:
            return os.read(self.fileno, READ_BYTES)
        except OSError:  # the other end of it has been closed
            return b""


def driver_for(charset: str) -> type[TerminalDriver]:
    """The driver of a terminal that can show that."""
    return type(TerminalDriver.__name__, (TerminalDriver,), {"charset": charset})
