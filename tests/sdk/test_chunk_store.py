"""`beetle.chunks` as its callers have it: the seed's examples, its layout file by file, and what must not go wrong."""

from __future__ import annotations

import json
import logging
import os
import re
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from beetle.chunks import (
    AutoLinker,
    Chunk,
    ChunkIndex,
    ChunkingEngine,
    ChunkLinks,
    ChunkMetadata,
    ChunkStore,
    ChunkType,
    ReasonOperation,
    RecallOperation,
    RememberOperation,
    calculate_link_strength,
    chunk_and_store,
    create_chunk_with_links,
    init_storage,
)
from beetle.contracts.errors import BeetleError, InvalidRequest

ID = re.compile(r"chunk-\d{4}-\d{2}-\d{2}-[0-9a-f]{8}\Z")
TIME = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{6})?Z\Z")
HOSTILE_IDS = (
    "",
    "..",
    "../../etc/passwd",
    "a/b",
    "a\\b",
    "a\0b",
    "chunk-1\n",
    ".hidden",
    "a b",
    "é",
    "%2e",
    "x" * 129,
)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ChunkStore]:
    with ChunkStore(tmp_path / "brain" / "memory", profile="profile-desktop-linux-embedded-sdk") as opened:
        yield opened


def note(store: ChunkStore, content: str = "A note", conversation: str = "conv-1", **more: Any) -> Chunk:
    return store.create_chunk(content, "note", conversation, 3, **more)


def files(store: ChunkStore) -> dict[str, Any]:
    """Every JSON file of the tree, by its place."""
    found = sorted(store.base_path.rglob("*.json"))
    return {
        str(each.relative_to(store.base_path)): json.loads(each.read_bytes())
        for each in found
        if ".beetle" not in each.parts
    }


def test_the_examples_of_the_schema(store: ChunkStore) -> None:
    chunk = store.create_chunk(
        content="User prefers Python over JavaScript",
        chunk_type="preference",
        conversation_id="conv-123",
        tokens=12,
        tags=["coding", "preferences"],
        confidence=0.95,
    )
    assert ID.match(chunk.id) and datetime.now(UTC).strftime("%Y-%m-%d") in chunk.id
    assert (chunk.content, chunk.type, chunk.tokens) == ("User prefers Python over JavaScript", "preference", 12)
    assert chunk.type == ChunkType.PREFERENCE
    about = chunk.metadata
    assert (about.conversation_id, about.source, about.confidence) == ("conv-123", "interaction", 0.95)
    assert (about.access_count, about.last_accessed) == (0, None) and TIME.match(about.created)
    assert store.get_chunk("chunk-2026-02-10-abc123") is None
    updated = store.update_chunk(chunk.id, confidence=0.98)
    assert updated is not None and updated.metadata.confidence == 0.98
    assert store.list_chunks(conversation_id="conv-123", tags=["coding"]) == [chunk.id]
    assert store.delete_chunk(chunk.id) is True
    assert store.delete_chunk(chunk.id, permanent=True) is True
    assert store.update_chunk("chunk-2026-02-10-abc123", confidence=0.98) is None
    assert store.delete_chunk("chunk-2026-02-10-abc123") is False


