"""`beetle capture --hook`: what a host calls at each step of a session. It answers at once, whatever becomes of memory.

The event goes to the daemon; where none takes it in time it is spooled: a file of mode 0600 in a folder of mode 0700,
complete or not there at all. The next hook that finds a daemon delivers it, or the daemon when it starts. An event has
its id before it is sent, so that one delivered twice is one event.

Nothing but the standard library is imported here, and little of that: a host waits for this process at every turn.
"""

from __future__ import annotations

import os
import select
import stat
import sys
import time

try:
    # `socket` makes enumerations of its constants, for which it loads half of what a hook's start would take.
    import _socket
except ImportError:
    import socket as _socket  # type: ignore[no-redef]

from beetle.lean_json import dumps, loads
from beetle.packed import pack, unpack
from beetle.spool import SPOOL_FILES, spool_folder, spool_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

ANSWER = '{"continue":true}\n'
INPUT_BYTES = 16 << 20
INPUT_S = 1.0
"""A host that opens a pipe and says nothing is not waited for any longer."""
TALK_MS = 15
"""So long a daemon may take to accept an event before it is spooled instead, unless $BEETLE_HOOK_MS says otherwise."""
DRAIN_S = 0.008
TEXT_BYTES = 60_000
"""Of a longer text the beginning is kept: hooks carry whole files, and every profile takes so much."""
SPOOL_FILE_BYTES = 512 * 1024
REFUSED_FILES = 256
ANSWER_BYTES = 256 * 1024
CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
SYSTEM_SOCKET = "/run/beetle/beetle.sock"
FLAGS = ("--socket", "--agent", "--owner", "--auth-file")

EVENTS: Mapping[str, tuple[str, str]] = {
    "SessionStart": ("session_start", "system"),
    "UserPromptSubmit": ("user_message", "user"),
    "AssistantResponse": ("assistant_message", "assistant"),
    "ToolUse": ("tool_result", "tool"),
    "ToolResult": ("tool_result", "tool"),
    "Stop": ("session_end", "system"),
    "SubagentStart": ("subagent_start", "system"),
    "SubagentStop": ("subagent_stop", "system"),
}
"""The type and the role of the event that each kind of hook is."""
NAMES: Mapping[str, str] = {
    "PreToolUse": "ToolUse", "PostToolUse": "ToolResult", "SessionEnd": "Stop",
    "agent-turn-complete": "AssistantResponse", "BeforeAgent": "UserPromptSubmit", "AfterAgent": "AssistantResponse",
    "BeforeTool": "ToolUse", "AfterTool": "ToolResult",
}  # fmt: skip
"""What hosts call them; another name is taken for a prompt."""
TEXTS = ("message", "prompt", "text", "last-assistant-message", "last_assistant_message", "prompt_response")
KEPT = ("cwd", "transcript_path", "tool_use_id", "model", "turn-id", "source", "reason")
FIRST_MS, LAST_MS = -62_135_596_800_000, 253_402_300_799_999
"""The years 1 to 9999."""
FINAL = ("invalid_request", "payload_too_large", "conflict", "host_pubkey_not_enrolled", "signature_invalid")
"""Errors that another delivery meets again."""


def main(arguments: Sequence[str]) -> int:
    """Read one hook's JSON from the last argument or stdin, and hand it on; 0 whatever happens."""
    try:
        _run(list(arguments))
    except (OSError, ValueError, RecursionError) as error:
        sys.stderr.write(f"beetle: the hook was not captured: {error}\n")
    try:
        sys.stdout.write(ANSWER)
        sys.stdout.flush()
    except OSError as error:
        sys.stderr.write(f"beetle: the answer to the hook was not written: {error}\n")
        # What the buffer still holds is written once more at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return 0


def _run(arguments: list[str]) -> None:
    given: dict[str, str] = {}
    while arguments and arguments[0] in FLAGS:
        flag = arguments.pop(0)
        given[flag] = arguments.pop(0) if arguments else ""
    data = arguments[0].encode("utf-8", "replace") if arguments else _input()
    found = loads(data)
    if not isinstance(found, dict):
        raise ValueError("its input is no JSON object")
    sockets = [os.path.abspath(given["--socket"])] if given.get("--socket") else default_sockets(os.environ)
    scope = {name: given[flag] for flag, name in (("--owner", "owner_id"), ("--agent", "agent_id")) if given.get(flag)}
    records = [{**request, "scope": scope, "sockets": sockets} for request in requests_of(found)]
    auth = _auth(given.get("--auth-file"))
    patience = os.environ.get("BEETLE_HOOK_MS", "")
    link = Link.first(sockets, auth, (int(patience) if patience.isdecimal() else TALK_MS) / 1000)
    spool = spool_folder(os.environ)
    try:
        for record in records:
            taken = None if link is None else link.deliver(record)
            if taken is None:
                link = None
                save(spool, record)
            elif not taken:
                refused = os.path.join(spool, "refused")
                save(refused, record, REFUSED_FILES)
                sys.stderr.write(f"beetle: the daemon refused the hook, which is kept in {refused}\n")
        if link is not None:
            drain(spool, link, set(sockets), DRAIN_S)
    finally:
        if link is not None:
            link.close()


