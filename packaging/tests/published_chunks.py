"""Run the tests that RLM-MEM publishes of its chunk store against beetle.chunks, with only the names of modules mapped.

python packaging/tests/published_chunks.py CHECKOUT

CHECKOUT holds brain/scripts of https://github.com/zenchantlive/rlm-mem, or .agents/skills/rlm-mem of
https://github.com/zenchantlive/beadboard before it was removed there. A test that contradicts what Beetle does is in
`CONTRADICTED` with the reason; it has to fail, and every other test has to pass. Then the project's own ChunkStore
reads a folder that Beetle wrote, and writes to it what Beetle takes in.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import tempfile
import types
import unittest
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import beetle.chunks

SUITES = (
    "test_storage",
    "test_chunking",
    "test_linking",
    "test_remember",
    "test_recall",
    "test_recall_ranking",
    "test_reason",
    "test_reason_quality",
)
MODULES = (
    "memory_store",
    "chunking_engine",
    "auto_linker",
    "remember_operation",
    "recall_operation",
    "reason_operation",
    "repl_environment",
)
CONTEXT = "context_of holds the id of the conversation, not of its chunks"
CONTRADICTED = {
    "test_linking.TestAutoLinker.test_conversation_linking": CONTEXT,
    "test_linking.TestAutoLinker.test_no_duplicate_context_links": CONTEXT,
    "test_remember.TestRememberLinking.test_links_chunks_in_same_operation": CONTEXT,
    "test_remember.TestRememberLinking.test_links_to_existing_conversation": CONTEXT,
}


def map_modules() -> None:
    """The names of modules that the tests import, with what beetle.chunks has."""
    known = {name: getattr(beetle.chunks, name) for name in beetle.chunks.__all__}
    # Names that the tests import and do not call, or expect to be false where no other tokenizer is installed.
    known |= {"REPLSession": object, "TIKTOKEN_AVAILABLE": False}
    for package in ("brain", "brain.scripts"):
        sys.modules[package] = types.ModuleType(package)
        sys.modules[package].__path__ = []
    for name in MODULES:
        for full in (name, f"brain.scripts.{name}"):
            module = sys.modules[full] = types.ModuleType(full)
            vars(module).update(known)


def load(folder: Path) -> Iterator[unittest.TestSuite]:
    """The tests, from their own files."""
    for name in SUITES:
        module = types.ModuleType(name)
        module.__file__ = str(folder / f"{name}.py")
        sys.modules[name] = module
        source = (folder / f"{name}.py").read_text(encoding="utf-8")
        exec(compile(source, module.__file__, "exec"), vars(module))
        yield unittest.defaultTestLoader.loadTestsFromModule(module)


def own_store(folder: Path) -> Any:
    """The project's own ChunkStore."""
    spec = importlib.util.spec_from_file_location("their_memory_store", folder / "memory_store.py")
    assert spec is not None and spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.ChunkStore


def reads_each_other(folder: Path, base: Path) -> None:
    """Theirs finds and reads all that ours wrote, ours all that theirs writes, reads, changes and archives.

    AssertionError: one does not.
    """
    with beetle.chunks.ChunkStore(base) as ours:
        made = [
            ours.create_chunk("Prefere chá — 茶", "preference", "conv-1", 12, ["bebidas", "chá"], 0.95),
            ours.create_chunk("The kettle is old", "fact", "conv-1", 5, ["chá"]),
            ours.create_chunk("Water is scarce", "note", "conv-2", 5, ["chá"]),
        ]
        archived = ours.create_chunk("Gone", "note", "conv-2", 1)
        ours.delete_chunk(archived.id)
    theirs = own_store(folder)(str(base))
    assert theirs.list_chunks() == [each.id for each in made]
    assert theirs.list_chunks(conversation_id="conv-1", tags=["chá"]) == [each.id for each in made[:2]]
    assert theirs.get_stats()["archived_chunks"] == 1
    with beetle.chunks.ChunkStore(base) as ours:
        shown = [ours.peek_chunk(each.id) for each in made]
    for each in shown:
        assert each is not None
        found = theirs.get_chunk(each.id).to_dict()
        counted = {"access_count": 1, "last_accessed": found["metadata"]["last_accessed"]}
        assert found == {**each.to_dict(), "metadata": {**each.to_dict()["metadata"], **counted}}
    new = theirs.create_chunk("Written by theirs", "note", "conv-3", 4, ["chá"])
    theirs.update_chunk(made[0].id, confidence=0.5)
    theirs.delete_chunk(made[2].id)
    with beetle.chunks.ChunkStore(base) as ours:
        report = ours.import_tree()
        assert (report.imported, report.refused) == (1, ())
        assert ours.list_chunks() == [made[0].id, made[1].id, new.id]
        assert sorted(ours.list_archived()) == sorted([archived.id, made[2].id])
        changed, read = ours.peek_chunk(made[0].id), ours.peek_chunk(new.id)
        assert changed is not None and changed.metadata.confidence == 0.5 and changed.metadata.access_count == 2
        assert read is not None and read.content == "Written by theirs"


def main(checkout: str) -> int:
    found = [
        each
        for each in (Path(checkout) / "brain/scripts", Path(checkout) / ".agents/skills/rlm-mem/brain/scripts")
        if (each / "test_storage.py").is_file()
    ]
    if not found:
        print(f"{checkout} holds no brain/scripts/test_storage.py", file=sys.stderr)
        return 2
    map_modules()
    warnings.simplefilter("ignore", DeprecationWarning)
    suites = unittest.TestSuite(load(found[0].resolve()))
    with tempfile.TemporaryDirectory(prefix="chunks-") as folder, open(os.devnull, "w") as nowhere:
        os.chdir(folder)
        result = unittest.TextTestRunner(stream=nowhere, verbosity=0, buffer=True).run(suites)
        reads_each_other(found[0].resolve(), Path(folder) / "both")
        os.chdir("/")
    failed = {case.id(): trace for case, trace in (*result.failures, *result.errors)}
    wrong = 0
    for case, trace in failed.items():
        if case in CONTRADICTED:
            print(f"contradicted {case}: {CONTRADICTED[case]}")
        else:
            wrong += 1
            print(f"FAILED {case}\n{trace}")
    for case in sorted(CONTRADICTED.keys() - failed.keys()):
        wrong += 1
        print(f"PASSED, and is listed as contradicted: {case}")
    passed = result.testsRun - len(failed) - len(result.skipped)
    print("their store and ours read each other's folder")
    print(f"{result.testsRun} tests: {passed} passed, {len(failed)} failed, {len(result.skipped)} skipped")
    return 1 if wrong else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    sys.exit(main(sys.argv[1]))
