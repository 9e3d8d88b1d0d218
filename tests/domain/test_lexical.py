"""What the recall index holds of a text, and that every string is a query."""

from __future__ import annotations

from collections import Counter

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beetle.domain.lexical import (
    MAX_PHRASES,
    MAX_TERMS,
    DatePart,
    evidence_fields,
    parse_query,
    search_terms,
    skill_fields,
)

JUNE_3_2023 = 1_685_793_600_000_000
TABLE = (
    "CREATE VIRTUAL TABLE recall_index USING fts5(text, names, time, scope, content='', "
    "tokenize='porter unicode61 remove_diacritics 2')"
)
SEARCH = "SELECT rowid FROM recall_index WHERE recall_index MATCH ?"

any_text = st.text(st.characters(exclude_categories=["Cs"]))
awkward = st.sampled_from(
    [
        '"',
        '""',
        "AND",
        "OR",
        "NOT",
        "NEAR(a b)",
        "text:",
        "*",
        "^",
        "{text} :",
        "(",
        ")",
        "-",
        "+",
        "\0",
        "'",
        "\\",
        ";",
    ]
)
queries = st.one_of(
    st.text(),
    any_text,
    st.lists(st.one_of(awkward, any_text, st.sampled_from(["may", "3", "June", "2023", "東京", "한국", "สวัสดี"]))).map(
        " ".join
    ),
)


def search(db: apsw.Connection, query: str, speakers: tuple[str, ...] = ()) -> list[int]:
    """The rows that match any of the query's terms: those that match more of them first."""
    found: Counter[int] = Counter()
    for term in search_terms(parse_query(query), speakers):
        found.update(rowid for (rowid,) in db.execute(SEARCH, (f'scope:"s1" AND ({term.expression})',)))
    return sorted(found, key=lambda row: (-found[row], row))


def index_of(*contents: str, speaker: str | None = None) -> apsw.Connection:
    db = apsw.Connection(":memory:")
    db.execute(TABLE)
    db.execute("INSERT INTO recall_index(recall_index, rank) VALUES ('secure-delete', 1)")
    for rowid, content in enumerate(contents, 1):
        add(db, rowid, content, speaker)
    return db


def add(db: apsw.Connection, rowid: int, content: str, speaker: str | None = None) -> None:
    db.execute(
        "INSERT INTO recall_index(rowid, text, names, time, scope) VALUES (?, ?, ?, ?, 's1 c1 vs')",
        (rowid, *evidence_fields(content, speaker, JUNE_3_2023)),
    )


@pytest.fixture(scope="module")
def ordinary() -> apsw.Connection:
    return index_of(
        "a pottery class on the hill", "東京に行きました", "I may go AND stay NEAR the text: column*", "C++ and foo.bar"
    )


@given(queries)
def test_every_string_is_a_query_and_none_is_an_error(ordinary: apsw.Connection, query: str) -> None:
    for speakers in ((), ("Maria",), ("pottery", "x", "")):
        search(ordinary, query, speakers)


@given(queries)
def test_a_query_is_read_the_same_way_each_time_and_within_its_caps(query: str) -> None:
    parsed = parse_query(query)
    assert parsed == parse_query(query)
    assert search_terms(parsed) == search_terms(parsed)
    assert len(parsed.terms) <= MAX_TERMS
    assert len(parsed.phrases) <= MAX_PHRASES
    assert len(set(parsed.terms)) == len(parsed.terms)


