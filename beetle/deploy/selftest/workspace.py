"""Where the self-test works, and how a check says that something is wrong."""

from __future__ import annotations

import errno
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from beetle.contracts.errors import BeetleError, StorageFull, StoreReadOnly
from beetle.named_tuple import NamedTuple


class Workspace(NamedTuple):
    """A private folder that is gone afterwards, and the environment for child processes."""

    folder: Path
    env: Mapping[str, str]

    def room(self, name: str) -> Path:
        """A new empty folder for one check."""
        room = self.folder / name
        room.mkdir(mode=0o700)
        return room


class CheckFailed(Exception):
    """What a check found; its text is the line that people read."""


@contextmanager
def temporary_workspace(env: Mapping[str, str]) -> Iterator[Workspace]:
    """A place in $TMPDIR, or where the system keeps such folders.

    Raises:
        StoreReadOnly, StorageFull: no folder can be made there. $TMPDIR is not passed over for another one.
    """
    wanted = env.get("TMPDIR")
    try:
        made = tempfile.TemporaryDirectory(prefix="beetle-self-test-", dir=wanted or None)
    except OSError as error:
        raise _no_folder(wanted or "the system's folder for temporary files", error) from error
    with made as folder:
        yield Workspace(Path(folder), env)


def _no_folder(path: str, error: OSError) -> BeetleError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StorageFull(path=path, hint="free space there, or name another folder with TMPDIR")
    reason = error.strerror or "unknown"
    return StoreReadOnly(path=path, reason=reason, hint="name a folder that this user may write to with TMPDIR")


def is_frozen() -> bool:
    """Whether this is a built program, not a checkout or an installed package."""
    return bool(getattr(sys, "frozen", False))


def package_folder() -> Path:
    """The folder of the package `beetle`, in which its data files are."""
    return Path(os.path.abspath(__file__)).parents[2]
