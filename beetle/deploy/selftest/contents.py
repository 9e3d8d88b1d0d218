"""Checks of what this build holds: tables, types, data files, modules, and the tree itself. None of them writes."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import sys
from pathlib import Path

import msgpack

from beetle.cli import manual
from beetle.cli.commands import COMMANDS, root_help
from beetle.cli.parser import Parser
from beetle.contracts import codec
from beetle.contracts.envelope import PROTOCOL, WireAnswer, WireError, WireRequest
from beetle.contracts.errors import ERRORS, STATUS, InvalidRequest
from beetle.contracts.methods import OPERATION_COUNT, OperationMethods
from beetle.contracts.operations import BY_NAME, EXPOSED_TRANSPORTS, OPERATIONS, Operation
from beetle.deploy import manifest as tree
from beetle.deploy.frozen import tree_of
from beetle.deploy.selftest.workspace import CheckFailed, is_frozen, package_folder
from beetle.runtime.areas.table import HANDLERS
from beetle.runtime.host.built_transports import built_transports
from beetle.runtime.host.capability_snapshot import SCHEMA, capability_snapshot, capability_snapshot_text
from beetle.runtime.host.profile import ALIASES, Profile, load_profile, profile_names, profiles_folder
from beetle.store.engine.migrate import available

CONSOLE = "beetle_tui"
"""The console's package."""
PROFILE_COUNT = 5
MIGRATION_COUNT = 24
"""Written by hand, like the number of checks: what is silently not there cannot be counted."""

ELSEWHERE = ("batch", "subscribe", "unsubscribe")
"""Operations that the dispatcher and the connection handle themselves."""

OF_GRPC = ("beetle.rpc", "beetle.transports.grpc", "beetle.memory_client")
"""Modules that a build without gRPC does not have."""
PROGRAM = "beetle.__main__"
"""The module that is the program itself: in a build it has no name of its own."""


def contracts() -> str:
    """The table of operations, its handlers, its methods, and a request of each."""
    names = {row.name for row in OPERATIONS}
    if len(OPERATIONS) != OPERATION_COUNT or len(names) != OPERATION_COUNT:
        raise CheckFailed(f"{len(names)} operations are there, and {OPERATION_COUNT} should be")
    if wrong := names ^ (set(HANDLERS) | set(ELSEWHERE)):
        raise CheckFailed(f"operation and handler do not match: {', '.join(sorted(wrong))}")
    for row in OPERATIONS:
        _check_request(row)
        if row.effect != "stream" and not callable(getattr(OperationMethods, row.method, None)):
            raise CheckFailed(f"{row.name} has no method {row.method}")
    return f"{len(names)} operations, each with its handler, its method and a request that is understood"


def _check_request(row: Operation) -> None:
    codec.decode_request(codec.pack(row.example), row.request)
    try:
        codec.decode_request(codec.pack({**row.example, "no_such_field": 1}), row.request)
    except InvalidRequest:
        return
    raise CheckFailed(f"{row.name} takes a field that it does not have")


def messages() -> str:
    """A request and both kinds of answer through MessagePack and back."""
    if not msgpack.Unpacker.__module__.endswith("_cmsgpack"):
        raise CheckFailed("MessagePack runs without its compiled part")
    row = BY_NAME["transcript.commit"]
    sent = {"v": PROTOCOL, "id": 7, "op": row.name, "args": row.example}
    request = codec.decode_request(codec.pack(sent), WireRequest, "$")
    found, turn = codec.to_wire(codec.decode_request(request.args, row.request)), row.example["turns"][0]
    if found["turns"][0]["messages"][0]["content"] != turn["messages"][0]["content"]:
        raise CheckFailed("a request does not come out as it went in")
    report = {"text": "ä→🪲", "n": 2**40, "b": b"\x00\xff", "none": None, "list": [1.5, True]}
    error = {"key": "conflict", "message": "m", "hint": "h", "retryable": False, "details": {"path": "$.args"}}
    for answer, told in (
        (WireAnswer(id=7, ok=True, report=report), {"id": 7, "ok": True, "report": report}),
        (WireAnswer(id="x", ok=False, error=WireError(**error)), {"id": "x", "ok": False, "error": error}),
    ):
        if msgpack.unpackb(codec.pack(answer)) != {"v": PROTOCOL, **told}:
            raise CheckFailed("an answer does not come out as it went in")
    return "a request and both kinds of answer come out as they went in"


def errors() -> str:
    """Every error key has its class, its exit code, and can be said."""
    if wrong := set(ERRORS) ^ set(STATUS):
        raise CheckFailed(f"error key and class do not match: {', '.join(sorted(wrong))}")
    for key, kind in ERRORS.items():
        error = kind()
        if not 1 <= error.exit_code <= 125 or kind.key != key or not str(error).startswith(key):
            raise CheckFailed(f"{key} cannot be told")
    return f"{len(ERRORS)} error keys, each with its exit code"


def commands() -> str:
    """Every command can be read and says what it does."""
    for command in COMMANDS.values():
        if not command.help.strip():
            raise CheckFailed(f"`beetle {command.name}` does not say what it does: the build left its words out")
        Parser(command)
    page = root_help()
    if any(words[0] not in page for words in COMMANDS):
        raise CheckFailed("`beetle --help` leaves a command out")
    pages = manual.topics()
    if not pages or any(not manual.page(topic, pages).strip() for topic in pages):
        raise CheckFailed("the manual is empty, or one of its pages")
    return f"{len(COMMANDS)} commands, each with its options and its help; {len(pages)} pages of the manual"


