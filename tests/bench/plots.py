"""Latency against size, drawn from what `tests.bench.scale` and `tests.bench.peers` wrote with `--json`.

    python -m tests.bench.plots FILE... --to docs/recall.svg

One panel for each file, both axes logarithmic: p50 is a solid line, p99 a dashed one, the floor is grey. The same files
give the same bytes. The picture follows the reader's light or dark scheme.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterable
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

WIDTH, PANEL_HEIGHT = 860, 430
LEFT, RIGHT, TOP, BOTTOM = 70, 240, 46, 56
"""Around the axes of a panel: ticks and titles, and the legend on the right."""
ROOM = 1.15
"""How far beyond the least and the most an axis goes."""
SHARES = ("p50_ms", "p99_ms")
SCALE = {
    "space": "whole space", "conversation": "one conversation", "project": "projection, 4,096 chars",
    "beside": "whole space, beside {} writers", "floor": "plain FTS5, in process",
}  # fmt: skip
PEERS = {"beetle": "Beetle, over its socket", "index": "raw SQLite and FTS5"}
FLOOR = ("floor", "index")
LIGHT = {
    "paper": "#ffffff", "text": "#1f2328", "axis": "#656d76", "grid": "#d8dee4", "fine": "#eef1f4", "floor": "#6e7781",
    "c0": "#0b63c5", "c1": "#b34700", "c2": "#0d7a4f", "c3": "#8a3ea8", "c4": "#a1134b", "c5": "#7a6000",
}  # fmt: skip
DARK = {
    "paper": "#0d1117", "text": "#e6edf3", "axis": "#8b949e", "grid": "#30363d", "fine": "#1c2128", "floor": "#9ea7b0",
    "c0": "#58a6ff", "c1": "#ff9950", "c2": "#3fca86", "c3": "#d2a8ff", "c4": "#ff7fab", "c5": "#e3c341",
}  # fmt: skip
COLOURS = 6
STYLE = """
text { font-family: system-ui, sans-serif; font-size: 13px }
.title { font-weight: 600; font-size: 15px } .end { text-anchor: end } .middle { text-anchor: middle }
.line { fill: none; stroke-width: 2 } .line.p99_ms { stroke-dasharray: 6 4 } .mark { stroke-width: 1.5 }
"""
SHAPES = ("circle", "square", "up", "diamond", "down", "wide")


class Series(NamedTuple):
    """One line of each share: turns and milliseconds of p50 and of p99."""

    title: str
    look: str
    """The class of its colour."""
    shape: str
    points: list[tuple[int, float, float]]


class Panel(NamedTuple):
    title: str
    series: list[Series]


class Axis(NamedTuple):
    """A logarithmic axis: the values at its ends, and where they are drawn."""

    least: float
    most: float
    start: float
    end: float

    def place(self, value: float) -> float:
        part = math.log(value / self.least) / math.log(self.most / self.least)
        return self.start + part * (self.end - self.start)

    def ticks(self) -> list[tuple[float, bool]]:
        """Values of 1, 2 and 5 of each decade, and whether it is a whole one."""
        first, last = math.floor(math.log10(self.least)), math.ceil(math.log10(self.most))
        every = [(step * 10.0**decade, step == 1) for decade in range(first, last + 1) for step in (1, 2, 5)]
        return [(value, whole) for value, whole in every if self.least <= value <= self.most]


def panel_of(found: dict[str, Any]) -> Panel:
    """The lines that a result has.

    Raises:
        ValueError: it is of another benchmark.
    """
    if found.get("bench") == "scale":
        results = found["results"]
        writers = results[0]["beside"]["writers"] if results else 0
        named = [(name, title.format(writers), results) for name, title in SCALE.items()]
        title = f"Recall over the socket, {found['profile']}"
    elif found.get("bench") == "peers":
        results = [{"turns": each["turns"], **each["stores"]} for each in found["results"]]
        names = dict.fromkeys(n for each in found["results"] for n, row in each["stores"].items() if "p50_ms" in row)
        named = [(name, PEERS.get(name, name), results) for name in names]
        title = "Finding ten turns, beside other stores"
    else:
        raise ValueError("it is no result of tests.bench.scale or tests.bench.peers")
    lines, colour = [], 0
    for name, label, results in named:
        points = [(each["turns"], *(each[name][share] for share in SHARES)) for each in results if name in each]
        look = "floor" if name in FLOOR else f"c{colour % COLOURS}"
        lines.append(Series(label, look, "circle" if name in FLOOR else SHAPES[colour % len(SHAPES)], points))
        colour += name not in FLOOR
    return Panel(title, sorted(lines, key=lambda each: each.look == "floor"))


def colours(scheme: dict[str, str]) -> str:
    """Rules of a scheme. No variables: not every program that shows pictures knows them."""
    rules = [
        f".paper, .mark.p99_ms {{ fill: {scheme['paper']} }} text {{ fill: {scheme['text']} }}",
        *(f".{each} {{ stroke: {scheme[each]} }}" for each in ("axis", "grid", "fine")),
    ]
    lines = ("floor", *(f"c{number}" for number in range(COLOURS)))
    rules += [
        f".{each} path {{ stroke: {scheme[each]} }} .{each} .mark.p50_ms {{ fill: {scheme[each]} }}" for each in lines
    ]
    return "\n".join(rules)


def mark(shape: str, x: float, y: float) -> str:
    """The outline of a point, as the data of a path."""
    r = 4.0
    corners: dict[str, list[tuple[float, float]]] = {
        "square": [(-r, -r), (r, -r), (r, r), (-r, r)],
        "up": [(0, -r - 1), (r + 1, r), (-r - 1, r)],
        "down": [(0, r + 1), (r + 1, -r), (-r - 1, -r)],
        "diamond": [(0, -r - 1), (r + 1, 0), (0, r + 1), (-r - 1, 0)],
        "wide": [(-r - 2, -2), (r + 2, -2), (r + 2, 2), (-r - 2, 2)],
    }
    if shape == "circle":
        return f"M{x - r:.1f} {y:.1f}a{r} {r} 0 1 0 {2 * r} 0a{r} {r} 0 1 0 {-2 * r} 0Z"
    return "M" + "L".join(f"{x + dx:.1f} {y + dy:.1f}" for dx, dy in corners[shape]) + "Z"


def said(value: float) -> str:
    """A tick's value."""
    return f"{value:,.0f}" if value >= 1 else f"{value:g}"


