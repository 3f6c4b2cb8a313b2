"""Sealed-bid auctions of one item with limited money: losses of bids, and equilibrium bids.

The lowest of tied seats wins; bids may break rules. A second-price bidder bids its valuation as far
as its money goes: its price does not depend on its bid, and any other bid changes the outcome only
where it wins above its value or loses below it. A first-price bidder shades, see `first_price`.
"""

from typing import Any

import numpy as np

from llm_games.arrays import at
from llm_games.baselines.games.budget_auction.budget_first_price import equilibrium
from llm_games.baselines.regret import Claim, Measured, Parts, Steps
from llm_games.questions import MISSING
from llm_games.rulebook import Array


def _seats(values: Array) -> Array:
    return np.arange(len(values)).reshape(-1, *(1,) * (np.ndim(values) - 1))


def interim(game: Any, record: Steps) -> Array:
    """Return the mean loss of bids against equilibrium bids of the values that a bidder cannot see.

    Of valuations as drawn; a broken rule costs its fee, and the best bid's gain where it takes no
    part. NaN where valuations are fixed or assets differ.
    """
    if not alike(game):
        return np.full(np.shape(record["actions"]), np.nan)
    bids, values = record["actions"], record["valuations"]
    part = record["legal"] | ((game.rule_breaker == "include") & (bids >= 0))
    if game.sigma == 0:  # all bid the same value, and nobody gains anything
        wins, gain = (bids >= values) * 1.0, (game.price == "first") * np.minimum(values - bids, 0)
        best = np.zeros(gain.shape)
    elif game.price == "first":
        equilibrium_bids, seats = equilibrium(game), _seats(values)
        wins = equilibrium_bids.wins(seats, bids)
        gain, best = (values - bids) * wins, equilibrium_bids.best(seats, values)
    else:
        wins, gain = _second(game, bids, values)
        best = _second(game, np.minimum(values, record["assets"]), values)[1]
    fee = float(game.entrance_fee) * ~record["legal"] * (1 - part * wins)
    return np.maximum((best - gain * part) / game.unit + fee, 0)


def _second(game: Any, bids: Array, values: Array) -> tuple[Array, Array]:
    """Return the chance that a bid wins at the second price, and its mean gain in units."""
    equilibrium_bids = equilibrium(game)
    grid = np.append(equilibrium_bids.values, equilibrium_bids.values[-1] + equilibrium_bids.width)
    highest = equilibrium_bids.below ** (game.players - 1)  # of the rivals, by parts
    area = np.append(0, np.cumsum((highest[1:] + highest[:-1]) / 2 * np.diff(grid)))
    wins = np.interp(bids, grid, highest)
    inside = np.clip(bids, grid[0], grid[-1])
    return wins, (values - inside) * wins + np.interp(inside, grid, area)


def deviation(game: Any, record: Steps) -> Measured:
    """Return regret and distance of a round; no distance where somebody broke a rule.

    Regret is against the best legal bid, from 0 to the assets, which brings at least 0; where a
    broken rule brought more, it is 0.
    """
    bids, values, assets, legal = (record[k] for k in ("actions", "valuations", "assets", "legal"))
    part = legal if game.rule_breaker == "exclude" else bids != MISSING
    standing, best = np.where(part, bids, MISSING), np.zeros(bids.shape, np.int64)
    for seat in range(len(bids)):
        others = np.delete(standing, seat, 0)
        highest = others.max(axis=0)
        alone, loses_ties = highest == MISSING, others.argmax(axis=0) < seat
        enough = np.where(alone, 0, np.maximum(highest + loses_ties, 0))
        price = enough if game.price == "first" else np.where(alone, 0, highest)
        sold = np.delete(legal, seat, 0).sum(axis=0) + 1 >= game.min_valid_bids
        gain = np.maximum(values[seat] - price, 0)
        best[seat] = np.where(sold & (enough <= assets[seat]), gain, 0)
    wanted = values
    if game.price == "first" and game.sigma:
        wanted = equilibrium(game).nearest(_seats(values), values, bids)
    far = sum(np.abs(np.where(legal, bids, 0) - np.minimum(wanted, assets)))  # in order of seats
    share = np.where(legal.all(axis=0), far / assets.sum(axis=0), np.nan)
    return np.maximum(best - record["utility"], 0) / game.unit, share


