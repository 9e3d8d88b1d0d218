"""`install` and `roll_back`, step by step. Each step finds out by itself whether there is anything to do."""

from __future__ import annotations

import contextlib
import json
import os
import posixpath
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from beetle.deploy import in_use
from beetle.deploy.frozen import IN_USE
from beetle.deploy.install_tree import check, is_regular, manifest_of
from beetle.deploy.layout import RUN_FOLDER, STATE_FOLDER, USER, InstallOptions, Layout, Settings
from beetle.deploy.machine import Machine, Service, entry, make_user, user_commands
from beetle.deploy.manifest import MANIFEST, SIGNATURE, Manifest
from beetle.deploy.ownership import (
    SYSUSERS,
    SYSUSERS_LINE,
    clear_drafts,
    has_link,
    has_unit,
    makes_user,
    refuse_inside,
    refuse_others,
    refuse_outside,
)
from beetle.deploy.prefix import CURRENT, PREVIOUS, NoPreviousVersion, Pending, Prefix
from beetle.deploy.steps import (
    OnStep,
    StepResult,
    Steps,
    ToolFailed,
    content,
    make_folder,
    write_file,
    writing,
)
from beetle.deploy.unit import Identity, personal_unit, system_unit
from beetle.named_tuple import NamedTuple

ServiceState = Literal["none", "written", "enabled", "running"]


class Report(NamedTuple):
    """What is installed now (of a dry run: what would be).

    `group` may use the socket; `unit` is None where none was wanted or none can be used.
    """

    version: str
    previous: str | None
    prefix: str
    program: str
    config: str
    profile: str
    store: str
    socket: str
    group: str | None
    unit: str | None
    service: ServiceState
    changed: bool
    dry_run: bool
    steps: tuple[StepResult, ...]


def install(
    layout: Layout,
    source: Path,
    wanted: InstallOptions,
    machine: Machine | None,
    on_step: OnStep,
    *,
    dry_run: bool = False,
) -> Report:
    """Install the tree at `source`; `machine` is None where no tool may be run.

    Raises:
        Damaged: the tree is not what its MANIFEST says.
        InsideVersions: the store, or another thing that is to last, would be in the folder of a version.
        NotOurs: the prefix, the link, the unit or the user's line is somebody else's.
        NoRoom, NotWritable: what was installed before is as it was.
        ToolFailed: everything is in place, but the user could not be made or the service did not start.
    """
    steps = Steps(on_step, dry_run)
    prefix = Prefix(layout.disk(layout.prefix))
    manifest = manifest_of(source)
    check(source, manifest, modes=False)
    with writing(layout.prefix), contextlib.ExitStack() as stack:
        folder = _store_folder(layout, wanted.settings)
        refuse_inside(layout, wanted.settings)
        refuse_others(layout, prefix, *([folder] if folder else []))
        prefix.refuse_links(manifest)
        stack.enter_context(_held(prefix, steps))
        before = prefix.named(CURRENT)
        _clear(layout, prefix, steps)
        if not dry_run:
            prefix.end_rollback()
        _put(layout, prefix, source, manifest, steps)
        _switch(prefix, manifest.name, steps)
        _link(layout, steps)
        identity = _user(layout, machine, steps) if layout.unit and not layout.personal else None
        group = _config(layout, wanted, identity, steps)
        wanted = wanted._replace(settings=wanted.settings._replace(group=group))
        unit = _unit(layout, wanted, identity, steps) if layout.unit else False
        state = _serve(layout, wanted, machine, prefix, manifest.name, unit, steps)
        _prune(prefix, manifest.name, source, steps)
        previous = before if dry_run and before != manifest.name else prefix.named(PREVIOUS)
    return Report(
        version=manifest.name,
        previous=previous,
        prefix=layout.prefix,
        program=layout.link,
        config=layout.config,
        profile=wanted.profile,
        store=wanted.settings.store,
        socket=wanted.settings.socket,
        group=group,
        unit=layout.unit,
        service=state,
        changed=steps.changed,
        dry_run=dry_run,
        steps=tuple(steps.results),
    )


class RolledBack(NamedTuple):
    """The two versions after they changed places."""

    version: str
    previous: str
    prefix: str
    service: ServiceState
    changed: bool
    dry_run: bool
    steps: tuple[StepResult, ...]


