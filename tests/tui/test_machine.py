"""Random keys, sizes and events: see `machine`."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.tui.machine import KINDS, MOVES, PLACES, SIZES, ConsoleMachine
from tests.tui.remembering import remembering


@pytest.fixture(autouse=True)
def daemon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    ConsoleMachine.mounted = tmp_path / "agent-skills"
    ConsoleMachine.mounted.mkdir()
    monkeypatch.setenv("BM_AGENT_SKILL_DIRS", str(ConsoleMachine.mounted))
    with remembering() as found:
        ConsoleMachine.daemon = found
        yield


def run(examples: int, steps: int) -> None:
    options = settings(
        max_examples=examples, stateful_step_count=steps, deadline=None, print_blob=True,
        phases=(Phase.generate, Phase.shrink), database=None,
        suppress_health_check=list(HealthCheck),  # type: ignore[arg-type] - pyright takes the enum for its metaclass
    )  # fmt: skip
    run_state_machine_as_test(ConsoleMachine, settings=options)


def test_keys_act_on_the_highlighted_row_which_is_in_sight_in_every_place() -> None:
    """One walk through all of them, always the same: the first example that Hypothesis makes is its simplest, which
    goes nowhere."""
    rolls = random.Random(1)
    ConsoleMachine.acted.clear()
    machine = ConsoleMachine()
    machine.begin(rolls.choice(SIZES), 6)
    try:
        for place in rolls.sample(PLACES, len(PLACES)):
            machine.go(place)
            machine.move(rolls.choices(MOVES, k=4))
            machine.check()
            machine.resize(rolls.choice(SIZES))
            machine.happen(rolls.randrange(100))
            machine.check()
            machine.go(place)
            for key in range(len(KINDS[place].keys) if place in KINDS else 0):
                machine.act(key, rolls.randint(-20, 20), rolls.randint(-20, 20))
                machine.check()
    finally:
        machine.teardown()
    assert set(KINDS) <= ConsoleMachine.acted


@pytest.mark.slow
def test_keys_act_on_the_highlighted_row_which_is_in_sight_for_long() -> None:
    ConsoleMachine.acted.clear()
    # Where a run goes is chance: now and then thirty of them leave a place out.
    for _ in range(3):
        run(30, 60)
        if set(KINDS) <= ConsoleMachine.acted:
            return
    raise AssertionError(f"no key has acted in {set(KINDS) - ConsoleMachine.acted}")
