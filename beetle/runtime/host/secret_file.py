"""A secret in a file that only this user may read, where nobody else may put another in its place."""

from __future__ import annotations

import os

from beetle.runtime.host.trusted_file import distrust

MOST_BYTES = 4096


def read_secret(path: str) -> str | None:
    """The secret: printable ASCII without blanks; None where the file is missing, open to others, or holds none."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            found = os.fstat(file)
            private = not found.st_mode & 0o077 and distrust(file, path, os.geteuid()) is None
            text = os.read(file, MOST_BYTES + 1) if private else b""
        finally:
            os.close(file)
    except OSError:
        return None
    secret = text.strip()
    if not 0 < len(secret) <= MOST_BYTES or not all(0x21 <= each <= 0x7E for each in secret):
        return None
    return secret.decode("ascii")
