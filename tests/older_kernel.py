"""Runs a command as a kernel of 2018 would: `python -m tests.older_kernel COMMAND…`.

System calls from number 424 on, which is Linux 5.1 and newer on every processor, do not exist for it: a filter of its
own answers ENOSYS, as such a kernel does.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys

FIRST_NEWER = 424
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
LOAD, AT_LEAST, ANSWER = 0x20, 0x35, 0x06
ALLOW, FAIL = 0x7FFF0000, 0x00050000


class Program(ctypes.Structure):
    """struct sock_fprog."""

    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_char_p))


def forget_newer_calls() -> None:
    """Let this process, and those that it starts, have no system call of Linux 5.1 or newer.

    Raises:
        OSError: this kernel has no filters.
    """
    steps = ((LOAD, 0, 0, 0), (AT_LEAST, 0, 1, FIRST_NEWER), (ANSWER, 0, 0, FAIL | errno.ENOSYS), (ANSWER, 0, 0, ALLOW))
    code = b"".join(struct.pack("<HBBI", *step) for step in steps)
    libc = ctypes.CDLL(None, use_errno=True)
    program = Program(len(steps), code)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(
        PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0
    ):
        raise OSError(ctypes.get_errno(), "prctl")


if __name__ == "__main__":
    forget_newer_calls()
    os.execv(sys.argv[1], sys.argv[1:])
