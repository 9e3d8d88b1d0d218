"""Mirrors of jsonl chains: files beside the store that follow it, and show nothing that it hides."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from beetle import MemoryRuntime
from beetle.contracts.codec import to_plain
from beetle.contracts.errors import BeetleError
from beetle.runtime.host import mirrored_lines
from tests.chains.test_kept import edit
from tests.store.conftest import assert_clean, bytes_of, open_runtime

KEY = "my/chain é"
CANARY = "xylocarp-quagmire"
WAIT_S = 30.0


def settled(memory: MemoryRuntime) -> MemoryRuntime:
    """Every mirror has caught up."""
    assert memory._opened.dispatcher.shared.mirrors.wait(WAIT_S)  # type: ignore[union-attr]
    return memory


def begin(memory: MemoryRuntime, key: str = KEY) -> None:
    memory.bootstrap_chain(chain_key=key, content="what it is for", storage_adapter="jsonl")


def append(memory: MemoryRuntime, content: str, key: str = KEY, **more: Any) -> Any:
    return memory.append_thought(chain_key=key, thought_type="Plan", content=content, agent_id="ada", **more).thought


def place(memory: MemoryRuntime, key: str = KEY) -> Path:
    return Path(memory.chain_head(chain_key=key).storage_location or "")


def lines(memory: MemoryRuntime, key: str = KEY) -> list[dict[str, Any]]:
    return [json.loads(line) for line in place(settled(memory), key).read_bytes().splitlines()]


def fits(memory: MemoryRuntime, key: str = KEY) -> bool:
    """Whether the mirror says what an export says."""
    told = json.loads(json.dumps(to_plain(memory.export_chain(chain_key=key, limit=200).thoughts)))
    registry = ("agent_name", "agent_owner", "ref")
    return lines(memory, key) == [{name: each[name] for name in each if name not in registry} for each in told]


def test_a_mirror_follows_its_chain_and_no_other_has_one(tmp_path: Path) -> None:
    path = tmp_path / "b.db"
    with open_runtime(path) as memory:
        begin(memory)
        append(memory, "two\nlines", refs=[0], tags=["a"], relations=[{"kind": "supports", "index": 0}])
        append(memory, "no mirror", "plain")
        assert fits(memory)
        file = place(memory)
        assert file.parent == Path(f"{path}.chains")
        assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
        assert place(memory, "plain") == path
        assert os.listdir(file.parent) == [file.name]
        memory.branch_chain(chain_key=KEY, new_chain_key="branch", anchor_index=0)
        append(memory, "on the branch", "branch")
        assert fits(memory, "branch")
        assert len(lines(memory, "branch")) == 2
        before = file.read_bytes()
    with open_runtime(path) as memory:
        append(memory, "after a restart")
        assert fits(memory)
        assert file.read_bytes().startswith(before)
        assert_clean(memory)


@pytest.mark.parametrize("harm", ["gone", "cut", "other", "link", "longer", "nothing"])
def test_a_mirror_that_does_not_fit_is_made_anew(tmp_path: Path, harm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mirrored_lines, "AT_ONCE", 2)
    path = tmp_path / "b.db"
    with open_runtime(path) as memory:
        begin(memory)
        for number in range(6):
            append(memory, f"thought {number}")
        file = place(settled(memory))
    whole = file.read_bytes()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(b"kept")

    def damage() -> None:
        file.unlink()
        if harm == "link":
            file.symlink_to(elsewhere)
        elif harm != "gone":
            made = {"cut": whole[:-9], "other": b'{"index":0,"hash":"00"}\n', "longer": whole + whole, "nothing": b""}
            file.write_bytes(made[harm])

    damage()
    with open_runtime(path) as memory:
        if harm != "link":
            assert fits(memory)
            assert file.read_bytes() == whole
            damage()
            append(memory, "one more")
            assert fits(memory)
        else:
            settled(memory)
            (found,) = memory.verify_store().findings
            assert (found.check, found.subject) == ("chain_mirrors", file.name)
            file.unlink()
            append(memory, "one more")
            assert fits(memory)
        assert_clean(memory)
    assert elsewhere.read_bytes() == b"kept"


def test_what_is_masked_or_erased_leaves_every_mirror_that_shows_it(tmp_path: Path) -> None:
    path = tmp_path / "b.db"
    with open_runtime(path) as memory:
        begin(memory)
        for number in range(3):
            append(memory, f"{CANARY} {number}")
        memory.branch_chain(chain_key=KEY, new_chain_key="branch")
        append(memory, f"{CANARY} 4", "branch")
        settled(memory)
        assert CANARY.encode() in bytes_of(path)
        memory.thought_lifecycle(chain_key="branch", action="mask", indexes=[1], reason="r")
        for key in (KEY, "branch"):
            assert [each["content"] for each in lines(memory, key)][1] is None
        memory.thought_lifecycle(chain_key=KEY, action="unmask", indexes=[1], reason="r")
        assert fits(memory) and fits(memory, "branch")
        done = memory.thought_lifecycle(chain_key=KEY, action="erase", indexes=[1, 2], reason="r")
        assert done.erasure == "done"
        tried = memory.forget(query=CANARY, dry_run=True)
        memory.forget(query=CANARY, token=tried.token)
        # Also before the thread has written them anew.
        assert CANARY.encode() not in bytes_of(path)
        assert fits(memory) and fits(memory, "branch")
        assert CANARY.encode() not in bytes_of(path)
        assert_clean(memory)


def test_no_crash_leaves_a_mirror_that_shows_what_is_erased(tmp_path: Path) -> None:
    path = tmp_path / "b.db"
    with open_runtime(path) as memory:
        begin(memory)
        append(memory, CANARY)
        settled(memory)
        # The folder cannot be changed: the mirror cannot go, so neither does the thought.
        folder = place(memory).parent
        file = place(memory)
        file.unlink()
        file.mkdir()
        with pytest.raises(BeetleError) as refused:
            memory.thought_lifecycle(chain_key=KEY, action="erase", indexes=[1], reason="r")
        assert refused.value.key == "store_read_only"
        assert memory.get_thought(chain_key=KEY, thought_index=1).thought.content == CANARY  # type: ignore[union-attr]
        file.rmdir()
        assert os.listdir(folder) == []
        memory.thought_lifecycle(chain_key=KEY, action="erase", indexes=[1], reason="r")
        assert fits(memory)


def test_a_restored_store_has_the_mirrors_of_its_time(tmp_path: Path) -> None:
    path = tmp_path / "b.db"
    with open_runtime(path) as memory:
        begin(memory)
        append(memory, "kept")
        taken = memory.create_snapshot(label="s").snapshot.snapshot_id
        append(memory, f"{CANARY} later")
        begin(memory, "later")
        settled(memory)
        memory.restore_snapshot(snapshot_id=taken)
        assert fits(memory)
        assert len(lines(memory)) == 2
        assert os.listdir(f"{path}.chains") == [place(memory).name]
        archive = memory.export_space().archive
        append(memory, "more")
        memory.import_space(archive=archive, mode="full_restore")
        assert fits(memory)
        assert len(lines(memory)) == 2


def test_a_mirror_is_a_convenience_that_no_write_waits_for(tmp_path: Path) -> None:
    path = tmp_path / "b.db"
    Path(f"{path}.chains").write_text("no folder")
    with open_runtime(path) as memory:
        begin(memory)
        append(memory, "written all the same")
        settled(memory)
        (found,) = memory.verify_store().findings
        assert found.check == "chain_mirrors"
        Path(f"{path}.chains").unlink()
        append(memory, "again")
        assert fits(memory)
        assert_clean(memory)


def test_a_hand_made_line_is_never_read_back(tmp_path: Path) -> None:
    path = tmp_path / "b.db"
    with open_runtime(path) as memory:
        begin(memory)
        file = place(settled(memory))
    file.write_bytes(file.read_bytes().replace(b"what it is for", b"something other"))
    with open_runtime(path) as memory:
        assert memory.genesis_thought(chain_key=KEY).thought.content == "what it is for"  # type: ignore[union-attr]
        assert_clean(memory)


def test_chains_of_a_store_that_another_program_changed_do_not_stop_it(tmp_path: Path) -> None:
    path = tmp_path / "b.db"
    with open_runtime(path) as memory:
        begin(memory)
        append(memory, "two")
        settled(memory)
    edit(path, "UPDATE thought SET at = 9223372036854775807 WHERE position = 1")
    Path(f"{path}.chains").rename(tmp_path / "away")
    with open_runtime(path) as memory:
        assert len(lines(memory)) == 2
