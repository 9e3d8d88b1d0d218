"""What waits of an erasure goes on for nobody but who began it, and only as what the runtime wrote down."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from typing import Any

import apsw
import pytest

from beetle import MemoryRuntime
from beetle.contracts.errors import Conflict, DeadlineExceeded, Forbidden, IntegrityViolation
from beetle.runtime.host.caller import Caller
from beetle.runtime.pipeline.invocation import Call
from beetle.store import erasures, idempotency
from tests.building import candidate, candidates, turn
from tests.governance.sliced import BEFORE, OTHER, WHERE, called_off, killed_in_slice, small_slices, step_of
from tests.governance.test_between_slices import COUNT, asked, call_off, fail, once, path, say
from tests.store.conftest import assert_clean, open_runtime, store_of, wait_for_erasures
from tests.store.test_erasure import assert_gone

__all__ = ["path", "small_slices"]


# Another request under its key, or another caller.


def left_in(memory: MemoryRuntime) -> int:
    return memory.forget(conversation=WHERE, dry_run=True).counts.get("turns", 0)


def give_up(memory: MemoryRuntime, most: int, key: str = "k") -> None:
    """Use so many keys that this one is given up."""
    for number in range(most + 64):
        review = {**step_of("review"), "turn_ids": ["t0"], "dry_run": True}
        memory.call("transcript.lifecycle", {name: review[name] for name in review if name != "before"},
                    idempotency_key=f"other {number}")  # fmt: skip


@pytest.fixture
def few_keys(monkeypatch: pytest.MonkeyPatch) -> int:
    """The store keeps as few first reports as a profile may say."""
    most = 8
    keep = idempotency.keep
    monkeypatch.setattr(idempotency, "keep", lambda *args: keep(*args[:-1], most))
    return most


NOTHING = "2000-01-01T00:00:00Z"
OTHERS: list[dict[str, Any]] = [
    {"action": "delete_raw", "before": BEFORE, "reason": "r", "dry_run": True},
    {"action": "delete_raw", "before": NOTHING, "reason": "r"},
    {"action": "mask", "turn_ids": ["o1"], "reason": "r"},
]


@pytest.mark.parametrize("other", OTHERS, ids=["dry run", "nothing", "mask"])
def test_another_request_under_its_key_does_not_go_on_with_it(path: str, few_keys: int, other: dict[str, Any]) -> None:
    with open_runtime(path) as memory:
        say(memory)
        memory.commit_transcript(conversation=OTHER, turns=[turn("o1", "stays here")])
        operation, args = call_off(memory, "delete_raw")
        left = left_in(memory)
        assert 0 < left < COUNT
        give_up(memory, few_keys)
        for _ in range(2):
            report: Any = memory.call(operation, {**other, "conversation": OTHER}, idempotency_key="k")
            assert report.action == other["action"] and left_in(memory) == left
        give_up(memory, few_keys)
        report = memory.call(operation, args, idempotency_key="k")
        assert (report.affected_turns, left_in(memory)) == (COUNT, 0)


def test_a_key_that_was_given_up_leaves_nothing_to_go_on_with(path: str, few_keys: int) -> None:
    with open_runtime(path) as memory:
        say(memory)
        call_off(memory, "delete_raw")
        give_up(memory, few_keys)
        with store_of(memory).read() as tx:
            assert not erasures.every(tx)


def test_a_new_device_of_the_same_id_does_not_go_on_with_it(path: str) -> None:
    with open_runtime(path) as memory:
        words = say(memory)
        rights = ("write", "recall", "transcript", "inspect", "forget")
        memory.add_device(label="cam", device_id="cam", capabilities=rights)
        first = device_of(memory)
        operation, args, _ = asked(memory, "delete_raw")
        ended = pytest.raises(DeadlineExceeded)
        with pytest.MonkeyPatch.context() as patched, called_off(patched, "erase") as hear, ended:
            first(operation, args, hear)
        left = left_in(memory)
        memory.remove_device(device_id="cam")
        with store_of(memory).read() as tx:
            assert not erasures.every(tx), "it goes with the device"
        memory.add_device(label="cam", device_id="cam", capabilities=rights)
        for _ in range(2):
            report = device_of(memory)(operation, {**args, "before": NOTHING}, None)
            assert (report.affected_turns, left_in(memory)) == (0, left)
        assert memory.recall(query=words[-1]).hits


def device_of(memory: MemoryRuntime) -> Callable[..., Any]:
    """Calls as the device, under the key."""
    opened = memory._opened
    caller = opened.dispatcher.shared.sessions.devices.by_id("cam")
    assert caller is not None

    def call(operation: str, arguments: Any, on_progress: Any) -> Any:
        asked = Call(operation, arguments, caller, opened._scope, idempotency_key="k", on_progress=on_progress)
        return opened.dispatcher.dispatch(asked).report

    return call


@pytest.mark.parametrize("failed", [False, True])
def test_who_has_lost_rights_does_not_go_on_with_it(path: str, failed: bool) -> None:
    with open_runtime(path) as memory:
        opened = memory._opened
        own = opened._caller._replace(name="principal:u", kind="principal", views=("host_ui", "raw_owner"))
        less = own._replace(views=("host_ui",), capabilities=own.capabilities - {"private.read"})
        memory.write(**candidates(*(
            candidate(f"c{number}", f"the sensor {number} reads", topic=f"sensor {number}", authority="tool_observed",
                      privacy="subject_private" if number > 5 else "shared_with_subject")
            for number in range(COUNT)
        )))  # fmt: skip

        def call(caller: Caller, heard: Any = None, key: str | None = "k", **more: Any) -> Any:
            asked = {"query": "sensor", **more}
            return opened.dispatcher.dispatch(
                Call("memory.forget", asked, caller, opened._scope, idempotency_key=key, on_progress=heard)
            ).report

        token = call(own, key=None, dry_run=True).token
        ended = pytest.raises(Forbidden if failed else DeadlineExceeded)
        with pytest.MonkeyPatch.context() as patched, called_off(patched, "erase") as hear, ended:
            call(own, once(fail, 4) if failed else hear, token=token)
        hidden = {each.ref for each in memory.list_long_term(view="raw_owner").records if each.visibility != "shared"}
        assert hidden
        for reason in ("rights", "struck off", "struck off"):
            with pytest.raises(Conflict) as refused:
                call(less, token=token)
            assert reason in refused.value.message and refused.value.hint
            there = {each.ref for each in memory.list_long_term(view="raw_owner").records}
            assert hidden <= there
        report = call(less, key="k2", token=call(less, key=None, dry_run=True).token)
        assert report.counts.get("facts", 0) + len(hidden) < COUNT
        assert {each.ref for each in memory.list_long_term(view="raw_owner").records} == hidden
        assert_clean(memory)


# A damaged plan.

DAMAGES = [
    "x", "[]", "{}", '{"kinds": null}', '{"kinds": null, "authority": "zzz"}',
    '{"kinds": null, "authority": "user_asserted", "asker": [1]}',
    '{"kinds": null, "authority": "user_asserted", "of_a_newer_build": 1}',
    '{"kinds": null, "authority": "user_asserted", "done": {"affected": 1}}',
    '{"kinds": null, "authority": "user_asserted", "kinds": null}',
]  # fmt: skip


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, list[str]]:
    """A store whose process died in the third slice of a deletion, and its words."""
    path = os.fspath(tmp_path_factory.mktemp("killed") / "store.db")
    with MemoryRuntime.open(path, profile="dev-full") as memory:
        words = say(memory)
        memory.commit_transcript(conversation=OTHER, turns=[turn("o1", "stays here")])
    killed_in_slice(path, 3, "transcript.lifecycle", step_of("delete_raw"))
    return path, words


def damaged(path: str, killed: str, sql: str, *values: Any) -> str:
    """A copy of the killed store, in which another program has changed something."""
    shutil.copytree(os.path.dirname(killed), os.path.dirname(path), dirs_exist_ok=True)
    connection = apsw.Connection(path)
    connection.execute(sql, values)
    connection.close()
    return path


PAUSED = [each.replace("{", '{"paused": true, "key": "k", ', 1) for each in DAMAGES[-3:]]


@pytest.mark.parametrize("terms", [*DAMAGES, *PAUSED])
def test_a_plan_that_cannot_be_read_is_a_finding_until_a_recovery_drops_it(
    path: str, killed: tuple[str, list[str]], terms: str
) -> None:
    damaged(path, killed[0], "UPDATE erasure SET terms = ?", terms)
    step = step_of("delete_raw")
    with MemoryRuntime.open(path, profile="dev-full") as memory:
        assert memory.recall(query="stays").hits
        if '"paused"' not in terms:
            assert any("could not be finished" in each for each in memory.open_report.findings)
        found = [each for each in memory.verify_store().findings if each.check == "pending_erasures"]
        assert [each.subject for each in found] == ["erasure row 1"]
        with pytest.raises((Conflict, IntegrityViolation)) as refused:
            memory.call("transcript.lifecycle", step, idempotency_key="k")
        assert "verify" in refused.value.hint
        done: Any = memory.call("transcript.lifecycle", {**step, "conversation": OTHER})
        assert (done.erasure, done.affected_turns) == ("done", 1)
        (mended,) = [each for each in memory.recover().steps if each.step == "pending_erasures"]
        assert (mended.outcome, mended.count) == ("done", 1)
        assert not [each for each in memory.verify_store().findings if each.check == "pending_erasures"]
        report: Any = memory.call("transcript.lifecycle", step, idempotency_key="k")
        assert (report.erasure, report.affected_turns) == ("done", COUNT)
        wait_for_erasures(memory)
        assert_gone(path, killed[1])
        assert_clean(memory)


PARTS = ["plane = 'nothing'", "conversation = NULL"]


@pytest.mark.parametrize("change", [f"UPDATE erasure_left SET {each}" for each in PARTS]
                         + ["UPDATE erasure SET operation = 'nothing'"])  # fmt: skip
def test_a_plan_whose_parts_are_damaged_keeps_no_store_from_opening(
    path: str, killed: tuple[str, list[str]], change: str
) -> None:
    damaged(path, killed[0], change)
    with MemoryRuntime.open(path, profile="dev-full") as memory:
        assert memory.recall(query="stays").hits
        assert any("could not be finished" in each for each in memory.open_report.findings)
