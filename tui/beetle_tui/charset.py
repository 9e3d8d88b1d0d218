"""What a terminal can show: the character set of its locale, and what stands for the rest."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Mapping

from rich.cells import cell_len, set_cell_size

UTF_8 = "utf-8"
ASCII = "ascii"
LOCALE = ("LC_ALL", "LC_CTYPE", "LANG")
"""Where a locale is named; the first that is set counts."""
STANDS_FOR: Mapping[str, str] = {
    "-": "─━▔▃", "|": "│┃", "+": "┌┐└┘├┤┬┴┼┏┓┗┛▅", "_": "▁", ".": "▂░·", "=": "▄", "*": "▆", "%": "▇", "#": "█▀▓",
    ":": "▒", "~": "…", '"': "“”",
}  # fmt: skip
"""A character of ASCII for those of the console's own frames, bars and words, each in one cell."""
IN_PLACE_OF = {each: plain for plain, all_of_it in STANDS_FOR.items() for each in all_of_it}
BEYOND = re.compile(r"[^\x00-\x7f]+")


def charset_of(env: Mapping[str, str]) -> str:
    """The character set of a terminal, as the environment tells.

    A locale that names none leaves it open, and UTF-8 is what terminals have; but C is asked for by whoever wants
    ASCII, and a terminal of the VT series, which a serial line is taken for, has no more.
    """
    name = next((env[each] for each in LOCALE if env.get(each)), "")
    named = name.partition("@")[0]
    if named in ("C", "POSIX") or (not named and env.get("TERM", "").startswith("vt")):
        return ASCII
    _, dot, charset = named.partition(".")
    if not dot:
        return UTF_8
    try:
        return codecs.lookup(charset).name
    except LookupError:
        return ASCII


def fitting(charset: str) -> Callable[[str], str]:
    """What makes a text one that the character set has, in as many cells as it takes now."""

    def fit(text: str) -> str:
        return text if text.isascii() else BEYOND.sub(replaced, text)

    def replaced(found: re.Match[str]) -> str:
        run = found[0]
        shown = "".join(each if _has(charset, each) else _in_place_of(each) for each in run)
        return shown if shown == run else set_cell_size(shown, cell_len(run))

    return (lambda text: text) if charset == UTF_8 else fit


def _has(charset: str, character: str) -> bool:
    try:
        character.encode(charset)
    except UnicodeEncodeError:
        return False
    return True


def _in_place_of(character: str) -> str:
    return IN_PLACE_OF.get(character) or "?" * cell_len(character)
