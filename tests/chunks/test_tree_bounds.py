"""What a chunk's file may hold: whatever is imported comes back, out of a folder and out of an archive of the space."""

from __future__ import annotations

import io
import json
import os
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from beetle.chunk_tree.archive import Member, packed
from beetle.chunk_tree.document import (
    Bounds,
    ChunkDocument,
    Unreadable,
    parse_chunk,
    read_chunk,
    with_relations,
    written,
)
from beetle.chunk_tree.folder import TreeFolder, read_tree
from beetle.chunks import ChunkStore
from beetle.contracts.chunks import LINK_KINDS, MOST_COUNT, MOST_LINKS, MOST_NAME, MOST_TAGS
from beetle.contracts.codec import pack
from beetle.contracts.errors import InvalidRequest, PrivacyDenied
from beetle.runtime.areas.chunks.keeping import Draft, add
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.planes.chunk_rows import digest_of
from beetle.sdk import MemoryRuntime
from beetle.store import chunks
from beetle.store.engine.write_transaction import WriteTransaction
from tests.chunks.test_trees import archive, chunk, counts, of, place, take_in, taken_out, text
from tests.governance.learned import within
from tests.store.conftest import assert_clean, open_runtime

KEY = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
Files = dict[str, bytes]


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[MemoryRuntime]:
    with open_runtime(tmp_path / "b.db", "in-memory") as runtime:
        yield runtime


def chunk_files(memory: MemoryRuntime) -> Files:
    return {path: data for path, data in taken_out(memory).items() if not path.startswith("index/")}


def copied(memory: MemoryRuntime, tmp_path: Path) -> Files:
    """The files of a store that the space's archive was imported into."""
    with open_runtime(tmp_path / "copy.db", "in-memory") as other:
        other.import_space(archive=memory.export_space().archive, mode="bootstrap_import")
        return chunk_files(other)


def nested(levels: int) -> Any:
    made: Any = []
    for _ in range(levels - 1):
        made = [made]
    return made


EDGES: dict[str, dict[str, Any]] = {
    "one token": {"tokens": 1},
    "all tokens": {"tokens": MOST_COUNT},
    "all accesses": {"metadata": {"access_count": MOST_COUNT}},
    "all tags": {"tags": [f"t{number}" for number in range(MOST_TAGS)]},
    "odd tags": {"tags": ["a\0b", " ", "\n", "ä" * MOST_NAME]},
    "all links": {"links": {"supports": [f"q{number}" for number in range(MOST_LINKS)]}},
    "odd links": {"links": {"supports": ["a\0b", " ", "x" * MOST_NAME]}},
    "a long conversation": {"metadata": {"conversation_id": "c" * MOST_NAME}},
    "a year before all others": {"metadata": {"created": "0001-01-01T00:00:00Z"}},
    "numbers": {"more": [-(2**63), 2**64 - 1, 1e308, -1e308, 5e-324, 0.1]},
    "nested": {"more": nested(31)},
    "more than a message may have": {"more": "x" * 400_000},
    "known names elsewhere": {"metadata": {"tags": 1}, "links": {"id": {"content": None}}},
}
BEYOND: dict[str, tuple[dict[str, Any], str]] = {
    "no token": ({"tokens": 0}, "tokens is below 1"),
    "tokens": ({"tokens": MOST_COUNT + 1}, f"tokens is larger than {MOST_COUNT}"),
    "accesses": (
        {"metadata": {"access_count": MOST_COUNT + 1}}, f"metadata.access_count is larger than {MOST_COUNT}",
    ),
    "tags": ({"tags": ["t"] * (MOST_TAGS + 1)}, f"tags has more than {MOST_TAGS} entries"),
    "links": ({"links": {"supports": ["l"] * (MOST_LINKS + 1)}}, f"links.supports has more than {MOST_LINKS} entries"),
    "a long name": ({"tags": ["x" * (MOST_NAME + 1)]}, "tags holds a string that is longer than 256 characters"),
    "a number above": ({"more": 2**64}, "the number '18446744073709551616' is beyond 64 bits"),
    "a number below": ({"more": [-(2**63) - 1]}, "the number '-9223372036854775809' is beyond 64 bits"),
    "a number of many digits": (
        {"metadata": {"confidence": 10**400}}, f"the number '1{'0' * 62}…' is beyond 64 bits",
    ),
    "levels": ({"more": nested(32)}, "it is nested deeper than 32 levels"),
}  # fmt: skip


