"""What a hostile principal may send: each attack is a process with sockets of its own, until it is killed."""

from __future__ import annotations

import contextlib
import select
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any, NamedTuple

import msgpack

from beetle.runtime.host.profile import Budgets
from beetle.transports.socket_connection import SUBSCRIPTIONS

AT = "2026-01-02T03:04:05Z"
PATIENCE_S = 120.0
TELL_S = 0.5
MASKED = 500
"""Turns of each conversation that is masked."""
HOARDED = 120
"""Connections that each attack by numbers holds at most; the profile allows fewer, or ten times as many."""


FOLLOWING = 12
"""Connections that follow, each with as many subscriptions as it may have."""


class Target(NamedTuple):
    """Where to attack, and what is let through there."""

    socket: str
    budgets: Budgets


class Attack(NamedTuple):
    work: Callable[..., None]
    unknown: bool = False
    """Whether somebody does it whom the daemon does not know."""


def dial(place: Target) -> socket.socket:
    peer = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    peer.settimeout(PATIENCE_S)
    peer.connect(place.socket)
    return peer


def frame(op: str, args: Any, number: int = 1, **more: Any) -> bytes:
    return bytes(msgpack.packb({"v": 1, "id": number, "op": op, "args": args, **more}) or b"")


def loop(place: Target, frames: Iterator[bytes], answered: Counter[str]) -> None:
    """Ask and wait for the answer, over and over; again from the beginning where the connection is closed."""
    while True:
        try:
            with dial(place) as peer:
                unpacker = msgpack.Unpacker(max_buffer_size=1 << 30)
                for each in frames:
                    peer.sendall(each)
                    answer = _answer(peer, unpacker)
                    answered["ok" if answer["ok"] else answer["error"]["key"]] += 1
        except OSError as error:
            answered[type(error).__name__] += 1
            time.sleep(0.05)


def _answer(peer: socket.socket, unpacker: Any) -> Any:
    while True:
        for each in unpacker:
            return each
        data = peer.recv(1 << 16)
        if not data:
            raise ConnectionResetError
        unpacker.feed(data)


def many(count: int, make: Callable[[int, Target], Iterator[bytes]]) -> Callable[[Target, Any], None]:
    """An attack of so many connections, each asking what `make` yields."""

    def work(place: Target, told: Any) -> None:
        answered: Counter[str] = Counter()
        for number in range(count):
            threading.Thread(target=loop, args=(place, make(number, place), answered), daemon=True).start()
        tell(told, answered)

    return work


def tell(told: Any, answered: Counter[str]) -> None:
    while True:
        time.sleep(TELL_S)
        told.put(dict(answered))


def batches(_number: int, place: Target) -> Iterator[bytes]:
    query = " ".join(f"barlan{each}" for each in range(200))[: place.budgets.query_chars]
    one = {"op": "memory.recall", "args": {"query": query, "limit": place.budgets.recall_limit}}
    made = frame("batch", {"requests": [one] * place.budgets.batch_requests})
    while True:
        yield made


def long_queries(number: int, place: Target) -> Iterator[bytes]:
    many_words = " ".join(f"{word}{each}" for each in range(40) for word in ("barlan", "cormot", "dinnim", "felpos"))
    queries = ["a" * place.budgets.query_chars, many_words[: place.budgets.query_chars], "a " * 900, '"' * 2000]
    while True:
        number += 1
        yield frame("memory.recall", {"query": queries[number % len(queries)], "limit": place.budgets.recall_limit})


def verifications(_number: int, _place: Target) -> Iterator[bytes]:
    while True:
        yield frame("store.verify", {})


def commits(number: int, place: Target) -> Iterator[bytes]:
    began = time.time_ns()
    while True:
        began += 1
        turns = [
            {
                "turn_id": f"{number}-{began}-{each}",
                "at": AT,
                "messages": [{"message_id": f"{number}-{began}-{each}", "role": "user", "content": "barlan1 " * 30}],
            }
            for each in range(place.budgets.commit_turns)
        ]
        yield frame("transcript.commit", {"conversation": {"conversation_id": f"h{number}"}, "turns": turns})


def masks(number: int, place: Target) -> Iterator[bytes]:
    """A conversation of its own is masked and unmasked, as a whole, again and again."""
    where = {"conversation": {"conversation_id": f"m{number}"}}
    for first in range(0, MASKED, place.budgets.commit_turns):
        each = range(first, first + place.budgets.commit_turns)
        message = {"role": "user", "content": "barlan1 " * 30}
        turns = [{"turn_id": f"m{n}", "at": AT, "messages": [{"message_id": f"m{n}", **message}]} for n in each]
        yield frame("transcript.commit", {**where, "turns": turns})
    while True:
        for action in ("mask", "unmask"):
            every = {**where, "action": action, "before": "2027-01-01T00:00:00Z", "reason": "again"}
            yield frame("transcript.lifecycle", every)


