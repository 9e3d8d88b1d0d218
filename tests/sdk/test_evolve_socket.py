"""Proposals and the harness through a daemon, from several clients."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from beetle.client import Client
from beetle.contracts.errors import BeetleError, Conflict
from tests.forked import Daemon

PROFILE = "profile-server-linux-dev-full"
SKILL = {"name": "pump", "topic": "pump", "title": "Pump", "summary": "When it is loud.", "content": "1. Stop it."}


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with Daemon(profile=PROFILE) as running:
        yield running


def test_of_clients_that_submit_at_once_one_wins_and_the_others_conflict(daemon: Daemon) -> None:
    with daemon.client() as client:
        client.write(kind="procedural", source="manual", writes=[SKILL])
        made = [
            {
                "proposal_id": f"p{n}",
                "kind": "skill_edit",
                "target": "pump",
                "rationale": "r",
                "change": {"title": f"T{n}"},
            }
            for n in range(6)
        ]
        client.propose(proposals=made)
    together = threading.Barrier(6)
    outcomes: list[str] = []

    def submit(number: int) -> None:
        with daemon.client() as mine:
            together.wait()
            try:
                outcomes.append(mine.submit_proposals(proposal_ids=[f"p{number}"]).outcomes[0].outcome)
            except BeetleError as error:
                outcomes.append(error.key)

    threads = [threading.Thread(target=submit, args=(number,)) for number in range(6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(outcomes) == ["conflict"] * 5 + ["revised"]
    with daemon.client() as client:
        assert client.get_runtime_skill(name="pump").revision == 2
        assert client.list_proposals().total == 5


def test_a_preview_and_a_withdrawal_over_the_socket(daemon: Daemon) -> None:
    with daemon.client() as client:
        made = {"proposal_id": "rows", "kind": "fact_write", "rationale": "heard", "change": {"content": "Mara rows."}}
        client.propose(proposals=[made])
        verdict = client.preview_proposal(proposal_id="rows").verdict
        assert verdict is not None and verdict.reason == "needs_assertion"
        assert client.submit_proposals(proposal_ids=["rows"], decision="withdraw").erasure == "done"
        with pytest.raises(Conflict):
            client.submit_proposals(proposal_ids=["rows"])


def test_two_clients_run_the_harness_at_once_while_a_third_writes(daemon: Daemon) -> None:
    passed: list[bool] = []

    def run() -> None:
        with daemon.client() as mine:
            passed.append(mine.run_harness(suite="replay", fixtures=["temporal-correction-replaces"]).passed)

    threads = [threading.Thread(target=run) for _ in range(2)]
    for each in threads:
        each.start()
    with daemon.client() as client:
        write_until(client, threads)
    assert passed == [True, True]


def write_until(client: Client, threads: list[threading.Thread]) -> None:
    """Commit turns for as long as one of the threads runs: the harness holds up no writer."""
    number = 0
    while number == 0 or any(each.is_alive() for each in threads):
        said = {"message_id": f"m{number}", "role": "user", "content": "hello"}
        turn = {"turn_id": f"t{number}", "at": "2026-01-01T00:00:00Z", "messages": [said]}
        assert client.commit_transcript(conversation={"conversation_id": "busy"}, turns=[turn]).committed == 1
        number += 1
    for each in threads:
        each.join()
