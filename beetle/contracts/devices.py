"""Devices and communication entries: who may speak to the daemon with a key of its own, and over what."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from beetle.contracts.common import Cursor, PageLimit, Report
from beetle.contracts.fields import NO_CONTROL, Id, Open, OperatorOnly, Piece, Request, Secret

DeviceState = Literal["active", "suspended", "revoked"]
TransportName = Literal["in_process", "unix_socket", "cli", "mcp_stdio", "http", "grpc"]

DeviceId = Annotated[Id, Meta(description="the device's id")]
DeviceLabel = Annotated[
    str, Meta(min_length=1, max_length=256, pattern=NO_CONTROL, description="what people call the device")
]
CapabilityNames = Annotated[
    tuple[Annotated[str, Meta(min_length=1, max_length=64)], ...],
    Meta(max_length=64, description="what it may do: names that `memory.capabilities` lists"),
]


class Device(Piece, frozen=True, kw_only=True):
    """A device as it is known here. Its key is kept nowhere; the fingerprint tells one key from another.

    `last_seen` is when it last proved itself, exact to a minute after a restart; `connections` are those that are open
    now and have proved its present key.
    """

    device_id: Open[str]
    label: Open[str]
    state: Open[DeviceState]
    owner_id: Open[str]
    agent_id: Open[str]
    capabilities: Open[tuple[str, ...]]
    appKeyFingerprint: Open[str]
    created_at: Open[str]
    updated_at: Open[str]
    last_seen: Open[str | None]
    connections: Open[int]


class DeviceListRequest(Request, frozen=True, kw_only=True):
    """List devices in the order in which they were added, by the fingerprints of their keys."""

    state: Annotated[DeviceState, Meta(description="only devices in this state")] | None = None
    limit: PageLimit = 50
    cursor: Cursor | None = None


class DeviceListReport(Report, frozen=True, kw_only=True):
    """`total` counts what the request asked for, not the page."""

    total: Open[int]
    devices: Open[tuple[Device, ...]]
    has_more: Open[bool] = False
    next_cursor: Open[str | None] = None


class DeviceAddRequest(Request, frozen=True, kw_only=True):
    """Add a device, and make the key that it proves itself with."""

    label: DeviceLabel
    capabilities: CapabilityNames
    owner_id: Annotated[Id, Meta(description="whose memory it works on; the scope's owner when left out")] | None = None
    agent_id: Annotated[Id, Meta(description="which agent it is; the scope's when left out")] | None = None
    device_id: Annotated[Id, Meta(description="the device's id; made up when left out")] | None = None


class DeviceKeyReport(Report, frozen=True, kw_only=True):
    """A device and, in this one answer, its key: a repeated report has it absent, and nothing shows it again."""

    device: Open[Device]
    appKeyOnce: Secret[str | None] = None


class DeviceUpdateRequest(Request, frozen=True, kw_only=True):
    """Change a device's label, state or capabilities; what is left out stays. Holds from its next request on."""

    device_id: DeviceId
    label: DeviceLabel | None = None
    state: Annotated[DeviceState, Meta(description="suspended can be undone, revoked can not")] | None = None
    capabilities: CapabilityNames | None = None

    def __post_init__(self) -> None:
        if self.label is None and self.state is None and self.capabilities is None:
            raise ValueError("give at least one of label, state, capabilities")


class DeviceReport(Report, frozen=True, kw_only=True):
    """The device as it is now."""

    device: Open[Device]


class DeviceRotateKeyRequest(Request, frozen=True, kw_only=True):
    """Give a device another key; the one before is worth nothing from then on."""

    device_id: DeviceId


class DeviceRemoveRequest(Request, frozen=True, kw_only=True):
    """Remove a device; what it wrote stays."""

    device_id: DeviceId


class DeviceRemovedReport(Report, frozen=True, kw_only=True):
    """The device that is no longer known."""

    device_id: Open[str]


class TransportEntry(Piece, frozen=True, kw_only=True):
    """One way in. `allowed` is the profile's word, `built` the build's, `enabled` the operator's.

    `configurable` says what an operator may change. `listening` is whether it waits for callers now, at `endpoint`;
    one that waits for none has no endpoint. `connections` are those that are open over it.
    """

    name: Open[TransportName]
    allowed: Open[bool]
    built: Open[bool]
    enabled: Open[bool]
    configurable: Open[tuple[Literal["enabled", "endpoint"], ...]]
    listening: Open[bool]
    endpoint: OperatorOnly[str | None]
    connections: Open[int]
    updated_at: Open[str | None] = None


class TransportListRequest(Request, frozen=True, kw_only=True):
    """List the ways in, and which of them are open."""


class TransportListReport(Report, frozen=True, kw_only=True):
    """Every way in that there is, in one order."""

    transports: Open[tuple[TransportEntry, ...]]


class TransportUpdateRequest(Request, frozen=True, kw_only=True):
    """Open or close a way in, or say where it listens."""

    name: Annotated[TransportName, Meta(description="the way in")]
    enabled: Annotated[bool, Meta(description="whether callers other than operators may use it")] | None = None
    endpoint: (
        Annotated[
            str, Meta(min_length=1, max_length=261, pattern=NO_CONTROL, description="where it listens: HOST:PORT")
        ]
        | None
    ) = None

    def __post_init__(self) -> None:
        if self.enabled is None and self.endpoint is None:
            raise ValueError("give at least one of enabled, endpoint")


class TransportReport(Report, frozen=True, kw_only=True):
    """The way in as it is now."""

    transport: Open[TransportEntry]
