"""The device identity: one secret outside the store, from which come the key that wraps and the key that signs.

The secret stands in a file beside the store, or comes as a systemd credential. The store remembers a check value of it,
so that another store's secret is told apart. The file is looked at each time the identity is needed: a file that was
lost or laid open counts from that moment on, and one that was put right counts again without a restart.

This is the only module that imports `cryptography`, and only where a key is used: it takes time and memory to load.
"""

from __future__ import annotations

import base64
import errno
import hashlib
import hmac
import logging
import os
import re
import stat
from typing import TYPE_CHECKING, Literal

from beetle.contracts.errors import BeetleError
from beetle.named_tuple import NamedTuple
from beetle.store import private, seal_checks
from beetle.store.engine.exchange import sync_folder
from beetle.store.engine.presence import KEY_FILE
from beetle.store.engine.store import Store

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

log = logging.getLogger("beetle.identity")

SECRET_BYTES = 32
NONCE_BYTES = 12
CREDENTIAL = "beetle-identity"
"""Name of the systemd credential."""
LINE = re.compile(rb"beetle-identity 1 ([A-Za-z0-9_-]{43})=?\n?")
MOST_BYTES = 4096

State = Literal["usable", "missing", "wrong", "exposed", "unreadable", "broken", "unrecorded"]

LOST = "; where none is left: beetle identity renew"
"""What is added to the advice in a state in which the secret is not there."""
PROBLEMS: dict[State, tuple[str, str]] = {
    "missing": ("the key file {file} is not there", f"put {{file}} back from its backup{LOST}"),
    "wrong": (
        "the key file {file} is not this store's",
        f"put back the key file that this store was opened with first{LOST}",
    ),
    "exposed": ("the key file {file} can be read by others", "make it this user's alone: chmod 600 {file}"),
    "unreadable": ("the key file {file} cannot be read", "make {file} readable for this user alone"),
    "broken": (
        "{file} is not a key file",
        f"restore {{file}} from its backup: a file of one line, no link and no folder{LOST}",
    ),
    "unrecorded": ("the key file {file} is not known to the store", "close the store and open it again"),
}
"""What is said of each state but the usable one, and what to do about it."""
UNPROVEN = (
    "the record of the store's device identity is lost or damaged, and nothing proves the key file {file} its own",
    f"put back the key file that this store was opened with first, and open the store again{LOST}",
)
"""What is said of `wrong` where no key file is known."""


GIVEN_UP: frozenset[State] = frozenset({"missing", "wrong", "broken"})
"""The states in which the secret is not there, so that another one may take its place."""


class Keys(NamedTuple):
    """What the secret gives: the key that wraps the keys of spaces, and the key that signs receipts.

    `public` is the 32 bytes of the Ed25519 public key, `fingerprint` the first 16 hex digits of its SHA-256.
    """

    wrapping: bytes
    signing: Ed25519PrivateKey
    public: bytes
    fingerprint: str

    def sign(self, data: bytes) -> bytes:
        """The 64 bytes of an Ed25519 signature."""
        return self.signing.sign(data)


class Look(NamedTuple):
    """What one look at the key file found; `secret` is there when it could be read and used."""

    state: State
    secret: bytes | None = None


class KeyFile(NamedTuple):
    """Where the secret stands: a file of ours, or one that systemd has made for this service."""

    path: str
    credential: bool = False

    def read(self) -> Look:
        """The secret, or why it is not to be used."""
        try:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            return Look("missing")
        except OSError as error:
            return Look("broken" if error.errno == errno.ELOOP else "unreadable")
        try:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                return Look("broken")
            if self._shown(found):
                return Look("exposed")
            line = LINE.fullmatch(os.read(descriptor, MOST_BYTES))
        except OSError:
            return Look("unreadable")
        finally:
            os.close(descriptor)
        return Look("broken") if line is None else Look("usable", base64.urlsafe_b64decode(line[1] + b"="))

    def _shown(self, found: os.stat_result) -> bool:
        """Whether others than this user and root may read or change the file."""
        if self.credential:
            # systemd grants the service's user its read by an ACL, whose mask shows itself as the group's bits.
            return bool(found.st_mode & 0o007)
        ours = found.st_uid in (os.geteuid(), 0) or os.geteuid() == 0
        return bool(found.st_mode & 0o077) or not ours

    def write(self, secret: bytes) -> str | None:
        """Make the file, whole or not at all; what stood in its place gets another name, which is answered.

        Raises:
            OSError: it could not be made, and all is as it was. `filename` names what failed.
        """
        fresh = self._fresh(secret)
        aside = f"{self.path}.aside-{os.urandom(4).hex()}" if os.path.lexists(self.path) else None
        if aside is not None:
            os.rename(self.path, aside)
        try:
            os.rename(fresh, self.path)
        except OSError:
            if aside is not None:
                os.rename(aside, self.path)
            raise
        sync_folder(self.path)
        return aside

    def _fresh(self, secret: bytes) -> str:
        """The secret on disk, under a name of its own."""
        fresh = self.path + ".new"
        try:
            if os.path.lexists(fresh):
                os.unlink(fresh)
            descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            try:
                os.write(descriptor, b"beetle-identity 1 " + base64.urlsafe_b64encode(secret).rstrip(b"=") + b"\n")
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            error.filename = fresh
            raise
        return fresh


