"""Finishes the frozen tree: modes, the file `in-use`, and MANIFEST, which names the tree after what is in it, and is
what packaging/sign.py signs.

    python packaging/tree.py dist/tree      writes them, prints the tree's name
    python packaging/tree.py --file         prints the name of the one file: version, system and processor; with
                                            --gateway that of a server's
    python packaging/tree.py --sources      prints a digest of what a build is made from

MANIFEST is text. Its first line is `beetle-tree 1 NAME`; NAME is the version, a dash, and twelve hex digits of the
SHA-256 over the lines that follow. Those are one a file, sorted by path: `SHA256 MODE SIZE PATH` (mode 644 or 755, size
in bytes), and `link - - PATH -> TARGET` for a symbolic link.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import sys
import sysconfig
from pathlib import Path

MODULES = "_internal/modules.pyz"
"""Every Python module of a tree, in PyInstaller's archive."""
OWN = ("MANIFEST", "MANIFEST.sig", "in-use")
ROOT = Path(__file__).resolve().parents[1]
SOURCES = (
    "beetle/**/*.py", "beetle/rpc/*.proto", "beetle/store/migrations/*.sql",
    "tui/**/*.py", "profiles/*.toml", "docs/*.md",
    "LICENSE", "build.spec", "packaging/build.sh", "packaging/build-requirements.txt", "packaging/launcher/*",
    "packaging/starter/*", "packaging/interpreter/*", "packaging/licences/*",
    "packaging/complete.py", "packaging/notices.py", "packaging/onefile.py", "packaging/tree.py",
)  # fmt: skip
"""What the bytes of a build depend on, besides the Python and the compiler of the machine that built it."""


def version() -> str:
    """The version that the package says it has."""
    found = re.search(r'^__version__ = "([^"]+)"$', (ROOT / "beetle/__init__.py").read_text(), re.MULTILINE)
    if found is None:
        raise SystemExit("beetle/__init__.py does not say its version")
    return found[1]


def file_name(kind: str = "") -> str:
    """Name of the one file that this Python builds, with its own processor: the kernel's may be another."""
    machine = (sysconfig.get_config_var("MULTIARCH") or platform.machine()).partition("-")[0]
    return f"beetle{kind}-{version()}-linux-{machine}"


def lines_of(tree: Path) -> list[str]:
    """A line for each file and link, after its mode was set to what the line says."""
    found: list[tuple[bytes, str]] = []
    for folder, folders, files in os.walk(tree):
        for name in [*files, *(each for each in folders if (Path(folder) / each).is_symlink())]:
            path = Path(folder) / name
            inside = path.relative_to(tree).as_posix()
            if inside in OWN:
                continue
            if "\n" in inside or " -> " in inside:
                raise SystemExit(f"a name that MANIFEST cannot hold: {inside!r}")
            found.append((os.fsencode(inside), _line(path, inside)))
    return [line for _, line in sorted(found)]


def _line(path: Path, inside: str) -> str:
    if path.is_symlink():
        return f"link - - {inside} -> {os.readlink(path)}"
    data = path.read_bytes()
    # A library is mapped, not executed.
    runs = (data[:4] == b"\x7fELF" and ".so" not in path.name) or data[:2] == b"#!"
    path.chmod(0o755 if runs else 0o644)
    return f"{hashlib.sha256(data).hexdigest()} {'755' if runs else '644'} {len(data)} {inside}"


def write_manifest(tree: Path, version: str) -> str:
    """Write MANIFEST and in-use into a tree; the tree's name."""
    for folder, folders, _ in os.walk(tree):
        for name in [".", *folders]:
            if not (Path(folder) / name).is_symlink():
                (Path(folder) / name).chmod(0o755)
    body = "".join(f"{line}\n" for line in lines_of(tree))
    name = f"{version}-{hashlib.sha256(body.encode()).hexdigest()[:12]}"
    for file, text in (("MANIFEST", f"beetle-tree 1 {name}\n{body}"), ("in-use", "")):
        (tree / file).write_text(text)
        (tree / file).chmod(0o644)
    return name


def source_digest() -> str:
    """SHA-256 over the names and bytes of SOURCES: whether a build is of this state of the checkout."""
    digest = hashlib.sha256()
    for path in sorted({path for pattern in SOURCES for path in ROOT.glob(pattern) if path.is_file()}):
        data = path.read_bytes()
        digest.update(f"{path.relative_to(ROOT).as_posix()} {len(data)}\n".encode() + data)
    return digest.hexdigest()


if __name__ == "__main__":
    asked = sys.argv[1]
    kind = "-gateway" if "--gateway" in sys.argv[2:] else ""
    asks = {"--sources": source_digest, "--file": lambda: file_name(kind)}
    print(asks[asked]() if asked in asks else write_manifest(Path(asked), version()))
