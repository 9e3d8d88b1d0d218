"""What stands around the candidates of a recall: their neighbours and their sessions."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from math import log
from operator import itemgetter
from typing import TypeAlias

from beetle.domain.lexical import stem_of

SESSION_GAP_US = 30 * 60 * 1_000_000
"""A pause this long (µs) ends a session: nothing is lent across it."""

_SEQUENCE_BITS = 40

Turn: TypeAlias = tuple[int, int, int]
"""(conversation << 40 | sequence, time, the candidate's index). Sequences are below 2^40, so that the turns of a
conversation stand side by side."""
Window: TypeAlias = Sequence[tuple[int, int]]
"""The neighbours of a candidate: their indices, and the steps from each to it."""


def turns_of(conversations: Sequence[int | None], sequences: Sequence[int], times: Sequence[int]) -> list[Turn]:
    """The turns among the candidates, in the order of their conversations and places."""
    turns = [
        (conversation << _SEQUENCE_BITS | sequence, at_us, i)
        for i, (conversation, sequence, at_us) in enumerate(zip(conversations, sequences, times, strict=True))
        if conversation is not None
    ]
    turns.sort()
    return turns


def windows_of(turns: Sequence[Turn], own: Sequence[float]) -> dict[int, Window]:
    """The neighbours of each candidate that may have any, by its index; none across a session gap.

    Of several rows in one place the one that matches best stands for all, of equals the first.
    """
    places = [place for place, _, _ in turns]
    close = {each for pair in pairwise(places) if pair[1] - pair[0] <= 2 for each in pair}
    if not close:
        return {}
    near = [each for each in turns if each[0] in close]
    held: dict[int, tuple[int, int]] = {}
    for place, at_us, i in sorted(near, key=itemgetter(2)):
        if place not in held or own[i] > own[held[place][0]]:
            held[place] = i, at_us
    windows: dict[int, Window] = {}
    for place, at_us, i in near:
        window: list[tuple[int, int]] = []
        for step in (-2, -1, 1, 2):
            there = held.get(place - step)
            if there is not None and -SESSION_GAP_US <= there[1] - at_us <= SESSION_GAP_US:
                window.append((there[0], step))
        windows[i] = window
    return windows


def lent_by(
    own: Sequence[float], asks: Sequence[bool], windows: Mapping[int, Window], near: float, far: float, answer: float
) -> list[float]:
    """What each candidate's neighbours lend it of their own scores: a share of `near` by the turn before and after,
    of `far` by those two turns away, of `answer` by a question to the turn after it."""
    share = {-2: far, -1: near, 1: near, 2: far}
    lent = [0.0] * len(own)
    for i, window in windows.items():
        for j, step in window:
            if own[j]:
                lent[i] += own[j] * (answer if step == 1 and asks[j] else share[step])
    return lent


def session_shares(turns: Sequence[Turn], scores: Sequence[float]) -> list[float]:
    """For each candidate the three best scores of its session together, as a share of the best session's."""
    sessions: list[list[int]] = []
    session: list[int] = []
    end: int | None = None
    before = 0
    for place, at_us, i in turns:
        if end is not None and place < end and -SESSION_GAP_US <= at_us - before <= SESSION_GAP_US:
            session.append(i)
        else:
            session = [i]
            sessions.append(session)
            end = ((place >> _SEQUENCE_BITS) + 1) << _SEQUENCE_BITS
        before = at_us
    sums = [
        scores[session[0]] if len(session) == 1 else sum(sorted([scores[i] for i in session], reverse=True)[:3])
        for session in sessions
    ]
    best = max(sums, default=0.0) or 1.0
    shares = [0.0] * len(scores)
    for session, total in zip(sessions, sums, strict=True):
        share = total / best
        for i in session:
            shares[i] = share
    return shares


def coverage(terms: Sequence[str], texts: Sequence[str], windows: Mapping[int, Window]) -> list[float]:
    """The share of the terms, weighted by their rarity in the pool, that a candidate's window holds between them."""
    # One text: no term contains a newline, so that no stem is found across two texts.
    joined = "\n".join(texts)
    ends = list(accumulate([len(text) + 1 for text in texts]))
    held = [0] * len(texts)
    rarity: list[float] = []
    for k, term in enumerate(terms):
        found = _holding(joined, ends, stem_of(term))
        for i in found:
            held[i] |= 1 << k
        rarity.append(log(1 + len(texts) / (1 + len(found))) if found else 0.0)
    reached = held.copy()
    for i, window in windows.items():
        for j, _ in window:
            reached[i] |= held[j]
    whole = sum(rarity) or 1.0
    shares = {bits: sum([value for k, value in enumerate(rarity) if bits >> k & 1]) / whole for bits in set(reached)}
    return [shares[bits] for bits in reached]


def _holding(joined: str, ends: Sequence[int], stem: str) -> list[int]:
    """The indices of the joined texts that hold the stem; `ends` says where each of them ends."""
    found: list[int] = []
    at = joined.find(stem)
    while at >= 0:
        i = bisect_right(ends, at)
        found.append(i)
        at = joined.find(stem, ends[i])
    return found
