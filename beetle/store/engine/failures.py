"""SQLite's errors as ours."""

from __future__ import annotations

import errno
import logging
import traceback

import apsw

from beetle.contracts import errors
from beetle.store import index_pages
from beetle.store.engine.transaction import Reading

log = logging.getLogger("beetle.store")

DAMAGED = (apsw.SQLITE_CONSTRAINT_DATATYPE, apsw.SQLITE_CONSTRAINT_NOTNULL)
NO_SPACE = (errno.ENOSPC, errno.EDQUOT)


def translate(
    error: apsw.Error, path: str, system_errno: int = 0, connection: apsw.Connection | None = None
) -> errors.BeetleError:
    """The typed error for an error of SQLite; by class and number, never by text.

    Args:
        connection: the one that met the error, where a statement of the recall index may have been it. FTS5 answers
            damage in its own tables as an error of the statement, or as a constraint of theirs.
        system_errno: what the operating system said last on that connection: SQLite calls a quota that is used up, a
            shared-memory file that cannot grow and a disk that went read-only all I/O errors.
    """
    failed_io = isinstance(error, apsw.IOError | apsw.CantOpenError)
    if isinstance(error, apsw.FullError) or (failed_io and system_errno in NO_SPACE) or _no_room(error):
        return errors.StorageFull(path=path)
    if isinstance(error, apsw.ReadOnlyError | apsw.PermissionsError) or (failed_io and system_errno == errno.EROFS):
        return errors.StoreReadOnly(path=path, reason="the file or its folder is read-only")
    if failed_io and system_errno in errors.NoDescriptor.ERRNOS:
        return errors.NoDescriptor()
    if isinstance(error, apsw.CantOpenError):
        return errors.StoreReadOnly(path=path, reason="the file or a journal beside it cannot be opened")
    if isinstance(error, apsw.CorruptError | apsw.FormatError):
        return errors.StoreCorrupt(path=path, reason="SQLite found a malformed page")
    if isinstance(error, apsw.NotADBError):
        return errors.StoreCorrupt(path=path, reason="it is not an SQLite database")
    if isinstance(error, apsw.IOError):
        return errors.StoreCorrupt(
            path=path, reason=f"the disk answered an I/O error ({getattr(error, 'extendedresult', 'unknown')})"
        )
    if getattr(error, "extendedresult", 0) in DAMAGED:
        # What a request brings was decoded strictly: the value was in the row, which is written again.
        return errors.IntegrityViolation(
            reason="a row that is to be changed is damaged: a value is missing, or of another type"
        )
    if (
        isinstance(error, apsw.SQLError | apsw.ConstraintError)
        and connection is not None
        and not index_pages.is_readable(Reading(connection))
    ):
        return errors.StoreCorrupt(
            path=path, reason="the recall index is damaged; `beetle memory recover` makes it anew"
        )
    if isinstance(error, apsw.BusyError | apsw.LockedError):
        return errors.Overloaded(what="the store is held by another program", maximum="one writer", retry_after_ms=250)
    if isinstance(error, apsw.NoMemError):
        return errors.Overloaded(what="SQLite is out of memory", maximum="its page cache", retry_after_ms=1000)
    raise error


def _no_room(error: apsw.Error) -> bool:
    """The shared-memory file is grown by writing to it; nothing but a full disk fails that."""
    return getattr(error, "extendedresult", 0) == apsw.SQLITE_IOERR_SHMSIZE


def frames(defect: BaseException) -> str:
    """Where it happened; never the error's own text, which may hold content."""
    return "".join(traceback.format_tb(defect.__traceback__))


def failed(event: str, what: str, error: BaseException | None) -> None:
    """Log something that did not come about, by its error's class."""
    log.warning("%s: %s", what, type(error).__name__, extra={"event": event})


def log_defect(event: str, what: str, defect: BaseException) -> None:
    """Log a defect, with where it happened."""
    log.error("%s: %s\n%s", what, type(defect).__name__, frames(defect), extra={"event": event})
