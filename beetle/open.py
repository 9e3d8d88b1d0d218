"""The composition root: profile and store to dispatcher, for the daemon and for whoever works without one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from beetle import __version__
from beetle.contracts.codec import convert_request
from beetle.contracts.common import MemoryIdentity, MemoryScope, WireScope
from beetle.contracts.errors import InvalidRequest
from beetle.contracts.store import StoreOpenReport
from beetle.memory.chain import chain_hash
from beetle.runtime.caller import Caller
from beetle.runtime.config import read_config, store_path
from beetle.runtime.dispatcher import Call, Dispatcher, Outcome
from beetle.runtime.identity import Identity, open_identity
from beetle.runtime.principals import OPERATOR, OPERATOR_CAPABILITIES
from beetle.runtime.profile import Profile, choose_profile, load_profile, read_machine
from beetle.runtime.surroundings import THIS_MACHINE, Surroundings
from beetle.store.connection import BACKENDS, Backend, StoreSettings
from beetle.store.store import Store

EMBEDDED_CACHE_KIB = 512
"""The page cache of a connection that the embedded backend may have at most, whatever the profile."""


class Opened(NamedTuple):
    """An open store and everything that works on it."""

    store: Store
    dispatcher: Dispatcher
    profile: Profile
    reasons: tuple[str, ...]
    identity: Identity


def open_store(
    path: str,
    profile_name: str,
    backend: str | None = None,
    *,
    surroundings: Surroundings = THIS_MACHINE,
    vfs: str | None = None,
    env: Mapping[str, str] = os.environ,
) -> Opened:
    """Open or create the store at `path` with a profile, or the one that fits this machine (`auto`).

    Raises:
        StoreLocked, StoreReadOnly, StorageFull, StoreCorrupt, SchemaMismatch, InvalidRequest.
    """
    profile, reasons = pick_profile(profile_name, path)
    store = Store(
        store_settings(path, profile, _backend(backend, profile))._replace(vfs=vfs),
        clock=surroundings.clock,
        chain_hash=chain_hash,
        version=__version__,
    )
    identity = open_identity(store, env.get("CREDENTIALS_DIRECTORY"))
    dispatcher = Dispatcher(store, profile, identity, surroundings, version=__version__)
    return Opened(store, dispatcher, profile, reasons, identity)


def pick_profile(name: str, store: str) -> tuple[Profile, tuple[str, ...]]:
    """The profile of that name, or for `auto` the one that fits, with the reasons."""
    if name != "auto":
        return load_profile(name), ("it was asked for",)
    choice = choose_profile(read_machine(Path(os.path.dirname(os.path.abspath(store)))))
    return load_profile(choice.name), choice.reasons


def store_settings(path: str, profile: Profile, backend: Backend) -> StoreSettings:
    """The store's share of a profile's budgets."""
    budgets = profile.budgets
    cache = min(budgets.page_cache_kib, EMBEDDED_CACHE_KIB) if backend == "embedded" else budgets.page_cache_kib
    return StoreSettings(
        path=path,
        backend=backend,
        page_cache_kib=cache,
        mmap_bytes=budgets.mmap_bytes,
        wal_bytes=budgets.wal_bytes,
        store_bytes=budgets.store_bytes,
        readers=budgets.readers,
        write_queue=budgets.write_queue,
        write_group=budgets.write_group,
    )


def _backend(asked: str | None, profile: Profile) -> Backend:
    if asked is None:
        return profile.backends.default
    for backend in BACKENDS:
        if backend == asked and backend in profile.backends.allowed:
            return backend
    allowed = ", ".join(profile.backends.allowed)
    raise InvalidRequest(
        reason=f"the backend {asked!r} is not allowed by {profile.name}",
        hint=f"give one of {allowed}",
        path="$.backend",
    )


class Embedded:
    """A store opened in this process, behind the call that a client has too."""

    def __init__(self, opened: Opened, caller: Caller, scope: WireScope) -> None:
        self._opened = opened
        self._caller = caller
        self._scope = scope
        self.dispatcher = opened.dispatcher

    @property
    def open_report(self) -> StoreOpenReport:
        return self._opened.store.open_report

    def call(
        self,
        operation: str,
        arguments: object,
        scope: WireScope | None,
        idempotency_key: str | None,
        deadline_ms: int | None,
    ) -> Outcome:
        """Through all five steps, as the identity the store was opened for."""
        return self._opened.dispatcher.dispatch(
            Call(operation, arguments, self._caller, scope or self._scope, idempotency_key, deadline_ms)
        )

    def close(self) -> None:
        self._opened.store.close()


def open_embedded(
    *,
    store: str | None,
    profile: str,
    backend: str | None,
    identity: MemoryIdentity,
    scope: MemoryScope,
    transport: str = "in_process",
    surroundings: Surroundings = THIS_MACHINE,
) -> Embedded:
    """Open a store in this process, for its owner, or for the operator who types a command (`transport="cli"`)."""
    # A struct's constructor checks nothing.
    identity = convert_request(identity, MemoryIdentity, "$.identity")
    scope = convert_request(scope, MemoryScope, "$.scope")
    if store is None:
        uid = os.getuid()
        store = str(store_path(None, os.environ, read_config(None, os.environ, uid), uid))
    opened = open_store(store, profile, backend, surroundings=surroundings)
    wire = WireScope(
        owner_id=identity.owner_id,
        agent_id=identity.agent_id,
        channel=scope.channel,
        chat_id=scope.chat_id,
        conversation_id=scope.conversation_id,
    )
    # A command that opens the store itself is what it would be to the daemon: no more is shown to it, and no less.
    caller = OPERATOR._replace(transport=transport) if transport == "cli" else _owner(identity)
    return Embedded(opened, caller, wire)


def _owner(identity: MemoryIdentity) -> Caller:
    """The owner in whose process the store is open: every capability and every view."""
    return Caller(
        name=f"embedded:{identity.agent_id}",
        kind="embedded",
        capabilities=OPERATOR_CAPABILITIES | {"transcript.raw", "private.read"},
        views=("host_ui", "model_context", "operator_audit", "export", "raw_owner"),
        transport="in_process",
        owner_id=identity.owner_id,
        agent_id=identity.agent_id,
    )
