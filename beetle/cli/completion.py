"""Completion scripts for shells, written from the commands themselves: pressing Tab starts no Python."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping

from beetle.cli.manual import topics
from beetle.cli.parser import GLOBALS, Command, Parser, Words, options_of
from beetle.contracts.errors import InvalidRequest
from beetle.named_tuple import NamedTuple

SHELLS = ("bash", "zsh", "fish")
PATHS = ("PATH", "FILE", "DIR")


class Option(NamedTuple):
    """An option of a command; `values` are its words, `path` that it names a file, `alone` that it takes nothing."""

    name: str
    help: str
    values: tuple[str, ...]
    path: bool
    alone: bool


class Node(NamedTuple):
    """What may follow some words: further words with their help, or the options of a command."""

    words: Words
    next: tuple[tuple[str, str], ...]
    options: tuple[Option, ...]


def fill_completion(parser: Parser) -> None:
    """What `completion` takes."""
    parser.add_argument("shell", metavar="SHELL", help="bash, zsh or fish")


def run_completion(typed: argparse.Namespace) -> int:
    """Print a shell's script."""
    from beetle.cli.commands import COMMANDS

    print(script(typed.shell, COMMANDS), end="")
    return 0


OWN = {"completion": (fill_completion, run_completion)}


def script(shell: str, commands: Mapping[Words, Command]) -> str:
    """The script for a shell.

    Raises:
        InvalidRequest: a shell that we have none for.
    """
    writers = {"bash": _bash, "zsh": _zsh, "fish": _fish}
    if shell not in writers:
        hint = f"give one of {', '.join(SHELLS)}"
        raise InvalidRequest(reason=f"completion: no script for {shell!r}", hint=hint)
    return writers[shell](tuple(nodes(commands)))


def nodes(commands: Mapping[Words, Command]) -> Iterable[Node]:
    """The root, every group, every command."""
    shared = tuple(_global_options())
    groups = sorted({words[:depth] for words in commands for depth in range(len(words))})
    for group in groups:
        following: dict[str, str] = {}
        for words, command in commands.items():
            if words[: len(group)] == group:
                word = words[len(group)]
                following.setdefault(word, command.help if len(words) == len(group) + 1 else command.group.help)
        yield Node(group, tuple(following.items()), (*shared, Option("--help", "help", (), False, True)))
    for words, command in commands.items():
        following = {}
        if words == ("completion",):
            following = dict.fromkeys(SHELLS, "")
        elif words == ("help",):
            following = {topic: "" for topic in topics()}
        yield Node(words, tuple(following.items()), (*_own_options(command), *shared))


def _global_options() -> Iterable[Option]:
    from beetle.runtime.host.profile import ALIASES

    for each in GLOBALS:
        values = (*ALIASES, "auto") if each.option == "--profile" else ()
        yield Option(each.option, each.help, values, each.metavar in PATHS, each.metavar is None)


def _own_options(command: Command) -> Iterable[Option]:
    globals_ = {each.option for each in GLOBALS}
    for name, action in options_of(Parser(command)).items():
        if not name.startswith("--") or name in globals_:
            continue
        metavar = action.metavar if isinstance(action.metavar, str) else ""
        values = tuple(metavar.split("|")) if "|" in metavar else ()
        help_text = "" if action.help in (None, argparse.SUPPRESS) else str(action.help)
        yield Option(name, help_text.partition(" (")[0], values, metavar in PATHS, action.nargs == 0)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


BASH = """\
# bash completion of beetle; use it with: source <(beetle completion bash)
_beetle() {
    local cur=${COMP_WORDS[COMP_CWORD]} path='' wants='' word i next options values
    COMPREPLY=()
    for ((i = 1; i < COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        if [[ $word == '=' ]]; then continue; fi
        if [[ -n $wants ]]; then wants=''; continue; fi
        _beetle_node "$path"
        if [[ $word == -* ]]; then
            case " $takes " in *" $word "*) wants=$word ;; esac
        else
            case " $next " in *" $word "*) path=${path:+$path/}$word ;; esac
        fi
    done
    if [[ $cur == '=' ]]; then cur=''; fi
    _beetle_node "$path"
    if [[ -n $wants ]]; then
        values=''
        _beetle_values "$path" "$wants"
        if [[ $values == '<file>' ]]; then
            compopt -o filenames 2>/dev/null
            COMPREPLY=($(compgen -f -- "$cur"))
        else
            COMPREPLY=($(compgen -W "$values" -- "$cur"))
        fi
    elif [[ $cur == -* || -z $next ]]; then
        COMPREPLY=($(compgen -W "$options" -- "$cur"))
    else
        COMPREPLY=($(compgen -W "$next" -- "$cur"))
    fi
}
"""


