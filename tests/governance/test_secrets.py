"""What looks like a secret is refused at every door by one detector, and what only speaks of one passes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from beetle.domain.sensitive import is_secret
from tests.governance.judging import JudgedStore, Plain, candidate, message, ref
from tests.governance.test_sensitive import SECRETS, letters
from tests.governance.test_tool_feedback import feedback, observation

SAID = {
    **SECRETS,
    "in prose": "password is hunter2hunter2",
    "in prose, with whose": "My password for the router is hunter2hunter2.",
    "quoted in prose": 'The passphrase was now: "tr0ub4dor&3".',
    "figures": "The password is 84736251.",
    "before its word": "hunter2hunter2 is my password",
    "in German": "Das Passwort ist Sommer2024!",
    "in German, with whose": "Mein Kennwort für das WLAN lautet Sommer2024",
    "in German, before its word": "Sommer2024 ist mein WLAN-Passwort",
    "a key in German": "Der API-Schlüssel lautet " + letters(24),
    "connection string": "postgres://app:s3cr3tpw@db.example.org/main",
    "connection string without a user": "redis://:s3cr3tpw@cache:6379/0",
    "connection string of fields": "Server=db;User Id=sa;Pwd=Abc12345;",
    "account key": "AccountName=x;AccountKey=" + letters(44) + "==",
    "card": "Pay with 4111 1111 1111 1111, please.",
    "card in one": "5555555555554444",
    "card with dashes": "the card is 6011-1111-1111-1117",
    "card in three": "3782 822463 10005",
}

HARMLESS = [
    "The user forgot the password, so a reset was sent.",
    "The user changes the password every 90 days.",
    "The password is in the vault.",
    "The password was changed in 2024.",
    "Das Passwort ist abgelaufen.",
    "Das Passwort wurde am 3.4.2024 geändert.",
    "Der Nutzer hat sein Kennwort vergessen.",
    "The token was refreshed; prompt_tokens=3000.",
    "Set password=$DB_PASSWORD1 before the start.",
    "Connect to postgres://app:<password>@db/main.",
    "Commit 5f2c9e1b7a was pushed to main.",
    "Order 4111 1111 1111 1112 was sent.",
    "The event was at 1750000000000000 µs.",
    "Call +49 170 1234567 or 030 12345678.",
    "密码每三个月更换一次。",
]

REFS: dict[str, str] = {}
Door = Callable[[str], tuple[str, Plain]]


def procedural(text: str) -> tuple[str, Plain]:
    write = {"name": "pump", "topic": "t", "title": "t", "summary": "s", "content": text}
    return "memory.write", {"kind": "procedural", "source": "manual", "writes": [write]}


def extraction(text: str) -> tuple[str, Plain]:
    item = {"kind": "fact", "topic": "", "content": text, "confidence": 1, "evidence_refs": []}
    return "memory.write", {"kind": "long_term_extraction", "extraction": {"items": [item], "extractor": "x"}}


def observed(text: str) -> tuple[str, Plain]:
    return "memory.write", feedback(observation(text))


def registry(text: str) -> tuple[str, Plain]:
    tool = {"tool_id": "t", "title": "t", "summary": text, "schema_fingerprint": "f"}
    return "tool_registry.upsert", {"registry_id": "r", "scope": "s", "fingerprint": "f", "tools": [tool]}


def candidates(**more: Any) -> Door:
    def door(text: str) -> tuple[str, Plain]:
        return "memory.write", {"kind": "candidates", "candidates": [candidate("c", text, **more)]}

    return door


def changed(action: str) -> Door:
    def door(text: str) -> tuple[str, Plain]:
        change = {"action": action, "ref": REFS["fact"], "content": text, "reason": "a test asks", "dry_run": True}
        return "long_term.mutate", change

    return door


def edited(text: str) -> tuple[str, Plain]:
    return "skill.edit", {"name": "lamp", "procedure": text, "edit_reason": "a test asks"}


def proposed(text: str) -> tuple[str, Plain]:
    change = {"kind": "fact_write", "change": {"content": text}, "rationale": "a test asks"}
    return "evolve.propose", {"proposals": [change]}


def reasoned(text: str) -> tuple[str, Plain]:
    return "evolve.propose", {"proposals": [{"kind": "skill_disable", "target": "lamp", "rationale": text}]}


def cited(text: str) -> tuple[str, Plain]:
    write = {"name": "pump", "topic": "t", "title": "t", "summary": "s", "content": "c", "citations": ["x", text]}
    return "memory.write", {"kind": "procedural", "source": "manual", "writes": [write]}


def resting(text: str) -> tuple[str, Plain]:
    change = {"kind": "skill_disable", "target": "lamp", "rationale": "a test asks", "evidence_refs": [text]}
    return "evolve.propose", {"proposals": [change]}


def policy(field: str) -> Door:
    def door(text: str) -> tuple[str, Plain]:
        return "long_term.policy", {"action": "suppress", "topic": "x", field: text}

    return door


def decided(text: str) -> tuple[str, Plain]:
    ids = [REFS["waiting"]]
    return "governance.decide", {"ids": ids, "decision": "reject", "reason": text, "dry_run": True}


def thought(field: str) -> Door:
    """A field of a thought that is appended; the others say nothing."""

    def door(text: str) -> tuple[str, Plain]:
        said = [text] if field in ("tags", "concepts") else text
        return "chain.append", {"chain_key": "c", "thought_type": "Plan", "content": "x", "agent_id": "a", field: said}

    return door


def of_agent(operation: str, field: str) -> Door:
    def door(text: str) -> tuple[str, Plain]:
        return operation, {"chain_key": "c", "agent_id": "a", field: text}

    return door


def chunk(operation: str, **said: Any) -> Door:
    """A note whose words are the text, or whose tag it is."""

    def door(text: str) -> tuple[str, Plain]:
        asked = {name: [text] if name == "tags" else text if each is None else each for name, each in said.items()}
        return operation, asked

    return door


DOORS: dict[str, Door] = {
    "candidate": candidates(),
    "operator's candidate": candidates(authority="operator"),
    "skill candidate": candidates(target="procedural"),
    "private candidate": candidates(target="private_garden", privacy="subject_private"),
    "extraction": extraction,
    "skill": procedural,
    "skill edit": edited,
    "correction": changed("correct"),
    "superseding": changed("supersede"),
    "proposal": proposed,
    "proposal's reason": reasoned,
    "proposal's evidence": resting,
    "skill's citation": cited,
    "policy's topic": policy("topic"),
    "policy's reason": policy("reason"),
    "tool feedback": observed,
    "tool registry": registry,
    "decision's reason": decided,
    **{f"thought's {field}": thought(field) for field in ("content", "tags", "concepts", "agent_name", "agent_owner")},
    "chunk": chunk("chunk.create", content=None, conversation_id="c"),
    "chunk's tag": chunk("chunk.create", content="x", conversation_id="c", tags=None),
    "chunk's new text": lambda text: ("chunk.update", {"id": REFS["chunk"], "content": text}),
    "text in chunks": chunk("chunk.remember", content=None, conversation_id="c"),
    "retrospective": of_agent("chain.append_retrospective", "content"),
    "first thought": of_agent("chain.bootstrap", "content"),
    **{
        f"agent's {field}": of_agent("chain.upsert_agent", field)
        for field in ("display_name", "agent_owner", "description")
    },
    "agent's new description": of_agent("chain.set_agent_description", "description"),
    "agent's alias": of_agent("chain.add_agent_alias", "alias"),
}


@pytest.fixture(scope="module")
def place() -> Iterator[JudgedStore]:
    made = JudgedStore()
    (fact,) = made.judge(candidate("f", "The pump hums.", "operator", topic="pump"))
    REFS["fact"] = fact["ref"]
    made.judge(candidate("w", "The pump may be loud.", "assistant_claimed", topic="noise"))
    REFS["waiting"] = made.call("governance.list", {"what": "candidates"})["candidates"][0]["waiting_id"]
    made.call("chain.append", {"chain_key": "c", "thought_type": "Plan", "content": "x", "agent_id": "a"})
    REFS["chunk"] = made.call("chunk.create", {"content": "x", "conversation_id": "c"})["chunk"]["id"]
    lamp = {"name": "lamp", "topic": "t", "title": "t", "summary": "s", "content": "Turn it on."}
    made.call("memory.write", {"kind": "procedural", "source": "manual", "writes": [lamp]})
    yield made
    made.close()


NAMES = (
    "thought's agent_name", "thought's agent_owner", "agent's display_name", "agent's agent_owner", "policy's reason",
)  # fmt: skip
"""Doors that take one line."""


@pytest.mark.parametrize("door", DOORS)
def test_every_secret_is_refused_at_the_door_and_nothing_is_written(place: JudgedStore, door: str) -> None:
    before = place.events()
    for name, text in SAID.items():
        if door in NAMES and "\n" in text:
            continue
        operation, args = DOORS[door](text)
        error = place.refused("privacy_denied", operation, args)
        assert error.details["found"] == "secret" and str(error.details["path"]).startswith("$.args."), name
        assert text not in str(error) + error.hint
    assert place.events() == before


@pytest.mark.parametrize("door", DOORS)
def test_what_only_speaks_of_a_secret_passes(place: JudgedStore, door: str) -> None:
    for text in HARMLESS:
        operation, args = DOORS[door](text)
        place.call(operation, args)


def test_a_skill_is_learned_in_a_chat_whose_id_looks_like_a_card_s_number_but_not_like_a_key(
    place: JudgedStore,
) -> None:
    place.talk(message("u1"), turn_id="5555555555554444")
    write: Plain = {"name": "chat", "topic": "t", "title": "t", "summary": "s", "content": "c"}
    write["citations"] = [ref("u1", "5555555555554444")]
    write["source_chat_id"] = "5555555555554444"
    made = {"kind": "procedural", "source": "manual", "writes": [write]}
    assert place.call("memory.write", made)["writes"][0]["outcome"] == "created"
    write["source_chat_id"] = SECRETS["stripe"]
    assert place.refused("privacy_denied", "memory.write", made).details["path"] == "$.args.writes[0].source_chat_id"


CHUNK_NAMES: dict[str, Door] = {
    "conversation_id": lambda name: ("chunk.create", {"content": "x", "conversation_id": name}),
    "conversation_id of a text": lambda name: ("chunk.remember", {"content": "x", "conversation_id": name}),
    "links": lambda name: (
        "chunk.create", {"content": "x", "conversation_id": "c", "links": {"supports": ["y", name]}},
    ),
    "links, new ones": lambda name: ("chunk.update", {"id": REFS["chunk"], "links": {"context_of": [name]}}),
    "target": lambda name: ("chunk.link", {"id": REFS["chunk"], "kind": "context_of", "target": name}),
}  # fmt: skip


@pytest.mark.parametrize("door", CHUNK_NAMES)
def test_a_name_that_a_chunk_is_given_may_look_like_a_card_s_number_but_not_like_a_key(
    place: JudgedStore, door: str
) -> None:
    before = place.events()
    error = place.refused("privacy_denied", *CHUNK_NAMES[door](SECRETS["stripe"]))
    assert (error.details["path"], error.details["found"]) == (f"$.args.{door.split()[0].rstrip(',')}", "secret")
    assert place.events() == before
    place.call(*CHUNK_NAMES[door]("5555555555554444"))


@pytest.mark.parametrize("text", HARMLESS)
def test_the_detector_lets_plain_sentences_through(text: str) -> None:
    assert not is_secret(text)
