"""Subgame-perfect play of bargaining, by backward induction on whole points, in fractions.

Where a responder is indifferent it accepts (`ties` ``accept``) or does not (``reject``): two
outcomes, both subgame-perfect. Of equal own payoffs a proposer prefers agreement. Ståhl 1972;
Rubinstein 1982 for the game without end on a continuous pie.
"""

from fractions import Fraction
from functools import lru_cache
from math import ceil, floor
from typing import Any, NamedTuple

import numpy as np

from llm_games.arrays import Array
from llm_games.baselines.regret import Claim, Measured, Parts, Steps
from llm_games.errors import unknown
from llm_games.games.bargaining.rules import LEAVE, REJECT

TIES = ("accept", "reject")
PEOPLE = {0: 0, 1: 133, 10: 186, 20: 252, 30: 378, 40: 584, 50: 913, 60: 959}
"""How many of 1000 accept a share in percent (MobLab classrooms, data of Mei et al. 2024)."""
MEAN_OFFER = Fraction(442, 1000)  # of the pie, by the same people


class Period(NamedTuple):
    """Subgame-perfect play of a period. Pairs are by seat; payoffs are those of the whole game."""

    offer: int
    least: int  # the smallest offer that is accepted; above the pie: none is
    refusal: int  # how smaller ones are answered
    worth: tuple[Fraction, ...]  # of a point in this period
    rejected: tuple[Fraction, ...]  # payoffs if an offer is rejected
    refused: tuple[Fraction, ...]  # payoffs after the refusal
    payoffs: tuple[Fraction, ...]


@lru_cache(maxsize=256)
def solution(game: Any, opener: int = 0, ties: str = "accept") -> tuple[Period, ...]:
    """Return perfect play of each period where this seat proposes first."""
    if ties not in TIES:
        raise unknown("ties", ties, TIES)
    payoffs = tuple(map(Fraction, game.breakdown))
    periods: list[Period] = []
    for number in reversed(range(game.periods)):
        proposer, other = (opener + number) % 2, (opener + number + 1) % 2
        worth = tuple(factor**number for factor in game.discount)
        rejected = refused = payoffs
        refusal = REJECT
        if game.outside is not None:
            leaving = tuple(w * a for w, a in zip(worth, game.outside, strict=True))
            if leaving[other] > rejected[other]:
                refused, refusal = leaving, LEAVE
        price = refused[other] / worth[other] if game.veto else Fraction(0)
        least = floor(price) + 1 if game.veto and ties == "reject" else ceil(price)
        mine, theirs = worth[proposer] * (game.pie - least), worth[other] * least
        agreed = least == 0 or (least <= game.pie and mine >= refused[proposer])
        shares = (mine, theirs) if other else (theirs, mine)
        offer, payoffs = (least, shares) if agreed else (0, refused)
        periods.append(Period(offer, least, refusal, worth, rejected, refused, payoffs))
    return tuple(reversed(periods))


@lru_cache(maxsize=1024)
def table(game: Any, field: str, ties: str = "accept") -> Array:
    """Return a field of `Period` by opener and period, ``(2, periods)``, of pairs by seat, too."""
    return np.array(
        [[getattr(period, field) for period in solution(game, opener, ties)] for opener in (0, 1)]
    ).astype(np.int64 if field in ("offer", "least", "refusal") else np.float64)


def rubinstein(first: Fraction, second: Fraction) -> Fraction:
    """Return the first proposer's share without an end, on a continuous pie; not both 1."""
    return (1 - second) / (1 - first * second)


def acceptance(pie: int) -> Array:
    """Return how likely people accept each offer from 0 to the pie, linear between the data."""
    percent = np.arange(pie + 1) * 100 / pie
    return np.interp(percent, list(PEOPLE), list(PEOPLE.values())) / 1000


def best_to_people(pie: int) -> int:
    """Return the offer with the highest mean payoff against `acceptance`, the lowest of equals."""
    return int(((pie - np.arange(pie + 1)) * acceptance(pie)).argmax())


