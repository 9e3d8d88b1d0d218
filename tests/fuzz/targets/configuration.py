"""beetle.toml: the loader, and `config check`, `config show` and `config set`."""

from __future__ import annotations

import contextlib
import io
import os
from pathlib import Path
from random import Random

from beetle.__main__ import main
from beetle.contracts.errors import STATUS
from beetle.runtime.host.config import read_config
from tests.fuzz.contract import Broken, refusal_of
from tests.fuzz.mutation import changed_bytes
from tests.fuzz.targets.target import Target

EXAMPLE = Path(__file__).parents[3] / "profiles/beetle.toml.example"
ALLOWED = frozenset({0} | {each.exit_code for key, each in STATUS.items() if key != "internal"})


class Configuration(Target):
    packages = ("beetle", "tomllib")
    tokens = (
        b"[daemon]\n", b"[replica]\n", b"[principals.x]\n", b"uid = 0\n", b'url = "sftp://u@h:1/p"\n', b"'''", b'"""',
        b"= {", b"[[", b"]]", b"=", b"#", b"[", b"]\n", b"inf", b"nan", b"1979-05-27T07:32:00Z", b'"\\u0000"', b".",
    )  # fmt: skip

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._file = folder / "beetle.toml"

    def __call__(self, data: bytes) -> None:
        self._file.write_bytes(data)
        self._file.chmod(0o600)
        config = refusal_of(lambda: read_config(self._file, {}, os.getuid()))
        checked = self._run("config", "check")
        if config is not None and checked == 0:
            raise Broken(f"config check takes what the daemon refuses: {config.message}")
        self._run("config", "show", "--all", "--json")
        changed = self._run("config", "set", "console.theme", "dark")
        after = self._file.read_bytes()
        if changed != 0 and after != data:
            raise Broken("a change that was refused has changed the file")
        if changed == 0 and self._run("config", "check") != 0:
            raise Broken("a change that was made has broken the file")

    def _run(self, *words: str) -> int:
        out, told = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(told):
            code = main(["--config", str(self._file), *words])
        if code not in ALLOWED:
            raise Broken(f"{' '.join(words)} ended with {code}: {told.getvalue()}")
        return code

    def seeds(self) -> list[bytes]:
        example = EXAMPLE.read_text()
        plain = "\n".join(
            line.removeprefix("#").removeprefix(" ") if "=" in line else line for line in example.split("\n")
        )
        replicas = [
            'url = "sftp://u@host:22/a/b"\nhost_key = "ssh-ed25519 AAAA"\nsecret_file = "/run/x"',
            'url = "s3://bucket/path"\nendpoint = "https://a.b"\naccess_key_id = "id"',
            'url = "nats://u@host:4222/bucket"', 'url = "file:///var/replica"',
        ]  # fmt: skip
        principals = (
            '[principals.voice]\nuid = 1001\nowner_id = "o"\ncapabilities = ["recall"]\nviews = ["host_ui"]\n'
            '[scheduler]\ntime_zone = "Europe/Berlin"\n[scheduler.jobs.retention]\ncron = "0 3 * * *"\n'
        )
        many = "[agent_skills]\ndirs = [\n" + "".join(f'  "/opt/{n}", # {n}\n' for n in range(20)) + "]\n"
        return [
            example.encode(), plain.encode(), principals.encode(), many.encode(),
            *(f"[replica]\n{each}\n".encode() for each in replicas),
        ]  # fmt: skip

    def changed(self, dice: Random, data: bytes) -> bytes:
        """A line changed, moved to another table or doubled."""
        lines = data.split(b"\n")
        at = dice.randrange(len(lines))
        match dice.randrange(5):
            case 0:
                lines.insert(dice.randrange(len(lines)), lines[at])
            case 1:
                del lines[at]
            case 2 if b"=" in lines[at]:
                odd = (b"true", b"-1", b'""', b'"\\u0000"', b"[]", b"{}", b"9" * 30, b"nan", b'["a", 1]', b"2020-01-01")
                lines[at] = lines[at].partition(b"=")[0] + b"= " + dice.choice(odd)
            case 3:
                lines[at] = changed_bytes(dice, lines[at], self.tokens, most=2)
            case _:
                return changed_bytes(dice, data, self.tokens)
        return b"\n".join(lines)
