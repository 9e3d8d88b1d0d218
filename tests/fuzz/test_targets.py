"""Every surface that takes bytes from somebody else: each case that once broke it, and changes of valid inputs.

The default run is small. `-m slow` makes a thousand changes of each target with other dice each time, and
`python -m tests.fuzz TARGET` looks for more with a coverage-guided fuzzer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.fuzz.contract import bounded_memory, bounded_work, watched
from tests.fuzz.targets import TARGETS, opened
from tests.fuzz.targets.target import Target

CASES = Path(__file__).parent / "cases"
FEW, MANY = 3, 1_000
Feed = Callable[[bytes], None]


@contextmanager
def fed(name: str, folder: Path) -> Iterator[tuple[Target, Feed]]:
    """A target, and what feeds it within the bounds of every input."""
    with watched() as defects, opened(name, folder) as target:

        def feed(data: bytes) -> None:
            with bounded_memory(), bounded_work(len(data)):
                target(data)
            defects.check()

        yield target, feed


def changes(target: Target, feed: Feed, examples: int, *, fixed: bool) -> None:
    """Feed changes of valid inputs, of which several may come together."""
    seeds = target.seeds()
    feed(b"")
    for each in seeds[:: max(1, len(seeds) // 2)]:
        feed(each)

    @settings(
        max_examples=examples, derandomize=fixed, database=None, deadline=None,
        suppress_health_check=list(HealthCheck), phases=(Phase.generate,) if fixed else tuple(Phase),
    )  # fmt: skip
    # Of dice that Hypothesis throws itself each throw would have to be the same when it goes back to an input: what a
    # target changes may follow from its store.
    @given(st.integers(0, len(seeds) - 1), st.randoms(use_true_random=True), st.integers(1, 3))
    def change(seed: int, dice: Random, times: int) -> None:
        data = seeds[seed]
        for _ in range(times):
            data = target.changed(dice, data)
        feed(data[: target.most_bytes])

    change()


@pytest.mark.parametrize("name", TARGETS)
def test_whatever_comes_is_answered_or_refused_and_the_store_stays_whole(name: str, tmp_path: Path) -> None:
    with fed(name, tmp_path) as (target, feed):
        for case in sorted((CASES / name).glob("*")):
            feed(case.read_bytes())
        changes(target, feed, FEW, fixed=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_a_thousand_changes_of_each(name: str, tmp_path: Path) -> None:
    with fed(name, tmp_path) as (target, feed):
        changes(target, feed, MANY, fixed=False)


def test_every_case_is_of_a_target() -> None:
    assert {each.name for each in CASES.iterdir()} <= set(TARGETS)
