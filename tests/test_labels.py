"""No claim of an equilibrium, or of the best player known, is refuted by what one can do instead.

Parameters are drawn, silly ones among them, and what `rational` claims is tried: every plan of one
seat against `rational` in all others, through `step` alone (`deviating`). A claim is refuted

* "equilibrium": if some plan of some seat earns more than `rational`, by more than `TOLERANCE` of
  the largest payoff of a step (rounding of doubles: nothing else is let pass);
* "best known": if some plan earns more than `rational` by more than the sentence allows, or if it
  says no number, if another player of `replies` does so by more than `CLEARLY` of what `rational`
  earns and of the largest payoff of a step.
"""

import dataclasses
import re
import time
import warnings
import zlib
from fractions import Fraction

import numpy as np
import pytest
from deviating import TooLarge, tried
from playing import NAMES

from llm_games.baselines.deviation import deviation, rational, replies
from llm_games.baselines.players import _rule_in
from llm_games.baselines.rules import legal
from llm_games.errors import BadParameter
from llm_games.facts import LARGEST
from llm_games.noise import Noise
from llm_games.questions import MISSING
from llm_games.registry import game_class, rulebook
from llm_games.rounds import Rounds
from llm_games.view import Sight

TOLERANCE = 1e-7
CLEARLY = 0.05
KEPT = 300  # claims a game has at least at night, where it can be solved
DRAWS = 2000  # of all games together at least
USUAL = 0.5  # how often a parameter is left as it is

DISHES = ("cheap", "costly")
HALVES = [Fraction(n, 2) for n in range(-6, 12)]
RATIOS = ["0", "1/3", "1/2", "2/3", "0.99", "1", "1.01", "4/3", "2", "3", "5"]
EACH: dict[str, dict] = {
    "": {"players": [2, 2, 3, 3, 4], "rounds": [1, 2, 3]},
    "battle_royale": {
        "base_hit_rate": [0, 1, 20, 35, 50, 80, 100],
        "interval": [-20, -5, 0, 5, 10, 30],
        "hit_rates": [lambda rng, n: tuple(rng.integers(0, 101, n).tolist())],
        "max_shots": [1, 2, 3, 4, 5, 6, 7, 9, None],
    },
    "beauty_contest": {
        "min": [0, 0, 0, 1, 5, -3, -7],
        "max": [1, 2, 5, 7, 10, 13],
        "domain": ["integer", "integer", "integer", "real"],
        "decimals": [0, 1],
        "ratio": RATIOS,
        "prize": [1, "1/3", 10],
        "foul_fee": [0, "1/2", 3],
        "max_draw": [(2, 5), (3, 9)],
        "reveal": [(), ("all_choices",), ("mean", "own_result")],
    },
    "bertrand_competition": {
        "players": [2, 2, 3],
        "rounds": [2, 3],
        "a": [6, 10, 14],
        "beta": ["1/150", "1/3", 1, 2],
        "d": ["0", "1/300", "1/150", "1/4", "1/3", 1, "-1/300"],
        "cost": [0, 1, 2, "5/2", lambda rng, n: tuple(rng.integers(0, 6, n).tolist())],
        "tick": [1, "1/2"],
        "initial_price": [0, 3, 5],
        "window": [1, 3],
        "demand": ["linear", "linear", "linear", "logit"],
        "quality": [0, 2, 5],
        "outside": [-2, 0, 3],
        "mu": ["1/4", 1, 3],
    },
    "budget_auction": {
        "players": [2, 2, 2, 3],
        "rounds": [1, 1, 2],
        "assets": [2, 3, 5, 8, lambda rng, n: tuple(rng.integers(1, 7, n).tolist())],
        "valuations": [None, lambda rng, n: (tuple(rng.integers(0, 9, n).tolist()),)],
        "mu": [1, 2, 3, 5],
        "sigma": [0, 0.2, 0.5, 1, 2, 3, 5],
        "decimals": [0, 0, 0, 1],
        "entrance_fee": [0, 1],
        "reveal_last": ["all", 0, 1],
    },
    "diners_dilemma": {f"{dish}_{of}": HALVES for dish in DISHES for of in ("price", "utility")},
    "divide_dollar": {"golds": [1, 2, 3, 5, 7, 10, 12, 17, 20]},
    "el_farol_bar": {
        "ratio": ["0", "1/4", "1/3", "0.33", "1/2", "3/5", "2/3", "3/4", "1"],
        "min": HALVES,
        "home": HALVES,
        "max": HALVES,
    },
    "emergency_evacuation": {"layout": ["small"], "players": [1, 2, 4], "max_rounds": [2, 3]},
    "english_auction": {
        "players": [1, *[2] * 7, 3],
        "items": [(("Lamp", start, 0),) for start in (0, 0, 1, 5, 10)],
        "budgets": [12, 12, 14, 16, 20, lambda rng, n: tuple(rng.integers(11, 18, n).tolist())],
        "values": [*["private"] * 7, "common"],
        "value_mean": [1, 5, 6, 8],
        "value_sd": [0, 2, 3, 4, 4, 5],
        "private_values": [
            *[None] * 4,
            lambda rng, n: tuple((int(v),) for v in rng.integers(0, 15, n)),
        ],
        "increment_min": [1, 1, 1, 1, 2, 3],
        "increment_pct": [0, 0, 10],
        "discount": [None, None, 10, 50],
        "max_discounts": [0, 1, 2],
    },
    "pirate_game": {"gold": [1, 2, 3, 4, 5, 6]},
    "public_goods": {
        "tokens": [1, 2, 5, 10, 20],
        "ratio": [*RATIOS, "7/4", 4],
        "rand_min": [0, 1, 3],
    },
    "sealed_bid_auction": {
        "players": [2, 2, 2, 3],
        "rounds": [1, 1, 2],
        "valuation_min": [0, 0, 1, 4],
        "valuation_max": [1, 2, 3, 5, 8, 12],
        "interval": [1, 1, 2, 3],
        "valuations": [lambda rng, n: (tuple(rng.integers(1, 6, n).tolist()),)],
    },
    "water_allocation": {
        "players": [1, 2, 2, 3],
        "days": [1, 2, 3],
        "residents": [
            lambda rng, n: tuple(
                (name, int(rng.integers(1, 5)), int(rng.integers(0, 4)))
                for name in ("Ann", "Bob", "Cat", "Dan")[:n]
            )
        ],
        "supply_low": [0, 2, 4, 8],
        "supply_high": [2, 3, 5, 9],
        "hp_start": [1, 2, 3, 4, 5],
        "hp_max": [3, 5, 10],
        "hp_gain": [0, 1, 2],
        "balance_start": [0, 1, 3],
        "money_decimals": [0],
    },
}
"""Values of parameters that are drawn, where their declaration names none or too large ones."""
ALWAYS = {
    "": {"players", "rounds"},
    "beauty_contest": {"max", "decimals"},
    "bertrand_competition": {"rounds", "players", "a", "tick"},
    "budget_auction": {"assets", "mu", "sigma", "decimals"},
    "divide_dollar": {"golds"},
    "emergency_evacuation": {"layout", "players", "max_rounds"},
    "english_auction": {"items", "budgets", "values", "value_mean", "value_sd", "increment_pct"},
    "pirate_game": {"gold"},
    "public_goods": {"tokens"},
    "sealed_bid_auction": {"valuation_min", "valuation_max", "interval"},
    "water_allocation": {"days", "residents", "hp_start", "supply_low", "supply_high"},
}
"""Parameters whose own values make too large a game."""
FREE = {"emergency_evacuation"}  # of these no equilibrium is known, whatever the parameters
OFTEN = {"water_allocation": 40}  # solved in seconds each
LITTLE = {"english_auction"}  # what increments gain is by no plan `CLEARLY` more
LOTS = {"sealed_bid_auction"}  # regret is a mean over who of the tied wins


