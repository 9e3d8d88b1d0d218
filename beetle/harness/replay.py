"""Cross-store replay: the same recorded requests on several backends give equal reports and equal memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from beetle.contracts.harness import Fixture, ReplayDifference, ReplayResult
from beetle.contracts.names import BackendName
from beetle.harness.checks import MISSING, shown
from beetle.harness.running import REFUSED, Run

NOT_COMPARED: Mapping[str, str] = {
    "timings_ms": "how long it took",
    "uptime_s": "how long the runtime is open",
    "backend": "the backend's own name",
    "path": "where the store is",
    "bytes": "how large the store's file is",
    "wal_bytes": "only two of the backends keep a write-ahead log",
    "pages": "how many pages the store has",
    "ceiling_bytes": "the embedded backend has a ceiling of its own",
    "readers": "how many connections read",
    "queued_writes": "how many writes wait just now",
    "head": "the event log's hash covers ids of the store",
    "receipt": "signed with the store's own keys",
    "device": "the device that signed it",
    "next_cursor": "made with the store's own key",
    "confirm_token": "made with the store's own key",
    "digest": "keyed with the store's own key",
    "snapshot": "holds the store's own digests, or is sealed",
    "archive": "holds the store's own digests, or is sealed",
}
"""Fields of which only that they are there is compared, and why."""
MOST = 20
"""Differences that are told of one backend."""


def compare(fixture: Fixture, runs: Mapping[BackendName, Run]) -> ReplayResult:
    """Hold every backend's run of a fixture to the first one's."""
    (_, first), *others = runs.items()
    found = [each for backend, run in runs.items() for each in _unforeseen(backend, run)]
    for backend, run in others:
        mine = list(_between(backend, first, run))
        found.extend(mine[:MOST])
    return ReplayResult(
        name=fixture.name,
        equal=not found,
        backends=tuple(runs),
        steps=len(fixture.steps),
        fingerprint=first.fingerprint if all(run.fingerprint == first.fingerprint for _, run in others) else None,
        differences=tuple(found),
    )


def _unforeseen(backend: BackendName, run: Run) -> Iterator[ReplayDifference]:
    """Steps that were refused and should not have been, or the other way: runs that fail alike prove nothing."""
    for each in run.result.failures:
        if each.path.endswith(f".{REFUSED}"):
            yield ReplayDifference(step=each.step, path="$", backend=backend, expected=each.expected, found=each.found)


def _between(backend: BackendName, first: Run, other: Run) -> Iterator[ReplayDifference]:
    for step, (expected, found) in enumerate(zip(first.reports, other.reports, strict=True)):
        for path, a, b in differences(expected, found):
            yield ReplayDifference(step=step, path=path, backend=backend, expected=shown(a), found=shown(b))
    if first.fingerprint != other.fingerprint:
        yield ReplayDifference(
            step=None, path="$", backend=backend, expected=first.fingerprint, found=other.fingerprint
        )


def differences(expected: Any, found: Any, path: str = "$") -> Iterator[tuple[str, Any, Any]]:
    """The places where two reports differ, with what stands there in each."""
    if isinstance(expected, dict) and isinstance(found, dict):
        ours, theirs = cast("dict[str, Any]", expected), cast("dict[str, Any]", found)
        for name in dict.fromkeys((*ours, *theirs)):
            a, b = ours.get(name, MISSING), theirs.get(name, MISSING)
            if name in NOT_COMPARED:
                if (a is None or a is MISSING) != (b is None or b is MISSING):
                    yield f"{path}.{name}", a, b
            else:
                yield from differences(a, b, f"{path}.{name}")
    elif isinstance(expected, list) and isinstance(found, list):
        ours_, theirs_ = cast("list[Any]", expected), cast("list[Any]", found)
        if len(ours_) != len(theirs_):
            yield path, ours_, theirs_
        else:
            for index, (a, b) in enumerate(zip(ours_, theirs_, strict=True)):
                yield from differences(a, b, f"{path}[{index}]")
    elif type(expected) is not type(found) or expected != found:
        yield path, expected, found
