"""Memory that a start has left: what is given back, and that nothing is lost by it."""

from __future__ import annotations

import subprocess
import sys

from beetle.mapped_pages import mappings

SMAPS = b"""\
55d0c0000000-55d0c0001000 r--p 00000000 fe:00 131                        /usr/bin/python3
Size:                  4 kB
Rss:                   4 kB
Private_Dirty:         0 kB
Anonymous:             0 kB
VmFlags: rd mr mw me sd
55d0c0001000-55d0c0005000 r-xp 00001000 fe:00 131                        /a folder/of - names
Size:                 16 kB
Anonymous:             0 kB
VmFlags: rd ex mr mw me sd
55d0c0005000-55d0c0006000 r--p 00005000 fe:00 131                        /usr/bin/python3
Size:                  4 kB
Private_Dirty:         4 kB
Anonymous:             4 kB
VmFlags: rd mr mw me ac sd
55d0c0006000-55d0c0007000 rw-p 00006000 fe:00 131                        /usr/bin/python3
Size:                  4 kB
Anonymous:             0 kB
VmFlags: rd wr mr mw me ac sd
55d0c1000000-55d0c1021000 r--p 00000000 00:00 0                          [heap]
Size:                132 kB
Anonymous:             0 kB
VmFlags: rd wr mr mw me ac sd
7f0000000000-7f0000001000 r--s 00000000 fe:00 140                        /srv/b.db
Size:                  4 kB
Anonymous:             0 kB
VmFlags: rd sh mr me ms sd
"""
WORKS_ON = """
import hashlib, json, zlib
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from beetle.mapped_pages import MappedPages
def resident():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("RssFile"))
def work():
    key = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
    return key.sign(hashlib.sha256(zlib.compress(json.dumps([1, "two"]).encode())).digest())
signed, before, pages = work(), resident(), MappedPages()
assert pages.look()
assert resident() < before / 2, (before, resident())
assert not pages.look() and not pages.look(), "nothing was used since"
held = resident()
assert work() == signed
assert resident() > held + 1024 and pages.look(), (held, resident())
# What comes back at once is needed for a while, and then given back again.
for _ in range(3):
    work()
    assert not pages.look()
pages._until = 0.0  # five seconds have passed
assert pages.look()
assert not pages.look() and not pages.look(), "what is left is given back once"
"""


def test_read_only_mappings_of_files_are_named_that_nobody_has_written() -> None:
    assert mappings(SMAPS) == [(0x55D0C0000000, 0x55D0C0001000), (0x55D0C0001000, 0x55D0C0005000)]


def test_what_was_given_back_is_there_when_it_is_needed() -> None:
    done = subprocess.run([sys.executable, "-c", WORKS_ON], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
