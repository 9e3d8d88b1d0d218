"""help: the pages of docs/, which the wheel and the one file carry."""

from __future__ import annotations

import re
from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path

from beetle.cli.parser import Parser, close_matches, typed_option
from beetle.contracts.errors import InvalidRequest

CONTENTS = "README.md"
LISTED = re.compile(r"^\| \[([a-z-]+)\.md\]\([^)]*\) \| (.*?)(?: \(generated\))? \|$", re.MULTILINE)
LINK = re.compile(r"\[([^]\n\[]{1,200})\]\((?:([a-z-]+)\.md)?(?:#[^)\s]{0,100})?\)")


class NoPage(InvalidRequest):
    """Neither a page nor a command has this name."""

    template = "no page and no command {word!r}"


def fill_help(parser: Parser) -> None:
    """What `help` takes."""
    parser.add_argument("words", nargs="*", metavar="TOPIC", help="a page of the manual, or the words of a command")


def run_help(typed: Namespace) -> int:
    """List the pages, print one, or print a command's help.

    Raises:
        InvalidRequest: there is no such page or command.
    """
    from beetle.cli.commands import COMMANDS

    as_json = bool(typed_option(typed, "json"))
    words: Sequence[str] = typed.words
    pages = topics()
    if not words:
        return _list(pages, as_json=as_json)
    if len(words) == 1 and words[0] in pages:
        return _show(words[0], pages, as_json=as_json)
    commands = {each[0] for each in COMMANDS}
    if words[0] not in commands:
        close = close_matches(words[0], {*pages, *commands}, n=2)
        hint = f"did you mean {' or '.join(f'`beetle help {each}`' for each in close)}?" if close else ""
        raise NoPage(word=words[0][:80], hint=hint or "`beetle help` lists the pages")
    from beetle.cli.app import run_words

    return run_words([*words, "--help"])


def topics() -> Mapping[str, str]:
    """Every page with what it is for, in the order of the table of contents."""
    return dict(LISTED.findall((_folder() / CONTENTS).read_text(encoding="utf-8")))


def page(topic: str, pages: Mapping[str, str]) -> str:
    """A page's text; a link to another page is the command that shows it."""
    text = (_folder() / f"{topic}.md").read_text(encoding="utf-8")

    def as_command(link: re.Match[str]) -> str:
        words, linked = link[1], link[2]
        if linked is None:
            return words
        if linked not in pages:
            return link[0]
        shown = f"`beetle help {linked}`"
        return shown if words == f"{linked}.md" else f"{words} ({shown})"

    return LINK.sub(as_command, text)


def _folder() -> Path:
    """Inside the package when it is installed, beside it in a checkout."""
    package = Path(__file__).parents[1]
    inside = package / "docs"
    return inside if inside.is_dir() else package.parent / "docs"


def _list(pages: Mapping[str, str], *, as_json: bool) -> int:
    if as_json:
        from beetle.cli.render import as_json as shown

        print(shown({"topics": [{"topic": each, "about": about} for each, about in pages.items()]}))
        return 0
    from beetle.cli.text import screen_width, wrap

    longest = max(map(len, pages))
    print("Pages of the manual: beetle help TOPIC\n")
    for topic, about in pages.items():
        first, *more = wrap(LINK.sub(r"\1", about), " " * (longest + 4), screen_width())
        print("\n".join([f"  {topic:<{longest}}  {first.strip()}", *more]))
    print("\nHelp for a command: beetle COMMAND --help")
    return 0


def _show(topic: str, pages: Mapping[str, str], *, as_json: bool) -> int:
    text = page(topic, pages)
    if as_json:
        from beetle.cli.render import as_json as shown

        text = shown({"topic": topic, "text": text})
    print(text.rstrip("\n"))
    return 0


OWN = {"help": (fill_help, run_help)}
