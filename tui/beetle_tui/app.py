"""The console: keys, areas, themes, and the line to what it shows."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import ClassVar, cast

from textual.app import App
from textual.binding import Binding, BindingType
from textual.events import Event, InputEvent, Key, MouseUp, Paste
from textual.filter import Monochrome, NoColor

from beetle.contracts.common import MemoryIdentity, MemoryScope
from beetle.contracts.errors import BeetleError
from beetle_tui.area import AreaScreen, Shared
from beetle_tui.charset import UTF_8
from beetle_tui.dialogs import Editing, QuitUnsaved
from beetle_tui.driver import TerminalDriver, driver_for
from beetle_tui.help import HelpScreen
from beetle_tui.keys import bindings_of, check_keys, keys_for, sent_keys_for
from beetle_tui.link import Link, Lost
from beetle_tui.messages import AreaWanted, InputBroken, KeyTaken, RefFollowed, StoreVerified
from beetle_tui.operations import operation_entries, run_operation
from beetle_tui.palette import Entry, Palette
from beetle_tui.places import places
from beetle_tui.screens import SCREENS
from beetle_tui.source import Source, StoreSource
from beetle_tui.theme import DARK, LIGHT, MONOCHROME, THEME_NAMES, THEMES
from beetle_tui.too_small import LOW, NARROW, too_small

AREA_OF_PLANE: Mapping[str, str] = {
    "evidence": "transcripts",
    "procedural": "skills",
    "agent_skill": "skills",
    "long_term": "memory",
    "chunks": "memory",
    "thoughts": "chains",
    "toc": "time",
}
"""Where a ref is shown, by its plane: names of areas."""
NOT_IN_THE_PALETTE = frozenset({"palette", "quit-always", "suspend"})
UNSEEN = ("quit", "quit-always", "suspend")
"""Bindings whose keys work in a terminal that is too small, where nobody sees what another key would act on."""


class Console(App[None], inherit_bindings=False):
    """The terminal console of one daemon or store."""

    DEFAULT_MODE: ClassVar = SCREENS[0].name
    HORIZONTAL_BREAKPOINTS = NARROW
    VERTICAL_BREAKPOINTS = LOW
    ENABLE_COMMAND_PALETTE: ClassVar = False
    BINDINGS: ClassVar[list[BindingType]] = [
        *(
            Binding(area.key, f"show('{area.name}')", area.title, id=area.name, tooltip=f"{area.title}: {area.summary}",
                    show=False)
            for area in SCREENS
        ),
        Binding("r", "refresh", "Refresh", id="refresh", tooltip="read again; try a lost daemon at once",
                show=False),
        Binding("t", "next_theme", "Theme", id="theme", tooltip="other colours: dark, light, contrast, 16, none",
                show=False),
        Binding("ctrl+p", "palette", "Commands", id="palette", tooltip="find a command by its name"),
        Binding("question_mark,f1", "help", "Help", id="help", tooltip="every key of this screen"),
        Binding("q", "quit", "Quit", id="quit", tooltip="end the console"),
        Binding("ctrl+q,ctrl+c", "quit", "Quit", id="quit-always", tooltip="end the console, wherever you are",
                show=False, priority=True),
        Binding("ctrl+z", "suspend_process", "Suspend", id="suspend", tooltip="back to the shell; `fg` returns here",
                show=False),
    ]  # fmt: skip

    areas = SCREENS

    def __init__(
        self,
        source: Source,
        reconnect: Callable[[], Source] | None = None,
        *,
        theme: str = DARK.name,
        keys: Mapping[str, str] | None = None,
        charset: str = UTF_8,
    ) -> None:
        """See Link for `reconnect`. The console closes the source when it ends. `keys` are by the ids of bindings;
        `charset` is what the terminal can show.

        Raises:
            NoSuchKey: one of the keys, or what it is for, is not there.
            KeyTaken: one of the keys is another action's too.
        """
        check_keys(keys or {}, places(type(self)))
        super().__init__(driver_class=driver_for(charset))
        self.link = Link(self, source, reconnect)
        self.shared = Shared(self.link, self.areas, charset)
        for area in self.areas:
            self.add_mode(area.name, partial(area.screen, self.shared))
        self.opened: list[AreaScreen] = []
        self.defect: BaseException | None = None
        # A line to a small board may be slow, and what moves is sent again and again.
        self.animation_level = "none"
        # Textual's own makes greys of the colours; whoever asks for no colour means none.
        self._plain = NoColor(enabled=False)
        self._filters[:] = [*(each for each in self._filters if not isinstance(each, Monochrome)), self._plain]
        for each in THEMES:
            self.register_theme(each)
        self.theme = MONOCHROME.name if self.no_color else theme
        self.set_keymap(dict(keys or {}))

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Our own names of colours, for whatever theme; the style is read before a theme is."""
        return DARK.variables

    def watch_theme(self, theme: str) -> None:
        """Widgets of Textual's have colours of their own in a theme of the terminal's: take those too."""
        self._plain.enabled = theme == MONOCHROME.name

    def commands(self) -> Iterator[Entry]:
        """What the palette offers at once: every area, what can be done in the shown one, and everywhere."""
        for area in self.areas:
            yield Entry(area.title, f"show('{area.name}')", area.summary)
        kinds = [each for each in type(self.area).__mro__ if issubclass(each, AreaScreen)]
        for binding in dict.fromkeys(each for kind in kinds for each in bindings_of(kind)):
            name, _, rest = binding.action.partition("(")
            if "." not in name and self.area.check_action(name, ()):
                yield Entry(binding.description, f"screen.{name}{'(' if rest else ''}{rest}", binding.tooltip)
        for binding in bindings_of(Console):
            if binding.id not in NOT_IN_THE_PALETTE and not binding.action.startswith("show("):
                yield Entry(binding.description, binding.action, binding.tooltip)

    def on_mount(self) -> None:
        """Begin to look."""
        if not self.is_headless:
            for number in (signal.SIGTERM, signal.SIGINT):
                asyncio.get_running_loop().add_signal_handler(number, self.exit)
        self.app_resume_signal.subscribe(self, self._paint_again)
        self.link.start()

    async def on_event(self, event: Event) -> None:
        """See TerminalDriver: a key is followed to where it is taken. None goes on while nothing can be shown."""
        driver = self._driver
        if isinstance(event, InputEvent | Paste) and not event.is_forwarded and too_small(self.size):
            await self._take_unseen(event)
            if isinstance(event, Key) and isinstance(driver, TerminalDriver):
                driver.key_taken()
            return
        if not isinstance(event, Key) or event.is_forwarded or not isinstance(driver, TerminalDriver):
            await super().on_event(event)
            return
        focused = self.focused
        await super().on_event(event)
        target = focused or self.screen
        typed = focused is not None and focused.check_consume_key(event.key, event.character)
        if typed or not event.is_forwarded or not target.post_message(KeyTaken(target, 1)):
            driver.key_taken()

    async def _take_unseen(self, event: InputEvent | Paste) -> None:
        """What comes to a screen that is covered: nothing of it goes on but a key that quits or suspends."""
        if isinstance(event, Key):
            kept = (each for each in bindings_of(Console) if each.id in UNSEEN)
            action = next((each.action for each in kept if event.key in sent_keys_for(self, each.id or "")), None)
            if action is not None:
                await self.run_action(action)
        elif isinstance(event, MouseUp):
            self.capture_mouse(None)  # what was being dragged is let go

    def on_key_taken(self, event: KeyTaken) -> None:
        """The key has come here before it; what it posted on its way has not yet."""
        again = KeyTaken(event.target, event.rounds - 1)
        if (not event.rounds or not event.target.post_message(again)) and isinstance(self._driver, TerminalDriver):
            self._driver.key_taken()

    async def _shutdown(self) -> None:
        # What still reads would look for widgets that are gone, and end the console with an error.
        self.workers.cancel_all()
        await super()._shutdown()

    def on_unmount(self) -> None:
        """End what runs beside the screen."""
        self.link.close()

    def on_link_changed(self) -> None:
        """Tell the area that is shown; the others look when they are shown."""
        for screen in self.screen_stack:
            if isinstance(screen, AreaScreen):
                screen.show_state()

    def on_changed(self) -> None:
        """Every area that has been shown is outdated."""
        for screen in self.opened:
            screen.outdate()

    def on_area_screen_opened(self, event: AreaScreen.Opened) -> None:
        """From now on it is told of changes; of those until now it was told nothing."""
        self.opened.append(event.area)
        event.area.read_first()

    async def on_area_wanted(self, event: AreaWanted) -> None:
        """As its key does."""
        await self.action_show(event.name)

    def on_ref_followed(self, event: RefFollowed) -> None:
        """Show what it names."""
        self.go(event.ref)

    def on_store_verified(self, event: StoreVerified) -> None:
        """Other areas say it too."""
        self.shared.faults = event.faults

    def on_input_broken(self, event: InputBroken) -> None:
        """Without keys there is nothing to do."""
        self.end_with(event.error)

    @property
    def area(self) -> AreaScreen:
        """The area that is shown, below whatever dialog."""
        return cast("AreaScreen", self.screen_stack[0])

    def go(self, ref: str) -> None:
        """Show what a ref names, in the area of its plane; where no area has that plane, say so."""
        name = AREA_OF_PLANE.get(ref.partition(":")[0])
        if name is None or all(each.name != name for each in self.areas):
            self.area.show_notice(f"no area of the console shows {ref}")
            return
        self._lead(name, lambda area: area.open_ref(ref))

    def _lead(self, name: str, then: Callable[[AreaScreen], None]) -> None:
        self.run_worker(partial(self._go, name, then), name="go", group="go", exclusive=True)

    async def _go(self, name: str, then: Callable[[AreaScreen], None]) -> None:
        await self.switch_mode(name)
        then(self.area)

    async def action_show(self, name: str) -> None:
        """Go to an area; where the one that is shown names a place of it, to that."""
        place = self.area.way_to(name)
        if place:
            self._lead(name, lambda area: area.open_place(place))
        else:
            await self.switch_mode(name)  # the next key is for the area that is shown then

    async def action_quit(self) -> None:
        """End; what was typed and is nowhere else is asked about first, unless that is being asked."""
        held = (screen for stack in self._screen_stacks.values() for screen in stack if isinstance(screen, Editing))
        if isinstance(self.screen, QuitUnsaved) or not any(each.unsaved for each in held):
            self.exit()
        else:
            keys = " or ".join(keys_for(self, "quit-always"))
            self.push_screen(QuitUnsaved(keys), lambda agreed: self.exit() if agreed else None)

    def action_refresh(self) -> None:
        """Read the area again, or try the lost daemon."""
        self.link.retry()
        if not isinstance(self.link.state, Lost):
            for screen in self.screen_stack:
                if isinstance(screen, AreaScreen):
                    screen.read_now()

    def action_next_theme(self) -> None:
        """The next one; without colours there is but one."""
        if self.no_color:
            self.area.show_notice("NO_COLOR is set: there is one theme without colours")
        else:
            self.theme = THEME_NAMES[(THEME_NAMES.index(self.theme) + 1) % len(THEME_NAMES)]

    def action_help(self) -> None:
        """The keys of the area that is shown."""
        self.push_screen(HelpScreen(self.screen))

    async def action_palette(self) -> None:
        """Find a command, and run it. The key has done what it does once there is a line for what is typed next."""
        palette = Palette(tuple(self.commands()), lambda: operation_entries(self.link))
        await self.push_screen(palette, self._run_chosen)

    def action_operation(self, name: str) -> None:
        """Fill in the form of an operation, run it, and see its report."""
        run = partial(run_operation, self, self.link, name)
        self.run_worker(run, name="operation", group="operation", exclusive=True)

    async def _run_chosen(self, action: str | None) -> None:
        if action is not None:
            await self.run_action(action)

    def _paint_again(self, _: object) -> None:
        """After `fg`, nothing is on the terminal, and nothing of what is shown has changed."""
        self.screen.refresh()

    def _fatal_error(self) -> None:
        # Textual's own prints the values of every variable on the way: some of them are nobody's business.
        self.end_with(sys.exc_info()[1] or RuntimeError())

    def end_with(self, defect: BaseException) -> None:
        """End on what no one foresaw; whoever started the console tells it."""
        self.defect = defect
        self.exit(return_code=1)


