"""The cells of Shall We Talk, and each recorded run's values for its tables and statements."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from llm_games.baselines.games.bertrand_competition import collusion, theory
from llm_games.baselines.regret import stacked
from llm_games.benchmarks.judge import model_labels
from llm_games.benchmarks.judge.means import POSITIVE, SHARE, Ends
from llm_games.benchmarks.judge.paper import Measure
from llm_games.benchmarks.judge.talk_measures import turns
from llm_games.benchmarks.papers.shall_we_talk import metrics
from llm_games.benchmarks.papers.shall_we_talk.plans import agreed_price, joint_plan
from llm_games.benchmarks.papers.shall_we_talk.statements import GROUPS, ContestRun, Escape, Market
from llm_games.benchmarks.record.recorded_games import RecordedEpisode, RecordedGame
from llm_games.benchmarks.run.config import load, parse
from llm_games.registry import rulebook
from llm_games.rulebook import Rulebook

if TYPE_CHECKING:
    from llm_games.baselines.games.emergency_evacuation.escape import Evacuation

FILES = ("beauty_contest", "bertrand", "evacuation")
SIZES = ("players", "rounds", "max_rounds", "switch_round", "walker")
"""Parameters in which a run of a cell may be smaller than the paper's."""
CASES = {"beauty_contest": "KBC", "bertrand_competition": "BC", "emergency_evacuation": "EE"}
RUBRICS = {"KBC": "plan", "BC": "agreement"}  # what a judge labels in the talk of a case
EARLY = 99  # rounds in which an agreement is early


def owns(game: RecordedGame) -> bool:
    rules = game.rules
    if rules.name == "beauty_contest":
        return bool(rules.reply_key == "number" and not rules.reveal)
    return rules.name in CASES


@cache
def cells(game: str) -> Mapping[str, Rulebook]:
    """Return the rules of the paper's cells in a game by label, read from the experiment files."""
    rules_by_cell = {}
    for name in FILES:
        source = f"shall-we-talk/{name}"
        for game_config in parse(load(source), source).games:
            if game_config.game == game:
                settings: dict[str, Any] = {**game_config.params}
                settings |= {} if game_config.talk is None else {"talk": game_config.talk}
                rules_by_cell[str(game_config.label)] = rulebook(game, **settings)
    return rules_by_cell


def cell_of(rules: Rulebook) -> str:
    """Return the cell whose rules these are, at any size; "" if they differ otherwise."""
    alike = (cell for cell, other in cells(rules.name).items() if _sized(other, rules) == rules)
    return next(alike, "")


def _sized(cell_rules: Any, rules: Any) -> Any:
    """Return a cell's rules in the size of other rules, if both talk or neither does."""
    if (cell_rules.core is cell_rules) != (rules.core is rules):
        return None
    names = {f.name for f in fields(cell_rules.core)} & {*SIZES}
    sizes = {name: getattr(rules.core, name) for name in names}
    changed = {name: size for name, size in sizes.items() if getattr(cell_rules, name) and size}
    core = replace(cell_rules.core, **changed)
    return core if cell_rules.core is cell_rules else type(cell_rules)(core, cell_rules.talk)


def full(game: RecordedGame) -> Rulebook:
    """Return the rules of a game, including its talk."""
    return rulebook(game.name, **game.params)


def ends(rules: Any) -> tuple[float, float]:
    return float(rules.min), float(rules.max)


def spreads(rules: Any) -> Ends:
    return (0.0, 100 * math.sqrt(rules.players - 1)) if rules.min >= 0 else POSITIVE


def prices_of(rules: Any) -> Ends:
    """Return the least and the highest mean price of the firms."""
    return 0.0, float(rules.core.ranges[0])


def indexes(rules: Any) -> Ends:
    low, high = (float(collusion.price_index(rules.core, end)) for end in prices_of(rules))
    return low, high


def rounds(rules: Any) -> Ends:
    return 1.0, float(rules.core.max_rounds)


def references(rules: Any) -> tuple[float, float]:
    ends = theory.equilibrium(rules), theory.cartel(rules)
    low, high = (float(sum(prices) / len(prices)) for prices in ends)
    return low, high


def found(game: RecordedGame) -> list[Any]:
    """Return each finished episode's values for tables and statements."""
    of: dict[str, Callable[..., Any]] = {"KBC": _contest, "BC": _market, "EE": _escape}
    pairs = zip(game.done, label(game), strict=True)
    return [of[CASES[game.name]](episode, plan) for episode, plan in pairs]


def _contest(episode: RecordedEpisode, plan: str | None) -> ContestRun:
    """Return the legal numbers of the last round."""
    last = episode.records[-1]
    numbers = zip(last["actions"], last["legal"], strict=True)
    return ContestRun([number for number, legal in numbers if legal], plan, spreads(episode.rules))


