"""identity.renew: another identity takes the place of one that is lost.

The key file comes first, the store's record of it second, in one transaction with all that follows from it. Who is
interrupted between the two finds a key file that the store does not know, and begins again with that one.
"""

from __future__ import annotations

import base64
import hmac
from collections.abc import Mapping

from beetle.contracts.codec import format_us, pack, replace
from beetle.contracts.common import Lifecycle
from beetle.contracts.control import VerifyFinding
from beetle.contracts.errors import BeetleError, Conflict, IntegrityViolation
from beetle.contracts.refs import format_ref
from beetle.contracts.repairing import IdentityRenewReport, IdentityRenewRequest
from beetle.domain.digest import keyed
from beetle.named_tuple import NamedTuple
from beetle.runtime.areas import verification
from beetle.runtime.host import log_head, signed_text
from beetle.runtime.host.identity import GIVEN_UP, Keys, State, Successor, fingerprint_of
from beetle.runtime.host.signed_text import HEAD
from beetle.runtime.pipeline.handlers import Handler, Plain
from beetle.runtime.pipeline.invocation import Invocation
from beetle.store import private, reseal, seal_checks
from beetle.store.engine import exchange
from beetle.store.engine.presence import KEY_FILE
from beetle.store.engine.progress import Progress
from beetle.store.engine.store import Store
from beetle.store.engine.transaction import Reading
from beetle.store.engine.write_transaction import Sealing, WriteTransaction
from beetle.store.event_log import record_signed_head
from beetle.store.private import FormerIdentity
from beetle.store.reseal import Judged
from beetle.store.seals import Sealer
from beetle.store.verify import Finding

FINDINGS_SHOWN = 100
REFS_SHOWN = 1000
TOKEN_BYTES = 16
RENEWED = "identity_renewed"


class Look(NamedTuple):
    """What there is before another identity takes over."""

    state: State
    check: str | None
    public_key: bytes | None
    candidate: str | None
    closes: int
    closed: int
    refs: tuple[str, ...]
    judged: Judged
    findings: list[Finding]


class Renewed(NamedTuple):
    """What became of it, in the transaction that recorded the new identity."""

    judged: Judged
    head_signed: bool
    lifecycle: Lifecycle


def renew(invocation: Invocation, request: IdentityRenewRequest) -> IdentityRenewReport:
    """A dry run looks and changes nothing; with its token the identity is replaced."""
    shared = invocation.shared
    with shared.lifecycle.alone(invocation.operation.name):
        look = _look(invocation)
        report = _report(look, request)
        if request.dry_run:
            renewable = look.state in GIVEN_UP and not (_is_stuck(invocation, look.state) or _is_own(look))
            return replace(report, token=_token(invocation, look) if renewable else None)
        _check(invocation, request, look)
        invocation.check("the identity was renewed")
        with shared.store.held():
            successor = _successor(invocation)
            done = _take_over(invocation, look, successor)
    return replace(
        report,
        changed=True,
        device=successor.keys.fingerprint,
        proven=done.judged.proven,
        unproven=done.judged.unproven,
        broken=done.judged.broken,
        head_signed=done.head_signed,
        kept_as=successor.kept_as,
        lifecycle=done.lifecycle,
    )


def _look(invocation: Invocation) -> Look:
    """What a verification finds that needs no identity, what would be closed, and what the seals prove."""
    shared = invocation.shared
    identity = shared.identity
    state = identity.state
    lost = state in GIVEN_UP
    found = identity.found() if state == "wrong" else None
    with invocation.reading() as tx:
        sealed = private.sealed_counts(tx)
        closed = sealed.closed_items + sealed.closed_texts
        closes = sealed.items + sealed.texts - closed if lost else 0
        named = private.sealed_refs(tx, REFS_SHOWN, all_sealed=lost)
        judged, findings = Judged(), list[Finding]()
        if lost:
            # Its steps are parts of one of this.
            inside = invocation._replace(progress=Progress(lambda step: None))
            findings = verification.run(inside, tx, pages=True)[1]
            if found is not None and _is_head_sound(invocation, tx, found):
                # A restore has carried the log over from a store that had this identity.
                findings = [each for each in findings if each.check != log_head.CHECK]
            if shared.store.sealer is not None:
                judged = reseal.judge(tx, shared.store.sealer)
        return Look(
            state=state,
            check=private.recorded_check(tx),
            public_key=private.public_key(tx),
            candidate=identity.fingerprint if state == "usable" else None if found is None else found.fingerprint,
            closes=closes,
            closed=closed + closes,
            refs=tuple(format_ref(plane, name) if plane else name for plane, name in named),
            judged=judged,
            findings=findings,
        )


