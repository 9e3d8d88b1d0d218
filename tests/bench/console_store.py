"""A store of any size for the console's benchmark: one long conversation, thousands of short ones, and skills.

It is made once through a daemon, in a folder that is kept; every run works on a copy, so that none finds what another
has written. Names are made so that the row of any number is known without asking.
"""

from __future__ import annotations

import json
import random
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from beetle.client import Client
from tests.bench.scale import material, text_of
from tests.running import Daemon

PROFILE = "profile-linux-device-standalone-memory"
LONG = "log-of-the-house"
LONG_SHARE = 0.4
"""The share of all turns that one conversation has."""
MOST_OF_SHORT = 199
"""Turns of the longest of the others: 1 to so many, by chance."""
CHANNELS = ("local", "radio", "telegram", "voice", "台所")
PLACES = ("kitchen", "workshop", "harbour", "night-shift", "garden", "台所", "ورشة", "Büro", "line-2")
SPEAKERS = ("Mara", "Noa", "健太", "Ali", "Jürgen", "نور")
WIDE = (
    "鍵は玄関の棚の上にあります。ポンプの音が大きいです。",
    "温度が上がったので、バルブを閉めてください 🔧",
    "👩‍🔧 the strainer is clean again ✅",
    "المضخة عالية الصوت اليوم",
)
VERBS = ("quieten", "drain", "light", "clean", "restart", "measure", "order", "close", "find", "lock")
THINGS = ("pump", "boiler", "strainer", "valve", "heater", "lamp", "filter", "gate", "key", "sensor")
BEGIN = datetime(2019, 3, 1, tzinfo=UTC)
STEP = timedelta(minutes=4)
CONNECTIONS = 3
SKILLS_AT_ONCE = 100
REVISED_EVERY = 20
DISABLED_EVERY = 50


class Made(NamedTuple):
    """What a store holds: turns in all and of the long conversation, conversations, skills."""

    turns: int
    long: int
    conversations: int
    skills: int


def short_name(number: int) -> str:
    """The skill of a number, from 0 on, in the order of names."""
    return f"{number:06}-{VERBS[number % 10]}-{THINGS[number // 10 % 10]}"


def time_of(number: int) -> datetime:
    """When the turn of a number, from 1 on, of the long conversation was said."""
    return BEGIN + number * STEP


@contextmanager
def copied(folder: Path, turns: int, skills: int, profile: str) -> Iterator[tuple[Path, Made]]:
    """A copy of the store of that size, which is made where it is not there yet; the copy goes with the block."""
    kept = folder / f"turns-{turns}-skills-{skills}"
    note = kept / "made.json"
    if not note.is_file():
        kept.mkdir(parents=True, exist_ok=True)
        began = time.monotonic()
        made = _make(kept, turns, skills, profile)
        note.write_text(json.dumps(made._asdict()))
        told = f"made {made.turns:,} turns and {made.skills:,} skills in {time.monotonic() - began:.0f} s"
        print(f"{told}, {(kept / 'b.db').stat().st_size / 1e6:.0f} MB", file=sys.stderr)
    copy = folder / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    copy.mkdir()
    for file in kept.glob("b.db*"):
        shutil.copy(file, copy)
    try:
        yield copy, Made(**json.loads(note.read_text()))
    finally:
        shutil.rmtree(copy)


def _make(folder: Path, turns: int, skills: int, profile: str) -> Made:
    for old in folder.glob("b.*"):
        old.unlink()
    rolls = random.Random(turns)
    long = int(turns * LONG_SHARE)
    shorts = list(_lengths(turns - long, rolls))
    with Daemon(profile=profile, folder=str(folder)) as daemon, daemon.client() as client:
        at_once = client.hello().limits["commit_turns"]
        lines, _ = material()
        writes = _mixed(
            _commits(lines, long, at_once, 0, _long_place),
            (each for number, length in enumerate(shorts, 1) for each in _short(lines, number, length, at_once)),
            len(shorts) * at_once / max(1, long),
        )
        _spread(daemon, writes)
        _spread(daemon, _skill_writes(lines, range(skills), 1))
        _spread(daemon, _skill_writes(lines, range(0, skills, REVISED_EVERY), 2))
        _spread(daemon, _switches(skills))
        counts = client.inspect().counts
    made = Made(counts.turns, long, counts.conversations, counts.runtime_skills)
    assert (made.turns, made.skills) == (turns, skills), made
    return made


def _lengths(turns: int, rolls: random.Random) -> Iterator[int]:
    while turns > 0:
        length = min(turns, rolls.randint(1, MOST_OF_SHORT))
        turns -= length
        yield length


Write = Callable[[Client], object]


