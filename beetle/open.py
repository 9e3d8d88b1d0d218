"""The composition root: profile and store to dispatcher, for the daemon and for whoever works without one."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, cast

from beetle import __version__
from beetle.contracts.codec import convert_request, replace
from beetle.contracts.common import MemoryIdentity, MemoryScope, WireScope
from beetle.contracts.errors import BeetleError, InvalidRequest
from beetle.contracts.lifecycle import MemoryCloseReport, MemoryCloseRequest
from beetle.contracts.names import BACKEND_NAMES, BackendName
from beetle.contracts.progress import OnProgress
from beetle.contracts.store import StoreOpenReport
from beetle.named_tuple import NamedTuple
from beetle.runtime.areas.scheduled import JOBS
from beetle.runtime.areas.table import HANDLERS
from beetle.runtime.host.caller import OWNER_VIEWS, Caller
from beetle.runtime.host.config import AbsolutePath, Config, Model, Replica, read_config, store_path
from beetle.runtime.host.dependencies import SYSTEM_DEPENDENCIES, Dependencies
from beetle.runtime.host.domain_functions import DOMAIN_FUNCTIONS
from beetle.runtime.host.identity import Identity, open_identity
from beetle.runtime.host.principals import OPERATOR, OPERATOR_CAPABILITIES
from beetle.runtime.host.profile import Profile, load_profile
from beetle.runtime.host.replica import Source
from beetle.runtime.host.scheduled_job import Job, check_schedules
from beetle.runtime.pipeline.dispatcher import Dispatcher
from beetle.runtime.pipeline.invocation import Call, Outcome
from beetle.store import chunk_imports, erasures, index_rebuild
from beetle.store.engine import kept_imports
from beetle.store.engine.connection import StoreSettings
from beetle.store.engine.store import Store
from beetle.store.engine.turns import IsAbandoned

if TYPE_CHECKING:
    from beetle.contracts.harness import HarnessRunReport, HarnessRunRequest
    from beetle.contracts.maintain import MemoryMaintainReport, MemoryMaintainRequest

IN_MEMORY = ":memory:"
"""Instead of a path: a store that is gone when it is closed. SQLite's own word for it."""
SKILL_DIRS_VARIABLE = "BM_AGENT_SKILL_DIRS"
UNFILLED = (
    "the recall index was not whole when the store was opened: recall does not find everything until the job "
    "`optimize`, which begins soon, or `beetle memory recover` has filled it"
)
EMBEDDED_CACHE_KIB = 512
"""The page cache of a connection that the embedded backend may have at most, whatever the profile."""


class Opened(NamedTuple):
    """An open store and everything that works on it."""

    store: Store
    dispatcher: Dispatcher
    profile: Profile
    reasons: tuple[str, ...]
    identity: Identity
    dependencies: Dependencies = SYSTEM_DEPENDENCIES


def open_store(
    path: str,
    profile_name: str,
    backend: str | None = None,
    *,
    dependencies: Dependencies = SYSTEM_DEPENDENCIES,
    vfs: str | None = None,
    env: Mapping[str, str] = os.environ,
    jobs: Sequence[Job] = JOBS,
) -> Opened:
    """Open or create the store at `path` with a profile, or the one that fits this machine (`auto`).

    Raises:
        StoreLocked, StoreReadOnly, StorageFull, StoreCorrupt, SchemaMismatch, InvalidRequest.
    """
    check_schedules(jobs, dependencies.schedules, dependencies.time_zone)
    profile, reasons = pick_profile(profile_name, path)
    store = Store(
        store_settings(path, profile, _backend(backend, profile))._replace(
            vfs=vfs, snapshots=dependencies.snapshots.folder or "", replicated=dependencies.replica_url is not None
        ),
        clock=dependencies.clock,
        elapsed=dependencies.elapsed,
        domain=DOMAIN_FUNCTIONS,
        version=__version__,
    )
    try:
        return _build(store, profile, reasons, dependencies, env, jobs)
    except BaseException:
        store.close()
        raise


