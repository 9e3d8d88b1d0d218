"""A restored snapshot brings memory back, and no right that was taken away since it was made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from beetle.client import Client
from beetle.contracts.codec import to_plain
from beetle.contracts.envelope import DeviceAuth
from beetle.contracts.errors import Forbidden, Unauthorized
from tests.forked import Daemon

PROFILE = "profile-linux-device-standalone-memory"


def added(operator: Client, name: str) -> str:
    return to_plain(operator.add_device(device_id=name, label=name, capabilities=["recall"]))["appKeyOnce"]


def asked(daemon: Daemon, name: str, key: str) -> Any:
    with daemon.client(auth=DeviceAuth(device_id=name, app_key=key), retry=False) as client:
        return client.recall(query="anything")


def test_keys_that_were_rotated_revoked_or_removed_open_nothing_after_a_restore(tmp_path: Path) -> None:
    with Daemon(profile=PROFILE, folder=str(tmp_path)) as daemon, daemon.client() as operator:
        keys = {name: added(operator, name) for name in ("rotated", "revoked", "removed", "stays")}
        taken = operator.create_snapshot().snapshot.snapshot_id
        fresh = to_plain(operator.rotate_device_key(device_id="rotated"))["appKeyOnce"]
        operator.update_device(device_id="revoked", state="revoked")
        operator.remove_device(device_id="removed")
        later = added(operator, "later")
        operator.update_transport(name="unix_socket", enabled=False)
        with pytest.raises(Forbidden):
            asked(daemon, "stays", keys["stays"])
        operator.restore_snapshot(snapshot_id=taken)
        with pytest.raises(Forbidden):
            asked(daemon, "stays", keys["stays"])
        operator.update_transport(name="unix_socket", enabled=True)
        for name in ("rotated", "revoked", "removed"):
            with pytest.raises(Unauthorized):
                asked(daemon, name, keys[name])
        for name, key in (("rotated", fresh), ("later", later), ("stays", keys["stays"])):
            asked(daemon, name, key)
        states = {each.device_id: each.state for each in operator.list_devices().devices}
        assert states == {
            "rotated": "active", "revoked": "revoked", "removed": "suspended", "stays": "active", "later": "active"
        }  # fmt: skip
        assert operator.verify_store().clean
