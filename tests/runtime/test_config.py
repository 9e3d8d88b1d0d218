from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beetle.contracts.errors import InvalidRequest
from beetle.contracts.names import VIEW_NAMES
from beetle.runtime.host.config import (
    SYSTEM_SOCKET,
    SYSTEM_STORE,
    Config,
    Daemon,
    Scheduler,
    Snapshots,
    default_sockets_to_probe,
    read_config,
    socket_path,
    store_path,
)
from beetle.runtime.host.profile import load_profile
from beetle.runtime.host.retention import policy_of

ME = 1000
NEVER_LOGGED_IN = 4_000_000_000
ROOT = 0
FULL = """\
[daemon]
socket = "/run/mine/beetle.sock"
group = "agents"
store = "/data/beetle.db"
profile = "standalone"
log = "/var/log/beetle.log"

[agent_skills]
dirs = ["/usr/share/skills", "/home/me/skills"]

[model]
kind = "ollama"
name = "small"
url = "http://127.0.0.1:9999"
api_key_file = "/etc/beetle/key"
timeout_s = 30

[replica]
url = "s3://bucket/beetle"
monitor_interval_ms = 200
sync_interval_ms = 1000

[principals.coder]
uid = 1001
owner_id = "ada"
agent_id = "coder"
capabilities = ["recall", "write", "transcript.raw"]
views = ["model_context", "raw_owner"]

[principals.readers]
gid = 1001
capabilities = ["recall"]
"""


def written(folder: Path, text: str) -> Path:
    file = folder / "beetle.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def refusal(folder: Path, text: str) -> InvalidRequest:
    file = written(folder, text)
    with pytest.raises(InvalidRequest) as caught:
        read_config(file, {}, ME)
    assert str(file) in caught.value.message
    assert caught.value.details["file"] == str(file)
    return caught.value


def test_every_key_of_the_contract_is_read(tmp_path: Path) -> None:
    config = read_config(written(tmp_path, FULL), {}, ME)
    assert config.daemon == Daemon(
        socket="/run/mine/beetle.sock",
        group="agents",
        store="/data/beetle.db",
        profile="standalone",
        log="/var/log/beetle.log",
    )
    assert config.agent_skills.dirs == ("/usr/share/skills", "/home/me/skills")
    assert config.model is not None
    assert (config.model.kind, config.model.address, config.model.timeout_s) == ("ollama", "http://127.0.0.1:9999", 30)
    assert config.replica is not None
    assert (config.replica.monitor_interval_ms, config.replica.sync_interval_ms) == (200, 1000)
    coder, readers = config.principals["coder"], config.principals["readers"]
    assert (coder.uid, coder.gid, coder.owner_id, coder.agent_id) == (1001, None, "ada", "coder")
    assert coder.capabilities == ("recall", "write", "transcript.raw")
    assert coder.views == ("model_context", "raw_owner")
    assert (readers.uid, readers.gid, readers.owner_id) == (None, 1001, None)
    assert readers.views == ("model_context", "host_ui")
    assert config.file == str(tmp_path / "beetle.toml")


def test_an_empty_file_says_the_same_as_no_file(tmp_path: Path) -> None:
    file = written(tmp_path, "")
    assert read_config(file, {}, ME) == Config(file=str(file))
    assert read_config(None, {"HOME": str(tmp_path / "nowhere")}, ME) == Config()


def test_two_readings_of_one_file_are_equal_so_that_a_reload_can_tell_what_changed(tmp_path: Path) -> None:
    file = written(tmp_path, FULL)
    assert read_config(file, {}, ME) == read_config(file, {}, ME)


def test_the_flag_goes_before_the_variable_and_the_variable_before_the_usual_place(tmp_path: Path) -> None:
    flag, variable = (written(tmp_path / name, f'[daemon]\ngroup = "{name}"\n') for name in ("flag", "variable"))
    written(tmp_path / "xdg" / "beetle", '[daemon]\ngroup = "usual"\n')
    env = {"BEETLE_CONFIG": str(variable), "XDG_CONFIG_HOME": str(tmp_path / "xdg")}
    assert read_config(flag, env, ME).daemon.group == "flag"
    assert read_config(None, env, ME).daemon.group == "variable"
    assert read_config(None, env | {"BEETLE_CONFIG": ""}, ME).daemon.group == "usual"


