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
    "beetle.domain.chains": ("domain contracts", "rfc8785"),  # the canonical bytes that a thought's hash is over
    "beetle.domain.cron": ("contracts", "cronsim"),
    "beetle.store": ("store contracts", "apsw"),
    "beetle.runtime": ("", ""),
    "beetle.runtime.host": ("runtime.host contracts domain store", "msgspec"),
    "beetle.runtime.pipeline": ("runtime.pipeline runtime.host contracts domain store", "msgspec"),
    "beetle.runtime.planes": ("runtime.planes runtime.pipeline runtime.host contracts domain store", "msgspec"),
    "beetle.runtime.areas": ("runtime contracts domain store chunk_tree", "msgspec"),
    "beetle.runtime.host.identity": ("contracts store", "cryptography"),  # the keys: nobody else has to do with them
    "beetle.runtime.host.passphrase": ("", "cryptography"),
    "beetle.runtime.host.model": ("contracts domain runtime.host", "msgspec urllib3"),  # nobody else asks a network
    "beetle.runtime.host.front_matter": ("", "yaml"),  # what a SKILL.md says of itself
    # The files of chunks: the daemon exports and imports them, the command line and ChunkStore keep a folder of them.
    "beetle.chunk_tree": ("chunk_tree contracts", ""),
    "beetle.importing": ("importing asking contracts", "msgspec"),  # readers, and what sends their items as a client
    "beetle.asking": ("contracts", ""),  # work that asks, for both clients
    "beetle.import_export": ("importing asking contracts", ""),
    "beetle.async_import_export": ("importing asking contracts", ""),
    "beetle.sdk": ("contracts runtime open import_export", ""),
    "beetle.find": ("contracts runtime.host.config store.engine.lock", ""),  # where a daemon is
    "beetle.client": ("contracts asking calls find pieces session import_export", ""),
    "beetle.async_client": ("contracts async_import_export async_wire calls find pieces", ""),
    "beetle.async_wire": ("contracts calls", ""),
    # Their frameworks are extras: nothing else imports these modules.
    "beetle.adapters": ("", ""),
    "beetle.adapters.history": ("contracts", ""),
    "beetle.adapters.langchain": ("adapters.history contracts", "langchain_core pydantic"),
    "beetle.adapters.llamaindex": ("adapters.history contracts", "llama_index"),
    "beetle.adapters.openai_agents": ("adapters.history contracts", "agents"),
    "beetle.adapters.pydantic_ai": ("adapters.history contracts", "pydantic_ai"),
    "beetle.adapters.smolagents": ("adapters.history contracts", "smolagents"),
    "beetle.session": ("contracts calls", ""),
    "beetle.calls": ("contracts", "msgspec msgpack"),
    "beetle.pieces": ("asking contracts", ""),
    # A thin client of the daemon; how it is found and the store opened is handed in by the command line.
    "beetle.mcp": ("mcp contracts client open", "msgspec"),
    "beetle.transports": ("transports contracts runtime.pipeline", "msgspec msgpack"),
    # The messages of gRPC; nobody else imports protobuf or grpcio, which are an extra.
    "beetle.rpc": ("rpc", "google"),
    "beetle.transports.grpc": ("transports contracts rpc runtime", "grpc google"),
    "beetle.memory_client": ("contracts rpc hook_events", "grpc msgspec"),
    "beetle.cli": (
        "cli contracts chunk_tree client memory_client find importing mcp deploy open daemon spool repairing bench "
        "runtime.host.config runtime.host.profile runtime.host.choosing runtime.host.toml_file "
        "runtime.host.capability_snapshot store.engine.lock store.engine.presence",
        "msgspec beetle_tui",
    ),
    # A daemon of its own as a client sees it, beside a plain loop of SQLite.
    "beetle.bench": ("bench client contracts store.raw_floor", "msgspec"),
    "beetle.replication": ("replication contracts runtime.host.trusted_file", ""),
    "beetle.open": (ANYTHING, ""),
    "beetle.repairing": ("contracts open runtime.areas.repairing store.salvage", ""),
    "beetle.replicating": ("replication open contracts runtime.host.config store", ""),
    "beetle.first_boot": (ANYTHING, ""),
    "beetle.daemon": (ANYTHING, ""),
    "beetle.chunks": ("chunks open contracts chunk_tree domain.chunks store.engine.lock", ""),
    "beetle.deploy": ("deploy contracts", ""),  # what profile and configuration say is handed in
    "beetle.deploy.selftest": (ANYTHING, "msgpack beetle_tui"),
    "beetle.deploy.frozen": ("", ""),
    "beetle.deploy.release": ("deploy contracts", "cryptography"),  # a release's signature
    # It asks temporary stores as several callers, at a clock of its own, beside a plain query of SQLite.
    "beetle.harness": (
        "harness open contracts runtime.host.caller runtime.host.dependencies runtime.pipeline.invocation "
        "store.baseline_index",
        "",
    ),
    # A host waits for it at every turn, so it imports next to nothing.
    "beetle.hook": ("lean_json packed spool", ""),
    "beetle.spool": ("", ""),
    "beetle.lean_json": ("", ""),
    "beetle.packed": ("", ""),
    "beetle.hook_events": ("contracts hook", ""),
    "beetle.__main__": ("cli deploy.frozen hook", "msgspec"),
    "beetle_tui": ("client contracts open", "textual rich segno"),
}
FOR_ALL = ("__version__", "mac", "named_tuple")
"""What every part may import."""
FURTHER = {
    # What `[replica]` may say is checked when the file is read.
    "beetle.runtime.host.config": "replication.target",
    # A signature counts only where nobody but the key's owner can make it.
    "beetle.runtime.host.identity": "domain.ed25519",
    # The socket serves a dispatcher: it needs the types of what it hands over and gets back.
    "beetle.transports.unix_socket": "runtime",
    "beetle.transports.socket_connection": "runtime",
    "beetle.transports.event_pump": "runtime.host.caller",
    "beetle.transports.peer_socket": "runtime.host.principals",
    # A start writes one line of JSON, for which it loads no module.
    "beetle.store.engine.lock": "lean_json",
    # Deferred work is asked for as any other call is.
    "beetle.runtime.host.jobs": "runtime.pipeline",
    # A job's function is handed an invocation.
    "beetle.runtime.host.scheduled_job": "runtime.pipeline",
}
DEFERRED = (ast.FunctionDef, ast.ClassDef, ast.If)
"""Where an import at the top of a file does not run when it is loaded (an `if` is TYPE_CHECKING)."""
TOPS = (ROOT, ROOT / "tui")
PACKAGES = ("beetle", "beetle_tui")
FILES = sorted(path for top, part in zip(TOPS, PACKAGES, strict=True) for path in (top / part).rglob("*.py"))
IMPORTS_BY_NAME = ("beetle/deploy/selftest/contents.py", "beetle/contracts/loading.py")
"""The self-test imports every module of a list that the build wrote, to prove that the build has them all. An area is
imported when it is asked for; build.spec names every module."""
ADAPTER_LINES = 120
"""An adapter stays small enough to be read beside its framework's page."""
READS_ENVIRONMENT = ("beetle/open.py", "beetle/daemon.py", "beetle/find.py", "beetle/cli/", "beetle/hook.py")


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
    parts = [*inner.split(), *FURTHER.get(module, "").split(), *FOR_ALL]
    return inner == ANYTHING or not target or any(target == each or target.startswith(f"{each}.") for each in parts)


