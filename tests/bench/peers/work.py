"""The process of one store: opens it, then does what it is asked, one line of JSON on its input for each.

    python -m tests.bench.peers.work NAME FOLDER SETTINGS

The first line that it writes says the library's version, or what is not installed. It ends with its input.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any, TextIO

from tests.bench.peers.stores import KINDS, Settings, Store

PART_CHARS = 100
"""A part of a text that is so long is of no other text."""


def add(store: Store, first: int, texts: list[str]) -> dict[str, Any]:
    """One at a time: seconds in all, and from when to when by the clock that a trace of the process has too."""
    began, from_ = time.perf_counter(), time.time()
    for number, text in enumerate(texts, first):
        store.add(number, text)
    return {"seconds": time.perf_counter() - began, "from": from_, "to": time.time()}


def ask(store: Store, questions: list[str]) -> dict[str, Any]:
    """Milliseconds of each question."""
    times = []
    for each in questions:
        began = time.perf_counter()
        store.find(each)
        times.append((time.perf_counter() - began) * 1000)
    return {"ms": times}


def found(store: Store, wanted: list[tuple[str, str]]) -> dict[str, Any]:
    """How many of these texts are among the answers to the question that stands beside each; of a long text, a part."""
    count = 0
    for question, text in wanted:
        count += any(each == text or (len(each) >= PART_CHARS and each in text) for each in store.find(question))
    return {"found": count}


def serve(store: Store, told: TextIO) -> None:
    """Until the input ends."""
    for line in sys.stdin:
        asked = json.loads(line)
        match asked.pop("do"):
            case "add":
                answer = add(store, **asked)
            case "fill":
                store.add_many(asked["first"], asked["texts"])
                answer = {}
            case "ask":
                answer = ask(store, **asked)
            case "found":
                answer = found(store, **asked)
            case other:
                raise ValueError(other)
        print(json.dumps(answer), file=told, flush=True)


def main() -> int:
    # Libraries may print what they like: it goes to the log, not among the answers.
    told = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    name, folder, settings = sys.argv[1:]
    try:
        store = KINDS[name].open(Path(folder), Settings(**json.loads(settings)))
    except ModuleNotFoundError as error:
        print(json.dumps({"missing": str(error)}), file=told, flush=True)
        return 0
    print(json.dumps({"version": store.version}), file=told, flush=True)
    serve(store, told)
    store.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
