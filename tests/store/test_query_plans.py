"""How SQLite answers every query of the store: a change of plan is a change that someone has looked at.

`UPDATE_QUERY_PLANS=1 python -m pytest tests/store/test_query_plans.py` writes query_plans.txt anew.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import apsw

import beetle.store
from beetle.runtime.planes import table
from beetle.store import indexed
from tests.store.conftest import open_runtime, store_of

SNAPSHOT = Path(__file__).with_name("query_plans.txt")
LARGE = ("message", "turn", "body", "event_log", "fact", "fact_body", "fact_revision")
WHOLE: dict[str, str] = {
    "erased_since.FACTS_SQL": "a restore looks for every fact that was deleted",
    "plane_evidence.SPEAKERS_SQL": "verify looks through the whole store",
    "seal_checks.HAS_STRONG_SQL": "once, when a store gets its first identity",
    "restores.RESTORED_SQL": "verify looks through the whole store",
    "place_checks.TURNS_SQL": "verify looks through the whole store",
    "place_checks.EVENTS_SQL": "verify looks through the whole store",
    "plane_evidence.BODY_SQL": "verify compares every message with its body",
    "plane_evidence.CONTENTS_SQL": "verify reads every body",
    "plane_evidence.ASTRAY_SQL": "verify compares every message with its place in time",
    "plane_evidence.UNTAKEN_SQL": "verify looks at every turn",
    "plane_evidence.LENGTH_SQL": "verify looks at every body",
    "plane_evidence.COUNTERS_SQL": "verify counts every turn",
    "plane_evidence.ROWS_SQL": "verify counts every row",
    "plane_long_term.ROWS_SQL": "verify counts every row",
    "plane_evidence.EMPTY_TURNS_SQL": "verify looks at every turn",
    "turn_messages.MISPLACED_SQL": "verify looks at every turn",
    "message_times.MISTAKEN_SQL": "verify looks at every message",
    "turn_times.MISTAKEN_SQL": "verify looks at every turn",
    "turn_messages.OUTSIDE_SQL": "verify looks at every message",
    "indexed.every_row": "verify compares every message with the index",
    "plane_long_term.STANDS_SQL": "verify compares every fact with its last revision",
    "plane_long_term.CHAIN_SQL": "verify walks the revisions of every fact",
    "plane_long_term.HOLDS_SQL": "verify walks the revisions of every fact",
    "plane_long_term.TEXT_SQL": "verify compares every revision with its text",
    "plane_long_term.UNSHOWN_SQL": "verify looks at every text of a fact",
    "plane_chunks.STRAY_TAGS_SQL": "verify looks at every tag of a chunk",
    "plane_chunks.STRAY_BODIES_SQL": "verify looks at every body of a chunk",
    "plane_thoughts.PINS_SQL": "verify looks at what the event log tells of every chain",
    "toc.DAYS_SQL": "a rebuild and verify look at every message",
    "event_log.WALK_SQL": "verify walks the whole chain",
    "event_log.HEAD_SQL": "ends at the first row from the end",
}
"""Queries that may scan a large table, and why."""


def queries() -> Iterator[tuple[str, str]]:
    """Every SQL constant of the store, by module and name; a part of one that is no statement alone is left out."""
    found = [each.name for each in pkgutil.walk_packages(beetle.store.__path__, "beetle.store.") if not each.ispkg]
    for path in sorted(found, key=lambda each: each.rpartition(".")[2]):
        module, file = path.rpartition(".")[2], importlib.import_module(path)
        for name, value in sorted(vars(file).items()):
            if name.endswith("_SQLS"):
                yield from ((f"{module}.{name}[{place}]", sql) for place, sql in enumerate(value))
            elif name.endswith("_SQL") and isinstance(value, str) and _made_here(file, name):
                yield f"{module}.{name}", value

    for made in (indexed.search_between, indexed.rows_between, indexed.every_row, indexed.extra_rows):
        yield f"indexed.{made.__name__}", made(table.indexed_tables())


def _made_here(file: ModuleType, name: str) -> bool:
    return re.search(rf"^{name} = ", Path(str(file.__file__)).read_text(), re.MULTILINE) is not None


def plans(path: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    with open_runtime(path) as memory, store_of(memory).read() as tx:
        # The one update of a table behind the index is prepared with this off, and only that.
        tx.connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 0)
        for name, sql in queries():
            # A temporary table is there only while it is read.
            if sql.lstrip().upper().startswith(("PRAGMA", "CREATE")) or "temp." in sql:
                continue
            # The planner may read the values: none are given, as on a statement that is prepared once.
            numbered = max((int(n) for n in re.findall(r"\?(\d+)", sql)), default=0)
            values = (None,) * (numbered or sql.count("?"))
            rows = list(tx.rows(f"EXPLAIN QUERY PLAN {sql}", *values))
            depth = {0: -1}
            lines: list[str] = []
            for node, parent, _, text in rows:
                depth[node] = depth.get(parent, -1) + 1
                lines.append("  " * depth[node] + text)
            found[name] = lines or ["(no table is read)"]
    return found


def test_every_query_is_answered_as_it_was(path: str) -> None:
    text = "".join(f"{name}\n" + "".join(f"    {line}\n" for line in lines) for name, lines in plans(path).items())
    if os.environ.get("UPDATE_QUERY_PLANS"):
        SNAPSHOT.write_text(text)
    assert text == SNAPSHOT.read_text(), "plans changed; look at them, then run with UPDATE_QUERY_PLANS=1"


def test_no_query_reads_a_large_table_from_end_to_end(path: str) -> None:
    found = plans(path)
    assert len(found) > 50
    aliases = {"m": "message", "t": "turn", "b": "body", "e": "event_log", "f": "fact", "r": "fact_revision"}
    for name, lines in found.items():
        scanned = {
            aliases.get(table, table) for line in lines for table in re.findall(r"SCAN (\w+)(?! VIRTUAL)\b", line)
        }
        if name not in WHOLE:
            assert not scanned & set(LARGE), (name, lines)
    assert set(WHOLE) <= set(found), "an excuse for a query that is not there any more"
