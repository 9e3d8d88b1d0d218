"""The transports, behind one interface: `door.call(op, args)` returns the report as builtins or raises its error."""

from __future__ import annotations

import asyncio
import base64
import json
import socket
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgpack
import pytest

from beetle.contracts.codec import to_plain
from beetle.contracts.common import DEFAULT_AGENT, DEFAULT_CHANNEL, DEFAULT_CHAT, WireScope
from beetle.contracts.errors import ERRORS, STATUS, BeetleError, from_wire
from beetle.contracts.methods import OperationMethods
from beetle.contracts.names import ViewName
from beetle.open import Embedded, Opened, open_store
from beetle.runtime.host.caller import Caller
from beetle.runtime.host.principals import OPERATOR_CAPABILITIES
from beetle.runtime.host.profile import Budgets, load_profile
from beetle.runtime.pipeline.invocation import Outcome
from beetle.sdk import MemoryRuntime
from tests import forked

REPOSITORY = Path(__file__).parents[2]
COMMAND = (sys.executable, "-m", "beetle")
PROFILE = "profile-linux-device-standalone-memory"
START_S = 30.0
ANSWER_S = 60.0

SCOPE_FLAGS = {"owner_id": "--owner", "agent_id": "--agent", "channel": "--channel", "chat_id": "--chat"}
"""Flags of the command line; it names a conversation in the request alone."""

Plain = dict[str, Any]


class Answer(NamedTuple):
    """A report and whether it was answered to this idempotency key before; None where a door does not say."""

    report: Plain
    repeated: bool | None


class Door(ABC):
    """One transport, for one owner whom no other case shares."""

    name: str
    own_agent: bool
    """Whether the caller is the space's own agent, who may see private material."""
    views: tuple[ViewName, ...]
    principal: str
    budgets: Budgets = load_profile(PROFILE).budgets

    def __init__(self, owner: str) -> None:
        self.owner = owner

    @abstractmethod
    def ask(
        self,
        op: str,
        args: Mapping[str, Any] | None = None,
        scope: Mapping[str, str] | None = None,
        idempotency_key: str | None = None,
        deadline_ms: int | None = None,
    ) -> Answer:
        """Run one operation as this door's owner, unless the scope names another."""

    def call(
        self,
        op: str,
        args: Mapping[str, Any] | None = None,
        scope: Mapping[str, str] | None = None,
        idempotency_key: str | None = None,
        deadline_ms: int | None = None,
    ) -> Plain:
        """The report alone."""
        return self.ask(op, args, scope, idempotency_key, deadline_ms).report

    @abstractmethod
    def methods(self) -> OperationMethods:
        """The typed methods of this door, for its own owner."""

    def prepare(self, op: str, args: Mapping[str, Any], scope: Mapping[str, str] | None = None) -> Plain:
        """What a case needs before it begins; a slow door may take a quicker way to the same store."""
        return self.call(op, args, scope)

    def refused(
        self,
        key: str,
        op: str,
        args: Mapping[str, Any] | None = None,
        scope: Mapping[str, str] | None = None,
        **more: Any,
    ) -> BeetleError:
        """The error, which must have this key."""
        with pytest.raises(BeetleError) as caught:
            self.ask(op, args, scope, **more)
        assert caught.value.key == key, caught.value
        assert isinstance(caught.value, ERRORS[key])
        return caught.value

    def wire_scope(self, scope: Mapping[str, str] | None) -> dict[str, str]:
        return {"owner_id": self.owner, **(scope or {})}


def plain(report: Any) -> Plain:
    """A report as JSON would have it: lists for tuples."""
    return json.loads(json.dumps(to_plain(report)))


def as_text(data: object) -> str:
    """Bytes as JSON has them."""
    assert isinstance(data, bytes)
    return base64.b64encode(data).decode()


def embedded_caller(owner: str, name: str = f"embedded:{DEFAULT_AGENT}", agent: str = DEFAULT_AGENT) -> Caller:
    """The owner who runs this process, as `open_embedded` makes it."""
    return Caller(
        name=name,
        kind="embedded",
        capabilities=OPERATOR_CAPABILITIES | {"transcript.raw", "private.read"},
        views=("host_ui", "model_context", "operator_audit", "export", "raw_owner"),
        transport="in_process",
        owner_id=owner,
        agent_id=agent,
    )