def test_the_layout_file_by_file(tmp_path: Path) -> None:
    store = init_storage(str(tmp_path / "memory"))
    empty = {"total_chunks": 0, "archived_chunks": 0, "by_type": {}, "storage_path": str(tmp_path / "memory")}
    assert store.get_stats() == empty
    assert sorted(each.name for each in store.base_path.iterdir()) == [".beetle", "archive", "chunks", "index"]
    first = store.create_chunk("Prefere chá — 茶", "preference", "conv-1", 12, ["bebidas", "chá"], 0.95)
    second = store.create_chunk("Second", "fact", "conv-1", 5)
    gone = store.create_chunk("Archived", "note", "conv-2", 5, ["gone"])
    assert store.delete_chunk(gone.id)
    store.close()
    month = first.id[6:13]
    places = [f"chunks/{month}/{each.id}.json" for each in (first, second)]
    found = files(store)
    indexes = ["index/link_graph.json", "index/metadata_index.json", "index/tag_index.json"]
    assert sorted(found) == sorted([f"archive/{gone.id}.json", *places, *indexes])

    text = (store.base_path / places[0]).read_text(encoding="utf-8")
    assert text == (
        f'{{\n  "id": "{first.id}",\n  "content": "Prefere chá — 茶",\n  "tokens": 12,\n  "type": "preference",\n'
        f'  "metadata": {{\n    "created": "{first.metadata.created}",\n    "conversation_id": "conv-1",\n'
        '    "source": "interaction",\n    "confidence": 0.95,\n    "access_count": 0,\n    "last_accessed": null\n'
        "  },\n"
        '  "links": {\n    "context_of": [\n      "conv-1"\n    ],\n    "follows": [],\n    "related_to": [],\n'
        '    "supports": [],\n    "contradicts": []\n  },\n  "tags": [\n    "bebidas",\n    "chá"\n  ]\n}'
    )
    assert text == first.to_json()
    assert found[places[1]]["links"]["follows"] == [first.id]

    rows, tags, graph = (found[f"index/{name}.json"] for name in ("metadata_index", "tag_index", "link_graph"))
    assert list(rows["entries"]) == [first.id, second.id] and rows["lists"] == {}
    assert rows["entries"][first.id] == {
        "type": "preference",
        "conversation_id": "conv-1",
        "created": first.metadata.created,
        "confidence": 0.95,
    }
    assert tags["lists"] == {"bebidas": [first.id], "chá": [first.id]} and tags["entries"] == {}
    assert graph["forward"][second.id] == {"context_of": ["conv-1"], "follows": [first.id]}
    assert graph["reverse"][first.id] == {"follows_reverse": [second.id]}
    assert all(TIME.match(each["updated"]) for each in (rows, tags, graph))


def test_the_names_of_a_chunk_become_json_and_come_back(store: ChunkStore) -> None:
    chunk = note(store, tags=["a", "b"], links=ChunkLinks(supports=["chunk-x"]), source="derived")
    assert Chunk.from_json(chunk.to_json()) == Chunk.from_dict(chunk.to_dict()) == chunk
    assert chunk.metadata.source == "derived" and chunk.links.supports == ["chunk-x"]
    assert ChunkMetadata.from_dict(chunk.metadata.to_dict()) == chunk.metadata
    assert ChunkLinks.from_dict(chunk.links.to_dict()) == chunk.links
    kept = {**chunk.to_dict(), "mood": "calm"}
    kept["metadata"] = {**kept["metadata"], "author": {"name": "Ana"}}
    kept["links"] = {**kept["links"], "cites": ["x"]}
    assert Chunk.from_dict(kept).to_dict() == kept


@pytest.mark.parametrize(
    "wrong",
    [
        [],
        "text",
        {"content": None},
        {"tokens": "5"},
        {"tokens": True},
        {"type": "opinion"},
        {"metadata": []},
        {"metadata": {"created": "2026-02-10T21:37:00Z"}},
        {"metadata": {"created": "yesterday", "conversation_id": "c"}},
        {"metadata": {"created": "2026-02-10T21:37:00Z", "conversation_id": "c", "confidence": float("nan")}},
        {"links": None},
        {"links": {"follows": "chunk-x"}},
        {"tags": [1]},
        {"id": "../x"},
    ],
)
def test_what_is_no_chunk_is_a_value_error(store: ChunkStore, wrong: Any) -> None:
    text = json.dumps({**note(store).to_dict(), **wrong} if isinstance(wrong, dict) else wrong)
    with pytest.raises(ValueError, match=r"."):
        Chunk.from_json(text)
    with pytest.raises(json.JSONDecodeError):
        Chunk.from_json("not json")


def test_only_tags_may_be_missing(store: ChunkStore) -> None:
    says = note(store, tags=["t"]).to_dict()
    for name in says.keys() - {"tags"}:
        with pytest.raises(ValueError, match=f"^{name} "):
            Chunk.from_dict({key: value for key, value in says.items() if key != name})
    del says["tags"]
    assert Chunk.from_dict(says).tags == []


