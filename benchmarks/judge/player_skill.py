"""How well the players of a game played, each against the field that it met.

Of the first episodes, as many as have `MOST` seats. Units are episodes: what a player did in
several seats of one of them is averaged first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from llm_games.baselines import regret as theory
from llm_games.baselines.batch_play import (
    BestReplyGap,
    NoReplay,
    best_reply_gap,
    can_replay,
    counterfactual,
)
from llm_games.baselines.copies import Exploited, exploited
from llm_games.benchmarks.judge.intervals import Interval
from llm_games.benchmarks.judge.means import (
    FREE,
    POSITIVE,
    SHARE,
    Ends,
    MeanCell,
    apart,
    mean_of,
    paid,
)
from llm_games.benchmarks.judge.paper import known
from llm_games.benchmarks.record.editions import UNNAMED
from llm_games.benchmarks.record.recorded_games import RecordedEpisode, RecordedGame
from llm_games.errors import LLMGamesError
from llm_games.rounds import Rounds
from llm_games.rulebook import Array, Rulebook

MOST = 500  # seats of a game's episodes that are measured, but two episodes at least
COPIES = 100  # players up to whom exploitability is worked out, seat by seat
FEWEST = 10  # episodes from which a response to the field is worked out


class StackedEpisode(NamedTuple):
    """One episode to be measured: `steps` are its records, stacked on a last axis.

    `names` are who sat there, by seat, `places` the seats of the game's players in order; `payoffs`
    are of each seat, NaN if by rules of another edition than today's.
    """

    rules: Rulebook
    seed: int
    fixed_chance: Mapping[str, Any] | None
    names: Sequence[str]
    places: Sequence[int]
    steps: theory.Steps
    payoffs: Array

    @classmethod
    def of(cls, episode: RecordedEpisode) -> StackedEpisode:
        row, steps = episode.row, episode.stacked()
        places = np.argsort(row.seating).tolist()
        payoffs = episode.earned
        if (row.edition or UNNAMED)["rules"] != episode.rules.edition:
            payoffs = np.full_like(payoffs, np.nan)
        return cls(
            rules=episode.rules,
            seed=row.seed,
            fixed_chance=episode.given,
            names=episode.seats,
            places=places,
            steps=steps,
            payoffs=payoffs,
        )


class PlayerSkill(NamedTuple):
    """What one player of a game did, in payoffs a round, or an episode in games without rounds.

    Lists have a value for each episode and are empty where a measure is not defined. `regret` is in
    hindsight, `interim` on average over what the player could not know. `gain` is what the reply
    that theory names first, `solver`, would have brought more in its seats, `gap` what the best of
    all replies would, `best`; `response` is the same of a best response worked out for this field.
    `exploitability` is what a best reply gains from copies of its own mix of moves, `predicted` of
    one who knows the move before. `distance` and `efficiency` are of the whole table, and
    `anarchy`, its price: the best welfare over that of the worst known equilibrium, infinite if
    that is 0; of `welfare`, what is summed in them. `consumers` is what these have of the table,
    `surplus` what they and the players have. `why` says why nothing could be measured.
    """

    player: str
    per: str = ""
    regret: Sequence[float] = ()
    interim: Sequence[float] = ()
    solver: str = ""
    gain: Sequence[float] = ()
    gap: BestReplyGap | None = None
    best: str = ""
    response: Sequence[float] = ()
    exploitability: Exploited | None = None
    predicted: Exploited | None = None
    distance: Sequence[float] = ()
    efficiency: Sequence[float] = ()
    anarchy: float | None = None
    welfare: str = ""
    consumers: Sequence[float] = ()
    surplus: Sequence[float] = ()
    why: str = ""
    gained: Ends = FREE  # between what a round's or an episode's gains lie

    def means(self) -> dict[str, MeanCell | None]:
        """Return the mean and its interval of each measure that has one, None if not defined."""
        return {
            "regret": paid(self.regret, POSITIVE),
            "interim regret": paid(self.interim, POSITIVE),
            "solver's reply": paid(self.gain, self.gained),
            "best-reply gap": _gain(self.gap, self.gained),
            "response gap": paid(self.response, self.gained),
            "exploitability": _gain(self.exploitability, self.gained),
            "predicted": _gain(self.predicted, self.gained),
            "distance": mean_of(self.distance, SHARE),
            "efficiency": mean_of(self.efficiency, SHARE),
            "consumer surplus": paid(self.consumers, FREE),
            "total surplus": paid(self.surplus, FREE),
        }

    def plain(self) -> dict[str, Any]:
        means = {name: cell and cell.plain() for name, cell in self.means().items()}
        about = {n: getattr(self, n) for n in ("player", "per", "solver", "best", "welfare", "why")}
        finite = self.anarchy is not None and np.isfinite(self.anarchy)
        return about | means | {"anarchy": self.anarchy if finite else None}


def skills(game: RecordedGame) -> list[PlayerSkill]:
    """How each player did, worked out once; `why` says what failed.

    [] of a branch, which is a part of a game, or without theory.
    """
    if __name__ not in game.cache:
        whole = bool(game.done) and not game.planned.get("branch")
        judged = whole and all(theory.has(game.name, name) for name in theory.REQUIRED)
        episodes = map(StackedEpisode.of, islice(game.done, max(2, MOST // len(game.seats))))
        try:
            game.cache[__name__] = measured(episodes, game.seats) if judged else []
        except Exception as error:
            names = dict.fromkeys(game.seats)
            game.cache[__name__] = [PlayerSkill(name, why=reason(error)) for name in names]
    player_skills: list[PlayerSkill] = game.cache[__name__]
    return player_skills


def measured(
    episodes: Iterable[StackedEpisode],
    names: Sequence[str],
    whom: Sequence[str] = (),
    respond: bool = True,
) -> list[PlayerSkill]:
    """Return how players did in some episodes of one game, at least one, of those listed in it.

    `whom`: these alone. Without `respond` no best response is worked out, which can take seconds.
    Gains are undefined for files whose moves by today's rules do not bring what was paid.
    """
    parts = [_SkillPart.of(episode) for episode in episodes]
    rules, players = parts[0].episode.rules, whom or list(dict.fromkeys(names))
    replies, responses = candidates(rules), response_gaps(parts) if respond else None
    few = len(parts) * rules.players <= MOST
    limit = rules.players if few else max(1, MOST // (len(parts) * len(players)))
    gains = _gains(parts, replies, players, limit)
    if gains is None:
        replies, gains = [], [np.zeros((0, rules.players))] * len(parts)
    copied = _copied(parts)
    player_skills = []
    for name in players:
        seats = [_of(name, part.episode, limit) for part in parts]
        mean = _Means(parts, seats)
        gained = np.array([g[:, s].mean(axis=1) for g, s in zip(gains, seats, strict=True)])
        gap = best_reply_gap(gained) if replies else None
        positions = [position for position, player in enumerate(names) if player == name]
        player_skills.append(
            PlayerSkill(
                player=name,
                per="round" if isinstance(rules, Rounds) else "episode",
                regret=mean.of("regret"),
                interim=mean.of("interim"),
                solver=replies[0] if replies else "",
                gain=gained[:, 0].tolist() if replies else [],
                gap=gap,
                best=replies[gap.best] if gap and gap.best is not None else "",
                response=mean.over(responses) if responses else [],
                exploitability=exploited(rules, copied, positions) if copied else None,
                predicted=exploited(rules, copied, positions, order=1) if copied else None,
                distance=known([part.distance for part in parts]),
                efficiency=known([part.efficiency for part in parts]),
                anarchy=_mean([part.anarchy for part in parts]),
                welfare=theory.welfare_of(rules.name),
                consumers=known([part.surplus[0] for part in parts]),
                surplus=known([part.surplus[1] for part in parts]),
                gained=apart(rules.core.payable, rules.rounds if isinstance(rules, Rounds) else 1),
            )
        )
    return player_skills


def reason(error: Exception) -> str:
    """Say why something could not be measured; what is no error of this package has its type."""
    return str(error) if isinstance(error, LLMGamesError) else f"{type(error).__name__}: {error}"


class _SkillPart(NamedTuple):
    """What is known of an episode: regrets of each seat ``(players,)``, and of the table."""

    episode: StackedEpisode
    regret: Array
    interim: Array
    distance: float
    efficiency: float
    anarchy: float
    surplus: tuple[float, float]

    @classmethod
    def of(cls, episode: StackedEpisode) -> _SkillPart:
        rules, steps = episode.rules, episode.steps
        summed = np.mean if isinstance(rules, Rounds) else np.sum
        deviation = theory.deviation(rules, steps)
        interim = np.full(len(deviation.regret), np.nan)
        if theory.has(rules.name, "interim"):
            interim = _summed(theory.interim(rules, steps), summed)
        share = price = np.nan
        if theory.has(rules.name, "welfare"):
            welfare = theory.welfare(rules, steps)
            share, price = float(welfare.efficiency), float(welfare.anarchy)
        regret, far = _summed(deviation.regret, summed), known(deviation.distance.tolist())
        distance = float(np.mean(far)) if far else np.nan
        surplus = np.nan, np.nan
        if theory.has(rules.name, "surplus"):
            rounds = deviation.regret.shape[-1] if isinstance(rules, Rounds) else 1
            consumers, total = theory.surplus(rules, steps)
            surplus = float(consumers) / rounds, float(total) / rounds
        return cls(
            episode=episode,
            regret=regret,
            interim=interim,
            distance=distance,
            efficiency=share,
            anarchy=price,
            surplus=surplus,
        )


def candidates(rules: Rulebook) -> list[str]:
    """Return the replies that are tried in a seat's place; [] where moves cannot be replayed."""
    return list(theory.replies(rules)) if can_replay(rules) else []


