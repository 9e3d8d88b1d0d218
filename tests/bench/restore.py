"""How long a store takes to come back: from its replica and from a snapshot, beside a plain copy of the same bytes.

    python -m tests.bench.restore [--mib N] [--folder F] [--command BEETLE]

The store is filled through the socket with turns of 1,000 words, 20 in each commit, while no replica is kept; then the
daemon starts with a folder as its replica's target, and writes 200 turns beside it, so that the replica is a snapshot
and files behind it. `--folder` is on the disk that is meant: without it, where temporary files are.

* first boot: the store is gone, its key file is there; from the start of a daemon until it is ready, all checks made.
* in place: `replication.restore` into the store of a running daemon, which keeps the store it replaces.
* snapshot: `snapshot.restore` of a snapshot of that state, in the same way.
* copy: the store's file is read, written and synced, with nothing looked at.

Files are read from the page cache, as far as memory goes. Ratios count; the figures depend on the machine.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import apsw

from beetle.client import Client
from tests.bench.replication import turns_of
from tests.bench.snapshot_latency import fill, turn
from tests.replicas import PROFILE, Kept, at_file
from tests.running import Daemon

MIB = 2**20
BESIDE = 200
LONG_S = 3600.0


class Took(NamedTuple):
    """One way back: seconds, and its MiB of store in each."""

    way: str
    seconds: float
    mib_per_s: float


def filled(folder: Path, mib: int, command: str | None) -> float:
    """Make the store; how many seconds that took."""
    began = time.perf_counter()
    daemon = Daemon(profile=PROFILE, folder=str(folder), command=command)
    with daemon, Client(daemon.socket, timeout=LONG_S) as client:
        fill(client, daemon.store, mib * MIB)
    return time.perf_counter() - began


def kept(folder: Path, command: str | None, more: str = "") -> Kept:
    """A daemon that keeps the replica of the store in `folder`."""
    # A store of this size is first sent whole: so much may wait on the disk.
    found = Kept(f"{at_file(folder)}\nlocal_bytes = {2**32}\n{more}", folder=str(folder), command=command)
    found.patience_s = LONG_S
    return found


def timed(way: str, mib: float, work: Callable[[], Any]) -> Took:
    began = time.perf_counter()
    work()
    seconds = time.perf_counter() - began
    return Took(way, seconds, mib / seconds)


def copied(store: str, to: Path) -> None:
    """The floor: every byte read, written and synced."""
    with open(store, "rb") as source, to.open("wb") as copy:
        shutil.copyfileobj(source, copy, MIB)
        copy.flush()
        os.fsync(copy.fileno())
    folder = os.open(to.parent, os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)


def lose(daemon: Kept) -> None:
    """Take away what a new device does not have: all but its key file and the target."""
    for each in Path(daemon.store).parent.iterdir():
        if each.name.startswith(("b.db", ".b.db")) and each.name != "b.db.identity":
            shutil.rmtree(each) if each.is_dir() else each.unlink()


def ways(folder: Path, command: str | None) -> tuple[float, int, list[Took]]:
    """MiB of the store, its turns, and each way back."""
    daemon, found = kept(folder, command), []
    with daemon, Client(daemon.socket, timeout=LONG_S) as client:
        daemon.synced()
        for number in range(BESIDE):
            where = {"conversation_id": "beside"}
            client.commit_transcript(conversation=where, turns=[turn(f"b{number}", "the kettle is on " * 10)])
        snapshot = client.create_snapshot().snapshot.snapshot_id
        daemon.synced()
        turns, mib = turns_of(daemon.store), os.path.getsize(daemon.store) / MIB
        found.append(timed("snapshot", mib, lambda: client.restore_snapshot(snapshot)))
        remove_replaced(folder)
        daemon.synced()
        found.append(timed("in place", mib, client.restore_replica))
        remove_replaced(folder)
        daemon.synced()
    lose(daemon)
    again = kept(folder, command, 'restore_on_first_boot = "required"')
    found.append(timed("first boot", mib, again.start))
    again.stop()
    held = turns_of(again.store)
    if held != turns:
        raise SystemExit(f"{held} of {turns} turns came back")
    return mib, turns, found


def remove_replaced(folder: Path) -> None:
    """A restore keeps the store that it replaces; this disk need not."""
    for each in folder.glob("*.before*"):
        each.unlink()


def clean(store: str) -> bool:
    connection = apsw.Connection(store, flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return connection.execute("PRAGMA quick_check").get == "ok"
    finally:
        connection.close(True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mib", type=int, default=1024, help="size of the store (default: %(default)s)")
    parser.add_argument("--folder", default=None, help="on the disk that is meant")
    parser.add_argument("--command", default=None, help="the beetle to run (default: this checkout)")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="restore-", dir=asked.folder) as made:
        folder = Path(made)
        seconds = filled(folder, asked.mib, asked.command)
        print(f"filled in {seconds:.0f} s, through the socket", flush=True)
        mib, turns, found = ways(folder, asked.command)
        store = str(folder / "b.db")
        floor = timed("copy", mib, lambda: copied(store, folder / "copy"))
        target = sum(each.stat().st_size for each in (folder / "target").rglob("*.ltx")) / MIB
        whole = clean(store)
    sound = "sound" if whole else "NOT sound"
    print(f"{mib:.0f} MiB, {turns:,} turns; the replica has {target:.0f} MiB; what came back is {sound}")
    for each in (*found, floor):
        ratio = each.seconds / floor.seconds
        print(f"{each.way:10} {each.seconds:7.1f} s   {each.mib_per_s:7.1f} MiB/s   {ratio:5.1f} x a copy")
    print(json.dumps({"mib": mib, "turns": turns, "ways": [each._asdict() for each in (*found, floor)]}))
    return 0 if whole else 1


if __name__ == "__main__":
    sys.exit(main())
