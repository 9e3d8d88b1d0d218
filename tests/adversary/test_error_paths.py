"""Where the store's files are is told to operators alone, whatever goes wrong."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest

from beetle.contracts.common import WireScope
from beetle.contracts.envelope import DeviceAuth
from beetle.contracts.errors import (
    BeetleError,
    Conflict,
    InvalidRequest,
    SchemaMismatch,
    StorageFull,
    StoreCorrupt,
    StoreLocked,
    StoreReadOnly,
)
from beetle.open import Opened, open_store
from beetle.runtime.host.caller import Caller
from beetle.runtime.host.principals import OPERATOR
from beetle.runtime.pipeline.invocation import Call

STRANGER = Caller("uid:9", "unknown", frozenset(), (), "unix_socket")
AGENT = Caller("agent", "principal", OPERATOR.capabilities - {"admin"}, ("model_context",), "unix_socket", "ada")
RECALL = {"query": "porto"}


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    folder = tmp_path / "hidden place"
    folder.mkdir()
    made = open_store(str(folder / "b.db"), "profile-server-linux-dev-full")
    yield made
    made.store.close()


def failing(opened: Opened, monkeypatch: pytest.MonkeyPatch, error: BeetleError) -> None:
    def fail(*_given: Any, **_more: Any) -> NoReturn:
        raise error

    monkeypatch.setattr(opened.store, "read", fail)


def told(opened: Opened, caller: Caller = AGENT, op: str = "memory.recall", args: Any = RECALL, **more: Any) -> str:
    """All that a caller reads of an error."""
    with pytest.raises(BeetleError) as found:
        opened.dispatcher.dispatch(Call(op, args, caller, None, **more))
    error = found.value
    return f"{error.key} {error.message} {error.hint} {error.details!r} {error}"


def errors(path: str) -> dict[str, BeetleError]:
    folder = os.path.dirname(path)
    return {
        "full": StorageFull(path=path),
        "full folder": StorageFull(path=path + ".snapshots"),
        "read-only": StoreReadOnly(path=path, reason=f"its lock file {path}.lock cannot be made"),
        "corrupt": StoreCorrupt(path=path, reason="SQLite found a malformed page"),
        "schema": SchemaMismatch(path=path, reason="newer", advice=f"open {path} with a newer program"),
        "locked": StoreLocked(store=path, pid=1, socket=f"{folder}/beetle.sock", advice=f"ask at {folder}/beetle.sock"),
        "conflict": Conflict(reason=f"{path}.before-s-1 is still there", hint=f"move {folder}/x away", faults=[path]),
        "nested": Conflict(reason="two", found={"a": [{"b": f"{folder}/y"}]}),
    }


@pytest.mark.parametrize("name", errors("/x/y"))
def test_an_agent_is_told_the_kind_and_an_operator_the_place(
    opened: Opened, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    path = opened.store.settings.path
    error = errors(path)[name]
    failing(opened, monkeypatch, error)
    said = told(opened)
    assert "hidden" not in said
    assert "b.db" not in said
    assert said.startswith(f"{error.key} ")
    with pytest.raises(type(error)):
        opened.dispatcher.dispatch(Call("memory.recall", RECALL, AGENT, None))
    assert "hidden place" in told(opened, OPERATOR)


def test_a_device_is_told_no_more(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Call("device.add", {"label": "Panel", "capabilities": ["recall"]}, OPERATOR, WireScope(owner_id="ada"))
    made: Any = opened.dispatcher.dispatch(asked).report
    auth = DeviceAuth(device_id=made.device.device_id, app_key=made.appKeyOnce)
    opened.dispatcher.dispatch(Call("hello", {}, STRANGER, None, auth=auth))
    failing(opened, monkeypatch, StorageFull(path=opened.store.settings.path))
    assert "hidden" not in told(opened, STRANGER, auth=auth)


def test_the_place_of_an_argument_stays(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "$.args.query" in told(opened, args={"query": 3})
    failing(opened, monkeypatch, InvalidRequest(reason="this is wrong", path="$.args.limit"))
    assert "'path': '$.args.limit'" in told(opened)


def test_a_store_that_was_damaged_on_the_disk_is_told_without_its_place(opened: Opened) -> None:
    path = Path(opened.store.settings.path)
    opened.dispatcher.dispatch(Call("memory.recall", RECALL, OPERATOR, None))
    with path.open("r+b") as file:
        file.write(b"no database at all" * 400)
    Path(f"{path}-wal").unlink(missing_ok=True)
    commit = {
        "conversation": {"channel_id": "local", "conversation_id": "c"},
        "turns": [{"turn_id": "t", "at": "2026-03-02T08:12:00Z",
                   "messages": [{"message_id": "m", "role": "user", "content": "x" * 40_000}]}],
    }  # fmt: skip
    for op, args in (("memory.recall", RECALL), ("transcript.commit", commit)):
        try:
            opened.dispatcher.dispatch(Call(op, args, AGENT, None))
        except BeetleError as error:
            assert "hidden" not in f"{error.message} {error.hint} {error.details!r}"
