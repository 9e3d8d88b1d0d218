"""MemoryRuntime: opening, the builder, identity, closing."""

from __future__ import annotations

from pathlib import Path

import pytest

from beetle import MemoryIdentity, MemoryRuntime, MemoryScope
from beetle.contracts.errors import InvalidRequest, NotFound, StoreLocked, StoreReadOnly
from beetle.contracts.names import BACKEND_NAMES as BACKENDS


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_builder_opens_what_open_opens(tmp_path: Path, backend: str) -> None:
    builder = MemoryRuntime.builder().store(str(tmp_path / "m.db")).profile("dev-full").backend(backend)
    identity, scope = MemoryIdentity(owner_id="ana"), MemoryScope(chat_id="kitchen")
    with builder.identity(identity).scope(scope).open() as memory:
        assert memory.open_report.backend == backend
        assert memory.open_report.created
        assert memory.capabilities().backend == backend


def test_a_builder_is_never_changed_by_its_own_steps() -> None:
    first = MemoryRuntime.builder()
    assert first.profile("compact") is not first
    assert first == MemoryRuntime.builder()


def test_closing_twice_is_closing_once_and_frees_the_store(tmp_path: Path) -> None:
    path = str(tmp_path / "m.db")
    memory = MemoryRuntime.open(path, profile="compact")
    with pytest.raises(StoreLocked):
        MemoryRuntime.open(path, profile="compact")
    memory.close()
    memory.close()
    MemoryRuntime.open(path, profile="compact").close()


def test_a_closed_runtime_writes_nothing(tmp_path: Path) -> None:
    memory = MemoryRuntime.open(str(tmp_path / "m.db"), profile="compact")
    memory.close()
    with pytest.raises(StoreReadOnly):
        memory.delete_runtime_skill(name="x")


def test_an_identity_that_is_no_id_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest) as refused:
        MemoryRuntime.open(str(tmp_path / "m.db"), identity=MemoryIdentity(owner_id="a\nb"))
    assert refused.value.details["path"] == "$.identity.owner_id"
    assert list(tmp_path.iterdir()) == []


def test_a_backend_that_the_profile_does_not_allow_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest) as refused:
        MemoryRuntime.open(str(tmp_path / "m.db"), profile="compact", backend="in-memory")
    assert "embedded" in refused.value.hint


def test_an_unknown_profile_names_the_nearest() -> None:
    with pytest.raises(InvalidRequest) as refused:
        MemoryRuntime.open("/nowhere/m.db", profile="compct")
    assert "compact" in refused.value.hint


def test_a_request_and_its_fields_together_are_a_mistake_of_the_caller(tmp_path: Path) -> None:
    from beetle.contracts.skills import RuntimeSkillDetailRequest

    with MemoryRuntime.open(str(tmp_path / "m.db"), profile="compact") as memory:
        with pytest.raises(TypeError):
            memory.get_runtime_skill(RuntimeSkillDetailRequest(name="x"), name="y")
        with pytest.raises(NotFound):
            memory.get_runtime_skill(RuntimeSkillDetailRequest(name="x"))
