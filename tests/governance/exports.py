"""What exports hold, for the privacy matrix: their bytes opened, and what the contract lets leave."""

from __future__ import annotations

import base64
import zlib

from beetle.chunk_tree.archive import GZIP_MAGIC, GZIP_WINDOW
from beetle.contracts.codec import unpack
from beetle.contracts.continuity_records import Envelope
from beetle.domain.continuity import belongs_to
from beetle.runtime.host.passphrase import unseal
from tests.conformance.doors import Plain
from tests.governance.material import canary

WORDS = "correct horse battery"
WHOLE = {"include_private": True, "passphrase": WORDS}

FACTS = {
    canary(name) for name in ("fact shared", "fact old", "fact new", "fact stale", "fact superseded", "fact successor")
} | {canary("fact reason")}
SKILLS = {canary("skill live"), canary("skill off")}
SPACE = {
    canary(name)
    for name in (
        "policy topic", "policy reason", "registry title", "registry summary", "uploaded name", "uploaded text",
        "thought", "thought agent", "chunk", "chunk archived", "chunk tag",
    )
}  # fmt: skip
PRIVATE = {canary(name) for name in ("fact private", "garden", "soul candidate", "waiting")}
BRIEFS = {canary(name) for name in ("tool brief", "tool result", "tool note")}


def opened(report: Plain) -> str:
    """What stands in the bytes of an export; nothing for any other report."""
    text = report.get("snapshot") or report.get("archive")
    if not isinstance(text, str):
        return ""
    data = base64.b64decode(text)
    if data.startswith(GZIP_MAGIC):
        return zlib.decompress(data, GZIP_WINDOW).decode("latin-1")
    envelope = unpack(data, Envelope)
    if envelope.sealing is None:
        return data.decode("latin-1")
    sealing = envelope.sealing
    bound = belongs_to(envelope.signed is not None, envelope.kind, sealing)
    body = unseal(WORDS, sealing.salt, sealing.nonce, bytes(envelope.body), bound)
    assert body is not None
    return body.decode("latin-1")
