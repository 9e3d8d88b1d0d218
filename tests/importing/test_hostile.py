"""Files that somebody broke, or made to break a reader: each costs its own line or item, at its place."""

from __future__ import annotations

import io
import json
import os
import random
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from beetle import MemoryRuntime
from beetle.contracts.errors import InvalidRequest
from beetle.importing import elements, lines
from beetle.importing.formats import READERS
from beetle.importing.items import Format, Problem, Source

SAMPLES = Path(__file__).parent / "samples"
GOOD = b'{"conversation":"c","turn_id":"%d","at":"2026-01-01T00:00:00Z","messages":[{"role":"user","content":"x"}]}'
BAD_LINES = {
    b'{"conversation":"c","messages":[': "truncated",
    b'{"conversation":"c","later":' + b"[" * 100_000: "deep",
    b'{"conversation":"c","role":"user","content":"\xff\xfe"}': "UTF-8",
    b'{"conversation":"c","role":"user","content":"a\x00b"}': "JSON",
    b'{"conversation":"c","role":"user","content":"\\ud800"}': "truncated",
    b'{"conversation":"c","role":"user","content":7}': "content",
    b'{"conversation":"c","role":"emperor","content":"x"}': "role",
    b'{"conversation":"c","role":"user","content":"x","at":"yesterday"}': "time",
    b'{"conversation":"c","role":"user","content":"x","turn_id":"a\\u0000b"}': "turn_id",
    b'{"conversation":7,"role":"user","content":"x"}': "conversation",
    b'{"conversation":"c"}': "needs",
    b'[{"role":"user"}]': "map",
    b"7": "map",
}


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MemoryRuntime]:
    store = tmp_path_factory.mktemp("store") / "b.db"
    with MemoryRuntime.open(str(store), profile="compact") as opened:
        yield opened


def test_each_bad_line_is_told_with_its_number_and_the_others_are_taken_in(
    memory: MemoryRuntime, tmp_path: Path
) -> None:
    file = tmp_path / "turns.jsonl"
    written = [GOOD % 0]
    for number, line in enumerate(BAD_LINES, start=1):
        written += [line, GOOD % number]
    file.write_bytes(b"\r\n\r\n".join(written))
    report = memory.import_(file)
    # Every second line is empty.
    places = [f"line {4 * number + 3}" for number in range(len(BAD_LINES))]
    assert [each.place for each in report.problems] == places
    told = zip(report.problems, BAD_LINES.values(), strict=True)
    assert [(found.reason, words) for found, words in told if words not in found.reason] == []
    assert report.files[0].committed == len(BAD_LINES) + 1


def test_what_the_profile_has_no_room_for_is_told_and_the_rest_goes_in_smaller_batches(
    memory: MemoryRuntime, tmp_path: Path
) -> None:
    """The smallest profile: 64 KiB a message, 50 turns a commit, 256 KiB a frame."""
    record = json.dumps({"conversation": "long", "role": "user", "content": "%s"})
    file = tmp_path / "turns.jsonl"
    texts = ["ä" * 40_000, *(f"{number} " + "x" * 5_000 for number in range(120))]
    file.write_text("\n".join(record.replace("%s", text) for text in texts))
    report = memory.import_(file)
    assert [(each.place, each.reason) for each in report.problems] == [
        ("line 1", "a message is larger than 65,536 bytes")
    ]
    assert report.files[0].committed == 120


def test_a_turn_that_is_there_with_other_content_is_told_and_stays(memory: MemoryRuntime, tmp_path: Path) -> None:
    file = tmp_path / "turns.jsonl"
    line = json.dumps(
        {"conversation": "kept", "turn_id": "%d", "at": "2026-01-01T00:00:00Z", "role": "user", "content": "old"}
    )
    file.write_text("\n".join(line.replace("%d", str(number)) for number in range(5)))
    memory.import_(file)
    changed = line.replace("old", "new")
    file.write_text(
        "\n".join((changed if number in (1, 3) else line).replace("%d", str(number)) for number in range(6))
    )
    report = memory.import_(file)
    assert [each.place for each in report.problems] == ["line 2", "line 4"]
    assert (report.files[0].committed, report.files[0].unchanged) == (1, 3)


def test_what_is_no_regular_file_is_refused_before_anything_is_read(memory: MemoryRuntime, tmp_path: Path) -> None:
    good = tmp_path / "good.jsonl"
    good.write_bytes(GOOD.replace(b'"c"', b'"untouched"') % 0)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(good)
    (tmp_path / "unknown").write_text("nothing that is known\n")
    (tmp_path / "empty").write_bytes(b"")
    for name, words in (
        ("pipe", "named pipe"), ("link", "symbolic link"), ("missing", "no such file"), ("unknown", "no format"),
        ("empty", "no format"), ("nul\0", "NUL"),
    ):  # fmt: skip
        with pytest.raises(InvalidRequest, match=words):
            memory.import_(good, tmp_path / name)
    with pytest.raises(InvalidRequest, match="device"):
        memory.import_("/dev/zero")
    names = [each.conversation_id for each in memory.list_conversations().conversations]
    assert "untouched" not in names


