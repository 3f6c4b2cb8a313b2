"""Reference rows: what players that follow a rule come to at the table of a recorded game.

They sit where its language models sat (and people, and policies of one's own); rule players that
were there stay; beside one of them who always does the same the best response is a reference, too.
Where none but rule players sat, a reference takes all seats. All are played
`EPISODES` times (`FEW` where turns can be very many), offline and all at once, by chance of their
own, in the game's own seatings, and kept on disk (`llm_games.baselines.cache`), as is why one took
too many turns.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np

from llm_games.baselines import deviation as theory
from llm_games.baselines.cache import Arrays, remember
from llm_games.baselines.players import rule_of
from llm_games.baselines.skill import LONGEST, Played, TooManyTurns, play_rules
from llm_games.benchmarks.runs import paper
from llm_games.benchmarks.runs.reader import Game
from llm_games.benchmarks.runs.scenarios import focal, is_scenario
from llm_games.benchmarks.runs.skill import reason
from llm_games.benchmarks.runs.stats import FREE, POSITIVE, Cell, Ends, estimated, paid
from llm_games.errors import BadParameter
from llm_games.registry import game_class, rulebook
from llm_games.rulebook import Array, Rulebook, seated
from llm_games.version import __version__

PLAYERS = "rational", "cooperative", "random"
BESIDE = "best_response"  # another one where a seat always does the same, whatever is rational
EPISODES = 50
FEW = 5
AT_ONCE = 1000  # moves of tables whose regret is worked out together


class Reference(NamedTuple):
    """What one rule player came to, a list of one value for each episode; empty if not defined.

    `claim` says what ``rational`` is in the game; `why` says why there is nothing, if so.
    `payoffs` are of a seat of the table, `own` of a seat that the reference took; `payable` and
    `payable_own` are the ends of such means.
    """

    player: str
    claim: str = ""
    scores: Sequence[float] = ()
    measured: Sequence[float] = ()
    payoffs: Sequence[float] = ()
    own: Sequence[float] = ()
    regret: Sequence[float] = ()
    why: str = ""
    payable: Ends = FREE
    payable_own: Ends = FREE

    @property
    def n(self) -> int:
        """How many episodes were played."""
        return len(self.payoffs)

    @property
    def about(self) -> str:
        """Say what it is, or why there is nothing."""
        return f"no reference: {self.why}" if self.why else f"reference {self.claim}".strip()

    @property
    def name(self) -> str:
        """Say who it is, and what ``rational`` is in the game."""
        return f"{self.player} ({self.claim})" if self.claim else self.player

    def plain(self, ends: Ends, least: int = 2) -> dict[str, Any]:
        """Return it as plain values: means with their intervals, and n.

        `ends` are those of what the paper's measure gives, which has an interval from `least` on.
        """
        cells: dict[str, Cell | None] = {
            "score": estimated(self.scores, paper.SCORED),
            "measured": estimated(self.measured, ends, least),
            "payoff": paid(self.payoffs, self.payable, True),
            "payoff_of_own_seats": paid(self.own, self.payable_own, True),
            "regret": paid(self.regret, POSITIVE, True),
        }
        means = {name: cell and cell.plain() for name, cell in cells.items()}
        return {"player": self.player, "claim": self.claim, "n": self.n, "why": self.why} | means


def references(game: Game, edition: str) -> list[Reference]:
    """Return the references of a recorded game that are defined in it, worked out once."""
    name = f"{__name__} {edition}"
    if name not in game.found:
        fixed = any(name.partition(":")[0] == "fixed" for name in _planned(game))
        players = (*PLAYERS[:1], *[BESIDE] * fixed, *PLAYERS[1:])
        known = [player for player in players if rule_of(player, game.name)]
        game.found[name] = [_reference(game, player, edition) for player in known]
    found: list[Reference] = game.found[name]
    return found


def overalls(found: Iterable[tuple[str, Sequence[Reference]]]) -> dict[str, Cell]:
    """Return each reference's mean over a whole benchmark, from games' names and references."""
    scores: dict[str, list[tuple[str, Sequence[float]]]] = {}
    for game, rows in found:
        for row in rows:
            scores.setdefault(row.player, []).append((game, row.scores))
    means = {
        name: paper.overall(values) for name, values in scores.items() if all(v for _, v in values)
    }
    return {name: mean for name, mean in means.items() if mean}


def _reference(game: Game, player: str, edition: str) -> Reference:
    try:
        claim = ""
        if player == "rational" and theory.has(game.name, "rational"):
            claim = theory.rational(game.rules).kind
        table = _Table.of(game, player)
        if type(game.rules).__module__.startswith("llm_games.games."):
            judged = measure.name if (measure := paper.measure_of(game)) else ""
            found = remember(table.name(edition, judged), lambda: table.played(game, edition))
        else:  # rules of one's own may change without a version
            found = table.played(game, edition)
        if "why" in found:
            return Reference(player, why=str(found["why"]))
    except Exception as error:  # costs only this row
        return Reference(player, why=reason(error))
    columns = ("scores", "measured", "payoffs", "own", "regret")
    values: dict[str, Any] = {name: paper.known(found[name].tolist()) for name in columns}
    ends = game.rules.core.payable_mean
    bounds = {"payable": ends(game.rules.players), "payable_own": ends(len(table.own))}
    return Reference(player, claim, **values, **bounds)


def _planned(game: Game) -> Sequence[str]:
    """Return who sits at each place as configured."""
    return [str(seat["player"]) for seat in game.planned.get("seats", ())] or game.seats


class _Table(NamedTuple):
    """What is played: who sits at each place as configured, and in which seatings."""

    game: str
    params: Mapping[str, Any]
    names: list[str]
    own: list[int]  # places that the reference takes
    seatings: list[list[int]]
    given: Mapping[str, Any] | None
    max_steps: int | None

    @classmethod
    def of(cls, game: Game, player: str) -> _Table:
        planned = _planned(game)
        follow = [rule_of(name.partition(":")[0], game.name) is not None for name in planned]
        own = [place for place, rule in enumerate(follow) if not rule] or [*range(len(planned))]
        if is_scenario(game.planned):
            own = focal([seat["name"] for seat in game.planned["seats"]])
        names = [player if place in own else name for place, name in enumerate(planned)]
        usual = [list(range(len(names)))]
        seatings = [list(s) for s in dict.fromkeys(tuple(row.seating) for row in game.rows)]
        given, most = game.planned.get("given") or None, game.planned.get("max_steps")
        return cls(game.name, game.params, names, own, seatings[:EPISODES] or usual, given, most)

    def name(self, edition: str, judged: str = "") -> str:
        """Return the name under which it is kept: all that the results depend on."""
        rules = game_class(self.game).edition
        about = json.dumps(
            [__version__, rules, edition, judged, EPISODES, FEW, self], default=str, sort_keys=True
        )
        return f"reference_{self.game}_{sha256(about.encode()).hexdigest()[:24]}"

    def played(self, game: Game, edition: str) -> Arrays:
        """Play it; NaN for what is not defined. If it takes too many turns, only `why`."""
        found: dict[str, list[float]] = {}
        first = int(sha256(self.game.encode()).hexdigest()[:12], 16)  # independent of other games
        long = game.rules.turns and game.rules.core.length() > LONGEST
        episodes = FEW if long else EPISODES
        seatings = self.seatings[:episodes]
        for number, seating in enumerate(seatings):
            rules = rulebook(self.game, **seated(game_class(self.game), self.params, seating)).core
            seeds = range(first + number, first + episodes, len(seatings))
            who = [self.names[place] for place in seating]
            try:
                played = play_rules(rules, who, seeds, self.given, self.max_steps)
            except TooManyTurns as error:
                return {"why": np.array(str(error))}
            found_here = _results(game, rules, who, played, seating, self.own, edition)
            for name, values in found_here.items():
                found.setdefault(name, []).extend(values)
        return {name: np.array(values, np.float64) for name, values in found.items()}


@dataclass(frozen=True)
class _Episode:
    """An episode as papers' measures read one; nobody in it was asked for a reply."""

    rules: Rulebook
    seats: Sequence[str]
    played: Played
    table: int
    payoffs: Array
    planned: Mapping[str, Any]

    @cached_property
    def records(self) -> list[dict[str, Any]]:
        """What happened, step by step, as a file has it; of a long game not to be asked idly."""
        return self.played.records_of(self.table)

    def attempts(self) -> list[Any]:
        return []

    def decisions(self) -> list[Any]:
        return []