def profiles() -> str:
    """Every profile is there and can be read, and allows what its golden snapshot says where that is at hand."""
    names = profile_names()
    if len(names) != PROFILE_COUNT or set(ALIASES.values()) != set(names):
        raise CheckFailed(f"{len(names)} profiles are there, and {PROFILE_COUNT} should be")
    golden = profiles_folder(package_folder()) / "snapshots"
    for name in names:
        profile = load_profile(name)
        # The golden snapshots are of a build with every transport.
        if golden.is_dir() and built_transports() == EXPOSED_TRANSPORTS:
            if capability_snapshot_text(profile) != (golden / f"{name}.json").read_text(encoding="utf-8"):
                raise CheckFailed(f"{name} does not allow what its golden snapshot says")
        else:
            _check_snapshot(profile)
    return f"{len(names)} profiles" + (", each as its golden snapshot says" if golden.is_dir() else "")


def _check_snapshot(profile: Profile) -> None:
    found = json.loads(capability_snapshot_text(profile))
    same = found == json.loads(json.dumps(capability_snapshot(profile)))
    operations = sorted(row.name for row in OPERATIONS)
    if not same or (found["schema"], found["profile"]) != (SCHEMA, profile.name):
        raise CheckFailed(f"the capability snapshot of {profile.name} is not what it should be")
    if found["compiled"]["operations"] != operations or sorted(found["memory"]["operations"]) != operations:
        raise CheckFailed(f"the capability snapshot of {profile.name} leaves operations out")


def migrations() -> str:
    """Every migration is there, numbered without a gap."""
    found = available()
    if [each.number for each in found] != list(range(1, MIGRATION_COUNT + 1)):
        raise CheckFailed(
            f"{MIGRATION_COUNT} migrations should be there, and there are: {[each.name for each in found]}"
        )
    if any(not each.sql.strip() for each in found):
        raise CheckFailed("a migration is empty")
    return f"{len(found)} of {MIGRATION_COUNT} migrations, the last {found[-1].name} ({found[-1].sha256[:12]})"


def modules() -> str:
    """Every module of the source is here, and can be imported."""
    names = _module_names()
    if unnamed := [each for each in _loaded() if each not in names and each != PROGRAM]:
        raise CheckFailed(f"modules that no list names: {', '.join(unnamed)}")
    missing = _missing_library()
    # The self-test is the one place where modules come from a list: the build's own, of what it took from the source.
    wanted = [each for each in names if each != PROGRAM and not (missing and _is_of_console(each))]
    for name in wanted:
        try:
            importlib.import_module(name)
        except ImportError as error:
            raise CheckFailed(f"{name} cannot be imported: {error.msg}") from error
    left = f"; {len(names) - len(wanted) - 1} of the console not, as {missing} is not installed" if missing else ""
    return f"{len(wanted)} modules can be imported{left}"


def _module_names() -> set[str]:
    listed = package_folder() / "MODULES"
    if is_frozen() or listed.is_file():
        return set(listed.read_text(encoding="utf-8").split())
    root = package_folder().parent
    # In a checkout the console's package stands in a folder of its own; installed, both stand side by side.
    console = root / "tui" if (root / "tui" / CONSOLE).is_dir() else root
    files = [
        file.relative_to(top)
        for top, part in ((root, "beetle"), (console, CONSOLE))
        for file in (top / part).rglob("*.py")
        # Each needs the framework of its own extra; the build leaves them out.
        if "adapters" not in file.relative_to(top).parts
    ]
    names = {".".join(file.with_suffix("").parts).removesuffix(".__init__") for file in files}
    # They need the extra of their transport.
    return names if "grpc" in built_transports() else {each for each in names if not each.startswith(OF_GRPC)}


def _loaded() -> list[str]:
    ours = (each for each in sys.modules if each.partition(".")[0] in ("beetle", CONSOLE))
    return sorted(each for each in ours if not each.startswith("beetle.adapters"))


def _is_of_console(module: str) -> bool:
    return module.partition(".")[0] == CONSOLE


def _missing_library() -> str:
    """The console's library where a checkout or package has none; a built program has all it needs."""
    return "" if is_frozen() or importlib.util.find_spec("textual") is not None else "textual"


def console() -> str:
    """The console starts and draws, on no terminal."""
    if missing := _missing_library():
        return f"not applicable: {missing} is not installed"
    from beetle_tui.app import start_check

    if problem := start_check():
        raise CheckFailed(problem)
    return "the console starts and draws"


def built_tree() -> str:
    """Every file of a built tree is what the build made, and nothing else is there."""
    if not is_frozen() or not _runs_from_tree():
        return "not applicable: not a built tree"
    return check_tree(tree_of(sys.executable))


def check_tree(place: str) -> str:
    """Hold the tree at a place against its MANIFEST; its name and how many files it has."""
    if found := tree.verify_tree(place):
        more = f", and {len(found) - 3} things more" if len(found) > 3 else ""
        raise CheckFailed(f"{place} is not as it was built: {'; '.join(found[:3])}{more}")
    manifest = tree.read_manifest(os.path.join(place, tree.MANIFEST))
    return f"{manifest.name}: {len(manifest.entries)} files as they were built"


def _runs_from_tree() -> bool:
    """False for the build that unpacks itself at every start, which leaves nothing that could change."""
    return Path(getattr(sys, "_MEIPASS", "")).resolve().parent == Path(tree_of(sys.executable))
