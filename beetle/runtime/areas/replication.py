"""The replica as others see it: the sidecar itself is the daemon's business."""

from __future__ import annotations

from collections.abc import Mapping

from beetle.contracts.replication import ReplicationStatusReport, ReplicationStatusRequest
from beetle.runtime.pipeline.handlers import Handler, Plain
from beetle.runtime.pipeline.invocation import Invocation


def status(invocation: Invocation, request: ReplicationStatusRequest) -> ReplicationStatusReport:
    """What who keeps the replica tells of it."""
    del request
    return invocation.shared.replica.status()


HANDLERS: Mapping[str, Handler] = {"replication.status": Plain(status)}
