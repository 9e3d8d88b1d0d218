"""Writes profiles/beetle.toml.example: every key of the configuration, its meaning and its default, commented out.

The keys and defaults are the structs', the meanings those of docs/configuration.md. `gen_reference.py` runs it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import NODEFAULT, Struct
from msgspec.structs import FieldInfo
from msgspec.structs import fields as struct_fields

from beetle.cli.config_edit import toml
from beetle.runtime.host import config

FILE = Path(__file__).resolve().parents[1] / "profiles" / "beetle.toml.example"
PAGE = Path(__file__).resolve().parents[1] / "docs" / "configuration.md"
WIDTH = 116
HEAD = """\
# Beetle's configuration. Every key is named here with its meaning; a line that begins with `#` is not in force.
# Take the `#` away to set a key, or type `beetle config set KEY VALUE`. `beetle config check` looks this file through,
# `beetle config show` says what is in force and where it comes from; see `beetle help configuration`.
"""
SAMPLES: dict[str, Any] = {
    "daemon.socket": "/run/beetle/beetle.sock",
    "daemon.group": "beetle",
    "daemon.store": "/var/lib/beetle/beetle.db",
    "daemon.profile": "auto",
    "agent_skills.dirs": ["/usr/share/agent-skills"],
    "model.kind": "ollama",
    "model.name": "llama3.2",
    "model.url": "http://127.0.0.1:11434",
    "model.api_key_file": "/etc/beetle/model.key",
    "replica.url": "file:///media/backup/beetle",
    "replica.command": "/usr/local/bin/litestream",
    "replica.secret_file": "/etc/beetle/replica.secret",
    "replica.key_file": "/etc/beetle/replica.key",
    "replica.host_key": "ssh-ed25519 AAAA",
    "replica.access_key_id": "beetle",
    "replica.endpoint": "http://127.0.0.1:9000",
    "replica.region": "eu-central-1",
    "replica.ca_file": "/etc/beetle/replica.pem",
    "grpc.listen": "localhost:50051",
    "grpc.principal": "NAME",
    "grpc.certificate": "/etc/beetle/server.pem",
    "grpc.key": "/etc/beetle/server.key",
    "grpc.client_ca": "/etc/beetle/clients.pem",
    "metrics.listen": "127.0.0.1:9464",
    "metrics.token_file": "/etc/beetle/metrics.token",
    "scheduler.time_zone": "Europe/Vienna",
    "scheduler.jobs": {"snapshot": "0 0 2 * * *"},
    "snapshots.folder": "/mnt/backup/beetle",
    "snapshots.keep_newest": 2,
    "snapshots.keep_hourly": 6,
    "snapshots.keep_daily": 7,
    "snapshots.keep_weekly": 4,
    "console.theme": "beetle-dark",
    "console.keys": {"refresh": "f5,R"},
    "principals.NAME.uid": 1101,
    "principals.NAME.gid": 1910,
    "principals.NAME.owner_id": "robot-7",
    "principals.NAME.agent_id": "navigation",
    "principals.NAME.capabilities": ["recall", "project", "transcript"],
}
"""What stands where a key has no default, or one that shows nothing."""


def example() -> str:
    """The text of the file."""
    meanings = _meanings()
    lines = [HEAD]
    for name in config.SECTIONS:
        kind = _kind(name)
        prefix = "principals.NAME" if name == "principals" else name
        required = any(each.required for each in struct_fields(kind))
        lines.append(f"# [{prefix}]" if required else f"[{prefix}]")
        for field in struct_fields(kind):
            key = f"{prefix}.{field.name}"
            lines += [*_wrapped(f"{meanings[key]}."), f"# {field.name} = {toml(_value(key, field))}"]
        lines.append("")
    return "\n".join(lines)


def _kind(section: str) -> type[Struct]:
    by_name: dict[str, type[Struct]] = {
        "daemon": config.Daemon, "agent_skills": config.AgentSkills, "skill_registry": config.SkillRegistry,
        "model": config.Model, "replica": config.Replica, "grpc": config.Grpc, "metrics": config.Metrics,
        "principals": config.Principal, "scheduler": config.Scheduler,
        "snapshots": config.Snapshots, "console": config.Console,
    }  # fmt: skip
    return by_name[section]


def _meanings() -> dict[str, str]:
    """The meaning of each key, with its values and its default, as the page's table has them."""
    found: dict[str, str] = {}
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [each.strip() for each in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) == 4 and re.fullmatch(r"`[a-z_]+\.[A-Za-z_.]+`", cells[0]):
            value, default, meaning = (_plain(each) for each in cells[1:])
            found[cells[0].strip("`")] = f"{meaning[:1].upper()}{meaning[1:]}: {value}. Default: {default}"
    return found


def _plain(text: str) -> str:
    return re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text).replace("`", "").replace("\\|", "|")


def _wrapped(text: str) -> Iterator[str]:
    line = "#"
    for word in text.split():
        if len(line) + 1 + len(word) > WIDTH:
            yield line
            line = "#"
        line += f" {word}"
    yield line


def _value(key: str, field: FieldInfo) -> Any:
    if key in SAMPLES:
        return SAMPLES[key]
    found = field.default
    if found is NODEFAULT or found is None:
        raise KeyError(f"{key} has no default: give SAMPLES in packaging/gen_config.py a value to show")
    return found
