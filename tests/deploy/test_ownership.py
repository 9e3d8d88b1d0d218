"""What another installation, a person or the build host has: neither install nor uninstall touches it."""

from __future__ import annotations

from pathlib import Path

import pytest

from beetle.deploy.remove import uninstall
from beetle.deploy.steps import NotOurs
from tests.deploy.here import System

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


def test_an_empty_folder_without_a_lock_could_be_anybody_s_and_stays(system: System) -> None:
    system.prefix.folder.mkdir(parents=True)
    assert not system.run(uninstall).changed
    assert system.prefix.folder.is_dir()