@pytest.fixture(scope="module")
def trees() -> dict[Path, ast.Module]:
    """Every file, parsed once."""
    return {path: ast.parse(path.read_text()) for path in FILES}


def inside(trees: dict[Path, ast.Module], folder: str) -> Iterator[tuple[Path, ast.Module]]:
    """The files with a folder of this name above them."""
    found = [(path, tree) for path, tree in trees.items() if folder in path.relative_to(ROOT).parts]
    assert found
    yield from found


def place(path: Path, node: ast.expr) -> str:
    return f"{path.relative_to(ROOT).as_posix()}:{node.lineno} {ast.unparse(node)}"


def test_a_module_imports_only_from_where_it_may(trees: dict[Path, ast.Module]) -> None:
    found = {
        (module_of(path), each)
        for path, tree in trees.items()
        for each in imports(tree, module_of(path), path.name == "__init__.py")
    }
    assert [(module, each) for module, each in found if not allowed(module, each) or each.endswith(".*")] == []


def test_an_adapter_is_short_and_is_tested_with_the_real_framework() -> None:
    adapters = [path for path in FILES if path.parent.name == "adapters" and path.stem != "__init__"]
    assert len(adapters) > 5
    assert [path.name for path in adapters if len(path.read_text().splitlines()) > ADAPTER_LINES] == []
    script = (ROOT / "packaging/tests/adapters.sh").read_text()
    frameworks = {path.stem for path in adapters} - {"history"}
    assert {name for name in frameworks if f" {name.replace('_', '-')}" not in script} == set()
    assert all((ROOT / f"tests/adapters/test_{name}.py").exists() for name in frameworks)
    assert "sh packaging/tests/adapters.sh" in (ROOT / "packaging/release.sh").read_text()


def test_the_command_line_loads_what_is_heavy_inside_the_function_that_needs_it(trees: dict[Path, ast.Module]) -> None:
    light = ("beetle.contracts", "beetle.cli", *(f"beetle.{each}" for each in FOR_ALL))
    heavy = []
    for path, tree in inside(trees, "cli"):
        top = ast.Module([each for each in tree.body if not isinstance(each, DEFERRED)], [])
        found = [each for each in imports(top, module_of(path), False) if each.startswith(("beetle.", "beetle_tui"))]
        heavy += [(module_of(path), each) for each in found if not each.startswith(light)]
    assert heavy == []


def test_a_module_is_imported_by_a_statement_and_the_environment_read_by_the_outermost(
    trees: dict[Path, ast.Module],
) -> None:
    """PyInstaller follows statements and misses `importlib.import_module("…")`."""
    wrong = []
    for path, tree in trees.items():
        where = path.relative_to(ROOT).as_posix()
        for node in ast.walk(tree):
            if not isinstance(node, ast.Attribute | ast.Name):
                continue
            name = node.attr if isinstance(node, ast.Attribute) else node.id
            if name in ("import_module", "__import__") and where not in IMPORTS_BY_NAME:
                wrong.append(place(path, node))
            if name in ("environ", "getenv", "environb") and isinstance(node, ast.Attribute):
                wrong += [place(path, node)] * (not where.startswith(READS_ENVIRONMENT))
    assert wrong == []


def test_a_worker_is_given_what_makes_its_coroutine(trees: dict[Path, ast.Module]) -> None:
    """One that is taken away before it began would leave a coroutine behind that nobody awaits."""
    made = []
    for path, tree in inside(trees, "tui"):
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "run_worker":
                given = node.args[0]
                if isinstance(given, ast.Call) and ast.unparse(given.func) != "partial":
                    made.append(place(path, node))
    assert made == []
