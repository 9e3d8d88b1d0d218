"""The room that connections share: places by user, and bytes that wait in frames and answers."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from typing import Final

from beetle.contracts.errors import Overloaded

RETRY_MS: Final = 500
FREE_BYTES: Final = 65_536
"""So much of each connection is not counted: frames and answers of ordinary size never wait for room. Less where many
connections share little room: together these bytes are at most a quarter of it."""


class Places:
    """Connections by user.

    A sixteenth of all is kept for operators, as much again for users who have none yet. One user has at most three
    quarters: a gateway's user brings many devices. Who has not yet said who it is gets a quarter, together. Whoever
    an operator's connection turns out to be is a user of its own from then on.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept = max(1, most // 16)
        self.each = max(1, most * 3 // 4)
        self.unproven = max(1, most // 4)
        self._guard = threading.Lock()
        # By uid; by the name of whom an operator's connection turned out to be.
        self._taken: Counter[int | str] = Counter()
        self._nobodies = 0

    def take(self, uid: int, *, operator: bool, proven: bool) -> None:
        """One more connection of a user; `free` gives it back.

        Raises:
            Overloaded: there is no place for it now.
        """
        with self._guard:
            left = self._most - self._taken.total()
            if not operator:
                self._check(uid, left)
            elif left <= 0:
                raise _full("too many connections are open", self._most)
            if not proven and self._nobodies >= self.unproven:
                raise _full("too many connections have not said whose they are", self.unproven)
            self._taken[uid] += 1
            self._nobodies += not proven

    def move(self, uid: int, name: str) -> None:
        """An operator's connection is a lesser principal's or a device's, who gives it back.

        Raises:
            Overloaded: there is no place for it as that; it keeps the one that it has.
        """
        with self._guard:
            self._check(name, self._most - self._taken.total() + 1)
            self._give_back(uid)
            self._taken[name] += 1

    def prove(self) -> None:
        """A connection has said whose it is."""
        with self._guard:
            self._nobodies -= 1

    def free(self, user: int | str, *, proven: bool) -> None:
        """A connection has ended: of a uid, or of the name that it was moved to."""
        with self._guard:
            self._give_back(user)
            self._nobodies -= not proven

    def _check(self, user: int | str, left: int) -> None:
        mine = self._taken[user]
        if left <= (2 * self._kept if mine else self._kept):
            raise _full("too many connections are open", self._most)
        if mine >= self.each:
            raise _full("this user has too many connections open", self.each)

    def _give_back(self, user: int | str) -> None:
        self._taken[user] -= 1
        if not self._taken[user]:
            del self._taken[user]


class Share:
    """What one connection has of the bytes. `give_way`, on another's thread, makes it end soon."""

    __slots__ = ("busy", "bytes", "give_way", "gone", "uid")

    def __init__(self, uid: int, give_way: Callable[[], None]) -> None:
        self.uid = uid
        self.give_way = give_way
        self.bytes = 0
        self.busy = False
        """Whether it is at work for a request, which cannot be taken from it."""
        self.gone = False
        """Whether its room was given to another."""


class HeldBytes:
    """Bytes that connections hold in frames and answers, together at most `most`.

    One user holds at most three quarters of them: beyond that its smallest connection gives way, so that its largest
    come to an end. When there is no room, the user who has most loses its largest connection to one who has less.
    """

    def __init__(self, most: int, connections: int) -> None:
        self._most = most
        self._free = min(FREE_BYTES, most // (4 * connections))
        self.each = most * 3 // 4
        self._guard = threading.Lock()
        self._shares: set[Share] = set()
        self._of: Counter[int] = Counter()

    @property
    def held(self) -> int:
        """Bytes that are counted now."""
        with self._guard:
            return self._of.total()

    def hold(self, share: Share, held: int) -> None:
        """A connection holds so many bytes from now on.

        Raises:
            Overloaded: its user has most of the room already, or its room was given to another.
        """
        wanted = max(0, held - self._free)
        if not wanted and not share.bytes:
            return
        with self._guard:
            if share.gone:
                if not wanted:
                    return
                raise _no_room(self._most)
            more = wanted - share.bytes
            while more > 0 and self._of[share.uid] + more > self.each:
                self._take_from(self._smallest(share))
            while more > 0 and self._of.total() + more > self._most:
                self._take_from(self._largest(share, more))
            share.bytes = wanted
            self._of[share.uid] += more
            if wanted:
                self._shares.add(share)
            else:
                self._shares.discard(share)
            if not self._of[share.uid]:
                del self._of[share.uid]

    def check(self, share: Share) -> None:
        """Raises Overloaded when a connection's room was given to another."""
        if share.gone:
            raise _no_room(self._most)

    def _smallest(self, share: Share) -> Share:
        """The smallest idle connection of a share's own user; there must be one that is smaller."""
        idle = [each for each in self._shares if each.uid == share.uid and not each.busy and each.bytes < share.bytes]
        if not idle:
            raise _no_room(self.each)
        return min(idle, key=lambda each: each.bytes)

    def _largest(self, share: Share, more: int) -> Share:
        """The largest idle connection of the user who has most."""
        mine = self._of[share.uid] + more
        for uid, has in self._of.most_common():
            if uid == share.uid or has <= mine:
                break
            idle = [each for each in self._shares if each.uid == uid and not each.busy]
            if idle:
                return max(idle, key=lambda each: each.bytes)
        raise _no_room(self._most)

    def _take_from(self, share: Share) -> None:
        self._of[share.uid] -= share.bytes
        if not self._of[share.uid]:
            del self._of[share.uid]
        self._shares.discard(share)
        share.bytes, share.gone = 0, True
        share.give_way()


def _full(what: str, maximum: int) -> Overloaded:
    return Overloaded(what=what, maximum=maximum, retry_after_ms=RETRY_MS)


def _no_room(most: int) -> Overloaded:
    return Overloaded(what="too many bytes wait in frames and answers", maximum=most, retry_after_ms=RETRY_MS)
