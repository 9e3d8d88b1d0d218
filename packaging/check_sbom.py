"""Holds a bill of materials against CycloneDX's own JSON schema: `python packaging/check_sbom.py FILE`.

Run in build/release-venv, whose cyclonedx-python-lib carries the schemas. Ends with 1 and the reason when the bill is
not valid.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator


def main(file: Path) -> int:
    text = file.read_text()
    if (wrong := JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)) is not None:
        print(f"{file}: {wrong}", file=sys.stderr)
        return 1
    parts = json.loads(text)["components"]
    names = {each["name"] for each in parts}
    missing = {"python", "litestream", "cryptography", "apsw", "libc6"} - names
    if missing:
        print(f"{file}: it does not name {', '.join(sorted(missing))}", file=sys.stderr)
        return 1
    print(f"{file}: valid, {len(parts)} components")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
