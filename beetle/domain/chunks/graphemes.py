"""Where a text may be cut without cutting what a reader sees as one character (Unicode's extended grapheme clusters).

The rules of Unicode Standard Annex 29, a little stricter where its tables are not in the standard library: nothing is
cut behind a zero-width joiner or a virama. So a cut may be missing where Unicode allows one, and never stands where it
does not.
"""

from __future__ import annotations

from unicodedata import category, combining

_JOINER = "\u200d"
_EXTENDING = frozenset("\u200c\u200d\uff9e\uff9f") | {chr(each) for each in range(0x1F3FB, 0x1F400)}
_PREPENDED = frozenset("\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd")
_VIRAMA = 9
"""The combining class of the signs that join two consonants of an Indic script."""


def boundary_before(text: str, at: int, start: int) -> int:
    """The last place not behind `at` where a cluster ends; `start` where all the slice from there is one cluster."""
    while at > start and not _is_boundary(text, at, start):
        at -= 1
    return at


def _is_boundary(text: str, at: int, start: int) -> bool:
    """Whether the text may be cut before the character at `at`; flags are counted from `start`, which is a boundary."""
    if at >= len(text):
        return True
    before, behind = text[at - 1], text[at]
    if before < "\x80" and behind < "\x80":
        return not (before == "\r" and behind == "\n")
    if behind in _EXTENDING or before == _JOINER or before in _PREPENDED or "\U000e0020" <= behind <= "\U000e007f":
        return False
    kind = category(behind)
    if kind in ("Mn", "Me", "Mc") or (kind == "Lo" and combining(before) == _VIRAMA):
        return False
    if _is_flag(behind) and _is_flag(before):
        return _flags_before(text, at, start) % 2 == 0
    return not _in_one_syllable(before, behind)


def _is_flag(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _flags_before(text: str, at: int, start: int) -> int:
    first = at
    while first > start and _is_flag(text[first - 1]):
        first -= 1
    return at - first


def _in_one_syllable(before: str, behind: str) -> bool:
    """Whether two characters belong to one syllable of Hangul."""
    first, second = _hangul(before), _hangul(behind)
    if first == "L":
        return second in ("L", "V", "LV", "LVT")
    if first in ("LV", "V"):
        return second in ("V", "T")
    return first in ("LVT", "T") and second == "T"


def _hangul(character: str) -> str:
    code = ord(character)
    if 0xAC00 <= code <= 0xD7A3:
        return "LVT" if (code - 0xAC00) % 28 else "LV"
    if 0x1100 <= code <= 0x115F or 0xA960 <= code <= 0xA97C:
        return "L"
    if 0x1160 <= code <= 0x11A7 or 0xD7B0 <= code <= 0xD7C6:
        return "V"
    return "T" if 0x11A8 <= code <= 0x11FF or 0xD7CB <= code <= 0xD7FB else ""
