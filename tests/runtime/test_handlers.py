"""The table of handlers: an area is imported when one of its operations is looked up."""

from __future__ import annotations

import subprocess
import sys

WITHOUT_DESCRIPTORS = """
import os, resource, sys
from beetle.contracts import codec
from beetle.contracts.errors import InvalidRequest, Overloaded
from beetle.runtime.areas.table import HANDLERS
HANDLERS.load("hello")
assert "beetle.runtime.areas.chains.reading" not in sys.modules
class Asked(codec.msgspec.Struct):
    number: int
def decode():
    try:
        codec.decode_request(codec.pack({"number": "one"}), Asked)
    except (Overloaded, InvalidRequest) as error:
        print(error.key)
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) - 1, hard))
print(HANDLERS["hello"] is not None)
try:
    HANDLERS["chain.list"]
except Overloaded as error:
    print(error.retryable, error.message)
decode()
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
decode()
print(HANDLERS["chain.list"] is not None)
"""


def test_without_a_descriptor_what_is_imported_late_is_imported_later() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT_DESCRIPTORS], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "True",
        "True this is asked for the first time, and no file descriptor is left: "
        "this profile allows as many as RLIMIT_NOFILE",
        "overloaded",
        "invalid_request",
        "True",
    ]