def _build(
    store: Store,
    profile: Profile,
    reasons: tuple[str, ...],
    dependencies: Dependencies,
    env: Mapping[str, str],
    jobs: Sequence[Job],
) -> Opened:
    """What works on an open store."""
    identity = open_identity(store, env.get("CREDENTIALS_DIRECTORY"))
    if dependencies.harness is None:
        dependencies = dependencies._replace(harness=run_harness)
    dispatcher = Dispatcher(store, profile, identity, dependencies, HANDLERS, jobs, version=__version__)
    if store.settings.snapshots:
        from beetle.runtime.areas.snapshots import store_snapshots

        store.add_findings(store_snapshots.folder_findings(store))
    if not store.settings.immutable:
        # What is left of work in slices is finished by the code of all planes, which recall and writes load later.
        with store.read() as tx:
            erasures_are_left, imports_are_left = erasures.count(tx) > 0, chunk_imports.are_left(tx)
            index_is_left = index_rebuild.is_rebuilding(tx)
        if index_is_left:
            store.add_findings([UNFILLED])
        if erasures_are_left:
            from beetle.runtime.areas.erasure import finishing

            store.add_findings(finishing.finish_all(dispatcher.shared, dispatcher.crowd))
        if imports_are_left or kept_imports.are_left(store.settings):
            from beetle.runtime.areas.chunks.importing import finish_all

            store.add_findings(finish_all(dispatcher.shared, dispatcher.crowd))
    return Opened(store, dispatcher, profile, reasons, identity, dependencies)


def check_configured(config: Config) -> None:
    """What can be known of a configuration's values before a store is opened with it.

    Raises:
        InvalidRequest: a schedule cannot be read, or is of no job; with its path.
    """
    check_schedules(JOBS, config.scheduler.jobs, config.scheduler.time_zone)


def configured_dependencies(config: Config, env: Mapping[str, str]) -> Dependencies:
    """What a configuration and the environment say of the machine; $BM_AGENT_SKILL_DIRS outranks the file's folders.

    Raises:
        InvalidRequest: the variable holds what is no absolute folder.
    """
    named = [each for each in env.get(SKILL_DIRS_VARIABLE, "").split(":") if each]
    dirs = skill_folders(named, f"${SKILL_DIRS_VARIABLE}") if named else config.agent_skills.dirs
    signed = config.skill_registry.require_signed_skills
    return Dependencies(
        skill_dirs=dirs,
        model=config.model,
        require_signed_skills=signed,
        schedules=config.scheduler.jobs,
        time_zone=config.scheduler.time_zone,
        zone_variable=env.get("TZ", ""),
        snapshots=config.snapshots,
        replica_url=None if config.replica is None else config.replica.url,
        replica=None if config.replica is None else partial(_replica, config.replica, env),
    )


def _replica(settings: Replica, env: Mapping[str, str], store: str) -> Source:
    """The replica of a store, to be restored from. A process that does not needs none of it.

    Raises:
        ServicesUnavailable, InvalidRequest: its program or its secrets cannot be used.
    """
    from beetle.replication.program import Litestream

    return Litestream(store, settings.settings, env)


def dependencies_with_model(store: str | None, model: Model) -> Dependencies:
    """The dependencies of a store, the configured one when None, with another model than theirs."""
    usual = (
        SYSTEM_DEPENDENCIES
        if store
        else configured_dependencies(read_config(None, os.environ, os.getuid()), os.environ)
    )
    return usual._replace(model=model)


def skill_folders(dirs: Iterable[str], path: str) -> tuple[str, ...]:
    """Folders of Agent Skills as they may be mounted: absolute, and a text that a report can name.

    Raises:
        InvalidRequest: one of them is not; it stands at `path`.
    """
    given = list(dirs)
    try:
        return convert_request(given, tuple[AbsolutePath, ...], path)
    except InvalidRequest:
        reason = f"{path}: one of {len(given)} is not an absolute folder whose name is a text"
        raise InvalidRequest(reason=reason, hint="give absolute folders; in a variable put : between them") from None


def run_harness(request: HarnessRunRequest) -> HarnessRunReport:
    """Run fixtures in throw-away stores. What runs them is loaded when it is asked for, which few profiles allow."""
    from beetle.harness.gates import run

    return run(request)


