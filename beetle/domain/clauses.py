"""A text as sentences of marked words: who speaks and who is spoken to, what denies, what joins. No clock, no I/O."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from unicodedata import category, normalize

from beetle.domain.bearing_words import LANGUAGES
from beetle.named_tuple import NamedTuple

SENTENCE_END = "(?<=[.!?;\u2026\u3002\uff01\uff1f])(?=\\s|[\u3040-\u9fff])|\\n"
WORD = r"\d+(?:[.:,/-]\d+)*|[^\W\d_]+|[^\w\s]|\w"
STRAIGHT = str.maketrans("\u2019\u2018\u201c\u201d\u201e\u00ab\u00bb", '\'\'"""""')
SHORTENED = frozenset(
    """
    dr mr mrs ms st prof bzw usw ca nr no z b e g i d h vs etc jr sr
    """.split()  # noqa: SIM905
)
LONGEST = 200
"""Words of a sentence; a longer one says nothing that words can tell."""
PARTS = frozenset(",;:()[]\u2013\u2014")
KEPT_SIGNS = frozenset("%+")


class Word(NamedTuple):
    """A word of a sentence. It is another's equal when they share a key; of a name the text must be the same."""

    text: str
    keys: frozenset[str]
    name: bool = False


class Sentence(NamedTuple):
    """`words` with commas as they stand. `walls`: the words that make something else of it than an assertion."""

    words: tuple[Word, ...]
    walls: frozenset[str]
    asserts: bool


class Voice(NamedTuple):
    """Whose words a text is: who is meant by I, you and the user, and the name of who speaks.

    `about` says that the text tells about somebody: "he" in it may be the user.
    """

    self: frozenset[str]
    you: frozenset[str]
    user: frozenset[str]
    assistant: frozenset[str]
    name: tuple[str, ...] = ()
    about: bool = False


class Language:
    """The lists of one language, ready to be looked into."""

    def __init__(self, code: str, lists: Mapping[str, str]) -> None:
        self.code = code

        def words(kind: str) -> frozenset[str]:
            return frozenset(lists.get(kind, "").casefold().split())

        def phrases(kind: str) -> list[tuple[str, ...]]:
            return [tuple(line.split()) for line in lists.get(kind, "").casefold().splitlines() if line.strip()]

        self.self, self.own, self.you, self.yours = map(words, ("self", "own", "you", "yours"))
        self.he, self.his = words("he"), words("his")
        self.user, self.assistant = words("user"), words("assistant")
        self.function, self.filler, self.droppable = map(words, ("function", "filler", "droppable"))
        self.conjunction = words("conjunction") | {","}
        self.preposition, self.negation, self.scope = map(words, ("preposition", "negation", "scope"))
        self.follows = self.conjunction | self.preposition | words("when") | {"named"}
        self.wall, self.unsaid, self.turn, self.asking = map(words, ("wall", "unsaid", "turn", "asking"))
        self.same = {word: line[0] for line in phrases("same") for word in line}
        self.weaker = {line[0].rstrip(":"): frozenset(line[1:]) for line in phrases("weaker")}
        self.read_as = _rules(phrases("phrases"))
        self.openings = sorted(phrases("openings"), key=len, reverse=True)
        self.telling = sorted(phrases("telling"), key=len, reverse=True)
        self.numbers = {word: str(number) for number, word in enumerate(lists.get("numbers", "").split(), 2)}
        self.months = {word: number for number, word in enumerate(lists.get("months", "").split(), 1)}
        self.months |= {word[:3]: number for word, number in self.months.items() if code == "en" and word != "may"}
        self.markers = self.self | self.own | self.user | self.function | self.preposition | self.negation


def _rules(lines: Iterable[tuple[str, ...]]) -> dict[str, list[tuple[tuple[str, ...], tuple[str, ...]]]]:
    """Phrases by their first word, the longest first."""
    found: dict[str, list[tuple[tuple[str, ...], tuple[str, ...]]]] = {}
    for line in lines:
        at = line.index(">")
        found.setdefault(line[0], []).append((line[:at], line[at + 1 :]))
    for rules in found.values():
        rules.sort(key=lambda rule: len(rule[0]), reverse=True)
    return found


@cache
def language(code: str) -> Language:
    """The lists of a language."""
    return Language(code, LANGUAGES[code])


