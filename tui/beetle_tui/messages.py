"""What happens to the console besides keys: the whole vocabulary."""

from __future__ import annotations

from dataclasses import dataclass

from textual.message import Message
from textual.message_pump import MessagePump


class LinkChanged(Message):
    """The daemon was lost, is being tried, or is there (again): see `Link.state`."""


class Changed(Message):
    """Something in the store may have changed; one message stands for any number of events."""


@dataclass
class AreaWanted(Message):
    """An area was asked for with the mouse, by its name."""

    name: str


@dataclass
class RefFollowed(Message):
    """What a ref names is to be shown, in whatever area that is."""

    ref: str


@dataclass
class StoreVerified(Message):
    """A walk over the whole store has ended, and found these faults."""

    faults: tuple[str, ...]


@dataclass
class InputBroken(Message):
    """The terminal's thread ended on what no one foresaw."""

    error: Exception


@dataclass
class KeyTaken(Message):
    """Goes the way of a key behind it: once it has come to the app, all has been done that the key does at once.

    `rounds` is how often it still goes that way: what a key does may post a message that does the rest.
    """

    target: MessagePump
    rounds: int
