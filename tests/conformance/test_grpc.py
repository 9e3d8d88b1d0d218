"""gRPC as one more door, for the operations that it has: it answers and refuses as a call in the process does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from beetle.cli.endpoint import SWITCHES, WAYS
from beetle.contracts.errors import STATUS
from beetle.memory_client import MemoryClient, RpcFailed
from beetle.rpc.messages import method_messages
from tests.cases import CASES, Case, Prepared
from tests.conformance.doors import InProcess
from tests.transports.grpc_serving import Served

OVER_GRPC = [case for case in CASES if case.op in WAYS and WAYS[case.op].method not in SWITCHES]
ITS_OWN = ("continuation_token", "next_run_ms")
"""Fields that differ from one answer to the next."""
ZEROS = ("from_timestamp_ms", "to_timestamp_ms")
"""Numbers that are 0 in a message which leaves them out."""


def can_be_said(op: str, args: Mapping[str, Any]) -> bool:
    """Whether the message has a field for each of the arguments."""
    return set(args) <= set(method_messages(WAYS[op].method)[0].DESCRIPTOR.fields_by_name)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with Served(tmp_path_factory.mktemp("grpc"), "operators") as running:
        yield running


@pytest.fixture(scope="module")
def client(served: Served) -> Iterator[MemoryClient]:
    with MemoryClient.connect(f"http://{served.target}") as connected:
        yield connected


@pytest.fixture
def here(served: Served, tmp_path: Path) -> InProcess:
    """The same store in this process, for an owner of this case's own."""
    return InProcess(f"owner-{uuid4().hex[:12]}", tmp_path / "b.db", shared=served.opened)


def ask(client: MemoryClient, owner: str, op: str, args: Mapping[str, Any]) -> dict[str, Any]:
    way = WAYS[op]
    fields = {way.renamed.get(name, name): value for name, value in args.items()}
    return client.ask(way.method, fields, metadata={"beetle-owner-id": owner})


def holds(whole: Any, part: Any) -> bool:
    """Whether a report has everything that a message told of it."""
    if isinstance(part, dict):
        return all(
            name in ITS_OWN or (not value and not whole.get(name)) or holds(whole.get(name), value)
            for name, value in part.items()
        )
    if isinstance(part, list):
        return len(whole) == len(part) and all(map(holds, whole, part))
    return whole == pytest.approx(part) if isinstance(part, float) else whole == part


@pytest.mark.parametrize("case", OVER_GRPC, ids=lambda case: case.op)
def test_an_answer_tells_what_the_report_does(client: MemoryClient, here: InProcess, case: Case) -> None:
    args = case.request(Prepared(here.prepare))
    report = here.call(case.op, args)
    told = ask(client, here.owner, case.op, args)
    if case.changes:
        # The second of two: the id was there.
        assert (told["event_id"], told.get("created", False)) == (report["event_id"], False)
        return
    if "results" in told:
        report["results"] = [{**each["node"], "matches": each["matches"]} for each in report["nodes"]]
        told["results"] = [{k: v for k, v in each.items() if k != "relevance_score"} for each in told["results"]]
    assert holds({"node_id": args.get("node_id"), **report}, told), (report, told)


@pytest.mark.parametrize(
    ("op", "args", "path"),
    [
        pytest.param(case.op, args, path, id=f"{case.op}-{number}")
        for case in OVER_GRPC
        for number, (args, path) in enumerate(case.wrong)
        if can_be_said(case.op, args) and (path in args or path not in ZEROS)
    ],
)
def test_what_is_wrong_is_refused_or_cannot_be_said(
    client: MemoryClient, here: InProcess, op: str, args: dict[str, Any], path: str
) -> None:
    """By the same key and path. A value of another type has no place in a message: the client says so."""
    from beetle.memory_client import SerializationFailed

    here.refused("invalid_request", op, args)
    with pytest.raises((RpcFailed, SerializationFailed)) as caught:
        ask(client, here.owner, op, args)
    if isinstance(caught.value, RpcFailed):
        error = caught.value.error
        assert error is not None and error.key == "invalid_request"
        assert caught.value.code.name == STATUS[error.key].grpc


@pytest.mark.parametrize("op", [op for op, way in WAYS.items() if way.method in SWITCHES])
def test_a_job_is_paused_or_resumed_where_it_exists(client: MemoryClient, here: InProcess, op: str) -> None:
    """The seed's answer: whether it succeeded, and why not; the status of the call is no error."""
    for name, exists in (("retention", True), ("nothing-of-this-name", False), ("", False)):
        told = ask(client, here.owner, op, {"job_name": name})
        assert told.get("success", False) is exists
        assert bool(told.get("error")) is not exists
    jobs = {each["job_name"]: each for each in here.call("scheduler.status", {})["jobs"]}
    assert jobs["retention"]["is_paused"] is (op == "scheduler.pause")
