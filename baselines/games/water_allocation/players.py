"""Players of the water allocation challenge: rules of thumb, and responses of a level.

``best_response`` is of level 1, ``rational`` of level 2, ``dp`` of any; no equilibrium is known.
"""

from functools import partial

import numpy as np

from llm_games.baselines.games.water_allocation import theory
from llm_games.baselines.rules import Kind, Players, count_from, seat_by_seat, shape, whole
from llm_games.noise import Noise
from llm_games.questions import NO_BID
from llm_games.rulebook import Array
from llm_games.view import View


def situation(view: View) -> theory.WaterSituation:
    game = view.game
    return theory.WaterSituation(
        balance=whole(view, "balance", game.unit),
        salary=np.broadcast_to(game.salaries[view.seat], shape(view)),
        hp=whole(view, "hp"),
        dry=whole(view, "dry"),
        days_left=game.days - whole(view, "days"),
        supply=whole(view, "supply"),
    )


def thumb(rule: theory.Rule, view: View, noise: Noise) -> Array:
    return rule(situation(view), noise)


def respond(level: int, view: View, noise: Noise) -> Array:
    return theory.response(view.game, view.seat, level)(situation(view))


def dp(level: int, view: View, noise: Noise) -> Array:
    return seat_by_seat(partial(respond, level), view, noise)


def cooperative(view: View, noise: Noise) -> Array:
    """Bid evenly on days on which a planner that keeps the most residents alive serves the seat."""
    game = view.game
    seats, begun = range(game.players), view.number("days") > 0
    hp, dry = (
        np.stack([np.where(begun, view.number(f"{kind}_{seat}"), first) for seat in seats])
        for kind, first in (("hp", game.hp_start), ("dry", 0))
    )
    here = np.stack([(view.number(f"took_part_{seat}") > 0) | ~begun for seat in seats])
    current, keep = situation(view), theory.best_plan(theory.relevant(game))[0]
    slack = theory.endurance(hp.astype(np.int64), dry.astype(np.int64))
    chosen = theory.planned(game, slack, here & (hp > 0), current.supply, current.days_left, keep)
    return np.where(chosen[view.seat], theory.even(current), NO_BID)


THUMB = {name: partial(thumb, rule) for name, rule in theory.RULES.items() if name != "random"}
PLAYERS = Players(
    {
        "rational": partial(dp, 2),
        "best_response": partial(dp, 1),
        "cooperative": partial(seat_by_seat, cooperative),
        "even": Kind(
            "spreads its money over the dry days that it can still survive", THUMB["even"]
        ),
        "salary": Kind("bids its salary", THUMB["salary"]),
        "half": Kind("bids half of its money", THUMB["half"]),
        "urgent": Kind("bids only when it must have water today or tomorrow", THUMB["urgent"]),
        "all_in": THUMB["all_in"],
        "zero": THUMB["zero"],
        "dp": Kind(
            "replies best, by dynamic programming, to players of the level below (0: even)",
            dp,
            "<level>",
            read=count_from(1, 9, "dp needs a level from 1 to 9, as in dp:1"),
        ),
    },
    assumed="if the others spread their money evenly over the days they can survive (it is dp:1)",
    broadcasts=True,
)
