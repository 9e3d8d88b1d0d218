"""The daemon, which on SIGUSR1 writes down what it holds: `python -m tests.soak.counted FILE [BEETLE'S ARGUMENTS]`."""

from __future__ import annotations

import ctypes
import gc
import json
import os
import signal
import sys
from collections import Counter
from pathlib import Path

import apsw

from beetle.__main__ import main


class _Allocator(ctypes.Structure):
    """mallinfo2 of glibc; bytes."""

    _fields_ = [(name, ctypes.c_size_t) for name in (
        "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost",
    )]  # fmt: skip


def held() -> dict[str, object]:
    """Resident memory, what the allocator and SQLite have given out (bytes), and the live objects of each type."""
    gc.collect()
    libc = ctypes.CDLL(None)
    libc.mallinfo2.restype = _Allocator
    allocator = libc.mallinfo2()
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    objects = Counter(f"{type(each).__module__}.{type(each).__qualname__}" for each in gc.get_objects())
    return {
        "rss": int(status["VmRSS"].split()[0]) * 1024, "threads": int(status["Threads"]),
        "handles": len(os.listdir("/proc/self/fd")), "allocated": allocator.uordblks + allocator.hblkhd,
        "sqlite": apsw.memory_used(), "blocks": sys.getallocatedblocks(), "modules": len(sys.modules),
        "objects": sum(objects.values()), "types": dict(objects),
    }  # fmt: skip


def counting(file: Path) -> None:
    """Have this process write `held` to the file whenever it gets SIGUSR1."""

    def write(*_: object) -> None:
        beside = file.with_suffix(".new")
        beside.write_text(json.dumps(held()))
        os.replace(beside, file)

    signal.signal(signal.SIGUSR1, write)


if __name__ == "__main__":
    counting(Path(sys.argv[1]))
    sys.exit(main(sys.argv[2:]))