class InProcess(Door):
    """`MemoryRuntime`, one for each owner, over one open store."""

    name = "in_process"
    own_agent = True
    views = ("raw_owner", "model_context", "host_ui", "operator_audit", "export")
    principal = f"embedded:{DEFAULT_AGENT}"

    def __init__(
        self, owner: str, path: Path, profile: str = PROFILE, *, shared: Opened | None = None, **more: Any
    ) -> None:
        """`more` goes to the opening of the store: dependencies, a backend, a VFS. `shared` is an open store that other
        owners use too; this door has one of its own at `path` only once it is opened again."""
        super().__init__(owner)
        self.path = path
        self._how = {"profile_name": profile, **more}
        self._shared = shared is not None
        self.opened: Opened = shared or open_store(str(path), **self._how)

    def embedded(self, owner: str, caller: Caller | None = None) -> Embedded:
        where = WireScope(owner_id=owner, channel=DEFAULT_CHANNEL, chat_id=DEFAULT_CHAT)
        return Embedded(self.opened, caller or embedded_caller(owner), where)

    def methods(self) -> OperationMethods:
        return MemoryRuntime(self.embedded(self.owner))

    def outcome(self, owner: str, *call: Any, caller: Caller | None = None) -> Outcome:
        return self.embedded(owner, caller).call(*call)

    def ask(
        self,
        op: str,
        args: Mapping[str, Any] | None = None,
        scope: Mapping[str, str] | None = None,
        idempotency_key: str | None = None,
        deadline_ms: int | None = None,
        caller: Caller | None = None,
    ) -> Answer:
        where = WireScope(**self.wire_scope(scope))
        owner = where.owner_id or self.owner
        if caller is None and idempotency_key is None:
            runtime = MemoryRuntime(self.embedded(owner))
            return Answer(plain(runtime.call(op, args, scope=where, deadline_ms=deadline_ms)), None)
        found = self.outcome(owner, op, args, where, idempotency_key, deadline_ms, caller=caller)
        return Answer(plain(found.report), found.repeated)

    def restart(self, **more: Any) -> None:
        """Close the store and open it again, from now on with `more`."""
        self.close()
        self._how.update(more)
        self._shared = False
        self.opened = open_store(str(self.path), **self._how)

    def close(self) -> None:
        if not self._shared:
            self.opened.store.close()