def test_a_file_that_grows_beyond_the_limit_when_it_is_written_again_is_refused() -> None:
    given = chunk(0, more=0)
    data = json.dumps(given).replace('"more": 0', f'"more": [{",".join(["1e5"] * 600_000)}]').encode()
    found = read_chunk(data, place(given))
    reason = "its unknown fields and links are larger than 4194304 bytes once they are written again"
    assert isinstance(found, Unreadable) and found.reason == reason


def escaped(number: int) -> str:
    """A name that is as long as one may be in a file: JSON makes six bytes of each of its characters."""
    return chr(1) * (MOST_NAME - 5) + f"{number:05}".translate({ord("0") + each: each + 1 for each in range(10)})


@pytest.mark.parametrize("content_bytes", [2**16, 2**18, 2**20])
def test_whatever_a_chunk_is_given_fits_into_its_file_beside_what_a_file_brought(content_bytes: int) -> None:
    bounds = Bounds.of(content_bytes)
    small = chunk(0, more="x" * (bounds.brought - 1_000))
    found = read_chunk(text(small), place(small), bounds)
    assert isinstance(found, ChunkDocument)
    names = tuple(map(escaped, range(MOST_TAGS)))
    full = found._replace(
        content="a" + "\0" * (content_bytes - 1), tags=names, links={kind: names[:64] for kind in LINK_KINDS}
    )
    full = with_relations(full, (f"chunk-{number:0122}" for number in range(MOST_LINKS + 1)), bounds)
    assert read_chunk(written(full).encode(), place(small), bounds) == full
    over = text(chunk(0, more="x" * bounds.brought))
    assert isinstance(read_chunk(over, place(small), bounds), Unreadable)


def test_a_chunk_of_control_characters_comes_back_out_of_its_file(tmp_path: Path) -> None:
    content = "a" + "\0" * (2**20 - 1)
    profile = "profile-desktop-linux-embedded-sdk"
    with ChunkStore(tmp_path, profile=profile) as store:
        made = store.create_chunk(content, "note", "c", 5, link=False)
    shutil.rmtree(tmp_path / ".beetle")
    with ChunkStore(tmp_path, profile=profile) as store:
        found = store.peek_chunk(made.id)
    assert found is not None and found.content == content


def test_a_file_names_no_more_relations_than_one_may_have() -> None:
    found = read_chunk(text(chunk(0, links={"related_to": ["own"]})), place(chunk(0)))
    assert isinstance(found, ChunkDocument)
    back = [f"n{number}" for number in range(MOST_LINKS)]
    full = with_relations(found, back, Bounds.of(2**18))
    assert full.links["related_to"] == ("own", *back[:-1])
    assert read_chunk(written(full).encode(), place(chunk(0))) == full


def named(cases: dict[str, dict[str, Any]]) -> list[tuple[str, bytes]]:
    made = [chunk(number, **changes) for number, changes in enumerate(cases.values())]
    return [(place(each), json.dumps(each, ensure_ascii=False, separators=(",", ":")).encode()) for each in made]


def test_what_is_imported_at_the_edges_comes_back_out_of_a_tree_and_out_of_an_archive(
    memory: MemoryRuntime, tmp_path: Path
) -> None:
    files = named(EDGES)
    assert counts(take_in(memory, archive(*files))) == (len(EDGES), 0, 0, 0)
    assert take_in(memory, archive(*files)).unchanged == len(EDGES)
    exported = chunk_files(memory)
    assert sorted(json.loads(data)["id"] for data in exported.values()) == [json.loads(data)["id"] for _, data in files]
    for path, data in files:
        assert next(
            json.loads(each) for each in exported.values() if path.endswith(json.loads(each)["id"] + ".json")
        ) == (json.loads(data))
    assert counts(take_in(memory, packed(Member(*each) for each in exported.items()))) == (0, 0, len(EDGES), 0)
    assert copied(memory, tmp_path) == exported


