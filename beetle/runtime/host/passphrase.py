"""Sealing with a passphrase: scrypt makes the key, ChaCha20-Poly1305 seals.

Beside the device identity this is the only module that imports `cryptography`.
"""

from __future__ import annotations

import os
from typing import Literal

SCRYPT_N: Literal[16384] = 16384
SCRYPT_R: Literal[8] = 8
SCRYPT_P: Literal[5] = 5
"""16 MiB and a few tenths of a second on a small board for each guess."""
SALT_BYTES = 16
NONCE_BYTES = 12
KEY_BYTES = 32


def fresh_salt() -> bytes:
    """16 random bytes."""
    return os.urandom(SALT_BYTES)


def fresh_nonce() -> bytes:
    """12 random bytes; with a salt of its own for each sealing, no key ever meets a nonce twice."""
    return os.urandom(NONCE_BYTES)


def seal(passphrase: str, salt: bytes, nonce: bytes, data: bytes, belongs_to: bytes) -> bytes:
    """The sealed data, 16 bytes longer; `belongs_to` must be repeated to open it."""
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

    return ChaCha20Poly1305(_key(passphrase, salt)).encrypt(nonce, data, belongs_to)


def unseal(passphrase: str, salt: bytes, nonce: bytes, sealed: bytes | memoryview, belongs_to: bytes) -> bytes | None:
    """What was sealed; None when the passphrase is another, or anything was changed."""
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

    try:
        return ChaCha20Poly1305(_key(passphrase, salt)).decrypt(nonce, sealed, belongs_to)
    except InvalidTag:
        return None


def _key(passphrase: str, salt: bytes) -> bytes:
    from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

    return Scrypt(salt=salt, length=KEY_BYTES, n=SCRYPT_N, r=SCRYPT_R, p=SCRYPT_P).derive(passphrase.encode())