def test_reading_counts_and_rewrites_no_file(store: ChunkStore) -> None:
    chunk = note(store)
    place = store._get_chunk_path(chunk.id)
    before = place.stat()
    counts = [found.metadata.access_count for found in (store.get_chunk(chunk.id), store.get_chunk(chunk.id)) if found]
    assert counts == [1, 2]
    store.list_chunks()
    list(store.iter_chunks())
    store.get_stats()
    found = store.peek_chunk(chunk.id)
    assert found is not None and found.metadata.access_count == 2
    assert found.metadata.last_accessed is not None and TIME.match(found.metadata.last_accessed)
    after = place.stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)
    store.close()
    again = store.get_chunk(chunk.id)
    assert again is not None and again.metadata.access_count == 3


def test_updates(store: ChunkStore) -> None:
    chunk = note(store, "Old", tags=["old"])
    updated = store.update_chunk(chunk.id, content="New words here", type="fact", tags=["new", "tags"], confidence=0.1)
    assert updated is not None
    assert (updated.content, updated.type, updated.tags, updated.metadata.confidence) == (
        "New words here",
        "fact",
        ["new", "tags"],
        0.1,
    )
    assert updated.tokens == ChunkingEngine().count_tokens("New words here")
    sized = store.update_chunk(chunk.id, content="Sized", tokens=77)
    assert sized is not None and sized.tokens == 77
    ignored = store.update_chunk(chunk.id, tokens=5, colour="red")
    assert ignored is not None and ignored.tokens == 77
    linked = store.update_chunk(chunk.id, links=ChunkLinks(supports=["chunk-x"]))
    assert linked is not None and linked.links.to_dict() == {
        **ChunkLinks().to_dict(),
        "supports": ["chunk-x"],
    }
    assert linked.metadata.access_count == 0
    assert json.loads(store._get_chunk_path(chunk.id).read_bytes()) == linked.to_dict()
    store.close()
    found = files(store)
    assert found["index/metadata_index.json"]["entries"][chunk.id]["confidence"] == 0.1
    assert found["index/tag_index.json"]["lists"] == {"new": [chunk.id], "tags": [chunk.id]}
    assert store.list_chunks(tags=["old"]) == [] and store.list_chunks(tags=["tags", "new"]) == [chunk.id]


def test_archive_restore_and_deletion(store: ChunkStore) -> None:
    chunk, other = note(store, tags=["t"]), note(store, tags=["t"])
    live, archived = store._get_chunk_path(chunk.id), store.archive_path / f"{chunk.id}.json"
    assert live.exists() and store.delete_chunk(chunk.id) and archived.exists() and not live.exists()
    assert store.get_chunk(chunk.id) is None and store.update_chunk(chunk.id, content="x") is None
    assert store.delete_chunk(chunk.id) is False
    assert store.list_chunks() == store.list_chunks(tags=["t"]) == [other.id] and store.list_archived() == [chunk.id]
    assert store.get_stats() == {
        "total_chunks": 1,
        "archived_chunks": 1,
        "by_type": {"note": 1},
        "storage_path": str(store.base_path),
    }
    restored = store.restore_chunk(chunk.id)
    assert restored is not None and restored.content == chunk.content and live.exists() and not archived.exists()
    assert store.restore_chunk(chunk.id) is None and store.list_archived() == []
    assert store.delete_chunk(chunk.id) and store.delete_chunk(chunk.id, permanent=True)
    assert not live.exists() and not archived.exists() and store.delete_chunk(chunk.id, permanent=True) is False
    assert store.restore_chunk(chunk.id) is None
    store.close()
    found = files(store)
    assert found["index/tag_index.json"]["lists"] == {"t": [other.id]}
    assert list(found["index/metadata_index.json"]["entries"]) == [other.id]
    assert chunk.id not in json.dumps(found)


