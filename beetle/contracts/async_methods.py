"""The methods of methods.py as coroutines.

Written by packaging/gen_reference.py from the table. Change the table, then run it again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, cast

from beetle.contracts.arguments import given_arguments

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime
    from typing import Literal, overload

    from beetle.contracts.admin import (
        AdminCompactReport,
        AdminCompactRequest,
        AdminHealthReport,
        AdminHealthRequest,
        AdminMetricsReport,
        AdminMetricsRequest,
        AdminStatsReport,
        AdminStatsRequest,
    )
    from beetle.contracts.agent_skills import AgentSkillListReport, AgentSkillListRequest
    from beetle.contracts.agents import (
        AgentActivityReport,
        AgentActivityRequest,
        AgentListReport,
        AgentListRequest,
        EpisodeAction,
        EpisodeCompleteReport,
        EpisodeCompleteRequest,
        EpisodeRecordReport,
        EpisodeRecordRequest,
        EpisodeSimilarReport,
        EpisodeSimilarRequest,
        EpisodeStartReport,
        EpisodeStartRequest,
    )
    from beetle.contracts.capture import (
        HostCoverageReport,
        HostCoverageRequest,
        HostKeyEnrollRequest,
        HostKeyListReport,
        HostKeyListRequest,
        HostKeyReport,
        HostKeyRevokeRequest,
        MemoryCaptureTurnReport,
        MemoryCaptureTurnRequest,
        ToolCallSummary,
    )
    from beetle.contracts.chain_agents import (
        ChainAddAgentAliasRequest,
        ChainAddAgentKeyRequest,
        ChainAgentRegistryReport,
        ChainAgentRegistryRequest,
        ChainAgentReport,
        ChainAgentsReport,
        ChainAgentsRequest,
        ChainDisableAgentRequest,
        ChainGetAgentRequest,
        ChainRevokeAgentKeyRequest,
        ChainSetAgentDescriptionRequest,
        ChainUpsertAgentRequest,
    )
    from beetle.contracts.chain_writes import (
        ChainAppendReport,
        ChainAppendRequest,
        ChainAppendRetrospectiveRequest,
        ChainBootstrapReport,
        ChainBootstrapRequest,
        ChainBranchReport,
        ChainBranchRequest,
        ChainLifecycleReport,
        ChainLifecycleRequest,
        RelationInput,
    )
    from beetle.contracts.chains import (
        ChainExportReport,
        ChainExportRequest,
        ChainGenesisRequest,
        ChainGetThoughtRequest,
        ChainHeadReport,
        ChainHeadRequest,
        ChainListReport,
        ChainListRequest,
        ChainMemoryMarkdownReport,
        ChainMemoryMarkdownRequest,
        ChainMergeReport,
        ChainMergeReportRequest,
        ChainRecentContextReport,
        ChainRecentContextRequest,
        ChainSearchReport,
        ChainSearchRequest,
        ChainThoughtReport,
        ChainTraverseReport,
        ChainTraverseRequest,
        TimeWindow,
    )
    from beetle.contracts.chunk_reasoning import (
        ChunkReasonReport,
        ChunkReasonRequest,
        ChunkRecallReport,
        ChunkRecallRequest,
        ChunkRememberReport,
        ChunkRememberRequest,
    )
    from beetle.contracts.chunk_trees import (
        ChunkExportTreeReport,
        ChunkExportTreeRequest,
        ChunkImportTreeReport,
        ChunkImportTreeRequest,
    )
    from beetle.contracts.chunks import (
        ChunkCreateRequest,
        ChunkDeleteReport,
        ChunkDeleteRequest,
        ChunkGetReport,
        ChunkGetRequest,
        ChunkLinkRequest,
        ChunkLinksInput,
        ChunkListReport,
        ChunkListRequest,
        ChunkReport,
        ChunkRestoreRequest,
        ChunkStatsReport,
        ChunkStatsRequest,
        ChunkUpdateRequest,
    )
    from beetle.contracts.common import Conversation, ModeInput, RegistryRef, Report, WireScope
    from beetle.contracts.console import (
        ConsoleOverviewReport,
        ConsoleOverviewRequest,
        ConsoleSessionReport,
        ConsoleSessionRequest,
    )
    from beetle.contracts.continuity import (
        MemoryExportReport,
        MemoryExportRequest,
        MemoryImportReport,
        MemoryImportRequest,
        MemoryReplayReport,
        MemoryReplayRequest,
        MemorySpaceExportReport,
        MemorySpaceExportRequest,
        MemorySpaceImportRequest,
    )
    from beetle.contracts.control import (
        BatchItem,
        BatchReport,
        BatchRequest,
        HelloReport,
        HelloRequest,
        StoreVerifyReport,
        StoreVerifyRequest,
    )
    from beetle.contracts.devices import (
        DeviceAddRequest,
        DeviceKeyReport,
        DeviceListReport,
        DeviceListRequest,
        DeviceRemovedReport,
        DeviceRemoveRequest,
        DeviceReport,
        DeviceRotateKeyRequest,
        DeviceUpdateRequest,
        TransportListReport,
        TransportListRequest,
        TransportReport,
        TransportUpdateRequest,
    )
    from beetle.contracts.event_log import EventLogReadReport, EventLogReadRequest
    from beetle.contracts.events import (
        Event,
        EventIngestReport,
        EventIngestRequest,
        EventRangeReport,
        EventRangeRequest,
    )
    from beetle.contracts.evolve import (
        EvolveListReport,
        EvolveListRequest,
        EvolvePreviewReport,
        EvolvePreviewRequest,
        EvolveProposeReport,
        EvolveProposeRequest,
        EvolveSubmitReport,
        EvolveSubmitRequest,
        Proposal,
    )
    from beetle.contracts.fields import Visibility
    from beetle.contracts.forgetting import MemoryForgetReport, MemoryForgetRequest
    from beetle.contracts.governance import (
        Candidate,
        CandidatesWrite,
        Extraction,
        LongTermExtractionWrite,
        LongTermPolicyReport,
        LongTermPolicyRequest,
        ToolFeedbackWrite,
        ToolUsageFeedback,
    )
    from beetle.contracts.harness import HarnessRunReport, HarnessRunRequest
    from beetle.contracts.lifecycle import (
        MemoryCloseReport,
        MemoryCloseRequest,
        MemoryRecoverReport,
        MemoryRecoverRequest,
    )
    from beetle.contracts.long_term import (
        LongTermDetailReport,
        LongTermDetailRequest,
        LongTermListReport,
        LongTermListRequest,
        LongTermMutateReport,
        LongTermMutateRequest,
    )
    from beetle.contracts.maintain import (
        GovernanceReport,
        GovernanceReportRequest,
        MemoryFinalizeTurnReport,
        MemoryFinalizeTurnRequest,
        MemoryMaintainReport,
        MemoryMaintainRequest,
    )
    from beetle.contracts.memory import (
        MemoryCapabilitiesRequest,
        MemoryCapabilityCatalog,
        MemoryInspectionReport,
        MemoryInspectionRequest,
        MemoryProjectionReport,
        MemoryProjectionRequest,
        MemoryRecallReport,
        MemoryRecallRequest,
        MemoryWriteReport,
        ProceduralWrite,
    )
    from beetle.contracts.names import BackendName, PlaneName, TransportName, ViewName
    from beetle.contracts.private import (
        PrivateDeleteReport,
        PrivateDeleteRequest,
        PrivateGetReport,
        PrivateGetRequest,
        PrivateListReport,
        PrivateListRequest,
    )
    from beetle.contracts.progress import OnProgress
    from beetle.contracts.remembering import MemoryRememberReport, MemoryRememberRequest
    from beetle.contracts.repairing import (
        IdentityRenewReport,
        IdentityRenewRequest,
        StoreRepairReport,
        StoreRepairRequest,
    )
    from beetle.contracts.replication import (
        ReplicationForgetReport,
        ReplicationForgetRequest,
        ReplicationRestoreReport,
        ReplicationRestoreRequest,
        ReplicationStatusReport,
        ReplicationStatusRequest,
    )
    from beetle.contracts.routing import MemoryClassifyReport, MemoryClassifyRequest
    from beetle.contracts.scheduler import (
        SchedulerPauseReport,
        SchedulerPauseRequest,
        SchedulerResumeReport,
        SchedulerResumeRequest,
        SchedulerRunReport,
        SchedulerRunRequest,
        SchedulerStatusReport,
        SchedulerStatusRequest,
    )
    from beetle.contracts.skill_registry import (
        SkillRegistryDeprecateRequest,
        SkillRegistryListReport,
        SkillRegistryListRequest,
        SkillRegistryManifestReport,
        SkillRegistryManifestRequest,
        SkillRegistryMdReport,
        SkillRegistryMdRequest,
        SkillRegistryMutationReport,
        SkillRegistryReadReport,
        SkillRegistryReadRequest,
        SkillRegistryRevokeRequest,
        SkillRegistrySearchReport,
        SkillRegistrySearchRequest,
        SkillRegistryUploadRequest,
        SkillRegistryVersionsReport,
        SkillRegistryVersionsRequest,
    )
    from beetle.contracts.skills import (
        RuntimeSkillDeleteRequest,
        RuntimeSkillDetailReport,
        RuntimeSkillDetailRequest,
        RuntimeSkillEditRequest,
        RuntimeSkillListReport,
        RuntimeSkillListRequest,
        RuntimeSkillMutationReport,
        RuntimeSkillSetEnabledRequest,
        RuntimeSkillWrite,
    )
    from beetle.contracts.snapshots import (
        SnapshotCreateReport,
        SnapshotCreateRequest,
        SnapshotListReport,
        SnapshotListRequest,
        SnapshotPruneReport,
        SnapshotPruneRequest,
        SnapshotRestoreReport,
        SnapshotRestoreRequest,
        SnapshotVerifyReport,
        SnapshotVerifyRequest,
    )
    from beetle.contracts.toc import (
        AdminRebuildTocReport,
        AdminRebuildTocRequest,
        GripExpandReport,
        GripExpandRequest,
        TocBrowseReport,
        TocBrowseRequest,
        TocNodeReport,
        TocNodeRequest,
        TocRootReport,
        TocRootRequest,
        TocSearchChildrenReport,
        TocSearchChildrenRequest,
        TocSearchNodeReport,
        TocSearchNodeRequest,
    )
    from beetle.contracts.tool_registries import (
        ToolEntry,
        ToolRegistryDeleteRequest,
        ToolRegistryGetReport,
        ToolRegistryGetRequest,
        ToolRegistryListReport,
        ToolRegistryListRequest,
        ToolRegistryMutationReport,
        ToolRegistryUpsertRequest,
    )
    from beetle.contracts.transcript import (
        MemoryTranscriptCommitReport,
        MemoryTranscriptCommitRequest,
        MemoryTranscriptConversationsReport,
        MemoryTranscriptConversationsRequest,
        MemoryTranscriptExportReport,
        MemoryTranscriptExportRequest,
        MemoryTranscriptLifecycleReport,
        MemoryTranscriptLifecycleRequest,
        MemoryTranscriptReplayReport,
        MemoryTranscriptReplayRequest,
        MemoryTranscriptSearchReport,
        MemoryTranscriptSearchRequest,
        MemoryTranscriptTimelineReport,
        MemoryTranscriptTimelineRequest,
        TimelineAnchor,
    )
    from beetle.contracts.transcript_repair import (
        MemoryTranscriptRepairReport,
        MemoryTranscriptRepairRequest,
        MemoryTranscriptRepairSafeReport,
        MemoryTranscriptRepairSafeRequest,
    )
    from beetle.contracts.transfer import (
        TransferBeginReport,
        TransferBeginRequest,
        TransferGetReport,
        TransferGetRequest,
        TransferPutReport,
        TransferPutRequest,
    )
    from beetle.contracts.turns import CanonicalTurnDelta, Role
    from beetle.contracts.waiting import (
        GovernanceDecideReport,
        GovernanceDecideRequest,
        GovernanceListReport,
        GovernanceListRequest,
    )


class AsyncOperationMethods(ABC):
    """Each method takes a request struct, or the request's fields as keyword arguments, of which one, mostly the
    first, may be given without its name; a struct in a field may be a mapping of its own fields.

    Every method raises the errors of `beetle.contracts.errors`.
    """

    @abstractmethod
    async def call(
        self,
        operation: str,
        arguments: Any = None,
        *,
        scope: WireScope | None = None,
        idempotency_key: str | None = None,
        deadline_ms: int | None = None,
        on_progress: OnProgress | None = None,
    ) -> Report:
        """Run any operation by its name; `arguments` is a request struct or a mapping of its fields.

        Args:
            scope: where to work; the runtime's or client's own when left out.
            idempotency_key: the same key with the same request answers the first report again.
            deadline_ms: give up when the work has not begun by then.
            on_progress: called with the progress of an operation that takes long, while it runs.
        """

    async def _ask(self, operation: str, first: str, given: Any, fields: dict[str, Any]) -> Any:
        return await self.call(operation, given_arguments(first, given, fields))

    async def note(
        self,
        text: str,
        *,
        conversation: Conversation | str | None = None,
        role: Role = "user",
        speaker: str | None = None,
        visibility: Visibility = "shared",
    ) -> MemoryTranscriptCommitReport:
        """Commit one turn with one message as evidence: `commit_transcript` with ids and a time made here.

        Args:
            text: the message, stored unchanged.
            conversation: the conversation or its id; one for each day (UTC) when left out.
            role: role of the sender in the conversation.
            speaker: display name of the speaker.
            visibility: visibility of the content.

        Returns:
            The one turn under `turns`, with its id and sequence.

        Raises:
            As `commit_transcript`.
        """
        from beetle.contracts.noting import note_request

        given = {"role": role, "visibility": visibility, "speaker": speaker}
        arguments = note_request(text, conversation, given)
        return cast("MemoryTranscriptCommitReport", await self.call("transcript.commit", arguments))

    if TYPE_CHECKING:

        @overload
        async def capabilities(self, request: MemoryCapabilitiesRequest, /) -> MemoryCapabilityCatalog: ...
        @overload
        async def capabilities(self, /) -> MemoryCapabilityCatalog: ...

    async def capabilities(
        self, request: MemoryCapabilitiesRequest | None = None, /, **fields: Any
    ) -> MemoryCapabilityCatalog:
        """List the caller's capabilities, and the reason for each one that is hidden.

        Returns:
            Capability name to whether it is visible, the intersection of profile, build, runtime and privacy
                policy.

        Raises:
            InvalidRequest: a field is not as it must be.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("memory.capabilities", "", request, fields)

    if TYPE_CHECKING:

        @overload
        async def inspect(self, request: MemoryInspectionRequest, /) -> MemoryInspectionReport: ...
        @overload
        async def inspect(
            self,
            /,
            *,
            query: str = "",
            system_max_len: int = 4000,
            pressure: Literal["normal", "elevated", "critical"] = "normal",
            mode_input: ModeInput | Mapping[str, Any] = ...,
        ) -> MemoryInspectionReport: ...
        @overload
        async def inspect(
            self,
            query: str,
            /,
            *,
            system_max_len: int = 4000,
            pressure: Literal["normal", "elevated", "critical"] = "normal",
            mode_input: ModeInput | Mapping[str, Any] = ...,
        ) -> MemoryInspectionReport: ...

    async def inspect(
        self, request: MemoryInspectionRequest | str | None = None, /, **fields: Any
    ) -> MemoryInspectionReport:
        """Report the state of the store, its counts and, with a query, how recall and projection answer it.

        Args:
            query: also show recall and projection of this (default empty; at most the profile's query_chars).
            system_max_len: characters the block may have, a hard bound (default 4000; at least 0; clipped at the
                profile's projection_chars).
            pressure: how little room the model's context window has (default normal).
            mode_input: the lifecycle mode that a caller asks an operation to run under; read_only and safe refuse
                writes (default {mode: normal}).

        Returns:
            `recall`, `recall_hits` and `projection` are filled when the request gives a query. `capabilities` are
                this caller's. `operator_actions` are the last ones, the newest first; the daemon's own are for
                operators. `agent_skills` counts nothing in the mode safe, in which mounted folders are not read.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `inspect`, or the caller was not granted it.
            PayloadTooLarge: over the profile's query_chars.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("memory.inspect", "query", request, fields)

    if TYPE_CHECKING:

        @overload
        async def recall(self, request: MemoryRecallRequest, /) -> MemoryRecallReport: ...
        @overload
        async def recall(
            self,
            /,
            *,
            query: str,
            limit: int = 8,
            tool_registry_refs: Sequence[RegistryRef | Mapping[str, Any]] = ...,
            planes: Sequence[PlaneName] | None = None,
            conversation: Conversation | Mapping[str, Any] | None = None,
            since: datetime | str | None = None,
            until: datetime | str | None = None,
            as_of: datetime | str | None = None,
            asked_at: datetime | str | None = None,
            path: Literal["direct", "toc"] = "direct",
        ) -> MemoryRecallReport: ...
        @overload
        async def recall(
            self,
            query: str,
            /,
            *,
            limit: int = 8,
            tool_registry_refs: Sequence[RegistryRef | Mapping[str, Any]] = ...,
            planes: Sequence[PlaneName] | None = None,
            conversation: Conversation | Mapping[str, Any] | None = None,
            since: datetime | str | None = None,
            until: datetime | str | None = None,
            as_of: datetime | str | None = None,
            asked_at: datetime | str | None = None,
            path: Literal["direct", "toc"] = "direct",
        ) -> MemoryRecallReport: ...

    async def recall(self, request: MemoryRecallRequest | str | None = None, /, **fields: Any) -> MemoryRecallReport:
        """Find what memory holds for a query, over every plane that the caller may see.

        Args:
            query: words to look for (required; at least 1 character; not blank; at most the profile's query_chars).
            limit: maximum number; clipped to the profile's limit (default 8; at least 1; clipped at the profile's
                recall_limit).
            tool_registry_refs: the host's registries (default (); at most 64 items).
            planes: only these planes (default None; at least 1 item; at most 6 items).
            conversation: a conversation within the caller's memory space (default None).
            since: not before (default None).
            until: not after (default None).
            as_of: recall as of this time (default None).
            asked_at: when the query was asked: what `last week` in it counts from; default: now (default None).
            path: toc: by the table of contents, from years down to segments (default direct).

        Returns:
            `hits` is the fused list, best first; the lists by plane hold the same hits apart.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `recall`, or the caller was not granted it.
            PayloadTooLarge: over the profile's query_chars.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("memory.recall", "query", request, fields)

    if TYPE_CHECKING:

        @overload
        async def project(self, request: MemoryProjectionRequest, /) -> MemoryProjectionReport: ...
        @overload
        async def project(
            self,
            /,
            *,
            user_query: str,
            system_max_len: int = 4000,
            recent_messages_limit: int = 10,
            pressure: Literal["normal", "elevated", "critical"] = "normal",
            conversation: Conversation | Mapping[str, Any] | None = None,
            mode_input: ModeInput | Mapping[str, Any] = ...,
            tool_registry_refs: Sequence[RegistryRef | Mapping[str, Any]] = ...,
        ) -> MemoryProjectionReport: ...
        @overload
        async def project(
            self,
            user_query: str,
            /,
            *,
            system_max_len: int = 4000,
            recent_messages_limit: int = 10,
            pressure: Literal["normal", "elevated", "critical"] = "normal",
            conversation: Conversation | Mapping[str, Any] | None = None,
            mode_input: ModeInput | Mapping[str, Any] = ...,
            tool_registry_refs: Sequence[RegistryRef | Mapping[str, Any]] = ...,
        ) -> MemoryProjectionReport: ...

    async def project(
        self, request: MemoryProjectionRequest | str | None = None, /, **fields: Any
    ) -> MemoryProjectionReport:
        """Build the bounded memory block for a model's context.

        Args:
            user_query: the user's current query; may be empty (required; at most the profile's query_chars).
            system_max_len: characters the block may have, a hard bound (default 4000; at least 0; clipped at the
                profile's projection_chars).
            recent_messages_limit: most recent messages to show (default 10; at least 0; at most 1,000).
            pressure: how little room the model's context window has (default normal).
            conversation: a conversation within the caller's memory space (default None).
            mode_input: the lifecycle mode that a caller asks an operation to run under; read_only and safe refuse
                writes (default {mode: normal}).
            tool_registry_refs: the host's registries (default (); at most 64 items).

        Returns:
            `system_memory_block` goes into a model's context unchanged; empty when nothing fits.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `project`, or the caller was not granted it.
            PayloadTooLarge: over the profile's query_chars.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("memory.project", "user_query", request, fields)

    if TYPE_CHECKING:

        @overload
        async def write(
            self, request: ProceduralWrite | LongTermExtractionWrite | CandidatesWrite | ToolFeedbackWrite, /
        ) -> MemoryWriteReport: ...
        @overload
        async def write(
            self,
            /,
            *,
            kind: Literal["procedural"],
            source: Literal["manual", "post_turn", "replay_promotion", "import"],
            writes: Sequence[RuntimeSkillWrite | Mapping[str, Any]],
        ) -> MemoryWriteReport: ...
        @overload
        async def write(
            self,
            /,
            *,
            kind: Literal["long_term_extraction"],
            extraction: Extraction | Mapping[str, Any],
        ) -> MemoryWriteReport: ...
        @overload
        async def write(
            self,
            /,
            *,
            kind: Literal["candidates"],
            candidates: Sequence[Candidate | Mapping[str, Any]],
        ) -> MemoryWriteReport: ...
        @overload
        async def write(
            self,
            /,
            *,
            kind: Literal["agent_tool_usage_feedback"],
            feedback: ToolUsageFeedback | Mapping[str, Any],
        ) -> MemoryWriteReport: ...

    async def write(
        self,
        request: ProceduralWrite | LongTermExtractionWrite | CandidatesWrite | ToolFeedbackWrite | None = None,
        /,
        **fields: Any,
    ) -> MemoryWriteReport:
        """Write runtime skills, candidates for facts, an extraction or feedback on tools: all of it or nothing.

        Args:
            kind: "procedural": Create or revise runtime skills: all of them or none.
            source (`procedural`): source of the skills (required).
            writes (`procedural`): the skills to create or revise (required; at least 1 item; at most the profile's
                batch_requests).
            kind: "long_term_extraction": Have the items of an extraction judged as candidates for long-term facts.
            extraction (`long_term_extraction`): the extraction: items, chat and extractor (required).
            kind: "candidates": Have candidates judged, each in its order: accepted, rejected or deferred, and why.
            candidates (`candidates`): the candidates to judge (required; at least 1 item; at most the profile's
                batch_requests).
            kind: "agent_tool_usage_feedback": Keep what a host observed of its tools, so that experience with them
                can be governed.
            feedback (`agent_tool_usage_feedback`): the observations and the registry they belong to (required).

        Returns:
            `writes` (of skills) or `outcomes` (of what was judged) in the order of the request. `derived_refs` are
                those that this write made.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `write`, or the caller was not granted it.
            PayloadTooLarge: over the profile's skill_text_bytes, batch_requests, message_content_bytes.
            StoreBudgetExceeded: the store is at its ceiling.
            StoreReadOnly, StorageFull: nothing can be written.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("memory.write", "", request, fields)

    if TYPE_CHECKING:

        @overload
        async def classify_query(self, request: MemoryClassifyRequest, /) -> MemoryClassifyReport: ...
        @overload
        async def classify_query(
            self,
            /,
            *,
            query: str,
            timeout_ms: int | None = None,
            asked_at: datetime | str | None = None,
        ) -> MemoryClassifyReport: ...
        @overload
        async def classify_query(
            self,
            query: str,
            /,
            *,
            timeout_ms: int | None = None,
            asked_at: datetime | str | None = None,
        ) -> MemoryClassifyReport: ...

    async def classify_query(
        self, request: MemoryClassifyRequest | str | None = None, /, **fields: Any
    ) -> MemoryClassifyReport:
        """Classify a query: the kind of answer that it asks for, and the period.

        Args:
            query: the query (required; not blank; at most the profile's query_chars).
            timeout_ms: how long the answer may take: it is time_boxed then (default None; at least 1; at most
                86,400,000).
            asked_at: when the query was asked: what `last week` in it counts from; default: now (default None).

        Returns:
            The intent and the words of the query that show it. `confidence` is 0.5 where no word does, then it is
                an answer. `lookback_ms` is how far back from `asked_at` the time begins of which the query speaks,
                null where it names none.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `recall`, or the caller was not granted it.
            PayloadTooLarge: over the profile's query_chars.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("memory.classify", "query", request, fields)

    if TYPE_CHECKING:

        @overload
        async def maintain(self, request: MemoryMaintainRequest, /) -> MemoryMaintainReport: ...
        @overload
        async def maintain(
            self,
            /,
            *,
            conversation: Conversation | Mapping[str, Any] | None = None,
            limit: int = 50,
            mode_input: ModeInput | Mapping[str, Any] | None = None,
        ) -> MemoryMaintainReport: ...
        @overload
        async def maintain(
            self,
            conversation: Conversation | Mapping[str, Any] | None,
            /,
            *,
            limit: int = 50,
            mode_input: ModeInput | Mapping[str, Any] | None = None,
        ) -> MemoryMaintainReport: ...

    async def maintain(
        self, request: MemoryMaintainRequest | Conversation | Mapping[str, Any] | None | None = None, /, **fields: Any
    ) -> MemoryMaintainReport:
        """Let the configured model read the turns since the last run, and judge the facts that it notes.

        Args:
            conversation: the conversation; default: the current one (default None).
            limit: maximum number; clipped to the profile's limit (default 50; at least 1; clipped at the profile's
                transcript_page_turns).
            mode_input: the lifecycle mode that a caller asks an operation to run under; read_only and safe refuse
                writes (default None).

        Returns:
            What became of the turns behind `watermark_before`, up to `watermark`, which are not looked at again.
                `asked` says whether the model was asked: not where nothing may be shown to it. Of its `items`,
                those that no cited message says are `unsupported`, and those that hold what looks like a secret are
                `refused`; the rest were judged. `withheld` counts messages that were not shown to it. `has_more`:
                turns are left behind `watermark`. `job_id` names the job that goes on with them.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `maintain`, or the caller was not granted it.
            StoreBudgetExceeded: the store is at its ceiling.
            StoreReadOnly, StorageFull: nothing can be written.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("memory.maintain", "conversation", request, fields)

    if TYPE_CHECKING:

        @overload
        async def finalize_turn_and_maintain(
            self, request: MemoryFinalizeTurnRequest, /
        ) -> MemoryFinalizeTurnReport: ...
        @overload
        async def finalize_turn_and_maintain(
            self,
            /,
            *,
            conversation: Conversation | Mapping[str, Any],
            turn: CanonicalTurnDelta | Mapping[str, Any],
            maintain: bool = True,
            mode_input: ModeInput | Mapping[str, Any] | None = None,
        ) -> MemoryFinalizeTurnReport: ...
        @overload
        async def finalize_turn_and_maintain(
            self,
            conversation: Conversation | Mapping[str, Any],
            /,
            *,
            turn: CanonicalTurnDelta | Mapping[str, Any],
            maintain: bool = True,
            mode_input: ModeInput | Mapping[str, Any] | None = None,
        ) -> MemoryFinalizeTurnReport: ...

    async def finalize_turn_and_maintain(
        self, request: MemoryFinalizeTurnRequest | Conversation | Mapping[str, Any] | None = None, /, **fields: Any
    ) -> MemoryFinalizeTurnReport:
        """Commit one delivered turn as evidence, then maintain its conversation or queue a job for it.

        Args:
            conversation: a conversation within the caller's memory space (required).
            turn: the delivered turn (required).
            maintain: whether to maintain the conversation after the commit (default True).
            mode_input: the lifecycle mode that a caller asks an operation to run under; read_only and safe refuse
                writes (default None).

        Returns:
            `session_commit` says which conversation the scope's chat id refers to now; untrusted, it refers to
                none. `maintained`: `done`, with the report in `maintenance`; `deferred`, to the job
                `deferred_job_id`, for `deferred_reason`; `not_asked`; `not_granted`, when this caller may not
                maintain.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `transcript`, or the caller was not granted it.
            PayloadTooLarge: over the profile's message_content_bytes, host_refs_per_turn.
            StoreBudgetExceeded: the store is at its ceiling.
            StoreReadOnly, StorageFull: nothing can be written.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("memory.finalize_turn", "conversation", request, fields)

    if TYPE_CHECKING:

        @overload
        async def governance_report(self, request: GovernanceReportRequest, /) -> GovernanceReport: ...
        @overload
        async def governance_report(
            self,
            /,
            *,
            since: datetime | str | None = None,
        ) -> GovernanceReport: ...
        @overload
        async def governance_report(
            self,
            since: datetime | str | None,
            /,
        ) -> GovernanceReport: ...

    async def governance_report(
        self, request: GovernanceReportRequest | datetime | str | None | None = None, /, **fields: Any
    ) -> GovernanceReport:
        """Report the deferred candidates, the jobs, the decisions and the active policies.

        Args:
            since: count decisions since this time; default: since the runtime started (default None).

        Returns:
            Counts and ids alone. `complete` is false when the event log was not read back as far as `since`.
                Private and soul candidates are not counted: private.list shows their owner what waits.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `inspect`, or the caller was not granted it.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("governance.report", "since", request, fields)

    if TYPE_CHECKING:

        @overload
        async def remember(self, request: MemoryRememberRequest, /) -> MemoryRememberReport: ...
        @overload
        async def remember(
            self,
            /,
            *,
            text: str,
            said: str | None = None,
            speaker: str | None = None,
            topic: str = "",
            kind: Literal["profile", "preference", "fact", "event", "relationship", "constraint", "goal"] = "fact",
            conversation: Conversation | Mapping[str, Any] | None = None,
        ) -> MemoryRememberReport: ...
        @overload
        async def remember(
            self,
            text: str,
            /,
            *,
            said: str | None = None,
            speaker: str | None = None,
            topic: str = "",
            kind: Literal["profile", "preference", "fact", "event", "relationship", "constraint", "goal"] = "fact",
            conversation: Conversation | Mapping[str, Any] | None = None,
        ) -> MemoryRememberReport: ...

    async def remember(
        self, request: MemoryRememberRequest | str | None = None, /, **fields: Any
    ) -> MemoryRememberReport:
        """Remember one fact in plain words: store the words as evidence, then judge the fact by them.

        With `said`, these words are stored as the user's, and the fact is judged as asserted by the user. Without it,
        `text` is stored as the assistant's, and the fact waits for a user's word.

        Args:
            text: the fact, one whole sentence such as: Mara prefers tea (required; not blank; at most the profile's
                message_content_bytes).
            said: the user's own words that say it, unchanged (default None; not blank; at most the profile's
                message_content_bytes).
            speaker: display name of the user who said it (default None; at most 256 characters; no control
                characters).
            topic: topic; a later fact of the same topic replaces this one (default empty; at most 256 characters).
            kind: kind of the fact (default fact).
            conversation: conversation in which the words are stored; default: the scope's, else one for each caller
                and day (UTC) (default None).

        Returns:
            What became of it. `accepted`: the fact `ref` is current. `waiting`: governance.list shows it as
                `waiting_id`. `refused`: only the evidence was stored. `evidence_ref` names the words, which recall
                finds in any case. `authority` is whose word the fact was judged as. `superseded_ref` is the fact
                that it replaced.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `write`, or the caller was not granted it.
            PayloadTooLarge: over the profile's message_content_bytes.
            StoreBudgetExceeded: the store is at its ceiling.
            StoreReadOnly, StorageFull: nothing can be written.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("memory.remember", "text", request, fields)

    if TYPE_CHECKING:

        @overload
        async def forget(self, request: MemoryForgetRequest, /) -> MemoryForgetReport: ...
        @overload
        async def forget(
            self,
            /,
            *,
            conversation: Conversation | Mapping[str, Any] | None = None,
            subject: str | None = None,
            query: str | None = None,
            whole_space: bool = False,
            dry_run: bool = False,
            token: str | None = None,
        ) -> MemoryForgetReport: ...
        @overload
        async def forget(
            self,
            query: str | None,
            /,
            *,
            conversation: Conversation | Mapping[str, Any] | None = None,
            subject: str | None = None,
            whole_space: bool = False,
            dry_run: bool = False,
            token: str | None = None,
        ) -> MemoryForgetReport: ...

    async def forget(
        self, request: MemoryForgetRequest | str | None | None = None, /, **fields: Any
    ) -> MemoryForgetReport:
        """Forget a conversation, a subject, a query or the whole space: a dry run first, then its token.

        Args:
            conversation: every turn of this conversation (default None).
            subject: turns that a speaker of this name, or this subject id, takes part in (default None; at least 1
                character; at most 256 characters; no control characters).
            query: everything that holds all of these words, in whatever plane (default None; at least 1 character;
                not blank; at most the profile's query_chars).
            whole_space: everything that the space holds (default False).
            dry_run: report what would go and what stays; change nothing (default False).
            token: token of the dry run (default None; at least 1 character; at most 256 characters).

        Returns:
            `counts` are the records that went, or in a dry run would, by what they are called: every one of them is
                counted. `refs` are the facts and skills among them, and end at their budget. `hidden` counts the
                records that an operator may not see and that would go: then there is no token. `erasure` and
                `replica_horizon`: see `transcript.lifecycle`.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `forget`, or the caller was not granted it.
            PayloadTooLarge: over the profile's query_chars.
            StoreReadOnly, StorageFull: nothing can be written.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("memory.forget", "query", request, fields)

    if TYPE_CHECKING:

        @overload
        async def replay(self, request: MemoryReplayRequest, /) -> MemoryReplayReport: ...
        @overload
        async def replay(
            self,
            /,
            *,
            chat_id: str,
            limit: int = 50,
            cursor: str | None = None,
        ) -> MemoryReplayReport: ...
        @overload
        async def replay(
            self,
            chat_id: str,
            /,
            *,
            limit: int = 50,
            cursor: str | None = None,
        ) -> MemoryReplayReport: ...

    async def replay(self, request: MemoryReplayRequest | str | None = None, /, **fields: Any) -> MemoryReplayReport:
        """Read a chat's turn ledger: when each turn was committed and its later changes, without content.

        Args:
            chat_id: the chat, in the channel of the scope (required; at least 1 character; at most 256 characters;
                no control characters).
            limit: maximum number; clipped to the profile's limit (default 50; at least 1; clipped at the profile's
                transcript_page_turns).
            cursor: next_cursor of the previous page (default None; at least 1 character; at most 1,024 characters).

        Returns:
            `conversation` is the one that the chat refers to.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `replay`, or the caller was not granted it.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("memory.replay", "chat_id", request, fields)

    if TYPE_CHECKING:

        @overload
        async def export_snapshot(self, request: MemoryExportRequest, /) -> MemoryExportReport: ...
        @overload
        async def export_snapshot(
            self,
            /,
            *,
            chat_id: str,
            include_private: bool = False,
            passphrase: str | None = None,
            view: Literal["export"] = "export",
            in_pieces: bool = False,
        ) -> MemoryExportReport: ...
        @overload
        async def export_snapshot(
            self,
            chat_id: str,
            /,
            *,
            include_private: bool = False,
            passphrase: str | None = None,
            view: Literal["export"] = "export",
            in_pieces: bool = False,
        ) -> MemoryExportReport: ...

    async def export_snapshot(
        self, request: MemoryExportRequest | str | None = None, /, **fields: Any
    ) -> MemoryExportReport:
        """Export one chat as a continuity snapshot: shared evidence, its skills, and the facts learned from it.

        Args:
            chat_id: the chat, in the channel of the scope (required; at least 1 character; at most 256 characters;
                no control characters).
            include_private: include private material; needs a passphrase, which encrypts the whole export (default
                False).
            passphrase: encrypts an export, and decrypts an encrypted one (default None; at least 8 characters; at
                most 1,024 characters).
            view: view that filters the exported content (default export).
            in_pieces: hand over what is larger than a piece under a handle, to be fetched with `transfer.get`
                (default False).

        Returns:
            `left_out` counts what stays behind, by sort. `state_fingerprint` is that of what was taken out.
                `device` is the fingerprint of this device, which signed it; null where its identity cannot be used.
                `transfer` is what to fetch in place of `snapshot`, where it goes in pieces.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `export`, or the caller was not granted it.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("memory.export", "chat_id", request, fields)

    if TYPE_CHECKING:

        @overload
        async def import_snapshot(self, request: MemoryImportRequest, /) -> MemoryImportReport: ...
        @overload
        async def import_snapshot(
            self,
            /,
            *,
            target_chat_id: str,
            mode: Literal["bootstrap_import", "full_restore"],
            snapshot: bytes | None = None,
            transfer_id: str | None = None,
            passphrase: str | None = None,
            discard_withheld: bool = False,
            other_store: bool = False,
        ) -> MemoryImportReport: ...
        @overload
        async def import_snapshot(
            self,
            snapshot: bytes | None,
            /,
            *,
            target_chat_id: str,
            mode: Literal["bootstrap_import", "full_restore"],
            transfer_id: str | None = None,
            passphrase: str | None = None,
            discard_withheld: bool = False,
            other_store: bool = False,
        ) -> MemoryImportReport: ...

    async def import_snapshot(
        self, request: MemoryImportRequest | bytes | None | None = None, /, **fields: Any
    ) -> MemoryImportReport:
        """Import a continuity snapshot as one chat: all of it or nothing.

        Args:
            snapshot: the bytes as they were exported (default None; at least 1 character; at most the profile's
                import_bytes).
            transfer_id: the transfer that holds the bytes, in place of the bytes (default None; at least 1
                character; at most 256 characters; no control characters).
            target_chat_id: chat to import into, in the channel of the scope (required; at least 1 character; at
                most 256 characters; no control characters).
            mode: import into an empty scope (bootstrap_import), or replace its content (full_restore) (required).
            passphrase: encrypts an export, and decrypts an encrypted one (default None; at least 8 characters; at
                most 1,024 characters).
            discard_withheld: full_restore: also delete material that such an export never contains and cannot
                restore (default False).
            other_store: full_restore: replace existing content with an export that this device has not signed
                (default False).

        Returns:
            Of both imports. `replaced` counts what full_restore took away; `replica_horizon` is the time of the
                newest copy of the store that may hold it still. `device` is the fingerprint of the device that
                signed what was imported, null when it is unsigned; `own`, that it is this one; `former`, that it is
                an identity that this store had before. `state_fingerprint` is what the scope's export of the same
                sort has from now on. It is a digest of content, so it is in the first answer alone.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `import`, or the caller was not granted it.
            PayloadTooLarge: over the profile's import_bytes.
            StoreBudgetExceeded: the store is at its ceiling.
            StoreReadOnly, StorageFull: nothing can be written.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("memory.import", "snapshot", request, fields)

    if TYPE_CHECKING:

        @overload
        async def export_space(self, request: MemorySpaceExportRequest, /) -> MemorySpaceExportReport: ...
        @overload
        async def export_space(
            self,
            /,
            *,
            include_private: bool = False,
            passphrase: str | None = None,
            view: Literal["export"] = "export",
            in_pieces: bool = False,
        ) -> MemorySpaceExportReport: ...
        @overload
        async def export_space(
            self,
            include_private: bool,
            /,
            *,
            passphrase: str | None = None,
            view: Literal["export"] = "export",
            in_pieces: bool = False,
        ) -> MemorySpaceExportReport: ...

    async def export_space(
        self, request: MemorySpaceExportRequest | bool | None = None, /, **fields: Any
    ) -> MemorySpaceExportReport:
        """Export the memory space as an archive; without private material it has no transcripts, aliases or their
        refs.

        Args:
            include_private: include private material; needs a passphrase, which encrypts the whole export (default
                False).
            passphrase: encrypts an export, and decrypts an encrypted one (default None; at least 8 characters; at
                most 1,024 characters).
            view: view that filters the exported content (default export).
            in_pieces: hand over what is larger than a piece under a handle, to be fetched with `transfer.get`
                (default False).

        Returns:
            As of a chat's export.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `export`, or the caller was not granted it.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("memory.export_space", "include_private", request, fields)

    if TYPE_CHECKING:

        @overload
        async def import_space(self, request: MemorySpaceImportRequest, /) -> MemoryImportReport: ...
        @overload
        async def import_space(
            self,
            /,
            *,
            mode: Literal["bootstrap_import", "full_restore"],
            archive: bytes | None = None,
            transfer_id: str | None = None,
            passphrase: str | None = None,
            discard_withheld: bool = False,
            other_store: bool = False,
        ) -> MemoryImportReport: ...
        @overload
        async def import_space(
            self,
            archive: bytes | None,
            /,
            *,
            mode: Literal["bootstrap_import", "full_restore"],
            transfer_id: str | None = None,
            passphrase: str | None = None,
            discard_withheld: bool = False,
            other_store: bool = False,
        ) -> MemoryImportReport: ...

    async def import_space(
        self, request: MemorySpaceImportRequest | bytes | None | None = None, /, **fields: Any
    ) -> MemoryImportReport:
        """Import an archive as the memory space: all of it or nothing.

        Args:
            archive: the bytes as they were exported (default None; at least 1 character; at most the profile's
                import_bytes).
            transfer_id: the transfer that holds the bytes, in place of the bytes (default None; at least 1
                character; at most 256 characters; no control characters).
            mode: import into an empty scope (bootstrap_import), or replace its content (full_restore) (required).
            passphrase: encrypts an export, and decrypts an encrypted one (default None; at least 8 characters; at
                most 1,024 characters).
            discard_withheld: full_restore: also delete material that such an export never contains and cannot
                restore (default False).
            other_store: full_restore: replace existing content with an export that this device has not signed
                (default False).

        Returns:
            Of both imports. `replaced` counts what full_restore took away; `replica_horizon` is the time of the
                newest copy of the store that may hold it still. `device` is the fingerprint of the device that
                signed what was imported, null when it is unsigned; `own`, that it is this one; `former`, that it is
                an identity that this store had before. `state_fingerprint` is what the scope's export of the same
                sort has from now on. It is a digest of content, so it is in the first answer alone.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `import`, or the caller was not granted it.
            PayloadTooLarge: over the profile's import_bytes.
            StoreBudgetExceeded: the store is at its ceiling.
            StoreReadOnly, StorageFull: nothing can be written.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("memory.import_space", "archive", request, fields)

    if TYPE_CHECKING:

        @overload
        async def begin_transfer(self, request: TransferBeginRequest, /) -> TransferBeginReport: ...
        @overload
        async def begin_transfer(
            self,
            /,
            *,
            total_bytes: int,
        ) -> TransferBeginReport: ...
        @overload
        async def begin_transfer(
            self,
            total_bytes: int,
            /,
        ) -> TransferBeginReport: ...

    async def begin_transfer(
        self, request: TransferBeginRequest | int | None = None, /, **fields: Any
    ) -> TransferBeginReport:
        """Begin to send the bytes of an import in pieces.

        Args:
            total_bytes: how many bytes will be sent in all (required; at least 1; at most 9,007,199,254,740,992; at
                most the profile's import_bytes).

        Returns:
            Where to send the pieces, each of at most `piece_bytes`.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `import`, or the caller was not granted it.
            PayloadTooLarge: over the profile's import_bytes.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("transfer.begin", "total_bytes", request, fields)

    if TYPE_CHECKING:

        @overload
        async def put_piece(self, request: TransferPutRequest, /) -> TransferPutReport: ...
        @overload
        async def put_piece(
            self,
            /,
            *,
            transfer_id: str,
            offset: int,
            data: bytes,
        ) -> TransferPutReport: ...
        @overload
        async def put_piece(
            self,
            transfer_id: str,
            /,
            *,
            offset: int,
            data: bytes,
        ) -> TransferPutReport: ...

    async def put_piece(self, request: TransferPutRequest | str | None = None, /, **fields: Any) -> TransferPutReport:
        """Send the next piece of an import; the last one completes it.

        Args:
            transfer_id: handle of a transfer, as `transfer.begin` or an export answered it (required; at least 1
                character; at most 256 characters; no control characters).
            offset: how many bytes were sent before this piece (required; at least 0; at most
                9,007,199,254,740,992).
            data: the piece (required; at least 1 character; at most the profile's piece_bytes).

        Returns:
            `received` of `total_bytes` are here; the import may be asked for when they are equal.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `import`, or the caller was not granted it.
            PayloadTooLarge: over the profile's piece_bytes.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("transfer.put", "transfer_id", request, fields)

    if TYPE_CHECKING:

        @overload
        async def get_piece(self, request: TransferGetRequest, /) -> TransferGetReport: ...
        @overload
        async def get_piece(
            self,
            /,
            *,
            transfer_id: str,
            offset: int,
            view: Literal["export"] = "export",
        ) -> TransferGetReport: ...
        @overload
        async def get_piece(
            self,
            transfer_id: str,
            /,
            *,
            offset: int,
            view: Literal["export"] = "export",
        ) -> TransferGetReport: ...

    async def get_piece(self, request: TransferGetRequest | str | None = None, /, **fields: Any) -> TransferGetReport:
        """Fetch a piece of an export; the one that ends the export ends the transfer.

        Args:
            transfer_id: handle of a transfer, as `transfer.begin` or an export answered it (required; at least 1
                character; at most 256 characters; no control characters).
            offset: where the piece begins; below the export's total_bytes (required; at least 0; at most
                9,007,199,254,740,992).
            view: view that filters the exported content (default export).

        Returns:
            The piece that begins at `offset`, of an export of `total_bytes`; `done` with the last one.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `export`, or the caller was not granted it.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("transfer.get", "transfer_id", request, fields)

    if TYPE_CHECKING:

        @overload
        async def list_runtime_skills(self, request: RuntimeSkillListRequest, /) -> RuntimeSkillListReport: ...
        @overload
        async def list_runtime_skills(
            self,
            /,
            *,
            query: str = "",
            include_disabled: bool = True,
            include_retired: bool = False,
            sort: Literal["name", "updated", "revision"] = "name",
            descending: bool = False,
            limit: int = 50,
            cursor: str | None = None,
        ) -> RuntimeSkillListReport: ...
        @overload
        async def list_runtime_skills(
            self,
            query: str,
            /,
            *,
            include_disabled: bool = True,
            include_retired: bool = False,
            sort: Literal["name", "updated", "revision"] = "name",
            descending: bool = False,
            limit: int = 50,
            cursor: str | None = None,
        ) -> RuntimeSkillListReport: ...

    async def list_runtime_skills(
        self, request: RuntimeSkillListRequest | str | None = None, /, **fields: Any
    ) -> RuntimeSkillListReport:
        """List runtime skills, with a filter over name, title, topic and summary.

        Args:
            query: words that must occur in name, title, topic or summary (default empty; at most 256 characters).
            include_disabled: include disabled skills (default True).
            include_retired: include skills that governance retired (default False).
            sort: sort key; ties are sorted by name (default name).
            descending: reverse the order: last name, latest change or highest revision first (default False).
            limit: maximum number; clipped to the profile's limit (default 50; at least 1; clipped at the profile's
                page_limit).
            cursor: next_cursor of the previous page (default None; at least 1 character; at most 1,024 characters).

        Returns:
            `total`, `active` and `disabled` count the whole space, not the page.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `skill`, or the caller was not granted it.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("skill.list", "query", request, fields)

    if TYPE_CHECKING:

        @overload
        async def get_runtime_skill(self, request: RuntimeSkillDetailRequest, /) -> RuntimeSkillDetailReport: ...
        @overload
        async def get_runtime_skill(
            self,
            /,
            *,
            name: str,
        ) -> RuntimeSkillDetailReport: ...
        @overload
        async def get_runtime_skill(
            self,
            name: str,
            /,
        ) -> RuntimeSkillDetailReport: ...

    async def get_runtime_skill(
        self, request: RuntimeSkillDetailRequest | str | None = None, /, **fields: Any
    ) -> RuntimeSkillDetailReport:
        """Show one runtime skill with its citations, its lineage and the changes of each revision.

        Args:
            name: the skill's name (required; at least 1 character; at most 256 characters; no control characters,
                no slash).

        Returns:
            `procedure` is the text that write calls content; `raw_content` is the whole record as one Markdown
                text.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `skill`, or the caller was not granted it.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("skill.detail", "name", request, fields)

    if TYPE_CHECKING:

        @overload
        async def edit_runtime_skill(self, request: RuntimeSkillEditRequest, /) -> RuntimeSkillMutationReport: ...
        @overload
        async def edit_runtime_skill(
            self,
            /,
            *,
            name: str,
            edit_reason: str,
            title: str | None = None,
            topic: str | None = None,
            summary: str | None = None,
            procedure: str | None = None,
            expected_revision: int | None = None,
        ) -> RuntimeSkillMutationReport: ...
        @overload
        async def edit_runtime_skill(
            self,
            name: str,
            /,
            *,
            edit_reason: str,
            title: str | None = None,
            topic: str | None = None,
            summary: str | None = None,
            procedure: str | None = None,
            expected_revision: int | None = None,
        ) -> RuntimeSkillMutationReport: ...

    async def edit_runtime_skill(
        self, request: RuntimeSkillEditRequest | str | None = None, /, **fields: Any
    ) -> RuntimeSkillMutationReport:
        """Edit a runtime skill as a new revision; omitted fields stay unchanged.

        Args:
            name: the skill's name (required; at least 1 character; at most 256 characters; no control characters,
                no slash).
            title: title, one line (default None; at most 256 characters; not blank).
            topic: topic (default None; at most 256 characters; not blank).
            summary: when to use the skill, in one or two sentences (default None; at most 2,048 characters; not
                blank).
            procedure: the procedure, usually Markdown (default None; not blank; at most the profile's
                skill_text_bytes).
            edit_reason: reason for the edit (required; at least 1 character; at most 512 characters; not blank).
            expected_revision: refuse unless this is the current revision (default None; at least 1).

        Returns:
            Of skill.edit, skill.set_enabled and skill.delete. `revision` is the current one, or the last one
                deleted.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `skill`, or the caller was not granted it.
            PayloadTooLarge: over the profile's skill_text_bytes.
            StoreBudgetExceeded: the store is at its ceiling.
            StoreReadOnly, StorageFull: nothing can be written.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("skill.edit", "name", request, fields)

    if TYPE_CHECKING:

        @overload
        async def set_runtime_skill_enabled(
            self, request: RuntimeSkillSetEnabledRequest, /
        ) -> RuntimeSkillMutationReport: ...
        @overload
        async def set_runtime_skill_enabled(
            self,
            /,
            *,
            name: str,
            enabled: bool,
        ) -> RuntimeSkillMutationReport: ...
        @overload
        async def set_runtime_skill_enabled(
            self,
            name: str,
            /,
            *,
            enabled: bool,
        ) -> RuntimeSkillMutationReport: ...

    async def set_runtime_skill_enabled(
        self, request: RuntimeSkillSetEnabledRequest | str | None = None, /, **fields: Any
    ) -> RuntimeSkillMutationReport:
        """Enable or disable a runtime skill; its content stays as it is.

        Args:
            name: the skill's name (required; at least 1 character; at most 256 characters; no control characters,
                no slash).
            enabled: whether recall and projection may use it (required).

        Returns:
            Of skill.edit, skill.set_enabled and skill.delete. `revision` is the current one, or the last one
                deleted.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `skill`, or the caller was not granted it.
            StoreReadOnly, StorageFull: nothing can be written.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("skill.set_enabled", "name", request, fields)

    if TYPE_CHECKING:

        @overload
        async def delete_runtime_skill(self, request: RuntimeSkillDeleteRequest, /) -> RuntimeSkillMutationReport: ...
        @overload
        async def delete_runtime_skill(
            self,
            /,
            *,
            name: str,
        ) -> RuntimeSkillMutationReport: ...
        @overload
        async def delete_runtime_skill(
            self,
            name: str,
            /,
        ) -> RuntimeSkillMutationReport: ...

    async def delete_runtime_skill(
        self, request: RuntimeSkillDeleteRequest | str | None = None, /, **fields: Any
    ) -> RuntimeSkillMutationReport:
        """Delete a runtime skill with all revisions; the event log records the deletion.

        Args:
            name: the skill's name (required; at least 1 character; at most 256 characters; no control characters,
                no slash).

        Returns:
            Of skill.edit, skill.set_enabled and skill.delete. `revision` is the current one, or the last one
                deleted.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `skill`, or the caller was not granted it.
            StoreReadOnly, StorageFull: nothing can be written.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("skill.delete", "name", request, fields)

    if TYPE_CHECKING:

        @overload
        async def list_agent_skills(self, request: AgentSkillListRequest, /) -> AgentSkillListReport: ...
        @overload
        async def list_agent_skills(
            self,
            /,
            *,
            query: str = "",
            limit: int = 50,
            cursor: str | None = None,
        ) -> AgentSkillListReport: ...
        @overload
        async def list_agent_skills(
            self,
            query: str,
            /,
            *,
            limit: int = 50,
            cursor: str | None = None,
        ) -> AgentSkillListReport: ...

    async def list_agent_skills(
        self, request: AgentSkillListRequest | str | None = None, /, **fields: Any
    ) -> AgentSkillListReport:
        """Scan the mounted Agent Skill folders and list the skills in them.

        Args:
            query: words that must occur in name or description (default empty; at most 256 characters).
            limit: maximum number; clipped to the profile's limit (default 50; at least 1; clipped at the profile's
                page_limit).
            cursor: next_cursor of the previous page (default None; at least 1 character; at most 1,024 characters).

        Returns:
            `total` counts every skill that was found, whatever the query. Files are read for the page's skills
                alone.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `agent_skill`, or the caller was not granted it.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("agent_skill.list", "query", request, fields)

    if TYPE_CHECKING:

        @overload
        async def read_skill_md(self, request: SkillRegistryMdRequest, /) -> SkillRegistryMdReport: ...
        @overload
        async def read_skill_md(self, /) -> SkillRegistryMdReport: ...

    async def read_skill_md(
        self, request: SkillRegistryMdRequest | None = None, /, **fields: Any
    ) -> SkillRegistryMdReport:
        """Read how a model uses Beetle: memory, chains and the skill registry on one page.

        Returns:
            One page of Markdown.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `skill_registry`, or the caller was not granted it.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("skill_registry.md", "", request, fields)

    if TYPE_CHECKING:

        @overload
        async def list_uploaded_skills(self, request: SkillRegistryListRequest, /) -> SkillRegistryListReport: ...
        @overload
        async def list_uploaded_skills(
            self,
            /,
            *,
            chain_key: str | None = None,
            limit: int = 50,
            cursor: str | None = None,
        ) -> SkillRegistryListReport: ...
        @overload
        async def list_uploaded_skills(
            self,
            chain_key: str | None,
            /,
            *,
            limit: int = 50,
            cursor: str | None = None,
        ) -> SkillRegistryListReport: ...

    async def list_uploaded_skills(
        self, request: SkillRegistryListRequest | str | None | None = None, /, **fields: Any
    ) -> SkillRegistryListReport:
        """List the uploaded skills of the owner, the last changed first.

        Args:
            chain_key: the chain of the agent; it is logged, the registry is the owner's (default None; at most 256
                characters; no control characters).
            limit: maximum number; clipped to the profile's limit (default 50; at least 1; clipped at the profile's
                page_limit).
            cursor: next_cursor of the previous page (default None; at least 1 character; at most 1,024 characters).

        Returns:
            `total` counts all skills of the owner, not the page.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `skill_registry`, or the caller was not granted it.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("skill_registry.list", "chain_key", request, fields)

    if TYPE_CHECKING:

        @overload
        async def read_skill_manifest(
            self, request: SkillRegistryManifestRequest, /
        ) -> SkillRegistryManifestReport: ...
        @overload
        async def read_skill_manifest(self, /) -> SkillRegistryManifestReport: ...

    async def read_skill_manifest(
        self, request: SkillRegistryManifestRequest | None = None, /, **fields: Any
    ) -> SkillRegistryManifestReport:
        """Read which formats the skill registry takes, and by what it can be searched.

        Returns:
            What this build and its profile take.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `skill_registry`, or the caller was not granted it.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("skill_registry.manifest", "", request, fields)

    if TYPE_CHECKING:

        @overload
        async def search_uploaded_skills(self, request: SkillRegistrySearchRequest, /) -> SkillRegistrySearchReport: ...
        @overload
        async def search_uploaded_skills(
            self,
            /,
            *,
            chain_key: str | None = None,
            text: str | None = None,
            skill_ids: Sequence[str] = ...,
            names: Sequence[str] = ...,
            tags_any: Sequence[str] = ...,
            triggers_any: Sequence[str] = ...,
            uploaded_by_agent_ids: Sequence[str] = ...,
            uploaded_by_agent_names: Sequence[str] = ...,
            uploaded_by_agent_owners: Sequence[str] = ...,
            statuses: Sequence[str] = ...,
            formats: Sequence[str] = ...,
            schema_versions: Sequence[int] = ...,
            since: datetime | str | None = None,
            until: datetime | str | None = None,
            limit: int = 50,
            cursor: str | None = None,
        ) -> SkillRegistrySearchReport: ...
        @overload
        async def search_uploaded_skills(
            self,
            text: str | None,
            /,
            *,
            chain_key: str | None = None,
            skill_ids: Sequence[str] = ...,
            names: Sequence[str] = ...,
            tags_any: Sequence[str] = ...,
            triggers_any: Sequence[str] = ...,
            uploaded_by_agent_ids: Sequence[str] = ...,
            uploaded_by_agent_names: Sequence[str] = ...,
            uploaded_by_agent_owners: Sequence[str] = ...,
            statuses: Sequence[str] = ...,
            formats: Sequence[str] = ...,
            schema_versions: Sequence[int] = ...,
            since: datetime | str | None = None,
            until: datetime | str | None = None,
            limit: int = 50,
            cursor: str | None = None,
        ) -> SkillRegistrySearchReport: ...

    async def search_uploaded_skills(
        self, request: SkillRegistrySearchRequest | str | None | None = None, /, **fields: Any
    ) -> SkillRegistrySearchReport:
        """Search uploaded skills: every filter given must fit, and of a list any of its entries; no ranking.

        Args:
            chain_key: the chain of the agent; it is logged, the registry is the owner's (default None; at most 256
                characters; no control characters).
            text: exact words of name or content (default None; at most 256 characters).
            skill_ids: ids of skills (default (); each: at most 256 characters; each: no control characters; at most
                64 items).
            names: names, whatever their case (default (); each: at most 256 characters; each: no control
                characters; at most 64 items).
            tags_any: tags, whatever their case (default (); each: at most 256 characters; each: no control
                characters; at most 64 items).
            triggers_any: triggers, whatever their case (default (); each: at most 256 characters; each: no control
                characters; at most 64 items).
            uploaded_by_agent_ids: ids of agents that uploaded any version (default (); each: at most 256
                characters; each: no control characters; at most 64 items).
            uploaded_by_agent_names: their names, whatever the case (default (); each: at most 256 characters; each:
                no control characters; at most 64 items).
            uploaded_by_agent_owners: their owners, whatever the case (default (); each: at most 256 characters;
                each: no control characters; at most 64 items).
            statuses: active, deprecated, revoked (default (); each: at most 256 characters; each: no control
                characters; at most 64 items).
            formats: markdown, json: of any version (default (); each: at most 256 characters; each: no control
                characters; at most 64 items).
            schema_versions: schema versions: of any version (default (); at most 64 items).
            since: latest version uploaded then or later (default None).
            until: latest version uploaded then or earlier (default None).
            limit: maximum number; clipped to the profile's limit (default 50; at least 1; clipped at the profile's
                page_limit).
            cursor: next_cursor of the previous page (default None; at least 1 character; at most 1,024 characters).

        Returns:
            The skills that fit, the last changed first.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `skill_registry`, or the caller was not granted it.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("skill_registry.search", "text", request, fields)

    if TYPE_CHECKING:

        @overload
        async def read_uploaded_skill(self, request: SkillRegistryReadRequest, /) -> SkillRegistryReadReport: ...
        @overload
        async def read_uploaded_skill(
            self,
            /,
            *,
            skill_id: str,
            chain_key: str | None = None,
            version_id: str | None = None,
            format: str = "markdown",
        ) -> SkillRegistryReadReport: ...
        @overload
        async def read_uploaded_skill(
            self,
            skill_id: str,
            /,
            *,
            chain_key: str | None = None,
            version_id: str | None = None,
            format: str = "markdown",
        ) -> SkillRegistryReadReport: ...

    async def read_uploaded_skill(
        self, request: SkillRegistryReadRequest | str | None = None, /, **fields: Any
    ) -> SkillRegistryReadReport:
        """Read one version of an uploaded skill with its safety warnings; in its own format byte for byte.

        Args:
            chain_key: the chain of the agent; it is logged, the registry is the owner's (default None; at most 256
                characters; no control characters).
            skill_id: id of the skill, as it was given or made of the name (required; at least 1 character; at most
                256 characters; no control characters).
            version_id: id of one version; the latest when left out (default None; at least 1 character; at most 256
                characters; no control characters).
            format: markdown, md or json (default markdown; at most 32 characters).

        Returns:
            `content` is untrusted: read `safety_warnings` first. In the source format it is what was uploaded, and
                `content_hash` its SHA-256; else it is rendered. `signed`: the uploader's signature was verified
                when it was uploaded.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `skill_registry`, or the caller was not granted it.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("skill_registry.read", "skill_id", request, fields)

    if TYPE_CHECKING:

        @overload
        async def list_skill_versions(
            self, request: SkillRegistryVersionsRequest, /
        ) -> SkillRegistryVersionsReport: ...
        @overload
        async def list_skill_versions(
            self,
            /,
            *,
            skill_id: str,
            chain_key: str | None = None,
            limit: int = 50,
            cursor: str | None = None,
        ) -> SkillRegistryVersionsReport: ...
        @overload
        async def list_skill_versions(
            self,
            skill_id: str,
            /,
            *,
            chain_key: str | None = None,
            limit: int = 50,
            cursor: str | None = None,
        ) -> SkillRegistryVersionsReport: ...

    async def list_skill_versions(
        self, request: SkillRegistryVersionsRequest | str | None = None, /, **fields: Any
    ) -> SkillRegistryVersionsReport:
        """List the versions of an uploaded skill, the oldest first.

        Args:
            chain_key: the chain of the agent; it is logged, the registry is the owner's (default None; at most 256
                characters; no control characters).
            skill_id: id of the skill, as it was given or made of the name (required; at least 1 character; at most
                256 characters; no control characters).
            limit: maximum number; clipped to the profile's limit (default 50; at least 1; clipped at the profile's
                page_limit).
            cursor: next_cursor of the previous page (default None; at least 1 character; at most 1,024 characters).

        Returns:
            The versions of one skill, the oldest first.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `skill_registry`, or the caller was not granted it.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("skill_registry.versions", "skill_id", request, fields)

    if TYPE_CHECKING:

        @overload
        async def upload_skill(self, request: SkillRegistryUploadRequest, /) -> SkillRegistryMutationReport: ...
        @overload
        async def upload_skill(
            self,
            /,
            *,
            agent_id: str,
            content: str,
            chain_key: str | None = None,
            skill_id: str | None = None,
            format: str = "markdown",
            signing_key_id: str | None = None,
            skill_signature: Sequence[int] | None = None,
        ) -> SkillRegistryMutationReport: ...
        @overload
        async def upload_skill(
            self,
            chain_key: str | None,
            /,
            *,
            agent_id: str,
            content: str,
            skill_id: str | None = None,
            format: str = "markdown",
            signing_key_id: str | None = None,
            skill_signature: Sequence[int] | None = None,
        ) -> SkillRegistryMutationReport: ...

    async def upload_skill(
        self, request: SkillRegistryUploadRequest | str | None | None = None, /, **fields: Any
    ) -> SkillRegistryMutationReport:
        """Upload a skill as a new version, which is never changed. A signature that is given must hold.

        Args:
            chain_key: the chain of the agent; it is logged, the registry is the owner's (default None; at most 256
                characters; no control characters).
            skill_id: id of the skill; made of the name when left out (default None; at least 1 character; at most
                256 characters; no control characters).
            agent_id: agent that uploads it (required; at least 1 character; at most 256 characters; no control
                characters).
            format: markdown, md or json (default markdown; at most 32 characters).
            content: the skill, as Markdown or JSON (required; not blank; at most the profile's skill_text_bytes).
            signing_key_id: the agent's key that signed (default None; at most 256 characters; no control
                characters; at least 1 character).
            skill_signature: the 64 bytes of the Ed25519 signature over the content's UTF-8 bytes (default None;
                each: at least 0; each: at most 255; at least 64 items; at most 64 items).

        Returns:
            Of skill_registry.upload, deprecate and revoke: the skill as it is now.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `skill_registry`, or the caller was not granted it.
            PayloadTooLarge: over the profile's skill_text_bytes.
            StoreBudgetExceeded: the store is at its ceiling.
            StoreReadOnly, StorageFull: nothing can be written.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("skill_registry.upload", "chain_key", request, fields)

    if TYPE_CHECKING:

        @overload
        async def deprecate_skill(self, request: SkillRegistryDeprecateRequest, /) -> SkillRegistryMutationReport: ...
        @overload
        async def deprecate_skill(
            self,
            /,
            *,
            skill_id: str,
            chain_key: str | None = None,
            reason: str | None = None,
        ) -> SkillRegistryMutationReport: ...
        @overload
        async def deprecate_skill(
            self,
            skill_id: str,
            /,
            *,
            chain_key: str | None = None,
            reason: str | None = None,
        ) -> SkillRegistryMutationReport: ...

    async def deprecate_skill(
        self, request: SkillRegistryDeprecateRequest | str | None = None, /, **fields: Any
    ) -> SkillRegistryMutationReport:
        """Mark an uploaded skill as deprecated; its versions stay, and a new one makes it active again.

        Args:
            chain_key: the chain of the agent; it is logged, the registry is the owner's (default None; at most 256
                characters; no control characters).
            skill_id: id of the skill, as it was given or made of the name (required; at least 1 character; at most
                256 characters; no control characters).
            reason: the reason, in a sentence (default None; at most 512 characters; no control characters).

        Returns:
            Of skill_registry.upload, deprecate and revoke: the skill as it is now.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `skill_registry`, or the caller was not granted it.
            StoreBudgetExceeded: the store is at its ceiling.
            StoreReadOnly, StorageFull: nothing can be written.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("skill_registry.deprecate", "skill_id", request, fields)

    if TYPE_CHECKING:

        @overload
        async def revoke_skill(self, request: SkillRegistryRevokeRequest, /) -> SkillRegistryMutationReport: ...
        @overload
        async def revoke_skill(
            self,
            /,
            *,
            skill_id: str,
            chain_key: str | None = None,
            reason: str | None = None,
        ) -> SkillRegistryMutationReport: ...
        @overload
        async def revoke_skill(
            self,
            skill_id: str,
            /,
            *,
            chain_key: str | None = None,
            reason: str | None = None,
        ) -> SkillRegistryMutationReport: ...

    async def revoke_skill(
        self, request: SkillRegistryRevokeRequest | str | None = None, /, **fields: Any
    ) -> SkillRegistryMutationReport:
        """Revoke an uploaded skill for good; its versions stay readable, with a warning.

        Args:
            chain_key: the chain of the agent; it is logged, the registry is the owner's (default None; at most 256
                characters; no control characters).
            skill_id: id of the skill, as it was given or made of the name (required; at least 1 character; at most
                256 characters; no control characters).
            reason: the reason, in a sentence (default None; at most 512 characters; no control characters).

        Returns:
            Of skill_registry.upload, deprecate and revoke: the skill as it is now.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `skill_registry`, or the caller was not granted it.
            StoreBudgetExceeded: the store is at its ceiling.
            StoreReadOnly, StorageFull: nothing can be written.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("skill_registry.revoke", "skill_id", request, fields)

    if TYPE_CHECKING:

        @overload
        async def list_agent_tool_registries(self, request: ToolRegistryListRequest, /) -> ToolRegistryListReport: ...
        @overload
        async def list_agent_tool_registries(
            self,
            /,
            *,
            limit: int = 50,
            cursor: str | None = None,
        ) -> ToolRegistryListReport: ...
        @overload
        async def list_agent_tool_registries(
            self,
            limit: int,
            /,
            *,
            cursor: str | None = None,
        ) -> ToolRegistryListReport: ...

    async def list_agent_tool_registries(
        self, request: ToolRegistryListRequest | int | None = None, /, **fields: Any
    ) -> ToolRegistryListReport:
        """List the tool registries of the space by their ids.

        Args:
            limit: maximum number; clipped to the profile's limit (default 50; at least 1; clipped at the profile's
                page_limit).
            cursor: next_cursor of the previous page (default None; at least 1 character; at most 1,024 characters).

        Returns:
            `total` counts the whole space, not the page.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `tool_registry`, or the caller was not granted it.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("tool_registry.list", "limit", request, fields)

    if TYPE_CHECKING:

        @overload
        async def get_agent_tool_registry(self, request: ToolRegistryGetRequest, /) -> ToolRegistryGetReport: ...
        @overload
        async def get_agent_tool_registry(
            self,
            /,
            *,
            registry_id: str,
        ) -> ToolRegistryGetReport: ...
        @overload
        async def get_agent_tool_registry(
            self,
            registry_id: str,
            /,
        ) -> ToolRegistryGetReport: ...

    async def get_agent_tool_registry(
        self, request: ToolRegistryGetRequest | str | None = None, /, **fields: Any
    ) -> ToolRegistryGetReport:
        """Show one tool registry with its tools.

        Args:
            registry_id: the host's id of the registry (required; at least 1 character; at most 256 characters; no
                control characters).

        Returns:
            One registry; its tools in the host's order.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `tool_registry`, or the caller was not granted it.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("tool_registry.get", "registry_id", request, fields)

    if TYPE_CHECKING:

        @overload
        async def upsert_agent_tool_registry(
            self, request: ToolRegistryUpsertRequest, /
        ) -> ToolRegistryMutationReport: ...
        @overload
        async def upsert_agent_tool_registry(
            self,
            /,
            *,
            registry_id: str,
            fingerprint: str,
            tools: Sequence[ToolEntry | Mapping[str, Any]],
            scope: str = "global",
        ) -> ToolRegistryMutationReport: ...
        @overload
        async def upsert_agent_tool_registry(
            self,
            registry_id: str,
            /,
            *,
            fingerprint: str,
            tools: Sequence[ToolEntry | Mapping[str, Any]],
            scope: str = "global",
        ) -> ToolRegistryMutationReport: ...

    async def upsert_agent_tool_registry(
        self, request: ToolRegistryUpsertRequest | str | None = None, /, **fields: Any
    ) -> ToolRegistryMutationReport:
        """Register short descriptions of the host's tools, or replace the registry with the same id.

        Args:
            registry_id: the host's id of the registry (required; at least 1 character; at most 256 characters; no
                control characters).
            fingerprint: fingerprint of the whole registry as it is now (required; at most 256 characters; no
                control characters; at least 1 character).
            scope: scope of the registry; global applies everywhere (default global; at most 256 characters; no
                control characters; at least 1 character).
            tools: its tools, each id once (required; at most 512 items).

        Returns:
            Of tool_registry.upsert and tool_registry.delete. `revision` is the current one, or the last one
                deleted. `drifted` are tools whose schema is another one now: what was observed of them gives no
                more hints.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `tool_registry`, or the caller was not granted it.
            StoreBudgetExceeded: the store is at its ceiling.
            StoreReadOnly, StorageFull: nothing can be written.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("tool_registry.upsert", "registry_id", request, fields)

    if TYPE_CHECKING:

        @overload
        async def delete_agent_tool_registry(
            self, request: ToolRegistryDeleteRequest, /
        ) -> ToolRegistryMutationReport: ...
        @overload
        async def delete_agent_tool_registry(
            self,
            /,
            *,
            registry_id: str,
        ) -> ToolRegistryMutationReport: ...
        @overload
        async def delete_agent_tool_registry(
            self,
            registry_id: str,
            /,
        ) -> ToolRegistryMutationReport: ...

    async def delete_agent_tool_registry(
        self, request: ToolRegistryDeleteRequest | str | None = None, /, **fields: Any
    ) -> ToolRegistryMutationReport:
        """Delete a tool registry. Observations of its tools stay, but give no hints without it.

        Args:
            registry_id: the host's id of the registry (required; at least 1 character; at most 256 characters; no
                control characters).

        Returns:
            Of tool_registry.upsert and tool_registry.delete. `revision` is the current one, or the last one
                deleted. `drifted` are tools whose schema is another one now: what was observed of them gives no
                more hints.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `tool_registry`, or the caller was not granted it.
            StoreReadOnly, StorageFull: nothing can be written.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("tool_registry.delete", "registry_id", request, fields)

    if TYPE_CHECKING:

        @overload
        async def list_long_term(self, request: LongTermListRequest, /) -> LongTermListReport: ...
        @overload
        async def list_long_term(
            self,
            /,
            *,
            query: str | None = None,
            kind: Literal["profile", "preference", "fact", "event", "relationship", "constraint", "goal"] | None = None,
            state: Literal["current", "stale", "superseded", "deleted"] | Literal["all"] = "current",
            view: ViewName | None = None,
            limit: int = 50,
            cursor: str | None = None,
        ) -> LongTermListReport: ...
        @overload
        async def list_long_term(
            self,
            query: str | None,
            /,
            *,
            kind: Literal["profile", "preference", "fact", "event", "relationship", "constraint", "goal"] | None = None,
            state: Literal["current", "stale", "superseded", "deleted"] | Literal["all"] = "current",
            view: ViewName | None = None,
            limit: int = 50,
            cursor: str | None = None,
        ) -> LongTermListReport: ...

    async def list_long_term(
        self, request: LongTermListRequest | str | None | None = None, /, **fields: Any
    ) -> LongTermListReport:
        """List facts, the newest first, by state, kind and words.

        Args:
            query: words that must all occur in topic, content or keywords (default None; at least 1 character; not
                blank; at most the profile's query_chars).
            kind: only this sort of fact (default None).
            state: only facts in this state (default current).
            view: view that filters the report; default: the caller's first view (default None).
            limit: maximum number; clipped to the profile's limit (default 50; at least 1; clipped at the profile's
                page_limit).
            cursor: next_cursor of the previous page (default None; at least 1 character; at most 1,024 characters).

        Returns:
            `total` counts every record that the request matches and the caller may see, not the page.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `long_term`, or the caller was not granted it.
            PayloadTooLarge: over the profile's query_chars.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("long_term.list", "query", request, fields)

    if TYPE_CHECKING:

        @overload
        async def get_long_term(self, request: LongTermDetailRequest, /) -> LongTermDetailReport: ...
        @overload
        async def get_long_term(
            self,
            /,
            *,
            ref: str,
            history: bool = False,
            view: ViewName | None = None,
        ) -> LongTermDetailReport: ...
        @overload
        async def get_long_term(
            self,
            ref: str,
            /,
            *,
            history: bool = False,
            view: ViewName | None = None,
        ) -> LongTermDetailReport: ...

    async def get_long_term(
        self, request: LongTermDetailRequest | str | None = None, /, **fields: Any
    ) -> LongTermDetailReport:
        """Show one fact with its revisions, its sources and its current state.

        Args:
            ref: the record's ref, as recall returns it (required; at least 1 character; at most 1,024 characters).
            history: include the text of earlier revisions (default False).
            view: view that filters the report; default: the caller's first view (default None).

        Returns:
            `policy` is what a write of this kind and topic would meet now: none, pause or suppress.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `long_term`, or the caller was not granted it.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("long_term.detail", "ref", request, fields)

    if TYPE_CHECKING:

        @overload
        async def mutate_long_term(self, request: LongTermMutateRequest, /) -> LongTermMutateReport: ...
        @overload
        async def mutate_long_term(
            self,
            /,
            *,
            action: Literal["correct", "supersede", "delete", "forget_by_query", "mark_stale", "change_scope"],
            ref: str | None = None,
            content: str | None = None,
            topic: str | None = None,
            keywords: Sequence[str] | None = None,
            privacy: Literal["public_runtime", "shared_with_subject", "subject_private"] | None = None,
            query: str | None = None,
            reason: str | None = None,
            dry_run: bool = False,
            confirm: str | None = None,
            expected_revision: int | None = None,
            view: ViewName | None = None,
        ) -> LongTermMutateReport: ...
        @overload
        async def mutate_long_term(
            self,
            ref: str | None,
            /,
            *,
            action: Literal["correct", "supersede", "delete", "forget_by_query", "mark_stale", "change_scope"],
            content: str | None = None,
            topic: str | None = None,
            keywords: Sequence[str] | None = None,
            privacy: Literal["public_runtime", "shared_with_subject", "subject_private"] | None = None,
            query: str | None = None,
            reason: str | None = None,
            dry_run: bool = False,
            confirm: str | None = None,
            expected_revision: int | None = None,
            view: ViewName | None = None,
        ) -> LongTermMutateReport: ...

    async def mutate_long_term(
        self, request: LongTermMutateRequest | str | None | None = None, /, **fields: Any
    ) -> LongTermMutateReport:
        """Correct, supersede, delete or forget facts, mark one stale, or change its visibility.

        Args:
            action: action to take (required).
            ref: the record's ref, as recall returns it (default None; at least 1 character; at most 1,024
                characters).
            content: the text to remember (default None; not blank; at most the profile's message_content_bytes).
            topic: topic; a later fact of the same topic replaces this one (default None; at most 256 characters).
            keywords: additional search words (default None; each: at least 1 character; each: at most 128
                characters; at most 32 items).
            privacy: new visibility of the fact (default None).
            query: words that must all occur in topic, content or keywords (default None; at least 1 character; not
                blank; at most the profile's query_chars).
            reason: reason; stored in the revision, but not for a deletion (default None; at least 1 character; at
                most 512 characters; not blank).
            dry_run: report what would change; change nothing (default False).
            confirm: confirm_token of the dry run of forget_by_query (default None; at least 1 character; at most
                256 characters).
            expected_revision: refuse unless this is the current revision (default None; at least 1).
            view: view that filters the report; default: the caller's first view (default None).

        Returns:
            `refs` are the records that the action changes, or in a dry run would; `ref` and `revision` the record
                after it, of supersede the new one. `waiting` and `proposals` count the deferred candidates and the
                open proposals that a forgotten query takes with it. `hidden` shows operators alone how many private
                facts of the space it may not see: among them the words of a query were not looked for, and it
                counts them whatever they say. A deletion is `erasure: done` when no byte of it is left in the
                store's files, else `pending`; `replica_horizon` is the time of the newest copy of the store that
                may hold it still, None where there is none.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `long_term`, or the caller was not granted it.
            PayloadTooLarge: over the profile's message_content_bytes, query_chars.
            StoreReadOnly, StorageFull: nothing can be written.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("long_term.mutate", "ref", request, fields)

    if TYPE_CHECKING:

        @overload
        async def long_term_policy(self, request: LongTermPolicyRequest, /) -> LongTermPolicyReport: ...
        @overload
        async def long_term_policy(
            self,
            /,
            *,
            action: Literal["pause", "resume", "suppress", "list"],
            kind: Literal["profile", "preference", "fact", "event", "relationship", "constraint", "goal"] | None = None,
            topic: str | None = None,
            chat_id: str | None = None,
            reason: str | None = None,
        ) -> LongTermPolicyReport: ...
        @overload
        async def long_term_policy(
            self,
            action: Literal["pause", "resume", "suppress", "list"],
            /,
            *,
            kind: Literal["profile", "preference", "fact", "event", "relationship", "constraint", "goal"] | None = None,
            topic: str | None = None,
            chat_id: str | None = None,
            reason: str | None = None,
        ) -> LongTermPolicyReport: ...

    async def long_term_policy(
        self,
        request: LongTermPolicyRequest | Literal["pause", "resume", "suppress", "list"] | None = None,
        /,
        **fields: Any,
    ) -> LongTermPolicyReport:
        """Pause or suppress facts of a kind or topic, lift such a policy, or list the active policies.

        Args:
            action: pause puts off, suppress refuses, resume lifts what was named alike (required).
            kind: only this sort of fact (default None).
            topic: only this topic (default None; at most 256 characters; not blank).
            chat_id: only this chat; every chat when left out (default None; at least 1 character; at most 256
                characters; no control characters).
            reason: reason, shown in the list (default None; at most 256 characters; no control characters).

        Returns:
            `policies` are those that hold now; `rejudged` counts what waited for a pause to end and is decided, as
                far as the caller may know of it.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `long_term`, or the caller was not granted it.
            StoreBudgetExceeded: the store is at its ceiling.
            StoreReadOnly, StorageFull: nothing can be written.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("long_term.policy", "action", request, fields)

    if TYPE_CHECKING:

        @overload
        async def list_waiting(self, request: GovernanceListRequest, /) -> GovernanceListReport: ...
        @overload
        async def list_waiting(
            self,
            /,
            *,
            what: Literal["all", "candidates", "jobs"] = "all",
            reason: Literal["policy_paused", "needs_assertion", "evidence_does_not_bear", "weaker_authority"]
            | None = None,
            view: ViewName | None = None,
            limit: int = 50,
            cursor: str | None = None,
        ) -> GovernanceListReport: ...
        @overload
        async def list_waiting(
            self,
            what: Literal["all", "candidates", "jobs"],
            /,
            *,
            reason: Literal["policy_paused", "needs_assertion", "evidence_does_not_bear", "weaker_authority"]
            | None = None,
            view: ViewName | None = None,
            limit: int = 50,
            cursor: str | None = None,
        ) -> GovernanceListReport: ...

    async def list_waiting(
        self, request: GovernanceListRequest | Literal["all", "candidates", "jobs"] | None = None, /, **fields: Any
    ) -> GovernanceListReport:
        """List the candidates that wait, the oldest first, then the jobs that wait, run or have failed.

        Args:
            what: only candidates, or only jobs (default all).
            reason: only candidates that wait for this (default None).
            view: view that filters the report; default: the caller's first view (default None).
            limit: maximum number; clipped to the profile's limit (default 50; at least 1; clipped at the profile's
                page_limit).
            cursor: next_cursor of the previous page (default None; at least 1 character; at most 1,024 characters).

        Returns:
            `total` counts all that the request asks for and the caller may know of, not the page. Private
                candidates are listed through a view that shows private facts; to an operator, also those that it
                wrote itself. Sealed ones are listed only through raw_owner, to who holds private.read.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `long_term`, or the caller was not granted it.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("governance.list", "what", request, fields)

    if TYPE_CHECKING:

        @overload
        async def decide_waiting(self, request: GovernanceDecideRequest, /) -> GovernanceDecideReport: ...
        @overload
        async def decide_waiting(
            self,
            /,
            *,
            ids: Sequence[str],
            decision: Literal["accept", "reject", "retry"],
            reason: str | None = None,
            dry_run: bool = False,
            view: ViewName | None = None,
        ) -> GovernanceDecideReport: ...
        @overload
        async def decide_waiting(
            self,
            ids: Sequence[str],
            /,
            *,
            decision: Literal["accept", "reject", "retry"],
            reason: str | None = None,
            dry_run: bool = False,
            view: ViewName | None = None,
        ) -> GovernanceDecideReport: ...

    async def decide_waiting(
        self, request: GovernanceDecideRequest | Sequence[str] | None = None, /, **fields: Any
    ) -> GovernanceDecideReport:
        """Accept or reject waiting candidates under the caller's own authority, or retry jobs.

        An error decides nothing: all of them are decided, or none.

        Args:
            ids: waiting_id of candidates to accept or reject, job_id of jobs to retry, as governance.list gives
                them (required; each: at least 1 character; each: at most 256 characters; each: no control
                characters; at least 1 item; at most the profile's batch_requests).
            decision: accept judges a candidate as if the caller said it now; reject erases it; retry has a failed
                or waiting job done at once (required).
            reason: reason; needed to reject. Stored in the revision of an accepted fact, in nothing else (default
                None; at least 1 character; at most 512 characters; not blank).
            dry_run: report what would come of it; change nothing (default False).
            view: view that filters the report; default: the caller's first view (default None).

        Returns:
            In the order of the request; `decided` counts those that wait no more, or would not after the dry run.
                `erasure` is `done` when no byte of the texts that left the queue is left in the store's files, else
                `pending`; `replica_horizon` says until when snapshots hold them.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `long_term`, or the caller was not granted it.
            PayloadTooLarge: over the profile's batch_requests.
            StoreReadOnly, StorageFull: nothing can be written.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("governance.decide", "ids", request, fields)

    if TYPE_CHECKING:

        @overload
        async def bootstrap_chain(self, request: ChainBootstrapRequest, /) -> ChainBootstrapReport: ...
        @overload
        async def bootstrap_chain(
            self,
            /,
            *,
            content: str,
            chain_key: str | None = None,
            agent_id: str | None = None,
            agent_name: str | None = None,
            agent_owner: str | None = None,
            importance: float | None = None,
            tags: Sequence[str] = ...,
            concepts: Sequence[str] = ...,
            storage_adapter: str | None = None,
        ) -> ChainBootstrapReport: ...
        @overload
        async def bootstrap_chain(
            self,
            content: str,
            /,
            *,
            chain_key: str | None = None,
            agent_id: str | None = None,
            agent_name: str | None = None,
            agent_owner: str | None = None,
            importance: float | None = None,
            tags: Sequence[str] = ...,
            concepts: Sequence[str] = ...,
            storage_adapter: str | None = None,
        ) -> ChainBootstrapReport: ...

    async def bootstrap_chain(
        self, request: ChainBootstrapRequest | str | None = None, /, **fields: Any
    ) -> ChainBootstrapReport:
        """Create a chain if needed, and write its first thought only when it is empty.

        Args:
            chain_key: key of the chain; without one, the default chain (default None; at most 256 characters; no
                control characters).
            agent_id: id of the agent that writes (default None; at most 256 characters; no control characters).
            agent_name: display name of the agent (default None; at most 256 characters; no control characters).
            agent_owner: owner or tenant of the agent (default None; at most 256 characters; no control characters).
            content: what is thought, in words (required; at most the profile's message_content_bytes).
            importance: how much it matters; clamped to 0..1 (default None).
            tags: labels; blanks are dropped, each is kept once (default (); each: at most 256 characters; at most
                64 items).
            concepts: concepts that it is about; blanks are dropped, each is kept once (default (); each: at most
                256 characters; at most 64 items).
            storage_adapter: binary, or jsonl; both are kept in the store (default None; at most 64 characters).

        Returns:
            `bootstrapped` false: the chain had thoughts, and nothing was written.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `chain`, or the caller was not granted it.
            PayloadTooLarge: over the profile's message_content_bytes.
            StoreBudgetExceeded: the store is at its ceiling.
            StoreReadOnly, StorageFull: nothing can be written.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("chain.bootstrap", "content", request, fields)

    if TYPE_CHECKING:

        @overload
        async def append_thought(self, request: ChainAppendRequest, /) -> ChainAppendReport: ...
        @overload
        async def append_thought(
            self,
            /,
            *,
            thought_type: str,
            content: str,
            chain_key: str | None = None,
            agent_id: str | None = None,
            agent_name: str | None = None,
            agent_owner: str | None = None,
            role: str | None = None,
            importance: float | None = None,
            confidence: float | None = None,
            tags: Sequence[str] = ...,
            concepts: Sequence[str] = ...,
            refs: Sequence[int] = ...,
            relations: Sequence[RelationInput | Mapping[str, Any]] = ...,
            session_id: str | None = None,
            signing_key_id: str | None = None,
            thought_signature: Sequence[int] | None = None,
        ) -> ChainAppendReport: ...
        @overload
        async def append_thought(
            self,
            content: str,
            /,
            *,
            thought_type: str,
            chain_key: str | None = None,
            agent_id: str | None = None,
            agent_name: str | None = None,
            agent_owner: str | None = None,
            role: str | None = None,
            importance: float | None = None,
            confidence: float | None = None,
            tags: Sequence[str] = ...,
            concepts: Sequence[str] = ...,
            refs: Sequence[int] = ...,
            relations: Sequence[RelationInput | Mapping[str, Any]] = ...,
            session_id: str | None = None,
            signing_key_id: str | None = None,
            thought_signature: Sequence[int] | None = None,
        ) -> ChainAppendReport: ...

    async def append_thought(
        self, request: ChainAppendRequest | str | None = None, /, **fields: Any
    ) -> ChainAppendReport:
        """Append a thought to a chain; its timestamp, place and hash are given by the store.

        Args:
            chain_key: key of the chain; without one, the default chain (default None; at most 256 characters; no
                control characters).
            agent_id: id of the agent that writes (default None; at most 256 characters; no control characters).
            agent_name: display name of the agent (default None; at most 256 characters; no control characters).
            agent_owner: owner or tenant of the agent (default None; at most 256 characters; no control characters).
            thought_type: thought type; case and punctuation do not matter (required; at most 64 characters).
            content: what is thought, in words (required; at most the profile's message_content_bytes).
            role: role; case and punctuation do not matter (default None; at most 64 characters).
            importance: how much it matters; clamped to 0..1 (default None).
            confidence: how sure the agent is; clamped to 0..1 (default None).
            tags: labels; blanks are dropped, each is kept once (default (); each: at most 256 characters; at most
                64 items).
            concepts: concepts that it is about; blanks are dropped, each is kept once (default (); each: at most
                256 characters; at most 64 items).
            refs: indexes of earlier thoughts that it refers to (default (); each: at least 0; each: at most
                9,007,199,254,740,991; at most 256 items).
            relations: typed links: supports, contradicts, supersedes, caused_by (default (); at most 64 items).
            session_id: id of the session that it is of (default None; at most 256 characters; no control
                characters).
            signing_key_id: id of the agent's key that signed it (default None; at most 256 characters; no control
                characters).
            thought_signature: Ed25519 signature, 64 bytes, by the key that signing_key_id names (default None;
                each: at least 0; each: at most 255; at most 64 items).

        Returns:
            The thought as it was written; `head_hash` is its hash.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `chain`, or the caller was not granted it.
            PayloadTooLarge: over the profile's message_content_bytes.
            StoreBudgetExceeded: the store is at its ceiling.
            StoreReadOnly, StorageFull: nothing can be written.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("chain.append", "content", request, fields)

    if TYPE_CHECKING:

        @overload
        async def append_retrospective(self, request: ChainAppendRetrospectiveRequest, /) -> ChainAppendReport: ...
        @overload
        async def append_retrospective(
            self,
            /,
            *,
            content: str,
            chain_key: str | None = None,
            agent_id: str | None = None,
            agent_name: str | None = None,
            agent_owner: str | None = None,
            thought_type: str | None = None,
            importance: float | None = None,
            confidence: float | None = None,
            tags: Sequence[str] = ...,
            concepts: Sequence[str] = ...,
            refs: Sequence[int] = ...,
            relations: Sequence[RelationInput | Mapping[str, Any]] = ...,
            session_id: str | None = None,
            signing_key_id: str | None = None,
            thought_signature: Sequence[int] | None = None,
        ) -> ChainAppendReport: ...
        @overload
        async def append_retrospective(
            self,
            content: str,
            /,
            *,
            chain_key: str | None = None,
            agent_id: str | None = None,
            agent_name: str | None = None,
            agent_owner: str | None = None,
            thought_type: str | None = None,
            importance: float | None = None,
            confidence: float | None = None,
            tags: Sequence[str] = ...,
            concepts: Sequence[str] = ...,
            refs: Sequence[int] = ...,
            relations: Sequence[RelationInput | Mapping[str, Any]] = ...,
            session_id: str | None = None,
            signing_key_id: str | None = None,
            thought_signature: Sequence[int] | None = None,
        ) -> ChainAppendReport: ...

    async def append_retrospective(
        self, request: ChainAppendRetrospectiveRequest | str | None = None, /, **fields: Any
    ) -> ChainAppendReport:
        """Append a lesson after a failure or a long search, with the role Retrospective.

        Args:
            chain_key: key of the chain; without one, the default chain (default None; at most 256 characters; no
                control characters).
            agent_id: id of the agent that writes (default None; at most 256 characters; no control characters).
            agent_name: display name of the agent (default None; at most 256 characters; no control characters).
            agent_owner: owner or tenant of the agent (default None; at most 256 characters; no control characters).
            thought_type: thought type; LessonLearned unless given (default None; at most 64 characters).
            content: what is thought, in words (required; at most the profile's message_content_bytes).
            importance: how much it matters; clamped to 0..1 (default None).
            confidence: how sure the agent is; clamped to 0..1 (default None).
            tags: labels; blanks are dropped, each is kept once (default (); each: at most 256 characters; at most
                64 items).
            concepts: concepts that it is about; blanks are dropped, each is kept once (default (); each: at most
                256 characters; at most 64 items).
            refs: indexes of earlier thoughts that it refers to (default (); each: at least 0; each: at most
                9,007,199,254,740,991; at most 256 items).
            relations: typed links: supports, contradicts, supersedes, caused_by (default (); at most 64 items).
            session_id: id of the session that it is of (default None; at most 256 characters; no control
                characters).
            signing_key_id: id of the agent's key that signed it (default None; at most 256 characters; no control
                characters).
            thought_signature: Ed25519 signature, 64 bytes, by the key that signing_key_id names (default None;
                each: at least 0; each: at most 255; at most 64 items).

        Returns:
            The thought as it was written; `head_hash` is its hash.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `chain`, or the caller was not granted it.
            PayloadTooLarge: over the profile's message_content_bytes.
            StoreBudgetExceeded: the store is at its ceiling.
            StoreReadOnly, StorageFull: nothing can be written.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("chain.append_retrospective", "content", request, fields)

    if TYPE_CHECKING:

        @overload
        async def branch_chain(self, request: ChainBranchRequest, /) -> ChainBranchReport: ...
        @overload
        async def branch_chain(
            self,
            /,
            *,
            new_chain_key: str,
            chain_key: str | None = None,
            anchor_id: str | None = None,
            anchor_hash: str | None = None,
            anchor_index: int | None = None,
        ) -> ChainBranchReport: ...
        @overload
        async def branch_chain(
            self,
            new_chain_key: str,
            /,
            *,
            chain_key: str | None = None,
            anchor_id: str | None = None,
            anchor_hash: str | None = None,
            anchor_index: int | None = None,
        ) -> ChainBranchReport: ...

    async def branch_chain(
        self, request: ChainBranchRequest | str | None = None, /, **fields: Any
    ) -> ChainBranchReport:
        """Make a new chain that shares the thoughts of another up to one of them, and goes on by itself.

        Args:
            chain_key: key of the chain; without one, the default chain (default None; at most 256 characters; no
                control characters).
            new_chain_key: key of the branch (required; at most 256 characters; no control characters; at least 1
                character).
            anchor_id: the last shared thought, by its id (default None; at least 1 character; at most 64
                characters).
            anchor_hash: the last shared thought, by its hash (default None; 64 hex digits).
            anchor_index: the last shared thought, by its index; without any, the newest (default None; at least 0;
                at most 9,007,199,254,740,991).

        Returns:
            The branch as it begins.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `chain`, or the caller was not granted it.
            StoreBudgetExceeded: the store is at its ceiling.
            StoreReadOnly, StorageFull: nothing can be written.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("chain.branch", "new_chain_key", request, fields)

    if TYPE_CHECKING:

        @overload
        async def thought_lifecycle(self, request: ChainLifecycleRequest, /) -> ChainLifecycleReport: ...
        @overload
        async def thought_lifecycle(
            self,
            /,
            *,
            action: Literal["mask", "unmask", "erase"],
            indexes: Sequence[int],
            reason: str,
            chain_key: str | None = None,
            dry_run: bool = False,
        ) -> ChainLifecycleReport: ...
        @overload
        async def thought_lifecycle(
            self,
            chain_key: str | None,
            /,
            *,
            action: Literal["mask", "unmask", "erase"],
            indexes: Sequence[int],
            reason: str,
            dry_run: bool = False,
        ) -> ChainLifecycleReport: ...

    async def thought_lifecycle(
        self, request: ChainLifecycleRequest | str | None | None = None, /, **fields: Any
    ) -> ChainLifecycleReport:
        """Mask, unmask or erase what thoughts say; the chain keeps their places and hashes, and still verifies.

        Args:
            chain_key: key of the chain; without one, the default chain (default None; at most 256 characters; no
                control characters).
            action: what to do with their content (required).
            indexes: indexes of the thoughts (required; each: at least 0; each: at most 9,007,199,254,740,991; at
                least 1 item; at most the profile's commit_turns).
            reason: reason, for the reader of the request (required; at least 1 character; at most 512 characters).
            dry_run: report what would change; change nothing (default False).

        Returns:
            `indexes` are the thoughts that changed, or in a dry run would. `erasure` and `replica_horizon`: see
                `transcript.lifecycle`.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `chain`, or the caller was not granted it.
            PayloadTooLarge: over the profile's commit_turns.
            StoreReadOnly, StorageFull: nothing can be written.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("chain.lifecycle", "chain_key", request, fields)

    if TYPE_CHECKING:

        @overload
        async def search_thoughts(self, request: ChainSearchRequest, /) -> ChainSearchReport: ...
        @overload
        async def search_thoughts(
            self,
            /,
            *,
            chain_key: str | None = None,
            text: str | None = None,
            thought_types: Sequence[str] = ...,
            roles: Sequence[str] = ...,
            tags_any: Sequence[str] = ...,
            concepts_any: Sequence[str] = ...,
            agent_ids: Sequence[str] = ...,
            agent_names: Sequence[str] = ...,
            agent_owners: Sequence[str] = ...,
            min_importance: float | None = None,
            min_confidence: float | None = None,
            since: datetime | str | None = None,
            until: datetime | str | None = None,
            limit: int | None = None,
        ) -> ChainSearchReport: ...
        @overload
        async def search_thoughts(
            self,
            text: str | None,
            /,
            *,
            chain_key: str | None = None,
            thought_types: Sequence[str] = ...,
            roles: Sequence[str] = ...,
            tags_any: Sequence[str] = ...,
            concepts_any: Sequence[str] = ...,
            agent_ids: Sequence[str] = ...,
            agent_names: Sequence[str] = ...,
            agent_owners: Sequence[str] = ...,
            min_importance: float | None = None,
            min_confidence: float | None = None,
            since: datetime | str | None = None,
            until: datetime | str | None = None,
            limit: int | None = None,
        ) -> ChainSearchReport: ...

    async def search_thoughts(
        self, request: ChainSearchRequest | str | None | None = None, /, **fields: Any
    ) -> ChainSearchReport:
        """Find the thoughts of a chain that fit all filters, in append order; limit keeps the newest.

        Args:
            chain_key: key of the chain; without one, the default chain (default None; at most 256 characters; no
                control characters).
            text: part of the content, a tag, a concept or the writer's id, name, owner, alias, description (default
                None; at most the profile's query_chars).
            thought_types: any of these types; case and punctuation do not matter (default (); each: at most 64
                characters; at most 64 items).
            roles: any of these roles; case and punctuation do not matter (default (); each: at most 64 characters;
                at most 64 items).
            tags_any: any of these is part of a tag, whatever the case (default (); each: at most 256 characters; at
                most 256 items).
            concepts_any: any of these is part of a concept, whatever the case (default (); each: at most 256
                characters; at most 256 items).
            agent_ids: written by any of these agents, by id (default (); each: at most 256 characters; at most 256
                items).
            agent_names: written by any of these, by display name or alias (default (); each: at most 256
                characters; at most 256 items).
            agent_owners: written by an agent of any of these owners (default (); each: at most 256 characters; at
                most 256 items).
            min_importance: at least this importance (default None).
            min_confidence: with a confidence, at least this one (default None).
            since: not before (default None).
            until: not after (default None).
            limit: keep this many, the newest; without one, as many as an answer holds (default None; at least 0).

        Returns:
            In append order, unranked. `profile_budget_applied`: older ones had no room; `chain.traverse` has all of
                them.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `chain`, or the caller was not granted it.
            PayloadTooLarge: over the profile's query_chars.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("chain.search", "text", request, fields)

    if TYPE_CHECKING:

        @overload
        async def list_chains(self, request: ChainListRequest, /) -> ChainListReport: ...
        @overload
        async def list_chains(
            self,
            /,
            *,
            limit: int = 50,
            cursor: str | None = None,
        ) -> ChainListReport: ...
        @overload
        async def list_chains(
            self,
            limit: int,
            /,
            *,
            cursor: str | None = None,
        ) -> ChainListReport: ...

    async def list_chains(self, request: ChainListRequest | int | None = None, /, **fields: Any) -> ChainListReport:
        """List the chains of the space by their keys.

        Args:
            limit: maximum number; clipped to the profile's limit (default 50; at least 1; clipped at the profile's
                page_limit).
            cursor: next_cursor of the previous page (default None; at least 1 character; at most 1,024 characters).

        Returns:
            `chain_keys` are those of `chains`; the default chain need not be there.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `chain`, or the caller was not granted it.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("chain.list", "limit", request, fields)

    if TYPE_CHECKING:

        @overload
        async def chain_head(self, request: ChainHeadRequest, /) -> ChainHeadReport: ...
        @overload
        async def chain_head(
            self,
            /,
            *,
            chain_key: str | None = None,
        ) -> ChainHeadReport: ...
        @overload
        async def chain_head(
            self,
            chain_key: str | None,
            /,
        ) -> ChainHeadReport: ...

    async def chain_head(
        self, request: ChainHeadRequest | str | None | None = None, /, **fields: Any
    ) -> ChainHeadReport:
        """Show the newest thought of a chain, and whether the chain is whole.

        Args:
            chain_key: key of the chain; without one, the default chain (default None; at most 256 characters; no
                control characters).

        Returns:
            `integrity_ok` compares the head with the event log, and recomputes the newest 128 thoughts and at most
                512 more. All thoughts from `verified_from` on were recomputed, by this call or earlier ones since
                the daemon began. `beetle verify` recomputes all of them anew.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `chain`, or the caller was not granted it.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("chain.head", "chain_key", request, fields)

    if TYPE_CHECKING:

        @overload
        async def genesis_thought(self, request: ChainGenesisRequest, /) -> ChainThoughtReport: ...
        @overload
        async def genesis_thought(
            self,
            /,
            *,
            chain_key: str | None = None,
        ) -> ChainThoughtReport: ...
        @overload
        async def genesis_thought(
            self,
            chain_key: str | None,
            /,
        ) -> ChainThoughtReport: ...

    async def genesis_thought(
        self, request: ChainGenesisRequest | str | None | None = None, /, **fields: Any
    ) -> ChainThoughtReport:
        """Show the first thought of a chain.

        Args:
            chain_key: key of the chain; without one, the default chain (default None; at most 256 characters; no
                control characters).

        Returns:
            Of chain.genesis and chain.get_thought; `thought` is null where the chain is empty.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `chain`, or the caller was not granted it.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("chain.genesis", "chain_key", request, fields)

    if TYPE_CHECKING:

        @overload
        async def get_thought(self, request: ChainGetThoughtRequest, /) -> ChainThoughtReport: ...
        @overload
        async def get_thought(
            self,
            /,
            *,
            chain_key: str | None = None,
            thought_id: str | None = None,
            thought_hash: str | None = None,
            thought_index: int | None = None,
        ) -> ChainThoughtReport: ...
        @overload
        async def get_thought(
            self,
            chain_key: str | None,
            /,
            *,
            thought_id: str | None = None,
            thought_hash: str | None = None,
            thought_index: int | None = None,
        ) -> ChainThoughtReport: ...

    async def get_thought(
        self, request: ChainGetThoughtRequest | str | None | None = None, /, **fields: Any
    ) -> ChainThoughtReport:
        """Show one thought by exactly one of its id, its hash and its index.

        Args:
            chain_key: key of the chain; without one, the default chain (default None; at most 256 characters; no
                control characters).
            thought_id: id of a thought, a UUID (default None; at least 1 character; at most 64 characters).
            thought_hash: hash of a thought, 64 hex digits (default None; 64 hex digits).
            thought_index: its place in the chain, from 0 (default None; at least 0; at most 9,007,199,254,740,991).

        Returns:
            Of chain.genesis and chain.get_thought; `thought` is null where the chain is empty.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `chain`, or the caller was not granted it.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("chain.get_thought", "chain_key", request, fields)

    if TYPE_CHECKING:

        @overload
        async def traverse_thoughts(self, request: ChainTraverseRequest, /) -> ChainTraverseReport: ...
        @overload
        async def traverse_thoughts(
            self,
            /,
            *,
            chain_key: str | None = None,
            text: str | None = None,
            thought_types: Sequence[str] = ...,
            roles: Sequence[str] = ...,
            tags_any: Sequence[str] = ...,
            concepts_any: Sequence[str] = ...,
            agent_ids: Sequence[str] = ...,
            agent_names: Sequence[str] = ...,
            agent_owners: Sequence[str] = ...,
            min_importance: float | None = None,
            min_confidence: float | None = None,
            since: datetime | str | None = None,
            until: datetime | str | None = None,
            anchor_id: str | None = None,
            anchor_hash: str | None = None,
            anchor_index: int | None = None,
            anchor_boundary: Literal["genesis", "head"] | None = None,
            direction: Literal["forward", "backward"] = "forward",
            include_anchor: bool = False,
            chunk_size: int = 50,
            time_window: TimeWindow | Mapping[str, Any] | None = None,
        ) -> ChainTraverseReport: ...
        @overload
        async def traverse_thoughts(
            self,
            chain_key: str | None,
            /,
            *,
            text: str | None = None,
            thought_types: Sequence[str] = ...,
            roles: Sequence[str] = ...,
            tags_any: Sequence[str] = ...,
            concepts_any: Sequence[str] = ...,
            agent_ids: Sequence[str] = ...,
            agent_names: Sequence[str] = ...,
            agent_owners: Sequence[str] = ...,
            min_importance: float | None = None,
            min_confidence: float | None = None,
            since: datetime | str | None = None,
            until: datetime | str | None = None,
            anchor_id: str | None = None,
            anchor_hash: str | None = None,
            anchor_index: int | None = None,
            anchor_boundary: Literal["genesis", "head"] | None = None,
            direction: Literal["forward", "backward"] = "forward",
            include_anchor: bool = False,
            chunk_size: int = 50,
            time_window: TimeWindow | Mapping[str, Any] | None = None,
        ) -> ChainTraverseReport: ...

    async def traverse_thoughts(
        self, request: ChainTraverseRequest | str | None | None = None, /, **fields: Any
    ) -> ChainTraverseReport:
        """Walk a chain in append order, forward or backward, in chunks.

        Args:
            chain_key: key of the chain; without one, the default chain (default None; at most 256 characters; no
                control characters).
            text: part of the content, a tag, a concept or the writer's id, name, owner, alias, description (default
                None; at most the profile's query_chars).
            thought_types: any of these types; case and punctuation do not matter (default (); each: at most 64
                characters; at most 64 items).
            roles: any of these roles; case and punctuation do not matter (default (); each: at most 64 characters;
                at most 64 items).
            tags_any: any of these is part of a tag, whatever the case (default (); each: at most 256 characters; at
                most 256 items).
            concepts_any: any of these is part of a concept, whatever the case (default (); each: at most 256
                characters; at most 256 items).
            agent_ids: written by any of these agents, by id (default (); each: at most 256 characters; at most 256
                items).
            agent_names: written by any of these, by display name or alias (default (); each: at most 256
                characters; at most 256 items).
            agent_owners: written by an agent of any of these owners (default (); each: at most 256 characters; at
                most 256 items).
            min_importance: at least this importance (default None).
            min_confidence: with a confidence, at least this one (default None).
            since: not before (default None).
            until: not after (default None).
            anchor_id: begin at the thought of this id (default None; at least 1 character; at most 64 characters).
            anchor_hash: begin at the thought of this hash (default None; 64 hex digits).
            anchor_index: begin at this place (default None; at least 0; at most 9,007,199,254,740,991).
            anchor_boundary: begin at this end of the chain (default None).
            direction: way to walk (default forward).
            include_anchor: return the anchor too, if it fits; a boundary is returned in any case (default False).
            chunk_size: thoughts to return at most (default 50; at least 1; clipped at the profile's page_limit).
            time_window: written in this window (default None).

        Returns:
            `thoughts` in the order of the walk. `next_cursor` is the last of them, the anchor of the next chunk in
                the same direction; `previous_cursor` the first, for the other direction.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `chain`, or the caller was not granted it.
            PayloadTooLarge: over the profile's query_chars.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("chain.traverse", "chain_key", request, fields)

    if TYPE_CHECKING:

        @overload
        async def recent_context(self, request: ChainRecentContextRequest, /) -> ChainRecentContextReport: ...
        @overload
        async def recent_context(
            self,
            /,
            *,
            chain_key: str | None = None,
            last_n: int = 12,
            agent_id: str | None = None,
        ) -> ChainRecentContextReport: ...
        @overload
        async def recent_context(
            self,
            chain_key: str | None,
            /,
            *,
            last_n: int = 12,
            agent_id: str | None = None,
        ) -> ChainRecentContextReport: ...

    async def recent_context(
        self, request: ChainRecentContextRequest | str | None | None = None, /, **fields: Any
    ) -> ChainRecentContextReport:
        """Render the latest thoughts of a chain as a prompt to go on from.

        Args:
            chain_key: key of the chain; without one, the default chain (default None; at most 256 characters; no
                control characters).
            last_n: how many thoughts (default 12; at least 0; clipped at the profile's page_limit).
            agent_id: only thoughts of this agent (default None; at most 256 characters; no control characters).

        Returns:
            One line for each thought, the oldest first; empty where there is none.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `chain`, or the caller was not granted it.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("chain.recent_context", "chain_key", request, fields)

    if TYPE_CHECKING:

        @overload
        async def memory_markdown(self, request: ChainMemoryMarkdownRequest, /) -> ChainMemoryMarkdownReport: ...
        @overload
        async def memory_markdown(
            self,
            /,
            *,
            chain_key: str | None = None,
            text: str | None = None,
            thought_types: Sequence[str] = ...,
            roles: Sequence[str] = ...,
            tags_any: Sequence[str] = ...,
            concepts_any: Sequence[str] = ...,
            agent_ids: Sequence[str] = ...,
            agent_names: Sequence[str] = ...,
            agent_owners: Sequence[str] = ...,
            min_importance: float | None = None,
            min_confidence: float | None = None,
            since: datetime | str | None = None,
            until: datetime | str | None = None,
            limit: int | None = None,
        ) -> ChainMemoryMarkdownReport: ...
        @overload
        async def memory_markdown(
            self,
            chain_key: str | None,
            /,
            *,
            text: str | None = None,
            thought_types: Sequence[str] = ...,
            roles: Sequence[str] = ...,
            tags_any: Sequence[str] = ...,
            concepts_any: Sequence[str] = ...,
            agent_ids: Sequence[str] = ...,
            agent_names: Sequence[str] = ...,
            agent_owners: Sequence[str] = ...,
            min_importance: float | None = None,
            min_confidence: float | None = None,
            since: datetime | str | None = None,
            until: datetime | str | None = None,
            limit: int | None = None,
        ) -> ChainMemoryMarkdownReport: ...

    async def memory_markdown(
        self, request: ChainMemoryMarkdownRequest | str | None | None = None, /, **fields: Any
    ) -> ChainMemoryMarkdownReport:
        """Render a chain, or the thoughts of it that fit all filters, as Markdown by sections.

        Args:
            chain_key: key of the chain; without one, the default chain (default None; at most 256 characters; no
                control characters).
            text: part of the content, a tag, a concept or the writer's id, name, owner, alias, description (default
                None; at most the profile's query_chars).
            thought_types: any of these types; case and punctuation do not matter (default (); each: at most 64
                characters; at most 64 items).
            roles: any of these roles; case and punctuation do not matter (default (); each: at most 64 characters;
                at most 64 items).
            tags_any: any of these is part of a tag, whatever the case (default (); each: at most 256 characters; at
                most 256 items).
            concepts_any: any of these is part of a concept, whatever the case (default (); each: at most 256
                characters; at most 256 items).
            agent_ids: written by any of these agents, by id (default (); each: at most 256 characters; at most 256
                items).
            agent_names: written by any of these, by display name or alias (default (); each: at most 256
                characters; at most 256 items).
            agent_owners: written by an agent of any of these owners (default (); each: at most 256 characters; at
                most 256 items).
            min_importance: at least this importance (default None).
            min_confidence: with a confidence, at least this one (default None).
            since: not before (default None).
            until: not after (default None).
            limit: keep this many, the newest; without one, as many as an answer holds (default None; at least 0).

        Returns:
            One list item for each thought.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `chain`, or the caller was not granted it.
            PayloadTooLarge: over the profile's query_chars.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("chain.memory_markdown", "chain_key", request, fields)

    if TYPE_CHECKING:

        @overload
        async def export_chain(self, request: ChainExportRequest, /) -> ChainExportReport: ...
        @overload
        async def export_chain(
            self,
            /,
            *,
            chain_key: str | None = None,
            limit: int = 50,
            cursor: str | None = None,
        ) -> ChainExportReport: ...
        @overload
        async def export_chain(
            self,
            chain_key: str | None,
            /,
            *,
            limit: int = 50,
            cursor: str | None = None,
        ) -> ChainExportReport: ...

    async def export_chain(
        self, request: ChainExportRequest | str | None | None = None, /, **fields: Any
    ) -> ChainExportReport:
        """Export a chain in append order with all that its hashes are over.

        Args:
            chain_key: key of the chain; without one, the default chain (default None; at most 256 characters; no
                control characters).
            limit: maximum number; clipped to the profile's limit (default 50; at least 1; clipped at the profile's
                page_limit).
            cursor: next_cursor of the previous page (default None; at least 1 character; at most 1,024 characters).

        Returns:
            `format` is the version of docs/chain-format.md; `head_hash` that of the whole chain.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `chain`, or the caller was not granted it.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("chain.export", "chain_key", request, fields)

    if TYPE_CHECKING:

        @overload
        async def chain_merge_report(self, request: ChainMergeReportRequest, /) -> ChainMergeReport: ...
        @overload
        async def chain_merge_report(
            self,
            /,
            *,
            other_chain_key: str,
            chain_key: str | None = None,
            limit: int = 50,
        ) -> ChainMergeReport: ...
        @overload
        async def chain_merge_report(
            self,
            chain_key: str | None,
            /,
            *,
            other_chain_key: str,
            limit: int = 50,
        ) -> ChainMergeReport: ...

    async def chain_merge_report(
        self, request: ChainMergeReportRequest | str | None | None = None, /, **fields: Any
    ) -> ChainMergeReport:
        """Compare two chains: the thoughts that both share, those of one alone, what both say of the same thought.

        Args:
            chain_key: key of the chain; without one, the default chain (default None; at most 256 characters; no
                control characters).
            other_chain_key: the chain to compare with (required; at most 256 characters; no control characters; at
                least 1 character).
            limit: maximum number; clipped to the profile's limit (default 50; at least 1; clipped at the profile's
                page_limit).

        Returns:
            `only_in_chain` and `only_in_other` are the first thoughts of each behind the `shared` ones.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `chain`, or the caller was not granted it.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("chain.merge_report", "chain_key", request, fields)

    if TYPE_CHECKING:

        @overload
        async def list_chain_agents(self, request: ChainAgentsRequest, /) -> ChainAgentsReport: ...
        @overload
        async def list_chain_agents(
            self,
            /,
            *,
            chain_key: str | None = None,
            limit: int = 50,
            cursor: str | None = None,
        ) -> ChainAgentsReport: ...
        @overload
        async def list_chain_agents(
            self,
            chain_key: str | None,
            /,
            *,
            limit: int = 50,
            cursor: str | None = None,
        ) -> ChainAgentsReport: ...

    async def list_chain_agents(
        self, request: ChainAgentsRequest | str | None | None = None, /, **fields: Any
    ) -> ChainAgentsReport:
        """List the agents that have written to a chain.

        Args:
            chain_key: key of the chain; without one, the default chain (default None; at most 256 characters; no
                control characters).
            limit: maximum number; clipped to the profile's limit (default 50; at least 1; clipped at the profile's
                page_limit).
            cursor: next_cursor of the previous page (default None; at least 1 character; at most 1,024 characters).

        Returns:
            By id; agents that are registered and have written nothing are left out.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `chain`, or the caller was not granted it.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("chain.agents", "chain_key", request, fields)

    if TYPE_CHECKING:

        @overload
        async def get_chain_agent(self, request: ChainGetAgentRequest, /) -> ChainAgentReport: ...
        @overload
        async def get_chain_agent(
            self,
            /,
            *,
            agent_id: str,
            chain_key: str | None = None,
        ) -> ChainAgentReport: ...
        @overload
        async def get_chain_agent(
            self,
            agent_id: str,
            /,
            *,
            chain_key: str | None = None,
        ) -> ChainAgentReport: ...

    async def get_chain_agent(
        self, request: ChainGetAgentRequest | str | None = None, /, **fields: Any
    ) -> ChainAgentReport:
        """Show the registry's record of one agent.

        Args:
            chain_key: key of the chain; without one, the default chain (default None; at most 256 characters; no
                control characters).
            agent_id: id of the agent, as it is registered (required; at least 1 character; at most 256 characters;
                no control characters).

        Returns:
            The record as it is now.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `chain`, or the caller was not granted it.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("chain.get_agent", "agent_id", request, fields)

    if TYPE_CHECKING:

        @overload
        async def list_chain_agent_registry(
            self, request: ChainAgentRegistryRequest, /
        ) -> ChainAgentRegistryReport: ...
        @overload
        async def list_chain_agent_registry(
            self,
            /,
            *,
            chain_key: str | None = None,
            limit: int = 50,
            cursor: str | None = None,
        ) -> ChainAgentRegistryReport: ...
        @overload
        async def list_chain_agent_registry(
            self,
            chain_key: str | None,
            /,
            *,
            limit: int = 50,
            cursor: str | None = None,
        ) -> ChainAgentRegistryReport: ...

    async def list_chain_agent_registry(
        self, request: ChainAgentRegistryRequest | str | None | None = None, /, **fields: Any
    ) -> ChainAgentRegistryReport:
        """List the whole registry of a chain's agents, with aliases, keys and counts.

        Args:
            chain_key: key of the chain; without one, the default chain (default None; at most 256 characters; no
                control characters).
            limit: maximum number; clipped to the profile's limit (default 50; at least 1; clipped at the profile's
                page_limit).
            cursor: next_cursor of the previous page (default None; at least 1 character; at most 1,024 characters).

        Returns:
            By id.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `chain`, or the caller was not granted it.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("chain.agent_registry", "chain_key", request, fields)

    if TYPE_CHECKING:

        @overload
        async def upsert_chain_agent(self, request: ChainUpsertAgentRequest, /) -> ChainAgentReport: ...
        @overload
        async def upsert_chain_agent(
            self,
            /,
            *,
            agent_id: str,
            chain_key: str | None = None,
            display_name: str | None = None,
            agent_owner: str | None = None,
            description: str | None = None,
            status: str | None = None,
        ) -> ChainAgentReport: ...
        @overload
        async def upsert_chain_agent(
            self,
            agent_id: str,
            /,
            *,
            chain_key: str | None = None,
            display_name: str | None = None,
            agent_owner: str | None = None,
            description: str | None = None,
            status: str | None = None,
        ) -> ChainAgentReport: ...

    async def upsert_chain_agent(
        self, request: ChainUpsertAgentRequest | str | None = None, /, **fields: Any
    ) -> ChainAgentReport:
        """Create or change the registry's record of an agent; omitted fields stay, a name that changes becomes an
        alias.

        Args:
            chain_key: key of the chain; without one, the default chain (default None; at most 256 characters; no
                control characters).
            agent_id: id of the agent, as it is registered (required; at least 1 character; at most 256 characters;
                no control characters).
            display_name: display name of the agent (default None; at most 256 characters; no control characters).
            agent_owner: owner or tenant of the agent; empty clears it (default None; at most 256 characters; no
                control characters).
            description: what the agent is for; empty clears it (default None; at most 4,096 characters).
            status: active or revoked (default None; at most 64 characters).

        Returns:
            The record as it is now.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `chain`, or the caller was not granted it.
            StoreBudgetExceeded: the store is at its ceiling.
            StoreReadOnly, StorageFull: nothing can be written.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("chain.upsert_agent", "agent_id", request, fields)

    if TYPE_CHECKING:

        @overload
        async def set_chain_agent_description(
            self, request: ChainSetAgentDescriptionRequest, /
        ) -> ChainAgentReport: ...
        @overload
        async def set_chain_agent_description(
            self,
            /,
            *,
            agent_id: str,
            chain_key: str | None = None,
            description: str | None = None,
        ) -> ChainAgentReport: ...
        @overload
        async def set_chain_agent_description(
            self,
            agent_id: str,
            /,
            *,
            chain_key: str | None = None,
            description: str | None = None,
        ) -> ChainAgentReport: ...

    async def set_chain_agent_description(
        self, request: ChainSetAgentDescriptionRequest | str | None = None, /, **fields: Any
    ) -> ChainAgentReport:
        """Set the description of an agent, or clear it.

        Args:
            chain_key: key of the chain; without one, the default chain (default None; at most 256 characters; no
                control characters).
            agent_id: id of the agent, as it is registered (required; at least 1 character; at most 256 characters;
                no control characters).
            description: what the agent is for; empty clears it (default None; at most 4,096 characters).

        Returns:
            The record as it is now.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `chain`, or the caller was not granted it.
            StoreBudgetExceeded: the store is at its ceiling.
            StoreReadOnly, StorageFull: nothing can be written.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("chain.set_agent_description", "agent_id", request, fields)

    if TYPE_CHECKING:

        @overload
        async def add_chain_agent_alias(self, request: ChainAddAgentAliasRequest, /) -> ChainAgentReport: ...
        @overload
        async def add_chain_agent_alias(
            self,
            /,
            *,
            agent_id: str,
            alias: str,
            chain_key: str | None = None,
        ) -> ChainAgentReport: ...
        @overload
        async def add_chain_agent_alias(
            self,
            agent_id: str,
            /,
            *,
            alias: str,
            chain_key: str | None = None,
        ) -> ChainAgentReport: ...

    async def add_chain_agent_alias(
        self, request: ChainAddAgentAliasRequest | str | None = None, /, **fields: Any
    ) -> ChainAgentReport:
        """Add a name by which an agent is known too.

        Args:
            chain_key: key of the chain; without one, the default chain (default None; at most 256 characters; no
                control characters).
            agent_id: id of the agent, as it is registered (required; at least 1 character; at most 256 characters;
                no control characters).
            alias: the other name (required; at most 256 characters; not blank).

        Returns:
            The record as it is now.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `chain`, or the caller was not granted it.
            StoreBudgetExceeded: the store is at its ceiling.
            StoreReadOnly, StorageFull: nothing can be written.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("chain.add_agent_alias", "agent_id", request, fields)

    if TYPE_CHECKING:

        @overload
        async def add_chain_agent_key(self, request: ChainAddAgentKeyRequest, /) -> ChainAgentReport: ...
        @overload
        async def add_chain_agent_key(
            self,
            /,
            *,
            agent_id: str,
            key_id: str,
            algorithm: str,
            public_key_bytes: Sequence[int],
            chain_key: str | None = None,
        ) -> ChainAgentReport: ...
        @overload
        async def add_chain_agent_key(
            self,
            agent_id: str,
            /,
            *,
            key_id: str,
            algorithm: str,
            public_key_bytes: Sequence[int],
            chain_key: str | None = None,
        ) -> ChainAgentReport: ...

    async def add_chain_agent_key(
        self, request: ChainAddAgentKeyRequest | str | None = None, /, **fields: Any
    ) -> ChainAgentReport:
        """Add a public key of an agent, or replace the key of that id.

        Args:
            chain_key: key of the chain; without one, the default chain (default None; at most 256 characters; no
                control characters).
            agent_id: id of the agent, as it is registered (required; at least 1 character; at most 256 characters;
                no control characters).
            key_id: id of the key (required; at least 1 character; at most 256 characters; no control characters).
            algorithm: ed25519 (required; at most 64 characters).
            public_key_bytes: the 32 bytes of the public key (required; each: at least 0; each: at most 255; at
                least 32 items; at most 32 items).

        Returns:
            The record as it is now.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `chain`, or the caller was not granted it.
            StoreBudgetExceeded: the store is at its ceiling.
            StoreReadOnly, StorageFull: nothing can be written.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("chain.add_agent_key", "agent_id", request, fields)

    if TYPE_CHECKING:

        @overload
        async def revoke_chain_agent_key(self, request: ChainRevokeAgentKeyRequest, /) -> ChainAgentReport: ...
        @overload
        async def revoke_chain_agent_key(
            self,
            /,
            *,
            agent_id: str,
            key_id: str,
            chain_key: str | None = None,
        ) -> ChainAgentReport: ...
        @overload
        async def revoke_chain_agent_key(
            self,
            agent_id: str,
            /,
            *,
            key_id: str,
            chain_key: str | None = None,
        ) -> ChainAgentReport: ...

    async def revoke_chain_agent_key(
        self, request: ChainRevokeAgentKeyRequest | str | None = None, /, **fields: Any
    ) -> ChainAgentReport:
        """Revoke a public key of an agent; its record stays.

        Args:
            chain_key: key of the chain; without one, the default chain (default None; at most 256 characters; no
                control characters).
            agent_id: id of the agent, as it is registered (required; at least 1 character; at most 256 characters;
                no control characters).
            key_id: id of the key (required; at least 1 character; at most 256 characters; no control characters).

        Returns:
            The record as it is now.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `chain`, or the caller was not granted it.
            StoreReadOnly, StorageFull: nothing can be written.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("chain.revoke_agent_key", "agent_id", request, fields)

    if TYPE_CHECKING:

        @overload
        async def disable_chain_agent(self, request: ChainDisableAgentRequest, /) -> ChainAgentReport: ...
        @overload
        async def disable_chain_agent(
            self,
            /,
            *,
            agent_id: str,
            chain_key: str | None = None,
        ) -> ChainAgentReport: ...
        @overload
        async def disable_chain_agent(
            self,
            agent_id: str,
            /,
            *,
            chain_key: str | None = None,
        ) -> ChainAgentReport: ...

    async def disable_chain_agent(
        self, request: ChainDisableAgentRequest | str | None = None, /, **fields: Any
    ) -> ChainAgentReport:
        """Disable an agent: its thoughts stay, and it can append and upload no more.

        Args:
            chain_key: key of the chain; without one, the default chain (default None; at most 256 characters; no
                control characters).
            agent_id: id of the agent, as it is registered (required; at least 1 character; at most 256 characters;
                no control characters).

        Returns:
            The record as it is now.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `chain`, or the caller was not granted it.
            StoreReadOnly, StorageFull: nothing can be written.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("chain.disable_agent", "agent_id", request, fields)

    if TYPE_CHECKING:

        @overload
        async def create_chunk(self, request: ChunkCreateRequest, /) -> ChunkReport: ...
        @overload
        async def create_chunk(
            self,
            /,
            *,
            content: str,
            conversation_id: str,
            type: Literal["fact", "preference", "pattern", "note", "decision"] | None = None,
            tokens: int | None = None,
            tags: Sequence[str] = ...,
            confidence: float = 0.7,
            source: Literal["interaction", "import", "derived"] = "interaction",
            links: ChunkLinksInput | Mapping[str, Any] = ...,
            link: bool = True,
        ) -> ChunkReport: ...
        @overload
        async def create_chunk(
            self,
            content: str,
            /,
            *,
            conversation_id: str,
            type: Literal["fact", "preference", "pattern", "note", "decision"] | None = None,
            tokens: int | None = None,
            tags: Sequence[str] = ...,
            confidence: float = 0.7,
            source: Literal["interaction", "import", "derived"] = "interaction",
            links: ChunkLinksInput | Mapping[str, Any] = ...,
            link: bool = True,
        ) -> ChunkReport: ...

    async def create_chunk(self, request: ChunkCreateRequest | str | None = None, /, **fields: Any) -> ChunkReport:
        """Store a chunk and link it with its conversation, what came before and what shares a tag.

        Args:
            content: text of the chunk (required; not blank; at most the profile's message_content_bytes).
            type: type of the chunk; without one it is detected from the text (default None).
            conversation_id: id of the conversation (required; at least 1 character; at most 256 characters; no
                control characters).
            tokens: size in tokens; without one they are counted (`beetle help chunks`) (default None; at least 1;
                at most 2,147,483,648).
            tags: labels to find it by, case-sensitive (default (); each: at least 1 character; each: at most 256
                characters; at most 64 items).
            confidence: how reliable it is, from 0 to 1 (default 0.7; at least 0; at most 1).
            source: how it came to be (default interaction).
            links: links of your own, beside those that are made (default {}).
            link: make the links context_of, follows and related_to (default True).

        Returns:
            The chunk as it is now.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `chunk`, or the caller was not granted it.
            PayloadTooLarge: over the profile's message_content_bytes.
            StoreBudgetExceeded: the store is at its ceiling.
            StoreReadOnly, StorageFull: nothing can be written.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("chunk.create", "content", request, fields)

    if TYPE_CHECKING:

        @overload
        async def get_chunk(self, request: ChunkGetRequest, /) -> ChunkGetReport: ...
        @overload
        async def get_chunk(
            self,
            /,
            *,
            id: str,
            count_access: bool = True,
        ) -> ChunkGetReport: ...
        @overload
        async def get_chunk(
            self,
            id: str,
            /,
            *,
            count_access: bool = True,
        ) -> ChunkGetReport: ...

    async def get_chunk(self, request: ChunkGetRequest | str | None = None, /, **fields: Any) -> ChunkGetReport:
        """Show a chunk, also an archived one, and what links to it.

        Args:
            id: id of the chunk (required; at most 1,024 characters).
            count_access: count this as an access of the chunk (default True).

        Returns:
            `chunk` is null where there is none of that id. `linked_from`: links of other chunks that lead to it,
                the newest first, 64 at most; `target` is the chunk that they come from.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `chunk`, or the caller was not granted it.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("chunk.get", "id", request, fields)

    if TYPE_CHECKING:

        @overload
        async def list_chunks(self, request: ChunkListRequest, /) -> ChunkListReport: ...
        @overload
        async def list_chunks(
            self,
            /,
            *,
            conversation_id: str | None = None,
            tags: Sequence[str] = ...,
            type: Literal["fact", "preference", "pattern", "note", "decision"] | None = None,
            created_after: datetime | str | None = None,
            created_before: datetime | str | None = None,
            state: Literal["live", "archived", "all"] = "live",
            changed_since: int | None = None,
            limit: int = 50,
            cursor: str | None = None,
        ) -> ChunkListReport: ...
        @overload
        async def list_chunks(
            self,
            conversation_id: str | None,
            /,
            *,
            tags: Sequence[str] = ...,
            type: Literal["fact", "preference", "pattern", "note", "decision"] | None = None,
            created_after: datetime | str | None = None,
            created_before: datetime | str | None = None,
            state: Literal["live", "archived", "all"] = "live",
            changed_since: int | None = None,
            limit: int = 50,
            cursor: str | None = None,
        ) -> ChunkListReport: ...

    async def list_chunks(
        self, request: ChunkListRequest | str | None | None = None, /, **fields: Any
    ) -> ChunkListReport:
        """List chunks in the order in which they were stored, by conversation, tags, type and time.

        Args:
            conversation_id: only chunks of this conversation (default None; at least 1 character; at most 256
                characters; no control characters).
            tags: only chunks with all of these tags (default (); each: at least 1 character; each: at most 256
                characters; at most 64 items).
            type: only chunks of this type (default None).
            created_after: created at this time or later (default None).
            created_before: created at this time or earlier (default None).
            state: only chunks in this state (default live).
            changed_since: only what changed behind this revision, in the order of revisions (default None; at least
                0; at most 9,007,199,254,740,992).
            limit: maximum number; clipped to the profile's limit (default 50; at least 1; clipped at the profile's
                page_limit).
            cursor: next_cursor of the previous page (default None; at least 1 character; at most 1,024 characters).

        Returns:
            `revision` is the space's newest. With `changed_since`, `removed` are the ids of deleted chunks,
                whatever the other filters are.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `chunk`, or the caller was not granted it.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("chunk.list", "conversation_id", request, fields)

    if TYPE_CHECKING:

        @overload
        async def chunk_stats(self, request: ChunkStatsRequest, /) -> ChunkStatsReport: ...
        @overload
        async def chunk_stats(
            self,
            /,
            *,
            by: Literal["conversation", "tag"] | None = None,
            limit: int = 50,
            cursor: str | None = None,
        ) -> ChunkStatsReport: ...
        @overload
        async def chunk_stats(
            self,
            by: Literal["conversation", "tag"] | None,
            /,
            *,
            limit: int = 50,
            cursor: str | None = None,
        ) -> ChunkStatsReport: ...

    async def chunk_stats(
        self, request: ChunkStatsRequest | Literal["conversation", "tag"] | None | None = None, /, **fields: Any
    ) -> ChunkStatsReport:
        """Count the chunks of the space, and list its conversations or its tags with the number of their chunks.

        Args:
            by: also list these, each with the number of its live chunks (default None).
            limit: maximum number; clipped to the profile's limit (default 50; at least 1; clipped at the profile's
                page_limit).
            cursor: next_cursor of the previous page (default None; at least 1 character; at most 1,024 characters).

        Returns:
            `total_chunks` and `by_type` are of live chunks. `groups` in the order of their names.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `chunk`, or the caller was not granted it.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("chunk.stats", "by", request, fields)

    if TYPE_CHECKING:

        @overload
        async def update_chunk(self, request: ChunkUpdateRequest, /) -> ChunkReport: ...
        @overload
        async def update_chunk(
            self,
            /,
            *,
            id: str,
            content: str | None = None,
            tokens: int | None = None,
            type: Literal["fact", "preference", "pattern", "note", "decision"] | None = None,
            tags: Sequence[str] | None = None,
            confidence: float | None = None,
            links: ChunkLinksInput | Mapping[str, Any] = ...,
        ) -> ChunkReport: ...
        @overload
        async def update_chunk(
            self,
            id: str,
            /,
            *,
            content: str | None = None,
            tokens: int | None = None,
            type: Literal["fact", "preference", "pattern", "note", "decision"] | None = None,
            tags: Sequence[str] | None = None,
            confidence: float | None = None,
            links: ChunkLinksInput | Mapping[str, Any] = ...,
        ) -> ChunkReport: ...

    async def update_chunk(self, request: ChunkUpdateRequest | str | None = None, /, **fields: Any) -> ChunkReport:
        """Change a chunk; what is not given stays, and new content is counted anew unless tokens are given.

        Args:
            id: id of the chunk (required; at most 1,024 characters).
            content: text of the chunk (default None; not blank; at most the profile's message_content_bytes).
            tokens: size in tokens; without one they are counted (`beetle help chunks`) (default None; at least 1;
                at most 2,147,483,648).
            type: type of the chunk (default None).
            tags: labels to find it by, case-sensitive (default None; each: at least 1 character; each: at most 256
                characters; at most 64 items).
            confidence: how reliable it is, from 0 to 1 (default None; at least 0; at most 1).
            links: kinds of links to replace as a whole (default {}).

        Returns:
            The chunk as it is now.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `chunk`, or the caller was not granted it.
            PayloadTooLarge: over the profile's message_content_bytes.
            StoreBudgetExceeded: the store is at its ceiling.
            StoreReadOnly, StorageFull: nothing can be written.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("chunk.update", "id", request, fields)

    if TYPE_CHECKING:

        @overload
        async def delete_chunk(self, request: ChunkDeleteRequest, /) -> ChunkDeleteReport: ...
        @overload
        async def delete_chunk(
            self,
            /,
            *,
            id: str,
            permanent: bool = False,
        ) -> ChunkDeleteReport: ...
        @overload
        async def delete_chunk(
            self,
            id: str,
            /,
            *,
            permanent: bool = False,
        ) -> ChunkDeleteReport: ...

    async def delete_chunk(
        self, request: ChunkDeleteRequest | str | None = None, /, **fields: Any
    ) -> ChunkDeleteReport:
        """Archive a chunk, or delete it for good, also from the archive.

        Args:
            id: id of the chunk (required; at most 1,024 characters).
            permanent: erase it from the store; it cannot be restored (default False).

        Returns:
            `unchanged`: it was archived already. `erasure` and `replica_horizon`: see `transcript.lifecycle`.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `chunk`, or the caller was not granted it.
            StoreReadOnly, StorageFull: nothing can be written.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("chunk.delete", "id", request, fields)

    if TYPE_CHECKING:

        @overload
        async def restore_chunk(self, request: ChunkRestoreRequest, /) -> ChunkReport: ...
        @overload
        async def restore_chunk(
            self,
            /,
            *,
            id: str,
        ) -> ChunkReport: ...
        @overload
        async def restore_chunk(
            self,
            id: str,
            /,
        ) -> ChunkReport: ...

    async def restore_chunk(self, request: ChunkRestoreRequest | str | None = None, /, **fields: Any) -> ChunkReport:
        """Take an archived chunk out of the archive.

        Args:
            id: id of the chunk (required; at most 1,024 characters).

        Returns:
            The chunk as it is now.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `chunk`, or the caller was not granted it.
            StoreBudgetExceeded: the store is at its ceiling.
            StoreReadOnly, StorageFull: nothing can be written.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("chunk.restore", "id", request, fields)

    if TYPE_CHECKING:

        @overload
        async def link_chunk(self, request: ChunkLinkRequest, /) -> ChunkReport: ...
        @overload
        async def link_chunk(
            self,
            /,
            *,
            id: str,
            kind: Literal["context_of", "follows", "related_to", "supports", "contradicts"],
            target: str,
            strength: float | None = None,
            remove: bool = False,
        ) -> ChunkReport: ...
        @overload
        async def link_chunk(
            self,
            id: str,
            /,
            *,
            kind: Literal["context_of", "follows", "related_to", "supports", "contradicts"],
            target: str,
            strength: float | None = None,
            remove: bool = False,
        ) -> ChunkReport: ...

    async def link_chunk(self, request: ChunkLinkRequest | str | None = None, /, **fields: Any) -> ChunkReport:
        """Link a chunk to another by hand, change the strength of a link, or remove one.

        Args:
            id: id of the chunk (required; at most 1,024 characters).
            kind: kind of the link (required).
            target: id of the chunk it leads to; of context_of a conversation (required; at least 1 character; at
                most 256 characters).
            strength: strength; without one 0.5, of context_of 1.0 (default None; at least 0; at most 1).
            remove: remove this link (default False).

        Returns:
            The chunk as it is now.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `chunk`, or the caller was not granted it.
            StoreBudgetExceeded: the store is at its ceiling.
            StoreReadOnly, StorageFull: nothing can be written.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("chunk.link", "id", request, fields)

    if TYPE_CHECKING:

        @overload
        async def remember_chunks(self, request: ChunkRememberRequest, /) -> ChunkRememberReport: ...
        @overload
        async def remember_chunks(
            self,
            /,
            *,
            content: str,
            conversation_id: str,
            tags: Sequence[str] = ...,
            confidence: float = 0.7,
            type: Literal["fact", "preference", "pattern", "note", "decision"] | None = None,
        ) -> ChunkRememberReport: ...
        @overload
        async def remember_chunks(
            self,
            content: str,
            /,
            *,
            conversation_id: str,
            tags: Sequence[str] = ...,
            confidence: float = 0.7,
            type: Literal["fact", "preference", "pattern", "note", "decision"] | None = None,
        ) -> ChunkRememberReport: ...

    async def remember_chunks(
        self, request: ChunkRememberRequest | str | None = None, /, **fields: Any
    ) -> ChunkRememberReport:
        """Split a text into chunks of 100 to 800 tokens, store them and link them.

        Args:
            content: the text; blank text is stored as nothing (required; at most the profile's
                message_content_bytes).
            conversation_id: id of the conversation (required; at least 1 character; at most 256 characters; no
                control characters).
            tags: labels of every chunk, case-sensitive (default (); each: at least 1 character; each: at most 256
                characters; at most 64 items).
            confidence: how reliable it is, from 0 to 1 (default 0.7; at least 0; at most 1).
            type: type of every chunk; without one each is detected (default None).

        Returns:
            `chunk_ids` in the order of the text. Without success, `error` says why nothing was stored.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `chunk`, or the caller was not granted it.
            PayloadTooLarge: over the profile's message_content_bytes.
            StoreBudgetExceeded: the store is at its ceiling.
            StoreReadOnly, StorageFull: nothing can be written.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("chunk.remember", "content", request, fields)

    if TYPE_CHECKING:

        @overload
        async def recall_chunks(self, request: ChunkRecallRequest, /) -> ChunkRecallReport: ...
        @overload
        async def recall_chunks(
            self,
            /,
            *,
            query: str,
            conversation_id: str | None = None,
            max_results: int = 5,
            min_confidence: float = 0.5,
        ) -> ChunkRecallReport: ...
        @overload
        async def recall_chunks(
            self,
            query: str,
            /,
            *,
            conversation_id: str | None = None,
            max_results: int = 5,
            min_confidence: float = 0.5,
        ) -> ChunkRecallReport: ...

    async def recall_chunks(
        self, request: ChunkRecallRequest | str | None = None, /, **fields: Any
    ) -> ChunkRecallReport:
        """Answer a query with the chunks that fit it best.

        Args:
            query: words to look for (required; at least 1 character; not blank; at most the profile's query_chars).
            conversation_id: only chunks of this conversation (default None; at least 1 character; at most 256
                characters; no control characters).
            max_results: chunks in the answer at most (default 5; at least 1; clipped at the profile's
                recall_limit).
            min_confidence: only chunks with at least this confidence (default 0.5; at least 0; at most 1).

        Returns:
            `answer` holds the contents of `source_chunks`, best first. `confidence` is theirs, weighted by their
                scores. `traversal_path` are the steps that led to them. No model is asked: `cost_usd` is 0.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `chunk`, or the caller was not granted it.
            PayloadTooLarge: over the profile's query_chars.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("chunk.recall", "query", request, fields)

    if TYPE_CHECKING:

        @overload
        async def reason_chunks(self, request: ChunkReasonRequest, /) -> ChunkReasonReport: ...
        @overload
        async def reason_chunks(
            self,
            /,
            *,
            query: str,
            context_chunks: Sequence[str] = ...,
            analysis_type: Literal["synthesis", "comparison", "pattern", "gap"] = "synthesis",
        ) -> ChunkReasonReport: ...
        @overload
        async def reason_chunks(
            self,
            query: str,
            /,
            *,
            context_chunks: Sequence[str] = ...,
            analysis_type: Literal["synthesis", "comparison", "pattern", "gap"] = "synthesis",
        ) -> ChunkReasonReport: ...

    async def reason_chunks(
        self, request: ChunkReasonRequest | str | None = None, /, **fields: Any
    ) -> ChunkReasonReport:
        """Analyse chunks: what they say together, how they compare, their patterns, gaps and contradictions.

        Args:
            query: words to look for (required; at least 1 character; not blank; at most the profile's query_chars).
            context_chunks: ids of the chunks to analyse; without any, those that the query finds (default (); each:
                at most 1,024 characters; at most 256 items).
            analysis_type: kind of analysis (default synthesis).

        Returns:
            `synthesis` is the analysis as text, `insights` its points one by one. `evidence` names the chunks that
                it rests on, by role.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `chunk`, or the caller was not granted it.
            PayloadTooLarge: over the profile's query_chars.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("chunk.reason", "query", request, fields)

    if TYPE_CHECKING:

        @overload
        async def export_chunk_tree(self, request: ChunkExportTreeRequest, /) -> ChunkExportTreeReport: ...
        @overload
        async def export_chunk_tree(
            self,
            /,
            *,
            view: Literal["export"] = "export",
            in_pieces: bool = False,
        ) -> ChunkExportTreeReport: ...
        @overload
        async def export_chunk_tree(
            self,
            view: Literal["export"],
            /,
            *,
            in_pieces: bool = False,
        ) -> ChunkExportTreeReport: ...

    async def export_chunk_tree(
        self, request: ChunkExportTreeRequest | Literal["export"] | None = None, /, **fields: Any
    ) -> ChunkExportTreeReport:
        """Export the chunks as a tar archive of JSON files: chunks by month, indexes, archive.

        Args:
            view: view that filters the exported content (default export).
            in_pieces: hand over what is larger than a piece under a handle, to be fetched with `transfer.get`
                (default False).

        Returns:
            `transfer` is what to fetch in place of `archive`, where it goes in pieces. `revision`: of the space's
                chunks. `damaged` chunks are not in it: `beetle verify` names them.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `export`, or the caller was not granted it.
            StoreReadOnly, StorageFull: nothing can be written.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("chunk.export_tree", "view", request, fields)

    if TYPE_CHECKING:

        @overload
        async def import_chunk_tree(self, request: ChunkImportTreeRequest, /) -> ChunkImportTreeReport: ...
        @overload
        async def import_chunk_tree(
            self,
            /,
            *,
            archive: bytes | None = None,
            transfer_id: str | None = None,
            dry_run: bool = False,
        ) -> ChunkImportTreeReport: ...
        @overload
        async def import_chunk_tree(
            self,
            archive: bytes | None,
            /,
            *,
            transfer_id: str | None = None,
            dry_run: bool = False,
        ) -> ChunkImportTreeReport: ...

    async def import_chunk_tree(
        self, request: ChunkImportTreeRequest | bytes | None | None = None, /, **fields: Any
    ) -> ChunkImportTreeReport:
        """Import a folder of JSON chunk files from a tar archive; a file that is no chunk is listed and does not
        stop.

        Args:
            archive: tar archive of the folder (default None; at least 1 character; at most the profile's
                import_bytes).
            transfer_id: the transfer that holds the bytes, in place of the bytes (default None; at least 1
                character; at most 256 characters; no control characters).
            dry_run: report what would be imported; change nothing (default False).

        Returns:
            `unchanged`: chunks that are already as in the file. Those that the folder lacks stay. Of the refused
                files `refused` lists as many as the profile's repair_issues, and `refused_files` counts all.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `import`, or the caller was not granted it.
            PayloadTooLarge: over the profile's import_bytes.
            StoreReadOnly, StorageFull: nothing can be written.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("chunk.import_tree", "archive", request, fields)

    if TYPE_CHECKING:

        @overload
        async def commit_transcript(
            self, request: MemoryTranscriptCommitRequest, /
        ) -> MemoryTranscriptCommitReport: ...
        @overload
        async def commit_transcript(
            self,
            /,
            *,
            conversation: Conversation | Mapping[str, Any],
            turns: Sequence[CanonicalTurnDelta | Mapping[str, Any]],
        ) -> MemoryTranscriptCommitReport: ...
        @overload
        async def commit_transcript(
            self,
            conversation: Conversation | Mapping[str, Any],
            /,
            *,
            turns: Sequence[CanonicalTurnDelta | Mapping[str, Any]],
        ) -> MemoryTranscriptCommitReport: ...

    async def commit_transcript(
        self, request: MemoryTranscriptCommitRequest | Conversation | Mapping[str, Any] | None = None, /, **fields: Any
    ) -> MemoryTranscriptCommitReport:
        """Commit delivered turns as evidence: all of them or none.

        Args:
            conversation: a conversation within the caller's memory space (required).
            turns: the delivered turns, oldest first (required; at least 1 item; at most the profile's
                commit_turns).

        Returns:
            `turns` in the order of the request.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `transcript`, or the caller was not granted it.
            PayloadTooLarge: over the profile's message_content_bytes, host_refs_per_turn, commit_turns.
            StoreBudgetExceeded: the store is at its ceiling.
            StoreReadOnly, StorageFull: nothing can be written.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("transcript.commit", "conversation", request, fields)

    if TYPE_CHECKING:

        @overload
        async def replay_transcript(
            self, request: MemoryTranscriptReplayRequest, /
        ) -> MemoryTranscriptReplayReport: ...
        @overload
        async def replay_transcript(
            self,
            /,
            *,
            conversation: Conversation | Mapping[str, Any],
            view: ViewName,
            limit: int = 50,
            cursor: str | None = None,
        ) -> MemoryTranscriptReplayReport: ...
        @overload
        async def replay_transcript(
            self,
            conversation: Conversation | Mapping[str, Any],
            /,
            *,
            view: ViewName,
            limit: int = 50,
            cursor: str | None = None,
        ) -> MemoryTranscriptReplayReport: ...

    async def replay_transcript(
        self, request: MemoryTranscriptReplayRequest | Conversation | Mapping[str, Any] | None = None, /, **fields: Any
    ) -> MemoryTranscriptReplayReport:
        """Read a conversation's turns in sequence order through one view.

        Args:
            conversation: a conversation within the caller's memory space (required).
            view: view that filters the report; one that the caller is allowed to use (required).
            limit: maximum number; clipped to the profile's limit (default 50; at least 1; clipped at the profile's
                transcript_page_turns).
            cursor: next_cursor of the previous page (default None; at least 1 character; at most 1,024 characters).

        Returns:
            A page of turns in sequence order.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `transcript`, or the caller was not granted it.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("transcript.replay", "conversation", request, fields)

    if TYPE_CHECKING:

        @overload
        async def export_transcript(
            self, request: MemoryTranscriptExportRequest, /
        ) -> MemoryTranscriptExportReport: ...
        @overload
        async def export_transcript(
            self,
            /,
            *,
            conversation: Conversation | Mapping[str, Any],
            view: Literal["export"] = "export",
            include_private: bool = False,
            limit: int = 50,
            cursor: str | None = None,
        ) -> MemoryTranscriptExportReport: ...
        @overload
        async def export_transcript(
            self,
            conversation: Conversation | Mapping[str, Any],
            /,
            *,
            view: Literal["export"] = "export",
            include_private: bool = False,
            limit: int = 50,
            cursor: str | None = None,
        ) -> MemoryTranscriptExportReport: ...

    async def export_transcript(
        self, request: MemoryTranscriptExportRequest | Conversation | Mapping[str, Any] | None = None, /, **fields: Any
    ) -> MemoryTranscriptExportReport:
        """Read a conversation's exportable turns in sequence order.

        Args:
            conversation: a conversation within the caller's memory space (required).
            view: the export view, which is the only one (default export).
            include_private: include private and soul material; needs the view raw_owner and the capability
                private.read (default False).
            limit: maximum number; clipped to the profile's limit (default 50; at least 1; clipped at the profile's
                transcript_page_turns).
            cursor: next_cursor of the previous page (default None; at least 1 character; at most 1,024 characters).

        Returns:
            A page of turns in sequence order, and whether private material was asked for.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `transcript`, or the caller was not granted it.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("transcript.export", "conversation", request, fields)

    if TYPE_CHECKING:

        @overload
        async def list_conversations(
            self, request: MemoryTranscriptConversationsRequest, /
        ) -> MemoryTranscriptConversationsReport: ...
        @overload
        async def list_conversations(
            self,
            /,
            *,
            query: str | None = None,
            since: datetime | str | None = None,
            until: datetime | str | None = None,
            limit: int = 50,
            cursor: str | None = None,
        ) -> MemoryTranscriptConversationsReport: ...
        @overload
        async def list_conversations(
            self,
            query: str | None,
            /,
            *,
            since: datetime | str | None = None,
            until: datetime | str | None = None,
            limit: int = 50,
            cursor: str | None = None,
        ) -> MemoryTranscriptConversationsReport: ...

    async def list_conversations(
        self, request: MemoryTranscriptConversationsRequest | str | None | None = None, /, **fields: Any
    ) -> MemoryTranscriptConversationsReport:
        """List the conversations of the space, the most recently begun first.

        Args:
            query: part of a conversation's or channel's id (default None; at least 1 character; at most 256
                characters).
            since: with a turn at or after this time (default None).
            until: with a turn at or before this time (default None).
            limit: maximum number; clipped to the profile's limit (default 50; at least 1; clipped at the profile's
                page_limit).
            cursor: next_cursor of the previous page (default None; at least 1 character; at most 1,024 characters).

        Returns:
            A page of conversations, the most recently begun first.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `transcript`, or the caller was not granted it.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("transcript.conversations", "query", request, fields)

    if TYPE_CHECKING:

        @overload
        async def transcript_timeline(
            self, request: MemoryTranscriptTimelineRequest, /
        ) -> MemoryTranscriptTimelineReport: ...
        @overload
        async def transcript_timeline(
            self,
            /,
            *,
            conversation: Conversation | Mapping[str, Any],
            view: ViewName,
            anchor: Literal["latest"] | TimelineAnchor | Mapping[str, Any] = "latest",
            limit: int = 50,
        ) -> MemoryTranscriptTimelineReport: ...
        @overload
        async def transcript_timeline(
            self,
            conversation: Conversation | Mapping[str, Any],
            /,
            *,
            view: ViewName,
            anchor: Literal["latest"] | TimelineAnchor | Mapping[str, Any] = "latest",
            limit: int = 50,
        ) -> MemoryTranscriptTimelineReport: ...

    async def transcript_timeline(
        self,
        request: MemoryTranscriptTimelineRequest | Conversation | Mapping[str, Any] | None = None,
        /,
        **fields: Any,
    ) -> MemoryTranscriptTimelineReport:
        """One page of a conversation, placed by sequence or time; turns come in sequence order.

        Args:
            conversation: a conversation within the caller's memory space (required).
            view: view that filters the report; one that the caller is allowed to use (required).
            anchor: latest, or {before|after|around: sequence}, {at: time}, {first_in: {from, to}}, {turn: its id}
                (default latest).
            limit: maximum number; clipped to the profile's limit (default 50; at least 1; clipped at the profile's
                transcript_page_turns).

        Returns:
            `has_before` and `has_after` say whether there are turns before and after this page.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `transcript`, or the caller was not granted it.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("transcript.timeline", "conversation", request, fields)

    if TYPE_CHECKING:

        @overload
        async def search_transcript(
            self, request: MemoryTranscriptSearchRequest, /
        ) -> MemoryTranscriptSearchReport: ...
        @overload
        async def search_transcript(
            self,
            /,
            *,
            query: str,
            view: ViewName,
            conversation: Conversation | Mapping[str, Any] | None = None,
            since: datetime | str | None = None,
            until: datetime | str | None = None,
            limit: int = 8,
            neighbours: bool = False,
        ) -> MemoryTranscriptSearchReport: ...
        @overload
        async def search_transcript(
            self,
            query: str,
            /,
            *,
            view: ViewName,
            conversation: Conversation | Mapping[str, Any] | None = None,
            since: datetime | str | None = None,
            until: datetime | str | None = None,
            limit: int = 8,
            neighbours: bool = False,
        ) -> MemoryTranscriptSearchReport: ...

    async def search_transcript(
        self, request: MemoryTranscriptSearchRequest | str | None = None, /, **fields: Any
    ) -> MemoryTranscriptSearchReport:
        """Search messages by their words, through a view that may see them.

        Every hit holds words of the query, unless `neighbours` asks for adjacent messages too.

        Args:
            query: words to look for (required; at least 1 character; not blank; at most the profile's query_chars).
            view: view that filters the report; one that the caller is allowed to use (required).
            conversation: a conversation within the caller's memory space (default None).
            since: not before (default None).
            until: not after (default None).
            limit: maximum number; clipped to the profile's limit (default 8; at least 1; clipped at the profile's
                recall_limit).
            neighbours: also messages that are only adjacent to a hit (default False).

        Returns:
            Hits that the view may see, best first.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `transcript`, or the caller was not granted it.
            PayloadTooLarge: over the profile's query_chars.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("transcript.search", "query", request, fields)

    if TYPE_CHECKING:

        @overload
        async def request_transcript_lifecycle(
            self, request: MemoryTranscriptLifecycleRequest, /
        ) -> MemoryTranscriptLifecycleReport: ...
        @overload
        async def request_transcript_lifecycle(
            self,
            /,
            *,
            conversation: Conversation | Mapping[str, Any],
            action: Literal["archive", "mask", "unmask", "delete_raw", "review"],
            reason: str,
            turn_ids: Sequence[str] | None = None,
            before: datetime | str | None = None,
            dry_run: bool = False,
        ) -> MemoryTranscriptLifecycleReport: ...
        @overload
        async def request_transcript_lifecycle(
            self,
            conversation: Conversation | Mapping[str, Any],
            /,
            *,
            action: Literal["archive", "mask", "unmask", "delete_raw", "review"],
            reason: str,
            turn_ids: Sequence[str] | None = None,
            before: datetime | str | None = None,
            dry_run: bool = False,
        ) -> MemoryTranscriptLifecycleReport: ...

    async def request_transcript_lifecycle(
        self,
        request: MemoryTranscriptLifecycleRequest | Conversation | Mapping[str, Any] | None = None,
        /,
        **fields: Any,
    ) -> MemoryTranscriptLifecycleReport:
        """Archive, mask, unmask or raw-delete turns, or report what that would change (`dry_run`).

        Args:
            conversation: a conversation within the caller's memory space (required).
            action: action to take on the turns (required).
            turn_ids: these turns (default None; each: at least 1 character; each: at most 256 characters; each: no
                control characters; at least 1 item; at most the profile's commit_turns).
            before: every turn that is older than this (default None).
            reason: reason; stored in the lifecycle record (required; at least 1 character; at most 512 characters).
            dry_run: report what would change; change nothing (default False).

        Returns:
            What a lifecycle step touched. `changed` false means that nothing matched or nothing was left to do. The
                counts (`affected_…`) are of all of it; a list ends at its budget. `erasure` is `done` once no byte
                of the content is left in database and WAL, `pending` while a reader holds an old snapshot or an
                import of chunk files into the space runs, and None where nothing was erased. `replica_horizon` is
                the time of the newest copy of the store that may hold it still, in a snapshot or set aside by a
                restore: when every copy up to then is pruned, it is nowhere. None where there is no copy.
                `copies_until` is when the last such copy will have been removed by the schedule and the policy of
                snapshots; None where one stays until somebody removes it. `replicated_until` is until when the
                replica holds what was erased so far, if its sidecar reaches it; `replication.forget` removes it at
                once. A time that has passed is reported until nothing is found left. None where no replica holds
                any of it.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `transcript`, or the caller was not granted it.
            PayloadTooLarge: over the profile's commit_turns.
            StoreReadOnly, StorageFull: nothing can be written.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("transcript.lifecycle", "conversation", request, fields)

    if TYPE_CHECKING:

        @overload
        async def repair_transcript(
            self, request: MemoryTranscriptRepairRequest, /
        ) -> MemoryTranscriptRepairReport: ...
        @overload
        async def repair_transcript(
            self,
            /,
            *,
            conversation: Conversation | Mapping[str, Any] | None = None,
            limit: int = 50,
            cursor: str | None = None,
        ) -> MemoryTranscriptRepairReport: ...
        @overload
        async def repair_transcript(
            self,
            conversation: Conversation | Mapping[str, Any] | None,
            /,
            *,
            limit: int = 50,
            cursor: str | None = None,
        ) -> MemoryTranscriptRepairReport: ...

    async def repair_transcript(
        self,
        request: MemoryTranscriptRepairRequest | Conversation | Mapping[str, Any] | None | None = None,
        /,
        **fields: Any,
    ) -> MemoryTranscriptRepairReport:
        """Report broken links and records of transcripts, by their ids; changes nothing.

        Args:
            conversation: a conversation within the caller's memory space (default None).
            limit: maximum number; clipped to the profile's limit (default 50; at least 1; clipped at the profile's
                repair_issues).
            cursor: next_cursor of the previous page (default None; at least 1 character; at most 1,024 characters).

        Returns:
            A page of issues. `counts` has every kind, over all pages; `clean` when all of them are 0.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `transcript`, or the caller was not granted it.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("transcript.repair", "conversation", request, fields)

    if TYPE_CHECKING:

        @overload
        async def repair_transcript_safe(
            self, request: MemoryTranscriptRepairSafeRequest, /
        ) -> MemoryTranscriptRepairSafeReport: ...
        @overload
        async def repair_transcript_safe(
            self,
            /,
            *,
            conversation: Conversation | Mapping[str, Any] | None = None,
            dry_run: bool = False,
        ) -> MemoryTranscriptRepairSafeReport: ...
        @overload
        async def repair_transcript_safe(
            self,
            conversation: Conversation | Mapping[str, Any] | None,
            /,
            *,
            dry_run: bool = False,
        ) -> MemoryTranscriptRepairSafeReport: ...

    async def repair_transcript_safe(
        self,
        request: MemoryTranscriptRepairSafeRequest | Conversation | Mapping[str, Any] | None | None = None,
        /,
        **fields: Any,
    ) -> MemoryTranscriptRepairSafeReport:
        """Repair dead links, counts and index rows without losing data; report the damage that cannot be repaired.

        Args:
            conversation: a conversation within the caller's memory space (default None).
            dry_run: report what would be repaired; change nothing (default False).

        Returns:
            `mended` in the order of transcript.repair; `counts` by outcome; `left` is what no safe step mends, by
                kind. At most the profile's `repair_issues` are mended at a time: with `has_more`, ask again.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `transcript`, or the caller was not granted it.
            StoreBudgetExceeded: the store is at its ceiling.
            StoreReadOnly, StorageFull: nothing can be written.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("transcript.repair_safe", "conversation", request, fields)

    if TYPE_CHECKING:

        @overload
        async def capture_turn(self, request: MemoryCaptureTurnRequest, /) -> MemoryCaptureTurnReport: ...
        @overload
        async def capture_turn(
            self,
            /,
            *,
            host_session_id: str,
            host_turn_index: int,
            role: Literal["user", "assistant", "tool_use", "tool_result", "system", "other"],
            content: str,
            host_kind: str | None = None,
            host_version: str | None = None,
            tool_calls: Sequence[ToolCallSummary | Mapping[str, Any]] | None = None,
            timestamp_iso: datetime | str | None = None,
            host_signature_b64: str | None = None,
            host_pubkey_b64: str | None = None,
            namespace: str | None = None,
            metadata: Mapping[str, Any] | None = None,
        ) -> MemoryCaptureTurnReport: ...
        @overload
        async def capture_turn(
            self,
            host_session_id: str,
            /,
            *,
            host_turn_index: int,
            role: Literal["user", "assistant", "tool_use", "tool_result", "system", "other"],
            content: str,
            host_kind: str | None = None,
            host_version: str | None = None,
            tool_calls: Sequence[ToolCallSummary | Mapping[str, Any]] | None = None,
            timestamp_iso: datetime | str | None = None,
            host_signature_b64: str | None = None,
            host_pubkey_b64: str | None = None,
            namespace: str | None = None,
            metadata: Mapping[str, Any] | None = None,
        ) -> MemoryCaptureTurnReport: ...

    async def capture_turn(
        self, request: MemoryCaptureTurnRequest | str | None = None, /, **fields: Any
    ) -> MemoryCaptureTurnReport:
        """Keep one turn of a host's session as evidence, once: (host_session_id, host_turn_index) names it.

        The session is a conversation whose channel is `host_kind`.

        Args:
            host_session_id: the host's id of the session; the same for all of its turns (required; at least 1
                character; at most 256 characters; no control characters).
            host_turn_index: number of the turn in its session, from 0; any order, gaps allowed (required; at least
                0; at most 9,223,372,036,854,775,807).
            role: role of the speaker (required).
            content: the text; stored byte for byte, may be empty (required; at most the profile's
                message_content_bytes).
            host_kind: what the host is; default: `unknown` (default None; at least 1 character; at most 256
                characters; no control characters).
            host_version: version of the host (default None; at most 256 characters; no control characters).
            tool_calls: tools that the turn calls, in order (default None; at most 128 items).
            timestamp_iso: when the turn was; default: now (default None).
            host_signature_b64: Ed25519 signature of session, index in decimal, role and content, joined by one zero
                byte (default None; at least 1 character; at most 256 characters; no control characters).
            host_pubkey_b64: the enrolled key of the signature, 32 bytes; with it or not at all (default None; at
                least 1 character; at most 256 characters; no control characters).
            namespace: label of the turn, such as `team/api`; never a memory space (default None; at least 1
                character; at most 512 characters; no control characters).
            metadata: values that the host keeps with the turn, any JSON object of 65,536 bytes at most (default
                None).

        Returns:
            `memory_id` is the ref of the turn's message. `dedup_hit`: the turn existed already, and nothing was
                written. `content_mismatch`: the existing turn has another role, content or tool calls; the first
                ones stay. It is false where the caller may not see them. `memory_deleted`: the content of the turn
                was deleted, and stays so. `elapsed_ms` is the time that the runtime took.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `capture`, or the caller was not granted it.
            PayloadTooLarge: over the profile's message_content_bytes.
            StoreBudgetExceeded: the store is at its ceiling.
            StoreReadOnly, StorageFull: nothing can be written.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("turn.capture", "host_session_id", request, fields)

    if TYPE_CHECKING:

        @overload
        async def host_coverage(self, request: HostCoverageRequest, /) -> HostCoverageReport: ...
        @overload
        async def host_coverage(
            self,
            /,
            *,
            host_kind: str | None = None,
            host_session_id: str | None = None,
            limit: int = 50,
        ) -> HostCoverageReport: ...
        @overload
        async def host_coverage(
            self,
            host_kind: str | None,
            /,
            *,
            host_session_id: str | None = None,
            limit: int = 50,
        ) -> HostCoverageReport: ...

    async def host_coverage(
        self, request: HostCoverageRequest | str | None | None = None, /, **fields: Any
    ) -> HostCoverageReport:
        """Report what each host has captured: turns, gaps, duplicates, signatures, versions.

        Args:
            host_kind: this host kind only (default None; at least 1 character; at most 256 characters; no control
                characters).
            host_session_id: this session only (default None; at least 1 character; at most 256 characters; no
                control characters).
            limit: most sessions with gaps to list (default 50; at least 1; clipped at the profile's page_limit).

        Returns:
            `hosts` by host kind; `incomplete` are the sessions with the most gaps; `has_more`: there are more of
                those.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `capture`, or the caller was not granted it.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("host.coverage", "host_kind", request, fields)

    if TYPE_CHECKING:

        @overload
        async def enroll_host_key(self, request: HostKeyEnrollRequest, /) -> HostKeyReport: ...
        @overload
        async def enroll_host_key(
            self,
            /,
            *,
            host_pubkey_b64: str,
            label: str,
            host_kind: str | None = None,
        ) -> HostKeyReport: ...
        @overload
        async def enroll_host_key(
            self,
            host_pubkey_b64: str,
            /,
            *,
            label: str,
            host_kind: str | None = None,
        ) -> HostKeyReport: ...

    async def enroll_host_key(
        self, request: HostKeyEnrollRequest | str | None = None, /, **fields: Any
    ) -> HostKeyReport:
        """Let a host sign the turns that it captures into this memory space.

        Args:
            host_pubkey_b64: the Ed25519 public key: 32 bytes in padded base64 (required; at least 1 character; at
                most 256 characters; no control characters).
            label: what people call the host (required; at least 1 character; at most 256 characters; no control
                characters).
            host_kind: the key signs turns of this host kind only (default None; at least 1 character; at most 256
                characters; no control characters).

        Returns:
            The key as it is now; `changed` in `lifecycle` says whether anything was written.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `host_key`, or the caller was not granted it.
            StoreReadOnly, StorageFull: nothing can be written.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("host_key.enroll", "host_pubkey_b64", request, fields)

    if TYPE_CHECKING:

        @overload
        async def revoke_host_key(self, request: HostKeyRevokeRequest, /) -> HostKeyReport: ...
        @overload
        async def revoke_host_key(
            self,
            /,
            *,
            host_key: str,
        ) -> HostKeyReport: ...
        @overload
        async def revoke_host_key(
            self,
            host_key: str,
            /,
        ) -> HostKeyReport: ...

    async def revoke_host_key(
        self, request: HostKeyRevokeRequest | str | None = None, /, **fields: Any
    ) -> HostKeyReport:
        """Refuse what a key signs from now on; turns that it signed stay.

        A revoked key is never enrolled again.

        Args:
            host_key: the key's fingerprint, or the key in base64 (required; at least 1 character; at most 256
                characters; no control characters).

        Returns:
            The key as it is now; `changed` in `lifecycle` says whether anything was written.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `host_key`, or the caller was not granted it.
            StoreReadOnly, StorageFull: nothing can be written.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("host_key.revoke", "host_key", request, fields)

    if TYPE_CHECKING:

        @overload
        async def list_host_keys(self, request: HostKeyListRequest, /) -> HostKeyListReport: ...
        @overload
        async def list_host_keys(
            self,
            /,
            *,
            host_kind: str | None = None,
            include_revoked: bool = True,
            limit: int = 50,
            cursor: str | None = None,
        ) -> HostKeyListReport: ...
        @overload
        async def list_host_keys(
            self,
            host_kind: str | None,
            /,
            *,
            include_revoked: bool = True,
            limit: int = 50,
            cursor: str | None = None,
        ) -> HostKeyListReport: ...

    async def list_host_keys(
        self, request: HostKeyListRequest | str | None | None = None, /, **fields: Any
    ) -> HostKeyListReport:
        """List the keys of capturing hosts, in the order in which they were added.

        Args:
            host_kind: keys that sign turns of this host kind (default None; at least 1 character; at most 256
                characters; no control characters).
            include_revoked: also revoked keys (default True).
            limit: maximum number; clipped to the profile's limit (default 50; at least 1; clipped at the profile's
                page_limit).
            cursor: next_cursor of the previous page (default None; at least 1 character; at most 1,024 characters).

        Returns:
            A page of keys.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `host_key`, or the caller was not granted it.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("host_key.list", "host_kind", request, fields)

    if TYPE_CHECKING:

        @overload
        async def ingest_event(self, request: EventIngestRequest, /) -> EventIngestReport: ...
        @overload
        async def ingest_event(
            self,
            /,
            *,
            event: Event | Mapping[str, Any],
        ) -> EventIngestReport: ...
        @overload
        async def ingest_event(
            self,
            event: Event | Mapping[str, Any],
            /,
        ) -> EventIngestReport: ...

    async def ingest_event(
        self, request: EventIngestRequest | Event | Mapping[str, Any] | None = None, /, **fields: Any
    ) -> EventIngestReport:
        """Keep one event as evidence, once: what its id names already stays as it came first.

        Args:
            event: the event (required).

        Returns:
            `created` false: an event of this id existed already, and nothing was written.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `event`, or the caller was not granted it.
            PayloadTooLarge: over the profile's message_content_bytes.
            StoreBudgetExceeded: the store is at its ceiling.
            StoreReadOnly, StorageFull: nothing can be written.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("event.ingest", "event", request, fields)

    if TYPE_CHECKING:

        @overload
        async def event_range(self, request: EventRangeRequest, /) -> EventRangeReport: ...
        @overload
        async def event_range(
            self,
            /,
            *,
            from_timestamp_ms: int,
            to_timestamp_ms: int,
            limit: int = 50,
            cursor: str | None = None,
        ) -> EventRangeReport: ...
        @overload
        async def event_range(
            self,
            from_timestamp_ms: int,
            /,
            *,
            to_timestamp_ms: int,
            limit: int = 50,
            cursor: str | None = None,
        ) -> EventRangeReport: ...

    async def event_range(self, request: EventRangeRequest | int | None = None, /, **fields: Any) -> EventRangeReport:
        """Read what was said between two times, in the order of (timestamp_ms, event_id); both ends are included.

        Turns that came in by other ways are events too: their ids are refs. They precede ingested events of the same
        millisecond.

        Args:
            from_timestamp_ms: from then on, milliseconds since the epoch (required; at least -62,135,596,800,000;
                at most 253,402,300,799,999).
            to_timestamp_ms: until then, included (required; at least -62,135,596,800,000; at most
                253,402,300,799,999).
            limit: maximum number; 0 or less: 50 (default 50; clipped at the profile's page_limit).
            cursor: next_cursor of the previous page (default None; at least 1 character; at most 1,024 characters).

        Returns:
            A page of events in order of time.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `event`, or the caller was not granted it.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("event.range", "from_timestamp_ms", request, fields)

    if TYPE_CHECKING:

        @overload
        async def list_agents(self, request: AgentListRequest, /) -> AgentListReport: ...
        @overload
        async def list_agents(
            self,
            /,
            *,
            limit: int = 50,
        ) -> AgentListReport: ...
        @overload
        async def list_agents(
            self,
            limit: int,
            /,
        ) -> AgentListReport: ...

    async def list_agents(self, request: AgentListRequest | int | None = None, /, **fields: Any) -> AgentListReport:
        """List the agents that evidence came from, with what each brought.

        The one that was heard last comes first. Events that name no agent count for none.

        Args:
            limit: maximum number; clipped to the profile's limit (default 50; at least 1; clipped at the profile's
                page_limit).

        Returns:
            Live events alone that the view shows. `has_more`: there are more agents than `limit`.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `event`, or the caller was not granted it.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("agent.list", "limit", request, fields)

    if TYPE_CHECKING:

        @overload
        async def agent_activity(self, request: AgentActivityRequest, /) -> AgentActivityReport: ...
        @overload
        async def agent_activity(
            self,
            /,
            *,
            bucket: Literal["day", "week"] = "day",
            agent_id: str | None = None,
            from_ms: int | None = None,
            to_ms: int | None = None,
            limit: int = 1000,
        ) -> AgentActivityReport: ...
        @overload
        async def agent_activity(
            self,
            agent_id: str | None,
            /,
            *,
            bucket: Literal["day", "week"] = "day",
            from_ms: int | None = None,
            to_ms: int | None = None,
            limit: int = 1000,
        ) -> AgentActivityReport: ...

    async def agent_activity(
        self, request: AgentActivityRequest | str | None | None = None, /, **fields: Any
    ) -> AgentActivityReport:
        """Count the events of agents by day or week.

        In UTC; weeks begin on Monday.

        Args:
            bucket: what is counted together (default day).
            agent_id: this agent only (default None; at least 1 character; at most 256 characters; no control
                characters).
            from_ms: from then on, milliseconds since the epoch; default: 30 days ago (default None; at least
                -62,135,596,800,000; at most 253,402,300,799,999).
            to_ms: until then, included; default: now (default None; at least -62,135,596,800,000; at most
                253,402,300,799,999).
            limit: maximum number of buckets, the first ones (default 1000; at least 1; clipped at the profile's
                page_limit).

        Returns:
            Buckets in order of time, then of agents; those without an event are left out.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `event`, or the caller was not granted it.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("agent.activity", "agent_id", request, fields)

    if TYPE_CHECKING:

        @overload
        async def start_episode(self, request: EpisodeStartRequest, /) -> EpisodeStartReport: ...
        @overload
        async def start_episode(
            self,
            /,
            *,
            task: str,
            plan: Sequence[str] = ...,
            agent_id: str | None = None,
        ) -> EpisodeStartReport: ...
        @overload
        async def start_episode(
            self,
            task: str,
            /,
            *,
            plan: Sequence[str] = ...,
            agent_id: str | None = None,
        ) -> EpisodeStartReport: ...

    async def start_episode(
        self, request: EpisodeStartRequest | str | None = None, /, **fields: Any
    ) -> EpisodeStartReport:
        """Begin an episode: a task that an agent works at.

        It is kept as a conversation of the channel `episode`.

        Args:
            task: what is to be done (required; at least 1 character; not blank; at most the profile's
                message_content_bytes).
            plan: the steps that are planned (default (); each: at least 1 character; each: not blank; each: at most
                the profile's message_content_bytes; at most 100 items).
            agent_id: who works at it; default: the scope's agent (default None; at least 1 character; at most 256
                characters; no control characters).

        Returns:
            The new episode's id.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `event`, or the caller was not granted it.
            PayloadTooLarge: over the profile's message_content_bytes.
            StoreBudgetExceeded: the store is at its ceiling.
            StoreReadOnly, StorageFull: nothing can be written.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("episode.start", "task", request, fields)

    if TYPE_CHECKING:

        @overload
        async def record_action(self, request: EpisodeRecordRequest, /) -> EpisodeRecordReport: ...
        @overload
        async def record_action(
            self,
            /,
            *,
            episode_id: str,
            action: EpisodeAction | Mapping[str, Any],
        ) -> EpisodeRecordReport: ...
        @overload
        async def record_action(
            self,
            episode_id: str,
            /,
            *,
            action: EpisodeAction | Mapping[str, Any],
        ) -> EpisodeRecordReport: ...

    async def record_action(
        self, request: EpisodeRecordRequest | str | None = None, /, **fields: Any
    ) -> EpisodeRecordReport:
        """Add an action to an episode that has not ended.

        Args:
            episode_id: the episode's id, as `episode.start` gave it (required; at least 1 character; at most 256
                characters; no control characters).
            action: the action (required).

        Returns:
            `action_count` is how many actions the episode has now.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `event`, or the caller was not granted it.
            PayloadTooLarge: over the profile's message_content_bytes.
            StoreBudgetExceeded: the store is at its ceiling.
            StoreReadOnly, StorageFull: nothing can be written.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("episode.record", "episode_id", request, fields)

    if TYPE_CHECKING:

        @overload
        async def complete_episode(self, request: EpisodeCompleteRequest, /) -> EpisodeCompleteReport: ...
        @overload
        async def complete_episode(
            self,
            /,
            *,
            episode_id: str,
            outcome_score: float = 0.0,
            failed: bool = False,
            lessons_learned: Sequence[str] = ...,
            failure_modes: Sequence[str] = ...,
        ) -> EpisodeCompleteReport: ...
        @overload
        async def complete_episode(
            self,
            episode_id: str,
            /,
            *,
            outcome_score: float = 0.0,
            failed: bool = False,
            lessons_learned: Sequence[str] = ...,
            failure_modes: Sequence[str] = ...,
        ) -> EpisodeCompleteReport: ...

    async def complete_episode(
        self, request: EpisodeCompleteRequest | str | None = None, /, **fields: Any
    ) -> EpisodeCompleteReport:
        """End an episode with its outcome and what was learned.

        Args:
            episode_id: the episode's id, as `episode.start` gave it (required; at least 1 character; at most 256
                characters; no control characters).
            outcome_score: 0: all went wrong, 1: all went well (default 0.0; at least 0; at most 1).
            failed: whether the task failed (default False).
            lessons_learned: what to do the next time (default (); each: at least 1 character; each: not blank;
                each: at most the profile's message_content_bytes; at most 100 items).
            failure_modes: what went wrong, and how (default (); each: at least 1 character; each: not blank; each:
                at most the profile's message_content_bytes; at most 100 items).

        Returns:
            `value_score` is highest, 1, for an outcome of 0.65: what went neither by itself nor wholly wrong
                teaches most. `episodes_pruned` is 0: none is removed but by `transcript.lifecycle` and
                `memory.forget`.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `event`, or the caller was not granted it.
            PayloadTooLarge: over the profile's message_content_bytes.
            StoreBudgetExceeded: the store is at its ceiling.
            StoreReadOnly, StorageFull: nothing can be written.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("episode.complete", "episode_id", request, fields)

    if TYPE_CHECKING:

        @overload
        async def similar_episodes(self, request: EpisodeSimilarRequest, /) -> EpisodeSimilarReport: ...
        @overload
        async def similar_episodes(
            self,
            /,
            *,
            query: str,
            limit: int = 5,
            min_score: float = 0.0,
        ) -> EpisodeSimilarReport: ...
        @overload
        async def similar_episodes(
            self,
            query: str,
            /,
            *,
            limit: int = 5,
            min_score: float = 0.0,
        ) -> EpisodeSimilarReport: ...

    async def similar_episodes(
        self, request: EpisodeSimilarRequest | str | None = None, /, **fields: Any
    ) -> EpisodeSimilarReport:
        """Find episodes whose task, lessons or failure modes have the words of a query, best first.

        Args:
            query: words to look for (required; at least 1 character; not blank; at most the profile's query_chars).
            limit: maximum number; clipped to the profile's limit (default 5; at least 1; clipped at the profile's
                page_limit).
            min_score: least share of the query's words (default 0.0; at least 0; at most 1).

        Returns:
            The newest 1,000 episodes are looked through.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `recall`, or the caller was not granted it.
            PayloadTooLarge: over the profile's query_chars.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("episode.similar", "query", request, fields)

    if TYPE_CHECKING:

        @overload
        async def toc_root(self, request: TocRootRequest, /) -> TocRootReport: ...
        @overload
        async def toc_root(
            self,
            /,
            *,
            limit: int = 50,
            cursor: str | None = None,
        ) -> TocRootReport: ...
        @overload
        async def toc_root(
            self,
            limit: int,
            /,
            *,
            cursor: str | None = None,
        ) -> TocRootReport: ...

    async def toc_root(self, request: TocRootRequest | int | None = None, /, **fields: Any) -> TocRootReport:
        """List the years of the table of contents, newest first.

        Args:
            limit: maximum number; clipped to the profile's limit (default 50; at least 1; clipped at the profile's
                page_limit).
            cursor: next_cursor of the previous page (default None; at least 1 character; at most 1,024 characters).

        Returns:
            Years that hold evidence, newest first.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `toc`, or the caller was not granted it.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("toc.root", "limit", request, fields)

    if TYPE_CHECKING:

        @overload
        async def toc_node(self, request: TocNodeRequest, /) -> TocNodeReport: ...
        @overload
        async def toc_node(
            self,
            /,
            *,
            node_id: str,
        ) -> TocNodeReport: ...
        @overload
        async def toc_node(
            self,
            node_id: str,
            /,
        ) -> TocNodeReport: ...

    async def toc_node(self, request: TocNodeRequest | str | None = None, /, **fields: Any) -> TocNodeReport:
        """Show one node of the table of contents: a year, month, week, day or segment.

        Args:
            node_id: id of a node: toc:year:2026, toc:week:2026-W05, … (required; at least 1 character; at most 256
                characters).

        Returns:
            `node` is null where there is none of that id.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `toc`, or the caller was not granted it.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("toc.node", "node_id", request, fields)

    if TYPE_CHECKING:

        @overload
        async def toc_browse(self, request: TocBrowseRequest, /) -> TocBrowseReport: ...
        @overload
        async def toc_browse(
            self,
            /,
            *,
            parent_id: str,
            limit: int = 20,
            continuation_token: str | None = None,
        ) -> TocBrowseReport: ...
        @overload
        async def toc_browse(
            self,
            parent_id: str,
            /,
            *,
            limit: int = 20,
            continuation_token: str | None = None,
        ) -> TocBrowseReport: ...

    async def toc_browse(self, request: TocBrowseRequest | str | None = None, /, **fields: Any) -> TocBrowseReport:
        """List the children of a node in order of time: months of a year, weeks, days, segments.

        Args:
            parent_id: id of a node: toc:year:2026, toc:week:2026-W05, … (required; at least 1 character; at most
                256 characters).
            limit: maximum number; 0 or less: 20 (default 20; clipped at the profile's page_limit).
            continuation_token: continuation_token of the previous page; anything else starts at the first (default
                None; at most 64 characters).

        Returns:
            A page of children; none where the parent is unknown. `continuation_token` is present with `has_more`
                alone.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `toc`, or the caller was not granted it.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("toc.browse", "parent_id", request, fields)

    if TYPE_CHECKING:

        @overload
        async def toc_search_node(self, request: TocSearchNodeRequest, /) -> TocSearchNodeReport: ...
        @overload
        async def toc_search_node(
            self,
            /,
            *,
            node_id: str,
            query: str,
            fields: Sequence[Literal["title", "summary", "bullets", "keywords"]] = ...,
            limit: int = 10,
        ) -> TocSearchNodeReport: ...
        @overload
        async def toc_search_node(
            self,
            node_id: str,
            /,
            *,
            query: str,
            fields: Sequence[Literal["title", "summary", "bullets", "keywords"]] = ...,
            limit: int = 10,
        ) -> TocSearchNodeReport: ...

    async def toc_search_node(
        self, request: TocSearchNodeRequest | str | None = None, /, **fields: Any
    ) -> TocSearchNodeReport:
        """Find the title, summary, bullets and keywords of one node that match a query, best first.

        Args:
            node_id: id of a node: toc:year:2026, toc:week:2026-W05, … (required; at least 1 character; at most 256
                characters).
            query: words to look for (required; at least 1 character; not blank; at most the profile's query_chars).
            fields: only these fields; none: all of them (default (); at most 4 items).
            limit: maximum number; 0 or less: 10 (default 10; clipped at the profile's page_limit).

        Returns:
            `matched` says whether anything did.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `toc`, or the caller was not granted it.
            PayloadTooLarge: over the profile's query_chars.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("toc.search_node", "node_id", request, fields)

    if TYPE_CHECKING:

        @overload
        async def toc_search_children(self, request: TocSearchChildrenRequest, /) -> TocSearchChildrenReport: ...
        @overload
        async def toc_search_children(
            self,
            /,
            *,
            query: str,
            parent_id: str | None = None,
            child_level: Literal["year", "month", "week", "day", "segment"] | None = None,
            limit: int = 10,
        ) -> TocSearchChildrenReport: ...
        @overload
        async def toc_search_children(
            self,
            query: str,
            /,
            *,
            parent_id: str | None = None,
            child_level: Literal["year", "month", "week", "day", "segment"] | None = None,
            limit: int = 10,
        ) -> TocSearchChildrenReport: ...

    async def toc_search_children(
        self, request: TocSearchChildrenRequest | str | None = None, /, **fields: Any
    ) -> TocSearchChildrenReport:
        """Find the children of a node, or the nodes of a level, whose events recall finds for a query, best first.

        Args:
            query: words to look for (required; at least 1 character; not blank; at most the profile's query_chars).
            parent_id: the node; without one, years or the level (default None; at least 1 character; at most 256
                characters).
            child_level: level of the nodes; default: the one below the parent, or years (default None).
            limit: maximum number; 0 or less: 10 (default 10; clipped at the profile's page_limit).

        Returns:
            Nodes by the recall scores of their events, best first.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `toc`, or the caller was not granted it.
            PayloadTooLarge: over the profile's query_chars.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("toc.search_children", "query", request, fields)

    if TYPE_CHECKING:

        @overload
        async def expand_grip(self, request: GripExpandRequest, /) -> GripExpandReport: ...
        @overload
        async def expand_grip(
            self,
            /,
            *,
            grip_id: str,
            events_before: int = 3,
            events_after: int = 3,
        ) -> GripExpandReport: ...
        @overload
        async def expand_grip(
            self,
            grip_id: str,
            /,
            *,
            events_before: int = 3,
            events_after: int = 3,
        ) -> GripExpandReport: ...

    async def expand_grip(self, request: GripExpandRequest | str | None = None, /, **fields: Any) -> GripExpandReport:
        """Show the events that a bullet rests on, with the events of the same session before and after them.

        Args:
            grip_id: id of the grip (required; at least 1 character; at most 256 characters).
            events_before: events of the session around the excerpt; below 0 counts as 0 (default 3; clipped at the
                profile's page_limit).
            events_after: events of the session around the excerpt; below 0 counts as 0 (default 3; clipped at the
                profile's page_limit).

        Returns:
            All in the session's order of time. Without a grip of that id, null and no events.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `toc`, or the caller was not granted it.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("grip.expand", "grip_id", request, fields)

    if TYPE_CHECKING:

        @overload
        async def rebuild_toc(self, request: AdminRebuildTocRequest, /) -> AdminRebuildTocReport: ...
        @overload
        async def rebuild_toc(
            self,
            /,
            *,
            from_date: str | None = None,
            dry_run: bool = False,
        ) -> AdminRebuildTocReport: ...
        @overload
        async def rebuild_toc(
            self,
            from_date: str | None,
            /,
            *,
            dry_run: bool = False,
        ) -> AdminRebuildTocReport: ...

    async def rebuild_toc(
        self, request: AdminRebuildTocRequest | str | None | None = None, /, **fields: Any
    ) -> AdminRebuildTocReport:
        """Make the table of contents of every space anew from its events; what is as it was stays untouched.

        Args:
            from_date: from this day on, YYYY-MM-DD in UTC; default: all (default None; at least 10 characters; at
                most 10 characters).
            dry_run: count the days that would be made anew, and change nothing (default False).

        Returns:
            `days` counts days of sessions that were, or would be, made anew, `nodes` what there is now,
                `changed_nodes` those that became others, came or went.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `admin`, or the caller was not granted it.
            StoreReadOnly, StorageFull: nothing can be written.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("admin.rebuild_toc", "from_date", request, fields)

    if TYPE_CHECKING:

        @overload
        async def list_private(self, request: PrivateListRequest, /) -> PrivateListReport: ...
        @overload
        async def list_private(
            self,
            /,
            *,
            plane: Literal["private_garden", "soul_candidate"] | None = None,
            limit: int = 50,
            cursor: str | None = None,
        ) -> PrivateListReport: ...
        @overload
        async def list_private(
            self,
            plane: Literal["private_garden", "soul_candidate"] | None,
            /,
            *,
            limit: int = 50,
            cursor: str | None = None,
        ) -> PrivateListReport: ...

    async def list_private(
        self,
        request: PrivateListRequest | Literal["private_garden", "soul_candidate"] | None | None = None,
        /,
        **fields: Any,
    ) -> PrivateListReport:
        """List the private records in the order in which they were stored, without their content.

        Args:
            plane: only this part of it (default None).
            limit: maximum number; clipped to the profile's limit (default 50; at least 1; clipped at the profile's
                page_limit).
            cursor: next_cursor of the previous page (default None; at least 1 character; at most 1,024 characters).

        Returns:
            `total` counts what the request asked for, not the page.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `private.read`, or the caller was not granted it.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("private.list", "plane", request, fields)

    if TYPE_CHECKING:

        @overload
        async def get_private(self, request: PrivateGetRequest, /) -> PrivateGetReport: ...
        @overload
        async def get_private(
            self,
            /,
            *,
            record_id: str,
        ) -> PrivateGetReport: ...
        @overload
        async def get_private(
            self,
            record_id: str,
            /,
        ) -> PrivateGetReport: ...

    async def get_private(self, request: PrivateGetRequest | str | None = None, /, **fields: Any) -> PrivateGetReport:
        """Read one private record, with its content.

        Args:
            record_id: the record's id, as private.list gives it (required; at least 1 character; at most 256
                characters; no control characters).

        Returns:
            One private record. `content` is for the view raw_owner, and for no other.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `private.read`, or the caller was not granted it.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("private.get", "record_id", request, fields)

    if TYPE_CHECKING:

        @overload
        async def delete_private(self, request: PrivateDeleteRequest, /) -> PrivateDeleteReport: ...
        @overload
        async def delete_private(
            self,
            /,
            *,
            record_id: str,
            dry_run: bool = False,
        ) -> PrivateDeleteReport: ...
        @overload
        async def delete_private(
            self,
            record_id: str,
            /,
            *,
            dry_run: bool = False,
        ) -> PrivateDeleteReport: ...

    async def delete_private(
        self, request: PrivateDeleteRequest | str | None = None, /, **fields: Any
    ) -> PrivateDeleteReport:
        """Delete one private record, with the candidates that wait for it and its links to evidence.

        Args:
            record_id: the record's id, as private.list gives it (required; at least 1 character; at most 256
                characters; no control characters).
            dry_run: report what would be deleted; change nothing (default False).

        Returns:
            `waiting` counts the candidates that go with the record. `erasure` is `done` when no byte of it is left
                in the store's files, else `pending`; `replica_horizon` is the time of the newest copy of the store
                that may hold it still, None where there is none.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `private.read`, or the caller was not granted it.
            StoreReadOnly, StorageFull: nothing can be written.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("private.delete", "record_id", request, fields)

    if TYPE_CHECKING:

        @overload
        async def propose(self, request: EvolveProposeRequest, /) -> EvolveProposeReport: ...
        @overload
        async def propose(
            self,
            /,
            *,
            proposals: Sequence[Proposal | Mapping[str, Any]],
            view: ViewName | None = None,
        ) -> EvolveProposeReport: ...
        @overload
        async def propose(
            self,
            proposals: Sequence[Proposal | Mapping[str, Any]],
            /,
            *,
            view: ViewName | None = None,
        ) -> EvolveProposeReport: ...

    async def propose(
        self, request: EvolveProposeRequest | Sequence[Proposal | Mapping[str, Any]] | None = None, /, **fields: Any
    ) -> EvolveProposeReport:
        """Propose changes to skills and facts: all of them are stored, or none; nothing else changes.

        Args:
            proposals: the proposed changes (required; at least 1 item; at most the profile's batch_requests).
            view: view that filters the report; default: the caller's first view (default None).

        Returns:
            In the order of the request. `expired` counts older proposals that were not decided within the profile's
                time.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `evolve`, or the caller was not granted it.
            PayloadTooLarge: over the profile's skill_text_bytes, message_content_bytes, batch_requests.
            StoreBudgetExceeded: the store is at its ceiling.
            StoreReadOnly, StorageFull: nothing can be written.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("evolve.propose", "proposals", request, fields)

    if TYPE_CHECKING:

        @overload
        async def list_proposals(self, request: EvolveListRequest, /) -> EvolveListReport: ...
        @overload
        async def list_proposals(
            self,
            /,
            *,
            state: Literal["open", "submitted", "refused", "dropped"] | Literal["all"] = "open",
            view: ViewName | None = None,
            limit: int = 50,
            cursor: str | None = None,
        ) -> EvolveListReport: ...
        @overload
        async def list_proposals(
            self,
            state: Literal["open", "submitted", "refused", "dropped"] | Literal["all"],
            /,
            *,
            view: ViewName | None = None,
            limit: int = 50,
            cursor: str | None = None,
        ) -> EvolveListReport: ...

    async def list_proposals(
        self,
        request: EvolveListRequest | Literal["open", "submitted", "refused", "dropped"] | Literal["all"] | None = None,
        /,
        **fields: Any,
    ) -> EvolveListReport:
        """List proposals, the newest first, by state.

        Args:
            state: only proposals in this state (default open).
            view: view that filters the report; default: the caller's first view (default None).
            limit: maximum number; clipped to the profile's limit (default 50; at least 1; clipped at the profile's
                page_limit).
            cursor: next_cursor of the previous page (default None; at least 1 character; at most 1,024 characters).

        Returns:
            `total` counts every proposal in the state that the caller may see, not the page.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `evolve`, or the caller was not granted it.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("evolve.list", "state", request, fields)

    if TYPE_CHECKING:

        @overload
        async def preview_proposal(self, request: EvolvePreviewRequest, /) -> EvolvePreviewReport: ...
        @overload
        async def preview_proposal(
            self,
            /,
            *,
            proposal_id: str,
            view: ViewName | None = None,
        ) -> EvolvePreviewReport: ...
        @overload
        async def preview_proposal(
            self,
            proposal_id: str,
            /,
            *,
            view: ViewName | None = None,
        ) -> EvolvePreviewReport: ...

    async def preview_proposal(
        self, request: EvolvePreviewRequest | str | None = None, /, **fields: Any
    ) -> EvolvePreviewReport:
        """Show what a proposal would change in the caller's view, and the current verdict of governance.

        Args:
            proposal_id: the proposal's id (required; at least 1 character; at most 512 characters; no control
                characters).
            view: view that filters the report; default: the caller's first view (default None).

        Returns:
            `moved` says that the target is no more what the proposal was made for: submitting it is a conflict. A
                closed proposal has no verdict and no text left.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `evolve`, or the caller was not granted it.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("evolve.preview", "proposal_id", request, fields)

    if TYPE_CHECKING:

        @overload
        async def submit_proposals(self, request: EvolveSubmitRequest, /) -> EvolveSubmitReport: ...
        @overload
        async def submit_proposals(
            self,
            /,
            *,
            proposal_ids: Sequence[str],
            decision: Literal["submit", "withdraw"] = "submit",
            view: ViewName | None = None,
        ) -> EvolveSubmitReport: ...
        @overload
        async def submit_proposals(
            self,
            proposal_ids: Sequence[str],
            /,
            *,
            decision: Literal["submit", "withdraw"] = "submit",
            view: ViewName | None = None,
        ) -> EvolveSubmitReport: ...

    async def submit_proposals(
        self, request: EvolveSubmitRequest | Sequence[str] | None = None, /, **fields: Any
    ) -> EvolveSubmitReport:
        """Apply proposals through the normal write path with the caller's capabilities, or withdraw them.

        All of them or none.

        Args:
            proposal_ids: ids of the proposals, in the order to apply them (required; each: at least 1 character;
                each: at most 512 characters; each: no control characters; at least 1 item; at most the profile's
                batch_requests).
            decision: apply them, or withdraw them without a change (default submit).
            view: view that filters the report; default: the caller's first view (default None).

        Returns:
            In the order of the request. `submitted` counts those that were carried out. `erasure` is `done` when no
                byte of the closed proposals' text is left in the store's files, else `pending`; `replica_horizon`
                says until when snapshots hold it.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `evolve`, or the caller was not granted it.
            PayloadTooLarge: over the profile's batch_requests.
            StoreReadOnly, StorageFull: nothing can be written.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("evolve.submit", "proposal_ids", request, fields)

    if TYPE_CHECKING:

        @overload
        async def console_overview(self, request: ConsoleOverviewRequest, /) -> ConsoleOverviewReport: ...
        @overload
        async def console_overview(
            self,
            /,
            *,
            steps: int = 0,
        ) -> ConsoleOverviewReport: ...
        @overload
        async def console_overview(
            self,
            steps: int,
            /,
        ) -> ConsoleOverviewReport: ...

    async def console_overview(
        self, request: ConsoleOverviewRequest | int | None = None, /, **fields: Any
    ) -> ConsoleOverviewReport:
        """Show the machine, the runtime, its memory, metrics and sessions.

        Args:
            steps: steps of recent activity to report, of 5 seconds each, for an operator (default 0; at least 0; at
                most 240).

        Returns:
            `system`, `metrics`, `sessions` and `activity` describe the whole daemon; only operators see them.
                `activity` is null unless `steps` of it were asked for.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `console`, or the caller was not granted it.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("console.overview", "steps", request, fields)

    if TYPE_CHECKING:

        @overload
        async def console_session(self, request: ConsoleSessionRequest, /) -> ConsoleSessionReport: ...
        @overload
        async def console_session(self, /) -> ConsoleSessionReport: ...

    async def console_session(
        self, request: ConsoleSessionRequest | None = None, /, **fields: Any
    ) -> ConsoleSessionReport:
        """Show the caller, its capabilities, and the owner of the memory it uses.

        Returns:
            `device` is present if the caller is one. `capabilities` are those that it may use here and now.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `console`, or the caller was not granted it.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("console.session", "", request, fields)

    if TYPE_CHECKING:

        @overload
        async def list_devices(self, request: DeviceListRequest, /) -> DeviceListReport: ...
        @overload
        async def list_devices(
            self,
            /,
            *,
            state: Literal["active", "suspended", "revoked"] | None = None,
            limit: int = 50,
            cursor: str | None = None,
        ) -> DeviceListReport: ...
        @overload
        async def list_devices(
            self,
            state: Literal["active", "suspended", "revoked"] | None,
            /,
            *,
            limit: int = 50,
            cursor: str | None = None,
        ) -> DeviceListReport: ...

    async def list_devices(
        self,
        request: DeviceListRequest | Literal["active", "suspended", "revoked"] | None | None = None,
        /,
        **fields: Any,
    ) -> DeviceListReport:
        """List devices in the order in which they were added, by the fingerprints of their keys.

        Args:
            state: only devices in this state (default None).
            limit: maximum number; clipped to the profile's limit (default 50; at least 1; clipped at the profile's
                page_limit).
            cursor: next_cursor of the previous page (default None; at least 1 character; at most 1,024 characters).

        Returns:
            `total` counts what the request asked for, not the page.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `device`, or the caller was not granted it.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("device.list", "state", request, fields)

    if TYPE_CHECKING:

        @overload
        async def add_device(self, request: DeviceAddRequest, /) -> DeviceKeyReport: ...
        @overload
        async def add_device(
            self,
            /,
            *,
            label: str,
            capabilities: Sequence[str],
            owner_id: str | None = None,
            agent_id: str | None = None,
            device_id: str | None = None,
        ) -> DeviceKeyReport: ...
        @overload
        async def add_device(
            self,
            label: str,
            /,
            *,
            capabilities: Sequence[str],
            owner_id: str | None = None,
            agent_id: str | None = None,
            device_id: str | None = None,
        ) -> DeviceKeyReport: ...

    async def add_device(self, request: DeviceAddRequest | str | None = None, /, **fields: Any) -> DeviceKeyReport:
        """Add a device, and create the key with which it authenticates.

        Args:
            label: display name of the device (required; at least 1 character; at most 256 characters; no control
                characters).
            capabilities: capabilities to grant: names that `memory.capabilities` lists (required; each: at least 1
                character; each: at most 64 characters; at most 64 items).
            owner_id: owner of the memory that the device uses; default: the scope's owner (default None; at least 1
                character; at most 256 characters; no control characters).
            agent_id: the device's agent; default: the scope's agent (default None; at least 1 character; at most
                256 characters; no control characters).
            device_id: the device's id; default: generated (default None; at least 1 character; at most 256
                characters; no control characters).

        Returns:
            A device and, in this one answer, its key: a repeated report has it absent, and nothing shows it again.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `device`, or the caller was not granted it.
            StoreReadOnly, StorageFull: nothing can be written.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("device.add", "label", request, fields)

    if TYPE_CHECKING:

        @overload
        async def update_device(self, request: DeviceUpdateRequest, /) -> DeviceReport: ...
        @overload
        async def update_device(
            self,
            /,
            *,
            device_id: str,
            label: str | None = None,
            state: Literal["active", "suspended", "revoked"] | None = None,
            capabilities: Sequence[str] | None = None,
        ) -> DeviceReport: ...
        @overload
        async def update_device(
            self,
            device_id: str,
            /,
            *,
            label: str | None = None,
            state: Literal["active", "suspended", "revoked"] | None = None,
            capabilities: Sequence[str] | None = None,
        ) -> DeviceReport: ...

    async def update_device(self, request: DeviceUpdateRequest | str | None = None, /, **fields: Any) -> DeviceReport:
        """Change a device's label, state or capabilities; omitted fields stay. Applies from its next request.

        Args:
            device_id: the device's id (required; at least 1 character; at most 256 characters; no control
                characters).
            label: display name of the device (default None; at least 1 character; at most 256 characters; no
                control characters).
            state: suspended can be undone; revoked is permanent (default None).
            capabilities: capabilities to grant: names that `memory.capabilities` lists (default None; each: at
                least 1 character; each: at most 64 characters; at most 64 items).

        Returns:
            The device as it is now.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `device`, or the caller was not granted it.
            StoreReadOnly, StorageFull: nothing can be written.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("device.update", "device_id", request, fields)

    if TYPE_CHECKING:

        @overload
        async def rotate_device_key(self, request: DeviceRotateKeyRequest, /) -> DeviceKeyReport: ...
        @overload
        async def rotate_device_key(
            self,
            /,
            *,
            device_id: str,
        ) -> DeviceKeyReport: ...
        @overload
        async def rotate_device_key(
            self,
            device_id: str,
            /,
        ) -> DeviceKeyReport: ...

    async def rotate_device_key(
        self, request: DeviceRotateKeyRequest | str | None = None, /, **fields: Any
    ) -> DeviceKeyReport:
        """Replace a device's key; the old key is invalid at once.

        Args:
            device_id: the device's id (required; at least 1 character; at most 256 characters; no control
                characters).

        Returns:
            A device and, in this one answer, its key: a repeated report has it absent, and nothing shows it again.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `device`, or the caller was not granted it.
            StoreReadOnly, StorageFull: nothing can be written.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("device.rotate_key", "device_id", request, fields)

    if TYPE_CHECKING:

        @overload
        async def remove_device(self, request: DeviceRemoveRequest, /) -> DeviceRemovedReport: ...
        @overload
        async def remove_device(
            self,
            /,
            *,
            device_id: str,
        ) -> DeviceRemovedReport: ...
        @overload
        async def remove_device(
            self,
            device_id: str,
            /,
        ) -> DeviceRemovedReport: ...

    async def remove_device(
        self, request: DeviceRemoveRequest | str | None = None, /, **fields: Any
    ) -> DeviceRemovedReport:
        """Remove a device; the records that it wrote stay.

        Args:
            device_id: the device's id (required; at least 1 character; at most 256 characters; no control
                characters).

        Returns:
            The device that is no longer known.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `device`, or the caller was not granted it.
            StoreReadOnly, StorageFull: nothing can be written.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("device.remove", "device_id", request, fields)

    if TYPE_CHECKING:

        @overload
        async def list_transports(self, request: TransportListRequest, /) -> TransportListReport: ...
        @overload
        async def list_transports(self, /) -> TransportListReport: ...

    async def list_transports(
        self, request: TransportListRequest | None = None, /, **fields: Any
    ) -> TransportListReport:
        """List the transports and their state.

        Returns:
            Every transport, in a fixed order.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `transport`, or the caller was not granted it.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("transport.list", "", request, fields)

    if TYPE_CHECKING:

        @overload
        async def update_transport(self, request: TransportUpdateRequest, /) -> TransportReport: ...
        @overload
        async def update_transport(
            self,
            /,
            *,
            name: TransportName,
            enabled: bool | None = None,
            endpoint: str | None = None,
        ) -> TransportReport: ...
        @overload
        async def update_transport(
            self,
            name: TransportName,
            /,
            *,
            enabled: bool | None = None,
            endpoint: str | None = None,
        ) -> TransportReport: ...

    async def update_transport(
        self, request: TransportUpdateRequest | TransportName | None = None, /, **fields: Any
    ) -> TransportReport:
        """Open or close a transport, or set its endpoint.

        Args:
            name: the transport (required).
            enabled: whether callers other than operators may use it (default None).
            endpoint: address to listen on: HOST:PORT (default None; at least 1 character; at most 261 characters;
                no control characters).

        Returns:
            The current state of the transport.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `transport`, or the caller was not granted it.
            StoreReadOnly, StorageFull: nothing can be written.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("transport.update", "name", request, fields)

    if TYPE_CHECKING:

        @overload
        async def read_event_log(self, request: EventLogReadRequest, /) -> EventLogReadReport: ...
        @overload
        async def read_event_log(
            self,
            /,
            *,
            after: int | None = None,
            before: int | None = None,
            since: datetime | str | None = None,
            until: datetime | str | None = None,
            topics: Sequence[str] | None = None,
            operation: str | None = None,
            principal: str | None = None,
            newest_first: bool = False,
            chain: bool = False,
            limit: int = 50,
            cursor: str | None = None,
        ) -> EventLogReadReport: ...
        @overload
        async def read_event_log(
            self,
            after: int | None,
            /,
            *,
            before: int | None = None,
            since: datetime | str | None = None,
            until: datetime | str | None = None,
            topics: Sequence[str] | None = None,
            operation: str | None = None,
            principal: str | None = None,
            newest_first: bool = False,
            chain: bool = False,
            limit: int = 50,
            cursor: str | None = None,
        ) -> EventLogReadReport: ...

    async def read_event_log(
        self, request: EventLogReadRequest | int | None | None = None, /, **fields: Any
    ) -> EventLogReadReport:
        """Read the event log of this space; an operator reads the daemon's own rows with it.

        Args:
            after: rows after this sequence number (default None; at least 0; at most 4,611,686,018,427,387,904).
            before: rows before this sequence number (default None; at least 0; at most 4,611,686,018,427,387,904).
            since: not before this time (default None).
            until: not after this time (default None).
            topics: only these topics (default None; each: at least 1 character; each: at most 64 characters; at
                least 1 item; at most 32 items).
            operation: only rows of this operation (default None; at least 1 character; at most 128 characters).
            principal: only rows of this principal (default None; at least 1 character; at most 256 characters; no
                control characters).
            newest_first: read from the end of the log backwards (default False).
            chain: read what proves the whole log: each row's encoding, the hashes of other spaces' rows, the signed
                head; operators only (default False).
            limit: maximum number; clipped to the profile's limit (default 50; at least 1; clipped at the profile's
                page_limit).
            cursor: next_cursor of the previous page (default None; at least 1 character; at most 1,024 characters).

        Returns:
            `chain` and `signed_head` answer a request for the chain: the rows behind `after`, of all spaces, in
                their order. `verified` says that every row of the page follows from the row before it in the log;
                `broken` names those that do not. `scanned` counts the rows that were looked at: a page may be empty
                and `has_more` all the same. `head` is the number of the last row. An operator sees the whole log's
                numbers and hashes; for others only the events that they may know of are counted, and a hash is a
                keyed digest of its row.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `event_log`, or the caller was not granted it.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("event_log.read", "after", request, fields)

    if TYPE_CHECKING:

        @overload
        async def run_harness(self, request: HarnessRunRequest, /) -> HarnessRunReport: ...
        @overload
        async def run_harness(
            self,
            /,
            *,
            suite: Literal["all", "memory", "replay", "benchmark"] = "all",
            fixtures: Sequence[str] = ...,
            folder: str | None = None,
            backends: Sequence[BackendName] = ...,
        ) -> HarnessRunReport: ...
        @overload
        async def run_harness(
            self,
            suite: Literal["all", "memory", "replay", "benchmark"],
            /,
            *,
            fixtures: Sequence[str] = ...,
            folder: str | None = None,
            backends: Sequence[BackendName] = ...,
        ) -> HarnessRunReport: ...

    async def run_harness(
        self,
        request: HarnessRunRequest | Literal["all", "memory", "replay", "benchmark"] | None = None,
        /,
        **fields: Any,
    ) -> HarnessRunReport:
        """Run fixtures in temporary stores and check the results against the gates; the caller's store is not used.

        Args:
            suite: gates to run: all, or one (default all).
            fixtures: only these fixtures, by their names (default (); each: at least 1 character; each: at most 64
                characters; each: small letters, digits, dashes; at most 256 items).
            folder: absolute folder of the fixtures; default: the source checkout's own. Operators only (default
                None; at least 1 character; at most 4,096 characters; an absolute path).
            backends: on these backends (default [in-memory, sqlite, file, embedded]; at least 1 item; at most 4
                items).

        Returns:
            `passed` when every gate of the suite is. `not_compared` names the fields of which a replay compares
                only the presence: times, sizes, and what is made with a store's own keys.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `harness`, or the caller was not granted it.
            StoreBudgetExceeded: the store is at its ceiling.
            StoreReadOnly, StorageFull: nothing can be written.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("harness.run", "suite", request, fields)

    if TYPE_CHECKING:

        @overload
        async def recover(self, request: MemoryRecoverRequest, /) -> MemoryRecoverReport: ...
        @overload
        async def recover(
            self,
            /,
            *,
            trigger: Literal["operator_requested", "scheduled", "after_crash", "after_restore"] = "operator_requested",
            mode_input: ModeInput | Mapping[str, Any] = ...,
        ) -> MemoryRecoverReport: ...
        @overload
        async def recover(
            self,
            trigger: Literal["operator_requested", "scheduled", "after_crash", "after_restore"],
            /,
            *,
            mode_input: ModeInput | Mapping[str, Any] = ...,
        ) -> MemoryRecoverReport: ...

    async def recover(
        self,
        request: MemoryRecoverRequest
        | Literal["operator_requested", "scheduled", "after_crash", "after_restore"]
        | None = None,
        /,
        **fields: Any,
    ) -> MemoryRecoverReport:
        """Run the recovery steps over the whole store; a failed step is reported, and the others still run.

        Args:
            trigger: what triggers the recovery (default operator_requested).
            mode_input: the lifecycle mode that a caller asks an operation to run under; read_only and safe refuse
                writes (default {mode: normal}).

        Returns:
            The steps in the order they ran. `recovered` when none failed and none left anything behind.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `recover`, or the caller was not granted it.
            StoreReadOnly, StorageFull: nothing can be written.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("memory.recover", "trigger", request, fields)

    if TYPE_CHECKING:

        @overload
        async def close_runtime(self, request: MemoryCloseRequest, /) -> MemoryCloseReport: ...
        @overload
        async def close_runtime(
            self,
            /,
            *,
            reason: str = "operator_requested",
        ) -> MemoryCloseReport: ...
        @overload
        async def close_runtime(
            self,
            reason: str,
            /,
        ) -> MemoryCloseReport: ...

    async def close_runtime(
        self, request: MemoryCloseRequest | str | None = None, /, **fields: Any
    ) -> MemoryCloseReport:
        """Finish the queued writes, checkpoint the write-ahead log, answer, and stop the daemon or runtime.

        Args:
            reason: reason for closing, for the log (default operator_requested; at least 1 character; at most 256
                characters; no control characters).

        Returns:
            `already` when it was closing or closed before: nothing was done again. `drained` counts the writes that
                were waiting, `wal_bytes` what is left in the write-ahead log, `pending_erasures` what the next
                opening finishes.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `close`, or the caller was not granted it.
            StoreReadOnly, StorageFull: nothing can be written.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("memory.close", "reason", request, fields)

    if TYPE_CHECKING:

        @overload
        async def scheduler_status(self, request: SchedulerStatusRequest, /) -> SchedulerStatusReport: ...
        @overload
        async def scheduler_status(self, /) -> SchedulerStatusReport: ...

    async def scheduler_status(
        self, request: SchedulerStatusRequest | None = None, /, **fields: Any
    ) -> SchedulerStatusReport:
        """List the background jobs with their schedules, counters, last error and next run.

        Returns:
            The jobs in the order of their names. `scheduler_running` says whether somebody starts them when they
                are due: in a daemon and an in-process runtime; not for a command that opened the store itself, and
                not in a profile whose share for background work is 0. `time_zone` is the zone in which the
                schedules are read.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `scheduler`, or the caller was not granted it.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("scheduler.status", "", request, fields)

    if TYPE_CHECKING:

        @overload
        async def pause_job(self, request: SchedulerPauseRequest, /) -> SchedulerPauseReport: ...
        @overload
        async def pause_job(
            self,
            /,
            *,
            job_name: str,
        ) -> SchedulerPauseReport: ...
        @overload
        async def pause_job(
            self,
            job_name: str,
            /,
        ) -> SchedulerPauseReport: ...

    async def pause_job(
        self, request: SchedulerPauseRequest | str | None = None, /, **fields: Any
    ) -> SchedulerPauseReport:
        """Pause a background job, past restarts too; a run that has begun goes on.

        Args:
            job_name: the job's name, as `scheduler.status` has it (required; at least 1 character; at most 64
                characters; no control characters).

        Returns:
            The job as it is now. `changed` is false where it was paused before. `success` is true: an unknown job
                is `not_found`.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `scheduler`, or the caller was not granted it.
            StoreReadOnly, StorageFull: nothing can be written.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("scheduler.pause", "job_name", request, fields)

    if TYPE_CHECKING:

        @overload
        async def resume_job(self, request: SchedulerResumeRequest, /) -> SchedulerResumeReport: ...
        @overload
        async def resume_job(
            self,
            /,
            *,
            job_name: str,
        ) -> SchedulerResumeReport: ...
        @overload
        async def resume_job(
            self,
            job_name: str,
            /,
        ) -> SchedulerResumeReport: ...

    async def resume_job(
        self, request: SchedulerResumeRequest | str | None = None, /, **fields: Any
    ) -> SchedulerResumeReport:
        """Resume a paused background job: it runs at its next time.

        Args:
            job_name: the job's name, as `scheduler.status` has it (required; at least 1 character; at most 64
                characters; no control characters).

        Returns:
            The job as it is now. `changed` is false where it was not paused. `success` is true: an unknown job is
                `not_found`.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `scheduler`, or the caller was not granted it.
            StoreReadOnly, StorageFull: nothing can be written.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("scheduler.resume", "job_name", request, fields)

    if TYPE_CHECKING:

        @overload
        async def run_job(self, request: SchedulerRunRequest, /) -> SchedulerRunReport: ...
        @overload
        async def run_job(
            self,
            /,
            *,
            job_name: str,
            wait: bool = False,
        ) -> SchedulerRunReport: ...
        @overload
        async def run_job(
            self,
            job_name: str,
            /,
            *,
            wait: bool = False,
        ) -> SchedulerRunReport: ...

    async def run_job(self, request: SchedulerRunRequest | str | None = None, /, **fields: Any) -> SchedulerRunReport:
        """Start a background job now, paused or not; refused while it runs.

        Args:
            job_name: the job's name, as `scheduler.status` has it (required; at least 1 character; at most 64
                characters; no control characters).
            wait: answer when the run has ended, not when it has begun (default False).

        Returns:
            The job as it is now: running, or with `wait` and where no scheduler runs, as its run left it.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `scheduler`, or the caller was not granted it.
            StoreReadOnly, StorageFull: nothing can be written.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("scheduler.run", "job_name", request, fields)

    if TYPE_CHECKING:

        @overload
        async def replication_status(self, request: ReplicationStatusRequest, /) -> ReplicationStatusReport: ...
        @overload
        async def replication_status(self, /) -> ReplicationStatusReport: ...

    async def replication_status(
        self, request: ReplicationStatusRequest | None = None, /, **fields: Any
    ) -> ReplicationStatusReport:
        """Show how far the replica has got, and what holds it up.

        Returns:
            The replica now. Figures are None where they are not known: with no sidecar, or before its first answer.
                `lag_s` is how long ago the store was last known to be in the replica whole, 0 when nothing waits;
                `lag_bytes` is what waits in the write-ahead log and in `staged_bytes`, the files on this disk that
                were not sent; and `lag_transactions` counts litestream's, each of which holds all commits between
                two looks. `txid` is its last one, `replicated_txid` the last one that can be restored from the
                target, `last_synced_at` when that was last seen to grow or to be the last. `writer_waits` counts
                how often a commit waited for the sidecar to follow, `writer_waited_s` for how long in all.
                `earlier_targets` are the targets that something was sent to before: it stays there, with what was
                erased since. `detail` and `hint` explain `problem`. `restarts` counts starts of the sidecar after
                the first. Snapshots in the replica are kept for `retention_h` hours. What others write moves the
                figures, so only operators see them.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `replication`, or the caller was not granted it.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("replication.status", "", request, fields)

    if TYPE_CHECKING:

        @overload
        async def restore_replica(self, request: ReplicationRestoreRequest, /) -> ReplicationRestoreReport: ...
        @overload
        async def restore_replica(
            self,
            /,
            *,
            at: datetime | str | None = None,
            to: str | None = None,
            dry_run: bool = False,
            other_store: bool = False,
            accept_older: bool = False,
            keep_erased: bool = False,
        ) -> ReplicationRestoreReport: ...
        @overload
        async def restore_replica(
            self,
            at: datetime | str | None,
            /,
            *,
            to: str | None = None,
            dry_run: bool = False,
            other_store: bool = False,
            accept_older: bool = False,
            keep_erased: bool = False,
        ) -> ReplicationRestoreReport: ...

    async def restore_replica(
        self, request: ReplicationRestoreRequest | datetime | str | None | None = None, /, **fields: Any
    ) -> ReplicationRestoreReport:
        """Replace the store with its state in the replica, now or at an earlier time; the replaced store is kept
        beside it.

        Everything is checked first, and a replica that is not whole changes nothing.

        Args:
            at: the last state at or before this time; left out, the newest one (default None).
            to: write the state to this new file instead (absolute path); the store stays as it is (default None; at
                least 2 characters; at most 4,000 characters).
            dry_run: check the replica and report what a restore would do; change nothing (default False).
            other_store: allow a replica of another store or device (default False).
            accept_older: take the newest state although the replica had a newer one: it was put back (default
                False).
            keep_erased: bring back what was erased since that time, instead of erasing it again (default False).

        Returns:
            `txid` is the sidecar's last transaction in the restored state; the replica holds states from `first` to
                `last`. `schema`, `store_id`, `counts`, `bytes` and `event_log_rows` are of the restored state. All
                else is as in `snapshot.restore`; `kept_as` and `to` are where the replaced store, or the state that
                was written, stands.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `replication`, or the caller was not granted it.
            StoreReadOnly, StorageFull: nothing can be written.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("replication.restore", "at", request, fields)

    if TYPE_CHECKING:

        @overload
        async def forget_replica(self, request: ReplicationForgetRequest, /) -> ReplicationForgetReport: ...
        @overload
        async def forget_replica(
            self,
            /,
            *,
            earlier_target: str | None = None,
        ) -> ReplicationForgetReport: ...
        @overload
        async def forget_replica(
            self,
            earlier_target: str | None,
            /,
        ) -> ReplicationForgetReport: ...

    async def forget_replica(
        self, request: ReplicationForgetRequest | str | None | None = None, /, **fields: Any
    ) -> ReplicationForgetReport:
        """Send the whole store to the replica anew and remove what was sent before, with all that was erased since.

        No earlier state can be restored from the replica afterwards.

        Args:
            earlier_target: instead: the URL of an earlier target, whose files you have removed yourself; it is not
                reported any more (default None; at least 2 characters; at most 2,000 characters).

        Returns:
            `removed_files` of `removed_bytes` went; the replica holds states from transaction `txid` on, in `files`
                files. `replicated_until` is None, unless something was erased while this was done.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `replication`, or the caller was not granted it.
            StoreReadOnly, StorageFull: nothing can be written.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("replication.forget", "earlier_target", request, fields)

    if TYPE_CHECKING:

        @overload
        async def create_snapshot(self, request: SnapshotCreateRequest, /) -> SnapshotCreateReport: ...
        @overload
        async def create_snapshot(
            self,
            /,
            *,
            label: str | None = None,
        ) -> SnapshotCreateReport: ...
        @overload
        async def create_snapshot(
            self,
            label: str | None,
            /,
        ) -> SnapshotCreateReport: ...

    async def create_snapshot(
        self, request: SnapshotCreateRequest | str | None | None = None, /, **fields: Any
    ) -> SnapshotCreateReport:
        """Create a snapshot of the whole store while it is in use, with every write acknowledged before it.

        Args:
            label: display name (default None; at most 256 characters; no control characters; at least 1 character).

        Returns:
            `restarts` counts how often the copy began again: because something was erased meanwhile or, without a
                write-ahead log, because of any write. `ms` is how long it took.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `snapshot`, or the caller was not granted it.
            StoreReadOnly, StorageFull: nothing can be written.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("snapshot.create", "label", request, fields)

    if TYPE_CHECKING:

        @overload
        async def list_snapshots(self, request: SnapshotListRequest, /) -> SnapshotListReport: ...
        @overload
        async def list_snapshots(
            self,
            /,
            *,
            limit: int = 50,
            cursor: str | None = None,
        ) -> SnapshotListReport: ...
        @overload
        async def list_snapshots(
            self,
            limit: int,
            /,
            *,
            cursor: str | None = None,
        ) -> SnapshotListReport: ...

    async def list_snapshots(
        self, request: SnapshotListRequest | int | None = None, /, **fields: Any
    ) -> SnapshotListReport:
        """List the snapshots of this store, newest first, and the stores that a restore replaced.

        Args:
            limit: maximum number; clipped to the profile's limit (default 50; at least 1; clipped at the profile's
                page_limit).
            cursor: next_cursor of the previous page (default None; at least 1 character; at most 1,024 characters).

        Returns:
            `total` and `bytes` are of all snapshots. `broken` and `replaced` are on the first page alone. `keep` is
                the policy of the job `snapshot`: how many of the last ones, hours, days and weeks it keeps.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `snapshot`, or the caller was not granted it.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("snapshot.list", "limit", request, fields)

    if TYPE_CHECKING:

        @overload
        async def verify_snapshot(self, request: SnapshotVerifyRequest, /) -> SnapshotVerifyReport: ...
        @overload
        async def verify_snapshot(
            self,
            /,
            *,
            snapshot_id: str,
        ) -> SnapshotVerifyReport: ...
        @overload
        async def verify_snapshot(
            self,
            snapshot_id: str,
            /,
        ) -> SnapshotVerifyReport: ...

    async def verify_snapshot(
        self, request: SnapshotVerifyRequest | str | None = None, /, **fields: Any
    ) -> SnapshotVerifyReport:
        """Unpack a snapshot and check its digests, pages, event log, counts and identity.

        Args:
            snapshot_id: the snapshot's id (required; at least 1 character; at most 256 characters; no control
                characters).

        Returns:
            `valid` when there are no `reasons`; `checked` counts what was looked at. `snapshot` is its header, None
                where that cannot be read.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `snapshot`, or the caller was not granted it.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("snapshot.verify", "snapshot_id", request, fields)

    if TYPE_CHECKING:

        @overload
        async def restore_snapshot(self, request: SnapshotRestoreRequest, /) -> SnapshotRestoreReport: ...
        @overload
        async def restore_snapshot(
            self,
            /,
            *,
            snapshot_id: str,
            dry_run: bool = False,
            other_store: bool = False,
            keep_erased: bool = False,
        ) -> SnapshotRestoreReport: ...
        @overload
        async def restore_snapshot(
            self,
            snapshot_id: str,
            /,
            *,
            dry_run: bool = False,
            other_store: bool = False,
            keep_erased: bool = False,
        ) -> SnapshotRestoreReport: ...

    async def restore_snapshot(
        self, request: SnapshotRestoreRequest | str | None = None, /, **fields: Any
    ) -> SnapshotRestoreReport:
        """Replace the store with a snapshot; the replaced store is kept beside it with all later writes.

        Everything is checked first, and a snapshot that is not whole changes nothing.

        Args:
            snapshot_id: the snapshot's id (required; at least 1 character; at most 256 characters; no control
                characters).
            dry_run: check the snapshot and report what a restore would do; change nothing (default False).
            other_store: allow a snapshot of another store or device, or an unsigned one (default False).
            keep_erased: bring back what was erased since the snapshot was made, instead of erasing it again
                (default False).

        Returns:
            `events_behind` counts the rows of the event log that the store had and the snapshot has not. `kept_as`
                is the path of the replaced store. `identity` says whether the device identity fits what is open
                now. `devices_suspended` counts the devices that are active in the snapshot and suspended after the
                restore, since the replaced store does not have them, or has them suspended. `erased` counts what
                the snapshot holds and was erased from the store since, `erased_refs` names its turns, facts, skills
                and chunks. It is erased again before the snapshot takes the store's place, unless `keep_erased` was
                given, which `kept_erased` repeats. The event log goes on from where it was: receipts of that time
                stay valid.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `snapshot`, or the caller was not granted it.
            StoreReadOnly, StorageFull: nothing can be written.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("snapshot.restore", "snapshot_id", request, fields)

    if TYPE_CHECKING:

        @overload
        async def prune_snapshots(self, request: SnapshotPruneRequest, /) -> SnapshotPruneReport: ...
        @overload
        async def prune_snapshots(
            self,
            /,
            *,
            keep: int,
            replaced: bool = False,
            dry_run: bool = False,
        ) -> SnapshotPruneReport: ...
        @overload
        async def prune_snapshots(
            self,
            keep: int,
            /,
            *,
            replaced: bool = False,
            dry_run: bool = False,
        ) -> SnapshotPruneReport: ...

    async def prune_snapshots(
        self, request: SnapshotPruneRequest | int | None = None, /, **fields: Any
    ) -> SnapshotPruneReport:
        """Remove all but the newest snapshots, with content in them that was erased from the store since.

        Args:
            keep: how many of the newest to keep (required; at least 0; at most 100,000).
            replaced: also remove the stores that a restore has set aside (default False).
            dry_run: report what would be removed; remove nothing (default False).

        Returns:
            What went, or in a dry run would; files that are no whole snapshot go with it. `freed_bytes` is their
                size.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `snapshot`, or the caller was not granted it.
            StoreReadOnly, StorageFull: nothing can be written.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("snapshot.prune", "keep", request, fields)

    if TYPE_CHECKING:

        @overload
        async def admin_stats(self, request: AdminStatsRequest, /) -> AdminStatsReport: ...
        @overload
        async def admin_stats(self, /) -> AdminStatsReport: ...

    async def admin_stats(self, request: AdminStatsRequest | None = None, /, **fields: Any) -> AdminStatsReport:
        """Count what the store holds, of every space; reads the whole file.

        Returns:
            The whole store, for an operator. `bytes` is the file's, `wal_bytes` its write-ahead log's, `free_bytes`
                what `admin.compact` could give back. The rows of the recall index and of internal tables are not
                counted.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `inspect`, or the caller was not granted it.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("admin.stats", "", request, fields)

    if TYPE_CHECKING:

        @overload
        async def admin_compact(self, request: AdminCompactRequest, /) -> AdminCompactReport: ...
        @overload
        async def admin_compact(
            self,
            /,
            *,
            cf: Literal["events", "toc", "grips", "outbox"] | None = None,
        ) -> AdminCompactReport: ...
        @overload
        async def admin_compact(
            self,
            cf: Literal["events", "toc", "grips", "outbox"] | None,
            /,
        ) -> AdminCompactReport: ...

    async def admin_compact(
        self,
        request: AdminCompactRequest | Literal["events", "toc", "grips", "outbox"] | None | None = None,
        /,
        **fields: Any,
    ) -> AdminCompactReport:
        """Merge the recall index, and write the file anew where that pays.

        Args:
            cf: only what is of this family; the index is merged for `events` alone (default None).

        Returns:
            `steps` says of each step what it did, or why not; see `memory.recover`.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `admin`, or the caller was not granted it.
            StoreReadOnly, StorageFull: nothing can be written.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("admin.compact", "cf", request, fields)

    if TYPE_CHECKING:

        @overload
        async def admin_health(self, request: AdminHealthRequest, /) -> AdminHealthReport: ...
        @overload
        async def admin_health(self, /) -> AdminHealthReport: ...

    async def admin_health(self, request: AdminHealthRequest | None = None, /, **fields: Any) -> AdminHealthReport:
        """Look whether reads, writes and jobs are done.

        Returns:
            For an operator. `state` is the worst one of `checks`: `degraded` does its work and needs a look,
                `failing` does not do its work.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `inspect`, or the caller was not granted it.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("admin.health", "", request, fields)

    if TYPE_CHECKING:

        @overload
        async def admin_metrics(self, request: AdminMetricsRequest, /) -> AdminMetricsReport: ...
        @overload
        async def admin_metrics(self, /) -> AdminMetricsReport: ...

    async def admin_metrics(self, request: AdminMetricsRequest | None = None, /, **fields: Any) -> AdminMetricsReport:
        """Read the figures of the daemon and its whole store.

        Returns:
            For an operator. Counters are since the daemon began; times are in seconds, sizes in bytes.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `inspect`, or the caller was not granted it.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("admin.metrics", "", request, fields)

    if TYPE_CHECKING:

        @overload
        async def repair_store(self, request: StoreRepairRequest, /) -> StoreRepairReport: ...
        @overload
        async def repair_store(
            self,
            /,
            *,
            dry_run: bool = False,
        ) -> StoreRepairReport: ...
        @overload
        async def repair_store(
            self,
            dry_run: bool,
            /,
        ) -> StoreRepairReport: ...

    async def repair_store(
        self, request: StoreRepairRequest | bool | None = None, /, **fields: Any
    ) -> StoreRepairReport:
        """Salvage what damage left: bring every readable row into a new store, and report what is gone.

        Args:
            dry_run: report what can be saved; change nothing (default False).

        Returns:
            `whole` when every row of every table was read. `tables` has those of which something is gone,
                `damaged_pages` the first hundred pages that cannot be read as a whole; `unclear_pages` counts those
                whose rows are of no table that anybody can tell, and `notes` say what else is gone. `findings` is
                what `store.verify` says of the new store, the first hundred: it names records that are gone or were
                altered. The damaged file is kept at `kept_as`, its log beside it. Of a dry run `findings` is empty
                and `clean` is null.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `recover`, or the caller was not granted it.
            StoreReadOnly, StorageFull: nothing can be written.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("store.repair", "dry_run", request, fields)

    if TYPE_CHECKING:

        @overload
        async def renew_identity(self, request: IdentityRenewRequest, /) -> IdentityRenewReport: ...
        @overload
        async def renew_identity(
            self,
            /,
            *,
            dry_run: bool = False,
            token: str | None = None,
            despite_findings: bool = False,
        ) -> IdentityRenewReport: ...
        @overload
        async def renew_identity(
            self,
            dry_run: bool,
            /,
            *,
            token: str | None = None,
            despite_findings: bool = False,
        ) -> IdentityRenewReport: ...

    async def renew_identity(
        self, request: IdentityRenewRequest | bool | None = None, /, **fields: Any
    ) -> IdentityRenewReport:
        """Give a store whose device identity is lost another one: a dry run first, then its token.

        Args:
            dry_run: report what would be closed and taken over; change nothing (default False).
            token: token of the dry run (default None; at least 1 character; at most 256 characters).
            despite_findings: renew although `store.verify` has findings; they remain (default False).

        Returns:
            `state` is that of the identity before; a dry run has a `token` where another one may take its place.
                `former` is the fingerprint of the identity that is given up, null where it never signed anything,
                and `device` that of its successor, null in a dry run where it has still to be made; where the
                identity works, they are null and its own. `closes` counts the private records and waiting texts
                that the former identity sealed: they cannot be read any more. `closed` counts those of all former
                identities, and `closed_refs` names the first thousand. Rows and turns by their seals: `proven` ones
                are what the runtime wrote; of `unproven` ones only the lost identity could tell, and they are taken
                over as they are; `broken` ones were changed, added or removed by another program, and stay found.
                `findings` are the first hundred of `store.verify`, `found` counts them all. `head_signed`: the new
                identity has signed the event log's head, which fitted its former signature. `kept_as` is where the
                file is that stood in the key file's place and is none.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `recover`, or the caller was not granted it.
            StoreReadOnly, StorageFull: nothing can be written.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("identity.renew", "dry_run", request, fields)

    if TYPE_CHECKING:

        @overload
        async def verify_store(self, request: StoreVerifyRequest, /) -> StoreVerifyReport: ...
        @overload
        async def verify_store(
            self,
            /,
            *,
            pages: bool = True,
            receipt: str | None = None,
        ) -> StoreVerifyReport: ...
        @overload
        async def verify_store(
            self,
            pages: bool,
            /,
            *,
            receipt: str | None = None,
        ) -> StoreVerifyReport: ...

    async def verify_store(
        self, request: StoreVerifyRequest | bool | None = None, /, **fields: Any
    ) -> StoreVerifyReport:
        """Walk the event-log chain, the derived refs, the recall index and the pages of the store.

        Args:
            pages: also read every page (SQLite's integrity_check) (default True).
            receipt: also check this receipt against the store (default None; at most 4,096 characters).

        Returns:
            `clean` when no check found anything; `checked` counts what each check looked at. `receipt` answers the
                request's receipt, and has no say in `clean`. `unsigned_events` counts the event log's last rows,
                which the device identity has not signed yet; null where no signature can be relied on.

        Raises:
            InvalidRequest: a field is not as it must be.
            CapabilityHidden, Forbidden: the profile hides `inspect`, or the caller was not granted it.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("store.verify", "pages", request, fields)

    if TYPE_CHECKING:

        @overload
        async def hello(self, request: HelloRequest, /) -> HelloReport: ...
        @overload
        async def hello(self, /) -> HelloReport: ...

    async def hello(self, request: HelloRequest | None = None, /, **fields: Any) -> HelloReport:
        """Report the server, the caller and the available operations.

        Returns:
            `limits` maps a budget's name to its value (WIRE: limits).

        Raises:
            InvalidRequest: a field is not as it must be.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("hello", "", request, fields)

    if TYPE_CHECKING:

        @overload
        async def batch(self, request: BatchRequest, /) -> BatchReport: ...
        @overload
        async def batch(
            self,
            /,
            *,
            requests: Sequence[BatchItem | Mapping[str, Any]],
        ) -> BatchReport: ...
        @overload
        async def batch(
            self,
            requests: Sequence[BatchItem | Mapping[str, Any]],
            /,
        ) -> BatchReport: ...

    async def batch(
        self, request: BatchRequest | Sequence[BatchItem | Mapping[str, Any]] | None = None, /, **fields: Any
    ) -> BatchReport:
        """Run several operations in order in one transaction: all of them or none.

        Args:
            requests: the operations, in the order they run (required; at least 1 item; at most the profile's
                batch_requests).

        Returns:
            The reports in the order of the requests, each already shaped by the caller's view.

        Raises:
            InvalidRequest: a field is not as it must be.
            PayloadTooLarge: over the profile's batch_requests.
            StoreBudgetExceeded: the store is at its ceiling.
            StoreReadOnly, StorageFull: nothing can be written.
            BeetleError: any other of `beetle.contracts.errors`.
        """
        return await self._ask("batch", "requests", request, fields)


class AsyncSessionMethods(AsyncOperationMethods, ABC):
    """The methods of one conversation: it may be left out where a request needs one."""

    if TYPE_CHECKING:

        @overload
        async def finalize_turn_and_maintain(
            self, request: MemoryFinalizeTurnRequest, /
        ) -> MemoryFinalizeTurnReport: ...
        @overload
        async def finalize_turn_and_maintain(
            self,
            /,
            *,
            turn: CanonicalTurnDelta | Mapping[str, Any],
            conversation: Conversation | Mapping[str, Any] = ...,
            maintain: bool = True,
            mode_input: ModeInput | Mapping[str, Any] | None = None,
        ) -> MemoryFinalizeTurnReport: ...
        @overload
        async def finalize_turn_and_maintain(
            self,
            conversation: Conversation | Mapping[str, Any],
            /,
            *,
            turn: CanonicalTurnDelta | Mapping[str, Any],
            maintain: bool = True,
            mode_input: ModeInput | Mapping[str, Any] | None = None,
        ) -> MemoryFinalizeTurnReport: ...

    async def finalize_turn_and_maintain(
        self, request: MemoryFinalizeTurnRequest | Conversation | Mapping[str, Any] | None = None, /, **fields: Any
    ) -> MemoryFinalizeTurnReport:
        """Commit one delivered turn as evidence, then maintain its conversation or queue a job for it;
        `conversation` is the session's when left out."""
        return await self._ask("memory.finalize_turn", "conversation", request, fields)

    if TYPE_CHECKING:

        @overload
        async def commit_transcript(
            self, request: MemoryTranscriptCommitRequest, /
        ) -> MemoryTranscriptCommitReport: ...
        @overload
        async def commit_transcript(
            self,
            /,
            *,
            turns: Sequence[CanonicalTurnDelta | Mapping[str, Any]],
            conversation: Conversation | Mapping[str, Any] = ...,
        ) -> MemoryTranscriptCommitReport: ...
        @overload
        async def commit_transcript(
            self,
            conversation: Conversation | Mapping[str, Any],
            /,
            *,
            turns: Sequence[CanonicalTurnDelta | Mapping[str, Any]],
        ) -> MemoryTranscriptCommitReport: ...

    async def commit_transcript(
        self, request: MemoryTranscriptCommitRequest | Conversation | Mapping[str, Any] | None = None, /, **fields: Any
    ) -> MemoryTranscriptCommitReport:
        """Commit delivered turns as evidence: all of them or none; `conversation` is the session's when left
        out."""
        return await self._ask("transcript.commit", "conversation", request, fields)

    if TYPE_CHECKING:

        @overload
        async def replay_transcript(
            self, request: MemoryTranscriptReplayRequest, /
        ) -> MemoryTranscriptReplayReport: ...
        @overload
        async def replay_transcript(
            self,
            /,
            *,
            view: ViewName,
            conversation: Conversation | Mapping[str, Any] = ...,
            limit: int = 50,
            cursor: str | None = None,
        ) -> MemoryTranscriptReplayReport: ...
        @overload
        async def replay_transcript(
            self,
            conversation: Conversation | Mapping[str, Any],
            /,
            *,
            view: ViewName,
            limit: int = 50,
            cursor: str | None = None,
        ) -> MemoryTranscriptReplayReport: ...

    async def replay_transcript(
        self, request: MemoryTranscriptReplayRequest | Conversation | Mapping[str, Any] | None = None, /, **fields: Any
    ) -> MemoryTranscriptReplayReport:
        """Read a conversation's turns in sequence order through one view; `conversation` is the session's when left
        out."""
        return await self._ask("transcript.replay", "conversation", request, fields)

    if TYPE_CHECKING:

        @overload
        async def export_transcript(
            self, request: MemoryTranscriptExportRequest, /
        ) -> MemoryTranscriptExportReport: ...
        @overload
        async def export_transcript(
            self,
            /,
            *,
            conversation: Conversation | Mapping[str, Any] = ...,
            view: Literal["export"] = "export",
            include_private: bool = False,
            limit: int = 50,
            cursor: str | None = None,
        ) -> MemoryTranscriptExportReport: ...
        @overload
        async def export_transcript(
            self,
            conversation: Conversation | Mapping[str, Any],
            /,
            *,
            view: Literal["export"] = "export",
            include_private: bool = False,
            limit: int = 50,
            cursor: str | None = None,
        ) -> MemoryTranscriptExportReport: ...

    async def export_transcript(
        self, request: MemoryTranscriptExportRequest | Conversation | Mapping[str, Any] | None = None, /, **fields: Any
    ) -> MemoryTranscriptExportReport:
        """Read a conversation's exportable turns in sequence order; `conversation` is the session's when left
        out."""
        return await self._ask("transcript.export", "conversation", request, fields)

    if TYPE_CHECKING:

        @overload
        async def transcript_timeline(
            self, request: MemoryTranscriptTimelineRequest, /
        ) -> MemoryTranscriptTimelineReport: ...
        @overload
        async def transcript_timeline(
            self,
            /,
            *,
            view: ViewName,
            conversation: Conversation | Mapping[str, Any] = ...,
            anchor: Literal["latest"] | TimelineAnchor | Mapping[str, Any] = "latest",
            limit: int = 50,
        ) -> MemoryTranscriptTimelineReport: ...
        @overload
        async def transcript_timeline(
            self,
            conversation: Conversation | Mapping[str, Any],
            /,
            *,
            view: ViewName,
            anchor: Literal["latest"] | TimelineAnchor | Mapping[str, Any] = "latest",
            limit: int = 50,
        ) -> MemoryTranscriptTimelineReport: ...

    async def transcript_timeline(
        self,
        request: MemoryTranscriptTimelineRequest | Conversation | Mapping[str, Any] | None = None,
        /,
        **fields: Any,
    ) -> MemoryTranscriptTimelineReport:
        """One page of a conversation, placed by sequence or time; turns come in sequence order; `conversation` is
        the session's when left out."""
        return await self._ask("transcript.timeline", "conversation", request, fields)

    if TYPE_CHECKING:

        @overload
        async def request_transcript_lifecycle(
            self, request: MemoryTranscriptLifecycleRequest, /
        ) -> MemoryTranscriptLifecycleReport: ...
        @overload
        async def request_transcript_lifecycle(
            self,
            /,
            *,
            action: Literal["archive", "mask", "unmask", "delete_raw", "review"],
            reason: str,
            conversation: Conversation | Mapping[str, Any] = ...,
            turn_ids: Sequence[str] | None = None,
            before: datetime | str | None = None,
            dry_run: bool = False,
        ) -> MemoryTranscriptLifecycleReport: ...
        @overload
        async def request_transcript_lifecycle(
            self,
            conversation: Conversation | Mapping[str, Any],
            /,
            *,
            action: Literal["archive", "mask", "unmask", "delete_raw", "review"],
            reason: str,
            turn_ids: Sequence[str] | None = None,
            before: datetime | str | None = None,
            dry_run: bool = False,
        ) -> MemoryTranscriptLifecycleReport: ...

    async def request_transcript_lifecycle(
        self,
        request: MemoryTranscriptLifecycleRequest | Conversation | Mapping[str, Any] | None = None,
        /,
        **fields: Any,
    ) -> MemoryTranscriptLifecycleReport:
        """Archive, mask, unmask or raw-delete turns, or report what that would change (`dry_run`); `conversation`
        is the session's when left out."""
        return await self._ask("transcript.lifecycle", "conversation", request, fields)
