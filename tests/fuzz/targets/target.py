"""What a target is: bytes go in, and nothing may come out but what `contract` allows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Any, ClassVar

from beetle import MemoryRuntime
from beetle.contracts.common import WireScope
from beetle.contracts.errors import DeadlineExceeded
from beetle.store import snapshot_file
from beetle.store.engine.store import Store
from tests.fuzz.contract import Broken, profiled, refusal_of
from tests.fuzz.mutation import changed_bytes
from tests.store.conftest import open_runtime, store_of

VERIFY_EVERY = 64
"""Inputs between two walks of a whole store that none of them has made grow."""
TRIES = 20
GROWN = 2_000
"""Rows beyond which a store is made anew: each look at it would take longer and longer."""


class Target(ABC):
    """One surface. It is called with an input; `seeds` are valid inputs, made by the product's own encoders."""

    packages: ClassVar[tuple[str, ...]] = ("beetle",)
    """What the coverage-guided fuzzer watches."""
    most_bytes: ClassVar[int] = 16_384
    tokens: ClassVar[tuple[bytes, ...]] = ()

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @abstractmethod
    def __call__(self, data: bytes) -> None:
        """Feed one input. Raises what is no typed error, and Broken for a broken contract."""

    @abstractmethod
    def seeds(self) -> list[bytes]:
        """Valid inputs."""

    def changed(self, dice: Random, data: bytes) -> bytes:
        """An input that is nearly valid: the checks in front of what is changed hold again."""
        return changed_bytes(dice, data, self.tokens)

    def renew(self) -> None:
        """Go on with a fresh store, after an input that has broken the contract."""
        return

    def close(self) -> None:
        """Look at what all inputs together have left."""
        return

    def __enter__(self) -> Target:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: BaseException | TracebackType | None) -> None:
        if kind is None:
            self.close()


def counts_of(store: Store) -> dict[str, int]:
    """How many rows of each sort a whole store has."""
    with store.read() as tx:
        return snapshot_file.facts_of(tx).counts


def patiently(ask: Callable[[], Any]) -> Any:
    """The answer of a call that a busy machine, or an instrumented import, may keep beyond its deadline."""
    for _ in range(TRIES):
        try:
            return ask()
        except DeadlineExceeded:
            continue
    return ask()


class Memory:
    """A store that inputs are put into. A refused one changes no count, and the store stays whole whatever comes."""

    def __init__(
        self,
        folder: Path,
        prepare: Callable[[Memory], None] | None = None,
        before: Callable[[Path], None] | None = None,
    ) -> None:
        self._folder = folder
        self._prepare = prepare
        self._before = before
        self._number = 0
        self._inputs = 0
        self.runtime: MemoryRuntime
        self._open()

    @property
    def path(self) -> Path:
        return self._folder / f"s{self._number}" / "b.db"

    def _open(self) -> None:
        self._number += 1
        self.path.parent.mkdir(parents=True)
        if self._before is not None:
            self._before(self.path)
        self.runtime = open_runtime(self.path)
        if self._prepare is not None:
            self._prepare(self)
        self.counts = counts_of(store_of(self.runtime))

    def call(self, operation: str, arguments: Any, scope: WireScope | None = None) -> Any:
        """The report of an operation; on a busy machine too."""
        return patiently(lambda: self.runtime.call(operation, arguments, scope=scope))

    def ask(self, operation: str, arguments: Any, scope: WireScope | None = None, **more: Any) -> Any:
        """What an input asks for: the report, or None where it was refused and nothing has changed."""
        report: list[Any] = []
        refused = refusal_of(
            lambda: report.append(self.call(operation, arguments, scope)), allowed=more.get("allowed", ())
        )
        self._inputs += 1
        now = counts_of(store_of(self.runtime))
        if refused is not None and now != self.counts:
            raise Broken(f"{operation} was refused with {refused.key}, and left {_difference(self.counts, now)}")
        if now != self.counts or self._inputs % VERIFY_EVERY == 0:
            self.verify()
        self.counts = now
        if sum(now.values()) > GROWN:
            self.renew()
        return report[0] if report else None

    def verify(self) -> None:
        """Raises Broken for a store that is not whole."""
        with profiled(None):
            report = self.runtime.verify_store()
        if not report.clean:
            raise Broken(f"the store is not whole: {report.findings}")

    def renew(self) -> None:
        """Go on with a fresh store."""
        import shutil

        self.runtime.close()
        shutil.rmtree(self.path.parent)
        self._open()

    def close(self) -> None:
        self.verify()
        self.runtime.close()


def _difference(before: dict[str, int], now: dict[str, int]) -> dict[str, int]:
    return {
        name: now.get(name, 0) - before.get(name, 0) for name in {*before, *now} if now.get(name) != before.get(name)
    }
