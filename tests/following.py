"""Subscriptions without a socket: each with an inbox of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from beetle.runtime.pipeline.dispatcher import Dispatcher
from beetle.runtime.pipeline.invocation import Call
from beetle.runtime.pipeline.subscriptions import Delivery, Hub, Inbox, Subscription, View
from beetle.store.event_places import Level


def follow(
    hub: Hub,
    topics: Iterable[str],
    space: str,
    level: Level | None,
    most: int,
    inbox: Inbox | None = None,
    by: str = "",
) -> Subscription:
    """A subscription of whoever may see no private matter, begun in its inbox."""
    view = View(frozenset(topics), space, level, frozenset({"shared"}))
    subscription = hub.open(view, most, Inbox() if inbox is None else inbox, by=by)
    subscription.inbox.begin(subscription)
    return subscription


def subscribe(dispatcher: Dispatcher, call: Call) -> Subscription:
    """What a call opens, begun in its inbox."""
    inbox = Inbox()
    _, subscription = dispatcher.subscribe(call, inbox)
    inbox.begin(subscription)
    return subscription


def deliveries(subscription: Subscription) -> Iterator[Delivery]:
    """What the only subscription of an inbox hands over; waits for each, until the inbox is closed."""
    while taken := subscription.inbox.take():
        for _, delivery in taken:
            yield delivery
