"""The table of operations: one row each. Every transport, the command line and the docs come out of it."""

from __future__ import annotations

from collections.abc import Mapping
from types import UnionType
from typing import Literal, NamedTuple, cast, get_args

from beetle.contracts import control, governance, long_term, memory, private, skills, transcript, transcript_repair
from beetle.contracts.common import Report
from beetle.contracts.fields import Request

Effect = Literal["read", "write", "admin", "stream"]
EVERYWHERE = frozenset({"in_process", "unix_socket", "cli"})
SOCKET = frozenset({"unix_socket"})


class Operation(NamedTuple):
    """One row.

    `capability` empty means that every authenticated caller may. `view` is `model` when the answer is meant for a model
    whoever asks, `owner` when it is for raw_owner alone, `caller` when it follows the caller. `grows` false lets writes
    pass the store's ceiling. `batch` says whether a batch may hold it. `cli` is the command's words. `help` is what its
    request's docstring begins with, for people: a frozen build has no docstrings.
    """

    name: str
    method: str
    request: type[Request] | UnionType
    report: type[Report]
    effect: Effect
    capability: str
    cli: tuple[str, ...]
    help: str
    batch: bool = True
    grows: bool = True
    view: Literal["caller", "model", "owner"] = "caller"
    exposed: frozenset[str] = EVERYWHERE
    deadline_ms: int | None = None

    @property
    def kinds(self) -> tuple[type[Request], ...]:
        """The structs that a request may be: one, or the several that its `kind` tells apart."""
        return get_args(self.request) or (cast(type[Request], self.request),)


