"""Text for a terminal or a pipe: control characters made harmless, columns aligned, lines as wide as the screen."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Sequence

# Text, so that they are compiled when something is not plain ASCII, and not by every command.
DRIVES_A_TERMINAL = "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
"""C0, DEL and C1 controls, line separators, marks that reorder text, lone surrogates."""

NOT_ESCAPED_BY_JSON = "[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]"


def neutral(text: str) -> str:
    """One line in which nothing can drive the terminal: what could is shown as an escape (`\\x1b`)."""
    return text if text.isascii() and text.isprintable() else re.sub(DRIVES_A_TERMINAL, _escape, text)


def neutral_lines(text: str) -> list[str]:
    """The lines of a text, each neutral; tabs become spaces, a CR before a line's end goes."""
    return [neutral(line.removesuffix("\r").expandtabs(4)) for line in text.split("\n")]


def neutral_json(text: str) -> str:
    """The same JSON with the controls escaped that an encoder may leave as they are."""
    return text if text.isascii() and "\x7f" not in text else re.sub(NOT_ESCAPED_BY_JSON, _json_escape, text)


def _escape(found: re.Match[str]) -> str:
    character = found[0]
    if character in "\n\r\t":
        return {"\n": "\\n", "\r": "\\r", "\t": "\\t"}[character]
    code = ord(character)
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


def _json_escape(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"


def screen_width() -> int | None:
    """Columns of the terminal that stdout is, or None when it is none: then nothing is cut or wrapped."""
    try:
        if not sys.stdout.isatty():
            return None
        columns = os.get_terminal_size(sys.stdout.fileno()).columns
    except (OSError, ValueError, AttributeError):
        return None
    return max(columns, 40) if columns else 80


def columns_of(text: str) -> int:
    """How many columns a terminal gives to a neutral text."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(each) else 2 if east_asian_width(each) in "WF" else 1 for each in text)


def clip(text: str, width: int | None) -> str:
    """At most `width` columns, with an ellipsis where something was cut; None cuts nothing."""
    if width is None or columns_of(text) <= width:
        return text
    return text[: _fitting(text, width - 1)] + "…"


def wrap(text: str, indent: str, width: int | None) -> list[str]:
    """The neutral lines of a text behind an indent, broken at words where the screen ends."""
    room = None if width is None else max(20, width - len(indent))
    lines: list[str] = []
    for line in neutral_lines(text):
        lines.extend((indent + part).rstrip() for part in _broken(line, room))
    return lines


def _broken(line: str, room: int | None) -> list[str]:
    if room is None or columns_of(line) <= room:
        return [line]
    parts: list[str] = []
    current = ""
    for word in re.findall(r"(?<!\s)\s*+\S+", line):
        if current and columns_of(current + word) > room:
            parts.append(current)
            current = word.lstrip()
        else:
            current += word
        while columns_of(current) > room:
            cut = _fitting(current, room)
            parts.append(current[:cut])
            current = current[cut:]
    return [*parts, current] if current else parts


def _fitting(text: str, room: int) -> int:
    used = 0
    for index, each in enumerate(text):
        used += columns_of(each)
        if used > room:
            return max(index, 1)
    return len(text)


def table(
    rows: Iterable[Sequence[str]],
    header: Sequence[str],
    width: int | None,
    numbers: Sequence[int] = (),
    *,
    fold: bool = False,
) -> str:
    """Aligned columns, two spaces apart; `numbers` are set to the right. The last one is cut to fit, or folded."""
    cells = [list(header), *([neutral(cell) for cell in row] for row in rows)]
    if fold and width is not None:
        cells = list(_folded(cells, width))
    widths = [max(columns_of(row[index]) for row in cells) for index in range(len(header))]
    lines: list[str] = []
    for row in cells:
        parts = [
            " " * (widths[i] - columns_of(cell)) + cell if i in numbers else cell + " " * (widths[i] - columns_of(cell))
            for i, cell in enumerate(row)
        ]
        lines.append(clip("  ".join(parts).rstrip(), width))
    return "\n".join(lines)


def _folded(cells: list[list[str]], width: int) -> Iterable[list[str]]:
    last = len(cells[0]) - 1
    room = max(20, width - sum(max(columns_of(row[index]) for row in cells) + 2 for index in range(last)))
    for *row, text in cells:
        for number, part in enumerate(_broken(text, room)):
            yield [*(row if not number else [""] * last), part]


def pairs(entries: Iterable[tuple[str, str]], indent: str = "") -> str:
    """`name: value` lines with the values aligned; an empty name goes on with the one before."""
    shown = [(name, neutral(value)) for name, value in entries]
    longest = max((len(name) for name, _ in shown), default=0)
    return "\n".join(f"{indent}{name + ':' if name else '':<{longest + 1}} {value}".rstrip() for name, value in shown)


def count(number: int, one: str, many: str | None = None) -> str:
    """`1 turn`, `1,204 turns`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def size(amount: int | None) -> str:
    """Bytes for a person: `512 bytes`, `45.2 MB` (powers of 1,000); a dash for what is not shown."""
    if amount is None:
        return "-"
    if amount < 1000:
        return count(amount, "byte")
    value = float(amount)
    for unit in ("kB", "MB", "GB", "TB"):
        value /= 1000
        if value < 999.95 or unit == "TB":
            return f"{value:.1f} {unit}"
    raise AssertionError


def duration(seconds: float) -> str:
    """`2h 15m 30s`; days in front where there are any."""
    left = int(seconds)
    days, left = divmod(left, 86_400)
    hours, left = divmod(left, 3600)
    minutes, left = divmod(left, 60)
    parts = [(days, "d"), (hours, "h"), (minutes, "m"), (left, "s")]
    while len(parts) > 1 and not parts[0][0]:
        parts.pop(0)
    return " ".join(f"{value}{unit}" for value, unit in parts)


def when(at: str | None) -> str:
    """An RFC 3339 time in UTC, to the second, for a person."""
    if not at:
        return "-"
    return re.sub(r"^([0-9-]{10})T([0-9:]{8})(\.[0-9]+)?Z$", r"\1 \2Z", at)
