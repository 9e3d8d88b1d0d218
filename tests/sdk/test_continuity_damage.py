"""What is not what was exported is refused with nothing written: damage, forgery, bombs, wrong words, budgets."""

from __future__ import annotations

import hashlib
import os
import re
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from beetle.contracts.codec import pack, replace, unpack
from beetle.contracts.common import WireScope
from beetle.contracts.continuity_records import Body, DerivedRecord, Envelope, OfFact, Records
from beetle.contracts.errors import BeetleError
from beetle.domain.continuity import close_envelope, counts_of, open_envelope
from beetle.domain.fingerprint import fingerprint_of
from beetle.runtime.host.profile import load_profile
from beetle.runtime.pipeline.invocation import Call
from tests.building import message, skill, talk, turn, write
from tests.conformance.doors import REPOSITORY, embedded_caller
from tests.sdk.moving import COMPACT, DEV, HERE, WORDS, Home, fill, ref, taking

REFUSALS = {"invalid_request", "integrity_violation", "privacy_denied", "payload_too_large", "forbidden", "conflict"}
MIB = 2**20


def little(home: Home) -> None:
    """A small chat with something of every sort."""
    attr = {"key": "a", "value": "v", "visibility": ["export"], "export_allowed": True}
    said = message("m1", "a\nb\nc", actor={"speaker": "M"})
    home.ask("transcript.commit", talk(turn("t1", said, attrs=[attr]), conversation=HERE))
    home.judge("b", topic="t", evidence_refs=[ref("t1", "m1")])
    home.judge("c", topic="t", evidence_refs=[ref("t1")])
    home.ask("memory.write", write(skill("s", content="d", citations=[ref("t1")])))


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    home = Home(tmp_path_factory.mktemp("source"), "source")
    little(home)
    yield home
    home.close()


@pytest.fixture
def target(tmp_path: Path) -> Iterator[Home]:
    home = Home(tmp_path, "target", "in-memory")
    home.ask("memory.write", write(skill("other", source_chat_id="other")))
    yield home
    home.close()


def attempt(home: Home, data: bytes, private: bool = False, op: str = "memory.import") -> str | None:
    """The key of the error that an import ends with, None when it is taken in. What is refused changes nothing."""
    before = home.head()
    args = taking(data, "chat-1", "bootstrap_import", private)
    if op == "memory.import_space":
        args = {"archive": data, "mode": "full_restore", "discard_withheld": True, "other_store": True}
    call = Call(op, args, embedded_caller(home.owner), WireScope(owner_id=home.owner))
    try:
        home.opened.dispatcher.dispatch(call)
    except BeetleError as error:
        assert error.key in REFUSALS, error
        # A refusal leaves a row of its own, and nothing else.
        rows = [event for (event,) in home.rows("SELECT event FROM event_log WHERE seq > ?", before.seq)]
        assert rows in ([], ["refused"]), rows
        return error.key
    return None


def test_every_changed_byte_is_refused(source: Home, target: Home) -> None:
    data, _ = source.snapshot()
    before = target.fingerprint()
    for place in range(len(data)):
        changed = bytearray(data)
        changed[place] ^= 1 << place % 8
        assert attempt(target, bytes(changed)) in ("invalid_request", "integrity_violation")
    assert target.fingerprint() == before


def test_every_cut_and_everything_added_is_refused(source: Home, target: Home) -> None:
    data, _ = source.snapshot()
    before = target.fingerprint()
    for length in range(1, len(data)):
        assert attempt(target, data[:length]) in ("invalid_request", "integrity_violation")
    for more in (b"\x00", b"\xc0", data):
        assert attempt(target, data + more) in ("invalid_request", "integrity_violation")
        assert attempt(target, more + data) in ("invalid_request", "integrity_violation")
    assert target.fingerprint() == before


def test_swapped_stretches_are_refused(source: Home, target: Home) -> None:
    data, _ = source.snapshot()
    for size in (8, 32, 64):
        for place in range(0, len(data) - 2 * size, size):
            a, b = data[place : place + size], data[place + size : place + 2 * size]
            if a != b:
                swapped = data[:place] + b + a + data[place + 2 * size :]
                assert attempt(target, swapped) in ("invalid_request", "integrity_violation")


