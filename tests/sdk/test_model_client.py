"""The model client against a server that answers well, badly, slowly, never."""

from __future__ import annotations

import json
import os
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from beetle.contracts import codec
from beetle.domain.maintenance import Prompt
from beetle.runtime.host.config import model_of
from beetle.runtime.host.model import ANSWER_BYTES, ModelClient
from beetle.runtime.host.model_failure import OURS, REASONS, ModelFailed
from tests.sdk.answering import Answer, Asked, ModelServer, noted, ollama, openai, wire

PROMPT = Prompt("the instructions", '{"messages":[]}')
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


@pytest.fixture
def server() -> Iterator[ModelServer]:
    running = ModelServer()
    yield running
    running.stop()


def client(url: str, *, seconds: float = 20, **more: Any) -> ModelClient:
    made = model_of({"kind": "openai", "name": "small", "url": url, **more})
    # Whole seconds are what a configuration may say; less is enough to see a deadline pass.
    return ModelClient(codec.replace(made, timeout_s=seconds))


def code(asking: ModelClient) -> str:
    with pytest.raises(ModelFailed) as caught:
        asking.ask(PROMPT)
    assert caught.value.key == "services_unavailable"
    assert caught.value.hint
    return caught.value.code


def test_an_openai_server_is_asked_for_json_at_its_path_and_its_words_come_back(server: ModelServer) -> None:
    server.answer = openai("the words")
    assert client(server.url + "/v1/").ask(PROMPT) == b"the words"
    (asked,) = server.asked
    assert asked.path == "/v1/chat/completions"
    assert asked.body == {
        "model": "small", "stream": False, "temperature": 0, "response_format": {"type": "json_object"},
        "messages": [
            {"role": "system", "content": "the instructions"}, {"role": "user", "content": '{"messages":[]}'},
        ],
    }  # fmt: skip
    assert "authorization" not in asked.headers


def test_an_ollama_server_is_asked_in_its_own_way(server: ModelServer) -> None:
    server.answer = ollama("the words")
    assert client(server.url, kind="ollama").ask(PROMPT) == b"the words"
    (asked,) = server.asked
    assert asked.path == "/api/chat"
    assert (asked.body["format"], asked.body["stream"], asked.body["options"]) == ("json", False, {"temperature": 0})


def test_a_server_without_json_mode_is_asked_once_more_without_it_and_then_never_with_it(server: ModelServer) -> None:
    def answer(asked: Asked) -> Answer:
        return Answer(400, b"{}") if "response_format" in asked.body else openai("plain")

    server.answer = answer
    asking = client(server.url)
    assert [asking.ask(PROMPT), asking.ask(PROMPT)] == [b"plain", b"plain"]
    assert ["response_format" in each.body for each in server.asked] == [True, False, False]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (Answer(400, b"{}"), "failed"),
        (Answer(401, b"{}"), "refused"),
        (Answer(403, b"{}"), "refused"),
        (Answer(429, b"{}"), "busy"),
        (Answer(500, b"{}"), "failed"),
        (Answer(503, b"{}"), "busy"),
        (Answer(204, b""), "failed"),
        (Answer(302, b"", headers=(("Location", "http://127.0.0.1:1/"),)), "redirected"),
        (Answer(307, b"", headers=(("Location", "/elsewhere"),)), "redirected"),
        (Answer(200, b"{}", kind="text/html"), "wrong_answer"),
        (Answer(200, b"{}", headers=(("Content-Encoding", "gzip"),)), "wrong_answer"),
        (Answer(200, b"no JSON"), "wrong_answer"),
        (Answer(200, b"\xff\xfe"), "wrong_answer"),
        (Answer(200, b"[" * 100_000), "wrong_answer"),
        (Answer(200, b'{"choices": []}'), "wrong_answer"),
        (Answer(200, b'{"choices": [{"message": {"content": 3}}]}'), "wrong_answer"),
        (openai(None), "wrong_answer"),
        (openai(""), "wrong_answer"),
        (openai(None, tool_calls=[{"function": {"name": "rm", "arguments": "{}"}}]), "wrong_answer"),
        (openai("words", tool_calls=[{"function": {"name": "rm", "arguments": "{}"}}]), "wrong_answer"),
        (Answer(200, b'{"x": "' + b"a" * 10_000_000 + b'"}'), "too_large"),
    ],
    ids=lambda each: each if isinstance(each, str) else f"{each.status}-{each.body[:12]!r}",
)
def test_what_is_no_answer_is_a_typed_failure(server: ModelServer, answer: Answer, expected: str) -> None:
    server.answer = answer
    assert code(client(server.url)) == expected
    assert all(each.path.endswith("/chat/completions") for each in server.asked)


