"""`MemoryClient`: events, the table of contents and the scheduler over gRPC, for who cannot use the Unix socket.

    from beetle.memory_client import Event, MemoryClient

    with MemoryClient.connect_default() as client:
        client.ingest(Event(event_id="e-1", session_id="s-1", timestamp_ms=0, event_type="user_message", text="Hello"))

It needs the extra `grpc`. Beside the daemon, `beetle.Client` over the socket does more.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Literal, TypeVar

import grpc
from msgspec import Struct, ValidationError, convert, json, to_builtins

from beetle.contracts.errors import BeetleError, from_wire
from beetle.contracts.events import Event as Event
from beetle.contracts.scheduler import JobResult
from beetle.contracts.toc import TocField, TocLevel
from beetle.hook_events import HookEvent as HookEvent
from beetle.hook_events import HookEventType as HookEventType
from beetle.hook_events import map_hook_event as map_hook_event
from beetle.named_tuple import NamedTuple
from beetle.rpc.messages import SERVICE, BadMessage, method_messages, to_message, to_plain

__all__ = [
    "DEFAULT_ENDPOINT",
    "BrowseTocResult",
    "ClientError",
    "ConnectionFailed",
    "Event",
    "ExpandGripResult",
    "FoundNode",
    "GetEventsResult",
    "Grip",
    "Hit",
    "HookEvent",
    "HookEventType",
    "InvalidEndpoint",
    "JobStatus",
    "MemoryClient",
    "RpcFailed",
    "SchedulerStatus",
    "SearchMatch",
    "SerializationFailed",
    "Tls",
    "TocBullet",
    "TocNode",
    "map_hook_event",
]  # fmt: skip

DEFAULT_ENDPOINT = "http://[::1]:50051"
CONNECT_SECONDS = 5.0
CALL_SECONDS = 30.0
ENDPOINT = re.compile(r"(?:(https?)://)?(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9.-]+):([0-9]{1,5})/?")
UNIX = re.compile(r"unix:(?://(?=/))?([^\x00]+)")
ZEROS = frozenset({"timestamp_ms", "from_timestamp_ms", "to_timestamp_ms", "start_time_ms", "end_time_ms", "score"})
"""Fields whose 0 says something, so that it is not taken for a field that was left out."""
T = TypeVar("T", bound=Struct)


class ClientError(Exception):
    """What went wrong; `kind` is one of Connection, Rpc, Serialization, InvalidEndpoint."""

    kind: ClassVar[str] = ""


class ConnectionFailed(ClientError):
    """Nothing answers at the endpoint, or the connection broke."""

    kind = "Connection"


class RpcFailed(ClientError):
    """The daemon answered with an error: `code` is gRPC's, `error` the daemon's own where it sent one."""

    kind = "Rpc"

    def __init__(self, code: grpc.StatusCode, message: str, error: BeetleError | None) -> None:
        super().__init__(f"{code.name}: {message}")
        self.code = code
        self.error = error


class SerializationFailed(ClientError):
    """A value that no message can hold, or an answer that is none."""

    kind = "Serialization"


class InvalidEndpoint(ClientError):
    """The endpoint is no URL of a host and port, and no `unix:` path."""

    kind = "InvalidEndpoint"


class TocBullet(Struct, frozen=True, kw_only=True):
    """One key point of a node, and the grips that lead to its events."""

    text: str = ""
    grip_ids: tuple[str, ...] = ()


class TocNode(Struct, frozen=True, kw_only=True):
    """A period of the table of contents, or a segment. Times in milliseconds since the epoch, both included."""

    node_id: str
    level: TocLevel
    title: str = ""
    summary: str | None = None
    bullets: tuple[TocBullet, ...] = ()
    keywords: tuple[str, ...] = ()
    child_node_ids: tuple[str, ...] = ()
    start_time_ms: int = 0
    end_time_ms: int = 0
    version: int = 0


class Grip(Struct, frozen=True, kw_only=True):
    """What a bullet rests on: an excerpt of a session's events, from one to another."""

    grip_id: str
    excerpt: str = ""
    event_id_start: str = ""
    event_id_end: str = ""
    timestamp_ms: int = 0
    source: str = ""


class BrowseTocResult(Struct, frozen=True, kw_only=True):
    """A page of children; the token leads to the next one."""

    children: tuple[TocNode, ...] = ()
    continuation_token: str | None = None
    has_more: bool = False


class GetEventsResult(Struct, frozen=True, kw_only=True):
    """A page of events by time; the token, which older servers do not send, leads to the next one."""

    events: tuple[Event, ...] = ()
    has_more: bool = False
    continuation_token: str | None = None


class ExpandGripResult(Struct, frozen=True, kw_only=True):
    """The events of a grip and around it; `grip` is None where there is none of that id."""

    grip: Grip | None = None
    events_before: tuple[Event, ...] = ()
    excerpt_events: tuple[Event, ...] = ()
    events_after: tuple[Event, ...] = ()


