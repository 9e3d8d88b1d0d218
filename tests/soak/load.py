"""What agents do all day, at a steady pace, and whether the answers are right.

Each client has a thread and a connection of its own. It remembers what was acknowledged, and looks for it again: what
was written must be found, what was erased must not.
"""

from __future__ import annotations

import random
import socket
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

from beetle.client import Client, ClientClosed, NoDaemon
from beetle.contracts.errors import BeetleError, DeadlineExceeded, NotFound, Overloaded
from tests.building import Plain, candidate, candidates, message, skill, turn, write
from tests.soak.clock import SteppedClock

NOUNS = (
    "kettle",
    "window",
    "ladder",
    "garden",
    "engine",
    "letter",
    "bicycle",
    "harbour",
    "lantern",
    "orchard",
    "piano",
)
VERBS = ("stands beside", "was moved behind", "belongs to", "leans against", "is stored under", "was painted like")
LIVE, AT_ONCE = 400, 100
"""Turns that one writer leaves in the store; and how many older ones it erases at a time."""
SKILLS, CHUNKS = 40, 200
PAUSE_S = 0.5
FIRST_DAY, LAST_DAY = 1.0, 253_402_300_000.0


class Ledger:
    """What all clients have seen: answers by operation and error, and what was wrong."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self.answers: Counter[str] = Counter()
        self.errors: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.text_bytes = 0
        self.writes = 0

    def note(self, operation: str, error: str | None = None) -> None:
        with self._guard:
            self.answers[operation] += 1
            if error is not None:
                self.errors[f"{operation}: {error}"] += 1

    def wrote(self, text: int) -> None:
        """An acknowledged write with so many bytes of text."""
        with self._guard:
            self.writes += 1
            self.text_bytes += text

    def complain(self, what: str) -> None:
        with self._guard:
            if len(self.wrong) < 100:
                self.wrong.append(what)


class Agent(threading.Thread):
    """A client that does `work` at a pace until it is told to end. What ends it by itself is a failure."""

    def __init__(
        self, number: int, path: str, clock: SteppedClock, ledger: Ledger, per_s: float, over: threading.Event
    ) -> None:
        super().__init__(name=f"{type(self).__name__.lower()}-{number}", daemon=True)
        self.path, self.clock, self.ledger = path, clock, ledger
        self.chance = random.Random(self.name)
        self._per_s, self._over = per_s, over
        self._client: Client | None = None
        self.turns = self.asked = 0

    def run(self) -> None:
        try:
            while not self._over.is_set():
                began = time.monotonic()
                self.work()
                self.turns += 1
                self._over.wait(max(0.0, began + 1 / self._per_s - time.monotonic()))
        except Exception as error:  # noqa: BLE001 - the last stop of this thread; the run fails with it
            self.ledger.complain(f"{self.name} ended: {type(error).__name__}: {error}")
        finally:
            if self._client is not None:
                self._client.close()

    def work(self) -> None:
        raise NotImplementedError

    def ask(self, op: str, args: Mapping[str, Any], *, text: int = 0, expect: type[BeetleError] | None = None) -> Any:
        """The report; None where it could not be answered now, or not as `expect` allows."""
        key = f"{self.name}-{self.asked}-{op}" if text else None
        self.asked += 1
        while not self._over.is_set():
            try:
                self._client = self._client or Client(self.path, timeout=60)
                report = self._client.call(op, args, idempotency_key=key)
            except (Overloaded, DeadlineExceeded) as error:
                self.ledger.note(op, error.key)
                self._over.wait(PAUSE_S)
                continue
            except BeetleError as error:
                self.ledger.note(op, error.key)
                if expect is None or not isinstance(error, expect):
                    self.ledger.complain(f"{self.name}: {op} answered {error.key}: {error.message}")
                return None
            except (NoDaemon, ClientClosed, OSError) as error:
                self._client = None
                self.ledger.note(op, type(error).__name__)
                self.ledger.complain(f"{self.name}: {op}: {type(error).__name__}: {error}")
                return None
            self.ledger.note(op)
            if text:
                self.ledger.wrote(text)
            return report
        return None

    def at(self) -> str:
        """Now, by the daemon's clock."""
        inside = min(max(self.clock.now(), FIRST_DAY), LAST_DAY)
        return datetime.fromtimestamp(inside, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")

    def sentence(self) -> str:
        one, two = self.chance.sample(NOUNS, 2)
        return f"The {one} {self.chance.choice(VERBS)} the {two} since the {self.chance.randrange(1, 29)}th."


class Writer(Agent):
    """Commits turns, finds the newest again, and erases its oldest, so that the store does not grow by them."""

    def __init__(self, *more: Any) -> None:
        super().__init__(*more)
        self._live: deque[tuple[Plain, str, str]] = deque()

    def work(self) -> None:
        name, where = f"{self.name}-{self.turns}", {"conversation_id": f"{self.name}-{self.turns // 50 % 20}"}
        mark = f"mark{name.replace('-', '')}"
        said, answered = f"{self.sentence()} Note {mark}.", self.sentence() * self.chance.randrange(1, 8)
        made = turn(name, message(f"{name}.0", said), message(f"{name}.1", answered, role="assistant"), at=self.at())
        report = self.ask("transcript.commit", {"conversation": where, "turns": [made]}, text=len(said + answered))
        if report is None:
            return
        self._live.append((where, name, mark))
        if self.turns % 20 == 0:
            self._look_for(mark, there=True)
        if len(self._live) >= LIVE + AT_ONCE:
            self._erase()

    def _erase(self) -> None:
        oldest = [self._live.popleft() for _ in range(AT_ONCE)]
        for where in {each[0]["conversation_id"]: each[0] for each in oldest}.values():
            names = [name for of, name, _ in oldest if of == where]
            self.ask("transcript.lifecycle", {"conversation": where, "action": "delete_raw", "turn_ids": names,
                                              "reason": "it is old"}, expect=NotFound)  # fmt: skip
        self._look_for(oldest[0][2], there=False)

    def _look_for(self, mark: str, *, there: bool) -> None:
        report = self.ask("memory.recall", {"query": mark, "planes": ["evidence"]})
        if report is not None and any(mark in (hit.excerpt or "") for hit in report.hits) is not there:
            self.ledger.complain(f"{self.name}: {mark} {'is not' if there else 'is still'} found")


class Hurried(Agent):
    """Commits turns one after the other without a pause, beside others that do, and erases them."""

    def work(self) -> None:
        where = {"conversation_id": f"{self.name}-{self.turns % 20}"}
        names = [f"{self.name}-{self.turns}-{number}" for number in range(AT_ONCE)]
        for name in names:
            said = self.sentence()
            self.ask(
                "transcript.commit", {"conversation": where, "turns": [turn(name, said, at=self.at())]}, text=len(said)
            )
        self.ask("transcript.lifecycle", {"conversation": where, "action": "delete_raw", "turn_ids": names,
                                          "reason": "it is old"})  # fmt: skip


class Reader(Agent):
    """Recalls, projects, replays and looks at the table of contents."""

    def work(self) -> None:
        asked = " ".join(self.chance.sample(NOUNS, 2))
        match self.turns % 5:
            case 0 | 2:
                self.ask("memory.recall", {"query": f"where is the {asked}?"})
            case 1:
                self.ask("memory.project", {"user_query": asked, "system_max_len": 3000})
            case 3:
                self._walk()
            case _:
                self.ask("toc.search_children", {"query": asked})

    def _walk(self) -> None:
        report = self.ask("toc.root", {})
        nodes = () if report is None else report.nodes
        while nodes:
            node = self.chance.choice(nodes)
            grips = [grip for bullet in node.bullets for grip in bullet.grip_ids]
            if grips:
                self.ask("grip.expand", {"grip_id": self.chance.choice(grips)}, expect=NotFound)
            report = self.ask("toc.browse", {"parent_id": node.node_id})
            nodes = () if report is None else report.children


class Editor(Agent):
    """Skills with a bounded number of revisions, chunks, thoughts, events, facts."""

    def __init__(self, *more: Any) -> None:
        super().__init__(*more)
        self._chunks: deque[str] = deque()
        self._skills: set[str] = set()

    def work(self) -> None:
        works: tuple[Callable[[str], None], ...] = (self._skill, self._chunk, self._thought, self._event, self._fact)
        works[self.turns % len(works)](self.sentence())

    def _skill(self, says: str) -> None:
        name = f"way-{self.chance.randrange(SKILLS)}"
        if name not in self._skills:
            made = self.ask("memory.write", write(skill(name, content=says)), text=len(says))
            self._skills.add(name) if made is not None else None
        elif self.chance.random() < 0.1:
            self._skills.remove(name)
            self.ask("skill.delete", {"name": f"runtime_skill__{name}"})
        else:
            fields = {"name": f"runtime_skill__{name}", "procedure": says, "edit_reason": "it changed"}
            self.ask("skill.edit", fields, text=len(says))

    def _chunk(self, says: str) -> None:
        fields = {"content": says, "conversation_id": f"c{self.turns % 7}", "tags": [self.chance.choice(NOUNS)]}
        if (made := self.ask("chunk.create", fields, text=len(says))) is not None:
            self._chunks.append(made.chunk.id)
            self.ask("chunk.update", {"id": self.chance.choice(self._chunks), "confidence": self.chance.random()})
            self.ask("chunk.recall", {"query": says})
        if len(self._chunks) > CHUNKS:
            self.ask("chunk.delete", {"id": self._chunks.popleft(), "permanent": True})

    def _thought(self, says: str) -> None:
        fields = {"chain_key": "plans", "thought_type": "Plan", "content": says, "agent_id": self.name}
        made = self.ask("chain.append", fields, text=len(says))
        if made is not None and self.turns % 10 == 2:
            self.ask("chain.search", {"chain_key": "plans", "text": self.chance.choice(NOUNS), "limit": 5})

    def _event(self, says: str) -> None:
        at = round(min(max(self.clock.now(), FIRST_DAY), LAST_DAY) * 1000)
        name, session = f"{self.name}-{self.turns}", f"s{self.turns // 300 % 12}"
        event = {"event_id": name, "session_id": session, "timestamp_ms": at, "event_type": "user_message"}
        event["text"] = says
        self.ask("event.ingest", {"event": event}, text=len(says))

    def _fact(self, says: str) -> None:
        topic = f"the {self.chance.choice(NOUNS)}"
        made = candidates(candidate(f"{self.name}-{self.turns}", says, topic=topic))
        self.ask("memory.write", made, text=len(says))


class Forgetter(Agent):
    """Says something, and has all of it forgotten: a dry run, then its token."""

    def work(self) -> None:
        where, word = {"conversation_id": f"gone-{self.turns}"}, f"secret{self.turns}of{self.name.replace('-', '')}"
        said = turn(f"{self.name}-{self.turns}", f"{word}: {self.sentence()}", at=self.at())
        if self.ask("transcript.commit", {"conversation": where, "turns": [said]}, text=80) is None:
            return
        dry = self.ask("memory.forget", {"conversation": where, "dry_run": True})
        if dry is not None and dry.token is not None:
            self.ask("memory.forget", {"conversation": where, "token": dry.token})
            found = self.ask("memory.recall", {"query": word})
            if found is not None and any(word in (hit.excerpt or "") for hit in found.hits):
                self.ledger.complain(f"{word} was forgotten and is found")


class Visitor(Agent):
    """Connects, asks one thing and goes: politely, subscribed, in the middle of a frame, or after nonsense."""

    def work(self) -> None:
        how = self.turns % 4
        if how == 0:
            with Client(self.path, timeout=60) as client:
                client.call("hello", {})
                client.call("memory.recall", {"query": self.chance.choice(NOUNS)})
        elif how == 1:
            with Client(self.path, timeout=60) as client, client.subscribe(topics=["skill", "lifecycle"]):
                client.call("memory.capabilities", {})
        else:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as raw:
                raw.connect(self.path)
                raw.sendall(b"\x00\x00\x01\x00\x85" if how == 2 else b"\xff" * 64)
        self.ledger.note("visit")


Crew = tuple[tuple[type[Agent], int, float], ...]
"""Who works, how many of them, and how often a second each."""
CREW: Crew = (
    (Writer, 3, 3.0),
    (Hurried, 3, 0.03),
    (Reader, 2, 3.0),
    (Editor, 1, 4.0),
    (Forgetter, 1, 0.05),
    (Visitor, 1, 0.5),
)


def agents(
    crew: Crew, path: str, clock: SteppedClock, ledger: Ledger, over: threading.Event, pace: float
) -> list[Agent]:
    """All of them, not yet started; `pace` multiplies how often they work."""
    return [
        kind(number, path, clock, ledger, per_s * pace, over) for kind, count, per_s in crew for number in range(count)
    ]


FILLED, WORDS, ASKED, ASKING = 100, 50_000, 5_000, 6
"""Turns of one commit, words that few of them have, recalls of one thread, and threads."""


def filled(path: str, turns: int) -> None:
    """Commit so many turns, then recall and verify until the caches hold what they may: what the daemon's memory grows
    by after that is not theirs."""
    chance = random.Random("filled")

    def said() -> str:
        one, two = chance.sample(NOUNS, 2)
        return f"The {one} {chance.choice(VERBS)} the {two}, word {chance.randrange(WORDS)}. "

    def ask(seed: int) -> None:
        mine = random.Random(seed)
        with Client(path, timeout=600) as client:
            for number in range(ASKED):
                client.recall(query=f"{mine.choice(NOUNS)} {mine.randrange(WORDS)} {mine.randrange(WORDS)}")
                if number % 10 == 0:
                    client.project(user_query=mine.choice(NOUNS), system_max_len=3000)

    with Client(path, timeout=600) as client:
        for first in range(0, turns, FILLED):
            made = [turn(f"before-{first + more}", said() * 3) for more in range(min(FILLED, turns - first))]
            where = {"conversation_id": f"before-{first}"}
            client.call("transcript.commit", {"conversation": where, "turns": made})
        with ThreadPoolExecutor(ASKING) as pool:
            list(pool.map(ask, range(ASKING)))
        client.verify_store()
