"""What every input has to leave behind, whatever it is: a typed error or an answer, a whole store, bounded work."""

from __future__ import annotations

import logging
import resource
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final

from beetle.contracts.errors import BeetleError

WORK: Final = 400_000
WORK_A_BYTE: Final = 400
"""Calls of functions that one input may cost, and so many more for each of its bytes: work that is counted is the same
on every machine. What grows with the square of an input exceeds it."""
MEMORY_BYTES: Final = 512 * 2**20
"""How far the address space may grow beyond what is mapped when an input is taken."""


class Broken(AssertionError):
    """An input made the product break its contract."""


class TooMuchWork(BaseException):
    """An input costs more than its bound. No `except` of the product stops it."""


class Defects(logging.Handler):
    """What the product itself calls a defect: an error that nobody foresaw, logged with its traceback."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self._found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if getattr(record, "event", None) == "defect":
            self._found.append(record.getMessage())

    def note_thread(self, failed: threading.ExceptHookArgs) -> None:
        """A thread of the product ended by an error."""
        import traceback

        self._found.append("".join(traceback.format_exception(failed.exc_type, failed.exc_value, failed.exc_traceback)))

    def check(self) -> None:
        """Raises Broken with what was found since the last look."""
        found, self._found = self._found, []
        if found:
            raise Broken("\n".join(found))


@contextmanager
def watched() -> Iterator[Defects]:
    """Defects of the product's log and threads, as long as the block runs."""
    defects, log, before = Defects(), logging.getLogger("beetle"), threading.excepthook
    passes_on = log.propagate
    log.addHandler(defects)
    # Refusals by the thousand are nobody's news.
    log.propagate = False
    threading.excepthook = defects.note_thread
    try:
        yield defects
    finally:
        threading.excepthook = before
        log.propagate = passes_on
        log.removeHandler(defects)


@contextmanager
def bounded_work(size: int) -> Iterator[None]:
    """Raises TooMuchWork once the block has called too many functions for an input of `size` bytes.

    Only of this thread: what a server's threads do is bounded by the command's clock and its limit of memory.
    """
    left = WORK + WORK_A_BYTE * size

    def count(_frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal left
        if event == "call" or event == "c_call":
            left -= 1
            if left < 0:
                sys.setprofile(None)
                raise TooMuchWork(f"more than {WORK + WORK_A_BYTE * size} calls for {size} bytes")

    with profiled(count):
        yield


@contextmanager
def profiled(by: Callable[[FrameType, str, Any], object] | None) -> Iterator[None]:
    """This thread's calls are told to `by`; to nobody, None, where work inside of `bounded_work` is not the input's."""
    before = sys.getprofile()
    sys.setprofile(by)
    try:
        yield
    finally:
        sys.setprofile(before)


@contextmanager
def bounded_memory() -> Iterator[None]:
    """What is mapped beyond the limit raises MemoryError, which is no typed error."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    with open("/proc/self/statm", "rb") as file:
        mapped = int(file.read().split()[0]) * resource.getpagesize()
    most = mapped + MEMORY_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (most if soft == resource.RLIM_INFINITY else min(soft, most), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


DAMAGED: Final = ("internal", "store_corrupt", "schema_mismatch")
"""Errors that no input may be answered with: it is not the input that they blame."""


def refusal_of(ask: Callable[[], Any], *, allowed: tuple[str, ...] = ()) -> BeetleError | None:
    """The typed error that a call ends with; None where it was answered.

    Raises:
        Broken: it is one that blames the product or its store.
    """
    try:
        ask()
    except BeetleError as error:
        check_key(error.key, f"{error.key}: {error.message}", allowed=allowed)
        return error
    return None


def check_key(key: str, told: str, *, allowed: tuple[str, ...] = ()) -> None:
    """Raises Broken for the key of an error that no input may be answered with."""
    if key in DAMAGED and key not in allowed:
        raise Broken(told)
