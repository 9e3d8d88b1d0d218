"""chain.*: the registry of a chain's agents: names, aliases, keys, and whether they may write."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from beetle.contracts.chains import AgentName, AgentOwner, ChainKey
from beetle.contracts.common import Cursor, PageLimit, Report
from beetle.contracts.fields import NO_CONTROL, NONBLANK, Content, Open, Piece, Request
from beetle.contracts.operation import CHAIN, Operation, Tool

AgentIdArg = Annotated[
    str, Meta(min_length=1, max_length=256, pattern=NO_CONTROL, description="id of the agent, as it is registered")
]
KeyId = Annotated[str, Meta(min_length=1, max_length=256, pattern=NO_CONTROL, description="id of the key")]
Description = Annotated[str, Meta(max_length=4096, description="what the agent is for; empty clears it")]


class ChainAgentsRequest(Request, frozen=True, kw_only=True):
    """List the agents that have written to a chain."""

    chain_key: ChainKey | None = None
    limit: PageLimit = 50
    cursor: Cursor | None = None


class ChainAgentRegistryRequest(Request, frozen=True, kw_only=True):
    """List the whole registry of a chain's agents, with aliases, keys and counts."""

    chain_key: ChainKey | None = None
    limit: PageLimit = 50
    cursor: Cursor | None = None


class ChainGetAgentRequest(Request, frozen=True, kw_only=True):
    """Show the registry's record of one agent."""

    chain_key: ChainKey | None = None
    agent_id: AgentIdArg


class ChainUpsertAgentRequest(Request, frozen=True, kw_only=True):
    """Create or change the registry's record of an agent; omitted fields stay, a name that changes becomes an alias."""

    chain_key: ChainKey | None = None
    agent_id: AgentIdArg
    display_name: AgentName | None = None
    agent_owner: Annotated[AgentOwner, Meta(description="owner or tenant of the agent; empty clears it")] | None = None
    description: Description | None = None
    status: Annotated[str, Meta(max_length=64, description="active or revoked")] | None = None


class ChainSetAgentDescriptionRequest(Request, frozen=True, kw_only=True):
    """Set the description of an agent, or clear it."""

    chain_key: ChainKey | None = None
    agent_id: AgentIdArg
    description: Description | None = None


class ChainAddAgentAliasRequest(Request, frozen=True, kw_only=True):
    """Add a name by which an agent is known too."""

    chain_key: ChainKey | None = None
    agent_id: AgentIdArg
    alias: Annotated[str, Meta(max_length=256, pattern=NONBLANK, description="the other name")]


class ChainAddAgentKeyRequest(Request, frozen=True, kw_only=True):
    """Add a public key of an agent, or replace the key of that id."""

    chain_key: ChainKey | None = None
    agent_id: AgentIdArg
    key_id: KeyId
    algorithm: Annotated[str, Meta(max_length=64, description="ed25519")]
    public_key_bytes: Annotated[
        tuple[Annotated[int, Meta(ge=0, le=255)], ...],
        Meta(min_length=32, max_length=32, description="the 32 bytes of the public key"),
    ]


class ChainRevokeAgentKeyRequest(Request, frozen=True, kw_only=True):
    """Revoke a public key of an agent; its record stays."""

    chain_key: ChainKey | None = None
    agent_id: AgentIdArg
    key_id: KeyId


class ChainDisableAgentRequest(Request, frozen=True, kw_only=True):
    """Disable an agent: its thoughts stay, and it can append and upload no more."""

    chain_key: ChainKey | None = None
    agent_id: AgentIdArg


class ChainAgentIdentity(Piece, frozen=True, kw_only=True):
    """Who has written."""

    agent_id: Open[str]
    agent_name: Content[str | None]
    agent_owner: Content[str | None]


class ChainAgentsReport(Report, frozen=True, kw_only=True):
    """By id; agents that are registered and have written nothing are left out."""

    chain_key: Open[str]
    agents: Open[tuple[ChainAgentIdentity, ...]]
    has_more: Open[bool] = False
    next_cursor: Open[str | None] = None


class ChainAgentKey(Piece, frozen=True, kw_only=True):
    """A public key; `revoked_at` null while it is good."""

    key_id: Open[str]
    algorithm: Open[str]
    public_key_bytes: Open[tuple[int, ...]]
    added_at: Open[str]
    revoked_at: Open[str | None]


class ChainAgent(Piece, frozen=True, kw_only=True):
    """One record of the registry; first and last are null before its first thought."""

    agent_id: Open[str]
    display_name: Content[str | None]
    agent_owner: Content[str | None]
    description: Content[str | None]
    aliases: Content[tuple[str, ...] | None]
    status: Open[Literal["active", "revoked"]]
    public_keys: Open[tuple[ChainAgentKey, ...]]
    thought_count: Open[int]
    first_seen_index: Open[int | None]
    last_seen_index: Open[int | None]
    first_seen_at: Open[str | None]
    last_seen_at: Open[str | None]


