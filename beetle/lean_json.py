"""JSON for what must start fast: CPython's own scanner and encoder without the module around them.

`import json` loads `re` and `enum`, and takes as long as the rest of a hook's start. Where the interpreter has no such
parts, or a text is of no UTF-8, that module does it.
"""

from __future__ import annotations

try:
    import _json
except ImportError:
    _json = None  # type: ignore[assignment]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SPACE = " \t\n\r"
BOM = b"\xef\xbb\xbf"
CONSTANTS = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}


class _Context:
    """What the scanner asks of a decoder."""

    strict = True
    object_hook = object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = CONSTANTS.__getitem__


def loads(data: bytes) -> Any:
    """As `json.loads`. ValueError: it is no JSON."""
    if _json is None or b"\0" in data[:4]:
        import json

        return json.loads(data)
    text = data.removeprefix(BOM).decode("utf-8", "surrogatepass")
    begin = len(text) - len(text.lstrip(SPACE))
    try:
        value, end = _json.make_scanner(_Context)(text, begin)  # type: ignore[arg-type]
    except SystemError:
        # The scanner tells what is wrong by a class of `json.decoder`, and by nothing where that is not loaded.
        import json

        return json.loads(data)
    except StopIteration as at:
        raise ValueError(f"no JSON begins at character {at.value}") from None
    if text[end:].strip(SPACE):
        raise ValueError(f"something follows the JSON at character {end}")
    return value


def dumps(value: Any, *, ensure_ascii: bool) -> str:
    """As `json.dumps`, of maps, lists, texts, numbers, booleans and None."""
    if _json is None:
        import json

        return json.dumps(value, ensure_ascii=ensure_ascii)
    quote = _json.encode_basestring_ascii if ensure_ascii else _json.encode_basestring
    encode = _json.make_encoder({}, _refuse, quote, None, ": ", ", ", False, False, True)  # type: ignore[arg-type]
    return "".join(encode(value, 0))  # type: ignore[call-arg]


def _refuse(value: object) -> Any:
    raise TypeError(f"{type(value).__name__} is nothing that JSON has")
