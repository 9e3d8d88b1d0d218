"""The last line: what the keys do here. It never wraps, and its right end always says how to get help and out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from rich.cells import cell_len
from textual.binding import ActiveBinding
from textual.content import Content
from textual.dom import DOMNode
from textual.events import Click
from textual.keys import key_to_character
from textual.screen import Screen
from textual.widget import Widget

from beetle_tui.keys import KEYS, bindings_of, key_for, short_key

GAP = "  "
MORE = "…"
"""Stands where keys had to be left out."""
ALWAYS = ("help", "quit")
"""What the last keys on the right do: actions of the console."""
BESIDE = "palette"
"""What stands to the left of those where there is room."""


class Hint(NamedTuple):
    """One key and what it does, as the footer says it."""

    key: str
    told: str
    action: str
    node: DOMNode
    enabled: bool = True

    @property
    def cells(self) -> int:
        """How much room it takes."""
        return cell_len(self.key) + 1 + cell_len(self.told)


Part = Hint | str
"""A piece of the line: a hint, or what stands between hints."""


class Footer(Widget):
    """The keys of the screen, in the order of its bindings: as many as there is room for. A click does what a key does,
    one on the mark at their end shows all.

    Textual's own is made of a widget for each key, and makes all of them anew whenever one may have changed.
    """

    ALLOW_SELECT = False
    DEFAULT_CSS = """
    Footer { dock: bottom; height: 1; background: $bar; color: $bar-text; text-wrap: nowrap; }
    """

    _hints: Sequence[Hint] = ()
    _always: Sequence[Hint] = ()
    _parts: Sequence[Part] = ()
    _due = False

    def on_mount(self) -> None:
        """From now on it is told of other keys."""
        self.screen.bindings_updated_signal.subscribe(self, self._look_soon)
        self._look_soon(self.screen)

    def _look_soon(self, _: object) -> None:
        """Some key may do something else; what is told several times in a row is looked at once."""
        if not self._due:
            self._due = True
            self.call_after_refresh(self._look)

    def _look(self) -> None:
        self._due = False
        if self.is_attached:
            hints, always = hints_of(self.screen)
            if (hints, always) != (self._hints, self._always):
                self._hints, self._always = hints, always
                self.refresh()

    def render(self) -> Content:
        """What there is room for."""
        self._parts = line_of(self._hints, self._always, self.size.width)
        return Content("").join(_drawn(each) if isinstance(each, Hint) else Content(each) for each in self._parts)

    def on_click(self, event: Click) -> None:
        """Do what the key under the mouse does."""
        end = 0
        for each in self._parts:
            end += _cells(each)
            if event.x < end:
                if each == MORE:
                    self._run(self._always[0])
                elif isinstance(each, Hint):
                    self._run(each)
                return

    def _run(self, hint: Hint) -> None:
        # As for a key: not in the handling of a message to what may be about to close.
        self.app.call_later(self.app.run_action, hint.action, hint.node)


def line_of(hints: Sequence[Hint], always: Sequence[Hint], width: int) -> list[Part]:
    """Hints and what stands between them, in `width` cells: on the left the first of `hints` that fit, and a mark where
    some do not; on the right `always`."""
    room = width - 2 - len(GAP) - _length(always)
    shown = list(hints)
    while shown and _length(shown) + (len(GAP + MORE) if len(shown) < len(hints) else 0) > room:
        shown.pop()
    right = [*(each for each in shown if each.action == BESIDE), *always]
    left: list[Part] = [each for each in shown if each.action != BESIDE]
    if len(shown) < len(hints):
        left.append(MORE)
    between = max(0, width - 2 - _length(left) - _length(right))
    return [" ", *_apart(left), " " * between, *_apart(right), " "]


def hints_of(screen: Screen[Any]) -> tuple[tuple[Hint, ...], tuple[Hint, ...]]:
    """What a screen's keys do now, in the order of what has the keys and then of its bindings; and what is always told.

    Where a key would be typed into a line, another one of the same action stands for it, or none does.
    """
    focused = screen.focused
    actives = [
        each
        for key, each in screen.active_bindings.items()
        # Textual leaves these out by the usual keys alone.
        if focused is None or not focused.check_consume_key(key, _character(key))
    ]
    chain = list(dict.fromkeys(each.node for each in actives))
    seen = [each for each in actives if each.binding.show and each.binding.action not in ALWAYS]
    seen.sort(key=lambda each: (each.binding.action == BESIDE, chain.index(each.node), _place(each)))
    own = {each.binding.action: each for each in reversed(seen)}
    return tuple(_hint(each) for each in reversed(own.values())), tuple(_always(screen, actives))


def _always(screen: Screen[Any], actives: Sequence[ActiveBinding]) -> Iterator[Hint]:
    app = screen.app
    usual = {each.action: each for kind in type(app).__mro__ for each in reversed(bindings_of(kind))}
    for action in ALWAYS:
        reached = sorted(
            (each for each in actives if each.binding.action == action), key=lambda it: not it.binding.show
        )
        if reached:
            yield _hint(reached[0])
        else:
            binding = usual[action]
            yield Hint(key_for(app, binding.id or ""), binding.description, action, app, enabled=False)


def _hint(active: ActiveBinding) -> Hint:
    binding = active.binding
    return Hint(short_key(binding.key), binding.description, binding.action, active.node, active.enabled)


def _place(active: ActiveBinding) -> int:
    return _places(type(active.node)).get(active.binding.id or "", 0)


@cache
def _places(kind: type[DOMNode]) -> Mapping[str, int]:
    """Where each binding stands among those of its class and of what that is made of, by ids: a key of one's own moves
    its binding to the end of Textual's."""
    ids = [each.id or "" for part in reversed(kind.__mro__) for each in bindings_of(part)]
    return {name: number for number, name in enumerate(dict.fromkeys(ids))}


def _character(key: str) -> str | None:
    """What a key types, if anything."""
    character = KEYS.get(key) or key_to_character(key)
    return character if character is not None and character.isprintable() else None


def _drawn(hint: Hint) -> Content:
    faint = "" if hint.enabled else "dim"
    return Content.assemble((hint.key, f"bold {faint}".strip()), (f" {hint.told}", faint))


def _cells(part: Part) -> int:
    return part.cells if isinstance(part, Hint) else cell_len(part)


def _apart(parts: Sequence[Part]) -> Iterator[Part]:
    for number, each in enumerate(parts):
        if number:
            yield GAP
        yield each


def _length(parts: Sequence[Part]) -> int:
    return sum(_cells(each) for each in _apart(parts))
