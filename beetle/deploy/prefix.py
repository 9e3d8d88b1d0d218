"""The folder of an installation: complete trees under `versions/`, the links `current` and `previous`, one lock."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import shutil
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from beetle.contracts.errors import NotFound
from beetle.deploy import in_use
from beetle.deploy.install_tree import check, copy_entries, faults, is_regular, manifest_of
from beetle.deploy.manifest import MANIFEST, Entry, Manifest
from beetle.deploy.steps import DRAFT, Damaged, NotOurs, make_folder, sync_folder
from beetle.deploy.tree_contents import Contents, contents_of, remove_ours
from beetle.named_tuple import NamedTuple

CURRENT = "current"
PREVIOUS = "previous"
NEW = f".{CURRENT}.new"
"""What is to be `current` waits under this name."""
BACK = f".{CURRENT}.back"
"""Names what a rollback leads to, from its beginning until the service runs it: when the rollback is asked for again
because it was interrupted, it is ended, not undone."""
NEW_PREVIOUS = f".{PREVIOUS}.new"
LINKS = (CURRENT, PREVIOUS, NEW, BACK, NEW_PREVIOUS)
VERSIONS = "versions"
LOCK = ".lock"
NAME = re.compile(r"[0-9A-Za-z][^/\x00-\x1f]*-[0-9a-f]{12}")
"""What a version's folder is called."""
BEGUN = ".new-"
ENDING = ".old-"
LEFTOVER = re.compile(rf"({re.escape(BEGUN)}|{re.escape(ENDING)}){NAME.pattern}-[0-9]+")
"""What a version's folder is called while it is copied or removed: after it the process that does so."""


class NoPreviousVersion(NotFound):
    template = "{prefix} holds no other version to go back to"


class Pending(NamedTuple):
    """A switch to the version `name` that was interrupted between its two renames, or a rollback after them."""

    name: str
    is_rollback: bool


