"""Fields of a request as command-line flags, and what was typed as the request's arguments."""

from __future__ import annotations

import sys
import types
from argparse import SUPPRESS, BooleanOptionalAction, Namespace
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin

from msgspec import NODEFAULT, Meta, Struct
from msgspec.structs import fields as struct_fields

from beetle.cli.parser import close_matches
from beetle.contracts.codec import unique_keys
from beetle.contracts.common import Conversation
from beetle.contracts.errors import InvalidRequest, PayloadTooLarge
from beetle.named_tuple import NamedTuple

Kind = Literal["text", "integer", "number", "switch", "choice", "time", "conversation", "struct"]
NUMBERS: tuple[Kind, ...] = ("integer", "number")
INPUT_LIMIT = 64 * 2**20
"""Most bytes read from a file or stdin: over every profile's frame, so that a mistyped path cannot fill the memory."""


class Flag(NamedTuple):
    """One field of a request on the command line. `many` flags may be given again and again."""

    field: str
    option: str
    kind: Kind
    help: str
    required: bool
    many: bool = False
    default: Any = None
    choices: tuple[str, ...] = ()
    struct: type[Struct] | None = None
    long_text: bool = False

    @property
    def dest(self) -> str:
        """Its name among the parsed values."""
        return f"field_{self.field}"

    @property
    def file_dest(self) -> str:
        """The name of its `-file` companion among the parsed values."""
        return f"file_{self.field}"


def flags_of(struct: type[Struct]) -> tuple[Flag, ...]:
    """A flag for every field of a request or of a piece of one."""
    return tuple(
        _flag(field.encode_name, field.type, field.required, None if field.default is NODEFAULT else field.default)
        for field in struct_fields(struct)
    )


class _Shape:
    """What an annotation says: its innermost types, whether there may be many, its descriptions and extras."""

    def __init__(self, annotation: Any) -> None:
        self.kinds: list[Any] = []
        self.words: list[str] = []
        self.many = False
        self.help = ""
        self.long_text = False
        self._walk(annotation)

    def _walk(self, annotation: Any) -> None:
        origin = get_origin(annotation)
        if origin is Annotated:
            inner, *marks = get_args(annotation)
            for mark in marks:
                if isinstance(mark, Meta):
                    self.help = mark.description or self.help
                    self.long_text |= str((mark.extra or {}).get("budget", "")).endswith("_bytes")
            self._walk(inner)
        elif origin in (Union, types.UnionType):
            for part in get_args(annotation):
                self._walk(part)
        elif origin is tuple:
            self.many = True
            self._walk(get_args(annotation)[0])
        elif origin is Literal:
            self.words.extend(get_args(annotation))
        elif annotation is not type(None):
            self.kinds.append(annotation)


def _flag(name: str, annotation: Any, required: bool, default: Any) -> Flag:
    shape = _Shape(annotation)
    option = "--" + name.replace("_", "-")
    struct = next((each for each in shape.kinds if isinstance(each, type) and issubclass(each, Struct)), None)
    kind = _kind(shape, struct)
    text = shape.help or name.replace("_", " ")
    return Flag(
        name, option, kind, text, required, shape.many, default, tuple(shape.words), struct,
        shape.long_text and kind == "text" and not shape.many,
    )  # fmt: skip


SCALARS: Mapping[Any, Kind] = {bool: "switch", int: "integer", float: "number", datetime: "time"}


def _kind(shape: _Shape, struct: type[Struct] | None) -> Kind:
    if struct is not None:
        return "conversation" if struct is Conversation else "struct"
    if shape.words:
        return "choice"
    for each in shape.kinds:
        if each in SCALARS:
            return SCALARS[each]
    return "text"


METAVARS: Mapping[Kind, str] = {
    "text": "TEXT", "integer": "N", "number": "X", "time": "TIME", "conversation": "[CHANNEL/]ID", "struct": "JSON",
}  # fmt: skip


def metavar(flag: Flag) -> str:
    """What stands for the value in help."""
    return "|".join(flag.choices) if flag.kind == "choice" else METAVARS.get(flag.kind, "TEXT")


def add_flag(parser: Any, flag: Flag) -> None:
    """Put a flag into an argparse parser or group; what is not typed leaves no trace."""
    text = flag.help.replace("%", "%%") + _note(flag)
    if flag.kind == "switch":
        parser.add_argument(flag.option, dest=flag.dest, action=BooleanOptionalAction, default=SUPPRESS, help=text)
        return
    action = "append" if flag.many else "store"
    parser.add_argument(flag.option, dest=flag.dest, action=action, metavar=metavar(flag), default=SUPPRESS, help=text)
    if flag.long_text:
        parser.add_argument(
            f"{flag.option}-file", dest=flag.file_dest, metavar="FILE", default=SUPPRESS,
            help=f"read {flag.option} from a file, or - for stdin",
        )  # fmt: skip


