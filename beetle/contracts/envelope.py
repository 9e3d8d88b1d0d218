"""What goes over the wire: requests, answers, events (WIRE.md §2)."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from beetle.contracts.common import WireScope

PROTOCOL = 1

Deadline = Annotated[int, Meta(ge=1, le=86_400_000)]
"""How long a request may take, in milliseconds."""
RequestId = int | Annotated[str, Meta(max_length=64)]


class DeviceAuth(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A device's own credentials; `app_key` is never logged or stored."""

    device_id: Annotated[str, Meta(min_length=1, max_length=256)]
    app_key: Annotated[str, Meta(min_length=1, max_length=256)]

    def __repr__(self) -> str:
        return f"DeviceAuth(device_id={self.device_id!r}, app_key=…)"


class PrincipalAuth(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """As whom an operator asks: a configured principal of lesser rights. No secret: the kernel says who the peer is."""

    principal: Annotated[str, Meta(min_length=1, max_length=64)]


Auth = DeviceAuth | PrincipalAuth
"""What a request may say of whom it is from, beside what the transport knows."""
Credential = Annotated[str, Meta(min_length=1, max_length=256)]


class WireAuth(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`auth` of a request frame: a device's two fields, or `principal`."""

    device_id: Credential | UnsetType = UNSET
    app_key: Credential | UnsetType = UNSET
    principal: Annotated[str, Meta(min_length=1, max_length=64)] | UnsetType = UNSET

    def __post_init__(self) -> None:
        device = {"device_id": self.device_id, "app_key": self.app_key}
        if self.principal is not UNSET:
            if any(each is not UNSET for each in device.values()):
                raise ValueError("auth takes device_id and app_key, or principal")
            return
        for name, each in device.items():
            if each is UNSET:
                # In the words of any other field that is missing, so that its path is told alike.
                raise ValueError(f"Object missing required field `{name}`")

    @property
    def given(self) -> Auth:
        """What it says."""
        if self.principal is not UNSET:
            return PrincipalAuth(principal=self.principal)
        assert self.device_id is not UNSET and self.app_key is not UNSET
        return DeviceAuth(device_id=self.device_id, app_key=self.app_key)

    def __repr__(self) -> str:
        return f"WireAuth(device_id={self.device_id!r}, app_key=…, principal={self.principal!r})"


class WireRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One request frame. `args` stays undecoded until the caller is authorized."""

    v: int
    id: RequestId
    op: Annotated[str, Meta(min_length=1, max_length=128)]
    args: Raw = Raw(b"\x80")
    scope: WireScope | None = None
    idempotency_key: Annotated[str, Meta(min_length=1, max_length=128)] | None = None
    deadline_ms: Deadline | None = None
    auth: WireAuth | None = None


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
