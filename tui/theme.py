"""The themes and the style of the frame.

Colours of the first two are near the sixteen that every terminal has. No theme says by a colour what no text says.
"""

from __future__ import annotations

from collections.abc import Sequence

from textual.theme import Theme

NATIVE = {
    "ansi-background": "ansi_default",
    "ansi-foreground": "ansi_default",
    "border": "ansi_default",
    "border-blurred": "ansi_default",
    "block-cursor-foreground": "ansi_default",
    "block-cursor-background": "ansi_default",
    "block-cursor-text-style": "reverse",
    "block-cursor-blurred-text-style": "bold",
    "input-cursor-text-style": "reverse",
    "input-selection-background": "ansi_default",
    "input-selection-foreground": "ansi_default",
    "screen-selection-background": "ansi_default",
    "screen-selection-foreground": "ansi_default",
    "scrollbar": "ansi_default",
    "scrollbar-hover": "ansi_default",
    "scrollbar-active": "ansi_default",
    "scrollbar-background": "ansi_default",
    "scrollbar-background-hover": "ansi_default",
    "scrollbar-background-active": "ansi_default",
    "link-color": "ansi_default",
    "link-color-hover": "ansi_default",
    "link-background-hover": "ansi_default",
    **{f"markdown-h{level}-color": "ansi_default" for level in range(1, 7)},
}
"""What Textual colours by itself in a theme of the terminal's colours: left to the terminal."""


def _own(label: str, line: str, bar: str, bar_text: str, alarm: str, alarm_text: str) -> dict[str, str]:
    """Our own names of colours."""
    return {
        "label": label,
        "line": line,
        "bar": bar,
        "bar-text": bar_text,
        "alarm": alarm,
        "alarm-text": alarm_text,
    }


DARK = Theme(
    name="beetle-dark",
    dark=True,
    primary="#5fafff",
    secondary="#5fafff",
    accent="#ffd75f",
    warning="#ffd75f",
    error="#ff5f5f",
    success="#5fd787",
    foreground="#e4e4e4",
    background="#000000",
    surface="#000000",
    panel="#121212",
    boost="#121212",
    variables=_own("#9e9e9e", "#6c6c6c", "#303030", "#ffffff", "#af0000", "#ffffff"),
)

LIGHT = Theme(
    name="beetle-light",
    dark=False,
    primary="#005faf",
    secondary="#005faf",
    accent="#875f00",
    warning="#875f00",
    error="#af0000",
    success="#005f00",
    foreground="#121212",
    background="#ffffff",
    surface="#ffffff",
    panel="#eeeeee",
    boost="#eeeeee",
    variables=_own("#585858", "#8a8a8a", "#d0d0d0", "#000000", "#af0000", "#ffffff"),
)

CONTRAST = Theme(
    name="high-contrast",
    dark=True,
    primary="#00ffff",
    secondary="#00ffff",
    accent="#ffff00",
    warning="#ffff00",
    error="#ff8787",
    success="#00ff00",
    foreground="#ffffff",
    background="#000000",
    surface="#000000",
    panel="#000000",
    boost="#000000",
    variables=_own("#ffffff", "#ffffff", "#ffff00", "#000000", "#ffffff", "#000000"),
)
"""Every text has a contrast of at least 7:1 to what is behind it."""

ANSI = Theme(
    name="ansi",
    ansi=True,
    dark=True,
    primary="ansi_cyan",
    secondary="ansi_cyan",
    accent="ansi_yellow",
    warning="ansi_yellow",
    error="ansi_red",
    success="ansi_green",
    foreground="ansi_default",
    background="ansi_default",
    surface="ansi_default",
    panel="ansi_default",
    boost="ansi_default",
    variables=NATIVE
    | _own("ansi_cyan", "ansi_blue", "ansi_blue", "ansi_bright_white", "ansi_red", "ansi_bright_white"),
)
"""The terminal's own sixteen colours, as its owner has set them."""

MONOCHROME = Theme(
    name="monochrome",
    ansi=True,
    dark=True,
    primary="ansi_default",
    secondary="ansi_default",
    accent="ansi_default",
    warning="ansi_default",
    error="ansi_default",
    success="ansi_default",
    foreground="ansi_default",
    background="ansi_default",
    surface="ansi_default",
    panel="ansi_default",
    boost="ansi_default",
    variables=NATIVE | _own(*["ansi_default"] * 6),
)
"""No colour at all: bold, underlined and reversed text is what is left."""

THEMES: Sequence[Theme] = (DARK, LIGHT, CONTRAST, ANSI, MONOCHROME)
"""In the order in which `t` goes through them."""
THEME_NAMES: Sequence[str] = tuple(each.name for each in THEMES)


def usual_theme(terminal: str) -> str:
    """The theme for a kind of terminal (`TERM`) when nobody has named one."""
    kind = terminal.partition("-")[0]
    if kind.startswith("vt") or terminal.endswith(("-m", "-mono")):
        return MONOCHROME.name
    return ANSI.name if kind in ("linux", "ansi", "cygwin") or terminal.endswith("-16color") else DARK.name
