"""The folder of an installation: complete trees under `versions/`, the links `current` and `previous`, one lock."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from beetle.contracts.errors import NotFound
from beetle.deploy import in_use
from beetle.deploy.install_tree import check, copy_entries, faults, manifest_of
from beetle.deploy.manifest import MANIFEST, Entry, Manifest
from beetle.deploy.steps import NotOurs, make_folder, sync_folder
from beetle.named_tuple import NamedTuple

CURRENT = "current"
PREVIOUS = "previous"
NEW = f".{CURRENT}.new"
BACK = f".{CURRENT}.back"
"""What is to be `current` waits under one of these: a rollback is told from an install when it is repeated."""
NEW_PREVIOUS = f".{PREVIOUS}.new"
LINKS = (CURRENT, PREVIOUS, NEW, BACK, NEW_PREVIOUS)
VERSIONS = "versions"
LOCK = ".lock"
NAME = re.compile(r"[0-9A-Za-z][^/\x00-\x1f]*-[0-9a-f]{12}")
"""What a version's folder is called."""
BEGUN = ".new-"
ENDING = ".old-"


class NoPreviousVersion(NotFound):
    template = "{prefix} holds no other version to go back to"


class Pending(NamedTuple):
    """A switch to the version `name` that was ended between its two renames."""

    name: str
    is_rollback: bool


