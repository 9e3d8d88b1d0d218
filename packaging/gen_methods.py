"""Writes beetle/contracts/methods.py and async_methods.py: a typed method for every row of the table of operations. See
gen_reference.py."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
import types
import typing
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from field_words import default, doc, first_sentence, read_kind
from msgspec import NODEFAULT, Meta, Struct
from msgspec.structs import FieldInfo
from msgspec.structs import fields as struct_fields

from beetle.contracts import names
from beetle.contracts.operations import OPERATIONS, Operation

FILE = Path(__file__).resolve().parents[1] / "beetle/contracts/methods.py"
ASYNC_FILE = FILE.with_name("async_methods.py")
HEAD = '''\
"""{title}

Written by packaging/gen_reference.py from the table. Change the table, then run it again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, cast

from beetle.contracts.arguments import given_arguments

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime
    from typing import Literal, overload

{imports}
{count}

class {name}(ABC):
    """Each method takes a request struct, or the request's fields as keyword arguments, of which one, mostly the
    first, may be given without its name; a struct in a field may be a mapping of its own fields.

    Every method raises the errors of `beetle.contracts.errors`.
    """

    @abstractmethod
    {async_}def call(
        self,
        operation: str,
        arguments: Any = None,
        *,
        scope: WireScope | None = None,
        idempotency_key: str | None = None,
        deadline_ms: int | None = None,
        on_progress: OnProgress | None = None,
    ) -> Report:
        """Run any operation by its name; `arguments` is a request struct or a mapping of its fields.

        Args:
            scope: where to work; the runtime's or client's own when left out.
            idempotency_key: the same key with the same request answers the first report again.
            deadline_ms: give up when the work has not begun by then.
            on_progress: called with the progress of an operation that takes long, while it runs.
        """

    {async_}def _ask(self, operation: str, first: str, given: Any, fields: dict[str, Any]) -> Any:
        return {await_}self.call(operation, given_arguments(first, given, fields))

    {async_}def note(
        self,
        text: str,
        *,
        conversation: Conversation | str | None = None,
        role: Role = "user",
        speaker: str | None = None,
        visibility: Visibility = "shared",
    ) -> MemoryTranscriptCommitReport:
        """Commit one turn with one message as evidence: `commit_transcript` with ids and a time made here.

        Args:
            text: the message, stored unchanged.
            conversation: the conversation or its id; one for each day (UTC) when left out.
            role: role of the sender in the conversation.
            speaker: display name of the speaker.
            visibility: visibility of the content.

        Returns:
            The one turn under `turns`, with its id and sequence.

        Raises:
            As `commit_transcript`.
        """
        from beetle.contracts.noting import note_request

        given = {"role": role, "visibility": visibility, "speaker": speaker}
        arguments = note_request(text, conversation, given)
        return cast("MemoryTranscriptCommitReport", {await_}self.call("transcript.commit", arguments))
'''
SESSION_HEAD = '''

class {session}({name}, ABC):
    """The methods of one conversation: it may be left out where a request needs one."""

'''
COUNT = '''
OPERATION_COUNT = {count}
"""Rows of the table when this was written: a build that lost some of them would not notice by itself."""

