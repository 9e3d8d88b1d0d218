"""Small trees, and a system below a folder of the test's own to install them in."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from beetle.deploy.apply import Report, install
from beetle.deploy.frozen import IN_USE
from beetle.deploy.install_tree import faults, manifest_of
from beetle.deploy.layout import InstallOptions, Layout, Limits, Settings
from beetle.deploy.machine import Machine
from beetle.deploy.prefix import CURRENT, PREVIOUS, Prefix
from beetle.deploy.steps import StepResult

ROOT = Path(__file__).parents[2]
PYTHON = sys.executable
LIMITS = Limits(48, 1024, 66)
PREFIX = "/opt/beetle"
UNIT = "/etc/systemd/system/beetle.service"


@cache
def packaging_tree() -> Any:
    """packaging/tree.py, which finishes the trees that are shipped."""
    spec = importlib.util.spec_from_file_location("packaging_tree", ROOT / "packaging/tree.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def make_tree(folder: Path, version: str, size: int = 1000) -> str:
    """A tree with a program, libraries and links; its name."""
    (folder / "_internal/lib").mkdir(parents=True)
    (folder / "beetle").write_text(f"#!/bin/sh\necho beetle {version}\n")
    (folder / "_internal/lib/libbeetle.so.1").write_bytes(b"\x7fELF" + version.encode() + bytes(size))
    (folder / "_internal/lib/libbeetle.so").symlink_to("libbeetle.so.1")
    (folder / "_internal/lib64").symlink_to("lib")
    (folder / "_internal/two words.txt").write_text(version)
    (folder / "_internal/empty").touch()
    return packaging_tree().write_manifest(folder, version)


def layout_in(root: Path, *, unit: str | None = UNIT, personal: bool = False) -> Layout:
    """The usual places, below `root`."""
    return Layout(root, PREFIX, "/usr/local/bin/beetle", "/etc/beetle/beetle.toml", unit, personal)


WANTED = InstallOptions(
    profile="compact",
    why=("It was asked for with --profile.",),
    settings=Settings("/var/lib/beetle/beetle.db", "/run/beetle/beetle.sock"),
    limits=LIMITS,
)


class System:
    """A system below a folder, and what was told of the last run on it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.layout = layout_in(root)
        self.prefix = Prefix(root / PREFIX.lstrip("/"))
        self.steps: list[StepResult] = []

    def install(
        self, source: Path, wanted: InstallOptions = WANTED, machine: Machine | None = None, *, dry_run: bool = False
    ) -> Report:
        self.steps = []
        return install(self.layout, source, wanted, machine, self.steps.append, dry_run=dry_run)

    def run(self, act: Callable[..., Any], machine: Machine | None = None, **options: Any) -> Any:
        """`roll_back` or `uninstall`."""
        self.steps = []
        return act(self.layout, machine, self.steps.append, **options)

    def outcomes(self) -> dict[str, str]:
        return {each.step: each.outcome for each in self.steps}

    @property
    def current(self) -> str | None:
        return self.prefix.named(CURRENT)

    @property
    def previous(self) -> str | None:
        return self.prefix.named(PREVIOUS)

    def path(self, path: str) -> Path:
        return self.root / path.lstrip("/")

    def whole(self) -> bool:
        """Whether every version under its own name is what its MANIFEST says, and both links name one of them."""
        folder = self.prefix.versions_folder
        names = [each.name for each in folder.iterdir() if not each.name.startswith(".")] if folder.is_dir() else []
        trees = [self.prefix.tree(name) for name in names]
        links = [each for each in (self.current, self.previous) if each is not None]
        return all(name in names for name in links) and not any(
            list(faults(tree, manifest_of(tree).entries, modes=True)) for tree in trees
        )

    def files(self) -> dict[str, tuple[int, int]]:
        """Every path below the root with its inode and time of change: equal when nothing was touched."""
        found = {}
        for folder, folders, files in os.walk(self.root):
            for name in [*folders, *files]:
                status = os.lstat(os.path.join(folder, name))
                found[os.path.relpath(os.path.join(folder, name), self.root)] = (status.st_ino, status.st_mtime_ns)
        return found


HOLD = """
import fcntl, os, sys
held = os.open(sys.argv[1], os.O_RDONLY)
fcntl.flock(held, fcntl.LOCK_SH)
print("held", flush=True)
sys.stdin.read()
"""


@contextlib.contextmanager
def running_from(tree: Path) -> Iterator[None]:
    """A process that holds the tree as a program of it would."""
    command = [PYTHON, "-c", HOLD, str(tree / IN_USE)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdin is not None
        assert process.stdout.readline() == b"held\n"
        yield
        process.stdin.close()
        process.wait()
