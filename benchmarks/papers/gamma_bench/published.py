"""The printed results of γ-Bench (arXiv 2403.11807): five runs each, some not independent."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import MISSING, fields, replace
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

from llm_games.benchmarks.judge.means import MeanCell
from llm_games.benchmarks.judge.paper import data, printed
from llm_games.benchmarks.papers.gamma_bench.scores import GAMES
from llm_games.registry import rulebook
from llm_games.rulebook import Rulebook


class LeaderboardEntry(NamedTuple):
    """One row of a leaderboard: mean ± sample standard deviation of five runs, as printed."""

    rank: int
    model: str
    overall: MeanCell
    cells: dict[str, MeanCell]


VERSIONS = {"published": "v7", "v4": "v4"}
"""The version of the paper whose models are listed by an edition; of ``v2`` we have no numbers."""


class Single(NamedTuple):
    """The score of one GPT-3.5-0125 run as printed in v4 (edition ``v4``)."""

    experiment: str
    setting: str
    game: str
    score: float


@cache
def leaderboard(edition: str = "published") -> tuple[LeaderboardEntry, ...]:
    """Models printed by one of `VERSIONS`, best first; ``v4``: but auction and Overall, of v7."""
    models = []
    for row in data(__package__, "leaderboard"):
        names = [name.removesuffix("_mean") for name in row if name.endswith("_mean") and row[name]]
        cells = {n: MeanCell(float(row[f"{n}_mean"]), float(row[f"{n}_std"]), 5) for n in names}
        model_cells = {n: cells.get(f"{edition}_{n}", cells[n]) for n in ("overall", *GAMES)}
        if edition == "published" or f"{edition}_overall" in cells:
            models.append((row["model"], model_cells.pop("overall"), model_cells))
    models.sort(key=lambda model: -model[1].mean)  # in the order of v7 where these are equal
    return tuple(LeaderboardEntry(rank, *model) for rank, model in enumerate(models, start=1))


@cache
def spreads() -> dict[str, float]:
    """Return by game the standard deviation of one run's score, pooled over the 13 models."""
    deviations = {game: [row.cells[game].std or 0.0 for row in leaderboard()] for game in GAMES}
    return {game: math.sqrt(sum(s * s for s in sds) / len(sds)) for game, sds in deviations.items()}


@cache
def gpt35_runs() -> tuple[Single, ...]:
    """Return the single runs of GPT-3.5-0125: repeats, temperatures, prompts, variants."""
    return printed(__package__, "gpt35_v4", Single)


VARIED: dict[str, tuple[str, ...]] = {
    "beauty_contest": ("ratio",),
    "el_farol_bar": ("ratio",),
    "divide_dollar": ("golds",),
    "public_goods": ("ratio",),
    "diners_dilemma": ("cheap_price", "cheap_utility", "costly_price", "costly_utility"),
    "sealed_bid_auction": ("valuation_max",),
    "battle_royale": ("base_hit_rate", "interval"),
    "pirate_game": ("gold",),
}
"""The parameters that the paper varies (its Table 8)."""

MENUS = {
    (10, 15, 20, 20): "p1",
    (11, 5, 20, 7): "p2",
    (4, 19, 9, 20): "p3",
    (1, 8, 19, 12): "p4",
    (4, 5, 17, 7): "p5",
    (2, 11, 8, 13): "p6",
}
"""Prices and utilities of the diners' dilemma, in the order of `VARIED`, and their names."""


def gpt35(game: Rulebook, change: Mapping[str, Any]) -> float | None:
    """Return the score that v4 prints for GPT-3.5-0125 at a setting; None where it prints none.

    The rules must be the preset ``gamma_bench`` except for the parameters of `VARIED`. `change` is
    the setting that is not default: ``temperature``, ``prompts``, ``reasoning`` or ``persona``.
    """
    setting = _variant(game) if not change else _asked(change) if game == _default(game) else None
    if setting is None:
        return None
    runs = (run for run in gpt35_runs() if (run.experiment, run.game) == (setting[0], game.name))
    return next((run.score for run in runs if _same(run.setting, setting[1])), None)


def _asked(change: Mapping[str, Any]) -> tuple[str, str] | None:
    readers = {
        "temperature": lambda value: ("temperature", f"{value:.1f}"),
        "prompts": lambda value: ("prompt_version", value.upper()),
        "reasoning": lambda value: ("reasoning", "cot" if value else "default"),
        "persona": lambda value: ("reasoning", value),
    }
    [(key, value), *others] = change.items()
    return None if others or key not in readers else readers[key](value)


def _variant(game: Rulebook) -> tuple[str, str] | None:
    names = VARIED.get(game.name, ())
    defaults: dict[str, Any] = {f.name: f.default for f in fields(game) if f.name in names}
    if not names or MISSING in defaults.values() or replace(game, **defaults) != _default(game):
        return None
    values = tuple(getattr(game, name) for name in names)
    if game.name == "diners_dilemma":
        return "variant", MENUS.get(values, "")
    if game.name == "battle_royale":
        base, step = values
        return "variant", f"rates={base}..{base + step * (game.players - 1)}"
    return "variant", f"{names[0]}={values[0]}"


def _default(game: Rulebook) -> Rulebook:
    return replace(rulebook(game.name, preset="gamma_bench"), failed_reply=game.failed_reply)


def _same(printed: str, setting: str) -> bool:
    """Return whether two settings are equal; numbers are compared by value."""
    (name, _, value), (wanted, _, number) = printed.partition("="), setting.partition("=")
    if ".." in value or not value or not number:
        return printed == setting
    return name == wanted and Fraction(value) == Fraction(number)


def rank_of(overall: float, edition: str = "published") -> int:
    """Return the rank that an Overall would take on a published leaderboard."""
    return 1 + sum(listed.overall.mean > overall for listed in leaderboard(edition))
