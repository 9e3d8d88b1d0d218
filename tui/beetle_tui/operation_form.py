"""A form for any operation, out of the schema of its request; what was typed as its arguments."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, NamedTuple

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.events import DescendantFocus
from textual.widgets import Input, Static

from beetle.contracts.fields import Request
from beetle.contracts.operations import Operation
from beetle.contracts.schema import request_schema
from beetle_tui.dialogs import Typing
from beetle_tui.keys import hinted
from beetle_tui.line_input import LineInput
from beetle_tui.text import fold, neutral

Kind = Literal["text", "integer", "number", "switch", "choice", "conversation", "json"]
HIDDEN = frozenset({"passphrase", "app_key"})
"""Arguments that nobody should read over a shoulder."""
WORDS: Mapping[str, bool] = {"yes": True, "y": True, "true": True, "no": False, "n": False, "false": False}
LABEL_CELLS = 22
TAG = "kind"


class Argument(NamedTuple):
    """One field of a request: what it is called, what may be typed for it, and what it means."""

    name: str
    kind: Kind
    required: bool
    many: bool
    choices: tuple[str, ...]
    help: str
    hint: str


class Untypable(ValueError):
    """A text that cannot be what its argument is; the sentence says why."""


def arguments_of(request: type[Request]) -> tuple[Argument, ...]:
    """The fields of a request in their order, without the one that only tells it from others."""
    schema = request_schema(request)
    required = frozenset(schema.get("required", ()))
    return tuple(
        _argument(name, piece, name in required, schema["$defs"])
        for name, piece in schema["properties"].items()
        if not (name == TAG and len(piece.get("enum", ())) == 1)
    )


def kind_of(request: type[Request]) -> str | None:
    """The word that tells a request from the others of its operation, where there are several."""
    tag = request_schema(request)["properties"].get(TAG, {})
    return tag["enum"][0] if len(tag.get("enum", ())) == 1 else None


def _argument(name: str, piece: Mapping[str, Any], required: bool, parts: Mapping[str, Any]) -> Argument:
    told = piece.get("description", "")
    forms = [each for each in piece.get("anyOf", [piece]) if each.get("type") != "null"]
    form = forms[0] if len(forms) == 1 else {}
    many = form.get("type") == "array"
    inner = form.get("items", {}) if many else form
    told = told or form.get("description", "") or inner.get("description", "") or name.replace("_", " ")
    kind = _kind(inner, parts)
    if many and kind in ("json", "conversation"):
        kind, many = "json", False
    choices = tuple(inner.get("enum", ())) if kind == "choice" else ()
    hint = _hint(kind, many, choices, inner.get("format") == "date-time", piece.get("default"))
    return Argument(name, kind, required, many, choices, told, hint)


KINDS: Mapping[str, Kind] = {"string": "text", "integer": "integer", "number": "number", "boolean": "switch"}


def _kind(form: Mapping[str, Any], parts: Mapping[str, Any]) -> Kind:
    if "enum" in form:
        return "choice"
    if "$ref" in form:
        part = parts.get(form["$ref"].rpartition("/")[2], {})
        return "conversation" if list(part.get("properties", ())) == ["channel_id", "conversation_id"] else "json"
    return KINDS.get(form.get("type", ""), "json")


def _hint(kind: Kind, many: bool, choices: tuple[str, ...], is_time: bool, default: Any) -> str:
    form = {
        "text": "a time, such as 2026-03-02T08:12:00Z" if is_time else "",
        "integer": "a whole number",
        "number": "a number",
        "switch": "yes or no",
        "choice": " | ".join(choices),
        "conversation": "[channel/]conversation",
        "json": "JSON",
    }[kind]
    usual = "" if default in (None, [], {}) else f"left empty: {json.dumps(default, ensure_ascii=False)}"
    return "; ".join(each for each in (form, "several with commas between" if many else "", usual) if each)


def typed_arguments(arguments: tuple[Argument, ...], texts: Mapping[str, str]) -> dict[str, Any]:
    """What was typed, as a request's fields; what was left empty is left out.

    Raises:
        Untypable: with the name of the argument.
    """
    found: dict[str, Any] = {}
    for each in arguments:
        text = texts.get(each.name, "").strip()
        if text:
            found[each.name] = _value(each, text)
        elif each.required:
            raise Untypable(f"{each.name}: is needed")
    return found


def _value(argument: Argument, text: str) -> Any:
    if not argument.many:
        return _one(argument, text)
    if text.startswith("["):
        return _json(argument, text)
    return [_one(argument, part.strip()) for part in text.split(",") if part.strip()]


def _one(argument: Argument, text: str) -> Any:
    match argument.kind:
        case "integer" | "number":
            try:
                return int(text) if argument.kind == "integer" else float(text)
            except ValueError:
                raise Untypable(f"{argument.name}: {text[:40]!r} is not {argument.hint.partition(';')[0]}") from None
        case "switch":
            if text.lower() not in WORDS:
                raise Untypable(f"{argument.name}: answer yes or no")
            return WORDS[text.lower()]
        case "choice":
            if text not in argument.choices:
                raise Untypable(f"{argument.name}: {text[:40]!r} is none of {', '.join(argument.choices)}")
            return text
        case "conversation" if not text.startswith("{"):
            channel, slash, name = text.rpartition("/")
            return {"channel_id": channel, "conversation_id": name} if slash else {"conversation_id": name}
        case "json" | "conversation":
            return _json(argument, text)
        case _:
            return text


def _json(argument: Argument, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise Untypable(f"{argument.name}: this is not JSON") from None


class OperationForm(Typing[dict[str, str]]):
    """A line for each argument; answers with the texts once they can be arguments, or with None."""

    KEYS = "enter runs it, {operation-next} goes on, {operation-close} closes"
    DEFAULT_CSS = """
    OperationForm {
        #box { width: 100; overflow-y: hidden; }
        #lines { height: auto; max-height: 60vh; scrollbar-size-vertical: 1; }
        .row { height: 1; layout: horizontal; }
        .label { width: 22; color: $label; }
        .row Input, .row Input:focus { width: 1fr; margin-top: 0; }
        .row Input:focus { text-style: underline; }
        #meaning { height: 2; margin-top: 1; color: $label; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Close", id="operation-close", tooltip="run nothing"),
        Binding("enter", "run", "Run", id="operation-run", tooltip="run it"),
        Binding("tab,down", "app.focus_next", "Next", id="operation-next", tooltip="to the next argument", show=False),
        Binding("shift+tab,up", "app.focus_previous", "Previous", id="operation-previous",
                tooltip="to the argument before", show=False),
    ]  # fmt: skip

    def __init__(self, row: Operation, request: type[Request], texts: Mapping[str, str], fault: Sequence[str]) -> None:
        """`texts` fill the lines, `fault` says what was wrong with them the last time."""
        super().__init__(row.name, [sentence_of(row)], None)
        self.arguments = arguments_of(request)
        self._texts = texts
        self._wrong = fault

    def compose_below(self) -> ComposeResult:
        """The lines to type in, and what the chosen one means."""
        with VerticalScroll(id="lines", can_focus=False):
            for each in self.arguments:
                with Vertical(classes="row"):
                    mark = "*" if each.required else " "
                    yield Static(Content(f"{mark} {each.name}"), classes="label", markup=False)
                    yield LineInput(self._texts.get(each.name, ""), hint=each.hint, secret=each.name in HIDDEN,
                               id=f"argument-{each.name}")  # fmt: skip
        yield Static(id="meaning", markup=False)
        yield Static(id="fault", markup=False)

    def on_mount(self) -> None:
        """Say what was wrong, and put the cursor into the first line that is to be filled."""
        if not self.arguments:
            told = hinted(self.app, "It takes no arguments: {operation-run} runs it.")
            self.query_one("#meaning", Static).update(Content(told))
            self.set_focus(None)
        if self._wrong:
            self.say(*self._wrong)

    @property
    def unsaved(self) -> bool:
        """See Editing."""
        return any(each.value for each in self.query(LineInput))

    def on_descendant_focus(self, event: DescendantFocus) -> None:
        """Say what the line is for."""
        each = next((each for each in self.arguments if event.widget.id == f"argument-{each.name}"), None)
        if each is not None:
            needed = " It is needed." if each.required else ""
            lines = fold(neutral(f"{each.name}: {each.help}.{needed}"), max(20, self.query_one("#lines").size.width))
            self.query_one("#meaning", Static).update(Content("\n".join(lines[:2])))

    def action_run(self) -> None:
        """Run what takes no arguments; a line takes the key itself."""
        self._submit()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Take what was typed, or say what is wrong with it."""
        event.stop()
        self._submit()

    def _submit(self) -> None:
        texts = {each.name: self.query_one(f"#argument-{each.name}", LineInput).value for each in self.arguments}
        try:
            typed_arguments(self.arguments, texts)
        except Untypable as wrong:
            self.say(str(wrong))
        else:
            self.take(texts)


def sentence_of(row: Operation) -> str:
    """What an operation does."""
    return f"{row.help[:1].upper()}{row.help[1:]}."
