"""The memory harness gate falls when memory is broken: each subject's fixtures notice a defect of their own kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from beetle.contracts.harness import HarnessRunRequest, Subject
from beetle.domain import governance as rules
from beetle.domain import projection, tool_experience
from beetle.harness.gates import run
from beetle.runtime.areas.governance import judging
from beetle.runtime.areas.recall import search
from beetle.runtime.areas.skills import procedural
from beetle.runtime.pipeline import views
from tests.harness.recorded import OWN

Break = Callable[[pytest.MonkeyPatch], None]


def finds_nothing(patch: pytest.MonkeyPatch) -> None:
    """Recall answers with no hit at all."""
    before = search.find
    empty: Any = lambda invocation, tx, asked: before(invocation, tx, asked)._replace(hits=())  # noqa: E731
    patch.setattr("beetle.runtime.areas.recall.recall.find", empty)


def fences_nothing(patch: pytest.MonkeyPatch) -> None:
    """Stored text enters the block as it is."""
    patch.setattr(projection, "escape", lambda text: text)


def hides_nothing(patch: pytest.MonkeyPatch) -> None:
    """The redaction gate lets everything through."""
    patch.setattr(views, "withheld", lambda visibility, state, viewer: None)


def shows_private(patch: pytest.MonkeyPatch) -> None:
    """Everybody is taken for the space's own agent."""
    patch.setattr(views.Viewer, "__new__", _own(views.Viewer.__new__))


def _own(make: Any) -> Any:
    def made(
        kind: Any, view: Any, own_agent: bool = False, operator: bool = False, include_private: bool = False
    ) -> Any:
        return make(kind, view, True, operator, include_private)

    return made


def keeps_disabled_skills(patch: pytest.MonkeyPatch) -> None:
    """What is disabled or revised stays in the index as it was."""
    patch.setattr(procedural, "index", lambda tx, space, skill, revision: None)


def believes_at_once(patch: pytest.MonkeyPatch) -> None:
    """One success makes a tool known."""
    patch.setattr(tool_experience, "SITTINGS", 1)


def believes_the_weaker(patch: pytest.MonkeyPatch) -> None:
    """A weaker word overwrites a stronger one."""
    patch.setattr(rules, "STRENGTH", dict.fromkeys(rules.STRENGTH, 1))


def never_supersedes(patch: pytest.MonkeyPatch) -> None:
    """Every word on a topic stands beside the one before."""
    patch.setattr(judging, "judge", lambda case: rules.Verdict("accepted", "created"))


DEFECTS: dict[Subject, tuple[Break, ...]] = {
    "recall": (finds_nothing,),
    "projection": (fences_nothing,),
    "privacy": (hides_nothing, shows_private),
    "procedural": (keeps_disabled_skills,),
    "tool_experience": (believes_at_once,),
    "temporal": (believes_the_weaker, never_supersedes),
}


@pytest.mark.parametrize(
    ("subject", "defect"), [(subject, each) for subject, defects in DEFECTS.items() for each in defects]
)
def test_a_defect_is_noticed_by_the_fixtures_of_its_subject(
    monkeypatch: pytest.MonkeyPatch, subject: Subject, defect: Break
) -> None:
    names = tuple(each.name for each in OWN.fixtures if each.subject == subject)
    request = HarnessRunRequest(suite="memory", fixtures=names, backends=("in-memory",))
    assert run(request).passed
    defect(monkeypatch)
    report = run(request)
    assert not report.passed
    assert [each.subject for each in report.subjects if each.passed < each.runs] == [subject]
