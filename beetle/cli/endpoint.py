"""`--endpoint URL`: a command's operation over gRPC, where the socket is out of reach."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from beetle.cli.session import Session
from beetle.contracts.codec import from_plain, to_plain
from beetle.contracts.common import Report, WireScope
from beetle.contracts.errors import BeetleError, DaemonUnavailable, InvalidRequest, NotFound, ServicesUnavailable
from beetle.contracts.operations import BY_NAME
from beetle.named_tuple import NamedTuple

if TYPE_CHECKING:
    from beetle.memory_client import MemoryClient

EVENT = {"stored_role": "other", "ref": "", "turn_id": "", "message_id": "", "visibility": "shared", "state": "live"}
NODE = {
    "title": "", "summary": None, "bullets": [], "keywords": [], "child_node_ids": [], "start_time_ms": 0,
    "end_time_ms": 0, "version": 0,
}  # fmt: skip
GRIP = {"excerpt": "", "event_id_start": "", "event_id_end": "", "timestamp_ms": 0, "source": "", "node_id": ""}
JOB = {"description": "", "cron_expr": "", "timeout_s": 0}
MATCH = {"text": "", "grip_ids": [], "score": 0.0}
NOWHERE = {"channel_id": "", "conversation_id": ""}

Ask = Callable[[str, Mapping[str, Any]], dict[str, Any]]
"""Asks a method with the fields of its request."""


class Way(NamedTuple):
    """The method of an operation, and its fields that are called otherwise there."""

    method: str
    renamed: Mapping[str, str] = {}


WAYS: Mapping[str, Way] = {
    "event.ingest": Way("IngestEvent"),
    "event.range": Way("GetEvents", {"cursor": "continuation_token"}),
    "toc.root": Way("GetTocRoot"),
    "toc.node": Way("GetNode"),
    "toc.browse": Way("BrowseToc"),
    "toc.search_node": Way("SearchNode"),
    "toc.search_children": Way("SearchChildren"),
    "grip.expand": Way("ExpandGrip"),
    "scheduler.status": Way("GetSchedulerStatus"),
    "scheduler.pause": Way("PauseJob"),
    "scheduler.resume": Way("ResumeJob"),
}
SWITCHES = ("PauseJob", "ResumeJob")
"""Methods whose answer tells of no job: only whether there is one."""


class EndpointSession(Session):
    """Asks one gRPC endpoint. What its messages do not tell is empty in the report."""

    def __init__(self, client: MemoryClient, endpoint: str, scope: WireScope) -> None:
        super().__init__(f"the daemon at {endpoint}", None, None, scope)
        self._rpc = client
        self._given = {
            f"beetle-{name.replace('_', '-')}-bin": str(value).encode()
            for name, value in to_plain(scope).items()
            if value is not None
        }

    def call(self, operation: str, arguments: Any, key: str | None = None, deadline_ms: int | None = None) -> Report:
        """Run one operation.

        Raises:
            BeetleError: what the daemon answered; that nobody does.
        """
        way = WAYS[operation]
        asked = {way.renamed.get(name, name): value for name, value in to_plain(arguments).items()}
        metadata = dict(self._given) if key is None else {**self._given, "beetle-idempotency-key-bin": key.encode()}
        seconds = None if deadline_ms is None else deadline_ms / 1000
        ask = partial(self._method, metadata=metadata, timeout=seconds)
        found = _switched(ask, way.method, asked) if way.method in SWITCHES else ask(way.method, asked)
        return from_plain(_filled(found), BY_NAME[operation].report)

    def _method(
        self, method: str, asked: Mapping[str, Any], *, metadata: Mapping[str, bytes], timeout: float | None
    ) -> dict[str, Any]:
        from beetle.memory_client import ClientError, RpcFailed

        try:
            return self._rpc.ask(method, asked, metadata=metadata, timeout=timeout)
        except RpcFailed as failed:
            raise failed.error or ServicesUnavailable(reason=f"{self.place} answered {failed}") from None
        except ClientError as failed:
            raise unreached(failed) from None

    def close(self) -> None:
        """Close the connection."""
        self._rpc.close()

    def __exit__(self, *_: object) -> None:
        self.close()


def open_endpoint(endpoint: str, operation: str, scope: WireScope) -> EndpointSession:
    """A session at a gRPC endpoint.

    Raises:
        InvalidRequest: no endpoint, or an operation that this client does not ask over gRPC.
        ServicesUnavailable: this build has no gRPC.
        DaemonUnavailable: nobody answers there.
    """
    if operation not in WAYS:
        hint = f"leave --endpoint out: the socket has it; over gRPC there are {', '.join(WAYS)}"
        raise InvalidRequest(reason=f"{operation} is not asked over gRPC", hint=hint)
    try:
        from beetle.memory_client import ClientError, MemoryClient
    except ImportError:
        hint = "pip install 'beetle-memory[grpc]', or leave --endpoint out"
        raise ServicesUnavailable(reason="this build does not contain gRPC", hint=hint) from None
    try:
        return EndpointSession(MemoryClient.connect(endpoint), endpoint, scope)
    except ClientError as failed:
        raise unreached(failed) from None


def unreached(failed: Exception) -> BeetleError:
    """A client's own error as the command line tells it."""
    if getattr(failed, "kind", "") == "InvalidEndpoint":
        return InvalidRequest(reason=str(failed), hint="give http://HOST:PORT or unix:PATH after --endpoint")
    if getattr(failed, "kind", "") == "Connection":
        hint = "start one with `beetle serve --grpc ADDR`; without --endpoint the socket is asked"
        return DaemonUnavailable(reason=str(failed), hint=hint)
    return InvalidRequest(reason=str(failed), hint="a value does not fit into its field")


