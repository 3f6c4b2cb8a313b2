"""The γ-Bench scores S1 to S8, 0 to 100 and higher is better, and how runs are averaged.

Source: arXiv 2403.11807; the editions differ between the paper's versions and its published code.
Every formula is in the operation order of that code, and runs on exact fractions (``corrected``) or
on doubles (``published``, bit-equal to the authors' numbers).
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from llm_games.benchmarks.judge import intervals
from llm_games.benchmarks.judge.means import MeanCell, cell
from llm_games.benchmarks.judge.paper import SCORED, Record
from llm_games.errors import BadParameter, unknown
from llm_games.games.pirate_game.rules import VOTE

GAMES = (
    "beauty_contest",
    "el_farol_bar",
    "divide_dollar",
    "public_goods",
    "diners_dilemma",
    "sealed_bid_auction",
    "battle_royale",
    "pirate_game",
)
"""The games of the benchmark, in the column order of all its tables."""

EDITIONS = ("corrected", "published", "v4", "v2")
"""``corrected``: the intended formulas, exactly. ``published``: the authors' table of 13 models.
``v4``, ``v2``: the tables of those versions of the paper (``v2`` also of v3)."""

OTHERWISE: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "v2": {"sealed_bid_auction": {"price": "second"}}
}
"""Parameters of those games that an edition's benchmark plays otherwise, by edition and game."""

Numbers = Sequence[int]
Rounds = Sequence[Numbers]


def _arithmetic(edition: str) -> tuple[Callable[..., Any], Callable[[Sequence[Any]], Any]]:
    """Return the functions that make and average numbers: exact ones, or on doubles."""
    if edition not in EDITIONS:
        raise unknown("edition", edition, EDITIONS)
    return (Fraction, _exact_mean) if edition == "corrected" else (float, np.mean)


def _exact_mean(values: Sequence[Fraction]) -> Fraction:
    return Fraction(sum(values), len(values))


def beauty_contest(
    rounds: Rounds, low: int, high: int, ratio: Fraction, edition: str = "corrected"
) -> float:
    """S1: how far the choices that count are from the end to which the ratio on the mean pulls.

    `low` and `high` are in the choices' unit. At ratio 1, where any common number is an
    equilibrium, ``published`` rewards the centre of the range and the others its ends.
    """
    number, _ = _arithmetic(edition)
    width = high - low
    means = [statistics.mean([number(choice) for choice in choices]) - low for choices in rounds]
    raw = statistics.mean(means)
    if ratio > 1:
        return float(raw / width * 100)
    if ratio < 1:
        return float(((width if edition == "corrected" else high) - raw) / width * 100)
    off_centre = abs(2 * raw - width) / width
    return float((1 - off_centre if edition == "published" else off_centre) * 100)


def el_farol_bar(
    goers: Numbers, players: int, ratio: Fraction, edition: str = "corrected"
) -> float:
    """S2: the mean closeness over the rounds of the share of goers to the ratio."""
    number, mean = _arithmetic(edition)
    share = number(ratio)
    raw = mean([abs(number(g) / players - share) for g in goers])
    worst = max(share, 1 - share)
    return float((worst - raw) / worst * 100)


def divide_dollar(sums: Numbers, players: int, golds: int, edition: str = "corrected") -> float:
    """S3: the closeness of the sum of the bids to the golds, clipped at 0 once per run."""
    number, mean = _arithmetic(edition)
    fair = number(golds) / players
    raw = mean([abs(number(total) / players - fair) for total in sums])
    return float(max((fair - raw) / fair * 100, 0))


def public_goods(
    pots: Numbers, players: int, tokens: int, ratio: Fraction, edition: str = "corrected"
) -> float:
    """S4: the share of the endowment that is kept (``v2``: that is given, where ratio > 1)."""
    number, mean = _arithmetic(edition)
    if number is Fraction:
        raw = number(sum(pots), players * len(pots))
    else:
        raw = mean([number(pot) / players for pot in pots])
    counts_gifts = edition == "v2" and ratio > 1
    return float((raw if counts_gifts else tokens - raw) / tokens * 100)


