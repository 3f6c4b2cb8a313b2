"""Exploitability of copies: its interval, its bias, and what the order of moves gives away."""

import numpy as np
import pytest

from llm_games.baselines.copies import exploited
from llm_games.baselines.games.el_farol_bar import theory as bar
from llm_games.registry import rulebook


def plays(moves):
    """Return moves ``(episodes, rounds)`` as records of a game's first seat."""
    return [{"actions": np.asarray(row)[None]} for row in moves]


@pytest.mark.nightly
@pytest.mark.parametrize("episodes", [1, 5, 20])
@pytest.mark.parametrize("order", [0, 1])
def test_an_exact_mixer_has_zero_in_its_interval(night, record_property, episodes, order):
    game, sims = rulebook("el_farol_bar"), night(400, 10_000)
    often = bar.mixed_equilibrium(bar.Bar.of(game))
    rng = np.random.default_rng(episodes)
    found = [
        exploited(game, plays(rng.random((episodes, game.rounds)) < often), [0], order)
        for _ in range(sims)
    ]
    covered = np.mean([each.low == 0 for each in found])
    record_property("coverage", float(covered))
    error = 2.6 * np.sqrt(0.05 * 0.95 / sims)  # of the simulation
    assert 0.93 - error <= covered <= 0.97 + error
    assert np.mean([each.gain for each in found]) < 0.7 * np.mean([e.plug for e in found])


@pytest.mark.nightly
@pytest.mark.parametrize("often", [0.3, 0.5])
def test_what_can_be_exploited_is_in_the_interval(night, record_property, often):
    game, sims = rulebook("el_farol_bar"), night(300, 5000)
    truth, rng = bar.gain_on_copies(often, bar.Bar.of(game))[0], np.random.default_rng(1)
    found = [exploited(game, plays(rng.random((5, 20)) < often), [0]) for _ in range(sims)]
    covered = np.mean([each.low <= truth <= each.high for each in found])
    record_property("coverage", float(covered))
    assert covered >= 0.93 - 2.6 * np.sqrt(0.05 * 0.95 / sims)


@pytest.mark.nightly
def test_a_mix_of_many_moves_has_zero_in_its_interval(night, record_property):
    """Of two who divide 100, 20 with a chance of 1/4 and else 80 is an equilibrium."""
    game, sims = rulebook("divide_dollar", players=2), night(200, 5000)
    rng = np.random.default_rng(2)
    for episodes in (5, 20):
        draws = [rng.choice([20, 80], (episodes, 20), p=[0.25, 0.75]) for _ in range(sims)]
        covered = np.mean([exploited(game, plays(d), [0]).low == 0 for d in draws])
        record_property(f"coverage_{episodes}", float(covered))
        assert covered >= 0.93 - 2.6 * np.sqrt(0.05 * 0.95 / sims)


def test_order_gives_away_what_frequencies_hide():
    game = rulebook("el_farol_bar")
    ordered = plays([[1] * 12 + [0] * 8] * 5)
    frequencies, predicted = (exploited(game, ordered, [0], order) for order in (0, 1))
    assert frequencies.plug < 0.1 < 4 < predicted.low
    assert predicted.low <= predicted.gain <= predicted.high


def test_too_short_a_play_has_no_interval_and_a_long_one_says_what_it_rests_on():
    guess, guests = rulebook("beauty_contest", rounds=1), rulebook("el_farol_bar")
    legal = {"legal": np.ones((1, 1), bool)}
    alone = exploited(guess, [plays([[9]])[0] | legal], [0])
    assert (alone.low, alone.n) == (None, 1)
    assert exploited(guess, plays([[9]]), [0], order=1) is None  # nothing was before
    single = exploited(guests, plays([[1, 0] * 10]), [0])
    assert (single.n, single.note) == (20, "steps of 1 episode taken as independent")
    assert exploited(guests, plays([[1] * 20] * 5), [0]).low > 0
