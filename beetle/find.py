"""Where a client looks for a daemon and its store: one rule for the command line and for `Client()`."""

from __future__ import annotations

import os
from collections.abc import Mapping

from beetle.contracts.errors import DaemonUnavailable, Forbidden
from beetle.named_tuple import NamedTuple
from beetle.runtime.host.config import Config, default_sockets_to_probe, read_config, socket_path, store_path


class Target(NamedTuple):
    """Where to look: at these sockets, in order; then at `store`, None when it must not be opened.

    `named` says that the user chose the socket, so that nobody answering there is an error when there is no store.
    """

    sockets: tuple[str, ...]
    store: str | None
    named: bool


def find_target(socket: str | None, store: str | None, env: Mapping[str, str], config: Config, uid: int) -> Target:
    """What was named (`socket`, `store`) outranks the environment, and that the configuration and the defaults, as a
    pair.

    So that a store alone never reaches the daemon of another store through $BEETLE_SOCKET, and a socket alone
    never opens the store of $BEETLE_STORE.

    Raises:
        InvalidRequest: an empty path, or a socket's that is too long.
    """
    for sock, path in ((socket, store), (env.get("BEETLE_SOCKET") or None, env.get("BEETLE_STORE") or None)):
        if sock is not None or path is not None:
            # Absolute before its length is judged; nothing stays nothing, which is refused.
            whole = os.path.abspath(sock) if sock else sock
            sockets = () if whole is None else (socket_path(whole, env, config, uid),)
            found = None if path is None else os.path.abspath(store_path(path, env, config, uid))
            return Target(sockets, found, sock is not None)
    probes = default_sockets_to_probe(None, env, config, uid)
    return Target(probes, os.path.abspath(store_path(None, env, config, uid)), False)


def refuse_closed_socket(path: str) -> None:
    """Raises Forbidden when nobody answered only because this user may not use the socket."""
    try:
        os.stat(path)
        allowed = os.access(path, os.W_OK, effective_ids=True)
    except PermissionError:
        allowed = False
    except OSError:
        return
    if not allowed:
        hint = "ask its operator for a [daemon] group, ask as another user, or name a store of your own with --store"
        raise Forbidden(reason=f"this user may not use the socket {path}", hint=hint)


def usual_sockets() -> tuple[str, ...]:
    """The sockets at which this process's daemon may be, in order, as the command line would look for it.

    Raises:
        DaemonUnavailable: only a store is named, and no daemon holds it.
        InvalidRequest: the configuration or a path is not as it must be.
    """
    from beetle.store.engine.lock import holder_of  # commands that name a socket do without

    uid = os.getuid()
    target = find_target(None, None, os.environ, read_config(None, os.environ, uid), uid)
    holder = None if target.store is None else holder_of(target.store)
    held = () if holder is None or holder.socket is None else (holder.socket,)
    if found := (*target.sockets, *held):
        return found
    raise DaemonUnavailable(reason=f"no daemon holds {target.store}")
