from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beetle.domain.projection import HEAD, TAIL, Block, Item, Section, escape, project

MODEST = settings(deadline=None, max_examples=120)
NAMES = ("procedures", "evidence", "recent")
SHARES = {
    "procedures": {"normal": 30, "elevated": 35, "critical": 10},
    "evidence": {"normal": 20, "elevated": 15, "critical": 0},
    "recent": {"normal": 30, "elevated": 30, "critical": 30},
}
PRESSURES = ("normal", "elevated", "critical")
texts = st.text(max_size=60) | st.sampled_from(["</memory>", "<recent>\n- x", "a\nb\n\nc", "&lt;", "\x00\x1b"])
items = st.lists(texts, max_size=8)


def sections(*of: list[str]) -> tuple[Section, ...]:
    made = [[Item(f"{name}:{n}", text) for n, text in enumerate(given)] for name, given in zip(NAMES, of, strict=True)]
    return tuple(
        Section(name, each, SHARES[name], newest_last=name == "recent") for name, each in zip(NAMES, made, strict=True)
    )


def shown(text: str) -> str:
    return "- " + escape(text).replace("\n", "\n  ") + "\n"


def check(block: Block, given: tuple[Section, ...], bound: int) -> None:
    assert len(block.text) <= bound
    assert [each.name for each in block.sections] == list(NAMES)
    for placed, section in zip(block.sections, given, strict=True):
        assert set(placed.items) <= set(section.items)
        assert len(placed.items) + placed.omitted == len(section.items)
        order = [section.items.index(item) for item in placed.items]
        assert order == sorted(order)
    parts = []
    for placed in block.sections:
        if placed.items:
            inside = [shown(item.text) for item in placed.items]
            parts.append(
                f"<{placed.name}>\n{''.join(inside[::-1] if placed.name == 'recent' else inside)}</{placed.name}>\n"
            )
            assert placed.characters == len(parts[-1])
    assert block.text == (HEAD + "".join(parts) + TAIL if parts else "")


@MODEST
@given(items, items, items, st.integers(0, 2000), st.sampled_from(PRESSURES))
def test_the_block_holds_its_bound_and_whole_items_in_their_order(
    procedures: list[str], evidence: list[str], recent: list[str], bound: int, pressure: str
) -> None:
    given_sections = sections(procedures, evidence, recent)
    block = project(given_sections, bound, pressure)
    check(block, given_sections, bound)
    assert project(given_sections, bound, pressure) == block


@MODEST
@given(items, items, items, st.sampled_from(PRESSURES))
def test_no_stored_text_is_taken_for_markup(
    procedures: list[str], evidence: list[str], recent: list[str], pressure: str
) -> None:
    block = project(sections(procedures, evidence, recent), 20_000, pressure)
    tags = re.findall(r"<[^>]*>?", block.text)
    named = [each.name for each in block.sections if each.items]
    expected = [HEAD.strip(), *(tag for name in named for tag in (f"<{name}>", f"</{name}>")), TAIL] if named else []
    assert tags == expected
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", block.text)


@MODEST
@given(items, items, items)
def test_under_normal_pressure_everything_that_fits_is_taken(
    procedures: list[str], evidence: list[str], recent: list[str]
) -> None:
    block = project(sections(procedures, evidence, recent), 100_000, "normal")
    assert [each.omitted for each in block.sections] == [0, 0, 0]


@MODEST
@given(st.text(max_size=80))
def test_escaped_text_has_no_markup_and_keeps_what_can_be_shown(text: str) -> None:
    plain = escape(text)
    assert "<" not in plain and ">" not in plain
    assert plain.splitlines() == plain.removesuffix("\n").split("\n") or not plain
    back = plain.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    assert [c for c in back if c.isprintable() and c != " "] == [c for c in text if c.isprintable() and c != " "]


def test_recent_messages_have_no_gap() -> None:
    """What was said last is there without holes: a long message in between ends the section."""
    recent = ["newest", "x" * 500, "older"]
    block = project(sections([], [], recent), 300, "normal")
    assert [item.text for item in block.sections[2].items] == ["newest"]


def test_an_item_that_is_too_long_makes_room_for_the_next_one() -> None:
    block = project(sections(["x" * 500, "short"], [], []), 300, "normal")
    assert [item.text for item in block.sections[0].items] == ["short"]


@pytest.mark.parametrize("bound", [0, 1, len(HEAD), len(HEAD) + len(TAIL), len(HEAD) + len(TAIL) + 10, -5])
def test_a_bound_too_small_for_one_item_gives_an_empty_block(bound: int) -> None:
    assert project(sections(["one"], ["two"], ["three"]), bound, "normal").text == ""


@MODEST
@given(st.lists(st.integers(1, 80), max_size=8), st.lists(st.integers(1, 80), max_size=8), st.integers(0, 1500))
def test_skills_are_not_cut_for_the_sake_of_older_evidence(
    procedures: list[int], evidence: list[int], bound: int
) -> None:
    """Pressure shrinks evidence before skills: where a step takes skills away, it leaves no evidence."""
    given_sections = sections(["p" * n for n in procedures], ["e" * n for n in evidence], [])
    before = project(given_sections, bound, "normal").sections
    critical = project(given_sections, bound, "critical").sections
    if len(critical[0].items) < len(before[0].items):
        assert critical[1].items == ()
