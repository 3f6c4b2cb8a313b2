"""The scores of scenarios, games of a run with a background, each on a scale of its own.

A background's names begin with `BACKGROUND`. The other seats are focal and scored by their mean
payoff: 0 is what ``random`` comes to in all of them, 1 what the best of all rule players does.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np

from llm_games.baselines import regret as theory
from llm_games.baselines.batch_play import play_batch
from llm_games.baselines.disk_arrays import Arrays, remember
from llm_games.baselines.players import players_for, rule_of
from llm_games.baselines.seat_rotation import rotated
from llm_games.errors import LLMGamesError
from llm_games.registry import game_class, rulebook
from llm_games.rulebook import Array, seated
from llm_games.version import __version__

BACKGROUND = "background: "
CHOOSING, VALUING = 100, 500
"""Games by which the best player is chosen, and others by which it and ``random`` are valued."""
CERTAIN = 3.0  # A scale has no meaning unless its ends are so many standard errors apart


def is_scenario(planned: Mapping[str, Any]) -> bool:
    return any(seat["name"].startswith(BACKGROUND) for seat in planned.get("seats", ()))


def focal(names: Sequence[str]) -> list[int]:
    """Return the places of those who are no background."""
    return [position for position, name in enumerate(names) if not name.startswith(BACKGROUND)]


class Ends(NamedTuple):
    """Mean payoffs of a focal seat at both ends of a scenario's scores, and whose the `best` is.

    `why` says why there is no scale, if so.
    """

    random: float = np.nan
    best: float = np.nan
    best_player: str = ""
    why: str = ""

    def score(self, payoff: float) -> float | None:
        """Return what a mean payoff of the focal seats is worth; None without a scale."""
        return None if self.why else (payoff - self.random) / (self.best - self.random)


def scale(planned: Mapping[str, Any]) -> Ends:
    """Return the scale of a scenario of a run; kept on disk for the games that come with us."""
    seats = [(str(seat["name"]), str(seat["player"])) for seat in planned["seats"]]
    seats = [pair if pair[0].startswith(BACKGROUND) else ("", "") for pair in seats]
    settings = {key: planned.get(key) for key in ("game", "params", "given", "max_steps", "order")}
    return _scale(json.dumps([seats, settings], sort_keys=True, default=str))


@lru_cache(maxsize=1024)
def _scale(about: str) -> Ends:
    seats, settings = json.loads(about)
    seats = [(name, player) for name, player in seats]
    try:
        table = _ScenarioTable(seats, **settings)
        players = table.candidates()
        if not table.ours:
            payoffs = table.ends(players)
        else:
            cache_key = json.dumps([__version__, table.edition, CHOOSING, VALUING, players, about])
            name = f"scenario_{settings['game']}_{sha256(cache_key.encode()).hexdigest()[:24]}"
            payoffs = remember(name, lambda: table.ends(players))
    except LLMGamesError as error:
        return Ends(why=str(error))
    best, random = payoffs["best"], payoffs["random"]
    gain = best - random
    best_name = players[int(payoffs["chosen"])]
    least = CERTAIN * gain.std(ddof=1) / np.sqrt(len(gain))
    near = gain.mean() <= max(least, 1e-9 * np.abs(best).max())
    why = f"even {best_name}, the best of the rule players, does no better than random" * bool(near)
    return Ends(float(random.mean()), float(best.mean()), best_name, why)


class _ScenarioTable:
    """A scenario's table, for rule players in all its focal seats."""

    def __init__(
        self,
        seats: Sequence[tuple[str, str]],
        game: str,
        params: Any,
        given: Any = None,
        max_steps: Any = None,
        order: str | None = "rotate",
    ) -> None:
        self.names, self.players = ([*column] for column in zip(*seats, strict=True))
        full = rulebook(game, **params)
        self.game, self.params, self.fixed_chance = game, params, full.core_chance(given or None)
        self.max_steps = max_steps
        self.rules, self.edition = full.core, game_class(game).edition
        # What is somebody's own, or a file, may change without a version.
        self.ours = game_class(game).__module__.startswith("llm_games.games.") and all(
            rule_of(player.partition(":")[0], self.rules.name)
            for position, player in enumerate(self.players)
            if position not in focal(self.names)
        )
        self.seatings = [[*range(len(seats))]] if order == "fixed" else rotated(seats)
        alike: dict[str, list[int]] = {}  # those whose rules are the same
        for row, seating in enumerate(self.seatings):
            alike.setdefault(str(self._params(seating)), []).append(row)
        self.alike = list(alike.values())

    def candidates(self) -> list[str]:
        """Return whoever may be best: theory's replies, and all rule players without a value."""
        solutions = theory.replies(self.rules) if theory.has(self.rules.name, "replies") else ()
        rules = (name for name in players_for(self.rules.name) if rule_of(name, self.rules.name))
        return [*dict.fromkeys((*solutions, *(name for name in rules if "<" not in name)))]

    def ends(self, players: Sequence[str]) -> Arrays:
        """Payoffs ``(VALUING,)`` of random and the best, chosen by other games, and its name."""
        means = [self.payoffs(player, 0, CHOOSING).mean() for player in players]
        chosen = int(np.argmax(means))
        best, random = (self.payoffs(n, CHOOSING, VALUING) for n in (players[chosen], "random"))
        return {"best": best, "random": random, "chosen": np.array(chosen)}

    def payoffs(self, player: str, first: int, games: int) -> Array:
        """Return the mean payoff of the focal seats, by the same chance for all players."""
        focal_seats = focal(self.names)
        start = int(sha256(self.game.encode()).hexdigest()[:12], 16) + first
        seats = enumerate(self.players)
        players = [player if i in focal_seats else background for i, background in seats]
        names = list(dict.fromkeys(players))
        row, payoffs = np.arange(games) % len(self.seatings), np.zeros(games)
        for rows in self.alike:
            rules = rulebook(self.game, **self._params(self.seatings[rows[0]])).core
            games_here = np.flatnonzero(np.isin(row, rows))
            places = np.array(self.seatings)[row[games_here]].T  # (players, tables)
            sits = np.array([names.index(name) for name in players])[places]
            seeds, mask = (start + games_here).tolist(), np.isin(places, focal_seats)
            limits = self.fixed_chance, self.max_steps
            for _, outcome in play_batch(rules, names, sits, seeds, *limits):
                payoffs[games_here] += outcome.rewards.mean(axis=0, where=mask)
        return payoffs

    def _params(self, seating: Sequence[int]) -> Mapping[str, Any]:
        return seated(game_class(self.game), self.params, seating)


def scored(payoffs: Array, planned: Mapping[str, Any]) -> float | None:
    """Return the score of an episode from the payoffs of seats as configured, ``(players,)``."""
    names = [seat["name"] for seat in planned["seats"]]
    return scale(planned).score(float(payoffs[focal(names)].mean()))
