"""The dependencies of a runtime: what the composition root passes beside the store and its profile."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from beetle.named_tuple import NamedTuple
from beetle.runtime.host.config import Model, Snapshots
from beetle.runtime.host.replica import Source
from beetle.store.clock_steps import since_boot

if TYPE_CHECKING:
    from beetle.contracts.harness import HarnessRunReport, HarnessRunRequest


def clock() -> int:
    """Microseconds since the epoch."""
    return time.time_ns() // 1000


class Dependencies(NamedTuple):
    """Where time and ids come from, and what the configuration says of the machine.

    `clock` answers microseconds since the epoch, `elapsed` since some moment: where they disagree, the clock was moved.
    `ids` answers so many random bytes, for the ids of records; keys,
    salts and nonces never come from it. Only tests give others. `skill_dirs` are the mounted agent-skill folders,
    `model` is who answers maintenance, `harness` what runs fixtures, `require_signed_skills` refuses unsigned uploads.
    `schedules` are the configured cron expressions of jobs by their names, `time_zone` the zone in which they are read,
    None for this machine's, which `zone_variable`, $TZ, may name. `snapshots` says where they are and which are
    kept. `replicated` is whether the configuration names a replica, and `replica` opens that of a store to be
    restored from.
    """

    clock: Callable[[], int] = clock
    ids: Callable[[int], bytes] = os.urandom
    elapsed: Callable[[], int] = since_boot
    skill_dirs: tuple[str, ...] = ()
    model: Model | None = None
    require_signed_skills: bool = False
    harness: Callable[[HarnessRunRequest], HarnessRunReport] | None = None
    schedules: Mapping[str, str] = MappingProxyType({})
    time_zone: str | None = None
    zone_variable: str = ""
    snapshots: Snapshots = Snapshots()
    replica_url: str | None = None
    replica: Callable[[str], Source] | None = None


SYSTEM_DEPENDENCIES = Dependencies()
"""The system's clock and random source, no mounted skills, no model."""
