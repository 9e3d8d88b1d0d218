"""A question about several records: each is named by what it says, in a list that scrolls."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from textual.app import ComposeResult
from textual.events import Resize

from beetle_tui.dialogs import Confirm
from beetle_tui.document import Document
from beetle_tui.keys import hinted
from beetle_tui.prose import plain

AROUND = 5
"""Lines of the dialog beside its sentences and the list."""
LEAST = 3


class Names(Document):
    """They lead nowhere: the keys of links are the dialog's."""

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Only what moves."""
        del parameters
        return action not in ("next", "follow")


class ConfirmEach(Confirm):
    """Says what an action will do and names every record that it does it to; does it for `y` alone."""

    HOLDS = (Document,)
    DEFAULT_CSS = "ConfirmEach Document, ConfirmEach Document:focus { border: none; padding: 0; margin-top: 1; }"

    def __init__(self, title: str, lines: Iterable[str], records: Sequence[str]) -> None:
        """`records` are what each is called."""
        super().__init__(title, lines)
        self._records = tuple(records)

    def compose_below(self) -> ComposeResult:
        """The records."""
        yield Names()

    def on_mount(self) -> None:
        """Show them; the keys scroll them."""
        document = self.query_one(Document)
        document.show(self, (plain(each, "- ") for each in self._records))
        document.focus()
        self.query_one("#box").border_subtitle = hinted(self.app, f"{self.KEYS}; {{line-page-down}}: more")

    def on_resize(self, event: Resize) -> None:
        """As much of them as there is room for."""
        document = self.query_one(Document)
        room = max(LEAST, event.size.height - AROUND - len(self._lines))
        document.styles.height = min(room, max(LEAST, document.line_count or len(self._records)))
