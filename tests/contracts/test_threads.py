"""Decoding from many threads at once, from the first request on."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import sys, threading
import msgpack
sys.setswitchinterval(1e-6)
from beetle.contracts import codec, transcript
report = msgpack.packb({"lifecycle": {"operation": "x", "changed": True, "at": "x", "event_id": 1}, "committed": 1,
                        "unchanged": 0, "turns": [{"turn_id": "t", "sequence": 1, "outcome": "committed"}]})
message = {"message_id": "m", "role": "user", "content": "x"}
turn = {"turn_id": "t", "at": "2026-01-02T03:04:05Z", "messages": [message]}
request = msgpack.packb({"conversation": {"conversation_id": "c"}, "turns": [turn]})
barrier, failures = threading.Barrier(6), []
def run():
    barrier.wait()
    try:
        codec.unpack(report, transcript.MemoryTranscriptCommitReport)
        codec.decode_request(request, transcript.MemoryTranscriptCommitRequest)
    except BaseException as error:
        failures.append(repr(error))
threads = [threading.Thread(target=run) for _ in range(6)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
sys.exit(3 if failures else 0)
"""


def test_the_first_requests_of_many_threads_are_all_decoded() -> None:
    """The struct library crashes when two threads build the decoder of one new type at once; ours are built in turn."""
    for _ in range(8):
        done = subprocess.run([sys.executable, "-c", SCRIPT], check=False, timeout=60)
        assert done.returncode == 0
