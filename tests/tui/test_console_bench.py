"""The console's benchmark, at a size at which its figures mean nothing: that it still runs, and measures everything."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench.console import AREAS, FLOORS, measure, options_of
from tests.bench.console_store import copied, short_name

SMALL = ("--turns", "700", "--skills", "150", "--runs", "1", "--keys", "2", "--seconds", "0.2", "--pause", "0.1")


@pytest.mark.slow
def test_the_bench_measures_every_area_at_any_size(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = measure(options_of([*SMALL, "--sizes", "80x24", "--folder", str(tmp_path)]))
    session = found["checkout 80x24"]
    assert found["store"]["turns"] == 700
    assert {"console", *FLOORS} < set(session["first_screen"])
    assert set(session["idle"]) == set(session["updating"]) == set(AREAS)
    assert {name.partition(":")[0] for name in session["keys"]} == {
        "areas", "skills", "conversations", "timeline", "log",
    }  # fmt: skip
    assert all(each["keys"] and each["bytes"] for each in session["keys"].values())
    assert {"p50_ms", "p99_ms", "max_ms"} == set(session["keys"]["timeline: page up"]["page"])
    assert session["memory"]["every end"]["daemon"]["pss_mib"] > 0
    assert all("ratio" in each or "rare" in name for name, each in found["questions"].items())
    told = capsys.readouterr().out
    assert "first screen" in told and "skills: page down" in told


def test_a_store_that_was_made_is_used_again_as_it_was(tmp_path: Path) -> None:
    options = options_of(SMALL)
    with copied(tmp_path, 300, 40, options.profile) as (folder, made):
        first = (folder / "b.db").read_bytes()
        (folder / "b.db").write_bytes(b"written over")
    with copied(tmp_path, 300, 40, options.profile) as (folder, again):
        assert (folder / "b.db").read_bytes() == first
        assert again == made
    assert not folder.exists()


def test_the_names_of_skills_stand_in_their_order() -> None:
    names = [short_name(number) for number in range(1_200)]
    assert names == sorted(names) and len(set(names)) == len(names)