def test_lists_are_filtered_by_all_that_is_given(store: ChunkStore) -> None:
    one = note(store, conversation="a", tags=["x"])
    two = note(store, conversation="a", tags=["x", "y"])
    three = note(store, conversation="b", tags=["x", "y"])
    assert store.list_chunks() == [one.id, two.id, three.id] == [each.id for each in store.iter_chunks()]
    assert store.list_chunks(conversation_id="", tags=[]) == store.list_chunks()
    assert store.list_chunks("a") == [one.id, two.id]
    assert store.list_chunks("a", ["y"]) == [two.id]
    assert store.list_chunks(tags=["y", "x"]) == [two.id, three.id]
    assert store.list_chunks(tags=["X"]) == store.list_chunks("c") == []
    at = datetime.fromisoformat(two.metadata.created)
    assert store.list_chunks(created_after=at) == [two.id, three.id]
    assert store.list_chunks(created_before=at) == [one.id, two.id]
    naive = at.replace(tzinfo=None)
    assert store.list_chunks(created_after=naive, created_before=naive) == [two.id]
    assert store.list_chunks(created_after=at + timedelta(days=1)) == []


@pytest.mark.parametrize("wrong", HOSTILE_IDS)
def test_an_id_that_no_chunk_may_have(store: ChunkStore, wrong: str, caplog: pytest.LogCaptureFixture) -> None:
    before = sorted(store.base_path.rglob("*"))
    assert store.get_chunk(wrong) is None and store.update_chunk(wrong, content="x") is None
    assert store.delete_chunk(wrong) is False and store.restore_chunk(wrong) is None
    assert store.link_chunk(wrong, "supports", "x") is None
    assert [each.levelname for each in caplog.records if each.name == "beetle.chunks"].count("WARNING") == 5
    assert sorted(store.base_path.rglob("*")) == before


@pytest.mark.parametrize(
    "wrong", [{"chunk_type": "opinion"}, {"tokens": 0}, {"confidence": 1.5}, {"content": " "}, {"source": "dream"}]
)
def test_what_may_not_be_stored_raises_and_stores_nothing(store: ChunkStore, wrong: dict[str, Any]) -> None:
    given = {"content": "x", "chunk_type": "note", "conversation_id": "c", "tokens": 1, **wrong}
    with pytest.raises(InvalidRequest) as refused:
        store.create_chunk(**given)
    assert refused.value.hint
    assert store.list_chunks() == [] and not list(store.chunks_path.rglob("*.json"))


def test_what_is_given_in_a_wrong_form_is_named(store: ChunkStore) -> None:
    chunk = note(store, tags=["coding"], links=ChunkLinks(supports=["chunk-x"]))
    wrong: list[Any] = [
        lambda: note(store, tags="coding"),
        lambda: note(store, tags=7),
        lambda: note(store, links=["chunk-x"]),
        lambda: note(store, links={"cites": ["chunk-x"]}),
        lambda: note(store, links={"supports": "chunk-x"}),
        lambda: store.update_chunk(chunk.id, tags="coding"),
        lambda: store.list_chunks(tags="coding"),
        lambda: store.list_chunks(created_after="yesterday"),  # type: ignore[arg-type]
        lambda: ChunkingEngine().chunk("text", tags="coding"),
        lambda: RememberOperation(store).remember("text", "c", tags="coding"),
        lambda: RecallOperation(store).recall(5),  # type: ignore[arg-type]
        lambda: ReasonOperation(store).reason("text", chunk.id),
    ]
    for call in wrong:
        with pytest.raises(InvalidRequest) as refused:
            call()
        assert refused.value.hint and refused.value.details["path"]
    with pytest.raises(TypeError):
        ChunkingEngine().chunk(5)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        RememberOperation(store).remember("text", "c", confidence="high")  # type: ignore[arg-type]
    assert store.list_chunks() == [chunk.id] and store.peek_chunk(chunk.id) == chunk
    # None changes nothing; a mapping replaces the links that it names.
    assert store.update_chunk(chunk.id, tags=None, links=None, content=None) == chunk
    linked = store.update_chunk(chunk.id, links={"contradicts": ["chunk-y"]})
    assert linked is not None and (linked.links.supports, linked.links.contradicts) == (["chunk-x"], ["chunk-y"])
    assert store.list_chunks(created_after="2026-01-01T00:00:00Z") == [chunk.id]  # type: ignore[arg-type]


