"""config check, show and set, and the annotated example."""

from __future__ import annotations

import os
import stat
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beetle.__main__ import main
from beetle.cli.config_edit import changed, line_of
from beetle.contracts.errors import InvalidRequest
from beetle.runtime.host import config
from beetle.runtime.host.config import read_config
from beetle.runtime.host.profile import example_configuration

from .conftest import CommandLine

FILE = """\
# Looked after by Ada.
[daemon]
log = "stderr"   # "for now" # yes
profile = 'compact'

# Skills of the house.
[agent_skills]
dirs = [
  "/a",  # the first
  "/b",
]

[principals.voice]
uid = 1102 # the voice
capabilities = ["recall"]
"""


@pytest.fixture
def file(beetle: CommandLine, monkeypatch: pytest.MonkeyPatch) -> Path:
    found = beetle.folder / "beetle.toml"
    found.write_text(FILE)
    monkeypatch.setenv("BEETLE_CONFIG", str(found))
    return found


def test_a_file_without_an_error_is_said_to_be(beetle: CommandLine, file: Path) -> None:
    said = beetle.run("config", "check")
    assert (said.code, said.out) == (0, f"{file}: no error\n")
    other = beetle.folder / "new.toml"
    other.write_text("")
    assert beetle.run("config", "check", str(other)).out == f"{other}: no error\n"


@pytest.mark.parametrize(
    ("old", "new", "line", "field"),
    [
        ('log = "stderr"', 'lug = "stderr"', 3, "$.daemon.lug"),
        ('log = "stderr"', 'log = "relative"', 3, "$.daemon.log"),
        ("'compact'", "'compost'", 4, "$.daemon.profile"),
        ('"/a"', '"a"', 8, "$.agent_skills.dirs[0]"),
        ("uid = 1102", 'uid = "me"', 14, "$.principals.voice.uid"),
        ('["recall"]', '["recal"]', 15, "$.principals.voice.capabilities[0]"),
        ("[agent_skills]", "[agent_skill]", 7, "$.agent_skill"),
        ("[principals.voice]", "[principals.operator]", 13, "$.principals.operator"),
        ("profile =", 'group = "nobody-of-this-name"\nprofile =', 4, "$.daemon.group"),
    ],
)  # fmt: skip
def test_an_error_names_the_file_the_line_the_field_and_what_to_do(
    beetle: CommandLine, file: Path, old: str, new: str, line: int, field: str
) -> None:
    file.write_text(FILE.replace(old, new))
    said = beetle.run("config", "check")
    key, message, hint = said.error
    assert (said.code, key) == (2, "invalid_request")
    assert message.startswith(f"{file}:{line}: ") and field.partition("[")[0].removeprefix("$.") in message
    assert hint


