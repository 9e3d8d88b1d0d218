"""Whoever can write a configuration is the operator: one that a neighbour may write is not obeyed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from beetle.__main__ import main
from beetle.contracts.errors import InvalidRequest
from beetle.domain.maintenance import Prompt
from beetle.runtime.host.config import Model, read_config
from beetle.runtime.host.model import ModelClient
from beetle.runtime.host.model_failure import ModelFailed

ME, NEIGHBOUR = os.getuid(), 4711
AS_ROOT = pytest.mark.skipif(ME != 0, reason="gives files to another user")
TEXT = '[daemon]\ngroup = "agents"\n'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    tmp_path.chmod(0o755)
    folder = tmp_path / "etc"
    folder.mkdir(mode=0o755)
    folder.chmod(0o755)
    made = folder / "beetle.toml"
    made.write_text(TEXT)
    made.chmod(0o644)
    return made


def _mode(mode: int) -> Callable[[Path], None]:
    return lambda path: path.chmod(mode)


def _given_away(path: Path) -> None:
    os.chown(path, NEIGHBOUR, NEIGHBOUR)


def _folder(change: Callable[[Path], None], up: int = 1) -> Callable[[Path], None]:
    return lambda file: change(file.parents[up - 1])


def _sticky(file: Path) -> None:
    file.parent.chmod(0o1777)


def _a_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def _a_pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file, 0o600)


def _through_a_link(change: Callable[[Path], None]) -> Callable[[Path], None]:
    """The file stands in a good folder under a link; the folder that the link leads to is another one."""

    def make(file: Path) -> None:
        other = file.parents[1] / "other"
        other.mkdir()
        other.chmod(0o755)
        file.rename(other / "real.toml")
        (other / "step").symlink_to("real.toml")
        file.symlink_to(other / "step")
        change(other)

    return make


def _a_link_of_the_neighbours(file: Path) -> None:
    real = file.with_name("real.toml")
    file.rename(real)
    file.symlink_to(real)
    os.lchown(file, NEIGHBOUR, NEIGHBOUR)


BAD = {
    "others may write it": (_mode(0o646), "chmod go-w"),
    "its group may write it": (_mode(0o664), "chmod go-w"),
    "others may write its folder": (_folder(_mode(0o757)), "chmod go-w"),
    "its group may write its folder": (_folder(_mode(0o775)), "chmod go-w"),
    "others may write the folder above": (_folder(_mode(0o777), 2), "chmod go-w"),
    "others may write where a link leads": (_through_a_link(_mode(0o777)), "chmod go-w"),
    "a folder": (_a_folder, ""),
    "a pipe": (_a_pipe, "regular"),
}
BAD_AS_ROOT = {
    "a neighbour's": (_given_away, "chown"),
    "a neighbour's folder": (_folder(_given_away), "folder of your own"),
    "a neighbour's sticky folder": (lambda file: (_sticky(file), _given_away(file.parent)), "folder of your own"),
    "a neighbour's in a sticky folder": (lambda file: (_sticky(file), _given_away(file)), "chown"),
    "a neighbour's link": (_a_link_of_the_neighbours, "folder of your own"),
}
CASES = [pytest.param(*case, id=name) for name, case in BAD.items()]
CASES += [pytest.param(*case, id=name, marks=AS_ROOT) for name, case in BAD_AS_ROOT.items()]


@pytest.mark.parametrize(("spoil", "hint"), CASES)
def test_a_configuration_that_a_neighbour_may_change_is_refused(
    file: Path, spoil: Callable[[Path], object], hint: str
) -> None:
    spoil(file)
    with pytest.raises(InvalidRequest) as told:
        read_config(file, {}, ME)
    assert str(file) in told.value.message
    assert told.value.details["file"] == str(file)
    assert hint in told.value.hint
    with pytest.raises(InvalidRequest):
        read_config(None, {"BEETLE_CONFIG": str(file)}, ME)


@pytest.mark.parametrize(
    "change", [_mode(0o444), _mode(0o600), _sticky, _through_a_link(_mode(0o755)), _folder(_mode(0o700))]
)
def test_one_that_nobody_else_may_change_is_read(file: Path, change: Callable[[Path], None]) -> None:
    change(file)
    assert read_config(file, {}, ME).daemon.group == "agents"


@AS_ROOT
def test_the_users_own_and_roots_are_read_by_the_user(file: Path) -> None:
    assert read_config(file, {}, NEIGHBOUR).daemon.group == "agents"
    _given_away(file)
    assert read_config(file, {}, NEIGHBOUR).daemon.group == "agents"


def test_the_daemon_and_the_commands_tell_it(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.chmod(0o666)
    for words in (["serve"], ["memory", "capabilities"]):
        assert main([f"--config={file}", f"--store={file.parent / 'b.db'}", *words]) == 2
        said = capsys.readouterr().err
        assert "invalid_request" in said
        assert f"chmod go-w {file}" in said
    assert not (file.parent / "b.db").exists()


@pytest.mark.parametrize(("spoil", "hint"), CASES)
def test_a_key_that_a_neighbour_may_change_is_not_sent(file: Path, spoil: Callable[[Path], object], hint: str) -> None:
    del hint
    file.write_text("the-key\n")
    file.chmod(0o600)
    spoil(file)
    model = Model(kind="openai", name="m", url="http://127.0.0.1:9/v1", api_key_file=str(file), timeout_s=1)
    with pytest.raises(ModelFailed) as told:
        ModelClient(model).ask(Prompt("", ""))
    assert told.value.code == "no_key"
