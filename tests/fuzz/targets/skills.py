"""Skills as text: the skill registry (Markdown and JSON), and mounted folders of Agent Skills."""

from __future__ import annotations

from pathlib import Path
from random import Random

from beetle import MemoryRuntime
from tests.cases import UPLOAD
from tests.fuzz.contract import Broken, refusal_of
from tests.fuzz.mutation import changed_bytes, changed_json
from tests.fuzz.targets.prepared import SCOPE, fill
from tests.fuzz.targets.target import Memory, Target

SAMPLES = (
    "---\nname: backup\ndescription: 'how to back up'\nversion: \"1.0\"\ntags: [a, b]\nallowed-tools: Read, Write\n"
    "metadata:\n  author: somebody\n---\n# Backup\n\nCopy it.\n\n## Steps\n\n```sh\n# no heading\ncp a b\n```\n",
    "---\r\nname: x\r\ndescription: >\r\n  folded\r\n  text\r\nlicense: MIT\r\n---\r\n\r\n# A\r\n\r\n### B\r\n",
    '---\nname: &a anchor\ndescription: *a\ntags:\n- one\n- "two"\n---\nbody',
    "---\nname: |\n  block\ndescription: !!str tagged\n? complex\n: value\n---\n",
    "# Only a title\n\nand words\n",
)


class Skills(Target):
    packages = ("beetle", "yaml")
    tokens = (
        b"---\n", b": ", b"- ", b"|\n", b">\n", b"&a ", b"*a", b"!!", b"{", b"}", b"[", b"]", b"? ", b"# ", b"```",
        b"~~~", b"%YAML 1.1\n", b"\t", b"<<: *a\n", b"\xe2\x80\xa8", b"\xc2\x85", b"\xff", b'"\\u0000"', b"\r",
    )  # fmt: skip

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._memory = Memory(folder, fill)
        skill = folder / "mounted" / "one"
        skill.mkdir(parents=True)
        self._file = skill / "SKILL.md"
        self._mounting = MemoryRuntime.open(
            str(folder / "mounting.db"), profile="compact", agent_skill_dirs=[folder / "mounted"]
        )

    def __call__(self, data: bytes) -> None:
        text = data.decode("utf-8", "surrogatepass" if data[:1] == b"!" else "replace")
        form = "json" if text[:1] == "{" else "markdown"
        given = {"agent_id": "agent-main", "content": text, "format": form}
        report = self._memory.ask("skill_registry.upload", given, SCOPE)
        if report is not None:
            self._read_back(report.skill.skill_id, form, text)
        self._file.write_bytes(data)
        refusal_of(lambda: self._mounting.list_agent_skills())

    def _read_back(self, skill_id: str, form: str, text: str) -> None:
        read = self._memory.ask("skill_registry.read", {"skill_id": skill_id, "format": form}, SCOPE)
        if read is None or read.content != text:
            raise Broken("a skill is not read as it was uploaded")
        other = "markdown" if form == "json" else "json"
        if self._memory.ask("skill_registry.read", {"skill_id": skill_id, "format": other}, SCOPE) is None:
            raise Broken(f"a skill cannot be read as {other}")

    def seeds(self) -> list[bytes]:
        ask = self._memory.ask
        made = ask("skill_registry.upload", {**UPLOAD, "content": SAMPLES[0]}, SCOPE).skill.skill_id
        as_json = ask("skill_registry.read", {"skill_id": made, "format": "json"}, SCOPE).content
        return [*(each.encode() for each in SAMPLES), as_json.encode()]

    def changed(self, dice: Random, data: bytes) -> bytes:
        """With a front matter or an object that can still be read."""
        if data[:1] == b"{":
            return changed_json(dice, data)
        lines = data.split(b"\n")
        at = dice.randrange(len(lines))
        lines[at] = changed_bytes(dice, lines[at], self.tokens, most=2)
        if dice.random() < 0.3:
            lines.insert(dice.randrange(len(lines)), lines[at])
        return b"\n".join(lines)

    def renew(self) -> None:
        self._memory.renew()

    def close(self) -> None:
        self._mounting.close()
        self._memory.close()
