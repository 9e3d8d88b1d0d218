"""Where a replica is kept: the URL of `[replica]`, and what each kind of target needs beside it."""

from __future__ import annotations

import re
from typing import Literal
from urllib.parse import unquote, urlsplit

from beetle.contracts.errors import InvalidRequest, nearest
from beetle.named_tuple import NamedTuple

TargetKind = Literal["file", "sftp", "s3", "nats"]
SHAPES: dict[str, str] = {
    "file": "file:///FOLDER",
    "sftp": "sftp://USER@HOST[:PORT]/FOLDER",
    "s3": "s3://BUCKET/PREFIX",
    "nats": "nats://[USER@]HOST[:PORT]/BUCKET",
}
USABLE: dict[str, tuple[str, ...]] = {
    "file": (),
    "sftp": ("host_key", "key_file", "secret_file"),
    "s3": ("access_key_id", "secret_file", "endpoint", "region"),
    "nats": ("key_file", "secret_file", "ca_file"),
}
"""The settings that belong to one kind of target, by kind."""
OF_A_KIND = tuple(dict.fromkeys(name for names in USABLE.values() for name in names))
HOUR_US = 3_600_000_000
MARGIN_H = 1
"""For what is sent and removed."""
BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}\Z")
HOST_KEY = re.compile(r"(ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp(256|384|521)) [A-Za-z0-9+/]{16,}={0,2}( .*)?\Z")


class Target(NamedTuple):
    """A parsed URL. `host` has its port where one was given; `path` is a folder, of S3 the prefix."""

    kind: TargetKind
    url: str
    path: str = ""
    host: str = ""
    user: str = ""
    bucket: str = ""


class ReplicaSettings(NamedTuple):
    """All that `[replica]` says; times in milliseconds or hours as their names say, sizes in bytes."""

    target: Target
    monitor_interval_ms: int = 25
    sync_interval_ms: int = 25
    snapshot_interval_h: int = 24
    retention_h: int = 168
    local_bytes: int = 256 * 2**20
    command: str | None = None
    secret_file: str | None = None
    key_file: str | None = None
    host_key: str | None = None
    access_key_id: str | None = None
    endpoint: str | None = None
    region: str | None = None
    ca_file: str | None = None

    def kept_until(self, now: int) -> int:
        """Until when the replica holds what is erased now, if its sidecar reaches it; both in microseconds.

        A file goes when the snapshot behind it does: the next one is made within an interval, is kept for the retention
        from then, and is looked at once in an interval again.
        """
        return now + (self.retention_h + 2 * self.snapshot_interval_h + MARGIN_H) * HOUR_US


def parse_target(url: str) -> Target:
    """What a URL names.

    Raises:
        InvalidRequest: it is none that a replica can have; `path` is `$.replica.url`.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise _wrong("it is no URL", f"write {' or '.join(SHAPES.values())}") from None
    if parts.scheme not in SHAPES:
        raise _wrong(f"no replica can be kept at {parts.scheme or url[:40]!r}", nearest(parts.scheme, SHAPES))
    shape = f"write {SHAPES[parts.scheme]}"
    if parts.password is not None:
        raise _wrong("it holds a password", "put the password into a file of mode 0600 and name that in secret_file")
    if parts.query or parts.fragment:
        raise _wrong("it has a query or a fragment", f"{shape}; everything else is a key of [replica]")
    host, path = parts.hostname or "", unquote(parts.path)
    if ":" in host:
        host = f"[{host}]"
    place = host if port is None else f"{host}:{port}"
    match parts.scheme:
        case "file" if not parts.netloc and _is_folder(path):
            return Target("file", url, path=path)
        case "sftp" if host and parts.username and _is_folder(path):
            return Target("sftp", url, path=path, host=place, user=unquote(parts.username))
        case "s3" if BUCKET.match(parts.netloc):
            return Target("s3", url, path=path.strip("/"), bucket=parts.netloc)
        case "nats" if host and BUCKET.match(path.strip("/")):
            return Target("nats", url, host=place, user=unquote(parts.username or ""), bucket=path.strip("/"))
        case _:
            raise _wrong("a part is missing or has another form", shape)


def check_settings(settings: ReplicaSettings) -> None:
    """Refuse settings that do not fit their target. What is in files is looked at when the sidecar starts.

    Raises:
        InvalidRequest: with `path`, such as `$.replica.host_key`.
    """
    kind = settings.target.kind
    for name in OF_A_KIND:
        if getattr(settings, name) is not None and name not in USABLE[kind]:
            raise _refused(name, f"a {kind} target has no {name}", f"leave it out; {kind} takes {_list(USABLE[kind])}")
    if kind == "sftp":
        if settings.host_key is None:
            hint = "give the server's public key, as `ssh-keyscan -t ed25519 HOST` prints it behind the name"
            raise _refused("host_key", "an SFTP server must be known by its key", hint)
        if not _is_public_key(settings.host_key):
            raise _refused("host_key", "it is no public key", 'write host_key = "ssh-ed25519 AAAA…"')
        if settings.key_file is not None and settings.secret_file is not None:
            raise _refused("secret_file", "a key and a password are given", "leave one of them out")
    if kind == "nats" and settings.key_file is not None and settings.secret_file is not None:
        raise _refused("secret_file", "a credentials file and a secret are given", "leave one of them out")


def _is_public_key(text: str) -> bool:
    """Whether it is a key's type and, in base64, the key, which begins with the length and the name of its type."""
    if not HOST_KEY.match(text):
        return False
    # Of all targets only this one needs it, and every command reads the configuration.
    import binascii

    kind, key = text.split(" ")[:2]
    try:
        found = binascii.a2b_base64(key, strict_mode=True)
    except binascii.Error:
        return False
    return found.startswith(len(kind).to_bytes(4, "big") + kind.encode())


def _is_folder(path: str) -> bool:
    return path.startswith("/") and len(path) > 1 and not re.search(r"[\x00-\x1f]|/\.\.?(/|\Z)", path)


def _list(names: tuple[str, ...]) -> str:
    return ", ".join(names) or "no such keys"


def _wrong(why: str, hint: str) -> InvalidRequest:
    return _refused("url", why, hint)


def _refused(name: str, why: str, hint: str) -> InvalidRequest:
    path = f"$.replica.{name}"
    return InvalidRequest(reason=f"{path}: {why}", path=path, hint=hint)
