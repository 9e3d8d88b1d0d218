"""A wall clock that can be stepped while a process runs, without a clock in the product that could be set.

The daemon is started with a small library in front of libc (`stepped_clock.c`, compiled here), which adds a step to
what `clock_gettime`, `gettimeofday` and `time` answer for the wall clock. A time namespace shifts the monotonic and the
boot clock alone. libfaketime also shifts the times of files and of waits, and opens its file again and again, so that
its work would be in what is measured here. The sidecar is a static program: its wall clock stays the machine's.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

SOURCE = Path(__file__).parent / "stepped_clock.c"
NANOSECONDS = 1_000_000_000
COMPILERS = ("cc", "gcc", "clang")


def compiler() -> str | None:
    """A C compiler of this machine."""
    return next((found for name in COMPILERS if (found := shutil.which(name)) is not None), None)


class SteppedClock:
    """The wall clock of one daemon. `environment` is what the daemon needs to have it."""

    def __init__(self, folder: Path) -> None:
        library, self._file = folder / "stepped_clock.so", folder / "clock"
        program = compiler()
        if program is None:
            raise RuntimeError(f"none of {', '.join(COMPILERS)} is there: `apt-get install gcc`")
        subprocess.run([program, "-shared", "-fPIC", "-O2", "-Wall", "-o", library, SOURCE], check=True)
        self.environment = {"LD_PRELOAD": str(library), "STEPPED_CLOCK": str(self._file)}
        self._step = 0
        self._file.write_bytes(bytes(8))

    @property
    def step_s(self) -> int:
        """How far it is ahead of the machine's."""
        return self._step

    def set_step(self, seconds: int) -> None:
        """At once, for the whole process: it has the file mapped."""
        self._step = seconds
        with open(self._file, "r+b", buffering=0) as file:
            os.pwrite(file.fileno(), (seconds * NANOSECONDS).to_bytes(8, "little", signed=True), 0)

    def now(self) -> float:
        """Seconds since the epoch, as the daemon has them."""
        return time.time() + self._step