def public_goods_shares(
    contributions: Rounds, endowments: Sequence[Sequence[float]]
) -> float | None:
    """S4 for endowments that differ or carry over, an extension; None if all are empty."""
    rounds = [
        [Fraction(c) / Fraction(e) for c, e in zip(amounts, had, strict=True) if e]
        for amounts, had in zip(contributions, endowments, strict=True)
    ]
    means = [_exact_mean(shares) for shares in rounds if shares]
    return float((1 - _exact_mean(means)) * 100) if means else None


def diners_dilemma(cheap: Numbers, players: int, edition: str = "corrected") -> float:
    """S5: the share of costly dishes (``v2``: of cheap ones). `cheap`: orders in each round."""
    number, mean = _arithmetic(edition)
    shares = [number(count) / players for count in cheap]
    return float(mean(shares if edition == "v2" else [1 - share for share in shares]) * 100)


def sealed_bid_auction(
    valuations: Rounds, bids: Rounds, price: str = "first", edition: str = "corrected"
) -> float | None:
    """S6: how far bids are below valuations, by round; None: an edition's other price rule."""
    number, mean = _arithmetic(edition)
    if price != ("second" if edition == "v2" else "first"):
        return None
    pairs = [list(zip(v, b, strict=True)) for v, b in zip(valuations, bids, strict=True)]
    if edition in ("v4", "v2"):
        shading = mean([mean([number(v - b) for v, b in pair]) for pair in pairs])
        if edition == "v2":
            return float(100 - shading)
        return float(shading / max(max(drawn) for drawn in valuations) * 100)
    shares = [mean([max(number(v - b) / (v or 1), 0) for v, b in pair]) for pair in pairs]
    return float(mean(shares) * 100)


class Shot(NamedTuple):
    """A turn of a battle royale; `target` negative: missed on purpose; `alive` before it."""

    shooter: int
    target: int
    alive: Sequence[int]


def battle_royale(shots: Sequence[Shot], rates: Numbers, edition: str = "corrected") -> float:
    """S7: share of shots at the strongest living other: the highest rate, or largest number."""
    number, _ = _arithmetic(edition)
    strength = rates if edition == "corrected" else range(len(rates))
    good = sum(aims_high(shot, strength) for shot in shots)
    return float(number(good) / len(shots) * 100)


def aims_high(shot: Shot, strength: Sequence[int]) -> bool:
    """Return whether the target is one of the strongest living others, by this strength."""
    others = [seat for seat in shot.alive if seat != shot.shooter]
    best = max(strength[seat] for seat in others)
    return shot.target in others and strength[shot.target] == best


def optimal_plan(pirates: int, gold: int) -> list[int]:
    """Return the plan that the first of `pirates` should propose, if half of the votes suffice."""
    bought = (pirates - 1) // 2
    return [gold - bought, *(1 - position % 2 for position in range(1, pirates))]


def right_vote(rule: str, position: int, share: int, pirates: int, gold: int) -> bool | None:
    """Return whether accepting is correct for the pirate at this position; None if undefined.

    The proposer, at position 0, does not vote. `share`: coins offered; `pirates`: those alive;
    `gold`: at least ``(pirates - 1) // 2``. Rules: ``paper``; ``published``, where one coin at a
    position of the other parity has no correct answer; ``equilibrium``: more than if it fails.
    """
    if rule == "equilibrium":
        return share > optimal_plan(pirates - 1, gold)[position - 1]
    if rule not in ("paper", "published"):
        raise BadParameter(f"vote_rule must be 'paper', 'published' or 'equilibrium', got {rule!r}")
    if share == 1 and position % 2:
        return None if rule == "published" else False
    return share >= 1


def pirate_game(
    plans: Rounds, votes: Rounds, gold: int, edition: str = "corrected", vote_rule: str = "paper"
) -> float:
    """S8: half for plans near the optimal one, half for correct votes.

    Plans are the coins of each living pirate, proposer first; votes are in the same order, the
    proposer's own included. All editions but ``corrected`` scale the plans to 100 coins, and take
    ``published`` as `vote_rule`, see `right_vote`.
    """
    number, mean = _arithmetic(edition)
    base, rule = (gold, vote_rule) if edition == "corrected" else (100, "published")
    distances = []
    for plan in plans:
        best = optimal_plan(len(plan), base)
        apart = (abs(number(x) / gold * base - y) for x, y in zip(plan, best, strict=True))
        distances.append(sum(apart))
    right, asked = correct_votes(plans, votes, gold, rule)
    proposed = (2 * base - mean(distances)) / (2 * base) * 50
    return float(proposed + number(right) / asked * 50)


