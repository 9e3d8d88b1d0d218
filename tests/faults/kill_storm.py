"""kill -9 again and again, while eight writers write: every acknowledged write is there, once, and the store is clean.

`python -m tests.faults.kill_storm --kills 1000 [--writers 8] [--seed S]` kills the daemon of $BEETLE_COMMAND, else that
of the built tree of this checkout, else the sources' own. A writer repeats with its key what was not acknowledged.
"""

from __future__ import annotations

import argparse
import os
import random
import shlex
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

from beetle.client import Client, NoDaemon
from tests import forked, running
from tests.built import TREE, why_not

PROFILE = "profile-linux-device-standalone-memory"
MOST_BETWEEN = 40
"""Acknowledgements between two kills, at most."""
VERIFY_EVERY = 100
PAGE = 200


class Storm(NamedTuple):
    """What became of it: `lost` were acknowledged and are not there, `twice` are there more than once."""

    kills: int
    acknowledged: int
    lost: int
    twice: int
    clean: bool
    seconds: float


class Writer(threading.Thread):
    """One connection after another; turns and chunks in turn, each with its own idempotency key."""

    def __init__(self, number: int, socket: str, told: threading.Condition) -> None:
        super().__init__(name=f"writer-{number}", daemon=True)
        self.number, self.acknowledged = number, 0
        self._socket, self._told = socket, told
        self.up, self.over = threading.Event(), False
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            self._work()
        except BaseException as error:
            self.failure = error
            with self._told:
                self._told.notify()
            raise

    def _work(self) -> None:
        client: Client | None = None
        while not self.over:
            self.up.wait()
            try:
                client = client or Client(self._socket, timeout=60)
                op, args = request(self.number, self.acknowledged)
                client.call(op, args, idempotency_key=f"w{self.number}-{self.acknowledged}")
            except (NoDaemon, ConnectionError):
                client = None
                continue
            with self._told:
                self.acknowledged += 1
                self._told.notify()
        if client is not None:
            client.close()


def request(writer: int, ticket: int) -> tuple[str, dict[str, Any]]:
    """A writer's write number `ticket`."""
    name = f"w{writer}-{ticket}"
    if ticket % 2:
        return "chunk.create", {"content": f"the note {name}", "conversation_id": f"w{writer}", "tags": [name]}
    messages = [{"message_id": f"{name}-{part}", "role": "user", "content": f"note {name} {part}"} for part in (0, 1)]
    turn = {"turn_id": name, "at": "2026-01-02T03:04:05Z", "messages": messages}
    return "transcript.commit", {"conversation": {"conversation_id": f"w{writer}"}, "turns": [turn]}


def held(client: Client, writer: int) -> list[str]:
    """The names of a writer's writes that are there; a turn without both of its messages is not."""
    where, found, cursor = {"conversation_id": f"w{writer}"}, [], None
    while True:
        page = client.replay_transcript(conversation=where, view="host_ui", limit=PAGE, cursor=cursor)
        found += [each.turn_id for each in page.turns if len(each.messages) == 2]
        cursor = page.next_cursor
        if not page.has_more:
            break
    cursor = None
    while True:
        chunks = client.list_chunks(conversation_id=f"w{writer}", limit=PAGE, cursor=cursor)
        found += [tag for each in chunks.chunks for tag in each.tags]
        cursor = chunks.next_cursor
        if not chunks.has_more:
            return found


def storm(folder: Path, *, kills: int, writers: int = 8, seed: int = 1, command: str | None = None) -> Storm:
    """Kill a daemon on a new store in `folder` so many times."""
    began, chance = time.monotonic(), random.Random(seed)
    daemon = forked.Daemon(profile=PROFILE, folder=str(folder), command=command)
    told = threading.Condition()
    crew = [Writer(number, daemon.socket, told) for number in range(writers)]
    daemon.start()
    for each in crew:
        each.start()
        each.up.set()
    try:
        for number in range(kills):
            wait_for(crew, told, sum(each.acknowledged for each in crew) + chance.randrange(1, MOST_BETWEEN))
            for each in crew:
                each.up.clear()
            daemon.kill()
            daemon.start()
            if not (number + 1) % VERIFY_EVERY:
                with daemon.client(timeout=600) as client:
                    assert client.verify_store().clean, f"after {number + 1} kills"
            for each in crew:
                each.up.set()
        for each in crew:
            each.over = True
            each.join()
        return counted(daemon, crew, kills, began)
    finally:
        for each in crew:
            each.over = True
            each.up.set()
        daemon.stop()


def wait_for(crew: list[Writer], told: threading.Condition, total: int) -> None:
    with told:
        while sum(each.acknowledged for each in crew) < total:
            assert told.wait(60), "no write was acknowledged for a minute"
            for each in crew:
                if each.failure is not None:
                    raise AssertionError(f"{each.name} failed") from each.failure


def counted(daemon: running.Daemon, crew: list[Writer], kills: int, began: float) -> Storm:
    lost = twice = 0
    with daemon.client(timeout=600) as client:
        for each in crew:
            found = held(client, each.number)
            lost += len({f"w{each.number}-{ticket}" for ticket in range(each.acknowledged)} - set(found))
            twice += len(found) - len(set(found))
        clean = client.verify_store().clean
    acknowledged = sum(each.acknowledged for each in crew)
    return Storm(kills, acknowledged, lost, twice, clean, time.monotonic() - began)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--writers", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    tree = shlex.quote(str(TREE / "beetle")) if not why_not() else None
    command = os.environ.get("BEETLE_COMMAND") or tree
    print(f"the daemon: {command or 'of the sources'}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        found = storm(Path(folder), kills=asked.kills, writers=asked.writers, seed=asked.seed, command=command)
    print(
        f"{found.kills} kills, {found.acknowledged} writes acknowledged, {found.lost} lost, {found.twice} there twice, "
        f"store {'clean' if found.clean else 'NOT CLEAN'}, {found.seconds:.0f} s"
    )
    return 0 if found.clean and not found.lost and not found.twice else 1


if __name__ == "__main__":
    sys.exit(main())
