"""No claim of an equilibrium, or of the best player known, is refuted by what one can do instead.

Parameters are drawn, silly ones among them; every plan of one seat is tried against `rational` in
all others, through `step` alone (`deviating`). An "equilibrium" is refuted by a plan that earns
more by `TOLERANCE` of a step's largest payoff (rounding of doubles); "best known" by one that earns
more than the sentence allows, or, if it says no number, by another player of `replies` that earns
more by `CLEARLY` of what `rational` earns and of a step's largest payoff.
"""

import dataclasses
import re
import time
import warnings
import zlib

import numpy as np
import pytest
from deviating import TooLarge, tried
from playing import NAMES, by_game, each_row

import llm_games as lg
from llm_games.baselines.games.bertrand_competition import theory as pricing
from llm_games.baselines.games.el_farol_bar import theory as bar
from llm_games.baselines.players import handed
from llm_games.baselines.regret import deviation, has, rational, replies, stacked, welfare
from llm_games.errors import BadParameter
from llm_games.facts import LARGEST
from llm_games.questions import MISSING
from llm_games.registry import game_class, rulebook
from llm_games.rounds import Rounds

TOLERANCE = 1e-7
CLEARLY = 0.05
KEPT = by_game("KEPT", 300)  # claims a game has at least at night, where it can be solved
DRAWS = 2000  # of all games together at least
USUAL = 0.5  # how often a parameter is left as it is

USUALLY = {"players": [2, 2, 3, 3, 4], "rounds": [1, 2, 3]}
DRAWN = by_game("DRAWN", {})
"""Values of parameters that are drawn, where their declaration names none or too large ones."""
TOO_LARGE = by_game("TOO_LARGE", set())
"""Parameters whose own values make too large a game."""
FREE = {"emergency_evacuation"}  # of these no equilibrium is known, whatever the parameters
LITTLE = {"english_auction"}  # what increments gain is by no plan `CLEARLY` more
LOTS = {"sealed_bid_auction"}  # regret is a mean over who of the tied wins


def drawn(name, rng, values=None):
    own = USUALLY | DRAWN[name] if values is None else values
    always = {*USUALLY, *TOO_LARGE[name], *(values or {})}
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
    """Return how a claim is refuted, "" if it is not, None if fewer rounds are too much to try."""
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


def misvalued(game, claim, rng):
    """Return in words where a round of legal moves brings more or less than can be; "" if nowhere.

    Equilibrium play brings what equilibria bring.
    """
    if not isinstance(game, Rounds) or not has(game.name, "welfare"):
        return ""
    state = game.reset(1, (2000,))
    low, high = game.legal(state)
    ends = np.stack([low, np.minimum(high, 1000), rng.integers(low, high, endpoint=True)])
    moves = np.take_along_axis(ends, rng.integers(3, size=(1, *low.shape)), axis=0)[0]
    found = welfare(game, stacked([game.step(state, moves)[1].record]))
    close = 1e-9 * max(1, np.abs(found.total).max())
    outside = (found.total > found.best + close) | (found.total < found.worst - close)
    if outside.any():
        at = outside.argmax()
        return f"{moves[:, at]} bring {found.total[at]:g}, of {found.worst[at]:g}.." + (
            f"{found.best[at]:g}"
        )
    if claim.kind == "equilibrium" and not handed(game.name).mixed:
        episode = lg.play(game, [lg.player("rational")] * game.players, seed=1)
        whole = welfare(game, stacked([step.outcome.record for step in episode.steps]))
        close = 1e-9 * max(1, abs(whole.total))
        if whole.total > whole.highest + close or whole.total < whole.lowest - close:
            return f"rational brings {whole.total:g}, of {whole.lowest:g}..{whole.highest:g}"
    return ""


