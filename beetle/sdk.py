"""The in-process entry point: `MemoryRuntime`, whose callers go through all five steps like any other."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any

from beetle.contracts.common import MemoryIdentity, MemoryScope, Report, WireScope
from beetle.contracts.methods import OperationMethods
from beetle.contracts.store import StoreOpenReport


class MemoryRuntime(OperationMethods):
    """A store opened in this process, for one identity and scope.

    Open it with `MemoryRuntime.open(...)` or `MemoryRuntime.builder()`; it is a context manager, and closing it commits
    what is queued. One process at a time may hold a store: another gets `store_locked`.
    """

    def __init__(self, opened: Any) -> None:
        self._opened = opened

    @classmethod
    def open(
        cls,
        store: str | None = None,
        *,
        profile: str = "auto",
        backend: str | None = None,
        identity: MemoryIdentity | None = None,
        scope: MemoryScope | None = None,
    ) -> MemoryRuntime:
        """Open a store.

        Args:
            store: path of the database; the user's default store when left out; ignored by the in-memory backend.
            profile: a profile's name, or `auto` to choose one that fits this machine.
            backend: in-memory, sqlite, file or embedded; the profile's own when left out.
            identity: for whom; the default owner and agent when left out.
            scope: where that agent talks.

        Raises:
            StoreLocked, StoreReadOnly, StorageFull, StoreCorrupt, SchemaMismatch, InvalidRequest.
        """
        from beetle.open import open_embedded

        return cls(
            open_embedded(
                store=store,
                profile=profile,
                backend=backend,
                identity=identity or MemoryIdentity(),
                scope=scope or MemoryScope(),
            )
        )

    @staticmethod
    def builder() -> MemoryRuntimeBuilder:
        """Set things up one by one, then `open()`."""
        return MemoryRuntimeBuilder()

    @property
    def open_report(self) -> StoreOpenReport:
        """What opening the store found."""
        return self._opened.open_report

    def call(
        self,
        operation: str,
        arguments: Any = None,
        *,
        scope: WireScope | None = None,
        idempotency_key: str | None = None,
        deadline_ms: int | None = None,
    ) -> Report:
        return self._opened.call(operation, arguments, scope, idempotency_key, deadline_ms).report

    def close(self) -> None:
        """Commit what is queued, checkpoint, release the store. A second call does nothing."""
        self._opened.close()

    def __enter__(self) -> MemoryRuntime:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@dataclass(frozen=True)
class MemoryRuntimeBuilder:
    """Settings of a runtime to be opened; every method answers a new builder."""

    _store: str | None = None
    _profile: str = "auto"
    _backend: str | None = None
    _identity: MemoryIdentity = field(default_factory=MemoryIdentity)
    _scope: MemoryScope = field(default_factory=MemoryScope)

    def store(self, path: str) -> MemoryRuntimeBuilder:
        """Path of the database."""
        return replace(self, _store=path)

    def profile(self, name: str) -> MemoryRuntimeBuilder:
        """A profile's name, or `auto`."""
        return replace(self, _profile=name)

    def backend(self, name: str) -> MemoryRuntimeBuilder:
        """in-memory, sqlite, file or embedded."""
        return replace(self, _backend=name)

    def identity(self, identity: MemoryIdentity) -> MemoryRuntimeBuilder:
        """For whom the runtime is opened."""
        return replace(self, _identity=identity)

    def scope(self, scope: MemoryScope) -> MemoryRuntimeBuilder:
        """Where that agent talks."""
        return replace(self, _scope=scope)

    def open(self) -> MemoryRuntime:
        """Open the store; errors as `MemoryRuntime.open`."""
        return MemoryRuntime.open(
            self._store, profile=self._profile, backend=self._backend, identity=self._identity, scope=self._scope
        )
