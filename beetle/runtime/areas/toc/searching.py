"""toc.search_node, toc.search_children: by the one recall and its ranking."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from beetle.contracts.errors import NotFound, PrivacyDenied
from beetle.contracts.toc import (
    TOC_FIELDS,
    TocField,
    TocFound,
    TocMatch,
    TocNode,
    TocSearchChildrenReport,
    TocSearchChildrenRequest,
    TocSearchNodeReport,
    TocSearchNodeRequest,
)
from beetle.domain.lexical import parse_query, stem_of
from beetle.domain.ranking import Candidate, rank
from beetle.domain.toc.periods import DAY_MS
from beetle.runtime.areas.recall.search import find
from beetle.runtime.areas.toc.paths import Paths, together
from beetle.runtime.areas.toc.reading import limit_of
from beetle.runtime.areas.toc.showing import shown
from beetle.runtime.pipeline.handlers import Handler, Read
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.planes.evidence import NAME
from beetle.runtime.planes.plane import Search
from beetle.store import evidence, toc
from beetle.store.engine.transaction import Reading
from beetle.store.toc import LEVELS, SEGMENT, NodeRow

DEFAULT_LIMIT = 10
"""What a limit of 0 or less means."""
HITS = 60
"""Hits of recall that nodes are found by."""
WEEK_MS = 7 * DAY_MS
AUDIT = "operator_audit"


def search_node(invocation: Invocation, request: TocSearchNodeRequest, tx: Reading) -> TocSearchNodeReport:
    """The texts of one node, ranked as recall ranks.

    Raises:
        NotFound: there is no such node.
    """
    _check_view(invocation)
    space = evidence.find_space(tx, invocation.space_id)
    row = None if space is None else toc.node(tx, space, request.node_id)
    if space is None or row is None:
        raise NotFound(kind="node", name=request.node_id, listing="`beetle query root` lists the years")
    node = shown(invocation.key, tx, space, [row])[0]
    found = matches(node, request.query, request.fields or TOC_FIELDS)
    limit = limit_of(invocation, request.limit, DEFAULT_LIMIT)
    return TocSearchNodeReport(matched=bool(found), matches=tuple(found[:limit]), has_more=len(found) > limit)


def matches(node: TocNode, query: str, fields: Iterable[TocField]) -> list[TocMatch]:
    """The texts of a node that hold words of a query, best first."""
    parsed = parse_query(query)
    stems = [stem_of(term) for term in parsed.terms]
    texts = [each for name in fields for each in _texts(node, name)]
    candidates: list[Candidate] = []
    for place, (_, text, _) in enumerate(texts):
        held = sum(stem in text.lower() for stem in stems)
        if held:
            candidates.append(Candidate(plane="toc", source_id=str(place), text=text, at_us=0, bm25=held / len(stems)))
    ranked = rank(parsed, candidates)
    return [
        TocMatch(field=field, text=text, grip_ids=grip_ids, score=round(each.score, 4))
        for each in ranked
        for field, text, grip_ids in [texts[int(each.candidate.source_id)]]
    ]


def _texts(node: TocNode, name: TocField) -> list[tuple[TocField, str, tuple[str, ...]]]:
    if name == "bullets":
        return [(name, each.text, each.grip_ids) for each in node.bullets if each.text]
    if name == "keywords":
        return [(name, each, ()) for each in node.keywords or ()]
    text = node.title if name == "title" else node.summary
    grip_ids = tuple(each for bullet in node.bullets for each in bullet.grip_ids) if name == "summary" else ()
    return [(name, text, grip_ids)] if text else []


def search_children(invocation: Invocation, request: TocSearchChildrenRequest, tx: Reading) -> TocSearchChildrenReport:
    """Nodes by the hits of recall below them.

    Raises:
        NotFound: there is no such parent.
    """
    _check_view(invocation)
    space = evidence.find_space(tx, invocation.space_id)
    parent = None if space is None or request.parent_id is None else toc.node(tx, space, request.parent_id)
    if request.parent_id is not None and parent is None:
        raise NotFound(kind="node", name=request.parent_id, listing="`beetle query root` lists the years")
    if space is None:
        return TocSearchChildrenReport(nodes=())
    usual = 1 if parent is None else min(SEGMENT, parent.level + 1)
    level = usual if request.child_level is None else LEVELS[request.child_level]
    scored = _scored(invocation, tx, space, request.query, parent, level)
    limit = limit_of(invocation, request.limit, DEFAULT_LIMIT)
    rows = [row for row, _ in scored[:limit]]
    best = scored[0][1] if scored else 1.0
    nodes = tuple(
        TocFound(
            node=node,
            score=round(score / best, 4),
            matches=tuple(matches(node, request.query, ("title", "bullets", "keywords"))),
        )
        for node, (_, score) in zip(shown(invocation.key, tx, space, rows), scored, strict=False)
    )
    return TocSearchChildrenReport(nodes=nodes, has_more=len(scored) > limit)


def _scored(
    invocation: Invocation, tx: Reading, space: int, query: str, parent: NodeRow | None, level: int
) -> list[tuple[NodeRow, float]]:
    """Nodes of a level below a parent with the scores of their hits, best first."""
    since = until = None
    if parent is not None:
        # A week at the edge of a month or year reaches out of it.
        since, until = (parent.starts - WEEK_MS) * 1000, (parent.ends + WEEK_MS) * 1000 + 999
    search = Search(query, HITS, invocation.viewer(), planes=(NAME,), since=since, until=until)
    paths = Paths(tx, space)
    scores: dict[int, list[float]] = {}
    rows: dict[int, NodeRow] = {}
    for hit in find(invocation, tx, search).hits:
        path = paths.of(hit)
        row = None if path is None else path.at(level)
        if path is None or row is None or (parent is not None and all(each.key != parent.key for each in path.rows)):
            continue
        rows[row.key] = row
        scores.setdefault(row.key, []).append(hit.score)
    summed = {key: together(found) for key, found in scores.items()}
    order = sorted(rows, key=lambda key: (-summed[key], -rows[key].starts, rows[key].node_id))
    return [(rows[key], summed[key]) for key in order]


def _check_view(invocation: Invocation) -> None:
    if invocation.view == AUDIT:
        raise PrivacyDenied(
            reason=f"the view {AUDIT} shows no content to search",
            hint="ask as a principal with another view",
            view=AUDIT,
        )


HANDLERS: Mapping[str, Handler] = {
    "toc.search_node": Read(search_node),
    "toc.search_children": Read(search_children),
}