def decoded(number: int, place: Target) -> Iterator[bytes]:
    """Frames of full size that are much to decode: many small things where a list is wanted, and where none is."""
    room = place.budgets.frame_bytes - 1024
    small = {"turn_id": "t", "at": AT, "messages": []}
    turns = [small] * (room // len(frame("x", small)))
    where = {"conversation_id": "h"}
    made = [
        frame("transcript.commit", {"conversation": where, "turns": [[]] * room}),
        frame("transcript.commit", {"conversation": where, "turns": turns}),
    ]
    while True:
        number += 1
        yield made[number % 2]


def replays(_number: int, place: Target) -> Iterator[bytes]:
    while True:
        yield frame("transcript.replay", page(place))


def churn(place: Target, told: Any) -> None:
    """Connect, say hello, go; and again."""
    answered: Counter[str] = Counter()

    def run() -> None:
        while True:
            try:
                with dial(place) as peer:
                    peer.sendall(frame("hello", {}))
                    answered["ok" if _answer(peer, msgpack.Unpacker())["ok"] else "refused"] += 1
            except OSError as error:
                answered[type(error).__name__] += 1

    threading.Thread(target=run, daemon=True).start()
    tell(told, answered)


def followers(place: Target, told: Any) -> None:
    """Subscriptions that each hear of every one of its commits, and read what they hear."""
    answered: Counter[str] = Counter()
    wanted = frame("subscribe", {"topics": ["transcript"]}) * SUBSCRIPTIONS

    def run() -> None:
        while True:
            try:
                with dial(place) as peer:
                    peer.sendall(wanted)
                    while data := peer.recv(1 << 16):
                        answered["heard_bytes"] += len(data)
            except OSError as error:
                answered[type(error).__name__] += 1
            time.sleep(0.05)

    for _ in range(FOLLOWING):
        threading.Thread(target=run, daemon=True).start()
    threading.Thread(target=loop, args=(place, notes(), answered), daemon=True).start()
    tell(told, answered)


def notes() -> Iterator[bytes]:
    for number in count(time.time_ns()):
        message = {"message_id": f"n{number}", "role": "user", "content": "barlan1"}
        turn = {"turn_id": f"n{number}", "at": AT, "messages": [message]}
        yield frame("transcript.commit", {"conversation": {"conversation_id": "n"}, "turns": [turn]})


def names(place: Target, told: Any) -> None:
    """Made-up names of operations, and operations that are not allowed, without waiting for answers to be read."""
    answered: Counter[str] = Counter()

    def run() -> None:
        number = 0
        while True:
            try:
                with dial(place) as peer:
                    threading.Thread(target=_drain, args=(peer,), daemon=True).start()
                    while True:
                        number += 1
                        peer.sendall(frame(f"made.up{number}", {}) + frame("device.list", {}))
                        answered["sent"] += 2
            except OSError as error:
                answered[type(error).__name__] += 1
                time.sleep(0.05)

    threading.Thread(target=run, daemon=True).start()
    tell(told, answered)


def _drain(peer: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while peer.recv(1 << 16):
            pass


def hoard(data: Callable[[Target], bytes]) -> Callable[[Target, Any], None]:
    """As many connections as it gets, each with what is sent and then silent; a closed one is made anew."""

    def work(place: Target, told: Any) -> None:
        answered: Counter[str] = Counter()
        held: list[socket.socket] = []
        sent = data(place)
        next_told = time.monotonic()
        while True:
            while len(held) < HOARDED:
                try:
                    peer = dial(place)
                    peer.settimeout(0.5)
                    peer.sendall(sent)
                except OSError as error:
                    answered[type(error).__name__] += 1
                    break
                held.append(peer)
            closed = set(select.select(held, [], [], 0.2)[0]) if held else set()
            for peer in closed:
                with contextlib.suppress(OSError):
                    answered["closed" if not peer.recv(1 << 16) else "answered"] += 1
                peer.close()
            held = [each for each in held if each not in closed]
            if time.monotonic() >= next_told:
                told.put({**answered, "held": len(held)})
                next_told += TELL_S

    return work


def unfinished(place: Target) -> bytes:
    """A frame of full size but for its last byte."""
    size = place.budgets.frame_bytes - 64
    return b"\x85\xa1v\x01\xa2id\x01\xa2op\xa5hello\xa4args\x80\xa3pad\xc6" + size.to_bytes(4, "big") + bytes(size - 1)


def unread(place: Target) -> bytes:
    """Questions with long answers, of which none is read."""
    return frame("transcript.replay", page(place)) * 20


def page(place: Target) -> dict[str, Any]:
    """The longest page of a conversation."""
    where = {"conversation_id": "c0"}
    return {"conversation": where, "view": "model_context", "limit": place.budgets.transcript_page_turns}


def silent(_place: Target) -> bytes:
    return b""


ATTACKS: dict[str, Attack] = {
    "batches": Attack(many(2, batches)),
    "long_queries": Attack(many(4, long_queries)),
    "verifications": Attack(many(8, verifications)),
    "commits": Attack(many(2, commits)),
    "masks": Attack(many(2, masks)),
    "decoded": Attack(many(2, decoded)),
    "replays": Attack(many(4, replays)),
    "churn": Attack(churn),
    "followers": Attack(followers),
    "names": Attack(names),
    "unfinished": Attack(hoard(unfinished)),
    "unread": Attack(hoard(unread)),
    "silent": Attack(hoard(silent), unknown=True),
    "unknown_names": Attack(names, unknown=True),
}
