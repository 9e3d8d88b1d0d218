"""What goes over the wire: requests, answers, events (WIRE.md §2)."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from beetle.contracts.common import WireScope

PROTOCOL = 1

RequestId = int | Annotated[str, Meta(max_length=64)]


class DeviceAuth(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A device's own credentials; `app_key` is never logged or stored."""

    device_id: Annotated[str, Meta(min_length=1, max_length=256)]
    app_key: Annotated[str, Meta(min_length=1, max_length=256)]

    def __repr__(self) -> str:
        return f"DeviceAuth(device_id={self.device_id!r}, app_key=…)"


class WireRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One request frame. `args` stays undecoded until the caller is authorized."""

    v: int
    id: RequestId
    op: Annotated[str, Meta(min_length=1, max_length=128)]
    args: Raw = Raw(b"\x80")
    scope: WireScope | None = None
    idempotency_key: Annotated[str, Meta(min_length=1, max_length=128)] | None = None
    deadline_ms: Annotated[int, Meta(ge=1, le=86_400_000)] | None = None
    auth: DeviceAuth | None = None


class WireError(Struct, frozen=True, kw_only=True):
    key: str
    message: str
    hint: str
    retryable: bool
    details: dict[str, Any]


class WireAnswer(Struct, frozen=True, kw_only=True):
    """One answer frame: `report` when ok, else `error`."""

    v: int = PROTOCOL
    id: RequestId | None
    ok: bool
    report: Any | UnsetType = UNSET
    error: WireError | UnsetType = UNSET
    repeated: bool | UnsetType = UNSET


class WireEvent(Struct, frozen=True, kw_only=True):
    """One event frame of a subscription; `seq` is the event's number, as `event_log.read` has it for this caller.

    `event` holds ids and kinds. A slow reader gets one frame without topic and seq, whose event is `{dropped: N}`.
    How far a call is, which stands in no log, comes without seq: `{event: "progress", operation, id, step, number,
    steps, done, of}`, with the request's id, in the `number`th of its `steps`, `of` 0 where nobody can count.
    """

    v: int = PROTOCOL
    sub: str
    topic: str | UnsetType = UNSET
    event: dict[str, Any]
    seq: int | UnsetType = UNSET
