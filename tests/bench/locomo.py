"""Evidence recall on the LoCoMo development conversations, through the socket of a running daemon.

    python -m tests.bench.locomo [--data FILE] [--profile P] [--command BEETLE] [--path toc] [--times]

One turn per dialogue line: message_id is its dia_id, the image caption is appended to the text, the time is the
session's date plus 20 seconds a line, the speaker is the actor. Every question is asked with memory.recall in its
conversation, with `--path toc` by the table of contents, which is built first. Evidence recall@k is the mean over
questions of the share of its evidence turns among the first k hits. With `--times` each session is asked about by its
time alone as well: a day, a week and a month later, what was talked about then.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
import time
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from beetle.domain.time_words import window_of
from tests.running import Daemon, quantiles, rss_mib

DATA = Path(__file__).parents[3] / "shared/data/locomo/dev.json"
CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
DEPTHS = (5, 10, 20)
TURNS_A_COMMIT = 20


def session_start(text: str) -> datetime:
    """`1:56 pm on 8 May, 2023` as a UTC time."""
    return datetime.strptime(text, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)


def turns_of(conversation: dict[str, Any]) -> list[dict[str, Any]]:
    """The dialogue lines as turns of transcript.commit."""
    turns: list[dict[str, Any]] = []
    for session in conversation["sessions"]:
        start = session_start(session["date_time"])
        for line, said in enumerate(session["turns"]):
            caption = said.get("blip_caption")
            text = f"{said['text']} {caption}" if caption else said["text"]
            turns.append(
                {
                    "turn_id": said["dia_id"],
                    "at": (start + timedelta(seconds=20 * line)).isoformat(),
                    "messages": [
                        {
                            "message_id": said["dia_id"],
                            "role": "user",
                            "content": text,
                            "actor": {"speaker": said["speaker"]},
                        }
                    ],
                }
            )
    return turns


def evidence_of(question: dict[str, Any], known: set[str]) -> list[str]:
    """The ids that exist among everything written in the evidence field."""
    found = [each for entry in question["evidence"] for each in re.findall(r"D\d+:\d+", entry)]
    return [each for each in dict.fromkeys(found) if each in known]


def load(client: Any, conversations: list[dict[str, Any]]) -> tuple[int, float]:
    """Commit everything; turns and seconds."""
    count = 0
    started = time.perf_counter()
    for conversation in conversations:
        where = {"conversation_id": conversation["conversation_id"], "channel_id": "locomo"}
        turns = turns_of(conversation)
        for first in range(0, len(turns), TURNS_A_COMMIT):
            client.commit_transcript(conversation=where, turns=turns[first : first + TURNS_A_COMMIT])
        count += len(turns)
    return count, time.perf_counter() - started


def ask(
    client: Any, conversations: list[dict[str, Any]], path: str
) -> tuple[dict[int, list[list[float]]], list[float]]:
    """Per category a row of recall at each depth and reciprocal rank a question; milliseconds of every recall."""
    rows: dict[int, list[list[float]]] = defaultdict(list)
    times: list[float] = []
    for conversation in conversations:
        where = {"conversation_id": conversation["conversation_id"], "channel_id": "locomo"}
        known = {said["dia_id"] for session in conversation["sessions"] for said in session["turns"]}
        for question in conversation["qa"]:
            wanted = evidence_of(question, known)
            if not wanted:
                continue
            started = time.perf_counter()
            report = client.recall(query=question["question"], limit=max(DEPTHS), conversation=where, path=path)
            times.append((time.perf_counter() - started) * 1000)
            got = [hit.message_id for hit in report.hits]
            shares = [sum(each in got[:depth] for each in wanted) / len(wanted) for depth in DEPTHS]
            rank = next((place for place, each in enumerate(got, 1) if each in wanted), None)
            rows[question["category"]].append([*shares, 0.0 if rank is None else 1 / rank])
    return rows, times


def ask_times(client: Any, conversations: list[dict[str, Any]]) -> dict[str, tuple[float, float]]:
    """By question: the share of the first ten hits that is of the time asked for, and how often there is one."""
    found: dict[str, list[float]] = defaultdict(list)
    for conversation in conversations:
        where = {"conversation_id": conversation["conversation_id"], "channel_id": "locomo"}
        for session in conversation["sessions"]:
            start = session_start(session["date_time"])
            for words, days in (("yesterday", 1), ("last week", 7), (f"in {start:%B}", 35)):
                asked = start + timedelta(days=days)
                window = window_of(words, int(asked.timestamp()) * 1_000_000)
                assert window is not None
                query = f"What did we talk about {words}?"
                hits = client.recall(query=query, limit=10, conversation=where, asked_at=asked.isoformat()).hits
                times = (datetime.fromisoformat(hit.at).timestamp() * 1_000_000 for hit in hits)
                inside = sum(window.since <= at <= window.until for at in times)
                found[words if days < 35 else "in MONTH"].append(inside / max(1, len(hits)))
    return {words: (statistics.fmean(each), statistics.fmean(map(bool, each))) for words, each in found.items()}


def show(rows: dict[int, list[list[float]]]) -> dict[str, Any]:
    """Print the table by category; return it."""
    table: dict[str, Any] = {}
    everything = [row for each in rows.values() for row in each]
    print(f"{'category':<12} {'questions':>9} " + " ".join(f"{f'R@{d}':>6}" for d in DEPTHS) + f" {'MRR':>6}")
    for name, each in [*((CATEGORIES[c], rows[c]) for c in sorted(rows)), ("overall", everything)]:
        means = [statistics.fmean(column) for column in zip(*each, strict=True)]
        print(f"{name:<12} {len(each):>9} " + " ".join(f"{mean:>6.3f}" for mean in means))
        table[name] = {"questions": len(each), **dict(zip([*(f"R@{d}" for d in DEPTHS), "MRR"], means, strict=True))}
    return table


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA, help="the conversations (default: %(default)s)")
    parser.add_argument("--profile", default="profile-linux-device-standalone-memory")
    parser.add_argument("--command", default=None, help="the beetle to run (default: this checkout)")
    parser.add_argument("--path", choices=("direct", "toc"), default="direct", help="path of recall")
    parser.add_argument("--times", action="store_true", help="ask what was said at a time as well")
    options = parser.parse_args()
    conversations = json.loads(options.data.read_text())
    with Daemon(profile=options.profile, command=options.command) as daemon, daemon.client() as client:
        turns, seconds = load(client, conversations)
        if options.path == "toc" or options.times:
            client.call("admin.rebuild_toc", {})
        rows, times = ask(client, conversations, options.path)
        table = show(rows)
        asked = ask_times(client, conversations) if options.times else {}
        p50, p99 = quantiles(times)
        rss = rss_mib(daemon.pid)
    for words, (share, any_hit) in asked.items():
        print(f"what did we talk about {words}: {share:.3f} of the first ten hits are of then, some {any_hit:.3f}")
    print(f"ingest {turns / seconds:.0f} turns/s ({turns} turns, {TURNS_A_COMMIT} a commit)")
    print(f"recall p50 {p50:.2f} ms, p99 {p99:.2f} ms ({len(times)} questions)")
    print(f"daemon RSS {rss:.1f} MiB")
    print(json.dumps({"table": table, "turns_per_s": turns / seconds, "p50_ms": p50, "p99_ms": p99, "rss_mib": rss}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