class Prefix:
    """One installation's folder, as it is on the disk. Who changes it holds it: `with prefix.held(…)`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.versions_folder = folder / VERSIONS

    @property
    def is_there(self) -> bool:
        """Whether an installation was begun here."""
        return (self.folder / LOCK).exists()

    def refuse_others(self) -> None:
        """Raises NotOurs when the folder holds something, and nothing of ours."""
        if self.folder.is_dir():
            # The lock is looked for last: an installation makes it first, so it is there if anything of ours is.
            if not any(self.folder.iterdir()) or self.is_there:
                return
        elif not os.path.lexists(self.folder):
            return
        hint = f"give a folder of its own: --prefix {self.folder / 'beetle'}"
        raise NotOurs(path=str(self.folder), hint=hint)

    @contextlib.contextmanager
    def held(self, waiting: Callable[[], None]) -> Iterator[None]:
        """Alone with this folder; `waiting` is called when another install has to end first."""
        descriptor = self._lock(waiting)
        try:
            yield
        finally:
            os.close(descriptor)

    def _lock(self, waiting: Callable[[], None]) -> int:
        while True:
            make_folder(self.folder)
            try:
                flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
                descriptor = os.open(self.folder / LOCK, flags, 0o600)
            except FileNotFoundError:
                continue  # an uninstall took the folder away just now
            try:
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    waiting()
                    fcntl.flock(descriptor, fcntl.LOCK_EX)
                with contextlib.suppress(FileNotFoundError):
                    if os.path.samestat(os.fstat(descriptor), os.stat(self.folder / LOCK)):
                        return descriptor
            except BaseException:
                os.close(descriptor)
                raise
            # An uninstall took away the file that we waited for: the lock of nothing.
            os.close(descriptor)

    def tree(self, name: str) -> Path:
        """The folder of a version."""
        return self.versions_folder / name

    def named(self, link: str) -> str | None:
        """The version that `current` or `previous` names.

        Raises:
            NotOurs: something else is there.
        """
        try:
            target = os.readlink(self.folder / link)
        except FileNotFoundError:
            return None
        except OSError:
            target = ""
        folder, _, name = target.partition("/")
        if folder != VERSIONS or not NAME.fullmatch(name):
            raise NotOurs(path=str(self.folder / link))
        return name

    def check_links(self) -> None:
        """Raises NotOurs where something else has the name of one of the links."""
        for link in LINKS:
            self.named(link)

    def versions(self) -> list[str]:
        """Names of the complete trees."""
        found = [each.name for each in self._folders() if NAME.fullmatch(each.name)]
        return sorted(each for each in found if (self.tree(each) / MANIFEST).is_file())

    def leftovers(self) -> list[Path]:
        """Folders that an interrupted install or uninstall left."""
        return [each for each in self._folders() if each.name.startswith((BEGUN, ENDING))]

    def _folders(self) -> list[Path]:
        """What may be a tree of ours: a link to one is somebody's own."""
        if not self.versions_folder.is_dir():
            return []
        return sorted(each for each in self.versions_folder.iterdir() if each.is_dir() and not each.is_symlink())

    def wrong(self, manifest: Manifest) -> list[Entry]:
        """What of an installed tree is not as it should be."""
        return list(faults(self.tree(manifest.name), manifest.entries, modes=True))

    def put(self, source: Path, manifest: Manifest) -> None:
        """Copy a tree. It has its name only when it is complete and on the disk.

        Raises:
            Damaged: a file changed while it was copied.
        """
        begun = self.versions_folder / f"{BEGUN}{manifest.name}-{os.getpid()}"
        try:
            copy_entries(source, begun, manifest, manifest.entries)
            os.rename(begun, self.tree(manifest.name))
        except BaseException:
            shutil.rmtree(begun, ignore_errors=True)
            raise
        sync_folder(self.versions_folder)

    def mend(self, source: Path, manifest: Manifest, entries: list[Entry]) -> None:
        """Replace single files of an installed tree; who runs from it goes on with the files that it has open."""
        copy_entries(source, self.tree(manifest.name), manifest, entries)

    def check(self, name: str) -> None:
        """Raises IntegrityViolation unless an installed tree is complete."""
        check(self.tree(name), manifest_of(self.tree(name)), modes=True)

    def switch(self, name: str, *, is_rollback: bool = False) -> None:
        """Let `current` name another version, and `previous` the one it named until now.

        Both links are made first under names of their own. If this is ended between the two renames, the link that
        waits for `current` tells what was meant: see `pending`.
        """
        before, waiting = self.named(CURRENT), BACK if is_rollback else NEW
        if before is not None:
            self._prepare(NEW_PREVIOUS, before)
        self._prepare(waiting, name)
        sync_folder(self.folder)
        if before is not None:
            self._place(NEW_PREVIOUS, PREVIOUS)
        self._place(waiting, CURRENT)
        sync_folder(self.folder)

    def pending(self) -> Pending | None:
        """A switch that was interrupted; None when there was none, or it had not begun."""
        if self.named(NEW_PREVIOUS) is not None:
            return None
        found = [Pending(name, each == BACK) for each in (NEW, BACK) if (name := self.named(each)) in self.versions()]
        return found[0] if found else None

    def finish_switch(self) -> Pending | None:
        """End a switch that was interrupted, and tell which that was."""
        pending = self.pending()
        if pending is not None:
            self._place(BACK if pending.is_rollback else NEW, CURRENT)
        # That of `previous` last: without it, one that waits for `current` is a switch that had begun.
        for each in (NEW, BACK, NEW_PREVIOUS):
            (self.folder / each).unlink(missing_ok=True)
        sync_folder(self.folder)
        return pending

    def _prepare(self, link: str, name: str) -> None:
        (self.folder / link).unlink(missing_ok=True)
        os.symlink(f"{VERSIONS}/{name}", self.folder / link)

    def _place(self, waiting: str, link: str) -> None:
        os.replace(self.folder / waiting, self.folder / link)

    def remove(self, name: str) -> None:
        """Take a version away, whole or not at all: under a name that nobody runs, then file by file."""
        ending = self.versions_folder / f"{ENDING}{name}-{os.getpid()}"
        os.rename(self.tree(name), ending)
        sync_folder(self.versions_folder)
        shutil.rmtree(ending)

    def prune(self, but: Path) -> tuple[list[str], list[str]]:
        """Remove what is neither current nor previous; the names of what went, and of what is in use. `but` stays."""
        gone: list[str] = []
        busy: list[str] = []
        for name in self.spare():
            if os.path.realpath(self.tree(name)) == os.path.realpath(but):
                continue
            with in_use.alone(self.tree(name)) as free:
                if free:
                    self.remove(name)
                (gone if free else busy).append(name)
        return gone, busy

    def spare(self) -> list[str]:
        """Versions that are neither current nor previous."""
        kept = (self.named(CURRENT), self.named(PREVIOUS))
        return [each for each in self.versions() if each not in kept]
