"""Readers of a small device: while others ask, a principal has one of them, whatever it had before."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from beetle.store.engine.store import Store
from tests.adversary.crowd import PATIENCE_S
from tests.store.conftest import open_runtime, store_of
from tests.transports.serving import until


class Reading:
    """A read on a thread of its own, from `begun` until it is let go."""

    def __init__(self, store: Store, by: str) -> None:
        self.begun, self._go = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, args=(store, by))
        self._thread.start()

    def _run(self, store: Store, by: str) -> None:
        with store.read(by=by):
            self.begun.set()
            assert self._go.wait(PATIENCE_S)

    def end(self) -> None:
        self._go.set()
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()


@pytest.mark.parametrize("restored", [False, True])
def test_a_principal_among_others_has_one_reader_and_the_rest_are_theirs(tmp_path: Path, restored: bool) -> None:
    with open_runtime(tmp_path / "store.db", readers=2) as memory, ExitStack() as stack:
        store: Any = store_of(memory)
        if restored:
            made = memory.create_snapshot().snapshot.snapshot_id
            memory.restore_snapshot(snapshot_id=made)
        crowd = memory._opened._opened.dispatcher.crowd
        until(lambda: not crowd.is_crowded("greedy"), "nobody has asked just now")
        alone = [Reading(store, "greedy") for _ in range(2)]
        assert all(each.begun.wait(PATIENCE_S) for each in alone)
        for each in alone:
            each.end()
        for by in ("greedy", "quiet", "operator"):
            stack.enter_context(crowd.asking(by))
        first, second = Reading(store, "greedy"), None
        assert first.begun.wait(PATIENCE_S)
        second = Reading(store, "greedy")
        until(lambda: store.readers.turns.waiting == 1, "the second one waits")
        others = [Reading(store, by) for by in ("quiet", "operator")]
        assert all(each.begun.wait(PATIENCE_S) for each in others)
        assert not second.begun.is_set()
        first.end()
        assert second.begun.wait(PATIENCE_S)
        for each in (second, *others):
            each.end()