def state_fingerprint(opened: Opened, owner_id: str) -> str:
    """The fingerprint of what an owner's memory space holds."""
    from beetle.runtime.areas.continuity.gather import state_fingerprint

    with opened.store.read() as tx:
        return state_fingerprint(tx, MemoryIdentity(owner_id=owner_id).memory_space_id)


def pick_profile(name: str, store: str) -> tuple[Profile, tuple[str, ...]]:
    """The profile of that name, or for `auto` the one that fits, with the reasons."""
    if name != "auto":
        return load_profile(name), ("it was asked for",)
    # A daemon whose profile is configured needs none of it.
    from beetle.runtime.host.choosing import choose_profile, read_machine

    choice = choose_profile(read_machine(os.path.dirname(os.path.abspath(store))))
    return load_profile(choice.name), choice.reasons


def store_settings(path: str, profile: Profile, backend: BackendName) -> StoreSettings:
    """The store's share of a profile's budgets."""
    budgets = profile.budgets
    cache = min(budgets.page_cache_kib, EMBEDDED_CACHE_KIB) if backend == "embedded" else budgets.page_cache_kib
    return StoreSettings(
        path=path,
        backend=backend,
        page_cache_kib=cache,
        index_cache_kib=budgets.index_cache_kib,
        mmap_bytes=budgets.mmap_bytes,
        wal_bytes=budgets.wal_bytes,
        store_bytes=budgets.store_bytes,
        readers=budgets.readers,
        write_queue=budgets.write_queue,
        write_group=budgets.write_group,
        background_share=budgets.background_share_percent,
    )


def _backend(asked: str | None, profile: Profile) -> BackendName:
    if asked is None:
        return profile.backends.default
    for backend in BACKEND_NAMES:
        if backend == asked and backend in profile.backends.allowed:
            return backend
    allowed = ", ".join(profile.backends.allowed)
    raise InvalidRequest(
        reason=f"the backend {asked!r} is not allowed by {profile.name}",
        hint=f"give one of {allowed}",
        path="$.backend",
    )


