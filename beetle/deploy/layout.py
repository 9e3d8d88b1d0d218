"""Where an installation puts its parts, and what its daemon is allowed."""

from __future__ import annotations

from pathlib import Path

from beetle.named_tuple import NamedTuple

RUN_FOLDER = "/run/beetle"
STATE_FOLDER = "/var/lib/beetle"
SERVICE = "beetle.service"
USER = "beetle"


class Layout(NamedTuple):
    """Absolute paths as the installed system sees them; `root` is where that system's `/` is at this moment.

    `unit` is None where no service is wanted. `personal` is an installation of one user, without root.
    """

    root: Path
    prefix: str
    link: str
    config: str
    unit: str | None
    personal: bool

    @property
    def staged(self) -> bool:
        """Whether the system is another than the one that runs here."""
        return self.root != Path("/")

    @property
    def program(self) -> str:
        """What the link in the path and the service run: it follows `current`."""
        return f"{self.prefix}/current/beetle"

    def disk(self, path: str) -> Path:
        """Where that system's path is now."""
        return self.root / path.lstrip("/")


class Settings(NamedTuple):
    """What the daemon's configuration says, or means by its silence, as far as a service has to allow it.

    `network` is whether it names a model, a replica or a port that is not of this machine alone, `loopback` whether a
    port of the machine itself; `reads` are files and folders that it only reads, `writes` those that it writes besides.
    """

    store: str
    socket: str
    log: str | None = None
    group: str | None = None
    network: bool = False
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    loopback: bool = False


class Limits(NamedTuple):
    """What the profile's daemon takes at most: memory in MiB, open files, threads."""

    memory_mib: int
    files: int
    tasks: int


class InstallOptions(NamedTuple):
    """What an installation is asked for.

    `configured` says that a configuration is there, which then stays as it is; `settings` are what it says, or what the
    new one will say. `given` are the store and the socket to write into a new one. `limits` is None where the profile
    is found out at each start. `example` is what a new configuration has behind its [daemon], every key commented out.
    `environment` is what the service of one user needs to look where its shell looks.
    `holder` is the pid of who has the store open.
    """

    profile: str
    why: tuple[str, ...]
    settings: Settings
    configured: bool = False
    given: tuple[tuple[str, str], ...] = ()
    limits: Limits | None = None
    environment: tuple[tuple[str, str], ...] = ()
    starts: bool = True
    holder: int | None = None
    example: str = ""
