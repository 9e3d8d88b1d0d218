"""doctor: install, store, machine and build, with what to do about each finding."""

from __future__ import annotations

import os
import resource
import stat
import sys
import time
from argparse import SUPPRESS, Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from beetle import __version__
from beetle.cli.finding import Finding
from beetle.cli.parser import Parser, typed_option
from beetle.cli.session import Busy, NoAnswer, answered_in_time, find_daemon, holder_in_view, typed_target
from beetle.contracts.errors import STATUS, BeetleError, DaemonUnavailable

if TYPE_CHECKING:
    from beetle.contracts.scheduler import SchedulerJob
    from beetle.deploy.selftest import Outcome
    from beetle.find import Target
    from beetle.runtime.host.config import Config
    from beetle.runtime.host.profile import Profile

BUILT_AFTER = 1_735_689_600
"""2025-01-01: no clock that is right shows an earlier time than this program has."""

OLDEST_PYTHON = (3, 11)
OWN_DESCRIPTORS = 64
"""Files that the daemon has open besides its connections: store, readers, log, sockets."""

NETWORK_FILESYSTEMS = ("nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "fuse.sshfs", "fuse.glusterfs")
LOW_SPACE_BYTES = 32 * 2**20


def fill_doctor(parser: Parser) -> None:
    """What `doctor` takes."""
    parser.add_argument(
        "--self-test", action="store_true", default=SUPPRESS,
        help="run this build's own checks instead, in a folder of their own; exit code 0 when all of them passed",
    )  # fmt: skip
    parser.add_argument(
        "--release-key", metavar="FILE", default=SUPPRESS,
        help="the release's public key (PEM, Ed25519), to check the signature of this program's files with",
    )  # fmt: skip


def run_doctor(typed: Namespace) -> int:
    """Run every check and print what was found."""
    if typed_option(typed, "self_test"):
        return run_self_test(as_json=bool(typed_option(typed, "json")))
    from beetle.cli.render import as_json
    from beetle.cli.text import screen_width, wrap

    findings = list(examine(typed, os.environ, os.getuid()))
    code = max((each.exit_code for each in findings), default=0)
    if typed_option(typed, "json"):
        shown = [{**each._asdict(), "exit_code": each.exit_code} for each in findings]
        print(as_json({"exit_code": code, "findings": shown}))
        return code
    width = screen_width()
    for each in findings:
        first, *more = wrap(each.text, " " * 20, width)
        print(f"{each.level:<8} {each.check:<10} {first.strip()}")
        for line in more:
            print(line)
        if each.advice:
            print("\n".join(wrap(f"→ {each.advice}", " " * 20, width)))
    worst = [each for each in findings if each.exit_code]
    print("All is well." if not worst else f"{len(worst)} of {len(findings)} checks want attention.")
    return code


def run_self_test(*, as_json: bool) -> int:
    """The build's self-test in a folder of its own; the user's store and socket are not looked at.

    Raises:
        StoreReadOnly, StorageFull: there is no place for that folder.
    """
    from beetle.deploy import selftest

    outcomes: list[selftest.Outcome] = []
    with selftest.temporary_workspace(os.environ) as place:
        for each in selftest.run_checks(place):
            outcomes.append(each)
            if not as_json:
                _show_outcome(each)
    failed = [each.name for each in outcomes if not each.passed]
    problem = selftest.verdict(len(outcomes), len(outcomes) - len(failed))
    if as_json:
        _print_outcomes(outcomes, failed, selftest.EXPECTED)
    else:
        print(problem or f"{len(outcomes)} of {selftest.EXPECTED} checks passed")
    return STATUS["internal"].exit_code if problem else 0


def _show_outcome(each: Outcome) -> None:
    from beetle.cli.text import screen_width, wrap

    first, *more = wrap(each.detail, " " * 24, screen_width())
    print(f"{'ok' if each.passed else 'failed':<8} {each.name:<14} {first.strip()}", *more, sep="\n", flush=True)


def _print_outcomes(outcomes: list[Outcome], failed: list[str], expected: int) -> None:
    from beetle.cli.render import as_json

    words = {True: "ok", False: "failed"}
    checks = [
        {"name": each.name, "outcome": words[each.passed], "detail": each.detail, "seconds": each.seconds}
        for each in outcomes
    ]
    passed = len(outcomes) - len(failed)
    told = {"expected": expected, "ran": len(outcomes), "passed": passed, "failed": failed, "checks": checks}
    print(as_json(told))


def examine(typed: Namespace, env: Mapping[str, str], uid: int) -> Iterator[Finding]:
    """Every finding, in the order of the checks; a check that fails outright is a finding too."""
    from beetle.cli.configuring import read_located
    from beetle.cli.doctor_tree import check_tree

    yield from _guarded("install", _check_install)
    yield from _guarded("tree", lambda: check_tree(typed_option(typed, "release_key")))
    yield from _guarded("build", _check_build)
    yield from _guarded("clock", _check_clock)
    try:
        config, place = read_located(typed_option(typed, "config"), uid)
    except BeetleError as error:
        yield Finding("config", "problem", error.message, error.hint, error.key)
        return
    found = list(_guarded("config", lambda: _check_config(config, place)))
    yield from found
    try:
        target = typed_target(typed, env, config, uid)
        profile, why = _profile(typed, config, target)
    except BeetleError as error:
        if all(each.level == "ok" for each in found):
            yield Finding("config", "problem", error.message, error.hint, error.key)
        return
    yield Finding("profile", "ok", f"{profile.name}: {why}")
    yield from _guarded("limits", lambda: _check_limits(profile))
    if target.store is not None:
        store = Path(target.store)
        yield from _guarded("folder", lambda: _check_folder(store.parent, uid))
        yield from _guarded("disk", lambda: _check_disk(store, profile))
    from beetle.cli.doctor_service import check_group, check_socket, check_spool, check_unit

    yield from _guarded("unit", lambda: check_unit(env, uid))
    yield from _guarded("group", lambda: check_group(config, target))
    yield from _guarded("spool", lambda: check_spool(env))
    sockets = list(_guarded("socket", lambda: check_socket(target)))
    yield from sockets
    if not any(each.level == "problem" for each in sockets):
        yield from _guarded("daemon", lambda: _check_store(typed, target, profile, config))


def _guarded(check: str, run: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    try:
        yield from run()
    except BeetleError as error:
        yield Finding(check, "problem", error.message, error.hint, error.key)
    except OSError as error:
        yield Finding(check, "problem", f"{error.strerror}: {error.filename}", "look at its permissions")


def _check_config(config: Config, place: str | None) -> Iterator[Finding]:
    from beetle.cli.configuring import check_located

    check_located(config, place)
    yield Finding("config", "ok", place or "no configuration file: the defaults hold")


def _profile(typed: Namespace, config: Config, target: Target) -> tuple[Profile, str]:
    from beetle.runtime.host.choosing import choose_profile, read_machine
    from beetle.runtime.host.profile import load_profile

    name = typed_option(typed, "profile") or config.daemon.profile or "auto"
    if name != "auto":
        return load_profile(name), "it was asked for"
    folder = Path(target.store).parent if target.store is not None else Path("/")
    choice = choose_profile(read_machine(folder))
    return load_profile(choice.name), choice.reasons[-1]


def _check_install() -> Iterator[Finding]:
    version = ".".join(str(part) for part in sys.version_info[:3])
    if sys.version_info < OLDEST_PYTHON:
        yield Finding("install", "problem", f"Python {version}", "install Python 3.11 or newer")
    else:
        yield Finding("install", "ok", f"beetle {__version__}, Python {version}, {sys.executable}")


def _check_build() -> Iterator[Finding]:
    """What is quick of the build's own self-test."""
    from beetle.deploy.selftest import CheckFailed, quick

    try:
        yield Finding("build", "ok", quick())
    except CheckFailed as wrong:
        yield Finding(
            "build", "problem", str(wrong), "install this build again; `beetle doctor --self-test` tells more"
        )


def _check_clock() -> Iterator[Finding]:
    now = time.time()
    shown = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now))
    if now < BUILT_AFTER:
        advice = "set it (timedatectl set-ntp true), before anything is written with wrong times"
        yield Finding("clock", "warning", f"the clock shows {shown}, which has been", advice)
    else:
        yield Finding("clock", "ok", shown)


