"""Every operation of the table that pages: its cursor opens its own request and no other."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from beetle import MemoryRuntime
from beetle.contracts.common import WireScope
from beetle.contracts.errors import InvalidRequest
from beetle.contracts.operations import OPERATIONS
from tests.store.conftest import CONVERSATION, commit, open_runtime, turn, write_skill

OTHER = {"channel_id": "local", "conversation_id": "c2"}
HERE = WireScope(owner_id="owner-a", channel="local", chat_id="chat")
ELSEWHERE = {"owner_id": "owner-b", "agent_id": "agent-b", "channel": "mail", "chat_id": "c9", "conversation_id": "c2"}
"""Another value for each part of a scope. The agent is left out where the caller is bound to one."""


class Listed(NamedTuple):
    """A request that has more than one page, and for each of its other fields a value that it does not have there."""

    args: dict[str, Any]
    others: dict[str, Any]


LISTS: dict[str, Listed] = {
    "skill.list": Listed({"query": "skill"}, {"query": "way", "include_disabled": False, "include_retired": True}),
    "long_term.list": Listed(
        {"view": "host_ui"}, {"query": "fact", "kind": "fact", "state": "all", "view": "raw_owner"}
    ),
    "private.list": Listed({}, {"plane": "private_garden"}),
    "transcript.replay": Listed(
        {"conversation": CONVERSATION, "view": "host_ui"}, {"conversation": OTHER, "view": "model_context"}
    ),
    "transcript.export": Listed(
        {"conversation": CONVERSATION, "view": "export"}, {"conversation": OTHER, "include_private": True}
    ),
    "transcript.conversations": Listed(
        {}, {"query": "c", "since": "1999-01-01T00:00:00Z", "until": "2999-01-01T00:00:00Z"}
    ),
    "transcript.repair": Listed({}, {"conversation": CONVERSATION}),
}
ONE_VALUE = {("transcript.export", "view")}
"""Fields that can have one value only."""
PAGED = [row.name for row in OPERATIONS if any("cursor" in kind.__struct_fields__ for kind in row.kinds)]


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MemoryRuntime]:
    """At least three of everything that is listed, for two owners."""
    with open_runtime(tmp_path_factory.mktemp("cursors") / "store.db") as opened:
        for owner in ("owner-a", "owner-b"):
            fill(MemoryRuntime(_scoped(opened, owner)))
        yield opened


def _scoped(opened: MemoryRuntime, owner: str) -> Any:
    mine = opened._opened
    return type(mine)(mine._opened, mine._caller, WireScope(owner_id=owner, channel="local", chat_id="chat"))


def fill(memory: MemoryRuntime) -> None:
    for where in (CONVERSATION, OTHER, {**OTHER, "conversation_id": "c3"}):
        commit(memory, *(turn(f"t{each}", f"number {each}") for each in range(5)), conversation=where)
    for each in range(3):
        citations = [f"evidence:local/c1/gone-{each}", f"evidence:local/c2/gone-{each}"]
        write_skill(memory, f"skill-{each}", "the way of it", citations=citations)
    candidates = [
        {"candidate_id": f"{target}-{each}", "authority": "user_asserted", "target": target, "privacy": privacy,
         "content": f"fact {each}", "topic": f"topic {each}"}
        for each in range(3)
        for target, privacy in (("long_term", "shared_with_subject"), ("private_garden", "subject_private"))
    ]  # fmt: skip
    memory.write(kind="candidates", candidates=candidates)


def test_every_list_of_the_table_is_among_the_cases() -> None:
    assert sorted(LISTS) == sorted(PAGED)


@pytest.mark.parametrize("operation", PAGED)
def test_a_case_has_another_value_for_every_field_of_its_request(operation: str) -> None:
    (row,) = (each for each in OPERATIONS if each.name == operation)
    (kind,) = row.kinds
    fields = set(kind.__struct_fields__) - {"limit", "cursor"} - {name for op, name in ONE_VALUE if op == operation}
    assert fields == set(LISTS[operation].others)


def first(memory: MemoryRuntime, operation: str) -> str:
    report: Any = memory.call(operation, {**LISTS[operation].args, "limit": 1}, scope=HERE)
    assert report.has_more and report.next_cursor
    return report.next_cursor


def refused(memory: MemoryRuntime, operation: str, cursor: str, scope: WireScope = HERE, **changed: Any) -> None:
    with pytest.raises(InvalidRequest) as caught:
        memory.call(operation, {**LISTS[operation].args, "limit": 1, **changed, "cursor": cursor}, scope=scope)
    assert "cursor" in caught.value.message and caught.value.hint
    assert caught.value.details["path"] == "$.args.cursor"


@pytest.mark.parametrize("operation", PAGED)
def test_a_cursor_opens_its_own_request_with_any_limit(memory: MemoryRuntime, operation: str) -> None:
    cursor = first(memory, operation)
    for limit in (1, 2, 50):
        args = {**LISTS[operation].args, "limit": limit, "cursor": cursor}
        again: Any = memory.call(operation, args, scope=HERE)
        assert again.next_cursor != cursor


@pytest.mark.parametrize("operation", PAGED)
def test_a_cursor_opens_no_other_operation(memory: MemoryRuntime, operation: str) -> None:
    cursor = first(memory, operation)
    for other in PAGED:
        if other != operation:
            refused(memory, other, cursor)


@pytest.mark.parametrize("operation", PAGED)
def test_a_cursor_keeps_to_every_filter_and_to_its_view(memory: MemoryRuntime, operation: str) -> None:
    cursor = first(memory, operation)
    for field, value in LISTS[operation].others.items():
        refused(memory, operation, cursor, **{field: value})


@pytest.mark.parametrize("part", [part for part in ELSEWHERE if part != "agent_id"])
@pytest.mark.parametrize("operation", PAGED)
def test_a_cursor_keeps_to_every_part_of_its_scope(memory: MemoryRuntime, operation: str, part: str) -> None:
    cursor = first(memory, operation)
    named = {"owner_id": "owner-a", "channel": "local", "chat_id": "chat", part: ELSEWHERE[part]}
    refused(memory, operation, cursor, WireScope(**named))


@pytest.mark.parametrize("operation", PAGED)
def test_a_cursor_of_another_agent_is_foreign(memory: MemoryRuntime, operation: str) -> None:
    mine = memory._opened
    free = mine._caller._replace(agent_id=None)
    unbound = MemoryRuntime(type(mine)(mine._opened, free, HERE))
    cursor = first(unbound, operation)
    refused(unbound, operation, cursor, WireScope(owner_id="owner-a", agent_id="agent-b", channel="local",
                                                  chat_id="chat"))  # fmt: skip


@pytest.mark.parametrize("operation", PAGED)
def test_an_altered_cursor_is_refused_at_every_byte(memory: MemoryRuntime, operation: str) -> None:
    cursor = first(memory, operation)
    data = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
    for place in range(len(data)):
        altered = bytearray(data)
        altered[place] ^= 0x40
        refused(memory, operation, base64.urlsafe_b64encode(altered).decode().rstrip("="))
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    for letter in letters:
        if letter != cursor[-1]:
            refused(memory, operation, cursor[:-1] + letter)
    for text in (cursor[:-4], cursor + "AAAA", cursor[:-1], "A", "%", "é", "=" * 8, "0" * 1024):
        refused(memory, operation, text)


@pytest.mark.parametrize("operation", PAGED)
def test_a_cursor_of_another_store_is_foreign(
    memory: MemoryRuntime, operation: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with open_runtime(tmp_path_factory.mktemp("other") / "store.db") as other:
        fill(other)
        refused(memory, operation, first(other, operation))
