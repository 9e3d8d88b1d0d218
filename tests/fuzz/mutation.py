"""Changes to documents that know their form: to bytes, to values, to the members of an archive.

Every change draws from one `random.Random`: Hypothesis gives one that it can shrink, the coverage-guided fuzzer one of
its own seed.
"""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

Values = Sequence[Any]

ODD_TEXTS = (
    "", " ", "\x00", "\n", "a\x00b", "é", "\U0001f9ff", "\ufeff", "\u202e", "x" * 300, "../../etc/passwd", "/", "-",
    "2024-05-01T10:00:00Z", "9999-12-31T23:59:59.999999+00:00", "0001-01-01T00:00:00+23:59", "null", "NaN", "1e999",
    "evidence:local/talk/t1", "---", "```", "%00", "a/b", "\r\n", "<script>", "$.args", "{}", "\\u0000",
)  # fmt: skip
ODD_NUMBERS = (
    0, 1, -1, 2, 7, 255, 256, 2**31 - 1, 2**31, 2**53, 2**63 - 1, -(2**63), 2**63, 2**64, 10**30, 0.5, -0.0, 1e308,
    float("inf"), float("nan"),
)  # fmt: skip
ODD_VALUES: tuple[Any, ...] = (None, True, False, [], {}, "", 0, b"", [None], {"": None}, [[[[]]]], {"a": {"a": {}}})


def changed_bytes(dice: Random, data: bytes, tokens: Sequence[bytes] = (), most: int = 4) -> bytes:
    """Bytes flipped, taken out, repeated, swapped, and `tokens` put in."""
    out = bytearray(data or b"\0")
    for _ in range(dice.randint(1, most)):
        at = dice.randrange(len(out) + 1)
        match dice.randrange(6 if tokens else 5):
            case 0:
                at = min(at, max(0, len(out) - 1))
                if out:
                    out[at] ^= 1 << dice.randrange(8)
            case 1:
                del out[at : at + dice.choice((1, 2, 4, 16, 200))]
            case 2:
                out[at:at] = out[at : at + dice.choice((1, 8, 64, 500))] * dice.choice((1, 2, 20))
            case 3:
                out[at : at + 1] = bytes([dice.choice((0, 1, 9, 10, 32, 34, 91, 92, 93, 123, 125, 127, 128, 192, 255))])
            case 4:
                other = dice.randrange(len(out) + 1)
                out[at : at + 8] = out[other : other + 8]
            case _:
                out[at:at] = dice.choice(tokens)
        if not out:
            out = bytearray(b"\0")
    return bytes(out)


def changed_value(dice: Random, value: Any, known: Values = ()) -> Any:
    """A copy of a plain value that differs in one place: a value replaced, a key or an item taken away or doubled."""
    places = list(_places(value))
    path = dice.choice(places)
    return _with(value, path, lambda old: _another(dice, old, known))


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path]
    if isinstance(value, Mapping):
        for key, each in value.items():
            found += _places(each, (*path, key))
    elif isinstance(value, list | tuple):
        for index, each in enumerate(value):
            found += _places(each, (*path, index))
    return found


def _with(value: Any, path: tuple[Any, ...], change: Callable[[Any], Any]) -> Any:
    if not path:
        return change(value)
    first, rest = path[0], path[1:]
    if isinstance(value, Mapping):
        return {key: _with(each, rest, change) if key == first else each for key, each in value.items()}
    return [_with(each, rest, change) if index == first else each for index, each in enumerate(value)]


