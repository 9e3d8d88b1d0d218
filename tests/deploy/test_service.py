"""The service's user and the calls of systemctl, with tools of the test's own in the path."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from beetle.deploy.apply import roll_back
from beetle.deploy.install_tree import manifest_of
from beetle.deploy.layout import Settings
from beetle.deploy.machine import Machine
from beetle.deploy.remove import uninstall
from beetle.deploy.steps import InUse, ToolFailed
from tests.deploy.here import ROOT, WANTED, System, packaging_tree, running_from

SYSTEMCTL = """\
#!/bin/sh
[ "$1" != --user ] || shift
echo "systemctl $*" >>{folder}/calls
case $1 in
show) cat {folder}/state ;;
stop) printf 'ActiveState=inactive\\nMainPID=0\\n' >{folder}/state ;;
start | restart | enable)
    [ ! -e {folder}/deadly ] || kill -9 $PPID
    [ ! -e {folder}/broken ] || {{ echo "Job for beetle.service failed." >&2; exit 1; }}
    case $* in enable\\ beetle.service) ;; *) printf 'ActiveState=active\\nMainPID=1\\n' >{folder}/state ;; esac ;;
esac
"""
ROLL_BACK = """
import sys
from pathlib import Path
from beetle.deploy.apply import roll_back
from beetle.deploy.machine import Machine
from tests.deploy.here import layout_in
root, folder = Path(sys.argv[1]), Path(sys.argv[2])
machine = Machine(str(folder / "bin"), {"PATH": str(folder / "bin")}, folder / "systemd")
roll_back(layout_in(root), machine, lambda _: None)
"""
USERADD = """\
#!/bin/sh
echo "$(basename "$0") $*" >>{folder}/calls
[ ! -e {folder}/broken ] || {{ echo "useradd: cannot lock /etc/passwd; try again later." >&2; exit 1; }}
for name; do :; done
echo "$name:x:990:990::/var/lib/beetle:/usr/sbin/nologin" >>{root}/etc/passwd
"""
ADDGROUP = """\
#!/bin/sh
echo "addgroup $*" >>{folder}/calls
"""


class Tools:
    """Tools that write down how they were called, in a folder that is the whole path."""

    def __init__(self, folder: Path, root: Path) -> None:
        self.folder = folder
        self.root = root
        (folder / "bin").mkdir(parents=True)
        (root / "etc").mkdir(parents=True)
        (root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
        (folder / "state").write_text("ActiveState=inactive\nMainPID=0\n")
        # What a script of the shell needs; the machine's own makers of users must stay out of reach.
        for name in ("cat", "basename"):
            real = next(each for each in (f"/bin/{name}", f"/usr/bin/{name}") if os.path.exists(each))
            (folder / "bin" / name).symlink_to(real)
        self.machine = Machine(str(folder / "bin"), {"PATH": str(folder / "bin")}, folder / "systemd")

    def have(self, **scripts: str) -> None:
        for name, text in scripts.items():
            file = self.folder / "bin" / name
            file.write_text(text.format(folder=self.folder, root=self.root))
            file.chmod(0o755)

    def start_systemd(self) -> None:
        self.have(systemctl=SYSTEMCTL)
        (self.folder / "systemd").mkdir()

    def calls(self) -> list[str]:
        """How tools were called since the last question, without those that only ask."""
        file = self.folder / "calls"
        lines = file.read_text().splitlines() if file.exists() else []
        file.unlink(missing_ok=True)
        return [line for line in lines if not line.startswith("systemctl show")]

    def let_it_run(self) -> None:
        """As if the service ran; this process stands for a daemon of no version here."""
        (self.folder / "state").write_text(f"ActiveState=active\nMainPID={os.getpid()}\n")


@pytest.fixture
def tools(tmp_path: Path, system: System) -> Tools:
    return Tools(tmp_path / "tools", system.root)


def test_a_first_install_makes_the_user_and_starts_the_service(system: System, trees: list[Path], tools: Tools) -> None:
    tools.start_systemd()
    tools.have(useradd=USERADD)
    report = system.install(trees[0], machine=tools.machine)
    made, *rest = tools.calls()
    assert made.startswith("useradd --system --no-create-home --user-group --home-dir /var/lib/beetle --shell /")
    assert made.endswith(" beetle") and ("nologin" in made or "/bin/false" in made)
    assert rest == ["systemctl daemon-reload", "systemctl enable --now beetle.service"]
    assert (report.service, report.group) == ("running", "beetle")
    assert 'group = "beetle"' in system.path("/etc/beetle/beetle.toml").read_text()
    assert "User=beetle\nGroup=beetle\n" in system.path(system.layout.unit or "").read_text()


def test_a_user_and_a_group_that_are_there_are_taken(system: System, trees: list[Path], tools: Tools) -> None:
    tools.have(useradd=USERADD)
    (system.root / "etc/group").write_text("beetle:x:990:\n")
    system.install(trees[0], machine=tools.machine)
    assert "--gid beetle" in tools.calls()[0]
    system.install(trees[1], machine=tools.machine)
    assert tools.calls() == [] and system.outcomes()["user"] == "already"


def test_without_useradd_busybox_s_tools_make_the_user(system: System, trees: list[Path], tools: Tools) -> None:
    tools.have(adduser=USERADD, addgroup=ADDGROUP)
    system.install(trees[0], machine=tools.machine)
    group, user = tools.calls()
    assert group == "addgroup -S beetle"
    assert user.startswith("adduser -S -D -H -h /var/lib/beetle -s /") and user.endswith("-G beetle beetle")


def test_where_nothing_makes_users_systemd_lends_one(system: System, trees: list[Path], tools: Tools) -> None:
    report = system.install(trees[0], machine=tools.machine)
    unit = system.path(system.layout.unit or "").read_text()
    assert "DynamicUser=yes\nUser=beetle\n" in unit and "Group=" not in unit
    assert (
        report.group is None and "group" not in system.path("/etc/beetle/beetle.toml").read_text().split("[daemon]")[1]
    )


def test_a_user_that_could_not_be_made_is_an_error_with_the_tool_s_words(
    system: System, trees: list[Path], tools: Tools
) -> None:
    tools.have(useradd=USERADD)
    (tools.folder / "broken").touch()
    with pytest.raises(ToolFailed) as caught:
        system.install(trees[0], machine=tools.machine)
    assert "cannot lock /etc/passwd" in caught.value.message and caught.value.exit_code == 7
    (tools.folder / "broken").unlink()
    system.install(trees[0], machine=tools.machine)
    assert system.outcomes()["user"] == "done"


def test_where_systemd_does_not_run_nothing_is_called_and_the_way_to_start_is_told(
    system: System, trees: list[Path], tools: Tools
) -> None:
    tools.have(systemctl=SYSTEMCTL, useradd=USERADD)
    report = system.install(trees[0], machine=tools.machine)
    assert [each.split()[0] for each in tools.calls()] == ["useradd"]
    assert report.service == "written"
    told = [each.text for each in system.steps if each.step == "service"]
    assert system.install(trees[1], WANTED._replace(holder=4711), tools.machine).service == "written"
    assert "process 4711 has" in system.steps[-1].text
    start = "/usr/local/bin/beetle --config /etc/beetle/beetle.toml start"
    assert told == [f"systemd does not run here; to start it without: {start}"]


def test_without_a_unit_no_user_is_made(system: System, trees: list[Path], tools: Tools) -> None:
    tools.start_systemd()
    tools.have(useradd=USERADD)
    system.layout = system.layout._replace(unit=None)
    report = system.install(trees[0], machine=tools.machine)
    assert tools.calls() == [] and (report.service, report.group) == ("none", None)
    assert "user" not in system.outcomes()


def test_no_start_writes_the_unit_and_leaves_the_service(system: System, trees: list[Path], tools: Tools) -> None:
    tools.start_systemd()
    tools.have(useradd=USERADD)
    report = system.install(trees[0], WANTED._replace(starts=False), tools.machine)
    assert tools.calls()[1:] == ["systemctl daemon-reload"]
    assert report.service == "written"
    tools.let_it_run()
    system.install(trees[1], WANTED._replace(starts=False), tools.machine)
    assert tools.calls() == []
    assert "systemctl restart beetle" in next(each.text for each in system.steps if each.step == "service")


def test_a_running_service_is_restarted_for_a_new_version_a_new_unit_and_a_rollback(
    system: System, trees: list[Path], tools: Tools
) -> None:
    tools.start_systemd()
    tools.have(useradd=USERADD)
    system.install(trees[0], machine=tools.machine)
    tools.calls()
    system.install(trees[1], machine=tools.machine)
    assert tools.calls() == ["systemctl restart beetle.service"]
    networked = WANTED._replace(settings=WANTED.settings._replace(network=True))
    system.install(trees[1], networked, tools.machine)
    assert tools.calls() == ["systemctl daemon-reload", "systemctl restart beetle.service"]
    system.run(roll_back, tools.machine)
    assert tools.calls() == ["systemctl restart beetle.service"]
    system.run(roll_back, tools.machine, starts=False)
    assert tools.calls() == []


def test_a_service_that_runs_the_current_version_is_left_running(
    system: System, trees: list[Path], tools: Tools
) -> None:
    tools.start_systemd()
    tools.have(useradd=USERADD)
    tree = trees[0]
    sleeper = Path(os.path.realpath("/bin/sleep"))
    (tree / "beetle").write_bytes(sleeper.read_bytes())
    packaging_tree().write_manifest(tree, "0.0.0")
    system.install(tree, machine=tools.machine)
    tools.calls()
    program = system.prefix.folder / "current/beetle"
    with subprocess.Popen([program, "600"]) as daemon:
        (tools.folder / "state").write_text(f"ActiveState=active\nMainPID={daemon.pid}\n")
        report = system.install(tree, machine=tools.machine)
        daemon.kill()
    assert tools.calls() == [] and not report.changed and report.service == "running"
    assert system.outcomes()["service"] == "already"


def test_a_restart_that_fails_says_how_to_go_back(system: System, trees: list[Path], tools: Tools) -> None:
    tools.start_systemd()
    tools.have(useradd=USERADD)
    system.install(trees[0], machine=tools.machine)
    (tools.folder / "broken").touch()
    with pytest.raises(ToolFailed) as caught:
        system.install(trees[1], machine=tools.machine)
    assert "Job for beetle.service failed." in caught.value.message
    assert "journalctl -u beetle.service" in caught.value.hint
    assert "/usr/local/bin/beetle install --rollback" in caught.value.hint
    (tools.folder / "broken").unlink()
    system.run(roll_back, tools.machine)
    assert system.current == manifest_of(trees[0]).name


def test_a_rollback_that_is_killed_while_the_service_restarts_is_ended_by_the_next_one(
    system: System, trees: list[Path], tools: Tools
) -> None:
    names = [manifest_of(tree).name for tree in trees]
    tools.start_systemd()
    tools.have(useradd=USERADD)
    system.install(trees[0], machine=tools.machine)
    system.install(trees[1], machine=tools.machine)
    (tools.folder / "deadly").touch()
    command = [sys.executable, "-c", ROLL_BACK, str(system.root), str(tools.folder)]
    for _ in range(2):
        assert subprocess.run(command, cwd=ROOT, check=False).returncode == -9
        assert (system.current, system.previous) == (names[0], names[1])
    (tools.folder / "deadly").unlink()
    tools.calls()
    found = system.run(roll_back, tools.machine)
    assert (found.version, found.previous, system.current) == (names[0], names[1], names[0])
    assert tools.calls() == ["systemctl restart beetle.service"]
    assert system.run(roll_back, tools.machine).version == system.current == names[1]


def test_a_rollback_whose_restart_fails_is_over_and_another_leads_back(
    system: System, trees: list[Path], tools: Tools
) -> None:
    tools.start_systemd()
    tools.have(useradd=USERADD)
    system.install(trees[0], machine=tools.machine)
    system.install(trees[1], machine=tools.machine)
    (tools.folder / "broken").touch()
    with pytest.raises(ToolFailed) as caught:
        system.run(roll_back, tools.machine)
    assert "--rollback" in caught.value.hint
    (tools.folder / "broken").unlink()
    assert system.run(roll_back, tools.machine).version == system.current == manifest_of(trees[1]).name


def test_a_store_that_another_process_has_open_is_not_fought_over(
    system: System, trees: list[Path], tools: Tools
) -> None:
    tools.start_systemd()
    tools.have(useradd=USERADD)
    report = system.install(trees[0], WANTED._replace(holder=4711), tools.machine)
    assert tools.calls()[1:] == ["systemctl daemon-reload", "systemctl enable beetle.service"]
    assert report.service == "enabled"
    told = " ".join(each.text for each in system.steps)
    assert "process 4711" in told and "systemctl start beetle" in told


def test_uninstall_stops_and_disables_the_service(system: System, trees: list[Path], tools: Tools) -> None:
    tools.start_systemd()
    tools.have(useradd=USERADD)
    system.install(trees[0], machine=tools.machine)
    tools.calls()
    system.run(uninstall, tools.machine, dry_run=True)
    assert tools.calls() == []
    system.run(uninstall, tools.machine)
    assert tools.calls() == [
        "systemctl stop beetle.service", "systemctl disable beetle.service", "systemctl daemon-reload",
    ]  # fmt: skip
    assert not system.path(system.layout.unit or "").exists()
    assert "beetle" in (system.root / "etc/passwd").read_text()


def test_a_wrong_prefix_stops_disables_and_restarts_nobody_s_service(
    system: System, trees: list[Path], tools: Tools
) -> None:
    tools.start_systemd()
    tools.have(useradd=USERADD)
    system.layout = system.layout._replace(prefix="/opt/typo", link="/opt/bin/beetle", unit=None)
    system.install(trees[0], machine=tools.machine)
    system.install(trees[1], machine=tools.machine)
    usual = System(system.root)
    usual.install(trees[0], machine=tools.machine)
    tools.calls()
    system.layout = system.layout._replace(unit=usual.layout.unit)
    assert system.run(roll_back, tools.machine).service == "none"
    system.run(uninstall, tools.machine)
    assert tools.calls() == []
    assert usual.path(usual.layout.unit or "").exists()


def test_a_refused_uninstall_lets_the_service_run_again(system: System, trees: list[Path], tools: Tools) -> None:
    tools.start_systemd()
    tools.have(useradd=USERADD)
    system.install(trees[0], machine=tools.machine)
    tools.calls()
    with running_from(system.prefix.tree(manifest_of(trees[0]).name)), pytest.raises(InUse):
        system.run(uninstall, tools.machine)
    assert tools.calls() == ["systemctl stop beetle.service", "systemctl start beetle.service"]
    assert system.path(system.layout.unit or "").exists()


def test_a_personal_installation_speaks_to_the_user_s_own_systemd(
    system: System, trees: list[Path], tools: Tools
) -> None:
    tools.start_systemd()
    tools.have(
        useradd=USERADD, systemctl=SYSTEMCTL.replace('[ "$1" != --user ] || shift', '[ "$1" = --user ] && shift')
    )
    system.layout = system.layout._replace(unit="/home/ann/.config/systemd/user/beetle.service", personal=True)
    settings = Settings("/home/ann/.local/share/beetle/beetle.db", "/run/user/1000/beetle/beetle.sock")
    system.install(trees[0], WANTED._replace(settings=settings), tools.machine)
    assert tools.calls() == ["systemctl daemon-reload", "systemctl enable --now beetle.service"]
    assert "user" not in system.outcomes()
    unit = system.path(system.layout.unit or "").read_text()
    assert "User=" not in unit and "WantedBy=default.target" in unit
