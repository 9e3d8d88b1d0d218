"""The documentation is true: pages are current, blocks run, tables say what the code says, links lead somewhere.

Console blocks: every `$ beetle …` line is run in a folder of the page's own and must end with 0. One that ends with
`<<'END'` goes on to the line END. Of the output lines below it each must be there, in order, with runs of spaces made
one; `…` stands for anything in a line, and a line that is only `…` for any lines. An id, a token or a receipt that is
shown stands for the real one, also in later commands. Python blocks of a page are one program; what it prints must be
its `# prints` comments.
"""

from __future__ import annotations

import ast
import functools
import importlib.util
import io
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, get_args

import msgpack
import pytest
import zstandard

from beetle.__main__ import main
from beetle.cli.commands import COMMANDS
from beetle.cli.parser import GLOBALS
from beetle.contracts.errors import ERRORS, MESSAGE_LIMIT, STATUS
from beetle.contracts.fields import Visibility
from beetle.contracts.names import ViewName
from beetle.contracts.operations import OPERATIONS
from beetle.domain import lexical, projection, ranking, surroundings
from beetle.runtime.areas.evidence import lifecycle
from beetle.runtime.areas.recall import recall as memory
from beetle.runtime.host import config
from beetle.runtime.host.principals import Peer, Principals
from beetle.runtime.host.profile import Budgets
from beetle.runtime.pipeline.subscriptions import TOPIC_CAPABILITIES
from beetle.runtime.pipeline.views import Viewer, withheld
from beetle.store.engine import connection
from beetle.transports import socket_connection
from tests.forked import Daemon

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("*.md"))
README, POLICY = ROOT / "README.md", ROOT / "SECURITY.md"
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MADE = re.compile(r"\b[swj]-[0-9a-f]{16}\b|(?<=--token )\S+|\bbeetle-receipt-1\.\S+")
"""What each run makes anew, and a later command of the page repeats."""
PRINTS = re.compile(r"# prints (.*)$", re.MULTILINE)
PROFILE = "profile-linux-device-standalone-memory"
SECONDS = 30
CONFIGURED = ("mcp-host.md", "mcp.md", "grpc.md")
"""Their commands run under the configuration that they show."""
RUN_BY_ADAPTERS = ("frameworks.md",)
"""Its programs need frameworks that the development environment does not have: tests/adapters runs them."""


class Block(NamedTuple):
    """A fenced block: its language, its text, the line of the page on which the text begins."""

    language: str
    text: str
    line: int


def blocks(page: Path, language: str) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    found = (Block(m[1], m[2], text.count("\n", 0, m.start(2)) + 1) for m in FENCE.finditer(text))
    return [each for each in found if each.language == language]


def pages_with(language: str) -> list[Path]:
    return [page for page in PAGES if blocks(page, language)]


