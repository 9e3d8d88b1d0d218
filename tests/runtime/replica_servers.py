"""Servers to which a replica is sent, each a process of its own on the loopback, and a wire that can be cut."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Generator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

READY_S = 20.0
BUCKET = "beetle"


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def program(name: str, package: str) -> str:
    """Where a server's program is; the test is skipped where it is not."""
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if found is None:
        pytest.skip(f"{name} is not installed ({package})")
    return found


@contextlib.contextmanager
def running(command: list[str], port: int, log: Path) -> Generator[subprocess.Popen[bytes]]:
    """A server, from when it accepts connections until the end of the block."""
    with log.open("ab") as said:
        process = subprocess.Popen(command, stdout=said, stderr=said, cwd=log.parent)
    try:
        end = time.monotonic() + READY_S
        while True:
            assert process.poll() is None and time.monotonic() < end, log.read_text()
            with socket.socket() as link:
                if link.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        yield process
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def sftp_server(folder: Path) -> Generator[tuple[int, str]]:
    """OpenSSH's sshd with SFTP alone; (port, `[replica]` without the URL's port)."""
    sshd, keygen = program("sshd", "openssh-server"), program("ssh-keygen", "openssh-client")
    for name in ("host", "mine"):
        key = str(folder / name)
        subprocess.run([keygen, "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    port = free_port()
    (folder / "authorized").write_text((folder / "mine.pub").read_text())
    (folder / "sshd.conf").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {folder}/host\nAuthorizedKeysFile {folder}/authorized\n"
        f"PidFile {folder}/pid\nUsePAM no\nStrictModes no\nPasswordAuthentication no\nPermitRootLogin yes\n"
        "Subsystem sftp internal-sftp\n"
    )
    if os.geteuid() == 0:
        os.makedirs("/run/sshd", mode=0o755, exist_ok=True)
    host_key = " ".join((folder / "host.pub").read_text().split()[:2])
    with running([sshd, "-D", "-e", "-f", str(folder / "sshd.conf")], port, folder / "sshd.log"):
        yield port, f'host_key = "{host_key}"\nkey_file = "{folder}/mine"'


@contextlib.contextmanager
def s3_server(folder: Path) -> Generator[tuple[int, str]]:
    """A server that speaks S3, with a bucket."""
    port = free_port()
    moto = program("moto_server", "the package moto[server]")
    secret = folder / "secret"
    secret.write_text("secret-of-the-store")
    secret.chmod(0o600)
    with running([moto, "-H", "127.0.0.1", "-p", str(port)], port, folder / "s3.log"):
        made = urllib.request.Request(f"http://127.0.0.1:{port}/{BUCKET}", method="PUT")
        urllib.request.urlopen(made, timeout=10).close()
        yield port, f'access_key_id = "AK"\nsecret_file = "{secret}"\nregion = "us-east-1"'


@contextlib.contextmanager
def nats_server(folder: Path) -> Generator[tuple[int, str]]:
    """A NATS server with JetStream, a bucket, and a token that it asks for."""
    nats = program("nats-server", "nats-server")
    port = free_port()
    secret = folder / "secret"
    secret.write_text("token-of-the-bus\n")
    secret.chmod(0o600)
    command = [nats, "-a", "127.0.0.1", "-p", str(port), "-js", "-sd", str(folder / "js"), "--auth", "token-of-the-bus"]
    with running(command, port, folder / "nats.log"):
        make_bucket(port, "token-of-the-bus")
        yield port, f'secret_file = "{secret}"'


def make_bucket(port: int, token: str) -> None:
    """An object store of JetStream: a stream of that name and these subjects."""
    stream = {
        "name": f"OBJ_{BUCKET}", "subjects": [f"$O.{BUCKET}.C.>", f"$O.{BUCKET}.M.>"], "storage": "file",
        "discard": "new", "allow_rollup_hdrs": True, "allow_direct": True, "num_replicas": 1, "retention": "limits",
        "max_msgs": -1, "max_bytes": -1, "max_age": 0,
    }  # fmt: skip
    content = json.dumps(stream).encode()
    hello = json.dumps({"verbose": False, "pedantic": False, "auth_token": token}).encode()
    with socket.create_connection(("127.0.0.1", port), timeout=10) as link:
        link.sendall(b"CONNECT " + hello + b"\r\nSUB made 1\r\n")
        link.sendall(b"PUB $JS.API.STREAM.CREATE.OBJ_%b made %d\r\n%b\r\n" % (BUCKET.encode(), len(content), content))
        told = b""
        while b"stream_create_response" not in told:
            told += link.recv(65_536)
        assert b'"error"' not in told, told


def s3_objects(port: int, folder: Path) -> None:
    """Write every object that the bucket hands out into a folder, with its name's end."""
    number, more = 0, ""
    while True:
        listing = ElementTree.fromstring(_s3(port, f"?list-type=2{more}"))
        for each in listing.iter():
            if each.tag.endswith("}Key") and each.text:
                # The sidecar merges and removes meanwhile.
                with contextlib.suppress(FileNotFoundError):
                    (folder / f"{number}{Path(each.text).suffix}").write_bytes(_s3(port, f"/{each.text}"))
                number += 1
        following = [each.text for each in listing.iter() if each.tag.endswith("}NextContinuationToken")]
        if not following or not following[0]:
            return
        more = f"&continuation-token={urllib.parse.quote(following[0])}"


def _s3(port: int, place: str) -> bytes:
    """FileNotFoundError: it is not there any more."""
    # This server checks that a request is signed, and not by whom.
    signed = {"Authorization": "AWS4-HMAC-SHA256 Credential=AK/x/us-east-1/s3/aws4_request, Signature=x"}
    asked = urllib.request.Request(f"http://127.0.0.1:{port}/{BUCKET}{place}", headers=signed)
    try:
        with urllib.request.urlopen(asked, timeout=10) as answer:
            found: bytes = answer.read()
            return found
    except urllib.error.HTTPError as error:
        if error.code == 404:
            raise FileNotFoundError(place) from None
        raise


def nats_objects(port: int, folder: Path) -> None:
    """Write every object whose pieces the bucket still hands out into a folder, whether it has a name or not."""
    pieces: dict[str, bytes] = {}
    with socket.create_connection(("127.0.0.1", port), timeout=10) as link:
        link.sendall(b'CONNECT {"verbose":false,"pedantic":false,"auth_token":"token-of-the-bus"}\r\nSUB told 1\r\n')
        answers = link.makefile("rb")
        state = _asked(link, answers, f"$JS.API.STREAM.INFO.OBJ_{BUCKET}", {})["state"]
        for number in range(state["first_seq"], state["last_seq"] + 1):
            told = _asked(link, answers, f"$JS.API.STREAM.MSG.GET.OBJ_{BUCKET}", {"seq": number})
            if "error" not in told and told["message"]["subject"].startswith(f"$O.{BUCKET}.C."):
                subject = told["message"]["subject"]
                pieces[subject] = pieces.get(subject, b"") + base64.b64decode(told["message"]["data"])
    for number, content in enumerate(pieces.values()):
        (folder / f"{number}.ltx").write_bytes(content)


def _asked(link: socket.socket, answers: Any, subject: str, content: dict[str, Any]) -> dict[str, Any]:
    """What JetStream answers to one request."""
    data = json.dumps(content).encode()
    link.sendall(b"PUB %b told %d\r\n%b\r\n" % (subject.encode(), len(data), data))
    while True:
        line = answers.readline()
        assert line, "the server has ended the connection"
        if line.startswith(b"PING"):
            link.sendall(b"PONG\r\n")
        if line.startswith(b"MSG "):
            found: dict[str, Any] = json.loads(answers.read(int(line.split()[-1])))
            return found


class Wire:
    """A TCP proxy to a port on the loopback, which can be cut and mended."""

    def __init__(self, to: int) -> None:
        self._to = to
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._pairs: dict[socket.socket, socket.socket] = {}
        self._cut = False
        self._told, self._tell = os.pipe()
        self._thread = threading.Thread(target=self._carry, daemon=True)
        self._thread.start()

    def cut(self) -> None:
        """From now on nothing passes, and nobody is told: connections hang as when a cable is pulled."""
        self._cut = True
        os.write(self._tell, b"x")

    def mend(self) -> None:
        """What hung is broken off; new connections pass."""
        self._cut = False
        os.write(self._tell, b"m")

    def close(self) -> None:
        os.write(self._tell, b"q")
        self._thread.join()
        for each in (self._told, self._tell):
            os.close(each)

    def _carry(self) -> None:
        while True:
            watched = [self._told] if self._cut else [self._told, self._listener, *self._pairs]
            for each in select.select(watched, [], [])[0]:
                if each is self._told:
                    order = os.read(self._told, 1)
                    if order in b"mq":
                        self._drop_all()
                    if order == b"q":
                        self._listener.close()
                        return
                elif each is self._listener:
                    self._accept()
                elif each in self._pairs:
                    self._pass_on(each)

    def _accept(self) -> None:
        ours, _ = self._listener.accept()
        try:
            theirs = socket.create_connection(("127.0.0.1", self._to), timeout=5)
        except OSError:
            ours.close()
            return
        self._pairs[ours], self._pairs[theirs] = theirs, ours

    def _pass_on(self, source: socket.socket) -> None:
        try:
            part = source.recv(65_536)
            if part:
                self._pairs[source].sendall(part)
                return
        except OSError:
            pass
        self._drop(source)

    def _drop(self, source: socket.socket) -> None:
        other = self._pairs.pop(source)
        self._pairs.pop(other, None)
        source.close()
        other.close()

    def _drop_all(self) -> None:
        while self._pairs:
            self._drop(next(iter(self._pairs)))