def test_a_sealed_snapshot_is_refused_when_any_byte_of_it_is_changed_and_its_checksum_mended(
    source: Home, target: Home
) -> None:
    data, _ = source.snapshot(private=True)
    for place in range(0, len(data) - 32, 211):
        changed = bytearray(data[:-32])
        changed[place] ^= 0x10
        forged = bytes(changed) + hashlib.sha256(changed).digest()
        assert attempt(target, forged, private=True) in ("invalid_request", "integrity_violation", "privacy_denied")


def test_a_byte_changed_by_who_mends_the_checksum_is_refused_or_harms_nothing(source: Home, tmp_path: Path) -> None:
    """Of a signed one: nothing. Of an unsigned one: what it says of itself; its memory has a fingerprint."""
    data, taken = source.snapshot()
    for place in range(0, len(data) - 32, 7):
        changed = bytearray(data[:-32])
        changed[place] ^= 1 << place % 7
        forged = bytes(changed) + hashlib.sha256(changed).digest()
        assert attempt(source, forged) in ("invalid_request", "integrity_violation")
    data = close_envelope("chat", None, bytes(open_envelope(data, "chat").envelope.body))
    home = Home(tmp_path, "forged", "in-memory")
    accepted = 0
    for place in range(len(data) - 32):
        changed = bytearray(data[:-32])
        changed[place] ^= 1 << place % 7
        forged = bytes(changed) + hashlib.sha256(changed).digest()
        if attempt(home, forged) is None:
            accepted += 1
            assert home.snapshot()[1]["state_fingerprint"] == taken["state_fingerprint"]
            home.is_sound()
            home.close()
            home = Home(tmp_path, "forged", "in-memory")
    assert 0 < accepted < len(data) / 4
    home.close()


# What a forger may send who mends everything: checksum, counts, fingerprint.


def forged(data: bytes, change: Callable[[Body], Body], kind: str = "chat") -> bytes:
    body = change(unpack(bytes(open_envelope(data, kind).envelope.body), Body))
    found = body.records
    with suppress(IndexError, TypeError):  # what names nothing has no fingerprint
        body = replace(body, counts=counts_of(found), state_fingerprint=fingerprint_of(found))
    return close_envelope(kind, None, pack(body))


def records(**changes: Any) -> Callable[[Body], Body]:
    return lambda body: replace(body, records=replace(body.records, **changes))


def facts(change: Callable[[Any], Any], place: int = -1) -> Callable[[Body], Body]:
    def changed(body: Body) -> Body:
        known = list(body.records.facts)
        known[place] = change(known[place])
        return replace(body, records=replace(body.records, facts=tuple(known)))

    return changed


def revisions(**changes: Any) -> Callable[[Body], Body]:
    return facts(lambda fact: replace(fact, revisions=(replace(fact.revisions[0], **changes), *fact.revisions[1:])))


def turns(change: Callable[[Any], Any]) -> Callable[[Body], Body]:
    def changed(body: Body) -> Body:
        (talked,) = body.records.conversations
        made = replace(talked, turns=tuple(change(each) for each in talked.turns))
        return replace(body, records=replace(body.records, conversations=(made,)))

    return changed


def messages(**changes: Any) -> Callable[[Body], Body]:
    return turns(lambda one: replace(one, messages=tuple(replace(each, **changes) for each in one.messages)))


def skills(**changes: Any) -> Callable[[Body], Body]:
    return lambda body: replace(
        body, records=replace(body.records, skills=tuple(replace(each, **changes) for each in body.records.skills))
    )


def elsewhere(body: Body) -> Body:
    return skills(derived=(DerivedRecord(source="evidence:local/other/t1", relation="cites", revision=1),))(body)