def _bash(all_nodes: tuple[Node, ...]) -> str:
    lines = [BASH, "_beetle_node() {", "    next='' options='' takes=''", "    case $1 in"]
    for node in all_nodes:
        following = " ".join(word for word, _ in node.next)
        options = " ".join(option.name for option in node.options)
        lines.append(f"    {_case(node)}) next='{following}' options='{options}' takes='{_takes(node)}' ;;")
    lines += _values(all_nodes, "<file>", "values='{}'")
    return "\n".join([*lines, "complete -F _beetle beetle", ""])


def _case(node: Node, option: str = "") -> str:
    return _quoted("/".join(node.words) + option)


def _takes(node: Node) -> str:
    return " ".join(option.name for option in node.options if not option.alone)


def _values(all_nodes: tuple[Node, ...], file: str, assigned: str) -> Iterable[str]:
    """The end of the one function of a script, and the one that tells which values an option takes."""
    yield from ("    esac", "}", "_beetle_values() {", "    case $1:$2 in")
    for node in all_nodes:
        for option in node.options:
            if option.values or option.path:
                values = assigned.format(file if option.path else " ".join(option.values))
                yield f"    {_case(node, f':{option.name}')}) {values} ;;"
    yield from ("    esac", "}")


ZSH = """\
#compdef beetle
# zsh completion of beetle; put it into a folder of $fpath as _beetle, or: source <(beetle completion zsh)
_beetle() {
    local path_='' wants='' word i
    local -a next options takes values
    for ((i = 2; i < CURRENT; i++)); do
        word=${words[i]}
        if [[ -n $wants ]]; then wants=''; continue; fi
        _beetle_node "$path_"
        if [[ $word == -* ]]; then
            (( ${takes[(Ie)$word]} )) && wants=$word
        else
            (( ${next[(I)${(b)word}:*]} )) && path_=${path_:+$path_/}$word
        fi
    done
    _beetle_node "$path_"
    if [[ -n $wants ]]; then
        values=()
        _beetle_values "$path_" "$wants"
        if [[ $values[1] == '<file>' ]]; then _files; elif (( $#values )); then compadd -a values; fi
    elif [[ $PREFIX == -* || $#next -eq 0 ]]; then
        _describe -o option options
    else
        _describe command next
    fi
}
"""


def _zsh(all_nodes: tuple[Node, ...]) -> str:
    lines = [ZSH, "_beetle_node() {", "    next=() options=() takes=()", "    case $1 in"]
    for node in all_nodes:
        following = " ".join(_quoted(f"{word}:{text}") for word, text in node.next)
        options = " ".join(_quoted(f"{option.name}:{option.help}") for option in node.options)
        lines.append(f"    {_case(node)}) next=({following}) options=({options}) takes=({_takes(node)}) ;;")
    lines += _values(all_nodes, "'<file>'", "values=({})")
    tail = 'if [[ $funcstack[1] == _beetle ]]; then _beetle "$@"; else compdef _beetle beetle; fi'
    return "\n".join([*lines, tail, ""])


FISH = """\
# fish completion of beetle; put it into ~/.config/fish/completions/beetle.fish
function __beetle_words
    set -l takes {takes}
    set -l skip 0
    set -l found
    for word in (commandline -opc)[2..-1]
        if test $skip = 1
            set skip 0
        else if contains -- $word $takes
            set skip 1
        else if not string match -q -- '-*' $word
            set -a found $word
        end
    end
    string join / $found
end
function __beetle_at
    set -l words (__beetle_words)
    test "$words" = "$argv[1]"
end
function __beetle_in
    set -l words (__beetle_words)
    string match -q -- "$argv[1]/*" "$words/"
end
complete -c beetle -f
"""


def _fish(all_nodes: tuple[Node, ...]) -> str:
    takes = sorted({option.name for node in all_nodes for option in node.options if not option.alone})
    lines = [FISH.replace("{takes}", " ".join(takes))]
    lines.extend(f"complete -c beetle {_fish_option(option)}" for option in _global_options())
    shared = {each.option for each in GLOBALS}
    for node in all_nodes:
        key = "/".join(node.words)
        for word, text in node.next:
            lines.append(
                f"complete -c beetle -n {_quoted(f'__beetle_at {_quoted(key)}')} -a {word} -d {_fish_text(text)}"
            )
        for option in node.options:
            if node.words and option.name not in shared:
                where = _quoted(f"__beetle_in {key}")
                lines.append(f"complete -c beetle -n {where} {_fish_option(option)}")
    return "\n".join([*lines, ""])


def _fish_option(option: Option) -> str:
    takes = "" if option.alone else " -r" if option.path else " -x"
    values = f" -a {_quoted(' '.join(option.values))}" if option.values else ""
    files = " -F" if option.path else ""
    return f"-l {option.name.removeprefix('--')}{takes}{files}{values} -d {_fish_text(option.help)}"


def _fish_text(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
