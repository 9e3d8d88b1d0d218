"""Puts a frozen tree under a prefix, with a link in the path, a configuration and a service, and takes it away again.

Nothing here touches a store, and nothing that is switched to is incomplete. Where things go (`Layout`), what the daemon
is allowed (`Settings`, `Limits`) and which tools of the machine may be run (`Machine`) are handed in.
"""

from __future__ import annotations

from beetle.install.apply import Report, Wanted, install, roll_back
from beetle.install.layout import Layout, Limits, Settings
from beetle.install.machine import Machine
from beetle.install.remove import uninstall
from beetle.install.steps import Step

__all__ = [
    "Layout",
    "Limits",
    "Machine",
    "Report",
    "Settings",
    "Step",
    "Wanted",
    "install",
    "roll_back",
    "uninstall",
]
