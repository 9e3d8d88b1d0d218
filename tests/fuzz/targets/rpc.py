"""gRPC: messages of every method to a real server. The first byte of an input chooses the method."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import grpc

from beetle.rpc.messages import BadMessage, decode, method_messages, to_message
from beetle.transports.grpc.table import RPCS
from tests.fuzz.contract import Broken
from tests.fuzz.mutation import changed_bytes, changed_value
from tests.fuzz.targets.target import Target, counts_of
from tests.transports.grpc_serving import SERVICE, Served

SAMPLES: dict[str, dict[str, Any]] = {
    "IngestEvent": {"event": {"event_id": "e1", "session_id": "s", "timestamp_ms": 1738281600000, "event_type": 1,
                              "role": 1, "text": "the key is under the pot", "metadata": {"a": "b"}, "agent": "x"}},
    "GetEvents": {"from_timestamp_ms": 0, "to_timestamp_ms": 1 << 42, "limit": 5},
    "GetNode": {"node_id": "toc:day:2025-01-31"}, "BrowseToc": {"parent_id": "toc:month:2025:01", "limit": 3},
    "ExpandGrip": {"grip_id": "grip:1738281600000:01", "events_before": 2, "events_after": 2},
    "SearchNode": {"node_id": "toc:day:2025-01-31", "query": "key", "limit": 3, "token_budget": 9},
    "SearchChildren": {"parent_id": "", "query": "key", "child_level": 1, "limit": 3},
    "TeleportSearch": {"query": "key", "limit": 3}, "HybridSearch": {"query": "key", "top_k": 3, "start_ms": 1},
    "ClassifyQueryIntent": {"query": "when did we talk about the key"}, "RouteQuery": {"query": "key", "limit": 2},
    "StartEpisode": {"task": "find the key", "agent": "x"}, "GetSimilarEpisodes": {"query": "key", "top_k": 2},
    "PauseJob": {"job_name": "optimize"}, "ResumeJob": {"job_name": "optimize"},
    "RecordAction": {"episode_id": "x", "action": {"action_type": "look", "input": "i"}},
    "GetAgentActivity": {"agent_id": "x", "bucket": "day"},
}  # fmt: skip


class Rpc(Target):
    most_bytes = 2_048
    tokens = (
        b"\x0a\x01a",
        b"\x08\x01",
        b"\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        b"\x0a\xff\x01",
        b"\x0b",
        b"\x0a\x02\xc3\x28",
    )

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._served = Served(folder, "operators", f"unix:{folder}/g.sock")
        self._channel = grpc.insecure_channel(f"unix:{folder}/g.sock")
        self._calls = [self._channel.unary_unary(f"/{SERVICE}/{each.name}") for each in RPCS]

    def __call__(self, data: bytes) -> None:
        if not data:
            return
        before = counts_of(self._served.opened.store)
        try:
            self._calls[data[0] % len(RPCS)](data[1:], timeout=60.0)
        except grpc.RpcError as error:
            told = f"{RPCS[data[0] % len(RPCS)].name}: {error.code()}: {error.details()}"  # type: ignore[attr-defined]
            if error.code() in (grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN):  # type: ignore[attr-defined]
                raise Broken(told) from None
            if counts_of(self._served.opened.store) != before:
                raise Broken(f"it was refused, and the store has changed: {told}") from None

    def seeds(self) -> list[bytes]:
        made = []
        for place, each in enumerate(RPCS):
            asked, _ = method_messages(each.name)
            fields = {
                name: value
                for name, value in SAMPLES.get(each.name, {}).items()
                if name in asked.DESCRIPTOR.fields_by_name
            }
            try:
                made.append(bytes([place]) + to_message(asked, fields).SerializeToString())
            except (BadMessage, ValueError, TypeError):
                made.append(bytes([place]))
        return made

    def changed(self, dice: Random, data: bytes) -> bytes:
        """A message with another value in one of its fields."""
        if dice.random() < 0.4 or not data:
            return changed_bytes(dice, data, self.tokens)
        asked, _ = method_messages(RPCS[data[0] % len(RPCS)].name)
        from google.protobuf import json_format

        try:
            value = json_format.MessageToDict(decode(asked, data[1:]), preserving_proto_field_name=True)
            made = json_format.ParseDict(changed_value(dice, value), asked(), ignore_unknown_fields=True)
            return data[:1] + made.SerializeToString()
        except (BadMessage, json_format.ParseError, ValueError, TypeError, AttributeError):
            return changed_bytes(dice, data, self.tokens)

    def close(self) -> None:
        self._channel.close()
        self._served.close()
