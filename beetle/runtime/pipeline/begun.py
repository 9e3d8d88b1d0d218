"""A call that was begun and waits for its write, on no thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from beetle.contracts.errors import BeetleError, DeadlineExceeded
from beetle.runtime.pipeline.invocation import Outcome
from beetle.store.engine.steps import Steps, complete
from beetle.store.engine.store import Store
from beetle.store.engine.write_queue import PendingWrite, QueuedWrite


class BegunCall:
    """What has stopped at a write. Its outcome is asked for once: where the write has ended, or was not taken."""

    def __init__(self, store: Store, steps: Steps[Outcome], write: PendingWrite) -> None:
        self._store = store
        self._steps = steps
        self._write = write
        self._job: QueuedWrite | None = None
        self._error: BeetleError | None = None

    @property
    def deadline(self) -> float | None:
        """Until when the write has to begin (monotonic seconds)."""
        return self._write.deadline

    def queue(self, then: Callable[[], None]) -> bool:
        """Hand the write over; `then` is called on the thread that ends it, and must be quick. False where that is not
        to come: the write was refused, or has to wait before it is queued; `complete` tells which."""
        try:
            self._job = self._store.begin_write(self._write, then)
        except BeetleError as error:
            self._error = error
        return self._job is not None

    def withdraw(self) -> bool:
        """Take the write back, because its deadline has passed; false where it has begun, and will end."""
        if self._job is None or not self._store.withdraw(self._job):
            return False
        self._error = DeadlineExceeded.before("the write began")
        return True

    def complete(self) -> Outcome:
        """What comes of it; waits for the write where that was not queued. Raises as `Dispatcher.dispatch`."""
        return complete(self._steps, self._result, self._write)

    def _result(self, write: PendingWrite) -> Any:
        if self._error is not None:
            raise self._error
        return self._store.do(write) if self._job is None else self._job.answer()
