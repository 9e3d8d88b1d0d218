"""config check and show: the configuration file for people."""

from __future__ import annotations

import os
from argparse import SUPPRESS, Namespace
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from beetle.cli.parser import Parser, typed_option
from beetle.contracts.errors import InvalidRequest
from beetle.named_tuple import NamedTuple

if TYPE_CHECKING:
    from msgspec import Struct

    from beetle.runtime.host.config import Config

FILES = {
    "metrics": ("token_file",),
    "grpc": ("certificate", "key", "client_ca"),
    "model": ("api_key_file",),
    "replica": ("secret_file", "key_file", "ca_file"),
}
"""By section, what names a file that is read."""
RESOLVED = (("daemon", "socket"), ("daemon", "store"), ("daemon", "profile"))


def fill_check(parser: Parser) -> None:
    """What `config check` takes."""
    parser.add_argument("file", nargs="?", metavar="FILE", default=SUPPRESS, help="this file; else the one in force")


def run_check(typed: Namespace) -> int:
    """Look a file through as a start of the daemon would.

    Raises:
        InvalidRequest: with the file, the line and the field.
    """
    from beetle.cli.render import as_json
    from beetle.cli.text import neutral

    uid = os.getuid()
    file = typed_option(typed, "file") or typed_option(typed, "config")
    config, place = read_checked(file, uid)
    missing = list(_missing(config))
    unchecked = [] if _has_known_keys(config) else ["console.keys"]
    if typed_option(typed, "json"):
        print(as_json({"file": place, "sections": list(_tables(place)), "unchecked": unchecked, "missing": missing}))
    elif place is None:
        print("There is no configuration file: the defaults are in force.")
    else:
        print(f"{place}: no error")
        for each in missing:
            print(neutral(each))
        if unchecked:
            print("console.keys: not checked, the console is not installed here; `beetle tui` checks them")
    return 0


def _has_known_keys(config: Config) -> bool:
    """Whether its key bindings can be looked through here, or it has none."""
    from beetle.cli.console import missing_library

    return not config.console.keys or missing_library() is None


def _tables(place: str | None) -> Mapping[str, Any]:
    """What stands in a file that was read as a configuration just now."""
    import tomllib

    if place is None:
        return {}
    with open(place, "rb") as stream:
        return tomllib.load(stream)


def read_checked(file: str | None, uid: int) -> tuple[Config, str | None]:
    """The configuration and its file, checked as a start of the daemon and of the console would.

    Raises:
        InvalidRequest: with the file, the line and the field.
    """
    config, place = read_located(file, uid)
    check_located(config, place)
    return config, place


def read_located(file: str | None, uid: int) -> tuple[Config, str | None]:
    """The configuration and its file; an error names the line.

    Raises:
        InvalidRequest: it has not the form of a configuration, or may not be obeyed.
    """
    from beetle.runtime.host.config import config_file, read_config

    place = config_file(file, os.environ, uid)
    try:
        return read_config(file, os.environ, uid), place
    except InvalidRequest as error:
        raise _located(error, place) from None


def check_located(config: Config, place: str | None) -> None:
    """Look at what only a start finds wrong; an error names the line.

    Raises:
        InvalidRequest: a start of the daemon, or of the console, would be refused.
    """
    try:
        check_further(config)
    except InvalidRequest as error:
        raise _located(error, place) from None


def check_further(config: Config) -> None:
    """Look at what a start of the daemon or the console finds wrong, beyond the file's own shape.

    Raises:
        InvalidRequest: with the path of the field.
    """
    import grp

    from beetle.cli.console import check_console_keys
    from beetle.open import check_configured
    from beetle.runtime.host.profile import load_profile

    check_configured(config)
    profile, group = config.daemon.profile, config.daemon.group
    if profile is not None and profile != "auto":
        load_profile(profile)
    if group is not None:
        try:
            grp.getgrnam(group)
        except KeyError:
            hint = f"create it (groupadd --system {group}), or name another one"
            reason = f"$.daemon.group: no group {group!r} on this machine"
            raise InvalidRequest(reason=reason, hint=hint, path="$.daemon.group") from None
    if config.grpc.listen is not None:
        # Nothing else of a configuration needs what a daemon is made of.
        from beetle.daemon import check_grpc

        check_grpc(config)
    if config.daemon.log is not None and os.path.isdir(config.daemon.log):
        reason = f"$.daemon.log: {config.daemon.log} is a folder"
        raise InvalidRequest(reason=reason, hint="name a file in it", path="$.daemon.log")
    # The console is loaded for that: only where there are any.
    if config.console.keys and _has_known_keys(config):
        check_console_keys(config.console.keys)


def _missing(config: Config) -> Iterator[str]:
    """Files that the configuration names and that are not there: they may come before the next start."""
    for section, names in FILES.items():
        table = getattr(config, section)
        for name in names:
            file = None if table is None else getattr(table, name)
            if file is not None and not os.path.lexists(file):
                yield f"{section}.{name}: {file} is not there, and a start needs it"


