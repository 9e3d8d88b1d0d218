"""Encoding and validation of contract structs; the one door to the struct library outside `contracts/`."""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from types import UnionType
from typing import Any, NoReturn, TypeVar, cast, overload

import msgspec
from msgspec import UNSET, Raw, UnsetType

from beetle.contracts.errors import InvalidRequest
from beetle.contracts.fields import NONBLANK
from beetle.contracts.loading import load

__all__ = [
    "UNSET", "Raw", "UnsetType", "check_values", "convert_request", "decode_json", "decode_request", "fields_of",
    "format_us", "from_plain",
    "from_us", "in_words", "pack", "pack_json", "refuse_double_keys", "replace", "to_plain", "to_us", "to_wire",
    "unique_keys", "unpack", "unpack_any", "unpack_json",
]  # fmt: skip

T = TypeVar("T")
S = TypeVar("S", bound=msgspec.Struct)

INT64_MAX = 2**63 - 1
INT64_MIN = -(2**63)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
FIRST_US = (datetime.min.replace(tzinfo=UTC) - EPOCH) // _MICROSECOND
LAST_US = (datetime.max.replace(tzinfo=UTC) - EPOCH) // _MICROSECOND
"""The ends of the years 1 to 9999 of UTC, in microseconds since the epoch."""
_PLACE = r" - at `\$([^`]*)`\Z"
_NAMED_FIELD = r"(?s)Object (?:contains unknown|missing required) field `(.*)`"
_WORDS = {
    "str": "text", "int": "an integer", "float": "a number", "bool": "true or false", "bytes": "bytes", "null": "null",
    "object": "a map", "array": "a list", "datetime": "a time", "ext": "an extension", "None": "null",
}  # fmt: skip
"""What msgspec calls a type, in words that hold for callers in any language."""
_TYPE = f"(?:{'|'.join(_WORDS)})"
_FIELD_SHOWN = 128
"""Most characters of a field's name that an error repeats: the caller made it up."""

_encoder = msgspec.msgpack.Encoder()


def pack(value: Any) -> bytes:
    """MessagePack of structs and builtins; struct fields in their declared order, so equal values give equal bytes."""
    return _encoder.encode(value)


def pack_json(value: Any, *, in_order: bool = False) -> bytes:
    """JSON of structs and builtins, on one line; `in_order` sorts the keys of every object."""
    return msgspec.json.encode(value, order="sorted" if in_order else None)


def json_text(value: Any) -> str:
    """JSON of builtins, as SQLite's functions take it. Unlike `import json`, it costs a start nothing."""
    return pack_json(value).decode()


_decoders: dict[Any, msgspec.msgpack.Decoder[Any]] = {}
_building = threading.Lock()


def _decoder(kind: Any) -> msgspec.msgpack.Decoder[Any]:
    found = _decoders.get(kind)
    if found is None:
        # msgspec shows a struct's description to other threads before it is whole; two that build at once crash.
        with _building:
            found = _decoders[kind] = msgspec.msgpack.Decoder(kind)
    return found


def unpack(data: bytes | msgspec.Raw, kind: type[T]) -> T:
    """Decode bytes that this program wrote itself."""
    return cast(T, _decoder(kind).decode(data))


def unpack_any(data: bytes | msgspec.Raw) -> Any:
    """Decode bytes that this program wrote itself to builtins."""
    return msgspec.msgpack.decode(data)


def unpack_json(data: str | bytes) -> Any:
    """Decode JSON that this program wrote itself."""
    return msgspec.json.decode(data)


