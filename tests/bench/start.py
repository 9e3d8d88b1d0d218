"""How fast things start, and what an idle daemon takes: from this checkout, and from what is built in dist/.

    python -m tests.bench.start [--runs N] [--profile P] [--artefacts]

For each way to start beetle: `--version`, the first answer of `serve` on a fresh store, and the idle daemon's memory;
of `beetle mcp` beside a daemon the answer to `initialize`, and its memory beside that of a bare Python; how long a host
waits for `beetle capture --hook` beside a daemon. With `--artefacts` also each file of dist/release/ where it is used:
the one file installed, the Debian package unpacked, the wheel in an environment (which needs the package index).
Medians; the runs of all ways take turns, beside `python -c pass`, so that a busy moment falls on each.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.built import ONE_FILE, TREE
from tests.mcp.host import Host
from tests.running import Daemon, memory_peak_mib, pss_mib, rss_mib

MCP_MS, MCP_MIB = 60, 20
"""What `beetle mcp` of the built tree may take until it has answered initialize, memory beside Python's own."""


def milliseconds(run: Callable[[], object]) -> float:
    """Wall time of one run."""
    started = time.perf_counter()
    run()
    return (time.perf_counter() - started) * 1000


def version(command: list[str], cache: str) -> float:
    """Milliseconds of `--version`."""
    env = {**os.environ, "BEETLE_CACHE": cache}
    return milliseconds(lambda: subprocess.run([*command, "--version"], check=True, stdout=subprocess.DEVNULL, env=env))


def first_version(command: list[str]) -> float:
    """The same where nothing is unpacked yet."""
    with tempfile.TemporaryDirectory(prefix="beetle-bench-") as folder:
        return version(command, str(Path(folder) / "cache"))


def first_answer(profile: str, command: str, cache: str) -> tuple[float, float, float]:
    """Milliseconds from starting the program to its first answer on a fresh store, then its RSS and PSS in MiB."""
    os.environ["BEETLE_CACHE"] = cache
    daemon = Daemon(profile=profile, command=command)
    started = time.perf_counter()
    with daemon, daemon.client() as client:
        client.hello()
        waited = (time.perf_counter() - started) * 1000
        return waited, rss_mib(daemon.pid), pss_mib(daemon.pid)


HOOK = {"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": "Where is the spare key?"}


def hook(command: list[str], socket: str, cache: str) -> float:
    """Milliseconds until `capture --hook` has ended, beside a daemon at this socket."""
    # Nothing of it waits in this user's own spool.
    env = {**os.environ, "BEETLE_CACHE": cache, "XDG_STATE_HOME": cache}
    words = [*command, "capture", "--hook", "--socket", socket]

    def run() -> None:
        done = subprocess.run(words, input=json.dumps(HOOK), capture_output=True, text=True, env=env, check=True)
        assert json.loads(done.stdout) == {"continue": True}, done

    return milliseconds(run)


def bare_peak_mib() -> float:
    """The most memory that a Python without a program takes."""
    program = "print(next(line for line in open('/proc/self/status') if line.startswith('VmHWM')).split()[1])"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    return int(done.stdout) / 1024


def first_initialize(command: str, socket: str, cache: str) -> tuple[float, float]:
    """Milliseconds from starting `beetle mcp` to its answer to initialize, then the most memory it took, in MiB."""
    started = time.perf_counter()
    with Host("--socket", socket, "mcp", program=command.split(), env={"BEETLE_CACHE": cache}) as host:
        waited = (time.perf_counter() - started) * 1000
        host.ask("ping")
        return waited, memory_peak_mib(host.process.pid)


def ways() -> dict[str, str]:
    """Names and commands of what can be started here."""
    found = {"checkout": f"{sys.executable} -m beetle"}
    for name, place in (
        ("tree", TREE / "beetle"),
        ("one file", ONE_FILE),
        ("stock one file", Path(f"{ONE_FILE}-stock")),
    ):
        if place.is_file():
            found[name] = str(place)
    return found


