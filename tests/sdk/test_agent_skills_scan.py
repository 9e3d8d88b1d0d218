"""Scanning a mounted folder: nothing hostile in it stops the scan, leads out of it, or is opened that should not be."""

from __future__ import annotations

import gc
import hashlib
import os
import shutil
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beetle.contracts.errors import NoDescriptor
from beetle.runtime.host import skill_folder
from beetle.runtime.host.skill_folder import Mount, mark, scan
from tests.descriptors import descriptors_left
from tests.sdk.skill_folders import measured, names, scanned, told, write_skill

NOBODY = 65534


@pytest.fixture
def in_public() -> Iterator[Path]:
    """A mount that anybody may enter: pytest's own folders are closed to others."""
    with tempfile.TemporaryDirectory(prefix="beetle-") as made:
        os.chmod(made, 0o755)
        write_skill(Path(made, "fine"), "fine")
        yield Path(made)


@contextmanager
def as_nobody() -> Iterator[None]:
    """Root may read everything: what it may not read is looked at as somebody else."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def mount(tmp_path: Path) -> Path:
    made = tmp_path / "skills"
    made.mkdir()
    write_skill(made / "fine", "fine", "A skill that is as it should be.")
    return made


def test_skills_come_by_name_and_a_folder_without_one_is_passed_over(mount: Path) -> None:
    write_skill(mount / "z", "abc", "The first.")
    (mount / "notes").mkdir()
    (mount / "README").write_text("no skill")
    found = scanned(mount)
    assert [(each.name, each.folder) for each in found.skills] == [("abc", "z"), ("fine", "fine")]
    assert found.findings == ()


def test_a_skill_may_stand_in_the_mount_itself(mount: Path) -> None:
    (mount / "SKILL.md").write_text("---\nname: whole\ndescription: The folder is one skill.\n---\n")
    assert names(scanned(mount)) == ["fine", "whole"]


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("no_front_matter", b"# Just a page"),
        ("front_matter_invalid", b"---\nname: *a\n---\n"),
        ("front_matter_invalid", b"---\nx: " + b"[" * 5000 + b"\n---\n"),
        ("name_invalid", b"---\nname: 1\ndescription: d\n---\n"),
        ("description_invalid", b"---\nname: n\n---\n"),
        ("not_utf8", b"---\nname: \xff\xfe\ndescription: d\n---\n"),
        ("no_front_matter", b"\x00" * 100_000),
        ("no_front_matter", b""),
    ],
)
def test_a_broken_skill_is_a_finding_and_the_rest_is_scanned(mount: Path, kind: str, text: bytes) -> None:
    (mount / "broken").mkdir()
    (mount / "broken/SKILL.md").write_bytes(text)
    found = scanned(mount)
    assert names(found) == ["fine"]
    assert told(found) == [(kind, "broken/SKILL.md")]


def test_of_two_skills_of_one_name_the_first_folder_s_counts(mount: Path) -> None:
    write_skill(mount / "a", "twice", "The first.")
    write_skill(mount / "b", "twice", "The second.")
    found = scanned(mount)
    assert [each.description for each in found.skills if each.name == "twice"] == ["The first."]
    assert told(found) == [("duplicate_name", "b")]


def test_no_link_is_followed(mount: Path, tmp_path: Path) -> None:
    outside = write_skill(tmp_path / "outside", "outside", "Not in the mount.")
    (mount / "folder-link").symlink_to(outside)
    (mount / "file-link").mkdir()
    (mount / "file-link/SKILL.md").symlink_to(outside / "SKILL.md")
    (mount / "loop").symlink_to(mount)
    (mount / "SKILL.md").symlink_to(outside / "SKILL.md")
    found = scanned(mount)
    assert names(found) == ["fine"]
    assert told(found) == [
        ("symlink", "SKILL.md"), ("symlink", "file-link/SKILL.md"), ("symlink", "folder-link"), ("symlink", "loop"),
    ]  # fmt: skip


def test_a_pipe_a_socket_and_a_folder_in_a_skill_file_s_place_are_not_opened(mount: Path, tmp_path: Path) -> None:
    for name in ("pipe", "socket", "folder"):
        (mount / name).mkdir()
    os.mkfifo(mount / "pipe/SKILL.md")
    (mount / "folder/SKILL.md").mkdir()
    with socket.socket(socket.AF_UNIX) as bound:
        here = os.getcwd()
        os.chdir(mount / "socket")  # a socket's path has little room
        try:
            bound.bind("SKILL.md")
        finally:
            os.chdir(here)
        found = scanned(mount)
    assert names(found) == ["fine"]
    assert told(found) == [("special_file", f"{name}/SKILL.md") for name in ("folder", "pipe", "socket")]


def test_a_pipe_that_takes_a_file_s_place_meanwhile_is_not_waited_for(
    mount: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was a file when it was looked at is a pipe when it is opened: nobody ever writes to it."""
    looked = skill_folder._refuse_other
    calls: list[int] = []

    def swap(mode: int) -> None:
        looked(mode)
        if not calls:
            (mount / "fine/SKILL.md").unlink()
            os.mkfifo(mount / "fine/SKILL.md")
        calls.append(mode)

    monkeypatch.setattr(skill_folder, "_refuse_other", swap)
    found = scanned(mount)
    assert told(found) == [("special_file", "fine/SKILL.md")]


