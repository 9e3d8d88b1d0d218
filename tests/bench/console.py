"""The console at size: first screen, key to paint, memory, bytes to the terminal, and what it asks beside plain SQL.

    python -m tests.bench.console [--turns N] [--skills N] [--folder F] [--binary PATH] [--sizes 80x24,160x48]

The real command runs on a terminal of its own, at a real daemon on a real store, which is made first and kept in the
folder. A key counts from when it was written to the terminal until the bytes that show its effect have come: the place
in the list (`5 of 100 skills`), the row itself, and the page of that row. The place needs no daemon; the page always
does; the row does when it was not read yet. The next key comes once nothing was sent for a while.

First screen: from starting the program until the overview shows all counts. Its floors are Python itself and an import
of Textual, in turns with it.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from beetle.client import Client
from beetle_tui.activity import STEP_SECONDS
from tests.bench.console_queries import compare
from tests.bench.console_store import LONG, PROFILE, Made, copied, short_name, time_of
from tests.bench.console_terminal import QUIET, Painted, Terminal
from tests.running import Daemon, pss_mib, quantiles, rss_mib

UP, DOWN, PAGE_UP, PAGE_DOWN, HOME, END = b"\x1b[A", b"\x1b[B", b"\x1b[5~", b"\x1b[6~", b"\x1b[H", b"\x1b[F"
ENTER, ESCAPE = b"\r", b"\x1b"
ESCAPE_SECONDS = 0.3
"""Escape sequences begin as that key does: the console waits whether more comes."""
TURNS_A_SECOND = 20
TICKS = os.sysconf("SC_CLK_TCK")
AREAS = ("overview", "skills", "devices", "transcripts", "memory", "recall", "log")
FLOORS = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "import textual": [sys.executable, "-c", "import textual"],
    "import textual.app": [sys.executable, "-c", "import textual.app"],
}

Figures = dict[str, Any]


def area_marks(made: Made) -> dict[str, str]:
    """What each area shows once it is filled."""
    return {
        "overview": rf"turns +{made.turns:,}\b",
        "skills": rf"of {made.skills:,} skills",
        "devices": "No device: ",
        "transcripts": r"of [\d,]+ (?:conversation|turn)s",
        "memory": "Facts +Chunks",
        "recall": "press / and type",
        "log": r"of [\d,]+ rows",
    }


def first_screens(command: Sequence[str], made: Made, size: tuple[int, int], folder: Path, runs: int) -> Figures:
    """Milliseconds from starting it until the overview is filled; of the floors, until they have ended."""
    times: dict[str, list[float]] = {name: [] for name in ("console", *FLOORS)}
    memory: list[float] = []
    for _ in range(runs):
        for name, floor in FLOORS.items():
            began = time.perf_counter()
            subprocess.run(floor, check=True)
            times[name].append((time.perf_counter() - began) * 1000)
        with Terminal(command, size, folder) as terminal:
            painted = terminal.until(area_marks(made)["overview"], r" live[ ,]", since=terminal.began)
            times["console"].append(max(painted.ms))
            memory.append(rss_mib(terminal.process.pid))
            assert terminal.quit() == 0
    found: Figures = {name: {"median_ms": statistics.median(each), "max_ms": max(each)} for name, each in times.items()}
    return {**found, "rss_mib": statistics.median(memory)}


class Keys:
    """What came of many keys, by what they were for."""

    PARTS = ("place", "row", "page")

    def __init__(self) -> None:
        self._painted: dict[str, list[Painted]] = {}

    def add(self, name: str, painted: Painted) -> None:
        self._painted.setdefault(name, []).append(painted)

    def figures(self) -> Figures:
        """p50, p99 and most, in milliseconds, of each part that a kind of key shows; and bytes of a key, the median."""
        found: Figures = {}
        for name, all_of_it in self._painted.items():
            parts = self.PARTS if len(all_of_it[0].ms) > 1 else ("shown",)
            found[name] = {"keys": len(all_of_it), "bytes": statistics.median(each.sent for each in all_of_it)}
            for place, part in enumerate(parts[: len(all_of_it[0].ms)]):
                times = [each.ms[place] for each in all_of_it]
                p50, p99 = quantiles(times)
                found[name][part] = {"p50_ms": p50, "p99_ms": p99, "max_ms": max(times)}
        return found


Marks = Callable[[int], Sequence[str]]


class Walk:
    """One list, and the keys that go through it."""

    def __init__(self, terminal: Terminal, keys: Keys, noun: str, name: str, marks: Marks) -> None:
        self._terminal = terminal
        self._keys = keys
        self._foot = rf"([\d,]+) of [\d,]+ {noun}"
        self._name = name
        self._marks = marks

    def press(self, what: str, key: bytes, times: int = 1) -> int:
        """Press a key some times; the number of the row that is chosen then."""
        number = 0
        for _ in range(times):
            number, painted = self._terminal.move(key, self._foot, self._marks)
            self._keys.add(f"{self._name}: {what}", painted)
        return number

    def to_and_fro(self, times: int) -> None:
        """The last row and the first, by turns."""
        for _ in range(times):
            self.press("end", END)
            self.press("home", HOME)

    def held(self, key: bytes, times: int) -> None:
        """A key that is held down: all of its presses at once, until the last one's row is shown with its page."""
        number = self.press("down", key)
        marks = self._marks(number + times)
        painted = self._terminal.press(key * times, rf"\b{number + times:,} of", *marks)
        self._keys.add(f"{self._name}: {times} downs at once", painted)


