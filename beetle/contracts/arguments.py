"""What a typed method was given, as the arguments of its operation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from beetle.contracts.fields import Request


def given_arguments(first: str, given: Any, fields: dict[str, Any]) -> Any:
    """`given` is a request, or a value for its field `first`: a mapping alone is a request.

    Raises:
        TypeError: a request and fields, or the first field twice.
    """
    if given is None:
        return fields
    if not first or isinstance(given, Request) or (isinstance(given, Mapping) and not fields):
        if fields:
            raise TypeError("give a request or its fields, not both")
        return cast(Any, given)
    if first in fields:
        raise TypeError(f"{first} is given twice")
    return {first: cast(Any, given), **fields}
