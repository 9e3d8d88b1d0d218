"""Help: every key of the screen below, out of the bindings themselves."""

from __future__ import annotations

from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen, Screen

from beetle_tui.keys import hinted, plain_key
from beetle_tui.panels import Facts
from beetle_tui.too_small import TooSmall


class HelpScreen(ModalScreen[None]):
    """A table of keys and what they do."""

    DEFAULT_CSS = """
    HelpScreen {
        align: center middle;
        background: transparent;
        #keys {
            width: 96; max-width: 100%; height: auto; max-height: 100%;
            scrollbar-size-vertical: 1; scrollbar-color: $line; scrollbar-background: $background;
        }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark", "dismiss", "Close", id="help-close", tooltip="back to the screen"),
    ]

    def __init__(self, below: Screen[Any]) -> None:
        super().__init__()
        self._below = below

    def compose(self) -> ComposeResult:
        """One box."""
        with VerticalScroll(id="keys"):
            yield Facts(hinted(self.app, "Keys ({help-close} closes)"), id="bindings")
        yield TooSmall()

    def on_mount(self) -> None:
        """Fill it."""
        self.query_one(Facts).show(keys_of(self._below))


def keys_of(screen: Screen[Any]) -> list[tuple[str, str]]:
    """Keys and what they do; keys that do the same share a line."""
    found: dict[str, list[str]] = {}
    active_bindings = list(screen.active_bindings.values())
    chain = list(dict.fromkeys(each.node for each in active_bindings))
    # The app's own come last in the chain, and matter first.
    for active in sorted(active_bindings, key=lambda each: -chain.index(each.node)):
        told = active.binding.tooltip or active.binding.description
        if told:
            # In plain letters: not every terminal's font has arrows.
            found.setdefault(told, []).append(plain_key(active.binding.key))
    return [(", ".join(keys), told) for told, keys in found.items()]
