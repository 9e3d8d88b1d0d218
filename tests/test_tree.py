"""A built tree: what its MANIFEST says, what has changed since, and that a running program holds it."""

from __future__ import annotations

import fcntl
import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from beetle import __main__ as program
from beetle.contracts.errors import STATUS
from beetle.deploy.frozen import TreeBeingRemoved, hold_tree, tree_of
from beetle.deploy.manifest import BrokenManifest, Entry, read_manifest, verify_tree
from tests.trees import make_tree, write_manifest

ROOT = Path(__file__).parents[1]
FILES = {
    "beetle": b"#!program",
    "_internal/lib.so.1": b"\x7fcode",
    "_internal/beetle/a b.sql": b"",
    "_internal-x": b"x",
}
LINKS = {"_internal/lib.so": "lib.so.1"}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return make_tree(tmp_path / "tree", FILES, LINKS)


def test_a_manifest_tells_name_files_and_links(tree: Path) -> None:
    found = read_manifest(str(tree / "MANIFEST"))
    assert found.name.startswith("0.1.0-") and len(found.name) == len("0.1.0-") + 12
    entries = {each.path: each for each in found.entries}
    assert set(entries) == {*FILES, *LINKS}
    assert entries["_internal/lib.so"] == Entry("_internal/lib.so", target="lib.so.1")
    assert (entries["beetle"].mode, entries["beetle"].size) == (0o755, 9)
    assert entries["_internal/beetle/a b.sql"].mode == 0o644


