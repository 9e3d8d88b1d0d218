"""Messages of the gRPC service as classes, and as the plain values that operations take and answer.

The classes are made of the descriptors at run time: they fit every version of protobuf, where generated modules fit
the one that made them. The pool is our own, so that a client with modules of its own may be in the same process.
"""

from __future__ import annotations

from base64 import b85decode
from collections.abc import Collection, Mapping
from functools import cache
from typing import Any

from google.protobuf.descriptor import Descriptor, EnumDescriptor, ServiceDescriptor
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from beetle.rpc.descriptors import DESCRIPTORS

SERVICE = "memory.MemoryService"

POOL = DescriptorPool()
for _file in DESCRIPTORS.values():
    POOL.AddSerializedFile(b85decode(_file))


class BadMessage(Exception):
    """Bytes that are no such message; or values that it cannot hold."""


def message_class(name: str) -> type[Message]:
    """The class of a message by its full name (`memory.Event`)."""
    return GetMessageClass(POOL.FindMessageTypeByName(name))


def service() -> ServiceDescriptor:
    """The service, with the messages of each of its methods."""
    return POOL.FindServiceByName(SERVICE)


@cache
def method_messages(method: str) -> tuple[type[Message], type[Message]]:
    """The classes of a method's request and answer, by its short name."""
    found = service().methods_by_name[method]
    return GetMessageClass(found.input_type), GetMessageClass(found.output_type)


def decode(kind: type[Message], data: bytes) -> Message:
    """A message from its bytes.

    Raises:
        BadMessage: they are none.
    """
    try:
        return kind.FromString(data)
    except DecodeError:
        raise BadMessage(f"the bytes are no {kind.DESCRIPTOR.full_name}") from None


def to_plain(message: Message, always: Collection[str] = ()) -> dict[str, Any]:
    """The fields that are set, by name: enums as the words of operations (`user_message`), maps as dicts.

    A field that is 0, empty or false cannot be told from one that was left out; those that `always` names are there in
    any case. The number of an enum that nobody knows stays a number.
    """
    found: dict[str, Any] = {}
    for field in message.DESCRIPTOR.fields:
        value = getattr(message, field.name)
        if _is_map(field):
            if value:
                found[field.name] = dict(value)
        elif field.is_repeated:
            if value:
                found[field.name] = [_plain(field, each, always) for each in value]
        elif field.has_presence:
            if message.HasField(field.name):
                found[field.name] = _plain(field, value, always)
        elif value or field.name in always:
            found[field.name] = _plain(field, value, always)
    return found


def to_message(kind: type[Message], values: Mapping[str, Any]) -> Message:
    """The message that holds these values; a key that it has no field for is left out, as is None.

    Raises:
        BadMessage: a value that its field cannot hold.
    """
    message = kind()
    try:
        _fill(message, values)
    except (TypeError, ValueError, OverflowError, KeyError) as error:
        raise BadMessage(f"{kind.DESCRIPTOR.full_name} cannot hold it: {error}") from None
    return message


def _fill(message: Message, values: Mapping[str, Any]) -> None:
    for field in message.DESCRIPTOR.fields:
        value = values.get(field.name)
        if value is None:
            continue
        if _is_map(field):
            getattr(message, field.name).update(value)
        elif field.is_repeated:
            into = getattr(message, field.name)
            if field.message_type is None:
                into.extend(_scalar(field, each) for each in value)
                continue
            for each in value:
                _fill(into.add(), each)
        elif field.message_type is not None:
            inner = getattr(message, field.name)
            inner.SetInParent()
            _fill(inner, value)
        else:
            setattr(message, field.name, _scalar(field, value))


def _plain(field: Any, value: Any, always: Collection[str]) -> Any:
    if field.message_type is not None:
        return to_plain(value, always)
    if field.enum_type is not None:
        return _words(field.enum_type).get(value, value)
    return value


def _scalar(field: Any, value: Any) -> Any:
    if field.enum_type is None or not isinstance(value, str):
        return value
    return _numbers(field.enum_type)[value]


def _is_map(field: Any) -> bool:
    inner: Descriptor | None = field.message_type
    return inner is not None and inner.GetOptions().map_entry


@cache
def _words(enum: EnumDescriptor) -> Mapping[int, str]:
    """Its numbers as words, without what all of its names begin with."""
    first = enum.values_by_number[0].name
    prefix = first.removesuffix("UNSPECIFIED").removesuffix("UNKNOWN")
    return {each.number: each.name.removeprefix(prefix).lower() for each in enum.values}


@cache
def _numbers(enum: EnumDescriptor) -> Mapping[str, int]:
    return {word: number for number, word in _words(enum).items()}
