"""The tools of the running machine: systemd, and the makers of system users."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from beetle.deploy.layout import SERVICE, STATE_FOLDER, USER, Layout
from beetle.deploy.steps import ToolFailed
from beetle.named_tuple import NamedTuple

NO_LOGIN = ("/usr/sbin/nologin", "/sbin/nologin", "/bin/false")
ALREADY = 9
"""useradd's exit code for a name that is there, in whatever database the machine asks."""


class Machine(NamedTuple):
    """How commands are run here. `marker` is the file that is there while the service manager runs."""

    path: str
    env: Mapping[str, str]
    marker: Path

    def find(self, tool: str) -> str | None:
        """Where a tool is."""
        return shutil.which(tool, path=self.path)

    def run(self, words: Sequence[str]) -> subprocess.CompletedProcess[str]:
        """Run a tool to its end."""
        return subprocess.run(
            words, env=dict(self.env), stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", errors="replace"
        )

    def must(self, words: Sequence[str], hint: str, fine: Sequence[int] = (0,)) -> None:
        """Run a tool; `fine` are the exit codes that are none of an error.

        Raises:
            ToolFailed: with what it said last.
        """
        done = self.run(words)
        if done.returncode not in fine:
            said = (done.stderr.strip() or done.stdout.strip() or f"exit code {done.returncode}").splitlines()[-1]
            raise ToolFailed(command=" ".join([os.path.basename(words[0]), *words[1:]]), reason=said, hint=hint)


class Service:
    """The unit of this installation, through systemctl."""

    def __init__(self, machine: Machine, personal: bool) -> None:
        self._machine = machine
        self._personal = personal

    @property
    def manager_runs(self) -> bool:
        """Whether systemd runs this machine, or this user's session."""
        return self._machine.marker.exists() and self._machine.find("systemctl") is not None

    @property
    def command(self) -> str:
        """How a person calls systemctl for it."""
        return "systemctl --user" if self._personal else "systemctl"

    @property
    def journal(self) -> str:
        """The command that shows its log."""
        return f"journalctl {'--user ' if self._personal else ''}-u {SERVICE} -n 20"

    def call(self, *words: str) -> None:
        """Raises ToolFailed."""
        self._machine.must(self._systemctl(*words), f"see {self.journal}")

    def state(self) -> tuple[bool, int]:
        """Whether it runs or is starting, and the pid of its main process, 0 where there is none."""
        done = self._machine.run(self._systemctl("show", "--property=ActiveState,MainPID", SERVICE))
        told = dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)
        pid = told.get("MainPID", "0")
        active = told.get("ActiveState") in ("active", "activating", "reloading")
        return active, int(pid) if pid.isdecimal() else 0

    def _systemctl(self, *words: str) -> list[str]:
        tool = self._machine.find("systemctl") or "systemctl"
        return [tool, *(["--user"] if self._personal else []), *words]


def entry(layout: Layout, file: Literal["passwd", "group"], name: str) -> list[str] | None:
    """The fields of a name's line in the system's own file of users or groups, None where it has none."""
    try:
        text = layout.disk(f"/etc/{file}").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    lines = (line.split(":") for line in text.splitlines())
    return next((each for each in lines if each[0] == name and len(each) > 3), None)


def user_commands(machine: Machine, layout: Layout) -> list[list[str]] | None:
    """What makes the user `beetle`, without a home and a login; None where no tool of ours is there."""
    shell = next((each for each in NO_LOGIN if os.path.exists(each)), NO_LOGIN[-1])
    has_group = entry(layout, "group", USER) is not None
    comment = "Beetle memory daemon"
    if tool := machine.find("useradd"):
        group = ["--gid", USER] if has_group else ["--user-group"]
        named = ["--home-dir", STATE_FOLDER, "--shell", shell, "--comment", comment]
        return [[tool, "--system", "--no-create-home", *group, *named, USER]]
    # Without useradd these two are BusyBox's; Debian's adduser comes with useradd.
    user, group = machine.find("adduser"), machine.find("addgroup")
    if user is None or group is None:
        return None
    made = [] if has_group else [[group, "-S", USER]]
    return [*made, [user, "-S", "-D", "-H", "-h", STATE_FOLDER, "-s", shell, "-g", comment, "-G", USER, USER]]


def make_user(machine: Machine, commands: list[list[str]]) -> None:
    """Run `user_commands`.

    Raises:
        ToolFailed: with the command to try by hand.
    """
    for words in commands:
        machine.must(words, "make the user by hand with that command, and run it again", (0, ALREADY))
