"""What a player answers next, as a mixture of small models of its recorded play.

A situation has a row of features, the own last answer, and the episode that it is of; an answer is
a class from 0. The parts are what it answers at all (the marginal), after its own last answer, in
the nearest situations and, with scikit-learn at hand, by random trees. Their weights come from
inner held-out episodes, since players of one share a history.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from llm_games.rulebook import Array

MIXTURE = "mixture"
NEIGHBOURS = 25
FLOOR = 0.05  # of the marginal, which is always mixed in: what was never seen may happen
BACKED = 2.0  # decisions that the marginal counts for beside those after the same last answer
EM_STEPS = 60
FOLDS = 4  # at most so many parts are held out, one after another
SLIGHT = 0.01  # a part of less weight is left out
CHUNK = 2_000_000  # numbers that are worked on at a time
BINS = 10  # of confidence, for the calibration
TREES, LEAST = 100, 3  # of a forest, and least decisions of a leaf


class FitData(NamedTuple):
    """Float32 `features` ``(rows, features)``, `last` own class or -1, `weight` of a row."""

    features: Array
    last: Array
    answer: Array
    episode: Array
    weight: Array

    def take(self, which: Array | slice) -> FitData:
        return FitData(*(column[which] for column in self))


class Marginal:
    """How often each answer was given; one that never was counts as a part of one decision."""

    name = "always the marginal"

    def __init__(self, rows: FitData, classes: int) -> None:
        counts = np.bincount(rows.answer, rows.weight, classes) + 1 / classes
        self.shares = counts / counts.sum()

    def chances(self, features: Array, last: Array) -> Array:
        """Float64 ``(rows, classes)``; so for all parts."""
        return np.broadcast_to(self.shares, (len(last), len(self.shares)))


class LastOwn:
    """How often each answer was given after the same own last one, backed by the marginal."""

    name = "last own action"

    def __init__(self, rows: FitData, classes: int) -> None:
        table = np.zeros((classes + 1, classes))  # the last row is of those without a last answer
        np.add.at(table, (rows.last, rows.answer), rows.weight)
        table += BACKED * Marginal(rows, classes).shares
        self.table = table / table.sum(axis=1, keepdims=True)

    def chances(self, features: Array, last: Array) -> Array:
        return self.table[last]


class Nearest:
    """How often each answer was given in the nearest situations, by features of like spread."""

    name = f"{NEIGHBOURS} nearest"

    def __init__(self, rows: FitData, classes: int) -> None:
        self.varying = np.ptp(rows.features, axis=0) > 0  # a spread of equal numbers may be above 0
        features = rows.features[:, self.varying]
        self.middle, self.scale = features.mean(axis=0), features.std(axis=0)
        self.scaled_rows = self._scaled(rows.features)
        self.square = (self.scaled_rows**2).sum(axis=1)
        self.votes = np.zeros((len(rows.answer), classes), np.float32)
        self.votes[np.arange(len(rows.answer)), rows.answer] = rows.weight

    def chances(self, features: Array, last: Array) -> Array:
        size, classes = self.votes.shape
        at_once = max(CHUNK // size, 1)
        chances = np.empty((len(features), classes))
        for start in range(0, len(features), at_once):
            part = self._scaled(features[start : start + at_once])
            # But for what all have in common.
            distance = self.square - 2 * part @ self.scaled_rows.T
            count = min(NEIGHBOURS, size)
            near = np.argpartition(distance, count - 1, axis=1)[:, :count]
            votes = self.votes[near].sum(axis=1, dtype=np.float64)
            chances[start : start + at_once] = votes / votes.sum(axis=1, keepdims=True)
        return chances

    def _scaled(self, features: Array) -> Array:
        scaled: Array = (features[:, self.varying] - self.middle) / self.scale
        return scaled


class Forest:
    """Random trees, grown by scikit-learn and kept as arrays, so that only fitting needs it.

    A node sends rows with a `feature` of at most `threshold` to the `left`; a leaf leads to itself,
    and its `shares` are of `labels`.
    """

    name = "random trees"
    ARRAYS = ("roots", "feature", "threshold", "left", "right", "leaf", "shares", "labels")

    def __init__(self, classes: int, arrays: Mapping[str, Array]) -> None:
        self.classes, self.arrays = classes, arrays
        self.roots, self.feature, self.threshold, self.left_child, self.right_child, *leaves = (
            arrays[name] for name in self.ARRAYS
        )
        self.leaf, self.shares, self.labels = leaves

    @classmethod
    def grown(cls, rows: FitData, classes: int) -> Self | None:
        """None without scikit-learn, or if all answers are equal or hardly any are."""
        labels = np.unique(rows.answer)
        if not 2 <= len(labels) <= len(rows.answer) // 2 or (grow := forester()) is None:
            return None
        model = grow(TREES, min_samples_leaf=LEAST, random_state=0)
        model.fit(rows.features, rows.answer, sample_weight=rows.weight)
        parts: list[tuple[Array, ...]] = []
        begin = leaves = 0
        for tree in (grown.tree_ for grown in model.estimators_):
            nodes, ends = np.arange(tree.node_count), tree.children_left < 0
            shares, last_leaf = tree.value[ends, 0].astype(np.float32), leaves + np.cumsum(ends) - 1
            children = tree.children_left, tree.children_right
            feature, leaf = (np.where(ends, *x) for x in ((0, tree.feature), (last_leaf, 0)))
            below, above = (begin + np.where(ends, nodes, child) for child in children)
            spread = shares / shares.sum(axis=1, keepdims=True)
            parts.append((np.array([begin]), feature, tree.threshold, below, above, leaf, spread))
            begin, leaves = begin + len(nodes), leaves + len(shares)
        joined = [np.concatenate(part) for part in zip(*parts, strict=True)]
        return cls(classes, dict(zip(cls.ARRAYS, [*joined, labels], strict=True)))

    def chances(self, features: Array, last: Array) -> Array:
        chances = np.zeros((len(features), self.classes))
        at_once = max(CHUNK // (len(self.roots) * len(self.labels)), 1)
        for start in range(0, len(features), at_once):
            part = features[start : start + at_once]
            row, nodes, parents = np.arange(len(part))[:, None], self.roots[None], None
            while parents is None or not np.array_equal(nodes, parents):
                less = part[row, self.feature[nodes]] <= self.threshold[nodes]
                children = np.where(less, self.left_child[nodes], self.right_child[nodes])
                parents, nodes = nodes, children
            shares = self.shares[self.leaf[nodes]].mean(axis=1, dtype=np.float64)
            chances[start : start + at_once, self.labels] = shares
        return chances


def forester() -> Callable[..., Any] | None:
    """A classifier that grows trees; None without scikit-learn."""
    try:
        from sklearn.ensemble import ExtraTreesClassifier
    except ImportError:
        return None
    classifier: Callable[..., Any] = ExtraTreesClassifier
    return classifier


Part = Marginal | LastOwn | Nearest | Forest


def parts_of(rows: FitData, classes: int) -> list[Part]:
    plain: list[Part] = [Marginal(rows, classes), LastOwn(rows, classes), Nearest(rows, classes)]
    forest = Forest.grown(rows, classes)
    return [*plain, forest] if forest else plain


@dataclass
class GhostModel:
    """Parts with their weights; the first is the marginal."""

    parts: Sequence[Part]
    weights: Sequence[float]

    @classmethod
    def fitted(cls, rows: FitData, classes: int) -> GhostModel:
        """Fit the parts, with weights from inner held-out episodes; equal ones without any."""
        parts = parts_of(rows, classes)
        weights = weights_of(rows, classes) or {part.name: 1 / len(parts) for part in parts}
        first, *others = parts
        chosen = [first, *(part for part in others if weights.get(part.name, 0) >= SLIGHT)]
        chosen_weights = [weights[part.name] for part in chosen]
        return cls(chosen, [weight / sum(chosen_weights) for weight in chosen_weights])

    def chances(self, features: Array, last: Array) -> Array:
        """Float64 ``(rows, classes)``; none is 0."""
        parts = zip(self.parts, self.weights, strict=True)
        chances = sum(weight * part.chances(features, last) for part, weight in parts)
        return floored(np.asarray(chances), self.parts[0].chances(features, last))


def floored(chances: Array, marginal: Array) -> Array:
    return (1 - FLOOR) * chances + FLOOR * marginal


def folds(episode: Array) -> Array:
    """Fold of each row; an episode is in one fold."""
    _, number = np.unique(episode, return_inverse=True)
    return number % FOLDS


def weights_of(rows: FitData, classes: int) -> dict[str, float]:
    """By name, those that make inner held-out episodes likeliest; {} without any."""
    inner = folds(rows.episode) == 0
    if inner.all():
        return {}
    parts, held = parts_of(rows.take(~inner), classes), rows.take(inner)
    cells = np.arange(len(held.answer)), held.answer
    likely = np.stack([part.chances(held.features, held.last)[cells] for part in parts])
    weights = np.full(len(parts), 1 / len(parts))
    for _ in range(EM_STEPS):
        share = weights[:, None] * likely
        share /= share.sum(axis=0)
        weights = (share * held.weight).sum(axis=1) / held.weight.sum()
    return dict(zip((part.name for part in parts), weights.tolist(), strict=True))


class GhostFit(NamedTuple):
    """Nats a decision, share right, and how far first guesses' confidence is `off` (by bins)."""

    loss: float
    right: float
    off: float


