"""What the clients share, without input and output: requests and answers as frames, what is tried again and when."""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from _weakrefset import WeakSet  # of weakref, which would load more
from collections.abc import Mapping
from functools import cache
from typing import Any, ClassVar, Protocol, TypeVar, cast

import msgpack
from msgspec import MsgspecError, Struct
from msgspec.structs import fields

from beetle.contracts.codec import UNSET, Raw, check_values, convert_request, pack, to_wire, unpack
from beetle.contracts.common import DEFAULT_CHANNEL, Conversation, Report, WireScope
from beetle.contracts.envelope import PROTOCOL, Auth, Deadline, DeviceAuth, PrincipalAuth, RequestId, WireError
from beetle.contracts.errors import DaemonUnavailable, InvalidFrame, InvalidRequest, from_wire
from beetle.contracts.operations import BY_NAME
from beetle.contracts.progress import PROGRESS, PROGRESS_TOPIC, ProgressStep

T = TypeVar("T")

FIRST_WAIT_S = 0.02
LONGEST_WAIT_S = 1.0
LONGEST_S = 2_000_000.0
"""What poll() can wait is a little more, and whoever gives a longer time has no end in mind."""
CHUNK = 65_536
OF_PARENT = "the connection is that of the process that forked this one"
DEADLINE = "$.deadline_ms"
TIME_BITS = 2**48 - 1
"""Of a key's time, in milliseconds."""


class NoDaemon(DaemonUnavailable, ConnectionError):
    """Nobody answers at the socket: a `BeetleError` with the key `daemon_unavailable`, and a ConnectionError."""

    template = "no daemon answers at {path} ({reason})"

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(path=path, reason=reason)
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return NoDaemon, (self.path, self.details["reason"])


class ClientClosed(ConnectionError):
    """The client was closed, before the call or while it waited."""

    def __init__(self, path: str) -> None:
        super().__init__(f"the client of {path} is closed")
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return ClientClosed, (self.path,)


class _InDoubt(OSError):
    """A request may have been done. Repeated under `idempotency_key` it is done once; None is of a read, or a
    subscription."""

    said: ClassVar[str]

    def __init__(self, path: str, idempotency_key: str | None) -> None:
        told = self.said.format(path=path)
        if idempotency_key is not None:
            told += f"; it may have been done: repeat it with the idempotency key {idempotency_key}"
        super().__init__(told)
        self.path = path
        self.idempotency_key = idempotency_key

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.path, self.idempotency_key)


class ConnectionLost(_InDoubt, ConnectionError):
    """The connection was lost behind a request, and not restored in time: the request may have been done.

    Repeated under `idempotency_key` it is done once; None is of a read, or a subscription.
    """

    said = "the connection to {path} was lost during a request, and could not be restored in time"


class Unanswered(_InDoubt, TimeoutError):
    """The answer did not come in time: the request may have been done.

    Repeated under `idempotency_key` it is done once; None is of a read.
    """

    said = "the daemon at {path} did not answer in time"


class NotSent(ConnectionResetError):
    """The connection had ended before all of a request was sent, which therefore was not done."""

    def __init__(self) -> None:
        super().__init__("the daemon closed the connection before the request was sent")

    def __reduce__(self) -> tuple[Any, ...]:
        return NotSent, ()


class Forking(Protocol):
    """Holds what a forked process must not use."""

    def leave_to_parent(self) -> None:
        """In a child that was just forked: drop what is the parent's, and take nothing away from it."""
        ...


_forking: WeakSet[Forking] = WeakSet()


def told_of_forks(holder: Forking) -> None:
    """Have the holder told in every child that is forked while it lives, before anything else runs there."""
    _forking.add(holder)


def _tell_of_fork() -> None:
    for each in list(_forking):
        each.leave_to_parent()


os.register_at_fork(after_in_child=_tell_of_fork)


class Sent(Struct, omit_defaults=True):
    """A request as it is sent; what is left out is not sent at all."""

    id: int
    op: str
    v: Any = UNSET
    args: Any = UNSET
    scope: WireScope | None = None
    idempotency_key: str | None = None
    deadline_ms: int | None = None
    auth: Auth | None = None


class Received(Struct):
    """An answer or an event; the report stays encoded until its type is known."""

    id: RequestId | None = None
    ok: bool | None = None
    report: Raw = Raw(b"\xc0")
    error: WireError | None = None
    repeated: bool = False
    sub: str | None = None
    event: Raw = Raw(b"\x80")


class Said(Struct):
    """The event of a frame that says how far a call is; others have other fields."""

    event: str = ""
    id: RequestId | None = None
    step: str = ""
    number: int = 0
    steps: int = 0
    done: int = 0
    of: int = 0