def _check_limits(profile: Profile) -> Iterator[Finding]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = profile.budgets.connections + profile.budgets.readers * 3 + OWN_DESCRIPTORS
    if hard != resource.RLIM_INFINITY and hard < needed:
        text = f"at most {hard} open files are allowed; {profile.budgets.connections} connections need {needed}"
        advice = f"LimitNOFILE={needed} in the unit, or a higher hard limit (ulimit -Hn)"
        yield Finding("limits", "warning", text, advice)
    elif soft != resource.RLIM_INFINITY and soft < needed:
        yield Finding("limits", "ok", f"{soft} open files are allowed; the daemon raises that to the {needed} it needs")
    else:
        yield Finding("limits", "ok", f"{soft} open files are allowed, {needed} are needed")


def _check_folder(folder: Path, uid: int) -> Iterator[Finding]:
    if not folder.exists():
        yield Finding("folder", "note", f"{folder} is not there yet; it is made with mode 0700")
        return
    mode = stat.S_IMODE(folder.stat().st_mode)
    kind = _filesystem(folder)
    if not os.access(folder, os.W_OK | os.X_OK):
        advice = "make it writable for this user, or name another --store"
        yield Finding("folder", "problem", f"{folder} cannot be written by uid {uid}", advice, "store_read_only")
    elif kind in NETWORK_FILESYSTEMS:
        advice = "put the store on a local disk: its log and locks do not hold over a network"
        yield Finding("folder", "warning", f"{folder} is on a network filesystem ({kind})", advice)
    elif mode & 0o022 and not mode & stat.S_ISVTX:
        yield Finding(
            "folder", "warning", f"{folder} may be changed by others (mode {mode:04o})", f"chmod go-w {folder}"
        )
    else:
        yield Finding("folder", "ok", f"{folder} (mode {mode:04o})")


