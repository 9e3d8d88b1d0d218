"""What a skill may say of itself: front matter in all its forms, sections, the other format, and hostile input."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beetle.contracts.errors import InvalidRequest
from beetle.domain import skill_document
from beetle.domain.skill_document import Document, Section
from beetle.runtime.host.skill_documents import document_of
from tests.registry.conftest import BACKUP

HEAD = "---\nname: a\ndescription: b\n"


def markdown(front: str, body: str = "") -> Document:
    return document_of(f"---\n{front}\n---\n{body}", "markdown")


def test_front_matter_is_read_whole() -> None:
    found = document_of(BACKUP, "markdown")
    assert found._replace(sections=()) == Document(
        1, "Nightly backup", "Copy the store each night.", ("ops", "Storage"), ("backup", "restore drill"),
        ("It needs twice the store's size.",), "", (),
    )  # fmt: skip
    assert found.sections == (
        Section(1, "Nightly backup", "Begin with the small stores."), Section(2, "Steps", "1. Copy it."),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("front", "tags"),
    [
        ("tags: [a, 'b c', \"d\"]", ("a", "b c", "d")),
        ("tags:\n- a\n- b", ("a", "b")),
        ("tags: a, b , ,c", ("a", "b", "c")),
        ("tags: one", ("one",)),
        ("tags: [A, a, ' a ', b]", ("A", "b")),
        ("tags: [1, 2.5, yes, ~, 2026-01-01]", ("1", "2.5", "yes", "2026-01-01")),
        ("tags: []", ()),
        ("tags:", ()),
        ("license: MIT\nmeta: {tags: [x], deep: [{a: b}]}\ntags: [a]", ("a",)),
    ],
)
def test_lists_are_read_in_every_form_that_yaml_has(front: str, tags: tuple[str, ...]) -> None:
    assert markdown(f"name: a\ndescription: b\n{front}").tags == tags


def test_windows_line_ends_a_byte_order_mark_and_folded_texts() -> None:
    found = document_of(
        "\ufeff---\r\nname: a\r\ndescription: >\r\n  two\r\n  lines\r\n---\r\n# H\r\n\r\ntext\r\n", "markdown"
    )
    assert (found.name, found.description, found.sections) == ("a", "two lines", (Section(1, "H", "text"),))


def test_without_front_matter_the_first_heading_names_it_and_the_text_before_describes_it() -> None:
    found = document_of("What it is for.\n\n# Title\n\nhow", "markdown")
    assert (found.name, found.description, found.intro) == ("Title", "What it is for.", "What it is for.")


def test_headings_inside_fences_are_text_and_a_text_without_headings_is_one_section() -> None:
    body = "# A\n```sh\n# a comment\n~~~\n```\n## B ##\n  ~~~~\n# no\n~~~\n~~~~\n####### seven\n#C"
    found = markdown("name: a\ndescription: b", body)
    assert [(each.level, each.heading) for each in found.sections] == [(1, "A"), (2, "B"), (1, "C")]
    assert markdown("name: a\ndescription: b", "\n\nonly text\n").sections == (Section(1, "Instructions", "only text"),)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (HEAD + "x: &a [1]\ny: *a\n---\n", "an anchor or an alias"),
        (HEAD + "a: &a [x,x]\nb: &b [*a,*a]\nc: &c [*b,*b]\n---\n", "an anchor or an alias"),
        (HEAD + "x: !!python/object/apply:os.system [ls]\n---\n", "a tag"),
        (HEAD + "<<: {name: c}\nname: d\n---\n", "'name' stands twice"),
        (HEAD + "x: " + "[" * 200 + "\n---\n", "brackets"),
        (HEAD + "x:\n" + "".join(" " * n + "- \n" for n in range(1, 40)) + "---\n", "nested deeper than 8"),
        (HEAD + "x:" + "\n" + "- a\n" * 4000 + "---\n", "parts"),
        (HEAD + "x: " + "y" * 20_000 + "\n---\n", "longer than 16,384 bytes"),
        (HEAD + "tags: {a: b}\n---\n", "tags is a mapping"),
        (HEAD + "tags: [[a]]\n---\n", "neither a text nor a list"),
        ("---\nname: [a]\ndescription: b\n---\n", "name is a list"),
        ("---\n- name\n---\n", "not a mapping"),
        ("---\nname: 'a\n---\n", "not YAML, line 3"),
        ("---\nname: a\nschema_version: one\ndescription: b\n---\n", "schema_version is not a whole number"),
        ("---\nname: a\nschema_version: 0\ndescription: b\n---\n", "schema_version is not between"),
        ("---\nname: a\n---\n# Title", "no description"),
        ("# Title\n\ntext", "no description"),
        ("---\ndescription: b\n---\ntext", "no name"),
        ("---\nname: \"a\\u202eb\"\ndescription: b\n---\n", "name holds a character"),
        ("---\nname: \"a\\x1b[2J\"\ndescription: b\n---\n", "name holds a character"),
        ("---\nname: a\ndescription: \"b\\u2066c\"\n---\n", "description holds a character"),
        ("---\nname: a\ndescription: b\ntags: [\"a\\nb\"]\n---\n", "tags holds a character"),
        ("---\nname: " + "x" * 257 + "\ndescription: b\n---\n", "name is longer than 256"),
        ("---\nname: a\ndescription: b\ntags: [" + ",".join(map(str, range(65))) + "]\n---\n", "more than 64 tags"),
        ("a\x00b", "NUL"),
    ],
)  # fmt: skip
def test_a_skill_that_cannot_be_taken_is_refused_with_what_to_do(content: str, said: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        document_of(content, "markdown")
    assert said in caught.value.message
    assert caught.value.hint and caught.value.details["path"] == "$.args.content"


@pytest.mark.parametrize(
    ("content", "path"),
    [
        ("[]", "$.args.content"),
        ('{"name": "a", "name": "b", "description": "c"}', "$.args.content"),
        ('{"name": 5}', "$.args.content.name"),
        ('{"name": "a", "description": "b", "sections": [{"level": 7, "heading": "h"}]}',
         "$.args.content.sections[0].level"),
        ('{"name": "a", "description": "b", "x": ' + "[" * 100_000 + "]" * 100_000 + "}", "$.args.content"),
        ('{"name": "a", "description": " "}', "$.args.content"),
        ("{", "$.args.content"),
    ],
)  # fmt: skip
def test_json_that_cannot_be_taken_is_refused_by_its_place(content: str, path: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        document_of(content, "json")
    assert caught.value.details["path"] == path


LINE = st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp", "Cf", "Cn"]), min_size=1, max_size=20).map(
    lambda text: " ".join(text.split()) or "x"
)
TAGS = st.lists(LINE, max_size=3)


@settings(deadline=None, max_examples=40, derandomize=True)
@given(LINE, LINE, TAGS, TAGS, st.lists(st.tuples(st.integers(1, 6), LINE, LINE), max_size=4))
def test_both_formats_say_the_same(
    name: str, description: str, tags: list[str], warnings: list[str], sections: list[tuple[int, str, str]]
) -> None:
    given_ = {
        "name": name, "description": description, "tags": tags, "warnings": warnings,
        "sections": [{"level": level, "heading": f"h {head}", "body": f"b {body}"} for level, head, body in sections],
    }  # fmt: skip
    document = document_of(json.dumps(given_), "json")
    shown = skill_document.to_markdown(document)
    again = document_of(shown, "markdown")
    assert again._replace(sections=()) == document._replace(sections=())
    assert [each.level for each in again.sections] == [each.level for each in document.sections]
    assert document_of(skill_document.to_json(again), "json") == again


def test_a_long_line_takes_no_longer_than_its_length() -> None:
    """A quadratic step would take hours here."""
    for line in ("# x" + " " * 900_000 + "y", "#" + " #" * 450_000, "---" + " " * 900_000 + "x", "`" * 900_000):
        assert len(document_of(f"{HEAD}---\n{line}", "markdown").sections) == 1


@pytest.mark.parametrize(
    ("name", "skill_id"),
    [
        ("Nightly Backup!", "nightly-backup"),
        ("../../etc/passwd", "etc-passwd"),
        ("  a -- b  ", "a-b"),
        ("Größe", "gr-e"),
        ("x" * 200, "x" * 128),
    ],
)
def test_a_name_makes_an_id_that_is_no_path(name: str, skill_id: str) -> None:
    assert skill_document.id_of_name(name) == skill_id


def test_names_without_ascii_letters_have_ids_of_their_own() -> None:
    first, second = skill_document.id_of_name("備份"), skill_document.id_of_name("还原")
    assert first != second
    assert skill_document.normal_id(first) == first
