"""Envelopes of continuity snapshots and archives: made, opened, and checked before anything of them is believed. Pure.

What arrives is untrusted: it is held to the same bounds as a request, and to what a store would never have written.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, cast

from beetle.contracts.chunks import MOST_DEPTH
from beetle.contracts.codec import UNSET, decode_request, pack, unpack_json
from beetle.contracts.continuity_records import (
    Body,
    Envelope,
    FactRecord,
    OfFact,
    Records,
    Sealing,
    SkillRecord,
    Source,
    UploadedSkillRecord,
)
from beetle.contracts.errors import BeetleError, IntegrityViolation, InvalidRequest
from beetle.contracts.refs import evidence_named
from beetle.contracts.skills import SKILL_PREFIX
from beetle.contracts.tool_parts import is_tail
from beetle.domain.fingerprint import fingerprint_of
from beetle.domain.governance import FITTING, SEALED
from beetle.named_tuple import NamedTuple

FORMAT, UNSIGNED_FORMAT = "beetle.continuity.v2", "beetle.continuity.v1"
MAGIC = b"\x86\xa6format\xb4" + FORMAT.encode()
"""With what a signed envelope begins: a map of six, the first entry of which is the format."""
UNSIGNED_MAGIC = b"\x85\xa6format\xb4" + UNSIGNED_FORMAT.encode()
"""With what an unsigned one begins: a map of five."""
TAIL = pack("sha256") + b"\xc4\x20"
"""What stands between all else and the digest."""
DIGEST_BYTES = 32
FEWEST_BYTES = 64
ROOT = "$.snapshot"
FETCH_AGAIN = "fetch it again from where it was made; nothing was written"


def counts_of(records: Records) -> dict[str, int]:
    """How many of each sort there are; sorts without any are left out."""
    counts = {name: len(getattr(records, name)) for name in records.__struct_fields__}
    counts["thoughts"] = sum(len(each.thoughts) for each in records.chains)
    counts["turns"] = sum(len(each.turns) for each in records.conversations)
    counts["messages"] = sum(len(turn.messages) for each in records.conversations for turn in each.turns)
    return {name: count for name, count in counts.items() if count}


def belongs_to(signed: bool, kind: str, sealing: Sealing) -> bytes:
    """What a sealed body is bound to: all that stands before it in its envelope."""
    return pack((FORMAT if signed else UNSIGNED_FORMAT, kind, sealing))


def close_envelope(kind: str, sealing: Sealing | None, body: bytes, sign: Callable[[str], str] | None = None) -> bytes:
    """The bytes of an envelope.

    Args:
        sign: answers the device's statement over a SHA-256 in hex; None leaves the envelope unsigned.
    """
    size = len(body)
    head = b"".join((
        UNSIGNED_MAGIC if sign is None else MAGIC,
        *map(pack, ("kind", kind, "sealing", sealing, "body")),
        b"\xc6",
        size.to_bytes(4, "big"),
    ))  # fmt: skip
    digest = hashlib.sha256(head)
    digest.update(body)
    tail = TAIL if sign is None else _signature(sign(digest.hexdigest())) + TAIL
    digest.update(tail)
    return b"".join((head, body, tail, digest.digest()))


def _signature(text: str) -> bytes:
    return pack("signed") + pack(text)


class Opened(NamedTuple):
    """An envelope that is whole; `digest` is the SHA-256 in hex of what a signature is over."""

    envelope: Envelope
    digest: str


def open_envelope(data: bytes, kind: str) -> Opened:
    """The envelope, whole and of the wanted kind.

    Raises:
        InvalidRequest: it is no envelope, or one of the other kind.
        IntegrityViolation: a byte of it was changed, cut off or added.
    """
    what = "a continuity snapshot" if kind == "chat" else "an archive"
    if len(data) < FEWEST_BYTES or not data.startswith((MAGIC, UNSIGNED_MAGIC)):
        raise InvalidRequest(reason=f"this is not an envelope of {what}", path=ROOT, hint="give the bytes of an export")
    covered = memoryview(data)[:-DIGEST_BYTES]
    if hashlib.sha256(covered).digest() != data[-DIGEST_BYTES:]:
        raise _damaged(f"{what} is not what was exported: its checksum does not hold")
    envelope = decode_request(data, Envelope, ROOT)
    if envelope.kind != kind:
        command = "import-space" if envelope.kind == "space" else "import"
        raise InvalidRequest(
            reason=f"it is not {what}, but of a {envelope.kind}", path=ROOT, hint=f"`beetle memory {command}` takes it"
        )
    rest = TAIL if envelope.signed is None else _signature(envelope.signed) + TAIL
    if (envelope.signed is None) != data.startswith(UNSIGNED_MAGIC) or bytes(covered[-len(rest) :]) != rest:
        raise _damaged(f"{what} is not as it was exported: its signature does not stand where it belongs")
    return Opened(envelope, hashlib.sha256(covered[: -len(rest)]).hexdigest())


def open_body(data: bytes | memoryview, kind: str) -> Body:
    """The body of an envelope, with every record checked.

    Raises:
        InvalidRequest: a record is not as it may be; the path says which.
        IntegrityViolation: the records are not those that it says it has.
    """
    body = decode_request(data, Body, ROOT)
    if body.counts != counts_of(body.records):
        raise _damaged("its counts do not hold")
    check_records(body, kind)
    if fingerprint_of(body.records) != body.state_fingerprint:
        raise _damaged("its state fingerprint does not hold")
    return body


def _damaged(reason: str) -> BeetleError:
    return IntegrityViolation(reason=reason, hint=FETCH_AGAIN)


def _wrong(reason: str, path: str) -> InvalidRequest:
    return InvalidRequest(reason=f"{reason} - at {ROOT}.{path}", path=f"{ROOT}.{path}", hint=FETCH_AGAIN)


def check_records(body: Body, kind: str) -> None:
    """Hold the records to what an export of that kind can hold, and to what a store would have written.

    Raises:
        InvalidRequest: with the path of the first that is wrong.
    """
    records, named = body.records, body.scope
    chat = (named.channel, named.conversation_id, named.chat_id)
    if any((each is not None) != (kind == "chat") for each in chat):
        raise _wrong("its scope is not of its kind", "scope")
    if kind == "chat":
        _check_chat(records)
    elif not body.policy.include_private and (records.conversations or records.aliases or records.candidates):
        raise _wrong("a public archive holds no transcript and nothing that waits", "records")
    if not body.policy.include_private and records.private:
        raise _wrong("it holds private material, and says that it does not", "records.private")
    _check_conversations(records, kind, body.policy.include_private)
    _check_skills(records)
    for place, fact in enumerate(records.facts):
        _check_fact(records, fact, f"records.facts[{place}]", body.policy.include_private)
    _check_supersession(records)
    _check_rest(records)


def _check_chat(records: Records) -> None:
    if len(records.conversations) > 1:
        raise _wrong("a chat is one conversation", "records.conversations")
    for name in (
        "policies",
        "registries",
        "uploaded_skills",
        "chains",
        "chunks",
        "observations",
        "candidates",
        "aliases",
    ):
        if getattr(records, name):
            raise _wrong("a chat's snapshot holds none", f"records.{name}")


def _check_conversations(records: Records, kind: str, private: bool) -> None:
    allowed = ("shared", "private", "soul") if private else ("shared",)
    names = {(each.channel_id, each.conversation_id) for each in records.conversations}
    if len(names) != len(records.conversations):
        raise _wrong("a conversation stands twice", "records.conversations")
    for place, each in enumerate(records.conversations):
        path = f"records.conversations[{place}]"
        if any((name is None) != (kind == "chat") for name in (each.channel_id, each.conversation_id)):
            raise _wrong("a chat's conversation has no name, any other has one", path)
        turns, messages = set[str](), set[str]()
        for number, turn in enumerate(each.turns):
            here = f"{path}.turns[{number}]"
            said = [message.message_id for message in turn.messages]
            if turn.turn_id in turns or len(set(said)) != len(said) or not messages.isdisjoint(said):
                raise _wrong("an id of a turn or a message stands twice", here)
            turns.add(turn.turn_id)
            messages.update(said)
            for message in turn.messages:
                if message.state != "live" or message.content is None or message.visibility not in allowed:
                    raise _wrong("a message that may not leave its store", here)
                if message.tools is not UNSET and not is_tail(message.tools):
                    raise _wrong("tool calls or a result that no store wrote", here)
            if any(attr.message is not None and attr.message >= len(said) for attr in turn.attrs):
                raise _wrong("an attr is of no message of its turn", here)


def _check_skills(records: Records) -> None:
    if len({each.name for each in records.skills}) != len(records.skills):
        raise _wrong("a skill stands twice", "records.skills")
    for place, each in enumerate(records.skills):
        path = f"records.skills[{place}]"
        if not each.name.startswith(SKILL_PREFIX):
            raise _wrong(f"a runtime skill's name begins with {SKILL_PREFIX}", path)
        for source in _sources_of_skill(each):
            _check_source(records, source, path)
        for one in each.derived:
            if one.revision is None or not 1 <= one.revision <= len(each.revisions):
                raise _wrong("a derived ref is of no revision of its skill", path)


def _sources_of_skill(each: SkillRecord) -> Iterator[Source]:
    for revision in each.revisions:
        yield from revision.citations
    for one in each.derived:
        yield one.source


def _check_source(records: Records, source: Source, path: str) -> None:
    if isinstance(source, OfFact) and source.fact >= len(records.facts):
        raise _wrong("it names a fact that is not there", path)


def _check_fact(records: Records, fact: FactRecord, path: str, private: bool) -> None:
    """The revisions follow one another, the last one holds, and each says something."""
    used = {each.text for each in fact.revisions}
    if used != set(range(len(fact.texts))):
        raise _wrong("its revisions do not say what its texts are", path)
    last = fact.revisions[-1]
    for place, each in enumerate(fact.revisions):
        following = None if each is last else fact.revisions[place + 1].valid_from
        if each.valid_until != following or (following is not None and following < each.valid_from):
            raise _wrong("its revisions do not follow one another", f"{path}.revisions[{place}]")
        if each.state == "deleted" or each.action == "deleted" or (each.here and each.source_chat_id is not None):
            raise _wrong("a revision that no export holds", f"{path}.revisions[{place}]")
        if each.visibility == "private" and (not private or fact.target == "shared_fact"):
            raise _wrong("a private revision where none may be", f"{path}.revisions[{place}]")
    if (last.state == "superseded") != (fact.superseded_by is not None):
        raise _wrong("a superseded fact names the one in its place, and no other does", path)
    for one in fact.derived:
        _check_source(records, one.source, path)
        if one.revision is not None:
            raise _wrong("a derived ref of a fact is of no revision", path)


def _check_supersession(records: Records) -> None:
    """Each superseded fact leads to one that is not."""
    ends: set[int] = set()
    for first in range(len(records.facts)):
        walked: list[int] = []
        place: int | None = first
        while place is not None and place not in ends:
            if place >= len(records.facts) or place in walked:
                raise _wrong("what took its place is not there", f"records.facts[{first}].superseded_by")
            walked.append(place)
            place = records.facts[place].superseded_by
        ends.update(walked)


def _check_rest(records: Records) -> None:
    for place, policy in enumerate(records.policies):
        unnamed = policy.kind is None and policy.topic is None
        blank = policy.topic is not None and not policy.topic.strip()
        if blank or (policy.action == "suppress" and unnamed):
            raise _wrong("a policy over nothing that is named", f"records.policies[{place}]")
    for place, alias in enumerate(records.aliases):
        if alias.conversation >= len(records.conversations):
            raise _wrong("it names a conversation that is not there", f"records.aliases[{place}]")
    _check_tools(records)
    _check_chunks(records)
    _check_private(records)


def _check_chunks(records: Records) -> None:
    if len({each.chunk_id for each in records.chunks}) != len(records.chunks):
        raise _wrong("a chunk stands twice", "records.chunks")
    for place, each in enumerate(records.chunks):
        path = f"records.chunks[{place}]"
        if not each.content.strip() or (each.accesses > 0) != (each.last_accessed is not None):
            raise _wrong("a chunk that no store wrote", path)
        if each.extra is not None and not _is_extra(each.extra):
            raise _wrong("what it has besides is no JSON object of objects", path)
        named = [(link.kind, link.target) for link in each.links]
        if len(set(named)) != len(named) or any(name == each.chunk_id for _, name in named):
            raise _wrong("a link that stands twice, or leads to itself", path)


def _is_extra(text: str) -> bool:
    try:
        found = unpack_json(text)
    except (ValueError, RecursionError):
        return False
    if not isinstance(found, dict) or not all(
        isinstance(each, dict) for each in cast("dict[str, Any]", found).values()
    ):
        return False
    # What the file's own object held is a level deeper here.
    return _is_at_most(found, MOST_DEPTH + 1)


def _is_at_most(value: Any, levels: int) -> bool:
    if not isinstance(value, dict | list):
        return True
    within = cast("Iterable[Any]", value.values() if isinstance(value, dict) else value)
    return levels > 0 and all(_is_at_most(each, levels - 1) for each in within)


def _check_tools(records: Records) -> None:
    if len({each.registry_id for each in records.registries}) != len(records.registries):
        raise _wrong("a registry stands twice", "records.registries")
    for place, registry in enumerate(records.registries):
        if len({tool.tool_id for tool in registry.tools}) != len(registry.tools):
            raise _wrong("a tool stands twice", f"records.registries[{place}]")
    if len({each.skill_id for each in records.uploaded_skills}) != len(records.uploaded_skills):
        raise _wrong("an uploaded skill stands twice", "records.uploaded_skills")
    for place, each in enumerate(records.uploaded_skills):
        _check_versions(each, f"records.uploaded_skills[{place}]")
    for place, observation in enumerate(records.observations):
        ref = evidence_named(observation.turn)
        if observation.turn is not None and (ref is None or ref.message_id is not None):
            raise _wrong("it names no turn", f"records.observations[{place}]")


def _check_versions(each: UploadedSkillRecord, path: str) -> None:
    if len({version.version_id for version in each.versions}) != len(each.versions):
        raise _wrong("a version stands twice", path)
    for version in each.versions:
        given = [field is not None for field in (version.signing_key_id, version.key, version.signature)]
        if any(given) and not all(given):
            raise _wrong("a signature without its key, or a key without its signature", path)


def _check_private(records: Records) -> None:
    for place, candidate in enumerate(records.candidates):
        path = f"records.candidates[{place}]"
        sealed = candidate.target in SEALED
        if sealed == (candidate.record is None) or sealed != (candidate.text is None):
            raise _wrong("what waits has its text where its target keeps it", path)
        if candidate.record is not None and candidate.record >= len(records.private):
            raise _wrong("it names a private item that is not there", path)
    for place, item in enumerate(records.private):
        if item.content is None or item.privacy not in FITTING[item.plane]:
            raise _wrong("a private item without its text, or where it does not belong", f"records.private[{place}]")
        for source in item.derived:
            _check_source(records, source, f"records.private[{place}]")
