"""The same matrix for an operator at a real daemon: reports, errors, what `beetle --json` prints, and the log."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from beetle.client import Client
from beetle.contracts.common import WireScope
from beetle.contracts.errors import BeetleError
from tests import forked
from tests.conformance.doors import as_text, plain
from tests.forked import Daemon
from tests.governance import exports as exported
from tests.governance.material import ASKERS, OWNER, STAGES, Store
from tests.governance.test_privacy_matrix import Cell, cells, short, words_in

Told = tuple[bool, str, str]
"""Whether it was answered, the report, and what an error says."""


def by_client(client: Client, cell: Cell) -> Told:
    try:
        return True, json.dumps(plain(client.call(cell.op, cell.args))), ""
    except BeetleError as error:
        return False, "", f"{error.message} {error.hint} {json.dumps(error.details, default=str)}"


def by_command(path: str, cell: Cell) -> Told:
    args = json.dumps(cell.args, default=as_text)
    words = ["--socket", path, "--json", "--owner", OWNER, "call", cell.op, "-"]
    done = forked.run_text(words, given=args)
    return done.returncode == 0, done.stdout, done.stderr


def wrongs(cell: Cell, told: Told) -> Iterator[str]:
    """What is not as the cell says."""
    answered, report, error = told
    if words_in(error):
        yield f"{cell.op} {short(cell.args)}: the error says {words_in(error)}"
    shown = words_in(report)
    if answered:
        shown |= words_in(exported.opened(json.loads(report)))
    expected = cell.shows or set()
    if answered is (cell.shows is None) or shown - cell.besides != expected - cell.besides:
        yield f"{cell.op} {short(cell.args)}: {shown}, not {cell.shows}; {error}"


@pytest.mark.parametrize("stage", STAGES)
def test_reports_errors_and_the_daemon_s_log_show_what_the_contract_says(
    stage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every cell over the socket; one cell of each operation by `beetle --json` too, where all is there to be shown."""
    store = Store(tmp_path, stage)
    asked_for = list(cells(store, ASKERS["operator"]))
    store.close()
    monkeypatch.setenv("BM_AGENT_SKILL_DIRS", str(store.skills))
    with tempfile.TemporaryDirectory(prefix="bp-") as folder:
        for file in tmp_path.glob("material.db*"):
            shutil.copy(file, Path(folder) / file.name.replace("material.db", "b.db"))
        wrong: list[str] = []
        with Daemon(profile="standalone", folder=folder) as daemon:
            printed: set[str] = set() if stage == "live" else {cell.op for cell in asked_for}
            with daemon.client(scope=WireScope(owner_id=OWNER)) as client:
                for cell in asked_for:
                    wrong += wrongs(cell, by_client(client, cell))
                    if cell.op not in printed:
                        wrong += wrongs(cell, by_command(daemon.socket, cell))
                        printed.add(cell.op)
        assert wrong == [], "\n".join(wrong)
        assert words_in((Path(folder) / "log").read_text()) == set()
