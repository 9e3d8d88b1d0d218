"""Whom a command speaks to: a daemon that answers, or the store opened in this process under the same lock."""

from __future__ import annotations

import os
import stat
import sys
from argparse import Namespace
from collections.abc import Generator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from beetle.cli.calling_off import called_off
from beetle.cli.flags import unreadable
from beetle.cli.parser import typed_option
from beetle.cli.serve import read_configuration
from beetle.contracts.codec import check_values, convert_request
from beetle.contracts.common import MemoryIdentity, MemoryScope, Report, WireScope
from beetle.contracts.envelope import DeviceAuth
from beetle.contracts.errors import (
    BeetleError,
    DaemonUnavailable,
    DeadlineExceeded,
    Forbidden,
    InvalidRequest,
    NotFound,
    Overloaded,
    UnknownOperation,
    nearest,
)
from beetle.contracts.operations import BY_NAME, Operation
from beetle.contracts.progress import OnProgress

if TYPE_CHECKING:
    from beetle.client import Client
    from beetle.contracts.progress import OnProgress
    from beetle.find import Target
    from beetle.open import Embedded
    from beetle.runtime.host.config import Config
    from beetle.store.engine.lock import Holder

CALL_SECONDS = 30.0
WALK_SECONDS = 24 * 3600.0
"""How long an operation may take that has a deadline of its own: it goes over the whole store."""
AWAY_SECONDS = 10.0
"""How long a daemon is waited for that ends during a call: it may be starting again."""
AUTH_SHAPE = '{"device_id": "…", "app_key": "…"}'
AUTH_BYTES = 4096


FIRST_BOOT = (
    "with `beetle config set replica.restore_on_first_boot required`, `beetle start` restores it from the replica"
)


class Busy(Overloaded):
    """A daemon is there, and takes no connection."""

    template = "the daemon at {path} takes no connection now"
    hint_template = "try again; `beetle stop` ends it also when it is overloaded"


class NoStore(NotFound):
    """A command that only reads does not make a store."""

    template = "no store exists at {path} yet"
    hint_template = "`beetle start` makes it, and so does the first write; another one is named with --store"


def typed_target(typed: Namespace, env: Mapping[str, str], config: Config, uid: int) -> Target:
    """Where this command line looks; see `find_target`."""
    from beetle.find import find_target

    return find_target(typed_option(typed, "socket"), typed_option(typed, "store"), env, config, uid)


class Session:
    """An open way to run operations; a context manager. `place` says in words where they run."""

    def __init__(self, place: str, client: Client | None, embedded: Embedded | None, scope: WireScope) -> None:
        self.place = place
        self.client = client
        self.embedded = embedded
        self._scope = scope

    def call(self, operation: str, arguments: Any, key: str | None = None, deadline_ms: int | None = None) -> Report:
        """Run one operation; what takes long shows how far it is.

        Raises:
            BeetleError: what it answered, or that the daemon went away.
        """
        # The encoder has errors of its own for what no wire can carry; these name the place.
        for value, path in ((arguments, "$.args"), (self._scope, "$.scope"), (key, "$.idempotency_key")):
            check_values(value, path)
        with _progress_line(operation) as on_progress:
            if self.embedded is not None:
                return self._run(self.embedded, operation, arguments, key, deadline_ms, on_progress)
            assert self.client is not None
            return self._ask(self.client, operation, arguments, key, deadline_ms, on_progress)

    def _run(
        self,
        embedded: Embedded,
        operation: str,
        arguments: Any,
        key: str | None,
        deadline_ms: int | None,
        on_progress: OnProgress | None,
    ) -> Report:
        row = BY_NAME.get(operation)
        if row is None or not row.progress:
            try:
                return embedded.call(operation, arguments, self._scope, key, deadline_ms, on_progress).report
            except KeyboardInterrupt:
                if row is not None and row.effect == "read":
                    raise
                raise KeyboardInterrupt(_may_be_done("", key)) from None
        with called_off() as is_off:
            try:
                return embedded.call(operation, arguments, self._scope, key, deadline_ms, on_progress, is_off).report
            except DeadlineExceeded as ended:
                if not is_off():
                    raise
                raise KeyboardInterrupt("" if row.effect == "read" else f"before {ended.details['what']}") from None

    def _ask(
        self,
        client: Client,
        operation: str,
        arguments: Any,
        key: str | None,
        deadline_ms: int | None,
        on_progress: OnProgress | None,
    ) -> Report:
        from beetle.client import key_of

        key = key_of(operation, key)
        try:
            return client.call(
                operation, arguments, idempotency_key=key, deadline_ms=deadline_ms, on_progress=on_progress
            )
        except KeyboardInterrupt:
            row = BY_NAME.get(operation)
            if row is not None and row.effect == "read":
                raise
            # A read ends with its connection; of what writes the daemon leaves nothing half-done.
            raise KeyboardInterrupt(_may_be_done(f"{self.place} finishes what it has begun, and ", key)) from None
        except TimeoutError:
            hint = "it may still do the work; look at its log, or give --deadline-ms"
            if key is not None:
                hint += f"; to repeat it, use the idempotency key {key}"
            raise NoAnswer(place=self.place, hint=hint) from None
        except ConnectionError as error:
            raise _gone(self.place, error) from None

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        if self.client is not None:
            self.client.close()
        if self.embedded is not None:
            self.embedded.release()


