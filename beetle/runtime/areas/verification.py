"""Verifying a whole store: the event log, what each plane checks of its own, the recall index, the pages."""

from __future__ import annotations

from beetle.domain.chain import chain_hash
from beetle.runtime.areas.evidence import damage
from beetle.runtime.areas.evidence.damage import Issue
from beetle.runtime.host import log_head
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.planes import table
from beetle.runtime.planes.evidence import INDEXED
from beetle.store import columns, evidence, verify
from beetle.store.engine.progress import Progress
from beetle.store.engine.transaction import Reading
from beetle.store.verify import CHAIN, INDEX, PAGES, SCHEMA, Finding

MOST = 1000
"""Findings of a space's evidence that a report holds."""
LINKS = "derived_refs"
"""The step that looks at the links between planes."""


def run(invocation: Invocation, tx: Reading, *, pages: bool) -> tuple[dict[str, int], list[Finding]]:
    """Rows that each check looked at, and what they found."""
    progress = invocation.progress
    planes = [plane.verified for plane in table.PLANES if plane.verified is not None]
    checks = {step: check for each in planes for step, check in each.checks.items()}
    opened = {step: check for each in planes for step, check in each.opened.items()}
    progress.plan((SCHEMA, CHAIN, *checks, LINKS, INDEX, *((PAGES,) if pages else ()), *opened))
    checked: dict[str, int] = {}
    for each in planes:
        checked |= each.rows(tx)
    progress.step(SCHEMA)
    findings = verify.schema(tx)
    checked[CHAIN], broken = verify.chain(tx, chain_hash, progress)
    findings.extend(broken)
    findings.extend(_signed(invocation, tx)[1])
    for step, check in checks.items():
        progress.step(step)
        findings.extend(check(tx))
    progress.step(LINKS)
    for each in planes:
        findings.extend(each.links(tx))
    findings.extend(columns.damaged(tx))
    checked[INDEX], missing = verify.index(tx, table.indexed_tables(), progress)
    findings.extend(missing)
    if pages:
        checked[PAGES] = tx.value("PRAGMA page_count")
        progress.step(PAGES)
        findings.extend(verify.pages(tx))
    for step, check in opened.items():
        progress.step(step)
        checked[step], closed = check(invocation, tx)
        findings.extend(closed)
    return checked, findings


def run_space(invocation: Invocation, tx: Reading) -> tuple[dict[str, int], list[Finding]]:
    """As `run`, of what the caller may know of its own space: what another owner keeps is neither counted nor named.

    The event log's chain runs through all spaces: of it is told only that it is broken. Pages belong to no space.
    """
    planes = [plane.verified for plane in table.PLANES if plane.verified is not None]
    invocation.progress.plan(damage.STEPS)
    _, broken = verify.chain(tx, chain_hash, _silent())
    findings = [found._replace(subject="the log", problem="the hash chain is broken") for found in broken]
    findings += [
        found._replace(subject="the log", problem="is not what was signed") for found in _signed(invocation, tx)[1]
    ]
    space = evidence.find_space(tx, invocation.space_id)
    counts = table.counts(invocation, tx, space)
    checked = {name: getattr(counts, name) for name in ("turns", "messages", "derived_refs")}
    checked["skills"] = counts.runtime_skills
    checked["facts"] = counts.facts + counts.stale_facts + counts.superseded_facts + counts.deleted_facts
    if space is None:
        return checked, findings
    for issue in damage.issues(tx, invocation.key, space, None, INDEXED, invocation.progress):
        if issue.derived is None or table.is_known(invocation, tx, space, issue.derived):
            findings.append(Finding(LINKS if issue.derived else "evidence", _named(issue), issue.problem))
        if len(findings) >= MOST:
            break
    for each in planes:
        findings.extend(each.of_space(tx, space, invocation.sight))
    return checked, findings


def unsigned_events(invocation: Invocation, tx: Reading) -> int | None:
    """How many of the event log's last rows no signature covers yet; None where none can be relied on."""
    return _signed(invocation, tx)[0]


def _signed(invocation: Invocation, tx: Reading) -> tuple[int | None, list[Finding]]:
    return log_head.check(invocation.shared.identity, invocation.shared.store.store_id, tx)


def _silent() -> Progress:
    """How far the walk is would tell how much others have written."""
    progress = Progress()
    progress.plan((CHAIN,))
    return progress


def _named(issue: Issue) -> str:
    """What an issue is about: a ref, or a conversation."""
    if issue.derived is not None:
        return issue.derived
    where = issue.where
    if issue.ref is not None or where is None:
        return issue.ref or issue.message_id or ""
    return f"conversation {where.channel_id}/{where.conversation_id}"
