"""How much text the console edits."""

from __future__ import annotations

from beetle.contracts.errors import PayloadTooLarge
from beetle_tui.text import count

MOST_TEXT = 200_000
MOST_LINE = 20_000
"""Characters that can be edited here, and of one line of them: every key lays the line out anew."""


class TooLongToEdit(PayloadTooLarge):
    """A text that would make the editor slow at every key."""

    template = "{what}: the console edits texts of at most {maximum} {unit}"
    hint_template = "`beetle skill edit NAME --procedure-file FILE` takes what the profile allows"


def bound(what: str, text: str) -> None:
    """Raises TooLongToEdit for what is better edited elsewhere."""
    if len(text) > MOST_TEXT:
        raise TooLongToEdit(what=f"{what} has {count(len(text), 'character')}", maximum=MOST_TEXT, unit="characters")
    longest = max(map(len, text.split("\n")))
    if longest > MOST_LINE:
        told = f"{what} has a line of {count(longest, 'character')}"
        raise TooLongToEdit(what=told, maximum=MOST_LINE, unit="characters a line")
