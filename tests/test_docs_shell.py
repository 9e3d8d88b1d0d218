"""The `sh` blocks of the pages: each is run by a test, or stands here with the reason why none can run it as it is."""

from __future__ import annotations

from tests.test_docs import DOCS, README, ROOT, Block, blocks

RUN_BY = {
    "README.md: python3 -m venv env && . env/bin/activate": "packaging/tests/five_minutes.py",
    "README.md: sh packaging/try.sh": "packaging/release.sh",
    "build.md: sh packaging/build.sh            # the one": "packaging/release.sh",
    "build.md: sh packaging/build.sh            # first": "packaging/release.sh",
    "device.md: ./beetle-0.1.0-linux-x86_64 install": "packaging/tests/device.sh",
    "device.md: beetle --config /etc/beetle/beetle.toml start\nbeetle remember": "packaging/tests/device.sh",
    "device.md: beetle --config /etc/beetle/beetle.toml start\nbeetle verify": "packaging/tests/device.sh",
    "first-agent.md: python3 -m venv env && . env/bin/activate": "packaging/tests/five_minutes.py",
    "look-after-a-device.md: sudo ./beetle-0.1.0-linux-x86_64 install": "tests/one_file/test_one_file.py",
    "release.md: openssl pkeyutl": "packaging/tests/packages.sh",
    "release.md: sh packaging/build.sh": "packaging/tests/reproducible.sh",
}
"""A page and how its block begins: what runs it."""
NOT_RUN = {
    "backup.md: beetle identity renew": "it asks on a terminal: tests/cli/test_doctor.py does it",
    "performance.md: python -m tests.bench.writes": "it takes minutes: tests/store/test_write_pages.py holds the pages",
    "performance.md: python -m tests.bench.scale": "it takes minutes: tests/test_benches.py runs a small one",
    "performance.md: python3 -m venv ENVIRONMENT": "it takes minutes: tests/test_benches.py runs the floor alone",
    "bench.md: beetle bench": "it takes minutes: tests/cli/test_bench.py runs a small one",
    "README.md: pip install .": "the environment is the reader's; tests/test_wheel.py has one of its own",
    "capture.md: beetle host-key enroll": "the key is the reader's; tests/capture/test_turns.py enrolls some",
    "capture.md: beetle capture --host": "the files are the reader's; tests/capture/test_command.py reads the samples",
    "grpc.md: beetle start --profile gateway": "needs grpcurl; tests/transports/test_grpcurl.py runs it where it is",
    "install.md: sudo ./beetle-0.1.0-linux-x86_64 install": "needs a system; tests/deploy/test_built.py has one",
    "install.md: sudo beetle install --rollback": "changes the machine; tests/cli/test_install.py does it below a root",
    "install.md: /usr/local/bin/beetle": "the path is the system's; tests/running.py starts daemons by --config",
    "install.md: cd /var/lib/beetle && mv beetle.db beetle.db.newer": "the system's; tests/cli/test_install.py",
    "replication.md: gocryptfs -init": "needs gocryptfs; tests/runtime/test_replica_targets.py runs it where it is",
    "replication.md: beetle replica forget": "needs a replica; tests/runtime/test_replica_erasure.py keeps one",
    "replication.md: beetle replica restore --dry-run": "needs a replica; tests/runtime/test_replica_restore.py",
    "install.md: sudo beetle uninstall": "changes the machine; tests/deploy/test_built.py does it below a root",
    "release.md: export BEETLE_RELEASE_KEY": "the key is the release's; packaging/tests/packages.sh checks signatures",
    "install.md: sudo apt install": "changes the machine; packaging/tests/packages.sh does it in a root",
    "toc.md: beetle query root": "the nodes are the reader's; tests/cli/test_query.py types each of these",
}
"""The same, and why it is not run; a test that runs something near it."""


def shell_blocks() -> dict[str, Block]:
    pages = [README, *sorted(DOCS.glob("*.md"))]
    return {f"{page.name}: {block.text}": block for page in pages for block in blocks(page, "sh")}


def test_every_block_is_run_or_says_why_not() -> None:
    listed = {**RUN_BY, **NOT_RUN}
    found = {name: [each for each in listed if name.startswith(each)] for name in shell_blocks()}
    assert [name for name, entries in found.items() if len(entries) != 1] == []
    assert {entry for entries in found.values() for entry in entries} == set(listed), "of a block that is there"
    for reason in listed.values():
        named = [each.strip(";:,") for each in reason.split() if each.strip(";:,").endswith((".py", ".sh"))]
        assert named and all((ROOT / each).is_file() for each in named), reason