def response_gaps(parts: Sequence[_SkillPart]) -> list[Array] | None:
    """Return what best responses to whole plays gain, of each episode ``(players,)``; or None."""
    rules = parts[0].episode.rules
    if len(parts) < FEWEST or not theory.has(rules.name, "response_gap"):
        return None
    return list(theory.response_gap(rules, [part.episode.steps for part in parts]).T)


def _summed(values: Array, summed: Any) -> Array:
    """Return the mean or the sum over the steps where it is defined, NaN if it is in none."""
    pairs = zip(values, ~np.isnan(values), strict=True)
    return np.array([summed(row[has]) if has.any() else np.nan for row, has in pairs])


def _of(name: str, episode: StackedEpisode, limit: int) -> list[int]:
    """Return the first seats of a player in an episode, at most so many."""
    return [seat for seat, player in enumerate(episode.names) if player == name][:limit]


def _mean(values: Sequence[float]) -> float | None:
    return float(np.mean(defined)) if (defined := known(values)) else None


class _Means(NamedTuple):
    """Means over a player's seats of each episode."""

    parts: Sequence[_SkillPart]
    seats: Sequence[Sequence[int]]

    def of(self, measure: str) -> list[float]:
        return self.over([getattr(part, measure) for part in self.parts])

    def over(self, values: Sequence[Array]) -> list[float]:
        pairs = zip(values, self.seats, strict=True)
        known_seats = (known(each[player_seats].tolist()) for each, player_seats in pairs)
        return [float(np.mean(of_seats)) for of_seats in known_seats if of_seats]


