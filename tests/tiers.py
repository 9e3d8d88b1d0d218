"""What the quick run leaves to the slow one: tests/slow.toml's tests, half of some files, all but one kind of store."""

from __future__ import annotations

import re
import tomllib
import zlib
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

HERE = Path(__file__).parent
STORES = ("sqlite", "embedded", "file", "in-memory")
STORE = re.compile(rf"(?<![^-])({'|'.join(STORES)})(?![^-])")
"""A kind of store among the values of a test's name, between which is a hyphen."""


class Rule(NamedTuple):
    """The variants of a test that stay in the quick run, by the beginning of their values."""

    keep: tuple[str, ...]


def read_rules(file: Path = HERE / "slow.toml") -> dict[str, Rule]:
    """By the name of each test, as `folder/test_file.py::test_name`."""
    rules = tomllib.loads(file.read_text(encoding="utf-8"))["slow"]
    return {name: Rule(tuple(each.get("keep", ()))) for each in rules for name in each["tests"]}


def read_halves(file: Path = HERE / "slow.toml") -> frozenset[str]:
    """The files of which the quick run has one half of the tests."""
    halves = tomllib.loads(file.read_text(encoding="utf-8"))["half"]
    return frozenset(name for each in halves for name in each["files"])


def is_in_other_half(test: str, halves: frozenset[str]) -> bool:
    """Whether a test of these files is left out. Its function decides, so that its variants stay together."""
    name, _, _ = test.partition("[")
    return name.partition("::")[0] in halves and zlib.crc32(name.encode()) % 2 == 1


def is_slow(test: str, rules: dict[str, Rule]) -> bool:
    name, _, values = test.partition("[")
    rule = rules.get(name)
    return rule is not None and not (rule.keep and values.startswith(rule.keep))


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
    rules, halves = read_rules(), read_halves()
    slow = {name for name in names.values() if is_slow(name, rules) or is_in_other_half(name, halves)}
    slow |= on_other_stores([name for name in names.values() if name not in slow])
    for item, name in names.items():
        if name in slow:
            item.add_marker("slow")
