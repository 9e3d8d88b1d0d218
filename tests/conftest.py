"""What the whole run has in common: the order of the tests, and what each suite may cost (tests/budgets.toml)."""

from __future__ import annotations

import gc
import hashlib
import os
import resource
import signal
import time
import tomllib
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, settings

from beetle.runtime.host import passphrase
from beetle.store.engine import migrate
from tests.pace import Pace
from tests.tiers import mark_slow

HERE = Path(__file__).parent
SLOWEST = 10
YOUNG = 50_000
"""Objects that are made before a collection of garbage looks at them. A console lives for half a second and is 30,000
objects in cycles: at CPython's 700, looking at them again and again was a sixth of the work of tests/tui."""
PATIENCE = 15.0
"""Seconds that a test may take beside three times its work, before it counts as one that waits."""


class Cost(NamedTuple):
    """What a test took, its fixtures included: seconds of work on an undisturbed core, and seconds by the clock."""

    test: str
    work: float
    clock: float


def work_done() -> float:
    """Seconds that the processors worked for this process and for those it started that have ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


class Costs:
    """The cost of every test, of this process or of all workers."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._pace = Pace()
        self.all: list[Cost] = []

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        work, clock = work_done(), time.monotonic()
        try:
            return (yield)
        finally:
            work, clock = work_done() - work, time.monotonic() - clock
            self.all.append(Cost(item.nodeid, work / self._pace.slowness(), clock))

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """A worker has ended, and tells what its tests took."""
        self.all += [Cost(*each) for each in getattr(node, "workeroutput", {}).get("costs", ())]

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        told = getattr(self._config, "workeroutput", None)
        if told is not None:
            told["costs"] = [tuple(each) for each in self.all]
        elif self._config.getoption("--budgets") and session.exitstatus == pytest.ExitCode.OK and self.complaints():
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self._config.getoption("--budgets"):
            return
        budgets, spent = read_budgets(), self.by_suite()
        terminalreporter.section("work by suite, in seconds of an undisturbed core")
        for suite, costs in sorted(spent.items(), key=lambda each: -work_of(each[1])):
            allowed = budgets.get(suite, 0)
            clock = sum(each.clock for each in costs)
            terminalreporter.line(
                f"{suite:14} {len(costs):6} tests {work_of(costs):7.1f} of {allowed:4} ({clock:.0f} by the clock)"
            )
        for line in self.complaints():
            terminalreporter.line(line, red=True)

    def by_suite(self) -> dict[str, list[Cost]]:
        suites = defaultdict(list)
        for each in self.all:
            suites[suite_of(each.test)].append(each)
        return suites

    def crowding(self) -> float:
        """How many times longer by the clock than its work the whole run took: what else the machine did meanwhile."""
        return max(1.0, sum(each.clock for each in self.all) / max(1.0, work_of(self.all)))

    def complaints(self) -> list[str]:
        """A line for every suite beyond its budget, with its slowest tests, and for every test that waits."""
        budgets, lines = read_budgets(), []
        for suite, costs in self.by_suite().items():
            if suite not in budgets:
                lines.append(f"{suite} has no budget in tests/budgets.toml")
            elif work_of(costs) > budgets[suite]:
                lines.append(f"{suite} took {work_of(costs):.1f} s of work; its budget is {budgets[suite]} s. Slowest:")
                slowest = sorted(costs, key=lambda each: -each.work)[:SLOWEST]
                lines += [f"  {each.work:6.1f} s  {each.test}" for each in slowest]
        crowding = self.crowding()
        lines += [
            f"{each.test} waits: {each.clock:.0f} s by the clock for {each.work:.1f} s of work"
            for each in self.all
            if each.clock / crowding > PATIENCE + 3 * each.work
        ]
        return lines


def suite_of(test: str) -> str:
    """The folder below tests/ that a test is in; `top` for files beside the folders."""
    parts = test.split("::")[0].split("/")
    return parts[1] if len(parts) > 2 else "top"


def work_of(costs: list[Cost]) -> float:
    return sum(each.work for each in costs)


def read_budgets() -> dict[str, int]:
    return tomllib.loads((HERE / "budgets.toml").read_text())["seconds"]


# Hypothesis takes a machine that does other work too for a slow test or a slow strategy.
settings.register_profile("beside other work", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("beside other work")


@pytest.fixture(autouse=True, scope="session")
def keys_at_once() -> Generator[None]:
    """A key that scrypt makes of a passphrase takes a fifth of a second, which is what it is for. Of what this process
    seals and opens itself it is made with less work; tests/runtime/test_passphrase.py has the real one."""

    def quick(words: str, salt: bytes) -> bytes:
        return hashlib.scrypt(words.encode(), salt=salt, n=2, r=1, p=1, dklen=passphrase.KEY_BYTES)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passphrase, "_key", quick)
        yield


@pytest.fixture(autouse=True, scope="session")
def migrations_read_once() -> Generator[None]:
    """A process opens one store and reads the migrations for it. This one opens thousands."""
    read, known = migrate.available, migrate.available()

    def available(folder: str | os.PathLike[str] = migrate.FOLDER) -> list[migrate.Migration]:
        return [*known] if folder == migrate.FOLDER else read(folder)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(migrate, "available", available)
        yield


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--budgets", action="store_true", help="fail when a suite takes longer than tests/budgets.toml allows"
    )


def pytest_configure(config: pytest.Config) -> None:
    # A script's background run ignores interrupts, and so would every program that a test starts and interrupts.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    config.pluginmanager.register(Costs(config), "costs")
    # Until all is collected, which makes hardly any garbage: a quarter of that work.
    gc.disable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Modules with long tests come first: a long one that is started last keeps one core busy and the others idle."""
    mark_slow(items)
    first = tomllib.loads((HERE / "budgets.toml").read_text())["first"]
    place = {str(HERE / name): number for number, name in enumerate(first)}
    items.sort(key=lambda item: place.get(str(item.path), len(place)))


def pytest_collection_finish() -> None:
    """What was collected stays to the end: no collection of garbage has to look at a million objects of it again."""
    gc.enable()
    gc.freeze()
    gc.set_threshold(YOUNG, 5, 5)
