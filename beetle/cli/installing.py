"""install and uninstall: where everything goes, what the service may do, and what a person reads of it."""

from __future__ import annotations

import os
import re
import shlex
import sys
from argparse import SUPPRESS, Namespace
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from beetle.cli.parser import Parser, typed_option
from beetle.cli.session import holder_in_view
from beetle.contracts.errors import CapabilityHidden, Forbidden, InvalidRequest

if TYPE_CHECKING:
    from beetle.deploy.apply import Report
    from beetle.deploy.layout import InstallOptions, Layout, Limits, Settings
    from beetle.deploy.machine import Machine
    from beetle.deploy.steps import StepResult
    from beetle.runtime.host.config import Config

SYSTEM_TOOLS = "/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin"
SIDECAR_MIB, SIDECAR_THREADS = 128, 32
"""What the replica's sidecar may take beside the daemon: it has been seen to take 40 MiB."""
OWN_THREADS = 32
"""Threads of the daemon besides those of connections and readers: writer, watchdog, jobs, a sidecar's few."""

SYSTEMD = ("/run/systemd/system", "/usr/lib/systemd/systemd", "/lib/systemd/systemd")
"""Where systemd runs, or is installed to run at the next start."""


class OnlyFrozen(CapabilityHidden):
    template = "this beetle runs from Python's own folders; `beetle install` installs the one-file program"
    hint_template = "`pip install .` in a checkout puts this one into an environment"


def fill_places(parser: Parser) -> None:
    """Where an installation is; what install and uninstall share."""
    add = parser.add_argument
    add("--prefix", metavar="DIR", default=SUPPRESS, help="its folder (/opt/beetle; for --user ~/.local/lib/beetle)")
    add("--bin", metavar="DIR", default=SUPPRESS, help="folder of the link (/usr/local/bin; for --user ~/.local/bin)")
    add("--user", action="store_true", default=SUPPRESS, help="for this user alone, without root")
    add("--root", metavar="DIR", default=SUPPRESS, help="write below DIR and run nothing: for the image of a system")
    add("--dry-run", action="store_true", default=SUPPRESS, help="print the steps without executing them")


def fill_install(parser: Parser) -> None:
    """What install takes besides the global options."""
    fill_places(parser)
    add = parser.add_argument
    add("--no-service", action="store_true", default=SUPPRESS, help="no systemd unit, and no user for it")
    add("--no-start", action="store_true", default=SUPPRESS, help="write the unit without enabling or starting it")
    add("--rollback", action="store_true", default=SUPPRESS, help="only switch back to the previous version")


def run_install(typed: Namespace) -> int:
    """Install this program, or go back to the version before."""
    from beetle.deploy.ownership import refuse_outside

    layout = layout_of(typed, os.environ, os.getuid())
    if not layout.staged and not any(os.path.exists(each) for each in SYSTEMD):
        layout = layout._replace(unit=None)
    machine = None if layout.staged else _machine(os.environ, layout.personal, os.getuid())
    told = _step_printer(typed)
    dry_run = bool(typed_option(typed, "dry_run"))
    # Before the configuration is read: an image's own, not one that a link in it leads to.
    refuse_outside(layout)
    starts = not typed_option(typed, "no_start")
    if typed_option(typed, "rollback"):
        from beetle.deploy.apply import roll_back

        found = roll_back(layout, machine, told, starts=starts, dry_run=dry_run)
        if (note := _migrated_since(typed, layout)) and not typed_option(typed, "json"):
            told(_note(*note))
        _print_json(typed, "rollback", found)
        return 0
    from beetle.deploy.apply import install

    source = _own_tree()
    wanted, notes = install_options(typed, layout, os.environ, os.getuid())
    report = install(layout, source, wanted._replace(starts=starts), machine, told, dry_run=dry_run)
    if typed_option(typed, "json"):
        report = report._replace(steps=(*report.steps, *(_note(*each) for each in notes)))
        _print_json(typed, "install", report)
        return 0
    for each in (*notes, *_closing(layout, report, os.environ)):
        told(_note(*each))
    return 0


