"""Nodes of the table of contents as they are shown: their places filled with what may be seen now."""

from __future__ import annotations

import json
from collections.abc import Sequence

from beetle.contracts.common import ConversationRef
from beetle.contracts.toc import TOC_LEVELS, TocBullet, TocNode
from beetle.domain.toc.periods import clock_title, title_of
from beetle.domain.toc.summary import title_from
from beetle.runtime.areas.toc.building import bullet_text
from beetle.runtime.planes.proof import is_whole
from beetle.store import toc, toc_written
from beetle.store.engine.transaction import Reading
from beetle.store.toc import SEGMENT, NodeRow, TextRow

CHILD_IDS = 256
"""So many children stand in a node; `toc.browse` pages through all of them."""


def shown(key: bytes, tx: Reading, space: int, rows: Sequence[NodeRow]) -> list[TocNode]:
    """Some nodes of a space, whatever may be seen of them now; read together."""
    ids = [grip_id for row in rows for grip_id in json.loads(row.bullets)]
    segments = [row.key for row in rows if row.level == SEGMENT]
    written = toc_written.ids(tx, segments)
    grips = toc.grips(tx, space, [*ids, *(grip_id for each in written.values() for grip_id in each)])
    messages = {each.message for each in grips.values()} | {each.last_message for each in grips.values()}
    messages |= {int(place[0]) for row in rows for place in json.loads(row.keywords)}
    texts = {each.message: each for each in toc.texts(tx, space, sorted(messages)) if is_whole(key, each)}
    titles = toc_written.titles(tx, segments)
    return [
        _shown(tx, row, written.get(row.key) or json.loads(row.bullets), grips, texts, titles.get(row.key))
        for row in rows
    ]


def _shown(
    tx: Reading,
    row: NodeRow,
    ids: Sequence[str],
    grips: dict[str, toc.GripRow],
    texts: dict[int, TextRow],
    written_title: str | None,
) -> TocNode:
    bullets: list[TocBullet] = []
    for grip_id in (each for each in ids if each in grips):
        text = bullet_text(grips[grip_id], texts)
        if text is not None:
            bullets.append(TocBullet(text=text, grip_ids=(grip_id,)))
    keywords = _keywords(row, texts)
    below = toc.child_ids(tx, row.key, CHILD_IDS + 1) if row.level < SEGMENT else []
    where = None if row.conversation is None else toc.conversation_of(tx, row.space, row.conversation)
    return TocNode(
        node_id=row.node_id,
        level=TOC_LEVELS[row.level - 1],
        title=_title(row, keywords, written_title),
        summary=" ".join(each.text or "" for each in bullets) or None,
        bullets=tuple(bullets),
        keywords=keywords,
        child_node_ids=tuple(below[:CHILD_IDS]),
        start_time_ms=row.starts,
        end_time_ms=row.ends,
        version=row.version,
        has_more_children=len(below) > CHILD_IDS,
        conversation=None if where is None else ConversationRef(channel_id=where[0], conversation_id=where[1]),
    )


def _keywords(row: NodeRow, texts: dict[int, TextRow]) -> tuple[str, ...]:
    found: list[str] = []
    for message, begin, end in json.loads(row.keywords):
        text = texts.get(message)
        if text is not None:
            found.append(text.content[: text.length][begin:end].lower())
    return tuple(dict.fromkeys(each for each in found if each))


def _title(row: NodeRow, keywords: Sequence[str], written: str | None) -> str:
    if row.level < SEGMENT:
        return title_of(row.node_id, row.starts)
    return written or title_from(keywords) or clock_title(row.starts, row.ends)
