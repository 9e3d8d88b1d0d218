"""Replay pages, the timeline, the list of conversations, and transcript search."""

from __future__ import annotations

from typing import Any

import pytest

from tests.building import CONVERSATION, contents, message, replay, talk, turn
from tests.conformance.doors import Door, Plain


def day(number: int) -> str:
    return f"2024-05-{number:02}T12:00:00Z"


def ten_days(door: Door) -> None:
    """Turns t1 to t10, a day apart."""
    door.prepare("transcript.commit", talk(*(turn(f"t{n}", f"day {n}", at=day(n)) for n in range(1, 11))))


def timeline(door: Door, anchor: Any = "latest", limit: int = 3, view: str = "host_ui") -> Plain:
    args = {"conversation": CONVERSATION, "view": view, "anchor": anchor, "limit": limit}
    return door.call("transcript.timeline", args)


@pytest.mark.parametrize(
    ("anchor", "sequences"),
    [
        ("latest", [8, 9, 10]),
        ({"before": 4}, [1, 2, 3]),
        ({"before": 3}, [1, 2]),
        ({"before": 1}, []),
        ({"after": 0}, [1, 2, 3]),
        ({"after": 8}, [9, 10]),
        ({"after": 10}, []),
        ({"around": 5}, [4, 5, 6]),
        ({"around": 1}, [1, 2, 3]),
        ({"at": day(4)}, [4, 5, 6]),
        ({"at": "2024-05-04T12:00:00.000001Z"}, [5, 6, 7]),
        ({"at": "1999-01-01T00:00:00Z"}, [1, 2, 3]),
        ({"at": "2031-01-01T00:00:00+05:00"}, []),
        ({"first_in": {"from": day(6), "to": day(7)}}, [6, 7, 8]),
        ({"first_in": {"from": "2024-05-06T12:00:01Z", "to": "2024-05-06T23:00:00Z"}}, []),
        ({"turn": "t5"}, [4, 5, 6]),
    ],
    ids=str,
)
def test_a_timeline_page_stands_where_its_anchor_says(door: Door, anchor: Any, sequences: list[int]) -> None:
    ten_days(door)
    page = timeline(door, anchor)
    assert [each["sequence"] for each in page["turns"]] == sequences
    if sequences:
        assert page["has_before"] is (sequences[0] > 1)
        assert page["has_after"] is (sequences[-1] < 10)


def test_a_timeline_page_is_seen_through_its_view(door: Door) -> None:
    spoken = turn("t1", message("a", "aloud"), message("b", "within", visibility="soul"))
    door.prepare("transcript.commit", talk(spoken))
    page = timeline(door)
    assert page["view"] == "host_ui"
    assert contents(page) == ["aloud", None]
    assert page["audit"]["messages_redacted"] == 1
    assert [(each["message_id"], each["reason"]) for each in page["redactions"]] == [("b", "soul")]
    assert contents(timeline(door, view="operator_audit")) == [None, None]


def test_walking_a_timeline_by_its_anchors_meets_every_turn_once(door: Door) -> None:
    ten_days(door)
    seen: list[int] = []
    page = timeline(door, "latest", limit=4)
    while page["turns"]:
        seen[:0] = [each["sequence"] for each in page["turns"]]
        page = timeline(door, {"before": seen[0]}, limit=4)
    assert seen == list(range(1, 11))


@pytest.mark.parametrize(
    "anchor", [{}, {"before": 1, "after": 2}, "first", {"before": -1}, {"at": "2024-05-01"}], ids=str
)
def test_an_anchor_names_exactly_one_place(door: Door, anchor: Any) -> None:
    ten_days(door)
    args = {"conversation": CONVERSATION, "view": "host_ui", "anchor": anchor}
    error = door.refused("invalid_request", "transcript.timeline", args)
    assert "$.args.anchor" in error.message


def test_an_unknown_conversation_is_not_found(door: Door) -> None:
    nowhere = {"channel_id": "local", "conversation_id": "nowhere"}
    door.refused("not_found", "transcript.replay", {"conversation": nowhere, "view": "host_ui"})
    error = door.refused("not_found", "transcript.timeline", {"conversation": nowhere, "view": "host_ui"})
    assert "transcript conversations" in error.hint


def test_a_timeline_around_an_unknown_turn_is_not_found(door: Door) -> None:
    ten_days(door)
    args = {"conversation": CONVERSATION, "view": "host_ui", "anchor": {"turn": "t99"}}
    error = door.refused("not_found", "transcript.timeline", args)
    assert "t99" in error.message


def test_replay_comes_in_pages_that_join_without_a_seam(door: Door) -> None:
    ten_days(door)
    seen: list[int] = []
    more: dict[str, str] = {}
    while True:
        page = replay(door, limit=4, **more)
        assert len(page["turns"]) <= 4
        assert page["has_more"] is (page["next_cursor"] is not None)
        seen += [each["sequence"] for each in page["turns"]]
        if not page["has_more"]:
            break
        more = {"cursor": page["next_cursor"]}
    assert seen == list(range(1, 11))
    assert len(replay(door, limit=10)["turns"]) == 10
    assert replay(door, limit=10)["has_more"] is False