@overload
def decode_request(
    data: bytes | memoryview | Raw, kind: type[T], root: str = "$.args", *, scanned: bool = False
) -> T: ...
@overload
def decode_request(
    data: bytes | memoryview | Raw, kind: UnionType, root: str = "$.args", *, scanned: bool = False
) -> Any: ...
def decode_request(data: bytes | memoryview | Raw, kind: Any, root: str = "$.args", *, scanned: bool = False) -> Any:
    """Decode a caller's arguments strictly.

    Args:
        kind: a struct, or a union of tagged ones.
        scanned: whether the bytes were looked through already for what `check_values` refuses, as a frame's are.

    Raises:
        InvalidRequest: unknown, missing or wrong field, NaN, lone surrogate, integer beyond 64 bits; with the path.
    """
    try:
        value = _decoder(kind).decode(data)
    except msgspec.ValidationError as error:
        _refuse(error, root, kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidRequest(reason=f"the arguments are not valid MessagePack: {error}", path=root) from None
    if not scanned:
        check_values(value, root)
    return value


def decode_json(data: bytes, kind: type[T], root: str = "$") -> T:
    """Decode JSON from an untrusted source, as strictly as a request.

    Raises:
        InvalidRequest: as `decode_request`, and for what is no JSON or has a key twice. Its message may quote the names
            of fields.
    """
    _decoder(kind)  # builds what the decoding below would build without the lock
    try:
        value = msgspec.json.decode(data, type=kind)
        refuse_double_keys(data)
    except msgspec.ValidationError as error:
        _refuse(error, root, kind)
    except (ValueError, RecursionError):
        raise InvalidRequest(reason=f"this is not valid JSON - at {root}", path=root) from None
    check_values(value, root)
    return value


def refuse_double_keys(data: bytes) -> None:
    """Go through JSON for an object that has a key twice, however it is written: two readers would take two values.

    Raises:
        ValueError: there is one, or this is no JSON.
    """
    import json

    json.loads(data.decode(), object_pairs_hook=unique_keys)


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object that JSON's pairs make, as `json.loads` takes a hook for it.

    Raises:
        ValueError: a key occurs twice; it is named.
    """
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    seen: set[str] = set()
    twice = next(key for key, _ in pairs if key in seen or seen.add(key))
    raise ValueError(f"the key {twice[:_FIELD_SHOWN]!r} stands twice in one object")


@overload
def convert_request(value: Any, kind: type[T], root: str = "$.args") -> T: ...
@overload
def convert_request(value: Any, kind: UnionType, root: str = "$.args") -> Any: ...
def convert_request(value: Any, kind: Any, root: str = "$.args") -> Any:
    """Validate an in-process request: a struct of that type, or a mapping of its fields.

    A struct's constructor validates nothing, so a struct goes through builtins and MessagePack and back, as a request
    over the wire does.

    Raises:
        InvalidRequest: as `decode_request`.
    """
    try:
        plain = to_wire(value)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InvalidRequest(reason=f"the arguments cannot be read: {error}", path=root) from None
    # Before they are encoded: MessagePack holds no lone surrogate and no integer beyond 64 bits.
    check_values(plain, root)
    return decode_request(pack(plain), kind, root, scanned=True)


def to_wire(value: Any) -> Any:
    """Builtins of a request as they go over the wire: times as RFC 3339 text, undecoded arguments opened."""
    return msgspec.to_builtins(value, str_keys=True, enc_hook=_open_raw, builtin_types=(bytes,))


def _open_raw(value: Any) -> Any:
    if isinstance(value, msgspec.Raw):
        return unpack_any(value)
    raise TypeError("one of them is not a text, number, time, list or map")


def _refuse(error: msgspec.ValidationError, root: str, kind: Any) -> NoReturn:
    text = str(error)
    place = re.search(_PLACE, text)
    reason = text if place is None else text[: place.start()]
    path = root if place is None else root + place[1]
    if (named := re.fullmatch(_NAMED_FIELD, reason)) is not None:
        path = f"{path}.{named[1][:_FIELD_SHOWN]}"
        reason = reason.partition("`")[0].rstrip()
    words = load("beetle.contracts.choices").choices_at(kind, path.removeprefix(root))
    hint = f"give one of {', '.join(words)}" if words else None
    raise InvalidRequest(reason=f"{in_words(reason)} - at {path}", path=path, hint=hint) from None


def in_words(reason: str) -> str:
    """What msgspec says of a wrong value, without the names of types of a language."""
    reason = reason.replace(f"`str` matching regex {NONBLANK!r}", "text that is not blank")
    reason = re.sub(r"`str` matching regex .*", "text of another form", reason, flags=re.DOTALL)
    reason = reason.replace("`datetime` with a timezone component", "a time with a zone")
    reason = reason.replace("RFC3339 encoded datetime", "RFC 3339 time")
    return re.sub(rf"`({_TYPE}(?: \| {_TYPE})*)`", _type_words, reason)


def _type_words(found: re.Match[str]) -> str:
    return " or ".join(_WORDS.get(each, each) for each in found[1].split(" | "))


def check_values(value: Any, path: str) -> None:
    """Refuse what the decoder lets through: NaN and infinities, lone surrogates, integers beyond 64 bits.

    Raises:
        InvalidRequest: with the path of the first such value.
    """
    if isinstance(value, str):
        if not value.isascii() and not _encodes(value):
            raise InvalidRequest(reason=f"a lone surrogate is not valid text - at {path}", path=path)
    elif isinstance(value, bool) or value is None:
        return
    elif isinstance(value, int):
        if not INT64_MIN <= value <= INT64_MAX:
            raise InvalidRequest(reason=f"the integer does not fit in 64 bits - at {path}", path=path)
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidRequest(reason=f"NaN and infinity are not allowed - at {path}", path=path)
    elif isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            check_values(getattr(value, name), f"{path}.{name}")
    elif isinstance(value, (tuple, list)):
        for index, item in enumerate(cast("list[Any]", value)):
            check_values(item, f"{path}[{index}]")
    elif isinstance(value, Mapping):
        for key, item in cast("Mapping[Any, Any]", value).items():
            check_values(key, path)
            check_values(item, f"{path}.{key}")


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def replace(value: S, **changes: Any) -> S:
    """A copy of a struct with some fields changed."""
    return msgspec.structs.replace(value, **changes)


def fields_of(value: msgspec.Struct) -> dict[str, Any]:
    """The fields of a struct by name, as they are."""
    return msgspec.structs.asdict(value)


def to_plain(value: Any) -> Any:
    """Builtins of a report, as they go over the wire."""
    return msgspec.to_builtins(value)


def from_plain(value: Any, kind: type[T]) -> T:
    """A struct from builtins that this program made."""
    _decoder(kind)  # builds what convert would build without the lock
    return msgspec.convert(value, kind)


def to_us(at: datetime) -> int:
    """Microseconds since the epoch of an aware time.

    Raises:
        InvalidRequest: its zone puts it outside the years 1 to 9999 of UTC, where no answer could show it.
    """
    found = (at - EPOCH) // _MICROSECOND
    if not FIRST_US <= found <= LAST_US:
        raise InvalidRequest(reason=f"{at.isoformat()} lies outside the years 1 to 9999 of UTC")
    return found


def from_us(at: int) -> datetime:
    """The aware UTC time of microseconds since the epoch; years outside 1 to 9999 raise OverflowError."""
    return EPOCH + timedelta(microseconds=at)


def format_us(at: int) -> str:
    """RFC 3339 in UTC, with only the fraction digits that are needed."""
    text = from_us(at).isoformat().removesuffix("+00:00")
    return f"{text.rstrip('0')}Z" if at % 1_000_000 else f"{text}Z"
