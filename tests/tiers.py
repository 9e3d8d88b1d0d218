"""What the quick run leaves to the slow one: tests/slow.toml's tests, half of some files, all but one kind of store."""

from __future__ import annotations

import re
import tomllib
import zlib
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import pytest

from beetle.contracts.names import BACKEND_NAMES

TABLE = tomllib.loads((Path(__file__).parent / "slow.toml").read_text(encoding="utf-8"))
RULES: dict[str, tuple[str, ...]] = {
    name: tuple(each.get("keep", ())) for each in TABLE["slow"] for name in each["tests"]
}
"""By the name of each test, as `folder/test_file.py::test_name`, which of its variants stay in the quick run: by the
beginning of their values."""
HALVES = frozenset(name for each in TABLE["half"] for name in each["files"])
"""The files of which the quick run has one half of the tests."""
STORE = re.compile(rf"(?<![^-])({'|'.join(BACKEND_NAMES)})(?![^-])")
"""A kind of store among the values of a test's name, between which is a hyphen."""


def is_in_other_half(test: str) -> bool:
    """Whether a test of `HALVES` is left out. Its function decides, so that its variants stay together."""
    name, _, _ = test.partition("[")
    return name.partition("::")[0] in HALVES and zlib.crc32(name.encode()) % 2 == 1


def is_slow(test: str, rules: dict[str, tuple[str, ...]] = RULES) -> bool:
    name, _, values = test.partition("[")
    return name in rules and not values.startswith(rules[name])


def on_other_stores(tests: Sequence[str]) -> set[str]:
    """Of tests that differ in the kind of store alone, all but one. Which one stays depends on the name, so that each
    kind has its share."""
    alike: dict[str, list[str]] = defaultdict(list)
    for test in tests:
        name, _, values = test.removesuffix("]").partition("[")
        general = STORE.sub("*", values, count=1)
        if general != values:
            alike[f"{name}[{general}"].append(test)
    left: set[str] = set()
    for general, variants in alike.items():
        left |= set(variants) - {variants[zlib.crc32(general.encode()) % len(variants)]}
    return left


def mark_slow(items: Sequence[pytest.Item]) -> None:
    """Mark them, for `-m` to choose by."""
    names = {item: item.nodeid.removeprefix("tests/") for item in items if item.get_closest_marker("slow") is None}
    slow = {name for name in names.values() if is_slow(name) or is_in_other_half(name)}
    slow |= on_other_stores([name for name in names.values() if name not in slow])
    for item, name in names.items():
        if name in slow:
            item.add_marker("slow")
