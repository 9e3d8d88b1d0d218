"""Clients that ask for the largest lists and read no answer do not take the compact profile past its memory."""

from __future__ import annotations

from contextlib import ExitStack, suppress

import msgpack
import pytest

from beetle.runtime.host.profile import load_profile
from tests.building import candidate, candidates, talk, turn
from tests.running import Daemon, memory_peak_mib
from tests.transports.conftest import Peer
from tests.transports.serving import open_folder, until

PROFILE = load_profile("compact")
CEILING_MIB, ROOM = PROFILE.memory_ceiling_mib, PROFILE.budgets.answer_bytes
CLIENTS = 10
HOST = {"conversation": {"conversation_id": "talk"}, "view": "host_ui"}
LARGEST = (
    ("long_term.list", {"limit": 100}),
    ("transcript.replay", {**HOST, "limit": 20}),
    ("memory.replay", {"chat_id": "talk", "limit": 20}),
    ("memory.recall", {"query": "lamp", "limit": 20}),
    ("transcript.conversations", {"limit": 100}),
    ("chunk.list", {"limit": 100}),
    ("chunk.recall", {"query": "lamp"}),
    ("chunk.recall", {"query": "lampadaries"}),
    ("chunk.reason", {"query": "lamp"}),
)
FACTS, TURNS, WORDS = 100, 20, "lamp " * 12_000


def fill(peer: Peer) -> str:
    """A page of everything at its largest; the ref of a fact with a long history."""
    refs: list[str] = []
    for n in range(FACTS):
        given = candidate(f"c{n}", f"{n} {WORDS}", topic=f"topic {n}")
        refs += [each["ref"] for each in asked(peer, "memory.write", candidates(given))["outcomes"]]
        asked(peer, "chunk.create", {"content": f"I prefer {n} {WORDS}", "conversation_id": f"c{n}", "tags": ["t"]})
    for n in range(TURNS):
        few = [f"{m} {WORDS}" for m in range(3)]
        many = [{"message_id": f"{n} {m} {'i' * 240}", "role": "user", "content": ""} for m in range(500)]
        asked(peer, "transcript.commit", talk(turn(f"t{n}", *few)))
        asked(peer, "transcript.commit", talk(turn(f"m{n}", *many)))
        asked(
            peer,
            "long_term.mutate",
            {"action": "correct", "ref": refs[0], "content": f"new {n} {WORDS}", "reason": "seen"},
        )
    return refs[0]


def asked(peer: Peer, op: str, args: object) -> dict:
    answer = peer.ask(op, args)
    assert answer["ok"], answer
    return answer["report"]


@pytest.mark.slow
def test_lists_that_nobody_reads_stay_under_the_ceiling() -> None:
    with open_folder() as folder, ExitStack() as stack:
        with Daemon(profile="compact", folder=str(folder)) as daemon, Peer(daemon.socket) as peer:
            fact = fill(peer)
        # Another process, whose peak is that of the lists alone.
        daemon = stack.enter_context(Daemon(profile="compact", folder=str(folder)))
        operator = stack.enter_context(Peer(daemon.socket))
        lists = [*LARGEST, ("long_term.detail", {"ref": fact, "history": True})]
        for op, args in lists:
            assert len(msgpack.packb(asked(operator, op, args))) < ROOM * 5 // 4, op
        clients = [stack.enter_context(Peer(daemon.socket)) for _ in range(CLIENTS)]
        for n in range(CLIENTS * 2):
            for place, client in enumerate(clients):
                op, args = lists[(n + place) % len(lists)]
                with suppress(BrokenPipeError, ConnectionResetError):
                    client.send(msgpack.packb({"v": 1, "id": n, "op": op, "args": args}))

        def begun() -> bool:
            answer = operator.ask("console.overview")
            if not answer["ok"]:  # of the same user as those who hold all that there is
                assert answer["error"]["key"] == "overloaded"
                return False
            found = {each["operation"] for each in answer["report"]["metrics"]["operations"]}
            return found >= {op for op, _ in lists}

        for client in clients:  # as each goes, there is room for what the others asked for
            client.close()
        until(begun, "every list was asked for")
        assert memory_peak_mib(daemon.pid) < CEILING_MIB
