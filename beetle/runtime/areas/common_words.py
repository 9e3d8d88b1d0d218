"""Keeping the bitmaps of common words: a block of messages at a time, beside whoever writes meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from beetle.contracts.errors import StoreBudgetExceeded
from beetle.runtime.pipeline.invocation import Invocation
from beetle.store import common_words, word_bitmaps
from beetle.store.engine.write_transaction import WriteTransaction


def write_missing(invocation: Invocation, look: Callable[[Invocation], None]) -> int:
    """Write the bitmaps of full blocks that have none; of how many.

    They are made in reads of a few words, and written if nothing of the block has changed since it was marked: no
    writer waits for more than such a read. `look` is called between two.
    """
    store = invocation.shared.store
    with invocation.reading(heavy=True) as tx:
        blocks, words = common_words.unlisted(tx)
    written = 0
    for block in blocks:
        token = invocation.new_id("b").encode()
        store.write(partial(common_words.begin, block=block, token=token), grows=False)
        rows: list[tuple[int, str, bytes]] = []
        for first in range(0, len(words), common_words.WORDS_AT_ONCE):
            look(invocation)
            with invocation.reading(heavy=True) as tx:
                rows += common_words.made(tx, block, words[first : first + common_words.WORDS_AT_ONCE])
        try:
            written += store.write(partial(common_words.end, block=block, token=token, rows=rows))
        except StoreBudgetExceeded:
            return written  # what is left of the room is for what is committed
    return written


def drop_wrong(invocation: Invocation, look: Callable[[Invocation], None]) -> int:
    """Drop the bitmaps of each block that has one which is not what the index has; of how many. The next night writes
    them anew."""
    with invocation.reading(heavy=True) as tx:
        blocks = {block for block, _ in common_words.wrong(tx, partial(look, invocation))}

    def drop(tx: WriteTransaction) -> None:
        word_bitmaps.drop(tx, blocks)
        word_bitmaps.drop_outside(tx)

    if blocks:
        invocation.shared.store.write(drop, grows=False)
    return len(blocks)