def _may_be_done(begins: str, key: str | None) -> str:
    """What is told of a write that ctrl+c ended."""
    again = "" if key is None else f": repeat it with the idempotency key {key}"
    return f"{begins}it may have been done{again}"


def _progress_line(operation: str) -> AbstractContextManager[OnProgress | None]:
    """What is told how far an operation is; nothing where nobody would read it, or it tells nothing."""
    row = BY_NAME.get(operation)
    if row is None or not row.progress or not sys.stderr.isatty():
        return nullcontext()
    from beetle.cli.progress import progress_line

    return progress_line(" ".join(row.cli))


class NoAnswer(DeadlineExceeded):
    """A daemon is there, and does not answer."""

    template = "{place} did not answer in time"


@contextmanager
def answered_in_time(client: Client) -> Generator[Client]:
    """A client whose calls change nothing, closed at the end.

    Raises:
        NoAnswer: the daemon took too long.
        DaemonUnavailable: it ended meanwhile.
    """
    with client:
        try:
            yield client
        except TimeoutError:
            hint = "it is very busy, or stopped: look at its log, and ask again"
            raise NoAnswer(place=f"the daemon at {client.path}", hint=hint) from None
        except ConnectionError as error:
            raise _gone(f"the daemon at {client.path}", error) from None


def _gone(place: str, error: ConnectionError) -> DaemonUnavailable:
    why = error.message if isinstance(error, BeetleError) else error.strerror or error
    return DaemonUnavailable(reason=f"{place} went away: {why}")


def open_session(typed: Namespace, operation: str) -> Session:
    """A session for one operation.

    Raises:
        BeetleError: nobody answers and the store may not be opened here; the store is in use; no such operation.
    """
    row = BY_NAME.get(operation)
    if row is None:
        raise UnknownOperation(operation=operation, nearest=nearest(operation, BY_NAME))
    if (endpoint := typed_option(typed, "endpoint")) is not None:
        from beetle.cli.endpoint import open_endpoint

        return open_endpoint(endpoint, operation, wanted_scope(typed))
    config = read_configuration(typed)
    target = typed_target(typed, os.environ, config, os.getuid())
    client = find_daemon(typed, target, _patience(typed, operation), away=AWAY_SECONDS)
    scope = wanted_scope(typed)
    if client is not None:
        return Session(f"the daemon at {client.path}", client, None, scope)
    return _open_here(typed, target, config, row)


def wanted_scope(typed: Namespace) -> WireScope:
    """The scope of the request as the flags name it."""
    return WireScope(
        owner_id=typed_option(typed, "owner"),
        agent_id=typed_option(typed, "agent"),
        channel=typed_option(typed, "channel"),
        chat_id=typed_option(typed, "chat"),
    )


