"""`[replica]`: what a target may be and what it needs; secrets come from files of mode 0600 or the environment."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from beetle.contracts.errors import InvalidRequest, ServicesUnavailable
from beetle.replication.program import Litestream, configuration, find_program
from beetle.replication.secrets import read_secrets
from beetle.replication.target import ReplicaSettings, parse_target
from beetle.runtime.host.config import read_config

HOST_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcH"


def settings_of(folder: Path, text: str) -> ReplicaSettings:
    file = folder / "beetle.toml"
    file.write_text(f"[replica]\n{text}")
    found = read_config(file, {}, 0).replica
    assert found is not None
    return found.settings


@pytest.mark.parametrize(
    ("url", "parts"),
    [
        ("file:///mnt/usb/beetle", ("file", "/mnt/usb/beetle", "", "", "")),
        ("sftp://me@host:2222/srv/b", ("sftp", "/srv/b", "host:2222", "me", "")),
        ("sftp://me@[::1]:22/srv/b", ("sftp", "/srv/b", "[::1]:22", "me", "")),
        ("s3://my-bucket/device/1", ("s3", "device/1", "", "", "my-bucket")),
        ("nats://me@host:4222/bucket", ("nats", "", "host:4222", "me", "bucket")),
    ],
)
def test_a_url_names_a_target(url: str, parts: tuple[str, ...]) -> None:
    target = parse_target(url)
    assert (target.kind, target.path, target.host, target.user, target.bucket) == parts


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('url = "gs://bucket/x"', "url"),
        ('url = "file://host/x"', "url"),
        ('url = "file:///x/../y"', "url"),
        ('url = "file:///"', "url"),
        ('url = "s3://b?endpoint=x"', "url"),
        ('url = "sftp://me:secret@host/x"', "url"),
        ('url = "sftp://host/x"', "url"),
        ('url = "nats://host/"', "url"),
        ('url = "nats://host:99999/b"', "url"),
        ('url = "sftp://me@host/x"', "host_key"),
        ('url = "sftp://me@host/x"\nhost_key = "fingerprint"', "host_key"),
        (f'url = "sftp://me@host/x"\nhost_key = "{HOST_KEY}1"', "host_key"),
        (f'url = "sftp://me@host/x"\nhost_key = "{HOST_KEY.replace("ssh-ed25519", "ssh-rsa")}"', "host_key"),
        ('url = "file:///x"\nregion = "eu"', "region"),
        ('url = "s3://bucket/x"\nhost_key = "ssh-ed25519 AAAA"', "host_key"),
        ('url = "s3://bucket/x"\nendpoint = "http://me:pw@host"', "endpoint"),
        ('url = "nats://host/b"\nkey_file = "/k"\nsecret_file = "/s"', "secret_file"),
    ],
)
def test_what_fits_no_target_is_refused_at_its_place(tmp_path: Path, text: str, key: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        settings_of(tmp_path, text)
    assert refused.value.details["path"] == f"$.replica.{key}"
    assert refused.value.hint
    assert "secret@" not in str(refused.value)


def test_secrets_are_read_from_private_files_and_stand_nowhere_else(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("hunter2 and more\n")
    secret.chmod(0o600)
    settings = settings_of(
        tmp_path,
        f'url = "s3://bucket/x"\naccess_key_id = "AK"\nsecret_file = "{secret}"\nendpoint = "http://127.0.0.1:9"',
    )
    environment = {"HOME": "/root", "AWS_SESSION_TOKEN": "t0ken", "PATH": "/bin"}
    found = read_secrets(settings, environment)
    assert found.environment == {"AWS_SESSION_TOKEN": "t0ken"}
    assert "hunter2" not in repr(found)
    assert found.masked("denied: hunter2 and more, t0ken") == "denied: ***, ***"
    told = configuration("/s.db", settings, found)["dbs"][0]["replica"]
    assert (told["type"], told["secret-access-key"], told["access-key-id"]) == ("s3", "hunter2 and more", "AK")
    assert json.dumps(told)


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o620])
def test_a_secret_that_others_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    secret = tmp_path / "secret"
    secret.write_text("x")
    secret.chmod(mode)
    settings = settings_of(tmp_path, f'url = "nats://host/bucket"\nsecret_file = "{secret}"')
    with pytest.raises(InvalidRequest) as refused:
        read_secrets(settings, {})
    assert refused.value.details["path"] == "$.replica.secret_file"
    assert "chmod" in refused.value.hint


def test_a_secret_that_is_needed_and_missing_is_named(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, f'url = "sftp://me@host/x"\nhost_key = "{HOST_KEY}"')
    with pytest.raises(InvalidRequest, match="neither a key nor a password"):
        read_secrets(settings, {})
    assert read_secrets(settings, {"BEETLE_REPLICA_SECRET": "pw"}).secret == "pw"


def test_a_secret_that_is_no_text_is_refused(tmp_path: Path) -> None:
    text = f'url = "sftp://me@host/x"\nhost_key = "{HOST_KEY}"\n'
    with pytest.raises(InvalidRequest, match="BEETLE_REPLICA_SECRET is not UTF-8") as refused:
        read_secrets(settings_of(tmp_path, text), {"BEETLE_REPLICA_SECRET": os.fsdecode(b"\xff\xfehunter2")})
    assert "hunter2" not in str(refused.value) and refused.value.hint
    secret = tmp_path / "secret"
    secret.write_bytes(b"\xff\xfehunter2")
    secret.chmod(0o600)
    with pytest.raises(InvalidRequest, match="secret is not UTF-8"):
        read_secrets(settings_of(tmp_path, f'{text}secret_file = "{secret}"'), {})


def test_the_installed_program_is_the_pinned_one_and_another_is_refused(tmp_path: Path) -> None:
    assert find_program(None).pinned
    with pytest.raises(ServicesUnavailable, match="cannot be used"):
        find_program(str(tmp_path / "absent"))
    loose = tmp_path / "litestream"
    loose.write_text("#!/bin/sh\n")
    loose.chmod(0o777)
    with pytest.raises(ServicesUnavailable, match="others may write it"):
        find_program(str(loose))


def test_an_empty_replica_lists_nothing_and_restores_nothing(tmp_path: Path) -> None:
    stream = Litestream(str(tmp_path / "s.db"), settings_of(tmp_path, f'url = "file://{tmp_path}/replica"'), {})
    assert stream.files() == []
    assert stream.restore(str(tmp_path / "out.db")) is None
    assert not (tmp_path / "out.db").exists()
