"""One function per operation, by area."""

from __future__ import annotations

from collections.abc import Mapping

from beetle.runtime.handlers import control, memory, skill, transcript, transcript_lifecycle
from beetle.runtime.handling import Handler

HANDLERS: Mapping[str, Handler] = {
    "memory.capabilities": Handler(plain=memory.capabilities),
    "memory.inspect": Handler(read=memory.inspect),
    "memory.recall": Handler(read=memory.recall),
    "memory.project": Handler(read=memory.project_memory),
    "memory.write": Handler(write=skill.write),
    "skill.list": Handler(read=skill.list_skills),
    "skill.detail": Handler(read=skill.detail),
    "skill.edit": Handler(write=skill.edit),
    "skill.set_enabled": Handler(write=skill.set_enabled),
    "skill.delete": Handler(write=skill.delete),
    "transcript.commit": Handler(write=transcript.commit),
    "transcript.replay": Handler(read=transcript.replay),
    "transcript.conversations": Handler(read=transcript.conversations),
    "transcript.timeline": Handler(read=transcript.timeline),
    "transcript.search": Handler(read=transcript.search),
    "transcript.lifecycle": Handler(write=transcript_lifecycle.lifecycle, settle=transcript_lifecycle.settle),
    "store.verify": Handler(read=control.verify_store),
    "hello": Handler(plain=control.hello),
}
"""Every row of the table but batch, subscribe and unsubscribe, which are the dispatcher's and the connection's own."""
