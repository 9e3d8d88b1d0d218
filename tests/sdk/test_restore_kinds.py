"""A restored snapshot holds nothing that was erased since it was made and all that was not, of every kind of record."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import pytest

from beetle import MemoryRuntime
from beetle.store import held_records
from tests.building import candidate, candidates, registry, skill, talk, turn, write

PHRASE = "correct horse battery staple"
CONVERSATION = {"channel_id": "local", "conversation_id": "talk"}
GARDEN = {"target": "private_garden", "privacy": "subject_private"}
TOOL = {"tool_id": "t", "title": "T", "schema_fingerprint": "f"}


class Made(NamedTuple):
    """A record: its name where it has one of its own, the word that it alone says, and what the store calls it."""

    name: str
    word: str
    ref: str = ""


def say(memory: MemoryRuntime, made: Made) -> None:
    memory.call("transcript.commit", talk(turn(made.name, f"it is {made.word}")))


def unsay(memory: MemoryRuntime, made: Made) -> None:
    step = {"conversation": CONVERSATION, "action": "delete_raw", "turn_ids": [made.name], "reason": "r"}
    memory.call("transcript.lifecycle", step)


def judge(memory: MemoryRuntime, made: Made, **more: Any) -> Any:
    given = {"candidate_id": made.name, "topic": f"topic of {made.name}", "authority": "operator", **more}
    asked = candidate(given.pop("candidate_id"), f"it is {made.word}", **given)
    return memory.call("memory.write", candidates(asked)).outcomes[0]


def learn(memory: MemoryRuntime, made: Made) -> str:
    return judge(memory, made).ref


def unlearn(memory: MemoryRuntime, made: Made) -> None:
    memory.mutate_long_term(action="delete", ref=made.ref)


def keep(memory: MemoryRuntime, made: Made) -> str:
    return judge(memory, made, **GARDEN).record_id


def dismiss(memory: MemoryRuntime, made: Made) -> None:
    memory.call("private.delete", {"record_id": made.ref})


def wait(memory: MemoryRuntime, made: Made) -> str:
    return judge(memory, made, authority="assistant_claimed").waiting_id


def wait_under_one_id(memory: MemoryRuntime, made: Made) -> str:
    return judge(memory, made, authority="assistant_claimed", candidate_id="one").waiting_id


def wait_sealed(memory: MemoryRuntime, made: Made) -> str:
    return judge(memory, made, authority="assistant_claimed", **GARDEN).waiting_id


def extract(memory: MemoryRuntime, made: Made) -> None:
    message = {"message_id": made.name, "role": "assistant", "content": "heard it"}
    memory.call("transcript.commit", talk(turn(made.name, message)))
    item = {
        "kind": "fact", "topic": f"topic of {made.name}", "content": f"it is {made.word}", "confidence": 0.5,
        "keywords": [], "evidence_refs": [f"evidence:local/talk/{made.name}"],
    }  # fmt: skip
    memory.call("memory.write", {"kind": "long_term_extraction", "extraction": {"extractor": "x", "items": [item]}})


def reject(memory: MemoryRuntime, made: Made) -> None:
    asked = {"ids": [made.ref], "decision": "reject", "reason": "no", "view": "raw_owner"}
    memory.call("governance.decide", asked)


def practise(memory: MemoryRuntime, made: Made) -> None:
    memory.call("memory.write", write(skill(made.name, content=f"do {made.word}")))


def unpractise(memory: MemoryRuntime, made: Made) -> None:
    memory.delete_runtime_skill(name=made.name)


def propose(memory: MemoryRuntime, made: Made) -> None:
    change = {"title": "T", "topic": "T", "summary": "s", "procedure": f"do {made.word}"}
    asked = {"proposal_id": made.name, "kind": "skill_create", "target": f"k-{made.name}", "change": change}
    memory.call("evolve.propose", {"proposals": [{**asked, "rationale": "r"}]})


def withdraw(memory: MemoryRuntime, made: Made) -> None:
    memory.call("evolve.submit", {"proposal_ids": [made.name], "decision": "withdraw"})


def submit(memory: MemoryRuntime, made: Made) -> None:
    memory.call("evolve.submit", {"proposal_ids": [made.name]})


def propose_fact(memory: MemoryRuntime, made: Made) -> None:
    change = {"topic": f"topic of {made.name}", "content": f"it is {made.word}"}
    asked = {"proposal_id": made.name, "kind": "fact_write", "rationale": "r", "change": change}
    memory.call("evolve.propose", {"proposals": [asked]})


def refuse(memory: MemoryRuntime, made: Made) -> None:
    memory.call("long_term.policy", {"action": "suppress", "topic": f"topic of {made.name}", "reason": "r"})
    done = memory.call("evolve.submit", {"proposal_ids": [made.name]})
    assert done.outcomes[0].state == "refused"


def use_tool(memory: MemoryRuntime, made: Made) -> None:
    seen = {"tool_id": "t", "schema_fingerprint": "f", "outcome": "succeeded", "summary": f"it said {made.word}"}
    feedback = {"registry_ref": {"registry_id": "r", "fingerprint": "f"}, "observations": [seen]}
    memory.call("memory.write", {"kind": "agent_tool_usage_feedback", "feedback": feedback})


def register(memory: MemoryRuntime, made: Made) -> None:
    memory.call("tool_registry.upsert", registry(made.name, {**TOOL, "summary": f"the {made.word}"}))


def unregister(memory: MemoryRuntime, made: Made) -> None:
    memory.call("tool_registry.delete", {"registry_id": made.name})


def upload(memory: MemoryRuntime, made: Made) -> None:
    content = f"---\nname: {made.word}\ndescription: d\n---\n# Steps\n\nDo it.\n"
    memory.call("skill_registry.upload", {"agent_id": "agent-main", "skill_id": made.name, "content": content})


def think(memory: MemoryRuntime, made: Made) -> None:
    said = {"thought_type": "Plan", "content": f"plan {made.word}", "agent_id": "a"}
    memory.call("chain.append", {"chain_key": made.name, **said})


def unthink(memory: MemoryRuntime, made: Made) -> None:
    step = {"chain_key": made.name, "action": "erase", "indexes": [0], "reason": "r"}
    memory.call("chain.lifecycle", step)


def note(memory: MemoryRuntime, made: Made) -> str:
    given = {"content": f"the {made.word}", "conversation_id": "noted", "tags": ["tag"], "link": False}
    return memory.call("chunk.create", given).chunk.id


def unnote(memory: MemoryRuntime, made: Made) -> None:
    memory.call("chunk.delete", {"id": made.ref, "permanent": True})


def introduce(memory: MemoryRuntime, made: Made) -> None:
    said = {"thought_type": "Plan", "content": "plan", "agent_id": "a"}
    memory.call("chain.append", {"chain_key": made.name, **said})
    memory.call("chain.upsert_agent", {"chain_key": made.name, "agent_id": "a", "description": f"is {made.word}"})


def pause(memory: MemoryRuntime, made: Made) -> None:
    memory.call("long_term.policy", {"action": "pause", "topic": f"about {made.word}", "reason": "r"})


def forget(memory: MemoryRuntime, made: Made) -> None:
    token = memory.forget(query=made.word, dry_run=True).token
    assert memory.forget(query=made.word, token=token).changed


class Way(NamedTuple):
    """How a record of a kind is made, and how it is erased alone; None where nothing does."""

    plane: str
    make: Callable[[MemoryRuntime, Made], str | None]
    erase: Callable[[MemoryRuntime, Made], None] | None


WAYS = {
    "turn": Way("turn", say, unsay),
    "fact": Way("fact", learn, unlearn),
    "skill": Way("skill", practise, unpractise),
    "rejected": Way("candidate", wait, reject),
    "dropped": Way("candidate", wait_under_one_id, forget),
    "sealed": Way("candidate", wait_sealed, reject),
    "extracted": Way("candidate", extract, unsay),
    "withdrawn": Way("proposal", propose, withdraw),
    "submitted": Way("proposal", propose, submit),
    "refused": Way("proposal", propose_fact, refuse),
    "proposal": Way("proposal", propose, forget),
    "item": Way("private", keep, forget),
    "dismissed": Way("private", keep, dismiss),
    "brief": Way("brief", use_tool, forget),
    "registry": Way("registry", register, unregister),
    "uploaded": Way("uploaded", upload, forget),
    "thought": Way("thought", think, unthink),
    "chunk": Way("chunk", note, unnote),
    "agent": Way("chain_agent", introduce, None),
    "policy": Way("policy", pause, None),
}
ALONE = tuple(name for name, way in WAYS.items() if way.erase is not None)
EXPORTED = tuple(name for name, way in WAYS.items() if way.plane != "proposal")
"""No export holds a proposal."""


class Place:
    """A store, and what was made in it: by what is to come of it and its way."""

    def __init__(self, folder: Path) -> None:
        self.path = os.fspath(folder / "store.db")
        self.memory = MemoryRuntime.open(self.path, profile="dev-full")
        self.made: dict[tuple[str, str], Made] = {}
        self.texts = ""
        self.verifies = True

    def make(self, fate: str, *ways: str) -> None:
        for way in ways:
            made = Made(f"{way}-{fate}", f"{way}{fate}zq")
            self.made[fate, way] = made._replace(ref=WAYS[way].make(self.memory, made) or "")

    def snapshot(self) -> str:
        return self.memory.create_snapshot().snapshot.snapshot_id

    def restore(self, snapshot: str, **more: Any) -> Any:
        report = self.memory.restore_snapshot(snapshot_id=snapshot, **more)
        verified = self.memory.verify_store()
        assert verified.clean or not self.verifies, verified.findings
        self.look()
        return report

    def look(self) -> None:
        """Read all that the store says in any table, and what it opens of what is sealed."""
        connection = apsw.Connection(self.path, flags=apsw.SQLITE_OPEN_READONLY)
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        rows = (row for table in tables for row in connection.execute(f'SELECT * FROM "{table}"'))
        texts = [str(value) for row in rows for value in row if isinstance(value, str)]
        connection.close()
        items = [{"record_id": each.record_id} for each in self.memory.list_private().items]
        texts += [str(self.memory.call("private.get", each)) for each in items]
        texts += [str(each) for each in self.memory.call("governance.list", {"view": "raw_owner"}).candidates]
        self.texts = "\n".join(texts)

    def change_log(self, change: str, where: str) -> None:
        """Have the newest row of the log be as an earlier build wrote it."""
        connection = apsw.Connection(self.path)
        connection.execute(f"UPDATE event_log SET {change} WHERE seq = (SELECT max(seq) FROM event_log WHERE {where})")
        connection.close()
        self.verifies = False

    def says(self, fate: str, way: str) -> bool:
        return self.made[fate, way].word in self.texts


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    yield made
    made.memory.close()


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """One of each was erased by itself, and one was not."""
    place = Place(tmp_path_factory.mktemp("alone"))
    place.make("gone", *ALONE)
    place.make("kept", *WAYS)
    snapshot = place.snapshot()
    for way in ALONE:
        if (erase := WAYS[way].erase) is not None:
            erase(place.memory, place.made["gone", way])
    place.restore(snapshot)
    yield place
    place.memory.close()


@pytest.fixture(scope="module")
def replaced(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """The space was replaced by an archive of it, which was made when it held only one of each."""
    place = Place(tmp_path_factory.mktemp("replaced"))
    place.make("kept", *WAYS)
    archive = place.memory.export_space(include_private=True, passphrase=PHRASE).archive
    place.make("gone", *WAYS)
    snapshot = place.snapshot()
    place.memory.import_space(archive=archive, mode="full_restore", passphrase=PHRASE)
    place.restore(snapshot)
    yield place
    place.memory.close()


@pytest.fixture(scope="module")
def forgotten(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """The whole space was forgotten; then other tools were registered under the same id."""
    place = Place(tmp_path_factory.mktemp("forgotten"))
    place.make("gone", *WAYS)
    snapshot = place.snapshot()
    token = place.memory.forget(whole_space=True, dry_run=True).token
    place.memory.forget(whole_space=True, token=token)
    other = registry(place.made["gone", "registry"].name, {**TOOL, "summary": "another"}, fingerprint="f2")
    place.memory.call("tool_registry.upsert", other)
    place.restore(snapshot)
    yield place
    place.memory.close()


@pytest.mark.parametrize("way", ALONE)
def test_what_was_erased_alone_is_gone(alone: Place, way: str) -> None:
    assert not alone.says("gone", way)


@pytest.mark.parametrize("way", WAYS)
def test_what_was_not_erased_is_there(alone: Place, way: str) -> None:
    assert alone.says("kept", way)


@pytest.mark.parametrize("way", WAYS)
def test_what_gave_way_to_an_archive_is_gone(replaced: Place, way: str) -> None:
    assert not replaced.says("gone", way)


@pytest.mark.parametrize("way", EXPORTED)
def test_what_came_with_the_archive_again_is_there(replaced: Place, way: str) -> None:
    assert replaced.says("kept", way)


@pytest.mark.parametrize("way", WAYS)
def test_what_was_forgotten_with_its_space_is_gone(forgotten: Place, way: str) -> None:
    assert forgotten.says("gone", way) == (way == "policy"), "a policy stays"


CHAT = {"conversation": {"channel_id": "local", "conversation_id": "chat-1"}}


def in_chat(memory: MemoryRuntime, fate: str) -> None:
    """A turn of a chat, and what rests on it: a fact, a private item, what waits; and a skill learned there."""
    cited = [f"evidence:local/chat-1/t-{fate}"]
    memory.call("transcript.commit", {**talk(turn(f"t-{fate}", f"said {fate}")), **CHAT})
    memory.call("memory.write", candidates(
        candidate("f", f"fact {fate}", topic=f"f {fate}", evidence_refs=cited, authority="operator"),
        candidate("g", f"item {fate}", evidence_refs=cited, authority="operator", **GARDEN),
        candidate("w", f"waits {fate}", topic=f"w {fate}", evidence_refs=cited, authority="assistant_claimed"),
    ))  # fmt: skip
    made = skill(f"way-{fate}", content=f"skill {fate}", source_chat_id="chat-1")
    memory.call("memory.write", write(made))


@pytest.mark.parametrize("named", [True, False], ids=["conversation-in-the-log", "older-log"])
def test_what_gave_way_to_an_export_of_its_chat_is_gone(place: Place, named: bool) -> None:
    memory = place.memory
    say(memory, Made("elsewhere", "elsewherezq"))
    in_chat(memory, "keptzq")
    data = memory.export_snapshot(chat_id="chat-1", include_private=True, passphrase=PHRASE).snapshot
    in_chat(memory, "gonezq")
    snapshot = place.snapshot()
    asked = {"snapshot": data, "target_chat_id": "chat-1", "mode": "full_restore", "passphrase": PHRASE}
    memory.call("memory.import", {**asked, "discard_withheld": True})
    if not named:
        place.change_log("subject = json_remove(subject, '$.channel_id', '$.conversation_id')", "event = 'imported'")
    place.restore(snapshot)
    words = ("said", "fact", "item", "waits", "skill")
    assert [each for each in words if f"{each} gonezq" in place.texts] == []
    assert [each for each in words if f"{each} keptzq" not in place.texts] == []
    assert "elsewherezq" in place.texts


def test_of_candidates_that_an_older_log_names_by_their_writers_id_those_go_that_do_not_wait(place: Place) -> None:
    place.make("gone", "dropped")
    place.make("kept", "dropped", "extracted")
    snapshot = place.snapshot()
    forget(place.memory, place.made["gone", "dropped"])
    place.change_log("subject = json_remove(subject, '$.waiting_id')", "event = 'candidate_dropped'")
    place.restore(snapshot)
    assert [place.says(*each) for each in place.made] == [False, True, True]


def test_a_label_that_did_not_come_again_with_its_turn_is_gone(place: Place) -> None:
    views = ["host_ui", "model_context", "operator_audit", "export"]
    ref = {"kind": "task", "ref_id": "r", "label": "labelzq", "visibility": views}
    given = {"target": {"message_id": "t1.0"}, "visibility": ["host_ui"], "export_allowed": False}
    attr = {"key": "k", "value": "attrzq", **given}
    turns = talk(turn("t1", "keptzq", host_refs=[ref], attrs=[attr]), turn("t2", "gonezq", host_refs=[ref]))
    place.memory.call("transcript.commit", turns)
    unsay(place.memory, Made("t2", ""))
    archive = place.memory.export_space(include_private=True, passphrase=PHRASE).archive
    snapshot = place.snapshot()
    place.memory.import_space(archive=archive, mode="full_restore", passphrase=PHRASE)
    assert place.restore(snapshot).erased == {"labels": 1, "attrs": 1}
    assert [word for word in ("keptzq", "labelzq", "attrzq") if word in place.texts] == ["keptzq"]


UNDOING = ("fact", "skill", "rejected", "item", "brief", "registry", "uploaded", "chunk", "thought")


def test_what_a_restore_brought_back_stays_with_the_next(place: Place) -> None:
    place.make("gone", *UNDOING)
    first, second = place.snapshot(), place.snapshot()
    for way in UNDOING:
        if (erase := WAYS[way].erase) is not None:
            erase(place.memory, place.made["gone", way])
    place.restore(first, keep_erased=True)
    reject(place.memory, place.made["gone", "rejected"])
    assert place.restore(second).erased == {"candidates": 1}, "which was erased again behind it"


def test_what_a_restore_erased_again_the_next_one_does_too(place: Place) -> None:
    place.make("gone", *UNDOING)
    first, second = place.snapshot(), place.snapshot()
    for way in UNDOING:
        if (erase := WAYS[way].erase) is not None:
            erase(place.memory, place.made["gone", way])
    once = place.restore(first).erased
    assert len(once) == len(UNDOING) and place.restore(second).erased == once


def test_what_an_older_snapshot_does_not_hold_was_not_erased(place: Place) -> None:
    older = place.snapshot()
    place.make("kept", *WAYS)
    newer = place.snapshot()
    place.restore(older)
    assert place.restore(newer).erased == {}
    assert all(place.says("kept", way) for way in WAYS)


def test_a_chunk_that_was_deleted_and_imported_again_stays(place: Place) -> None:
    place.make("kept", "chunk")
    archive = place.memory.call("chunk.export_tree", {}).archive
    snapshot = place.snapshot()
    unnote(place.memory, place.made["kept", "chunk"])
    place.memory.call("chunk.import_tree", {"archive": archive})
    assert place.restore(snapshot).erased == {} and place.says("kept", "chunk")


def test_a_skill_that_was_deleted_and_made_anew_otherwise_is_gone(place: Place) -> None:
    place.make("gone", "skill")
    snapshot = place.snapshot()
    made = place.made["gone", "skill"]
    unpractise(place.memory, made)
    practise(place.memory, made._replace(word="another"))
    assert place.restore(snapshot).erased == {"skills": 1} and not place.says("gone", "skill")


HOLDING = {
    "turn": (
        "message body turn conversation conversation_speaker host_ref event captured_turn transcript_lifecycle "
        "remembered_conversation maintained toc_node toc_title toc_outbox grip"
    ),
    "label": "host_ref_label",
    "attr": "attr",
    "fact": "fact fact_body fact_revision fact_reason",
    "skill": "skill skill_revision",
    "candidate": "candidate candidate_body",
    "proposal": "proposal proposal_body",
    "private": "private_item",
    "brief": "tool_observation tool_brief",
    "registry": "tool_registry registered_tool",
    "uploaded": "registry_skill registry_skill_text registry_version registry_version_body",
    "thought": "chain thought thought_body thought_link thought_mark",
    "chain_agent": "chain_agent chain_alias chain_agent_key chain_activity",
    "chunk": "chunk chunk_body chunk_link chunk_tag chunk_access removed_chunk",
    "policy": "policy policy_text",
}
"""By the kind of the record that they belong to: the tables of what a space holds."""
APART = (
    "meta schema_migration log_head event_log event_place idempotency job scheduled_job device transport host_key "
    "row_seal table_seal space space_key former_identity former_space_key removed_value derived_ref erasure "
    "erasure_left pending_erasure index_tail word_bitmap"
)
"""Tables of no record: of the store itself, of its log, its keys, its work and its index, and the links of records."""


def test_every_table_belongs_to_a_kind_that_a_restore_erases_again(alone: Place) -> None:
    connection = apsw.Connection(alone.path, flags=apsw.SQLITE_OPEN_READONLY)
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    connection.close()
    sorted_in = {table for each in (*HOLDING.values(), APART) for table in each.split()}
    left = {each for each in tables if not each.startswith(("recall_index", "sqlite_"))} ^ sorted_in
    assert not left, "a new table is of a kind in HOLDING, which a restore erases again, or of no record"
    assert {*HOLDING} == {"turn", *held_records.IN_SPACE} == {way.plane for way in WAYS.values()} | {"label", "attr"}
