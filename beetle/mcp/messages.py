"""JSON-RPC 2.0 as MCP uses it: what a line holds, and what is written back."""

from __future__ import annotations

import json
import math
from typing import Any

from beetle.named_tuple import NamedTuple

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
BUSY = -32000
RESOURCE_NOT_FOUND = -32002
"""MCP's own, up to its revision 2025-11-25."""
NO_METHOD = 'a message needs "jsonrpc": "2.0" and a method'

RpcId = int | str


class RpcError(Exception):
    """What a request is answered with that cannot be done; `data` says more to a program."""

    def __init__(self, code: int, message: str, data: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


class Incoming(NamedTuple):
    """A request, or without an id a notification. `method` is empty for an answer, which nobody here has asked for."""

    method: str
    id: RpcId | None
    params: dict[str, Any]


class Wrong(NamedTuple):
    """A message that is none: the error to answer it with, and its id where it has one."""

    id: RpcId | None
    error: RpcError


def parse(line: bytes) -> Any:
    """The value of a line.

    Raises:
        RpcError: it is no JSON, or holds what no JSON can: a number beyond a float's range, a lone surrogate.
    """
    try:
        value = _DECODER.decode(line.decode())
        if b"\\u" in line:
            packed(value)  # a lone surrogate cannot be written
    except (ValueError, RecursionError) as error:
        raise RpcError(PARSE_ERROR, f"the line is not JSON: {error}") from None
    return value


def _finite(text: str) -> float:
    """A number of a line; the library takes NaN and Infinity too."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:32]} is no number of JSON")
    return number


# The standard library's: the struct library takes a third of the time in which a server starts, and none of what a host
# says before it asks for the tools needs it.
_DECODER = json.JSONDecoder(parse_float=_finite, parse_constant=_finite)
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def read_message(value: Any) -> Incoming | Wrong:
    """One message of what a line held."""
    if not isinstance(value, dict):
        return Wrong(None, RpcError(INVALID_REQUEST, "a message is a JSON object"))
    found = value.get("id")
    readable = isinstance(found, (int, str)) and not isinstance(found, bool)
    request_id = found if readable else None
    if "method" not in value and ("result" in value or "error" in value):
        return Incoming("", None, {})
    method, params = value.get("method"), value.get("params", {})
    if value.get("jsonrpc") != "2.0" or not isinstance(method, str) or not method:
        return Wrong(request_id, RpcError(INVALID_REQUEST, NO_METHOD))
    if "id" in value and not readable:
        return Wrong(None, RpcError(INVALID_REQUEST, "an id is a text or an integer"))
    if not isinstance(params, dict):
        return Wrong(request_id, RpcError(INVALID_PARAMS, "params is an object"))
    return Incoming(method, request_id, params)


def answer(request_id: RpcId, result: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "result": result}


def refusal(request_id: RpcId | None, error: RpcError) -> dict[str, Any]:
    told: dict[str, Any] = {"code": error.code, "message": error.message}
    if error.data is not None:
        told["data"] = error.data
    return {"jsonrpc": "2.0", "id": request_id, "error": told}


def notification(method: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": params}


def packed(message: Any) -> bytes:
    """One line, with its end."""
    return _ENCODER.encode(message).encode() + b"\n"


def text_of(params: dict[str, Any], name: str) -> str:
    """A text that a request must have.

    Raises:
        RpcError: it has none of that name.
    """
    value = params.get(name)
    if not isinstance(value, str) or not value:
        raise RpcError(INVALID_PARAMS, f"params.{name} is a text")
    return value
