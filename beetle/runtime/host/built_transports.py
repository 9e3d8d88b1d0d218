"""Which transports this build serves."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec

from beetle.contracts.errors import CapabilityHidden
from beetle.contracts.names import TransportName
from beetle.contracts.operations import EXPOSED_TRANSPORTS

NEEDS: Mapping[str, tuple[str, ...]] = {"grpc": ("grpc", "google.protobuf")}
"""Modules of an extra, without which a build does not serve a transport."""
INSTALL = "pip install 'beetle-memory[grpc]', or take the gateway build"


@cache
def built_transports() -> frozenset[TransportName]:
    """The transports that this build serves: some operation is exposed there, and what it needs is installed."""
    return frozenset(name for name in EXPOSED_TRANSPORTS if all(_is_there(each) for each in NEEDS.get(name, ())))


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # of the package that it is in
        return False


def check_built(name: TransportName) -> None:
    """Raises CapabilityHidden when this build does not serve a transport."""
    if name not in built_transports():
        raise CapabilityHidden(operation=name, reason="this build does not contain it", hint=INSTALL)
