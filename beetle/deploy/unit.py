"""The text of the systemd unit: for the system with a user of its own, and for one user's session."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable
from typing import Literal

from beetle.deploy.layout import RUN_FOLDER, STATE_FOLDER, USER, Layout, Limits, Settings

MARK = "# Written by `beetle install`"
Identity = Literal["user", "dynamic"]

SYSTEM_UNIT = """\
{mark}, and again by each later one. Change it in a drop-in: systemctl edit beetle
[Unit]
Description=Beetle, governed memory for agents on this device
{mounts}
[Service]
Type=notify
NotifyAccess=main
ExecStart={command}
# The program itself: a minimal system has neither kill(1) nor a shell.
ExecReload={reload}
# The daemon says at half of this that it lives.
WatchdogSec=60
# A large store is looked through, or brought to a new schema, before the daemon is ready.
TimeoutStartSec=300
Restart=on-failure
RestartSec=5
# What has begun is answered, and the last write is on disk, well before that.
TimeoutStopSec={stop}
# A wrong configuration (2) and a damaged or newer store (9) do not mend themselves.
RestartPreventExitStatus=2 9
# Only the daemon is told to end; what it has started, it ends itself after the last write.
KillMode=mixed

{identity}
UMask=0077
# Where the daemon looks for socket and store when its configuration names none.
Environment=XDG_RUNTIME_DIR=/run XDG_DATA_HOME=/var/lib
# Large blocks are given back when they are freed: else each of many threads keeps some of its own.
Environment=MALLOC_ARENA_MAX=1 MALLOC_MMAP_THRESHOLD_=131072
{places}
{limits}
# Small, and there for every agent: what takes the machine's memory is hardly ever this.
OOMScoreAdjust=-100

CapabilityBoundingSet=
AmbientCapabilities=
NoNewPrivileges=yes
ProtectSystem=strict
ProtectHome={home}
PrivateTmp={tmp}
PrivateDevices=yes
# Not PrivateUsers=, which would show every caller's uid as nobody's; not ProcSubset=pid, which hides the memory that
# the machine has from a profile of `auto`.
ProtectProc=invisible
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
RemoveIPC=yes
KeyringMode=private
{network}
{filters}

[Install]
WantedBy=multi-user.target
"""

PERSONAL_UNIT = """\
{mark}, and again by each later one. Change it in a drop-in: systemctl --user edit beetle
[Unit]
Description=Beetle, governed memory for agents of this user

[Service]
Type=notify
NotifyAccess=main
ExecStart={command}
ExecReload={reload}
WatchdogSec=60
TimeoutStartSec=300
Restart=on-failure
RestartSec=5
TimeoutStopSec={stop}
RestartPreventExitStatus=2 9
KillMode=mixed
UMask=0077
{environment}
{limits}
# What needs mounts or capabilities a user's service manager may not do.
NoNewPrivileges=yes
{network}
{filters}

