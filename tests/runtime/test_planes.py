"""A plane is one file: whoever has to do with planes walks the list, and knows none of them by name."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from beetle import MemoryRuntime
from beetle.contracts.memory import RecallHit
from beetle.contracts.names import INDEX_CODES, PLANE_NAMES
from beetle.contracts.refs import Ref
from beetle.contracts.transcript_repair import Problem
from beetle.domain.lexical import ParsedQuery
from beetle.domain.projection import Item
from beetle.domain.ranking import Candidate, Ranked
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.planes import table
from beetle.runtime.planes.forgetting import Forgetting, Forgotten, Gone, Kind, Known
from beetle.runtime.planes.gathering import Gathering
from beetle.runtime.planes.plane import (
    Asked,
    Erased,
    Exported,
    Indexed,
    IndexRow,
    Loaded,
    Named,
    Plane,
    Projected,
    Recall,
    Search,
    Texts,
    Verified,
)
from beetle.store import private, recall_index
from beetle.store.engine.transaction import Reading, Writing
from beetle.store.engine.write_transaction import WriteTransaction
from beetle.store.indexed import IndexedText, IndexTable
from beetle.store.recall_index import Entry
from beetle.store.sight import Sight
from beetle.store.verify import Finding
from tests.store.conftest import assert_clean, commit, found, lifecycle, open_runtime, store_of, turn, write_skill

KEY = 7
NOTE = "the okapi sleeps in the orchard"
REF = "chunks:7"
CODE = INDEX_CODES["chunks"]
TABLES = (IndexTable("chunks", f"SELECT {KEY} << 4 | {CODE} AS row", f"d.id >> 4 = {KEY}", f"hit.rowid >> 4 = {KEY}"),)
ROOT = Path(__file__).parents[2]


class Toy:
    """A plane with one record, in the index like any other; it counts how often each of its parts was asked. Names and
    codes stand in the contract: it takes those of chunks, and their place.
    """

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()

    def plane(self) -> Plane:
        return Plane(
            "chunks",
            recall=Recall("chunks", TABLES, self.load, self.hit, self.open_to),
            projected=Projected(35, "notes", {"normal": 5, "elevated": 5, "critical": 0}, self.items, "Notes."),
            indexed=Indexed(
                TABLES, self.missing, self.rows, Texts("indexed_notes", self.texts, self.is_sound), self.removable
            ),
            verified=Verified(
                self.counted, {"notes": self.check}, links=self.links, opened={"sealed_notes": self.opened}
            ),
            named=Named(("chunks",), self.problem, self.resolves),
            erased=Erased(self.holds, self.erase),
            forgotten=Forgotten(25, self.select, (self.note,)),
            exported=Exported(25, self.gather),
            counts=self.counts,
        )

    def open_to(self, context: Invocation, search: Search) -> bool:
        del context, search
        self.asked["open_to"] += 1
        return True

    def load(self, asked: Asked) -> Loaded:
        self.asked["load"] += 1
        made = [
            Candidate(plane="chunks", source_id=str(key), text=NOTE, at_us=0, bm25=score)
            for key, score in asked.scores("chunks").items()
        ]
        return Loaded(made, {str(KEY): NOTE})

    def hit(self, ranked: Ranked, record: Any, parsed: ParsedQuery) -> RecallHit:
        del parsed
        self.asked["hit"] += 1
        return RecallHit(plane="chunks", ref=REF, score=ranked.score, excerpt=record, why=ranked.why)

    def items(self, context: Invocation, tx: Reading, space: int | None, hits: tuple[RecallHit, ...]) -> list[Item]:
        del context, tx, space
        self.asked["items"] += 1
        return [Item(hit.ref, NOTE) for hit in hits]

    def row(self) -> IndexRow:
        return Entry("chunks", KEY, 1, None, "shared"), (NOTE, "", "")

    def missing(self, tx: Reading, after: int, limit: int) -> list[int]:
        del limit
        self.asked["missing"] += 1
        return [] if after >= KEY or recall_index.holds(tx, self.row()[0]) else [KEY]

    def rows(self, key: bytes, tx: Reading, record: int) -> list[IndexRow] | None:
        del key, tx, record
        self.asked["rows"] += 1
        return [self.row()]

    def texts(self, tx: Reading, after: int, limit: int) -> list[IndexedText]:
        del limit
        self.asked["texts"] += 1
        return [IndexedText(KEY, NOTE, b"")] if after < KEY and recall_index.holds(tx, self.row()[0]) else []

    def is_sound(self, key: bytes, text: IndexedText) -> bool:
        del key
        self.asked["is_sound"] += 1
        return text.content == NOTE

    def removable(self, key: bytes, tx: Reading, record: int) -> IndexRow | None:
        del key, tx, record
        return self.row()

    def counted(self, tx: Reading) -> dict[str, int]:
        del tx
        return {"notes": 1}

    def check(self, tx: Reading) -> Iterator[Finding]:
        del tx
        self.asked["check"] += 1
        yield Finding("chunks", "note 7", "is a toy")

    def links(self, tx: Reading) -> Iterable[Finding]:
        del tx
        return (Finding("derived_refs", "row 7", "is a toy's"),)

    def opened(self, context: Invocation, tx: Reading) -> tuple[int, list[Finding]]:
        del context, tx
        return 3, [Finding("chunks", "note 7", "does not open")]

    def problem(self, tx: Reading, space: int, derived: str) -> Problem | None:
        del tx, space
        self.asked[f"problem {derived}"] += 1
        return "record_gone"

    def resolves(self, context: Invocation, tx: Reading, space: int, ref: Ref) -> bool | None:
        del context, tx, space
        self.asked[f"resolves {ref}"] += 1
        return True

    def holds(self, tx: Reading, turn: int) -> bool:
        del tx, turn
        self.asked["holds"] += 1
        return True

    def erase(self, tx: Writing, turn: int, messages: Iterable[int]) -> None:
        del tx, turn
        self.asked["erase"] += len(list(messages))

    @property
    def note(self) -> Kind:
        return Kind("note", "notes", 55, self.known_note, self.erase_note)

    def select(self, asked: Forgetting) -> None:
        self.asked[f"select {sorted(asked.turns)}"] += 1
        if asked.request.whole_space or asked.words.are_in(NOTE):
            asked.found.add(self.note, KEY, Known(("note 7",)))

    def known_note(self, context: Invocation, tx: Reading, space: int, key: int) -> Known | None:
        del context, tx, space
        self.asked["known"] += 1
        return Known(("note 7",)) if key == KEY else None

    def erase_note(
        self, context: Invocation, tx: WriteTransaction, space: int, key: int, authority: str
    ) -> Gone | None:
        del context, tx
        self.asked[f"forget {space} {key} {authority}"] += 1
        return Gone([b"digest of the note"])

    def gather(self, gathering: Gathering, space: int) -> dict[str, Any]:
        del space
        gathering.leave_out("notes")
        return {}

    def counts(self, tx: Reading, space: int | None, sight: Sight) -> dict[str, int]:
        del tx, space
        return {"waiting_candidates": 77, "chunks": 0, "archived_chunks": 0}


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> Toy:
    made = Toy()
    monkeypatch.setattr(table, "PLANES", (*(each for each in table.PLANES if each.name != "chunks"), made.plane()))
    return made


@pytest.fixture
def memory(toy: Toy, tmp_path: Path) -> Iterator[MemoryRuntime]:
    del toy
    with open_runtime(tmp_path / "b.db") as opened:
        commit(opened, turn("t1", "a lamp in the garden"))
        yield opened


def test_verify_and_recover_keep_its_rows_of_the_index(toy: Toy, memory: MemoryRuntime) -> None:
    before = memory.verify_store()
    assert [(each.check, each.problem) for each in before.findings] == [
        ("chunks", "is a toy"),
        ("derived_refs", "is a toy's"),
        ("recall_index", "is missing from the index"),
        ("chunks", "does not open"),
    ]
    assert before.checked["notes"] == 1 and before.checked["sealed_notes"] == 3
    steps = {each.step: each for each in memory.recover().steps}
    assert steps["recall_index"].count == 1 and toy.asked["rows"] == 1
    assert "recall_index" not in {each.check for each in memory.verify_store().findings}
    memory.recover()
    assert toy.asked["is_sound"] == 1 and toy.asked["rows"] == 3, "once to be added, and compared by each that looks"


def test_recall_and_projection_find_it(toy: Toy, memory: MemoryRuntime) -> None:
    memory.recover()
    report = memory.recall(query="okapi orchard")
    assert [each.ref for each in report.hits] == [REF] == [each.ref for each in report.chunks]
    assert report.evidence == () and report.working_recall.planes[-1] == "chunks"
    assert [
        each.ref for each in memory.recall(query="okapi", planes=["chunks"], until="2099-01-01T00:00:00Z").hits
    ] == [REF]
    asked = toy.asked["load"]
    assert memory.recall(query="okapi", planes=["evidence"]).hits == () and toy.asked["load"] == asked
    block = memory.project(user_query="okapi", system_max_len=2000)
    assert '<notes note="Notes.">' in (block.system_memory_block or "") and NOTE in (block.system_memory_block or "")
    assert [each.name for each in block.sections].index("notes") == 3
    assert block.audit.source_planes[0] == "chunks"


def test_inspection_export_and_citations_ask_it(toy: Toy, memory: MemoryRuntime) -> None:
    assert memory.inspect().counts.waiting_candidates == 77
    assert memory.export_space().left_out["notes"] == 1
    write_skill(memory, "tea", "boil the kettle", citations=[REF])
    (cited,) = memory.get_runtime_skill(name="tea").citations
    assert cited.resolves is True and toy.asked[f"resolves {REF}"] == 1


def test_erasure_and_repair_ask_it(toy: Toy, memory: MemoryRuntime) -> None:
    lifecycle(memory, "delete_raw", "t1")
    assert toy.asked["erase"] == 1 and not found(memory, "lamp")
    # Nothing else holds content of the turn by now.
    assert lifecycle(memory, "delete_raw", "t1").changed and toy.asked["erase"] == 2 and toy.asked["holds"] == 1
    store_of(memory).write(lambda tx: private.add_derived_ref(tx, 1, REF, "local", 1))
    (issue,) = memory.repair_transcript().issues
    assert issue.problem == "record_gone" and issue.derived == REF and toy.asked[f"problem {REF}"] == 1


def test_forgetting_selects_and_erases_its_records(toy: Toy, memory: MemoryRuntime) -> None:
    assert "notes" not in memory.forget(query="lamp", dry_run=True).counts and toy.asked["select [1]"] == 1
    shown = memory.forget(query="okapi", dry_run=True)
    assert shown.counts == {"notes": 1} and toy.asked["select []"] == 1
    done = memory.forget(query="okapi", token=shown.token)
    assert done.counts == {"notes": 1} and done.receipt is not None
    assert {name: times for name, times in toy.asked.items() if name.startswith("forget")} == {"forget 1 7 operator": 1}


def test_without_it_nothing_is_left_of_it(tmp_path: Path) -> None:
    with open_runtime(tmp_path / "b.db") as memory:
        commit(memory, turn("t1", "a lamp in the garden"))
        assert_clean(memory)
        assert memory.recall(query="okapi").hits == ()


def test_the_list_holds_each_plane_once_and_names_only_known_ones() -> None:
    recalled = [plane.name for plane in table.PLANES if plane.recall is not None]
    assert len({plane.name for plane in table.PLANES}) == len(table.PLANES)
    assert set(recalled) <= set(PLANE_NAMES)
    codes = [each.code for each in table.indexed_tables()]
    assert sorted(codes) == sorted(INDEX_CODES.values()) and len(set(codes)) == len(codes)
    for by_place in (
        [p.projected for p in table.PLANES], [p.exported for p in table.PLANES], [p.forgotten for p in table.PLANES],
        [kind for p in table.PLANES if p.forgotten is not None for kind in p.forgotten.kinds],
    ):  # fmt: skip
        places = [each.place for each in by_place if each is not None]
        assert len(set(places)) == len(places)


ELSEWHERE = {"beetle/contracts/names.py", "beetle/contracts/refs.py", "beetle/store", "beetle/runtime/planes"}
"""Where a plane's name may be compared with: the refs' own parser, the store's format, the planes."""
OTHER_WORDS = {
    "beetle/runtime/pipeline/views.py": {"sensitivity == 'evidence'"},
    "beetle/chunk_tree/document.py": {"['chunks', *_, name]", "['chunks', month, name]"},
    "beetle/runtime/areas/governance/targets.py": {"claim.target == 'procedural'"},
    "beetle/runtime/areas/governance/decide.py": {"claim.target == 'procedural'"},
    "beetle/runtime/areas/governance/judging.py": {"row.target == 'procedural'"},
}
"""The same words for something else: a field's sensitivity, a folder, and the target that a candidate asks for."""


def literals(node: ast.AST) -> set[object]:
    return {each.value for each in ast.walk(node) if isinstance(each, ast.Constant)}


def comparisons(tree: ast.AST) -> Iterator[ast.AST]:
    """What tells values apart by what they are compared with."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and literals(node) & {*PLANE_NAMES, *INDEX_CODES}:
            yield node
        elif isinstance(node, ast.match_case) and literals(node.pattern) & {*PLANE_NAMES, *INDEX_CODES}:
            yield node.pattern


def test_nobody_else_asks_which_plane_it_is() -> None:
    seen: dict[str, set[str]] = {}
    for path in (*(ROOT / "beetle").rglob("*.py"), *(ROOT / "tui").rglob("*.py")):
        where = path.relative_to(ROOT).as_posix()
        if not any(where == each or where.startswith(f"{each}/") for each in ELSEWHERE):
            for node in comparisons(ast.parse(path.read_text())):
                seen.setdefault(where, set()).add(ast.unparse(node))
    assert seen == OTHER_WORDS
