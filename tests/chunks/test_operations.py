"""Chunks in one store: create, get, list, update, link, archive, restore, delete."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from beetle import MemoryRuntime
from beetle.contracts.errors import BeetleError
from tests.store.conftest import assert_clean, open_runtime

NAMES = itertools.count()
MINUTE = 60_000_000
START = 1_770_759_420_000_000


class Clock:
    """Stands still until it is told to go on."""

    def __init__(self) -> None:
        self.at = START

    def __call__(self) -> int:
        return self.at

    def wait(self, minutes: float) -> None:
        self.at += int(minutes * MINUTE)


@pytest.fixture(scope="module")
def clock() -> Clock:
    return Clock()


@pytest.fixture(scope="module")
def memory(clock: Clock) -> Iterator[MemoryRuntime]:
    with open_runtime(":memory:", "in-memory", now=clock) as opened:
        yield opened
        assert_clean(opened)


@pytest.fixture
def name() -> str:
    """A word of the test's own: for a conversation, a tag."""
    return f"own-{next(NAMES)}"


def create(memory: MemoryRuntime, conversation: str, content: str = "a note", **more: Any) -> Any:
    return memory.create_chunk(content=content, conversation_id=conversation, **more).chunk


def got(memory: MemoryRuntime, chunk_id: str, **more: Any) -> Any:
    """The chunk of an id, which is there."""
    return memory.get_chunk(chunk_id, **more).chunk


def ids(chunks: Any) -> list[str]:
    return [each.id for each in chunks]


def refused(key: str, call: Any, **arguments: Any) -> BeetleError:
    with pytest.raises(BeetleError) as found:
        call(**arguments)
    assert found.value.key == key, found.value
    return found.value


def test_a_chunk_has_the_seed_s_fields_in_their_order(memory: MemoryRuntime, name: str) -> None:
    made = create(memory, name, "User prefers Python over JavaScript", tags=["coding", "Coding", "coding"], tokens=12)
    assert re.fullmatch(r"chunk-2026-02-10-[0-9a-f]{8}", made.id)
    shown = json.loads(json.dumps(memory.get_chunk(made.id, count_access=False).to_dict()["chunk"]))
    assert list(shown)[:7] == ["id", "content", "tokens", "type", "metadata", "links", "tags"]
    assert shown["content"] == "User prefers Python over JavaScript"
    assert (shown["tokens"], shown["type"], shown["tags"]) == (12, "preference", ["coding", "Coding", "coding"])
    assert list(shown["metadata"].items()) == [
        ("created", "2026-02-10T21:37:00Z"), ("conversation_id", name), ("source", "interaction"),
        ("confidence", 0.7), ("access_count", 0), ("last_accessed", None),
    ]  # fmt: skip
    assert list(shown["links"]) == ["context_of", "follows", "related_to", "supports", "contradicts"]
    assert shown["links"]["context_of"] == [name]
    assert (shown["archived"], shown["ref"], shown["extra"]) == (False, f"chunks:{made.id}", None)


def test_type_and_tokens_are_found_where_they_are_not_given(memory: MemoryRuntime, name: str) -> None:
    assert create(memory, name, "User decided to use RLM architecture instead of RAG").type == "decision"
    assert create(memory, name, "User decided to use tea", type="fact", source="derived").metadata.source == "derived"
    counted = create(memory, name, "one two three")
    assert counted.tokens == 3
    assert [create(memory, name, confidence=each).metadata.confidence for each in (0, 1)] == [0.0, 1.0]


@pytest.mark.parametrize(
    "chunk_id", ["chunk-2026-02-10-abc123", "", "../../etc/passwd", "..", "a/b", "a\x00b", "chunk\n", "é", "x" * 1024]
)
def test_an_id_that_no_chunk_has_is_answered_with_null(memory: MemoryRuntime, chunk_id: str) -> None:
    assert memory.get_chunk(chunk_id).chunk is None
    refused("not_found", memory.update_chunk, id=chunk_id, confidence=0.5)
    refused("not_found", memory.delete_chunk, id=chunk_id)
    refused("not_found", memory.restore_chunk, id=chunk_id)


