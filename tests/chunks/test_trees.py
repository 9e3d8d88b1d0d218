"""Trees of JSON files: exported in the seed's layout, imported whatever program wrote them."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tarfile
import threading
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis.strategies import DataObject, binary, booleans, data, integers, sampled_from

from beetle.chunk_tree.archive import Limits, Member, members, packed
from beetle.contracts.chunk_trees import ChunkImportTreeReport
from beetle.contracts.errors import DeadlineExceeded, InvalidRequest, StoreBudgetExceeded
from beetle.contracts.progress import ProgressStep
from beetle.sdk import MemoryRuntime
from tests.store.conftest import open_runtime, store_of

NO_LIMITS = Limits(2**30, 2**40, 2**40)
SEEDS = {
    "id": "chunk-2026-02-10-a1b2c3d4",
    "content": "User decided to use RLM architecture instead of RAG...",
    "tokens": 145,
    "type": "decision",
    "metadata": {
        "created": "2026-02-10T21:37:00Z",
        "conversation_id": "conv-abc123",
        "source": "interaction",
        "confidence": 0.95,
        "access_count": 3,
        "last_accessed": "2026-02-10T22:15:00Z",
    },
    "links": {
        "context_of": ["conv-abc123"],
        "follows": ["chunk-2026-02-10-x9y8z7w6"],
        "related_to": ["chunk-2026-02-09-p4q5r6s7"],
        "supports": [],
        "contradicts": [],
    },
    "tags": ["architecture", "rlm", "decision"],
}
"""The example of the seed."""
PLACE = "chunks/2026-02/chunk-2026-02-10-a1b2c3d4.json"


def text(chunk: object) -> bytes:
    return json.dumps(chunk, indent=2, ensure_ascii=False).encode()


def chunk(number: int, **changes: Any) -> dict[str, Any]:
    """One of the seed's shape; `metadata` and `links` of the changes are put over its own."""
    made = {**json.loads(text(SEEDS)), "id": f"chunk-2026-02-11-{number:08x}", "content": f"Note {number}"}
    made["links"] = {kind: [] for kind in SEEDS["links"]}  # type: ignore[union-attr]
    for name in ("metadata", "links"):
        made[name] |= changes.pop(name, {})
    return {**made, **changes}


def place(made: Mapping[str, Any], folder: str = "chunks/2026-02") -> str:
    return f"{folder}/{made['id']}.json"


def archive(*files: tuple[str, bytes]) -> bytes:
    return packed(Member(*each) for each in files)


def of(*chunks: Mapping[str, Any]) -> bytes:
    return archive(*((place(each), text(each)) for each in chunks))


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[MemoryRuntime]:
    with open_runtime(tmp_path / "b.db", "in-memory") as runtime:
        yield runtime


def take_in(memory: MemoryRuntime, tree: bytes, **more: Any) -> ChunkImportTreeReport:
    return memory.import_chunk_tree(archive=tree, **more)


def counts(report: ChunkImportTreeReport) -> tuple[int, int, int, int]:
    return report.imported, report.updated, report.unchanged, report.refused_files


def taken_out(memory: MemoryRuntime) -> dict[str, bytes]:
    exported = memory.export_chunk_tree().archive
    assert exported is not None
    found = list(members(exported, NO_LIMITS))
    assert all(isinstance(each, Member) for each in found)
    return dict(found)  # type: ignore[arg-type]


def test_whoever_reads_an_archive_may_look_up_at_each_header(memory: MemoryRuntime) -> None:
    """Of folders and attributes there may be many, and no file."""
    looks: list[int] = []
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for number in range(3):
            folder = tarfile.TarInfo(f"chunks/{number}")
            folder.type, folder.pax_headers = tarfile.DIRTYPE, {"comment": "x" * 200}
            tar.addfile(folder)
    assert list(members(made.getvalue(), NO_LIMITS, lambda: looks.append(1))) == []
    assert len(looks) == 6