def test_a_folder_that_vanishes_while_it_is_scanned_is_a_finding(mount: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_skill(mount / "gone", "gone", "Not for long.")
    listed = skill_folder._entries

    def then_remove(at: int) -> object:
        found = listed(at)
        shutil.rmtree(mount / "gone", ignore_errors=True)
        return found

    monkeypatch.setattr(skill_folder, "_entries", then_remove)
    found = scanned(mount)
    assert names(found) == ["fine"]
    assert told(found) == [("vanished", "gone/SKILL.md")]


def test_what_may_not_be_read_is_a_finding(in_public: Path) -> None:
    write_skill(in_public / "closed", "closed").chmod(0)
    write_skill(in_public / "secret", "secret")
    (in_public / "secret/SKILL.md").chmod(0)
    with as_nobody():
        found = scanned(in_public)
        in_vain = scanned(in_public / "closed")
    assert names(found) == ["fine"]
    assert told(found) == [("unreadable", "closed/SKILL.md"), ("unreadable", "secret/SKILL.md")]
    assert told(in_vain) == [("mount_unreadable", "")]
    (in_public / "closed").chmod(0o700)


@pytest.mark.parametrize("kind", ["mount_missing", "mount_not_a_folder"])
def test_a_mount_that_is_no_folder_is_a_finding(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "there"
    if kind == "mount_not_a_folder":
        path.write_text("a file")
    assert told(scanned(path)) == [(kind, "")]
    assert mark(Mount("skills", str(path)))[0][0] == kind


def test_more_skills_than_allowed_are_left_out_and_told(mount: Path) -> None:
    for number in range(5):
        write_skill(mount / f"s{number}", f"s{number}")
    found = scanned(mount, most=3)
    assert names(found) == ["fine", "s0", "s1"] and found.clipped
    assert told(found) == [("too_many_skills", "s2")]
    none = scanned(mount, most=0)
    assert none.skills == () and none.clipped


def test_a_folder_with_too_many_entries_is_told_and_read_as_far(mount: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(skill_folder, "FOLDER_ENTRIES", 10)
    for number in range(12):
        write_skill(mount / f"s{number:02}", f"s{number:02}")
    found = scanned(mount)
    assert ("too_many_files", "") in told(found)
    assert len(found.skills) == 10


def test_names_that_are_no_text_are_shown_as_far_as_they_can_be(mount: Path) -> None:
    broken = os.fsencode(mount) + b"/\xff\xfe"
    os.mkdir(broken)
    Path(os.fsdecode(broken), "SKILL.md").write_text("nothing")
    ((kind, path),) = told(scanned(mount))
    assert kind == "no_front_matter" and os.fsencode(path) == b"\xff\xfe/SKILL.md"


# The files of a skill.


def expected_fingerprint(folder: Path) -> str:
    """As docs/agent-skills-and-tools.md says it."""
    digest = hashlib.sha256()
    files = sorted(os.fsencode(each.relative_to(folder)) for each in folder.rglob("*") if each.is_file())
    for path in files:
        content = (folder / os.fsdecode(path)).read_bytes()
        digest.update(path + b"\0" + hashlib.sha256(content).hexdigest().encode() + b"\n")
    return digest.hexdigest()


def test_the_fingerprint_is_over_every_file_and_its_path(mount: Path) -> None:
    write_skill(mount / "fine", "fine", scripts__run="echo", scripts__deep__er="x", zeta="z", Alpha="a")
    found = measured(mount)
    assert (found.resources, found.findings) == (4, ())
    assert found.fingerprint == expected_fingerprint(mount / "fine")
    assert found.read == sum(each.stat().st_size for each in (mount / "fine").rglob("*") if each.is_file())


@pytest.mark.parametrize("change", ["content", "name", "new", "gone", "swap"])
def test_any_change_of_a_file_changes_the_fingerprint(mount: Path, change: str) -> None:
    folder = write_skill(mount / "fine", "fine", a="one", b="two")
    before = measured(mount).fingerprint
    match change:
        case "content":
            (folder / "a").write_text("One")
        case "name":
            (folder / "a").rename(folder / "c")
        case "new":
            (folder / "d").touch()
        case "gone":
            (folder / "a").unlink()
        case _:
            (folder / "a").write_text("two")
            (folder / "b").write_text("one")
    assert before != measured(mount).fingerprint == expected_fingerprint(folder)


def test_links_and_pipes_among_the_files_are_findings_and_no_part_of_the_skill(mount: Path, tmp_path: Path) -> None:
    folder = write_skill(mount / "fine", "fine", a="one")
    before = measured(mount)
    (tmp_path / "secret").write_text("secret")
    (folder / "link").symlink_to(tmp_path / "secret")
    (folder / "up").symlink_to("..")
    os.mkfifo(folder / "pipe")
    found = measured(mount)
    assert (found.resources, found.fingerprint) == (before.resources, before.fingerprint)
    assert told(found) == [("special_file", "fine/pipe"), ("symlink", "fine/link"), ("symlink", "fine/up")]


def test_what_is_deeper_than_allowed_leaves_no_fingerprint(mount: Path) -> None:
    write_skill(mount / "fine", "fine", a__b__c="deep")
    assert measured(mount, depth=2).fingerprint is not None
    found = measured(mount, depth=1)
    assert (found.fingerprint, told(found)) == (None, [("too_deep", "fine/a/b")])


def test_more_bytes_than_allowed_are_not_read(mount: Path) -> None:
    folder = write_skill(mount / "fine", "fine")
    with (folder / "huge").open("wb") as file:
        file.truncate(1 << 40)
    found = measured(mount)
    assert (found.fingerprint, found.resources, found.read) == (None, 1, 0)
    assert told(found) == [("too_large", "fine")]


def test_a_file_that_grows_while_it_is_read_does_not_pass_the_bound(
    mount: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_skill(mount / "fine", "fine", a="x")
    read = skill_folder._read

    def growing(file: int, most: int) -> bytes:
        with (folder / "a").open("ab") as out:
            out.write(b"y" * 100_000)
        return read(file, most)

    monkeypatch.setattr(skill_folder, "_read", growing)
    found = measured(mount, room=1 << 18)
    assert found.fingerprint is None and found.read <= 1 << 18
    assert told(found) == [("too_large", "fine/a")]


def test_more_files_than_allowed_leave_no_fingerprint(mount: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(skill_folder, "SKILL_ENTRIES", 8)
    write_skill(mount / "fine", "fine", **{f"d{n}__f": "x" for n in range(6)})
    found = measured(mount)
    assert (found.fingerprint, told(found)) == (None, [("too_many_files", "fine")])


def test_a_resource_that_may_not_be_read_leaves_no_fingerprint(in_public: Path) -> None:
    folder = write_skill(in_public / "fine", "fine", a="one", b="two")
    (folder / "a").chmod(0)
    with as_nobody():
        found = measured(in_public)
    assert (found.fingerprint, found.resources, told(found)) == (None, 2, [("unreadable", "fine/a")])


def test_a_resource_that_vanishes_leaves_no_fingerprint(mount: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_skill(mount / "fine", "fine", a="one")
    hashed = skill_folder._hash

    def then_remove(root: int, parts: tuple[str, ...], room: int) -> tuple[str, int]:
        (folder / "a").unlink(missing_ok=True)
        return hashed(root, parts, room)

    monkeypatch.setattr(skill_folder, "_hash", then_remove)
    found = measured(mount)
    assert (found.fingerprint, told(found)) == (None, [("vanished", "fine/a")])


def test_a_skill_in_the_mount_itself_leaves_the_others_folders_out(mount: Path) -> None:
    (mount / "SKILL.md").write_text("---\nname: whole\ndescription: d\n---\n")
    (mount / "tools").mkdir()
    (mount / "tools/run").write_text("x")
    found = scanned(mount)
    whole = next(each for each in found.skills if each.name == "whole")
    one = skill_folder.measure(Mount("skills", str(mount)), whole, ("", "fine"), 4, 1 << 20)
    assert (one.resources, one.findings) == (1, ())


def test_scanning_and_measuring_change_nothing(mount: Path) -> None:
    write_skill(mount / "fine", "fine", a__b="x")

    def state() -> list[tuple[str, int, int]]:
        return sorted((str(each), each.stat().st_mtime_ns, each.stat().st_size) for each in mount.rglob("*"))

    before = state()
    measured(mount)
    assert state() == before


def test_no_descriptor_is_left_open(mount: Path, tmp_path: Path) -> None:
    write_skill(mount / "bad", "bad", a__b__c__d="x")
    (mount / "bad/link").symlink_to(tmp_path)
    (mount / "worse").mkdir()
    os.mkfifo(mount / "worse/SKILL.md")
    gc.collect()  # what other tests left is not counted
    before = sorted(os.listdir("/proc/self/fd"))
    for most in (0, 1, 10):
        found = scan(Mount("skills", str(mount)), most)
        for skill in found.skills:
            skill_folder.measure(Mount("skills", str(mount)), skill, (), 1, 10)
    assert sorted(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("step", ["summary", "new", "gone", "link"])
def test_the_mark_changes_when_a_summary_may_have(mount: Path, step: str) -> None:
    place = Mount("skills", str(mount))
    before = mark(place)
    assert mark(place) == before
    match step:
        case "summary":
            write_skill(mount / "fine", "fine", "Another description, of another length.")
        case "new":
            write_skill(mount / "more", "more")
        case "gone":
            shutil.rmtree(mount / "fine")
        case _:
            (mount / "link").symlink_to("fine")
    assert mark(place) != before


# Any tree at all.

NAMES = ("a", "b", "SKILL.md", "\udcff", "..x", " ")
node = st.recursive(
    st.sampled_from(["good", "bad", "empty", "up", "loop", "out", "pipe"]),
    lambda inner: st.dictionaries(st.sampled_from(NAMES), inner, max_size=4),
    max_leaves=20,
)


def build(at: Path, tree: object, outside: Path) -> None:
    match tree:
        case dict():
            at.mkdir()
            for name, inner in cast("dict[str, object]", tree).items():
                build(at / name, inner, outside)
        case "pipe":
            os.mkfifo(at)
        case "up" | "loop" | "out":
            at.symlink_to({"up": "..", "loop": at.name, "out": outside}[str(tree)])
        case _:
            at.write_text(
                {"good": "---\nname: good\ndescription: d\n---\n", "bad": "---\nname: [\n---\n"}.get(str(tree), "")
            )


@settings(deadline=None, max_examples=150)
@given(st.dictionaries(st.sampled_from(NAMES), node, max_size=5), st.integers(0, 3), st.integers(0, 3))
def test_any_tree_is_scanned_and_nothing_outside_it_is_seen(tree: dict[str, object], most: int, depth: int) -> None:
    with tempfile.TemporaryDirectory(prefix="beetle-") as made:
        outside = write_skill(Path(made, "outside"), "outside", secret="secret")
        build(Path(made, "mount"), tree, outside)
        place = Mount("mount", f"{made}/mount")
        assert mark(place) == mark(place)
        found = scan(place, most)
        assert scan(place, most) == found and len(found.skills) <= most
        assert {each.name for each in found.skills} <= {"good"}
        for skill in found.skills:
            one = skill_folder.measure(place, skill, (), depth, 1 << 20)
            assert one.fingerprint is not None or one.findings
            assert one.read <= 1 << 20


@pytest.mark.parametrize("left", [0, 1, 2])
def test_without_a_descriptor_nothing_is_found_to_be_unreadable(tmp_path: Path, left: int) -> None:
    write_skill(tmp_path / "fine", "fine")
    scanned(tmp_path)
    with descriptors_left(left), pytest.raises(NoDescriptor):
        scanned(tmp_path)
    assert names(scanned(tmp_path)) == ["fine"]
