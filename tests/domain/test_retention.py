"""Which snapshots a policy keeps: the newest of each hour, day and week, whatever the clock has done."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from hypothesis import given, settings
from hypothesis import strategies as st

from beetle.domain.cron import Schedule
from beetle.domain.retention import HOUR_US, Policy, gone_at, reasons

DAY_US = 24 * HOUR_US
START = int(datetime(2026, 3, 26, 12, tzinfo=UTC).timestamp()) * 1_000_000
FIRST, LAST = -62_135_596_800_000_000, 253_402_300_799_999_999
BERLIN = ZoneInfo("Europe/Berlin")

policies = st.builds(Policy, st.integers(1, 3), st.integers(0, 4), st.integers(0, 4), st.integers(0, 3))
gaps = st.lists(st.integers(-3 * DAY_US, 3 * DAY_US) | st.integers(-56 * 365 * DAY_US, 2 * DAY_US), max_size=25)
rising = st.lists(st.integers(1, 3 * DAY_US), max_size=12)
CRONS = ("0 0 */7 * * *", "0 30 3 * * *", "0 0 3 * * 1")
examples = settings(max_examples=30, derandomize=True, deadline=None)


def stepped(gaps: list[int]) -> list[int]:
    """Times of snapshots, the last one made first: the clock goes on, and is set back, between two of them."""
    held = [START]
    for gap in gaps:
        held.insert(0, min(max(held[0] + gap, FIRST), LAST))
    return held


def kept(held: list[int], policy: Policy) -> list[int]:
    return [at for at, why in zip(held, reasons(held, policy, BERLIN), strict=True) if why]


def days(held: list[int], policy: Policy, rule: str) -> list[int]:
    return [at for at, why in zip(held, reasons(held, policy, BERLIN), strict=True) if rule in why]


def test_the_newest_of_each_hour_day_and_week_is_kept() -> None:
    held = [START - number * HOUR_US // 2 for number in range(24 * 2 * 30)]
    found = reasons(held, Policy(2, 3, 4, 3), UTC)
    by = {rule: [place for place, why in enumerate(found) if rule in why] for rule in ("newest", "hourly", "daily")}
    assert by == {"newest": [0, 1], "hourly": [0, 1, 3], "daily": [0, 25, 73, 121]}
    weeks = [datetime.fromtimestamp(held[p] / 1e6, UTC) for p, why in enumerate(found) if "weekly" in why]
    assert [(each.isocalendar()[1], each.weekday(), each.hour) for each in weeks] == [
        (13, 3, 12),
        (12, 6, 23),
        (11, 6, 23),
    ]


def test_days_are_those_of_the_zone() -> None:
    """Half past eleven in the evening and half past twelve at night are one day in UTC, and two in Berlin."""
    held = [START + 11 * HOUR_US, START + 10 * HOUR_US]
    policy = Policy(1, 0, 2, 0)
    assert (len(kept(held, policy)), reasons(held, policy, UTC)[1]) == (2, ())


@examples
@given(gaps, policies)
def test_the_last_one_made_always_stays_and_no_rule_keeps_more_than_its_number(gaps: list[int], policy: Policy) -> None:
    held = stepped(gaps)
    found = reasons(held, policy, BERLIN)
    assert "newest" in found[0]
    for rule, count in zip(Policy._fields, policy, strict=True):
        assert sum(rule in why for why in found) <= count


@examples
@given(gaps, policies)
def test_pruning_again_removes_nothing_and_one_more_brings_nothing_back(gaps: list[int], policy: Policy) -> None:
    """Stable, however the clock was set: what each run leaves is what a run over all would have left."""
    held = stepped(gaps)
    left: list[int] = []
    for place in range(len(held) - 1, -1, -1):
        left = kept([held[place], *left], policy)
        assert kept(left, policy) == left
    assert left == kept(held, policy)


@examples
@given(gaps, policies)
def test_of_two_in_one_day_the_one_made_later_stays_even_with_an_earlier_time(gaps: list[int], policy: Policy) -> None:
    held = stepped(gaps)
    by_day: dict[object, int] = {}
    for place, at in enumerate(held):
        if datetime(1900, 1, 1, tzinfo=UTC).timestamp() * 1e6 < at:
            by_day.setdefault(datetime.fromtimestamp(at // 1_000_000, BERLIN).date(), place)
    for place, why in enumerate(reasons(held, policy, BERLIN)):
        if "daily" in why and held[place] > 0:
            assert by_day[datetime.fromtimestamp(held[place] // 1_000_000, BERLIN).date()] == place


@settings(max_examples=12, derandomize=True, deadline=None)
@given(rising, policies, st.sampled_from(CRONS))
def test_it_says_when_a_run_of_the_schedule_removes_the_last(gaps: list[int], policy: Policy, cron: str) -> None:
    held = kept(stepped(gaps), policy)
    schedule = Schedule(cron, BERLIN)
    told = gone_at(held, policy, BERLIN, held[0], schedule.next_us)
    left, now, old = list(held), held[0], set(held)
    while old & set(left):
        at = schedule.next_us(now)
        assert at is not None
        now, left = at, kept([at, *left], policy)
    assert told == now


def test_without_a_schedule_nothing_is_ever_removed() -> None:
    assert gone_at([START], Policy(1, 1, 1, 1), UTC, START, Schedule("off", UTC).next_us) is None
