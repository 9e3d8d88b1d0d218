"""Which folder a tree is unpacked into, and what is said of those that will not do."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.launcher.packed import Packed, assert_failed, left, said, start

NOBODY = 65534


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user may go through, unlike pytest's own; only root can make use of it here."""
    if os.geteuid() != 0:
        pytest.skip("only root may give a folder to another user")
    with tempfile.TemporaryDirectory(prefix="beetle-test-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def in_namespace(one: Packed, script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a shell script with mounts of its own, /var/cache among them; $ONE is the one file, $PWD is `folder`."""
    mounts = "mount -t tmpfs none /var/cache && "
    command = ["unshare", "--mount", "sh", "-c"]
    if shutil.which("unshare") is None or subprocess.run([*command, f"{mounts} true"], capture_output=True).returncode:
        pytest.skip("this user may not mount a file system")
    env = {"ONE": str(one.file), "HOME": str(folder / "home"), "PATH": os.environ["PATH"]}
    (folder / "home").mkdir()
    return subprocess.run([*command, mounts + script], cwd=folder, env=env, capture_output=True, text=True, timeout=60)


def test_a_home_that_may_not_execute_is_passed_over_for_the_next_place(one: Packed, tmp_path: Path) -> None:
    script = 'mount -t tmpfs -o noexec none home && "$ONE" && ls -A home && stat -c "mode %a" /var/cache/beetle'
    out = in_namespace(one, script, tmp_path).stdout
    text, _, rest = out.partition("end\n")
    assert said(text + "end").exe == f"/var/cache/beetle/{one.name}/beetle"
    assert rest == "mode 755\n"


def test_a_home_that_is_full_is_passed_over_for_the_next_place(one: Packed, tmp_path: Path) -> None:
    out = in_namespace(one, 'mount -t tmpfs -o size=1m none home && "$ONE"', tmp_path).stdout
    assert said(out).exe == f"/var/cache/beetle/{one.name}/beetle"


def test_without_any_place_each_is_named_with_its_reason(one: Packed, tmp_path: Path) -> None:
    script = 'mount -t tmpfs -o noexec none home; mount -o remount,noexec /var/cache; exec "$ONE"'
    ended = in_namespace(one, script, tmp_path)
    assert_failed(ended, 126, f"{tmp_path}/home/.cache/beetle: mounted noexec; /var/cache/beetle: mounted noexec")


def test_without_a_home_the_shared_cache_is_used_or_both_are_named(one: Packed, tmp_path: Path) -> None:
    script = 'unset HOME; "$ONE"; rm -r /var/cache/beetle; mount -o remount,noexec /var/cache; exec "$ONE"'
    ended = in_namespace(one, script, tmp_path)
    assert said(ended.stdout).exe == f"/var/cache/beetle/{one.name}/beetle"
    ended.stdout = ""
    assert_failed(ended, 126, "HOME is not set; /var/cache/beetle: mounted noexec")


def test_read_only_storage_has_the_exit_code_of_storage(one: Packed, tmp_path: Path) -> None:
    script = 'mount -t tmpfs -o ro none home; mount -o remount,ro /var/cache; exec "$ONE"'
    assert_failed(in_namespace(one, script, tmp_path), 8, "/home/.cache/beetle: Read-only file system")


def test_a_read_only_home_does_not_matter_with_beetle_cache(one: Packed, tmp_path: Path) -> None:
    out = in_namespace(one, 'mount -t tmpfs -o ro none home; BEETLE_CACHE=$PWD/cache exec "$ONE"', tmp_path).stdout
    assert said(out).exe == f"{tmp_path}/cache/{one.name}/beetle"


def test_a_tree_whose_place_became_noexec_is_run_from_another(one: Packed, tmp_path: Path) -> None:
    script = 'mount -t tmpfs none home && "$ONE" >first && mount -o remount,noexec home && "$ONE"'
    out = in_namespace(one, script, tmp_path).stdout
    assert said((tmp_path / "first").read_text()).exe == f"{tmp_path}/home/.cache/beetle/{one.name}/beetle"
    assert said(out).exe == f"/var/cache/beetle/{one.name}/beetle"


def test_a_named_place_that_may_not_execute_is_refused(one: Packed, disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,noexec", disk], check=True)
    assert_failed(start(one.file, env={"BEETLE_CACHE": str(disk / "a/b")}), 126, f"{disk}/a/b: mounted noexec")
    assert os.listdir(disk) == []


def test_a_named_place_is_made_with_all_its_folders(one: Packed, tmp_path: Path) -> None:
    place = tmp_path / "a//b/c/"
    found = said(start(one.file, env={"BEETLE_CACHE": f"{tmp_path}/a//b/c/"}).stdout)
    assert Path(found.exe) == place / one.name / "beetle"


def test_a_relative_beetle_cache_is_refused(one: Packed, tmp_path: Path) -> None:
    assert_failed(start(one.file, env={"BEETLE_CACHE": "cache"}, cwd=tmp_path), 126, "must be an absolute path")
    assert left(tmp_path) == []


def test_a_path_that_is_too_long_is_refused(one: Packed, tmp_path: Path) -> None:
    for length in (3900, 4050, 5000, 100_000):
        env = {"BEETLE_CACHE": str(tmp_path) + "/x" * ((length - len(str(tmp_path))) // 2)}
        ended = start(one.file, env=env)
        assert ended.returncode == 126 or said(ended.stdout).pid, ended


def test_a_line_break_in_a_path_does_not_make_two_lines(one: Packed, tmp_path: Path) -> None:
    file = tmp_path / "a\nbeetle: fine\x1b[2J"
    file.touch()
    assert_failed(start(one.file, env={"BEETLE_CACHE": f"{file}/x"}), 126, "a?beetle: fine?[2J/x: Not a directory")


@pytest.mark.parametrize("mode", [0o777, 0o775, 0o757])
def test_a_place_that_others_may_write_to_is_refused(one: Packed, env: dict[str, str], place: Path, mode: int) -> None:
    place.mkdir(0o755)
    place.chmod(mode)
    assert_failed(start(one.file, env=env), 126, f"others may write into it (mode {mode:o})")
    assert left(place) == []


def test_a_sticky_place_such_as_tmp_will_do(one: Packed, env: dict[str, str], place: Path) -> None:
    place.mkdir(0o755)
    place.chmod(0o1777)
    for _ in ("first", "second"):
        assert said(start(one.file, env=env).stdout).exe == str(place / one.name / "beetle")


def test_a_tree_that_others_may_write_to_is_not_run(one: Packed, env: dict[str, str], place: Path) -> None:
    start(one.file, env=env)
    (place / one.name).chmod(0o777)
    assert_failed(start(one.file, env=env), 126, f"others may write into {one.name}")


@pytest.mark.parametrize("kind", ["file", "link"])
def test_a_name_that_is_taken_by_no_folder_is_refused(one: Packed, env: dict[str, str], place: Path, kind: str) -> None:
    place.mkdir(0o755)
    if kind == "file":
        (place / one.name).write_text("mine")
    else:
        (place / one.name).symlink_to(one.tree)
    assert_failed(start(one.file, env=env), 126, one.name)
    assert left(place) == [one.name]


def test_a_place_of_another_user_is_refused_by_root(one: Packed, env: dict[str, str], place: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root may give a folder to another user")
    start(one.file, env=env)
    os.chown(place / one.name, NOBODY, NOBODY)
    assert_failed(start(one.file, env=env), 126, f"{one.name} belongs to another user (uid {NOBODY})")
    os.chown(place, NOBODY, NOBODY)
    assert_failed(start(one.file, env=env), 126, f"belongs to another user (uid {NOBODY})")


def test_a_place_of_a_third_user_is_refused_and_one_of_root_is_run(one: Packed, open_folder: Path) -> None:
    env = {"BEETLE_CACHE": str(open_folder / "cache")}
    file = Path(shutil.copy(one.file, open_folder))
    assert said(start(file, env=env).stdout).pid
    as_nobody = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
    assert said(start(file, env=env, **as_nobody).stdout).exe == f"{open_folder}/cache/{one.name}/beetle"
    os.chown(open_folder / "cache", 1, 1)
    assert_failed(start(file, env=env, **as_nobody), 126, "belongs to another user (uid 1)")


def test_a_user_unpacks_into_a_cache_of_the_users_own(one: Packed, open_folder: Path) -> None:
    home = open_folder / "home"
    home.mkdir()
    os.chown(home, NOBODY, NOBODY)
    file = Path(shutil.copy(one.file, open_folder))
    ended = start(file, env={"HOME": str(home)}, user=NOBODY, group=NOBODY, extra_groups=[])
    assert said(ended.stdout).exe == f"{home}/.cache/beetle/{one.name}/beetle"
    assert (home / ".cache/beetle").stat().st_mode & 0o7777 == 0o700


def test_a_user_without_any_place_to_write_to_is_told_which_were_tried(one: Packed, open_folder: Path) -> None:
    file = Path(shutil.copy(one.file, open_folder))
    ended = start(file, env={"HOME": "/nowhere"}, user=NOBODY, group=NOBODY, extra_groups=[])
    assert_failed(ended, 126, "/nowhere/.cache/beetle: ")
    assert "/var/cache/beetle: Permission denied" in ended.stderr


def test_another_users_lock_in_a_shared_place_stops_nobody(one: Packed, open_folder: Path) -> None:
    shared = open_folder / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    (shared / ".lock").touch()
    os.chown(shared / ".lock", NOBODY, NOBODY)
    with open(shared / ".lock") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        ended = start(one.file, env={"BEETLE_CACHE": str(shared)})
    assert said(ended.stdout).exe == f"{shared}/{one.name}/beetle"


def test_a_file_that_its_user_may_not_read_says_so(one: Packed, open_folder: Path) -> None:
    file = Path(shutil.copy(one.file, open_folder))
    file.chmod(0o711)
    ended = start(file, env={"HOME": "/nowhere"}, user=NOBODY, group=NOBODY, extra_groups=[])
    assert_failed(ended, 1, "cannot read its own file")
