"""Tool calls and results as text behind a message's content: what the digest covers, recall finds and erasure takes out
is one text. The message's length says where its content ends, so that no content can be taken for them.

Each is a line of its own, as JSON: `{"tool_call": {"tool": "weather", "arguments": {"city": "Oslo"}}}`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import msgspec
from msgspec import Struct

from beetle.contracts.errors import InvalidRequest
from beetle.contracts.transcript import ToolResultView, TranscriptMessage
from beetle.contracts.turns import ToolCall, ToolResult

Parts = tuple[tuple[ToolCall, ...], ToolResult | None]


class _StoredPart(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    tool_call: ToolCall | None = None
    tool_result: ToolResult | None = None


_encoder = msgspec.json.Encoder(order="sorted")
_decoder = msgspec.json.Decoder(_StoredPart)


def tail_of(calls: tuple[ToolCall, ...], result: ToolResult | None) -> str:
    """What follows the content; empty without calls and result. Equal parts give equal text."""
    lines = [_StoredPart(tool_call=each) for each in calls]
    if result is not None:
        lines.append(_StoredPart(tool_result=result))
    return "".join(f"\n{_encoder.encode(each).decode()}" for each in lines)


def parts_of(tail: str) -> Parts:
    """The calls and the result of a text that `tail_of` made.

    Raises:
        ValueError: it is none.
    """
    calls: list[ToolCall] = []
    result: ToolResult | None = None
    for text in tail[1:].split("\n"):
        line = _decoder.decode(text)
        if line.tool_call is not None:
            calls.append(line.tool_call)
        result = line.tool_result or result
    parts = tuple(calls), result
    if not tail or tail_of(*parts) != tail:
        raise ValueError("the parts of a message are not as they were written")
    return parts


def is_tail(tail: str) -> bool:
    """Whether `tail_of` made this text, and it is not empty."""
    try:
        parts_of(tail)
    except ValueError:  # msgspec's errors are such
        return False
    return True


def refuse_binary(value: Any, path: str) -> None:
    """Raises InvalidRequest where a value of a call or a result is none of JSON's."""
    if isinstance(value, Mapping):
        for name, each in cast("Mapping[str, Any]", value).items():
            refuse_binary(each, f"{path}.{name}")
    elif isinstance(value, list | tuple):
        for place, each in enumerate(cast("list[Any]", value)):
            refuse_binary(each, f"{path}[{place}]")
    elif value is not None and not isinstance(value, str | int | float):
        raise InvalidRequest(reason=f"neither text, number, boolean, list nor map - at {path}", path=path)


def lines_of(message: TranscriptMessage) -> list[str]:
    """A message's tool calls and result for a person, a line each."""
    lines = [
        _spoken(f"calls {each.tool}", each.call_id, each.arguments, each.brief) for each in message.tool_calls or ()
    ]
    result = message.tool_result
    if isinstance(result, ToolResultView):
        what = " ".join(filter(None, ("failure" if result.failed else "result", result.tool and f"of {result.tool}")))
        lines.append(_spoken(what, result.call_id, result.output, None))
    return lines


def _spoken(what: str, call_id: str | None, values: dict[str, Any] | None, brief: str | None) -> str:
    shown = None if values is None else _encoder.encode(values).decode()
    return " ".join(filter(None, (what, call_id and f"[{call_id}]", shown, brief)))
