"""The events of candidates: what a drop's event says, and who hears of what."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from beetle.runtime.host.caller import Caller
from beetle.runtime.pipeline.invocation import Call
from tests.following import deliveries, subscribe
from tests.governance.judging import JudgedStore, candidate


@pytest.fixture
def place() -> Iterator[JudgedStore]:
    made = JudgedStore()
    yield made
    made.close()


def test_a_drop_s_event_names_the_candidate_what_it_waited_for_and_why_it_went(place: JudgedStore) -> None:
    place.judge(candidate("c-17", "x", "assistant_claimed", topic="tea", kind="preference"))
    ((waiting_id,),) = place.rows("SELECT waiting_id FROM candidate")
    place.sleep(place.days + 1)
    place.judge(candidate("n", "y", topic="another"))
    ((subject,),) = place.rows("SELECT subject FROM event_log WHERE event = 'candidate_dropped'")
    assert json.loads(subject) == {
        "candidate_id": "c-17",
        "waiting_id": waiting_id,
        "target": "long_term",
        "kind": "preference",
        "waited_for": "needs_assertion",
        "reason": "expired",
    }


@pytest.mark.parametrize("authority", ["user_asserted", "assistant_claimed"])
@pytest.mark.parametrize("privacy", ["subject_private", "soul_private"])
def test_who_may_see_no_private_material_hears_nothing_of_a_private_candidate(
    place: JudgedStore, privacy: str, authority: str
) -> None:
    watcher = Caller(
        "watcher", "principal", frozenset({"inspect", "subscribe"}), ("host_ui",), "unix_socket", "owner", "agent-b"
    )
    subscription = subscribe(place.opened.dispatcher, Call("subscribe", {"topics": ["lifecycle"]}, watcher))
    place.judge(candidate("private", "x", authority, privacy=privacy, topic="tea"))
    place.judge(candidate("shared", "y", topic="another"))
    place.judge(candidate("waits", "z", "assistant_claimed", topic="a third"))
    heard = []
    handed = deliveries(subscription)
    while "waits" not in heard:
        delivery = next(handed)
        assert delivery.logged is not None
        heard.append(delivery.logged.event.subject.get("candidate_id"))
    assert "shared" in heard and "private" not in heard
