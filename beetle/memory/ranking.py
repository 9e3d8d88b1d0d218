"""The order of recall: from index hits and their neighbouring turns to one ranked list. No I/O, no clock, no state."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from beetle.memory.lexical import MONTHS, WEEKDAYS, ParsedQuery, name_words, utc_time

POOL = 200
SEEDS = 60
REREAD = 100
SESSION_GAP_US = 30 * 60 * 1_000_000
DAY_US = 86_400 * 1_000_000


class Weights(NamedTuple):
    near: float = 0.5
    far: float = 0.25
    length: float = 0.5
    session: float = 0.5
    speaker: float = 0.25
    day: float = 0.5
    month: float = 0.25
    year: float = 0.0
    told_within_days: int = 7
    phrase: float = 0.0
    first_person: float = 0.25
    when: float = 0.25
    question: float = 0.75
    title: float = 0.5
    skill: float = 1.5
    current: float = 0.1
    archived: float = 0.5
    names: float = 0.0
    cover: float = 0.0
    cover_own: float = 0.0
    scover: float = 0.0
    answer: float = 0.5
    qshare: float = 0.0
    echo: float = 1.0
    window: float = 0.0
    qraw: float = 1.0


WEIGHTS = Weights()


class Candidate(NamedTuple):
    plane: str
    source_id: str
    text: str
    at_us: int
    bm25: float
    conversation: int | None = None
    sequence: int = 0
    speaker: str | None = None
    title: str = ""
    archived: bool = False


class Ranked(NamedTuple):
    candidate: Candidate
    score: float
    why: tuple[str, ...]


_FIRST_PERSON = re.compile(r"\b(?:I|me|my|mine|we|us|our|ours)\b")
_TIME = re.compile(
    r"\b(?:yesterday|today|tonight|tomorrow|ago|since|(?:last|next|this|past|other|few)\s+\w+|"
    + "|".join(d[:3] for d in WEEKDAYS)
    + r"\w*day|(?:19|20)\d\d|"
    + "|".join(MONTHS)
    + r")\b",
    re.IGNORECASE,
)


def neighbours_wanted(candidates, top=SEEDS):
    have = {(c.conversation, c.sequence) for c in candidates}
    seeds = sorted((c for c in candidates if c.conversation is not None), key=lambda c: -c.bm25)[:top]
    out = {}
    for c in seeds:
        for d in (-1, 1, -2, 2):
            k = (c.conversation, c.sequence + d)
            if k not in have:
                out[k] = None
    return list(out)


def rank(parsed, candidates, *, current=None, weights=WEIGHTS, additive=False):
    cs = list({(c.plane, c.source_id): c for c in candidates}.values())
    W = weights
    n = len(cs)
    if not n:
        return []
    avg = sum(len(c.text) for c in cs) / n + 1
    raw = []
    for c in cs:
        L = min(len(c.text), 20000) / avg
        qf = W.qraw if c.text.rstrip().endswith("?") else 1
        raw.append(qf * c.bm25 * (1 + 1.2 * (0.25 + 0.75 * L)) / (1 + 1.2 * (1 - W.length + W.length * L)))
    place = {}
    for i, c in enumerate(cs):
        if c.conversation is not None:
            place[c.conversation, c.sequence] = i
    lent = [0.0] * n
    for i, c in enumerate(cs):
        r = raw[i]
        if c.conversation is None or not r:
            continue
        nx = W.answer if c.text.rstrip().endswith("?") else W.near
        for d, k in ((-2, W.far), (-1, W.near), (1, nx), (2, W.far)):
            j = place.get((c.conversation, c.sequence + d))
            if j is not None and abs(cs[j].at_us - c.at_us) <= SESSION_GAP_US:
                lent[j] += k * r
    score = [raw[i] + lent[i] if c.conversation is not None else raw[i] * W.skill for i, c in enumerate(cs)]
    best = max(score) or 1
    # sessions
    order = sorted(
        (i for i in range(n) if cs[i].conversation is not None), key=lambda i: (cs[i].conversation, cs[i].sequence)
    )
    sess = {}
    sid = 0
    prev = None
    groups = {}
    for i in order:
        c = cs[i]
        if prev is None or prev.conversation != c.conversation or c.at_us - prev.at_us > SESSION_GAP_US:
            sid += 1
        prev = c
        sess[i] = sid
        groups.setdefault(sid, []).append(score[i])
    gs = {s: sum(sorted(v, reverse=True)[:3]) for s, v in groups.items()}
    gbest = max(gs.values(), default=1) or 1
    terms = set(parsed.terms)
    spk = {}
    named = False
    for c in cs:
        if c.speaker and c.speaker not in spk:
            spk[c.speaker] = bool(name_words([c.speaker]) & terms)
            named = named or spk[c.speaker]
    low = [c.text[:2000].lower() for c in cs]
    stems = [
        t[:-2] if len(t) > 5 else t[:-1] if len(t) > 4 else t
        for t in parsed.terms
        if not any(t in x.lower() for x in spk)
    ]
    masks = [[st in l for st in stems] for l in low]
    import math

    df = [sum(m[k] for m in masks) for k in range(len(stems))]
    idf = [math.log(1 + n / (1 + x)) if x else 0 for x in df]
    tot = sum(idf) or 1
    bits = [sum(1 << k for k in range(len(stems)) if m[k]) for m in masks]
    memo = {}

    def wsum(b):
        if b not in memo:
            memo[b] = sum(idf[k] for k in range(len(stems)) if b >> k & 1) / tot
        return memo[b]

    sbits = {}
    for i, g in sess.items():
        sbits[g] = sbits.get(g, 0) | bits[i]
    feats = []
    for i, c in enumerate(cs):
        f = 0.0
        if i in sess:
            f += W.session * gs[sess[i]] / gbest
        if W.cover_own:
            f += W.cover_own * wsum(bits[i])
        if W.cover:
            b = bits[i]
            if c.conversation is not None:
                for d in (-2, -1, 1, 2):
                    j = place.get((c.conversation, c.sequence + d))
                    if j is not None and abs(cs[j].at_us - c.at_us) <= SESSION_GAP_US:
                        b |= bits[j]
            f += W.cover * wsum(b)
        if W.window:
            b1 = b2 = 0
            if c.conversation is not None:
                for d in (-2, -1, 1, 2):
                    j = place.get((c.conversation, c.sequence + d))
                    if j is not None and abs(cs[j].at_us - c.at_us) <= SESSION_GAP_US:
                        if abs(d) == 1:
                            b1 |= bits[j]
                        else:
                            b2 |= bits[j]
            b1 |= bits[i]
            b2 |= b1
            f += W.window * (0.5 * wsum(bits[i]) + 0.25 * wsum(b1) + 0.25 * wsum(b2))
        if W.scover and i in sess:
            f += W.scover * wsum(sbits[sess[i]])
        if c.speaker and spk[c.speaker]:
            f += W.speaker
        if parsed.dates:
            f += date_bonus(parsed.dates, c.at_us, W)
        if current is not None and c.conversation == current:
            f += W.current
        if c.title and terms:
            f += W.title * len(name_words([c.title]) & terms) / len(terms)
        feats.append(f)
    fin = (lambda i: score[i] / best + feats[i]) if additive else (lambda i: score[i] / best * (1 + feats[i]))
    first = sorted(range(n), key=lambda i: -fin(i))
    for i in first[:REREAD]:
        c = cs[i]
        text = c.text[:2000]
        low = text.lower()
        if parsed.phrases and W.phrase:
            feats[i] += W.phrase * sum(p in low for p in parsed.phrases) / len(parsed.phrases)
        if (named and c.speaker and spk[c.speaker] or parsed.first_person) and _FIRST_PERSON.search(text):
            feats[i] += W.first_person
        if parsed.asks_when and _TIME.search(text):
            feats[i] += W.when
        if W.names:
            nn = [x for x in parsed.names if not any(x in (s or "").lower() for s in spk)]
            if nn:
                feats[i] += W.names * sum(x in low for x in nn) / len(nn)
    out = []
    for i in first:
        s = fin(i)
        t = cs[i].text.rstrip()
        if t.endswith("?"):
            s *= W.question
        if cs[i].archived:
            s *= W.archived
        out.append(Ranked(cs[i], s, ()))
    out.sort(key=lambda r: -r.score)
    return out


def date_bonus(dates, at_us, W):
    at = utc_time(at_us)
    best = 0.0
    for y, m, d in dates:
        if y and y != at.year and not d:
            continue
        if d:
            try:
                t = at.replace(year=y or at.year, month=m, day=d)
            except ValueError:
                continue
            days = (at.date() - t.date()).days
            if days == 0:
                best = max(best, W.day)
            elif 0 < days <= W.told_within_days:
                best = max(best, W.day / 2)
            elif at.month == m and (not y or y == at.year):
                best = max(best, W.month)
        elif m:
            if at.month == m:
                best = max(best, W.month)
        else:
            best = max(best, W.year)
    return best
