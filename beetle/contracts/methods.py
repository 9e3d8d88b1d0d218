"""One typed method per row of the table of operations, for every kind of caller: in process and over the socket."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, TypeVar, cast

from beetle.contracts import control, governance, long_term, memory, private, skills, transcript, transcript_repair
from beetle.contracts.common import Report, WireScope
from beetle.contracts.operations import BY_NAME

R = TypeVar("R", bound=Report)


class OperationMethods(ABC):
    """Each method takes a request struct, or the request's fields as keyword arguments.

    Every method raises the errors of `contracts/errors.py`.
    """

    @abstractmethod
    def call(
        self,
        operation: str,
        arguments: Any = None,
        *,
        scope: WireScope | None = None,
        idempotency_key: str | None = None,
        deadline_ms: int | None = None,
    ) -> Report:
        """Run any operation by its name; `arguments` is a request struct or a mapping of its fields.

        Args:
            scope: where to work; the runtime's or client's own when left out.
            idempotency_key: the same key with the same request answers the first report again.
            deadline_ms: give up when the work has not begun by then.
        """

    def _ask(self, operation: str, kind: type[R], request: Any, fields: dict[str, Any]) -> R:
        if request is not None and fields:
            raise TypeError("give a request or its fields, not both")
        assert BY_NAME[operation].report is kind
        return cast(R, self.call(operation, fields if request is None else request))

    def capabilities(
        self, request: memory.MemoryCapabilitiesRequest | None = None, /, **fields: Any
    ) -> memory.MemoryCapabilityCatalog:
        """What this caller may do here, and why what is hidden is hidden."""
        return self._ask("memory.capabilities", memory.MemoryCapabilityCatalog, request, fields)

    def inspect(
        self, request: memory.MemoryInspectionRequest | None = None, /, **fields: Any
    ) -> memory.MemoryInspectionReport:
        """State of the store, counts, and how a query would be answered."""
        return self._ask("memory.inspect", memory.MemoryInspectionReport, request, fields)

    def recall(self, request: memory.MemoryRecallRequest | None = None, /, **fields: Any) -> memory.MemoryRecallReport:
        """What memory holds for a query."""
        return self._ask("memory.recall", memory.MemoryRecallReport, request, fields)

    def project(
        self, request: memory.MemoryProjectionRequest | None = None, /, **fields: Any
    ) -> memory.MemoryProjectionReport:
        """The bounded memory block for a model."""
        return self._ask("memory.project", memory.MemoryProjectionReport, request, fields)

    def write(self, request: memory.MemoryWriteRequest | None = None, /, **fields: Any) -> memory.MemoryWriteReport:
        """Write skills, or have candidates, an extraction or tool feedback judged; `kind` says which."""
        return self._ask("memory.write", memory.MemoryWriteReport, request, fields)

    def list_runtime_skills(
        self, request: skills.RuntimeSkillListRequest | None = None, /, **fields: Any
    ) -> skills.RuntimeSkillListReport:
        """Runtime skills by name."""
        return self._ask("skill.list", skills.RuntimeSkillListReport, request, fields)

    def get_runtime_skill(
        self, request: skills.RuntimeSkillDetailRequest | None = None, /, **fields: Any
    ) -> skills.RuntimeSkillDetailReport:
        """One runtime skill with its history."""
        return self._ask("skill.detail", skills.RuntimeSkillDetailReport, request, fields)

    def edit_runtime_skill(
        self, request: skills.RuntimeSkillEditRequest | None = None, /, **fields: Any
    ) -> skills.RuntimeSkillMutationReport:
        """A new revision of an existing skill."""
        return self._ask("skill.edit", skills.RuntimeSkillMutationReport, request, fields)

    def set_runtime_skill_enabled(
        self, request: skills.RuntimeSkillSetEnabledRequest | None = None, /, **fields: Any
    ) -> skills.RuntimeSkillMutationReport:
        """Enable or disable a skill."""
        return self._ask("skill.set_enabled", skills.RuntimeSkillMutationReport, request, fields)

    def delete_runtime_skill(
        self, request: skills.RuntimeSkillDeleteRequest | None = None, /, **fields: Any
    ) -> skills.RuntimeSkillMutationReport:
        """Delete a skill with every revision."""
        return self._ask("skill.delete", skills.RuntimeSkillMutationReport, request, fields)

    def list_long_term(
        self, request: long_term.LongTermListRequest | None = None, /, **fields: Any
    ) -> long_term.LongTermListReport:
        """Facts, the newest first."""
        return self._ask("long_term.list", long_term.LongTermListReport, request, fields)

    def get_long_term(
        self, request: long_term.LongTermDetailRequest | None = None, /, **fields: Any
    ) -> long_term.LongTermDetailReport:
        """One fact with its history."""
        return self._ask("long_term.detail", long_term.LongTermDetailReport, request, fields)

    def mutate_long_term(
        self, request: long_term.LongTermMutateRequest | None = None, /, **fields: Any
    ) -> long_term.LongTermMutateReport:
        """Correct, supersede, delete, forget, mark stale, or change the scope."""
        return self._ask("long_term.mutate", long_term.LongTermMutateReport, request, fields)

    def long_term_policy(
        self, request: governance.LongTermPolicyRequest | None = None, /, **fields: Any
    ) -> governance.LongTermPolicyReport:
        """Pause, suppress or resume what may be remembered, or list what holds."""
        return self._ask("long_term.policy", governance.LongTermPolicyReport, request, fields)

    def commit_transcript(
        self, request: transcript.MemoryTranscriptCommitRequest | None = None, /, **fields: Any
    ) -> transcript.MemoryTranscriptCommitReport:
        """Commit delivered turns: all or none."""
        return self._ask("transcript.commit", transcript.MemoryTranscriptCommitReport, request, fields)

    def replay_transcript(
        self, request: transcript.MemoryTranscriptReplayRequest | None = None, /, **fields: Any
    ) -> transcript.MemoryTranscriptReplayReport:
        """A conversation's turns through one view."""
        return self._ask("transcript.replay", transcript.MemoryTranscriptReplayReport, request, fields)

    def export_transcript(
        self, request: transcript.MemoryTranscriptExportRequest | None = None, /, **fields: Any
    ) -> transcript.MemoryTranscriptExportReport:
        """A conversation's turns as they may leave the device."""
        return self._ask("transcript.export", transcript.MemoryTranscriptExportReport, request, fields)

    def list_conversations(
        self, request: transcript.MemoryTranscriptConversationsRequest | None = None, /, **fields: Any
    ) -> transcript.MemoryTranscriptConversationsReport:
        """The conversations of the space."""
        return self._ask("transcript.conversations", transcript.MemoryTranscriptConversationsReport, request, fields)

    def transcript_timeline(
        self, request: transcript.MemoryTranscriptTimelineRequest | None = None, /, **fields: Any
    ) -> transcript.MemoryTranscriptTimelineReport:
        """One page of a conversation around an anchor."""
        return self._ask("transcript.timeline", transcript.MemoryTranscriptTimelineReport, request, fields)

    def search_transcript(
        self, request: transcript.MemoryTranscriptSearchRequest | None = None, /, **fields: Any
    ) -> transcript.MemoryTranscriptSearchReport:
        """Messages by their words."""
        return self._ask("transcript.search", transcript.MemoryTranscriptSearchReport, request, fields)

    def request_transcript_lifecycle(
        self, request: transcript.MemoryTranscriptLifecycleRequest | None = None, /, **fields: Any
    ) -> transcript.MemoryTranscriptLifecycleReport:
        """Archive, mask, unmask, delete_raw or review turns."""
        return self._ask("transcript.lifecycle", transcript.MemoryTranscriptLifecycleReport, request, fields)

    def repair_transcript(
        self, request: transcript_repair.MemoryTranscriptRepairRequest | None = None, /, **fields: Any
    ) -> transcript_repair.MemoryTranscriptRepairReport:
        """What is broken in the space's transcripts and links."""
        return self._ask("transcript.repair", transcript_repair.MemoryTranscriptRepairReport, request, fields)

    def repair_transcript_safe(
        self, request: transcript_repair.MemoryTranscriptRepairSafeRequest | None = None, /, **fields: Any
    ) -> transcript_repair.MemoryTranscriptRepairSafeReport:
        """Mend what loses nothing."""
        return self._ask("transcript.repair_safe", transcript_repair.MemoryTranscriptRepairSafeReport, request, fields)

    def list_private(
        self, request: private.PrivateListRequest | None = None, /, **fields: Any
    ) -> private.PrivateListReport:
        """What the private plane keeps, without its content."""
        return self._ask("private.list", private.PrivateListReport, request, fields)

    def get_private(
        self, request: private.PrivateGetRequest | None = None, /, **fields: Any
    ) -> private.PrivateGetReport:
        """One private record, with its content."""
        return self._ask("private.get", private.PrivateGetReport, request, fields)

    def verify_store(
        self, request: control.StoreVerifyRequest | None = None, /, **fields: Any
    ) -> control.StoreVerifyReport:
        """Walk every check of the store."""
        return self._ask("store.verify", control.StoreVerifyReport, request, fields)

    def hello(self, request: control.HelloRequest | None = None, /, **fields: Any) -> control.HelloReport:
        """Who answers, who is asking, what may be asked."""
        return self._ask("hello", control.HelloReport, request, fields)

    def batch(self, request: control.BatchRequest | None = None, /, **fields: Any) -> control.BatchReport:
        """Several operations in one transaction; each request is `{op, args}`."""
        return self._ask("batch", control.BatchReport, request, fields)
