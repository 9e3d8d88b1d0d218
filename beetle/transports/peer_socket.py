"""What the kernel says of a connection's peer, and timeouts of its socket."""

from __future__ import annotations

import socket
import struct

from beetle.runtime.host.principals import Peer

SO_PEERGROUPS = 59
GROUP_BYTES = 1024
"""Most that Python lets getsockopt answer: 256 supplementary groups."""


def credentials(peer: socket.socket) -> Peer:
    """The user, groups and process at the other end when it connected."""
    pid, uid, gid = struct.unpack("iII", peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    try:
        data = peer.getsockopt(socket.SOL_SOCKET, SO_PEERGROUPS, GROUP_BYTES)
    except OSError:
        data = b""  # an old kernel, or more groups than fit: the primary group still counts
    groups = struct.unpack(f"{len(data) // 4}I", data)
    return Peer(uid, (gid, *(each for each in groups if each != gid)), pid)


def set_timeout(peer: socket.socket, option: int, seconds: float) -> None:
    """A timeout for one direction alone; 0 waits for ever."""
    micros = max(1, int(seconds * 1_000_000)) if seconds else 0
    peer.setsockopt(socket.SOL_SOCKET, option, struct.pack("ll", micros // 1_000_000, micros % 1_000_000))
