"""Reading the event log: whose rows, in pages without gaps, and whether the chain holds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beetle.contracts.common import WireScope
from beetle.contracts.errors import BeetleError, InvalidRequest
from beetle.contracts.event_log import EventLogReadReport, EventRow
from beetle.open import Opened, open_store
from beetle.runtime.areas import event_log
from beetle.runtime.host import signed_text
from beetle.runtime.host.caller import Caller
from beetle.runtime.host.principals import OPERATOR
from beetle.runtime.host.signed_text import HEAD
from beetle.runtime.pipeline.dispatcher import Call
from beetle.store.event_log import Event

PROFILE = "profile-server-linux-dev-full"
SPACES = ("space:ada", "space:bob", None)
READER = Caller("reader", "principal", frozenset({"event_log"}), ("host_ui",), "unix_socket", owner_id="ada")


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    made = open_store(str(tmp_path / "b.db"), PROFILE)
    yield made
    made.store.close()


def note(opened: Opened, *spaces: str | None, topic: str = "skill") -> None:
    """One row for each of these spaces, in one transaction."""

    def write(tx: Any) -> None:
        for number, space in enumerate(spaces):
            tx.log(Event(topic, "noted", "skill.edit", "ada", space, {"number": number}))

    opened.store.write(write, grows=False)


def read(opened: Opened, caller: Caller = OPERATOR, owner: str = "ada", **args: Any) -> EventLogReadReport:
    call = Call("event_log.read", args, caller, WireScope(owner_id=owner))
    report = opened.dispatcher.dispatch(call).report
    assert isinstance(report, EventLogReadReport)
    return report


def pages(opened: Opened, caller: Caller = OPERATOR, **args: Any) -> Iterator[EventLogReadReport]:
    cursor: dict[str, Any] = {}
    while True:
        page = read(opened, caller, **args, **cursor)
        yield page
        if not page.has_more:
            assert page.next_cursor is None
            return
        cursor = {"cursor": page.next_cursor}


def seqs(rows: Any) -> list[int]:
    return [row.seq for row in rows]


def test_a_space_s_rows_are_its_own_and_the_daemon_s_are_an_operator_s(opened: Opened) -> None:
    note(opened, "space:ada", "space:bob", None, "space:ada")
    assert seqs(read(opened).rows) == [1, 3, 4]
    assert [row.daemon for row in read(opened).rows] == [False, True, False]
    assert seqs(read(opened, READER).rows) == [1, 2], "it counts what it may see"
    assert seqs(read(opened, owner="bob").rows) == [2, 3]
    assert seqs(read(opened, owner="nobody").rows) == [3]
    assert read(opened, READER).head == 2


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("limit", [1, 2, 3, 7])
@pytest.mark.parametrize("scanned", [1, 2, 5, 100_000])
def test_pages_leave_no_row_out_and_show_none_twice(
    opened: Opened, monkeypatch: pytest.MonkeyPatch, backwards: bool, limit: int, scanned: int
) -> None:
    monkeypatch.setattr(event_log, "SCANNED_ROWS", scanned)
    note(opened, *("space:ada" if n % 3 == 0 else "space:bob" for n in range(20)))
    found: list[int] = []
    looked = 0
    for page in pages(opened, READER, limit=limit, newest_first=backwards):
        assert len(page.rows) <= limit and page.scanned <= scanned
        found += seqs(page.rows)
        looked += page.scanned
    assert found == sorted(range(1, 8), reverse=backwards)
    assert looked == 7


def test_rows_that_come_while_pages_are_turned_are_met_once_ahead_and_not_at_all_behind(opened: Opened) -> None:
    note(opened, *["space:ada"] * 4)
    ahead: list[int] = []
    for page in pages(opened, limit=2):
        ahead += seqs(page.rows)
        if len(ahead) < 8:
            note(opened, "space:ada")
    assert ahead == sorted(set(ahead)) and ahead[:4] == [1, 2, 3, 4]
    end = read(opened).head
    back: list[int] = []
    for page in pages(opened, limit=2, newest_first=True):
        back += seqs(page.rows)
        note(opened, "space:ada")
    assert back == list(range(end, 0, -1))


def test_following_from_the_head_misses_nothing(opened: Opened) -> None:
    note(opened, "space:ada", "space:bob")
    head = read(opened).head
    assert read(opened, after=head).rows == ()
    note(opened, "space:bob", "space:ada")
    behind = read(opened, after=head)
    assert (seqs(behind.rows), behind.head) == ([4], 4)


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(st.sampled_from(SPACES), max_size=30),
    after=st.integers(0, 35), before=st.integers(0, 35), limit=st.integers(1, 10), scanned=st.integers(1, 12),
    backwards=st.booleans(), operator=st.booleans(),
)  # fmt: skip
def test_any_pages_are_the_rows_between_the_two_numbers(
    rows: list[str | None], after: int, before: int, limit: int, scanned: int, backwards: bool, operator: bool
) -> None:
    opened = open_store("unused", PROFILE, "in-memory")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(event_log, "SCANNED_ROWS", scanned)
        note(opened, *rows)
        caller = OPERATOR if operator else READER
        more = {"after": after, "before": before, "limit": limit, "newest_first": backwards}
        found = [seq for page in pages(opened, caller, **more) for seq in seqs(page.rows)]
    mine = rows if operator else [space for space in rows if space == "space:ada"]
    wanted = [seq for seq, space in enumerate(mine, 1) if space != "space:bob" and after < seq < before]
    assert found == (wanted[::-1] if backwards else wanted)
    opened.store.close()


def test_rows_are_chosen_by_topic_operation_principal_and_time(opened: Opened) -> None:
    note(opened, "space:ada")
    note(opened, "space:ada", topic="memory")
    note(opened, None, topic="device")
    rows = read(opened).rows
    assert seqs(read(opened, topics=("memory", "device")).rows) == [2, 3]
    assert read(opened, topics=("Memory",)).rows == ()
    assert seqs(read(opened, operation="skill.edit", principal="ada").rows) == [1, 2, 3]
    assert read(opened, principal="bob").rows == () and read(opened, operation="skill").rows == ()
    assert seqs(read(opened, since=rows[1].at).rows) == [row.seq for row in rows if row.at >= rows[1].at]
    assert seqs(read(opened, until=rows[1].at).rows) == [row.seq for row in rows if row.at <= rows[1].at]
    assert read(opened, until="1999-01-01T00:00:00Z").rows == ()


@pytest.mark.parametrize(
    "change", ["subject = '{}'", "principal = 'eve'", "at = at + 1", "hash = zeroblob(32)", "subject = 'no JSON'",
               "space = 'space:ada', topic = 'x'"],
)  # fmt: skip
def test_a_row_that_was_changed_is_found(opened: Opened, change: str) -> None:
    note(opened, *["space:ada"] * 5)
    assert read(opened).verified
    opened.store.write(lambda tx: tx.run(f"UPDATE event_log SET {change} WHERE seq = 3"), grows=False)
    page = read(opened)
    assert not page.verified and 3 in page.broken and set(page.broken) <= {3, 4}
    assert read(opened, after=4).verified, "rows that follow from those before them do"


def test_a_row_that_was_taken_out_is_found_at_the_next(opened: Opened) -> None:
    note(opened, *["space:ada"] * 5)
    opened.store.write(lambda tx: tx.run("DELETE FROM event_log WHERE seq = 3"), grows=False)
    page = read(opened)
    assert (seqs(page.rows), page.broken) == ([1, 2, 4, 5], (4,))


def test_the_first_row_follows_from_nothing_before_it(opened: Opened) -> None:
    note(opened, "space:ada")
    assert read(opened).verified
    opened.store.write(lambda tx: tx.run("UPDATE event_log SET event = 'other' WHERE seq = 1"), grows=False)
    assert read(opened).broken == (1,)


def test_a_cursor_belongs_to_its_filters_its_direction_and_its_owner(opened: Opened) -> None:
    note(opened, *["space:ada"] * 5)
    cursor = read(opened, limit=2).next_cursor
    for more in ({"topics": ("skill",)}, {"newest_first": True}, {"after": 1}, {"principal": "ada"}):
        with pytest.raises(InvalidRequest):
            read(opened, limit=2, cursor=cursor, **more)
    with pytest.raises(InvalidRequest):
        read(opened, owner="bob", cursor=cursor)
    assert seqs(read(opened, limit=3, cursor=cursor).rows) == [3, 4, 5]


def test_an_operator_s_cursor_shows_a_reader_no_row_of_the_daemon_s(opened: Opened) -> None:
    note(opened, *[None, "space:ada"] * 3)
    cursor = read(opened, limit=1).next_cursor
    with pytest.raises(BeetleError):
        read(opened, READER, cursor=cursor)


def test_what_is_shown_is_what_the_log_holds(opened: Opened) -> None:
    note(opened, "space:ada")
    (row,) = read(opened).rows
    assert isinstance(row, EventRow)
    assert (row.topic, row.event, row.operation, row.principal) == ("skill", "noted", "skill.edit", "ada")
    assert row.subject == {"number": 0}
    assert row.hash == opened.store.head.hash.hex()


def test_the_last_event_is_signed_when_the_store_closes(opened: Opened) -> None:
    note(opened, "space:ada")
    last = opened.store.head
    opened.store.close()
    connection = apsw.Connection(opened.store.settings.path, flags=apsw.SQLITE_OPEN_READONLY)
    try:
        ((signed,),) = connection.execute("SELECT signed FROM log_head")
    finally:
        connection.close(True)
    assert signed_text.states(signed, HEAD, rows=last.seq, digest=last.hash.hex())
