"""Keeps a sidecar running beside an open store, and knows how far it is.

One thread starts it, watches it and ends it; it never waits for the store's writer, which may be waiting for it. What
the daemon does waits for it nowhere but at the end, for a few seconds.
"""

from __future__ import annotations

import contextlib
import logging
import os
import random
import select
import threading
import time
import traceback
from collections.abc import Callable, Mapping

from beetle.contracts.codec import format_us
from beetle.contracts.errors import BeetleError, InvalidRequest, ServicesUnavailable
from beetle.contracts.replication import ReplicaProblem, ReplicaState, ReplicationStatusReport
from beetle.named_tuple import NamedTuple
from beetle.replication.chain import Chain, sent_anew
from beetle.replication.control import Refused, Silent
from beetle.replication.followed import Followed
from beetle.replication.forgetting import HURRY, Forgetting, Result
from beetle.replication.program import Litestream
from beetle.replication.progress import Progress, Written
from beetle.replication.sidecar import ControlFolder, Sidecar, make_control_folder, remove_control_folder
from beetle.replication.staging import drop_staged, settle_times, staged_bytes
from beetle.replication.target import ReplicaSettings

log = logging.getLogger("beetle.replication")

LOOK_S = 1.0
"""How often a sidecar is asked how far it is."""
SYNC_S = 1.0
ALIVE_S = 1.0
SILENT_S, MOST_SILENT_S = 5.0, 60.0
"""A sidecar that has answered nothing for so long is replaced; one that is stopped at the second look. The next one
gets twice the time: on a slow machine a start may take longer, and would never come to its end."""
PASSING = ("starting", "paused", "stopped")
"""States that belong to every start, pause and end: nobody is told of them."""
BEHIND_S = 5.0
PROBE_S = 10.0
"""How often a target that takes nothing is tried, beside the sidecar's own tries, which become rare."""
BACKOFF_S, MOST_BACKOFF_S = 0.5, 60.0
SUSPENDED_S, MOST_SUSPENDED_S = 60.0, 900.0
WELL_S = 60.0
"""After so long a time of work the next failure is waited for as the first one is."""
REFUSED_S = 60.0
STAGED_LOOK_S = 5.0
STOP_S = 6.0
ANSWER_S = 0.4
"""For so long a question for the status waits for a fresh look."""
LOW_DISK_BYTES = 32 * 2**20
SMALL_BYTES = 2**20
OVERRUN_S = 60.0
"""For so long a sidecar that works may keep the log beyond its limit, while commits wait longest."""
EXCUSE_S = 5.0
CLOCK_BACK_S = 30.0
"""A wall clock that was put back by so much leaves the sidecar waiting for the time that it has seen."""
SYNCED_S = 3600.0
PAGE_BYTES = 4096
MOST_PAGES = 4096
LOST = (
    "what was sent is not at the target any more, and the rest makes no store: the whole store is sent anew",
    "see whether its disk is mounted, and who removes files there; `replicating` tells that all is there again",
)
"""Detail and hint."""


class _Ended(NamedTuple):
    """How a sidecar's run ended, and what is to come of it."""

    state: ReplicaState
    problem: ReplicaProblem | None = None
    detail: str | None = None


