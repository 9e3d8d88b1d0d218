"""Trees made by hand, as packaging/tree.py makes them of a build."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path


def make_tree(folder: Path, files: dict[str, bytes], links: dict[str, str] | None = None) -> Path:
    """A tree at `folder` with these files (those that begin with `#!` are programs), links, MANIFEST and in-use."""
    lines: list[tuple[bytes, str]] = []
    for path, data in files.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
        mode = "755" if data.startswith(b"#!") else "644"
        file.chmod(int(mode, 8))
        lines.append((os.fsencode(path), f"{hashlib.sha256(data).hexdigest()} {mode} {len(data)} {path}"))
    for path, target in (links or {}).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).symlink_to(target)
        lines.append((os.fsencode(path), f"link - - {path} -> {target}"))
    write_manifest(folder, [line for _, line in sorted(lines)])
    (folder / "in-use").touch(0o644)
    return folder


def write_manifest(folder: Path, lines: list[str], version: str = "0.1.0") -> str:
    """A MANIFEST of these lines; the tree's name."""
    body = "".join(f"{line}\n" for line in lines)
    name = f"{version}-{hashlib.sha256(body.encode()).hexdigest()[:12]}"
    (folder / "MANIFEST").write_text(f"beetle-tree 1 {name}\n{body}")
    return name
