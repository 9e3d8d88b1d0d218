"""A MentisDB data folder as its 0.5 and 0.9 lines write it, made from plain values."""

from __future__ import annotations

import difflib
import hashlib
import json
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

from beetle.importing.mentisdb import EARLIER_RELATIONS, RELATIONS, ROLES, THOUGHT_TYPES

KEY = "project/alpha"
REGISTRY = "mentisdb-registry.json"


def number(value: int) -> bytes:
    if value < 251:
        return bytes([value])
    width = 2 if value < 2**16 else 4 if value < 2**32 else 8
    return bytes([{2: 251, 4: 252, 8: 253}[width]]) + value.to_bytes(width, "little")


def data(value: bytes) -> bytes:
    return number(len(value)) + value


def text(value: str) -> bytes:
    return data(value.encode())


def optional(value: bytes | None) -> bytes:
    return b"\0" if value is None else b"\1" + value


def uuid(value: str) -> bytes:
    return data(UUID(value).bytes)


def some(value: str | None) -> bytes:
    return optional(None if value is None else text(value))


def listed(values: Sequence[bytes]) -> bytes:
    return number(len(values)) + b"".join(values)


def thought_id(index: int) -> str:
    return str(UUID(int=0xA0000 + index, version=4))


def thought(index: int, content: str, **more: Any) -> dict[str, Any]:
    """A thought as a line of `.jsonl` has it."""
    made = {
        "schema_version": 3, "id": thought_id(index), "index": index,
        "timestamp": f"2026-03-21T10:00:{index:02}.123456789Z", "session_id": None, "agent_id": "astro",
        "signing_key_id": None, "thought_signature": None, "thought_type": "Decision", "role": "Memory",
        "content": content, "confidence": None, "importance": 0.82, "tags": [], "concepts": [], "refs": [],
        "relations": [], "entity_type": None, "source_episode": None,
        "prev_hash": sha(str(index - 1)) if index else "", "hash": sha(str(index)),
    }  # fmt: skip
    return {**made, **more}


def sha(of: str) -> str:
    return hashlib.sha256(of.encode()).hexdigest()


def record(found: dict[str, Any]) -> bytes:
    """A thought as a record of `.tcbin` has it, in the layout of its schema."""
    version = found["schema_version"]
    kinds = RELATIONS if version == 3 else EARLIER_RELATIONS
    session, signature, confidence = found["session_id"], found["thought_signature"], found["confidence"]
    relations = []
    for each in found["relations"]:
        made = number(kinds.index(each["kind"])) + uuid(each["target_id"])
        if version >= 2:
            made += some(each.get("chain_key"))
        if version >= 3:
            made += some(each.get("valid_at")) + some(each.get("invalid_at"))
        relations.append(made)
    parts = [
        number(version), uuid(found["id"]), number(found["index"]), text(found["timestamp"]),
        optional(None if session is None else uuid(session)), text(found["agent_id"]), some(found["signing_key_id"]),
        optional(None if signature is None else data(bytes(signature))),
        number(THOUGHT_TYPES.index(found["thought_type"])), number(ROLES.index(found["role"])), text(found["content"]),
        optional(None if confidence is None else struct.pack("<f", confidence)), struct.pack("<f", found["importance"]),
        *(listed([text(each) for each in found[name]]) for name in ("tags", "concepts")),
        listed([number(each) for each in found["refs"]]), listed(relations),
        *((some(found["entity_type"]), some(found["source_episode"])) if version == 3 else ()),
        text(found["prev_hash"]), text(found["hash"]),
    ]  # fmt: skip
    return b"".join(parts)


def framed(payload: bytes) -> bytes:
    return len(payload).to_bytes(8, "little") + payload


def binary(thoughts: Sequence[dict[str, Any]]) -> bytes:
    return b"".join(framed(record(each)) for each in thoughts)


def lines(thoughts: Sequence[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(each).encode() + b"\n" for each in thoughts)


def stem(key: str) -> str:
    safe = "".join(each if each.isalnum() or each in "-_" else "_" for each in key)
    return f"{safe}-{sha(key)[:16]}"


def agents(*found: dict[str, Any]) -> bytes:
    stub = {"owner": None, "description": None, "aliases": [], "public_keys": [], "status": "Active",
            "first_seen_index": 0, "last_seen_index": 0, "first_seen_at": None, "last_seen_at": None,
            "thought_count": 1}  # fmt: skip
    full = {each["agent_id"]: {"display_name": each["agent_id"], **stub, **each} for each in found}
    return json.dumps({"agents": full}).encode()


def patch(before: str, after: str) -> str:
    """As MentisDB writes it: it marks the end of a text without a newline, and an empty line has no blank."""
    made = ["--- original\n", "+++ modified\n"]
    found = difflib.unified_diff(_lines(before), _lines(after), "original", "modified", n=3)
    for each in list(found)[2:]:
        line = "\n" if each == " \n" else each
        made += [line] if line.endswith("\n") else [f"{line}\n", "\\ No newline at end of file\n"]
    return "".join(made)


def _lines(of: str) -> list[str]:
    return of.splitlines(keepends=True)


def skills(entries: dict[str, tuple[str, str | None, Sequence[str]]]) -> bytes:
    """A registry: of each skill its status, the reason, and the texts of its versions."""
    statuses = ("active", "deprecated", "revoked")
    made = []
    for skill_id, (status, reason, texts) in entries.items():
        versions = []
        for place, content in enumerate(texts):
            stored = number(0) + text(content) if not place else number(1) + text(patch(texts[place - 1], content))
            versions.append(b"".join([
                uuid(thought_id(place)), number(place), text("2026-03-21T10:00:00Z"), text("astro"), some("Astro"),
                some(None), number(0), text(sha(content)), stored, some(None), optional(None),
            ]))  # fmt: skip
        times = text("2026-03-21T10:00:00Z") * 2
        made.append(
            text(skill_id) + text(skill_id) + times + number(statuses.index(status)) + some(reason) + listed(versions)
        )
    return number(2) + listed(made)


def registry(*keys: str, ending: str = "tcbin") -> bytes:
    chains = {
        key: {"chain_key": key, "version": 3, "storage_adapter": "Binary", "thought_count": 1, "agent_count": 1,
              "storage_location": f"/home/rita/.mentisdb/{stem(key)}.{ending}"} for key in keys
    }  # fmt: skip
    return json.dumps({"version": 3, "chains": chains}).encode()


def folder(at: Path, files: dict[str, bytes]) -> Path:
    at.mkdir()
    for name, content in files.items():
        (at / name).write_bytes(content)
    return at