def roll_back(
    layout: Layout, machine: Machine | None, on_step: OnStep, *, starts: bool = True, dry_run: bool = False
) -> RolledBack:
    """Let `current` and `previous` change places, and restart a service that runs. One that was interrupted is ended.

    Raises:
        NoPreviousVersion: there is no previous version.
        LeadsOut: an image leads out of its root.
        Damaged: it is not what its MANIFEST says.
        ToolFailed: the service did not start.
    """
    steps = Steps(on_step, dry_run)
    prefix = Prefix(layout.disk(layout.prefix))
    refuse_outside(layout)
    if not prefix.is_there:
        raise NoPreviousVersion(
            prefix=layout.prefix, hint="name the folder of the installation with --prefix, or --user"
        )
    with writing(layout.prefix), _held(prefix, steps):
        pending = _clear(layout, prefix, steps)
        now, before = pending.name if pending else prefix.named(CURRENT), prefix.named(PREVIOUS)
        if now is None or before is None or now == before:
            raise NoPreviousVersion(
                prefix=layout.prefix, hint=f"`ls {layout.prefix}/versions` lists the installed versions"
            )
        if pending is not None and pending.is_rollback:
            # The one that is asked for again: to change places once more would undo it.
            before, now = now, before
        else:
            prefix.check(before)
            text = f"current is {before}, previous is {now}"
            steps.do("switch", text, lambda: prefix.switch(before, is_rollback=True))
        state: ServiceState = "none"
        try:
            if machine is not None and has_unit(layout):
                state = _restart(layout, machine, prefix, before, starts, steps)
        except ToolFailed:
            # That is an end too, and the hint says that another rollback leads back.
            _end_rollback(prefix, steps)
            raise
        _end_rollback(prefix, steps)
    return RolledBack(before, now, layout.prefix, state, True, dry_run, tuple(steps.results))


def _end_rollback(prefix: Prefix, steps: Steps) -> None:
    if not steps.dry_run:
        prefix.end_rollback()


@contextlib.contextmanager
def _held(prefix: Prefix, steps: Steps) -> Iterator[None]:
    if steps.dry_run:
        yield
        return
    with prefix.held(lambda: steps.say("lock", "note", f"another install in {prefix.folder} has to end first")):
        yield


def _clear(layout: Layout, prefix: Prefix, steps: Steps) -> Pending | None:
    """Remove what an interrupted run left, and end the switch that it began: which that was."""
    for each in prefix.leftovers():
        steps.do("clean", f"{each}, left by an interrupted run", lambda path=each: shutil.rmtree(path))
    clear_drafts(layout, prefix, steps)
    pending = prefix.pending()
    if pending is not None and pending.name == prefix.named(CURRENT):
        steps.say("switch", "already", f"current is {pending.name}, as an interrupted run meant it")
    if pending is not None and pending.name != prefix.named(CURRENT):
        steps.do("switch", f"current is {pending.name}, as an interrupted run meant it", prefix.finish_switch)
    elif not steps.dry_run:
        prefix.finish_switch()
    return pending


def _put(layout: Layout, prefix: Prefix, source: Path, manifest: Manifest, steps: Steps) -> None:
    tree = prefix.tree(manifest.name)
    place = f"{layout.prefix}/versions/{manifest.name}"
    if not tree.is_dir():
        size = sum(each.size for each in manifest.entries)
        files = f"{place} ({len(manifest.entries)} files, {size / 1e6:.1f} MB)"
        steps.do("tree", files, lambda: prefix.put(source, manifest))
        return
    wrong = prefix.wrong(manifest)
    signature = content(source / SIGNATURE)
    newly_signed = signature is not None and signature != content(tree / SIGNATURE)
    if wrong or newly_signed or not is_regular(tree / IN_USE) or content(tree / MANIFEST) != content(source / MANIFEST):
        damaged = f"{len(wrong)} of {len(manifest.entries)} files were damaged, and are" if wrong else "its lists are"
        text = f"{place}: {damaged} copied again"
        steps.do("tree", text, lambda: prefix.mend(source, manifest, wrong))
    else:
        steps.say("tree", "already", place)


def _switch(prefix: Prefix, name: str, steps: Steps) -> None:
    before = prefix.named(CURRENT)
    if before == name:
        steps.say("switch", "already", f"current is {name}")
    else:
        was = f", previous is {before}" if before else ""
        steps.do("switch", f"current is {name}{was}", lambda: prefix.switch(name))


def _link(layout: Layout, steps: Steps) -> None:
    link = layout.disk(layout.link)
    text = f"{layout.link} → {layout.program}"
    if has_link(layout):
        steps.say("link", "already", text)
        return

    def make() -> None:
        make_folder(link.parent)
        os.symlink(layout.program, link)

    steps.do("link", text, make)


