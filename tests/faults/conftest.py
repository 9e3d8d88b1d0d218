"""What the fault tests share with the store's."""

from tests.store.conftest import path

__all__ = ["path"]
