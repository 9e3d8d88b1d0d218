from __future__ import annotations

import threading

from beetle.runtime.pipeline.subscriptions import NUDGE, TOPIC_CAPABILITIES, Delivery, Hub, Subscription
from beetle.store.event_log import Event, Logged
from beetle.store.event_places import Places

SPACE, OTHER = "space:one", "space:two"
EVERY = frozenset(TOPIC_CAPABILITIES)


def event(seq: int, topic: str = "transcript", space: str | None = SPACE) -> Logged:
    places = None if space is None else Places(seq, seq, seq)
    return Logged(seq, 0, Event(topic, "happened", "op", "someone", space, {"n": seq}), places)


def waiting(subscription: Subscription, most: int) -> list[Delivery]:
    """What is there to be taken, without waiting for more."""
    found = [subscription.take() for _ in range(most)]
    return [each for each in found if each is not None]


def numbers(deliveries: list[Delivery]) -> list[int]:
    return [each.logged.seq for each in deliveries if each.logged is not None]


def test_a_follower_gets_the_events_of_its_topics_in_order() -> None:
    hub = Hub()
    mine = hub.open(frozenset({"transcript", "skill"}), SPACE, level="shared", most=10)
    hub.publish([event(1), event(2, "lifecycle"), event(3, "skill")])
    hub.publish([event(4)])
    assert numbers(waiting(mine, 3)) == [1, 3, 4]


def test_spaces_are_isolated() -> None:
    hub = Hub()
    mine, theirs = (hub.open(EVERY, space, level="shared", most=10) for space in (SPACE, OTHER))
    hub.publish([event(1), event(2, space=OTHER), event(3)])
    assert numbers(waiting(mine, 2)) == [1, 3]
    assert numbers(waiting(theirs, 1)) == [2]


def test_the_daemon_s_own_events_are_for_operators() -> None:
    hub = Hub()
    operator = hub.open(EVERY, SPACE, level=None, most=10)
    agent = hub.open(EVERY, SPACE, level="shared", most=10)
    hub.publish([event(1, "lifecycle", space=None), event(2, "lifecycle"), event(3, "lifecycle", space=OTHER)])
    assert numbers(waiting(operator, 2)) == [1, 2]
    assert numbers(waiting(agent, 1)) == [2]


def test_a_slow_reader_gets_what_was_queued_and_then_one_count_of_what_was_lost() -> None:
    hub = Hub()
    slow = hub.open(EVERY, SPACE, level="shared", most=3)
    hub.publish([event(n) for n in range(1, 11)])
    hub.publish([event(11, space=OTHER)])  # not this reader's: not lost either
    assert waiting(slow, 4) == [Delivery(event(1)), Delivery(event(2)), Delivery(event(3)), Delivery(None, 7)]
    hub.publish([event(12)])
    assert waiting(slow, 1) == [Delivery(event(12))]


def test_between_a_loss_and_its_telling_no_later_event_slips_in() -> None:
    hub = Hub()
    slow = hub.open(EVERY, SPACE, level="shared", most=1)
    hub.publish([event(1), event(2)])
    assert slow.take() == Delivery(event(1))
    hub.publish([event(3)])  # there is room again, but 2 has not been told yet
    assert slow.take() == Delivery(None, 2)
    hub.publish([event(4)])
    assert slow.take() == Delivery(event(4))


def test_a_slow_reader_holds_nobody_up() -> None:
    hub = Hub()
    hub.open(EVERY, SPACE, level="shared", most=1)
    quick = hub.open(EVERY, SPACE, level="shared", most=2000)
    hub.publish([event(n) for n in range(1000)])
    assert numbers(waiting(quick, 1000)) == list(range(1000))


def test_a_reader_waits_for_the_next_event() -> None:
    hub = Hub()
    mine = hub.open(EVERY, SPACE, level="shared", most=10)
    taken: list[Delivery | None] = []
    reader = threading.Thread(target=lambda: taken.append(mine.take()))
    reader.start()
    hub.publish([event(5)])
    reader.join(60)
    assert taken == [Delivery(event(5))]


def test_closing_ends_a_waiting_reader_and_the_delivery() -> None:
    hub = Hub()
    mine, other = (hub.open(EVERY, SPACE, level="shared", most=10) for _ in range(2))
    taken: list[Delivery | None] = []
    reader = threading.Thread(target=lambda: taken.append(mine.take()))
    reader.start()
    hub.close(mine)
    reader.join(60)
    assert taken == [None]
    hub.close(mine)
    hub.publish([event(1)])
    assert mine.take() is None
    assert numbers(waiting(other, 1)) == [1]
    assert mine.sub != other.sub


def test_a_nudge_wakes_who_waits_and_costs_no_event() -> None:
    hub = Hub()
    subscription = hub.open(frozenset({"skill"}), "space:a", "shared", 2)
    assert hub.count == 1
    one = event(1, "skill", "space:a")
    hub.publish([one, one])
    hub.nudge()
    hub.nudge()
    assert [subscription.take() for _ in range(3)] == [NUDGE, Delivery(one), Delivery(one)]
    woken: list[object] = []
    waiter = threading.Thread(target=lambda: woken.append(subscription.take()))
    waiter.start()
    hub.nudge()
    waiter.join()
    assert woken == [NUDGE]
    hub.close(subscription)
    hub.nudge()
    assert subscription.take() is None and hub.count == 0
