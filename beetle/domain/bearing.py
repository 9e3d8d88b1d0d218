"""Whether messages bear what is said on their evidence: by their words in their order, never by meaning.

docs/governance.md has the rule with examples. No clock, no I/O; time in proportion to the text, up to READ_CHARS.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import zip_longest

from beetle.domain.bearing_words import UNSPACED_ASIDE, UNSPACED_READ_AS, UNSPACED_TURNS, UNSPACED_USER, UNSPACED_WALLS
from beetle.domain.clauses import (
    COMMA,
    OWN,
    Language,
    Sentence,
    Voice,
    Word,
    read,
    sentences_of,
    spoken,
    without_reporting,
)
from beetle.named_tuple import NamedTuple

READ_CHARS = 1 << 20
"""Of all cited messages so much is looked at; what only later text says waits for a person."""
WEIGHED_CHARS = 16_384
"""Of that so much is weighed word by word: of longer messages the sentences that share most with the content."""
MOST_CONTENT = 2_000
"""Characters of what can be borne; nobody said a longer text in so many words."""
MOST_STEPS = 200_000
"""Words that are compared for one question; beyond them it is not borne."""
BEGINNING = 4
"""By so many characters a sentence of a long message is told to share a word."""
LISTED = 12
"""How many words a list may have before the one that is meant."""
LED = 4
"""How many words may stand before the subject where a sentence begins with a place or a time."""

USER = Voice(
    frozenset({"@user", "@self"}), frozenset({"@assistant", "@you"}), frozenset({"user"}), frozenset({"assistant"})
)
ASSISTANT = Voice(
    frozenset({"@assistant", "@self"}), frozenset({"@user", "@you"}), frozenset({"user"}), frozenset({"assistant"})
)
NOBODY = Voice(frozenset({"@self"}), frozenset({"@you"}), frozenset({"user"}), frozenset({"assistant"}))
VOICES = {"user": USER, "assistant": ASSISTANT, "tool_use": ASSISTANT}
TELLER = Voice(
    frozenset({"@self", "@user"}), frozenset({"@you"}), frozenset({"@user", "user"}),
    frozenset({"@assistant", "assistant"}), about=True,
)  # fmt: skip


class Said(NamedTuple):
    """A cited message: its role, its text and the name of who speaks."""

    role: str
    text: str
    speaker: str | None = None


class Bearing(NamedTuple):
    """Whether a content is borne; `by`: the places of the messages that bear it. `missing`: words that none has.

    A content that is not borne although no word is missing has them in another order, denied, asked or told of others.
    """

    borne: bool
    by: tuple[int, ...] = ()
    missing: tuple[str, ...] = ()


def bearing(content: str, said: Sequence[Said]) -> Bearing:
    """Whether messages say what a content says; each of its sentences must be borne by one of theirs.

    Args:
        content: the statement, about the user in the third person or in the first.
        said: the messages that it rests on.
    """
    if not said or not content.strip() or len(content) > MOST_CONTENT:
        return Bearing(False)
    said = _clipped(content, said)
    if _unspaced(content):
        return _borne_unspaced(content, said)
    tongue = spoken([content, *(each.text for each in said)])
    reading = [_Read(place, each, tongue) for place, each in enumerate(said)]
    work = _Work()
    by: set[int] = set()
    for sentence in sentences_of(content):
        bearers = _bearers(sentence, tongue, reading, work)
        if not bearers:
            return Bearing(False, missing=_missing(content, tongue, reading))
        by |= bearers
    return Bearing(bool(by), tuple(sorted(by)))


class _Work:
    """What is left of the steps that one question may take."""

    left = MOST_STEPS

    def spend(self, steps: int) -> bool:
        self.left -= steps
        return self.left > 0


class _Read:
    """A cited message, in the sentences that assert something."""

    def __init__(self, place: int, said: Said, tongue: Language) -> None:
        self.place = place
        self.role = said.role
        self.name = tuple((said.speaker or "").casefold().split())
        voice = VOICES.get(said.role, NOBODY)._replace(name=self.name)
        made = [read(each, tongue, voice) for each in sentences_of(said.text)]
        self.words = frozenset(key for sentence in made for word in sentence.words for key in word.keys)
        joke = any(word.text in tongue.unsaid for sentence in made for word in sentence.words)
        kept = [] if joke else [each for each, after in zip_longest(made, made[1:]) if _stands(each, after, tongue)]
        self.clauses = [(each.walls, list(_clauses(each, tongue))) for each in kept]


def _stands(sentence: Sentence, after: Sentence | None, tongue: Language) -> bool:
    """Whether a sentence asserts something that the next one ("Not!") does not take back."""
    taken_back = after is not None and len(after.words) == 1 and after.words[0].text in tongue.negation | tongue.wall
    return sentence.asserts and bool(sentence.words) and not taken_back


def _clipped(content: str, said: Sequence[Said]) -> list[Said]:
    """The messages, or of long ones the sentences that are worth a look."""
    left, found = READ_CHARS, list[Said]()
    share = max(WEIGHED_CHARS // len(said), 1)
    for each in said:
        text = each.text[:left]
        left -= len(text)
        found.append(each._replace(text=text if len(text) <= share else _likely(content, text, share)))
    return found


def _likely(content: str, text: str, most: int) -> str:
    """Of a long text the sentences that begin most words as the content does, in their order."""
    begins = {word[:BEGINNING].casefold() for word in content.split() if len(word) >= BEGINNING}
    ranked: list[tuple[int, int, str]] = []
    for place, sentence in enumerate(sentences_of(text)):
        if len(sentence) <= MOST_CONTENT:
            low = sentence.casefold()
            ranked.append((-sum(each in low for each in begins), place, sentence))
    kept: list[tuple[int, str]] = []
    for _, place, sentence in sorted(ranked):
        most -= len(sentence) + 1
        if most < 0:
            break
        kept.append((place, sentence))
    return "\n".join(sentence for _, sentence in sorted(kept))


def _bearers(sentence: str, tongue: Language, reading: Iterable[_Read], work: _Work) -> set[int]:
    """The messages that bear one sentence of a content."""
    return {each.place for each in reading if _bears(sentence, tongue, each, work)}


def _bears(sentence: str, tongue: Language, message: _Read, work: _Work) -> bool:
    wanted = read(sentence, tongue, TELLER._replace(name=message.name))
    if sentence.rstrip().endswith("?"):
        return False
    forms = [wanted]
    if message.role == "user" and (plain := without_reporting(wanted.words, tongue)) != wanted.words:
        walls = frozenset(word.text for word in plain if word.text in tongue.wall and not word.name)
        forms.append(Sentence(plain, walls, True))
    return any(_whole(form, tongue, message, work) or _in_parts(form, tongue, message, work) for form in forms)


def _whole(wanted: Sentence, tongue: Language, message: _Read, work: _Work) -> bool:
    """Whether one sentence of a message bears all of these words."""
    words = _stripped(wanted.words)
    for walls, clauses in message.clauses:
        if walls != wanted.walls:
            continue
        for first, clause in clauses:
            if len(words) < 2:
                if words and first and len(clause) == len(words) == 1 and _same(words[0], clause[0]):
                    return True
            elif (first or _is_someone(words[0]) or clause[0].name) and _matches(words, clause, tongue, work):
                return True
    return False


def _in_parts(wanted: Sentence, tongue: Language, message: _Read, work: _Work) -> bool:
    """Whether it bears "the user likes ham and lives in Porto" as two statements about the one subject."""
    words = _stripped(wanted.words)
    if len(words) < 4 or not _is_someone(words[0]) or words[1].text in tongue.preposition or words[1] == OWN:
        return False
    parts = _split(words, tongue)
    if len(parts) < 2 or len(parts[0]) < 2:
        return False
    head = parts[0]
    if not _whole(wanted._replace(words=tuple(head)), tongue, message, work):
        return False
    for part in parts[1:]:
        # Another subject stands for itself; else the words before it go for it too, as many as it takes.
        heads = [0] if _is_someone(part[0]) else range(1, len(head))
        if not any(_whole(wanted._replace(words=(*head[:n], *part)), tongue, message, work) for n in heads):
            return False
    return True


def _split(words: Sequence[Word], tongue: Language) -> list[list[Word]]:
    parts: list[list[Word]] = [[]]
    for word in words:
        if word.text in tongue.conjunction:
            parts.append([])
        else:
            parts[-1].append(word)
    return [part for part in parts if part]


def _stripped(words: Sequence[Word]) -> tuple[Word, ...]:
    start, end = 0, len(words)
    while start < end and words[start] == COMMA:
        start += 1
    while end > start and words[end - 1] == COMMA:
        end -= 1
    return tuple(words[start:end])


def _clauses(sentence: Sentence, tongue: Language) -> Iterator[tuple[bool, tuple[Word, ...]]]:
    """The clauses of a sentence, each with whether it is the first: the parts between turns, and between commas.

    A sentence that ends in a bare denial ("I like cheese, not") says nothing.
    """
    last = _stripped(sentence.words)
    if last and last[-1].text in tongue.negation:
        yield True, last
        return
    first = True
    for part in _parts(sentence.words, lambda word: word.text in tongue.turn):
        yield first, part
        pieces = list(_parts(part, lambda word: word == COMMA))
        for piece in pieces if len(pieces) > 1 else []:
            yield first, piece
            first = False
        for piece in _by_subject(part, tongue):
            yield first, piece
        first = False


def _parts(words: Sequence[Word], ends: Callable[[Word], bool]) -> Iterator[tuple[Word, ...]]:
    part: list[Word] = []
    for word in (*words, None):
        if word is None or ends(word):
            if stripped := _stripped(part):
                yield stripped
            part = []
        else:
            part.append(word)


def _by_subject(words: Sequence[Word], tongue: Language) -> Iterator[tuple[Word, ...]]:
    """What stands before and behind an "and" that a new subject follows."""
    at = [
        n for n, word in enumerate(words[:-1])
        if (word.text in tongue.conjunction and words[n + 1].text in ("@self", "@you")) or (n and word == COMMA)
    ]  # fmt: skip
    for start, end in zip([-1, *at], [*at, len(words)], strict=True) if at else ():
        if piece := _stripped(words[start + 1 : end]):
            yield piece


def _matches(words: Sequence[Word], clause: Sequence[Word], tongue: Language, work: _Work) -> bool:
    """Whether a clause has these words in this order, with nothing between them that could change what they say."""
    known = frozenset[str]().union(*(each.keys | _weaker(each, tongue) for each in clause))
    if not all(each.keys & known for each in words):
        return False
    denied = any(each.text in tongue.negation for each in clause)
    return any(
        _from(words, clause, start, joined, denied, tongue, work) for start, joined in _starts(words, clause, tongue)
    )


def _starts(words: Sequence[Word], clause: Sequence[Word], tongue: Language) -> Iterator[tuple[int, bool]]:
    """Where the words may begin, and whether that is within a list: at the start, behind "and", behind a place."""
    start = 0
    while start < len(clause) and clause[start].text in tongue.droppable:
        start += 1
    yield start, False
    if _is_someone(words[0]) and clause[start:] and clause[start].text in tongue.preposition:
        for at in range(start + 1, min(start + 1 + LED, len(clause))):
            if clause[at].text in ("@self", "@user"):
                yield at, False
    for at, word in enumerate(clause[:-1]):
        someone = _is_someone(words[0]) or clause[at + 1].name
        if someone and word.text in tongue.conjunction and not _binds(clause[start:at], tongue):
            yield at + 1, True


def _from(
    words: Sequence[Word], clause: Sequence[Word], start: int, joined: bool, denied: bool, tongue: Language, work: _Work
) -> bool:
    places: list[int] = []
    at = start
    for word in words:
        while at < len(clause) and clause[at].text in tongue.droppable and not _same(word, clause[at]):
            at += 1
        if at == len(clause) or not _says(word, clause[at], denied, tongue):
            break
        places.append(at)
        at += 1
    if not work.spend(len(places) + 1):
        return False
    if len(places) == len(words):
        return _ends(clause, at, tongue, listed=joined)
    return not joined and any(
        _goes_on(words, clause, n, places[n - 1] + 1, denied, tongue, work) for n in range(len(places), 0, -1)
    )


def _goes_on(
    words: Sequence[Word], clause: Sequence[Word], n: int, at: int, denied: bool, tongue: Language, work: _Work
) -> bool:
    """Whether the words from the n-th on stand behind an "and" of a list that begins here."""
    if words[n - 1].text[-1:].isdigit():
        return False  # "5 cats and dogs" are no 5 dogs
    for joint in range(at, min(at + LISTED, len(clause) - 1)):
        if clause[joint].text not in tongue.conjunction:
            continue
        rest = words[n:]
        end = joint + 1 + len(rest)
        if not work.spend(len(rest)) or _binds(clause[at:joint], tongue):
            return False
        if end > len(clause):
            return False
        if all(_says(word, clause[joint + 1 + k], denied, tongue) for k, word in enumerate(rest)):
            # "my wife, Rita" is no list; "ham, cheese and bread" is one.
            listed = clause[joint] != COMMA or (end < len(clause) and clause[end].text in tongue.conjunction)
            if listed and _ends(clause, end, tongue, listed=True):
                return True
    return False


def _binds(between: Iterable[Word], tongue: Language) -> bool:
    """Whether words that are left out could govern what stands behind them: "I refuse to eat fish and ..."."""
    return any(
        each.text in tongue.scope or each.text in tongue.negation or (tongue.code == "en" and each.text.endswith("ing"))
        for each in between
    )


def _ends(clause: Sequence[Word], at: int, tongue: Language, *, listed: bool) -> bool:
    """Whether the words may end here: what follows adds a place, a time or another statement, and denies nothing."""
    while at < len(clause) and clause[at].text in tongue.droppable:
        at += 1
    if at == len(clause):
        return True
    after = clause[at]
    if after.text not in tongue.follows:
        return False
    for each in clause[at + 1 :]:
        if each.text in tongue.conjunction:
            break
        if each.text in tongue.negation:
            return after.text in tongue.conjunction and clause[-1].text not in tongue.negation
    # "Tom likes Ana and Rita pays Bob": what a list ends with is the subject of nothing else.
    return not listed or after.text != "named"


def _is_someone(word: Word) -> bool:
    return word.name or word.text.startswith("@") or any(key.startswith("@") for key in word.keys)


def _same(one: Word, other: Word) -> bool:
    if not one.keys & other.keys:
        return False
    if one.name or other.name:
        return one.text == other.text or any(key.startswith("@") for key in one.keys & other.keys)
    return True


def _says(word: Word, heard: Word, denied: bool, tongue: Language) -> bool:
    return _same(word, heard) or (not denied and bool(word.keys & _weaker(heard, tongue)))


def _weaker(word: Word, tongue: Language) -> frozenset[str]:
    return frozenset[str]().union(*(tongue.weaker[key] for key in word.keys if key in tongue.weaker))


def _missing(content: str, tongue: Language, reading: Iterable[_Read]) -> tuple[str, ...]:
    known = frozenset[str]().union(*(each.words for each in reading))
    names = frozenset(name for each in reading for name in each.name)
    found = [word for each in sentences_of(content) for word in read(each, tongue, TELLER).words]
    lacking = [
        word.text for word in found
        if not word.keys & known and not word.text.startswith("@") and word not in (COMMA, OWN)
        and word.text not in names
    ]  # fmt: skip
    return tuple(dict.fromkeys(lacking))


# Text without spaces


def _unspaced(text: str) -> bool:
    """Whether a text is mostly in a script that is written without spaces."""
    letters = [each for each in text if each.isalpha()]
    return sum(each >= "\u2e80" or "\u0e00" <= each < "\u1100" for each in letters) * 3 > len(letters)


def _borne_unspaced(content: str, said: Sequence[Said]) -> Bearing:
    """There a whole clause must say it, but for who speaks and what may be left out."""
    by: set[int] = set()
    wanted = [(each, _walls(each)) for each in sentences_of(content)]
    for sentence, walls in wanted:
        found = {place for place, each in enumerate(said) if _sentence_bears(sentence, walls, each)}
        if not found:
            return Bearing(False)
        by |= found
    return Bearing(bool(by), tuple(sorted(by)))


def _sentence_bears(wanted: str, walls: frozenset[str], said: Said) -> bool:
    whole = {_as_clause(wanted, said, by_name=by_name) for by_name in (True, False)} - {""}
    for sentence in sentences_of(said.text):
        if sentence.rstrip().endswith("?") or _walls(sentence) != walls:
            continue
        if any(_as_clause(each, said, by_name=False) in whole for each in (sentence, *_commas(sentence))):
            return True
    return False


def _commas(sentence: str) -> list[str]:
    for sign in "\uff0c\u3001\uff1b;":
        sentence = sentence.replace(sign, ",")
    return sentence.split(",")


def _as_clause(text: str, said: Said, *, by_name: bool) -> str:
    """A clause as it is compared: `@` stands for who speaks, who is called the user or by name where it is told."""
    text = "".join(_commas(text)).strip(" .!\u3002\uff01\u2026\n")
    for word in UNSPACED_USER if by_name and said.role == "user" else ():
        text = text.replace(word, "@")
    if said.speaker:
        text = text.replace(said.speaker, "@")
    for word, as_word in UNSPACED_READ_AS:
        text = text.replace(word, as_word)
    for word in UNSPACED_ASIDE:
        text = text.replace(word, "")
    for turn in UNSPACED_TURNS:
        text = text.removeprefix(turn)
    return "".join(text.split())


def _walls(text: str) -> frozenset[str]:
    return frozenset(word for word in UNSPACED_WALLS if word in text)