def _note(flag: Flag) -> str:
    notes: list[str] = []
    if flag.required:
        notes.append("required")
    if flag.many:
        notes.append("with commas between, or repeated" if flag.kind in NUMBERS else "may be repeated")
    if isinstance(flag.default, (int, str)) and flag.default != "":
        notes.append(f"default {'yes' if flag.default is True else 'no' if flag.default is False else flag.default}")
    return f" ({', '.join(notes)})" if notes else ""


def collect(flags: Sequence[Flag], typed: Namespace) -> dict[str, Any]:
    """The arguments that the typed flags mean; what was not typed is not there.

    Raises:
        InvalidRequest: a value that cannot be read, naming its flag.
    """
    found: dict[str, Any] = {}
    for flag in flags:
        if hasattr(typed, flag.file_dest):
            if hasattr(typed, flag.dest):
                raise InvalidRequest(reason=f"{flag.option} and {flag.option}-file are both given", hint="give one")
            found[flag.field] = read_text(getattr(typed, flag.file_dest), f"{flag.option}-file")
        elif hasattr(typed, flag.dest):
            value = getattr(typed, flag.dest)
            found[flag.field] = _many(flag, value) if flag.many else _value(flag, value)
            if flag.kind == "conversation" and (channel := getattr(typed, "channel", None)):
                found[flag.field].setdefault("channel_id", channel)
    return found


def _many(flag: Flag, values: list[str]) -> list[Any]:
    found: list[Any] = []
    for value in values:
        if flag.kind == "struct":
            read = _value(flag, value)
            found.extend(cast("list[Any]", read) if isinstance(read, list) else [read])
        elif flag.kind == "choice":
            found.extend(_value(flag, part) for part in value.split(","))
        elif flag.kind in NUMBERS:
            # As JSON has them too: a public key has 32.
            found.extend(_value(flag, part) for part in value.strip().removeprefix("[").removesuffix("]").split(","))
        else:
            found.append(_value(flag, value))
    return found


def _value(flag: Flag, text: Any) -> Any:
    match flag.kind:
        case "integer":
            return _number(flag, text, int, "a whole number")
        case "number":
            return _number(flag, text, float, "a number")
        case "choice":
            return _choice(flag, text)
        case "time":
            return _time(flag, text)
        case "conversation":
            return conversation(text, flag.option)
        case "struct":
            return _struct(flag, text)
        case "text" | "switch":
            return text


def _number(flag: Flag, text: str, kind: Any, name: str) -> Any:
    try:
        return kind(text)
    except ValueError:
        raise InvalidRequest(reason=f"{flag.option}: {text!r} is not {name}", hint="write it in digits") from None


def _choice(flag: Flag, text: str) -> str:
    if text in flag.choices:
        return text
    close = close_matches(text, flag.choices, n=1)
    hint = f"did you mean {close[0]}?" if close else f"give one of {', '.join(flag.choices)}"
    raise InvalidRequest(reason=f"{flag.option}: {text!r} is none of {', '.join(flag.choices)}", hint=hint)


def _time(flag: Flag, text: str) -> str:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        at = None
    if at is None or at.tzinfo is None:
        reason = f"{flag.option}: {text!r} is not an RFC 3339 time with a zone"
        raise InvalidRequest(reason=reason, hint="write it like 2026-05-17T09:30:00Z or 2026-05-17T11:30:00+02:00")
    return at.isoformat()


def conversation(text: str, option: str = "--conversation") -> dict[str, str]:
    """A conversation from `ID` or `CHANNEL/ID`, percent-encoded.

    Raises:
        InvalidRequest: an empty part, or more than one slash.
    """
    parts = text.split("/")
    if len(parts) > 2 or not all(parts):
        hint = "write ID or CHANNEL/ID; a slash inside an id is %2F, a percent sign %25"
        raise InvalidRequest(reason=f"{option}: {text!r} names no conversation", hint=hint)
    from urllib.parse import unquote

    *channel, name = (unquote(part) for part in parts)
    return {"channel_id": channel[0], "conversation_id": name} if channel else {"conversation_id": name}


