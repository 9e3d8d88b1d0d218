"""Writes the generated pages of docs/ from the tables of the code: operations.md, errors.md, profiles.md.

`python packaging/gen_reference.py` writes them; with `--check` it writes nothing, prints a diff of every page that is
stale and exits with 1.
"""

from __future__ import annotations

import difflib
import sys
import types
import typing
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import msgspec  # noqa: E402 - the checkout comes first
from msgspec import NODEFAULT, Meta, Struct  # noqa: E402
from msgspec.structs import fields as struct_fields  # noqa: E402

from beetle.contracts.envelope import DeviceAuth, WireAnswer, WireError, WireEvent, WireRequest  # noqa: E402
from beetle.contracts.errors import ERRORS, STATUS  # noqa: E402
from beetle.contracts.fields import NO_CONTROL  # noqa: E402
from beetle.contracts.methods import OperationMethods  # noqa: E402
from beetle.contracts.operations import EVERYWHERE, OPERATIONS, Operation  # noqa: E402
from beetle.runtime.profile import ALIASES, Budgets, load_profile  # noqa: E402
from beetle.transports.cli.commands import COMMANDS  # noqa: E402

DOCS = ROOT / "docs"
NOTE = "<!-- Written by packaging/gen_reference.py from the code. Change the code, then run it again. -->\n"
SIMPLE: Mapping[Any, str] = {
    str: "text", int: "integer", float: "number", bool: "boolean", datetime: "time", bytes: "binary",
    msgspec.Raw: "map", Any: "any",
}  # fmt: skip
PATTERNS: Mapping[str, str] = {
    NO_CONTROL: "no control characters",
    r"\S": "not blank",
    r"^[^\x00-\x1f\x7f-\x9f/]*\Z": "no control characters, no slash",
    r"^[a-z0-9][a-z0-9_-]*\Z": "small letters, digits, dashes",
    r"^/[^\x00]*\Z": "an absolute path",
}
"""Patterns of the contracts, in words."""

BUDGET_MEANINGS: Mapping[str, tuple[str, str]] = {
    "frame_bytes": ("bytes of one frame on the socket", "refuses: `payload_too_large`, and closes the connection"),
    "nesting": ("levels of maps and lists in a frame", "refuses: `payload_too_large`, and closes the connection"),
    "query_chars": ("characters of a query", "refuses: `payload_too_large`"),
    "message_content_bytes": ("UTF-8 bytes of a message's content or an attr's value", "refuses: `payload_too_large`"),
    "skill_text_bytes": ("UTF-8 bytes of a skill's procedure", "refuses: `payload_too_large`"),
    "key_bytes": ("bytes of an idempotency key", "refuses: `invalid_request`"),
    "commit_turns": ("turns of one commit, turn ids of one lifecycle step", "refuses: `payload_too_large`"),
    "batch_requests": ("requests of a batch, skills of one write", "refuses: `payload_too_large`"),
    "recall_limit": ("hits of recall and search", "clips `limit`"),
    "page_limit": ("entries of a page of a list", "clips `limit`"),
    "transcript_page_turns": ("turns of a page of replay or timeline", "clips `limit`"),
    "projection_chars": ("characters of a projection", "clips `system_max_len`"),
    "host_refs_per_turn": ("host refs of one turn", "refuses: `payload_too_large`"),
    "redaction_items": ("entries of a list of redactions or host refs", "clips the list, never the redacting"),
    "derived_refs": ("derived refs in a lifecycle report", "clips the list"),
    "repair_issues": ("issues in a repair report", ""),
    "store_bytes": ("bytes of the store's ceiling", "refuses writes that grow: `store_budget_exceeded`"),
    "wal_bytes": ("bytes from which the write-ahead log is cut", "begins a checkpoint at half of it"),
    "page_cache_kib": ("KiB of page cache of each connection to the store", "bounds memory"),
    "mmap_bytes": ("bytes of the store that are mapped into memory", "bounds memory"),
    "readers": ("reading connections to the store", "reads wait; then `overloaded`"),
    "write_queue": ("writes that wait", "refuses: `overloaded`"),
    "write_group": ("writes that share one commit", "the rest waits for the next commit"),
    "connections": ("connections to the socket", "refuses: `overloaded`, and closes the connection"),
    "subscription_events": ("events that wait for one subscriber", "drops, and says how many"),
    "idempotency_keys": ("first reports that are kept", "forgets the oldest"),
    "agent_skill_depth": ("levels of folders within an Agent Skill", "leaves the fingerprint out, with a finding"),
    "agent_skill_count": ("Agent Skills in all mounts", "leaves the others out, with a finding"),
    "agent_skill_bytes": (
        "bytes read for the fingerprints of a page of Agent Skills", "leaves the fingerprint out, with a finding"
    ),
    "deferred_days": ("days for which a deferred candidate waits", "drops it, with an event"),
    "import_bytes": ("bytes of an import", ""),
    "export_bytes": ("bytes of an export", ""),
    "background_share_percent": ("percent of the processor for background work", ""),
    "first_frame_seconds": ("seconds until a new connection has sent a frame", "closes the connection"),
    "begun_frame_seconds": ("seconds until a begun frame is complete", "closes the connection"),
    "default_deadline_ms": ("milliseconds of a request without a deadline, and of any request at most",
                            "`deadline_exceeded`, `overloaded`"),
}  # fmt: skip
"""Budget to what it counts and what reaching it does; an empty second text means that nothing here meets it yet."""