def test_what_lies_beyond_them_is_refused_with_its_reason(memory: MemoryRuntime) -> None:
    files = named({name: changes for name, (changes, _) in BEYOND.items()})
    report = take_in(memory, archive(*files))
    assert counts(report) == (0, 0, 0, len(BEYOND))
    assert dict(zip(BEYOND, (each.reason for each in report.refused), strict=True)) == {
        name: reason for name, (_, reason) in BEYOND.items()
    }


@pytest.mark.parametrize("number", ["1e999", "-1e999", "1" + "0" * 400 + ".5"])
def test_a_number_that_overflows_is_refused_and_what_is_written_is_always_json(number: str) -> None:
    data = text(chunk(1, more=7)).replace(b'"more": 7', f'"more": {number}'.encode())
    found = read_chunk(data, place(chunk(1)))
    assert isinstance(found, Unreadable) and "larger than any that readers of JSON have" in found.reason
    whole = read_chunk(text(chunk(1)), place(chunk(1)))
    assert isinstance(whole, ChunkDocument)
    with pytest.raises(ValueError, match="JSON"):
        written(whole._replace(extra={"more": float(number)}))


@pytest.mark.parametrize("confidence", [10**400, float("nan"), float("inf"), -1])
def test_a_confidence_that_is_none_is_a_value_error(confidence: float) -> None:
    with pytest.raises(ValueError, match="confidence is not between 0 and 1"):
        parse_chunk(chunk(1, metadata={"confidence": confidence}))


SECRETS: dict[str, dict[str, Any]] = {
    "content": {"content": f"It is {KEY}"},
    "tag": {"tags": ["a", KEY]},
    "conversation": {"metadata": {"conversation_id": KEY}},
    "link": {"links": {"supports": ["x", KEY]}},
    "field": {"note": f"token {KEY}"},
    "field's name": {KEY: {}},
    "field of the metadata": {"metadata": {"model": [{"key": KEY}]}},
    "field of the links": {"links": {"inspired_by": [KEY]}},
    "value behind its name": {"note": {"password": "hunter2hunter2"}},
    "figures behind their name": {"note": {"password": 84736251}},
    "text of two lines": {"note": "my password\nis hunter2hunter2"},
    "id": {"id": KEY},
}
HARMLESS: dict[str, dict[str, Any]] = {
    "digits of a conversation": {"metadata": {"conversation_id": "4111111111111111"}},
    "digits of a link": {"links": {"supports": ["4111111111111111"]}},
    "two texts": {"note": ["the password", "is hunter2hunter2"], "more": {"token": ["f3" * 12, "a9b8c7d6e5f4"]}},
    "a hash": {"note": {"sha256": "0123456789abcdef" * 4}},
}


def test_a_file_with_a_secret_anywhere_is_refused_and_one_without_is_not(memory: MemoryRuntime, tmp_path: Path) -> None:
    harmless = [chunk(100 + number, **changes) for number, changes in enumerate(HARMLESS.values())]
    report = take_in(memory, of(*harmless))
    assert counts(report) == (len(HARMLESS), 0, 0, 0)
    bad = [chunk(number, **changes) for number, changes in enumerate(SECRETS.values())]
    report = take_in(memory, of(*bad))
    assert [each.reason for each in report.refused] == [
        "it holds what looks like a secret (a key, a token, a password)"
    ] * len(SECRETS)
    assert copied(memory, tmp_path) == chunk_files(memory)


def old_chunk(memory: MemoryRuntime, name: str, extra: str | None = None, **said: Any) -> None:
    """A chunk as an earlier build has taken it from a file, which looked less closely."""
    draft = Draft("of an earlier build", "note", "c", 5, (), 0.5, "import", 0, chunk_id=name, extra={"chunk": {}})

    def job(invocation: Invocation, tx: WriteTransaction, space: int) -> None:
        row = add(invocation, tx, space, draft._replace(**said), link=False)
        assert row.body is not None
        body = row.body._replace(extra=extra or row.body.extra)
        tx.run("UPDATE chunk_body SET extra = ? WHERE chunk = ?", body.extra, row.chunk)
        chunks.change(tx, row._replace(digest=digest_of(invocation.key, body, row.links)))

    within(memory, job)


