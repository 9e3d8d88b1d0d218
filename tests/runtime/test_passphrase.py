"""The key that scrypt makes of a passphrase, with all of its work."""

from __future__ import annotations

import hashlib

from beetle.runtime.host import passphrase

REAL = passphrase._key
"""As it was loaded: the tests' own takes less work (tests/conftest.py)."""
WORDS = "correct horse battery ✓"
SALT = bytes(range(passphrase.SALT_BYTES))


def test_a_key_is_scrypts_with_the_work_that_the_sealed_file_names() -> None:
    work = {"n": 16384, "r": 8, "p": 5}
    assert work == {"n": passphrase.SCRYPT_N, "r": passphrase.SCRYPT_R, "p": passphrase.SCRYPT_P}
    assert hashlib.scrypt(WORDS.encode(), salt=SALT, dklen=32, **work) == REAL(WORDS, SALT)