def artefacts(folder: Path) -> dict[str, str]:
    """Names and commands of what dist/release/ holds, made ready to run below `folder`."""
    release = TREE.parent / "release"
    deb, wheel = next(release.glob("*.deb")), next(release.glob("*.whl"))
    root, unpacked, venv = folder / "installed", folder / "deb", folder / "venv"
    for words in (
        [str(release / ONE_FILE.name), "install", "--root", str(root), "--profile", "compact"],
        ["dpkg-deb", "-x", str(deb), str(unpacked)],
        [sys.executable, "-m", "venv", str(venv)],
        [str(venv / "bin/pip"), "install", "--quiet", "--disable-pip-version-check", f"{wheel}[console]"],
    ):
        env = {**os.environ, "BEETLE_CACHE": str(folder / "cache")}
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL, env=env)
    return {
        "installed": str(root / "opt/beetle/current/beetle"),
        "deb": str(unpacked / "opt/beetle/current/beetle"),
        "wheel in a venv": str(venv / "bin/beetle"),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--profile", default="profile-linux-device-compact-memory")
    parser.add_argument("--artefacts", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="beetle-bench-") as folder:
        return measure(options, {**ways(), **(artefacts(Path(folder)) if options.artefacts else {})})


def measure(options: argparse.Namespace, commands: dict[str, str]) -> int:
    """Start each of these commands in turn, and print the medians."""
    starts: dict[str, list[float]] = {}
    served: dict[str, list[tuple[float, float, float]]] = {}
    with tempfile.TemporaryDirectory(prefix="beetle-bench-") as cache:
        for command in commands.values():  # whatever the system's page cache holds, it holds for all
            version(command.split(), cache)
        for _ in range(options.runs):
            bare = milliseconds(lambda: subprocess.run([sys.executable, "-c", "pass"], check=True))
            starts.setdefault("python -c pass", []).append(bare)
            for name, command in commands.items():
                starts.setdefault(name, []).append(version(command.split(), cache))
            if "one file" in commands:
                starts.setdefault("one file, first", []).append(first_version([commands["one file"]]))
        for _ in range(options.runs):
            for name, command in commands.items():
                served.setdefault(name, []).append(first_answer(options.profile, command, cache))
        spoken: dict[str, list[tuple[float, float]]] = {}
        hooked: dict[str, list[float]] = {}
        with Daemon(profile=options.profile) as daemon:
            for _ in range(options.runs):
                for name, command in commands.items():
                    spoken.setdefault(name, []).append(first_initialize(command, daemon.socket, cache))
                    hooked.setdefault(name, []).append(hook(command.split(), daemon.socket, cache))
    bare = statistics.median(starts["python -c pass"])
    print(f"{'--version':<18} {'ms':>7} {'of Python':>10}")
    for name, times in starts.items():
        print(f"{name:<18} {statistics.median(times):>7.1f} {statistics.median(times) / bare:>10.2f}")
    print(f"{'serve':<18} {'first answer, ms':>17} {'RSS MiB':>8} {'PSS MiB':>8}")
    medians = {name: [statistics.median(column) for column in zip(*runs, strict=True)] for name, runs in served.items()}
    for name, (answer, rss, pss) in medians.items():
        print(f"{name:<18} {answer:>17.1f} {rss:>8.1f} {pss:>8.1f}")
    hosted = tell_mcp(spoken)
    versions, hooks = (
        {name: statistics.median(times) for name, times in column.items()} for column in (starts, hooked)
    )
    print(f"{'capture --hook':<18} {'ended, ms':>17}")
    for name, waited in hooks.items():
        print(f"{name:<18} {waited:>17.1f}")
    print(json.dumps({"version_ms": versions, "serve": medians, "mcp": hosted, "hook_ms": hooks}))
    return 0


def tell_mcp(spoken: dict[str, list[tuple[float, float]]]) -> dict[str, list[float]]:
    """Prints the medians of `beetle mcp` beside its targets."""
    bare = bare_peak_mib()
    medians = {name: [statistics.median(column) for column in zip(*runs, strict=True)] for name, runs in spoken.items()}
    print(f"{'mcp':<18} {'initialize, ms':>17} {'more than Python, MiB':>22}")
    for name, (answer, peak) in medians.items():
        print(f"{name:<18} {answer:>17.1f} {peak - bare:>22.1f}")
    print(f"{'target, tree':<18} {MCP_MS:>17} {MCP_MIB:>22}")
    return {name: [answer, peak - bare] for name, (answer, peak) in medians.items()}


if __name__ == "__main__":
    sys.exit(main())
