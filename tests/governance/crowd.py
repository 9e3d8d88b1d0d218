"""One of the clients that write, mask and delete in a conversation while others page it.

As a program: `python -m tests.governance.crowd SOCKET NUMBER TURNS`; it says each step on a line of its own once
that is acknowledged, and ends with its standard input.
"""

from __future__ import annotations

import random
import select
import sys
from collections.abc import Callable
from typing import Any

from beetle.client import Client
from beetle.contracts.common import WireScope

OWNER = "owner-paging"
CONVERSATION = {"channel_id": "local", "conversation_id": "long"}
CLIENTS = 8
AT = "2024-03-09T12:00:00Z"


def word(turn_id: str) -> str:
    """What a turn says: nothing else in the store says it."""
    return f"content-of-{turn_id}."


def made(turn_id: str) -> dict[str, Any]:
    """A turn with everything that a view may have to withhold."""
    views = ["host_ui", "model_context", "operator_audit", "export"]
    return {
        "turn_id": turn_id,
        "at": AT,
        "messages": [
            {"message_id": f"{turn_id}.0", "role": "user", "content": f"{word(turn_id)} said aloud"},
            {"message_id": f"{turn_id}.1", "role": "tool", "content": f"{word(turn_id)} within", "visibility": "soul"},
        ],
        "host_refs": [{"kind": "task", "ref_id": "7", "label": f"{word(turn_id)} label", "visibility": views}],
        "attrs": [
            {"key": "k", "value": f"{word(turn_id)} attr", "visibility": views, "export_allowed": True,
             "target": {"message_id": f"{turn_id}.0"}},
        ],
    }  # fmt: skip


def work(path: str, number: int, turns: int, stop: Callable[[], bool], told: Callable[[str, str], None]) -> None:
    """Write, mask and delete until `stop`; `told` hears of each step after it was acknowledged.

    Of the first `turns` turns, those of its own number modulo `CLIENTS` are this client's to mask and delete.
    """
    chance = random.Random(number)
    written = 0
    mine = [f"t{each}" for each in range(number, turns, CLIENTS)]
    chance.shuffle(mine)
    with Client(path, scope=WireScope(owner_id=OWNER), timeout=120.0) as client:
        while not stop():
            roll = chance.random()
            if roll < 0.5 or not mine:
                turn_id = f"w{number}-{written}"
                client.commit_transcript(conversation=CONVERSATION, turns=[made(turn_id)])
                written += 1
                mine.append(turn_id)
                told("write", turn_id)
                continue
            action = "delete_raw" if roll > 0.97 else "mask"
            turn_id = mine.pop(chance.randrange(len(mine)))
            client.request_transcript_lifecycle(
                conversation=CONVERSATION, action=action, turn_ids=[turn_id], reason="a test asks"
            )
            told(action, turn_id)


def main(path: str, number: str, turns: str) -> None:
    def stop() -> bool:
        return bool(select.select([sys.stdin], [], [], 0)[0])

    def told(action: str, turn_id: str) -> None:
        print(action, turn_id, flush=True)

    work(path, int(number), int(turns), stop, told)


if __name__ == "__main__":
    main(*sys.argv[1:])
