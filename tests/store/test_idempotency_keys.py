"""Of idempotency keys as many are kept as the profile says, the newest ones; each is sealed in its own row."""

from __future__ import annotations

import re
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import apsw
import pytest

from beetle import MemoryRuntime
from beetle.calls import key_of
from beetle.contracts import codec
from beetle.contracts.errors import IntegrityViolation
from beetle.contracts.operations import OPERATIONS
from beetle.runtime.pipeline.first_reports import leaves_out
from beetle.store import idempotency, seal_checks
from beetle.store.engine import migrate
from beetle.store.engine.write_transaction import Sealing, WriteTransaction
from tests.store.conftest import assert_clean, open_runtime, store_of, turn
from tests.store.older import make_older

WAIT_S = 20.0
FIRST = idempotency.FirstReport(b"request", b"report")


def commit_as(memory: MemoryRuntime, key: str) -> Any:
    request = {"conversation": {"conversation_id": "c"}, "turns": [turn(key, "the lamp")]}
    return memory.call("transcript.commit", request, idempotency_key=key)


def by_another_program(path: str, *statements: str) -> None:
    connection = apsw.Connection(path)
    for sql in statements:
        connection.execute(sql)
    connection.close()


def named(memory: MemoryRuntime) -> list[tuple[str, str]]:
    return [(each.subject, each.problem) for each in memory.verify_store().findings]


