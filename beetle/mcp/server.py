"""The server: reads messages, answers at once what needs no memory, and has the rest worked at side by side."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from beetle import __version__
from beetle.contracts.errors import BeetleError
from beetle.contracts.loading import import_msgspec
from beetle.mcp import envelope, messages
from beetle.mcp.calls import Calls, MemoryAccess
from beetle.mcp.lines import bounded_lines
from beetle.mcp.messages import Incoming, RpcError, RpcId, Wrong, text_of
from beetle.mcp.revisions import LATEST, negotiated
from beetle.mcp.running import Cancelled, ProgressTold, Running
from beetle.mcp.workers import TooBusy, Workers

if TYPE_CHECKING:
    from beetle.contracts.common import Report
    from beetle.contracts.operation import Operation
    from beetle.mcp.tools import Tools, Toolset

LINE_BYTES = 4 * 1024 * 1024
BATCH_MOST = 64
FINISH_SECONDS = 5.0
"""What runs when the host has closed stdin may take so long to end."""
LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
CAPABILITIES: dict[str, Any] = {"tools": {}, "resources": {}, "prompts": {}}
SERVER_INFO = {"name": "beetle", "version": __version__, "title": "Beetle memory"}
HANDSHAKE = frozenset({"initialize", envelope.DISCOVER, "ping", "logging/setLevel"})
"""Answered before anything is loaded that only the work needs: a host waits for them as it starts."""
Reply = Callable[[Any], None]


class Output:
    """The host's end. What is written after it went away is lost, and `gone` says so."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._guard = threading.Lock()
        self.gone = False

    def send(self, message: Any) -> None:
        """One message, whole, on a line of its own."""
        left = memoryview(messages.packed(message))
        with self._guard:
            try:
                while left and not self.gone:
                    left = left[os.write(self._descriptor, left) :]
            except OSError:
                self.gone = True


class Batch:
    """The answers of a batch, sent together once the last one is there."""

    def __init__(self, size: int, send: Reply) -> None:
        self._left = size
        self._answers: list[Any] = []
        self._guard = threading.Lock()
        self._send = send

    def add(self, message: Any) -> None:
        """The answer of one of its messages; None for one that gets none."""
        with self._guard:
            self._left -= 1
            if message is not None:
                self._answers.append(message)
            done = not self._left
        if done and self._answers:
            self._send(self._answers)