def spoken(texts: Iterable[str]) -> Language:
    """The language of the first text that has words of one; English where none has."""
    for text in texts:
        words = {word.casefold() for word in re.findall(WORD, text[:2000])}
        counts = {code: len(words & language(code).markers) for code in LANGUAGES}
        code = max(counts, key=lambda each: counts[each])
        if counts[code]:
            return language(code)
    return language("en")


def sentences_of(text: str) -> list[str]:
    """A text in its sentences; a shortened word's dot ends none."""
    found: list[str] = []
    for piece in re.split(SENTENCE_END, normalize("NFKC", text).translate(STRAIGHT)):
        if found and _goes_on(found[-1]) and piece.strip():
            found[-1] += piece
        elif piece.strip():
            found.append(piece)
    return found


def _goes_on(sentence: str) -> bool:
    if not sentence.endswith("."):
        return False
    last = sentence[-12:-1].split()[-1:]
    return bool(last) and last[0].casefold().rsplit(".")[-1] in SHORTENED


def read(sentence: str, tongue: Language, voice: Voice) -> Sentence:
    """One sentence in the words of a language, as this voice says it."""
    raw = _raw(sentence, tongue)
    if len(raw) > LONGEST:
        return Sentence((), frozenset(), False)
    asserts = not sentence.rstrip(" \"')*_").endswith("?") and not _asks(raw, tongue)
    words = _persons(raw, tongue, voice)
    words = _phrases(words, tongue.read_as)
    words = _begun(_named(_dated(words, tongue)), tongue.openings, at=0)
    walls = frozenset(word.text for word in words if word.text in tongue.wall and not word.name)
    return Sentence(tuple(words), walls | _quoted(sentence, tongue), asserts)


def _asks(raw: Sequence[tuple[str, bool]], tongue: Language) -> bool:
    """Whether a sentence begins as a question does, with or without its mark: "Do I", not "Do not" or "Cannot"."""
    low = [text.casefold() for text, _ in raw[:3]]
    return low[:1] != [] and low[0] in tongue.asking and not (low[1:2] == ["not"] and low[2:] not in ([], ["i"]))


def without_reporting(words: Sequence[Word], tongue: Language) -> tuple[Word, ...]:
    """A statement without "the user says that" before it."""
    return tuple(_begun(list(words), tongue.telling, at=1))[1:] if _is_reported_speech(words, tongue) else tuple(words)


def _is_reported_speech(words: Sequence[Word], tongue: Language) -> bool:
    return len(words) > 1 and "@user" in words[0].keys and len(_begun(list(words), tongue.telling, at=1)) < len(words)


def _raw(sentence: str, tongue: Language) -> list[tuple[str, bool]]:
    """The words and signs with whether each is written like a name: a capital inside the sentence."""
    found: list[tuple[str, bool]] = []
    for match in re.finditer(WORD, sentence):
        text = match.group()
        inside = any(each[0].isalnum() for each in found)
        if text[0].isdigit():
            glued = (
                match.start() and sentence[match.start() - 1] == "-" and not sentence[: match.start() - 1][-1:].strip()
            )
            found.append((f"-{text}" if glued else text, False))
        elif len(text) == 1 and not text.isalnum():
            if text == "-" and sentence[match.start() - 1 : match.end() + 1] == " - ":
                found.append((",", False))
            elif text == "'" or text in PARTS or text in KEPT_SIGNS or category(text)[:2] in ("Sc", "Mn", "Mc"):
                found.append((text, False))
        else:
            capital = text[0].isupper() and inside and tongue.code != "de" and text != "I"
            found.append((text, capital))
    return _joined(found)


BE_AFTER = frozenset(
    """
    it he she that there what here who name i you we they this
    """.split()  # noqa: SIM905
)


def _joined(raw: list[tuple[str, bool]]) -> list[tuple[str, bool]]:
    """Contractions taken apart: `don't` is `do not`, `Rita's` is `Rita 's`."""
    found: list[tuple[str, bool]] = []
    at = 0
    while at < len(raw):
        text, name = raw[at]
        ending = raw[at + 2][0].casefold() if at + 2 < len(raw) and raw[at + 1][0] == "'" else ""
        low = text.casefold()
        if ending == "t" and low.endswith("n"):
            whole = {"can": "can", "won": "will", "shan": "shall"}.get(low, low[:-1])
            found += [(whole, False), ("not", False)]
        elif ending == "s":
            found += [(text, name), ("be" if low in BE_AFTER else "'s", False)]
        elif ending in ("m", "re"):
            found += [(text, name), ("be", False)]
        elif ending in ("ve", "ll", "d"):
            found += [(text, name), ({"ve": "have", "ll": "will", "d": "would"}[ending], False)]
        else:
            if low == "cannot":
                found += [("can", False), ("not", False)]
            elif text != "'":
                found.append((text, name))
            at += 1
            continue
        at += 3
    return found


