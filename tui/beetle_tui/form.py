"""A dialog of several fields, and one that has a row chosen: what an action needs to know of a person."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import Input, Static

from beetle_tui.dialogs import Dialog, Faults, Typing
from beetle_tui.line_input import LineInput
from beetle_tui.loaded_rows import LoadedRows
from beetle_tui.table import Column, Table

MOST_CHOICES_SHOWN = 10

if TYPE_CHECKING:
    from beetle_tui.plaintext import Plaintext


class Field(NamedTuple):
    """One thing to fill in: its key in the answer, what it is called, and what is wrong with a text, or None.

    `hint` stands in the empty line; `several` gives it several lines.
    """

    key: str
    label: str
    value: str = ""
    hint: str = ""
    several: bool = False
    fault: Callable[[str], str | None] = lambda text: None


class Form(Typing[Mapping[str, str]]):
    """Asks for several things at once, and keeps asking while there is a fault."""

    KEYS = "{form-take} takes it, {form-next} goes on, {form-close} closes"
    DEFAULT_CSS = """
    Form {
        .label { color: $label; }
        LineInput, LineInput:focus { margin-top: 0; }
        LineInput { color: $foreground; }
        Plaintext, Plaintext:focus { height: 5; border: none; padding: 0; background: $panel; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "take", "Take", id="form-take", tooltip="take what is filled in"),
        Binding("escape", "leave", "Close", id="form-close", tooltip="leave it as it is"),
        Binding("tab", "app.focus_next", "Next", id="form-next", tooltip="to the next field"),
        Binding("shift+tab", "app.focus_previous", "Back", id="form-previous", tooltip="to the field before"),
    ]

    def __init__(
        self,
        title: str,
        fields: Sequence[Field],
        lines: Iterable[str] = (),
        check: Callable[[Mapping[str, str]], str | None] = lambda values: None,
        run: Callable[[Mapping[str, str]], Awaitable[Faults]] | None = None,
    ) -> None:
        """`check` says what is wrong with all of it together, once no field has a fault of its own. See Typing for
        `run`."""
        super().__init__(title, lines, run)
        self._fields = tuple(fields)
        self._check = check
        self._untouched: dict[str, str] = {}

    def compose_below(self) -> ComposeResult:
        """Each field under what it is called."""
        from beetle_tui.plaintext import Plaintext

        for each in self._fields:
            yield Static(Content(each.label), classes="label", markup=False)
            if each.several:
                yield Plaintext(each.value, id=f"field-{each.key}")
            else:
                yield LineInput(each.value, hint=each.hint, id=f"field-{each.key}")
        yield Static(id="fault", markup=False)

    def on_mount(self) -> None:
        """What the fields made of what they were given."""
        self._untouched = {each.key: self._text_of(each) for each in self._fields}

    @property
    def unsaved(self) -> bool:
        """See Editing."""
        fields = self._fields if self.is_mounted else ()
        return any(self._text_of(each) != self._untouched[each.key] for each in fields)

    def on_plaintext_refused(self, event: Plaintext.Refused) -> None:
        """A paste that is too long."""
        self.say(f"{event.error.message}. {event.error.hint or ''}")

    def action_take(self) -> None:
        """Answer, or say what is wrong and where."""
        values = {each.key: self._value(each) for each in self._fields}
        for each in self._fields:
            if (wrong := each.fault(values[each.key])) is not None:
                self.say(f"{each.label}: {wrong}")
                self.query_one(f"#field-{each.key}").focus()
                return
        wrong = self._check(values)
        if wrong is not None:
            self.say(wrong)
            return
        self.take(values)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter goes on; in the last field it takes what is filled in."""
        if event.input.id == f"field-{self._fields[-1].key}":
            self.action_take()
        else:
            self.app.action_focus_next()

    def _value(self, field: Field) -> str:
        text = self._text_of(field)
        # What nobody has touched is answered as it was given: a field may write line ends and controls otherwise.
        return field.value if text == self._untouched[field.key] else text

    def _text_of(self, field: Field) -> str:
        from beetle_tui.plaintext import Plaintext

        named = f"#field-{field.key}"
        return self.query_one(named, Plaintext).text if field.several else self.query_one(named, LineInput).value

    def say(self, *lines: str) -> None:
        """See Dialog; the fields may take more room than there is."""
        super().say(*lines)
        self.query_one("#fault").scroll_visible(animate=False)


class Option(NamedTuple):
    """One row to choose: the answer that it stands for, and what is shown of it."""

    answer: str
    text: str


class Choose(Dialog[str | None]):
    """Has one of several rows chosen; answers with None when it was given up."""

    HOLDS = (Table,)
    KEYS = "{row-open} chooses, {choose-close} closes"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "dismiss(None)", "Close", id="choose-close", tooltip="leave it as it is"),
    ]

    def __init__(self, title: str, options: Iterable[Option], chosen: str | None = None) -> None:
        """`chosen` is the answer that stands first under the mark."""
        super().__init__(title)
        self._options = tuple(options)
        self._first = next((n for n, each in enumerate(self._options) if each.answer == chosen), 0)

    def compose_below(self) -> ComposeResult:
        """The rows."""
        table: Table[Option] = Table([Column("", lambda each: each.text)])
        table.styles.height = min(len(self._options), MOST_CHOICES_SHOWN)
        yield table

    def on_mount(self) -> None:
        """Show them."""
        table = self.query_one(Table)
        table.show(LoadedRows(self._options), self._first)
        table.focus()

    def on_table_opened(self, event: Table.Opened) -> None:
        """That one."""
        event.stop()
        self.dismiss(event.row.answer)
