"""Revision 2026-07-28: no handshake. Each request names its revision in `_meta`, and each result says what it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from beetle.mcp.messages import INVALID_PARAMS, RpcError
from beetle.mcp.revisions import ENVELOPED, Revision

VERSION = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
SERVER = "io.modelcontextprotocol/serverInfo"
UNSUPPORTED_VERSION = -32022

DISCOVER = "server/discover"
HANDSHAKE_METHODS = frozenset({"ping", "logging/setLevel"})
"""Methods that this revision has no more, beside initialize."""
HOUR_MS = 3_600_000
FRESH_MS: Mapping[str, int] = {
    DISCOVER: HOUR_MS,
    "resources/list": HOUR_MS,
    "resources/templates/list": HOUR_MS,
    "prompts/list": HOUR_MS,
    "tools/list": 0,  # it follows what the caller was granted
    "resources/read": 0,
}
"""Milliseconds for which a host may keep a result that it may keep at all; the lists of one hour never change."""


def is_enveloped(params: Mapping[str, Any]) -> bool:
    """Whether a request says its revision itself, as those before this one never do."""
    meta = params.get("_meta")
    return isinstance(meta, dict) and VERSION in meta


def revision_of(params: Mapping[str, Any]) -> Revision:
    """The revision that a request is of.

    Raises:
        RpcError: its `_meta` lacks what every request has, or names a revision that is not known here.
    """
    meta = params.get("_meta")
    missing = [name for name in (VERSION, CAPABILITIES) if not isinstance(meta, dict) or name not in meta]
    if missing:
        raise RpcError(INVALID_PARAMS, f"params._meta lacks {' and '.join(missing)}")
    assert isinstance(meta, dict)
    name = meta[VERSION]
    if not isinstance(name, str) or not isinstance(meta[CAPABILITIES], dict):
        raise RpcError(INVALID_PARAMS, f"in params._meta, {VERSION} is a text and {CAPABILITIES} an object")
    if name != ENVELOPED.name:
        raise unsupported(name)
    return ENVELOPED


def unsupported(asked: Any) -> RpcError:
    """The refusal of a revision, by which a host finds one that both know."""
    data = {"supported": [ENVELOPED.name], **({"requested": asked[:64]} if isinstance(asked, str) else {})}
    return RpcError(UNSUPPORTED_VERSION, f"this session speaks the protocol {ENVELOPED.name}", data)


def sealed(method: str, result: dict[str, Any], server: Mapping[str, Any]) -> dict[str, Any]:
    """A result with what this revision asks of every one of them."""
    fresh = FRESH_MS.get(method)
    kept = {} if fresh is None else {"ttlMs": fresh, "cacheScope": "private"}
    return {**result, **kept, "resultType": "complete", "_meta": {**result.get("_meta", {}), SERVER: server}}
