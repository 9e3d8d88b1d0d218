"""The table of operations: one row each. Every transport, the command line and the docs come out of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from beetle.contracts import control, memory, skills, transcript
from beetle.contracts.common import Report
from beetle.contracts.fields import Request

Effect = Literal["read", "write", "admin", "stream"]
EVERYWHERE = frozenset({"in_process", "unix_socket", "cli"})
SOCKET = frozenset({"unix_socket"})


class Operation(NamedTuple):
    """One row.

    `capability` empty means that every authenticated caller may. `view` is `model` when the answer is meant for a model
    whoever asks, `caller` when it follows the caller. `grows` false lets a write pass the store's ceiling. `batch` says
    whether a batch may hold it. `cli` is the command's words.
    """

    name: str
    method: str
    request: type[Request]
    report: type[Report]
    effect: Effect
    capability: str
    cli: tuple[str, ...]
    batch: bool = True
    grows: bool = True
    view: Literal["caller", "model"] = "caller"
    exposed: frozenset[str] = EVERYWHERE
    deadline_ms: int | None = None


OPERATIONS: tuple[Operation, ...] = (
    Operation("memory.capabilities", "capabilities", memory.MemoryCapabilitiesRequest, memory.MemoryCapabilityCatalog,
              "read", "", ("memory", "capabilities")),
    Operation("memory.inspect", "inspect", memory.MemoryInspectionRequest, memory.MemoryInspectionReport,
              "read", "inspect", ("memory", "inspect")),
    Operation("memory.recall", "recall", memory.MemoryRecallRequest, memory.MemoryRecallReport,
              "read", "recall", ("memory", "recall"), view="model"),
    Operation("memory.project", "project", memory.MemoryProjectionRequest, memory.MemoryProjectionReport,
              "read", "project", ("memory", "project"), view="model"),
    Operation("memory.write", "write", memory.ProceduralWrite, memory.MemoryWriteReport,
              "write", "write", ("memory", "write-procedural")),
    Operation("skill.list", "list_runtime_skills", skills.RuntimeSkillListRequest, skills.RuntimeSkillListReport,
              "read", "skill", ("skill", "list")),
    Operation("skill.detail", "get_runtime_skill", skills.RuntimeSkillDetailRequest, skills.RuntimeSkillDetailReport,
              "read", "skill", ("skill", "show")),
    Operation("skill.edit", "edit_runtime_skill", skills.RuntimeSkillEditRequest, skills.RuntimeSkillMutationReport,
              "write", "skill", ("skill", "edit")),
    Operation("skill.set_enabled", "set_runtime_skill_enabled", skills.RuntimeSkillSetEnabledRequest,
              skills.RuntimeSkillMutationReport, "write", "skill", ("skill", "set-enabled"), grows=False),
    Operation("skill.delete", "delete_runtime_skill", skills.RuntimeSkillDeleteRequest,
              skills.RuntimeSkillMutationReport, "write", "skill", ("skill", "delete"), grows=False),
    Operation("transcript.commit", "commit_transcript", transcript.MemoryTranscriptCommitRequest,
              transcript.MemoryTranscriptCommitReport, "write", "transcript", ("transcript", "commit")),
    Operation("transcript.replay", "replay_transcript", transcript.MemoryTranscriptReplayRequest,
              transcript.MemoryTranscriptReplayReport, "read", "transcript", ("transcript", "replay")),
    Operation("transcript.conversations", "list_conversations", transcript.MemoryTranscriptConversationsRequest,
              transcript.MemoryTranscriptConversationsReport, "read", "transcript", ("transcript", "conversations")),
    Operation("transcript.timeline", "transcript_timeline", transcript.MemoryTranscriptTimelineRequest,
              transcript.MemoryTranscriptTimelineReport, "read", "transcript", ("transcript", "timeline")),
    Operation("transcript.search", "search_transcript", transcript.MemoryTranscriptSearchRequest,
              transcript.MemoryTranscriptSearchReport, "read", "transcript", ("transcript", "search")),
    Operation("transcript.lifecycle", "request_transcript_lifecycle", transcript.MemoryTranscriptLifecycleRequest,
              transcript.MemoryTranscriptLifecycleReport, "write", "transcript", ("transcript", "lifecycle"),
              batch=False, grows=False),
    Operation("store.verify", "verify_store", control.StoreVerifyRequest, control.StoreVerifyReport,
              "read", "inspect", ("verify",), batch=False, deadline_ms=3_600_000),
    Operation("hello", "hello", control.HelloRequest, control.HelloReport, "read", "", ("hello",), batch=False),
    Operation("batch", "batch", control.BatchRequest, control.BatchReport, "write", "", (), batch=False),
    Operation("subscribe", "subscribe", control.SubscribeRequest, control.SubscribeReport, "stream", "", (),
              batch=False, exposed=SOCKET),
    Operation("unsubscribe", "unsubscribe", control.UnsubscribeRequest, control.UnsubscribeReport, "stream", "", (),
              batch=False, exposed=SOCKET),
)  # fmt: skip

BY_NAME: Mapping[str, Operation] = {row.name: row for row in OPERATIONS}
