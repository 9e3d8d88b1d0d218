"""The build of this checkout: `dist/`, as packaging/build.sh leaves it, when it is of these sources."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
TREE = DIST / "tree"


def one_file() -> Path:
    """The one file, named by the first line of SHA256SUMS; a path where nothing is, when nothing is built."""
    sums = DIST / "SHA256SUMS"
    return DIST / (sums.read_text().split()[1] if sums.exists() else "nothing-is-built")


ONE_FILE = one_file()


@cache
def why_not() -> str:
    """Why the build cannot be tested, or nothing."""
    if not ONE_FILE.exists():
        return "nothing is built: sh packaging/build.sh"
    command = [sys.executable, "packaging/tree.py", "--sources"]
    now = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    sources = ROOT / "dist/SOURCES"
    built = sources.read_text() if sources.exists() else ""
    return "" if built == now else "dist/ is of another state of the sources: sh packaging/build.sh"


def need_build() -> None:
    """Skip the test without a build; fail it where $BEETLE_REQUIRE_BUILD says that there must be one."""
    reason = why_not()
    if reason and os.environ.get("BEETLE_REQUIRE_BUILD"):
        pytest.fail(reason)
    if reason:
        pytest.skip(reason)
