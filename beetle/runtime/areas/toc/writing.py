"""What the configured model writes of segments: titles, bullets and keywords, in place of the extractive ones.

No transaction is open while the model is asked. What is kept of its answer rests on events that were live, shared and
the same when it is kept; until then, and where there is no answer, the extractive summary stands.
"""

from __future__ import annotations

import hashlib
import json
import logging
import time

from beetle.contracts.errors import InvalidRequest
from beetle.domain.toc.periods import ulid
from beetle.domain.toc.writing import Bullet, Question, Written, question_of, written_of
from beetle.named_tuple import NamedTuple
from beetle.runtime.areas.toc.building import (
    WORD_FIELDS,
    Counted,
    DayCuts,
    SegmentMessages,
    is_named,
    segment_texts,
    stale_parent,
)
from beetle.runtime.host.held_back import HeldBack
from beetle.runtime.host.model import ModelClient
from beetle.runtime.host.model_failure import ModelFailed
from beetle.runtime.pipeline.invocation import Invocation
from beetle.store import toc, toc_written
from beetle.store.engine.transaction import Reading, Writing
from beetle.store.engine.write_transaction import WriteTransaction
from beetle.store.toc import ConversationPlace, GripRow, NodeRow

log = logging.getLogger("beetle.model")

ROWS_AT_ONCE = 64
LATEST = 2**63 - 1


class Asking(NamedTuple):
    """A segment to ask about."""

    row: NodeRow
    segment: SegmentMessages
    question: Question | None


def write(invocation: Invocation) -> int:
    """Ask the model about the segments about which it was not asked yet, the newest first; how many it has written.

    Raises:
        ModelFailed: it gave no answer, or none that can be used. The run ends; what was written before stays.
    """
    model = invocation.shared.model
    if model is None or not model.summarizes:
        return 0
    done, before, cuts = 0, LATEST, DayCuts()
    while True:
        invocation.check("the model is asked about the next segment")
        if invocation.deadline is not None and invocation.deadline - time.monotonic() < model.timeout_s:
            return done
        with invocation.reading(heavy=False) as tx:
            before, asking = _next(invocation, tx, before, cuts, model.held_back)
        if asking is None:
            return done
        done += _write_one(invocation, model, asking)
        invocation.work.rest()


def _next(
    invocation: Invocation, tx: Reading, before: int, cuts: DayCuts, held_back: HeldBack
) -> tuple[int, Asking | None]:
    """The next segment with a key below one, and its key; no segment where none is left."""
    while rows := toc_written.unwritten(tx, before, ROWS_AT_ONCE):
        for row in rows:
            before = row.key
            segment = cuts.segment(tx, row)
            if segment is None or held_back.holds(segment.digest) or _waits(tx, row):
                continue
            return before, Asking(row, segment, question_of(*segment_texts(invocation.key, tx, row, segment)))
    return before, None


def _write_one(invocation: Invocation, model: ModelClient, asking: Asking) -> bool:
    """Ask about one segment and keep the answer, unless its events have changed meanwhile."""
    written = Written("", (), ())
    if asking.question is not None:
        try:
            written = _asked(model, asking.question)
        except ModelFailed as failure:
            if failure.counts:
                model.held_back.put(asking.segment.digest)
            raise

    def keep(tx: WriteTransaction) -> bool:
        return _keep(tx, asking, written)

    return invocation.shared.store.write(keep, grows=False, by=invocation.caller.name)


def _asked(model: ModelClient, question: Question) -> Written:
    try:
        written = written_of(model.ask(question.prompt), question)
    except InvalidRequest:  # its message may quote the answer
        written = None
    if written is None:
        log.warning(
            "the model %s wrote nothing that the turns of a segment bear",
            model.name,
            extra={"event": "summary_not_borne"},
        )
        model.failed()
        raise ModelFailed("wrong_answer")
    return written


def _waits(tx: Reading, row: NodeRow) -> bool:
    """Whether events of a segment's day, or of those before it that are read with it, have changed."""
    assert row.conversation is not None and row.day is not None
    return any(toc.waits(tx, row.conversation, day) for day in (row.day - 1, row.day))


def _keep(tx: Writing, asking: Asking, written: Written) -> bool:
    row = toc.by_key(tx, asking.row.key)
    if row is None or row.node_id != asking.row.node_id or _waits(tx, row):
        return False
    if row.stale or toc.digest_of(tx, row.key) != asking.segment.digest:
        return False
    assert row.conversation is not None
    place = toc.place_of(tx, row.conversation)
    if place is None:
        return False
    named: list[Counted] = [[*each.place, each.times, 1] for each in written.keywords]
    words = [*named, *(each for each in json.loads(row.words) if not is_named(each))]
    keywords = [each[: WORD_FIELDS - 1] for each in named] or json.loads(row.keywords)
    extractive: list[str] = json.loads(row.bullets)
    toc.put(tx, row, extractive, words, keywords, other=True)
    kept = toc.grips(tx, row.space, extractive)
    grips = [kept[grip_id] for grip_id in extractive if grip_id in kept]
    toc.put_grips(tx, row.space, row.key, grips)
    toc.put_grips(tx, row.space, row.key, [*grips, *(_grip(tx, place, row.key, each) for each in written.bullets)])
    toc_written.put_title(tx, row.key, written.title)
    stale_parent(tx, row)
    return True


def _grip(tx: Reading, place: ConversationPlace, segment: int, bullet: Bullet) -> GripRow:
    """The grip of a bullet, with the same id wherever the same is written of the same events."""
    at, first = toc.named(tx, bullet.place.message)
    _, last = toc.named(tx, bullet.last)
    parts = (place.space_id, place.channel_id, place.conversation_id, first, last, bullet.text)
    digest = hashlib.sha256(repr(("written", *parts)).encode(errors="surrogatepass")).digest()
    return GripRow(
        f"grip:{ulid(at // 1000, digest)}", segment, bullet.place.message, bullet.last, bullet.place.begin,
        bullet.place.end, bullet.text,
    )  # fmt: skip