@pytest.mark.parametrize("named", ["", "relative/config"])
def test_an_unset_or_relative_xdg_folder_means_the_one_below_home(tmp_path: Path, named: str) -> None:
    written(tmp_path / ".config" / "beetle", '[daemon]\ngroup = "home"\n')
    assert read_config(None, {"HOME": str(tmp_path), "XDG_CONFIG_HOME": named}, ME).daemon.group == "home"


def test_the_users_own_file_is_nothing_to_root(tmp_path: Path) -> None:
    written(tmp_path / "beetle", '[daemon]\ngroup = "user"\n')
    assert read_config(None, {"XDG_CONFIG_HOME": str(tmp_path)}, ROOT).daemon.group != "user"


def test_a_user_without_a_home_has_the_defaults() -> None:
    assert read_config(None, {}, ME) == Config()


@pytest.mark.parametrize("by_flag", [True, False])
def test_a_named_file_that_is_missing_is_an_error(tmp_path: Path, by_flag: bool) -> None:
    missing = tmp_path / "missing.toml"
    with pytest.raises(InvalidRequest) as caught:
        read_config(missing if by_flag else None, {} if by_flag else {"BEETLE_CONFIG": str(missing)}, ME)
    assert str(missing) in caught.value.message
    assert "No such file" in caught.value.message


def test_a_usual_file_that_is_there_and_unreadable_does_not_pass_for_defaults(tmp_path: Path) -> None:
    (tmp_path / "beetle" / "beetle.toml").mkdir(parents=True)
    with pytest.raises(InvalidRequest) as caught:
        read_config(None, {"XDG_CONFIG_HOME": str(tmp_path)}, ME)
    assert "directory" in caught.value.message


def test_a_path_that_leads_to_an_endless_device_is_given_up() -> None:
    with pytest.raises(InvalidRequest, match="not a regular file"):
        read_config("/dev/zero", {}, ME)


@pytest.mark.parametrize("flag", ["config", "socket", "store"])
def test_an_empty_flag_is_refused_and_does_not_fall_through(flag: str) -> None:
    read = {
        "config": lambda: read_config("", {}, ME),
        "socket": lambda: socket_path("", {}, Config(), ME),
        "store": lambda: store_path("", {}, Config(), ME),
    }
    with pytest.raises(InvalidRequest, match=f"--{flag} is empty"):
        read[flag]()


@pytest.mark.parametrize(
    ("text", "path", "hint"),
    [
        ('[daemon]\nsockt = "/x"', "$.daemon.sockt", "socket"),
        ('[deamon]\nsocket = "/x"', "$.deamon", "daemon"),
        ("colour = 1", "$.colour", "known are: daemon"),
        ('[agent_skills]\ndir = ["/x"]', "$.agent_skills.dir", "dirs"),
        ('[model]\nkind = "ollama"\nname = "m"\napi_key = "k"', "$.model.api_key", "api_key_file"),
        ('[replica]\nurl = "file:///x"\nsync_interval = 1', "$.replica.sync_interval", "sync_interval_ms"),
        ('[principals.me]\nuid = 1\ncapability = ["recall"]', "$.principals.me.capability", "capabilities"),
        ('[principals.me]\nuid = 1\ncapabilities = ["write", "recal"]', "$.principals.me.capabilities[1]", "recall"),
        ('[principals.me]\nuid = 1\ncapabilities = ["*"]', "$.principals.me.capabilities[0]", "transcript.raw"),
        (
            '[principals.me]\nuid = 1\ncapabilities = []\nviews = ["raw"]',
            "$.principals.me.views[0]",
            "raw_owner",
        ),
        ('[daemon]\nprofile = "standalon"', "$.daemon.profile", "standalone"),
    ],
)
def test_an_unknown_word_is_refused_at_its_place_with_the_nearest_known_one(
    tmp_path: Path, text: str, path: str, hint: str
) -> None:
    error = refusal(tmp_path, text)
    assert error.details["path"] == path
    assert hint in error.hint


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("daemon = 3", "$.daemon"),
        ("[daemon]\nsocket = 3", "$.daemon.socket"),
        ('[daemon]\nsocket = "beetle.sock"', "$.daemon.socket"),
        ('[daemon]\nstore = "/x\\u0000y"', "$.daemon.store"),
        ('[daemon]\nlog = "info"', "$.daemon.log"),
        ('agent_skills = "x"', "$.agent_skills"),
        ('[agent_skills]\ndirs = ["/x", "y"]', "$.agent_skills.dirs[1]"),
        ('[model]\nkind = "ollama"', "$.model"),
        ('[model]\nkind = "other"\nname = "m"', "$.model.kind"),
        ('[model]\nkind = "openai"\nname = "m"\nurl = "file:///etc/passwd"', "$.model.url"),
        ('[model]\nkind = "openai"\nname = "m"\nurl = "http://me:secret@host/"', "$.model.url"),
        ('[model]\nkind = "openai"\nname = "m"\ntimeout_s = 0', "$.model.timeout_s"),
        ("[replica]\nmonitor_interval_ms = 100", "$.replica"),
        ('[replica]\nurl = "bucket"', "$.replica.url"),
        ('[replica]\nurl = "file:///x"\nsync_interval_ms = 1.5', "$.replica.sync_interval_ms"),
        ("principals = []", "$.principals"),
        ("[principals]\nme = 1", "$.principals.me"),
        ("[principals.me]\nuid = 1", "$.principals.me"),
        ("[principals.me]\nuid = -1\ncapabilities = []", "$.principals.me.uid"),
        ("[principals.me]\nuid = true\ncapabilities = []", "$.principals.me.uid"),
        ('[principals.me]\nuid = "ada"\ncapabilities = []', "$.principals.me.uid"),
        ("[principals.me]\nuid = 4294967295\ncapabilities = []", "$.principals.me.uid"),
        ("[principals.me]\nuid = 1\ncapabilities = [1]", "$.principals.me.capabilities[0]"),
        ('[principals.me]\nuid = 1\nowner_id = ""\ncapabilities = []', "$.principals.me.owner_id"),
        ('[principals.me]\nuid = 1\nagent_id = "a\\tb"\ncapabilities = []', "$.principals.me.agent_id"),
        ('[principals."a b"]\nuid = 1\ncapabilities = []', "$.principals"),
    ],
)
def test_a_wrong_value_is_refused_at_its_place(tmp_path: Path, text: str, path: str) -> None:
    error = refusal(tmp_path, text)
    assert error.details["path"] == path
    assert error.hint


