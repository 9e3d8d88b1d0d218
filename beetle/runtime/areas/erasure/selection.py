"""What is to be forgotten: the turns that a request names, and in every plane what rests on them or says the same.

A caller that is no operator is answered, and erases, as if what it may not see were not there. An operator may know
that something is there, and is told its number; it forgets nothing that it may not see.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, cast

from msgspec import Struct

from beetle.contracts.errors import IntegrityViolation, PrivacyDenied
from beetle.contracts.forgetting import ForgetReason, MemoryForgetRequest
from beetle.contracts.refs import evidence_named, format_ref
from beetle.domain.governance import STRENGTH, normalised
from beetle.domain.lexical import all_words, all_words_expression
from beetle.runtime.areas import sealed_items
from beetle.runtime.areas.evolve import proposals as evolve
from beetle.runtime.areas.facts.long_term import LIVING, Eyes, saying
from beetle.runtime.areas.governance import queue
from beetle.runtime.areas.registry import erasing
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.pipeline.views import Viewer, visible_kinds, withheld
from beetle.runtime.planes import evidence as evidence_plane
from beetle.runtime.planes.long_term import fact_ref
from beetle.runtime.planes.thought_rows import NAME as THOUGHTS
from beetle.runtime.planes.thought_rows import ref_of as thought_ref
from beetle.store import (
    candidates,
    evidence,
    forgetting,
    long_term,
    plane_thoughts,
    policies,
    private,
    recall_index,
    skill_registry,
    skills,
)
from beetle.store.engine.transaction import Reading
from beetle.store.event_places import Matter
from beetle.store.forgetting import AttrText, CitingRecord, SelectedTurn
from beetle.store.recall_index import SearchScope

KINDS = ("shared", "private", "soul", "backend", "operator")
REFS_OF_KEPT = 20


class Sight(NamedTuple):
    """What the caller sees: kinds of messages, whether masked ones too, private facts, the sealed plane.

    `told`: whether it may know how much there is that it does not see.
    """

    kinds: tuple[str, ...]
    masked: bool
    private: bool
    sealed: bool
    told: bool

    @property
    def all(self) -> bool:
        """Whether nothing of the space is hidden."""
        return self.masked and self.sealed and set(KINDS) <= set(self.kinds)


class Selection(Struct):
    """What goes, by plane and key, under the names that the caller knows it by; what stays; what is hidden."""

    space: int
    sight: Sight
    turns: dict[int, list[SelectedTurn]] = {}
    keys: dict[str, list[int]] = {}
    names: list[Any] = []
    counts: dict[str, int] = {}
    refs: list[str] = []
    stays: dict[tuple[str, ForgetReason], list[str]] = {}
    hidden: int = 0
    matter: Matter = "shared"

    def add(self, plane: str, counted_as: str, key: int, *name: Any) -> None:
        """A record goes."""
        self.keys.setdefault(plane, []).append(key)
        self.counts[counted_as] = self.counts.get(counted_as, 0) + 1
        self.names.append((plane, *name))

    def keep(self, plane: str, reason: ForgetReason, ref: str = "") -> None:
        """A record stays."""
        self.stays.setdefault((plane, reason), []).append(ref)

    def hide(self) -> None:
        """A record would go that the caller may not see."""
        self.hidden += self.sight.told

    def touch(self, matter: Matter) -> None:
        """What is told of it is no less private than what it touches."""
        order: tuple[Matter, ...] = ("shared", "private", "sealed")
        if order.index(matter) > order.index(self.matter):
            self.matter = matter


def sight_of(invocation: Invocation) -> Sight:
    """What a caller sees of the space, through all its views."""
    viewers = invocation.viewers
    kinds = tuple(kind for kind in KINDS if any(kind in visible_kinds(viewer) for viewer in viewers))
    raw = any(viewer.view == "raw_owner" for viewer in viewers)
    return Sight(kinds, raw, invocation.sees_private, invocation.reads_private, invocation.caller.is_operator)


class _Words(NamedTuple):
    """A query's words, as texts are searched for them."""

    words: tuple[str, ...]

    def are_in(self, text: str) -> bool:
        """Whether a text holds every one of them."""
        plain = normalised(text)
        return bool(self.words) and all(word in plain for word in self.words)


