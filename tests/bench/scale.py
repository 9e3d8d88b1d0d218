"""Recall at size: how long it takes, over the socket, and what memory and disk the store takes.

    python -m tests.bench.scale [--sizes 10000,100000] [--profile P] [--command BEETLE] [--json FILE] [--keep FOLDER]

A store is filled in this process, then a daemon of `--command` serves a copy of it for all that is measured at that
size: recall in the whole space and in one conversation, a projection of 4,096 characters, recall beside clients that
write as fast as they can, start, memory before and after the recalls. A larger store goes on from the smaller one.
`--keep` keeps filled stores for the next run; remove them when the code that fills them has changed.

Turns are recombined halves of LoCoMo lines (or of made-up sentences where the data are not there), 200 a conversation.
The floor is a plain full-text index of the same texts, in process: the OR of the question's words. It and the first
recalls take turns, so that a slow minute of the machine falls on both.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from multiprocessing.synchronize import Barrier, Event
from pathlib import Path
from typing import Any, NamedTuple

from beetle import MemoryRuntime, __version__
from beetle.client import Client
from beetle.contracts.errors import StorageFull
from beetle.daemon import SETTLED_S
from beetle.runtime.host.profile import load_profile
from tests.bench import plain_fts
from tests.bench.locomo import DATA
from tests.bench.plain_fts import Plain
from tests.running import Daemon, quantiles, rss_mib

CONVERSATION_TURNS = 200
LIMIT = 10
PROJECTED_CHARS = 4096
WARM = 20
PATIENCE_S = 600
"""For clients to begin and to tell: one that fails must not be waited for without end."""
QUIET_S = SETTLED_S + 2
"""Until a daemon that has started has given back what only its start has used."""
WORDS = "kettle window garden letter market river winter hammer piano school doctor engine basket candle forest".split()  # noqa: SIM905


def material(path: Path = DATA) -> tuple[list[str], list[str]]:
    """Lines to recombine, and questions."""
    if path.is_file():
        data = json.loads(path.read_text())
        lines = [said["text"] for c in data for session in c["sessions"] for said in session["turns"]]
        return lines, [question["question"] for c in data for question in c["qa"]]
    rolls = random.Random(7)
    lines = [" ".join(rolls.choices(WORDS, k=12)) for _ in range(3000)]
    return lines, [" ".join(rolls.choices(WORDS, k=4)) + "?" for _ in range(500)]


def text_of(lines: list[str], rolls: random.Random) -> str:
    """Half of one line and half of another."""
    first, second = rolls.choice(lines).split(), rolls.choice(lines).split()
    return " ".join(first[: len(first) // 2 + 1] + second[len(second) // 2 :])


def texts_of(lines: list[str], conversation: int) -> list[str]:
    """What is said in the conversation of that number, the same in every run."""
    rolls = random.Random(conversation)
    return [text_of(lines, rolls) for _ in range(CONVERSATION_TURNS)]


def all_texts(lines: list[str], size: int) -> Iterator[str]:
    """The texts of the first `size` turns."""
    for conversation in range(-(-size // CONVERSATION_TURNS)):
        yield from texts_of(lines, conversation)[: size - conversation * CONVERSATION_TURNS]


def turn(number: int, text: str) -> dict[str, Any]:
    """The turn of that number: one message."""
    message = {
        "message_id": f"m{number}", "role": "user", "content": text, "actor": {"speaker": ("Ann", "Bo")[number % 2]},
    }  # fmt: skip
    hour, minute = divmod(number % 100, 60)
    at = f"2025-{1 + number // 2800 % 12:02d}-{1 + number // 100 % 28:02d}T{10 + hour}:{minute:02d}:00Z"
    return {"turn_id": f"t{number}", "at": at, "messages": [message]}


def load(memory: Any, lines: list[str], start: int, stop: int, batch: int) -> None:
    """Commit the turns `start` to `stop`, so many at a time."""
    for conversation in range(start // CONVERSATION_TURNS, -(-stop // CONVERSATION_TURNS)):
        first = conversation * CONVERSATION_TURNS
        every = [turn(number, text) for number, text in enumerate(texts_of(lines, conversation), first)]
        wanted = every[max(0, start - first) : stop - first]
        for each in range(0, len(wanted), batch):
            where = {"conversation_id": f"c{conversation}"}
            memory.commit_transcript(conversation=where, turns=wanted[each : each + batch])


class Kept:
    """Stores that are filled, one for each size, in a folder, and left as a night leaves them; a note beside each says
    that it is whole."""

    def __init__(self, folder: Path, profile: str, lines: list[str]) -> None:
        self._folder, self._profile, self._lines = folder, profile, lines
        self._batch = min(CONVERSATION_TURNS, load_profile(profile).budgets.commit_turns)

    def _place(self, size: int) -> Path:
        return self._folder / f"{__version__}-{self._profile}-turns-{size}"

    def _is_whole(self, size: int) -> bool:
        return (self._place(size) / "whole").is_file()

    def filled(self, size: int, smaller: int) -> Path:
        """The folder of a store of `size` turns; one that is not there yet goes on from one of `smaller` turns.

        Raises:
            StorageFull: the profile does not let a store grow so large.
        """
        place = self._place(size)
        if self._is_whole(size):
            return place
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        start = smaller if smaller and self._is_whole(smaller) else 0
        if start:
            shutil.copy(self._place(start) / "b.db", place / "b.db")
        began = time.monotonic()
        with MemoryRuntime.open(str(place / "b.db"), profile=self._profile) as memory:
            load(memory, self._lines, start, size, self._batch)
            # Each night merges the recall index: a search in a conversation takes half as long then.
            memory.call("scheduler.run", {"job_name": "optimize", "wait": True})
        print(f"{start:,} to {size:,} turns in {time.monotonic() - began:.0f} s", file=sys.stderr)
        (place / "whole").touch()
        return place


Shares = dict[str, float]


def timed(count: int, ask: Callable[[int], object], behind: Callable[[int], object] | None = None) -> Shares:
    """p50 and p99 in milliseconds of so many calls, after a few that are not counted; `behind` takes turns with it."""
    for each in range(min(count, WARM)):
        ask(each)
    times: list[float] = []
    for each in range(count):
        began = time.perf_counter()
        ask(each)
        times.append((time.perf_counter() - began) * 1000)
        if behind is not None:
            behind(each)
    return shares(times)


def shares(times: list[float]) -> Shares:
    """p50 and p99."""
    p50, p99 = quantiles(times)
    return {"p50_ms": p50, "p99_ms": p99}


class Writing(NamedTuple):
    """How clients that write begin, end, and tell how much they have written."""

    begin: Barrier
    end: Event
    told: Any


def write(socket: str, writer: int, lines: list[str], how: Writing) -> None:
    """One client process: commits one turn after another until the end."""
    rolls, number = random.Random(-1 - writer), 0
    with Client(socket) as client:
        client.hello()
        how.begin.wait()
        began = time.monotonic()
        while not how.end.is_set():
            made = turn(number, text_of(lines, rolls))
            client.commit_transcript(conversation={"conversation_id": f"w{writer}"}, turns=[made])
            number += 1
        how.told.put(number / (time.monotonic() - began))


def beside_writers(
    socket: str, writers: int, lines: list[str], measure: Callable[[], dict[str, float]]
) -> dict[str, float]:
    """What is measured while so many clients write; also turns/s of them all."""
    context = multiprocessing.get_context("spawn")
    how = Writing(context.Barrier(writers + 1, timeout=PATIENCE_S), context.Event(), context.Queue())
    processes = [context.Process(target=write, args=(socket, each, lines, how)) for each in range(writers)]
    for each in processes:
        each.start()
    how.begin.wait()
    try:
        found = measure()
    finally:
        how.end.set()
    rates = [how.told.get(timeout=PATIENCE_S) for _ in processes]
    for each in processes:
        each.join()
    return {**found, "writers": writers, "turns_s": sum(rates)}


def served(
    daemon: Daemon, size: int, options: argparse.Namespace, said: tuple[list[str], list[str]], plain: Plain
) -> dict[str, Any]:
    """All that is measured of a daemon on a store of `size` turns. Writers come last: they add turns."""
    lines, questions = said
    rolls = random.Random(1)
    began = time.perf_counter()
    with daemon, daemon.client() as client:
        client.hello()
        found: dict[str, Any] = {"start_ms": (time.perf_counter() - began) * 1000}
        found["rss_started_mib"] = rss_mib(daemon.pid)
        time.sleep(options.quiet)
        found["rss_idle_mib"] = rss_mib(daemon.pid)

        def question(number: int) -> str:
            return questions[number % len(questions)]

        def recall(number: int) -> object:
            return client.recall(query=question(number), limit=LIMIT)

        def recall_one(number: int) -> object:
            where = {"conversation_id": f"c{rolls.randrange(-(-size // CONVERSATION_TURNS))}"}
            return client.recall(query=question(number), limit=LIMIT, conversation=where)

        def project(number: int) -> object:
            return client.project(user_query=question(number), system_max_len=PROJECTED_CHARS)

        floors: list[float] = []

        def ask_floor(number: int) -> None:
            if number < plain_fts.QUESTIONS and (spent := plain.ask(question(number))) is not None:
                floors.append(spent)

        found["space"] = timed(options.recalls, recall, behind=ask_floor)
        found["floor"] = shares(floors)
        found["rss_recalled_mib"] = rss_mib(daemon.pid)
        found["again"] = timed(options.recalls, recall)
        found["conversation"] = timed(options.recalls, recall_one)
        found["project"] = timed(options.recalls, project)
        if (turns := client.inspect().counts.turns) != size:
            raise RuntimeError(f"the daemon serves {turns} turns, not {size}")
        found["beside"] = beside_writers(daemon.socket, options.writers, lines, lambda: timed(options.recalls, recall))
    return found


def at_size(kept: Path, size: int, options: argparse.Namespace, said: tuple[list[str], list[str]]) -> dict[str, Any]:
    """All figures of one size."""
    lines, _ = said
    text = sum(len(each.encode()) for each in all_texts(lines, size))
    store = (kept / "b.db").stat().st_size
    with (
        tempfile.TemporaryDirectory(prefix="beetle-floor-", dir=options.folder) as floor,
        closing(Plain(Path(floor), all_texts(lines, size))) as plain,
        tempfile.TemporaryDirectory(prefix="beetle-scale-", dir=options.folder) as made,
    ):
        shutil.copy(kept / "b.db", made)
        daemon = options.daemon(profile=options.profile, command=options.command, folder=made)
        found = served(daemon, size, options, said, plain)
    return {"turns": size, **found, "store_bytes_a_turn": store / size, "store_of_text": store / text}


Row = tuple[str, Callable[[dict[str, Any]], str]]


def _pair(name: str) -> Callable[[dict[str, Any]], str]:
    return lambda each: f"{each[name]['p50_ms']:.2f} / {each[name]['p99_ms']:.2f}"


def _ratio(name: str, floor: str) -> Callable[[dict[str, Any]], str]:
    return lambda each: " / ".join(f"{each[name][share] / each[floor][share]:.2f}" for share in ("p50_ms", "p99_ms"))


ROWS: list[Row] = [
    ("recall, whole space: p50 / p99 ms", _pair("space")),
    ("  ÷ plain FTS5 in process", _ratio("space", "floor")),
    ("the same ones again: p50 / p99 ms", _pair("again")),
    ("  ÷ plain FTS5 in process", _ratio("again", "floor")),
    ("plain FTS5 in process: p50 / p99 ms", _pair("floor")),
    ("recall, one conversation: p50 / p99 ms", _pair("conversation")),
    ("project, 4,096 characters: p50 / p99 ms", _pair("project")),
    ("recall beside writers: p50 / p99 ms", _pair("beside")),
    ("  ÷ recall alone", _ratio("beside", "space")),
    ("turns/s of the writers", lambda each: f"{each['beside']['turns_s']:,.0f}"),
    ("start to first answer, ms", lambda each: f"{each['start_ms']:.0f}"),
    ("RSS, started, MiB", lambda each: f"{each['rss_started_mib']:.1f}"),
    ("RSS, idle, MiB", lambda each: f"{each['rss_idle_mib']:.1f}"),
    ("RSS after the recalls, MiB", lambda each: f"{each['rss_recalled_mib']:.1f}"),
    ("store bytes a turn", lambda each: f"{each['store_bytes_a_turn']:,.0f}"),
    ("  ÷ text", lambda each: f"{each['store_of_text']:.2f}"),
]
"""What is shown of each size."""


def show(results: list[dict[str, Any]]) -> None:
    """A column for each size."""
    print(f"{'turns':<40}", *(f"{each['turns']:>17,}" for each in results))
    for title, cell in ROWS:
        print(f"{title:<40}", *(f"{cell(each):>17}" for each in results))


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Every size, from the smallest on, until the profile's store is full."""
    said = material(options.data)
    results: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="beetle-scale-", dir=options.folder) as made:
        kept, smaller = Kept(Path(options.keep or made), options.profile, said[0]), 0
        for size in sorted(int(each) for each in options.sizes.split(",")):
            try:
                place = kept.filled(size, smaller)
            except StorageFull as error:
                print(f"{size:,} turns: {options.profile}: {error}", file=sys.stderr)
                break
            results.append(at_size(place, size, options, said))
            smaller = size
            print(f"{size:,} turns are measured", file=sys.stderr)
    return {
        "bench": "scale", "version": __version__, "profile": options.profile, "command": options.command,
        "recalls": options.recalls, "results": results,
    }  # fmt: skip


def options_of(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="10000,100000", help="turns, comma-separated (default: %(default)s)")
    parser.add_argument("--profile", default="profile-linux-device-compact-memory")
    parser.add_argument("--command", default=None, help="the beetle to run (default: this checkout)")
    parser.add_argument("--recalls", type=int, default=1000, help="of each kind (default: %(default)s)")
    parser.add_argument("--writers", type=int, default=8, help="clients that write beside (default: %(default)s)")
    parser.add_argument("--quiet", type=float, default=QUIET_S, help="seconds until idle (default: %(default)s)")
    parser.add_argument("--data", type=Path, default=DATA, help="conversations (default: made-up sentences)")
    parser.add_argument("--folder", default=None, help="where stores and floors are (default: the temporary folder)")
    parser.add_argument("--keep", default=None, help="a folder where filled stores are kept for the next run")
    parser.add_argument("--json", type=Path, default=None, help="also write the result to this file")
    parser.set_defaults(daemon=Daemon)
    return parser.parse_args(arguments)


def main() -> int:
    options = options_of()
    found = measure(options)
    show(found["results"])
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
