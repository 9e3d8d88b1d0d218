"""What is looked at while a daemon is soaked: its process and its sidecar's, its files, and its answers."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any, NamedTuple

from beetle.client import Client
from beetle.runtime.host.profile import load_profile
from tests.soak.drift import Bound, Found, Timer, found

MIB, KIB = 2.0**20, 2.0**10
PERIODS = 3
"""A job must have run in the last so many of its periods,"""
BUSY_S, MISSED_S = 300.0, 300.0
"""and before that it may wait so long for callers, and after the start so long for its first run."""
REPLICA_S = 120.0
"""The replica must have been whole within so long: an erasure has the whole store sent anew."""
SEEN_S = 15.0
"""A status is so old at most when it is looked at on a busy machine."""


class Process(NamedTuple):
    """A process's resident memory and what of it is its own, open files, threads, and what it has caused to be written
    to the disk; memory in bytes."""

    rss: int
    own: int
    handles: int
    threads: int
    written: int

    @classmethod
    def of(cls, pid: int) -> Process:
        """Raises ProcessLookupError, FileNotFoundError: it has ended."""
        folder = Path(f"/proc/{pid}")
        status = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines())
        if "VmRSS" not in status:
            raise ProcessLookupError(f"{pid} is ending: its memory is gone")
        io = dict(line.split(": ", 1) for line in (folder / "io").read_text().splitlines())
        written = int(io["write_bytes"]) - int(io["cancelled_write_bytes"])
        handles = len(os.listdir(folder / "fd"))
        memory = [int(status[name].split()[0]) * 1024 for name in ("VmRSS", "RssAnon")]
        return cls(*memory, handles, int(status["Threads"]), written)


def folder_bytes(folder: Path) -> int:
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(place, name)).st_size
            except FileNotFoundError:
                continue  # removed meanwhile
    return total


def size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def bounds(profile_name: str) -> tuple[Bound, ...]:
    budgets = load_profile(profile_name).budgets
    kept = budgets.snapshots_newest + budgets.snapshots_hourly + budgets.snapshots_daily + budgets.snapshots_weekly
    log = budgets.log_file_bytes * (budgets.log_files + 1)
    return (
        Bound("daemon rss", "MiB", load_profile(profile_name).memory_ceiling_mib, per_hour=2.0, rise=3.0),
        Bound("daemon own memory", "MiB"),
        Bound("daemon handles", "", per_hour=1.0, rise=2.0),
        Bound("daemon threads", "", per_hour=1.0, rise=2.0),
        Bound("sidecar rss", "MiB", 128.0, per_hour=4.0, rise=8.0),
        Bound("sidecar handles", "", per_hour=1.0, rise=4.0),
        Bound("store", "MiB"),
        Bound("wal", "MiB", 4 * budgets.wal_bytes / MIB + 1, per_hour=4.0, rise=4.0),
        Bound("log", "KiB", log / KIB, per_hour=512.0, rise=64.0),
        Bound("litestream folder", "MiB", 256.0),
        Bound("target", "MiB"),
        Bound("snapshots", "", kept + 1),
        Bound("files beside the store", "", per_hour=1.0, rise=2.0),
        Bound("recall", "ms"),
        Bound("status of jobs", "ms"),
    )


class Watch:
    """Looks at one daemon, on a connection of its own. `jobs` are the periods of the jobs in seconds."""

    def __init__(self, folder: Path, socket: str, pid: int, profile: str, jobs: dict[str, float]) -> None:
        self._folder, self._socket, self._pid = folder, socket, pid
        self._bounds, self.began = bounds(profile), time.monotonic()
        self.samples: list[dict[str, float]] = []
        self.wrong: list[str] = []
        self._sidecars: dict[int, int] = {}
        limits = {name: PERIODS * period + BUSY_S + MISSED_S for name, period in jobs.items()}
        self.timers = {
            name: Timer(f"job {name}", period, limits[name], self.began) for name, period in jobs.items()
        } | {"replica": Timer("the replica", 1.0, REPLICA_S, self.began)}

    def look(self) -> dict[str, float]:
        """One sample."""
        with Client(self._socket, timeout=60) as client:
            began = time.monotonic()
            jobs = client.scheduler_status().jobs
            asked = time.monotonic()
            client.recall(query="where is the lantern")
            recalled = time.monotonic()
            replica = client.replication_status()
            snapshots = client.list_snapshots(limit=100).snapshots
        now = time.monotonic()
        for each in jobs:
            if each.job_name in self.timers:
                self.timers[each.job_name].look(each.run_count, now)
            if each.last_error_key is not None:
                self._complain(f"the job {each.job_name} failed: {each.last_error_key}: {each.last_error}")
        if replica.state == "replicating" and replica.lag_s is not None and replica.lag_s < REPLICA_S:
            self.timers["replica"].look(now, now)
        else:
            self.timers["replica"].look(None, now)
        sample = {
            "s": now - self.began, "recall": (recalled - asked) * 1e3, "status of jobs": (asked - began) * 1e3,
            "snapshots": float(len(snapshots)), **self._processes(replica.pid), **self._files(),
            "restarts": float(replica.restarts or 0), "writer waits": float(replica.writer_waits or 0),
        }  # fmt: skip
        self.samples.append(sample)
        return sample

    def _complain(self, what: str) -> None:
        if what not in self.wrong:
            self.wrong.append(what)

    def _processes(self, sidecar: int | None) -> dict[str, float]:
        mine = Process.of(self._pid)
        seen: dict[str, float] = {
            "daemon rss": mine.rss / MIB, "daemon own memory": mine.own / MIB, "daemon handles": mine.handles,
            "daemon threads": mine.threads, "daemon written": mine.written,
        }  # fmt: skip
        if sidecar is not None:
            try:
                other = Process.of(sidecar)
            except (ProcessLookupError, FileNotFoundError):
                other = None
            if other is not None:
                self._sidecars[sidecar] = other.written
                seen |= {"sidecar rss": other.rss / MIB, "sidecar handles": other.handles}
        return seen | {"sidecar written": sum(self._sidecars.values())}

    def _files(self) -> dict[str, float]:
        beside = [name for name in os.listdir(self._folder) if name.startswith((".", "b.db"))]
        log = sum(size(each) for each in self._folder.glob("beetle.log*"))
        return {
            "store": size(self._folder / "b.db") / MIB, "wal": size(self._folder / "b.db-wal") / MIB, "log": log / KIB,
            "litestream folder": folder_bytes(self._folder / ".b.db-litestream") / MIB,
            "target": folder_bytes(self._folder / "target") / MIB, "files beside the store": float(len(beside)),
        }  # fmt: skip

    def figures(self) -> list[Found]:
        """Every figure that there are samples of."""
        every = []
        for bound in self._bounds:
            points = [(each["s"], each[bound.name]) for each in self.samples if bound.name in each]
            if points:
                every.append(found(bound, points))
        return every

    def failures(self) -> list[str]:
        told = [each.failure for each in self.figures()] + [each.failure for each in self.timers.values()]
        return [each for each in told if each is not None] + self.wrong

    def plain(self) -> dict[str, Any]:
        return {"figures": [each.plain() for each in self.figures()],
                "timers": [each.plain() for each in self.timers.values()]}  # fmt: skip
