"""Devices in every kind of store: what is kept of them, who grants what, and whose they are."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from beetle.contracts.codec import replace
from beetle.contracts.common import WireScope
from beetle.contracts.devices import DeviceKeyReport
from beetle.contracts.envelope import DeviceAuth
from beetle.contracts.errors import BeetleError, Conflict, Forbidden, IntegrityViolation, NotFound, Unauthorized
from beetle.open import Opened, open_store
from beetle.runtime.areas import devices as device_handlers
from beetle.runtime.host.caller import Caller
from beetle.runtime.host.devices import GRANTABLE
from beetle.runtime.host.principals import OPERATOR
from beetle.runtime.pipeline.invocation import Call
from beetle.sdk import MemoryRuntime
from beetle.store.devices import all_devices
from tests.conformance.doors import embedded_caller

PROFILE = "profile-server-linux-dev-full"
STRANGER = Caller("uid:9", "unknown", frozenset(), (), "unix_socket")
ADA = WireScope(owner_id="ada", agent_id="agent-a")


@pytest.fixture(params=["in-memory", "sqlite", "file", "embedded"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opened]:
    made = open_store(str(tmp_path / "b.db"), PROFILE, request.param)
    yield made
    made.store.close()


@pytest.fixture
def one(tmp_path: Path) -> Iterator[Opened]:
    made = open_store(str(tmp_path / "b.db"), PROFILE)
    yield made
    made.store.close()


def ask(opened: Opened, op: str, args: Any = None, caller: Caller = OPERATOR, scope: WireScope | None = None) -> Any:
    return opened.dispatcher.dispatch(Call(op, args, caller, scope)).report


def add(opened: Opened, caller: Caller = OPERATOR, scope: WireScope | None = ADA, **more: Any) -> DeviceKeyReport:
    return ask(opened, "device.add", {"label": "Panel", "capabilities": ["recall"], **more}, caller, scope)


def prove(opened: Opened, device_id: str, app_key: str, op: str = "hello") -> Any:
    call = Call(op, {}, STRANGER, auth=DeviceAuth(device_id=device_id, app_key=app_key))
    return opened.dispatcher.dispatch(call).report


def test_a_device_proves_itself_in_every_kind_of_store(opened: Opened) -> None:
    made = add(opened)
    device_id, key = made.device.device_id, made.appKeyOnce
    assert key is not None
    assert prove(opened, device_id, key).principal == f"device:{device_id}"
    again = ask(opened, "device.rotate_key", {"device_id": device_id}).appKeyOnce
    with pytest.raises(Unauthorized):
        prove(opened, device_id, key)
    assert prove(opened, device_id, again).principal == f"device:{device_id}"
    ask(opened, "device.update", {"device_id": device_id, "state": "suspended"})
    with pytest.raises(Unauthorized, match="suspended"):
        prove(opened, device_id, again)
    ask(opened, "device.remove", {"device_id": device_id})
    with pytest.raises(Unauthorized, match="match no known device"):
        prove(opened, device_id, again)


def test_devices_outlive_a_restart_with_their_keys_and_what_they_may(tmp_path: Path) -> None:
    opened = open_store(str(tmp_path / "b.db"), PROFILE)
    made = add(opened, capabilities=["recall", "console"])
    assert made.appKeyOnce is not None
    prove(opened, made.device.device_id, made.appKeyOnce)
    seen = ask(opened, "device.list").devices[0]
    opened.store.close()
    opened = open_store(str(tmp_path / "b.db"), PROFILE)
    found = ask(opened, "device.list").devices[0]
    assert (found.last_seen, found.capabilities) == (seen.last_seen, ("recall", "console"))
    told = prove(opened, made.device.device_id, made.appKeyOnce, "console.session")
    assert told.kind == "device" and told.device == ask(opened, "device.list").devices[0]
    assert set(told.views) == {"model_context", "host_ui"}
    opened.store.close()


def test_of_a_key_there_is_a_salted_digest_and_a_fingerprint_and_nothing_else(one: Opened) -> None:
    made = add(one)
    assert made.appKeyOnce is not None
    with one.store.read() as tx:
        row = next(all_devices(tx))
        raw = repr(tx.row("SELECT * FROM device"))
    key = made.appKeyOnce.encode()
    assert row.digest.verifier == hashlib.sha256(row.digest.salt + key).digest()
    assert row.digest.fingerprint == made.device.appKeyFingerprint
    assert made.appKeyOnce not in raw
    assert hashlib.sha256(key).hexdigest()[:16] != row.digest.fingerprint, "a prefix keeps it apart from other digests"
    other = add(one)
    with one.store.read() as tx:
        digests = [each.digest for each in all_devices(tx)]
    assert len({each.salt for each in digests}) == 2 and other.device.appKeyFingerprint != row.digest.fingerprint


def test_the_key_of_a_first_report_is_kept_nowhere_and_repeated_to_nobody(one: Opened) -> None:
    call = Call("device.add", {"label": "x", "capabilities": []}, OPERATOR, ADA, "key-1")
    first = one.dispatcher.dispatch(call)
    again = one.dispatcher.dispatch(call)
    assert first.report.appKeyOnce and not first.repeated
    assert again.repeated and again.report.appKeyOnce is None
    assert again.report.device == first.report.device
    with one.store.read() as tx:
        kept = b"".join(row[0] for row in tx.rows("SELECT report FROM idempotency"))
    assert first.report.appKeyOnce.encode() not in kept
    assert first.report.appKeyOnce not in repr(Call("x", {}, OPERATOR, auth=DeviceAuth(device_id="d", app_key="k")))


def test_a_damaged_device_is_left_out_of_the_list_and_its_first_report_is_answered_as_it_was_kept(
    one: Opened, tmp_path: Path
) -> None:
    call = Call("device.add", {"label": "x", "capabilities": ["recall"]}, OPERATOR, ADA, "key-1")
    device = one.dispatcher.dispatch(call).report.device
    whole = add(one).device
    # A flipped bit asks for no constraint.
    harm = "UPDATE device SET state = 'odd', capabilities = '{{' WHERE device_id = ?"
    connection = apsw.Connection(str(tmp_path / "b.db"))
    connection.pragma("ignore_check_constraints", True)
    connection.execute(harm, (device.device_id,))
    connection.close()
    assert [each.device_id for each in ask(one, "device.list").devices] == [whole.device_id]
    again = one.dispatcher.dispatch(call)
    assert (again.repeated, again.report.device) == (True, replace(device, label=""))
    with pytest.raises(IntegrityViolation, match="damaged"):
        ask(one, "device.update", {"device_id": device.device_id, "label": "y"})
    assert ask(one, "device.update", {"device_id": device.device_id, "state": "suspended"}).device.capabilities == ()
    assert len(ask(one, "device.list").devices) == 2


def test_credentials_are_never_shown_by_what_holds_them(one: Opened) -> None:
    key = add(one).appKeyOnce
    assert key is not None
    held = DeviceAuth(device_id="d", app_key=key)
    assert key not in f"{held} {held!r} {Call('hello', {}, OPERATOR, auth=held)!r}"


def test_an_operator_grants_what_it_has_itself_and_no_more(one: Opened) -> None:
    narrow = OPERATOR._replace(name="narrow", capabilities=frozenset({"device", "admin", "recall"}))
    with pytest.raises(Forbidden, match="export"):
        add(one, narrow, capabilities=["recall", "export"])
    made = add(one, capabilities=["recall", "export", "skill"]).device
    kept = {"device_id": made.device_id, "capabilities": ["export", "recall"]}
    assert ask(one, "device.update", kept, narrow).device.capabilities == ("recall", "export"), "what it has, it keeps"
    with pytest.raises(Forbidden, match="skill"):
        ask(one, "device.update", {"device_id": made.device_id, "capabilities": ["skill"]}, narrow)


def test_a_row_that_somebody_has_changed_gives_no_right_that_no_device_may_have(one: Opened) -> None:
    made = add(one)
    assert made.appKeyOnce is not None
    names = '["admin", "private.read", "transcript.raw", "recall", "nonsense"]'
    one.store.write(lambda tx: tx.run("UPDATE device SET capabilities = ?", names), grows=False)
    one.dispatcher.sessions.devices.changed()
    caller = one.dispatcher.sessions.devices.by_id(made.device.device_id)
    assert caller is not None and caller.capabilities == {"recall"} <= GRANTABLE
    assert not caller.is_operator


def test_a_bound_operator_sees_and_changes_its_owner_s_devices_alone(one: Opened) -> None:
    ada, bob = embedded_caller("ada", agent="agent-a"), embedded_caller("bob")
    mine = add(one, ada, None).device
    assert (mine.owner_id, mine.agent_id) == ("ada", "agent-a")
    theirs = add(one, bob, None).device
    assert [each.device_id for each in ask(one, "device.list", caller=ada).devices] == [mine.device_id]
    assert ask(one, "device.list", caller=bob).total == 1
    assert ask(one, "device.list").total == 2, "the daemon's operator sees all"
    for op, more in (("device.update", {"label": "x"}), ("device.rotate_key", {}), ("device.remove", {})):
        with pytest.raises(NotFound):
            ask(one, op, {"device_id": theirs.device_id, **more}, ada)
    for more in ({"owner_id": "bob"}, {"agent_id": "another"}):
        with pytest.raises(Forbidden, match="bound to"):
            add(one, ada, None, **more)
    with pytest.raises(Conflict):
        add(one, ada, None, device_id=theirs.device_id)


def test_who_is_no_operator_sees_the_devices_of_the_scope_it_asks_in(one: Opened) -> None:
    unbound = OPERATOR._replace(name="unbound", kind="principal")
    add(one)
    add(one, scope=WireScope(owner_id="bob"))
    assert [each.owner_id for each in ask(one, "device.list", caller=unbound, scope=ADA).devices] == ["ada"]
    assert ask(one, "device.list", caller=unbound).total == 0


def test_there_are_so_many_devices_and_no_more(one: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_handlers, "MOST_DEVICES", 2)
    add(one)
    last = add(one).device.device_id
    with pytest.raises(Conflict, match="2 devices"):
        add(one)
    ask(one, "device.remove", {"device_id": last})
    add(one)


def test_an_event_tells_of_each_change_and_of_none_that_changed_nothing(one: Opened) -> None:
    device_id = add(one).device.device_id
    ask(one, "device.update", {"device_id": device_id, "label": "Panel"})
    ask(one, "device.update", {"device_id": device_id, "label": "Hall", "state": "suspended"})
    ask(one, "device.rotate_key", {"device_id": device_id})
    ask(one, "device.remove", {"device_id": device_id})
    rows = ask(one, "event_log.read", {"topics": ["device"]}).rows
    assert [row.event for row in rows] == ["added", "updated", "key_rotated", "removed"]
    assert all(row.daemon and row.subject["device_id"] == device_id for row in rows)
    assert rows[1].subject["changed"] == ["label", "state"]
    assert "Hall" not in str(rows)


def test_a_runtime_of_one_owner_adds_devices_through_the_same_methods(tmp_path: Path) -> None:
    with MemoryRuntime.open(str(tmp_path / "own.db"), profile=PROFILE) as memory:
        made = memory.add_device(label="Panel", capabilities=("recall",))
        assert memory.list_devices().devices == (made.device,)
        assert memory.rotate_device_key(device_id=made.device.device_id).appKeyOnce
        assert memory.update_device(device_id=made.device.device_id, state="revoked").device.state == "revoked"
        assert memory.remove_device(device_id=made.device.device_id).device_id == made.device.device_id
        assert memory.list_transports().transports[0].name == "in_process"
        with pytest.raises(BeetleError, match="cannot be closed"):
            memory.update_transport(name="cli", enabled=False)
