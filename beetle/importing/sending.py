"""Sends what was prepared: batches of turns, then the candidates that rest on them, as any client would."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import cast

from beetle.asking import Asked, Asking
from beetle.contracts.common import Conversation
from beetle.contracts.control import HelloReport
from beetle.contracts.errors import BeetleError, Conflict, InvalidRequest, PayloadTooLarge, PrivacyDenied
from beetle.contracts.memory import MemoryCapabilityCatalog, MemoryWriteReport
from beetle.contracts.transcript import MemoryTranscriptCommitReport, MemoryTranscriptTimelineReport
from beetle.importing.items import SourceLocation
from beetle.importing.prepare import Prepared
from beetle.importing.report import FileReport

BATCH_TURNS = 250
BATCH_BYTES = 512 * 1024
"""A batch ends at either: larger ones gain little, and who asks meanwhile waits for one to be written."""
BUFFERED_BATCHES = 4
"""So many batches may be collected, over all conversations, before they are sent as they are."""
FRAME_SHARE = 2
"""A frame may be so many times what a batch's texts are."""
WAITS: dict[str, str] = {"accepted": "accepted", "deferred": "waiting", "rejected": "rejected"}
OF_CLAIM = re.compile(r"\$\.args\.candidates\[(\d+)\]")

Where = tuple[str, str]


Told = Callable[[SourceLocation | None, str], None]


def new_sender(told: Told) -> Asking[Sender]:
    """A sender whose batches fit the profile."""
    return Sender(cast(HelloReport, (yield Asked("hello", {}))).limits, told)


