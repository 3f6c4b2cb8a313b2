"""Who sits where, so that what a seat is worth cancels out, and what to say where it does not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from fractions import Fraction

from llm_games.rulebook import Rulebook


def rotated(players: Sequence[Hashable]) -> list[list[int]]:
    """Return rows of a Latin square: for each seat the place in `players` of who sits there.

    The first row has all at their own places. All sit on a ring and move on by one of it from row
    to row, so that in as many rows as there are seats each has had each seat once. Copies of a
    player stand evenly spaced on the ring, so that fewer rows are as fair as they can be. Different
    players go around in zigzag, so that each sits directly before each other one equally often
    (Williams, Australian Journal of Scientific Research A 2, 1949). An odd number of seats takes
    twice as many rows for it, of which the second half is mirrored.
    """
    many, copies, seen = len(players), Counter(players), Counter[Hashable]()
    zigzag, spaced = [*range(0, many, 2), *reversed(range(1, many, 2))], {}
    first = list(dict.fromkeys(players[place] for place in zigzag))
    for place in zigzag:
        who = players[place]
        spaced[place] = Fraction(2 * seen[who] + 1, 2 * copies[who]), first.index(who)
        seen[who] += 1
    ring = sorted(zigzag, key=spaced.__getitem__)
    at = [ring.index(place) for place in range(many)]
    rows = [[ring[(at[seat] + step) % many] for seat in range(many)] for step in range(many)]
    return rows + [row[::-1] for row in rows] if many % 2 else rows


def uneven(rules: Rulebook, players: Sequence[Hashable], seatings: Sequence[Sequence[int]]) -> str:
    """Say that a seat is worth something here, and that not each player has had each equally often.

    `seatings` are of the episodes, for each seat the place in `players` of who sits there. ""
    where all is even: all seats are worth the same, all players are the same, or nothing is played.
    """
    if not rules.seats_differ or len(set(players)) < 2 or not seatings:
        return ""
    times = [Counter(players[place] for place in column) for column in zip(*seatings, strict=True)]
    if all(seat == times[0] for seat in times):
        return ""
    return (
        f"{rules.seats_differ}, and its players have not had each seat equally often "
        f'(order = "rotate" sees to it in any multiple of {len(players)} episodes)'
    )
