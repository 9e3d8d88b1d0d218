"""What doctor looks at of what is around a daemon: its socket, the group that may use it, and its unit."""

from __future__ import annotations

import grp
import os
import pwd
import re
import shlex
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from beetle.cli.finding import Finding
from beetle.contracts.errors import BeetleError
from beetle.named_tuple import NamedTuple

if TYPE_CHECKING:
    from beetle.contracts.replication import ReplicationStatusReport
    from beetle.find import Target
    from beetle.runtime.host.config import Config

LIMIT_NAMES = ("MemoryMax", "LimitNOFILE", "TasksMax")
"""Lines of a unit that follow from the profile."""


def check_spool(env: Mapping[str, str]) -> Iterator[Finding]:
    """Events that hooks of this user have put aside for a daemon."""
    from beetle.spool import REFUSED_FILES, SPOOL_FILES, spool_folder, spool_line, spool_state

    folder = spool_folder(env)
    if not os.path.isdir(folder):
        return
    state = spool_state(folder)
    if state["events"] >= SPOOL_FILES:
        advice = "start the daemon that they are for: it takes them in (`beetle start`)"
        yield Finding("spool", "warning", f"{folder} is full, further events are lost: {spool_line(state)}", advice)
    elif state["events"]:
        advice = "the next hook that finds the daemon delivers them, and so does its next start"
        yield Finding("spool", "note", f"{folder}: {spool_line(state)}", advice)
    else:
        yield Finding("spool", "ok", f"{folder}: no event waits")
    if state["refused"]:
        text = f"{folder}/refused: {state['refused']:,} that no daemon took"
        advice = f"look at them, then remove them; beyond {REFUSED_FILES} they stay among those that wait"
        yield Finding("spool", "note", text, advice)


def check_socket(target: Target) -> Iterator[Finding]:
    """Whether this user may use each socket that a command would try."""
    from beetle.find import refuse_closed_socket

    for path in target.sockets:
        try:
            refuse_closed_socket(path)
        except BeetleError as error:
            yield Finding("socket", "problem", f"{error.message} {_who_may(path)}", _way_in(path), error.key)
            continue
        if os.path.exists(path):
            yield Finding("socket", "ok", f"{path} exists, and this user may use it")


def _barrier(path: str) -> str:
    """What keeps this user out: the first folder that cannot be entered, else the socket itself."""
    for folder in reversed(Path(path).parents):
        if not os.access(folder, os.X_OK, effective_ids=True):
            return str(folder)
    return path


def _who_may(path: str) -> str:
    barrier = _barrier(path)
    try:
        found = os.stat(barrier)
    except OSError:
        return ""
    return f"({barrier}: {_user(found.st_uid)}:{_group(found.st_gid)}, mode {stat.S_IMODE(found.st_mode):04o})"


def _way_in(path: str) -> str:
    own = "or name a store of your own with --store"
    try:
        found = os.stat(_barrier(path))
    except OSError:
        return f"ask its operator, {own}"
    needed = stat.S_IXGRP if stat.S_ISDIR(found.st_mode) else stat.S_IWGRP
    if not found.st_mode & needed:
        return f"its operator lets a group in: [daemon] group, then `beetle install` (`beetle help install`); {own}"
    user, group = _user(os.geteuid()), _group(found.st_gid)
    return f"as root: usermod -aG {group} {user}, and log in again; {own}"


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _group(gid: int) -> str:
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)


def check_group(config: Config, target: Target) -> Iterator[Finding]:
    """Whether the group of the configuration can reach the socket."""
    name = config.daemon.group
    if name is None or not target.sockets:
        return
    path = Path(target.sockets[0])
    try:
        gid = grp.getgrnam(name).gr_gid
    except KeyError:
        return  # the configuration's own check tells
    for folder in reversed(path.parents):
        try:
            found = folder.stat()
        except OSError:
            return  # not there yet, or not to be seen: the socket's own check tells
        if found.st_mode & (stat.S_IXGRP if found.st_gid == gid else stat.S_IXOTH):
            continue
        mode = stat.S_IMODE(found.st_mode)
        text = f"the group {name} cannot enter {folder} (group {_group(found.st_gid)}, mode {mode:04o})"
        advice = f"chgrp {name} {folder} && chmod g+x {folder}"
        if folder != path.parent:
            advice = f"chmod o+x {folder}, or another [daemon] socket, such as /run/beetle/beetle.sock"
        yield Finding("group", "problem", text, f"{advice}; until then its members get `forbidden`", "forbidden")
        return
    opened = _opened_to(path)
    if opened is not None and opened != gid:
        text = f"{path} is open to the group {_group(opened)}, and {config.file} names {name}"
        yield Finding("group", "warning", text, "restart the daemon; a service: `beetle install`", "forbidden")
        return
    yield Finding("group", "ok", f"the group {name} may enter {path.parent}")


