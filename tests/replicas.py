"""Daemons that keep a replica, and what a replica holds."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import apsw

from beetle.contracts.replication import ReplicationStatusReport
from beetle.replication.program import Litestream
from beetle.replication.target import ReplicaSettings
from beetle.runtime.host.config import read_config
from tests import forked

PROFILE = "profile-linux-device-standalone-memory"
PATIENCE_S = 40.0
STEP_S = 0.05
TABLES_SQL = """
SELECT name FROM sqlite_schema
WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name <> '_litestream_seq' AND sql NOT LIKE 'CREATE VIRTUAL%'
ORDER BY name
"""

Status = ReplicationStatusReport


class Kept(forked.Daemon):
    """A daemon whose store is replicated as the text of `[replica]` says."""

    def __init__(self, replica: str, **more: object) -> None:
        super().__init__(profile=PROFILE, **more)  # type: ignore[arg-type]
        self.patience_s = PATIENCE_S
        self.file = self.folder / "beetle.toml"
        self.write(replica)
        self._config = ["--config", str(self.file)]

    def write(self, replica: str) -> None:
        self.file.write_text(f"[replica]\n{replica}\n", encoding="utf-8")

    @property
    def target(self) -> Path:
        return self.folder / "target"

    def status(self) -> Status:
        with self.client() as client:
            return client.replication_status()

    def until(self, holds: Callable[[Status], bool]) -> Status:
        """The first status that `holds`; each answer waits for a look at the sidecar where there is one."""
        end = time.monotonic() + self.patience_s
        with self.client() as client:
            while not holds(found := client.replication_status()):
                assert time.monotonic() < end, f"{found}\n{(self.folder / 'log').read_text()[-4000:]}"
                time.sleep(STEP_S)
        return found

    def synced(self) -> Status:
        """When everything is at the target."""
        return self.until(lambda found: found.state == "replicating" and found.lag_s == 0)

    def stream(self, environment: Mapping[str, str] | None = None) -> Litestream:
        return Litestream(self.store, settings_of(self.file), environment or {})

    def assert_restored(self, to: Path) -> None:
        """The replica is the store, as it was when all of it was told to be there. The daemon notes itself that it has
        reached the target: then again."""
        while True:
            before = content_of(self.store)
            self.synced()
            to.unlink(missing_ok=True)
            assert self.stream().restore(str(to)) is not None
            if content_of(self.store) == before:
                assert content_of(str(to)) == before
                return


def settings_of(file: Path) -> ReplicaSettings:
    found = read_config(file, {}, 0).replica
    assert found is not None
    return found.settings


def content_of(path: str) -> dict[str, str]:
    """A digest of each table's rows."""
    connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
    try:
        found = {}
        for (name,) in connection.execute(TABLES_SQL):
            rows = sorted(map(repr, connection.execute(f'SELECT * FROM "{name}"')))
            found[name] = hashlib.sha256("".join(rows).encode()).hexdigest()
        return found
    finally:
        connection.close(True)


def at_file(folder: Path) -> str:
    return f'url = "file://{folder}/target"'
