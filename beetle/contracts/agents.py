"""agent.list, agent.activity: which agents evidence came from, and when; episode.*: tasks that they worked at.

An episode is a conversation: what was done, how it ended and what was learned.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from beetle.contracts.common import ConversationRef, PageLimit, Report
from beetle.contracts.events import TimestampMs
from beetle.contracts.fields import NONBLANK, Content, Id, Open, Part, Piece, Request, budgeted
from beetle.contracts.operation import AGENT, EPISODE, RPC, Operation
from beetle.contracts.transcript import Query

Bucket = Literal["day", "week"]
CHANNEL = "episode"
"""The channel of the conversations that episodes are."""
TASK, OUTCOME = "task", "outcome"
"""Ids of an episode's first and last turn."""
EpisodeStatus = Literal["in_progress", "completed", "failed"]
ActionResult = Literal["success", "failure", "pending"]
Line = Annotated[str, Meta(min_length=1, pattern=NONBLANK, extra=budgeted("message_content_bytes"))]
EpisodeId = Annotated[Id, Meta(description="the episode's id, as `episode.start` gave it")]


class AgentSummary(Piece, frozen=True, kw_only=True):
    """What came from one agent: `event_count` events of `session_count` conversations, the first and the last of them
    in milliseconds since the epoch."""

    agent_id: Open[str]
    event_count: Open[int]
    session_count: Open[int]
    first_seen_ms: Open[int]
    last_seen_ms: Open[int]


class AgentListRequest(Request, frozen=True, kw_only=True):
    """List the agents that evidence came from, with what each brought.

    The one that was heard last comes first. Events that name no agent count for none.
    """

    limit: PageLimit = 50


class AgentListReport(Report, frozen=True, kw_only=True):
    """Live events alone that the view shows. `has_more`: there are more agents than `limit`."""

    agents: Open[tuple[AgentSummary, ...]]
    has_more: Open[bool] = False


class AgentActivityRequest(Request, frozen=True, kw_only=True):
    """Count the events of agents by day or week.

    In UTC; weeks begin on Monday.
    """

    bucket: Annotated[Bucket, Meta(description="what is counted together")] = "day"
    agent_id: Annotated[Id, Meta(description="this agent only")] | None = None
    from_ms: (
        Annotated[TimestampMs, Meta(description="from then on, milliseconds since the epoch; default: 30 days ago")]
        | None
    ) = None
    to_ms: Annotated[TimestampMs, Meta(description="until then, included; default: now")] | None = None
    limit: Annotated[PageLimit, Meta(description="maximum number of buckets, the first ones")] = 1000


class ActivityBucket(Piece, frozen=True, kw_only=True):
    """How many events of an agent there were from `start_ms` on, before `end_ms`."""

    start_ms: Open[int]
    end_ms: Open[int]
    event_count: Open[int]
    agent_id: Open[str]


class AgentActivityReport(Report, frozen=True, kw_only=True):
    """Buckets in order of time, then of agents; those without an event are left out."""

    buckets: Open[tuple[ActivityBucket, ...]]
    has_more: Open[bool] = False


class EpisodeStartRequest(Request, frozen=True, kw_only=True):
    """Begin an episode: a task that an agent works at.

    It is kept as a conversation of the channel `episode`.
    """

    task: Annotated[Line, Meta(description="what is to be done")]
    plan: Annotated[tuple[Line, ...], Meta(max_length=100, description="the steps that are planned")] = ()
    agent_id: Annotated[Id, Meta(description="who works at it; default: the scope's agent")] | None = None


class EpisodeStartReport(Report, frozen=True, kw_only=True):
    """The new episode's id."""

    episode_id: Open[str]
    created: Open[bool] = True


class EpisodeAction(Part, frozen=True, kw_only=True):
    """One action of an episode."""

    action_type: Annotated[Id, Meta(description="what kind of action: a tool's name, `file_edit`, …")]
    input: Annotated[str, Meta(extra=budgeted("message_content_bytes"), description="what it was given")] = ""
    result_status: Annotated[ActionResult, Meta(description="how it went")] = "pending"
    result_detail: Annotated[
        str, Meta(extra=budgeted("message_content_bytes"), description="its output, or its error")
    ] = ""
    timestamp_ms: (
        Annotated[TimestampMs, Meta(description="when it was, milliseconds since the epoch; default: now")] | None
    ) = None


class EpisodeRecordRequest(Request, frozen=True, kw_only=True):
    """Add an action to an episode that has not ended."""

    episode_id: EpisodeId
    action: Annotated[EpisodeAction, Meta(description="the action")]


