"""Stores under test, one for each backend, which are asked the same and must answer the same."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from beetle.contracts.common import WireScope
from beetle.contracts.envelope import DeviceAuth
from beetle.contracts.errors import BeetleError
from beetle.contracts.names import BACKEND_NAMES as BACKENDS
from beetle.open import Opened, open_store
from beetle.runtime.host.caller import Caller
from beetle.runtime.host.principals import OPERATOR_CAPABILITIES
from beetle.runtime.pipeline.invocation import Call
from tests.sdk.recorded import Recorded, Request, filled
from tests.store.conftest import PROFILE, copy_at_rest

Plain = dict[str, Any]

ON_DISK = BACKENDS[1:]
AGENT = "agent-main"
GRANTED = OPERATOR_CAPABILITIES - {"admin"}

CALLERS: dict[str, Caller] = {
    "owner": Caller(
        name="embedded:agent-main",
        kind="embedded",
        capabilities=OPERATOR_CAPABILITIES | {"transcript.raw", "private.read"},
        views=("host_ui", "model_context", "operator_audit", "export", "raw_owner"),
        transport="in_process",
        agent_id=AGENT,
    ),
    # The space's own agent, over the socket.
    "agent": Caller(
        name="agent",
        kind="principal",
        capabilities=GRANTED,
        views=("model_context", "host_ui"),
        transport="in_process",
        agent_id=AGENT,
    ),
    # Bound to no agent, so not the space's own: what is private is not there for it.
    "worker": Caller(
        name="worker",
        kind="principal",
        capabilities=GRANTED,
        views=("model_context", "host_ui"),
        transport="in_process",
    ),
}

NOBODY = Caller("uid:4711", "unknown", frozenset(), (), "in_process")

DIFFERING: dict[str, str] = {
    "timings_ms": "measured",
    "uptime_s": "counted from the opening, and not every backend is opened again",
    "refusals": "counted from the opening",
    "findings": "of the last opening",
    "backend": "the backend's own name",
    "path": "each store has its own",
    "bytes": "each backend lays its pages out in its own way",
    "wal_bytes": "likewise",
    "pages": "likewise",
    "digest": "keyed with the store's own key",
    "receipt": "signed with the device's own key",
    "confirm_token": "keyed with the store's own key",
    "token": "likewise",
    "next_cursor": "keyed with the store's own key",
    "archive": "sealed with random salt, or signed by its store",
    "snapshot": "likewise",
    "appKeyOnce": "random",
    "appKeyFingerprint": "of a random key",
    "last_seen": "written down when nobody waits for it",
    "replica_horizon": "of a store that was set aside it is the file system's time",
    "last_duration_ms": "measured",
    "running_ms": "likewise",
    "queued_writes": "a look at another thread",
    "pending_erasures": "likewise",
    "readers": "a backend without concurrent readers has others",
}
"""Fields of reports in which backends may differ, and why. Everything else must be equal."""

SIGNED = {"device": "each store has an identity of its own"}
SNAPSHOT = SIGNED | {"store_bytes": "pages in another order", "store_id": "random"}

ONLY_IN: dict[str, dict[str, str]] = {
    "admin.stats": {"free_bytes": "each backend lays its pages out in its own way"},
    "admin.compact": {
        "steps": "what there is to fold or to write anew differs by backend",
        "bytes_before": "each backend lays its pages out in its own way",
        "bytes_after": "likewise",
    },
    "console.overview": {
        **{
            name: "of the machine, or measured"
            for name in ("system", "metrics", "python", "pid", "disk_free_bytes", "activity")
        },
        "started_at": "the last opening",
        "disk_total_bytes": "a store in memory has none",
    },
    "memory.inspect": SIGNED,
    "identity.renew": SIGNED,
    "memory.recover": {"steps": "what there is to mend or to fold differs by backend"},
    "memory.close": {"checkpointed": "not every backend has a log to fold"},
    "snapshot.create": SNAPSHOT | {"ms": "measured", "restarts": "a write may come between"},
    "snapshot.list": SNAPSHOT | {"folder": "each store has its own", "replaced_at": "the file system's time"},
    "snapshot.verify": SNAPSHOT | {"checked": "pages are among it"},
    "snapshot.restore": SNAPSHOT | {"kept_as": "each store has its own"},
    "snapshot.prune": {"freed_bytes": "files of another size"},
    "hello": {"pid": "of the process"},
    "memory.export": SIGNED,
    "memory.export_space": SIGNED,
    "memory.import": SIGNED,
    "memory.import_space": SIGNED,
    "store.verify": {
        "checked": "pages are among it",
        "event_log_head": "its rows hold times of openings",
        "unsigned_events": "not every backend was closed, and signed, as often",
    },
}
"""Likewise, of one operation."""

LOGGED_APART = {
    "admin.compact", "device.rotate_key", "memory.recover", "snapshot.create", "snapshot.restore", "snapshot.prune",
}  # fmt: skip
"""Operations whose event tells of what differs: a random key's fingerprint, bytes, steps. From then on the chains of
the logs differ too."""
CHAINED = {name: "the logs differ" for name in ("head", "event_log_head", "hash", "subject")}

ABSENT_SOMEWHERE = {"path", "disk_free_bytes", "disk_total_bytes", "last_seen", "replica_horizon"}
"""Those that not every backend has."""


class Answer(NamedTuple):
    """What became of a step: the report, or the error as a caller is told it."""

    report: Plain | None
    error: BeetleError | None
    repeated: bool = False


class ReopenedStore:
    """One store. It can be opened again, with or without having been closed."""

    def __init__(self, backend: str, folder: Path | None = None, **dependencies: Any) -> None:
        self.backend = backend
        self.recorded = Recorded()
        self.kept: dict[str, Any] = {}
        self.folder = folder or Path(tempfile.mkdtemp(prefix="beetle-machine-"))
        self.lives = 0
        self._dependencies = dependencies
        self.opened = self._open()

    @property
    def path(self) -> Path:
        return self.folder / str(self.lives) / "store.db"

    def _open(self) -> Opened:
        self.path.parent.mkdir(exist_ok=True)
        dependencies = self.recorded.dependencies(**self._dependencies)
        return open_store(str(self.path), PROFILE, self.backend, dependencies=dependencies)

    def ask(self, step: Request) -> Answer:
        """Let the step's time pass, then ask."""
        self.recorded.go_on(step.after)
        scope = WireScope(owner_id=step.owner, channel="local", chat_id=step.chat)
        caller = CALLERS[step.who]
        auth = None
        if step.device is not None:
            auth = DeviceAuth(device_id=step.device, app_key=self.kept[step.device_key])
            # The peer of a device is nobody.
            caller, scope = NOBODY, WireScope(owner_id=step.owner)
        call = Call(step.op, filled(step.args, self.kept), caller, scope, step.key, auth=auth)
        try:
            done = self.opened.dispatcher.dispatch(call)
        except BeetleError as error:
            # Its row is written aside: what follows finds it, every time.
            self.opened.dispatcher.refusals.flush(30)
            return Answer(None, error)
        report = tidy(msgspec.to_builtins(done.report, builtin_types=(bytes,)))
        self.kept.update({name: _at(report, path) for name, path in step.keep.items()})
        return Answer(report, None, done.repeated)

    def open_again(self, crash: bool) -> None:
        """After a close, or from a copy of the files as they stood while the store was open."""
        if crash:
            here, self.lives = self.path, self.lives + 1
            copy_at_rest(self.opened.store, here, self.path)
        self.opened.store.close()
        self.opened = self._open()
        assert not self.opened.store.open_report.created

    def close(self) -> None:
        self.opened.store.close()
        shutil.rmtree(self.folder)