def _market(episode: RecordedEpisode, plan: str | None) -> Market:
    """Return the mean prices, and the game's metrics of the last tenth of the rounds."""
    rules = episode.rules
    prices, profits = collusion.path(rules, episode.records)
    late = slice(-max(1, len(prices) // 10), None)
    return Market(
        prices=prices.mean(axis=1).tolist(),
        early=None if plan is None else plan == "agreement",
        settled=collusion.convergence(prices),
        price_index=float(collusion.price_index(rules, prices[late].mean())),
        profit_gain=float(collusion.profit_gain(rules, profits[late].mean())),
        price_gap=float(collusion.price_gap(prices)),
        firms=prices.T.tolist(),
        ends=prices_of(rules),
    )


def _crowd(episode: RecordedEpisode) -> Evacuation:
    from llm_games.baselines.games.emergency_evacuation.escape import evacuation

    return evacuation(episode.rules, stacked(episode.records))


def _escape(episode: RecordedEpisode, plan: str | None) -> Escape:
    """Return the crowd's outcome, and the share of the asked who reported panic."""
    crowd = _crowd(episode)
    sides, out = [*crowd.sides.values()], sum(crowd.sides.values())
    felt = [note.content["panic"] for note in episode.notes() if note.kind == "feeling"]
    answers = [panic for panic in felt if panic is not None]
    return Escape(
        curves=np.stack([crowd.escapes[name.replace(", ", " & ")] for name in GROUPS]),
        time=crowd.evacuation_time,
        mean_round=crowd.mean_escape_round if out else None,
        shares=[side / out for side in sides] if out else None,
        balance=crowd.exit_balance if out else None,
        escaped=crowd.escape_rate,
        lost=crowd.casualty_rate,
        fallen=crowd.overtaken_rounds,
        changes=None if math.isnan(crowd.changes) else crowd.changes,
        panic=sum(answers) / len(answers) if answers else None,
        sides=np.stack([crowd.escapes[side] for side in crowd.sides]),
        ends=rounds(episode.rules),
    )


def _spread(episode: RecordedEpisode) -> float | None:
    numbers = _contest(episode, None).numbers
    return metrics.rsd(numbers) if numbers else None


MEASURES = {
    "beauty_contest": Measure(
        "spread of numbers",
        "%RSD, 100 times the deviation of a run's numbers to their mean",
        "lower",
        _spread,
        ends=spreads,
    ),
    "bertrand_competition": Measure(
        "price index",
        "mean price of the last tenth of the rounds, 0 in the one-shot equilibrium, 1 in a cartel",
        "higher",
        lambda episode: float(_market(episode, None).price_index),
        ".2f",
        indexes,
    ),
    "emergency_evacuation": Measure(
        "escaped",
        "share of the people who get out",
        "higher",
        lambda episode: float(_crowd(episode).escape_rate),
        ".1%",
        lambda rules: SHARE,
    ),
}
"""What each case is judged by, in a terminal and first on a page."""


def messages(episode: RecordedEpisode, rounds: float = math.inf) -> Iterator[list[tuple[int, str]]]:
    """Yield the messages before each move of the first `rounds`, with their speakers, in order."""
    for turn in turns(episode):
        if turn.round > rounds:
            return
        yield [(message.seat, str(message.content)) for message in turn.talk if message.content]


def by_rule(episode: RecordedEpisode) -> str:
    """Return the label of an episode's talk by a fixed rule."""
    if CASES[episode.rules.name] == "KBC":
        return joint_plan(line for lines in messages(episode) for line in lines)
    firms = episode.rules.players
    early = (agreed_price(lines, firms) for lines in messages(episode, EARLY))
    return "agreement" if any(price is not None for price in early) else "none"


def labels(game: RecordedGame) -> list[tuple[str | None, str | None]]:
    """Labels of a game's finished episodes, by rule and by a judge, or None; cached in the game."""
    if __name__ not in game.cache:
        rubric = RUBRICS.get(CASES[game.name]) if game.talks else None
        judged_labels = model_labels.labels(game.shelf.file, rubric) if rubric else {}
        game.cache[__name__] = [
            (by_rule(episode) if rubric else None, judged_labels.get(episode.row.id))
            for episode in game.done
        ]
    pairs: list[tuple[str | None, str | None]] = game.cache[__name__]
    return pairs


def label(game: RecordedGame) -> list[str | None]:
    """Return one label for each finished episode: the judge's if it has all, else the rule's."""
    pairs = labels(game)
    column = int(all(judged for _, judged in pairs))
    return [pair[column] for pair in pairs]