def test_the_seed_s_example_comes_back_byte_for_byte_in_the_seed_s_layout(memory: MemoryRuntime) -> None:
    take_in(memory, archive((PLACE, text(SEEDS))))
    files = taken_out(memory)
    assert files[PLACE] == text(SEEDS)
    assert sorted(files) == [PLACE, "index/link_graph.json", "index/metadata_index.json", "index/tag_index.json"]
    indexes = {path: json.loads(data) for path, data in files.items() if path != PLACE}
    assert all(files[path] == text(index) and index.pop("updated").endswith("Z") for path, index in indexes.items())
    entry = {name: SEEDS["metadata"][name] for name in ("conversation_id", "created", "confidence")}  # type: ignore[index]
    assert indexes["index/metadata_index.json"] == {
        "entries": {SEEDS["id"]: {"type": "decision", **entry}},
        "lists": {},
    }
    assert indexes["index/tag_index.json"] == {
        "entries": {}, "lists": {tag: [SEEDS["id"]] for tag in ("architecture", "decision", "rlm")},
    }  # fmt: skip
    graph = indexes["index/link_graph.json"]
    assert graph["forward"][SEEDS["id"]] == {kind: ids for kind, ids in SEEDS["links"].items() if ids}  # type: ignore[attr-defined]


def test_what_a_store_made_is_the_same_in_another_store(memory: MemoryRuntime, tmp_path: Path) -> None:
    first = memory.create_chunk(content="Größe zählt\u2028 測試\n\ttab", conversation_id="c/1", tags=("ä", "b"))
    memory.create_chunk(content="The second one", conversation_id="c2", tags=("b",), confidence=1.0)
    third = memory.create_chunk(content="Archived", conversation_id="c2")
    memory.delete_chunk(id=third.chunk.id)
    memory.link_chunk(id=first.chunk.id, kind="supports", target=third.chunk.id)
    files = taken_out(memory)
    assert f"archive/{third.chunk.id}.json" in files
    assert "Größe zählt\u2028 測試" in files[f"chunks/{first.chunk.id[6:13]}/{first.chunk.id}.json"].decode()
    with open_runtime(tmp_path / "other.db", "in-memory") as other:
        report = take_in(other, packed(Member(*each) for each in files.items()))
        assert counts(report) == (3, 0, 0, 0)
        again = taken_out(other)
        chunks = [path for path in files if not path.startswith("index/")]
        assert {path: files[path] for path in chunks} == {path: again[path] for path in chunks}
        assert json.loads(again["index/tag_index.json"])["lists"] == json.loads(files["index/tag_index.json"])["lists"]
        assert other.verify_store().clean
        assert other.recall(query="Größe").chunks[0].ref == f"chunks:{first.chunk.id}"


PUBLISHED = (
    chunk(1, metadata={"created": "2026-02-11T05:40:02.361745Z", "last_accessed": None, "access_count": 0}, tags=[]),
    chunk(2, links={"context_of": ["chunk-2026-02-11-00000001"], "follows": ["chunk-2026-02-11-00000001"]}),
    chunk(3, links={"context_of": ["chunk-2026-02-11-00000002", "chunk-2026-02-11-00000001", "conv-abc123"]}),
    chunk(4, metadata={"created": "2026-02-11T05:40:02+00:00", "confidence": 1}),
    {name: value for name, value in chunk(5).items() if name != "tags"},
)
"""As other programs write them: ids of chunks in context_of, microseconds, an offset, no tags."""


