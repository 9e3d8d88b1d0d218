"""When a daemon looks for cyclic garbage. In a process of its own each: what is frozen stays frozen."""

from __future__ import annotations

import subprocess
import sys

import pytest

BEGIN = """
import gc, weakref
from beetle.garbage import MOST_PUT_OFF, Garbage

class Node:
    pass

def cycle():
    one = Node()
    one.itself = one
    return weakref.ref(one)

def work():
    gc.collect(1)

gc.set_threshold(50_000)
"""
LATER = """
before = cycle()
garbage = Garbage(lambda: False)
assert before() is not None, "a start waits for no collection"
assert garbage.look() and before() is None
frozen = gc.get_freeze_count()
assert frozen > 1_000
after = cycle()
assert not garbage.look(), "nothing was done since"
work()
assert garbage.look() and after() is None
assert gc.get_freeze_count() == frozen, "what a start has made is not walked again"
"""
BUSY = """
garbage = Garbage(lambda: True)
one = cycle()
work()
assert [garbage.look() for _ in range(MOST_PUT_OFF + 1)] == [False] * MOST_PUT_OFF + [True]
assert one() is None
"""


@pytest.mark.parametrize("program", [LATER, BUSY], ids=["later", "busy"])
def test_garbage(program: str) -> None:
    done = subprocess.run([sys.executable, "-c", BEGIN + program], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
