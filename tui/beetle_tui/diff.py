"""What changed from one text to the next, a step at a time: `+` and `-` tell it, colour only helps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import unified_diff
from typing import ClassVar, NamedTuple

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen

from beetle_tui.document import Document
from beetle_tui.keys import hinted
from beetle_tui.prose import BLANK, MOST_SHOWN, Block, left_out, plain
from beetle_tui.text import neutral
from beetle_tui.too_small import TooSmall

STYLES = {"+": "$success", "-": "$error", "@": "$label"}
TAB = 4


class DiffStep(NamedTuple):
    """One change: its title, what is said of it, and the lines of its diff, if its text is to be seen."""

    title: str
    notes: tuple[str, ...]
    diff: str | None


class DiffScreen(ModalScreen[None]):
    """One step of several; left and right go through them."""

    DEFAULT_CSS = """
    DiffScreen {
        background: transparent; align: center middle;
        #change {
            width: 100%; height: 100%; background: $background; border: solid $line; border-title-color: $foreground;
            border-title-style: bold; border-subtitle-color: $label;
        }
        Document, Document:focus { border: none; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "dismiss", "Close", id="diff-close", tooltip="back to the screen"),
        Binding("left", "step(-1)", "Older", id="diff-older", tooltip="the change before"),
        Binding("right", "step(1)", "Newer", id="diff-newer", tooltip="the change after"),
    ]

    def __init__(self, steps: Sequence[DiffStep], at: int) -> None:
        """`at` is the one that is shown first; they stand in the order in which they were made."""
        super().__init__()
        self._steps = tuple(steps)
        self._at = at

    def compose(self) -> ComposeResult:
        """One page in a frame."""
        with Vertical(id="change"):
            yield Document(id="diff")
        yield TooSmall()

    def on_mount(self) -> None:
        """Show the first one."""
        self._show()

    def action_step(self, steps: int) -> None:
        """Another change."""
        self._at = min(max(0, self._at + steps), len(self._steps) - 1)
        self._show()

    def _show(self) -> None:
        step = self._steps[self._at]
        box = self.query_one("#change", Vertical)
        box.border_title = Content(neutral(step.title))
        keys = hinted(self.app, "{diff-older} older, {diff-newer} newer, {diff-close} closes")
        box.border_subtitle = f"{self._at + 1} of {len(self._steps)}; {keys}"
        self.query_one(Document).show(self._at, step_blocks(step))


def step_blocks(step: DiffStep) -> Iterator[Block]:
    """A step as a page."""
    yield from (plain(each) for each in step.notes)
    yield BLANK
    if step.diff is None:
        yield plain("The text is withheld from this caller.")
    elif not step.diff:
        yield plain("The procedure is the same in both.")
    else:
        yield from diff_blocks(step.diff)


def diff_blocks(diff: str) -> Iterator[Block]:
    """The lines of a unified diff."""
    for line in diff[:MOST_SHOWN].split("\n"):
        mark, text = line[:1], neutral(line.rstrip("\r").expandtabs(TAB))
        head = line.startswith(("--- ", "+++ "))
        yield Block(Content.styled(text, "bold" if head else STYLES.get(mark, "")), rest="  ")
    yield from left_out(diff)


def diff_of(before: str, after: str, names: tuple[str, str]) -> str:
    """A unified diff of two texts that are called so; empty where they say the same."""
    return "\n".join(unified_diff(before.splitlines(), after.splitlines(), *names, lineterm=""))
