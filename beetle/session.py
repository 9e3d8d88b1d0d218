"""A session: the methods of a client for one owner, agent and conversation."""

from __future__ import annotations

from typing import Any

from beetle.calls import conversation_of, filled
from beetle.contracts.common import Report, WireScope
from beetle.contracts.methods import OperationMethods, SessionMethods
from beetle.contracts.progress import OnProgress


class Session(SessionMethods):
    """Every call names the session's scope; one whose request needs a `conversation` gets the session's.

    An argument of the call takes precedence. A `conversation` that only narrows a search is not filled in: recall
    answers from the whole memory, with the session's conversation as the current one. Closing is the client's.
    """

    def __init__(self, client: OperationMethods, scope: WireScope) -> None:
        """`scope.conversation_id`, in the channel of the scope, is the session's conversation."""
        self._client = client
        self.scope = scope
        self.conversation = conversation_of(scope)

    def call(
        self,
        operation: str,
        arguments: Any = None,
        *,
        scope: WireScope | None = None,
        idempotency_key: str | None = None,
        deadline_ms: int | None = None,
        on_progress: OnProgress | None = None,
    ) -> Report:
        return self._client.call(
            operation,
            filled(operation, arguments, self.conversation),
            scope=scope or self.scope,
            idempotency_key=idempotency_key,
            deadline_ms=deadline_ms,
            on_progress=on_progress,
        )
