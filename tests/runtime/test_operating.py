"""Health, metrics and the watchdog: what an operator and a service manager are told of a daemon."""

from __future__ import annotations

import os
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from beetle import daemon
from beetle.contracts.admin import AdminHealthReport, AdminMetricsReport, Metric, MetricLabel, MetricSample
from beetle.contracts.errors import InvalidRequest
from beetle.contracts.exposition import exposition
from beetle.deploy.unit import STOP_SECONDS
from beetle.open import Opened, open_store
from beetle.runtime.areas import operating
from beetle.runtime.areas.table import HANDLERS
from beetle.runtime.host import supervisor
from beetle.runtime.host.config import Metrics, read_config
from beetle.runtime.host.principals import OPERATOR
from beetle.runtime.pipeline.invocation import Call, Caller
from beetle.transports import metrics_port, unix_socket
from beetle.transports.metrics_port import MetricsPort
from tests.transports.serving import writer_held

STRANGER = Caller("panel", "principal", frozenset({"inspect"}), ("host_ui",), "unix_socket")
PATIENCE_S = 30.0
TOKEN = "a-token-of-32-characters-or-so..."


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    found = open_store(str(tmp_path_factory.mktemp("store") / "beetle.db"), "standalone")
    yield found
    found.store.close()


def health(opened: Opened, caller: Caller = OPERATOR) -> AdminHealthReport:
    report = opened.dispatcher.dispatch(Call("admin.health", {}, caller)).report
    assert isinstance(report, AdminHealthReport)
    return report


def checks(opened: Opened) -> dict[str, tuple[str, str | None]]:
    return {each.name: (each.state, each.key) for each in health(opened).checks or ()}


def families(text: str) -> dict[str, Any]:
    return {each.name: each for each in text_string_to_metric_families(text)}


def metrics(opened: Opened, caller: Caller = OPERATOR) -> AdminMetricsReport:
    report = opened.dispatcher.dispatch(Call("admin.metrics", {}, caller)).report
    assert isinstance(report, AdminMetricsReport)
    return report


def test_a_daemon_that_works_is_well(opened: Opened) -> None:
    assert health(opened).state == "ok"
    assert set(checks(opened).values()) == {("ok", None)}
    assert len(checks(opened)) == len(operating.CHECKS)


def test_who_is_no_operator_learns_nothing(opened: Opened) -> None:
    assert (health(opened, STRANGER).state, health(opened, STRANGER).checks) == (None, None)
    assert metrics(opened, STRANGER).metrics is None


