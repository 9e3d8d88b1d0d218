"""Importing a module of ours when it is first needed."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType

from beetle.contracts.errors import NoDescriptor


def import_msgspec() -> None:
    """Import it as if typing_extensions were not there, which it prefers to the standard library.

    The console's library brings it along, and it takes a seventh of the time in which a command starts. Only while no
    other thread imports.
    """
    if "msgspec" in sys.modules or "typing_extensions" in sys.modules:
        return
    sys.modules["typing_extensions"] = None  # type: ignore[assignment] - what makes its import fail
    try:
        import_module("msgspec")
    finally:
        del sys.modules["typing_extensions"]


def load(name: str) -> ModuleType:
    """The module of this name, imported unless it is.

    Raises:
        NoDescriptor: the process has no file descriptor left to import by.
    """
    try:
        return import_module(name)
    except OSError as error:
        if not NoDescriptor.is_behind(error):
            raise
        raise NoDescriptor("this is asked for the first time, and no file descriptor is left") from None