def skill_marks(number: int) -> tuple[str, str]:
    name = short_name(number - 1)
    return rf"> {name[:10]}", f"─ {name} ─"


def turn_marks(number: int) -> tuple[str, str]:
    return rf"> +{number}  ", rf"─ Turn t{number} ─"


def through_skills(terminal: Terminal, keys: Keys, times: int) -> None:
    walk = Walk(terminal, keys, "skills", "skills", skill_marks)
    terminal.press(b"2", "skills")
    terminal.settle(terminal.pause)
    walk.press("down", DOWN, times)
    walk.press("page down", PAGE_DOWN, times)
    walk.to_and_fro(max(1, times // 5))
    walk.held(DOWN, 30)
    walk.press("home", HOME)
    for words, noun in ((short_name(7)[:6], "1 of 1 skill"), ("zzyzx", "No skill")):
        terminal.press(b"/", "words of name")
        os.write(terminal.descriptor, words.encode())
        terminal.settle()
        keys.add("skills: filter", terminal.press(ENTER, noun))
        terminal.settle(terminal.pause)
        terminal.press(b"/", words)
        _escape(terminal)


def through_conversations(terminal: Terminal, keys: Keys, times: int, names: Sequence[str]) -> None:
    walk = Walk(terminal, keys, "conversations", "conversations", lambda number: (f"> {_start(names[number - 1])}",))
    terminal.press(b"4", "conversations")
    terminal.settle(terminal.pause)
    few = min(times, (len(names) - 1) // 30)
    walk.press("down", DOWN, min(times, len(names) - 1))
    walk.press("page down", PAGE_DOWN, few)
    walk.press("home", HOME)
    walk.to_and_fro(max(1, times // 5))


def _start(name: str) -> str:
    return "".join(f"\\{each}" if each in "+.-" else each for each in name[:12])


def _escape(terminal: Terminal) -> None:
    os.write(terminal.descriptor, ESCAPE)
    terminal.settle(ESCAPE_SECONDS)


def into_the_long_one(terminal: Terminal, keys: Keys, made: Made) -> None:
    """Find the long conversation by a part of its name, and open it."""
    terminal.press(b"/", "part of a conversation")
    os.write(terminal.descriptor, LONG.encode())
    terminal.settle()
    keys.add("conversations: filter", terminal.press(ENTER, "1 of 1 conversation"))
    keys.add("timeline: open", terminal.press(ENTER, f"{made.long:,} of {made.long:,} turns", *turn_marks(made.long)))


def through_turns(terminal: Terminal, keys: Keys, made: Made, times: int) -> None:
    walk = Walk(terminal, keys, "turns", "timeline", turn_marks)
    walk.press("page up", PAGE_UP, times)
    walk.press("home", HOME)
    walk.press("down", DOWN, times)
    walk.to_and_fro(max(1, times // 5))
    rolls = random.Random(5)
    for _ in range(max(1, times // 5)):
        number = rolls.randrange(2, made.long)
        terminal.press(b"d", "Go to a date")
        os.write(terminal.descriptor, f"{time_of(number):%Y-%m-%d %H:%M}".encode())
        terminal.settle()
        painted = terminal.press(ENTER, f"{number:,} of {made.long:,} turns", *turn_marks(number))
        keys.add("timeline: date", painted)
    walk.press("home", HOME)
    walk.held(DOWN, 30)


def through_log(terminal: Terminal, keys: Keys, times: int, head: int) -> None:
    def marks(number: int) -> tuple[str, str]:
        return rf"> +{head - number + 1:,}  ", rf"─ Row {head - number + 1:,} ─"

    walk = Walk(terminal, keys, "rows", "log", marks)
    terminal.press(b"7", "rows")
    terminal.settle(terminal.pause)
    walk.press("down", DOWN, times)
    walk.press("page down", PAGE_DOWN, min(times, (head - times) // 30))
    walk.press("home", HOME)
    walk.to_and_fro(max(1, times // 5))


def round_the_areas(terminal: Terminal, keys: Keys, made: Made, rounds: int) -> None:
    marks = area_marks(made)
    order = [*enumerate(AREAS, 1)]
    for each in range(rounds + 1):
        for number, area in [*order[1:], order[0]]:
            painted = terminal.press(str(number).encode(), marks[area])
            keys.add(f"areas: {'again' if each else 'first'}", painted)
            terminal.settle(terminal.pause if not each else QUIET)


def memory(terminal: Terminal, daemon: Daemon) -> Figures:
    """MiB of the console and of the daemon."""
    pids = {"console": terminal.process.pid, "daemon": daemon.pid}
    return {name: {"rss_mib": rss_mib(pid), "pss_mib": pss_mib(pid)} for name, pid in pids.items()}


def cpu_seconds(pid: int) -> float:
    """User and system time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def listen(terminal: Terminal, daemon: Daemon, seconds: float) -> Figures:
    """Bytes a second that come in an area without a key, and what they cost."""
    found: Figures = {}
    for number, area in enumerate(AREAS, 1):
        os.write(terminal.descriptor, str(number).encode())
        terminal.listen(terminal.pause)
        before = cpu_seconds(terminal.process.pid), cpu_seconds(daemon.pid)
        sent = terminal.listen(seconds)
        after = cpu_seconds(terminal.process.pid), cpu_seconds(daemon.pid)
        spent = [(b - a) / seconds * 100 for a, b in zip(before, after, strict=True)]
        found[area] = {"bytes_s": sent / seconds, "console_cpu_percent": spent[0], "daemon_cpu_percent": spent[1]}
    return found


@contextmanager
def somebody_writing(client: Client) -> Iterator[None]:
    """Another client that commits turns at an even pace."""
    ended = threading.Event()

    def write() -> None:
        number = 0
        begun = time.monotonic()
        where = {"conversation_id": f"meanwhile-{begun}"}
        while not ended.wait(max(0.0, begun + number / TURNS_A_SECOND - time.monotonic())):
            number += 1
            message = {"message_id": f"m{number}", "role": "user", "content": f"The pump is loud: {number}."}
            turn = {"turn_id": f"t{number}", "at": "2026-03-02T08:12:00Z", "messages": [message]}
            client.commit_transcript(conversation=where, turns=[turn])

    writer = threading.Thread(target=write, name="somebody")
    writer.start()
    try:
        yield
    finally:
        ended.set()
        writer.join()


def conversation_names(client: Client) -> list[str]:
    """Every conversation, in the order of the list."""
    names: list[str] = []
    cursor = None
    while True:
        page = client.list_conversations(limit=100, cursor=cursor)
        names += [f"{each.channel_id}/{each.conversation_id}" for each in page.conversations]
        cursor = page.next_cursor
        if cursor is None:
            return names


def session(daemon: Daemon, made: Made, command: Sequence[str], size: tuple[int, int], options: Any) -> Figures:
    """One console from its start to its end."""
    keys = Keys()
    folder = daemon.folder
    found: Figures = {"first_screen": first_screens(command, made, size, folder, options.runs)}
    with daemon.client() as client, Terminal(command, size, folder, options.pause) as terminal:
        names = conversation_names(client)
        terminal.until(area_marks(made)["overview"], r" live[ ,]", since=terminal.began)
        found["memory"] = {"first screen": memory(terminal, daemon)}
        round_the_areas(terminal, keys, made, max(1, options.keys // 10))
        found["memory"]["every area"] = memory(terminal, daemon)
        through_skills(terminal, keys, options.keys)
        through_conversations(terminal, keys, options.keys, names)
        into_the_long_one(terminal, keys, made)
        through_turns(terminal, keys, made, options.keys)
        through_log(terminal, keys, options.keys, client.read_event_log(newest_first=True, limit=1).head)
        found["memory"]["every end"] = memory(terminal, daemon)
        terminal.press(b"1", area_marks(made)["overview"])
        terminal.listen(2 * STEP_SECONDS)  # it still shows what was asked until now, and then that this has ended
        found["idle"] = listen(terminal, daemon, options.seconds)
        with somebody_writing(client):
            found["updating"] = listen(terminal, daemon, options.seconds)
        found["memory"]["last"] = memory(terminal, daemon)
        assert terminal.quit() == 0
    return {**found, "keys": keys.figures()}


def measure(options: argparse.Namespace) -> Figures:
    """Every figure, by the way to start it and the size of the terminal."""
    commands = {"checkout": [sys.executable, "-m", "beetle"]}
    if options.binary:
        commands["binary"] = [options.binary]
    sizes = [tuple(int(each) for each in size.split("x")) for size in options.sizes.split(",")]
    results: Figures = {}
    with copied(Path(options.folder), options.turns, options.skills, options.profile) as (folder, made):
        results["store"] = {**made._asdict(), "bytes": (folder / "b.db").stat().st_size}
        with Daemon(profile=options.profile, folder=str(folder)) as daemon:
            with daemon.client() as client:
                results["questions"] = compare(client, daemon.store, made, options.keys)
                tell_questions(results["questions"])
            for name, command in commands.items():
                for columns, rows in sizes:
                    with daemon.client() as client:
                        now = made._replace(turns=client.inspect().counts.turns)
                    words = [*command, "--socket", daemon.socket, "tui"]
                    figures = session(daemon, now, words, (columns, rows), options)
                    results[f"{name} {columns}x{rows}"] = figures
                    tell_session(f"{name} {columns}x{rows}", figures)
    return results


def tell_questions(found: Figures) -> None:
    print(f"{'question, over the socket':<44} {'p50 ms':>8} {'p99 ms':>8} {'SQL p50':>8} {'ratio':>7}")
    for name, each in found.items():
        beside = f"{each['floor_p50_ms']:>8.2f} {each['ratio']:>7.1f}" if "ratio" in each else ""
        print(f"{name:<44} {each['p50_ms']:>8.2f} {each['p99_ms']:>8.2f} {beside}", flush=True)


def tell_session(title: str, found: Figures) -> None:
    print(f"\n{title}\n{'first screen':<32} {'median ms':>10} {'max ms':>8}")
    for name, each in found["first_screen"].items():
        if name != "rss_mib":
            print(f"{name:<32} {each['median_ms']:>10.0f} {each['max_ms']:>8.0f}")
    print(f"{'key, p50/p99/max ms':<32} {'keys':>5} {'bytes':>7} {'place or all':>17} {'row':>17} {'page':>17}")
    for name, each in found["keys"].items():
        cells = [
            f"{part['p50_ms']:.0f}/{part['p99_ms']:.0f}/{part['max_ms']:.0f}"
            for part in (each.get(name) for name in ("shown", *Keys.PARTS))
            if part is not None
        ]
        print(f"{name:<32} {each['keys']:>5} {each['bytes']:>7.0f} {' '.join(f'{cell:>17}' for cell in cells)}")
    print(f"{'memory, MiB':<32} {'console RSS/PSS':>17} {'daemon RSS/PSS':>17}")
    for name, each in found["memory"].items():
        cells = (f"{each[of]['rss_mib']:.1f}/{each[of]['pss_mib']:.1f}" for of in ("console", "daemon"))
        print(f"{name:<32} {' '.join(f'{cell:>17}' for cell in cells)}")
    print(f"{'bytes/s, console and daemon CPU':<32} {'idle':>17} {'updating':>17}")
    for area in AREAS:
        cells = (
            f"{each['bytes_s']:.0f} {each['console_cpu_percent']:.0f}% {each['daemon_cpu_percent']:.0f}%"
            for each in (found["idle"][area], found["updating"][area])
        )
        print(f"{area:<32} {' '.join(f'{cell:>17}' for cell in cells)}", flush=True)


def options_of(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=1_000_000)
    parser.add_argument("--skills", type=int, default=100_000)
    parser.add_argument("--folder", default=None, help="where the made store is kept (default: nowhere)")
    parser.add_argument("--binary", default=None, help="a frozen beetle, whose console is measured too")
    parser.add_argument("--profile", default=PROFILE)
    parser.add_argument(
        "--sizes", default="80x24,160x48", help="columns x rows, comma-separated (default: %(default)s)"
    )
    parser.add_argument("--runs", type=int, default=10, help="starts (default: %(default)s)")
    parser.add_argument("--keys", type=int, default=100, help="presses of each key (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=10.0, help="of listening in each area (default: %(default)s)")
    parser.add_argument("--pause", type=float, default=1.5, help="seconds of quiet in between (default: %(default)s)")
    return parser.parse_args(words)


def main(words: Sequence[str] | None = None) -> int:
    options = options_of(words)
    with tempfile.TemporaryDirectory(prefix="beetle-bench-") as folder:
        options.folder = options.folder or folder
        print(json.dumps(measure(options)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
