"""Sends thoughts, agents and skills of another store: each as any client would, and once.

A thought keeps where it comes from: a relation `caused_by` names its id and index there and stays when the thought is
erased; a tag has its id, time and hash, and goes with the content. What is there already is found by that relation.
"""

from __future__ import annotations

import re
from typing import Any, Final, cast

from beetle.asking import Asked, Asking
from beetle.contracts.chain_agents import ChainAgent, ChainAgentRegistryReport, ChainUpsertAgentRequest
from beetle.contracts.chain_writes import ChainAppendReport, ChainAppendRequest
from beetle.contracts.chains import ChainListReport, ChainTraverseReport
from beetle.contracts.chains import Thought as KnownThought
from beetle.contracts.codec import convert_request
from beetle.contracts.errors import (
    Conflict,
    Forbidden,
    InvalidRequest,
    NotFound,
    PayloadTooLarge,
    PrivacyDenied,
)
from beetle.importing.items import Agent, ChainItem, SkillVersion, SourceLocation, Thought
from beetle.importing.report import FileReport
from beetle.importing.sending import Told
from beetle.importing.sending_skills import SkillSender
from beetle.named_tuple import NamedTuple

ORIGIN: Final = re.compile(r"mentisdb:([0-9A-Za-z-]{1,64})#(\d{1,16})")
REFUSED: Final = (InvalidRequest, PayloadTooLarge, PrivacyDenied, Forbidden, Conflict, NotFound)
"""What is wrong with one item; any other error ends the import."""
KINDS: Final = {
    "CausedBy": "caused_by", "Supports": "supports", "Contradicts": "contradicts", "Supersedes": "supersedes",
}  # fmt: skip
REFERENCE: Final = "References"
TYPES: Final = {"Reframe": "Correction", "Goal": "Plan", "LLMExtracted": "FactLearned"}
"""Types that a chain here does not have; the tag keeps the name."""
PAGE: Final = 500
TAG_CHARS: Final = 256

Arguments = dict[str, Any]


class _Chain(NamedTuple):
    """What of a chain is there: indexes here by ids there and by indexes there, and its agents."""

    ids: dict[str, int]
    indexes: dict[int, int]
    agents: dict[str, ChainAgent]


