"""The secrets of a replica: read when the sidecar starts, from a file of mode 0600 or the daemon's environment."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache

from beetle.contracts.errors import InvalidRequest
from beetle.named_tuple import NamedTuple
from beetle.replication.target import ReplicaSettings
from beetle.runtime.host.trusted_file import distrust

SECRET_VARIABLE = "BEETLE_REPLICA_SECRET"
SECRET_BYTES = 4096
KEY_BYTES = 64 * 1024
PASSED_ON = (
    "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "SSL_CERT_FILE", "SSL_CERT_DIR",
    "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
)  # fmt: skip
"""What the sidecar gets of the daemon's environment: the rest is none of its business."""


MASK = "***"


class Secrets(NamedTuple):
    """`secret` is a password, a token or a secret key. `environment` is all that the sidecar gets."""

    secret: str | None
    environment: dict[str, str]

    def __repr__(self) -> str:
        return "Secrets(…)"

    def masked(self, text: str) -> str:
        """A text for a log, without them."""
        known = (self.secret, self.environment.get("AWS_SECRET_ACCESS_KEY"), self.environment.get("AWS_SESSION_TOKEN"))
        for each in known:
            if each:
                text = _written(each).sub(MASK, text.replace(each, MASK))
        return text


PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.~-")
"""What every message quotes as it is."""


@lru_cache(maxsize=8)
def _written(secret: str) -> re.Pattern[str]:
    """The secret as a message may quote it: each character itself, escaped as in JSON, or its bytes percent-encoded."""
    return re.compile(_spelled(secret))


def _spelled(secret: str) -> str:
    return "".join(re.escape(each) if each in PLAIN else f"(?>{'|'.join(_forms(each))})" for each in secret)


def _forms(letter: str) -> Iterator[str]:
    """The longest first: once one fits, no other is tried."""
    yield "(?i:" + "".join(f"%{byte:02x}" for byte in letter.encode()) + ")"
    yield (
        "(?i:"
        + re.escape("".join(f"\\u{unit:04x}" for unit in memoryview(letter.encode("utf-16")[2:]).cast("H")))
        + ")"
    )
    yield re.escape(json.dumps(letter)[1:-1])
    yield from (re.escape(each) for each in (f"\\{letter}", letter))
    if letter == " ":
        yield r"\+"


def read_secrets(settings: ReplicaSettings, environment: Mapping[str, str]) -> Secrets:
    """What the target needs.

    Raises:
        InvalidRequest: a file cannot be read, or others can read or replace it; a secret is not UTF-8, or one that is
            needed is missing.
    """
    secret = _text(os.fsencode(environment.get(SECRET_VARIABLE, "")), f"${SECRET_VARIABLE}") or None
    if settings.secret_file is not None:
        content = _private("secret_file", settings.secret_file, SECRET_BYTES)
        secret = _text(content, settings.secret_file).strip()
    if settings.key_file is not None:
        _private("key_file", settings.key_file, KEY_BYTES)
    passed = {name: environment[name] for name in PASSED_ON if environment.get(name)}
    if settings.target.kind == "sftp" and secret is None and settings.key_file is None:
        raise _refused("key_file", "neither a key nor a password is given", "name key_file or secret_file")
    if settings.access_key_id is not None and secret is None:
        raise _refused("secret_file", f"a secret key is missing beside {settings.access_key_id!r}", "name secret_file")
    return Secrets(secret, passed)


def _text(secret: bytes, source: str) -> str:
    try:
        return secret.decode()
    except UnicodeDecodeError:
        raise _refused("secret_file", f"{source} is not UTF-8", "give the secret as text") from None


def _private(name: str, path: str, most: int) -> bytes:
    """The content of a file that only this user may read, where nobody else may put another in its place."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            if (why := distrust(file, path, os.geteuid())) is not None:
                raise _refused(name, f"{path}: {why.reason}", why.hint)
            if os.fstat(file).st_mode & 0o077:
                raise _refused(name, f"{path}: others may read it", f"chmod 0600 {path}")
            content = os.read(file, most + 1)
        finally:
            os.close(file)
    except OSError as error:
        raise _refused(name, f"{path}: {error.strerror or 'unreadable'}", "check the path and its owner") from None
    if not 0 < len(content.strip()) <= most:
        raise _refused(name, f"{path}: it is empty or longer than {most} bytes", "put the secret alone into it")
    return content


def _refused(name: str, why: str, hint: str) -> InvalidRequest:
    path = f"$.replica.{name}"
    return InvalidRequest(reason=f"{path}: {why}", path=path, hint=hint)
