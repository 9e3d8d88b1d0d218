"""The dialog that shows a device's key: all of its text stands in it, at every size."""

from __future__ import annotations

import pytest

from beetle_tui.device_dialogs import KeyShown
from beetle_tui.screens.devices import Devices
from tests.tui.showing import Shown, at, painted, running, show
from tests.tui.test_devices import answer, opened_devices


def words_of_the_key(shown: Shown) -> list[str]:
    """The lines beside or without the code, as far as they are in sight."""
    box, words = (shown.console.screen.query_one(each) for each in ("#box", "#words"))
    inside = box.scrollable_content_region
    lines = painted(shown.console)[inside.y : inside.bottom]
    return [strip.crop(words.region.x, inside.right).text.strip() for strip in lines]


@pytest.mark.parametrize(("size", "most"), [((60, 16), 60), ((79, 24), 160), ((80, 24), 160)])
def test_nothing_of_a_long_label_or_of_the_key_is_cut(size: tuple[int, int], most: int) -> None:
    """At 80 columns a scrollbar takes two of those of the text beside the code; 79 are too few for such a code."""
    plain = " ".join(f"word-{number:03}" for number in range(most // 9))
    wide = "".join(map(chr, range(0x4E00, 0x4E00 + most)))

    async def look(shown: Shown) -> None:
        await opened_devices(shown)
        for label in (plain, wide):
            await shown.press("o")
            await answer(shown, "y")
            await shown.until(lambda: isinstance(shown.console.screen, KeyShown))
            await shown.until_shown("Label", "it is not shown again")
            seen = words_of_the_key(shown)
            shown.console.screen.query_one("#box").scroll_end(animate=False, immediate=True)
            await shown.until(lambda: "Lost keys are" in shown.text)
            text = "".join("".join(dict.fromkeys([*seen, *words_of_the_key(shown)])).split())
            assert label.replace(" ", "") in text
            await shown.press("c")
            assert shown.console.clipboard in text
            await shown.press("escape")
            await shown.until(lambda: isinstance(shown.console.screen, Devices))
            await shown.press("down")

    with running() as daemon:
        with daemon.client() as operator:
            for device_id, label in (("a" * 21, plain), ("b" * 21, wide)):
                operator.add_device(label=label, device_id=device_id, capabilities=("recall",))
        show(at(daemon), look, size=size)
