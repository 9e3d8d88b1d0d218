"""What `beetle doctor` finds of the program's own files: whether they are those of the release."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

from beetle.cli.finding import Finding

NAMED = 8
"""So many differences are named; of a tree that is all wrong, the first ones say it."""
AGAIN = "install this version again from its one file, after checking that: beetle help release"


def check_tree(release_key: str | None) -> Iterator[Finding]:
    """The tree that this program runs from; nothing where it is none. `release_key` is a file with a public key."""
    from beetle.deploy.frozen import tree_of
    from beetle.deploy.release import RELEASE_KEYS, check_release, read_public_key

    tree, inside = tree_of(sys.executable), getattr(sys, "_MEIPASS", None)
    if inside is None or os.path.dirname(os.path.realpath(inside)) != tree:
        return
    keys = (*([read_public_key(release_key)] if release_key else []), *RELEASE_KEYS)
    found = check_release(tree, keys)
    if found.differences:
        more = f", and {len(found.differences) - NAMED} things more" if len(found.differences) > NAMED else ""
        text = f"{found.name} is not as it was built: {'; '.join(found.differences[:NAMED])}{more}"
        yield Finding("tree", "problem", text, AGAIN, "integrity_violation")
        return
    text = f"{found.name}: {found.files} files as they were built"
    if found.key is not None:
        yield Finding("tree", "ok", f"{text}; signed with the release key {found.key[:16]}…")
    elif not found.signed and not keys:
        yield Finding("tree", "ok", f"{text}; built without a release key: sums are checked, the signature is not")
    elif not found.signed:
        yield Finding("tree", "note", f"{text}; the build is not signed: sums are checked, the signature is not")
    elif keys:
        text = f"{text}; their list is not signed with a known release key"
        yield Finding("tree", "problem", text, AGAIN, "integrity_violation")
    else:
        advice = "beetle doctor --release-key FILE checks it with the release's public key"
        yield Finding("tree", "note", f"{text}; signed with a key that this build does not know", advice)