def judged(chances: Array, answer: Array) -> GhostFit:
    """`chances`: ``(rows, classes)``."""
    sure, hit = chances.max(axis=1), chances.argmax(axis=1) == answer
    bin_index = np.minimum((sure * BINS).astype(int), BINS - 1)
    gap = np.bincount(bin_index, sure - hit, BINS)
    loss = -np.log(chances[np.arange(len(answer)), answer]).mean()
    return GhostFit(float(loss), float(hit.mean()), float(np.abs(gap).sum() / len(answer)))


def measured(rows: FitData, classes: int) -> dict[str, GhostFit]:
    """Fit of each part and the mixture to episodes that they were not fitted to."""
    chances_by_part: dict[str, list[Array]] = {}
    answers, fold = [], folds(rows.episode)
    for held in np.unique(fold):
        rest, out = rows.take(fold != held), rows.take(fold == held)
        answers.append(out.answer)
        parts = parts_of(rest, classes)
        floor = parts[0].chances(out.features, out.last)
        for part in parts:
            chances = floored(part.chances(out.features, out.last), floor)
            chances_by_part.setdefault(part.name, []).append(chances)
        mixed = GhostModel.fitted(rest, classes).chances(out.features, out.last)
        chances_by_part.setdefault(MIXTURE, []).append(mixed)
    whole = np.concatenate(answers)
    whole_chances = {name: np.concatenate(parts) for name, parts in chances_by_part.items()}
    return {name: judged(c, whole) for name, c in whole_chances.items() if len(c) == len(whole)}