@pytest.mark.parametrize("place", ["extra", "conversation_id", "links"])
def test_an_archive_with_a_secret_is_refused_by_the_place(memory: MemoryRuntime, tmp_path: Path, place: str) -> None:
    said: dict[str, Any] = {"conversation_id": KEY} if place == "conversation_id" else {}
    old_chunk(memory, "old", json.dumps({"metadata": {"x": KEY}}) if place == "extra" else None, **said)
    if place == "links":
        within(
            memory, lambda _, tx, space: tx.run("INSERT INTO chunk_link VALUES (1, 0, 'supports', NULL, ?, 0.5)", KEY)
        )
        within(memory, _sealed_anew)
    with open_runtime(tmp_path / "other.db", "in-memory") as other:
        with pytest.raises(PrivacyDenied) as refused:
            other.import_space(archive=memory.export_space().archive, mode="bootstrap_import")
        assert refused.value.details["path"] == f"$.snapshot.records.chunks[0].{place}"


def _sealed_anew(invocation: Invocation, tx: WriteTransaction, space: int) -> None:
    row = chunks.find(tx, space, "old")
    assert row is not None and row.body is not None
    chunks.change(tx, row._replace(digest=digest_of(invocation.key, row.body, row.links)))


def test_what_an_earlier_build_took_is_shown_and_goes_along_as_text(memory: MemoryRuntime, tmp_path: Path) -> None:
    odd = '{"chunk": {"big": [%d], "low": %d}, "metadata": {"inf": Infinity, "less": -Infinity}, "links": {}}'
    old_chunk(memory, "odd", odd % (10**30, -(10**30)))
    old_chunk(memory, "none", tokens=0)
    old_chunk(memory, "many", tokens=2**60, accesses=2**63 - 1, last_accessed=0)
    listed = memory.list_chunks().chunks
    pack(listed)
    assert [each.tokens for each in listed] == [5, 1, MOST_COUNT]
    assert listed[2].metadata.access_count == MOST_COUNT
    first = memory.get_chunk("odd", count_access=False).chunk
    assert first is not None and first.extra is not None
    assert first.extra.chunk == {"big": [str(10**30)], "low": str(-(10**30))}
    assert first.extra.metadata == {"inf": "Infinity", "less": "-Infinity"}
    files = chunk_files(memory)
    assert copied(memory, tmp_path) == files
    assert counts(take_in(memory, packed(Member(*each) for each in files.items())))[3] == 0
    memory.update_chunk(id="odd", content="changed")
    assert_clean(memory)


def test_an_archive_whose_fields_are_nested_beyond_any_file_is_refused(memory: MemoryRuntime, tmp_path: Path) -> None:
    old_chunk(memory, "deep", json.dumps({"chunk": {"more": nested(300)}}))
    with (
        open_runtime(tmp_path / "other.db", "in-memory") as other,
        pytest.raises(InvalidRequest, match="it has besides"),
    ):
        other.import_space(archive=memory.export_space().archive, mode="bootstrap_import")


DAMAGE = {
    "sure": "UPDATE chunk SET confidence = 9e999",
    "late": "UPDATE chunk SET created_at = 9000000000000000000",
    "evil": "UPDATE chunk SET chunk_id = '../../../evil'",
    "nameless": "UPDATE chunk SET conversation_id = ''",
    "typed": "UPDATE chunk SET type = 'zzz'",
    "linked": "UPDATE chunk_link SET kind = 'zzz'",
}


