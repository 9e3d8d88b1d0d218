"""An import of 50,000 turns into a daemon that answers another client's recall meanwhile.

    python -m tests.bench.importing [--turns N] [--profile P] [--format jsonl|claude-code|chatgpt] [--again]

`beetle import` runs as a process of its own, its start included. The other client asks every 50 ms; how long its recall
takes with nobody importing is measured afterwards. `--again` imports the same file once more.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from beetle.client import Client
from tests.running import Daemon, memory_peak_mib, quantiles

COMMON = "the spare key of a box is on my shelf and we keep tea from Porto in it for you".split()  # noqa: SIM905
SYLLABLES = "ka lo mi re tu sa ven dor pil gra ne to".split()  # noqa: SIM905
WORDS = [one + two + three for one in SYLLABLES for two in SYLLABLES for three in SYLLABLES]
PER_CONVERSATION = 250
ASK_SECONDS = 0.05
QUERIES = ("where is the spare key", "kalomi of Porto", "resaven dorpilgra tea", "tukane")


def text(number: int) -> str:
    """About 170 characters: half of the words are common, the others one of 1,728 each."""
    picked = (COMMON[(number + step) % len(COMMON)] if step % 2 else WORDS[hash_of(number, step)] for step in range(30))
    return f"note {number}: {' '.join(picked)}"


def hash_of(number: int, step: int) -> int:
    """A word's index, the same in every run."""
    return (number * 2_654_435_761 + step * 40_503) % 4_294_967_291 % len(WORDS)


def at(number: int) -> str:
    """A minute apart."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(1_700_000_000 + 60 * number))


def jsonl(number: int) -> dict[str, Any]:
    """A turn of transcript.commit."""
    message = {"message_id": f"m{number}", "role": ("user", "assistant")[number % 2], "content": text(number)}
    where = {"channel_id": "bench", "conversation_id": f"c{number // PER_CONVERSATION}"}
    return {"conversation": where, "turn_id": f"t{number}", "at": at(number), "messages": [message]}


def claude_code(number: int) -> dict[str, Any]:
    """A record of a transcript."""
    role = ("user", "assistant")[number % 2]
    return {
        "parentUuid": f"u{number - 1}", "isSidechain": False, "userType": "external", "cwd": "/home/rita/tea",
        "sessionId": f"s{number // PER_CONVERSATION}", "version": "2.0.0", "gitBranch": "main", "type": role,
        "message": {"role": role, "content": [{"type": "text", "text": text(number)}]},
        "uuid": f"u{number}", "timestamp": at(number),
    }  # fmt: skip


def chatgpt(first: int, turns: int) -> dict[str, Any]:
    """A conversation of an export."""
    mapping: dict[str, Any] = {}
    for number in range(first, first + turns):
        message = {
            "id": f"n{number}", "author": {"role": ("user", "assistant")[number % 2], "name": None, "metadata": {}},
            "create_time": 1_700_000_000.5 + 60 * number, "status": "finished_successfully", "weight": 1.0,
            "content": {"content_type": "text", "parts": [text(number)]}, "metadata": {}, "recipient": "all",
        }  # fmt: skip
        parent = f"n{number - 1}" if number > first else None
        mapping[f"n{number}"] = {
            "id": f"n{number}",
            "message": message,
            "parent": parent,
            "children": [f"n{number + 1}"],
        }
    return {
        "title": f"Notes from {first}",
        "mapping": mapping,
        "current_node": f"n{first + turns - 1}",
        "id": f"c{first}",
    }


def write(path: Path, form: str, turns: int) -> None:
    """A file of that format."""
    with path.open("w") as stream:
        if form == "chatgpt":
            stream.write("[")
            for first in range(0, turns, PER_CONVERSATION):
                stream.write("," if first else "")
                json.dump(chatgpt(first, min(PER_CONVERSATION, turns - first)), stream)
            stream.write("]")
            return
        record = {"jsonl": jsonl, "claude-code": claude_code}[form]
        stream.writelines(json.dumps(record(number)) + "\n" for number in range(turns))


class Asking(threading.Thread):
    """Another client, which asks until it is stopped; `times` in milliseconds."""

    def __init__(self, socket: str) -> None:
        super().__init__()
        self.times: list[float] = []
        self._socket = socket
        self._ended = threading.Event()

    def run(self) -> None:
        with Client(self._socket) as client:
            number = 0
            while not self._ended.wait(ASK_SECONDS):
                before = time.perf_counter()
                client.recall(query=QUERIES[number % len(QUERIES)])
                self.times.append((time.perf_counter() - before) * 1000)
                number += 1

    def told(self) -> dict[str, float]:
        """Stop, and say how long it waited."""
        self._ended.set()
        self.join()
        p50, p99 = quantiles(self.times)
        return {"asked": len(self.times), "p50_ms": round(p50, 1), "p99_ms": round(p99, 1)}


def cpu_of(pid: int) -> float:
    """CPU seconds of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def child_cpu() -> float:
    """CPU seconds of the processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(daemon: Daemon, path: Path) -> dict[str, Any]:
    """One import, with the other client beside it."""
    asking = Asking(daemon.socket)
    asking.start()
    began, spent = time.perf_counter(), (cpu_of(daemon.pid), child_cpu())
    command = [*daemon.command, "--socket", daemon.socket, "--json", "import", str(path)]
    done = subprocess.run(command, cwd=daemon.checkout, check=True, capture_output=True)
    seconds = time.perf_counter() - began
    report = json.loads(done.stdout)
    told = {"seconds": round(seconds, 2), "turns_s": round(report["turns"] / seconds)}
    told |= {"daemon_cpu_s": round(cpu_of(daemon.pid) - spent[0], 2), "client_cpu_s": round(child_cpu() - spent[1], 2)}
    return {**told, "committed": report["committed"], "unchanged": report["unchanged"], "recall": asking.told()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=50_000)
    parser.add_argument("--profile", default="desktop")
    parser.add_argument("--format", default="jsonl", choices=("jsonl", "claude-code", "chatgpt"))
    parser.add_argument("--again", action="store_true")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="beetle-bench-") as made, Daemon(profile=asked.profile) as daemon:
        path = Path(made) / ("export.json" if asked.format == "chatgpt" else "export.jsonl")
        write(path, asked.format, asked.turns)
        found: dict[str, Any] = {"format": asked.format, "file_mb": round(path.stat().st_size / 1e6, 1)}
        found["import"] = run(daemon, path)
        if asked.again:
            found["again"] = run(daemon, path)
        idle = Asking(daemon.socket)
        idle.start()
        idle._ended.wait(5)
        found["recall_idle"] = idle.told()
        found["daemon_peak_mib"] = round(memory_peak_mib(daemon.pid), 1)
    print(json.dumps(found, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
