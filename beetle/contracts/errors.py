"""Error classes: each owns its key, its message template and its hint; one table maps keys to every transport.

Messages are built from ids, kinds and numbers that the caller may see, never from stored content.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from beetle.named_tuple import NamedTuple


class Status(NamedTuple):
    """How one error key looks on each transport: process exit code, HTTP status, gRPC code name.

    The last two are None for a key that only clients say: no transport carries it.
    """

    exit_code: int
    http: int | None
    grpc: str | None


STATUS: Mapping[str, Status] = {
    "invalid_request": Status(2, 400, "INVALID_ARGUMENT"),
    "invalid_frame": Status(2, 400, "INVALID_ARGUMENT"),
    "unknown_operation": Status(2, 404, "UNIMPLEMENTED"),
    "not_found": Status(3, 404, "NOT_FOUND"),
    "conflict": Status(4, 409, "ALREADY_EXISTS"),
    "unauthorized": Status(5, 401, "UNAUTHENTICATED"),
    "forbidden": Status(5, 403, "PERMISSION_DENIED"),
    "capability_hidden": Status(5, 403, "PERMISSION_DENIED"),
    "privacy_denied": Status(5, 403, "PERMISSION_DENIED"),
    "signature_invalid": Status(5, 403, "PERMISSION_DENIED"),
    "host_pubkey_not_enrolled": Status(5, 403, "PERMISSION_DENIED"),
    "payload_too_large": Status(6, 413, "RESOURCE_EXHAUSTED"),
    "store_budget_exceeded": Status(6, 507, "RESOURCE_EXHAUSTED"),
    "overloaded": Status(7, 503, "UNAVAILABLE"),
    "deadline_exceeded": Status(7, 504, "DEADLINE_EXCEEDED"),
    "services_unavailable": Status(7, 503, "FAILED_PRECONDITION"),
    "daemon_unavailable": Status(7, None, None),
    "store_locked": Status(8, 503, "UNAVAILABLE"),
    "storage_full": Status(8, 507, "INTERNAL"),
    "store_read_only": Status(8, 507, "INTERNAL"),
    "store_corrupt": Status(9, 500, "INTERNAL"),
    "schema_mismatch": Status(9, 500, "INTERNAL"),
    "integrity_violation": Status(9, 500, "INTERNAL"),
    "internal": Status(1, 500, "INTERNAL"),
}

MESSAGE_LIMIT = 600
"""Longest message, hint or text among the details, in characters: a decoder may quote the caller's own input, which can
be a megabyte."""


class BeetleError(Exception):
    """An error that a caller is meant to read.

    `template` and `hint_template` are filled from the keyword arguments, which also become `details`; an argument
    of None is left out of `details`.
    """

    key: ClassVar[str] = "internal"
    template: ClassVar[str] = "{reason}"
    hint_template: ClassVar[str] = ""
    retryable: ClassVar[bool] = False

    def __init__(self, *, hint: str | None = None, **details: Any) -> None:
        self.details: dict[str, Any] = {k: _bounded(v) for k, v in details.items() if v is not None}
        self.message: str = _bounded(self.template.format_map(_Blank(details)))
        self.hint: str = _bounded(self.hint_template.format_map(_Blank(details)) if hint is None else hint)
        super().__init__(f"{self.key}: {self.message}")

    @property
    def exit_code(self) -> int:
        """The command line's exit code for this error."""
        return STATUS.get(self.key, STATUS["internal"]).exit_code

    def __reduce__(self) -> tuple[Any, ...]:
        # The arguments that it was made from are in its words by now; from_wire takes the words.
        return from_wire, (self.key, self.message, self.hint, self.retryable, self.details)


def _bounded(value: Any) -> Any:
    if isinstance(value, str) and len(value) > MESSAGE_LIMIT:
        return value[: MESSAGE_LIMIT - 1] + "…"
    return value


class _Blank(dict[str, Any]):
    def __missing__(self, key: str) -> str:
        return ""


def nearest(word: str, known: Iterable[str]) -> str:
    """A hint: the known words most like `word`, or all of them when none is alike."""
    from difflib import get_close_matches

    words = tuple(known)
    close = get_close_matches(word[:200], words, n=3)
    if close:
        return "did you mean " + " or ".join(close) + "?"
    return "known are: " + ", ".join(words)


class InvalidRequest(BeetleError):
    """The caller's arguments are wrong: details hold `path` (`$.args.limit`) where one place is to blame."""

    key = "invalid_request"
    template = "{reason}"
    hint_template = "see `beetle help`, or `beetle help` with the words of a command"