class Kind(NamedTuple):
    """What an annotation says, for a table."""

    text: str
    bounds: tuple[str, ...] = ()
    description: str = ""
    sensitivity: str = ""
    structs: tuple[type[Struct], ...] = ()


def read_kind(hint: Any) -> Kind:
    """The annotation in words, with the structs that it names."""
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        return _marked(read_kind(parts[0]), [mark for mark in parts[1:] if isinstance(mark, Meta)])
    if origin is Literal:
        return Kind(" or ".join(f"`{part}`" for part in parts))
    if origin in (typing.Union, types.UnionType):
        return _union(parts)
    if origin is tuple:
        inner = read_kind(parts[0])
        each = tuple(f"each: {bound}" for bound in inner.bounds)
        return Kind(f"list of {inner.text}", each, inner.description, inner.sensitivity, inner.structs)
    if origin is dict:
        inner = read_kind(parts[1])
        return Kind(f"map of text to {inner.text}", structs=inner.structs)
    if isinstance(hint, type) and issubclass(hint, Struct):
        return Kind(f"[{hint.__name__}](#{hint.__name__.lower()})", structs=(hint,))
    return Kind(SIMPLE[hint])


def _union(parts: tuple[Any, ...]) -> Kind:
    absent = msgspec.UnsetType in parts
    kinds = [read_kind(part) for part in parts if part not in (type(None), msgspec.UnsetType)]
    text = " or ".join(kind.text for kind in kinds)
    text += " or null" if type(None) in parts else ""
    first = next((kind for kind in kinds if kind.bounds or kind.description or kind.sensitivity), kinds[0])
    structs = tuple(struct for kind in kinds for struct in kind.structs)
    return first._replace(text=text + (", may be absent" if absent else ""), structs=structs)


def _marked(kind: Kind, marks: list[Meta]) -> Kind:
    bounds = list(kind.bounds)
    description, sensitivity = kind.description, kind.sensitivity
    for mark in marks:
        bounds += _bounds(mark, "items" if kind.text.startswith("list") else "characters")
        description = mark.description or description
        sensitivity = (mark.extra or {}).get("sensitivity", sensitivity)
    return kind._replace(bounds=tuple(bounds), description=description, sensitivity=sensitivity)


def _bounds(mark: Meta, unit: str) -> Iterator[str]:
    for value, words in ((mark.ge, "at least"), (mark.le, "at most")):
        if value is not None:
            yield f"{words} {value:,}"
    if mark.min_length is not None:
        yield f"at least {mark.min_length:,} {unit[:-1] if mark.min_length == 1 else unit}"
    if mark.max_length is not None:
        yield f"at most {mark.max_length:,} {unit}"
    if mark.pattern is not None:
        yield PATTERNS[mark.pattern]
    extra = mark.extra or {}
    if "budget" in extra:
        yield f"at most [`{extra['budget']}`](profiles.md#budgets)"
    if "clip" in extra:
        yield f"clipped at [`{extra['clip']}`](profiles.md#budgets)"


def _plain(text: str) -> str:
    """A docstring's text on one line, fit for a table."""
    return " ".join(text.split()).replace("|", "\\|")


def _doc(kind: type) -> str:
    """The docstring of a class itself, not an inherited one and not what a library makes up."""
    return " ".join((kind.__dict__.get("__doc__") or "").split())


def _first_sentence(kind: type) -> str:
    text = _doc(kind).partition(". ")[0].removesuffix(".")
    return text[:1].lower() + text[1:]


