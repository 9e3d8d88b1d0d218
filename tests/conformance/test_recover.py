"""Recovery and closing, through every door."""

from __future__ import annotations

from typing import get_args

import pytest

from beetle.contracts.lifecycle import StepName
from tests.building import contents, replay, talk, turn
from tests.conformance.conftest import running_daemon
from tests.conformance.doors import CommandLine, Door, InProcess, Socket


def test_recovery_reports_every_step_and_leaves_a_clean_store(door: Door) -> None:
    door.prepare("transcript.commit", talk(turn("t1", "the kettle is on")))
    report = door.call("memory.recover", {"trigger": "after_crash"})
    assert [each["step"] for each in report["steps"]] == list(get_args(StepName))
    assert {each["outcome"] for each in report["steps"]} <= {"done", "nothing_to_do"}
    assert (report["trigger"], report["mode"], report["recovered"]) == ("after_crash", "maintenance", True)
    assert report["lifecycle"]["changed"] and report["lifecycle"]["event_id"] > 0
    assert door.call("store.verify")["clean"]
    assert contents(replay(door)) == ["the kettle is on"]


@pytest.mark.parametrize("mode", ["read_only", "safe"])
def test_a_request_that_asks_for_a_mode_that_only_reads_writes_nothing(door: Door, mode: str) -> None:
    asked = {"mode_input": {"mode": mode, "reason": "a case asked for it"}}
    told = door.refused("forbidden", "memory.recover", asked)
    assert mode in told.message and "mode" in told.hint
    inspected = door.call("memory.inspect", asked)
    assert inspected["runtime"]["mode"] == mode
    assert door.call("memory.inspect")["runtime"]["mode"] == "normal"
    assert door.call("memory.project", {"user_query": "x", **asked})["sections"]


def test_an_inspection_shows_the_last_steps_of_the_runtime(door: Door) -> None:
    event = door.call("memory.recover")["lifecycle"]["event_id"]
    report = door.call("memory.inspect")
    newest = report["operator_actions"][0]
    assert (newest["event_id"], newest["event"], newest["operation"]) == (event, "recovered", "memory.recover")
    assert "subject" not in newest
    assert report["capabilities"]["recover"]["visible"]
    assert report["runtime"] == {
        "mode": "normal",
        "task": None,
        "replica_horizon": report["runtime"]["replica_horizon"],
        "copies_until": None,
        "replicated_until": None,
    }


@pytest.mark.parametrize("args", [{"trigger": "because"}, {"mode_input": {"mode": "closing"}}, {"reason": "x"}])
def test_recovery_refuses_what_it_does_not_know(door: Door, args: dict[str, object]) -> None:
    door.refused("invalid_request", "memory.recover", args)


@pytest.mark.parametrize("reason", ["", "a\nb", "x" * 257])
def test_a_reason_to_close_is_a_short_line(door: Door, reason: str) -> None:
    door.refused("invalid_request", "memory.close", {"reason": reason})
    assert door.call("memory.inspect")["runtime"]["mode"] == "normal"


@pytest.mark.parametrize("kind", [Socket, CommandLine])
def test_a_daemon_that_is_closed_answers_and_ends_with_0(kind: type[Socket]) -> None:
    with running_daemon() as daemon:
        door = kind("owner-one", daemon)
        door.prepare("transcript.commit", talk(turn("t1", "kept")))
        report = door.call("memory.close", {"reason": "the case is over"})
        assert (report["already"], report["checkpointed"], report["wal_bytes"]) == (False, True, 0)
        assert daemon.ended() == 0, daemon.log.read_text()
        door.close()
        assert not daemon.socket.exists() and "Traceback" not in daemon.log.read_text()


def test_a_runtime_that_was_closed_says_so_the_second_time(in_process: InProcess) -> None:
    first = in_process.call("memory.close", {"reason": "done"})
    second = in_process.call("memory.close", {"reason": "done again"})
    assert (first["already"], second["already"]) == (False, True)
    assert second["event_log_rows"] == first["event_log_rows"] and second["reason"] == "done"
