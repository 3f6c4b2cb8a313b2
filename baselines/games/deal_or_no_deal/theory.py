"""Theory of deal or no deal: all divisions of a scenario, what its law brings, and perfect offers.

A scenario is three rows: counts, and the values of both seats. Perfect play is backward induction
where both know all values and the number of moves: of equal own payoffs the better one for the
other is offered, who accepts where it is indifferent.
"""

from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from llm_games.arrays import Array
from llm_games.baselines.regret import Claim, Measured, Parts, Steps
from llm_games.games.deal_or_no_deal.divisions import code_of, law, taken_of

Scenario = tuple[tuple[int, ...], ...]


class Divisions(NamedTuple):
    """All divisions of a scenario in order of what the first seat takes, ``(divisions,)`` each."""

    codes: Array
    taken: Array  # ``(kinds, divisions)``
    scores: Array  # of both seats, ``(2, divisions)``
    nash: int  # the first with the largest product of scores


@lru_cache(maxsize=8192)
def divisions_of(scenario: Scenario) -> Divisions:
    counts, *values = (np.array(row, np.int64) for row in scenario)
    taken = np.indices([count + 1 for count in scenario[0]]).reshape(len(counts), -1)
    scores = np.stack([values[0] @ taken, values[1] @ (counts[:, None] - taken)])
    return Divisions(code_of(taken), taken, scores, int(scores.prod(axis=0).argmax()))


class PerfectMove(NamedTuple):
    """Perfect play of a move: what its maker takes, and what it and the other then get."""

    code: int
    payoffs: tuple[Fraction, Fraction]
    offers: tuple[tuple[Fraction, Fraction], ...]  # by division, if none was accepted before


@lru_cache(maxsize=4096)
def plan(game: Any, scenario: Scenario) -> tuple[PerfectMove, ...]:
    """Return perfect play of each move where both know all values."""
    plays, counts, values = list[PerfectMove](), scenario[0], scenario[1:]
    later = (Fraction(0), Fraction(0))  # of the next maker and the other
    for number in range(game.moves, 0, -1):
        maker = (game.first + number - 1) % 2
        ways = divisions_of((counts, values[maker], values[1 - maker]))
        factor, offers = game.discount ** max(0, number - 1), []
        for mine, theirs in ways.scores.T.tolist():
            accepted = number < game.moves and theirs * factor >= later[0]
            offers.append((mine * factor, theirs * factor) if accepted else later[::-1])
        later = max(offers)
        plays.append(PerfectMove(int(ways.codes[offers.index(later)]), later, tuple(offers)))
    return tuple(reversed(plays))


def rows_of(game: Any, index: int) -> Scenario:
    return tuple(map(tuple, game.table[index].tolist()))


def deals(game: Any, limit: int) -> tuple[dict[str, Array], Array] | None:
    """Return all scenarios, equally likely, for `deals_of`; None beyond `limit` or if ends vary."""
    count = len(game.table)
    if game.open_end or count > limit:
        return None
    return {"scenario": np.arange(count)}, np.full(count, 1 / count)


@lru_cache(maxsize=8192)
def fair_code(counts: tuple[int, ...], values: tuple[int, ...]) -> int:
    """Return the first division with the best own value times the mean value for the other.

    The mean is over all values of the other that the law allows with the own ones.
    """
    table = law(len(counts))
    rows = table[(table[:, 0] == counts).all(axis=1) & (table[:, 1] == values).all(axis=1), 2]
    taken = divisions_of((counts, values, values)).taken
    others = rows.sum(axis=0) @ (np.array(counts)[:, None] - taken)
    return int(code_of(taken)[(np.array(values) @ taken * others).argmax()])


# -- how play is judged -------------------------------------------------------------------------


def deviation(game: Any, record: Steps) -> Measured:
    """Return what each move loses to the best one, all values being known in hindsight.

    A claim's is against the other's claim, an offer's or acceptance's if all goes on perfectly; NaN
    where chance ends the game. The distance, where all values are open: 1 if a move loses anything.
    """
    actions = record["actions"]
    regret = np.full(actions.shape, np.nan if game.open_end else 0.0)
    for place in [] if game.open_end else np.ndindex(actions.shape[1:]):
        index, number, standing = (int(record[n][place]) for n in ("scenario", "move", "standing"))
        rows = rows_of(game, index)
        if game.at_once:
            regret[:, *place] = _claims_regret(rows, actions[:, *place])
        elif number <= game.moves:
            mover = (game.first + number - 1) % 2, *place
            regret[mover] = _offer_regret(game, rows, number, int(actions[mover]), standing)
    far = np.where(game.open_values, (regret > 0).any(axis=0), np.nan)
    return regret, np.where(np.isnan(regret).any(axis=0), np.nan, far)


def _claims_regret(scenario: Scenario, claims: Array) -> Array:
    counts, *values = (np.array(row, np.int64) for row in scenario)
    taken = taken_of(np.clip(claims, 0, None), len(counts))
    best = (np.array(values).T * (counts[:, None] - taken[:, ::-1])).sum(axis=0)
    return np.where((taken.sum(axis=1) == counts).all(), 0.0, best)


def _offer_regret(game: Any, rows: Scenario, number: int, action: int, standing: int) -> float:
    move, mine = plan(game, rows)[number - 1], rows[1 + (game.first + number - 1) % 2]
    ways = divisions_of((rows[0], mine, mine))
    offered, asked = np.searchsorted(ways.codes, (standing, action)).tolist()
    worth = int(ways.scores[1, offered]) if standing >= 0 else -1
    accepting = worth * game.discount ** max(0, number - 2)
    brings = accepting if action == game.accept else move.offers[asked][0]
    return float(max(move.payoffs[0], accepting) - brings)


def rational(game: Any) -> Claim:
    if not game.open_values:
        what = "offers, and claims, what is best for both as far as it knows, and accepts half"
        return Claim("heuristic", what)
    if game.at_once:
        what = "claims its part of the division with the largest product"
        return Claim("equilibrium", f"{what}, one of many on which both must agree")
    if game.open_end:
        return Claim("heuristic", "offers the division with the largest product of both payoffs")
    return Claim("equilibrium", "plays subgame-perfectly; where it is indifferent it accepts")


def replies(game: Any) -> list[str]:
    conceders = [f"conceder:{step}" for step in range(6)]
    return ["rational", "greedy", "fair", "accepts_all", "full_information", *conceders]


def welfare(game: Any, steps: Steps) -> Parts:
    """Return the sum of payoffs; the equilibrium is the perfect one, where all values are open."""
    scenario, total = steps["scenario"][..., 0], steps["payoffs"].sum(axis=(0, -1))
    all_rows = [rows_of(game, index) for index in np.ravel(scenario).tolist()]
    best = [divisions_of(rows).scores.sum(axis=0).max() for rows in all_rows]
    solved = game.open_values and not game.at_once and not game.open_end
    ends = [float(sum(plan(game, rows)[0].payoffs)) if solved else np.nan for rows in all_rows]
    highest, end = (np.reshape(part, scenario.shape) for part in (best, ends))
    return total, 0, highest, end, end


def unasked(game: Any) -> tuple[str, ...]:
    """Return the kinds of graded questions that players cannot answer: best replies need values."""
    return () if game.open_values else ("reply",)
