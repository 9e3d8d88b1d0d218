"""Nothing leaves the dispatcher that has not passed the redaction gate: by the types, and by what callers see."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from beetle.contracts.codec import to_plain
from beetle.contracts.names import ViewName
from beetle.open import Opened, open_store
from beetle.runtime.host.caller import Caller
from beetle.runtime.host.principals import OPERATOR_CAPABILITIES
from beetle.runtime.pipeline import invocation
from beetle.runtime.pipeline.invocation import Call
from beetle.runtime.pipeline.subscriptions import Inbox, Subscription
from beetle.runtime.pipeline.views import RevealedReport, reveal

ROOT = Path(__file__).parents[2]
FILES = sorted([*(ROOT / "beetle").rglob("*.py"), *(ROOT / "tui").rglob("*.py")])
GATE = "beetle/runtime/pipeline/views.py"
ENCODERS = {("beetle/transports/messages.py", "answered"), ("beetle/deploy/selftest/contents.py", "messages")}
"""What makes an answer frame that holds a report, by file and function; the self-test decodes its own."""


class Uses(ast.NodeVisitor):
    """The functions of a file that name RevealedReport other than in an annotation, or put a report into a frame."""

    def __init__(self) -> None:
        self.makers: set[str] = set()
        self.encoders: set[str] = set()
        self._function = ""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        outer, self._function = self._function, node.name
        for each in (*node.body, *node.decorator_list, *node.args.defaults, *node.args.kw_defaults):
            if each is not None:
                self.visit(each)
        self._function = outer

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_Call(self, node: ast.Call) -> None:
        if ast.unparse(node.func).endswith("WireAnswer") and any(each.arg == "report" for each in node.keywords):
            self.encoders.add(self._function)
        self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        self._named(node.id)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self._named(node.attr)
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        self._named(node.value)

    def _named(self, name: object) -> None:
        if name == "RevealedReport":
            self.makers.add(self._function)


def test_the_gate_alone_makes_a_revealed_report_and_one_place_an_answer_frame() -> None:
    makers: set[tuple[str, str]] = set()
    encoders: set[tuple[str, str]] = set()
    for path in FILES:
        text = path.read_text()
        if "RevealedReport" not in text and "WireAnswer" not in text:
            continue
        uses, where = Uses(), path.relative_to(ROOT).as_posix()
        uses.visit(ast.parse(text))
        makers |= {(where, each) for each in uses.makers}
        encoders |= {(where, each) for each in uses.encoders}
    assert makers == {(GATE, ""), (GATE, "reveal")}, "it is defined there, and made in the one function"
    assert encoders == ENCODERS


MISUSED = """
from typing import assert_never

from beetle.contracts.common import Report
from beetle.runtime.pipeline.handlers import Handler, Plain, Read, Write
from beetle.runtime.pipeline.idempotency import KeyedWrite
from beetle.runtime.pipeline.invocation import Invocation, Outcome
from beetle.runtime.pipeline.views import RawReport, RevealedReport
from beetle.transports.messages import answered


def shown(invocation: Invocation, report: RawReport) -> Report:
    revealed = invocation.reveal(None, report)
    answered(1, revealed)
    return Outcome(revealed).report


def leaked(report: RawReport) -> None:
    answered(1, report)  # refused
    Outcome(report)  # refused


def answered_again(write: KeyedWrite, read: Plain, invocation: Invocation) -> RevealedReport:
    return write.once(lambda: read.handle(invocation, None))  # refused


def kind(handler: Handler) -> str:
    match handler:
        case Read() | Write() | Plain():
            return "of a batch"
        case _:
            assert_never(handler)  # refused
"""


def test_a_report_that_has_not_passed_the_gate_fails_type_checking(tmp_path: Path) -> None:
    (tmp_path / "misused.py").write_text(MISUSED)
    settings = {"include": ["."], "extraPaths": [str(ROOT)], "pythonVersion": "3.11", "typeCheckingMode": "strict"}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [Path(sys.executable).with_name("pyright"), "-p", tmp_path, "--pythonpath", sys.executable]
    checked = subprocess.run([*command, "--outputjson"], capture_output=True, timeout=120)
    found = json.loads(checked.stdout)["generalDiagnostics"]
    refused = [number for number, line in enumerate(MISUSED.splitlines()) if line.endswith("# refused")]
    assert [(each["range"]["start"]["line"], each["severity"]) for each in found] == [(n, "error") for n in refused]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    found = open_store(str(tmp_path / "beetle.db"), "profile-server-linux-dev-full")
    yield found
    found.store.close()


def seeing(*views: ViewName) -> Caller:
    """One principal, as it may see what it asks for."""
    return Caller("agent", "principal", OPERATOR_CAPABILITIES, views, "in_process", "one", "agent-main")


POLICY = {"action": "pause", "topic": "tea", "reason": "not now"}
ONE = ("long_term.policy", POLICY)
BATCH = ("batch", {"requests": [{"op": "long_term.policy", "args": POLICY}]})


def policy(opened: Opened, request: tuple[str, Any], caller: Caller) -> tuple[dict[str, Any], bool]:
    """The policy that a request set, as the caller sees it, and whether it was set before."""
    report, repeated = opened.dispatcher.dispatch(Call(*request, caller, idempotency_key="key"))
    plain = to_plain(report)
    return (plain["reports"][0] if "reports" in plain else plain)["policies"][0], repeated


@pytest.mark.parametrize("request_", [ONE, BATCH], ids=["one", "batch"])
def test_a_repeated_report_passes_the_gate_as_its_caller_is_now(opened: Opened, request_: tuple[str, Any]) -> None:
    first, repeated = policy(opened, request_, seeing("host_ui"))
    assert (first["topic"], first["reason"], repeated) == ("tea", "not now", False)
    again, repeated = policy(opened, request_, seeing("operator_audit"))
    assert (again["topic"], again["reason"], repeated) == (None, None, True)
    assert {**again, "topic": "tea", "reason": "not now"} == first


def test_a_batch_shows_each_report_as_the_caller_may_see_it(opened: Opened) -> None:
    shown, repeated = policy(opened, BATCH, seeing("operator_audit"))
    assert (shown["topic"], shown["reason"], repeated) == (None, None, False)


def test_what_opens_and_ends_a_subscription_passes_the_gate(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    revealed: list[str] = []

    def noting(report: Any, *more: Any) -> RevealedReport:
        revealed.append(report.sub)
        return reveal(report, *more)

    monkeypatch.setattr(invocation, "reveal", noting)
    caller = seeing("host_ui")._replace(transport="unix_socket")
    report, subscription = opened.dispatcher.subscribe(Call("subscribe", {"topics": ["lifecycle"]}, caller), Inbox())
    held: dict[str, Subscription] = {subscription.sub: subscription}
    ended = opened.dispatcher.unsubscribe(Call("unsubscribe", {"sub": subscription.sub}, caller), held)
    assert revealed == [subscription.sub, subscription.sub]
    assert to_plain(report)["sub"] == to_plain(ended)["sub"] == subscription.sub
    assert held == {} and opened.dispatcher.hub.count == 0
