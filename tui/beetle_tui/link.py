"""The console's one line to a daemon or store: calls in a thread of their own, events in another, and the way back."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from beetle.contracts.common import Report
from beetle.contracts.errors import BeetleError, DaemonUnavailable, DeadlineExceeded
from beetle.contracts.progress import OnProgress, ProgressStep
from beetle_tui.messages import Changed, LinkChanged
from beetle_tui.source import Source

if TYPE_CHECKING:
    from textual.app import App

    from beetle.client import Events

T = TypeVar("T")

FIRST_PAUSE_S = 1
LONGEST_PAUSE_S = 30


class Joining(NamedTuple):
    """The source is there; whether its events can be followed is not known yet."""


class Joined(NamedTuple):
    """The source answers. `live` says that its events are followed, and `error` why they are not."""

    live: bool
    error: BeetleError | None = None


class Lost(NamedTuple):
    """The daemon is gone or silent; the next try comes after `pause_s` seconds, or runs now where that is 0."""

    error: BeetleError
    pause_s: int


State = Joining | Joined | Lost


class Silent(DeadlineExceeded):
    """Connected, and no answer."""

    template = "the daemon at {socket} did not answer in time"
    hint_template = "it may still do the work: look at its log, or at `beetle status`"


class Cancelled(Exception):
    """Work that takes long was called off by whoever waited for it."""


class Gone(DaemonUnavailable):
    """No daemon where there was one."""

    template = "{reason}"
    hint_template = "start it again with `beetle start`; the console finds it by itself"


class Link:
    """Calls one at a time in a thread, reconnecting by itself. Its own methods are for the screen's thread alone.

    Tells the app what happens with `LinkChanged` and `Changed`.
    """

    def __init__(self, app: App[Any], source: Source, reconnect: Callable[[], Source] | None) -> None:
        """`reconnect` makes a new source, in the calls' thread; None for one that cannot be lost.

        It raises BeetleError or OSError while there is nobody.
        """
        self.state: State = Joining()
        self._app = app
        self._source = source
        self._reconnect = reconnect
        self._calls = _Calls()
        self._events: Events | None = None
        self._wanted = asyncio.Event()
        self._untold = threading.Event()
        self._closed = False

    @property
    def socket(self) -> str | None:
        """The daemon's socket; None where there is no daemon."""
        return self._source.socket

    def start(self) -> None:
        """Begin to follow events; `LinkChanged` comes once that is settled."""
        self._set(Joining())
        threading.Thread(target=self._follow, args=(self._source,), name="beetle-console-events", daemon=True).start()

    async def call(self, operation: str, arguments: Any = None) -> Report:
        """Run one operation.

        Raises:
            BeetleError: what it answered, or why nobody does.
            CancelledError: the console is closing, and the widgets that asked are going or gone.
        """
        self._check_open()
        if isinstance(self.state, Lost):
            raise self.state.error
        source = self._source
        try:
            return await self._calls.run(lambda: source.call(operation, arguments))
        except OSError as error:
            raise self._lose(source, error) from None
        finally:
            self._check_open()

    def _check_open(self) -> None:
        if not self._app.is_running:
            raise asyncio.CancelledError

    async def long(
        self,
        operation: str,
        arguments: Any = None,
        on_started: Callable[[Callable[[], None]], None] | None = None,
        on_step: Callable[[ProgressStep], None] | None = None,
    ) -> Report:
        """Run one operation that may take long, beside all others, over a connection of its own.

        `on_started` is handed what calls it off. That closes the connection and ends the waiting; what the daemon has
        begun by then it may still finish. A store of this process works on to the end, before its next call.
        `on_step` is told how far the work is.

        Raises:
            BeetleError: what it answered, or why nobody does.
            Cancelled: it was called off.
        """
        if isinstance(self.state, Lost):
            raise self.state.error
        source = self._source
        work = _LongWork(source, self._calls if source.socket is None else _Calls())
        off: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if on_started is not None:
            on_started(lambda: None if off.done() else off.set_result(None))
        try:
            on_progress = None if on_step is None else partial(work.on_progress, self._app, on_step)
            answer = work.begin(operation, arguments, on_progress)
            await asyncio.wait({answer, off}, return_when=asyncio.FIRST_COMPLETED)
            if not answer.done():
                raise Cancelled
            return answer.result()
        except OSError as error:
            raise _as_beetle_error(source, error) from None
        finally:
            work.end()

    def retry(self) -> None:
        """Try a lost daemon now, or to follow the events of one that refused it."""
        match self.state:
            case Lost():
                self._wanted.set()
            case Joined(live=False, error=error) if error is not None:
                self.start()
            case _:
                pass

    def taken(self) -> None:
        """What changed so far is being read: tell of the next change again."""
        self._untold.clear()

    def close(self) -> None:
        """End calls, events and source."""
        self._closed = True
        self._drop_events()
        if self.socket is None:
            # A store is closed by the thread that works on it, once what runs there has ended.
            self._calls.end(self._source.close)
        else:
            self._source.close()
            self._calls.end()
            self._source.closed()

    def _set(self, state: State) -> None:
        self.state = state
        self._app.post_message(LinkChanged())

    def _lose(self, source: Source, error: OSError) -> BeetleError:
        """Begin to look for another daemon, unless that is being done. Answers with what to tell."""
        if isinstance(self.state, Lost):
            return self.state.error
        told = _as_beetle_error(source, error)
        if source is self._source and self._reconnect is not None and not self._closed:
            self._drop_events()
            source.close()
            self.state = Lost(told, FIRST_PAUSE_S)
            coming = partial(self._come_back, told, self._reconnect)
            self._app.run_worker(coming, name="reconnect", group="reconnect", exclusive=True)
        return told

    async def _come_back(self, error: BeetleError, reconnect: Callable[[], Source]) -> None:
        pause = FIRST_PAUSE_S
        while True:
            self._set(Lost(error, pause))
            self._wanted.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wanted.wait(), pause)
            self._set(Lost(error, 0))
            try:
                self._source = await self._calls.run(reconnect)
            except (BeetleError, OSError) as failure:
                error = _as_beetle_error(self._source, failure)
                pause = min(pause * 2, LONGEST_PAUSE_S)
            else:
                self.start()
                return

    def _follow(self, source: Source) -> None:
        """The events' thread."""
        try:
            events = source.follow()
            self._app.call_later(self._following, source, events)
            if events is None:
                return
            with events:
                for _ in events:
                    if not self._untold.is_set():
                        self._untold.set()
                        self._app.post_message(Changed())
        except (BeetleError, OSError) as error:
            self._app.call_later(self._unfollowed, source, error)

    def _following(self, source: Source, events: Events | None) -> None:
        if events is not None and (source is not self._source or self._closed):
            events.close()
        elif source is self._source:
            self._events = events
            self._join(Joined(live=events is not None))

    def _unfollowed(self, source: Source, error: BeetleError | OSError) -> None:
        if isinstance(error, OSError):
            self._lose(source, error)
        elif source is self._source:
            self._drop_events()
            self._join(Joined(live=False, error=error))

    def _join(self, state: Joined) -> None:
        self._set(state)
        # Only now: what happens from here on is told, what happened before is still to be read.
        self._app.post_message(Changed())

    def _drop_events(self) -> None:
        events, self._events = self._events, None
        if events is not None:
            events.close()


