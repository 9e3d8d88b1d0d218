"""The in-process entry point: `MemoryRuntime`, whose callers go through all five steps like any other."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from beetle.contracts.common import MemoryIdentity, MemoryScope, Report, WireScope
from beetle.contracts.lifecycle import MemoryCloseReport
from beetle.contracts.progress import OnProgress
from beetle.contracts.store import StoreOpenReport
from beetle.contracts.tool_registries import ToolRegistryUpsertRequest
from beetle.import_export import FileMethods

if TYPE_CHECKING:
    from beetle.open import Embedded
    from beetle.runtime.host.config import Model


class MemoryRuntime(FileMethods):
    """A store opened in this process, for one identity and scope.

    Open it with `MemoryRuntime.open(...)` or `MemoryRuntime.builder()`; it is a context manager, and closing it commits
    what is queued. One process at a time may hold a store: another gets `store_locked`.
    """

    def __init__(self, opened: Embedded) -> None:
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
        agent_skill_dirs: Iterable[str | os.PathLike[str]] = (),
        model: Model | None = None,
    ) -> MemoryRuntime:
        """Open a store.

        Args:
            store: path of the database; the user's default store when left out; `:memory:` is the in-memory backend.
            profile: a profile's name, or `auto` to choose one that fits this machine.
            backend: in-memory, sqlite, file or embedded; the profile's own when left out.
            identity: for whom; the default owner and agent when left out.
            scope: where that agent talks.
            agent_skill_dirs: folders of Agent Skills to mount, which are read and never changed; without a `store`, the
                configuration's when left out.
            model: who answers maintenance; without a `store`, the configuration's when left out.

        Raises:
            StoreLocked, StoreReadOnly, StorageFull, StoreCorrupt, SchemaMismatch, InvalidRequest.
        """
        from beetle.open import dependencies_with_model, open_embedded

        return cls(
            open_embedded(
                store=store,
                profile=profile,
                backend=backend,
                identity=identity or MemoryIdentity(),
                scope=scope or MemoryScope(),
                skill_dirs=tuple(os.fspath(each) for each in agent_skill_dirs),
                dependencies=None if model is None else dependencies_with_model(store, model),
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
        on_progress: OnProgress | None = None,
    ) -> Report:
        return self._opened.call(operation, arguments, scope, idempotency_key, deadline_ms, on_progress).report

    def close(self, reason: str = "the runtime was closed") -> MemoryCloseReport | None:
        """Commit what is queued, fold the write-ahead log into the store, and free it. A second call says so.

        Args:
            reason: for the report; at most 256 characters.

        Returns:
            What closing did, `already` set when it had been done before; None where nothing could be done
            but to free the store: the profile hides the operation, or the writer is gone.
        """
        return self._opened.close(reason)

    def __enter__(self) -> MemoryRuntime:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass(frozen=True)
class MemoryRuntimeBuilder:
    """Settings of a runtime to be opened; every method answers a new builder."""

    _store: str | None = None
    _profile: str = "auto"
    _backend: str | None = None
    _identity: MemoryIdentity = field(default_factory=MemoryIdentity)
    _scope: MemoryScope = field(default_factory=MemoryScope)
    _skill_dirs: tuple[str, ...] = ()
    _registries: tuple[ToolRegistryUpsertRequest, ...] = ()
    _model: Model | None = None

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

    def agent_skill_dirs(self, dirs: Iterable[str | os.PathLike[str]]) -> MemoryRuntimeBuilder:
        """Folders of Agent Skills to mount, in place of those given before."""
        return replace(self, _skill_dirs=tuple(os.fspath(each) for each in dirs))

    def add_agent_skill_dir(self, path: str | os.PathLike[str]) -> MemoryRuntimeBuilder:
        """One more folder of Agent Skills to mount."""
        return replace(self, _skill_dirs=(*self._skill_dirs, os.fspath(path)))

    def agent_tool_registry(
        self, registry: ToolRegistryUpsertRequest | None = None, /, **fields: Any
    ) -> MemoryRuntimeBuilder:
        """One more tool registry, by its request or its fields, to be registered as soon as the store is open.

        Raises:
            InvalidRequest: one of its fields is not as it must be.
        """
        from beetle.contracts.codec import convert_request

        given = convert_request(fields if registry is None else registry, ToolRegistryUpsertRequest, "$.registry")
        return replace(self, _registries=(*self._registries, given))

    def model(
        self,
        kind: Literal["openai", "ollama"],
        name: str,
        *,
        url: str | None = None,
        api_key_file: str | None = None,
        timeout_s: int = 60,
        summaries: bool = False,
    ) -> MemoryRuntimeBuilder:
        """Who answers maintenance, as `[model]` of beetle.toml would say it.

        Args:
            kind: its protocol.
            url: the usual loopback address of its kind when left out; `unix:PATH` is a socket on this machine.
            api_key_file: a file of one line that only this user may read.
            timeout_s: seconds that one question may take.
            summaries: whether it also writes the table of contents; every shared turn is sent to it then.

        Raises:
            InvalidRequest: one of these is not as it must be.
        """
        from beetle.runtime.host.config import model_of

        given = {
            "kind": kind,
            "name": name,
            "url": url,
            "api_key_file": api_key_file,
            "timeout_s": timeout_s,
            "summaries": summaries,
        }
        return replace(self, _model=model_of(given))

    def open(self) -> MemoryRuntime:
        """Open the store, then register; errors as `MemoryRuntime.open` and `upsert_agent_tool_registry`."""
        runtime = MemoryRuntime.open(
            self._store,
            profile=self._profile,
            backend=self._backend,
            identity=self._identity,
            scope=self._scope,
            agent_skill_dirs=self._skill_dirs,
            model=self._model,
        )
        try:
            for each in self._registries:
                runtime.upsert_agent_tool_registry(each)
        except BaseException:
            runtime.close()
            raise
        return runtime
