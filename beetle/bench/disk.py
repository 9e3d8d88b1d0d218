"""What processes have caused to be written to the disk: `write_bytes` of /proc/PID/io.

The kernel counts a page of a file when it becomes dirty, for the process that made it so, and not again before it was
written. A commit is synced at once, so that is what the disk is given. It leaves out the file system's own journal and
what the flash's controller writes beside. The counters of the block device have the journal in them, and what every
other program writes as well.
"""

from __future__ import annotations

import os
from pathlib import Path

PROBE_BYTES = 1 << 20
BLOCK = 512
"""What the kernel counts by in a process's resource usage."""


def written_bytes(pid: int) -> int | None:
    """Bytes that a process has caused to be written; None where the kernel does not say."""
    try:
        lines = Path(f"/proc/{pid}/io").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    counts = {name: int(value) for name, _, value in (line.partition(":") for line in lines)}
    if "write_bytes" not in counts:
        return None
    return counts["write_bytes"] - counts.get("cancelled_write_bytes", 0)


def is_counted(folder: Path) -> bool:
    """Whether what is written here is counted: not in a folder in memory, nor on some network file systems."""
    before, probe = written_bytes(os.getpid()), folder / "probe"
    if before is None:
        return False
    with open(probe, "wb") as file:
        file.write(bytes(PROBE_BYTES))
        file.flush()
        os.fsync(file.fileno())
        after = written_bytes(os.getpid())
    probe.unlink()
    return after is not None and after - before >= PROBE_BYTES
