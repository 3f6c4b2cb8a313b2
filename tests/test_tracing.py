"""Rules that are traced play one table on plain numbers, equal to NumPy's to the bit."""

import copy
import pickle
import warnings
from dataclasses import dataclass

import numpy as np
import pytest
from playing import NAMES, SETTINGS

from llm_games.games.public_goods.rules import PublicGoods
from llm_games.questions import MISSING
from llm_games.registry import game_class, rulebook
from llm_games.rulebook import PATIENCE

WHY_NOT = {
    "emergency_evacuation": ("arrays used as indices", "more than 64 players"),
    "bertrand_competition": ("np.exp is not traced",),  # logit demand
    "english_auction": ("more than 20000 operations",),  # rounds are skipped until none is
}
"""The games that do not trace, all of them or with some settings."""
PRESETS = [(n, {"preset": preset}) for n in NAMES for preset in (None, *game_class(n).presets)]
TABLES = [*PRESETS, *((name, settings) for name, settings in SETTINGS if settings)]


def both(name, settings):
    """Return the game whose rules are traced, and the one that plays NumPy's; skip if neither."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        traced, plain = (rulebook(name, **settings).core for _ in range(2))
    why = traced.trace()
    if why:
        assert any(reason in why for reason in WHY_NOT.get(name, ())), why
        pytest.skip(why)
    vars(plain)["traced"] = False
    return traced, plain


def actions_now(game, state, rng):
    """Draw legal actions, alike, close or far beyond the rules, or none."""
    low, high = game.legal(state)
    actions = rng.integers(low, np.maximum(low, high), endpoint=True)
    other, some = rng.random(), rng.random(actions.shape) < 0.4
    if other < 0.15:
        return np.where(some, rng.integers(-5, high.max() + 50, actions.shape), actions)
    if other < 0.18:
        return np.where(some, MISSING, actions)
    if other < 0.2:
        return np.where(some, rng.integers(-(2**53), 2**53, actions.shape), actions)
    if other < 0.3:
        return actions * 0 + actions[0]
    return np.where(game.asked(state), actions, MISSING) if other < 0.7 else actions


def bits(array):
    array = np.asarray(array)
    return array.dtype, array.shape, array.tobytes()


def same(arrays, others):
    assert [*arrays] == [*others]
    assert {n: bits(part) for n, part in arrays.items()} == {n: bits(p) for n, p in others.items()}


def play_both(traced, plain, games):
    rng, by_numbers = np.random.default_rng(1), 0
    for seed in range(games):
        state, plain_state = traced.reset(seed), plain.reset(seed)
        for _ in range(60):
            assert bits(traced.observe(state)) == bits(plain.observe(plain_state))
            facts = traced.traced.facts(state)
            assert repr(facts) == repr([fact.of(plain_state).tolist() for fact in plain.facts])
            assert traced.traced.asked(state) == plain.asked(plain_state).tolist()
            if plain_state.over:
                break
            actions = actions_now(plain, plain_state, rng)
            state, outcome = traced.step(state, actions)
            plain_state, expected = plain.step(plain_state, actions)
            by_numbers += "_numbers" in vars(state)
            parts = ("rewards", "finished", "broke")
            same({p: getattr(outcome, p) for p in parts}, {p: getattr(expected, p) for p in parts})
            same(dict(outcome.record), dict(expected.record))
            if rng.random() < 0.2:
                same(state.__getstate__(), plain_state.__getstate__())
    assert by_numbers


@pytest.mark.parametrize(("name", "settings"), TABLES)
def test_a_table_of_numbers_is_equal_to_numpys(name, settings):
    play_both(*both(name, settings), games=3)


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "settings"), TABLES)
def test_two_thousand_games_are_equal(name, settings, night):
    play_both(*both(name, settings), games=night(20, 2000))


def test_rules_are_traced_once_it_pays():
    game = rulebook("public_goods", players=2, rounds=PATIENCE + 1)
    state = game.reset(0)
    for step in range(PATIENCE):
        assert game.traced is None, step
        state, _ = game.step(state, np.array([1, 2]))
    state, _ = game.step(state, np.array([1, 2]))
    assert "_numbers" in vars(state)
    assert state.round == PATIENCE + 1
    assert pickle.loads(pickle.dumps(game)).traced is None


def test_a_state_of_numbers_is_a_state():
    game = rulebook("public_goods", players=2)
    assert not game.trace()
    state, outcome = game.step(game.reset(0), np.array([3, 4]))
    for other in (copy.copy(state), copy.deepcopy(state), pickle.loads(pickle.dumps(state))):
        same(vars(other), state.__getstate__())
    assert repr(state).startswith("PublicGoodsState(round=np.int64(1), over=np.False_")
    changed = state.replace(contributions=np.array([9, 9]))
    assert game.observe(changed)[0, 2] == 9
    assert pickle.loads(pickle.dumps(outcome)).record["pot"] == 7
    with pytest.raises(AttributeError, match="no attribute 'purse'"):
        _ = state.purse


@dataclass(frozen=True)
class Refunds(PublicGoods):
    """Pays on a way that hangs on data, which no trace can follow."""

    def pay(self, state, gifts, broke):
        return super().pay(state, gifts * 0 if gifts.sum() > 20 else gifts, broke)


@dataclass(frozen=True)
class Halves(PublicGoods):
    """Divides by what can be 0: then NumPy has to answer, and to warn."""

    def pay(self, state, gifts, broke):
        tokens, changes, record = super().pay(state, gifts, broke)
        return tokens / (gifts[0] - 3), changes, record


def test_rules_that_do_not_trace_play_as_before():
    game = Refunds(players=2)
    assert game.trace() == "Untraceable: which way is taken hangs on data"
    _, outcome = game.step(game.reset(0), np.array([15, 15]))
    assert outcome.rewards.tolist() == [20, 20]


def test_numpy_answers_where_plain_numbers_cannot():
    game = Halves(players=2)
    assert not game.trace()
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        _, outcome = game.step(game.reset(0), np.array([3, 1]))
    assert outcome.rewards.tolist() == [np.inf, np.inf]
    state, _ = game.step(game.reset(0), np.array([2, 1]))
    assert "_numbers" in vars(state)
