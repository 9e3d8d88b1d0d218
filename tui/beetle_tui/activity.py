"""What happens over time: a history of readings in equal steps, and its figures as lines of bars."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from operator import sub
from typing import NamedTuple

from rich.cells import cell_len
from textual.content import Content

from beetle.contracts.console import ConsoleOverviewReport, Metrics
from beetle.contracts.operations import BY_NAME
from beetle_tui.panels import GAP, LABEL, LABEL_CELLS, Panel
from beetle_tui.table import fitted
from beetle_tui.text import fold, size
from beetle_tui.theme import is_plain

STEP_SECONDS = 5.0
"""What one bar stands for."""
LEAST_SECONDS = 1.0
"""What a rate is reckoned over at least."""
KEPT_STEPS = 120
BARS = "▁▂▃▄▅▆▇█"
PLAIN_BARS = ".:-=+*%#"
"""For terminals whose fonts may have no others."""
RECALLS = frozenset({"memory.recall", "memory.project"})
OWN = frozenset({"hello", "console.overview", "memory.inspect", "event_log.read"})
"""What the overview itself asks: no sign that anybody else does anything."""
VALUE_CELLS = 12
NOTE_CELLS = 30
MOST_BARS = 60


class Reading(NamedTuple):
    """Figures of one moment. Writes and recalls count from the daemon's start; `answer_ms` is how long it took to ask.

    A figure that was not shown or could not be read is None. As a step of a history: how much was done in it, and how
    things stood at its end.
    """

    writes: float
    recalls: float
    answer_ms: float
    rss_bytes: int | None
    wal_bytes: int | None
    disk_free_bytes: int | None


class History:
    """Readings of any moments, kept as steps of `STEP_SECONDS`."""

    def __init__(self) -> None:
        self.steps: deque[Reading] = deque(maxlen=KEPT_STEPS)
        self._last: Reading | None = None
        self._number = 0
        self._rated: deque[tuple[float, float, float]] = deque()
        """When writes and recalls were counted, and how many there were: of the last step, and once before it."""

    @property
    def calm(self) -> bool:
        """Whether nothing was written or recalled in the last step."""
        return not self.steps or not (self.steps[-1].writes or self.steps[-1].recalls)

    def note(self, at: float, reading: Reading) -> None:
        """Add a reading of the time `at` (monotonic seconds).

        What was done since the reading before is spread evenly over the steps between; in them things stood as before.
        """
        number = int(at // STEP_SECONDS)
        last, self._last = self._last, reading
        self._rate(at, reading, last)
        if last is None:
            self._number = number
            self.steps.append(reading._replace(writes=0.0, recalls=0.0))
            return
        writes, recalls = _since(last.writes, reading.writes), _since(last.recalls, reading.recalls)
        gone = number - self._number
        self._number = number
        if gone <= 0:
            now = self.steps.pop()
            self.steps.append(reading._replace(writes=now.writes + writes, recalls=now.recalls + recalls))
            return
        share = {"writes": writes / gone, "recalls": recalls / gone}
        self.steps.extend([last._replace(**share)] * (min(gone, KEPT_STEPS) - 1))
        self.steps.append(reading._replace(**share))

    @property
    def rates(self) -> tuple[float, float]:
        """Writes and recalls a second, as of the last reading: the last step has mostly not ended by then."""
        if self.calm or len(self._rated) < 2:
            return 0.0, 0.0
        (began, *before), (ended, *now) = self._rated[0], self._rated[-1]
        taken = max(ended - began, LEAST_SECONDS)
        done = [each / taken for each in map(sub, now, before)]
        return done[0] if self.steps[-1].writes else 0.0, done[1] if self.steps[-1].recalls else 0.0

    def _rate(self, at: float, reading: Reading, last: Reading | None) -> None:
        if last is not None and (reading.writes < last.writes or reading.recalls < last.recalls):
            self._rated.clear()  # another daemon counts from nothing
        self._rated.append((at, reading.writes, reading.recalls))
        while len(self._rated) > 2 and self._rated[1][0] <= at - STEP_SECONDS:
            self._rated.popleft()


def _since(before: float, now: float) -> float:
    """A count that fell began anew: the daemon was started again."""
    return now - before if now >= before else now


def reading_of(seen: ConsoleOverviewReport, answer_ms: float) -> Reading:
    """The figures of an answer that took so long."""
    system, counts = seen.system, _counts(seen.metrics)
    return Reading(
        writes=sum(calls for name, calls in counts.items() if _writes(name)),
        recalls=sum(calls for name, calls in counts.items() if name in RECALLS),
        answer_ms=answer_ms,
        rss_bytes=None if system is None else system.process_rss_bytes,
        wal_bytes=seen.storage.wal_bytes,
        disk_free_bytes=seen.storage.disk_free_bytes,
    )


def asked_by_others(seen: ConsoleOverviewReport) -> tuple[tuple[str, int], ...]:
    """How often anything was asked that the overview does not ask itself."""
    return tuple((name, calls) for name, calls in _counts(seen.metrics).items() if name not in OWN)


def _counts(metrics: Metrics | None) -> dict[str, int]:
    return {} if metrics is None else {each.operation: each.calls for each in metrics.operations}


def _writes(name: str) -> bool:
    row = BY_NAME.get(name)
    return row is not None and row.effect in ("write", "admin")


class Sparkline(NamedTuple):
    """One figure over time: its name, what it is now, its bars, and what else there is to say."""

    label: str
    value: str
    series: tuple[float | None, ...]
    top: float | None = None
    note: str = ""


def activity_lines(history: History, seen: ConsoleOverviewReport) -> list[Sparkline]:
    """The six figures, each with its history."""
    steps = tuple(history.steps)
    now = steps[-1]
    writing, recalling = history.rates
    lines: list[Sparkline] = []
    if seen.metrics is not None:
        calls = _counts(seen.metrics)
        writes = sum(number for name, number in calls.items() if _writes(name))
        recall = next((each for each in seen.metrics.operations if each.operation == "memory.recall"), None)
        slowest = "" if recall is None else f"p50 {recall.p50_ms:.3g}, p99 {recall.p99_ms:.3g} ms"
        lines += [
            Sparkline(
                "Writes",
                f"{writing:,.1f}/s",
                _paced((each.writes for each in steps), writing),
                note=f"{writes:,} since the start",
            ),
            Sparkline(
                "Recalls", f"{recalling:,.1f}/s", _paced((each.recalls for each in steps), recalling), note=slowest
            ),
        ]
    lines.append(
        Sparkline("Latency", f"{now.answer_ms:.3g} ms", tuple(each.answer_ms for each in steps), note="to ask for this")
    )
    if seen.system is not None and now.rss_bytes is not None:
        limit = seen.system.memory_limit_bytes
        note = "" if limit is None else f"of {size(limit)}"
        lines.append(Sparkline("RSS", size(now.rss_bytes), tuple(each.rss_bytes for each in steps), limit, note))
    if now.wal_bytes is not None:
        lines.append(Sparkline("WAL", size(now.wal_bytes), tuple(each.wal_bytes for each in steps)))
    if now.disk_free_bytes is not None:
        total = seen.storage.disk_total_bytes
        note = "" if total is None else f"free of {size(total)}"
        free = tuple(each.disk_free_bytes for each in steps)
        lines.append(Sparkline("Disk", size(now.disk_free_bytes), free, total, note))
    return lines


def _paced(series: Iterable[float], rate: float) -> tuple[float, ...]:
    """The last step goes on: its bar shows the pace that it goes at, not how much of it is over."""
    return (*tuple(series)[:-1], rate * STEP_SECONDS)


def bars(series: Sequence[float | None], cells: int, top: float | None = None, plain: bool = False) -> str:
    """The last figures as bars, the newest on the right. They stand on zero; `top` or the highest reaches the top.

    Where nothing was read there is none, a zero is the lowest, and whatever is more is higher.
    """
    drawn = BARS if not plain else PLAIN_BARS
    shown = list(series)[-cells:] if cells > 0 else []
    highest = max((each for each in shown if each is not None), default=0.0)
    if top is not None:
        highest = max(highest, top)
    steps = len(drawn) - 1
    text = "".join(
        " " if each is None else drawn[0] if each <= 0 else drawn[max(1, round(each / highest * steps))]
        for each in shown
    )
    return " " * (cells - len(text)) + text


class Activity(Panel):
    """Figures over time; what does not fit on a line is left out from its end."""

    def __init__(self, title: str, *, id: str) -> None:
        super().__init__(title, id=id)
        self._shown: tuple[Sparkline, ...] = ()
        self._absent = ""
        self.border_subtitle = f"a bar is {STEP_SECONDS:g} s"

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
        head = LABEL_CELLS + 2 * len(GAP) + VALUE_CELLS
        noted = width - head - NOTE_CELLS - len(GAP) >= len(BARS)
        plain = is_plain(self.app)
        cells = min(MOST_BARS, width - head - (NOTE_CELLS + len(GAP) if noted else 0))
        return [
            Content.assemble(
                (fitted(each.label, LABEL_CELLS), LABEL),
                GAP,
                fitted(each.value, VALUE_CELLS, right=True),
                GAP,
                (bars(each.series, cells, each.top, plain), "$primary"),
                *((GAP, (each.note, LABEL)) if noted and cell_len(each.note) <= NOTE_CELLS else ()),
            )
            for each in self._shown
        ]
