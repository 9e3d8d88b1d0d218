"""Trees, links and configuration: what install, rollback and uninstall leave on the disk."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from beetle.contracts.errors import IntegrityViolation
from beetle.deploy.apply import config_text, roll_back
from beetle.deploy.frozen import IN_USE
from beetle.deploy.install_tree import manifest_of
from beetle.deploy.layout import Settings
from beetle.deploy.prefix import NoPreviousVersion
from beetle.deploy.remove import uninstall
from beetle.deploy.steps import Damaged, InUse, NoRoom, NotOurs, NotWritable
from beetle.runtime.host.config import read_config
from tests.deploy.here import WANTED, System, make_tree, packaging_tree, running_from


def name_of(tree: Path) -> str:
    return manifest_of(tree).name


def test_a_fresh_system_gets_a_complete_tree_links_a_configuration_and_a_unit(
    system: System, trees: list[Path]
) -> None:
    report = system.install(trees[0])
    name = name_of(trees[0])
    assert (system.current, system.previous, system.whole()) == (name, None, True)
    assert os.readlink(system.prefix.folder / "current") == f"versions/{name}"
    assert os.readlink(system.path("/usr/local/bin/beetle")) == "/opt/beetle/current/beetle"
    assert (system.prefix.tree(name) / IN_USE).read_bytes() == b""
    assert system.path("/etc/beetle/beetle.toml").exists() and system.path(system.layout.unit or "").exists()
    assert report.version == name and report.changed and report.previous is None
    done = subprocess.run([system.prefix.folder / "current/beetle"], capture_output=True, text=True, check=True)
    assert done.stdout == "beetle 0.0.0\n"


def test_modes_do_not_depend_on_the_umask_or_on_how_private_the_source_is(system: System, trees: list[Path]) -> None:
    for folder, _, files in os.walk(trees[0]):
        for name in files:
            (Path(folder) / name).chmod(0o600)
    before = os.umask(0o077)
    try:
        system.install(trees[0])
    finally:
        os.umask(before)
    modes = {stat.S_IMODE((Path(folder)).stat().st_mode) for folder, _, _ in os.walk(system.prefix.folder)}
    assert modes == {0o755}
    assert system.whole()
    for path in ("/etc/beetle/beetle.toml", "/etc/systemd/system/beetle.service"):
        assert stat.S_IMODE(system.path(path).stat().st_mode) == 0o644


def test_the_copy_shares_no_file_with_its_source(system: System, trees: list[Path]) -> None:
    system.install(trees[0])
    for entry in manifest_of(trees[0]).entries:
        installed = system.prefix.tree(name_of(trees[0])) / entry.path
        assert not os.path.samefile(trees[0] / entry.path, installed)


def test_a_second_install_finds_everything_done_and_touches_nothing(system: System, trees: list[Path]) -> None:
    system.install(trees[0])
    before = system.files()
    report = system.install(trees[0])
    assert not report.changed
    assert {each.outcome for each in system.steps} <= {"already", "note"}
    assert system.files() == before


def test_a_dry_run_tells_every_step_and_makes_nothing(system: System, trees: list[Path]) -> None:
    report = system.install(trees[0], dry_run=True)
    assert report.changed and report.dry_run
    told = {each.step for each in system.steps if each.outcome == "would"}
    assert told == {"tree", "switch", "link", "user", "config", "unit"}
    assert not system.root.exists()
    system.install(trees[0])
    before = system.files()
    report = system.install(trees[1], dry_run=True)
    assert (report.previous, system.current) == (name_of(trees[0]), name_of(trees[0]))
    system.run(uninstall, dry_run=True)
    assert "would" in {each.outcome for each in system.steps}
    assert system.files() == before


def test_an_upgrade_keeps_one_version_to_go_back_to_and_prunes_older_ones(system: System, trees: list[Path]) -> None:
    names = [name_of(tree) for tree in trees]
    for tree in trees:
        system.install(tree)
    assert (system.current, system.previous) == (names[2], names[1])
    assert system.prefix.versions() == names[1:]
    assert system.whole()


def test_a_rollback_changes_current_and_previous_and_back(system: System, trees: list[Path]) -> None:
    names = [name_of(tree) for tree in trees]
    system.install(trees[0])
    system.install(trees[1])
    found = system.run(roll_back)
    assert (found.version, found.previous) == (names[0], names[1])
    assert (system.current, system.previous) == (names[0], names[1])
    system.run(roll_back, dry_run=True)
    assert (system.current, system.previous) == (names[0], names[1])
    system.run(roll_back)
    assert (system.current, system.previous) == (names[1], names[0])


def test_without_a_version_before_there_is_nothing_to_go_back_to(system: System, trees: list[Path]) -> None:
    with pytest.raises(NoPreviousVersion):
        system.run(roll_back)
    assert not system.root.exists()
    system.install(trees[0])
    with pytest.raises(NoPreviousVersion) as caught:
        system.run(roll_back)
    assert caught.value.exit_code == 3


def test_a_version_that_was_damaged_is_not_gone_back_to(system: System, trees: list[Path]) -> None:
    system.install(trees[0])
    system.install(trees[1])
    (system.prefix.tree(name_of(trees[0])) / "beetle").write_text("#!/bin/sh\n")
    with pytest.raises(Damaged):
        system.run(roll_back)
    assert system.current == name_of(trees[1])


def test_a_damaged_installed_tree_is_mended_file_by_file(system: System, trees: list[Path]) -> None:
    system.install(trees[0])
    tree = system.prefix.tree(name_of(trees[0]))
    held = (tree / IN_USE).stat().st_ino
    (tree / "beetle").write_text("#!/bin/sh\nexit 1\n")
    (tree / "_internal/empty").chmod(0o600)
    (tree / "_internal/lib64").unlink()
    (tree / "_internal/two words.txt").unlink()
    report = system.install(trees[0])
    assert report.changed and system.outcomes()["tree"] == "done"
    assert "4 of 6 files" in next(each.text for each in system.steps if each.step == "tree")
    assert system.whole()
    # Who holds the lock on it holds it still.
    assert (tree / IN_USE).stat().st_ino == held


@pytest.mark.parametrize("part", ["beetle", "_internal/lib64", "_internal/two words.txt", "MANIFEST"])
def test_a_source_that_is_not_what_it_says_is_refused_before_anything_is_made(
    system: System, trees: list[Path], part: str
) -> None:
    file = trees[0] / part
    if file.is_symlink():
        file.unlink()
        file.symlink_to("elsewhere")
    else:
        file.write_bytes(file.read_bytes() + b"x")
    with pytest.raises(IntegrityViolation) as caught:
        system.install(trees[0])
    assert caught.value.exit_code == 9
    assert not system.root.exists()


@pytest.mark.parametrize("missing", ["beetle", "MANIFEST"])
def test_a_source_without_its_program_or_its_manifest_is_refused(
    system: System, trees: list[Path], missing: str
) -> None:
    (trees[0] / missing).unlink()
    if missing == "beetle":
        packaging_tree().write_manifest(trees[0], "0.0.0")
    with pytest.raises(Damaged):
        system.install(trees[0])
    assert not system.root.exists()


def test_a_manifest_cannot_lead_root_out_of_the_tree(system: System, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    for number, target in enumerate((str(victim), "../../../victim", "../..")):
        tree = tmp_path / f"hostile-{number}"
        tree.mkdir()
        (tree / "beetle").write_text("#!/bin/sh\n")
        (tree / "door").symlink_to(target)
        packaging_tree().write_manifest(tree, "1.0.0")
        with pytest.raises(Damaged):
            system.install(tree)
    tree = tmp_path / "hostile-door"
    (tree / "room").mkdir(parents=True)
    (tree / "beetle").write_text("#!/bin/sh\n")
    (tree / "room/file").write_text("through the door")
    (tree / "wall").symlink_to("room")
    manifest = packaging_tree()
    lines = [*manifest.lines_of(tree)]
    lines = sorted([*lines, lines[1].replace("room/file", "wall/file")], key=lambda each: each.split(" ", 3)[3])
    body = "".join(f"{line}\n" for line in lines)
    digest = manifest.hashlib.sha256(body.encode()).hexdigest()[:12]
    (tree / "MANIFEST").write_text(f"beetle-tree 1 1.0.0-{digest}\n{body}")
    with pytest.raises(Damaged, match="leads out"):
        system.install(tree)
    assert not system.root.exists() and not any(victim.iterdir())


def test_a_link_in_the_path_that_is_not_ours_is_left_and_nothing_is_made(system: System, trees: list[Path]) -> None:
    link = system.path("/usr/local/bin/beetle")
    link.parent.mkdir(parents=True)
    for make in (lambda: link.write_text("mine"), lambda: link.symlink_to("/usr/bin/beetle")):
        link.unlink(missing_ok=True)
        make()
        before = system.files()
        with pytest.raises(NotOurs) as caught:
            system.install(trees[0])
        assert "--bin" in caught.value.hint
        assert system.files() == before


def test_a_folder_of_somebody_else_s_is_no_prefix(system: System, trees: list[Path]) -> None:
    system.prefix.folder.mkdir(parents=True)
    (system.prefix.folder / "something").touch()
    before = system.files()
    with pytest.raises(NotOurs):
        system.install(trees[0])
    assert system.files() == before
    shutil.rmtree(system.prefix.folder)
    system.prefix.folder.touch()
    with pytest.raises(NotOurs):
        system.install(trees[0])


def test_a_unit_that_is_not_ours_is_left(system: System, trees: list[Path]) -> None:
    unit = system.path(system.layout.unit or "")
    unit.parent.mkdir(parents=True)
    unit.write_text("[Service]\nExecStart=/bin/true\n")
    with pytest.raises(NotOurs):
        system.install(trees[0])
    assert not system.prefix.folder.exists()
    system.run(uninstall)
    assert unit.exists()


def test_something_else_called_current_is_not_replaced(system: System, trees: list[Path]) -> None:
    system.install(trees[0])
    (system.prefix.folder / "current").unlink()
    (system.prefix.folder / "current").mkdir()
    with pytest.raises(NotOurs):
        system.install(trees[1])


def test_a_configuration_that_is_there_is_never_changed(system: System, trees: list[Path]) -> None:
    file = system.path("/etc/beetle/beetle.toml")
    file.parent.mkdir(parents=True)
    file.write_text("# mine\n")
    file.chmod(0o640)
    before = file.stat()
    system.install(trees[0], WANTED._replace(configured=True))
    after = file.stat()
    assert (before.st_ino, before.st_mtime_ns, before.st_mode) == (after.st_ino, after.st_mtime_ns, after.st_mode)
    assert not [each for each in system.steps if "cannot read" in each.text]
    file.chmod(0o600)
    system.install(trees[0], WANTED._replace(configured=True))
    assert [each.step for each in system.steps if "cannot read" in each.text] == ["config"]


def test_a_new_configuration_is_read_back_as_it_was_meant(tmp_path: Path) -> None:
    file = tmp_path / "beetle.toml"
    odd = '/srv/a "b" \\ c ü/beetle.db'
    given = (("store", odd), ("socket", "/run/robot/b.sock"))
    file.write_text(config_text(WANTED._replace(given=given, why=("one", "two")), "beetle"))
    daemon = read_config(file, {}, 0).daemon
    assert (daemon.profile, daemon.group, daemon.store, daemon.socket) == (
        "compact", "beetle", odd, "/run/robot/b.sock",
    )  # fmt: skip
    file.write_text(config_text(WANTED, None))
    daemon = read_config(file, {}, 0).daemon
    assert (daemon.profile, daemon.group, daemon.store, daemon.socket) == ("compact", None, None, None)


def test_uninstall_takes_away_what_install_made_and_leaves_configuration_and_store(
    system: System, trees: list[Path]
) -> None:
    system.install(trees[0])
    system.install(trees[1])
    store = system.path("/var/lib/beetle/beetle.db")
    store.parent.mkdir(parents=True)
    store.write_text("memory")
    enabled = system.path("/etc/systemd/system/multi-user.target.wants/beetle.service")
    enabled.parent.mkdir()
    enabled.symlink_to("/etc/systemd/system/beetle.service")
    found = system.run(uninstall)
    assert found.changed and found.left == ()
    files = [path for path in system.root.rglob("*") if not path.is_dir()]
    assert sorted(files) == sorted([store, system.path("/etc/beetle/beetle.toml")])
    assert not system.prefix.folder.exists()
    assert not system.run(uninstall).changed


def test_a_prefix_that_is_a_link_to_a_folder_elsewhere_is_emptied_and_stays(system: System, trees: list[Path]) -> None:
    elsewhere = system.path("/srv/beetle")
    elsewhere.mkdir(parents=True)
    system.prefix.folder.parent.mkdir(parents=True)
    system.prefix.folder.symlink_to("../srv/beetle")
    for _ in range(2):
        system.install(trees[0])
        system.run(uninstall)
        assert system.prefix.folder.is_symlink() and list(elsewhere.iterdir()) == []


def test_uninstall_leaves_what_it_did_not_make(system: System, trees: list[Path]) -> None:
    system.install(trees[0])
    mine = system.prefix.folder / "notes.txt"
    mine.write_text("mine")
    strange = system.prefix.versions_folder / "strange"
    strange.mkdir()
    link = system.path("/usr/local/bin/beetle")
    link.unlink()
    link.write_text("mine")
    found = system.run(uninstall)
    assert found.left == (str(mine), str(strange))
    assert mine.exists() and strange.exists() and link.exists()
    assert system.prefix.versions() == []
    link.unlink()
    system.install(trees[0])
    assert system.current == name_of(trees[0])


def test_a_version_that_something_runs_from_is_not_pruned_until_it_ends(system: System, trees: list[Path]) -> None:
    names = [name_of(tree) for tree in trees]
    system.install(trees[0])
    system.install(trees[1])
    with running_from(system.prefix.tree(names[0])):
        system.install(trees[2])
        assert system.prefix.versions() == names
        assert system.outcomes()["prune"] == "left"
    report = system.install(trees[2])
    assert system.prefix.versions() == names[1:] and report.changed


@pytest.mark.parametrize("number", [0, 1], ids=["previous", "current"])
def test_uninstall_is_refused_whole_while_something_runs_from_a_version(
    system: System, trees: list[Path], number: int
) -> None:
    system.install(trees[0])
    system.install(trees[1])
    with running_from(system.prefix.tree(name_of(trees[number]))):
        before = system.files()
        with pytest.raises(InUse) as caught:
            system.run(uninstall)
        assert caught.value.exit_code == 4 and "beetle stop" in caught.value.hint
        assert system.files() == before
    system.run(uninstall)
    assert not system.prefix.folder.exists()


def test_a_version_whose_manifest_is_gone_is_in_use_all_the_same_and_goes_when_it_is_not(
    system: System, trees: list[Path]
) -> None:
    system.install(trees[0])
    tree = system.prefix.tree(name_of(trees[0]))
    (tree / "MANIFEST").unlink()
    with running_from(tree):
        before = system.files()
        with pytest.raises(InUse):
            system.run(uninstall)
        assert system.files() == before
    (tree / "beetle.db").write_text("memory")
    assert system.run(uninstall).left == (str(tree / "beetle.db"),)
    assert [path for path in tree.rglob("*")] == [tree / "beetle.db"]


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: os.symlink("/dev/null", path)], ids=["pipe", "link"])
@pytest.mark.parametrize("name", ["MANIFEST", "MANIFEST.sig", IN_USE])
def test_what_has_the_name_of_a_tree_s_own_file_and_is_none_is_replaced_and_removed(
    system: System, trees: list[Path], name: str, make: Callable[[Path], None]
) -> None:
    (trees[0] / "MANIFEST.sig").write_bytes(bytes(64))
    system.install(trees[0])
    system.install(trees[1])
    file = system.prefix.tree(name_of(trees[0])) / name

    def put_it_there() -> None:
        file.unlink()
        make(file)

    put_it_there()
    if name == "MANIFEST":
        with pytest.raises(IntegrityViolation, match="not a file"):
            system.run(roll_back)
    system.install(trees[0])
    assert file.is_file() and not file.is_symlink() and system.whole()
    put_it_there()
    found = system.run(uninstall)
    assert found.left == () and not system.prefix.folder.exists()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A tmpfs of 1 MiB."""
    if os.getuid() != 0 or shutil.which("mount") is None:
        pytest.skip("only root can mount a small tmpfs")
    folder = tmp_path / "small"
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)], capture_output=True).returncode:
        pytest.skip("this container may not mount a tmpfs")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_full_disk_leaves_the_old_version_and_nothing_half_made(small_disk: Path, tmp_path: Path) -> None:
    system = System(small_disk)
    old, new = tmp_path / "old", tmp_path / "new"
    make_tree(old, "0.1.0", 300_000)
    make_tree(new, "0.2.0", 900_000)
    system.install(old)
    before = system.files()
    with pytest.raises(NoRoom) as caught:
        system.install(new)
    assert (caught.value.key, caught.value.exit_code) == ("storage_full", 8)
    assert system.current == name_of(old) and system.whole()
    assert system.files().keys() == before.keys()