def text_of(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def sentences_of(name: str) -> str:
    """A page's text on one line, however it is wrapped."""
    return " ".join(text_of(name).split())


def section(name: str, title: str) -> str:
    """A page's text from a heading to the next heading of its level or above."""
    found = re.search(rf"^(#+) {re.escape(title)}$(.*?)(?=^#{{1,2}} |\Z)", text_of(name), re.MULTILINE | re.DOTALL)
    assert found is not None, f"{name} has no heading {title!r}"
    return found[2]


def rows(text: str) -> list[list[str]]:
    """The cells of every table row but rules."""
    lines = [line for line in text.splitlines() if line.startswith("|") and not set(line) <= set("|- ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def by_name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix().removeprefix("docs/")


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder with a short path, since a socket's path has at most 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="bd-") as made:
        yield Path(made)


@pytest.fixture
def environment(folder: Path) -> dict[str, str]:
    """An environment in which nothing of this machine is used: a socket, a store and a configuration of its own."""
    (folder / "bin").mkdir()
    command = folder / "bin" / "beetle"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m beetle "$@"\n')
    command.chmod(0o755)
    (folder / "packaging").symlink_to(ROOT / "packaging")
    (folder / "beetle.toml").touch()
    return {
        "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "PYTHONWARNINGS": "error",
        "HOME": str(folder),
        "XDG_RUNTIME_DIR": str(folder),
        "BEETLE_SOCKET": str(folder / "b.sock"),
        "BEETLE_STORE": str(folder / "b.db"),
        "BEETLE_CONFIG": str(folder / "beetle.toml"),
    }


def run(command: list[str], folder: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=SECONDS, stdin=subprocess.DEVNULL
    )


@pytest.mark.parametrize(
    "page", [each for each in pages_with("python") if each.name not in RUN_BY_ADAPTERS], ids=by_name
)
def test_the_python_of_a_page_runs_and_prints_what_it_says(
    page: Path, folder: Path, environment: dict[str, str]
) -> None:
    found = blocks(page, "python")
    program: list[str] = []
    for block in found:
        program += [""] * (block.line - 1 - len(program)) + block.text.splitlines()
    script = folder / f"{page.stem}_page.py"
    script.write_text("\n".join(program) + "\n", encoding="utf-8")
    expected = [line for block in found for line in PRINTS.findall(block.text)]
    with Daemon(profile=PROFILE, folder=str(folder)):
        ended = run([sys.executable, str(script)], folder, {**environment, "BEETLE_STORE": str(folder / "own.db")})
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines() == expected


Shell = Callable[[str], "subprocess.CompletedProcess[str]"]


@pytest.fixture
def shell(
    folder: Path, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Shell:
    """Runs a command line: in this process, which spares the start of another, or by `sh` what needs a shell."""

    def typed(command: str) -> subprocess.CompletedProcess[str]:
        words = list(shlex.shlex(command.partition("\n")[0], posix=True, punctuation_chars=True))
        if any(set(word) <= set("();<>|&") for word in words) or "$" in command:
            return run(["sh", "-c", command], folder, environment)
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
        capsys.readouterr()
        code = main(shlex.split(command)[1:])
        return subprocess.CompletedProcess(words, code, *capsys.readouterr())

    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(folder)
    return typed


def measured(page: Path) -> Any:
    """A page whose commands measure, which a loaded machine may fail: tests/harness asks the rest of it."""
    return pytest.param(page, marks=pytest.mark.slow) if page.name == "harness.md" else page


@pytest.mark.parametrize("page", [README, *map(measured, pages_with("console"))], ids=by_name)
def test_the_commands_of_a_page_run_and_show_what_it_says(page: Path, folder: Path, shell: Shell) -> None:
    made: dict[str, str] = {}
    if page.name in CONFIGURED:
        # A page that has another way of doing it shows that in a file of its own, further down.
        shown = blocks(page, "toml")[: 1 if page.name == "grpc.md" else None]
        (folder / "beetle.toml").write_text("".join(block.text for block in shown), encoding="utf-8")
    try:
        for block in blocks(page, "console"):
            for shown, output in commands_of(block):
                command = MADE.sub(lambda found: made.get(found[0], found[0]), shown)
                ended = shell(command)
                assert ended.returncode == 0, f"{page.name}: {command}\n{ended.stdout}{ended.stderr}"
                assert shows(ended.stdout, output, made), f"{page.name}: {command}\n{ended.stdout}"
    finally:
        shell("beetle stop")


def commands_of(block: Block) -> Iterator[tuple[str, list[str]]]:
    for part in re.split(r"^\$ ", block.text.replace("\\\n", " "), flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        if command.endswith("<<'END'"):
            given, _, output = output.partition("END\n")
            command = f"{command}\n{given}END"
        if command.startswith("beetle"):
            yield command, [line for line in output.splitlines() if line.strip() not in ("", "…")]


def shows(printed: str, expected: list[str], made: dict[str, str]) -> bool:
    """Whether the expected lines are there in order; what they show that is new in each run is noted in `made`."""
    lines = iter(" ".join(line.split()) for line in printed.splitlines())
    return all(any(is_line(line, each, made) for line in lines) for each in expected)


def is_line(line: str, expected: str, made: dict[str, str]) -> bool:
    expected = " ".join(expected.split())
    names = MADE.findall(expected)
    parts = [".*".join(map(re.escape, part.split("…"))) for part in MADE.split(expected)]
    values = [re.escape(made[name]) if name in made else r"\S+" for name in names]
    pattern = "".join(
        each for pair in zip(parts, [*(f"({value})" for value in values), ""], strict=True) for each in pair
    )
    found = re.fullmatch(pattern, line)
    if found is not None:
        made.update(zip(names, found.groups(), strict=True))
    return found is not None


def test_an_output_line_must_be_printed_and_in_its_place() -> None:
    assert shows("a   b\nother\nc 12 d\n", ["a b", "c … d"], {})
    assert not shows("a b\n", ["a"], {})
    assert not shows("b\na\n", ["a", "b"], {})
    assert not shows("a\n", ["a", "a"], {})


def test_an_id_that_is_shown_stands_for_the_one_that_was_made() -> None:
    made: dict[str, str] = {}
    assert shows("s-00000000000000aa: 3 turns\n", ["s-1111111111111111: … turns"], made)
    assert made == {"s-1111111111111111": "s-00000000000000aa"}
    assert not shows("s-00000000000000bb: 3 turns\n", ["s-1111111111111111: 3 turns"], made)
    assert shows("the same with --token a*b\n", ["the same with --token …"], made) and made["…"] == "a*b"


def test_the_generated_files_are_what_the_code_says() -> None:
    assert reference().stale() == {}, "run: python packaging/gen_reference.py"


def test_a_stale_page_is_shown_as_a_difference(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Any) -> None:
    module = reference()
    monkeypatch.setattr(module, "DOCS", tmp_path)
    monkeypatch.setattr(module, "METHODS", tmp_path)
    assert module.main([]) == 0
    assert module.main(["--check"]) == 0
    page = tmp_path / "errors.md"
    page.write_text(page.read_text().replace("`conflict`", "`clash`"))
    assert module.main(["--check"]) == 1
    printed = capsys.readouterr().out
    assert "-| [`clash`]" in printed and "+| [`conflict`]" in printed


def reference() -> Any:
    spec = importlib.util.spec_from_file_location("gen_reference", ROOT / "packaging/gen_reference.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(spec.name, module)
    spec.loader.exec_module(module)
    return module


def test_the_pages_fit_their_part_of_the_build() -> None:
    """What .ci/run finds when all else is built and tested (packaging/weight.py, whose level of packing this is)."""
    budget = tomllib.loads((ROOT / "packaging/budgets.toml").read_text())["packed"]["manual"]
    packed = zstandard.ZstdCompressor(level=9).compress(b"".join(page.read_bytes() for page in PAGES))
    assert len(packed) < budget - 50, "say it in fewer words"


def test_every_operation_is_documented_with_every_field() -> None:
    for row in OPERATIONS:
        found = section("operations.md", row.name)
        asked = [name for kind in row.kinds for name in kind.__struct_encode_fields__]
        for name in (*asked, *row.report.__struct_encode_fields__):
            assert f"| `{name}` |" in found, f"{row.name}: {name}"
        assert f"`{row.method}(" in found or row.effect == "stream"


def test_every_operation_has_an_example_of_its_call() -> None:
    """From its row, whose example the self-test asks; the pages of the SDK show the calls that belong together."""
    for row in OPERATIONS:
        if row.effect != "stream":
            (example,) = re.findall(r"^Example: `memory\.(.*)`$", section("operations.md", row.name), re.M)
            call = ast.parse(example, mode="eval").body
            assert isinstance(call, ast.Call) and ast.unparse(call.func) == row.method
            assert {each.arg: ast.literal_eval(each.value) for each in call.keywords} == dict(row.example)


def test_every_error_key_is_documented() -> None:
    text = text_of("errors.md")
    assert all(f"`{key}`" in text for key in STATUS)
    for key, kind in ERRORS.items():
        assert kind.template in section("errors.md", key)


def test_every_error_key_has_a_remedy_in_the_page_of_troubleshooting() -> None:
    listed = {key: row[1] for row in rows(text_of("troubleshooting.md")) for key in re.findall(r"`(\w+)`", row[0])}
    assert listed == {key: str(status.exit_code) for key, status in STATUS.items()}


def test_every_command_and_every_global_option_is_documented() -> None:
    documented = [row[0].strip("`") for row in rows(section("operations.md", "Commands"))]
    assert documented[1:] == [f"beetle {each.name}" for each in COMMANDS.values()]
    assert all(f"`{each.option}" in text_of("configuration.md") for each in GLOBALS)


def test_every_budget_is_documented() -> None:
    documented = [row[0].strip("`") for row in rows(section("profiles.md", "Budgets"))]
    assert [name for name in documented if name in Budgets.__struct_fields__] == [*Budgets.__struct_fields__] * 2


@pytest.mark.parametrize("name", config.SECTIONS)
def test_every_key_of_the_configuration_is_documented(name: str) -> None:
    kinds = {
        "daemon": config.Daemon,
        "agent_skills": config.AgentSkills,
        "model": config.Model,
        "replica": config.Replica,
        "principals": config.Principal,
        "console": config.Console,
        "skill_registry": config.SkillRegistry,
        "scheduler": config.Scheduler,
        "snapshots": config.Snapshots,
        "grpc": config.Grpc,
        "metrics": config.Metrics,
    }
    documented = [row[0].strip("`") for row in rows(text_of("configuration.md"))]
    prefix = "principals.NAME" if name == "principals" else name
    assert [key for key in kinds[name].__struct_fields__ if f"{prefix}.{key}" not in documented] == []


CONFIGURATIONS = [
    block
    for page in ("configuration.md", "scheduler.md", "grpc.md", "snapshots.md", "backup.md", "replication.md")
    for block in blocks(DOCS / page, "toml")
]


@pytest.mark.parametrize("block", CONFIGURATIONS, ids=lambda block: f"line {block.line}")
def test_every_example_of_the_configuration_can_be_read(block: Block, tmp_path: Path) -> None:
    file = tmp_path / "beetle.toml"
    file.write_text(block.text, encoding="utf-8")
    assert config.read_config(file, {}, 1000).file == str(file)


def test_the_robot_of_the_example_tells_its_agents_apart(tmp_path: Path) -> None:
    robot = next(block for block in blocks(DOCS / "configuration.md", "toml") if "1101" in block.text)
    file = tmp_path / "beetle.toml"
    file.write_text(robot.text, encoding="utf-8")
    principals = Principals(999, config.read_config(file, {}, 999).principals)
    names = {uid: principals.identify(Peer(uid, gids, 1)).name for uid, gids in PEERS.items()}
    assert names == {1101: "navigation", 1102: "voice", 1200: "panel", 999: "operator", 0: "operator", 1300: "uid:1300"}


PEERS: dict[int, tuple[int, ...]] = {
    1101: (1101, 1900),
    1102: (1102, 1900),
    1200: (1200, 1900, 1910),
    999: (999,),
    0: (0,),
    1300: (1300, 1900),
}


def test_the_session_of_the_socket_page_is_what_a_daemon_answers(folder: Path) -> None:
    import socket

    text = text_of("socket.md")
    sent = {m.end(): bytes.fromhex(m[2]) for m in FENCE.finditer(text) if m[1] == "hex"}
    with Daemon(profile=PROFILE, folder=str(folder)) as daemon, socket.socket(socket.AF_UNIX) as peer:
        peer.settimeout(SECONDS)
        peer.connect(daemon.socket)
        waiting: list[Any] = []
        unpacker = msgpack.Unpacker()
        shown = [json.loads(m[2]) for m in FENCE.finditer(text) if m[1] == "json"]
        requests = iter(sent.values())
        for frame in shown:
            if "op" in frame:
                data = next(requests)
                assert msgpack.unpackb(data) == frame
                peer.sendall(data)
                continue
            answer = next_like(frame, waiting, unpacker, peer)
            assert like(frame, answer), answer
        assert next(requests, None) is None


def next_like(frame: Any, waiting: list[Any], unpacker: Any, peer: Any) -> Any:
    """The next answer or the next event, whichever is expected: they come in either order."""
    while True:
        for found in waiting:
            if ("sub" in found) == ("sub" in frame):
                waiting.remove(found)
                return found
        unpacker.feed(peer.recv(65536))
        waiting.extend(unpacker)


def like(pattern: Any, value: Any) -> bool:
    """Whether a value is as shown; `…` stands for anything, also within a text."""
    if isinstance(pattern, str) and "…" in pattern:
        parts = map(re.escape, pattern.split("…"))
        return pattern == "…" or (isinstance(value, str) and re.fullmatch(".*".join(parts), value) is not None)
    if isinstance(pattern, dict):
        return (
            isinstance(value, dict)
            and pattern.keys() == value.keys()
            and all(like(v, value[k]) for k, v in pattern.items())
        )
    if isinstance(pattern, list):
        return isinstance(value, list) and len(pattern) == len(value) and all(map(like, pattern, value))
    return pattern == value


def test_the_topics_of_the_socket_page_need_what_it_says() -> None:
    found = {row[0].strip("`"): row[1].strip("`") for row in rows(section("socket.md", "Events"))[1:]}
    assert found == TOPIC_CAPABILITIES


def test_the_numbers_in_sentences_are_those_of_the_code() -> None:
    assert f"has at most {socket_connection.SUBSCRIPTIONS} subscriptions" in text_of("socket.md")
    assert f"reads nothing for {socket_connection.SEND_SECONDS} seconds" in text_of("socket.md")
    assert lifecycle.ERASURE_WAIT_S == 3.0 and "for three seconds" in text_of("store.md")
    assert surroundings.SESSION_GAP_US == 30 * 60 * 1_000_000 and "more than 30 minutes" in sentences_of("recall.md")
    assert f"The hits are the best {memory.PROJECTED_HITS} for" in text_of("recall.md")
    assert f"`0x{connection.APPLICATION_ID:X}`" in text_of("store.md")
    assert f"have at most {MESSAGE_LIMIT} characters" in text_of("errors.md")


def test_the_visibility_table_is_what_the_gate_decides() -> None:
    head, *body = rows(section("views.md", "What each view shows of a message"))
    columns = [cell.strip("`") for cell in head[2:]]
    expected = {
        (visibility, state): [told(visibility, state, column) for column in columns]
        for state in ("live", "masked", "deleted")
        for visibility in get_args(Visibility)
    }
    assert {(row[0].strip("`"), row[1]): row[2:] for row in body} == expected


def told(visibility: str, state: str, column: str) -> str:
    own = column.endswith("(own agent)")
    view: ViewName = column.partition(" ")[0].strip("`")  # type: ignore[assignment] - a test of the page
    reason = withheld(visibility, state, Viewer(view=view, own_agent=own))
    return "content" if reason is None else f"`{reason}`"


def test_the_weights_and_signals_of_recall_are_documented() -> None:
    documented: dict[str, list[str]] = {}
    for row in rows(text_of("recall.md")):
        documented.setdefault(row[0].strip("`"), row)
    for name, value in ranking.WEIGHTS._asdict().items():
        assert documented[name][1] == f"{value:g}", name
    signals = {row[0].strip("`") for row in rows(section("recall.md", "Signals"))[1:]}
    source = Path(ranking.__file__).read_text(encoding="utf-8")
    made = set(re.findall(r'(?:append\(\(?|why: list\[SignalName\] = \[)"(\w+)"', source))
    assert signals == made


def test_the_numbers_of_recall_are_documented() -> None:
    documented = {row[0].strip("`"): row[1] for row in rows(text_of("recall.md"))}
    numbers = {
        "POOL": ranking.POOL,
        "SEEDS": ranking.SEEDS,
        "REREAD": ranking.REREAD,
        "READ_CHARS": ranking.READ_CHARS,
        "WORD_FLOOR": ranking.WORD_FLOOR,
        "NAMES_WEIGHT": lexical.NAMES_WEIGHT,
        "INDEX_FORM": lexical.INDEX_FORM,
        "MAX_TERMS": lexical.MAX_TERMS,
        "MAX_PHRASES": lexical.MAX_PHRASES,
        "MAX_QUERY_CHARS": lexical.MAX_QUERY_CHARS,
    }
    assert {name: documented.get(name) for name in numbers} == {name: f"{each:,}" for name, each in numbers.items()}


def test_the_shares_of_a_projection_are_documented() -> None:
    head, *body = rows(section("recall.md", "Sections and shares"))
    shares = {
        pressure: {row[0].strip("`"): int(row[place].rstrip(" %")) for row in body}
        for place, pressure in enumerate(head[1:], 1)
    }
    assert shares == memory.SHARES
    assert projection.HEAD.strip() in text_of("recall.md")


@pytest.mark.parametrize(
    "page",
    [*PAGES, *sorted((DOCS / "clients").glob("*.md")), README, POLICY, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"],
    ids=by_name,
)
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+://", target):
            continue
        path, _, anchor = target.partition("#")
        file = page if not path else page.parent / path
        assert file.exists(), f"{page.name}: {target}"
        assert not anchor or anchor in anchors(file), f"{page.name}: {target}"


@functools.cache
def anchors(file: Path) -> set[str]:
    """What a heading is called in a link: lower case, without punctuation, with dashes for spaces."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", file.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


NAMED_TEST = re.compile(r"`((?:tests/)?[\w/*]*test_\w+\*?\.py)(?:::(\w+))?`|`(tests/[\w/]+/)`")


@pytest.mark.parametrize("page", PAGES, ids=by_name)
def test_every_test_that_a_page_names_is_there(page: Path) -> None:
    """docs/security.md leaves the folder out where it is tests/adversary."""
    for file, function, folder in NAMED_TEST.findall(page.read_text(encoding="utf-8")):
        if folder:
            assert (ROOT / folder).is_dir(), f"{page.name} names {folder}"
            continue
        near = file if "/" in file else f"tests/adversary/{file}"
        found = sorted(ROOT.glob(near))
        assert found, f"{page.name} names {file}"
        assert not function or any(f"def {function}(" in each.read_text() for each in found), f"{file}::{function}"


def test_the_page_of_security_names_a_test_for_each_promise() -> None:
    promises = re.findall(r"^\*\*([^*]+)\.\*\*(.*?)(?=^\*\*|^## |\Z)", text_of("security.md"), re.MULTILINE | re.DOTALL)
    assert len(promises) > 20
    assert [name for name, told in promises if not NAMED_TEST.search(told)] == []
