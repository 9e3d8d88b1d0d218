"""Keys reach the console one after the other, however long it is busy with one."""

from __future__ import annotations

import asyncio
import threading
import time

from textual.app import App
from textual.events import Key

from beetle_tui.driver import TAKEN_SECONDS, TerminalDriver


def handed_over(driver: TerminalDriver) -> threading.Event:
    """The driver hands a key over of which nobody tells that it was taken; set when the next one may come."""
    done = threading.Event()

    def hand_over() -> None:
        driver._hand_over(Key("a", "a"))
        done.set()

    threading.Thread(target=hand_over, daemon=True).start()
    return done


def test_a_key_is_waited_for_as_long_as_the_console_is_busy() -> None:
    async def run() -> None:
        async with App[None]().run_test() as pilot:
            done = handed_over(TerminalDriver(pilot.app))
            time.sleep(3 * TAKEN_SECONDS)  # what the console is busy with
            assert not done.is_set()
            assert await asyncio.to_thread(done.wait, 30)

    asyncio.run(run())
