"""`beetle install` and `beetle uninstall` as they are typed, with a small tree in place of the frozen one."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from beetle.deploy.install_tree import manifest_of
from beetle.runtime.host.config import read_config
from beetle.runtime.host.profile import ALIASES, load_profile
from tests.deploy.here import System, make_tree, running_from

from .conftest import REPOSITORY, CommandLine


@pytest.fixture
def trees(folder: Path) -> list[Path]:
    found = [folder / f"tree-{number}" for number in range(2)]
    for number, tree in enumerate(found):
        make_tree(tree, f"0.{number}.0")
    return found


@pytest.fixture
def system(folder: Path) -> System:
    return System(folder / "system")


def run_from(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on this process is a frozen program of that tree."""
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    monkeypatch.setattr(sys, "executable", str(tree / "beetle"))


@pytest.fixture
def frozen(trees: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    run_from(trees[0], monkeypatch)


def test_a_beetle_that_is_not_frozen_says_what_to_do_instead(beetle: CommandLine, system: System) -> None:
    said = beetle.process("install", "--root", str(system.root))
    key, message, hint = said.error
    assert (said.code, key) == (5, "capability_hidden")
    assert "one-file program" in message and "pip install ." in hint
    assert not system.root.exists()


@pytest.mark.usefixtures("frozen")
def test_who_is_not_root_is_told_of_sudo_and_user(
    beetle: CommandLine, monkeypatch: pytest.MonkeyPatch, system: System
) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 1000)
    for command in ("install", "uninstall"):
        said = beetle.run(command)
        assert (said.code, said.error[0]) == (5, "forbidden")
        assert "sudo" in said.error[2] and "--user" in said.error[2]
    # An image can be written by anybody.
    assert beetle.run("install", "--root", str(system.root)).code == 0


@pytest.mark.usefixtures("frozen")
@pytest.mark.parametrize(
    "words",
    [("--user",), ("--prefix", ""), ("--root", "x", "--bin", "a\nb"), ("--root", "x", "--user"), ("--root", "")],
)
def test_what_cannot_be_meant_is_refused(
    beetle: CommandLine, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 0)
    said = beetle.run("install", *words)
    assert (said.code, said.error[0]) == (2, "invalid_request")
    assert said.error[2]


@pytest.mark.usefixtures("frozen")
def test_an_install_shows_each_step_and_a_second_that_all_is_done(beetle: CommandLine, system: System) -> None:
    said = beetle.run("install", "--root", str(system.root), "--profile", "compact")
    assert (said.code, said.err) == (0, "")
    name = system.current
    assert said.out.splitlines()[:6] == [
        f"done     tree     /opt/beetle/versions/{name} (6 files, 0.0 MB)",
        f"done     switch   current is {name}",
        "done     link     /usr/local/bin/beetle → /opt/beetle/current/beetle",
        "done     user     beetle, by /etc/sysusers.d/beetle.conf",
        "done     config   /etc/beetle/beetle.toml with profile compact",
        "done     unit     /etc/systemd/system/beetle.service",
    ]
    notes = said.out.splitlines()[6:]
    assert [each.split()[:2] for each in notes] == [["note", "service"], ["note", "agents"]]
    assert "[principals] in /etc/beetle/beetle.toml" in notes[1] and "the group beetle" in notes[1]
    said = beetle.run("install", "--root", str(system.root))
    assert {line.split()[0] for line in said.out.splitlines()} == {"already", "note"}


