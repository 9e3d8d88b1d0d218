"""The build's self-test: it passes here, and whatever is not as it should be makes it fail."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from beetle.contracts.errors import NotFound
from beetle.contracts.operations import OPERATIONS
from beetle.deploy import selftest
from beetle.deploy.selftest import contents, serving, stores, workspace
from beetle.deploy.selftest.workspace import CheckFailed, Workspace, temporary_workspace
from beetle.store import recall_index
from beetle.store.index_tail import IndexTail
from tests.trees import make_tree

from .conftest import REPOSITORY, CommandLine

NAMES = [each.name for each in selftest.CHECKS]
ASK = ("doctor", "--self-test")


@pytest.fixture
def room(folder: Path) -> Iterator[Workspace]:
    with temporary_workspace({**os.environ, "TMPDIR": str(folder)}) as made:
        yield made


def only(monkeypatch: pytest.MonkeyPatch, *checks: selftest.Check) -> None:
    """Only these checks, which are as many as expected."""
    monkeypatch.setattr(selftest, "CHECKS", checks)
    monkeypatch.setattr(selftest, "EXPECTED", len(checks))


def well(_: Workspace) -> str:
    return "all of it"


def test_it_passes_here_without_touching_a_store_or_leaving_anything(beetle: CommandLine) -> None:
    (beetle.folder / "tmp").mkdir()
    said = beetle.process(
        *ASK, TMPDIR=str(beetle.folder / "tmp"), BEETLE_STORE=beetle.store, BEETLE_SOCKET=beetle.socket
    )
    assert (said.code, said.err) == (0, ""), said.out + said.err
    *lines, last = said.out.splitlines()
    assert [line.split()[:2] for line in lines] == [["ok", name] for name in NAMES]
    assert last == f"{selftest.EXPECTED} of {selftest.EXPECTED} checks passed"
    assert sorted(each.name for each in beetle.folder.iterdir()) == ["beetle.toml", "tmp"]
    assert not list((beetle.folder / "tmp").iterdir())
    assert not processes_that_name(str(beetle.folder))


def processes_that_name(text: str) -> list[str]:
    """Command lines of running processes in which a text occurs."""
    found: list[str] = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = each.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue  # it ended just now
        if text in line:
            found.append(line)
    return found


def test_as_json_it_tells_each_check_and_the_numbers(beetle: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    def ill(_: Workspace) -> str:
        raise CheckFailed("it is broken")

    only(monkeypatch, selftest.Check("one", "that one works", well), selftest.Check("two", "that two works", ill))
    said = beetle.run("--json", *ASK)
    assert said.code == 1
    told = said.json
    seconds = [each.pop("seconds") for each in told["checks"]]
    assert all(each >= 0 for each in seconds)
    assert told == {
        "expected": 2,
        "ran": 2,
        "passed": 1,
        "failed": ["two"],
        "checks": [
            {"name": "one", "outcome": "ok", "detail": "all of it"},
            {"name": "two", "outcome": "failed", "detail": "it is broken"},
        ],
    }


def test_it_passes_as_json_too_and_says_no_more_than_that(beetle: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    only(monkeypatch, *(each for each in selftest.CHECKS if each.name in ("contracts", "store-sqlite", "tree")))
    told = beetle.run("--json", *ASK).json
    assert (told["expected"], told["ran"], told["passed"], told["failed"]) == (3, 3, 3, [])
    assert told["checks"][2]["detail"] == "not applicable: not a built tree"


FAILURES: list[tuple[Callable[[], Exception], str]] = [
    (lambda: CheckFailed("it is broken"), "it is broken"),
    (lambda: NotFound(kind="skill", name="n"), "not_found: no skill 'n' in this scope"),
    (lambda: OSError(28, "No space left on device", "/tmp/x"), "No space left on device: /tmp/x"),
    (lambda: ImportError("No module named 'apsw'"), "this build leaves something out: No module named 'apsw'"),
]


@pytest.mark.parametrize(("error", "text"), FAILURES, ids=lambda each: each if isinstance(each, str) else "")
def test_a_check_that_fails_shows_and_the_others_still_run(
    beetle: CommandLine, monkeypatch: pytest.MonkeyPatch, error: Callable[[], Exception], text: str
) -> None:
    def ill(_: Workspace) -> str:
        raise error()

    only(monkeypatch, selftest.Check("one", "that one works", ill), selftest.Check("two", "that two works", well))
    said = beetle.run(*ASK)
    assert said.code == 1
    assert said.out == f"failed   one            {text}\nok       two            all of it\n1 of 2 checks failed\n"


def test_a_defect_ends_it_and_says_in_which_check(beetle: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    def defect(_: Workspace) -> str:
        raise KeyError("x")

    only(monkeypatch, selftest.Check("one", "that one works", defect), selftest.Check("two", "that two works", well))
    with pytest.raises(KeyError) as caught:
        beetle.run(*ASK)
    assert caught.value.__notes__ == ["failed: the self-test ended with its check 'one'"]


@pytest.mark.parametrize("gone", [NAMES[0], NAMES[-1]])
def test_a_check_that_is_silently_not_there_makes_it_fail(
    beetle: CommandLine, monkeypatch: pytest.MonkeyPatch, gone: str
) -> None:
    quick = [each._replace(run=well) for each in selftest.CHECKS if each.name != gone]
    monkeypatch.setattr(selftest, "CHECKS", tuple(quick))
    said = beetle.run(*ASK)
    assert said.code == 1
    expected = selftest.EXPECTED
    assert said.out.splitlines()[-1].startswith(f"{expected - 1} checks ran, and {expected} are expected")
    assert beetle.run("--json", *ASK).json["passed"] == expected - 1


def test_the_checks_have_names_of_their_own_and_say_what_they_prove() -> None:
    assert len(set(NAMES)) == len(NAMES) == selftest.EXPECTED
    assert all(each.proves for each in selftest.CHECKS)
    # A frozen build is compiled without assertions: nothing there may rest on one.
    for file in (REPOSITORY / "beetle/deploy/selftest").glob("*.py"):
        assert "assert " not in file.read_text(), file.name


def unusable_folders(folder: Path) -> dict[str, str]:
    file = folder / "file"
    file.touch()
    closed = folder / "closed"
    closed.mkdir(0o500)
    found = {"a file": str(file), "nothing": str(folder / "missing"), "no place for folders": "/proc"}
    # Root may write anywhere.
    return found if os.getuid() == 0 else {**found, "read-only": str(closed)}


def test_where_no_folder_can_be_made_it_is_a_typed_error(beetle: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    for what, path in unusable_folders(beetle.folder).items():
        monkeypatch.setenv("TMPDIR", path)
        said = beetle.run(*ASK)
        assert (said.code, said.error[0], said.out) == (8, "store_read_only", ""), what
        assert path in said.error[1] and "TMPDIR" in said.error[2]


def test_a_full_disk_is_told_apart_from_a_folder_that_cannot_be_written() -> None:
    assert workspace._no_folder("/tmp", OSError(28, "No space left on device")).key == "storage_full"


def test_the_temporary_folder_is_the_one_of_tmpdir_and_the_users_own(folder: Path) -> None:
    with temporary_workspace({"TMPDIR": str(folder)}) as made:
        assert made.folder.parent == folder
        assert made.folder.stat().st_mode & 0o777 == 0o700
    assert not made.folder.exists()


@contextmanager
def refused(text: str) -> Iterator[None]:
    with pytest.raises(CheckFailed) as caught:
        yield
    assert text in str(caught.value)


def test_an_operation_without_a_handler_or_one_too_many_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contents, "HANDLERS", {k: v for k, v in contents.HANDLERS.items() if k != "hello"})
    with refused("operation and handler do not match: hello"):
        contents.contracts()
    monkeypatch.setattr(contents, "OPERATIONS", OPERATIONS[:-1])
    with refused(f"{len(OPERATIONS) - 1} operations are there, and {len(OPERATIONS)} should be"):
        contents.contracts()


def test_an_operation_whose_method_is_missing_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = (OPERATIONS[0]._replace(method="no_such_method"), *OPERATIONS[1:])
    monkeypatch.setattr(contents, "OPERATIONS", rows)
    with refused("has no method no_such_method"):
        contents.contracts()


def test_a_slow_messagepack_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    from msgpack import fallback

    monkeypatch.setattr(contents.msgpack, "Unpacker", fallback.Unpacker)
    with refused("without its compiled part"):
        contents.messages()


def test_an_error_key_without_a_class_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contents, "ERRORS", {k: v for k, v in contents.ERRORS.items() if k != "conflict"})
    with refused("error key and class do not match: conflict"):
        contents.errors()


def test_a_command_that_lost_its_words_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    silent = {words: each._replace(help="") for words, each in contents.COMMANDS.items()}
    monkeypatch.setattr(contents, "COMMANDS", silent)
    with refused("does not say what it does"):
        contents.commands()


def test_a_missing_profile_and_one_that_allows_something_else_are_found(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from beetle.runtime.host import profile

    def copied(*skipped: str) -> Path:
        target = folder / f"copy{len(skipped)}"
        (target / "snapshots").mkdir(parents=True)
        for file in [*(REPOSITORY / "profiles").glob("*.toml"), *(REPOSITORY / "profiles/snapshots").iterdir()]:
            if file.name not in skipped:
                (target / file.relative_to(REPOSITORY / "profiles")).write_bytes(file.read_bytes())
        return target

    def use(where: Path) -> None:
        monkeypatch.setattr(profile, "_shipped", lambda: where)
        monkeypatch.setattr(contents, "profiles_folder", lambda _: where)

    use(copied("profile-server-linux-dev-full.toml"))
    with refused("4 profiles are there, and 5 should be"):
        contents.profiles()
    where = copied()
    use(where)
    assert contents.profiles().endswith("golden snapshot says")
    file = where / "profile-linux-device-compact-memory.toml"
    file.write_text(file.read_text().replace("recall_limit = ", "recall_limit = 1"))
    profile._shipped_profile.cache_clear()  # a process reads a file of the build once
    with refused("does not allow what its golden snapshot says"):
        contents.profiles()
    for each in (where / "snapshots").iterdir():
        each.unlink()
    (where / "snapshots").rmdir()
    assert contents.profiles() == "5 profiles"


def test_a_missing_migration_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    known = contents.available()
    for found in ([], [*known, known[0]._replace(number=3, name="0003_late")], [known[0]._replace(sql=" \n")]):
        monkeypatch.setattr(contents, "available", lambda found=found: found)
        with pytest.raises(CheckFailed, match="migration"):
            contents.migrations()


def test_a_store_that_forgets_is_found(monkeypatch: pytest.MonkeyPatch, room: Workspace) -> None:
    monkeypatch.setattr(recall_index, "append", lambda *_, **__: None)
    monkeypatch.setattr(IndexTail, "lists", lambda _, __, expressions: [[] for _ in expressions])
    with refused("was not recalled"):
        stores.in_memory()


def test_content_that_an_erasure_leaves_is_found(monkeypatch: pytest.MonkeyPatch, room: Workspace) -> None:
    """A copy of the store that someone makes beside it holds what the store itself has erased."""
    held = stores._holds
    copies: list[bytes] = []

    def copying(folder: Path, word: str) -> bool:
        found = held(folder, word)
        if found and not copies:
            copies.append((folder / "b.db-wal").read_bytes())
            (folder / "b.db.copy").write_bytes(copies[0])
        return found

    monkeypatch.setattr(stores, "_holds", copying)
    with refused("sqlite: erased content is still in the store's files"):
        stores.erasure(room)


def test_a_store_that_lets_a_second_opener_in_is_found(monkeypatch: pytest.MonkeyPatch, room: Workspace) -> None:
    from beetle.store.engine import lock

    monkeypatch.setattr(lock.fcntl, "flock", lambda *_: None)
    with refused("opened a second time"):
        stores.lock(room)


def test_an_old_sqlite_and_one_that_was_built_otherwise_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "OLDEST_SQLITE", (99, 1))
    with refused("is older than 99.1"):
        stores.sqlite()
    monkeypatch.setattr(stores, "OLDEST_SQLITE", (3, 51))
    monkeypatch.setattr(stores, "OPTIONS", ("ENABLE_WONDERS",))
    with refused("ENABLE_WONDERS"):
        stores.sqlite()


DAEMONS = {
    "ends at once": "import sys; sys.exit('beetle: store_corrupt: no')",
    "says that it is ready and serves nobody": (
        "import os, socket, time\n"
        "socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b'READY=1', os.environ['NOTIFY_SOCKET'])\n"
        "time.sleep(600)"
    ),
}


def standing_in(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    monkeypatch.setattr(serving, "_program", lambda: [sys.executable, "-c", code])


def test_a_daemon_that_does_not_start_is_found_with_what_it_said(
    monkeypatch: pytest.MonkeyPatch, room: Workspace
) -> None:
    standing_in(monkeypatch, DAEMONS["ends at once"])
    with refused("ended with 1 before it was ready: beetle: store_corrupt: no"):
        serving.daemon(room)


def test_a_daemon_that_serves_nobody_is_found_and_gone_afterwards(
    monkeypatch: pytest.MonkeyPatch, room: Workspace
) -> None:
    standing_in(monkeypatch, DAEMONS["says that it is ready and serves nobody"])
    check = selftest.Check("daemon", "that it serves", serving.daemon)
    assert selftest._run(check, room)[0] is False
    assert not processes_that_name(str(room.folder))


def test_a_daemon_that_does_not_end_cleanly_is_found_and_gone_afterwards(
    monkeypatch: pytest.MonkeyPatch, room: Workspace
) -> None:
    kill = subprocess.Popen.kill
    monkeypatch.setattr(subprocess.Popen, "terminate", kill)
    with refused("the daemon ended with -9 on SIGTERM"):
        serving.daemon(room)
    assert not processes_that_name(str(room.folder))


def test_the_child_knows_nothing_of_the_users_own_store_and_service_manager(room: Workspace) -> None:
    theirs = {"BEETLE_STORE": "/x", "XDG_RUNTIME_DIR": "/x", "WATCHDOG_USEC": "1", "NOTIFY_SOCKET": "/x", "HOME": "/x"}
    env = serving._environment(room.folder, room._replace(env={**theirs, "LANG": "C"}))
    assert not {name for name, value in env.items() if value == "/x"}
    assert (env["LANG"], env["HOME"]) == ("C", str(room.folder))


def test_a_folder_that_is_too_long_for_a_socket_is_told(folder: Path) -> None:
    long = folder / ("x" * 100)
    long.mkdir()
    with temporary_workspace({"TMPDIR": str(long)}) as made, refused("too long a path"):
        serving.daemon(made)


def built(monkeypatch: pytest.MonkeyPatch, folder: Path, *names: str) -> None:
    """A build in which these modules stand on the list."""
    (folder / "MODULES").write_text("".join(f"{each}\n" for each in names))
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    monkeypatch.setattr(contents, "package_folder", lambda: folder)


def test_a_build_that_lost_a_module_is_found(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    built(monkeypatch, folder, *contents._loaded(), "beetle.__main__", "beetle.no_such_module")
    with refused("beetle.no_such_module cannot be imported"):
        contents.modules()


def test_a_build_whose_list_of_modules_is_not_whole_is_found(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    built(monkeypatch, folder, *(each for each in contents._loaded() if each != "beetle.store.engine.writer"))
    with refused("modules that no list names: beetle.store.engine.writer"):
        contents.modules()


def test_a_build_without_its_list_of_modules_is_found(
    monkeypatch: pytest.MonkeyPatch, folder: Path, room: Workspace
) -> None:
    built(monkeypatch, folder)
    (folder / "MODULES").unlink()
    check = selftest.Check("modules", "", lambda _: contents.modules())
    assert selftest._run(check, room) == (False, f"No such file or directory: {folder / 'MODULES'}")


def test_every_module_of_the_source_is_on_the_list() -> None:
    names = contents._module_names()
    assert {
        "beetle",
        "beetle.__main__",
        "beetle.store.engine.writer",
        "beetle.deploy.selftest.contents",
        "beetle_tui",
    } <= names
    assert set(contents._loaded()) <= names


def test_a_checkout_without_the_consoles_library_leaves_the_console_out(monkeypatch: pytest.MonkeyPatch) -> None:
    find = contents.importlib.util.find_spec
    absent: Any = lambda name: None if name == "textual" else find(name)  # noqa: E731 - one line
    monkeypatch.setattr(contents.importlib.util, "find_spec", absent)
    assert contents.console() == "not applicable: textual is not installed"
    assert contents.modules().endswith("of the console not, as textual is not installed")


def test_what_the_console_says_is_wrong_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    app = pytest.importorskip("beetle_tui.app")
    monkeypatch.setattr(app, "start_check", lambda: "the theme did not change")
    with refused("the theme did not change"):
        contents.console()


FILES = {"beetle": b"#!program", "_internal/x.so": b"\x7fcode", "_internal/beetle/0001.sql": b"CREATE"}
TAMPERED: dict[str, tuple[Callable[[Path], object], str]] = {
    "a flipped byte": (lambda t: (t / "_internal/x.so").write_bytes(b"\x7fcodf"), "x.so has other content"),
    "an extra file": (lambda t: (t / "_internal/y.so").touch(), "y.so does not belong there"),
    "a missing file": (lambda t: (t / "_internal/beetle/0001.sql").unlink(), "0001.sql is missing"),
    "a wrong mode": (lambda t: (t / "beetle").chmod(0o777), "beetle has the mode 777, not 755"),
}


@pytest.fixture
def tree(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A hand-made tree that this process seems to run from."""
    made = make_tree(folder / "tree", FILES)
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    monkeypatch.setattr(sys, "executable", str(made / "beetle"))
    monkeypatch.setattr(sys, "_MEIPASS", str(made / "_internal"), raising=False)
    return made


