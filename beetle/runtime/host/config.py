"""The configuration file, and where the socket and the store are when nobody says so.

Nothing here reads the environment or the user's id by itself, writes, creates or connects.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn, TypeVar, cast, get_args

from msgspec import Meta, Struct

from beetle.contracts.capabilities import CAPABILITY_NAMES
from beetle.contracts.codec import convert_request
from beetle.contracts.errors import InvalidRequest, nearest
from beetle.contracts.fields import Id
from beetle.contracts.names import VIEW_NAMES, ViewName
from beetle.runtime.host.profile import check_profile_name
from beetle.runtime.host.toml_file import decode_table, read_toml

if TYPE_CHECKING:
    from beetle.replication.target import ReplicaSettings

    StrPath = str | os.PathLike[str]

SYSTEM_CONFIG = "/etc/beetle/beetle.toml"
SYSTEM_SOCKET = "/run/beetle/beetle.sock"
SYSTEM_STORE = "/var/lib/beetle/beetle.db"
SOCKET_PATH_BYTES = 107
"""Longest path of a Unix socket: the kernel's field is 108 bytes with a closing NUL."""

# msgspec reports a pattern in its message, so these are kept readable.
ModelUrl = Annotated[str, Meta(pattern=r"^(https?://[^\s/@?#]+(/[^\s?#]*)?|unix:/[^\s?#]+)\Z", max_length=2000)]
ReplicaUrl = Annotated[str, Meta(pattern=r"^[a-z][a-z0-9+.-]*://\S+\Z", max_length=2000)]
AbsolutePath = Annotated[str, Meta(pattern=r"^/[^\x00-\x1f]*\Z", max_length=4000)]
LogPlace = Annotated[str, Meta(pattern=r"^(stderr|/[^\x00-\x1f]*)\Z", max_length=4000)]
ShortText = Annotated[str, Meta(pattern=r"^[^\x00-\x1f]+\Z", max_length=256)]
UserOrGroupId = Annotated[int, Meta(ge=0, le=2**32 - 2)]
Milliseconds = Annotated[int, Meta(ge=10, le=3_600_000)]
KeepCount = Annotated[int, Meta(ge=0, le=1000)]
ThemeName = Literal["beetle-dark", "beetle-light", "high-contrast", "ansi", "monochrome"]
THEME_NAMES: tuple[ThemeName, ...] = get_args(ThemeName)
KeyId = Annotated[str, Meta(min_length=1, max_length=64)]
Section = TypeVar("Section", bound=Struct)