class ChainAgentRegistryReport(Report, frozen=True, kw_only=True):
    """By id."""

    chain_key: Open[str]
    agents: Open[tuple[ChainAgent, ...]]
    has_more: Open[bool] = False
    next_cursor: Open[str | None] = None


class ChainAgentReport(Report, frozen=True, kw_only=True):
    """The record as it is now."""

    chain_key: Open[str]
    agent: Open[ChainAgent]


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "chain.agents", "list_chain_agents", ChainAgentsRequest, ChainAgentsReport, "read", "chain", CHAIN,
        ("chain", "agents"),
        "list the agents that have written to a chain",
        word="chain_key",
        example={"chain_key": "project-alpha"},
        tool=Tool(name="mentisdb_list_agents"),
    ),
    Operation(
        "chain.get_agent", "get_chain_agent", ChainGetAgentRequest, ChainAgentReport, "read", "chain", CHAIN,
        ("chain", "agent"),
        "show the registry's record of one agent",
        word="agent_id",
        example={"chain_key": "project-alpha", "agent_id": "agent-42"},
        tool=Tool(name="mentisdb_get_agent"),
    ),
    Operation(
        "chain.agent_registry", "list_chain_agent_registry", ChainAgentRegistryRequest, ChainAgentRegistryReport,
        "read", "chain", CHAIN, ("chain", "agent-registry"),
        "list the whole registry of a chain's agents, with aliases, keys and counts",
        word="chain_key",
        example={"chain_key": "project-alpha"},
        tool=Tool(name="mentisdb_list_agent_registry"),
    ),
    Operation(
        "chain.upsert_agent", "upsert_chain_agent", ChainUpsertAgentRequest, ChainAgentReport, "write", "chain", CHAIN,
        ("chain", "upsert-agent"),
        "create or change the registry's record of an agent; omitted fields stay, a name that changes becomes an alias",
        word="agent_id",
        example={"chain_key": "project-alpha", "agent_id": "agent-42", "display_name": "Planner"},
        tool=Tool(name="mentisdb_upsert_agent"),
    ),
    Operation(
        "chain.set_agent_description", "set_chain_agent_description", ChainSetAgentDescriptionRequest, ChainAgentReport,
        "write", "chain", CHAIN, ("chain", "set-agent-description"),
        "set the description of an agent, or clear it",
        word="agent_id",
        example={"chain_key": "project-alpha", "agent_id": "agent-42", "description": "plans releases"},
        tool=Tool(name="mentisdb_set_agent_description"),
    ),
    Operation(
        "chain.add_agent_alias", "add_chain_agent_alias", ChainAddAgentAliasRequest, ChainAgentReport, "write", "chain",
        CHAIN, ("chain", "add-agent-alias"),
        "add a name by which an agent is known too",
        word="agent_id",
        example={"chain_key": "project-alpha", "agent_id": "agent-42", "alias": "Scheduler"},
        tool=Tool(name="mentisdb_add_agent_alias"),
    ),
    Operation(
        "chain.add_agent_key", "add_chain_agent_key", ChainAddAgentKeyRequest, ChainAgentReport, "write", "chain",
        CHAIN, ("chain", "add-agent-key"),
        "add a public key of an agent, or replace the key of that id",
        word="agent_id",
        example={
            "chain_key": "project-alpha", "agent_id": "agent-42", "key_id": "k1", "algorithm": "ed25519",
            "public_key_bytes": [215, 90, 152, 1, 130, 177, 10, 183, 213, 75, 254, 211, 201, 100, 7, 58,
                                 14, 225, 114, 243, 218, 166, 35, 37, 175, 2, 26, 104, 247, 7, 81, 26],
        },
        idempotent=False,
        tool=Tool(name="mentisdb_add_agent_key"),
    ),
    Operation(
        "chain.revoke_agent_key", "revoke_chain_agent_key", ChainRevokeAgentKeyRequest, ChainAgentReport, "write",
        "chain", CHAIN, ("chain", "revoke-agent-key"),
        "revoke a public key of an agent; its record stays",
        grows=False, word="agent_id",
        example={"chain_key": "project-alpha", "agent_id": "agent-42", "key_id": "k1"},
        destructive=True,
        tool=Tool(name="mentisdb_revoke_agent_key"),
    ),
    Operation(
        "chain.disable_agent", "disable_chain_agent", ChainDisableAgentRequest, ChainAgentReport, "write", "chain",
        CHAIN, ("chain", "disable-agent"),
        "disable an agent: its thoughts stay, and it can append and upload no more",
        grows=False, word="agent_id",
        example={"chain_key": "project-alpha", "agent_id": "agent-42"},
        destructive=True,
        tool=Tool(name="mentisdb_disable_agent"),
    ),
)  # fmt: skip