def correct_votes(plans: Rounds, votes: Rounds, gold: int, rule: str = "paper") -> tuple[int, int]:
    """Count the correct votes of non-proposers and all their votes, over all rounds (S8V)."""
    cast = [
        bool(vote) is right_vote(rule, position, plan[position], len(plan), gold)
        for plan, round_votes in zip(plans, votes, strict=True)
        for position, vote in enumerate(round_votes)
        if position
    ]
    return sum(cast), len(cast)


def score_episode(game: Any, records: Sequence[Record], edition: str = "corrected") -> float | None:
    """The score of a finished run by its rules and plain records; None where none is defined."""
    _arithmetic(edition)
    if game.name not in GAMES or not records or not _complete(game, records):
        return None

    def each(key: str) -> list[Any]:
        return [record[key] for record in records]

    match game.name:
        case "beauty_contest":
            return _beauty_contest(game, records, edition)
        case "el_farol_bar":
            return el_farol_bar(each("goers"), game.players, game.ratio, edition)
        case "divide_dollar":
            return divide_dollar(each("sum"), game.players, game.golds, edition)
        case "public_goods":
            if (game.endowment, game.initial_tokens) == ("reset", "fixed"):
                return public_goods(each("pot"), game.players, game.tokens, game.ratio, edition)
            exact = edition == "corrected"
            return public_goods_shares(each("actions"), each("endowment")) if exact else None
        case "diners_dilemma":
            cheap = [game.players - costly for costly in each("costly")]
            return diners_dilemma(cheap, game.players, edition)
        case "sealed_bid_auction":
            return sealed_bid_auction(each("valuations"), each("actions"), game.price, edition)
        case "battle_royale":
            return battle_royale([shot_of(record) for record in records], game.rates, edition)
        case "pirate_game" if game.quota == "half" and game.gold >= (game.players - 1) // 2:
            rounds = [record for record in records if record["phase"] == VOTE]
            plans = [record["plan"][seat:] for seat, record in enumerate(rounds)]
            votes = [record["votes"][seat:] for seat, record in enumerate(rounds)]
            return pirate_game(plans, votes, game.gold, edition)
    return None


def _complete(game: Any, records: Sequence[Record]) -> bool:
    last = records[-1]
    if game.name == "battle_royale":
        return len(records) == game.max_shots or sum(last["alive"]) - last["hit"] == 1
    return bool(last["passed"]) if game.name == "pirate_game" else len(records) == game.rounds


def _beauty_contest(game: Any, records: Sequence[Record], edition: str) -> float | None:
    if game.max_draw is not None or not game.reasks:
        return None  # sessions of Economics Arena have measures of their own
    rounds = [[x for x, ok in zip(r["actions"], r["counted"], strict=True) if ok] for r in records]
    rounds = [choices for choices in rounds if choices]  # nobody's number counted in the others
    low, high = int(game.min * game.unit), int(game.max * game.unit)
    return beauty_contest(rounds, low, high, game.ratio, edition) if rounds else None


def shot_of(record: Record) -> Shot:
    """Return the turn of a battle royale's record."""
    alive = [seat for seat, lives in enumerate(record["alive"]) if lives]
    return Shot(record["shooter"], record["target"], alive)


def overall(scores: Mapping[str, Sequence[float]]) -> MeanCell | None:
    """Return the mean over games, with the deviation over runs of each run's mean.

    None unless every game of the benchmark has a run; no deviation unless all have equally many.
    Its interval takes the games as independent.
    """
    if not all(scores.get(game) for game in GAMES):
        return None
    columns = [scores[game] for game in GAMES]
    mean = sum(cell(column).mean for column in columns) / len(GAMES)
    low, high = SCORED  # which scores of old editions pass, as where many bid nothing
    low, high = min(low, *map(min, columns)), max(high, *map(max, columns))
    runs, interval = min(map(len, columns)), intervals.overall(columns, low, high)
    if runs != max(map(len, columns)):
        return MeanCell(mean, None, runs, interval, (low, high))
    by_run = cell([sum(run) / len(GAMES) for run in zip(*columns, strict=True)])
    return by_run._replace(mean=mean, interval=interval, ends=(low, high))
