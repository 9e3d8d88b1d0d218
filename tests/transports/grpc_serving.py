"""A gRPC server in this process, and a client generated from the published proto, as one of another language."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import grpc
from google.protobuf import json_format
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

from beetle.open import open_store
from beetle.runtime.host.config import Grpc, Principal
from beetle.runtime.host.dependencies import SYSTEM_DEPENDENCIES
from beetle.runtime.host.principals import Principals
from beetle.transports.grpc.server import GrpcServer

PUBLISHED = Path(__file__).parents[1] / "data" / "grpc"
SERVICE = "memory.MemoryService"
GRANTED = ("event", "toc", "recall", "transcript", "scheduler", "inspect")
PRINCIPALS = {
    "agents": Principal(capabilities=GRANTED),
    "operators": Principal(capabilities=(*GRANTED, "admin", "capture")),
    "readers": Principal(capabilities=("toc",)),
    "bound": Principal(capabilities=GRANTED, owner_id="owner-bound"),
}
SECONDS = 20.0


class Served:
    """A store of the gateway's profile, served as one of PRINCIPALS; `endpoint` is as a client writes it."""

    def __init__(
        self, folder: Path, principal: str | None = "agents", address: str = "[::1]:0", **settings: Any
    ) -> None:
        dependencies = settings.pop("dependencies", SYSTEM_DEPENDENCIES)
        self.opened = open_store(str(folder / "b.db"), "gateway", dependencies=dependencies)
        try:
            self.principals = Principals(os.getuid(), PRINCIPALS, self.opened.dispatcher.sessions.devices)
            given = Grpc(principal=principal, **settings)
            self.server = GrpcServer(self.opened.dispatcher, self.principals, given, address)
            self.server.start()
        except BaseException:
            self.opened.store.close()
            raise
        self.target = self.server.endpoint.partition(",")[0]

    def close(self) -> None:
        self.server.stop()
        self.opened.store.close()

    def __enter__(self) -> Served:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@cache
def published() -> DescriptorPool:
    """What a generator makes of the published proto."""
    from grpc_tools import protoc

    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "set"
        assert (
            protoc.main(["", f"-I{PUBLISHED}", f"--descriptor_set_out={out}", str(PUBLISHED / "published.proto")]) == 0
        )
        pool = DescriptorPool()
        for file in FileDescriptorSet.FromString(out.read_bytes()).file:
            pool.Add(file)
    return pool


class Stub:
    """The published client: requests and answers are JSON, as its documentation writes them."""

    def __init__(self, channel: grpc.Channel) -> None:
        self.channel = channel
        self.rpcs = published().FindServiceByName(SERVICE).methods_by_name

    def call(
        self, rpc: str, request: Mapping[str, Any], metadata: Any = None, timeout: float = SECONDS
    ) -> dict[str, Any]:
        """The answer with every field, enums as numbers, as the documentation shows them."""
        method = self.rpcs[rpc]
        asked = json_format.ParseDict(dict(request), GetMessageClass(method.input_type)())
        answer = self.channel.unary_unary(
            f"/{SERVICE}/{rpc}",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=GetMessageClass(method.output_type).FromString,
        )(asked, timeout=timeout, metadata=metadata)
        return json_format.MessageToDict(answer, use_integers_for_enums=True)


def refused(stub: Stub, rpc: str, request: Mapping[str, Any], **more: Any) -> grpc.RpcError:
    """The error that a call ends with."""
    try:
        stub.call(rpc, request, **more)
    except grpc.RpcError as error:
        return error
    raise AssertionError(f"{rpc} was answered")