def _opened_to(path: Path) -> int | None:
    """The group of a socket that is there, else None."""
    try:
        return path.stat().st_gid
    except OSError:
        return None


class Unit(NamedTuple):
    """A unit that `beetle install` wrote: its file, the configuration that it names, its limits."""

    file: Path
    config: Path
    limits: Mapping[str, int]

    @property
    def again(self) -> str:
        """The command that writes it again."""
        return "sudo beetle install" if self.file.parts[1] == "etc" else "beetle install --user"


def replica_findings(found: ReplicationStatusReport) -> Iterator[Finding]:
    """The replica that is kept, and those that were."""
    if found.state != "off":
        yield _replica_finding(found)
    for url in found.earlier_targets or ():
        text = f"{url} still has what was sent there, and what was erased since"
        advice = f"remove its files there, then: beetle replica forget --earlier-target {shlex.quote(url)}"
        yield Finding("replica", "warning", text, advice)


def _replica_finding(found: ReplicationStatusReport) -> Finding:
    """A replica that is kept, or why it is not."""
    text = f"{found.state}, {found.target_kind}"
    if found.state == "replicating":
        return Finding(
            "replica", "ok", f"{text}: {'nothing waits' if not found.lag_s else f'{found.lag_s:.1f} s behind'}"
        )
    if found.problem is None:
        return Finding("replica", "note", text, "ask again in a moment: beetle replica status")
    why = f"{text}: {found.problem}" if found.detail is None else f"{text}: {found.detail}"
    return Finding("replica", "warning", why, found.hint or "see `beetle help replication`")


def check_unit(env: Mapping[str, str], uid: int) -> Iterator[Finding]:
    """Whether each unit on this machine has the limits of the profile that its configuration names now."""
    from beetle.cli.installing import profile_limits
    from beetle.runtime.host.config import read_config, store_path

    for unit in _units(env):
        who = 0 if unit.file.parts[1] == "etc" else uid
        try:
            config = read_config(unit.config, {}, who)
            store = store_path(None, env, config, who)
            replicated = config.replica is not None
            name, _, limits = profile_limits(config.daemon.profile, Path("/"), store, replicated=replicated)
        except BeetleError as error:
            yield Finding("unit", "problem", f"{unit.file}: {error.message}", error.hint, error.key)
            continue
        wanted: Mapping[str, int] = dict(zip(LIMIT_NAMES, limits, strict=True))
        text = f"{unit.file} is for the profile {name}"
        differing = [each for each in LIMIT_NAMES if unit.limits.get(each) != wanted[each]]
        if not unit.limits:
            yield Finding("unit", "note", f"{unit.file} has no limits of a profile", f"{unit.again} writes them")
        elif differing:
            has = ", ".join(f"{each}={unit.limits.get(each)} instead of {wanted[each]}" for each in differing)
            text = f"{unit.file} was made for another profile than {name}, which {unit.config} gives now: {has}"
            yield Finding("unit", "warning", text, f"{unit.again} writes it again, and restarts the service")
        else:
            yield Finding("unit", "ok", text)


def _units(env: Mapping[str, str]) -> Iterator[Unit]:
    from beetle.deploy.unit import MARK

    settings = env.get("XDG_CONFIG_HOME", "")
    home = settings if settings.startswith("/") else f"{env.get('HOME', '')}/.config"
    for file in (Path("/etc/systemd/system/beetle.service"), Path(home) / "systemd/user/beetle.service"):
        try:
            text = file.read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        named = re.search(r'^ExecStart=\S{1,4096} --config ("?)([^\n]{1,4096})\1 serve$', text, re.MULTILINE)
        if text.startswith(MARK) and named is not None:
            found = re.findall(rf"^({'|'.join(LIMIT_NAMES)})=(\d+)M?$", text, re.MULTILINE)
            yield Unit(file, Path(_path_of(named[2])), {key: int(value) for key, value in found})


def _path_of(word: str) -> str:
    """A path as it was before the unit's quoting of one word."""
    return re.sub(r'\\(["\\])', r"\1", word.replace("%%", "%").replace("$$", "$"))
