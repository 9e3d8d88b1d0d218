"""Which scheduled snapshots are kept: what the configuration says, and for the rest the profile."""

from __future__ import annotations

from beetle.domain.retention import Policy
from beetle.runtime.host.config import Snapshots
from beetle.runtime.host.profile import Budgets


def policy_of(budgets: Budgets, configured: Snapshots) -> Policy:
    """The policy of a daemon with this profile and configuration."""
    return Policy(
        budgets.snapshots_newest if configured.keep_newest is None else configured.keep_newest,
        budgets.snapshots_hourly if configured.keep_hourly is None else configured.keep_hourly,
        budgets.snapshots_daily if configured.keep_daily is None else configured.keep_daily,
        budgets.snapshots_weekly if configured.keep_weekly is None else configured.keep_weekly,
    )
