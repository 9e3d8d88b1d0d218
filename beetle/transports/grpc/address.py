"""Where the gRPC server listens, with what certificates, and whether it may."""

from __future__ import annotations

import ipaddress
import os
import re
import ssl
from collections.abc import Callable
from typing import TYPE_CHECKING

from beetle.contracts.errors import InvalidRequest
from beetle.named_tuple import NamedTuple
from beetle.runtime.host.caller import Caller
from beetle.runtime.host.config import SOCKET_PATH_BYTES, Grpc
from beetle.runtime.pipeline.capabilities import OWNERS

if TYPE_CHECKING:
    import grpc

UNIX = "unix:"
LOOPBACK_NAMES = ("localhost",)
HINT = "give HOST:PORT (`[::1]:50051`, `localhost:50051`) or unix:PATH"
NO_PRINCIPAL = (
    'name one in beetle.toml: [grpc] principal = "NAME", with its capabilities in [principals.NAME]; see '
    "`beetle help grpc`"
)


class Address(NamedTuple):
    """What was asked for. `host` is empty for a Unix socket, whose `path` is absolute then."""

    host: str
    port: int
    path: str = ""

    @property
    def targets(self) -> tuple[str, ...]:
        """The addresses to bind, as gRPC writes them; `localhost` is both loopback addresses."""
        if self.path:
            return (f"{UNIX}{self.path}",)
        hosts = ("[::1]", "127.0.0.1") if self.host in LOOPBACK_NAMES else (self.host,)
        return tuple(f"{host}:{self.port}" for host in hosts)

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can connect."""
        return bool(self.path) or self.host in LOOPBACK_NAMES or ipaddress.ip_address(self.host.strip("[]")).is_loopback


def parse_address(text: str) -> Address:
    """The address that a person wrote.

    Raises:
        InvalidRequest: it is none.
    """
    if text.startswith(UNIX):
        path = os.path.abspath(text.removeprefix(UNIX).removeprefix("//")) if text != UNIX else ""
        if not path or "\0" in path or len(os.fsencode(path)) > SOCKET_PATH_BYTES:
            raise _bad(text, f"a socket's path has 1 to {SOCKET_PATH_BYTES} bytes")
        return Address("", 0, path)
    found = re.fullmatch(r"(\[[0-9A-Fa-f:.]+\]|[0-9.]+|localhost):([0-9]{1,5})", text)
    if found is None or int(found[2]) > 65535:
        raise _bad(text, "it is no address and port")
    host = found[1]
    if host not in LOOPBACK_NAMES:
        try:
            ipaddress.ip_address(host.strip("[]"))
        except ValueError:
            raise _bad(text, "it is no address of a network") from None
    return Address(host, int(found[2]))


def _bad(text: str, reason: str) -> InvalidRequest:
    return InvalidRequest(reason=f"gRPC cannot listen at {text[:120]!r}: {reason}", hint=HINT, path="$.grpc.listen")


def check_principal(named: Callable[[str], Caller | None], settings: Grpc) -> Caller:
    """The configured principal that every peer is.

    Raises:
        InvalidRequest: none is named, there is none of that name, or it may read what no network peer may.
    """
    path = "$.grpc.principal"
    if settings.principal is None:
        reason = "a gRPC peer has no Unix user, and no principal is named for it"
        raise InvalidRequest(reason=reason, hint=NO_PRINCIPAL, path=path)
    caller = named(settings.principal)
    if caller is None:
        reason = f"the configuration has no principal {settings.principal!r}, as which gRPC peers should ask"
        raise InvalidRequest(reason=reason, hint=NO_PRINCIPAL, path=path)
    if wrong := sorted(OWNERS & caller.capabilities):
        raise InvalidRequest(
            reason=f"the principal {caller.name} has {' and '.join(wrong)}, which no gRPC peer may have",
            hint="name another principal: gRPC does not authenticate its peers",
            path=path,
        )
    return caller


def credentials(settings: Grpc, address: Address) -> grpc.ServerCredentials | None:
    """The TLS that the configuration asks for; None where it asks for none.

    Raises:
        InvalidRequest: the address is not loopback and there is no TLS; a file cannot be read; certificate and key do
            not belong together.
    """
    if settings.certificate is None or settings.key is None:
        if address.is_loopback:
            return None
        raise InvalidRequest(
            reason=f"{address.targets[0]} is not a loopback address, and no TLS is configured",
            hint="listen at [::1] or localhost; or give [grpc] certificate and key (and client_ca) in beetle.toml",
            path="$.grpc.listen",
        )
    if address.path:
        return None
    certificate, key = _read(settings.certificate, "certificate"), _read(settings.key, "key")
    authority = None if settings.client_ca is None else _read(settings.client_ca, "client_ca")
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(settings.certificate, settings.key, password=_no_password)
        if settings.client_ca is not None:
            context.load_verify_locations(settings.client_ca)
    except (ssl.SSLError, OSError, ValueError) as error:
        hint = "give PEM files: the certificate with its chain, and its key without a password"
        reason = f"the certificates of [grpc] cannot be used ({type(error).__name__})"
        raise InvalidRequest(reason=reason, hint=hint, path="$.grpc.certificate") from None
    import grpc  # whoever looks a configuration through needs none of it

    pairs = [(key, certificate)]
    return grpc.ssl_server_credentials(pairs, root_certificates=authority, require_client_auth=authority is not None)


def _no_password() -> str:
    return ""


def _read(path: str, field: str) -> bytes:
    try:
        with open(path, "rb") as stream:
            return stream.read(1 << 20)
    except OSError as error:
        reason = f"[grpc] {field}: {path} cannot be read ({error.strerror})"
        hint = "make it readable for the daemon's user, or name another file"
        raise InvalidRequest(reason=reason, hint=hint, path=f"$.grpc.{field}") from None