class InvalidFrame(BeetleError):
    """The bytes are no MessagePack map with string keys; the connection is closed after this answer."""

    key = "invalid_frame"
    template = "{reason}"
    hint_template = "send one MessagePack map per request, with string keys and UTF-8 strings"


class UnknownOperation(BeetleError):
    key = "unknown_operation"
    template = "no operation is named {operation!r}"
    hint_template = "{nearest}"


class NotFound(BeetleError):
    key = "not_found"
    template = "no {kind} {name!r} in this scope"
    hint_template = "{listing}"


class Conflict(BeetleError):
    """Idempotency clash, another content under a known id, or a wrong expected revision."""

    key = "conflict"
    template = "{reason}"


class Unauthorized(BeetleError):
    key = "unauthorized"
    template = "{reason}"
    hint_template = "ask the operator for a [principals.NAME] entry in beetle.toml, then `beetle reload`"


class Forbidden(BeetleError):
    key = "forbidden"
    template = "{reason}"


class WeakerAuthority(Forbidden):
    """What is to be changed is the word of a stronger authority: `details.reason` is `weaker_authority`."""

    def __init__(self, said: str, *, hint: str, **details: Any) -> None:
        super().__init__(reason=said, hint=hint, **details)
        self.details["reason"] = "weaker_authority"


class CapabilityHidden(BeetleError):
    key = "capability_hidden"
    template = "{operation} is hidden here: {reason}"
    hint_template = "`beetle memory capabilities` shows what this caller may use and why"


class PrivacyDenied(BeetleError):
    key = "privacy_denied"
    template = "{reason}"


class PayloadTooLarge(BeetleError):
    """Details: `limit` (which), `maximum`, `actual` where known, `path` where one field is to blame."""

    key = "payload_too_large"
    template = "{what} is over this profile's limit of {maximum} {unit}"
    hint_template = "split the input; `hello` lists the limits"


class StoreBudgetExceeded(BeetleError):
    key = "store_budget_exceeded"
    template = "the store is at its ceiling of {maximum} bytes; reads and deletes still work"
    hint_template = "delete transcripts that you no longer need, or raise store_bytes in the profile"


class Overloaded(BeetleError):
    key = "overloaded"
    template = "{what}: this profile allows {maximum}"
    hint_template = "try again after {retry_after_ms} ms"
    retryable = True


class KeyAtWork(Overloaded):
    """Another request with the same idempotency key runs: whatever the profile, one follows the other."""

    template = "{what}: a key has {maximum}"

    def __init__(self) -> None:
        super().__init__(
            what="another request with this idempotency key runs", maximum="one at a time", retry_after_ms=1000
        )


class NoDescriptor(Overloaded):
    """The process, or the system, has as many files and connections open as it may."""

    hint_template = "try again after {retry_after_ms} ms; connections that end free some, and RLIMIT_NOFILE bounds them"
    ERRNOS: ClassVar = (errno.EMFILE, errno.ENFILE)

    def __init__(self, what: str = "no file descriptor is left") -> None:
        super().__init__(what=what, maximum="as many as RLIMIT_NOFILE", retry_after_ms=1000)

    @classmethod
    def is_behind(cls, error: BaseException) -> bool:
        """Whether the system's error is of that."""
        return isinstance(error, OSError) and error.errno in cls.ERRNOS

    @classmethod
    def refuse(cls, error: BaseException) -> None:
        """Raises NoDescriptor where the system's error is of that."""
        if cls.is_behind(error):
            raise cls from error


class DeadlineExceeded(BeetleError):
    """The deadline passed before `what`; nothing was written.

    Who ends the work knows when, not what the caller asked for: the dispatcher puts the call's own `deadline_ms` in.
    """

    key = "deadline_exceeded"
    template = "the deadline of {deadline_ms} ms passed before {what}"
    hint_template = "nothing was changed; try again, or give a longer deadline_ms"
    retryable = True
    _GIVEN: ClassVar = "given"

    @classmethod
    def before(cls, what: str, hint: str | None = None) -> DeadlineExceeded:
        """For who ends a call's work and does not know the figure that the call was given; `hint` where something was
        changed by then.
        """
        return cls(what=what, deadline_ms=cls._GIVEN, hint=hint)

    @property
    def lacks_its_figure(self) -> bool:
        """Whether it was made by `before`."""
        return self.details.get("deadline_ms") == self._GIVEN


