"""What is to be taken in: opened, checked and made ready, before a transaction of the writer begins."""

from __future__ import annotations

from collections.abc import Iterator

from beetle.contracts.continuity_records import Body, Envelope, Records, SkillRevisionRecord, TurnRecord
from beetle.contracts.errors import Forbidden, IntegrityViolation, InvalidRequest, PrivacyDenied
from beetle.contracts.turns import ActorAttribution
from beetle.domain.continuity import FETCH_AGAIN, ROOT, belongs_to, open_body, open_envelope
from beetle.domain.digest import message_part, parts_digest
from beetle.domain.sensitive import FINDING_WORDS, finding
from beetle.named_tuple import NamedTuple
from beetle.runtime.areas import secrets
from beetle.runtime.areas.chains import taking_in as chains_in
from beetle.runtime.areas.chunks import taking_in as chunks_in
from beetle.runtime.areas.registry import taking_in
from beetle.runtime.host import passphrase, signed_text
from beetle.runtime.host.signed_text import ARCHIVE, Signer
from beetle.runtime.pipeline import budgets
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.planes import sealed_items
from beetle.runtime.planes.evidence import prepared, prepared_ref
from beetle.store.evidence import PreparedAttr, PreparedTurn

NO_ACTOR = (None,) * len(ActorAttribution.__struct_fields__)


class PreparedConversation(NamedTuple):
    """A conversation ready to be written; names are None where the target names it. Turns with their door, archived."""

    channel: str | None
    conversation_id: str | None
    turns: tuple[tuple[PreparedTurn, str, bool], ...]


class Prepared(NamedTuple):
    """A snapshot or an archive that was checked."""

    body: Body
    conversations: tuple[PreparedConversation, ...]
    signer: Signer

    @property
    def records(self) -> Records:
        """What it holds."""
        return self.body.records

    @property
    def include_private(self) -> bool:
        """Whether it holds private material."""
        return self.body.policy.include_private


def prepare(invocation: Invocation, data: bytes, kind: str, words: str | None) -> Prepared:
    """Open and check an envelope of a kind, chat or space.

    Raises:
        InvalidRequest: it is no such envelope, or a record is not as it may be.
        IntegrityViolation: a byte of it is not as it was exported, or not as it was signed.
        PayloadTooLarge: a text or list is over this profile's budget.
        PrivacyDenied: the passphrase does not open it, or nothing here can keep what is private.
        Forbidden: it holds the operator's word, and the caller is no operator.
    """
    envelope, digest = open_envelope(data, kind)
    with invocation.shared.store.read() as tx:
        known = signed_text.known_keys(invocation.shared.identity, tx)
    signer = signed_text.signer_of(envelope.signed, ARCHIVE, known, digest=digest)
    if signer.fault == "wrong_signature":
        raise IntegrityViolation(reason="it is not what the device in it has signed", hint=FETCH_AGAIN)
    body = open_body(_opened(envelope, kind, words), kind)
    if body.policy.include_private and envelope.sealing is None:
        raise InvalidRequest(reason="it holds private material and is not sealed", path=ROOT, hint=FETCH_AGAIN)
    budgets.admit(body.records, invocation.shared.profile.budgets, f"{ROOT}.records")
    _check_authorities(invocation, body.records)
    _check_words(body.records)
    taking_in.check(body.records.uploaded_skills, f"{ROOT}.records")
    chains_in.check(body.records.chains, f"{ROOT}.records")
    if body.records.private:
        sealed_items.require(invocation)
    conversations = (
        PreparedConversation(
            each.channel_id,
            each.conversation_id,
            tuple((_turn(invocation.key, turn), turn.door, turn.archived) for turn in each.turns),
        )
        for each in body.records.conversations
    )
    return Prepared(body, tuple(conversations), signer)


def _opened(envelope: Envelope, kind: str, words: str | None) -> bytes | memoryview:
    sealing = envelope.sealing
    if sealing is None:
        return envelope.body
    if words is None:
        raise InvalidRequest(
            reason="it is sealed with a passphrase", path="$.args.passphrase", hint="give the passphrase of its export"
        )
    bound = belongs_to(envelope.signed is not None, kind, sealing)
    opened = passphrase.unseal(words, sealing.salt, sealing.nonce, envelope.body, bound)
    if opened is None:
        raise PrivacyDenied(
            reason="it does not open: the passphrase is another, or it was changed",
            hint="give the passphrase of its export; nothing was written",
        )
    return opened