def _filesystem(folder: Path) -> str:
    """Kind of the filesystem that holds a folder: that of the mount with the longest matching path."""
    place = str(folder.resolve())
    best, kind = "", "unknown"
    try:
        lines = Path("/proc/self/mounts").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return kind
    for line in lines:
        words = line.split()
        if len(words) > 2 and f"{place}/".startswith(f"{words[1].rstrip('/')}/") and len(words[1]) >= len(best):
            best, kind = words[1], words[2]
    return kind


def _check_disk(store: Path, profile: Profile) -> Iterator[Finding]:
    from beetle.cli.text import size

    there = store.parent
    while not there.exists() and there != there.parent:
        there = there.parent
    disk = os.statvfs(there)
    free = disk.f_bavail * disk.f_frsize
    used = sum(each.stat().st_size for each in (store, Path(f"{store}-wal")) if each.exists())
    ceiling = profile.budgets.store_bytes
    text = f"{size(free)} free; the store takes {size(used)} of its {size(ceiling)}"
    if disk.f_files and not disk.f_favail:
        yield Finding("disk", "problem", "no inodes are left", "delete files on that filesystem", "storage_full")
    elif free < LOW_SPACE_BYTES:
        yield Finding("disk", "problem", text, "free space on that filesystem", "storage_full")
    elif used > ceiling * 0.9:
        advice = "delete what is no longer needed, or take a larger profile"
        yield Finding("disk", "warning", text, advice, "store_budget_exceeded")
    elif free < ceiling - used:
        advice = "free space, or take a smaller profile: the store may grow until the disk is full"
        yield Finding("disk", "warning", text, advice)
    else:
        yield Finding("disk", "ok", text)