class ServicesUnavailable(BeetleError):
    """A required service is unavailable: no model is configured or it does not answer, or the runtime is closing."""

    key = "services_unavailable"
    template = "{reason}"


class DaemonUnavailable(BeetleError):
    """No daemon answers where one was expected. Said by clients; no daemon answers it."""

    key = "daemon_unavailable"
    template = "{reason}"
    hint_template = "start one with `beetle start`, or find the process that holds the store with `beetle status`"


class SignatureInvalid(BeetleError):
    key = "signature_invalid"
    template = "{reason}"
    hint_template = "sign the exact bytes that docs describe, with the key that is named"


class HostPubkeyNotEnrolled(BeetleError):
    key = "host_pubkey_not_enrolled"
    template = "the host key {fingerprint} is not enrolled"
    hint_template = "`beetle host-key enroll`, as an operator"


class StoreLocked(BeetleError):
    """Another process holds the store. Details: `pid` and `socket` of the holder, if it has written them."""

    key = "store_locked"
    template = "{store} is in use by process {pid}"
    hint_template = "{advice}"
    retryable = True


class StorageFull(BeetleError):
    key = "storage_full"
    template = "no space left for {path}; reads still work"
    hint_template = "free space on that filesystem, then write again; nothing acknowledged was lost"


class NoRoom(StorageFull):
    """Known before anything was written. `needed` and `free` in bytes."""

    template = "{path} has {free} bytes free, and {needed} may be needed; nothing was written"
    hint_template = "free some (`beetle snapshot prune --keep N`), or keep snapshots elsewhere: [snapshots] folder"


class StoreReadOnly(BeetleError):
    key = "store_read_only"
    template = "{path} cannot be written: {reason}"
    hint_template = "make the folder and file writable for this user, or choose another --store"


class FolderRefused(StoreReadOnly):
    """The folder of snapshots is not this user's alone, or not there."""

    template = "the folder of snapshots {path} is not used: {reason}"
    hint_template = "mount its disk, or make the folder: mkdir -m 700 {path}"


class SnapshotStays(StoreReadOnly):
    """A file of the folder of snapshots, or a store that was set aside, could not be removed; the others were."""

    template = "{path} cannot be removed: {reason}"
    hint_template = "look at it and its folder (ls -ld, lsattr), allow this user to remove it, and prune again"


class StoreClosed(StoreReadOnly):
    """The store was closed: nothing can be read or written through it."""

    template = "the store {path} {reason}"
    hint_template = "open it again"


class StoreCorrupt(BeetleError):
    key = "store_corrupt"
    template = "{path} is damaged: {reason}"
    hint_template = 'keep its files; `beetle help troubleshooting` tells the ways back, under "The store is damaged"'


class SchemaMismatch(BeetleError):
    key = "schema_mismatch"
    template = "{path}: {reason}"
    hint_template = "{advice}"


class IntegrityViolation(BeetleError):
    """A hash chain or a cross-check is broken."""

    key = "integrity_violation"
    template = "{reason}"
    hint_template = "run `beetle verify` and keep a copy of the store before anything else"


class Internal(BeetleError):
    """A defect. The message carries a reference into the daemon's log, never content."""

    key = "internal"
    template = "an internal error was recorded as {reference}"
    hint_template = "look for {reference} in the daemon's log and report it"


ERRORS: Mapping[str, type[BeetleError]] = {
    cls.key: cls
    for cls in (
        InvalidRequest, InvalidFrame, UnknownOperation, NotFound, Conflict, Unauthorized, Forbidden, CapabilityHidden,
        PrivacyDenied, PayloadTooLarge, StoreBudgetExceeded, Overloaded, DeadlineExceeded, StoreLocked, StorageFull,
        StoreReadOnly, StoreCorrupt, SchemaMismatch, IntegrityViolation, Internal, ServicesUnavailable,
        DaemonUnavailable, SignatureInvalid, HostPubkeyNotEnrolled,
    )
}  # fmt: skip


def from_wire(
    key: str, message: str, hint: str = "", retryable: bool = False, details: Mapping[str, Any] | None = None
) -> BeetleError:
    """An error as somebody else said it, word for word; a key that is not known here makes an Internal of that key."""
    kind = ERRORS.get(key) or type("Newer", (Internal,), {"key": key, "retryable": retryable})
    error = kind.__new__(kind)
    error.message, error.hint, error.details = message, hint, dict(details or {})
    Exception.__init__(error, f"{key}: {message}")
    return error
