"""Chains in archives: taken out with their agents, branches, marks and erased thoughts, and taken in again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from beetle import MemoryRuntime
from beetle.contracts.codec import pack
from beetle.contracts.common import MemoryIdentity
from beetle.contracts.continuity_records import Body, ChainRecord
from beetle.contracts.errors import BeetleError
from beetle.domain.chains import archived, ledger
from beetle.domain.chains.ledger import Thought
from beetle.domain.continuity import open_envelope
from beetle.runtime.host.identity import is_signed
from tests.chains.test_kept import edit
from tests.store.conftest import assert_clean, bytes_of

SIGNER = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
PASSPHRASE = "correct horse battery"
CANARY = "xylocarp"


def open_at(path: Path, owner: str = "owner-default") -> MemoryRuntime:
    return MemoryRuntime.open(str(path), profile="dev-full", backend="sqlite", identity=MemoryIdentity(owner_id=owner))


def write(memory: MemoryRuntime, key: str, content: str, **more: Any) -> Any:
    return memory.append_thought(chain_key=key, thought_type="Plan", content=content, **more).thought


def fill(memory: MemoryRuntime, second: str = "erase") -> None:
    """A trunk with two erased thoughts and signed ones, a branch of it, and a branch of that."""
    memory.bootstrap_chain(chain_key="trunk", content="what it is for", storage_adapter="jsonl")
    write(memory, "trunk", f"{CANARY} erased", agent_id="ada", agent_name="Ada", tags=["a"])
    write(memory, "trunk", f"{CANARY} hidden", agent_id="ada", agent_name="Countess", refs=[0, 1])
    public = list(SIGNER.public_key().public_bytes_raw())
    key = {"key_id": "k1", "algorithm": "ed25519", "public_key_bytes": public}
    memory.add_chain_agent_key(chain_key="trunk", agent_id="ada", **key)
    said = Thought(1, "", 0, 0, None, "ada", None, "Plan", "Memory", None, 0.5, (), (), "", "", "")
    signed = ledger.signable(said, ledger.Body(b"", "signed Zephyrine", ()))
    write(memory, "trunk", "signed Zephyrine", agent_id="ada", signing_key_id="k1",
          thought_signature=list(SIGNER.sign(signed)))  # fmt: skip
    memory.branch_chain(chain_key="trunk", new_chain_key="branch", anchor_index=2)
    write(memory, "branch", "elsewhere", agent_id="bob", refs=[0],
          relations=[{"kind": "contradicts", "index": 1, "valid_at": "2026-01-01T00:00:00Z"}])  # fmt: skip
    memory.branch_chain(chain_key="branch", new_chain_key="twig", anchor_index=3)
    memory.upsert_chain_agent(chain_key="twig", agent_id="eve", description="watches", status="revoked")
    memory.thought_lifecycle(chain_key="trunk", action="erase", indexes=[1], reason="r")
    memory.thought_lifecycle(chain_key="trunk", action=second, indexes=[2], reason="r")


def told(memory: MemoryRuntime) -> Any:
    """All that reports say of the chains."""
    keys = memory.list_chains().chain_keys
    plain = [
        (
            memory.export_chain(chain_key=key, limit=200).thoughts,
            memory.list_chain_agent_registry(chain_key=key).agents,
            memory.chain_head(chain_key=key).integrity_ok,
        )
        for key in keys
    ]
    rows = [msgspec.structs.replace(each, storage_location=None) for each in memory.list_chains().chains]
    return rows, plain


def test_an_archive_holds_all_of_every_chain_and_is_taken_in_again(tmp_path: Path) -> None:
    with open_at(tmp_path / "a.db") as memory:
        fill(memory)
        before = told(memory)
        taken = memory.export_space(include_private=True, passphrase=PASSPHRASE)
    assert (taken.counts["chains"], taken.counts["thoughts"]) == (3, 5)
    with open_at(tmp_path / "b.db", "somebody") as other:
        done = other.import_space(archive=taken.archive, passphrase=PASSPHRASE, mode="bootstrap_import")
        assert (done.counts["chains"], done.counts["thoughts"]) == (3, 5)
        assert told(other) == before
        assert_clean(other)
        assert [each.ref for each in other.recall(query="zephyrine").hits] == ["thoughts:trunk/3"]
        with pytest.raises(BeetleError, match="not empty"):
            other.import_space(archive=taken.archive, passphrase=PASSPHRASE, mode="bootstrap_import")
        # What was there gives way, also what the archive does not have.
        write(other, "new", "gone soon Zephyrine")
        write(other, "twig", "gone soon")
        restore = {"archive": taken.archive, "passphrase": PASSPHRASE, "mode": "full_restore", "other_store": True}
        assert other.import_space(**restore).replaced["chains"] == 4
        assert told(other) == before
        assert [each.ref for each in other.recall(query="zephyrine").hits] == ["thoughts:trunk/3"]
        assert_clean(other)
        write(other, "new", "again")
        write(other, "branch", "goes on", refs=[2])
        assert_clean(other)
        assert b"gone soon" not in bytes_of(tmp_path / "b.db")


def test_a_repeat_shows_nothing_of_a_chain_that_took_the_place_of_another(tmp_path: Path) -> None:
    """An append, of which no thought is left; an agent that had written, and one that had not."""
    place = {"chain_key": "new"}
    keyed: list[tuple[str, dict[str, Any]]] = [
        ("chain.append", {**place, "thought_type": "Plan", "content": "the first", "agent_id": "ada"}),
        ("chain.upsert_agent", {**place, "agent_id": "ada", "display_name": "Ada"}),
        ("chain.upsert_agent", {**place, "agent_id": "eve", "display_name": "Eve"}),
    ]

    def ask(memory: MemoryRuntime) -> tuple[Any, Any, Any]:
        said, ada, eve = [memory.call(op, args, idempotency_key=str(key)) for key, (op, args) in enumerate(keyed)]
        return said.thought, ada.agent, eve.agent

    with open_at(tmp_path / "a.db") as memory:
        memory.create_chunk(conversation_id="c", content="something")
        taken = memory.export_space()
        first = ask(memory)
        assert ask(memory)[1:] == first[1:]
        memory.import_space(archive=taken.archive, mode="full_restore")
        gone = ask(memory)
        write(memory, "new", "of another", agent_id="ada", agent_name="Grace")
        memory.upsert_chain_agent(**place, agent_id="eve", display_name="Mallory")
        assert ask(memory) == gone
    thought, ada, eve = gone
    assert (thought.state, thought.content, thought.hash) == ("erased", None, first[0].hash)
    assert [(each.status, each.display_name) for each in (ada, eve)] == [("revoked", None)] * 2


@pytest.mark.parametrize("words", [{}, {"passphrase": PASSPHRASE}], ids=["public", "with private material"])
def test_a_masked_thought_never_leaves_with_its_content(tmp_path: Path, words: dict[str, str]) -> None:
    with open_at(tmp_path / "a.db") as memory:
        fill(memory, "mask")
        taken = memory.export_space(include_private=bool(words), **words)
        assert taken.left_out == {"masked_thoughts": 1}
        with pytest.raises(BeetleError, match="masked thoughts 1"):
            memory.import_space(archive=taken.archive, mode="full_restore", **words)
        with open_at(tmp_path / "b.db") as other:
            other.import_space(archive=taken.archive, mode="bootstrap_import", **words)
            assert CANARY.encode() not in bytes_of(tmp_path / "b.db")
            gone = other.get_thought(chain_key="trunk", thought_index=2).thought
            assert (gone.state, gone.content) == ("erased", None)
            assert other.chain_head(chain_key="trunk").head_hash == memory.chain_head(chain_key="trunk").head_hash
            assert_clean(other)


def test_a_damaged_chain_stays_behind_with_its_branches(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with open_at(path) as memory:
        fill(memory)
        write(memory, "sound", "one")
    edit(path, "UPDATE thought SET importance = 0.25 WHERE position = 1 AND chain = 1")
    with open_at(path) as memory:
        taken = memory.export_space()
    assert (taken.left_out["chains"], taken.counts["chains"], taken.counts["thoughts"]) == (3, 1, 1)


def records(path: Path) -> tuple[ChainRecord, ...]:
    with open_at(path) as memory:
        fill(memory)
        envelope, _ = open_envelope(memory.export_space().archive, "space")
    return msgspec.msgpack.decode(envelope.body, type=Body).records.chains


def test_what_no_store_has_written_is_no_chain(tmp_path: Path) -> None:
    found = records(tmp_path / "a.db")
    assert archived.first_fault(found, is_signed) is None
    trunk, branch, twig = found
    change = msgspec.structs.replace

    def thought(place: int, **fields: Any) -> tuple[ChainRecord, ...]:
        said = list(trunk.thoughts)
        said[place] = change(said[place], **fields)
        return (change(trunk, thoughts=tuple(said)), branch, twig)

    body = trunk.thoughts[3].body
    assert body is not None
    agents = tuple(change(each, keys=()) for each in trunk.agents)
    wrong: dict[str, tuple[ChainRecord, ...]] = {
        "[0].thoughts[0]: its hash is not": thought(0, importance=0.25),
        "[0].thoughts[0]: its type or role": thought(0, thought_type="Guess"),
        "[0].thoughts[0]: its schema_version": thought(0, schema_version=2),
        "[0].thoughts[0]: its hash is not that of": (change(trunk, thoughts=trunk.thoughts[1:]), branch, twig),
        "[0].thoughts[3]: its content is not": thought(3, body=change(body, content="x")),
        "[0].thoughts[3]: it has its content": thought(3, body=None),
        "[0].thoughts[3]: what is masked": thought(3, mark="masked", marked_at=1),
        "[0].thoughts[2]: it links": thought(2, links=(change(trunk.thoughts[2].links[0], index=2),)),
        "[0].thoughts[0]: the registry does not": (change(trunk, agents=()), branch, twig),
        "[0].agents[1]: an agent": (change(trunk, agents=(agents[0], agents[0])), branch, twig),
        "[0]: it branches off": (branch, twig),
        "[1]: a chain stands twice": (trunk, trunk),
        "[0]: it shares": (change(trunk, shared=1),),
        "[1]: the registry does not": (trunk, change(branch, agents=())),
    }
    for named, chains in wrong.items():
        fault = archived.first_fault(chains, is_signed)
        assert fault is not None, named
        assert f"{fault.path}: {fault.reason}".startswith(named)
    assert archived.first_fault(found, lambda *_: False) is not None


def test_an_archive_that_was_made_by_hand_is_refused_whole(tmp_path: Path) -> None:
    from beetle.domain.continuity import close_envelope, counts_of
    from beetle.domain.fingerprint import fingerprint_of

    with open_at(tmp_path / "a.db") as memory:
        fill(memory)
        envelope, _ = open_envelope(memory.export_space().archive, "space")
    body = msgspec.msgpack.decode(envelope.body, type=Body)
    said = list(body.records.chains[0].thoughts)
    said[0] = msgspec.structs.replace(said[0], importance=0.25)
    chain = msgspec.structs.replace(body.records.chains[0], thoughts=tuple(said))
    made = msgspec.structs.replace(body.records, chains=(chain, *body.records.chains[1:]))
    changed = msgspec.structs.replace(
        body, records=made, counts=counts_of(made), state_fingerprint=fingerprint_of(made)
    )
    with open_at(tmp_path / "b.db") as other:
        with pytest.raises(BeetleError) as found:
            other.import_space(archive=close_envelope("space", None, pack(changed)), mode="bootstrap_import")
        assert found.value.details["path"].endswith("records.chains[0].thoughts[0]")
        assert other.list_chains().chains == ()