def test_a_page_limit_over_the_budget_is_clipped_and_says_so(door: Door) -> None:
    ten_days(door)
    most = door.budgets.transcript_page_turns
    assert replay(door, limit=most)["profile_budget_applied"] is False
    clipped = replay(door, limit=most + 1)
    assert clipped["profile_budget_applied"] is True
    assert len(clipped["turns"]) == 10


def conversations(door: Door, **args: Any) -> list[str]:
    return [each["conversation_id"] for each in door.call("transcript.conversations", args)["conversations"]]


def several(door: Door) -> None:
    """Four conversations of one turn each, begun in this order, in May, and one in another channel."""
    for number, name in enumerate(("alpha", "beta", "alphabet", "gamma"), 1):
        where = {"channel_id": "mail" if name == "gamma" else "local", "conversation_id": name}
        said = message(f"m{number}", f"about {name}", actor={"speaker": f"Speaker {number}"})
        door.prepare("transcript.commit", talk(turn("t1", said, at=day(number)), conversation=where))


def test_conversations_are_listed_the_most_recently_begun_first(door: Door) -> None:
    assert conversations(door) == []
    several(door)
    report = door.call("transcript.conversations", {})
    assert report["conversations"][0] == {
        "channel_id": "mail", "conversation_id": "gamma", "turns": 1, "first_at": day(4), "last_at": day(4),
        "speakers": ["Speaker 4"],
    }  # fmt: skip
    assert [each["conversation_id"] for each in report["conversations"]] == ["gamma", "alphabet", "beta", "alpha"]
    assert report["has_more"] is False


@pytest.mark.parametrize(
    ("args", "names"),
    [
        ({"query": "alpha"}, ["alphabet", "alpha"]),
        ({"query": "ALPHAB"}, ["alphabet"]),
        ({"query": "mail"}, ["gamma"]),
        ({"query": "%"}, []),
        ({"since": day(2), "until": day(3)}, ["alphabet", "beta"]),
        ({"since": "2024-05-03T12:00:00.000001Z"}, ["gamma"]),
        ({"until": day(1)}, ["alpha"]),
    ],
    ids=str,
)
def test_conversations_can_be_filtered(door: Door, args: dict[str, str], names: list[str]) -> None:
    several(door)
    assert conversations(door, **args) == names


def test_conversations_come_in_pages(door: Door) -> None:
    several(door)
    page = door.call("transcript.conversations", {"limit": 3})
    assert len(page["conversations"]) == 3 and page["has_more"] is True
    rest = door.call("transcript.conversations", {"limit": 3, "cursor": page["next_cursor"]})
    assert [each["conversation_id"] for each in rest["conversations"]] == ["alpha"]
    assert (rest["has_more"], rest["next_cursor"]) == (False, None)


def test_search_finds_messages_by_their_words_in_the_scope_asked(door: Door) -> None:
    several(door)
    report = door.call("transcript.search", {"query": "about", "view": "host_ui"})
    assert {hit["conversation"]["conversation_id"] for hit in report["hits"]} == {"alpha", "beta", "alphabet", "gamma"}
    scores = [hit["score"] for hit in report["hits"]]
    assert scores == sorted(scores, reverse=True)
    where = {"channel_id": "local", "conversation_id": "beta"}
    (hit,) = door.call("transcript.search", {"query": "about", "view": "host_ui", "conversation": where})["hits"]
    assert hit["ref"] == "evidence:local/beta/t1/m2"
    assert (hit["excerpt"], hit["at"], hit["turn_id"], hit["message_id"]) == ("about beta", day(2), "t1", "m2")
    timed = {"query": "about", "view": "host_ui", "since": day(3), "until": day(3)}
    assert [hit["excerpt"] for hit in door.call("transcript.search", timed)["hits"]] == ["about alphabet"]
    assert all("lexical" in hit["why"] for hit in report["hits"])
    nowhere = {"channel_id": "local", "conversation_id": "nowhere"}
    assert door.call("transcript.search", {"query": "about", "view": "host_ui", "conversation": nowhere})["hits"] == []


def test_search_answers_what_holds_the_words_and_neighbours_when_asked(door: Door) -> None:
    turns = [
        {"turn_id": name, "at": day(1), "messages": [{"message_id": name, "role": "user", "content": text}]}
        for name, text in (("k", "the spare key hangs here"), ("w", "it rains today"))
    ]
    door.call("transcript.commit", {"conversation": {"conversation_id": "c"}, "turns": turns})
    asked = {"query": "spare key", "view": "host_ui"}
    assert [hit["turn_id"] for hit in door.call("transcript.search", asked)["hits"]] == ["k"]
    found = door.call("transcript.search", {**asked, "neighbours": True})["hits"]
    assert [(hit["turn_id"], "lexical" in hit["why"]) for hit in found] == [("k", True), ("w", False)]


@pytest.mark.parametrize("query", [" ", "\n\t", "\u00a0\u3000"])
def test_a_blank_query_is_invalid(door: Door, query: str) -> None:
    for operation, args in (("memory.recall", {}), ("transcript.search", {"view": "host_ui"})):
        error = door.refused("invalid_request", operation, {"query": query, **args})
        assert error.details["path"] == "$.args.query" and "blank" in error.message
    assert door.call("memory.project", {"user_query": query})["lifecycle"]
