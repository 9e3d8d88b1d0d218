"""The table of operations. Every transport, the command line and the docs come out of it."""

from __future__ import annotations

from collections.abc import Mapping

from beetle.contracts.names import TransportName
from beetle.contracts.operation import EVERYWHERE as EVERYWHERE
from beetle.contracts.operation import Operation as Operation
from beetle.contracts.rows import OPERATIONS as OPERATIONS

EXPOSED_TRANSPORTS: frozenset[TransportName] = frozenset(name for row in OPERATIONS for name in row.exposed)
"""The transports over which some operation can be reached; what a build contains of them, the runtime knows."""

BY_NAME: Mapping[str, Operation] = {row.name: row for row in OPERATIONS}