def _default(field: msgspec.structs.FieldInfo) -> str:
    if field.required:
        return "required"
    value = field.default if field.default is not NODEFAULT else field.default_factory()
    if isinstance(value, Struct):
        given = {name: getattr(value, name) for name in value.__struct_fields__}
        return "`{}`" if not any(given.values()) else f"`{{{_fields_text(value)}}}`"
    shown = {"None": "null", "True": "true", "False": "false", "()": "[]"}
    text = "{}" if isinstance(value, msgspec.Raw) else str(value)
    if isinstance(value, tuple) and value:
        text = "[" + ", ".join(map(str, value)) + "]"
    return "empty" if value == "" else f"`{shown.get(text, text)}`"


def _fields_text(value: Struct) -> str:
    given = ((name, getattr(value, name)) for name in value.__struct_fields__)
    return ", ".join(f"{name}: {found}" for name, found in given if found is not None)


def request_rows(kind: type[Struct]) -> tuple[list[str], list[type[Struct]]]:
    """The table of a request's fields, and the structs that it names."""
    lines = ["| field | type | default | bounds | meaning |", "|---|---|---|---|---|"]
    named: list[type[Struct]] = []
    tag, value = kind.__struct_config__.tag_field, kind.__struct_config__.tag
    if value is not None:
        lines.append(f"| `{tag}` | `{value}` | required | | which kind of write |")
    for field in struct_fields(kind):
        found = read_kind(field.type)
        named.extend(found.structs)
        bounds = "; ".join(dict.fromkeys(found.bounds))
        meaning = _plain(found.description or next(map(_first_sentence, found.structs), ""))
        lines.append(f"| `{field.encode_name}` | {found.text} | {_default(field)} | {bounds} | {meaning} |")
    return lines, named


def report_rows(kind: type[Struct]) -> tuple[list[str], list[type[Struct]]]:
    """The table of a report's fields, and the structs that it names."""
    lines = ["| field | type | sensitivity |", "|---|---|---|"]
    named: list[type[Struct]] = []
    for field in struct_fields(kind):
        found = read_kind(field.type)
        named.extend(found.structs)
        lines.append(f"| `{field.encode_name}` | {found.text} | {found.sensitivity} |")
    return lines, named


def operation_text(row: Operation, parts: dict[str, type[Struct]]) -> list[str]:
    """One operation's section; the structs that it names are added to `parts`."""
    method = getattr(OperationMethods, row.method, None)
    name = f"`{row.method}(…)`: {_plain(method.__doc__ or '')}" if method else f"`Client.{row.method}(…)`"
    if method is None and row.name == "unsubscribe":
        name = "none: closing the iterator of `Client.subscribe` ends its connection"
    facts = {
        "SDK method": name,
        "Effect": row.effect
        + ("" if row.grows or row.effect != "write" else ", also when the store is at its ceiling"),
        "Capability": f"`{row.capability}`" if row.capability else "none: every known caller may",
        "Served": "everywhere" if row.exposed == EVERYWHERE else ", ".join(sorted(row.exposed)),
        "In a batch": "yes" if row.batch else "no",
        "Seen through": _view_of(row),
        "Command": f"`beetle {' '.join(row.cli)}`" if row.cli else "none" if row.effect == "stream" else _called(row),
    }
    lines = [f"## {row.name}", "", _doc(row.kinds[0]), "", "| | |", "|---|---|"]
    lines += [f"| {key} | {value} |" for key, value in facts.items()]
    named: list[type[Struct]] = []
    for kind in row.kinds:
        rows, found = request_rows(kind)
        named += found
        title = "Request:" if len(row.kinds) == 1 else f"Request of kind `{kind.__struct_config__.tag}`: {_doc(kind)}"
        lines += ["", title, "", *rows] if len(rows) > 2 else ["", "Request: no fields."]
    report, more = report_rows(row.report)
    lines += ["", f"Report: `{row.report.__name__}`. {_doc(row.report)}".rstrip(), "", *report, ""]
    parts.update({struct.__name__: struct for struct in (*named, *more)})
    return lines


def _view_of(row: Operation) -> str:
    if row.name == "batch":
        return "each request as it would be alone"
    if row.effect == "stream":
        return "no view: events hold ids and kinds"
    if row.view == "model":
        return "model_context, whoever asks"
    if "view" in row.kinds[0].__struct_fields__:
        return "the `view` that the request names, which the caller must be allowed"
    return "the caller's first view"


def _called(row: Operation) -> str:
    return f"`beetle call {row.name}`"


