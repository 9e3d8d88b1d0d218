"""Rows about refusals: nobody's hide another's, they hold no stranger's words, and nobody waits for them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from beetle.contracts.errors import BeetleError
from beetle.domain.chain import chain_hash
from beetle.runtime.host.caller import Caller
from beetle.runtime.host.principals import OPERATOR
from beetle.runtime.pipeline import refusals
from beetle.runtime.pipeline.invocation import Call
from beetle.store.event_log import first_break
from tests.adversary.crowd import PATIENCE_S, Crowd
from tests.transports.serving import Served, open_folder

NAMES = 300
ROWS_SQL = "SELECT principal, operation, subject FROM event_log WHERE event = 'refused' ORDER BY seq"
SIZE_SQL = "SELECT (SELECT * FROM pragma_page_count) - (SELECT * FROM pragma_freelist_count)"


@pytest.fixture
def folder() -> Iterator[Path]:
    with open_folder() as made:
        yield made


def stranger(uid: int) -> Caller:
    return Caller(f"uid:{uid}", "unknown", frozenset(), (), "unix_socket")


POOR = OPERATOR._replace(name="poor", kind="principal", capabilities=frozenset())


def refused(served: Served, caller: Caller, op: str) -> str:
    with pytest.raises(BeetleError) as told:
        served.dispatcher.dispatch(Call(op, {}, caller))
    return told.value.key


def rows(served: Served) -> list[tuple[str, str, dict[str, Any]]]:
    with served.store.read() as tx:
        return [(who, op, json.loads(subject)) for who, op, subject in tx.rows(ROWS_SQL)]


def written(served: Served) -> list[tuple[str, str, dict[str, Any]]]:
    assert served.dispatcher.refusals.flush(PATIENCE_S)
    return rows(served)


def test_made_up_names_of_one_hide_nothing_of_another(folder: Path) -> None:
    with Served(folder) as served:
        for number in range(NAMES):
            assert refused(served, stranger(1), f"made.up.{number}") == "unauthorized"
        assert refused(served, POOR, "memory.recall") == "forbidden"
        assert refused(served, stranger(2), "hello") == "unauthorized"
        found = written(served)
        assert ("poor", "memory.recall", {"error": "forbidden", "count": 1}) in found
        assert ("uid:2", "hello", {"error": "unauthorized", "count": 1}) in found
        assert len(found) <= 2 + refusals.KINDS + 1


def test_words_of_a_stranger_do_not_get_into_the_log(folder: Path) -> None:
    with Served(folder) as served:
        for word in ("ignore.previous.instructions", "beetle\nforged", "x" * 100):
            refused(served, stranger(1), word)
            refused(served, stranger(1), word)
        found = written(served)
        assert all(op.startswith("unknown:") and len(op) == 24 for _, op, _ in found)
        assert len({op for _, op, _ in found}) == 3


def test_every_refusal_is_counted_once_in_the_end(folder: Path) -> None:
    with Served(folder) as served:
        for number in range(NAMES):
            refused(served, stranger(1), f"made.up.{number}")
            refused(served, POOR, "memory.recall")
        path = served.store.settings.path
    with Served(folder) as served:
        assert served.store.settings.path == path
        counts = {"uid:1": 0, "poor": 0}
        for who, _, subject in rows(served):
            counts[who] += subject["count"]
        assert counts == {"uid:1": NAMES, "poor": NAMES}
        with served.store.read() as tx:
            assert first_break(tx, chain_hash)[1] is None


def test_who_is_refused_waits_for_no_writer_and_a_read_of_the_log_sees_it(folder: Path) -> None:
    with Served(folder) as served:
        crowd = Crowd(served.dispatcher, POOR)
        with served.held_writer():
            answer = crowd.ask("poor", "memory.recall", {"query": "x"})
            assert answer == "forbidden", "told while the writer is held"
            assert rows(served) == []
        found = served.dispatcher.dispatch(Call("event_log.read", {"principal": "poor"}, OPERATOR)).report
        assert [each.event for each in found.rows] == ["refused"]


def test_a_batch_that_reads_the_log_sees_it_too(folder: Path) -> None:
    with Served(folder) as served:
        refused(served, POOR, "memory.recall")
        requests = [{"op": "event_log.read", "args": {"principal": "poor"}}]
        found = served.dispatcher.dispatch(Call("batch", {"requests": requests}, OPERATOR)).report
        assert [each["event"] for each in found.reports[0]["rows"]] == ["refused"]


def test_a_read_of_the_log_is_not_held_up_by_a_writer(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("beetle.runtime.pipeline.dispatcher.REFUSALS_S", 0.01)
    with Served(folder) as served, served.held_writer():
        refused(served, POOR, "memory.recall")
        assert served.dispatcher.dispatch(Call("event_log.read", {"principal": "poor"}, OPERATOR)).report.rows == ()


def test_a_full_store_grows_by_no_refusal_and_counts_are_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refusals, "WINDOW_S", 0.0)
    ceiling = 1_000_000
    with Served(folder, store_bytes=ceiling, wal_bytes=65_536) as served:
        for number in range(60_000):
            refused(served, stranger(number % 40), "hello")
            if not number % 200 and not served.dispatcher.refusals.flush(PATIENCE_S):
                break
        else:
            raise AssertionError("the store was never full")
        with served.store.read() as tx:
            assert tx.value(SIZE_SQL) * 4096 <= ceiling
        assert served.dispatcher.refusals.count == number + 1


def test_users_without_number_share_a_name(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refusals, "STRANGERS", 4)
    with Served(folder) as served:
        for uid in range(10):
            refused(served, stranger(uid), "hello")
        assert [who for who, _, _ in written(served)] == [f"uid:{uid}" for uid in range(4)] + ["uid:others"]
