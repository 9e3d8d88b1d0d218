"""Signs the files of a release with its Ed25519 key, and checks such signatures.

    python packaging/sign.py --new-key FILE             makes a key: the private half in FILE (mode 600), the public
                                                        half in FILE.pub; lists it in beetle/deploy/release.py
    python packaging/sign.py --key FILE PATH...         writes PATH.sig, 64 bytes, for each; without a PATH it tells
                                                        whether the key may sign
    python packaging/sign.py --check FILE.pub PATH...   ends with 1 unless each PATH.sig is this key's

FILE is PEM (PKCS #8), as `openssl genpkey -algorithm ed25519` writes it; the passphrase of an encrypted one is asked
for. The private half never lies in a checkout. Nothing is signed with a key that `RELEASE_KEYS` does not list: what is
installed could not check it. The same file and key give the same signature.
"""

from __future__ import annotations

import argparse
import ast
import getpass
import os
import re
import stat
import sys
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)

ROOT = Path(__file__).resolve().parents[1]


LISTED = ROOT / "beetle/deploy/release.py"
KEYS = re.compile(r"^RELEASE_KEYS: tuple\[str, \.\.\.\] = (\(.*?\))$", re.MULTILINE | re.DOTALL)
"""The statement that lists the public keys of releases, in hex, the newest first."""


class CannotSign(Exception):
    """The key is none, is not listed, or is kept where others can read it."""


def listed_keys() -> tuple[str, ...]:
    """The public keys that beetle/deploy/release.py of this checkout lists, in hex."""
    found = KEYS.search(LISTED.read_text())
    if found is None:
        raise CannotSign(f"{LISTED} has no RELEASE_KEYS")
    return tuple(ast.literal_eval(found[1]))


def list_key(public: str) -> None:
    """Put a public key before the others that are listed."""
    lines = "".join(f'    "{each}",\n' for each in (public, *listed_keys()))
    text = KEYS.sub(lambda _: f"RELEASE_KEYS: tuple[str, ...] = (\n{lines})", LISTED.read_text())
    LISTED.write_text(text)


def new_key(path: Path) -> str:
    """Write a new key beside nothing that is there, and list it; the public half in hex."""
    if path.resolve().is_relative_to(ROOT):
        raise CannotSign(f"{path} is in the checkout: keep the private key elsewhere")
    listed_keys()
    key = Ed25519PrivateKey.generate()
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(pem)
    public = key.public_key()
    path.with_name(f"{path.name}.pub").write_bytes(public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    list_key(public.public_bytes_raw().hex())
    return public.public_bytes_raw().hex()


def private_key(path: Path) -> Ed25519PrivateKey:
    if stat.S_IMODE(path.stat().st_mode) & 0o077:
        raise CannotSign(f"others may read {path}: chmod 600 {path}")
    pem = path.read_bytes()
    phrase = getpass.getpass(f"passphrase of {path}: ").encode() if b"ENCRYPTED" in pem else None
    try:
        key = load_pem_private_key(pem, phrase)
    except ValueError as error:
        raise CannotSign(f"{path} is not a private key: {error}") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise CannotSign(f"{path} is not a key of the kind Ed25519")
    public = key.public_key().public_bytes_raw().hex()
    if public not in listed_keys():
        raise CannotSign(f"the public key of {path}, {public}, is not in RELEASE_KEYS of {LISTED.relative_to(ROOT)}")
    return key


def public_key(path: Path) -> Ed25519PublicKey:
    try:
        key = load_pem_public_key(path.read_bytes())
    except ValueError as error:
        raise CannotSign(f"{path} is not a public key: {error}") from None
    if not isinstance(key, Ed25519PublicKey):
        raise CannotSign(f"{path} is not a key of the kind Ed25519")
    return key


def signature_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.sig")


def check(key: Ed25519PublicKey, paths: list[Path]) -> int:
    """How many of these files have no signature by the key; each is told."""
    wrong = 0
    for each in paths:
        try:
            key.verify(signature_of(each).read_bytes(), each.read_bytes())
            print(f"{each}: signed by this key")
        except (InvalidSignature, FileNotFoundError):
            print(f"{each}: NOT signed by this key", file=sys.stderr)
            wrong += 1
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    for name in ("--new-key", "--key", "--check"):
        what.add_argument(name, type=Path, metavar="FILE")
    parser.add_argument("paths", nargs="*", type=Path, metavar="PATH")
    options = parser.parse_args()
    try:
        if options.new_key is not None:
            public, key = new_key(options.new_key), options.new_key
            print(f"{public} is the newest of RELEASE_KEYS in {LISTED.relative_to(ROOT)}: commit that.")
            print(f"Publish {key}.pub at a place that is not the downloads'. Keep {key} off every machine.")
        elif options.key is not None:
            key = private_key(options.key)
            for each in options.paths:
                signature_of(each).write_bytes(key.sign(each.read_bytes()))
        else:
            return 1 if check(public_key(options.check), options.paths) else 0
    except (CannotSign, OSError) as error:
        print(f"cannot sign: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
