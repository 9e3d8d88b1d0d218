"""The socket: the decoder of frames, and a connection with a real dispatcher behind it."""

from __future__ import annotations

import socket
import zlib
from pathlib import Path
from random import Random
from typing import Any

import msgpack

from beetle.contracts.errors import InvalidFrame, PayloadTooLarge
from beetle.transports.frames import Frame, FrameLimits, FrameReader
from tests.cases import CASES
from tests.fuzz.contract import Broken, check_key, refusal_of
from tests.fuzz.mutation import changed_bytes, changed_value
from tests.fuzz.targets.serving import Server
from tests.fuzz.targets.target import Target

LIMITS = FrameLimits(262_144, 16)
NOT_ASKED = ("transport.update", "memory.close", "snapshot.restore")
"""Seeds that end the server or put another store in its place: each input behind one would need another server."""


class Frames(Target):
    most_bytes = 8_192
    tokens = (
        b"\x80", b"\x81", b"\xde\x00\x10", b"\xdf\xff\xff\xff\xff", b"\xdc\xff\xff", b"\xa0", b"\xd9\x05", b"\xc1",
        b"\xc4\x01", b"\xcf" + b"\xff" * 8, b"\xcb\x7f\xf8" + b"\0" * 6, b"\xd6\xff\0\0\0\0", b"\xc7\x0c\xff",
        b"\xa3\xed\xa0\x80", b"\xa5scope", b"\xa4auth", b"\xabdeadline_ms\x01",
    )  # fmt: skip

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._server = Server()

    def __call__(self, data: bytes) -> None:
        whole = _read(data, len(data) or 1)
        if whole != _read(data, 1 + zlib.crc32(data) % 61):
            raise Broken("the frames of a stream depend on how it is cut")
        self._server.look(self._said(data))

    def _said(self, data: bytes) -> list[str | None]:
        """The keys of the errors that a connection answers with; None for a report."""
        peer, unpacker = self._server.served.peer().socket, msgpack.Unpacker(strict_map_key=False)
        try:
            peer.sendall(data)
            peer.shutdown(socket.SHUT_WR)
            while answered := peer.recv(65_536):
                unpacker.feed(answered)
        except (BrokenPipeError, ConnectionResetError):
            pass  # it has closed before it read everything
        finally:
            peer.close()
        errors: list[str | None] = []
        for answer in unpacker:
            if answer.get("v") != 1:
                raise Broken(f"an answer of another protocol: {answer}")
            if "sub" not in answer:
                error = answer.get("error")
                errors.append(None if answer["ok"] else error["key"])
                if error is not None:
                    check_key(error["key"], f"{error['key']}: {error['message']}")
        return errors

    def seeds(self) -> list[bytes]:
        cases = [each for each in CASES if each.op not in NOT_ASKED]
        frames = [_frame(each.op, self._server.request(each)) for each in cases]
        wrong = [_frame(each.op, args) for each in cases for args, _ in each.wrong[:2]]
        batch = {"requests": [{"op": each.op, "args": self._server.request(each)} for each in cases[:3]]}
        return [
            *(each for each in (*frames, *wrong) if each is not None and len(each) <= self.most_bytes),
            b"".join(each for each in frames[:3] if each),
            *filter(None, (_frame("batch", batch), _frame("subscribe", {"topics": ["transcript", "job"]}))),
        ]

    def changed(self, dice: Random, data: bytes) -> bytes:
        """A request with another value in it; or a token of MessagePack where none belongs."""
        try:
            requests = list(msgpack.Unpacker(_Bytes(data), raw=False))
            if dice.random() < 0.25 or not requests:
                return changed_bytes(dice, data, self.tokens)
            at = dice.randrange(len(requests))
            requests[at] = changed_value(dice, requests[at], known=(self._server.got["chunk"]["chunk"]["id"],))
            return b"".join(msgpack.packb(each, default=repr) for each in requests)
        except (ValueError, msgpack.UnpackException, OverflowError, TypeError, RecursionError):
            return changed_bytes(dice, data, self.tokens)

    def renew(self) -> None:
        self._server.renew()

    def close(self) -> None:
        self._server.close()


class _Bytes:
    def __init__(self, data: bytes) -> None:
        self._data = data

    def read(self, size: int) -> bytes:
        found, self._data = self._data[:size], self._data[size:]
        return found


def _frame(op: str, args: Any, **more: Any) -> bytes | None:
    try:
        return msgpack.packb({"v": 1, "id": 1, "op": op, "args": args, **more})
    except (OverflowError, ValueError, TypeError):
        return None  # a case that no encoder writes


def _read(data: bytes, size: int) -> tuple[list[Frame], str | None]:
    reader, frames = FrameReader(LIMITS), list[Frame]()

    def read() -> None:
        for at in range(0, len(data), size):
            reader.feed(data[at : at + size])
            while (frame := reader.next_frame()) is not None:
                frames.append(frame)

    error = refusal_of(read)
    if error is not None and not isinstance(error, InvalidFrame | PayloadTooLarge):
        raise Broken(f"the decoder answers {error.key}")
    return frames, None if error is None else error.key
