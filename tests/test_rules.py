"""What must hold of every game's rules: batches, chance, information, symmetry."""

import dataclasses
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from playing import batch_actions, by_game, each_row, equal, every, legal_actions, rows

import llm_games
from llm_games import rulebook
from llm_games.errors import BadParameter, IllegalAction, UnknownName
from llm_games.questions import MISSING, BadReply
from llm_games.view import Sight
from llm_games.words import Prompts

seeds = st.integers(0, 2**32 - 1)
COARSE, REPLY_KEYS = by_game("COARSE", {}), by_game("REPLY_KEY", "")


@each_row(("game", "parameters", "words"), rows("BAD_PARAMETERS"))
def test_bad_parameters_name_what_is_right(game, parameters, words):
    with pytest.raises((BadParameter, UnknownName), match=words):
        llm_games.rules(game, **parameters)


@each_row(("name", "parameters", "text", "expected"), rows("REPLIES"))
def test_replies_are_read_or_break_a_rule(name, parameters, text, expected):
    game = llm_games.rules(name, **parameters)
    question = game.question(game.reset(0), 0)
    assert question.key == REPLY_KEYS[name]
    if isinstance(expected, int):
        assert question.read(text) == expected
        return
    with pytest.raises(BadReply) as error:
        question.read(text)
    kind, action = (expected, None) if isinstance(expected, str) else expected
    assert error.value.kind == kind
    assert action in (None, error.value.action)
    assert kind != "format" or error.value.action == MISSING


@each_row(("name", "parameters", "one", "other"), rows("ALIKE"))
def test_what_others_do_stays_secret(name, parameters, one, other):
    game = llm_games.rules(name, **parameters)
    first, second = (game.step(game.reset(), np.array(moves))[0] for moves in (one, other))
    assert game.told(first, 0) == game.told(second, 0)
    assert np.array_equal(game.observe(first)[0], game.observe(second)[0])


@every
@settings(max_examples=5, deadline=None)
@given(seed=seeds)
def test_a_batch_equals_a_loop(name, more, seed):
    """Each table of a batch, cut out and played alone, comes to the same, bit for bit."""
    game = llm_games.rules(name, **more)
    rng = np.random.default_rng(seed)
    state = game.reset(seed, (4,))
    for _ in range(12):
        actions = batch_actions(game, state, rng)
        after, outcome = game.step(state, actions)
        for b in range(4):
            alone, single = game.step(state.table(b), actions[:, b])
            assert equal(after.table(b), alone)
            assert np.array_equal(outcome.rewards[:, b], single.rewards)
            assert np.array_equal(outcome.finished[:, b], single.finished)
            assert np.array_equal(outcome.broke[:, b], single.broke)
            assert np.array_equal(game.observe(after)[:, b], game.observe(alone))
        state = after


@every
def test_batches_of_any_shape(name, more):
    game = llm_games.rules(name, **more)
    rng = np.random.default_rng(5)
    flat = game.reset(5, (6,))
    shaped = dataclasses.replace(
        flat, **{k: v.reshape(*v.shape[:-1], 2, 3) for k, v in flat.arrays().items()}
    )
    actions = batch_actions(game, flat, rng)
    one, outcome = game.step(flat, actions)
    two, shaped_outcome = game.step(shaped, actions.reshape(-1, 2, 3))
    assert np.array_equal(outcome.rewards.reshape(-1, 2, 3), shaped_outcome.rewards)
    for key, value in one.arrays().items():
        assert np.array_equal(value.reshape(*value.shape[:-1], 2, 3), two.arrays()[key]), key
    assert game.observe(two).shape == (game.players, 2, 3, len(game.columns()))


@every
def test_a_step_changes_neither_argument_and_depends_on_nothing_else(name, more):
    game = llm_games.rules(name, **more)
    state = game.reset(1)
    copy = dataclasses.replace(state, **{k: v.copy() for k, v in state.arrays().items()})
    actions = legal_actions(game, state, np.random.default_rng(2))
    kept = actions.copy()
    first, _ = game.step(state, actions)
    second, _ = game.step(state, actions)
    assert equal(first, second)
    assert equal(state, copy)
    assert np.array_equal(actions, kept)