class EpisodeRecordReport(Report, frozen=True, kw_only=True):
    """`action_count` is how many actions the episode has now."""

    recorded: Open[bool]
    action_count: Open[int]


class EpisodeCompleteRequest(Request, frozen=True, kw_only=True):
    """End an episode with its outcome and what was learned."""

    episode_id: EpisodeId
    outcome_score: Annotated[float, Meta(ge=0, le=1, description="0: all went wrong, 1: all went well")] = 0.0
    failed: Annotated[bool, Meta(description="whether the task failed")] = False
    lessons_learned: Annotated[tuple[Line, ...], Meta(max_length=100, description="what to do the next time")] = ()
    failure_modes: Annotated[tuple[Line, ...], Meta(max_length=100, description="what went wrong, and how")] = ()


class EpisodeCompleteReport(Report, frozen=True, kw_only=True):
    """`value_score` is highest, 1, for an outcome of 0.65: what went neither by itself nor wholly wrong teaches most.

    `episodes_pruned` is 0: none is removed but by `transcript.lifecycle` and `memory.forget`.
    """

    completed: Open[bool]
    value_score: Open[float]
    episodes_pruned: Open[int] = 0


class EpisodeSimilarRequest(Request, frozen=True, kw_only=True):
    """Find episodes whose task, lessons or failure modes have the words of a query, best first."""

    query: Query
    limit: PageLimit = 5
    min_score: Annotated[float, Meta(ge=0, le=1, description="least share of the query's words")] = 0.0


class EpisodeSummary(Piece, frozen=True, kw_only=True):
    """One episode, as far as the view shows it. `similarity_score` is the share of the query's words that it has;
    outcome and value are null while it goes on."""

    episode_id: Open[str]
    task: Content[str | None]
    status: Open[EpisodeStatus]
    outcome_score: Open[float | None] = None
    value_score: Open[float | None] = None
    similarity_score: Open[float]
    lessons_learned: Content[tuple[str, ...] | None] = ()
    failure_modes: Content[tuple[str, ...] | None] = ()
    action_count: Open[int]
    created_at_ms: Open[int]
    agent: Open[str | None] = None
    conversation: Open[ConversationRef]


class EpisodeSimilarReport(Report, frozen=True, kw_only=True):
    """The newest 1,000 episodes are looked through."""

    episodes: Open[tuple[EpisodeSummary, ...]]


EXAMPLE_ID = "episode-4f1a9c0de2b37a58"

OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "agent.list", "list_agents", AgentListRequest, AgentListReport, "read", "event", AGENT, ("agent", "list"),
        "list the agents that evidence came from, with what each brought",
        heavy=True,
        exposed=RPC,
    ),
    Operation(
        "agent.activity", "agent_activity", AgentActivityRequest, AgentActivityReport, "read", "event", AGENT,
        ("agent", "activity"),
        "count the events of agents by day or week",
        heavy=True, word="agent_id",
        example={"bucket": "week", "agent_id": "agent-main"},
        exposed=RPC,
    ),
    Operation(
        "episode.start", "start_episode", EpisodeStartRequest, EpisodeStartReport, "write", "event", EPISODE,
        ("episode", "start"),
        "begin an episode: a task that an agent works at",
        word="task", idempotent=False,
        example={"task": "move the blog to the new server", "plan": ["copy the files", "change the name"]},
        shell=("beetle episode start 'move the blog to the new server'",),
        exposed=RPC,
    ),
    Operation(
        "episode.record", "record_action", EpisodeRecordRequest, EpisodeRecordReport, "write", "event", EPISODE,
        ("episode", "record"),
        "add an action to an episode that has not ended",
        word="episode_id", idempotent=False,
        example={
            "episode_id": EXAMPLE_ID,
            "action": {"action_type": "rsync", "input": "blog/ new:/srv/blog", "result_status": "success"},
        },
        exposed=RPC,
    ),
    Operation(
        "episode.complete", "complete_episode", EpisodeCompleteRequest, EpisodeCompleteReport, "write", "event",
        EPISODE, ("episode", "complete"),
        "end an episode with its outcome and what was learned",
        word="episode_id", idempotent=False,
        example={
            "episode_id": EXAMPLE_ID, "outcome_score": 0.8,
            "lessons_learned": ["lower the time to live of the name a day before"],
        },
        exposed=RPC,
    ),
    Operation(
        "episode.similar", "similar_episodes", EpisodeSimilarRequest, EpisodeSimilarReport, "read", "recall", EPISODE,
        ("episode", "similar"),
        "find episodes whose task, lessons or failure modes have the words of a query, best first",
        word="query",
        example={"query": "move a site to another server"},
        exposed=RPC,
    ),
)  # fmt: skip
