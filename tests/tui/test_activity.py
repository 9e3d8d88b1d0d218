"""The history behind the overview's bars, and the bars."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from beetle_tui.activity import BARS, KEPT_STEPS, PLAIN_BARS, STEP_SECONDS, History, Reading, bars


def reading(writes: int, recalls: int = 0, rss: int = 10) -> Reading:
    return Reading(writes, recalls, 1.0, rss, 5, None)


def test_what_was_done_between_two_readings_is_spread_over_the_steps_between() -> None:
    history = History()
    history.note(0.0, reading(100))
    history.note(4 * STEP_SECONDS, reading(108, 4, rss=20))
    assert [each.writes for each in history.steps] == [0, 2, 2, 2, 2]
    assert [each.recalls for each in history.steps] == [0, 1, 1, 1, 1]
    assert [each.rss_bytes for each in history.steps] == [10, 10, 10, 10, 20]


def test_readings_of_one_step_are_added_up() -> None:
    history = History()
    for second, writes in enumerate((1, 3, 6)):
        history.note(STEP_SECONDS + second / 10, reading(writes))
    assert [each.writes for each in history.steps] == [5]


def test_a_daemon_that_was_started_again_counts_from_nothing() -> None:
    history = History()
    history.note(0.0, reading(1000))
    history.note(STEP_SECONDS, reading(3))
    assert [each.writes for each in history.steps] == [0, 3]


def test_a_night_without_a_reading_fills_the_history_and_no_more() -> None:
    history = History()
    history.note(0.0, reading(0))
    history.note(8 * 3600.0, reading(5760))
    assert len(history.steps) == KEPT_STEPS
    assert {each.writes for each in history.steps} == {1.0}


def test_the_pace_is_what_was_done_in_the_time_that_it_took_however_young_the_step_is() -> None:
    history = History()
    assert history.rates == (0.0, 0.0)
    for second in range(13):
        history.note(STEP_SECONDS * 4 + second, reading(100 + 20 * second, 3 * second))
        assert second == 0 or history.rates == (20.0, 3.0)
    history.note(STEP_SECONDS * 8, reading(340, 36))
    history.note(STEP_SECONDS * 9, reading(340, 40))
    assert history.rates == (0.0, 4 / STEP_SECONDS), "what has ended has no pace"
    history.note(STEP_SECONDS * 9 + 1, reading(2))
    assert history.rates == (0.0, 0.0), "another daemon"
    history.note(STEP_SECONDS * 9 + 3, reading(6))
    assert history.rates[0] == 2.0


@given(st.lists(st.tuples(st.floats(0, 300), st.integers(0, 1000)), min_size=1, max_size=30))
def test_nothing_that_was_done_is_lost_while_it_is_kept(gaps: list[tuple[float, int]]) -> None:
    history = History()
    at, writes = 1e6, 0
    history.note(at, reading(0))
    end = at + (KEPT_STEPS - 2) * STEP_SECONDS
    for gap, done in gaps:
        if at + gap > end:
            break
        at, writes = at + gap, writes + done
        history.note(at, reading(writes))
    assert abs(sum(each.writes for each in history.steps) - writes) < 1e-6


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