class Requests:
    """Makes the requests of one caller.

    Raises:
        InvalidRequest: both a device and a principal were given.
    """

    def __init__(self, scope: WireScope | None, device: DeviceAuth | None, as_: str | None) -> None:
        if device is not None and as_ is not None:
            raise InvalidRequest(reason="auth and as_ exclude each other", hint="give one of them")
        self.scope = scope
        self.device = device
        self.as_ = as_
        self._auth: Auth | None = device if as_ is None else PrincipalAuth(principal=as_)
        self._ids = itertools.count(1)

    def make(
        self,
        operation: str,
        arguments: Any,
        scope: WireScope | None = None,
        idempotency_key: str | None = None,
        deadline_ms: int | None = None,
    ) -> Sent:
        """A request that has its id.

        Raises:
            InvalidRequest: `deadline_ms` is none that a daemon takes.
        """
        deadline = None if deadline_ms is None else convert_request(deadline_ms, cast(type[int], Deadline), DEADLINE)
        return Sent(
            v=PROTOCOL,
            id=next(self._ids),
            op=operation,
            args={} if arguments is None else arguments,
            scope=scope or self.scope,
            idempotency_key=idempotency_key,
            deadline_ms=deadline,
            auth=self._auth,
        )

    def follow(self) -> Sent:
        """The subscription that progress comes by."""
        return self.make("subscribe", {"topics": [PROGRESS_TOPIC]})


class Patience:
    """What is tried again, and after how long.

    Args:
        end: in monotonic seconds.
        away: seconds for which a daemon is waited for that went away behind a request.
        key: under which the request can be repeated.
    """

    def __init__(self, end: float, retry: bool, away: float, key: str | None) -> None:
        self._end = end
        self._retry = retry
        self._away = away
        self._key = key
        self._wait = FIRST_WAIT_S
        self._back_by: float | None = None

    def after_loss(self, lost: ConnectionError, path: str) -> float:
        """Seconds to wait after a lost connection to `path`, or where nobody answers and a request may have been done.

        Raises:
            ConnectionError: `lost`, when nothing more is tried.
            ConnectionLost: the same, if the request may have been done.
        """
        end = self._end
        if isinstance(lost, NoDaemon):
            if self._back_by is None:
                raise lost
            end = min(end, self._back_by)
        elif not isinstance(lost, NotSent):
            self._back_by = time.monotonic() + self._away
        if not self._retry:
            raise lost
        if time.monotonic() + self._wait > end:
            if self._back_by is None:
                raise lost
            raise ConnectionLost(path, self._key) from lost
        return self._next()

    def told_late(self, late: TimeoutError, path: str) -> TimeoutError:
        """What a timeout is told as: with the key of a request that may have been done on a connection before."""
        if self._back_by is None or isinstance(late, Unanswered):
            return late
        return Unanswered(path, self._key)

    def after(self, error: WireError) -> float:
        """Seconds to wait after an error that the daemon answered; raises it as what it is when it stands."""
        self._wait = max(self._wait, _retry_after(error))
        if not self._retry or not error.retryable or time.monotonic() + self._wait > self._end:
            raise from_wire(error.key, error.message, error.hint, error.retryable, error.details)
        return self._next()

    def _next(self) -> float:
        wait = min(self._wait, LONGEST_WAIT_S)
        self._wait = min(self._wait * 2, LONGEST_WAIT_S)
        return wait


