"""One typed method per row of the table of operations, for every kind of caller: in process and over the socket."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, TypeVar, cast

from beetle.contracts import (
    agent_skills,
    console,
    continuity,
    control,
    devices,
    event_log,
    evolve,
    governance,
    harness,
    lifecycle,
    long_term,
    memory,
    private,
    skills,
    snapshots,
    tool_registries,
    transcript,
    transcript_repair,
)
from beetle.contracts import maintain as maintenance
from beetle.contracts.common import Report, WireScope
from beetle.contracts.operations import BY_NAME
from beetle.contracts.progress import Tell

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
        tell: Tell | None = None,
    ) -> Report:
        """Run any operation by its name; `arguments` is a request struct or a mapping of its fields.

        Args:
            scope: where to work; the runtime's or client's own when left out.
            idempotency_key: the same key with the same request answers the first report again.
            deadline_ms: give up when the work has not begun by then.
            tell: is told while it runs how far it is, if it is one of those that take long.
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

    def maintain(
        self, request: maintenance.MemoryMaintainRequest | None = None, /, **fields: Any
    ) -> maintenance.MemoryMaintainReport:
        """Have the model read what was said since the last time, and judge what it notes."""
        return self._ask("memory.maintain", maintenance.MemoryMaintainReport, request, fields)

    def finalize_turn_and_maintain(
        self, request: maintenance.MemoryFinalizeTurnRequest | None = None, /, **fields: Any
    ) -> maintenance.MemoryFinalizeTurnReport:
        """Commit one turn, then maintain its conversation, or leave a job that does."""
        return self._ask("memory.finalize_turn", maintenance.MemoryFinalizeTurnReport, request, fields)

    def governance_report(
        self, request: maintenance.GovernanceReportRequest | None = None, /, **fields: Any
    ) -> maintenance.GovernanceReport:
        """What waits, what was decided, and the policies that hold."""
        return self._ask("governance.report", maintenance.GovernanceReport, request, fields)

    def replay(
        self, request: continuity.MemoryReplayRequest | None = None, /, **fields: Any
    ) -> continuity.MemoryReplayReport:
        """A chat's turn ledger."""
        return self._ask("memory.replay", continuity.MemoryReplayReport, request, fields)

    def export_snapshot(
        self, request: continuity.MemoryExportRequest | None = None, /, **fields: Any
    ) -> continuity.MemoryExportReport:
        """One chat's memory as a continuity snapshot."""
        return self._ask("memory.export", continuity.MemoryExportReport, request, fields)

    def import_snapshot(
        self, request: continuity.MemoryImportRequest | None = None, /, **fields: Any
    ) -> continuity.MemoryImportReport:
        """Take a continuity snapshot in as one chat: all or nothing."""
        return self._ask("memory.import", continuity.MemoryImportReport, request, fields)

    def export_space(
        self, request: continuity.MemorySpaceExportRequest | None = None, /, **fields: Any
    ) -> continuity.MemorySpaceExportReport:
        """The memory space as an archive."""
        return self._ask("memory.export_space", continuity.MemorySpaceExportReport, request, fields)

    def import_space(
        self, request: continuity.MemorySpaceImportRequest | None = None, /, **fields: Any
    ) -> continuity.MemoryImportReport:
        """Take an archive in as the memory space: all or nothing."""
        return self._ask("memory.import_space", continuity.MemoryImportReport, request, fields)

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

    def list_agent_skills(
        self, request: agent_skills.AgentSkillListRequest | None = None, /, **fields: Any
    ) -> agent_skills.AgentSkillListReport:
        """The mounted Agent Skills, scanned anew."""
        return self._ask("agent_skill.list", agent_skills.AgentSkillListReport, request, fields)

    def list_agent_tool_registries(
        self, request: tool_registries.ToolRegistryListRequest | None = None, /, **fields: Any
    ) -> tool_registries.ToolRegistryListReport:
        """Tool registries by id."""
        return self._ask("tool_registry.list", tool_registries.ToolRegistryListReport, request, fields)

    def get_agent_tool_registry(
        self, request: tool_registries.ToolRegistryGetRequest | None = None, /, **fields: Any
    ) -> tool_registries.ToolRegistryGetReport:
        """One tool registry with its tools."""
        return self._ask("tool_registry.get", tool_registries.ToolRegistryGetReport, request, fields)

    def upsert_agent_tool_registry(
        self, request: tool_registries.ToolRegistryUpsertRequest | None = None, /, **fields: Any
    ) -> tool_registries.ToolRegistryMutationReport:
        """Register the host's tools in short, or replace what was registered."""
        return self._ask("tool_registry.upsert", tool_registries.ToolRegistryMutationReport, request, fields)

    def delete_agent_tool_registry(
        self, request: tool_registries.ToolRegistryDeleteRequest | None = None, /, **fields: Any
    ) -> tool_registries.ToolRegistryMutationReport:
        """Delete a tool registry; what was observed of its tools stays."""
        return self._ask("tool_registry.delete", tool_registries.ToolRegistryMutationReport, request, fields)

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

    def propose(
        self, request: evolve.EvolveProposeRequest | None = None, /, **fields: Any
    ) -> evolve.EvolveProposeReport:
        """Propose changes; nothing else changes."""
        return self._ask("evolve.propose", evolve.EvolveProposeReport, request, fields)

    def list_proposals(
        self, request: evolve.EvolveListRequest | None = None, /, **fields: Any
    ) -> evolve.EvolveListReport:
        """Proposals, the newest first."""
        return self._ask("evolve.list", evolve.EvolveListReport, request, fields)

    def preview_proposal(
        self, request: evolve.EvolvePreviewRequest | None = None, /, **fields: Any
    ) -> evolve.EvolvePreviewReport:
        """What a proposal would change."""
        return self._ask("evolve.preview", evolve.EvolvePreviewReport, request, fields)

    def submit_proposals(
        self, request: evolve.EvolveSubmitRequest | None = None, /, **fields: Any
    ) -> evolve.EvolveSubmitReport:
        """Carry proposals out, or withdraw them."""
        return self._ask("evolve.submit", evolve.EvolveSubmitReport, request, fields)

    def console_overview(
        self, request: console.ConsoleOverviewRequest | None = None, /, **fields: Any
    ) -> console.ConsoleOverviewReport:
        """The machine, the runtime, what it holds, how it does, who is here."""
        return self._ask("console.overview", console.ConsoleOverviewReport, request, fields)

    def console_session(
        self, request: console.ConsoleSessionRequest | None = None, /, **fields: Any
    ) -> console.ConsoleSessionReport:
        """Who is asking, and whose memory it works on."""
        return self._ask("console.session", console.ConsoleSessionReport, request, fields)

    def list_devices(
        self, request: devices.DeviceListRequest | None = None, /, **fields: Any
    ) -> devices.DeviceListReport:
        """Devices, by the fingerprints of their keys."""
        return self._ask("device.list", devices.DeviceListReport, request, fields)

    def add_device(self, request: devices.DeviceAddRequest | None = None, /, **fields: Any) -> devices.DeviceKeyReport:
        """A new device, and once its key."""
        return self._ask("device.add", devices.DeviceKeyReport, request, fields)

    def update_device(
        self, request: devices.DeviceUpdateRequest | None = None, /, **fields: Any
    ) -> devices.DeviceReport:
        """Change a device's label, state or capabilities."""
        return self._ask("device.update", devices.DeviceReport, request, fields)

    def rotate_device_key(
        self, request: devices.DeviceRotateKeyRequest | None = None, /, **fields: Any
    ) -> devices.DeviceKeyReport:
        """Another key for a device, shown once."""
        return self._ask("device.rotate_key", devices.DeviceKeyReport, request, fields)

    def remove_device(
        self, request: devices.DeviceRemoveRequest | None = None, /, **fields: Any
    ) -> devices.DeviceRemovedReport:
        """Forget a device."""
        return self._ask("device.remove", devices.DeviceRemovedReport, request, fields)

    def list_transports(
        self, request: devices.TransportListRequest | None = None, /, **fields: Any
    ) -> devices.TransportListReport:
        """The ways in, and which are open."""
        return self._ask("transport.list", devices.TransportListReport, request, fields)

    def update_transport(
        self, request: devices.TransportUpdateRequest | None = None, /, **fields: Any
    ) -> devices.TransportReport:
        """Open or close a way in."""
        return self._ask("transport.update", devices.TransportReport, request, fields)

    def read_event_log(
        self, request: event_log.EventLogReadRequest | None = None, /, **fields: Any
    ) -> event_log.EventLogReadReport:
        """Rows of the event log."""
        return self._ask("event_log.read", event_log.EventLogReadReport, request, fields)

    def run_harness(
        self, request: harness.HarnessRunRequest | None = None, /, **fields: Any
    ) -> harness.HarnessRunReport:
        """Run fixtures in throw-away stores, and the gates over them."""
        return self._ask("harness.run", harness.HarnessRunReport, request, fields)

    def recover(
        self, request: lifecycle.MemoryRecoverRequest | None = None, /, **fields: Any
    ) -> lifecycle.MemoryRecoverReport:
        """Run the recoverable lifecycle steps."""
        return self._ask("memory.recover", lifecycle.MemoryRecoverReport, request, fields)

    def close_runtime(
        self, request: lifecycle.MemoryCloseRequest | None = None, /, **fields: Any
    ) -> lifecycle.MemoryCloseReport:
        """End the daemon or runtime cleanly."""
        return self._ask("memory.close", lifecycle.MemoryCloseReport, request, fields)

    def create_snapshot(
        self, request: snapshots.SnapshotCreateRequest | None = None, /, **fields: Any
    ) -> snapshots.SnapshotCreateReport:
        """Take a snapshot of the whole store while it is in use."""
        return self._ask("snapshot.create", snapshots.SnapshotCreateReport, request, fields)

    def list_snapshots(
        self, request: snapshots.SnapshotListRequest | None = None, /, **fields: Any
    ) -> snapshots.SnapshotListReport:
        """Snapshots of this store, the newest first."""
        return self._ask("snapshot.list", snapshots.SnapshotListReport, request, fields)

    def verify_snapshot(
        self, request: snapshots.SnapshotVerifyRequest | None = None, /, **fields: Any
    ) -> snapshots.SnapshotVerifyReport:
        """Check a snapshot whole."""
        return self._ask("snapshot.verify", snapshots.SnapshotVerifyReport, request, fields)

    def restore_snapshot(
        self, request: snapshots.SnapshotRestoreRequest | None = None, /, **fields: Any
    ) -> snapshots.SnapshotRestoreReport:
        """Put a snapshot in the place of the store."""
        return self._ask("snapshot.restore", snapshots.SnapshotRestoreReport, request, fields)

    def prune_snapshots(
        self, request: snapshots.SnapshotPruneRequest | None = None, /, **fields: Any
    ) -> snapshots.SnapshotPruneReport:
        """Remove snapshots but for the newest ones."""
        return self._ask("snapshot.prune", snapshots.SnapshotPruneReport, request, fields)

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
