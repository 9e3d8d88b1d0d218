"""A device's id may be another's later: what its first holder was answered is never told to the next."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from beetle.contracts.devices import DeviceKeyReport
from beetle.contracts.envelope import DeviceAuth
from beetle.open import Opened, open_store
from beetle.runtime.host.caller import Caller
from beetle.runtime.host.principals import OPERATOR
from beetle.runtime.pipeline.invocation import Call, Outcome
from beetle.store.engine.write_transaction import WriteTransaction

STRANGER = Caller("uid:9", "unknown", frozenset(), (), "unix_socket")
KEY = "request-1"


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    made = open_store(str(tmp_path / "b.db"), "profile-server-linux-dev-full")
    yield made
    made.store.close()


def operate(opened: Opened, op: str, **args: Any) -> Any:
    return opened.dispatcher.dispatch(Call(op, args, OPERATOR, None)).report


def add(opened: Opened) -> DeviceAuth:
    made: DeviceKeyReport = operate(
        opened, "device.add", label="Panel", device_id="panel", capabilities=["write", "transcript", "maintain"]
    )
    return DeviceAuth(device_id="panel", app_key=made.appKeyOnce or "")


def write(opened: Opened, auth: DeviceAuth, turn_id: str = "t1") -> Outcome:
    turn = {
        "turn_id": turn_id, "at": "2026-03-02T08:12:00Z",
        "messages": [{"message_id": turn_id, "role": "user", "content": "I live in Porto."}],
    }  # fmt: skip
    args = {"conversation": {"channel_id": "local", "conversation_id": "c"}, "turns": [turn]}
    return opened.dispatcher.dispatch(Call("transcript.commit", args, STRANGER, auth=auth, idempotency_key=KEY))


def test_the_next_holder_of_an_id_is_told_nothing_of_the_first(opened: Opened) -> None:
    first = add(opened)
    assert not write(opened, first).repeated
    assert write(opened, first).repeated
    operate(opened, "device.remove", device_id="panel")
    second = add(opened)
    answered = write(opened, second)
    assert (answered.repeated, answered.report.unchanged) == (False, 1)
    assert write(opened, second).repeated


def test_nor_does_a_used_key_tell_it_that_another_request_was_made(opened: Opened) -> None:
    assert not write(opened, add(opened)).repeated
    operate(opened, "device.remove", device_id="panel")
    assert not write(opened, add(opened), "t2").repeated


def test_a_key_outlives_a_new_app_key_and_a_pause(opened: Opened) -> None:
    write(opened, add(opened))
    rotated = operate(opened, "device.rotate_key", device_id="panel").appKeyOnce
    operate(opened, "device.update", device_id="panel", state="suspended")
    operate(opened, "device.update", device_id="panel", state="active")
    assert write(opened, DeviceAuth(device_id="panel", app_key=rotated)).repeated


def test_what_a_removed_device_had_begun_is_not_told_to_the_next(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its call was let in, and is done only when the id is another's."""
    first = add(opened)
    store = opened.store
    through = store.write
    second: list[DeviceAuth] = []

    def late(apply: Any, **more: Any) -> Any:
        monkeypatch.setattr(store, "write", through)
        operate(opened, "device.remove", device_id="panel")
        second.append(add(opened))
        return through(apply, **more)

    monkeypatch.setattr(store, "write", late)
    write(opened, first)
    assert not write(opened, second[0]).repeated


def test_a_restored_snapshot_brings_the_first_ones_answers_to_nobody(opened: Opened) -> None:
    first = add(opened)
    write(opened, first)
    snapshot = operate(opened, "snapshot.create").snapshot.snapshot_id
    operate(opened, "device.remove", device_id="panel")
    second = add(opened)
    operate(opened, "snapshot.restore", snapshot_id=snapshot)
    assert not write(opened, second).repeated


def test_a_restored_snapshot_knows_the_answers_of_who_is_still_there(opened: Opened) -> None:
    first = add(opened)
    write(opened, first)
    snapshot = operate(opened, "snapshot.create").snapshot.snapshot_id
    operate(opened, "snapshot.restore", snapshot_id=snapshot)
    assert write(opened, first).repeated


def test_a_name_that_nobody_holds_has_no_answers_left(opened: Opened) -> None:
    write(opened, add(opened))
    operate(opened, "device.remove", device_id="panel")

    def count(tx: WriteTransaction) -> int:
        return tx.value("SELECT count(*) FROM idempotency WHERE principal = 'device:panel'")

    assert opened.store.write(count) == 0


def test_the_next_holder_has_none_of_the_first_ones_conversations_and_jobs(opened: Opened) -> None:
    """Its chat id stands for nothing, and a job that the first left is not run in its name."""
    first = add(opened)
    turn = {
        "turn_id": "t1", "at": "2026-03-02T08:12:00Z",
        "messages": [{"message_id": "m1", "role": "user", "content": "I live in Porto."}],
    }  # fmt: skip
    args = {"conversation": {"channel_id": "local", "conversation_id": "elsewhere"}, "turn": turn}
    opened.dispatcher.dispatch(Call("memory.finalize_turn", args, STRANGER, auth=first))

    def kept(tx: WriteTransaction) -> tuple[int, list[tuple[str, str | None]]]:
        remembered = tx.value("SELECT count(*) FROM remembered_conversation WHERE principal = 'device:panel'")
        return remembered, list(tx.rows("SELECT state, reason FROM job WHERE principal = 'device:panel'"))

    assert opened.store.write(kept) == (1, [("waiting", None)])
    operate(opened, "device.remove", device_id="panel")
    add(opened)
    assert opened.store.write(kept) == (0, [("dropped", "principal_gone")])


def test_a_call_of_the_first_that_ends_late_leaves_the_next_nothing(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = add(opened)
    through = opened.store.write

    def late(apply: Any, **more: Any) -> Any:
        monkeypatch.setattr(opened.store, "write", through)
        operate(opened, "device.remove", device_id="panel")
        add(opened)
        return through(apply, **more)

    monkeypatch.setattr(opened.store, "write", late)
    write(opened, first)

    def count(tx: WriteTransaction) -> int:
        return tx.value("SELECT count(*) FROM remembered_conversation WHERE principal = 'device:panel'")

    assert opened.store.write(count) == 0
