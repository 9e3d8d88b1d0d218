"""What a run found, as JSON, and two runs beside each other."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Literal

import msgspec

from beetle.contracts.errors import InvalidRequest
from beetle.named_tuple import NamedTuple

Plain = str | int | float | bool | None
ABSENT = "-"
NOISE = 0.1
"""Two runs of one program on one machine differ by this part."""


class Figure(msgspec.Struct, frozen=True):
    """One figure. `floor` is that of plain SQLite in the same run, None where there is none; `better` says whether less
    or more of it is. `value` is None where this machine does not tell it."""

    name: str
    title: str
    unit: str
    value: float | None
    floor: float | None
    better: Literal["less", "more"]

    @property
    def ratio(self) -> float | None:
        """How many times the floor."""
        return _quotient(self.value, self.floor)

    @property
    def sort(self) -> tuple[str, str, str]:
        """What two runs must have in common for their values to be compared."""
        return self.name, self.unit, self.better


def _quotient(value: float | None, of: float | None) -> float | None:
    """How many times `of` the value is; None where one is not told, or no number says it."""
    found = value / of if value is not None and of else math.inf
    return found if math.isfinite(found) else None


class Result(msgspec.Struct, frozen=True):
    """A whole run."""

    version: str
    device: dict[str, Plain]
    settings: dict[str, Plain]
    figures: tuple[Figure, ...]
    format: Literal["beetle-bench-1"] = "beetle-bench-1"


class Beside(NamedTuple):
    """One figure of two runs."""

    figure: Figure
    other: Figure

    @property
    def change(self) -> float | None:
        """How many times the first the second is."""
        return _quotient(self.other.value, self.figure.value)

    def plain(self) -> dict[str, Any]:
        """As JSON."""
        mine = self.figure
        return {"name": mine.name, "unit": mine.unit, "first": mine.value, "second": self.other.value,
                "ratio": self.change, "better": mine.better, "verdict": self.verdict}  # fmt: skip

    @property
    def verdict(self) -> str:
        """Whether the second is better; what differs by less than `NOISE` is not told apart."""
        if self.change is None or abs(self.change - 1) < NOISE:
            return ""
        return "better" if (self.change > 1) == (self.figure.better == "more") else "worse"


class Alone(NamedTuple):
    """A figure that only one of two runs has with this unit and this direction."""

    figure: Figure
    run: Literal["first", "second"]

    def plain(self) -> dict[str, Any]:
        """As JSON."""
        only = self.figure
        return {"name": only.name, "unit": only.unit, "value": only.value, "better": only.better, "run": self.run}


def read_result(path: str) -> Result:
    """A run that was written to a file.

    Raises:
        InvalidRequest: it cannot be read, or holds something else.
    """
    hint = "name two files that `beetle bench --out FILE` wrote"
    try:
        return msgspec.json.decode(Path(path).read_bytes(), type=Result)
    except OSError as error:
        raise InvalidRequest(reason=f"{path}: {error.strerror}", hint=hint) from None
    except (msgspec.ValidationError, msgspec.DecodeError) as error:
        raise InvalidRequest(reason=f"{path} is no result of `beetle bench`: {error}", hint=hint) from None
    except RecursionError:
        raise InvalidRequest(
            reason=f"{path} is no result of `beetle bench`: it is nested too deep", hint=hint
        ) from None


def beside(first: Result, second: Result) -> list[Beside]:
    """The figures that both have, in the same unit and with the same direction, in the order of the first."""
    others = {each.sort: each for each in second.figures}
    return [Beside(each, others[each.sort]) for each in first.figures if each.sort in others]


def alone(first: Result, second: Result) -> list[Alone]:
    """The rest of both."""
    mine, others = ({each.sort for each in run.figures} for run in (first, second))
    return [
        *(Alone(each, "first") for each in first.figures if each.sort not in others),
        *(Alone(each, "second") for each in second.figures if each.sort not in mine),
    ]


def differences(first: Result, second: Result) -> list[str]:
    """Settings and parts of the device that are not the same: what a difference of figures may come from."""
    mine, other = ({**run.device, **run.settings, "version": run.version} for run in (first, second))
    pairs = ((name, mine.get(name, ABSENT), other.get(name, ABSENT)) for name in {**mine, **other})
    return [f"{name}: {one}, {two}" for name, one, two in pairs if one != two]
