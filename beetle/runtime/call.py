"""A call on its way through the five steps: what a transport hands over, and what it gets back."""

from __future__ import annotations

from typing import Any, NamedTuple

from beetle.contracts import codec
from beetle.contracts.common import Lifecycle, Report, WireScope
from beetle.contracts.envelope import DeviceAuth
from beetle.contracts.errors import InvalidRequest
from beetle.contracts.progress import Tell
from beetle.runtime.caller import Caller
from beetle.runtime.handling import Context
from beetle.runtime.transports import Line
from beetle.store.readers import Gone
from beetle.store.writer import WriteTransaction


class Call(NamedTuple):
    """One request as a transport hands it over.

    `arguments` are undecoded MessagePack (`codec.Raw`), a request struct, or a mapping of its fields; `scanned` says
    that the transport has looked them through for values that no request may hold. `caller` is whom the transport
    takes the peer for; a device that proves itself by `auth`, or has done so on this `line`, is that device instead.
    `gone` says whether nobody waits for the answer any more: a read that runs on for nobody is stopped. `tell` is told
    how far the work is, on the thread that does it.
    """

    operation: str
    arguments: Any
    caller: Caller
    scope: WireScope | None = None
    idempotency_key: str | None = None
    deadline_ms: int | None = None
    auth: DeviceAuth | None = None
    scanned: bool = False
    line: Line | None = None
    gone: Gone | None = None
    tell: Tell | None = None


class Outcome(NamedTuple):
    """The report as the caller may see it; `repeated` when it was answered to this idempotency key before."""

    report: Report
    repeated: bool = False


def check_envelope(call: Call, key_bytes: int) -> None:
    """What stands beside the arguments; a frame's was decoded strictly but for the key, whose bound is in bytes."""
    key = call.idempotency_key
    if key is not None and not 0 < len(key.encode(errors="surrogatepass")) <= key_bytes:
        raise InvalidRequest(reason=f"an idempotency key has 1 to {key_bytes} bytes", path="$.idempotency_key")
    if call.deadline_ms is not None and call.deadline_ms < 1:
        raise InvalidRequest(reason="a deadline is at least 1 ms away", path="$.deadline_ms")
    if call.scope is not None and not call.scanned:
        codec.convert_request(call.scope, WireScope, "$.scope")


def stamp(context: Context, report: Any, tx: WriteTransaction | None, before: int = 0) -> Any:
    """Fill `lifecycle`: changed when the operation logged an event, which is the last one's number.

    What opens its own transactions has filled it itself, if it changed anything.
    """
    if tx is None and report.lifecycle is not None:
        return report
    logged = [] if tx is None else tx.logged[before:]
    lifecycle = Lifecycle(
        operation=context.operation.name,
        changed=bool(logged),
        at=codec.format_us(context.now if tx is None else tx.now),
        event_id=logged[-1].seq if logged else None,
    )
    return codec.replace(report, lifecycle=lifecycle)