def _check_authorities(invocation: Invocation, records: Records) -> None:
    if invocation.caller.is_operator:
        return
    claims = (
        ("facts", [each.authority for fact in records.facts for each in (fact, *fact.revisions)]),
        ("skills", [each.authority for each in records.skills]),
        ("candidates", [each.authority for each in records.candidates]),
        ("private", [each.authority for each in records.private]),
    )
    for name, authorities in claims:
        if "operator" in authorities:
            raise Forbidden(
                reason=f"its {name} hold the operator's word, which {invocation.caller.name} does not have",
                hint="ask an operator to import it",
                authority="operator",
            )


def _check_words(records: Records) -> None:
    """What facts, skills, private material, briefs and registries may never hold, they do not hold by this way either.
    Evidence is stored as it was said."""
    learned = ((f"{ROOT}.{path}", said) for path, said in _learned_words(records))
    chats = ((f"{ROOT}.{path}.source_chat_id", each.source_chat_id) for path, each in _skill_revisions(records))
    chunks = ((f"{ROOT}.{path}", name) for path, name in chunks_in.named(records.chunks))
    secrets.refuse(learned, names=(*chats, *chunks))
    for path, text in _tool_words(records):
        if (found := finding(text)) is not None:
            raise PrivacyDenied(
                reason=f"{ROOT}.{path} {FINDING_WORDS[found]}", hint="nothing was written", path=path, found=found
            )


def _learned_words(records: Records) -> Iterator[secrets.Said]:
    for path, revision in _skill_revisions(records):
        yield from secrets.fields(revision, path, "topic", "title", "summary", "content", "edit_reason")
        for number, source in enumerate(revision.citations):
            if isinstance(source, str):
                yield f"{path}.citations[{number}]", source
    for place, fact in enumerate(records.facts):
        for number, text in enumerate(fact.texts):
            path = f"records.facts[{place}].texts[{number}]"
            yield from secrets.fields(text, path, "topic", "content", "keywords")
        for number, revision in enumerate(fact.revisions):
            yield f"records.facts[{place}].revisions[{number}].reason", revision.reason
    for place, each in enumerate(records.candidates):
        if each.text is not None:
            yield from secrets.fields(each.text, f"records.candidates[{place}].text", "topic", "content", "keywords")
    for place, each in enumerate(records.policies):
        yield from secrets.fields(each, f"records.policies[{place}]", "topic", "reason")
    for place, each in enumerate(records.private):
        yield f"records.private[{place}].content", each.content
    yield from taking_in.words(records.uploaded_skills)
    yield from chains_in.words(records.chains)
    yield from chunks_in.said(records.chunks)


def _skill_revisions(records: Records) -> Iterator[tuple[str, SkillRevisionRecord]]:
    """With their paths."""
    for place, skill in enumerate(records.skills):
        for number, revision in enumerate(skill.revisions):
            yield f"records.skills[{place}].revisions[{number}]", revision


def _tool_words(records: Records) -> Iterator[tuple[str, str]]:
    for place, each in enumerate(records.observations):
        if each.brief is not None:
            yield f"records.observations[{place}].brief.summary", each.brief.summary
            yield f"records.observations[{place}].brief.result_summary", each.brief.result_summary
            yield f"records.observations[{place}].brief.operator_note", each.brief.operator_note or ""
    for place, registry in enumerate(records.registries):
        for number, tool in enumerate(registry.tools):
            yield f"records.registries[{place}].tools[{number}].title", tool.title
            yield f"records.registries[{place}].tools[{number}].summary", tool.summary


def _turn(key: bytes, turn: TurnRecord) -> PreparedTurn:
    """A turn as this store would have made it, so that committing the same again changes nothing."""
    messages = tuple(prepared(key, each, each.at) for each in turn.messages)
    refs = tuple(prepared_ref(each) for each in turn.host_refs)
    said = [
        message_part(
            (m.message_id, m.role), (m.content, m.length), m.at, m.visibility, None if m.actor == NO_ACTOR else m.actor
        )
        for m in messages
    ]
    named = [(r.kind, r.ref_id, r.relation, r.label, sorted(set(r.visibility))) for r in turn.host_refs]
    digest = parts_digest(key, turn.turn_id, turn.at, said, named)
    attrs = tuple(
        PreparedAttr(a.key, a.value, a.message, ",".join(dict.fromkeys(a.visibility)), a.export_allowed)
        for a in turn.attrs
    )
    return PreparedTurn(turn.turn_id, turn.at, digest, messages, refs, attrs)