@pytest.mark.parametrize("index", ["link_graph", "link_graph_index"])
def test_a_tree_of_another_program_is_taken_in(memory: MemoryRuntime, index: str) -> None:
    graph = (f"index/{index}.json", text({"forward": {}, "reverse": {}, "updated": "2026-02-11T03:46:55.323905Z"}))
    files = [(place(each), text(each)) for each in PUBLISHED]
    archived = chunk(6)
    report = take_in(
        memory,
        archive(graph, *files, (place(archived, "archive"), text(archived)), ("chunks/2026-02/.gitkeep", b"")),
    )
    assert counts(report) == (6, 0, 0, 0)
    out = {path: json.loads(data) for path, data in taken_out(memory).items()}
    for each in PUBLISHED:
        found = out[place(each)]
        assert found["links"] == each["links"]
        assert found["tags"] == each.get("tags", [])
        assert found["metadata"]["created"].rstrip("Z") == each["metadata"]["created"].removesuffix("+00:00").rstrip(
            "Z"
        )
    assert out[place(archived, "archive")] == archived
    linked = memory.get_chunk(id="chunk-2026-02-11-00000001", count_access=False).linked_from
    assert {(each.kind, each.target[-1]) for each in linked} == {
        ("context_of", "2"),
        ("follows", "2"),
        ("context_of", "3"),
    }


def test_a_tree_that_is_imported_again_changes_nothing(memory: MemoryRuntime) -> None:
    both = (
        chunk(1, links={"related_to": ["chunk-2026-02-11-00000002"]}),
        chunk(2, links={"related_to": ["chunk-2026-02-11-00000001", "chunk-2026-02-11-00000002"]}),
    )
    tree = of(*both)
    assert counts(take_in(memory, tree, dry_run=True)) == (2, 0, 0, 0)
    assert memory.list_chunks().chunks == (), "a dry run changes nothing"
    assert counts(take_in(memory, tree)) == (2, 0, 0, 0)
    revision = memory.list_chunks().revision
    again = take_in(memory, tree)
    assert counts(again) == counts(take_in(memory, tree, dry_run=True)) == (0, 0, 2, 0)
    assert again.lifecycle is not None and not again.lifecycle.changed
    assert memory.list_chunks().revision == revision
    first, second = (memory.get_chunk(id=each["id"], count_access=False).chunk for each in both)
    assert first is not None and second is not None
    assert (first.links.related_to, second.links.related_to) == ((second.id,), (first.id,)), "once, for both directions"


def test_a_dry_run_refuses_what_an_import_would_refuse(memory: MemoryRuntime, tmp_path: Path) -> None:
    take_in(memory, of(chunk(1), chunk(2), chunk(3)))
    store_of(memory).write(lambda tx: tx.run("UPDATE chunk_body SET content = 'damaged' WHERE chunk = 2"))
    edited = of(*(chunk(number, content="Edited by hand") for number in (1, 2, 4)), chunk(3))
    dry = take_in(memory, edited, dry_run=True)
    assert counts(dry) == (1, 1, 1, 1) and "is damaged" in dry.refused[0].reason
    real = take_in(memory, edited)
    assert (counts(real), real.refused) == (counts(dry), dry.refused)
    with open_runtime(tmp_path / "small.db", store_bytes=2**20) as small:
        for dry_run in (True, False):
            with pytest.raises(StoreBudgetExceeded):
                take_in(small, of(chunk(1, content="so long " * 2**15)), dry_run=dry_run)


def test_a_file_that_was_edited_changes_its_chunk_and_nothing_else(memory: MemoryRuntime) -> None:
    take_in(memory, of(chunk(1), chunk(2)))
    memory.link_chunk(id=chunk(1)["id"], kind="supports", target=chunk(2)["id"], strength=0.9)
    for _ in range(5):
        memory.get_chunk(id=chunk(1)["id"])
    edited = chunk(
        1, content="Edited by hand", tags=["new"], type="note", metadata={"confidence": 0.1, "access_count": 0},
        links={"supports": [chunk(2)["id"]], "contradicts": ["chunk-2026-02-09-gone"]},
    )  # fmt: skip
    assert counts(take_in(memory, of(edited, chunk(2)))) == (0, 1, 1, 0)
    now = memory.get_chunk(id=edited["id"], count_access=False).chunk
    assert now is not None and now.metadata.access_count == 8, "what was read since stays counted"
    assert json.loads(taken_out(memory)[place(edited)])["metadata"]["access_count"] == 8
    assert (now.content, now.tags, now.type, now.metadata.confidence) == ("Edited by hand", ("new",), "note", 0.1)
    assert {(each.kind, each.target, each.strength) for each in now.strengths} == {
        ("supports", chunk(2)["id"], 0.9), ("contradicts", "chunk-2026-02-09-gone", 0.5),
    }  # fmt: skip
    assert [each.id for each in memory.list_chunks(tags=("new",)).chunks] == [edited["id"]]
    assert memory.list_chunks(tags=("rlm",)).chunks[0].id == chunk(2)["id"]


