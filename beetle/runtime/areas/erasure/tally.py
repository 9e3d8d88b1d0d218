"""What an erasure has done: kept with what is left of it, so that whoever does the rest can tell of all."""

from __future__ import annotations

import hashlib
from typing import Annotated

from msgspec import Meta, Struct

from beetle.contracts.forgetting import ForgetReason
from beetle.runtime.areas.erasure import turns
from beetle.runtime.areas.erasure.kinds import Step
from beetle.runtime.areas.erasure.turns import Impact
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.planes.forgetting import Selection
from beetle.store.event_log import Head

Stays = dict[str, dict[ForgetReason, list[str]]]
"""What stays: by what it is counted as, and why, its refs."""
Number = Annotated[int, Meta(ge=0)]
NUMBERS = ("affected", "changed", "changed_messages", "count_messages", "count_refs", "count_derived")


class Done(Struct, frozen=True, forbid_unknown_fields=True):
    """What is kept of a tally; `digest` in hex."""

    affected: Number
    changed: Number
    changed_messages: Number
    count_messages: Number
    count_refs: Number
    count_derived: Number
    counts: dict[str, Number]
    digest: Annotated[str, Meta(pattern=r"^([0-9a-f]{64})?\Z")]
    stays: Stays
    hidden: Number


class Tally(Struct):
    """All that an erasure did.

    Attributes:
        stays: what was to go, and has changed since or is found to stay.
        hidden: records that would go and that an operator may not see.
        gone: refs of what this slice erased.
        seen: where the log ended when nothing more was found to rest on what is gone.
    """

    impact: Impact
    counts: dict[str, int] = {}
    digests: list[bytes] = []
    stays: Stays = {}
    hidden: int = 0
    seen: Head | None = None
    gone: list[str] = []

    @property
    def changed(self) -> bool:
        """Whether anything was done."""
        return bool(self.impact.changed or self.impact.changed_messages or any(self.counts.values()))

    def add(self, step: Step) -> None:
        """Count what became of a record."""
        self.counts[step.counted_as] = self.counts.get(step.counted_as, 0) + (step.digests is not None)
        self.digests.extend(step.digests or ())
        self.hidden += step.hidden
        if step.stays is not None:
            self.keep(step.counted_as, step.stays, step.ref)
        elif step.digests is not None:
            self.gone.append(step.ref)

    def keep(self, counted_as: str, reason: ForgetReason, ref: str) -> None:
        """A record stays; each is told once."""
        reasons = self.stays.setdefault(counted_as, {})
        if not ref or not any(ref in refs for refs in reasons.values()):
            reasons.setdefault(reason, []).append(ref)

    def see(self, found: Selection) -> None:
        """What was found when all was gone, and stays."""
        self.hidden = max(self.hidden, found.hidden)
        for (counted_as, reason), refs in found.stays.items():
            for ref in refs:
                self.keep(counted_as, reason, ref)

    def join(self, more: Tally) -> None:
        """Add what another slice has done."""
        self.impact.join(more.impact)
        self.digests += more.digests
        self.hidden += more.hidden
        for name, number in more.counts.items():
            self.counts[name] = self.counts.get(name, 0) + number
        gone = set(more.gone) - {""} if self.stays else ()
        for refs in (refs for reasons in self.stays.values() for refs in reasons.values() if gone):
            refs[:] = [each for each in refs if each not in gone]
        for counted_as, reasons in more.stays.items():
            for reason, refs in reasons.items():
                for ref in refs:
                    self.keep(counted_as, reason, ref)

    def written(self) -> Done:
        """What is kept of it; of the digests one of them all."""
        numbers = {name: getattr(self.impact, name) for name in NUMBERS}
        folded = hashlib.sha256(b"".join(sorted(self.digests))).hexdigest() if self.digests else ""
        return Done(**numbers, counts=self.counts, digest=folded, stays=self.stays, hidden=self.hidden)


def read(invocation: Invocation, written: Done | None) -> Tally:
    """What was kept of what was done before; nothing yet, where none was."""
    impact = turns.new_impact(invocation)
    if written is None:
        return Tally(impact)
    for name in NUMBERS:
        setattr(impact, name, getattr(written, name))
    stays: Stays = {plane: {why: list(refs) for why, refs in each.items()} for plane, each in written.stays.items()}
    digests = [bytes.fromhex(written.digest)] if written.digest else []
    return Tally(impact, dict(written.counts), digests, stays, written.hidden)
