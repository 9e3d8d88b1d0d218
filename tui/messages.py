"""What happens to the console besides keys: the whole vocabulary."""

from __future__ import annotations

from textual.message import Message


class LinkChanged(Message):
    """The daemon was lost, is being tried, or is there (again): see `Link.state`."""


class Changed(Message):
    """Something in the store may have changed; one message stands for any number of events."""