def test_a_file_that_was_moved_to_the_archive_or_back_moves_its_chunk(memory: MemoryRuntime) -> None:
    one = chunk(1)
    live, archived = of(one), archive((place(one, "archive"), text(one)))
    take_in(memory, live)
    assert counts(take_in(memory, archived)) == (0, 1, 0, 0)
    assert memory.list_chunks().chunks == () and next(iter(taken_out(memory))) == place(one, "archive")
    assert json.loads(taken_out(memory)["index/metadata_index.json"])["entries"] == {}
    assert counts(take_in(memory, archived)) == (0, 0, 1, 0)
    assert counts(take_in(memory, live)) == (0, 1, 0, 0)
    assert memory.list_chunks().chunks[0].id == one["id"]


def test_keys_that_no_schema_names_are_kept(memory: MemoryRuntime) -> None:
    one = chunk(1, metadata={"model": "x", "nested": {"a": [1, None]}}, links={"inspired_by": ["y"]}, mood="good")
    take_in(memory, of(one))
    assert json.loads(taken_out(memory)[place(one)]) == one
    assert counts(take_in(memory, of(one))) == (0, 0, 1, 0)
    memory.update_chunk(id=one["id"], confidence=0.2)
    assert json.loads(taken_out(memory)[place(one)])["metadata"]["nested"] == {"a": [1, None]}


def without(made: dict[str, Any], *path: str) -> dict[str, Any]:
    inner = made
    for name in path[:-1]:
        inner = inner[name]
    del inner[path[-1]]
    return made


