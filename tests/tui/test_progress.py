"""Long work shows how far it is: its step, what is done of it, and for how long."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from beetle.client import Client
from beetle.contracts.lifecycle import MemoryRecoverReport
from beetle.contracts.progress import ProgressStep
from beetle.runtime.areas.recovery import plan
from beetle_tui.dialogs import Working
from beetle_tui.source import DaemonSource
from beetle_tui.working import progress_lines
from tests.transports.serving import PATIENCE_S, HeldErasure, Served, open_folder, until, writer_held
from tests.tui.remembering import device
from tests.tui.showing import Shown, opened, show
from tests.tui.talking import begin, contents, pumps, type_in

WAITS = f"Step 1 of {len(plan())}: checkpoint"
"""The step of recovery that waits for the writer."""


@pytest.fixture
def served() -> Iterator[Served]:
    with open_folder() as folder, Served(folder) as running:
        yield running


async def recover(shown: Shown, free: Callable[[], None]) -> None:
    """Begin to recover, look at it while it waits, and let it end."""
    console = shown.console
    work = console.run_worker(partial(console.area.ask_long, "Recover", "memory.recover"))
    await shown.until_shown("Recover", WAITS, "so far", "esc calls it off")
    free()
    assert isinstance(await work.wait(), MemoryRecoverReport)
    await shown.until(lambda: not isinstance(console.screen, Working))


def test_a_daemon_s_long_work_shows_its_step(served: Served) -> None:
    async def look(shown: Shown) -> None:
        await shown.until_shown("live, read")
        with writer_held(served.store) as free:
            await recover(shown, free.set)
        assert served.dispatcher.hub.count == 1, "only the console's own events are followed still"

    show(DaemonSource(Client(served.path)), look)


def test_long_work_on_a_store_of_this_process_shows_its_step(tmp_path: Path) -> None:
    source = opened(str(tmp_path / "own.db"))

    async def look(shown: Shown) -> None:
        await shown.until_shown("no daemon, read")
        with writer_held(source._embedded._opened.store) as free:
            await recover(shown, free.set)

    show(source, look)


def test_work_that_is_called_off_in_a_step_says_nothing_more(served: Served) -> None:
    async def look(shown: Shown) -> None:
        console = shown.console
        await shown.until_shown("live, read")
        with writer_held(served.store):
            console.run_worker(partial(console.area.ask_long, "Recover", "memory.recover"))
            await shown.until_shown(WAITS)
            await shown.press("escape")
            await shown.until_shown("Recover: called off.")
        await shown.press("r")
        await shown.until_shown("live, read")
        assert "Step" not in shown.text

    show(DaemonSource(Client(served.path)), look)


@pytest.mark.parametrize("calls_off", [False, True])
def test_an_erasure_shows_how_many_turns_are_gone_and_is_called_off(
    served: Served, calls_off: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Client(served.path) as client:
        pumps(client, 8)

        async def look(shown: Shown) -> None:
            await begin(shown)
            await shown.until_shown("local/workshop")
            held = HeldErasure(monkeypatch)
            await shown.press("x")
            await shown.until_shown("which turns?")
            await type_in(shown, "all")
            await shown.until_shown("8 turns, 8 messages", "why?")
            await type_in(shown, "asked")
            await shown.until_shown("Delete for good?")
            await shown.press("y")
            await shown.until_shown("Step 2 of 3: erase", "2 of 8", "so far", "esc calls it off")
            assert held.begun.wait(PATIENCE_S)
            if calls_off:
                await shown.press("escape")
                await shown.until_shown("It was called off.")
            held.free.set()
            if not calls_off:
                await shown.until_shown("Delete for good: done", "8 turns, 8 messages", "Erased: no byte")

        show(DaemonSource(Client(served.path)), look, size=(120, 40))

        def newest() -> str:
            return client.read_event_log(newest_first=True, limit=1).rows[0].event

        until(lambda: (newest() == "erasure_called_off") is calls_off, "the end of the erasure")
        left = [text for text in contents(client).values() if text != "raw_deleted"]
        assert left == ([f"Pump {number} is loud." for number in range(5, 9)] if calls_off else [])


def test_a_caller_that_may_not_be_told_is_not_refused_for_it(served: Served) -> None:
    with Client(served.path) as operator:
        auth = device(operator, "transcript")

    async def look(shown: Shown) -> None:
        console = shown.console
        await shown.until_shown("Could not read: forbidden")
        await shown.until(lambda: served.dispatcher.hub.count == 1)
        before = served.refusals()
        work = console.run_worker(partial(console.area.ask_long, "Look", "transcript.repair"))
        assert (await work.wait()).clean
        assert served.refusals() == before

    show(DaemonSource(Client(served.path, auth=auth)), look)


@pytest.mark.parametrize(
    ("step", "plain", "lines"),
    [
        (ProgressStep("recall_index", 7, 9, 410, 1000), False,
         ["Step 7 of 9: recall index", "██████░░░░░░░░░░  41%  410 of 1,000"]),
        (ProgressStep("recall_index", 7, 9, 410, 1000), True,
         ["Step 7 of 9: recall index", "######..........  41%  410 of 1,000"]),
        (ProgressStep("pages", 8, 9), False, ["Step 8 of 9: pages", ""]),
        (ProgressStep("gather", 1, 2, 12_000), False, ["Step 1 of 2: gather", "12,000 so far"]),
        (ProgressStep("rows", 1, 1, 12, 10), True, ["Step 1 of 1: rows", "################  100%  12 of 10"]),
        (ProgressStep("a\x1b[2Jb", 1, 1), True, ["Step 1 of 1: a\\x1b[2Jb", ""]),
    ],
)  # fmt: skip
def test_a_step_in_words(step: ProgressStep, plain: bool, lines: list[str]) -> None:
    assert progress_lines(step, plain) == lines