def _at(report: Any, path: str) -> Any:
    """What stands at a path such as `records.0.ref`."""
    for name in path.split("."):
        report = report[int(name)] if isinstance(report, list) else report[name]
    return report


def tidy(value: Any) -> Any:
    """A report's builtins with lists for tuples."""
    if isinstance(value, Mapping):
        return {name: tidy(each) for name, each in value.items()}
    return [tidy(each) for each in value] if isinstance(value, list | tuple) else value


def comparable(op: str, value: Any, apart: bool = False) -> Any:
    """A report without what backends may differ in; whether such a field is there still counts.

    `apart` says that the event logs differ already.
    """
    names = DIFFERING | ONLY_IN.get(op, {}) | (CHAINED if apart else {})

    def masked(found: Any) -> Any:
        if isinstance(found, Mapping):
            return {name: _there(name, each) if name in names else masked(each) for name, each in found.items()}
        return [masked(each) for each in found] if isinstance(found, list) else found

    return masked(value)


def _there(name: str, value: Any) -> bool | None:
    return None if name in ABSENT_SOMEWHERE else value is not None


def differences(one: Any, other: Any, path: str = "$") -> list[str]:
    """Where two answers differ, a line each."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        names = dict.fromkeys((*one, *other))
        return [line for name in names for line in differences(one.get(name), other.get(name), f"{path}.{name}")]
    if isinstance(one, list | tuple) and isinstance(other, list | tuple) and len(one) == len(other):
        pairs = enumerate(zip(one, other, strict=True))
        return [line for place, (a, b) in pairs for line in differences(a, b, f"{path}[{place}]")]
    return [] if one == other else [f"{path}: {one!r} != {other!r}"]


class ReopenedStores:
    """Several stores as one: a step is asked of each, and what they answer must be equal."""

    def __init__(self, backends: tuple[str, ...] = BACKENDS, **dependencies: Any) -> None:
        self.all = [ReopenedStore(backend, **dependencies) for backend in backends]
        self.steps: list[Request] = []
        self.answered: dict[str, int] = {}
        self.apart = False

    @property
    def first(self) -> ReopenedStore:
        return self.all[0]

    @property
    def now(self) -> int:
        """The time that the last step was asked at."""
        return self.first.recorded.now

    def ask(self, step: Request) -> Answer:
        """The first place's answer, after it was compared with every other's."""
        self.steps.append(step)
        answers = [place.ask(step) for place in self.all]
        self.apart |= step.op in LOGGED_APART
        # Who is no operator is told hashes that are keyed with the store's own key.
        apart = self.apart or (step.who != "owner" and step.op in ("console.overview", "event_log.read"))
        told = [_told(step.op, answer, apart) for answer in answers]
        for place, other in zip(self.all[1:], told[1:], strict=True):
            if other != told[0]:
                where = f"{self.first.backend} and {place.backend} differ"
                raise AssertionError("\n".join([f"{where} after {step}:", *differences(told[0], other)]))
            assert place.recorded.drawn == self.first.recorded.drawn, (step, place.backend, "other ids were drawn")
        if answers[0].report is not None:
            self.answered[step.op] = self.answered.get(step.op, 0) + 1
        return answers[0]

    def open_again(self, crash: bool) -> None:
        """Open every store again that persists."""
        for place in self.all:
            if place.backend != "in-memory":
                place.open_again(crash)

    def close(self) -> None:
        for place in self.all:
            place.close()


def _told(op: str, answer: Answer, apart: bool) -> Any:
    if answer.error is not None:
        error = answer.error
        assert error.key != "internal", f"{op} met a defect; its frames are in the log"
        return error.key, error.message, error.hint, comparable(op, tidy(error.details))
    return comparable(op, answer.report, apart), answer.repeated
