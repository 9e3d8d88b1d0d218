"""Rules over the store's own life: recovery everywhere; where it persists, opening again, crashes and snapshots."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import rule

from tests.sdk.contents_rules import ContentsRules
from tests.sdk.machine import callers, picks
from tests.sdk.reopened import ON_DISK
from tests.sdk.transcript_rules import ELSEWHERE


class RecoveryRules(ContentsRules):
    """What changes nothing that is remembered."""

    def furnished(self) -> None:
        """Something of every sort, by the rules themselves."""
        said = [
            ([("user", "shared"), ("assistant", "shared")], True),
            ([("tool", "shared"), ("user", "private")], False),
        ]
        self.commit("ann", "owner", "c1", "c1", said, 7)
        self.commit("ann", "agent", "x", ELSEWHERE, said, 8)
        kind = {
            "kind": "fact",
            "privacy": "shared_with_subject",
            "target": "long_term",
            "word": 9,
            "cites": 5,
            "echo": 1,
        }
        asserted, hidden = {**kind, "authority": "user_asserted"}, {**kind, "privacy": "subject_private"}
        self.candidates("ann", "owner", "c1", [
            {**asserted, "topic": "door"}, {**hidden, "authority": "host", "topic": "lamp", "word": 14},
            {**kind, "authority": "assistant_claimed", "topic": "lamp", "cites": 0},
            {**hidden, "authority": "user_asserted", "topic": "", "target": "private_garden", "cites": 0},
        ])  # fmt: skip
        self.write_skill("ann", "owner", "door", 5, False)
        self.propose("ann", "agent", "c1", "fact_correct", 0, 4, 5)
        self.propose("ann", "owner", "x", "skill_edit", 0, 4, 9)
        self.add_device("panel", ["recall", "console"])
        self.device_asks("panel")
        self.register_tools("ann", "kitchen", {"kettle": "s1"}, "global")
        used = [("kettle", "s1", "succeeded")]
        self.observe("ann", "owner", "c1", "kitchen", "global", used, 0, "turn")
        self.observe("ann", "agent", "x", "kitchen", "global", used, 1, "turn")
        self.build("owner", False)
        self.build_and_mask("ann", "c1", 0)

    @rule(who=callers, mode=st.sampled_from(("normal", "maintenance", "read_only", "safe")))
    def recover(self, who: str, mode: str) -> None:
        args = {"trigger": "operator_requested", "mode_input": {"mode": mode}}
        if who != "owner" or mode in ("read_only", "safe"):
            self.refused("forbidden", "memory.recover", args, who=who)
            return
        self.say_hello(who)
        before = self.fingerprints()
        report = self.ask("memory.recover", args)
        left = {each["step"]: each["left"] for each in report["steps"] if each["left"]}
        failed = {each["step"] for each in report["steps"] if each["outcome"] == "failed"}
        # A skill may cite what was never said: that is no damage.
        assert not failed and not left and report["recovered"], report["steps"]
        assert self.fingerprints() == before

    def say_hello(self, who: str) -> None:
        told = self.ask("hello", {}, who=who)
        catalog = self.ask("memory.capabilities", {}, who=who)["capabilities"]
        hidden = {name for name, each in catalog.items() if not each["visible"]}
        listed = {name for each in catalog.values() for name in each["operations"]}
        shown = {each["name"]: each["visible"] for each in told["operations"]}
        assert all(not shown[op] for name in hidden for op in catalog[name]["operations"])
        assert listed <= set(shown)


class AloneRules(RecoveryRules):
    """One store against its model: the cheapest one, so that runs can be long and many."""

    backends: ClassVar[tuple[str, ...]] = ("in-memory",)


@dataclass
class Taken:
    """A snapshot, and all that the machine knew when it was taken."""

    snapshot_id: str
    knew: dict[str, Any]
    kept: list[dict[str, Any]]
    devices: dict[str, str]
    granted: dict[str, list[str]]
    fingerprints: list[str]


KNOWN = ("spaces", "past")


def _is_key(name: str) -> bool:
    return name.startswith(("key of ", "old key of "))


class DiskRules(RecoveryRules):
    """Stores that persist."""

    backends: ClassVar[tuple[str, ...]] = ON_DISK

    def begun(self) -> None:
        super().begun()
        self.taken: list[Taken] = []
        self.restored: set[str] = set()

    @rule(how=st.sampled_from(("closed", "crashed", "crashed", "ended", "ended")))
    def open_again(self, how: str) -> None:
        """After a close, from a copy of the files as they stood, or after the operation that ends a runtime."""
        before = self.fingerprints()
        if how == "ended":
            self.refused("forbidden", "memory.close", {"reason": "a test asks"}, who="agent")
            assert not self.ask("memory.close", {"reason": "a test asks"})["already"]
            assert self.ask("memory.close", {"reason": "a test asks"})["already"]
            self.refused("services_unavailable", "memory.recall", {"query": "anything"})
        self.places.open_again(how == "crashed")
        assert self.fingerprints() == before

    @rule()
    def take_a_snapshot(self) -> None:
        if len(self.taken) == 2:
            return
        self.refused("forbidden", "snapshot.create", {}, who="worker")
        told = self.ask("snapshot.create", {"label": "a test asks"})["snapshot"]
        self.taken.append(
            Taken(
                told["snapshot_id"],
                {name: copy.deepcopy(getattr(self, name)) for name in KNOWN},
                [dict(place.kept) for place in self.places.all],
                dict(self.devices),
                dict(self.granted),
                self.fingerprints(),
            )
        )

    @rule(pick=picks, dry_run=st.booleans())
    def restore(self, pick: int, dry_run: bool) -> None:
        listed = self.ask("snapshot.list", {})["snapshots"]
        assert {each["snapshot_id"] for each in listed} == {each.snapshot_id for each in self.taken}
        if not self.taken:
            self.refused("not_found", "snapshot.restore", {"snapshot_id": "s-0"})
            return
        taken = self.taken[pick % len(self.taken)]
        assert self.ask("snapshot.verify", {"snapshot_id": taken.snapshot_id})["valid"]
        # As it was: what is erased again otherwise is tested in test_restore_erases.
        args = {"snapshot_id": taken.snapshot_id, "dry_run": dry_run, "keep_erased": True}
        if taken.snapshot_id in self.restored:
            # The store that this snapshot replaced stands under its name.
            self.refused("conflict", "snapshot.restore", args)
            return
        before = self.fingerprints()
        assert self.ask("snapshot.restore", args)["changed"] == (not dry_run)
        if dry_run:
            assert self.fingerprints() == before
            return
        self.restored.add(taken.snapshot_id)
        for name, known in taken.knew.items():
            setattr(self, name, copy.deepcopy(known))
        # Rights are of today: a device that was removed since is known again, and may not call.
        back = {name for name in taken.devices if name not in self.devices}
        for name in back:
            state = taken.devices[name]
            self.devices[name] = "suspended" if state == "active" else state
            self.granted[name] = taken.granted[name]
        for place, kept in zip(self.places.all, taken.kept, strict=True):
            today = {name: key for name, key in place.kept.items() if _is_key(name) and name.split()[-1] not in back}
            place.kept = {**kept, **today}
        assert self.fingerprints() == taken.fingerprints

    @rule(keep=st.sampled_from((0, 1)))
    def prune(self, keep: int) -> None:
        gone = [each.snapshot_id for each in self.taken[: len(self.taken) - keep]]
        report = self.ask("snapshot.prune", {"keep": keep, "replaced": True})
        assert set(report["removed"]) == set(gone)
        self.taken = self.taken[len(self.taken) - keep :] if keep else []
        self.restored = set()