def _is_head_sound(invocation: Invocation, tx: Reading, successor: Keys) -> bool:
    """Whether the log ends as the lost identity has signed, or the one that takes its place."""
    shared = invocation.shared
    return not log_head.check(shared.identity, shared.store.store_id, tx, also=successor.public)[1]


def _report(look: Look, request: IdentityRenewRequest) -> IdentityRenewReport:
    lost = look.state in GIVEN_UP
    return IdentityRenewReport(
        dry_run=request.dry_run,
        changed=False,
        state=look.state,
        former=fingerprint_of(look.public_key) if lost and look.public_key is not None else None,
        device=look.candidate,
        closes=look.closes,
        closed=look.closed,
        closed_refs=look.refs,
        proven=look.judged.proven,
        unproven=look.judged.unproven,
        broken=look.judged.broken,
        found=len(look.findings),
        findings=tuple(
            VerifyFinding(check=each.check, subject=each.subject, problem=each.problem)
            for each in look.findings[:FINDINGS_SHOWN]
        ),
    )


def _is_own(look: Look) -> bool:
    """Whether the key file that is there is that of the identity which would be given up for it."""
    return look.public_key is not None and look.candidate == fingerprint_of(look.public_key)


def _is_stuck(invocation: Invocation, state: State) -> bool:
    """Whether the secret comes from outside, and what came is none."""
    return invocation.shared.identity.is_credential and state != "wrong"


def _token(invocation: Invocation, look: Look) -> str:
    """Stands for the caller and what it is shown: a former and a next identity, what is closed, what is wrong."""
    shown = (look.state, look.check, look.candidate, look.closes, look.refs, list(map(tuple, look.findings)))
    data = pack((invocation.caller.name, *shown))
    return base64.urlsafe_b64encode(keyed(invocation.key, "renew identity", data)[:TOKEN_BYTES]).decode()


def _check(invocation: Invocation, request: IdentityRenewRequest, look: Look) -> None:
    """Whether it may be done.

    Raises:
        Conflict: the identity is not lost; the token is of another state.
        IntegrityViolation: something is wrong with the store.
    """
    identity = invocation.shared.identity
    if look.state == "usable":
        raise Conflict(
            reason="the device identity works: it is not replaced",
            hint="back up its key file, apart from the store",
            state=look.state,
        )
    said, advice = identity.problem(look.state) or ("the device identity cannot be used", "try again")
    if look.state not in GIVEN_UP:
        hint = f"{advice}; to give it up all the same, move the key file away first"
        raise Conflict(reason=f"{said}: it exists, and is not replaced", hint=hint, state=look.state)
    if _is_stuck(invocation, look.state):
        hint = "give the service a new credential beetle-identity and start it again; then renew the identity"
        raise Conflict(reason=f"{said}; it is a systemd credential, which cannot be made here", hint=hint)
    if _is_own(look):
        raise Conflict(
            reason="the key file that is there is this store's own, and what the store has recorded of it is damaged",
            hint="close the store and open it again: the record is made anew, and nothing is closed",
            device=look.candidate,
        )
    if (look.findings or look.judged.broken) and not request.despite_findings:
        first = "".join(f", {each.check}: {each.subject} {each.problem}" for each in look.findings[:1])
        raise IntegrityViolation(
            reason=f"store.verify finds {len(look.findings)}{first}, and {look.judged.broken} rows have a seal that "
            "does not fit; nothing was changed",
            hint="`beetle help store` says how to repair them; with despite_findings they remain",
            findings=len(look.findings),
        )
    assert request.token is not None, "a request without dry_run needs it"
    if not hmac.compare_digest(request.token.encode(), _token(invocation, look).encode()):
        raise Conflict(
            reason="what would be closed or taken over is not what the dry run has shown",
            hint="run it again with dry_run, look at what it says, and give the new token",
        )