FORGERIES: dict[str, Callable[[Body], Body]] = {
    "a masked message": messages(state="masked"),
    "a deleted message": messages(state="deleted", content=None),
    "a private message in a public snapshot": messages(visibility="private"),
    "a soul message": messages(visibility="soul"),
    "a backend message": messages(visibility="backend"),
    "an empty id": messages(message_id=""),
    "a control character in an id": messages(message_id="a\nb"),
    "a long id": messages(message_id="x" * 257),
    "a lone surrogate": messages(content="x" * 3 + "\udcff"),
    "a time before the year 1": messages(at=-(2**62)),
    "a time after the year 9999": turns(lambda one: replace(one, at=2**62)),
    "a turn without messages": turns(lambda one: replace(one, messages=())),
    "an attr of no message": turns(lambda one: replace(one, attrs=tuple(replace(a, message=7) for a in one.attrs))),
    "a turn twice": lambda body: records(
        conversations=(
            replace(
                body.records.conversations[0],
                turns=(*body.records.conversations[0].turns, *body.records.conversations[0].turns),
            ),
        )
    )(body),
    "two conversations": lambda body: records(conversations=body.records.conversations * 2)(body),
    "a conversation with a name": lambda body: records(
        conversations=(replace(body.records.conversations[0], channel_id="mail", conversation_id="x"),)
    )(body),
    "another's skill name": skills(name="not_a_runtime_skill"),
    "a skill twice": lambda body: records(skills=body.records.skills * 2)(body),
    "a skill without a revision": skills(revisions=()),
    "a skill's ref of no revision": skills(derived=(DerivedRecord(source="x", relation="cites", revision=9),)),
    "a ref into another conversation": elsewhere,
    "a ref to a fact that is not there": skills(
        derived=(DerivedRecord(source=OfFact(fact=99), relation="cites", revision=1),)
    ),
    "a deleted fact": revisions(state="deleted"),
    "a private fact": revisions(visibility="private"),
    "a fact without a text": facts(lambda fact: replace(fact, texts=())),
    "a text that no revision says": facts(lambda fact: replace(fact, texts=fact.texts * 2)),
    "a revision that never ended": facts(lambda fact: replace(fact, revisions=fact.revisions * 2)),
    "a revision that ended already": revisions(valid_until=5),
    "superseded by nothing": facts(lambda fact: replace(fact, superseded_by=None), 0),
    "superseded by itself": facts(lambda fact: replace(fact, superseded_by=0), 0),
    "superseded by what is not there": facts(lambda fact: replace(fact, superseded_by=77), 0),
    "current and superseded": facts(lambda fact: replace(fact, superseded_by=0)),
    "a fact of another chat": facts(
        lambda fact: replace(fact, derived=(), revisions=tuple(replace(each, here=False) for each in fact.revisions))
    ),
    "no scope": lambda body: replace(body, scope=replace(body.scope, chat_id=None)),
    "private and not sealed": lambda body: replace(body, policy=replace(body.policy, include_private=True)),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_what_no_export_holds_is_refused_however_well_it_is_forged(source: Home, target: Home, name: str) -> None:
    data, _ = source.snapshot()
    try:
        made = forged(data, FORGERIES[name])
    except UnicodeEncodeError:
        made = data.replace(b"\xa7content\xa5a\nb\nc", b"\xa7content\xa5a\n\xed\xb3\xbf")
    assert made != data
    before = target.fingerprint()
    assert attempt(target, made) in ("invalid_request", "integrity_violation")
    assert target.fingerprint() == before


SPACE_FORGERIES: dict[str, tuple[str, str]] = {
    "a policy over everything": ("policies", '{"action": "suppress", "at": 0}'),
    "a policy over a blank topic": ("policies", '{"action": "suppress", "at": 0, "topic": "  "}'),
    "a registry with a schema": (
        "registries",
        '{"registry_id": "r", "scope": "global", "fingerprint": "f", "revision": 1, "created_at": 0, "updated_at": 0,'
        ' "tools": [{"tool_id": "t", "title": "T", "schema_fingerprint": "s",'
        ' "summary": "{\\"type\\": \\"object\\", \\"properties\\": {}}"}]}',
    ),
    "a brief in a public archive that holds a key": (
        "observations",
        '{"registry_id": "r", "registry_fingerprint": "f", "registry_scope": "global", "tool_id": "t",'
        ' "schema_fingerprint": "s", "outcome": "succeeded", "at": 0,'
        ' "brief": {"summary": "api_key=sk_live_4eC39HqLyjWDarjtT1zdp7dc"}}',
    ),
    "a candidate in a public archive": (
        "candidates",
        '{"candidate_id": "c", "target": "long_term", "kind": "fact", "privacy": "public_runtime",'
        ' "authority": "host", "reason": "needs_assertion", "chat_id": "c", "at": 0,'
        ' "text": {"topic": "", "content": "x"}}',
    ),
    "an alias of nothing": (
        "aliases", '{"principal": "p", "agent_id": "a", "channel": "c", "chat_id": "c", "conversation": 0}'
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SPACE_FORGERIES)
def test_an_archive_with_what_could_not_be_written_is_refused(source: Home, target: Home, name: str) -> None:
    from typing import get_args, get_type_hints

    import msgspec

    field, text = SPACE_FORGERIES[name]
    kind = get_args(get_type_hints(Records)[field])[0]
    data, _ = source.archive()
    made = forged(data, records(**{field: (msgspec.json.decode(text, type=kind),)}), "space")
    assert attempt(target, made, op="memory.import_space") in (
        "invalid_request",
        "privacy_denied",
        "integrity_violation",
    )


def test_the_operator_s_word_comes_in_through_an_operator_alone(source: Home, target: Home) -> None:
    data, _ = source.snapshot()
    made = forged(data, facts(lambda fact: replace(fact, authority="operator")))
    agent = embedded_caller("mara")._replace(kind="principal", name="agent")
    error = target.refused("forbidden", "memory.import", taking(made, "chat-1", "bootstrap_import"), caller=agent)
    assert error.details["authority"] == "operator"
    target.take(made)


DEEP = b"\x91" * 200_000
BOMBS = {
    "a deep nesting": DEEP,
    "a deep nesting in a field": b"\x88\xa6schema" + DEEP,
    "a deep nesting in an unknown field": b"\x89\xa6schemb" + DEEP,
    "a map of four billion": b"\xdf\xff\xff\xff\xff",
    "records of four billion": b"\x81\xa7records\x81\xa6skills\xdd\xff\xff\xff\xff",
    "turns of a quarter billion": b"\x81\xa7records\x81\xadconversations\x91\x83\xa5turns\xdd\x10\x00\x00\x00\xc0",
    "a text of four billion bytes": b"\x81\xa5state\xdb\xff\xff\xff\xff",
    "many empty maps": b"\x81\xa7records\x81\xa6skills\xdd\x00\x10\x00\x00" + b"\x80" * 2**20,
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_takes_no_memory(target: Home, name: str) -> None:
    data = close_envelope("chat", None, BOMBS[name])
    tracemalloc.start()
    try:
        assert attempt(target, data) in ("invalid_request", "integrity_violation")
        assert tracemalloc.get_traced_memory()[1] < 8 * len(data) + 4 * MIB
    finally:
        tracemalloc.stop()


def test_a_bomb_in_the_envelope_itself_takes_no_memory(target: Home, source: Home) -> None:
    head = source.snapshot()[0][:29]
    for tail in (b"\xa4kind" + DEEP, b"\xa4body\xc6\xff\xff\xff\xff", b"\xa7sealing\xdf\xff\xff\xff\xff"):
        covered = head + tail + b"\xa6sha256\xc4\x20"
        assert attempt(target, covered + hashlib.sha256(covered).digest()) == "invalid_request"


# Words, keys and budgets.


def test_what_is_sealed_opens_with_its_own_words_alone(source: Home, target: Home) -> None:
    data, told = source.snapshot(private=True)
    plain, _ = source.snapshot()
    for word in (b"shared", b"content", b"chat-1", told["state_fingerprint"].encode()):
        assert word in plain + told["state_fingerprint"].encode() and word not in data
    args = taking(data, "chat-1", "bootstrap_import")
    error = target.refused("invalid_request", "memory.import", args)
    assert error.details["path"] == "$.args.passphrase"
    error = target.refused("privacy_denied", "memory.import", {**args, "passphrase": WORDS + "!"})
    assert WORDS not in f"{error}{error.hint}{error.details}"
    assert source.snapshot(private=True)[0] != data
    target.take(data, private=True)


def test_a_public_export_may_be_sealed_too(source: Home, target: Home) -> None:
    import base64

    report = source.ask("memory.export", {"chat_id": "chat-1", "passphrase": WORDS})
    assert report["sealed"]
    target.take(base64.b64decode(report["snapshot"]), private=True)


def test_private_material_leaves_sealed_or_not_at_all(source: Home) -> None:
    for op, args in (("memory.export", {"chat_id": "chat-1"}), ("memory.export_space", {})):
        error = source.refused("invalid_request", op, {**args, "include_private": True})
        assert error.details["path"] == "$.args.passphrase"
        source.refused("invalid_request", op, {**args, "include_private": True, "passphrase": "short"})
        panel = embedded_caller("mara")._replace(kind="principal", views=("host_ui", "export"))
        whole = {**args, "include_private": True, "passphrase": WORDS}
        source.refused("privacy_denied", op, whole, caller=panel)
        modelled = panel._replace(views=("model_context",))
        source.refused("privacy_denied", op, args, caller=modelled)


def test_private_material_neither_leaves_nor_comes_in_without_the_device_s_key(tmp_path: Path) -> None:
    home, other = Home(tmp_path, "home"), Home(tmp_path, "other")
    fill(home)
    data, _ = home.archive(private=True)
    for each in (home, other):
        os.rename(f"{each.path}.identity", f"{each.path}.away")
    whole = {"include_private": True, "passphrase": WORDS}
    home.refused("privacy_denied", "memory.export_space", whole)
    before = other.head()
    other.refused("privacy_denied", "memory.import_space", {"archive": data, "mode": "bootstrap_import",
                                                            "passphrase": WORDS})  # fmt: skip
    assert [row[0] for row in other.rows("SELECT event FROM event_log WHERE seq > ?", before.seq)] == ["refused"]
    assert home.ask("memory.export_space", {})["counts"]
    home.close()
    other.close()


def test_the_wrong_sort_of_envelope_is_named(source: Home, target: Home) -> None:
    chat, space = source.snapshot()[0], source.archive()[0]
    assert (
        "import-space"
        in target.refused("invalid_request", "memory.import", taking(space, "c", "bootstrap_import")).hint
    )
    error = target.refused("invalid_request", "memory.import_space", {"archive": chat, "mode": "bootstrap_import"})
    assert "memory import" in error.hint
    target.refused("invalid_request", "memory.import", taking(b"x" * 100, "c", "bootstrap_import"))
    target.refused("invalid_request", "memory.import", taking(b"", "c", "bootstrap_import"))


def test_what_a_smaller_profile_could_not_take_by_a_request_it_takes_by_no_import(tmp_path: Path) -> None:
    home, small = Home(tmp_path, "home"), Home(tmp_path, "small", "sqlite", COMPACT)
    home.ask("transcript.commit", talk(turn("t1", "x" * 100_000), conversation=HERE))
    data, _ = home.snapshot()
    error = small.refused("payload_too_large", "memory.import", taking(data, "chat-1", "bootstrap_import"))
    assert error.details["path"] == "$.snapshot.records.conversations[0].turns[0].messages[0].content"
    assert small.rows("SELECT count(*) FROM space") == [(0,)]
    big = b"\x00" * (load_profile(COMPACT).budgets.import_bytes + 1)
    assert small.refused("payload_too_large", "memory.import", taking(big, "c", "bootstrap_import")).details[
        "limit"
    ] == ("import_bytes")
    home.close()
    small.close()


def test_an_export_over_the_profile_s_bytes_is_refused(tmp_path: Path) -> None:
    text = (REPOSITORY / "profiles" / f"{DEV}.toml").read_text()
    file = tmp_path / "little.toml"
    file.write_text(re.sub(r"(?m)^export_bytes = .*$", "export_bytes = 5_500", text))
    home = Home(tmp_path, "home", profile=str(file))
    home.ask("transcript.commit", talk(turn("t1", "x" * 4_000), conversation=HERE))
    home.snapshot()
    home.ask("transcript.commit", talk(turn("t2", "x" * 4_000), conversation=HERE))
    error = home.refused("payload_too_large", "memory.export", {"chat_id": "chat-1"})
    assert error.details["limit"] == "export_bytes"
    home.close()


def test_an_import_that_would_fill_the_store_is_taken_back(tmp_path: Path) -> None:
    text = (REPOSITORY / "profiles" / f"{DEV}.toml").read_text()
    file = tmp_path / "little.toml"
    little_store = re.sub(r"(?m)^store_bytes = .*$", "store_bytes = 3_000_000", text)
    file.write_text(re.sub(r"(?m)^wal_bytes = .*$", "wal_bytes = 1_000_000", little_store))
    home, small = Home(tmp_path, "home"), Home(tmp_path, "small", profile=str(file))
    home.ask("transcript.commit", talk(turn("t1", *("word " * 100_000 for _ in range(8))), conversation=HERE))
    data, _ = home.snapshot()
    small.refused("store_budget_exceeded", "memory.import", taking(data, "chat-1", "bootstrap_import"))
    assert small.rows("SELECT count(*) FROM space") == [(0,)]
    small.is_sound()
    home.close()
    small.close()


def test_a_body_is_repeated_to_the_byte_by_what_it_decodes_to(source: Home) -> None:
    data, _ = source.snapshot()
    envelope = open_envelope(data, "chat").envelope
    signed = envelope.signed
    assert isinstance(envelope, Envelope) and envelope.sealing is None and signed is not None
    body = bytes(envelope.body)
    assert pack(unpack(body, Body)) == body
    assert close_envelope("chat", None, body, lambda digest: signed) == data


SECRET = "password is hunter2hunter2"


def procedures(**changes: Any) -> Callable[[Body], Body]:
    def changed(body: Body) -> Body:
        first, *others = body.records.skills
        told = replace(first, revisions=(replace(first.revisions[0], **changes), *first.revisions[1:]))
        return replace(body, records=replace(body.records, skills=(told, *others)))

    return changed


@pytest.mark.parametrize(
    ("path", "change"),
    [
        ("facts[1].texts[0].content", facts(lambda f: replace(f, texts=(replace(f.texts[0], content=SECRET),)))),
        (
            "facts[1].texts[0].keywords[0]",
            facts(lambda f: replace(f, texts=(replace(f.texts[0], keywords=(SECRET,)),))),
        ),
        ("facts[1].revisions[0].reason", revisions(reason=SECRET)),
        ("skills[0].revisions[0].content", procedures(content=SECRET)),
        ("skills[0].revisions[0].title", procedures(title=SECRET)),
        ("skills[0].revisions[0].citations[0]", procedures(citations=(SECRET,))),
        ("skills[0].revisions[0].edit_reason", procedures(edit_reason=SECRET)),
        ("skills[0].revisions[0].source_chat_id", procedures(source_chat_id=SECRET)),
    ],
)
def test_what_looks_like_a_secret_comes_in_by_no_import(
    source: Home, target: Home, path: str, change: Callable[[Body], Body]
) -> None:
    data, _ = source.snapshot()
    made = forged(data, change)
    error = target.refused("privacy_denied", "memory.import", taking(made, "chat-1", "bootstrap_import"))
    assert error.details["path"].endswith(f".records.{path}"), error.details
    assert "hunter2" not in f"{error.message} {error.hint} {error.details}"
    assert attempt(target, made) == "privacy_denied"


def test_evidence_of_an_import_is_as_it_was_said(source: Home, target: Home) -> None:
    data, _ = source.snapshot()
    target.take(forged(data, messages(content=SECRET)))
