"""Creates chunks through a daemon, in a process of its own: arguments are its socket, a name, a count.

Each acknowledged chunk is a line of JSON. When the daemon is gone it says `lost`, and goes on with the same chunk once
it is told to: the idempotency key makes a create that had come through count once.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from beetle.client import Client
from beetle.contracts.errors import BeetleError


def main(socket: str, name: str, count: int) -> None:
    client: Client | None = None
    for number in range(count):
        said = {"content": f"{name} {number}", "conversation_id": name, "tags": ["shared", name]}
        while True:
            try:
                client = client or Client(socket)
                report: Any = client.call("chunk.create", said, idempotency_key=f"{name}-{number}")
                break
            except BeetleError as error:
                if error.key != "daemon_unavailable":
                    raise
                print(json.dumps({"lost": name}), flush=True)
                sys.stdin.readline()
                client = None
        print(json.dumps({"id": report.chunk.id, "said": said["content"]}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
