"""A ghost: a player's recorded decisions, and the small model that is fitted to them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from io import BytesIO
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np

from llm_games.benchmarks.ghosts import mixture
from llm_games.benchmarks.ghosts.answer_classes import AnswerLimits
from llm_games.benchmarks.ghosts.fit import (
    DECIDED,
    GhostSource,
    ImitationData,
    differing,
    played,
    values_of,
)
from llm_games.benchmarks.ghosts.history import OWN, GhostMemory
from llm_games.benchmarks.ghosts.mixture import (
    MIXTURE,
    FitData,
    Forest,
    GhostFit,
    GhostModel,
    LastOwn,
    Marginal,
    Nearest,
    floored,
    judged,
    measured,
)
from llm_games.benchmarks.record.schema import Plain
from llm_games.errors import BadParameter, WrongSeat, install
from llm_games.files import DAMAGED, check_unpacked
from llm_games.noise import Noise
from llm_games.registry import rulebook
from llm_games.rulebook import Array, Rulebook

FORM = 1  # of the file
COLUMNS = ("seen", "last", "answer", "episode", "weight")  # of `FitData`, in the file
FITTED = b"PK"  # what it begins with
UNREADABLE = (*DAMAGED, TokenError, LookupError, ValueError, TypeError, AttributeError)
"""What reading such a file may raise."""
FEWEST = 20  # decisions without which there is no ghost
ENOUGH = 200  # from which on it foretells more than the last own action does, in most games


class NotAGhost(BadParameter):
    """The file cannot be read."""


@dataclass(frozen=True)
class Source:
    """A run that a ghost's decisions are from, and what each of them counts."""

    run: str
    episodes: int
    decisions: int
    left_out: int = 0
    weight: float = 1.0