class Successor(NamedTuple):
    """The secret that is to be a store's from now on: its keys, by what it is known again, and the key that seals rows.

    `kept_as` is the name that something got which stood in the key file's place and is none.
    """

    keys: Keys
    check: str
    sealing: bytes
    kept_as: str | None


class Identity:
    """The identity of one open store."""

    def __init__(
        self, place: KeyFile | None, check: str | None, secret: bytes | None = None, *, recorded: bool = True
    ) -> None:
        """Prepare; nothing is read yet.

        Args:
            place: where the secret stands; None for a store in memory, whose secret is given.
            check: as of `private.recorded_check`.
            secret: 32 bytes, kept in memory alone.
            recorded: false when the store has still to record `check`.
        """
        self._recorded = recorded
        self._place = place
        self._check = check
        self._secret = secret
        self._made: tuple[bytes, Keys] | None = None

    def look(self) -> Look:
        """The state now, with the secret when it is usable."""
        if self._place is None:
            return Look("usable", self._secret)
        look = self._place.read()
        if look.secret is None:
            return look
        if self._check is None:
            return Look("unrecorded")
        return look if hmac.compare_digest(check_value(look.secret), self._check) else Look("wrong")

    @property
    def check(self) -> str | None:
        """By what the store knows its identity again, None where it has recorded none."""
        return self._check

    def recheck(self, check: str | None) -> None:
        """Go by what another store has recorded, which stands in the same place now."""
        self._check = check
        self._recorded = True

    @property
    def unrecorded(self) -> str | None:
        """What the store has still to record of it, None where that is nothing."""
        return None if self._recorded else self._check

    @property
    def state(self) -> State:
        """The state now."""
        return self.look().state

    @property
    def is_credential(self) -> bool:
        """Whether the secret comes from outside, so that no other can be made here."""
        return self._place is not None and self._place.credential

    def found(self) -> Keys | None:
        """The keys of the secret that stands in the key file's place, whether or not it is this store's."""
        secret = None if self._place is None else self._place.read().secret
        return None if secret is None else _derive(secret)

    def successor(self) -> Successor | None:
        """The secret that takes a lost one's place: the one in the key file, else one made now, which is on disk then.

        None in a state in which the secret is not lost. Until the store has recorded it, it is `wrong`; called again,
        the same one is answered: whoever is interrupted between begins again.

        Raises:
            OSError: as of `KeyFile.write`.
        """
        place, state = self._place, self.look().state
        if place is None or state not in GIVEN_UP:
            return None
        kept_as, secret = None, place.read().secret
        if secret is None:
            if place.credential:
                return None
            secret = os.urandom(SECRET_BYTES)
            kept_as = place.write(secret)
        return Successor(_derive(secret), check_value(secret), seal_key(secret), kept_as)

    def problem(self, state: State, *, whole_path: bool = False) -> tuple[str, str] | None:
        """What is wrong in a state and what to do about it, or None; no folder is named to who may not know paths."""
        if state == "usable" or self._place is None:
            return None
        path = self._place.path
        file = path if whole_path else os.path.basename(path)
        said, advice = UNPROVEN if state == "wrong" and self._check == private.UNKNOWN_CHECK else PROBLEMS[state]
        return said.format(file=file), advice.format(file=file)

    def keys(self) -> Keys | None:
        """The keys, or None in every state but the usable one.

        The first call loads `cryptography`: make it before a transaction of the writer begins.
        """
        secret = self.look().secret
        if secret is None:
            return None
        made = self._made
        if made is None or made[0] != secret:
            made = self._made = (secret, _derive(secret))
        return made[1]

    @property
    def fingerprint(self) -> str | None:
        """The device's fingerprint, as receipts name it; None when the identity is not usable."""
        keys = self.keys()
        return None if keys is None else keys.fingerprint


