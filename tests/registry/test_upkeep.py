"""Uploaded skills in verification, archives, forgetting, snapshots and counts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from beetle import MemoryRuntime
from beetle.contracts.common import MemoryIdentity
from tests.registry.conftest import BACKUP, skill

CHANGES = {
    "registry_version_body": ("packed", "packed = x'00'"),
    "registry_version": ("content_hash", "content_hash = zeroblob(32)"),
    "registry_skill_text": ("warnings", "warnings = '[]'"),
    "registry_skill": ("status", "status = 'active'"),
}


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "store.db")


@pytest.fixture
def memory(path: str) -> Iterator[MemoryRuntime]:
    with open_at(path) as made:
        yield made


def open_at(path: str, owner: str = "owner-default") -> MemoryRuntime:
    return MemoryRuntime.open(path, profile="dev-full", backend="sqlite", identity=MemoryIdentity(owner_id=owner))


def upload(memory: MemoryRuntime, content: str, **more: Any) -> Any:
    return memory.upload_skill(agent_id="ann", content=content, **more).skill


@pytest.mark.parametrize("table", CHANGES)
def test_verify_names_a_version_that_another_program_changed(path: str, table: str) -> None:
    with open_at(path) as memory:
        for each in (BACKUP, BACKUP + "more\n"):
            upload(memory, each)
        memory.revoke_skill(skill_id="nightly-backup")
        assert memory.verify_store().clean
    connection = apsw.Connection(path)
    connection.execute(f"UPDATE {table} SET {CHANGES[table][1]}")
    connection.close()
    with open_at(path) as memory:
        found = memory.verify_store()
        assert {"seals"} <= {each.check for each in found.findings}
        if table in ("registry_version_body", "registry_version"):
            assert "skill_registry" in {each.check for each in found.findings}
            with pytest.raises(Exception, match="integrity_violation"):
                memory.read_uploaded_skill(skill_id="nightly-backup")
        assert memory.list_uploaded_skills().total == 1, "what is damaged is one damaged skill"
        memory.search_uploaded_skills(text="no such word")


def test_a_bomb_in_the_file_is_a_damaged_version(path: str) -> None:
    import zlib

    with open_at(path) as memory:
        upload(memory, BACKUP)
    connection = apsw.Connection(path)
    connection.execute("UPDATE registry_version SET bytes = 1 << 40")
    connection.execute("UPDATE registry_version_body SET packed = ?", (zlib.compress(bytes(6_000_000)),))
    connection.close()
    with open_at(path) as memory:
        assert "skill_registry" in {each.check for each in memory.verify_store().findings}


def test_an_archive_holds_every_version_and_is_taken_in_again(path: str, tmp_path: Path) -> None:
    contents = [BACKUP, BACKUP.replace("\n", "\r\n"), BACKUP + "more\n"]
    with open_at(path) as memory:
        upload(memory, skill("Other"))
        ids = [upload(memory, each).latest_version_id for each in contents]
        memory.revoke_skill(skill_id="other", reason="it harms")
        taken = memory.export_space()
        before = memory.list_uploaded_skills().skills
    assert taken.counts["uploaded_skills"] == 2
    with open_at(str(tmp_path / "other.db"), "somebody") as other:
        done = other.import_space(archive=taken.archive, mode="bootstrap_import")
        assert done.counts["uploaded_skills"] == 2
        assert other.list_uploaded_skills().skills == before
        for version_id, content in zip(ids, contents, strict=True):
            assert other.read_uploaded_skill(skill_id="nightly-backup", version_id=version_id).content == content
        assert other.verify_store().clean
        upload(other, skill("Third"))
        other.import_space(archive=taken.archive, mode="full_restore", other_store=True)
        assert other.list_uploaded_skills().total == 2
        counts = other.inspect().counts
        assert (counts.uploaded_skills, counts.uploaded_skill_versions) == (2, 4)


def test_forgetting_words_takes_the_skills_that_hold_them_whole(memory: MemoryRuntime, path: str) -> None:
    upload(memory, skill("Visit", "the house of Zanzibarius"))
    upload(memory, skill("Visit", "his house"))
    upload(memory, skill("Other"))
    snapshot = memory.create_snapshot().snapshot.snapshot_id
    shown = memory.forget(query="zanzibarius", dry_run=True)
    assert shown.counts == {"uploaded_skills": 1}
    memory.forget(query="zanzibarius", token=shown.token)
    assert [each.skill_id for each in memory.list_uploaded_skills().skills] == ["other"]
    assert memory.verify_store().clean
    assert memory.restore_snapshot(snapshot_id=snapshot, dry_run=True).erased == {"uploaded_skills": 1}
    memory.restore_snapshot(snapshot_id=snapshot)
    assert [each.skill_id for each in memory.list_uploaded_skills().skills] == ["other"]
    shown = memory.forget(whole_space=True, dry_run=True)
    memory.forget(whole_space=True, token=shown.token)
    assert memory.list_uploaded_skills().total == 0


def test_the_event_log_tells_of_it_by_ids_alone(memory: MemoryRuntime) -> None:
    upload(memory, skill("Visit", "the house of Zanzibarius", tags="[secretplace]"), chain_key="work")
    memory.deprecate_skill(skill_id="visit", reason="Zanzibarius moved")
    rows = memory.read_event_log(topics=["skill"]).rows
    assert [each.event for each in rows] == ["version_uploaded", "registry_deprecated"]
    told = str([each.to_dict() if hasattr(each, "to_dict") else each for each in rows])
    assert "visit" in told and "work" in told
    assert "Zanzibarius" not in told and "secretplace" not in told
