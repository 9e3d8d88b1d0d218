"""Where gRPC listens and for whom: addresses, principals, TLS, a Unix socket, a daemon, a build without it."""

from __future__ import annotations

import datetime
import os
import stat
from pathlib import Path

import pytest

from beetle.contracts.errors import BeetleError, CapabilityHidden, InvalidRequest, StoreLocked
from beetle.memory_client import ConnectionFailed, MemoryClient, Tls
from beetle.runtime.host import built_transports as built
from beetle.runtime.host.config import Principal, read_config
from beetle.transports.grpc.address import parse_address
from tests.running import Daemon
from tests.transports import grpc_serving
from tests.transports.grpc_serving import Served


@pytest.mark.parametrize(
    ("text", "targets", "loopback"),
    [
        ("[::1]:50051", ("[::1]:50051",), True),
        ("127.0.0.1:1", ("127.0.0.1:1",), True),
        ("localhost:7", ("[::1]:7", "127.0.0.1:7"), True),
        ("0.0.0.0:50051", ("0.0.0.0:50051",), False),
        ("[2001:db8::1]:2", ("[2001:db8::1]:2",), False),
        ("unix:/run/b.sock", ("unix:/run/b.sock",), True),
        ("unix:///run/b.sock", ("unix:/run/b.sock",), True),
    ],
)
def test_an_address_is_read(text: str, targets: tuple[str, ...], loopback: bool) -> None:
    found = parse_address(text)
    assert (found.targets, found.is_loopback) == (targets, loopback)


NO_ADDRESSES = ("", "x", "::1:5", "localhost", "[::1]:65536", "[zz]:1", "300.0.0.1:1", "unix:", "example.org:1")


@pytest.mark.parametrize("text", NO_ADDRESSES)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest, match="cannot listen"):
        parse_address(text)


def refused(folder: Path, principal: str | None = "agents", address: str = "[::1]:0", **more: str) -> BeetleError:
    with pytest.raises(BeetleError) as caught:
        Served(folder, principal, address, **more)
    return caught.value


def test_nobody_is_served_as_no_principal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(grpc_serving.PRINCIPALS, "owner", Principal(capabilities=("transcript", "private.read")))
    for principal in (None, "nobody", "operator", "owner"):
        error = refused(tmp_path, principal)
        assert (error.key, error.details["path"]) == ("invalid_request", "$.grpc.principal")
        assert error.hint


def test_the_network_needs_tls(tmp_path: Path) -> None:
    error = refused(tmp_path, address="0.0.0.0:0")
    assert (error.key, error.details["path"]) == ("invalid_request", "$.grpc.listen")


def test_an_address_that_is_taken_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    with Served(tmp_path) as running:
        assert refused(tmp_path / "other", address=running.target).details["path"] == "$.grpc.listen"


def test_a_unix_socket_is_its_users_alone_and_goes_with_the_daemon(folder: Path) -> None:
    path = folder / "made" / "g.sock"
    with Served(folder, address=f"unix:{path}") as running:
        assert running.target == f"unix:{path}"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        with MemoryClient.connect(f"unix:{path}") as client:
            assert client.get_toc_root() == ()
        other = folder / "other"
        other.mkdir()
        assert isinstance(refused(other, address=f"unix:{path}"), StoreLocked)
    assert not path.exists()


def test_a_file_that_is_no_socket_stays(folder: Path) -> None:
    (folder / "g.sock").write_text("mine")
    assert refused(folder, address=f"unix:{folder / 'g.sock'}").key == "store_read_only"
    assert (folder / "g.sock").read_text() == "mine"


class Certificates:
    """An authority, and what it signed, as files and as bytes."""

    def __init__(self, folder: Path) -> None:
        self.authority, self._key, self._issuer = self._made(folder, "authority", None)
        self.server, _, _ = self._made(folder, "server", self)
        self.client, _, _ = self._made(folder, "client", self)

    def _made(self, folder: Path, name: str, signer: Certificates | None) -> tuple[tuple[str, str], object, object]:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec

        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        now = datetime.datetime.now(datetime.UTC)
        built = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(subject if signer is None else signer._issuer)  # type: ignore[arg-type]
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=signer is None, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
            .sign(key if signer is None else signer._key, hashes.SHA256())  # type: ignore[arg-type]
        )
        files = str(folder / f"{name}.pem"), str(folder / f"{name}.key")
        Path(files[0]).write_bytes(built.public_bytes(serialization.Encoding.PEM))
        Path(files[1]).write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        return files, key, subject