def test_links_are_made_on_creation_and_stand_in_both_files(store: ChunkStore) -> None:
    first = note(store, conversation="a", tags=["python"])
    second = note(store, conversation="a", tags=["python"])
    third = note(store, conversation="b", tags=["python", "ml"])
    assert first.links.context_of == ["a"] and not first.links.follows
    assert second.links.follows == [first.id] and not second.links.related_to
    assert sorted(third.links.related_to) == sorted([first.id, second.id]) and third.links.context_of == ["b"]
    back = store.peek_chunk(first.id)
    assert back is not None and back.links.related_to == [third.id] and back.metadata.access_count == 0
    store.close()
    found = files(store)
    for chunk in store.iter_chunks():
        place = f"chunks/{chunk.id[6:13]}/{chunk.id}.json"
        assert found[place] == chunk.to_dict()
        kinds = {kind: ids for kind, ids in chunk.links.to_dict().items() if ids}
        assert found["index/link_graph.json"]["forward"][chunk.id] == kinds
    assert note(store, link=False).links.to_dict() == ChunkLinks().to_dict()


def test_links_by_hand(store: ChunkStore) -> None:
    first, second = note(store), note(store)
    linked = store.link_chunk(first.id, "contradicts", second.id, 0.9)
    assert linked is not None and linked.links.contradicts == [second.id]
    assert ReasonOperation(store).analyze_contradictions([first.id, second.id, "chunk-none"]) == [
        {"chunk_a": first.id, "chunk_b": second.id, "reasoning": "Explicit contradiction link"}
    ]
    removed = store.link_chunk(first.id, "contradicts", second.id, remove=True)
    assert removed is not None and removed.links.contradicts == []
    assert store.link_chunk("chunk-none", "supports", first.id) is None


def test_a_linker_of_ones_own(store: ChunkStore) -> None:
    linker = AutoLinker(store, temporal_window_minutes=0)
    first = create_chunk_with_links(store, linker, "One", "note", "a", 1, tags=["t"])
    second = create_chunk_with_links(store, linker, "Two", "note", "a", 1)
    third = create_chunk_with_links(store, linker, "Three", "note", "b", 1, tags=["t"], confidence=0.2)
    assert first.links.context_of == ["a"] and second.links.follows == [] and third.links.related_to == [first.id]
    assert AutoLinker(store).link_on_create(second).links.follows == [first.id]
    assert AutoLinker(store).link_on_create(third) == linker.link_on_create(third)
    assert store.get_stats()["total_chunks"] == 3
    assert calculate_link_strength(second, first, "context_of") == 1.0
    assert calculate_link_strength(second, first, "follows") > 0.9
    assert calculate_link_strength(third, first, "related_to") == 0.5
    assert calculate_link_strength(third, first, "supports") == 0.5


def test_texts_are_split_stored_and_linked(store: ChunkStore) -> None:
    text = "\n\n".join(f"Statement {each}: the team decided to build feature {each}. " * 15 for each in range(3))
    done = RememberOperation(store).remember(text, "conv", ["plan"], 0.85)
    assert done["success"] and done["chunks_created"] == len(done["chunk_ids"]) == 3
    found = [store.peek_chunk(each) for each in done["chunk_ids"]]
    assert sum(each.tokens for each in found if each) == done["total_tokens"]
    for place, each in enumerate(found):
        assert each is not None and each.type == "decision" and each.tags == ["plan"]
        assert each.metadata.confidence == 0.85 and each.links.context_of == ["conv"]
        assert set(done["chunk_ids"][:place]) == set(each.links.follows)
    pieces = chunk_and_store("First fact: tea is a drink.\n\nWe chose it.", "conv", store, tags=["t"])
    assert [(each.type, each.tags) for each in pieces] == [("fact", ["t"]), ("decision", ["t"])]
    assert RememberOperation(store).remember("We chose it.", "conv", chunk_type="note")["chunks_created"] == 1


