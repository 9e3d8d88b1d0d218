"""Folders of chunks that others wrote or edited: taken in when a `ChunkStore` is opened there, and when asked to."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from beetle.chunks import ChunkStore
from beetle.contracts.errors import InvalidRequest, StorageFull

FIRST, SECOND = "chunk-2026-02-10-a1b2c3d4", "chunk-2026-02-11-0a0b0c0d"
TIME = "2026-02-10T21:37:00Z"
PROFILE = "profile-desktop-linux-embedded-sdk"


def published(chunk_id: str, **says: Any) -> dict[str, Any]:
    """A chunk as the published projects write it: ids of chunks in context_of, microseconds in its times."""
    return {
        "id": chunk_id,
        "content": f"What {chunk_id} says",
        "tokens": 5,
        "type": "note",
        "metadata": {
            "created": "2026-02-10T21:37:00.123456Z",
            "conversation_id": "conv-abc123",
            "source": "interaction",
            "confidence": 0.95,
            "access_count": 3,
            "last_accessed": "2026-02-10T22:15:00Z",
        },
        "links": {"context_of": [], "follows": [], "related_to": [], "supports": [], "contradicts": []},
        "tags": [],
        **says,
    }


def write(base: Path, place: str, content: Any) -> Path:
    path = base / place
    path.parent.mkdir(parents=True, exist_ok=True)
    data = content if isinstance(content, bytes) else json.dumps(content, indent=2, ensure_ascii=False).encode()
    path.write_bytes(data)
    return path


def live(chunk_id: str) -> str:
    return f"chunks/{chunk_id[6:13]}/{chunk_id}.json"


def links(**kinds: list[str]) -> dict[str, Any]:
    return {**published("x")["links"], **kinds}


BROKEN: dict[str, Any] = {
    live("chunk-2026-02-10-00000001"): [],
    live("chunk-2026-02-10-00000002"): published("chunk-2026-02-10-00000002", metadata={"created": TIME}),
    live("chunk-2026-02-10-00000003"): b'{"id": "\xff"}',
    live("chunk-2026-02-10-00000004"): published("chunk-2026-02-10-00000099"),
    live("chunk-2026-02-10-00000005"): b'{"id": "chunk-2026',
    live("chunk-2026-02-10-00000006"): published("chunk-2026-02-10-00000006", tokens="many"),
}  # fmt: skip


def test_a_tree_of_the_published_projects_is_taken_in(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    first = write(tmp_path, live(FIRST), published(FIRST, tags=["rlm"], mood="calm"))
    write(
        tmp_path, live(SECOND), published(SECOND, links=links(context_of=[FIRST], follows=[FIRST], related_to=[FIRST]))
    )
    write(tmp_path, "archive/chunk-2026-01-01-cccccccc.json", published("chunk-2026-01-01-cccccccc"))
    write(tmp_path, "index/link_graph_index.json", {"entries": {}, "lists": {}, "forward": {}})
    write(tmp_path, "index/metadata_index.json", b"{ broken")
    for place, content in BROKEN.items():
        write(tmp_path, place, content)
    outside = write(tmp_path.parent, f"{tmp_path.name}-outside.json", published("chunk-2026-02-10-00000007"))
    (tmp_path / live("chunk-2026-02-10-00000007")).symlink_to(outside)
    before = first.read_bytes()

    with ChunkStore(tmp_path, profile=PROFILE) as store:
        assert store.list_chunks() == [FIRST, SECOND] and store.list_archived() == ["chunk-2026-01-01-cccccccc"]
        found = store.peek_chunk(SECOND)
        assert found is not None and found.links.context_of == [FIRST] and found.links.follows == [FIRST]
        counted = store.get_chunk(FIRST)
        assert counted is not None and counted.metadata.access_count == 4 and counted.extra == {"mood": "calm"}
        assert all(store.get_chunk(Path(place).stem) is None for place in BROKEN)
        assert store.update_chunk(FIRST, confidence=0.5)
    changed = json.loads(first.read_bytes())
    assert changed == {
        **json.loads(before),
        "metadata": {**json.loads(before)["metadata"], "confidence": 0.5, **counts(changed)},
        "links": links(related_to=[SECOND]),
    }
    logged = [each.getMessage() for each in caplog.records if each.levelname == "ERROR"]
    assert len(logged) == len(BROKEN) + 1
    assert all(sum(place in message for message in logged) == 1 for place in BROKEN)
    assert all((tmp_path / place).exists() for place in BROKEN), "nobody's file is thrown away"
    index = json.loads((tmp_path / "index/metadata_index.json").read_bytes())
    assert list(index["entries"]) == [FIRST, SECOND]


def counts(chunk: dict[str, Any]) -> dict[str, Any]:
    return {name: chunk["metadata"][name] for name in ("access_count", "last_accessed")}


def test_what_people_edited_is_taken_in_when_they_say_so(tmp_path: Path) -> None:
    with ChunkStore(tmp_path, profile=PROFILE) as store:
        kept = store.create_chunk("Kept", "note", "conv", 1)
        edited = store.create_chunk("Before", "note", "conv", 1)
        place = tmp_path / live(edited.id)
        says = json.loads(place.read_bytes())
        place.write_text(json.dumps({**says, "content": "After", "tags": ["by hand"], "reviewed": True}))
        write(tmp_path, live(FIRST), published(FIRST, links=links(supports=[kept.id])))
        write(tmp_path, live(SECOND), b"{")
        assert store.peek_chunk(edited.id) == edited
        done = store.import_tree()
        assert (done.imported, done.updated, done.unchanged) == (1, 1, 1)
        ((refused, reason),) = done.refused
        assert refused == live(SECOND) and "JSON" in reason
        found = store.peek_chunk(edited.id)
        assert found is not None and (found.content, found.tags, found.extra) == (
            "After",
            ["by hand"],
            {"reviewed": True},
        )
        assert store.list_chunks(tags=["by hand"]) == [edited.id]
        assert json.loads(place.read_bytes()) == found.to_dict()
        again = store.import_tree()
        assert (again.imported, again.updated, again.unchanged) == (0, 0, 3)


def test_an_id_in_two_files_is_of_the_first_one_however_far_they_are_apart(tmp_path: Path) -> None:
    second = "archive/" + Path(live(FIRST)).name
    write(tmp_path, live(FIRST), published(FIRST))
    for number in range(2):
        name = f"chunk-2026-03-01-{number:08x}"
        write(tmp_path, live(name), published(name, padding="x" * 600_000))
    write(tmp_path, second, published(FIRST, content="Of another file"))
    twice = (second, "its id stands in another file of the tree already")
    with ChunkStore(tmp_path / "copy", profile=PROFILE) as store:
        assert store.import_tree(tmp_path) == (3, 0, 0, (twice,))
        found = store.peek_chunk(FIRST)
        assert found is not None and found.content == published(FIRST)["content"]


def test_a_file_whose_indented_text_is_too_large_is_written_in_one_line_and_read_again(tmp_path: Path) -> None:
    numbers: list[Any] = [0] * 100_000
    for _ in range(20):
        numbers = [numbers]
    path = write(tmp_path, live(FIRST), json.dumps(published(FIRST, numbers=numbers)).encode())
    with ChunkStore(tmp_path, profile=PROFILE) as store:
        assert store.update_chunk(FIRST, confidence=0.8) is not None
        assert path.stat().st_size < 1_000_000
        assert store.import_tree() == (0, 0, 1, ())


def test_another_folder_is_imported_and_one_is_exported(tmp_path: Path) -> None:
    write(tmp_path / "old", live(FIRST), published(FIRST))
    with ChunkStore(tmp_path / "new", profile=PROFILE) as store:
        own = store.create_chunk("Own", "note", "conv", 1)
        gone = store.create_chunk("Gone", "note", "conv", 1)
        store.delete_chunk(gone.id)
        assert store.import_tree(tmp_path / "old").imported == 1
        (tmp_path / "new" / live(own.id)).unlink()
        assert store.export_tree(tmp_path / "copy") == 3
        assert store.export_tree() == 3
    places = [live(own.id), live(FIRST), f"archive/{gone.id}.json", "index/tag_index.json", "index/link_graph.json"]
    for place in places[:3]:
        assert (tmp_path / "copy" / place).read_bytes() == (tmp_path / "new" / place).read_bytes()
    assert all((tmp_path / "copy" / place).exists() for place in places)
    assert not (tmp_path / "copy" / ".beetle").exists()
    with ChunkStore(tmp_path / "copy", profile=PROFILE) as copy:
        assert sorted(copy.list_chunks()) == [FIRST, own.id] and copy.list_archived() == [gone.id]


def test_a_store_without_its_note_of_the_tree_keeps_what_it_has(tmp_path: Path) -> None:
    with ChunkStore(tmp_path, profile=PROFILE) as store:
        chunk = store.create_chunk("From the store", "note", "conv", 1)
        stale = json.loads((tmp_path / live(chunk.id)).read_bytes())
    for broken in (None, b"{", b"[]"):
        if broken is None:
            (tmp_path / ".beetle/tree.json").unlink()
        else:
            (tmp_path / ".beetle/tree.json").write_bytes(broken)
        write(tmp_path, live(chunk.id), {**stale, "content": "Stale"})
        with ChunkStore(tmp_path, profile=PROFILE) as store:
            assert store.peek_chunk(chunk.id) == chunk
        assert (tmp_path / live(chunk.id)).read_text() == chunk.to_json()


def test_an_older_copy_of_the_store_is_the_truth_too(tmp_path: Path) -> None:
    with ChunkStore(tmp_path, profile=PROFILE) as store:
        chunk = store.create_chunk("First", "note", "conv", 1)
    older = (tmp_path / ".beetle/store.db").read_bytes()
    with store:
        store.update_chunk(chunk.id, content="Second", tokens=1)
    (tmp_path / ".beetle/store.db").write_bytes(older)
    with store:
        found = store.peek_chunk(chunk.id)
        assert found is not None and found.content == "First"
    assert json.loads((tmp_path / live(chunk.id)).read_bytes())["content"] == "First"


def test_a_folder_of_chunks_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    os.makedirs(tmp_path / "outside/2026-02")
    write(tmp_path / "outside", f"2026-02/{FIRST}.json", published(FIRST))
    (tmp_path / "base/chunks").mkdir(parents=True)
    (tmp_path / "base/chunks/2026-02").symlink_to(tmp_path / "outside/2026-02")
    with ChunkStore(tmp_path / "base", profile=PROFILE) as store:
        assert store.list_chunks() == []


def mirrored(base: Path) -> set[str]:
    return {each.relative_to(base).as_posix() for each in base.rglob("*.json") if ".beetle" not in each.parts}


def test_what_hinders_the_files_is_logged_and_fails_no_call(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with ChunkStore(tmp_path, profile=PROFILE) as store:
        first = store.create_chunk("First", "note", "conv", 1, tags=["t"])
        month, place = (tmp_path / live(first.id)).parent, tmp_path / live(first.id)
        aside = month.rename(tmp_path / "aside")
        month.write_text("no folder")
        second = store.create_chunk("Second", "note", "other", 1, tags=["t"])
        assert store.update_chunk(first.id, content="Changed") is not None
        assert store.list_chunks() == [first.id, second.id]
        # The file that stands aside would undo the change.
        with pytest.raises(InvalidRequest, match=f"{month}: it is no folder") as refused:
            store.import_tree()
        assert "move away what stands there" in (refused.value.hint or "")
        with pytest.raises(InvalidRequest, match=f"{month}: it is no folder"):
            store.export_tree()
        assert store.delete_chunk(store.create_chunk("Third", "note", "conv", 1).id, permanent=True)
    assert sum(f"{month}: it is no folder" in each.getMessage() for each in caplog.records) == 1

    with ChunkStore(tmp_path, profile=PROFILE) as store:
        assert store.list_chunks() == [first.id, second.id]
        month.unlink()
        aside.rename(month)
        place.unlink()
        place.mkdir()
        store.link_chunk(second.id, "supports", first.id)
        assert json.loads((tmp_path / live(second.id)).read_bytes())["links"]["supports"] == [first.id]
        with pytest.raises(InvalidRequest, match=f"{place}: a folder stands there"):
            store.import_tree()
        place.rmdir()
        store.link_chunk(second.id, "contradicts", first.id)
        assert json.loads(place.read_bytes())["content"] == "Changed"
        assert store.import_tree() == (0, 0, 2, ())


def test_what_hinders_the_files_is_made_up_for_at_the_next_opening(tmp_path: Path) -> None:
    (tmp_path / "index").mkdir()
    (tmp_path / "index/tag_index.json").mkdir()
    (tmp_path / "chunks").write_text("no folder")
    with ChunkStore(tmp_path, profile=PROFILE) as store:
        made = [store.create_chunk(f"Number {number}", "note", "conv", 1).id for number in range(3)]
        store.delete_chunk(made[2])
        with pytest.raises(InvalidRequest, match=r"index/tag_index\.json: a folder stands there"):
            store.rebuild_indexes()
    (tmp_path / "chunks").unlink()
    (tmp_path / "index/tag_index.json").rmdir()
    with ChunkStore(tmp_path, profile=PROFILE):
        pass
    indexes = {f"index/{name}.json" for name in ("metadata_index", "tag_index", "link_graph")}
    assert mirrored(tmp_path) == {live(made[0]), live(made[1]), f"archive/{made[2]}.json", *indexes}
    assert list(json.loads((tmp_path / "index/metadata_index.json").read_bytes())["entries"]) == made[:2]


def test_a_full_disk_fails_no_call_that_the_store_took(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    small = tmp_path / "chunks"
    small.mkdir()
    mounted = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(small)]
    if os.getuid() != 0 or shutil.which("mount") is None or subprocess.run(mounted, check=False).returncode:
        pytest.skip("nothing can be mounted here")
    try:
        with ChunkStore(tmp_path, profile=PROFILE) as store:
            made = store.create_chunk("long " * 20_000, "note", "conv", 1)
            with pytest.raises(StorageFull, match=live(made.id)):
                store.import_tree()
    finally:
        subprocess.run(["umount", "-l", str(small)], check=True)
    assert f"no space left for {tmp_path / live(made.id)}" in caplog.text
    with ChunkStore(tmp_path, profile=PROFILE) as store:
        assert store.list_chunks() == [made.id]
    assert live(made.id) in mirrored(tmp_path)
