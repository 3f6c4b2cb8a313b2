"""Players of deal or no deal. Of equal divisions they take the first in order of what is taken."""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from llm_games.baselines.games.deal_or_no_deal import theory
from llm_games.baselines.rules import (
    Kind,
    Players,
    Rule,
    cannot_play,
    count_from,
    seat_by_seat,
    shape,
    whole,
)
from llm_games.games.deal_or_no_deal.divisions import BASE, WORTH, code_of, pick_legal
from llm_games.noise import Noise
from llm_games.rulebook import Array, Rulebook
from llm_games.view import View

Chosen = tuple[int, float]  # a division to ask for, and the least worth that is accepted


class Situation(NamedTuple):
    """What a seat knows when it moves; `index` is that of the scenario for who knows all of it."""

    game: Any
    seat: int
    counts: tuple[int, ...]
    values: tuple[int, ...]
    made: int  # moves
    index: int


def columns(view: View, name: str) -> Array:
    """Return a fact of each kind, ``(kinds, *batch)``."""
    return np.stack([whole(view, f"{name}_{kind}") for kind in range(len(view.game.items))])


def by_table(choose: Callable[[Situation], Chosen], knows_all: bool = False) -> Rule:
    """Return a rule from what is chosen in a situation; it is asked once of tables alike."""

    def rule(view: View, noise: Noise) -> Array:
        game, kinds, batch = view.game, len(view.game.items), shape(view)
        counts, values, other = (columns(view, name) for name in ("count", "value", "other"))
        index = view.sight.state.scenario if knows_all else 0
        known = np.broadcast_arrays(*counts, *values, whole(view, "move") - 1, index)
        rows = np.stack(known).reshape(len(known), -1)
        limits = *(BASE,) * kinds, *(WORTH + 1,) * kinds, game.length() + 1, len(game.table)
        _, first, place = np.unique(
            np.ravel_multi_index(tuple(rows), limits), return_index=True, return_inverse=True
        )
        chosen = [
            choose(Situation(game, view.seat, tuple(row[:kinds]), tuple(row[kinds:-2]), *row[-2:]))
            for row in rows[:, first].T.tolist()
        ]
        codes, least = (np.array(part)[place].reshape(batch) for part in zip(*chosen, strict=True))
        worth = (values * (counts - other)).sum(axis=0)
        accepts = (other[0] >= 0) & (worth >= least) & (not game.at_once)
        return np.where(accepts, game.accept, codes)

    return partial(seat_by_seat, rule)


def everything_of_value(counts: tuple[int, ...], values: tuple[int, ...]) -> int:
    return int(code_of([n if v else 0 for n, v in zip(counts, values, strict=True)]))


def greedy(now: Situation) -> Chosen:
    return everything_of_value(now.counts, now.values), 8


def fair(now: Situation) -> Chosen:
    return theory.fair_code(now.counts, now.values), WORTH / 2


def accepts_all(now: Situation) -> Chosen:
    return theory.fair_code(now.counts, now.values), 0


@lru_cache(maxsize=8192)
def conceded(step: int, counts: tuple[int, ...], values: tuple[int, ...], made: int) -> Chosen:
    """Ask for the least worth that is enough, and of these leave the most items."""
    least = max(0, WORTH - step * (made // 2))
    found = theory.divisions_of((counts, values, values))
    worth = np.where(found.scores[0] >= least, found.scores[0], 2 * WORTH)
    order = np.lexsort((found.taken.sum(axis=0), worth))
    return int(found.codes[order[0]]), least


def conceder(step: int, view: View, noise: Noise) -> Array:
    rule = by_table(lambda now: conceded(step, now.counts, now.values, now.made))
    return np.asarray(rule(view, noise))


def full_information(now: Situation) -> Chosen:
    """Ask for the own part of the division with the largest product of both seats' scores."""
    scenario = theory.rows_of(now.game, now.index)
    found = theory.divisions_of(scenario)
    taken = found.taken[:, found.nash]
    mine = np.array(now.counts) - taken if now.seat else taken
    return int(code_of(mine)), float(found.scores[now.seat, found.nash])


def rational(now: Situation) -> Chosen:
    game = now.game
    if not game.open_values:
        return fair(now)
    if game.at_once or game.open_end:
        return full_information(now)
    move = theory.plan(game, now.index)[min(now.made, game.moves - 1)]
    return move.code, float(move.payoffs[0] / game.discount ** max(0, now.made - 1))


def of_perfect_play(view: View, noise: Noise) -> Array:
    rule = by_table(rational, knows_all=view.game.open_values)
    return np.asarray(rule(view, noise))


def any_legal(view: View, noise: Noise) -> Array:
    return pick_legal(view.mask, noise)  # type: ignore[arg-type]  # the game has one


def fixed(pieces: tuple[int, ...], view: View, noise: Noise) -> Array:
    """Ask always for these pieces, as far as they are there."""
    counts = columns(view, "count")
    wanted = np.array(pieces).reshape(-1, *(1 for _ in counts.shape[1:]))
    return code_of(np.minimum(counts, wanted))


def meaning(game: Rulebook, value: str) -> tuple[int, ...]:
    words, kinds = value.split("-"), len(game.items)  # type: ignore[attr-defined]
    if len(words) != kinds or not all(w.isdecimal() and int(w) < BASE for w in words):
        form = "-".join("1" * kinds)
        raise cannot_play(game, value, f"how many of each kind it takes, as in fixed:{form}")
    return tuple(map(int, words))


PLAYERS = Players(
    {
        "rational": of_perfect_play,
        "best_response": of_perfect_play,
        "cooperative": by_table(fair),
        "greedy": Kind("asks for all that it values, and accepts 8 or more", by_table(greedy)),
        "conceder": Kind(
            "asks for all, and in each further offer for so many points less",
            conceder,
            "<step>",
            read=count_from(0, WORTH, "conceder needs a step from 0 to 10, as in conceder:1"),
        ),
        "fair": Kind("asks for what is best for both in the mean, accepts half", by_table(fair)),
        "full_information": Kind(
            "knows all values, and asks for its part of the division with the largest product",
            by_table(full_information, knows_all=True),
        ),
        "accepts_all": Kind("accepts any offer; asks for what fair does", by_table(accepts_all)),
        "random": any_legal,
        "fixed": fixed,
    },
    meaning=meaning,
    assumed="if the other is rational (it is rational itself)",
    broadcasts=True,
)