def test_each_get_is_an_access_and_nothing_else_is(memory: MemoryRuntime, clock: Clock, name: str) -> None:
    made = create(memory, name, f"the pump of {name} hums", tags=[name])
    clock.wait(1)
    first = memory.get_chunk(made.id)
    assert first.chunk and not (first.lifecycle and first.lifecycle.changed)
    assert (first.chunk.metadata.access_count, first.chunk.metadata.last_accessed) == (1, "2026-02-10T21:38:00Z")
    memory.list_chunks(tags=[name])
    memory.recall(f"pump of {name}", planes=["chunks"])
    memory.reason_chunks(f"pump of {name}", context_chunks=[made.id])
    memory.update_chunk(id=made.id, confidence=0.9)
    create(memory, name, "a neighbour", tags=[name])
    assert got(memory, made.id, count_access=False).metadata.access_count == 1
    assert memory.recall_chunks("the pump hums", conversation_id=name).source_chunks == (made.id,)
    assert got(memory, made.id).metadata.access_count == 3
    clock.wait(-1)


def test_an_update_changes_what_is_given_alone(memory: MemoryRuntime, name: str) -> None:
    made = create(memory, name, "the kettle is red", tags=[name, "old"], tokens=99)
    worded = memory.update_chunk(id=made.id, content="the kettle is blue now").chunk
    assert (worded.content, worded.tokens, worded.tags) == ("the kettle is blue now", 5, (name, "old"))
    changed = memory.update_chunk(id=made.id, tags=["new"], type="fact", confidence=0.1, tokens=12).chunk
    assert (changed.tags, changed.type, changed.metadata.confidence, changed.tokens) == (("new",), "fact", 0.1, 12)
    assert made.revision < worded.revision < changed.revision
    assert changed.metadata.created == made.metadata.created
    assert memory.list_chunks(conversation_id=name, tags=["old"]).chunks == ()
    assert ids(memory.list_chunks(conversation_id=name, tags=["new"]).chunks) == [made.id]
    same = memory.update_chunk(id=made.id, content="the kettle is blue now", confidence=0.1, tokens=12)
    assert same.lifecycle and not same.lifecycle.changed and same.chunk.revision == changed.revision
    found = {
        word: memory.recall_chunks(word, conversation_id=name, min_confidence=0).source_chunks
        for word in ("red", "blue")
    }
    assert found == {"red": (), "blue": (made.id,)}


def test_an_archived_chunk_is_found_no_more_until_it_is_restored(memory: MemoryRuntime, name: str) -> None:
    made = create(memory, name, f"the boiler {name} leaks", tags=[name])
    assert memory.delete_chunk(made.id).outcome == "archived"
    again = memory.delete_chunk(made.id)
    assert again.outcome == "unchanged" and again.lifecycle and not again.lifecycle.changed
    assert memory.list_chunks(conversation_id=name).chunks == memory.list_chunks(tags=[name]).chunks == ()
    assert memory.recall_chunks(f"boiler {name}", conversation_id=name).source_chunks == ()
    shown = got(memory, made.id)
    assert (shown.archived, shown.metadata.access_count) == (True, 0)
    assert ids(memory.list_chunks(state="archived", tags=[name]).chunks) == [made.id]
    assert not memory.restore_chunk(made.id).chunk.archived
    assert memory.recall_chunks(f"boiler {name}", conversation_id=name).source_chunks == (made.id,)
    restored = memory.restore_chunk(made.id)
    assert restored.lifecycle and not restored.lifecycle.changed


@pytest.mark.parametrize("archived", [False, True])
def test_a_permanent_deletion_leaves_neither_chunk_nor_link(memory: MemoryRuntime, name: str, archived: bool) -> None:
    gone, stays = create(memory, name), create(memory, name)
    memory.link_chunk(id=stays.id, kind="supports", target=gone.id)
    if archived:
        memory.delete_chunk(gone.id)
    report = memory.delete_chunk(gone.id, permanent=True)
    assert (report.outcome, report.erasure, bool(report.receipt)) == ("deleted", "done", True)
    assert memory.get_chunk(gone.id).chunk is None
    assert ids(memory.list_chunks(conversation_id=name, state="all").chunks) == [stays.id]
    links = got(memory, stays.id).links
    assert gone.id not in (*links.follows, *links.supports)
    refused("not_found", memory.delete_chunk, id=gone.id, permanent=True)