ONE = chunk(1)
BAD: Mapping[str, tuple[bytes, str]] = {
    "an array": (b"[]", "it is an array, not an object"),
    "a string": (b'"x"', "it is a string, not an object"),
    "nothing": (b" \n", "it is empty"),
    "no JSON": (text(ONE)[:-1], "it is not JSON: Expecting ',' delimiter at line 26, column 1"),
    "two documents": (text(ONE) * 2, "it is not JSON: Extra data at line 26, column 2"),
    "no UTF-8": (text(ONE).replace(b"Note", b"\xff"), "it is not UTF-8: byte 31"),
    "UTF-16": (text(ONE).decode().encode("utf-16"), "it is not UTF-8: byte 0"),
    "half of a pair": (text(ONE).replace(b"Note", b"\\ud800"), "a text holds half of a surrogate pair"),
    "a nesting bomb": (b'{"a":' + b"[" * 100_000, "it is nested deeper than 32 levels"),
    "a long number": (text(ONE).replace(b"145", b"1" * 5000), f"the number '{'1' * 63}…' is beyond 64 bits"),
    "a key twice": (text(ONE).replace(b'"tokens"', b'"id": "x", "tokens"'), "the key 'id' stands twice in one object"),
    "NaN": (text(ONE).replace(b"0.95", b"NaN"), "NaN is no number of JSON"),
    "metadata no object": (text(chunk(1) | {"metadata": []}), "metadata is an array, not an object"),
    "no id": (text(without(chunk(1), "id")), "id is missing"),
    "no content": (text(without(chunk(1), "content")), "content is missing"),
    "no links": (text(without(chunk(1), "links")), "links is missing"),
    "no created": (text(without(chunk(1), "metadata", "created")), "metadata.created is missing"),
    "no conversation": (text(without(chunk(1), "metadata", "conversation_id")), "metadata.conversation_id is missing"),
    "a blank content": (text(chunk(1, content=" \n")), "content is blank"),
    "content no string": (text(chunk(1, content=7)), "content is an integer, not a string"),
    "tokens a boolean": (text(chunk(1, tokens=True)), "tokens is a boolean, not an integer"),
    "tokens with a fraction": (text(chunk(1, tokens=1.0)), "tokens is a number with a fraction, not an integer"),
    "tokens below nothing": (text(chunk(1, tokens=-1)), "tokens is below 1"),
    "tokens too many": (text(chunk(1, tokens=2**63)), "tokens is larger than 9007199254740991"),
    "another type": (
        text(chunk(1, type="Fact")), "type is 'Fact', not one of fact, preference, pattern, note, decision",
    ),
    "another source": (
        text(chunk(1, metadata={"source": "x"})), "metadata.source is 'x', not one of interaction, import, derived",
    ),
    "a confidence too high": (
        text(chunk(1, metadata={"confidence": 1.1})), "metadata.confidence is not between 0 and 1",
    ),
    "a confidence in words": (
        text(chunk(1, metadata={"confidence": "high"})), "metadata.confidence is a string, not a number",
    ),
    "an access count null": (
        text(chunk(1, metadata={"access_count": None})), "metadata.access_count is null, not an integer",
    ),
    "a time without a zone": (
        text(chunk(1, metadata={"created": "2026-02-10T21:37:00"})),
        "metadata.created has no time zone: write it with a Z behind it",
    ),
    "no time": (
        text(chunk(1, metadata={"created": "yesterday"})),
        "metadata.created is no time of ISO 8601 with its zone, such as 2026-02-10T21:37:00Z",
    ),
    "a day that is none": (
        text(chunk(1, metadata={"last_accessed": "2026-02-30T21:37:00Z"})),
        "metadata.last_accessed is no time that a calendar has",
    ),
    "a link no array": (text(chunk(1, links={"follows": "x"})), "links.follows is a string, not an array"),
    "a link null": (text(chunk(1, links={"follows": [None]})), "links.follows holds null, not only strings"),
    "tags null": (text(chunk(1, tags=None)), "tags is null, not an array"),
    "an empty tag": (text(chunk(1, tags=[""])), "tags holds an empty string"),
    "another id": (text(chunk(2)), "id is 'chunk-2026-02-11-00000002', and the file is named 'x-0'"),
    "a secret": (
        text(chunk(1, content="my password is hunter2-Xy7!")),
        "it holds what looks like a secret (a key, a token, a password)",
    ),
}  # fmt: skip
PLACES: Mapping[str, str] = {
    "chunks/loose.json": "it does not stand in a month's folder, such as chunks/2026-02",
    "chunks/2026-02/deeper/x.json": "it does not stand in a month's folder, such as chunks/2026-02",
    "chunks/2026-02/.hidden.json": "its name begins with a dot",
    "chunks/2026-02/a b.json": "its name is no chunk id: letters, digits, '.', '_' and '-', at most 128",
    f"chunks/2026-02/{'x' * 129}.json": "its name is no chunk id: letters, digits, '.', '_' and '-', at most 128",
    "../out.json": "its path leads out of the tree",
    "/etc/out.json": "its path leads out of the tree",
    "archive/chunk-2026-02-11-00000001.json": "its id stands in another file of the tree already",
    "chunks/2026-03/chunk-2026-02-11-00000001.json": "its id stands in another file of the tree already",
}