def test_with_tls_and_an_authority_only_its_clients_are_served(tmp_path: Path) -> None:
    made = Certificates(tmp_path)
    certificate, key = made.server
    authority = Path(made.authority[0]).read_bytes()
    own = tuple(Path(each).read_bytes() for each in made.client)
    settings = {"certificate": certificate, "key": key, "client_ca": made.authority[0]}
    with Served(tmp_path, address="localhost:0", **settings) as running:
        endpoint = f"https://localhost:{running.target.rpartition(':')[2]}"
        with MemoryClient.connect(endpoint, tls=Tls(authority, *own)) as client:
            assert client.get_toc_root() == ()
        for tls in (Tls(authority), None):
            with MemoryClient(endpoint, tls=tls) as stranger, pytest.raises(ConnectionFailed):
                stranger.get_toc_root()
        with MemoryClient(endpoint.replace("https", "http")) as plain, pytest.raises(ConnectionFailed):
            plain.get_toc_root()
    other = tmp_path / "other"
    other.mkdir()
    wrong = {"certificate": certificate, "key": made.client[1]}
    assert refused(other, **wrong).details["path"] == "$.grpc.certificate"
    missing = {"certificate": str(tmp_path / "none.pem"), "key": key}
    assert refused(other, **missing).details["path"] == "$.grpc.certificate"


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ('certificate = "/c.pem"', "$.grpc.key"),
        ('key = "/k.pem"', "$.grpc.certificate"),
        ('client_ca = "/a.pem"', "$.grpc.client_ca"),
        ("port = 1", "$.grpc.port"),
    ],
)
def test_a_half_configuration_is_refused(tmp_path: Path, text: str, path: str) -> None:
    file = tmp_path / "beetle.toml"
    file.write_text(f"[grpc]\n{text}\n")
    with pytest.raises(InvalidRequest) as caught:
        read_config(file, {}, os.getuid())
    assert caught.value.details["path"] == path


def test_a_build_without_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(built.NEEDS, "grpc", ("no_such_module",))  # type: ignore[arg-type]
    built.built_transports.cache_clear()
    try:
        assert "grpc" not in built.built_transports()
        with pytest.raises(CapabilityHidden, match="does not contain it") as caught:
            built.check_built("grpc")
        assert "beetle-memory[grpc]" in caught.value.hint
    finally:
        monkeypatch.undo()
        built.built_transports.cache_clear()


def test_a_profile_that_does_not_allow_it_ends_the_daemon_with_its_reason(tmp_path: Path) -> None:
    running = Daemon(profile="compact", folder=str(tmp_path), options=("--grpc", "[::1]:0"))
    try:
        with pytest.raises(RuntimeError, match=r"capability_hidden: grpc is hidden here: .* does not allow it"):
            running.start()
    finally:
        assert running.process is not None and running.process.wait(30) == 5


def test_a_daemon_serves_it_beside_its_socket(folder: Path) -> None:
    config = folder / "beetle.toml"
    config.write_text('[grpc]\nprincipal = "agents"\n[principals.agents]\ncapabilities = ["toc"]\n')
    path = folder / "g.sock"
    options = ("--grpc", f"unix:{path}")
    with Daemon(profile="gateway", folder=str(folder), options=options, config=str(config)) as running:
        with MemoryClient.connect(f"unix:{path}") as client:
            assert client.get_toc_root() == ()
        with running.client() as operator:
            listed = {each.name: each for each in operator.list_transports().transports}
        assert (listed["grpc"].listening, listed["grpc"].endpoint) == (True, f"unix:{path}")
    assert not path.exists()
