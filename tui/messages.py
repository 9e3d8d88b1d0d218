"""What happens to the console besides keys: the whole vocabulary."""

from __future__ import annotations

from textual.message import Message
from textual.message_pump import MessagePump


class LinkChanged(Message):
    """The daemon was lost, is being tried, or is there (again): see `Link.state`."""


class Changed(Message):
    """Something in the store may have changed; one message stands for any number of events."""


class KeyTaken(Message):
    """Goes the way of a key behind it: once it has come to the app, all has been done that the key does at once."""

    def __init__(self, target: MessagePump, rounds: int) -> None:
        """`rounds` is how often it still goes that way: what a key does may post a message that does the rest."""
        super().__init__()
        self.target = target
        self.rounds = rounds
