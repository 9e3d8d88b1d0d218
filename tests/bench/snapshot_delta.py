"""What page-level increments would save: of a second snapshot, the pages that the first one has already.

    python -m tests.bench.snapshot_delta [--mib N] [--more P] [--profile P]

A store is filled, a snapshot made, so many percent of turns more are committed, a few turns erased, and another one
made. Both are unpacked and compared page by page: a delta would hold the changed pages, compressed like the whole.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
import zlib
from pathlib import Path

from beetle.client import Client
from beetle.runtime.areas.snapshots.file_form import PAYLOAD_AT
from tests.bench.snapshot_latency import fill, turn
from tests.running import Daemon

PAGE = 4096
LEVEL = 3


def pages(folder: str, snapshot_id: str) -> tuple[int, list[bytes]]:
    """The size of a snapshot's file, and its pages."""
    file = Path(folder, f"{snapshot_id}.beetle-snapshot").read_bytes()
    data = zlib.decompress(file[PAYLOAD_AT:])
    return len(file), [data[at : at + PAGE] for at in range(0, len(data), PAGE)]


def main(argv: list[str]) -> int:
    """Print one line: pages, those that changed, and the bytes of both forms."""
    parser = argparse.ArgumentParser(prog="snapshot_delta", description=__doc__)
    parser.add_argument("--mib", type=int, default=100, help="size of the store")
    parser.add_argument("--more", type=int, default=1, help="percent that is written between the two")
    parser.add_argument("--profile", default="standalone")
    typed = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="snapshots-") as folder:
        daemon = Daemon(profile=typed.profile, folder=folder)
        with daemon, Client(daemon.socket) as client:
            fill(client, daemon.store, typed.mib * 2**20)
            began = time.perf_counter()
            first = client.create_snapshot().snapshot
            took = time.perf_counter() - began
            turns = (first.counts or {}).get("turns", 0)
            for number in range(max(1, turns * typed.more // 100)):
                text = f"later {number}: " + "the kettle is on and the cups are on the shelf beside the window. " * 60
                client.commit_transcript(conversation={"conversation_id": "more"}, turns=[turn(f"m{number}", text)])
            client.request_transcript_lifecycle(
                conversation={"conversation_id": "filling"}, action="delete_raw", turn_ids=["f1", "f2"], reason="bench"
            )
            second = client.create_snapshot().snapshot
        where = daemon.store + ".snapshots"
        _, old = pages(where, first.snapshot_id)
        size, new = pages(where, second.snapshot_id)
    changed = [page for at, page in enumerate(new) if at >= len(old) or old[at] != page]
    delta = len(zlib.compress(b"".join(changed), LEVEL))
    print(
        f"{len(new):,} pages, {len(changed):,} changed ({len(changed) * 100 / len(new):.1f} %); "
        f"whole {size / 2**20:.1f} MiB, delta {delta / 2**20:.1f} MiB ({delta * 100 / size:.1f} %); "
        f"a snapshot takes {took:.1f} s; {os.cpu_count()} cores"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
