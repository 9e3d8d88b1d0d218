"""Subscriptions: committed events, handed to whoever follows their topic in their own space."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable
from itertools import islice
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
AT_ONCE = 4
"""Most that one subscription hands over before the next one's turn."""


class View(NamedTuple):
    """Which events a subscription may and would tell, and under which numbers. `level` is of which events of the space
    may be told, and by whose numbers; None for who sees the whole log.
    """

    topics: frozenset[str]
    space: str
    level: Level | None
    matters: frozenset[str]

    def of(self, logged: Logged) -> Logged | None:
        """An event under the number that its follower knows it by; None if it is not told. The daemon's own are for
        operators."""
        event = logged.event
        mine = self.level is None if event.space is None else event.space == self.space
        if not mine or followed_as(event) not in self.topics or event.matter not in self.matters:
            return None
        number = logged.number_for(self.level, self.space)
        return None if number is None else logged._replace(seq=number)


class Inbox:
    """What the subscriptions of one connection hand over, to the one thread that sends it: what happens wakes a thread
    for each connection, not for each subscription.
    """

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self._subscriptions: list[Subscription] = []
        self._closed = False

    def begin(self, subscription: Subscription) -> None:
        """From now on what a subscription has queued is handed over, and what it had before."""
        with self.changed:
            self._subscriptions.append(subscription)
            self.changed.notify()

    def take(self) -> list[tuple[Subscription, Delivery]]:
        """What the subscriptions of one principal hand over next, in the order of each; waits for something.

        Nothing once the inbox is closed.
        """
        with self.changed:
            while not self._closed:
                if taken := self._ready():
                    return taken
                self.changed.wait()
            return []

    def _ready(self) -> list[tuple[Subscription, Delivery]]:
        going = [each for each in self._subscriptions if not each.closed]
        taken: list[tuple[Subscription, Delivery]] = []
        for each in going:
            if not taken or taken[0][0].by == each.by:
                taken += ((each, delivery) for delivery in islice(iter(each.next, None), AT_ONCE))
        # Another one is first the next time, so that each principal's come to their turn.
        self._subscriptions = going[1:] + going[:1]
        return taken

    def close(self) -> None:
        """End it: who waits in `take` is given nothing."""
        with self.changed:
            self._closed = True
            self.changed.notify_all()


class Subscription:
    """A bounded queue of events. The writer never waits for it: what does not fit is counted as dropped.

    `holder` is what it was opened by, for whoever looks whether that still may follow; `by` is the caller's name. Of
    what is sealed, nobody is told.
    """

    def __init__(self, sub: str, view: View, most: int, inbox: Inbox, holder: Any = None, *, by: str = "") -> None:
        self.sub = sub
        self.by = by
        self.view = view
        self.holder = holder
        self.inbox = inbox
        self._most = most
        self._queue: deque[Logged] = deque()
        self._dropped = 0
        self._progressed: Progressed | None = None
        self._closed = False
        self._nudged = False

    def put(self, logged: Logged) -> None:
        """Queue an event, or count it; for who holds the inbox."""
        if len(self._queue) >= self._most or self._dropped:
            self._dropped += 1
        else:
            self._queue.append(logged)

    def deliver(self, progressed: Progressed) -> None:
        """Say how far a call is; what was said before and not taken yet is worth nothing any more."""
        with self.inbox.changed:
            self._progressed = progressed
            self.inbox.changed.notify()

    def nudge(self) -> None:
        """Have it looked at again: somebody's rights have changed."""
        with self.inbox.changed:
            self._nudged = True
            self.inbox.changed.notify()

    def next(self) -> Delivery | None:
        """What it hands over next, None for nothing; for who holds the inbox.

        What was dropped is told once, behind the events that were queued before it.
        """
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
        return Delivery(None, dropped) if dropped else None

    @property
    def closed(self) -> bool:
        """Whether it has ended."""
        return self._closed

    def close(self) -> None:
        """End it; it hands over nothing more."""
        with self.inbox.changed:
            self._closed = True


class Hub:
    """All subscriptions of a runtime."""

    def __init__(self) -> None:
        self._subscriptions: dict[Subscription, None] = {}
        self._guard = threading.Lock()
        self._counts: Counter[str] = Counter()
        self.on_nudge: Callable[[], None] | None = None

    def publish(self, logged: list[Logged]) -> None:
        """Hand committed events to those who follow them; called on the writer's thread.

        What a view is told is found once, however many follow by it.
        """
        if not self._subscriptions:
            return
        told: dict[View, list[Logged]] = {}
        for inbox, followers in self._by_inbox().items():
            with inbox.changed:
                for each in followers:
                    if (events := told.get(each.view)) is None:
                        events = told[each.view] = [seen for one in logged if (seen := each.view.of(one)) is not None]
                    for event in events:
                        each.put(event)
                # Who waits looks at all of them; who is told nothing sleeps on.
                if any(told[each.view] for each in followers):
                    inbox.changed.notify()

    def _by_inbox(self) -> dict[Inbox, list[Subscription]]:
        found: dict[Inbox, list[Subscription]] = {}
        with self._guard:
            for each in self._subscriptions:
                found.setdefault(each.inbox, []).append(each)
        return found

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

    def open(self, view: View, most: int, inbox: Inbox, holder: Any = None, *, by: str = "") -> Subscription:
        """A new subscription; `most` bounds its queue. Its id counts those that its caller, `by`, has opened, without
        those that another caller's has in the same inbox. What it has to hand over is there once it is begun."""
        with self._guard:
            taken = {each.sub for each in self._subscriptions if each.inbox is inbox}
            while True:
                self._counts[by] += 1
                if (sub := f"sub-{self._counts[by]}") not in taken:
                    break
            subscription = Subscription(sub, view, most, inbox, holder, by=by)
            self._subscriptions[subscription] = None
        return subscription

    def close(self, subscription: Subscription) -> None:
        """End a subscription."""
        with self._guard:
            self._subscriptions.pop(subscription, None)
        subscription.close()
