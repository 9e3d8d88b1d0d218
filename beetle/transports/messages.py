"""The frames of a session: requests as they are decoded, answers and events as they are sent (WIRE.md §2)."""

from __future__ import annotations

import logging
import os

from msgspec import Struct

from beetle.contracts.codec import UNSET, decode_request, pack
from beetle.contracts.envelope import PROTOCOL, RequestId, WireAnswer, WireError, WireEvent, WireRequest
from beetle.contracts.errors import BeetleError, Internal, InvalidRequest, NoDescriptor
from beetle.contracts.progress import PROGRESS, PROGRESS_TOPIC
from beetle.named_tuple import NamedTuple
from beetle.runtime.pipeline.begun import BegunCall
from beetle.runtime.pipeline.subscriptions import Delivery, followed_as
from beetle.runtime.pipeline.views import RevealedReport
from beetle.transports.frames import Frame

log = logging.getLogger("beetle.socket")

ID_BYTES = 64


class _LenientId(Struct):
    """Reads the id of a request whose other fields are wrong."""

    id: RequestId | None = None


class Begun(NamedTuple):
    """A request that was begun, and the id that its answer bears."""

    request_id: RequestId
    call: BegunCall

    def answer(self) -> bytes:
        """The frame of its answer; waits for what comes of it."""
        try:
            report, repeated = self.call.complete()
            return pack(answered(self.request_id, report, repeated))
        except BeetleError as error:
            return pack(refused(self.request_id, error))


def event_frame(sub: str, delivery: Delivery) -> WireEvent:
    if delivery.progressed is not None:
        operation, request, step = delivery.progressed
        said = {"event": PROGRESS, "operation": operation, "id": request, "step": step.name, "number": step.number}
        rest = {"steps": step.steps, "done": step.done, "of": step.of}
        return WireEvent(sub=sub, topic=PROGRESS_TOPIC, event=said | rest)
    if delivery.logged is None:
        return WireEvent(sub=sub, event={"dropped": delivery.dropped})
    event = delivery.logged.event
    told = {"event": event.event, "operation": event.operation, **event.subject}
    return WireEvent(sub=sub, topic=followed_as(event), event=told, seq=delivery.logged.seq)


def decoded(frame: Frame) -> WireRequest:
    if frame.fault is not None:
        path, reason = frame.fault
        raise InvalidRequest(reason=f"{reason} - at {path}", path=path)
    request = decode_request(frame.data, WireRequest, "$", scanned=True)
    if request.v != PROTOCOL:
        raise InvalidRequest(reason=f"this daemon speaks protocol {PROTOCOL}, not {request.v}", path="$.v")
    if not _fits(request.id):
        raise InvalidRequest(reason=f"an id has at most {ID_BYTES} bytes - at $.id", path="$.id")
    return request


def _fits(request_id: RequestId | None) -> bool:
    # The struct's own limit counts characters.
    return not isinstance(request_id, str) or len(request_id.encode()) <= ID_BYTES


def id_of(frame: Frame) -> RequestId | None:
    if frame.fault is not None and frame.fault.path == "$.id":
        return None
    try:
        found = decode_request(frame.data, _LenientId, "$", scanned=True).id
    except (InvalidRequest, NoDescriptor):
        return None
    return found if _fits(found) else None


def answered(request_id: RequestId, report: RevealedReport, repeated: bool = False) -> WireAnswer:
    """The answer frame of a report; no other frame holds one."""
    return WireAnswer(id=request_id, ok=True, report=report, repeated=repeated or UNSET)


def refused(request_id: RequestId | None, error: BeetleError) -> WireAnswer:
    told = WireError(
        key=error.key, message=error.message, hint=error.hint, retryable=error.retryable, details=error.details
    )
    return WireAnswer(id=request_id, ok=False, error=told)


def defect_of(error: Exception) -> BeetleError:
    """What is told of an error that no one foresaw; a defect is logged."""
    import traceback

    if NoDescriptor.is_behind(error):
        return NoDescriptor()
    reference = f"E{os.urandom(4).hex()}"
    # The frames name code, never values; the error's own text might hold content, and is left out.
    frames = "".join(traceback.format_tb(error.__traceback__))
    log.error("%s: %s in a connection\n%s", reference, type(error).__name__, frames, extra={"event": "defect"})
    return Internal(reference=reference)
