"""config set: one key of the configuration file changed, and nothing else of it."""

from __future__ import annotations

import errno
import fcntl
import math
import os
from argparse import SUPPRESS, Namespace
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, cast

from beetle.cli.parser import Parser, typed_option
from beetle.contracts.errors import BeetleError, Forbidden, InvalidRequest, StorageFull, StoreReadOnly, nearest

Key = tuple[str, ...]
HoldsFrom = Literal["console_start", "daemon_start", "reload"]
WORDS: dict[HoldsFrom, str] = {
    "console_start": "it holds from the next start of the console",
    "daemon_start": "it holds from the next start of the daemon",
    "reload": "`beetle reload` takes it over",
}
"""When a key that was changed begins to hold, as it is told."""


def fill_set(parser: Parser) -> None:
    """What `config set` takes."""
    add = parser.add_argument
    add("key", metavar="KEY", help="section.key, such as daemon.log or principals.voice.uid")
    add("value", nargs="?", metavar="VALUE", default=SUPPRESS, help='text, or a value of TOML: 7, true, ["a", "b"]')
    add("--unset", action="store_true", default=SUPPRESS, help="take the key away: its default holds")


def run_set(typed: Namespace) -> int:
    """Change one key of the file. Of two commands at once the second one waits, and changes what the first one wrote.

    Raises:
        InvalidRequest: the file would be refused then; it is as it was.
        StoreReadOnly: the file, or its folder, cannot be written.
        StorageFull: there is no room for it.
    """
    from beetle.runtime.host.config import config_file

    uid = os.getuid()
    file = config_file(typed_option(typed, "config"), os.environ, uid, usual=True)
    if file is None:
        raise InvalidRequest(reason="no place for a configuration is known", hint="give one: --config FILE")
    key, value = _asked(typed)
    place = Path(os.path.realpath(file))
    name = ".".join(key)
    if place.is_symlink():
        reason = f"{file} is a symbolic link that leads to itself"
        raise InvalidRequest(reason=reason, hint="remove it, or have it lead to a file")
    with _part_of(place) as part:
        text = _text_of(place, uid)
        done = _with(text, key, [None] if value is None else list(_meanings(value)), place)
        is_changed = done != text
        if is_changed:
            _put(part, place, done)
    if typed_option(typed, "json"):
        from beetle.cli.render import as_json

        print(as_json({"file": str(file), "key": name, "changed": is_changed, "holds_from": _when(key)}))
    elif is_changed:
        print(f"{file} is changed; {WORDS[_when(key)]}")
    else:
        print(f"{name} does not stand in {file}" if value is None else f"{file} says so already")
    return 0


def _asked(typed: Namespace) -> tuple[Key, str | None]:
    """The key, and its new value; None where it is to go."""
    from beetle.runtime.host.config import SECTIONS

    name, value = str(typed_option(typed, "key")), typed_option(typed, "value")
    if (value is None) is not bool(typed_option(typed, "unset")):
        raise InvalidRequest(
            reason="give either VALUE or --unset", hint="beetle config set daemon.log /var/log/beetle.log"
        )
    for each in (name, value or ""):
        try:
            each.encode()
        except UnicodeEncodeError:
            hint = "a configuration is a text in UTF-8"
            raise InvalidRequest(reason="the key or the value is not UTF-8", hint=hint) from None
    section, _, rest = name.partition(".")
    if section not in SECTIONS or not rest:
        reason = f"{name[:80]!r} is no key of the configuration"
        raise InvalidRequest(reason=reason, hint=nearest(section, SECTIONS))
    return (section, *rest.split(".")), value


def _when(key: Key) -> HoldsFrom:
    from beetle.runtime.host.config import AT_START, RELOADED

    if key[0] == "console":
        return "console_start"
    return "reload" if key[0] in RELOADED and key not in AT_START else "daemon_start"


def _text_of(place: Path, uid: int) -> str:
    """What stands in the file, "" where there is none; one that may not be obeyed is refused."""
    from beetle.runtime.host.toml_file import read_toml

    if not place.exists():
        return ""
    read_toml(place, trusting=uid)
    return place.read_bytes().decode()


def _meanings(value: str) -> Iterator[Any]:
    """What a word may mean: a value of TOML, else text."""
    import tomllib

    try:
        found = tomllib.loads(f"x = {value}")
    except (ValueError, RecursionError):
        found = {}
    # A value of several lines may hold further keys; a date is written as nothing but a text.
    if len(found) == 1 and _is_plain(found["x"]):
        yield found["x"]
    yield value


def _is_plain(value: Any) -> bool:
    if isinstance(value, list):
        return all(_is_plain(each) for each in cast("list[Any]", value))
    if isinstance(value, dict):
        return all(_is_plain(each) for each in cast("dict[str, Any]", value).values())
    return isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value))


def _with(text: str, key: Key, values: list[Any], place: Path) -> str:
    """The text with the first value that the configuration takes. Raises InvalidRequest with the first error."""
    import tomllib

    from beetle.cli.config_edit import changed
    from beetle.cli.configuring import check_further
    from beetle.runtime.host.config import config_of

    first: BeetleError | None = None
    for value in values:
        try:
            done = changed(text, key, value)
            check_further(config_of(tomllib.loads(done), str(place)))
        except InvalidRequest as error:
            first = first or error
            continue
        return done
    assert first is not None
    raise first


@contextmanager
def _part_of(place: Path) -> Generator[int]:
    """The file that becomes the configuration, empty and locked: whoever holds it is alone at changing that one.

    It has a mode in which nobody else can open it, so that no other user can hold the lock.
    """
    part = _part(place)
    with _told(part):
        place.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    while True:
        with _told(part):
            descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
        try:
            with _told(part):
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            # Who was waited for has renamed it, or taken it away: then another one has the name, or none has.
            if not _is_named(descriptor, part):
                continue
            if os.fstat(descriptor).st_uid != os.geteuid():
                hint = f"remove {part} once you know whose it is"
                raise Forbidden(reason=f"{part} belongs to another user", hint=hint)
            try:
                yield descriptor
            finally:
                if _is_named(descriptor, part):
                    part.unlink()
            return
        finally:
            os.close(descriptor)


def _part(place: Path) -> Path:
    return place.with_name(f".{place.name}.new")


def _is_named(descriptor: int, part: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(part))
    except FileNotFoundError:
        return False


def _put(descriptor: int, place: Path, text: str) -> None:
    """Put the whole file in its place or nothing of it, with the mode and the owner that it had."""
    from beetle.deploy.steps import sync_folder

    with _told(place):
        found = place.stat() if place.exists() else None
        os.ftruncate(descriptor, 0)
        with open(descriptor, "w", encoding="utf-8", newline="", closefd=False) as stream:
            stream.write(text)
        if found is not None and (found.st_uid, found.st_gid) != (os.geteuid(), os.getegid()):
            os.fchown(descriptor, found.st_uid, found.st_gid)
        os.fchmod(descriptor, 0o644 if found is None else found.st_mode & 0o7777)
        os.fsync(descriptor)
        os.replace(_part(place), place)
        sync_folder(place.parent)


@contextmanager
def _told(path: Path) -> Generator[None]:
    """An error of the file system as one of ours that names the file."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StorageFull(path=str(path)) from error
        hint = "change it as its owner, or as root"
        if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
            hint = "see what is in its place, and remove or rename that"
        raise StoreReadOnly(path=str(path), reason=error.strerror or "unknown", hint=hint) from error


OWN = {"config set": (fill_set, run_set)}
