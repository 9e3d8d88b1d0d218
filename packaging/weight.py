"""What is in the frozen tree and what it weighs; whether the build stays within its budgets.

    build/venv/bin/python packaging/weight.py [--check [--draft]] [--json] dist/tree
    build/venv/bin/python packaging/weight.py --artefacts dist/release

A part is a top-level package of the archive of modules, or a library. `packed` is what zstd makes of the part alone, at
the level of a draft: a tenth more than it adds to the one file, in a twentieth of the time. `--check` ends with 1 when
a budget of packaging/budgets.toml is passed; with `--draft`, when the one file is a draft. `--artefacts` holds
what a release publishes to its budgets.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from tree import MODULES

HERE = Path(__file__).resolve().parent
LEVEL = 9
"""Of a draft, as packaging/onefile.py has it. What a part weighs beside the others shows at any level."""
OTHER = "aarch64"
"""The processor that has budgets of its own."""
STANDARD = ("base_library", "python3.")


class Part(NamedTuple):
    """What belongs together: its name, how many files or modules, bytes unpacked and packed."""

    name: str
    pieces: int
    size: int
    packed: int


def pieces(tree: Path) -> Iterator[tuple[str, bytes]]:
    """Everything in the tree as (part, bytes): modules out of their archive, and the other files."""
    from PyInstaller.archive.readers import ZlibArchiveReader

    archive = ZlibArchiveReader(str(tree / MODULES))
    modules = 0
    for name in sorted(archive.toc):
        data = archive.extract(name, raw=True) or b""
        modules += len(data)
        top = name.partition(".")[0]
        yield ("standard library" if top in sys.stdlib_module_names else top), data
    # Their table stands behind them.
    yield "start-up program", (tree / MODULES).read_bytes()[modules:]
    for path in sorted(tree.rglob("*")):
        if path.is_file() and path != tree / MODULES:
            yield part_of(path.relative_to(tree)), path.read_bytes()


def part_of(path: Path) -> str:
    """Part of a file of the tree."""
    if path.parts == ("litestream",):
        return "litestream"
    if path.parts in (("beetle",), ("_internal", "begin")):
        return "start-up program"
    if path.parts == ("_internal", "interpreter"):
        return "interpreter"
    if path.parts[:3] == ("_internal", "beetle", "docs"):
        return "manual"
    if path.parts[:2] == ("_internal", "libc"):
        return "C library"
    inside = path.parts[1] if path.parts[0] == "_internal" and len(path.parts) > 1 else path.name
    if inside.startswith(STANDARD):
        return "standard library"
    if inside.startswith("lib") and ".so" in inside:
        return f"{inside.partition('.so')[0]}.so"
    return re.sub(r"-[0-9].*", "", inside) if len(path.parts) > 2 else "lists and licence"


def weigh(tree: Path) -> list[Part]:
    """Every part, the heaviest first."""
    import zstandard

    found: dict[str, list[bytes]] = defaultdict(list)
    for name, data in pieces(tree):
        found[name].append(data)

    def packed(datas: list[bytes]) -> int:
        return len(zstandard.ZstdCompressor(level=LEVEL).compress(b"".join(datas)))

    with ThreadPoolExecutor() as pool:
        sizes = pool.map(packed, found.values())
        parts = [
            Part(name, len(datas), sum(map(len, datas)), size)
            for (name, datas), size in zip(found.items(), sizes, strict=True)
        ]
    return sorted(parts, key=lambda part: (-part.packed, part.name))


def budgets_for(processor: str) -> dict[str, Any]:
    """The budgets; those of a section named after the processor stand before those that hold for all."""
    budgets = tomllib.loads((HERE / "budgets.toml").read_text())
    own = budgets.get(processor, {})
    return {
        name: {**value, **own.get(name, {})} if isinstance(value, dict) else own.get(name, value)
        for name, value in budgets.items()
        if name != OTHER
    }


def passed_budgets(tree: Path, parts: list[Part], whole: str) -> list[str]:
    """A line for each budget that does not hold; `whole` names that of the one file."""
    one_file = tree.parent / (tree.parent / "SHA256SUMS").read_text().split()[1]
    budgets = budgets_for(one_file.name.rpartition("-")[2])
    weights = {part.name: part.packed for part in parts}
    named = sum(weights[name] for name in budgets["packed"] if name in weights)
    weights["everything else"] = sum(weights.values()) - named
    lines = [
        f"{name}: {weights.get(name, 0):,} bytes packed, budget {limit:,}"
        for name, limit in budgets["packed"].items()
        if weights.get(name, 0) > limit
    ]
    wholes = {"tree": sum(part.size for part in parts), whole: one_file.stat().st_size}
    lines += [
        f"{name}: {size:,} bytes, budget {budgets[name]:,}" for name, size in wholes.items() if size > budgets[name]
    ]
    lines += [f"{name}: a budget, and no such part" for name in budgets["packed"] if name not in weights]
    return lines


def passed_artefacts(folder: Path) -> list[str]:
    """A line for each file of a release that is larger than its budget, has none, or is missing; prints their sizes."""
    table = tomllib.loads((HERE / "budgets.toml").read_text())
    files = {path.name: path.stat().st_size for path in sorted(folder.iterdir())}
    budgets, other = dict(table["artefacts"]), table[OTHER]["artefacts"]
    # A release without the other processor's files is one; with some of them it is not.
    if any(OTHER in name for name in files):
        budgets |= {f"{OTHER} {kind}": limit for kind, limit in other.items()}
    left, lines = dict(budgets), []
    for name, size in files.items():
        kind = next((each for each in table["artefacts"] if name.endswith(each)), None)
        kind = "one_file" if kind is None and "-linux-" in name else kind
        if kind in other and (OTHER in name or name.endswith("_arm64.deb")):
            kind = f"{OTHER} {kind}"
        print(f"{name:<48} {size:>12,}")
        if kind is None:
            lines.append(f"{name}: no budget")
        elif size > budgets.get(kind, 0):
            lines.append(f"{name}: {size:,} bytes, budget {budgets.get(kind, 0):,}")
        left.pop(kind or "", None)
    left.pop("SHA256SUMS.sig", None)
    return lines + [f"{each}: a budget, and no such file" for each in left]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tree", type=Path)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--draft", action="store_true")
    parser.add_argument("--artefacts", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.artefacts:
        lines = passed_artefacts(options.tree)
        print("".join(f"over budget: {line}\n" for line in lines), end="", file=sys.stderr)
        return 1 if lines else 0
    parts = weigh(options.tree)
    if options.json:
        print(json.dumps([part._asdict() for part in parts]))
    else:
        print(f"{'part':<24} {'pieces':>6} {'unpacked':>12} {'packed':>12}")
        for part in [*parts, Part("sum", *(sum(column) for column in list(zip(*parts, strict=True))[1:]))]:
            print(f"{part.name:<24} {part.pieces:>6} {part.size:>12,} {part.packed:>12,}")
    lines = passed_budgets(options.tree, parts, "draft" if options.draft else "one_file") if options.check else []
    for line in lines:
        print(f"over budget: {line}", file=sys.stderr)
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
