"""Proposals and the harness at a profile that has neither: hidden, and said so, at every door."""

from __future__ import annotations

import pytest

from tests.conformance.doors import Door, Plain

PROPOSAL = {"kind": "skill_disable", "target": "pump", "rationale": "it is loud"}


def test_a_profile_without_the_sandbox_hides_proposing(door: Door) -> None:
    error = door.refused("capability_hidden", "evolve.propose", {"proposals": [PROPOSAL]})
    assert "this profile does not allow it" in error.message
    assert "beetle memory capabilities" in error.hint


def test_a_profile_without_the_sandbox_hides_what_looks_at_proposals(door: Door) -> None:
    door.refused("capability_hidden", "evolve.list", {})
    door.refused("capability_hidden", "evolve.preview", {"proposal_id": "p1"})


def test_a_profile_without_the_sandbox_hides_submitting(door: Door) -> None:
    door.refused("capability_hidden", "evolve.submit", {"proposal_ids": ["p1"]})


def test_a_profile_without_the_harness_hides_it(door: Door) -> None:
    door.refused("capability_hidden", "harness.run", {})


@pytest.mark.parametrize("args", [{}, {"suite": "memory"}, {"folder": "/nowhere"}], ids=["all", "suite", "folder"])
def test_what_is_hidden_is_hidden_before_its_arguments_are_read(door: Door, args: Plain) -> None:
    """Nobody learns of a folder by asking for it where the harness is hidden."""
    told = door.refused("capability_hidden", "harness.run", args)
    assert "/nowhere" not in told.message
