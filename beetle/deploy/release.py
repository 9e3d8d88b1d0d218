"""Whether an installed tree is the one that was released: its files, and the release's signature of their list."""

from __future__ import annotations

import os
from collections.abc import Iterable

from beetle.contracts.errors import InvalidRequest
from beetle.deploy.manifest import MANIFEST, SIGNATURE, read_manifest, verify_tree
from beetle.named_tuple import NamedTuple

RELEASE_KEYS: tuple[str, ...] = ()
"""Public keys of releases in hex, the newest first: `packaging/sign.py --new-key` puts one there."""


class Release(NamedTuple):
    """What was found: the tree's name, how many files it has, and what of them is not as it was built.

    `signed` is whether MANIFEST.sig is there; `key` is the public key in hex that made it, None where no known key did.
    """

    name: str
    files: int
    differences: tuple[str, ...]
    signed: bool
    key: str | None


class NoPublicKey(InvalidRequest):
    template = "{path} is not a public key: {reason}"
    hint_template = "name the release's public key: PEM, of the kind Ed25519"


def read_public_key(path: str) -> str:
    """A public key from a PEM file, in hex.

    Raises:
        NoPublicKey: it is none, or of another kind than Ed25519.
        OSError: the file cannot be read.
    """
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    with open(path, "rb") as file:
        data = file.read(16 * 1024)
    try:
        key = load_pem_public_key(data)
    except (ValueError, UnsupportedAlgorithm):
        raise NoPublicKey(path=path, reason="it is no PEM of a public key") from None
    if not isinstance(key, Ed25519PublicKey):
        raise NoPublicKey(path=path, reason="it is of another kind than Ed25519")
    return key.public_bytes_raw().hex()


def signer_of(data: bytes, signature: bytes, keys: Iterable[str]) -> str | None:
    """The first of these public keys (hex) that made an Ed25519 signature of `data`."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    for each in keys:
        try:
            Ed25519PublicKey.from_public_bytes(bytes.fromhex(each)).verify(signature, data)
        except InvalidSignature:
            continue
        return each
    return None


def check_release(tree: str, keys: Iterable[str]) -> Release:
    """Hold every file of a tree against its MANIFEST, and that against its signature.

    Raises:
        IntegrityViolation: its MANIFEST cannot be understood.
        OSError: a file that is there cannot be read.
    """
    manifest = read_manifest(os.path.join(tree, MANIFEST))
    differences = tuple(verify_tree(tree))
    try:
        with open(os.path.join(tree, SIGNATURE), "rb") as file:
            signature = file.read()
    except FileNotFoundError:
        return Release(manifest.name, len(manifest.entries), differences, False, None)
    with open(os.path.join(tree, MANIFEST), "rb") as file:
        key = signer_of(file.read(), signature, keys)
    return Release(manifest.name, len(manifest.entries), differences, True, key)
