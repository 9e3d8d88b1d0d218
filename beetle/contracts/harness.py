"""The harness: fixtures that are run in throw-away stores, and the gates over what they showed."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, field

from beetle.contracts.common import Report, WireScope
from beetle.contracts.fields import Content, Id, Open, Part, Piece, Request, Time
from beetle.contracts.names import BACKEND_NAMES, BackendName, PlaneName
from beetle.contracts.operation import HARNESS, Operation, Tool

Suite = Literal["all", "memory", "replay", "benchmark"]
GateName = Literal["memory_harness", "replay", "benchmark"]
Subject = Literal["recall", "projection", "privacy", "procedural", "tool_experience", "temporal"]
AskerName = Literal["owner", "operator", "agent", "panel", "auditor", "exporter", "stranger"]
SUBJECTS: tuple[Subject, ...] = ("recall", "projection", "privacy", "procedural", "tool_experience", "temporal")

Text = Annotated[str, Meta(min_length=1, max_length=4096)]
JsonPath = Annotated[str, Meta(max_length=512, pattern=r"^\$(\.[A-Za-z0-9_]+|\[\d+\])*\Z")]
"""A place in a report: `$.hits[0].ref`."""


class HitCheck(Part, frozen=True, kw_only=True, tag="hit", tag_field="check"):
    """Among the report's hits is one of which all that is given is so, no further down than `rank_at_most`.

    `within` is the list of hits: `hits`, or one by plane.
    """

    says: Text | None = None
    ref: Text | None = None
    plane: PlaneName | None = None
    why: tuple[Text, ...] = ()
    rank_at_most: Annotated[int, Meta(ge=1)] | None = None
    within: Annotated[str, Meta(pattern=r"^[a-z_]+\Z")] = "hits"

    def __post_init__(self) -> None:
        if self.says is None and self.ref is None and self.plane is None:
            raise ValueError("give says, ref or plane: which hit is meant")


class NoHitCheck(Part, frozen=True, kw_only=True, tag="no_hit", tag_field="check"):
    """No hit of the report is one of which all that is given is so; without anything given there is no hit."""

    says: Text | None = None
    ref: Text | None = None
    plane: PlaneName | None = None
    within: Annotated[str, Meta(pattern=r"^[a-z_]+\Z")] = "hits"


class BlockCheck(Part, frozen=True, kw_only=True, tag="block", tag_field="check"):
    """The projected block: within its bound, every section fenced once and in the order of the report, as audited.

    `sections` are those that have items, in their order. `holds` and `lacks` are texts in the block.
    """

    sections: tuple[Text, ...] | None = None
    holds: tuple[Text, ...] = ()
    lacks: tuple[Text, ...] = ()
    at_most: Annotated[int, Meta(ge=0)] | None = None
    at_least: Annotated[int, Meta(ge=0)] | None = None


class SaysCheck(Part, frozen=True, kw_only=True, tag="says", tag_field="check"):
    """Every text occurs somewhere in the report."""

    texts: Annotated[tuple[Text, ...], Meta(min_length=1)]


class LacksCheck(Part, frozen=True, kw_only=True, tag="lacks", tag_field="check"):
    """None of the texts occurs in the report."""

    texts: Annotated[tuple[Text, ...], Meta(min_length=1)]


class ValueCheck(Part, frozen=True, kw_only=True, tag="value", tag_field="check"):
    """The value at a path of the report: the value itself, its bounds, or how many items it has."""

    path: JsonPath
    equals: Any = UNSET
    at_least: float | None = None
    at_most: float | None = None
    count: Annotated[int, Meta(ge=0)] | None = None

    def __post_init__(self) -> None:
        if self.equals is UNSET and self.at_least is None and self.at_most is None and self.count is None:
            raise ValueError("give equals, at_least, at_most or count: what the value must be")


class ToolHintCheck(Part, frozen=True, kw_only=True, tag="tool_hint", tag_field="check"):
    """The report has a hint for this tool, which the host executes."""

    tool_id: Text
    registry_id: Text | None = None
    schema_fingerprint: Text | None = None


class NoToolHintCheck(Part, frozen=True, kw_only=True, tag="no_tool_hint", tag_field="check"):
    """No hint for this tool, or none at all; `reason` is that of the report's tool_experience_status."""

    tool_id: Text | None = None
    reason: Text | None = None