def test_a_redirect_is_not_followed(server: ModelServer) -> None:
    other = ModelServer()
    try:
        server.answer = Answer(307, b"", headers=(("Location", other.url + "/chat/completions"),))
        assert code(client(server.url)) == "redirected"
        assert other.asked == []
    finally:
        other.stop()


def stall(peer: socket.socket) -> None:
    peer.recv(1)


def drip(*parts: bytes) -> Callable[[socket.socket], None]:
    """Send a beginning, then a byte each fiftieth of a second for ever."""

    def play(peer: socket.socket) -> None:
        for part in parts[:-1]:
            peer.sendall(part)
        pause = threading.Event()
        while not pause.wait(0.02):
            peer.sendall(parts[-1])

    return play


@pytest.mark.parametrize(
    "play",
    [
        stall,
        drip(b"H"),
        drip(b"HTTP/1.1 200 OK\r\n", b"x"),
        drip(b"HTTP/1.1 200 OK\r\n", b"X-A: b\r\n"),
        drip(b"HTTP/1.1 100 Continue\r\n\r\n"),
        drip(HEAD + b"Content-Length: 200000\r\n\r\n", b" "),
        drip(HEAD + b"\r\n", b" "),
        drip(HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
        drip(HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\n", b"X-A: b\r\n"),
    ],
)
def test_one_deadline_holds_for_all_of_an_answer_however_it_is_dripped(play: Callable[[socket.socket], None]) -> None:
    with wire(play) as url:
        assert code(client(url, seconds=0.3)) == "slow"


def test_a_stall_is_told_as_slow() -> None:
    with wire(stall) as url:
        assert code(client(url, seconds=0.3)) == "slow"


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", "broken"),
        (b"SSH-2.0-OpenSSH\r\n", "broken"),
        (b"HTTP/1.1 200 OK\r\n" + b"X-A: b\r\n" * 200 + b"\r\n{}", "broken"),
        (b"HTTP/1.1 200 OK\r\nX-A: " + b"b" * 70_000 + b"\r\n\r\n{}", "broken"),
        (HEAD + b"Content-Length: 100\r\n\r\n{", "broken"),
        (HEAD + b"Content-Length: -5\r\n\r\n{}", None),
        (HEAD + b"Content-Length: 99999999999999999999999\r\n\r\n{}", "too_large"),
        (HEAD + b"Content-Length: 5, 6\r\n\r\n{}", "broken"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n", "broken"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\n{}", "broken"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\nfffffffffffff\r\n" + b" " * 2 * ANSWER_BYTES, "too_large"),
        (HEAD + b"\r\n" + b" " * 2 * ANSWER_BYTES, "too_large"),
        (HEAD + b"\r\n{}", "wrong_answer"),
    ],
)
def test_what_is_no_http_is_a_typed_failure(data: bytes, expected: str | None) -> None:
    with wire(lambda peer: peer.sendall(data)) as url:
        found = code(client(url, seconds=5))
        assert found == expected or (expected is None and found in OURS)


def test_a_reset_in_the_middle_of_the_body_is_told_as_broken() -> None:
    def play(peer: socket.socket) -> None:
        peer.sendall(HEAD + b"Content-Length: 1000\r\n\r\n{")
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")

    with wire(play) as url:
        assert code(client(url)) == "broken"


def test_nobody_at_the_address_is_told_as_unreachable_and_the_address_is_not_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    asking = client(f"http://127.0.0.1:{port}")
    with pytest.raises(ModelFailed) as caught:
        asking.ask(PROMPT)
    assert caught.value.code == "unreachable" and not caught.value.counts
    assert str(port) not in str(caught.value) + caught.value.hint + str(caught.value.details)


def test_closing_breaks_off_what_is_being_asked_and_refuses_the_next() -> None:
    begun = threading.Event()

    def play(peer: socket.socket) -> None:
        begun.set()
        peer.recv(1)

    with wire(play) as url:
        asking = client(url, seconds=600)
        found: list[str] = []
        thread = threading.Thread(target=lambda: found.append(code(asking)))
        thread.start()
        assert begun.wait(20)
        asking.close()
        thread.join(20)
        assert found == ["closing"]
        assert code(asking) == "closing"


def test_a_proxy_of_the_environment_is_not_used(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    server.answer = openai("direct")
    assert client(server.url).ask(PROMPT) == b"direct"


def key_file(folder: Path, content: bytes, mode: int = 0o600) -> str:
    path = folder / "key"
    path.write_bytes(content)
    path.chmod(mode)
    return str(path)


def test_the_key_is_read_from_its_file_each_time_and_sent_to_a_server_on_this_machine(
    server: ModelServer, tmp_path: Path
) -> None:
    server.answer = openai("words")
    asking = client(server.url, api_key_file=key_file(tmp_path, b" first-key\n"))
    asking.ask(PROMPT)
    key_file(tmp_path, b"second-key")
    asking.ask(PROMPT)
    assert [each.headers["authorization"] for each in server.asked] == ["Bearer first-key", "Bearer second-key"]


@pytest.mark.parametrize(
    ("content", "mode"),
    [
        (b"k", 0o640), (b"k", 0o604), (b"", 0o600), (b"two words", 0o600), (b"a\r\nX-Injected: 1", 0o600),
        ("ключ".encode(), 0o600), (b"a" * 5000, 0o600),
    ],
)  # fmt: skip
def test_a_key_file_that_others_may_read_or_that_holds_no_key_is_refused(
    server: ModelServer, tmp_path: Path, content: bytes, mode: int
) -> None:
    assert code(client(server.url, api_key_file=key_file(tmp_path, content, mode))) == "no_key"
    assert server.asked == []


def test_a_key_file_that_is_missing_a_folder_or_a_fifo_is_refused(server: ModelServer, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo", 0o600)
    for name in ("missing", ".", "fifo"):
        assert code(client(server.url, api_key_file=f"{tmp_path}/{name}")) == "no_key"


def test_a_key_never_goes_over_http_to_another_machine(tmp_path: Path) -> None:
    path = key_file(tmp_path, b"secret-key")
    for host in ("192.0.2.1", "model.example", "127.0.0.1.example", "[2001:db8::1]", "0.0.0.0"):
        assert code(client(f"http://{host}:9", api_key_file=path)) == "insecure"


@pytest.mark.parametrize(
    ("url", "local"),
    [
        ("http://127.0.0.1:1", True), ("http://127.9.9.9", True), ("http://[::1]:11434/v1", True),
        ("http://localhost:1", True), ("https://localhost", True), ("http://localhost.example", False),
        ("http://10.0.0.1", False), ("https://model.example/v1", False), ("http://0.0.0.0:1", False),
        ("http://[::ffff:10.0.0.1]:1", False), ("http://2130706433", False),
    ],
)  # fmt: skip
def test_only_what_can_be_no_other_machine_counts_as_this_one(url: str, local: bool) -> None:
    assert client(url).local is local


def test_localhost_is_asked_on_this_machine(server: ModelServer) -> None:
    server.answer = openai("words")
    assert client(server.url.replace("127.0.0.1", "localhost")).ask(PROMPT) == b"words"


def test_the_key_the_answer_and_the_address_stand_in_no_error_and_the_key_in_no_log(
    server: ModelServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    asking = client(server.url, api_key_file=key_file(tmp_path, b"canary-key"))
    for answer in (
        Answer(401, b"canary-answer"),
        openai("canary-answer", tool_calls=[1]),
        Answer(200, b"canary-answer"),
    ):
        server.answer = answer
        with caplog.at_level("DEBUG"), pytest.raises(ModelFailed) as caught:
            asking.ask(PROMPT)
        told = str(caught.value) + caught.value.hint + json.dumps(caught.value.details)
        assert "canary" not in told and server.url not in told
    assert "canary" not in caplog.text


def test_after_a_failure_the_model_rests_for_longer_each_time_and_an_answer_ends_that(server: ModelServer) -> None:
    asking = client(server.url)
    assert asking.rest_s == 0
    server.answer = Answer(500, b"{}")
    rests: list[float] = []
    for _ in range(7):
        code(asking)
        rests.append(asking.rest_s)
    assert rests == sorted(rests) and 0 < rests[0] <= 15 and 890 < rests[-1] <= 900
    server.answer = openai("words")
    asking.ask(PROMPT)
    assert asking.rest_s == 0


def test_every_code_has_words_and_a_hint_and_none_of_them_is_left_out() -> None:
    assert set(REASONS) >= OURS
    for each in REASONS:
        failure = ModelFailed(each)
        assert failure.message and failure.hint and failure.details["code"] == each


def certificate(folder: Path, host: str) -> tuple[str, str]:
    """A certificate for a host that signs itself, and its key."""
    import datetime

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    cert, private = folder / f"{host}.pem", folder / f"{host}.key"
    cert.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return str(cert), str(private)


@pytest.mark.parametrize(
    ("host", "trusted", "expected"),
    [("localhost", True, None), ("localhost", False, "untrusted"), ("other.example", True, "untrusted")],
)
def test_https_takes_only_a_certificate_that_this_machine_trusts_for_this_host(
    server: ModelServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    host: str,
    trusted: bool,
    expected: str | None,
) -> None:
    cert, key = certificate(tmp_path, host)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    server._server.socket = context.wrap_socket(server._server.socket, server_side=True, do_handshake_on_connect=False)
    empty = tmp_path / "empty.pem"
    empty.write_bytes(b"")
    monkeypatch.setenv("SSL_CERT_FILE", cert if trusted else str(certificate(tmp_path, "unrelated")[0]))
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path / "none"))
    server.answer = noted()
    asking = client(server.url.replace("http://127.0.0.1", "https://localhost"))
    if expected is None:
        assert json.loads(asking.ask(PROMPT)) == {"items": []}
    else:
        assert code(asking) == expected


def test_a_tls_handshake_that_never_ends_is_within_the_deadline() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"https://127.0.0.1:{listening.getsockname()[1]}"
        assert code(client(url, seconds=0.3)) == "unreachable"


@contextmanager
def deaf() -> Iterator[str]:
    """An address that takes no connection and refuses none: the queue of who waits there is full."""
    with socket.socket() as listening, ExitStack() as waiting:
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        for _ in range(8):
            peer = waiting.enter_context(socket.socket())
            peer.setblocking(False)
            peer.connect_ex(listening.getsockname())
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


def test_a_machine_that_does_not_answer_at_all_is_unreachable_within_the_deadline() -> None:
    with deaf() as url:
        assert code(client(url, seconds=0.3)) == "unreachable"


def test_closing_breaks_off_a_connection_that_is_being_made() -> None:
    with deaf() as url:
        asking = client(url, seconds=600)
        found: list[str] = []
        thread = threading.Thread(target=lambda: found.append(code(asking)))
        thread.start()
        pause = threading.Event()
        while not asking._running:
            pause.wait(0.01)
        asking.close()
        thread.join(20)
        assert found == ["closing"]


def test_a_name_that_is_looked_up_for_ever_holds_up_neither_the_deadline_nor_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun, release = threading.Event(), threading.Event()

    def look_up(*_: object, **__: object) -> list[object]:
        begun.set()
        release.wait(60)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    assert code(client("http://model.example", seconds=0.3)) == "unreachable"
    begun.clear()
    asking = client("http://model.example", seconds=600)
    found: list[str] = []
    thread = threading.Thread(target=lambda: found.append(code(asking)))
    thread.start()
    assert begun.wait(20)
    asking.close()
    thread.join(20)
    assert found == ["closing"]
    release.set()
