"""Every command: those of the table of operations, and the few that are the command line's own."""

from __future__ import annotations

from argparse import SUPPRESS, Namespace
from collections.abc import Mapping
from functools import partial

from beetle import __version__
from beetle.contracts.operations import BY_NAME, Operation
from beetle.transports.cli import continuity, control, data
from beetle.transports.cli.parser import GLOBALS, Command, Parser, Words, typed_option

GROUPS: Mapping[str, str] = {
    "memory": "write, recall, project and inspect governed memory",
    "skill": "runtime skills: learned procedures",
    "long-term": "facts that were learned: read, correct, forget, set policies",
    "transcript": "conversations as evidence: commit, read, search, govern",
    "private": "the private plane, for its owner",
    "evolve": "changes that are proposed: look at them, then make them or not",
    "harness": "fixtures in throw-away stores, and the gates over them",
    "device": "who may speak to the daemon with a key of its own",
    "transport": "the ways in: which are open",
    "console": "the machine, the runtime, who is here",
    "platform": "what a profile allows",
}

SECTIONS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Daemon", ("serve", "start", "stop", "status", "tui")),
    ("Memory", ("memory", "skill", "transcript")),
    ("Any operation", ("call", "hello")),
    ("This machine", ("install", "uninstall")),
    ("Care", ("verify", "doctor", "platform", "completion", "version")),
)


def _run_version(typed: Namespace) -> int:
    print(f'{{"version":"{__version__}"}}' if typed_option(typed, "json") else f"beetle {__version__}")
    return 0


def _fill_snapshot(parser: Parser) -> None:
    parser.add_argument(
        "--check", metavar="FILE", default=SUPPRESS, help="compare with this file; exit code 4 when they differ"
    )


def _run_snapshot(typed: Namespace) -> int:
    from beetle.transports.cli.platform import run_capability_snapshot

    return run_capability_snapshot(typed)


def _fill_doctor(parser: Parser) -> None:
    parser.add_argument(
        "--self-test", action="store_true", default=SUPPRESS,
        help="run this build's own checks instead, in a folder of their own; exit code 0 when all of them passed",
    )  # fmt: skip


def _run_doctor(typed: Namespace) -> int:
    from beetle.transports.cli.doctor import run_doctor

    return run_doctor(typed)


def _fill_tui(parser: Parser) -> None:
    from beetle.transports.cli.console import fill_tui

    fill_tui(parser)


def _run_tui(typed: Namespace) -> int:
    from beetle.transports.cli.console import run_tui

    return run_tui(typed)


def _fill_install(parser: Parser) -> None:
    from beetle.transports.cli.installing import fill_install

    fill_install(parser)


def _run_install(typed: Namespace) -> int:
    from beetle.transports.cli.installing import run_install

    return run_install(typed)


def _fill_uninstall(parser: Parser) -> None:
    from beetle.transports.cli.installing import fill_places

    fill_places(parser)


def _run_uninstall(typed: Namespace) -> int:
    from beetle.transports.cli.installing import run_uninstall

    return run_uninstall(typed)


def _fill_device(row: Operation, parser: Parser) -> None:
    from beetle.transports.cli.devices import fill_device

    fill_device(row, parser)


def _run_device(row: Operation, typed: Namespace) -> int:
    from beetle.transports.cli.devices import run_device

    return run_device(row, typed)


def _fill_log(parser: Parser) -> None:
    from beetle.transports.cli.devices import fill_log

    fill_log(parser)


def _run_log(typed: Namespace) -> int:
    from beetle.transports.cli.devices import run_log

    return run_log(typed)


def _fill_completion(parser: Parser) -> None:
    parser.add_argument("shell", metavar="SHELL", help="bash, zsh or fish")


def _run_completion(typed: Namespace) -> int:
    from beetle.transports.cli.completion import script

    print(script(typed.shell, COMMANDS), end="")
    return 0