class Frames:
    """Cuts what a connection receives into frames."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._buffer = bytearray()
        self._start = 0
        self._unpacker = msgpack.Unpacker(max_buffer_size=0)

    def feed(self, data: bytes) -> None:
        """What was received next. Raises InvalidFrame when a frame does not end."""
        try:
            self._unpacker.feed(data)
        except msgpack.BufferFull:
            raise _foreign(self._path) from None
        self._buffer += data

    def next_frame(self) -> bytes | None:
        """The next frame; None until more was received.

        Raises:
            InvalidFrame: what was received is none.
        """
        try:
            self._unpacker.skip()
        except msgpack.OutOfData:
            return None
        except ValueError:
            raise _foreign(self._path) from None
        stop = self._unpacker.tell()
        frame = bytes(self._buffer[: stop - self._start])
        del self._buffer[: stop - self._start]
        self._start = stop
        return frame


def key_of(operation: str, given: str | None) -> str | None:
    """The idempotency key of a call: one of its own where it may change something."""
    row = BY_NAME.get(operation)
    if given is not None or (row is not None and row.effect == "read"):
        return given
    # A time comes first, as in a UUIDv7 (RFC 9562, section 5.7): the newest keys stand beside each other in their
    # index, and a commit of many writes one page of it. `secrets` would load a crypto library into every command.
    return f"{time.time_ns() // 1_000_000 & TIME_BITS:012x}{os.urandom(10).hex()}"


def seconds_of(name: str, given: Any, *, zero: bool = False) -> float:
    """A time as it is given to a client, as long as a socket can wait.

    Raises:
        InvalidRequest: it is no number above 0; with `zero`, 0 is one that does not wait.
    """
    if isinstance(given, int | float) and (given > 0 or (zero and given == 0)):
        return float(min(given, LONGEST_S))
    least = "of 0 or more" if zero else "above 0"
    raise InvalidRequest(reason=f"{name} is no number {least}", hint=f"give {name} in seconds, as a number {least}")


def seconds_for(request: Sent, timeout: float) -> float:
    """How long a call may take with all its tries: what may take long is waited for until its own deadline."""
    row = BY_NAME.get(request.op)
    longest = max(request.deadline_ms or 0, 0 if row is None else row.deadline_ms or 0)
    return max(timeout, longest / 1000)


def report_of(answer: Received, operation: str, path: str) -> Report:
    """The report, of the table's type; a bare `Report` for what only the daemon knows."""
    row = BY_NAME.get(operation)
    return decoded(answer.report, Report if row is None else row.report, path)


def step_of(said: Said) -> ProgressStep | None:
    """How far the call is, when the event says that."""
    return ProgressStep(said.step, said.number, said.steps, said.done, said.of) if said.event == PROGRESS else None


def packed(request: Sent) -> bytes:
    """Raises InvalidRequest for arguments that no frame can hold, with the path as the daemon would give it."""
    try:
        # A typed request's times become text: as MessagePack they would be an extension, which no frame may hold.
        request.args = to_wire(request.args)
        return pack(request)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        with contextlib.suppress(RecursionError):
            check_values(request.args, "$.args")
        raise InvalidRequest(reason=f"the arguments cannot be sent: {error}", path="$.args") from None


def decoded(data: bytes | Raw, kind: type[T], path: str) -> T:
    """What the daemon at `path` sent. Raises InvalidFrame for what is none, or nested too deeply."""
    try:
        return unpack(data, kind)
    except (MsgspecError, UnicodeDecodeError, RecursionError):
        raise _foreign(path) from None


def _foreign(path: str) -> InvalidFrame:
    hint = "is this a beetle daemon's socket, and is the daemon not much newer than this client?"
    return InvalidFrame(reason=f"the answer at {path} is not valid", hint=hint)


def _retry_after(error: WireError) -> float:
    asked = error.details.get("retry_after_ms", 0)
    return asked / 1000 if isinstance(asked, int) else 0.0


def session_scope(
    base: WireScope | None, owner: str | None, agent: str | None, conversation: str | None, channel: str | None
) -> WireScope:
    """The scope of a session: what is given, else what `base` has."""
    base = base or WireScope()
    return WireScope(
        owner_id=owner or base.owner_id,
        agent_id=agent or base.agent_id,
        channel=channel or base.channel,
        chat_id=base.chat_id,
        conversation_id=conversation or base.conversation_id,
    )


def conversation_of(scope: WireScope) -> Conversation | None:
    """The conversation that a scope names."""
    if scope.conversation_id is None:
        return None
    return Conversation(channel_id=scope.channel or DEFAULT_CHANNEL, conversation_id=scope.conversation_id)


def filled(operation: str, arguments: Any, conversation: Conversation | None) -> Any:
    """Arguments of a call, or of each call of a batch, with the conversation where a request needs one and has none."""
    if conversation is None or not (arguments is None or isinstance(arguments, Mapping)):
        return arguments
    given = cast("Mapping[str, Any]", arguments or {})
    if operation == "batch" and isinstance(given.get("requests"), list | tuple):
        return {**given, "requests": [_filled_item(each, conversation) for each in given["requests"]]}
    return {"conversation": conversation, **given} if _needs_conversation(operation) else arguments


def _filled_item(item: Any, conversation: Conversation) -> Any:
    if not isinstance(item, Mapping) or not isinstance(item.get("op"), str):
        return item  # a struct, whose arguments are encoded; or what the daemon refuses
    return {**item, "args": filled(item["op"], item.get("args"), conversation) or {}}


@cache
def _needs_conversation(operation: str) -> bool:
    row = BY_NAME.get(operation)
    kinds = () if row is None else row.kinds
    return any(field.required and field.name == "conversation" for kind in kinds for field in fields(kind))
