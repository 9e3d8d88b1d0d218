"""Appends thoughts to a chain through a daemon, in a process of its own: arguments are its socket, a name, a count.

Each acknowledged thought is a line of JSON. When the daemon is gone it says `lost`, and goes on with the same thought
once it is told to: the idempotency key makes an append that had come through count once.
"""

from __future__ import annotations

import json
import sys
import time

from beetle.client import Client
from beetle.contracts.errors import BeetleError

KEY = "shared"


def main(socket: str, name: str, count: int) -> None:
    client: Client | None = None
    for number in range(count):
        said = {"chain_key": KEY, "thought_type": "Plan", "agent_id": name, "content": f"{name} {number}"}
        while True:
            begun = time.perf_counter()
            try:
                client = client or Client(socket)
                thought = client.call("chain.append", said, idempotency_key=f"{name}-{number}").thought
                break
            except BeetleError as error:
                if error.key != "daemon_unavailable":
                    raise
                print(json.dumps({"lost": name}), flush=True)
                sys.stdin.readline()
                client = None
        took = 1000 * (time.perf_counter() - begun)
        print(json.dumps({"id": thought.id, "index": thought.index, "said": said["content"], "ms": took}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
