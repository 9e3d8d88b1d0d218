"""A cursor belongs to one request: its operation, scope, filters and view; paging is steady while others write."""

from __future__ import annotations

import base64
from typing import Any

from tests.building import CONVERSATION, replay, skill, talk, turn, write
from tests.conformance.doors import Door, Plain

OTHER = {"channel_id": "local", "conversation_id": "other"}
REPLAY = {"conversation": CONVERSATION, "view": "host_ui", "limit": 2}


def written(door: Door, scope: dict[str, str] | None = None) -> None:
    turns = [turn(f"t{n}", f"number {n}") for n in range(5)]
    for where in (CONVERSATION, OTHER):
        door.prepare("transcript.commit", talk(*turns, conversation=where), scope)
    door.prepare("memory.write", write(*(skill(f"skill-{n}") for n in range(4))), scope)


def test_a_cursor_of_another_request_is_refused(door: Door) -> None:
    written(door)
    written(door, {"owner_id": f"{door.owner}-x"})
    cursor = replay(door, limit=2)["next_cursor"]
    foreign: list[tuple[str, Plain, dict[str, str] | None]] = [
        ("transcript.replay", {**REPLAY, "view": "model_context"}, None),
        ("transcript.replay", {**REPLAY, "conversation": OTHER}, None),
        ("transcript.replay", REPLAY, {"owner_id": f"{door.owner}-x"}),
        ("transcript.conversations", {"limit": 1}, None),
        ("skill.list", {"limit": 2}, None),
    ]
    for op, args, scope in foreign:
        error = door.refused("invalid_request", op, {**args, "cursor": cursor}, scope)
        assert "cursor" in error.message
        assert error.hint
    assert door.call("transcript.replay", {**REPLAY, "cursor": cursor})["turns"]


def test_a_cursor_keeps_to_its_filters(door: Door) -> None:
    written(door)
    cursor = door.call("skill.list", {"query": "skill", "limit": 1})["next_cursor"]
    door.refused("invalid_request", "skill.list", {"query": "other", "limit": 1, "cursor": cursor})
    door.refused("invalid_request", "skill.list", {"query": "skill", "include_disabled": False, "cursor": cursor})
    assert door.call("skill.list", {"query": "skill", "limit": 3, "cursor": cursor})["runtime_skills"]
    cursor = door.call("transcript.conversations", {"query": "t", "limit": 1})["next_cursor"]
    door.refused("invalid_request", "transcript.conversations", {"limit": 1, "cursor": cursor})


def test_a_tampered_cursor_is_refused(door: Door) -> None:
    written(door)
    cursor = replay(door, limit=2)["next_cursor"]
    data = bytearray(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    places = range(len(data)) if door.name == "in_process" else (0, len(data) - 1)
    for place in places:
        altered = bytearray(data)
        altered[place] ^= 1
        forged = base64.urlsafe_b64encode(altered).decode().rstrip("=")
        door.refused("invalid_request", "transcript.replay", {**REPLAY, "cursor": forged})
    garbled = [cursor[:-4], cursor + "AAAA", "%%%", "é", "A", "=", "0" * 1024]
    for text in garbled:
        door.refused("invalid_request", "transcript.replay", {**REPLAY, "cursor": text})


def pages(door: Door, op: str, args: Plain, listed: str, between: Any) -> list[Plain]:
    """Every row of a list, with something written between any two pages."""
    rows: list[Plain] = []
    cursor: dict[str, str] = {}
    page = 0
    while True:
        report = door.call(op, {**args, **cursor})
        rows += report[listed]
        if not report["has_more"]:
            return rows
        cursor = {"cursor": report["next_cursor"]}
        between(page)
        page += 1


def test_replaying_while_others_write_has_no_gap_and_no_duplicate(door: Door) -> None:
    written(door)

    def between(page: int) -> None:
        if page < 3:
            door.prepare("transcript.commit", talk(turn(f"late-{page}", "late", at="2001-01-01T00:00:00Z")))

    rows = pages(door, "transcript.replay", REPLAY, "turns", between)
    assert [each["sequence"] for each in rows] == list(range(1, 9))
    assert [each["turn_id"] for each in rows] == [*(f"t{n}" for n in range(5)), "late-0", "late-1", "late-2"]


def test_listing_skills_while_others_write_has_no_gap_and_no_duplicate(door: Door) -> None:
    written(door)

    def between(page: int) -> None:
        if page < 2:
            # One stands before the cursor and one behind every page so far.
            door.prepare("memory.write", write(skill(f"a-{page}"), skill(f"z-{page}")))
            door.prepare("skill.delete", {"name": f"skill-{page}"})

    rows = pages(door, "skill.list", {"limit": 1}, "runtime_skills", between)
    names = [each["name"].removeprefix("runtime_skill__") for each in rows]
    assert names == ["skill-0", "skill-1", "skill-2", "skill-3", "z-0", "z-1"]


def test_listing_conversations_while_others_begin_has_no_gap_and_no_duplicate(door: Door) -> None:
    for n in range(4):
        where = {"channel_id": "local", "conversation_id": f"c{n}"}
        door.prepare("transcript.commit", talk(turn("t", "x"), conversation=where))

    def between(page: int) -> None:
        fresh = {"channel_id": "local", "conversation_id": f"new-{page}"}
        door.prepare("transcript.commit", talk(turn("t", "y"), conversation=fresh))
        grown = {"channel_id": "local", "conversation_id": "c0"}
        door.prepare("transcript.commit", talk(turn(f"more-{page}", "y"), conversation=grown))

    rows = pages(door, "transcript.conversations", {"limit": 1}, "conversations", between)
    assert [each["conversation_id"] for each in rows] == ["c3", "c2", "c1", "c0"]
