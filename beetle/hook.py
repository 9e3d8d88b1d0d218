"""`beetle capture --hook`: what a host calls at each step of a session. It answers at once, whatever becomes of memory.

The event goes to the daemon; where none takes it in time it is spooled: a file of mode 0600 in a folder of mode 0700,
complete or not there at all. The next hook that finds a daemon delivers it, or the daemon when it starts, each as the
device whose hook it was. An event has its id before it is sent, so that one delivered twice is one event.

Nothing but the standard library is imported here, and little of that: a host waits for this process at every turn.
"""

from __future__ import annotations

import os
import select
import sys
import time
from errno import ELOOP, ENXIO

try:
    # `socket` makes enumerations of its constants, for which it loads half of what a hook's start would take.
    import _socket
except ImportError:
    import socket as _socket  # type: ignore[no-redef]

from beetle.lean_json import dumps, loads
from beetle.packed import pack, unpack
from beetle.spool import SPOOL_FILE_BYTES, Outcome, own_content, save, spool_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
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
AUTH_BYTES = 4096
ANSWER_BYTES = 256 * 1024
LINKS = 8
"""So many identities have a connection at once while the spool is drained."""
NO_RECORD = "no record of a hook"
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
PASSING = (
    "store_budget_exceeded", "storage_full", "store_read_only", "store_corrupt", "schema_mismatch",
    "services_unavailable",
)  # fmt: skip
"""Errors of the daemon's state, beside those that say they are retryable: each event meets them until it passes."""
DOUBTFUL = ("integrity_violation", "internal")
"""Errors that one event meets, and perhaps no longer once the store is mended: it waits, and holds up no other."""
CLOSING = ("invalid_frame", "payload_too_large")
"""Errors behind which a daemon may close the connection."""
NAMED_BY = ("device_id", "principal")
"""What of credentials is no secret, and says whose they are."""


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
    auth, identity = None, None
    if "--auth-file" in given:
        path = os.path.abspath(given["--auth-file"])
        auth = _auth(path)
        identity = _identity(path, auth)
    told = {"scope": scope, "sockets": sockets, "identity": identity}
    patience = os.environ.get("BEETLE_HOOK_MS", "")
    link = Link.first(sockets, auth, (int(patience) if patience.isdecimal() else TALK_MS) / 1000)
    spool = spool_folder(os.environ)
    try:
        asked = link
        for request in requests_of(found):
            if not _hand_on({**request, **told}, asked, spool):
                asked = None
        if asked is not None:
            _drain(spool, asked)
    finally:
        if link is not None:
            link.close()


def _hand_on(record: Mapping[str, Any], link: Link | None, spool: str) -> bool:
    """Deliver a record or keep it; false where the daemon is to be asked no more."""
    key = None if link is None else link.deliver(record)
    if key == "":
        return True
    refused = key is not None and key not in DOUBTFUL
    try:
        folder = save(spool, dumps(record, ensure_ascii=True).encode(), refused=refused)
    except OSError as error:
        sys.stderr.write(f"beetle: the hook was not captured ({key or 'no daemon took it'}): {error}\n")
    else:
        if refused:
            sys.stderr.write(f"beetle: the daemon refused the hook ({key}), which is kept in {folder}\n")
    return key is not None


def _drain(spool: str, link: Link) -> None:
    try:
        told = drain(spool, link, DRAIN_S).told()
    except OSError as error:
        told = str(error)
    if told:
        sys.stderr.write(f"beetle: {told}\n")


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


def _auth(path: str) -> dict[str, str]:
    """The credentials in a file that only this user may read.

    Raises:
        OSError: it cannot be read.
        ValueError: it is no such file; nothing of what stands in it is told.
    """
    data = own_content(path, AUTH_BYTES, hidden_from=0o077)
    try:
        found = loads(data)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or not all(isinstance(each, str) for each in found.values()):
        raise ValueError(f"{path!r} does not hold credentials in JSON")
    return found


