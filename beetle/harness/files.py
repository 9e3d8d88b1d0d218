"""Reading fixtures from a folder of JSON files, strictly: what is wrong is told with its file and place."""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from beetle.contracts.codec import convert_request, unique_keys
from beetle.contracts.errors import BeetleError, InvalidRequest, NotFound
from beetle.contracts.harness import Benchmark, Fixture, FixtureStep
from beetle.contracts.operations import BY_NAME, Operation
from beetle.harness.checks import at
from beetle.named_tuple import NamedTuple

OWN_FOLDER = Path(__file__).parents[2] / "tests" / "data" / "fixtures"
"""Those of a source checkout."""
MOST_BYTES = 8 * 2**20
MOST_FILES = 1000
KEPT = re.compile(r"\$\{([a-z][a-z0-9_]*)\}")
NOT_IN_FIXTURES = frozenset({"harness", "close", "snapshot", "recover", "device", "transport"})
"""Capabilities of operations that are about the daemon or the machine, and no memory."""


class Loaded(NamedTuple):
    """What a folder holds, by name."""

    fixtures: tuple[Fixture, ...]
    benchmarks: tuple[Benchmark, ...]


def load(folder: str | None, names: tuple[str, ...]) -> Loaded:
    """The fixtures and benchmarks of a folder, or those of some names.

    Raises:
        NotFound: there is no such folder, nothing in it, or nothing of one of the names.
        InvalidRequest: a file is no fixture; the message names file and place.
    """
    place = OWN_FOLDER if folder is None else Path(folder)
    found = [_read(path) for path in _files(place)]
    known: dict[str, Fixture | Benchmark] = {}
    for path, each in found:
        if each.name in known:
            raise _broken(path, f"another fixture has the name {each.name!r}", "$.name")
        known[each.name] = each
    for name in names:
        if name not in known:
            raise NotFound(kind="fixture", name=name, listing=f"fixtures here: {', '.join(sorted(known))}")
    chosen = [each for name, each in sorted(known.items()) if not names or name in names]
    fixtures = tuple(each for each in chosen if isinstance(each, Fixture))
    return Loaded(fixtures, tuple(each for each in chosen if isinstance(each, Benchmark)))


def _files(folder: Path) -> list[Path]:
    try:
        found = sorted(each for each in os.listdir(folder) if each.endswith(".json"))
    except OSError as error:
        raise NotFound(
            kind="folder of fixtures", name=str(folder), listing=f"give a folder that can be read: {error.strerror}"
        ) from None
    if not found:
        raise NotFound(kind="fixture", name=f"{folder}/*.json", listing="give a folder that holds fixtures")
    if len(found) > MOST_FILES:
        raise InvalidRequest(
            reason=f"{folder} holds more than {MOST_FILES} fixtures", hint="name some of them", path="$.args.folder"
        )
    return [folder / each for each in found]


def _read(path: Path) -> tuple[Path, Fixture | Benchmark]:
    try:
        value = json.loads(_text(path), object_pairs_hook=unique_keys, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise _broken(path, str(error) or "it is nested too deeply", "$") from None
    try:
        fixture = cast("Fixture | Benchmark", convert_request(value, Fixture | Benchmark, "$"))
        if isinstance(fixture, Fixture):
            _check_steps(fixture)
        else:
            _check_answers(fixture)
    except BeetleError as error:
        raise _broken(path, error.message, str(error.details.get("path", "$"))) from None
    return path, fixture


def _text(path: Path) -> str:
    """The text of a regular file; a pipe or a device would be waited for."""
    descriptor = -1
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise _broken(path, "it is not a regular file", "$")
        if found.st_size > MOST_BYTES:
            raise _broken(path, f"it has more than {MOST_BYTES} bytes", "$")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read(MOST_BYTES).decode("utf-8")
    except UnicodeDecodeError:
        raise _broken(path, "it is not valid UTF-8", "$") from None
    except OSError as error:
        raise _broken(path, f"it cannot be read: {error.strerror}", "$") from None
    finally:
        if descriptor >= 0:
            os.close(descriptor)


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number here")


def _broken(path: Path, reason: str, where: str) -> InvalidRequest:
    return InvalidRequest(
        reason=f"{path}: {reason}{'' if where in reason else f' - at {where}'}",
        hint="see `beetle help harness run`",
        file=str(path),
        path=where,
    )


def _check_steps(fixture: Fixture) -> None:
    """Every operation is there, its arguments are understood, and what is put in was kept before."""
    kept: set[str] = set()
    for index, step in enumerate(fixture.steps):
        here = f"$.steps[{index}]"
        row = _row(step, here)
        for text in (*texts_in(step.args), *(text for each in step.expect for text in texts_in(each))):
            for name in KEPT.findall(text):
                if name not in kept:
                    raise InvalidRequest(reason=f"no earlier step stored {name!r} - at {here}", path=here)
        if step.refused is None:
            _check_arguments(step, row, f"{here}.args")
        kept |= set(step.keep)


def _check_arguments(step: FixtureStep, row: Operation, here: str) -> None:
    """The operation understands the arguments, but for a kept value, which need not be a text when it is put in."""
    try:
        convert_request(step.args, row.request, here)
    except InvalidRequest as error:
        path = str(error.details.get("path", here))
        value = at(step.args, f"${path.removeprefix(here)}") if path.startswith(here) else None
        if not (isinstance(value, str) and KEPT.fullmatch(value)):
            raise


def _row(step: FixtureStep, here: str) -> Operation:
    row = BY_NAME.get(step.op)
    if row is None:
        raise InvalidRequest(reason=f"no operation is named {step.op!r} - at {here}.op", path=f"{here}.op")
    if row.effect in ("stream", "admin") or row.capability in NOT_IN_FIXTURES:
        raise InvalidRequest(reason=f"{step.op} has no place in a fixture - at {here}.op", path=f"{here}.op")
    return row


def texts_in(value: Any) -> Iterator[str]:
    """Every text that stands in a value, of a struct too."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in cast("dict[str, Any]", value).values():
            yield from texts_in(each)
    elif isinstance(value, (list, tuple)):
        for each in cast("list[Any]", value):
            yield from texts_in(each)
    elif hasattr(value, "__struct_fields__"):
        for name in value.__struct_fields__:
            yield from texts_in(getattr(value, name))


def _check_answers(benchmark: Benchmark) -> None:
    known = {line.id for line in benchmark.lines}
    if len(known) < len(benchmark.lines):
        raise InvalidRequest(reason="two lines have the same id - at $.lines", path="$.lines")
    for index, question in enumerate(benchmark.questions):
        if not known.issuperset(question.answers):
            place = f"$.questions[{index}].answers"
            raise InvalidRequest(reason=f"an answer is not a line of the benchmark - at {place}", path=place)
