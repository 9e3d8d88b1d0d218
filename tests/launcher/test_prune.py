"""What a start that unpacked removes, and what it leaves alone."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from pathlib import Path

from tests.launcher.packed import Maker, Packed, left, said, start
from tests.launcher.traced import Traced


def unpacked(place: Path) -> dict[str, int]:
    """The trees that are there, and which folder each is: another one when it was unpacked again."""
    return {name: (place / name).stat().st_ino for name in left(place)}


def test_two_versions_that_are_used_in_turn_keep_each_other_s_tree(
    maker: Maker, one: Packed, env: dict[str, str], place: Path
) -> None:
    new = maker.pack("new", version="1.0.1")
    for file in (one, new):
        assert said(start(file.file, env=env).stdout).pid
    before = unpacked(place)
    assert sorted(before) == sorted([one.name, new.name])
    for file in (one, new, one):
        assert said(start(file.file, env=env).stdout).exe == str(place / file.name / "beetle")
        assert unpacked(place) == before


def test_of_several_unused_trees_the_one_that_was_unpacked_last_stays(
    maker: Maker, one: Packed, env: dict[str, str], place: Path
) -> None:
    versions = [one, *(maker.pack(f"new-{number}", version=f"1.0.{number}") for number in range(1, 5))]
    for index, file in enumerate(versions):
        assert said(start(file.file, env=env).stdout).pid
        assert left(place) == sorted(each.name for each in versions[max(0, index - 1) : index + 1])
    # An older version is unpacked again, and is then the one that was unpacked last.
    for file in (one, versions[3]):
        assert said(start(file.file, env=env).stdout).pid
    assert left(place) == sorted([one.name, versions[3].name])


def test_a_tree_in_use_stays_until_a_later_unpacking(
    maker: Maker, one: Packed, env: dict[str, str], place: Path
) -> None:
    new = [maker.pack(f"new-{number}", version=f"1.0.{number}") for number in range(1, 5)]
    process = subprocess.Popen(
        [one.file, "hang"], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    )
    assert process.stdout is not None
    while process.stdout.readline() != "end\n":
        assert process.poll() is None
    for file in new[:3]:
        assert said(start(file.file, env=env).stdout).pid
    assert left(place) == sorted([one.name, new[1].name, new[2].name])
    process.communicate("", timeout=60)
    assert said(start(new[3].file, env=env).stdout).pid
    assert left(place) == sorted([new[2].name, new[3].name])


def test_what_is_no_tree_of_ours_stays(maker: Maker, one: Packed, env: dict[str, str], place: Path) -> None:
    outside = maker.folder / "outside"
    outside.mkdir()
    (outside / "in-use").touch()
    (outside / "precious").touch()
    place.mkdir(0o755)
    foreign = ["0.9.0-0123456789ab.old", "x.0.0-0123456789ab", "0.9.0-0123456789AB", ".unpack-x", ".prune-me", "data"]
    for name in foreign:
        (place / name).mkdir()
        (place / name / "in-use").touch()
    (place / "0.9.1-0123456789ab").write_text("a file")
    (place / ".unpack-1").write_text("a file")
    (place / "0.9.2-0123456789ab").symlink_to(outside)
    (place / ".unpack-2").symlink_to(outside)
    (place / "0.9.3-0123456789ab").mkdir()  # no in-use: nobody can say that it is not used
    before = left(place)
    assert said(start(one.file, env=env).stdout).pid
    assert left(place) == sorted([*before, one.name])
    assert sorted(os.listdir(outside)) == ["in-use", "precious"]


def test_left_overs_go_and_links_in_them_are_not_followed(
    maker: Maker, one: Packed, env: dict[str, str], place: Path
) -> None:
    outside = maker.folder / "outside"
    outside.mkdir()
    (outside / "precious").touch()
    kept = "0.9.9-0123456789ab"
    for name in (".unpack-7", ".unpack-7-1", ".prune-0.9.0-0123456789ab", "0.9.8-0123456789ab", kept):
        (place / name / "_internal/deep").mkdir(parents=True)
        (place / name / "_internal/deep/link").symlink_to(outside)
        (place / name / "link").symlink_to(outside / "precious")
        (place / name / "in-use").touch()
    os.utime(place / "0.9.8-0123456789ab/in-use", (1, 1))
    place.chmod(0o755)
    assert said(start(one.file, env=env).stdout).pid
    assert left(place) == sorted([kept, one.name])
    assert os.listdir(outside) == ["precious"]


def remove_as_a_pruner(tree: Path) -> None:
    """What whoever removes a tree does: not while it is in use."""
    if not tree.exists():
        return
    with open(tree / "in-use") as use:
        try:
            fcntl.flock(use, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        shutil.rmtree(tree.rename(tree.with_name(f".prune-{tree.name}")))


def test_a_tree_that_is_removed_at_any_moment_of_a_start_is_unpacked_again(
    one: Packed, env: dict[str, str], place: Path
) -> None:
    start(one.file, env=env)
    with Traced(one.file, env) as counted:
        last = sum(1 for _ in counted)
    removed = 0
    for point in range(1, last + 1):
        start(one.file, env=env)
        with Traced(one.file, env) as starting:
            assert starting.run_to(point)
            remove_as_a_pruner(place / one.name)
            removed += not left(place)
            assert said(starting.end().stdout).exe == str(place / one.name / "beetle")
    assert 0 < removed < last
