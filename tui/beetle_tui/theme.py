"""The themes and the style of the frame.

Colours of the first two are near the sixteen that every terminal has. No theme says by a colour what no text says.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from textual.app import App
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


COLOURS = ("primary", "accent", "error", "success", "foreground", "background", "panel")
OWN = ("label", "line", "bar", "bar-text", "alarm", "alarm-text")
"""Our own names of colours."""


def _theme(name: str, colours: Sequence[str], own: Sequence[str], dark: bool = True, ansi: bool = False) -> Theme:
    """The colours of `COLOURS` and of `OWN`, in their order; what else Textual has a colour for is one of them."""
    named = dict(zip(COLOURS, colours, strict=True))
    return Theme(
        name=name,
        ansi=ansi,
        dark=dark,
        secondary=named["primary"],
        warning=named["accent"],
        surface=named["background"],
        boost=named["panel"],
        variables=(NATIVE if ansi else {}) | dict(zip(OWN, own, strict=True)),
        **named,
    )


DARK = _theme(
    "beetle-dark",
    ("#5fafff", "#ffd75f", "#ff5f5f", "#5fd787", "#e4e4e4", "#000000", "#121212"),
    ("#9e9e9e", "#6c6c6c", "#303030", "#ffffff", "#af0000", "#ffffff"),
)
LIGHT = _theme(
    "beetle-light",
    ("#005faf", "#875f00", "#af0000", "#005f00", "#121212", "#ffffff", "#eeeeee"),
    ("#585858", "#8a8a8a", "#d0d0d0", "#000000", "#af0000", "#ffffff"),
    dark=False,
)
CONTRAST = _theme(
    "high-contrast",
    ("#00ffff", "#ffff00", "#ff8787", "#00ff00", "#ffffff", "#000000", "#000000"),
    ("#ffffff", "#ffffff", "#ffff00", "#000000", "#ffffff", "#000000"),
)
"""Every text has a contrast of at least 7:1 to what is behind it."""
ANSI = _theme(
    "ansi",
    ("ansi_cyan", "ansi_yellow", "ansi_red", "ansi_green", *["ansi_default"] * 3),
    ("ansi_cyan", "ansi_blue", "ansi_blue", "ansi_bright_white", "ansi_red", "ansi_bright_white"),
    ansi=True,
)
"""The terminal's own sixteen colours, as its owner has set them."""
MONOCHROME = _theme("monochrome", ["ansi_default"] * len(COLOURS), ["ansi_default"] * len(OWN), ansi=True)
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


def is_plain(app: App[Any]) -> bool:
    """Whether to draw in ASCII: where a terminal has but its own colours, or none, its font may lack bars too."""
    return app.current_theme.ansi or app.no_color