def _switched(ask: Ask, method: str, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Pause or resume a job, and tell of it what the status says before and after.

    Raises:
        NotFound: there is no such job.
    """
    name = asked["job_name"]
    before = _job(ask, name)
    if not ask(method, asked).get("success"):
        raise NotFound(kind="job", name=name, listing="`beetle scheduler status` lists the jobs")
    job = _job(ask, name)
    return {"success": True, "changed": before.get("is_paused") != job.get("is_paused"), "job": job}


def _job(ask: Ask, name: str) -> dict[str, Any]:
    jobs = ask("GetSchedulerStatus", {}).get("jobs", ())
    return {"job_name": name, **JOB, **next((each for each in jobs if each["job_name"] == name), {})}


def _filled(found: Mapping[str, Any]) -> dict[str, Any]:
    """An answer with every field of the report, where its message leaves out what is 0 or empty."""
    whole = dict(found)
    for name, value in found.items():
        if name in ("events", "events_before", "excerpt_events", "events_after"):
            whole[name] = [_event(each) for each in value]
        elif name in ("nodes", "children"):
            whole[name] = [{**NODE, **each} for each in value]
        elif name == "node":
            whole[name] = {**NODE, **value}
        elif name == "grip":
            whole[name] = {**GRIP, "conversation": NOWHERE, **value}
        elif name == "jobs":
            whole[name] = [{**JOB, **each} for each in value]
        elif name == "matches":
            whole[name] = [{**MATCH, **each} for each in value]
        elif name == "continuation_token":
            whole["next_cursor"] = value
    if "results" in found:
        whole["nodes"] = [_found(each) for each in found["results"]]
    missing = {"event_id": "", "created": False, "nodes": [], "children": [], "events": [], "matches": [], "jobs": []}
    return {
        **missing,
        "matched": False,
        "node": None,
        "grip": None,
        "scheduler_running": False,
        "time_zone": "",
        **whole,
    }


def _event(event: Mapping[str, Any]) -> dict[str, Any]:
    conversation = {"channel_id": "", "conversation_id": event.get("session_id", "")}
    return {"text": "", "role": "user", **EVENT, "conversation": conversation, **event}


def _found(each: Mapping[str, Any]) -> dict[str, Any]:
    matches = [{**MATCH, **match} for match in each.get("matches", ())]
    return {"node": {**NODE, **each}, "score": each.get("relevance_score", 0.0), "matches": matches}
