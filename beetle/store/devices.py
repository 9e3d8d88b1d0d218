"""Devices: the daemon's own rows, which belong to no space. Of a key there is a salted digest, never the key."""

from __future__ import annotations

from collections.abc import Iterator

from beetle.contracts.codec import json_text
from beetle.named_tuple import NamedTuple
from beetle.store.columns import texts
from beetle.store.engine.transaction import Reading, Row, Writing

COLUMNS = """
SELECT device, device_id, label, state, owner_id, agent_id, capabilities, salt, verifier, fingerprint, generation,
  created_at, updated_at, last_seen FROM device
"""
ALL_DEVICES_SQL = COLUMNS + "ORDER BY device"
DEVICE_SQL = COLUMNS + "WHERE device_id = ?"
COUNT_SQL = "SELECT count(*) FROM device"
ADD_SQL = """
INSERT INTO device (
  device_id, label, state, owner_id, agent_id, capabilities, salt, verifier, fingerprint, generation, created_at,
  updated_at
) VALUES (?, ?, 'active', ?, ?, ?, ?, ?, ?, 1, ?, ?)
"""
CHANGE_SQL = "UPDATE device SET label = ?, state = ?, capabilities = ?, generation = ?, updated_at = ? WHERE device = ?"
NEW_KEY_SQL = """
UPDATE device SET salt = ?, verifier = ?, fingerprint = ?, generation = generation + 1, updated_at = ? WHERE device = ?
"""
CARRY_SQL = """
INSERT INTO device (
  device_id, label, state, owner_id, agent_id, capabilities, salt, verifier, fingerprint, generation, created_at,
  updated_at, last_seen
) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
ON CONFLICT (device_id) DO UPDATE SET
  label = ?2, state = ?3, owner_id = ?4, agent_id = ?5, capabilities = ?6, salt = ?7, verifier = ?8, fingerprint = ?9,
  generation = max(generation, ?10) + 1, created_at = ?11, updated_at = ?12, last_seen = ?13
"""
REMOVE_SQL = "DELETE FROM device WHERE device = ?"
SEEN_SQL = "UPDATE device SET last_seen = ? WHERE device = ? AND device_id = ?"


class KeyDigest(NamedTuple):
    """What is kept of a key: a salt, the digest under it, and the fingerprint that people tell keys apart by."""

    salt: bytes
    verifier: bytes
    fingerprint: str


class DeviceRow(NamedTuple):
    """A device as it is kept; times in microseconds."""

    device: int
    device_id: str
    label: str
    state: str
    owner_id: str
    agent_id: str
    capabilities: tuple[str, ...]
    digest: KeyDigest
    generation: int
    created_at: int
    updated_at: int
    last_seen: int | None


class NewDevice(NamedTuple):
    """A device to be added."""

    device_id: str
    label: str
    owner_id: str
    agent_id: str
    capabilities: tuple[str, ...]
    digest: KeyDigest


def all_devices(tx: Reading) -> Iterator[DeviceRow]:
    """Every device, in the order in which they were added."""
    return (_device(row) for row in tx.rows(ALL_DEVICES_SQL))


def find_device(tx: Reading, device_id: str) -> DeviceRow | None:
    """The device of that id."""
    found = tx.row(DEVICE_SQL, device_id)
    return None if found is None else _device(found)


def count_devices(tx: Reading) -> int:
    """How many there are."""
    return tx.value(COUNT_SQL)


def add_device(tx: Writing, new: NewDevice, now: int) -> None:
    """Add an active device."""
    names = json_text(new.capabilities)
    tx.run(ADD_SQL, new.device_id, new.label, new.owner_id, new.agent_id, names, *new.digest, now, now)


def change_device(tx: Writing, row: DeviceRow, now: int) -> None:
    """Write down a device's label, state, capabilities and generation as they stand in `row`."""
    tx.run(CHANGE_SQL, row.label, row.state, json_text(row.capabilities), row.generation, now, row.device)


def replace_key(tx: Writing, device: int, digest: KeyDigest, now: int) -> None:
    """Have another key hold, as the next generation."""
    tx.run(NEW_KEY_SQL, *digest, now, device)


def remove_device(tx: Writing, device: int) -> None:
    """Forget a device."""
    tx.run(REMOVE_SQL, device)


def carry_device(tx: Writing, row: DeviceRow) -> None:
    """Have a device of another store hold here as it did there, whatever this one knew of it."""
    _, device_id, label, state, owner, agent, capabilities, digest, *rest = row
    tx.run(CARRY_SQL, device_id, label, state, owner, agent, json_text(capabilities), *digest, *rest)


def mark_seen(tx: Writing, row: DeviceRow, at: int) -> None:
    """When a device was last seen; nothing when it has gone meanwhile."""
    tx.run(SEEN_SQL, at, row.device, row.device_id)


def _device(row: Row) -> DeviceRow:
    device, device_id, label, state, owner, agent, capabilities, *digest, generation, created, updated, seen = row
    names = texts(capabilities)
    kept = KeyDigest(*digest)
    return DeviceRow(device, device_id, label, state, owner, agent, names, kept, generation, created, updated, seen)