@pytest.mark.parametrize("keys", ['[console.keys]\nrefresh = "d"', '[console]\nkeys = { refresh = "d" }'])
def test_key_bindings_are_checked_as_the_console_does_where_it_is_installed(
    beetle: CommandLine, file: Path, keys: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_text(f"{keys}\n")
    said = beetle.run("config", "check")
    assert said.error[1].startswith(f"{file}:2: $.console.keys.refresh: d is the key of ") and said.code == 2
    file.write_text(keys.replace('"d"', '"f5"'))
    assert beetle.run("config", "check").out == f"{file}: no error\n"
    monkeypatch.setattr("beetle.cli.console.LIBRARIES", ("no_such_library",))
    assert "`beetle tui` checks them" in beetle.run("config", "check").out
    assert beetle.run("--json", "config", "check").json["unchecked"] == ["console.keys"]


def test_what_is_not_toml_names_its_line(beetle: CommandLine, file: Path) -> None:
    file.write_text("[daemon]\nlog = \n")
    assert "line 2" in beetle.run("config", "check").error[1]


def test_each_value_says_where_it_comes_from(beetle: CommandLine, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BEETLE_STORE", beetle.store)
    found = beetle.run("--socket", beetle.socket, "--json", "config", "show", "--all").json
    values = {each["key"]: (each["value"], each["origin"]) for each in found["values"]}
    assert found["file"] == str(file)
    assert values["daemon.socket"] == (beetle.socket, "option --socket")
    assert values["daemon.store"] == (beetle.store, "environment $BEETLE_STORE")
    assert values["daemon.profile"] == ("compact", f"file {file}")
    assert values["daemon.group"] == (None, "default")
    assert values["principals.voice.uid"] == (1102, f"file {file}")
    assert values["snapshots.keep_daily"] == (None, "default")
    assert values["budgets.readers"] == (2, "profile profile-linux-device-compact-memory")
    text = beetle.run("config", "show").out
    assert f'agent_skills.dirs = ["/a", "/b"]  # file {file}' in text and "budgets." not in text


def test_no_secret_is_shown(beetle: CommandLine, file: Path) -> None:
    token = beetle.folder / "token"
    token.write_text("canary-token")
    token.chmod(0o600)
    file.write_text(
        f'[metrics]\nlisten = "127.0.0.1:1"\ntoken_file = "{token}"\n[model]\nkind = "ollama"\nname = "m"\n'
        f'api_key_file = "{token}"\n'
    )
    for words in (("config", "show", "--all"), ("--json", "config", "show")):
        said = beetle.run(*words)
        assert said.code == 0, said.err
        assert "canary" not in said.out and str(token) in said.out


@pytest.mark.parametrize(
    ("words", "old", "new"),
    [
        (("daemon.log", "/var/log/b.log"), 'log = "stderr"   #', 'log = "/var/log/b.log"   #'),
        (("daemon.profile", "auto"), "profile = 'compact'", 'profile = "auto"'),
        (("daemon.group", "--unset"), "", ""),
        (("daemon.profile", "--unset"), "profile = 'compact'\n", ""),
        (("agent_skills.dirs", '["/c"]'), 'dirs = [\n  "/a",  # the first\n  "/b",\n]', 'dirs = ["/c"]'),
        (("principals.voice.uid", "7"), "uid = 1102 # the voice", "uid = 7 # the voice"),
        (("principals.voice.owner_id", "7"), '["recall"]\n', '["recall"]\nowner_id = "7"\n'),
        (("snapshots.keep_daily", "3"), '["recall"]\n', '["recall"]\n\n[snapshots]\nkeep_daily = 3\n'),
    ],
)
def test_one_key_is_changed_and_nothing_else(
    beetle: CommandLine, file: Path, words: tuple[str, ...], old: str, new: str
) -> None:
    file.chmod(0o640)
    said = beetle.run("config", "set", *words)
    assert said.code == 0, said.err
    assert file.read_text() == FILE.replace(old, new)
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert [each.name for each in beetle.folder.iterdir()] == ["beetle.toml"]


def test_it_says_whether_a_reload_suffices(beetle: CommandLine, file: Path) -> None:
    assert "`beetle reload` takes it over" in beetle.run("config", "set", "snapshots.keep_daily", "3").out
    assert "next start" in beetle.run("config", "set", "snapshots.folder", "/b").out
    assert "next start of the daemon" in beetle.run("config", "set", "daemon.log", "/b.log").out
    assert "next start of the console" in beetle.run("config", "set", "console.theme", "ansi").out
    assert "says so already" in beetle.run("config", "set", "console.theme", "ansi").out
    for value, is_changed in (("a", True), ("a", False)):
        found = beetle.run("config", "set", "daemon.log", f"/{value}.log", "--json").json
        said = {"file": str(file), "key": "daemon.log", "changed": is_changed, "holds_from": "daemon_start"}
        assert found == said
    before = file.read_bytes()
    told = beetle.run("config", "set", "snapshots.keep_dayly", "--unset")
    assert (told.code, told.out) == (0, f"snapshots.keep_dayly does not stand in {file}\n")
    assert file.read_bytes() == before


@pytest.mark.parametrize(
    "words",
    [
        ("daemon.log", "relative"), ("daemon.lug", "x"), ("demon.log", "x"), ("daemon", "x"), ("daemon.log",),
        ("daemon.log", "stderr", "--unset"), ("principals.voice.uid", "me"),
        ("principals.voice.capabilities", "--unset"),
        ("scheduler.jobs", '{ snapshot = "soon" }'), ("metrics.listen", "0.0.0.0:1"), ("daemon.group", "no-such-group"),
    ],
)  # fmt: skip
def test_what_check_would_refuse_is_not_written(beetle: CommandLine, file: Path, words: tuple[str, ...]) -> None:
    said = beetle.run("config", "set", *words)
    assert (said.code, said.error[0]) == (2, "invalid_request")
    assert file.read_text() == FILE


VOICE = '[principals.voice]\nuid = 1102\ncapabilities = ["recall"]\n'


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ('[grpc]\nlisten = "x:99999"\nprincipal = "voice"\n' + VOICE, "grpc.listen"),
        ('[grpc]\nlisten = "127.0.0.1:0"\nprincipal = "nobody"\n' + VOICE, "grpc.principal"),
        ('[grpc]\nlisten = "127.0.0.1:0"\n' + VOICE, "grpc"),
        ('[daemon]\nlog = "/"\n', "daemon.log"),
    ],
)
def test_what_a_start_refuses_is_an_error(beetle: CommandLine, file: Path, text: str, field: str) -> None:
    file.write_text(text)
    said = beetle.run("config", "check")
    assert (said.code, said.error[0]) == (2, "invalid_request") and field in said.err