@every
def test_a_finished_table_is_frozen(name, more):
    game = llm_games.rules(name, **more)
    rng = np.random.default_rng(1)
    state = game.reset(1)
    for _ in range(game.length() or 500):
        if state.over:
            break
        state, outcome = game.step(state, legal_actions(game, state, rng))
    assert state.over
    assert outcome.finished.all()
    assert not game.asked(state).any()
    assert all(game.question(state, seat) is None for seat in range(game.players))
    after, outcome = game.step(state, np.full(game.players, MISSING))
    assert equal(after, state)
    assert not outcome.rewards.any()
    assert not outcome.broke.any()


@every
def test_text_and_numbers_say_the_same(name, more):
    """Over many games: equal numbers if and only if equal texts, for every seat that decides.

    One that waits is asked nothing, so that its text may say less than its numbers, never more.
    """
    coarse = COARSE[name]  # equal knowledge comes up by different ways
    coarse = coarse(more) if callable(coarse) else coarse
    game = llm_games.rules(name, **(more | coarse))
    prompts = Prompts(name)
    rng = np.random.default_rng(11)
    text_of, numbers_of = {}, {}
    for seed in range(50):
        state = game.reset(seed)
        for _ in range(6):
            sight = Sight(game, state)
            for view in map(sight.view, range(game.players)):
                seat = view.seat
                numbers = (seat, bool(state.over), view.numbers.tobytes())
                text = (seat, prompts.report(view), prompts.request(view))
                assert text_of.setdefault(numbers, text) == text
                if view.question is not None:
                    assert numbers_of.setdefault(text, numbers) == numbers
            if state.over:
                break
            state, _ = game.step(state, legal_actions(game, state, rng))


@every
def test_a_broken_rule_can_void_the_run(name, more):
    """One in any step, at its own table alone."""
    game = llm_games.rules(name, **more, failed_reply="void_run")
    rng = np.random.default_rng(6)
    state = game.reset(1, (2,))
    for _ in range(3):
        actions = batch_actions(game, state, rng)
        broken = actions.copy()
        broken[game.asked(state)[:, 0].argmax(), 0] = MISSING
        void, outcome = game.step(state, broken)
        assert void.void.tolist() == [True, False]
        assert void.over[0]
        assert outcome.finished[:, 0].all()
        assert not outcome.rewards[:, 0].any()
        state, _ = game.step(state, actions)
        if state.over.any():
            break


@every
def test_missing_answers_get_the_declared_move(name, more):
    game = llm_games.rules(name, **more)
    state = game.reset(1)
    asked = game.asked(state)
    after, outcome = game.step(state, np.full(game.players, MISSING))
    assert np.array_equal(outcome.broke, asked)
    kept = name == "beauty_contest" or "assets" in outcome.record  # as no number, which is declared
    assert not (outcome.record["actions"] == MISSING)[asked].any() or kept
    assert int(after.round) >= int(state.round)


@every
@pytest.mark.parametrize(
    "wrong", [lambda a: a[1:], lambda a: a.astype(float), lambda a: a[:, None]]
)
def test_actions_of_another_shape_or_type_are_refused(name, more, wrong):
    game = llm_games.rules(name, **more)
    rng = np.random.default_rng(1)
    state = game.reset(1)
    with pytest.raises(IllegalAction, match="actions must be integers of shape"):
        game.step(state, wrong(legal_actions(game, state, rng)))


@pytest.mark.parametrize(
    "name", ["beauty_contest", "el_farol_bar", "divide_dollar", "public_goods", "diners_dilemma"]
)
@settings(max_examples=20, deadline=None)
@given(seed=seeds)
def test_permuting_symmetric_seats_permutes_results(name, seed):
    game = llm_games.rules(name)
    rng = np.random.default_rng(seed)
    state = game.reset(seed)
    actions, order = legal_actions(game, state, rng), rng.permutation(game.players)
    _, outcome = game.step(state, actions)
    _, permuted = game.step(state, actions[order])
    assert np.array_equal(outcome.rewards[order], permuted.rewards)


