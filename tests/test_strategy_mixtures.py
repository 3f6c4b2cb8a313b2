"""Shares of strategies: what the published estimates are, and what was put in comes out.

``data/dal_bo_frechette.csv`` has, for each subject of Dal Bo and Frechette (2011), choices of late
matches and how many of them six strategies would have made.
"""

import csv
from pathlib import Path

import numpy as np
import pytest
from playing import each_row

from llm_games.baselines.strategy_mixtures import strategy_mixture
from llm_games.errors import BadParameter

FILE = Path(__file__).parent / "data" / "dal_bo_frechette.csv"
# Shares of always defect, always cooperate, grim, tit for tat, win-stay lose-shift and a trigger of
# two rounds; how often people do what theirs says; trembles to four digits.
PUBLISHED = {
    "D5R32": (".92 0 0 .08 0 0", 0.940, 0.0595),
    "D5R40": (".78 .08 .04 .10 0 0", 0.864, 0.1362),
    "D5R48": (".53 .07 0 .38 .02 0", 0.912, 0.0883),
    "D75R32": (".65 0 0 .35 0 0", 0.904, 0.0963),
    "D75R40": (".11 .30 .27 .33 0 0", 0.909, 0.0913),
    "D75R48": ("0 .08 .12 .56 0 .24", 0.970, 0.0296),
}


def subjects():
    found = {}
    with FILE.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            agreed = [int(row[name]) for name in row if name.startswith("agrees")]
            found.setdefault(row["treatment"], []).append((agreed, int(row["choices"])))
    return {name: tuple(map(np.array, zip(*rows, strict=True))) for name, rows in found.items()}


def test_published_shares():
    total = 0
    for treatment, (agreed, choices) in subjects().items():
        shares, precision, tremble = PUBLISHED[treatment]
        found = strategy_mixture(agreed, choices)
        assert np.allclose(found.shares, [*map(float, shares.split())], atol=0.0051), treatment
        assert round(found.precision, 3) == precision
        assert round(1 - found.precision, 4) == tremble
        total += found.log_likelihood
    assert round(total, 3) == -2217.194


@each_row("seed", range(3))
def test_what_was_put_in_comes_out(seed):
    draws, shares = np.random.default_rng(seed), np.array([0.5, 0.3, 0.2])
    choices = np.full(600, 24)
    follows = draws.choice(3, 600, p=shares)
    says = draws.integers(0, 2, (3, 600, 24))  # what each strategy would have done
    kept = draws.random((600, 24)) < 0.9
    made = np.where(kept, says[follows, np.arange(600)], 1 - says[follows, np.arange(600)])
    agreed = (says == made).sum(axis=2).T
    found = strategy_mixture(agreed, choices)
    assert np.allclose(found.shares, shares, atol=0.06)
    assert abs(found.precision - 0.9) < 0.01


def test_who_does_the_opposite_follows_none():
    """Who mostly defects is one who defects, with trembles, and no cooperator who mostly fails."""
    choices = np.full(40, 12)
    defects = np.random.default_rng(1).binomial(12, 0.7, 40)
    agreed = np.stack([defects, 12 - defects], axis=1)
    found = strategy_mixture(agreed, choices)
    assert np.allclose(found.shares, [1, 0], atol=1e-6)
    assert found.precision == pytest.approx(defects.mean() / 12)
    assert strategy_mixture(agreed[:, 1:], choices).precision == 0.5


def test_bad_counts():
    with pytest.raises(BadParameter, match="none above the subject's choices"):
        strategy_mixture(np.array([[5, 1]]), np.array([4]))