class _Jobs:
    """What doing deferred jobs asks of a runtime: a job is a call like any other."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher

    def may(self, operation: str, caller: Caller, scope: WireScope) -> bool:
        return self._dispatcher.may(operation, caller, scope)

    def maintain(self, caller: Caller, scope: WireScope, request: MemoryMaintainRequest) -> MemoryMaintainReport:
        report = self._dispatcher.dispatch(Call("memory.maintain", request, caller, scope)).report
        return cast("MemoryMaintainReport", report)


def start_jobs(opened: Opened, caller_of: Callable[[str], Caller | None], *, only: str | None = None) -> None:
    """Run the scheduler's jobs when they are due; with a model, also what principals have left to be done.

    Args:
        caller_of: who a principal's name stands for now, None for nobody.
        only: do what this principal has left alone; else what all have left but runtimes in processes of their own.
    """
    dispatcher, model = opened.dispatcher, opened.dispatcher.model
    if model is not None:
        from beetle.runtime.host.jobs import EMBEDDED, DeferredJobs, JobLimits, exactly

        terms = JobLimits(
            caller_of=caller_of,
            whose="*" if only is None else exactly(only),
            not_whose=EMBEDDED if only is None else "",
            timeout_s=model.timeout_s,
            rest_s=lambda: model.rest_s,
            clock=opened.dependencies.clock,
            ids=opened.dependencies.ids,
        )
        dispatcher.scheduler.deferred = DeferredJobs(opened.store, _Jobs(dispatcher), terms)
    dispatcher.scheduler.start()


def stop_jobs(opened: Opened) -> None:
    """Break off what the model is being asked, and wait for the jobs that run to end."""
    if opened.dispatcher.model is not None:
        opened.dispatcher.model.close()
    opened.dispatcher.scheduler.stop()


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
        on_progress: OnProgress | None = None,
        is_abandoned: IsAbandoned | None = None,
    ) -> Outcome:
        """Through all five steps, as the identity the store was opened for. What closes the runtime frees its store.

        Args:
            on_progress: called with the progress, on the thread that does the work.
            is_abandoned: whether nobody waits for the answer any more; then a read is stopped.
        """
        call = Call(
            operation,
            arguments,
            self._caller,
            scope or self._scope,
            idempotency_key,
            deadline_ms,
            on_progress=on_progress,
            is_abandoned=is_abandoned,
        )
        try:
            return self._opened.dispatcher.dispatch(call)
        finally:
            if self._opened.dispatcher.lifecycle.closed_with is not None:
                self.release()

    def close(self, reason: str) -> MemoryCloseReport | None:
        """Close as `memory.close` does, and free the store; None where that could not be done, but the store is freed:
        the profile hides the operation, or the writer is gone.

        Raises:
            InvalidRequest: the reason is no short text. Nothing was closed.
        """
        if (first := self._opened.dispatcher.lifecycle.closed_with) is not None:
            return replace(first, already=True, lifecycle=None)
        if self._opened.store.closed:
            return None
        try:
            report = self.call("memory.close", MemoryCloseRequest(reason=reason), None, None, None).report
        except InvalidRequest:
            raise
        except BeetleError:
            self.release()
            return None
        assert isinstance(report, MemoryCloseReport)
        return report

    def release(self) -> None:
        """Commit what is queued and free the store; a second call does nothing."""
        self._opened.dispatcher.lifecycle.stop_tasks()
        stop_jobs(self._opened)
        self._opened.store.close()
        self._opened.dispatcher.lifecycle.release()


def open_embedded(
    *,
    store: str | None,
    profile: str,
    backend: str | None,
    identity: MemoryIdentity,
    scope: MemoryScope,
    transport: str = "in_process",
    dependencies: Dependencies | None = None,
    skill_dirs: Sequence[str] = (),
) -> Embedded:
    """Open a store in this process, for its owner, or for the operator who types a command (`transport="cli"`).

    Args:
        store: its path; `:memory:` asks for the in-memory backend.
            Left out, it and the dependencies are what the configuration says.
        skill_dirs: folders of Agent Skills to mount in place of the configuration's; relative ones are made absolute.
    """
    # A struct's constructor checks nothing.
    identity = convert_request(identity, MemoryIdentity, "$.identity")
    scope = convert_request(scope, MemoryScope, "$.scope")
    if store == IN_MEMORY:
        if backend not in (None, "in-memory"):
            raise InvalidRequest(
                reason=f"{IN_MEMORY} is not a file for the backend {backend!r}", hint="leave one of them out"
            )
        backend = "in-memory"
    if store is None:
        uid = os.getuid()
        config = read_config(None, os.environ, uid)
        store = store_path(None, os.environ, config, uid)
        dependencies = dependencies or configured_dependencies(config, os.environ)
    dependencies = dependencies or SYSTEM_DEPENDENCIES
    if skill_dirs:
        folders = skill_folders((each and os.path.abspath(each) for each in skill_dirs), "$.agent_skill_dirs")
        dependencies = dependencies._replace(skill_dirs=folders)
    opened = open_store(store, profile, backend, dependencies=dependencies)
    wire = WireScope(
        owner_id=identity.owner_id,
        agent_id=identity.agent_id,
        channel=scope.channel,
        chat_id=scope.chat_id,
        conversation_id=scope.conversation_id,
    )
    # A command that opens the store itself is what it would be to the daemon: no more is shown to it, and no less.
    caller = OPERATOR._replace(transport=transport) if transport == "cli" else _owner(identity)
    embedded = Embedded(opened, caller, wire)
    # A command is over before a job would be.
    if transport == "in_process":
        try:
            start_jobs(opened, {caller.name: caller}.get, only=caller.name)
        except BaseException:
            embedded.release()
            raise
    return embedded


def open_in_turn(store: str, profile: str) -> Embedded:
    """Open a store in this process for its default owner, who keeps it for some calls: no scheduled job is run."""
    identity = MemoryIdentity()
    wire = WireScope(owner_id=identity.owner_id, agent_id=identity.agent_id)
    return Embedded(open_store(store, profile), _owner(identity), wire)


def _owner(identity: MemoryIdentity) -> Caller:
    """The owner in whose process the store is open: every capability and every view."""
    return Caller(
        name=f"embedded:{identity.agent_id}",
        kind="embedded",
        capabilities=OPERATOR_CAPABILITIES | {"transcript.raw", "private.read"},
        views=OWNER_VIEWS,
        transport="in_process",
        owner_id=identity.owner_id,
        agent_id=identity.agent_id,
    )
