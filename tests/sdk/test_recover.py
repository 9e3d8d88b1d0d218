"""Recovery: what each step mends, that none stops the others, and that nothing is lost and nobody held up."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest

from beetle import MemoryRuntime
from beetle.contracts.errors import IntegrityViolation, ServicesUnavailable
from beetle.contracts.lifecycle import MemoryRecoverReport, RecoverStep
from beetle.runtime.areas import recovery
from beetle.runtime.areas.checks import BY_NAME
from beetle.runtime.host.profile import load_profile
from beetle.store import index_rebuild, recover
from tests.store.conftest import (
    DISK_BACKENDS,
    assert_clean,
    bytes_of,
    commit,
    found,
    held_snapshot,
    lifecycle,
    open_runtime,
    replay,
    store_of,
    turn,
    write_skill,
)

WORDS = ("kettle", "lamp", "garden", "train", "window")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "b.db"


@pytest.fixture
def memory(path: Path) -> Iterator[MemoryRuntime]:
    with open_runtime(path) as opened:
        yield opened


def by_name(report: MemoryRecoverReport) -> dict[str, RecoverStep]:
    return {each.step: each for each in report.steps}


def step(memory: MemoryRuntime, name: str) -> RecoverStep:
    return by_name(memory.recover())[name]


def fill(memory: MemoryRuntime, turns: int = 10) -> None:
    """Evidence, skills and facts, each of which is found by a word."""
    for number in range(turns):
        commit(memory, turn(f"t{number}", f"the {WORDS[number % 5]} of number {number}"))
    write_skill(memory, "tea", "boil the kettle")
    for number, word in enumerate(WORDS):
        judge(memory, f"the {word} is {number}", topic=word)
    judge(memory, "the lamp is broken", topic="lamp")


def judge(memory: MemoryRuntime, content: str, topic: str) -> Any:
    candidate = {"candidate_id": f"c-{topic}", "authority": "user_asserted", "target": "long_term",
                 "privacy": "shared_with_subject", "topic": topic, "content": content}  # fmt: skip
    return memory.write(kind="candidates", candidates=[candidate]).outcomes[0]


def everything_found(memory: MemoryRuntime) -> dict[str, set[str]]:
    return {word: found(memory, word) for word in WORDS}


def damage(path: Path, *statements: str) -> None:
    """As a failing disk or a stranger would: behind the back of a store that is closed."""
    connection = apsw.Connection(str(path))
    for each in statements:
        connection.execute(each)
    connection.close()


# The recall index


@pytest.mark.parametrize("backend", [*DISK_BACKENDS, "in-memory"])
def test_a_sound_store_has_nothing_to_mend_and_answers_as_before(path: Path, backend: str) -> None:
    with open_runtime(path, backend) as memory:
        fill(memory)
        before = everything_found(memory)
        steps = by_name(memory.recover())
        assert steps["recall_index"].outcome == steps["transcripts"].outcome == "nothing_to_do"
        assert everything_found(memory) == before
        assert memory.recover().recovered
        assert_clean(memory)
        if backend == "in-memory":
            assert (steps["checkpoint"].reason, steps["vacuum"].reason) == ("in_memory", "in_memory")


@pytest.mark.parametrize("backend", DISK_BACKENDS)
def test_an_index_that_is_empty_is_filled_again_from_what_the_tables_hold(path: Path, backend: str) -> None:
    with open_runtime(path, backend) as memory:
        fill(memory)
        lifecycle(memory, "mask", "t1")
        memory.set_runtime_skill_enabled(name="tea", enabled=False)
        before = everything_found(memory)
        store_of(memory).write(recover.empty_index, grows=False)
        assert not any(everything_found(memory).values())
        rows = step(memory, "recall_index")
        assert rows.outcome == "done" and rows.count > 12 and not rows.left
        assert everything_found(memory) == before
        assert_clean(memory)
        past = memory.recall(query="lamp", planes=["long_term"], as_of="2999-01-01T00:00:00Z").hits
        assert past, "what was current once is indexed too"


def test_a_rebuild_that_was_cut_short_is_finished_by_the_next_recovery(path: Path) -> None:
    with open_runtime(path) as memory:
        fill(memory)
        before = everything_found(memory)
        store_of(memory).write(recover.empty_index, grows=False)
    with open_runtime(path) as memory:
        with store_of(memory).read() as tx:
            assert index_rebuild.is_rebuilding(tx)
        # What comes and goes meanwhile neither breaks the index nor is put into it twice.
        commit(memory, turn("late", "the kettle came late"))
        lifecycle(memory, "delete_raw", "t0")
        lifecycle(memory, "mask", "t5")
        memory.delete_runtime_skill(name="tea")
        judge(memory, "the garden is green", topic="garden")
        assert memory.recover().recovered
        with store_of(memory).read() as tx:
            assert not index_rebuild.is_rebuilding(tx)
        assert_clean(memory)
        after = everything_found(memory)
        assert after["train"] == before["train"]
        assert "evidence:local/c1/late/late-m0" in after["kettle"]
        assert not any("/t0/" in ref or "/t5/" in ref or "tea" in ref for ref in after["kettle"])


def test_rows_that_are_missing_are_added_and_the_others_left_as_they_are(path: Path) -> None:
    with open_runtime(path) as memory:
        fill(memory)
        before = everything_found(memory)
        with store_of(memory).read() as tx:
            message = tx.value("SELECT message FROM message WHERE message_id = 't2-m0'")
    damage(path, "UPDATE message SET state = 'masked' WHERE message_id = 't2-m0'")
    with open_runtime(path) as memory:
        assert step(memory, "recall_index").count == 1, "what is masked is in it no more"
        assert not any("/t2/" in ref for ref in found(memory, "garden"))
    damage(path, "UPDATE message SET state = 'live' WHERE message_id = 't2-m0'")
    with open_runtime(path) as memory:
        assert message and step(memory, "recall_index").count == 1
        assert everything_found(memory) == before
        assert_clean(memory)


@pytest.mark.parametrize("backend", DISK_BACKENDS)
def test_a_message_that_was_altered_on_disk_can_be_erased_after_a_recovery(path: Path, backend: str) -> None:
    with open_runtime(path, backend) as memory:
        fill(memory)
        commit(memory, turn("odd", "zqformerqz words of mine"))
        store_of(memory).write(lambda tx: tx.write_index())
        with store_of(memory).read() as tx:
            message = tx.value("SELECT message FROM message WHERE message_id = 'odd-m0'")
    damage(path, f"UPDATE body SET content = 'zqotherqz words' WHERE message = {message}")
    with open_runtime(path, backend) as memory:
        with pytest.raises(IntegrityViolation):
            lifecycle(memory, "delete_raw", "odd")
        before = everything_found(memory)
        report = memory.recover()
        rows = by_name(report)["recall_index"]
        assert (rows.outcome, rows.left, rows.reason) == ("done", 1, "damaged_records_left_out")
        assert not report.recovered
        assert everything_found(memory) == before
        assert not found(memory, "zqformerqz") and not found(memory, "zqotherqz")
        assert lifecycle(memory, "delete_raw", "odd").erasure == "done"
        assert memory.recover().recovered
        assert_clean(memory)
        for word in (b"zqformer", b"zqother", b"zqform"):
            assert word not in bytes_of(path)


def test_a_fact_that_was_altered_on_disk_can_be_forgotten_after_a_recovery(path: Path) -> None:
    with open_runtime(path) as memory:
        fill(memory)
        ref = judge(memory, "zqformerqz is the word", topic="password").ref
    damage(path, "UPDATE fact_body SET content = 'zqotherqz is the word' WHERE content LIKE 'zqformer%'")
    with open_runtime(path) as memory:
        rows = step(memory, "recall_index")
        assert (rows.outcome, rows.left) == ("done", 1)
        assert memory.mutate_long_term(action="delete", ref=ref).erasure == "done"
        assert memory.recover().recovered
        assert_clean(memory)
        assert b"zqformer" not in bytes_of(path) and b"zqother" not in bytes_of(path)


@pytest.mark.parametrize("also", ["", "DELETE FROM index_tail"], ids=["marked", "unmarked"])
def test_an_index_whose_pages_are_damaged_is_made_anew(path: Path, also: str) -> None:
    with open_runtime(path) as memory:
        fill(memory, 60)
        store_of(memory).write(lambda tx: tx.write_index())
        before = everything_found(memory)
        with store_of(memory).read() as tx:
            assert recover.index_is_sound(tx)
    connection = apsw.Connection(str(path))
    connection.execute("UPDATE recall_index_data SET block = zeroblob(length(block)) WHERE id > 1000000")
    connection.execute(also)
    connection.close()
    with open_runtime(path) as memory:
        assert step(memory, "recall_index").outcome == "done"
        with store_of(memory).read() as tx:
            assert tx.value("SELECT count(*) FROM recall_index_docsize WHERE id & 15 = 0") >= 60
        assert everything_found(memory) == before
        assert_clean(memory)


def test_writers_go_on_while_the_index_is_made_anew(path: Path) -> None:
    with open_runtime(path) as memory:
        for start in range(0, 1500, 500):
            commit(memory, *(turn(f"t{n}", f"the kettle of number {n}") for n in range(start, start + 500)))
        store_of(memory).write(recover.empty_index, grows=False)
        done, began = threading.Event(), threading.Event()
        written = 0

        def write() -> None:
            nonlocal written
            while not done.is_set():
                commit(memory, turn(f"w{written}", f"the lamp of number {written}"))
                written += 1
                if written % 5 == 0:
                    lifecycle(memory, "delete_raw", f"w{written - 1}")
                began.set()

        writer = threading.Thread(target=write)
        writer.start()
        assert began.wait(60)
        report = memory.recover()
        done.set()
        writer.join()
        assert report.recovered and written > 3
        assert_clean(memory)
        assert len(replay(memory)) == 500, "a page"
        assert memory.inspect().counts.turns == 1500 + written
        assert found(memory, "kettle")


# The file


@pytest.mark.parametrize("backend", DISK_BACKENDS)
def test_a_file_that_is_mostly_free_is_made_anew_and_holds_the_same(path: Path, backend: str) -> None:
    with open_runtime(path, backend) as memory:
        fill(memory)
        for number in range(60):
            commit(memory, turn(f"big{number}", f"word{number} " * 5000))
        lifecycle(memory, "delete_raw", *(f"big{number}" for number in range(60)))
        before, held = everything_found(memory), memory.inspect()
        assert path.stat().st_size > 2_000_000
        report = memory.recover()
        assert by_name(report)["vacuum"].outcome == "done" and report.recovered
        memory.recover()
        after = memory.inspect()
        assert after.store.pages * 2 < held.store.pages
        assert (after.counts, everything_found(memory)) == (held.counts, before)
        assert_clean(memory)
        assert [each for each in path.parent.iterdir() if "compact" in each.name or ".before-" in each.name] == []
        commit(memory, turn("after", "the kettle again"))
    assert path.stat().st_size < 1_000_000
    with open_runtime(path, backend) as memory:
        assert "evidence:local/c1/after/after-m0" in found(memory, "kettle")
        assert_clean(memory)


def test_writers_wait_for_a_file_that_is_made_anew_and_lose_nothing(memory: MemoryRuntime) -> None:
    for number in range(60):
        commit(memory, turn(f"big{number}", f"word{number} " * 5000))
    lifecycle(memory, "delete_raw", *(f"big{number}" for number in range(60)))
    done, began = threading.Event(), threading.Event()
    written: list[str] = []

    def write() -> None:
        # By and by: they must not fill all the room that the erased ones have left before it is given back.
        while not done.wait(0.005):
            name = f"w{len(written)}"
            commit(memory, turn(name, f"written as {name}"))
            written.append(name)
            began.set()

    writer = threading.Thread(target=write)
    writer.start()
    assert began.wait(60)
    assert by_name(memory.recover())["vacuum"].outcome == "done"
    done.set()
    writer.join()
    assert [each.turn_id for each in replay(memory)][60:] == written
    assert_clean(memory)


def test_the_write_ahead_log_is_emptied_and_what_was_erased_is_gone(path: Path) -> None:
    with open_runtime(path) as memory:
        fill(memory)
        commit(memory, turn("gone", "zqcanaryqz"))
        assert store_of(memory).wal_bytes() > 0
        with held_snapshot(memory):
            assert lifecycle(memory, "delete_raw", "gone").erasure == "pending"
        steps = by_name(memory.recover())
        assert steps["checkpoint"].count > 0 or steps["pending_erasures"].outcome in ("done", "nothing_to_do")
        assert memory.inspect().store.pending_erasures == 0
        assert b"zqcanary" not in bytes_of(path)


@pytest.mark.parametrize(("length", "turns"), [(63, 40), (64, 40), (65, 200), (66, 40), (200, 40), (40_000, 40)])
def test_a_word_of_any_length_is_erased_from_the_index_with_every_beginning_of_it(
    path: Path, length: int, turns: int
) -> None:
    """The beginnings of a long word once took memory with the square of its length."""
    word = ("zqlongqz" * (length // 8 + 1))[:length]
    with open_runtime(path) as memory:
        for number in range(turns):
            commit(memory, turn(f"t{number}", f"{word}{number:03} among others"))
        for number in range(turns):
            if number != turns // 2:
                lifecycle(memory, "delete_raw", f"t{number}")
        lifecycle(memory, "delete_raw", f"t{turns // 2}")
        memory.recover()
        assert_clean(memory)
        assert b"zqlongqz" not in bytes_of(path)


# Work and rows that nobody needs

NEW_KEY = "INSERT INTO idempotency (principal, space, key, request, report, at) VALUES (?, 's', 'k', x'', x'', 0)"
NEW_DEVICE = """
INSERT INTO device (
  device_id, label, owner_id, agent_id, capabilities, salt, verifier, fingerprint, generation, created_at, updated_at
) VALUES ('here', '', 'o', 'a', '[]', x'', x'', '', 1, 0, 0)
"""


NEW_JOB = (
    "INSERT INTO job (job_id, kind, space, principal, agent_id, channel, chat_id, subject, state, not_before,"
    " lease_until, created_at, updated_at) VALUES (?1, 'maintain', 1, 'embedded:test', 'agent-a', 'local', 'chat',"
    " json_object('of', ?1), 'leased', 0, ?2, 0, 0)"
)
NEW_REMEMBERED = "INSERT INTO remembered_conversation VALUES (?, 1, 'a', 'c', 'x', 1)"


def test_work_whose_lease_has_run_out_waits_again(memory: MemoryRuntime) -> None:
    commit(memory, turn("t1", "one"))
    far = 4_000_000_000_000_000
    store_of(memory).write(lambda tx: [tx.run(NEW_JOB, name, until) for name, until in (("j-old", 1), ("j-new", far))])
    jobs = step(memory, "stuck_jobs")
    assert (jobs.outcome, jobs.count) == ("done", 1)
    with store_of(memory).read() as tx:
        assert dict(tx.rows("SELECT job_id, state FROM job")) == {"j-old": "waiting", "j-new": "leased"}


def test_keys_and_conversations_of_devices_that_are_gone_are_forgotten(memory: MemoryRuntime) -> None:
    commit(memory, turn("t1", "one"))

    def write(tx: Any) -> None:
        for principal in ("device:gone", "device:here", "embedded:test"):
            tx.run(NEW_KEY, principal)
            tx.run(NEW_REMEMBERED, principal)
        tx.run(NEW_DEVICE)

    store_of(memory).write(write)
    steps = by_name(memory.recover())
    assert (steps["idempotency_keys"].count, steps["remembered_conversations"].count) == (1, 1)
    with store_of(memory).read() as tx:
        assert [row[0] for row in tx.rows("SELECT principal FROM idempotency")] == ["device:here", "embedded:test"]
    assert memory.recover().recovered


def test_first_reports_beyond_the_budget_are_dropped_the_oldest_first(memory: MemoryRuntime) -> None:
    most = load_profile("dev-full").budgets.idempotency_keys
    store_of(memory).write(
        lambda tx: [
            tx.run(
                "INSERT INTO idempotency VALUES (?, 'p', 's', ?, x'', x'', 0, NULL)", number, str(number)
            )
            for number in (1, 2, most, most + 2)
        ]
    )  # fmt: skip
    assert step(memory, "idempotency_keys").count == 2
    with store_of(memory).read() as tx:
        assert [row[0] for row in tx.rows("SELECT idempotency FROM idempotency")] == [most, most + 2]


def test_what_repair_can_mend_is_mended_in_every_space(path: Path) -> None:
    with open_runtime(path, owner="owner-a") as memory:
        commit(memory, turn("t1", "one"))
    with open_runtime(path, owner="owner-b") as memory:
        commit(memory, turn("t1", "one"))
    damage(path, "UPDATE conversation SET messages = 7")
    with open_runtime(path, owner="owner-a") as memory:
        assert not memory.verify_store().clean
        mended = step(memory, "transcripts")
        assert (mended.outcome, mended.count, mended.left) == ("done", 2, 0)
        assert_clean(memory)


def test_what_is_left_of_a_space_that_is_lost_keeps_nothing_else_from_being_mended(path: Path) -> None:
    with open_runtime(path) as memory:
        fill(memory)
    damage(path, "DELETE FROM event", "DELETE FROM space")
    with open_runtime(path) as memory:
        assert all(each.outcome != "failed" for each in memory.recover().steps)
        assert any(each.check == "foreign_keys" for each in memory.verify_store().findings)


def test_a_citation_of_what_was_never_said_here_is_no_damage(path: Path) -> None:
    with open_runtime(path) as memory:
        write_skill(memory, "elsewhere", "As it was said", source="import", citations=("evidence:local/c1/never",))
        report = memory.recover()
        assert report.recovered and [each.step for each in report.steps if each.left] == []


# What verify says of it before

FOUND_BY = {
    "pending_erasures": "pending_erasures", "leftovers": "leftovers", "recall_index": "recall_index",
    "transcripts": "evidence", "events": "evidence", "captured_turns": "evidence", "table_of_contents": "toc",
    "stuck_jobs": "jobs", "idempotency_keys": "idempotency",
    "remembered_conversations": "remembered_conversations",
}  # fmt: skip
"""The check that names what a step mends."""
NO_DAMAGE = {"checkpoint", "optimize", "vacuum"}
"""Steps that save room."""


@contextmanager
def damaged(memory: MemoryRuntime, path: Path, name: str) -> Iterator[None]:
    """Give a step something to mend while the block runs."""
    store = store_of(memory)
    if name == "pending_erasures":
        with held_snapshot(memory):
            assert lifecycle(memory, "delete_raw", "t0").erasure == "pending"
            store.write(lambda tx: tx.run("UPDATE pending_erasure SET since = 1"), grows=False)
            yield
        return
    if name == "leftovers":
        folder = Path(f"{path}.snapshots")
        folder.mkdir()
        (folder / f"s-{'0' * 16}.part").write_bytes(b"half")
    elif name == "recall_index":
        store.write(recover.empty_index, grows=False)
    else:
        statement, *given = {
            "transcripts": ("UPDATE conversation SET messages = 7",),
            "events": ("DELETE FROM event",),
            "captured_turns": ("DELETE FROM captured_turn",),
            "table_of_contents": ("DELETE FROM toc_outbox",),
            "stuck_jobs": (NEW_JOB, "j-old", 1),
            "idempotency_keys": (NEW_KEY, "device:gone"),
            "remembered_conversations": (NEW_REMEMBERED, "device:gone"),
        }[name]
        store.write(lambda tx: tx.run(statement, *given), grows=False)
    yield


@pytest.mark.parametrize("name", [each for each in recovery.STEPS if each not in NO_DAMAGE])
def test_what_a_step_mends_verify_finds_before(memory: MemoryRuntime, path: Path, name: str) -> None:
    fill(memory)
    memory.capture_turn(host_session_id="s", host_turn_index=0, role="user", content="the kettle of a host")
    assert_clean(memory)
    with damaged(memory, path, name):
        named = {each.check for each in memory.verify_store().findings}
        assert FOUND_BY[name] in named and named <= set(BY_NAME)
    assert memory.recover().recovered
    assert_clean(memory)


# As a whole


def test_a_step_that_fails_is_told_and_the_others_run(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recovery, "CHECKPOINT_WAIT_S", 0.0)
    with open_runtime(path) as memory:
        fill(memory)
        with held_snapshot(memory):
            commit(memory, turn("more", "the kettle again"))
            steps = by_name(memory.recover())
        assert (steps["checkpoint"].outcome, steps["checkpoint"].reason) == ("failed", "held_by_a_reader")
        assert {each.outcome for name, each in steps.items() if name != "checkpoint"} <= {"done", "nothing_to_do"}
        assert memory.recover().recovered


def test_a_runtime_that_ends_stops_a_recovery_at_its_next_step(
    memory: MemoryRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(memory)
    running = memory._opened.dispatcher.lifecycle
    monkeypatch.setitem(recovery.STEPS, "leftovers", lambda _: running.stop_tasks() or recovery.Done())
    steps = by_name(memory.recover())
    assert steps["pending_erasures"].outcome == steps["leftovers"].outcome == "nothing_to_do"
    assert {(each.outcome, each.reason) for each in list(steps.values())[3:]} == {("failed", "stopped")}
    with pytest.raises(ServicesUnavailable):
        memory.recover()


def test_a_recovery_leaves_one_event_of_the_runtime_s_own(memory: MemoryRuntime) -> None:
    fill(memory)
    report = memory.recover(trigger="scheduled")
    assert report.lifecycle is not None
    with store_of(memory).read() as tx:
        row = tx.row("SELECT space, topic, event, subject FROM event_log WHERE seq = ?", report.lifecycle.event_id)
    assert row is not None and row[:3] == (None, "lifecycle", "recovered")
    assert '"trigger":"scheduled"' in row[3]
