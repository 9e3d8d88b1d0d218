from __future__ import annotations

import re
from urllib.parse import unquote_to_bytes

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beetle.contracts.refs import SHAPES, Ref, format_ref, parse_ref

MODEST = settings(deadline=None, max_examples=150)
segments = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=20)
SEGMENT = re.compile(r"(?:[A-Za-z0-9._~-]|%[0-9A-F]{2})+")


@st.composite
def refs(draw: st.DrawFn) -> Ref:
    plane = draw(st.sampled_from(sorted(SHAPES)))
    least, most = SHAPES[plane]
    return Ref(plane, tuple(draw(st.lists(segments, min_size=least, max_size=most))))


@MODEST
@given(refs())
def test_a_ref_is_read_back_as_it_was_written(ref: Ref) -> None:
    assert parse_ref(str(ref)) == ref
    assert str(ref) == format_ref(ref.plane, *ref.segments)


@MODEST
@given(refs())
def test_segments_are_percent_encoded_utf8_and_unreserved_characters_stay(ref: Ref) -> None:
    plane, _, rest = str(ref).partition(":")
    assert plane == ref.plane
    parts = rest.split("/")
    assert all(SEGMENT.fullmatch(part) for part in parts)
    assert tuple(unquote_to_bytes(part).decode() for part in parts) == ref.segments
    plain = [segment for segment in ref.segments if re.fullmatch(r"[A-Za-z0-9._~-]+", segment)]
    assert all(segment in parts for segment in plain)


@MODEST
@given(st.text(max_size=60))
def test_any_text_is_a_ref_or_none(text: str) -> None:
    found = parse_ref(text)
    if found is not None:
        assert parse_ref(str(found)) == found
        assert text.partition(":")[0] == found.plane


@pytest.mark.parametrize(
    ("text", "segments"),
    [
        ("evidence:local/c1/t1", ("local", "c1", "t1")),
        ("evidence:local/c%2F1/t%201/m", ("local", "c/1", "t 1", "m")),
        ("evidence:a/b/%E6%97%A5", ("a", "b", "日")),
        ("procedural:runtime_skill__x", ("runtime_skill__x",)),
        ("procedural:runtime_skill__x/3", ("runtime_skill__x", "3")),
        ("thoughts:chain/0", ("chain", "0")),
        ("agent_skill:mount/name", ("mount", "name")),
    ],
)
def test_refs_of_the_wire_page_are_read(text: str, segments: tuple[str, ...]) -> None:
    assert parse_ref(text) == Ref(text.partition(":")[0], segments)


@pytest.mark.parametrize(
    "text",
    [
        "", ":", "evidence", "evidence:", "evidence:a/b", "evidence:a/b/c/d/e", "evidence:a//c", "evidence:/a/b",
        "evidence:a/b/", "nothing:a", "Evidence:a/b/c", " evidence:a/b/c", "evidence:a/b/é", "evidence:a/b/%FF",
        "thoughts:chain", "chunks:a/b", "https://example.org/a/b", "see evidence:a/b/c",
    ],
)  # fmt: skip
def test_what_has_another_shape_is_no_ref(text: str) -> None:
    assert parse_ref(text) is None