class Daemon(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[daemon]`. Paths are absolute, so that a reload means what the start meant.

    `group` is the name of the Unix group that may use the socket; `profile` a name, an alias, `auto` or an absolute
    path of a file; `log` is `stderr` or a file.
    """

    socket: AbsolutePath | None = None
    group: ShortText | None = None
    store: AbsolutePath | None = None
    profile: ShortText | None = None
    log: LogPlace = "stderr"


class AgentSkills(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[agent_skills]`: absolute folders of Agent Skills, scanned and never changed."""

    dirs: tuple[AbsolutePath, ...] = ()


class SkillRegistry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[skill_registry]`: whether an uploaded skill must be signed by its agent."""

    require_signed_skills: bool = False


class Model(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[model]`: who answers maintenance. Without `url` it is the usual loopback address of its kind; `unix:PATH` is a
    server's socket on this machine.

    A user or password inside `url` is refused: errors name the address. The key is read from `api_key_file` when it
    is needed. With `summaries` the model also writes the table of contents: then every shared turn is sent to it.
    """

    kind: Literal["openai", "ollama"]
    name: ShortText
    url: ModelUrl | None = None
    api_key_file: AbsolutePath | None = None
    timeout_s: Annotated[int, Meta(ge=1, le=600)] = 60
    summaries: bool = False

    @property
    def address(self) -> str:
        """`url`, or the loopback address where a local server of this kind listens."""
        return self.url or MODEL_ADDRESSES[self.kind]


MODEL_ADDRESSES: Mapping[str, str] = {"ollama": "http://127.0.0.1:11434", "openai": "http://127.0.0.1:8080/v1"}


def model_of(given: dict[str, Any]) -> Model:
    """A model as somebody names it in code; what is None is left out.

    Raises:
        InvalidRequest: an unknown key, a wrong value.
    """
    return convert_request({key: value for key, value in given.items() if value is not None}, Model, "$.model")


class Replica(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[replica]`: where the sidecar copies to, how often it looks and sends, and how long what it sent is kept.

    `url` is a folder (`file:///F`), an SFTP server's (`sftp://U@H/F`), an S3 bucket (`s3://B/P`) or a bucket of NATS
    JetStream (`nats://H/B`), and holds no password: that is in `secret_file` or $BEETLE_REPLICA_SECRET, a private key
    or NATS credentials in `key_file`. `snapshot_interval_h` and `retention_h` are hours. `local_bytes` is how much
    may wait on this disk while the target does not take it, or as much as the store itself has. `command` is another
    litestream than the one that comes with beetle. `restore_on_first_boot` restores the store where none is: if
    a replica is there, or a daemon that finds none does not start.
    """

    url: ReplicaUrl
    monitor_interval_ms: Milliseconds = 25
    sync_interval_ms: Milliseconds = 25
    snapshot_interval_h: Annotated[int, Meta(ge=1, le=720)] = 24
    retention_h: Annotated[int, Meta(ge=1, le=87_600)] = 168
    local_bytes: Annotated[int, Meta(ge=2**24, le=2**40)] = 2**28
    command: AbsolutePath | None = None
    secret_file: AbsolutePath | None = None
    key_file: AbsolutePath | None = None
    host_key: Annotated[str, Meta(pattern=r"^[^\x00-\x1f]+\Z", max_length=4000)] | None = None
    access_key_id: ShortText | None = None
    endpoint: Annotated[str, Meta(pattern=r"^https?://[^\s/@?#]+/?\Z", max_length=2000)] | None = None
    region: ShortText | None = None
    ca_file: AbsolutePath | None = None
    restore_on_first_boot: Literal["never", "if_there", "required"] = "never"

    @property
    def settings(self) -> ReplicaSettings:
        """What the sidecar is told.

        Raises:
            InvalidRequest: the URL, or what stands beside it, fits no target.
        """
        from beetle.replication.target import ReplicaSettings, check_settings, parse_target

        given = {
            name: getattr(self, name) for name in self.__struct_fields__ if name not in ("url", "restore_on_first_boot")
        }
        found = ReplicaSettings(parse_target(self.url), **given)
        check_settings(found)
        return found


class Grpc(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[grpc]`: where the daemon serves gRPC, and as whom its peers ask.

    `listen` is HOST:PORT or unix:PATH; without it, and without `--grpc`, there is no gRPC. `principal` names one of
    [principals.NAME]: a network peer has no uid. `certificate` and `key` are PEM files, for TLS; with `client_ca` a
    peer needs a certificate of that authority.
    """

    listen: ShortText | None = None
    principal: ShortText | None = None
    certificate: AbsolutePath | None = None
    key: AbsolutePath | None = None
    client_ca: AbsolutePath | None = None


class Metrics(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[metrics]`: a loopback port for Prometheus. Every user of the machine reaches it: so a scrape gives the token
    that stands in `token_file`, which only the daemon's user may read.
    """

    listen: ShortText | None = None
    token_file: AbsolutePath | None = None

    @property
    def address(self) -> tuple[str, int]:
        """Host and port of `listen`."""
        host, _, port = (self.listen or "").rpartition(":")
        return "127.0.0.1" if host == "localhost" else host.strip("[]"), int(port)


class Principal(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[principals.NAME]`: who a uid or a gid is, and what it may. Without owner or agent the scope's defaults hold.
    Without uid and gid it is one as which an operator may ask.

    `views` is in order of preference.
    """

    uid: UserOrGroupId | None = None
    gid: UserOrGroupId | None = None
    owner_id: Id | None = None
    agent_id: Id | None = None
    capabilities: tuple[str, ...]
    views: tuple[ViewName, ...] = ("model_context", "host_ui")


class Console(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[console]`: how `beetle tui` looks, and its keys by the ids of what they do (`keys = { "row-up" = "k" }`).

    Whether there is such an id, the console knows.
    """

    theme: ThemeName | None = None
    keys: dict[KeyId, ShortText] = {}


class Scheduler(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[scheduler]`: `jobs` has, by a job's name, a cron expression of six fields, seconds first, or `off`.

    Schedules are read in `time_zone`, this machine's when it is left out.
    """

    time_zone: ShortText | None = None
    jobs: dict[ShortText, ShortText] = {}


class Snapshots(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[snapshots]`: where they are, `<store>.snapshots` when `folder` is left out, and how many of those are kept that
    the job `snapshot` makes: what is left out is the profile's.
    """

    folder: AbsolutePath | None = None
    keep_newest: Annotated[int, Meta(ge=1, le=1000)] | None = None
    keep_hourly: KeepCount | None = None
    keep_daily: KeepCount | None = None
    keep_weekly: KeepCount | None = None


class Config(Struct, frozen=True, kw_only=True):
    """What a configuration file says, or the defaults. `file` is the file that was read, if one was."""

    daemon: Daemon = Daemon()
    agent_skills: AgentSkills = AgentSkills()
    skill_registry: SkillRegistry = SkillRegistry()
    model: Model | None = None
    replica: Replica | None = None
    grpc: Grpc = Grpc()
    metrics: Metrics = Metrics()
    principals: Mapping[str, Principal] = MappingProxyType({})
    scheduler: Scheduler = Scheduler()
    snapshots: Snapshots = Snapshots()
    console: Console = Console()
    file: str | None = None


SECTIONS: tuple[str, ...] = (
    "daemon", "agent_skills", "skill_registry", "model", "replica", "grpc", "metrics", "principals", "scheduler",
    "snapshots", "console",
)  # fmt: skip

OWN_NAMES = frozenset({"operator", "scheduler"})
"""Principals of the daemon's own, by whose names turns and idempotency keys go."""
RELOADED = frozenset({"principals", "scheduler", "snapshots", "console"})
"""Sections that a running daemon takes over when it reads the file again, but for keys of `AT_START`; the console reads
its own at each start."""
AT_START = frozenset({("snapshots", "folder")})


def read_config(path: StrPath | None, env: Mapping[str, str], uid: int) -> Config:
    """The configuration of `--config` (`path`), else of $BEETLE_CONFIG, else of the user's usual place.

    No file at the usual place gives the defaults. Raises InvalidRequest, with `file` and `path` (`$.daemon.socket`):
    a named file that is missing, a file that cannot be read, one that is no regular file or that another user than root
    and `uid` may change or replace, an unknown key, a wrong value, two claims of one uid.
    """
    file = config_file(path, env, uid)
    return Config() if file is None else config_of(read_toml(file, trusting=uid), file)


def config_file(path: StrPath | None, env: Mapping[str, str], uid: int, *, usual: bool = False) -> str | None:
    """The file that `read_config` reads, None where there is none to be read; with `usual` it need not be there yet."""
    named = _given("--config", path) or env.get("BEETLE_CONFIG")
    file = named or _usual_config(env, uid)
    return file if file is not None and (named or usual or _is_there(file)) else None


def socket_path(flag: StrPath | None, env: Mapping[str, str], config: Config, uid: int) -> str:
    """Where a daemon listens: flag, $BEETLE_SOCKET, the configuration, the user's (for root: the system's) usual place.

    Raises InvalidRequest for an empty flag and for a path that no Unix socket can have.
    """
    named = _given("--socket", flag) or env.get("BEETLE_SOCKET") or config.daemon.socket
    path = named or _usual_socket(env, uid)
    length = len(os.fsencode(path))
    if length > SOCKET_PATH_BYTES:
        reason = f"the socket's path has {length} bytes; the system allows {SOCKET_PATH_BYTES}"
        raise InvalidRequest(reason=reason, hint="give a shorter path with --socket")
    return path


def store_path(flag: StrPath | None, env: Mapping[str, str], config: Config, uid: int) -> str:
    """Where the store is: flag, $BEETLE_STORE, the configuration, the user's (for root: the system's) usual place.

    Raises InvalidRequest for an empty flag, and when neither $XDG_DATA_HOME nor $HOME says where the user's data are.
    """
    named = _given("--store", flag) or env.get("BEETLE_STORE") or config.daemon.store
    if named:
        return named
    if uid == 0:
        return SYSTEM_STORE
    folder = _home(env, "XDG_DATA_HOME", ".local/share")
    if folder is None:
        hint = "give --store PATH, or set HOME"
        raise InvalidRequest(reason="no $XDG_DATA_HOME and no $HOME to keep a store in", hint=hint)
    return os.path.join(folder, "beetle/beetle.db")


def default_sockets_to_probe(flag: StrPath | None, env: Mapping[str, str], config: Config, uid: int) -> tuple[str, ...]:
    """Where a client looks for a daemon, in order: a socket that was named, alone; else the user's, then the system's.

    Not for a client that was given a store and no socket: it finds that store's daemon through the store's lock file.
    """
    mine = socket_path(flag, env, config, uid)
    named = flag is not None or env.get("BEETLE_SOCKET") or config.daemon.socket
    return (mine,) if named or mine == SYSTEM_SOCKET else (mine, SYSTEM_SOCKET)


def _given(flag: str, value: StrPath | None) -> str | None:
    # An empty flag is a shell variable that was not set; falling through would reach another daemon or store.
    if value == "":
        raise InvalidRequest(reason=f"{flag} is empty", hint=f"give a path after {flag}, or leave it out")
    return None if value is None else str(value)


def _is_there(file: str) -> bool:
    # A file that is there and cannot be read must not pass for defaults, so only these two mean absence.
    try:
        os.stat(file)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def _home(env: Mapping[str, str], variable: str, below_home: str) -> str | None:
    # The XDG specification has relative paths ignored, like empty ones.
    named, home = env.get(variable, ""), env.get("HOME", "")
    if named.startswith("/"):
        return named
    return os.path.join(home, below_home) if home.startswith("/") else None


def _usual_config(env: Mapping[str, str], uid: int) -> str | None:
    if uid == 0:
        return SYSTEM_CONFIG
    folder = _home(env, "XDG_CONFIG_HOME", ".config")
    return os.path.join(folder, "beetle/beetle.toml") if folder else None


def _usual_socket(env: Mapping[str, str], uid: int) -> str:
    if uid == 0:
        return SYSTEM_SOCKET
    # Without the variable, as under cron or su, it is the folder that systemd would have named, never a shared /tmp.
    named = env.get("XDG_RUNTIME_DIR", "")
    folder = named if named.startswith("/") else f"/run/user/{uid}"
    data = _home(env, "XDG_DATA_HOME", ".local/share")
    if data is not None and not named.startswith("/") and not _is_there(folder):
        # No systemd and no login: the store's own folder is this user's alone too.
        return os.path.join(data, "beetle/beetle.sock")
    return os.path.join(folder, "beetle/beetle.sock")


def config_of(tables: dict[str, Any], file: str) -> Config:
    """What the tables of a file say. Raises InvalidRequest as `read_config`."""
    for key in tables:
        if key not in SECTIONS:
            _refuse(file, f"$.{key}", f"unknown key $.{key}", nearest(key, SECTIONS))
    daemon = decode_table(tables.get("daemon", {}), Daemon, file, "$.daemon")
    if daemon.profile is not None and not daemon.profile.startswith("/"):
        try:
            check_profile_name(daemon.profile, "auto")
        except InvalidRequest as error:
            _refuse(file, "$.daemon.profile", error.message, error.hint)
    return Config(
        daemon=daemon,
        agent_skills=decode_table(tables.get("agent_skills", {}), AgentSkills, file, "$.agent_skills"),
        skill_registry=decode_table(tables.get("skill_registry", {}), SkillRegistry, file, "$.skill_registry"),
        model=_optional(tables, "model", Model, file),
        replica=_replica(tables, file),
        grpc=_grpc(tables.get("grpc", {}), file),
        metrics=_metrics(tables.get("metrics", {}), file),
        principals=_principals(tables.get("principals", {}), file),
        scheduler=decode_table(tables.get("scheduler", {}), Scheduler, file, "$.scheduler"),
        snapshots=decode_table(tables.get("snapshots", {}), Snapshots, file, "$.snapshots"),
        console=_console(tables.get("console", {}), file),
        file=file,
    )


def _optional(tables: dict[str, Any], key: str, into: type[Section], file: str) -> Section | None:
    return decode_table(tables[key], into, file, f"$.{key}") if key in tables else None


def _replica(tables: dict[str, Any], file: str) -> Replica | None:
    found = _optional(tables, "replica", Replica, file)
    if found is not None:
        try:
            _ = found.settings
        except InvalidRequest as error:
            _refuse(file, error.details.get("path", "$.replica"), error.message, error.hint)
    return found


def _grpc(table: object, file: str) -> Grpc:
    found = decode_table(table, Grpc, file, "$.grpc")
    if (found.certificate is None) is not (found.key is None):
        missing = "key" if found.key is None else "certificate"
        _refuse(file, f"$.grpc.{missing}", f"$.grpc: {missing} is missing", "TLS needs certificate and key")
    if found.client_ca is not None and found.certificate is None:
        _refuse(file, "$.grpc.client_ca", "$.grpc: client_ca without TLS", "give certificate and key too")
    return found


def _metrics(table: object, file: str) -> Metrics:
    found = decode_table(table, Metrics, file, "$.metrics")
    if found.listen is None:
        return found
    at, hint = "$.metrics.listen", "give 127.0.0.1:PORT, [::1]:PORT or localhost:PORT"
    if (port := re.fullmatch(r"(?:127(?:\.[0-9]{1,3}){3}|\[::1\]|localhost):([0-9]{1,5})", found.listen)) is None:
        _refuse(file, at, f"{at}: {found.listen[:80]!r} is no port of the loopback interface", hint)
    if int(port[1]) > 65535 or any(
        each.isdecimal() and int(each) > 255 for each in found.listen.rpartition(":")[0].split(".")
    ):
        _refuse(file, at, f"{at}: {found.listen!r} has no such address or port", hint)
    if found.token_file is None:
        reason = "$.metrics: token_file is missing, and every user of the machine reaches a loopback port"
        _refuse(file, "$.metrics.token_file", reason, "name a file of mode 0600 that holds a token of your own")
    return found


def _console(table: object, file: str) -> Console:
    theme = _theme_of(table)
    if isinstance(theme, str) and theme not in THEME_NAMES:
        path = "$.console.theme"
        _refuse(file, path, f"{path}: {theme[:80]!r} is none of the themes", nearest(theme, THEME_NAMES))
    return decode_table(table, Console, file, "$.console")


def _theme_of(table: object) -> object:
    return cast("dict[str, object]", table).get("theme") if isinstance(table, dict) else None


def _principals(tables: object, file: str) -> Mapping[str, Principal]:
    if not isinstance(tables, dict):
        _refuse(file, "$.principals", "$.principals: a table of tables is expected", "write [principals.NAME]")
    found: dict[str, Principal] = {}
    for name, table in cast("dict[str, object]", tables).items():
        at = f"$.principals.{name}"
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", name):
            hint = "a name is 1 to 64 letters, digits, dots, dashes and underscores"
            _refuse(file, "$.principals", f"$.principals: {name[:80]!r} cannot name a principal", hint)
        if name in OWN_NAMES:
            _refuse(file, at, f"{at}: the daemon has a principal of this name itself", "give it another name")
        _refuse_unlisted(table, "capabilities", CAPABILITY_NAMES, file, at)
        _refuse_unlisted(table, "views", VIEW_NAMES, file, at)
        principal = decode_table(table, Principal, file, at)
        found[name] = principal
    _refuse_shared_claims(found, file)
    return MappingProxyType(found)


def _refuse_unlisted(table: object, key: str, known: tuple[str, ...], file: str, at: str) -> None:
    # Before decoding, whose message for a word outside its list does not say which words are in it.
    names = cast("dict[str, object]", table).get(key) if isinstance(table, dict) else None
    for index, name in enumerate(cast("list[object]", names) if isinstance(names, list) else ()):
        if isinstance(name, str) and name not in known:
            path = f"{at}.{key}[{index}]"
            _refuse(file, path, f"{path}: {name[:80]!r} is none of the {key}", nearest(name, known))


def _refuse_shared_claims(principals: Mapping[str, Principal], file: str) -> None:
    claimed: dict[tuple[str, int], str] = {}
    for name, principal in principals.items():
        for kind, number in (("uid", principal.uid), ("gid", principal.gid)):
            if number is None:
                continue
            first = claimed.setdefault((kind, number), name)
            if first != name:
                reason = f"principals {first!r} and {name!r} both claim {kind} {number}"
                _refuse(file, f"$.principals.{name}.{kind}", reason, f"give each {kind} to one principal")


def _refuse(file: str, path: str, reason: str, hint: str) -> NoReturn:
    raise InvalidRequest(reason=f"{file}: {reason}", path=path, file=str(file), hint=hint)
