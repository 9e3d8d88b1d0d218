"""The files of a MentisDB data folder, in the order in which they are read, each with its chain's key."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from beetle.importing.lines import UNREADABLE
from beetle.importing.mentisdb import AGENTS_ENDING, CHAIN_ENDINGS, SKILLS_NAME
from beetle.named_tuple import NamedTuple

REGISTRY_NAME: Final = "mentisdb-registry.json"
FINGERPRINT: Final = 16
MOST_REGISTRY_BYTES: Final = 2**24


class _Chain(msgspec.Struct):
    storage_location: str = ""


class _Registry(msgspec.Struct):
    chains: dict[str, _Chain]


REGISTRY: Final = msgspec.json.Decoder(_Registry)


class Member(NamedTuple):
    """One file: its name, its chain's key (empty for the skills), and whether the key is only what the name tells."""

    name: str
    chain: str
    guessed: bool = False


def is_data_folder(names: Iterable[str]) -> bool:
    """Whether a folder with files of these names is one of MentisDB."""
    return any(each in (REGISTRY_NAME, SKILLS_NAME) or _is_chain(each, CHAIN_ENDINGS[:1]) for each in names)


def members(names: Iterable[str], registry: bytes | None) -> list[Member]:
    """The files of a folder that are read: the agents of all chains, then the thoughts, and the skills at the end.

    Args:
        registry: the content of the file REGISTRY_NAME, None without one.
    """
    keys = _keys(registry)
    # Agents are known before they write. The two files of one chain need not have the same fingerprint.
    there = sorted(names, key=lambda each: (not each.endswith(AGENTS_ENDING), each))
    of_chains = (each for each in there if each.endswith(AGENTS_ENDING) or _is_chain(each, CHAIN_ENDINGS))
    found = [Member(each, *_chain_of(_stem(each), keys)) for each in of_chains]
    return found + [Member(each, "") for each in there if each == SKILLS_NAME]


def chain_of_name(name: str) -> Member:
    """What a file's name alone tells of its chain."""
    return Member(name, *_chain_of(_stem(name), {}))


def _stem(name: str) -> str:
    return name.removesuffix(AGENTS_ENDING) if name.endswith(AGENTS_ENDING) else os.path.splitext(name)[0]


def _chain_of(stem: str, keys: Mapping[str, str]) -> tuple[str, bool]:
    """The key of a chain, and whether it may have been another: a name has other characters replaced."""
    if stem in keys:
        return keys[stem], False
    safe, _, fingerprint = stem.rpartition("-")
    return safe or stem, fingerprint != _fingerprint(safe)


def _fingerprint(key: str) -> str:
    return hashlib.sha256(key.encode(errors="surrogatepass")).hexdigest()[:FINGERPRINT]


def _is_chain(name: str, endings: tuple[str, ...]) -> bool:
    stem, ending = os.path.splitext(name)
    fingerprint = stem.rpartition("-")[2]
    return ending in endings and len(fingerprint) == FINGERPRINT and set(fingerprint) <= set("0123456789abcdef")


def _keys(registry: bytes | None) -> dict[str, str]:
    """Chain keys by the stem of their files."""
    if registry is None:
        return {}
    try:
        chains = REGISTRY.decode(registry).chains
    except UNREADABLE:
        # What the names tell is left; it is said where a key is taken from a name.
        return {}
    keys: dict[str, str] = {}
    for key, chain in chains.items():
        safe = "".join(each if each.isalnum() or each in "-_" else "_" for each in key)
        keys[f"{safe}-{_fingerprint(key)}"] = key
        location = chain.storage_location.replace("\\", "/").rpartition("/")[2]
        if location:
            keys[os.path.splitext(location)[0]] = key
    return keys