@pytest.mark.parametrize("closed", ["/opt", "/opt/beetle/versions", "/usr/local/bin", "/etc"])
def test_who_may_not_write_is_told_so(closed: str) -> None:
    with tempfile.TemporaryDirectory(prefix="bi-") as made:
        folder = Path(made)
        folder.chmod(0o755)
        system = System(folder / "system")
        for number in (1, 2):
            make_tree(folder / f"tree-{number}", f"0.{number}.0")
        system.install(folder / "tree-1")
        # What is to be written again, or anew.
        system.path("/usr/local/bin/beetle").unlink()
        shutil.rmtree(system.path("/etc"))
        system.path("/etc").mkdir()
        if closed == "/opt":
            shutil.rmtree(system.path("/opt/beetle"))
        for path in system.root.rglob("*"):
            if os.getuid() == 0:
                os.chown(path, 65534, 65534, follow_symlinks=False)
        system.path(closed).chmod(0o555)
        try:
            with unprivileged(), pytest.raises(NotWritable) as caught:
                system.install(folder / "tree-2")
        finally:
            system.path(closed).chmod(0o755)
        assert (caught.value.key, caught.value.exit_code) == ("store_read_only", 8)
        assert "--prefix" in caught.value.hint and closed in caught.value.message
        assert not [path for path in system.root.rglob("*") if ".new" in path.name]
        assert system.whole()


