"""The machine and this process, as /proc and the kernel tell of them. A figure that cannot be read is None."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from beetle.contracts.codec import format_us

if TYPE_CHECKING:
    from beetle.contracts.console import SystemState

SHOWN_CHARS = 200


def read_system(store_folder: str | os.PathLike[str], now: int, root: str | os.PathLike[str] = "/") -> SystemState:
    """What there is at the time `now` (microseconds), from /proc, /sys and /etc under `root`. Reads only."""
    from beetle.runtime.host.choosing import read_machine

    machine = read_machine(store_folder, root)
    memory = read_text(root, "proc/meminfo")
    kernel = os.uname()
    from beetle.contracts.console import SystemState

    return SystemState(
        os=_os_name(read_text(root, "etc/os-release")) or kernel.sysname,
        kernel=f"{kernel.sysname} {kernel.release}",
        machine=kernel.machine,
        cpu=_cpu_name(read_text(root, "proc/cpuinfo")),
        cores=machine.cores,
        cpu_limit=machine.cpu_limit,
        load=_load(read_text(root, "proc/loadavg")),
        memory_total_bytes=machine.memory_total_bytes,
        memory_available_bytes=_kib(memory, "MemAvailable"),
        memory_limit_bytes=machine.memory_limit_bytes,
        process_rss_bytes=process_rss_bytes(root),
        up_s=_up(read_text(root, "proc/uptime")),
        at=format_us(now),
    )


def process_rss_bytes(root: str | os.PathLike[str] = "/") -> int | None:
    """What this process takes."""
    return _kib(read_text(root, "proc/self/status"), "VmRSS")


def disk_bytes(folder: str) -> tuple[int, int] | tuple[None, None]:
    """All bytes of the folder's filesystem, and those that this user may still write."""
    try:
        disk = os.statvfs(folder)
    except OSError:
        return None, None
    return disk.f_blocks * disk.f_frsize, disk.f_bavail * disk.f_frsize


def _kib(text: str, name: str) -> int | None:
    found = re.search(rf"^{name}:\s+([0-9]{{1,15}}) kB", text, re.MULTILINE)
    return int(found[1]) * 1024 if found else None


def _os_name(text: str) -> str:
    found = re.search(r'^PRETTY_NAME="?([^"\n]*)"?$', text, re.MULTILINE)
    return found[1][:SHOWN_CHARS] if found else ""


def _cpu_name(text: str) -> str | None:
    """What x86 calls `model name`; boards say `Model` or `Hardware`, or nothing."""
    for name in ("model name", "Model", "Hardware"):
        if found := re.search(rf"^{name}\s*:\s*(\S.*)$", text, re.MULTILINE):
            return found[1].strip()[:SHOWN_CHARS]
    return None


def _load(text: str) -> tuple[float, ...]:
    words = text.split()[:3]
    return tuple(float(word) for word in words) if all(re.fullmatch(r"[0-9.]{1,12}", word) for word in words) else ()


def _up(text: str) -> float | None:
    found = re.match(r"[0-9]{1,12}\.[0-9]{1,6}", text)
    return float(found[0]) if found else None


def read_text(folder: str | os.PathLike[str], name: str) -> str:
    """The text of a file below a folder; empty when it cannot be read."""
    try:
        with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