def test_a_tree_as_it_was_built_passes(tree: Path) -> None:
    assert contents.built_tree().endswith(": 3 files as they were built")


@pytest.mark.parametrize(("tamper", "told"), TAMPERED.values(), ids=TAMPERED)
def test_a_tree_that_was_tampered_with_is_seen(tree: Path, tamper: Callable[[Path], object], told: str) -> None:
    tamper(tree)
    with refused(told):
        contents.built_tree()


def test_of_many_differences_the_first_are_told_and_the_others_counted(tree: Path) -> None:
    for number in range(5):
        (tree / f"x{number}").touch()
    with refused("x2 does not belong there, and 2 things more"):
        contents.built_tree()


def test_a_tree_that_lost_its_manifest_is_no_reason_to_look_away(tree: Path, room: Workspace) -> None:
    (tree / "MANIFEST").unlink()
    passed, detail = selftest._run(selftest.CHECKS[-1], room)
    assert (passed, detail) == (False, f"No such file or directory: {tree / 'MANIFEST'}")


def test_the_build_that_unpacks_itself_has_no_tree_to_look_at(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "_MEIPASS", str(tree.parent / "elsewhere"))
    assert contents.built_tree() == "not applicable: not a built tree"


def test_a_page_of_the_manual_that_the_build_left_out_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(contents.manual, "_folder", lambda: tmp_path)
    (tmp_path / "README.md").write_text("| [store.md](store.md) | files |\n")
    (tmp_path / "store.md").write_text("\n")
    with refused("the manual is empty, or one of its pages"):
        contents.commands()
