"""The lines of bars of the overview: what the daemon has measured, with gaps where it has not, and a scale."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from beetle.contracts.console import ConsoleOverviewReport, RecentActivity
from beetle_tui.activity import BARS, PLAIN_BARS, activity_lines, bars
from tests.forked import Daemon
from tests.tui.showing import Shown, at, commit, running, show, turn


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with running() as found:
        yield found


def told(daemon: Daemon, **lately: Any) -> ConsoleOverviewReport:
    """A real report with another history."""
    with daemon.client() as client:
        seen = client.console_overview(steps=3)
    assert isinstance(seen.activity, RecentActivity)
    return replace(seen, activity=replace(seen.activity, **lately))


def test_rates_are_of_ended_steps_and_of_the_one_that_runs_so_far(daemon: Daemon) -> None:
    writes = activity_lines(told(daemon, step_s=5.0, running_s=2.0, writes=(0, 10, 4)))[0]
    assert writes.series == (0.0, 2.0, 2.0)
    assert writes.value == "2.0/s"
    assert activity_lines(told(daemon, step_s=5.0, running_s=0.1, writes=(4,)))[0].value == "4.0/s", "not forty"


def test_an_idle_daemon_shows_the_lowest_bars_and_nothing_where_nothing_was_read(daemon: Daemon) -> None:
    idle = activity_lines(told(daemon, writes=(0, 0, 0), slowest_ms=(None, None, None), rss_bytes=(5, None, 5)))
    assert bars(idle[0].series, 4) == " ▁▁▁"
    assert bars(idle[2].series, 4) == "    " and idle[2].value == "-"
    assert bars(idle[3].series, 3, idle[3].top)[1] == " "


def test_the_history_is_there_when_the_console_comes_and_survives_another_area(daemon: Daemon) -> None:
    with daemon.client() as client:
        commit(client, turn(1))

    async def look(shown: Shown) -> None:
        await shown.until_shown("live, read")
        assert set(shown.value("Writes")) & set(BARS[1:]), "what was written before the console came"
        assert "a full bar" in shown.text
        high = shown.value("Writes").split()[-1]
        assert high.endswith("/s") and float(high.removesuffix("/s")) > 0, "the scale"
        await shown.press("7")
        await shown.until_shown("chain ok")
        await shown.press("1")
        await shown.until_shown("refs to evidence")
        assert set(shown.value("Writes")) & set(BARS[1:])

    show(at(daemon), look)


def test_bars_stand_on_zero_and_reach_the_highest_or_the_top() -> None:
    assert bars([0, 1, 2, 4], 4) == "▁▃▅█"
    assert bars([0, 1, 2, 4], 4, top=8.0) == "▁▂▃▅"
    assert bars([0.001, 1000], 2) == "▂█"
    assert bars([None, 0, 0], 5) == "   ▁▁"
    assert bars([1, 2, 3], 2) == "▆█"
    assert bars([1], 0) == bars([], 0) == ""


def test_plain_bars_are_ascii_of_the_same_heights() -> None:
    assert PLAIN_BARS.isascii() and len(set(PLAIN_BARS)) == len(BARS)
    series = list(range(8))
    assert [PLAIN_BARS.index(each) for each in bars(series, 8, plain=True)] == [
        BARS.index(each) for each in bars(series, 8)
    ]
