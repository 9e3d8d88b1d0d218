"""An auditor's script in Node, written from docs/audit.md alone, verifies an exported log, signed head and receipts.

Of whatever was changed in the export it says so."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from beetle.contracts.codec import to_plain
from beetle.contracts.errors import BeetleError
from beetle.domain.digest import decode, encode
from tests.running import node
from tests.store.conftest import commit, lifecycle, open_runtime, turn

SCRIPT = Path(__file__).with_name("audit.mjs")
Page = dict[str, Any]


class Export(NamedTuple):
    """What an operator hands to an auditor: the pages of the log, the device's fingerprint, receipts."""

    pages: list[Page]
    device: str
    receipts: list[str]


@pytest.fixture(scope="module")
def export(tmp_path_factory: pytest.TempPathFactory) -> Export:
    path = tmp_path_factory.mktemp("audit") / "store.db"
    with open_runtime(path, owner="owner-b") as memory:
        commit(memory, turn("t1", "another owner's"))
    with open_runtime(path) as memory:
        commit(memory, turn("t1", "the käse"), turn("t2", "two"))
        receipts = [lifecycle(memory, "mask", "t1").receipt, lifecycle(memory, "delete_raw", "t2").receipt]
    with open_runtime(path) as memory:
        pages: list[Page] = []
        while not pages or pages[-1]["has_more"]:
            after = pages[-1]["chain"][-1]["seq"] if pages else None
            pages.append(to_plain(memory.read_event_log(chain=True, limit=2, after=after)))
        operator = memory.inspect().operator
        assert operator is not None and operator.identity.device is not None
        device = operator.identity.device
    return Export(pages, device, receipts)


def audited(folder: Path, export: Export) -> tuple[int, str]:
    (folder / "log").write_text("".join(json.dumps(page) + "\n" for page in export.pages))
    (folder / "receipts").write_text("".join(line + "\n" for line in export.receipts))
    words = [node(), str(SCRIPT), "log", export.device, "receipts"]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout + done.stderr


def test_a_sound_export_is_verified_from_the_docs_alone(tmp_path: Path, export: Export) -> None:
    links = [link for page in export.pages for link in page["chain"]]
    assert len(export.pages) > 2 and sum(link["encoding"] is None for link in links) == 1
    code, said = audited(tmp_path, export)
    assert (code, said) == (0, f"{len(links)} rows, 1 closed, 0 unsigned, 2 receipts\n")


def _rows(export: Export) -> list[Page]:
    return [link for page in export.pages for link in page["chain"]]


def _cut_tail(export: Export) -> None:
    export.pages[-1]["chain"].pop()


def _take_out(export: Export) -> None:
    export.pages[1]["chain"].pop(0)


def _change(export: Export) -> None:
    link = next(each for each in _rows(export) if each["encoding"] is not None)
    data = bytearray(decode(link["encoding"]) or b"")
    data[-3] ^= 1
    link["encoding"] = encode(bytes(data))


def _change_hash(export: Export) -> None:
    link = _rows(export)[-1]
    link["hash"] = link["hash"][:-1] + ("0" if link["hash"][-1] != "0" else "1")


def _unsign(export: Export) -> None:
    export.pages[-1]["signed_head"] = None


def _resign(export: Export) -> None:
    head = export.pages[-1]["signed_head"]
    mark, body, signature = head.split(".")
    changed = json.loads(decode(body) or b"")
    changed["rows"] -= 1
    export.pages[-1]["signed_head"] = f"{mark}.{encode(json.dumps(changed).encode())}.{signature}"


def _change_receipt(export: Export) -> None:
    mark, body, signature = export.receipts[0].split(".")
    changed = json.loads(decode(body) or b"")
    changed["counts"] = {"turns": 9}
    export.receipts[0] = f"{mark}.{encode(json.dumps(changed).encode())}.{signature}"


TAMPERINGS: dict[str, tuple[Callable[[Export], None], str]] = {
    "a cut tail": (_cut_tail, "was signed as the last"),
    "a row taken out": (_take_out, "is missing"),
    "a row changed": (_change, "does not follow"),
    "a hash changed": (_change_hash, "row"),
    "no signature": (_unsign, "not signed"),
    "a head that says something else": (_resign, "does not hold"),
    "a receipt that says something else": (_change_receipt, "does not hold"),
}


@pytest.mark.parametrize("name", TAMPERINGS)
def test_a_tampered_export_is_refused(tmp_path: Path, export: Export, name: str) -> None:
    copy = Export(json.loads(json.dumps(export.pages)), export.device, list(export.receipts))
    tamper, told = TAMPERINGS[name]
    tamper(copy)
    code, said = audited(tmp_path, copy)
    assert code == 1 and said.startswith("refused: ") and told in said


def test_another_device_is_refused(tmp_path: Path, export: Export) -> None:
    code, said = audited(tmp_path, export._replace(device="0" * 16))
    assert code == 1 and "not by 0000000000000000" in said


def test_the_chain_is_read_whole_or_not_at_all(tmp_path: Path) -> None:
    with open_runtime(tmp_path / "store.db") as memory, pytest.raises(BeetleError) as refused:
        memory.read_event_log(chain=True, topics=["skill"])
    assert refused.value.key == "invalid_request" and refused.value.details["path"] == "$.args.topics"