OWN: tuple[Command, ...] = (
    Command(("serve",), "run the daemon in the foreground, until SIGTERM", control.fill_serve, control.run_serve,
            examples=("beetle serve", "beetle --store notes.db --socket notes.sock --profile compact serve"),
            description="Run the daemon in the foreground, until SIGTERM; SIGHUP reads the configuration again.\n"
            "The log says which profile `auto` (the default) chose, and why."),
    Command(("start",), "run the daemon in the background", control.fill_serve, control.run_start,
            examples=("beetle start", "beetle --store notes.db --socket notes.sock --profile compact start"),
            description="Run `serve` in the background and wait until it is ready. Its log stands beside the store\n"
            "(beetle.log), unless the configuration names a place."),
    Command(("stop",), "end the daemon and wait until it is gone", control.fill_nothing, control.run_stop, ""),
    Command(("status",), "show whether a daemon runs, and what it holds", control.fill_nothing, control.run_status, "",
            description="Show whether a daemon runs, and what it holds. Exit code 3 when none does."),
    Command(("tui",), "the console: what runs and what it holds, on the whole screen", _fill_tui, _run_tui,
            "[OPTION]…", ("beetle tui", "beetle --store notes.db tui"),
            "The console: what runs and what it holds, on the whole screen, kept current while it changes.\n"
            "Press ? there for its keys, q to leave. Without a daemon it opens the store itself."),
    Command(("call",), "run any operation with JSON arguments; the report is JSON", data.fill_call, data.run_call,
            "OP [JSON|@FILE|-] [OPTION]…",
            ("beetle call memory.recall '{\"query\": \"spare key\"}'", "beetle call transcript.commit @request.json",
             "echo '{\"conversation\": …}' | beetle call transcript.commit -")),
    Command(("log",), "show the event log: what was changed, by whom, and what was refused", _fill_log,
            _run_log, "[--follow] [OPTION]…", data.EXAMPLES["event_log.read"]),
    Command(("skill", "enable"), "let recall and projection use a runtime skill", data.fill_skill_name,
            partial(data.run_set_enabled, True), "[NAME] [OPTION]…"),
    Command(("skill", "disable"), "keep a runtime skill out of recall and projection", data.fill_skill_name,
            partial(data.run_set_enabled, False), "[NAME] [OPTION]…"),
    Command(("platform", "capability-snapshot"), "print what a profile allows, as stable JSON", _fill_snapshot,
            _run_snapshot, "--profile P [--check FILE]", ("beetle platform capability-snapshot --profile compact",)),
    Command(("install",), "put this program in its place, with a configuration and a service", _fill_install,
            _run_install,
            examples=("sudo ./beetle install", "./beetle install --user", "sudo beetle install --rollback"),
            description="Put this program under a prefix, with a link in the path, a configuration with the profile\n"
            "that fits this machine, and a systemd unit. May be repeated: a new version is complete before it\n"
            "is switched to, the one before stays, and no store and no configuration is touched."),
    Command(("uninstall",), "take the program and its service away; the store stays", _fill_uninstall, _run_uninstall,
            examples=("sudo beetle uninstall", "beetle uninstall --user"),
            description="Take away what `beetle install` made: unit, link and every version. The store, the\n"
            "configuration and the user stay, and their places are named. Give --prefix, --bin, --user and\n"
            "--root as they were."),
    Command(("doctor",), "check install, store, machine and build, and say what to do", _fill_doctor, _run_doctor,
            "[--self-test]", description="Check install, store, machine and build, and say what to do about each "
            "finding.\nExit code 0 when all is well, 1 with warnings, else that of the worst problem."),
    Command(("completion",), "print a completion script for bash, zsh or fish", _fill_completion, _run_completion,
            "SHELL",
            ("source <(beetle completion bash)", "beetle completion fish > ~/.config/fish/completions/beetle.fish")),
    Command(("version",), "print the version", control.fill_nothing, _run_version, ""),
)  # fmt: skip


def _of_a_device(name: str) -> Command:
    row: Operation = BY_NAME[name]
    made = next(each for each in data.data_commands() if each.words == row.cli)
    return made._replace(fill=partial(_fill_device, row), run=partial(_run_device, row))


OF_DEVICES = tuple(_of_a_device(name) for name in ("device.add", "device.update", "device.rotate_key"))

SHAPED = (*OF_DEVICES, *continuity.commands(), *OWN)
"""Commands that stand in the place of those that the table would give."""
COMMANDS: Mapping[Words, Command] = {each.words: each for each in (*data.data_commands(), *SHAPED)}


def root_help() -> str:
    """The page of `beetle --help`."""
    heads = dict.fromkeys(each[0] for each in COMMANDS)
    placed = {name for _, names in SECTIONS for name in names}
    others = tuple(each for each in heads if each not in placed)
    lines = ["Beetle: governed memory for agents on this device.", "", "usage: beetle [OPTION]… COMMAND [OPTION]…"]
    for title, names in (*SECTIONS, ("More", others)):
        shown = [each for each in names if each in heads]
        if shown:
            lines += ["", f"{title}:", *(f"  {each:<12} {_summary(each)}" for each in shown)]
    lines += ["", "Options, before or after the command:"]
    lines += [f"  {each.option + (' ' + each.metavar if each.metavar else ''):<18} {each.help}" for each in GLOBALS]
    lines += [f"  {'--version':<18} print the version", f"  {'-h, --help':<18} help, here or for a command"]
    lines += [
        "",
        "A command speaks to the daemon if one answers, and otherwise opens the store itself.",
        "Begin with `beetle start`, or `beetle transcript commit --help`.",
    ]
    return "\n".join(lines)


def _summary(head: str) -> str:
    command = COMMANDS.get((head,))
    return command.help if command is not None else GROUPS.get(head, "commands: see its help")


def group_help(words: Words) -> str:
    """The page of a group, such as `beetle memory --help`."""
    inside = [each for each in COMMANDS.values() if each.words[: len(words)] == words]
    name = " ".join(words)
    longest = max(len(each.name) - len(name) for each in inside)
    summary = GROUPS.get(words[0], name)
    return "\n".join(
        [
            f"{summary[:1].upper()}{summary[1:]}.",
            "",
            f"usage: beetle {name} COMMAND [OPTION]…",
            "",
            *(f"  {each.name.removeprefix(name).strip():<{longest}} {each.help}" for each in inside),
            "",
            f"See `beetle {name} COMMAND --help`.",
        ]
    )
