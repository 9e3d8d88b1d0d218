"""What stands around a message: metadata as the fields of a request, errors as status codes (WIRE.md §3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import grpc

from beetle.contracts.codec import convert_request, pack_json
from beetle.contracts.common import WireScope
from beetle.contracts.envelope import Auth, WireAuth
from beetle.contracts.errors import STATUS, BeetleError, InvalidRequest, Overloaded

PREFIX = "beetle-"
BINARY = "-bin"
"""Metadata of gRPC is ASCII, but for keys that end so."""
SCOPE = ("owner-id", "agent-id", "channel", "chat-id", "conversation-id")
AUTH = ("device-id", "app-key")
IDEMPOTENCY_KEY = "idempotency-key"
KNOWN = (*SCOPE, *AUTH, IDEMPOTENCY_KEY)
MESSAGE_CHARS = 1200

Metadata = Iterable[tuple[str, str | bytes]] | None


def headers(metadata: Metadata) -> Mapping[str, str]:
    """Our own keys of a call's metadata, without their prefix.

    Raises:
        InvalidRequest: a key that nobody knows, or a value that is no UTF-8.
    """
    found: dict[str, str] = {}
    for key, value in metadata or ():
        if not key.startswith(PREFIX):
            continue
        name = key.removeprefix(PREFIX).removesuffix(BINARY)
        if name not in KNOWN:
            raise InvalidRequest(reason=f"unknown metadata {key[:80]}", hint=f"known are {', '.join(KNOWN)}")
        try:
            found[name] = value.decode() if isinstance(value, bytes) else value
        except UnicodeDecodeError:
            raise InvalidRequest(reason=f"metadata {key[:80]} is no UTF-8", hint="encode it as UTF-8") from None
    return found


def scope_of(given: Mapping[str, str]) -> WireScope | None:
    """The scope that the metadata name; None where they name none."""
    named = {name.replace("-", "_"): given[name] for name in SCOPE if name in given}
    return convert_request(named, WireScope, "$.scope") if named else None


def auth_of(given: Mapping[str, str]) -> Auth | None:
    """A device's credentials, where the metadata hold any."""
    named = {name.replace("-", "_"): given[name] for name in AUTH if name in given}
    return convert_request(named, WireAuth, "$.auth").given if named else None


def status_of(error: BeetleError) -> grpc.StatusCode:
    """The status code of an error's key."""
    name = STATUS.get(error.key, STATUS["internal"]).grpc
    return grpc.StatusCode[name or "INTERNAL"]


def words_of(error: BeetleError) -> str:
    """The status message: what is wrong, then what to do."""
    return (f"{error.message}\n{error.hint}" if error.hint else error.message)[:MESSAGE_CHARS]


def trailers(error: BeetleError) -> tuple[tuple[str, str | bytes], ...]:
    """The error as the socket would answer it: its key, and the whole of it as JSON; and when to try again."""
    told: dict[str, Any] = {
        "key": error.key,
        "message": error.message,
        "hint": error.hint,
        "retryable": error.retryable,
        "details": error.details,
    }
    found: list[tuple[str, str | bytes]] = [("beetle-error", error.key), ("beetle-error-bin", pack_json(told))]
    if isinstance(error, Overloaded):
        found.append(("grpc-retry-pushback-ms", str(error.details.get("retry_after_ms", 0))))
    return tuple(found)
