"""Where keys work together: every place of the console, as the classes whose bindings can be reached from it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from beetle_tui.area import AreaScreen, Body
from beetle_tui.bench.settings import Switches
from beetle_tui.dialogs import Dialog
from beetle_tui.document import Document
from beetle_tui.filter import FilterBar
from beetle_tui.keys import FocusPath, bound_classes
from beetle_tui.memory.section import Section
from beetle_tui.parts import PartsScreen
from beetle_tui.screens.recall import Recall
from beetle_tui.table import Table

FOCUSED: tuple[type[Any], ...] = (Table, Document, FilterBar)
"""What may have the keys in an area that does not scroll as a whole."""


def places(console: type[Any]) -> Iterator[FocusPath]:
    """All of them; `console` is the app's class."""
    for area in (each.screen for each in console.areas):
        yield from ((console, area, one) for one in ((Body,) if area.SCROLLS else FOCUSED))
        if issubclass(area, PartsScreen):
            yield from ((console, area, part, one) for part in area.PARTS for one in FOCUSED)
    yield console, Recall, Switches
    for each in bound_classes():
        if issubclass(each, Dialog):
            yield from ((each, one) for one in each.HOLDS or (each,))
        elif not issubclass(each, (AreaScreen, Section, *FOCUSED, Body, Switches, console)):
            yield (each,)
