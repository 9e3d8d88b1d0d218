"""Who may import whom (ARCHITECTURE §2)."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ANYTHING = "anything"

# A part, the parts of beetle it may import (its own included), the third-party modules it may import.
EDGES: dict[str, tuple[str, str]] = {
    "beetle": ("sdk contracts", ""),  # names on demand
    "beetle.contracts": ("contracts", "msgspec"),
    "beetle.domain": ("domain contracts", ""),
    "beetle.store": ("store contracts", "apsw"),
    "beetle.runtime": ("", ""),
    "beetle.runtime.host": ("runtime.host contracts domain store", "msgspec"),
    "beetle.runtime.pipeline": ("runtime.pipeline runtime.host contracts domain store", "msgspec"),
    "beetle.runtime.planes": ("runtime.planes runtime.pipeline runtime.host contracts domain store", "msgspec"),
    "beetle.runtime.areas": ("runtime contracts domain store", "msgspec"),
    "beetle.runtime.host.identity": ("contracts store", "cryptography"),  # the keys: nobody else has to do with them
    "beetle.runtime.host.passphrase": ("", "cryptography"),
    "beetle.runtime.host.model": ("contracts domain runtime.host", "msgspec urllib3"),  # nobody else asks a network
    "beetle.runtime.host.front_matter": ("", "yaml"),  # what a SKILL.md says of itself
    "beetle.importing": ("importing contracts", "msgspec"),  # readers of files, and what sends their items as a client
    "beetle.import_export": ("importing contracts", ""),
    "beetle.sdk": ("contracts runtime open import_export", ""),
    "beetle.find": ("contracts runtime.host.config store.engine.lock", ""),  # where a daemon is
    "beetle.client": ("contracts find pieces import_export", "msgspec msgpack"),
    "beetle.pieces": ("contracts", ""),
    # A thin client of the daemon; how it is found and the store opened is handed in by the command line.
    "beetle.mcp": ("mcp contracts client open", "msgspec"),
    "beetle.transports": ("transports contracts runtime.pipeline", "msgspec msgpack"),
    "beetle.cli": (
        "cli contracts client find importing mcp deploy open daemon runtime.host.config runtime.host.profile "
        "runtime.host.capability_snapshot store.engine.lock",
        "msgspec beetle_tui",
    ),
    "beetle.replication": ("replication contracts.errors", ""),
    "beetle.open": (ANYTHING, ""),
    "beetle.daemon": (ANYTHING, ""),
    "beetle.chunks": ("open contracts", ""),
    "beetle.deploy": ("deploy contracts", ""),  # what profile and configuration say is handed in
    "beetle.deploy.selftest": (ANYTHING, "msgpack beetle_tui"),
    "beetle.deploy.frozen": ("", ""),
    # It asks temporary stores as several callers, at a clock of its own, beside a plain query of SQLite.
    "beetle.harness": (
        "harness open contracts runtime.host.caller runtime.host.dependencies runtime.pipeline.invocation "
        "store.baseline_index",
        "",
    ),
    "beetle.__main__": ("cli deploy.frozen", "msgspec"),
    "beetle_tui": ("client contracts open", "textual rich segno"),
}
FURTHER = {
    # The socket serves a dispatcher: it needs the types of what it hands over and gets back.
    "beetle.transports.unix_socket": "runtime",
    # Deferred work is asked for as any other call is.
    "beetle.runtime.host.jobs": "runtime.pipeline",
}
DEFERRED = (ast.FunctionDef, ast.ClassDef, ast.If)
"""Where an import at the top of a file does not run when it is loaded (an `if` is TYPE_CHECKING)."""
TOPS = (ROOT, ROOT / "tui")
PACKAGES = ("beetle", "beetle_tui")
FILES = sorted(path for top, part in zip(TOPS, PACKAGES, strict=True) for path in (top / part).rglob("*.py"))
IMPORTS_BY_NAME = ("beetle/deploy/selftest/contents.py",)
"""The self-test imports every module of a list that the build wrote, to prove that the build has them all."""
READS_ENVIRONMENT = ("beetle/open.py", "beetle/daemon.py", "beetle/find.py", "beetle/cli/")


def module_of(path: Path) -> str:
    top = TOPS[path.is_relative_to(TOPS[1])]
    return ".".join(path.relative_to(top).with_suffix("").parts).removesuffix(".__init__")


def imports(tree: ast.AST, module: str, is_package: bool) -> Iterator[str]:
    """Every module that a file imports, wherever the statement stands; `from a import b` may mean the module a.b."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parent = module.split(".")[: len(module.split(".")) - node.level + is_package] if node.level else []
            base = ".".join([*parent, *([node.module] if node.module else [])])
            yield from (f"{base}.{alias.name}" for alias in node.names)


def part_of(module: str) -> str:
    """The longest part of the table that a module belongs to."""
    return max((each for each in EDGES if module == each or module.startswith(f"{each}.")), key=len)


def allowed(module: str, imported: str) -> bool:
    inner, outer = EDGES[part_of(module)]
    top = imported.partition(".")[0]
    if top == "beetle_tui" == module.partition(".")[0]:
        return True
    if top != "beetle":
        return top in sys.stdlib_module_names or top in outer.split()
    target = imported.removeprefix("beetle").removeprefix(".")
    parts = [*inner.split(), *FURTHER.get(module, "").split(), "__version__"]
    return inner == ANYTHING or not target or any(target == each or target.startswith(f"{each}.") for each in parts)


@pytest.mark.parametrize("path", FILES, ids=module_of)
def test_a_module_imports_only_from_where_it_may(path: Path) -> None:
    module, tree = module_of(path), ast.parse(path.read_text())
    found = list(imports(tree, module, path.name == "__init__.py"))
    assert [each for each in found if not allowed(module, each)] == []
    assert [each for each in found if each.endswith(".*")] == []


@pytest.mark.parametrize("path", [each for each in FILES if "cli" in each.relative_to(ROOT).parts], ids=module_of)
def test_the_command_line_loads_what_is_heavy_inside_the_function_that_needs_it(path: Path) -> None:
    top = ast.Module([each for each in ast.parse(path.read_text()).body if not isinstance(each, DEFERRED)], [])
    light = ("beetle.contracts", "beetle.cli", "beetle.__version__")
    found = [each for each in imports(top, module_of(path), False) if each.startswith(("beetle.", "beetle_tui"))]
    assert [each for each in found if not each.startswith(light)] == []


@pytest.mark.parametrize("path", FILES, ids=module_of)
def test_a_module_is_imported_by_a_statement_and_the_environment_read_by_the_outermost(path: Path) -> None:
    """PyInstaller follows statements and misses `importlib.import_module("…")`."""
    for node in ast.walk(ast.parse(path.read_text())):
        name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
        if path.relative_to(ROOT).as_posix() not in IMPORTS_BY_NAME:
            assert name not in ("import_module", "__import__"), ast.unparse(node)
        if name in ("environ", "getenv", "environb") and isinstance(node, ast.Attribute):
            where = path.relative_to(ROOT).as_posix()
            assert where.startswith(READS_ENVIRONMENT), f"{where}:{node.lineno} reads the environment"


@pytest.mark.parametrize("path", [each for each in FILES if "tui" in each.relative_to(ROOT).parts], ids=module_of)
def test_a_worker_is_given_what_makes_its_coroutine(path: Path) -> None:
    """One that is taken away before it began would leave a coroutine behind that nobody awaits."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "run_worker":
            given = node.args[0]
            assert not isinstance(given, ast.Call) or ast.unparse(given.func) == "partial", ast.unparse(node)
