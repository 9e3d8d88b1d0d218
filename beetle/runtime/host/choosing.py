"""Which profile suits a machine, for `--profile auto`: the figures that decide, from /proc and /sys, and the choice."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator

from msgspec import Struct

from beetle.named_tuple import NamedTuple
from beetle.runtime.host.machine import read_text
from beetle.runtime.host.profile import COMPACT, DESKTOP, GATEWAY, STANDALONE


class Machine(Struct, frozen=True, kw_only=True):
    """What bounds a daemon on a machine. None is a limit that is not set, or a figure that could not be read.

    `memory_limit_bytes` and `cpu_limit` (in cores) are the tightest of the process's control groups. `disk_room_bytes`
    is what is free for this user at the store's folder and what the database files in that folder already take.
    """

    memory_total_bytes: int | None = None
    memory_limit_bytes: int | None = None
    cores: int | None = None
    cpu_limit: float | None = None
    disk_room_bytes: int | None = None


class Choice(NamedTuple):
    """A profile's full name, and why it was chosen, the deciding figure first."""

    name: str
    reasons: tuple[str, ...]


class Need(NamedTuple):
    name: str
    memory_bytes: int
    cores: int
    disk_bytes: int
    unread_passes: bool


MIB = 1024 * 1024
GIB = 1024 * MIB
NEEDS: tuple[Need, ...] = (
    # 1,024 connections may each hold a begun frame of 16 MiB: 16 GiB, with half as much again for everything else;
    # 16 readers, with as many cores left over for the rest of a server.
    Need(GATEWAY, 24 * GIB, 32, 64 * GIB, False),
    # Its memory ceiling is an eighth of this: on a desktop the memory of agents is a guest.
    Need(DESKTOP, 4 * GIB, 2, 8 * GIB, False),
    # Twice its memory ceiling, which also parts boards of 128 MB from boards of 256 MB, whatever their kernels take.
    Need(STANDALONE, 192 * MIB, 1, 2 * GIB, True),
)
"""What `auto` asks of a machine, largest profile first; below the last it is compact. The disk must hold the whole
store that the profile allows. A figure that cannot be read counts against all but the device's default profile."""


def choose_profile(machine: Machine) -> Choice:
    """The largest profile whose needs the machine meets, for `--profile auto`: never dev-full. Never raises."""
    short: tuple[str, ...] = ()
    for need in NEEDS:
        lacking = tuple(_shortfalls(machine, need))
        if not lacking:
            return Choice(need.name, (*short, f"it fits: {_figures(machine)}"))
        short = lacking
    return Choice(COMPACT, (*short, f"it is the smallest there is: {_figures(machine)}"))


def _shortfalls(machine: Machine, need: Need) -> Iterator[str]:
    memory = _smallest((machine.memory_total_bytes, machine.memory_limit_bytes))
    cores = _smallest((machine.cores, machine.cpu_limit))
    room = f"disk room {_size(machine.disk_room_bytes)}"
    for value, wanted, has, asks in (
        (memory, need.memory_bytes, _memory_text(machine), _size(need.memory_bytes)),
        (cores, need.cores, _cores_text(machine), f"{need.cores} cores"),
        (machine.disk_room_bytes, need.disk_bytes, room, _size(need.disk_bytes)),
    ):
        if (value is None and not need.unread_passes) or (value is not None and value < wanted):
            yield f"not {need.name}: {has}, and it asks for {asks}"


def _figures(machine: Machine) -> str:
    return f"{_memory_text(machine)}; {_cores_text(machine)}; disk room {_size(machine.disk_room_bytes)}"


def _smallest(values: Iterable[float | None]) -> float | None:
    return min((value for value in values if value is not None), default=None)


def _memory_text(machine: Machine) -> str:
    total, limit = machine.memory_total_bytes, machine.memory_limit_bytes
    if limit is not None and (total is None or limit < total):
        return f"memory {_size(limit)} (control group; the machine has {_size(total)})"
    return f"memory {_size(total)}"


def _cores_text(machine: Machine) -> str:
    cores, limit = machine.cores, machine.cpu_limit
    there = "unknown" if cores is None else str(cores)
    if limit is not None and (cores is None or limit < cores):
        return f"cores {limit:g} (control group; the process may run on {there})"
    return f"cores {there}"


def _size(amount: int | None) -> str:
    if amount is None:
        return "unknown"
    if amount < GIB:
        return f"{amount >> 20} MiB"
    tenths = amount * 10 >> 30
    return f"{tenths // 10}.{tenths % 10} GiB"


UNLIMITED = 1 << 60
"""From here on a v1 limit means none: the kernel writes the largest page-aligned number instead of `max`."""


