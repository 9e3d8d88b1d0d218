"""`uninstall`: everything that `install` made, but the configuration, the user and the store."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from beetle.deploy import in_use
from beetle.deploy.layout import SERVICE, Layout
from beetle.deploy.machine import Machine, Service
from beetle.deploy.ownership import SYSUSERS, clear_drafts, has_sysusers, has_unit, refuse_outside
from beetle.deploy.prefix import CURRENT, LINKS, LOCK, PREVIOUS, Prefix
from beetle.deploy.steps import InUse, OnStep, StepResult, Steps, writing
from beetle.deploy.tree_contents import contents_of
from beetle.named_tuple import NamedTuple


class Removed(NamedTuple):
    """What an uninstall did. `left` are files and folders below the prefix that are not ours."""

    prefix: str
    changed: bool
    dry_run: bool
    left: tuple[str, ...]
    steps: tuple[StepResult, ...]


def uninstall(layout: Layout, machine: Machine | None, on_step: OnStep, *, dry_run: bool = False) -> Removed:
    """Take an installation away. It may be the very one that runs this: nothing is imported once trees are going.

    Raises:
        InUse: something still runs from it. Nothing was removed, and a service that was stopped runs again.
        NotOurs: a link of the prefix is something else, or an image leads out of its root. Nothing was removed.
        NotWritable: this user may not remove it.
    """
    steps = Steps(on_step, dry_run)
    prefix = Prefix(layout.disk(layout.prefix))
    with contextlib.ExitStack() as stack:
        stack.enter_context(writing(layout.prefix))
        refuse_outside(layout)
        if prefix.is_there and not dry_run:
            waiting = f"another install in {layout.prefix} has to end first"
            stack.enter_context(prefix.held(lambda: steps.say("lock", "note", waiting)))
        if prefix.is_there:
            prefix.check_links()
        service = _service(layout, machine)
        stopped = _stop(service, steps)
        try:
            if not (dry_run and stopped):
                for name in prefix.folders():
                    _claim(layout, prefix, name, stack)
        except InUse:
            if service is not None and stopped and not dry_run:
                steps.do("service", "started again", lambda: service.call("start", SERVICE))
            raise
        _remove_service(layout, service, steps)
        _remove_link(layout, steps)
        clear_drafts(layout, prefix, steps)
        kept = _remove_trees(layout, prefix, steps) if prefix.is_there else {}
        left = _left(prefix, kept) if prefix.is_there else ()
        if not dry_run:
            _remove_folder(prefix, left)
    return Removed(layout.prefix, steps.changed, dry_run, left, tuple(steps.results))


def _service(layout: Layout, machine: Machine | None) -> Service | None:
    """The unit, where it is ours and systemd runs."""
    if machine is None or not has_unit(layout):
        return None
    service = Service(machine, layout.personal)
    return service if service.manager_runs else None


def _stop(service: Service | None, steps: Steps) -> bool:
    if service is None or not service.state()[0]:
        return False
    steps.do("service", "stopped", lambda: service.call("stop", SERVICE))
    return True


def _claim(layout: Layout, prefix: Prefix, name: str, stack: contextlib.ExitStack) -> None:
    """Hold a version alone until all is over, so that nothing starts from it in the meantime."""
    tree = prefix.tree(name)
    if not stack.enter_context(in_use.alone(tree, without_mine=True)):
        found = in_use.pids(tree)
        who = f" (process {', '.join(map(str, found))})" if found else ""
        raise InUse(path=f"{layout.prefix}/versions/{name}", who=who)


def _remove_service(layout: Layout, service: Service | None, steps: Steps) -> None:
    if layout.unit is None:
        return
    unit = layout.disk(layout.unit)
    # With a unit of another installation in the image, the line of the user is that one's.
    others = os.path.lexists(unit) and not has_unit(layout)
    if layout.staged and os.path.lexists(layout.disk(SYSUSERS)):
        if others or not has_sysusers(layout):
            steps.say("user", "left", f"{SYSUSERS} is not of this installation")
        else:
            steps.do("user", f"{SYSUSERS} removed", layout.disk(SYSUSERS).unlink)
    if others:
        steps.say("unit", "left", f"{layout.unit} is not of this installation")
    elif os.path.lexists(unit):
        _remove_unit(layout.unit, unit, service, steps)


def _remove_unit(name: str, unit: Path, service: Service | None, steps: Steps) -> None:
    if service is not None:
        steps.do("service", "no longer starts with the system", lambda: service.call("disable", SERVICE))
    for wants in unit.parent.glob("*.wants"):
        # As `systemctl enable` left it in an image, or before systemd was taken away.
        if (wants / SERVICE).is_symlink() and not wants.is_symlink():
            steps.do("unit", f"no longer in {wants.name}", (wants / SERVICE).unlink)
    steps.do("unit", f"{name} removed", unit.unlink)
    if service is not None:
        steps.do("service", f"{service.command} daemon-reload", lambda: service.call("daemon-reload"))


def _remove_link(layout: Layout, steps: Steps) -> None:
    link = layout.disk(layout.link)
    if not os.path.lexists(link):
        return
    if link.is_symlink() and os.readlink(link) == layout.program:
        steps.do("link", f"{layout.link} removed", link.unlink)
    else:
        steps.say("link", "left", f"{layout.link} is not of this installation")


def _remove_trees(layout: Layout, prefix: Prefix, steps: Steps) -> dict[str, tuple[str, ...]]:
    """What stays of each version because it is not ours, as paths in it."""
    # Current first: from here on nobody can start what is about to go.
    for link in (CURRENT, PREVIOUS):
        if prefix.named(link) is not None:
            steps.do("switch", f"{layout.prefix}/{link} removed", (prefix.folder / link).unlink)
    for each in prefix.leftovers():
        steps.do("clean", f"{each} removed", lambda path=each: shutil.rmtree(path))
    kept: dict[str, tuple[str, ...]] = {}
    for name in prefix.folders():
        contents = contents_of(prefix.tree(name))
        if contents.ours or not contents.foreign:
            text = f"{layout.prefix}/versions/{name} removed{', but for what is not ours' if contents.foreign else ''}"
            steps.do("tree", text, lambda name=name, contents=contents: prefix.remove(name, contents))
        kept[name] = contents.foreign
    return kept


def _left(prefix: Prefix, kept: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """What nobody but its owner can judge."""
    ours = {LOCK, *LINKS}
    inside: list[Path] = []
    if prefix.versions_folder.is_dir() and not prefix.versions_folder.is_symlink():
        ours.add(prefix.versions_folder.name)
        known = {*kept, *(each.name for each in prefix.leftovers())}
        inside = [each for each in prefix.versions_folder.iterdir() if each.name not in known]
        inside += [prefix.tree(name) / path for name, paths in kept.items() for path in paths]
        inside.sort()
    beside = sorted(each for each in prefix.folder.iterdir() if each.name not in ours)
    return tuple(str(each) for each in (*beside, *inside))


def _remove_folder(prefix: Prefix, left: tuple[str, ...]) -> None:
    if not prefix.is_there:
        # Not even where it is empty: without the lock nothing tells it from somebody else's.
        return
    prefix.finish_switch()
    prefix.end_rollback()
    if left:
        # With the lock the folder stays known as one of ours, so that an install may come back to it.
        return
    # Last, and still held: an install that waits for it makes its own.
    prefix.unmake()
