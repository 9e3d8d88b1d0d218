"""A process that runs recorded steps on one store and says each number once that step is answered.

As a program: `python -m tests.sdk.child BACKEND FOLDER`, with the steps as lines of JSON on its standard input.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.sdk.recorded import Request
from tests.sdk.reopened import ReopenedStore


def main(backend: str, folder: str) -> None:
    place = ReopenedStore(backend, Path(folder))
    for number, line in enumerate(sys.stdin):
        place.ask(Request.from_json(line))
        print(number, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
