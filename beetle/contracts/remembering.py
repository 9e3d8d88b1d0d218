"""memory.remember: one fact in plain words, its evidence made from the call, judged like any candidate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import Meta

from beetle.contracts.common import Conversation, ConversationRef, Report
from beetle.contracts.fields import NONBLANK, Label, Open, Request, budgeted
from beetle.contracts.governance import Authority, FactText, KindArg, Reason, Topic
from beetle.contracts.operation import MEMORY, Operation, Tool

Remembered = Literal["accepted", "waiting", "refused"]
Words = Annotated[str, Meta(pattern=NONBLANK, extra=budgeted("message_content_bytes"))]

REASONS: Mapping[Reason, str] = {
    "created": "remembered",
    "unchanged": "was known already",
    "superseded": "replaced an earlier fact",
    "policy_suppressed": "a policy forbids facts of this kind or topic",
    "policy_paused": "a policy puts it off",
    "privacy_target_mismatch": "its privacy does not fit its target",
    "private_unavailable": "it is private, and no key to seal it is available",
    "evidence_missing": "a ref of its evidence names no message",
    "evidence_unavailable": "its evidence is masked, deleted or not to be cited",
    "evidence_does_not_bear": "the evidence does not say this",
    "needs_assertion": "it is the assistant's claim alone, and needs the user's word",
    "weaker_authority": "somebody with more authority said or removed this",
    "soul_handoff": "it waits for the soul to take it over",
    "queue_full": "the queue of waiting candidates is full",
    "declined": "it was declined",
}
"""Each reason of a judgement in words."""


class MemoryRememberRequest(Request, frozen=True, kw_only=True):
    """Remember one fact in plain words: store the words as evidence, then judge the fact by them.

    With `said`, these words are stored as the user's, and the fact is judged as asserted by the user. Without it,
    `text` is stored as the assistant's, and the fact waits for a user's word.
    """

    text: Annotated[FactText, Meta(description="the fact, one whole sentence such as: Mara prefers tea")]
    said: Annotated[Words, Meta(description="the user's own words that say it, unchanged")] | None = None
    speaker: Annotated[Label, Meta(description="display name of the user who said it")] | None = None
    topic: Topic = ""
    kind: KindArg = "fact"
    conversation: (
        Annotated[
            Conversation,
            Meta(
                description="conversation in which the words are stored; default: the scope's, else one for each "
                "caller and day (UTC)"
            ),
        ]
        | None
    ) = None

    def __post_init__(self) -> None:
        if self.speaker is not None and self.said is None:
            raise ValueError("speaker is of said: give both")


class MemoryRememberReport(Report, frozen=True, kw_only=True):
    """What became of it. `accepted`: the fact `ref` is current. `waiting`: governance.list shows it as `waiting_id`.
    `refused`: only the evidence was stored. `evidence_ref` names the words, which recall finds in any case.

    `authority` is whose word the fact was judged as. `superseded_ref` is the fact that it replaced.
    """

    outcome: Open[Remembered]
    reason: Open[Reason]
    authority: Open[Authority]
    evidence_ref: Open[str]
    conversation: Open[ConversationRef]
    ref: Open[str | None] = None
    revision: Open[int | None] = None
    superseded_ref: Open[str | None] = None
    waiting_id: Open[str | None] = None


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "memory.remember", "remember", MemoryRememberRequest, MemoryRememberReport, "write", "write", MEMORY,
        ("memory", "remember"),
        "remember one fact in plain words: store the words as evidence, then judge the fact by them",
        word="text",
        example={"text": "Mara prefers tea.", "said": "I prefer tea.", "speaker": "Mara"},
        shell=(
            "beetle memory remember 'The spare key hangs by the door.'",
            "beetle memory remember 'Mara prefers tea.' --said 'I prefer tea.' --speaker Mara --topic drink",
        ),
        idempotent=False,
        tool=Tool(place=3),
    ),
)  # fmt: skip