def select(invocation: Invocation, tx: Reading, request: MemoryForgetRequest) -> Selection:
    """Find what a request is about. Looks through the space."""
    space = evidence.find_space(tx, invocation.space_id)
    found = Selection(space or 0, sight_of(invocation))
    if space is None:
        return found
    words = _Words(tuple(normalised(word) for word in all_words(request.query or "")))
    turns = _turns(invocation, tx, request, found, words)
    _take_turns(tx, found, turns)
    gone = {turn.turn for turn in turns}
    resting, shared_with = _resting(tx, space, gone)
    facts, named_skills = _facts(invocation, tx, request, found, resting, shared_with), set[str]()
    _skills(tx, request, found, words, resting, shared_with, named_skills)
    _candidates(invocation, tx, request, found, words, gone)
    _proposals(tx, request, found, words, gone, facts | named_skills)
    _private(invocation, tx, request, found, words, resting)
    _tools(tx, request, found, words, gone)
    _thoughts(tx, request, found, words, resting)
    _uploaded(invocation, tx, request, found, words)
    for text in policies_of(tx, space):
        if request.whole_space or words.are_in(text):
            found.keep("policies", "policy")
    return found


def _thoughts(
    tx: Reading, request: MemoryForgetRequest, found: Selection, words: _Words, resting: Mapping[str, CitingRecord]
) -> None:
    """Thoughts that hold the words, whose writer is the subject, or that relate to evidence that goes and to none that
    stays; with the space what is said of agents too.
    """
    if request.conversation is not None and not any(each.startswith(f"{THOUGHTS}:") for each in resting):
        return
    for each in plane_thoughts.said(tx, found.space):
        # By its words nothing is told of what may not be seen.
        seen = not each.masked or found.sight.masked
        by = request.subject is not None and request.subject in (each.agent_id, each.agent_name)
        ref = thought_ref(each.chain_key, each.position)
        if request.whole_space or (seen and (by or words.are_in(each.text) or ref in resting)):
            found.add("thought", "thoughts", each.thought, each.chain_key, each.position)
            found.refs.append(ref)
    for agent, chain_key, agent_id in plane_thoughts.agents(tx, found.space) if request.whole_space else ():
        found.add("chain_agent", "chain_agents", agent, chain_key, agent_id)


def policies_of(tx: Reading, space: int) -> list[str]:
    """What each policy of a space says."""
    return [f"{each.topic or ''} {each.reason or ''}" for each in policies.policies(tx, space)]


# Evidence.


def _turns(
    invocation: Invocation, tx: Reading, request: MemoryForgetRequest, found: Selection, words: _Words
) -> list[SelectedTurn]:
    if request.conversation is not None:
        where = request.conversation
        named = evidence.find_conversation(tx, found.space, where.channel_id, where.conversation_id)
        return [] if named is None else forgetting.turns_of_conversation(tx, named.conversation)
    if request.whole_space:
        keys = forgetting.conversations(tx, found.space)
        return [turn for key in keys for turn in forgetting.turns_of_conversation(tx, key)]
    if request.subject is not None:
        rows = forgetting.messages_of_subject(tx, found.space, request.subject)
        turns = {turn for turn, visibility, state in rows if _is_seen(found.sight, visibility, state)}
    else:
        turns = _turns_saying(tx, request, found, words) | _turns_with_attrs(invocation, tx, found, words)
    return forgetting.turns_by_key(tx, json.dumps(sorted(turns)))


def _is_seen(sight: Sight, visibility: str, state: str) -> bool:
    return visibility in sight.kinds and state != "deleted" and (state == "live" or sight.masked)


def _turns_saying(tx: Reading, request: MemoryForgetRequest, found: Selection, words: _Words) -> set[int]:
    """The turns of which a message that the caller sees holds every word."""
    expression = all_words_expression(request.query or "")
    if expression is None:
        return set()
    scope = SearchScope(found.space, evidence_plane.TABLES, private="private" in found.sight.kinds)
    keys = [key for _, key in recall_index.matching(tx, expression, scope)]
    turns = {turn for turn in (forgetting.turn_of(tx, key) for key in keys) if turn is not None}
    for turn, visibility, state, content in forgetting.unindexed(tx, found.space):
        if _is_seen(found.sight, visibility, state) and words.are_in(content):
            turns.add(turn)
    return turns


def _turns_with_attrs(invocation: Invocation, tx: Reading, found: Selection, words: _Words) -> set[int]:
    """The turns of which an attr that the caller sees holds every word: hosts keep a message's own form there."""
    turns: set[int] = set()
    for conversation in forgetting.conversations(tx, found.space) if words.words else ():
        invocation.check("the attrs were looked through")
        for attr in forgetting.attrs(tx, conversation):
            if words.are_in(_said_in(attr.value)) and any(_shows(viewer, attr) for viewer in invocation.viewers):
                turns.add(attr.turn)
    return turns


def _shows(viewer: Viewer, attr: AttrText) -> bool:
    """Whether a view shows an attr: its own views have it, and what it hangs on is seen whole."""
    if viewer.view == "raw_owner":
        return True
    if viewer.view not in attr.views.split(",") or (viewer.view == "export" and not attr.export_allowed):
        return False
    hung_on = (each.split(" ") for each in attr.messages.split(","))
    return all(withheld(visibility, state, viewer) is None for visibility, state in hung_on)


