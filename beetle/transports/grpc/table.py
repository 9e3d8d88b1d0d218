"""Which operation an RPC is, and how its fields are called there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from beetle.contracts.errors import InvalidRequest
from beetle.named_tuple import NamedTuple

Plain = Mapping[str, Any]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NOTHING: Mapping[str, Any] = {}


def _as_it_is(report: Plain, asked: Plain) -> Plain:
    del asked
    return report


class Rpc(NamedTuple):
    """One RPC. Fields that neither map names keep their name.

    `always` are fields of the request that are sent on although they are 0 or empty. `fields` maps the request's to
    the operation's, None leaves one out; `given` are arguments that no field has. `ask` makes other fields of the
    request's, `answer` the message's of the report's and the request's. `absent` answers in place of `not_found`, its
    texts filled from the request; `absent_if_empty` is the field that may be empty then.
    """

    name: str
    operation: str
    always: frozenset[str] = frozenset()
    fields: Mapping[str, str | None] = NOTHING
    given: Plain = NOTHING
    ask: Callable[[Plain], Plain] = dict
    answer: Callable[[Plain, Plain], Plain] = _as_it_is
    absent: Plain | None = None
    absent_if_empty: str = ""


def _page(report: Plain, asked: Plain) -> Plain:
    del asked
    return {**report, "continuation_token": report.get("next_cursor")}


def _within(asked: Plain) -> Plain:
    """A range of milliseconds, its end exclusive, as the times of a recall, whose end is inclusive."""
    times = asked.get("time_filter")
    if times is None:
        return asked
    ends = {"since": _time(times["start_ms"]), "until": _time(times["end_ms"] - 1)}
    return {**{name: value for name, value in asked.items() if name != "time_filter"}, **ends}


def _time(milliseconds: int) -> str:
    try:
        return (EPOCH + timedelta(milliseconds=milliseconds)).isoformat()
    except OverflowError:
        raise InvalidRequest(
            reason=f"{milliseconds} ms is no time of the years 1 to 9999 - at $.args.time_filter",
            hint="times are milliseconds since the epoch",
            path="$.args.time_filter",
        ) from None


def _milliseconds(at: str | None) -> int | None:
    return None if at is None else int(datetime.fromisoformat(at).timestamp() * 1000)


def _hit(hit: Plain) -> Plain:
    return {
        "doc_id": hit["ref"],
        "doc_type": hit["plane"],
        "score": hit["score"],
        "text_preview": hit.get("excerpt"),
        "timestamp_ms": _milliseconds(hit.get("at")),
        "source_layer": "bm25",
    }


def _results(report: Plain, asked: Plain) -> Plain:
    found = [_hit(hit) for hit in report["hits"]]
    explanation = {
        "intent": asked.get("intent_override"),
        "tier": "keyword",
        "mode": "sequential",
        "candidates_considered": LAYERS,
        "winner": LAYERS[0],
        "why_winner": "one recall ranks every plane: " + ", ".join(_signals(report["hits"])),
        "total_time_ms": round(report["timings_ms"]["total"]),
    }
    return {"results": found, "explanation": explanation, "has_results": bool(found), "layers_attempted": LAYERS}


def _signals(hits: Sequence[Plain]) -> list[str]:
    """The names of the signals that ranked the best hit."""
    return list(hits[0]["why"]) if hits else ["nothing was found"]


def _matches(report: Plain, asked: Plain) -> Plain:
    del asked
    return {
        "matches": [_hit(hit) for hit in report["hits"]],
        "mode_used": "bm25_only",
        "bm25_available": True,
        "vector_available": False,
        "index_status": NO_VECTORS,
    }


def _no_vectors(report: Plain, asked: Plain) -> Plain:
    del report, asked
    return NO_VECTORS


def _layers(report: Plain, asked: Plain) -> Plain:
    """What the catalog shows of recall and the table of contents, as layers."""
    del asked
    shown = {name: each["visible"] for name, each in report["capabilities"].items()}
    words, contents = shown.get("recall", False), shown.get("toc", False)
    return {
        "tier": "keyword" if words else "agentic" if contents else "unspecified",
        "bm25_status": {"layer": "bm25", "enabled": words, "healthy": words},
        "vector_status": {"layer": "vector", "message": "recall here needs no vectors"},
        "topics_status": {"layer": "topics", "message": "SearchChildren finds periods by their keywords"},
        "agentic_status": {"layer": "agentic", "enabled": contents, "healthy": contents},
    }


def _repetitions(report: Plain, asked: Plain) -> Plain:
    """Deliveries of captured turns, and how many of them were of turns that were there."""
    del asked
    twice = sum(host["duplicates"] for host in report["hosts"])
    turns = sum(host["turns"] for host in report["hosts"])
    return {"enabled": True, "threshold": 1.0, "events_checked": turns + twice, "events_deduplicated": twice}


def _of_node(report: Plain, asked: Plain) -> Plain:
    return {**report, "node_id": asked["node_id"]}


def _nodes(report: Plain, asked: Plain) -> Plain:
    del asked
    found = [{**each["node"], "matches": each["matches"], "relevance_score": each["score"]} for each in report["nodes"]]
    return {"results": found, "has_more": report["has_more"]}


def _done(report: Plain, asked: Plain) -> Plain:
    del asked
    return {"success": report["success"]}


LAYERS = ("bm25",)
NO_VECTORS: Plain = {"available": False}
NO_JOB: Plain = {"success": False, "error": "Job not found: {job_name}"}
MANY: Plain = {"limit": 1000}
NO_TOKENS: Mapping[str, str | None] = {"token_budget": None}
TEN: Plain = {"limit": 10}

RPCS: tuple[Rpc, ...] = (
    Rpc("IngestEvent", "event.ingest", frozenset({"timestamp_ms"})),
    Rpc(
        "GetEvents", "event.range", frozenset({"from_timestamp_ms", "to_timestamp_ms"}),
        {"continuation_token": "cursor"}, answer=_page,
    ),
    Rpc("GetTocRoot", "toc.root", given=MANY),
    Rpc("GetNode", "toc.node"),
    Rpc("BrowseToc", "toc.browse"),
    Rpc("ExpandGrip", "grip.expand"),
    Rpc("SearchNode", "toc.search_node", fields=NO_TOKENS, answer=_of_node),
    Rpc("SearchChildren", "toc.search_children", fields=NO_TOKENS, answer=_nodes),
    Rpc("GetSchedulerStatus", "scheduler.status"),
    Rpc("PauseJob", "scheduler.pause", answer=_done, absent=NO_JOB, absent_if_empty="job_name"),
    Rpc("ResumeJob", "scheduler.resume", answer=_done, absent=NO_JOB, absent_if_empty="job_name"),
    Rpc("TeleportSearch", "memory.recall", given=TEN, answer=_results),
    Rpc(
        "HybridSearch", "memory.recall", frozenset({"start_ms", "end_ms"}),
        {"top_k": "limit", "mode": None, "bm25_weight": None, "vector_weight": None},
        TEN, _within, _matches,
    ),
    Rpc(
        "VectorTeleport", "memory.recall", frozenset({"start_ms", "end_ms"}), {"top_k": "limit", "min_score": None},
        TEN, _within, _matches,
    ),
    Rpc("GetVectorIndexStatus", "memory.capabilities", answer=_no_vectors),
    Rpc("GetRetrievalCapabilities", "memory.capabilities", answer=_layers),
    Rpc("ClassifyQueryIntent", "memory.classify"),
    Rpc(
        "RouteQuery", "memory.recall",
        fields={"intent_override": None, "stop_conditions": None, "mode_override": None}, given=TEN, answer=_results,
    ),
    Rpc("ListAgents", "agent.list", given=MANY),
    Rpc("GetAgentActivity", "agent.activity", frozenset({"bucket"}), given=MANY),
    Rpc("GetDedupStatus", "host.coverage", answer=_repetitions),
    Rpc("StartEpisode", "episode.start", fields={"agent": "agent_id"}),
    Rpc("RecordAction", "episode.record"),
    Rpc("CompleteEpisode", "episode.complete"),
    Rpc("GetSimilarEpisodes", "episode.similar", fields={"top_k": "limit"}),
)  # fmt: skip

BY_RPC: Mapping[str, Rpc] = {row.name: row for row in RPCS}

NO_ANSWER: Mapping[str, str] = {
    "PruneVectorIndex": "there is no vector index to prune",
    "PruneBm25Index": "the index holds what memory holds; `beetle memory recover` keeps it in order",
    "GetTopicGraphStatus": "there is no topic graph; SearchChildren finds periods by their keywords",
    "GetTopicsByQuery": "there is no topic graph; SearchChildren finds periods by their keywords",
    "GetRelatedTopics": "there is no topic graph; SearchChildren finds periods by their keywords",
    "GetTopTopics": "there is no topic graph; GetTocRoot answers the keywords of each year",
    "GetRankingStatus": "GetRetrievalCapabilities shows what recall has, `why` of a hit what ranked it",
}
"""RPCs of the Agent Memory service that nothing here answers, and what does instead."""


def arguments(rpc: Rpc, asked: Plain) -> dict[str, Any]:
    """The operation's arguments of a request's fields."""
    found = dict(rpc.given)
    for field, value in rpc.ask(asked).items():
        if (name := rpc.fields.get(field, field)) is not None:
            found[name] = value
    return found


def absent(rpc: Rpc, asked: Plain) -> Plain:
    """The answer to a request for what is not there."""
    assert rpc.absent is not None
    filled = {rpc.absent_if_empty: "", **asked}
    return {key: value.format_map(filled) if isinstance(value, str) else value for key, value in rpc.absent.items()}
