"""Memory that was freed between other memory is given back."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import pytest

from beetle import heap

FREED_BETWEEN = """
from beetle.heap import give_back
def own():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("RssAnon"))
kept = []
for _ in range(800):
    many = [bytes(4000) for _ in range(25)]
    kept.append(bytes(600))  # behind what is freed
    del many
held = [bytes(4000) for _ in range(20_000)]
between = held[::100]
del held
before = own()
give_back()
assert own() < before - 40_000, (before, own())
assert sum(map(len, between)) == 200 * 4000
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="this C library has no malloc_trim")
def test_pages_that_were_freed_between_others_are_given_back() -> None:
    subprocess.run([sys.executable, "-c", FREED_BETWEEN], check=True)


def test_it_is_looked_at_once_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not heap.Heap().look()
    monkeypatch.setattr(heap, "EVERY_S", 0.0)
    looked = heap.Heap()
    assert looked.look()
    monkeypatch.undo()
    assert looked.look() and not looked.look()