def test_files_that_are_missing_are_told(beetle: CommandLine, file: Path) -> None:
    file.write_text('[metrics]\nlisten = "127.0.0.1:9"\ntoken_file = "/no/token"\n')
    said = beetle.run("config", "check")
    told = "metrics.token_file: /no/token is not there, and a start needs it"
    assert (said.code, said.out) == (0, f"{file}: no error\n{told}\n")
    assert beetle.run("--json", "config", "check").json["missing"] == [told]


def test_the_first_key_makes_the_file(beetle: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    place = beetle.folder / "etc" / "beetle.toml"
    monkeypatch.setenv("BEETLE_CONFIG", str(place))
    assert beetle.run("config", "set", "daemon.profile", "compact").code == 0
    assert place.read_text() == '[daemon]\nprofile = "compact"\n'


def test_a_link_stays_one(beetle: CommandLine, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = beetle.folder / "link.toml"
    link.symlink_to(file)
    assert beetle.run("--config", str(link), "config", "set", "daemon.profile", "auto").code == 0
    assert link.is_symlink() and 'profile = "auto"' in file.read_text()


def test_a_link_to_itself_is_refused(beetle: CommandLine) -> None:
    link = beetle.folder / "link.toml"
    link.symlink_to(link.name)
    said = beetle.run("--config", str(link), "config", "set", "daemon.profile", "auto")
    assert (said.code, said.error[0]) == (2, "invalid_request") and str(link) in said.error[1]
    assert link.is_symlink() and not [each for each in beetle.folder.iterdir() if each.name.endswith(".new")]


@pytest.mark.skipif(os.getuid() != 0, reason="only root can make another user's file")
def test_the_owner_stays(beetle: CommandLine, file: Path) -> None:
    os.chown(file, 0, 1234)
    assert beetle.run("config", "set", "daemon.profile", "auto").code == 0
    assert (file.stat().st_uid, file.stat().st_gid) == (0, 1234)


def test_the_example_takes_a_key_where_it_is_commented_out(beetle: CommandLine, file: Path) -> None:
    file.write_text(example_configuration())
    assert beetle.run("config", "check").code == 0
    for key, value in (("daemon.profile", "compact"), ("metrics.token_file", "/etc/t"), ("model.kind", None)):
        if value is not None:
            assert beetle.run("config", "set", key, value).code == 0
    assert '\nprofile = "compact"\n# ' in file.read_text() and '\ntoken_file = "/etc/t"\n' in file.read_text()
    assert len(file.read_text().splitlines()) == len(example_configuration().splitlines())


def test_of_several_at_once_none_is_lost(beetle: CommandLine, file: Path) -> None:
    keys = [f"keep_{each}" for each in ("newest", "hourly", "daily", "weekly")]
    with ThreadPoolExecutor(len(keys)) as threads:
        codes = [*threads.map(lambda key: main(["config", "set", f"snapshots.{key}", "5"]), keys)]
    assert codes == [0] * len(keys)
    assert tomllib.loads(file.read_text())["snapshots"] == dict.fromkeys(keys, 5)
    assert [each.name for each in beetle.folder.iterdir()] == ["beetle.toml"]


def test_what_a_killed_one_left_is_in_nobodys_way(beetle: CommandLine, file: Path) -> None:
    left = file.with_name(".beetle.toml.new")
    left.write_text("[daemon]\n" * 9)
    assert beetle.run("config", "set", "daemon.profile", "auto").code == 0
    assert file.read_text() == FILE.replace("'compact'", '"auto"') and not left.exists()
    left.mkdir()
    said = beetle.run("config", "set", "daemon.profile", "compact")
    assert said.code != 0 and str(left) in said.err and "remove or rename" in said.err


@pytest.mark.parametrize("value", ["2026-01-01", "12:00:00", "[2026-01-01]"])
def test_a_text_that_looks_like_something_else_is_a_text(beetle: CommandLine, file: Path, value: str) -> None:
    said = beetle.run("config", "set", "principals.voice.owner_id", value)
    assert said.code == 0, said.err
    assert tomllib.loads(file.read_text())["principals"]["voice"]["owner_id"] == value


@pytest.mark.parametrize("value", ["5\nkeep_weekly = 9", "[" * 3_000, os.fsdecode(b"\xff"), "nan"])
def test_a_number_with_something_behind_it_is_refused(beetle: CommandLine, file: Path, value: str) -> None:
    said = beetle.run("config", "set", "snapshots.keep_daily", value)
    assert (said.code, said.error[0]) == (2, "invalid_request")
    assert file.read_text() == FILE and [each.name for each in beetle.folder.iterdir()] == ["beetle.toml"]


def test_line_ends_stay(beetle: CommandLine, file: Path) -> None:
    file.write_bytes(FILE.replace("\n", "\r\n").encode())
    assert beetle.run("config", "set", "snapshots.keep_daily", "3").code == 0
    assert file.read_bytes() == (FILE + "\n[snapshots]\nkeep_daily = 3\n").replace("\n", "\r\n").encode()


def uncommented(text: str) -> str:
    """The example with every key and every header in force."""
    kept: list[str] = []
    for line in text.splitlines():
        bare = line.removeprefix("# ")
        try:
            tomllib.loads(bare)
        except tomllib.TOMLDecodeError:
            continue
        kept.append(bare)
    return "\n".join(kept)


def test_the_example_has_every_key_at_a_value_that_is_taken(tmp_path: Path) -> None:
    file = tmp_path / "beetle.toml"
    file.write_text(uncommented(example_configuration()))
    tables = tomllib.loads(file.read_text())
    assert set(tables) == set(config.SECTIONS)
    # Some keys of a replica are of one kind of target, and refused beside another.
    for key in set(tables["replica"]) - {"url", "sync_interval_ms"}:
        file.write_text(changed(file.read_text(), ("replica", key), None))
    found = read_config(file, {}, os.getuid())
    for section in config.SECTIONS:
        kind = config.Principal if section == "principals" else type(getattr(found, section))
        said = tables["principals"]["NAME"] if section == "principals" else tables[section]
        assert set(said) == set(kind.__struct_fields__), section


def test_the_example_as_it_is_says_nothing(tmp_path: Path) -> None:
    file = tmp_path / "beetle.toml"
    file.write_text(example_configuration())
    assert read_config(file, {}, os.getuid()) == config.Config(file=str(file))


VALUES = st.recursive(
    st.booleans() | st.integers(-9, 9) | st.text(st.characters(codec="ascii", categories=("L", "N", "P", "S", "Z"))),
    lambda each: st.lists(each, max_size=3),
    max_leaves=4,
)


@settings(derandomize=True, max_examples=40, deadline=None)
@given(
    key=st.sampled_from(["daemon.log", "daemon.new", "agent_skills.dirs", "principals.voice.uid", "a.b.c"]),
    value=VALUES,
)
def test_any_value_is_set_and_the_rest_stays(key: str, value: Any) -> None:
    path = tuple(key.split("."))
    done = changed(FILE, path, value)
    here: Any = tomllib.loads(done)
    for each in path:
        here = here[each]
    assert here == value
    comments = [line for line in FILE.splitlines() if line.startswith("#")]
    assert [line for line in done.splitlines() if line.startswith("#")] == comments


@pytest.mark.parametrize("text", ["daemon = { log = 'x' }\n", "[daemon]\nlog.more = 1\n", "[[daemon]]\nlog = 1\n"])
def test_a_shape_that_is_not_known_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest, match="has a form that no command changes"):
        changed(text, ("daemon", "log"), "y")


@pytest.mark.parametrize("end", ["\u2028", "\u2029", "\x85"])
def test_only_a_line_feed_ends_a_line(end: str) -> None:
    text = f"# one{end}two\n[daemon]\nlog = 'a{end}b'  # c{end}d\nprofile = 'auto'\n"
    assert changed(text, ("daemon", "log"), f"x{end}") == text.replace(f"'a{end}b'", f'"x{end}"')
    assert changed(text, ("daemon", "profile"), None) == text.removesuffix("profile = 'auto'\n")
    assert line_of(text, ("daemon", "profile")) == 4


def test_what_no_text_of_toml_may_hold_is_escaped() -> None:
    value = {"a\x7f": ['\x00\x1f\x7f\t"\\']}
    assert tomllib.loads(changed("", ("daemon", "a\x7f"), value)) == {"daemon": {"a\x7f": value}}


@pytest.mark.parametrize("text", ["", "[daemon]\nlog = 'x'\n", "[daemon]\nlog = 'x'", "daemon = { log = 'x' }"])
@pytest.mark.parametrize("key", ["replica.url", "daemon.group", "principals.voice.uid"])
def test_what_does_not_stand_there_is_taken_away_by_nothing(text: str, key: str) -> None:
    assert changed(text, tuple(key.split(".")), None) == text


PROSE = "# log = where the log goes; ask Anna\n# before that is changed\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (f"{PROSE}profile = 'auto'\n", f"{PROSE}log = 7\nprofile = 'auto'\n"),
        (f"{PROSE}# log = 'stderr' # or a file\n", f"{PROSE}log = 7 # or a file\n"),
        (f"{PROSE}# profile = 'auto'\n", f"{PROSE}log = 7\n# profile = 'auto'\n"),
        ("#log = [\n#  1,\n#]\n", "#log = [\n#  1,\n#]\nlog = 7\n"),
    ],
)
def test_a_comment_gives_way_where_it_is_the_key_alone(before: str, after: str) -> None:
    assert changed(f"[daemon]\n{before}", ("daemon", "log"), 7) == f"[daemon]\n{after}"


def test_the_line_of_a_key() -> None:
    assert [line_of(FILE, tuple(each.split("."))) for each in ("daemon.profile", "agent_skills", "daemon.no", "x")] == [
        4, 7, 2, None,
    ]  # fmt: skip
