"""Beetle beside other stores that run offline: writing, recall, memory, disk and start, in one run on one disk.

    pip install -r tests/bench/peers/requirements.txt     # into an environment of its own
    python -m tests.bench.peers --python ENVIRONMENT/bin/python [--sizes 1000,10000] [--json FILE] [--folder FOLDER]

Every store is filled with the same turns, then all are open at once and are measured in rounds, each in another order:
some turns are appended one at a time, then questions are asked, the same of all. Each is in a process of its own;
Beetle is a daemon and a client. Syncs are counted by strace where that is installed, and whether two processes may have
one store is tried. A library that is not installed is left out. Times depend on the machine: compare within a run.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from tests.bench.peers.stores import KINDS, Settings
from tests.bench.peers.worker import Ended, NotInstalled, Worker, disk_bytes, started
from tests.bench.scale import DATA, material, text_of
from tests.running import quantiles

CHUNK = 500
"""Turns of one request to fill a store."""
WARM = 20
TRACED = 100
WANTED = 50
"""Turns that are looked for by four of their own words."""
SYNCS = ("fsync(", "fdatasync(", "sync_file_range(", "msync(")


class Said(NamedTuple):
    """The same for all: turns and questions, and turns beside a question of their own words."""

    texts: list[str]
    questions: list[str]
    wanted: list[tuple[str, str]]


def said(data: Path, turns: int, smallest: int) -> Said:
    lines, questions = material(data)
    rolls = random.Random(11)
    texts = [text_of(lines, rolls) for _ in range(turns)]
    wanted = [(own_words(texts[number]), texts[number]) for number in rolls.sample(range(smallest), WANTED)]
    return Said(texts, questions, wanted)


def own_words(text: str) -> str:
    """The four longest words of a text."""
    words = dict.fromkeys("".join(each if each.isalnum() else " " for each in text).split())
    return " ".join(sorted(words, key=len, reverse=True)[:4])


class Contender:
    """A store of the run: how far it is filled, and its open process."""

    def __init__(self, name: str, folder: Path, options: argparse.Namespace, texts: Said) -> None:
        self.name, self.kind = name, KINDS[name]
        self.folder = folder / name
        self.settings = Settings(options.profile, options.command)
        self.out: str | None = None
        """Why it takes part no longer."""
        self.turns = 0
        self._options, self._said, self._asked = options, texts, 0
        self.worker = Worker(name, self.folder, self.settings, options.python)
        self.version = self.worker.version

    def fill(self, size: int) -> bool:
        """Whether it has so many turns before patience ends."""
        end = time.monotonic() + self._options.patience
        while self.turns < size and time.monotonic() < end:
            texts = self._said.texts[self.turns : min(size, self.turns + CHUNK)]
            self.worker.do("fill", first=self.turns, texts=texts)
            self.turns += len(texts)
        if self.turns < size:
            self.out = f"{self.turns} turns after {self._options.patience:.0f} s"
        return self.out is None

    def restart(self, times: int) -> tuple[float, float]:
        """Bytes of its files when it is closed, and the median of the milliseconds that so many starts take."""
        spent, size = [], 0
        for _ in range(times):
            self.worker.close()
            size = size or disk_bytes(self.folder)
            self.worker, ms = started(
                self.name, self.folder, self.settings, self._options.python, self._said.questions[0]
            )
            spent.append(ms)
        return size, statistics.median(spent)

    def append(self, count: int) -> float:
        """Turns a second, one at a time."""
        texts = self._said.texts[self.turns : self.turns + count]
        seconds = self.worker.do("add", first=self.turns, texts=texts)["seconds"]
        self.turns += len(texts)
        return len(texts) / seconds

    def ask(self, count: int) -> list[float]:
        """Milliseconds of the next questions."""
        every = self._said.questions
        asked = [every[(self._asked + each) % len(every)] for each in range(count)]
        self._asked += count
        return self.worker.do("ask", questions=asked)["ms"]


def made_ready(contender: Contender, starts: int) -> dict[str, float]:
    """What a filled store takes on the disk and to start. It is warm afterwards."""
    disk, start = contender.restart(starts)
    found = {"start_ms": start, "disk_bytes_a_turn": disk / contender.turns}
    contender.append(WARM)
    if contender.kind.finds:
        contender.ask(WARM)
    return found


def at_size(size: int, contenders: list[Contender], options: argparse.Namespace, texts: Said) -> dict[str, Any]:
    """What each store of the run does with so many turns."""
    results: dict[str, Any] = {}
    for each in contenders:
        try:
            if each.out is None and each.fill(size):
                results[each.name] = made_ready(each, options.starts)
        except Ended as error:
            each.out = str(error)
    taking_part = [each for each in contenders if each.name in results]
    rates: dict[str, list[float]] = {each.name: [] for each in taking_part}
    times: dict[str, list[float]] = {each.name: [] for each in taking_part}
    for number in range(options.rounds):
        turn = number % max(1, len(taking_part))
        for each in taking_part[turn:] + taking_part[:turn]:
            rates[each.name].append(each.append(options.turns))
            if each.kind.finds:
                times[each.name] += each.ask(options.questions)
    for each in taking_part:
        found = results[each.name]
        found |= {"turns_s": statistics.median(rates[each.name]), "turns_s_rounds": rates[each.name]}
        if each.kind.finds:
            p50, p99 = quantiles(times[each.name])
            part = each.worker.do("found", wanted=texts.wanted)["found"] / WANTED
            found |= {"p50_ms": p50, "p99_ms": p99, "found": part}
        memory = each.worker.rss_mib()
        found |= {"rss_mib": sum(memory), "rss_mib_of_each_process": memory}
    return results


def syncs(name: str, folder: Path, options: argparse.Namespace, texts: Said) -> dict[str, float] | None:
    """Syncs and connections to a network that a traced process and its children make for each turn, one at a time.

    None where there is no strace, or it may not trace.
    """
    if shutil.which("strace") is None:
        return None
    trace = folder / f"{name}.trace"
    watched = ",".join(each.rstrip("(") for each in SYNCS) + ",connect"
    prefix = ["strace", "-f", "-qq", "-ttt", "-e", "signal=none", "-e", f"trace={watched}", "-o", str(trace)]
    settings = Settings(options.profile, options.command)
    try:
        worker = Worker(name, folder / f"{name}-traced", settings, options.python, prefix=prefix)
    except Ended:
        return None
    worker.do("add", first=0, texts=texts.texts[:WARM])
    span = worker.do("add", first=WARM, texts=texts.texts[WARM : WARM + TRACED])
    if KINDS[name].finds:
        worker.do("ask", questions=texts.questions[:WARM])
    worker.close()
    made = connected = 0
    for line in trace.read_text(errors="replace").splitlines():
        _pid, at, call = line.split(maxsplit=2)
        made += span["from"] <= float(at) <= span["to"] and call.startswith(SYNCS)
        connected += "AF_INET" in call
    return {"syncs_a_turn": made / TRACED, "network_connections": connected}


def processes(name: str, folder: Path, options: argparse.Namespace, texts: Said) -> str:
    """What becomes of a second process that opens the store of a first: whether each finds what the other has added."""
    settings, place = Settings(options.profile, options.command), folder / f"{name}-shared"
    first = Worker(name, place, settings, options.python)
    one, other = texts.wanted[0], texts.wanted[1]
    try:
        first.do("add", first=0, texts=[one[1]])
        second = Worker(name, place, settings, options.python)
    except Ended as error:
        first.close()
        return f"one at a time: {error}"
    try:
        sees = not KINDS[name].finds or second.do("found", wanted=[one])["found"] == 1
        second.do("add", first=1, texts=[other[1]])
        seen = not KINDS[name].finds or first.do("found", wanted=[other])["found"] == 1
        return "several" if sees and seen else "a process does not find what another adds"
    except Ended as error:
        return f"a second one cannot write: {error}"
    finally:
        second.close()
        first.close()


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """The whole run."""
    sizes = sorted(int(each) for each in options.sizes.split(","))
    names = options.only.split(",") if options.only else list(KINDS)
    spare = len(sizes) * (WARM + options.rounds * options.turns) + WARM + TRACED
    texts = said(options.data, sizes[-1] + spare, min(sizes))
    left_out: dict[str, str] = {}
    stores: dict[str, dict[str, Any]] = {}
    contenders: list[Contender] = []
    results: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="beetle-peers-", dir=options.folder) as made:
        folder = Path(made)
        for name in names:
            try:
                contenders.append(Contender(name, folder, options, texts))
            except NotInstalled as error:
                left_out[name] = f"not installed: {error}"
            except Ended as error:
                left_out[name] = f"cannot be opened: {error}"
        try:
            for size in sizes:
                results.append({"turns": size, "stores": at_size(size, contenders, options, texts)})
                show(results[-1], contenders)
        finally:
            for each in contenders:
                each.worker.close()
        for each in contenders:
            counted = syncs(each.name, folder, options, texts) or {}
            shared = processes(each.name, folder, options, texts)
            stores[each.name] = {
                "version": each.version, "how": each.kind.how, "without": each.kind.without, "processes": shared,
                "stopped": each.out, **counted,
            }  # fmt: skip
    show_stores(stores, left_out)
    bytes_a_turn = statistics.mean(len(each.encode()) for each in texts.texts)
    return {
        "bench": "peers", "profile": options.profile, "rounds": options.rounds, "text_bytes_a_turn": bytes_a_turn,
        "results": results, "stores": stores, "left_out": left_out,
    }  # fmt: skip


def show(result: dict[str, Any], contenders: list[Contender]) -> None:
    """One size, as a table."""
    heads = ("turns/s", "÷ index", "p50 ms", "p99 ms", "÷ index", "found", "RSS MiB", "disk B", "start ms")
    print(f"\n{result['turns']} turns".ljust(12), *(f"{each:>9}" for each in heads))
    floor = result["stores"].get("index")
    for each in contenders:
        if (row := result["stores"].get(each.name)) is None:
            print(f"{each.name:<11} left out: {each.out}")
            continue
        of_floor = row["turns_s"] / floor["turns_s"] if floor else None
        slower = row["p50_ms"] / floor["p50_ms"] if floor and "p50_ms" in row else None
        cells = (
            (row["turns_s"], 0), (of_floor, 2), (row.get("p50_ms"), 2), (row.get("p99_ms"), 2), (slower, 2),
            (row.get("found"), 2), (row["rss_mib"], 1), (row["disk_bytes_a_turn"], 0), (row["start_ms"], 0),
        )  # fmt: skip
        print(f"{each.name:<11}", *(f"{'-' if value is None else f'{value:,.{d}f}':>9}" for value, d in cells))
    sys.stdout.flush()


def show_stores(stores: dict[str, dict[str, Any]], left_out: dict[str, str]) -> None:
    """What each is, and what it does not do."""
    print()
    for name, each in stores.items():
        count = each.get("syncs_a_turn")
        synced = "syncs were not counted" if count is None else f"{count:.2f} syncs a turn"
        reached = f"; {each['network_connections']} connections to a network" if each.get("network_connections") else ""
        print(f"{name}: {each['version']}; {each['how']}; {synced}{reached}; processes: {each['processes'][:90]}")
        if each["without"]:
            print(f"    without {each['without']}")
    for name, why in left_out.items():
        print(f"{name} is left out: {why}")


def options_of(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="1000,10000", help="turns, comma-separated (default: %(default)s)")
    parser.add_argument("--python", default=sys.executable, help="the interpreter that has the libraries")
    parser.add_argument("--only", default="", help=f"some of {','.join(KINDS)}")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--turns", type=int, default=100, help="appended one at a time in each round")
    parser.add_argument("--questions", type=int, default=200, help="asked in each round")
    parser.add_argument("--starts", type=int, default=3)
    parser.add_argument("--patience", type=float, default=120, help="seconds to fill one store to the next size")
    parser.add_argument("--profile", default="profile-linux-device-standalone-memory")
    parser.add_argument("--command", default=None, help="the beetle to run (default: this checkout)")
    parser.add_argument("--data", type=Path, default=DATA, help="conversations (default: made-up sentences)")
    parser.add_argument("--folder", default=None, help="where the stores are (default: the temporary folder)")
    parser.add_argument("--json", type=Path, default=None, help="also write the result to this file")
    return parser.parse_args(arguments)


def main() -> int:
    options = options_of()
    found = measure(options)
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