def test_what_cannot_be_remembered(store: ChunkStore) -> None:
    remember = RememberOperation(store).remember
    for blank in ("", " \n\t "):
        done = remember(blank, "conv")
        assert done.pop("error") and done == {
            "success": False,
            "chunk_ids": [],
            "total_tokens": 0,
            "chunks_created": 0,
        }
    for wrong in (None, 12345, ["list"]):
        with pytest.raises(TypeError):
            remember(wrong, "conv")  # type: ignore[arg-type]
    for given in ({"conversation_id": ""}, {"confidence": -0.1}, {"confidence": 1.1}, {"chunk_type": "invalid_type"}):
        with pytest.raises(ValueError, match=r"."):
            remember(**{"content": "text", "conversation_id": "c", **given})
    assert all(remember("text", "c", confidence=edge)["success"] for edge in (0.0, 1.0))
    assert store.get_stats()["total_chunks"] == 2


@pytest.mark.parametrize(
    "content", ["用户决定使用Python 🐍", "المستخدم يفضل Python", "a" * 5000, "Hello\x00World\x01", "One\r\nTwo\rThree"]
)
def test_content_comes_back_as_it_was(store: ChunkStore, content: str) -> None:
    done = RememberOperation(store).remember(content, "conv")
    store.close()
    found = store.get_chunk(done["chunk_ids"][0])
    assert found is not None and found.content == content
    assert json.loads(store._get_chunk_path(found.id).read_bytes())["content"] == content


def test_recall(store: ChunkStore) -> None:
    sure = note(store, "Прогулки по лесу успокаивают", "a", confidence=0.9)
    unsure = note(store, "The pump in the cellar fails at night", "b", confidence=0.3)
    recall = RecallOperation(store)
    found = recall.recall("лесу")
    assert found.source_chunks == [sure.id] and found.answer == sure.content and found.confidence == pytest.approx(0.9)
    assert recall.recall("cellar pump").source_chunks == []
    assert recall.recall("cellar pump", min_confidence=0.3).source_chunks == [unsure.id]
    assert recall.recall("cellar pump", "a", min_confidence=0).source_chunks == []
    tagged = note(store, "Something else", "c", tags=["pump"])
    assert recall.recall("pump", min_confidence=0).source_chunks == [tagged.id, unsure.id]
    assert recall.recall("cellr nihgt", min_confidence=0).source_chunks == [unsure.id]
    twin = note(store, tagged.content, "c", tags=["pump"])
    assert recall.recall("something").source_chunks == [twin.id, tagged.id]
    assert recall.recall("zebra").answer == "No relevant memories found"
    assert recall.recall(" ").answer == "No query provided"
    assert recall.get_stats()["total_queries"] == 8
    counted = store.peek_chunk(sure.id)
    assert counted is not None and counted.metadata.access_count == 1
    with pytest.raises(ValueError, match="chunk_store"):
        RecallOperation(None)  # type: ignore[arg-type]


def test_reason(store: ChunkStore) -> None:
    python = note(store, "User prefers Python", tags=["lang"])
    rust = note(store, "User prefers Rust", tags=["lang"])
    reason = ReasonOperation(store)
    found = reason.reason("which language does the user prefer", [python.id, rust.id])
    assert found.source_chunks == [rust.id, python.id] and found.confidence == pytest.approx(0.7)
    (conflict,) = found.contradictions
    assert conflict["type"] == "potential_preference_conflict" and sorted(conflict["chunks"]) == sorted(
        [python.id, rust.id]
    )
    assert sorted(reason.reason("nothing has this word").source_chunks) == sorted([python.id, rust.id])
    assert reason.reason("x", [python.id], "comparison").synthesis == "Need at least 2 items to compare"
    assert reason.reason("x", [python.id], "no such analysis").synthesis.startswith("Synthesized")
    assert reason.reason("").synthesis == "No query provided"
    untouched = store.peek_chunk(python.id)
    assert untouched is not None and untouched.metadata.access_count == 0


