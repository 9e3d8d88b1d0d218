"""The writes of staged operations: the rights of who was answered first are kept with the report.

Such a report is of what its caller saw then: refs, counts, a token. Who has fewer rights by now is not told it.
"""

from __future__ import annotations

from typing import Any, TypeVar

from msgspec import Struct

from beetle.contracts import codec
from beetle.contracts.common import Report
from beetle.contracts.errors import Conflict
from beetle.contracts.names import ViewName
from beetle.runtime.pipeline.first_reports import kept_form
from beetle.runtime.pipeline.idempotency import KeyedWrite
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.pipeline.views import RawReport

R = TypeVar("R", bound=Report)

A_PAIR = 0x92
"""The first byte of rights and a report, in MessagePack; that of a report alone is a map's."""


class Rights(Struct, frozen=True, array_like=True):
    """What a caller may see of a scope. `own`: as the scope's own agent."""

    capabilities: tuple[str, ...]
    views: tuple[ViewName, ...]
    operator: bool
    own: bool

    def lacks(self, others: Rights) -> bool:
        """Whether any of another's rights is missing here."""
        return (
            not set(others.capabilities) <= set(self.capabilities)
            or not set(others.views) <= set(self.views)
            or (others.operator and not self.operator)
            or (others.own and not self.own)
        )


def rights_of(invocation: Invocation) -> Rights:
    """The rights of a call."""
    caller = invocation.caller
    own = invocation.viewer().own_agent
    return Rights(tuple(sorted(caller.capabilities)), tuple(sorted(caller.views)), caller.is_operator, own)


def packed(rights: Rights | None, report: Report) -> bytes:
    """A report as it is kept, behind the rights of who was answered it."""
    kept = kept_form(report)
    return codec.pack(kept if rights is None else (rights, kept))


def unpacked(data: bytes, kind: type[R]) -> tuple[Rights | None, R]:
    """The rights and the report that were kept; no rights in rows of builds that kept none."""
    if data[:1] != bytes((A_PAIR,)):
        return None, codec.unpack(data, kind)
    return codec.unpack(data, tuple[Rights, kind])


def check_rights(invocation: Invocation, asked: Rights | None) -> None:
    """Whether a caller may be told again what a key was answered.

    Raises:
        Conflict: it lacks a right of who was answered first.
    """
    if asked is not None and rights_of(invocation).lacks(asked):
        raise Conflict(
            reason="this idempotency key was answered before, a caller with more rights than this one has now;"
            " nothing of that answer is shown",
            hint="use a new key: what this caller may see now is answered anew",
        )


class StagedWrite(KeyedWrite):
    """The writes of a staged operation, whose report is answered again as it was: to who has all the rights still by
    which it was made."""

    _asked: Rights | None = None

    def check_rights(self) -> None:
        """Of what the key was answered before. Raises as `check_rights`."""
        if self.repeated:
            check_rights(self._invocation, self._asked)

    def _packed(self, report: RawReport) -> bytes:
        return packed(rights_of(self._invocation), report)

    def _unpacked(self, kept: bytes) -> Any:
        self._asked, report = unpacked(kept, self._invocation.operation.report)
        return report