def _as_beetle_error(source: Source, error: Exception) -> BeetleError:
    if isinstance(error, TimeoutError):
        return Silent(socket=source.socket)
    if isinstance(error, BeetleError):
        return Gone(reason=error.message) if isinstance(error, OSError) else error
    return Gone(reason=str(error))


class _LongWork:
    """One operation at another source than the screens', where there can be one. Its thread is its own then."""

    def __init__(self, source: Source, calls: _Calls) -> None:
        self._source = source
        self._calls = calls
        self._guard = threading.Lock()
        self._own: Source | None = None
        self._ended = False

    def begin(self, operation: str, arguments: Any, on_progress: OnProgress | None) -> asyncio.Future[Report]:
        """What it answers or raises, once it has."""
        answer = self._calls.run(lambda: self._run(operation, arguments, on_progress))
        # Nobody may wait for it any more when it fails, and asyncio would say so on the terminal.
        answer.add_done_callback(lambda ended: None if ended.cancelled() else ended.exception())
        return answer

    def on_progress(self, app: App[Any], on_step: Callable[[ProgressStep], None], step: ProgressStep) -> None:
        """Say how far it is, from its own thread, unless nobody waits for it any more."""
        with self._guard:
            if not self._ended:
                app.call_later(on_step, step)

    def end(self) -> None:
        """Close what it runs on: it ends, if it has not."""
        with self._guard:
            self._ended = True
        if self._own is not None:
            self._own.close()
        if self._source.socket is not None:
            self._calls.end()

    def _run(self, operation: str, arguments: Any, on_progress: OnProgress | None) -> Report:
        own = self._source.another()
        if own is None:
            return self._source.call(operation, arguments, on_progress)
        with self._guard:
            self._own = own
            ended = self._ended
        if ended:
            own.close()
        return own.call(operation, arguments, on_progress)


class _Calls:
    """A thread that does one thing after the other."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None] = SimpleQueue()
        # A daemon thread: quitting does not wait for an answer that may not come.
        self._thread = threading.Thread(target=self._work, name="beetle-console-calls", daemon=True)
        self._thread.start()

    def run(self, what: Callable[[], T]) -> asyncio.Future[T]:
        """What the function returns or raises, once it has run in the thread."""
        future: Future[T] = Future()
        self._queue.put((what, future))
        return asyncio.wrap_future(future)

    def end(self, last: Callable[[], None] | None = None) -> None:
        """End the thread behind what is queued; with `last`, wait until that has run."""
        future: Future[None] = Future()
        if last is not None:
            self._queue.put((last, future))
        self._queue.put(None)
        if last is not None:
            future.result()

    def _work(self) -> None:
        while (job := self._queue.get()) is not None:
            what, future = job
            if not future.set_running_or_notify_cancel():
                continue
            try:
                result = what()
            except BaseException as error:  # noqa: BLE001 - not decided here: it is raised where the result is awaited
                future.set_exception(error)
            else:
                future.set_result(result)
