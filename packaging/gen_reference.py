"""Writes what comes out of the tables of the code: docs/operations.md, errors.md, profiles.md; contracts/methods.py;
the types of the example clients in docs/clients; profiles/beetle.toml.example.

`python packaging/gen_reference.py` writes them; with `--check` it writes nothing, prints a diff of every file that is
stale and exits with 1.
"""

from __future__ import annotations

import difflib
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "packaging")]  # the checkout comes first

from field_words import default, doc, first_sentence, plain, read_kind  # noqa: E402
from gen_clients import LANGUAGES  # noqa: E402
from gen_clients import OPERATIONS as OF_CLIENTS  # noqa: E402
from gen_config import FILE as EXAMPLE  # noqa: E402
from gen_config import example  # noqa: E402
from gen_methods import ASYNC_FILE, FILE, async_methods_module, extras, methods_module  # noqa: E402
from gen_rows import FILE as ROWS  # noqa: E402
from gen_rows import rows_module  # noqa: E402
from gen_schema import SCRIPT, schema_script  # noqa: E402
from msgspec import Meta, Struct  # noqa: E402
from msgspec.structs import fields as struct_fields  # noqa: E402

from beetle.cli.commands import COMMANDS  # noqa: E402
from beetle.contracts.envelope import DeviceAuth, WireAnswer, WireError, WireEvent, WireRequest  # noqa: E402
from beetle.contracts.errors import ERRORS, STATUS  # noqa: E402
from beetle.contracts.operations import BY_NAME, EVERYWHERE, OPERATIONS, Operation  # noqa: E402
from beetle.contracts.schema import protocol_schema  # noqa: E402
from beetle.runtime.host.profile import ALIASES, Budgets, load_profile  # noqa: E402

DOCS = ROOT / "docs"
METHODS = FILE.parent
NOTE = "<!-- Written by packaging/gen_reference.py from the code. Change the code, then run it again. -->\n"


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
        meaning = plain(found.description or next(map(first_sentence, found.structs), ""))
        lines.append(f"| `{field.encode_name}` | {found.text} | {default(field)} | {bounds} | {meaning} |")
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
    name = f"`Client.{row.method}(…)`" if row.effect == "stream" else f"`{row.method}(…)`"
    if row.name == "unsubscribe":
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
    lines = [f"## {row.name}", "", doc(row.kinds[0]), "", "| | |", "|---|---|"]
    lines += [f"| {key} | {value} |" for key, value in facts.items()]
    if row.effect != "stream":
        given = ", ".join(f"{name}={value!r}" for name, value in row.example.items())
        lines += ["", f"Example: `memory.{row.method}({given})`"]
    named: list[type[Struct]] = []
    for kind in row.kinds:
        rows, found = request_rows(kind)
        named += found
        title = "Request:" if len(row.kinds) == 1 else f"Request of kind `{kind.__struct_config__.tag}`: {doc(kind)}"
        lines += ["", title, "", *rows] if len(rows) > 2 else ["", "Request: no fields."]
    report, more = report_rows(row.report)
    lines += ["", f"Report: `{row.report.__name__}`. {doc(row.report)}".rstrip(), "", *report, ""]
    parts.update({struct.__name__: struct for struct in (*named, *more)})
    return lines


def _view_of(row: Operation) -> str:
    if row.name == "batch":
        return "each request as it would be alone"
    if row.effect == "stream":
        return "no view: events hold ids and kinds"
    if row.view == "model":
        return "model_context, for every caller"
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
        text = doc(kind)
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
    own += [f"| `beetle {each.name}` | {plain(each.help)} |" for each in COMMANDS.values()]
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

The command line prints `beetle: KEY: message` to stderr, the hint on the next line, and ends with the exit code. With
`--json` it prints `{"error": {key, message, hint, retryable, details}}` on one line instead.
Messages, hints and texts in `details` have at most 600 characters.
"""

COMMAND_CODES = """\
## Exit codes of the command line

