"""chain.search, list, head, genesis, get_thought, recent_context, memory_markdown."""

from __future__ import annotations

from collections.abc import Mapping

from beetle.contracts.chains import (
    DEFAULT_CHAIN,
    ChainGenesisRequest,
    ChainGetThoughtRequest,
    ChainHeadReport,
    ChainHeadRequest,
    ChainListReport,
    ChainListRequest,
    ChainMemoryMarkdownReport,
    ChainMemoryMarkdownRequest,
    ChainRecentContextReport,
    ChainRecentContextRequest,
    ChainSearchReport,
    ChainSearchRequest,
    ChainThoughtReport,
)
from beetle.domain.chains import rendering
from beetle.domain.chains.matching import Filter
from beetle.runtime.areas.chains.filtering import Wanted, filter_of, wanted_in
from beetle.runtime.areas.chains.places import OpenChain, ThoughtLocator, location, summary
from beetle.runtime.areas.chains.verifying import is_whole
from beetle.runtime.pipeline.cursor import read_cursor
from beetle.runtime.pipeline.handlers import Handler, Read
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.pipeline.paging import Room, page
from beetle.store import chains, evidence
from beetle.store.engine.transaction import Reading
from beetle.store.thoughts import ThoughtRow


def search(invocation: Invocation, request: ChainSearchRequest, tx: Reading) -> ChainSearchReport:
    """The newest that fit, in append order."""
    chain = OpenChain(invocation, tx, request.chain_key)
    rows, cut = _newest(invocation, wanted_in(chain, filter_of(request)), request.limit)
    return ChainSearchReport(thoughts=tuple(map(chain.shown, rows)), profile_budget_applied=cut)


def _newest(invocation: Invocation, wanted: Wanted, limit: int | None) -> tuple[list[ThoughtRow], bool]:
    """The last `limit` thoughts that fit, as many as an answer has room for, in append order; whether older ones had
    no room.
    """
    room, chain = Room(invocation), wanted.chain
    found: list[ThoughtRow] = []
    for row in wanted.matches(0, chain.length, backwards=True):
        if len(found) == limit or not room.takes(chain.shown(row)):
            break
        found.append(row)
    return found[::-1], room.full


def list_chains(invocation: Invocation, request: ChainListRequest, tx: Reading) -> ChainListReport:
    """By key; the cursor stands at a key."""
    space = evidence.find_space(tx, invocation.space_id)
    bound_to = invocation.bound()
    after = "" if request.cursor is None else read_cursor(invocation.key, bound_to, request.cursor)
    rows = chains.listed(tx, space, after, request.limit + 1)
    found = page(
        invocation,
        rows,
        request.limit,
        lambda row: summary(invocation, tx, row),
        bound_to=bound_to,
        place=lambda row: row.chain_key,
    )
    return ChainListReport(
        default_chain_key=DEFAULT_CHAIN,
        chain_keys=tuple(each.chain_key for each in found.entries),
        chains=found.entries,
        has_more=found.has_more,
        next_cursor=found.next_cursor,
        profile_budget_applied=found.cut,
    )


def head(invocation: Invocation, request: ChainHeadRequest, tx: Reading) -> ChainHeadReport:
    """The newest thought, and whether the chain ends as the event log tells."""
    chain = OpenChain(invocation, tx, request.chain_key)
    latest = chain.at(chain.length - 1) if chain.length else None
    sound, begin = (True, 0) if chain.row is None else is_whole(invocation, tx, chain, chain.row)
    return ChainHeadReport(
        chain_key=chain.key,
        thought_count=chain.length,
        head_hash=None if chain.row is None else chain.row.head.hex() or None,
        latest_thought=None if latest is None else chain.shown(latest),
        integrity_ok=sound,
        storage_location=location(invocation, chain.key, "binary" if chain.row is None else chain.row.adapter),
        verified_from=begin,
    )


def genesis(invocation: Invocation, request: ChainGenesisRequest, tx: Reading) -> ChainThoughtReport:
    """The first thought."""
    chain = OpenChain(invocation, tx, request.chain_key)
    first = chain.at(0) if chain.length else None
    return ChainThoughtReport(chain_key=chain.key, thought=None if first is None else chain.shown(first))


def get_thought(invocation: Invocation, request: ChainGetThoughtRequest, tx: Reading) -> ChainThoughtReport:
    """One thought."""
    chain = OpenChain(invocation, tx, request.chain_key)
    found = chain.located(ThoughtLocator(request.thought_id, request.thought_hash, request.thought_index))
    return ChainThoughtReport(chain_key=chain.key, thought=chain.shown(found))


def recent_context(invocation: Invocation, request: ChainRecentContextRequest, tx: Reading) -> ChainRecentContextReport:
    """The latest thoughts as a prompt."""
    chain = OpenChain(invocation, tx, request.chain_key)
    wanted = wanted_in(chain, Filter(agent_ids=() if request.agent_id is None else (request.agent_id.strip(),)))
    rows, cut = _newest(invocation, wanted, request.last_n)
    return ChainRecentContextReport(
        prompt=rendering.recent_context([chain.said(row) for row in rows]), profile_budget_applied=cut
    )


def memory_markdown(
    invocation: Invocation, request: ChainMemoryMarkdownRequest, tx: Reading
) -> ChainMemoryMarkdownReport:
    """The thoughts by sections."""
    chain = OpenChain(invocation, tx, request.chain_key)
    rows, cut = _newest(invocation, wanted_in(chain, filter_of(request)), request.limit)
    markdown = rendering.memory_markdown(chain.key, map(chain.said, rows))
    return ChainMemoryMarkdownReport(markdown=markdown, profile_budget_applied=cut)


HANDLERS: Mapping[str, Handler] = {
    "chain.search": Read(search),
    "chain.list": Read(list_chains),
    "chain.head": Read(head),
    "chain.genesis": Read(genesis),
    "chain.get_thought": Read(get_thought),
    "chain.recent_context": Read(recent_context),
    "chain.memory_markdown": Read(memory_markdown),
}
