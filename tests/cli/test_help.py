"""Pages of help, as they were agreed; rewrite them with BEETLE_UPDATE_HELP=1."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import REPOSITORY, CommandLine

PAGES = {
    "beetle": (),
    "memory": ("memory",),
    "memory-recall": ("memory", "recall"),
    "transcript-commit": ("transcript", "commit"),
    "skill-enable": ("skill", "enable"),
    "start": ("start",),
}
HELD = Path(__file__).parent / "help"
UPDATE = os.environ.get("BEETLE_UPDATE_HELP") == "1"


@pytest.mark.parametrize("page", PAGES)
def test_a_page_of_help_is_the_one_agreed(beetle: CommandLine, page: str) -> None:
    said = beetle.run(*PAGES[page], "--help")
    file = HELD / f"{page}.txt"
    if UPDATE:
        file.write_text(said.out)
    assert (said.code, said.err) == (0, "")
    assert said.out == file.read_text()


def test_help_may_be_asked_for_before_the_words_or_by_name(beetle: CommandLine) -> None:
    pages = {beetle.run(*words).out for words in (
        ("memory", "recall", "--help"), ("--help", "memory", "recall"), ("help", "memory", "recall"),
        ("memory", "recall", "-h", "--json"),
    )}  # fmt: skip
    assert len(pages) == 1


def test_the_version_is_printed_in_every_way_it_is_asked_for(beetle: CommandLine) -> None:
    from beetle import __version__

    for words in (("--version",), ("version",), ("--store", "x", "--version"), ("--store", "x", "version")):
        said = beetle.run(*words)
        assert (said.code, said.out) == (0, f"beetle {__version__}\n")
    assert beetle.run("--json", "version").json == {"version": __version__}


@pytest.mark.parametrize("words", [("--version",), ("version",)])
def test_the_version_imports_nothing_heavy(words: tuple[str, ...]) -> None:
    code = (
        "import sys; from beetle.__main__ import main; main(sys.argv[1:]);"
        "print([each for each in ('apsw', 'msgspec', 'msgpack', 'argparse', 'asyncio', 'beetle.contracts')"
        " if each in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, cwd=REPOSITORY)
    assert done.stdout.splitlines()[-1] == "[]", done.stderr


def test_help_opens_no_database(beetle: CommandLine) -> None:
    code = (
        "import sys; from beetle.__main__ import main; main(['--help']);"
        "print([each for each in ('apsw', 'msgpack', 'asyncio', 'rich') if each in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=REPOSITORY)
    assert done.stdout.splitlines()[-1] == "[]", done.stderr
