"""Taking a snapshot or an archive in: all of it in one transaction, or nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from beetle.contracts.continuity import ImportMode
from beetle.contracts.continuity_records import CandidateRecord, FactRecord, FactTextRecord, Here, OfFact, Source
from beetle.contracts.errors import Conflict, IntegrityViolation, PrivacyDenied, StoreBudgetExceeded
from beetle.contracts.refs import evidence_named, format_ref
from beetle.domain.continuity import FETCH_AGAIN, counts_of
from beetle.domain.digest import keyed
from beetle.named_tuple import NamedTuple
from beetle.runtime.areas import receipts
from beetle.runtime.areas.capture.restoring import restore
from beetle.runtime.areas.chains import taking_in as chains_in
from beetle.runtime.areas.chunks import taking_in as chunks_in
from beetle.runtime.areas.continuity import clear
from beetle.runtime.areas.continuity.export import opener
from beetle.runtime.areas.continuity.gather import gather
from beetle.runtime.areas.continuity.prepare import Prepared, PreparedConversation
from beetle.runtime.areas.evidence.alias import remember
from beetle.runtime.areas.facts import facts
from beetle.runtime.areas.governance import queue
from beetle.runtime.areas.governance.targets import Claim
from beetle.runtime.areas.registry import taking_in
from beetle.runtime.areas.skills import procedural
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.planes import evidence as evidence_plane
from beetle.runtime.planes import sealed_items
from beetle.runtime.planes.gathering import Chat, Gathering, Where
from beetle.runtime.planes.long_term import content_mac, index_rows, topic_mac
from beetle.store import (
    candidates,
    continuity_write,
    evidence,
    evidence_lifecycle,
    long_term,
    policies,
    private,
    repair,
    skills,
    tool_observations,
    transcripts,
)
from beetle.store.continuity_write import Derived, Digests
from beetle.store.engine.connection import PAGE_SIZE
from beetle.store.engine.write_transaction import WriteTransaction
from beetle.store.evidence import ConversationRow
from beetle.store.policies import PolicyRow
from beetle.store.skills import RevisionRow
from beetle.store.tool_observations import Brief, ObservationRow

NEVER_CARRIED = ("messages", "private_facts", "private_items", "candidates", "masked_thoughts", "closed")
"""What full_restore does not take away unasked when the snapshot is of a sort that never holds it."""
SEALED_COUNTS = ("private", "private_items", "candidates", "closed")
"""Counts that are for who may read the private plane alone; what waits may be of it."""


class Loaded(NamedTuple):
    """What was taken in, and what it took the place of."""

    counts: dict[str, int]
    replaced: dict[str, int]
    state_fingerprint: str
    receipt: str


STEPS = ("make_room", "turns", "records", "compare")


class Loading:
    """One import, in one transaction of the writer."""

    def __init__(
        self,
        invocation: Invocation,
        tx: WriteTransaction,
        prepared: Prepared,
        chat: Chat | None,
        mode: ImportMode,
        discard: bool,
        other_store: bool,
    ) -> None:
        self.invocation = invocation
        self.tx = tx
        self.prepared = prepared
        self.where = Where(invocation.space_id, chat)
        self._chat = chat
        self.mode: ImportMode = mode
        self.discard = discard
        self.other_store = other_store
        self.space = evidence.ensure_space(tx, invocation.space_id, tx.now)
        self._conversations: list[int] = []
        self._facts: list[tuple[int, str]] = []
        self._items: list[str] = []
        self._turns = 0

    def run(self) -> Loaded:
        """Look at what is there, take it away where that was asked, write, and compare with what was exported.

        Raises:
            Conflict: the scope is not empty, what is there could not be brought back, or another device's export would
                replace it.
            PrivacyDenied: a policy of the space acts on what is to be taken in.
            StoreBudgetExceeded: the store would go over its ceiling.
            IntegrityViolation: what came of it is not what was exported.
        """
        progress, records = self.invocation.progress, self.prepared.records
        progress.plan(STEPS)
        progress.step("make_room")
        replaced, cleared = self._make_room()
        self._check_taken()
        self._check_policies()
        progress.step("turns", of=sum(len(each.turns) for each in self.prepared.conversations))
        self._write_evidence()
        progress.step("records", of=len(records.facts) + len(records.skills))
        self._write_facts()
        self._write_skills()
        self._write_private()
        self._write_rest()
        progress.step("compare")
        made = {record_id: fact for fact, record_id in self._facts}
        clear.mend(self.invocation, self.tx, self.space, self.where, cleared, made)
        fingerprint = self._compared()
        if continuity_write.used_pages(self.tx) * PAGE_SIZE > self.invocation.shared.store.settings.store_bytes:
            raise StoreBudgetExceeded(maximum=self.invocation.shared.store.settings.store_bytes)
        counts = counts_of(self.prepared.records)
        return Loaded(counts, replaced, fingerprint, self._log_and_sign(counts, replaced, fingerprint))

    # What is there.

    def _make_room(self) -> tuple[dict[str, int], clear.Cleared]:
        here = Gathering(self.tx, self.where, "everything", keep_turns=False)
        conversation = here.conversation
        self._check_alias(conversation)
        counts = gather(here).counts
        if self.mode == "bootstrap_import":
            if counts:
                told = self._known(counts)
                raise Conflict(
                    reason=f"the {'space' if self._chat is None else 'chat'} is not empty{_counts_text(told)}",
                    hint="import it elsewhere, or replace the present content with mode full_restore",
                    **told,
                )
            return {}, clear.Cleared()
        if not counts:
            return {}, clear.Cleared()
        self._check_signer()
        self._check_loss()
        return self._known(counts), clear.clear(self.invocation, self.tx, self.space, self.where, conversation)

    def _check_alias(self, own: int | None) -> None:
        """Two conversations that claim one chat would make it worthless."""
        chat = self._chat
        if chat is None:
            return
        if transcripts.claimed_elsewhere(self.tx, self.space, self.invocation.scope.channel, chat.chat_id, own or 0):
            raise Conflict(
                reason=f"the chat {chat.chat_id!r} refers to another conversation already",
                hint="import it as another chat",
                chat_id=chat.chat_id,
            )

    def _check_signer(self) -> None:
        """What is there gives way to what this device has exported, unasked; to nobody else's."""
        signer = self.prepared.signer
        if signer.fault is None or self.other_store:
            return
        own = self.invocation.shared.identity.fingerprint or "unknown: its identity cannot be used"
        signed_by = "former identity of this store" if signer.fault == "former_device" else "device"
        whose = "no device has signed it" if signer.device is None else f"the {signed_by} {signer.device} has signed it"
        raise Conflict(
            reason=f"{whose}, this one is {own}; it would replace the existing content",
            hint="give other_store if you trust its source, or import it into an empty place",
            faults=[signer.fault],
            device=signer.device,
        )

    def _check_loss(self) -> None:
        """What a snapshot of this sort never carries would be gone for good."""
        if self.discard:
            return
        sort = "private" if self.prepared.include_private else "public"
        lost = gather(Gathering(self.tx, self.where, sort, keep_turns=False)).left_out
        told = {name: lost[name] for name in NEVER_CARRIED if lost[name]}
        if told:
            known = self._known(told)
            raise Conflict(
                reason=f"material that such an export never contains would be lost{_counts_text(known)}",
                hint="import an export made with include_private, or set discard_withheld to delete it",
                **known,
            )

    def _known(self, counts: dict[str, int]) -> dict[str, int]:
        """Counts of what is there as the caller may know them: without the private plane, and without private facts."""
        sight = self.invocation.sight
        known = {name: count for name, count in counts.items() if sight.sealed or name not in SEALED_COUNTS}
        if not sight.private:
            withheld = gather(Gathering(self.tx, self.where, "public", keep_turns=False)).left_out["private_facts"]
            known.pop("private_facts", None)
            if "facts" in known:
                known["facts"] -= withheld
        return {name: count for name, count in known.items() if count}

    def _check_taken(self) -> None:
        taken = [
            each.name
            for each in self.prepared.records.skills
            if repair.skill_is_there(self.tx, self.space, each.name) is not None
        ]
        if taken:
            raise Conflict(
                reason=f"{len(taken)} of its skills exist already, from another chat: {', '.join(taken[:5])}",
                hint="delete or rename them first (`beetle skill list`)",
                skills=len(taken),
            )

    def _check_policies(self) -> None:
        """A fact that could not be remembered here now does not come in by this way either."""
        if self._chat is None:
            return
        for place, each in enumerate(self.prepared.records.facts):
            if each.revisions[-1].state != "current":
                continue
            mac = topic_mac(self.invocation.key, _says(each).topic)
            acting = policies.acting(self.tx, self.space, each.kind, mac, self._chat.chat_id)
            if acting:
                raise PrivacyDenied(
                    reason=f"a policy of this space ({min(acting)}) holds for fact {place} of it",
                    hint="`beetle long-term policy --action list` shows it; resume it first, or leave the facts out",
                    fact=place,
                )

    # Writing.

    def _write_evidence(self) -> None:
        for each in self.prepared.conversations:
            chat = self._chat
            channel = chat.channel if chat is not None else each.channel or ""
            name = chat.conversation_id if chat is not None else each.conversation_id or ""
            row = evidence.ensure_conversation(self.tx, self.space, channel, name, self.tx.now)
            self._conversations.append(row.conversation)
            self._write_turns(row, each)
            first, last = 1, len(each.turns)
            self.tx.log(
                self.invocation.event(
                    "transcript", "imported", channel_id=channel, conversation_id=name, turns=last,
                    first_sequence=first, last_sequence=last,
                )
            )  # fmt: skip
        if self._chat is not None and self._conversations:
            scope = self.invocation.scope._replace(chat_id=self._chat.chat_id)
            remember(self.invocation._replace(scope=scope), self.tx, self.space, self._conversations[0])

    def _write_turns(self, row: ConversationRow, each: PreparedConversation) -> None:
        spoke: set[tuple[str, str]] = set()
        for turn, door, archived in each.turns:
            self._turns += 1
            self.invocation.progress.at(self._turns)
            row, written = evidence.add_turn(self.tx, row, turn, door, self.tx.now)
            evidence_plane.index(self.tx, self.space, row.conversation, written)
            if door == "capture":
                restore(self.tx, self.space, row.conversation, turn)
            spoke |= {(m.visibility, m.actor[0]) for _, m in written if m.actor[0] is not None}
            if archived:
                (key,) = evidence_lifecycle.turns_by_id(self.tx, row.conversation, [turn.turn_id])
                evidence_lifecycle.archive_turn(self.tx, key)
        if each.turns:
            evidence.grow_conversation(self.tx, row, [turn.at for turn, _, _ in each.turns])
        evidence.add_speakers(self.tx, row.conversation, sorted(spoke))

    def _write_facts(self) -> None:
        records = self.prepared.records.facts
        for each in self.invocation.progress.through(records):
            record_id = each.record_id
            if repair.fact_is_there(self.tx, self.space, record_id):
                record_id = self.invocation.new_id("f")
            key = self.invocation.key
            contents = tuple(content_mac(key, each.texts[one.text or 0].content) for one in each.revisions)
            digests = Digests(topic_mac(key, _says(each).topic), contents)
            fact = continuity_write.add_fact(self.tx, self.space, each, record_id, digests)
            bodies = [long_term.add_body(self.tx, fact, t.topic, t.content, t.keywords) for t in each.texts]
            chat_id = None if self._chat is None else self._chat.chat_id
            continuity_write.add_fact_revisions(
                self.tx, fact, each, bodies, digests, self.invocation.caller.name, chat_id
            )
            self._facts.append((fact, record_id))
        for (fact, record_id), each in zip(self._facts, records, strict=True):
            if each.superseded_by is not None:
                continuity_write.supersede(self.tx, fact, self._facts[each.superseded_by][0])
            for one in each.derived:
                self._derive(format_ref("long_term", record_id), one.source, one.relation, fact=fact)
        for row in long_term.facts_by_key(self.tx, self.space, [fact for fact, _ in self._facts]):
            facts.reindex(self.tx, set(), index_rows(self.tx, self.space, row))

    def _write_skills(self) -> None:
        for each in self.invocation.progress.through(self.prepared.records.skills, before=len(self._facts)):
            revisions = [
                RevisionRow(
                    number, one.source, self._chat_id(one.here, one.source_chat_id), one.observed_at, one.at, one.topic,
                    one.title, one.summary, one.content, tuple(self._text(source) for source in one.citations),
                    one.edit_reason,
                )
                for number, one in enumerate(each.revisions, 1)
            ]  # fmt: skip
            row = continuity_write.add_skill(self.tx, self.space, each, revisions)
            if row.enabled and not row.retired:
                procedural.index(self.tx, self.space, row, revisions[-1])
            for one in each.derived:
                derived = format_ref("procedural", each.name, one.revision or 0)
                self._derive(derived, one.source, one.relation, skill=row.skill)

    def _chat_id(self, here: bool, given: str | None) -> str | None:
        return self._chat.chat_id if here and self._chat is not None else given

    def _write_private(self) -> None:
        for each in self.prepared.records.private:
            record_id = sealed_items.keep(
                self.invocation,
                self.tx,
                self.space,
                sealed_items.Words(
                    each.plane, each.privacy, each.authority, each.candidate_id, each.content or "", each.at
                ),
            )
            private.set_item_state(self.tx, self.space, record_id, each.state)
            self._items.append(record_id)
            for source in each.derived:
                self._derive(f"{each.plane}:{record_id}", source, "cites")

    def _write_rest(self) -> None:
        """What only a space has."""
        tx, space, records = self.tx, self.space, self.prepared.records
        who = self.invocation.caller.name
        for each in records.policies:
            mac = None if each.topic is None else topic_mac(self.invocation.key, each.topic)
            row = PolicyRow(0, each.action, each.kind, mac, each.chat_id, who, each.at, each.topic, each.reason)
            policies.add_policy(tx, space, row)
        for each in records.registries:
            continuity_write.add_registry(tx, space, each, who)
        for each in records.uploaded_skills:
            taking_in.write(self.invocation, tx, space, each)
        chains_in.write(self.invocation, tx, space, records.chains)
        chunks_in.write(self.invocation, tx, space, records.chunks)
        for each in records.observations:
            turn = None if each.turn is None else self._turn_of(each.turn)
            row = ObservationRow(
                each.registry_id, each.registry_fingerprint, each.registry_scope, each.tool_id,
                each.schema_fingerprint, each.outcome, each.duration_ms, each.permission_tags, each.risk_tags, turn,
                each.turn_id, who, each.at,
            )  # fmt: skip
            said = each.brief
            brief = said and Brief(said.summary, said.result_summary, said.reuse_outcome, said.operator_note)
            tool_observations.add_observation(tx, space, row, brief)
        for each in records.candidates:
            self._defer(each)
        for each in records.aliases:
            key = (each.principal, space, each.agent_id, each.channel, each.chat_id)
            evidence.remember_conversation(tx, key, self._conversations[each.conversation])

    def _defer(self, each: CandidateRecord) -> None:
        key, said = self.invocation.key, each.text
        claim = Claim(
            candidate_id=each.candidate_id,
            authority=each.authority,
            target=each.target,
            privacy=each.privacy,
            kind=each.kind,
            topic="" if said is None else said.topic,
            content="" if said is None else said.content,
            keywords=() if said is None else said.keywords,
            confidence=each.confidence,
            evidence=each.evidence,
            chat_id=each.chat_id,
            extractor=each.extractor,
            topic_mac=None if said is None else topic_mac(key, said.topic),
            content_mac=None if said is None else content_mac(key, said.content),
            record_id=None if each.record is None else self._items[each.record],
            by_operator=self.invocation.caller.is_operator,
        )
        body = None if said is None else candidates.Body(said.topic, said.content, said.keywords)
        row = queue.waiting_row(self.invocation, claim, each.reason, each.at)
        queue.keep(self.invocation, self.tx, self.space, row, body)

    # Names.

    def _text(self, source: Source) -> str:
        """A ref in the target's own terms."""
        if isinstance(source, OfFact):
            return format_ref("long_term", self._facts[source.fact][1])
        if isinstance(source, Here):
            chat = self._chat
            names = ("", "") if chat is None else (chat.channel, chat.conversation_id)
            message = () if source.message_id is None else (source.message_id,)
            return format_ref("evidence", *names, source.turn_id, *message)
        return source

    def _turn_of(self, text: str) -> int | None:
        ref = evidence_named(text)
        return None if ref is None else skills.turn_of_ref(self.tx, self.space, ref)

    def _derive(
        self, derived: str, source: Source, relation: str, *, skill: int | None = None, fact: int | None = None
    ) -> None:
        text = self._text(source)
        row = Derived(derived, text, relation, skill, fact, self._turn_of(text))
        continuity_write.add_derived_ref(self.tx, self.space, row)

    # What came of it.

    def _compared(self) -> str:
        """The fingerprint of what is there now, which must be that of what was exported."""
        body = self.prepared.body
        sort = "private" if self.prepared.include_private else "public"
        opened = opener(self.invocation, self.tx) if self.prepared.include_private else None
        found = gather(Gathering(self.tx, self.where, sort, opened, keep_turns=False)).fingerprint()
        if found != body.state_fingerprint:
            raise IntegrityViolation(
                reason="the imported records differ from the exported ones: their references do not match",
                hint=FETCH_AGAIN,
            )
        return found

    def _log_and_sign(self, counts: dict[str, int], replaced: dict[str, int], fingerprint: str) -> str:
        """The events and the receipt: counts alone."""
        kind = "space" if self._chat is None else "chat"
        if self.prepared.records.skills:
            self.tx.log(self.invocation.event("skill", "imported", skills=len(self.prepared.records.skills)))
        sealed = {name: number for name, number in (counts | replaced).items() if name in SEALED_COUNTS and number}
        if sealed:
            told = {"counts": _only(counts, sealed), "replaced": _only(replaced, sealed)}
            self.tx.log(
                self.invocation.event("memory", "imported_private", "sealed", kind=kind, mode=self.mode, **told)
            )
        channel, conversation, chat_id = self._chat or (None, None, None)
        seq = self.tx.log(
            self.invocation.event(
                "memory", "imported", kind=kind, mode=self.mode, counts=_without(counts, sealed),
                replaced=_without(replaced, sealed), chat_id=chat_id, channel_id=channel, conversation_id=conversation,
            )
        )  # fmt: skip
        digests = [keyed(self.invocation.key, "import", bytes.fromhex(fingerprint))]
        told = {**counts, **{f"replaced_{name}": number for name, number in replaced.items()}}
        return receipts.make(self.invocation, self.tx, f"memory.{self.mode}", seq, told, digests)


def _says(each: FactRecord) -> FactTextRecord:
    return each.texts[each.revisions[-1].text or 0]


def _only(counts: Mapping[str, int], names: Iterable[str]) -> dict[str, int]:
    return {name: number for name, number in counts.items() if name in set(names)}


def _without(counts: Mapping[str, int], names: Iterable[str]) -> dict[str, int]:
    return {name: number for name, number in counts.items() if name not in set(names)}


def _counts_text(counts: dict[str, int]) -> str:
    named = ", ".join(f"{name.replace('_', ' ')} {number}" for name, number in sorted(counts.items()))
    return f": {named}" if named else ""
