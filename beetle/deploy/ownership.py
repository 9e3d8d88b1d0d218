"""Whose a unit, a link and a folder are: what another installation or a person made stays theirs."""

from __future__ import annotations

import os
import posixpath
import shutil
from collections.abc import Iterator

from beetle.contracts.errors import InvalidRequest
from beetle.deploy.layout import STATE_FOLDER, USER, Layout, Settings
from beetle.deploy.machine import entry
from beetle.deploy.prefix import CURRENT, PREVIOUS, VERSIONS, Prefix
from beetle.deploy.steps import LeadsOut, NotOurs, Steps, content, drafts, nearest
from beetle.deploy.unit import MARK, starts

SYSUSERS = "/etc/sysusers.d/beetle.conf"
SYSUSERS_LINE = f'u {USER} - "Beetle memory daemon" {STATE_FOLDER}\n'.encode()
"""An image is written without its tools; systemd-sysusers makes the user at its first start."""


class InsideVersions(InvalidRequest):
    template = "{path}, {what}, is in the folder of a version, which goes with that version"
    hint_template = "name another place, outside of {prefix}"


def refuse_others(layout: Layout, prefix: Prefix, *more: str) -> None:
    """Before anything is made: what is there and not ours. `more` are folders besides those of the layout.

    Raises:
        LeadsOut: as of `refuse_outside`.
        NotOurs: the prefix, a link in it, the link in the path or the unit is somebody else's, or a file stands where a
            folder belongs.
    """
    refuse_outside(layout, *more)
    for folder in _folders(layout, *more):
        if not (there := nearest(layout.disk(folder))).is_dir():
            raise NotOurs(path=str(there))
    prefix.refuse_others()
    prefix.check_links()
    has_link(layout)
    if layout.unit and os.path.lexists(layout.disk(layout.unit)) and not has_unit(layout):
        hint = f"move it away, or give --no-service; your own settings belong in {layout.unit}.d/*.conf"
        if _is_marked(layout):
            hint = "uninstall the one that it starts, with that one's own --prefix; or give --no-service"
        raise NotOurs(path=layout.unit, hint=hint)
    if layout.staged and layout.unit and not layout.personal and entry(layout, "passwd", USER) is None:
        makes_user(layout)


def refuse_inside(layout: Layout, settings: Settings) -> None:
    """Before anything is made: nothing that is to last may be where an upgrade or an uninstall removes a version.

    Raises:
        InsideVersions: by its name or by the links in it, a path is below `versions`, `current` or `previous`.
    """
    disk = os.path.realpath(layout.disk(layout.prefix))
    inside = [posixpath.join(each, name) for each in (layout.prefix, disk) for name in (VERSIONS, CURRENT, PREVIOUS)]
    for what, path in _lasting(layout, settings):
        for found in (posixpath.normpath(path), os.path.realpath(layout.disk(path))):
            if any(found == each or found.startswith(f"{each}/") for each in inside):
                raise InsideVersions(path=path, what=what, prefix=layout.prefix)


def _lasting(layout: Layout, settings: Settings) -> Iterator[tuple[str, str]]:
    yield "the link of --bin", posixpath.dirname(layout.link)
    yield "the configuration", layout.config
    yield "the store", settings.store
    yield "the socket", settings.socket
    if settings.log is not None:
        yield "the log", settings.log
    for each in settings.writes:
        yield "which the configuration lets the daemon write", each


def refuse_outside(layout: Layout, *more: str) -> None:
    """Nothing in an image may lead to the machine that it is built on.

    Raises:
        LeadsOut: a folder of the layout, or its configuration, is, through a link, none below its root.
    """
    root = os.path.realpath(layout.root)
    for path in (*_folders(layout, *more), layout.config) if layout.staged else ():
        target = os.path.realpath(layout.disk(path))
        if os.path.commonpath((root, target)) != root:
            raise LeadsOut(path=str(layout.disk(path)), root=str(layout.root), target=target)


def _folders(layout: Layout, *more: str) -> list[str]:
    """Where an installation is and writes."""
    files = [
        layout.link,
        layout.config,
        *([layout.unit] if layout.unit else []),
        *([SYSUSERS] if layout.staged else []),
    ]
    return [layout.prefix, f"{layout.prefix}/{VERSIONS}", *map(posixpath.dirname, files), *more]


def has_link(layout: Layout) -> bool:
    """Whether the link in the path is there and ours.

    Raises:
        NotOurs: something else has its name.
    """
    link = layout.disk(layout.link)
    if not os.path.lexists(link):
        return False
    if link.is_symlink() and os.readlink(link) == layout.program:
        return True
    raise NotOurs(path=layout.link, hint="move it away, or name another folder for the link with --bin")


def has_unit(layout: Layout) -> bool:
    """Whether the unit is there and this installation's: one of another prefix starts another program."""
    return _is_marked(layout) and starts(_unit(layout).decode(errors="replace"), layout)


def makes_user(layout: Layout) -> bool:
    """Whether a line is there, ours or another's, that makes the user at an image's first start.

    Raises:
        NotOurs: its file is none, or has no line that makes the user.
    """
    file = layout.disk(SYSUSERS)
    if not os.path.lexists(file):
        return False
    lines = (line.split() for line in (content(file) or b"").decode(errors="replace").splitlines())
    if any(line[0].startswith("u") and line[1] == USER for line in lines if len(line) > 1):
        return True
    raise NotOurs(
        path=SYSUSERS, hint=f"move it away, write a line into it that begins `u {USER}`, or give --no-service"
    )


def has_sysusers(layout: Layout) -> bool:
    """Whether an install into an image left the line that makes its user."""
    return content(layout.disk(SYSUSERS)) == SYSUSERS_LINE


def clear_drafts(layout: Layout, prefix: Prefix, steps: Steps) -> None:
    """Remove what a killed install left beside its prefix, and beside the files that it writes outside of that."""
    for each in prefix.unfinished():
        steps.do("clean", f"{each}, left by an interrupted run", lambda path=each: shutil.rmtree(path))
    files = [(layout.config, MARK.encode())]
    if layout.unit is not None:
        files.append((layout.unit, MARK.encode()))
    if layout.staged:
        files.append((SYSUSERS, SYSUSERS_LINE))
    for path, begins in files:
        for each in drafts(layout.disk(path), begins):
            steps.do("clean", f"{each}, left by an interrupted run", each.unlink)


def _is_marked(layout: Layout) -> bool:
    return _unit(layout).startswith(MARK.encode())


def _unit(layout: Layout) -> bytes:
    if layout.unit is None:
        return b""
    return content(layout.disk(layout.unit)) or b""
