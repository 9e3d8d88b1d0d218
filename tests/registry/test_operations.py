"""Uploading, reading, finding, deprecating and revoking skills through the operations."""

from __future__ import annotations

import hashlib
import json
import uuid

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from beetle.contracts.errors import Forbidden, SignatureInvalid
from beetle.runtime.areas.registry.uploader import Agent, verified
from beetle.runtime.host.caller import Caller
from beetle.runtime.host.dependencies import Dependencies
from beetle.runtime.host.principals import OPERATOR_CAPABILITIES
from tests.conformance.doors import InProcess
from tests.registry.conftest import BACKUP, Registry, skill

SUMMARY = {
    "skill_id", "name", "description", "status", "status_reason", "schema_version", "tags", "triggers", "warnings",
    "latest_version_id", "version_count", "created_at", "updated_at", "latest_uploaded_at",
    "latest_uploaded_by_agent_id", "latest_uploaded_by_agent_name", "latest_uploaded_by_agent_owner",
    "latest_source_format",
}  # fmt: skip
VERSION = {
    "version_id", "uploaded_at", "uploaded_by_agent_id", "uploaded_by_agent_name", "uploaded_by_agent_owner",
    "source_format", "content_hash", "schema_version",
}  # fmt: skip


def test_every_field_of_the_seed_is_there(registry: Registry) -> None:
    found = registry.upload(chain_key="work")
    assert set(found) == SUMMARY
    assert (found["skill_id"], found["status"], found["version_count"]) == ("nightly-backup", "active", 1)
    assert (found["tags"], found["triggers"]) == (["ops", "Storage"], ["backup", "restore drill"])
    assert uuid.UUID(found["latest_version_id"]).version == 4
    assert registry.ask("list", chain_key="work")["skills"] == [found]
    (version,) = registry.ask("versions", skill_id="nightly-backup")["versions"]
    assert set(version) >= VERSION
    assert version["content_hash"] == hashlib.sha256(BACKUP.encode()).hexdigest()
    read = registry.ask("read", skill_id="nightly-backup")
    assert {"skill_id", "version_id", "format", "source_format", "schema_version", "content", "status",
            "safety_warnings"} <= set(read)  # fmt: skip
    told = registry.ask("manifest")["manifest"]
    assert told["supported_formats"] == ["markdown", "json"]
    assert told["read_parameters"] == ["skill_id", "version_id", "format"]
    assert "uploaded_by_agent_owners" in told["searchable_fields"]


def test_each_version_is_read_byte_for_byte_for_ever(registry: Registry) -> None:
    contents = [BACKUP, BACKUP.replace("\n", "\r\n"), BACKUP + "\n\n\t trailing  \n", "\ufeff" + BACKUP, BACKUP]
    contents += [skill("Nightly backup", f"step {n}\n" * (n + 1)) for n in range(20)]
    ids = [registry.upload(each)["latest_version_id"] for each in contents]
    assert len(set(ids)) == len(contents)
    for version_id, content in zip(ids, contents, strict=True):
        read = registry.ask("read", skill_id="nightly-backup", version_id=version_id)
        assert read["content"] == content
        assert read["content_hash"] == hashlib.sha256(content.encode()).hexdigest()
    assert registry.ask("read", skill_id="Nightly Backup")["version_id"] == ids[-1], "the latest, by any form of the id"
    first = registry.ask("versions", skill_id="nightly-backup", limit=10)
    rest = registry.ask("versions", skill_id="nightly-backup", limit=100, cursor=first["next_cursor"])
    assert [each["version_id"] for each in first["versions"] + rest["versions"]] == ids
    registry.refused("not_found", "read", skill_id="nightly-backup", version_id=str(uuid.uuid4()))


def test_the_other_format_is_rendered(registry: Registry) -> None:
    registry.upload()
    shown = json.loads(registry.ask("read", skill_id="nightly-backup", format="json")["content"])
    assert (shown["name"], shown["tags"], len(shown["sections"])) == ("Nightly backup", ["ops", "Storage"], 2)
    registry.upload(json.dumps(shown), format=" JSON ")
    read = registry.ask("read", skill_id="nightly-backup", format="md")
    assert (read["format"], read["source_format"]) == ("markdown", "json")
    assert "## Steps\n\n1. Copy it." in read["content"]
    assert [each["source_format"] for each in registry.ask("versions", skill_id="nightly-backup")["versions"]] == [
        "markdown", "json",
    ]  # fmt: skip


