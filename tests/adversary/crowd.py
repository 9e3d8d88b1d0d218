"""Callers beside each other on one dispatcher, and what holds them up until a test lets go."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from beetle.contracts.errors import BeetleError
from beetle.runtime.host.caller import Caller
from beetle.runtime.host.principals import OPERATOR
from beetle.runtime.pipeline.dispatcher import Dispatcher
from beetle.runtime.pipeline.invocation import Call

PATIENCE_S = 30.0


class Crowd:
    """Calls on threads of their own. An answer is a report, or the key of an error."""

    def __init__(self, dispatcher: Dispatcher, rights: Caller = OPERATOR) -> None:
        """Who calls has a name of its own, and these rights."""
        self._dispatcher = dispatcher
        self._rights = rights
        self._threads: list[threading.Thread] = []

    def ask(self, who: str, op: str, args: Any = None, **more: Any) -> Any:
        """Here and now."""
        try:
            call = Call(op, args or {}, self._rights._replace(name=who), **more)
            return self._dispatcher.dispatch(call).report
        except BeetleError as error:
            return error.key

    def send(self, who: str, op: str, args: Any = None, **more: Any) -> list[Any]:
        """On a thread; the list holds the answer once it is there."""
        answer: list[Any] = []
        thread = threading.Thread(target=lambda: answer.append(self.ask(who, op, args, **more)))
        self._threads.append(thread)
        thread.start()
        return answer

    def join(self) -> None:
        """Wait for all."""
        for thread in self._threads:
            thread.join(PATIENCE_S)
            assert not thread.is_alive()


class Held:
    """A read that says who it is for, and waits until it is let go."""

    def __init__(self, answer: Callable[..., Any]) -> None:
        self._answer = answer
        self._guard = threading.Lock()
        self._inside = 0
        self.most = 0
        self.order: list[str] = []
        self.go = threading.Semaphore(0)

    def __call__(self, invocation: Any, request: Any, tx: Any) -> Any:
        with self._guard:
            self.order.append(invocation.caller.name)
            self._inside += 1
            self.most = max(self.most, self._inside)
        assert self.go.acquire(timeout=PATIENCE_S)
        with self._guard:
            self._inside -= 1
        return self._answer(invocation, request, tx)

    def let_go(self) -> None:
        """All, from now on."""
        self.go.release(1000)
