"""Divide the dollar: bids from 0 to `golds` are paid if they add up to at most `golds`.

Pure equilibria: profiles whose sum is `golds`, and those in which the others bid at least `golds`
without anyone, so that nobody alone can repair it. Nash 1953; Ashlock & Greenwood 2016.
"""

from typing import Any

import numpy as np

from llm_games.baselines.regret import Claim, Measured, Parts, Steps, constants, draws, flat
from llm_games.rulebook import Array, PerPlayer, PerTable


def receipts(bids: PerPlayer, golds: int) -> PerPlayer:
    return np.where(np.sum(bids, axis=0) <= golds, bids, 0)


def best_response(bids: PerPlayer, golds: int) -> PerPlayer:
    """Return each seat's best reply to the others (0 where every bid brings nothing)."""
    others = np.sum(bids, axis=0) - bids
    return np.maximum(golds - others, 0)


def regret(bids: PerPlayer, golds: int) -> PerPlayer:
    return best_response(bids, golds) - receipts(bids, golds)


def distance(bids: PerPlayer, golds: int) -> PerTable:
    """Return the L1 distance to the nearest pure equilibrium."""
    # One without gain for anybody is reached by raising bids until the highest is at least ``golds
    # / (players - 1)`` and the others' sum is `golds`; where the sum is `golds` nobody bids below
    # 0.
    total, highest = np.sum(bids, axis=0), np.max(bids, axis=0)
    below = -np.minimum(bids, 0).sum(axis=0)
    top = np.maximum(highest, -(-golds // (len(bids) - 1)))
    deadlock = np.where(total - highest >= golds, 0, golds + top - total)
    return np.minimum(below + np.abs(total + below - golds), deadlock)


def fair_bids(players: int, golds: int) -> Array:
    """Return the most equal efficient equilibrium; the first seats bid the remainder."""
    share, rest = divmod(golds, players)
    return share + (np.arange(players) < rest)


def deviation(game: Any, record: Steps) -> Measured:
    bids, golds = record["actions"], game.golds
    return regret(bids, golds), distance(bids, golds) / (game.players * golds)


def gain_on_copies(
    bids: Array, players: int, golds: int, reply: int | None = None
) -> tuple[float, int]:
    """Return a bid's (by default the best) gain if others draw from these ``(n,)``, and the bid."""
    others, chances = draws(bids, players - 1)
    remaining = golds - others.sum(axis=0)
    order = np.argsort(-remaining, kind="stable")
    remaining, passes = remaining[order], chances[order].cumsum()  # at least so much is left

    def mean_receipt(bid: Array) -> Array:
        return np.asarray(bid * np.append(0, passes)[np.searchsorted(-remaining, -bid, "right")])

    if reply is None:
        reply = int(max(remaining[(np.maximum(remaining, 0) * passes).argmax()], 0))
    return float(mean_receipt(np.array(reply)) - mean_receipt(bids).mean()), reply


def exploitability(game: Any, steps: Steps, seat: int, reply: Any = None) -> tuple[float, Any]:
    return gain_on_copies(flat(steps["actions"])[seat], game.players, game.golds, reply)


def rational(game: Any) -> Claim:
    rest = "; the first seats bid the remainder" if game.golds % game.players else ""
    sentence = "bids an equal share, the fairest of many equilibria of a round"
    return Claim("equilibrium", sentence + rest)


def replies(game: Any) -> list[str]:
    return ["rational", "best_response", *constants(0, game.golds)]


def welfare(game: Any, steps: Steps) -> Parts:
    """Return the sum of receipts; in the worst equilibrium it is 0."""
    total = receipts(steps["actions"], game.golds).sum(axis=(0, -1))
    best = game.golds * steps["actions"].shape[-1]
    return total, np.nan if game.bid_range == "unbounded" else 0, best, 0, best
