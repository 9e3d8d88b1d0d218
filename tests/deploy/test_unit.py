"""The text of the unit: for every profile, every place, with and without a network; and what systemd says of it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from argparse import Namespace
from pathlib import Path

import pytest

from beetle.cli.installing import install_options
from beetle.deploy.layout import RUN_FOLDER, Layout, Limits, Settings
from beetle.deploy.unit import personal_unit, system_unit
from tests.deploy.here import LIMITS, layout_in

LAYOUT = layout_in(Path("/"))
USUAL = Settings("/var/lib/beetle/beetle.db", "/run/beetle/beetle.sock", group="beetle")


def options(text: str) -> dict[str, list[str]]:
    """The values of every option, in order."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        name, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            found.setdefault(name, []).append(value)
    return found


def test_the_usual_places_are_made_by_systemd_with_the_modes_of_the_wire_contract() -> None:
    found = options(system_unit(LAYOUT, USUAL, LIMITS, "user"))
    assert found["StateDirectory"] == ["beetle"] and found["StateDirectoryMode"] == ["0700"]
    assert found["RuntimeDirectory"] == ["beetle"] and found["RuntimeDirectoryMode"] == ["0750"]
    assert (found["User"], found["Group"], found["UMask"]) == (["beetle"], ["beetle"], ["0077"])
    assert "ReadWritePaths" not in found and "RequiresMountsFor" not in found
    assert found["ExecStart"] == ["/opt/beetle/current/beetle --config /etc/beetle/beetle.toml serve"]
    closed = options(system_unit(LAYOUT, USUAL._replace(group=None), LIMITS, "user"))
    assert closed["RuntimeDirectoryMode"] == ["0700"]


def test_a_reload_needs_no_program_that_a_minimal_system_lacks() -> None:
    for text in (system_unit(LAYOUT, USUAL, LIMITS, "user"), personal_unit(LAYOUT, USUAL, LIMITS, ())):
        found = options(text)
        assert found["ExecReload"] == ["/opt/beetle/current/beetle --config /etc/beetle/beetle.toml reload"]
        assert [name for name in found if name.startswith("Exec")] == ["ExecStart", "ExecReload"]


def test_the_daemon_s_own_defaults_are_the_places_that_systemd_makes() -> None:
    from beetle.runtime.host.config import Config, socket_path, store_path

    words = options(system_unit(LAYOUT, USUAL, LIMITS, "user"))["Environment"][0].split()
    env = dict(word.split("=", 1) for word in words)
    assert str(socket_path(None, env, Config(), 990)) == USUAL.socket
    assert str(store_path(None, env, Config(), 990)) == USUAL.store
    assert os.path.dirname(USUAL.socket) == RUN_FOLDER


def test_other_places_may_be_written_and_nothing_of_somebody_else_s_is_taken_over() -> None:
    there = Settings("/data/memory/b.db", "/run/robot/b.sock", "/var/log/robot/beetle.log", "robot")
    found = options(system_unit(LAYOUT, there, LIMITS, "user", shared=("/run/robot",)))
    assert found["ReadWritePaths"] == ["-/data/memory", "-/run/robot", "-/var/log/robot"]
    assert found["RequiresMountsFor"] == ["/data/memory"]
    assert "RuntimeDirectory" not in found and "StateDirectory" not in found
    assert found["Group"] == ["robot"]
    found = options(system_unit(LAYOUT, there, LIMITS, "user"))
    assert (found["RuntimeDirectory"], found["RuntimeDirectoryMode"]) == (["robot"], ["0750"])


def test_what_lies_below_home_or_tmp_is_not_hidden_from_the_daemon() -> None:
    found = options(system_unit(LAYOUT, USUAL, LIMITS, "user"))
    assert (found["ProtectHome"], found["PrivateTmp"]) == (["yes"], ["yes"])
    for settings, name, value in (
        (USUAL._replace(store="/home/robot/b.db"), "ProtectHome", "read-only"),
        (USUAL._replace(reads=("/root/skills",)), "ProtectHome", "read-only"),
        (USUAL._replace(socket="/tmp/b.sock"), "PrivateTmp", "no"),
    ):
        assert options(system_unit(LAYOUT, settings, LIMITS, "user"))[name] == [value]


def test_a_network_is_there_only_for_a_model_or_a_replica() -> None:
    found = options(system_unit(LAYOUT, USUAL, LIMITS, "user"))
    assert (found["RestrictAddressFamilies"], found["PrivateNetwork"]) == (["AF_UNIX"], ["yes"])
    found = options(system_unit(LAYOUT, USUAL._replace(network=True), LIMITS, "user"))
    assert found["RestrictAddressFamilies"] == ["AF_UNIX AF_INET AF_INET6"]
    assert "PrivateNetwork" not in found and "IPAddressDeny" not in found