def unlike(game, state, moves, outcome, judged, live):
    """Return in words where the regret of a round is not what another legal move had brought."""
    void = game.failed_reply == "void_run"
    if not isinstance(game, Rounds) or game.turns or game.name in LOTS or void:
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
    kept = 0 if name in FREE else night(3, KEPT[name])
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
        for found in (misjudged(game, rng), misvalued(game, claim, rng)):
            if found:
                wrong.append(f"{params}: {found}")
    record_property("draws", draws)
    record_property("kept", claims - len(wrong))
    record_property("no claim", weaker)
    record_property("refuted", len(wrong))
    record_property("too large", large)
    print(name, draws, claims, weaker, large, f"{time.monotonic() - begun:.1f} s")
    assert not wrong, "\n".join([str(len(wrong)), *wrong[:12]])


EXCLUSIVE = {"bounds_check": "none", "prize_rule": "exclusive"}
LAMP = {"items": (("Lamp", 0, 0),), "values": "private", "increment_pct": 0, "budgets": 8}
LAMP |= {"value_mean": 4}
ALONE = LAMP | {"players": 1, "discount": 50}
SILENT = {"announce_cap": False, "max_shots": 6, "players": 3}


@each_row(
    ("name", "params", "seat", "gain"),
    [  # a silent cap makes the first shots worth more
        ("battle_royale", SILENT, 0, 0.0080),
        # -4 wins against 5; a number beyond the largest one against it
        (
            "beauty_contest",
            {"players": 2, "ratio": "1/2", "min": 5, "max": 7, "rounds": 1}
            | {"bounds_check": "none", "prize_rule": "split"},
            0,
            0.5,
        ),
        ("beauty_contest", EXCLUSIVE | {"players": 3, "ratio": "4/3", "max": 7, "rounds": 1}, 0, 1),
        # tables whose largest number is 2 do not rest there as those of 4 do
        (
            "beauty_contest",
            {"players": 3, "ratio": "3", "min": -7, "max_draw": (2, 5), "prize_rule": "split"}
            | {"rounds": 1},
            0,
            1 / 3,
        ),
        # bids that were shown can be matched; above one's money a bid against the rules may win
        (
            "budget_auction",
            {"players": 2, "assets": 5, "mu": 3, "sigma": 2, "decimals": 0, "rounds": 2}
            | {"reveal": "bids"},
            0,
            0.2976,
        ),
        (
            "budget_auction",
            {"players": 3, "assets": (3, 8, 8), "valuations": ((8, 5, 6),), "decimals": 0}
            | {"price": "second", "rule_breaker": "include", "rounds": 1},
            0,
            2,
        ),
        # who raises by two is at a good place; a lower start price can be waited for
        ("english_auction", LAMP | {"players": 2, "value_sd": 1}, 0, 0.0679),
        ("english_auction", LAMP | {"players": 2, "private_values": ((7,), (6,))}, 0, 0.5),
        ("english_auction", ALONE | {"items": (("Lamp", 4, 0),), "value_sd": 2}, 0, 2.966),
        # votes that are not needed can be charged for
        ("pirate_game", {"players": 3, "gold": 4, "proposal_check": "sum_and_length"}, 0, 3),
    ],
)
def test_claims_that_were_refuted_are_made_no_more(name, params, seat, gain):
    game = rulebook(name, **params)
    assert tried(game, seat).gain == pytest.approx(gain, rel=0.02)
    assert rational(game).kind == "heuristic"


def test_what_is_false_is_found(monkeypatch):
    """A player that goes too often, and regret of profits that are not cut."""
    game = rulebook("el_farol_bar", players=3, rounds=2)
    assert refuted(game, rational(game)) == ""
    monkeypatch.setattr(bar, "mixed_equilibrium", lambda _: 0.5)
    assert "can have" in refuted(game, rational(game))
    params = {"a": 6, "tick": 1, "rounds": 2, "beta": 1}
    game = rulebook("bertrand_competition", profit_rounding="truncate", **params)
    exact, judged = rulebook("bertrand_competition", **params), pricing.regret
    assert misjudged(game, np.random.default_rng(1)) == ""
    monkeypatch.setattr(pricing, "regret", lambda _, prices: judged(exact, prices))
    assert "is to be gained" in misjudged(game, np.random.default_rng(1))