def read_machine(store_folder: str | os.PathLike[str], root: str | os.PathLike[str] = "/") -> Machine:
    """The figures of this machine and process, from /proc and /sys under `root`. Reads only, and never raises OSError.

    `store_folder` is taken as it is, not under `root`, and need not exist yet.
    """
    tree, folder_of_store = os.fspath(root), os.fspath(store_folder)
    total = re.search(r"^MemTotal:\s+(\d+) kB", read_text(tree, "proc/meminfo"), re.MULTILINE)
    texts = (
        read_text(folder, name).strip()
        for folder in _groups(tree, "memory")
        for name in ("memory.max", "memory.high", "memory.limit_in_bytes")
    )
    limits = (int(text) for text in texts if re.fullmatch(r"[0-9]{1,30}", text))
    return Machine(
        memory_total_bytes=int(total[1]) * 1024 if total else None,
        memory_limit_bytes=min((limit for limit in limits if limit < UNLIMITED), default=None),
        cores=_cores_allowed(tree),
        cpu_limit=_smallest(_cpu_quota(folder) for folder in _groups(tree, "cpu")),
        disk_room_bytes=_disk_room(folder_of_store),
    )


def _cores_allowed(tree: str) -> int | None:
    # The same figure as sched_getaffinity, which answers for this process on this machine whatever `root` is.
    allowed = re.search(r"^Cpus_allowed_list:\s*(\S+)", read_text(tree, "proc/self/status"), re.MULTILINE)
    online = _core_numbers(read_text(tree, "sys/devices/system/cpu/online").strip())
    mine = _core_numbers(allowed[1]) if allowed else set[int]()
    both = mine & online if mine and online else mine or online
    return len(both) or None


def _core_numbers(ranges: str) -> set[int]:
    found: set[int] = set()
    for part in ranges.split(","):
        ends = re.fullmatch(r"([0-9]{1,5})(?:-([0-9]{1,5}))?", part)
        if ends:
            found.update(range(int(ends[1]), int(ends[2] or ends[1]) + 1))
    return found


def _cpu_quota(folder: str) -> float | None:
    words = read_text(folder, "cpu.max").split()
    if len(words) != 2:
        words = [read_text(folder, f"cpu.cfs_{part}_us").strip() for part in ("quota", "period")]
    if not all(re.fullmatch(r"[0-9]{1,18}", word) for word in words):
        return None
    quota, period = (int(word) for word in words)
    return quota / period if period else None


UNIFIED = ""
"""What v2, whose one hierarchy has every controller, is called in /proc/self/cgroup: nothing."""


class _Mount(NamedTuple):
    controllers: tuple[str, ...]
    group: str
    folder: str


def _groups(tree: str, controller: str) -> Iterator[str]:
    """Folders of the process's control groups that bound `controller`, v2 and v1, each from its own up to the mount."""
    mounts = tuple(_cgroup_mounts(tree))
    for line in read_text(tree, "proc/self/cgroup").splitlines():
        named, _, group = line.partition(":")[2].partition(":")
        controllers = tuple(named.split(",")) if named else ()
        if controllers and controller not in controllers:
            continue
        wanted = controller if controllers else UNIFIED
        usual = os.path.join(tree, "sys/fs/cgroup", wanted)
        for mount in [each for each in mounts if wanted in each.controllers] or [_Mount((wanted,), "/", usual)]:
            yield from _upwards(mount, group)


def _cgroup_mounts(tree: str) -> Iterator[_Mount]:
    for line in read_text(tree, "proc/self/mountinfo").splitlines():
        place, _, kind = line.partition(" - ")
        words, described = place.split(), kind.split()
        if len(words) > 4 and len(described) > 2 and described[0] in ("cgroup", "cgroup2"):
            controllers = tuple(described[2].split(",")) if described[0] == "cgroup" else (UNIFIED,)
            yield _Mount(controllers, words[3], os.path.join(tree, words[4].lstrip("/")))


def _upwards(mount: _Mount, group: str) -> Iterator[str]:
    # A container may be told a group that lies outside what is mounted there: then the mount itself is its group.
    above, mine = mount.group.strip("/"), group.strip("/")
    inside = not above or f"{mine}/".startswith(f"{above}/")
    parts = [part for part in mine.removeprefix(above).split("/") if part] if inside else []
    if ".." in parts:
        parts = []
    for depth in range(len(parts), -1, -1):
        yield os.path.join(mount.folder, *parts[:depth])


def _disk_room(folder: str) -> int | None:
    there: str = os.path.abspath(folder)
    try:
        while not os.path.exists(there) and there != "/":
            there = os.path.dirname(there)
        disk = os.statvfs(there)
        return disk.f_bavail * disk.f_frsize + _database_bytes(folder)
    except OSError:
        return None


def _database_bytes(folder: str) -> int:
    # What the store takes counts as room, or a store that has grown would get a smaller profile at the next start.
    if not os.path.isdir(folder):
        return 0
    with os.scandir(folder) as entries:
        databases = [each for each in entries if ".db" in each.name and each.is_file(follow_symlinks=False)]
        return sum(each.stat(follow_symlinks=False).st_blocks * 512 for each in databases)