def _migrated_since(typed: Namespace, layout: Layout) -> tuple[str, str] | None:
    """What to know of a store that a later version has migrated: the earlier one refuses it, and says the way back."""
    from beetle.runtime.host.config import Config, read_config, store_path

    place: Mapping[str, str] = os.environ if layout.personal else {}
    who = os.getuid() if layout.personal else 0
    file = layout.disk(layout.config)
    try:
        config = read_config(file, {}, who) if file.exists() else Config()
        store = layout.disk(store_path(typed_option(typed, "store"), place, config, who))
    except InvalidRequest:
        return None  # the way back must not depend on a configuration that may be what is wrong
    copies = sorted(store.parent.glob(f"{store.name}.before-m-*")) if store.parent.is_dir() else []
    if not copies:
        return None
    text = f"a later version has migrated the store, and kept it as it was before: {copies[-1]}; where this version"
    return ("store", f"{text} refuses the store (schema_mismatch), the hint says how to go back to that copy")


def run_uninstall(typed: Namespace) -> int:
    """Take this machine's installation away, and say what was left."""
    # Loaded before the first file goes: this may run from the tree that is removed, where nothing can be found after.
    from beetle.cli import render  # noqa: F401
    from beetle.deploy.ownership import refuse_outside
    from beetle.deploy.remove import uninstall

    layout = layout_of(typed, os.environ, os.getuid())
    machine = None if layout.staged else _machine(os.environ, layout.personal, os.getuid())
    told = _step_printer(typed)
    refuse_outside(layout)
    lasting = _lasting(typed, layout)
    found = uninstall(layout, machine, told, dry_run=bool(typed_option(typed, "dry_run")))
    kept = [(what, path) for what, path in lasting if os.path.lexists(layout.disk(path))]
    if typed_option(typed, "json"):
        _print_json(typed, "uninstall", found, kept=dict(kept))
        return 0
    if not found.changed:
        print(f"Nothing of beetle is installed in {layout.prefix}.")
    for each in found.left:
        told(_note("prefix", f"{each} is not ours and stays"))
    for what, path in kept:
        told(_note(what, _how_to_delete(what, path)))
    return 0


def layout_of(typed: Namespace, env: Mapping[str, str], uid: int) -> Layout:
    """Where everything goes.

    Raises:
        InvalidRequest: options that exclude each other, a path that cannot be one.
        Forbidden: a system's installation without root.
    """
    from beetle.deploy.layout import Layout
    from beetle.runtime.host.config import SYSTEM_CONFIG

    root = _folder(typed, "root")
    unit = None if typed_option(typed, "no_service") else "/etc/systemd/system/beetle.service"
    if typed_option(typed, "user"):
        return _personal_layout(typed, env, uid)
    if uid != 0 and root is None:
        reason = "an installation for the whole system needs root"
        raise Forbidden(reason=reason, hint="run it with sudo, or install for this user alone: beetle install --user")
    prefix = _folder(typed, "prefix") or "/opt/beetle"
    link = f"{_folder(typed, 'bin') or '/usr/local/bin'}/beetle"
    config = _folder(typed, "config") or SYSTEM_CONFIG
    return Layout(Path(root or "/"), prefix, link, config, unit, False)


def _personal_layout(typed: Namespace, env: Mapping[str, str], uid: int) -> Layout:
    from beetle.deploy.layout import Layout

    if typed_option(typed, "root") is not None:
        raise InvalidRequest(reason="--root is for a whole system", hint="leave --user out")
    if uid == 0:
        # Every other command of root's looks into /etc, /var/lib and /run.
        hint = "leave --user out, or run it as the user whose memory it is"
        raise InvalidRequest(reason="--user is for other users than root", hint=hint)
    home = env.get("HOME", "")
    if not home.startswith("/"):
        raise InvalidRequest(reason="no $HOME to install into", hint="set HOME, or install for the system with sudo")
    settings = env.get("XDG_CONFIG_HOME", "")
    settings = settings if settings.startswith("/") else f"{home}/.config"
    return Layout(
        Path("/"),
        _folder(typed, "prefix") or f"{home}/.local/lib/beetle",
        f"{_folder(typed, 'bin') or f'{home}/.local/bin'}/beetle",
        _folder(typed, "config") or f"{settings}/beetle/beetle.toml",
        None if typed_option(typed, "no_service") else f"{settings}/systemd/user/beetle.service",
        True,
    )


def _folder(typed: Namespace, name: str) -> str | None:
    """An absolute path without a slash at its end, None where none was typed."""
    given = typed_option(typed, name)
    if given is None:
        return None
    if given == "":
        raise InvalidRequest(reason=f"--{name} is empty", hint=f"give a path after --{name}, or leave it out")
    if re.search(r"[\x00-\x1f\x7f]", given):
        raise InvalidRequest(reason=f"--{name} holds a control character", hint="give another path")
    return os.path.abspath(given)


