"""Seeds of the native targets: archives as packaging/onefile.py writes them, and a trailer."""

from __future__ import annotations

import io
import struct
import sys
import tarfile
from pathlib import Path

LONG = "/".join(["_internal"] * 9 + ["x" * 90])


def archive(*entries: tuple[str, bytes, str, bytes]) -> bytes:
    """A ustar archive of (name, type, link target, content)."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, kind, target, content in entries:
            info = tarfile.TarInfo(name)
            info.type, info.linkname, info.mode, info.size = kind, target, 0o755, len(content)
            tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def seeds(target: str) -> list[bytes]:
    """Inputs of a target; see its C file for what the first byte says."""
    folder, file, link = tarfile.DIRTYPE, tarfile.REGTYPE, tarfile.SYMTYPE
    tree = archive(
        ("_internal", folder, "", b""), ("_internal/a", file, "", b"x" * 700), ("_internal/b", link, "a", b""),
        ("_internal/c", folder, "", b""), ("_internal/c/up", link, "../a", b""), ("beetle", file, "", b""),
    )  # fmt: skip
    nested = [(LONG[: LONG.find("/", at)], folder, "", b"") for at in range(9, 90, 10)]
    long = archive(*nested, (LONG, file, "", b"deep"))
    if target == "tar":
        return [bytes([piece]) + each for piece in (73, 1, 255) for each in (tree, long)]
    name = b"1.0.0-0123456789ab".ljust(64, b"\0")
    size = (1 << 20) - 192
    trailer = b"beetle-one-file\0" + name + struct.pack("<QQQQ", 1000, size - 1000, 700, 6) + bytes(16) + bytes(64)
    return [b"\0" + trailer, b"\1(\xb5/\xfd\0X\1\0\0", b"\2" + tree, b"\2" + long]


if __name__ == "__main__":
    for number, each in enumerate(seeds(sys.argv[1])):
        (Path(sys.argv[2]) / f"seed-{number}").write_bytes(each)