def test_a_list_is_in_the_order_of_storing_and_all_filters_must_fit(
    memory: MemoryRuntime, clock: Clock, name: str
) -> None:
    made = []
    for place in range(5):
        tags = [name, "even"] if not place % 2 else [name]
        made.append(
            create(memory, f"{name}-{place % 2}", f"number {place}", tags=tags, type=("fact", "note")[place % 2])
        )
        clock.wait(1)
    every, listed = ids(made), memory.list_chunks
    assert ids(listed(tags=[name]).chunks) == every
    assert ids(listed(tags=["even", name]).chunks) == every[::2]
    assert ids(listed(tags=[name], conversation_id=f"{name}-1").chunks) == every[1::2]
    assert ids(listed(conversation_id=f"{name}-0", type="note").chunks) == []
    assert listed(tags=[name, "never"]).chunks == listed(conversation_id="never").chunks == ()
    created = [each.metadata.created for each in made]
    assert ids(listed(tags=[name], created_after=created[1], created_before=created[3]).chunks) == every[1:4]
    first = listed(tags=[name], limit=2)
    second = listed(tags=[name], limit=2, cursor=first.next_cursor)
    third = listed(tags=[name], limit=2, cursor=second.next_cursor)
    assert ids((*first.chunks, *second.chunks, *third.chunks)) == every and not third.has_more


def test_follows_leads_back_within_five_minutes_of_one_conversation(
    memory: MemoryRuntime, clock: Clock, name: str
) -> None:
    early = create(memory, name)
    clock.wait(1)
    create(memory, f"{name}-other")
    middle = create(memory, name)
    assert early.links.follows == ()
    clock.wait(4)
    last = create(memory, name)
    strengths = {each.target: each.strength for each in last.strengths if each.kind == "follows"}
    assert strengths == {middle.id: 0.3, early.id: 0.3} and last.links.follows == (middle.id, early.id)
    assert [each.strength for each in middle.strengths if each.kind == "follows"] == [0.8]
    clock.wait(5.01)
    assert create(memory, name).links.follows == ()


def test_related_to_stands_at_both_ends_and_never_within_a_conversation(memory: MemoryRuntime, name: str) -> None:
    tags = [f"{name}-{each}" for each in range(5)]
    first = create(memory, f"{name}-a", tags=tags)
    assert create(memory, f"{name}-a", tags=tags).links.related_to == ()
    for shared, strength in ((1, 0.5), (2, 0.7), (4, 0.9), (5, 0.9)):
        made = create(memory, f"{name}-{shared}", tags=[*tags[:shared], f"{name}-own"])
        found = {each.target: each.strength for each in made.strengths if each.kind == "related_to"}
        assert found[first.id] == strength
        assert made.id in got(memory, first.id).links.related_to
        assert got(memory, first.id).revision == first.revision


def test_links_are_bounded_and_the_newest(memory: MemoryRuntime, name: str) -> None:
    before = [create(memory, name if place % 2 else f"{name}-{place}", tags=[name]) for place in range(40)]
    made = create(memory, name, tags=[name])
    assert made.links.follows == tuple(reversed(ids(before)[1::2]))[:8]
    assert made.links.related_to == tuple(reversed(ids(before)[::2]))[:16]
    alone = create(memory, name, tags=[name], link=False)
    assert not any(memory.get_chunk(alone.id).to_dict()["chunk"]["links"].values())