def test_a_write_that_stands_still_is_told_and_then_taken_for_stuck(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    with writer_held(opened.store):
        assert checks(opened)["writes"] == ("ok", None)
        monkeypatch.setattr(operating, "SLOW_S", 0.0)
        assert checks(opened)["writes"] == ("degraded", "overloaded")
        monkeypatch.setattr(operating, "STUCK_S", 0.0)
        assert checks(opened)["writes"] == ("failing", "overloaded")
        assert health(opened).state == "failing"
    monkeypatch.undo()
    opened.store.write(lambda tx: None)
    assert health(opened).state == "ok"


def test_a_disk_without_room_and_an_identity_that_is_gone_are_degraded(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operating, "LOW_SPACE_BYTES", 2**62)
    assert checks(opened)["room"] == ("degraded", "storage_full")
    monkeypatch.undo()
    key = Path(opened.store.settings.path + ".identity")
    key.rename(key.with_suffix(".away"))
    try:
        assert checks(opened)["identity"][0] == "degraded"
    finally:
        key.with_suffix(".away").rename(key)


def test_a_store_whose_file_was_moved_fails(tmp_path: Path) -> None:
    opened = open_store(str(tmp_path / "beetle.db"), "standalone")
    try:
        os.rename(tmp_path / "beetle.db", tmp_path / "elsewhere.db")
        assert opened.store.files.is_lost()
        assert checks(opened)["writes"] == ("failing", "store_read_only")
    finally:
        opened.store.close()


def test_every_metric_is_read_by_prometheus(opened: Opened) -> None:
    opened.dispatcher.dispatch(Call("scheduler.status", {}, OPERATOR))
    opened.dispatcher.dispatch(Call("memory.recall", {"query": "key"}, OPERATOR))
    with pytest.raises(InvalidRequest):
        opened.dispatcher.dispatch(Call("memory.recall", {"query": ""}, OPERATOR))
    found = families(exposition(metrics(opened).metrics or ()))
    missing = {each.name.removesuffix("_total") for each in operating.METRICS} - set(found)
    unknown = {
        "beetle_connections",
        *(f"beetle_replica_{each}" for each in ("state", "lag_seconds", "lag_bytes", "restarts")),
    }
    assert missing == unknown, "what has no sample is left out"
    for each in operating.METRICS:
        if (family := found.get(each.name.removesuffix("_total"))) is not None:
            assert (family.type, family.documentation) == (each.kind, each.help)
    sums = {(each.name, each.labels.get("le")): each.value for each in found["beetle_request_seconds"].samples
            if each.labels["operation"] == "memory.recall"}  # fmt: skip
    counts = [value for (name, _), value in sums.items() if name.endswith("_bucket")]
    assert counts == sorted(counts)
    assert sums["beetle_request_seconds_count", None] == counts[-1] == 2
    assert sums["beetle_request_seconds_sum", None] > 0
    errors = {(each.labels["operation"], each.labels["error"]): each.value
              for each in found["beetle_request_errors"].samples}  # fmt: skip
    assert errors["memory.recall", "invalid_request"] == 1
    assert {each.labels["operation"] for each in found["beetle_requests"].samples} <= {*HANDLERS, "unknown"}


def test_what_a_label_may_hold_is_escaped() -> None:
    text = 'a "quoted"\\\nline'
    told = Metric(name="m", kind="gauge", help="h", samples=(
        MetricSample(value=0.5, labels=(MetricLabel(name="l", value=text),)), MetricSample(value=2.0),
    ))  # fmt: skip
    samples = families(exposition([told]))["m"].samples
    assert [(each.labels, each.value) for each in samples] == [({"l": text}, 0.5), ({}, 2.0)]


@pytest.fixture(scope="module")
def port(opened: Opened) -> Iterator[MetricsPort]:
    found = MetricsPort(opened.dispatcher, OPERATOR._replace(name="metrics"), ("127.0.0.1", 0), lambda: TOKEN)
    found.start()
    yield found
    found.stop()


class TestPort:
    def get(self, port: MetricsPort, path: str = "/metrics", token: str | None = TOKEN, method: str = "GET") -> Any:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        asked = urllib.request.Request(f"http://127.0.0.1:{port.port}{path}", headers=headers, method=method)
        try:
            with urllib.request.urlopen(asked, timeout=PATIENCE_S) as answer:
                return answer.status, answer.headers["Content-Type"], answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.headers["Content-Type"], error.read().decode()

    def test_a_scrape_with_the_token_gets_the_figures(self, port: MetricsPort) -> None:
        status, kind, text = self.get(port)
        assert (status, kind) == (200, "text/plain; version=0.0.4; charset=utf-8")
        assert families(text)["beetle_info"].samples[0].value == 1

    @pytest.mark.parametrize("token", [None, "", "another", TOKEN + "x", TOKEN[:-1]])
    @pytest.mark.parametrize("path", ["/metrics", "/"])
    def test_without_the_token_nobody_learns_even_what_is_there(
        self, port: MetricsPort, token: str | None, path: str
    ) -> None:
        status, _, text = self.get(port, path, token)
        assert status == 401
        assert "beetle_" not in text

    def test_there_is_one_page(self, port: MetricsPort) -> None:
        assert self.get(port, "/")[0] == 404
        assert self.get(port, method="POST")[0] == 405

    @pytest.mark.parametrize("sent", [b"nothing of http\r\n\r\n", b"\r\n\r\n", b"GET /metrics\r\n\r\n"])
    def test_what_is_no_request_is_refused(self, port: MetricsPort, sent: bytes) -> None:
        with socket.create_connection(("127.0.0.1", port.port), PATIENCE_S) as peer:
            peer.sendall(sent)
            assert peer.makefile("rb").read().startswith(b"HTTP/1.1 400 ")

    def test_a_head_without_an_end_is_not_kept(self, port: MetricsPort) -> None:
        with socket.create_connection(("127.0.0.1", port.port), PATIENCE_S) as peer:
            peer.settimeout(PATIENCE_S)
            with pytest.raises(OSError, match=r"reset|pipe"):
                while True:
                    peer.sendall(b"x" * metrics_port.HEAD_BYTES)
        assert self.get(port)[0] == 200

    def test_a_port_that_is_taken_is_told(self, opened: Opened, port: MetricsPort) -> None:
        second = MetricsPort(opened.dispatcher, OPERATOR, ("127.0.0.1", port.port), lambda: TOKEN)
        with pytest.raises(metrics_port.PortTaken, match="cannot be served"):
            second.start()
        second.stop()


@pytest.mark.parametrize(
    ("listen", "path"),
    [
        ("0.0.0.0:9464", "listen"), ("192.168.1.2:9464", "listen"), ("127.0.0.1", "listen"), ("[::]:9464", "listen"),
        ("127.0.0.1:99999", "listen"), ("127.0.0.999:1", "listen"), ("example.org:80", "listen"),
        ("127.0.0.1:9464", "token_file"),
    ],
)  # fmt: skip
def test_only_a_port_of_this_machine_with_a_token_is_served(tmp_path: Path, listen: str, path: str) -> None:
    file = tmp_path / "beetle.toml"
    file.write_text(f'[metrics]\nlisten = "{listen}"\n')
    with pytest.raises(InvalidRequest) as caught:
        read_config(file, {}, os.getuid())
    assert caught.value.details["path"] == f"$.metrics.{path}"


@pytest.mark.parametrize(
    ("listen", "address"),
    [("127.0.0.1:9464", ("127.0.0.1", 9464)), ("[::1]:9464", ("::1", 9464)), ("localhost:1", ("127.0.0.1", 1))],
)
def test_the_address_of_a_port(listen: str, address: tuple[str, int]) -> None:
    assert Metrics(listen=listen, token_file="/t").address == address


class Manager:
    """Where a service manager is told."""

    def __init__(self, folder: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.settimeout(PATIENCE_S)
        self.socket.bind(str(folder / "notify"))
        self.env = {"NOTIFY_SOCKET": str(folder / "notify"), "WATCHDOG_USEC": "2000"}


def test_the_watchdog_is_silent_while_the_writer_is_stuck(
    opened: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager = Manager(tmp_path)
    silent = threading.Semaphore(0)

    def answers() -> bool:
        if not (found := daemon.answers(opened)):
            silent.release()
        return found

    notifier = supervisor.Notifier(manager.env)
    with manager.socket, writer_held(opened.store) as free:
        monkeypatch.setattr(daemon, "STUCK_S", 0.0)
        watchdog = supervisor.Watchdog(manager.env, notifier, answers)
        for _ in range(3):
            assert silent.acquire(timeout=PATIENCE_S)
        manager.socket.setblocking(False)
        with pytest.raises(BlockingIOError):
            manager.socket.recv(100)
        free.set()
        manager.socket.settimeout(PATIENCE_S)
        assert manager.socket.recv(100) == b"WATCHDOG=1"
        watchdog.stop()
        notifier.close()


def test_a_writer_that_has_ended_and_a_store_that_is_closed_do_not_answer(tmp_path: Path) -> None:
    opened = open_store(str(tmp_path / "beetle.db"), "standalone")
    assert daemon.answers(opened)
    opened.store.close()
    assert not daemon.answers(opened)


def test_the_daemon_ends_before_the_unit_s_limit() -> None:
    from beetle.runtime.host import chain_mirrors
    from beetle.transports.grpc import server as grpc_server

    bounds = (
        unix_socket.STOP_SECONDS, unix_socket.ABORT_SECONDS, grpc_server.STOP_SECONDS, metrics_port.SECONDS,
        supervisor.NOTIFY_SECONDS, daemon.THREADS_SECONDS, 2 * chain_mirrors.CLOSE_S,
    )  # fmt: skip
    assert sum(bounds) < STOP_SECONDS / 2, "the rest is for the last write and its checkpoint"
