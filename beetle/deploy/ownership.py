"""Whose a unit, a link and a folder are: what another installation or a person made stays theirs."""

from __future__ import annotations

import os
import posixpath

from beetle.deploy.layout import STATE_FOLDER, USER, Layout
from beetle.deploy.prefix import VERSIONS, Prefix
from beetle.deploy.steps import LeadsOut, NotOurs, content, nearest
from beetle.deploy.unit import MARK, starts

SYSUSERS = "/etc/sysusers.d/beetle.conf"
SYSUSERS_LINE = f'u {USER} - "Beetle memory daemon" {STATE_FOLDER}\n'.encode()
"""An image is written without its tools; systemd-sysusers makes the user at its first start."""


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


def refuse_outside(layout: Layout, *more: str) -> None:
    """Nothing in an image may lead to the machine that it is built on.

    Raises:
        LeadsOut: a folder of the layout is, through a link, none below its root.
    """
    root = os.path.realpath(layout.root)
    for folder in _folders(layout, *more) if layout.staged else ():
        target = os.path.realpath(layout.disk(folder))
        if os.path.commonpath((root, target)) != root:
            raise LeadsOut(path=str(layout.disk(folder)), root=str(layout.root), target=target)


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


def has_sysusers(layout: Layout) -> bool:
    """Whether an install into an image left the line that makes its user."""
    file = layout.disk(SYSUSERS)
    return file.is_file() and content(file) == SYSUSERS_LINE


def _is_marked(layout: Layout) -> bool:
    return _unit(layout).startswith(MARK.encode())


def _unit(layout: Layout) -> bytes:
    if layout.unit is None:
        return b""
    file = layout.disk(layout.unit)
    return (content(file) or b"") if file.is_file() and not file.is_symlink() else b""
