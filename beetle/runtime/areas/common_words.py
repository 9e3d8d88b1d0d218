"""Keeping the bitmaps of common words: a block of messages at a time, beside whoever writes meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from beetle.runtime.pipeline.invocation import Invocation
from beetle.store import common_words, word_bitmaps


def write_missing(invocation: Invocation, look: Callable[[], None]) -> int:
    """Write the bitmaps of full blocks that have none; of how many.

    They are made in a read, and written if nothing of the block has changed since it was marked: no writer waits for
    more than the writing. `look` is called between two of them.
    """
    store = invocation.shared.store
    with invocation.reading(heavy=True) as tx:
        blocks, words = common_words.unlisted(tx)
    written = 0
    for block in blocks:
        token = invocation.new_id("b").encode()
        store.write(partial(common_words.begin, block=block, token=token), grows=False)
        with invocation.reading(heavy=True) as tx:
            rows = common_words.made(tx, block, words, look)
        written += store.write(partial(common_words.end, block=block, token=token, rows=rows))
    return written


def drop_wrong(invocation: Invocation, look: Callable[[], None]) -> int:
    """Drop the bitmaps of each block that has one which is not what the index has; of how many. The next night writes
    them anew."""
    with invocation.reading(heavy=True) as tx:
        blocks = {block for block, _ in common_words.wrong(tx, look)}
    if blocks:
        invocation.shared.store.write(lambda tx: word_bitmaps.drop(tx, blocks), grows=False)
    return len(blocks)