def _input() -> bytes:
    """All of stdin, as far as it comes in time."""
    chunks: list[bytes] = []
    ends, size = time.monotonic() + INPUT_S, 0
    while size < INPUT_BYTES and (left := ends - time.monotonic()) > 0:
        if not select.select([0], [], [], left)[0]:
            break
        chunk = os.read(0, 1 << 16)
        if not chunk:
            break
        chunks.append(chunk)
        size += len(chunk)
    return b"".join(chunks)


def _auth(path: str | None) -> dict[str, Any] | None:
    if not path:
        return None
    with open(path, "rb") as file:
        found: dict[str, Any] = loads(file.read(4096))
    return found


def default_sockets(env: Mapping[str, str]) -> list[str]:
    """Where a daemon is looked for: $BEETLE_SOCKET alone, or the user's and the system's."""
    if named := env.get("BEETLE_SOCKET"):
        return [os.path.abspath(named)]
    folder = env.get("XDG_RUNTIME_DIR")
    return [*([os.path.join(folder, "beetle", "beetle.sock")] if folder and os.getuid() else []), SYSTEM_SOCKET]


def requests_of(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The operations that a hook's JSON asks for: turn.capture where it has that shape, else events."""
    if "host_session_id" in found and "host_turn_index" in found:
        return [{"op": "turn.capture", "args": dict(found)}]
    name = str(found.get("hook_event_name") or found.get("type") or "UserPromptSubmit")
    kind = NAMES.get(name, name)
    event_type, role = EVENTS.get(kind, EVENTS["UserPromptSubmit"])
    session = str(found.get("session_id") or found.get("thread-id") or found.get("conversation_id") or "unknown")[:256]
    base = {"session_id": _plain(session), "timestamp_ms": _moment(found.get("timestamp"))}
    metadata = {key: _said(found[key])[:4096] for key in KEPT if found.get(key) is not None}
    metadata["hook_event_name"] = name[:256]
    if found.get("tool_name"):
        metadata["tool_name"] = str(found["tool_name"])[:4096]
    text = _text(found, kind)
    short = text.encode("utf-8", "replace")[:TEXT_BYTES].decode("utf-8", "ignore")
    if short != text:
        metadata["characters_left_out"] = str(len(text) - len(short))
    event = {**base, "event_type": event_type, "role": role, "text": short, "metadata": metadata}
    asked = found.get("input-messages")
    events = [event]
    if isinstance(asked, list) and asked:
        said = "\n\n".join(map(str, asked)).encode("utf-8", "replace")[:TEXT_BYTES].decode("utf-8", "ignore")
        events.insert(0, {**base, "event_type": "user_message", "role": "user", "text": said, "metadata": metadata})
    if found.get("agent"):
        for each in events:
            each["agent"] = _plain(str(found["agent"])[:256])
    return [{"op": "event.ingest", "args": {"event": {"event_id": new_ulid(), **each}}} for each in events]


def _text(found: Mapping[str, Any], kind: str) -> str:
    if kind == "ToolUse":
        return _said(found.get("tool_input", found.get("message", "")))
    if kind == "ToolResult" and (answer := found.get("tool_response", found.get("tool_output"))) is not None:
        return _said(answer)
    return next((_said(found[key]) for key in TEXTS if found.get(key)), "")


def _said(value: Any) -> str:
    text = value if isinstance(value, str) else dumps(value, ensure_ascii=False)
    # Half a character of UTF-16 can be written in JSON, and in no UTF-8.
    return text.encode("utf-8", "replace").decode()


def _plain(text: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in _said(text))


def _moment(given: Any) -> int:
    """Milliseconds of a number of them, or of RFC 3339; now without one that an event can have."""
    if isinstance(given, int) and not isinstance(given, bool) and FIRST_MS <= given <= LAST_MS:
        return given
    if isinstance(given, str):
        from datetime import datetime

        try:
            at = datetime.fromisoformat(given)
        except ValueError:
            return time.time_ns() // 1_000_000
        if at.tzinfo is not None:
            return int(at.timestamp() * 1000)
    return time.time_ns() // 1_000_000


class Ulids:
    """ULIDs: 48 bits of the time in milliseconds, 80 random ones. Each is behind the one before, so that events of one
    millisecond keep their order."""

    def __init__(self) -> None:
        self._last = 0

    def new(self) -> str:
        """The next one; 26 characters."""
        number = (time.time_ns() // 1_000_000 << 80) | int.from_bytes(os.urandom(10), "big")
        self._last = number if number >> 80 > self._last >> 80 else self._last + 1
        return "".join(CROCKFORD[self._last >> shift & 31] for shift in range(125, -5, -5))


new_ulid = Ulids().new


class Link:
    """A connection to a daemon, which is given little time."""

    def __init__(self, connection: _socket.socket, auth: dict[str, Any] | None) -> None:
        self._connection = connection
        self._auth = auth
        self._sent = 0

    @classmethod
    def first(cls, sockets: Sequence[str], auth: dict[str, Any] | None, seconds: float) -> Link | None:
        """To the first of these sockets at which somebody listens; None where nobody does.

        Args:
            seconds: how long each answer may take.
        """
        for path in sockets:
            connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM | _socket.SOCK_CLOEXEC)
            connection.settimeout(seconds)
            try:
                connection.connect(path)
            except OSError:
                connection.close()
            else:
                return cls(connection, auth)
        return None

    def deliver(self, record: Mapping[str, Any]) -> bool | None:
        """Whether a record was taken; None when the daemon did not say in time, and is to be asked no more."""
        self._sent += 1
        frame = {"v": 1, "id": self._sent, "op": record["op"], "args": record["args"]}
        frame |= {"scope": record["scope"]} if record.get("scope") else {}
        frame |= {"auth": self._auth} if self._auth else {}
        try:
            self._connection.sendall(pack(frame))
            answer = self._answer()
        except OSError:
            return None
        if answer.get("ok"):
            return True
        error = answer.get("error") or {}
        return False if error.get("key") in FINAL else None

    def _answer(self) -> dict[str, Any]:
        data = b""
        while len(data) < ANSWER_BYTES:
            chunk = self._connection.recv(1 << 16)
            if not chunk:
                break
            data += chunk
            found = unpack(data)
            if isinstance(found, dict):
                return found
        return {}

    def close(self) -> None:
        self._connection.close()


def save(folder: str, record: Mapping[str, Any], most: int = SPOOL_FILES) -> None:
    """Put a record into a folder of so many at most, the spool for one: complete, or not at all.

    Raises:
        OSError: the folder is full, or cannot be written.
    """
    os.makedirs(folder, mode=0o700, exist_ok=True)
    if sum(1 for _ in spool_names(folder)) >= most:
        hint = "start the daemon: beetle start" if most == SPOOL_FILES else "look at them, then remove them"
        raise OSError(f"{folder} holds {most} events already; {hint}")
    data = dumps(record, ensure_ascii=True).encode()
    if len(data) > SPOOL_FILE_BYTES:
        raise OSError(f"it is larger than {SPOOL_FILE_BYTES} bytes, and no daemon took it")
    name = f"{time.time_ns():020}-{os.getpid()}-{os.urandom(4).hex()}"
    place = os.path.join(folder, name)
    descriptor = os.open(f"{place}.new", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
        os.rename(f"{place}.new", f"{place}.json")
    except OSError:
        os.unlink(f"{place}.new")
        raise


def drain(
    folder: str, link: Link, sockets: set[str], seconds: float, is_ending: Callable[[], bool] = lambda: False
) -> int:
    """Deliver what waits for the daemon at one of these sockets, the oldest first; how much of it was delivered."""
    ends, delivered = time.monotonic() + seconds, 0
    for name in sorted(spool_names(folder)):
        if time.monotonic() > ends or is_ending():
            break
        place = os.path.join(folder, name)
        record = _read(place)
        if record is None:
            _put_aside(folder, name)
            continue
        if not sockets.intersection(record["sockets"]):
            continue
        try:
            taken = link.deliver(record)
        except (ValueError, RecursionError):
            taken = False  # a frame cannot hold it: those behind it are not held up
        if taken is None:
            break
        if taken:
            _remove(place)
            delivered += 1
        else:
            _put_aside(folder, name)
    return delivered


def _read(place: str) -> dict[str, Any] | None:
    """A record of this user's own; None for anything else."""
    try:
        descriptor = os.open(place, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        with open(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or status.st_uid != os.getuid():
                return None
            found = loads(file.read(SPOOL_FILE_BYTES + 1))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or not isinstance(found.get("args"), dict):
        return None
    sockets = found.get("sockets")
    shaped = isinstance(sockets, list) and all(isinstance(each, str) for each in sockets)
    return found if shaped and found.get("op") in ("event.ingest", "turn.capture") else None


def _put_aside(folder: str, name: str) -> None:
    """Keep what no daemon takes for somebody to look at, while there is room."""
    refused = os.path.join(folder, "refused")
    try:
        os.makedirs(refused, mode=0o700, exist_ok=True)
        if sum(1 for _ in spool_names(refused)) < REFUSED_FILES:
            os.rename(os.path.join(folder, name), os.path.join(refused, name))
            return
    except OSError:
        pass
    _remove(os.path.join(folder, name))


def _remove(place: str) -> None:
    try:
        os.unlink(place)
    except FileNotFoundError:
        return  # another hook delivered it at the same time
