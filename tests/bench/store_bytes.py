"""What a turn takes of the store, by the length of its text: bytes, how many times the text, and in which trees.

    python -m tests.bench.store_bytes [--lengths 130,300,600,1200] [--turns N] [--profile P] [--json FILE]

A turn is one message of that many bytes, of lines of real conversations that follow each other; turns come in the order
of their times, in conversations of 200, without idempotency keys. The store is left as a night leaves it: its recall
index is merged.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import apsw

from beetle import MemoryRuntime
from beetle.runtime.host.profile import load_profile
from tests.bench.locomo import DATA
from tests.bench.scale import CONVERSATION_TURNS, material

KINDS = {
    "text": ("body",), "recall index": ("recall_index_data", "recall_index_docsize", "recall_index_idx"),
    "turn": ("turn",), "message": ("message",),
}  # fmt: skip
"""Trees that are shown by themselves; the others are their indexes, and what there are few rows of."""
BEGIN = datetime(2025, 1, 1, tzinfo=UTC)


class Taken(NamedTuple):
    """Of one length: bytes of text and of the store a turn, and of each kind of tree."""

    text: float
    store: float
    kinds: dict[str, float]


def texts(lines: list[str], length: int) -> Iterator[str]:
    """Texts of about so many bytes: lines that follow each other, cut at a word."""
    said, place = "", 0
    while True:
        while len(said.encode()) < length:
            said, place = f"{said} {lines[place % len(lines)]}".strip(), place + 1
        words, size = said.split(), 0
        taken: list[str] = []
        while size < length:
            taken.append(words[len(taken)])
            size += len(taken[-1].encode()) + 1
        yield " ".join(taken)
        said = " ".join(words[len(taken) :])


def taken(lines: list[str], length: int, turns: int, profile: str) -> Taken:
    """Fill a store with so many turns, and look at it when it is closed."""
    said, text, batch = texts(lines, length), 0, load_profile(profile).budgets.commit_turns
    with tempfile.TemporaryDirectory(prefix="beetle-bytes-") as made:
        path = str(Path(made) / "b.db")
        with MemoryRuntime.open(path, profile=profile) as memory:
            for first in range(0, turns, min(batch, CONVERSATION_TURNS)):
                several: list[dict[str, Any]] = []
                for number in range(first, min(turns, first + batch, first + CONVERSATION_TURNS)):
                    content = next(said)
                    text += len(content.encode())
                    message = {"message_id": f"m{number}", "role": "user", "content": content}
                    at = (BEGIN + timedelta(seconds=20 * number)).isoformat().replace("+00:00", "Z")
                    several.append({"turn_id": f"t{number}", "at": at, "messages": [message]})
                memory.commit_transcript(conversation={"conversation_id": f"c{first // 200}"}, turns=several)
            memory.call("scheduler.run", {"job_name": "optimize", "wait": True})
        connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
        trees = Counter(dict(connection.execute("SELECT name, sum(pgsize) FROM dbstat GROUP BY name")))
        connection.close()
        store = Path(path).stat().st_size
    kinds = {kind: sum(trees[name] for name in names) / turns for kind, names in KINDS.items()}
    return Taken(text / turns, store / turns, kinds | {"the rest": store / turns - sum(kinds.values())})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lengths", default="130,300,600,1200", help="bytes, comma-separated (default: %(default)s)")
    parser.add_argument("--turns", type=int, default=20_000, help="of each length (default: %(default)s)")
    parser.add_argument("--profile", default="profile-linux-device-standalone-memory")
    parser.add_argument("--data", type=Path, default=DATA, help="conversations (default: made-up sentences)")
    parser.add_argument("--json", type=Path, default=None, help="also write the result to this file")
    options = parser.parse_args()
    lines, _ = material(options.data)
    found = [taken(lines, int(each), options.turns, options.profile) for each in options.lengths.split(",")]
    print(f"{'bytes a turn':<16}", *(f"{name:>13}" for name in ("the store", "÷ text", *KINDS, "the rest")))
    for each in found:
        cells = (f"{each.store:.0f}", f"{each.store / each.text:.2f}", *(f"{size:.0f}" for size in each.kinds.values()))
        print(f"{each.text:<16.0f}", *(f"{cell:>13}" for cell in cells))
    if options.json is not None:
        options.json.write_text(json.dumps([each._asdict() for each in found], indent=1))


if __name__ == "__main__":
    main()