def part_texts(parts: dict[str, type[Struct]]) -> list[str]:
    """Sections of the structs that requests and reports are made of, those they name in turn included."""
    done: dict[str, list[str]] = {}
    waiting = dict(parts)
    while waiting:
        name, kind = waiting.popitem()
        asked = bool(kind.__struct_config__.forbid_unknown_fields)
        rows, named = request_rows(kind) if asked else report_rows(kind)
        text = _doc(kind)
        done[name] = [f"### {name}", "", *([text, ""] if text else []), *rows, ""]
        waiting.update({each.__name__: each for each in named if each.__name__ not in done})
    return [line for name in sorted(done) for line in done[name]]


OPERATIONS_HEAD = """\
# Operations

Every operation of this build, in the order of the table that the socket, the command line and the SDK are made from
(`beetle/contracts/operations.py`).

* A **time** is RFC 3339 with a zone; answers are in UTC. Over the socket it is a text.
* **effect**: `read` changes nothing; `write` is acknowledged when it is on disk; `stream` needs a connection.
* **capability**: what a caller must have been granted. See [configuration](configuration.md#principals).
* **bounds** that name a budget depend on the profile: see [profiles](profiles.md). Over such a bound a request is
  refused with `payload_too_large`; a number that is *clipped* is lowered, and the report says `profile_budget_applied`.
* **sensitivity** says who sees a field: `open`, every caller of the operation; `content`, every view but
  operator_audit; `evidence`, decided by the `visibility` and `state` beside it; `operator`, operators alone; `secret`,
  only the first answer. See [views](views.md).
* An unknown field is refused in a request. A client reads past fields of a report that it does not know.
"""


def operations_page() -> str:
    """docs/operations.md."""
    index = ["| operation | effect | capability | SDK method | command |", "|---|---|---|---|---|"]
    for row in OPERATIONS:
        words = f"`{' '.join(row.cli)}`" if row.cli else ""
        anchor = row.name.replace(".", "")
        index.append(f"| [{row.name}](#{anchor}) | {row.effect} | {row.capability} | `{row.method}` | {words} |")
    parts: dict[str, type[Struct]] = {}
    sections = [line for row in OPERATIONS for line in operation_text(row, parts)]
    wire = {kind.__name__: kind for kind in (WireRequest, WireAnswer, WireError, WireEvent, DeviceAuth)}
    own = ["| command | does |", "|---|---|"]
    own += [f"| `beetle {each.name}` | {_plain(each.help)} |" for each in COMMANDS.values()]
    lines = [NOTE, OPERATIONS_HEAD, *index, "", *sections, "## Parts of requests and reports", ""]
    lines += part_texts({k: v for k, v in parts.items() if k not in wire})
    lines += [
        "## Commands",
        "",
        "Every command of the command line. `beetle COMMAND --help` lists its options.",
        "",
        *own,
    ]
    return "\n".join(lines) + "\n"


ERRORS_HEAD = """\
# Errors

An error has a `key`, a `message`, a `hint` (what to do, or empty), `retryable`, and `details` (a map of ids, kinds and
numbers). A message never holds stored content. `InvalidRequest` and its like are classes of
`beetle.contracts.errors`; in Python they are raised, over the socket they are the `error` of an answer.

The command line prints `beetle: KEY: message` to stderr, the hint on the next line, and ends with the exit code.
Messages, hints and texts in `details` have at most 600 characters.
"""

COMMAND_CODES = """\
## Exit codes of the command line

| code | when |
|---|---|
| 0 | done |
| 1 | `internal`; `doctor` with warnings; an error of the system that has no key |
| 2 to 9 | the error's, as above; 2 also when no command was given |
| 3 | also `status` when no daemon runs |
| 4 | also `platform capability-snapshot --check` when the file differs |
| 9 | also `verify` when it found something |
| 130 | interrupted from the keyboard |
| 141 | whoever read the output closed the pipe |
"""


