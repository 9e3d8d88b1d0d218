"""The nodes of the table of contents: where events stand in it, what is said of them, and that they stay right."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from beetle import MemoryRuntime
from beetle.contracts.errors import InvalidRequest
from beetle.domain.toc.periods import day_of, periods_of_day
from beetle.domain.toc.summary import BULLET_CHARS, sentence_spans
from beetle.store import toc
from beetle.store.engine.transaction import Reading, Row
from tests.building import talk, turn
from tests.toc.conftest import ask, build, children, event, everything, ingest, ms, node, open_memory

RUST = "Rust's ownership system prevents data races between threads."
BORROW = "The borrow checker enforces ownership rules at compile time."


def test_the_ids_titles_and_bounds_of_seed_001(memory: MemoryRuntime) -> None:
    ingest(memory, event("a", "2026-01-30T10:00:00Z", RUST), event("b", "2026-01-30T10:00:05Z", BORROW))
    build(memory)
    titles = {"toc:year:2026": "2026", "toc:month:2026-01": "January 2026", "toc:week:2026-W05": "Week 5, 2026",
              "toc:day:2026-01-30": "January 30, 2026"}  # fmt: skip
    nodes = everything(memory)
    assert {name: each["title"] for name, each in nodes.items() if each["level"] != "segment"} == titles
    (segment,) = (each for each in nodes.values() if each["level"] == "segment")
    assert segment["node_id"].startswith("toc:segment:")
    assert segment["title"].startswith("Ownership")
    assert (segment["start_time_ms"], segment["end_time_ms"]) == (
        ms("2026-01-30T10:00:00Z"),
        ms("2026-01-30T10:00:05Z"),
    )
    week = nodes["toc:week:2026-W05"]
    assert week["start_time_ms"] == ms("2026-01-26T00:00:00Z")
    assert week["end_time_ms"] == ms("2026-02-02T00:00:00Z") - 1
    assert week["child_node_ids"] == ("toc:day:2026-01-30",)


@pytest.mark.parametrize(
    ("day", "ids"),
    [
        ("2024-12-30", ("toc:year:2025", "toc:month:2025-01", "toc:week:2025-W01", "toc:day:2024-12-30")),
        ("2026-01-01", ("toc:year:2026", "toc:month:2026-01", "toc:week:2026-W01", "toc:day:2026-01-01")),
        ("2027-01-01", ("toc:year:2026", "toc:month:2026-12", "toc:week:2026-W53", "toc:day:2027-01-01")),
        ("2026-01-31", ("toc:year:2026", "toc:month:2026-01", "toc:week:2026-W05", "toc:day:2026-01-31")),
        ("1969-12-31", ("toc:year:1970", "toc:month:1970-01", "toc:week:1970-W01", "toc:day:1969-12-31")),
    ],
)
def test_a_week_is_of_the_month_and_year_of_its_thursday(memory: MemoryRuntime, day: str, ids: tuple[str, ...]) -> None:
    ingest(memory, event("a", f"{day}T12:00:00Z", RUST))
    build(memory)
    at = ids[0]
    assert [each["node_id"] for each in ask(memory, "toc.root")["nodes"]] == [at]
    for below in ids[1:]:
        assert [each["node_id"] for each in children(memory, at)] == [below]
        at = below


@given(st.integers(min_value=-719_162, max_value=2_932_896))
def test_every_day_stands_in_one_week_month_and_year(day: int) -> None:
    year, month, week, own = periods_of_day(day)
    assert own.end_ms - own.start_ms == 86_400_000 - 1
    assert week.start_ms <= own.start_ms <= week.end_ms
    assert year.start_ms <= month.start_ms <= month.end_ms <= year.end_ms
    assert day_of(own.start_ms) == day_of(own.end_ms) == day
    at = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=day)).date()
    assert week.node_id == "toc:week:{:04}-W{:02}".format(*at.isocalendar()[:2])


def test_a_zone_of_the_sender_does_not_matter(memory: MemoryRuntime) -> None:
    late = turn("t1", RUST, at="2026-02-01T00:30:00+02:00")
    ask(memory, "transcript.commit", talk(late))
    build(memory)
    assert node(memory, "toc:day:2026-01-31") is not None


def test_a_pause_of_more_than_thirty_minutes_ends_a_segment(memory: MemoryRuntime) -> None:
    begin = ms("2026-01-30T10:00:00Z")
    half = 30 * 60 * 1000
    ingest(
        memory,
        event("a", begin, RUST),
        event("b", begin + half, BORROW),
        event("c", begin + 2 * half + 1, "Lifetimes are part of a type."),
    )
    build(memory)
    found = children(memory, "toc:day:2026-01-30")
    assert [(each["start_time_ms"] - begin, each["end_time_ms"] - begin) for each in found] == [
        (0, half), (2 * half + 1, 2 * half + 1),
    ]  # fmt: skip


def test_segments_respect_sessions_tokens_and_the_day(memory: MemoryRuntime) -> None:
    night = ms("2026-01-30T23:59:00Z")
    long = "The kiln fires clay at a high temperature. " * 200  # about 2,150 tokens
    ingest(
        memory,
        event("a", night, RUST, "s1"),
        event("b", night + 1, BORROW, "s2"),
        event("c", night + 120_000, RUST, "s1"),
        *(event(f"l{n}", "2026-01-30T10:00:00Z", long, "s3") for n in range(4)),
    )
    build(memory)
    found = children(memory, "toc:day:2026-01-30")
    sessions = [each["conversation"]["conversation_id"] for each in found]
    assert sorted(sessions) == ["s1", "s2", *["s3"] * 4]
    (after,) = children(memory, "toc:day:2026-01-31")
    assert after["conversation"]["conversation_id"] == "s1"


def test_events_of_one_time_stand_by_their_ids(memory: MemoryRuntime) -> None:
    at = ms("2026-01-30T10:00:00Z")
    for name in random.Random(3).sample("abcdefg", 7):
        ingest(memory, event(name, at, f"Sentence {name} says something about ceramics and glazing."))
    build(memory)
    (segment,) = children(memory, "toc:day:2026-01-30")
    (grip_id,) = segment["bullets"][0]["grip_ids"]
    expanded = ask(memory, "grip.expand", {"grip_id": grip_id, "events_before": 10, "events_after": 10})
    around = [*expanded["events_before"], *expanded["excerpt_events"], *expanded["events_after"]]
    assert [each["event_id"] for each in around] == list("abcdefg")


def test_a_grip_shows_its_own_session_alone_and_as_many_events_as_asked(memory: MemoryRuntime) -> None:
    at = ms("2026-01-30T10:00:00Z")
    quiet = ["Hm.", "Ok.", "Yes.", "No."]
    for n, text in enumerate([*quiet, RUST, *quiet]):
        ingest(memory, event(f"m{n}", at + n * 1000, text), event(f"x{n}", at + n * 1000 + 1, f"Other {n}", "s2"))
    build(memory)
    segment = next(s for s in children(memory, "toc:day:2026-01-30") if s["conversation"]["conversation_id"] == "s1")
    (grip_id,) = next(b for b in segment["bullets"] if b["text"] == RUST)["grip_ids"]
    usual = ask(memory, "grip.expand", {"grip_id": grip_id})
    assert [e["event_id"] for e in usual["events_before"]] == ["m1", "m2", "m3"]
    assert [e["event_id"] for e in usual["events_after"]] == ["m5", "m6", "m7"]
    assert (usual["grip"]["event_id_start"], usual["grip"]["event_id_end"]) == ("m4", "m4")
    none = ask(memory, "grip.expand", {"grip_id": grip_id, "events_before": 0, "events_after": -5})
    assert (none["events_before"], none["events_after"]) == ((), ())
    assert ask(memory, "grip.expand", {"grip_id": "nonexistent"})["grip"] is None


STEP = st.tuples(
    st.sampled_from(["s1", "s2"]),
    st.integers(min_value=0, max_value=5 * 24 * 60),
    st.sampled_from(
        [RUST, BORROW, "", "Ok.", "Глазурь обжигают при высокой температуре печи.", "陶器を焼く。窯は熱い。"]
    ),
)


@settings(max_examples=12, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(STEP, min_size=1, max_size=24), st.randoms(use_true_random=False), st.integers(1, 8))
def test_incremental_rebuilt_and_shuffled_nodes_are_equal(
    steps: list[tuple[str, int, str]], dice: random.Random, stride: int
) -> None:
    base = ms("2026-12-29T22:00:00Z")
    events = [event(f"e{n:02}", base + minute * 60_000, text, s) for n, (s, minute, text) in enumerate(steps)]
    with open_memory() as one, open_memory() as other:
        ingest(one, *events)
        build(one)
        shuffled = dice.sample(events, len(events))
        for first in range(0, len(events), stride):
            ingest(other, *shuffled[first : first + stride])
            build(other)
        expected = everything(one)
        assert everything(other) == expected
        rebuilt = ask(other, "admin.rebuild_toc")
        assert everything(other) == expected
        assert rebuilt["changed_nodes"] == 0
        assert rebuilt["nodes"] == len(expected)


def test_a_late_event_repairs_what_it_touches_and_nothing_else(memory: MemoryRuntime) -> None:
    ingest(memory, event("a", "2026-01-30T10:00:00Z", RUST), event("z", "2026-03-30T10:00:00Z", BORROW))
    build(memory)
    before = {name: node(memory, name) for name in everything(memory)}
    ingest(memory, event("b", "2026-01-30T10:20:00Z", "Glazing pottery needs patience and a hot kiln."))
    build(memory)
    after = {name: node(memory, name) for name in everything(memory)}
    assert set(after) == set(before)
    grown = {name for name in after if after[name]["version"] > before[name]["version"]}
    assert {"toc:year:2026", "toc:month:2026-01", "toc:week:2026-W05", "toc:day:2026-01-30"} < grown
    same = {name for name in after if after[name] == before[name]}
    assert {"toc:week:2026-W14", "toc:day:2026-03-30"} <= same
    assert any("pottery" in bullet["text"] for bullet in after["toc:day:2026-01-30"]["bullets"])


def test_nothing_is_written_when_nothing_changed(memory: MemoryRuntime) -> None:
    ingest(memory, event("a", "2026-01-30T10:00:00Z", RUST))
    build(memory)
    before = {name: node(memory, name) for name in everything(memory)}
    again = ask(memory, "event.ingest", {"event": event("a", "2026-01-30T10:00:00Z", "something else")})
    build(memory)
    assert not again["created"]
    assert {name: node(memory, name) for name in everything(memory)} == before


def test_rebuilding_from_a_date_and_trying_it_out(memory: MemoryRuntime) -> None:
    ingest(memory, event("a", "2026-01-30T10:00:00Z", RUST), event("b", "2026-02-20T10:00:00Z", BORROW))
    tried = ask(memory, "admin.rebuild_toc", {"dry_run": True, "from_date": "2026-02-01"})
    assert (tried["days"], tried["nodes"], tried["dry_run"]) == (1, 0, True)
    made = ask(memory, "admin.rebuild_toc", {"from_date": "2026-02-01"})
    assert made["days"] == 1
    assert "toc:day:2026-02-20" in everything(memory)
    for bad in ("2026-02-30", "not a date"[:10]):
        with pytest.raises(InvalidRequest, match="is no date"):
            ask(memory, "admin.rebuild_toc", {"from_date": bad})


def test_browsing_pages_by_the_tokens_of_seed_001(memory: MemoryRuntime) -> None:
    ingest(memory, *(event(f"e{m}", f"2026-{m:02}-15T10:00:00Z", RUST) for m in range(1, 8)))
    build(memory)
    first = ask(memory, "toc.browse", {"parent_id": "toc:year:2026", "limit": 3})
    assert (first["has_more"], first["continuation_token"]) == (True, "3")
    rest = ask(memory, "toc.browse", {"parent_id": "toc:year:2026", "limit": 3, "continuation_token": "6"})
    assert [each["node_id"] for each in rest["children"]] == ["toc:month:2026-07"]
    assert (rest["has_more"], rest["continuation_token"]) == (False, None)
    usual = ask(memory, "toc.browse", {"parent_id": "toc:year:2026", "limit": 0, "continuation_token": "what?"})
    assert len(usual["children"]) == 7
    assert ask(memory, "toc.browse", {"parent_id": "toc:year:1999"})["children"] == ()
    assert ask(memory, "toc.node", {"node_id": "toc:year:1999"})["node"] is None


def test_years_are_listed_newest_first_page_by_page(memory: MemoryRuntime) -> None:
    ingest(memory, *(event(f"e{y}", f"{y}-06-15T10:00:00Z", RUST) for y in range(2020, 2025)))
    build(memory)
    found: list[str] = []
    cursor: str | None = None
    while True:
        page = ask(memory, "toc.root", {"limit": 2, "cursor": cursor})
        found += [each["title"] for each in page["nodes"]]
        cursor = page["next_cursor"]
        if not page["has_more"]:
            break
    assert found == ["2024", "2023", "2022", "2021", "2020"]


@given(st.text(alphabet="aé漢\U0001f468\u200d\U0001f469e\u0301\U0001f1e9\U0001f1ea .!?\n\u3002", max_size=700))
def test_sentences_are_cut_within_their_text_and_between_characters(text: str) -> None:
    last = 0
    for begin, end in sentence_spans(text):
        assert last <= begin < end <= len(text)
        assert end - begin <= BULLET_CHARS
        piece = text[begin:end]
        assert piece == piece.strip()
        assert not ("\u0300" <= text[end : end + 1] <= "\u036f")
        last = end


def test_an_event_of_a_mebibyte_and_one_with_a_zero_byte_have_bullets_that_stand_in_them(memory: MemoryRuntime) -> None:
    sentence = "Ключ лежит под горшком, 鍵は鉢の下 👩\u200d👩\u200d👧. "
    large = (sentence * 30_000).encode()[: 1 << 20].decode(errors="ignore")
    said = {"large": large, "zero": "The spare key is under the pot\0 with a zero byte."}
    ingest(memory, *(event(name, f"2026-01-30T10:0{n}:00Z", text) for n, (name, text) in enumerate(said.items())))
    build(memory)
    first, second = children(memory, "toc:day:2026-01-30")
    assert first["end_time_ms"] < second["start_time_ms"]
    for segment, name in ((first, "large"), (second, "zero")):
        assert segment["bullets"] and segment["keywords"]
        for bullet in segment["bullets"]:
            assert bullet["text"] in said[name] and "\0" not in bullet["text"]
            assert len(bullet["text"]) <= BULLET_CHARS
            (behind,) = ask(memory, "grip.expand", {"grip_id": bullet["grip_ids"][0]})["excerpt_events"]
            assert behind["event_id"] == name


def test_a_long_day_of_a_session_is_read_once_whatever_its_segments(
    memory: MemoryRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two sessions write their segments by turns, in many cuts: work is counted in events read."""
    texts = [f"Line {number} of the long story about number {number}. " * 16 for number in range(100)]
    for first in range(0, 100, 20):
        for session in ("s1", "s2"):
            at = ms("2026-01-30T10:00:00Z")
            ingest(
                memory,
                *(event(f"{session}-{n}", at + n * 1000, texts[n], session) for n in range(first, first + 20)),
            )
            ask(memory, "scheduler.run", {"job_name": "outbox-processor", "wait": True})
    read = 0
    members = toc.members

    def counted(tx: Reading, conversation: int, first: int, last: int) -> Iterator[Row]:
        nonlocal read
        for row in members(tx, conversation, first, last):
            read += 1
            yield row

    monkeypatch.setattr(toc, "members", counted)
    ask(memory, "scheduler.run", {"job_name": "segment-summarizer", "wait": True})
    assert read == 200
    assert len(children(memory, "toc:day:2026-01-30")) > 9