def test_a_principal_may_stand_for_no_user(tmp_path: Path) -> None:
    """An operator may ask as it."""
    file = tmp_path / "beetle.toml"
    file.write_text("[principals.me]\ncapabilities = []")
    me = read_config(file, {}, os.getuid()).principals["me"]
    assert (me.uid, me.gid) == (None, None)


@pytest.mark.parametrize("kind", ["uid", "gid"])
def test_two_principals_cannot_claim_the_same_id(tmp_path: Path, kind: str) -> None:
    text = "".join(f"[principals.{name}]\n{kind} = 7\ncapabilities = []\n" for name in ("one", "two"))
    error = refusal(tmp_path, text)
    assert f"principals 'one' and 'two' both claim {kind} 7" in error.message
    assert error.details["path"] == f"$.principals.two.{kind}"


@pytest.mark.parametrize("name", ["operator", "scheduler"])
def test_a_principal_cannot_have_the_name_of_one_of_the_daemon_s_own(tmp_path: Path, name: str) -> None:
    """Turns and idempotency keys go by these names."""
    error = refusal(tmp_path, f"[principals.{name}]\ncapabilities = []")
    assert error.details["path"] == f"$.principals.{name}" and "another name" in error.hint
    assert read_config(written(tmp_path, "[principals.operators]\ncapabilities = []"), {}, ME).principals


def test_a_uid_and_a_gid_of_one_number_are_two_claims(tmp_path: Path) -> None:
    text = "[principals.one]\nuid = 7\ngid = 7\ncapabilities = []\n[principals.two]\nuid = 8\ncapabilities = []"
    assert set(read_config(written(tmp_path, text), {}, ME).principals) == {"one", "two"}


def test_the_views_of_the_contract_are_the_views_of_the_configuration(tmp_path: Path) -> None:
    assert VIEW_NAMES == ("raw_owner", "model_context", "host_ui", "operator_audit", "export")
    text = f"[principals.me]\nuid = 1\ncapabilities = []\nviews = {list(VIEW_NAMES)}"
    assert read_config(written(tmp_path, text), {}, ME).principals["me"].views == VIEW_NAMES


@pytest.mark.parametrize("profile", ["auto", "compact", "profile-server-linux-dev-full", "/etc/beetle/mine.toml"])
def test_a_profile_is_a_name_an_alias_auto_or_an_absolute_path(tmp_path: Path, profile: str) -> None:
    assert read_config(written(tmp_path, f'[daemon]\nprofile = "{profile}"'), {}, ME).daemon.profile == profile


