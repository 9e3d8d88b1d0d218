"""A release's signature: made by packaging/sign.py, copied with the tree, and checked against a public key."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from beetle.cli.doctor_tree import check_tree
from beetle.deploy.install_tree import copy_entries, manifest_of
from beetle.deploy.manifest import SIGNATURE, verify_tree
from beetle.deploy.release import NoPublicKey, check_release, read_public_key
from tests.running import ROOT
from tests.trees import make_tree

Sign = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the script reads and writes of a checkout."""
    folder = tmp_path_factory.mktemp("checkout")
    for name in ("packaging/sign.py", "beetle/deploy/release.py"):
        (folder / name).parent.mkdir(parents=True)
        shutil.copy(ROOT / name, folder / name)
    return folder


@pytest.fixture(scope="module")
def sign(checkout: Path) -> Sign:
    def run(*words: str | Path) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, checkout / "packaging/sign.py", *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=60)

    return run


def listed(checkout: Path) -> tuple[str, ...]:
    """RELEASE_KEYS of the checkout."""
    found: dict[str, tuple[str, ...]] = {}
    exec((checkout / "beetle/deploy/release.py").read_text(), found)
    return found["RELEASE_KEYS"]


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory, checkout: Path, sign: Sign) -> Path:
    """A private key, which the checkout lists; its public half has `.pub` behind the name."""
    path = tmp_path_factory.mktemp("key") / "release.pem"
    before = listed(checkout)
    made = sign("--new-key", path)
    assert made.returncode == 0, made.stderr
    assert listed(checkout) == (read_public_key(f"{path}.pub"), *before)
    assert path.stat().st_mode & 0o777 == 0o600
    return path


@pytest.fixture
def tree(tmp_path: Path, key: Path, sign: Sign) -> Path:
    """A signed tree."""
    folder = tmp_path / "tree"
    make_tree(folder, {"beetle": b"#!/bin/sh\n", "_internal/part": b"a part\n"})
    assert sign("--key", key, folder / "MANIFEST").returncode == 0
    return folder


def test_a_signed_tree_is_known_by_its_key_and_stays_so_when_it_is_copied(
    tree: Path, key: Path, tmp_path: Path
) -> None:
    public = read_public_key(f"{key}.pub")
    copy = tmp_path / "copy"
    manifest = manifest_of(tree)
    copy_entries(tree, copy, manifest, manifest.entries)
    for each in (tree, copy):
        found = check_release(str(each), ["00" * 31 + "01", public])
        assert (found.files, found.differences, found.signed, found.key) == (2, (), True, public)
    assert check_release(str(tree), ()).key is None


def test_a_changed_list_is_not_signed_and_a_changed_file_is_named(tree: Path, key: Path, tmp_path: Path) -> None:
    public = read_public_key(f"{key}.pub")
    (tree / "_internal/part").write_text("A part\n")
    found = check_release(str(tree), [public])
    assert (found.key, found.differences) == (public, ("_internal/part has other content",))
    other = tmp_path / "other"
    make_tree(other, {"beetle": b"#!/bin/sh\n", "_internal/part": b"A part\n"})
    (other / SIGNATURE).write_bytes((tree / SIGNATURE).read_bytes())
    found = check_release(str(other), [public])
    assert (found.key, found.signed, found.differences) == (None, True, ())
    (other / SIGNATURE).write_bytes(b"short")
    assert check_release(str(other), [public]).key is None
    (other / SIGNATURE).unlink()
    assert not check_release(str(other), [public]).signed
    assert verify_tree(str(other)) == []


def test_doctor_tells_what_of_a_tree_was_checked_and_what_was_not(
    tree: Path, key: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.executable", str(tree / "beetle"))
    monkeypatch.setattr("sys._MEIPASS", str(tree / "_internal"), raising=False)

    def told(*keys: str) -> tuple[str, str]:
        monkeypatch.setattr("beetle.deploy.release.RELEASE_KEYS", keys)
        (found,) = check_tree(None)
        return found.level, found.text.partition(": 2 files as they were built; ")[2]

    public, other = read_public_key(f"{key}.pub"), "00" * 31 + "01"
    assert told(other, public) == ("ok", f"signed with the release key {public[:16]}…")
    assert told(other) == ("problem", "their list is not signed with a known release key")
    assert told() == ("note", "signed with a key that this build does not know")
    (found,) = check_tree(f"{key}.pub")
    assert (found.level, f"signed with the release key {public[:16]}…" in found.text) == ("ok", True)
    (tree / SIGNATURE).unlink()
    assert told() == ("ok", "built without a release key: sums are checked, the signature is not")
    assert told(public) == ("note", "the build is not signed: sums are checked, the signature is not")


def test_signatures_are_checked_by_the_script_too(tree: Path, key: Path, sign: Sign) -> None:
    assert sign("--check", f"{key}.pub", tree / "MANIFEST").returncode == 0
    first = (tree / "MANIFEST.sig").read_bytes()
    assert sign("--key", key, tree / "MANIFEST").returncode == 0
    assert (tree / "MANIFEST.sig").read_bytes() == first and len(first) == 64
    said = sign("--check", f"{key}.pub", tree / "MANIFEST", tree / "beetle")
    assert said.returncode == 1 and "NOT signed" in said.stderr


def test_a_private_key_is_not_made_in_the_checkout_and_not_taken_from_where_others_read_it(
    tree: Path, key: Path, checkout: Path, sign: Sign
) -> None:
    before = listed(checkout)
    said = sign("--new-key", checkout / "release.pem")
    assert said.returncode == 1 and "keep the private key elsewhere" in said.stderr
    assert not (checkout / "release.pem").exists()
    assert sign("--new-key", key).returncode == 1  # it is there
    assert listed(checkout) == before
    key.chmod(0o640)
    try:
        said = sign("--key", key, tree / "MANIFEST")
    finally:
        key.chmod(0o600)
    assert said.returncode == 1 and "others may read" in said.stderr


def test_a_second_key_is_listed_before_the_first_and_a_key_that_is_not_listed_signs_nothing(
    tree: Path, key: Path, checkout: Path, sign: Sign, tmp_path: Path
) -> None:
    before = (checkout / "beetle/deploy/release.py").read_text()
    second = tmp_path / "second.pem"
    assert sign("--new-key", second).returncode == 0
    assert listed(checkout)[:2] == (read_public_key(f"{second}.pub"), read_public_key(f"{key}.pub"))
    assert sign("--key", second).returncode == 0
    (checkout / "beetle/deploy/release.py").write_text(before)
    (tree / SIGNATURE).unlink()
    said = sign("--key", second, tree / "MANIFEST")
    assert said.returncode == 1 and "is not in RELEASE_KEYS" in said.stderr
    assert read_public_key(f"{second}.pub") in said.stderr
    assert not (tree / SIGNATURE).exists()


def test_what_is_no_public_key_is_told(key: Path, tmp_path: Path) -> None:
    for text in ("no key", key.read_text()):
        (tmp_path / "pub").write_text(text)
        with pytest.raises(NoPublicKey, match="is not a public key"):
            read_public_key(str(tmp_path / "pub"))
