"""Shared by the tests of the identity and the private plane: spoiled key files, and material kept without a door."""

from __future__ import annotations

import base64
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from beetle import MemoryRuntime
from beetle.runtime.host.identity import Identity
from beetle.runtime.pipeline.dispatcher import Dispatcher
from beetle.runtime.pipeline.invocation import Call, Invocation
from beetle.runtime.planes import sealed_items
from beetle.store import evidence
from beetle.store.engine.presence import KEY_FILE
from tests.store.conftest import store_of

CANARY = "heliotrope-7431"


def key_file(store: str | Path) -> Path:
    return Path(f"{os.fspath(store)}{KEY_FILE}")


def line(secret: bytes) -> bytes:
    return b"beetle-identity 1 " + base64.urlsafe_b64encode(secret).rstrip(b"=") + b"\n"


def write_key(place: Path, data: bytes, mode: int = 0o600) -> None:
    place.write_bytes(data)
    place.chmod(mode)


def dispatcher_of(memory: MemoryRuntime) -> Dispatcher:
    return memory._opened._opened.dispatcher


def identity_of(memory: MemoryRuntime) -> Identity:
    return memory._opened._opened.identity


def invocation_of(memory: MemoryRuntime) -> Invocation:
    """What a handler of a write is given, for the owner of this runtime."""
    embedded = memory._opened
    _, invocation = dispatcher_of(memory)._authorize(
        Call("memory.write", None, embedded._caller._replace(owner_id=None), embedded._scope)
    )
    return invocation


def keep(memory: MemoryRuntime, content: str, plane: str = "private_garden", **more: Any) -> str:
    """Keep a text in the private plane, as governance does; its record id."""
    invocation = invocation_of(memory)
    given: dict[str, Any] = {
        "plane": plane,
        "privacy": "soul_private" if plane == "soul_candidate" else "subject_private",
        "authority": "user_asserted",
        "candidate_id": "cand-1",
        **more,
    }
    words = sealed_items.Words(content=content, **given)
    return store_of(memory).write(
        lambda tx: sealed_items.keep(invocation, tx, evidence.ensure_space(tx, invocation.space_id, tx.now), words)
    )


def _link(place: Path) -> None:
    elsewhere = place.with_name("elsewhere")
    place.rename(elsewhere)
    place.symlink_to(elsewhere)


def _dead_link(place: Path) -> None:
    place.unlink()
    place.symlink_to(place.with_name("nowhere"))


def _folder(place: Path) -> None:
    place.unlink()
    place.mkdir()


def _pipe(place: Path) -> None:
    place.unlink()
    os.mkfifo(place, 0o600)


SPOILED: dict[str, tuple[str, Callable[[Path], None]]] = {
    "missing": ("missing", Path.unlink),
    "wrong": ("wrong", lambda place: write_key(place, line(os.urandom(32)))),
    "readable by the group": ("exposed", lambda place: place.chmod(0o640)),
    "readable by all": ("exposed", lambda place: place.chmod(0o604)),
    "writable by the group": ("exposed", lambda place: place.chmod(0o620)),
    "truncated": ("broken", lambda place: os.truncate(place, place.stat().st_size - 5)),
    "empty": ("broken", lambda place: os.truncate(place, 0)),
    "something behind": ("broken", lambda place: place.write_bytes(place.read_bytes() + b"and more\n")),
    "endless": ("broken", lambda place: os.truncate(place, 2**20)),
    "of another version": ("broken", lambda place: write_key(place, line(os.urandom(32)).replace(b" 1 ", b" 2 "))),
    "a symlink": ("broken", _link),
    "a dead symlink": ("broken", _dead_link),
    "a folder": ("broken", _folder),
    "a pipe": ("broken", _pipe),
}
"""How a key file is spoiled, and the state that it then is in."""
