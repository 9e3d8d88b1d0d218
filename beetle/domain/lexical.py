"""How text becomes the fields of the recall index, and how a query becomes an FTS5 expression over them.

The index is `fts5(text, names, time, scope, content='', tokenize='porter unicode61 remove_diacritics 2')`. It keeps no
content, so deleting a row needs the very strings that were inserted: everything here is a pure function of its
arguments and does not depend on the Unicode tables of the interpreter that happens to run it.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from unicodedata import ucd_3_2_0

from beetle.named_tuple import NamedTuple

INDEX_FORM = 1
"""Version of what `evidence_fields`, `skill_fields` and `fact_fields` return: a row is deleted with the form it was
written in."""

NAMES_WEIGHT = 0.5
"""What a match in `names` counts: a name hits every row of its speaker and says nothing on the subject."""

MARKS = ("Mn", "Mc")
"""Categories of what stands on another character."""
MAX_TERMS = 64
MAX_PHRASES = 32
MAX_QUERY_CHARS = 8192
"""Terms are read from this many characters of a query; a pasted page has given its 64 terms long before."""

DAY_US = 86_400_000_000
MONTHS = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)  # fmt: skip
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")

_MONTH_NUMBER = {name: number for number, name in enumerate(MONTHS, 1)} | {
    name[:3]: number for number, name in enumerate(MONTHS, 1)
} | {"sept": 9}  # fmt: skip

STOP_WORDS = frozenset(
    """
    a an the and or but nor if then than so as because while of at by for with about against between into onto through
    to from in on off over under up down out is are was were be been being am do does did doing done have has had having
    i me my mine myself we us our ours ourselves you your yours yourself he him his himself she her hers herself it its
    itself they them their theirs themselves this that these those there here what which who whom whose when where why
    how no not only own same too very can could will would shall should may might must just also
    s t d ll m re ve don didn doesn isn wasn aren weren won wouldn couldn shouldn hasn haven hadn
    """.split()  # noqa: SIM905
)

# Scripts written without spaces between words (and Hangul, whose particles stick to words): Thai to Lao, Myanmar,
# Jamo, Khmer, radicals, iteration marks and numerals, kana to extension A, Han, Hangul, compatibility, half width.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u2e80-\u2fdf\u3005-\u3007\u3021-\u303c\u3040-\u4dbf"
    "\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uffdc\U0001b000-\U0001b2ff\U00020000-\U0003ffff"
)
# Patterns are kept as text: the module's cache compiles each on its first use, which spares a starting daemon 15 ms.
_UNSPACED_CHARACTER = f"[{_UNSPACED}]"
# A word starts with a letter or digit and runs to a space, control, punctuation or unspaced character: combining marks
# stay inside, so that what unicode61 splits in an Indic word is still matched as one phrase.
_WORD_END = r"\s\x00-/:-@\[-`{-\xa9\xab-\xb4\xb6-\xb9\xbb-\xbf\xd7\xf7\u2000-\u206f\u3000-\u303f\ud800-\udfff"
_QUERY_PART = f"(?P<run>[{_UNSPACED}]+)|(?P<word>[^\\W_{_UNSPACED}][^{_WORD_END}{_UNSPACED}]*)"
# Begins only where a run of letters and digits begins, and gives none of it back: a long run is read once.
_JOINED = r"(?<![A-Za-z0-9])[A-Za-z0-9]++(?:[._:/@+#-]{1,3}[A-Za-z0-9]++)+"

NO_MONTH = 13
_MONTH_NAMES = "|".join(sorted(_MONTH_NUMBER, key=len, reverse=True))
_DAY = r"([0-3]?[0-9])(?:st|nd|rd|th)?"
_YEAR = r"((?:19|20)[0-9]{2})"
_DAY_MONTH = rf"(?i)\b{_DAY}(?:\s+of)?\s+({_MONTH_NAMES})\b\.?(?:,?\s+{_YEAR}\b)?"
_MONTH_DAY = rf"(?i)\b({_MONTH_NAMES})\b\.?(?:\s+{_DAY}\b)?(?:,?\s+(?:of\s+)?{_YEAR}\b)?"
_BEFORE_MONTH = r"(?i)\b(?:in|during|since|until|till|early|mid|late|last|this|next)\s+$"
_BEFORE_MONTH_CHARS = 16
_ISO_DATE = rf"\b{_YEAR}-([01][0-9])(?:-([0-3][0-9]))?\b"
_LONE_YEAR = rf"\b{_YEAR}\b"
_WHEN = r"(?i)\b(?:when|how\s+long|since\s+when|(?:what|which)\s+(?:day|date|week|weekend|month|season|year|time)s?)\b"
FIRST_PERSON = r"\b(?:I|[Mm]e|[Mm]y|[Mm]ine|[Mm]yself|[Ww]e|us|[Oo]urs?)\b"
"""Case tells "us" from "US" and a pronoun from "i.e."."""


class IndexFields(NamedTuple):
    """The strings of one index row, without `scope`, which the store adds."""

    text: str
    names: str
    time: str


class SearchTerm(NamedTuple):
    """A word or phrase to look for: an FTS5 expression, and what a match counts beside its rarity.

    `word` is what is looked for in all fields but `scope`, and alone. Of a phrase, `phrase` is its text and `of` the
    expressions of its two words.
    """

    expression: str
    weight: float
    phrase: str = ""
    of: tuple[str, ...] = ()
    word: str = ""


class DatePart(NamedTuple):
    """A date as far as a query gives it; 0 where it does not say."""

    year: int
    month: int
    day: int


class ParsedQuery(NamedTuple):
    """What a query asks for. Terms are lower case and distinct, in the order of the query."""

    terms: tuple[str, ...]
    phrases: tuple[str, ...]
    dates: tuple[DatePart, ...]
    asks_when: bool
    first_person: bool
    window: tuple[int, int] | None = None
    """The time that it speaks of (µs, both ends included), where that is known."""
    window_share: float = 1.0
    """How sure that time is."""


def evidence_fields(content: str, speaker: str | None, at_us: int) -> IndexFields:
    """The index fields of one message or event. `at_us`: microseconds since the epoch."""
    return IndexFields(_indexed(content), _indexed(speaker or ""), time_text(at_us))


def skill_fields(
    *, title: str, topic: str, summary: str, content: str, name: str, keywords: Collection[str] = (), at_us: int
) -> IndexFields:
    """The index fields of a runtime skill. Its title stands in `names` too: who asks for it by title means it."""
    text = "\n".join((title, topic, summary, content, *keywords))
    return IndexFields(_indexed(text), _indexed(f"{name}\n{title}"), time_text(at_us))


def thought_fields(
    *, content: str, tags: Collection[str], concepts: Collection[str], agent_id: str, at_us: int
) -> IndexFields:
    """The index fields of a thought. Its labels stand in `names` too, beside who wrote it."""
    labels = "\n".join((*tags, *concepts))
    return IndexFields(_indexed(f"{content}\n{labels}"), _indexed(f"{labels}\n{agent_id}"), time_text(at_us))


def chunk_fields(*, content: str, tags: Collection[str], at_us: int) -> IndexFields:
    """The index fields of a chunk. Its tags stand in `names` too, as a skill's title does."""
    labels = "\n".join(tags)
    return IndexFields(_indexed(f"{content}\n{labels}"), _indexed(labels), time_text(at_us))


