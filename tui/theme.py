"""The two themes and the style of the frame. Colours are near the sixteen that every terminal has."""

from __future__ import annotations

from textual.theme import Theme

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
    variables={
        "label": "#9e9e9e",
        "line": "#6c6c6c",
        "bar": "#303030",
        "bar-text": "#ffffff",
        "alarm": "#af0000",
        "alarm-text": "#ffffff",
    },
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
    variables={
        "label": "#585858",
        "line": "#8a8a8a",
        "bar": "#d0d0d0",
        "bar-text": "#000000",
        "alarm": "#af0000",
        "alarm-text": "#ffffff",
    },
)

for _theme in (DARK, LIGHT):
    _bar, _text = _theme.variables["bar"], _theme.variables["bar-text"]
    _theme.variables |= {
        "footer-background": _bar,
        "footer-foreground": _text,
        "footer-key-background": _bar,
        "footer-key-foreground": _text,
        "footer-description-background": _bar,
        "footer-description-foreground": _text,
    }