def drawn(name, rng, values=None):
    """Return a game with drawn parameters, and what these are."""
    own = EACH[""] | EACH.get(name, {}) if values is None else values
    always = ALWAYS[""] | ALWAYS.get(name, set()) | set(values or {})
    while True:
        params, players = {}, int(rng.choice(own["players"]))
        for f in dataclasses.fields(game_class(name)):
            if f.name not in always and rng.random() < USUAL:
                continue
            value = players if f.name == "players" else _value(f, own, players, rng)
            if value is not dataclasses.MISSING:
                params[f.name] = value
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return rulebook(name, **params), params
        except BadParameter:
            continue


def _value(f, own, players, rng):
    about = f.metadata
    if f.name in own:
        value = own[f.name][int(rng.integers(len(own[f.name])))]
        return value(rng, players) if callable(value) else value
    if about["choices"]:
        return str(rng.choice([*about["choices"]]))
    if isinstance(f.default, bool):
        return bool(rng.random() < 0.5)
    if about["low"] is not None:
        high = min(about["low"] + 20, about["high"] or LARGEST)
        return int(rng.integers(about["low"], high, endpoint=True))
    return dataclasses.MISSING


def refuted(game, claim):
    """Return in words how a claim is refuted; "" if it is not, None if there is too much to try.

    Of too many rounds fewer are tried.
    """
    try:
        return _refuted(game, claim)
    except TooLarge:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                fewer = dataclasses.replace(game, rounds=game.rounds - 1)
            except (AttributeError, BadParameter):
                return None
        return refuted(fewer, rational(fewer))


