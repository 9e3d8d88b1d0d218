"""What a run found, as JSON, and two runs beside each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import msgspec

from beetle.contracts.errors import InvalidRequest
from beetle.named_tuple import NamedTuple

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
        return self.value / self.floor if self.value is not None and self.floor else None


class Result(msgspec.Struct, frozen=True):
    """A whole run."""

    version: str
    device: dict[str, Any]
    settings: dict[str, Any]
    figures: tuple[Figure, ...]
    format: Literal["beetle-bench-1"] = "beetle-bench-1"


class Beside(NamedTuple):
    """One figure of two runs."""

    figure: Figure
    other: Figure

    @property
    def change(self) -> float | None:
        """How many times the first the second is."""
        return self.other.value / self.figure.value if self.figure.value and self.other.value is not None else None

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


def beside(first: Result, second: Result) -> list[Beside]:
    """The figures that both have, in the order of the first."""
    others = {each.name: each for each in second.figures}
    return [Beside(each, others[each.name]) for each in first.figures if each.name in others]


def differences(first: Result, second: Result) -> list[str]:
    """Settings and parts of the device that are not the same: what a difference of figures may come from."""
    mine = {**first.device, **first.settings, "version": first.version}
    other = {**second.device, **second.settings, "version": second.version}
    return [f"{name}: {mine.get(name)}, {other.get(name)}" for name in mine if mine.get(name) != other.get(name)]