def _patience(typed: Namespace, operation: str) -> float:
    deadline = typed_option(typed, "deadline_ms")
    row = BY_NAME.get(operation)
    if row is not None and row.deadline_ms is not None:
        return WALK_SECONDS
    return CALL_SECONDS if deadline is None else max(CALL_SECONDS, deadline / 1000 + 5)


def find_daemon(
    typed: Namespace,
    target: Target,
    timeout: float = CALL_SECONDS,
    *,
    retry: bool = True,
    away: float = 0.0,
) -> Client | None:
    """A connected client, or None when the store is free to be opened here; `timeout`, `retry` and `away` are
    the client's.

    Raises:
        Forbidden: this user may not use that socket, or see who holds the store.
        DaemonUnavailable: nobody answers at the one socket that was named, or at the one in the store's lock file.
        Busy: somebody listens there, and takes no connection.
    """
    from beetle.client import Client, NoDaemon
    from beetle.find import refuse_closed_socket

    def connected(path: str) -> Client:
        try:
            return Client(path, scope=scope, auth=auth, as_=principal, timeout=timeout, retry=retry, away=away)
        except TimeoutError:
            raise Busy(path=path, retry_after_ms=1000) from None

    scope = wanted_scope(typed)
    auth, principal = read_auth(typed_option(typed, "auth_file")), typed_option(typed, "as")
    reason = ""
    for path in target.sockets:
        try:
            client = connected(path)
        except NoDaemon as error:
            reason = error.message
            # A daemon that this user may not ask has memory of its own: a second store here would hide that.
            refuse_closed_socket(path)
            continue
        _refuse_another_store(target, path, client)
        return client
    if target.store is None:
        raise DaemonUnavailable(reason=reason, hint=f"start one with `beetle --socket {target.sockets[0]} start`")
    holder = holder_in_view(target.store)
    if holder is None or holder.socket is None:
        return None
    try:
        return connected(holder.socket)
    except NoDaemon as error:
        held = f"process {holder.pid} holds {target.store}, but {error.message}"
        hint = "it may be starting or ending: try again, or look at its log"
        raise DaemonUnavailable(reason=held, hint=hint) from None


def holder_in_view(store: str) -> Holder | None:
    """Who holds the store, None when nobody does.

    Raises:
        Forbidden: this user may not look, so that "nobody" would be a guess.
    """
    from beetle.store.engine.lock import holder_of, lock_path

    try:
        os.close(os.open(lock_path(store), os.O_RDONLY | os.O_CLOEXEC))
    except PermissionError:
        hint = "ask as the user whose store it is, or name its daemon with --socket"
        raise Forbidden(reason=f"this user may not see which process holds {store}", hint=hint) from None
    except OSError:
        return None
    return holder_of(store)


def _refuse_another_store(target: Target, path: str, client: Client) -> None:
    """Where both were named, the daemon at the socket must be the store's own."""
    if not target.named or target.store is None:
        return
    from beetle.store.engine.lock import holder_of, lock_path

    lock = lock_path(target.store)
    holder = holder_of(target.store)
    elsewhere = holder is not None and holder.socket is not None and not _same(holder.socket, path)
    free = holder is None and os.access(lock, os.R_OK)
    if elsewhere or free:
        client.close()
        raise InvalidRequest(
            reason=f"the daemon at {path} does not hold the store {target.store}",
            hint="give --socket or --store alone",
        )


def _same(one: str, other: str) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


def _open_here(typed: Namespace, target: Target, config: Config, row: Operation) -> Session:
    from beetle.store.engine.presence import store_exists

    assert target.store is not None
    makes = (row.effect == "write" and row.grows) or (row.carries and not row.takes_out)
    if not makes and not store_exists(target.store):
        _refuse_credentials(typed)
        raise NoStore(path=target.store, hint=FIRST_BOOT if row.name == "replication.restore" else None)
    return Session(f"the store {target.store}", None, open_store_here(typed, target, config), wanted_scope(typed))


