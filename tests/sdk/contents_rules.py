"""Rules over the table of contents: it is built anew, whatever has become of the evidence since it last was."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import rule

from tests.sdk.continuity_rules import ContinuityRules
from tests.sdk.looking import contents
from tests.sdk.machine import OWNERS, callers, owners, picks
from tests.sdk.transcript_rules import conversations


class ContentsRules(ContinuityRules):
    """What it shows while days still wait, every look around compares."""

    @rule(who=callers, dry_run=st.booleans())
    def build(self, who: str, dry_run: bool) -> None:
        args = {"dry_run": dry_run}
        if who != "owner":
            self.refused("forbidden", "admin.rebuild_toc", args, who=who)
            return
        before = self.fingerprints()
        report = self.ask("admin.rebuild_toc", args)
        assert self.fingerprints() == before
        if dry_run:
            assert report["changed_nodes"] == 0
            return
        assert self.ask("admin.rebuild_toc", {})["changed_nodes"] == 0
        for owner in OWNERS:
            contents(self, owner, self.spaces[owner], built=True)

    @rule(owner=owners, conversation=conversations, pick=picks)
    def build_and_mask(self, owner: str, conversation: str, pick: int) -> None:
        """What is masked is gone before anything is built anew, and back as soon as it is unmasked."""
        self.ask("admin.rebuild_toc", {})
        for action in ("mask", "unmask"):
            self.step(owner, "owner", conversation, pick, pick, action, False)
            contents(self, owner, self.spaces[owner])
