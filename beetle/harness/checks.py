"""Holding a report to what a step expects: each check answers what was expected and what came, None when it holds."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, assert_never

from beetle.contracts.codec import UNSET
from beetle.contracts.harness import (
    BlockCheck,
    Expectation,
    HitCheck,
    LacksCheck,
    NoHitCheck,
    NoToolHintCheck,
    SaysCheck,
    ToolHintCheck,
    ValueCheck,
)
from beetle.named_tuple import NamedTuple

Report = dict[str, Any]
SHOWN = 300
"""Most characters of what came that a failure shows."""
HEAD = r'<memory note="[^"<>]*">\n'
FENCE = re.compile(r'</?([a-z_]+)( note="[^"<>]*")?>')
STEP = re.compile(r"\.([A-Za-z0-9_]+)|\[(\d+)\]")


class Failure(NamedTuple):
    """What was expected, and what came instead."""

    expected: str
    found: str


class Missing(NamedTuple):
    """Stands for a value that is not in a report."""


MISSING = Missing()


def check(expectation: Expectation, report: Report) -> Failure | None:
    """Whether a report is as expected."""
    match expectation:
        case HitCheck():
            return _hit(expectation, report)
        case NoHitCheck():
            return _no_hit(expectation, report)
        case BlockCheck():
            return _block(expectation, report)
        case SaysCheck():
            missing = [each for each in expectation.texts if each not in _whole(report)]
            return Failure(f"the report says {missing[0]!r}", shown(report)) if missing else None
        case LacksCheck():
            return _lacks(expectation, _whole(report))
        case ValueCheck():
            return _value(expectation, report)
        case ToolHintCheck():
            return _tool_hint(expectation, report)
        case NoToolHintCheck():
            return _no_tool_hint(expectation, report)
        case _:
            assert_never(expectation)


def _lacks(wanted: LacksCheck, text: str) -> Failure | None:
    there = next((each for each in wanted.texts if each in text), None)
    return None if there is None else Failure(f"the report does not say {there!r}", _around(text, there))


def at(report: Report, path: str) -> Any:
    """What stands at a path of a report, MISSING when nothing does."""
    value: Any = report
    for name, index in STEP.findall(path):
        if name and isinstance(value, dict) and name in value:
            value = value[name]
        elif index and isinstance(value, list) and int(index) < len(value):
            value = value[int(index)]
        else:
            return MISSING
    return value


def shown(value: Any) -> str:
    """A value as a failure shows it."""
    text = "nothing" if value is MISSING else json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"


def _whole(report: Report) -> str:
    """Every text of a report but what the runtime says of the call itself."""
    return "\n".join(_texts({name: value for name, value in report.items() if name != "lifecycle"}))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, each in value.items():
            yield name
            yield from _texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)


def _around(text: str, found: str) -> str:
    place = text.index(found)
    return text[max(0, place - SHOWN // 2) : place + SHOWN // 2]


def _list(report: Report, name: str) -> list[Report] | None:
    found = report.get(name)
    return found if isinstance(found, list) else None


def _is_meant(wanted: HitCheck | NoHitCheck, hit: Report) -> bool:
    if wanted.ref is not None and hit.get("ref") != wanted.ref:
        return False
    if wanted.plane is not None and hit.get("plane") != wanted.plane:
        return False
    said = f"{hit.get('title') or ''}\n{hit.get('excerpt') or ''}"
    return wanted.says is None or wanted.says in said


def _hit(wanted: HitCheck, report: Report) -> Failure | None:
    named = ", ".join(repr(each) for each in (wanted.says, wanted.ref, wanted.plane) if each is not None)
    hits = _list(report, wanted.within)
    if hits is None:
        return Failure(f"a list of hits {wanted.within!r}", shown(report.get(wanted.within, MISSING)))
    ranks = [rank for rank, hit in enumerate(hits, 1) if _is_meant(wanted, hit)]
    told = shown([[hit.get("ref"), hit.get("excerpt")] for hit in hits[:3]])
    if not ranks:
        return Failure(f"a hit {named}", told)
    if wanted.rank_at_most is not None and ranks[0] > wanted.rank_at_most:
        return Failure(f"a hit {named} at rank {wanted.rank_at_most} or before", f"rank {ranks[0]}, behind {told}")
    why = hits[ranks[0] - 1].get("why", [])
    if not set(wanted.why) <= set(why):
        return Failure(f"a hit {named} because of {', '.join(wanted.why)}", shown(why))
    return None


def _no_hit(wanted: NoHitCheck, report: Report) -> Failure | None:
    hits = _list(report, wanted.within)
    if hits is None:
        return Failure(f"a list of hits {wanted.within!r}", shown(report.get(wanted.within, MISSING)))
    meant = next((hit for hit in hits if _is_meant(wanted, hit)), None)
    if meant is None:
        return None
    named = ", ".join(repr(each) for each in (wanted.says, wanted.ref, wanted.plane) if each is not None)
    return Failure(f"no hit {named}".rstrip(), shown([meant.get("ref"), meant.get("excerpt")]))


def _block(wanted: BlockCheck, report: Report) -> Failure | None:
    text, sections = report.get("system_memory_block"), report.get("sections")
    if not isinstance(text, str) or not isinstance(sections, list):
        return Failure("a projected block and its sections", shown(text))
    return _shape(text, sections, report) or _bounds(wanted, text, report) or _holding(wanted, text, sections)


def _shape(text: str, sections: list[Report], report: Report) -> Failure | None:
    """The block is fenced, holds each section that has items once and in the report's order, and is as audited."""
    full = [each["name"] for each in sections if each["items"]]
    whole = re.match(HEAD, text) and text.endswith("</memory>")
    if not (whole if full else text == ""):
        return Failure("one whole <memory> block, or nothing when no section has items", text[:SHOWN])
    fences = [found[0] for found in FENCE.finditer(text) if found[1] != "memory"]
    plain = [fence.partition(" ")[0].rstrip(">") + ">" for fence in fences]
    if plain != [fence for name in full for fence in (f"<{name}>", f"</{name}>")]:
        return Failure(f"the sections {', '.join(full)}, each opened and closed once", " ".join(fences))
    characters = report["audit"]["characters"]
    if characters != len(text):
        return Failure(f"the {len(text)} characters that the block has", f"{characters} in the audit")
    planes = list(dict.fromkeys(ref.partition(":")[0] for ref in report["audit"]["selected"]))
    if planes != report["audit"]["source_planes"]:
        return Failure(f"the planes of what was selected: {', '.join(planes)}", shown(report["audit"]["source_planes"]))
    return None