def _struct(flag: Flag, text: str) -> Any:
    assert flag.struct is not None
    if text in flag.choices:
        return text
    if text == "-" or text.startswith("@"):
        return read_json(text.removeprefix("@"), flag.option)
    if text.lstrip()[:1] not in ("{", "[") and "=" in text:
        return _assigned(flag, text)
    return parse_json(text, flag.option)


def _assigned(flag: Flag, text: str) -> dict[str, Any]:
    assert flag.struct is not None
    inner = {each.field: each for each in flags_of(flag.struct)}
    found: dict[str, Any] = {}
    for part in text.split(","):
        name, _, value = part.partition("=")
        each = inner.get(name.strip().replace("-", "_"))
        if each is None:
            reason = f"{flag.option}: no {name.strip()!r} here"
            raise InvalidRequest(reason=reason, hint=f"known are {', '.join(inner)}; or write JSON")
        named = each._replace(option=f"{flag.option} {each.field}")
        found[each.field] = value == "true" if each.kind == "switch" else _value(named, value)
    return found


def parse_json(text: str, source: str) -> Any:
    """Any JSON value.

    Raises:
        InvalidRequest: it is none, or has a key twice; `source` says where it came from.
    """
    import json

    try:
        return json.loads(text, object_pairs_hook=unique_keys)
    except ValueError as error:
        hint = "give JSON in quotes for the shell, @FILE, or - for stdin"
        raise InvalidRequest(reason=f"{source}: not JSON: {error}", hint=hint) from None
    except RecursionError:
        raise InvalidRequest(reason=f"{source}: JSON nested too deeply", hint="send a flatter value") from None


def read_json(place: str, source: str) -> Any:
    """JSON from a file, or from stdin for `-`."""
    name = "stdin" if place == "-" else place
    text = read_text(place, source)
    if not text.strip():
        raise InvalidRequest(reason=f"{source}: {name} is empty", hint="JSON is expected there")
    return parse_json(text, name)


def read_text(place: str, source: str) -> str:
    """UTF-8 text of a file, or of stdin for `-`.

    Raises:
        InvalidRequest: it cannot be read, or is not UTF-8.
        PayloadTooLarge: it is over 64 MiB.
    """
    try:
        return read_bytes(place, f"{source}: ", source, INPUT_LIMIT).decode()
    except UnicodeDecodeError as error:
        raise InvalidRequest(reason=f"{source}: not UTF-8 at byte {error.start}", hint="convert it to UTF-8") from None


def read_bytes(place: str, source: str, what: str, most: int) -> bytes:
    """The content of a file, or of stdin for `-`; `source` begins the error, `what` is too large beyond `most` bytes.

    Raises:
        InvalidRequest, PayloadTooLarge: as `read_text`.
    """
    try:
        if place == "-":
            data = sys.stdin.buffer.read(most + 1)
        else:
            with open(place, "rb") as stream:
                data = stream.read(most + 1)
    except OSError as error:
        raise unreadable(source + place, error) from None
    if len(data) > most:
        raise PayloadTooLarge(what=what, maximum=most, unit="bytes")
    return data


def unreadable(place: str, error: OSError) -> InvalidRequest:
    """What the system says of a file that it does not let us read."""
    reason = f"{place}: {error.strerror or 'unreadable'}"
    return InvalidRequest(reason=reason, hint="check the path and its permissions")


def open_bytes(struct: type[Struct], arguments: Any) -> Any:
    """The arguments that JSON gave, with the base64 text of fields that are bytes made bytes.

    Raises:
        InvalidRequest: such a text is no base64.
    """
    if not isinstance(arguments, dict):
        return arguments
    import binascii

    found = cast("dict[str, Any]", arguments)
    for field in struct_fields(struct):
        text = found.get(field.encode_name)
        if bytes not in _Shape(field.type).kinds or not isinstance(text, str):
            continue
        try:
            found = {**found, field.encode_name: binascii.a2b_base64(text, strict_mode=True)}
        except ValueError:
            path = f"$.args.{field.encode_name}"
            hint = "JSON has no bytes: give them as base64"
            raise InvalidRequest(reason=f"no base64 - at {path}", path=path, hint=hint) from None
    return found


def refuse_missing(flags: Sequence[Flag], found: Mapping[str, Any], command: str, word: str = "") -> None:
    """Raises InvalidRequest when a required flag was not given. The field `word` needs none: its flag is optional."""
    absent = [flag for flag in flags if flag.required and flag.field not in found]
    missing = [word.upper() if flag.field == word else flag.option for flag in absent]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        raise InvalidRequest(
            reason=f"{command}: {', '.join(missing)} {verb} missing", hint=f"see `beetle {command} --help`"
        )
