"""What a player answers next, as a mixture of small models of its recorded play.

A situation has a row of features, the own last answer, and the episode that it is of; an answer is
a class from 0. The parts are what it answers at all (the marginal), after its own last answer, in
the nearest situations and, with few classes and scikit-learn at hand, by boosted trees. Their
weights come from an inner held-out episode: what is split is episodes, since players of one share
a history. `measured` fits to some episodes and judges by others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from llm_games.rulebook import Array

MIXTURE = "mixture"
NEIGHBOURS = 25
FEW = 21  # classes up to which trees are boosted
FLOOR = 0.05  # of the marginal, which is always mixed in: what was never seen may happen
BACKED = 2.0  # decisions that the marginal counts for beside those after the same last answer
EM_STEPS = 60
FOLDS = 4  # at most so many parts are held out, one after another
SLIGHT = 0.01  # a part of less weight is left out
CHUNK = 2_000_000  # numbers that are worked on at a time
BINS = 10  # of confidence, for the calibration
STAGES, DEPTH, RATE, LEAST = 60, 3, 0.1, 5  # of boosting: least rows of a leaf


class Rows(NamedTuple):
    """Situations: float32 `seen` ``(rows, features)``, the rest ``(rows,)``.

    `last` is the class of the own last answer, -1 before the first; `weight` what a row counts.
    """

    seen: Array
    last: Array
    answer: Array
    episode: Array
    weight: Array

    def where(self, which: Array) -> Rows:
        """Take some rows out."""
        return Rows(*(column[which] for column in self))


class Marginal:
    """How often each answer was given; one that never was counts as a part of one decision."""

    name = "always the marginal"

    def __init__(self, rows: Rows, classes: int) -> None:
        counts = np.bincount(rows.answer, rows.weight, classes) + 1 / classes
        self.shares = counts / counts.sum()

    def chances(self, seen: Array, last: Array) -> Array:
        """Return the chance of each answer, float64 ``(rows, classes)``."""
        return np.broadcast_to(self.shares, (len(last), len(self.shares)))


class LastOwn:
    """How often each answer was given after the same own last one, backed by the marginal."""

    name = "last own action"

    def __init__(self, rows: Rows, classes: int) -> None:
        table = np.zeros((classes + 1, classes))  # the last row is of those without a last answer
        np.add.at(table, (rows.last, rows.answer), rows.weight)
        table += BACKED * Marginal(rows, classes).shares
        self.table = table / table.sum(axis=1, keepdims=True)

    def chances(self, seen: Array, last: Array) -> Array:
        """Return the chance of each answer, float64 ``(rows, classes)``."""
        return self.table[last]


class Nearest:
    """How often each answer was given in the nearest situations, by features of like spread."""

    name = f"{NEIGHBOURS} nearest"

    def __init__(self, rows: Rows, classes: int) -> None:
        spread = rows.seen.std(axis=0)
        self.kept = spread > 0
        self.scale = spread[self.kept]
        self.known = rows.seen[:, self.kept] / self.scale
        self.square = (self.known**2).sum(axis=1)
        self.votes = np.zeros((len(rows.answer), classes), np.float32)
        self.votes[np.arange(len(rows.answer)), rows.answer] = rows.weight

    def chances(self, seen: Array, last: Array) -> Array:
        """Return the chance of each answer, float64 ``(rows, classes)``."""
        many, classes = self.votes.shape
        at_once = max(CHUNK // many, 1)
        found = np.empty((len(seen), classes))
        for start in range(0, len(seen), at_once):
            part = seen[start : start + at_once, self.kept] / self.scale
            distance = self.square - 2 * part @ self.known.T  # but for what all have in common
            count = min(NEIGHBOURS, many)
            near = np.argpartition(distance, count - 1, axis=1)[:, :count]
            votes = self.votes[near].sum(axis=1, dtype=np.float64)
            found[start : start + at_once] = votes / votes.sum(axis=1, keepdims=True)
        return found


class Boosted:
    """Boosted trees, grown by scikit-learn and kept as arrays, so that only fitting needs it."""

    name = "boosted trees"

    def __init__(self, **arrays: Array) -> None:
        self.arrays = arrays
        self.feature, self.threshold = arrays["feature"], arrays["threshold"]
        self.left, self.right, self.value = arrays["left"], arrays["right"], arrays["value"]
        self.roots, self.base, self.labels = arrays["roots"], arrays["base"], arrays["labels"]
        self.classes = int(arrays["classes"])

    @classmethod
    def fitted(cls, rows: Rows, classes: int) -> Self | None:
        """Grow them; None where they cannot be: one answer only, many, or no scikit-learn."""
        labels = np.unique(rows.answer)
        if len(labels) < 2 or classes > FEW or (grow := booster()) is None:
            return None
        model = grow(
            n_estimators=STAGES,
            max_depth=DEPTH,
            learning_rate=RATE,
            min_samples_leaf=LEAST,
            random_state=0,
        )
        model.fit(rows.seen, rows.answer, sample_weight=rows.weight)
        columns: dict[str, list[Array]] = {}
        roots, begin = np.empty(model.estimators_.shape, np.int32), 0
        for place, grown in np.ndenumerate(model.estimators_):
            tree, own = grown.tree_, np.arange(grown.tree_.node_count)
            leaf = tree.children_left < 0
            for name, values in (
                ("feature", np.where(leaf, 0, tree.feature).astype(np.int32)),
                ("threshold", tree.threshold),
                ("left", (begin + np.where(leaf, own, tree.children_left)).astype(np.int32)),
                ("right", (begin + np.where(leaf, own, tree.children_right)).astype(np.int32)),
                ("value", RATE * tree.value.reshape(-1)),
            ):
                columns.setdefault(name, []).append(values)
            roots[place], begin = begin, begin + tree.node_count
        arrays = {name: np.concatenate(parts) for name, parts in columns.items()}
        arrays |= {"roots": roots, "labels": labels, "classes": np.array(classes)}
        own = cls(**arrays, base=np.zeros(roots.shape[1]))
        said = model.decision_function(rows.seen[:1]).reshape(-1)
        own.arrays["base"] = own.base = said - own.scores(rows.seen[:1])[0]
        return own

    def scores(self, seen: Array) -> Array:
        """Return the sums over the trees, float64 ``(rows, labels)``, one column of two labels."""
        at = np.broadcast_to(self.roots, (len(seen), *self.roots.shape))
        row = np.arange(len(seen))[:, None, None]
        for _ in range(DEPTH):
            less = seen[row, self.feature[at]] <= self.threshold[at]
            at = np.where(less, self.left[at], self.right[at])
        return self.base + self.value[at].sum(axis=1)

    def chances(self, seen: Array, last: Array) -> Array:
        """Return the chance of each answer, float64 ``(rows, classes)``."""
        at_once = max(CHUNK // self.roots.size, 1)
        parts = [self.scores(seen[i : i + at_once]) for i in range(0, len(seen), at_once)]
        scores = np.concatenate(parts) if parts else np.empty((0, len(self.base)))
        if scores.shape[1] == 1:
            scores = np.concatenate([np.zeros_like(scores), scores], axis=1)
        shares = np.exp(scores - scores.max(axis=1, keepdims=True, initial=-np.inf))
        found = np.zeros((len(seen), self.classes))
        found[:, self.labels] = shares / shares.sum(axis=1, keepdims=True)
        return found


def booster() -> Callable[..., Any] | None:
    """Return what grows trees; None without scikit-learn."""
    try:
        from sklearn.ensemble import GradientBoostingClassifier
    except ImportError:
        return None
    found: Callable[..., Any] = GradientBoostingClassifier
    return found


Part = Marginal | LastOwn | Nearest | Boosted


def parts_of(rows: Rows, classes: int) -> list[Part]:
    """Fit all parts that there can be."""
    plain: list[Part] = [Marginal(rows, classes), LastOwn(rows, classes), Nearest(rows, classes)]
    boosted = Boosted.fitted(rows, classes)
    return [*plain, boosted] if boosted else plain


@dataclass
class Mixture:
    """Parts with their weights; the first is the marginal."""

    parts: Sequence[Part]
    weights: Sequence[float]

    @classmethod
    def fitted(cls, rows: Rows, classes: int) -> Mixture:
        """Fit the parts, with weights from inner held-out episodes; equal ones without any."""
        parts = parts_of(rows, classes)
        weights = weights_of(rows, classes) or {part.name: 1 / len(parts) for part in parts}
        first, *others = parts
        chosen = [first, *(part for part in others if weights.get(part.name, 0) >= SLIGHT)]
        kept = [weights[part.name] for part in chosen]
        return cls(chosen, [weight / sum(kept) for weight in kept])

    def chances(self, seen: Array, last: Array) -> Array:
        """Return the chance of each answer, float64 ``(rows, classes)``; none is 0."""
        parts = zip(self.parts, self.weights, strict=True)
        found = sum(weight * part.chances(seen, last) for part, weight in parts)
        return floored(np.asarray(found), self.parts[0].chances(seen, last))


def floored(chances: Array, marginal: Array) -> Array:
    """Return chances with the marginal mixed in."""
    return (1 - FLOOR) * chances + FLOOR * marginal


def folds(episode: Array) -> Array:
    """Return the part of each row that is held out together, by episodes."""
    _, number = np.unique(episode, return_inverse=True)
    return number % FOLDS


def weights_of(rows: Rows, classes: int) -> dict[str, float]:
    """Return by name the weights that make inner held-out episodes likeliest; {} without any."""
    inner = folds(rows.episode) == 0
    if inner.all():
        return {}
    parts, held = parts_of(rows.where(~inner), classes), rows.where(inner)
    said = (part.chances(held.seen, held.last) for part in parts)
    likely = np.stack([chances[np.arange(len(held.answer)), held.answer] for chances in said])
    weights = np.full(len(parts), 1 / len(parts))
    for _ in range(EM_STEPS):
        share = weights[:, None] * likely
        share /= share.sum(axis=0)
        weights = (share * held.weight).sum(axis=1) / held.weight.sum()
    return dict(zip((part.name for part in parts), weights.tolist(), strict=True))


class Judged(NamedTuple):
    """How well answers were foretold: nats a decision, share right, and calibration.

    `off`: the expected distance, over bins of confidence, from how sure it was of its first guess
    to how often that was right.
    """

    loss: float
    right: float
    off: float


def judged(chances: Array, answer: Array) -> Judged:
    """Judge chances ``(rows, classes)`` of what was answered."""
    sure, hit = chances.max(axis=1), chances.argmax(axis=1) == answer
    place = np.minimum((sure * BINS).astype(int), BINS - 1)
    gap = np.bincount(place, sure - hit, BINS)
    loss = -np.log(chances[np.arange(len(answer)), answer]).mean()
    return Judged(float(loss), float(hit.mean()), float(np.abs(gap).sum() / len(answer)))


def measured(rows: Rows, classes: int) -> dict[str, Judged]:
    """Return how well each part and the mixture foretell episodes that they were not fitted to."""
    said: dict[str, list[Array]] = {}
    answers, fold = [], folds(rows.episode)
    for held in np.unique(fold):
        rest, out = rows.where(fold != held), rows.where(fold == held)
        answers.append(out.answer)
        parts = parts_of(rest, classes)
        floor = parts[0].chances(out.seen, out.last)
        for part in parts:
            chances = floored(part.chances(out.seen, out.last), floor)
            said.setdefault(part.name, []).append(chances)
        mixed = Mixture.fitted(rest, classes).chances(out.seen, out.last)
        said.setdefault(MIXTURE, []).append(mixed)
    whole = np.concatenate(answers)
    found = {name: np.concatenate(parts) for name, parts in said.items()}
    return {name: judged(c, whole) for name, c in found.items() if len(c) == len(whole)}