@pytest.mark.usefixtures("frozen")
def test_the_json_report_is_stable(beetle: CommandLine, system: System) -> None:
    root = ("--root", str(system.root), "--profile", "compact", "--json")
    report = beetle.run("install", *root).json
    steps = report.pop("steps")
    assert report == {
        "action": "install",
        "version": system.current,
        "previous": None,
        "prefix": "/opt/beetle",
        "program": "/usr/local/bin/beetle",
        "config": "/etc/beetle/beetle.toml",
        "profile": "compact",
        "store": "/var/lib/beetle/beetle.db",
        "socket": "/run/beetle/beetle.sock",
        "group": "beetle",
        "unit": "/etc/systemd/system/beetle.service",
        "service": "written",
        "changed": True,
        "dry_run": False,
    }
    assert all(each.keys() == {"step", "outcome", "text"} for each in steps)
    removed = beetle.run("uninstall", "--root", str(system.root), "--json").json
    assert {name: removed[name] for name in removed if name != "steps"} == {
        "action": "uninstall",
        "prefix": "/opt/beetle",
        "changed": True,
        "dry_run": False,
        "left": [],
        "kept": {"config": "/etc/beetle/beetle.toml"},
    }


@pytest.mark.usefixtures("frozen")
@pytest.mark.parametrize("alias", ALIASES)
def test_a_profile_that_was_asked_for_is_written_and_its_ceiling_is_the_service_s(
    beetle: CommandLine, system: System, alias: str
) -> None:
    assert beetle.run("install", "--root", str(system.root), "--profile", alias).code == 0
    file = system.path("/etc/beetle/beetle.toml")
    assert read_config(file, {}, 0).daemon.profile == alias
    profile = load_profile(alias)
    unit = system.path("/etc/systemd/system/beetle.service").read_text()
    assert f"\nMemoryMax={profile.memory_ceiling_mib}M\n" in unit
    assert f"\nTasksMax={profile.budgets.connections + profile.budgets.readers + 32}\n" in unit


@pytest.mark.usefixtures("frozen")
def test_an_image_without_a_profile_chooses_it_where_it_starts(beetle: CommandLine, system: System) -> None:
    said = beetle.run("install", "--root", str(system.root))
    assert read_config(system.path("/etc/beetle/beetle.toml"), {}, 0).daemon.profile == "auto"
    assert "MemoryMax" not in system.path("/etc/systemd/system/beetle.service").read_text()
    assert "no memory ceiling" in said.out


@pytest.mark.usefixtures("frozen")
def test_places_that_were_given_are_written_and_kept_by_the_service(beetle: CommandLine, system: System) -> None:
    words = ("--store", "/data/memory/b.db", "--socket", "/run/robot/b.sock", "--config", "/etc/robot/beetle.toml")
    places = ("--prefix", "/srv/beetle", "--bin", "/usr/bin", "--root", str(system.root))
    assert beetle.run("install", *words, *places, "--profile", "compact").code == 0
    config = read_config(system.path("/etc/robot/beetle.toml"), {}, 0)
    assert (config.daemon.store, config.daemon.socket) == ("/data/memory/b.db", "/run/robot/b.sock")
    unit = system.path("/etc/systemd/system/beetle.service").read_text()
    assert "ReadWritePaths=-/data/memory\n" in unit and "RuntimeDirectory=robot\n" in unit
    assert "ExecStart=/srv/beetle/current/beetle --config /etc/robot/beetle.toml serve\n" in unit
    assert os.readlink(system.path("/usr/bin/beetle")) == "/srv/beetle/current/beetle"


@pytest.mark.usefixtures("frozen")
def test_a_configuration_that_is_there_decides_and_what_was_typed_against_it_is_told(
    beetle: CommandLine, system: System
) -> None:
    file = system.path("/etc/beetle/beetle.toml")
    file.parent.mkdir(parents=True)
    text = '[daemon]\nprofile = "compact"\ngroup = "robot"\n[model]\nkind = "ollama"\nname = "m"\n'
    file.write_text(text)
    said = beetle.run("install", "--root", str(system.root), "--profile", "gateway", "--store", "/data/b.db")
    assert said.code == 0 and file.read_text() == text
    assert 'profile = "gateway"' in said.out and 'store = "/data/b.db"' in said.out
    unit = system.path("/etc/systemd/system/beetle.service").read_text()
    assert "MemoryMax=48M" in unit and "Group=robot" in unit and "AF_INET" in unit and "/data" not in unit
    file.write_text("[daemon]\nprofil = 1\n")
    said = beetle.run("install", "--root", str(system.root))
    assert (said.code, said.error[0]) == (2, "invalid_request")