def _bounds(wanted: BlockCheck, text: str, report: Report) -> Failure | None:
    bound = min(report["audit"]["budget"], *([] if wanted.at_most is None else [wanted.at_most]), 10**9)
    if len(text) > bound:
        return Failure(f"at most {bound} characters", f"{len(text)}")
    if wanted.at_least is not None and len(text) < wanted.at_least:
        return Failure(f"at least {wanted.at_least} characters", f"{len(text)}")
    return None


def _holding(wanted: BlockCheck, text: str, sections: list[Report]) -> Failure | None:
    full = tuple(each["name"] for each in sections if each["items"])
    if wanted.sections is not None and full != wanted.sections:
        return Failure(f"the sections {', '.join(wanted.sections) or '(none)'}", ", ".join(full) or "none")
    for each in wanted.holds:
        if each not in text:
            return Failure(f"a block that holds {each!r}", text[:SHOWN])
    for each in wanted.lacks:
        if each in text:
            return Failure(f"a block without {each!r}", _around(text, each))
    return None


def _value(wanted: ValueCheck, report: Report) -> Failure | None:
    value: Any = at(report, wanted.path)
    if value is MISSING:
        return Failure(f"a value at {wanted.path}", "nothing")
    if wanted.equals is not UNSET and (
        value != wanted.equals or isinstance(value, bool) != isinstance(wanted.equals, bool)
    ):
        return Failure(f"{shown(wanted.equals)} at {wanted.path}", shown(value))
    if wanted.count is not None and _length(value) != wanted.count:
        return Failure(f"{wanted.count} items at {wanted.path}", shown(value))
    if wanted.at_least is not None and not (_is_number(value) and value >= wanted.at_least):
        return Failure(f"at least {wanted.at_least} at {wanted.path}", shown(value))
    if wanted.at_most is not None and not (_is_number(value) and value <= wanted.at_most):
        return Failure(f"at most {wanted.at_most} at {wanted.path}", shown(value))
    return None


def _length(value: Any) -> int | None:
    return len(value) if isinstance(value, (list, str, dict)) else None


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _tool_hint(wanted: ToolHintCheck, report: Report) -> Failure | None:
    hints = _list(report, "agent_tool_hints")
    if hints is None:
        return Failure("a list of tool hints", "none in the report")
    named = {
        name: value
        for name in ("tool_id", "registry_id", "schema_fingerprint")
        if (value := getattr(wanted, name)) is not None
    }
    meant = next((hint for hint in hints if all(hint.get(name) == value for name, value in named.items())), None)
    if meant is None:
        return Failure(f"a tool hint {shown(named)}", shown(hints))
    if meant.get("host_execution_required") is not True:
        return Failure("a hint that the host executes", shown(meant))
    return None


def _no_tool_hint(wanted: NoToolHintCheck, report: Report) -> Failure | None:
    hints = _list(report, "agent_tool_hints")
    if hints is None:
        return Failure("a list of tool hints", "none in the report")
    meant = [hint for hint in hints if wanted.tool_id is None or hint.get("tool_id") == wanted.tool_id]
    if meant:
        return Failure(f"no tool hint {wanted.tool_id or ''}".rstrip(), shown(meant))
    reason = report.get("tool_experience_status", {}).get("reason")
    if wanted.reason is not None and reason != wanted.reason:
        return Failure(f"the status {wanted.reason}", shown(reason))
    return None