@dataclass
class Ghost:
    """A player that answers as it was recorded, and where nothing was, as the `mixture` says.

    `seat` is the player, as a run's plan has it; `judged` says how well parts and mixture foretell
    episodes that they are not fitted to, `at_table` those before the last refit at a learner's
    table.
    """

    play: ImitationData
    params: Plain
    seat: Plain
    sources: list[Source]
    mixture: GhostModel
    judged: dict[str, GhostFit] = field(default_factory=dict)
    at_table: dict[str, GhostFit] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Sort the actions by `key`, and by `here`, for lookups."""
        self.game, self.answers, play = self.play.game, self.play.answers, self.play
        self.name, self.seats = self.seat["name"], play.seats
        by_key, by_here = np.argsort(play.key, kind="stable"), np.argsort(play.here, kind="stable")
        self._by_key, self._keys = play.action[by_key], play.key[by_key]
        self._by_here, self._heres = play.action[by_here], play.here[by_here]

    def check(self, game: Rulebook, seat: int) -> None:
        """BadParameter: it cannot sit at this seat of the game."""
        if type(game) is not type(self.game):
            raise BadParameter(f"{self.name!r} is a ghost of {self.game.name}, not of {game.name}")
        if others := differing(self.game, game):
            raise BadParameter(
                f"{self.name!r} is a ghost of {game.name} with other parameters: "
                f"{values_of(others, self.game, game)}"
            )
        if game.seats_differ and seat not in self.seats:
            seats = ", ".join(map(str, self.seats))
            raise WrongSeat(
                f"{self.name!r} was recorded at seat {seats} of {game.name}, not at {seat}, and "
                f"{game.seats_differ}: seat it there"
            )

    def decide(
        self, numbers: Array, limits: AnswerLimits, memory: GhostMemory, legal: Array | None = None
    ) -> tuple[Array, GhostMemory]:
        """Answer in some seats: actions, int64 ``(seats,)``, and the memory after them.

        `legal` are the classes that they may choose, if it is not for `limits` to say. In a
        situation of the record it is one of the answers recorded there, of the episode if it is
        played again.
        """
        memory = memory.after_observation(numbers)
        noise = Noise(memory.seed).of(memory.decided)
        legal = self.answers.legal(limits) if legal is None else legal
        is_recorded, actions = self._recorded(memory, noise.of("recorded"))
        is_recorded &= self._allowed(actions[:, None], limits, legal)[:, 0]
        if not is_recorded.all():
            rest = ~is_recorded
            features = memory.features(numbers, self.answers)[rest]
            chances = self.mixture.chances(features, memory.last[rest]) * legal[rest]
            drawn = noise.of("answer").random()[rest]
            classes = np.zeros(len(rest), np.int64)
            classes[rest] = _drawn(chances, drawn)
            actions = np.where(is_recorded, actions, self.answers.actions(classes, limits))
        classes = self.answers.classes(actions, limits)  # not those drawn: two may be one amount
        return actions, memory.answered(classes, actions, self.answers)

    def _recorded(self, memory: GhostMemory, noise: Noise) -> tuple[Array, Array]:
        """Bool ``(seats,)``: an answer is recorded; and that action."""
        low, high = self._span(memory.key)
        last, very = len(self._keys) - 1, np.searchsorted(self._heres, memory.here)
        same = self._heres[np.minimum(very, last)] == memory.here
        drawn = np.minimum(low + (noise.random() * (high - low)).astype(np.int64), last)
        action = np.where(same, self._by_here[np.minimum(very, last)], self._by_key[drawn])
        return same | (high > low), action

    def _allowed(self, actions: Array, limits: AnswerLimits, legal: Array) -> Array:
        """Bool ``(seats, answers)``: recorded actions of classes that are legal here."""
        classes = self.answers.classes(actions, limits.tall)
        inside = (classes >= 0) & (classes < self.answers.count)
        allowed: Array = legal[np.arange(len(legal))[:, None], np.where(inside, classes, 0)]
        return inside & allowed

    def _span(self, key: Array) -> tuple[Array, Array]:
        low, high = (np.searchsorted(self._keys, key, side) for side in ("left", "right"))
        return low, high

    def likely(
        self, numbers: Array, limits: AnswerLimits, memory: GhostMemory
    ) -> tuple[Array, Array, GhostMemory]:
        """Actions ``(seats, answers)``, chances (in all 1) and memory, as `decide` draws them."""
        memory = memory.after_observation(numbers)
        low, high = self._span(memory.key)
        index = low[:, None] + np.arange(max(int((high - low).max()), 0))
        actions = self._by_key[np.minimum(index, len(self._by_key) - 1)]
        legal = self.answers.legal(limits)
        there = (index < high[:, None]) & self._allowed(actions, limits, legal)
        recorded = there / np.maximum(high - low, 1)[:, None]
        chances = self.mixture.chances(memory.features(numbers, self.answers), memory.last) * legal
        chances *= (1 - recorded.sum(axis=1, keepdims=True)) / chances.sum(axis=1, keepdims=True)
        every = self.answers.actions(np.arange(self.answers.count)[None], limits.tall)
        every = np.broadcast_to(every, chances.shape)
        return np.hstack([actions, every]), np.hstack([recorded, chances]), memory

    def doubts(self) -> Iterator[str]:
        """Reasons not to take it for its player."""
        count, fits, table_fits = len(self.play.action), self.judged, self.at_table
        if count < ENOUGH:
            yield f"{count} decisions are few: {ENOUGH} or more foretell better"
        if fits and fits[MIXTURE].loss >= fits[LastOwn.name].loss:
            yield "it foretells no better than the player's own last action does"
        if table_fits and table_fits[MIXTURE].loss > table_fits[Marginal.name].loss:
            yield (
                "at the learner's table it foretold less than the marginal does: what was learned "
                "against it says little; refit it again, and let the learner learn again"
            )
        if Forest.name not in fits and mixture.forester() is None:
            yield f"without scikit-learn it has no random trees: {install('ghosts')}"
        if self.play.left_out:
            yield f"{self.play.left_out} decisions without a legal answer are left out"

    def plain(self) -> Plain:
        return {
            "game": self.game.name,
            "params": self.params,
            "player": self.name,
            "seats": self.seats,
            "decisions": len(self.play.action),
            "episodes": self.play.episodes,
            "sources": [asdict(source) for source in self.sources],
            "weights": self.weights,
            "held_out": _plain(self.judged),
            "at_learners_table": _plain(self.at_table),
            "doubts": [*self.doubts()],
        }

    def foretold(self, other: ImitationData) -> dict[str, GhostFit]:
        """Fit of parts and mixture to decisions that they are not fitted to."""
        both, mixture = self.play.plus(other, 1), self.mixture
        rows, count = both.rows.take(slice(len(self.play.action), None)), both.answers.count
        if count > self.answers.count:  # plans that it has not seen
            mixture = GhostModel.fitted(self.play.rows, count)
        parts = mixture.parts
        floor = parts[0].chances(rows.features, rows.last)
        fits = {
            part.name: judged(floored(part.chances(rows.features, rows.last), floor), rows.answer)
            for part in parts
        }
        mixed = mixture.chances(rows.features, rows.last)
        return fits | {MIXTURE: judged(mixed, rows.answer)}

    # -- its file ------------------------------------------------------------------------------
    def save(self, path: Path) -> Path:
        """One file without keys or code; raises as `check_out`."""
        check_out(path)
        play = self.play
        about = {
            "ghost": FORM,
            "game": self.game.name,
            "edition": self.game.edition,
            "params": self.params,
            "seat": self.seat,
            "seats": self.seats,
            "left_out": play.left_out,
            "plans": play.plans,
            "sources": [asdict(source) for source in self.sources],
            "judged": _plain(self.judged),
            "at_table": _plain(self.at_table),
            "weights": self.weights,
            "columns": [*self.game.column_index, *OWN],
        }
        arrays: dict[str, Any] = dict(zip(COLUMNS, play.rows, strict=True))
        arrays |= {name: getattr(play, name) for name in DECIDED}
        for part in self.mixture.parts:
            if isinstance(part, Forest):
                arrays |= part.arrays
        whole = BytesIO()
        np.savez_compressed(whole, about=np.array(json.dumps(about)), **arrays)
        unfinished = path.with_name(f"{path.name}.part")
        try:
            unfinished.write_bytes(whole.getvalue())
            unfinished.replace(path)  # the old file or the whole new one
        except OSError as error:
            raise NotAGhost(f"{path} cannot be written: {error.strerror}") from None
        return path

    @property
    def weights(self) -> dict[str, float]:
        parts = (part.name for part in self.mixture.parts)
        return dict(zip(parts, self.mixture.weights, strict=True))

    @classmethod
    def load(cls, path: Path) -> Ghost:
        """NotAGhost says what is wrong with the file."""
        try:
            with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
                check_unpacked(file.zip)
                arrays = dict(file)
            about = json.loads(str(arrays.pop("about")))
            game = rulebook(about["game"], **about["params"])
            if (about["ghost"], about["edition"]) != (FORM, game.edition):
                raise NotAGhost(
                    f"{path} was fitted with other rules of {game.name} (edition "
                    f"{about['edition']}, here {game.edition}); fit it again: llm-games ghost fit"
                )
            if about["columns"] != [*game.column_index, *OWN]:
                raise NotAGhost(f"{path} was fitted to other columns of {game.name}; fit it again")
            rows = FitData(*(arrays[name] for name in COLUMNS))
            play = ImitationData(
                game=game,
                rows=rows,
                **{name: arrays[name] for name in DECIDED},
                plans=[*map(tuple, about["plans"])],
                seats=about["seats"],
                left_out=about["left_out"],
            )
            return cls(
                play=play,
                params=about["params"],
                seat=about["seat"],
                sources=[Source(**source) for source in about["sources"]],
                mixture=_mixture(about["weights"], rows, play.answers.count, arrays),
                judged=_fits(about["judged"]),
                at_table=_fits(about["at_table"]),
            )
        except UNREADABLE as error:
            if isinstance(error, NotAGhost):
                raise
            raise NotAGhost(
                f"{path} is no ghost that can be read ({type(error).__name__}: {error}); one is "
                "made by: llm-games ghost fit RUN.db"
            ) from None


def is_fitted(path: Path) -> bool:
    """A fitted ghost, not a run; `NotAGhost`: neither."""
    if not path.is_file():
        raise NotAGhost(
            f"there is no file {path}; a ghost is of a run's record: ghost:RUN.db#SEAT, or made of "
            "it by: llm-games ghost fit RUN.db#SEAT"
        )
    with path.open("rb") as file:
        return file.read(len(FITTED)) == FITTED


def check_out(path: Path) -> None:
    """NotAGhost: none may be written there."""
    if not path.absolute().parent.is_dir():
        raise NotAGhost(f"{path} cannot be written: there is no folder {path.parent}")
    if not os.access(path.absolute().parent, os.W_OK):
        raise NotAGhost(f"{path} cannot be written: {path.absolute().parent} is read-only")
    if path.exists() and not (path.is_file() and is_fitted(path)):
        raise NotAGhost(f"{path} is there and no ghost: give another --out")


def _mixture(weights: Plain, rows: FitData, classes: int, arrays: dict[str, Array]) -> GhostModel:
    kinds: dict[str, Any] = {part.name: part for part in (Marginal, LastOwn, Nearest)}
    parts = [
        Forest(classes, arrays) if name == Forest.name else kinds[name](rows, classes)
        for name in weights
    ]
    return GhostModel(parts, [*weights.values()])


def _fits(plain: Plain) -> dict[str, GhostFit]:
    return {name: GhostFit(**fit) for name, fit in plain.items()}


def _plain(fits: Mapping[str, GhostFit]) -> Plain:
    return {name: judged._asdict() for name, judged in fits.items()}


def _drawn(chances: Array, drawn: Array) -> Array:
    upto = np.cumsum(chances, axis=1)
    return np.minimum((upto <= (drawn * upto[:, -1])[:, None]).sum(axis=1), chances.shape[1] - 1)


def fit(player: GhostSource, judge: bool = True) -> Ghost:
    """Fit a ghost, and `judge` it by other episodes; BadParameter: too little; StoreError."""
    play = played(player)
    source = Source(str(player.path), play.episodes, len(play.action), play.left_out)
    return fitted(play, player.params, player.seat.model_dump(), [source], judge)


def fitted(
    play: ImitationData,
    params: Plain,
    seat: Plain,
    sources: list[Source],
    judge: bool = True,
    at_table: dict[str, GhostFit] | None = None,
) -> Ghost:
    """BadParameter: the decisions are too few."""
    if play.episodes < 2 or len(play.action) < FEWEST:
        raise BadParameter(
            f"too little of {seat['name']!r} for a ghost in {sources[0].run}: {len(play.action)} "
            f"decisions in {play.episodes} episodes, of at least {FEWEST} in 2; more of them: "
            f"llm-games resume {sources[0].run} --episodes N (best {ENOUGH} decisions or more)"
        )
    count = play.answers.count
    return Ghost(
        play=play,
        params=params,
        seat=seat,
        sources=sources,
        mixture=GhostModel.fitted(play.rows, count),
        judged=measured(play.rows, count) if judge else {},
        at_table=at_table or {},
    )