def _said_in(value: str) -> str:
    """What a value says: of JSON the texts and numbers in it, for its keys stand in every one of its kind."""
    if not value.lstrip().startswith(("{", "[")):
        return value
    try:
        return "\n".join(_leaves(json.loads(value)))
    except (ValueError, RecursionError):
        return value


def _leaves(data: Any) -> Iterator[str]:
    if isinstance(data, dict):
        for each in cast("dict[str, Any]", data).values():
            yield from _leaves(each)
    elif isinstance(data, list):
        for each in cast("list[Any]", data):
            yield from _leaves(each)
    elif isinstance(data, str | int | float) and not isinstance(data, bool):
        yield str(data)


def _take_turns(tx: Reading, found: Selection, turns: list[SelectedTurn]) -> None:
    """Note the turns by conversation, and count the messages that go and those that the caller may not see."""
    sight = found.sight
    for turn in turns:
        seen = 0
        for each in turn.messages.split(","):
            visibility, state = each.split(" ")
            if state == "deleted":
                continue
            if visibility not in sight.kinds:
                found.hide()
                continue
            seen += 1
            if visibility != "shared":
                found.touch("private" if visibility == "private" else "sealed")
        found.turns.setdefault(turn.conversation, []).append(turn)
        if seen:
            found.counts["turns"] = found.counts.get("turns", 0) + 1
            found.counts["messages"] = found.counts.get("messages", 0) + seen
    for conversation, inside in found.turns.items():
        shown = [(turn.turn_id, _shown(turn.messages, sight)) for turn in inside]
        found.names.append((forgetting.names_of(tx, conversation), [each for each in shown if each[1]]))


def _shown(messages: str, sight: Sight) -> str:
    return ",".join(each for each in messages.split(",") if each.split(" ")[0] in sight.kinds)


# What rests on it.


def _resting(tx: Reading, space: int, gone: set[int]) -> tuple[dict[str, CitingRecord], dict[str, CitingRecord]]:
    """By their derived refs: the records that rest on these turns alone, and those that rest on others too."""
    alone: dict[str, CitingRecord] = {}
    others: dict[str, CitingRecord] = {}
    if not gone:
        return alone, others
    cited: dict[str, list[CitingRecord]] = {}
    for each in forgetting.citing(tx, space):
        # A skill's refs name its revision: the record is the skill.
        owner = each.derived if each.skill is None else f"skill {each.skill}"
        cited.setdefault(owner, []).append(each)
    for rows in cited.values():
        inside = [row.turn in gone for row in rows]
        if any(inside):
            (alone if all(inside) else others)[rows[0].derived] = rows[0]
    return alone, others


def _facts(
    invocation: Invocation,
    tx: Reading,
    request: MemoryForgetRequest,
    found: Selection,
    resting: dict[str, CitingRecord],
    others: dict[str, CitingRecord],
) -> set[str]:
    """The facts that go; their refs."""
    keys = {each.fact for each in resting.values() if each.fact is not None}
    if request.whole_space:
        keys.update(forgetting.facts(tx, found.space))
    elif request.query is not None:
        eyes = Eyes(found.sight.private, audit=False, key=invocation.key)
        keys.update(row.fact for row in saying(tx, found.space, request.query, eyes, LIVING, ever=True))
    mine = STRENGTH["operator" if invocation.caller.is_operator else "user_asserted"]
    gone: set[str] = set()
    for row in sorted(long_term.facts_by_key(tx, keys), key=lambda row: row.record_id):
        if row.state == "deleted":
            continue
        if row.visibility == "private" and not found.sight.private:
            found.hide()
        elif STRENGTH[row.authority] > mine:
            found.keep("facts", "weaker_authority", fact_ref(row))
        else:
            found.add("fact", "facts", row.fact, row.record_id, row.revision)
            found.touch("shared" if row.visibility == "shared" else "private")
            found.refs.append(fact_ref(row))
            gone.add(fact_ref(row))
    for row in long_term.facts_by_key(tx, {each.fact for each in others.values() if each.fact is not None} - keys):
        if row.state != "deleted" and (row.visibility == "shared" or found.sight.private):
            found.keep("facts", "cited_elsewhere", fact_ref(row))
    return gone


