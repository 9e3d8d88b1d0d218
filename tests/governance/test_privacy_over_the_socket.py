"""The same matrix for an operator at a real daemon: what `beetle --json` prints, what errors say, and the log."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.governance import exports as exported
from tests.governance.material import ASKERS, STAGES, Store
from tests.governance.test_privacy_matrix import cells, words_in
from tests.running import ROOT, Daemon

EACH_ONCE = 200
"""Requests longer than this ask for every word at once; the recalls of single words are for the matrix in process."""


@pytest.mark.parametrize("stage", STAGES)
def test_json_errors_and_the_daemon_s_log_show_what_the_contract_says(
    stage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path, stage)
    asked_for = list(cells(store, ASKERS["operator"]))
    store.close()
    monkeypatch.setenv("BM_AGENT_SKILL_DIRS", str(store.skills))
    with tempfile.TemporaryDirectory(prefix="bp-") as folder:
        for file in tmp_path.glob("material.db*"):
            shutil.copy(file, Path(folder) / file.name.replace("material.db", "b.db"))
        daemon = Daemon(profile="standalone", folder=folder)
        command = [sys.executable, "-m", "beetle", "--socket", daemon.socket, "--json", "--owner", "owner-one", "call"]
        wrong: list[str] = []
        with daemon:
            for cell in asked_for:
                args = json.dumps(cell.args, default=lambda value: base64.b64encode(value).decode())
                if cell.op == "memory.recall" and len(args) < EACH_ONCE:
                    continue
                asked = [*command, cell.op, "-"]
                done = subprocess.run(asked, cwd=ROOT, input=args, capture_output=True, text=True, timeout=60)
                if words_in(done.stderr):
                    wrong.append(f"{cell.op} {args[:120]}: stderr says {words_in(done.stderr)}")
                told = words_in(done.stdout)
                if done.returncode == 0:
                    told |= words_in(exported.opened(json.loads(done.stdout)))
                if (done.returncode != 0) != (cell.shows is None) or told - cell.besides != (
                    (cell.shows or set()) - cell.besides
                ):
                    wrong.append(f"{cell.op} {args[:120]}: {told}, not {cell.shows}; {done.stderr}")
        assert wrong == [], "\n".join(wrong)
        assert words_in((Path(folder) / "log").read_text()) == set()