def _mixed(some: Iterator[Write], others: Iterator[Write], others_each: float) -> Iterator[Write]:
    """Both in turns, so that their rows lie among one another as they do when all of it happens in time."""
    owed = 0.0
    for each in some:
        yield each
        owed += others_each
        yield from islice(others, int(owed))
        owed -= int(owed)
    yield from others


def _spread(daemon: Daemon, writes: Iterable[Write]) -> None:
    """Do them in several connections, no more at a time than there are of those; they begin in their order."""
    clients = [daemon.client() for _ in range(CONNECTIONS)]
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        free = list(clients)
        held: dict[Future[object], Client] = {}
        for write in writes:
            if not free:
                done, _ = wait(held, return_when=FIRST_COMPLETED)
                for each in done:
                    free.append(held.pop(each))
                    each.result()
            client = free.pop()
            held[pool.submit(write, client)] = client
        for each in held:
            each.result()
    for client in clients:
        client.close()


def _long_place(number: int) -> tuple[dict[str, str], datetime]:
    return {"channel_id": "local", "conversation_id": LONG}, time_of(number)


def _short(lines: list[str], number: int, length: int, at_once: int) -> Iterator[Write]:
    rolls = random.Random(number)
    where = {
        "channel_id": rolls.choice(CHANNELS),
        "conversation_id": f"{rolls.choice(PLACES)}-{number:05}",
    }
    begin = BEGIN + number * timedelta(hours=9)
    return _commits(lines, length, at_once, number, lambda at: (where, begin + at * timedelta(seconds=50)))


def _commits(
    lines: list[str], length: int, at_once: int, seed: int, place: Callable[[int], tuple[dict[str, str], datetime]]
) -> Iterator[Write]:
    """Commits of the turns 1 to `length` of one conversation; each waits for the one before, as they are in order."""
    before: list[Future[None]] = []
    for first in range(1, length + 1, at_once):
        numbers = range(first, min(first + at_once, length + 1))
        rolls = random.Random(seed * 1_000_003 + first)
        turns = [_turn(lines, number, place(number)[1], rolls) for number in numbers]
        yield _in_order(before, place(first)[0], turns)


def _in_order(before: list[Future[None]], where: dict[str, str], turns: list[dict[str, Any]]) -> Write:
    done: Future[None] = Future()
    last = before[-1] if before else None
    before[:] = [done]

    def write(client: Client) -> None:
        if last is not None:
            last.result()
        try:
            client.commit_transcript(conversation=where, turns=turns)
        finally:
            done.set_result(None)

    return write


def _turn(lines: list[str], number: int, at: datetime, rolls: random.Random) -> dict[str, Any]:
    """Of one message, sometimes of two; some in other scripts, few of them long."""
    text = text_of(lines, rolls)
    kind = rolls.random()
    if kind < 0.05:
        text = f"{rolls.choice(WIDE)} {text}"
    elif kind > 0.999:
        text = "\n".join(text_of(lines, rolls) for _ in range(40))
    messages = [
        {"message_id": f"m{number}", "role": "user", "content": text, "actor": {"speaker": rolls.choice(SPEAKERS)}}
    ]
    if number % 5 == 0:
        messages.append({"message_id": f"a{number}", "role": "assistant", "content": text_of(lines, rolls)})
    return {"turn_id": f"t{number}", "at": f"{at:%Y-%m-%dT%H:%M:%SZ}", "messages": messages}


def _skill_writes(lines: list[str], numbers: range, revision: int) -> Iterator[Write]:
    for first in range(0, len(numbers), SKILLS_AT_ONCE):
        writes = [_skill(lines, number, revision) for number in numbers[first : first + SKILLS_AT_ONCE]]
        yield lambda client, writes=writes: client.write(kind="procedural", source="import", writes=writes)


def _skill(lines: list[str], number: int, revision: int) -> dict[str, Any]:
    rolls = random.Random(number * 7 + revision)
    verb, thing = VERBS[number % 10], THINGS[number // 10 % 10]
    wide = f"{rolls.choice(WIDE)} " if number % 40 == 0 else ""
    steps = "\n".join(f"{step}. {text_of(lines, rolls)}" for step in range(1, 6))
    return {
        "name": short_name(number),
        "topic": f"{thing}s",
        "title": f"{wide}{verb.capitalize()} the {thing}",
        "summary": text_of(lines, rolls),
        "content": f"# Steps\n\n{steps}\n\n    systemctl restart {thing}\n\nListen for **{revision}** minutes.",
        "citations": [f"evidence:local/{LONG}/t{number + 1}"] if number % 10 == 0 else [],
    }


def _switches(skills: int) -> Iterator[Write]:
    for number in range(0, skills, DISABLED_EVERY):
        yield lambda client, number=number: client.set_runtime_skill_enabled(name=short_name(number), enabled=False)
