"""Run the tests that RLM-MEM publishes of its chunk store against beetle.chunks, with only the names of modules mapped.

python packaging/tests/published_chunks.py CHECKOUT

CHECKOUT holds brain/scripts of https://github.com/zenchantlive/rlm-mem, or .agents/skills/rlm-mem of
https://github.com/zenchantlive/beadboard before it was removed there. A test that contradicts what Beetle does is in
`CONTRADICTED` with the reason; it has to fail, and every other test has to pass.
"""

from __future__ import annotations

import os
import sys
import tempfile
import types
import unittest
import warnings
from collections.abc import Iterator
from pathlib import Path

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
    print(f"{result.testsRun} tests: {passed} passed, {len(failed)} failed, {len(result.skipped)} skipped")
    return 1 if wrong else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    sys.exit(main(sys.argv[1]))
