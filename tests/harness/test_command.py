"""`beetle harness run` and `beetle evolve …` at a terminal."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from tests import forked
from tests.harness.recorded import RECALL, WRITE, fixture, works, write

ROOT = Path(__file__).parents[2]


def beetle(folder: Path, *words: str, text: str = "") -> subprocess.CompletedProcess[str]:
    typed = [f"--store={folder / 'beetle.db'}", "--profile=dev-full", *words]
    env = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "XDG_RUNTIME_DIR": str(folder), "PYTHONPATH": str(ROOT)}
    return forked.run_text(typed, given=text, cwd=folder, timeout=120, env=env)


def test_a_run_that_passes_ends_with_0_and_one_that_does_not_with_9(tmp_path: Path) -> None:
    (tmp_path / "fixtures").mkdir()
    wrong = fixture({**RECALL, "expect": [{"check": "hit", "says": "a flying whale"}]}, name="failing")
    write(tmp_path / "fixtures", works(), wrong)
    # A folder as it is typed: relative to where one stands.
    words = ("harness", "run", "--folder", "fixtures", "--suite", "memory", "--backends", "in-memory")
    good = beetle(tmp_path, *words, "--fixtures", "small")
    assert (good.returncode, good.stderr) == (0, ""), good.stderr
    assert "Every gate passed." in good.stdout
    bad = beetle(tmp_path, *words, "--fixtures", "small", "--fixtures", "failing")
    assert bad.returncode == 9
    assert "failing on in-memory, memory.recall at $.steps[0].expect[0]:" in bad.stdout
    assert "Not every gate passed." in bad.stdout
    told = beetle(tmp_path, "--json", *words, "--fixtures", "failing")
    assert told.returncode == 9 and json.loads(told.stdout)["passed"] is False


def test_a_broken_fixture_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "odd.json").write_text("{")
    done = beetle(tmp_path, "harness", "run", "--folder", str(tmp_path))
    assert done.returncode == 2
    assert done.stderr.startswith("beetle: invalid_request: ") and "odd.json" in done.stderr


def test_a_proposal_is_typed_looked_at_and_submitted(tmp_path: Path) -> None:
    assert beetle(tmp_path, "call", "memory.write", json.dumps(WRITE["args"])).returncode == 0
    (tmp_path / "p.json").write_text(json.dumps([
        {"proposal_id": "p1", "kind": "skill_edit", "target": "pump", "rationale": "it went on", "change":
            {"procedure": "1. Pull the plug."}}]))  # fmt: skip
    made = beetle(tmp_path, "evolve", "propose", "--proposals", "@p.json")
    assert made.returncode == 0 and "proposed" in made.stdout, made.stderr
    assert "it went on" in beetle(tmp_path, "evolve", "list").stdout
    shown = beetle(tmp_path, "evolve", "preview", "p1")
    assert "+1. Pull the plug." in shown.stdout and "changes (revised)" in shown.stdout
    done = beetle(tmp_path, "evolve", "submit", "--proposal-ids", "p1")
    assert done.returncode == 0 and "submitted" in done.stdout, done.stderr
    assert beetle(tmp_path, "evolve", "submit", "--proposal-ids", "p1").returncode == 4
