"""Every command: those of the table of operations, and the few that are the command line's own."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from beetle.cli.parser import GLOBALS, MCP, Code, Command, Words
from beetle.contracts.operation import ANY, CARE, CHUNK, DAEMON, QUERY, SECTIONS, SKILL, Group, Operation
from beetle.contracts.operations import BY_NAME, OPERATIONS

MACHINE = Group("Installation")
SHORT = Group("Memory")
CONFIG = Group("Daemon", "config", "the configuration file: check it, show what is in force, change a key")
PLATFORM = Group("Maintenance", "platform", "the capabilities of a profile, the schema of the protocol")

OF_REGISTRY = ("skill_registry.upload", "skill_registry.read")
"""Operations whose command takes files, or writes bytes."""
OF_DEVICES = ("device.add", "device.update", "device.rotate_key")
"""Operations whose command takes more than the fields of the request, beside those that carry bytes."""

OF_THE_DAEMON = (
    "serve", "start", "stop", "reload", "status", "health", "metrics", "config check", "config show", "config set",
)  # fmt: skip


def _own(name: str) -> Code:
    """The code of a command of the command line's own. Only its module is loaded: the others' are not paid for."""
    if name in OF_THE_DAEMON:
        return _of_daemon(name)
    if name == "tui":
        from beetle.cli import console as found
    elif name == "log":
        from beetle.cli import devices as found
    elif name in ("install", "uninstall"):
        from beetle.cli import installing as found
    elif name == "forget":
        from beetle.cli import forgetting as found
    elif name in ("remember", "note"):
        from beetle.cli import remembering as found
    elif name in ("import", "export"):
        from beetle.cli import importing as found
    elif name == "capture":
        from beetle.cli import capturing as found
    elif name == "bench":
        from beetle.cli import benching as found
    elif name == "doctor":
        from beetle.cli import doctor as found
    elif name == "help":
        from beetle.cli import manual as found
    elif name == "completion":
        from beetle.cli import completion as found
    elif name in ("platform capability-snapshot", "platform schema", "version"):
        from beetle.cli import platform as found
    else:
        from beetle.cli import data as found
    return found.OWN[name]


def _of_daemon(name: str) -> Code:
    if name == "serve":
        from beetle.cli import serve as found
    elif name in ("status", "health", "metrics"):
        from beetle.cli import operating as found
    elif name == "config set":
        from beetle.cli import config_set as found
    elif name.startswith("config "):
        from beetle.cli import configuring as found
    else:
        from beetle.cli import control as found
    return found.OWN[name]


def _of_operation(row: Operation) -> Code:
    if row.name in OF_DEVICES:
        from beetle.cli import devices as found
    elif row.name in OF_REGISTRY:
        from beetle.cli import registry as found
    elif row.carries and row.group is CHUNK:
        from beetle.cli import chunk_trees as found
    elif row.carries:
        from beetle.cli import continuity as found
    elif row.group is QUERY:
        from beetle.cli import querying as found
    elif row.name == "memory.forget":
        from beetle.cli import forgetting as found
    elif row.name == "store.repair":
        from beetle.cli import repairing as found
    elif row.name == "identity.renew":
        from beetle.cli import renewing as found
    elif row.name == "memory.remember":
        from beetle.cli import remembering as found
    else:
        from beetle.cli import data as found
    return partial(found.fill_operation, row), partial(found.run_operation, row)


def _command(row: Operation) -> Command:
    word = f"[{row.word.upper()}] " if row.word else ""
    if row.name == "skill_registry.upload":
        word = "FILE "
    if row.carries:
        word = "FOLDER " if row.group is CHUNK else "--out FILE " if row.takes_out else "FILE "
    # Its flags are those of one of the operation's kinds.
    help = "create or revise runtime skills: all of them or none" if row.name == "memory.write" else row.help
    return Command(row.cli, row.group, help, partial(_of_operation, row), f"{word}[OPTION]…", row.shell)


def _short(word: str, row: Operation) -> Command:
    """A command of one word for an operation whose own has more."""
    long = _command(row)
    line = f"beetle {word} 'where is the spare key'"
    about = f"{long.help[:1].upper()}{long.help[1:]}.\nThe same as `beetle {long.name}`."
    return long._replace(words=(word,), group=SHORT, description=about, examples=(line,))


def _named(
    name: str,
    group: Group,
    help: str,
    arguments: str = "[OPTION]…",
    examples: tuple[str, ...] = (),
    description: str = "",
) -> Command:
    return Command(tuple(name.split()), group, help, partial(_own, name), arguments, examples, description)


OWN: tuple[Command, ...] = (
    _named("serve", DAEMON, "run the daemon in the foreground, until SIGTERM",
           examples=("beetle serve", "beetle --store notes.db --socket notes.sock --profile compact serve"),
           description="Run the daemon in the foreground, until SIGTERM; SIGHUP reloads the configuration.\n"
           "The log names the profile chosen by `auto` (the default), and the reason."),
    _named("start", DAEMON, "run the daemon in the background",
           examples=("beetle start", "beetle --store notes.db --socket notes.sock --profile compact start"),
           description="Run `serve` in the background and wait until it is ready. Its log is next to the store\n"
           "(beetle.log), unless the configuration names another file."),
    _named("stop", DAEMON, "stop the daemon and wait for its end", ""),
    _named("reload", DAEMON, "make the daemon read its configuration again", "",
           description="Make the daemon read its configuration again (SIGHUP). Changed principals hold at once,\n"
           "all else from its next start. A file with an error is refused: the daemon keeps what it has."),
    _named("status", DAEMON, "show whether a daemon runs, and its store", "",
           description="Show whether a daemon runs, and its store. Exit code 3 if none runs."),
    _named("health", DAEMON, "look whether the daemon does its work, for a probe", "",
           description="Look whether the running daemon reads, writes and does its jobs. The exit code is 0 if it\n"
           "does its work, 7 if none runs or it does not answer in 10 s, else that of the error\n"
           "that requests meet now."),
    _named("metrics", DAEMON, "print the daemon's figures as Prometheus reads them", "",
           examples=("beetle metrics", "beetle metrics --json"),
           description="Print the figures of the running daemon and its store in the text format of Prometheus.\n"
           "[metrics] in the configuration serves the same at a port of this machine."),
    _named("config check", CONFIG, "look a configuration file through, as a start of the daemon does", "[FILE]",
           examples=("beetle config check", "beetle config check new.toml"),
           description="Look a configuration file through, as a start of the daemon does. An error names the file,\n"
           "the line, the field and what to do."),
    _named("config show", CONFIG, "show what is in force, and where each value comes from",
           examples=("beetle config show", "beetle config show --all"),
           description="Show what is in force, and where each value comes from: an option, the environment, the file,\n"
           "the profile or the default. No secret is read for it."),
    _named("config set", CONFIG, "change one key of the configuration file", "KEY [VALUE] [OPTION]…",
           examples=("beetle config set daemon.log /var/log/beetle/beetle.log",
                     "beetle config set snapshots.keep_daily 14", "beetle config set metrics.listen --unset"),
           description="Change one key of the configuration file, and nothing else of it: comments stay. What\n"
           "`config check` would refuse is not written. It says whether `beetle reload` suffices."),
    _named("tui", DAEMON, "open the console: the daemon and its memory in the terminal",
           examples=("beetle tui", "beetle --store notes.db tui"),
           description="Open the console: the daemon and its memory in a full-screen terminal interface, updated "
           "live.\nPress ? there for its keys, q to leave. Without a daemon it opens the store itself."),
    MCP,
    _named("call", ANY, "run any operation with JSON arguments; the report is JSON", "OP [JSON|@FILE|-] [OPTION]…",
           ("beetle call memory.recall '{\"query\": \"spare key\"}'", "beetle call transcript.commit @request.json",
            "echo '{\"conversation\": …}' | beetle call transcript.commit -")),
    _named("remember", SHORT, BY_NAME["memory.remember"].help, "TEXT [OPTION]…",
           ("beetle remember 'The spare key hangs by the door.'",
            "beetle remember 'Mara prefers tea.' --said 'I prefer tea.' --speaker Mara --topic drink",
            "beetle remember - < fact.txt"),
           description="Remember one fact in plain words, and say in a line what became of it. What you type at a\n"
           "terminal is taken as your own word. From a script or a pipe give the user's own words in --said:\n"
           "without them the fact is a claim of the assistant, and waits. TEXT - reads stdin."),
    _named("note", SHORT, "store one message as evidence; nothing is judged", "TEXT [OPTION]…",
           ("beetle note 'The pump on line 2 is loud.' --conversation workshop",
            "beetle note 'Clean the strainer first.' --conversation workshop --role assistant"),
           description="Store one message as evidence: `beetle transcript commit` of one turn, with an id and a time\n"
           "made here. No fact is made of it. TEXT - reads stdin."),
    _named("forget", SHORT, BY_NAME["memory.forget"].help, "[QUERY] [OPTION]…",
           ("beetle forget 'spare key'", "beetle forget --conversation telegram/42 --yes"),
           description="The same as `beetle memory forget`: shows what would go and what stays, asks, and forgets it."),
    _named("import", SHORT, "take in conversations and memories of other programs", "FILE… [OPTION]…",
           ("beetle import conversations.json", "beetle import ~/.claude/projects --format claude-code",
            "beetle import MEMORY.md --dry-run"),
           description="Take in files of other programs: conversations as evidence, facts as candidates that are\n"
           "judged as ever. The format is detected from the content. The same file again changes nothing, and one\n"
           "that has grown adds what is new. Exit code 1 if some lines were not taken in; `beetle help import`."),
    _named("capture", SHORT, "capture turns of coding agents, as they come or from their files",
           "[--hook | --host HOST PATH] [OPTION]…",
           ("beetle capture < turns.jsonl", "beetle capture --host claude-code SESSION.jsonl --watch",
            "beetle capture --hook < hook.json"),
           description="Capture turns as evidence, each once. Without --host the lines of stdin are requests of\n"
           "turn.capture in JSON, and a line of JSON answers each. Running it again changes nothing. A broken\n"
           "line is reported and skipped; exit code 1 if there were such. `beetle help capture`."),
    _named("export", SHORT, "write conversations as JSON lines or Markdown", "[OPTION]…",
           ("beetle export --out memory.jsonl", "beetle export --format markdown --conversation telegram/42"),
           description="Write conversations as text, in the export view. `beetle import` takes JSON lines in again."),
    _named("log", CARE, "show the event log: changes and refused requests, with the caller", "[--follow] [OPTION]…",
           BY_NAME["event_log.read"].shell),
    _named("skill enable", SKILL, "let recall and projection use a runtime skill", "[NAME] [OPTION]…"),
    _named("skill disable", SKILL, "keep a runtime skill out of recall and projection", "[NAME] [OPTION]…"),
    _command(BY_NAME["toc.search_children"])._replace(
        words=("query", "search"), examples=("beetle query search 'spare key' --parent-id toc:year:2026 -l 5",)
    ),
    _named("platform capability-snapshot", PLATFORM, "print the capabilities of a profile, as stable JSON",
           "--profile P [--check FILE]", ("beetle platform capability-snapshot --profile compact",)),
    _named("platform schema", PLATFORM, "print the JSON Schema of every request, report and error", "[OP]…",
           ("beetle platform schema > beetle.schema.json", "beetle platform schema memory.recall memory.project"),
           "Print the JSON Schema (draft 2020-12) of the socket's frames, with the request and report of\n"
           "every operation, or of those named, and the error keys. Generate the types of a client from it."),
    _named("install", MACHINE, "install this program, with a configuration and a service",
           examples=("sudo ./beetle-VERSION-linux-x86_64 install", "./beetle-VERSION-linux-x86_64 install --user",
                     "sudo beetle install --rollback"),
           description="Install this program under a prefix, with a link in the path, a configuration with the\n"
           "profile that fits this machine, and a systemd unit. May be repeated: a new version is complete\n"
           "before the switch, the previous one stays, and stores and configurations stay unchanged."),
    _named("uninstall", MACHINE, "remove the program and its service; the store stays",
           examples=("sudo beetle uninstall", "beetle uninstall --user"),
           description="Remove the unit, the link and every version made by `beetle install`. The store, the\n"
           "configuration and the user stay, and their places are named. Give --prefix, --bin, --user and\n"
           "--root as they were."),
    _named("doctor", CARE, "check install, store, machine and build, and suggest remedies", "[--self-test]",
           description="Check install, store, machine and build, and suggest a remedy for each finding.\n"
           "Exit code 0 when all is well, 1 with warnings, else that of the worst problem."),
    _named("bench", CARE, "measure this device with a temporary store, beside plain SQLite",
           "[--compare FILE FILE] [OPTION]…",
           ("beetle bench", "beetle bench --replica --folder /mnt/usb --out usb.json",
            "beetle bench --compare before.json after.json"),
           description="Measure this device: start, writing, recall, projection, memory, and the bytes that reach the\n"
           "disk. It starts a daemon on a temporary store, which is removed; yours is not touched. The floor is\n"
           "plain SQLite with a full-text index and one sync for each commit, in the same run."),
    _named("help", CARE, "list the pages of the manual, or print one", "[TOPIC]",
           ("beetle help", "beetle help install"),
           "List the pages of the manual, or print one. With the words of a command it prints the\n"
           "command's help, as `beetle COMMAND --help` does."),
    _named("completion", CARE, "print a completion script for bash, zsh or fish", "SHELL",
           ("source <(beetle completion bash)", "beetle completion fish > ~/.config/fish/completions/beetle.fish")),
    _named("version", CARE, "print the version", ""),
)  # fmt: skip

SHORT_WORDS = {"recall": "memory.recall", "context": "memory.project"}

COMMANDS: Mapping[Words, Command] = {
    each.words: each
    for each in (
        *(_short(word, BY_NAME[name]) for word, name in SHORT_WORDS.items()),
        *(_command(row) for row in OPERATIONS if row.cli),
        *OWN,
    )
}


def root_help() -> str:
    """The page of `beetle --help`."""
    lines = ["Beetle: governed memory for agents on this device.", "", "usage: beetle [OPTION]… COMMAND [OPTION]…"]
    for section in SECTIONS:
        heads = {each.words[0]: _summary(each) for each in COMMANDS.values() if each.group.section == section}
        lines += ["", f"{section}:", *(f"  {word:<13} {text}" for word, text in heads.items())]
    lines += ["", "Options, before or after the command:"]
    lines += [f"  {each.option + (' ' + each.metavar if each.metavar else ''):<18} {each.help}" for each in GLOBALS]
    lines += [f"  {'--version':<18} print the version", f"  {'-h, --help':<18} help, here or for a command"]
    lines += [
        "",
        "A command uses the daemon if one runs; otherwise it opens the store itself.",
        "Begin with `beetle start`, or `beetle transcript commit --help`. `beetle help` lists the manual's pages.",
    ]
    return "\n".join(lines)


def _summary(command: Command) -> str:
    """What stands beside a command's first word."""
    return command.group.help if command.group.word else command.help


def group_help(words: Words) -> str:
    """The page of a group, such as `beetle memory --help`."""
    inside = [each for each in COMMANDS.values() if each.words[: len(words)] == words]
    name = " ".join(words)
    longest = max(len(each.name) - len(name) for each in inside)
    summary = inside[0].group.help
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
