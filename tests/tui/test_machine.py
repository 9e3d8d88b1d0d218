"""Random keys, sizes and events: see `machine`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.tui.machine import KINDS, ConsoleMachine
from tests.tui.remembering import remembering


@pytest.fixture(autouse=True)
def daemon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    ConsoleMachine.mounted = tmp_path / "agent-skills"
    ConsoleMachine.mounted.mkdir()
    monkeypatch.setenv("BM_AGENT_SKILL_DIRS", str(ConsoleMachine.mounted))
    with remembering() as found:
        ConsoleMachine.daemon = found
        yield


def run(examples: int, steps: int, derandomize: bool = True) -> None:
    options = settings(
        max_examples=examples, stateful_step_count=steps, deadline=None, derandomize=derandomize, print_blob=True,
        phases=(Phase.generate, Phase.shrink) if not derandomize else (Phase.generate,), database=None,
        suppress_health_check=list(HealthCheck),  # type: ignore[arg-type] - pyright takes the enum for its metaclass
    )  # fmt: skip
    run_state_machine_as_test(ConsoleMachine, settings=options)


def test_keys_act_on_the_highlighted_row_which_is_in_sight() -> None:
    run(1, 16)


@pytest.mark.slow
def test_keys_act_on_the_highlighted_row_which_is_in_sight_for_long() -> None:
    ConsoleMachine.acted.clear()
    # Where a run goes is chance: now and then thirty of them leave a place out.
    for _ in range(3):
        run(30, 60, derandomize=False)
        if set(KINDS) <= ConsoleMachine.acted:
            return
    raise AssertionError(f"no key has acted in {set(KINDS) - ConsoleMachine.acted}")