def _user(layout: Layout, machine: Machine | None, steps: Steps) -> Identity:
    """Who the service runs as.

    A user of its own owns the store and the socket, can be named in a group or with `sudo -u`, and keeps its uid. A
    lent one (DynamicUser=) is second best: its uid may change, its group cannot be named in the configuration, and the
    store moves to a folder that only root may look into. It serves where nothing can make a user.
    """
    if entry(layout, "passwd", USER) is not None:
        steps.say("user", "already", USER)
        return "user"
    if machine is None:
        if makes_user(layout):
            steps.say("user", "already", f"{USER}, by {SYSUSERS}")
        else:
            steps.do("user", f"{USER}, by {SYSUSERS}", lambda: write_file(layout.disk(SYSUSERS), SYSUSERS_LINE))
        return "user"
    commands = user_commands(machine, layout)
    if commands is None:
        steps.say("user", "left", "no useradd and no adduser here: systemd lends a user (DynamicUser=yes)")
        return "dynamic"
    steps.do("user", f"{USER}, without a login", lambda: make_user(machine, commands))
    return "user"


def _config(layout: Layout, wanted: InstallOptions, identity: Identity | None, steps: Steps) -> str | None:
    """Write the configuration where there is none; the group that may use the socket, by then."""
    group = USER if identity == "user" else None
    if os.path.lexists(layout.disk(layout.config)):
        steps.say("config", "already", f"{layout.config} is left as it is")
        if identity == "user":
            _check_readable(layout, steps)
        # One that was not there when the settings were read is what another install has just written.
        return wanted.settings.group if wanted.configured else group
    text = config_text(wanted, group).encode()
    what = f"{layout.config} with profile {wanted.profile}"
    steps.do("config", what, lambda: write_file(layout.disk(layout.config), text))
    return group


def _check_readable(layout: Layout, steps: Steps) -> None:
    status = layout.disk(layout.config).stat()
    if not status.st_mode & 0o044 and status.st_uid != _uid(layout):
        text = f"the service's user {USER} cannot read it: chgrp {USER} {layout.config}; chmod g+r {layout.config}"
        steps.say("config", "note", text)


def config_text(wanted: InstallOptions, group: str | None) -> str:
    """A new configuration. It names what was asked for and the profile; everything else is left to the defaults."""
    lines = [
        "# Written by `beetle install`, which leaves it alone from now on. The service allows what this file names:",
        "# after a change of the store, the socket, the log, the group or the profile, and with a new [model],",
        "# [replica], [grpc], [metrics] or folder in [snapshots], run `beetle install` again. After a change of",
        "# [principals] a reload is enough.",
        "",
        "[daemon]",
        *(f"# {each}" for each in wanted.why),
        f"profile = {_toml(wanted.profile)}",
    ]
    if group is not None:
        lines += [
            "# Its members may connect; what they may do there, [principals.NAME] says.",
            f"group = {_toml(group)}",
        ]
    lines += [f"{key} = {_toml(value)}" for key, value in wanted.given]
    return "\n".join([*lines, "", wanted.example] if wanted.example else [*lines, ""])


def _toml(text: str) -> str:
    # TOML's basic strings are JSON's, but for DEL, which no path of ours has.
    return json.dumps(text, ensure_ascii=False)


def _unit(layout: Layout, wanted: InstallOptions, identity: Identity | None, steps: Steps) -> bool:
    """Write the unit; whether it is another than before."""
    assert layout.unit is not None
    if identity is None:
        text = personal_unit(layout, wanted.settings, wanted.limits, wanted.environment)
    else:
        _make_store_folder(layout, wanted.settings, steps)
        text = system_unit(layout, wanted.settings, wanted.limits, identity, _shared(layout, wanted.settings))
    file = layout.disk(layout.unit)
    if content(file) == text.encode():
        steps.say("unit", "already", layout.unit)
        return False
    steps.do("unit", layout.unit, lambda: write_file(file, text.encode()))
    return True


def _uid(layout: Layout) -> int | None:
    found = entry(layout, "passwd", USER)
    return int(found[2]) if found and found[2].isdecimal() else None


def _shared(layout: Layout, settings: Settings) -> tuple[str, ...]:
    """The socket's folder, where it is there and somebody else's: systemd would take it over and remove it."""
    folder = posixpath.dirname(settings.socket)
    if folder == RUN_FOLDER:
        return ()
    try:
        owner = layout.disk(folder).stat().st_uid
    except FileNotFoundError:
        return ()
    return () if owner == _uid(layout) else (folder,)


def _store_folder(layout: Layout, settings: Settings) -> str | None:
    """The folder to make for the store; None where systemd makes it (the usual one), or one user's daemon."""
    folder = posixpath.dirname(settings.store)
    return None if layout.unit is None or layout.personal or folder == STATE_FOLDER else folder