def _gains(
    parts: Sequence[_SkillPart], replies: Sequence[str], players: Sequence[str], limit: int
) -> list[Array] | None:
    """``(replies, players)`` by episode: replies' gains in the players' first seats, else NaN.

    None if what was paid is not paid again, or play would take too long.
    """
    gains_by_part = [np.full((len(replies), part.episode.rules.players), np.nan) for part in parts]
    if not replies:
        return gains_by_part
    alike: dict[Any, list[int]] = {}  # episodes of the same rules are played again together
    for number, part in enumerate(parts):
        key = id(part.episode.rules), repr(part.episode.fixed_chance)
        alike.setdefault(key, []).append(number)
    for numbers in alike.values():
        first = parts[numbers[0]].episode
        rules, fixed_chance = first.rules, first.fixed_chance
        pairs = [
            (number, seat)
            for number in numbers
            for name in players
            for seat in _of(name, parts[number].episode, limit)
        ]
        moves = {n: np.moveaxis(parts[n].episode.steps["actions"], -1, 0) for n in numbers}
        seeds = [parts[number].episode.seed for number, _ in pairs]
        taken, seats = [moves[number] for number, _ in pairs], [seat for _, seat in pairs]
        try:
            replayed, replied = counterfactual(rules, seeds, taken, seats, replies, fixed_chance)
        except NoReplay:  # it would take too long
            return None
        recorded = [parts[number].episode.payoffs[seat] for number, seat in pairs]
        if not np.allclose(replayed, recorded, rtol=1e-9, atol=1e-9):
            return None
        for (number, seat), gains in zip(pairs, (replied - replayed).T, strict=True):
            rounds = len(moves[number]) if isinstance(rules, Rounds) else 1
            gains_by_part[number][:, seat] = gains / rounds
    return gains_by_part


def _copied(parts: Sequence[_SkillPart]) -> list[theory.Steps]:
    """Return the moves of each listed seat by episode; [] where copies of them are not defined."""
    rules = parts[0].episode.rules
    if not theory.has(rules.name, "exploitability") or rules.players > COPIES:
        return []

    def ordered(episode: StackedEpisode, values: Array) -> Array:
        return values[list(episode.places)] if values.ndim > 1 else values

    return [{n: ordered(p.episode, v) for n, v in p.episode.steps.items()} for p in parts]


def _gain(estimate: BestReplyGap | Exploited | None, ends: Ends) -> MeanCell | None:
    """Return an estimated gain, its interval cut at the `ends` of gains."""
    if estimate is None:
        return None
    mean = estimate.gap if isinstance(estimate, BestReplyGap) else estimate.gain
    if estimate.low is None or estimate.high is None:
        return MeanCell(mean, None, estimate.n)
    low, high = max(estimate.low, ends[0]), min(estimate.high, ends[1])
    method = "cross-fitted t" if isinstance(estimate, BestReplyGap) else "mixes or halves"
    interval = Interval(low, high, method, estimate.n, estimate.note)
    return MeanCell(mean, None, estimate.n, interval, (0.0, ends[1]))