def test_each_file_that_is_no_chunk_is_listed_with_its_reason_and_stops_nothing(memory: MemoryRuntime) -> None:
    files = [(f"chunks/2026-02/x-{number}.json", told) for number, (told, _) in enumerate(BAD.values())]
    bad = []
    for (path, told), name in zip(files, BAD, strict=True):
        stem = path.rpartition("/")[2].removesuffix(".json").encode()
        right = told if name in ("another id", "no id") else told.replace(ONE["id"].encode(), stem)
        bad.append((path, right))
    report = take_in(memory, archive((place(ONE), text(ONE)), *bad, *((each, text(ONE)) for each in PLACES)))
    assert report.refused_files == len(report.refused) == len(BAD) + len(PLACES)
    said = {each.path: each.reason for each in report.refused}
    of_files = {name: said[path] for (path, _), name in zip(files, BAD, strict=True)}
    expected = {name: reason.replace("'x-0'", f"'x-{list(BAD).index(name)}'") for name, (_, reason) in BAD.items()}
    assert of_files == expected
    assert {path: said.get(path) for path in PLACES} == PLACES
    assert [each.id for each in memory.list_chunks(state="all").chunks] == [ONE["id"]]
    assert counts(report) == (1, 0, 0, len(BAD) + len(PLACES))


