"""What the daemon has measured of itself lately, as lines of bars."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from textual.content import Content

from beetle.contracts.console import ConsoleOverviewReport, Metrics, RecentActivity
from beetle.contracts.operations import BY_NAME
from beetle_tui.panels import LABEL, LABEL_CELLS, Panel
from beetle_tui.table import fitted
from beetle_tui.text import fold, size
from beetle_tui.theme import is_plain

STEP_SECONDS = 5.0
"""What one bar stands for, and how often the overview looks."""
LEAST_SECONDS = 1.0
"""What a rate is reckoned over at least."""
BARS = "▁▂▃▄▅▆▇█"
PLAIN_BARS = ".:-=+*%#"
"""For terminals whose fonts may have no others."""
OWN = frozenset({"hello", "console.overview", "memory.inspect", "event_log.read", "scheduler.status"})
"""What the overview itself asks: no sign that anybody else does anything."""
VALUE_CELLS = 9
SCALE_CELLS = 8
NOTE_CELLS = 30
MOST_BARS = 60


def asked_by_others(seen: ConsoleOverviewReport) -> tuple[tuple[str, int], ...]:
    """How often anything was asked that the overview does not ask itself."""
    return tuple((name, calls) for name, calls in _counts(seen.metrics).items() if name not in OWN)


def _counts(metrics: Metrics | None) -> dict[str, int]:
    return {} if metrics is None else {each.operation: each.calls for each in metrics.operations}


def _writes(name: str) -> bool:
    row = BY_NAME.get(name)
    return row is not None and row.effect in ("write", "admin")


class Sparkline(NamedTuple):
    """One figure over time: its name, what it is now, its bars, and what else there is to say.

    In `series` None is what was not measured. `unit` says how high a full bar is: `top`, or the highest that is drawn.
    """

    label: str
    value: str
    series: tuple[float | None, ...]
    unit: Callable[[float], str]
    top: float | None = None
    note: str = ""


def activity_lines(seen: ConsoleOverviewReport) -> list[Sparkline]:
    """The figures of a report, each with its history; none where the caller is not told of it."""
    lately, storage = seen.activity, seen.storage
    if lately is None:
        return []
    writes = sum(number for name, number in _counts(seen.metrics).items() if _writes(name))
    found = [
        _rated("Writes", lately, lately.writes, f"{writes:,} since the start"),
        _rated("Recalls", lately, lately.recalls, _recall_times(seen.metrics)),
        Sparkline("Slowest", _millis(_highest(lately.slowest_ms[-2:])), lately.slowest_ms, _millis, note="answer"),
    ]
    system = seen.system
    if system is not None and system.process_rss_bytes is not None:
        limit = system.memory_limit_bytes
        note = "" if limit is None else f"of {size(limit)}"
        found.append(Sparkline("RSS", size(system.process_rss_bytes), lately.rss_bytes, _bytes, limit, note))
    if storage.wal_bytes is not None:
        found.append(Sparkline("WAL", size(storage.wal_bytes), lately.wal_bytes, _bytes))
    if storage.disk_free_bytes is not None:
        total = storage.disk_total_bytes
        note = "" if total is None else f"free of {size(total)}"
        found.append(Sparkline("Disk", size(storage.disk_free_bytes), lately.disk_free_bytes, _bytes, total, note))
    return found


def _rated(label: str, lately: RecentActivity, counts: Sequence[int], note: str) -> Sparkline:
    """Counts of steps as rates. The last step has not ended: its bar is the rate so far."""
    *ended, running = counts or (0,)
    so_far = max(lately.running_s, LEAST_SECONDS)
    series = (*(each / lately.step_s for each in ended), running / so_far)
    last = ended[-1:]
    now = (sum(last) + running) / (len(last) * lately.step_s + so_far)
    return Sparkline(label, _rate(now), series, _rate, note=note)


def _recall_times(metrics: Metrics | None) -> str:
    seen = () if metrics is None else metrics.operations
    recall = next((each for each in seen if each.operation == "memory.recall"), None)
    return "" if recall is None else f"p50 {recall.p50_ms:.3g}, p99 {recall.p99_ms:.3g} ms"


def _highest(series: Sequence[float | None]) -> float | None:
    return max((each for each in series if each is not None), default=None)


def _rate(value: float) -> str:
    return f"{value:,.1f}/s" if value < 100 else f"{value:,.0f}/s"


def _millis(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.3g} ms" if value < 1000 else f"{value / 1000:,.1f} s"


def _bytes(value: float) -> str:
    return size(int(value))


def bars(series: Sequence[float | None], cells: int, top: float | None = None, plain: bool = False) -> str:
    """The last figures as bars, the newest on the right. They stand on zero; `top` or the highest reaches the top.

    Where nothing was measured there is none, a zero is the lowest, and whatever is more is higher.
    """
    drawn = BARS if not plain else PLAIN_BARS
    shown = list(series)[-cells:] if cells > 0 else []
    highest = full_bar(shown, top)
    steps = len(drawn) - 1
    text = "".join(
        " " if each is None else drawn[0] if each <= 0 else drawn[max(1, round(each / highest * steps))]
        for each in shown
    )
    return " " * (cells - len(text)) + text


def full_bar(shown: Sequence[float | None], top: float | None = None) -> float:
    """What a full bar stands for."""
    highest = max((each for each in shown if each is not None), default=0.0)
    return highest if top is None else max(highest, top)


class Activity(Panel):
    """Figures over time, each with its scale; what does not fit on a line is left out from its end."""

    def __init__(self, title: str, *, id: str) -> None:
        super().__init__(title, id=id)
        self._shown: tuple[Sparkline, ...] = ()
        self._absent = ""
        self.border_subtitle = f"{STEP_SECONDS:g} s a bar; right: a full bar"

    def show(self, shown: Iterable[Sparkline], absent: str = "") -> None:
        """Show these; `absent` is said where there are none."""
        found = tuple(shown)
        if (found, absent) != (self._shown, self._absent):
            self._shown, self._absent = found, absent
            self.redraw()

    def lines(self, width: int) -> list[Content]:
        """See Panel."""
        if not self._shown:
            return [Content.styled(part, LABEL) for part in fold(self._absent, width)]
        room = width - LABEL_CELLS - VALUE_CELLS - SCALE_CELLS - 3
        noted = room - NOTE_CELLS - 1 >= len(BARS)
        cells = min(MOST_BARS, room - (NOTE_CELLS + 1 if noted else 0))
        plain = is_plain(self.app)
        return [self._line(each, cells, plain, each.note if noted else "") for each in self._shown]

    def _line(self, each: Sparkline, cells: int, plain: bool, note: str) -> Content:
        drawn = each.series[-cells:] if cells > 0 else ()
        measured = any(part is not None for part in drawn)
        scale = each.unit(full_bar(drawn, each.top)) if measured else ""
        return Content.assemble(
            (fitted(each.label, LABEL_CELLS), LABEL),
            " ",
            fitted(each.value, VALUE_CELLS, right=True),
            " ",
            (bars(each.series, cells, each.top, plain), "$primary"),
            " ",
            (fitted(scale, SCALE_CELLS), LABEL),
            *((" ", (fitted(note, NOTE_CELLS), LABEL)) if note else ()),
        )
