"""chain.agents, agent_registry, get_agent, upsert_agent, set_agent_description, add_agent_alias, add_agent_key,
revoke_agent_key, disable_agent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from beetle.contracts.chain_agents import (
    ChainAddAgentAliasRequest,
    ChainAddAgentKeyRequest,
    ChainAgentIdentity,
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
from beetle.contracts.codec import replace, to_us
from beetle.contracts.errors import Forbidden, InvalidRequest, NotFound
from beetle.domain.chains import kinds, normal
from beetle.runtime.areas import secrets
from beetle.runtime.areas.chains import registering
from beetle.runtime.areas.chains.places import OpenChain, key_of
from beetle.runtime.areas.chains.writing import ensure_chain
from beetle.runtime.pipeline.cursor import read_cursor
from beetle.runtime.pipeline.handlers import Apply, Handler, Read, Write
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.pipeline.paging import Page, page
from beetle.store import chain_agents, evidence
from beetle.store.chain_agents import AgentRow, KeyRow
from beetle.store.chains import ChainRow
from beetle.store.engine.transaction import Reading
from beetle.store.engine.write_transaction import WriteTransaction

STATUSES = {"active": "active", "revoked": "revoked", "disabled": "revoked"}

Change = Callable[[WriteTransaction, AgentRow], str | None]
"""Changes a record; the event that tells of it, None where nothing changed."""


def agents(invocation: Invocation, request: ChainAgentsRequest, tx: Reading) -> ChainAgentsReport:
    """Those that have written."""
    chain = OpenChain(invocation, tx, request.chain_key)
    found = _page(
        invocation,
        tx,
        request,
        chain,
        lambda row: ChainAgentIdentity(
            agent_id=row.agent_id, agent_name=row.display_name, agent_owner=row.owner
        ),
        wrote=True,
    )  # fmt: skip
    return ChainAgentsReport(
        chain_key=chain.key,
        agents=found.entries,
        has_more=found.has_more,
        next_cursor=found.next_cursor,
        profile_budget_applied=found.cut,
    )


def agent_registry(invocation: Invocation, request: ChainAgentRegistryRequest, tx: Reading) -> ChainAgentRegistryReport:
    """All of them."""
    chain = OpenChain(invocation, tx, request.chain_key)
    found = _page(invocation, tx, request, chain, lambda row: registering.shown(tx, row), wrote=False)
    return ChainAgentRegistryReport(
        chain_key=chain.key,
        agents=found.entries,
        has_more=found.has_more,
        next_cursor=found.next_cursor,
        profile_budget_applied=found.cut,
    )


def _page(
    invocation: Invocation,
    tx: Reading,
    request: ChainAgentsRequest | ChainAgentRegistryRequest,
    chain: OpenChain,
    show: Callable[[AgentRow], Any],
    *,
    wrote: bool,
) -> Page[Any]:
    """By id; the cursor stands at an id."""
    bound_to = invocation.bound(chain.key)
    after = "" if request.cursor is None else read_cursor(invocation.key, bound_to, request.cursor)
    rows = [] if chain.row is None else chain_agents.listed(tx, chain.row.chain, after, request.limit + 1, wrote=wrote)
    return page(invocation, rows, request.limit, show, bound_to=bound_to, place=lambda row: row.agent_id)


def get_agent(invocation: Invocation, request: ChainGetAgentRequest, tx: Reading) -> ChainAgentReport:
    """One record."""
    chain = OpenChain(invocation, tx, request.chain_key)
    row = None if chain.row is None else chain_agents.find(tx, chain.row.chain, request.agent_id.strip())
    if row is None:
        listing = "`beetle chain agent-registry` lists the agents of a chain"
        raise NotFound(kind="agent", name=request.agent_id, listing=listing)
    return registering.report(tx, chain.key, row)


def upsert_agent(invocation: Invocation, request: ChainUpsertAgentRequest) -> Apply:
    """Make or change a record; the chain too, where it is not there."""
    agent_id = request.agent_id.strip()
    if not agent_id:
        raise InvalidRequest(reason="an agent's id is not blank", path="$.args.agent_id")
    registering.speaks_for(invocation, agent_id)
    status = None if request.status is None else STATUSES.get(kinds.plain(request.status))
    if request.status is not None and status is None:
        raise InvalidRequest(
            reason=f"Unknown status '{request.status}'", hint="known are: active, revoked", path="$.args.status"
        )
    if status is not None and registering.own_agent(invocation) is not None:
        raise Forbidden(
            reason=f"{invocation.caller.name} acts for an agent, which may neither enable nor disable itself",
            hint="leave status out, or ask an operator",
            path="$.args.status",
        )
    secrets.refuse(secrets.fields(request, "$.args", "display_name", "agent_owner", "description"))

    def apply(tx: WriteTransaction) -> ChainAgentReport:
        space = evidence.ensure_space(tx, invocation.space_id, tx.now)
        key = key_of(request.chain_key)
        chain = ensure_chain(tx, space, key)
        found = chain_agents.find(tx, chain.chain, agent_id)
        made = found is None
        if found is None:
            found = chain_agents.add(tx, AgentRow(0, chain.chain, agent_id, agent_id, None, None, "active"))
        name = normal.trimmed(request.display_name)
        changed = registering.renamed(tx, found, name)
        if name is not None and name.casefold() == changed.display_name.casefold():
            changed = changed._replace(display_name=name)
        if made:
            # The name that stands in for none is no former name.
            chain_agents.drop_aliases(tx, changed.agent)
        if request.agent_owner is not None:
            changed = changed._replace(owner=normal.trimmed(request.agent_owner))
        if request.description is not None:
            changed = changed._replace(description=normal.trimmed(request.description))
        if status is not None:
            changed = changed._replace(status=status)
        if made or changed != found:
            chain_agents.change(tx, changed)
            tx.log(invocation.event("chain", "agent_changed", chain_key=key, agent_id=agent_id, status=changed.status))
        return registering.report(tx, key, changed)

    return apply


def _changing(invocation: Invocation, chain_key: str | None, agent_id: str, change: Change) -> Apply:
    registering.speaks_for(invocation, agent_id.strip())

    def apply(tx: WriteTransaction) -> ChainAgentReport:
        chain = OpenChain(invocation, tx, chain_key)
        row = registering.existing(tx, chain.existing().chain, agent_id)
        event = change(tx, row)
        if event is not None:
            tx.log(invocation.event("chain", event, chain_key=chain.key, agent_id=row.agent_id))
        return registering.report(tx, chain.key, row)

    return apply


def set_description(invocation: Invocation, request: ChainSetAgentDescriptionRequest) -> Apply:
    """Set it, or clear it with a blank one."""
    secrets.refuse(secrets.fields(request, "$.args", "description"))
    description = normal.trimmed(request.description)

    def change(tx: WriteTransaction, row: AgentRow) -> str | None:
        if row.description == description:
            return None
        chain_agents.change(tx, row._replace(description=description))
        return "agent_changed"

    return _changing(invocation, request.chain_key, request.agent_id, change)


def add_alias(invocation: Invocation, request: ChainAddAgentAliasRequest) -> Apply:
    """One more name; one that it has changes nothing."""
    alias = request.alias.strip()
    secrets.refuse(secrets.fields(request, "$.args", "alias"))

    def change(tx: WriteTransaction, row: AgentRow) -> str | None:
        if alias.casefold() in {each.casefold() for each in (row.display_name, *row.aliases)}:
            return None
        chain_agents.add_alias(tx, row.agent, alias)
        return "agent_changed"

    return _changing(invocation, request.chain_key, request.agent_id, change)


def add_key(invocation: Invocation, request: ChainAddAgentKeyRequest) -> Apply:
    """Add a key, or put it in the place of the one of that id, which is good again."""
    if kinds.plain(request.algorithm) != "ed25519":
        raise InvalidRequest(
            reason=f"Unknown algorithm '{request.algorithm}'", hint="known are: ed25519", path="$.args.algorithm"
        )
    key_id, public = request.key_id.strip(), bytes(request.public_key_bytes)

    def change(tx: WriteTransaction, row: AgentRow) -> str | None:
        chain_agents.put_key(tx, row.agent, KeyRow(key_id, "ed25519", public, tx.now, None))
        return "agent_key_added"

    return _changing(invocation, request.chain_key, request.agent_id, change)


def revoke_key(invocation: Invocation, request: ChainRevokeAgentKeyRequest) -> Apply:
    """Revoke a key; again, it stays revoked since the first time."""
    key_id = request.key_id.strip()

    def change(tx: WriteTransaction, row: AgentRow) -> str | None:
        keys = {each.key_id: each for each in chain_agents.keys_of(tx, row.agent)}
        if key_id not in keys:
            raise NotFound(kind="key", name=key_id, listing="`beetle chain agent` shows an agent's keys")
        if keys[key_id].revoked_at is not None:
            return None
        chain_agents.revoke_key(tx, row.agent, key_id, tx.now)
        return "agent_key_revoked"

    return _changing(invocation, request.chain_key, request.agent_id, change)


def disable(invocation: Invocation, request: ChainDisableAgentRequest) -> Apply:
    """The agent can write no more."""

    def change(tx: WriteTransaction, row: AgentRow) -> str | None:
        if row.status == "revoked":
            return None
        chain_agents.change(tx, row._replace(status="revoked"))
        return "agent_disabled"

    return _changing(invocation, request.chain_key, request.agent_id, change)


def again(invocation: Invocation, request: Any, tx: Reading, first: ChainAgentReport) -> ChainAgentReport:
    """A first report with its record as it is now. One that is gone writes no more, whoever has its id by now."""
    del request
    was = first.agent
    chain = OpenChain(invocation, tx, first.chain_key)
    row = None if chain.row is None else chain_agents.find(tx, chain.row.chain, was.agent_id)
    if chain.row is not None and row is not None:
        now = registering.shown(tx, row)
        same = _was_there(chain.row, first) if was.first_seen_at is None else was.first_seen_at == now.first_seen_at
        if same:
            return replace(first, agent=now)
    return replace(first, agent=replace(was, status="revoked"))


def _was_there(chain: ChainRow, first: ChainAgentReport) -> bool:
    """Whether a chain was there when a report was made."""
    return first.lifecycle is None or chain.created_at <= to_us(datetime.fromisoformat(first.lifecycle.at))


HANDLERS: Mapping[str, Handler] = {
    "chain.agents": Read(agents),
    "chain.get_agent": Read(get_agent),
    "chain.agent_registry": Read(agent_registry),
    "chain.upsert_agent": Write(upsert_agent, again=again),
    "chain.set_agent_description": Write(set_description, again=again),
    "chain.add_agent_alias": Write(add_alias, again=again),
    "chain.add_agent_key": Write(add_key, again=again),
    "chain.revoke_agent_key": Write(revoke_key, again=again),
    "chain.disable_agent": Write(disable, again=again),
}
