"""Running one fixture on one backend."""

from __future__ import annotations

from typing import Any, cast

from beetle.contracts.codec import from_plain, to_us, to_wire
from beetle.contracts.errors import BeetleError
from beetle.contracts.harness import Expectation, Fixture, FixtureResult, FixtureStep, StepFailure
from beetle.contracts.names import BackendName
from beetle.harness.checks import MISSING, at, check, shown
from beetle.harness.files import KEPT
from beetle.harness.fixture_store import FixtureStore, temporary_store
from beetle.named_tuple import NamedTuple

REFUSED = "refused"
"""The one field of what stands for a report where a step was refused: the error's key."""


class Run(NamedTuple):
    """What one run of a fixture came to: its result, each step's report, and the fingerprint of what it left."""

    result: FixtureResult
    reports: tuple[dict[str, Any], ...]
    fingerprint: str


class _Steps:
    """The run of a fixture's steps in one store."""

    def __init__(self, store: FixtureStore) -> None:
        self._store = store
        self._kept: dict[str, Any] = {}
        self.failures: list[StepFailure] = []
        self.reports: list[dict[str, Any]] = []
        self.checks = 0

    def run(self, index: int, step: FixtureStep) -> None:
        """One step: ask, then hold the answer to what was expected."""
        here = f"$.steps[{index}]"
        self._store.wait(step.after_s)
        try:
            report = self._store.call(step.op, self._filled(step.args), step.asker, step.scope)
        except BeetleError as error:
            self.reports.append({REFUSED: error.key})
            wanted = "a report" if step.refused is None else f"the error {step.refused}"
            self.checks += step.refused is not None
            if error.key != step.refused:
                self._fail(index, step, f"{here}.refused", wanted, str(error))
            return
        self.reports.append(report)
        if step.refused is not None:
            self.checks += 1
            self._fail(index, step, f"{here}.refused", f"the error {step.refused}", shown(report))
        for number, each in enumerate(step.expect):
            self.checks += 1
            failure = check(self._expected(each), report)
            if failure is not None:
                self._fail(index, step, f"{here}.expect[{number}]", failure.expected, failure.found)
        for name, path in step.keep.items():
            value = at(report, path)
            self._kept[name] = None if value is MISSING else value
            if value is MISSING:
                self._fail(index, step, f"{here}.keep.{name}", f"a value at {path}", "nothing")

    def _fail(self, index: int, step: FixtureStep, path: str, expected: str, found: str) -> None:
        self.failures.append(StepFailure(step=index, op=step.op, path=path, expected=expected, found=found))

    def _expected(self, each: Expectation) -> Expectation:
        return from_plain(self._filled(to_wire(each)), type(each))

    def _filled(self, value: Any) -> Any:
        """A value with what was kept in the place of its name; one that is nothing but the name keeps its type."""
        if isinstance(value, str):
            alone = KEPT.fullmatch(value)
            if alone is not None:
                return self._kept.get(alone[1])
            return KEPT.sub(lambda found: str(self._kept.get(found[1])), value)
        if isinstance(value, dict):
            return {name: self._filled(each) for name, each in cast("dict[str, Any]", value).items()}
        if isinstance(value, (list, tuple)):
            return [self._filled(each) for each in cast("list[Any]", value)]
        return value


def run_fixture(fixture: Fixture, backend: BackendName) -> Run:
    """Every step of a fixture, in a store of its own."""
    with temporary_store(fixture.name, backend, to_us(fixture.start)) as store:
        steps = _Steps(store)
        for index, step in enumerate(fixture.steps):
            steps.run(index, step)
        fingerprint = store.fingerprint()
    result = FixtureResult(
        name=fixture.name,
        subject=fixture.subject,
        backend=backend,
        passed=not steps.failures,
        steps=len(fixture.steps),
        checks=steps.checks,
        failures=tuple(steps.failures),
    )
    return Run(result, tuple(steps.reports), fingerprint)