@given(st.lists(any_text, min_size=1, max_size=4), st.one_of(st.none(), any_text), st.integers(-(2**63), 2**63 - 1))
def test_deleting_a_row_with_its_own_fields_leaves_nothing_to_find(
    contents: list[str], speaker: str | None, at_us: int
) -> None:
    db = index_of()
    for _ in range(2):
        for rowid, content in enumerate(contents, 1):
            fields = (rowid, *evidence_fields(content, speaker, at_us))
            db.execute("INSERT INTO recall_index(rowid, text, names, time, scope) VALUES (?, ?, ?, ?, 's1')", fields)
        for rowid, content in enumerate(contents, 1):
            fields = (rowid, *evidence_fields(content, speaker, at_us))
            db.execute(
                "INSERT INTO recall_index(recall_index, rowid, text, names, time, scope) "
                "VALUES ('delete', ?, ?, ?, ?, 's1')",
                fields,
            )
        assert not db.execute("SELECT rowid FROM recall_index WHERE recall_index MATCH 's1'").fetchall()
        db.execute("INSERT INTO recall_index(recall_index) VALUES ('integrity-check')")


@given(any_text)
def test_an_index_form_has_no_nul(content: str) -> None:
    assert "\0" not in "".join(evidence_fields(content, content, 0))


def test_words_after_a_nul_are_found() -> None:
    assert search(index_of("before\0after"), "after") == [1]


@given(st.text(st.characters(min_codepoint=0x4E00, max_codepoint=0x9FA5), min_size=3, max_size=30), st.data())
def test_chinese_text_is_found_by_any_part_of_it(content: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(content) - 1))
    end = data.draw(st.integers(start + 1, len(content)))
    assert search(index_of(content), content[start:end]) == [1]


@pytest.mark.parametrize(
    ("content", "query"),
    [
        ("昨日東京タワーに行きました", "東京タワー"),
        ("昨日東京タワーに行きました", "タワー"),
        ("저는 한국어를 공부합니다", "한국어"),
        ("วันนี้อากาศดีมาก", "อากาศ"),
        ("iPhone15を買った", "iphone15"),
        ("ﾃｽﾄ \uff21\uff22\uff23", "テスト abc"),
        ("हिन्दी में लिखा", "हिन्दी"),
        ("le café crème", "CAFE"),
        ("привет мир", "Мир"),
        ("e\u0301cole", "école"),
    ],
)
def test_scripts_are_found_by_the_words_a_reader_sees(content: str, query: str) -> None:
    assert search(index_of("something else", content), query) == [2]


def test_a_sentence_in_an_unspaced_script_finds_what_shares_a_word_with_it() -> None:
    assert search(index_of("東京に行きました", "大阪で食べた"), "いつ東京を見たの")[0] == 1


def test_inflections_of_a_word_are_one_word() -> None:
    assert search(index_of("we went camping", "we ate"), "When did they camp?") == [1]


def test_a_pasted_page_is_searched_by_its_first_words() -> None:
    db = index_of("word63 here", "word64 here")
    page = " ".join(f"word{n}" for n in range(50_000))
    assert search(db, page) == [1]


def test_fts5_syntax_in_a_query_is_plain_text() -> None:
    db = index_of("cats and dogs", "near miss", "column text")
    assert search(db, "NEAR(miss, 1)") == [2]
    assert search(db, 'text:dogs" OR *') in ([1, 3], [3, 1])
    assert search(db, "{names} : column NOT text") == [3]


def test_a_query_of_stop_words_alone_is_searched_as_it_stands() -> None:
    assert parse_query("what is the").terms == ("what", "is", "the")
    assert search(index_of("to be or not to be"), "to be") == [1]
    assert "the" not in parse_query("the cat").terms


@pytest.mark.parametrize("query", ["", " ", "?!", "\0", "🙂🙂", '""', "- * ( ) :"])
def test_a_query_without_a_letter_or_digit_searches_nothing(query: str) -> None:
    assert search_terms(parse_query(query)) == ()


def test_one_letter_and_one_digit_are_searchable() -> None:
    db = index_of("plan b", "option 7")
    assert search(db, "b") == [1]
    assert search(db, "7") == [2]


def test_an_identifier_ranks_above_its_parts() -> None:
    db = index_of("the bar of foo baz", "see foo.bar_baz for it", "baz foo bar")
    assert search(db, "where is foo.bar_baz")[0] == 2


def test_words_side_by_side_rank_above_the_same_words_apart() -> None:
    assert search(index_of("a group needs support now", "our support group met up"), "support group")[0] == 2


