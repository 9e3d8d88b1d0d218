"""Recall at size: p50 and p99 at each number of turns, and the daemon's memory after a thousand recalls.

    python -m tests.bench.scale [--sizes 10000,100000] [--profile P] [--command BEETLE]

Turns are recombined halves of LoCoMo lines (or of made-up sentences where the data are not there), 200 a conversation.
Each question is asked over the whole space and in one conversation. The floor is the same index in plain FTS5: the OR
of the question's words, in process.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import apsw

from beetle.domain.lexical import parse_query, search_terms
from tests.bench.locomo import DATA
from tests.running import Daemon, pss_mib, quantiles, rss_mib

CONVERSATION_TURNS = 200
RECALLS = 1000
WORDS = "kettle window garden letter market river winter hammer piano school doctor engine basket candle forest".split()  # noqa: SIM905


def material() -> tuple[list[str], list[str]]:
    """Lines to recombine, and questions."""
    if DATA.is_file():
        data = json.loads(DATA.read_text())
        lines = [said["text"] for c in data for session in c["sessions"] for said in session["turns"]]
        return lines, [question["question"] for c in data for question in c["qa"]]
    rolls = random.Random(7)
    lines = [" ".join(rolls.choices(WORDS, k=12)) for _ in range(3000)]
    return lines, [" ".join(rolls.choices(WORDS, k=4)) + "?" for _ in range(500)]


def text_of(lines: list[str], rolls: random.Random) -> str:
    """Half of one line and half of another."""
    first, second = rolls.choice(lines).split(), rolls.choice(lines).split()
    return " ".join(first[: len(first) // 2 + 1] + second[len(second) // 2 :])


def load(client: Any, lines: list[str], start: int, stop: int, batch: int) -> None:
    """Commit turns `start` to `stop`."""
    rolls = random.Random(start)
    for first in range(start, stop, batch):
        turns = [
            {
                "turn_id": f"t{number}",
                "at": f"2025-{1 + number // 2800 % 12:02d}-{1 + number // 100 % 28:02d}T10:{number % 60:02d}:00Z",
                "messages": [
                    {
                        "message_id": f"m{number}",
                        "role": "user",
                        "content": text_of(lines, rolls),
                        "actor": {"speaker": ("Ann", "Bo")[number % 2]},
                    }
                ],
            }
            for number in range(first, min(first + batch, stop))
        ]
        where = {"conversation_id": f"c{first // CONVERSATION_TURNS}"}
        client.commit_transcript(conversation=where, turns=turns)


def measure(client: Any, questions: list[str], conversations: int | None) -> tuple[float, float]:
    """p50 and p99 of recall in milliseconds."""
    rolls = random.Random(1)
    times: list[float] = []
    for each in range(RECALLS):
        where = None if conversations is None else {"conversation_id": f"c{rolls.randrange(conversations)}"}
        started = time.perf_counter()
        client.recall(query=questions[each % len(questions)], limit=10, conversation=where)
        times.append((time.perf_counter() - started) * 1000)
    return quantiles(times)


def floor(lines: list[str], questions: list[str], size: int) -> tuple[float, float]:
    """The same queries on a plain FTS5 table of as many rows, ranked by bm25, in process."""
    rolls = random.Random(0)
    with tempfile.TemporaryDirectory(prefix="beetle-floor-") as folder:
        connection = apsw.Connection(str(Path(folder) / "floor.db"))
        connection.execute("CREATE VIRTUAL TABLE note USING fts5(text, content='', tokenize='porter unicode61')")
        with connection:
            rows = ((text_of(lines, rolls),) for _ in range(size))
            connection.executemany("INSERT INTO note (text) VALUES (?)", rows)
        times: list[float] = []
        for question in questions[:300]:
            words = [f'"{word}"' for word in parse_query(question).terms if re.fullmatch(r"\w+", word)]
            if not words or not search_terms(parse_query(question)):
                continue
            started = time.perf_counter()
            sql = "SELECT rowid FROM note WHERE note MATCH ? ORDER BY rank LIMIT 10"
            connection.execute(sql, (" OR ".join(words),)).fetchall()
            times.append((time.perf_counter() - started) * 1000)
        connection.close()
    return quantiles(times)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="10000,100000", help="turns, comma-separated (default: %(default)s)")
    parser.add_argument("--profile", default="profile-linux-device-compact-memory")
    parser.add_argument("--command", default=None, help="the beetle to run (default: this checkout)")
    options = parser.parse_args()
    lines, questions = material()
    results: list[dict[str, Any]] = []
    head = f"{'turns':>9} {'space p50/p99':>15} {'conv p50/p99':>15} {'floor p50/p99':>15}"
    print(f"{head} {'RSS':>6} {'PSS':>6} {'DB MB':>7}")
    with Daemon(profile=options.profile, command=options.command) as daemon, daemon.client() as client:
        batch = client.hello().limits["commit_turns"]
        done = 0
        for size in (int(each) for each in options.sizes.split(",")):
            load(client, lines, done, size, batch)
            done = size
            space = measure(client, questions, None)
            conversation = measure(client, questions, size // CONVERSATION_TURNS)
            raw = floor(lines, questions, size)
            rss, pss = rss_mib(daemon.pid), pss_mib(daemon.pid)
            megabytes = Path(daemon.store).stat().st_size / 1e6
            cells = " ".join(f"{f'{a:.1f}/{b:.1f}':>15}" for a, b in (space, conversation, raw))
            print(f"{size:>9} {cells} {rss:>6.1f} {pss:>6.1f} {megabytes:>7.1f}", flush=True)
            results.append({"turns": size, "space": space, "conversation": conversation, "floor": raw, "rss_mib": rss})
    print(json.dumps(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