OPERATIONS: tuple[Operation, ...] = (
    Operation("memory.capabilities", "capabilities", memory.MemoryCapabilitiesRequest, memory.MemoryCapabilityCatalog,
              "read", "", ("memory", "capabilities"),
              "show what this caller may do here, and why what is hidden is hidden"),
    Operation("memory.inspect", "inspect", memory.MemoryInspectionRequest, memory.MemoryInspectionReport,
              "read", "inspect", ("memory", "inspect"),
              "report the state of the store, its counts and, with a query, how recall and projection answer it"),
    Operation("memory.recall", "recall", memory.MemoryRecallRequest, memory.MemoryRecallReport,
              "read", "recall", ("memory", "recall"),
              "find what memory holds for a query, over every plane that the caller may see", view="model"),
    Operation("memory.project", "project", memory.MemoryProjectionRequest, memory.MemoryProjectionReport,
              "read", "project", ("memory", "project"),
              "build the bounded memory block for a model's context", view="model"),
    Operation("memory.write", "write", memory.MemoryWriteRequest, memory.MemoryWriteReport,
              "write", "write", ("memory", "write-procedural"),
              "create or revise runtime skills: all of them or none"),
    Operation("skill.list", "list_runtime_skills", skills.RuntimeSkillListRequest, skills.RuntimeSkillListReport,
              "read", "skill", ("skill", "list"),
              "list runtime skills by name, with a filter over name, title, topic and summary"),
    Operation("skill.detail", "get_runtime_skill", skills.RuntimeSkillDetailRequest, skills.RuntimeSkillDetailReport,
              "read", "skill", ("skill", "show"),
              "show one runtime skill with its citations, its lineage and what each revision changed"),
    Operation("skill.edit", "edit_runtime_skill", skills.RuntimeSkillEditRequest, skills.RuntimeSkillMutationReport,
              "write", "skill", ("skill", "edit"),
              "edit an existing runtime skill; what is left out stays. Makes a new revision"),
    Operation("skill.set_enabled", "set_runtime_skill_enabled", skills.RuntimeSkillSetEnabledRequest,
              skills.RuntimeSkillMutationReport, "write", "skill", ("skill", "set-enabled"),
              "enable or disable a runtime skill; its content stays as it is", grows=False),
    Operation("skill.delete", "delete_runtime_skill", skills.RuntimeSkillDeleteRequest,
              skills.RuntimeSkillMutationReport, "write", "skill", ("skill", "delete"),
              "delete a runtime skill with every revision; the event log keeps the fact of it", grows=False),
    Operation("long_term.list", "list_long_term", long_term.LongTermListRequest, long_term.LongTermListReport,
              "read", "long_term", ("long-term", "list"),
              "list facts, the newest first, by state, kind and words"),
    Operation("long_term.detail", "get_long_term", long_term.LongTermDetailRequest, long_term.LongTermDetailReport,
              "read", "long_term", ("long-term", "show"),
              "show one fact with its revisions, what it came from and what became of it"),
    Operation("long_term.mutate", "mutate_long_term", long_term.LongTermMutateRequest, long_term.LongTermMutateReport,
              "write", "long_term", ("long-term", "mutate"),
              "correct, supersede, delete or forget facts, mark one stale, or change who may see it",
              batch=False, grows=False),
    Operation("long_term.policy", "long_term_policy", governance.LongTermPolicyRequest,
              governance.LongTermPolicyReport, "write", "long_term", ("long-term", "policy"),
              "pause what may be remembered, suppress a kind or a topic of it, lift either again, or list what holds"),
    Operation("transcript.commit", "commit_transcript", transcript.MemoryTranscriptCommitRequest,
              transcript.MemoryTranscriptCommitReport, "write", "transcript", ("transcript", "commit"),
              "commit delivered turns as evidence: all of them or none"),
    Operation("transcript.replay", "replay_transcript", transcript.MemoryTranscriptReplayRequest,
              transcript.MemoryTranscriptReplayReport, "read", "transcript", ("transcript", "replay"),
              "read a conversation's turns in sequence order through one view"),
    Operation("transcript.export", "export_transcript", transcript.MemoryTranscriptExportRequest,
              transcript.MemoryTranscriptExportReport, "read", "transcript", ("transcript", "export"),
              "read a conversation's turns as they may leave the device, in sequence order"),
    Operation("transcript.conversations", "list_conversations", transcript.MemoryTranscriptConversationsRequest,
              transcript.MemoryTranscriptConversationsReport, "read", "transcript", ("transcript", "conversations"),
              "list the conversations of the space, the most recently begun first"),
    Operation("transcript.timeline", "transcript_timeline", transcript.MemoryTranscriptTimelineRequest,
              transcript.MemoryTranscriptTimelineReport, "read", "transcript", ("transcript", "timeline"),
              "one page of a conversation, placed by sequence or time; turns come in sequence order"),
    Operation("transcript.search", "search_transcript", transcript.MemoryTranscriptSearchRequest,
              transcript.MemoryTranscriptSearchReport, "read", "transcript", ("transcript", "search"),
              "find messages by their words, through a view that may see them"),
    Operation("transcript.lifecycle", "request_transcript_lifecycle", transcript.MemoryTranscriptLifecycleRequest,
              transcript.MemoryTranscriptLifecycleReport, "write", "transcript", ("transcript", "lifecycle"),
              "archive, mask, unmask or raw-delete turns, or review what such a step would touch (`dry_run`)",
              batch=False, grows=False),
    Operation("transcript.repair", "repair_transcript", transcript_repair.MemoryTranscriptRepairRequest,
              transcript_repair.MemoryTranscriptRepairReport, "read", "transcript", ("transcript", "repair"),
              "report broken links and records of transcripts, by their ids; changes nothing",
              batch=False, deadline_ms=3_600_000),
    Operation("transcript.repair_safe", "repair_transcript_safe", transcript_repair.MemoryTranscriptRepairSafeRequest,
              transcript_repair.MemoryTranscriptRepairSafeReport, "write", "transcript", ("transcript", "repair-safe"),
              "mend what loses nothing: dead links, counts, index rows. What it cannot mend stays as it is, and is "
              "reported", batch=False, deadline_ms=3_600_000),
    Operation("private.list", "list_private", private.PrivateListRequest, private.PrivateListReport,
              "read", "private.read", ("private", "list"),
              "list what the private plane keeps, without its content, in the order in which it was kept",
              batch=False, view="owner"),
    Operation("private.get", "get_private", private.PrivateGetRequest, private.PrivateGetReport,
              "read", "private.read", ("private", "show"),
              "read one private record, with its content", batch=False, view="owner"),
    Operation("store.verify", "verify_store", control.StoreVerifyRequest, control.StoreVerifyReport,
              "read", "inspect", ("verify",),
              "walk the event-log chain, the derived refs, the recall index and the pages of the store",
              batch=False, deadline_ms=3_600_000),
    Operation("hello", "hello", control.HelloRequest, control.HelloReport, "read", "", ("hello",),
              "ask who answers, who is asking, and what may be asked", batch=False),
    Operation("batch", "batch", control.BatchRequest, control.BatchReport, "write", "", (),
              "run several operations in order in one transaction: all of them or none", batch=False),
    Operation("subscribe", "subscribe", control.SubscribeRequest, control.SubscribeReport, "stream", "", (),
              "follow events of this scope: frames with ids and kinds until `unsubscribe` or the connection ends",
              batch=False, exposed=SOCKET),
    Operation("unsubscribe", "unsubscribe", control.UnsubscribeRequest, control.UnsubscribeReport, "stream", "", (),
              "end one subscription of this connection",
              batch=False, exposed=SOCKET),
)  # fmt: skip

BY_NAME: Mapping[str, Operation] = {row.name: row for row in OPERATIONS}
