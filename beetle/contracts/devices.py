"""Devices and communication entries: which devices may connect with a key of their own, and over what."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from beetle.contracts.common import Cursor, PageLimit, Report
from beetle.contracts.fields import NO_CONTROL, Id, Open, OpenText, OperatorOnly, Piece, Request, Secret
from beetle.contracts.names import TransportName
from beetle.contracts.operation import DEVICE, TRANSPORT, Operation, Tool

DeviceState = Literal["active", "suspended", "revoked"]

DeviceId = Annotated[Id, Meta(description="the device's id")]
DeviceLabel = Annotated[
    str, Meta(min_length=1, max_length=256, pattern=NO_CONTROL, description="display name of the device")
]
CapabilityNames = Annotated[
    tuple[Annotated[str, Meta(min_length=1, max_length=64)], ...],
    Meta(max_length=64, description="capabilities to grant: names that `memory.capabilities` lists"),
]


class Device(Piece, frozen=True, kw_only=True):
    """A registered device. Its key is stored nowhere; the fingerprint distinguishes keys.

    `last_seen` is when it last proved itself, exact to a minute after a restart; `connections` are those that are open
    now and have proved its present key.
    """

    device_id: Open[str]
    label: OpenText[str]
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
    """Add a device, and create the key with which it authenticates."""

    label: DeviceLabel
    capabilities: CapabilityNames
    owner_id: (
        Annotated[Id, Meta(description="owner of the memory that the device uses; default: the scope's owner")] | None
    ) = None
    agent_id: Annotated[Id, Meta(description="the device's agent; default: the scope's agent")] | None = None
    device_id: Annotated[Id, Meta(description="the device's id; default: generated")] | None = None


class DeviceKeyReport(Report, frozen=True, kw_only=True):
    """A device and, in this one answer, its key: a repeated report has it absent, and nothing shows it again."""

    device: Open[Device]
    appKeyOnce: Secret[str | None] = None


class DeviceUpdateRequest(Request, frozen=True, kw_only=True):
    """Change a device's label, state or capabilities; omitted fields stay. Applies from its next request."""

    device_id: DeviceId
    label: DeviceLabel | None = None
    state: Annotated[DeviceState, Meta(description="suspended can be undone; revoked is permanent")] | None = None
    capabilities: CapabilityNames | None = None

    def __post_init__(self) -> None:
        if self.label is None and self.state is None and self.capabilities is None:
            raise ValueError("give at least one of label, state, capabilities")


class DeviceReport(Report, frozen=True, kw_only=True):
    """The device as it is now."""

    device: Open[Device]


class DeviceRotateKeyRequest(Request, frozen=True, kw_only=True):
    """Replace a device's key; the old key is invalid at once."""

    device_id: DeviceId


class DeviceRemoveRequest(Request, frozen=True, kw_only=True):
    """Remove a device; the records that it wrote stay."""

    device_id: DeviceId


class DeviceRemovedReport(Report, frozen=True, kw_only=True):
    """The device that is no longer known."""

    device_id: Open[str]


class TransportEntry(Piece, frozen=True, kw_only=True):
    """One transport. `allowed` comes from the profile, `built` from the build, `enabled` from the operator.

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
    connections: OperatorOnly[int | None]
    updated_at: Open[str | None] = None


class TransportListRequest(Request, frozen=True, kw_only=True):
    """List the transports and their state."""


class TransportListReport(Report, frozen=True, kw_only=True):
    """Every transport, in a fixed order."""

    transports: Open[tuple[TransportEntry, ...]]


class TransportUpdateRequest(Request, frozen=True, kw_only=True):
    """Open or close a transport, or set its endpoint."""

    name: Annotated[TransportName, Meta(description="the transport")]
    enabled: Annotated[bool, Meta(description="whether callers other than operators may use it")] | None = None
    endpoint: (
        Annotated[
            str, Meta(min_length=1, max_length=261, pattern=NO_CONTROL, description="address to listen on: HOST:PORT")
        ]
        | None
    ) = None

    def __post_init__(self) -> None:
        if self.enabled is None and self.endpoint is None:
            raise ValueError("give at least one of enabled, endpoint")


class TransportReport(Report, frozen=True, kw_only=True):
    """The current state of the transport."""

    transport: Open[TransportEntry]


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "device.list", "list_devices", DeviceListRequest, DeviceListReport, "read", "device", DEVICE,
        ("device", "list"),
        "list devices in the order in which they were added, by the fingerprints of their keys",
    ),
    Operation(
        "device.add", "add_device", DeviceAddRequest, DeviceKeyReport, "admin", "device", DEVICE, ("device", "add"),
        "add a device, and create the key with which it authenticates",
        batch=False, word="label",
        example={"label": "Kitchen display", "capabilities": ["recall", "project"]},
        shell=(
            "beetle device add 'Kitchen display' --capabilities recall,project --write-auth kitchen.json",
            "beetle --auth-file kitchen.json memory recall 'when is dinner'",
        ),
        idempotent=False,
        tool=Tool(none="its answer is a key, which no model is to hold"),
    ),
    Operation(
        "device.update", "update_device", DeviceUpdateRequest, DeviceReport, "admin", "device", DEVICE,
        ("device", "update"),
        "change a device's label, state or capabilities; omitted fields stay. Applies from its next request",
        batch=False, grows=False, word="device_id",
        example={"device_id": "d-1", "state": "suspended"},
        shell=("beetle device update DEVICE --state suspended",),
        destructive=True,
    ),
    Operation(
        "device.rotate_key", "rotate_device_key", DeviceRotateKeyRequest, DeviceKeyReport, "admin", "device", DEVICE,
        ("device", "rotate-key"),
        "replace a device's key; the old key is invalid at once",
        batch=False, grows=False, word="device_id",
        example={"device_id": "d-1"},
        destructive=True, idempotent=False,
        tool=Tool(none="its answer is a key, which no model is to hold"),
    ),
    Operation(
        "device.remove", "remove_device", DeviceRemoveRequest, DeviceRemovedReport, "admin", "device", DEVICE,
        ("device", "remove"),
        "remove a device; the records that it wrote stay",
        batch=False, grows=False, word="device_id",
        example={"device_id": "d-1"},
        destructive=True,
    ),
    Operation(
        "transport.list", "list_transports", TransportListRequest, TransportListReport, "read", "transport", TRANSPORT,
        ("transport", "list"),
        "list the transports and their state",
    ),
    Operation(
        "transport.update", "update_transport", TransportUpdateRequest, TransportReport, "admin", "transport",
        TRANSPORT, ("transport", "update"),
        "open or close a transport, or set its endpoint",
        batch=False, grows=False, word="name",
        example={"name": "unix_socket", "enabled": False},
        shell=("beetle transport update unix_socket --no-enabled",),
        destructive=True,
    ),
)  # fmt: skip
