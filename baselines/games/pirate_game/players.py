"""Players of the pirate game. Where any plan will do, they propose equal shares."""

import numpy as np

from llm_games.baselines.games.pirate_game.theory import stage
from llm_games.baselines.rules import Players, cannot_play, shape
from llm_games.noise import Noise
from llm_games.rulebook import Array, Rulebook
from llm_games.view import View

VOTES = {"accept": 1, "reject": 0}


def ballot(view: View, plan: Array, accepts: Array) -> Array:
    """Return a seat's plan, ``(players[, *batch])``, where it proposes, and its vote elsewhere.

    The votes of others are 0; of one table that votes it is the vote alone.
    """
    batch, voting = shape(view), view.number("phase") > 0
    if not batch:
        return np.asarray(int(accepts)) if voting else plan
    mine = np.arange(len(plan)).reshape(-1, *(1 for _ in batch)) == view.seat
    return np.where(voting, mine * accepts, plan.reshape(mine.shape) if plan.ndim == 1 else plan)


def equal_shares(view: View) -> Array:
    """Return the plan that gives all living pirates the same; the proposer keeps the rest."""
    players, gold = view.game.players, view.game.gold
    plan = np.where(np.arange(players) >= view.seat, gold // (players - view.seat), 0)
    plan[view.seat] += gold - plan.sum()
    return plan


def rational(view: View, noise: Noise) -> Array:
    game = view.game
    solution = stage(game.players - view.seat, game.gold, game.quota)
    plan = equal_shares(view)  # when no plan can pass, any will do
    if solution.proposer_survives:
        plan[view.seat :] = solution.coins
    of_stage = (stage(game.players - i, game.gold, game.quota) for i in range(view.seat))
    prices = [earlier.prices[view.seat - i] for i, earlier in enumerate(of_stage)]
    proposer = view.number("proposer").astype(np.int64) - 1
    price = np.array([*prices, 0])[np.clip(proposer, 0, view.seat)]
    return ballot(view, plan, view.number("share") >= price)


def cooperative(view: View, noise: Noise) -> Array:
    """Propose equal shares, and vote for every plan that gives it at least that."""
    living = view.game.players + 1 - view.number("proposer")
    return ballot(view, equal_shares(view), view.number("share") >= view.game.gold // living)


def any_legal(view: View, noise: Noise) -> Array:
    cuts = view.game.players - view.seat - 1
    slots, batch = view.game.gold + cuts, shape(view)
    bars = np.sort(noise.sample(slots, cuts), axis=0)
    shares = np.diff(bars, axis=0, prepend=-1, append=slots) - 1
    plan = np.concatenate([np.zeros((view.seat, *batch), np.int64), shares])
    return ballot(view, plan, noise.of("vote").random() < 0.5)


def fixed(vote: int, view: View, noise: Noise) -> Array:
    """Vote the same on every plan; propose equal shares."""
    return ballot(view, equal_shares(view), np.asarray(vote))


def meaning(game: Rulebook, value: str) -> int:
    if value not in VOTES:
        raise cannot_play(game, value, f"one of {', '.join(VOTES)}")
    return VOTES[value]


PLAYERS = Players(
    {
        "rational": rational,
        "best_response": rational,
        "cooperative": cooperative,
        "random": any_legal,
        "fixed": fixed,
    },
    meaning=meaning,
    assumed="if the others are rational (it is rational itself)",
)