class Sender:
    """Collects turns by conversation and sends them; what is refused of them is told one by one."""

    def __init__(self, limits: Mapping[str, int], told: Told) -> None:
        self._told = told
        self._turns = min(BATCH_TURNS, limits["commit_turns"])
        self._bytes = min(BATCH_BYTES, limits["frame_bytes"] // FRAME_SHARE)
        self._claims_at_once = min(BATCH_TURNS, limits["batch_requests"])
        self._most_content = limits["message_content_bytes"]
        self._view: str | None = None
        self._report = FileReport(path="", format="")
        self._waiting: dict[Where, list[Prepared]] = {}
        self._sizes: dict[Where, int] = {}
        self._claims: list[Prepared] = []

    def begin(self, report: FileReport) -> None:
        """What comes now is of another file, which this report is about."""
        self._report = report

    def add(self, prepared: Prepared) -> Asking[None]:
        """Take one turn; it is sent with the next batch of its conversation.

        Raises:
            BeetleError: the store or the daemon cannot go on; what was sent before stays.
        """
        # Of a turn that is smaller as a whole no message can be too large.
        if prepared.size > self._most_content and _largest(prepared) > self._most_content:
            self._told(prepared.place, f"a message is larger than {self._most_content:,} bytes")
            return
        where = (prepared.conversation.channel_id, prepared.conversation.conversation_id)
        size = self._sizes.get(where, 0)
        if where in self._waiting and size + prepared.size > self._bytes:
            yield from self._send(where)
            size = 0
        self._waiting.setdefault(where, []).append(prepared)
        self._sizes[where] = size + prepared.size
        if len(self._waiting[where]) >= self._turns:
            yield from self._send(where)
        elif (
            sum(self._sizes.values()) > BUFFERED_BATCHES * self._bytes
            or sum(map(len, self._waiting.values())) > BUFFERED_BATCHES * self._turns
        ):
            yield from self.flush()

    def flush(self) -> Asking[None]:
        """Send all that was collected."""
        for where in list(self._waiting):
            yield from self._send(where)
        while self._claims:
            claims, self._claims = self._claims[: self._claims_at_once], self._claims[self._claims_at_once :]
            yield from self._judge(claims)

    def _send(self, where: Where) -> Asking[None]:
        batch = self._waiting.pop(where)
        del self._sizes[where]
        yield from self._commit(batch[0].conversation, batch)
        while len(self._claims) >= self._claims_at_once:
            claims, self._claims = self._claims[: self._claims_at_once], self._claims[self._claims_at_once :]
            yield from self._judge(claims)

    def _commit(self, where: Conversation, batch: Sequence[Prepared]) -> Asking[None]:
        arguments = {"conversation": where, "turns": [each.turn for each in batch]}
        try:
            report = cast(MemoryTranscriptCommitReport, (yield Asked("transcript.commit", arguments)))
        except Conflict as error:
            yield from self._conflict(where, batch, error)
            return
        except (InvalidRequest, PayloadTooLarge, PrivacyDenied) as error:
            yield from self._one_by_one(where, batch, error)
            return
        self._report.committed += report.committed
        self._report.unchanged += report.unchanged
        self._report.list_conversation(where)
        self._claims += [each for each in batch if each.claim is not None]

    def _conflict(self, where: Conversation, batch: Sequence[Prepared], error: Conflict) -> Asking[None]:
        """Turns that are there with another time take the time that they have. One that was exported in part
        counts as there; others are told, and passed over.
        """
        turn_id = error.details.get("turn_id")
        # Of two of a file that say different things the later one is refused; of one in part nobody knows that it does.
        named = [each for each in batch if each.turn["turn_id"] == turn_id]
        found = next((each for each in named if each.partial), named[-1] if named else None)
        if found is None:
            # A message's id is taken, which the error names without its turn.
            yield from self._one_by_one(where, batch, error)
            return
        if found.made_id:
            known = yield from self._times(where, str(turn_id))
            adopted = [_at(each, known) for each in batch]
            if any(new is not old for new, old in zip(adopted, batch, strict=True)):
                yield from self._commit(where, adopted)
                return
        if found.partial:
            self._report.unchanged += 1
            self._report.partial += 1
            self._report.list_conversation(where)
        else:
            self._told(found.place, error.message)
        rest = [each for each in batch if each is not found]
        # In halves: of many that are refused each would have all the others sent again.
        for part in (rest[: len(rest) // 2], rest[len(rest) // 2 :]):
            if part:
                yield from self._commit(where, part)

    def _one_by_one(self, where: Conversation, batch: Sequence[Prepared], error: BeetleError) -> Asking[None]:
        """Find what is refused of a batch: half of it at a time, until it stands alone."""
        if len(batch) == 1:
            self._told(batch[0].place, error.message)
            return
        yield from self._commit(where, batch[: len(batch) // 2])
        yield from self._commit(where, batch[len(batch) // 2 :])

    def _times(self, where: Conversation, turn_id: str) -> Asking[dict[str, str]]:
        """When the turns around one are, as the store has them."""
        if self._view is None:
            self._view = cast(MemoryCapabilityCatalog, (yield Asked("memory.capabilities", {}))).views[0]
        asked = {"conversation": where, "view": self._view, "anchor": {"turn": turn_id}, "limit": self._turns}
        page = cast(MemoryTranscriptTimelineReport, (yield Asked("transcript.timeline", asked)))
        return {turn.turn_id: turn.at for turn in page.turns}

    def _judge(self, claims: Sequence[Prepared]) -> Asking[None]:
        arguments = {"kind": "candidates", "candidates": [each.claim for each in claims]}
        try:
            report = cast(MemoryWriteReport, (yield Asked("memory.write", arguments)))
        except (InvalidRequest, PayloadTooLarge, PrivacyDenied) as error:
            yield from self._refused(claims, error)
            return
        for outcome in report.outcomes:
            field = WAITS[outcome.outcome]
            setattr(self._report, field, getattr(self._report, field) + 1)
            if outcome.outcome != "accepted":
                self._report.reasons[outcome.reason] = self._report.reasons.get(outcome.reason, 0) + 1

    def _refused(self, claims: Sequence[Prepared], error: BeetleError) -> Asking[None]:
        """A candidate that is refused before it is judged, as a secret is; its words stay as evidence."""
        named = OF_CLAIM.match(str(error.details.get("path", "")))
        index = 0 if len(claims) == 1 else None if named is None else int(named[1])
        if index is not None and index < len(claims):
            self._told(claims[index].place, f"kept as evidence, and no fact: {error.message}")
            parts = (claims[:index], claims[index + 1 :])
        else:
            parts = (claims[: len(claims) // 2], claims[len(claims) // 2 :])
        for part in parts:
            if part:
                yield from self._judge(part)


def _largest(prepared: Prepared) -> int:
    return max(len(each["content"].encode()) for each in prepared.turn["messages"])


def _at(prepared: Prepared, known: dict[str, str]) -> Prepared:
    at = known.get(prepared.turn["turn_id"]) if prepared.made_id else None
    given = prepared.turn["at"]
    if at is None or at == given:
        return prepared
    return prepared._replace(turn={**prepared.turn, "at": at})
