"""Seatings that give each player each seat equally often, and a warning where they do not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from fractions import Fraction

from llm_games.rulebook import Rulebook


def rotated(players: Sequence[Hashable]) -> list[list[int]]:
    """Return rows of a Latin square: for each seat the index in `players` of its player.

    The first row is the identity. All move on by one on a ring from row to row; copies of a player
    are evenly spaced, so that fewer rows are fair. Different players go around in zigzag, so that
    each sits directly before each other equally often (Williams, Australian Journal of Scientific
    Research A 2, 1949); odd numbers of seats need a mirrored second half for it.
    """
    count, copies, placed = len(players), Counter(players), Counter[Hashable]()
    zigzag, spaced = [*range(0, count, 2), *reversed(range(1, count, 2))], {}
    first = list(dict.fromkeys(players[index] for index in zigzag))
    for index in zigzag:
        player = players[index]
        spaced[index] = Fraction(2 * placed[player] + 1, 2 * copies[player]), first.index(player)
        placed[player] += 1
    ring = sorted(zigzag, key=spaced.__getitem__)
    ring_positions = [ring.index(index) for index in range(count)]
    rows = [
        [ring[(ring_positions[seat] + step) % count] for seat in range(count)]
        for step in range(count)
    ]
    return rows + [row[::-1] for row in rows] if count % 2 else rows


def uneven(rules: Rulebook, players: Sequence[Hashable], seatings: Sequence[Sequence[int]]) -> str:
    """Say that seats differ in worth and players had them unequally often; "" where all is even.

    `seatings` are of the episodes, for each seat the index in `players` of its player.
    """
    if not rules.seats_differ or len(set(players)) < 2 or not seatings:
        return ""
    times = [Counter(players[index] for index in column) for column in zip(*seatings, strict=True)]
    if all(seat == times[0] for seat in times):
        return ""
    return (
        f"{rules.seats_differ}, and its players have not had each seat equally often "
        f'(order = "rotate" sees to it in any multiple of {len(players)} episodes)'
    )