def alike(game: Any) -> bool:
    return game.valuations is None and len(set(game.of_each("assets"))) == 1


def rational(game: Any) -> Claim:
    if game.price == "second":
        return _truthful(game)
    telling = "are told" if game.tell_prior else "are not told"
    law = f"the Bayes-Nash bid of normal valuations, whose law it assumes and bidders {telling}"
    if not alike(game):
        return Claim("heuristic", f"bids {law}; but valuations are given, or assets differ")
    if game.sigma == 0:
        return Claim("equilibrium", f"bids {law}: all have the same")
    if game.rounds > 1 and game.shown != "none":
        but = "valuations stay and bids are shown, so that the others' can be beaten later"
        return Claim("heuristic", f"bids {law}; but {but}")
    equilibrium_bids = equilibrium(game)
    if not equilibrium_bids.near:
        return Claim("heuristic", f"bids {law}; but the unit of money is too large for them")
    bound = max(equilibrium_bids.gain * 1.05, 1e-6) / game.unit
    gain = f"nobody can gain more than {bound:.2g} a round by other bids"
    return Claim("best known", f"bids {law}, rounded: in the mean {gain}")


def _truthful(game: Any) -> Claim:
    sentence = "bids its valuation, which is weakly dominant"
    if game.rule_breaker == "include" and game.valuations and game.players > game.min_valid_bids:
        money, values = np.array(game.of_each("assets")), np.array(game.valuations[0])
        bids = np.minimum(money, values)
        for seat in range(game.players):
            others = np.delete(bids, seat)
            lost = others.max() + (others.argmax() < seat) > bids[seat]
            if lost and others.max() < values[seat]:
                but = "one values it above its money, and a bid against the rules can win"
                return Claim("heuristic", f"{sentence} among legal bids; but {but}")
    return Claim("equilibrium", sentence)


def replies(game: Any) -> list[str]:
    return ["rational", "all_in", *(f"shade:{part / 20:.2f}" for part in range(21))]


WELFARE = "payoffs and the seller's"


def welfare(game: Any, steps: Steps) -> Parts:
    """Return the items' worth to their winners; without a sale it is 0."""
    # At the second price one may bid all its money and the others 0, if nobody has more and values
    # it above that.
    values, winner = steps["valuations"] / game.unit, steps["winner"]
    total = (at(values, np.maximum(winner, 0)) * (winner >= 0)).sum(axis=-1)
    best = values.max(axis=0).sum(axis=-1)
    if game.price == "first":
        is_equilibrium = rational(game).kind != "heuristic" and not (
            game.sigma and equilibrium(game).all_tried
        )
        played = best if is_equilibrium else np.nan
        return total, 0, best, played, played
    seats, money = np.arange(game.players), np.array(game.of_each("assets"))
    richer = (money > money[:, None]) | ((money == money[:, None]) & (seats < seats[:, None]))
    above = values > money.reshape(-1, *(1,) * values.ndim)  # [i, j]: j would pay i's money
    safe = ~(richer.reshape(*richer.shape, *(1,) * (values.ndim - 1)) & above).any(axis=1)
    ends = ((np.where(safe, values, out), end) for out, end in ((np.inf, np.min), (0, np.max)))
    return total, 0, best, *(end(safe_values, axis=0).sum(axis=-1) for safe_values, end in ends)


def unasked(game: Any) -> tuple[str, ...]:
    """Return the kinds of graded questions that players cannot answer: values are private."""
    return ("equilibrium",)
