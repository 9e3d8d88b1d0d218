"""What a service has to be allowed, from what its daemon's configuration names."""

from __future__ import annotations

import ipaddress
import os
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from beetle.cli.serve import absolute

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from beetle.deploy.layout import Settings
    from beetle.runtime.host.config import Config

UNIX = "unix:"


def service_settings(config: Config, place: Mapping[str, str], who: int, profile: str) -> Settings:
    """The paths and the networks of one configuration.

    Args:
        place: the variables that say where the usual places are.
        who: the uid whose usual places are meant.
        profile: its name, or the path of its file.
    """
    from beetle.deploy.layout import Settings
    from beetle.runtime.host.config import socket_path, store_path

    hosts = [_host(each) for each in _endpoints(config)]
    return Settings(
        store_path(None, place, config, who),
        socket_path(absolute(config.daemon.socket), place, config, who),
        None if config.daemon.log == "stderr" else config.daemon.log,
        config.daemon.group,
        network=_has_distant_replica(config) or not all(map(_is_loopback, hosts)),
        reads=tuple(_reads(config, profile)),
        writes=tuple(_writes(config)),
        loopback=bool(hosts),
    )


def _endpoints(config: Config) -> Iterator[str]:
    """The URLs that it asks and the addresses where it listens, but for sockets of this machine's files."""
    named = (
        None if config.model is None else config.model.address,
        config.grpc.listen,
        config.metrics.listen,
    )
    return (each for each in named if each is not None and not each.startswith(UNIX))


def _host(endpoint: str) -> str:
    """The host of a URL or of HOST:PORT."""
    return urlsplit(endpoint if "://" in endpoint else f"//{endpoint}").hostname or ""


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _has_distant_replica(config: Config) -> bool:
    return config.replica is not None and config.replica.settings.target.kind != "file"


def _reads(config: Config, profile: str) -> Iterator[str]:
    yield from config.agent_skills.dirs
    if "/" in profile:
        yield profile
    files = [config.metrics.token_file, config.grpc.certificate, config.grpc.key, config.grpc.client_ca]
    if config.model is not None:
        files += [config.model.api_key_file, _path(config.model.url)]
    if config.replica is not None:
        replica = config.replica
        files += [replica.secret_file, replica.key_file, replica.ca_file, replica.command]
    yield from filter(None, files)


def _writes(config: Config) -> Iterator[str]:
    if config.replica is not None and not _has_distant_replica(config):
        yield config.replica.settings.target.path
    if config.snapshots.folder:
        yield config.snapshots.folder
    if (socket := _path(config.grpc.listen)) is not None:
        yield os.path.dirname(socket)


def _path(endpoint: str | None) -> str | None:
    """The file of a Unix socket, None where the endpoint is none."""
    if endpoint is None or not endpoint.startswith(UNIX):
        return None
    return os.path.abspath(endpoint.removeprefix(UNIX).removeprefix("//"))