def _another(dice: Random, old: Any, known: Values) -> Any:
    sort = dice.randrange(10)
    if sort == 0:
        return dice.choice(ODD_VALUES)
    if sort == 1 and known:
        return dice.choice(known)
    if isinstance(old, Mapping) and old:
        return _another_map(dice, dict(old))
    if isinstance(old, list | tuple) and old:
        items = list(old)
        at = dice.randrange(len(items))
        match dice.randrange(4):
            case 0:
                del items[at]
            case 1:
                items.insert(at, items[dice.randrange(len(items))])
            case 2:
                items = items * dice.choice((2, 5, 30))
            case _:
                items.reverse()
        return items
    if isinstance(old, bool) or old is None:
        return dice.choice((True, False, None, 1, "x"))
    if isinstance(old, int | float):
        return dice.choice((*ODD_NUMBERS, old + 1, -old, str(old)))
    if isinstance(old, bytes):
        return changed_bytes(dice, old)
    if isinstance(old, str):
        return dice.choice((*ODD_TEXTS, old * 2, old[:-1], old + "x", old[:1] + "\x00" + old[1:], f" {old}", [old]))
    return dice.choice(ODD_TEXTS)


def _another_map(dice: Random, old: dict[Any, Any]) -> dict[Any, Any]:
    key = dice.choice(list(old))
    match dice.randrange(4):
        case 0:
            del old[key]
        case 1:
            old[dice.choice(ODD_TEXTS)] = old[key]
        case 2:
            old[f"{key}s"] = dice.choice(ODD_VALUES)
        case _:
            old[key] = old[dice.choice(list(old))]
    return old


def changed_json(dice: Random, data: bytes, times: int = 3) -> bytes:
    """A JSON document with some of its values changed; other bytes where it is none."""
    try:
        value = json.loads(data)
        for _ in range(dice.randint(1, times)):
            value = changed_value(dice, value)
        return json.dumps(value, ensure_ascii=dice.random() < 0.5, default=repr).encode("utf-8", "surrogatepass")
    except (ValueError, RecursionError):
        return changed_bytes(dice, data)


def changed_lines(dice: Random, data: bytes) -> bytes:
    """A document of JSON lines with one line changed, taken away or doubled."""
    lines = data.split(b"\n")
    at = dice.randrange(len(lines))
    match dice.randrange(4):
        case 0:
            del lines[at]
        case 1:
            lines.insert(at, lines[dice.randrange(len(lines))])
        case _:
            lines[at] = changed_json(dice, lines[at])
    return b"\n".join(lines)


def members_of(archive: bytes) -> dict[str, bytes] | None:
    """The files of a tar archive; None where it is none."""
    try:
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            found = {}
            for each in tar:
                file = tar.extractfile(each) if each.isreg() else None
                if file is not None:
                    found[each.name] = file.read()
            return found
    except (tarfile.TarError, EOFError, OSError, ValueError, OverflowError):
        return None


def changed_archive(dice: Random, archive: bytes, change: Callable[[Random, bytes], bytes]) -> bytes:
    """A tar archive with a member changed, renamed, doubled or of another kind."""
    members = members_of(archive)
    if not members or dice.random() < 0.2:
        return changed_bytes(dice, archive)
    names = list(members)
    picked = dice.choice(names)
    buffer = io.BytesIO()
    mode = dice.choice(("w", "w", "w:gz"))
    form = dice.choice((tarfile.USTAR_FORMAT, tarfile.PAX_FORMAT, tarfile.GNU_FORMAT))
    with tarfile.open(fileobj=buffer, mode=mode, format=form) as tar:  # type: ignore[call-overload]
        for name in names:
            data = members[name]
            for _ in range(2 if name == picked and dice.random() < 0.2 else 1):
                made = tarfile.TarInfo(_other_name(dice, name) if name == picked and dice.random() < 0.3 else name)
                if name == picked:
                    data = change(dice, data)
                    if dice.random() < 0.15:
                        made.type = dice.choice((tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE))
                        made.linkname = "../out"
                made.size = len(data)
                try:
                    tar.addfile(made, io.BytesIO(data))
                except ValueError:
                    continue
    return buffer.getvalue()


def _other_name(dice: Random, name: str) -> str:
    odd = ("../out", "/abs", "", ".", "a" * 120, f"{name}/x", f"./{name}", name.upper(), "é\U0001f9ff", name + " ")
    return dice.choice(odd)
