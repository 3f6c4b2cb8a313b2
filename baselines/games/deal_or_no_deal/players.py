"""Players of deal or no deal. Of equal divisions they take the first in order of what is taken."""

from collections.abc import Callable
from functools import partial
from typing import Any

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


def columns(view: View, name: str) -> Array:
    """Return a fact of each kind, ``(kinds, *batch)``."""
    return np.stack([whole(view, f"{name}_{kind}") for kind in range(len(view.game.items))])


def by_table(choose: Callable[..., Chosen]) -> Rule:
    """Return a rule from what is chosen at a table of these counts, own values and moves made."""

    def rule(view: View, noise: Noise) -> Array:
        counts, values, other = (columns(view, name) for name in ("count", "value", "other"))
        made = whole(view, "move") - 1
        offered = (other[0] >= 0) & (not view.game.at_once)
        worth = np.where(offered, (values * (counts - other)).sum(axis=0), -1)
        actions = np.zeros(shape(view), np.int64)
        for place in np.ndindex(shape(view)):
            at = (slice(None), *place)
            pair = tuple(counts[at].tolist()), tuple(values[at].tolist())
            code, least = choose(view, place, *pair, int(np.broadcast_to(made, shape(view))[place]))
            accepts = worth[place] >= least and offered[place]
            actions[place] = view.game.accept if accepts else code
        return actions

    return partial(seat_by_seat, rule)


def everything_of_value(counts: tuple[int, ...], values: tuple[int, ...]) -> int:
    return int(code_of([n if v else 0 for n, v in zip(counts, values, strict=True)]))


def greedy(view: View, place: Any, counts: Any, values: Any, made: int) -> Chosen:
    return everything_of_value(counts, values), 8


def fair(view: View, place: Any, counts: Any, values: Any, made: int) -> Chosen:
    return theory.fair_code(view.game, counts, values), WORTH / 2


def accepts_all(view: View, place: Any, counts: Any, values: Any, made: int) -> Chosen:
    return theory.fair_code(view.game, counts, values), 0


def conceded(step: int, counts: Any, values: Any, made: int) -> Chosen:
    """Ask for the least worth that is enough, and of these leave the most items."""
    least = max(0, WORTH - step * (made // 2))
    found = theory.divisions_of((counts, values, values))
    worth = np.where(found.scores[0] >= least, found.scores[0], 2 * WORTH)
    order = np.lexsort((found.taken.sum(axis=0), worth))
    return int(found.codes[order[0]]), least


def conceder(step: int, view: View, noise: Noise) -> Array:
    rule = by_table(lambda view, place, *known: conceded(step, *known))
    return np.asarray(rule(view, noise))


def index_of(view: View, place: Any) -> int:
    return int(np.broadcast_to(view.sight.state.scenario, shape(view))[place])


def full_information(view: View, place: Any, counts: Any, values: Any, made: int) -> Chosen:
    """Ask for the own part of the division with the largest product of both seats' scores."""
    _, *both = theory.rows_of(view.game, index_of(view, place))
    seat = int(view.seat)
    found = theory.divisions_of((counts, both[0], both[1]))
    taken = found.taken[:, found.nash]
    mine = taken if seat == 0 else np.array(counts) - taken
    return int(code_of(mine)), float(found.scores[seat, found.nash])


def rational(view: View, place: Any, counts: Any, values: Any, made: int) -> Chosen:
    game = view.game
    if not game.open_values:
        return fair(view, place, counts, values, made)
    if game.at_once or game.open_end:
        return full_information(view, place, counts, values, made)
    move = theory.plan(game, index_of(view, place))[min(made, game.moves - 1)]
    factor = game.discount ** max(0, made - 1)
    return move.code, float(move.payoffs[0] / factor)


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
        "rational": by_table(rational),
        "best_response": by_table(rational),
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
            by_table(full_information),
        ),
        "accepts_all": Kind("accepts any offer; asks for what fair does", by_table(accepts_all)),
        "random": any_legal,
        "fixed": fixed,
    },
    meaning=meaning,
    assumed="if the other is rational (it is rational itself)",
    broadcasts=True,
)
