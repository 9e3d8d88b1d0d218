"""Making things beforehand, on a thread of their own, while whoever takes them waits for something else."""

from __future__ import annotations

import queue
import threading
from collections.abc import Generator, Iterable, Iterator
from itertools import islice
from typing import Generic, TypeVar

from beetle.named_tuple import NamedTuple

T = TypeVar("T")

AT_ONCE = 50
"""Things that are handed over together: to hand over costs as much as to make a few."""
MOST = 8
"""So many times these are made beforehand at most."""


class _Made(NamedTuple, Generic[T]):
    things: list[T]
    last: bool
    error: BaseException | None


def ahead(things: Iterable[T]) -> Generator[T]:
    """The things in their order; what making them raises is raised where the next one would come.

    Nothing more is made when the generator is closed: its thread has ended then.
    """
    made: queue.Queue[_Made[T]] = queue.Queue(MOST)
    stopped = threading.Event()
    maker = threading.Thread(target=_make, args=(iter(things), made, stopped), name="beetle-ahead", daemon=True)
    maker.start()
    last = False
    try:
        while not last:
            some, last, error = made.get()
            yield from some
            if error is not None:
                raise error
    finally:
        stopped.set()
        while not last:
            last = made.get().last
        maker.join()


def _make(things: Iterator[T], made: queue.Queue[_Made[T]], stopped: threading.Event) -> None:
    last = False
    while not last:
        some: list[T] = []
        error: BaseException | None = None
        try:
            for thing in islice(things, AT_ONCE):
                some.append(thing)
                if stopped.is_set():
                    break
        except BaseException as raised:  # noqa: BLE001 - raised again where the things are taken
            error = raised
        last = error is not None or len(some) < AT_ONCE
        made.put(_Made(some, last, error))
