"""What looks like a secret is refused wherever something is asked to be remembered, by one detector."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from beetle.contracts.errors import PrivacyDenied
from beetle.contracts.refs import parse_ref
from beetle.domain.sensitive import FINDING_WORDS, is_secret

HINT = "leave the secret out, and say where it is kept instead; nothing was written"

Said = tuple[str, "str | tuple[str, ...] | None"]
"""A path of the request, and what is said there."""


def refuse(texts: Iterable[Said], *, names: Iterable[Said] = ()) -> None:
    """Refuse a request for its first text that holds what looks like a secret; the text is not told.

    Args:
        names: ids that hosts give. The digits of an id are no card's number, as are those of a ref.

    Raises:
        PrivacyDenied: `details.path` names the place.
    """
    path = place_of_one(texts, names=names)
    if path is not None:
        raise PrivacyDenied(reason=f"{path} {FINDING_WORDS['secret']}", hint=HINT, path=path, found="secret")


def place_of_one(texts: Iterable[Said], *, names: Iterable[Said] = ()) -> str | None:
    """The path of the first text that holds what looks like a secret; `names` as of `refuse`."""
    said = ((path, text, parse_ref(text) is None) for path, text in _single(texts))
    named = ((path, text, False) for path, text in _single(names))
    return next((path for path, text, cards in chain(said, named) if is_secret(text, cards=cards)), None)


def fields(part: object, root: str, *names: str) -> Iterator[Said]:
    """Some fields of a part of a request, each with its path."""
    return ((f"{root}.{name}", getattr(part, name)) for name in names)


def _single(texts: Iterable[Said]) -> Iterator[tuple[str, str]]:
    for path, text in texts:
        if isinstance(text, str):
            yield path, text
        elif text is not None:
            yield from ((f"{path}[{place}]", each) for place, each in enumerate(text))
