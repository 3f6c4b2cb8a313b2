"""Which rules stand behind the moves of a run's players: `llm_games.baselines.type_mixtures`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from llm_games.baselines.foretold_moves import foretold, recorded_moves, usual_types
from llm_games.baselines.type_mixtures import (
    SURE,
    TOO_RANDOM,
    CatalogueFit,
    TypeMixture,
    compared,
    shares_between,
    type_mixture,
)
from llm_games.benchmarks.judge.intervals import EQUAL, SEED, Interval
from llm_games.benchmarks.judge.means import SHARE, MeanCell
from llm_games.benchmarks.judge.result_table import ResultTable, columns
from llm_games.benchmarks.record.editions import UNNAMED
from llm_games.benchmarks.record.recorded_games import RecordedEpisode, RecordedGame
from llm_games.errors import BadParameter

MOST = 400  # episodes of a player from which its types are worked out, the first ones
DRAWS = 200  # bootstrap samples over episodes
FEWEST = 5  # episodes whose shares have an interval
LEAST = 0.005  # share of a type that is shown


class SeatType(NamedTuple):
    """The likeliest types of a seat of an episode, as few as are surer than `SURE`."""

    episode: int
    seat: int
    types: tuple[str, ...]
    chance: float


@dataclass(frozen=True)
class PlayerTypes:
    """The types behind a player's seats in a game; `why` says why nobody can tell.

    `shares` are of types, with intervals over episodes; `seats` have a type each, `named` are those
    with one alone. `fit` compares the catalogue with a rule by the last round.
    """

    game: str
    player: str
    episodes: int
    decisions: int
    shares: Mapping[str, MeanCell]
    seats: Sequence[SeatType]
    mixture: TypeMixture | None
    fit: CatalogueFit | None
    numbers: bool
    why: str = ""

    @property
    def named(self) -> list[SeatType]:
        known = self.mixture is not None and self.mixture.nameable and not self.outside
        return [seat for seat in self.seats if len(seat.types) == 1] if known else []

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
            "errors": None if fit.rule.errors is None else fit.rule.errors.tolist(),
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
            "seats": [seat._asdict() for seat in self.seats],
        }


def player_types(game: RecordedGame, names: Sequence[str] = ()) -> list[PlayerTypes]:
    """Return the types behind each player of a game; `names` are types, by default the usual ones.

    BadParameter, UnknownName: one of `names` is no type of the game.
    """
    return [_of_player(game, player, names) for player in game.players]


def _of_player(game: RecordedGame, player: str, names: Sequence[str]) -> PlayerTypes:
    chosen = list(_chosen(game, player))
    episodes = [episode for episode, _ in chosen]
    try:
        if not chosen:
            raise BadParameter("no finished episode was played by the rules of today")
        rules = _alike(episodes)
        recorded = recorded_moves(
            rules,
            [episode.row.seed for episode in episodes],
            [[record["answers"] for record in episode.records] for episode in episodes],
            [seats for _, seats in chosen],
            episodes[0].given,
        )
        moves = foretold(recorded, names or usual_types(rules))
    except BadParameter as error:
        if names:
            raise
        return _untold(game, player, len(episodes), str(error))
    mixture = type_mixture(moves)
    fit = None
    with suppress(BadParameter):  # too few rounds: the catalogue stands alone
        fit = compared(moves, recorded.last_rounds, recorded.rounds)
    draws = None
    if len(episodes) >= FEWEST:
        draws = shares_between(moves, mixture, recorded.episodes, DRAWS, SEED)
    places = [(e, seat) for e, (_, seats) in enumerate(chosen) for seat in sorted(seats)]
    sitters = np.unique(recorded.sitters)
    return PlayerTypes(
        game=game.label,
        player=player,
        episodes=len(episodes),
        decisions=len(recorded.actions),
        shares=_shares(mixture, draws, len(episodes)),
        seats=[
            SeatType(
                episodes[places[sitter][0]].row.number,
                places[sitter][1],
                mixture.groups(number),
                float(mixture.posterior[number].max()),
            )
            for number, sitter in enumerate(sitters.tolist())
        ],
        mixture=mixture,
        fit=fit,
        numbers=moves.numbers,
    )


def _chosen(game: RecordedGame, player: str) -> Iterator[tuple[RecordedEpisode, list[int]]]:
    """Yield the first episodes of a player, by rules of today, with its seats."""
    for episode in game.done[:MOST]:
        today = (episode.row.edition or UNNAMED)["rules"] == episode.rules.edition
        if today and (seats := episode.of(player)):
            yield episode, seats


def _alike(episodes: Sequence[RecordedEpisode]) -> Any:
    first = episodes[0]
    for episode in episodes:
        if episode.rules != first.rules or episode.given != first.given:
            raise BadParameter("its episodes differ in their rules, or in what was given to chance")
    return first.rules


def _untold(game: RecordedGame, player: str, episodes: int, why: str) -> PlayerTypes:
    return PlayerTypes(
        game=game.label,
        player=player,
        episodes=episodes,
        decisions=0,
        shares={},
        seats=(),
        mixture=None,
        fit=None,
        numbers=False,
        why=why,
    )


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


# -- tables ----------------------------------------------------------------------------------------


def type_grids(types: Sequence[PlayerTypes]) -> list[ResultTable]:
    """Return tables of types and of what players do by the last round; [] without players."""
    if not types:
        return []
    rows = [
        [of.game, of.player, name, share, sum(seat.types == (name,) for seat in of.named)]
        for of in types
        for name, share in of.shares.items()
        if share.mean >= LEAST
    ]
    heads = columns("game, player, type") | {"share": ".2f", "seats named": ">"}
    note = (
        f"seats named: with a chance above {SURE:g}; types joined by = foretell the same here. "
        f"Nobody is named where more than {TOO_RANDOM:g} of the moves are any"
    )
    fits = [_fitted(of) for of in types]
    fit_heads = columns("game, player, the record says") | columns("decisions, episodes", "", "")
    fit_heads |= {"any move": ".2f", "miss": ".1f", "own last": ".2f", "others' last": ".2f"}
    fit_heads |= {"constant": ".1f", "BIC": "+.0f", "held out": "+.0f"}
    explained = (
        "any move: the share of moves that no type foretells; miss: standard deviation of numbers; "
        "own last, others' last, constant: what numbers follow in the round before, ± standard "
        "error; BIC, held out: the catalogue's criterion and log-likelihood of every second round "
        "less those of that rule"
    )
    return [
        ResultTable(heads, rows, "Types behind the moves", "types", note),
        ResultTable(fit_heads, fits, "How far types go", "type_fits", explained),
        *_alike_grid(types),
    ]


def _fitted(of: PlayerTypes) -> list[Any]:
    mixture, fit = of.mixture, of.fit
    line: list[Any] = [None] * 3
    if fit is not None and fit.rule.errors is not None:
        pairs = zip(fit.rule.coefficients.tolist(), fit.rule.errors.tolist(), strict=True)
        line = [
            MeanCell(value, None, of.episodes, _normal(value, error, of.decisions))
            for value, error in pairs
        ]
    errors = (mixture.error, mixture.spread) if mixture else (None, None)
    apart = (fit.bic, fit.held_out) if fit else (None, None)
    return [of.game, of.player, of.verdict, of.decisions, of.episodes, *errors, *line, *apart]


def _normal(value: float, error: float, decisions: int) -> Interval:
    return Interval(value - 1.96 * error, value + 1.96 * error, "normal by decisions", decisions)


def _alike_grid(types: Sequence[PlayerTypes]) -> Iterator[ResultTable]:
    rows = [
        [of.game, of.player, f"{a} and {b}"]
        for of in types
        if of.mixture
        for a, b in of.mixture.alike()
        if min(of.shares[a].mean, of.shares[b].mean) >= LEAST
    ]
    if rows:
        note = "a seat's record has less than 19 to 1 for either, so that both are told together"
        heads = columns("game, player, not told apart")
        yield ResultTable(heads, rows, "Types that the record cannot tell apart", "", note)