Expectation = HitCheck | NoHitCheck | BlockCheck | SaysCheck | LacksCheck | ValueCheck | ToolHintCheck | NoToolHintCheck


class FixtureStep(Part, frozen=True, kw_only=True):
    """One request, and what must come of it.

    `${name}` in the arguments and expectations is what an earlier step kept under that name. `after_s` lets time go by
    before the step. `refused` is the key of the error that must come, `expect` what the report must hold.
    """

    op: Id
    args: dict[str, Any] = field(default_factory=dict[str, Any])
    asker: AskerName = "owner"
    scope: WireScope | None = None
    after_s: Annotated[float, Meta(ge=0, le=10**9)] = 0
    keep: dict[Annotated[str, Meta(pattern=r"^[a-z][a-z0-9_]*\Z")], JsonPath] = field(default_factory=dict[str, str])
    refused: Id | None = None
    expect: tuple[Expectation, ...] = ()

    def __post_init__(self) -> None:
        if self.refused is not None and (self.expect or self.keep):
            raise ValueError("a step that is refused has no report to expect or keep anything of")


FixtureName = Annotated[str, Meta(min_length=1, max_length=64, pattern=r"^[a-z0-9][a-z0-9_-]*\Z")]


class Fixture(Part, frozen=True, kw_only=True, tag="beetle.fixture.v1", tag_field="schema"):
    """A recorded run: its steps, in order, from a clock and an id source of its own."""

    name: FixtureName
    subject: Subject
    about: Text
    start: Time
    steps: Annotated[tuple[FixtureStep, ...], Meta(min_length=1, max_length=500)]

    def __post_init__(self) -> None:
        if not any(step.expect or step.refused for step in self.steps):
            raise ValueError("no step expects anything: the fixture could never fail")


class BenchmarkLine(Part, frozen=True, kw_only=True):
    """One message: its id, who says it, what, and how long after the line before."""

    id: FixtureName
    speaker: Text
    says: Text
    after_s: Annotated[float, Meta(ge=0, le=10**8)] = 30


class BenchmarkQuestion(Part, frozen=True, kw_only=True):
    """A query and the ids of the lines that answer it."""

    query: Text
    answers: Annotated[tuple[FixtureName, ...], Meta(min_length=1)]


class BenchmarkFloors(Part, frozen=True, kw_only=True):
    """The least that counts: shares of questions with an answer among the first hits, the mean reciprocal rank, and how
    far it may fall behind a plain full-text query. `ratio_at_most` bounds the time of a recall against that query's.
    """

    hit_at_1: Annotated[float, Meta(ge=0, le=1)]
    hit_at_5: Annotated[float, Meta(ge=0, le=1)]
    mrr: Annotated[float, Meta(ge=0, le=1)]
    behind_raw_at_most: Annotated[float, Meta(ge=0, le=1)]
    ratio_at_most: Annotated[float, Meta(gt=0)]


class Benchmark(Part, frozen=True, kw_only=True, tag="beetle.benchmark.v1", tag_field="schema"):
    """A conversation, questions whose answers are known, and the floors."""

    name: FixtureName
    about: Text
    start: Time
    lines: Annotated[tuple[BenchmarkLine, ...], Meta(min_length=10, max_length=5000)]
    questions: Annotated[tuple[BenchmarkQuestion, ...], Meta(min_length=5, max_length=1000)]
    floors: BenchmarkFloors