def axes(panel: Panel, top: float) -> tuple[Axis, Axis]:
    """Across: turns. Up: milliseconds."""
    sizes = [point[0] for each in panel.series for point in each.points]
    times = [value for each in panel.series for point in each.points for value in point[1:]]
    across = Axis(min(sizes) / ROOM, max(sizes) * ROOM, LEFT, WIDTH - RIGHT)
    return across, Axis(min(times) / ROOM, max(times) * ROOM, top + PANEL_HEIGHT - BOTTOM, top + TOP)


def frame(panel: Panel, top: float, across: Axis, up: Axis) -> Iterable[str]:
    """Title, grid, ticks and what the axes are."""
    yield f'<text class="title" x="{LEFT}" y="{top + 26:.1f}">{escape(panel.title)}</text>'
    few = len([each for each in up.ticks() if each[1]]) < 3
    for value, whole in up.ticks():
        y = up.place(value)
        kind = "grid" if whole else "fine"
        yield f'<line class="{kind}" x1="{across.start}" x2="{across.end}" y1="{y:.1f}" y2="{y:.1f}"/>'
        if whole or few:
            yield f'<text class="end" x="{across.start - 8}" y="{y + 4:.1f}">{said(value)}</text>'
    for value, whole in across.ticks():
        x = across.place(value)
        kind = "grid" if whole else "fine"
        yield f'<line class="{kind}" x1="{x:.1f}" x2="{x:.1f}" y1="{up.start:.1f}" y2="{up.end:.1f}"/>'
    for size in sorted({point[0] for each in panel.series for point in each.points}):
        yield f'<text class="middle" x="{across.place(size):.1f}" y="{up.start + 18:.1f}">{said(size)}</text>'
    corner = f"M{across.start} {up.end:.1f}V{up.start:.1f}H{across.end}"
    yield f'<path class="axis" fill="none" d="{corner}"/>'
    middle = (across.start + across.end) / 2
    yield f'<text class="middle" x="{middle:.1f}" y="{up.start + 40:.1f}">turns in the store</text>'
    y = (up.start + up.end) / 2
    yield f'<text class="middle" transform="translate(20 {y:.1f}) rotate(-90)">milliseconds</text>'


def drawn(panel: Panel, top: float) -> Iterable[str]:
    """A panel whose upper edge is at `top`."""
    across, up = axes(panel, top)
    yield from frame(panel, top, across, up)
    for place, each in enumerate(panel.series):
        y = top + TOP + 10 + 24 * place
        x = WIDTH - RIGHT + 24
        yield f'<g class="{each.look}">'
        for share, column in zip(SHARES, (1, 2), strict=True):
            spots = [(across.place(point[0]), up.place(point[column])) for point in each.points]
            path = "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in spots)
            yield f'<path class="line {share}" d="{path}"/>'
            marks = "".join(mark(each.shape, a, b) for a, b in spots)
            yield f'<path class="mark {share}" d="{marks}"/>'
        yield f'<path class="mark p50_ms" d="{mark(each.shape, x, y)}"/>'
        yield f'<text x="{x + 14}" y="{y + 4:.1f}">{escape(each.title)}</text></g>'
    for share, title, place in (("p50_ms", "p50", 0), ("p99_ms", "p99", 1)):
        y = top + TOP + 26 + 24 * (len(panel.series) + place)
        x = WIDTH - RIGHT + 14
        yield f'<g class="floor"><path class="line {share}" d="M{x} {y:.1f}h34"/>'
        yield f'<path class="mark {share}" d="{mark("circle", x + 17, y)}"/>'
        yield f'<text x="{x + 44}" y="{y + 4:.1f}">{title}</text></g>'


def svg(panels: list[Panel]) -> str:
    """The whole picture."""
    height = PANEL_HEIGHT * len(panels)
    told = "; ".join(each.title for each in panels)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        f'role="img" aria-label="{escape(told, quote=True)}">',
        f"<style>{STYLE}{colours(LIGHT)}\n@media (prefers-color-scheme: dark) {{\n{colours(DARK)}\n}}\n</style>",
        f'<rect class="paper" width="{WIDTH}" height="{height}"/>',
    ]
    for number, each in enumerate(panels):
        lines += drawn(each, number * PANEL_HEIGHT)
    return "\n".join([*lines, "</svg>", ""])


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="what scale or peers wrote with --json")
    parser.add_argument("--to", type=Path, required=True, help="the picture")
    options = parser.parse_args(arguments)
    panels = []
    for each in options.files:
        try:
            panels.append(panel_of(json.loads(each.read_text())))
        except ValueError as error:
            parser.error(f"{each}: {error}")
    options.to.write_text(svg(panels), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
