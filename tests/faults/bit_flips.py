"""One bit of a store's file is another: it is found and named, and all that is intact is brought into a new store.

`python -m tests.faults.bit_flips [--flips all|N] [--each N] [--kind KIND] [--seed S]` flips one bit at random in every
page of a store that has pages of every kind, or in N pages of each kind, and prints a line for each kind: pages tried,
flips that were found, flips that changed nothing that anybody reads, and how much of the rows the repair has saved.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import apsw

from beetle.contracts.common import MemoryIdentity, MemoryScope
from beetle.contracts.errors import BeetleError
from beetle.open import open_embedded
from beetle.repairing import repair_closed
from beetle.store.engine.connection import PAGE_SIZE
from tests.building import step, talk, turn
from tests.cases import PREPARATIONS, WORD, Prepared
from tests.conformance.doors import InProcess

OWNER = "owner-one"
PROFILE = "dev-full"
HEADER = "header"
KINDS = (HEADER, "schema", "interior", "leaf", "overflow", "freelist", "index", "recall index")
PAGES_SQL = "SELECT pageno, name, pagetype FROM dbstat WHERE aggregate = FALSE"
TABLES_SQL = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT GLOB 'recall_index*' ORDER BY name"
BY_BEETLE = frozenset({"meta", "table_seal", "row_seal", "log_head", "event_log", "event_place", "pending_erasure"})
"""Tables in which the daemon itself writes when it opens, repairs and closes."""
Rows = dict[str, set[str]]


class Flip(NamedTuple):
    """What became of one: whether it was found, the rows that there were, and those that are there as they were."""

    found: bool
    rows: int
    saved: int


class Untold(AssertionError):
    """Something is gone or altered, and nobody says so."""


def make(folder: Path) -> Path:
    """A store with everything in it, closed."""
    door = InProcess(OWNER, folder / "b.db", PROFILE)
    got = Prepared(door.prepare)
    for name in PREPARATIONS:
        with suppress(BeetleError):
            got[name]
    for number in range(12):
        short = [turn(f"s{number}-{place}", f"the {WORD} says {number} {place} " * 9) for place in range(8)]
        door.call("transcript.commit", talk(*short, turn(f"l{number}", f"long {number} " * 900)))
    door.call("transcript.lifecycle", step("delete_raw", *(f"l{number}" for number in range(6))))
    door.close()
    shutil.rmtree(folder / "b.db.snapshots")
    return folder / "b.db"


def pages(store: Path) -> dict[str, list[int]]:
    """The pages of each kind; the header is the first page's first 100 bytes."""
    found: dict[str, list[int]] = defaultdict(list, {HEADER: [1]})
    connection = apsw.Connection(str(store), flags=apsw.SQLITE_OPEN_READONLY)
    indexes = {row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'index'")}
    known = set()
    for page, name, kind in connection.execute(PAGES_SQL):
        known.add(page)
        told = "schema" if name == "sqlite_schema" else "recall index" if name.startswith("recall_index") else ""
        told = told or ("index" if name in indexes else {"internal": "interior"}.get(kind, kind))
        found[told].append(page)
    found["freelist"] = sorted(set(range(1, connection.pragma("page_count") + 1)) - known)
    connection.close()
    return found


def rows_of(store: Path) -> Rows:
    """Every row of every table, as text."""
    connection = apsw.Connection(str(store), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        names = [name for (name,) in connection.execute(TABLES_SQL) if name not in BY_BEETLE]
        return {name: {repr(row) for row in connection.execute(f'SELECT * FROM "{name}"')} for name in names}
    finally:
        connection.close()


def flip(store: Path, page: int, bit: int, before: Rows, folder: Path) -> Flip:
    """Flip one bit in a copy; look, repair, and look again.

    Raises:
        Untold: what was not found is not there either, or what the repair could not save is told nowhere.
    """
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(store.parent, folder)
    copy = folder / store.name
    damaged = bytearray(copy.read_bytes())
    damaged[(page - 1) * PAGE_SIZE + bit // 8] ^= 1 << bit % 8
    copy.write_bytes(damaged)
    total = sum(len(each) for each in before.values())
    if not is_found(copy):
        if rows_of(copy) != before:
            raise Untold(f"page {page}, bit {bit}: not found, and rows differ")
        return Flip(False, total, total)
    copy.write_bytes(damaged)
    for rest in ("-wal", "-shm"):
        Path(f"{copy}{rest}").unlink(missing_ok=True)
    how = {"identity": MemoryIdentity(owner_id=OWNER), "scope": MemoryScope(), "transport": "cli"}
    done = repair_closed(str(copy), lambda: open_embedded(store=str(copy), profile=PROFILE, backend=None, **how))
    assert done.kept_as is not None and Path(done.kept_as).read_bytes() == bytes(damaged)
    after = rows_of(copy)
    same = {name: rows & after.get(name, set()) for name, rows in before.items()}
    saved = sum(len(each) for each in same.values())
    if (saved < total or after != before) and done.whole and done.clean:
        raise Untold(f"page {page}, bit {bit}: rows differ, and neither the repair nor a verification says so")
    return Flip(True, total, saved)


def is_found(store: Path) -> bool:
    """Whether an opening refuses the store, or a verification names what is wrong."""
    try:
        door = InProcess(OWNER, store, PROFILE)
    except BeetleError as error:
        assert error.key in ("store_corrupt", "schema_mismatch"), error
        return True
    try:
        return not door.call("store.verify", {})["clean"]
    except BeetleError as error:
        assert error.key == "store_corrupt", error
        return True
    finally:
        door.close()


def bits(kind: str, page: int, chance: random.Random) -> int:
    """One bit of a page; of two flips one is where the page says what it holds."""
    if kind == HEADER:
        return chance.randrange(100 * 8)
    first = 100 if page == 1 else 0
    return chance.randrange(first * 8, (first + 48 if chance.random() < 0.5 else PAGE_SIZE) * 8)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--flips", default="all", help="of each kind: a number, or all, one in every page (default)")
    parser.add_argument("--each", type=int, default=1, help="with all: flips in every page, one after the other")
    parser.add_argument("--kind", choices=KINDS)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    chance, untold = random.Random(asked.seed), 0
    print(f"{'kind':14} {'pages':>6} {'flips':>6} {'found':>6} {'unread':>6} {'rows saved':>11} {'worst':>8}")
    with tempfile.TemporaryDirectory() as root:
        Path(root, "store").mkdir()
        store = make(Path(root, "store"))
        before, kinds = rows_of(store), pages(store)
        for kind in [asked.kind] if asked.kind else KINDS:
            every = asked.flips == "all"
            chosen = kinds[kind] * asked.each if every else chance.choices(kinds[kind], k=int(asked.flips))
            done: list[Flip] = []
            for page in chosen:
                bit = bits(kind, page, chance)
                try:
                    done.append(flip(store, page, bit, before, Path(root, "flipped")))
                except (Untold, BeetleError) as error:
                    untold += 1
                    print(f"  {kind}, page {page}, bit {bit}: {type(error).__name__}: {error}")
            found = [each for each in done if each.found]
            share = sum(each.saved for each in found) / max(1, sum(each.rows for each in found)) if found else 1.0
            worst = min((each.saved / each.rows for each in found), default=1.0)
            print(
                f"{kind:14} {len(kinds[kind]):6} {len(chosen):6} {len(found):6} {len(done) - len(found):6}"
                f" {share:10.3%} {worst:8.2%}",
                flush=True,
            )
    return 1 if untold else 0


if __name__ == "__main__":
    sys.exit(main())
