"""Says the digest of the schema after each migration: `python -m tests.store.schema_digests`."""

from __future__ import annotations

import sys

from beetle.store.engine import migrate, schema


def digests() -> tuple[str, ...]:
    """What `beetle.store.engine.schema.DIGESTS` must be."""
    known = migrate.available()
    return tuple(schema.digest(migrate.made(known, each.number)) for each in known)


if __name__ == "__main__":
    sys.stdout.writelines(f'    "{each}",\n' for each in digests())