def _results(
    game: Game,
    rules: Rulebook,
    seats: Sequence[str],
    played: Played,
    seating: Sequence[int],
    own: Sequence[int],
    edition: str,
) -> dict[str, Sequence[float]]:
    """Return for each table its score, what the paper's measure gives, payoffs and regret."""
    measure, mine = paper.measure_of(game), [seating.index(place) for place in own]
    places = played.payoffs[np.argsort(seating)].T
    scores, measured = list[float](), list[float]()
    for table, earned in enumerate(places):
        episode: Any = _Episode(rules, seats, played, table, earned, game.planned)
        score = paper.score_of(episode, edition)
        value = measure.of(episode) if measure else None
        scores.append(np.nan if score is None else score)
        measured.append(np.nan if value is None else value)
    return {
        **{"scores": scores, "measured": measured, "payoffs": played.payoffs.mean(axis=0).tolist()},
        **{
            "own": played.payoffs[mine].mean(axis=0).tolist(),
            "regret": _regret(rules, played).tolist(),
        },
    }


def _regret(rules: Rulebook, played: Played) -> Array:
    """Return what a seat lost in hindsight in each episode, mean over seats; NaN if unknown."""
    if not theory.has(rules.name, "deviation"):
        return np.full(len(played.lengths), np.nan)
    lost, records = np.zeros(len(played.lengths)), played.records
    many = max(1, AT_ONCE // len(lost))
    for first in range(0, len(records), many):
        steps = theory.stacked(records[first : first + many])
        try:
            regret = theory.deviation(rules, steps).regret.mean(axis=0)
        except BadParameter:  # too large to be solved
            return np.full(len(lost), np.nan)
        number = first + np.arange(regret.shape[-1])
        lost += np.where(number < played.lengths[:, None], regret, 0.0).sum(axis=-1)
    return lost
