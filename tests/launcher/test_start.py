"""A start as the program sees it, and where its tree comes from."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tests.launcher.packed import Packed, assert_failed, assert_same, left, said, start


def test_the_program_has_the_launchers_process_id_and_arguments(one: Packed, env: dict[str, str], place: Path) -> None:
    words = ["memory", "", "two words", "käfer", "--x=\n"]
    for _ in ("first", "second"):
        process = subprocess.Popen([one.file, *words[:4]], env=env, stdout=subprocess.PIPE, text=True)
        out, _ = process.communicate(timeout=60)
        assert said(out).pid == process.pid
        assert said(out).arguments == [str(one.file), *words[:4]]
        assert said(out).exe == str(place / one.name / "beetle")


def test_the_program_has_the_environment_umask_and_signals_of_the_start(one: Packed, place: Path) -> None:
    def prepare() -> None:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)

    env = {"BEETLE_CACHE": str(place), "LANG": "C", "EMPTY": ""}
    for _ in ("first", "second"):
        found = said(start(one.file, env=env, umask=0o37, preexec_fn=prepare, restore_signals=False).stdout)
        assert found.environment == env
        assert found.umask == 0o37
        assert signal.SIGHUP in found.signals
        assert not {signal.SIGINT, signal.SIGTERM, signal.SIGQUIT, signal.SIGXFSZ} & set(found.signals)


def test_the_program_has_its_streams_and_the_lock_of_its_tree_and_no_other_descriptor(
    one: Packed, env: dict[str, str], place: Path
) -> None:
    for _ in ("first", "second"):
        found = said(start(one.file, env=env, stdin=subprocess.DEVNULL).stdout).descriptors
        assert [found.pop(stream, None) for stream in range(3)].count(None) == 0
        assert list(found.values()) == [str(place / one.name / "in-use")]


def test_descriptors_that_were_open_stay_and_streams_that_were_closed_stay_closed(
    one: Packed, env: dict[str, str], place: Path
) -> None:
    reader, writer = os.pipe()
    try:
        for _ in ("first", "second"):
            found = said(start(one.file, env=env, pass_fds=(reader,), preexec_fn=lambda: os.close(0)).stdout)
            held = {target: number for number, target in found.descriptors.items()}
            assert 0 not in found.descriptors and reader in found.descriptors
            assert held[str(place / one.name / "in-use")] > 2
    finally:
        os.close(reader)
        os.close(writer)


def test_the_tree_is_locked_while_the_program_runs_and_free_afterwards(
    one: Packed, env: dict[str, str], place: Path
) -> None:
    process = subprocess.Popen(
        [one.file, "hang"], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    )
    assert process.stdin is not None and process.stdout is not None
    while process.stdout.readline() != "end\n":
        assert process.poll() is None
    with open(place / one.name / "in-use") as file:
        with pytest.raises(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        process.communicate("", timeout=60)
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_a_tree_without_its_lock_file_runs_all_the_same(one: Packed, env: dict[str, str], place: Path) -> None:
    start(one.file, env=env)
    (place / one.name / "in-use").unlink()
    assert sorted(said(start(one.file, env=env, stdin=subprocess.DEVNULL).stdout).descriptors) == [0, 1, 2]


def test_the_second_start_does_not_read_the_payload(one: Packed, env: dict[str, str], tmp_path: Path) -> None:
    start(one.file, env=env)
    spoilt = tmp_path / "spoilt"
    data = bytearray(one.file.read_bytes())
    middle = (one.file.stat().st_size + (data.index(b"beetle-one-file\0", -192))) // 2 - 500
    data[middle : middle + 100] = bytes(100)
    spoilt.write_bytes(data)
    spoilt.chmod(0o755)
    assert said(start(spoilt, env=env).stdout).arguments == [str(spoilt)]
    assert_failed(start(spoilt, env={"BEETLE_CACHE": str(tmp_path / "other")}), 9, "damaged file")


def test_the_cache_of_the_user_is_made_for_the_user_alone_whatever_the_umask(one: Packed, tmp_path: Path) -> None:
    for umask in (0, 0o77):
        home = tmp_path / f"home{umask}"
        home.mkdir()
        found = said(start(one.file, env={"HOME": str(home)}, umask=umask).stdout)
        cache = home / ".cache/beetle"
        assert found.exe == str(cache / one.name / "beetle")
        assert [each.stat().st_mode & 0o7777 for each in (cache.parent, cache)] == [0o700, 0o700]
        assert (cache / ".lock").stat().st_mode & 0o7777 == 0o600
        assert_same(cache / one.name, one.tree)


def test_xdg_cache_home_is_used_when_it_is_absolute(one: Packed, tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path / "home"), "XDG_CACHE_HOME": str(tmp_path / "xdg")}
    (tmp_path / "home").mkdir()
    assert said(start(one.file, env=env).stdout).exe == str(tmp_path / "xdg/beetle" / one.name / "beetle")
    relative = said(start(one.file, env={**env, "XDG_CACHE_HOME": "xdg"}, cwd=tmp_path).stdout)
    assert relative.exe == str(tmp_path / "home/.cache/beetle" / one.name / "beetle")


def test_an_empty_beetle_cache_counts_as_not_set(one: Packed, tmp_path: Path) -> None:
    found = said(start(one.file, env={"HOME": str(tmp_path), "BEETLE_CACHE": ""}).stdout)
    assert found.exe == str(tmp_path / ".cache/beetle" / one.name / "beetle")


def test_an_installed_tree_is_run_and_nothing_is_unpacked(one: Packed, tmp_path: Path, place: Path) -> None:
    versions = tmp_path / ".local/lib/beetle/versions"
    shutil.copytree(one.tree, versions / one.name, symlinks=True)
    for each in (versions, versions / one.name):
        each.chmod(0o755)
    assert said(start(one.file, env={"HOME": str(tmp_path)}).stdout).exe == str(versions / one.name / "beetle")
    assert not (tmp_path / ".cache").exists()
    found = said(start(one.file, env={"HOME": str(tmp_path), "BEETLE_CACHE": str(place)}).stdout)
    assert found.exe == str(place / one.name / "beetle")


def test_an_installed_tree_that_others_may_write_to_is_not_run(one: Packed, tmp_path: Path) -> None:
    tree = tmp_path / ".local/lib/beetle/versions" / one.name
    shutil.copytree(one.tree, tree, symlinks=True)
    tree.parent.chmod(0o755)
    tree.chmod(0o775)
    found = said(start(one.file, env={"HOME": str(tmp_path)}).stdout)
    assert found.exe == str(tmp_path / ".cache/beetle" / one.name / "beetle")


def test_a_tree_whose_program_is_gone_says_so(one: Packed, env: dict[str, str], place: Path) -> None:
    start(one.file, env=env)
    (place / one.name / "beetle").unlink()
    assert_failed(start(one.file, env=env), 126, "cannot execute")
    assert left(place) == [one.name]


def test_a_tree_that_nobody_else_may_touch_is_not_hidden_by_a_stuck_remover(
    one: Packed, env: dict[str, str], place: Path
) -> None:
    """Whoever locks the tree alone renames it away at once; one that does not must not stop the product for ever."""
    start(one.file, env=env)
    with open(place / one.name / "in-use") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert said(start(one.file, env=env).stdout).exe == str(place / one.name / "beetle")
