"""The suites' budgets, that going over one is told with its slowest tests, and what the quick run leaves out."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from tests import conftest
from tests.conftest import Cost, Costs
from tests.tiers import HALVES, RULES, is_in_other_half, is_slow, on_other_stores

HERE = Path(__file__).parent
TABLE = tomllib.loads((HERE / "budgets.toml").read_text())
MOST = 920
"""Seconds of work that all suites together may have; what they take is about two thirds of it."""


def told(config: pytest.Config, *costs: Cost) -> list[str]:
    found = Costs(config)
    found.all += costs
    return found.complaints()


@pytest.fixture(autouse=True)
def two_suites(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conftest, "read_budgets", lambda: {"store": 10, "top": 999})


def test_every_suite_has_a_budget_and_their_sum_fits_the_run() -> None:
    folders = {each.parent.relative_to(HERE).parts[0] for each in HERE.glob("*/**/test_*.py")}
    assert {*folders, "top"} == set(TABLE["seconds"])
    assert sum(TABLE["seconds"].values()) <= MOST
    assert all((HERE / each).exists() for each in TABLE["first"])


def test_a_suite_within_its_budget_is_not_told_of(pytestconfig: pytest.Config) -> None:
    assert told(pytestconfig, Cost("tests/store/test_a.py::b", 9.9, 12), Cost("tests/test_c.py::d", 4.9, 5)) == []


def test_a_suite_beyond_its_budget_is_told_of_with_its_ten_slowest_tests(pytestconfig: pytest.Config) -> None:
    costs = [Cost(f"tests/store/test_a.py::b{number}", number / 5, 1) for number in range(12)]
    first, *slowest = told(pytestconfig, *costs)
    assert first == "store took 13.2 s of work; its budget is 10 s. Slowest:"
    assert [line.split("::")[1] for line in slowest] == [f"b{number}" for number in range(11, 1, -1)]


def test_a_suite_without_a_budget_and_a_test_that_waits_are_told_of(pytestconfig: pytest.Config) -> None:
    usual = Cost("tests/test_c.py::d", 900, 900)
    fresh, idle = Cost("tests/new/test_a.py::b", 1, 1), Cost("tests/store/test_a.py::b", 0.1, 30)
    new, waits = told(pytestconfig, usual, fresh, idle)
    assert new == "new has no budget in tests/budgets.toml"
    assert waits == "tests/store/test_a.py::b waits: 30 s by the clock for 0.1 s of work"


def test_on_a_crowded_machine_no_test_is_taken_for_one_that_waits(pytestconfig: pytest.Config) -> None:
    assert told(pytestconfig, *(Cost("tests/store/test_a.py::b", 2, 30) for _ in range(4))) == []


def test_every_test_that_the_quick_run_leaves_out_exists() -> None:
    for name in RULES:
        file, _, function = name.partition("::")
        assert f"def {function}(" in (HERE / file).read_text(), name


def test_of_some_files_the_quick_run_keeps_about_half_and_a_tests_variants_together() -> None:
    assert all((HERE / each).is_file() for each in HALVES)
    tests = [f"{file}::test_{number}" for file in HALVES for number in range(100)]
    left = [each for each in tests if is_in_other_half(each)]
    assert 0.4 < len(left) / len(tests) < 0.6
    assert all(is_in_other_half(f"{each}[3]") is (each in left) for each in tests)
    assert not is_in_other_half(left[0].replace(".py", "_more.py"))


def test_the_quick_run_keeps_the_variants_that_are_named_and_leaves_out_the_others() -> None:
    rules = {"a.py::test_all": (), "a.py::test_some": ("live", "60-")}
    assert is_slow("a.py::test_all", rules) and is_slow("a.py::test_all[live]", rules)
    variants = ("live-owner", "60-sqlite", "gone", "160")
    kept = [each for each in variants if not is_slow(f"a.py::test_some[{each}]", rules)]
    assert kept == ["live-owner", "60-sqlite"]
    assert not is_slow("a.py::test_other[live]", rules)


def test_of_each_test_that_differs_in_its_kind_of_store_one_stays() -> None:
    stores = ("sqlite", "embedded", "file")
    shapes = ("[{}]", "[12-{}]", "[{}-kill]", "[12-{}-kill]")
    tests = {
        f"{n}{shape}": [f"a.py::test_{n}{shape.format(store)}" for store in stores]
        for n in range(9)
        for shape in shapes
    }
    single = ["a.py::test_x[sqlite]", "a.py::test_y[3-file-kill]", "a.py::test_z[sqlite_busy]", "a.py::test_z"]
    left = on_other_stores([*single, *(each for variants in tests.values() for each in variants)])
    stay = {name: [each for each in variants if each not in left] for name, variants in tests.items()}
    assert {len(each) for each in stay.values()} == {1} and not left & set(single)
    assert {store for store in stores for (each,) in stay.values() if store in each} == set(stores)