def _located(error: InvalidRequest, place: str | None) -> InvalidRequest:
    """The error with the line of its field."""
    from beetle.cli.config_edit import line_of

    field = error.details.get("path")
    if place is None or field is None:
        return error
    try:
        text = Path(place).read_text(encoding="utf-8")
        line = line_of(text, _keys(str(field)))
    except (OSError, ValueError):
        return error
    if line is None:
        return error
    reason = error.message.removeprefix(f"{place}: ")
    if str(field) not in reason:
        reason = f"{field}: {reason}"
    return InvalidRequest(reason=f"{place}:{line}: {reason}", path=field, file=place, line=line, hint=error.hint)


def _keys(field: str) -> tuple[str, ...]:
    """`$.daemon.dirs[0]` as the names of its keys."""
    return tuple(each.partition("[")[0] for each in field.removeprefix("$.").split(".") if each)


class Shown(NamedTuple):
    """A value that is in force, and where it comes from."""

    key: str
    value: Any
    origin: str


def fill_show(parser: Parser) -> None:
    """What `config show` takes."""
    parser.add_argument("--all", action="store_true", default=SUPPRESS, help="the profile's budgets and defaults too")


def run_show(typed: Namespace) -> int:
    """Each value in force, and where it comes from; never a secret."""
    from beetle.cli.render import as_json
    from beetle.cli.text import neutral

    config, place = read_checked(typed_option(typed, "config"), os.getuid())
    shown = list(_in_force(typed, config, place, everything=bool(typed_option(typed, "all"))))
    if typed_option(typed, "json"):
        print(as_json({"file": place, "values": [each._asdict() for each in shown]}))
        return 0
    from beetle.cli.config_edit import toml

    for each in shown:
        value = "(none)" if each.value is None else toml(each.value)
        print(neutral(f"{each.key} = {value}  # {each.origin}"))
    return 0


def _in_force(typed: Namespace, config: Config, place: str | None, *, everything: bool) -> Iterator[Shown]:
    from beetle.cli.serve import plan
    from beetle.runtime.host.config import SECTIONS

    written = _tables(place)
    found = plan(typed, os.environ, os.getuid())
    for key, value, variable in (
        ("socket", found.socket, "BEETLE_SOCKET"),
        ("store", found.store, "BEETLE_STORE"),
        ("profile", found.profile, ""),
    ):
        yield Shown(f"daemon.{key}", value, _origin(typed, key, variable, written.get("daemon", {}), place))
    for section in SECTIONS:
        table, said = getattr(config, section), written.get(section, {})
        if section == "principals":
            for name, each in table.items():
                yield from _of_table(f"principals.{name}", each, said[name], place, everything=everything)
        elif table is not None:
            yield from _of_table(section, table, said, place, everything=everything)
    if dirs := os.environ.get("BM_AGENT_SKILL_DIRS"):
        yield Shown("agent_skills.dirs", dirs.split(":"), "environment $BM_AGENT_SKILL_DIRS")
    if everything:
        yield from _budgets(found.profile, found.store)


def _of_table(
    name: str, table: Struct, said: Mapping[str, Any], place: str | None, *, everything: bool
) -> Iterator[Shown]:
    from msgspec import to_builtins

    for field in table.__struct_fields__:
        given = field in said
        # Those three are resolved further than the file does it, and shown first.
        if (name, field) not in RESOLVED and (given or everything or name == "daemon"):
            value = _harmless(to_builtins(getattr(table, field)))
            yield Shown(f"{name}.{field}", value, f"file {place}" if given else "default")


def _origin(typed: Namespace, key: str, variable: str, said: Mapping[str, Any], place: str | None) -> str:
    if typed_option(typed, key) is not None:
        return f"option --{key}"
    if variable and os.environ.get(variable):
        return f"environment ${variable}"
    return f"file {place}" if key in said else "default"


def _budgets(profile: str, store: str) -> Iterator[Shown]:
    from msgspec.structs import asdict

    from beetle.runtime.host.choosing import choose_profile, read_machine
    from beetle.runtime.host.profile import load_profile

    name = choose_profile(read_machine(Path(store).parent)).name if profile == "auto" else profile
    found = load_profile(name)
    for key, value in asdict(found.budgets).items():
        yield Shown(f"budgets.{key}", value, f"profile {found.name}")


def _harmless(value: Any) -> Any:
    """A value without what stands before the host of a URL."""
    if isinstance(value, str) and "://" in value and "@" in value:
        kind, _, rest = value.partition("://")
        host, slash, path = rest.partition("/")
        user = host.rpartition("@")[0].partition(":")[0]
        return f"{kind}://{user}@{host.rpartition('@')[2]}{slash}{path}"
    return value


OWN = {
    "config check": (fill_check, run_check),
    "config show": (fill_show, run_show),
}
