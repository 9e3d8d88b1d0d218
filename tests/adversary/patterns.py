"""Every regular expression of the product, found in its source, and texts on which each may take longest."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
import re._constants as op  # pyright: ignore[reportMissingTypeStubs, reportMissingModuleSource]
import re._parser as parser  # pyright: ignore[reportMissingTypeStubs, reportMissingModuleSource]
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import product
from types import ModuleType
from typing import Any, NamedTuple

PACKAGES = ("beetle", "beetle_tui")
WAYS = {
    "match": "match", "fullmatch": "fullmatch", "search": "search", "finditer": "finditer",
    "findall": "finditer", "sub": "finditer", "subn": "finditer", "split": "finditer",
}  # fmt: skip
"""How a method goes through a text: whether it begins once, until it has found one, or to the end."""
GENERIC = " \ta0A_-.\n"
MOST_EXAMPLES = 6


class Used(NamedTuple):
    """A pattern, and how a text is searched with it."""

    pattern: re.Pattern[str]
    way: str

    def run(self, text: str) -> None:
        """Search it."""
        found = getattr(self.pattern, self.way)(text)
        if self.way == "finditer":
            for _ in found:
                pass


class _Blank(dict[str, Any]):
    """A module's names; what is local to a function stands for any word."""

    def __missing__(self, name: str) -> Any:
        return "word"


def modules() -> Iterator[ModuleType]:
    """Every module of the product that this environment can import."""
    for name in PACKAGES:
        package = importlib.import_module(name)
        yield package
        for each in pkgutil.walk_packages(package.__path__, f"{name}."):
            # An adapter imports its framework, which is an extra.
            if not each.name.endswith("__main__") and not each.name.startswith("beetle.adapters."):
                yield importlib.import_module(each.name)


def used(found: Iterable[ModuleType]) -> dict[Used, str]:
    """Every pattern with each way in which it is used, and the module that it is from."""
    all_of: dict[Used, str] = {}
    for module in found:
        for pattern, way in of_module(module):
            text = pattern.pattern
            as_text = re.compile(text.decode("latin-1"), pattern.flags) if isinstance(text, bytes) else pattern
            all_of.setdefault(Used(as_text, way), module.__name__)
    return all_of


def of_module(module: ModuleType) -> Iterator[tuple[re.Pattern[Any], str]]:
    """The patterns of one module: arguments of `re`'s functions, compiled constants, and what is given to `Meta`.

    A name that only a function knows may be any constant of the module: each is taken for a pattern then.
    """
    with open(module.__file__ or "") as file:
        tree = ast.parse(file.read())
    names = _Blank(vars(module))
    calls = [each for each in ast.walk(tree) if isinstance(each, ast.Call)]
    constants = [each.value for each in tree.body if isinstance(each, ast.Assign | ast.AnnAssign)]
    for call in calls:
        for keyword in call.keywords:
            if keyword.arg == "pattern" and (text := _value(keyword.value, names)) is not None:
                yield re.compile(text), "search"
        if not isinstance(call.func, ast.Attribute):
            continue
        if isinstance(call.func.value, ast.Name) and call.func.value.id == "re" and call.args:
            # A constant that is compiled is taken below, with the ways in which it is used.
            way = "finditer" if call.func.attr == "compile" and call not in constants else WAYS.get(call.func.attr)
            if way is None:
                continue
            flags = _flags(call, names)
            for text in _texts(call.args[0], module, names):
                yield re.compile(text, flags), way
    for name, value in vars(module).items():
        if isinstance(value, re.Pattern):
            ways = {way for call in calls if (way := _way_of(call, name))} or {"finditer"}
            for way in ways:
                yield value, way


def _way_of(call: ast.Call, name: str) -> str | None:
    func = call.func
    if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and func.value.id == name:
        return WAYS.get(func.attr)
    return None


def _flags(call: ast.Call, names: _Blank) -> int:
    given = [each.value for each in call.keywords if each.arg == "flags"] + call.args[1:]
    for each in given:
        if "re." in ast.unparse(each) and isinstance(value := _evaluate(each, names), re.RegexFlag):
            return value
    return 0


def _texts(node: ast.expr, module: ModuleType, names: _Blank) -> Iterator[Any]:
    if isinstance(node, ast.Name) and not hasattr(module, node.id):
        for value in vars(module).values():
            for text in value if isinstance(value, tuple | frozenset | list) else (value,):
                if isinstance(text, str | bytes) and _compiles(text):
                    yield text
    elif (text := _value(node, names)) is not None:
        yield text


def _value(node: ast.expr, names: _Blank) -> Any:
    found = _evaluate(node, names)
    return found if isinstance(found, str | bytes) else None


def _evaluate(node: ast.expr, names: _Blank) -> Any:
    return eval(compile(ast.Expression(node), "<pattern>", "eval"), {"__builtins__": {}}, names)


def _compiles(text: str | bytes) -> bool:
    try:
        re.compile(text)
    except re.error:
        return False
    return True


