"""A term of the recall index that another program changed on its page: SQLite's own checks pass, ours names the row."""

from __future__ import annotations

import shutil
from pathlib import Path

import apsw
import pytest

from beetle import MemoryRuntime
from tests.adversary.test_hand_made_rows import looked_at
from tests.governance.judging import candidate
from tests.store.conftest import open_runtime

LEAVES_SQL = "SELECT id, block FROM recall_index_data WHERE instr(block, ?)"
HIDE_SQL = """
INSERT INTO recall_index (recall_index, rowid, text, names, time, scope) VALUES ('delete', ?, 'today', '', '', '')
"""
WORDS = ("x" * 40_000, "ä" * 20_000, "lighthouse", "harbour", "seagull", "compass", "anchor")


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with evidence, a skill, a fact and what the fact was before."""
    path = tmp_path_factory.mktemp("kept") / "store.db"
    with open_runtime(path) as memory:
        said = [{"turn_id": f"t{n}", "at": "2026-01-02T03:04:05Z", "messages": [
            {"message_id": f"m{n}", "role": "user", "content": f"we saw the {word} today"}]}
            for n, word in enumerate(WORDS)]  # fmt: skip
        memory.commit_transcript(conversation={"conversation_id": "c"}, turns=said)
        skill = {"name": "s", "topic": "t", "title": "t", "summary": "steer by the wheelhouse", "content": "steer"}
        memory.write(kind="procedural", source="import", writes=[skill])
        for number, text in enumerate(("the boat is at the quayside", "the boat is at the drydock")):
            memory.commit_transcript(conversation={"conversation_id": "f"}, turns=[{
                "turn_id": f"f{number}", "at": "2026-01-02T03:04:05Z",
                "messages": [{"message_id": f"f{number}", "role": "user", "content": text}]}])  # fmt: skip
            cited = [f"evidence:local/f/f{number}"]
            memory.write(
                kind="candidates", candidates=[candidate(f"k{number}", text, topic="boat", evidence_refs=cited)]
            )
    return path


@pytest.mark.parametrize("word", ["lighthous", "wheelhous", "quaysid", "drydock"])
def test_a_term_that_was_changed_on_its_page_is_named(kept: Path, tmp_path: Path, word: str) -> None:
    path = _copy(kept, tmp_path)
    connection = apsw.Connection(str(path))
    pages = connection.execute(LEAVES_SQL, (word[4:].encode(),)).fetchall()
    assert pages, "the term stands on a page"
    for page, block in pages:
        swapped = block.replace(word[4:].encode(), word[4:].encode()[::-1])
        connection.execute("UPDATE recall_index_data SET block = ? WHERE id = ?", (swapped, page))
    connection.close()
    found = looked_at(path)
    assert {(check, problem) for check, _, problem in found} == {
        ("recall_index", "its terms are not those of its record")
    }


def test_a_row_of_which_another_program_took_the_terms_out_is_named(kept: Path, tmp_path: Path) -> None:
    path = _copy(kept, tmp_path)
    connection = apsw.Connection(str(path))
    row = connection.execute("SELECT rowid FROM recall_index WHERE recall_index MATCH 'lighthouse'").get
    # A delete mark for a term that the record has: FTS5 hides the record from whoever looks for that.
    connection.execute(HIDE_SQL, (row,))
    connection.execute("INSERT INTO recall_index_docsize VALUES (?, x'00000000')", (row,))
    connection.close()
    assert any(check == "recall_index" and subject == f"row {row}" for check, subject, _ in looked_at(path))


def test_a_whole_index_is_clean_and_the_reader_can_be_used_again(kept: Path, tmp_path: Path) -> None:
    with MemoryRuntime.open(_copy(kept, tmp_path), profile="dev-full") as memory:
        for _ in range(2):
            assert memory.verify_store().findings == ()


def _copy(store: Path, folder: Path) -> Path:
    for end in ("", ".identity"):
        shutil.copy(f"{store}{end}", f"{folder / 'store.db'}{end}")
    return folder / "store.db"
