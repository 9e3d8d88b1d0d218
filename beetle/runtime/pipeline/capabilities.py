"""Which capabilities are visible: what the profile allows, what this build contains, what the caller may."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

from beetle.contracts.capabilities import APART, CAPABILITY_NAMES
from beetle.contracts.errors import CapabilityHidden, Forbidden, PrivacyDenied
from beetle.contracts.names import ViewName
from beetle.contracts.operations import OPERATIONS, Operation
from beetle.runtime.host.caller import Caller
from beetle.runtime.host.profile import Profile

if TYPE_CHECKING:
    from beetle.contracts.memory import Capability

APART_NAMES = frozenset(each.name for each in APART)
"""What opens a view or the daemon itself: it is there even where no row of the table asks for it."""
OWNERS = frozenset({"private.read", "transcript.raw"})
OWNERS_GRANT = (
    'capabilities = ["admin", "inspect", "transcript", "transcript.raw", "private.read"] and '
    'views = ["host_ui", "raw_owner"]'
)
"""What makes a principal the owner: `admin` makes it an operator, and to others the rest opens nothing."""
OWNERS_WAY = (
    f"an operator is not the owner: in beetle.toml give your uid a [principals.NAME] with {OWNERS_GRANT}, then start "
    "or reload the daemon (see `beetle help configuration`); or open the store with MemoryRuntime"
)
"""What the operator does who is also the owner."""
GRANT_ASKED = f"ask the operator to give this principal {OWNERS_GRANT}; see `beetle help configuration`"
"""What a principal does who should be the owner."""
VIEW_CAPABILITIES: Mapping[str, str] = {"raw_owner": "transcript.raw"}


@cache
def operations_of(capability: str) -> tuple[str, ...]:
    """The operations that a capability opens."""
    return tuple(row.name for row in OPERATIONS if row.capability == capability)


class Catalog:
    """The capability catalog of one runtime."""

    def __init__(self, profile: Profile) -> None:
        self._allowed = frozenset(profile.capabilities.allowed)
        self._transports = frozenset(profile.transports.allowed)

    def hidden(self, capability: str) -> str | None:
        """Why the profile or the build hides a capability, or None."""
        if capability not in self._allowed:
            return "this profile does not allow it"
        if capability not in APART_NAMES and not operations_of(capability):
            return "this build does not contain it"
        return None

    def check(self, row: Operation, caller: Caller) -> None:
        """Whether the caller may use an operation.

        Raises:
            CapabilityHidden: the profile, the build or the transport hides it.
            Forbidden: this caller was not granted it, or not the view that it is for.
        """
        if caller.transport not in row.exposed or caller.transport not in self._transports:
            raise CapabilityHidden(operation=row.name, reason=f"it is not served over {caller.transport}")
        if not row.capability:
            return
        if (reason := self.hidden(row.capability)) is not None:
            raise CapabilityHidden(operation=row.name, reason=reason, capability=row.capability)
        if row.capability not in caller.capabilities:
            raise Forbidden(
                reason=f"{row.name} needs the capability {row.capability!r}, which {caller.name} does not have",
                hint=_how_to_grant(caller, row.capability),
                capability=row.capability,
            )
        if row.effect == "admin":
            self._check_admin(row, caller)
        if row.view == "owner" and not self.grants("raw_owner", caller):
            raise Forbidden(
                reason=f"{row.name} is for the view raw_owner, which {caller.name} may not see",
                hint=_way_to_raw(caller),
                view="raw_owner",
            )

    def _check_admin(self, row: Operation, caller: Caller) -> None:
        """What changes the daemon itself is for who answers for it, whatever else a caller was granted."""
        if (reason := self.hidden("admin")) is not None:
            raise CapabilityHidden(operation=row.name, reason=reason, capability="admin")
        if not caller.is_operator or "admin" not in caller.capabilities:
            raise Forbidden(
                reason=f"{row.name} changes the daemon itself, and {caller.name} is not an operator",
                hint="ask as the daemon's own user or root, or as a principal that the configuration grants admin",
                capability="admin",
            )

    def check_view(self, view: ViewName, caller: Caller) -> None:
        """Whether the caller may ask for a view.

        Raises:
            PrivacyDenied: it may not.
        """
        if not self.grants(view, caller):
            granted = ", ".join(each for each in caller.views if self.grants(each, caller)) or "none"
            hint = f"views of this caller: {granted}"
            if view == "raw_owner":
                hint += f"; {_way_to_raw(caller)}"
            raise PrivacyDenied(reason=f"{caller.name} may not see the view {view}", hint=hint, view=view)

    def grants(self, view: ViewName, caller: Caller) -> bool:
        """Whether the caller may see a view."""
        needed = VIEW_CAPABILITIES.get(view)
        granted = needed is None or (caller.is_operator and needed in caller.capabilities)
        return view in caller.views and granted

    def check_private(self, caller: Caller) -> None:
        """Whether the caller may take private material out: who may see the raw view and read the private plane.

        Raises:
            PrivacyDenied: it may not.
        """
        self.check_view("raw_owner", caller)
        if "private.read" not in caller.capabilities:
            raise PrivacyDenied(
                reason=f"{caller.name} may not take private material out",
                hint="leave include_private out, or ask as a caller that is granted private.read",
                capability="private.read",
            )

    def shown_to(self, caller: Caller) -> dict[str, Capability]:
        """The catalog as a caller sees it."""
        return {name: self._entry(name, caller) for name in CAPABILITY_NAMES}

    def visible(self, row: Operation, caller: Caller) -> bool:
        """Whether `check` would let the caller through."""
        try:
            self.check(row, caller)
        except (CapabilityHidden, Forbidden):
            return False
        return True

    def _entry(self, name: str, caller: Caller) -> Capability:
        from beetle.contracts.memory import Capability

        reason = self.hidden(name)
        if reason is None and name not in caller.capabilities:
            reason = "this caller was not granted it"
        return Capability(visible=reason is None, reason=reason, operations=operations_of(name))


def _way_to_raw(caller: Caller) -> str:
    if caller.kind == "device":
        return "no device may see it; ask as the owner"
    return OWNERS_WAY if caller.is_operator else GRANT_ASKED


def _how_to_grant(caller: Caller, capability: str) -> str:
    if capability in OWNERS:
        return _way_to_raw(caller)
    if caller.kind == "device":
        return "ask an operator to grant it with `beetle device update`, whose --capabilities replace the ones before"
    return "ask the operator to grant it in [principals.NAME] capabilities"


def view_for(row: Operation, caller: Caller) -> ViewName:
    """What an operation without a view of its own is seen through: only what the caller was granted.

    What is meant for a model takes the model's view where the caller has it; who has no view sees an audit's.
    Who may use an operation for the owner was granted the owner's view: the catalog has checked it.
    """
    if row.view == "owner":
        return "raw_owner"
    if row.view == "model" and "model_context" in caller.views:
        return "model_context"
    for view in caller.views:
        if view != "raw_owner":
            return view
    return "operator_audit"
