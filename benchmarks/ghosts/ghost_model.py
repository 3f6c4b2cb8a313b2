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
from llm_games.benchmarks.record.rows import Plain
from llm_games.errors import BadParameter, WrongSeat, install
from llm_games.files import DAMAGED, check_unpacked
from llm_games.noise import Noise
from llm_games.registry import rulebook
from llm_games.rulebook import Array, Rulebook

FORM = 1  # of the file
FITTED = b"PK"  # what it begins with
UNREADABLE = (*DAMAGED, TokenError, LookupError, ValueError, TypeError, AttributeError)
"""What reading such a file may raise."""
FEWEST = 20  # decisions without which there is no ghost
ENOUGH = 200  # from which on it foretells more than the last own action does, in most games


class NotAGhost(BadParameter):
    """A file is no ghost that can be read."""


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

    `seat` is the player, as a run's plan has it, and `params` are of its game; `judged` says how
    well parts and mixture foretell episodes that they are not fitted to, `at_table` how well those
    before the last refit did so at a learner's table.
    """

    own: ImitationData
    params: Plain
    seat: Plain
    sources: list[Source]
    mixture: GhostModel
    judged: dict[str, GhostFit] = field(default_factory=dict)
    at_table: dict[str, GhostFit] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Put what was decided in order: by all that had happened, and by the very episode."""
        self.game, self.answers, own = self.own.game, self.own.answers, self.own
        self.name, self.seats = self.seat["name"], own.seats
        by_key, by_here = np.argsort(own.key, kind="stable"), np.argsort(own.here, kind="stable")
        self._by_key, self._keys = own.action[by_key], own.key[by_key]
        self._by_here, self._heres = own.action[by_here], own.here[by_here]

    def check(self, game: Rulebook, seat: int) -> None:
        """Check that it can sit at a seat of a game, or raise BadParameter."""
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

        `numbers` are what they see; `legal` are the classes that they may choose, if it is not for
        `limits` to say. In a situation of the record it is one of the answers recorded there, of
        the very episode if that is played again.
        """
        memory = memory.met(numbers)
        noise = Noise(memory.seed).of(memory.decided)
        legal = self.answers.legal(limits) if legal is None else legal
        found, actions = self._recorded(memory, noise.of("recorded"))
        found &= self._allowed(actions[:, None], limits, legal)[:, 0]
        if not found.all():
            rest = ~found
            seen = memory.features(numbers, self.answers)[rest]
            chances = self.mixture.chances(seen, memory.last[rest]) * legal[rest]
            drawn = noise.of("answer").random()[rest]
            classes = np.zeros(len(rest), np.int64)
            classes[rest] = _drawn(chances, drawn)
            actions = np.where(found, actions, self.answers.actions(classes, limits))
        classes = self.answers.classes(actions, limits)  # not those drawn: two may be one amount
        return actions, memory.answered(classes, actions, self.answers)

    def _recorded(self, memory: GhostMemory, noise: Noise) -> tuple[Array, Array]:
        """Return where there is a recorded answer, and it."""
        low, high = self._span(memory.key)
        last, very = len(self._keys) - 1, np.searchsorted(self._heres, memory.here)
        same = self._heres[np.minimum(very, last)] == memory.here
        one = np.minimum(low + (noise.random() * (high - low)).astype(np.int64), last)
        action = np.where(same, self._by_here[np.minimum(very, last)], self._by_key[one])
        return same | (high > low), action

    def _allowed(self, actions: Array, limits: AnswerLimits, legal: Array) -> Array:
        """Return which recorded actions are of legal classes now, bool ``(seats, answers)``."""
        classes = self.answers.classes(actions, limits.tall)
        inside = (classes >= 0) & (classes < self.answers.count)
        found: Array = legal[np.arange(len(legal))[:, None], np.where(inside, classes, 0)]
        return inside & found

    def _span(self, key: Array) -> tuple[Array, Array]:
        """Return from where, and to before where, answers stand that were recorded by this key."""
        low, high = (np.searchsorted(self._keys, key, side) for side in ("left", "right"))
        return low, high

    def likely(
        self, numbers: Array, limits: AnswerLimits, memory: GhostMemory
    ) -> tuple[Array, Array, GhostMemory]:
        """Return all that it may answer in some seats, how likely each is, and the memory then.

        Actions are int64 ``(seats, answers)``, one may stand there twice; chances add up to 1. It
        is what `decide` draws from in episodes that are not of its record.
        """
        memory = memory.met(numbers)
        low, high = self._span(memory.key)
        place = low[:, None] + np.arange(max(int((high - low).max()), 0))
        known = self._by_key[np.minimum(place, len(self._by_key) - 1)]
        legal = self.answers.legal(limits)
        there = (place < high[:, None]) & self._allowed(known, limits, legal)
        recorded = there / np.maximum(high - low, 1)[:, None]
        chances = self.mixture.chances(memory.features(numbers, self.answers), memory.last) * legal
        chances *= (1 - recorded.sum(axis=1, keepdims=True)) / chances.sum(axis=1, keepdims=True)
        every = self.answers.actions(np.arange(self.answers.count)[None], limits.tall)
        every = np.broadcast_to(every, chances.shape)
        return np.hstack([known, every]), np.hstack([recorded, chances]), memory

    def doubts(self) -> Iterator[str]:
        """Say what speaks against taking it for its player."""
        many, said, there = len(self.own.action), self.judged, self.at_table
        if many < ENOUGH:
            yield f"{many} decisions are few: {ENOUGH} or more foretell better"
        if said and said[MIXTURE].loss >= said[LastOwn.name].loss:
            yield "it foretells no better than the player's own last action does"
        if there and there[MIXTURE].loss > there[Marginal.name].loss:
            yield (
                "at the learner's table it foretold less than the marginal does: what was learned "
                "against it says little; refit it again, and let the learner learn again"
            )
        if Forest.name not in said and mixture.forester() is None:
            yield f"without scikit-learn it has no random trees: {install('ghosts')}"
        if self.own.left_out:
            yield f"{self.own.left_out} decisions without a legal answer are left out"

    def plain(self) -> Plain:
        """Return what there is to say of it as plain values."""
        return {
            "game": self.game.name,
            "params": self.params,
            "player": self.name,
            "seats": self.seats,
            "decisions": len(self.own.action),
            "episodes": self.own.episodes,
            "sources": [asdict(source) for source in self.sources],
            "weights": self.weights,
            "held_out": _plain(self.judged),
            "at_learners_table": _plain(self.at_table),
            "doubts": [*self.doubts()],
        }

    def foretold(self, other: ImitationData) -> dict[str, GhostFit]:
        """Return how well parts and mixture foretell decisions that they are not fitted to."""
        both, many = self.own.plus(other, 1), len(self.own.action)
        rows, count, mixture = both.rows.where(slice(many, None)), both.answers.count, self.mixture
        if count > self.answers.count:  # plans that it has not seen
            mixture = GhostModel.fitted(self.own.rows, count)
        parts = mixture.parts
        floor = parts[0].chances(rows.seen, rows.last)
        found = {
            part.name: judged(floored(part.chances(rows.seen, rows.last), floor), rows.answer)
            for part in parts
        }
        mixed = mixture.chances(rows.seen, rows.last)
        return found | {MIXTURE: judged(mixed, rows.answer)}

    # -- its file ------------------------------------------------------------------------------

    def save(self, path: Path) -> Path:
        """Write it into one file, without any key or code; raises as `check_out`."""
        check_out(path)
        own = self.own
        about = {
            "ghost": FORM,
            "game": self.game.name,
            "edition": self.game.edition,
            "params": self.params,
            "seat": self.seat,
            "seats": self.seats,
            "left_out": own.left_out,
            "plans": own.plans,
            "sources": [asdict(source) for source in self.sources],
            "judged": _plain(self.judged),
            "at_table": _plain(self.at_table),
            "weights": self.weights,
            "columns": [*self.game.column_index, *OWN],
        }
        arrays = own.rows._asdict() | {name: getattr(own, name) for name in DECIDED}
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
        """The parts' weights by name."""
        parts = (part.name for part in self.mixture.parts)
        return dict(zip(parts, self.mixture.weights, strict=True))

    @classmethod
    def load(cls, path: Path) -> Ghost:
        """Read one from its file; `NotAGhost` says what is wrong with it."""
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
            rows, plans = FitData(*(arrays[n] for n in FitData._fields)), map(tuple, about["plans"])
            action, key, here = (arrays[name] for name in DECIDED)
            seats, left_out = about["seats"], about["left_out"]
            own = ImitationData(game, rows, action, key, here, [*plans], seats, left_out)
            return cls(
                own,
                about["params"],
                about["seat"],
                [Source(**source) for source in about["sources"]],
                _mixture(about["weights"], rows, own.answers.count, arrays),
                *(
                    {n: GhostFit(**j) for n, j in about[key].items()}
                    for key in ("judged", "at_table")
                ),
            )
        except UNREADABLE as error:
            if isinstance(error, NotAGhost):
                raise
            raise NotAGhost(
                f"{path} is no ghost that can be read ({type(error).__name__}: {error}); one is "
                "made by: llm-games ghost fit RUN.db"
            ) from None


