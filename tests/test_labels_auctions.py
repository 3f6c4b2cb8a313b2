"""Claims of auctions that are too large for whole plans: some other bids are tried.

A claim is refuted by one that earns `CLEARLY` more, beyond four standard errors of the difference:
all bids are tried in the same games.
"""

import numpy as np
import pytest
from test_labels import CLEARLY, LOTS, drawn

from llm_games.baselines.players import _rule_in
from llm_games.baselines.regret import rational
from llm_games.baselines.rules import legal
from llm_games.noise import Noise
from llm_games.view import Sight

LARGE: dict[str, dict] = {
    "budget_auction": {
        "players": [2, 3, 5, 10],
        "rounds": [1],
        "price": ["first", "first", "second"],
        "assets": [60, 100, 1000],
        "mu": [20, 50, 60],
        "sigma": [0, 0.3, 1, 2, 5, 10, 30, 60],
        "decimals": [0, 0, 1, 2],
    },
    "english_auction": {
        "players": [2, 3, 4],
        "items": [(("Lamp", start, 0),) for start in (0, 0, 20)],
        "budgets": [40, 60, 100, lambda rng, n: tuple(rng.integers(40, 90, n).tolist())],
        "values": ["private"],
        "value_mean": [10, 20, 35],
        "value_sd": [3, 6, 10, 20],
        "increment_min": [1, 2, 3, 6],
        "increment_pct": [0, 0, 10],
    },
    "sealed_bid_auction": {
        "players": [2, 3, 5, 10],
        "rounds": [1],
        "price": ["first", "first", "second"],
        "valuation_min": [0, 0, 100],
        "valuation_max": [20, 60, 200, 300],
        "interval": [1, 5, 10],
        "valuation_draw": ["random"],
    },
}


def variants(game, state, seat, usual):
    if game.turns:
        value, floor = state.values[seat, 0], game.floor(state)
        found = {f"up to {far:+}": np.where(floor <= value + far, floor, -1)
                 for far in (-6, -3, -1, 1, 3)}  # fmt: skip
        jumps = {f"jump to {share}": (value * share).astype(int) for share in (0.3, 0.6, 0.8, 1)}
        jumps |= {f"{more} more": np.minimum(usual + more, value) for more in (1, 2, 5)}
        bids = {name: np.where(usual < 0, usual, np.maximum(usual, jump))
                for name, jump in jumps.items()}  # fmt: skip
        return found | bids
    value = state.valuations[(0, seat) if game.name in LOTS else seat]
    found = {f"{far:+}": usual + far for far in (-9, -3, -1, 1, 3, 9)}
    shares = np.arange(60, 101, 2) / 100
    found |= {f"{share} of the value": np.floor(value * share) for share in shares}
    found |= {f"{share} of that": np.floor(usual * share) for share in shares}
    found |= {f"at most {most}": np.minimum(usual, most) for most in np.quantile(value, shares)}
    return {name: np.clip(bids, 0, value).astype(int) for name, bids in found.items()}


def earned(game, seat, count, variant=None):
    """Return what a seat has in so many games, the others bidding as `rational` does."""
    state, total = game.begin(game.chance(Noise.copies(7, (count,))), (count,)), 0.0
    rule = _rule_in("rational", game)
    while not state.over.all():
        views = map(Sight(game, state).view, range(game.players))
        noises = (Noise.copies(count * (1 + i), (count,)).of(int(state.round.max()))
                  for i in range(game.players))  # fmt: skip
        moves = np.array([legal(v, rule(v, noise)) for v, noise in zip(views, noises, strict=True)])
        if variant:
            moves[seat] = variants(game, state, seat, moves[seat])[variant]
        state, outcome = game.step(state, moves)
        total = total + outcome.rewards[seat]
    return total


@pytest.mark.nightly
@pytest.mark.parametrize("name", LARGE)
def test_no_other_bid_clearly_earns_more(name, night, record_property):
    rng, claims, wrong, count = np.random.default_rng(5), 0, [], night(1000, 4000)
    while claims < night(1, 40):
        game, params = drawn(name, rng, LARGE[name])
        if rational(game).kind == "heuristic":
            continue
        claims += 1
        for seat in {0, game.players - 1}:
            usual = earned(game, seat, count)
            state = game.begin(game.chance(Noise.copies(7, (count,))), (count,))
            for variant in variants(game, state, seat, np.zeros(count, int)):
                more = earned(game, seat, count, variant) - usual
                if more.mean() > CLEARLY * usual.mean() + 4 * more.std() / count**0.5:
                    wrong.append(
                        f"{params}, seat {seat}, {variant}: {more.mean()} on {usual.mean()}"
                    )
    record_property("kept", claims)
    assert not wrong, "\n".join(wrong)