class JobStatus(Struct, frozen=True, kw_only=True):
    """A background job. Times in milliseconds since the epoch, 0 for never; durations in milliseconds."""

    job_name: str
    cron_expr: str = ""
    last_run_ms: int = 0
    last_duration_ms: int = 0
    last_result: JobResult = "unspecified"
    last_error: str | None = None
    next_run_ms: int = 0
    run_count: int = 0
    error_count: int = 0
    is_running: bool = False
    is_paused: bool = False


class SchedulerStatus(Struct, frozen=True, kw_only=True):
    """Whether jobs are started when they are due, and the jobs."""

    scheduler_running: bool = False
    jobs: tuple[JobStatus, ...] = ()


class SearchMatch(Struct, frozen=True, kw_only=True):
    """A text of a node that matches."""

    field: TocField
    text: str = ""
    grip_ids: tuple[str, ...] = ()
    score: float = 0.0


class FoundNode(Struct, frozen=True, kw_only=True):
    """A node that was found, and its bullets that match."""

    node_id: str
    level: TocLevel
    title: str = ""
    matches: tuple[SearchMatch, ...] = ()
    relevance_score: float = 0.0


class Hit(Struct, frozen=True, kw_only=True):
    """A record that recall found: its ref, its plane, its score and an excerpt."""

    doc_id: str
    doc_type: str = ""
    score: float = 0.0
    text_preview: str = ""


class Tls(NamedTuple):
    """Certificates, as PEM: the authority that signed the server's, and the client's own with its key."""

    authority: bytes | None = None
    certificate: bytes | None = None
    key: bytes | None = None