class ChainSender:
    """Takes the items of an import's files; what is refused of them is told one by one.

    Args:
        sends: whether anything is sent; otherwise it is only checked.
    """

    def __init__(self, sends: bool, told: Told) -> None:
        self._sends = sends
        self._told = told
        self._report = FileReport(path="", format="")
        self._chains: dict[str, _Chain] = {}
        self._skills = SkillSender(sends)
        self._revoked: list[Agent] = []

    def begin(self, report: FileReport) -> None:
        """What comes now is of another file, which this report is about."""
        self._report = report

    def take(self, item: ChainItem) -> Asking[None]:
        """Send one item, unless it is there.

        Raises:
            BeetleError: the store or the daemon cannot go on; what was sent before stays.
        """
        try:
            if isinstance(item, Thought):
                self._report.thoughts += 1
                yield from self._thought(item)
            elif isinstance(item, Agent):
                self._report.agents += 1
                yield from self._agent(item)
            elif isinstance(item, SkillVersion):
                self._report.skill_versions += 1
                is_new = yield from self._skills.version(item)
                self._report.unchanged += is_new is False
                self._report.committed += is_new is True
            else:
                yield from self._skills.standing(item)
        except REFUSED as error:
            self._told(item.place, error.message)

    def finish(self) -> Asking[None]:
        """Disable the agents that are disabled there: until now their thoughts could be appended."""
        for agent in self._revoked:
            if self._sends:
                named = {"chain_key": agent.chain, "agent_id": agent.agent_id}
                yield from self._try(agent.place, "chain.disable_agent", named)
        self._revoked.clear()

    def _try(self, place: SourceLocation | None, operation: str, arguments: Arguments) -> Asking[None]:
        try:
            yield Asked(operation, arguments)
        except REFUSED as error:
            self._told(place, error.message)

    def _thought(self, item: Thought) -> Asking[None]:
        chain = yield from self._chain(item.chain)
        if item.source_id in chain.ids:
            self._report.unchanged += 1
            return
        arguments = self._arguments(item, chain)
        convert_request(arguments, ChainAppendRequest, "$")
        if not self._sends:
            return
        index = cast(ChainAppendReport, (yield Asked("chain.append", arguments))).thought.index
        chain.ids[item.source_id] = chain.indexes[item.position] = index
        self._report.committed += 1

    def _arguments(self, item: Thought, chain: _Chain) -> Arguments:
        refs = [chain.indexes[each] for each in item.refs if each in chain.indexes]
        if self._sends:
            self._left_out("ref to a thought that is not there", len(item.refs) - len(refs))
        relations: list[Arguments] = [{"kind": "caused_by", "ref": f"mentisdb:{item.source_id}#{item.position}"}]
        for link in item.links:
            here = chain.ids.get(link.target) if link.chain in (None, item.chain) else None
            if (kind := KINDS.get(link.kind)) is not None:
                at = {"valid_at": link.valid_at, "invalid_at": link.invalid_at}
                target = {"ref": f"mentisdb:{link.target}"} if here is None else {"index": here}
                relations.append({"kind": kind, **target, **{key: value for key, value in at.items() if value}})
                continue
            if here is not None and here not in refs:
                refs.append(here)
            if link.kind != REFERENCE:
                self._left_out(f"kind of relation {link.kind}, kept as a ref" if here is not None else
                               f"relation {link.kind} to a thought that is not there", 1)  # fmt: skip
        kept = item.kept if item.thought_type not in TYPES else (*item.kept, ("thought_type", item.thought_type))
        origin = f"mentisdb id={item.source_id} at={item.at} sha256={item.digest}"
        said = {
            "agent_id": item.agent_id, "session_id": item.session_id, "confidence": item.confidence,
            "importance": item.importance,
        }  # fmt: skip
        return {
            "chain_key": item.chain,
            "thought_type": TYPES.get(item.thought_type, item.thought_type),
            "role": item.role,
            "content": item.content,
            "tags": [*item.tags, origin, *(f"mentisdb {name}={value}"[:TAG_CHARS] for name, value in kept)],
            "concepts": list(item.concepts),
            "refs": refs,
            "relations": relations,
            **{key: value for key, value in said.items() if value is not None},
        }

    def _left_out(self, what: str, count: int) -> None:
        if count:
            self._report.left_out[what] = self._report.left_out.get(what, 0) + count

    def _chain(self, key: str) -> Asking[_Chain]:
        """What is there of a chain, read once."""
        found = self._chains.get(key)
        if found is None:
            found = self._chains[key] = _Chain({}, {}, {})
            if self._sends and (yield from _is_there(key)):
                yield from _walk(key, found)
                yield from _meet(key, found)
        if key not in self._report.chains:
            self._report.chains.append(key)
        return found

    def _agent(self, item: Agent) -> Asking[None]:
        chain = yield from self._chain(item.chain)
        named = {"chain_key": item.chain, "agent_id": item.agent_id}
        said = {"display_name": item.name, "agent_owner": item.owner, "description": item.description}
        arguments = {**named, **{key: value for key, value in said.items() if value}}
        convert_request(arguments, ChainUpsertAgentRequest, "$")
        known = chain.agents.get(item.agent_id.strip())
        if not self._sends:
            return
        if known is None:
            yield Asked("chain.upsert_agent", arguments)
        changed = yield from self._names_and_keys(item, known, named)
        self._report.committed += known is None or changed
        self._report.unchanged += known is not None and not changed
        if not item.active and (known is None or known.status == "active"):
            self._revoked.append(item)

    def _names_and_keys(self, item: Agent, known: ChainAgent | None, named: Arguments) -> Asking[bool]:
        """Add what the record that is there does not have: nothing of it is replaced."""
        there = () if known is None or known.aliases is None else known.aliases
        names = {each.casefold() for each in (*there, item.name if known is None else known.display_name or "")}
        keys = {} if known is None else {each.key_id: each for each in known.public_keys}
        todo: list[tuple[str, Arguments]] = [
            ("chain.add_agent_alias", {"alias": each}) for each in item.aliases if each.casefold() not in names
        ]
        for key in item.keys:
            if key.key_id not in keys:
                said = {"algorithm": key.algorithm.lower(), "public_key_bytes": list(key.public_key)}
                todo.append(("chain.add_agent_key", {"key_id": key.key_id, **said}))
            if key.revoked and (key.key_id not in keys or keys[key.key_id].revoked_at is None):
                todo.append(("chain.revoke_agent_key", {"key_id": key.key_id}))
        for operation, said in todo:
            yield from self._try(item.place, operation, {**named, **said})
        return bool(todo)


def _is_there(key: str) -> Asking[bool]:
    cursor: str | None = None
    while True:
        page = cast(ChainListReport, (yield Asked("chain.list", _page(cursor))))
        if key in page.chain_keys:
            return True
        if not page.has_more:
            return False
        cursor = page.next_cursor


def _walk(key: str, chain: _Chain) -> Asking[None]:
    asked: Arguments = {"chain_key": key, "chunk_size": PAGE}
    while True:
        page = cast(ChainTraverseReport, (yield Asked("chain.traverse", asked)))
        for each in page.thoughts:
            _known(each, chain)
        if not page.has_more or page.next_cursor is None:
            return
        asked = {"chain_key": key, "chunk_size": PAGE, "anchor_index": page.next_cursor.index}


def _meet(key: str, chain: _Chain) -> Asking[None]:
    cursor: str | None = None
    while True:
        asked = {"chain_key": key, **_page(cursor)}
        page = cast(ChainAgentRegistryReport, (yield Asked("chain.agent_registry", asked)))
        chain.agents.update((each.agent_id, each) for each in page.agents)
        if not page.has_more:
            return
        cursor = page.next_cursor


def _page(cursor: str | None) -> Arguments:
    return {"limit": PAGE} if cursor is None else {"limit": PAGE, "cursor": cursor}


def _known(thought: KnownThought, chain: _Chain) -> None:
    for relation in thought.relations:
        origin = ORIGIN.fullmatch(relation.ref or "")
        if origin is not None:
            chain.ids[origin[1]] = chain.indexes[int(origin[2])] = thought.index