'''
CONVERSATION = "conversation"
"""The field that a session fills in."""
SCALARS: dict[Any, str] = {
    str: "str", int: "int", float: "float", bool: "bool", bytes: "bytes", datetime: "datetime | str",
    msgspec.Raw: "Any", Any: "Any", type(None): "None",
}  # fmt: skip
SETS = {
    typing.get_args(value): name
    for name, value in vars(names).items()
    if name.endswith("Name") and typing.get_origin(value) is Literal
}
"""Sets of names that have a name themselves."""


PYTHON = {"null": "None", "true": "True", "false": "False", "[]": "()"}


class _Types:
    """Types as source text, and the names that they need."""

    def __init__(self) -> None:
        self.used: dict[str, str] = {
            "Report": "beetle.contracts.common", "WireScope": "beetle.contracts.common",
            "OnProgress": "beetle.contracts.progress", "Conversation": "beetle.contracts.common",
            "Visibility": "beetle.contracts.fields", "Role": "beetle.contracts.turns",
        }  # fmt: skip

    def of(self, hint: Any) -> str:
        origin, parts = typing.get_origin(hint), typing.get_args(hint)
        if origin is Annotated:
            return self.of(parts[0])
        if origin is Literal:
            return self._literal(parts)
        if origin in (typing.Union, types.UnionType):
            each = dict.fromkeys(self.of(part) for part in parts if part is not msgspec.UnsetType)
            return " | ".join(each)
        if origin is tuple:
            return f"Sequence[{self.of(parts[0])}]"
        if origin is dict:
            return f"Mapping[str, {self.of(parts[1])}]"
        if isinstance(hint, type) and issubclass(hint, Struct):
            return f"{self.struct(hint)} | Mapping[str, Any]"
        return SCALARS[hint]

    def struct(self, kind: type[Struct]) -> str:
        if self.used.setdefault(kind.__name__, kind.__module__) != kind.__module__:
            raise ValueError(f"two structs are called {kind.__name__}")
        return kind.__name__

    def _literal(self, parts: tuple[Any, ...]) -> str:
        if (name := SETS.get(parts)) is not None:
            self.used[name] = names.__name__
            return name
        return "Literal[" + ", ".join(f'"{part}"' for part in parts) + "]"

    def imports(self) -> Iterator[str]:
        for module in sorted(set(self.used.values())):
            named = sorted(name for name, where in self.used.items() if where == module)
            yield f"    from {module} import {', '.join(named)}"


class _Kind(typing.NamedTuple):
    """Methods that block, or coroutines."""

    file: Path
    title: str
    name: str
    session: str
    async_: str = ""
    await_: str = ""

    def head(self, text: str) -> str:
        for field in ("title", "name", "session", "async_", "await_"):
            text = text.replace(f"{{{field}}}", getattr(self, field))
        return text


BLOCKING = _Kind(
    FILE,
    "One typed method per row of the table of operations, for every kind of caller: in process and over the socket.",
    "OperationMethods",
    "SessionMethods",
)
ASYNC = _Kind(
    ASYNC_FILE,
    "The methods of methods.py as coroutines.",
    "AsyncOperationMethods",
    "AsyncSessionMethods",
    "async ",
    "await ",
)


def methods_module(which: _Kind = BLOCKING) -> str:
    """The file's text."""
    known = _Types()
    rows = [row for row in OPERATIONS if row.effect != "stream"]
    methods = [_method(row, known, which) for row in rows]
    sessions = [_method(row, known, which, of_session=True) for row in rows if _needs_conversation(row)]
    count = COUNT.replace("{count}", str(len(OPERATIONS))) if which is BLOCKING else ""
    head = which.head(HEAD).replace("{imports}", "\n".join(known.imports())).replace("{count}", count)
    text = "\n".join((head, *methods, which.head(SESSION_HEAD), *sessions))
    command = [sys.executable, "-m", "ruff", "check", "--quiet", "--select", "I", "--fix-only", "--stdin-filename"]
    for each in (command, [sys.executable, "-m", "ruff", "format", "--quiet", "--stdin-filename"]):
        done = subprocess.run([*each, str(which.file), "-"], input=text, capture_output=True, text=True, check=True)
        text = done.stdout
    return text


def async_methods_module() -> str:
    """The text of the file of coroutines."""
    return methods_module(ASYNC)


def _needs_conversation(row: Operation) -> bool:
    return any(each.required and each.name == CONVERSATION for kind in row.kinds for each in struct_fields(kind))


def _method(row: Operation, known: _Types, which: _Kind, *, of_session: bool = False) -> str:
    structs = " | ".join(known.struct(kind) for kind in row.kinds)
    report = known.struct(row.report)
    begin = f"{which.async_}def {row.method}(self, "
    given = [f"request: {structs}, /"]
    given += [_fields(kind, known, optional=CONVERSATION if of_session else "") for kind in row.kinds]
    first = _first(row)
    if first is not None:
        given.append(_fields(row.kinds[0], known, first))
    lines = ["    if TYPE_CHECKING:", ""]
    for each in given:
        lines += ["        @overload", f"        {begin}{each}) -> {report}: ..."]
    kinds = structs if first is None else f"{structs} | {known.of(first.type)}"
    kinds = " | ".join(dict.fromkeys(kinds.split(" | ")))
    lines += ["", f"    {begin}request: {kinds} | None = None, /, **fields: Any) -> {report}:"]
    lines += [" " * 8 + line if line else "" for line in _docstring(row, of_session=of_session)]
    asked = f'self._ask("{row.name}", "{first.encode_name if first else ""}", request, fields)'
    lines += [f"        return {which.await_}{asked}", ""]
    return "\n".join(lines)


def _first(row: Operation) -> FieldInfo | None:
    """The field that may be given without its name, of a request without kinds: the command's word, or the first."""
    fields = struct_fields(row.kinds[0])
    if len(row.kinds) > 1 or _tag(row.kinds[0]) or not fields:
        return None
    return next((each for each in fields if each.encode_name == row.word), fields[0])


def _fields(kind: type[Struct], known: _Types, first: FieldInfo | None = None, optional: str = "") -> str:
    """The keyword parameters that a request's fields make; `first` is one without its name, `optional` one that may be
    left out although the request needs it."""
    if first is not None:
        others = sorted(
            (each for each in struct_fields(kind) if each.name != first.name), key=lambda each: not each.required
        )
        named = [f"{each.encode_name}: {known.of(each.type)}{_default(each)}" for each in others]
        return f"{first.encode_name}: {known.of(first.type)}, /, " + ("*, " + ", ".join(named) + "," if named else "")
    given = [f'{kind.__struct_config__.tag_field}: Literal["{kind.__struct_config__.tag}"]'] if _tag(kind) else []
    fields = sorted(struct_fields(kind), key=lambda field: not field.required or field.name == optional)
    ends = [" = ..." if field.name == optional else _default(field) for field in fields]
    given += [f"{field.encode_name}: {known.of(field.type)}{end}" for field, end in zip(fields, ends, strict=True)]
    return "/, *, " + ", ".join(given) + "," if given else "/"


def _tag(kind: type[Struct]) -> bool:
    return kind.__struct_config__.tag is not None


def _default(field: FieldInfo) -> str:
    if field.required:
        return ""
    value = field.default
    plain = value is None or isinstance(value, (bool, int, str, float))
    return f" = {value!r}" if plain and value is not NODEFAULT else " = ..."


def _docstring(row: Operation, *, of_session: bool = False) -> Iterator[str]:
    if of_session:
        yield from textwrap.wrap(f'"""{_sentence(row.help)}; `conversation` is the session\'s when left out."""', 108)
        return
    rest = (row.kinds[0].__dict__.get("__doc__") or "").strip().partition("\n\n")[2]
    summary = textwrap.wrap(f"{_sentence(row.help)}.", 106)
    yield f'"""{summary[0]}'
    yield from summary[1:]
    for paragraph in filter(None, textwrap.dedent(rest).split("\n\n")):
        yield ""
        yield from textwrap.wrap(" ".join(paragraph.split()), 110)
    arguments = list(_arguments(row))
    if arguments:
        yield from ("", "Args:", *arguments)
    yield from ("", "Returns:", *_item(doc(row.report) or f"a {row.report.__name__}"))
    yield from ("", "Raises:", *(line for text in _errors(row) for line in _item(text)))
    yield '"""'


def _arguments(row: Operation) -> Iterator[str]:
    for kind in row.kinds:
        of = f" (`{kind.__struct_config__.tag}`)" if len(row.kinds) > 1 else ""
        if _tag(kind):
            name, tag = kind.__struct_config__.tag_field, kind.__struct_config__.tag
            yield from _item(f'{name}: "{tag}": {_sentence(doc(kind))}')
        for field in struct_fields(kind):
            yield from _item(f"{field.encode_name}{of}: {_meaning(field)}")


def _meaning(field: FieldInfo) -> str:
    found = read_kind(field.type)
    meaning = found.description or next(map(first_sentence, found.structs), "") or field.encode_name.replace("_", " ")
    bounds = [re.sub(r"\[`(\w+)`\]\([^)]*\)", r"the profile's \1", each) for each in dict.fromkeys(found.bounds)]
    value = default(field).strip("`")
    has = value if field.required else f"default {PYTHON.get(value, value)}"
    return f"{meaning} ({'; '.join((has, *bounds))})."


def _errors(row: Operation) -> Iterator[str]:
    budgets = [extra["budget"] for kind in row.kinds for extra in extras(kind) if "budget" in extra]
    yield "InvalidRequest: a field is not as it must be."
    if row.capability:
        yield f"CapabilityHidden, Forbidden: the profile hides `{row.capability}`, or the caller was not granted it."
    if budgets:
        yield f"PayloadTooLarge: over the profile's {', '.join(dict.fromkeys(budgets))}."
    if row.effect == "write" and row.grows:
        yield "StoreBudgetExceeded: the store is at its ceiling."
    if row.effect in ("write", "admin"):
        yield "StoreReadOnly, StorageFull: nothing can be written."
    yield "BeetleError: any other of `beetle.contracts.errors`."


def extras(kind: type[Struct]) -> Iterator[dict[str, Any]]:
    """What the markers of a request's fields hold besides bounds, at any depth."""
    for field in struct_fields(kind):
        yield from _extras(field.type)


def _extras(hint: Any) -> Iterator[dict[str, Any]]:
    if isinstance(hint, type) and issubclass(hint, Struct):
        yield from extras(hint)
        return
    for part in typing.get_args(hint):
        yield from _extras(part)
    for mark in getattr(hint, "__metadata__", ()):
        if isinstance(mark, Meta) and mark.extra:
            yield mark.extra


def _item(text: str) -> list[str]:
    return textwrap.wrap(" ".join(text.split()), 108, initial_indent="    ", subsequent_indent="        ")


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
