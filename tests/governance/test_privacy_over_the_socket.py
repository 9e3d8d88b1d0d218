"""The same matrix for an operator at a real daemon: what `beetle --json` prints, what errors say, and the log."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.governance.material import ASKERS, STAGES, Store
from tests.governance.test_privacy_matrix import cells, short, words_in
from tests.running import ROOT, Daemon

EACH_ONCE = 200
"""Requests longer than this ask for every word at once; the recalls of single words are for the matrix in process."""


@pytest.mark.parametrize("stage", STAGES)
def test_json_errors_and_the_daemon_s_log_show_what_the_contract_says(stage: str, tmp_path: Path) -> None:
    store = Store(tmp_path, stage)
    store.close()
    with tempfile.TemporaryDirectory(prefix="bp-") as folder:
        for file in tmp_path.glob("material.db*"):
            shutil.copy(file, Path(folder) / file.name.replace("material.db", "b.db"))
        daemon = Daemon(profile="standalone", folder=folder)
        command = [sys.executable, "-m", "beetle", "--socket", daemon.socket, "--json", "--owner", "owner-one", "call"]
        wrong: list[str] = []
        with daemon:
            for cell in cells(store, ASKERS["operator"]):
                if cell.op == "memory.recall" and len(json.dumps(cell.args)) < EACH_ONCE:
                    continue
                asked = [*command, cell.op, json.dumps(cell.args)]
                done = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, timeout=60)
                if words_in(done.stderr):
                    wrong.append(f"{cell.op} {short(cell.args)}: stderr says {words_in(done.stderr)}")
                if (done.returncode != 0) != (cell.shows is None) or words_in(done.stdout) - cell.besides != (
                    (cell.shows or set()) - cell.besides
                ):
                    wrong.append(
                        f"{cell.op} {short(cell.args)}: {words_in(done.stdout)}, not {cell.shows}; {done.stderr}"
                    )
        assert wrong == [], "\n".join(wrong)
        assert words_in((Path(folder) / "log").read_text()) == set()
