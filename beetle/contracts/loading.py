"""Importing a module of ours when it is first needed."""

from __future__ import annotations

import errno
from importlib import import_module
from types import ModuleType

from beetle.contracts.errors import Overloaded

RETRY_MS = 1000


def load(name: str) -> ModuleType:
    """The module of this name, imported unless it is.

    Raises:
        Overloaded: the process has no file descriptor left to import by.
    """
    try:
        return import_module(name)
    except OSError as error:
        if error.errno not in (errno.EMFILE, errno.ENFILE):
            raise
        told = "this operation is asked for the first time, and no file descriptor is left"
        raise Overloaded(what=told, maximum="as many as RLIMIT_NOFILE", retry_after_ms=RETRY_MS) from None
