"""What a memory space ought to hold, in plain Python: no store, no index, no clock of its own."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace
from urllib.parse import quote, unquote

DAY_US = 86_400_000_000
MINUTE_US = 60_000_000
PREFIX = "runtime_skill__"
ERASED = "deleted"


@dataclass(eq=False)
class Message:
    message_id: str
    role: str
    visibility: str
    word: str
    state: str = "live"

    @property
    def text(self) -> str:
        return f"said {self.word} here\nkeep {self.word} so"

    def seen_in(self, view: str, own_agent: bool) -> bool:
        """Whether a view shows the content."""
        if self.state == ERASED:
            return False
        if view == "raw_owner":
            return True
        if self.state != "live":
            return False
        if view == "operator_audit":
            return self.visibility in ("backend", "operator")
        return self.visibility == "shared" or (self.visibility, view, own_agent) == ("private", "model_context", True)


@dataclass(eq=False)
class Turn:
    turn_id: str
    at: str
    messages: list[Message]
    label: str | None = None
    archived: bool = False

    @property
    def is_erased(self) -> bool:
        return any(each.state == ERASED for each in self.messages)


@dataclass(eq=False)
class Skill:
    name: str
    words: list[str]
    topic: str
    title: str
    summary: str
    citations: tuple[str, ...] = ()
    authority: str = "operator"
    enabled: bool = True
    texts: list[tuple[str, str, str, str, tuple[str, ...]]] = field(default_factory=list)

    @property
    def ref(self) -> str:
        return f"procedural:{self.name}"

    @property
    def revision(self) -> int:
        return len(self.words)

    @property
    def content(self) -> str:
        return self.words[-1]

    @property
    def text(self) -> str:
        """What is searched and quoted of it, but for its title."""
        return f"{self.summary}\n{self.content}"


@dataclass(eq=False)
class Fact:
    """`said` are the texts that it had; `hidden` the places of those that were private when it last said so."""

    number: int
    ref: str
    target: str
    kind: str
    topic: str
    content: str
    authority: str
    private: bool
    state: str = "current"
    revision: int = 1
    superseded_by: str | None = None
    confidence: float | None = None
    said: list[tuple[str, str]] = field(default_factory=list)
    hidden: set[int] = field(default_factory=set)

    def key(self) -> tuple[str, str, str]:
        return self.target, self.kind, self.topic


@dataclass(eq=False)
class Item:
    """A private record."""

    record_id: str
    plane: str
    privacy: str
    content: str
    authority: str
    candidate_id: str
    state: str


@dataclass(frozen=True)
class Claim:
    """A candidate as it is judged. A sealed one out of the queue has neither topic nor content of its own."""

    candidate_id: str
    authority: str
    target: str
    privacy: str
    content: str
    kind: str = "fact"
    topic: str = ""
    evidence: tuple[str, ...] = ()
    chat: str = "c1"
    record_id: str | None = None
    confidence: float | None = None
    by_operator: bool = True


@dataclass(eq=False)
class Waiting:
    claim: Claim
    reason: str
    at: int


@dataclass(frozen=True)
class Policy:
    action: str
    kind: str | None
    topic: str | None
    chat: str | None

    def over(self) -> tuple[str | None, str | None, str | None]:
        return self.kind, self.topic, self.chat

    def acts_on(self, claim: Claim) -> bool:
        topic = None if claim.record_id is not None else claim.topic or None
        return (
            self.kind in (None, claim.kind) and self.chat in (None, claim.chat) and self.topic in (None, topic)
        )  # fmt: skip


@dataclass(eq=False)
class Proposal:
    """What someone would have changed. `base` is the revision of its target that it was made for."""

    proposal_id: str
    kind: str
    target: str | None
    base: int | None
    change: dict[str, str]
    rationale: str
    evidence: tuple[str, ...]
    private: bool
    chat: str
    at: int
    state: str = "open"
    outcome: str | None = None

    @property
    def is_open(self) -> bool:
        return self.state == "open"

    def holds(self, word: str) -> bool:
        """Whether a word stands in what it would write or in why."""
        return any(word in text.split() for text in (*self.change.values(), self.rationale))

    def close(self, state: str, outcome: str) -> None:
        """It is decided, and its text is gone."""
        self.state, self.outcome, self.change, self.rationale, self.evidence = state, outcome, {}, "", ()

    def drop(self, why: str) -> None:
        self.close("dropped", why)


@dataclass(eq=False)
class Registry:
    """What a host registered of its tools: tool id to the fingerprint of its schema."""

    fingerprint: str
    scope: str
    tools: dict[str, str]
    revision: int = 1


@dataclass(frozen=True)
class Use:
    """One observed use of a tool. `turn` is (conversation, turn id) of one that is there; `named` what the host said.

    `awaited` is the conversation, or the chat, in which a turn that is not there yet is to come.
    """

    registry_id: str
    scope: str
    tool_id: str
    schema: str
    outcome: str
    turn: tuple[str, str] | None
    named: str | None
    at: int
    by: str
    awaited: str


@dataclass
class Space:
    """One owner's memory. `derived` joins a record to the evidence that was there when it was made."""

    conversations: dict[str, dict[str, Turn]] = field(default_factory=dict)
    skills: dict[str, Skill] = field(default_factory=dict)
    facts: dict[str, Fact] = field(default_factory=dict)
    items: dict[str, Item] = field(default_factory=dict)
    waiting: list[Waiting] = field(default_factory=list)
    policies: list[Policy] = field(default_factory=list)
    derived: list[tuple[str, str, str, tuple[str, str] | None]] = field(default_factory=list)
    proposals: list[Proposal] = field(default_factory=list)
    registries: dict[str, Registry] = field(default_factory=dict)
    uses: list[Use] = field(default_factory=list)
    jobs: dict[tuple[str, str], str] = field(default_factory=dict)
    remembered: dict[tuple[str, str], str] = field(default_factory=dict)
    numbers: itertools.count[int] = field(default_factory=itertools.count)
    removed: dict[tuple[str, str, bool], str] = field(default_factory=dict)
    """Who took a value away: by topic or none, content, and whether it was private."""

    # Evidence

    def turn_of(self, ref: str) -> tuple[str, Turn] | None:
        """The conversation and the turn that an evidence ref names."""
        plane, _, rest = ref.partition(":")
        parts = [unquote(each) for each in rest.split("/")]
        if plane != "evidence" or len(parts) < 3:
            return None
        found = self.conversations.get(parts[1], {}).get(parts[2])
        return None if found is None else (parts[1], found)

    def messages_of(self, ref: str) -> list[Message]:
        """The messages that an evidence ref names: of a turn all of them."""
        found = self.turn_of(ref)
        if found is None:
            return []
        _, _, rest = ref.partition(":")
        message = rest.split("/")[3:]
        return [each for each in found[1].messages if not message or each.message_id == message[0]]

    def linked(self, ref: str) -> tuple[str, str] | None:
        """The (conversation, turn) that a derived ref is tied to: none where what it names is not there."""
        found = self.turn_of(ref)
        return None if found is None or not self.messages_of(ref) else (found[0], found[1].turn_id)

    def derive(self, derived: str, evidence: str, relation: str = "cites") -> bool:
        """Join a record to its source; whether that is new."""
        if any(each[:3] == (derived, evidence, relation) for each in self.derived):
            return False
        self.derived.append((derived, evidence, relation, self.linked(evidence)))
        return True

    def derived_from(self, conversation: str, turn_id: str) -> set[tuple[str, str, str]]:
        """What was made of a turn."""
        return {each[:3] for each in self.derived if each[3] == (conversation, turn_id)}

    def current(self, who: str, chat: str) -> tuple[str | None, str]:
        """The conversation that a caller's chat stands for, and by what it is known."""
        own = self.remembered.get((who, chat))
        bearer = chat if chat in self.conversations else None
        if own is not None:
            if bearer is not None and bearer != own:
                return None, "untrusted"
            found, by = own, "remembered"
        elif bearer is None:
            return None, "nothing"
        elif any(c == chat and other != bearer for (_, c), other in self.remembered.items()):
            return None, "untrusted"
        else:
            found, by = bearer, "chat_id"
        live = any(m.state == "live" for turn in self.conversations[found].values() for m in turn.messages)
        return (found, by) if live else (None, "withheld")

    # Proposals

    def sees(self, proposal: Proposal, private: bool) -> bool:
        """Whether who sees private facts, or not, knows of a proposal."""
        fact = self.facts.get(proposal.target or "")
        return private or not (proposal.private or (fact is not None and fact.private))

    def drop_about(self, target: str) -> None:
        """What a proposal is about was erased."""
        for each in self.proposals:
            if each.is_open and each.target == target:
                each.drop("target_erased")

    def drop_proposals_citing(self, conversation: str, turn_ids: set[str]) -> None:
        """What a proposal rests on was erased."""
        for each in self.proposals:
            named = [self.turn_of(ref) for ref in each.evidence]
            if each.is_open and any(at and at[0] == conversation and at[1].turn_id in turn_ids for at in named):
                each.drop("evidence_erased")

    # Tools

    def tie(self, conversation: str, turn_ids: set[str], by: str, chat: str) -> None:
        """Turns were committed that observations had named before."""
        for place, use in enumerate(self.uses):
            named = use.awaited == conversation or (use.by, use.awaited) == (by, chat)
            if use.turn is None and use.named in turn_ids and named:
                self.uses[place] = replace(use, turn=(conversation, use.named or ""))

    def speaks(self, use: Use, own_agent: bool) -> bool:
        """Whether an observation may be counted: its turn is whole, and holds nothing that is withheld."""
        if use.turn is None:
            return True
        closed = ("soul",) if own_agent else ("private", "soul")
        messages = self.conversations[use.turn[0]][use.turn[1]].messages
        return all(each.state == "live" and each.visibility not in closed for each in messages)

    def hints(self, own_agent: bool) -> set[tuple[str, str]]:
        """(registry, tool) of what is known by experience, without refs: in registries whose scope is global."""
        return {
            (name, tool)
            for name, registry in self.registries.items()
            if registry.scope == "global"
            for tool, schema in registry.tools.items()
            if self._sittings(name, registry.scope, tool, schema, own_agent) >= 2
        }

    def _sittings(self, name: str, scope: str, tool: str, schema: str, own_agent: bool) -> int:
        about = (name, scope, tool, schema)
        uses = [u for u in self.uses if (u.registry_id, u.scope, u.tool_id, u.schema) == about]
        good = [u for u in [u for u in uses if self.speaks(u, own_agent)][-32:] if u.outcome == "succeeded"]
        turns: dict[object, int] = {}
        for use in good:
            if use.named is not None:
                turns.setdefault(use.turn or use.named, use.at)
        starts = list(turns.values())
        for use in good:
            if use.named is None and all(abs(use.at - start) >= MINUTE_US for start in starts):
                starts.append(use.at)
        return len(starts)

    # What is found

    def hits(self, word: str, own_agent: bool) -> set[str]:
        """Refs of what a model's view finds for a word."""
        found: set[str] = set()
        for conversation, turns in self.conversations.items():
            for turn in turns.values():
                found |= {
                    f"evidence:local/{quote(conversation, safe='')}/{turn.turn_id}/{each.message_id}"
                    for each in turn.messages
                    if each.word == word and each.seen_in("model_context", own_agent)
                    and each.visibility in ("shared", "private")
                }  # fmt: skip
        found |= {each.ref for each in self.skills.values() if each.enabled and word in each.text.split()}
        found |= {
            each.ref
            for each in self.facts.values()
            if each.state == "current" and word in each.content.split() and (own_agent or not each.private)
        }
        return found

    def knows(self, derived: str, private: bool, sealed: bool) -> bool:
        """Whether who sees private facts, or the private plane, or not, knows of a record by its ref."""
        if derived.startswith(("private_garden:", "soul_candidate:")):
            return sealed
        facts = (fact for fact in self.facts.values() if fact.ref == derived)
        return private or not any(fact.private for fact in facts)

    def counts(self, private: bool = True, sealed: bool = True) -> dict[str, int]:
        """Rows by plane, as memory.inspect counts them."""
        turns = [turn for each in self.conversations.values() for turn in each.values()]
        messages = [message for turn in turns for message in turn.messages]
        states = [fact.state for fact in self.facts.values() if private or not fact.private]
        open_to_all = ("public_runtime", "shared_with_subject")
        waiting = [
            each
            for each in self.waiting
            if (private or each.claim.privacy in open_to_all)
            and (sealed or each.claim.target not in ("private_garden", "soul_candidate"))
        ]
        return {
            "conversations": len(self.conversations),
            "turns": len(turns),
            "messages": len(messages),
            "masked_messages": sum(each.state == "masked" for each in messages),
            "deleted_messages": sum(each.state == ERASED for each in messages),
            "runtime_skills": len(self.skills),
            "skill_revisions": sum(each.revision for each in self.skills.values()),
            "derived_refs": sum(self.knows(each[0], private, sealed) for each in self.derived),
            "facts": states.count("current"),
            "stale_facts": states.count("stale"),
            "superseded_facts": states.count("superseded"),
            "deleted_facts": states.count("deleted"),
            "waiting_candidates": len(waiting),
        }
