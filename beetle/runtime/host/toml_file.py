"""TOML files as structs: a file that is wrong is refused with its name, the path in it and what is known there."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, TypeVar, cast

import msgspec
from msgspec import Struct

from beetle.contracts.codec import in_words
from beetle.contracts.errors import InvalidRequest, nearest

if TYPE_CHECKING:
    StrPath = str | os.PathLike[str]

TOML_LIMIT = 1024 * 1024
"""Bytes of the longest file that could be one of ours."""
AnyStruct = TypeVar("AnyStruct", bound=Struct)


def read_toml(file: StrPath, trusting: int | None = None) -> dict[str, Any]:
    """The file as plain values. Raises InvalidRequest with the file and, for a syntax error, its place.

    With `trusting`, the file is obeyed by that user: it is refused if another one may change or replace it.
    """
    import tomllib

    try:
        with open(file, "rb", opener=None if trusting is None else _without_waiting) as stream:
            if trusting is not None:
                _check_trust(stream.fileno(), file, trusting)
            content = stream.read(TOML_LIMIT + 1)
        if len(content) > TOML_LIMIT:
            raise InvalidRequest(reason=f"{file}: over {TOML_LIMIT} bytes, so not a file of ours", file=str(file))
        return tomllib.loads(content.decode())
    except OSError as error:
        reason = f"{file}: {error.strerror or 'unreadable'}"
        raise InvalidRequest(reason=reason, file=str(file), hint="check the path and its permissions") from None
    except (ValueError, RecursionError) as error:
        reason = f"{file}: not TOML: {error}"
        raise InvalidRequest(reason=reason, file=str(file), hint="see https://toml.io for the syntax") from None


def _without_waiting(path: str, flags: int) -> int:
    # A pipe is opened to be refused; nobody waits for its other end.
    return os.open(path, flags | os.O_NONBLOCK)


def _check_trust(descriptor: int, file: StrPath, uid: int) -> None:
    from beetle.runtime.host.trusted_file import distrust

    if (why := distrust(descriptor, file, uid)) is not None:
        raise InvalidRequest(reason=f"{file}: {why.reason}", file=str(file), hint=why.hint)


def decode_table(table: object, into: type[AnyStruct], file: StrPath, at: str = "$") -> AnyStruct:
    """`table`, which stands at the path `at` of `file`, as a struct.

    Raises InvalidRequest with `file` and `path`; for an unknown key the hint holds the nearest known ones.
    """
    _refuse_unknown_keys(table, into, file, at)
    try:
        return msgspec.convert(table, into)
    except msgspec.ValidationError as error:
        text, _, inner = str(error).partition(" - at `$")
        path = at + inner.removesuffix("`")
        hint = "correct that value; nothing was changed"
        raise InvalidRequest(reason=f"{file}: {path}: {in_words(text)}", path=path, file=str(file), hint=hint) from None


def _refuse_unknown_keys(table: object, into: type[Struct], file: StrPath, at: str) -> None:
    if not isinstance(table, dict):
        return
    fields = {field.name: field.type for field in msgspec.structs.fields(into)}
    for key, value in cast("dict[str, object]", table).items():
        path = f"{at}.{key}"
        if key not in fields:
            hint = nearest(key, fields)
            raise InvalidRequest(reason=f"{file}: unknown key {path}", path=path, file=str(file), hint=hint)
        inner = fields[key]
        if isinstance(inner, type) and issubclass(inner, Struct):
            _refuse_unknown_keys(value, inner, file, path)