class Pruned(NamedTuple):
    """Names of versions. `busy` are in use; of the `kept` what somebody else put there is left: the paths in it."""

    gone: list[str]
    busy: list[str]
    kept: dict[str, tuple[str, ...]]


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
            if not os.path.lexists(self.folder):
                self._make()
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

    def _make(self) -> None:
        """Make the folder with its lock in it: an empty one that an interrupted run left could be anybody's."""
        make_folder(self.folder.parent)
        begun = self._unfinished
        if begun in self.unfinished():
            shutil.rmtree(begun)
        begun.mkdir()
        # Another install clears this away when it takes it for that of an interrupted one, or is first with the folder.
        with contextlib.suppress(FileNotFoundError):
            begun.chmod(0o755)
            (begun / LOCK).touch(0o600)
            try:
                os.rename(begun, self.folder)
            except OSError as error:
                shutil.rmtree(begun)
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
        sync_folder(self.folder.parent)

    def unmake(self) -> None:
        """Take the folder away, of which only the lock is left. Who waits for that finds that it is gone.

        A link to a folder elsewhere, and a place where something is mounted, are somebody's own: these stay, empty.
        """
        with contextlib.suppress(FileNotFoundError):
            self.versions_folder.rmdir()
        if self.folder.is_symlink() or os.path.ismount(self.folder):
            (self.folder / LOCK).unlink()
            sync_folder(self.folder)
            return
        os.rename(self.folder, self._unfinished)
        # An install that waited clears it away where it is first.
        with contextlib.suppress(FileNotFoundError):
            (self._unfinished / LOCK).unlink()
            self._unfinished.rmdir()
        sync_folder(self.folder.parent)

    @property
    def _unfinished(self) -> Path:
        """Beside the folder: what has its lock and nothing else yet, or any more."""
        return self.folder.with_name(f".{self.folder.name}.{os.getpid()}{DRAFT}")

    def unfinished(self) -> list[Path]:
        """What an interrupted `_make` or `unmake` left."""
        if not self.folder.parent.is_dir():
            return []
        begins = f".{self.folder.name}."
        found = (
            each
            for each in self.folder.parent.iterdir()
            if each.name.startswith(begins)
            and each.name.endswith(DRAFT)
            and each.name[len(begins) : -len(DRAFT)].isdigit()
        )
        return sorted(each for each in found if _holds_no_more_than_a_lock(each))

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
        return [each for each in self.folders() if is_regular(self.tree(each) / MANIFEST)]

    def folders(self) -> list[str]:
        """Names of everything that may be a version, complete or not: a daemon can run from what lost its MANIFEST."""
        return [each.name for each in self._folders() if NAME.fullmatch(each.name)]

    def refuse_links(self, manifest: Manifest) -> None:
        """Before a version is written to, or switched to: all of it has to be in its own folder.

        Raises:
            NotOurs: a link, or another thing that is no folder, stands where one of the version's folders belongs.
        """
        tree = self.tree(manifest.name)
        inside = {parent for each in manifest.entries for parent in Path(each.path).parents}
        for folder in sorted(tree / each for each in inside):
            if os.path.lexists(folder) and (folder.is_symlink() or not folder.is_dir()):
                raise NotOurs(path=str(folder))

    def leftovers(self) -> list[Path]:
        """Folders that an interrupted install or uninstall left."""
        return [each for each in self._folders() if LEFTOVER.fullmatch(each.name)]

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
        """Whether an installed tree is complete.

        Raises:
            IntegrityViolation: it is not.
            NotOurs: as of `refuse_links`.
        """
        manifest = manifest_of(self.tree(name))
        if manifest.name != name:
            raise Damaged(path=str(self.tree(name) / MANIFEST), reason=f"it is that of {manifest.name}")
        self.refuse_links(manifest)
        check(self.tree(name), manifest, modes=True)

    def switch(self, name: str, *, is_rollback: bool = False) -> None:
        """Let `current` name another version, and `previous` the one it named until now.

        Both links are made first under names of their own. If this is ended between the two renames, the link that
        waits for `current` tells what was meant: see `pending`. The mark of a rollback stays until `end_rollback`.
        """
        before = self.named(CURRENT)
        if before is not None:
            self._prepare(NEW_PREVIOUS, before)
        if is_rollback:
            self._prepare(BACK, name)
        self._prepare(NEW, name)
        sync_folder(self.folder)
        if before is not None:
            self._place(NEW_PREVIOUS, PREVIOUS)
        self._place(NEW, CURRENT)
        sync_folder(self.folder)

    def pending(self) -> Pending | None:
        """A switch that was interrupted; None when there was none, or it had not begun."""
        if self.named(NEW_PREVIOUS) is not None:
            return None
        back = self.named(BACK)
        # With nothing that waits for `current`, a rollback had come as far as the service.
        name = self.named(NEW) or (back if back == self.named(CURRENT) else None)
        return Pending(name, name == back) if name is not None and name in self.versions() else None

    def finish_switch(self) -> Pending | None:
        """End a switch that was interrupted, and tell which that was. The mark of a rollback stays until
        `end_rollback`."""
        pending = self.pending()
        if pending is not None and self.named(NEW) is not None:
            self._place(NEW, CURRENT)
        # That of `previous` last: without it, one that waits for `current` is a switch that had begun.
        for each in (NEW, *(() if pending is not None and pending.is_rollback else (BACK,)), NEW_PREVIOUS):
            (self.folder / each).unlink(missing_ok=True)
        sync_folder(self.folder)
        return pending

    def end_rollback(self) -> None:
        """From here on a rollback that is asked for is another one."""
        (self.folder / BACK).unlink(missing_ok=True)
        sync_folder(self.folder)

    def _prepare(self, link: str, name: str) -> None:
        (self.folder / link).unlink(missing_ok=True)
        os.symlink(f"{VERSIONS}/{name}", self.folder / link)

    def _place(self, waiting: str, link: str) -> None:
        os.replace(self.folder / waiting, self.folder / link)

    def remove(self, name: str, contents: Contents) -> None:
        """Take away what is ours of a version; of one that is all ours, the whole or nothing: under a name that nobody
        runs, then file by file.
        """
        if contents.foreign:
            remove_ours(self.tree(name), contents)
            return
        ending = self.versions_folder / f"{ENDING}{name}-{os.getpid()}"
        os.rename(self.tree(name), ending)
        sync_folder(self.versions_folder)
        shutil.rmtree(ending)

    def prune(self, but: Path) -> Pruned:
        """Remove what is neither current nor previous. `but` stays."""
        pruned = Pruned([], [], {})
        for name in self.spare():
            if os.path.realpath(self.tree(name)) == os.path.realpath(but):
                continue
            with in_use.alone(self.tree(name)) as free:
                if not free:
                    pruned.busy.append(name)
                    continue
                contents = contents_of(self.tree(name))
                if contents.ours or not contents.foreign:
                    pruned.gone.append(name)
                self.remove(name, contents)
                if contents.foreign:
                    pruned.kept[name] = contents.foreign
        return pruned

    def spare(self) -> list[str]:
        """Versions that are neither current nor previous."""
        kept = (self.named(CURRENT), self.named(PREVIOUS))
        return [each for each in self.folders() if each not in kept]


def _holds_no_more_than_a_lock(folder: Path) -> bool:
    status = folder.lstat()
    return (
        stat.S_ISDIR(status.st_mode)
        and status.st_uid == os.geteuid()
        and all(each.name == LOCK for each in folder.iterdir())
    )
