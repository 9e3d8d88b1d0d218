"""Beetle: governed long-term memory for agents on a device.

`from beetle import MemoryRuntime` opens a store in process; `from beetle.client import Client` speaks to the daemon.
Importing this package alone loads nothing heavy.
"""

from __future__ import annotations

__version__ = "0.1.0"
__all__ = ["MemoryIdentity", "MemoryRuntime", "MemoryScope", "__version__"]

TYPE_CHECKING = False  # as typing has it; importing that module takes longer than all else `beetle --version` does

if TYPE_CHECKING:
    from typing import Any

    from beetle.contracts.common import MemoryIdentity, MemoryScope
    from beetle.sdk import MemoryRuntime


def __getattr__(name: str) -> Any:
    if name == "MemoryRuntime":
        from beetle.sdk import MemoryRuntime

        return MemoryRuntime
    if name in ("MemoryIdentity", "MemoryScope"):
        from beetle.contracts import common

        return getattr(common, name)
    raise AttributeError(f"module 'beetle' has no attribute {name!r}")
