"""A copy of a store as it is before it is migrated, so that there is a way back to the program that wrote it.

It is called `<store>.before-m-N`, with the schema's number N in 16 digits, and is to everybody what a store is that a
restore has set aside: `snapshot.list` shows it, reports of erasures count it, `snapshot.prune` removes it.
"""

from __future__ import annotations

import os
import shlex

import apsw

from beetle.store.engine import exchange
from beetle.store.engine.connection import StoreSettings

MARK = "m-"
MOST_CHARS = 400
"""Longest command of a hint: one that was cut would do something else."""
PAGES = 4096
"""Copied in one step: 16 MiB."""


def keep(connection: apsw.Connection, settings: StoreSettings, schema: int, spare: int) -> str:
    """Copy the store beside itself, unless the disk would be too full for the migration then; what was done, in words.

    Copies from before earlier migrations go: what is a way back leads one step.

    Args:
        spare: bytes that are to be left on the disk, beside as much again as the store takes.
    """
    path = settings.path
    folder = os.path.dirname(path) or "."
    used: int = connection.pragma("page_count") * connection.pragma("page_size")
    disk = os.statvfs(folder)
    if (free := disk.f_bavail * disk.f_frsize) < 2 * used + spare:
        return f"no copy was kept from before the migration: it takes {2 * used + spare} bytes, and the disk has {free}"
    name = f"{MARK}{schema:016}"
    part, kept = exchange.named(path, exchange.UNPACKING, name), exchange.named(path, exchange.BEFORE, name)
    try:
        _copy(connection, part)
        exchange.make_ready(part, kept)
        for each in copies(path):
            if each.path != kept:
                os.unlink(each.path)
    except OSError as error:
        return f"no copy was kept from before the migration: {error.strerror}"
    return f"the store as it was before the migration is kept as {kept}; `beetle snapshot prune --replaced` removes it"


def _copy(connection: apsw.Connection, part: str) -> None:
    if os.path.lexists(part):
        os.unlink(part)
    os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    target = apsw.Connection(part, flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        with target.backup("main", connection, "main") as backup:
            while not backup.done:
                backup.step(PAGES)
    finally:
        target.close()


def copies(path: str) -> list[exchange.Beside]:
    """The copies that stand beside a store, by their schema."""
    return [each for each in exchange.beside(path) if each.kind == exchange.BEFORE and each.id.startswith(MARK)]


def way_back(path: str, known: int) -> str:
    """What to do with a store of a newer schema to go on with a program that knows only `known`; empty where no copy
    is one that it can open."""
    fitting = [each for each in copies(path) if int(each.id.removeprefix(MARK)) <= known]
    if not fitting:
        return ""
    folder, name = os.path.split(path)
    here, store = shlex.quote(folder), shlex.quote(name)
    moves = f"mv {store} {store}.newer && rm -f {store}-wal {store}-shm && mv {store}.before-{fitting[-1].id} {store}"
    command = f"cd {here} && {moves}"
    if len(command) > MOST_CHARS:
        return "; or go back to the copy beside it, without what was written since: see `beetle help install`"
    return f"; or go back, without what was written since the migration: {command}"