def start_command(typed: Namespace) -> str:
    """The command that starts a daemon where this one was looked for."""
    from shlex import join

    given = ((f"--{name}", value) for name in ("config", "store", "socket") if (value := typed_option(typed, name)))
    return join(["beetle", *(word for pair in given for word in pair), "start"])


def _refuse_credentials(typed: Namespace) -> None:
    if typed_option(typed, "auth_file") is not None:
        raise DaemonUnavailable(
            reason="a device's credentials are checked by a daemon, and none answers",
            hint=f"start one with `{start_command(typed)}`, or leave --auth-file out",
        )
    if typed_option(typed, "as") is not None:
        raise DaemonUnavailable(
            reason="--as needs a daemon, and none answers",
            hint=f"start one with `{start_command(typed)}`, or leave --as out",
        )


def open_store_here(typed: Namespace, target: Target, config: Config) -> Embedded:
    """The store, opened in this process; it is made where there is none.

    Raises:
        BeetleError: the store is in use, or cannot be opened; credentials were named, which a daemon checks.
    """
    _refuse_credentials(typed)
    from beetle.open import configured_dependencies, open_embedded

    assert target.store is not None
    scope = wanted_scope(typed)
    return open_embedded(
        store=target.store,
        profile=typed_option(typed, "profile") or config.daemon.profile or "auto",
        backend=None,
        identity=_present(MemoryIdentity, owner_id=scope.owner_id, agent_id=scope.agent_id),
        scope=_present(MemoryScope, channel=scope.channel, chat_id=scope.chat_id),
        transport="cli",
        dependencies=configured_dependencies(config, os.environ),
    )


def _present(kind: Any, **given: str | None) -> Any:
    """A struct from what was given; its own defaults for the rest."""
    return convert_request({name: value for name, value in given.items() if value is not None}, kind, "$.scope")


def read_auth(path: str | None) -> DeviceAuth | None:
    """A device's credentials from a file that only its owner may read: JSON, or TOML with the same two names.

    Raises:
        InvalidRequest: it is no such file, or others may read it.
    """
    if path is None:
        return None
    text = _private_text(path)
    # What is wrong in it is not told: a decoder may quote what it found, and what it found is a secret.
    wrong = InvalidRequest(reason=f"--auth-file: {path} does not hold {AUTH_SHAPE}", hint=f"write {AUTH_SHAPE}")
    try:
        return convert_request(_credentials(text), DeviceAuth, "$")
    except (InvalidRequest, ValueError, RecursionError):
        raise wrong from None


def _private_text(path: str) -> str:
    try:
        # A pipe is opened to be refused; nobody waits for its other end.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise unreadable(f"--auth-file: {path}", error) from None
    try:
        # Of the file that is open: another may have its name by now.
        _check_private(path, os.fstat(descriptor))
        return os.read(descriptor, AUTH_BYTES).decode(errors="replace")
    except OSError as error:
        reason = f"--auth-file: {path}: {error.strerror or 'unreadable'}"
        raise InvalidRequest(reason=reason, hint="name a file") from None
    finally:
        os.close(descriptor)


def _check_private(path: str, found: os.stat_result) -> None:
    mode = stat.S_IMODE(found.st_mode)
    if not stat.S_ISREG(found.st_mode):
        raise InvalidRequest(reason=f"--auth-file: {path} is not a regular file", hint="name a regular file")
    if found.st_uid not in (0, os.geteuid()):
        # Whoever wrote it would choose as whom this user asks, and whose memory it writes.
        reason = f"--auth-file: {path} belongs to the user {found.st_uid}"
        raise InvalidRequest(reason=reason, hint=f"chown it to the user {os.geteuid()}")
    if mode & 0o077:
        reason = f"--auth-file: {path} may be read by others (mode {mode:04o})"
        raise InvalidRequest(reason=reason, hint=f"chmod 600 {path}")


def _credentials(text: str) -> Any:
    """Raises ValueError for what is neither JSON nor TOML."""
    if text.lstrip().startswith("{"):
        import json

        return json.loads(text)
    import tomllib

    return tomllib.loads(text)