def _successor(invocation: Invocation) -> Successor:
    """The next identity, whose key file is on disk.

    Raises:
        Conflict: the lost one came back meanwhile.
        StorageFull, StoreReadOnly: its file cannot be made.
    """
    try:
        found = invocation.shared.identity.successor()
    except OSError as error:
        path = error.filename or invocation.shared.store.settings.path + KEY_FILE
        hint = f"nothing was changed: see that the folder can be written, and that {path} is no folder; then try again"
        raise exchange.unwritable(path, error, hint) from error
    if found is None:
        raise Conflict(reason="the state of the key file has changed just now", hint="look at it again with dry_run")
    return found


def _take_over(invocation: Invocation, look: Look, successor: Successor) -> Renewed:
    """Record the successor and all that follows from it, in one transaction; the store is held."""
    shared = invocation.shared
    store = shared.store
    before = store.sealer
    assert before is not None, "a store that can be written is sealed"
    sealer = Sealer(successor.sealing, before.weak)
    done: list[Renewed] = []

    def adopt(tx: WriteTransaction) -> None:
        if private.recorded_check(tx) != successor.check:
            done[:] = [_record(invocation, tx, look, successor, (before, sealer))]

    store.seal_with(Sealing(sealer, adopt))
    try:
        # Not through the store, which is held.
        store.writer.write(_nothing, grows=False)
    except BaseException:
        if not _is_recorded(store, successor.check):
            store.seal_with(Sealing(before))
            raise
    store.seal_with(Sealing(sealer))
    shared.identity.recheck(successor.check)
    return done[0]


def _record(
    invocation: Invocation, tx: WriteTransaction, look: Look, successor: Successor, sealers: tuple[Sealer, Sealer]
) -> Renewed:
    shared = invocation.shared
    # While the former public key is the one that is known.
    sound = _is_head_sound(invocation, tx, successor.keys)
    judged = reseal.seal_anew(tx.unnoted(), *sealers)
    seal_checks.adopt(tx, sealers[1])
    was_known = private.is_known(tx) or look.closes > 0
    public = private.public_key(tx)
    former = FormerIdentity(private.recorded_check(tx) or private.UNKNOWN_CHECK, public, tx.now) if was_known else None
    private.succeed(tx, successor.check, successor.keys.public, former)
    tx.log(
        invocation.own_event(
            "lifecycle",
            RENEWED,
            former=None if public is None else fingerprint_of(public),
            device=successor.keys.fingerprint,
            closed=look.closes,
            proven=judged.proven,
            unproven=judged.unproven,
            broken=judged.broken,
            findings=len(look.findings),
        )
    )
    if sound:
        head = tx.head
        text = signed_text.sign(successor.keys, HEAD, digest=head.digest, store=shared.store.store_id, rows=head.seq)
        record_signed_head(tx, text)
    number = invocation.number_of(tx.logged[-1:])
    told = Lifecycle(operation=invocation.operation.name, changed=True, at=format_us(tx.now), event_id=number)
    return Renewed(judged, sound, told)


def _is_recorded(store: Store, check: str) -> bool:
    """Whether the store knows the successor: another write may have taken it in."""
    try:
        with store.read() as tx:
            return private.recorded_check(tx) == check
    except BeetleError:
        return False


def _nothing(tx: WriteTransaction) -> None:
    """What has to be done comes with any write."""
    del tx


HANDLERS: Mapping[str, Handler] = {"identity.renew": Plain(renew)}
