"""The skill measures of reference players.

``python -m llm_games.benchmarks.studies.skill_accuracy [--sims EPISODES] [--seed S] [--into FILE]``

In each game one player after another sits in a seat among others who are all alike; in games of
turns it has a second seat in the middle, since few moves are made in the first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from llm_games import game_rooms as rooms
from llm_games.baselines import regret as theory
from llm_games.baselines.batch_play import BatchEpisodes, TooManyTurns, play_rules
from llm_games.baselines.players import rule_of
from llm_games.benchmarks.judge.means import MeanCell
from llm_games.benchmarks.judge.player_skill import PlayerSkill, StackedEpisode, measured
from llm_games.benchmarks.studies.markdown import MarkdownTable, write
from llm_games.registry import rulebook
from llm_games.rulebook import Rulebook

FIELDS = "rational", "cooperative", "random"
"""Who the others are."""
KINDS = "rational", "best_response", "level_k:1", "truthful", "cooperative", "random"
EPISODES = 10


class ReferencePlayer(NamedTuple):
    """A reference player: the players around it, its mean payoff, and its measures."""

    field: str
    player: str
    payoff: float
    skill: PlayerSkill


def players(game: Rulebook) -> list[str]:
    kinds = [name for name in KINDS if rule_of(name.partition(":")[0], game.name)]
    constants = [name for name in theory.replies(game) if name.startswith("fixed:")]
    return list(dict.fromkeys([*kinds, *constants[:1], *constants[-1:]]))


def reference_players(
    game: Rulebook, seeds: Sequence[int], fields: Sequence[str] = FIELDS
) -> Iterator[ReferencePlayer]:
    player_seats = sorted({0, game.players // 2}) if game.turns else [0]
    for field in (field for field in fields if rule_of(field, game.name)):
        for player in players(game):
            seats = ["player" if s in player_seats else "others" for s in range(game.players)]
            names = {"player": player, "others": field}
            try:
                played = play_rules(game, [names[seat] for seat in seats], seeds)
            except TooManyTurns:  # of an auction of thousands of raises
                continue
            episodes = stacked_episodes(game, played, seeds, seats)
            [skill] = measured(episodes, seats, ["player"], respond=False)
            payoff = float(played.payoffs[player_seats].mean())
            yield ReferencePlayer(field, player, payoff, skill)


def stacked_episodes(
    game: Rulebook, played: BatchEpisodes, seeds: Sequence[int], names: Sequence[str]
) -> Iterator[StackedEpisode]:
    for table, (seed, length) in enumerate(zip(seeds, played.lengths, strict=True)):
        table_records = [
            {name: np.asarray(value)[..., table] for name, value in record.items()}
            for record in played.records[:length]
        ]
        yield StackedEpisode(
            rules=game,
            seed=seed,
            fixed_chance=None,
            names=names,
            places=range(game.players),
            steps=theory.stacked(table_records),
            payoffs=played.payoffs[:, table],
        )


def tables(rng: np.random.Generator, episodes: int) -> Iterator[MarkdownTable]:
    seeds = rng.integers(2**31, size=episodes).tolist()
    columns = ["others", "player", "payoff", "regret", "interim", "solver's reply"]
    columns += ["best-reply gap", "with", "exploitability", "predicted"]
    for name in rooms.ROOMS:
        game, rows, last = rulebook(name), [], ""
        for reference in reference_players(game, seeds):
            rows.append([reference.field if reference.field != last else "", *_line(reference)])
            last = reference.field
        per = reference.skill.per
        yield MarkdownTable(f"`{name}`, a{'n' * (per[0] == 'e')} {per}", columns, rows)


def _line(reference: ReferencePlayer) -> list[str]:
    skill, mean = reference.skill, reference.skill.means()
    return [
        f"`{reference.player}`",
        _number(reference.payoff),
        *(_written(mean[name], ends=False) for name in ("regret", "interim regret")),
        *(_written(mean[name]) for name in ("solver's reply", "best-reply gap")),
        f"`{skill.best}`" if skill.best else "–",
        *(_written(mean[name]) for name in ("exploitability", "predicted")),
    ]


def _written(cell: MeanCell | None, ends: bool = True) -> str:
    if cell is None:
        return "–"
    interval = cell.interval if ends else None
    if interval is None or interval.method == "none":
        return _number(cell.mean)
    return f"{_number(cell.mean)} [{_number(interval.low)}, {_number(interval.high)}]"


def _number(value: float) -> str:
    digits = 0 if abs(value) >= 1000 else 1 if abs(value) >= 100 else 2
    return f"{np.round(value, digits) + 0.0:.{digits}f}"


if __name__ == "__main__":
    write("skill_accuracy", tables, EPISODES)
