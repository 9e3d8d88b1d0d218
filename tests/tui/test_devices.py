"""The devices area: what a person does with devices, at a real daemon."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator

import pytest
from rich.color import Color

from beetle.client import Client
from beetle.contracts.devices import Device
from beetle.contracts.envelope import DeviceAuth
from beetle.contracts.errors import Unauthorized
from beetle_tui.device_dialogs import Checklist, Code, KeyShown, code_lines
from beetle_tui.dialogs import Confirm
from beetle_tui.form import Form
from beetle_tui.screens.devices import Devices
from beetle_tui.split import Detail
from beetle_tui.table import Table
from tests.forked import Daemon
from tests.tui.showing import Shown, at, exported, opened, running, show

SIDES = {" ": (0, 0), "▄": (0, 1), "▀": (1, 0), "█": (1, 1)}
"""What a character of a code shows of its two modules: 1 is light."""


@pytest.fixture
def daemon() -> Iterator[Daemon]:
    with running() as found:
        yield found


@pytest.fixture
def operator(daemon: Daemon) -> Iterator[Client]:
    with daemon.client() as client:
        yield client


def add(client: Client, device_id: str = "kitchen", label: str = "Kitchen display") -> str:
    key = client.add_device(label=label, device_id=device_id, capabilities=("recall", "skill")).appKeyOnce
    assert key is not None
    return key


def known(client: Client, device_id: str = "kitchen") -> Device | None:
    return next((each for each in client.list_devices().devices if each.device_id == device_id), None)


async def opened_devices(shown: Shown) -> Devices:
    await shown.until_shown("1 Overview")
    await shown.press("3")
    await shown.until(lambda: isinstance(shown.console.screen, Devices) and shown.console.screen.filled)
    screen = shown.console.screen
    assert isinstance(screen, Devices)
    return screen


def chosen_id(screen: Devices) -> str | None:
    device: Device | None = screen.query_one(Table).chosen
    return None if device is None else device.device_id


async def answer(shown: Shown, key: str, *said: str) -> None:
    """Wait for a question that says this, and answer it."""
    await shown.until(lambda: isinstance(shown.console.screen, Confirm))
    await shown.until_shown(*said)
    await shown.press(key)


def test_where_there_is_no_device_it_says_how_one_comes(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        await opened_devices(shown)
        await shown.until_shown("No device: a adds one, and shows its key once.")
        await shown.press("u")
        await shown.until_shown("no device is chosen: a adds one")

    show(at(daemon), look)


def test_a_device_is_added_its_key_shown_once_and_good(daemon: Daemon, operator: Client) -> None:
    keys: list[str] = []

    async def look(shown: Shown) -> None:
        await opened_devices(shown)
        await shown.press("a")
        await shown.until(lambda: isinstance(shown.console.screen, Form))
        await shown.press("ctrl+s")
        await shown.until_shown("give it a label")
        await shown.press(*"Phone", "tab", *"phone", "ctrl+s")
        await shown.until(lambda: isinstance(shown.console.screen, Checklist))
        await shown.until_shown("0 of ", "[ ]  recall")
        await shown.press("down", "space", "space")
        await shown.until_shown("2 of ", "[x]  recall", "[x]  project")
        await shown.press("enter")
        await shown.until(lambda: isinstance(shown.console.screen, KeyShown))
        await shown.until_shown("it is not shown again", "The code is a credentials file.")
        assert shown.console.screen.query_one(Code).size.height == 19
        await shown.press("c")
        await shown.until_shown("43 characters handed to")
        keys.append(shown.console.clipboard)
        await shown.press("enter", "q")  # nothing closes it by accident
        assert isinstance(shown.console.screen, KeyShown)
        await shown.press("escape")
        await shown.until_shown("Phone (phone) has the key ", "> phone")
        assert keys[0] not in shown.text

    show(at(daemon), look)
    device = known(operator, "phone")
    assert device is not None and device.capabilities == ("recall", "project") and device.label == "Phone"
    with daemon.client(auth=DeviceAuth(device_id="phone", app_key=keys[0])) as phone:
        assert phone.hello().principal == "device:phone"


def test_what_the_daemon_finds_fault_with_is_asked_again_with_what_was_filled_in(
    daemon: Daemon, operator: Client
) -> None:
    add(operator)

    async def look(shown: Shown) -> None:
        await opened_devices(shown)
        await shown.press("a")
        await shown.until(lambda: isinstance(shown.console.screen, Form))
        await shown.press(*"Stove", "tab", *"kitchen", "ctrl+s")
        await shown.until(lambda: isinstance(shown.console.screen, Checklist))
        await shown.press("space", "enter")
        await shown.until_shown("conflict: the device 'kitchen' exists already", "Stove")
        await shown.press("ctrl+u", *"stove", "ctrl+s")
        await shown.until_shown("[x]  write", "1 of ")
        await shown.press("enter")
        await shown.until(lambda: isinstance(shown.console.screen, KeyShown))
        await shown.press("escape")
        await shown.until_shown("Stove (stove) has the key")

    show(at(daemon), look)


@pytest.mark.parametrize(
    ("theme", "colours"),
    [
        ("beetle-light", ("#ffffff", "#000000")),
        ("ansi", ("bright_white", "black")),
        ("monochrome", ("default", "default")),
    ],
)
def test_the_code_is_light_on_dark_whatever_the_theme(
    daemon: Daemon, operator: Client, theme: str, colours: tuple[str, str]
) -> None:
    add(operator)

    async def look(shown: Shown) -> None:
        shown.console.theme = theme
        await opened_devices(shown)
        await shown.press("o")
        await answer(shown, "y")
        await shown.until_shown("The code is a credentials file.")
        code = shown.console.screen.query_one(Code)
        line = next(strip for strip in code.render_lines(code.size.region) if "█" in strip.text)
        drawn = next(each.style for each in line if each.style is not None and "█" in each.text)
        assert tuple(_named(each) for each in (drawn.color, drawn.bgcolor)) == colours

    show(at(daemon), look)


def _named(colour: Color | None) -> str:
    return "default" if colour is None else colour.name


def test_the_credentials_are_written_to_a_file_that_the_command_line_takes(daemon: Daemon, tmp_path) -> None:
    path = tmp_path / "kitchen.json"

    async def look(shown: Shown) -> None:
        await opened_devices(shown)
        await shown.press("a")
        await shown.until(lambda: isinstance(shown.console.screen, Form))
        await shown.press(*"K", "ctrl+s")
        await shown.until(lambda: isinstance(shown.console.screen, Checklist))
        await shown.press("a", "enter")
        await shown.until(lambda: isinstance(shown.console.screen, KeyShown))
        for told in ("1 line written to", "exists already"):
            await shown.press("w")
            await shown.until_shown("Credentials file")
            await shown.press(*str(path), "enter")
            await shown.until_shown(*told.split())
        await shown.press("escape")
        await shown.until_shown("is not kept")
        await shown.press("y")
        await shown.until(lambda: isinstance(shown.console.screen, KeyShown))
        await shown.press("escape")

    show(at(daemon), look)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    held = json.loads(path.read_text())
    with daemon.client(auth=DeviceAuth(**held)) as client:
        assert client.hello().principal == f"device:{held['device_id']}"


def test_a_device_is_renamed(daemon: Daemon, operator: Client) -> None:
    add(operator)

    async def look(shown: Shown) -> None:
        await opened_devices(shown)
        await shown.press("n")
        await shown.until_shown("Rename the device")
        await shown.press("ctrl+u", *"Stove 台所", "enter")
        await shown.until_shown("kitchen is called Stove 台所", "─ Stove 台所 ─")

    show(at(daemon), look)
    device = known(operator)
    assert device is not None and device.label == "Stove 台所"


def test_a_suspended_device_is_refused_until_it_is_let_in_again(daemon: Daemon, operator: Client) -> None:
    key = add(operator)

    def asks() -> str:
        with daemon.client(auth=DeviceAuth(device_id="kitchen", app_key=key)) as device:
            return device.hello().principal

    async def look(shown: Shown) -> None:
        await opened_devices(shown)
        await shown.press("u")
        await answer(shown, "n", "Suspend the device?")
        await shown.until(lambda: isinstance(shown.console.screen, Devices))
        assert asks() == "device:kitchen"
        await shown.press("u")
        await answer(shown, "y", "is refused until it is active again", "connection")
        await shown.until_shown("is suspended", "SUSPENDED: u lets it in again")
        with pytest.raises(Unauthorized):
            asks()
        await shown.press("u")
        await shown.until_shown("is active again")
        assert asks() == "device:kitchen"

    show(at(daemon), look)


def test_another_key_makes_the_first_one_void(daemon: Daemon, operator: Client) -> None:
    first = add(operator)

    async def look(shown: Shown) -> None:
        await opened_devices(shown)
        await shown.press("o")
        before = known(operator)
        assert before is not None
        await answer(shown, "y", f"The key {before.appKeyFingerprint} is void at once")
        await shown.until(lambda: isinstance(shown.console.screen, KeyShown))
        await shown.press("c")
        await shown.until_shown("43 characters")
        assert shown.console.clipboard != first
        with daemon.client(auth=DeviceAuth(device_id="kitchen", app_key=shown.console.clipboard)) as device:
            device.hello()
        with pytest.raises(Unauthorized), daemon.client(auth=DeviceAuth(device_id="kitchen", app_key=first)) as device:
            device.hello()
        await shown.press("escape")
        await shown.until_shown("has the key")

    show(at(daemon), look)


def test_what_a_device_may_is_chosen_from_a_list(daemon: Daemon, operator: Client) -> None:
    add(operator)

    async def look(shown: Shown) -> None:
        await opened_devices(shown)
        await shown.press("c")
        await shown.until_shown("What Kitchen display (kitchen) may do", "[x]  recall", "[ ]  write", "2 of ")
        assert "admin" not in shown.text
        await shown.press("space", "enter")
        await shown.until_shown("may from its next request on: write, recall, skill")

    show(at(daemon), look)
    device = known(operator)
    assert device is not None and device.capabilities == ("write", "recall", "skill")


def test_a_revoked_device_comes_never_back_and_a_removed_one_is_gone(daemon: Daemon, operator: Client) -> None:
    add(operator)
    add(operator, "phone", "Phone")

    async def look(shown: Shown) -> None:
        screen = await opened_devices(shown)
        await shown.press("x")
        await answer(shown, "y", "is refused for good")
        await shown.until_shown("Kitchen display is revoked", "REVOKED")
        await shown.press("u")
        await shown.until_shown("Kitchen display (kitchen) is revoked, which is for good")
        await shown.press("d")
        await answer(shown, "y", "What it wrote stays", "device:kitchen")
        await shown.until_shown("Kitchen display (kitchen) is removed", "1 of 1 device")
        assert chosen_id(screen) == "phone"

    show(at(daemon), look)
    assert [each.device_id for each in operator.list_devices().devices] == ["phone"]


def test_devices_are_found_by_what_they_are_and_ordered(daemon: Daemon, operator: Client) -> None:
    for number, label in enumerate(("Zebra", "ant", "Bee")):
        add(operator, f"d{number}", label)
    operator.update_device(device_id="d1", state="suspended")

    def ids(shown: Shown) -> list[str]:
        return [line[2:4] for line in shown.lines if line[2:3] == "d" and line[3:4].isdigit()]

    async def look(shown: Shown) -> None:
        screen = await opened_devices(shown)
        await shown.until(lambda: ids(shown) == ["d0", "d1", "d2"])
        await shown.press("s")
        await shown.until(lambda: ids(shown) == ["d1", "d2", "d0"])
        await shown.until_shown("by label")
        assert chosen_id(screen) == "d0"  # it stays the chosen one
        await shown.press("slash", *"suspended", "enter")
        await shown.until(lambda: ids(shown) == ["d1"])
        await shown.until_shown("2 hidden by the filter")
        await shown.press("e")
        await shown.until_shown("whole, to a new file")
        assert [json.loads(each)["device_id"] for each in await exported(screen)] == ["d1"]
        await shown.press("escape", "slash", "escape")
        await shown.until(lambda: len(ids(shown)) == 3)

    show(at(daemon), look)


def test_what_others_do_to_devices_is_shown_by_itself(daemon: Daemon, operator: Client) -> None:
    key = add(operator)

    async def look(shown: Shown) -> None:
        await opened_devices(shown)
        await shown.until_shown("1 of 1 device")
        add(operator, "phone", "Phone")
        await shown.until_shown("1 of 2 devices")
        with daemon.client(auth=DeviceAuth(device_id="kitchen", app_key=key)) as device:
            device.hello()
            await shown.press("r")
            await shown.until_shown("1 open now")
            operator.remove_device(device_id="phone")
            await shown.until_shown("1 of 1 device")

    show(at(daemon), look)


@pytest.mark.parametrize("size", [(80, 24), (60, 16), (160, 48)])
def test_long_wide_and_hostile_labels_stay_in_their_column(
    daemon: Daemon, operator: Client, size: tuple[int, int]
) -> None:
    labels = ("台所" * 60, "שלום \u202e[b]x[/b]", "👩‍🚀🚀" * 20, "y" * 256)
    for number, label in enumerate(labels):
        add(operator, f"d{number}" + "x" * 100, label)

    async def look(shown: Shown) -> None:
        screen = await opened_devices(shown)
        await shown.until_shown("1 of 4 devices")
        assert sum(" active " in line for line in shown.lines[: size[1] // 2]) >= min(4, size[1] // 4 - 1)
        assert "\u202e" not in shown.text
        for _ in labels:
            await shown.press("enter", "end")
            await shown.until(lambda: screen.query_one(Detail).has_focus)
            await shown.press("escape", "down")
        await shown.press("c")
        await shown.until(lambda: isinstance(shown.console.screen, Checklist))
        await shown.press("end")
        await shown.until(lambda: "> [ ]  replication" in shown.text or "> [ ]  snapshot" in shown.text)

    show(at(daemon), look, size=size)


def test_a_thousand_devices_are_listed_and_gone_through(daemon: Daemon, operator: Client) -> None:
    for number in range(1000):
        add(operator, f"d{number:04}", f"Device {number}")

    async def look(shown: Shown) -> None:
        await opened_devices(shown)
        await shown.until_shown("1 of 1,000 devices")
        await shown.press("end")
        await shown.until_shown("> d0999", "1,000 of 1,000")
        operator.update_device(device_id="d0500", label="another")
        await shown.pilot.pause()
        await shown.press("r")
        await shown.until_shown("> d0999")

    show(at(daemon), look)


def test_who_may_list_devices_and_no_more_has_no_keys_for_more(daemon: Daemon, operator: Client) -> None:
    key = operator.add_device(label="Panel", device_id="panel", capabilities=("device", "console")).appKeyOnce
    assert key is not None

    async def look(shown: Shown) -> None:
        screen = await opened_devices(shown)
        await shown.until_shown("1 of 1 device")
        assert not {"a", "u", "o", "x", "d", "c", "n"} & set(screen.active_bindings)
        await shown.press("a")
        await shown.pilot.pause()
        assert shown.console.screen is screen

    show(at(daemon, auth=DeviceAuth(device_id="panel", app_key=key)), look)


def test_who_may_not_list_devices_is_told_so(daemon: Daemon, operator: Client) -> None:
    key = add(operator)

    async def look(shown: Shown) -> None:
        await shown.until_shown("1 Overview")
        await shown.press("3")
        await shown.until_shown("Could not read: forbidden: device.list needs the capability 'device'")

    show(at(daemon, auth=DeviceAuth(device_id="kitchen", app_key=key)), look)


def test_a_daemon_that_is_lost_while_a_device_is_added_is_told_and_nothing_breaks(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        await opened_devices(shown)
        await shown.press("a")
        await shown.until(lambda: isinstance(shown.console.screen, Form))
        await shown.press(*"K")
        daemon.kill()
        await shown.press("ctrl+s")
        await shown.until_shown("The daemon is lost", "daemon_unavailable")
        assert isinstance(shown.console.screen, Form), "what was typed is there"
        daemon.start()
        await shown.pilot.pause()
        shown.console.action_refresh()
        await shown.until(lambda: " live" in shown.lines[0])

    show(at(daemon), look, reconnect=lambda: at(daemon))


def test_devices_of_a_store_without_a_daemon_are_shown(tmp_path) -> None:
    async def look(shown: Shown) -> None:
        await opened_devices(shown)
        await shown.until_shown("No device: a adds one")

    show(opened(str(tmp_path / "own.db")), look)


@pytest.mark.parametrize(
    ("size", "told", "height"),
    [
        ((160, 48), "The code is a credentials file.", 19),
        ((80, 24), "The code is a credentials file.", 19),
        ((80, 20), "The code is the key alone.", 17),
        ((60, 16), "The code needs a larger terminal.", 0),
    ],
)
def test_the_code_is_the_largest_that_there_is_room_for(
    daemon: Daemon, operator: Client, size: tuple[int, int], told: str, height: int
) -> None:
    add(operator, "phone", "Phone")

    async def look(shown: Shown) -> None:
        await opened_devices(shown)
        await shown.press("o")
        await answer(shown, "y")
        await shown.until_shown(told)
        assert shown.console.screen.query_one(Code).size.height == height

    show(at(daemon), look, size=size)


def test_the_code_grows_and_shrinks_with_the_terminal(daemon: Daemon, operator: Client) -> None:
    add(operator, "phone", "Phone")

    async def look(shown: Shown) -> None:
        await opened_devices(shown)
        await shown.press("o")
        await answer(shown, "y")
        await shown.until_shown("The code is a credentials file.")
        await shown.pilot.resize_terminal(60, 16)
        await shown.until_shown("The code needs a larger terminal.")
        await shown.pilot.resize_terminal(200, 60)
        await shown.until_shown("The code is a credentials file.")

    show(at(daemon), look)


def test_what_is_drawn_is_the_code_with_what_is_light_lit() -> None:
    import segno

    text = json.dumps({"device_id": "kitchen", "app_key": "k" * 43})
    matrix = [[int(not dark) for dark in row] for row in segno.make(text, error="l", micro=False).matrix_iter(border=2)]
    drawn: list[list[int]] = []
    for line in code_lines(text):
        drawn += [[SIDES[each][0] for each in line], [SIDES[each][1] for each in line]]
    assert drawn[: len(matrix)] == matrix
    assert all(all(row) for row in drawn[len(matrix) :])