CHECK_SECONDS = 30.0
CHECK_PROFILE = "profile-desktop-linux-embedded-sdk"
"""One that allows a store in memory."""


def start_check() -> str:
    """Start the console without a terminal, on a store in memory, and look at all of it: proof that a build is whole.

    Answers with what was wrong, or with nothing.
    """
    from beetle.open import open_embedded

    try:
        embedded = open_embedded(
            store="in-memory",
            profile=CHECK_PROFILE,
            backend="in-memory",
            identity=MemoryIdentity(),
            scope=MemoryScope(),
            transport="cli",
        )
        return asyncio.run(_look_around(Console(StoreSource(embedded))))
    except (BeetleError, ImportError, OSError) as error:
        return f"{type(error).__name__}: {error}"


async def _look_around(console: Console) -> str:
    async with console.run_test(size=(80, 24)) as pilot:

        async def comes(happened: Callable[[], bool]) -> bool:
            end = time.monotonic() + CHECK_SECONDS
            while not happened() and time.monotonic() < end:
                await pilot.pause(0.02)
            return happened()

        def filled() -> bool:
            return isinstance(console.screen, AreaScreen) and console.screen.filled

        for area in console.areas:
            await pilot.press(area.key)
            if not await comes(lambda name=area.name: console.current_mode == name and filled()):
                return f"the area {area.name} was not filled in {CHECK_SECONDS:g} s"
        for key, screen in (("question_mark", HelpScreen), ("ctrl+p", Palette)):
            await pilot.press(key)
            if not await comes(lambda screen=screen: isinstance(console.screen, screen)):
                return f"{screen.__name__} did not open"
            await pilot.press("escape")
            await comes(filled)
        await pilot.press("t")
        if not await comes(lambda: console.theme == LIGHT.name):
            return "the theme did not change"
    return ""