def test_damaged_chunks_are_not_in_a_tree_and_keep_none_of_the_others_from_it(tmp_path: Path) -> None:
    whole = chunk(1, id="whole", links={"supports": ["evil", "late", "nowhere"], "related_to": ["evil", "sure"]})
    other = chunk(2, id="other")
    bad = [
        chunk(3, id=name, links={"follows": ["whole"], "related_to": ["other"]}, tags=[f"of {name}"]) for name in DAMAGE
    ]
    with open_runtime(tmp_path / "b.db") as memory:
        assert counts(take_in(memory, of(whole, other, *bad))) == (2 + len(DAMAGE), 0, 0, 0)
    connection = apsw.Connection(os.fspath(tmp_path / "b.db"))
    connection.pragma("ignore_check_constraints", True)
    for name, sql in DAMAGE.items():
        connection.execute(f"{sql} WHERE chunk = (SELECT chunk FROM chunk WHERE chunk_id = ?)", (name,))
    connection.close()
    with open_runtime(tmp_path / "b.db") as memory:
        exported = memory.export_chunk_tree()
        assert (exported.chunks, exported.damaged) == (2 + len(DAMAGE), len(DAMAGE))
        files = {path: json.loads(data) for path, data in taken_out(memory).items()}
    assert [path for path in files if not path.startswith("index/")] == [place(whole), place(other)]
    assert files[place(whole)]["links"]["supports"] == ["late", "nowhere"]
    assert "evil" not in json.dumps(files)
    assert set(files["index/metadata_index.json"]["entries"]) == {"whole", "other"}
    assert not any("of " in tag for tag in files["index/tag_index.json"]["lists"])
    graph = files["index/link_graph.json"]
    assert graph["forward"]["whole"] == {kind: ids for kind, ids in files[place(whole)]["links"].items() if ids}
    assert (set(graph["forward"]), set(graph["reverse"])) == ({"whole", "other"}, {"whole", "other"})
    with open_runtime(tmp_path / "other.db", "in-memory") as again:
        assert counts(take_in(again, exported.archive or b"")) == (2, 0, 0, 0)


COMPACT_BYTES = 6 * 65_536 + 2**19
"""Bytes of what only a file brings in the smallest profile."""


def relations(memory: MemoryRuntime) -> set[frozenset[str]]:
    shown = [json.loads(data) for data in chunk_files(memory).values()]
    return {frozenset((each["id"], other)) for each in shown for other in each["links"]["related_to"]}


@pytest.mark.parametrize(("own", "size", "room"), [(MOST_LINKS - 2, 0, 2), (1, COMPACT_BYTES - 2_000, 63)])
def test_a_chunk_that_more_relate_to_than_a_file_may_name_comes_back_with_all_of_them(
    tmp_path: Path, own: int, size: int, room: int
) -> None:
    own_names, names = [f"o{number}" for number in range(own)], [f"{number:0128}" for number in range(90)]
    hub = chunk(0, id="hub", links={"related_to": own_names}, more="x" * size)
    given = [hub, *(chunk(1, id=name, content="c", tags=[], links={"related_to": ["hub"]}) for name in names)]
    every = {frozenset(("hub", name)) for name in (*own_names, *names)}
    with (
        MemoryRuntime.open(os.fspath(tmp_path / "b.db"), profile="compact") as memory,
        MemoryRuntime.open(os.fspath(tmp_path / "other.db"), profile="compact") as other,
    ):
        assert counts(take_in(memory, of(*given))) == (len(given), 0, 0, 0)
        files = chunk_files(memory)
        tree = packed(Member(*each) for each in files.items())
        assert counts(take_in(memory, tree)) == (0, 0, len(given), 0)
        assert counts(take_in(other, tree)) == (len(given), 0, 0, 0)
        assert relations(memory) == relations(other) == every
        named = json.loads(files[place(hub)])["links"]["related_to"]
        assert named[:own] == own_names and room - 2 <= len(named) - own <= room + 2


NAMES = {
    b"chunks/2026-02/bad\xff.json": ("chunks/2026-02/bad\\xff.json", "its path is not UTF-8"),
    b"chunks/2026-\xfe/x.json": ("chunks/2026-\\xfe/x.json", "its path is not UTF-8"),
    b"chunks/\xfd.json": ("chunks/\\xfd.json", "its path is not UTF-8"),
    b"archive/\xed\xa0\x80.json": ("archive/\\xed\\xa0\\x80.json", "its path is not UTF-8"),
    rb"chunks/2026-02/a\b.json": (r"chunks/2026-02/a\b.json", "its path holds a backslash"),
}


