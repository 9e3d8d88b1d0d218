"""Checks of what this build holds: tables, types, data files, modules, and the tree itself. None of them writes."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgpack

from beetle import tree
from beetle.contracts import codec
from beetle.contracts.envelope import PROTOCOL, WireAnswer, WireError, WireRequest
from beetle.contracts.errors import ERRORS, STATUS, InvalidRequest
from beetle.contracts.methods import OperationMethods
from beetle.contracts.operations import OPERATIONS, Operation
from beetle.frozen import tree_of
from beetle.runtime.handlers import HANDLERS
from beetle.runtime.profile import ALIASES, Profile, load_profile, profile_names, profiles_folder
from beetle.runtime.snapshot import SCHEMA, capability_snapshot, snapshot_text
from beetle.selftest.place import Wrong, is_frozen, package_folder
from beetle.store.migrate import available
from beetle.transports.cli.commands import COMMANDS, root_help
from beetle.transports.cli.parser import Parser

OPERATION_COUNT = 65
PROFILE_COUNT = 5
MIGRATION_COUNT = 4
"""Written by hand, like the number of checks: what is silently not there cannot be counted."""

ELSEWHERE = ("batch", "subscribe", "unsubscribe")
"""Operations that the dispatcher and the connection handle themselves."""

PROGRAM = "beetle.__main__"
"""The module that is the program itself: in a build it has no name of its own."""

TURN: Mapping[str, Any] = {
    "turn_id": "t1",
    "at": "2026-01-01T00:00:00Z",
    "messages": [{"message_id": "m1", "role": "user", "content": "the beetle walks"}],
}
SKILL: Mapping[str, Any] = {"name": "n", "topic": "t", "title": "t", "summary": "s", "content": "c"}
TOOL: Mapping[str, Any] = {"tool_id": "t", "title": "t", "schema_fingerprint": "s"}
TALK: Mapping[str, Any] = {"conversation_id": "c1"}
EXAMPLES: Mapping[str, Mapping[str, Any]] = {
    "memory.recall": {"query": "spare key"},
    "memory.project": {"user_query": "what do I need today"},
    "memory.write": {"kind": "procedural", "source": "manual", "writes": [SKILL]},
    "memory.replay": {"chat_id": "c1"},
    "memory.export": {"chat_id": "c1"},
    "memory.import": {"snapshot": b"s", "target_chat_id": "c1", "mode": "bootstrap_import"},
    "memory.import_space": {"archive": b"s", "mode": "bootstrap_import"},
    "memory.finalize_turn": {"conversation": TALK, "turn": TURN},
    "skill.detail": {"name": "n"},
    "skill.edit": {"name": "n", "title": "t", "edit_reason": "r"},
    "skill.set_enabled": {"name": "n", "enabled": False},
    "skill.delete": {"name": "n"},
    "tool_registry.get": {"registry_id": "host-tools"},
    "tool_registry.upsert": {"registry_id": "host-tools", "fingerprint": "f", "tools": [TOOL]},
    "tool_registry.delete": {"registry_id": "host-tools"},
    "long_term.detail": {"ref": "long_term:f-1"},
    "long_term.mutate": {"action": "delete", "ref": "long_term:f-1"},
    "long_term.policy": {"action": "list"},
    "transcript.commit": {"conversation": TALK, "turns": [TURN]},
    "transcript.replay": {"conversation": TALK, "view": "host_ui"},
    "transcript.export": {"conversation": TALK},
    "transcript.timeline": {"conversation": TALK, "view": "host_ui", "anchor": {"before": 3}},
    "transcript.search": {"query": "key", "view": "host_ui"},
    "transcript.lifecycle": {"conversation": TALK, "action": "mask", "turn_ids": ["t1"], "reason": "r"},
    "private.get": {"record_id": "p-1"},
    "snapshot.verify": {"snapshot_id": "s-0123456789abcdef"},
    "snapshot.restore": {"snapshot_id": "s-0123456789abcdef"},
    "snapshot.prune": {"keep": 3},
    "evolve.propose": {"proposals": [{"kind": "skill_disable", "target": "n", "rationale": "r"}]},
    "evolve.preview": {"proposal_id": "e-1"},
    "evolve.submit": {"proposal_ids": ["e-1"]},
    "device.add": {"label": "d", "capabilities": ["recall"]},
    "device.update": {"device_id": "d-1", "state": "suspended"},
    "device.rotate_key": {"device_id": "d-1"},
    "device.remove": {"device_id": "d-1"},
    "transport.update": {"name": "unix_socket", "enabled": False},
    "batch": {"requests": [{"op": "hello", "args": {}}]},
    "subscribe": {"topics": ["transcript"]},
    "unsubscribe": {"sub": "s1"},
}
"""A request of every operation that takes one; the others are asked with nothing."""


def contracts() -> str:
    """The table of operations, its handlers, its methods, and a request of each."""
    names = {row.name for row in OPERATIONS}
    if len(OPERATIONS) != OPERATION_COUNT or len(names) != OPERATION_COUNT:
        raise Wrong(f"{len(names)} operations are there, and {OPERATION_COUNT} should be")
    if wrong := names ^ (set(HANDLERS) | set(ELSEWHERE)):
        raise Wrong(f"operation and handler do not match: {', '.join(sorted(wrong))}")
    for row in OPERATIONS:
        _check_request(row)
        if row.effect != "stream" and not callable(getattr(OperationMethods, row.method, None)):
            raise Wrong(f"{row.name} has no method {row.method}")
    return f"{len(names)} operations, each with its handler, its method and a request that is understood"


def _check_request(row: Operation) -> None:
    example = EXAMPLES.get(row.name, {})
    codec.decode_request(codec.pack(example), row.request)
    try:
        codec.decode_request(codec.pack({**example, "no_such_field": 1}), row.request)
    except InvalidRequest:
        return
    raise Wrong(f"{row.name} takes a field that it does not have")


def messages() -> str:
    """A request and both kinds of answer through MessagePack and back."""
    if not msgpack.Unpacker.__module__.endswith("_cmsgpack"):
        raise Wrong("MessagePack runs without its compiled part")
    sent = {"v": PROTOCOL, "id": 7, "op": "transcript.commit", "args": {"conversation": TALK, "turns": [TURN]}}
    request = codec.decode_request(codec.pack(sent), WireRequest, "$")
    row = next(each for each in OPERATIONS if each.name == request.op)
    if (
        codec.to_wire(codec.decode_request(request.args, row.request))["turns"][0]["messages"][0]["content"]
        != (TURN["messages"][0]["content"])
    ):
        raise Wrong("a request does not come out as it went in")
    report = {"text": "ä→🪲", "n": 2**40, "b": b"\x00\xff", "none": None, "list": [1.5, True]}
    error = {"key": "conflict", "message": "m", "hint": "h", "retryable": False, "details": {"path": "$.args"}}
    for answer, told in (
        (WireAnswer(id=7, ok=True, report=report), {"id": 7, "ok": True, "report": report}),
        (WireAnswer(id="x", ok=False, error=WireError(**error)), {"id": "x", "ok": False, "error": error}),
    ):
        if msgpack.unpackb(codec.pack(answer)) != {"v": PROTOCOL, **told}:
            raise Wrong("an answer does not come out as it went in")
    return "a request and both kinds of answer come out as they went in"


def errors() -> str:
    """Every error key has its class, its exit code, and can be said."""
    if wrong := set(ERRORS) ^ set(STATUS):
        raise Wrong(f"error key and class do not match: {', '.join(sorted(wrong))}")
    for key, kind in ERRORS.items():
        error = kind()
        if not 1 <= error.exit_code <= 125 or kind.key != key or not str(error).startswith(key):
            raise Wrong(f"{key} cannot be told")
    return f"{len(ERRORS)} error keys, each with its exit code"


def commands() -> str:
    """Every command can be read and says what it does."""
    for command in COMMANDS.values():
        if not command.help.strip():
            raise Wrong(f"`beetle {command.name}` does not say what it does: the build left its words out")
        Parser(command)
    page = root_help()
    if any(words[0] not in page for words in COMMANDS):
        raise Wrong("`beetle --help` leaves a command out")
    return f"{len(COMMANDS)} commands, each with its options and its help"


def profiles() -> str:
    """Every profile is there and can be read, and allows what its golden snapshot says where that is at hand."""
    names = profile_names()
    if len(names) != PROFILE_COUNT or set(ALIASES.values()) != set(names):
        raise Wrong(f"{len(names)} profiles are there, and {PROFILE_COUNT} should be")
    golden = profiles_folder(package_folder()) / "snapshots"
    for name in names:
        profile = load_profile(name)
        if golden.is_dir():
            if snapshot_text(profile) != (golden / f"{name}.json").read_text(encoding="utf-8"):
                raise Wrong(f"{name} does not allow what its golden snapshot says")
        else:
            _check_snapshot(profile)
    return f"{len(names)} profiles" + (", each as its golden snapshot says" if golden.is_dir() else "")


def _check_snapshot(profile: Profile) -> None:
    found = json.loads(snapshot_text(profile))
    same = found == json.loads(json.dumps(capability_snapshot(profile)))
    operations = sorted(row.name for row in OPERATIONS)
    if not same or (found["schema"], found["profile"]) != (SCHEMA, profile.name):
        raise Wrong(f"the capability snapshot of {profile.name} is not what it should be")
    if found["compiled"]["operations"] != operations or sorted(found["memory"]["operations"]) != operations:
        raise Wrong(f"the capability snapshot of {profile.name} leaves operations out")


def migrations() -> str:
    """Every migration is there, numbered without a gap."""
    found = available()
    if [each.number for each in found] != list(range(1, MIGRATION_COUNT + 1)):
        raise Wrong(f"{MIGRATION_COUNT} migrations should be there, and there are: {[each.name for each in found]}")
    if any(not each.sql.strip() for each in found):
        raise Wrong("a migration is empty")
    return f"{len(found)} of {MIGRATION_COUNT} migrations, the last {found[-1].name} ({found[-1].sha256[:12]})"


def modules() -> str:
    """Every module of the source is here, and can be imported."""
    names = _module_names()
    if unnamed := [each for each in _loaded() if each not in names and each != PROGRAM]:
        raise Wrong(f"modules that no list names: {', '.join(unnamed)}")
    missing = _missing_library()
    # The self-test is the one place where modules come from a list: the build's own, of what it took from the source.
    wanted = [each for each in names if each != PROGRAM and not (missing and _is_of_console(each))]
    for name in wanted:
        try:
            importlib.import_module(name)
        except ImportError as error:
            raise Wrong(f"{name} cannot be imported: {error.msg}") from error
    left = f"; {len(names) - len(wanted) - 1} of the console not, as {missing} is not installed" if missing else ""
    return f"{len(wanted)} modules can be imported{left}"


def _module_names() -> set[str]:
    listed = package_folder() / "MODULES"
    if is_frozen() or listed.is_file():
        return set(listed.read_text(encoding="utf-8").split())
    root = package_folder().parent
    files = [file.relative_to(root) for part in ("beetle", "tui") for file in (root / part).rglob("*.py")]
    return {".".join(file.with_suffix("").parts).removesuffix(".__init__") for file in files}


def _loaded() -> list[str]:
    return sorted(each for each in sys.modules if each.partition(".")[0] in ("beetle", "tui"))


def _is_of_console(module: str) -> bool:
    return module.partition(".")[0] == "tui"


def _missing_library() -> str:
    """The console's library where a checkout or package has none; a built program has all it needs."""
    return "" if is_frozen() or importlib.util.find_spec("textual") is not None else "textual"


def console() -> str:
    """The console starts and draws, on no terminal."""
    if missing := _missing_library():
        return f"not applicable: {missing} is not installed"
    from tui.app import start_check

    if problem := start_check():
        raise Wrong(problem)
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
        raise Wrong(f"{place} is not as it was built: {'; '.join(found[:3])}{more}")
    manifest = tree.read_manifest(os.path.join(place, tree.MANIFEST))
    return f"{manifest.name}: {len(manifest.entries)} files as they were built"


def _runs_from_tree() -> bool:
    """False for the build that unpacks itself at every start, which leaves nothing that could change."""
    return Path(getattr(sys, "_MEIPASS", "")).resolve().parent == Path(tree_of(sys.executable))
