"""doctor says what it found and what to do."""

from __future__ import annotations

import grp
import os
import resource
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from beetle.cli import doctor
from beetle.cli.installing import profile_limits
from beetle.deploy.layout import Layout, Settings
from beetle.deploy.unit import personal_unit
from beetle.runtime.host.identity import LOST
from tests.running import Daemon

from .conftest import CommandLine


def findings(beetle: CommandLine) -> dict[str, dict[str, Any]]:
    said = beetle.here("--json", "doctor")
    assert said.code == said.json["exit_code"]
    return {each["check"]: each for each in said.json["findings"]}


def test_a_machine_without_a_store_is_told_that_the_first_write_makes_it(beetle: CommandLine) -> None:
    found = findings(beetle)
    assert found["store"]["level"] == "note"
    assert "wrote, recalled and verified" in found["build"]["text"]
    assert not Path(beetle.store).exists()


def test_a_store_without_a_daemon_is_opened_and_left_closed(beetle: CommandLine) -> None:
    beetle.here("transcript", "commit", "--conversation", "c", "--text", "x")
    assert findings(beetle)["store"]["level"] == "ok"
    assert beetle.here("transcript", "conversations").code == 0


def test_a_damaged_store_is_a_problem_with_its_exit_code(beetle: CommandLine) -> None:
    Path(beetle.store).write_bytes(b"this is no database" * 400)
    said = beetle.here("--json", "doctor")
    worst = [each for each in said.json["findings"] if each["exit_code"]]
    assert said.code == 9
    assert [each["check"] for each in worst] == ["store"]
    assert worst[-1]["key"] == "store_corrupt"
    assert worst[-1]["advice"]


def test_an_empty_file_is_no_store_yet(beetle: CommandLine) -> None:
    Path(beetle.store).touch()
    assert (findings(beetle)["store"]["level"], Path(beetle.store).stat().st_size) == ("note", 0)


def test_a_hard_limit_of_too_few_open_files_is_a_warning_with_its_remedy(
    beetle: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (64, 64))
    found = findings(beetle)["limits"]
    assert (found["level"], found["exit_code"]) == ("warning", 1)
    assert found["advice"].startswith("LimitNOFILE=")


def test_open_files_that_the_daemon_allows_itself_are_no_warning(
    beetle: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (64, 4096))
    found = findings(beetle)["limits"]
    assert (found["level"], found["exit_code"]) == ("ok", 0)


