"""Hosts of models: where each keeps its MCP servers, in what form, and how our entry is put there or taken away."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, Sequence
from contextlib import suppress
from io import StringIO
from typing import Any, Literal

from beetle.contracts.errors import InvalidRequest, StoreReadOnly
from beetle.mcp.jsonc import NotEditable, remove_entry, set_entry
from beetle.named_tuple import NamedTuple

ENTRY = "beetle"
LARGEST = 64 * 1024 * 1024
CONFIG = "XDG_CONFIG_HOME"


class Host(NamedTuple):
    """One host. Its file stands below the folder that `variable` names, else below `folder` of the home.

    `keys` lead to the servers; `beside` is what its entry holds beside command and arguments.
    """

    variable: str
    folder: str
    file: str
    keys: tuple[str, ...]
    form: Literal["json", "toml"] = "json"
    beside: Mapping[str, Any] = {}


SERVERS = ("mcpServers",)
HOSTS: Mapping[str, Host] = {
    "claude-code": Host("CLAUDE_CONFIG_DIR", "", ".claude.json", SERVERS, beside={"type": "stdio"}),
    "claude-desktop": Host(CONFIG, ".config", "Claude/claude_desktop_config.json", SERVERS),
    "cursor": Host("", ".cursor", "mcp.json", SERVERS),
    "vscode": Host(CONFIG, ".config", "Code/User/mcp.json", ("servers",), beside={"type": "stdio"}),
    "zed": Host(CONFIG, ".config", "zed/settings.json", ("context_servers",), beside={"source": "custom", "env": {}}),
    "cline": Host(
        CONFIG, ".config", "Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json", SERVERS,
        beside={"disabled": False},
    ),
    "codex": Host("CODEX_HOME", ".codex", "config.toml", ("mcp_servers",), form="toml"),
    "gemini": Host("", ".gemini", "settings.json", SERVERS),
}  # fmt: skip


class Change(NamedTuple):
    """What is to be written to a host's file, and what is there; None where there is no file."""

    file: str
    before: str | None
    after: str

    @property
    def needed(self) -> bool:
        return self.after != (self.before or "")


class CannotEdit(InvalidRequest):
    """The file is not as it must be for one entry to be changed by itself. `text` is the entry to paste, if any."""

    template = "{file}: {reason}"
    hint_template = "nothing was written; {by_hand}"

    def __init__(self, *, file: str, reason: str, text: str) -> None:
        by_hand = "change it by hand: this is the entry" if text else f"take the entry `{ENTRY}` out by hand"
        super().__init__(file=file, reason=reason, by_hand=by_hand)
        self.text = text


def file_of(host: Host, env: Mapping[str, str]) -> str:
    """The host's file.

    Raises:
        InvalidRequest: nothing says where this user's home is.
    """
    named = env.get(host.variable, "") if host.variable else ""
    if os.path.isabs(named):
        return os.path.join(named, host.file)
    home = env.get("HOME", "")
    if not os.path.isabs(home):
        raise InvalidRequest(reason="no $HOME says where the host's configuration is", hint="set HOME")
    return os.path.join(home, host.folder, host.file)


def entry_of(host: Host, command: Sequence[str]) -> dict[str, Any]:
    """Our entry: the program and its arguments as the host starts it."""
    program, *arguments = command
    first = {key: each for key, each in host.beside.items() if key in ("type", "source")}
    rest = {key: each for key, each in host.beside.items() if key not in first}
    return {**first, "command": program, "args": arguments, **rest}


def text_to_paste(host: Host, entry: Mapping[str, Any]) -> str:
    """The entry as a user would write it into an empty file."""
    if host.form == "toml":
        return _table(host, entry)
    return set_entry("", (*host.keys, ENTRY), dict(entry))


def planned(host: Host, env: Mapping[str, str], entry: Mapping[str, Any] | None) -> Change:
    """What would be written: with our entry, or with None without it.

    Raises:
        InvalidRequest: the file cannot be read, or changed by one entry alone.
    """
    file = file_of(host, env)
    before = _read(file)
    try:
        if host.form == "toml":
            after = _toml(before or "", host, entry)
        elif entry is None:
            after = remove_entry(before or "", (*host.keys, ENTRY))
        else:
            after = set_entry(before or "", (*host.keys, ENTRY), dict(entry))
    except NotEditable as error:
        text = "" if entry is None else text_to_paste(host, entry)
        raise CannotEdit(file=file, reason=str(error), text=text) from None
    return Change(file, before, after)


