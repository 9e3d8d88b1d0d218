"""Recall by the time that a query speaks of, and by the table of contents; searching its nodes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from beetle import MemoryRuntime
from beetle.contracts.errors import NotFound
from beetle.domain.lexical import utc_time
from beetle.domain.time_words import anchor_of, window_of
from tests.building import message, talk, turn
from tests.toc.conftest import JOBS, Plain, ask, build, event, ingest

ASKED = "2026-11-23T13:00:00Z"
"""A Monday."""
US = 1_000_000


@pytest.mark.parametrize(
    ("words", "since", "until"),
    [
        ("what did we say yesterday?", "2026-11-22T00:00", "2026-11-22T23:59"),
        ("the day before yesterday", "2026-11-21T00:00", "2026-11-21T23:59"),
        ("what was last week about", "2026-11-16T00:00", "2026-11-22T23:59"),
        ("this week", "2026-11-23T00:00", "2026-11-29T23:59"),
        ("last weekend", "2026-11-21T00:00", "2026-11-22T23:59"),
        ("three days ago", "2026-11-20T00:00", "2026-11-20T23:59"),
        ("2 weeks ago", "2026-11-06T00:00", "2026-11-12T23:59"),
        ("in the last two weeks", "2026-11-09T00:00", "2026-11-23T23:59"),
        ("last Friday", "2026-11-20T00:00", "2026-11-20T23:59"),
        ("last Monday", "2026-11-16T00:00", "2026-11-16T23:59"),
        ("in the past week", "2026-11-16T00:00", "2026-11-23T23:59"),
        ("over the past month", "2026-10-23T00:00", "2026-11-23T23:59"),
        ("the past year", "2025-11-22T00:00", "2026-11-23T23:59"),
        ("the past weekend", "2026-11-21T00:00", "2026-11-22T23:59"),
        ("last month", "2026-10-01T00:00", "2026-10-31T23:59"),
        ("a year ago", "2025-01-01T00:00", "2025-12-31T23:59"),
        ("where were we in May?", "2026-05-01T00:00", "2026-05-31T23:59"),
        ("in december", "2025-12-01T00:00", "2025-12-31T23:59"),
    ],
)
def test_relative_dates_count_from_when_it_was_asked(words: str, since: str, until: str) -> None:
    asked = round(datetime(2026, 11, 23, 13, tzinfo=UTC).timestamp() * US)
    found = window_of(words, asked)
    assert found is not None
    assert [utc_time(each).isoformat()[:16] for each in (found.since, found.until)] == [since, until]


@pytest.mark.parametrize(
    "words",
    [
        "what may I do",
        "march on",
        "in May 2023",
        "the weekly meeting",
        "",
        "9999 years ago",
        # Letters that are an i, an s or a k where case does not count.
        "s\u0131x days ago",
        "\u017fix days ago",
        "S\u0130X DAYS AGO",
        "ye\u017fterday",
        "last wee\u212a",
        "in Apr\u0131l",
    ],
)
def test_other_words_are_no_time(words: str) -> None:
    assert window_of(words, 0) is None
    assert anchor_of(words) is None


@pytest.fixture
def told(memory: MemoryRuntime) -> MemoryRuntime:
    says = [
        ("e1", "2026-11-18T10:00:00Z", "The boiler in the cellar was repaired by the plumber."),
        ("e2", "2026-06-02T10:00:00Z", "The boiler in the cellar broke and the plumber came to look at the boiler."),
        ("e3", "2026-03-01T10:00:00Z", "Our move to the house by the harbour is done, all boxes are here."),
        ("e4", "2026-02-01T10:00:00Z", "The landlord raised the rent of the flat again."),
        ("e5", "2026-09-01T10:00:00Z", "The landlord of the new house lowered the rent."),
    ]
    ingest(memory, *(event(name, at, text, f"s{name}") for name, at, text in says))
    build(memory)
    return memory


def recall(memory: MemoryRuntime, query: str, **more: object) -> Plain:
    return ask(memory, "memory.recall", {"query": query, "asked_at": ASKED, **more})


def first(report: Plain) -> str:
    return report["hits"][0]["message_id"]


def test_a_relative_date_ranks_what_was_said_then(told: MemoryRuntime) -> None:
    assert first(recall(told, "the boiler and the plumber in the cellar")) == "e1"
    found = recall(told, "the boiler and the plumber in the cellar five months ago")
    assert first(found) == "e2"
    assert "date" in found["hits"][0]["why"]
    assert found["working_recall"]["time_from"] == "2026-06-01T00:00:00Z"
    # It is no fence: what was said at other times is there too.
    assert "e1" in [hit["message_id"] for hit in found["hits"]]


def test_what_were_we_talking_about_last_week(told: MemoryRuntime) -> None:
    assert first(recall(told, "What were we talking about last week?")) == "e1"


def test_words_of_talking_at_other_times_do_not_answer_for_a_time(told: MemoryRuntime) -> None:
    again = "We talked about talking, and were talking all week of what we talk about."
    ingest(told, *(event(f"t{n}", f"2026-10-{n:02}T10:00:00Z", again, f"st{n % 3}") for n in range(1, 10)))
    build(told)
    for query in ("What were we talking about last week?", "what did we talk about in the last ten days"):
        assert [hit["message_id"] for hit in recall(told, query)["hits"]] == ["e1"]
    here = {"conversation": {"channel_id": "event", "conversation_id": "se1"}}
    assert [hit["message_id"] for hit in recall(told, "What did we talk about last week?", **here)["hits"]] == ["e1"]
    month = recall(told, "What did we talk about in October?", limit=20)["hits"]
    assert {hit["message_id"] for hit in month} == {f"t{n}" for n in range(1, 10)}
    # A time of which no node is there yet is looked through by words.
    ingest(told, event("now", "2026-11-23T09:00:00Z", "What we talked about is the fence."))
    assert first(recall(told, "What did we talk about today?")) == "now"
    # One that has bullets is answered with what was said since too, whatever its words.
    build(told)
    ingest(told, event("later", "2026-11-23T11:00:00Z", "The gate squeaks again."))
    assert {hit["message_id"] for hit in recall(told, "What did we talk about today?")["hits"]} == {"now", "later"}
    here = {"conversation": {"channel_id": "event", "conversation_id": "s1"}}
    found = recall(told, "What did we talk about today?", **here)["hits"]
    assert {hit["message_id"] for hit in found} == {"now", "later"}


def test_a_time_in_which_nothing_was_said_changes_nothing(told: MemoryRuntime) -> None:
    assert first(recall(told, "the plumber three days ago")) == first(recall(told, "the plumber"))


@pytest.mark.parametrize("query", ["Last week", "last week?", "What were we talking about last week?"])
def test_a_time_alone_asks_for_all_of_it(told: MemoryRuntime, query: str) -> None:
    assert first(recall(told, query)) == "e1"


@pytest.mark.parametrize("here", [{}, {"conversation": {"channel_id": "event", "conversation_id": "s1"}}])
def test_what_was_just_said_stays_while_the_table_is_brought_up_to_date(memory: MemoryRuntime, here: Plain) -> None:
    asked = ("What did we talk about today?", here)
    ingest(memory, event("first", "2026-11-23T09:00:00Z", "The fence needs paint."))
    build(memory)
    ingest(memory, event("same", "2026-11-23T09:05:00Z", "The gate squeaks again."))
    ingest(memory, event("other", "2026-11-23T12:00:00Z", "The roof is tight."))
    for job in (None, *JOBS):
        if job is not None:
            ask(memory, "scheduler.run", {"job_name": job, "wait": True})
        found = {hit["message_id"] for hit in recall(memory, asked[0], **asked[1])["hits"]}
        assert found == {"first", "same", "other"}, job


@pytest.mark.parametrize("here", [{}, {"conversation": {"channel_id": "event", "conversation_id": "s1"}}])
def test_what_is_hidden_takes_no_place_of_what_was_just_said(memory: MemoryRuntime, here: Plain) -> None:
    ingest(memory, event("first", "2026-11-23T09:00:00Z", "The fence needs paint."))
    build(memory)
    ingest(memory, event("then", "2026-11-23T10:00:00Z", "The gate squeaks again."))
    query = "What did we talk about today?"
    before = [hit["message_id"] for hit in recall(memory, query, **here)["hits"]]
    assert set(before) == {"first", "then"}
    hidden = [
        turn(
            f"h{n}",
            message(f"h{n}", f"secret {n}", visibility="private"),
            at=f"2026-11-23T11:{n // 60:02}:{n % 60:02}Z",
        )
        for n in range(70)
    ]
    for some in (hidden[:35], hidden[35:]):
        ask(memory, "transcript.commit", talk(*some, conversation={"channel_id": "event", "conversation_id": "s1"}))
    assert [hit["message_id"] for hit in recall(memory, query, **here)["hits"]] == before


@pytest.mark.parametrize(
    ("at", "query"),
    [
        ("9999-12-31T10:00:00Z", "the day we met"),
        ("9999-12-29T10:00:00Z", "the week we met"),
        ("0001-01-01T00:00:00Z", "the week we met"),
        ("0001-01-01T00:00:00Z", "before the accident"),
        ("9999-12-31T23:59:59.999999Z", "after the accident"),
    ],
)
def test_a_time_at_the_edge_of_the_calendar_names_another(memory: MemoryRuntime, at: str, query: str) -> None:
    said = turn("t1", message("m1", "We met at the accident by the harbour."), at=at)
    ask(memory, "transcript.commit", talk(said, conversation={"conversation_id": "c"}))
    found = recall(memory, f"the harbour {query}")
    assert first(found) == "m1"
    edges = [found["working_recall"][each] for each in ("time_from", "time_until")]
    assert all(each is None or each[:4] in ("0001", "9999") for each in edges)


def test_an_inspection_shows_what_recall_finds_of_a_named_time(memory: MemoryRuntime) -> None:
    now = datetime.now(UTC)
    said = [
        turn(f"t{n}", message(f"m{n}", "the pump was loud"), at=(now - timedelta(days=n)).isoformat()) for n in range(9)
    ]
    ask(memory, "transcript.commit", talk(*said, conversation={"conversation_id": "c"}))
    query = "Was the pump loud three days ago?"
    found = ask(memory, "memory.recall", {"query": query})
    shown = ask(memory, "memory.inspect", {"query": query})
    assert first(found) == "m3"
    assert shown["recall_hits"][0] == found["hits"][0]
    assert shown["recall"]["time_from"] == found["working_recall"]["time_from"] is not None


def test_before_the_move(told: MemoryRuntime) -> None:
    for how, order in (("before", ["e4", "e5"]), ("after", ["e5", "e4"])):
        found = recall(told, f"what did the landlord do with the rent {how} our move")
        ids = [hit["message_id"] for hit in found["hits"]]
        assert [each for each in ids if each in order] == order
        bonus = {hit["message_id"] for hit in found["hits"] if "date" in hit["why"]}
        assert order[0] in bonus
        assert not {order[1], "e3"} & bonus


def test_the_path_of_the_table_of_contents_names_the_nodes_that_led_to_a_hit(told: MemoryRuntime) -> None:
    found = recall(told, "boiler plumber", path="toc")
    for hit in found["hits"]:
        levels = [each.split(":")[1] for each in hit["toc_nodes"]]
        assert levels == ["year", "month", "week", "day", "segment"]
    assert {hit["toc_nodes"][1] for hit in found["hits"]} == {"toc:month:2026-06", "toc:month:2026-11"}
    assert all(hit["toc_nodes"] == () for hit in recall(told, "boiler plumber")["hits"])


def test_searching_the_children_of_a_node(told: MemoryRuntime) -> None:
    months = ask(told, "toc.search_children", {"query": "boiler", "parent_id": "toc:year:2026"})["nodes"]
    assert {each["node"]["node_id"] for each in months} == {"toc:month:2026-06", "toc:month:2026-11"}
    assert months[0]["score"] == 1.0
    assert any("boiler" in match["text"] for match in months[0]["matches"])
    days = ask(told, "toc.search_children", {"query": "landlord rent", "child_level": "day"})["nodes"]
    assert [each["node"]["level"] for each in days] == ["day", "day"]
    one = ask(told, "toc.search_children", {"query": "boiler", "limit": 1, "child_level": "month"})
    assert (len(one["nodes"]), one["has_more"]) == (1, True)
    with pytest.raises(NotFound):
        ask(told, "toc.search_children", {"query": "boiler", "parent_id": "toc:year:1999"})


def test_searching_one_node(told: MemoryRuntime) -> None:
    found = ask(told, "toc.search_node", {"node_id": "toc:year:2026", "query": "landlord"})
    assert found["matched"]
    assert {each["field"] for each in found["matches"]} >= {"bullets"}
    assert all("landlord" in each["text"] for each in found["matches"])
    words = ask(told, "toc.search_node", {"node_id": "toc:year:2026", "query": "landlord", "fields": ["title"]})
    assert not words["matched"]
    with pytest.raises(NotFound):
        ask(told, "toc.search_node", {"node_id": "toc:year:1999", "query": "landlord"})
