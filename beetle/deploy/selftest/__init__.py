"""What this build proves of itself: `beetle doctor --self-test`.

A built program carries no test runner. The checks are an explicit tuple, and how many they are is written down apart
from it: checks that are silently not there make the self-test fail.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial

from beetle.contracts.errors import BeetleError
from beetle.deploy.selftest import contents, serving, stores
from beetle.deploy.selftest.workspace import CheckFailed, Workspace, temporary_workspace
from beetle.named_tuple import NamedTuple

__all__ = [
    "CHECKS",
    "EXPECTED",
    "Check",
    "CheckFailed",
    "Outcome",
    "Workspace",
    "quick",
    "run_checks",
    "temporary_workspace",
    "verdict",
]  # fmt: skip

EXPECTED = 20


class Check(NamedTuple):
    """One check: its name, what it proves, and what runs it.

    `run` answers what it looked at, for people. It raises CheckFailed for what it finds; an error of the product, one
    of the system and a missing module count as found too. Any other is a defect, which ends the whole self-test.
    """

    name: str
    proves: str
    run: Callable[[Workspace], str]


class Outcome(NamedTuple):
    """How one check ended; `detail` is what it looked at, or what is wrong. `seconds` of wall time."""

    name: str
    passed: bool
    detail: str
    seconds: float


CHECKS: tuple[Check, ...] = (
    Check("contracts", "every operation has a handler, a method and a request", lambda _: contents.contracts()),
    Check("messages", "requests and answers survive MessagePack", lambda _: contents.messages()),
    Check("errors", "every error key has an exit code", lambda _: contents.errors()),
    Check("commands", "every command says what it does", lambda _: contents.commands()),
    Check("profiles", "every profile exists and can be read", lambda _: contents.profiles()),
    Check("migrations", "every migration exists", lambda _: contents.migrations()),
    Check("sqlite", "SQLite has what the store needs", lambda _: stores.sqlite()),
    Check("in-memory", "a store in memory remembers", lambda _: stores.in_memory()),
    Check("store-sqlite", "a store of the sqlite backend remembers", partial(stores.on_disk, "sqlite")),
    Check("store-file", "a store of the file backend remembers", partial(stores.on_disk, "file")),
    Check("store-embedded", "a store of the embedded backend remembers", partial(stores.on_disk, "embedded")),
    Check("erasure", "erased content is in no byte of a store", stores.erasure),
    Check("writer", "writes that wait share a commit", stores.writer),
    Check("keys", "private material is sealed, and receipts are signed", stores.keys),
    Check("lock", "one process at a time has a store", stores.lock),
    Check("disk", "what is written can be synced", stores.disk),
    Check("daemon", "a daemon serves its socket", serving.daemon),
    Check("modules", "every module can be imported", lambda _: contents.modules()),
    Check("console", "the console starts", lambda _: contents.console()),
    Check("tree", "the tree is as it was built", lambda _: contents.built_tree()),
)


def run_checks(workspace: Workspace) -> Iterator[Outcome]:
    """Run every check, in order; an outcome as each ends."""
    for check in CHECKS:
        begun = time.monotonic()
        passed, detail = _run(check, workspace)
        yield Outcome(check.name, passed, detail, round(time.monotonic() - begun, 3))


def _run(check: Check, workspace: Workspace) -> tuple[bool, str]:
    try:
        return True, check.run(workspace) or check.proves
    except CheckFailed as wrong:
        return False, str(wrong)
    except BeetleError as error:
        return False, f"{error.key}: {error.message}"
    except ImportError as error:
        return False, f"this build leaves something out: {error.msg}"
    except OSError as error:
        return False, f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}"
    except Exception as defect:
        defect.add_note(f"failed: the self-test ended with its check {check.name!r}")
        raise


def verdict(ran: int, passed: int) -> str:
    """What is wrong with the numbers, or nothing: every expected check must have run, and passed."""
    if ran != EXPECTED:
        return f"{ran} checks ran, and {EXPECTED} are expected: this build does not know all of its checks"
    return "" if passed == ran else f"{ran - passed} of {EXPECTED} checks failed"


def quick() -> str:
    """The checks that need no disk and no time, for every `beetle doctor`; what they looked at.

    Raises:
        CheckFailed, BeetleError: as a check.
    """
    return "; ".join((stores.sqlite(), stores.in_memory()))
