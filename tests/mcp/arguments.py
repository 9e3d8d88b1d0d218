"""What each tool is called with: the table of cases, so that every call has something to be about and succeeds."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from beetle.client import Client
from beetle.contracts.codec import to_plain
from beetle.mcp.tools import TAG, Tool, Tools
from beetle.sdk import MemoryRuntime
from tests.building import Plain
from tests.cases import FACT, OF, PREPARATIONS, WORD, Prepared

ERRORS: Mapping[str, str] = {case.row.name: case.key for case in OF.values() if case.key is not None}
"""The errors that answer operations where no model is configured."""

OBSERVATION = {"tool_id": WORD, "schema_fingerprint": "s1", "outcome": "succeeded", "summary": "it was looked up"}
EXTRACTED = {"kind": "fact", "topic": "door", "content": f"the {WORD} door", "confidence": 0.5, "evidence_refs": []}
KINDS: Mapping[str, Plain] = {
    "candidates": {key: each for key, each in FACT.items() if key != TAG},
    "long_term_extraction": {"extraction": {"items": [EXTRACTED], "extractor": "test 1"}},
    "agent_tool_usage_feedback": {
        "feedback": {"registry_ref": {"registry_id": WORD, "fingerprint": "f1"}, "observations": [OBSERVATION]}
    },
}
"""Of a request that has kinds, those that the table of cases has no request for."""


OWNERS = ("private record", "proposal")
"""What only the owner has, and what not every profile has."""
FOR_FILES = ("chat taken out", "space taken out")
SHARED = tuple(name for name in PREPARATIONS if name not in (*OWNERS, *FOR_FILES))

TAKING_AWAY = ("delete", "remove", "restore", "prune", "revoke")


def prepared(memory: Client | MemoryRuntime, *more: str) -> Prepared:
    """A space in which all that tools need is there; `more` as far as its caller has it."""
    made = Prepared(lambda op, args: dict(to_plain(memory.call(op, args))))
    for name in (*SHARED, *more):
        made[name]
    return made


def arguments_of(tool: Tool, got: Prepared) -> Plain:
    """What it is called with in a prepared space."""
    if tool.kind in KINDS:
        return KINDS[tool.kind]
    return {key: each for key, each in OF[tool.row.name].request(got).items() if not tool.kind or key != TAG}


def in_order(names: Collection[str]) -> list[Tool]:
    """The tools of these names: a proposal is for a skill as it is, and what takes away comes last."""

    def place(tool: Tool) -> tuple[bool, ...]:
        name = tool.row.name
        return tool.row.effect != "read", not name.startswith("evolve."), name.endswith(TAKING_AWAY)

    return sorted((Tools("all").get(name) for name in names), key=place)