def is_fitted(path: Path) -> bool:
    """Return whether a file is a fitted ghost, and no run; `NotAGhost` if it is none at all."""
    if not path.is_file():
        raise NotAGhost(
            f"there is no file {path}; a ghost is of a run's record: ghost:RUN.db#SEAT, or made of "
            "it by: llm-games ghost fit RUN.db#SEAT"
        )
    with path.open("rb") as file:
        return file.read(len(FITTED)) == FITTED


def check_out(path: Path) -> None:
    """Check that a ghost may be written there; `NotAGhost` if not."""
    if not path.absolute().parent.is_dir():
        raise NotAGhost(f"{path} cannot be written: there is no folder {path.parent}")
    if not os.access(path.absolute().parent, os.W_OK):
        raise NotAGhost(f"{path} cannot be written: {path.absolute().parent} is read-only")
    if path.exists() and not (path.is_file() and is_fitted(path)):
        raise NotAGhost(f"{path} is there and no ghost: give another --out")


def _mixture(weights: Plain, rows: FitData, classes: int, arrays: dict[str, Array]) -> GhostModel:
    made: dict[str, Any] = {part.name: part for part in (Marginal, LastOwn, Nearest)}
    parts = [
        Forest(classes, arrays) if name == Forest.name else made[name](rows, classes)
        for name in weights
    ]
    return GhostModel(parts, [*weights.values()])


