"""gRPC: what clients that know the published proto ask and are answered; health, reflection, and who they are."""

from __future__ import annotations

import json
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from beetle.contracts.common import WireScope
from beetle.contracts.errors import ERRORS, STATUS
from beetle.contracts.operations import BY_NAME
from beetle.open import Embedded
from beetle.rpc.messages import POOL, message_class, service, to_message
from beetle.transports.grpc.envelope import status_of
from beetle.transports.grpc.table import NO_ANSWER, RPCS
from tests.conformance.doors import embedded_caller
from tests.transports.grpc_serving import SECONDS, SERVICE, Served, Stub, published, refused

ROOT = Path(__file__).parents[2]
NINE = {
    "IngestEvent", "GetTocRoot", "GetNode", "BrowseToc", "GetEvents", "ExpandGrip", "GetSchedulerStatus", "PauseJob",
    "ResumeJob",
}  # fmt: skip


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with Served(tmp_path_factory.mktemp("grpc"), "operators") as running:
        yield running


@pytest.fixture(scope="module")
def channel(served: Served) -> Iterator[grpc.Channel]:
    with grpc.insecure_channel(served.target) as opened:
        yield opened


@pytest.fixture
def stub(channel: grpc.Channel) -> Stub:
    return Stub(channel)


def test_our_proto_has_every_field_of_the_published_one_by_its_number() -> None:
    file = published().FindFileByName("published.proto")
    ours = POOL.FindFileByName("memory.proto")
    assert file.package == ours.package == "memory"
    for name, message in file.message_types_by_name.items():
        mine = ours.message_types_by_name[name].fields_by_name
        for field in message.fields:
            found = mine[field.name]
            facts = [(each.number, each.type, each.is_repeated, each.has_presence) for each in (field, found)]
            assert facts[0] == facts[1], (name, field.name)
    for name, enum in file.enum_types_by_name.items():
        assert {each.name: each.number for each in enum.values} == {
            each.name: each.number for each in ours.enum_types_by_name[name].values
        }


def test_the_compiled_descriptors_are_those_of_the_proto_files() -> None:
    generator = runpy.run_path(str(ROOT / "packaging/gen_proto.py"))
    written = (ROOT / "beetle/rpc/descriptors.py").read_text(encoding="utf-8")
    assert written == generator["text"](), "stale: python packaging/gen_proto.py"


def test_each_rpc_is_one_operation_that_grpc_may_reach_and_the_nine_are_there() -> None:
    assert {row.name for row in RPCS} == set(service().methods_by_name)
    assert {row.name for row in RPCS} >= NINE
    assert all("grpc" in BY_NAME[row.operation].exposed for row in RPCS)
    assert {row.operation for row in RPCS} == {name for name, row in BY_NAME.items() if "grpc" in row.exposed}
    assert not set(NO_ANSWER) & {row.name for row in RPCS}


@pytest.mark.parametrize("key", sorted(ERRORS))
def test_every_error_has_the_status_of_the_table(key: str) -> None:
    name = STATUS[key].grpc
    error = ERRORS[key].__new__(ERRORS[key])
    assert status_of(error).name == (name or "INTERNAL")


def test_an_error_brings_its_key_its_hint_and_its_details(stub: Stub) -> None:
    error: Any = refused(stub, "GetNode", {})
    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert "node_id" in error.details()
    sent = dict(error.trailing_metadata())
    told = json.loads(sent["beetle-error-bin"])
    assert sent["beetle-error"] == told["key"] == "invalid_request"
    assert told["hint"] in error.details()
    assert told["retryable"] is False


def test_bytes_that_are_no_message_are_the_callers_fault(channel: grpc.Channel) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        channel.unary_unary(f"/{SERVICE}/IngestEvent")(b"\xff\xff\xff", timeout=SECONDS)
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT


def test_a_job_that_is_not_there_is_an_answer_and_no_error(stub: Stub) -> None:
    assert stub.call("PauseJob", {"jobName": "no-such-job"}) == {"error": "Job not found: no-such-job"}
    assert stub.call("ResumeJob", {"jobName": ""}) == {"error": "Job not found: "}