def _check_store(typed: Namespace, target: Target, profile: Profile, config: Config) -> Iterator[Finding]:
    """The running daemon's own view, or the store opened here when nobody has it."""
    try:
        client = find_daemon(typed, target)
    except (DaemonUnavailable, Busy) as error:
        yield Finding("daemon", "problem", error.message, error.hint, error.key)
        return
    if client is not None:
        try:
            with answered_in_time(client):
                told, seen = client.hello(), client.inspect()
                shows_jobs = any(each.name == "scheduler.status" and each.visible for each in told.operations)
                jobs = client.scheduler_status().jobs if shows_jobs else ()
                shows_replica = any(each.name == "replication.status" and each.visible for each in told.operations)
                replica = client.replication_status() if shows_replica else None
        except (NoAnswer, DaemonUnavailable) as error:
            yield Finding("daemon", "problem", error.message, error.hint, error.key)
            return
        yield Finding("daemon", "ok", f"running (pid {told.pid}) at {client.path} with {told.profile}")
        if told.version != __version__:
            advice = "restart it: beetle stop, beetle start"
            yield Finding("daemon", "warning", f"the daemon is version {told.version}, this is {__version__}", advice)
        yield from _job_findings(jobs)
        yield from _check_replica(config, told.profile)
        if replica is not None and (replica.state != "off" or replica.earlier_targets):
            from beetle.cli.doctor_service import replica_findings

            yield from replica_findings(replica)
        yield from _store_findings(seen.store.path, seen.store.schema, seen.operator.findings or ())
        if (told_of := seen.operator.identity) is not None:
            yield _identity_finding(told_of.state, told_of.problem, told_of.advice)
        return
    yield Finding("daemon", "note", "none runs; commands open the store themselves", "beetle start")
    yield from _check_replica(config, profile.name)
    assert target.store is not None
    holder = holder_in_view(target.store)
    if holder is not None:
        text = f"process {holder.pid} holds {target.store}, and it is not a daemon"
        yield Finding("store", "warning", text, "wait until it ends", "store_locked")
    else:
        store = target.store
        yield from _guarded("store", lambda: _check_closed_store(store, profile))


def _check_closed_store(store: str, profile: Profile) -> Iterator[Finding]:
    from beetle.store.engine.presence import store_exists

    if not store_exists(store):
        yield Finding("store", "note", f"{store} is not there yet", "the first write makes it")
        return
    from beetle.open import open_store

    opened = open_store(store, profile.name)
    try:
        report = opened.store.open_report
        state = opened.identity.state
        problem = opened.identity.problem(state, whole_path=True) or (None, None)
    finally:
        opened.store.close()
    yield from _store_findings(report.path, report.schema, report.findings)
    yield _identity_finding(state, *problem)


def _job_findings(jobs: Sequence[SchedulerJob]) -> Iterator[Finding]:
    """Background jobs whose last run failed, the model's among them."""
    failed = [each for each in jobs if each.last_error_key is not None]
    for each in failed:
        text = f"{each.job_name} failed: {each.last_error or each.last_error_key}"
        yield Finding("jobs", "warning", text, f"then: beetle scheduler run {each.job_name} --wait")
    if jobs and not failed:
        yield Finding("jobs", "ok", "no background job failed when it ran last")


def _identity_finding(state: str, problem: str | None, advice: str | None) -> Finding:
    if state == "usable":
        return Finding("identity", "ok", "the device identity can be used")
    text = f"{problem or state}; until then the private plane is closed, and receipts are unsigned"
    return Finding("identity", "warning", text, advice or "")


def _check_replica(config: Config, profile: str) -> Iterator[Finding]:
    """A replica that is wanted and that a profile leaves out. Of others the daemon tells."""
    from beetle.runtime.host.profile import load_profile

    if config.replica is not None and "replication" not in load_profile(profile).capabilities.allowed:
        text = f"[replica] names a target, and {profile} sends nothing there"
        yield Finding("replica", "warning", text, "take a larger profile: its sidecar takes 35 to 60 MiB")


def _store_findings(path: str | None, schema: int, findings: tuple[str, ...]) -> Iterator[Finding]:
    yield Finding(
        "store", "ok", f"{path or 'open'}, schema {schema}", "beetle verify walks it whole" if findings else ""
    )
    for each in findings:
        yield Finding("store", "note", each)


OWN = {"doctor": (fill_doctor, run_doctor)}