def test_indexes_answer_from_the_store_and_are_not_written_by_hand(store: ChunkStore) -> None:
    chunk = note(store, tags=["t"])
    row = store.metadata_index.get(chunk.id)
    assert row == {"type": "note", "conversation_id": "conv-1", "created": chunk.metadata.created, "confidence": 0.7}
    assert store.metadata_index.get_all_keys() == store.tag_index.get_list("t") == [chunk.id]
    assert (store.link_graph.get(chunk.id) or {})["context_of"] == ["conv-1"]
    assert store.metadata_index.get("chunk-none") is None
    with pytest.raises(TypeError, match="follows the store"):
        store.tag_index.add_to_list("t", "x")


def test_an_index_file_of_ones_own(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    index = ChunkIndex(tmp_path / "own.json")
    index.add("key", {"value": 1})
    index.add("gone", 2)
    index.remove("gone")
    for item in ("a", "b", "a", "c"):
        index.add_to_list("list", item)
    index.remove_from_list("list", "b")
    again = ChunkIndex(tmp_path / "own.json")
    assert (again.get("key"), again.get_all_keys(), again.get_list("list")) == ({"value": 1}, ["key"], ["a", "c"])
    for broken in (b"{", b"[]", b"\xff"):
        (tmp_path / "own.json").write_bytes(broken)
        assert ChunkIndex(tmp_path / "own.json").get_all_keys() == []
    assert [each.levelname for each in caplog.records] == ["WARNING"] * 3


def test_index_files_that_are_broken_or_missing_are_written_anew(store: ChunkStore) -> None:
    chunk = note(store, tags=["t"])
    store.close()
    (store.index_path / "tag_index.json").write_text("{ broken")
    (store.index_path / "metadata_index.json").unlink()
    assert store.list_chunks(tags=["t"]) == [chunk.id]
    store.close()
    assert files(store)["index/tag_index.json"]["lists"] == {"t": [chunk.id]}
    assert list(files(store)["index/metadata_index.json"]["entries"]) == [chunk.id]
    (store.index_path / "link_graph.json").unlink()
    store.rebuild_indexes()
    assert chunk.id in files(store)["index/link_graph.json"]["forward"]


def test_all_is_logged(store: ChunkStore, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "beetle.chunks")
    chunk = note(store)
    store.get_chunk(chunk.id)
    store.list_chunks()
    store.update_chunk(chunk.id, content="Other")
    store.delete_chunk(chunk.id)
    store.restore_chunk(chunk.id)
    store.delete_chunk(chunk.id, permanent=True)
    said = [(each.levelname, each.getMessage()) for each in caplog.records if each.name == "beetle.chunks"]
    assert said == [
        ("INFO", f"Created chunk {chunk.id} (3 tokens)"),
        ("DEBUG", f"Read chunk {chunk.id}"),
        ("DEBUG", "Listed chunks"),
        ("INFO", f"Updated chunk {chunk.id}"),
        ("INFO", f"Archived chunk {chunk.id}"),
        ("INFO", f"Restored chunk {chunk.id}"),
        ("INFO", f"Permanently deleted chunk {chunk.id}"),
    ]


def test_threads_and_two_names_of_one_folder_share_a_store(store: ChunkStore, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(store.base_path)
    other = ChunkStore(tmp_path / "link", profile="profile-desktop-linux-embedded-sdk")

    def create(place: int) -> None:
        for each in range(8):
            note((store, other)[place % 2], f"{place} {each}", f"conv-{place}")

    threads = [threading.Thread(target=create, args=(place,)) for place in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(set(store.list_chunks())) == 32 and other.list_chunks() == store.list_chunks()
    assert len(list(store.chunks_path.rglob("*.json"))) == 32


def test_a_folder_that_was_removed_is_begun_anew(store: ChunkStore) -> None:
    note(store)
    os.rename(store.base_path, store.base_path.with_name("elsewhere"))
    again = note(store, "Anew")
    assert store.list_chunks() == [again.id]
    with ChunkStore(store.base_path.with_name("elsewhere")) as moved:
        assert len(moved.list_chunks()) == 1


def test_a_folder_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BeetleError):
        ChunkStore(tmp_path / "file")