def _identity(path: str, auth: Mapping[str, str]) -> dict[str, str]:
    """What a record says of whose it is: the file of the credentials and whose they are, not the key."""
    return {"auth_file": path, **{name: auth[name] for name in NAMED_BY if name in auth}}


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
    """A connection to a daemon, which is given little time, under one identity."""

    def __init__(self, path: str, auth: dict[str, str] | None, seconds: float) -> None:
        self.path = path
        self.auth = auth
        self._seconds = seconds
        self._connection: _socket.socket | None = None
        self._sent = 0

    @classmethod
    def first(cls, sockets: Sequence[str], auth: dict[str, str] | None, seconds: float) -> Link | None:
        """To the first of these sockets at which somebody listens; None where nobody does.

        Args:
            seconds: how long each answer may take.
        """
        for path in sockets:
            link = cls(path, auth, seconds)
            try:
                link._connected()
            except OSError:
                continue
            return link
        return None

    def beside(self, auth: dict[str, str] | None) -> Link:
        """One to the same daemon for another identity, which connects when something is to be delivered."""
        return Link(self.path, auth, self._seconds)

    def _connected(self) -> _socket.socket:
        if self._connection is None:
            connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM | _socket.SOCK_CLOEXEC)
            try:
                connection.settimeout(self._seconds)
                connection.connect(self.path)
            except OSError:
                connection.close()
                raise
            self._connection = connection
        return self._connection

    def deliver(self, record: Mapping[str, Any]) -> str | None:
        """Nothing ("") when a record was taken, else the key of the error that another delivery meets again; None when
        the daemon did not say in time, or refuses all for now, and is to be asked no more.
        """
        self._sent += 1
        frame = {"v": 1, "id": self._sent, "op": record["op"], "args": record["args"]}
        frame |= {"scope": record["scope"]} if record.get("scope") else {}
        frame |= {"auth": self.auth} if self.auth is not None else {}
        try:
            data = pack(frame)
        except (ValueError, RecursionError):
            return "invalid_frame"
        try:
            answer = self._asked(data)
        except OSError:
            return None
        if answer.get("ok"):
            return ""
        error = answer.get("error") or {}
        key = error.get("key")
        if key in CLOSING:
            self.close()
        return None if not key or error.get("retryable") or key in PASSING else str(key)

    def _asked(self, data: bytes) -> dict[str, Any]:
        connection = self._connected()
        try:
            connection.sendall(data)
        except ConnectionError:
            # What it said before it hung up is still there to be read.
            if not (answer := self._answer(connection)):
                raise
            return answer
        return self._answer(connection)

    @staticmethod
    def _answer(connection: _socket.socket) -> dict[str, Any]:
        data = b""
        while len(data) < ANSWER_BYTES:
            chunk = connection.recv(1 << 16)
            if not chunk:
                break
            data += chunk
            found = unpack(data)
            if isinstance(found, dict):
                return found
        return {}

    def close(self) -> None:
        """It connects again where something is delivered through it after all."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def drain(folder: str, link: Link, seconds: float) -> Outcome:
    """Deliver what waits for the daemon at the other end of a link, the oldest first, each as whose it is.

    Raises:
        OSError: the spool cannot be read.
    """
    ends, one = time.monotonic() + seconds, Drain(Outcome(folder), link)
    try:
        for name in one.outcome.waiting():
            if time.monotonic() > ends or not one.goes_on_after(name):
                break
    finally:
        one.close()
    return one.outcome


class Drain:
    """The identities of what waits: their credentials, and a connection for each."""

    def __init__(self, outcome: Outcome, link: Link) -> None:
        self.outcome = outcome
        self._links = [link]
        self._auths: dict[str, dict[str, str] | str] = {}

    def goes_on_after(self, name: str) -> bool:
        """Deliver the record in one file; false where the daemon is to be asked no more."""
        try:
            record = _read(os.path.join(self.outcome.folder, name))
        except FileNotFoundError:
            return True  # another hook delivered it at the same time
        except OSError as error:
            self.outcome.leave(name, error.strerror or str(error))
            return True
        except ValueError as error:
            self.outcome.put_aside(name, str(error))
            return True
        if self._links[0].path not in record["sockets"]:
            self.outcome.hold(name)
            return True
        auth = self._auth_of(record["identity"])
        if isinstance(auth, str):
            self.outcome.leave(name, auth)
        elif auth is not None and _identity(record["identity"]["auth_file"], auth) != record["identity"]:
            self.outcome.put_aside(name, f"{record['identity']['auth_file']!r} is of another device now")
        else:
            return self._deliver(name, record, auth)
        return True

    def _deliver(self, name: str, record: Mapping[str, Any], auth: dict[str, str] | None) -> bool:
        key = self._link_of(auth).deliver(record)
        if key is None:
            return False
        if key in DOUBTFUL:
            self.outcome.leave(name, key)
        elif key:
            self.outcome.put_aside(name, key)
        else:
            self.outcome.remove(name)
        return True

    def _auth_of(self, identity: Mapping[str, str] | None) -> dict[str, str] | str | None:
        """The credentials of a record, or why they cannot be had."""
        if identity is None:
            return None
        path = identity["auth_file"]
        if path not in self._auths:
            try:
                self._auths[path] = _auth(path)
            except (OSError, ValueError) as error:
                self._auths[path] = str(error)
        return self._auths[path]

    def _link_of(self, auth: dict[str, str] | None) -> Link:
        for link in self._links:
            if link.auth == auth:
                return link
        if len(self._links) > LINKS:
            self._links.pop(1).close()
        self._links.append(self._links[0].beside(auth))
        return self._links[-1]

    def close(self) -> None:
        """Close the connections that were made for it."""
        for link in self._links[1:]:
            link.close()


def _read(place: str) -> dict[str, Any]:
    """A record of this user's own.

    Raises:
        OSError: it cannot be read now, or is gone.
        ValueError: it is no record, or does not say whose it is.
    """
    found = None
    try:
        found = loads(own_content(place, SPOOL_FILE_BYTES, flags=os.O_NOFOLLOW))
    except OSError as error:
        if error.errno not in (ELOOP, ENXIO):  # a link, a socket
            raise
    except (ValueError, RecursionError):
        pass
    if not isinstance(found, dict) or not isinstance(found.get("args"), dict):
        raise ValueError(NO_RECORD)
    sockets = found.get("sockets")
    shaped = isinstance(sockets, list) and all(isinstance(each, str) for each in sockets)
    if not shaped or found.get("op") not in ("event.ingest", "turn.capture"):
        raise ValueError(NO_RECORD)
    if "identity" not in found:
        raise ValueError("no word of whose it is, as earlier builds wrote it")
    identity = found["identity"]
    texts = isinstance(identity, dict) and all(isinstance(each, str) for each in identity.values())
    if identity is not None and not (texts and os.path.isabs(identity.get("auth_file", ""))):
        raise ValueError(NO_RECORD)
    return found
