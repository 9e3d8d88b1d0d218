"""`beetle chunk export-tree` and `import-tree`: a folder of JSON files on the caller's side."""

from __future__ import annotations

import json
import os
from pathlib import Path

from .conftest import CommandLine


def made(beetle: CommandLine, content: str) -> str:
    said = beetle.here("--json", "chunk", "create", content, "--conversation-id", "c1", "--tags", "t")
    assert said.code == 0, said.err
    return said.json["chunk"]["id"]


def test_a_folder_is_written_and_read_back_and_only_what_changed_is_written(beetle: CommandLine) -> None:
    first, second = made(beetle, "The first note"), made(beetle, "The second note")
    tree = beetle.folder / "brain" / "memory"
    said = beetle.here("chunk", "export-tree", str(tree))
    assert said.code == 0 and "5 files written, 0 unchanged, 0 removed" in said.out
    month = first[6:13]
    assert sorted(each.relative_to(tree).as_posix() for each in tree.rglob("*.json")) == sorted([
        f"chunks/{month}/{first}.json", f"chunks/{month}/{second}.json",
        "index/link_graph.json", "index/metadata_index.json", "index/tag_index.json",
    ])  # fmt: skip
    assert sorted(each.name for each in tree.iterdir()) == ["archive", "chunks", "index"]
    file = tree / "chunks" / month / f"{first}.json"
    assert file.stat().st_mode & 0o777 == 0o600 and not file.read_bytes().endswith(b"\n")

    edited = json.loads(file.read_text())
    edited["content"] = "Edited by hand"
    file.write_text(json.dumps(edited))
    beetle.here("chunk", "delete", second)
    said = beetle.here("--json", "chunk", "import-tree", str(tree))
    assert said.code == 0
    assert {name: said.json[name] for name in ("imported", "updated", "unchanged")} == {
        "imported": 0, "updated": 2, "unchanged": 0,
    }  # fmt: skip
    assert beetle.here("--json", "chunk", "get", first).json["chunk"]["content"] == "Edited by hand"

    beetle.here("chunk", "delete", second)
    (tree / "chunks" / month / "chunk-2020-01-01-00000000.json").write_text("{}")
    said = beetle.here("chunk", "export-tree", str(tree))
    assert "1 removed" in said.out and "1 file of chunks that the store does not hold: left" in said.out
    assert (tree / "archive" / f"{second}.json").is_file()
    assert not (tree / "chunks" / month / f"{second}.json").exists()


def test_what_is_not_imported_is_told_with_its_reason_and_by_the_exit_code(beetle: CommandLine, tmp_path: Path) -> None:
    one = made(beetle, "The first note")
    tree = beetle.folder / "memory"
    beetle.here("chunk", "export-tree", str(tree))
    month = tree / "chunks" / one[6:13]
    secret = tmp_path / "secret.json"
    secret.write_text("{}")
    os.symlink(secret, month / "chunk-2026-01-01-00000000.json")
    os.symlink(tmp_path, tree / "chunks" / "2026-01")
    (month / "broken.json").write_text("{")
    (month / "huge.json").write_bytes(b" " * (11 * 2**20 + 1))
    os.mkfifo(month / "pipe.json")
    said = beetle.here("chunk", "import-tree", str(tree))
    assert said.code == 1
    where = f"beetle: chunks/{one[6:13]}"
    assert set(said.err.splitlines()) == {
        "beetle: chunks/2026-01: it is a symbolic link",
        f"{where}/chunk-2026-01-01-00000000.json: it is a symbolic link",
        f"{where}/broken.json: it is not JSON: Expecting property name enclosed in double quotes at line 1, column 2",
        f"{where}/huge.json: it is larger than 11534336 bytes",
        f"{where}/pipe.json: it is no regular file",
    }
    told = beetle.here("--json", "chunk", "import-tree", str(tree), "--dry-run")
    assert told.code == 1 and told.json["refused_files"] == 5 == len(told.json["refused"]) and told.json["dry_run"]


def test_a_folder_that_is_none_is_refused_and_a_new_store_is_made_for_a_tree(beetle: CommandLine) -> None:
    for folder, reason in (("nothing", "no such file or directory"), (".", "holds neither chunks/ nor archive/")):
        key, message, hint = beetle.here("chunk", "import-tree", str(beetle.folder / folder)).error
        assert key == "invalid_request" and reason in message and "chunks/" in hint
    (beetle.folder / "memory" / "chunks").mkdir(parents=True)
    assert not Path(beetle.store).exists()
    said = beetle.here("chunk", "import-tree", str(beetle.folder / "memory"))
    assert said.code == 0 and Path(beetle.store).exists()


def test_what_stands_in_the_way_of_an_export_is_named(beetle: CommandLine) -> None:
    note = made(beetle, "A note")
    place = Path(f"chunks/{note[6:13]}/{note}.json")
    blocked = {
        "a folder": (place, "a folder stands there, and a file is to"),
        "a file": (place.parent, "it is no folder"),
    }
    for name, (obstacle, reason) in blocked.items():
        found = beetle.folder / name / obstacle
        found.parent.mkdir(parents=True)
        _ = found.mkdir() if name == "a folder" else found.write_text("")
        key, message, hint = beetle.here("chunk", "export-tree", str(beetle.folder / name)).error
        assert key == "invalid_request" and f"{found}: {reason}" in message and "move away" in hint