def _make_store_folder(layout: Layout, settings: Settings, steps: Steps) -> None:
    """Another folder than the usual one is made here, for the service's user, or looked at."""
    folder = _store_folder(layout, settings)
    if folder is None:
        return
    place = layout.disk(folder)
    owner = _uid(layout)
    if not place.exists():

        def make() -> None:
            make_folder(place, 0o700)
            if owner is not None and not layout.staged:
                os.chown(place, owner, -1)

        steps.do("store", f"the folder {folder}", make)
    elif owner is not None and place.stat().st_uid != owner:
        steps.say("store", "note", f"the service's user {USER} must own {folder}: chown -R {USER} {folder}")


def _serve(
    layout: Layout, wanted: InstallOptions, machine: Machine | None, prefix: Prefix, name: str, unit: bool, steps: Steps
) -> ServiceState:
    start = f"{layout.link} --config {layout.config} start"
    if layout.unit is None or machine is None:
        if layout.unit is not None:
            steps.say("service", "note", f"to start it with the system: systemctl --root={layout.root} enable beetle")
        elif not layout.staged:
            steps.say("service", "note", f"to start it: {start} (also from an init script or rc.local)")
            _report_old(wanted, steps)
        return "none" if layout.unit is None else "written"
    service = Service(machine, layout.personal)
    if not service.manager_runs:
        whose = "this user's systemd" if layout.personal else "systemd"
        steps.say("service", "note", f"{whose} does not run here; to start it without: {start}")
        _report_old(wanted, steps)
        return "written"
    if unit:
        steps.do("service", f"{service.command} daemon-reload", lambda: service.call("daemon-reload"))
    active, pid = service.state()
    if active:
        return _bring_up_to_date(layout, wanted.starts, service, pid, prefix, name, unit, steps)
    if not wanted.starts:
        steps.say("service", "left", f"to start it now and with the system: {service.command} enable --now beetle")
        return "written"
    if wanted.holder is not None:
        steps.do("service", "starts with the system", lambda: service.call("enable", "beetle.service"))
        _report_holder(wanted, steps, f"then: {service.command} start beetle")
        return "enabled"
    steps.do("service", "starts with the system, and runs", lambda: service.call("enable", "--now", "beetle.service"))
    return "running"


def _report_old(wanted: InstallOptions, steps: Steps) -> None:
    if steps.changed:
        _report_holder(wanted, steps)


def _report_holder(wanted: InstallOptions, steps: Steps, then: str = "then start it again") -> None:
    if wanted.holder is not None:
        text = f"process {wanted.holder} has {wanted.settings.store} open, and keeps running: beetle stop; {then}"
        steps.say("service", "note", text)


def _bring_up_to_date(
    layout: Layout, starts: bool, service: Service, pid: int, prefix: Prefix, name: str, unit: bool, steps: Steps
) -> ServiceState:
    """A service that runs: restarted when it runs another version, or under an older unit."""
    inside = f"{os.path.realpath(prefix.tree(name))}/"
    if not unit and in_use.program(pid).startswith(inside):
        steps.say("service", "already", f"runs (pid {pid})")
    elif starts:
        try:
            steps.do("service", "restarted", lambda: service.call("restart", "beetle.service"))
        except ToolFailed as error:
            back = f"{layout.link} install{' --user' if layout.personal else ''} --rollback"
            hint = f"{error.hint}; the version before is still there: {back}"
            raise ToolFailed(command="the restart", reason=error.message, hint=hint) from error
    else:
        steps.say("service", "left", f"it runs on as it was until: {service.command} restart beetle")
    return "running"


def _restart(layout: Layout, machine: Machine, prefix: Prefix, name: str, starts: bool, steps: Steps) -> ServiceState:
    service = Service(machine, layout.personal)
    if not service.manager_runs:
        return "written"
    active, pid = service.state()
    if not active:
        steps.say("service", "left", "it does not run")
        return "written"
    return _bring_up_to_date(layout, starts, service, pid, prefix, name, False, steps)


def _prune(prefix: Prefix, name: str, source: Path, steps: Steps) -> None:
    if steps.dry_run:
        for each in prefix.spare():
            if each not in (name, prefix.named(CURRENT)):
                steps.say("prune", "would", f"{each}, unless something runs from it")
        return
    pruned = prefix.prune(source)
    for each in pruned.gone:
        steps.say("prune", "done", each)
    for each in pruned.busy:
        steps.say("prune", "left", f"{each}: something still runs from it")
    for each, paths in pruned.kept.items():
        for path in paths:
            steps.say("prune", "left", f"{prefix.tree(each) / path} is not ours")
    steps.changed = steps.changed or bool(pruned.gone)