def open_identity(store: Store, credentials: str | None) -> Identity:
    """The identity of an open store, made when it has none; never raises for its sake. `sealing.begin` records it.

    Where the record of it is lost or damaged, its own key file is known by what it has signed and sealed, and none is
    made anew.

    The store's lock is held, so that no second process makes another one.

    Args:
        credentials: the folder of this service's systemd credentials, where there is one.
    """
    if store.settings.backend == "in-memory":
        return Identity(None, None, os.urandom(SECRET_BYTES))
    place = _place(store.settings.path, credentials)
    check, immutable = store.identity_check, store.settings.immutable
    if check is not None:
        secret = place.read().secret
        if secret is None or check_value(secret) == check or not _is_own(store, secret):
            return Identity(place, check)
        log.warning(
            "what the store %s had recorded of its device identity is damaged: its key file is known by what it has"
            " signed and sealed",
            store.settings.path,
            extra={"event": "identity_record_damaged"},
        )
        return Identity(place, check_value(secret), recorded=immutable)
    if immutable:
        return Identity(place, None)
    if not _was_known(store):
        secret = _first(place)
    elif (secret := place.read().secret) is not None and not _is_own(store, secret):
        return Identity(place, private.UNKNOWN_CHECK)
    return Identity(place, None if secret is None else check_value(secret), recorded=secret is None)


def identity_beside(store: str, check: str | None, credentials: str | None) -> Identity:
    """The identity by which a store at that path would be known, that has recorded `check`; nothing is made.

    Args:
        credentials: as of `open_identity`.
    """
    return Identity(_place(store, credentials), check)


def _place(store: str, credentials: str | None) -> KeyFile:
    if credentials:
        given = os.path.join(credentials, CREDENTIAL)
        if os.path.lexists(given):
            return KeyFile(given, credential=True)
    return KeyFile(store + KEY_FILE)


def _first(place: KeyFile) -> bytes | None:
    """Make the secret unless it is there; None when that could not be done.

    The file comes first: when the record of it is lost, the next opening takes the file as it is.
    """
    look = place.read()
    secret = look.secret
    if look.state == "missing" and not place.credential:
        secret = os.urandom(SECRET_BYTES)
        try:
            place.write(secret)
        except OSError as error:
            log.warning(
                "the key file %s could not be made: %s: %s",
                place.path,
                error.filename or place.path,
                error.strerror,
                extra={"event": "identity_not_made"},
            )
            return None
    return secret


def _was_known(store: Store) -> bool:
    """Whether the store had an identity; one that cannot be read may have had one."""
    try:
        with store.read() as tx:
            return private.is_known(tx) or seal_checks.has_strong(tx)
    except BeetleError:
        return True


def _is_own(store: Store, secret: bytes) -> bool:
    """Whether the recorded public key is of the secret; where none is recorded, whether it has sealed the store."""
    try:
        with store.read() as tx:
            public = private.public_key(tx)
            return seal_checks.is_of(tx, seal_key(secret)) if public is None else _derive(secret).public == public
    except BeetleError:
        return False


def seal_key(secret: bytes) -> bytes:
    """The key that seals rows."""
    return derived(secret, "beetle seal")


def check_value(secret: bytes) -> str:
    """By what a store knows its secret again; tells nothing of it. 32 hex digits."""
    return derived(secret, "beetle check")[:16].hex()


def derived(secret: bytes, purpose: str) -> bytes:
    """32 bytes of HKDF-SHA256 (RFC 5869), without salt, with the purpose as its info."""
    prk = hmac.digest(bytes(32), secret, hashlib.sha256)
    return hmac.digest(prk, purpose.encode() + b"\x01", hashlib.sha256)


def _derive(secret: bytes) -> Keys:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    signing = Ed25519PrivateKey.from_private_bytes(derived(secret, "beetle sign"))
    public = signing.public_key().public_bytes_raw()
    return Keys(derived(secret, "beetle wrap"), signing, public, fingerprint_of(public))


def fingerprint_of(public: bytes) -> str:
    """The first 16 hex digits of the SHA-256 of a public key's 32 bytes."""
    return hashlib.sha256(public).hexdigest()[:16]


def is_signed(data: bytes, signature: bytes, public: bytes) -> bool:
    """Whether the signature of the data is of the owner of this public key, which nobody else can make."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    from beetle.domain.ed25519 import is_sound_point

    if not is_sound_point(public):
        return False
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, data)
    except InvalidSignature:
        return False
    return True


def seal(key: bytes, data: bytes, belongs_to: bytes) -> bytes:
    """A random nonce of 12 bytes, then ChaCha20-Poly1305 of the data; `belongs_to` must be repeated to open it."""
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

    nonce = os.urandom(NONCE_BYTES)
    return nonce + ChaCha20Poly1305(key).encrypt(nonce, data, belongs_to)


def unseal(key: bytes, sealed: bytes, belongs_to: bytes) -> bytes | None:
    """What was sealed, or None when it was changed, sealed with another key, or belongs elsewhere."""
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

    if len(sealed) < NONCE_BYTES + 16:
        return None
    try:
        return ChaCha20Poly1305(key).decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], belongs_to)
    except InvalidTag:
        return None