def attacks(pattern: re.Pattern[str]) -> Iterator[tuple[str, str, str]]:
    """What may be worst for a pattern: a beginning, what is repeated behind it, and an end."""
    tree = list(parser.parse(pattern.pattern, pattern.flags & ~re.DEBUG))
    found = dict.fromkeys(_repeats(tree, "", {}))
    whole = _examples(tree, {})[:2]
    letters = [*dict.fromkeys(GENERIC)]
    pumps = dict.fromkeys(
        [
            *letters,
            *whole,
            *(p for pair in found for p in (pair[1], pair[0], "".join(pair))),
            *(beginning + each for beginning, _ in found for each in " a."),
        ]
    )
    beginnings = dict.fromkeys(["", *(beginning for beginning, _ in found)])
    shapes: dict[tuple[str, str], None] = dict.fromkeys(product([""], filter(None, pumps)))
    shapes |= dict.fromkeys((beginning, pump) for beginning, pump in found if pump)
    shapes |= dict.fromkeys(product(beginnings, (" ", "a")))
    for (beginning, pump), end in product(shapes, ("", "\0", "\n!")):
        yield beginning, pump, end


def _repeats(nodes: list[Any], before: str, groups: dict[int, str]) -> Iterator[tuple[str, str]]:
    """What each repetition of a pattern repeats, and an example of what stands before it."""
    for code, argument in nodes:
        if code in (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT):
            _, most, body = argument
            if most > 3:
                for each in _examples(list(body), groups):
                    yield before, each
            yield from _repeats(list(body), before, groups)
        elif code is op.SUBPATTERN:
            yield from _repeats(list(argument[3]), before, groups)
        elif code is op.ATOMIC_GROUP:
            yield from _repeats(list(argument), before, groups)
        elif code is op.BRANCH:
            for branch in argument[1]:
                yield from _repeats(list(branch), before, groups)
        before += next(iter(_examples([(code, argument)], groups)), "")


def _examples(nodes: list[Any], groups: dict[int, str]) -> list[str]:
    """A few texts that a part of a pattern matches, mostly short ones."""
    texts = [""]
    for code, argument in nodes:
        texts = [a + b for a in texts for b in _of_node(code, argument, groups)][:MOST_EXAMPLES]
    return texts


def _of_node(code: Any, argument: Any, groups: dict[int, str]) -> list[str]:
    if code is op.LITERAL:
        return [chr(argument)]
    if code is op.NOT_LITERAL:
        return [each for each in "a .\n" if ord(each) != argument][:2]
    if code is op.ANY:
        return ["a", " "]
    if code is op.IN:
        return _of_set(argument)
    if code in (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT):
        least, most, body = argument
        texts = _examples(list(body), groups)
        return [each * least for each in texts] if least else ["", *texts] if most <= 3 else [""]
    if code is op.SUBPATTERN:
        texts = _examples(list(argument[3]), groups)
        if argument[0] is not None and texts:
            groups[argument[0]] = texts[0]
        return texts
    if code is op.ATOMIC_GROUP:
        return _examples(list(argument), groups)
    if code is op.BRANCH:
        return [each for branch in argument[1][:MOST_EXAMPLES] for each in _examples(list(branch), groups)[:2]]
    if code is op.GROUPREF:
        return [groups.get(argument, "")]
    return [""]


def _of_set(items: list[Any]) -> list[str]:
    kinds: dict[Any, str] = defaultdict(
        str,
        {
            op.CATEGORY_SPACE: " \n",
            op.CATEGORY_DIGIT: "1",
            op.CATEGORY_WORD: "a_",
            op.CATEGORY_NOT_SPACE: "a.",
            op.CATEGORY_NOT_DIGIT: "a",
            op.CATEGORY_NOT_WORD: " .",
        },
    )
    if items[0][0] is op.NEGATE:
        plain = re.compile(_set_text(items[1:]))
        return [each for each in "a 0.-_\nA:/" if not plain.match(each)][:4]
    chars = ""
    for code, argument in items:
        if code is op.LITERAL:
            chars += chr(argument)
        elif code is op.RANGE:
            chars += chr(argument[0]) if argument[0] else "\x01"
        elif code is op.CATEGORY:
            chars += kinds[argument]
    return [*dict.fromkeys(chars)][:MOST_EXAMPLES]


def _set_text(items: list[Any]) -> str:
    kinds: dict[Any, str] = {
        op.CATEGORY_SPACE: r"\s",
        op.CATEGORY_DIGIT: r"\d",
        op.CATEGORY_WORD: r"\w",
        op.CATEGORY_NOT_SPACE: r"\S",
        op.CATEGORY_NOT_DIGIT: r"\D",
        op.CATEGORY_NOT_WORD: r"\W",
    }
    text = ""
    for code, argument in items:
        if code is op.LITERAL:
            text += re.escape(chr(argument))
        elif code is op.RANGE:
            text += f"{re.escape(chr(argument[0]))}-{re.escape(chr(argument[1]))}"
        elif code is op.CATEGORY:
            text += kinds[argument]
    return f"[{text}]"
