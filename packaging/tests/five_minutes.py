"""Plays the README's five minutes as a new user would, from an empty folder to a model's tool call; times each step.

The commands are those of the page. Then the agent of docs/first-agent.md runs, with the official client of MCP from the
package index:  python packaging/tests/five_minutes.py
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(sh|console|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SHOWN_COLUMNS = 150


def section(page: Path, title: str) -> str:
    """The text below a heading, up to the next one."""
    _, found, rest = page.read_text(encoding="utf-8").partition(f"## {title}\n")
    if not found:
        raise SystemExit(f"{page.name} has no section {title!r}")
    return rest.partition("\n## ")[0]


def steps() -> Iterator[str]:
    """Commands for `sh`, in their order."""
    for language, text in BLOCK.findall(section(ROOT / "README.md", "Five minutes")):
        if language == "sh":
            yield from text.splitlines()
        elif language == "console":
            for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
                first, _, rest = part.partition("\n")
                given, end, _ = rest.partition("END\n")
                yield f"{first}\n{given}{end}" if first.endswith("<<'END'") else first
    agent = section(ROOT / "docs/first-agent.md", "6. Give your model the tools")
    program = next(text for language, text in BLOCK.findall(agent) if language == "python")
    yield "pip install 'mcp>=2'"
    yield f"cat > agent.py <<'END'\n{program}END"
    yield "python agent.py"
    yield "beetle stop"


def main() -> int:
    """0 when every step ended well."""
    with tempfile.TemporaryDirectory(prefix="beetle-five-") as made:
        (Path(made) / "beetle").symlink_to(ROOT)
        folder = Path(made) / "mine"
        folder.mkdir()
        environment = apart(Path(made), folder)
        begun = time.monotonic()
        for command in steps():
            if not play(command, folder, environment, begun):
                subprocess.run(["beetle", "stop"], cwd=folder, env=environment, capture_output=True, check=False)
                return 1
        print(f"{time.monotonic() - begun:6.1f} s  in all")
    return 0


def apart(home: Path, folder: Path) -> dict[str, str]:
    """An environment in which nothing of this machine is used: for root the usual places are the system's own."""
    passed = {name: os.environ[name] for name in os.environ if not name.startswith(("BEETLE_", "XDG_", "VIRTUAL_"))}
    (home / "beetle.toml").touch()
    return {
        **passed,
        "HOME": str(home),
        "PATH": f"{folder}/env/bin:{os.environ['PATH']}",
        "BEETLE_SOCKET": str(home / "s"),
        "BEETLE_STORE": str(home / "b.db"),
        "BEETLE_CONFIG": str(home / "beetle.toml"),
        "PIP_QUIET": "1",
    }


def play(command: str, folder: Path, environment: dict[str, str], begun: float) -> bool:
    """Run one step and show it: when it ended, how long it took, what it printed."""
    at = time.monotonic()
    ended = subprocess.run(
        ["sh", "-c", command], cwd=folder, env=environment, text=True, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
    )  # fmt: skip
    now = time.monotonic()
    first, *more = command.splitlines()
    print(f"{now - begun:6.1f} s  {now - at:5.2f} s  $ {first}{' …' if more else ''}")
    for line in ended.stdout.splitlines():
        print(f"{'':17} {line[:SHOWN_COLUMNS]}{'…' if len(line) > SHOWN_COLUMNS else ''}")
    return ended.returncode == 0


if __name__ == "__main__":
    sys.exit(main())