class MemoryClient:
    """A connection to the gRPC service of a daemon; threads may share it, and forked processes make one each.

    Every method raises ClientError: ConnectionFailed, RpcFailed, SerializationFailed.
    """

    def __init__(self, endpoint: str, *, tls: Tls | None = None, metadata: Mapping[str, str] | None = None) -> None:
        """Connects when it is first used; `connect` does at once.

        Args:
            endpoint: `http://HOST:PORT`, `https://HOST:PORT` or `unix:PATH`.
            tls: certificates for an `https` endpoint; left out, the authorities of gRPC.
            metadata: sent with every call: `beetle-device-id` and `beetle-app-key`, a scope.

        Raises:
            InvalidEndpoint: it is none of these.
        """
        secure, target = _target(endpoint)
        self._process = os.getpid()
        self._metadata = tuple((metadata or {}).items())
        options = (("grpc.max_receive_message_length", -1),)
        if secure:
            given = tls or Tls()
            credentials = grpc.ssl_channel_credentials(given.authority, given.key, given.certificate)
            self._channel = grpc.secure_channel(target, credentials, options=options)
        else:
            self._channel = grpc.insecure_channel(target, options=options)

    @classmethod
    def connect(
        cls, endpoint: str, *, tls: Tls | None = None, metadata: Mapping[str, str] | None = None
    ) -> MemoryClient:
        """A client whose daemon has answered.

        Raises:
            InvalidEndpoint: no endpoint.
            ConnectionFailed: no server answers there within 5 s.
        """
        client = cls(endpoint, tls=tls, metadata=metadata)
        try:
            grpc.channel_ready_future(client._channel).result(CONNECT_SECONDS)
        except grpc.FutureTimeoutError:
            client.close()
            raise ConnectionFailed(f"no server answers at {endpoint}") from None
        return client

    @classmethod
    def connect_default(cls) -> MemoryClient:
        """A client of `http://[::1]:50051`."""
        return cls.connect(DEFAULT_ENDPOINT)

    def close(self) -> None:
        """Close the connection. A second call does nothing."""
        self._channel.close()

    def __enter__(self) -> MemoryClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def ingest(self, event: Event) -> tuple[str, bool]:
        """Keep an event: its id, and whether it is new. What an id names already stays as it came first."""
        told = self.ask("IngestEvent", {"event": to_builtins(event)})
        return told.get("event_id", ""), told.get("created", False)

    def ingest_batch(self, events: Iterable[Event]) -> int:
        """Keep events one after another, until one is refused; how many of them are new."""
        return sum(self.ingest(event)[1] for event in events)

    def get_toc_root(self) -> tuple[TocNode, ...]:
        """The years, newest first."""
        return tuple(_read(each, TocNode) for each in self.ask("GetTocRoot", {}).get("nodes", ()))

    def get_node(self, node_id: str) -> TocNode | None:
        """A node, or None where there is none of that id."""
        found = self.ask("GetNode", {"node_id": node_id}).get("node")
        return None if found is None else _read(found, TocNode)

    def browse_toc(self, parent_id: str, limit: int = 20, continuation_token: str | None = None) -> BrowseTocResult:
        """A page of a node's children in order of time."""
        asked = {"parent_id": parent_id, "limit": limit, "continuation_token": continuation_token}
        return _read(self.ask("BrowseToc", asked), BrowseTocResult)

    def get_events(
        self, from_timestamp_ms: int, to_timestamp_ms: int, limit: int = 50, continuation_token: str | None = None
    ) -> GetEventsResult:
        """A page of the events between two times, both included."""
        asked = {
            "from_timestamp_ms": from_timestamp_ms,
            "to_timestamp_ms": to_timestamp_ms,
            "limit": limit,
            "continuation_token": continuation_token,
        }
        return _read(self.ask("GetEvents", asked), GetEventsResult)

    def expand_grip(
        self, grip_id: str, events_before: int | None = None, events_after: int | None = None
    ) -> ExpandGripResult:
        """The events that a grip refers to, with 3 before and after them unless others are asked for."""
        asked = {"grip_id": grip_id, "events_before": events_before, "events_after": events_after}
        return _read(self.ask("ExpandGrip", asked), ExpandGripResult)

    def search_node(
        self, node_id: str, query: str, fields: Iterable[TocField] = (), limit: int = 10
    ) -> tuple[SearchMatch, ...]:
        """The texts of a node that match, best first."""
        asked = {"node_id": node_id, "query": query, "fields": list(fields), "limit": limit}
        return tuple(_read(each, SearchMatch) for each in self.ask("SearchNode", asked).get("matches", ()))

    def search_children(
        self, query: str, parent_id: str = "", child_level: TocLevel | None = None, limit: int = 10
    ) -> tuple[FoundNode, ...]:
        """The children of a node, or the nodes of a level, that match, best first."""
        asked = {"query": query, "parent_id": parent_id, "child_level": child_level, "limit": limit}
        return tuple(_read(each, FoundNode) for each in self.ask("SearchChildren", asked).get("results", ()))

    def search(self, query: str, limit: int = 10) -> tuple[Hit, ...]:
        """What recall finds in all of memory, best first."""
        found = self.ask("RouteQuery", {"query": query, "limit": limit}).get("results", ())
        return tuple(_read(each, Hit) for each in found)

    def get_scheduler_status(self) -> SchedulerStatus:
        """The background jobs."""
        return _read(self.ask("GetSchedulerStatus", {}), SchedulerStatus)

    def pause_job(self, job_name: str) -> tuple[bool, str | None]:
        """Pause a job: whether that was done, and else why not."""
        return self._changed("PauseJob", job_name)

    def resume_job(self, job_name: str) -> tuple[bool, str | None]:
        """Resume a job: whether that was done, and else why not."""
        return self._changed("ResumeJob", job_name)

    def _changed(self, method: Literal["PauseJob", "ResumeJob"], job_name: str) -> tuple[bool, str | None]:
        told = self.ask(method, {"job_name": job_name})
        return told.get("success", False), told.get("error")

    def ask(
        self,
        method: str,
        fields: Mapping[str, Any],
        metadata: Mapping[str, str | bytes] | None = None,
        timeout: float | None = None,
    ) -> dict[str, Any]:
        """The fields of any method's answer: what is 0 or empty may be missing. `timeout` is in seconds, 30 otherwise.

        Raises:
            KeyError: no such method.
        """
        if os.getpid() != self._process:
            # What gRPC does with it here depends on its version and settings: it may hang.
            raise ConnectionFailed("the client is that of the process that forked this one: make one here")
        request_class, answer_class = method_messages(method)
        try:
            data = to_message(request_class, fields)
        except BadMessage as error:
            raise SerializationFailed(str(error)) from None
        given = (*self._metadata, *(metadata or {}).items())
        call: Any = self._channel.unary_unary(
            f"/{SERVICE}/{method}", request_class.SerializeToString, answer_class.FromString
        )
        try:
            answer = call(data, timeout=timeout or CALL_SECONDS, metadata=given)
        except grpc.RpcError as error:
            raise _failed(error) from None
        except ValueError as error:  # the client was closed
            raise ConnectionFailed(str(error)) from None
        return to_plain(answer, ZEROS)


def _target(endpoint: str) -> tuple[bool, str]:
    """Whether TLS is wanted, and the address as gRPC writes it."""
    if (found := UNIX.fullmatch(endpoint)) is not None:
        return False, f"unix:{os.path.abspath(found[1])}"
    found = ENDPOINT.fullmatch(endpoint)
    if found is None or not 0 < int(found[3]) < 65536:
        raise InvalidEndpoint(f"{endpoint!r} is no http://HOST:PORT, https://HOST:PORT or unix:/PATH")
    return found[1] == "https", f"{found[2]}:{found[3]}"


def _failed(error: Any) -> ClientError:
    """An RPC's error: the daemon's own where it sent one; UNAVAILABLE without one is the connection's."""
    sent = {key: value for key, value in error.trailing_metadata() or ()}
    told = sent.get("beetle-error-bin")
    if told is None and error.code() is grpc.StatusCode.UNAVAILABLE:
        return ConnectionFailed(error.details() or "the connection broke")
    ours = None if told is None else from_wire(**json.decode(told))
    return RpcFailed(error.code(), error.details() or "", ours)


def _read(values: Mapping[str, Any], kind: type[T]) -> T:
    try:
        return convert(values, kind)
    except ValidationError as error:
        raise SerializationFailed(f"the answer is none: {error}") from None