def test_a_read_warns_of_what_was_uploaded(registry: Registry) -> None:
    registry.upload(BACKUP + "\u202ereversed and \x1b[2J cleared\n")
    read = registry.ask("read", skill_id="nightly-backup")
    told = " ".join(read["safety_warnings"])
    assert "no instruction to you" in told and "It needs twice the store's size." in told and "not seen" in told
    assert len(read["safety_warnings"]) == 6
    registry.ask("revoke", skill_id="nightly-backup", reason="it harms")
    again = registry.ask("read", skill_id="nightly-backup")
    assert again["safety_warnings"][0].startswith("This skill is revoked")
    assert (again["status"], again["status_reason"], again["content"]) == ("revoked", "it harms", read["content"])


@pytest.fixture(scope="module")
def shelf(opened: InProcess) -> Registry:
    registry = Registry(opened, "owner-of-the-shelf")
    registry.upload(skill("Wash", tags="[home, water]", triggers="[dirt]"), agent_id="ann")
    registry.upload(skill("Iron", "the shirt, HOT", tags="[home]"), agent_id="bob")
    registry.upload(json.dumps({"schema_version": 2, "name": "Wash", "description": "now in JSON", "tags": ["Water"],
                                "sections": [{"heading": "Größe", "body": "of the tub"}]}),
                    format="json", agent_id="bob")  # fmt: skip
    registry.ask("deprecate", skill_id="iron", reason="buy a machine")
    return registry


@pytest.mark.parametrize(
    ("filters", "ids"),
    [
        ({}, ["iron", "wash"]),
        ({"text": "hot"}, ["iron"]),
        ({"text": "GRÖSSE"}, ["wash"]),
        ({"text": "of the TUB"}, ["wash"]),
        ({"text": "how to wash"}, []),  # said by a version before alone
        ({"text": "dirt"}, []),
        ({"text": "h", "skill_ids": ["Wash", "gone"]}, ["wash"]),
        ({"names": ["IRON", "x"]}, ["iron"]),
        ({"tags_any": ["WATER", "x"]}, ["wash"]),
        ({"tags_any": ["wat"]}, []),
        ({"triggers_any": ["dirt"]}, []),  # of the latest version alone
        ({"uploaded_by_agent_ids": ["ann"]}, ["wash"]),  # of any version
        ({"uploaded_by_agent_names": ["BOB"]}, ["iron", "wash"]),
        ({"uploaded_by_agent_owners": ["bob"]}, []),
        ({"statuses": ["Active"]}, ["wash"]),
        ({"statuses": ["deprecated", "disabled"]}, ["iron"]),
        ({"formats": ["md"]}, ["iron", "wash"]),
        ({"formats": ["json"], "uploaded_by_agent_ids": ["ann"]}, ["wash"]),
        ({"schema_versions": [2, 9]}, ["wash"]),
        ({"since": "2999-01-01T00:00:00Z"}, []),
        ({"since": "1999-01-01T00:00:00Z", "until": "2999-01-01T00:00:00Z"}, ["iron", "wash"]),
        ({"names": ["wash"], "statuses": ["deprecated"]}, []),
    ],
)  # fmt: skip
def test_filters_are_all_and_any(shelf: Registry, filters: dict[str, object], ids: list[str]) -> None:
    assert shelf.found(**filters) == ids


def test_a_time_window_holds_both_its_ends_and_pages_go_on(shelf: Registry) -> None:
    at = shelf.ask("search", skill_ids=["wash"])["skills"][0]["latest_uploaded_at"]
    assert shelf.found(since=at, until=at) == ["wash"]
    first = shelf.ask("search", limit=1)
    assert [each["skill_id"] for each in first["skills"]] == ["iron"] and first["has_more"]
    assert shelf.found(limit=1, cursor=first["next_cursor"]) == ["wash"]


