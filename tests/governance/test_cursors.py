"""Every operation of the table that pages: its cursor opens its own request and no other."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from beetle import MemoryRuntime
from beetle.contracts.codec import to_plain
from beetle.contracts.common import WireScope
from beetle.contracts.errors import InvalidRequest
from beetle.contracts.operations import BY_NAME
from tests.governance.paged import (
    AT_LEAST,
    ELSEWHERE,
    HERE,
    LISTS,
    ONE_VALUE,
    OWNER,
    PAGED,
    SCOPE,
    SEEN_AS_ITS_CALLER_SEES,
    asked_by,
    open_filled,
    store_of,
)
from tests.store.conftest import commit, turn


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MemoryRuntime]:
    with open_filled(tmp_path_factory.mktemp("cursors")) as opened:
        yield opened


@pytest.fixture(scope="module")
def another(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MemoryRuntime]:
    """A store of its own that holds the same."""
    with open_filled(tmp_path_factory.mktemp("another")) as opened:
        yield opened


def test_every_list_of_the_table_is_among_the_cases() -> None:
    assert sorted(LISTS) == sorted(PAGED)


@pytest.mark.parametrize("operation", PAGED)
def test_a_case_has_another_value_for_every_field_of_its_request(operation: str) -> None:
    (kind,) = BY_NAME[operation].kinds
    fields = set(kind.__struct_fields__) - {"limit", "cursor"} - {name for op, name in ONE_VALUE if op == operation}
    case = LISTS[operation]
    assert fields == set(case.others)
    there = {field.name: field.default for field in msgspec.structs.fields(kind)} | case.args
    assert all(there[name] != value for name, value in case.others.items())


def page(memory: MemoryRuntime, operation: str, scope: WireScope = HERE, /, **more: Any) -> Any:
    return memory.call(operation, {**LISTS[operation].args, **more}, scope=scope)


def rows_of(operation: str, report: Any) -> list[Any]:
    """What a page lists, as builtins."""
    return list(to_plain(getattr(report, LISTS[operation].rows)))


def first(memory: MemoryRuntime, operation: str) -> str:
    """The cursor of the page behind the first one."""
    report = page(memory, operation, limit=1)
    assert report.has_more and report.next_cursor
    return report.next_cursor


def walked(memory: MemoryRuntime, operation: str, limit: int, scope: WireScope = HERE) -> list[Any]:
    """All rows of a list as builtins, so many on a page; only the last page may have fewer."""
    rows: list[Any] = []
    cursor: dict[str, str] = {}
    while True:
        report = page(memory, operation, scope, limit=limit, **cursor)
        here = rows_of(operation, report)
        rows += here
        if not report.has_more:
            assert report.next_cursor is None and len(here) <= limit
            return rows
        assert len(here) == limit and report.next_cursor not in cursor.values()
        cursor = {"cursor": report.next_cursor}


def refused(memory: MemoryRuntime, operation: str, cursor: str, scope: WireScope = HERE, /, **changed: Any) -> None:
    with pytest.raises(InvalidRequest) as caught:
        page(memory, operation, scope, **{"limit": 1, **changed, "cursor": cursor})
    assert "cursor" in caught.value.message and caught.value.hint
    assert caught.value.details["path"] == "$.args.cursor"


@pytest.mark.parametrize("operation", PAGED)
def test_the_pages_of_a_list_are_the_whole_of_it_and_no_row_comes_twice(memory: MemoryRuntime, operation: str) -> None:
    whole = walked(memory, operation, 200)
    assert len(whole) >= AT_LEAST and all(whole.count(row) == 1 for row in whole)
    for limit in (1, 2, len(whole) - 1, len(whole)):
        assert walked(memory, operation, limit) == whole


@pytest.mark.parametrize("operation", PAGED)
def test_a_cursor_opens_its_own_request_with_any_limit(memory: MemoryRuntime, operation: str) -> None:
    cursor = first(memory, operation)
    rest = walked(memory, operation, 200)[1:]
    for limit in (1, 2, 50):
        again = page(memory, operation, limit=limit, cursor=cursor)
        assert rows_of(operation, again) == rest[:limit]
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
        assert rows_of(operation, page(memory, operation, **{field: value})), "it is a request like any other"
        refused(memory, operation, cursor, **{field: value})


@pytest.mark.parametrize("view", OWNER.views[1:-1])
@pytest.mark.parametrize("operation", SEEN_AS_ITS_CALLER_SEES)
def test_a_cursor_keeps_to_the_view_through_which_its_caller_sees(
    memory: MemoryRuntime, operation: str, view: Any
) -> None:
    cursor = first(memory, operation)
    other = asked_by(store_of(memory), OWNER._replace(views=(view,)))
    assert page(other, operation, limit=1).has_more
    refused(other, operation, cursor)


@pytest.mark.parametrize("part", ELSEWHERE)
@pytest.mark.parametrize("operation", PAGED)
def test_a_cursor_keeps_to_every_part_of_its_scope(memory: MemoryRuntime, operation: str, part: str) -> None:
    cursor = first(memory, operation)
    elsewhere = WireScope(**{**SCOPE, part: ELSEWHERE[part]})
    assert page(memory, operation, elsewhere, limit=1).has_more
    refused(memory, operation, cursor, elsewhere)


def test_a_cursor_of_a_chat_is_worth_nothing_once_the_chat_stands_for_another_conversation(
    another: MemoryRuntime,
) -> None:
    """Its place is a number of the conversation before."""
    cursor = first(another, "memory.replay")
    onwards = {"channel_id": "local", "conversation_id": "c4"}
    commit(another, turn("t1", "here"), turn("t2", "and here"), conversation=onwards)
    refused(another, "memory.replay", cursor)
    report = page(another, "memory.replay", limit=1)
    assert report.has_more and report.conversation.conversation_id == "c4"


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
def test_a_cursor_of_another_store_is_foreign(memory: MemoryRuntime, another: MemoryRuntime, operation: str) -> None:
    refused(memory, operation, first(another, operation))