def _own_tree() -> Path:
    """The tree that this program runs from.

    Raises:
        OnlyFrozen: it is a source checkout or an installed package.
    """
    if not getattr(sys, "frozen", False):
        raise OnlyFrozen()
    from beetle.deploy.frozen import tree_of

    return Path(tree_of(sys.executable))


def _machine(env: Mapping[str, str], personal: bool, uid: int) -> Machine:
    from beetle.deploy.machine import Machine

    runtime = env.get("XDG_RUNTIME_DIR") or f"/run/user/{uid}"
    marker = Path(runtime) / "systemd/private" if personal else Path(SYSTEMD[0])
    outside = dict(env)
    if personal:
        outside["XDG_RUNTIME_DIR"] = runtime
    return Machine(":".join(filter(None, (env.get("PATH"), SYSTEM_TOOLS))), outside, marker)


def install_options(
    typed: Namespace, layout: Layout, env: Mapping[str, str], uid: int
) -> tuple[InstallOptions, list[tuple[str, str]]]:
    """What to install, from the options, the configuration that is there, and this machine; and notes about it.

    The variables of this shell ($BEETLE_STORE and the like) are not the service's, and do not count.

    Raises:
        InvalidRequest: of the configuration or the profile, or a path that cannot be one.
    """
    from beetle.cli.service_settings import service_settings
    from beetle.deploy.layout import InstallOptions
    from beetle.runtime.host.config import Config, Daemon, read_config, store_path

    file = layout.disk(layout.config)
    configured = os.path.lexists(file)
    place = {name: value for name, value in env.items() if not name.startswith("BEETLE_")}
    who = uid if layout.personal else 0
    given = {name: value for name in ("store", "socket") if (value := _folder(typed, name)) is not None}
    typed_profile = typed_option(typed, "profile")
    if typed_profile is not None and "/" in typed_profile:
        typed_profile = os.path.abspath(typed_profile)
    config = read_config(file, {}, who) if configured else Config(daemon=Daemon(**given, profile=typed_profile))
    store = store_path(None, place, config, who)
    profile, why, limits = _profile(config.daemon.profile, layout, store, config.replica is not None)
    settings = service_settings(config, place, who, profile)
    wanted = InstallOptions(
        profile=profile,
        why=why,
        settings=settings,
        configured=configured,
        given=tuple(given.items()),
        limits=limits,
        environment=_environment(env) if layout.personal else (),
        holder=None if layout.staged else _holder(settings),
        example="" if configured else _example(),
    )
    return wanted, _unheeded(config, {**given, "profile": typed_profile}) if configured else []


def _example() -> str:
    """What a new configuration has behind the keys of its [daemon]: every key, commented out."""
    from beetle.runtime.host.profile import example_configuration

    return example_configuration().partition("[daemon]\n")[2]


def _profile(
    name: str | None, layout: Layout, store: str, replicated: bool
) -> tuple[str, tuple[str, ...], Limits | None]:
    """The profile to name, why it is that one, and what it takes at most."""
    if layout.staged and name in (None, "auto"):
        return "auto", ("It is chosen at each start: this file was written on another machine.",), None
    return profile_limits(name, layout.root, store, replicated=replicated)


def profile_limits(
    name: str | None, root: Path, store: str, *, replicated: bool = False
) -> tuple[str, tuple[str, ...], Limits]:
    """As `_profile`, for a system whose `/` is at `root`; without a name the profile is the one for this machine.

    Raises:
        InvalidRequest: there is no such profile, or its file cannot be read.
    """
    from beetle.cli.doctor import OWN_DESCRIPTORS
    from beetle.deploy.layout import Limits
    from beetle.runtime.host.choosing import choose_profile, read_machine
    from beetle.runtime.host.profile import ALIASES, load_profile

    why: tuple[str, ...] = ("It was asked for with --profile.",)
    if name in (None, "auto"):
        choice = choose_profile(read_machine((root / store.lstrip("/")).parent))
        name = next((alias for alias, full in ALIASES.items() if full == choice.name), choice.name)
        why = ("Chosen for this machine:", *(f"* {each}" for each in choice.reasons))
    profile = load_profile(str(root / name.lstrip("/")) if "/" in name else name)
    budgets = profile.budgets
    files = budgets.connections + 3 * budgets.readers + OWN_DESCRIPTORS
    tasks = budgets.connections + budgets.readers + OWN_THREADS
    memory_mib = profile.memory_ceiling_mib
    if replicated:
        memory_mib, tasks = memory_mib + SIDECAR_MIB, tasks + SIDECAR_THREADS
    return name, why, Limits(memory_mib, max(1024, files), tasks)