def unit_for(folder: Path, configuration: str) -> dict[str, list[str]]:
    """The options of the unit for a configuration."""
    layout = layout_in(folder, personal=True)
    file = layout.disk(layout.config)
    file.parent.mkdir(parents=True, exist_ok=True)
    daemon = '[daemon]\nstore = "/var/lib/beetle/b.db"\nsocket = "/run/beetle/b.sock"\nprofile = "compact"\n'
    file.write_text(f"{daemon}{configuration}")
    wanted, _ = install_options(Namespace(), layout, {"HOME": "/srv/robot"}, os.getuid())
    return options(system_unit(LAYOUT, wanted.settings, LIMITS, "user"))


def test_folders_that_the_configuration_names_may_be_written(tmp_path: Path) -> None:
    for text, folder in (
        ('[snapshots]\nfolder = "/mnt/stick/beetle"\n', "/mnt/stick/beetle"),
        ('[replica]\nurl = "file:///mnt/usb/beetle"\n', "/mnt/usb/beetle"),
        ('[grpc]\nlisten = "unix:/srv/agents/g.sock"\n', "/srv/agents"),
        ('[grpc]\nlisten = "unix:///srv/agents/g.sock"\n', "/srv/agents"),
    ):
        found = unit_for(tmp_path, text)
        assert found["ReadWritePaths"] == [f"-{folder}"] and found["PrivateNetwork"] == ["yes"], text


MODEL = '[model]\nkind = "openai"\nname = "m"\n'
REPLICA = '[replica]\nurl = "nats://h/b"\n'
TLS = '[grpc]\ncertificate = "{}/c.pem"\nkey = "{}/k.pem"\nclient_ca = "/etc/ca.pem"\n'


@pytest.mark.parametrize(
    "text",
    [
        TLS.format("/home/op", "/etc"),
        TLS.format("/etc", "/home/op"),
        TLS.format("/etc", "/etc").replace("/etc/ca.pem", "/home/op/ca.pem"),
        f'{MODEL}api_key_file = "/home/op/key"\n',
        f'{MODEL}url = "unix:/home/op/model.sock"\n',
        f'{REPLICA}ca_file = "/home/op/ca.pem"\n',
        f'{REPLICA}command = "/home/op/bin/litestream"\n',
        f'{REPLICA}secret_file = "/home/op/secret"\n',
        '[agent_skills]\ndirs = ["/home/op/skills"]\n',
    ],
)
def test_a_file_that_the_configuration_names_is_not_hidden(tmp_path: Path, text: str) -> None:
    assert unit_for(tmp_path, text)["ProtectHome"] == ["read-only"]
    assert unit_for(tmp_path, text.replace("/home/op", "/var/tmp/op"))["PrivateTmp"] == ["no"]
    assert unit_for(tmp_path, text.replace("/home/op", "/srv"))["ProtectHome"] == ["yes"]


def test_the_network_is_as_wide_as_what_the_configuration_names(tmp_path: Path) -> None:
    metrics = '[metrics]\nlisten = "127.0.0.1:9464"\ntoken_file = "/etc/token"\n'
    for text, network in (
        (f'{MODEL}url = "unix:/run/model.sock"\n', "none"),
        ('[grpc]\nlisten = "unix:/run/g.sock"\n', "none"),
        (metrics, "loopback"),
        (MODEL, "loopback"),
        (f'{MODEL}url = "http://localhost:11434"\n', "loopback"),
        ('[grpc]\nlisten = "127.0.0.1:50051"\n', "loopback"),
        ('[grpc]\nlisten = "[::1]:50051"\n', "loopback"),
        ('[grpc]\nlisten = "0.0.0.0:50051"\n', "all"),
        (f'{metrics}[grpc]\nlisten = "[::]:50051"\n', "all"),
        (f'{MODEL}url = "https://models.example/v1"\n', "all"),
        (f"{metrics}{REPLICA}", "all"),
    ):
        found = unit_for(tmp_path, text)
        told = "none" if "PrivateNetwork" in found else "loopback" if "IPAddressAllow" in found else "all"
        assert told == network, text


def test_the_ceiling_is_the_profile_s_and_absent_where_the_profile_is_not_known() -> None:
    found = options(system_unit(LAYOUT, USUAL, Limits(96, 1100, 100), "user"))
    assert [found[name] for name in ("MemoryHigh", "MemoryMax", "LimitNOFILE", "TasksMax")] == [
        ["84M"], ["96M"], ["1100"], ["100"],
    ]  # fmt: skip
    assert not {"MemoryMax", "MemoryHigh"} & options(system_unit(LAYOUT, USUAL, None, "user")).keys()


