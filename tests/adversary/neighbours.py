"""Other local users, many connections at a time."""

from __future__ import annotations

import socket
import struct
import subprocess
import sys
from contextlib import ExitStack

import msgpack

from beetle.runtime.host.config import Principal
from tests.transports.conftest import Peer
from tests.transports.serving import _peer_of

AGENT, READER, THIRD, STRANGER = 40_001, 40_002, 40_003, 54_321
PRINCIPALS = {
    name: Principal(uid=uid, owner_id=name, agent_id="a", capabilities=("transcript", "recall", "write", "inspect"))
    for name, uid in (("agent", AGENT), ("reader", READER), ("third", THIRD))
}
CONNECT_MANY = """
import os, socket, sys
uid, path, channel, count = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
os.setgroups([])
os.setgid(uid)
os.setuid(uid)
channel = socket.socket(fileno=channel)
for _ in range(count):
    peer = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    peer.connect(path)
    socket.send_fds(channel, [b"x"], [peer.fileno()])
    peer.close()
"""


def many_as(path: str, uid: int, count: int, stack: ExitStack) -> list[Peer]:
    """Connections that another user has made; closed with the stack."""
    mine, theirs = socket.socketpair()
    with mine, theirs:
        words = [sys.executable, "-ISc", CONNECT_MANY, str(uid), path, str(theirs.fileno()), str(count)]
        child = subprocess.Popen(words, pass_fds=[theirs.fileno()])
        peers = [
            stack.enter_context(_peer_of(socket.socket(fileno=socket.recv_fds(mine, 1, 1)[1][0]))) for _ in range(count)
        ]
        assert child.wait() == 0
    return peers


def told(peer: Peer, op: str = "hello", args: dict | None = None) -> str:
    """What a peer gets: `ok`, or the key of an error."""
    try:
        answer = peer.ask(op, args)
    except (BrokenPipeError, ConnectionResetError):
        answer = peer.answer()
    if answer["ok"]:
        return "ok"
    error = answer["error"]
    if error["key"] == "overloaded":
        assert error["retryable"] and error["hint"] and error["details"]["retry_after_ms"] > 0
    return error["key"]


def unfinished(size: int) -> bytes:
    """The first `size` bytes of a frame that lacks one."""
    head = b"\x84\xa1v\x01\xa2id\x01\xa2op\xa5hello\xa4args\x81\xa1x\xc6"
    return head + struct.pack(">I", size + 1 - len(head) - 4) + bytes(size - len(head) - 4)


def frame(op: str, args: dict, **more: object) -> bytes:
    """One request."""
    return msgpack.packb({"v": 1, "id": 1, "op": op, "args": args, **more})
