"""One function per operation, by area."""

from __future__ import annotations

from collections.abc import Mapping

from beetle.runtime.handlers import (
    control,
    governance,
    inspect,
    long_term,
    long_term_mutate,
    memory,
    policy,
    private,
    skill,
    transcript,
    transcript_lifecycle,
    transcript_repair,
)
from beetle.runtime.handling import Handler

HANDLERS: Mapping[str, Handler] = {
    "memory.capabilities": Handler(plain=memory.capabilities),
    "memory.inspect": Handler(read=inspect.inspect),
    "memory.recall": Handler(read=memory.recall),
    "memory.project": Handler(read=memory.project_memory),
    "memory.write": Handler(write=governance.write),
    "skill.list": Handler(read=skill.list_skills),
    "skill.detail": Handler(read=skill.detail),
    "skill.edit": Handler(write=skill.edit),
    "skill.set_enabled": Handler(write=skill.set_enabled),
    "skill.delete": Handler(write=skill.delete),
    "long_term.list": Handler(read=long_term.list_facts),
    "long_term.detail": Handler(read=long_term.detail),
    "long_term.policy": Handler(write=policy.policy),
    "long_term.mutate": Handler(write=long_term_mutate.mutate, settle=transcript_lifecycle.settle),
    "transcript.commit": Handler(write=transcript.commit),
    "transcript.replay": Handler(read=transcript.replay),
    "transcript.export": Handler(read=transcript.export),
    "transcript.conversations": Handler(read=transcript.conversations),
    "transcript.timeline": Handler(read=transcript.timeline),
    "transcript.search": Handler(read=transcript.search),
    "transcript.lifecycle": Handler(write=transcript_lifecycle.lifecycle, settle=transcript_lifecycle.settle),
    "private.list": Handler(read=private.list_private),
    "private.get": Handler(read=private.get_private),
    "transcript.repair": Handler(read=transcript_repair.repair),
    "transcript.repair_safe": Handler(write=transcript_repair.repair_safe),
    "store.verify": Handler(read=control.verify_store),
    "hello": Handler(plain=control.hello),
}
"""Every row of the table but batch, subscribe and unsubscribe, which are the dispatcher's and the connection's own."""
