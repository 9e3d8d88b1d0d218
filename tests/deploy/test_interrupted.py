"""kill -9 before every single change that install, rollback and uninstall make."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from beetle.deploy.apply import roll_back
from beetle.deploy.install_tree import manifest_of
from beetle.deploy.prefix import CURRENT
from beetle.deploy.remove import uninstall
from tests.deploy.here import ROOT, System

Kill = Callable[[int], bool]


@contextlib.contextmanager
def killer(action: str, root: Path, tree: Path) -> Iterator[Kill]:
    """What runs the action until its n-th change; False when it came to its end before."""
    command = [sys.executable, "-m", "tests.deploy.work", action, str(root), str(tree)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:

        def kill(number: int) -> bool:
            assert process.stdin is not None and process.stdout is not None
            process.stdin.write(f"{number}\n")
            process.stdin.flush()
            answer = process.stdout.readline()
            assert answer in ("killed\n", "0\n"), answer
            return answer == "killed\n"

        yield kill
        assert process.stdin is not None
        process.stdin.close()


def each_state(system: System, kill: Kill) -> Iterator[int]:
    """Set the system back, run the action on it until its n-th change, and yield; for every n."""
    start = system.root.with_name("start")
    if system.root.exists():
        shutil.copytree(system.root, start, symlinks=True)
    number = 1
    while True:
        shutil.rmtree(system.root, ignore_errors=True)
        if start.exists():
            shutil.copytree(start, system.root, symlinks=True)
        if not kill(number):
            break
        yield number
        number += 1
    assert number > 7, "the kills did not reach the action"


def name_of(tree: Path) -> str:
    return manifest_of(tree).name


def test_a_first_install_can_be_killed_anywhere_and_is_then_complete_or_not_there(
    system: System, trees: list[Path]
) -> None:
    with killer("install", system.root, trees[0]) as kill:
        for number in each_state(system, kill):
            assert system.whole(), number
            assert system.current in (None, name_of(trees[0]))
            system.install(trees[0])
            assert (system.current, system.previous, system.whole()) == (name_of(trees[0]), None, True), number
            assert_clean(system, number)


def test_a_first_install_can_be_killed_anywhere_and_uninstalled(system: System, trees: list[Path]) -> None:
    with killer("install", system.root, trees[0]) as kill:
        for number in each_state(system, kill):
            system.run(uninstall)
            left = [path for path in system.root.rglob("*") if not path.is_dir()]
            assert left in ([], [system.path("/etc/beetle/beetle.toml")]), number
            assert not list(system.root.glob("opt/*")) and not list(system.root.glob("opt/.*")), number


def test_a_draft_that_install_has_not_written_stays(system: System, trees: list[Path], tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    folder = system.path("/etc/beetle")
    folder.mkdir(parents=True)
    (folder / ".beetle.toml.new").symlink_to(victim)
    (folder / ".beetle.toml.1.new").hardlink_to(victim)
    (folder / ".beetle.toml.2.new").mkdir()
    system.install(trees[0])
    half = folder / ".beetle.toml.new-not"
    half.touch()
    mine = folder / ".beetle.toml.backup.new"
    mine.touch()
    cut = folder / ".beetle.toml.3.new"
    cut.write_text("# Written by `bee")
    empty = folder / ".beetle.toml.4.new"
    empty.touch()
    system.run(uninstall)
    assert victim.read_text() == "precious"
    assert sorted(each.name for each in folder.iterdir()) == [
        ".beetle.toml.1.new", ".beetle.toml.2.new", ".beetle.toml.backup.new", ".beetle.toml.new",
        ".beetle.toml.new-not", "beetle.toml",
    ]  # fmt: skip


def test_an_upgrade_can_be_killed_anywhere_and_the_old_or_the_new_version_works(
    system: System, trees: list[Path]
) -> None:
    names = [name_of(tree) for tree in trees]
    system.install(trees[0])
    system.install(trees[1])
    with killer("install", system.root, trees[2]) as kill:
        for number in each_state(system, kill):
            assert system.current in names[1:] and system.whole(), number
            system.install(trees[2])
            assert (system.current, system.previous) == (names[2], names[1]), number
            assert system.prefix.versions() == names[1:], number
            assert system.whole(), number
            assert_clean(system, number)


def test_a_killed_upgrade_can_be_gone_back_from(system: System, trees: list[Path]) -> None:
    names = [name_of(tree) for tree in trees]
    system.install(trees[0])
    with killer("install", system.root, trees[1]) as kill:
        for number in each_state(system, kill):
            begun = system.current == names[1] or (system.prefix.folder / ".current.new").is_symlink()
            if begun and not (system.prefix.folder / ".previous.new").is_symlink():
                system.run(roll_back)
                assert (system.current, system.previous, system.whole()) == (names[0], names[1], True), number


def test_a_rollback_can_be_killed_anywhere_and_loses_neither_version(system: System, trees: list[Path]) -> None:
    names = [name_of(tree) for tree in trees]
    system.install(trees[0])
    system.install(trees[1])
    with killer("roll_back", system.root, trees[1]) as kill:
        for number in each_state(system, kill):
            assert system.current in names and system.whole(), number
            with system.prefix.held(lambda: None):
                system.prefix.finish_switch()
                system.prefix.end_rollback()
            assert {system.current, system.previous} == set(names[:2]), number
            assert_clean(system, number)


def test_a_killed_rollback_is_ended_by_the_next_one_and_not_undone(system: System, trees: list[Path]) -> None:
    names = [name_of(tree) for tree in trees]
    system.install(trees[0])
    system.install(trees[1])
    with killer("roll_back", system.root, trees[1]) as kill:
        for number in each_state(system, kill):
            if system.current == names[0]:
                continue
            told = system.run(roll_back, dry_run=True)
            assert (told.version, told.previous, system.current) == (names[0], names[1], names[1]), number
            done = system.run(roll_back)
            assert (done.version, done.previous) == (names[0], names[1]), number
            assert (system.current, system.previous, system.whole()) == (names[0], names[1], True), number
            assert_clean(system, number)
            system.run(roll_back)
            assert (system.current, system.previous) == (names[1], names[0]), number


def test_what_an_interrupted_switch_left_is_cleared_in_an_order_that_can_be_killed_too(
    system: System, trees: list[Path]
) -> None:
    names = [name_of(tree) for tree in trees]
    system.install(trees[0])
    system.install(trees[1])
    (system.prefix.folder / ".previous.new").symlink_to(f"versions/{names[1]}")
    (system.prefix.folder / ".current.new").symlink_to(f"versions/{names[0]}")
    with killer("install", system.root, trees[2]) as kill:
        for number in each_state(system, kill):
            system.install(trees[2])
            assert (system.current, system.previous) == (names[2], names[1]), number
            assert_clean(system, number)


def test_an_uninstall_can_be_killed_anywhere_and_the_next_one_ends_it(system: System, trees: list[Path]) -> None:
    system.install(trees[0])
    system.install(trees[1])
    with killer("uninstall", system.root, trees[1]) as kill:
        for number in each_state(system, kill):
            assert system.prefix.named(CURRENT) is None or system.whole(), number
            system.run(uninstall)
            left = [path for path in system.root.rglob("*") if not path.is_dir()]
            assert left == [system.path("/etc/beetle/beetle.toml")], number
            # What is named as the folder, and beside it as what was left of that.
            assert not any(system.prefix.folder.parent.iterdir()), number


def assert_clean(system: System, number: int) -> None:
    names = (".new", ".back")
    parts = [path for path in system.root.rglob("*") if path.name.endswith(names) or path.name.startswith(".new-")]
    assert parts == [], number
