"""Subscriptions: committed events, handed to whoever follows their topic in their own space."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable
from typing import Any

from beetle.contracts.control import TOPIC_CAPABILITIES as TOPIC_CAPABILITIES
from beetle.contracts.progress import ProgressStep
from beetle.named_tuple import NamedTuple
from beetle.store.event_log import Event, Logged
from beetle.store.event_places import Level

TOLD_AS = {"memory": "lifecycle"}
"""Topics of the event log that are followed under another name: what lives and ends in memory has none of its own."""


def followed_as(event: Event) -> str:
    """The topic under which a subscriber gets an event."""
    return TOLD_AS.get(event.topic, event.topic)


class Progressed(NamedTuple):
    """How far a call is. It is no event of the log, and has no number."""

    operation: str
    request: int | str
    step: ProgressStep


class Delivery(NamedTuple):
    """What a subscription hands over: one event, how far a call is, or how many events a slow reader lost. Without any
    of them it is only to be looked at again whether the subscriber still may follow.
    """

    logged: Logged | None
    dropped: int = 0
    progressed: Progressed | None = None


NUDGE = Delivery(None)


class Subscription:
    """A bounded queue of events. The writer never waits for it: what does not fit is counted as dropped.

    `holder` is what it was opened by, for whoever looks whether that still may follow; `by` is the caller's name.
    `level` is of which events of the space may be told, and by whose numbers; None for who sees the whole log. Of what
    is sealed, nobody is told.
    """

    def __init__(
        self,
        sub: str,
        topics: frozenset[str],
        space: str,
        level: Level | None,
        most: int,
        holder: Any = None,
        *,
        by: str = "",
        private: bool = False,
    ) -> None:
        self.sub = sub
        self.by = by
        self.topics = topics
        self.holder = holder
        self._space = space
        self._level: Level | None = level
        self._matters = frozenset({"shared", "private"} if private else {"shared"})
        self._most = most
        self._queue: deque[Logged] = deque()
        self._dropped = 0
        self._progressed: Progressed | None = None
        self._ready = threading.Condition()
        self._closed = False
        self._nudged = False

    def wants(self, logged: Logged) -> bool:
        """Whether this subscriber may and would see an event; the daemon's own are for operators."""
        event = logged.event
        mine = self._level is None if event.space is None else event.space == self._space
        return mine and followed_as(event) in self.topics and event.matter in self._matters

    def put(self, logged: Logged) -> None:
        """Queue an event under the number that its follower knows it by, or count it."""
        number = logged.number_for(self._level, self._space)
        if number is None:
            return
        with self._ready:
            if len(self._queue) >= self._most or self._dropped:
                self._dropped += 1
            else:
                self._queue.append(logged._replace(seq=number))
            self._ready.notify()

    def deliver(self, progressed: Progressed) -> None:
        """Say how far a call is; what was said before and not taken yet is worth nothing any more."""
        with self._ready:
            self._progressed = progressed
            self._ready.notify()

    def nudge(self) -> None:
        """Wake who waits in `take`: somebody's rights have changed."""
        with self._ready:
            self._nudged = True
            self._ready.notify()

    def take(self) -> Delivery | None:
        """The next event; waits for one. None when the subscription has ended.

        What was dropped is told once, behind the events that were queued before it.
        """
        with self._ready:
            while not (self._queue or self._dropped or self._progressed or self._closed or self._nudged):
                self._ready.wait()
            if self._closed:
                return None
            if self._nudged:
                self._nudged = False
                return NUDGE
            if self._queue:
                return Delivery(self._queue.popleft())
            if self._progressed is not None:
                progressed, self._progressed = self._progressed, None
                return Delivery(None, progressed=progressed)
            dropped, self._dropped = self._dropped, 0
            return Delivery(None, dropped)

    @property
    def closed(self) -> bool:
        """Whether it has ended."""
        return self._closed

    def close(self) -> None:
        """End it; a waiting `take` answers None."""
        with self._ready:
            self._closed = True
            self._ready.notify_all()


class Hub:
    """All subscriptions of a runtime."""

    def __init__(self) -> None:
        self._subscriptions: dict[Subscription, None] = {}
        self._guard = threading.Lock()
        self._counts: Counter[str] = Counter()
        self.on_nudge: Callable[[], None] | None = None

    def publish(self, logged: list[Logged]) -> None:
        """Hand committed events to those who follow them; called on the writer's thread."""
        if not self._subscriptions:
            return
        with self._guard:
            followers = list(self._subscriptions)
        for each in logged:
            for follower in followers:
                if follower.wants(each):
                    follower.put(each)

    def nudge(self) -> None:
        """Have every subscription looked at again; quick, and safe on the writer's thread."""
        with self._guard:
            followers = list(self._subscriptions)
        for each in followers:
            each.nudge()
        if (also := self.on_nudge) is not None:
            also()

    @property
    def count(self) -> int:
        """Subscriptions that are open now."""
        return len(self._subscriptions)

    def open(
        self,
        topics: frozenset[str],
        space: str,
        level: Level | None,
        most: int,
        holder: Any = None,
        *,
        by: str = "",
        private: bool = False,
    ) -> Subscription:
        """A new subscription; `most` bounds its queue. Its id counts those that its caller, `by`, has opened."""
        with self._guard:
            self._counts[by] += 1
            subscription = Subscription(
                f"sub-{self._counts[by]}", topics, space, level, most, holder, by=by, private=private
            )
            self._subscriptions[subscription] = None
        return subscription

    def close(self, subscription: Subscription) -> None:
        """End a subscription."""
        with self._guard:
            self._subscriptions.pop(subscription, None)
        subscription.close()
