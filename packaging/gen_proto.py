"""Compiles beetle/rpc/*.proto into beetle/rpc/descriptors.py, which is what the program loads.

    python packaging/gen_proto.py

Needs grpcio-tools, which the extra `dev` has. What is written depends on the sources alone, not on the version of
protobuf at run time.
"""

from __future__ import annotations

import sys
import tempfile
from base64 import b85encode
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "beetle/rpc"
FILES = ("memory", "health", "reflection")
WIDTH = 110
HEAD = '''"""Written by packaging/gen_proto.py from the .proto files beside it: their compiled descriptors."""

from __future__ import annotations

from collections.abc import Mapping

DESCRIPTORS: Mapping[str, str] = {
'''


def compiled(name: str) -> bytes:
    """The serialized FileDescriptorProto of one file."""
    from google.protobuf.descriptor_pb2 import FileDescriptorSet
    from grpc_tools import protoc

    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "set"
        code = protoc.main(["protoc", f"-I{FOLDER}", f"--descriptor_set_out={out}", f"{FOLDER / name}.proto"])
        if code:
            sys.exit(code)
        return FileDescriptorSet.FromString(out.read_bytes()).file[0].SerializeToString(deterministic=True)


def text() -> str:
    """The module as it should be."""
    lines = [HEAD]
    for name in FILES:
        data = b85encode(compiled(name)).decode()
        parts = [data[index : index + WIDTH] for index in range(0, len(data), WIDTH)]
        lines.append(f'    "{name}.proto": (\n' + "".join(f'        "{part}"\n' for part in parts) + "    ),\n")
    return "".join(lines) + '}\n"""By file name: a FileDescriptorProto in base 85."""\n'


if __name__ == "__main__":
    (FOLDER / "descriptors.py").write_text(text())
