"""The coverage-guided fuzzer: `python -m tests.fuzz TARGET --seconds N` (needs tests/fuzz/requirements.txt).

It begins with the seeds of the target and with every case, and goes on with what reached new code: half of its inputs
are the target's own changes, which keep sums and signatures right, half are libFuzzer's. What breaks the contract is
written to the folder of finds with a report of executions and coverage; `python -m tests.fuzz TARGET FILE…` feeds files
again, without a fuzzer.
"""

from __future__ import annotations

import argparse
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path
from random import Random

from tests.fuzz.targets import TARGETS

CASES = Path(__file__).parent / "cases"
SLOWEST_S = 60
"""By the clock, for one input: many times what any takes on a busy machine."""
MOST_MIB = 1_500
MOST_FINDS = 50


def main() -> int:
    """Fuzz, or replay; the process's exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__.split("\n")[0])
    parser.add_argument("target", choices=[*TARGETS, "all"])
    parser.add_argument("files", nargs="*", type=Path, help="feed these inputs instead of fuzzing")
    parser.add_argument("--seconds", type=int, default=60, help="CPU time that each target is fuzzed for")
    parser.add_argument("--work", type=Path, default=Path("build/fuzz"), help="where corpus and finds are kept")
    parser.add_argument("--seed", type=int, default=0, help="of the fuzzer's choices; 0 takes another one each time")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.files:
        return _replay(given.target, given.files)
    if given.inside:
        return _fuzz(given.target, given.seconds, given.work, given.seed)
    return max(_started(each, given) for each in (TARGETS if given.target == "all" else [given.target]))


def _replay(name: str, files: list[Path]) -> int:
    from tests.fuzz.targets import opened

    with tempfile.TemporaryDirectory() as folder, opened(name, Path(folder)) as target:
        for each in files:
            print(each)
            target(each.read_bytes())
    return 0


def _started(name: str, given: argparse.Namespace) -> int:
    """Run the fuzzer in a process of its own: libFuzzer ends the process that it runs in."""
    finds = given.work / name / "finds"
    finds.mkdir(parents=True, exist_ok=True)
    before = {each.name for each in finds.iterdir()}
    words = [sys.executable, "-m", "tests.fuzz", name, "--inside"]
    words += ["--seconds", str(given.seconds), "--work", str(given.work), "--seed", str(given.seed)]
    began, worked = time.monotonic(), _worked()
    log = given.work / name / "log"
    with open(log, "wb") as file:
        code = subprocess.run(words, stdout=file, stderr=subprocess.STDOUT, check=False).returncode
    new = sorted({each.name for each in finds.iterdir()} - before)
    last = [line for line in log.read_text(errors="replace").splitlines() if line.startswith(("#", "stat::", "Done"))]
    print(f"{name}: exit {code}, {time.monotonic() - began:.0f} s, {_worked() - worked:.0f} s of CPU")
    for line in [*last[-8:], *(f"found {finds / each}" for each in new)]:
        print(f"  {line}")
    return 1 if code or new else 0


def _worked() -> float:
    """CPU seconds of the processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _fuzz(name: str, seconds: int, work: Path, seed: int) -> int:
    import atheris

    # What a function imports when it is first called is watched too.
    with atheris.instrument_imports(include=["beetle", "tomllib", "yaml"]):
        from tests.fuzz.contract import watched
        from tests.fuzz.targets import opened

        target = opened(name, Path(tempfile.mkdtemp(prefix="fuzz-")))
        with watched() as defects:
            corpus, finds = work / name / "corpus", work / name / "finds"
            corpus.mkdir(parents=True, exist_ok=True)
            _plant(target.seeds(), corpus)
            end = time.process_time() + seconds

            def one(data: bytes) -> None:
                try:
                    target(data)
                    defects.check()
                except Exception as error:  # noqa: BLE001 - whatever comes out is a find, and the fuzzer goes on
                    if _keep(finds, data, error):
                        traceback.print_exc()
                    target.renew()
                if time.process_time() > end:
                    # libFuzzer's own word for an orderly end, with its figures.
                    os.kill(os.getpid(), signal.SIGUSR1)

            def change(data: bytes, most: int, number: int) -> bytes:
                dice = Random(number)
                if dice.random() < 0.5:
                    return atheris.Mutate(data, most)
                made = target.changed(dice, bytes(data))
                return made if len(made) <= most else atheris.Mutate(data, most)

            words = [
                sys.argv[0], f"-max_len={target.most_bytes}", f"-timeout={SLOWEST_S}", f"-rss_limit_mb={MOST_MIB}",
                f"-artifact_prefix={finds}/", "-print_final_stats=1", f"-seed={seed}", str(corpus),
                *([str(CASES / name)] if (CASES / name).is_dir() else []),
            ]  # fmt: skip
            atheris.Setup(words, one, custom_mutator=change)
            atheris.Fuzz()
    return 0


def _keep(finds: Path, data: bytes, error: Exception) -> bool:
    """Put an input by where it failed, one for each place; whether the place is new."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{type(error).__name__} {Path(last.filename).stem} {last.name} {last.lineno} {str(error)[:60]}"
    name = "".join(each if each.isalnum() else "-" for each in where)
    if len(list(finds.iterdir())) >= MOST_FINDS or (finds / name).exists():
        return False
    (finds / name).write_bytes(data)
    return True


def _plant(seeds: list[bytes], corpus: Path) -> None:
    import hashlib

    for each in seeds:
        (corpus / hashlib.sha256(each).hexdigest()[:16]).write_bytes(each)


if __name__ == "__main__":
    os.environ.setdefault("PYTHONDONTWRITEBYTECODE", "1")
    sys.exit(main())
