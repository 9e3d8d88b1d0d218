"""What the console uses of Textual that Textual calls private: all of it, each with its reason."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path

import textual.app
import textual.driver
import textual.drivers.linux_driver
import textual.message_pump
import textual.screen
import textual.widget
import textual.widgets

import beetle_tui

FOLDER = Path(beetle_tui.__file__).parent
KNOWN = {
    ("app", "_driver"): "the driver waits for a key to be taken; nothing public names it",
    ("app", "_fatal_error"): "Textual's own prints the values of all variables, which may be anyone's secrets",
    ("app", "_filters"): "Textual's filter makes greys where NO_COLOR asks for none, and cannot be left out otherwise",
    ("app", "_screen_stacks"): "`screen_stack` is of the mode that is shown; what is typed may be in another",
    ("app", "_shutdown"): "workers that still read must end before the widgets go; no event comes that early",
    ("driver", "_app"): "a driver's app has no other name",
    ("driver", "_file"): "where a driver writes to can be given by nothing else",
    ("driver", "_run_input_thread"): "it ends the process on an error, and public hooks run after that",
    ("driver", "textual._xterm_parser"): "the parser of a terminal's keys, for a driver that reads them itself",
    ("form", "_value"): "not Textual's: a function of the form's own class, of which the check sees but the name",
    ("keys", "_keymap"): "there is `set_keymap`, and nothing that reads it",
    ("line_input", "_on_paste"): "the public name runs beside Textual's own handler, which inserts the text once more",
    ("plaintext", "_on_paste"): "as in `line`",
}
OF_TEXTUAL = (
    textual.app.App, textual.screen.Screen, textual.screen.ModalScreen, textual.widget.Widget,
    textual.drivers.linux_driver.LinuxDriver, textual.widgets.Input, textual.widgets.TextArea,
)  # fmt: skip


def private_names() -> set[str]:
    """Every attribute and method of Textual's classes that begins with an underscore."""
    found: set[str] = set()
    for kind in OF_TEXTUAL:
        for each in kind.__mro__:
            if each.__module__.startswith("textual"):
                found |= {name for name in vars(each) if name.startswith("_") and not name.startswith("__")}
                found |= set(attributes(inspect.getsource(each)))
    return found


def attributes(source: str) -> Iterator[str]:
    """What a class sets of itself under a private name."""
    for node in ast.walk(ast.parse(source)):
        if is_own(node) and node.attr.startswith("_") and not node.attr.startswith("__"):  # type: ignore[attr-defined]
            yield node.attr  # type: ignore[attr-defined]


def used(path: Path, private: set[str]) -> Iterator[tuple[str, str]]:
    """The private names of Textual's in a file: modules, methods that take the place of its own, and attributes."""
    tree = ast.parse(path.read_text())
    own = {node.attr for node in ast.walk(tree) if is_own(node)}
    defined = {each.name for each in ast.walk(tree) if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("textual"):
            names = [*node.module.split("."), *(each.name for each in node.names)]
            if any(each.startswith("_") for each in names):
                yield path.stem, node.module
        elif isinstance(node, ast.ClassDef) and node.bases:
            methods = (each for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef))
            yield from ((path.stem, each.name) for each in methods if each.name in private)
        elif isinstance(node, ast.Attribute) and node.attr in private - (own - {"_file"}) - defined:
            yield path.stem, node.attr


def is_own(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
    )


def test_every_private_name_of_textual_is_known_and_has_a_reason() -> None:
    private = private_names()
    found = {each for path in FOLDER.rglob("*.py") for each in used(path, private)}
    assert found - KNOWN.keys() == set(), "is there a public one? If not, say here why"
    assert KNOWN.keys() - found == set(), "nothing uses these any more"