@pytest.mark.parametrize(
    ("kind", "address"), [("ollama", "http://127.0.0.1:11434"), ("openai", "http://127.0.0.1:8080/v1")]
)
def test_a_model_without_an_address_is_on_this_machine(tmp_path: Path, kind: str, address: str) -> None:
    config = read_config(written(tmp_path, f'[model]\nkind = "{kind}"\nname = "m"'), {}, ME)
    assert config.model is not None
    assert config.model.address == address


@pytest.mark.parametrize("content", [b"[daemon\n", b"\xff\xfe", b"a = 1\na = 2\n", b"x = " + b"[" * 100_000])
def test_a_file_that_is_no_toml_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "beetle.toml"
    file.write_bytes(content)
    with pytest.raises(InvalidRequest, match="not TOML"):
        read_config(file, {}, ME)


@given(st.binary(max_size=200) | st.text(alphabet="[]=.\"'{}#, \n\\dax10", max_size=60).map(str.encode))
def test_no_file_whatever_breaks_the_reader(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    file = tmp_path_factory.getbasetemp() / "any.toml"
    file.write_bytes(content)
    try:
        config = read_config(file, {}, ME)
    except InvalidRequest as error:
        assert str(file) in error.message
    else:
        assert config.file == str(file)


HOME = {"HOME": "/home/me", "XDG_RUNTIME_DIR": "/run/user/1000"}
IN_CONFIG = Config(daemon=Daemon(socket="/conf/b.sock", store="/conf/b.db"))


@pytest.mark.parametrize(
    ("flag", "env", "config", "uid", "expected"),
    [
        ("/flag/b.sock", HOME | {"BEETLE_SOCKET": "/env/b.sock"}, IN_CONFIG, ME, "/flag/b.sock"),
        (None, HOME | {"BEETLE_SOCKET": "/env/b.sock"}, IN_CONFIG, ME, "/env/b.sock"),
        (None, HOME | {"BEETLE_SOCKET": ""}, IN_CONFIG, ME, "/conf/b.sock"),
        (None, HOME, Config(), ME, "/run/user/1000/beetle/beetle.sock"),
        (None, HOME | {"XDG_RUNTIME_DIR": "/tmp/mine"}, Config(), ME, "/tmp/mine/beetle/beetle.sock"),
        (None, {}, Config(), ME, "/run/user/1000/beetle/beetle.sock"),
        (None, {"HOME": "/home/me"}, Config(), NEVER_LOGGED_IN, "/home/me/.local/share/beetle/beetle.sock"),
        (None, {"HOME": "/home/me", "XDG_DATA_HOME": "/data"}, Config(), NEVER_LOGGED_IN, "/data/beetle/beetle.sock"),
        (None, HOME, Config(), NEVER_LOGGED_IN, "/run/user/1000/beetle/beetle.sock"),
        (None, HOME, Config(), ROOT, "/run/beetle/beetle.sock"),
        (None, HOME | {"BEETLE_SOCKET": "/env/b.sock"}, Config(), ROOT, "/env/b.sock"),
        ("here.sock", HOME, Config(), ME, "here.sock"),
    ],
)
def test_the_socket_is_where_the_first_of_flag_variable_config_and_usual_place_says(
    flag: str | None, env: dict[str, str], config: Config, uid: int, expected: str
) -> None:
    assert socket_path(flag, env, config, uid) == expected


@pytest.mark.parametrize(
    ("flag", "env", "config", "uid", "expected"),
    [
        ("/flag/b.db", HOME | {"BEETLE_STORE": "/env/b.db"}, IN_CONFIG, ME, "/flag/b.db"),
        (None, HOME | {"BEETLE_STORE": "/env/b.db"}, IN_CONFIG, ME, "/env/b.db"),
        (None, HOME, IN_CONFIG, ME, "/conf/b.db"),
        (None, HOME | {"XDG_DATA_HOME": "/data"}, Config(), ME, "/data/beetle/beetle.db"),
        (None, HOME, Config(), ME, "/home/me/.local/share/beetle/beetle.db"),
        (None, HOME | {"XDG_DATA_HOME": "/data"}, Config(), ROOT, "/var/lib/beetle/beetle.db"),
    ],
)
def test_the_store_is_where_the_first_of_flag_variable_config_and_usual_place_says(
    flag: str | None, env: dict[str, str], config: Config, uid: int, expected: str
) -> None:
    assert store_path(flag, env, config, uid) == expected


def test_socket_and_store_do_not_follow_each_other() -> None:
    env = HOME | {"BEETLE_STORE": "/elsewhere/b.db"}
    assert socket_path(None, env, Config(), ME) == socket_path(None, HOME, Config(), ME)
    assert store_path(None, HOME | {"BEETLE_SOCKET": "/x"}, Config(), ROOT) == SYSTEM_STORE


def test_a_user_without_a_home_is_asked_for_a_store() -> None:
    with pytest.raises(InvalidRequest) as caught:
        store_path(None, {}, Config(), ME)
    assert "--store" in caught.value.hint


def test_a_socket_path_that_the_system_cannot_bind_is_refused() -> None:
    fits = "/" + "x" * 106
    assert socket_path(fits, {}, Config(), ME) == fits
    with pytest.raises(InvalidRequest, match="108 bytes"):
        socket_path(fits + "x", {}, Config(), ME)


def test_a_client_probes_the_users_socket_and_then_the_systems() -> None:
    users = "/run/user/1000/beetle/beetle.sock"
    assert default_sockets_to_probe(None, HOME, Config(), ME) == (users, SYSTEM_SOCKET)
    assert default_sockets_to_probe(None, HOME, Config(), ROOT) == (SYSTEM_SOCKET,)


@pytest.mark.parametrize(
    ("flag", "env", "config"),
    [("/n/b.sock", {}, Config()), (None, {"BEETLE_SOCKET": "/n/b.sock"}, Config()), (None, {}, IN_CONFIG)],
)
def test_a_client_that_was_told_a_socket_probes_no_other(flag: str | None, env: dict[str, str], config: Config) -> None:
    assert len(default_sockets_to_probe(flag, HOME | env, config, ME)) == 1


WATCHED = """\
import os, sys
from pathlib import Path
from beetle.runtime.host.config import default_sockets_to_probe, read_config, socket_path, store_path
from beetle.runtime.host.choosing import choose_profile, read_machine
from beetle.runtime.host.profile import load_profile

changes = []

def watch(event, args):
    writing = event == "open" and isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
    changing = event in ("os.mkdir", "os.chmod", "os.chown", "os.remove", "os.rename", "os.rmdir", "os.truncate",
                         "os.utime", "os.symlink", "os.link", "os.putenv", "os.chdir", "subprocess.Popen", "os.exec")
    if writing or changing or event.startswith("socket."):
        changes.append((event, args))

sys.dont_write_bytecode = True
sys.addaudithook(watch)
env = {"HOME": sys.argv[1], "XDG_RUNTIME_DIR": sys.argv[1] + "/run"}
for named in (None, sys.argv[2]):
    config = read_config(named, env, 1000)
    socket_path(None, env, config, 1000)
    store = store_path(None, env, config, 1000)
    default_sockets_to_probe(None, env, config, 1000)
    choose_profile(read_machine(os.path.dirname(store)))
    load_profile("compact")
assert not changes, changes
heavy = {"asyncio", "rich", "importlib.resources", "importlib.metadata"} & set(sys.modules)
assert not heavy, heavy
"""


def test_reading_configuration_profile_and_machine_changes_nothing_and_loads_nothing_heavy() -> None:
    with tempfile.TemporaryDirectory(prefix="bc-") as folder:  # the path of a socket is short
        changes_nothing(Path(folder))


def changes_nothing(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    file = written(tmp_path / "etc", FULL)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    done = subprocess.run(
        [sys.executable, "-B", "-c", WATCHED, str(home), str(file)],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
        env={"PATH": os.defpath},
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_the_scheduler_and_the_skill_registry_are_read(tmp_path: Path) -> None:
    text = """
    [skill_registry]
    require_signed_skills = true
    [scheduler]
    time_zone = "Europe/Berlin"
    [scheduler.jobs]
    snapshot = "0 0 2 * * *"
    [snapshots]
    folder = "/mnt/usb/beetle"
    keep_daily = 3
    keep_weekly = 0
    """
    config = read_config(written(tmp_path, text), {}, os.getuid())
    assert config.skill_registry.require_signed_skills
    assert config.scheduler == Scheduler(time_zone="Europe/Berlin", jobs={"snapshot": "0 0 2 * * *"})
    assert config.snapshots == Snapshots(folder="/mnt/usb/beetle", keep_daily=3, keep_weekly=0)
    compact = load_profile("compact").budgets
    assert policy_of(compact, config.snapshots) == (compact.snapshots_newest, compact.snapshots_hourly, 3, 0)