def test_what_the_build_writes_is_read_as_it_was_meant(tree: Path) -> None:
    spec = importlib.util.spec_from_file_location("packaging_tree", ROOT / "packaging/tree.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    name = module.write_manifest(tree, "1.2.3")
    assert read_manifest(str(tree / "MANIFEST")).name == name
    assert verify_tree(str(tree)) == []


def test_a_tree_as_it_was_built_is_found_right(tree: Path) -> None:
    assert verify_tree(str(tree)) == []


def flip(tree: Path) -> None:
    file = tree / "_internal/lib.so.1"
    data = bytearray(file.read_bytes())
    data[1] ^= 1
    file.write_bytes(data)


def lead_elsewhere(tree: Path) -> None:
    (tree / "_internal/lib.so").unlink()
    (tree / "_internal/lib.so").symlink_to("/tmp/lib.so.1")


def turn_link_into_file(tree: Path) -> None:
    (tree / "_internal/lib.so").unlink()
    (tree / "_internal/lib.so").write_bytes(b"\x7fcode")


def turn_file_into_link(tree: Path) -> None:
    (tree / "_internal-x").rename(tree / "MANIFEST.x")
    (tree / "_internal-x").symlink_to("MANIFEST.x")


CHANGES: list[tuple[str, Callable[[Path], object], list[str]]] = [
    ("a flipped bit", flip, ["_internal/lib.so.1 has other content"]),
    ("a longer file", lambda t: (t / "beetle").write_bytes(b"#!program+"), ["beetle has 10 bytes, not 9"]),
    ("an extra file", lambda t: (t / "_internal/sitecustomize.py").touch(),
     ["_internal/sitecustomize.py does not belong there"]),
    ("an extra link", lambda t: (t / "lib.so").symlink_to("x"), ["lib.so does not belong there"]),
    ("an extra folder", lambda t: (t / "more/deep").mkdir(parents=True), ["more/deep does not belong there"]),
    ("a missing file", lambda t: (t / "_internal/beetle/a b.sql").unlink(),
     ["_internal/beetle/a b.sql is missing", "_internal/beetle does not belong there"]),
    ("a wrong mode", lambda t: (t / "beetle").chmod(0o4755), ["beetle has the mode 4755, not 755"]),
    ("a file that anyone may write", lambda t: (t / "_internal-x").chmod(0o666),
     ["_internal-x has the mode 666, not 644"]),
    ("another target", lead_elsewhere, ["_internal/lib.so leads to /tmp/lib.so.1, not to lib.so.1"]),
    ("a file for a link", turn_link_into_file, ["_internal/lib.so is not a symbolic link"]),
    ("a link for a file", turn_file_into_link, ["_internal-x is not a file", "MANIFEST.x does not belong there"]),
    ("no lock file", lambda t: (t / "in-use").unlink(), ["in-use is missing"]),
]  # fmt: skip


@pytest.mark.parametrize(("change", "told"), [each[1:] for each in CHANGES], ids=[each[0] for each in CHANGES])
def test_what_has_changed_is_told(tree: Path, change: Callable[[Path], object], told: list[str]) -> None:
    change(tree)
    assert verify_tree(str(tree)) == told


HASH = "0" * 64
BROKEN = {
    "nothing": "",
    "another kind of file": "hello\n",
    "another format": "beetle-tree 2 0.1.0-e3b0c44298fc\n",
    "a name that is a path": "beetle-tree 1 ../0.1.0-e3b0c44298fc\n",
    "a hidden name": "beetle-tree 1 .-e3b0c44298fc\n",
    "a name that is too long": f"beetle-tree 1 {'1' * 60}-e3b0c44298fc\n",
    "a name of other lines": f"beetle-tree 1 0.1.0-e3b0c44298fc\n{HASH} 644 0 a\n",
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
def test_what_is_no_manifest_is_refused(tree: Path, text: str) -> None:
    (tree / "MANIFEST").write_text(text)
    with pytest.raises(BrokenManifest):
        verify_tree(str(tree))


LINES = {
    "a path upwards": [f"{HASH} 644 0 ../a"],
    "a path upwards in between": [f"{HASH} 644 0 a/../../b"],
    "a path from the root": [f"{HASH} 644 0 /etc/passwd"],
    "no path": [f"{HASH} 644 0 "],
    "another mode": [f"{HASH} 4755 0 a"],
    "no size": [f"{HASH} 644 -1 a"],
    "a short hash": ["abc 644 0 a"],
    "a link without a target": ["link - - a"],
    "a link upwards": ["link - - ../a -> b"],
    "too few words": ["a"],
    "out of order": [f"{HASH} 644 0 b", f"{HASH} 644 0 a"],
    "one path twice": [f"{HASH} 644 0 a", f"{HASH} 644 0 a"],
}


@pytest.mark.parametrize("lines", LINES.values(), ids=LINES)
def test_a_line_that_cannot_be_meant_is_refused(tree: Path, lines: list[str]) -> None:
    write_manifest(tree, lines)
    with pytest.raises(BrokenManifest):
        read_manifest(str(tree / "MANIFEST"))


def test_a_manifest_that_is_not_utf_8_or_ends_in_the_middle_of_a_line_is_refused(tree: Path) -> None:
    (tree / "MANIFEST").write_bytes(b"beetle-tree 1 0.1.0-\xff\n")
    with pytest.raises(BrokenManifest):
        read_manifest(str(tree / "MANIFEST"))
    name = write_manifest(tree, [f"{HASH} 644 0 a"])
    (tree / "MANIFEST").write_text(f"beetle-tree 1 {name}\n{HASH} 644 0 a")
    with pytest.raises(BrokenManifest):
        read_manifest(str(tree / "MANIFEST"))


@pytest.fixture
def remover(tree: Path) -> Iterator[int]:
    """Whoever wants to remove the tree: its descriptor of `in-use`."""
    descriptor = os.open(tree / "in-use", os.O_RDWR)
    yield descriptor
    os.close(descriptor)


def test_a_tree_that_is_held_cannot_be_locked_by_who_removes_it(tree: Path, remover: int) -> None:
    (tree.parent / "bin").mkdir()
    (tree.parent / "bin/beetle").symlink_to(tree / "beetle")
    first, second = hold_tree(str(tree / "beetle")), hold_tree(str(tree.parent / "bin/beetle"))
    assert first is not None and second is not None
    for held in (first, second):
        assert not os.get_inheritable(held)
        with pytest.raises(BlockingIOError):
            fcntl.flock(remover, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(held)
    fcntl.flock(remover, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_a_tree_that_is_being_removed_is_not_run_from(tree: Path, remover: int) -> None:
    fcntl.flock(remover, fcntl.LOCK_EX)
    with pytest.raises(TreeBeingRemoved):
        hold_tree(str(tree / "beetle"))


def test_a_tree_that_was_removed_between_opening_and_locking_is_not_run_from(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = fcntl.flock

    def removed_just_before(descriptor: int, how: int) -> None:
        (tree / "in-use").unlink()
        taken(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", removed_just_before)
    with pytest.raises(TreeBeingRemoved):
        hold_tree(str(tree / "beetle"))


def test_where_there_is_no_tree_nothing_is_held(tmp_path: Path) -> None:
    assert hold_tree(str(tmp_path / "beetle")) is None
    assert hold_tree(sys.executable) is None
    assert tree_of(str(tmp_path / "beetle")) == str(tmp_path.resolve())


def test_a_filesystem_without_locks_does_not_keep_the_program_from_running(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none_here(_descriptor: int, _how: int) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", none_here)
    assert hold_tree(str(tree / "beetle")) is None


def test_a_frozen_program_holds_its_tree_as_long_as_it_runs_and_its_children_do_not(tree: Path, remover: int) -> None:
    code = (
        "import subprocess, sys\n"
        f"sys.frozen, sys.executable = True, {str(tree / 'beetle')!r}\n"
        "from beetle.__main__ import main\n"
        "main(['--version'])\n"
        "child = subprocess.Popen(['sleep', '60'], close_fds=False, stdout=subprocess.DEVNULL)\n"
        "print(child.pid, flush=True)\n"
        "sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline().startswith("beetle ")
        child = int(running.stdout.readline())
        try:
            with pytest.raises(BlockingIOError):
                fcntl.flock(remover, fcntl.LOCK_EX | fcntl.LOCK_NB)
            running.communicate(timeout=60)
            fcntl.flock(remover, fcntl.LOCK_EX | fcntl.LOCK_NB)
        finally:
            os.kill(child, 9)


def test_a_frozen_program_whose_tree_is_being_removed_says_so_and_ends(
    tree: Path, remover: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fcntl.flock(remover, fcntl.LOCK_EX)
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    monkeypatch.setattr(sys, "executable", str(tree / "beetle"))
    assert program.main(["--version"]) == STATUS["services_unavailable"].exit_code
    assert capsys.readouterr().err == "beetle: services_unavailable: this beetle is being removed\nstart it again\n"