class Server:
    """One host's session."""

    def __init__(self, output: Output, access: MemoryAccess, toolset: Toolset) -> None:
        self._output = output
        self._calls = Calls(access, self._log)
        self._toolset: Toolset = toolset
        self._made: Tools | None = None
        self._revision = LATEST
        self._level = LEVELS.index("warning")
        self._ready = False
        self._shaken = False
        self._workers = Workers()
        self._guard = threading.Lock()
        self._running: dict[RpcId, Running] = {}
        self._at_once: dict[str, Callable[[dict[str, Any]], Any]] = {
            "initialize": self._initialize,
            envelope.DISCOVER: self._discover,
            "ping": lambda _: {},
            "logging/setLevel": self._set_level,
            "resources/list": self._resources,
            "resources/templates/list": self._templates,
            "prompts/list": self._prompts,
        }
        self._worked: dict[str, Callable[[dict[str, Any], Running], Any]] = {
            "tools/list": self._list_tools,
            "tools/call": self._call_tool,
            "resources/read": self._read_resource,
            "prompts/get": self._get_prompt,
        }

    def run(self, descriptor: int) -> None:
        """Serve until the host closes its end."""
        for line in bounded_lines(descriptor, LINE_BYTES):
            if line is None:
                error = RpcError(messages.INVALID_REQUEST, f"a line has at most {LINE_BYTES} bytes")
                self._output.send(messages.refusal(None, error))
            else:
                self._take(line)
            if self._output.gone:
                break
        if not self._workers.finish(FINISH_SECONDS):
            with self._guard:
                running = list(self._running.values())
            for each in running:
                each.cancel()
            self._workers.finish(FINISH_SECONDS)
        self._calls.close()

    def _take(self, line: bytes) -> None:
        try:
            value = messages.parse(line)
        except RpcError as error:
            self._output.send(messages.refusal(None, error))
            return
        if not isinstance(value, list):
            self._handle(value, len(line), self._reply)
        elif not self._revision.batches or not 0 < len(value) <= BATCH_MOST:
            why = f"1 to {BATCH_MOST} messages" if self._revision.batches else "no batches"
            error = RpcError(messages.INVALID_REQUEST, f"the protocol {self._revision.name} takes {why} in a line")
            self._output.send(messages.refusal(None, error))
        else:
            batch = Batch(len(value), self._output.send)
            for each in value:
                self._handle(each, len(line) // len(value), batch.add)

    def _reply(self, message: Any) -> None:
        if message is not None:
            self._output.send(message)

    def _handle(self, value: Any, size: int, reply: Reply) -> None:
        """One message; `reply` is called once, with None where it gets no answer."""
        message = messages.read_message(value)
        if isinstance(message, Wrong):
            reply(messages.refusal(message.id, message.error))
        elif message.id is None:
            self._note(message)
            reply(None)
        else:
            self._take_request(message, message.id, size, reply)

    def _take_request(self, message: Incoming, request_id: RpcId, size: int, reply: Reply) -> None:
        try:
            self._settle_revision(message)
        except RpcError as error:
            reply(messages.refusal(request_id, error))
            return
        if message.method not in HANDSHAKE:
            # On this thread alone: the workers import what they need of it side by side.
            import_msgspec()
        at_once = self._at_once.get(message.method) if self._has(message.method) else None
        if at_once is not None:
            reply(self._answered(message.method, request_id, partial(at_once, message.params)))
        elif message.method in self._worked:
            self._begin(message, request_id, size, reply)
        else:
            reply(messages.refusal(request_id, no_method(message.method)))

    def _settle_revision(self, message: Incoming) -> None:
        """A session has a handshake, or it is one in which each request names its revision: the first one decides.

        Raises:
            RpcError: the request is of the other sort, or its revision is not known here.
        """
        if message.method == "initialize":
            if self._revision.enveloped:
                raise envelope.unsupported(message.params.get("protocolVersion"))
        elif self._revision.enveloped:
            envelope.revision_of(message.params)
        elif envelope.is_enveloped(message.params):
            if self._shaken:
                why = f"this session began with initialize, and speaks the protocol {self._revision.name}"
                raise RpcError(messages.INVALID_REQUEST, why)
            self._revision = envelope.revision_of(message.params)

    def _has(self, method: str) -> bool:
        """Whether the session's revision has a method that is known here."""
        if self._revision.enveloped:
            return method not in envelope.HANDSHAKE_METHODS
        return method != envelope.DISCOVER

    def _answered(self, method: str, request_id: RpcId, work: Callable[[], Any]) -> Any:
        """The answer that a piece of work makes; None for one that was cancelled."""
        try:
            result = work()
            if self._revision.enveloped:
                result = envelope.sealed(method, result, SERVER_INFO)
            return messages.answer(request_id, result)
        except Cancelled:
            return None
        except RpcError as error:
            return messages.refusal(request_id, self._coded(error))
        except BeetleError as error:
            return messages.refusal(request_id, self._coded(_as_rpc(error)))
        except Exception as defect:  # noqa: BLE001 - the boundary: one request's defect must not end the session
            print_defect(defect)
            told = RpcError(messages.INTERNAL_ERROR, "an internal error was written to the server's stderr")
            return messages.refusal(request_id, told)

    def _coded(self, error: RpcError) -> RpcError:
        """The error as the session's revision has it: the last one gave up MCP's own code of resources."""
        if self._revision.enveloped and error.code == messages.RESOURCE_NOT_FOUND:
            return RpcError(messages.INVALID_PARAMS, error.message, error.data)
        return error

    def _begin(self, message: Incoming, request_id: RpcId, size: int, reply: Reply) -> None:
        running = Running(request_id)
        with self._guard:
            known = request_id in self._running
            if not known:
                self._running[request_id] = running
        if known:
            error = RpcError(messages.INVALID_REQUEST, "a request of this id is worked at")
            reply(messages.refusal(request_id, error))
            return

        def job() -> None:
            work = partial(self._worked[message.method], message.params, running)
            made = None if running.cancelled else self._answered(message.method, request_id, work)
            with self._guard:
                del self._running[request_id]
            reply(None if running.cancelled else made)

        try:
            self._workers.do(job, size)
        except TooBusy:
            with self._guard:
                del self._running[request_id]
            error = RpcError(messages.BUSY, "too many requests wait; send fewer at once", {"retryable": True})
            reply(messages.refusal(request_id, error))

    def _note(self, message: Incoming) -> None:
        """A notification; those that are not known are passed over, as the protocol has it."""
        if message.method == "notifications/initialized":
            self._ready = True
        elif message.method == "notifications/cancelled":
            wanted = message.params.get("requestId")
            with self._guard:
                running = self._running.get(wanted) if isinstance(wanted, (int, str)) else None
            if running is not None:
                running.cancel()
                self._log("debug", f"request {running.id} was cancelled")

    def _initialize(self, params: dict[str, Any]) -> dict[str, Any]:
        from beetle.mcp.guide import INSTRUCTIONS

        self._revision = negotiated(text_of(params, "protocolVersion"))
        self._shaken = True
        named = {name: each for name, each in SERVER_INFO.items() if name != "title" or self._revision.structured}
        return {
            "protocolVersion": self._revision.name,
            "capabilities": {**CAPABILITIES, "logging": {}},
            "serverInfo": named,
            "instructions": INSTRUCTIONS,
        }

    def _discover(self, params: dict[str, Any]) -> dict[str, Any]:
        from beetle.mcp.guide import INSTRUCTIONS

        return {
            "supportedVersions": [self._revision.name],
            "capabilities": CAPABILITIES,
            "instructions": INSTRUCTIONS,
        }

    def _set_level(self, params: dict[str, Any]) -> dict[str, Any]:
        level = text_of(params, "level")
        if level not in LEVELS:
            raise RpcError(messages.INVALID_PARAMS, f"params.level is one of {', '.join(LEVELS)}")
        self._level = LEVELS.index(level)
        return {}

    def _log(self, level: str, text: str) -> None:
        """Into the host's log, where it wants so much."""
        if self._ready and not self._revision.enveloped and LEVELS.index(level) >= self._level:
            params = {"level": level, "logger": "beetle", "data": text}
            self._output.send(messages.notification("notifications/message", params))

    def _tools(self) -> Tools:
        # Loaded with the first request that needs them: a host waits for the answer to initialize.
        from beetle.mcp.tools import Tools

        with self._guard:
            if self._made is None:
                self._made = Tools(self._toolset)
            return self._made

    def _list_tools(self, params: dict[str, Any], running: Running) -> dict[str, Any]:
        _one_page(params)
        hello = self._calls.ask_daemon(_row("hello"), running)
        operations = None if hello is None else getattr(hello, "operations", None)
        visible = None if operations is None else {each.name for each in operations if each.visible}
        return {"tools": self._tools().listed(self._revision, visible)}

    def _call_tool(self, params: dict[str, Any], running: Running) -> dict[str, Any]:
        from beetle.contracts.codec import to_plain
        from beetle.mcp.mend import error_result
        from beetle.mcp.texts import text_of_report

        tool = self._tools().get(text_of(params, "name"))
        given = params.get("arguments")
        if given is not None and not isinstance(given, dict):
            raise RpcError(messages.INVALID_PARAMS, "params.arguments is an object")
        try:
            arguments = tool.operation_arguments(given or {})
            report = to_plain(self._calls.call(tool.row, arguments, running, self._progress(params)))
        except BeetleError as error:
            return error_result(error, tool)
        result: dict[str, Any] = {"content": [{"type": "text", "text": text_of_report(tool.row.name, report)}]}
        if self._revision.structured:
            result["structuredContent"] = tool.structured(report)
        return {**result, "isError": False}

    def _progress(self, params: dict[str, Any]) -> ProgressTold | None:
        meta = params.get("_meta")
        token = meta.get("progressToken") if isinstance(meta, dict) else None
        if not isinstance(token, (int, str)) or isinstance(token, bool):
            return None
        return ProgressTold(token, self._output.send, worded=self._revision.progress_message)

    def _ask(self, running: Running, operation: str, arguments: dict[str, Any]) -> Report:
        return self._calls.call(_row(operation), arguments, running)

    def _resources(self, params: dict[str, Any]) -> dict[str, Any]:
        from beetle.mcp.resources import RESOURCES

        _one_page(params)
        return {"resources": [each.listed("uri", titled=self._revision.structured) for each in RESOURCES]}

    def _templates(self, params: dict[str, Any]) -> dict[str, Any]:
        from beetle.mcp.resources import TEMPLATES

        _one_page(params)
        titled = self._revision.structured
        return {"resourceTemplates": [each.listed("uriTemplate", titled=titled) for each in TEMPLATES]}

    def _prompts(self, params: dict[str, Any]) -> dict[str, Any]:
        from beetle.mcp.resources import prompts

        _one_page(params)
        return {"prompts": prompts(titled=self._revision.structured)}

    def _read_resource(self, params: dict[str, Any], running: Running) -> dict[str, Any]:
        from beetle.mcp.resources import read_resource

        return read_resource(text_of(params, "uri"), self._tools().names(), partial(self._ask, running))

    def _get_prompt(self, params: dict[str, Any], running: Running) -> dict[str, Any]:
        from beetle.mcp.resources import get_prompt

        arguments = params.get("arguments") or {}
        if not isinstance(arguments, dict):
            raise RpcError(messages.INVALID_PARAMS, "params.arguments is an object")
        return get_prompt(text_of(params, "name"), arguments, partial(self._ask, running))


def serve(access: MemoryAccess, toolset: Toolset) -> int:
    """Serve the host at stdin and stdout until it closes stdin; the process's exit code."""
    output = os.dup(1)
    # A host may have given pipes of its event loop: here a read waits, and a write is whole.
    for each in (0, output):
        os.set_blocking(each, True)
    # Whatever else writes to stdout, here or in a process that is started from here, is no protocol.
    os.dup2(2, 1)
    try:
        Server(Output(output), access, toolset).run(0)
    finally:
        os.close(output)
    return 0


def no_method(name: str) -> RpcError:
    """What a method that is not there is answered with."""
    return RpcError(messages.METHOD_NOT_FOUND, f"no method {name[:128]!r}")


def print_defect(defect: Exception) -> None:
    """Where it happened, on stderr; its words might hold content, and are left out."""
    import traceback

    frames = "".join(traceback.format_tb(defect.__traceback__))
    sys.stderr.write(f"beetle: internal: {type(defect).__name__}\n{frames}")


def _row(operation: str) -> Operation:
    from beetle.contracts.operations import BY_NAME

    return BY_NAME[operation]


def _one_page(params: dict[str, Any]) -> None:
    """Every list is one page, so that no cursor was ever given out."""
    if params.get("cursor") is not None:
        raise RpcError(messages.INVALID_PARAMS, "params.cursor is none of this server's")


def _as_rpc(error: BeetleError) -> RpcError:
    code = messages.INTERNAL_ERROR
    if error.key in ("invalid_request", "payload_too_large"):
        code = messages.INVALID_PARAMS
    elif error.key == "not_found":
        code = messages.RESOURCE_NOT_FOUND
    data = {"key": error.key, "hint": error.hint, "retryable": error.retryable}
    return RpcError(code, f"{error.key}: {error.message}", data)