def pax(**headers: str) -> bytes:
    """The tar archive of a chunk with records of pax."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for number in range(3):
            member = tarfile.TarInfo(place(chunk(number)))
            member.size, member.pax_headers = len(text(chunk(number))), headers if number == 1 else {}
            tar.addfile(member, io.BytesIO(text(chunk(number))))
    return made.getvalue()


def test_attributes_of_a_file_in_an_archive_are_passed_over(memory: MemoryRuntime) -> None:
    named = {"SCHILY.xattr.user.comment": "x" * 2**19, "path": f"archive/{chunk(1)['id']}.json", "comment": "path=b\n"}
    assert counts(take_in(memory, pax(**named))) == (3, 0, 0, 0)
    assert [each.archived for each in memory.list_chunks(state="all").chunks] == [False, True, False]


GOOD = of(chunk(1))
BROKEN: Mapping[str, tuple[bytes, str]] = {
    "no archive": (b"no archive at all", "it ends before its end"),
    "no tar": (b"x" * 2048, "it is no tar archive, or is damaged"),
    "cut short": (GOOD[:-20], "it ends before its end"),
    "damaged": (GOOD[:60] + b"\0\0\0" + GOOD[63:], "damaged"),
    "a name too long": (pax(path="x" * 4097), "a name in it is longer than 4096 bytes"),
    "attributes too long": (pax(attribute="x" * 2**20), "a header of pax in it is longer than 1048576 bytes"),
    "a damaged header of pax": (pax(attribute="x").replace(b"15 attr", b"95 attr"), "a header of pax in it is damaged"),
    "no tree": (archive(("brain/memory/chunks/2026-02/x.json", b"{}")), "neither chunks/ nor archive/"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_an_archive_that_cannot_be_read_is_refused_as_a_whole(memory: MemoryRuntime, name: str) -> None:
    broken, reason = BROKEN[name]
    with pytest.raises(InvalidRequest, match=reason) as refused:
        take_in(memory, broken)
    assert refused.value.details["path"] == "$.args.archive" and refused.value.hint
    assert memory.list_chunks(state="all").chunks == ()


def test_an_archive_that_unpacks_to_far_more_than_it_is_ends_at_a_limit(tmp_path: Path) -> None:
    bomb = archive(*((f"archive/x-{number}.json", b" " * 2**18) for number in range(550)))
    with MemoryRuntime.open(str(tmp_path / "b.db"), profile="compact") as memory:
        with pytest.raises(InvalidRequest, match="it holds more than 134217728 bytes"):
            take_in(memory, bomb)
        assert memory.chunk_stats().total_chunks == 0


@pytest.mark.parametrize("examples", [10, pytest.param(500, marks=pytest.mark.slow)])
def test_a_hostile_archive_is_refused_or_listed(memory: MemoryRuntime, examples: int) -> None:
    """Bytes of a file, of the tar and of what carries it are changed at random."""
    files = [text(chunk(number)) for number in range(3)]

    @settings(max_examples=examples, deadline=None, derandomize=True)
    @given(data())
    def attack(hostile: DataObject) -> None:
        one = bytearray(hostile.draw(sampled_from(files)))
        if hostile.draw(booleans()):
            _scramble(hostile, one)
        good = ((place(chunk(number)), each) for number, each in enumerate(files))
        made = bytearray(archive((place(chunk(9)), bytes(one)), *good))
        if hostile.draw(booleans()):
            made = bytearray(zlib.decompress(made, 31))
            _scramble(hostile, made)
        elif hostile.draw(booleans()):
            _scramble(hostile, made)
        with suppress(InvalidRequest):
            report = take_in(memory, bytes(made))
            assert report.refused_files == len(report.refused) and all(each.reason for each in report.refused)
        stored = {each.id for each in memory.list_chunks(state="all").chunks}
        assert stored <= {chunk(number)["id"] for number in (0, 1, 2, 9)}

    attack()
    assert memory.verify_store().clean


def _scramble(hostile: DataObject, data: bytearray) -> None:
    for _ in range(hostile.draw(integers(1, 3))):
        at = hostile.draw(integers(0, len(data) - 1))
        data[at : at + hostile.draw(integers(0, 2))] = hostile.draw(binary(max_size=3))


def test_nothing_is_imported_once_the_deadline_has_passed(memory: MemoryRuntime) -> None:
    with pytest.raises(DeadlineExceeded):
        memory.call("chunk.import_tree", {"archive": of(*map(chunk, range(50)))}, deadline_ms=1)
    assert memory.list_chunks().chunks == ()


def test_progress_is_told_and_others_write_between_the_slices(memory: MemoryRuntime) -> None:
    told: list[ProgressStep] = []
    written: list[str] = []

    def on_progress(step: ProgressStep) -> None:
        told.append(step)
        if step.name in ("write", "link"):
            other = threading.Thread(
                target=lambda: written.append(
                    memory.create_chunk(content="Beside it", conversation_id="other").chunk.id
                )
            )
            other.start()
            other.join()

    chunks = [chunk(number, links={"follows": [chunk(number + 1)["id"]]}) for number in range(40)]
    memory.call("chunk.import_tree", {"archive": of(*chunks)}, on_progress=on_progress)
    names = list(dict.fromkeys(each.name for each in told))
    assert names == ["read", "write", "link"] and next(each.of for each in told if each.name == "write") == 40
    assert len(written) >= 2
    assert memory.chunk_stats().total_chunks == 40 + len(written)
    assert memory.get_chunk(id=chunk(1)["id"]).linked_from[0].target == chunk(0)["id"]


CRASH = """
import os, sys
from beetle.sdk import MemoryRuntime
def on_progress(step):
    if step.name == sys.argv[3]:
        os._exit(9)
with MemoryRuntime.open(sys.argv[1], profile="standalone") as memory:
    memory.call("chunk.import_tree", {"archive": open(sys.argv[2], "rb").read()}, on_progress=on_progress)
"""


@pytest.mark.parametrize(("step", "number"), [
    ("read", 0), ("write", 60), pytest.param("link", 60, marks=pytest.mark.slow),
])  # fmt: skip
def test_a_process_that_dies_has_imported_all_or_nothing(tmp_path: Path, step: str, number: int) -> None:
    tree = tmp_path / "tree.tar.gz"
    tree.write_bytes(of(*map(chunk, range(60))))
    store = tmp_path / "b.db"
    died = subprocess.run([sys.executable, "-c", CRASH, str(store), str(tree), step], env=os.environ, check=False)
    assert died.returncode == 9
    with MemoryRuntime.open(str(store), profile="standalone") as memory:
        report = memory.open_report
        assert memory.chunk_stats().total_chunks == number
        assert memory.verify_store().clean
    assert [each.name for each in tmp_path.iterdir() if ".import-" in each.name or ".transfer-" in each.name] == []
    assert any("which was begun, is finished now" in each for each in report.findings) is (number > 0)