def fact_fields(*, topic: str, content: str, keywords: Collection[str], at_us: int) -> IndexFields:
    """The index fields of a long-term fact. Its topic stands in `names` too, as a skill's title does."""
    return IndexFields(_indexed("\n".join((topic, content, *keywords))), _indexed(topic), time_text(at_us))


def time_text(at_us: int) -> str:
    """The UTC date as words, e.g. `2023 june day3 saturday`; the day is marked, for a bare 3 would meet every 3."""
    return _words_of_day(at_us // DAY_US)


@lru_cache(maxsize=256)
def _words_of_day(day: int) -> str:
    at = utc_time(day * DAY_US)
    return f"{at.year} {MONTHS[at.month - 1]} day{at.day} {WEEKDAYS[at.weekday()]}"


def utc_time(at_us: int) -> datetime:
    """The moment `at_us` microseconds after the epoch; outside the years 1 to 9999 it is the epoch."""
    try:
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=at_us)
    except OverflowError:
        return datetime(1970, 1, 1, tzinfo=UTC)


def parse_query(query: str) -> ParsedQuery:
    """Reads a query as plain text; any string is one."""
    text = _normal(query[:MAX_QUERY_CHARS])
    rest, dates = _take_dates(text)
    words, phrases = _read_words(rest)
    terms = [word for word in words if word not in STOP_WORDS]
    terms += [match.group().lower() for match in re.finditer(_JOINED, text)]
    for date in dates:
        terms += _date_terms(date)
    return ParsedQuery(
        terms=tuple(dict.fromkeys(terms or words))[:MAX_TERMS],
        phrases=tuple(dict.fromkeys(phrases))[:MAX_PHRASES],
        dates=dates,
        asks_when=re.search(_WHEN, text) is not None,
        first_person=re.search(FIRST_PERSON, text) is not None,
    )


def search_terms(parsed: ParsedQuery, speakers: Collection[str] = ()) -> tuple[SearchTerm, ...]:
    """What to look for, none when nothing in the query is searchable.

    Every word and phrase is looked for as a quoted string. When one of `speakers` is named beside other words, it is
    looked for among names only: in the text of a turn it is mostly the other one who says it.
    """
    terms = frozenset(parsed.terms)
    present = {words & terms for words in map(_name_words, speakers)} - {frozenset[str]()}
    named = present.pop() if len(present) == 1 else frozenset[str]()
    if named == terms:
        named = frozenset[str]()
    found = [SearchTerm(_anywhere(term), 1.0, word=_spaced(term)) for term in parsed.terms if term not in named]
    for phrase in parsed.phrases:
        words = phrase.split(" ")
        if named.isdisjoint(words):
            found.append(SearchTerm(_anywhere(phrase), 1.0, phrase, tuple(map(_anywhere, words))))
    return (*found, *(SearchTerm(f"names : {_quoted(each)}", NAMES_WEIGHT) for each in sorted(named)))


