"""Text for the screen: what comes from stores and daemons made harmless, folded, and put into words."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rich.cells import cell_len, set_cell_size

DRIVES_A_TERMINAL = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
"""C0, DEL and C1 controls, line separators, marks that reorder text, lone surrogates: as the command line has them."""

JOINS = re.compile("[\u200d\ufe00-\ufe0f\U0001f3fb-\U0001f3ff]")
"""The joiner, variation selectors, and skin tones: `👩‍👧` takes two cells here and four there, in parts it is four."""

BAR_CELLS = 16
FULL, FREE = "█", "░"
FULL_PLAIN, FREE_PLAIN = "#", "."
NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def neutral(text: str) -> str:
    """One line for the screen: what could drive the terminal is shown as an escape (`\\x1b`), and what joins or varies
    characters is left out, since terminals disagree about the cells that those take together."""
    return text if text.isascii() and text.isprintable() else JOINS.sub("", harmless(text))


def harmless(text: str) -> str:
    """One line that can be copied and kept: all of it, but for what could drive a terminal, which is an escape."""
    return text if text.isascii() and text.isprintable() else DRIVES_A_TERMINAL.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    character = found[0]
    code = ord(character)
    return NAMED.get(character) or (f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}")


def fold(text: str, width: int) -> list[str]:
    """Lines of at most `width` cells of a neutral text: broken at spaces, and within words that are longer."""
    width = max(width, 2)  # a wide character must fit
    lines = [""]
    for word in re.findall(r"(?<!\s)\s*+\S+", text):
        if cell_len(lines[-1]) + cell_len(word) <= width:
            lines[-1] += word
            continue
        bare = word.lstrip() if lines[-1] else word
        first, *more = _cut(bare, width)
        lines[len(lines) - (not lines[-1]) :] = [first, *more]
    return lines


def _cut(text: str, width: int) -> Iterator[str]:
    while cell_len(text) > width:
        # A wide character that does not fit is replaced by a blank, which is not part of the text.
        part = text[: len(set_cell_size(text, width).rstrip(" ") or " ")]
        yield part
        text = text[len(part) :]
    yield text


def size(amount: int | None) -> str:
    """Bytes for a person: `512 bytes`, `45.2 MB` (powers of 1,000); a dash for what is not shown."""
    if amount is None:
        return "-"
    if amount < 1000:
        return count(amount, "byte")
    value = float(amount)
    for unit in ("kB", "MB", "GB"):
        value /= 1000
        if value < 999.95:
            return f"{value:.1f} {unit}"
    return f"{value / 1000:.1f} TB"


def count(number: int, one: str, many: str | None = None) -> str:
    """`1 turn`, `1,204 turns`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def moment(text: str | None) -> str:
    """A time of a report for a person: `2026-03-02 09:02:00Z`."""
    return "" if text is None else f"{text[:19].replace('T', ' ')}Z"


def copies_line(horizon: str, until: str | None) -> str:
    """Where erased content may still be, and until when: times of a report."""
    gone = "until they are pruned" if until is None else f"until {moment(until)}, by the schedule of snapshots"
    return f"Copies of the store up to {moment(horizon)} may hold it still, {gone}."


def bar(share: float, plain: bool, cells: int = BAR_CELLS) -> str:
    """A share of 1 as a bar; anything above nothing is seen, and only all of it fills the bar."""
    share = min(max(share, 0.0), 1.0)
    full = cells if share == 1 else min(cells - 1, max(int(share * cells), share > 0))
    filled, free = (FULL_PLAIN, FREE_PLAIN) if plain else (FULL, FREE)
    return filled * full + free * (cells - full)