def laid_out(base: Path) -> None:
    for name in (*NAMES, os.fsencode(place(chunk(1)))):
        path = os.fsencode(base) + b"/" + name
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(text(chunk(1)))
    os.symlink("/etc", os.fsencode(base) + b"/chunks/link\xff")


def test_a_name_that_is_not_utf_8_is_listed_and_stops_neither_a_folder_nor_a_store(tmp_path: Path) -> None:
    laid_out(tmp_path)
    expected = {*NAMES.values(), ("chunks/link\\xff", "it is a symbolic link")}
    with TreeFolder(os.fspath(tmp_path)) as folder:
        found = list(read_tree(folder))
    assert {tuple(each) for each in found if isinstance(each, Unreadable)} == expected
    assert [each.path for each in found if isinstance(each, Member)] == [place(chunk(1))]
    with ChunkStore(tmp_path, profile="profile-desktop-linux-embedded-sdk") as store:
        assert store.list_chunks() == [chunk(1)["id"]]
        assert set(store.import_tree().refused) == expected
        store.delete_chunk(chunk(1)["id"], permanent=True)


@pytest.mark.parametrize("format", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_such_a_name_in_an_archive_is_listed_too(memory: MemoryRuntime, format: int) -> None:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=format, errors="surrogateescape") as tar:
        for name in (*NAMES, os.fsencode(place(chunk(1)))):
            member = tarfile.TarInfo(os.fsdecode(name))
            member.size = len(text(chunk(1)))
            tar.addfile(member, io.BytesIO(text(chunk(1))))
    report = take_in(memory, made.getvalue())
    assert {(each.path, each.reason) for each in report.refused} == set(NAMES.values())
    assert report.imported == 1


NUMBERS = st.integers(-(2**70), 2**70) | st.sampled_from([0, 1, 2**53 - 1, 2**53, 2**63 - 1, 2**63, 2**64 - 1, 2**64])
TEXTS = st.text(max_size=8) | st.sampled_from(["x" * 256, "x" * 257, "a\0b", "\n", KEY, "1e999"])
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=8,
)
EXTRAS = st.dictionaries(TEXTS, VALUES, max_size=3)
LISTS = st.lists(TEXTS, max_size=5) | st.integers(0, 300).map(lambda most: [f"n{number}" for number in range(most)])
CHUNKS = st.fixed_dictionaries({
    "content": TEXTS | st.just("some text"),
    "tokens": NUMBERS | st.integers(1, 800),
    "tags": LISTS,
    "metadata": st.builds(
        lambda extra, count, confidence: {**extra, "access_count": count, "confidence": confidence},
        EXTRAS, NUMBERS | st.integers(0, 9), st.floats(0, 1) | NUMBERS,
    ),
    "links": st.builds(lambda extra, targets: {**extra, "supports": targets}, EXTRAS, LISTS),
    "more": VALUES,
})  # fmt: skip


@pytest.mark.parametrize("examples", [15, pytest.param(1000, marks=pytest.mark.slow)])
def test_whatever_an_import_takes_an_archive_brings_back(memory: MemoryRuntime, tmp_path: Path, examples: int) -> None:
    with open_runtime(tmp_path / "other.db", "in-memory") as other:

        @settings(max_examples=examples, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
        @given(st.lists(CHUNKS, min_size=1, max_size=6))
        def agree(given: list[dict[str, Any]]) -> None:
            take_in(memory, of(*(chunk(number, **changes) for number, changes in enumerate(given))))
            files = chunk_files(memory)
            assert take_in(memory, packed(Member(*each) for each in files.items())).unchanged == len(files)
            other.import_space(archive=memory.export_space().archive, mode="full_restore", other_store=True)
            assert chunk_files(other) == files

        agree()
        assert_clean(memory)
        assert_clean(other)