@every
def test_a_mask_shows_exactly_the_legal_actions(name, more):
    game = llm_games.rules(name, **more)
    if not game.masked:
        pytest.skip("every action of the space is legal at all times")
    rng = np.random.default_rng(2)
    state = game.reset(1)
    first = game.bounds()[0]
    for _ in range(5):
        if state.over:
            break
        mask = game.mask(state)
        for seat in np.flatnonzero(game.asked(state)):
            actions = legal_actions(game, state, rng)
            for place, allowed in enumerate(mask[seat]):
                actions[seat] = first + place
                broke = game.breaks(state, actions)[seat]
                # a bid for water beyond the balance is not legal, but no broken rule either
                assert broke == (not allowed) or (name == "water_allocation" and not broke)
        idle = mask[~game.asked(state)]  # the dead of water allocation have "no bid"
        assert not idle[:, 1:].any() if name == "water_allocation" else not idle.any()
        state, _ = game.step(state, legal_actions(game, state, rng))


ODD = (-(10**6), -1, 0, 1, 150, 10**12, MISSING)


@every
def test_payoffs_lie_within_what_is_payable(name, more):
    """Also where rules are broken; and every game of ours says so much."""
    game, rng, copies = llm_games.rules(name, **more), np.random.default_rng(4), 8
    low, high = game.payable
    free = {"unbounded", "include", "carry", "sum_and_length"}
    assert np.isfinite([low, high]).all() or free & {str(v) for v in vars(game).values()}
    state = game.reset(9, (copies,))
    paid = np.zeros((game.players, copies))
    for _ in range(60):
        if state.over.all():
            break
        actions = batch_actions(game, state, rng)
        odd = rng.choice(ODD, actions.shape)
        actions = np.where(rng.random(actions.shape) < 0.2, odd, actions)
        before = state.over.copy()
        state, outcome = game.step(state, actions)
        paid += np.where(before, 0, outcome.rewards)
        assert (paid >= low - 1e-9).all()
        assert (paid <= high + 1e-9).all()
        for seats in range(1, game.players + 1):
            ends = game.payable_mean(seats)
            assert (np.sort(paid, axis=0)[-seats:].mean(axis=0) <= ends[1] + 1e-9).all()
            assert (np.sort(paid, axis=0)[:seats].mean(axis=0) >= ends[0] - 1e-9).all()
        lost = game.effective(outcome.record)
        assert (lost[game.unplayed(outcome.record)] == MISSING).all()


@every
def test_tables_that_are_over_change_nothing_however_they_are_passed_over(name, more, monkeypatch):
    """Left out of a step once they are the most, by the rules themselves, or put back after it."""
    more = {"failed_reply": "void_run"} | more
    game, rng = llm_games.rules(name, **more), np.random.default_rng(8)
    state, voided = game.reset(3, (24,)), 0
    for _ in range(40):
        actions = batch_actions(game, state, rng)
        if game.failed_reply == "void_run" and rng.random() < 0.5:
            actions[:, voided : voided + 3], voided = MISSING, voided + 3
        ways = []
        for many, passes_over in ((1, None), (25, None), (25, False)):
            with monkeypatch.context() as patch:
                patch.setattr(rulebook, "MANY_TABLES", many)
                if passes_over is not None:
                    patch.setattr(type(game), "passes_over", passes_over)
                after, outcome = game.step(state, actions)
                parts = outcome.rewards, outcome.finished, outcome.broke
                arrays = after.arrays() | dict(outcome.record) | dict(enumerate(parts))
            ways.append({n: (a.dtype, a.shape, a.tobytes()) for n, a in arrays.items()})
        assert ways[0] == ways[1] == ways[2]
        state = after
    assert state.over.any() or name == "emergency_evacuation"


def test_a_part_of_an_outcome_can_be_pickled():
    game = llm_games.rules("public_goods", players=2)
    _, outcome = game.step(game.reset(0, (3,)), np.full((2, 3), 4))
    part = pickle.loads(pickle.dumps(outcome.table(np.array([2, 0]))))
    assert part.record["actions"].tolist() == [[4, 4], [4, 4]]
    game = llm_games.rules("bargaining")
    _, outcome = game.step(game.reset(0, (3,)), np.full((2, 3), 4))
    assert pickle.loads(pickle.dumps(outcome)).record["actions"].tolist() == [
        [4] * 3,
        [MISSING] * 3,
    ]