def read(form: Format, data: bytes, layout: str) -> list[object]:
    return list(READERS[form](Source("file", "file", io.BytesIO(data), layout)))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", sorted(READERS))
def test_no_reader_raises_whatever_a_sample_becomes(name: Format) -> None:
    """Bytes changed, cut out and repeated, from fixed seeds."""
    files = [each for each in SAMPLES.rglob("*.*") if each.is_file() and ".obsidian" not in each.parts]
    own = name.replace("-", "_").split("_")[0].lower()
    chosen = [each for each in files if each.name.lower().startswith((own, "turns", "tea"))]
    for number in range(25):
        dice = random.Random(f"{name} {number}")
        data = bytearray(dice.choice(chosen).read_bytes())
        for _ in range(dice.randrange(1, 8)):
            at = dice.randrange(len(data))
            match dice.randrange(4):
                case 0:
                    data[at] = dice.randrange(256)
                case 1:
                    del data[at : at + dice.randrange(1, 40)]
                case 2:
                    data[at:at] = data[at : at + 30] * dice.randrange(1, 4)
                case _:
                    data[at:at] = dice.choice((b"[", b"]", b"{", b'"', b"\\", b"null", b"\n", b"[[", b"- [", b"#"))
        for layout in ("lines", "value"):
            read(name, bytes(data), layout)


def test_a_large_value_is_read_item_by_item_in_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elements, "CHUNK", 4096)
    monkeypatch.setattr(elements, "ITEM_BYTES", 16_384)
    small = b'[%s,{"bomb":"%s"},%s,"%s",%s{"last":"\\\\\\""}]'
    data = small % (b'{"a":1}', b"x" * 200_000, b"[" * 5000 + b"]" * 5000, b'\\"' * 100_000, b'{"b":"]}"},' * 4_000)
    stream = io.BytesIO(data)
    tracemalloc.start()
    kept: list[elements.Element | Problem] = []
    count = 0
    for found in elements.elements(Source("file", "file", stream)):
        count += 1
        if isinstance(found, Problem) or found.data not in (b'{"b":"]}"}',):
            kept.append(found)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    shown = [str(each.place) if isinstance(each, Problem) else each.data for each in kept]
    assert shown == [b'{"a":1}', "item 2", "item 3", "item 4", b'{"last":"\\\\\\""}']
    assert count == 4_005 and peak < 300_000


def test_a_line_without_an_end_is_passed_over_in_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "LINE_BYTES", 1000)
    monkeypatch.setattr(lines, "SKIP_BYTES", 1000)
    found = read("jsonl", b"x" * 200_000 + b"\n" + GOOD % 1, "lines")
    assert isinstance(found[0], Problem) and str(found[0].place) == "line 1" and len(found) == 2


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"[1,", "ends inside"), (b"[1 2]", "comma"), (b'{"a"}', "colon"), (b"[1]x", "behind the end"),
        (b'{"a":1,}', "a name"), (b'[{"a":"x', "ends inside"), (b"[1,,2]", "a value"),
    ],
)  # fmt: skip
def test_a_value_that_breaks_off_gives_what_came_before(data: bytes, reason: str) -> None:
    *_, last = elements.elements(Source("file", "file", io.BytesIO(data)))
    assert isinstance(last, Problem) and reason in last.reason


def test_values_are_cut_as_json_reads_them(monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(40):
        dice = random.Random(number)

        def value(depth: int, dice: random.Random = dice) -> object:
            sort = dice.randrange(6)
            if sort == 0 and depth:
                return [value(depth - 1) for _ in range(dice.randrange(4))]
            if sort == 1 and depth:
                return {dice.choice('ab"\\{'): value(depth - 1) for _ in range(3)}
            return dice.choice(['x"y\\', "[[{", 1, None, -2.5, True, "é"])

        wanted = [value(3) for _ in range(5)]
        monkeypatch.setattr(elements, "CHUNK", dice.randrange(1, 9))
        text = json.dumps(wanted, indent=dice.choice((None, 1)), ensure_ascii=dice.choice((True, False)))
        found = list(elements.elements(Source("file", "file", io.BytesIO(text.encode()))))
        assert [json.loads(each.data) for each in found if not isinstance(each, Problem)] == wanted


def test_a_conversation_of_which_all_was_refused_is_not_listed(memory: MemoryRuntime, tmp_path: Path) -> None:
    file = tmp_path / "mem0.json"
    given = [
        {"id": f"m{n}", "memory": "She likes oolong.", "user_id": name} for n, name in enumerate(("ri\nta", "eve"))
    ]
    file.write_text(json.dumps({"results": given}))
    report = memory.import_(file, format="mem0")
    assert [each.place for each in report.problems] == ["item 1"]
    assert report.files[0].conversations == ["mem0/eve"]
    again = memory.import_(file, format="mem0").files[0]
    assert (again.unchanged, again.conversations) == (1, ["mem0/eve"])
