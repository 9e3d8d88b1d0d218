"""What a SKILL.md may say of itself, and what of it is not believed, expanded or run."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from beetle.runtime.host.front_matter import DESCRIPTION_CHARS, FRONT_MATTER_BYTES, FrontMatter, read_front_matter

MODEST = settings(deadline=None, max_examples=300)


def read(inner: str | bytes) -> object:
    text = inner.encode() if isinstance(inner, str) else inner
    return read_front_matter(b"---\n" + text + b"\n---\n# The skill\n")


@pytest.mark.parametrize(
    ("inner", "name", "description"),
    [
        ("name: pdf\ndescription: Rotate pages.", "pdf", "Rotate pages."),
        ("description: 'It''s for: pages'\nname: \"a b\"", "a b", "It's for: pages"),
        ("name: pdf\ndescription: >\n  Rotate\n  pages\n", "pdf", "Rotate pages"),
        ("name: pdf\ndescription: |\n  Rotate\n  pages\n", "pdf", "Rotate pages"),
        ("name: pdf\ndescription: x\nlicense: MIT\nmetadata: {version: 1.0, tags: [a, b]}\non: push\n7: x", "pdf", "x"),
        ("# a comment\nname: größe\ndescription: 大きさ 🪲", "größe", "大きさ 🪲"),
        ("name: 'null'\ndescription: 'true'", "null", "true"),
        ("name: pdf\r\ndescription: x\r", "pdf", "x"),
    ],
)
def test_name_and_description_are_read_from_plain_yaml(inner: str, name: str, description: str) -> None:
    assert read(inner) == FrontMatter(name, description)


def test_a_byte_order_mark_and_windows_line_ends_do_not_matter() -> None:
    assert read_front_matter(b"\xef\xbb\xbf---\r\nname: a\r\ndescription: b\r\n---\r\nc") == FrontMatter("a", "b")
    assert read_front_matter(b"--- \nname: a\ndescription: b\n---") == FrontMatter("a", "b")


@pytest.mark.parametrize(
    ("head", "problem"),
    [
        (b"", "no_front_matter"),
        (b"# A skill", "no_front_matter"),
        (b"---\nname: a\ndescription: b\n", "no_front_matter"),
        (b"\n---\nname: a\ndescription: b\n---\n", "no_front_matter"),
        (b"---\nname: a\ndescription: b\n--- x\n", "no_front_matter"),
        (b"---\nname: \xff\ndescription: b\n---\n", "not_utf8"),
        (b"---\nname: \xed\xa0\x80\ndescription: b\n---\n", "not_utf8"),
    ],
)
def test_a_file_without_its_front_matter_is_told_from_a_broken_one(head: bytes, problem: str) -> None:
    assert read_front_matter(head) == problem


@pytest.mark.parametrize(
    ("inner", "problem"),
    [
        ("description: b", "name_invalid"),
        ("name:\ndescription: b", "name_invalid"),
        ("name: 12\ndescription: b", "name_invalid"),
        ("name: true\ndescription: b", "name_invalid"),
        ("name: 2024-01-01\ndescription: b", "name_invalid"),
        ("name: [a]\ndescription: b", "name_invalid"),
        ("name: a/b\ndescription: b", "name_invalid"),
        (f"name: {'a' * 129}\ndescription: b", "name_invalid"),
        ('name: "a\\x1b[31m"\ndescription: b', "name_invalid"),
        ('name: "a\\ud800"\ndescription: b', "name_invalid"),
        ("name: a", "description_invalid"),
        ("name: a\ndescription: ''", "description_invalid"),
        ("name: a\ndescription: {b: c}", "description_invalid"),
        (f"name: a\ndescription: {'b' * (DESCRIPTION_CHARS + 1)}", "description_invalid"),
        ('name: a\ndescription: "b\\0"', "description_invalid"),
        ('name: a\ndescription: "b\\L c"', "description_invalid"),
    ],
)
def test_a_name_or_description_that_is_no_short_text_is_refused(inner: str, problem: str) -> None:
    assert read(inner) == problem


LAUGHS = "a: &a [x, x]\n" + "".join(f"{b}: &{b} [*{a}, *{a}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True))


@pytest.mark.parametrize(
    "inner",
    [
        LAUGHS + "name: a\ndescription: b",
        "name: &x a\ndescription: *x",
        "base: &b {k: v}\n<<: *b\nname: a\ndescription: b",
        "name: !!python/object/apply:os.system ['true']\ndescription: b",
        "name: !x a\ndescription: b",
        "!!map {name: a, description: b}",
        "name: a\nname: b\ndescription: c",
        "- name: a\n- description: b",
        "just a text",
        "",
        "? [name]\n: a\ndescription: b",
        "name: a\ndescription: b\n...\nname: c",
        "name: a\ndescription: b: c",
        "name: a\n\tdescription: b",
        "name: @a\ndescription: b",
        'name: "a',
        'name: "\\UFFFFFFFF"\ndescription: b',
        "%YAML " + "9" * 5000 + ".1\n",
        "name: a\ndescription: b\nx: " + "[" * 9 + "]" * 9,
        "name: a\ndescription: b\nx: " + "[" * 4000,
        "name: a\ndescription: b\nx: " + "{a: " * 1500,
        "name: a\ndescription: b\nx:\n" + "".join(f"{' ' * n}- \n" for n in range(60)),
        "name: a\ndescription: b\n" + "".join(f"k{n}: v\n" for n in range(900)),
        "name: a\x00\ndescription: b",
    ],
    ids=range(24),
)
def test_yaml_that_is_more_than_a_plain_mapping_is_refused(inner: str) -> None:
    assert read(inner) == "front_matter_invalid"


@MODEST
@given(st.binary(max_size=400))
def test_any_bytes_give_an_answer(inner: bytes) -> None:
    found = read(inner)
    assert isinstance(found, FrontMatter | str)


yamlish = st.text(st.sampled_from("ab:-[]{}#&*!|>'\"%@`,?\n \t\\Ux0né\x85\u2028"), max_size=120)


@MODEST
@given(yamlish)
def test_any_yaml_like_text_gives_an_answer(inner: str) -> None:
    assert isinstance(read(inner), FrontMatter | str)
    assert isinstance(read(f"name: a\ndescription: b\nx: {inner}"), FrontMatter | str)


line = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1, max_size=60)


@MODEST
@given(line, line)
def test_what_a_yaml_writer_writes_is_read_as_it_was_meant(name: str, description: str) -> None:
    wanted = FrontMatter(" ".join(name.split()), " ".join(description.split()))
    inner = yaml.safe_dump({"name": name, "description": description}, allow_unicode=True)
    if wanted.name and wanted.description and "/" not in name:
        assert read(inner) == wanted


def test_the_front_matter_must_end_where_reading_does() -> None:
    long = b"---\nname: a\ndescription: b\nx: |\n" + b"  y\n" * (FRONT_MATTER_BYTES // 4) + b"---\n"
    assert read_front_matter(long[:FRONT_MATTER_BYTES]) == "no_front_matter"