@pytest.mark.usefixtures("frozen")
def test_the_shell_s_own_variables_do_not_reach_the_service(
    beetle: CommandLine, system: System, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BEETLE_STORE", "/elsewhere/b.db")
    monkeypatch.setenv("BEETLE_SOCKET", "/elsewhere/b.sock")
    report = beetle.run("install", "--root", str(system.root), "--json").json
    assert (report["store"], report["socket"]) == ("/var/lib/beetle/beetle.db", "/run/beetle/beetle.sock")


def test_versions_are_upgraded_and_rolled_back(
    beetle: CommandLine, system: System, trees: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    root = ("--root", str(system.root))
    names = [manifest_of(tree).name for tree in trees]
    for tree in trees:
        run_from(tree, monkeypatch)
        assert beetle.run("install", *root).code == 0
    assert (system.current, system.previous) == (names[1], names[0])
    monkeypatch.setattr(sys, "frozen", False)
    said = beetle.run("install", *root, "--rollback")
    assert said.out == f"done     switch   current is {names[0]}, previous is {names[1]}\n"
    copy = system.path("/var/lib/beetle/beetle.db.before-m-0000000000000015")
    copy.parent.mkdir(parents=True)
    copy.touch()
    said = beetle.run("install", *root, "--rollback")
    assert f"kept it as it was before: {copy}" in said.out and "schema_mismatch" in said.out
    beetle.run("install", *root, "--rollback")
    assert beetle.run("install", *root, "--rollback", "--json").json["version"] == names[1]


def test_one_user_s_installation_is_all_in_the_home(
    beetle: CommandLine, trees: list[Path], monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    run_from(trees[0], monkeypatch)
    monkeypatch.setattr(os, "getuid", lambda: 1000)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder / "run"))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    said = beetle.run("install", "--user")
    assert said.code == 0, said.err
    assert os.readlink(folder / ".local/bin/beetle") == str(folder / ".local/lib/beetle/current/beetle")
    assert (folder / ".config/beetle/beetle.toml").exists()
    assert f"{folder}/.local/bin is not in this shell's PATH" in said.out
    unit = folder / ".config/systemd/user/beetle.service"
    if unit.exists():
        assert f"--config {folder}/.config/beetle/beetle.toml serve" in unit.read_text()
    assert beetle.run("uninstall", "--user").code == 0
    assert not (folder / ".local/lib/beetle").exists() and not unit.exists()
    assert (folder / ".config/beetle/beetle.toml").exists()


@pytest.mark.usefixtures("frozen")
def test_uninstall_names_what_stays_and_how_to_delete_it(beetle: CommandLine, system: System) -> None:
    root = ("--root", str(system.root))
    assert beetle.run("uninstall", *root).out == "Nothing of beetle is installed in /opt/beetle.\n"
    beetle.run("install", *root)
    store = system.path("/var/lib/beetle/beetle.db")
    store.parent.mkdir(parents=True)
    store.touch()
    said = beetle.run("uninstall", *root)
    assert said.code == 0, said.err
    assert "rm /var/lib/beetle/beetle.db*" in said.out and "rm /etc/beetle/beetle.toml" in said.out
    assert store.exists() and not system.prefix.folder.exists()


@pytest.mark.usefixtures("frozen")
def test_a_store_in_a_version_s_folder_is_refused_and_one_that_is_there_is_named_where_it_stays(
    beetle: CommandLine, system: System
) -> None:
    root, store = ("--root", str(system.root)), "/opt/beetle/current/beetle.db"
    said = beetle.run("install", *root, "--store", store)
    assert (said.code, said.error[0]) == (2, "invalid_request")
    assert "/opt/beetle" in said.error[2] and not system.root.exists()
    beetle.run("install", *root)
    config, tree = system.path("/etc/beetle/beetle.toml"), system.prefix.tree(system.current or "")
    config.write_text(f'[daemon]\nstore = "{store}"\n')
    system.path(store).write_text("memory")
    before = system.files()
    assert beetle.run("install", *root).error[0] == "invalid_request" and system.files() == before
    removed = beetle.run("uninstall", *root, "--json").json
    place = f"/opt/beetle/versions/{tree.name}/beetle.db"
    assert removed["kept"] == {"store": place, "config": "/etc/beetle/beetle.toml"}
    assert removed["left"] == [str(system.path(place))] and system.path(place).read_text() == "memory"


@pytest.mark.usefixtures("frozen")
def test_an_image_s_configuration_is_not_looked_for_on_the_build_host(
    beetle: CommandLine, system: System, folder: Path
) -> None:
    config = system.path("/etc/beetle/beetle.toml")
    config.parent.mkdir(parents=True)
    (folder / "host.toml").write_text("this is what nobody may read")
    config.symlink_to(folder / "host.toml")
    for command in (("install",), ("install", "--rollback"), ("uninstall",)):
        said = beetle.run(*command, "--root", str(system.root))
        assert (said.code, said.error[0]) == (4, "conflict"), command


def test_uninstall_waits_for_nobody_who_runs_from_it_but_refuses(
    beetle: CommandLine, system: System, trees: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    run_from(trees[0], monkeypatch)
    beetle.run("install", "--root", str(system.root))
    with running_from(system.prefix.tree(system.current or "")):
        said = beetle.run("uninstall", "--root", str(system.root))
        assert (said.code, said.error[0]) == (4, "conflict")
        assert "beetle stop" in said.error[2]
        assert system.whole() and system.path("/usr/local/bin/beetle").is_symlink()


OWN_TREE = """
import fcntl, json, os, sys
sys.frozen, sys.executable = True, sys.argv[1]
# What the launcher leaves to the program: the lock on an inherited descriptor.
fcntl.flock(os.open(os.path.join(os.path.dirname(sys.argv[1]), "in-use"), os.O_RDONLY), fcntl.LOCK_SH)
imported = []
going = False
def hook(event, arguments):
    global going
    going = going or (event == "os.rename" and "/.old-" in str(arguments[1]))
    if event == "import" and going:
        imported.append(arguments[0])
sys.addaudithook(hook)
from beetle.__main__ import main
code = main(sys.argv[2:])
print(json.dumps({"code": code, "going": going, "imported": imported}))
"""


@pytest.mark.parametrize("json_too", [(), ("--json",)], ids=["text", "json"])
def test_uninstall_runs_from_the_very_tree_that_it_removes(
    beetle: CommandLine, system: System, trees: list[Path], monkeypatch: pytest.MonkeyPatch, json_too: tuple[str, ...]
) -> None:
    run_from(trees[0], monkeypatch)
    beetle.run("install", "--root", str(system.root))
    monkeypatch.undo()
    program = system.prefix.folder.resolve() / "current/beetle"
    words = [sys.executable, "-c", OWN_TREE, str(program), "uninstall", "--root", str(system.root), *json_too]
    done = subprocess.run(words, cwd=REPOSITORY, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == {"code": 0, "going": True, "imported": []}
    assert not system.prefix.folder.exists()


@pytest.mark.usefixtures("frozen")
def test_a_dry_run_makes_nothing(beetle: CommandLine, system: System) -> None:
    said = beetle.run("install", "--root", str(system.root), "--dry-run")
    assert said.code == 0 and "would    unit" in said.out
    assert not system.root.exists()


@pytest.mark.usefixtures("frozen")
def test_without_a_service_there_is_no_unit_and_no_user(beetle: CommandLine, system: System) -> None:
    said = beetle.run("install", "--root", str(system.root), "--no-service")
    assert said.code == 0
    assert not system.path("/etc/systemd").exists() and not system.path("/etc/sysusers.d").exists()
    file = system.path("/etc/beetle/beetle.toml")
    assert read_config(file, {}, os.getuid()).daemon.group is None
    assert "\n# group = " in file.read_text() and "\n[metrics]\n# " in file.read_text()
    assert stat.S_IMODE(system.path("/etc/beetle/beetle.toml").stat().st_mode) == 0o644