def _persons(raw: list[tuple[str, bool]], tongue: Language, voice: Voice) -> list[Word]:
    """Who is who in this voice; articles and fillers are left out."""
    found: list[Word] = []
    alone = True
    for text, name in raw:
        low = text.casefold()
        if voice.name and low == voice.name[0]:
            found.append(Word(low, frozenset({low, "@self"}), True))
        elif low in voice.name[1:] and found and found[-1].text == voice.name[0]:
            continue
        elif low in voice.name[1:]:
            found.append(Word(low, frozenset({low}), True))
        elif low in tongue.he or low in tongue.his:
            user = voice.user if voice.about and alone and _about_user(found) else frozenset[str]()
            found += [Word(low, user | {low}), OWN] if low in tongue.his else [Word(low, user | {low})]
        elif (person := _person(text, low, name, tongue, voice)) is not None:
            found += person
        elif low not in tongue.function and low not in tongue.filler:
            alone = alone and not name
            found.append(_word(low, name, tongue) if low not in PARTS else COMMA)
    return found


def _person(text: str, low: str, name: bool, tongue: Language, voice: Voice) -> list[Word] | None:
    """The words for who speaks, is spoken to or is told of; None for another word."""
    polite = tongue.code == "de" and low.startswith("ih")
    if low in tongue.self and not (name and text.isupper() and len(text) > 1):
        return [Word("@self", voice.self)]
    if low in tongue.own:
        return [Word("@self", voice.self), OWN]
    if low in tongue.you and (not polite or text[0].isupper()):
        return [Word("@you", voice.you)]
    if low in tongue.yours and (not polite or text[0].isupper()):
        return [Word("@you", voice.you), OWN]
    if low in tongue.user and not name:
        return [Word("@user", voice.user)] + [OWN] * (tongue.code == "de" and low.endswith("rs"))
    if low in tongue.assistant and not name:
        return [Word("@assistant", voice.assistant)]
    return None


def _about_user(found: Sequence[Word]) -> bool:
    """Whether what was said so far is about the user and begins with it."""
    return bool(found) and bool(found[0].keys & {"@user", "@self"}) and (len(found) < 2 or found[1] != OWN)


def _word(low: str, name: bool, tongue: Language) -> Word:
    """A word with all that it may be the same as."""
    if low in tongue.numbers:
        return Word(tongue.numbers[low], frozenset({tongue.numbers[low]}))
    if low[-1:].isdigit():
        number = _number(low)
        return Word(number, frozenset({number}))
    forms = {low} if name else {low, *_forms(low, tongue.code)}
    same = {tongue.same[form] for form in forms if form in tongue.same}
    # A word that stands for itself in a list is no form of another: "does" is not "doe".
    return Word(low, frozenset(same or forms), name)


def _number(text: str) -> str:
    """A figure without the commas of its thousands."""
    parts = text.split(",")
    return "".join(parts) if len(parts) > 1 and all(len(each) == 3 for each in parts[1:]) else text


def _forms(word: str, code: str) -> set[str]:
    """What a word may be a form of; a past tense is a form of itself alone."""
    if len(word) < 4 or not word.isalpha():
        return set()
    if code == "de":
        return {word[: -len(end)] for end in ("en", "et", "st", "e", "t", "n") if word.endswith(end) and len(word) > 5}
    if code != "en":
        return set()
    found: set[str] = set()
    if word.endswith("ies"):
        found.add(f"{word[:-3]}y")
    elif word.endswith(("ses", "xes", "zes", "ches", "shes", "oes")):
        found |= {word[:-2], word[:-1]}
    elif word.endswith("s") and word[-2] not in "su":
        found.add(word[:-1])
    elif word.endswith("ing") and len(word) > 5:
        base = word[:-3]
        found |= {base, f"{base}e"} | ({base[:-1]} if base[-1] == base[-2] else set())
    return found


