"""Who writes to a chain: finding and changing the records of its registry."""

from __future__ import annotations

from beetle.contracts.chain_agents import ChainAgent, ChainAgentKey, ChainAgentReport
from beetle.contracts.errors import Forbidden, NotFound, SignatureInvalid
from beetle.domain.chains import ledger, normal
from beetle.domain.chains.ledger import Body, Thought
from beetle.runtime.host.identity import is_signed
from beetle.runtime.pipeline.invocation import Invocation
from beetle.store import chain_agents
from beetle.store.chain_agents import AgentRow
from beetle.store.engine.transaction import Reading, Writing
from beetle.store.engine.write_transaction import WriteTransaction

BOUND = ("principal", "device")
"""Callers that speak for their own agent, where they have one; who runs the store may name any."""
REVOKED_HINT = "`beetle chain upsert-agent` with --status active lets it write again"


def own_agent(invocation: Invocation) -> str | None:
    """The agent for which alone the caller speaks, None where it may name any."""
    caller = invocation.caller
    return caller.agent_id if caller.kind in BOUND else None


def speaks_for(invocation: Invocation, agent_id: str, path: str = "$.args.agent_id") -> None:
    """Whether the caller may act as an agent, or on its record.

    Raises:
        Forbidden: it speaks for another one.
    """
    own = own_agent(invocation)
    if own is not None and own != agent_id:
        raise Forbidden(
            reason=f"{invocation.caller.name} acts for the agent {own!r} alone",
            hint=f"act as {own!r}, or ask an operator",
            path=path,
        )


def existing(tx: Reading, chain: int, agent_id: str) -> AgentRow:
    """The record of an agent.

    Raises:
        NotFound: the registry does not know it.
    """
    found = chain_agents.find(tx, chain, agent_id.strip())
    if found is None:
        raise NotFound(kind="agent", name=agent_id, listing="`beetle chain agent-registry` lists the agents of a chain")
    return found


def writer_of(tx: Writing, chain: int, agent_id: str, name: str | None, owner: str | None) -> AgentRow:
    """The record of who writes, made or brought up to date: a name that is given is its name from now on, an owner
    only where it has none.

    Raises:
        Forbidden: the agent was disabled.
    """
    found = chain_agents.find(tx, chain, agent_id)
    name, owner = normal.trimmed(name), normal.trimmed(owner)
    if found is None:
        return chain_agents.add(tx, AgentRow(0, chain, agent_id, name or agent_id, owner, None, "active"))
    if found.status != "active":
        raise Forbidden(reason=f"the agent {agent_id!r} is disabled in this chain", hint=REVOKED_HINT)
    changed = renamed(tx, found, name)
    if owner is not None and found.owner is None:
        changed = changed._replace(owner=owner)
    if changed != found:
        chain_agents.change(tx, changed)
    return changed


def renamed(tx: Writing, row: AgentRow, name: str | None) -> AgentRow:
    """A record under another name: the one before becomes an alias. An alias of it is no other name."""
    if name is None or name.casefold() in {each.casefold() for each in (row.display_name, *row.aliases)}:
        return row
    chain_agents.add_alias(tx, row.agent, row.display_name)
    return row._replace(display_name=name, aliases=(*row.aliases, row.display_name))


def check_signature(tx: Reading, agent: AgentRow, thought: Thought, body: Body) -> None:
    """Whether a thought is signed by the key that it names.

    Raises:
        SignatureInvalid: it is not, or the agent has no such key, or not any more.
    """
    if body.signature is None:
        return
    keys = {each.key_id: each for each in chain_agents.keys_of(tx, agent.agent)}
    key = keys.get(thought.signing_key_id or "")
    if key is None or key.revoked_at is not None:
        state = "was revoked" if key is not None else "is not registered"
        raise SignatureInvalid(
            reason=f"the key {thought.signing_key_id!r} of {agent.agent_id!r} {state}",
            hint="`beetle chain add-agent-key` registers a key",
            path="$.args.signing_key_id",
        )
    if not is_signed(ledger.signable(thought, body), body.signature, key.public_key):
        raise SignatureInvalid(
            reason=f"the thought is not signed with the key {key.key_id!r} of {agent.agent_id!r}",
            hint="`beetle help chain-format` says which bytes are signed",
            path="$.args.thought_signature",
        )


def shown(tx: Reading, row: AgentRow) -> ChainAgent:
    """A record as reports have it."""
    keys = tuple(
        ChainAgentKey(
            key_id=each.key_id,
            algorithm=each.algorithm,
            public_key_bytes=tuple(each.public_key),
            added_at=ledger.timestamp(each.added_at),
            revoked_at=None if each.revoked_at is None else ledger.timestamp(each.revoked_at),
        )
        for each in chain_agents.keys_of(tx, row.agent)
    )
    return ChainAgent(
        agent_id=row.agent_id,
        display_name=row.display_name,
        agent_owner=row.owner,
        description=row.description,
        aliases=row.aliases,
        status="active" if row.status == "active" else "revoked",
        public_keys=keys,
        thought_count=row.thoughts,
        first_seen_index=row.first_position,
        last_seen_index=row.last_position,
        first_seen_at=None if row.first_at is None else ledger.timestamp(row.first_at),
        last_seen_at=None if row.last_at is None else ledger.timestamp(row.last_at),
    )


def report(tx: WriteTransaction | Reading, chain_key: str, row: AgentRow) -> ChainAgentReport:
    """The record as the store has it now."""
    return ChainAgentReport(chain_key=chain_key, agent=shown(tx, existing(tx, row.chain, row.agent_id)))