# -- how play is judged -------------------------------------------------------------------------


def deviation(game: Any, record: Steps) -> Measured:
    """Return what a move loses if all goes on perfectly, and an offer's distance to the perfect.

    Where both name a number the other's is known in hindsight, and both numbers have a distance. An
    answer that loses nothing is at 0, another at 1.
    """
    period, proposer = np.minimum(record["period"], game.periods) - 1, record["proposer"]
    offer, other, opener = record["offer"], 1 - proposer, (proposer + period) % 2
    far = np.abs(offer - table(game, "offer")[opener, period]) / game.pie

    def of_seat(field: str, seat: Array) -> Array:
        return table(game, field)[opener, period, seat]

    least, rejected = table(game, "least")[opener, period], of_seat("rejected", other)
    if game.at_once:
        named: Array = np.where(proposer == 0, record["actions"][1], record["actions"][0])
        far = (far + np.abs(named - least) / game.pie) / 2
        without = of_seat("rejected", proposer), rejected
        of_offer, of_answer = _regrets_at_once(game.pie, offer, named, without)
    else:
        answering, accepted = record["answering"], offer * of_seat("worth", other)
        mine = (game.pie - offer) * of_seat("worth", proposer)
        got = np.where(offer >= least, mine, of_seat("refused", proposer))
        outside = np.array(game.outside or (-np.inf, -np.inf))[other] * of_seat("worth", other)
        options = np.stack(np.broadcast_arrays(rejected, accepted, outside))
        answer = np.clip(record["answer"], REJECT, LEAVE)[None]
        lost = options.max(axis=0) - np.take_along_axis(options, answer, axis=0)[0]
        of_offer = np.where(answering, 0.0, of_seat("payoffs", proposer) - got)
        of_answer = np.where(answering, lost, 0.0)
        far = np.where(answering, lost > 0, far)
    return np.where(proposer == 0, (of_offer, of_answer), (of_answer, of_offer)), far


def _regrets_at_once(
    pie: int, offer: Array, named: Array, without: tuple[Array, Array]
) -> tuple[Array, Array]:
    agreed = offer >= named
    shares = np.where(agreed, pie - offer, without[0]), np.where(agreed, offer, without[1])
    best_share = np.where(named > 0, np.maximum(pie - named, without[0]), pie)
    best_least = np.where(offer < pie, np.maximum(offer, without[1]), pie)
    return best_share - shares[0], best_least - shares[1]


def rational(game: Any) -> Claim:
    if not game.veto:
        return Claim("equilibrium", "offers nothing, which is best for whoever proposes")
    if game.at_once:
        what = "accepts whatever is no worse than no agreement, and offers the least of it"
        return Claim("equilibrium", f"{what}: of many equilibria the one in undominated strategies")
    return Claim("equilibrium", "plays subgame-perfectly; where it is indifferent it accepts")


def replies(game: Any) -> list[str]:
    shares = [f"threshold:{tenth / 10}" for tenth in range(11)]
    return ["rational", "equal", "selfish_responder", "best_to_people", *shares]


def welfare(game: Any, steps: Steps) -> Parts:
    """Return the sum of payoffs; the equilibria are the subgame-perfect ones."""
    total = steps["payoffs"].sum(axis=(0, -1))
    worth = table(game, "worth")[0]
    ends = [game.pie * worth, *([np.array([sum(game.breakdown)], float)] if game.veto else [])]
    if game.outside is not None:
        ends.append((worth * game.outside).sum(axis=1))
    opener = (steps["proposer"][..., 0] + steps["period"][..., 0] - 1) % 2
    totals = [table(game, "payoffs", ties)[:, 0].sum(axis=1)[opener] for ties in TIES]
    worst, best = (end([end(part) for part in ends]) for end in (np.min, np.max))
    return total, worst, best, np.min(totals, axis=0), np.max(totals, axis=0)
