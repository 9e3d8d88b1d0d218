"""SQLite's errors as ours."""

from __future__ import annotations

import apsw

from beetle.contracts import errors


def translate(error: apsw.Error, path: str) -> errors.BeetleError:
    """The typed error for an error of SQLite; by class, never by text."""
    if isinstance(error, apsw.FullError):
        return errors.StorageFull(path=path)
    if isinstance(error, apsw.ReadOnlyError | apsw.PermissionsError):
        return errors.StoreReadOnly(path=path, reason="the file or its folder is read-only")
    if isinstance(error, apsw.CantOpenError):
        return errors.StoreReadOnly(path=path, reason="the file or a journal beside it cannot be opened")
    if isinstance(error, apsw.CorruptError | apsw.FormatError):
        return errors.StoreCorrupt(path=path, reason="SQLite found a malformed page")
    if isinstance(error, apsw.NotADBError):
        return errors.StoreCorrupt(path=path, reason="it is no SQLite database")
    if isinstance(error, apsw.IOError):
        return errors.StoreCorrupt(
            path=path, reason=f"the disk answered an I/O error ({getattr(error, 'extendedresult', 'unknown')})"
        )
    if isinstance(error, apsw.BusyError | apsw.LockedError):
        return errors.Overloaded(what="the store is held by another program", maximum="one writer", retry_after_ms=250)
    if isinstance(error, apsw.NoMemError):
        return errors.Overloaded(what="SQLite is out of memory", maximum="its page cache", retry_after_ms=1000)
    raise error
