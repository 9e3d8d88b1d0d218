"""The two services that every gRPC client knows: health and reflection. Neither reads memory, nor asks who is there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc
import grpc.aio
from google.protobuf.message import Message

from beetle.contracts.errors import Overloaded
from beetle.rpc.messages import POOL, SERVICE, BadMessage, decode, message_class
from beetle.transports.grpc.envelope import words_of
from beetle.transports.grpc.open_calls import OpenCalls

HEALTH = "grpc.health.v1.Health"
REFLECTION = ("grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection")
SERVICES = (SERVICE, HEALTH, *REFLECTION)
SERVING, NOT_SERVING, SERVICE_UNKNOWN = 1, 2, 3
STREAMS = 32
"""Streams of both services together: each is cheap, and none is needed for memory."""
IDLE_SECONDS = 30.0
"""So long a reflection stream waits for the next question."""
REQUEST_SECONDS = 10.0
REQUEST_BYTES = 4096

HealthRequest = message_class("grpc.health.v1.HealthCheckRequest")
HealthAnswer = message_class("grpc.health.v1.HealthCheckResponse")
Question = message_class("grpc.reflection.v1.ServerReflectionRequest")
Answer = message_class("grpc.reflection.v1.ServerReflectionResponse")

Context = grpc.aio.ServicerContext[Any, Any]


class Health:
    """Whether the daemon serves; a watcher is told when it ends."""

    def __init__(self, streams: OpenCalls) -> None:
        self._streams = streams
        self._ending = asyncio.Event()

    def end(self) -> None:
        """From now on it does not serve."""
        self._ending.set()

    async def check(self, requests: AsyncIterator[bytes], context: Context) -> bytes:
        """One answer; NOT_FOUND for a service that is not here."""
        status = await self._status(requests, context)
        if status == SERVICE_UNKNOWN:
            await context.abort(grpc.StatusCode.NOT_FOUND, "no service of that name")
        return _health(status)

    async def watch(self, requests: AsyncIterator[bytes], context: Context) -> AsyncIterator[bytes]:
        """The state now, and when it changes, which it does once."""
        status = await self._status(requests, context)
        await _take(self._streams, context)
        try:
            yield _health(status)
            await self._ending.wait()
            if status == SERVING:
                yield _health(NOT_SERVING)
        finally:
            self._streams.free(context.peer())

    async def _status(self, requests: AsyncIterator[bytes], context: Context) -> int:
        try:
            data = await asyncio.wait_for(anext(requests, b""), REQUEST_SECONDS)
        except TimeoutError:
            await context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, "the request's message took too long")
            raise
        asked: Any = await _decoded(HealthRequest, data, context)
        if asked.service not in ("", *SERVICES):
            return SERVICE_UNKNOWN
        return NOT_SERVING if self._ending.is_set() else SERVING


class Reflection:
    """What services, messages and files there are."""

    def __init__(self, streams: OpenCalls) -> None:
        self._streams = streams

    async def answers(self, questions: AsyncIterator[bytes], context: Context) -> AsyncIterator[bytes]:
        """An answer to each question, until the client has no more or is silent for too long."""
        await _take(self._streams, context)
        try:
            while (data := await self._next(questions, context)) is not None:
                yield _answer(await _decoded(Question, data, context)).SerializeToString()
        finally:
            self._streams.free(context.peer())

    async def _next(self, questions: AsyncIterator[bytes], context: Context) -> bytes | None:
        try:
            return await asyncio.wait_for(anext(questions, None), IDLE_SECONDS)
        except TimeoutError:
            await context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, "no question came for too long")
            return None


def _answer(question: Any) -> Any:
    answer: Any = Answer(valid_host=question.host)
    answer.original_request.CopyFrom(question)
    kind = question.WhichOneof("message_request")
    if kind == "list_services":
        for name in SERVICES:
            answer.list_services_response.service.add(name=name)
    elif kind == "file_by_filename":
        _put_file(answer, question.file_by_filename, POOL.FindFileByName)
    elif kind == "file_containing_symbol":
        # Its older name has the same messages.
        symbol = question.file_containing_symbol.replace("grpc.reflection.v1alpha.", "grpc.reflection.v1.")
        _put_file(answer, symbol, POOL.FindFileContainingSymbol)
    elif kind == "all_extension_numbers_of_type":
        answer.all_extension_numbers_response.base_type_name = question.all_extension_numbers_of_type
    else:
        _refuse(answer, grpc.StatusCode.NOT_FOUND, "there are no extensions")
    return answer


def _put_file(answer: Any, name: str, find: Any) -> None:
    try:
        found = find(name)
    except KeyError:
        _refuse(answer, grpc.StatusCode.NOT_FOUND, "there is no such file or symbol")
        return
    answer.file_descriptor_response.file_descriptor_proto.append(found.serialized_pb)


def _refuse(answer: Any, code: grpc.StatusCode, words: str) -> None:
    answer.error_response.error_code = code.value[0]
    answer.error_response.error_message = words


def _health(status: int) -> bytes:
    return HealthAnswer(status=status).SerializeToString()


async def _decoded(kind: type[Message], data: bytes, context: Context) -> Message:
    if len(data) > REQUEST_BYTES:
        await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, f"a request has at most {REQUEST_BYTES} bytes")
    try:
        return decode(kind, data)
    except BadMessage as error:
        await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        raise


async def _take(streams: OpenCalls, context: Context) -> None:
    try:
        streams.take(context.peer())
    except Overloaded as error:
        await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, words_of(error))
