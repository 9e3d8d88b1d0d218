"""The lines of a chain's mirror: made of the store, and found again in a file. Loaded when the first is written."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable
from typing import Any

from beetle.domain.chains import ledger
from beetle.named_tuple import NamedTuple
from beetle.runtime.host.chain_mirrors import OWN
from beetle.runtime.host.thought_values import body_of, thought_of
from beetle.store import chains, evidence, thoughts
from beetle.store.chains import JSONL, ChainRow, Segment
from beetle.store.engine.transaction import Reading
from beetle.store.thoughts import ThoughtRow

AT_ONCE = 500
"""Thoughts that are read and written in one go."""
BLOCK_BYTES = 2**20
TAIL_BYTES = 4 * 2**20
"""The last line of a mirror is looked for in so many bytes; a longer one is written anew with all others."""
FIRST = ("index", "timestamp", "thought_type", "role", "agent_id", "content", "tags", "concepts")
"""What stands first in a line, for who reads it."""


class Written(NamedTuple):
    """A mirror as it was left: its bytes, and how many thoughts it has."""

    size: int
    length: int


class Next(NamedTuple):
    """What comes behind `written` in a mirror: its bytes, how many thoughts they are, and how many the chain has."""

    written: Written
    data: bytes
    added: int
    length: int


def next_lines(tx: Reading, name: tuple[str, str], path: str, written: Written | None) -> Next | None:
    """What is to be written next to a chain's mirror, from its beginning where the file is not as it was left.

    Args:
        name: memory_space_id and chain_key.
        written: as this process has left it; None when it has not written it.

    Returns:
        None where the chain has no mirror.
    """
    row = chains.find(tx, evidence.find_space(tx, name[0]), name[1])
    if row is None or row.adapter != JSONL:
        return None
    line = chains.segments(tx, row.chain)
    if written is None:
        end = _end_of(path)
        last = None if end is None else thoughts.at(tx, line, end[0].length - 1)
        fits = end is not None and last is not None and last.hash.hex() == end[1]
        written = end[0] if end is not None and fits else Written(0, 0)
    elif written.size != _size(path) or written.length > row.length:
        written = Written(0, 0)
    return Next(written, *_lines(tx, line, row, written.length), row.length)


def line_of(row: ThoughtRow) -> bytes:
    """A thought as it is exported, without what the registry of now says of its writer."""
    fields = ledger.hashed_fields(thought_of(row))
    body = None if row.mark == "masked" else body_of(row)
    said: dict[str, Any] = dict.fromkeys(ledger.BODY_FIELDS) if body is None else ledger.body_fields(body)
    whole: dict[str, Any] = {**fields, **said, "hash": row.hash.hex(), "state": row.mark or "live"}
    whole = {**{name: whole[name] for name in FIRST}, **whole}
    return json.dumps(whole, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _lines(tx: Reading, line: Iterable[Segment], row: ChainRow, first: int) -> tuple[bytes, int]:
    """The next thoughts from a place on, and how many they are."""
    until, made = min(row.length, first + AT_ONCE), list[bytes]()
    for each in line:
        part = Segment(each.chain, max(first, each.first), min(until, each.until))
        if part.first < part.until:
            made += map(line_of, thoughts.between(tx, part, backwards=False))
    return b"".join(made), len(made)


def _end_of(path: str) -> tuple[Written, str] | None:
    """How long a mirror is and the hash of its last thought; None where a line of it is missing."""
    try:
        file = os.open(path, os.O_RDONLY | OWN)
    except OSError:
        return None
    with open(file, "rb") as stream:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode):
            return None
        counted, tail = 0, b""
        while block := stream.read(BLOCK_BYTES):
            counted += block.count(b"\n")
            tail = (tail + block)[-TAIL_BYTES:]
    if not tail.endswith(b"\n"):
        return None
    try:
        last = json.loads(tail[tail.rfind(b"\n", 0, -1) + 1 :])
        return (Written(found.st_size, counted), str(last["hash"])) if last["index"] == counted - 1 else None
    except (ValueError, KeyError, TypeError):
        return None


def _size(path: str) -> int | None:
    try:
        return os.lstat(path).st_size
    except OSError:
        return None
