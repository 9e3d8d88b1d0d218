"""A start that can be halted before each of its system calls: where it is killed is chosen, not left to the clock."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

TRACEME, DETACH, SYSCALL, SETOPTIONS = 0, 17, 24, 0x4200
MARK_SYSCALLS, TELL_EXEC, DIE_WITH_TRACER = 0x1, 0x10, 0x100000
SYSCALL_STOP = signal.SIGTRAP | 0x80
EXEC_STOP = signal.SIGTRAP | 4 << 8

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
LIBC.ptrace.restype = ctypes.c_long


def _ptrace(request: int, pid: int, data: int = 0) -> None:
    if LIBC.ptrace(request, pid, None, data) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


class Traced:
    """A one file's start under ptrace. Iterating runs it to the next system call, until it becomes its program."""

    def __init__(self, file: Path, env: Mapping[str, str]) -> None:
        self._ended: subprocess.CompletedProcess[str] | None = None
        try:
            self.process = subprocess.Popen(
                [file],
                env=dict(env),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                preexec_fn=lambda: _ptrace(TRACEME, 0),
            )
        except subprocess.SubprocessError:
            pytest.skip("ptrace is not allowed here")
        os.waitpid(self.process.pid, 0)
        _ptrace(SETOPTIONS, self.process.pid, MARK_SYSCALLS | TELL_EXEC | DIE_WITH_TRACER)

    def __enter__(self) -> Traced:
        return self

    def __exit__(self, *_: object) -> None:
        self.end(signal.SIGKILL)

    def __iter__(self) -> Iterator[int]:
        """The number of system calls begun or ended so far."""
        count = 0
        forward = 0
        while True:
            _ptrace(SYSCALL, self.process.pid, forward)
            _, status = os.waitpid(self.process.pid, 0)
            if not os.WIFSTOPPED(status):
                self.process.returncode = os.waitstatus_to_exitcode(status)
                return
            if status >> 8 == EXEC_STOP:
                return
            stop = os.WSTOPSIG(status)
            forward = 0 if stop == SYSCALL_STOP else stop
            if stop == SYSCALL_STOP:
                count += 1
                yield count

    def run_to(self, number: int) -> bool:
        """Halt at this system call; False if the program was reached before."""
        return any(count >= number for count in self)

    def end(self, number: int = 0) -> subprocess.CompletedProcess[str]:
        """Let it go, with this signal if it is given, and wait for its end."""
        if self._ended is None:
            if self.process.poll() is None:
                if number:
                    os.kill(self.process.pid, number)
                if number != signal.SIGKILL:
                    _ptrace(DETACH, self.process.pid)
            out, err = self.process.communicate(timeout=60)
            self._ended = subprocess.CompletedProcess([], self.process.wait(), out, err)
        return self._ended
