"""The table of write governance, written from the specification's page and from nothing else."""

from __future__ import annotations

STRONGEST_FIRST = (("operator",), ("user_asserted",), ("tool_observed", "host"), ("assistant_claimed",))
AUTHORITIES = tuple(name for rank in STRONGEST_FIRST for name in rank)
PRIVACIES = ("public_runtime", "shared_with_subject", "subject_private", "soul_private")
TARGETS = ("long_term", "shared_fact", "procedural", "private_garden", "soul_candidate")
EXISTING = ("none", "same", "stronger", "equal", "weaker", "stale", "superseded", "deleted")
EVIDENCE = ("none", "user", "tool", "assistant", "masked", "deleted", "missing", "other_space")
POLICIES = ("none", "paused", "suppressed_kind", "suppressed_topic")

TAKES = {
    "long_term": "public_runtime shared_with_subject subject_private",
    "shared_fact": "public_runtime shared_with_subject",
    "procedural": "public_runtime shared_with_subject",
    "private_garden": "subject_private soul_private",
    "soul_candidate": "soul_private",
}
PRIVATE_TARGETS = ("private_garden", "soul_candidate")


def rank(authority: str) -> int:
    """0 for the strongest."""
    return next(place for place, names in enumerate(STRONGEST_FIRST) if authority in names)


def related(authority: str, existing: str) -> tuple[str, ...]:
    """The authorities that an existing record of this relation to a new one can have."""
    mine = rank(authority)
    wanted = {"stronger": lambda r: r < mine, "equal": lambda r: r == mine, "weaker": lambda r: r > mine}
    test = wanted.get(existing, lambda r: True)
    return tuple(name for name in AUTHORITIES if test(rank(name)))


def expected(
    authority: str,
    privacy: str,
    target: str,
    existing: str,
    evidence: str,
    policy: str,
    *,
    key: bool = True,
    borne: bool = True,
    removed_by: str | None = None,
    by_operator: bool = True,
    vouched: bool = False,
) -> tuple[str, str]:
    """Outcome and reason: the first row of the page's table that applies."""
    if policy in ("suppressed_kind", "suppressed_topic"):
        return "rejected", "policy_suppressed"
    if policy == "paused":
        # What is private and cannot be sealed cannot be kept until the pause ends.
        return ("rejected", "private_unavailable") if target in PRIVATE_TARGETS and not key else (
            "deferred", "policy_paused")  # fmt: skip
    if privacy not in TAKES[target].split():
        return "rejected", "privacy_target_mismatch"
    if target in PRIVATE_TARGETS and not key:
        return "rejected", "private_unavailable"
    if evidence in ("missing", "other_space"):
        return "rejected", "evidence_missing"
    if evidence in ("masked", "deleted"):
        return "rejected", "evidence_unavailable"
    if target == "soul_candidate":
        return "deferred", "soul_handoff"
    if not vouched:
        if authority == "user_asserted" and evidence != "user" and not by_operator:
            return "deferred", "needs_assertion"
        if authority == "assistant_claimed" and evidence not in ("user", "tool"):
            return "deferred", "needs_assertion"
    if not borne:
        return "deferred", "evidence_does_not_bear"
    if authority == "assistant_claimed" and not vouched:
        return "deferred", "needs_assertion"
    if existing != "same" and removed_by is not None and rank(removed_by) < rank(authority):
        return "deferred", "weaker_authority"
    return {
        "same": ("accepted", "unchanged"),
        "stronger": ("deferred", "weaker_authority"),
        "equal": ("accepted", "superseded"),
        "weaker": ("accepted", "superseded"),
    }.get(existing, ("accepted", "created"))
