"""From hits of recall to the nodes that lead to them, and the way from years down to segments."""

from __future__ import annotations

from collections.abc import Sequence

from beetle.contracts.codec import replace
from beetle.contracts.memory import RecallHit
from beetle.named_tuple import NamedTuple
from beetle.runtime.pipeline.invocation import Invocation
from beetle.store import evidence, toc
from beetle.store.engine.transaction import Reading
from beetle.store.toc import SEGMENT, NodeRow

PATH_HITS = 60
"""Hits of recall that nodes are weighed by."""
BEAM = 8
"""So many nodes of each level are followed further down."""
LATER_HITS = 0.25
"""What each further hit of a node adds of its score: many weak ones do not outdo a good one."""


class Path(NamedTuple):
    """The nodes above a message, from the year down to its segment."""

    rows: tuple[NodeRow, ...]

    def at(self, level: int) -> NodeRow | None:
        """Its node of a level."""
        return next((row for row in self.rows if row.level == level), None)


class Paths:
    """Finds the nodes above messages; each node is read once."""

    def __init__(self, tx: Reading, space: int) -> None:
        self._tx = tx
        self._space = space
        self._rows: dict[int, NodeRow | None] = {}

    def of(self, hit: RecallHit) -> Path | None:
        """The nodes that lead to a hit of evidence, None where none does yet."""
        if hit.conversation is None or hit.message_id is None:
            return None
        where = hit.conversation
        message = toc.message_named(self._tx, self._space, where.channel_id, where.conversation_id, hit.message_id)
        key = None if message is None else toc.segment_of(self._tx, self._space, message)
        rows: list[NodeRow] = []
        while key is not None:
            if key not in self._rows:
                self._rows[key] = toc.by_key(self._tx, key)
            row = self._rows[key]
            # A damaged parent may be anything, also what lies below.
            if row is None or row.space != self._space or (rows and row.level >= rows[-1].level):
                return None
            rows.append(row)
            key = row.parent
        return Path(tuple(reversed(rows))) if rows else None


def together(scores: Sequence[float]) -> float:
    """The best score, and a share of each that follows."""
    ordered = sorted(scores, reverse=True)
    return sum(score * LATER_HITS**place for place, score in enumerate(ordered))


def led_to(invocation: Invocation, tx: Reading, hits: Sequence[RecallHit], limit: int) -> tuple[RecallHit, ...]:
    """The hits below the best nodes of each level, then the others; each with the nodes that lead to it.

    The best years are followed to their best months, and so on down to segments, as a reader would.
    """
    space = evidence.find_space(tx, invocation.space_id)
    if space is None:
        return tuple(hits[:limit])
    paths = Paths(tx, space)
    found = [(hit, paths.of(hit)) for hit in hits]
    within = [(hit, path) for hit, path in found if path is not None]
    for level in range(1, SEGMENT + 1):
        scores: dict[int, list[float]] = {}
        for hit, path in within:
            row = path.at(level)
            if row is not None:
                scores.setdefault(row.key, []).append(hit.score)
        best = sorted(scores, key=lambda key: -together(scores[key]))[:BEAM]
        within = [(hit, path) for hit, path in within if (row := path.at(level)) is not None and row.key in best]
    followed = {hit.ref for hit, _ in within}
    # What has no place in time, such as a fact, keeps its own.
    order = sorted(found, key=lambda each: each[1] is not None and each[0].ref not in followed)
    return tuple(
        hit if path is None else replace(hit, toc_nodes=tuple(row.node_id for row in path.rows))
        for hit, path in order[:limit]
    )