def test_events_that_hooks_have_spooled_are_told(
    beetle: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert "spool" not in findings(beetle)
    folder = tmp_path / "beetle/spool"
    folder.mkdir(parents=True)
    assert findings(beetle)["spool"]["level"] == "ok"
    (folder / "01767225600000000000-7-ab.json").write_text("{}")
    found = findings(beetle)["spool"]
    assert (found["level"], found["exit_code"]) == ("note", 0)
    assert "1 event waits for a daemon, the oldest since 2026-01-01T00:00:00Z" in found["text"] and found["advice"]
    monkeypatch.setattr("beetle.spool.SPOOL_FILES", 1)
    assert (findings(beetle)["spool"]["level"], findings(beetle)["spool"]["exit_code"]) == ("warning", 1)


def test_a_clock_of_1970_is_a_warning(beetle: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor.time, "time", lambda: 3600.0)
    found = findings(beetle)["clock"]
    assert (found["level"], found["exit_code"]) == ("warning", 1)
    assert "1970-01-01T01:00:00Z" in found["text"]


def test_a_folder_that_others_may_change_is_a_warning(
    beetle: CommandLine, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    beetle.folder.chmod(0o777)
    # A configuration is not taken from there at all.
    assert findings(beetle)["config"]["advice"] == f"chmod go-w {beetle.folder}"
    apart = tmp_path_factory.mktemp("apart") / "beetle.toml"
    apart.write_text("")
    monkeypatch.setenv("BEETLE_CONFIG", str(apart))
    assert findings(beetle)["folder"]["advice"] == f"chmod go-w {beetle.folder}"


def test_a_configuration_that_cannot_be_read_is_a_problem_and_the_rest_is_still_checked(beetle: CommandLine) -> None:
    (beetle.folder / "beetle.toml").write_text("[daemon]\nsokcet = '/x'\n")
    found = findings(beetle)
    assert found["config"]["level"] == "problem"
    assert found["build"]["level"] == "ok"


@pytest.mark.parametrize(
    "wrong",
    [
        '[scheduler.jobs]\nsnapshot = "99 * * * * *"', '[scheduler.jobs]\nsnapshut = "@daily"',
        '[scheduler]\ntime_zone = "Europe/Nowhere"', '[daemon]\ngroup = "no-such-group"',
        '[daemon]\nprofile = "huge"', '[console.keys]\nrefresh = "d"',
    ],
)  # fmt: skip
def test_a_configuration_with_which_nothing_starts_is_a_problem_at_its_line(beetle: CommandLine, wrong: str) -> None:
    file = beetle.folder / "beetle.toml"
    file.write_text(f"# mine\n{wrong}\n")
    said = beetle.here("--json", "doctor").json["findings"]
    found = [each for each in said if each["check"] == "config"]
    assert [(each["level"], each["key"]) for each in found] == [("problem", "invalid_request")]
    assert found[0]["text"].startswith(f"{file}:3: $.") and found[0]["advice"]
    checked = beetle.run("config", "check", str(file))
    assert checked.error[1:] == (found[0]["text"], found[0]["advice"])


PROFILES = {each: f"profile-linux-device-{each}-memory" for each in ("compact", "standalone")}


@pytest.mark.parametrize(("profile", "keeps"), [("compact", False), ("standalone", True)])
def test_a_replica_that_the_profile_leaves_out_is_a_warning(beetle: CommandLine, profile: str, keeps: bool) -> None:
    target = beetle.folder / "target"
    target.mkdir()
    (beetle.folder / "beetle.toml").write_text(f'[replica]\nurl = "file://{target}"\n')

    def warned(*words: str) -> bool:
        said = beetle.run(*words, "--profile", profile, "--json", "doctor")
        found = {each["check"]: each for each in said.json["findings"]}
        return found.get("replica", {}).get("text", "").endswith(f"{PROFILES[profile]} sends nothing there")

    assert warned("--store", beetle.store) is not keeps
    with Daemon(profile=profile, folder=str(beetle.folder)) as daemon:
        assert warned("--socket", daemon.socket, "--store", daemon.store) is not keeps


def test_the_text_has_the_advice_below_each_finding(beetle: CommandLine) -> None:
    said = beetle.here("doctor")
    assert "note     daemon     none runs; commands open the store themselves\n" in said.out
    assert "                    → beetle start\n" in said.out


def test_a_key_file_that_others_may_read_is_a_warning_with_a_command(beetle: CommandLine) -> None:
    beetle.here("transcript", "commit", "--conversation", "c", "--text", "x")
    assert (findings(beetle)["identity"]["level"], findings(beetle)["identity"]["exit_code"]) == ("ok", 0)
    key = Path(f"{beetle.store}.identity")
    key.chmod(0o644)
    found = findings(beetle)["identity"]
    assert (found["level"], found["exit_code"]) == ("warning", 1)
    assert "the private plane is closed, and receipts are unsigned" in found["text"]
    assert found["advice"].endswith(f"chmod 600 {key}")
    shown = beetle.here("memory", "inspect")
    assert f"exposed: the key file {key} can be read by others" in shown.out


def test_a_running_daemon_tells_of_its_own_identity(beetle: CommandLine) -> None:
    with Daemon(profile="standalone", folder=str(beetle.folder)) as daemon:
        Path(f"{daemon.store}.identity").unlink()
        said = beetle.run("--socket", daemon.socket, "--store", daemon.store, "--json", "doctor")
    found = {each["check"]: each for each in said.json["findings"]}["identity"]
    assert (found["level"], found["advice"]) == ("warning", f"put {daemon.store}.identity back from its backup{LOST}")


def test_a_job_that_failed_is_named_the_model_s_among_them(beetle: CommandLine) -> None:
    """Nobody listens where the model should be: port 9 of this machine is the discard service's."""
    config = beetle.folder / "model.toml"
    config.write_text('[model]\nkind = "openai"\nname = "m"\nurl = "http://127.0.0.1:9/v1"\nsummaries = true\n')
    with pytest.MonkeyPatch.context() as env:
        env.setenv("BEETLE_CONFIG", str(config))
        with Daemon(profile="standalone", folder=str(beetle.folder)) as daemon, daemon.client() as client:
            told = {
                "event_id": "e",
                "session_id": "s",
                "timestamp_ms": 0,
                "event_type": "user_message",
                "text": "A key.",
            }
            client.call("event.ingest", {"event": told})
            for name in ("outbox-processor", "segment-summarizer", "model-summaries"):
                client.call("scheduler.run", {"job_name": name, "wait": True})
            said = beetle.run("--socket", daemon.socket, "--store", daemon.store, "--json", "doctor")
    found = {each["check"]: each for each in said.json["findings"]}["jobs"]
    assert (found["level"], found["text"]) == ("warning", "model-summaries failed: the model cannot be reached")
    assert found["advice"].endswith("beetle scheduler run model-summaries --wait")


def write_unit(beetle: CommandLine, config: Path, profile: str) -> Path:
    """The unit of an installation of this user, as `beetle install` writes it for a profile."""
    unit = beetle.folder / ".config/systemd/user/beetle.service"
    unit.parent.mkdir(parents=True, exist_ok=True)
    layout = Layout(Path("/"), "/opt/beetle", "/bin/beetle", str(config), str(unit), True)
    limits = profile_limits(profile, Path("/"), beetle.store)[2]
    unit.write_text(personal_unit(layout, Settings(beetle.store, beetle.socket), limits, ()))
    return unit


def test_a_unit_that_was_made_for_another_profile_is_a_warning(beetle: CommandLine) -> None:
    config = beetle.folder / "odd $ % name.toml"
    config.write_text('[daemon]\nprofile = "compact"\n')
    assert "unit" not in findings(beetle)
    unit = write_unit(beetle, config, "compact")
    found = findings(beetle)["unit"]
    assert (found["level"], found["text"]) == ("ok", f"{unit} is for the profile compact")
    config.write_text('[daemon]\nprofile = "standalone"\n')
    found = findings(beetle)["unit"]
    assert (found["level"], found["exit_code"]) == ("warning", 1)
    assert "made for another profile than standalone" in found["text"] and "MemoryMax=48 instead of 96" in found["text"]
    assert found["advice"].startswith("beetle install --user")
    config.unlink()
    found = findings(beetle)["unit"]
    assert (found["level"], found["key"]) == ("problem", "invalid_request") and str(config) in found["text"]
    unit.write_text(unit.read_text().replace("# Written by `beetle install`", "# mine"))
    assert "unit" not in findings(beetle)


def group_found(beetle: CommandLine, group: str) -> dict[str, Any]:
    (beetle.folder / "beetle.toml").write_text(f'[daemon]\nsocket = "{beetle.socket}"\ngroup = "{group}"\n')
    said = beetle.run("--json", "doctor").json
    return {each["check"]: each for each in said["findings"]}["group"]


def test_a_group_that_cannot_enter_the_folder_of_the_socket_is_a_problem(beetle: CommandLine) -> None:
    group = grp.getgrgid(os.getgid()).gr_name
    beetle.folder.chmod(0o700)
    found = group_found(beetle, group)
    assert (found["level"], found["key"], found["exit_code"]) == ("problem", "forbidden", 5)
    assert f"the group {group} cannot enter {beetle.folder} (group {group}, mode 0700)" == found["text"]
    assert found["advice"].startswith(f"chgrp {group} {beetle.folder} && chmod g+x {beetle.folder}")
    beetle.folder.chmod(0o710)
    assert group_found(beetle, group)["level"] == "ok"


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file to any group")
def test_a_folder_above_that_the_group_cannot_enter_and_a_socket_of_another_group_are_told(beetle: CommandLine) -> None:
    other = next(each for each in grp.getgrall() if each.gr_gid != os.getgid())
    inner = beetle.folder / "inner"
    inner.mkdir(0o755)
    beetle.socket = str(inner / "b.sock")
    beetle.folder.chmod(0o700)
    found = group_found(beetle, other.gr_name)
    assert found["level"] == "problem" and found["advice"].startswith(f"chmod o+x {beetle.folder}, or another")
    beetle.folder.chmod(0o711)
    Path(beetle.socket).touch()
    found = group_found(beetle, other.gr_name)
    assert (found["level"], found["exit_code"]) == ("warning", 1) and "restart the daemon" in found["advice"]
    os.chown(beetle.socket, -1, other.gr_gid)
    assert group_found(beetle, other.gr_name)["level"] == "ok"


def test_a_lost_identity_is_renewed_by_a_daemon_once_somebody_says_yes(beetle: CommandLine) -> None:
    """Over the socket; without a terminal and without --yes nothing is done."""
    with Daemon(profile="standalone", folder=str(beetle.folder)) as daemon:
        ask = partial(beetle.run, "--socket", daemon.socket)
        assert ask("identity", "renew").out.startswith("Identity: usable\nIt works")
        assert ask("identity", "renew", "--yes").error[0] == "conflict"
        key = Path(f"{daemon.store}.identity")
        key.unlink()
        shown = ask("identity", "renew")
        assert (shown.code, shown.err) == (1, "Nothing was changed; give --yes.\n")
        assert "0 private records and waiting texts would be closed" in shown.out
        assert not key.exists() and not os.path.lexists(f"{key}.new")
        done = ask("identity", "renew", "--yes", "--json")
        assert done.code == 0 and done.json["changed"] and done.json["head_signed"] and key.exists()
        assert ask("verify").out.endswith("Clean.\n")
        assert "identity_renewed" in ask("log").out
