"""Players of deal or no deal. Of equal divisions they take the first in order of what is taken."""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import numpy as np

from llm_games.arrays import StandIn, looked_up
from llm_games.baselines.games.deal_or_no_deal import theory
from llm_games.baselines.rules import Kind, Players, cannot_play, count_from, seat_by_seat, whole
from llm_games.games.deal_or_no_deal.divisions import BASE, WORTH, code_of, pick_legal
from llm_games.noise import Noise
from llm_games.rulebook import Array, Rulebook
from llm_games.tracing.graph import Untraceable
from llm_games.view import View

Rows = theory.Scenario
Chosen = tuple[int, float]  # a division to ask for, and the least worth that is accepted
Choose = Callable[..., Chosen]  # of a game, seat, scenario, number of moves before, parameters
MOST_TRACED = 100_000  # choices that are all worked out for a loop of C


@lru_cache(maxsize=32)
def choices(game: Any, seat: int, count: int, choose: Choose, parameters: tuple[int, ...]) -> Any:
    """Return room for `count` choices in each scenario: codes, -1 if not chosen yet; least."""
    return np.full(count * len(game.table), -1), np.zeros(count * len(game.table))


def rule_of(choose: Choose, *parameters: int, count: int = 1, each: int = 2) -> Any:
    """Return a rule of `count` choices in a scenario, another after so many moves `each`.

    What is chosen is worked out once a game, where it is first needed.
    """

    def rule(view: View, noise: Noise) -> Array:
        game, seat, size = view.game, view.seat, len(view.game.table)
        codes, least = choices(game, seat, count, choose, parameters)
        turn = np.minimum((whole(view, "move") - 1) // each, count - 1)
        place = turn * size + view.sight.state.scenario
        traced = isinstance(place, StandIn)
        if traced and len(codes) > MOST_TRACED:
            raise Untraceable(f"there are {len(codes)} choices")
        due = np.arange(len(codes)) if traced else place[codes[place] < 0]
        for index in set(due.ravel().tolist()):
            rows = theory.rows_of(game, index % size)
            codes[index], least[index] = choose(game, seat, rows, index // size, *parameters)
        worth = (view.row("value") * (view.row("count") - view.row("other"))).sum(axis=-1)
        offered = (view.number("other_0") >= 0) & (not game.at_once)
        accepts = offered & (worth >= looked_up(least, place))
        return np.where(accepts, game.accept, looked_up(codes, place))

    return partial(seat_by_seat, rule)


def greedy(game: Any, seat: int, rows: Rows, offers: int) -> Chosen:
    return int(code_of(np.where(rows[1 + seat], rows[0], 0))), 8


def fair(game: Any, seat: int, rows: Rows, offers: int, least: int = WORTH // 2) -> Chosen:
    return theory.fair_code(rows[0], rows[1 + seat]), least


def conceded(game: Any, seat: int, rows: Rows, offers: int, step: int) -> Chosen:
    """Ask for the least worth that is enough, and of these leave the most items."""
    least, mine = max(0, WORTH - step * offers), rows[1 + seat]
    ways = theory.divisions_of((rows[0], mine, mine))
    worth = np.where(ways.scores[0] >= least, ways.scores[0], 2 * WORTH)
    order = np.lexsort((ways.taken.sum(axis=0), worth))
    return int(ways.codes[order[0]]), least


def full_information(game: Any, seat: int, rows: Rows, offers: int) -> Chosen:
    """Ask for the own part of the division with the largest product of both seats' scores."""
    ways = theory.divisions_of(rows)
    part, everything = ways.codes[[ways.nash, -1]].tolist()
    return everything - part if seat else part, float(ways.scores[seat, ways.nash])


def perfect(game: Any, seat: int, rows: Rows, moves: int) -> Chosen:
    move = theory.plan(game, rows)[moves]
    return move.code, float(move.payoffs[0] / game.discount ** max(0, moves - 1))


def rational(view: View, noise: Noise) -> Any:
    game = view.game
    if not game.open_values:
        return rule_of(fair)(view, noise)
    if game.at_once or game.open_end:
        return rule_of(full_information)(view, noise)
    return rule_of(perfect, count=game.moves, each=1)(view, noise)


def fixed(pieces: tuple[int, ...], view: View, noise: Noise) -> Array:
    """Ask always for these pieces, as far as they are there."""
    return code_of(np.moveaxis(np.minimum(view.row("count"), pieces), -1, 0))


def meaning(game: Rulebook, value: str) -> tuple[int, ...]:
    words, kinds = value.split("-"), len(game.items)  # type: ignore[attr-defined]
    if len(words) != kinds or not all(w.isdecimal() and int(w) < BASE for w in words):
        form = "-".join("1" * kinds)
        raise cannot_play(game, value, f"how many of each kind it takes, as in fixed:{form}")
    return tuple(map(int, words))


PLAYERS = Players(
    {
        "rational": rational,
        "best_response": rational,
        "cooperative": rule_of(fair),
        "greedy": Kind("asks for all that it values, and accepts 8 or more", rule_of(greedy)),
        "conceder": Kind(
            "asks for all, and in each further offer for so many points less",
            lambda step, *view: rule_of(conceded, step, count=WORTH + 1)(*view),
            "<step>",
            read=count_from(0, WORTH, "conceder needs a step from 0 to 10, as in conceder:1"),
        ),
        "fair": Kind("asks for what is best for both in the mean, accepts half", rule_of(fair)),
        "full_information": Kind(
            "knows all values, and asks for its part of the division with the largest product",
            rule_of(full_information),
        ),
        "accepts_all": Kind("accepts any offer; asks for what fair does", rule_of(fair, 0)),
        "random": pick_legal,
        "fixed": fixed,
    },
    meaning=meaning,
    assumed="if the other is rational (it is rational itself)",
    broadcasts=True,
)