@contextlib.contextmanager
def unprivileged() -> Iterator[None]:
    """As nobody: for the filesystem, root's rights go with the effective uid."""
    if os.getuid() != 0:
        yield
        return
    os.setegid(65534)
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


def test_a_store_elsewhere_gets_a_folder_that_is_the_users_alone(system: System, trees: list[Path]) -> None:
    settings = Settings("/data/memory/beetle.db", "/run/beetle/beetle.sock")
    system.install(trees[0], WANTED._replace(settings=settings))
    assert stat.S_IMODE(system.path("/data/memory").stat().st_mode) == 0o700
    system.install(trees[0], WANTED._replace(settings=settings))
    assert "store" not in system.outcomes()


def test_two_installs_at_once_do_not_mix(system: System, trees: list[Path]) -> None:
    command = [sys.executable, "-m", "tests.deploy.work"]
    both = [
        subprocess.Popen([*command, "install", str(system.root), str(tree)], stdin=subprocess.PIPE)
        for tree in trees[:2]
        for _ in range(2)
    ]
    for each in both:
        assert each.stdin is not None
        each.stdin.close()
    assert [each.wait(60) for each in both] == [0] * 4
    assert system.whole()
    assert {system.current, system.previous} == {name_of(tree) for tree in trees[:2]}
    assert system.prefix.leftovers() == []


def test_an_install_waits_for_an_uninstall_and_begins_anew(system: System, trees: list[Path]) -> None:
    system.install(trees[0])
    command = [sys.executable, "-m", "tests.deploy.work", "install", str(system.root), str(trees[1])]
    with system.prefix.held(lambda: None):
        waiting = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert waiting.stdin is not None and waiting.stdout is not None
        waiting.stdin.close()
        assert waiting.stdout.readline() == "lock\n"
        # What an uninstall does at its end.
        shutil.rmtree(system.prefix.folder)
    assert waiting.wait(60) == 0
    waiting.stdout.close()
    assert (system.current, system.previous, system.whole()) == (name_of(trees[1]), None, True)
