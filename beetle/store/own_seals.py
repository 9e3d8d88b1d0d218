"""Comparing the rows of one space with their seals, as far as a caller may know."""

from __future__ import annotations

from collections.abc import Iterator

from beetle.named_tuple import NamedTuple
from beetle.store.engine.transaction import Reading
from beetle.store.seal_checks import WITHOUT_IDENTITY, problem_of
from beetle.store.seals import SEAL_SQL, Sealer, Shape, shapes
from beetle.store.sight import Sight

MOST = 100


class Owned(NamedTuple):
    """Rows of a space: the ref of what each belongs to, and whether only who sees private facts may know of it."""

    table: str
    sql: str


OWNED = (
    Owned("fact", "SELECT 'long_term:' || t.record_id, t.visibility <> 'shared', t.* FROM fact t WHERE t.space = ?"),
    *(
        Owned(
            name,
            f"SELECT 'long_term:' || f.record_id, f.visibility <> 'shared', t.* FROM {name} t "  # noqa: S608 - our names
            "JOIN fact f ON f.fact = t.fact WHERE f.space = ?",
        )
        for name in ("fact_body", "fact_revision")
    ),
    Owned("skill", "SELECT 'procedural:' || t.name, 0, t.* FROM skill t WHERE t.space = ?"),
    Owned(
        "skill_revision",
        "SELECT 'procedural:' || s.name, 0, t.* FROM skill_revision t "
        "JOIN skill s ON s.skill = t.skill WHERE s.space = ?",
    ),
    Owned(
        "proposal",
        "SELECT 'proposal ' || t.proposal_id, t.visibility <> 'shared', t.* FROM proposal t WHERE t.space = ?",
    ),
    Owned(
        "proposal_body",
        "SELECT 'proposal ' || p.proposal_id, p.visibility <> 'shared', t.* FROM proposal_body t "
        "JOIN proposal p ON p.proposal = t.proposal WHERE p.space = ?",
    ),
    Owned("tool_registry", "SELECT 'tool registry ' || t.registry_id, 0, t.* FROM tool_registry t WHERE t.space = ?"),
    Owned(
        "registered_tool",
        "SELECT 'tool registry ' || r.registry_id, 0, t.* FROM registered_tool t "
        "JOIN tool_registry r ON r.tool_registry = t.tool_registry WHERE r.space = ?",
    ),
    Owned("registry_skill", "SELECT 'uploaded skill ' || t.skill_id, 0, t.* FROM registry_skill t WHERE t.space = ?"),
    *(
        Owned(
            name,
            f"SELECT 'uploaded skill ' || s.skill_id, 0, t.* FROM {name} t "  # noqa: S608 - our names
            "JOIN registry_skill s ON s.registry_skill = t.registry_skill WHERE s.space = ?",
        )
        for name in ("registry_skill_text", "registry_version")
    ),
    Owned(
        "registry_version_body",
        "SELECT 'uploaded skill ' || s.skill_id, 0, t.* FROM registry_version_body t "
        "JOIN registry_version v ON v.registry_version = t.registry_version "
        "JOIN registry_skill s ON s.registry_skill = v.registry_skill WHERE s.space = ?",
    ),
    Owned("chain", "SELECT 'chain ' || t.chain_key, 0, t.* FROM chain t WHERE t.space = ?"),
    Owned(
        "thought_mark",
        "SELECT 'thought ' || o.position || ' of chain ' || c.chain_key, 0, t.* FROM thought_mark t "
        "JOIN thought o ON o.thought = t.thought JOIN chain c ON c.chain = o.chain WHERE c.space = ?",
    ),
    Owned(
        "chain_agent",
        "SELECT 'agent ' || t.agent_id || ' of chain ' || c.chain_key, 0, t.* FROM chain_agent t "
        "JOIN chain c ON c.chain = t.chain WHERE c.space = ?",
    ),
    *(
        Owned(
            name,
            f"SELECT 'agent ' || a.agent_id || ' of chain ' || c.chain_key, 0, t.* FROM {name} t "  # noqa: S608 - ours
            "JOIN chain_agent a ON a.chain_agent = t.chain_agent JOIN chain c ON c.chain = a.chain WHERE c.space = ?",
        )
        for name in ("chain_alias", "chain_agent_key")
    ),
    Owned("chunk", "SELECT 'chunks:' || t.chunk_id, 0, t.* FROM chunk t WHERE t.space = ?"),
    Owned(
        "chunk_access",
        "SELECT 'chunks:' || c.chunk_id, 0, t.* FROM chunk_access t JOIN chunk c ON c.chunk = t.chunk "
        "WHERE c.space = ?",
    ),
    Owned("removed_chunk", "SELECT 'removed chunk ' || t.chunk_id, 0, t.* FROM removed_chunk t WHERE t.space = ?"),
)
"""What a caller may know of by a ref of its own. A row that was removed is of no space any more: operators are told."""


def broken(tx: Reading, sealer: Sealer, space: int, sight: Sight) -> Iterator[tuple[str, str]]:
    """(ref, problem) of rows that are not what the runtime wrote."""
    known = shapes(tx)
    told: set[tuple[str, str]] = set()
    for each in OWNED:
        for ref, private, *values in tx.rows(each.sql, space):
            if private and not sight.private:
                continue
            problem = _problem(tx, sealer, known[each.table], tuple(values))
            if problem is not None and (ref, problem) not in told:
                told.add((ref, problem))
                yield ref, problem
            if len(told) >= MOST:
                return


def _problem(tx: Reading, sealer: Sealer, shape: Shape, values: tuple[object, ...]) -> str | None:
    seal = tx.value(SEAL_SQL, shape.name, shape.row(sealer, values))
    problem = problem_of(sealer, shape.name, shape.sealed_of(values), seal)
    return None if problem == WITHOUT_IDENTITY else problem