def _holder(settings: Settings) -> int | None:
    """Who has the store open now."""
    try:
        found = holder_in_view(settings.store)
    except Forbidden:
        return None
    return None if found is None else found.pid


def _environment(env: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Where this user's shell looks for the store, when that is another place than the service would."""
    data = env.get("XDG_DATA_HOME", "")
    return (("XDG_DATA_HOME", data),) if data.startswith("/") else ()


def _unheeded(config: Config, given: Mapping[str, str | None]) -> list[tuple[str, str]]:
    """What was typed and is not what the configuration says: that stays as it is."""
    return [
        ("config", f'{config.file} stays as it is; to have it so, write there, under [daemon]: {name} = "{value}"')
        for name, value in given.items()
        if value is not None and value != getattr(config.daemon, name)
    ]


def _closing(layout: Layout, report: Report, env: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    """What a person should know at the end."""
    folder = os.path.dirname(layout.link)
    if not layout.staged and folder not in env.get("PATH", "").split(":"):
        yield "link", f"{folder} is not in this shell's PATH"
    if layout.personal:
        if report.service == "running":
            yield "service", "it ends with the last session of this user; to keep it: loginctl enable-linger"
        return
    if layout.staged and layout.unit and report.profile == "auto":
        yield "unit", "it has no memory ceiling: the profile is chosen at each start; name one with --profile"
    group = f"the group {report.group}" if report.group else "a group that [daemon] group names"
    then = ", then: systemctl reload beetle" if report.service == "running" else ""
    agent = f"add its user to {group} and to [principals] in {layout.config}{then}"
    yield "agents", f"root may do everything; for an agent of another user, {agent}"


def _lasting(typed: Namespace, layout: Layout) -> list[tuple[str, str]]:
    """What an uninstall leaves where it is there, configuration and store, by the name that they have afterwards."""
    from beetle.contracts.errors import BeetleError
    from beetle.runtime.host.config import Config, read_config, store_path

    file = layout.disk(layout.config)
    who = os.getuid() if layout.personal else 0
    place = {name: value for name, value in os.environ.items() if not name.startswith("BEETLE_")}
    try:
        config = read_config(file, {}, who) if os.path.lexists(file) else Config()
    except BeetleError:
        # A file that cannot be understood is no reason to keep the program; it stays, and is named below.
        config = Config()
    store = store_path(_folder(typed, "store"), place, config, who)
    return [(what, _without_links(layout, path)) for what, path in (("store", store), ("config", layout.config))]


def _without_links(layout: Layout, path: str) -> str:
    """The path of what is in the prefix, where `current` and `previous` are links that go; any other as it is."""
    found = os.path.realpath(layout.disk(path))
    if not found.startswith(f"{os.path.realpath(layout.disk(layout.prefix))}/"):
        return path
    return f"/{os.path.relpath(found, os.path.realpath(layout.root))}"


def _how_to_delete(what: str, path: str) -> str:
    # With its log, its lock and its index of the log, whose names begin as the store's.
    every = "*" if what == "store" else ""
    return f"{path} stays{', with all memory' if every else ''}; to delete it: rm {shlex.quote(path)}{every}"


def _note(step: str, text: str) -> StepResult:
    from beetle.deploy.steps import StepResult

    return StepResult(step, "note", text)


def _step_printer(typed: Namespace) -> Any:
    """What prints a step when it is done; with --json nothing does."""
    from beetle.cli.text import screen_width, wrap

    width = screen_width()

    def on_step(step: StepResult) -> None:
        first, *more = wrap(step.text, " " * 17, width)
        print(f"{step.outcome:<8} {step.step:<8}{first[16:]}", flush=True)
        for line in more:
            print(line)

    return (lambda _: None) if typed_option(typed, "json") else on_step


def _print_json(typed: Namespace, action: str, found: Any, **more: Any) -> None:
    from beetle.cli.render import as_json

    if typed_option(typed, "json"):
        steps = [each._asdict() for each in found.steps]
        print(as_json({"action": action, **found._asdict(), **more, "steps": steps}))


OWN = {"install": (fill_install, run_install), "uninstall": (fill_places, run_uninstall)}
