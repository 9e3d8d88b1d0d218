"""One process of litestream: started so that it cannot outlive the daemon, read from, stopped or killed."""

from __future__ import annotations

import contextlib
import ctypes
import logging
import os
import select
import signal
import stat
import subprocess
import time
from collections import deque
from collections.abc import Mapping
from typing import Any

from beetle.contracts.errors import ServicesUnavailable
from beetle.named_tuple import NamedTuple
from beetle.replication.control import Control
from beetle.replication.program import Litestream, configuration, configured
from beetle.replication.sidecar_log import SidecarLog

log = logging.getLogger("beetle.replication")

SET_PARENT_DEATH_SIGNAL = 1
"""`PR_SET_PDEATHSIG` of prctl(2)."""
STOP_SYNC_S = 3
"""For so long a sidecar that is told to end tries to send what is left."""
FIRST_TO_GO = "500"
SMALL = {"GOMEMLIMIT": "64MiB"}
"""From there on litestream collects its garbage rather than take more."""


class ControlFolder(NamedTuple):
    """A folder for the control socket that only this user can look into. `descriptor` is of that folder: a path through
    it is short enough for a socket, however long the folder's own is."""

    folder: str
    descriptor: int

    @property
    def socket(self) -> str:
        return f"/proc/self/fd/{self.descriptor}/control"


def make_control_folder(folder: str) -> ControlFolder:
    """Make the folder, or take the one that an earlier daemon of this user has left.

    Raises:
        ServicesUnavailable: it cannot be made, or is somebody else's.
    """
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        hint = "make the folder of the daemon's socket writable for this user"
        raise ServicesUnavailable(reason=f"{folder} cannot be made ({error.strerror})", hint=hint) from None
    found = os.fstat(descriptor)
    if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
        os.close(descriptor)
        raise ServicesUnavailable(reason=f"{folder} is open to others", hint=f"remove {folder}")
    return ControlFolder(folder, descriptor)


def remove_control_folder(place: ControlFolder) -> None:
    """Remove the folder again, as far as it is ours."""
    try:
        os.close(place.descriptor)
        if os.path.lexists(left := os.path.join(place.folder, "control")):
            os.unlink(left)
        os.rmdir(place.folder)
    except OSError as error:
        log.debug("%s stays: %s", place.folder, error.strerror)


class _DiesWithUs:
    """Run in the child between fork and exec: no import, no lock, one system call that was looked up before."""

    def __init__(self) -> None:
        self._prctl = ctypes.CDLL(None, use_errno=False).prctl
        self._parent = os.getpid()

    def __call__(self) -> None:
        self._prctl(SET_PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
        # The daemon may have died before that call.
        if os.getppid() != self._parent:
            os._exit(1)


class Sidecar:
    """A running litestream. The thread that starts it must outlive it: by that thread's end the kernel kills it."""

    def __init__(
        self,
        stream: Litestream,
        place: ControlFolder,
        checkpoint_pages: int,
        otherwise: Mapping[str, Any] | None = None,
    ) -> None:
        """Start it.

        Args:
            otherwise: what its configuration says in place of the usual.

        Raises:
            ServicesUnavailable: it could not be started.
        """
        more = {
            "socket": {"enabled": True, "path": place.socket, "permissions": 0o600},
            "shutdown-sync-timeout": f"{STOP_SYNC_S}s",
            **(otherwise or {}),
        }
        content: dict[str, Any] = configuration(stream.store, stream.settings, stream.secrets, more=more)
        content["dbs"][0]["min-checkpoint-page-count"] = checkpoint_pages
        with configured(content) as (path, descriptor):
            line = [stream.program.path, "replicate", "-config", path, "-no-expand-env"]
            try:
                self._process = subprocess.Popen(
                    line, pass_fds=(descriptor, place.descriptor), env={**stream.secrets.environment, **SMALL},
                    stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True,
                    umask=0o077, preexec_fn=_DiesWithUs(),
                )  # fmt: skip
            except (OSError, subprocess.SubprocessError) as error:
                told = error.strerror if isinstance(error, OSError) else "it could not be prepared"
                hint = "see the daemon's log; name a program in [replica] command"
                reason = f"{stream.program.path} could not be started ({told})"
                raise ServicesUnavailable(reason=reason, hint=hint) from None
        # Where memory runs out, it goes rather than the daemon: it is started again, and nothing is lost.
        with contextlib.suppress(OSError), open(f"/proc/{self._process.pid}/oom_score_adj", "w") as file:
            file.write(FIRST_TO_GO)
        assert self._process.stderr is not None
        self._pipe = self._process.stderr.fileno()
        os.set_blocking(self._pipe, False)
        self._log = SidecarLog(stream.secrets)
        self.control = Control(place.socket, stream.store)
        self.began = time.monotonic()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def said(self) -> deque[str]:
        """Its last warnings."""
        return self._log.said

    @property
    def ended(self) -> int | None:
        """Its exit code once it has ended; negative for a signal."""
        return self._process.poll()

    @property
    def frozen(self) -> bool:
        """Whether the kernel has stopped it (SIGSTOP, a debugger)."""
        try:
            with open(f"/proc/{self.pid}/stat", "rb") as file:
                return file.read(512).rpartition(b")")[2].split()[0] in (b"T", b"t")
        except (OSError, IndexError):
            return False

    def listen(self, seconds: float, wake: int) -> None:
        """Pass on what it says for so long, or until there is something to read at `wake`."""
        end = time.monotonic() + seconds
        watched = [wake, self._pipe]
        while (left := end - time.monotonic()) > 0:
            ready = select.select(watched, [], [], left)[0]
            self._log.settle()
            if self._pipe in ready and not self._read():
                watched = [wake]
                if self.ended is not None:
                    return
            if wake in ready:
                return

    def stop(self, seconds: float) -> bool:
        """Have it send what is left and end; kill it when that takes too long. Whether it ended by itself, in step."""
        self.said.clear()
        if self.ended is None:
            self._process.send_signal(signal.SIGTERM)
        end = time.monotonic() + seconds
        while self.ended is None and time.monotonic() < end:
            if not select.select([self._pipe], [], [], 0.02)[0] or not self._read():
                time.sleep(0.005)
        ended = self.ended
        self.kill()
        return ended == 0 and not self.said

    def kill(self) -> None:
        """End it at once, stopped or not."""
        if self.ended is None:
            self._process.kill()
        self._process.wait()
        self._read()
        self._log.settle(ended=True)
        if self._process.stderr is not None:
            self._process.stderr.close()

    def _read(self) -> bool:
        """Whether the pipe is open still."""
        try:
            part = os.read(self._pipe, 65_536)
        except BlockingIOError:
            return True
        except OSError:
            return False
        self._log.take(part)
        return bool(part)