def test_the_watchdog_is_slower_than_the_daemon_s_pings() -> None:
    seconds = int(options(system_unit(LAYOUT, USUAL, LIMITS, "user"))["WatchdogSec"][0])
    from beetle.runtime.host import supervisor

    # The daemon pings at half of it; a supervisor that does not read may hold one ping up for this long.
    assert seconds / 2 > supervisor.NOTIFY_SECONDS * 2


def test_a_port_of_the_machine_itself_opens_no_network() -> None:
    found = options(system_unit(LAYOUT, USUAL._replace(loopback=True), LIMITS, "user"))
    assert (found["IPAddressDeny"], found["IPAddressAllow"]) == (["any"], ["localhost"])
    assert "PrivateNetwork" not in found
    both = options(system_unit(LAYOUT, USUAL._replace(loopback=True, network=True), LIMITS, "user"))
    assert "IPAddressDeny" not in both


def test_a_unit_of_one_user_has_nothing_that_needs_root() -> None:
    found = options(personal_unit(LAYOUT, USUAL, LIMITS, (("XDG_DATA_HOME", "/srv/my data"),)))
    needs_root = re.compile("Protect|Private|User$|Group$|Capabilit|Directory|OOM|ReadWrite|IPAddress")
    assert [name for name in found if needs_root.search(name)] == []
    assert found["Environment"] == ['"XDG_DATA_HOME=/srv/my data"']


ODD = ("/srv/my data/100%/b$x", '/srv/o\'clock/"quoted"', "/srv/back\\slash")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
@pytest.mark.parametrize("kind", ["usual", "elsewhere", "dynamic", "network", "personal", *ODD])
def test_systemd_understands_every_unit(tmp_path: Path, kind: str) -> None:
    program = tmp_path / "current/beetle"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    layout = LAYOUT._replace(prefix=str(tmp_path))
    settings = {
        "elsewhere": Settings("/data/memory/b.db", "/run/robot/x/b.sock", "/var/log/b.log", "adm"),
        "network": USUAL._replace(network=True),
    }.get(kind, USUAL)
    if kind in ODD:
        settings = Settings(f"{kind}/b.db", f"{kind}/b.sock", f"{kind}/b.log")
        layout = layout._replace(config=f"{kind}/b.toml")
    text = system_unit(layout, settings, LIMITS, "dynamic" if kind == "dynamic" else "user")
    if kind == "personal":
        text = personal_unit(layout, settings, LIMITS, (("XDG_DATA_HOME", ODD[0]),))
    assert verified(tmp_path, text, personal=kind == "personal") == ""


def verified(folder: Path, text: str, *, personal: bool) -> str:
    """What `systemd-analyze verify` has to say."""
    unit = folder / "beetle.service"
    unit.write_text(text)
    words = ["systemd-analyze", *(["--user"] if personal else []), "verify", str(unit)]
    env = {**os.environ, "XDG_RUNTIME_DIR": str(folder)}
    done = subprocess.run(words, capture_output=True, text=True, env=env)
    # Other units of the machine that it loads along may have faults of their own.
    return "\n".join(line for line in (done.stdout + done.stderr).splitlines() if "beetle" in line)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_a_line_that_systemd_does_not_understand_would_be_seen(tmp_path: Path) -> None:
    text = system_unit(LAYOUT._replace(prefix=str(tmp_path)), USUAL, LIMITS, "user")
    assert "ProtectEverything" in verified(tmp_path, text.replace("UMask=", "ProtectEverything="), personal=False)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_systemd_calls_the_service_safe(tmp_path: Path) -> None:
    unit = tmp_path / "beetle.service"
    unit.write_text(system_unit(LAYOUT, USUAL, LIMITS, "user"))
    words = ["systemd-analyze", "security", "--offline=true", "--threshold=12", str(unit)]
    done = subprocess.run(words, capture_output=True, text=True)
    if "offline" in done.stderr:
        pytest.skip("this systemd-analyze knows no --offline")
    assert done.returncode == 0, done.stdout


def test_odd_paths_come_out_as_one_word(tmp_path: Path) -> None:
    layout = Layout(Path("/"), "/opt/my beetle", "/bin/beetle", ODD[0], None, False)
    line = options(system_unit(layout, USUAL, LIMITS, "user"))["ExecStart"][0]
    assert line == '"/opt/my beetle/current/beetle" --config "/srv/my data/100%%/b$$x" serve'
