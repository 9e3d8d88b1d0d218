"""`beetle chain …`: each report as text that drives no terminal."""

from __future__ import annotations

from pathlib import Path

import pytest

from beetle.__main__ import main


def test_each_command_prints_a_text_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BEETLE_CONFIG", str(tmp_path / "beetle.toml"))
    (tmp_path / "beetle.toml").touch()

    def said(*words: str) -> str:
        capsys.readouterr()
        place = ("--store", str(tmp_path / "b.db"), "--socket", str(tmp_path / "b.sock"), "--profile", "standalone")
        assert main([*place, "chain", *words]) == 0, capsys.readouterr().err
        told = capsys.readouterr().out
        assert "\x1b" not in told
        return told

    assert said("bootstrap", "what it is for", "--chain-key", "a").startswith("Written: 1 thought, head ")
    more = (
        "--chain-key",
        "a",
        "--thought-type",
        "Plan",
        "--agent-id",
        "ada",
        "--agent-name",
        "Ada",
        "--tags",
        "ops",
    )
    assert "thoughts:a/1 Plan" in said("append", "a \x1b[31mcanary\x1b[0m", *more, "--refs", "0")
    assert "canary" in said("search", "canary", "--chain-key", "a")
    assert said("search", "nothing", "--chain-key", "a").strip() == "No thought fits."
    assert "More: --anchor-index 0" in said("traverse", "--chain-key", "a", "--chunk-size", "1")
    assert "#0" in said("thought", "--chain-key", "a", "--thought-index", "1")
    assert "The chain is empty." in said("genesis", "b")
    assert "Integrity:" in said("head", "a") and "whole" in said("head", "a")
    assert "shares 1 thought with a" in said("branch", "twig", "--chain-key", "a", "--anchor-index", "0")
    assert "a, 1 shared" in said("list")
    assert "Only in a:" in said("merge-report", "--chain-key", "a", "--other-chain-key", "twig")
    mask = ("lifecycle", "--chain-key", "a", "--action", "mask", "--indexes", "1", "--reason", "r")
    assert "mask done: #1" in said(*mask)
    assert said(*mask).strip() == "Nothing changed."
    assert "[masked]" in said("search", "--chain-key", "a")
    assert "Ada" in said("agents", "--chain-key", "a")
    assert "active" in said("agent-registry", "--chain-key", "a")
    assert "Aliases:" in said("agent", "ada", "--chain-key", "a")
    key = ("add-agent-key", "ada", "--chain-key", "a", "--key-id", "k", "--algorithm", "ed25519")
    assert "ed25519" in said(*key, "--public-key-bytes", str(list(range(32))))
    said("append", "b", *more[:4], "--refs", "0,1")
    assert "Refers to:   #0, #1" in said("thought", "--chain-key", "a", "--thought-index", "2")
