"""What looks like a secret, a schema or a full result: text that a tool's summary must not hold. No clock, no I/O.

The tests err on the side of letting plain prose through: a word such as "token" is no secret, a value behind it may be.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Literal

Finding = Literal["secret", "schema", "full_result"]
FINDING_WORDS: Mapping[Finding, str] = {
    "secret": "holds what looks like a secret (a key, a token, a password)",
    "schema": "holds a schema",
    "full_result": "holds a full result",
}
"""What an error says of a finding, behind the place."""

PEM = r"-----BEGIN [A-Z0-9 ]{1,40}-----"
ISSUED = (
    r"\b(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{16,}",
    r"\bsk-(?:[A-Za-z]{2,12}-)?[A-Za-z0-9_-]{20,}",
    r"\bgh[oprsu]_[A-Za-z0-9]{30,}",
    r"\bgithub_pat_[A-Za-z0-9_]{30,}",
    r"\bglpat-[A-Za-z0-9_-]{20,}",
    r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}",
    r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b",
    r"\bAIza[A-Za-z0-9_-]{35}",
    r"\bya29\.[A-Za-z0-9_-]{20,}",
    r"\bnpm_[A-Za-z0-9]{36}",
    r"\bpypi-[A-Za-z0-9_-]{40,}",
    r"\bhf_[A-Za-z0-9]{30,}",
    r"(?<![A-Za-z0-9_-])(?>[A-Za-z0-9_-]*?\beyJ)[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{8,}+\.",
)
"""Beginnings that issuers give their keys and tokens, and the three parts of a JSON web token.

That one and a URL's scheme are looked for from where a run of their characters begins, and once in each: such a run may
be as long as the text, and hold a beginning at every second place.
"""
IN_URL = r"(?<![a-z0-9+.-])(?>(?:\b|[a-z0-9+.-]*?[+.-])[a-z])[a-z0-9+.-]*+://[^/\s:@]*:(?![<${*%\[])[^/\s@]{3,}@"
KEY_WORD = (
    r"(?i)\b(?:[a-z0-9]+_)*(?:api[ _-]?key|access[ _-]?key|private[ _-]?key|account[ _-]?key|secret(?:[ _-]?key)?|"
    r"token|bearer|authorization|credential|session[ _-]?id|api[ _-]?schlüssel|zugangsschlüssel|zugangstoken)\b[\"']?"
    r"(?:\s*[:=]\s*|\s+(?:is|was|ist|war|lautet)\s+|\s+)(?:bearer\s+|basic\s+)?[\"']?"
    r"(?P<value>[A-Za-z0-9+_=~-][A-Za-z0-9+/_.=~-]{15,})"
)
PASS = r"(?:passwor[dt]|passwd|passphrase|passcode|kennwort|\bpwd)"
PLACEHOLDER = r"(?![<${*%\[])"
PASSWORD = (
    rf"(?i){PASS}\b[\"']?(?:\s*[:=]\s*|(?:\s{{1,4}}[^\s:=.]{{1,40}}){{0,4}}?\s{{1,4}}(?:is|was|ist|war|lautet|heißt)"
    rf"(?:\s{{1,4}}(?:now|jetzt|nun))?\s{{0,4}}:?\s{{1,4}})[\"'„“”«»]?{PLACEHOLDER}(?P<value>[^\s\"',;“”«»]{{6,}})"
)
NAMED_PASSWORD = (
    r"(?i)(?<!\S)[\"'„“”«»]?(?P<value>[^\s\"',;“”«»]{6,64})[\"'“”«»]?\s{1,4}(?:is|was|ist|war)\s{1,4}"
    rf"(?:[^\s:=.]{{1,40}}\s{{1,4}}){{0,3}}?[^\s:=.]{{0,40}}?{PASS}\b"
)
"""A password in prose, behind its word and before it, in English and German."""
CARD = (
    r"(?<![\w.-])(?:(?:4\d{3}|5[1-5]\d{2}|2[2-7]\d{2}|6(?:011|5\d{2}))(?P<gap>[ -]?)\d{4}(?P=gap)\d{4}(?P=gap)\d{4}"
    r"|3[47]\d{2}(?P<hole>[ -]?)\d{6}(?P=hole)\d{5})(?![\w-])"
)
"""The number of a payment card, as issuers begin and group them; its last digit must be right, too."""
ENTROPY_BITS = 3.0
"""Of one character of a value behind a key-like word: words of a language stay below, random text is above."""

SCHEMA = (
    r"[\"'](?:\$schema|properties|inputSchema|input_schema|parameters|definitions|\$defs)[\"']\s*:\s*[\[{\"']",
    r"(?i)<xs:schema\b",
    r"(?im)^[^\S\n]*openapi\s*:\s*[\"']?[23]\.",
)
MARKUP = r"(?i)<(?:!doctype|html|\?xml)\b"
HTTP_ANSWER = r"HTTP/\d(?:\.\d)? \d{3}\b"
CUT_JSON = r"(?:\{\s*\"[^\"\n]{1,200}\"\s*:|\[\s*\{\s*\")"
MOST_LINES = 12
"""A summary is a sentence or two; what has more lines was copied."""


def finding(text: str) -> Finding | None:
    """What a text holds that it must not, or None. A secret counts before the others."""
    if is_secret(text):
        return "secret"
    if any(re.search(each, text) for each in SCHEMA):
        return "schema"
    return "full_result" if is_full_result(text) else None


def is_secret(text: str, *, cards: bool = True) -> bool:
    """Whether a text holds what looks like a key, a token, a password, a PEM block, or with `cards` a card's number."""
    if re.search(PEM, text) or re.search(IN_URL, text) or any(re.search(each, text) for each in ISSUED):
        return True
    if any(_random(value) for value in _values(KEY_WORD, text)):
        return True
    if any(_mixed(value) or value.rstrip(".!?").isdigit() for value in _values(PASSWORD, text)):
        return True
    if any(_mixed(value) for value in _values(NAMED_PASSWORD, text)):
        return True
    return cards and any(_is_card(found[0]) for found in re.finditer(CARD, text))


def _is_card(number: str) -> bool:
    """Whether the last digit is what ISO/IEC 7812 makes of the others."""
    digits = [int(each) for each in reversed(number) if each.isdigit()]
    return sum(digits[::2] + [digit * 2 - 9 * (digit > 4) for digit in digits[1::2]]) % 10 == 0


def is_full_result(text: str) -> bool:
    """Whether a text is a tool's answer as it came, whole or cut: JSON, markup, an HTTP answer, a page of lines."""
    begun = text.lstrip()
    if re.match(MARKUP, begun) or re.match(HTTP_ANSWER, begun) or re.match(CUT_JSON, begun):
        return True
    return sum(1 for line in text.splitlines() if line.strip()) > MOST_LINES or _is_json(text)


def _values(pattern: str, text: str) -> Iterator[str]:
    return (found["value"] for found in re.finditer(pattern, text))


def _mixed(value: str) -> bool:
    return any(each.isdigit() for each in value) and any(each.isalpha() for each in value)


def _random(value: str) -> bool:
    """Letters and digits mixed, and as many different characters as random text has."""
    counts = Counter(value)
    bits = -sum(n / len(value) * math.log2(n / len(value)) for n in counts.values())
    return _mixed(value) and bits >= ENTROPY_BITS


def _is_json(text: str) -> bool:
    """Whether the whole text is a JSON object or list that holds something."""
    if text.lstrip()[:1] not in ("{", "["):
        return False
    try:
        read: object = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return bool(read)