def test_revoked_is_for_good(registry: Registry) -> None:
    registry.upload()
    assert registry.ask("deprecate", skill_id="nightly-backup", reason=" old ")["skill"]["status_reason"] == "old"
    assert registry.upload()["status"] == "active", "a new version makes it active again"
    revoked = registry.ask("revoke", skill_id="nightly-backup", reason="it harms")
    again = registry.ask("revoke", skill_id="nightly-backup", reason="another reason")
    assert again["skill"] == revoked["skill"] and not again["lifecycle"]["changed"]
    assert registry.refused("conflict", "deprecate", skill_id="nightly-backup").hint
    late = registry.upload()
    assert (late["status"], late["status_reason"], late["version_count"]) == ("revoked", "it harms", 3)
    assert registry.found(statuses=["revoked"]) == ["nightly-backup"]
    registry.refused("not_found", "revoke", skill_id="gone")


def test_two_names_of_one_id_are_told_apart(registry: Registry) -> None:
    registry.upload(skill("A b"))
    assert "skill_id" in registry.refused_upload(skill("a-B"), "conflict").hint
    assert registry.upload(skill("a B"))["version_count"] == 2
    renamed = registry.upload(skill("a-B"), skill_id=" A B ")
    assert (renamed["skill_id"], renamed["name"], renamed["version_count"]) == ("a-b", "a-B", 3)
    for wrong in ("..", "/", "é", "x" * 129):
        registry.refused("invalid_request", "upload", agent_id="a", content=BACKUP, skill_id=wrong)


def test_another_owner_sees_nothing_of_it(registry: Registry, opened: InProcess) -> None:
    registry.upload()
    other = Registry(opened, f"{registry.owner}-other")
    assert other.found() == [] and other.ask("list")["total"] == 0
    other.refused("not_found", "read", skill_id="nightly-backup")
    assert other.upload()["version_count"] == 1


def test_secrets_and_what_is_too_large_are_refused(registry: Registry) -> None:
    secret = skill("Log in", "password: hunter2hunter2")
    assert registry.refused_upload(secret, "privacy_denied").details["path"] == "$.args.content"
    most = registry.door.budgets.skill_text_bytes
    large = skill("Large", "x" * (most - 100))
    registry.upload(large)
    assert registry.ask("read", skill_id="large")["content"] == large
    assert registry.refused_upload(large + "y" * 200, "payload_too_large").hint
    assert registry.found() == ["large"]


# Who uploads, and signatures.


def caller(agent: str | None, owner: str) -> Caller:
    return Caller(name="host", kind="principal", capabilities=OPERATOR_CAPABILITIES, views=("host_ui",),
                  transport="unix_socket", owner_id=owner, agent_id=agent)  # fmt: skip


def test_who_speaks_for_one_agent_uploads_as_no_other(registry: Registry) -> None:
    args = {"agent_id": "planner", "content": BACKUP}
    scope = {"owner_id": registry.owner, "agent_id": "planner"}
    bound = caller("planner", registry.owner)
    assert registry.door.ask("skill_registry.upload", args, scope, caller=bound).report
    with pytest.raises(Forbidden) as caught:
        registry.door.ask("skill_registry.upload", {**args, "agent_id": "other"}, scope, caller=bound)
    assert "planner" in caught.value.hint


def test_a_signature_holds_by_a_key_of_the_agent_alone(registry: Registry) -> None:
    key = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
    agent = Agent("ann", "Ann", keys={"k1": key.public_key().public_bytes_raw()})
    signature = tuple(key.sign(BACKUP.encode()))
    held = verified(agent, "k1", signature, BACKUP.encode())
    assert held is not None and held.signature == bytes(signature)
    assert verified(agent, None, None, b"") is None
    for key_id, content in (("k1", BACKUP.encode() + b"\n"), ("k2", BACKUP.encode())):
        with pytest.raises(SignatureInvalid):
            verified(agent, key_id, signature, content)
    error = registry.refused_upload(BACKUP, "signature_invalid", signing_key_id="k1", skill_signature=list(signature))
    assert error.details["path"] == "$.args.signing_key_id"
    assert registry.found() == [], "nothing was written"


def test_a_daemon_may_take_signed_skills_alone(registry: Registry) -> None:
    registry.door.restart(dependencies=Dependencies(require_signed_skills=True))
    try:
        assert "skill_signature" in registry.refused_upload(BACKUP, "signature_invalid").hint
    finally:
        registry.door.restart(dependencies=Dependencies())