@pytest.mark.parametrize(
    ("query", "dates"),
    [
        ("on May 3, 2023", [(2023, 5, 3)]),
        ("on the 3rd of May", [(0, 5, 3)]),
        ("3 June, 2023 or 2024", [(2023, 6, 3), (2024, 0, 0)]),
        ("in sept. 2021", [(2021, 9, 0)]),
        ("2023-06-03", [(2023, 6, 3)]),
        ("during July", [(0, 7, 0)]),
        ("in 2022", [(2022, 0, 0)]),
        ("you may march on", []),
        ("May I?", []),
        # Names of people.
        ("Tell me about Jan and Mar", []),
        ("What was in Jan", [(0, 1, 0)]),
        ("Back since Dec.", [(0, 12, 0)]),
        ("Then Jan 5", [(0, 1, 5)]),
        # Letters that are an i where case does not count.
        ("Apr\u0131l 5", []),
        ("5 APR\u0130L", []),
        ("39 may 2023-99", [(2023, 5, 0)]),
    ],
)
def test_dates_in_a_query_are_read(query: str, dates: list[tuple[int, int, int]]) -> None:
    assert set(parse_query(query).dates) >= {DatePart(*date) for date in dates}
    assert bool(parse_query(query).dates) == bool(dates)


def test_a_turn_is_found_by_its_date() -> None:
    db = index_of("nothing of note")
    assert search(db, "2023-06-03") == [1]
    assert search(db, "what was on June 3rd?") == [1]
    assert search(db, "saturday") == [1]
    assert search(db, "3 of them") == []


@pytest.mark.parametrize("written", ["9 August", "August 9"])
def test_a_date_named_in_the_text_is_found(written: str) -> None:
    db = index_of("the flight is on 8 August", f"the flight is on {written}", "the flight is on August 8")
    assert search(db, "what flight leaves on August 9, 2025?")[0] == 2


def test_half_a_surrogate_pair_in_a_query_is_no_error() -> None:
    assert search(index_of("left right"), "left\ud800 \udfffright a\udc00b") == [1]


def test_questions_of_time_and_of_oneself_are_told_apart() -> None:
    assert parse_query("When did she go?").asks_when
    assert parse_query("what year was it").asks_when
    assert not parse_query("Who went?").asks_when
    assert parse_query("where are my keys").first_person
    assert not parse_query("the US holiday").first_person


def test_a_named_speaker_is_looked_for_among_names_only_when_something_else_is_asked() -> None:
    db = index_of("Thanks, Maria! The dog is fine.")
    add(db, 2, "I like it here", "Maria")
    assert search(db, "Maria and pottery", ("Maria", "John")) == [2]
    assert set(search(db, "Maria", ("Maria", "John"))) == {1, 2}
    assert set(search(db, "what did John tell Maria", ("Maria", "John"))) == {1, 2}


def test_a_time_outside_the_calendar_still_has_an_index_form() -> None:
    assert (
        evidence_fields("x", None, 2**63 - 1).time == evidence_fields("x", None, 0).time == "1970 january day1 thursday"
    )


def test_a_skill_is_found_by_title_topic_summary_content_name_and_keyword() -> None:
    fields = skill_fields(
        title="Deploy the site", topic="operations", summary="push and check", content="run make",
        name="runtime_skill__deploy_site", keywords=("nginx",), at_us=0,
    )  # fmt: skip
    db = index_of()
    db.execute("INSERT INTO recall_index(rowid, text, names, time, scope) VALUES (1, ?, ?, ?, 's1')", fields)
    for query in ("deployed", "operation", "pushing", "make", "runtime_skill__deploy_site", "nginx"):
        assert search(db, query) == [1]


def test_plain_ascii_is_indexed_as_it_is() -> None:
    assert evidence_fields("Hello, World", "Ann", JUNE_3_2023) == ("Hello, World", "Ann", "2023 june day3 saturday")