def write(change: Change) -> str | None:
    """Put the new text in place of the old, whole or not at all; where the old one is kept, None where there was none.

    Raises:
        StoreReadOnly: it cannot be written. The file is as it was.
    """
    # A link, as from a folder of dotfiles, stays one.
    file = os.path.realpath(change.file)
    part = f"{file}.beetle-{os.getpid()}"
    try:
        os.makedirs(os.path.dirname(file), mode=0o700, exist_ok=True)
        mode = 0o600 if change.before is None else os.stat(file).st_mode & 0o777
        backup = None if change.before is None else _new_backup(file, change.before, mode)
        _write_new(part, change.after, mode)
        os.replace(part, file)
    except OSError as error:
        with suppress(OSError):
            os.unlink(part)
        hint = "make the file and its folder writable for this user"
        raise StoreReadOnly(path=change.file, reason=error.strerror or "unknown", hint=hint) from None
    return backup


def _new_backup(file: str, text: str, mode: int) -> str:
    number = 1
    while True:
        name = f"{file}.before-beetle-{number}"
        try:
            _write_new(name, text, mode)
        except FileExistsError:
            number += 1
        else:
            return name


def _write_new(file: str, text: str, mode: int) -> None:
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as stream:
        os.fchmod(descriptor, mode)
        stream.write(text)
        stream.flush()
        os.fsync(descriptor)


def _read(file: str) -> str | None:
    try:
        # A pipe in the file's place would be waited for without an end.
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, encoding="utf-8", newline="") as stream:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise InvalidRequest(reason=f"{file} is no regular file", hint="nothing was written")
            text = stream.read(LARGEST + 1)
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        why = "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else error.strerror
        raise InvalidRequest(reason=f"{file}: {why}", hint="nothing was written") from None
    if len(text) > LARGEST:
        raise InvalidRequest(reason=f"{file} is over {LARGEST} characters", hint="nothing was written")
    return text


def _toml(text: str, host: Host, entry: Mapping[str, Any] | None) -> str:
    """Our table replaced, appended or taken away as text; what a reader finds elsewhere must stay the same."""
    import tomllib

    section = host.keys[0]
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise NotEditable(f"it is not TOML: {error}") from None
    if not isinstance(servers := found.get(section, {}), dict):
        raise NotEditable(f"{section} is not a table")
    if servers.get(ENTRY) == entry:
        return text
    expected = {key: each for key, each in servers.items() if key != ENTRY}
    changed = _without_table(text, section)
    if entry is not None:
        expected[ENTRY] = dict(entry)
        changed = f"{changed.rstrip()}\n\n{_table(host, entry)}".lstrip()
    apart = NotEditable(f"the lines of [{section}.{ENTRY}] cannot be told from the others")
    try:
        after = tomllib.loads(changed)
    except tomllib.TOMLDecodeError:
        raise apart from None
    if after.pop(section, {}) != expected or after != {key: each for key, each in found.items() if key != section}:
        raise apart
    return changed


def _heads(line: str, section: str) -> bool:
    """Whether a line begins our table, or one below it."""
    header = line.partition("#")[0].strip()
    names = [each.strip().strip('"') for each in header.removeprefix("[").removesuffix("]").split(".")]
    return header.startswith("[") and header.endswith("]") and names[:2] == [section, ENTRY]


def _without_table(text: str, section: str) -> str:
    """Without the lines of our table and of those below it; comments before the next table stay with that one."""
    kept: list[str] = []
    held: list[str] = []
    inside = False
    for line in StringIO(text, newline="\n"):  # TOML has no other line ends
        if line.lstrip().startswith("["):
            kept += held
            held, inside = [], _heads(line, section)
        if not inside:
            kept.append(line)
        elif not line.strip() or line.lstrip().startswith("#"):
            held.append(line)
        else:
            held = []
    return "".join(kept + held)


def _table(host: Host, entry: Mapping[str, Any]) -> str:
    import json

    # A string of JSON is one of TOML's, but for DEL, which no path of ours has.
    lines = [f"{key} = {json.dumps(each, ensure_ascii=False)}" for key, each in entry.items()]
    return "\n".join([f"[{host.keys[0]}.{ENTRY}]", *lines, ""])
