"""The pages that `beetle help` shows, and that nothing names one which is not there."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from beetle.cli import manual
from beetle.cli.commands import COMMANDS, root_help
from beetle.contracts.operation import SECTIONS

from .conftest import REPOSITORY, CommandLine

PAGES = sorted(file.stem for file in (REPOSITORY / "docs").glob("*.md") if file.stem != "README")
NAMED = re.compile(r"beetle help ([a-z][a-z-]*)")


def texts(file: Path) -> Iterator[str]:
    """Every text of a module but its docstrings; of an f-string its literal parts."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    said = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in said:
            yield node.value


def test_every_page_of_the_docs_is_listed_and_shown(beetle: CommandLine) -> None:
    said = beetle.run("--json", "help")
    assert sorted(each["topic"] for each in said.json["topics"]) == PAGES
    assert all(each["about"] for each in said.json["topics"])
    listed = beetle.run("help").out
    for topic in PAGES:
        assert f"\n  {topic} " in listed
        said = beetle.run("help", topic)
        assert (said.code, said.err) == (0, "") and said.out.count("\n") > 20
        assert beetle.run("--json", "help", topic).json == {"topic": topic, "text": said.out.rstrip("\n") + "\n"}


def test_a_link_to_a_page_is_the_command_that_shows_it(beetle: CommandLine) -> None:
    shown = beetle.run("help", "configuration").out
    assert "granted views (`beetle help views`)" in shown and "`beetle help maintain`" in shown
    for topic in PAGES:
        text = beetle.run("help", topic).out
        assert re.findall(r"\]\([a-z-]+\.md", text) == []
        assert set(NAMED.findall(text)) <= {*PAGES, *(words[0] for words in COMMANDS)}


def test_the_words_of_a_command_give_its_help(beetle: CommandLine) -> None:
    for words in (("memory",), ("doctor",), ("memory", "recall"), ("console", "overview")):
        assert beetle.run("help", *words).out == beetle.run(*words, "--help").out
    assert beetle.run("help", "console").out.startswith("# ")


@pytest.mark.parametrize(
    ("words", "reason", "hint"),
    [
        (("governanc",), "no page and no command 'governanc'", "did you mean `beetle help governance`?"),
        (("qqqq",), "no page and no command 'qqqq'", "`beetle help` lists the pages"),
        (("memory", "reca"), "beetle memory has no command 'reca'", "did you mean recall or replay?"),
    ],
)
def test_what_is_neither_a_page_nor_a_command_is_refused(
    beetle: CommandLine, words: tuple[str, ...], reason: str, hint: str
) -> None:
    said = beetle.run("help", *words)
    assert (said.code, said.error) == (2, ("invalid_request", reason, hint))


def test_nothing_that_is_said_names_a_page_that_is_not_installed() -> None:
    page = re.compile(rf"\bdocs/|\b({'|'.join(PAGES)})\.md\b")
    said = [
        (file.relative_to(REPOSITORY).as_posix(), text)
        for folder in ("beetle", "tui")
        for file in sorted((REPOSITORY / folder).rglob("*.py"))
        for text in texts(file)
    ]
    assert [each for each in said if page.search(each[1]) and each[0] != "beetle/cli/manual.py"] == []
    named = {topic: where for where, text in said for topic in NAMED.findall(text)}
    assert {topic: where for topic, where in named.items() if topic not in PAGES} == {}
    assert {"configuration", "console"} <= named.keys()


def test_every_word_of_the_first_page_of_help_has_a_line() -> None:
    lines = dict(re.findall(r"^  ([a-z-]+) +(\S.*)$", root_help().partition("\nOptions")[0], re.MULTILINE))
    assert set(lines) == {words[0] for words in COMMANDS}
    assert all(len(text) > 10 for text in lines.values())
    assert all(f"\n{section}:" in root_help() for section in SECTIONS)


def test_the_list_of_pages_is_the_table_of_the_docs() -> None:
    assert sorted(manual.topics()) == PAGES
