"""Which rules stand behind the moves of a run's players: `llm_games.baselines.type_mixtures`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from scipy.special import stdtrit

from llm_games.baselines.adaptive_rules import (
    CatalogueFit,
    compared,
    errors_by_episode,
    nearest_type,
)
from llm_games.baselines.foretold_moves import (
    RecordedMoves,
    foretell,
    recorded_moves,
    usual_types,
)
from llm_games.baselines.played_episodes import PlayedEpisodes
from llm_games.baselines.quantal_responses import quantal_rate, stage_choices
from llm_games.baselines.type_mixtures import (
    ForetoldMoves,
    TypeMixture,
    shares_between,
    type_mixture,
)
from llm_games.benchmarks.judge.intervals import EQUAL, SEED, Interval
from llm_games.benchmarks.judge.means import POSITIVE, SHARE, MeanCell
from llm_games.benchmarks.record.editions import UNNAMED
from llm_games.benchmarks.record.recorded_games import RecordedEpisode, RecordedGame
from llm_games.errors import BadParameter
from llm_games.rulebook import Array

MOST = 20_000  # decisions of a player from which its types are worked out, about; the first ones
MOST_ON_PAGES = 5_000  # the same where nobody asked for types
DRAWS = 200  # bootstrap samples over episodes
FEWEST = 5  # episodes from which on there are intervals over them
LEAST = 0.005  # share of a type, or a seat's chance of it, that is shown
LINE = "own last", "others' last", "constant"
"""What numbers follow in the round before, and what is added."""


class SeatType(NamedTuple):
    """The likeliest types of a seat of an episode, as few as are together surer than `SURE`.

    `chance` is of the likeliest, `posterior` of all that are likely at all, the likeliest first.
    """

    episode: int
    seat: int
    types: tuple[str, ...]
    chance: float
    posterior: Mapping[str, float]


class NumberLine(NamedTuple):
    """What numbers follow, by `LINE`, with intervals over episodes, and how far they then miss.

    `nearest` is the type whose numbers are nearest to these, `apart` the root mean square between.
    `follows` is empty, and `why` says why, where the record does not tell.
    """

    miss: float
    nearest: str
    apart: float
    follows: Mapping[str, MeanCell] = MappingProxyType({})
    errors: Sequence[float] | None = None
    why: str = ""

    def plain(self) -> dict[str, Any]:
        cells = {name: cell.plain() for name, cell in self.follows.items()}
        return self._asdict() | {"follows": cells}


@dataclass(frozen=True)
class PlayerTypes:
    """The types behind a player's seats in a game; `why` says why nobody can tell.

    `shares` are of types, with intervals over episodes; `seats` have a type each, `named` are those
    with one alone. `fit` compares the catalogue with a rule by the last round, which is the `line`
    of numbers. `rate` is by how much payoffs move choices: why none is told where it is a text.
    """

    game: str
    player: str
    episodes: int
    decisions: int = 0
    shares: Mapping[str, MeanCell] = field(default_factory=dict)
    seats: Sequence[SeatType] = ()
    mixture: TypeMixture | None = None
    fit: CatalogueFit | None = None
    line: NumberLine | None = None
    rate: MeanCell | str = ""
    why: str = ""

    @property
    def nameable(self) -> bool:
        """Whether a type stands behind each seat's moves, though the record may not tell which."""
        return self.mixture is not None and self.mixture.nameable and not self.outside

    @property
    def named(self) -> list[SeatType]:
        return [seat for seat in self.seats if len(seat.types) == 1] if self.nameable else []

    @property
    def outside(self) -> bool:
        return self.fit is not None and self.fit.outside

    @property
    def verdict(self) -> str:
        """What the record says of the player, in words."""
        if self.mixture is None:
            return f"not identified: {self.why}"
        if self.outside:
            return "no rule of the catalogue"
        if not self.mixture.nameable:
            return f"not identified: {self.mixture.error:.0%} of the moves are any"
        return f"{len(self.named)} of {len(self.seats)} seats named"

    def plain(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        mixture, fit = self.mixture, self.fit
        rule = fit and {
            "coefficients": fit.rule.coefficients.tolist(),
            "errors": self.line and self.line.errors,
            "spread": fit.rule.spread,
            "bic": fit.bic,
            "held_out": fit.held_out,
        }
        return {
            **{name: getattr(self, name) for name in ("game", "player", "episodes", "decisions")},
            "verdict": self.verdict,
            "shares": {name: cell.plain() for name, cell in self.shares.items()},
            "error": mixture and mixture.error,
            "spread": mixture and mixture.spread,
            "log_likelihood": mixture and mixture.log_likelihood,
            "bic": mixture and mixture.bic,
            "alike": mixture and mixture.alike(),
            "adaptive": rule,
            "line": self.line and self.line.plain(),
            "rate": self.rate if isinstance(self.rate, str) else self.rate.plain(),
            "seats": [seat._asdict() for seat in self.seats],
        }


def player_types(
    game: RecordedGame, names: Sequence[str] = (), limit: int = MOST
) -> list[PlayerTypes]:
    """Return the types behind each player of a game; `names` are types, by default the usual ones.

    They are worked out from the first episodes, of about `limit` decisions of a player.

    BadParameter, UnknownName: one of `names` is no type of the game.
    """
    return [_of_player(game, player, names, limit) for player in game.players]


def _of_player(game: RecordedGame, player: str, names: Sequence[str], limit: int) -> PlayerTypes:
    seatings = list(_first_seatings(game, player, limit))
    unidentified = PlayerTypes(game.label, player, len(seatings))
    try:
        played = _played_episodes(seatings, limit)
        recorded = recorded_moves(played)
    except BadParameter as error:
        return replace(unidentified, why=str(error))
    try:
        foretold = foretell(recorded, names or usual_types(played.game))
    except BadParameter as error:
        if names:
            raise
        return replace(unidentified, why=str(error))
    mixture, fit, draws = type_mixture(foretold), None, None
    with suppress(BadParameter):  # too few rounds: the catalogue stands alone
        fit = compared(foretold, recorded.last_rounds, recorded.rounds)
    if len(seatings) >= FEWEST:
        draws = shares_between(foretold, mixture, recorded.episodes, DRAWS, SEED)
    return replace(
        unidentified,
        decisions=len(recorded.actions),
        shares=_shares(mixture, draws, len(seatings)),
        seats=list(_seats(seatings, np.unique(recorded.sitters), mixture)),
        mixture=mixture,
        fit=fit,
        line=None if fit is None else _line(fit, foretold, recorded),
        rate=_rate(played),
    )


def _first_seatings(
    game: RecordedGame, player: str, limit: int
) -> Iterator[tuple[RecordedEpisode, list[int]]]:
    """Yield the first episodes of a player, by rules of today, with its seats."""
    decisions = 0
    for episode in game.done:
        today = (episode.row.edition or UNNAMED)["rules"] == episode.rules.edition
        if today and decisions < limit and (seats := episode.of(player)):
            yield episode, seats
            decisions += _decisions(episode, seats)


def _decisions(episode: RecordedEpisode, seats: Sequence[int]) -> int:
    return len(seats) * len(episode.records)


def _played_episodes(
    seatings: Sequence[tuple[RecordedEpisode, list[int]]], limit: int
) -> PlayedEpisodes:
    if not seatings:
        raise BadParameter("no finished episode was played by the rules of today")
    if (decisions := _decisions(*seatings[0])) > limit:
        raise BadParameter(f"an episode has {decisions:,} decisions, more than {limit:,}")
    episodes, seats = zip(*seatings, strict=True)
    rules, chance = episodes[0].rules, episodes[0].given
    if any(episode.rules != rules or episode.given != chance for episode in episodes):
        raise BadParameter("its episodes differ in their rules, or in what was given to chance")
    return PlayedEpisodes(
        game=rules,
        seeds=[episode.row.seed for episode in episodes],
        moves=[[record["answers"] for record in episode.records] for episode in episodes],
        seats=seats,
        chance=chance,
        chosen=[episode.chosen for episode in episodes],
    )


def _seats(
    seatings: Sequence[tuple[RecordedEpisode, list[int]]], sitters: Array, mixture: TypeMixture
) -> Iterator[SeatType]:
    labels = [(episode.row.number, seat) for episode, seats in seatings for seat in sorted(seats)]
    for number, sitter in enumerate(sitters.tolist()):
        chances = sorted(
            zip(mixture.posterior[number].tolist(), mixture.types, strict=True), reverse=True
        )
        likely = {name: chance for chance, name in chances if chance >= LEAST}
        episode_number, seat = labels[sitter]
        yield SeatType(episode_number, seat, mixture.groups(number), chances[0][0], likely)


def _line(fit: CatalogueFit, foretold: ForetoldMoves, recorded: RecordedMoves) -> NumberLine | None:
    """Return what numbers follow; None for choices."""
    if fit.rule.spread is None:
        return None
    later = recorded.last_rounds.defined
    episodes = recorded.episodes[later]
    of_rule = fit.rule, foretold.select(later), recorded.last_rounds.select(later)
    count = len(np.unique(episodes))
    line = NumberLine(fit.rule.spread, *nearest_type(*of_rule))
    try:
        errors = errors_by_episode(*of_rule, episodes).tolist()
    except BadParameter as error:
        return line._replace(why=f"not identified: {error}")
    triples = zip(LINE, fit.rule.coefficients.tolist(), errors, strict=True)
    follows = {
        name: MeanCell(value, None, count, _over_episodes(value, error, count))
        for name, value, error in triples
    }
    return line._replace(follows=follows, errors=errors if count >= FEWEST else None)


def _over_episodes(value: float, error: float, episodes: int) -> Interval | None:
    if episodes < FEWEST:
        return None
    if error < EQUAL:
        return Interval(value, value, "none", episodes, f"no spread in {episodes} runs")
    far = float(stdtrit(episodes - 1, 0.975) * error)
    return Interval(value - far, value + far, "jackknife over episodes", episodes)


def _rate(played: PlayedEpisodes) -> MeanCell | str:
    by_episode = len(played.seeds) >= FEWEST
    try:
        choices = stage_choices(played, by_episode)
        rate, low, high, clusters = quantal_rate(choices)
    except BadParameter as error:
        return f"not identified: {error}"
    kind = f"slope of the likelihood over {'episodes' if by_episode else 'rounds'}"
    return MeanCell(rate, None, clusters, Interval(low, high, kind, clusters), POSITIVE)


def _shares(mixture: TypeMixture, draws: Any, episodes: int) -> dict[str, MeanCell]:
    cells = {}
    for index, name in enumerate(mixture.types):
        share, interval = float(mixture.shares[index]), None
        if draws is not None:
            low, high = np.quantile(draws[:, index], [0.025, 0.975]).tolist()
            interval = Interval(min(low, share), max(high, share), "bootstrap", episodes)
            if high - low < EQUAL:
                interval = Interval(share, share, "none", episodes, f"no spread in {episodes} runs")
        cells[name] = MeanCell(share, None, episodes, interval, SHARE)
    return cells