@pytest.mark.parametrize("name", sorted(NO_ANSWER))
def test_what_nothing_here_answers_says_what_does(channel: grpc.Channel, name: str) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        channel.unary_unary(f"/{SERVICE}/{name}")(b"", timeout=SECONDS)
    assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED
    assert NO_ANSWER[name] in (caught.value.details() or "")


def test_a_method_that_nobody_knows_is_unimplemented(channel: grpc.Channel) -> None:
    for path in (f"/{SERVICE}/Nothing", "/other.Service/IngestEvent", "/nonsense"):
        with pytest.raises(grpc.RpcError) as caught:
            channel.unary_unary(path)(b"", timeout=SECONDS)
        assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED


class Reflected:
    """The reflection service, by one of its two names."""

    def __init__(self, channel: grpc.Channel, name: str) -> None:
        self._question = message_class("grpc.reflection.v1.ServerReflectionRequest")
        self._ask: Any = channel.stream_stream(
            f"/{name}/ServerReflectionInfo",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=message_class("grpc.reflection.v1.ServerReflectionResponse").FromString,
        )

    def asked(self, *questions: dict[str, Any]) -> list[Any]:
        return list(self._ask(iter([self._question(**each) for each in questions]), timeout=SECONDS))


@pytest.mark.parametrize("name", ["grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection"])
def test_reflection_lists_the_services_and_describes_a_message(channel: grpc.Channel, name: str) -> None:
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    listed, found, file, missing = Reflected(channel, name).asked(
        {"list_services": "*"},
        {"file_containing_symbol": "memory.Event"},
        {"file_by_filename": "memory.proto"},
        {"file_containing_symbol": "memory.Nothing"},
    )
    services = [each.name for each in listed.list_services_response.service]
    assert services[0] == SERVICE
    assert {"grpc.health.v1.Health", name} < set(services)
    protos = [
        FileDescriptorProto.FromString(each.file_descriptor_response.file_descriptor_proto[0]) for each in (found, file)
    ]
    assert protos[0] == protos[1]
    event = next(each for each in protos[0].message_type if each.name == "Event")
    assert [(each.name, each.number) for each in event.field][:3] == [
        ("event_id", 1), ("session_id", 2), ("timestamp_ms", 3),
    ]  # fmt: skip
    assert missing.error_response.error_code == grpc.StatusCode.NOT_FOUND.value[0]


def test_health_says_that_it_serves_and_a_watcher_that_it_ends(tmp_path: Path) -> None:
    asked, answer = (
        message_class("grpc.health.v1.HealthCheckRequest"),
        message_class("grpc.health.v1.HealthCheckResponse"),
    )
    serving, not_serving = (to_message(answer, {"status": each}) for each in ("serving", "not_serving"))
    running = Served(tmp_path, "readers")
    with grpc.insecure_channel(running.target) as channel:
        check: Any = channel.unary_unary("/grpc.health.v1.Health/Check", response_deserializer=answer.FromString)
        for name in ("", SERVICE):
            assert check(asked(service=name).SerializeToString(), timeout=SECONDS) == serving  # type: ignore[call-arg]
        with pytest.raises(grpc.RpcError) as caught:
            check(asked(service="nothing").SerializeToString(), timeout=SECONDS)  # type: ignore[call-arg]
        assert caught.value.code() is grpc.StatusCode.NOT_FOUND
        watch: Any = channel.unary_stream("/grpc.health.v1.Health/Watch", response_deserializer=answer.FromString)
        states = watch(b"", timeout=SECONDS)
        assert next(states) == serving
        running.close()
        assert next(states) == not_serving


def test_a_principal_may_what_the_configuration_says_and_no_more(tmp_path: Path) -> None:
    with Served(tmp_path, "readers") as running, grpc.insecure_channel(running.target) as channel:
        stub = Stub(channel)
        for rpc, request in (
            ("PauseJob", {"jobName": "hourly-rollup"}),
            ("GetEvents", {"fromTimestampMs": "0", "toTimestampMs": "1"}),
        ):
            assert refused(stub, rpc, request).code() is grpc.StatusCode.PERMISSION_DENIED
        running.principals.replace({})
        assert refused(stub, "GetTocRoot", {}).code() is grpc.StatusCode.UNAUTHENTICATED


