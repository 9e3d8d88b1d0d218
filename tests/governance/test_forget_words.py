"""The words of a query mean the same in every plane, and what recall makes of them: whole words, without accents and
endings. What forget leaves is found by no such words, and strangers stay."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from beetle import MemoryRuntime
from beetle.chunk_tree.archive import Member, packed
from beetle.contracts.errors import Conflict, InvalidRequest
from tests.building import candidate, candidates, message, skill, turn, write
from tests.governance.sliced import WHERE
from tests.store.conftest import open_runtime

COUNTS = {
    "turns": 4, "messages": 4, "facts": 1, "skills": 1, "candidates": 1, "proposals": 1, "private_items": 1,
    "tool_briefs": 1, "thoughts": 1, "chunks": 1, "uploaded_skills": 1,
}  # fmt: skip
"""Of one text in every plane; the turns are a shared, a masked and a soul message, and an attr."""
CASES = [
    ("José has boats.", "Josephine lives in a boathouse.", ("jose", "JOSÉ", "boat", "Jose boating", "has-boats")),
    ("Ana bakes.", "Banana bread in Panama by the canal.", ("Ana", "ana", "ana bake")),
    ("我住在上海。", "他住在北京, 海外的上司。", ("上海", "住在上海")),
    ("ฉันรักทะเล", "ชาเขียว", ("ทะเล", "รักทะเล")),
    ("ผู้ใหญ่อยู่ที่นี่", "กาแฟ", ("ผู้ใหญ่", "ที่นี่")),
    ("O'Brien's PIN is 4711.", "The PIN is 47110, obriens.", ("O'Brien", "4711", "pin 4711")),
    ('She said:\n"Zoë\tleft"', "zoela nzoe leftover", ("zoe", "Zoe left")),
]


def plant(memory: MemoryRuntime, text: str, name: str) -> None:
    """A text in every plane, each record called by the name."""
    masked, soul, attr, cited = (f"{name}-{each}" for each in ("masked", "soul", "attr", "cited"))
    hidden = [message(f"m-{soul}", text, visibility="soul")]
    turns = [
        turn(name, message(f"m-{name}", text)),
        turn(masked, message(f"m-{masked}", text)),
        {**turn(soul, ""), "messages": hidden},
        turn(attr, message(f"m-{attr}", "nothing"), attrs=[{"key": "form", "value": text}]),
        turn(cited, message(f"m-{cited}", "the observed thing")),
    ]
    memory.commit_transcript(conversation=WHERE, turns=turns)
    memory.request_transcript_lifecycle(conversation=WHERE, action="mask", turn_ids=[masked], reason="r")
    sealed = {"target": "private_garden", "privacy": "subject_private", "authority": "operator"}
    given = (
        candidate(f"{name}-1", text, topic=f"topic {name}1"),
        candidate(f"{name}-2", text, topic=f"topic {name}2", authority="assistant_claimed"),
        candidate(f"{name}-3", text, topic=f"topic {name}3", **sealed),
    )
    memory.write(**candidates(*given))
    memory.write(**write(skill(name, content=text), skill(f"{name}other")))
    used = {"tool_id": name, "schema_fingerprint": "s", "outcome": "succeeded", "summary": text}
    told = {"registry_ref": {"registry_id": "r", "fingerprint": "f"}, "turn_id": cited, "observations": [used]}
    memory.call("memory.write", {"kind": "agent_tool_usage_feedback", "feedback": told})
    memory.call("chunk.create", {"content": text, "conversation_id": name, "link": False})
    memory.call("chain.append", {"chain_key": name, "thought_type": "Plan", "content": text, "agent_id": "writer"})
    body = f"---\nname: {name}\ndescription: a way\n---\n{text}\n"
    memory.call("skill_registry.upload", {"skill_id": name, "agent_id": "writer", "content": body})
    change = {"kind": "skill_edit", "target": f"{name}other", "change": {"title": "T"}, "rationale": text}
    memory.propose(proposals=[{"proposal_id": name, **change}])


@pytest.fixture(params=CASES, ids=[case[2][0] for case in CASES])
def planted(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    person, stranger, queries = request.param
    with open_runtime(tmp_path / "store.db", "in-memory") as memory:
        plant(memory, person, "thefirst")
        plant(memory, stranger, "thesecond")
        yield memory, queries


def recalled(memory: MemoryRuntime, query: str) -> set[str]:
    return {hit.ref for hit in memory.recall(query=query, limit=50).hits}


def test_the_same_words_are_forgotten_in_every_plane_and_strangers_stay(planted: Any) -> None:
    memory, queries = planted
    for query in queries:
        shown = memory.forget(query=query, dry_run=True)
        assert shown.counts == COUNTS, query
        assert not any("thesecond" in ref for ref in (*shown.refs, *map(str, shown.stays)))
    before = recalled(memory, queries[0])
    assert {ref.split(":")[0] for ref in before} == {"evidence", "procedural", "long_term", "thoughts", "chunks"}
    done = memory.forget(query=queries[-1], token=shown.token)
    assert done.counts == shown.counts
    assert not recalled(memory, queries[0]) & {ref for ref in before if "thesecond" not in ref}
    for query in queries:
        assert memory.forget(query=query, dry_run=True).counts == {}, query
    assert [each.metadata.conversation_id for each in memory.call("chunk.list", {}).chunks] == ["thesecond"]


NOTE = {
    "id": "note", "tokens": 1, "type": "note", "content": "plain", "tags": [], "links": {},
    "metadata": {"created": "2026-02-10T10:00:00Z", "conversation_id": "c"},
}  # fmt: skip
NOTES: dict[str, Any] = {
    "field": {"summary": "It says kingfisher"},
    "name": {"kingfisher": True},
    "deep": {"more": [{"of": ["kingfisher"]}]},
    "metadata": {"metadata": {**NOTE["metadata"], "title": "kingfisher"}},
    "links": {"links": {"sees": ["kingfisher"]}},
    "target": {"links": {"supports": ["the kingfisher"]}},
    "conversation": {"metadata": {**NOTE["metadata"], "conversation_id": "kingfisher talk"}},
    "not": {"summary": "It says kingfishery", "links": {"supports": ["field"]}},
}
"""What files of a tree have besides content and tags: a query finds it as it finds these, but for the last."""


def test_words_in_whatever_else_is_shown_of_a_chunk_are_forgotten_too(tmp_path: Path) -> None:
    files = [{**NOTE, "id": name, **changes} for name, changes in NOTES.items()]
    with open_runtime(tmp_path / "store.db", "in-memory") as memory:
        tree = (Member(f"chunks/2026-02/{each['id']}.json", json.dumps(each).encode()) for each in files)
        assert memory.import_chunk_tree(archive=packed(tree)).imported == len(NOTES)
        forgotten = {f"chunks:{name}" for name in NOTES if name != "not"}
        shown = memory.forget(query="kingfisher", dry_run=True)
        assert set(shown.refs) == forgotten
        for query in ("chunk metadata links", "field"):
            assert memory.forget(query=query, dry_run=True).counts == {}, (
                "names of parts and ids of chunks are no words"
            )
        assert memory.forget(query="kingfisher", token=shown.token).counts == {"chunks": len(forgotten)}
        assert [each.id for each in memory.list_chunks(state="all").chunks] == ["not"]


def test_words_that_stand_in_two_texts_are_none_of_either(tmp_path: Path) -> None:
    """Tags stand side by side for recall, and so for what is forgotten; links and list items do not."""
    parts = ["\u6211\u4f4f\u5728\u4e0a", "\u6d77\u5916\u7684\u4e0a\u53f8"]
    files = [
        {**NOTE, "id": "links", "links": {"supports": parts}},
        {**NOTE, "id": "list", "seen": parts},
        {**NOTE, "id": "tags", "tags": parts},
    ]
    with open_runtime(tmp_path / "store.db", "in-memory") as memory:
        tree = (Member(f"chunks/2026-02/{each['id']}.json", json.dumps(each).encode()) for each in files)
        assert memory.import_chunk_tree(archive=packed(tree)).imported == len(files)
        assert {each.ref for each in memory.recall("\u4e0a\u6d77").hits} == {"chunks:tags"}
        assert memory.forget(query="\u4e0a\u6d77", dry_run=True).refs == ("chunks:tags",)


def test_words_beside_messages_and_of_agents_are_forgotten_too(tmp_path: Path) -> None:
    label = {"kind": "ticket", "ref_id": "1", "label": "About the kingfisher"}
    trigger = message("m2", "good morning", actor={"trigger": "kingfisher alarm"})
    agent = {"chain_key": "k", "agent_id": "scribe"}
    with open_runtime(tmp_path / "store.db", "in-memory") as memory:
        turns = [turn("t1", message("m1", "hello"), host_refs=[label]), turn("t2", trigger), turn("t3", "stays")]
        memory.commit_transcript(conversation=WHERE, turns=turns)
        memory.append_thought(**agent, thought_type="Plan", content="stays")
        memory.append_thought(chain_key="k", agent_id="p", agent_name="Kingfisher", thought_type="Plan", content="goes")
        memory.upsert_chain_agent(**agent, description="Feeds the kingfisher")
        for who in ("p", "scribe"):
            body = f"---\nname: of-{who}\ndescription: a way\n---\nDo.\n"
            memory.call("skill_registry.upload", {"chain_key": "k", "agent_id": who, "content": body})
        shown = memory.forget(query="kingfisher", dry_run=True)
        counts = {"turns": 2, "messages": 2, "thoughts": 1, "chain_agents": 2, "uploaded_skills": 1}
        assert shown.counts == counts
        memory.upsert_chain_agent(**agent, description="Knows the kingfisher")
        with pytest.raises(Conflict):
            memory.forget(query="kingfisher", token=shown.token)
        shown = memory.forget(query="kingfisher", dry_run=True)
        assert memory.forget(query="kingfisher", token=shown.token).counts == counts
        agents = memory.list_chain_agent_registry(chain_key="k").agents
        assert [(each.display_name, each.description) for each in agents] == [("p", None), ("scribe", None)]
        assert memory.forget(query="kingfisher", dry_run=True).counts == {}


def test_a_query_of_which_a_word_cannot_be_looked_for_is_refused(tmp_path: Path) -> None:
    with open_runtime(tmp_path / "store.db", "in-memory") as memory:
        ways = (memory.forget, partial(memory.mutate_long_term, action="forget_by_query"))
        for query in (" ", "\u3000", "*", '"', "\U0001fab2", "\u30fb", "jose \u30fb"):
            for forget in ways:
                with pytest.raises(InvalidRequest) as refused:
                    forget(query=query, dry_run=True)
                assert refused.value.details["path"] == "$.args.query"
                assert "jose" not in refused.value.message and "\u30fb" not in refused.value.message
            if query.isspace():
                with pytest.raises(InvalidRequest):
                    memory.list_long_term(query=query)
            else:
                assert (memory.list_long_term(query=query).records, memory.recall(query).hits) == ((), ())


def test_words_beside_others_are_forgotten_only_together(tmp_path: Path) -> None:
    with open_runtime(tmp_path / "store.db", "in-memory") as memory:
        memory.call("chunk.create", {"content": "Jose has boats \U0001fab2 \U0001e900.", "conversation_id": "c"})
        for query in ("boats have", "jose OR ana", "jose \U0001e900"):
            assert memory.forget(query=query, dry_run=True).counts == {}, query
        assert memory.forget(query="boats \U0001fab2", dry_run=True).counts == {"chunks": 1}


def test_facts_are_forgotten_by_the_same_words_as_all_else(tmp_path: Path) -> None:
    with open_runtime(tmp_path / "store.db", "in-memory") as memory:
        for name, text in (("a", "José sails."), ("b", "Josephine sails.")):
            waits = candidate(f"{name}2", text, topic=f"{name}2", authority="assistant_claimed")
            memory.write(**candidates(candidate(name, text, topic=name), waits))
        tried = memory.mutate_long_term(action="forget_by_query", query="jose sailing", dry_run=True)
        assert (tried.affected, tried.waiting) == (1, 1)