class Supervisor:
    """The sidecar of one store. `on_change` is called on its thread with each state that lasts, and must not wait."""

    def __init__(
        self,
        settings: ReplicaSettings,
        followed: Followed,
        folder: str,
        environment: Mapping[str, str],
        on_change: Callable[[ReplicaState, ReplicaProblem | None], None],
    ) -> None:
        self._settings = settings
        self._followed = followed
        self._folder = folder
        self._environment = environment
        self._on_change = on_change
        self._progress = Progress()
        self._patience_s = SILENT_S
        self._changed = threading.Condition()
        self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._stopping = False
        self._held = 0
        self._forgetting: Forgetting | None = None
        self.on_forgotten: Callable[[Result], None] | None = None
        self.on_synced: Callable[[Litestream, int], None] | None = None
        """Called on the supervisor's thread when all is at the target, soon after a sidecar has started and then once
        in an hour, with the replica and its last transaction; it may ask the target."""
        self._overrun = False
        self._looks = 0
        self._sidecar: Sidecar | None = None
        self._starts = 0
        self._mending = False
        self._staged: int | None = None
        self._staged_at = 0.0
        self._state: ReplicaState = "starting"
        self._since = time.time()
        self._problem: tuple[ReplicaProblem | None, str | None, str | None] = (None, None, None)
        self._told: tuple[ReplicaState, ReplicaProblem | None] = ("off", None)
        self._synced_wall: float | None = None
        followed.log.on_overrun = self._on_overrun
        followed.log.on_end = self.hold
        followed.log.on_begin = self.release
        followed.log.on_ask = self._step
        followed.log.is_gone = lambda: self._sidecar is None
        followed.log.kept_until = settings.kept_until
        self._thread = threading.Thread(target=self._run, name="beetle-replica", daemon=True)

    def start(self) -> None:
        """Begin, and return at once."""
        self._thread.start()

    def close(self) -> None:
        """End the sidecar, which sends what is left if it can within a few seconds, and the thread."""
        with self._changed:
            self._stopping = True
        self._stir()
        self._thread.join(STOP_S + 2.0)

    def hold(self) -> None:
        """Detach the sidecar, which sends what is left first, and keep it so until `release`; returns when it is."""
        with self._changed:
            self._held += 1
        self._stir()
        with self._changed:
            self._changed.wait_for(lambda: self._sidecar is None or not self._thread.is_alive(), STOP_S + 2.0)

    def release(self) -> None:
        """Go on."""
        with self._changed:
            self._held = max(0, self._held - 1)
        self._stir()

    def forget(self, must_end: Callable[[], bool], at: Callable[[int, int], None]) -> Result:
        """Remove from the replica all that was sent before now; see `forgetting`. It goes on when the wait ends.

        Raises:
            BeetleError: why it could not be done.
            DeadlineExceeded: `must_end` became true.
        """
        return self.forget_soon().wait(must_end, at)

    def forget_soon(self) -> Forgetting:
        """Begin to, and return at once; one that has begun is what all wait for. Where nobody does, `on_forgotten` is
        told of its end."""
        with self._changed:
            found = self._forgetting
            if found is None:
                found = self._forgetting = Forgetting(self._followed.touch, self.on_forgotten)
            if self._stopping or (not self._thread.is_alive() and self._thread.ident is not None):
                found.fail(ServicesUnavailable(reason="the daemon ends", hint="the next one goes on with it"))
        self._stir()
        return found

    def _step(self, aside: bool) -> None:
        """As `hold`, and as `release`, and returns at once."""
        with self._changed:
            self._held = max(0, self._held + (1 if aside else -1))
        self._stir()

    @property
    def synced_events(self) -> int | None:
        """How many rows the event log had when the store was last known to be at the target whole; None before that."""
        found = self._progress.synced_store
        return None if found is None else found.events

    def status(self) -> ReplicationStatusReport:
        """How far the replica is now; asks the sidecar, for a moment."""
        with self._changed:
            seen = self._looks
            if self._sidecar is not None:
                self._stir()
                self._changed.wait_for(lambda: self._looks > seen or self._sidecar is None, ANSWER_S)
            return self._report()

    def _report(self) -> ReplicationStatusReport:
        now, progress, log_ = time.monotonic(), self._progress, self._followed.log
        problem, detail, hint = self._problem
        waiting, staged = progress.waiting, self._staged
        lag = progress.lag_s(now, log_.commits)
        return ReplicationStatusReport(
            state=self._state,
            since=format_us(int(self._since * 1e6)),
            problem=problem,
            detail=detail,
            hint=hint,
            target_kind=self._settings.target.kind,
            target=self._settings.target.url,
            lag_s=None if lag is None else round(lag, 3),
            lag_bytes=None if lag is None else self._waiting_bytes(lag),
            lag_transactions=waiting,
            txid=progress.txid,
            replicated_txid=progress.replicated,
            last_synced_at=None if self._synced_wall is None else format_us(int(self._synced_wall * 1e6)),
            restarts=max(0, self._starts - 1),
            wal_bytes=self._followed.wal_bytes(),
            staged_bytes=staged,
            writer_waits=log_.waits,
            writer_waited_s=round(log_.waited_s, 3),
            pid=None if self._sidecar is None else self._sidecar.pid,
            retention_h=self._settings.retention_h,
        )

    def _waiting_bytes(self, lag_s: float) -> int:
        """What is staged and not sent; of the log, which nobody follows, all of it."""
        if not lag_s:
            return 0
        staged = staged_bytes(self._followed.path, self._progress.replicated or 0)
        return staged if self._followed.log.attached else staged + self._followed.wal_bytes()

    def _on_overrun(self) -> None:
        self._overrun = True
        self._stir()

    def _stir(self) -> None:
        os.eventfd_write(self._wake, 1)

    def _now(self, state: ReplicaState, problem: ReplicaProblem | None = None, *words: str | None) -> None:
        """The state from now on; others are told when it is another."""
        detail, hint = (*words, None, None)[:2]
        with self._changed:
            is_new = (state, problem) != (self._state, self._problem[0])
            self._problem = (problem, detail, hint)
            if state != self._state:
                self._state, self._since = state, time.time()
            self._changed.notify_all()
            is_new = is_new and (state, problem) != self._told and state not in PASSING
            if is_new:
                self._told = (state, problem)
        if is_new:
            level = logging.WARNING if problem is not None else logging.INFO
            log.log(level, "replica %s%s", state, f" ({problem}): {detail or ''}" if problem else "")
            self._on_change(state, problem)

    def _run(self) -> None:
        place: ControlFolder | None = None
        backoff, suspended = BACKOFF_S, SUSPENDED_S
        try:
            while not self._stopping:
                if self._held:
                    self._now("paused")
                    self._rest(REFUSED_S)
                    continue
                began = time.monotonic()
                try:
                    place = place or make_control_folder(self._folder)
                    stream = Litestream(self._followed.path, self._settings, self._environment)
                    ended = self._run_one(stream, place, self._to_forget(stream))
                except BeetleError as error:
                    self._refuse(error, place)
                    self._rest(REFUSED_S)
                    continue
                except Exception as defect:  # noqa: BLE001 - a defect here must leave no store without its replica
                    where = "".join(traceback.format_tb(defect.__traceback__))
                    log.error("the replica's supervision failed: %s\n%s", type(defect).__name__, where)
                    ended = _Ended("waiting", "exited", "its supervision failed: see the log")
                lasted = time.monotonic() - began
                if lasted > WELL_S and ended.state != "suspended":
                    backoff, suspended = BACKOFF_S, SUSPENDED_S
                if ended.problem == "not_answering":
                    self._patience_s = min(self._patience_s * 2, MOST_SILENT_S)
                elif lasted > WELL_S:
                    self._patience_s = SILENT_S
                if ended.state in ("paused", "stopped"):
                    continue
                self._now(ended.state, ended.problem, ended.detail)
                if ended.state == "suspended":
                    self._rest(suspended)
                    suspended = min(suspended * 2, MOST_SUSPENDED_S)
                else:
                    self._rest(backoff * random.uniform(0.75, 1.25))
                    backoff = min(backoff * 2, MOST_BACKOFF_S)
        finally:
            self._forgot(ServicesUnavailable(reason="the daemon ends", hint="the next one goes on with it"))
            self._now("stopped")
            if place is not None:
                remove_control_folder(place)

    def _refuse(self, error: BeetleError, place: ControlFolder | None) -> None:
        problem: ReplicaProblem = (
            "place" if place is None else "secret" if isinstance(error, InvalidRequest) else "program"
        )
        self._now("refused", problem, error.message, error.hint)

    def _rest(self, seconds: float) -> None:
        """Wait, but for who stops, holds or releases."""
        end, asked = time.monotonic() + seconds, (self._held, self._forgetting)
        while not self._stopping and (self._held, self._forgetting) == asked and (left := end - time.monotonic()) > 0:
            select.select([self._wake], [], [], left)
            self._take_stir()

    def _take_stir(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self._wake)

    def _to_forget(self, stream: Litestream) -> Forgetting | None:
        """What is to be removed, noted; None where nothing is."""
        found = self._forgetting
        if found is not None:
            try:
                found.begin(stream)
            except BeetleError as error:
                self._forgot(error)
                return None
        return found

    def _forgot(self, error: BeetleError | None = None) -> None:
        """Nothing is being removed any more: it is done, or could not be."""
        with self._changed:
            found, self._forgetting = self._forgetting, None
        if found is not None and error is not None:
            log.warning("the replica has not forgotten: %s", error.message)
            found.fail(error)

    def _run_one(self, stream: Litestream, place: ControlFolder, forgetting: Forgetting | None) -> _Ended:
        """One sidecar, from its start to its end."""
        if not self._mending:
            self._now("starting")
        if self._settings.target.kind == "file":
            settle_times(self._settings.target.path)
        otherwise = sent_anew(self._settings.retention_h) if self._mending else None
        pages = max(64, min(MOST_PAGES, self._followed.log.soft // 2 // PAGE_BYTES))
        with self._changed:
            # Who holds it must be able to trust that none starts.
            if self._held or self._stopping:
                return _Ended("paused")
            self._sidecar = sidecar = Sidecar(stream, place, pages, otherwise if forgetting is None else HURRY)
            self._starts += 1
            self._progress.restarted()
        self._staged_at = 0.0
        try:
            ended = _Watch(self, sidecar, stream, forgetting).run()
        finally:
            sidecar.kill()
            with self._changed:
                self._sidecar = None
                self._followed.log.attached = False
                self._changed.notify_all()
        if ended.state == "suspended":
            drop_staged(self._followed.path)
            self._staged = 0
        return ended


class _Watch:
    """The watch over one sidecar, on the supervisor's thread."""

    def __init__(self, owner: Supervisor, sidecar: Sidecar, stream: Litestream, forgetting: Forgetting | None) -> None:
        self._of = owner
        self._sidecar = sidecar
        self._stream = stream
        self._forgetting = forgetting
        self._log = owner._followed.log
        self._heard = self._well = time.monotonic()
        self._probed = self._heard
        self._overrun_since = self._heard
        self._was_frozen = False
        self._clock = time.time() - time.monotonic()
        self._told_synced: float | None = None
        self._chain = Chain(stream, is_broken=owner._mending)
        # Whether it has answered how far it is: only then it is known to hold the log.
        self._in_step = False
        self._log.keeps_log = False
        self._log.attached = True

    def run(self) -> _Ended:
        """Look again and again, until it has ended or must."""
        pause = 0.05
        while True:
            self._sidecar.listen(pause, self._of._wake)
            self._of._take_stir()
            if self._of._stopping or self._of._held or self._of._forgetting is not self._forgetting:
                return self._let_go()
            if self._has_forgotten() or self._clock_was_put_back() or self._mended_or_broken():
                return self._let_go()
            if (ended := self._dead() or self._look() or self._room() or self._overrun()) is not None:
                return ended
            # It is asked often until it has answered once, and whenever somebody wants to know.
            pause = LOOK_S if self._in_step and not self._of._overrun else min(LOOK_S, pause * 1.5)

    def _clock_was_put_back(self) -> bool:
        """Whether the wall clock was; a sidecar that is started anew goes by what it is now."""
        clock = time.time() - time.monotonic()
        back = self._clock - clock
        # Of a clock that is slewed back bit by bit, the sum counts.
        self._clock = max(self._clock, clock)
        if back > CLOCK_BACK_S:
            log.warning("the clock was put back by %.0f s: the sidecar is started anew", back)
            return True
        return False

    def _mended_or_broken(self) -> bool:
        """Whether the target has lost what was sent, or has all again: another sidecar is for that."""
        of, arrived = self._of, self._of._progress.arrived
        if self._forgetting is not None or not self._in_step or not arrived:
            return False
        found = self._chain.look(time.monotonic(), arrived)
        if found is None:
            return False
        with of._changed:
            of._progress.limit = None if found.is_whole else found.reach
        if not found.is_whole:
            # Litestream makes no snapshot of a store that nobody has written to.
            of._followed.touch()
        if of._mending is not found.is_whole:
            return False
        of._mending = not found.is_whole
        if of._mending:
            of._now("behind", "target", *LOST)
        return True

    def _has_forgotten(self) -> bool:
        """Whether what was sent before is gone, or will not go now."""
        if self._forgetting is None:
            return False
        try:
            if not self._forgetting.look(self._stream):
                return False
            self._of._forgot()
        except BeetleError as error:
            self._of._forgot(error)
        return True

    def _let_go(self) -> _Ended:
        clean = self._sidecar.stop(STOP_S)
        self._log.attached = False
        self._log.keeps_log = clean and self._in_step
        return _Ended("stopped" if self._of._stopping else "paused")

    def _dead(self) -> _Ended | None:
        code = self._sidecar.ended
        if code is not None:
            told = f"signal {-code}" if code < 0 else f"exit code {code}"
            # It ends by itself where the target does not let it in at its beginning.
            problem = "target" if code > 0 and not self._in_step else "exited"
            return _Ended("waiting", problem, self._words(f"litestream ended with {told}"))
        if not self._sidecar.frozen:
            self._was_frozen = False
        elif self._was_frozen:
            return self._replaced("litestream was stopped by a signal")
        else:
            self._was_frozen = True
        return None

    def _replaced(self, why: str) -> _Ended:
        self._sidecar.kill()
        self._log.attached = False
        self._of._now("stalled", "not_answering", why)
        return _Ended("waiting", "not_answering", why)

    def _look(self) -> _Ended | None:
        """Ask how far it is."""
        now = time.monotonic()
        of, failing = self._of, now - self._well > BEHIND_S
        # What still waits at the next look is sent at once: the sidecar itself waits for long after many failures.
        wait = bool(of._progress.waiting) and now - self._probed > (PROBE_S if failing else LOOK_S)
        written = Written(self._log.commits, of._followed.events())
        if wait:
            self._probed = now
        try:
            position = self._sidecar.control.sync(SYNC_S, wait=wait)
        except Refused:
            self._heard = now
            # Without its target it lets go of the store again at once, and tries later.
            self._log.attached = self._in_step
            return self._behind(now)
        except Silent:
            return self._silent(now)
        self._heard = now
        with of._changed:
            self._log.attached = self._in_step = True
            of._progress.note(now, written, position)
            of._looks += 1
            of._changed.notify_all()
        if of._progress.limit is not None:
            of._now("behind", "target", *LOST)
            return None
        if of._progress.waiting == 0:
            self._well, of._synced_wall = now, time.time()
            of._now("replicating")
            self._report_synced(now, position.txid)
            return None
        return self._behind(now)

    def _report_synced(self, now: float, txid: int) -> None:
        if self._of.on_synced is None or (self._told_synced is not None and now - self._told_synced < SYNCED_S):
            return
        self._told_synced = now
        self._of.on_synced(self._stream, txid)

    def _behind(self, now: float) -> None:
        """Tell of a target that takes nothing, once that has lasted; not of a first copy that takes its time."""
        if self._of._progress.replicated is None and not self._sidecar.said:
            return
        self._well = max(self._well, self._of._progress.synced or 0.0)
        if now - self._well > BEHIND_S:
            self._of._now("behind", "target", self._words("the target takes nothing"))

    def _silent(self, now: float) -> _Ended | None:
        """A sidecar that works at something large answers `alive`, one that hangs does not."""
        if self._sidecar.frozen:
            return self._replaced("litestream was stopped by a signal")
        if self._sidecar.control.alive(ALIVE_S):
            self._heard = now
            # At its beginning it reads the whole store.
            return self._behind(now) if self._in_step else None
        if now - self._heard > self._of._patience_s:
            return self._replaced(f"litestream has not answered for {self._of._patience_s:.0f} s")
        return None

    def _room(self) -> _Ended | None:
        """Look how much waits on this disk, and whether there is room."""
        of, now = self._of, time.monotonic()
        if now - of._staged_at < STAGED_LOOK_S:
            return None
        of._staged_at = now
        of._staged = staged = staged_bytes(of._followed.path, of._progress.replicated or 0)
        if staged > max(of._settings.local_bytes, of._followed.store_bytes()):
            return _Ended("suspended", "staging_full", f"{staged} bytes were waiting for the target")
        if staged > SMALL_BYTES and of._followed.free_bytes() < LOW_DISK_BYTES:
            return _Ended("suspended", "disk_full", f"less than {LOW_DISK_BYTES} bytes are left on the store's disk")
        return None

    def _overrun(self) -> _Ended | None:
        """The log has reached its limit: whether the sidecar holds it, or a reader. The writer waits meanwhile."""
        of, now = self._of, time.monotonic()
        if not of._overrun:
            self._overrun_since = now
            return None
        try:
            self._sidecar.control.sync(SYNC_S)
        except (Refused, Silent):
            # One that was just started, or that a reader makes wait, does not answer at once.
            patience = OVERRUN_S if self._sidecar.control.alive(ALIVE_S) else SILENT_S
            if now - self._overrun_since < patience:
                return None
            of._overrun = False
            return self._replaced("litestream did not follow the store's log, which had reached its limit")
        of._overrun = False
        self._log.excuse(EXCUSE_S)
        return None

    def _words(self, otherwise: str) -> str:
        said = self._sidecar.said
        return said[-1] if said else otherwise