@pytest.mark.parametrize("most", [1, 7, 80, 1000])
def test_at_most_so_many_are_kept_and_at_least_seven_eighths_of_them(path: str, most: int) -> None:
    def keep(tx: WriteTransaction) -> None:
        for number in range(1, 3 * most + 2):
            idempotency.keep(tx, "p", "s", str(number), FIRST, 0, most)
            held = tx.value("SELECT count(*) FROM idempotency")
            assert min(number, most * 7 // 8) <= held <= most
            assert idempotency.find(tx, "p", "s", str(number)) == (number, FIRST)
            assert idempotency.find(tx, "p", "s", str(number - most)) is None

    with open_runtime(path) as memory:
        store_of(memory).write(keep)
        assert_clean(memory)


def test_a_client_makes_keys_that_follow_each_other_and_none_twice() -> None:
    keys = [key_of("transcript.commit", None) or "" for _ in range(20_000)]
    assert len(set(keys)) == len(keys) and {len(each) for each in keys} == {32}
    times = [each[:12] for each in keys]
    assert times == sorted(times) and times[0] < times[-1]
    assert key_of("memory.recall", None) is None and key_of("memory.recall", "mine") == "mine"


CHANGES = ("report = x'80'", "request = x'80'", "at = at + 1", "principal = 'another'", "space = 'another'",
           "key = 'another'", "seal = zeroblob(16)", "seal = x'01'")  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_a_first_report_that_another_program_changed_is_named(path: str, change: str) -> None:
    with open_runtime(path) as memory:
        commit_as(memory, "one")
        commit_as(memory, "two")
        assert_clean(memory)
    by_another_program(path, f"UPDATE idempotency SET {change} WHERE key = 'one'")
    with open_runtime(path) as memory:
        assert named(memory) == [("idempotency row 1", seal_checks.CHANGED)]
        commit_as(memory, "three")
        memory.recover()
        assert named(memory) == [("idempotency row 1", seal_checks.CHANGED)]


@pytest.mark.parametrize("row", [-(2**63), 0, 12, 2**63 - 1])
def test_a_first_report_that_another_program_made_is_named(path: str, row: int) -> None:
    with open_runtime(path) as memory:
        commit_as(memory, "one")
    copied = "SELECT principal, space, 'made', request, report, at, NULL FROM idempotency"
    by_another_program(path, f"INSERT INTO idempotency SELECT {row}, * FROM ({copied})")
    with open_runtime(path) as memory:
        assert (f"idempotency row {row}", seal_checks.ADDED) in named(memory)


IN_ITS_PLACE = (
    "UPDATE idempotency SET report = (SELECT report FROM idempotency WHERE key = 'two') WHERE key = 'one'",
    "UPDATE idempotency SET request = x'80' WHERE key = 'one'",
    "UPDATE idempotency SET seal = NULL WHERE key = 'one'",
)


@pytest.mark.parametrize("harm", IN_ITS_PLACE)
def test_what_another_program_put_in_the_place_of_a_first_report_is_answered_to_nobody(path: str, harm: str) -> None:
    with open_runtime(path) as memory:
        first = commit_as(memory, "one")
        assert commit_as(memory, "one") == first
        other = commit_as(memory, "two")
    by_another_program(path, harm)
    with open_runtime(path) as memory:
        with pytest.raises(IntegrityViolation) as refused:
            commit_as(memory, "one")
        assert "first" in refused.value.message and "verify" in refused.value.hint
        assert commit_as(memory, "two") == other


def test_first_reports_of_an_older_schema_are_sealed_as_they_are(path: str) -> None:
    with open_runtime(path) as memory:
        first = commit_as(memory, "one")
    make_older(path)
    with open_runtime(path) as memory:
        assert memory.open_report.migrations_applied == tuple(each.name for each in migrate.available()[22:])
        assert_clean(memory)
        assert commit_as(memory, "one") == first


def kept_with_its_texts(memory: MemoryRuntime, op: str, args: dict[str, Any], key: str) -> Any:
    """Ask with a key, whose report is then kept whole, as builds of a schema before 24 did."""
    report = memory.call(op, args, idempotency_key=key)

    def restate(tx: WriteTransaction) -> None:
        row = tx.row("SELECT principal, space, request FROM idempotency WHERE key = ?", key)
        assert row is not None
        idempotency.restate(tx, *row[:2], key, idempotency.FirstReport(row[2], codec.pack(report)))

    store_of(memory).write(restate)
    return report


def test_first_reports_with_what_was_said_go_with_an_update(path: str) -> None:
    chunk = {"content": "the quagga of Amsterdam", "conversation_id": "c"}
    with open_runtime(path) as memory:
        made = kept_with_its_texts(memory, "chunk.create", chunk, "chunk").chunk
        same = {"id": made.id, "content": chunk["content"]}
        kept_with_its_texts(memory, "chunk.update", same, "nothing changed")
        kept_with_its_texts(memory, "batch", {"requests": [{"op": "chunk.create", "args": chunk}]}, "batch")
        first = commit_as(memory, "one")
        deleting = {"id": made.id, "permanent": False}
        deleted = memory.call("chunk.delete", deleting, idempotency_key="deleted")
        token = memory.forget(query="quagga", dry_run=True).token
        assert memory.forget(query="quagga", token=token).erasure == "done"
    assert b"quagga" in Path(path).read_bytes()
    make_older(path)
    with open_runtime(path) as memory:
        with store_of(memory).read() as tx:
            assert {key for (key,) in tx.rows("SELECT key FROM idempotency")} == {"one", "deleted"}
        assert commit_as(memory, "one") == first
        assert memory.call("chunk.delete", deleting, idempotency_key="deleted") == deleted
        assert_clean(memory)
    assert b"quagga" not in Path(path).read_bytes()


def test_first_reports_of_operations_whose_reports_may_hold_what_was_said_go_with_an_update_and_no_others() -> None:
    (update,) = (each.sql for each in migrate.available() if each.name == "0024_first_reports")
    (listed,) = re.findall(r"AS TEXT\) IN \((.*?)\)", update, re.DOTALL)
    hold = {row.name for row in OPERATIONS if row.effect != "read" and leaves_out(row.report)}
    assert re.findall(r"'(.*?)'", listed) == sorted({"batch", *hold})
    assert max(len(each.name) for each in OPERATIONS) < 32, "a longer name has another byte before it"


def test_taking_seals_away_makes_no_first_report_good(path: str) -> None:
    with open_runtime(path) as memory:
        commit_as(memory, "one")
    by_another_program(path, "UPDATE idempotency SET at = 7", "DELETE FROM table_seal")
    with open_runtime(path) as memory:
        commit_as(memory, "two")
        assert ("idempotency row 1", seal_checks.CHANGED) in named(memory)


def test_a_key_is_answered_again_while_the_store_is_sealed_anew(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A staged call looks for its key before it writes."""
    archive = {"conversation": {"conversation_id": "c"}, "action": "archive", "turn_ids": ["one"], "reason": "done"}
    with open_runtime(path) as memory:
        commit_as(memory, "one")
        first = memory.call("transcript.lifecycle", archive, idempotency_key="archived")
    Path(f"{path}.identity").unlink()
    with open_runtime(path) as memory:
        store, judged = store_of(memory), threading.Event()
        verdicts, asked = list[bool](), list[Future[Any]]()
        seal_with, is_as_written = store.seal_with, idempotency.is_as_written

        def judge(*given: Any) -> bool:
            verdicts.append(is_as_written(*given))
            judged.set()
            return verdicts[-1]

        def asked_between(sealing: Sealing) -> None:
            seal_with(sealing)
            if not asked:
                asked.append(pool.submit(memory.call, "transcript.lifecycle", archive, idempotency_key="archived"))
                assert judged.wait(WAIT_S)

        with ThreadPoolExecutor(1) as pool:
            monkeypatch.setattr(idempotency, "is_as_written", judge)
            monkeypatch.setattr(store, "seal_with", asked_between)
            memory.renew_identity(token=memory.renew_identity(dry_run=True).token)
            assert asked[0].result(WAIT_S) == first
        assert verdicts == [False, True]
        assert_clean(memory)


def test_a_report_that_is_stated_again_is_sealed_again_unless_another_program_had_changed_it(path: str) -> None:
    def restated(tx: WriteTransaction) -> bytes:
        idempotency.restate(tx, "p", "s", "k", FIRST._replace(report=b"later"))
        idempotency.restate(tx, "p", "s", "k", idempotency.FirstReport(b"another request", b"not its own"))
        found = idempotency.find(tx, "p", "s", "k")
        assert found is not None
        return found[1].report

    with open_runtime(path) as memory:
        store = store_of(memory)
        store.write(lambda tx: idempotency.keep(tx, "p", "s", "k", FIRST, 0, 8))
        assert store.write(restated) == b"later"
        assert_clean(memory)
        by_another_program(path, "UPDATE idempotency SET at = 7")
        assert store.write(restated) == b"later"
        assert named(memory) == [("idempotency row 1", seal_checks.CHANGED)]
