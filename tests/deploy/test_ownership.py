"""What another installation, a person or the build host has: neither install nor uninstall touches it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from beetle.deploy.apply import roll_back
from beetle.deploy.install_tree import manifest_of
from beetle.deploy.ownership import InsideVersions
from beetle.deploy.remove import uninstall
from beetle.deploy.steps import Damaged, NotOurs
from tests.deploy.here import WANTED, System

SYSUSERS = "/etc/sysusers.d/beetle.conf"


@pytest.fixture
def second(system: System, trees: list[Path]) -> System:
    """The same system, asked about a prefix where nothing is; the usual one is installed."""
    system.install(trees[0])
    other = System(system.root)
    other.layout = other.layout._replace(prefix="/srv/b2", link="/srv/bin/beetle", config="/srv/b2.toml")
    return other


def test_the_service_of_another_prefix_is_neither_taken_over_nor_removed(second: System, trees: list[Path]) -> None:
    before = second.files()
    with pytest.raises(NotOurs) as caught:
        second.install(trees[1])
    assert caught.value.key == "conflict" and "--prefix" in caught.value.hint
    assert not second.run(uninstall).changed
    assert [(each.step, each.outcome) for each in second.steps] == [("user", "left"), ("unit", "left")]
    assert second.files() == before
    second.layout = second.layout._replace(unit=None)
    second.install(trees[1])
    assert second.path("/srv/b2/current/beetle").exists()


def test_a_prefix_that_the_name_of_another_begins_with_is_another_one(system: System, trees: list[Path]) -> None:
    system.layout = system.layout._replace(prefix="/opt/beetle two", link="/opt/bin/beetle")
    system.install(trees[0])
    other = System(system.root)
    with pytest.raises(NotOurs):
        other.install(trees[1])
    system.run(uninstall)
    assert not system.path(system.layout.unit or "").exists()


def test_the_administrator_s_own_line_for_the_user_stays(system: System) -> None:
    line = system.path(SYSUSERS)
    line.parent.mkdir(parents=True)
    line.write_text("u beetle 990 - /srv/memory\n")
    assert not system.run(uninstall).changed
    assert line.exists() and [each.outcome for each in system.steps] == ["left"]


def test_an_image_s_own_line_for_the_user_is_taken_and_stays(system: System, trees: list[Path]) -> None:
    line = system.path(SYSUSERS)
    line.parent.mkdir(parents=True)
    line.write_text("# ours\nu! beetle 990 - /srv/memory\n")
    before = line.stat()
    system.install(trees[0])
    assert system.outcomes()["user"] == "already"
    system.run(uninstall)
    assert system.outcomes()["user"] == "left"
    assert (line.stat().st_ino, line.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


@pytest.mark.parametrize("kind", ["folder", "link", "pipe", "another user's"])
def test_what_has_the_place_of_the_user_s_line_is_refused_before_anything_is_made(
    system: System, trees: list[Path], kind: str
) -> None:
    line = system.path(SYSUSERS)
    line.parent.mkdir(parents=True)
    line.with_name("other").write_text("u beetle 990\n")
    makes: dict[str, Callable[[], object]] = {
        "folder": line.mkdir,
        "link": lambda: line.symlink_to("other"),
        "pipe": lambda: os.mkfifo(line),
        "another user's": lambda: line.write_text("u robot 990\ng beetle 990\n"),
    }
    makes[kind]()
    before = system.files()
    with pytest.raises(NotOurs, match="sysusers") as caught:
        system.install(trees[0])
    assert "--no-service" in caught.value.hint and system.files() == before
    system.run(uninstall)
    assert system.files() == before


def test_an_empty_folder_without_a_lock_could_be_anybody_s_and_stays(system: System) -> None:
    system.prefix.folder.mkdir(parents=True)
    assert not system.run(uninstall).changed
    assert system.prefix.folder.is_dir()


@pytest.mark.parametrize("place", ["opt", "usr/local/bin", "etc", "etc/systemd", "opt/beetle/versions", "data/memory"])
def test_an_image_s_link_to_the_build_host_is_not_followed(system: System, trees: list[Path], place: str) -> None:
    settings = WANTED.settings._replace(store="/data/memory/beetle.db")
    host = system.root.with_name("host")
    host.mkdir()
    system.install(trees[0], WANTED._replace(settings=settings))
    inside = system.path(place)
    inside.rename(host / "was")
    inside.symlink_to(host / "was")
    before, on_host = system.files(), sorted(host.rglob("*"))
    with pytest.raises(NotOurs) as caught:
        system.install(trees[1], WANTED._replace(settings=settings))
    assert str(system.root / place) in caught.value.message and "relative" in caught.value.hint
    for act in (roll_back, uninstall) if place != "data/memory" else ():
        with pytest.raises(NotOurs):
            system.run(act)
    assert (system.files(), sorted(host.rglob("*"))) == (before, on_host)


def test_an_image_s_link_within_it_is_followed(system: System, trees: list[Path]) -> None:
    system.path("/var/opt").mkdir(parents=True)
    system.path("/opt").symlink_to("var/opt")
    system.install(trees[0])
    assert system.path("/var/opt/beetle/current/beetle").exists()
    system.run(uninstall)
    assert not system.path("/var/opt/beetle").exists()


@pytest.mark.parametrize("link", ["current", "previous", ".current.new"])
def test_an_uninstall_that_is_refused_for_a_link_has_removed_nothing(
    system: System, trees: list[Path], link: str
) -> None:
    system.install(trees[0])
    place = system.prefix.folder / link
    place.unlink(missing_ok=True)
    place.mkdir()
    before = system.files()
    with pytest.raises(NotOurs) as caught:
        system.run(uninstall)
    assert str(place) in caught.value.message and system.files() == before
    with pytest.raises(NotOurs):
        system.install(trees[1])


def test_what_is_named_as_a_leftover_or_a_version_and_is_no_folder_stays(
    system: System, trees: list[Path], tmp_path: Path
) -> None:
    system.install(trees[0])
    folder = system.prefix.versions_folder
    (folder / ".new-x").symlink_to(tmp_path)
    (folder / ".old-y").write_text("x")
    (folder / "0.9.0-0123456789ab").symlink_to(system.prefix.tree(system.current or ""))
    strange = {folder / name for name in (".new-x", ".old-y", "0.9.0-0123456789ab")}
    system.install(trees[1])
    system.install(trees[2])
    found = system.run(uninstall)
    assert set(found.left) == {str(each) for each in strange}
    assert set(folder.iterdir()) == strange and tmp_path.exists()


@pytest.mark.parametrize("kind", ["file", "loop", "nowhere"])
@pytest.mark.parametrize("place", ["etc", "opt", "etc/beetle", "opt/beetle/versions"])
def test_what_stands_where_a_folder_belongs_is_refused_before_anything_is_made(
    system: System, trees: list[Path], place: str, kind: str
) -> None:
    inside = system.path(place)
    inside.parent.mkdir(parents=True)
    if place.startswith("opt/beetle"):
        (system.prefix.folder / ".lock").touch()
    inside.write_text("x") if kind == "file" else inside.symlink_to(inside.name if kind == "loop" else "nowhere")
    before = system.files()
    with pytest.raises(NotOurs) as caught:
        system.install(trees[0])
    assert str(inside) in caught.value.message and system.files() == before
    found = system.run(uninstall)
    assert found.left == ((str(inside),) if place.startswith("opt/beetle") else ())
    assert inside.is_symlink() or inside.exists()


@pytest.mark.parametrize("part", ["", "_internal", "_internal/lib"])
def test_a_version_s_folder_that_is_a_link_is_not_written_through(
    system: System, trees: list[Path], tmp_path: Path, part: str
) -> None:
    system.install(trees[0])
    system.install(trees[1])
    place = system.prefix.tree(manifest_of(trees[0]).name) / part
    outside = tmp_path / "outside"
    place.rename(outside)
    place.symlink_to(outside)
    for each in sorted(outside.iterdir()):
        each.rename(tmp_path / each.name)
    before = system.files()
    for act in (lambda: system.install(trees[0]), lambda: system.run(roll_back)):
        with pytest.raises((NotOurs, Damaged)):
            act()
    with pytest.raises(NotOurs) as caught:
        system.install(trees[0], dry_run=True)
    assert str(place) in caught.value.message
    assert system.files() == before and not any(outside.iterdir())
    found = system.run(uninstall)
    assert found.left == (str(place),) and place.is_symlink() and outside.is_dir()


def test_an_image_s_configuration_that_is_the_build_host_s_is_not_read(system: System, trees: list[Path]) -> None:
    config = system.path(system.layout.config)
    config.parent.mkdir(parents=True)
    host = system.root.with_name("host.toml")
    host.write_text('[daemon]\nstore = "/secret/beetle.db"\n')
    config.symlink_to(host)
    before = system.files()
    with pytest.raises(NotOurs) as caught:
        system.install(trees[0])
    assert caught.value.message.endswith(f"to {host}") and system.files() == before


INSIDE = ("/opt/beetle/current", "/opt/beetle/previous/deep", "/opt/beetle/versions/any", "/data/link")


@pytest.mark.parametrize("folder", INSIDE)
def test_nothing_that_is_to_last_may_be_in_the_folder_of_a_version(
    system: System, trees: list[Path], folder: str
) -> None:
    system.path("/data").mkdir(parents=True)
    system.path("/data/link").symlink_to("../opt/beetle/current")
    before = system.files()
    path = f"{folder}/./x"
    usual = WANTED.settings
    more = (usual._replace(socket=path), usual._replace(log=path), usual._replace(writes=("/srv", path)))
    for settings in (usual._replace(store=path), *more):
        with pytest.raises(InsideVersions) as caught:
            system.install(trees[0], WANTED._replace(settings=settings))
        assert caught.value.key == "invalid_request" and path in caught.value.message and caught.value.hint
        assert system.files() == before


def test_files_that_are_not_the_build_s_survive_the_prune_and_the_uninstall_of_their_version(
    system: System, trees: list[Path]
) -> None:
    system.install(trees[0])
    old = system.prefix.tree(system.current or "")
    mine = [old / "_internal/lib/mine.so", old / "beetle.db", old / "snaps"]
    for each in mine[:2]:
        each.write_text("memory")
    mine[2].mkdir()
    (mine[2] / "one").write_text("snapshot")
    system.install(trees[1])
    system.install(trees[2])
    left = [each.text for each in system.steps if (each.step, each.outcome) == ("prune", "left")]
    assert left == [f"{each} is not ours" for each in mine]
    assert [each for each in old.rglob("*") if not each.is_dir()] != [] and not (old / "beetle").exists()
    report = system.install(trees[2])
    assert not report.changed
    current = system.prefix.tree(system.current or "")
    (current / "beetle.db").write_text("memory")
    told = system.run(uninstall, dry_run=True)
    found = system.run(uninstall)
    # With its MANIFEST went what told our folders in the old version from others.
    everything = sorted([old / "_internal", *mine[1:], current / "beetle.db"])
    assert told.left == found.left == tuple(map(str, everything))
    files = {path for path in system.prefix.folder.rglob("*") if not path.is_dir()}
    assert files == {*mine[:2], mine[2] / "one", current / "beetle.db", system.prefix.folder / ".lock"}
    assert not system.run(uninstall).changed
    system.install(trees[2])
    assert not system.prefix.wrong(manifest_of(current)) and (current / "beetle.db").read_text() == "memory"


def test_a_folder_that_is_only_named_like_a_leftover_stays(system: System, trees: list[Path]) -> None:
    system.install(trees[0])
    mine = [system.prefix.versions_folder / name for name in (".new-ideas", ".old-memories")]
    for each in mine:
        each.mkdir()
    system.install(trees[1])
    assert system.run(uninstall).left == tuple(map(str, mine)) and all(each.is_dir() for each in mine)