[Install]
WantedBy=default.target
"""

FILTERS = """\
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
MemoryDenyWriteExecute=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallErrorNumber=EPERM"""

CLOSED = """\
# The configuration names no port and nothing elsewhere: there is no network, only the socket's file.
PrivateNetwork=yes
IPAddressDeny=any
RestrictAddressFamilies=AF_UNIX"""

CLOSED_FOR_A_USER = """\
# The configuration names no port and nothing elsewhere: there is no network, only the socket's file.
RestrictAddressFamilies=AF_UNIX"""

OPEN = """\
# The configuration names a model, a replica or a port that is not of this machine alone.
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6"""

LOOPBACK = """\
# The configuration names ports of this machine itself, and nothing elsewhere.
IPAddressDeny=any
IPAddressAllow=localhost
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6"""
STOP_SECONDS = 90
"""What has begun is answered within 40 s of this, or broken off; the rest is for the last write and its checkpoint."""


def system_unit(
    layout: Layout, settings: Settings, limits: Limits | None, identity: Identity, shared: Iterable[str] = ()
) -> str:
    """The unit of a whole system.

    A socket's folder directly below /run is made and removed by systemd, unless it is among the `shared` ones: those
    belong to somebody else.
    """
    folders = {posixpath.dirname(each) for each in (settings.store, settings.socket, settings.log) if each}
    used = (layout.prefix, layout.config, *folders, *settings.reads, *settings.writes)
    store = posixpath.dirname(settings.store)
    mounts = "" if store == STATE_FOLDER else f"RequiresMountsFor={_word(store)}\n"
    return SYSTEM_UNIT.format(
        mark=MARK,
        mounts=mounts,
        command=_command(layout, "serve"),
        reload=_command(layout, "reload"),
        stop=STOP_SECONDS,
        identity=_identity(identity, settings.group),
        places="\n".join(_places(settings, set(shared))),
        limits=_limits(limits),
        # Read-only, not hidden, where something that the daemon uses lies there.
        home="read-only" if _below(used, "/home", "/root", "/run/user") else "yes",
        tmp="no" if _below(used, "/tmp", "/var/tmp") else "yes",
        network=_network(settings, CLOSED),
        filters=FILTERS,
    )


def personal_unit(
    layout: Layout, settings: Settings, limits: Limits | None, environment: Iterable[tuple[str, str]]
) -> str:
    """The unit of one user's session. The daemon makes its folders itself, as without systemd."""
    named = [f"Environment={_word(f'{name}={value}')}\n" for name, value in environment]
    return PERSONAL_UNIT.format(
        mark=MARK,
        command=_command(layout, "serve"),
        reload=_command(layout, "reload"),
        stop=STOP_SECONDS,
        environment="".join(named),
        limits=_limits(limits),
        network=_network(settings, CLOSED_FOR_A_USER),
        filters=FILTERS,
    )


def starts(unit: str, layout: Layout) -> bool:
    """Whether a unit's text starts this installation's program."""
    return any(line.startswith(f"ExecStart={_word(layout.program)} ") for line in unit.splitlines())


def _network(settings: Settings, closed: str) -> str:
    return OPEN if settings.network else LOOPBACK if settings.loopback else closed


def _command(layout: Layout, word: str) -> str:
    # A `$` begins a variable in the arguments, though not in the path of the program.
    return f"{_word(layout.program)} --config {_word(layout.config.replace('$', '$$'))} {word}"


def _identity(identity: Identity, group: str | None) -> str:
    if identity == "user":
        return f"User={USER}\nGroup={_word(group or USER)}"
    lines = [
        "# No tool that makes users was found: systemd lends one, whose store is in /var/lib/private/beetle.",
        f"DynamicUser=yes\nUser={USER}",
    ]
    return "\n".join([*lines, f"Group={_word(group)}"] if group else lines)


def _places(settings: Settings, shared: set[str]) -> Iterable[str]:
    writable = {*settings.writes, *([posixpath.dirname(settings.log)] if settings.log else [])}
    store = posixpath.dirname(settings.store)
    if store == STATE_FOLDER:
        yield f"StateDirectory={posixpath.basename(STATE_FOLDER)}\nStateDirectoryMode=0700"
    else:
        writable.add(store)
    folder = posixpath.dirname(settings.socket)
    if posixpath.dirname(folder) == posixpath.dirname(RUN_FOLDER) and folder not in shared:
        # Whoever may use the socket must be able to reach it, and nobody else.
        mode = "0750" if settings.group else "0700"
        yield f"RuntimeDirectory={_word(posixpath.basename(folder))}\nRuntimeDirectoryMode={mode}"
    else:
        writable.add(folder)
    for each in sorted(writable):
        # With a dash: a folder that is missing gives the daemon's own error, which says what to do.
        yield f"ReadWritePaths={_word(f'-{each}')}"


def _limits(limits: Limits | None) -> str:
    if limits is None:
        return ""
    lines = [
        "\n# The profile's ceiling. An eighth below it the kernel begins to take pages of files away.",
        f"MemoryHigh={limits.memory_mib * 7 // 8}M",
        f"MemoryMax={limits.memory_mib}M",
        f"LimitNOFILE={limits.files}",
        f"TasksMax={limits.tasks}",
    ]
    return "\n".join(lines)


def _below(paths: Iterable[str], *folders: str) -> bool:
    return any(f"{path}/".startswith(f"{folder}/") for path in paths for folder in folders)


def _word(text: str) -> str:
    """One word of a unit's line."""
    text = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{text}"' if any(each in text for each in " \t'\"\\;") else text
