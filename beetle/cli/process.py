"""Another process, held by a descriptor, so that its number cannot come to mean a later one."""

from __future__ import annotations

import errno
import os
import time

from beetle.named_tuple import NamedTuple

LOOK_SECONDS = 0.02
"""How often a process is looked at where the kernel does not tell of its end."""


class Process(NamedTuple):
    """`descriptor` is a pidfd, of which the kernel tells when the process ends: `tells`.

    Linux before 5.3 has none: then it is the folder in /proc, whose files cannot be read any more once the process has
    ended, whatever has its number by then.
    """

    pid: int
    descriptor: int
    tells: bool


def hold(pid: int) -> Process:
    """Take hold of a process; who asked closes the descriptor.

    Raises:
        OSError: there is none.
    """
    try:
        return Process(pid, os.pidfd_open(pid), True)
    except OSError as error:
        # EPERM: a filter of system calls that is older than this one, as in some containers.
        if error.errno not in (errno.ENOSYS, errno.EPERM):
            raise
    return Process(pid, os.open(f"/proc/{pid}", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC), False)


def has_ended(process: Process) -> bool:
    """Whether it has, also if its parent has not asked yet how."""
    import select

    if process.tells:
        poller = select.poll()
        poller.register(process.descriptor, select.POLLIN)
        return bool(poller.poll(0))
    try:
        file = os.open("stat", os.O_RDONLY | os.O_CLOEXEC, dir_fd=process.descriptor)
        try:
            said = os.read(file, 4096)
        finally:
            os.close(file)
    except (FileNotFoundError, ProcessLookupError):
        return True
    # The name stands in brackets and may hold any byte but a NUL.
    return said.rpartition(b")")[2].split()[0] in (b"Z", b"X")


def wait_for_end(process: Process, seconds: float) -> bool:
    """Wait until it has ended; False when it has not within that time."""
    import select

    if process.tells:
        poller = select.poll()
        poller.register(process.descriptor, select.POLLIN)
        return bool(poller.poll(seconds * 1000))
    end = time.monotonic() + seconds
    while not has_ended(process):
        if time.monotonic() > end:
            return False
        time.sleep(LOOK_SECONDS)
    return True


def send_signal(process: Process, number: int) -> None:
    """Send it a signal.

    Raises:
        ProcessLookupError: it has ended.
        PermissionError: it is another user's.
    """
    import signal

    if process.tells:
        signal.pidfd_send_signal(process.descriptor, number)
    elif has_ended(process):
        raise ProcessLookupError(process.pid)
    else:
        os.kill(process.pid, number)