def all_words(text: str) -> tuple[str, ...]:
    """The distinct lower-case words of a text, in their order."""
    return tuple(dict.fromkeys(_read_words(_normal(text[:MAX_QUERY_CHARS]))[0]))


def word_phrases(text: str) -> tuple[str, ...]:
    """Its distinct words, each as the phrase by which the index is asked for it."""
    return tuple(_spaced(each).strip() for each in _sought(text))


def indexed_text(text: str) -> str:
    """A text as the index is given it."""
    return _indexed(text)


def all_words_expression(text: str) -> str | None:
    """The FTS5 expression for records that hold every word of a text, or None when it has no word."""
    words = _sought(text)
    return "{text names} : (" + " AND ".join(map(_quoted, words)) + ")" if words else None


def _sought(text: str) -> list[str]:
    """Its distinct words without pairs of marks, as a Thai vowel with its tone: the index makes no term of marks."""
    return [word for word in all_words(text) if not all(ucd_3_2_0.category(each) in MARKS for each in word)]


def name_words(names: Collection[str]) -> frozenset[str]:
    """The lower-case words of some names, without stop words."""
    return frozenset[str]().union(*map(_name_words, names))


def _name_words(name: str) -> frozenset[str]:
    return frozenset(_read_words(_normal(name))[0]) - STOP_WORDS


def _anywhere(term: str) -> str:
    return f"{{text names time}} : {_quoted(term)}"


def _quoted(term: str) -> str:
    return '"' + _spaced(term).strip().replace('"', " ") + '"'


def _normal(text: str) -> str:
    # ucd_3_2_0 is frozen inside Python: a newer interpreter must not index the same text differently.
    return text if text.isascii() else ucd_3_2_0.normalize("NFKC", text)


def _spaced(text: str) -> str:
    return text if text.isascii() else re.sub(_UNSPACED_CHARACTER, r" \g<0> ", text)


def _indexed(text: str) -> str:
    # FTS5 reads text up to the first NUL.
    return _spaced(_normal(text)).replace("\0", " ")


def _read_words(text: str) -> tuple[list[str], list[str]]:
    """The lower-case words in order, and the pairs of content words that stand side by side.

    A run of an unspaced script gives its pairs of characters, the customary unit of search in such text.
    """
    words: list[str] = []
    phrases: list[str] = []
    previous, end = "", 0
    for match in re.finditer(_QUERY_PART, text):
        part = match.group()
        if match.lastgroup == "run":
            words += [part[i : i + 2] for i in range(max(1, len(part) - 1))]
            previous = ""
            continue
        word = part.lower()
        words.append(word)
        if word in STOP_WORDS:
            previous = ""
            continue
        if previous and not text[end : match.start()].strip(" -"):
            phrases.append(f"{previous} {word}")
        previous, end = word, match.end()
    return words, phrases


def _take_dates(text: str) -> tuple[str, tuple[DatePart, ...]]:
    """The text without its dates, and the dates."""
    dates: list[DatePart] = []

    def month_number(word: str) -> int:
        # Where case does not count, an "i" is also one of Turkish, which no month has.
        return _MONTH_NUMBER.get(word.lower(), NO_MONTH)

    def take(match: re.Match[str], year: str | None, month: int, day: str | None) -> str:
        date = DatePart(int(year or 0), month, int(day or 0) if month else 0)
        if date.month >= NO_MONTH or date.day > 31 or not any(date):
            return match.group()
        dates.append(date)
        return ", "

    def month_first(match: re.Match[str]) -> str:
        word, day, year = match.groups()
        # "may" and "march" are verbs unless a number follows or they are written as names inside the sentence.
        if not (day or year or (word[0].isupper() and match.start())):
            return match.group()
        before = text[max(0, match.start() - _BEFORE_MONTH_CHARS) : match.start()]
        # "Jan" and "Mar" are names too.
        if not (day or year or word.lower() in MONTHS or re.search(_BEFORE_MONTH, before)):
            return match.group()
        return take(match, year, month_number(word), day)

    text = re.sub(_ISO_DATE, lambda m: take(m, m[1], int(m[2]), m[3]), text)
    text = re.sub(_DAY_MONTH, lambda m: take(m, m[3], month_number(m[2]), m[1]), text)
    text = re.sub(_MONTH_DAY, month_first, text)
    text = re.sub(_LONE_YEAR, lambda m: take(m, m[1], 0, None), text)
    return text, tuple(dict.fromkeys(dates))


def _date_terms(date: DatePart) -> list[str]:
    """A date as the time field has it, and a day as people write it."""
    month = MONTHS[date.month - 1]
    terms = [month] if date.month else []
    if date.year:
        terms.append(str(date.year))
    if date.day:
        terms += [f"day{date.day}", f"{month} {date.day}", f"{date.day} {month}"]
    return terms


def stem_of(term: str) -> str:
    """A word without its last letters: the start that most of its inflections share."""
    return term[: max(4, len(term) - 2)] if term.isascii() else term