def _skills(
    tx: Reading,
    request: MemoryForgetRequest,
    found: Selection,
    words: _Words,
    resting: dict[str, CitingRecord],
    others: dict[str, CitingRecord],
    gone: set[str],
) -> None:
    """The skills that go, by their full names: also those of which any revision holds the words."""
    keys = {each.skill for each in resting.values() if each.skill is not None}
    shared = {each.skill for each in others.values() if each.skill is not None}
    for skill, name, revision in forgetting.skills(tx, found.space):
        if skill in keys or request.whole_space or words.are_in(forgetting.skill_texts(tx, skill)):
            found.add("skill", "skills", skill, name, revision)
            found.refs.append(format_ref("procedural", name))
            gone.add(name)
        elif skill in shared:
            found.keep("skills", "cited_elsewhere", format_ref("procedural", name))


def _candidates(
    invocation: Invocation, tx: Reading, request: MemoryForgetRequest, found: Selection, words: _Words, gone: set[int]
) -> None:
    mine = STRENGTH["operator" if invocation.caller.is_operator else "user_asserted"]
    for row in candidates.every(tx, found.space):
        level = queue.level_of(row.target, row.privacy)
        cites = _cites(tx, found.space, row.evidence, gone)
        if not (level == "shared" or (found.sight.sealed if level == "sealed" else found.sight.private)):
            # By its words nothing is told of what may not be seen, not even that it has them.
            if request.whole_space or cites:
                found.hide()
            continue
        body = queue.body_of(invocation, tx, found.space, row) or candidates.NOTHING
        if not (
            request.whole_space or cites or words.are_in(f"{body.topic}\n{body.content}\n{' '.join(body.keywords)}")
        ):
            continue
        if STRENGTH[row.authority] > mine and not cites:
            found.keep("candidates", "weaker_authority")
        else:
            found.add("candidate", "candidates", row.candidate, row.candidate_id, row.at)
            found.touch(level)


def _cites(tx: Reading, space: int, refs: Iterable[str], gone: set[int]) -> bool:
    if not gone:
        return False
    named = (evidence_named(text) for text in refs)
    return any(ref is not None and skills.turn_of_ref(tx, space, ref) in gone for ref in named)


def _proposals(
    tx: Reading,
    request: MemoryForgetRequest,
    found: Selection,
    words: _Words,
    gone: set[int],
    targets: set[str],
) -> None:
    for row, text in evolve.open_texts(tx, found.space):
        said = "\n".join([*(str(value) for value in text.change.values()), text.rationale])
        linked = request.whole_space or row.target in targets or _cites(tx, found.space, text.evidence, gone)
        if not (linked or words.are_in(said)):
            continue
        if evolve.is_seen(tx, found.space, row, private=found.sight.private):
            found.add("proposal", "proposals", row.proposal, row.proposal_id)
            found.touch(evolve.matter_of(row))
        elif linked:
            found.hide()


def _private(
    invocation: Invocation,
    tx: Reading,
    request: MemoryForgetRequest,
    found: Selection,
    words: _Words,
    resting: dict[str, CitingRecord],
) -> None:
    """The sealed items that go; what they say is read only for who may read it."""
    after = 0
    while rows := private.list_items(tx, found.space, after, None, 500):
        after = rows[-1].item
        for row in rows:
            ref = format_ref(row.plane, row.record_id)
            if found.sight.sealed and request.query is not None and ref not in resting:
                try:
                    if not words.are_in(sealed_items.content_of(invocation, tx, found.space, row)):
                        continue
                except (IntegrityViolation, PrivacyDenied):
                    found.keep("private_items", "unreadable", ref)
                    continue
            elif not (request.whole_space or ref in resting):
                continue
            if found.sight.sealed:
                found.add("private", "private_items", row.item, row.record_id)
                found.touch("sealed")
            else:
                found.hide()


def _uploaded(
    invocation: Invocation, tx: Reading, request: MemoryForgetRequest, found: Selection, words: _Words
) -> None:
    """Uploaded skills rest on no turn: with the space all go, by words each of which any version holds them."""
    if not request.whole_space and not words.words:
        return
    for row in skill_registry.every_skill(tx, found.space):
        invocation.check("the uploaded skills were looked through")
        if request.whole_space or words.are_in(erasing.texts_of(tx, row)):
            found.add("uploaded", "uploaded_skills", row.skill, row.skill_id, row.versions)


def _tools(tx: Reading, request: MemoryForgetRequest, found: Selection, words: _Words, gone: set[int]) -> None:
    """Briefs of tools that were used in a turn that goes, or that hold the words; with the space its registries."""
    for each in forgetting.briefs(tx, found.space):
        if request.whole_space or each.turn in gone or words.are_in(each.brief):
            found.add("brief", "tool_briefs", each.observation, each.tool_id, each.turn_id)
    for registry, name, revision in forgetting.registries(tx, found.space) if request.whole_space else ():
        found.add("registry", "tool_registries", registry, name, revision)
