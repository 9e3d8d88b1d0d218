"""What a recall is tried with: planes, time, sizes, pressure; and the line of switches that shows and changes it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, ClassVar, NamedTuple, get_args

from rich.cells import cell_len
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.widget import Widget

from beetle.contracts.memory import Pressure
from beetle.contracts.names import PLANE_NAMES, PlaneName

PRESSURES: tuple[Pressure, ...] = get_args(Pressure)
MOST_HITS = 1_000
MOST_LENGTH = 10_000_000


class Settings(NamedTuple):
    """All of them. `as_of` is None for now; `length` is what the block may have, in characters."""

    planes: frozenset[PlaneName] = frozenset(PLANE_NAMES)
    as_of: datetime | None = None
    limit: int = 20
    length: int = 4000
    pressure: Pressure = "normal"

    def recall(self, query: str) -> dict[str, Any]:
        """Arguments of memory.recall."""
        narrowed = self.planes != frozenset(PLANE_NAMES)
        return {
            "query": query,
            "limit": self.limit,
            "planes": [each for each in PLANE_NAMES if each in self.planes] if narrowed else None,
            "as_of": None if self.as_of is None else self.as_of.isoformat(),
        }

    def project(self, query: str) -> dict[str, Any]:
        """Arguments of memory.project."""
        return {"user_query": query, "system_max_len": self.length, "pressure": self.pressure}

    def switched(self, plane: PlaneName) -> Settings:
        """With a plane more or less; the last one stays."""
        planes = self.planes ^ {plane}
        return self._replace(planes=planes or self.planes)

    def pressed(self) -> Settings:
        """With the next pressure."""
        return self._replace(pressure=PRESSURES[(PRESSURES.index(self.pressure) + 1) % len(PRESSURES)])


class Switch(NamedTuple):
    """One of the switches: its name, and what is shown of it."""

    name: str
    text: str


def switches(settings: Settings) -> Iterator[Switch]:
    """Every switch, in the order in which they stand."""
    for each in PLANE_NAMES:
        yield Switch(each, f"[{'x' if each in settings.planes else ' '}]{each}")
    yield Switch("as_of", f"as of {time_text(settings.as_of)}")
    yield Switch("limit", f"hits {settings.limit:,}")
    yield Switch("length", f"block {settings.length:,}")
    yield Switch("pressure", f"pressure {settings.pressure}")


class Switches(Widget, can_focus=True, inherit_bindings=False):
    """The switches, in as many lines as they take. Left and right choose one, space changes it."""

    DEFAULT_CSS = """
    Switches { height: auto; color: $label; text-wrap: nowrap; padding: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,h", "move(-1)", "Switch before", id="switch-previous", tooltip="the switch before", show=False),
        Binding("right,l", "move(1)", "Next switch", id="switch-next", tooltip="the next switch", show=False),
        Binding("space,enter", "change", "Change", id="switch-change", tooltip="change the switch"),
        Binding("escape,down,j", "leave", "To the hits", id="switch-leave", tooltip="to the hits", show=False),
    ]

    @dataclass
    class Changed(Message):
        """A switch was to be changed."""

        name: str

    class Left(Message):
        """The keys are to go on to the hits."""

    def __init__(self) -> None:
        super().__init__()
        self.settings = Settings()
        self._at = 0

    def show(self, settings: Settings) -> None:
        """Show these."""
        self.settings = settings
        self.refresh(layout=True)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """The lines that they take."""
        del container, viewport
        return len(self._lines(width))

    def render(self) -> Content:
        """The chosen one is reversed while the keys work here."""
        chosen = list(switches(self.settings))[self._at].name if self.has_focus else None
        return Content("\n").join(
            Content(_gap(line[0])).join(
                Content.styled(each.text, "reverse" if each.name == chosen else "") for each in line
            )
            for line in self._lines(self.content_size.width)
        )

    def on_focus(self) -> None:
        """The chosen one is drawn otherwise."""
        self.refresh()

    def on_blur(self) -> None:
        """See on_focus."""
        self.refresh()

    def action_move(self, steps: int) -> None:
        """Another one; behind the last comes the first."""
        self._at = (self._at + steps) % len(list(switches(self.settings)))
        self.refresh()

    def action_change(self) -> None:
        """Tell that the chosen one is to be changed."""
        self.post_message(self.Changed(list(switches(self.settings))[self._at].name))

    def action_leave(self) -> None:
        """Tell that the keys are to go on."""
        self.post_message(self.Left())

    def _lines(self, width: int) -> list[list[Switch]]:
        lines: list[list[Switch]] = [[]]
        room = width
        for each in switches(self.settings):
            needed = cell_len(each.text) + len(_gap(each))
            # The planes and what is not a plane are two groups, each from a line of its own.
            if lines[-1] and (needed - len(_gap(each)) > room or each.name == "as_of"):
                lines.append([])
                room = width
            lines[-1].append(each)
            room -= needed
        return lines


def _gap(switch: Switch) -> str:
    """All six planes fit in a line of 80 cells."""
    return " " if switch.name in PLANE_NAMES else "   "


def time_text(at: datetime | None) -> str:
    """A time as it is shown and typed."""
    return "now" if at is None else f"{at:%Y-%m-%d %H:%M:%S}Z"


def read_time(text: str) -> datetime | None:
    """A time that a person typed, in UTC unless it says otherwise; None for nothing or `now`.

    Raises:
        ValueError: it is no time.
    """
    text = text.strip()
    if text.casefold() in ("", "now"):
        return None
    at = datetime.fromisoformat(text)
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)


def time_fault(text: str) -> str | None:
    """What is wrong with a time."""
    try:
        read_time(text)
    except (ValueError, OverflowError):
        return "a time such as 2026-03-02 08:12, in UTC; or nothing for now"
    return None


def number_fault(text: str, least: int, most: int) -> str | None:
    """What is wrong with a number."""
    text = text.strip().replace(",", "")
    right = text.isascii() and text.isdigit() and len(text) <= len(str(most)) and least <= int(text) <= most
    return None if right else f"a number from {least:,} to {most:,}"
