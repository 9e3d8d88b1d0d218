from __future__ import annotations

import threading

from beetle.runtime.pipeline.subscriptions import AT_ONCE, NUDGE, TOPIC_CAPABILITIES, Delivery, Hub, Inbox, Subscription
from beetle.store.event_log import Event, Logged
from beetle.store.event_places import Places
from tests.following import follow

SPACE, OTHER = "space:one", "space:two"
EVERY = frozenset(TOPIC_CAPABILITIES)


def event(seq: int, topic: str = "transcript", space: str | None = SPACE) -> Logged:
    places = None if space is None else Places(seq, seq, seq)
    return Logged(seq, 0, Event(topic, "happened", "op", "someone", space, {"n": seq}), places)


def waiting(subscription: Subscription, most: int) -> list[Delivery]:
    """What is there to be taken, without waiting for more."""
    found = [subscription.next() for _ in range(most)]
    return [each for each in found if each is not None]


def numbers(deliveries: list[Delivery]) -> list[int]:
    return [each.logged.seq for each in deliveries if each.logged is not None]


def test_a_follower_gets_the_events_of_its_topics_in_order() -> None:
    hub = Hub()
    mine = follow(hub, {"transcript", "skill"}, SPACE, "shared", 10)
    hub.publish([event(1), event(2, "lifecycle"), event(3, "skill")])
    hub.publish([event(4)])
    assert numbers(waiting(mine, 3)) == [1, 3, 4]


def test_spaces_are_isolated() -> None:
    hub = Hub()
    mine, theirs = (follow(hub, EVERY, space, "shared", 10) for space in (SPACE, OTHER))
    hub.publish([event(1), event(2, space=OTHER), event(3)])
    assert numbers(waiting(mine, 2)) == [1, 3]
    assert numbers(waiting(theirs, 1)) == [2]


def test_the_daemon_s_own_events_are_for_operators() -> None:
    hub = Hub()
    operator = follow(hub, EVERY, SPACE, None, 10)
    agent = follow(hub, EVERY, SPACE, "shared", 10)
    hub.publish([event(1, "lifecycle", space=None), event(2, "lifecycle"), event(3, "lifecycle", space=OTHER)])
    assert numbers(waiting(operator, 2)) == [1, 2]
    assert numbers(waiting(agent, 1)) == [2]


def test_a_slow_reader_gets_what_was_queued_and_then_one_count_of_what_was_lost() -> None:
    hub = Hub()
    slow = follow(hub, EVERY, SPACE, "shared", 3)
    hub.publish([event(n) for n in range(1, 11)])
    hub.publish([event(11, space=OTHER)])  # not this reader's: not lost either
    assert waiting(slow, 4) == [Delivery(event(1)), Delivery(event(2)), Delivery(event(3)), Delivery(None, 7)]
    hub.publish([event(12)])
    assert waiting(slow, 1) == [Delivery(event(12))]


def test_between_a_loss_and_its_telling_no_later_event_slips_in() -> None:
    hub = Hub()
    slow = follow(hub, EVERY, SPACE, "shared", 1)
    hub.publish([event(1), event(2)])
    assert slow.next() == Delivery(event(1))
    hub.publish([event(3)])  # there is room again, but 2 has not been told yet
    assert slow.next() == Delivery(None, 2)
    hub.publish([event(4)])
    assert slow.next() == Delivery(event(4))


def test_a_slow_reader_holds_nobody_up() -> None:
    hub = Hub()
    follow(hub, EVERY, SPACE, "shared", 1)
    quick = follow(hub, EVERY, SPACE, "shared", 2000)
    hub.publish([event(n) for n in range(1000)])
    assert numbers(waiting(quick, 1000)) == list(range(1000))


def test_a_reader_waits_for_the_next_event() -> None:
    hub = Hub()
    mine = follow(hub, EVERY, SPACE, "shared", 10)
    taken: list[tuple[Subscription, Delivery]] = []
    reader = threading.Thread(target=lambda: taken.extend(mine.inbox.take()))
    reader.start()
    hub.publish([event(5)])
    reader.join(60)
    assert taken == [(mine, Delivery(event(5)))]


def test_a_closed_subscription_hands_over_nothing_and_others_go_on() -> None:
    hub = Hub()
    mine, other = (follow(hub, EVERY, SPACE, "shared", 10) for _ in range(2))
    hub.publish([event(1)])
    hub.close(mine)
    hub.close(mine)
    hub.publish([event(2)])
    assert mine.next() is None and mine.closed
    assert numbers(waiting(other, 2)) == [1, 2]
    assert mine.sub != other.sub


def test_closing_an_inbox_ends_who_waits_at_it() -> None:
    hub = Hub()
    mine = follow(hub, EVERY, SPACE, "shared", 10)
    ended: list[object] = []
    reader = threading.Thread(target=lambda: ended.append(mine.inbox.take()))
    reader.start()
    mine.inbox.close()
    reader.join(60)
    assert ended == [[]]
    hub.publish([event(1)])
    assert mine.inbox.take() == []


def test_subscriptions_of_one_inbox_are_handed_over_together_each_in_its_order() -> None:
    hub, inbox = Hub(), Inbox()
    first, second = (follow(hub, topics, SPACE, "shared", 10, inbox=inbox) for topics in (EVERY, {"skill"}))
    hub.publish([event(1), event(2, "skill"), *(event(n) for n in range(3, 8))])
    assert [(each, told.logged.seq) for each, told in inbox.take() if told.logged is not None] == [
        *((first, n) for n in range(1, AT_ONCE + 1)),
        (second, 2),
    ]
    assert [(each, told.logged.seq) for each, told in inbox.take() if told.logged is not None] == [
        (first, n) for n in range(AT_ONCE + 1, 8)
    ]


def test_what_an_inbox_hands_over_at_once_is_of_one_principal_and_each_has_its_turn() -> None:
    hub, inbox = Hub(), Inbox()
    busy, other = (follow(hub, EVERY, SPACE, "shared", 100, inbox=inbox, by=by) for by in ("busy", "other"))
    hub.publish([event(n) for n in range(50)])
    handed = [{each for each, _ in inbox.take()} for _ in range(4)]
    assert handed.count({busy}) == handed.count({other}) == 2


def test_before_it_is_begun_a_subscription_only_queues() -> None:
    hub, inbox = Hub(), Inbox()
    begun = follow(hub, EVERY, SPACE, "shared", 10, inbox=inbox)
    later = hub.open(begun.view, 10, inbox)
    hub.publish([event(1)])
    assert inbox.take() == [(begun, Delivery(event(1)))]
    inbox.begin(later)
    assert inbox.take() == [(later, Delivery(event(1)))]


def test_a_nudge_wakes_who_waits_and_costs_no_event() -> None:
    hub = Hub()
    subscription = follow(hub, {"skill"}, "space:a", "shared", 2)
    assert hub.count == 1
    one = event(1, "skill", "space:a")
    hub.publish([one, one])
    hub.nudge()
    hub.nudge()
    assert [subscription.next() for _ in range(3)] == [NUDGE, Delivery(one), Delivery(one)]
    woken: list[object] = []
    waiter = threading.Thread(target=lambda: woken.extend(subscription.inbox.take()))
    waiter.start()
    hub.nudge()
    waiter.join()
    assert woken == [(subscription, NUDGE)]
    hub.close(subscription)
    hub.nudge()
    assert subscription.next() is None and hub.count == 0