def errors_page() -> str:
    """docs/errors.md."""
    lines = [NOTE, ERRORS_HEAD, "| key | exit | HTTP | gRPC | retryable |", "|---|---|---|---|---|"]
    for key, kind in ERRORS.items():
        status = STATUS[key]
        again = "yes" if kind.retryable else "no"
        lines.append(f"| [`{key}`](#{key}) | {status.exit_code} | {status.http} | {status.grpc} | {again} |")
    lines += ["", "Keys that have a place in the table, and that no operation of this build answers:", ""]
    lines += ["| key | exit | HTTP | gRPC |", "|---|---|---|---|"]
    for key, status in STATUS.items():
        if key not in ERRORS:
            lines.append(f"| `{key}` | {status.exit_code} | {status.http} | {status.grpc} |")
    lines += [
        "",
        "The command line itself says `services_unavailable` when no daemon answers where one was expected.",
        "",
    ]
    for key, kind in ERRORS.items():
        text = _doc(kind)
        lines += [f"## {key}", "", f"Class `{kind.__name__}`. {text}".rstrip(), ""]
        lines += [f"* Message: `{kind.template}`"]
        lines += [f"* Hint: {_code(kind.hint_template)}" if kind.hint_template else "* Hint: none of its own", ""]
    return "\n".join([*lines, COMMAND_CODES])


def _code(text: str) -> str:
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def profiles_page() -> str:
    """docs/profiles.md."""
    profiles = {alias: load_profile(alias) for alias in ALIASES}
    head = "| | " + " | ".join(profiles) + " |"
    rule = "|---" * (len(profiles) + 1) + "|"
    lines = [NOTE, PROFILES_HEAD, "| alias | name | for |", "|---|---|---|"]
    lines += [f"| {alias} | `{each.name}` | {each.description} |" for alias, each in profiles.items()]
    lines += ["", head, rule]
    for title, read in (
        ("memory ceiling, MiB", lambda each: f"{each.memory_ceiling_mib:,}"),
        ("default backend", lambda each: each.backends.default),
        ("backends", lambda each: ", ".join(each.backends.allowed)),
        ("transports", lambda each: ", ".join(each.transports.allowed)),
    ):
        lines.append(f"| {title} | " + " | ".join(read(each) for each in profiles.values()) + " |")
    lines += ["", "## Budgets", "", head, rule]
    for name in Budgets.__struct_fields__:
        values = " | ".join(f"{getattr(each.budgets, name):,}" for each in profiles.values())
        lines.append(f"| `{name}` | {values} |")
    lines += [
        "",
        "What each budget counts, and what happens where it is reached:",
        "",
        "| budget | counts | then |",
        "|---|---|---|",
    ]
    for name in Budgets.__struct_fields__:
        counts, then = BUDGET_MEANINGS[name]
        lines.append(f"| `{name}` | {counts} | {then or 'no operation of this build meets it'} |")
    lines += ["", "## Capabilities", "", head, rule]
    for name in dict.fromkeys(name for each in profiles.values() for name in each.capabilities.allowed):
        allowed = " | ".join("yes" if name in each.capabilities.allowed else "no" for each in profiles.values())
        lines.append(f"| `{name}` | {allowed} |")
    return "\n".join([*lines, "", PROFILES_TAIL])


PROFILES_HEAD = """\
# Profiles

A profile is the budgets and permissions of one kind of machine: a TOML file in `profiles/`. `--profile` takes an alias,
a full name, a path with a slash in it, or `auto` (the default), which picks the largest of compact, standalone, desktop
and gateway that the machine fits and says why. dev-full is never picked by itself.

A store does not know its profile: the same store can be opened with another one later.
"""

PROFILES_TAIL = """\
A capability that the profile leaves out, or that no operation of this build asks for, is hidden: an operation that
needs it answers `capability_hidden`. `memory.capabilities` lists which operations each one opens. `transcript.raw`,
`private.read` and `admin` are never hidden by a profile: only a grant opens them.
"""

PAGES: Mapping[str, Any] = {
    "operations.md": operations_page,
    "errors.md": errors_page,
    "profiles.md": profiles_page,
}


def stale() -> dict[str, str]:
    """Page to the difference between what is there and what should be."""
    found: dict[str, str] = {}
    for name, make in PAGES.items():
        file = DOCS / name
        before = file.read_text(encoding="utf-8") if file.exists() else ""
        after = make()
        if before != after:
            lines = difflib.unified_diff(
                before.splitlines(), after.splitlines(), f"docs/{name}", f"docs/{name} (from the code)", lineterm=""
            )
            found[name] = "\n".join(lines)
    return found


def main(arguments: list[str]) -> int:
    """Write the pages, or with `--check` compare them."""
    if arguments not in ([], ["--check"]):
        print("usage: gen_reference.py [--check]", file=sys.stderr)
        return 2
    if arguments:
        differences = stale()
        for text in differences.values():
            print(text)
        return 1 if differences else 0
    DOCS.mkdir(exist_ok=True)
    for name, make in PAGES.items():
        (DOCS / name).write_text(make(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