class HarnessRunRequest(Request, frozen=True, kw_only=True):
    """Run fixtures in temporary stores and check the results against the gates; the caller's store is not used."""

    suite: Annotated[Suite, Meta(description="gates to run: all, or one")] = "all"
    fixtures: Annotated[
        tuple[FixtureName, ...], Meta(max_length=256, description="only these fixtures, by their names")
    ] = ()
    folder: (
        Annotated[
            str,
            Meta(
                min_length=1,
                max_length=4096,
                pattern=r"^/[^\x00]*\Z",
                description="absolute folder of the fixtures; default: the source checkout's own. Operators only",
            ),
        ]
        | None
    ) = None
    backends: Annotated[
        tuple[BackendName, ...], Meta(min_length=1, max_length=len(BACKEND_NAMES), description="on these backends")
    ] = BACKEND_NAMES


class StepFailure(Piece, frozen=True, kw_only=True):
    """What was expected of a step, and what came. `step` counts from 0; `path` is the place in the fixture."""

    step: Open[int]
    op: Open[str]
    path: Open[str]
    expected: Content[str | None]
    found: Content[str | None]


class FixtureResult(Piece, frozen=True, kw_only=True):
    """One fixture on one backend. `checks` counts what was held to something, refusals included."""

    name: Open[str]
    subject: Open[Subject]
    backend: Open[BackendName]
    passed: Open[bool]
    steps: Open[int]
    checks: Open[int]
    failures: Open[tuple[StepFailure, ...]]


class ReplayDifference(Piece, frozen=True, kw_only=True):
    """A place of a step's report that is not the same on two backends. `step` is None for the state fingerprint."""

    step: Open[int | None]
    path: Open[str]
    backend: Open[BackendName]
    expected: Content[str | None]
    found: Content[str | None]


class ReplayResult(Piece, frozen=True, kw_only=True):
    """One fixture on all backends. `fingerprint` is that of the memory it left, where all agree on it."""

    name: Open[str]
    equal: Open[bool]
    backends: Open[tuple[BackendName, ...]]
    steps: Open[int]
    fingerprint: Open[str | None]
    differences: Open[tuple[ReplayDifference, ...]]


class BenchmarkResult(Piece, frozen=True, kw_only=True):
    """Recall's quality on one backend beside that of a plain full-text query over the same lines, and the ratio of
    their times. `missed` are the floors that it fell below.
    """

    name: Open[str]
    backend: Open[BackendName]
    passed: Open[bool]
    questions: Open[int]
    hit_at_1: Open[float]
    hit_at_5: Open[float]
    mrr: Open[float]
    raw_hit_at_5: Open[float]
    raw_mrr: Open[float]
    ratio: Open[float]
    missed: Open[tuple[str, ...]]


class GateResult(Piece, frozen=True, kw_only=True):
    """`reason` says why a gate did not let it pass."""

    name: Open[GateName]
    passed: Open[bool]
    reason: Open[str | None]


class SubjectResult(Piece, frozen=True, kw_only=True):
    """How many runs a subject of the memory harness had, and how many passed."""

    subject: Open[Subject]
    runs: Open[int]
    passed: Open[int]


class HarnessRunReport(Report, frozen=True, kw_only=True):
    """`passed` when every gate of the suite is. `not_compared` names the fields of which a replay compares only
    the presence: times, sizes, and what is made with a store's own keys.
    """

    passed: Open[bool]
    suite: Open[Suite]
    gates: Open[tuple[GateResult, ...]]
    subjects: Open[tuple[SubjectResult, ...]]
    fixtures: Open[tuple[FixtureResult, ...]]
    replays: Open[tuple[ReplayResult, ...]]
    benchmarks: Open[tuple[BenchmarkResult, ...]]
    not_compared: Open[tuple[str, ...]]


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "harness.run", "run_harness", HarnessRunRequest, HarnessRunReport, "write", "harness", HARNESS,
        ("harness", "run"),
        "run fixtures in temporary stores and check the results against the gates; the caller's store is not used",
        batch=False, deadline_ms=3_600_000,
        example={"suite": "memory"},
        shell=(
            "beetle harness run",
            "beetle harness run --suite memory --folder tests/data/fixtures --fixtures privacy-by-view",
        ),
        tool=Tool(none="for whoever develops"),
    ),
)  # fmt: skip