class Daemon:
    """A real `beetle serve`, ended by its own signal handler."""

    def __init__(self, folder: Path, command: Sequence[str] = (), env: Mapping[str, str] | None = None) -> None:
        self.command = command or COMMAND
        self.env = env
        self.store = folder / "beetle.db"
        self.socket = folder / "b.sock"
        self.log = folder / "serve.log"
        self._log = self.log.open("wb")
        self._process = subprocess.Popen(
            [*self.command, *(f"--store={self.store}", f"--socket={self.socket}", f"--profile={PROFILE}"), "serve"],
            cwd=REPOSITORY,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=subprocess.STDOUT,
        )
        try:
            self._wait()
        except BaseException:
            self.stop()
            raise

    def _wait(self) -> None:
        """Readiness is that it answers a connection; the pause only paces the tries."""
        deadline = time.monotonic() + START_S
        while True:
            with socket.socket(socket.AF_UNIX) as probe:
                try:
                    probe.connect(str(self.socket))
                except OSError:
                    ended = self._process.poll()
                    if ended is not None or time.monotonic() > deadline:
                        raise AssertionError(f"the daemon ({ended}) said: {self.log.read_text()}") from None
                else:
                    return
            try:
                self._process.wait(0.01)
            except subprocess.TimeoutExpired:
                continue

    def ended(self) -> int:
        """Its exit code when it has ended by itself."""
        return self._process.wait(START_S)

    def stop(self) -> int:
        """Ask it to end; its exit code."""
        if self._process.poll() is None:
            self._process.terminate()
        try:
            return self._process.wait(START_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()
        finally:
            self._log.close()


class Socket(Door):
    """`beetle.client.Client` over the socket of a running daemon."""

    name = "socket"
    own_agent = False
    views = ("model_context", "host_ui", "operator_audit", "export")
    principal = "operator"

    def __init__(self, owner: str, daemon: Daemon) -> None:
        from beetle.client import Client

        super().__init__(owner)
        self.daemon = daemon
        self.client = Client(str(daemon.socket))
        self._typed: Client | None = None

    def ask(
        self,
        op: str,
        args: Mapping[str, Any] | None = None,
        scope: Mapping[str, str] | None = None,
        idempotency_key: str | None = None,
        deadline_ms: int | None = None,
    ) -> Answer:
        where = WireScope(**self.wire_scope(scope))
        report = self.client.call(op, args, scope=where, idempotency_key=idempotency_key, deadline_ms=deadline_ms)
        return Answer(plain(report), self.client.repeated)

    def methods(self) -> OperationMethods:
        from beetle.client import Client

        self._typed = Client(str(self.daemon.socket), scope=WireScope(owner_id=self.owner))
        return self._typed

    def frame(self, op: str, args: Any, /, *, unicode_errors: str = "strict", **more: Any) -> Plain:
        """One answer to one frame that a typed client would not send."""
        with Connection(self) as connection:
            connection.send(op, args, unicode_errors=unicode_errors, **more)
            return connection.read()

    def close(self) -> None:
        self.client.close()
        if self._typed is not None:
            self._typed.close()


class AsyncSocket(Socket):
    """`beetle.async_client.AsyncClient` over the same socket, in a loop of its own that runs while it is asked."""

    name = "async_socket"

    def __init__(self, owner: str, daemon: Daemon) -> None:
        from beetle.async_client import AsyncClient

        super().__init__(owner, daemon)
        self._runner = asyncio.Runner()
        self._tasks = AsyncClient(str(daemon.socket))

    def ask(
        self,
        op: str,
        args: Mapping[str, Any] | None = None,
        scope: Mapping[str, str] | None = None,
        idempotency_key: str | None = None,
        deadline_ms: int | None = None,
    ) -> Answer:
        where = WireScope(**self.wire_scope(scope))

        async def asked() -> Answer:
            report = await self._tasks.call(
                op, args, scope=where, idempotency_key=idempotency_key, deadline_ms=deadline_ms
            )
            return Answer(plain(report), self._tasks.repeated)

        return self._runner.run(asked())

    def close(self) -> None:
        self._runner.run(self._tasks.close())
        self._runner.close()
        super().close()


class Connection:
    """One connection for a door's owner, frame by frame: answers, and the events that come by themselves."""

    def __init__(self, door: Socket) -> None:
        self._scope = {"owner_id": door.owner}
        self._unpacker = msgpack.Unpacker()
        self._wire = socket.socket(socket.AF_UNIX)
        self._wire.settimeout(ANSWER_S)
        self._wire.connect(str(door.daemon.socket))

    def send(self, op: str, args: Any, /, *, unicode_errors: str = "strict", **more: Any) -> None:
        request = {"v": 1, "id": 1, "op": op, "args": args, "scope": self._scope, **more}
        self._wire.sendall(msgpack.packb(request, unicode_errors=unicode_errors) or b"")

    def read(self) -> Plain:
        """The next frame."""
        while True:
            for found in self._unpacker:
                return found
            data = self._wire.recv(65536)
            if not data:
                raise AssertionError("the connection ended before a frame was whole")
            self._unpacker.feed(data)

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self._wire.close()


class CommandLine(Socket):
    """`beetle --json call OP -`, a process for each request; what a case needs beforehand goes over the socket."""

    name = "cli"

    def ask(
        self,
        op: str,
        args: Mapping[str, Any] | None = None,
        scope: Mapping[str, str] | None = None,
        idempotency_key: str | None = None,
        deadline_ms: int | None = None,
    ) -> Answer:
        words = [f"--socket={self.daemon.socket}", "--json", "call", op, "-"]
        for field, value in self.wire_scope(scope).items():
            words.append(f"{SCOPE_FLAGS[field]}={value}")
        if idempotency_key is not None:
            words += [f"--idempotency-key={idempotency_key}"]
        if deadline_ms is not None:
            words += ["--deadline-ms", str(deadline_ms)]
        done = self._run(words, json.dumps({} if args is None else args, default=as_text))
        if done.returncode == 0:
            assert done.stderr == "", done.stderr
            return Answer(json.loads(done.stdout), None)
        raise self._error(done)

    def _run(self, words: list[str], given: str) -> subprocess.CompletedProcess[str]:
        if self.daemon.command == COMMAND:
            return forked.run_text(words, given=given, env=self.daemon.env, timeout=ANSWER_S)
        command, env = [*self.daemon.command, *words], self.daemon.env
        return subprocess.run(
            command, cwd=REPOSITORY, env=env, input=given, capture_output=True, text=True, timeout=ANSWER_S
        )

    def _error(self, done: subprocess.CompletedProcess[str]) -> BeetleError:
        told = json.loads(done.stderr)["error"]
        assert told["key"] in ERRORS, done.stderr
        assert done.returncode == STATUS[told["key"]].exit_code, done.stderr
        assert done.stdout == "", done.stdout
        return from_wire(**told)

    def prepare(self, op: str, args: Mapping[str, Any], scope: Mapping[str, str] | None = None) -> Plain:
        return Socket.ask(self, op, args, scope).report
