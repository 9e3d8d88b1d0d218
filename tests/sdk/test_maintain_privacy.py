"""What a model is shown: every class of material × every stage × every caller, near and far."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from beetle.contracts.errors import PrivacyDenied
from beetle.runtime.host.model import ModelClient
from tests.building import CONVERSATION
from tests.governance.material import ALL, ASKERS, KINDS, STAGES, Store, canary
from tests.governance.test_privacy_matrix import sees_message
from tests.sdk.answering import ModelServer


@pytest.fixture
def server() -> Iterator[ModelServer]:
    running = ModelServer()
    yield running
    running.stop()


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("near", [True, False], ids=["this machine", "another machine"])
def test_a_model_is_shown_what_its_caller_s_own_model_may_see_and_nothing_private_leaves_the_machine(
    stage: str,
    near: bool,
    server: ModelServer,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ModelClient, "local", property(lambda _: near))
    store = Store(tmp_path_factory.mktemp("shown"), stage)
    dispatcher = store.door.opened.dispatcher
    dispatcher.shared = dispatcher.shared._replace(model=ModelClient(server.model()))
    for who, asker in ASKERS.items():
        server.asked.clear()
        store.door.opened.store.write(lambda tx: tx.run("DELETE FROM maintained"))
        if "model_context" not in asker.caller.views:
            with pytest.raises(PrivacyDenied):
                store.ask("memory.maintain", {"conversation": CONVERSATION}, who)
            assert server.asked == []
            continue
        report = store.ask("memory.maintain", {"conversation": CONVERSATION}, who)
        expected = {
            canary(f"said {kind}")
            for kind in KINDS
            if kind in ("shared", "private") and sees_message(kind, stage, "model_context", asker.own_agent)
            if near or kind == "shared"
        }
        sent = json.dumps([each.body for each in server.asked])
        assert {each for each in ALL if each in sent} == expected, who
        assert (report["asked"], report["shown"]) == (bool(expected), len(expected))
    store.close()
