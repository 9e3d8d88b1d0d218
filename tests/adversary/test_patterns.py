"""No regular expression of the product takes more than time in proportion to its text, whatever the text is."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from random import Random
from time import thread_time
from types import FrameType

import pytest

from beetle.domain import lexical, sensitive
from tests.adversary.patterns import Used, attacks, modules, of_module, used

SHORT, LONG = 400, 1600
"""Characters of a text and of one four times as long: linear is a ratio of 4, quadratic of 16."""
TOO_STEEP = 8.0
NOISE_S = 20e-6
HUNG_S = 1


class Hung(Exception):
    """A text of a few thousand characters was not finished with."""


@contextmanager
def watch() -> Iterator[None]:
    """Breaks off what would never end; the engine looks for signals."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise Hung

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, HUNG_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def steep(each: Used) -> tuple[str, str, str] | None:
    """The attack under which a pattern's time grows faster than its text, or None."""
    for attack in attacks(each.pattern):
        try:
            with watch():
                # One look is cheap and may be wrong; what looks steep is looked at again, longer and at leisure.
                if _growth(each, attack, 1, 1) > TOO_STEEP and all(
                    _growth(each, attack, times, 3) > TOO_STEEP for times in (1, 3)
                ):
                    return attack
        except Hung:
            return attack
    return None


def _growth(each: Used, attack: tuple[str, str, str], times: int, runs: int) -> float:
    short, long = (_seconds(each, _text(attack, size * times), runs) for size in (SHORT, LONG))
    return long / max(short, NOISE_S)


def _text(attack: tuple[str, str, str], size: int) -> str:
    beginning, pump, end = attack
    return beginning + pump * (size // len(pump) + 1) + end


def _seconds(each: Used, text: str, runs: int) -> float:
    found: list[float] = []
    for _ in range(runs):
        begun = thread_time()
        each.run(text)
        found.append(thread_time() - begun)
    return min(found)


def test_the_patterns_of_every_module_are_linear() -> None:
    # One test, for finding them reads all of the source: a parameter would have every worker do that.
    patterns = used(modules())
    assert len(set(patterns.values())) > 30
    found = {(module, each.pattern.pattern, each.way): steep(each) for each, module in patterns.items()}
    assert {key: attack for key, attack in found.items() if attack} == {}


@pytest.mark.parametrize(
    ("pattern", "way"),
    [
        (r"[A-Za-z0-9]+(?:[._:/@+#-]{1,3}[A-Za-z0-9]+)+", "finditer"),
        (r"\s*\S+", "finditer"),
        (r"(a|aa)+!", "match"),
        (r"<!--.*?-->", "search"),
        (r" {0,3}(#{1,6})\s+(.*?)\s*#*\s*\Z", "match"),
        (r"(?m)^\s*openapi:", "search"),
        (r"(\d+)\1x", "search"),
    ],
)  # fmt: skip
def test_what_is_not_linear_is_told(pattern: str, way: str) -> None:
    # A machine that is busy with other things blurs a measurement; three times over it does not hide a square.
    assert any(steep(Used(re.compile(pattern), way)) for _ in range(3))


def test_a_pattern_is_found_wherever_a_module_writes_it(tmp_path: Path) -> None:
    source = """
import re
from typing import Annotated
from msgspec import Meta
COMPILED = re.compile("compiled+")
PLAIN = "plain+"
SEVERAL = ("several+", "others+")
JOINED = f"joined-{PLAIN}"
Text = Annotated[str, Meta(pattern="^marked+")]
def first(text, name):
    COMPILED.fullmatch(text)
    re.search(JOINED, text, re.MULTILINE)
    re.match(rf"{name}: local+", text)
    re.compile("later+")
    return any(re.search(each, text) for each in SEVERAL)
"""
    file = tmp_path / "writes_patterns.py"
    file.write_text(source)
    spec = spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    assert {(each.pattern, way) for each, way in of_module(module)} >= {
        ("compiled+", "fullmatch"), ("later+", "finditer"), ("joined-plain+", "search"), ("word: local+", "match"),
        ("several+", "search"), ("others+", "search"), ("^marked+", "search"),
    }  # fmt: skip


AS_WRITTEN_FOR_READERS = {
    lexical._JOINED: r"[A-Za-z0-9]+(?:[._:/@+#-]{1,3}[A-Za-z0-9]+)+",
    sensitive.IN_URL: r"\b[a-z][a-z0-9+.-]*://[^/\s:@]*:(?![<${*%\[])[^/\s@]{3,}@",
    sensitive.ISSUED[-1]: r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.",
    sensitive.KEY_WORD: sensitive.KEY_WORD.replace("(?:[a-z0-9]+_)*", "(?:[a-z0-9]+[_-])*", 1),
}
"""What is linear and what it has to find: the same."""
PIECES = (
    "a", "B", "0", "é", "_", "-", ".", ":", "/", "@", "+", "#", " ", "\n", "://", "eyJ", "Abcdefgh1", "token", "secret",
    "key", "api", " is ", "bearer ", "Ab1xY9zQw7Kp3RtV",
)  # fmt: skip


@pytest.mark.parametrize("pattern", AS_WRITTEN_FOR_READERS)
def test_a_linear_pattern_finds_what_the_plain_one_finds(pattern: str) -> None:
    draw = Random(12)
    first = pattern in (sensitive.IN_URL, sensitive.ISSUED[-1])  # of these only whether there is one is asked
    for _ in range(15_000):
        text = "".join(draw.choices(PIECES, k=draw.randrange(16)))
        if first:
            assert bool(re.search(pattern, text)) == bool(re.search(AS_WRITTEN_FOR_READERS[pattern], text)), text
        else:
            assert _ends(pattern, text) == _ends(AS_WRITTEN_FOR_READERS[pattern], text), text


def _ends(pattern: str, text: str) -> list[tuple[str, int]]:
    """What is read of each place that is found: the value where one is named, else all of it."""
    return [(each.groupdict().get("value") or each.group(), each.end()) for each in re.finditer(pattern, text)]
