"""Keys that a person has chosen otherwise: by the ids that every binding of the console has."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from functools import cache
from typing import TYPE_CHECKING, Any

from textual.binding import Binding
from textual.dom import DOMNode
from textual.keys import Keys, key_to_character

from beetle.contracts.errors import InvalidRequest

if TYPE_CHECKING:
    from textual.app import App

PACKAGE = __name__.partition(".")[0]
NAMED_KEYS = frozenset(each.value for each in Keys)
MODIFIERS = frozenset({"ctrl", "shift", "alt", "super"})
OF_EVERY_TERMINAL = frozenset({"space", "slash", "question_mark", "full_stop", "comma", "minus", "plus", "colon"})

KEYS = {"question_mark": "?", "slash": "/"}
"""Keys that are called by what they type."""
SHORT = {"escape": "esc", "space": "space"}
"""Keys that are called otherwise in hints."""
HOLE = re.compile(r"\{([a-z]+(?:-[a-z]+)*)(\*?)\}")
"""Where a hint names a key: `{id of a binding}`, with a star for all keys of it."""


class NoSuchKey(InvalidRequest):
    """The configuration gives a key to what is not there, or names none that a terminal sends."""

    template = "$.console.keys.{binding}: {reason}"


class KeyTaken(InvalidRequest):
    """The configuration gives a key to two actions that can be reached from one place."""

    template = "$.console.keys.{binding}: {key} is the key of {other} as well"
    hint_template = "give each of {binding} and {other} a key of its own"


FocusPath = tuple[type[Any], ...]
"""Classes whose keys work together: what may have the keys, what it stands in, the screen, and the console."""


def bindings_of(kind: type[Any]) -> list[Binding]:
    """The bindings that a class itself defines, one for each key."""
    own = kind.__dict__.get("BINDINGS", ())
    return list(Binding.make_bindings([each for each in own if isinstance(each, Binding)]))


def bound_classes() -> list[type[Any]]:
    """Every widget and screen of the console that has been imported and has keys, in the order of their names."""

    def below(kind: type[Any]) -> Iterator[type[Any]]:
        for each in kind.__subclasses__():
            yield each
            yield from below(each)

    found = {each for each in below(DOMNode) if each.__module__.partition(".")[0] == PACKAGE and bindings_of(each)}
    return sorted(found, key=lambda each: (each.__module__, each.__qualname__))


def check_keys(keys: Mapping[str, str], places: Iterable[FocusPath]) -> None:
    """See that each id is a binding's, each key one that a terminal sends, and none of them taken where it would work.

    Raises:
        NoSuchKey: with the nearest ids in its hint.
        KeyTaken: with both ids.
    """
    if not keys:
        return
    known = _ids(bound_classes())
    if not keys.keys() <= known:
        # What is edited in is loaded where it is needed; here its keys are.
        import beetle_tui.editor  # noqa: F401

        known = _ids(bound_classes())
    for name, text in keys.items():
        if name not in known:
            reason = "no key of the console has this id"
            raise NoSuchKey(binding=name[:80], reason=reason, path=_path(name), hint=_nearest(name, known))
        for key in _split(text):
            if not _is_key(key):
                hint = "write a letter, or a name such as up, f2, ctrl+n, question_mark; several with commas between"
                raise NoSuchKey(binding=name, reason=f"{key[:40]!r} is not a key", path=_path(name), hint=hint)
    for place in places:
        _refuse_twice(place, keys)


def _ids(classes: Iterable[type[Any]]) -> set[str]:
    return {each.id for kind in classes for each in bindings_of(kind) if each.id}


def _split(text: str) -> list[str]:
    return [each.strip() for each in text.split(",")]


def _refuse_twice(place: FocusPath, keys: Mapping[str, str]) -> None:
    """No two actions that can be reached from one place have the same key, unless they have it by themselves."""
    usual: dict[str, set[str]] = {}
    for kind in dict.fromkeys(part for each in place for part in each.__mro__):
        for binding in bindings_of(kind):
            if binding.id:
                usual.setdefault(binding.id, set()).add(binding.key)
    for name in sorted(usual.keys() & keys.keys()):
        for other in sorted(usual.keys() - {name}):
            theirs = set(_split(keys[other])) if other in keys else usual[other]
            both = sorted((set(_split(keys[name])) & theirs) - (usual[name] & usual[other]))
            if both:
                raise KeyTaken(binding=name, key=both[0], other=other, path=_path(name))


def _path(name: str) -> str:
    return f"$.console.keys.{name[:80]}"


def _is_key(key: str) -> bool:
    *modifiers, base = key.split("+") if key != "+" else ("+",)
    single = len(base) == 1 and base.isprintable() and base != " "
    return all(each in MODIFIERS for each in modifiers) and (single or base in NAMED_KEYS | OF_EVERY_TERMINAL)


def _nearest(word: str, known: set[str]) -> str:
    close = get_close_matches(word[:80], sorted(known), n=3)
    return f"did you mean {' or '.join(close)}?" if close else "`?` in the console and `beetle help console` list them"


def hinted(app: App[Any], text: str) -> str:
    """A hint with its keys as they are now, whoever has chosen others: `{told-close} closes` is `esc closes`.

    Only for texts of the console's own: what is stored may hold braces.
    """
    return HOLE.sub(lambda hole: ", ".join(keys_for(app, hole[1])[: None if hole[2] else 1]), text)


def key_for(app: App[Any], name: str) -> str:
    """The first key of a binding, as a hint names it."""
    return keys_for(app, name)[0]


def keys_for(app: App[Any], name: str) -> list[str]:
    """Every key of a binding, as a hint names it: a person's own where there is one, else the usual ones.

    Raises:
        KeyError: no binding that has been imported has that id.
    """
    return [short_key(each) for each in sent_keys_for(app, name)]


def sent_keys_for(app: App[Any], name: str) -> list[str]:
    """As `keys_for`, by the names under which a terminal's keys come."""
    own = _own_keys(app).get(name)
    return _split(own) if own else _usual_keys(name)


def plain_key_for(app: App[Any], name: str, usual: str) -> str:
    """The key of a binding, in plain letters: the person's own where there is one, else its usual one."""
    return plain_key(_own_keys(app).get(name, usual))


def _own_keys(app: App[Any]) -> Mapping[str, str]:
    return app._keymap


@cache
def _usual_keys(name: str) -> list[str]:
    found = [each.key for kind in bound_classes() for each in bindings_of(kind) if each.id == name]
    if not found:
        raise KeyError(name)
    return found


def plain_key(key: str) -> str:
    """A key in plain letters; several stand with commas between, as they are written in the configuration."""
    return KEYS.get(key, key.replace("page", "page "))


def short_key(key: str) -> str:
    """A key in as few letters as can be: `^p`, `?`, `esc`."""
    *modifiers, base = key.split("+") if key != "+" else ("+",)
    character = KEYS.get(base) or key_to_character(base)
    named = SHORT.get(base) or (character if character and character.isprintable() else plain_key(base))
    return "".join("^" if each == "ctrl" else f"{each}+" for each in modifiers) + named