def _refuted(game, claim):
    allowed = re.search(r"gain more than ([\d.e-]+)( a round)?", claim.sentence)
    rounds = game.rounds if allowed and allowed[2] else 1
    if getattr(game, "valuation_draw", "") == "seeded":  # nobody knows the seed
        game = dataclasses.replace(game, valuation_draw="random", tie_rng="own")
    for seat in range(game.players):
        if claim.kind == "equilibrium" or allowed or game.name in LITTLE:
            found = tried(game, seat)
            least = TOLERANCE * found.size + (float(allowed[1]) * rounds * 1.06 if allowed else 0)
            least += CLEARLY * found.own * (game.name in LITTLE)
            if found.gain > least:
                return f"seat {seat} can have {found.best:g} rather than {found.own:g}"
            continue
        usual = tried(game, seat, branch=False)
        for other in replies(game):
            found = tried(game, seat, own=other, branch=False)
            least = CLEARLY * max(abs(usual.own), usual.size)
            if found.own > usual.own + least:
                return f"seat {seat} has {found.own:g} as {other} rather than {usual.own:g}"
    return ""


def misjudged(game, rng):
    """Return in words what is wrong with regret and distance of random play; "" if nothing."""
    state = game.reset(int(rng.integers(2**31)), (8,))
    for _ in range(6):
        if state.over.all():
            break
        low, high = (np.clip(limit, -60, 60) for limit in game.legal(state))
        moves = rng.integers(low - 2, np.maximum(high + 3, low - 1))
        wild = rng.choice([MISSING, -1000, 10**9, *range(-3, 4)], moves.shape)
        moves = np.where(rng.random(moves.shape) < rng.choice([0, 0.2]), wild, moves)
        if game.division is not None and not state.phase[0]:  # whole plans, mostly
            alive = np.arange(game.players)[:, None] >= state.proposer
            moves = np.where(alive, rng.integers(-2, game.gold + 1, moves.shape), 0)
            moves[state.proposer, np.arange(8)] += game.gold - moves.sum(axis=0)
        live = ~state.over
        before, (state, outcome) = state, game.step(state, moves)
        judged = deviation(game, outcome.record)
        lost = judged.regret[:, live]
        size = 1e-9 * max(1, np.abs(outcome.rewards).max())
        if not (np.isnan(lost) | (lost >= -size)).all():
            return f"regret {np.nanmin(lost):g} of {moves.tolist()}"
        far = judged.distance[live]
        if not (np.isnan(far) | ((far >= 0) & (far <= 1 + 1e-9))).all():
            return f"distance {far.tolist()} of {moves.tolist()}"
        wrong = unlike(game, before, moves, outcome, judged, live)
        if wrong:
            return wrong
    return ""


def unlike(game, state, moves, outcome, judged, live):
    """Return in words where the regret of a round is not what another legal move had brought."""
    if not isinstance(game, Rounds) or game.name in LOTS or game.failed_reply == "void_run":
        return ""
    low, high = game.legal(state)
    if (high - low).max() > 40:
        return ""
    best = np.full(moves.shape, -np.inf)
    for seat in range(game.players):
        for move in range(int(low[seat].min()), int(high[seat].max()) + 1):
            own = moves.copy()
            own[seat] = np.clip(move, low[seat], high[seat])
            best[seat] = np.maximum(best[seat], game.step(state, own)[1].rewards[seat])
    gain = np.maximum(best - outcome.rewards, 0)
    off = (np.abs(gain - judged.regret) > 1e-6 * max(1, np.abs(best).max())) & live
    if off.any():
        seat, at = np.argwhere(off)[0]
        return (
            f"regret {judged.regret[seat, at]:g} of seat {seat} at {moves[:, at].tolist()}, "
            f"where {gain[seat, at]:g} is to be gained"
        )
    return ""


@pytest.mark.nightly
@pytest.mark.parametrize("name", sorted(NAMES))
def test_no_claim_is_refuted_nor_any_regret_below_zero(name, night, record_property):
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    draws = claims = weaker = large = 0
    wrong, begun = [], time.monotonic()
    least = night(12, DRAWS // len(NAMES) + 1)
    kept = 0 if name in FREE else night(3, OFTEN.get(name, KEPT))
    while draws < least or claims < kept:
        assert draws < 8 * max(least, kept), f"{claims} claims of {draws} draws"
        game, params = drawn(name, rng)
        draws += 1
        claim = rational(game)
        found = "" if claim.kind == "heuristic" else refuted(game, claim)
        if found is None:
            large += 1
            continue
        claims += claim.kind != "heuristic"
        weaker += claim.kind == "heuristic"
        if found:
            wrong.append(f"{params}: {claim}, but {found}")
        if found := misjudged(game, rng):
            wrong.append(f"{params}: {found}")
    record_property("draws", draws)
    record_property("kept", claims - len(wrong))
    record_property("withdrawn", weaker)
    record_property("refuted", len(wrong))
    record_property("too large", large)
    print(name, draws, claims, weaker, large, f"{time.monotonic() - begun:.1f} s")
    assert not wrong, "\n".join([str(len(wrong)), *wrong[:12]])


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
"""Auctions that are too large for whole plans: some other bids are tried, by common chance."""


def variants(game, state, seat, usual):
    """Return other bids by name, from those that `rational` makes."""
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
    """A claim is refuted by what earns `CLEARLY` more, beyond four standard errors."""
    rng, claims, wrong = np.random.default_rng(5), 0, []
    count = 4000
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
