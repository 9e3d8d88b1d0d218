"""The daemon, which on SIGUSR1 writes down what it holds: `python -m tests.soak.counted FILE [BEETLE'S ARGUMENTS]`."""

from __future__ import annotations

import ctypes
import gc
import json
import os
import re
import signal
import sys
import tempfile
from collections import Counter
from pathlib import Path

import apsw

from beetle.__main__ import main


class _Allocator(ctypes.Structure):
    """mallinfo2 of glibc; bytes."""

    _fields_ = [(name, ctypes.c_size_t) for name in (
        "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost",
    )]  # fmt: skip


def resident() -> dict[str, int]:
    """Bytes of resident memory: of files, of the allocator's heap, and of other mappings (the interpreter's arenas,
    threads' stacks, large blocks)."""
    found: Counter[str] = Counter()
    kind = ""
    for line in Path("/proc/self/smaps").read_text().splitlines():
        first, *rest = line.split()
        if not first.endswith(":"):
            name = rest[4] if len(rest) > 4 else ""
            kind = "heap" if name == "[heap]" else "files" if name.startswith("/") else "other"
        elif first == "Rss:":
            found[kind] += int(rest[0]) * 1024
    return dict(found)


def small_objects() -> dict[str, object]:
    """What the interpreter's own allocator tells: bytes of its arenas that are in use and free, and the numbers of
    blocks of each size (bytes) in use and free."""
    with tempfile.TemporaryFile("w+") as told:
        kept = os.dup(2)
        os.dup2(told.fileno(), 2)
        try:
            sys._debugmallocstats()
        finally:
            os.dup2(kept, 2)
            os.close(kept)
        told.seek(0)
        text = told.read()
    lines = re.findall(r"^ +\d+ +(\d+) +\d+ +(\d+) +(\d+)$", text, re.MULTILINE)
    sizes = {size: (int(used), int(free)) for size, used, free in lines}
    figures = {
        what: int(value.replace(",", ""))
        for what, value in re.findall(r"^(?:# )?([a-z][\w ]+?) += +([\d,]+)$", text, re.MULTILINE)
    }
    return {"arenas": figures["arenas allocated current"], "used": figures["bytes in allocated blocks"],
            "free": figures["bytes in available blocks"], "sizes": sizes}  # fmt: skip


def held() -> dict[str, object]:
    """Resident memory, what the allocators and SQLite have given out (bytes), and the live objects of each type."""
    gc.collect()
    libc = ctypes.CDLL(None)
    libc.mallinfo2.restype = _Allocator
    allocator = libc.mallinfo2()
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    objects = Counter(f"{type(each).__module__}.{type(each).__qualname__}" for each in gc.get_objects())
    return {
        "rss": int(status["VmRSS"].split()[0]) * 1024, "threads": int(status["Threads"]),
        "handles": len(os.listdir("/proc/self/fd")), "allocated": allocator.uordblks + allocator.hblkhd,
        "resident": resident(), "free": allocator.fordblks, "large": allocator.hblkhd, "small": small_objects(),
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
