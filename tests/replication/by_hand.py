"""A store in this process with a litestream beside it that this module starts and ends: no daemon, no keeper."""

from __future__ import annotations

import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

from beetle.contracts.common import MemoryIdentity, MemoryScope
from beetle.open import open_embedded
from beetle.replication.program import Litestream, configuration, configured
from beetle.replication.target import ReplicaSettings, parse_target
from tests.building import Plain
from tests.conformance.doors import PROFILE

WAIT_S = 60.0


class Replicated:
    """The store at `store`, replicated to the folder `replica`. `asides` counts how often litestream stepped aside."""

    def __init__(self, folder: Path) -> None:
        self.store = str(folder / "beetle.db")
        self.replica = folder / "replica"
        self.stream = Litestream(self.store, ReplicaSettings(parse_target(f"file://{self.replica}")), {})
        identity, scope = MemoryIdentity(), MemoryScope()
        self.memory = open_embedded(store=self.store, profile=PROFILE, backend="sqlite", identity=identity, scope=scope)
        self.asides = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._changed = threading.Event()
        self._ends = self._aside = False
        self.follower = self.memory.dispatcher.shared.store.follower
        self.follower.kept_until = lambda now: now + 3_600_000_000
        self.follower.on_ask = self._ask
        self.follower.is_gone = lambda: self._process is None
        self.follower.attached = True
        self._start()
        self._thread = threading.Thread(target=self._keep, daemon=True)
        self._thread.start()

    def call(self, op: str, args: Plain | None = None) -> Any:
        return self.memory.call(op, args or {}, None, None, None).report

    def wait_for_sync(self) -> None:
        """Until the replica's last file is of a transaction behind all that was committed before."""
        end = time.monotonic() + WAIT_S
        while time.monotonic() < end:
            with self.memory.dispatcher.shared.store.read() as tx:
                last = tx.value("SELECT max(seq) FROM event_log")
            try:
                restored = self.restored()
            except AssertionError:
                continue
            if self._last(restored) == last:
                return
        raise AssertionError("the replica did not follow")

    def restored(self) -> bytes:
        """The newest state in the replica."""
        to = f"{self.store}.try"
        try:
            assert self.stream.restore(to) is not None
            return Path(to).read_bytes()
        finally:
            Path(to).unlink(missing_ok=True)

    def close(self) -> None:
        self._ends = True
        self._changed.set()
        self._thread.join()
        self.memory.release()

    def _ask(self, aside: bool) -> None:
        self._aside = aside
        self._changed.set()

    def _last(self, database: bytes) -> int:
        import apsw

        connection = apsw.Connection(":memory:")
        # In WAL mode it would want its log.
        connection.deserialize("main", database[:18] + b"\x01\x01" + database[20:])
        found: int = connection.execute("SELECT max(seq) FROM event_log").get
        connection.close()
        return found

    def _start(self) -> None:
        with configured(configuration(self.store, self.stream.settings, self.stream.secrets)) as (path, descriptor):
            line = [self.stream.program.path, "replicate", "-config", path, "-no-expand-env"]
            self._process = subprocess.Popen(line, pass_fds=(descriptor,), stderr=subprocess.DEVNULL)
            # It reads its configuration from this process's descriptor table copy, so it may be closed at once.

    def _stop(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            self._process.wait()
            self._process = None

    def _keep(self) -> None:
        while True:
            self._changed.wait()
            self._changed.clear()
            if self._ends or self._aside:
                self._stop()
                self.follower.attached = False
                self.asides += 1
            elif self._process is None:
                self.follower.attached = True
                self._start()
            if self._ends:
                return