def test_a_principal_keeps_to_its_owner(tmp_path: Path) -> None:
    with Served(tmp_path, "bound") as running, grpc.insecure_channel(running.target) as channel:
        error = refused(Stub(channel), "GetTocRoot", {}, metadata=(("beetle-owner-id", "another"),))
        assert error.code() is grpc.StatusCode.PERMISSION_DENIED


@pytest.mark.parametrize(
    ("metadata", "code"),
    [
        ((("beetle-device-id", "nobody"), ("beetle-app-key", "wrong")), grpc.StatusCode.UNAUTHENTICATED),
        ((("beetle-device-id", "nobody"),), grpc.StatusCode.INVALID_ARGUMENT),
        ((("beetle-nonsense", "x"),), grpc.StatusCode.INVALID_ARGUMENT),
        ((("beetle-owner-id-bin", b"\xff"),), grpc.StatusCode.INVALID_ARGUMENT),
    ],
)
def test_wrong_metadata_is_refused(stub: Stub, metadata: Any, code: grpc.StatusCode) -> None:
    assert refused(stub, "GetTocRoot", {}, metadata=metadata).code() is code


def test_a_device_proves_itself_and_has_its_own_rights(tmp_path: Path) -> None:
    with Served(tmp_path, "readers") as running, grpc.insecure_channel(running.target) as channel:
        here = Embedded(running.opened, embedded_caller("owner-default"), WireScope())
        added: Any = here.call("device.add", {"label": "panel", "capabilities": ["event"]}, None, None, None).report
        proof = (("beetle-device-id", added.device.device_id), ("beetle-app-key", added.appKeyOnce))
        stub, asked = Stub(channel), {"fromTimestampMs": "0", "toTimestampMs": "1"}
        assert stub.call("GetEvents", asked, metadata=proof) == {}
        assert refused(stub, "GetTocRoot", {}, metadata=proof).code() is grpc.StatusCode.PERMISSION_DENIED
        wrong = (proof[0], ("beetle-app-key", "wrong"))
        assert refused(stub, "GetEvents", asked, metadata=wrong).code() is grpc.StatusCode.UNAUTHENTICATED
        # Nothing of the proof stays with the connection.
        assert refused(stub, "GetEvents", asked).code() is grpc.StatusCode.PERMISSION_DENIED


def test_a_large_message_of_a_device_waits_for_none_of_its_transport_s_principal(tmp_path: Path) -> None:
    with Served(tmp_path, "agents") as running, grpc.insecure_channel(running.target) as channel:
        here = Embedded(running.opened, embedded_caller("owner-default"), WireScope())
        added: Any = here.call("device.add", {"label": "panel", "capabilities": ["event"]}, None, None, None).report
        proof = (("beetle-device-id", added.device.device_id), ("beetle-app-key", added.appKeyOnce))
        turns = running.opened.dispatcher.shared.large_turns
        event = {"eventId": "large", "sessionId": "s", "timestampMs": "1", "eventType": 2, "text": "x" * 100_000}
        with turns.held("agents", None):
            assert Stub(channel).call("IngestEvent", {"event": event}, metadata=proof)["created"]
            assert not turns.waiting


def test_a_key_makes_a_repeated_request_the_first_one(stub: Stub) -> None:
    event = {"eventId": "keyed", "sessionId": "s", "timestampMs": "1", "eventType": 2}
    key = (("beetle-idempotency-key", "k-1"),)
    answers = [stub.call("IngestEvent", {"event": event}, metadata=key) for _ in range(2)]
    assert answers == [{"eventId": "keyed", "created": True}] * 2
    error = refused(stub, "IngestEvent", {"event": {**event, "text": "other"}}, metadata=key)
    assert error.code() is grpc.StatusCode.ALREADY_EXISTS


def test_a_transport_that_an_operator_has_closed_answers_no_principal(tmp_path: Path) -> None:
    with Served(tmp_path) as running, grpc.insecure_channel(running.target) as channel:
        Embedded(running.opened, embedded_caller("owner-default"), WireScope()).call(
            "transport.update", {"name": "grpc", "enabled": False}, None, None, None
        )
        assert refused(Stub(channel), "GetTocRoot", {}).code() is grpc.StatusCode.PERMISSION_DENIED