| code | when |
|---|---|
| 0 | done |
| 1 | `internal`; a question not answered with yes; `doctor` with warnings; an error of the system that has no key |
| 2 to 9 | the error's, as above; 2 also when no command was given |
| 3 | also `status` when no daemon runs |
| 4 | also `platform capability-snapshot --check` when the file differs |
| 9 | also `verify` when it found something |
| 129, 143 | a command that had begun a file or a measurement, ended by SIGHUP or SIGTERM; it took them away |
| 130 | interrupted from the keyboard |
| 141 | the reader of the output closed the pipe |
"""


def errors_page() -> str:
    """docs/errors.md."""
    lines = [NOTE, ERRORS_HEAD, "| key | exit | HTTP | gRPC | retryable |", "|---|---|---|---|---|"]
    for key, kind in ERRORS.items():
        status = STATUS[key]
        again = "yes" if kind.retryable else "no"
        cells = f"{status.exit_code} | {status.http or '-'} | {status.grpc or '-'}"
        lines.append(f"| [`{key}`](#{key}) | {cells} | {again} |")
    lines.append("")
    for key, kind in ERRORS.items():
        text = doc(kind)
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
        "| budget | counts | then | asked of |",
        "|---|---|---|---|",
        *budget_rows(),
    ]
    lines += ["", "## Capabilities", "", head, rule]
    for name in dict.fromkeys(name for each in profiles.values() for name in each.capabilities.allowed):
        allowed = " | ".join("yes" if name in each.capabilities.allowed else "no" for each in profiles.values())
        lines.append(f"| `{name}` | {allowed} |")
    return "\n".join([*lines, "", PROFILES_TAIL, PROFILES_WEAR])


def budget_rows() -> Iterator[str]:
    """A row for every budget: what its field says, and what the fields of requests say that name it."""
    asking: dict[tuple[str, str], list[str]] = {}
    for row in OPERATIONS:
        named = {each for kind in row.kinds for extra in extras(kind) for each in extra.items()}
        for how, name in sorted(named & {(how, name) for how in HOW for name in Budgets.__struct_fields__}):
            asking.setdefault((how, name), []).append(row.name)
    for field in struct_fields(Budgets):
        marks = [mark for mark in field.type.__metadata__ if isinstance(mark, Meta)]
        says = next(mark for mark in marks if mark.description)
        hows = {how: asking[how, field.name] for how in HOW if (how, field.name) in asking}
        then = [HOW[how] for how in hows] + [text for text in [(says.extra or {})["then"]] if text]
        asked = ", ".join(f"`{name}`" for names in hows.values() for name in names)
        yield f"| `{field.name}` | {says.description} | {'; '.join(then)} | {asked} |"


HOW: Mapping[str, str] = {"budget": "refuses: `payload_too_large`", "clip": "clips the number"}
"""Markers of a request's field that name a budget, and what they do."""

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

PROFILES_WEAR = """\
## Wear of flash

Of a profile's settings, `wal_bytes` decides how much is written to the disk for each KiB of text: a page that several
commits change goes from the log to the file once for each checkpoint, and a checkpoint begins at half of it. Measured
with `compact` and commits of one turn: 828 KiB with 4 MiB, 794 with 8, 777 with 16, the same memory with each. So
`compact` has 8 MiB; 2 % less is not worth another 8 MiB of a small disk. It has no replica, makes snapshots only where
a schedule is configured (each writes a quarter of the store, and five at most are kept), and its log is at most 3 files
of 256 KiB. Each commit is synced before it is acknowledged, whatever these settings are.

The intervals of a [replica](replication.md) are not a profile's: 25 ms by default, so that a lost device takes 0.03 s
with it, cost 302 KiB; 100 ms 150; 1,000 ms 75. [bench.md](bench.md#wear-of-flash) says how all this is measured.
"""

PAGES: Mapping[str, Callable[[], str]] = {
    "operations.md": operations_page,
    "errors.md": errors_page,
    "profiles.md": profiles_page,
}


CLIENTS: Mapping[str, str] = {"clients/node/operations.d.ts": "typescript", "clients/go/operations.go": "go"}


def client_types(language: str) -> str:
    """The types of an example client."""
    return LANGUAGES[language](protocol_schema(BY_NAME[name] for name in OF_CLIENTS))


def files() -> dict[Path, Callable[[], str]]:
    """Every generated file, with what makes it."""
    return {
        **{DOCS / name: make for name, make in PAGES.items()},
        **{DOCS / name: partial(client_types, language) for name, language in CLIENTS.items()},
        ROWS: rows_module,
        METHODS / FILE.name: methods_module,
        METHODS / ASYNC_FILE.name: async_methods_module,
        EXAMPLE: example,
        SCRIPT: schema_script,
    }


def stale() -> dict[str, str]:
    """File to the difference between what is there and what should be."""
    found: dict[str, str] = {}
    for file, make in files().items():
        before = file.read_text(encoding="utf-8") if file.exists() else ""
        after = make()
        if before != after:
            lines = difflib.unified_diff(
                before.splitlines(), after.splitlines(), file.name, f"{file.name} (from the code)", lineterm=""
            )
            found[file.name] = "\n".join(lines)
    return found


def main(arguments: list[str]) -> int:
    """Write the files, or with `--check` compare them."""
    if arguments not in ([], ["--check"]):
        print("usage: gen_reference.py [--check]", file=sys.stderr)
        return 2
    if arguments:
        differences = stale()
        for text in differences.values():
            print(text)
        return 1 if differences else 0
    if (rows := rows_module()) != ROWS.read_text(encoding="utf-8"):
        # The rest comes out of the table, and this process has read the one before.
        ROWS.write_text(rows, encoding="utf-8")
        return subprocess.run([sys.executable, __file__], check=False).returncode
    for file, make in files().items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(make(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