def _plain(said: Mapping[str, GhostFit]) -> Plain:
    return {name: judged._asdict() for name, judged in said.items()}


def _drawn(chances: Array, drawn: Array) -> Array:
    upto = np.cumsum(chances, axis=1)
    return np.minimum((upto <= (drawn * upto[:, -1])[:, None]).sum(axis=1), chances.shape[1] - 1)


def fit(found: GhostSource, judge: bool = True) -> Ghost:
    """Fit a ghost to a recorded player, and `judge` it by episodes that it is not fitted to.

    Raises:
        BadParameter: there is too little of it.
        StoreError: its record cannot be played again.
    """
    own = played(found)
    source = Source(str(found.path), own.episodes, len(own.action), own.left_out)
    return fitted(own, found.params, found.seat.model_dump(), [source], judge)


def fitted(
    own: ImitationData,
    params: Plain,
    seat: Plain,
    sources: list[Source],
    judge: bool = True,
    at_table: dict[str, GhostFit] | None = None,
) -> Ghost:
    """Fit a ghost to a player's decisions; `BadParameter` if these are too few."""
    if own.episodes < 2 or len(own.action) < FEWEST:
        raise BadParameter(
            f"too little of {seat['name']!r} for a ghost in {sources[0].run}: {len(own.action)} "
            f"decisions in {own.episodes} episodes, of at least {FEWEST} in 2; more of them: "
            f"llm-games resume {sources[0].run} --episodes N (best {ENOUGH} decisions or more)"
        )
    count = own.answers.count
    said = measured(own.rows, count) if judge else {}
    fit_to_all = GhostModel.fitted(own.rows, count)
    return Ghost(own, params, seat, sources, fit_to_all, said, at_table or {})
