"""Benchmarks beside others and at size, so small that their figures mean nothing: they run and tell everything."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests import forked
from tests.bench import plots, scale, store_bytes
from tests.bench.peers import __main__ as peers

STANDALONE = "profile-linux-device-standalone-memory"
PLAIN = ("space", "conversation", "project", "floor")
"""What scale measures of recall while nobody writes."""


def test_scale_tells_every_row_at_each_size(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = scale.options_of(
        ["--sizes", "300", "--recalls", "5", "--writers", "1", "--quiet", "0", "--keep", str(tmp_path)]
    )
    options.daemon = forked.Daemon
    found = scale.measure(options)
    scale.show(found["results"])
    (row,) = json.loads(json.dumps(found))["results"]
    assert row["turns"] == 300
    for each in (*PLAIN, "beside"):
        assert 0 < row[each]["p50_ms"] <= row[each]["p99_ms"]
    assert row["beside"]["writers"] == 1 and row["beside"]["turns_s"] > 0
    assert row["rss_recalled_mib"] > 0 and row["store_of_text"] > 1
    told = capsys.readouterr().out
    assert all(title in told for title, _ in scale.ROWS)
    (kept,) = tmp_path.iterdir()
    before = (kept / "b.db").read_bytes()
    assert scale.Kept(tmp_path, options.profile, []).filled(300, 0) == kept
    assert (kept / "b.db").read_bytes() == before, "it is used again as it is"


def test_store_bytes_tells_the_trees_of_each_length() -> None:
    short, long = (
        store_bytes.taken(["a line of words", "another one"], length, 300, STANDALONE) for length in (50, 900)
    )
    for each, length in ((short, 50), (long, 900)):
        assert length <= each.text < length + 20
        assert each.kinds["text"] > each.text and sum(each.kinds.values()) == pytest.approx(each.store)
    assert long.store / long.text < short.store / short.text
    assert long.kinds["turn"] == pytest.approx(short.kinds["turn"], rel=0.1)


def test_peers_measures_the_floor_alone(capsys: pytest.CaptureFixture[str]) -> None:
    words = "--sizes 60 --only index,chromadb --rounds 2 --turns 5 --questions 5 --starts 1"
    found = peers.measure(peers.options_of(words.split()))
    (result,) = found["results"]
    row = result["stores"]["index"]
    assert row["turns_s"] > 0 and 0 < row["p50_ms"] <= row["p99_ms"] and row["disk_bytes_a_turn"] > 0
    assert row["found"] > 0.5, "a turn is found by its own words"
    facts = found["stores"]["index"]
    assert facts["processes"] == "several" and facts.get("syncs_a_turn", 1) >= 1
    assert "not installed" in found["left_out"]["chromadb"]
    assert "chromadb is left out" in capsys.readouterr().out


def shares(p50: float) -> dict[str, float]:
    return {"p50_ms": p50, "p99_ms": 3 * p50}


def results(tmp_path: Path) -> list[str]:
    """Files as both benchmarks write them."""
    every = [
        {
            "turns": turns,
            **{name: shares(turns / 5_000 + place) for place, name in enumerate(PLAIN, 1)},
            "beside": {**shares(9), "writers": 8},
        }
        for turns in (1_000, 100_000)
    ]
    store = {"index": shares(0.2), "beetle": shares(2), "row": {"turns_s": 5_000}}
    scaled = {"bench": "scale", "profile": "profile-<small>", "results": every}
    beside = {"bench": "peers", "results": [{"turns": 1_000, "stores": store}]}
    files = [tmp_path / "scale.json", tmp_path / "peers.json"]
    for file, found in zip(files, (scaled, beside), strict=True):
        file.write_text(json.dumps(found))
    return [str(file) for file in files]


def test_plots_draw_the_same_picture_of_the_same_files(tmp_path: Path) -> None:
    files = results(tmp_path)
    pictures = [tmp_path / "one.svg", tmp_path / "two.svg"]
    for each in pictures:
        assert plots.main([*files, "--to", str(each)]) == 0
    assert pictures[0].read_bytes() == pictures[1].read_bytes()
    texts = [each.text for each in ElementTree.parse(pictures[0]).iter("{http://www.w3.org/2000/svg}text")]
    assert {"turns in the store", "milliseconds", "p50", "p99", "1,000", "100,000"} <= set(texts)
    assert {"Recall over the socket, profile-<small>", "whole space, beside 8 writers", "raw SQLite and FTS5"} <= set(
        texts
    )
    assert "prefers-color-scheme: dark" in pictures[0].read_text()
    drawn = pictures[0].read_text()
    assert drawn.count('class="line p99_ms"') == len(PLAIN) + 1 + 2 + 2, "each line, and the key of each panel"


def test_plots_refuse_another_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "other.json").write_text('{"bench": "start"}')
    with pytest.raises(SystemExit):
        plots.main([str(tmp_path / "other.json"), "--to", str(tmp_path / "x.svg")])
    assert "tests.bench.scale or tests.bench.peers" in capsys.readouterr().err
    assert not (tmp_path / "x.svg").exists()