def test_links_by_hand(memory: MemoryRuntime, name: str) -> None:
    first = create(memory, name)
    second = create(memory, name, links={"supports": [first.id, "elsewhere"], "contradicts": []})
    assert second.links.supports == (first.id, "elsewhere")
    linked = memory.link_chunk(id=second.id, kind="contradicts", target=first.id, strength=0.25).chunk
    assert [(each.target, each.strength) for each in linked.strengths if each.kind == "contradicts"] == [
        (first.id, 0.25)
    ]
    again = memory.link_chunk(id=second.id, kind="contradicts", target=first.id, strength=0.25)
    assert again.lifecycle and not again.lifecycle.changed
    led = [(each.kind, each.target) for each in memory.get_chunk(first.id).linked_from]
    assert led == [("follows", second.id), ("supports", second.id), ("contradicts", second.id)]
    memory.link_chunk(id=second.id, kind="supports", target=first.id, remove=True)
    replaced = memory.update_chunk(id=second.id, links={"supports": ["other"], "contradicts": []}).chunk
    assert (replaced.links.supports, replaced.links.contradicts) == (("other",), ())
    assert replaced.links.context_of == (name,) and replaced.links.follows == (first.id,)
    refused("not_found", memory.link_chunk, id=first.id, kind="supports", target="nobody")
    assert (
        "itself" in refused("invalid_request", memory.link_chunk, id=first.id, kind="supports", target=first.id).message
    )
    other = create(memory, f"{name}-b")
    memory.link_chunk(id=other.id, kind="related_to", target=first.id)
    assert got(memory, first.id).links.related_to == (other.id,)
    memory.link_chunk(id=first.id, kind="related_to", target=other.id, remove=True)
    assert got(memory, other.id).links.related_to == ()


def test_a_chunk_has_at_most_64_links_of_a_kind(memory: MemoryRuntime, name: str) -> None:
    full = create(memory, name, links={"context_of": [f"c{each}" for each in range(63)]})
    assert len(full.links.context_of) == 64
    refused("invalid_request", memory.link_chunk, id=full.id, kind="context_of", target="one more")


def test_changes_are_followed_by_revision(memory: MemoryRuntime, name: str) -> None:
    since = memory.chunk_stats().revision
    first, second, third = (create(memory, name) for _ in range(3))
    memory.update_chunk(id=first.id, confidence=0.2)
    memory.delete_chunk(third.id, permanent=True)
    whole = memory.list_chunks(changed_since=since, state="all")
    assert (ids(whole.chunks), whole.removed) == ([second.id, first.id], (third.id,))
    assert whole.revision == memory.chunk_stats().revision > max(each.revision for each in whole.chunks)
    assert memory.list_chunks(changed_since=whole.revision).chunks == ()
    cursor, seen = None, []
    while True:
        page = memory.list_chunks(changed_since=since, state="all", limit=1, cursor=cursor)
        seen += [*ids(page.chunks), *page.removed]
        cursor = page.next_cursor
        if not page.has_more:
            break
    assert seen == [second.id, first.id, third.id]
    memory.delete_chunk(first.id)
    archived = memory.list_chunks(changed_since=whole.revision, state="all").chunks
    assert [(each.id, each.archived) for each in archived] == [(first.id, True)]


def test_stats_count_and_group(name: str) -> None:
    with open_runtime(":memory:", "in-memory") as memory:
        for place in range(3):
            create(memory, f"c{place % 2}", type="fact", tags=["t", f"t{place}"])
        memory.delete_chunk(create(memory, "c0", type="note", tags=["t"]).id)
        report = memory.chunk_stats(by="conversation")
        assert (report.total_chunks, report.archived_chunks, report.by_type) == (3, 1, {"fact": 3})
        assert [(each.name, each.chunks) for each in report.groups] == [("c0", 2), ("c1", 1)]
        first = memory.chunk_stats(by="tag", limit=3)
        rest = memory.chunk_stats(by="tag", limit=3, cursor=first.next_cursor)
        groups = [(each.name, each.chunks) for each in (*first.groups, *rest.groups)]
        assert groups == [("t", 3), ("t0", 1), ("t1", 1), ("t2", 1)] and first.has_more and not rest.has_more
        counts = memory.inspect().counts
        assert (counts.chunks, counts.archived_chunks) == (3, 1)
