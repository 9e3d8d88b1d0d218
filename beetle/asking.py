"""Work that asks for operations as it goes, written once for the blocking client and for the one of asyncio.

Such work is a generator: it yields a request, and is sent its report or thrown the error that came instead.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from typing import Any, Protocol, TypeVar

from beetle.contracts.common import Report
from beetle.contracts.errors import BeetleError
from beetle.named_tuple import NamedTuple

T = TypeVar("T")


class Asked(NamedTuple):
    """A request that is to be sent next."""

    operation: str
    arguments: Any


Asking = Generator[Asked | None, Any, T]
"""Yields requests, and returns its result. None asks for nothing: a long stretch of work lets others run there."""


class Ask(Protocol):
    """Runs one operation: `call` of a client or of a runtime."""

    def __call__(self, operation: str, arguments: Any, /) -> Report: ...


def run(work: Asking[T], ask: Ask) -> T:
    """The result of the work.

    Raises:
        BeetleError: one that `ask` raised and the work does not handle.
    """
    with closing(work):
        try:
            asked = next(work)
            while True:
                if asked is None:
                    asked = next(work)
                    continue
                try:
                    report = ask(*asked)
                except BeetleError as error:
                    asked = work.throw(error)
                else:
                    asked = work.send(report)
        except StopIteration as done:
            return done.value