OWN = Word("'s", frozenset({"'s"}))
COMMA = Word(",", frozenset({","}))


def _phrases(words: list[Word], rules: Mapping[str, list[tuple[tuple[str, ...], tuple[str, ...]]]]) -> list[Word]:
    """Phrases read as the table has them, from the left, each word once."""
    found: list[Word] = []
    at = 0
    while at < len(words):
        for key in words[at].keys & rules.keys():
            rule = next((each for each in rules[key] if _fits(words, at, each[0])), None)
            if rule is not None:
                kept = [words[at + n] for n, each in enumerate(rule[0]) if each[0] in "*@"]
                found += [kept.pop(0) if each[0] in "*@" else Word(each, frozenset({each})) for each in rule[1]]
                at += len(rule[0])
                break
        else:
            found.append(words[at])
            at += 1
    return found


def _fits(words: Sequence[Word], at: int, phrase: tuple[str, ...]) -> bool:
    if at + len(phrase) > len(words):
        return False
    return all(each == "*" or each in words[at + n].keys or each == words[at + n].text for n, each in enumerate(phrase))


def _begun(words: list[Word], phrases: Iterable[tuple[str, ...]], at: int) -> list[Word]:
    """The words without a phrase of these at a place."""
    for phrase in phrases:
        spelled = tuple("@you" if each == "you" else each for each in phrase)
        if _fits(words, at, spelled):
            return words[:at] + words[at + len(spelled) :]
    return words


def _named(words: list[Word]) -> list[Word]:
    """ "I am Rita" says the name too, and "is swimming" is "swims"."""
    found: list[Word] = []
    for at, word in enumerate(words):
        after = words[at + 1] if at + 1 < len(words) else None
        if "be" in word.keys and len(word.keys) == 1 and after is not None:
            last = at + 2 == len(words) or words[at + 2].text in (",", "and")
            if after.name and last:
                found.append(Word("be", frozenset({"be", "named"})))
                continue
            if after.text.endswith("ing") and after.keys - {after.text}:
                continue
        found.append(word)
    return found


def _dated(words: list[Word], tongue: Language) -> list[Word]:
    """Dates in one form, however they are written."""
    found: list[Word] = []
    at = 0
    while at < len(words):
        date, used = _date(words, at, tongue)
        found.append(words[at] if date is None else Word(date, frozenset({date})))
        at += used
    return found


ORDINALS = ("st", "nd", "rd", "th")


def _date(words: Sequence[Word], at: int, tongue: Language) -> tuple[str | None, int]:
    text = [word.text for word in words[at : at + 6]]
    iso = re.fullmatch(r"(\d{4})-(\d\d?)-(\d\d?)", text[0])
    if iso:
        return f"{iso[1]}-{int(iso[2])}-{int(iso[3])}", 1
    day = month = used = 0
    if tongue.months.get(text[0]) and len(text) > 1 and _day(text[1]):
        month, day, used = tongue.months[text[0]], _day(text[1]), 2
        used += text[used : used + 1] in ([end] for end in ORDINALS)
    elif _day(text[0]) and len(text) > 1:
        used = 1
        while used < len(text) - 1 and text[used] in (*ORDINALS, "of", "."):
            used += 1
        month, day = tongue.months.get(text[used], 0) if used < len(text) else 0, _day(text[0])
        used += 1
    if not month:
        return None, 1
    rest = text[used:]
    skip = 1 if rest[:1] == [","] else 0
    if len(rest) > skip and re.fullmatch(r"(?:19|20)\d\d", rest[skip]):
        return f"{rest[skip]}-{month}-{day}", used + skip + 1
    return f"{month}-{day}", used


def _day(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) < 3 and 0 < int(text) < 32 else 0


QUOTED_WORDS = 3


def _quoted(sentence: str, tongue: Language) -> frozenset[str]:
    """What stands in quotation marks is another's word when it is a statement; a title is no wall."""
    if sentence.lstrip().startswith(">"):
        return frozenset({'"'})
    parts = sentence.split('"')
    long = any(len(part.split()) > QUOTED_WORDS for part in parts[1::2])
    label, colon, rest = sentence.partition(": ")
    spoken_by = bool(colon and rest) and len(label.split()) == 1 and label.strip()[:1].isupper()
    return frozenset({'"'}) if long or (spoken_by and label.strip().casefold() not in tongue.filler) else frozenset()
