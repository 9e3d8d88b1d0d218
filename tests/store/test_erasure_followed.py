"""Erasures beside a process that follows the log: no reader keeps it aside, and the writer keeps to its pace."""

from __future__ import annotations

import threading

import pytest

from beetle.runtime.areas.evidence import lifecycle as waiting
from beetle.store.engine import erasing
from beetle.store.engine.follower import Follower
from tests.store.conftest import commit, held_snapshot, lifecycle, open_runtime, store_of, turn, wait_for_erasures
from tests.store.test_erasure import assert_gone

PATIENCE_S = 60.0
YEAR_US = 31_557_600_000_000


class Runner:
    """Who runs a process that follows: it steps aside as soon as it is asked, and in again."""

    def __init__(self, follower: Follower) -> None:
        self.asked: list[bool] = []
        self._changed = threading.Condition()
        self._follower = follower
        follower.kept_until = lambda now: now + YEAR_US
        follower.on_ask = self.ask
        follower.attached = True

    def ask(self, aside: bool) -> None:
        with self._changed:
            self.asked.append(aside)
            self._follower.attached = not aside
            self._changed.notify_all()

    def wait_for(self, times: int) -> None:
        """Until it was asked so often."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.asked) >= times, PATIENCE_S), self.asked


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(erasing, "ASIDE_S", 0.01)
    monkeypatch.setattr(erasing, "AGAIN_S", 0.01)
    monkeypatch.setattr(waiting, "ERASURE_WAIT_S", 0.0)


def test_a_follower_goes_on_while_a_reader_holds_the_log_and_the_erasure_is_done_later(path: str) -> None:
    with open_runtime(path) as memory:
        runner = Runner(store_of(memory).follower)
        commit(memory, turn("t1", "the cursed word is qzqzqzqzqz"))
        with held_snapshot(memory):
            assert lifecycle(memory, "delete_raw", "t1").erasure == "pending"
            runner.wait_for(4)
            assert runner.asked[:4] == [True, False, True, False], "aside, in again, and the same once more"
            assert store_of(memory).writer.erasures == 1
        wait_for_erasures(memory)
        assert runner.asked[-1] is False
        assert_gone(path, ["qzqzqzqzqz"])


def test_the_writer_keeps_to_the_followers_pace_while_an_erasure_waits(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(erasing, "RESENT_BYTES_PER_S", 1)
    with open_runtime(path) as memory:
        follower = store_of(memory).follower
        Runner(follower)
        commit(memory, turn("t1", "one"), turn("t2", "two"))
        lifecycle(memory, "delete_raw", "t1")
        wait_for_erasures(memory)
        assert lifecycle(memory, "delete_raw", "t2").erasure == "pending", "the store would be sent again too soon"
        follower.soft, follower.hard = 1, 2**40
        before = follower.waits
        # A wait is behind the acknowledgement: it is over when the next write begins.
        for number in range(3):
            commit(memory, turn(f"more-{number}", "more"))
        assert follower.waits > before
